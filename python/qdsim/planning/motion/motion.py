"""Collision-free motions of the robot between two grasps, while the object stays in place.

CQDC §VII leaves the path from one grasp to the next to a planner of collision-free motions. Here
the robot first backs off along the contact normals. Then it moves along a straight line if that is
free, or along a path of OMPL's RRT-Connect (extra ``planning``). It approaches the next grasp as it
would back off from it. Joints respect limits of speed and acceleration (``time_law``).

Edges are certified, not sampled. No point of a geometry moves farther than the travel of its joints
times its largest distance from their axes. A pair therefore cannot meet between two configurations
whose distances sum to more than that (Schwarzer, Saha and Latombe 2005, "Adaptive dynamic collision
checking for single and multiple articulated robots in complex environments"). Intervals that are
not certified yet are halved, all at once, with :func:`qdsim.pair_distances`.
"""

from __future__ import annotations

import dataclasses
import time
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qdsim.arguments import generator_of, instance, vector
from qdsim.array_type import ROUNDING, Array
from qdsim.model import Model
from qdsim.planning.motion.clearance import BACKS_OFF, RobotSpace
from qdsim.planning.motion.time_law import shares, time_law
from qdsim.planning.task.followers import unmoved_q
from qdsim.planning.task.motion_options import MotionOptions

SHORTCUTS = 60
"""Number of attempts to shorten a path. With fewer attempts, motions take longer."""
__all__ = [
    "Motion",
    "MotionError",
    "connect",
    "motion_fault",
]


class MotionError(RuntimeError):
    """No collision-free motion was found; the message says why."""


@dataclasses.dataclass(frozen=True, eq=False)
class Motion:
    """A path of the robot; everything else stays.

    Attributes:
        configurations: ``(points, nq)``; linear in the joints between them.
        times: ``(points,)`` s, from 0, increasing.
        planner: how the free part was found: "line": straight; "opening": the robot backs off
            farther first; "RRTConnect".
        ramps: ``(points - 1,)`` s; each piece accelerates from rest for this time, at constant
            acceleration, and decelerates to rest for the same time. Zeros: constant speed.
    """

    configurations: Array
    times: Array
    planner: str
    ramps: Array = dataclasses.field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        if len(self.ramps) == 0:
            object.__setattr__(self, "ramps", np.zeros(max(len(self.times) - 1, 0)))

    @property
    def duration(self) -> float:
        """Duration, s."""
        return float(self.times[-1])

    def at(self, seconds: ArrayLike) -> Array:
        """Interpolate configurations ``(..., nq)`` at some times; before the start and after the
        end the robot rests.

        Args:
            seconds: ``(...)`` times from the start, s.
        """
        k, done, _ = self._pieces(seconds)
        before, after = self.configurations[k], self.configurations[k + 1]
        return np.asarray(before + done[..., None] * (after - before))

    def rates(self, seconds: ArrayLike) -> Array:
        """Rates ``(..., nq)`` of the configurations, rad/s or m/s; zero before the start and after
        the end.

        Args:
            seconds: ``(...)`` times from the start, s.
        """
        t = np.asarray(seconds, dtype=np.float64)
        k, _, rate = self._pieces(t)
        rate = np.where((t < 0.0) | (t > self.duration), 0.0, rate)
        return np.asarray(rate[..., None] * (self.configurations[k + 1] - self.configurations[k]))

    def _pieces(self, seconds: ArrayLike) -> tuple[NDArray[np.int64], Array, Array]:
        """Return the index of the piece at times ``(...)``, its completed share, and the rate of the share, 1/s."""
        t = np.asarray(seconds, dtype=np.float64)
        k = np.clip(np.searchsorted(self.times, t, side="right") - 1, 0, len(self.times) - 2)
        span = self.times[k + 1] - self.times[k]
        done, rate = shares(np.clip(t - self.times[k], 0.0, span), span, self.ramps[k])
        return k, done, rate

    def __repr__(self) -> str:
        return f"Motion({len(self.times)} points, {self.duration:.3g} s, {self.planner})"


def connect(
    model: Model,
    q_from: ArrayLike,
    q_to: ArrayLike,
    options: MotionOptions | None = None,
    rng: int | np.random.Generator = 0,
) -> Motion:
    """Find a collision-free motion of the robot from one configuration to another; everything else
    is fixed.

    Pairs that touch at one end may touch on the way from and to it, but come no nearer than there;
    the robot first backs off along the contact normals. In between it keeps ``options.clearance``.
    Joint limits are respected, except that the ends may lie beyond them. Straight lines are tried
    first, then OMPL's planners (Sucan, Moll and Kavraki 2012).

    Args:
        model: the model.
        q_from, q_to: ``(nq,)`` configurations with the same unactuated part, m and rad.
        options: clearance, time, speed.
        rng: seed or generator, of OMPL's samples and of the shortcuts. The same seed gives the same
            motion unless OMPL runs out of time.

    Raises:
        MotionError: if an end penetrates too deeply, or OMPL found nothing in time; the message
            names the pair and the time.
        ImportError: if the straight line is blocked and OMPL is not installed.
        ValueError: if an argument is invalid (the message names it), or if bilateral constraints
            couple the robot's joints.
    """
    instance("model", model, Model)
    given = instance("options", options, MotionOptions, or_none=True) or MotionOptions()
    start, goal = (vector(n, q, model.nq) for n, q in (("q_from", q_from), ("q_to", q_to)))
    rest = unmoved_q(model)
    if np.abs(start[rest] - goal[rest]).max(initial=0.0) > ROUNDING:
        raise ValueError("q_to: coordinates that the robot does not move differ from q_from")
    speed = _per_joint("speed", given.speed, model.nu)
    acceleration = None
    if given.acceleration is not None:
        acceleration = _per_joint("acceleration", given.acceleration, model.nu)
    generator = generator_of(rng)
    space = RobotSpace(model, start, goal)
    a, b = start[model.actuated_q], goal[model.actuated_q]
    for name, x in (("q_from", a), ("q_to", b)):
        deep = space.obstacle(x, x, np.full(len(space.pairs), -given.penetration))
        if deep is not None:
            raise MotionError(f"{name}: {deep.split(' after ')[0]}")
    away, back = ([x] for x in (a, b))
    for path in (away, back):
        path += space.retreat(path[-1], BACKS_OFF[0] * given.clearance, given.clearance)[1:]
    middle, planner = _middle(space, away[-1], back[-1], given, generator)
    points = _without_repeats(np.vstack([*away[:-1], *middle, *back[-2::-1]]))
    configurations = space.configurations(points)
    configurations[0], configurations[-1] = start, goal
    times, ramps = time_law(points, speed, acceleration)
    return Motion(configurations, times, planner, ramps)


def motion_fault(model: Model, motion: Motion) -> str | None:
    """Describe the fault of a motion; None if it is collision-free, moves only the robot and
    respects the joint limits.

    Pairs that penetrate at an end may penetrate as deeply on the way, and joints beyond a limit at
    an end may be as far beyond it.
    """
    q = motion.configurations
    rest = unmoved_q(model)
    if np.any(q[:, rest] != q[0, rest]):
        return "it moves something else than the robot"
    if len(q) < 2 or len(motion.times) != len(q) or np.any(np.diff(motion.times) <= 0.0):
        return "its times do not rise"
    spans = np.diff(motion.times)
    if len(motion.ramps) != len(spans) or np.any(
        (motion.ramps < 0.0) | (2.0 * motion.ramps > spans * (1.0 + ROUNDING))
    ):
        return "its ramps do not fit into its pieces"
    space = RobotSpace(model, q[0], q[-1])
    points = q[:, model.actuated_q]
    if np.any(points < space.lower) or np.any(points > space.upper):
        return "it leaves the joint limits"
    floor = np.minimum(space.distances(points[[0, -1]]).min(axis=0), 0.0)
    for k, (a, b) in enumerate(pairwise(points)):
        hit = space.obstacle(a, b, floor)
        if hit is not None:
            return f"{hit} of piece {k}"
    return None


def _middle(
    space: RobotSpace, a: Array, b: Array, options: MotionOptions, rng: np.random.Generator
) -> tuple[Array, str]:
    """Find points ``(n, nu)`` from ``a`` to ``b``, both included; return also the name of the method."""
    ends = space.distances(np.array([a, b]))
    floor = np.minimum(options.clearance, ends.min(axis=0))
    if space.clear(a, b, floor):
        return np.array([a, b]), "line"
    # Open hands often pass where closed ones do not, and are a better start of a search.
    away, back = [a], [b]
    for room in BACKS_OFF[1:]:
        for path in (away, back):
            path += space.retreat(path[-1], room * options.clearance, options.clearance)[1:]
        route = [*away, *back[::-1]]
        if all(space.clear(p, q, floor) for p, q in pairwise(route)):
            found = np.array(route)
            return _shortened(space, found, floor, rng), "opening"
    from qdsim.planning.motion.ompl_search import rrt_connect

    begin = time.perf_counter()
    between = rrt_connect(space, away[-1], back[-1], floor, options, int(rng.integers(1, 2**31)))
    if between is None:
        raise MotionError(
            f"OMPL's RRTConnect found no path in {time.perf_counter() - begin:.3g} s with "
            f"{1e3 * options.clearance:g} mm of clearance; on the straight line "
            f"{space.obstacle(a, b, floor)}"
        )
    found = np.array([*away[:-1], *between, *back[-2::-1]])
    return _shortened(space, found, floor, rng), "RRTConnect"


def _shortened(space: RobotSpace, path: Array, floor: Array, rng: np.random.Generator) -> Array:
    """Shorten a path: random pairs of its points are joined if the straight line is free."""
    points = list(path)
    for _ in range(SHORTCUTS):
        if len(points) < 3:
            break
        lengths = np.array([space.length(p, q) for p, q in pairwise(points)])
        ends = np.concatenate(([0.0], np.cumsum(lengths)))
        s, t = np.sort(rng.uniform(0.0, ends[-1], 2))
        i, j = (
            min(int(np.searchsorted(ends, x, side="right")) - 1, len(lengths) - 1) for x in (s, t)
        )
        if i == j:
            continue
        p, q = (
            points[k] + (x - ends[k]) / lengths[k] * (points[k + 1] - points[k])
            for k, x in ((i, s), (j, t))
        )
        if space.clear(p, q, floor):
            points[i + 1 : j + 1] = [p, q]
    k = 1
    while k + 1 < len(points):
        if space.clear(points[k - 1], points[k + 1], floor):
            del points[k]
        else:
            k += 1
    return np.array(points)


def _without_repeats(points: Array) -> Array:
    """Remove points equal to their predecessor; at least two points remain."""
    keep = np.concatenate(([True], np.any(np.diff(points, axis=0) != 0.0, axis=1)))
    return points[keep] if keep.sum() > 1 else points[[0, -1]]


def _per_joint(name: str, value: float | tuple[float, ...], count: int) -> Array:
    """Return one number for each actuated DOF ``(nu,)``."""
    if isinstance(value, tuple) and len(value) != count:
        raise ValueError(f"{name}: expected a number or {count} of them, got {len(value)}")
    return np.broadcast_to(np.asarray(value, dtype=np.float64), (count,))
