"""Where an object shall go, as the command line says it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from qdsim.cli.outcome import UnusableError

if TYPE_CHECKING:
    from qdsim.array_type import Array
    from qdsim.model import Model
    from qdsim.planning import ObjectSpace

__all__ = ["goal_of", "goal_words"]


def goal_of(model: Model, space: ObjectSpace, start: Array, text: str) -> Array:
    """``(nq,)`` the start with the object at its goal.

    Args:
        model, space: the model and the object's coordinates.
        start: ``(nq,)``.
        text: numbers as :func:`goal_words` says them, separated by blanks or commas; angles in radians, or as in
            ``90deg``; ``-`` keeps the start's.

    Raises:
        UnusableError: for anything else.
    """
    words = text.replace(",", " ").split()
    now, goal = start[space.q], np.array(start)
    if _is_free(model, space):
        goal[space.q] = _pose(space.body, now, words)
        return goal
    if len(words) != len(now):
        raise _refusal(model, space, text)
    angles = _angles(model, space)
    values = [_number(word, old, angle) for word, old, angle in zip(words, now, angles)]
    goal[space.q] = values
    for i in _quaternions(model, space):
        goal[i : i + 4] = _unit(goal[i : i + 4])
    return goal


def goal_words(model: Model, space: ObjectSpace) -> str:
    """What ``--goal`` takes for an object."""
    if _is_free(model, space):
        return "'x y z', 'x y z yaw' or 'x y z qw qx qy qz'"
    units = ["rad" if angle else "m" for angle in _angles(model, space)]
    names = [name for name in space.joints for _ in range(_width(model, name))]
    return repr(" ".join(names)) + f" ({', '.join(units)})"


def _refusal(model: Model, space: ObjectSpace, text: str) -> UnusableError:
    return UnusableError(
        f"--goal: expected {goal_words(model, space)} of {space.body!r}, got {text!r}"
    )


def _pose(body: str, now: Array, words: list[str]) -> Array:
    """A free object's entries ``(7,)``: its place, and its yaw or quaternion where it has one."""
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
    """A quaternion, turned about the vertical."""
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
                raise UnusableError(f"--goal: {word!r} stands where metres are expected")
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
    if angle and not unit and abs(value) > math.tau:  # more likely degrees
        raise UnusableError(
            f"--goal: {value:g} rad looks like degrees: write {value:g}deg, or {value:g}rad if it is meant"
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
    """Of each of the object's entries whether it is an angle."""
    kind = {joint.name: joint.type for joint in model.description.joints}
    return [kind[name] == "hinge" for name in space.joints for _ in range(_width(model, name))]


def _quaternions(model: Model, space: ObjectSpace) -> list[int]:
    """Where quaternions begin in a configuration."""
    return [model.slice_q(name).stop - 4 for name in space.joints if _width(model, name) in (4, 7)]
