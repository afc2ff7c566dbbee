"""Ctrl-C, or whatever handler of a signal raises, ends every solver that can take long."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import qdsim


class Stop(Exception):
    """What the handler raises."""


@pytest.fixture(autouse=True)
def handler() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise Stop

    before = signal.signal(signal.SIGALRM, stop)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def cone(n: int, gives_way: bool) -> Callable[[], object]:
    rng = np.random.default_rng(0)
    L, x = rng.normal(size=(n, n // 4)), rng.normal(size=n)
    G = rng.normal(size=(2 * n, n))
    slack = np.maximum(rng.normal(size=2 * n), 0)
    soft = {"compliance": 1e-3 * rng.random(2 * n)} if gives_way else {}
    cones = [("orthant", 2 * n)]
    return lambda: qdsim.solve_cone_program(L @ L.T, G.T @ slack, G, slack - G @ x, cones, **soft)


def complementarity(n: int) -> Callable[[], object]:
    rng = np.random.default_rng(0)
    M, q = rng.normal(size=(n, n)), rng.normal(size=n)
    return lambda: qdsim.solve_lcp(M, q)


def mixed(n: int) -> Callable[[], object]:
    rng = np.random.default_rng(0)
    A, C, D, B = (rng.normal(size=s) for s in ((2, 2), (2, n), (n, 2), (n, n)))
    return lambda: qdsim.solve_mlcp(A, C, D, B, np.ones(2), rng.normal(size=n))


def control(T: int) -> Callable[[], object]:
    rng = np.random.default_rng(0)
    A, B = np.tile(0.9 * np.eye(20), (T, 1, 1)), rng.normal(size=(T, 20, 10))
    wish = rng.normal(size=(T, 20))
    return lambda: qdsim.solve_ocp_qp(
        A, B, Q=np.eye(20), q=wish, R=np.eye(10), u_lower=-0.1 * np.ones(10)
    )


PROBLEMS = {
    "cone": cone(900, False),
    "soft": cone(400, True),
    "lcp": complementarity(400),
    "mlcp": mixed(400),
    "ocp": control(4000),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_signal_ends_a_solve(name: str) -> None:
    """It comes while one of these is solved; what the handler raises comes out, and the next solve is well."""
    signal.setitimer(signal.ITIMER_REAL, 0.06)
    begun = time.process_time()
    try:
        with pytest.raises(Stop):
            for _ in range(100):
                PROBLEMS[name]()
    except qdsim.SolverError:
        pytest.fail(f"an answer came first, after {time.process_time() - begun:.2f} s")
    small = qdsim.solve_cone_program(np.eye(1), [1.0], [[1.0]], [0.0], [("orthant", 1)])
    np.testing.assert_allclose(small.x, [0.0], atol=1e-9)
