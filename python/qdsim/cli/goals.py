"""The goal of an object on the command line."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from qdsim.cli.outcome import UnusableError

if TYPE_CHECKING:
    from qdsim.array_type import Array
    from qdsim.model import Model
    from qdsim.planning import GoalRegion, ObjectSpace

__all__ = ["goal_of", "goal_words"]


_UPRIGHT, _FREE, _TO = "upright", "free", ".."


def goal_of(
    model: Model, space: ObjectSpace, start: Array, text: str
) -> tuple[Array, GoalRegion | None]:
    """Read ``--goal``: return the start ``(nq,)`` with the object at its goal, and the region of other
    accepted poses, or None.

    Args:
        model: The model.
        space: The object's coordinates.
        start: The start, ``(nq,)``.
        text: numbers as in :func:`goal_words`, separated by blanks or commas; angles in radians, or
            as in ``90deg``; ``-`` keeps the value of the start, ``free`` accepts any value,
            ``0.1..0.2`` accepts an interval. Without an orientation,
            rotations about the object's axes of rotational symmetry are free.

    Raises:
        UnusableError: The text has another form.
    """
    from qdsim.planning.task.roundness import turn_axes

    words = text.replace(",", " ").split()
    now, goal = start[space.q], np.array(start)
    if _is_free(model, space):
        words = [_FREE] * 3 + words if words == [_UPRIGHT] else words
        turn = words.pop() if len(words) == 4 and words[3] in (_FREE, _UPRIGHT) else ""
        bounds = [_bounds(word, old, False) for word, old in zip(words[:3], now)]
        words[:3] = [repr(middle) for middle, _, _ in bounds]
        goal[space.q] = _pose(space.body, now, words)
        kept = not turn and all(word == "-" for word in words[3:])
        axes = turn_axes(model, space.body) if kept else np.empty((0, 3))
        turn = _FREE if len(axes) == 3 else turn
        if turn == _UPRIGHT:
            goal[space.q[3:]] = _upright(model, goal[space.q[3:]])
        return goal, _region(bounds, turn, axes[0] if len(axes) == 1 else None)
    if len(words) != len(now):
        raise _refusal(model, space, text)
    at = np.searchsorted(space.q, space.scalars[0]).tolist()
    angles = _angles(model, space)
    bounds = [_bounds(words[k], now[k], angles[k]) for k in at]
    for k, (middle, _, _) in zip(at, bounds):
        words[k] = f"{middle!r}{'rad' * angles[k]}"
    values = [_number(word, old, angle) for word, old, angle in zip(words, now, angles)]
    goal[space.q] = values
    for i in _quaternions(model, space):
        goal[i : i + 4] = _unit(goal[i : i + 4])
    return goal, _region(bounds, "")


def _bounds(word: str, old: float, angle: bool) -> tuple[float, float, float]:
    """Return the number that a word asks for, and the accepted deviations below and above it."""
    if word == _FREE:
        return float(old), -math.inf, math.inf
    if _TO not in word:
        return _number(word, old, angle), 0.0, 0.0
    low, high = (_number(part, old, angle) for part in word.split(_TO, 1))
    if low > high:
        raise UnusableError(f"--goal: {word!r} is an interval with its larger end first")
    middle = 0.5 * (low + high)
    return middle, low - middle, high - middle


def _region(
    bounds: list[tuple[float, float, float]], turn: str, axis: Array | None = None
) -> GoalRegion | None:
    """Return the accepted poses beside the goal, with any turn about an axis ``(3,)``; None if there are none."""
    from qdsim.planning import GoalRegion

    if not turn and axis is None and all(low == high for _, low, high in bounds):
        return None
    own = None if axis is None else tuple(axis.tolist())
    return GoalRegion(
        tuple(low for _, low, _ in bounds),
        tuple(high for _, _, high in bounds),
        rotation="any" if turn == _FREE else "goal",
        axis="up" if turn == _UPRIGHT else own,
    )


def _upright(model: Model, quat: Array) -> Array:
    """Return a quaternion turned by the smallest rotation that makes the body's own z axis vertical."""
    from qdsim.planning.task.goal_region import quaternion_product

    w, x, y, z = quat
    own = np.array([2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)])
    gravity = np.asarray(model.parameters.gravity)
    if not np.any(gravity):
        raise UnusableError("--goal: nothing is upright in a model without gravity")
    up = -gravity / np.linalg.norm(gravity)
    half = np.concatenate(([1.0 + own @ up], np.cross(own, up)))
    if half[0] < 1e-9:  # upside down: turn about any horizontal axis
        half = np.concatenate(([0.0], np.cross(up, np.eye(3)[np.abs(up).argmin()])))
    return _unit(quaternion_product(half, quat).tolist())


def goal_words(model: Model, space: ObjectSpace) -> str:
    """Return the form of ``--goal`` for an object, in words."""
    if _is_free(model, space):
        return (
            "'x y z', 'x y z yaw', 'x y z qw qx qy qz', 'x y z free', 'x y z upright' or 'upright'"
        )
    units = ["rad" if angle else "m" for angle in _angles(model, space)]
    names = [name for name in space.joints for _ in range(_width(model, name))]
    return repr(" ".join(names)) + f" ({', '.join(units)})"


def _refusal(model: Model, space: ObjectSpace, text: str) -> UnusableError:
    return UnusableError(
        f"--goal: expected {goal_words(model, space)} of {space.body!r}, got {text!r}"
    )


def _pose(body: str, now: Array, words: list[str]) -> Array:
    """Return a free object's entries ``(7,)`` from the position, and the yaw or quaternion if given."""
    if len(words) not in (3, 4, 7):
        raise UnusableError(
            f"--goal: expected 'x y z', 'x y z yaw' or 'x y z qw qx qy qz' of {body!r}, "
            f"got {len(words)} numbers"
        )
    pose = np.array(now)
    pose[:3] = [_number(word, old, False) for word, old in zip(words[:3], now)]
    if len(words) == 4:
        heading = 2.0 * math.atan2(now[6], now[3])
        pose[3:] = _turned(now[3:], _number(words[3], heading, True) - heading)
    elif len(words) == 7:
        pose[3:] = _unit([_number(word, old, False) for word, old in zip(words[3:], now[3:])])
    return pose


def _turned(quat: Array, angle: float) -> Array:
    """Return a quaternion turned about the vertical."""
    c, s = math.cos(0.5 * angle), math.sin(0.5 * angle)
    w, x, y, z = quat
    return np.array([c * w - s * z, c * x - s * y, c * y + s * x, c * z + s * w])


def _number(word: str, old: float, angle: bool) -> float:
    if word == "-":
        return float(old)
    scale = 1.0
    for unit, size in (("deg", math.pi / 180.0), ("rad", 1.0)):
        if word.endswith(unit):
            if not angle:
                raise UnusableError(f"--goal: expected metres, got {word!r}")
            word, scale = word.removesuffix(unit), size
            break
    else:
        unit = ""
    try:
        value = float(word) * scale
    except ValueError:
        raise UnusableError(f"--goal: expected numbers, got {word!r}") from None
    if not math.isfinite(value):
        raise UnusableError(f"--goal: expected finite numbers, got {word!r}")
    if angle and not unit and abs(value) > math.tau:  # probably meant in degrees
        raise UnusableError(
            f"--goal: {value:g} rad looks like degrees: write {value:g}deg, or {value:g}rad if you mean radians"
        )
    return value


def _unit(quat: Array | list[float]) -> Array:
    length = float(np.linalg.norm(quat))
    if not length > 0.0:
        raise UnusableError("--goal: a quaternion of zeros")
    return np.asarray(quat) / length


def _is_free(model: Model, space: ObjectSpace) -> bool:
    return len(space.joints) == 1 and _width(model, space.joints[0]) == 7


def _width(model: Model, joint: str) -> int:
    at = model.slice_q(joint)
    return int(at.stop - at.start)


def _angles(model: Model, space: ObjectSpace) -> list[bool]:
    """Return for each of the object's entries whether it is an angle."""
    kind = {joint.name: joint.type for joint in model.description.joints}
    return [kind[name] == "hinge" for name in space.joints for _ in range(_width(model, name))]


def _quaternions(model: Model, space: ObjectSpace) -> list[int]:
    """Return the first index of each quaternion in a configuration."""
    return [model.slice_q(name).stop - 4 for name in space.joints if _width(model, name) in (4, 7)]
