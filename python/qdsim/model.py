"""Models: a description as flat arrays for the C core, with names; immutable."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from qdsim import _core
from qdsim._core import PARAMETER_NAMES
from qdsim.arguments import reals
from qdsim.array_type import Array
from qdsim.commands import ActuatorLaws
from qdsim.description import Description
from qdsim.description.arrays import model_arrays
from qdsim.description.elements import JOINT_NQ, JOINT_NV
from qdsim.description.references import unknown_name
from qdsim.model_checks import (
    UnknownNameError,
    check_shape_pairs,
    finite_rows,
    index_of,
    with_mesh_name,
)
from qdsim.parameters import Parameters, frozen, with_parameters
from qdsim.pressure.geometries import field_arrays
from qdsim.tangents import turned

IntArray = npt.NDArray[np.int64]

DEFAULT_MARGIN = _core.StepOptions().margin
"""Margin of ``Model.collide`` in m, as in ``qdsim.Options``."""


class KeyframeState(NamedTuple):
    """A stored configuration ``q`` (nq) and command ``u`` (nu), read-only."""

    q: Array
    u: Array


class Model(_core.Model):
    """A scene that can be simulated. Made by ``qdsim.load`` or ``qdsim.build``; immutable.

    A configuration ``q`` (nq) lists the joints in the order of the file: one number for a hinge (rad) or slide (m), a
    quaternion w x y z for a ball, x y z w x y z for a free joint. A displacement ``v`` (nv) has one number for a hinge or
    slide, a rotation vector in the axes before the joint for a ball, and translation then rotation vector in world axes
    for a free joint. A command ``u`` (nu) has the order of the actuators. Quaternions within 1e-3 of unit length are
    normalised; others raise an error that names the joint.

    Attributes:
        nq, nv, nu: numbers of configuration, velocity and command.
        name: of the model.
        body_names: strings; the first is "world".
        joint_names, geom_names, actuator_names, tendon_names: strings.
        actuated_q, actuated_v: ``(nu,)`` indices in q and v of the joints of the actuators, in the order of ``u``; -1
            for actuators of tendons.
        actuated_tendons: ``(nu,)`` indices of the tendons of the actuators; -1 for actuators of joints.
        unactuated_q, unactuated_v: the other indices, ascending.
        default_q: ``(nq,)``, read-only: the key frame "home" if there is one, else the reference
            configuration of the file, with joints moved into their limits.
        keyframes: mapping from names to ``KeyframeState(q, u)``.
        joint_range: ``(joints, 2)`` rad or m, read-only: lower and upper, infinite without limits.
        tendon_range: ``(tendons, 2)``, read-only: of the tendons' lengths, infinite without limits.
        u_lower, u_upper: ``(nu,)``, read-only, infinite without limits.
        mocap_names: bodies whose pose is an input of a step (``step(..., mocap=)``).
        mocap_poses: ``(mocap_count, 7)``, read-only: their default poses, position m and quaternion w x y z.
        joints_without_command: names of actuated joints that no command moves (dampers).
        parameters: the ``Parameters``, numbers that a batch may vary.
        description: the ``Description``.
        ignored: elements of the file that a quasi-dynamic step does not use, as strings.
        ignored_by_dynamics: those of them that a second-order step does not use either.
        unlike_mujoco: elements of the file with which MuJoCo's step differs from
            ``DynamicOptions(contacts="mujoco")``, which raises an error that names them; each with
            the argument of ``load`` that leaves it out.
    """

    description: Description
    body_names: tuple[str, ...]
    joint_names: tuple[str, ...]
    geom_names: tuple[str, ...]
    actuator_names: tuple[str, ...]
    ignored: tuple[str, ...]
    ignored_by_dynamics: tuple[str, ...]
    unlike_mujoco: tuple[str, ...]
    default_q: Array
    keyframes: Mapping[str, KeyframeState]
    joint_range: Array
    mocap_names: tuple[str, ...]
    mocap_poses: Array
    tendon_names: tuple[str, ...]
    tendon_range: Array
    u_lower: Array
    u_upper: Array
    actuator_gear: Array
    joints_without_command: tuple[str, ...]
    actuated_q: IntArray
    actuated_tendons: IntArray
    actuated_v: IntArray
    unactuated_q: IntArray
    unactuated_v: IntArray
    geom_body: IntArray
    pair_geom: IntArray
    parameters: Parameters

    def __init__(self, description: Description) -> None:
        if not isinstance(description, Description):
            raise TypeError(
                f"description must be a qdsim.Description, got {type(description).__name__}"
            )
        arrays = model_arrays(description)
        arrays |= field_arrays(description, arrays["pair_geom"])
        check_shape_pairs(description, arrays)
        try:
            super().__init__(arrays)
        except ValueError as error:
            raise with_mesh_name(error, description, arrays) from None
        set_now = object.__setattr__.__get__(self)
        set_now("description", description)
        set_now("ignored", description.ignored)
        known = frozenset(description.dynamic_only)
        set_now("ignored_by_dynamics", tuple(x for x in description.ignored if x not in known))
        set_now("unlike_mujoco", description.unlike_mujoco)
        self._set_names(set_now)
        set_now("default_q", frozen(arrays["default_q"]))
        set_now("joint_range", frozen(arrays["joint_range"]))
        set_now("tendon_range", frozen(arrays["tendon_range"]))
        set_now("actuator_gear", frozen(arrays["actuator_gear"]))
        set_now("geom_body", _indices(arrays["geom_body"]))
        set_now("pair_geom", frozen(arrays["pair_geom"].astype(np.int64)))
        set_now(
            "parameters", Parameters(**{name: frozen(arrays[name]) for name in PARAMETER_NAMES})
        )
        bounds = np.array(
            [item.range or (-np.inf, np.inf) for item in description.actuators]
        ).reshape(-1, 2)
        set_now("u_lower", frozen(bounds[:, 0].copy()))
        set_now("u_upper", frozen(bounds[:, 1].copy()))
        keyframes = {
            key.name: KeyframeState(frozen(np.array(key.q)), frozen(np.array(key.u)))
            for key in description.keyframes
        }
        set_now("keyframes", MappingProxyType(keyframes))
        set_now("actuated_tendons", _indices(arrays["actuator_tendon"]))
        self._set_slices(set_now, arrays["actuator_joint"])
        self._set_laws(set_now, arrays)

    def _set_names(self, set_now: Any) -> None:
        found = self.description
        set_now("body_names", tuple(body.name for body in found.bodies))
        set_now("joint_names", tuple(joint.name for joint in found.joints))
        set_now("geom_names", tuple(geom.name for geom in found.geoms))
        set_now("actuator_names", tuple(item.name for item in found.actuators))
        set_now("tendon_names", tuple(item.name for item in found.tendons))
        placed = [body for body in found.bodies if body.mocap]
        set_now("mocap_names", tuple(body.name for body in placed))
        poses = np.array([body.pos + body.quat for body in placed]).reshape(-1, 7)
        set_now("mocap_poses", frozen(poses))

    def _set_slices(self, set_now: Any, actuator_joint: npt.NDArray[Any]) -> None:
        slices_q: dict[str, slice] = {}
        slices_v: dict[str, slice] = {}
        body_q: dict[str, slice] = {}
        body_v: dict[str, slice] = {}
        q = v = 0
        for body in self.description.bodies:
            first = q, v
            for joint in body.joints:
                slices_q[joint.name] = slice(q, q + JOINT_NQ[joint.type])
                slices_v[joint.name] = slice(v, v + JOINT_NV[joint.type])
                q, v = slices_q[joint.name].stop, slices_v[joint.name].stop
            if body.joints:
                body_q[body.name], body_v[body.name] = slice(first[0], q), slice(first[1], v)
        set_now("_slices_q", {**body_q, **slices_q})
        set_now("_slices_v", {**body_v, **slices_v})
        driven = [self.joint_names[joint] if joint >= 0 else None for joint in actuator_joint]
        at_q = [-1 if joint is None else slices_q[joint].start for joint in driven]
        at_v = [-1 if joint is None else slices_v[joint].start for joint in driven]
        set_now("actuated_q", _indices(at_q))
        set_now("actuated_v", _indices(at_v))
        set_now("unactuated_q", _indices(sorted(set(range(q)) - set(self.actuated_q.tolist()))))
        set_now("unactuated_v", _indices(sorted(set(range(v)) - set(self.actuated_v.tolist()))))
        of_joints = [(i, joint) for i, joint in enumerate(driven) if joint is not None]
        slices_u = {joint: slice(i, i + 1) for i, joint in reversed(of_joints)}
        slices_u.update({name: slice(i, i + 1) for i, name in enumerate(self.actuator_names)})
        set_now("_slices_u", slices_u)

    def _set_laws(self, set_now: Any, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        laws = ActuatorLaws(
            stiffness=arrays["actuator_stiffness"],
            gear=arrays["actuator_gear"],
            gain=arrays["actuator_gain"],
            slope=arrays["actuator_gain_slope"][:, 0],
            bias=arrays["actuator_bias"],
            at_q=self.actuated_q,
            at_v=self.actuated_v,
        )
        on_joint = np.flatnonzero(self.actuated_v >= 0)
        pulled, laws = laws.of(np.flatnonzero(self.actuated_v < 0)), laws.of(on_joint)
        set_now("_laws", laws)
        set_now("_tendon_laws", pulled)
        set_now("_on_joint", _indices(on_joint))
        held = set(laws.at_v[laws.stiffness > 0.0].tolist())
        falling = sorted(set(range(self.nv)) - held if pulled.at_v.size else set(laws.at_v) - held)
        set_now("_falling_v", _indices(falling))
        springs = np.any(self.parameters.joint_stiffness != 0.0)
        set_now("_plain_commands", laws.plain and not springs and not pulled.at_v.size)
        idle = set(laws.without_command)
        names = (name for name in self.joint_names if self._slices_v[name].start in idle)
        set_now("joints_without_command", tuple(names))

    # ------------------------------------------------------------ names

    @property
    def name(self) -> str:
        """Name of the model: that in the file, or that given to the builder."""
        return self.description.name

    def slice_q(self, name: str) -> slice:
        """Return the slice of q of a joint, or of all joints of a body.

        Args:
            name: of a joint or body; a joint has precedence.

        Raises:
            UnknownNameError: a KeyError, for an unknown name.
        """
        return self._slice(self._slices_q, name)

    def slice_v(self, name: str) -> slice:
        """Return the slice of v of a joint, or of all joints of a body.

        Args:
            name: of a joint or body, as for ``slice_q``.

        Raises:
            UnknownNameError: a KeyError, for an unknown name.
        """
        return self._slice(self._slices_v, name)

    def slice_u(self, name: str) -> slice:
        """Return the slice of u of an actuator, or of the first actuator of a joint.

        Args:
            name: of an actuator or joint; an actuator has precedence.

        Raises:
            UnknownNameError: for an unknown name, or a joint without actuator.
        """
        if not isinstance(name, str):
            raise TypeError(f"name must be a string, got {type(name).__name__}")
        if name in self._slices_u:
            return self._slices_u[name]
        if name in self.joint_names:
            raise UnknownNameError(f"joint {name!r} is not actuated")
        raise UnknownNameError(unknown_name("actuator", name, self.actuator_names))

    def body_index(self, body: str | int) -> int:
        """Index of a body in ``body_names``.

        Args:
            body: name, or an index, which is checked and returned.

        Raises:
            UnknownNameError, IndexError: if there is none.
        """
        return index_of("body", body, self.body_names)

    def geom_index(self, geom: str | int) -> int:
        """Index of a geometry in ``geom_names``.

        Args:
            geom: name, or an index, which is checked and returned.

        Raises:
            UnknownNameError, IndexError: if there is none.
        """
        return index_of("geom", geom, self.geom_names)

    def pair_index(self, geom_a: str | int, geom_b: str | int) -> int:
        """Row of a candidate pair in ``parameters.pair_friction``.

        Args:
            geom_a, geom_b: names or indices, in either order.

        Raises:
            UnknownNameError: if the two cannot touch.
        """
        a, b = sorted((self.geom_index(geom_a), self.geom_index(geom_b)))
        rows = np.flatnonzero((self.pair_geom[:, 0] == a) & (self.pair_geom[:, 1] == b))
        if rows.size == 0:
            raise UnknownNameError(
                f"geoms {self.geom_names[a]!r} and {self.geom_names[b]!r} are not a candidate pair"
            )
        return int(rows[0])

    def _slice(self, slices: Mapping[str, slice], name: str) -> slice:
        if not isinstance(name, str):
            raise TypeError(f"name must be a string, got {type(name).__name__}")
        if name in slices:
            return slices[name]
        if name in self.body_names:
            raise UnknownNameError(f"body {name!r} has no joints")
        raise UnknownNameError(unknown_name("joint or body", name, slices))

    # ------------------------------------------------------------ queries

    def body_pose(self, q: npt.ArrayLike, body: str | int) -> tuple[Array, Array]:
        """Position ``(3,)``, m, and rotation matrix ``(3, 3)`` of a body frame in the world.

        Args:
            q: ``(nq,)``.
            body: name or index.
        """
        index = self.body_index(body)
        pos, rot = self.body_poses(q)
        return pos[index], rot[index]

    def jacobian(
        self, q: npt.ArrayLike, body: str | int, point: npt.ArrayLike = (0.0, 0.0, 0.0)
    ) -> Array:
        """Jacobian ``(6, nv)`` of a body-fixed point.

        Rows: linear velocity of the point (3), angular velocity of the body (3), in world axes.

        Args:
            q: ``(nq,)``.
            body: name or index.
            point: ``(3,)`` m, in the body frame.
        """
        return self.point_jacobian(q, self.body_index(body), point)

    def collide(self, q: npt.ArrayLike, margin: float | None = None) -> npt.NDArray[np.void]:
        """Compute the contacts nearer than a margin, or than the pair's own one.

        Args:
            q: ``(nq,)``.
            margin: m; None: 0.1.

        Returns:
            A structured array: geom_a, geom_b, body_a, body_b, pair (indices), dist (m, negative for penetrations),
            pos (3, midway), frame (3, 3: rows normal from A into B and two tangents), dim, friction (5), force (6, zero).
        """
        return self.contacts(q, DEFAULT_MARGIN if margin is None else margin)

    def tendon_index(self, tendon: str | int) -> int:
        """Index of a tendon in ``tendon_names``.

        Args:
            tendon: name, or an index, which is checked and returned.

        Raises:
            UnknownNameError, IndexError: if there is none.
        """
        return index_of("tendon", tendon, self.tendon_names)

    def tendon_lengths(self, q: npt.ArrayLike) -> Array:
        """Lengths ``(..., tendons)``, m, of the tendons in the order of ``tendon_names``.

        Args:
            q: ``(..., nq)``.
        """
        return self._tendon_query(q)[0]

    def tendon_jacobians(self, q: npt.ArrayLike) -> Array:
        """Derivatives ``(..., tendons, nv)`` of the tendons' lengths with respect to displacements.

        Args:
            q: ``(..., nq)``.
        """
        return self._tendon_query(q, jacobians=True)[1]

    def _tendon_query(
        self, q: npt.ArrayLike, *, jacobians: bool = False, moments: bool = False
    ) -> tuple[Array, Array]:
        """Return the lengths of the tendons, and their derivatives or their moment arms.

        The moment arms are the generalised forces of unit forces along the tendons. They differ
        from the derivatives only for rotational ``reach`` tendons.
        """
        array = finite_rows("q", q, self.nq)
        lead = array.shape[:-1]
        rows = np.ascontiguousarray(array.reshape(-1, self.nq))
        lengths, slopes = self._tendons(rows, jacobians, moments)
        count = self.tendon_count
        shape = (*lead, count, self.nv)
        return lengths.reshape(*lead, count), lengths if slopes is None else slopes.reshape(shape)

    def clamp_to_limits(self, q: npt.ArrayLike) -> Array:
        """Compute a configuration ``(..., nq)`` with every hinge and slide joint moved into its ``joint_range``.

        Some files begin outside the limits; a step then moves these joints back at once. Free and
        ball joints are not changed.

        Args:
            q: ``(..., nq)``.
        """
        result = np.array(finite_rows("q", q, self.nq))
        for joint, limits in zip(self.description.joints, self.joint_range):
            if joint.scalar:
                at = self._slices_q[joint.name].start
                result[..., at] = np.clip(result[..., at], *limits)
        return result

    def command_from(self, q: npt.ArrayLike) -> Array:
        """Compute the command u ``(..., nu)`` that holds the actuated joints at q without contact.

        For an actuator with a spring it is the gear times q, plus the amount that balances the joints' springs, the
        actuators' biases and gravity (only on joints without an actuator's spring, on which gravity acts in a step).
        Several actuators of a joint share this in proportion to their stiffness, or equally if none has a spring.
        Actuators of tendons balance the joints without other actuators in the least-squares sense. The command of an
        actuator is 0 if it does not move its joint (``joints_without_command``).

        Args:
            q: ``(..., nq)``.
        """
        return self._command_at(finite_rows("q", q, self.nq))

    def _command_at(self, array: Array) -> Array:
        """Compute ``command_from`` without checks."""
        if self._plain_commands:
            return np.asarray(array[..., self.actuated_q] * self.actuator_gear)
        rows = array.reshape(-1, self.nq)
        force = -np.array([self.passive_force(row) for row in rows]).reshape(-1, self.nv)
        u = np.zeros((len(rows), self.nu))
        u[:, self._on_joint] = self._laws.balancing(rows, force)
        for row, asked, command in zip(rows, force, u):
            if self._tendon_laws.at_v.size:
                command[self.actuated_v < 0] = self._tendon_commands(row, asked)
        return u.reshape(*array.shape[:-1], self.nu)

    def _tendon_commands(self, q: Array, force: Array) -> Array:
        """Compute the commands of the actuators of tendons.

        Their forces balance ``force`` (nv) on the joints without other actuators in the
        least-squares sense.
        """
        which = self.actuated_tendons[self.actuated_tendons >= 0]
        free = np.setdiff1d(np.arange(self.nv), self.actuated_v)
        rates = self._tendon_query(q, moments=True)[1][which][:, free]
        pull = np.linalg.lstsq(rates.T, force[free], rcond=None)[0]
        return self._tendon_laws.commanding(self.tendon_lengths(q)[which], pull)

    def passive_force(self, q: npt.ArrayLike) -> Array:
        """Generalised force ``(nv,)`` of the joints' springs, and of gravity on joints without an
        actuator's spring, N or Nm.

        Zero on joints without actuators, unless there are tendons with actuators.

        Args:
            q: ``(nq,)``.
        """
        here = finite_rows("q", q, self.nq)
        result = np.zeros(self.nv)
        weight = self.gravity_force(here) if self._falling_v.size else result
        result[self._falling_v] = weight[self._falling_v]
        p = self.parameters
        for j, name in enumerate(self.joint_names):
            v = self._slices_v[name].start
            counted = v in self.actuated_v or v in self._falling_v
            if p.joint_stiffness[j] != 0.0 and counted and self.description.joints[j].scalar:
                stretch = here[self._slices_q[name].start] - p.joint_springref[j]
                result[v] -= p.joint_stiffness[j] * stretch
        return result

    def gravity_force(self, q: npt.ArrayLike) -> Array:
        """Generalised force ``(nv,)``, N or Nm, of gravity on all joints.

        Args:
            q: ``(nq,)``.
        """
        p = self.parameters
        result = np.zeros(self.nv)
        for b, body in enumerate(self.description.bodies):
            weight = p.body_mass[b] * (1.0 - body.gravcomp) * p.gravity
            if np.any(weight != 0.0):
                result += weight @ self.jacobian(q, b, p.body_com[b])[:3]
        return result

    # ------------------------------------------------------------ MuJoCo's tangent vectors

    def to_mujoco_qvel(self, q: npt.ArrayLike, v: npt.ArrayLike) -> Array:
        """Convert a displacement to the coordinates of MuJoCo's ``qvel``, ``(..., nv)``.

        Args:
            q, v: ``(..., nq)`` and ``(..., nv)``, in the coordinates of this package.

        MuJoCo expresses rotations of free and ball joints in the axes of the body; this package
        uses world axes (free) or the axes before the joint (ball). With R the rotation of the
        quaternion in q, MuJoCo's vector is R' times that of this package.
        """
        arrays = finite_rows("q", q, self.nq), finite_rows("v", v, self.nv)
        return turned(self, *arrays, "v", to_mujoco=True)

    def from_mujoco_qvel(self, q: npt.ArrayLike, qvel: npt.ArrayLike) -> Array:
        """Convert a displacement ``(..., nv)`` to the coordinates of this package: the inverse of
        ``to_mujoco_qvel``.

        Args:
            q: ``(..., nq)``.
            qvel: ``(..., nv)`` in MuJoCo's coordinates.
        """
        arrays = finite_rows("q", q, self.nq), finite_rows("qvel", qvel, self.nv)
        return turned(self, *arrays, "qvel", to_mujoco=False)

    # ------------------------------------------------------------ variants, copies, text

    def with_parameters(self, parameters: Parameters | None = None, **changes: Any) -> Model:
        """Make a model with the same topology and other parameters.

        Args:
            parameters: the parameters; None: those of this model.
            changes: replacements by name: ``model.with_parameters(pair_friction=0.3)``.

        Raises:
            TypeError, ValueError: as for ``Parameters.replace``; also for a negative mass or zero stiffness.
        """
        if parameters is None:
            parameters = self.parameters
        elif not isinstance(parameters, Parameters):
            raise TypeError(f"parameters must be Parameters, got {type(parameters).__name__}")
        else:
            current = {name: getattr(parameters, name) for name in PARAMETER_NAMES}
            parameters = self.parameters.replace(**current)
        parameters = parameters.replace(**changes)
        changed = with_parameters(self.description, self.parameters, parameters, self.pair_geom)
        return type(self)(changed)

    def with_mocap(self, mocap: npt.ArrayLike | Mapping[str, npt.ArrayLike]) -> Model:
        """Make a model with other default poses of its mocap bodies, for queries such as ``collide``.

        Args:
            mocap: ``(mocap_count, 7)``, or a mapping from names of mocap bodies to ``(7,)``:
                position, m, and quaternion w x y z.

        Raises:
            UnknownNameError: for an unknown name of a mocap body.
            ValueError: for other shapes.
        """
        if isinstance(mocap, Mapping):
            for name in mocap:
                if name not in self.mocap_names:
                    known = unknown_name("mocap body", name, self.mocap_names)
                    raise UnknownNameError(f"mocap: {known}")
            given = {name: reals(f"mocap[{name!r}]", pose, (7,)) for name, pose in mocap.items()}
        else:
            given = dict(zip(self.mocap_names, reals("mocap", mocap, (self.mocap_count, 7))))
        bodies = [
            dataclasses.replace(body, pos=tuple(pose[:3]), quat=tuple(pose[3:]))
            if (pose := given.get(body.name)) is not None
            else body
            for body in self.description.bodies
        ]
        return type(self)(dataclasses.replace(self.description, bodies=tuple(bodies)))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a model is immutable; with_parameters returns a variant ({name})")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a model is immutable ({name})")

    def __reduce__(self) -> tuple[type[Model], tuple[Description]]:
        return type(self), (self.description,)

    def __copy__(self) -> Model:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Model:
        return self

    def __repr__(self) -> str:
        plane = "" if self.planar_normal is None else ", planar"
        return (
            f"Model({self.description.name!r}: nq={self.nq} nv={self.nv} nu={self.nu}, "
            f"{self.body_count} bodies, {self.joint_count} joints, {self.geom_count} geoms, "
            f"{self.pair_count} pairs{plane})"
        )

    _slices_q: dict[str, slice]
    _slices_v: dict[str, slice]
    _slices_u: dict[str, slice]
    _laws: ActuatorLaws
    _tendon_laws: ActuatorLaws
    _on_joint: IntArray
    _falling_v: IntArray
    _plain_commands: bool


def _indices(values: Any) -> IntArray:
    return frozen(np.array(values, dtype=np.int64))
