"""Distances of a robot from obstacles while it moves: certified edges, and retreats out of contact."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from qdsim._core import SolverError
from qdsim.arguments import MOST_HELD
from qdsim.array_type import ROUNDING, Array
from qdsim.batches.queries import pair_distances
from qdsim.cone import solve_cone_program
from qdsim.description import Coupling, TendonCoupling
from qdsim.model import DEFAULT_MARGIN, Model
from qdsim.planning.task.drives import check_joints_lead, robot_joints
from qdsim.planning.task.followers import by_drives, driven_joints, following, with_followers
from qdsim.planning.task.least_squares import STEPS, room
from qdsim.planning.task.robot import (
    bounding_radii,
    driven_bodies,
    gap_slopes,
    joint_limits,
)

__all__ = ["BACKS_OFF", "RobotSpace", "can_leave"]

BACKS_OFF = (1.5, 5.0, 15.0)
"""Distances to which a robot backs off, in clearances. It always backs off by the first one, so
that searches do not begin at the edge of the clearance. The others are used if the straight line is
blocked."""

_RESOLUTION = 1e-4
"""Between two checks, pairs near contact may come closer than allowed by half of this, m."""


class RobotSpace:
    """The configuration space of the actuated joints of a model; followers move with them,
    everything else is fixed.

    Points are ``(nu,)`` positions of the actuated joints (rad, m), not commands.

    Args:
        model: the model.
        q_from, q_to: ``(nq,)`` the ends of a motion, which lie in the space.

    Attributes:
        pairs: ``(pairs,)`` candidate pairs whose two geometries actuators move relative to each
            other.
        reach: ``(pairs, nu)`` largest displacement of a point of one geometry relative to the other
            per unit of each joint, m.
        weight: ``(nu,)`` the largest reach of each joint, which makes lengths of joints comparable.
        lower, upper: ``(nu,)`` finite bounds that contain both ends.
    """

    def __init__(self, model: Model, q_from: Array, q_to: Array) -> None:
        check_joints_lead(model, "a motion between grasps")
        self.model = model
        self.rows = model.actuated_q
        self.q = np.array(q_from)
        moves = driven_bodies(model)
        _check_constraints(model, moves)
        body = model.geom_body[model.pair_geom]
        against = moves[:, body[:, 0]] != moves[:, body[:, 1]]
        self.pairs = np.flatnonzero(against.any(axis=0))
        ends = np.array([q_from[self.rows], q_to[self.rows]])
        self.lower, self.upper = _bounds(model, q_from, ends)
        travel = _travel(model, self.configurations(np.array([self.lower, self.upper])))
        names = driven_joints(model)
        reach = _reach(model, names, travel)
        own = np.where(moves[:, model.geom_body], reach, 0.0)
        geoms = model.pair_geom[self.pairs]
        each = np.where(moves[:, body[self.pairs, 0]], own[:, geoms[:, 0]], own[:, geoms[:, 1]])
        rates = np.abs(by_drives(model, np.eye(model.nv)))  # of all joints
        rates = rates[[model.slice_v(name).start for name in names]]
        self.reach = np.ascontiguousarray(np.where(against[:, self.pairs], each, 0.0).T @ rates)
        most = self.reach.max(axis=0, initial=0.0)
        if np.isinf(most).any():
            k = int(np.argmax(np.isinf(most)))
            raise ValueError(
                f"model: actuator {model.actuator_names[k]!r} moves a plane, which has no bounds"
            )
        self.weight = np.where(most > 0.0, most, 1.0)

    def configurations(self, points: Array) -> Array:
        """Return the configurations ``(..., nq)`` of points ``(..., nu)``."""
        q = np.broadcast_to(self.q, (*points.shape[:-1], self.model.nq)).copy()
        q[..., self.rows] = points
        return with_followers(self.model, q)

    def distances(self, points: Array) -> Array:
        """Compute distances ``(..., pairs)`` at points ``(..., nu)``, m, up to ``DEFAULT_MARGIN``."""
        threads = 1 if len(points) < 16 else None
        q = self.configurations(points)
        return np.asarray(
            pair_distances(self.model, q, DEFAULT_MARGIN, threads=threads)[..., self.pairs]
        )

    def length(self, a: Array, b: Array) -> float:
        """Return the distance between points, m; each joint is weighted by its largest reach."""
        return float(np.linalg.norm(self.weight * (b - a)))

    def clear(self, a: Array, b: Array, floor: Array) -> bool:
        """Return whether every pair stays at least ``floor`` ``(pairs,)`` m apart along the straight line."""
        return self._first_hit(a, b, floor) is None

    def obstacle(self, a: Array, b: Array, floor: Array) -> str | None:
        """Describe the first obstacle between two points; None if the line is free."""
        hit = self._first_hit(a, b, floor)
        if hit is None:
            return None
        share, pair, distance = hit
        first, second = (self.model.geom_names[g] for g in self.model.pair_geom[self.pairs[pair]])
        return (
            f"{first!r} and {second!r} are {1e3 * distance:.3g} mm apart after {100 * share:.0f} %"
        )

    def _first_hit(self, a: Array, b: Array, floor: Array) -> tuple[float, int, float] | None:
        """Return the share of the line at which a pair is too near, the pair and its distance; None
        if the line is certified.

        An interval is free of collisions if ``d_a + d_b - 2 floor``, with the distances at its
        ends, exceeds the relative motion of the pair in it. If the motion is within the resolution,
        only the ends are checked.
        """
        rate = self.reach @ np.abs(b - a)
        limit = floor - ROUNDING
        t = np.array([0.0, 1.0])
        d = self.distances(np.array([a, b]))
        low, high, at_low, at_high = t[:1], t[1:], d[:1], d[1:]
        while True:
            bad = np.argwhere(d < limit)
            if len(bad):
                row, pair = bad[0]
                return float(t[row]), int(pair), float(d[row, pair])
            motion = (high - low)[:, None] * rate
            open_ = ((at_low + at_high - 2.0 * floor < motion) & (motion > _RESOLUTION)).any(axis=1)
            if not open_.any():
                return None
            low, high, at_low, at_high = low[open_], high[open_], at_low[open_], at_high[open_]
            t = 0.5 * (low + high)
            d = self._measured(a + t[:, None] * (b - a), limit)
            if len(d) < len(t):  # a pair is too near, and the remaining points were not measured
                t = t[: len(d)]
                continue
            low, high = np.concatenate((low, t)), np.concatenate((t, high))
            at_low, at_high = np.concatenate((at_low, d)), np.concatenate((d, at_high))

    def _measured(self, points: Array, limit: Array) -> Array:
        """Compute distances at points, in batches, up to the first batch with a distance below its limit."""
        found, batch = [], max(1, MOST_HELD // (self.model.nq + len(self.model.pair_geom)))
        for k in range(0, len(points), batch):
            found.append(self.distances(points[k : k + batch]))
            if (found[-1] < limit).any():
                break
        return np.concatenate(found)

    # ---------------------------------------------------------------- out of contact

    def retreat(self, x: Array, goal: float, clearance: float) -> list[Array]:
        """Return points from ``x`` to a configuration where no pair is nearer than ``goal`` (m), or
        as far as possible.

        Each step is the smallest one that opens the near contacts along their normals, to first
        order; on the way no pair comes nearer than at ``x`` or than the clearance.
        """
        floor = np.minimum(self.distances(x[None])[0], clearance)
        path = [np.array(x)]
        for _ in range(STEPS if goal > 0.0 else 0):
            gap, rows = self._openings(path[-1], goal)
            if len(gap) == 0:
                break
            step = self._opening_step(path[-1], rows, goal - gap, goal)
            tries = [path[-1] + step / 2.0**k for k in range(6)]
            better = next((y for y in tries if self.clear(path[-1], y, floor)), None)
            if better is None or self.length(path[-1], better) < 1e-3 * goal:
                break
            path.append(better)
        return path

    def _openings(self, x: Array, reach: float) -> tuple[Array, Array]:
        """Return the distances of contacts nearer than ``reach``, and their derivatives by the
        joints ``(n, nu)``."""
        q = self.configurations(x)
        contacts = self.model.collide(q, reach)
        contacts = contacts[np.isin(contacts["pair"], self.pairs) & (contacts["dist"] < reach)]
        gaps = np.asarray(contacts["dist"], dtype=np.float64)
        return gaps, gap_slopes(self.model, q, contacts)

    def _opening_step(self, x: Array, rows: Array, wanted: Array, longest: float) -> Array:
        """Compute the smallest step with ``rows dx >= wanted``, as far as the bounds allow (soft constraints)."""
        nu, n = self.model.nu, len(wanted)
        scaled = rows / self.weight  # in y = weight dx, metres
        most = np.maximum(2.0 * longest, 1e-6)
        back, on = room(x, self.lower, self.upper)
        down, up = np.maximum(self.weight * back, -most), np.minimum(self.weight * on, most)
        Q = np.diag(np.concatenate((np.full(nu, 1e-3), np.ones(n))))
        G = np.block(
            [
                [scaled, np.eye(n)],
                [np.eye(nu), np.zeros((nu, n))],
                [-np.eye(nu), np.zeros((nu, n))],
            ]
        )
        g = np.concatenate((-wanted, -down, up))
        try:
            y = solve_cone_program(Q, np.zeros(nu + n), G, g, [("orthant", len(g))]).x[:nu]
        except SolverError:
            return np.zeros(nu)
        return np.asarray(np.clip(y, down, up) / self.weight)


def can_leave(model: Model, q: Array, object: str, clearance: float) -> bool:
    """Return whether the robot can back off from an object that it touches, in straight steps.

    Fingers that are through a hole narrower than themselves, or behind an edge in a gap, cannot; nor could they have
    come there.

    Args:
        model: the model.
        q: ``(nq,)`` configuration.
        object: name of the object's body.
        clearance: distance to which the robot has to back off, m.
    """
    space = RobotSpace(model, q, q)
    own = np.array([name == object for name in model.body_names])[model.geom_body]
    x = q[model.actuated_q]
    near = (space.distances(x[None])[0] < clearance) & own[model.pair_geom[space.pairs]].any(axis=1)
    for room_ in BACKS_OFF:
        x = space.retreat(x, room_ * clearance, clearance)[-1]
        if space.distances(x[None])[0][near].min(initial=math.inf) >= 0.5 * clearance:
            return True
    return False


# -------------------------------------------------------------------- bounds of motion


def _check_constraints(model: Model, moves: NDArray[np.bool_]) -> None:
    """Raise ValueError if moving the actuated joints alone violates a bilateral constraint."""
    bodies = {name: b for b, name in enumerate(model.body_names)}
    driven = {joint.name for joint in robot_joints(model)}
    for item in model.description.constraints:
        if isinstance(item, Coupling):
            tied = bool(driven & {item.joint, item.follows}) and item.joint not in following(model)
        elif isinstance(item, TendonCoupling):
            lengths = model.tendon_jacobians(model.default_q)
            which = [model.tendon_index(t) for t in (item.tendon, item.follows) if t is not None]
            own = model.actuated_v[model.actuated_v >= 0]
            tied = bool(np.any(lengths[which][:, own]))
        else:
            tied = bool(np.any(moves[:, bodies[item.body_a]] != moves[:, bodies[item.body_b]]))
        if tied:
            raise ValueError(
                f"model: constraint {item.name!r} couples the robot's joints; motions of such robots "
                "cannot be planned"
            )


def _bounds(model: Model, q: Array, ends: Array) -> tuple[Array, Array]:
    """Return joint limits, widened to contain both ends; unlimited joints get room to move around the scene."""
    lower, upper = joint_limits(model)
    hinge = np.array([joint.type == "hinge" for joint in robot_joints(model)])
    around = np.where(hinge, math.pi, _scene_size(model, q))
    low, high = ends.min(axis=0), ends.max(axis=0)
    lower = np.where(np.isfinite(lower), np.minimum(lower, low), low - around)
    upper = np.where(np.isfinite(upper), np.maximum(upper, high), high + around)
    return lower, upper


def _scene_size(model: Model, q: Array) -> float:
    """Return the diagonal of a box around the geometries of all moving bodies, m."""
    pos, rot = model.body_poses(q)
    moving = _moving(model)
    corners = [
        pos[b] + rot[b] @ np.asarray(geom.pos) + sign * radius
        for b, geom, radius in zip(model.geom_body, model.description.geoms, bounding_radii(model))
        if moving[b] and math.isfinite(radius)
        for sign in (-1.0, 1.0)
    ]
    return float(np.linalg.norm(np.ptp(corners, axis=0))) if corners else 1.0


def _moving(model: Model) -> list[bool]:
    index = {name: i for i, name in enumerate(model.body_names)}
    moving = [False]
    for body in model.description.bodies[1:]:
        moving.append(bool(body.joints) or moving[index[body.parent]])
    return moving


def _travel(model: Model, ends: Array) -> dict[str, float]:
    """Return the largest displacement of every slide, m.

    ``ends`` ``(2, nq)`` are configurations with all joints at one of their bounds.
    """
    return {
        joint.name: float(np.abs(ends[:, model.slice_q(joint.name).start] - joint.ref).max())
        for joint in model.description.joints
        if joint.type == "slide"
    }


def _reach(model: Model, names: list[str], travel: dict[str, float]) -> Array:
    """Bound the distance of a geometry's points from the axis of each hinge: ``(joints, geoms)`` m;
    1 for slides.

    Links are rigid, so the distance is at most the length along the bodies between the axis and the
    geometry. Each body contributes the offset of its frame, the travel of its slides, and twice the
    offset of its hinges from its frame.
    """
    description = model.description
    index = {name: i for i, name in enumerate(model.body_names)}
    radii = bounding_radii(model)
    driven = {name: k for k, name in enumerate(names)}
    reach = np.zeros((len(names), len(radii)))
    # From the world outwards: the largest distance of a body's frame from each axis before it.
    frame: list[Array] = [np.zeros(len(names))]
    for b, body in enumerate(description.bodies):
        if b > 0:
            far = frame[index[body.parent]] + float(np.linalg.norm(body.pos))
            for joint in body.joints:
                offset = float(np.linalg.norm(joint.pos))
                if joint.type == "slide":
                    far = far + travel[joint.name]
                elif joint.type == "free":
                    far = far + math.inf
                else:
                    far = far + 2.0 * offset
                k = driven.get(joint.name)
                if k is not None:
                    far[k] = offset
            frame.append(far)
        for i, geom in enumerate(description.geoms):
            if model.geom_body[i] == b:
                reach[:, i] = frame[b] + float(np.linalg.norm(geom.pos)) + radii[i]
    reach[[k for name, k in driven.items() if name in travel]] = 1.0
    return reach
