"""`qdsim.solve_coulomb`, `solve_lcp` and `solve_mlcp` on the problems of Siconos, beside Siconos' own solvers.

Friction: 34 three-dimensional problems W, q, mu. Solved means: the error that Siconos measures, |r - P(r - u - mu |u_t| n)| /
|q| with P the projection on the friction cones, is at most 1e-8, taken here from the forces that each solver returns, for
all alike. Everyone is asked for 1e-8 (qdsim: the default). qdsim runs before and after the others on every problem, and the
better time counts: all of the C call, analysis of the pattern of W included; Siconos' is that of
its driver. One thread.

Siconos lives in an interpreter of its own (Debian's python3-siconos and python3-scipy): `--siconos`, by default the
system's; Pinocchio in this one (`pip install pin`), its ADMM on sparse matrices, its PGS, which takes no others, on dense
ones. Without them their columns are left out. A solver that takes longer than the limit counts with it; one that
crashes has no time, and counts with the limit, too.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

import qdsim
from qdsim import _core

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
import external_programs

Array = npt.NDArray[np.float64]
WANTED = 1e-8
LIMIT = 20  # seconds of one solver on one problem
SICONOS = ("NSGS", "NSN_AC", "NSN_FB", "NSN_NM", "ADMM", "ACLMFP")
PINOCCHIO = ("ADMM", "PGS")

# What other interpreters run: one solver on the problem in a file, forces and seconds to another.
BEGIN = """
import signal, sys, time
import numpy as np, scipy.sparse as sparse
source, target, name, limit = sys.argv[1:]
data = np.load(source)
W, q, mu = data["W"], data["q"], data["mu"]
"""
WITH_SICONOS = (
    BEGIN
    + """
import siconos.numerics as sn
sn.numerics_set_verbose(0)
options = sn.SolverOptions(getattr(sn, "SICONOS_FRICTION_3D_" + name))
options.dparam[sn.SICONOS_DPARAM_TOL] = 1e-8
options.iparam[sn.SICONOS_IPARAM_MAX_ITER] = 20000 if name in ("NSGS", "ADMM") else 500
matrix = W if len(q) < 60 else sparse.csc_matrix(W)
problem = sn.FrictionContactProblem(3, len(mu), matrix, q, mu)
force, speed = np.zeros_like(q), np.zeros_like(q)
signal.alarm(int(limit))
start = time.perf_counter()
sn.fc3d_driver(problem, force, speed, options)
np.savez(target, force=force, seconds=time.perf_counter() - start)
"""
)
WITH_PINOCCHIO = (
    BEGIN
    + """
import pinocchio as pin
order = (3 * np.arange(len(mu))[:, None] + np.array([1, 2, 0])).ravel()  # its normals come last
W, q, model = W[np.ix_(order, order)], q[order], pin.Model()
models, datas = pin.StdVec_ConstraintModel(), pin.StdVec_ConstraintData()
for one in mu:
    contact = pin.PointContactConstraintModel(model)
    contact.setFriction(float(one))
    models.append(pin.ConstraintModel(contact))
    datas.append(models[-1].createData())
parts = "SolverSettings", "SolverResult", "ConstraintSolver"
settings, result, solver = (getattr(pin, name + part)() for part in parts)
settings.max_iterations = 20000
settings.absolute_feasibility_tol = 1e-8 * np.abs(q).max()
settings.absolute_complementarity_tol = 1e-8 * np.abs(q).max()
settings.relative_feasibility_tol = settings.relative_complementarity_tol = 0.0
settings.solve_ncp = True
dense = name == "PGS"
operator = pin.DelassusOperatorDense(W) if dense else pin.DelassusOperatorSparse(sparse.csc_matrix(W))
signal.alarm(int(limit))
start = time.perf_counter()
solver.solve(operator, q, models, datas, settings, result)
seconds, force = time.perf_counter() - start, np.zeros_like(q)
force[order] = result.retrieveConstraintImpulses()
np.savez(target, force=force, seconds=seconds)
"""
)


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
    """Return the seconds of the C call, and the error."""
    rows, n = np.nonzero(W)[0], len(q)
    start = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))]).astype(np.int32)
    column = np.nonzero(W)[1].astype(np.int32)
    dims = np.full(len(mu), 3, dtype=np.int32)
    repeat = 20 if n < 200 else 1
    given = (dims, 0 * dims, start, column, W[W != 0], q, np.repeat(mu, 3), 1e-9, 150, 0, repeat)
    force, _, report = _core._solve_coulomb(*given)
    return report[-1], siconos_error(W, q, mu, force)


@dataclass(frozen=True)
class Other:
    """A solver that runs in another interpreter."""

    title: str
    python: str
    program: str
    name: str

    def solve(self, source: Path, target: Path) -> tuple[float, Array | None]:
        """Return the seconds (infinite after a crash, the limit if it was exceeded) and the forces."""
        target.unlink(missing_ok=True)
        command = [self.python, "-c", self.program, str(source), str(target), self.name, str(LIMIT)]
        ended = subprocess.run(command, capture_output=True, check=False)
        if not target.exists():
            return (LIMIT if ended.returncode == -signal.SIGALRM else np.inf), None
        with np.load(target) as data:
            return float(data["seconds"]), data["force"]


def others_here(siconos: str) -> list[Other]:
    """Return the solvers whose packages are installed."""
    found = []
    for python, module, program, family, names in (
        (siconos, "siconos.numerics", WITH_SICONOS, "Siconos", SICONOS),
        (sys.executable, "pinocchio", WITH_PINOCCHIO, "Pinocchio", PINOCCHIO),
    ):
        test = [python, "-c", f"import scipy, {module}"]
        if subprocess.run(test, capture_output=True, check=False).returncode == 0:
            found += [Other(f"{family} {name}", python, program, name) for name in names]
    return found


def cell(seconds: float, error: float) -> str:
    if not np.isfinite(seconds):
        return "–"
    if seconds >= LIMIT:
        return f"**> {1e3 * LIMIT:.0f}**"
    text = f"{1e3 * seconds:.2f}"
    return text if error <= WANTED else f"**{text} ({error:.0e})**"


def friction(others: list[Other]) -> None:
    titles = ["qdsim", *(other.title for other in others)]
    print(
        f"\n### Coulomb friction: ms; bold where the error is above {WANTED:.0e} or the limit of {LIMIT} s ended it\n"
    )
    print(f"| problem | contacts | {' | '.join(titles)} | best of the others / qdsim |")
    print("|" + " --- |" * (len(titles) + 3))
    seconds_of = {title: np.zeros(0) for title in titles}
    solved = dict.fromkeys(titles, 0)
    names = external_programs.friction_names()
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "problem.npz", Path(folder) / "answer.npz"
        for problem in names:
            W, q, mu = external_programs.friction(problem)
            np.savez(source, W=W, q=q, mu=mu)
            first = with_qdsim(W, q, mu)
            rows = []
            for other in others:
                seconds, force = other.solve(source, target)
                error = np.inf if force is None else siconos_error(W, q, mu, force)
                rows.append((seconds, error))
            again = with_qdsim(W, q, mu)
            rows.insert(0, (min(first[0], again[0]), first[1]))
            for title, (seconds, error) in zip(titles, rows, strict=True):
                seconds_of[title] = np.append(seconds_of[title], min(seconds, LIMIT))
                solved[title] += error <= WANTED
            best = min((s for s, error in rows[1:] if error <= WANTED), default=np.inf)
            ratio = f"{best / rows[0][0]:.1f}" if np.isfinite(best) else "–"
            cells = " | ".join(cell(*row) for row in rows)
            print(f"| {problem} | {len(mu)} | {cells} | {ratio} |", flush=True)
    hard = np.array([name.startswith("RockPile") for name in names])
    print(f"| **solved** | {len(names)} | {' | '.join(str(v) for v in solved.values())} | |")
    print(f"| **sum** | | {' | '.join(f'{1e3 * v.sum():.0f}' for v in seconds_of.values())} | |")
    print(
        f"| **sum** without RockPile | | {' | '.join(f'{1e3 * v[~hard].sum():.0f}' for v in seconds_of.values())} | |"
    )


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
    friction(others_here(parser.parse_args().siconos))
    rolling()
    complementarity("lcp")
    complementarity("mlcp")


if __name__ == "__main__":
    main()
