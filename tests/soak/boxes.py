"""A campaign of barrier programs in boxes and between slabs whose widths and stiffness differ by decades.

    python tests/soak/boxes.py --programs 20000 --seed 1

Boxes around variables that do not know each other are judged by their closed form, one equation a variable; slabs
across all of them by the conditions of optimality. Four programs in a thousand may be called numerical trouble or
miss their barrier's products, one in two thousand may be called infeasible; with more the exit status is 1.
"""

from __future__ import annotations

import argparse
import collections
import sys
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import qdsim

Array = npt.NDArray[np.float64]


class Boxes(NamedTuple):
    """Minimise ½ x'qx + b'x - mu Σ log(row (x - low)) - mu Σ log(row (high - x))."""

    q: Array
    b: Array
    low: Array
    high: Array
    rows: Array  # (2, n) sizes of the rows
    mu: float

    def program(self) -> tuple[Any, ...]:
        """Q, b, G, g and cones."""
        n = len(self.q)
        G = np.vstack([np.eye(n), -np.eye(n)]) * self.rows.reshape(-1, 1)
        g = np.concatenate([-self.low, self.high]) * self.rows.ravel()
        return np.diag(self.q), self.b, G, g, [("orthant", 2 * n)]

    def slack(self) -> Array:
        """The solution's (2n,), by bisection of each variable's own equation for its nearer wall."""
        width = self.high - self.low
        middle = 0.5 * (self.low + self.high)
        sign = np.where(self.q * middle + self.b > 0.0, 1.0, -1.0)  # 1: nearer to the lower wall
        wall = np.where(sign > 0.0, self.low, self.high)
        least, most = np.full_like(self.q, -400.0), np.log(0.5 * width)
        for _ in range(100):
            t = np.exp(0.5 * (least + most))
            pull = (
                sign * (self.q * (wall + sign * t) + self.b) - self.mu / t + self.mu / (width - t)
            )
            least = np.where(pull < 0.0, np.log(t), least)
            most = np.where(pull < 0.0, most, np.log(t))
        far = width - t
        near = np.array([np.where(sign > 0.0, t, far), np.where(sign > 0.0, far, t)])
        return np.asarray((near * self.rows).ravel())


def boxes(rng: np.random.Generator) -> Boxes:
    """Return one to three variables, stiffness over twelve decades, widths over nine, rows over four."""
    n = int(rng.integers(1, 4))
    width = 10.0 ** rng.uniform(-7, 2, n)
    middle = width * rng.uniform(-10, 10, n) * rng.choice([0, 1], n)
    return Boxes(
        q=10.0 ** rng.uniform(-3, 9, n),
        b=rng.normal(size=n) * 10.0 ** rng.uniform(-3, 3, n) * rng.choice([0, 1], n),
        low=middle - 0.5 * width,
        high=middle + 0.5 * width,
        rows=10.0 ** rng.uniform(-2, 2, (2, n)),
        mu=10.0 ** rng.uniform(-12, 4),
    )


def slabs(rng: np.random.Generator) -> tuple[Any, ...]:
    """Return Q, b, G, g, cones and mu: slabs whose widths differ by seven decades, across coupled variables."""
    n = int(rng.integers(2, 7))
    root = np.sqrt(10.0 ** rng.uniform(-3, 6, n))
    mixed = np.eye(n) + 0.3 * rng.normal(size=(n, n))
    Q = root[:, None] * (mixed @ mixed.T) * root
    width = 10.0 ** rng.uniform(-6, 1, n)
    middle = width * rng.uniform(-10, 10, n)
    A = np.eye(n) + 0.3 * rng.normal(size=(n, n)) * (rng.random((n, n)) < 0.5)
    rows = 10.0 ** rng.uniform(-2, 2, 2 * n)
    G = np.vstack([A, -A]) * rows[:, None]
    g = np.concatenate([0.5 * width - middle, 0.5 * width + middle]) * rows
    b = rng.normal(size=n) * root * 10.0 ** rng.uniform(-4, 1)
    return 0.5 * (Q + Q.T), b, G, g, [("orthant", 2 * n)], float(10.0 ** rng.uniform(-10, 2))


def judge_boxes(box: Boxes) -> str:
    """Return the outcome: 'solved', 'inaccurate', or what the error says."""
    program = box.program()
    try:
        found = qdsim.solve_cone_program(*program, target_mu=box.mu)
    except qdsim.SolverError as error:
        return str(error.info.status)
    slack = box.slack()
    rounding = 1e-12 * np.abs(program[3])
    good = np.abs(found.slack - slack) <= 1e-5 * slack + rounding
    return "solved" if good.all() else "inaccurate"


def judge_slabs(program: tuple[Any, ...]) -> str:
    """Return the outcome, as above."""
    Q, b, G, g, cones, mu = program
    try:
        s = qdsim.solve_cone_program(Q, b, G, g, cones, target_mu=mu)
    except qdsim.SolverError as error:
        return str(error.info.status)
    rounding = 1e-13 * (np.abs(g) + np.abs(G) @ np.abs(s.x))
    terms = np.abs(Q) @ np.abs(s.x) + np.abs(b) + np.abs(G.T) @ s.dual
    good = (
        (np.abs(s.slack * s.dual / mu - 1.0) <= 1e-4).all()
        and (np.abs(G @ s.x + g - s.slack) <= 1e-5 * s.slack + rounding).all()
        and (np.abs(Q @ s.x + b - G.T @ s.dual) <= 1e-6 * terms).all()
    )
    return "solved" if good else "inaccurate"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rng = np.random.default_rng(arguments.seed)
    counts: collections.Counter[str] = collections.Counter()
    for k in range(arguments.programs):
        counts[judge_boxes(boxes(rng)) if k % 2 else judge_slabs(slabs(rng))] += 1
    print(dict(counts))
    missed = arguments.programs - counts["solved"]
    wrong = counts["infeasible"] > 5e-4 * arguments.programs
    sys.exit(1 if wrong or missed > 4e-3 * arguments.programs + 1 else 0)


if __name__ == "__main__":
    main()
