"""Conversion between MuJoCo's velocities and those of this package.

In a velocity ``v`` (nv) of qdsim, the angular velocity of a free joint is in world axes and that of
a ball joint in the axes of the frame before the joint. In MuJoCo's ``qvel`` both are in the axes of
the body. All other entries agree: with R the joint's own rotation, qvel = R' v. Since R depends on
q, derivatives also contain the derivative of R, which ``mujoco_velocity_jacobians`` computes.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from qdsim.arguments import finite, instance, reals
from qdsim.array_type import Array
from qdsim.model import Model
from qdsim.tangents import rotations, turned

__all__ = ["from_mujoco_velocity", "mujoco_velocity_jacobians", "to_mujoco_velocity"]


def to_mujoco_velocity(model: Model, q: npt.ArrayLike, v: npt.ArrayLike) -> Array:
    """Convert a velocity to MuJoCo's qvel.

    Args:
        model: The model.
        q: Configurations (..., nq). Leading dimensions of both arrays broadcast.
        v: Velocities (..., nv), m/s or rad/s; angular velocities of free joints in world axes, of
            ball joints in the axes before the joint.

    Returns:
        MuJoCo's qvel (..., nv), with angular velocities of free and ball joints in the body's axes.

    Raises:
        TypeError, ValueError: if an argument is invalid; the message names it.
    """
    return turned(model, *_checked(model, q, v, "v"), "v", to_mujoco=True)


def from_mujoco_velocity(model: Model, q: npt.ArrayLike, qvel: npt.ArrayLike) -> Array:
    """Convert MuJoCo's qvel to a velocity of the model.

    Args:
        model: The model.
        q: Configurations (..., nq). Leading dimensions of both arrays broadcast.
        qvel: MuJoCo's velocities (..., nv), m/s or rad/s.

    Returns:
        Velocities (..., nv), as in ``to_mujoco_velocity``.

    Raises:
        TypeError, ValueError: if an argument is invalid; the message names it.
    """
    return turned(model, *_checked(model, q, qvel, "qvel"), "qvel", to_mujoco=False)


def mujoco_velocity_jacobians(
    model: Model, q: npt.ArrayLike, v: npt.ArrayLike
) -> tuple[Array, Array]:
    """Compute the derivatives of ``to_mujoco_velocity`` at one state with respect to q (tangent
    coordinates) and v.

    Args:
        model: The model.
        q: Configuration (nq,).
        v: Velocity (nv,), m/s or rad/s.

    Returns:
        Two matrices V and W (nv, nv). A tangent in MuJoCo's coordinates (of mj_integratePos) is W
        times that of this package. The derivatives of v with respect to q and qvel are -inv(W) V
        and inv(W), and inv(W) is the transpose of W.

    Raises:
        TypeError, ValueError: if an argument is invalid; the message names it.
    """
    q, v = _checked(model, q, v, "v")
    if v.ndim != 1 or q.ndim != 1:
        raise ValueError(f"v: expected one velocity of shape ({model.nv},), got shape {v.shape}")
    by_q, by_v = np.zeros((model.nv, model.nv)), np.eye(model.nv)
    for rotation, part in rotations(model, q):
        x, y, z = v[part]
        cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
        by_q[part, part] = rotation.T @ cross
        by_v[part, part] = rotation.T
    return by_q, by_v


def _checked(model: Model, q: npt.ArrayLike, v: npt.ArrayLike, name: str) -> tuple[Array, Array]:
    instance("model", model, Model)
    found = []
    for text, value, size in (("q", q, model.nq), (name, v, model.nv)):
        array = reals(text, value)
        if array.ndim < 1 or array.shape[-1] != size:
            raise ValueError(f"{text}: expected shape (..., {size}), got {array.shape}")
        found.append(finite(text, array))
    return found[0], found[1]
