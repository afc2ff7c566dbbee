"""The cone solver on contact programs, beside Clarabel, QOCO, DAQP and PIQP.

The programs of [problems](../problems): planar hand, hand and ball, the same with its 40 closest pairs, ten
boxes in stacks, point cloud with torsion, power grasp in motion and at rest. Three questions:

- SOCP: exact friction cones. Clarabel and QOCO solve the same program.
- Barrier: log-barrier at kappa = 1e2 and 1e4. Nobody else solves it; the others' column is their exact SOCP.
- Pyramid: friction pyramids, a QP. DAQP and PIQP solve the same program.

Contenders take turns on every program of every round, one thread; a program's time is its best over the
rounds, and the tables give the median and the minimum over programs and ratios of medians. Ours is the
C call (scaling, solve, residuals) as a mean over a loop, theirs a mean over as many calls in a
row (one call after another solver's finds cold caches, which doubles DAQP's time). Clarabel's, QOCO's and PIQP's is
the solve time they report, without their set-up, which for us is inside; DAQP's the solve time plus the set-up
that factors the cost. Every step is a new program, so the last column of the first table also counts what a
caller waits for: set-up and solve by the clock, sparse arrays made before; ours the public function, with its
checks and the arrays that it returns. Everyone gets, per kind, the loosest tolerance with
which the most programs come out with residuals of 1e-8 or below (m, N, J), measured here from the program's
own numbers (ours: the default); `ok` says how many do where not all.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass

import clarabel
import daqp
import numpy as np
import numpy.typing as npt
import piqp
import problem_set
import qoco
import scipy.sparse as sp

import qdsim
from qdsim import _core

Array = npt.NDArray[np.float64]
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


Answer = tuple[float, float, Array, Array]  # seconds as reported, by the clock, x, multipliers


def load(kind: str) -> tuple[list[Program], list[Program]]:
    """Return the cone programs of a kind, and their pyramid versions."""
    cones, pyramids = [], []
    for p in problem_set.load(problem_set.path_of(kind)):
        cones.append(Program(p.Q, p.b, p.G, p.g, p.dims))
        rays, offsets = [], []
        for first, last in itertools.pairwise(np.concatenate([[0], np.cumsum(p.dims)])):
            tangents = [s for s in p.G[first + 1 : last] if s.any()]
            signed = [sign * s for s in tangents for sign in (1.0, -1.0)] or [0.0]
            rays += [p.G[first] + s for s in signed]
            offsets += [p.g[first]] * len(signed)
        pyramids.append(Program(p.Q, p.b, np.array(rays), np.array(offsets), None))
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
        worst += [abs(v @ z - 2 * mu), np.abs(v[0] * z[1:] + z[0] * v[1:]).max(initial=0.0)]
    return float(max(worst))


def with_qdsim(p: Program, mu: float, _tolerance: float) -> Answer:
    cones = p.cones
    target = np.full(len(cones), mu if p.dims is None else 2 * mu)
    seconds = _core._cone_benchmark(p.Q, p.b, p.G, p.g, cones, target, LOOP)
    start = time.perf_counter()
    for _ in range(LOOP):
        s = qdsim.solve_cone_program(p.Q, p.b, p.G, p.g, cones, target_mu=target)
    total = (time.perf_counter() - start) / LOOP
    return seconds, total, s.x, s.dual


def with_clarabel(p: Program, _mu: float, tolerance: float) -> Answer:
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    for name in ("tol_gap_abs", "tol_gap_rel", "tol_feas"):
        setattr(settings, name, tolerance)
    cones = [
        clarabel.SecondOrderConeT(dim) if dim > 1 else clarabel.NonnegativeConeT(1)
        for _, dim in p.cones
    ]
    Q, A = sp.triu(sp.csc_matrix(p.Q)).tocsc(), sp.csc_matrix(-p.G)
    start = time.perf_counter()
    out = clarabel.DefaultSolver(Q, p.b, A, p.g, cones, settings).solve()
    total = time.perf_counter() - start
    return out.solve_time, total, np.array(out.x), np.array(out.z)


def with_qoco(p: Program, _mu: float, tolerance: float) -> Answer:
    solver = qoco.QOCO()
    Q = sp.triu(sp.csc_matrix(p.Q)).tocsc()
    first = np.concatenate([[0], np.cumsum([dim for _, dim in p.cones])])
    lines = [int(a) for a, b in itertools.pairwise(first) if b - a == 1]
    dims = np.array([dim for _, dim in p.cones if dim > 1])
    order = np.array(
        lines + [i for i in range(len(p.g)) if i not in set(lines)]
    )  # half lines first
    G, g = sp.csc_matrix(-p.G[order]), p.g[order]
    start = time.perf_counter()
    solver.setup(
        len(p.b), len(g), 0, Q, p.b, None, None, G, g, len(lines), len(dims), dims,
        abstol=tolerance, reltol=tolerance, verbose=0,
    )  # fmt: skip
    out = solver.solve()
    total = time.perf_counter() - start
    dual = np.zeros(len(g))
    dual[order] = out.z
    return out.solve_time_sec, total, np.array(out.x), dual


def with_daqp(p: Program, _mu: float, tolerance: float) -> Answer:
    m = len(p.g)
    A, lower, sense = -p.G, np.full(m, -1e30), np.zeros(m, dtype=np.int32)
    start = time.perf_counter()
    x, _, _, info = daqp.solve(p.Q, p.b, A, p.g, lower, sense, primal_tol=tolerance)
    total = time.perf_counter() - start
    return info["solve_time"] + info["setup_time"], total, x, np.array(info["lam"])


def with_piqp(p: Program, _mu: float, tolerance: float) -> Answer:
    solver = piqp.DenseSolver()
    solver.settings.compute_timings = True
    solver.settings.eps_abs = solver.settings.eps_rel = tolerance
    solver.settings.eps_duality_gap_abs = solver.settings.eps_duality_gap_rel = tolerance
    G = -p.G
    start = time.perf_counter()
    solver.setup(p.Q, p.b, None, None, G, None, p.g)
    solver.solve()
    total = time.perf_counter() - start
    result = solver.result
    z = result.z_u if hasattr(result, "z_u") else result.z
    return result.info.solve_time, total, np.array(result.x), np.array(z)


Contender = Callable[[Program, float, float], Answer]


@dataclass
class Column:
    """Best seconds per program, reported and by the clock, and worst residual of one contender."""

    seconds: Array
    total: Array
    residual: Array

    @property
    def median(self) -> float:
        return float(np.median(self.seconds)) * 1e6

    @property
    def total_median(self) -> float:
        return float(np.median(self.total)) * 1e6

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
        ok = sum(worst_residual(p, x, dual, 0.0) <= WANTED for p, (_, _, x, dual) in answers)
        best = max(best, (ok, tolerance))
        if ok == len(programs):
            break
    return best[1]


def timed(run: Contender, p: Program, mu: float, tolerance: float) -> Answer:
    """Return the answer with the mean seconds of a loop of calls; the answer of qdsim includes its seconds.

    A first call loads code and data that the contender before has displaced from the caches.
    """
    if run is with_qdsim:
        run(p, mu, tolerance)
        return run(p, mu, tolerance)
    answers = [run(p, mu, tolerance) for _ in range(LOOP + 1)][1:]
    seconds, total = np.mean([answer[:2] for answer in answers], axis=0)
    return float(seconds), float(total), *answers[-1][2:]


def race(programs: list[Program], mus: dict[str, float], runs: dict[str, Contender], rounds: int
         ) -> dict[str, Column]:  # fmt: skip
    """Let all contenders take turns on all programs, `rounds` times."""
    tolerances = {name: find_tolerance(programs, run) for name, run in runs.items()}
    count = len(programs)
    best = {
        n: Column(np.full(count, np.inf), np.full(count, np.inf), np.zeros(count)) for n in runs
    }
    for _ in range(rounds):
        for i, p in enumerate(programs):
            for name, run in runs.items():
                seconds, total, x, dual = timed(run, p, mus.get(name, 0.0), tolerances[name])
                best[name].seconds[i] = min(best[name].seconds[i], seconds)
                best[name].total[i] = min(best[name].total[i], total)
                best[name].residual[i] = worst_residual(p, x, dual, mus.get(name, 0.0))
    return best


def print_table(title: str, names: list[str], rows: list[tuple[str, dict[str, Column]]],
                ratios: list[tuple[str, Callable[[dict[str, Column]], float]]]) -> None:  # fmt: skip
    print(
        f"\n### {title}\n\nMedian over programs in us (minimum; how many reach 1e-8 if not all)\n"
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
    for kind in problem_set.KINDS:
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
        [
            *((f"better / {name}", better("Clarabel", "QOCO", name)) for name in ours),
            (
                "with set-up / qdsim",
                lambda c: (
                    min(c["Clarabel"].total_median, c["QOCO"].total_median) / c["qdsim"].median
                ),
            ),
        ],
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
