"""Contact programs in a file format that any solver can read; its README says what is in them.

``load(path)`` gives the programs of a file, ``save(path, programs)`` writes one, ``residuals`` measures an
answer. As a script it writes the two kinds made from qdsim's own scenes again (``--write``), or checks the
stored solution of every program:

    python benchmarks/solver/problem_set.py
"""

from __future__ import annotations

import argparse
import itertools
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

import qdsim
from qdsim import systems

Array = npt.NDArray[np.float64]
ROOT = Path(__file__).resolve().parents[2]
PUBLISHED = ROOT / "tests" / "data"
OWN = Path(__file__).resolve().parent / "problems"
KINDS = {
    "a_planar_hand": PUBLISHED,
    "b_allegro_ball": PUBLISHED,
    "c_allegro_40": PUBLISHED,
    "d_block_stack": PUBLISHED,
    "e_point_cloud": PUBLISHED,
    "f_grasp_in_motion": OWN,
    "g_grasp_at_rest": OWN,
}


@dataclass(frozen=True)
class Program:
    """minimise 1/2 x'Qx + b'x subject to Gx + g in Lorentz cones of `dims` rows (1: a half line)."""

    Q: Array
    b: Array
    G: Array
    g: Array
    dims: npt.NDArray[np.int32]
    x: Array
    dual: Array


def path_of(kind: str) -> Path:
    return KINDS[kind] / f"contact_socp_{kind}.npz"


def load(path: Path) -> list[Program]:
    """Return the programs of a file with their reference solutions."""
    data = np.load(path)
    programs = []
    for i in range(len(data["Q"])):
        rows = slice(*data["row_start"][i : i + 2])
        dims = data["cone_dim"][slice(*data["cone_start"][i : i + 2])].astype(np.int32)
        G, dual = np.ascontiguousarray(data["G"][rows]), data["lambda_ref"][rows]
        programs.append(
            Program(data["Q"][i], data["b"][i], G, data["g"][rows], dims, data["x_ref"][i], dual)
        )
    return programs


def save(path: Path, programs: list[Program]) -> None:
    """Write programs with as many unknowns each to one file."""

    def starts(counts: list[int]) -> npt.NDArray[np.int64]:
        return np.concatenate([[0], np.cumsum(counts)])

    np.savez_compressed(
        path,
        Q=np.stack([p.Q for p in programs]),
        b=np.stack([p.b for p in programs]),
        G=np.concatenate([p.G for p in programs]),
        g=np.concatenate([p.g for p in programs]),
        row_start=starts([len(p.g) for p in programs]),
        cone_dim=np.concatenate([p.dims for p in programs]),
        cone_start=starts([len(p.dims) for p in programs]),
        x_ref=np.stack([p.x for p in programs]),
        lambda_ref=np.concatenate([p.dual for p in programs]),
    )


def residuals(p: Program, x: Array, dual: Array) -> tuple[float, float, float]:
    """Return the largest violation of the cones (m), stationarity (N) and complementarity (J)."""
    w = p.G @ x + p.g
    primal = gap = 0.0
    for first, last in itertools.pairwise(np.concatenate([[0], np.cumsum(p.dims)])):
        v, z = w[first:last], dual[first:last]
        primal = max(primal, np.linalg.norm(v[1:]) - v[0], np.linalg.norm(z[1:]) - z[0])
        gap = max(gap, abs(v @ z), np.abs(v[0] * z[1:] + z[0] * v[1:]).max(initial=0.0))
    return float(primal), float(np.abs(p.Q @ x + p.b - p.G.T @ dual).max()), float(gap)


def solved(Q: Array, b: Array, G: Array, g: Array, dims: list[int]) -> Program:
    """Return the program with its solution."""
    found = qdsim.solve_cone_program(Q, b, G, g, [("lorentz", dim) for dim in dims])
    return Program(Q, b, G, g, np.array(dims, dtype=np.int32), found.x, found.dual)


def step_program(model: qdsim.Model, q: Array, u: Array, options: qdsim.Options) -> Program:
    """Return the cone program of one exact step, written down from public queries."""
    sys.path.insert(0, str(ROOT / "tests"))
    import program

    contacts = model.collide(q, margin=options.margin)
    parts = program.assemble(model, q, u, options, contacts)
    rows, offsets, dims = [], [], []
    for J, contact in zip(parts.J, parts.contacts, strict=True):
        scale = np.concatenate([[1.0], program.weights(contact)])
        rows.append(scale[:, None] * J[: len(scale)])
        offsets.append(np.eye(len(scale))[0] * contact["dist"])
        dims.append(len(scale))
    for v, sign, gap in parts.limits:
        rows.append(sign * np.eye(model.nv)[v : v + 1])
        offsets.append(np.array([gap]))
        dims.append(1)
    return solved(parts.Q, parts.b, np.vstack(rows), np.concatenate(offsets), dims)


def write_own() -> None:
    sys.path.insert(0, str(ROOT / "benchmarks/step"))
    from bench_allegro import close_hand

    options = qdsim.Options(margin=0.01, epsilon=1.0)
    model = systems.load("allegro_sphere").model
    rng = np.random.default_rng(0)
    moving, resting = [], []
    for bend in (0.1, 0.2, 0.3, 0.4, 0.5):
        q, hold = close_hand(model, options, bend)
        for _ in range(4):
            u = hold + 0.03 * rng.standard_normal(model.nu)
            moving.append(step_program(model, q, u, options))
        for _ in range(2):
            resting.append(step_program(model, q, hold, options))
            for _ in range(10):
                q = np.array(qdsim.step(model, q, hold, options).q_next)
    OWN.mkdir(exist_ok=True)
    save(path_of("f_grasp_in_motion"), moving)
    save(path_of("g_grasp_at_rest"), resting)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="make kinds f and g again")
    if parser.parse_args().write:
        write_own()
    print("| kind | programs | unknowns | cones | primal m | dual N | gap J |\n|" + " --- |" * 7)
    for kind in KINDS:
        programs = load(path_of(kind))
        worst = np.max([residuals(p, p.x, p.dual) for p in programs], axis=0)
        cones = [len(p.dims) for p in programs]
        print(
            f"| {kind} | {len(programs)} | {len(programs[0].b)} | {min(cones)} to {max(cones)} "
            f"| {worst[0]:.0e} | {worst[1]:.0e} | {worst[2]:.0e} |"
        )


if __name__ == "__main__":
    main()
