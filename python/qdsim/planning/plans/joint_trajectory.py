"""A plan as joint positions and velocities over time, with the fields of ROS 2's
``trajectory_msgs/JointTrajectory``.

Positions are the commands (the set points of the joints' springs): a robot sent to the joint
positions of the plan would not press on anything. Straight pieces of the commands have trapezoidal
speed profiles (:mod:`qdsim.planning.motion.time_law`) that begin and end at rest. Points are placed
where the acceleration changes. Between them the cubic through positions and velocities, which
``joint_trajectory_controller`` uses, is exact.
"""

from __future__ import annotations

import csv
import dataclasses
import json
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from qdsim.arguments import number, path_of, reals, spread
from qdsim.array_type import ROUNDING, SAME, Array
from qdsim.planning.motion.time_law import shares, time_law

__all__ = ["JointTrajectory", "corners", "timed"]

_BRIEF = 1e-2
"""Stretches at full speed shorter than this share of their piece are omitted, because rounding of positions and times
changes accelerations over short pieces."""


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class JointTrajectory:
    """Positions and velocities of joints over time.

    Attributes:
        joint_names: names of the joints, in the order of the columns.
        times: ``(points,)`` times from the start, increasing, s.
        positions: ``(points, joints)`` set points of the joints' springs, rad or m.
        velocities: ``(points, joints)`` rad/s or m/s.
        accelerations: ``(points, joints)`` accelerations after each point, rad/s^2 or m/s^2; None:
            controllers interpolate by cubics.
    """

    joint_names: tuple[str, ...]
    times: Array
    positions: Array
    velocities: Array
    accelerations: Array | None = None

    def __post_init__(self) -> None:
        times = reals("times", self.times, (-1,))
        if len(times) < 2 or np.any(np.diff(times) <= 0.0):
            raise ValueError("times: expected two or more that rise")
        object.__setattr__(self, "times", times)
        shape = (len(times), len(self.joint_names))
        for name in ("positions", "velocities", "accelerations"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, reals(name, getattr(self, name), shape))

    @property
    def duration(self) -> float:
        """Time from the start to the last point, s."""
        return float(self.times[-1])

    def at(self, seconds: ArrayLike) -> tuple[Array, Array, Array]:
        """Interpolate positions, velocities and accelerations, ``(n, joints)`` each, by cubics.

        Before the first point and after the last the joints are at rest.

        Args:
            seconds: ``(n,)`` times, s.

        Raises:
            ValueError: for another shape.
        """
        given = reals("seconds", seconds, (-1,))
        t = np.clip(given, self.times[0], self.times[-1])
        k = np.clip(np.searchsorted(self.times, t, side="right") - 1, 0, len(self.times) - 2)
        span = (self.times[k + 1] - self.times[k])[:, None]
        s = (t - self.times[k])[:, None] / span
        p, m = self.positions[k], span * self.velocities[k]
        way, m_end = self.positions[k + 1] - p, span * self.velocities[k + 1]
        # p + m s + b s^2 + c s^3 ends at p + way with the derivative m_end
        b, c = 3.0 * way - 2.0 * m - m_end, m + m_end - 2.0 * way
        outside = (given != t)[:, None]
        rates = np.where(outside, 0.0, (m + (2.0 * b + 3.0 * c * s) * s) / span)
        turns = np.where(outside, 0.0, (2.0 * b + 6.0 * c * s) / span**2)
        return p + (m + (b + c * s) * s) * s, rates, turns

    def sampled(self, period: float) -> JointTrajectory:
        """Return the trajectory at every period and at its end, with accelerations, for controllers
        that take one point per period.

        Args:
            period: s, positive.

        Raises:
            TypeError, ValueError: if the period is not positive.
        """
        period = number("period", period, above=0)
        whole = np.arange(int(np.ceil(self.duration / period - ROUNDING))) * period
        times = np.append(whole, self.duration)
        return JointTrajectory(self.joint_names, times, *self.at(times))

    def check(self, velocity: ArrayLike, acceleration: ArrayLike) -> None:
        """Raise ValueError, with the joint and the time, if a limit is violated anywhere.

        Args:
            velocity: largest velocity of each joint, rad/s or m/s, one number or one per joint.
            acceleration: largest acceleration of each joint, rad/s^2 or m/s^2, one number or one
                per joint.
        """
        span = np.diff(self.times)[:, None]
        v0, v1 = self.velocities[:-1], self.velocities[1:]
        mean = np.diff(self.positions, axis=0) / span
        # Between points, the acceleration is linear and the velocity quadratic.
        a0 = (6.0 * mean - 4.0 * v0 - 2.0 * v1) / span
        a1 = (2.0 * v0 + 4.0 * v1 - 6.0 * mean) / span
        bend = a0 - a1
        with np.errstate(divide="ignore", invalid="ignore"):
            top = v0 + 0.5 * a0 * a0 / bend * span
        top = np.where(a0 * a1 < 0.0, top, 0.0)
        speeds = np.abs((v0, v1, top)).max(axis=0)
        self._keep(speeds, velocity, "velocity")
        self._keep(np.maximum(np.abs(a0), np.abs(a1)), acceleration, "acceleration")

    def _keep(self, values: Array, limit: ArrayLike, what: str) -> None:
        """Raise ValueError if values ``(points - 1, joints)`` exceed the limits of the joints."""
        limits = limits_of(what, limit, len(self.joint_names))
        excess = values / limits
        k, j = np.unravel_index(int(excess.argmax()), excess.shape)
        if excess[k, j] > 1.0 + SAME:
            raise ValueError(
                f"{what}: joint {self.joint_names[j]!r} needs {values[k, j]:.3g} after {self.times[k]:.3g} s, "
                f"its limit is {limits[j]:.3g}"
            )

    # ---------------------------------------------------------------- as messages and files

    def to_dict(self) -> dict[str, Any]:
        """Return the fields of ``trajectory_msgs/JointTrajectory`` as lists, text and numbers.

        ``rosidl_runtime_py.set_message_fields(message, ...)`` fills a message with it.
        """
        points = []
        for k, t in enumerate(self.times):
            sec, nanosec = divmod(round(float(t) * 1e9), 10**9)
            turns = [] if self.accelerations is None else self.accelerations[k].tolist()
            points.append(
                {
                    "positions": self.positions[k].tolist(),
                    "velocities": self.velocities[k].tolist(),
                    "accelerations": turns,
                    "effort": [],
                    "time_from_start": {"sec": sec, "nanosec": nanosec},
                }
            )
        header = {"stamp": {"sec": 0, "nanosec": 0}, "frame_id": ""}
        return {"header": header, "joint_names": list(self.joint_names), "points": points}

    def to_yaml(self, path: str | os.PathLike[str]) -> None:
        """Write :meth:`to_dict` as YAML, for ``ros2 topic pub`` and ``ros2 action send_goal``.

        Args:
            path: path of the file.

        Raises:
            OSError: if the file cannot be written.
        """
        fields = self.to_dict()
        lines = [f"{name}: {_flow(fields[name])}" for name in ("header", "joint_names")]
        lines += ["points:", *(f"- {_flow(point)}" for point in fields["points"])]
        path_of("path", path).write_text("\n".join(lines) + "\n", encoding="utf-8")

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write a table with one row per point.

        Its columns are ``time``, then ``<joint>.position`` for all joints, ``.velocity``, and
        ``.acceleration`` if given.

        Args:
            path: path of the file.

        Raises:
            OSError: if the file cannot be written.
        """
        blocks = {"position": self.positions, "velocity": self.velocities}
        if self.accelerations is not None:
            blocks["acceleration"] = self.accelerations
        head = ["time", *(f"{name}.{what}" for what in blocks for name in self.joint_names)]
        rows = np.column_stack((self.times, *blocks.values()))
        with path_of("path", path).open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([head, *rows.tolist()])

    def __repr__(self) -> str:
        return (
            f"JointTrajectory({len(self.joint_names)} joints, {len(self.times)} points, "
            f"{self.duration:.3g} s)"
        )


def limits_of(name: str, value: ArrayLike, size: int) -> Array:
    """Check positive numbers (or infinity), one or ``size`` of them, and return one per joint."""
    limits = spread(name, value, size)
    if not np.all(limits > 0.0):
        raise ValueError(f"{name}: expected positive numbers, got {value!r}")
    return limits


def _flow(value: Any) -> str:
    """Format a value as YAML on one line.

    This is JSON, except that floats such as 1e-05 get a decimal point, since YAML 1.1 would read
    them as text.
    """
    if isinstance(value, dict):
        return (
            "{"
            + ", ".join(f"{json.dumps(key)}: {_flow(item)}" for key, item in value.items())
            + "}"
        )
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    if isinstance(value, float):
        text = repr(value)
        return text if "." in text else text.replace("e", ".0e")
    return json.dumps(value)


def corners(points: Array) -> Array:
    """Return indices ``(k,)`` of the ends and corners of a path of points ``(n, joints)``, without
    points on straight lines."""
    if len(points) == 1:
        return np.array([0])
    steps = np.diff(points, axis=0)
    lengths = np.linalg.norm(steps, axis=1)
    moves = np.flatnonzero(lengths > ROUNDING)
    if len(moves) == 0:
        return np.array([0, len(points) - 1])
    ways = steps[moves] / lengths[moves, None]
    turns = np.abs(np.diff(ways, axis=0)).max(axis=1, initial=0.0) > ROUNDING
    return np.concatenate(([0], moves[1:][turns], [len(points) - 1]))


def timed(
    names: Sequence[str],
    parts: Sequence[Array],
    velocity: Array,
    acceleration: Array,
    pause: float,
) -> tuple[JointTrajectory, list[Array]]:
    """Make a trajectory through the points of each part, with a pause at rest after each; return
    also the times of the points.

    Args:
        names: of the joints.
        parts: ``(n, joints)`` each; every part begins at the end of the previous one.
        velocity, acceleration: limits ``(joints,)``.
        pause: s.
    """
    begin, passed = 0.0, []
    times, positions, velocities = [0.0], [parts[0][0]], [np.zeros(len(names))]
    for part in parts:
        ends = corners(part)
        at, ramps = time_law(part[ends], velocity, acceleration)
        when = np.full(len(part), begin)
        for a, b, span, ramp in zip(ends[:-1], ends[1:], np.diff(at), ramps):
            if np.abs(part[b] - part[a]).max() <= ROUNDING:
                continue  # constant commands take no time
            if span - 2.0 * ramp < _BRIEF * span:
                span = 2.0 * (span - ramp)  # slightly longer, so both limits hold
                ramp = 0.5 * span
            knots = np.array([ramp, span - ramp, span] if 2.0 * ramp < span else [ramp, span])
            done, rate = shares(knots, span, ramp)
            way = part[b] - part[a]
            times += (begin + knots).tolist()
            positions += [part[a] + share * way for share in done[:-1]] + [part[b]]
            velocities += [share * way for share in rate[:-1]] + [np.zeros(len(names))]
            when[a : b + 1] = begin + _passing(part[a : b + 1], span, ramp)
            begin += span
        passed.append(when)
        if pause > 0.0:
            begin += pause
            times.append(begin)
            positions.append(part[-1])
            velocities.append(np.zeros(len(names)))
    if len(times) == 1:
        raise ValueError("plan: no joint moves, and without a pause the trajectory has no duration")
    made = JointTrajectory(tuple(names), np.array(times), np.array(positions), np.array(velocities))
    return made, passed


def _passing(points: Array, span: float, ramp: float) -> Array:
    """Return the times at which points on a straight piece are passed, in s from its start."""
    way = np.linalg.norm(points - points[0], axis=1)
    if way[-1] == 0.0:
        return np.linspace(0.0, span, len(points))
    grid = np.linspace(0.0, span, 200)
    done, _ = shares(grid, np.array(span), np.array(ramp))
    return np.asarray(np.interp(way / way[-1], done, grid))
