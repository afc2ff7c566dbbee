"""The cone solver on contact programs, beside Clarabel, QOCO, DAQP and PIQP.

Forty programs of each kind (`tests/data`): a planar hand (7 unknowns), b hand and ball (22), c the same with
its 40 closest pairs, d ten boxes in stacks (69), e point cloud with torsion (13). Three questions:

- SOCP: exact friction cones. Clarabel and QOCO solve the same program.
- Barrier: log-barrier at kappa = 1e2 and 1e4. Nobody else solves it; the others' column is their exact SOCP.
- Pyramid: friction pyramids, a QP. DAQP and PIQP solve the same program.

Contenders take turns on every program of every round, one thread; a program's time is its best over the
rounds, and the table gives the median and the minimum over programs and ratios of medians. Times are each
contender's own: ours is the whole C call (checks, scaling, solve, residuals) as a mean over a loop;
Clarabel's, QOCO's and PIQP's the solve time they report, without their set-up, which for us is inside; DAQP's
the solve time plus the set-up that factors the cost. Everyone gets, per kind, the loosest tolerance with
which the most programs come out with residuals of 1e-8 or below (m, N, J), measured here from the program's
own numbers (ours: the default); `ok` says how many do where not all.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import clarabel
import daqp
import numpy as np
import numpy.typing as npt
import piqp
import qoco
import scipy.sparse as sp

import qdsim
from qdsim import _core

Array = npt.NDArray[np.float64]
DATA = Path(__file__).resolve().parents[1] / "tests" / "data"
KINDS = ["a_planar_hand", "b_allegro_ball", "c_allegro_40", "d_block_stack", "e_point_cloud"]
WANTED = 1e-8
LOOP = 20


@dataclass(frozen=True)
class Program:
    """minimise 1/2 x'Qx + b'x subject to Gx + g in Lorentz cones of `dims` rows, or >= 0 if None."""

    Q: Array
    b: Array
    G: Array
    g: Array
    dims: npt.NDArray[np.int32] | None

    @property
    def cones(self) -> list[tuple[str, int]]:
        if self.dims is None:
            return [("orthant", len(self.g))]
        return [("lorentz", int(d)) for d in self.dims]


Answer = tuple[float, Array, Array]  # seconds, x, multipliers


def load(kind: str) -> tuple[list[Program], list[Program]]:
    """Return the forty cone programs of a kind, and their pyramid versions."""
    data = np.load(DATA / f"contact_socp_{kind}.npz")
    cones, pyramids = [], []
    for i in range(len(data["Q"])):
        Q, b = data["Q"][i], data["b"][i]
        rows = slice(*data["row_start"][i : i + 2])
        dims = data["cone_dim"][slice(*data["cone_start"][i : i + 2])].astype(np.int32)
        G, g = np.ascontiguousarray(data["G"][rows]), data["g"][rows]
        cones.append(Program(Q, b, G, g, dims))
        rays, offsets = [], []
        for first, last in itertools.pairwise(np.concatenate([[0], np.cumsum(dims)])):
            for s in G[first + 1 : last]:
                if s.any():
                    rays += [G[first] + s, G[first] - s]
                    offsets += [g[first], g[first]]
        pyramids.append(Program(Q, b, np.array(rays), np.array(offsets), None))
    return cones, pyramids


def worst_residual(p: Program, x: Array, dual: Array, mu: float) -> float:
    """Return the largest of primal, dual and complementarity, in m, N and J."""
    w = p.G @ x + p.g
    worst = [np.abs(p.Q @ x + p.b - p.G.T @ dual).max()]
    if p.dims is None:
        worst += [(-w).max(), (-dual).max(), np.abs(w * dual - mu).max()]
        return float(max(worst))
    for first, last in itertools.pairwise(np.concatenate([[0], np.cumsum(p.dims)])):
        v, z = w[first:last], dual[first:last]
        worst += [np.linalg.norm(v[1:]) - v[0], np.linalg.norm(z[1:]) - z[0]]
        worst += [abs(v @ z - 2 * mu), np.abs(v[0] * z[1:] + z[0] * v[1:]).max()]
    return float(max(worst))


def with_qdsim(p: Program, mu: float, _tolerance: float) -> Answer:
    entries = len(p.cones)
    kinds = np.full(entries, 0 if p.dims is None else 1, dtype=np.int32)
    dims = np.array([dim for _, dim in p.cones], dtype=np.int32)
    target = np.full(entries, mu if p.dims is None else 2 * mu)
    seconds = _core._cone_benchmark(p.Q, p.b, p.G, p.g, kinds, dims, target, LOOP)
    s = qdsim.solve_cone_program(p.Q, p.b, p.G, p.g, p.cones, target_mu=target)
    return seconds, s.x, s.dual


def with_clarabel(p: Program, _mu: float, tolerance: float) -> Answer:
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    for name in ("tol_gap_abs", "tol_gap_rel", "tol_feas"):
        setattr(settings, name, tolerance)
    cones = [clarabel.SecondOrderConeT(dim) for _, dim in p.cones]
    Q, A = sp.triu(sp.csc_matrix(p.Q)).tocsc(), sp.csc_matrix(-p.G)
    out = clarabel.DefaultSolver(Q, p.b, A, p.g, cones, settings).solve()
    return out.solve_time, np.array(out.x), np.array(out.z)


def with_qoco(p: Program, _mu: float, tolerance: float) -> Answer:
    solver = qoco.QOCO()
    Q = sp.triu(sp.csc_matrix(p.Q)).tocsc()
    m, dims = len(p.g), np.array([dim for _, dim in p.cones])
    solver.setup(
        len(p.b), m, 0, Q, p.b, None, None, sp.csc_matrix(-p.G), p.g, 0, len(dims), dims,
        abstol=tolerance, reltol=tolerance, verbose=0,
    )  # fmt: skip
    out = solver.solve()
    return out.solve_time_sec, np.array(out.x), np.array(out.z)


def with_daqp(p: Program, _mu: float, tolerance: float) -> Answer:
    m = len(p.g)
    x, _, _, info = daqp.solve(
        p.Q, p.b, -p.G, p.g, np.full(m, -1e30), np.zeros(m, dtype=np.int32), primal_tol=tolerance
    )
    return info["solve_time"] + info["setup_time"], x, np.array(info["lam"])


def with_piqp(p: Program, _mu: float, tolerance: float) -> Answer:
    solver = piqp.DenseSolver()
    solver.settings.compute_timings = True
    solver.settings.eps_abs = solver.settings.eps_rel = tolerance
    solver.settings.eps_duality_gap_abs = solver.settings.eps_duality_gap_rel = tolerance
    solver.setup(p.Q, p.b, None, None, -p.G, None, p.g)
    solver.solve()
    result = solver.result
    z = result.z_u if hasattr(result, "z_u") else result.z
    return result.info.solve_time, np.array(result.x), np.array(z)


Contender = Callable[[Program, float, float], Answer]


@dataclass
class Column:
    """Best seconds per program and worst residual of one contender."""

    seconds: Array
    residual: Array

    @property
    def median(self) -> float:
        return float(np.median(self.seconds)) * 1e6

    def cell(self) -> str:
        ok = int((self.residual <= WANTED).sum())
        mark = "" if ok == len(self.residual) else f", **{ok} ok**"
        return f"{self.median:.1f} ({self.seconds.min() * 1e6:.1f}{mark})"


def find_tolerance(programs: list[Program], run: Contender) -> float:
    """Return the loosest tolerance with which the most programs reach the wanted residual."""
    if run is with_qdsim:
        return WANTED
    best = (-1, WANTED)
    for tolerance in (1e-8, 1e-9, 1e-10, 1e-11, 1e-12):
        answers = ((p, run(p, 0.0, tolerance)) for p in programs)
        ok = sum(worst_residual(p, x, dual, 0.0) <= WANTED for p, (_, x, dual) in answers)
        best = max(best, (ok, tolerance))
        if ok == len(programs):
            break
    return best[1]


def race(programs: list[Program], mus: dict[str, float], runs: dict[str, Contender], rounds: int
         ) -> dict[str, Column]:  # fmt: skip
    """Let all contenders take turns on all programs, `rounds` times."""
    tolerances = {name: find_tolerance(programs, run) for name, run in runs.items()}
    best = {name: Column(np.full(len(programs), np.inf), np.zeros(len(programs))) for name in runs}
    for _ in range(rounds):
        for i, p in enumerate(programs):
            for name, run in runs.items():
                seconds, x, dual = run(p, mus.get(name, 0.0), tolerances[name])
                best[name].seconds[i] = min(best[name].seconds[i], seconds)
                best[name].residual[i] = worst_residual(p, x, dual, mus.get(name, 0.0))
    return best


def print_table(title: str, names: list[str], rows: list[tuple[str, dict[str, Column]]],
                ratios: list[tuple[str, Callable[[dict[str, Column]], float]]]) -> None:  # fmt: skip
    print(
        f"\n### {title}\n\nMedian over programs in us (minimum; how many of 40 reach 1e-8 if not all)\n"
    )
    head = ["kind", *names, *(label for label, _ in ratios)]
    print("| " + " | ".join(head) + " |\n|" + " --- |" * len(head))
    for kind, columns in rows:
        cells = [columns[name].cell() for name in names]
        print("| " + " | ".join([kind, *cells, *(f"{f(columns):.2f}" for _, f in ratios)]) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    ours = {"qdsim": with_qdsim, "kappa 1e2": with_qdsim, "kappa 1e4": with_qdsim}
    mus = {"kappa 1e2": 1e-2, "kappa 1e4": 1e-4}
    socp, pyramid = [], []
    for kind in KINDS:
        cones, pyramids = load(kind)
        socp.append(
            (kind, race(cones, mus, {**ours, "Clarabel": with_clarabel, "QOCO": with_qoco}, rounds))
        )
        pyramid.append(
            (kind, race(pyramids, mus, {**ours, "DAQP": with_daqp, "PIQP": with_piqp}, rounds))
        )

    def better(a: str, b: str, mine: str) -> Callable[[dict[str, Column]], float]:
        return lambda c: min(c[a].median, c[b].median) / c[mine].median

    print_table(
        "SOCP and barrier",
        [*ours, "Clarabel", "QOCO"],
        socp,
        [(f"better / {name}", better("Clarabel", "QOCO", name)) for name in ours],
    )
    print_table(
        "Pyramid QP and its barrier",
        [*ours, "DAQP", "PIQP"],
        pyramid,
        [
            ("qdsim / DAQP", lambda c: c["qdsim"].median / c["DAQP"].median),
            ("PIQP / qdsim", lambda c: c["PIQP"].median / c["qdsim"].median),
        ],
    )


if __name__ == "__main__":
    main()
