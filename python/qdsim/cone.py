"""The cone solver of steps, for general programs of this form:

    minimise    1/2 x'Qx + b'x
    subject to  Gx + g in K,   Cx + c = 0

K is a product of orthants and Lorentz cones {w : w_0 >= |w_1..|}, in row order. Rows may be
compliant, with a compliance R >= 0, or have a multiplier that is limited to an interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy.typing as npt

from qdsim import _core
from qdsim._core import SolverInfo
from qdsim.array_type import Array

__all__ = ["ConeSolution", "solve_cone_program"]


@dataclass(frozen=True, slots=True, eq=False)
class ConeSolution:
    """A solution and its multipliers: Qx + b = G'dual + C'dual_eq, dual in K, dual ∘ slack =
    target_mu e.

    The slack of a row with compliance R is Gx + g + R dual. For an interval, lower <= dual <=
    upper: the slack is positive only if dual = lower, negative only if dual = upper, and with a
    barrier it is target_mu / (dual - lower) - target_mu / (upper - dual).

    Attributes:
        x: Minimiser (n,).
        slack: Gx + g + R dual (m,).
        dual: Multipliers of the cones (m,).
        dual_eq: Multipliers of the equalities (p,).
        info: Status, effort and residuals.
    """

    x: Array
    slack: Array
    dual: Array
    dual_eq: Array
    info: SolverInfo


def solve_cone_program(
    Q: npt.ArrayLike,
    b: npt.ArrayLike,
    G: npt.ArrayLike,
    g: npt.ArrayLike,
    cones: Sequence[tuple[str, int]],
    C: npt.ArrayLike | None = None,
    c: npt.ArrayLike | None = None,
    target_mu: float | npt.ArrayLike = 0.0,
    *,
    tolerance: float = 1e-9,
    iteration_limit: int = 100,
    polish: bool = True,
    warm_start: ConeSolution | None = None,
    compliance: npt.ArrayLike | None = None,
    compliance_eq: npt.ArrayLike | None = None,
    lower: npt.ArrayLike | None = None,
    upper: npt.ArrayLike | None = None,
) -> ConeSolution:
    """Solve a convex quadratic program over orthants and Lorentz cones, with compliant rows and
    intervals.

    The main method is a primal-dual interior-point method with Nesterov-Todd scaling (1997) and
    Mehrotra's predictor-corrector (1992), in blocks of 4 x 4, sparse if rows couple few variables.
    A positive ``target_mu`` gives a point of the central path: the minimiser of the cost minus
    target_mu log(w) per orthant row and target_mu / 2 log(w_0² -
    w_1..|²) per Lorentz cone.

    Args:
        Q: Cost matrix (n, n), symmetric, positive semidefinite.
        b: Linear cost (n,).
        G: Constraint matrix (m, n).
        g: Constraint offset (m,).
        cones: ("orthant", rows), ("lorentz", rows) and ("interval", rows) in row order; their rows
            add up to m.
        C: Equality matrix (p, n), or None.
        c: Equality offset (p,), or None.
        target_mu: Barrier parameter >= 0 in units of the cost, one number or one per entry of
            ``cones``; 0 for the exact solution.
        tolerance: Relative, on primal and dual residual and complementarity.
        iteration_limit: Interior-point iterations after which SolverError is raised.
        polish: Whether an exact solution may be refined by Newton's method on the active set, which
            reduces the residuals to rounding.
        warm_start: The solution of a program of the same sizes. It saves time if the active set, or
            the point on the central path, is similar, and costs little otherwise. The result has
            the same certificate; multipliers that are not unique depend on it.
        compliance: R >= 0 of every row, one number or (m,), in units of g per multiplier; None: all
            rows are rigid. dual = P_K(-R⁻¹(Gx + g)), in the norm of R: a spring of stiffness 1 / R
            instead of a rigid constraint.
        compliance_eq: R >= 0 of every equality, one number or (p,): Cx + c + R dual_eq = 0.
        lower, upper: Limits of the multipliers of all interval rows, one number or one per such
            row, in row order; lower <= upper, infinite for none. dual = P_[lower, upper](-R⁻¹(Gx +
            g)); with R = 0 a force that sticks up to its limit and then slips, as dry friction.

    Raises:
        TypeError, ValueError: if an argument is invalid; the message names it.
        SolverError: if there is no solution (infeasible, unbounded), or none was found; its
            ``info`` has the residuals.
    """
    start = None if warm_start is None else _start_of(warm_start)
    return ConeSolution(
        *_core._solve_cone_program(
            Q,
            b,
            G,
            g,
            cones,
            C,
            c,
            target_mu,
            tolerance,
            iteration_limit,
            polish,
            start,
            compliance,
            compliance_eq,
            lower,
            upper,
        )
    )


def _start_of(start: ConeSolution) -> tuple[Array, Array, Array]:
    if not isinstance(start, ConeSolution):
        raise TypeError(f"warm_start: expected a ConeSolution, got {type(start).__name__}")
    return start.x, start.dual, start.dual_eq
