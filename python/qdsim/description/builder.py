"""Scenes built in code."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from qdsim.description.arrays import rotation_matrix
from qdsim.description.contact_solver import ContactSolver
from qdsim.description.elements import (
    WORLD,
    Actuator,
    Body,
    Exclude,
    FrictionCombination,
    Joint,
    JointType,
    Keyframe,
    Pair,
)
from qdsim.description.references import unknown_name
from qdsim.description.scene import Description
from qdsim.description.sensors import Sensor
from qdsim.description.shapes import Geom, GeomType, Mesh
from qdsim.description.tendons import Tendon


class SceneBuilder:
    """Collects the elements of a scene and builds a ``Description``.

    >>> scene = SceneBuilder(gravity=(0, 0, -9.81))
    >>> scene.geom("world", "plane")
    'world_geom0'
    >>> scene.body("ball", pos=(0, 0, 0.1), mass=1.0)
    'ball'
    >>> scene.joint("ball", "free")
    'ball'
    >>> scene.geom("ball", "sphere", 0.1, friction=0.5)
    'ball_geom0'
    >>> description = scene.build()

    Every method that adds an element returns its name; default names are derived from the body's. A
    body with a ``mass`` but no ``inertia`` gets the inertia of its geometries, filled evenly. Joints
    and geometries may be added to a body at any time before ``build``, which sorts the bodies depth
    first (children in the order in which they were added).

    Args:
        gravity: ``(3,)``, m/s^2, in world axes.
        friction_combination: how the coefficients of two geometries are combined: "max" (as MJCF) or
            "harmonic" (2ab / (a + b), as URDF).
        parent_filter: whether contacts between bodies joined by a joint are excluded, except with the world.
        name: of the model.
        contact_solver: MuJoCo's parameters of contacts, for ``contacts="mujoco"``; None: its defaults.
    """

    def __init__(
        self,
        *,
        gravity: Any = (0.0, 0.0, -9.81),
        friction_combination: FrictionCombination = "max",
        parent_filter: bool = True,
        name: str = "model",
        contact_solver: ContactSolver | None = None,
    ) -> None:
        self._contact_solver = ContactSolver() if contact_solver is None else contact_solver
        self._gravity = gravity
        self._combination: FrictionCombination = friction_combination
        self._parent_filter = parent_filter
        self._name = name
        self._bodies: dict[str, Body] = {WORLD: Body(WORLD)}
        self._uniform: set[str] = set()
        self._actuators: list[Actuator] = []
        self._pairs: list[Pair] = []
        self._excludes: list[Exclude] = []
        self._tendons: list[Tendon] = []
        self._keyframes: list[Keyframe] = []
        self._meshes: list[Mesh] = []
        self._sensors: list[Sensor] = []

    def body(
        self,
        name: str,
        parent: str = WORLD,
        *,
        pos: Any = (0.0, 0.0, 0.0),
        quat: Any = (1.0, 0.0, 0.0, 0.0),
        mass: float = 0.0,
        com: Any = None,
        inertia: Any = None,
        gravcomp: float = 0.0,
        mocap: bool = False,
    ) -> str:
        """Add a body; returns its name.

        Args:
            name: unique among bodies.
            parent: name of an existing body.
            pos, quat, mass, com, inertia, gravcomp, mocap: as in ``Body``; without inertia the mass
                is distributed evenly over the body's geometries.

        Raises:
            ValueError: if the name is taken, the parent does not exist, or com is given without
                inertia.
        """
        if name in self._bodies:
            raise ValueError(f"two bodies are named {name!r}")
        self._known(parent)
        if inertia is None and mass:
            self._uniform.add(name)
        self._bodies[name] = Body(
            name,
            parent,
            pos=pos,
            quat=quat,
            mass=mass,
            com=(0.0, 0.0, 0.0) if com is None else com,
            inertia=((0.0,) * 3,) * 3 if inertia is None else inertia,
            gravcomp=gravcomp,
            mocap=mocap,
        )
        if com is not None and name in self._uniform:
            raise ValueError(f"body {name!r}: give inertia together with com")
        return name

    def joint(
        self,
        body: str,
        type: JointType = "hinge",
        *,
        name: str | None = None,
        axis: Any = (0.0, 0.0, 1.0),
        pos: Any = (0.0, 0.0, 0.0),
        ref: float = 0.0,
        range: Any = None,
        stiffness: float = 0.0,
        springref: float = 0.0,
        damping: float = 0.0,
        armature: float = 0.0,
        friction: float = 0.0,
    ) -> str:
        """Add a joint between a body and its parent; returns its name.

        Args:
            body: name of the body.
            type: "hinge", "slide", "ball" or "free".
            name: None: the first joint is named like its body.
            axis, pos, ref, range, stiffness, springref, damping, armature, friction: as in
                ``Joint``.

        Raises:
            ValueError: if the body does not exist, or a field is invalid.
        """
        owner = self._known(body)
        if name is None:
            name = body if not owner.joints else f"{body}_joint{len(owner.joints)}"
        joint = Joint(
            name,
            type,
            pos=pos,
            axis=axis,
            ref=ref,
            range=range,
            stiffness=stiffness,
            springref=springref,
            damping=damping,
            armature=armature,
            friction=friction,
        )
        self._bodies[body] = dataclasses.replace(owner, joints=(*owner.joints, joint))
        return name

    def geom(
        self,
        body: str,
        type: GeomType = "sphere",
        size: Any = (),
        *,
        name: str | None = None,
        **kw: Any,
    ) -> str:
        """Add a geometry to a body or to "world"; returns its name.

        Args:
            body: name of the body.
            type: "sphere", "box" or another type of ``Geom``.
            size: m, as in ``Geom`` for the type.
            name: None: derived from the body's name.
            kw: the other fields of ``Geom``.

        Raises:
            ValueError: if the body does not exist, or a field is invalid.
        """
        owner = self._known(body)
        name = name or f"{body}_geom{len(owner.geoms)}"
        geom = Geom(name, type, size, **kw)
        self._bodies[body] = dataclasses.replace(owner, geoms=(*owner.geoms, geom))
        return name

    def mesh(self, name: str, vertices: Any, faces: Any = None) -> str:
        """Add a shape for geometries of type "mesh", which collide as its convex hull, and with
        soft geometries by its faces.

        Args:
            name: unique among meshes.
            vertices: ``(n, 3)`` m.
            faces: ``(m, 3)`` indices of vertices, anticlockwise seen from outside; None: those of
                the hull.

        Raises:
            ValueError: for wrong shapes and indices, as in ``Mesh``.
        """
        self._meshes.append(Mesh(name, vertices, faces))
        return name

    def actuator(
        self,
        joint: str | None,
        stiffness: float = 0.0,
        *,
        name: str | None = None,
        gear: float = 1.0,
        range: Any = None,
        tendon: str | None = None,
        **kw: Any,
    ) -> str:
        """Add an actuator to a hinge or slide joint, or to a tendon; returns its name.

        Args:
            joint: name of the joint; None for an actuator of a tendon.
            stiffness: proportional gain of its spring, N/m or Nm/rad; 0: the command is a force.
            name: None: that of its joint or tendon.
            gear: length of the actuator per m or rad of the joint.
            range: (lower, upper) bounds of the command; None: none.
            tendon: name of the tendon, with ``joint`` None.
            **kw: other fields of ``Actuator``.

        Raises:
            ValueError: if it can exert no force, or a field is invalid; the message names it.
        """
        name = name or joint or tendon or ""
        actuator = Actuator(name, joint, stiffness, gear, range, tendon=tendon, **kw)
        if actuator.idle:
            raise ValueError(
                f"actuator {actuator.name!r}: stiffness must be positive, or gain, bias, damping or "
                f"gain_slope not zero, got stiffness {stiffness!r} alone"
            )
        self._actuators.append(actuator)
        return name

    def pair(self, geom_a: str, geom_b: str, **kw: Any) -> None:
        """Add an explicit contact pair.

        Args:
            geom_a, geom_b: names of its geometries.
            kw: the other fields of ``Pair``.
        """
        self._pairs.append(Pair(geom_a, geom_b, **kw))

    def exclude(self, body_a: str, body_b: str) -> None:
        """Exclude contacts between two bodies.

        Args:
            body_a, body_b: their names.
        """
        self._excludes.append(Exclude(body_a, body_b))

    def tendon(
        self,
        name: str,
        *,
        joints: Any = (),
        points: Any = (),
        range: Any = None,
        stiffness: float = 0.0,
        springrange: Any = (0.0, 0.0),
        frictionloss: float = 0.0,
        damping: float = 0.0,
    ) -> str:
        """Add a tendon along joints or through points; returns its name. See ``Tendon``.

        Args:
            name: of the tendon.
            joints: mapping from names of joints to coefficients, m/rad or 1.
            points: pairs of a body's name and a point ``(3,)``, m, in its frame; a ``Wrap`` or
                ``Pulley`` may be between two.
            range: (smallest, largest) length, m; None: none.
            stiffness: N/m.
            springrange: (lower, upper) lengths, m, between which the spring is slack.
            frictionloss: dry friction, N.
            damping: Ns/m.

        Raises:
            TypeError, ValueError: if a field is invalid (for example both joints and points); the
                message names it.
        """
        self._tendons.append(
            Tendon(name, joints, points, range, stiffness, springrange, frictionloss, damping)
        )
        return name

    def keyframe(self, name: str, q: Any, u: Any = ()) -> str:
        """Add a named configuration and command.

        Args:
            name: of the key frame.
            q: ``(nq,)``, in the order of the model.
            u: ``(nu,)``; it may be empty.
        """
        self._keyframes.append(Keyframe(name, q, u))
        return name

    def sensor(self, sensor: Sensor) -> str:
        """Add a sensor; returns its name.

        Args:
            sensor: one of the classes of ``qdsim.sensors``.
        """
        self._sensors.append(sensor)
        return sensor.name

    def build(self) -> Description:
        """Build the description; raises ValueError if elements do not fit together."""
        children: dict[str, list[str]] = {name: [] for name in self._bodies}
        for body in self._bodies.values():
            if body.name != WORLD:
                children[body.parent].append(body.name)
        order: list[Body] = []
        stack = [WORLD]
        while stack:
            name = stack.pop()
            body = self._bodies[name]
            order.append(_filled_evenly(body, self._meshes) if name in self._uniform else body)
            stack.extend(reversed(children[name]))
        return Description(
            bodies=tuple(order),
            actuators=tuple(self._actuators),
            pairs=tuple(self._pairs),
            excludes=tuple(self._excludes),
            tendons=tuple(self._tendons),
            keyframes=tuple(self._keyframes),
            meshes=tuple(self._meshes),
            sensors=tuple(self._sensors),
            gravity=self._gravity,
            friction_combination=self._combination,
            contact_solver=self._contact_solver,
            parent_filter=self._parent_filter,
            name=self._name,
        )

    def _known(self, body: str) -> Body:
        if body not in self._bodies:
            raise ValueError(unknown_name("body", body, self._bodies))
        return self._bodies[body]


def _filled_evenly(body: Body, meshes: Sequence[Mesh]) -> Body:
    """Return the body with the mass distributed at equal density over its geometries."""
    known = {mesh.name: mesh for mesh in meshes}
    parts = []
    for geom in body.geoms:
        if geom.type == "mesh" and geom.mesh in known:
            volume, middle, second = _hull_solid(known[geom.mesh])
            parts.append((geom, volume, middle, second))
        elif geom.type not in ("plane", "mesh", "cloud", "hfield"):
            volume, moments = _solid(geom)
            parts.append((geom, volume, np.zeros(3), np.diag(moments)))
    if not parts:
        raise ValueError(f"body {body.name!r}: has mass but neither inertia nor a solid geometry")
    total = sum(volume for _, volume, _, _ in parts)
    centers = [rotation_matrix(geom.quat) @ middle + geom.pos for geom, _, middle, _ in parts]
    com = sum(volume / total * at for (_, volume, _, _), at in zip(parts, centers))
    inertia = np.zeros((3, 3))
    for (geom, volume, _, moments), at in zip(parts, centers):
        rotation = rotation_matrix(geom.quat)
        offset = at - com
        mass = body.mass * volume / total
        inertia += mass * (rotation @ moments @ rotation.T)
        inertia += mass * (offset @ offset * np.eye(3) - np.outer(offset, offset))
    return dataclasses.replace(body, com=tuple(com), inertia=inertia)  # type: ignore[arg-type]


def _hull_solid(mesh: Mesh) -> tuple[float, Any, Any]:
    """Compute the volume, the centroid (3) and the inertia (3, 3) per unit of mass about it, of the convex hull.

    They are sums over tetrahedra with a common vertex. With v the volume, p the other vertices and
    s their sum, the second moments about the common vertex are v/20 (sum p p' + s s').
    """
    origin = mesh.vertices.mean(axis=0)
    corners = mesh.vertices[mesh.hull_faces] - origin
    volumes = np.linalg.det(corners) / 6.0
    volume = float(volumes.sum())
    sums = corners.sum(axis=1)
    middle = np.einsum("k,ki->i", volumes, sums) / (4.0 * volume)
    second = np.einsum("k,kpi,kpj->ij", volumes, corners, corners)
    second = (second + np.einsum("k,ki,kj->ij", volumes, sums, sums)) / (20.0 * volume)
    second -= np.outer(middle, middle)
    return volume, middle + origin, np.trace(second) * np.eye(3) - second


def _solid(geom: Geom) -> tuple[float, tuple[float, float, float]]:
    """Compute the volume, and the principal moments of inertia per unit of mass, of a solid shape."""
    a, b, c = geom.size
    if geom.type == "sphere":
        return 4 / 3 * math.pi * a**3, (0.4 * a * a,) * 3
    if geom.type == "box":
        return 8 * a * b * c, ((b * b + c * c) / 3, (a * a + c * c) / 3, (a * a + b * b) / 3)
    if geom.type == "ellipsoid":
        moments = ((b * b + c * c) / 5, (a * a + c * c) / 5, (a * a + b * b) / 5)
        return 4 / 3 * math.pi * a * b * c, moments
    tube = 2 * math.pi * a * a * b
    across = a * a / 4 + b * b / 3
    if geom.type == "cylinder":
        return tube, (across, across, a * a / 2)
    # Capsule: the tube and two half balls, whose centres of mass lie 3/8 radius inside the ends.
    caps = 4 / 3 * math.pi * a**3
    volume = tube + caps
    caps_across = 0.4 * a * a + b * b + 0.75 * a * b
    moment = (tube * across + caps * caps_across) / volume
    return volume, (moment, moment, (tube * a * a / 2 + caps * 0.4 * a * a) / volume)
