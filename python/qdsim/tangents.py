"""The rotation between MuJoCo's angular velocities, in the axes of a body, and those of this package."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np

from qdsim.array_type import Array
from qdsim.description import Description
from qdsim.description.arrays import rotation_matrix
from qdsim.description.checks import QUATERNION_TOLERANCE

__all__ = ["rotations", "turned"]


class Slices(Protocol):
    """A model, as far as its coordinates are concerned."""

    @property
    def description(self) -> Description:
        """The elements of the model."""
        ...

    def slice_q(self, name: str) -> slice:
        """Return the entries of q of a joint."""
        ...

    def slice_v(self, name: str) -> slice:
        """Return the entries of v of a joint."""
        ...


def rotations(model: Slices, q: Array) -> Iterator[tuple[Array, slice]]:
    """Yield the rotation matrices (..., 3, 3) of the free and ball joints, and their entries of v.

    Raises:
        ValueError: if a quaternion of q (..., nq) is not of unit length.
    """
    for name in (joint.name for joint in model.description.joints if not joint.scalar):
        end = model.slice_q(name).stop, model.slice_v(name).stop
        quat = q[..., end[0] - 4 : end[0]]
        length = np.linalg.norm(quat, axis=-1, keepdims=True)
        if not np.all(np.abs(length - 1.0) <= QUATERNION_TOLERANCE):
            raise ValueError(f"q: the quaternion of joint {name!r} is not of unit length")
        yield rotation_matrix(quat / length), slice(end[1] - 3, end[1])


def turned(model: Slices, q: Array, v: Array, name: str, *, to_mujoco: bool) -> Array:
    """Convert velocities (..., nv) at configurations (..., nq) to MuJoCo's or back; ``name`` is that of ``v``.

    With R the rotation of the quaternion in q, MuJoCo's vector is R' times that of this package.

    Raises:
        ValueError: if the leading dimensions do not broadcast, or a quaternion is not of unit length.
    """
    try:
        lead = np.broadcast_shapes(q.shape[:-1], v.shape[:-1])
    except ValueError:
        raise ValueError(
            f"{name}: shape {v.shape} does not broadcast with q of shape {q.shape}"
        ) from None
    out = np.array(np.broadcast_to(v, (*lead, v.shape[-1])))
    pattern = "...ij,...i->...j" if to_mujoco else "...ij,...j->...i"
    for rotation, part in rotations(model, q):
        out[..., part] = np.einsum(pattern, rotation, out[..., part])
    return out
