"""Load models from robot files and scenes."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from qdsim.description import Description, PointCloud, Softness
from qdsim.description.references import unknown_name
from qdsim.model import Model
from qdsim.overlaps import without_overlaps

if TYPE_CHECKING:
    from qdsim.formats.refusals import Kind
    from qdsim.pressure import PressureField

__all__ = ["build", "load"]


def load(
    source: object,
    *,
    stiffness: float | Mapping[str, float] | None = None,
    actuated: Iterable[str] | None = None,
    package_dirs: Any = (),
    assets: Mapping[str, bytes] | None = None,
    decompose: bool | Iterable[str] = False,
    clouds: Mapping[str, PointCloud] | None = None,
    soft: Mapping[str, Softness | PressureField | float | None] | None = None,
    exclude_overlaps: bool | None = None,
    leave_out: Kind | Iterable[Kind] = (),
    visuals: bool = True,
) -> Model:
    """Load a model from a robot file. Reading needs the ``mujoco`` package, using the model does
    not.

    Args:
        source: Path of an MJCF or URDF file, an XML text (begins with ``<``), a ``mujoco.MjSpec``
            or a ``mujoco.MjModel``.
        stiffness: Joint stiffness of the actuators in N/m (slides) or Nm/rad (hinges): one number,
            or a mapping from joints to numbers. It overrides the stiffness of the file's position
            actuators, and replaces its other actuators by position actuators without force limit.
            It also determines the actuated joints if the file does not: those of the mapping, or
            with one number every hinge and slide. A URDF has no actuators, so one with hinges or
            slides needs this argument (or ``actuated=()`` for a passive mechanism).
        actuated: Names of all joints that are actuated.
        package_dirs: Folders in which ``package://`` names of a URDF are searched, in addition to
            the folders above the file.
        assets: Contents of files by name, for sources that are not on disk.
        decompose: Meshes collide as their convex hull, as in MuJoCo. True: non-convex meshes
            collide as convex pieces instead, computed by CoACD and cached
            (``qdsim.formats.decompose``); names of geometries: only these.
        clouds: Point clouds that replace the shapes of geometries, by their names, because neither
            MJCF nor URDF has point clouds. Everything else stays as in the file (body, pose,
            friction, filters). Points are in the frame of the geometry in the file; for a mesh,
            these are the coordinates of the mesh file, so a non-convex mesh can be replaced by
            points on its surface: ``clouds={"bunny": PointCloud(read_points("bunny.stl", 1000))}``.
        soft: Geometries with pressure fields (Elandt et al. 2019), by their names: a
            ``qdsim.Softness``, its modulus in Pa alone, or a ``qdsim.pressure.PressureField`` in
            the frame of the geometry. It overrides the file; None makes a geometry rigid. In an
            MJCF file, ``<custom><numeric name="soft:tip" data="1e5 10 0.004"/></custom>`` makes the
            geometry "tip" soft: modulus Pa, dissipation s/m, hint m (0: the default), and for a
            plane thickness m; ``<text>`` elements named "soft:tip vertices", "soft:tip tetrahedra"
            and "soft:tip pressure" contain its own tetrahedra, as numbers in rows of 3, 4 and 1.
            Rigid meshes of the file press into soft geometries by their own triangles, convex or
            not, if these enclose a volume.
        exclude_overlaps: Whether contacts between bodies that overlap at the default configuration
            are excluded, as robot set-up tools do: collision geometries of neighbouring links often
            overlap, and a step that has to separate them has no solution. None: for a URDF, which
            cannot exclude contacts itself, all overlapping bodies; for other sources, links of one
            mechanism (a body on the world with everything it carries) that penetrate by more than a
            twentieth of the radius of the smaller geometry's bounding sphere, and links within 2 mm
            of the fixed base on which an actuator rotates them (the convex friction law keeps
            sliding contacts open, which would block such a link). A warning names them.
        leave_out: Kinds of unsupported elements to leave out. By default an element that a step
            cannot simulate is an error; with its kind listed here, the file is loaded without such
            elements and a warning names them. Kinds: ``"force_limits"`` (springs are then
            unlimited), ``"tendons"`` (with actuators and equalities on them) and ``"actuators"``
            (those that are not springs of one joint; their joints are free unless ``stiffness``
            names them). Others matter only to second-order steps with ``contacts="mujoco"``, which
            raise an error if the file has them: ``"fluids"`` (density, viscosity), ``"solver"``
            (noslip iterations, the integrator RK4, diagexact) and ``"activations"`` (filters and
            integrators of actuators: commands are then activations).
        visuals: Whether the visual elements of a URDF are kept, for the viewer and pictures, as
            geometries without contacts. Reading their meshes (.dae) may take seconds; without them
            only collision elements are drawn. Visual elements that cannot be read are listed in
            ``model.ignored``. Those of an MJCF file are always kept, unless its compiler discards
            them.

    Raises:
        FileNotFoundError, IsADirectoryError: The path is not a file.
        ValueError: The source cannot be read, or contains elements that a step cannot simulate; the
            message names the source and every such element.
        TypeError: An argument has the wrong type.
        ImportError: A mesh file needs trimesh (.ply, .glb, text .stl, ...) or pycollada (.dae), or
            ``decompose`` needs coacd, and it is not installed: ``pip install 'qdsim[meshes]'``.

    Warns:
        ModelWarning: A mesh that soft geometries can touch does not enclose a volume, so its hull
            is used; a field ends far inside its geometry; a ``hint`` is finer than the shape
            allows; dry friction in joints or elements named by ``leave_out`` were left out;
            inertias of a URDF were repaired; or contacts between bodies were excluded.

    Note:
        Friction coefficients of a pair are combined according to the source's format: element-wise
        maximum (MJCF, with priority and explicit pairs), harmonic mean 2ab / (a + b) (URDF).
        ``model.ignored`` lists elements that have no meaning in a quasi-dynamic step (damping,
        armature, gap, solver parameters of limits).
    """
    from qdsim.formats import load_description  # readers are imported only where they are used

    if exclude_overlaps is not None and not isinstance(exclude_overlaps, bool):
        raise TypeError(
            f"exclude_overlaps: expected True, False or None, got {type(exclude_overlaps).__name__}"
        )
    description = load_description(
        source,
        stiffness=stiffness,
        actuated=actuated,
        package_dirs=package_dirs,
        assets=assets,
        decompose=decompose,
        clouds=clouds,
        leave_out=leave_out,
        visuals=visuals,
    )
    model = Model(_softened(description, soft))
    if exclude_overlaps is False:
        return model
    from_urdf = description.friction_combination == "harmonic"
    return without_overlaps(model, links_only=exclude_overlaps is None and not from_urdf)


def _softened(
    description: Description, soft: Mapping[str, Softness | PressureField | float | None] | None
) -> Description:
    """Return the description with the named geometries made soft or rigid."""
    if soft is None:
        return description
    if not isinstance(soft, Mapping):
        raise TypeError(
            f"soft: expected a mapping from names of geometries, got {type(soft).__name__}"
        )
    names = [geom.name for geom in description.geoms]
    for name in soft:
        if name not in names:
            raise ValueError(f"soft: {unknown_name('geom', name, names)}")
    bodies = [
        dataclasses.replace(
            body,
            geoms=tuple(
                dataclasses.replace(geom, soft=soft[geom.name])  # type: ignore[arg-type]
                if geom.name in soft
                else geom
                for geom in body.geoms
            ),
        )
        for body in description.bodies
    ]
    return dataclasses.replace(description, bodies=tuple(bodies))


def build(description: Description) -> Model:
    """Build a model from a scene described in code.

    Args:
        description: A checked scene, for example from ``SceneBuilder.build``; lengths in m, angles
            in rad, masses in kg.

    Raises:
        TypeError: if it is not a ``Description``.
        ValueError: if the contacts of a pair that can collide are not supported.
    """
    return Model(description)
