"""Robot files and scenes to models."""

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
    """Load a model from a robot file. Reading needs the ``mujoco`` package, using the model does not.

    Args:
        source: Path of an MJCF or URDF file, an XML text (begins with ``<``), a ``mujoco.MjSpec``
            or a ``mujoco.MjModel``.
        stiffness: Joint stiffness of the actuators in N/m (slides) or Nm/rad (hinges): one number,
            or a mapping from joints to numbers. It overrides the stiffness of the file's position
            actuators, replaces its other actuators by position actuators without force limit, and
            says which joints are actuated where the file does not: those of the mapping; with one
            number and no actuator in the file, every hinge and slide. A URDF has no actuators, so
            one with hinges or slides needs this argument (or ``actuated=()`` for a passive
            mechanism).
        actuated: Names of the joints that are to be actuated, and no others.
        package_dirs: Folders in which ``package://`` names of a URDF are looked for, beside the
            folders above the file.
        assets: Contents of files by name, for sources that are not on disk.
        decompose: Meshes collide as their convex hull, as in MuJoCo. True: those that are not
            convex collide as convex pieces instead, which CoACD finds and a cache keeps
            (``qdsim.formats.decompose``); names of geometries: these do.
        clouds: Point clouds that stand in for geometries of the file, by their names: neither MJCF
            nor URDF knows clouds. Everything but the shape stays as the file says (body, pose,
            friction, filters). Points are in the frame that the file gives to the geometry; of a
            mesh, these are the coordinates of the mesh's own file, so a mesh that is not convex can
            be replaced by points on its surface: ``clouds={"bunny":
            PointCloud(read_points("bunny.stl", 1000))}``.
        soft: Which geometries press by pressure fields (Elandt et al. 2019), by their names: a
            ``qdsim.Softness``, its modulus in Pa alone, or a ``qdsim.pressure.PressureField`` in
            the frame of the geometry. It overrides what the file says; None makes a geometry rigid.
            In an MJCF file, ``<custom><numeric name="soft:tip" data="1e5 10 0.004"/></custom>``
            makes the geometry "tip" soft: modulus Pa, dissipation s/m, hint m (0: the default), and
            of a plane thickness m; ``<text>`` elements named "soft:tip vertices", "soft:tip
            tetrahedra" and "soft:tip pressure" give it tetrahedra of its own, their numbers in rows
            of 3, 4 and 1. Rigid meshes of the file press into soft geometries by their own
            triangles, convex or not, if these enclose something.
        exclude_overlaps: Whether bodies that overlap at the default configuration never touch each
            other, as robot set-up tools decide it: collision geometries of neighbouring links often
            run into each other, and a step that has to part them finds no solution. None: of a
            URDF, which cannot say so itself, all that overlap; of other sources, links of one
            mechanism (a body on the world with all that it carries) of which one is inside the
            other by more than a twentieth of the smaller geometry's bounding sphere's radius, and
            links that a motor turns on a fixed base within 2 mm of it, whose sliding contact would
            hold them (a step's friction keeps gaps open). A warning names them.
        leave_out: What the file has and quasi-dynamics does not is an error, unless its kind is
            named here; then the file is loaded without, with a warning that names every such
            element. Some of ``"force_limits"`` (springs then pull as hard as they are stretched),
            ``"tendons"`` (and actuators and equalities that act on them) and ``"actuators"`` (those
            that are not springs of one joint: what they drove is free unless ``stiffness`` names
            it).
        visuals: Whether the visual elements of a URDF are kept, for the viewer and pictures:
            geometries that nothing can touch. Their meshes may take seconds to read (.dae); without
            them only collision elements are drawn. What of them cannot be read is listed in
            ``model.ignored``. Of an MJCF file they are always kept, unless its compiler discards
            them.

    Raises:
        FileNotFoundError, IsADirectoryError: The path is not a file.
        ValueError: The source cannot be read, or holds elements that a step cannot simulate; the message names the
            source and every such element.
        TypeError: An argument has the wrong type.
        ImportError: A mesh file needs trimesh (.ply, .glb, text .stl, ...) or pycollada (.dae), or
            ``decompose`` needs coacd, and it is not installed: ``pip install 'qdsim[meshes]'``.

    Warns:
        ModelWarning: A mesh that soft geometries can touch has triangles that enclose nothing, so
            that its hull is taken, a field ends far inside of its geometry, a ``hint`` is finer
            than the shape can be, dry friction in joints, or what ``leave_out`` names, was left
            out, inertias of a URDF were repaired, or bodies were excluded from touching each other.

    Note:
        Frictions of a pair combine as the source's format says: element-wise maximum (MJCF, with
        priority and explicit pairs), harmonic mean 2ab / (a + b) (URDF). ``model.ignored`` lists what
        has no meaning in quasi-dynamics (damping, armature, gap, solver parameters of limits).
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
    """With the geometries that are named made soft, or rigid."""
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
        description: A checked scene, for example from ``SceneBuilder.build``; lengths in m, angles in rad, masses in
            kg.

    Raises:
        TypeError: if it is no ``Description``.
        ValueError: if the contacts of a pair that can collide are not supported.
    """
    return Model(description)
