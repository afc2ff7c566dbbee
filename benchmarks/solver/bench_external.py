"""`qdsim.solve_cone_program` on programs that others have published, beside Clarabel and DAQP.

Friction: the 34 three-dimensional problems of Siconos as convex relaxations, over forces (W as the
cost, singular or not) and over velocities (W = FF', F dense). Control: the 62 QPs of
mpc_qpbenchmark.

Contenders take turns on every program of every round, one thread. qdsim's time is the public Python
call by the clock: checks and conversion of dense arrays, set-up, solve; "core" is the C call alone,
set-up and solve. Clarabel's is the solve time that it reports, and by the clock with its set-up
from sparse arrays made before; DAQP's the call by the clock. Each contender runs a program twice in
a row, and the second run counts, the best over rounds. Everyone is asked for 1e-8 (qdsim: the
default). The worst KKT residual is taken from the program's own numbers, each beside the largest
number that it is a sum of, 1 at least; above 1e-8 it is bold.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import clarabel
import daqp
import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

import qdsim
from qdsim import _core

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
import external_programs
from external_programs import Program

Array = npt.NDArray[np.float64]
WANTED = 1e-8
FAR = 1e20  # DAQP's infinity
SMALL = 60  # contacts

# seconds by the clock, as reported, worst residual (not finite: none)
Result = tuple[float, float, float]


def core_seconds(p: Program) -> float:
    """Return the mean seconds of the C call in a loop; NaN for programs with equalities, which it does not take."""
    if len(p.c):
        return np.nan
    repeat = 20 if len(p.b) < 100 else 1
    return _core._cone_benchmark(p.Q, p.b, p.G, p.g, p.cones, None, repeat)


def with_qdsim(p: Program) -> Result:
    given = {"C": p.C, "c": p.c} if len(p.c) else {}
    start = time.perf_counter()
    try:
        s = qdsim.solve_cone_program(p.Q, p.b, p.G, p.g, p.cones, **given)
    except qdsim.SolverError:
        return time.perf_counter() - start, np.nan, np.inf
    seconds = time.perf_counter() - start
    residual = external_programs.worst_residual(p, s.x, s.dual, s.dual_eq)
    return seconds, core_seconds(p), residual


def with_clarabel(p: Program) -> Result:
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = WANTED
    kinds = {"lorentz": clarabel.SecondOrderConeT, "orthant": clarabel.NonnegativeConeT}
    cones = [clarabel.ZeroConeT(len(p.c))] if len(p.c) else []
    cones += [kinds[kind](rows) for kind, rows in p.cones]
    Q = sp.triu(sp.csc_matrix(p.Q)).tocsc()
    A, offset = sp.csc_matrix(-np.vstack([p.C, p.G])), np.concatenate([p.c, p.g])
    start = time.perf_counter()
    out = clarabel.DefaultSolver(Q, p.b, A, offset, cones, settings).solve()
    seconds = time.perf_counter() - start
    x, z = np.array(out.x), np.array(out.z)
    if "Infeasible" in str(out.status):
        return seconds, out.solve_time, np.inf
    count = len(p.c)
    return (
        seconds,
        out.solve_time,
        external_programs.worst_residual(p, x, z[count:], z[:count]),
    )


def with_daqp(name: str) -> Callable[[Program], Result]:
    """Make a call of DAQP, which takes bounds separately and both sides of a row together."""
    a = external_programs.control_arrays(name)
    n = len(a["q"])
    bounds = "ub" in a
    rows = [a[key] for key in ("G", "A") if key in a]
    upper = [np.minimum(a["ub"], FAR)] if bounds else []
    lower = [np.maximum(a["lb"], -FAR)] if bounds else []
    sense = [np.zeros(n)] if bounds else []
    if "G" in a:
        upper.append(np.minimum(a["h"], FAR))
        lower.append(np.full(len(a["h"]), -FAR))
        sense.append(np.zeros(len(a["h"])))
    if "A" in a:
        upper.append(a["b"])
        lower.append(a["b"])
        sense.append(np.full(len(a["b"]), 5))  # equality
    H, f, A = np.ascontiguousarray(a["P"]), a["q"], np.ascontiguousarray(np.vstack(rows))
    high, low = np.concatenate(upper), np.concatenate(lower)
    kinds = np.concatenate(sense).astype(np.int32)

    def run(p: Program) -> Result:
        start = time.perf_counter()
        x, _, _, info = daqp.solve(H, f, A, high, low, kinds, primal_tol=1e-9)
        seconds = time.perf_counter() - start
        z = np.asarray(info["lam"])  # of upper sides; negative: of lower ones
        shift = n if bounds else 0
        count = len(a["h"]) if "G" in a else 0
        dual = [np.maximum(z[shift : shift + count], 0.0)]
        if bounds:
            dual += [np.maximum(z[:n], 0.0), np.maximum(-z[:n], 0.0)]
        kept = np.isfinite(np.concatenate([a["h"], *([a["ub"], -a["lb"]] if bounds else [])]))
        residual = external_programs.worst_residual(
            p, x, np.concatenate(dual)[kept], -z[shift + count :]
        )
        return seconds, info["solve_time"] + info["setup_time"], residual

    return run


def race(
    p: Program, runs: dict[str, Callable[[Program], Result]], rounds: int
) -> dict[str, Result]:
    best = dict.fromkeys(runs, (np.inf, np.nan, np.inf))
    for _ in range(rounds):
        for name, run in runs.items():
            run(p)
            seconds, reported, residual = run(p)
            best[name] = (
                min(best[name][0], seconds),
                float(np.fmin(best[name][1], reported)),
                residual,
            )
    return best


def number_cell(value: float, digits: int) -> str:
    return f"{value:.{digits}f}" if np.isfinite(value) else "–"


def residual_cell(residual: float) -> str:
    if not np.isfinite(residual):
        return "**none**"
    return f"{residual:.0e}" if residual <= WANTED else f"**{residual:.0e}**"


def friction(rounds: int) -> None:
    public: dict[str, list[float]] = {"small": [], "large": []}
    core: dict[str, list[float]] = {"small": [], "large": []}
    solved = {"qdsim": 0, "Clarabel": 0}
    lines = []
    for name in external_programs.friction_names():
        contacts = len(external_programs.friction(name)[2])
        for form in ("forces", "velocities"):
            p = external_programs.friction_program(name, form)
            runs = {"qdsim": with_qdsim, "Clarabel": with_clarabel}
            best = race(p, runs, rounds if contacts <= SMALL else 1)
            ours, theirs = best["qdsim"], best["Clarabel"]
            for key, value in best.items():
                solved[key] += value[2] <= WANTED
            size = "small" if contacts <= SMALL else "large"
            public[size].append(theirs[0] / ours[0])
            core[size].append(theirs[1] / ours[1])
            lines.append(
                f"| {name} | {contacts} | {form} | {1e6 * ours[0]:.0f} | {1e6 * ours[1]:.0f} "
                f"| {residual_cell(ours[2])} "
                f"| {1e6 * theirs[1]:.0f} | {1e6 * theirs[0]:.0f} | {residual_cell(theirs[2])} "
                f"| {theirs[0] / ours[0]:.1f} | {theirs[1] / ours[1]:.1f} |"
            )
    print("\n### Friction: times in us\n")
    print(
        "| problem | contacts | over | qdsim | core | residual | Clarabel, reported | by the clock | residual "
        "| by the clock / qdsim | reported / core |"
    )
    print("|" + " --- |" * 11)
    print("\n".join(lines))
    print(f"\nSolved of {len(lines)}: qdsim {solved['qdsim']}, Clarabel {solved['Clarabel']}.")
    for label, ratios in (("By the clock / qdsim", public), ("Reported / core", core)):
        for size, values in ratios.items():
            print(
                f"\n{label}, {size} problems ({'up to' if size == 'small' else 'more than'} {SMALL} contacts): "
                f"median {statistics.median(values):.1f}, {min(values):.1f} to {max(values):.1f}; "
                f"below 1: {sum(v < 1 for v in values)}, below 15: {sum(v < 15 for v in values)} of {len(values)}."
            )


def control(rounds: int) -> None:
    print("\n### Control: times in us, medians over programs\n")
    print(
        "| set | programs | n | qdsim | core | solved | DAQP, reported | by the clock | solved | Clarabel, reported "
        "| by the clock | solved | qdsim / DAQP, by the clock | core / DAQP, reported |"
    )
    print("|" + " --- |" * 14)
    for family in ("LIPMWALK", "WHLIPBAL", "QUADCMPC3", "QUADCMPC4"):
        results = []
        for name in external_programs.control_names():
            if name.startswith(family):
                p = external_programs.control_program(name)
                runs = {"qdsim": with_qdsim, "DAQP": with_daqp(name), "Clarabel": with_clarabel}
                results.append(race(p, runs, rounds))

        def median(who: str, what: int, of: list[dict[str, Result]] = results) -> float:
            return 1e6 * statistics.median(r[who][what] for r in of)

        count = {who: sum(r[who][2] <= WANTED for r in results) for who in results[0]}
        print(
            f"| {family} | {len(results)} | {len(p.b)} | {median('qdsim', 0):.1f} | {number_cell(median('qdsim', 1), 1)} "
            f"| {count['qdsim']} "
            f"| {median('DAQP', 1):.1f} | {median('DAQP', 0):.1f} | {count['DAQP']} "
            f"| {median('Clarabel', 1):.1f} | {median('Clarabel', 0):.1f} | {count['Clarabel']} "
            f"| {median('qdsim', 0) / median('DAQP', 0):.2f} | {number_cell(median('qdsim', 1) / median('DAQP', 1), 2)} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=10)
    rounds = parser.parse_args().rounds
    friction(rounds)
    control(rounds)


if __name__ == "__main__":
    main()
