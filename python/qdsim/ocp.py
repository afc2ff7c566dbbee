"""Linear-quadratic optimal control with bounds: the quadratic program inside trajectory optimisation.

minimise    sum_{t=0}^{T-1}  1/2 u_t'R_t u_t + r_t'u_t + 1/2 d_t'S_t d_t + s_t'd_t
                             + 1/2 x_{t+1}'Q_t x_{t+1} + q_t'x_{t+1}
subject to  x_{t+1} = A_t x_t + B_t u_t + c_t,   d_t = u_t - u_{t-1}
            lower <= x_{t+1}, u_t, d_t <= upper
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from qdsim import _core
from qdsim._core import LARGEST, SolverInfo
from qdsim.arguments import finite, flag, integer, number, real_array, reals
from qdsim.array_type import ROUNDING, Array

__all__ = ["OcpSolution", "solve_ocp_qp"]


@dataclass(frozen=True, slots=True, eq=False)
class OcpSolution:
    """A solution, its multipliers and its feedback.

    Attributes:
        x: States (T + 1, nx), the initial one included.
        u: Inputs (T, nu).
        costate: Derivative (T, nx) of the optimal cost with respect to c.
        x_dual: Multipliers (T, nx) of the bounds on x_1 .. x_T: that of the upper bound minus that
            of the lower one.
        u_dual, d_dual: The same (T, nu) for the inputs and their changes.
        x_gain, u_gain: Feedback (T, nu, nx) and (T, nu, nu): for another state x and previous input
            w than x[t] and u[t - 1], the input u[t] + x_gain[t] (x - x[t]) + u_gain[t] (w - u[t -
            1]) is optimal while the same bounds are active. Inputs at a bound do not react. None if
            not requested.
        info: Status, effort and residuals: primal_residual in units of the bounds, dual_residual in
            those of the gradient with respect to u, complementarity in those of the cost.
    """

    x: Array
    u: Array
    costate: Array
    x_dual: Array
    u_dual: Array
    d_dual: Array
    x_gain: Array | None
    u_gain: Array | None
    info: SolverInfo


def solve_ocp_qp(
    A: npt.ArrayLike,
    B: npt.ArrayLike,
    c: npt.ArrayLike | None = None,
    *,
    x_first: npt.ArrayLike | None = None,
    u_before: npt.ArrayLike | None = None,
    Q: npt.ArrayLike | None = None,
    q: npt.ArrayLike | None = None,
    R: npt.ArrayLike | None = None,
    r: npt.ArrayLike | None = None,
    S: npt.ArrayLike | None = None,
    s: npt.ArrayLike | None = None,
    x_lower: npt.ArrayLike | None = None,
    x_upper: npt.ArrayLike | None = None,
    u_lower: npt.ArrayLike | None = None,
    u_upper: npt.ArrayLike | None = None,
    d_lower: npt.ArrayLike | None = None,
    d_upper: npt.ArrayLike | None = None,
    gains: bool = False,
    tolerance: float = 1e-9,
    iteration_limit: int = 100,
) -> OcpSolution:
    """Solve a linear-quadratic optimal control problem with bounds.

    An interior-point method whose Newton systems are solved by Riccati recursions on the state and
    the previous input (Rao, Wright and Rawlings 1998), so that the time grows linearly with the
    horizon T. States that enter no A_t, depend on no state and have a separable cost (a robot that
    follows its commands) are eliminated.

    Args:
        A: Dynamics (T, nx, nx).
        B: Effect of the inputs (T, nx, nu).
        c: Offsets (T, nx); None is zero, also for all following arguments.
        x_first: Initial state (nx,).
        u_before: Input before the first one (nu,), for d_0.
        Q, q: Cost of x_1 .. x_T: symmetric, positive semidefinite (T, nx, nx), and linear (T, nx).
        R, r: Cost of the inputs, (T, nu, nu) and (T, nu).
        S, s: Cost of their changes d, (T, nu, nu) and (T, nu). A weight without the leading
            dimension T, (nx, nx) or (nu, nu), holds for every stage.
        x_lower, x_upper: Bounds (T, nx) of x_1 .. x_T, or (nx,) for all of them; infinite for none.
            Bounds beyond 1e100 count as infinite; other numbers beyond 1e100 are errors.
        u_lower, u_upper: Bounds (T, nu) or (nu,) of the inputs.
        d_lower, d_upper: Bounds (T, nu) or (nu,) of their changes.
        gains: Whether to return the feedback gains.
        tolerance: Relative, on residuals and complementarity.
        iteration_limit: Iterations after which SolverError is raised.

    Raises:
        TypeError, ValueError: if an argument is invalid; the message names it.
        SolverError: for infeasible bounds, an unbounded cost, or no convergence; its ``info`` has
            the residuals.
    """
    T, nx, nu = _sizes(B)
    B_array = _real("B", B, (T, nx, nu))
    A_array = _real("A", A, (T, nx, nx))
    tolerance = number("tolerance", tolerance, above=0, below=1)
    iteration_limit = integer("iteration_limit", iteration_limit, least=1)
    x_range = _bounds("x", x_lower, x_upper, T, nx)
    u_range = _bounds("u", u_lower, u_upper, T, nu)
    d_range = _bounds("d", d_lower, d_upper, T, nu)
    found = _core._solve_ocp_qp(
        A_array, B_array, _rows("c", c, (T, nx)), _rows("x_first", x_first, (nx,)),
        _rows("u_before", u_before, (nu,)), _weight("Q", Q, T, nx), _rows("q", q, (T, nx)),
        _weight("R", R, T, nu), _rows("r", r, (T, nu)), _weight("S", S, T, nu),
        _rows("s", s, (T, nu)), *x_range, *u_range, *d_range,
        flag("gains", gains), 1, tolerance, iteration_limit,
    )  # fmt: skip
    return OcpSolution(*found[:9])


def _sizes(B: npt.ArrayLike) -> tuple[int, int, int]:
    """Return T, nx and nu, after checking that they are within the limits of the core."""
    shape = real_array("B", B).shape
    if len(shape) != 3 or 0 in shape:
        raise ValueError(f"B: expected shape (T, nx, nu), none of them 0, got {shape}")
    T, nx, nu = shape
    if T > 2**20 or max(nx, nu) > 2**13 or T * (nx + nu) ** 2 > 10**9:
        raise ValueError(f"B: the problem of shape {shape} is too large")
    return T, nx, nu


def _shaped(name: str, value: npt.ArrayLike, shapes: tuple[tuple[int, ...], ...]) -> Array:
    given = real_array(name, value)
    if given.shape not in shapes:
        wanted = " or ".join(map(str, shapes))
        raise ValueError(f"{name}: expected shape {wanted}, got {given.shape}")
    return np.require(reals(name, given), requirements="C")


def _real(name: str, value: npt.ArrayLike, *shapes: tuple[int, ...]) -> Array:
    """Check that an array is finite, not too large, and of one of these shapes."""
    array = finite(name, _shaped(name, value, shapes))
    return _moderate(name, array, np.abs(array) > LARGEST)


def _moderate(name: str, array: Array, bad: npt.NDArray[np.bool_]) -> Array:
    if bad.any():
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        raise ValueError(
            f"{name}: element {list(where)} is {array[where]:g}, and products of numbers beyond "
            f"{LARGEST:g} are more than double precision can carry"
        )
    return array


def _rows(name: str, value: npt.ArrayLike | None, shape: tuple[int, ...]) -> Array | None:
    if value is None:
        return None
    return _real(name, value, shape)


def _weight(name: str, value: npt.ArrayLike | None, T: int, n: int) -> Array | None:
    if value is None:
        return None
    array = _real(name, value, (T, n, n), (n, n))
    scale = np.abs(array).max(initial=0.0)
    if np.abs(array - array.swapaxes(-1, -2)).max(initial=0.0) > ROUNDING * scale:
        raise ValueError(f"{name}: not symmetric")
    smallest = float(np.linalg.eigvalsh(array).min())
    if smallest < -ROUNDING * n * scale:
        raise ValueError(
            f"{name}: not positive semidefinite, its smallest eigenvalue is {smallest:.3g}"
        )
    return np.ascontiguousarray(np.broadcast_to(array, (T, n, n)))


def _bounds(
    name: str, lower: npt.ArrayLike | None, upper: npt.ArrayLike | None, T: int, n: int
) -> tuple[Array | None, Array | None]:
    ends: list[Array | None] = []
    for end, value in (("lower", lower), ("upper", upper)):
        if value is None:
            ends.append(None)
            continue
        named = f"{name}_{end}"
        array = finite(named, _shaped(named, value, ((T, n), (n,))), infinite=True)
        _moderate(named, array, (array if end == "lower" else -array) >= LARGEST)
        ends.append(np.ascontiguousarray(np.broadcast_to(array, (T, n))))
    low, high = ends
    if low is not None and high is not None and (low > high).any():
        t, i = (int(k) for k in np.argwhere(low > high)[0])
        raise ValueError(
            f"{name}_lower: {low[t, i]:g} at [{t}, {i}] exceeds {name}_upper, {high[t, i]:g}"
        )
    return low, high
