"""Programs that others have published, as `qdsim.solve_cone_program` takes them (data/README.md).

Friction: 34 problems W, q, mu of three-dimensional Coulomb friction, as their convex relaxation in either form.

- forces: minimise ½ r'Wr + q'r over forces r with mu r_n >= |r_t| at every contact; W may be singular.
- velocities: minimise ½ |x|² subject to u = Fx + q with u_n >= mu |u_t|, where W = FF'; r is the multiplier.

Control: 62 QPs of model predictive control.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
DATA = Path(__file__).resolve().parent / "data"
ROUNDING = 1e-13  # of the largest eigenvalue of W: what is smaller, or negative, is zero


@dataclass(frozen=True)
class Program:
    """minimise ½ x'Qx + b'x subject to Gx + g in K, Cx + c = 0."""

    name: str
    Q: Matrix
    b: Matrix
    G: Matrix
    g: Matrix
    cones: list[tuple[str, int]]
    C: Matrix
    c: Matrix


def friction_names() -> list[str]:
    with np.load(DATA / "siconos_friction.npz") as data:
        return sorted({key.split("/")[0] for key in data.files})


def friction(name: str) -> tuple[Matrix, Matrix, Matrix]:
    """W (its symmetric part), q and mu of a problem."""
    with np.load(DATA / "siconos_friction.npz") as data:
        q, mu = data[f"{name}/q"], data[f"{name}/mu"]
        W = np.zeros(len(q) ** 2)
        W[np.cumsum(data[f"{name}/index"])] = data[f"{name}/values"]
    upper = W.reshape(len(q), len(q))
    return upper + np.triu(upper, 1).T, q, mu


def root(W: Matrix) -> Matrix:
    """F of full rank with W = FF'."""
    values, vectors = np.linalg.eigh(W)
    kept = values > ROUNDING * values[-1]
    return vectors[:, kept] * np.sqrt(values[kept])


def nearest_semidefinite(W: Matrix) -> Matrix:
    """W itself where its negative eigenvalues are rounding."""
    try:
        np.linalg.cholesky(W + ROUNDING * np.trace(W) * np.eye(len(W)))
    except np.linalg.LinAlgError:
        F = root(W)
        return F @ F.T
    return W


def friction_program(name: str, form: Literal["forces", "velocities"]) -> Program:
    W, q, mu = friction(name)
    cones = [("lorentz", 3)] * len(mu)
    scale = np.ones(len(q))
    if form == "forces":
        scale[::3] = mu  # (mu r_n, r_t)
        Q, b = nearest_semidefinite(W), q
        G, g = np.diag(scale), np.zeros(len(q))
    else:
        scale = np.repeat(mu, 3)
        scale[::3] = 1.0  # (u_n, mu u_t)
        F = root(W)
        Q, b = np.eye(F.shape[1]), np.zeros(F.shape[1])
        G, g = scale[:, None] * F, scale * q
    return Program(f"{name}, {form}", Q, b, G, g, cones, np.zeros((0, len(b))), np.zeros(0))


def complementarity_names(kind: str) -> list[str]:
    """Problems of a kind: "lcp", "mlcp", "rolling" or "planar"."""
    with np.load(DATA / "siconos_complementarity.npz") as data:
        return sorted({key.split("/")[1] for key in data.files if key.split("/")[0] == kind})


def complementarity(kind: str, name: str) -> tuple[Matrix, dict[str, Matrix]]:
    """A problem's matrix, and its other arrays: q, mu, free."""
    with np.load(DATA / "siconos_complementarity.npz") as data:
        own = {k.split("/")[2]: data[k] for k in data.files if k.startswith(f"{kind}/{name}/")}
    matrix = np.zeros(tuple(own.pop("shape")))
    matrix[own.pop("row"), own.pop("column")] = own.pop("value")
    return matrix, own


def control_names() -> list[str]:
    with np.load(DATA / "mpc_qps.npz") as data:
        return sorted({key.split("/")[0] for key in data.files})


def control_arrays(name: str) -> dict[str, Matrix]:
    """P, q, and those of G x <= h, A x = b, lb <= x <= ub that there are."""
    arrays = {}
    with np.load(DATA / "mpc_qps.npz") as data:
        for key in data.files:
            if key.split("/")[0] == name:
                value = data[key]  # or where the same array stands already
                arrays[key.split("/")[1]] = data[str(value)] if value.dtype.kind == "U" else value
    return arrays


def control_program(name: str) -> Program:
    a = control_arrays(name)
    n = len(a["q"])
    rows, offsets = [np.zeros((0, n))], [np.zeros(0)]
    if "G" in a:
        rows, offsets = [-a["G"]], [a["h"]]
    if "ub" in a:
        rows += [-np.eye(n), np.eye(n)]
        offsets += [a["ub"], -a["lb"]]
    G, g = np.vstack(rows), np.concatenate(offsets)
    G, g = G[np.isfinite(g)], g[np.isfinite(g)]
    C, c = (a["A"], -a["b"]) if "A" in a else (np.zeros((0, n)), np.zeros(0))
    return Program(name, a["P"], a["q"], G, g, [("orthant", len(g))], C, c)


def outside(cones: list[tuple[str, int]], w: Matrix) -> float:
    """How far w is outside its cones at most."""
    worst, row = 0.0, 0
    for kind, size in cones:
        part = w[row : row + size]
        row += size
        if kind == "orthant":
            worst = max(worst, float(np.max(-part, initial=0.0)))
        else:
            worst = max(worst, float(np.linalg.norm(part[1:]) - part[0]))
    return worst


def worst_residual(p: Program, x: Matrix, dual: Matrix, dual_eq: Matrix) -> float:
    """The largest of the KKT residuals, each beside the largest number that it is a sum of, 1 at least."""

    def size(*terms: Matrix) -> float:
        return max(1.0, *(float(np.abs(t).max(initial=0.0)) for t in terms))

    Qx, Gx, Cx = p.Q @ x, p.G @ x, p.C @ x
    Gz, Cy, w = p.G.T @ dual, p.C.T @ dual_eq, Gx + p.g
    gaps, row = [0.0], 0
    for kind, count in p.cones:
        part = w[row : row + count] * dual[row : row + count]
        row += count
        gaps.append(float(np.abs(part if kind == "orthant" else part.sum()).max(initial=0.0)))
    return max(
        float(np.abs(Qx + p.b - Gz - Cy).max()) / size(Qx, p.b, Gz, Cy),
        float(np.abs(Cx + p.c).max(initial=0.0)) / size(Cx, p.c),
        outside(p.cones, w) / size(Gx, p.g),
        outside(p.cones, dual) / size(dual),
        max(gaps) / max(1.0, abs(float(x @ (0.5 * Qx + p.b))), abs(float(p.b @ x))),
    )
