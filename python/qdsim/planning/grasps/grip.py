"""Control law of fingers that hold an object and move it quasi-statically.

An object in a hand is damped only by the fingers that hold it (CQDC §IX-B1). In every period the
law computes two things. First, the contact forces of least effort that balance the object's load,
with a preload on each finger, inside narrowed friction cones. Second, the motion of the joints for
which the contacts follow the wanted displacement of the object without slipping. A command is the
target position of the joints plus the deflection of their springs for these forces,

    u = q_a + delta_a - K^-1 J_a' f,   J_a delta_a = -J_o delta_o,   J_o' f + load_o = 0,

so springs are loaded only by these forces and by the motion of one period. Commands of joints that
lag behind their springs because of damping are advanced by the lag, so that the motion does not
depend on the period or on the joint's inertia. (Grasp map and forces: Murray, Li and Sastry 1994,
chapter 5; object impedance: Hogan 1985.)
"""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from qdsim._core import SolverError
from qdsim.arguments import fields, instance, integer, number
from qdsim.array_type import Array
from qdsim.cone import solve_cone_program
from qdsim.model import Model
from qdsim.planning.grasps.equilibrium import contact_rows, generalised_load
from qdsim.planning.grasps.samplers.carrying import PRESSING
from qdsim.planning.grasps.samplers.touching import sides, tip_bodies
from qdsim.planning.task.drives import lengths, shares
from qdsim.planning.task.followers import folded
from qdsim.planning.task.least_squares import least_squares_in_box, room
from qdsim.planning.task.robot import (
    TOUCHING,
    command_range,
    driven_bodies,
    force_reach,
    joint_limits,
    lies_on_a_plane,
    object_weight,
)
from qdsim.planning.task.settings import Settings
from qdsim.planning.task.space import ObjectSpace
from qdsim.planning.task.task import Task

__all__ = ["LANDING", "MOVING", "RATE", "SURE", "Grip", "GripOptions", "GripStep", "can_hold"]

FINGERS = 3
"""Default number of fingers that have to touch an object to hold it, as test_carried.py and test_gaiting.py need."""

LANDING = 0.025
"""Speed with which fingers approach the object, and the object approaches its support, m/s; with a tenth or ten times
as much, test_executor_rules.py fails."""

MOVING, TURNING = 0.05, 0.6
"""Largest speeds of the object, m/s and rad/s; with a third, test_holds_that_creep.py and
test_gaiting.py fail."""

RATE = 8.0
"""Rate at which errors of the object's pose, and gaps between object and fingers, are reduced, 1/s; with a
tenth or ten times as much, test_executor_rules.py and test_gaiting.py fail."""

SURE = 0.3
"""Share of the distance at which fingers count as touching, within which the object's surroundings do; with
thrice as much, test_gaiting.py fails."""
USED = 0.6
"""Share of the friction coefficients that the forces of fingers may use; with 0.7 grips slip while they turn an object,
with a third test_carried.py fails."""
RESIDUAL = 0.3
"""Largest load that the forces of a good grip may leave unbalanced, in weights of the object."""
FLOATING = 0.2
"""Weight of an object that floats, in its weights under standard gravity, for the forces of a grip: fingers need not
carry it, and what they press is what throws it when they let go. With five times as much, default contacts throw a pen
of 1 kg by 30 cm."""
ADRIFT = 0.1
"""Largest load that a good grip of a floating object may leave, which nothing else keeps from moving, in these weights."""
_HARDER = 3.0
"""How much harder than others fingers may press that carry an object by themselves. Of 40 grasps of a book whose
friction suffices to lift it, 19 can be held without, 31 with it."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class GripOptions(Settings):
    """Settings of a :class:`Grip`.

    Attributes:
        press: Least normal force of a finger in contact, in weights of the object.
        most: Largest normal force of a finger, in weights of the object, where its friction coefficient is one or more;
            with smaller friction the forces are larger in proportion, because an object that has a weight needs them.
        near: Fingers farther away than this distance are not moved, m.
        reach: The same while a grasp closes: fingers within this distance move to the object, m.
        period: Control period, s.
        fingers: Number of fingers that have to touch for a grip; None: three, or two if the robot
            has only two.
    """

    press: float = 0.5
    most: float = 3.0
    near: float = 4e-3
    reach: float = 30e-3
    period: float = 0.02
    fingers: int | None = None

    def asked_every(self, seconds: float) -> GripOptions:
        """Return the same options for a control loop that runs at most once per given time.

        Args:
            seconds: Shortest time between two commands, s.
        """
        return self.replace(period=max(self.period, seconds))

    def __post_init__(self) -> None:
        numbers = (field.name for field in dataclasses.fields(self) if field.name != "fingers")
        fields(self, number, *numbers, above=0)
        if self.fingers is not None:
            fields(self, integer, "fingers", least=1)
        if self.most <= self.press:
            raise ValueError(f"most: expected more than press, got {self.most!r}")


@dataclasses.dataclass(frozen=True, eq=False)
class GripStep:
    """A command of a grip, and the quality of the grip.

    Attributes:
        u: Command ``(nu,)``.
        fingers: Number of fingers that touch the object.
        residual: Load that forces within the cones cannot balance, N (torques are divided by the
            object's length).
        forces: Desired normal forces ``(contacts,)``, N.
    """

    u: Array
    fingers: int
    residual: float
    forces: Array


class Grip:
    """The control law of fingers that hold one object.

    Args:
        model: The model.
        object: Name of the object's body.
        length: A typical radius of the object, which converts torques to forces, m.
        options: How the object is held.
        bounds: Lower and upper bounds ``(nu,)`` of the commands; None: the joint limits and the
            actuators' ranges.
        carries: Whether the fingers have to carry the object by themselves in the end. They may then press harder, and
            each presses where that carries rather than at all places where it touches.

    Attributes:
        speeds: Largest speeds of the object ``(size,)``, m/s and rad/s.
        weight: Weight of the object, N (under standard gravity if the model has none).
        fingers: Number of fingers that have to touch.
        available: Number of fingers of the robot.
    """

    def __init__(
        self,
        model: Model,
        object: str,
        length: float,
        options: GripOptions | None = None,
        bounds: tuple[Array, Array] | None = None,
        carries: bool = False,
    ) -> None:
        instance("options", options, GripOptions, or_none=True)
        length = number("length", length, above=0)
        self.carries = carries
        self.model, self.options = model, options or GripOptions()
        self.space = ObjectSpace(model, object)
        self.speeds = np.where(self.space.rotation, TURNING, MOVING)
        self._own, self._robot = sides(model, object)
        self._stiffness = np.asarray(model.parameters.actuator_stiffness)
        self._gear = np.asarray(model.actuator_gear)
        self._lower, self._upper = joint_limits(model)
        self._bounds = command_range(model) if bounds is None else bounds
        self._strength = np.sort(np.asarray(model.parameters.actuator_force_range), axis=1)
        self._reach = force_reach(model)
        self._torque_scale = np.where(self.space.rotation, 1.0 / length, 1.0)
        self.weight = object_weight(model, self.space, length)
        floats = not np.any(model.parameters.gravity) and not lies_on_a_plane(model, self.space)
        self.weight *= FLOATING if floats else 1.0
        self._floats = floats
        self._most_left = (ADRIFT if floats else RESIDUAL) * self.weight
        # A finger is the chain of bodies below the first joint that does not move the whole robot.
        self._fold = folded(model)
        moves = driven_bodies(model)
        whole = moves[:, self._robot].all(axis=1)
        bodies = np.arange(len(model.body_names))
        self._finger = np.full(len(bodies), -1)
        for b in np.flatnonzero(self._robot):
            own = np.flatnonzero(moves[:, b] & ~whole)
            self._finger[b] = own[0] if len(own) else len(moves)
        # Bodies that move with the whole robot, such as a palm, press like a finger but do not count as one.
        fingers = self._robot & np.isin(bodies, model.geom_body) & (self._finger < len(moves))
        # A robot with a single finger cannot hold anything, so at least two fingers are required.
        count = len(np.unique(self._finger[fingers]))
        self.available = count
        self.fingers = self.options.fingers or min(max(count, 2), FINGERS)

    def __repr__(self) -> str:
        return f"Grip({self.space.body!r}, weight={self.weight:.3g} N)"

    def contacts(self, q: Array, near: float) -> NDArray[np.void]:
        """Return the contacts of the object: all that touch, and the nearest one of every finger.

        Args:
            q: Configuration ``(nq,)``.
            near: Largest distance that counts, m.
        """
        found = self.model.collide(q, near)
        a, b = found["body_a"], found["body_b"]
        found = found[self._own[a] ^ self._own[b]]
        finger = self._fingers_of(found)
        keep = found["dist"] < TOUCHING
        for f in np.unique(finger[finger >= 0]):
            mine = np.flatnonzero(finger == f)
            keep[mine[found["dist"][mine].argmin()]] = True
        kept: NDArray[np.void] = found[keep]
        return kept

    def holds(self, made: GripStep) -> bool:
        """Return whether the fingers of a command hold the object.

        Args:
            made: the command.
        """
        return made.fingers >= self.fingers and made.residual <= self._most_left

    def touching(self, q: Array) -> int:
        """Count the fingers that touch the object.

        Args:
            q: ``(nq,)`` configuration.
        """
        found = self.contacts(q, TOUCHING)
        finger = self._fingers_of(found)
        return len(np.unique(finger[finger >= 0]))

    def fingers_within(self, q: Array, distance: float) -> bool:
        """Return whether some finger is within a distance of the object.

        Args:
            q: ``(nq,)`` configuration.
            distance: m.
        """
        found = self.model.collide(q, distance)
        return bool(
            np.any(self._own[found["body_a"]] & self._robot[found["body_b"]])
            or np.any(self._own[found["body_b"]] & self._robot[found["body_a"]])
        )

    def command(
        self,
        q: Array,
        displacement: Array,
        *,
        press: float = 1.0,
        lean: bool = True,
        closing: bool = False,
        aim: Array | None = None,
        load: Array | None = None,
        lag: Array | None = None,
    ) -> GripStep:
        """Compute the command for the next period.

        Args:
            q: ``(nq,)`` measured configuration.
            displacement: ``(size,)`` wanted displacement of the object in this period, m and rad.
            press: share of the preload.
            lean: whether touching surroundings may carry part of the object's load.
            closing: whether fingers within ``options.reach`` move to the object, or only those
                within ``options.near``.
            aim: ``(nq,)`` grasp to whose places on the object fingers come that do not touch it yet; None: they come
                straight to it.
            load: ``(size,)`` load on the object besides gravity and springs, N and Nm.
            lag: ``(nu,)`` time by which joints lag behind moving springs, s; commands are advanced
                by it. None: no lag.
        """
        given = self.options
        found = self.contacts(q, given.reach if closing else given.near)
        finger = self._fingers_of(found)
        if not lean:
            found, finger = found[finger >= 0], finger[finger >= 0]
        here = lengths(self.model, q)
        _, J, scale, cones = contact_rows(self.model, q, found)
        J = J @ self._fold
        starts = np.concatenate(([0], np.cumsum(cones)))[:-1].astype(np.intp)
        moved = np.repeat(finger >= 0, cones)
        Ja, Jo = J @ shares(self.model, q), J[:, self.space.v]
        target = -Jo @ displacement
        most = LANDING * given.period
        share = min(RATE * given.period, 1.0)
        target[starts] -= np.clip(share * found["dist"], 0.0, most)
        if aim is not None:
            # fingers that come to the object go to the places of the grasp on the way
            aside = np.repeat(found["dist"] > TOUCHING, cones)
            aside[starts] = False
            ahead = share * (Ja @ (lengths(self.model, aim) - here))
            target[aside] += np.clip(ahead, -most, most)[aside]
        delta = least_squares_in_box(
            Ja[moved],
            target[moved],
            *room(here, self._lower, self._upper),
            regularization=1e-7,
        )
        if lag is not None:
            delta = (1.0 + lag / given.period) * delta
        # Fingers close their gaps. The object's surroundings do not, and bear nothing before they touch it.
        touching = found["dist"] < TOUCHING * np.where(finger >= 0, 1.0, SURE)
        f = np.zeros(len(scale))
        rows = np.repeat(touching, cones)
        own = [size for size, here_too in zip(cones, touching) if here_too]
        carried = generalised_load(self.model, q, False)[self.space.v]
        if load is not None:
            carried = carried + load
        f[rows], residual = self._forces(
            carried, Jo[rows], scale[rows], own, finger[touching], press, Ja[rows]
        )
        u = (here + delta - Ja.T @ f / self._stiffness) * self._gear
        count = len(np.unique(finger[(finger >= 0) & touching]))
        told = here * self._gear
        within = np.clip(u, told + self._reach[0], told + self._reach[1])
        return GripStep(np.clip(within, *self._bounds), count, residual, f[starts])

    def towards(self, q: Array, goal: Array, dt: float, line: Array | None = None) -> Array:
        """Compute the displacement ``(size,)`` towards the object's pose in ``goal`` within ``dt``,
        limited by :attr:`speeds`.

        Args:
            q: Configuration ``(nq,)``.
            goal: Configuration ``(nq,)`` with the object at its goal.
            dt: Time, s.
            line: Direction ``(size,)`` from which the goal is approached: deviations from this line
                are corrected first. None: any direction.
        """
        e, gain = self.space.difference(goal, q), min(RATE * dt, 1.0)
        for part, most in (
            (self.space.rotation, TURNING * dt),
            (~self.space.rotation, MOVING * dt),
        ):
            rest, off = e[part], np.zeros(np.count_nonzero(part))
            if line is not None:
                along = line[part] / max(float(np.linalg.norm(line[part])), 1e-12)
                off = rest - (along @ rest) * along
            e[part] = _at_most(gain * off, most) + _at_most(gain * (rest - off), most)
        return e

    def upwards(self, q: Array, height: float) -> Array | None:
        """Compute the displacement ``(size,)`` that lifts the object against gravity, m and rad; None if
        it cannot rise.

        Args:
            q: Configuration ``(nq,)``.
            height: Height by which the object is lifted, m.
        """
        gravity = np.asarray(self.model.parameters.gravity)
        pull = float(np.linalg.norm(gravity))
        return None if pull == 0.0 else self._shift(q, -height / pull * gravity)

    def downwards(self, q: Array) -> Array:
        """Compute the displacement ``(size,)`` that closes the gap between object and surroundings, m
        and rad; zero without a gap.

        Args:
            q: ``(nq,)`` configuration.
        """
        return self._to_surroundings(q, 1.0)

    def outwards(self, q: Array) -> Array:
        """Compute the displacement ``(size,)`` that removes a penetration of object and surroundings, m
        and rad; zero without a penetration.

        Args:
            q: ``(nq,)`` configuration.
        """
        return self._to_surroundings(q, -1.0)

    def depth(self, q: Array) -> float:
        """Return how deep the object is in bodies other than the robot, m; 0 if it is in none.

        Args:
            q: ``(nq,)`` configuration.
        """
        return max(0.0, -float(self._surroundings(q)["dist"].min(initial=0.0)))

    def leans(self, q: Array) -> bool:
        """Return whether the object touches its surroundings, or has none within the reach of the fingers.

        Args:
            q: ``(nq,)`` configuration.
        """
        return float(np.abs(self.downwards(q)).max(initial=0.0)) < TOUCHING

    def is_carried(self, q: Array) -> bool:
        """Return whether anything except the robot touches the object.

        Args:
            q: ``(nq,)`` configuration.
        """
        return bool(np.any(self._surroundings(q)["dist"] < TOUCHING))

    def _surroundings(self, q: Array) -> NDArray[np.void]:
        """Return the contacts of the object with bodies other than the robot, within ``options.reach``."""
        found = self.model.collide(q, self.options.reach)
        a, b = found["body_a"], found["body_b"]
        near: NDArray[np.void] = found[
            (self._own[a] ^ self._own[b]) & ~(self._robot[a] | self._robot[b])
        ]
        return near

    def _to_surroundings(self, q: Array, sign: float) -> Array:
        """Compute the displacement to touch the nearest body other than the robot.

        ``sign`` is 1 to close a gap and -1 to remove a penetration.
        """
        found = self._surroundings(q)
        zero = np.zeros(self.space.size)
        if len(found) == 0:
            return zero
        nearest = found[found["dist"].argmin()]
        away = nearest["frame"][0] * (1.0 if self._own[nearest["body_b"]] else -1.0)
        shift = self._shift(q, -away * sign * max(sign * nearest["dist"], 0.0))
        return zero if shift is None else shift

    # ---------------------------------------------------------------- parts

    def _fingers_of(self, contacts: NDArray[np.void]) -> NDArray[np.intp]:
        """Return the index of the finger of each contact, or -1."""
        a, b = self._finger[contacts["body_a"]], self._finger[contacts["body_b"]]
        found: NDArray[np.intp] = np.maximum(a, b).astype(np.intp)
        return found

    def _shift(self, q: Array, way: Array) -> Array | None:
        J = np.asarray(self.model.jacobian(q, self.space.body, np.zeros(3)))[:, self.space.v]
        wanted = np.concatenate((way, np.zeros(3)))
        d = np.asarray(np.linalg.lstsq(J, wanted, rcond=1e-9)[0], dtype=np.float64)
        return d if np.allclose(J @ d, wanted, atol=1e-9) else None

    def _forces(
        self,
        load: Array,
        Jo: Array,
        scale: Array,
        cones: list[int],
        finger: NDArray[np.intp],
        press: float,
        Ja: Array,
    ) -> tuple[Array, float]:
        """Compute the contact forces that balance the object's load, and the load that they leave.

        The forces are within narrowed friction cones, and no joint pulls harder than its limit. If
        the preload exceeds these limits, there is no preload.
        """
        count = len(scale)
        load = load * self._torque_scale
        if count == 0:
            return np.zeros(0), float(np.linalg.norm(load))
        C = Jo.T * self._torque_scale[:, None]
        used = USED * scale
        normals = np.concatenate(([0], np.cumsum(cones)))[:-1].astype(np.intp)
        used[normals] = scale[normals]
        pressing = normals[finger >= 0]
        groups = np.arange(len(pressing))
        rubs = np.array([scale[n + 1] if size > 1 else 1.0 for n, size in zip(normals, cones)])
        needs = np.ones(len(rubs)) if self._floats else np.minimum(rubs, 1.0)
        most = self.options.most / needs[finger >= 0]
        if self.carries:
            # a finger that touches at several places may press at those alone that carry
            _, groups = np.unique(finger[finger >= 0], return_inverse=True)
            most *= _HARDER
        fingers = int(groups.max(initial=-1)) + 1
        sides_of = np.zeros((fingers + len(pressing), count))
        sides_of[groups, pressing] = 1.0
        sides_of[np.arange(len(pressing)) + fingers, pressing] = -1.0
        least = np.full(fingers, -press * self.options.press)
        ends = np.concatenate((least, most)) * self.weight
        kinds = [("lorentz" if size > 1 else "orthant", size) for size in cones]
        torques, slack = self._limits(Ja)
        more = len(ends) + len(slack)
        for preload in (1.0, 0.0) if len(slack) else (1.0,):
            ends[:fingers] *= preload
            try:
                f = solve_cone_program(
                    C.T @ C + PRESSING * np.eye(count),
                    C.T @ load,
                    np.vstack((np.diag(1.0 / used), sides_of, torques)),
                    np.concatenate((np.zeros(count), ends, slack)),
                    [*kinds, ("orthant", more)] if more else kinds,
                ).x
            except SolverError:
                continue
            return f, float(np.linalg.norm(C @ f + load))
        return np.zeros(count), float(np.linalg.norm(load))

    def _limits(self, Ja: Array) -> tuple[Array, Array]:
        """Return rows over the forces, and offsets: the margin by which each joint with a limit could pull harder."""
        low, high = self._strength.T
        has_low, has_high = np.isfinite(low), np.isfinite(high)
        pull = -Ja.T
        rows = np.vstack((pull[has_low], -pull[has_high]))
        return rows, np.concatenate((-low[has_low], high[has_high]))


def can_hold(task: Task, grip: Grip) -> bool:
    """Return whether enough fingers can touch a free object to hold it."""
    if task.space.rotation.all():
        return False
    tips = len(tip_bodies(task.model, task.object))
    return min(tips, grip.available) >= 2 and grip.available >= grip.fingers


def _at_most(way: Array, length: float) -> Array:
    """Return a vector, shortened to ``length`` if it is longer."""
    return way * min(1.0, length / max(float(np.linalg.norm(way)), 1e-12))
