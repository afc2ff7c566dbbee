"""Tangent coordinates of many configurations at once.

Rotations are applied from the left, q ⊞ v = exp(v) q, so that d log(exp(v + dv) exp(-v)) = J(v) dv
with the left Jacobian J of SO(3). J transports A and B, whose columns and rows belong to the
samples' tangent spaces, to the tangent space at the nominal configuration.
"""

from __future__ import annotations

import numpy as np

from qdsim.array_type import Array
from qdsim.model import Model

__all__ = ["Chart"]

_SMALL = np.sqrt(np.sqrt(np.finfo(np.float64).eps))
"""Angle in rad below which the series are exact to rounding: their error is of fourth order."""


class Chart:
    """Retraction and its derivatives for a model, over leading dimensions."""

    def __init__(self, model: Model) -> None:
        flat_q: list[int] = []
        flat_v: list[int] = []
        self.rotations: list[tuple[slice, slice]] = []  # quaternion in q, rotation vector in v
        for joint in model.description.joints:
            at_q, at_v = model.slice_q(joint.name), model.slice_v(joint.name)
            flat = 1 if joint.scalar else (at_v.stop - at_v.start - 3)
            flat_q += range(at_q.start, at_q.start + flat)
            flat_v += range(at_v.start, at_v.start + flat)
            if not joint.scalar:
                self.rotations.append(
                    (slice(at_q.stop - 4, at_q.stop), slice(at_v.stop - 3, at_v.stop))
                )
        self.flat_q = np.array(flat_q, dtype=np.intp)
        self.flat_v = np.array(flat_v, dtype=np.intp)
        self.nv = model.nv

    def retract(self, q: Array, v: Array) -> Array:
        """Compute q ⊞ v, (..., nq)."""
        shape = np.broadcast_shapes(q.shape[:-1], v.shape[:-1])
        result = np.array(np.broadcast_to(q, (*shape, q.shape[-1])))
        result[..., self.flat_q] += v[..., self.flat_v]
        for at_q, at_v in self.rotations:
            turned = _quat_mul(_quat_exp(v[..., at_v]), q[..., at_q])
            result[..., at_q] = turned / np.linalg.norm(turned, axis=-1, keepdims=True)
        return result

    def difference(self, q1: Array, q0: Array) -> Array:
        """Compute q1 ⊟ q0, (..., nv), with rotations of at most pi."""
        shape = np.broadcast_shapes(q1.shape[:-1], q0.shape[:-1])
        result = np.empty((*shape, self.nv))
        result[..., self.flat_v] = q1[..., self.flat_q] - q0[..., self.flat_q]
        for at_q, at_v in self.rotations:
            inverse = q0[..., at_q] * np.array([1.0, -1.0, -1.0, -1.0])
            result[..., at_v] = _quat_log(_quat_mul(q1[..., at_q], inverse))
        return result

    def columns_at(self, matrix: Array, v: Array) -> Array:
        """Convert a matrix (..., n, nv) on the tangent space at q to one on the tangent space at q
        ⊞ v."""
        if not self.rotations:
            return matrix
        result = np.array(matrix)
        for _, at in self.rotations:
            result[..., at] = matrix[..., at] @ _left_jacobian(v[..., at])
        return result

    def rows_at(self, matrix: Array, v: Array) -> Array:
        """Convert a matrix (..., nv, n) with rows in the tangent space at c to one with rows in the
        tangent space at c ⊞ v."""
        if not self.rotations:
            return matrix
        result = np.array(matrix)
        for _, at in self.rotations:
            result[..., at, :] = _left_jacobian_inverse(v[..., at]) @ matrix[..., at, :]
        return result

    def rows_from(self, matrix: Array, v: Array) -> Array:
        """Apply the inverse of ``rows_at``."""
        if not self.rotations:
            return matrix
        result = np.array(matrix)
        for _, at in self.rotations:
            result[..., at, :] = _left_jacobian(v[..., at]) @ matrix[..., at, :]
        return result


def _quat_mul(a: Array, b: Array) -> Array:
    aw, ax, ay, az = np.moveaxis(a, -1, 0)
    bw, bx, by, bz = np.moveaxis(b, -1, 0)
    return np.stack(
        [
            aw * bw - ax * bx - ay * by - az * bz,
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
        ],
        axis=-1,
    )


def _quat_exp(v: Array) -> Array:
    angle = np.linalg.norm(v, axis=-1, keepdims=True)
    return np.concatenate([np.cos(angle / 2), 0.5 * np.sinc(angle / (2 * np.pi)) * v], axis=-1)


def _quat_log(quat: Array) -> Array:
    quat = np.where(quat[..., :1] < 0, -quat, quat)
    sine = np.linalg.norm(quat[..., 1:], axis=-1, keepdims=True)
    half = np.arctan2(sine, quat[..., :1])
    # For small angles half / sine tends to 1.
    factor = np.where(sine > 1e-8, half / np.where(sine > 1e-8, sine, 1.0), 1.0)
    logarithm: Array = 2.0 * factor * quat[..., 1:]
    return logarithm


def _cross_matrix(v: Array) -> Array:
    x, y, z = np.moveaxis(v, -1, 0)
    o = np.zeros_like(x)
    rows = [np.stack(row, axis=-1) for row in ((o, -z, y), (z, o, -x), (-y, x, o))]
    return np.stack(rows, axis=-2)


def _left_jacobian(v: Array) -> Array:
    """1 + (1 - cos t)/t^2 [v] + (t - sin t)/t^3 [v]^2"""
    t = np.linalg.norm(v, axis=-1)[..., None, None]
    small = t < _SMALL
    s = np.where(small, 1.0, t)
    first = np.where(small, 0.5 - t * t / 24, 2.0 * np.sin(s / 2) ** 2 / s**2)
    second = np.where(small, 1.0 / 6 - t * t / 120, (s - np.sin(s)) / s**3)
    cross = _cross_matrix(v)
    jacobian: Array = np.eye(3) + first * cross + second * (cross @ cross)
    return jacobian


def _left_jacobian_inverse(v: Array) -> Array:
    """1 - [v]/2 + (1 - (t/2) cot(t/2))/t^2 [v]^2"""
    t = np.linalg.norm(v, axis=-1)[..., None, None]
    small = t < _SMALL
    s = np.where(small, 1.0, t)
    second = np.where(small, 1.0 / 12 + t * t / 720, (1.0 - s / 2 / np.tan(s / 2)) / s**2)
    cross = _cross_matrix(v)
    jacobian: Array = np.eye(3) - 0.5 * cross + second * (cross @ cross)
    return jacobian
