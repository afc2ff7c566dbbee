"""Clarabel as a witness. Its word counts where it says "Solved" and what it returns meets the optimality conditions,
worked out here from its numbers alone; elsewhere it has none. How far its iterations come differs from machine to
machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import clarabel
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Array = NDArray[np.float64]
KINDS = {
    "zero": clarabel.ZeroConeT,
    "orthant": clarabel.NonnegativeConeT,
    "lorentz": clarabel.SecondOrderConeT,
}
# Asked for one after the other until it says "Solved": the gap beside the objective, and feasibility.
TOLERANCES = ((1e-12, 1e-12), (1e-11, 1e-10), (1e-10, 1e-8))
ACCEPTED = 1e-7  # of the terms that a residual is the sum of

FAR = 1e4  # sum of the absolute values of unknowns up to which there is no point where it says "infeasible"


@dataclass(frozen=True)
class Answer:
    x: Array
    objective: float


def outside(kind: str, w: Array, dual: bool) -> float:
    """How far w is outside a cone, or outside its dual."""
    if kind == "zero":
        return 0.0 if dual else float(np.abs(w).max(initial=0.0))
    if kind == "orthant":
        return float(np.max(-w, initial=0.0))
    if kind == "lorentz":
        return float(np.linalg.norm(w[1:]) - w[0])
    if dual:  # of {y exp(x / y) <= z, y > 0}
        return float(max(w[0], -w[0] * np.exp(w[1] / w[0] - 1.0) - w[2]))
    return float(max(-w[1], w[1] * np.exp(w[0] / w[1]) - w[2]))


def relative(residual: Array, *terms: Array) -> float:
    return float(np.max(np.abs(residual) / (1.0 + sum(np.abs(t) for t in terms)), initial=0.0))


def cones_hold(cones: list[tuple[str, int]], w: Array, dual: bool) -> bool:
    at = 0
    for kind, dim in cones:
        part = w[at : at + dim]
        at += dim
        if dim and not outside(kind, part, dual) <= ACCEPTED * (1.0 + np.abs(part).max()):
            return False
    return True


class Program:
    """minimise 1/2 x'Px + q'x subject to b - Ax in the product of the cones: ("zero" | "orthant" | "lorentz" |
    "exponential", rows) each. P is symmetric, matrices dense or sparse."""

    def __init__(self, P: Any, q: Array, A: Any, b: Array, cones: list[tuple[str, int]]) -> None:
        self.P, self.A = sparse.csc_matrix(P), sparse.csc_matrix(A)
        self.q, self.b = np.asarray(q, dtype=float), np.asarray(b, dtype=float)
        self.cones = cones
        theirs = [
            clarabel.ExponentialConeT() if kind == "exponential" else KINDS[kind](dim)
            for kind, dim in cones
        ]
        upper = sparse.triu(self.P, format="csc")
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.max_threads = 1
        for gap, settings.tol_feas in TOLERANCES:
            settings.tol_gap_abs = settings.tol_gap_rel = gap
            solver = clarabel.DefaultSolver(upper, self.q, self.A, self.b, theirs, settings)
            self.raw = solver.solve()
            self.status = str(self.raw.status)
            if self.status in ("Solved", "PrimalInfeasible"):
                break

    def residual(self) -> float:
        """The largest residual of what Clarabel returned."""
        x, s, z = (np.array(v) for v in (self.raw.x, self.raw.s, self.raw.z))
        if not (cones_hold(self.cones, s, False) and cones_hold(self.cones, z, True)):
            return np.inf
        Px, Ax, Az = self.P @ x, self.A @ x, self.A.T @ z
        rows = relative(Ax + s - self.b, abs(self.A) @ abs(x), s, self.b)
        columns = relative(Px + self.q + Az, abs(self.P) @ abs(x), self.q, abs(self.A).T @ abs(z))
        return max(rows, columns, abs(float(s @ z)) / (1.0 + abs(self.raw.obj_val)))

    def answer(self) -> Answer | None:
        if self.status != "Solved" or not self.residual() <= ACCEPTED:
            return None
        return Answer(np.array(self.raw.x), float(self.raw.obj_val))

    def is_infeasible(self) -> bool:
        """Farkas: z in the dual cone with A'z = 0 and b'z < 0; what A'z is instead leaves points beyond FAR alone."""
        if self.status != "PrimalInfeasible":
            return False
        z = np.array(self.raw.z)
        z /= -float(self.b @ z)
        return bool(
            cones_hold(self.cones, z, True)
            and self.b @ z < 0.0
            and np.abs(self.A.T @ z).max() * FAR <= 1.0
        )
