"""``integrate`` and ``difference`` of a model in the functions of ``jax.numpy`` or ``torch``, which
differentiate them.

``xp`` is the library. Only calls that both libraries have are used.
"""

from __future__ import annotations

from typing import Any

from qdsim.arguments import instance
from qdsim.array_type import SAME
from qdsim.model import Model

__all__ = ["difference", "integrate"]


def integrate(xp: Any, model: Model, q: Any, v: Any) -> Any:
    """Compute q ⊞ v (..., nq) from q (..., nq) and v (..., nv)."""
    _check(model, ("q", q, "nq"), ("v", v, "nv"))
    parts = []
    for joint in model.description.joints:
        at, along = model.slice_q(joint.name), model.slice_v(joint.name)
        if joint.type in ("hinge", "slide"):
            parts.append(q[..., at] + v[..., along])
            continue
        if joint.type == "free":
            parts.append(q[..., at.start : at.start + 3] + v[..., along.start : along.start + 3])
        turn = _exp(xp, v[..., along.stop - 3 : along.stop])
        product = _product(xp, turn, q[..., at.stop - 4 : at.stop])
        parts.append(product / xp.sqrt(_square(xp, product)))
    return xp.concatenate(_alike(xp, parts), -1)


def difference(xp: Any, model: Model, q1: Any, q0: Any) -> Any:
    """Compute q1 ⊟ q0 (..., nv), with rotations of at most pi."""
    _check(model, ("q1", q1, "nq"), ("q0", q0, "nq"))
    parts = []
    for joint in model.description.joints:
        at = model.slice_q(joint.name)
        if joint.type in ("hinge", "slide"):
            parts.append(q1[..., at] - q0[..., at])
            continue
        if joint.type == "free":
            place = slice(at.start, at.start + 3)
            parts.append(q1[..., place] - q0[..., place])
        quat = slice(at.stop - 4, at.stop)
        p = q0[..., quat]
        inverse = xp.concatenate((p[..., :1], -p[..., 1:]), -1)
        parts.append(_log(xp, _product(xp, q1[..., quat], inverse)))
    return xp.concatenate(_alike(xp, parts), -1)


def _check(model: Model, *given: tuple[str, Any, str]) -> None:
    instance("model", model, Model)
    for name, array, size in given:
        width = getattr(model, size)
        if array.ndim < 1 or array.shape[-1] != width:
            raise ValueError(f"{name}: expected shape (..., {width}), got {tuple(array.shape)}")


def _alike(xp: Any, parts: list[Any]) -> list[Any]:
    """Broadcast all parts to the same leading dimensions."""
    lead = xp.broadcast_shapes(*(part.shape[:-1] for part in parts))
    return [xp.broadcast_to(part, (*lead, part.shape[-1])) for part in parts]


def _square(xp: Any, v: Any) -> Any:
    return xp.sum(v * v, -1)[..., None]


def _product(xp: Any, a: Any, b: Any) -> Any:
    """Multiply quaternions (..., 4)."""
    a0, a1, a2, a3 = (a[..., i] for i in range(4))
    b0, b1, b2, b3 = (b[..., i] for i in range(4))
    return xp.stack(
        (
            a0 * b0 - a1 * b1 - a2 * b2 - a3 * b3,
            a0 * b1 + a1 * b0 + a2 * b3 - a3 * b2,
            a0 * b2 - a1 * b3 + a2 * b0 + a3 * b1,
            a0 * b3 + a1 * b2 - a2 * b1 + a3 * b0,
        ),
        -1,
    )


def _exp(xp: Any, v: Any) -> Any:
    """Return the quaternion of a rotation vector; its derivatives at zero are those of the limit."""
    square = _square(xp, v)
    small = square < SAME * SAME
    angle = xp.sqrt(xp.where(small, 1.0, square))
    factor = xp.where(small, 0.5 - square / 48.0, xp.sin(0.5 * angle) / angle)
    cosine = xp.where(small, 1.0 - square / 8.0, xp.cos(0.5 * angle))
    return xp.concatenate((cosine, factor * v), -1)


def _log(xp: Any, p: Any) -> Any:
    """Return the rotation vector of a unit quaternion."""
    p = xp.where(p[..., :1] < 0.0, -p, p)
    w, v = p[..., :1], p[..., 1:]
    square = _square(xp, v)
    small = square < SAME * SAME
    s = xp.sqrt(xp.where(small, 1.0, square))
    return v * xp.where(small, 2.0 / w, 2.0 * xp.arctan2(s, w) / s)
