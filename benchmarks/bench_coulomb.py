"""`qdsim.solve_coulomb`, `solve_lcp` and `solve_mlcp` on the problems of Siconos, beside Siconos' own solvers.

Friction: 34 three-dimensional problems W, q, mu. Solved means: the error that Siconos measures, |r - P(r - u - mu |u_t| n)| /
|q| with P the projection on the friction cones, is at most 1e-8, taken here from the forces that each solver returns, for
all alike. Everyone is asked for 1e-8 (qdsim: the default). qdsim runs before and after the others on every problem, and the
better time counts: all of the C call, analysis of the pattern of W included; Siconos' is that of
its driver. One thread.

Siconos lives in an interpreter of its own (Debian's python3-siconos): `--siconos`, by default the
system's; without it its columns are left out. A solver that takes longer than the limit, or
crashes, has no time.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import numpy.typing as npt

import qdsim
from qdsim import _core

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
import external_programs

Array = npt.NDArray[np.float64]
WANTED = 1e-8
LIMIT = 20  # seconds of one solver on one problem
SOLVERS = ("NSGS", "NSN_AC", "NSN_FB", "NSN_NM", "ADMM", "ACLMFP")

# What runs where Siconos is installed: one solver on the problem in a file, forces and seconds to another.
WORKER = """
import signal, sys, time
import numpy as np, scipy.sparse as sparse, siconos.numerics as sn
source, target, name, limit = sys.argv[1:]
signal.alarm(int(limit))
data = np.load(source)
W, q, mu = data["W"], data["q"], data["mu"]
sn.numerics_set_verbose(0)
options = sn.SolverOptions(getattr(sn, "SICONOS_FRICTION_3D_" + name))
options.dparam[sn.SICONOS_DPARAM_TOL] = 1e-8
options.iparam[sn.SICONOS_IPARAM_MAX_ITER] = 20000 if name in ("NSGS", "ADMM") else 500
matrix = W if len(q) < 60 else sparse.csc_matrix(W)
problem = sn.FrictionContactProblem(3, len(mu), matrix, q, mu)
force, speed = np.zeros_like(q), np.zeros_like(q)
start = time.perf_counter()
sn.fc3d_driver(problem, force, speed, options)
np.savez(target, force=force, seconds=time.perf_counter() - start)
"""


def siconos_error(W: Array, q: Array, mu: Array, force: Array) -> float:
    u = (W @ force + q).reshape(-1, 3)
    r = force.reshape(-1, 3)
    z = r - u
    z[:, 0] -= mu * np.linalg.norm(u[:, 1:], axis=1)
    tail, normal = np.linalg.norm(z[:, 1:], axis=1), z[:, 0]
    along = np.maximum(mu * tail + normal, 0.0) / (1 + mu**2)
    inside = tail <= mu * normal
    scale = np.where(inside, 1.0, mu * along / np.where(tail > 0, tail, 1.0))
    projected = np.column_stack([np.where(inside, normal, along), scale[:, None] * z[:, 1:]])
    return float(np.linalg.norm(r - projected) / np.linalg.norm(q))


def with_qdsim(W: Array, q: Array, mu: Array) -> tuple[float, float]:
    """Seconds of the C call, error."""
    rows, n = np.nonzero(W)[0], len(q)
    start = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))]).astype(np.int32)
    column = np.nonzero(W)[1].astype(np.int32)
    dims = np.full(len(mu), 3, dtype=np.int32)
    repeat = 20 if n < 200 else 1
    given = (dims, 0 * dims, start, column, W[W != 0], q, np.repeat(mu, 3), 1e-9, 150, 0, repeat)
    force, _, report = _core._solve_coulomb(*given)
    return report[-1], siconos_error(W, q, mu, force)


def with_siconos(python: str, name: str, source: Path, target: Path) -> tuple[float, Array] | None:
    target.unlink(missing_ok=True)
    command = [python, "-c", WORKER, str(source), str(target), name, str(LIMIT)]
    subprocess.run(command, capture_output=True, check=False)
    if not target.exists():
        return None
    with np.load(target) as data:
        return float(data["seconds"]), data["force"]


def cell(seconds: float, error: float) -> str:
    if not np.isfinite(seconds):
        return "–"
    text = f"{1e3 * seconds:.2f}"
    return text if error <= WANTED else f"**{text} ({error:.0e})**"


def friction(python: str | None) -> None:
    names = SOLVERS if python else ()
    print(f"\n### Coulomb friction: ms; bold where the error is above {WANTED:.0e}\n")
    print(
        "| problem | contacts | qdsim | "
        + "".join(f"{n} | " for n in names)
        + "best of Siconos / qdsim |"
    )
    print("|" + " --- |" * (len(names) + 4))
    totals = dict.fromkeys(("qdsim", *names), 0.0)
    solved = dict.fromkeys(("qdsim", *names), 0)
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "problem.npz", Path(folder) / "answer.npz"
        for problem in external_programs.friction_names():
            W, q, mu = external_programs.friction(problem)
            np.savez(source, W=W, q=q, mu=mu)
            with_qdsim(W, q, mu)
            ours = with_qdsim(W, q, mu)
            cells, best = [], np.inf
            for name in names:
                found = with_siconos(python or "", name, source, target)
                seconds, error = np.inf, np.inf
                if found:
                    seconds, error = found[0], siconos_error(W, q, mu, found[1])
                good = error <= WANTED
                totals[name] += min(seconds, LIMIT)
                solved[name] += good
                best = min(best, seconds) if good else best
                cells.append(cell(seconds, error))
            again = with_qdsim(W, q, mu)
            seconds = min(ours[0], again[0])
            totals["qdsim"] += seconds
            solved["qdsim"] += ours[1] <= WANTED
            ratio = f"{best / seconds:.1f}" if np.isfinite(best) else "–"
            print(
                f"| {problem} | {len(mu)} | {' | '.join([cell(seconds, ours[1]), *cells, ratio])} |",
                flush=True,
            )
    print(
        f"| **solved** | {len(external_programs.friction_names())} | {' | '.join(str(v) for v in solved.values())} | |"
    )
    print(f"| **sum** | | {' | '.join(f'{1e3 * v:.0f}' for v in totals.values())} | |")


def complementarity(kind: str) -> None:
    print(f"\n### {kind}: microseconds of the public call\n")
    print("| problem | size | verdict | time | pivots |\n|" + " --- |" * 5)
    for name in external_programs.complementarity_names(kind):
        M, other = external_programs.complementarity(kind, name)
        q = other["q"]
        free = int(other.get("free", np.zeros(())))
        p = len(q) - (M.shape[1] - free)
        best, verdict, pivots = np.inf, "", 0
        for _ in range(5):
            start = time.perf_counter()
            try:
                if kind == "lcp":
                    info = qdsim.solve_lcp(M, q).info
                else:
                    blocks = M[:p, :free], M[:p, free:], M[p:, :free], M[p:, free:]
                    info = qdsim.solve_mlcp(*blocks, q[:p], q[p:]).info
            except qdsim.UnsolvedError as error:
                info = error.solution.info
            best = min(best, time.perf_counter() - start)
            verdict = "no solution: proven" if info.status == "infeasible" else info.status
            pivots = info.pivots
        print(f"| {name} | {M.shape[1]} | {verdict} | {1e6 * best:.0f} | {pivots} |")


def rolling() -> None:
    print(
        "\n### Rolling friction, a cone for tangents and one for rolling: microseconds of the public call\n"
    )
    print("| problem | contacts | error | time |\n|" + " --- |" * 4)
    for name in external_programs.complementarity_names("rolling"):
        W, other = external_programs.complementarity("rolling", name)
        mu = np.insert(other["mu"], 1, 0.0, axis=1)
        best, error = np.inf, np.inf
        for _ in range(5):
            start = time.perf_counter()
            error = qdsim.solve_coulomb(W, other["q"], mu, dims=5, cones="separate").info.error
            best = min(best, time.perf_counter() - start)
        print(f"| {name} | {len(mu)} | {error:.0e} | {1e6 * best:.0f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--siconos", default="/usr/bin/python3", help="an interpreter that has it")
    python = parser.parse_args().siconos
    test = [python, "-c", "import siconos.numerics"]
    has_siconos = subprocess.run(test, capture_output=True, check=False).returncode == 0
    friction(python if has_siconos else None)
    rolling()
    complementarity("lcp")
    complementarity("mlcp")


if __name__ == "__main__":
    main()
