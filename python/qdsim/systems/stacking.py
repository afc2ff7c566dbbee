"""The motion of the block stacking system: seven segments between waypoints of the gripper.

Each segment has ten knots of inverse kinematics (positions on a line, orientations along the
shortest rotation), joined by a cubic spline at rest at both ends; the fingers move linearly. The
published script finds the knots within tolerances (5 mm, 1 mrad) with SNOPT, so its joints may
differ by that. Here the knots are exact solutions, each nearest to the one before.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from qdsim.array_type import ROUNDING, Array
from qdsim.model import Model

__all__ = ["stacking_motion"]

POINT = np.array([0.0, 0.0, 0.15])
"""Point of link 7 that the way-points place, m."""

# (point in the world, m; yaw of the gripper that points down, rad; fingers, m; seconds to the next)
WAY_POINTS: tuple[tuple[tuple[float, float, float], float, float, float], ...] = (
    ((0.555, 0.0, 0.10), 0.0, 0.05, 2.0),
    ((0.555, 0.0, 0.10), 0.0, 0.02, 4.0),
    ((0.555, 0.0, 0.395), 0.0, 0.02, 4.0),
    ((0.69, 0.0, 0.395), math.pi / 2, 0.02, 2.0),
    ((0.69, 0.0, 0.325), math.pi / 2, 0.02, 2.0),
    ((0.69, 0.0, 0.325), math.pi / 2, 0.05, 2.0),
    ((0.69, 0.0, 0.475), math.pi / 2, 0.05, 4.0),
    ((0.555, 0.0, 0.475), 0.0, 0.05, 0.0),
)


def stacking_motion(model: Model, h: float) -> Array:
    """Compute the commands ``(20 s / h, 9)`` of seven joints and two fingers.

    The step that ends at time ``t`` has the command of ``t``.
    """
    arm = np.array(model.keyframes["start"].q[:7])
    count = round(sum(point[3] for point in WAY_POINTS) / h)
    times = np.arange(1, count + 1) * h
    commands = np.zeros((count, 9))
    begin = 0.0
    for here, there in itertools.pairwise(WAY_POINTS):
        duration = here[3]
        knots = []
        for part in np.linspace(0.0, 1.0, 10):
            place = (1.0 - part) * np.array(here[0]) + part * np.array(there[0])
            arm = _reach(model, arm, place, (1.0 - part) * here[1] + part * there[1])
            knots.append(arm)
        rows = (times > begin + ROUNDING) & (times <= begin + duration + ROUNDING)
        s: Array = np.asarray((times[rows] - begin) / duration, dtype=float)
        commands[rows, :7] = _clamped_spline(np.array(knots), s)
        fingers = (1.0 - s) * here[2] + s * there[2]
        commands[rows, 7:] = np.stack([-fingers, fingers], axis=1)
        begin += duration
    return commands


def _reach(model: Model, arm: Array, place: Array, yaw: float) -> Array:
    """Find joint angles (7) near ``arm`` that bring the point to ``place`` and the gripper to roll,
    pitch and yaw (0, pi, yaw).

    Newton's method with the shortest step that closes the linearised error.
    """
    c, s = math.cos(yaw), math.sin(yaw)
    target = np.array([[-c, -s, 0.0], [-s, c, 0.0], [0.0, 0.0, -1.0]])
    q = np.array(model.keyframes["start"].q)
    for _ in range(50):
        q[:7] = arm
        origin, rotation = model.body_pose(q, "arm_link_7")
        # Rotation vector from the present to the target orientation; near the solution its sine is
        # accurate enough.
        turn = 0.5 * sum(np.cross(rotation[:, i], target[:, i]) for i in range(3))
        error = np.concatenate([place - origin - rotation @ POINT, turn])
        if np.abs(error).max() < 1e-12:
            return arm
        jacobian = model.jacobian(q, "arm_link_7", POINT)[:, :7]
        step = np.linalg.lstsq(jacobian, error, rcond=None)[0]
        arm = arm + step * min(1.0, 0.5 / max(np.abs(step).max(), 1e-300))
    raise RuntimeError("inverse kinematics of the block stacking motion did not converge")


def _clamped_spline(values: Array, s: Array) -> Array:
    """Evaluate the cubic spline through ``values`` (n, k) at n even points of [0, 1], with zero
    slopes at both ends."""
    n = len(values)
    width = 1.0 / (n - 1)
    # Continuity of the second derivative: m[i-1] + 4 m[i] + m[i+1] = 3 (y[i+1] - y[i-1]) / width.
    inner = 4.0 * np.eye(n - 2) + np.eye(n - 2, k=1) + np.eye(n - 2, k=-1)
    slopes = np.zeros_like(values)
    slopes[1:-1] = np.linalg.solve(inner, 3.0 * (values[2:] - values[:-2]) / width)
    i = np.clip((s / width).astype(int), 0, n - 2)
    t = (s / width - i)[:, None]
    a, b, da, db = values[i], values[i + 1], width * slopes[i], width * slopes[i + 1]
    return np.asarray(
        a * (1.0 + 2.0 * t) * (1.0 - t) ** 2
        + da * t * (1.0 - t) ** 2
        + b * t * t * (3.0 - 2.0 * t)
        + db * t * t * (t - 1.0)
    )
