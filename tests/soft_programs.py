"""Random cone programs whose rows give way, and what an answer misses of their optimality conditions."""

from typing import Any

import numpy as np

import qdsim

INF = np.inf


def random_program(
    rng: np.random.Generator, n: int, compliance: tuple[float, float] = (-6.0, 6.0)
) -> dict[str, Any]:
    """Arguments of solve_cone_program: all kinds of rows, some rigid, around a point that satisfies the rigid ones."""
    F = rng.standard_normal((n, rng.integers(1, n + 1)))
    Q = F @ F.T / np.sqrt(n) + np.diag(10.0 ** rng.uniform(-1, 1, n))
    cones = []
    for _ in range(rng.integers(1, n + 1)):
        kind = str(rng.choice(["orthant", "lorentz", "interval"]))
        cones.append((kind, int(rng.integers(2, 7) if kind == "lorentz" else rng.integers(1, 4))))
    m = sum(dim for _, dim in cones)
    G = rng.standard_normal((m, n)) * (rng.random((m, n)) < min(1.0, 4.0 / n))
    G[np.arange(m), rng.integers(0, n, m)] = 1.0
    inside = []
    for kind, dim in cones:
        w = rng.standard_normal(dim)
        if kind == "orthant":
            w = abs(w)
        if kind == "lorentz":
            w[0] = np.linalg.norm(w[1:]) + abs(w[0])
        inside.append(w)
    x = rng.standard_normal(n)
    p = int(rng.integers(0, n // 4 + 1))
    C = rng.standard_normal((p, n))
    k = sum(dim for kind, dim in cones if kind == "interval")
    size = 10.0 ** rng.uniform(-2, 2, k)
    return {
        "Q": Q,
        "b": rng.standard_normal(n) * 10.0 ** rng.uniform(-1, 1),
        "G": G,
        "g": np.concatenate(inside) - G @ x,
        "cones": cones,
        "C": C,
        "c": -C @ x,
        "compliance": np.where(rng.random(m) < 0.4, 0.0, 10.0 ** rng.uniform(*compliance, m)),
        "compliance_eq": np.where(rng.random(p) < 0.4, 0.0, 10.0 ** rng.uniform(*compliance, p)),
        "lower": -size * rng.choice([0.0, 1.0, INF], k, p=[0.3, 0.5, 0.2]),
        "upper": size * rng.choice([0.5, 1.0, INF], k, p=[0.3, 0.5, 0.2]),
    } | ({} if k else {"lower": None, "upper": None})


def misses(P: dict[str, Any], s: qdsim.ConeSolution, mu: float = 0.0) -> float:
    """The largest of what a solution misses of the optimality conditions, beside the numbers that it is made of."""
    x, y = s.x, s.dual
    force = 1 + abs(P["Q"] @ x).max() + abs(P["G"] * y[:, None]).max()
    found = [abs(P["Q"] @ x + P["b"] - P["G"].T @ y - P["C"].T @ s.dual_eq).max() / force]
    slack = P["G"] @ x + P["g"] + P["compliance"] * y
    size = 1 + abs(P["G"]) @ abs(x) + abs(P["g"]) + abs(P["compliance"] * y)
    equal = P["C"] @ x + P["c"] + P["compliance_eq"] * s.dual_eq
    found += list(abs(equal) / (1 + abs(P["C"]) @ abs(x) + abs(P["c"])))
    found += list(abs(slack - s.slack) / size)
    row = limit = 0
    for kind, dim in P["cones"]:
        w, z, of = slack[row : row + dim], y[row : row + dim], size[row : row + dim].max()
        row += dim
        if kind == "interval":
            above, below = z - P["lower"][limit : limit + dim], P["upper"][limit : limit + dim] - z
            limit += dim
            found += [-above.min(), -below.min()]
            if mu:
                error = abs(w - mu / above + mu / below) * np.minimum(1.0, np.minimum(above, below))
            else:
                room = np.minimum(
                    np.maximum(np.where(w > 0, above, below) - 1e-14 * abs(z), 0.0), 1e3
                )
                error = np.minimum(abs(w) * room, abs(w))
            found.append(max(error) / (of + mu))
            continue
        if kind == "orthant":
            found += [
                -w.min() / of,
                -z.min(),
                max(abs(w * z - mu)) / (of * (1 + abs(z).max()) + mu),
            ]
        else:
            found += [
                (np.linalg.norm(w[1:]) - w[0]) / of,
                np.linalg.norm(z[1:]) - z[0] * (1 + 1e-12),
            ]
            product = np.append(w @ z - mu, w[0] * z[1:] + z[0] * w[1:])
            found.append(abs(product).max() / (of * (1 + z[0]) + mu))
    return max(found)


def backward_error(P: dict[str, Any], s: qdsim.ConeSolution, mu: float) -> float:
    """By what share of the numbers at hand forces and slacks of a barrier's answer would have to change to meet its
    conditions, rows of intervals first, then orthants: a force by a share of the largest term of the columns that it
    acts on, a slack by one of its own terms. A force of 1e12 that ends 1e-4 before its limit has no digits to say so,
    and what the barrier makes of the distance between is no measure of it."""
    x, y, k = s.x, s.dual, len(P["lower"])
    size = abs(P["G"])
    column = abs(P["Q"]) @ abs(x) + abs(P["b"]) + size.T @ abs(y)
    left = abs(P["Q"] @ x + P["b"] - P["G"].T @ y) / column
    slack = P["G"] @ x + P["g"] + P["compliance"] * y
    terms = size @ abs(x) + abs(P["g"]) + P["compliance"] * abs(y)
    force = np.where(size > 0.0, column, 0.0).max(axis=1) / size.max(axis=1)
    lower = np.append(P["lower"], np.zeros(len(y) - k))
    upper = np.append(P["upper"], np.full(len(y) - k, INF))

    def opening(z: np.ndarray) -> np.ndarray:
        """The slack that belongs to a force: it falls from one end to the other."""
        with np.errstate(divide="ignore"):
            between = mu / np.maximum(z - lower, 0.0) - mu / np.maximum(upper - z, 0.0)
        return np.where(z <= lower, INF, np.where(z >= upper, -INF, between))

    shares = 10.0 ** np.arange(-17.0, 1.0)
    enough = [
        bool(
            np.all(opening(y + share * force) <= slack + share * terms)
            and np.all(opening(y - share * force) >= slack - share * terms)
        )
        for share in shares
    ]
    return max(float(left.max()), float(shares[enough.index(True)]) if any(enough) else INF)
