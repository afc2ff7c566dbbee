"""Products of a step's derivatives with vectors."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from qdsim.array_type import Array
from qdsim.mujoco.linearize import linearize
from qdsim.mujoco.rows import rows_of


def jvp(
    model: Any,
    data: Any,
    state: npt.ArrayLike | None = None,
    control: npt.ArrayLike | None = None,
    *,
    contacts: Literal["exact", "differences"] = "exact",
) -> Array:
    """Compute the Jacobian-vector product of one ``mj_step``: A @ state + B @ control.

    Args:
        model: A ``mujoco.MjModel``.
        data: Its ``mujoco.MjData``; updated as in ``linearize``.
        state: Changes (..., 2 nv + na) of the state: [dq, dv, act], dq in MuJoCo's tangent
            coordinates. None: zero.
        control: Changes (..., nu) of the controls. None: zero. Leading dimensions of both
            broadcast.
        contacts: As in ``linearize``.

    Returns:
        Changes (..., 2 nv + na) of the next state.

    Raises:
        TypeError, ValueError, ArithmeticError: As ``linearize``; also if both tangents are None, or
            one has a wrong shape or numbers that are not finite.
    """
    if state is None and control is None:
        raise ValueError("state: expected a tangent of the state or of the controls, got neither")
    A, B, _, _ = linearize(model, data, contacts=contacts)
    parts: list[Array] = []
    if state is not None:
        parts.append(np.matmul(rows_of("state", state, A.shape[1]), A.T))
    if control is not None:
        parts.append(np.matmul(rows_of("control", control, B.shape[1]), B.T))
    try:
        return parts[0] if len(parts) == 1 else np.add(*parts)
    except ValueError:
        leads = " and ".join(str(part.shape[:-1]) for part in parts)
        raise ValueError(
            f"control: leading dimensions of state and control do not broadcast: {leads}"
        ) from None


def vjp(
    model: Any,
    data: Any,
    cotangent: npt.ArrayLike,
    *,
    contacts: Literal["exact", "differences"] = "exact",
) -> tuple[Array, Array]:
    """Compute the vector-Jacobian product of one ``mj_step``: gradients with respect to the state
    and controls before it.

    Args:
        model: A ``mujoco.MjModel``.
        data: Its ``mujoco.MjData``; updated as in ``linearize``.
        cotangent: Gradients (..., 2 nv + na) of functions of the next state with respect to [dq,
            dv, act].
        contacts: As in ``linearize``.

    Returns:
        The gradients with respect to the state, (..., 2 nv + na), A.T @ cotangent, and with respect to
        the controls, (..., nu), B.T @ cotangent.

    Raises:
        TypeError, ValueError, ArithmeticError: As ``linearize``; also if the cotangent has a wrong
            shape or numbers that are not finite.
    """
    A, B, _, _ = linearize(model, data, contacts=contacts)
    rows = rows_of("cotangent", cotangent, len(A))
    return rows @ A, rows @ B
