"""Smoothed local models: closed forms, equivalent densities, unbiased estimates with honest errors."""

from __future__ import annotations

import math
import pickle
import statistics
from typing import Any

import numpy as np
import pytest
import scenes

import qdsim
from qdsim.smoothing import (
    DENSITIES,
    Analytic,
    Exact,
    LocalModel,
    Randomized,
    barrier_scale,
    sampler,
)
from qdsim.smoothing.charts import Chart
from qdsim.smoothing.noise import draw
from qdsim.smoothing.philox import raw_numbers
from qdsim.smoothing.sobol import MAX_DIMENSION, scrambled_sobol

STIFFNESS = 100.0
# CQDC, Fig. 5a: an actuated cart before a wall at 0, here a contact; as a joint limit, `RAIL`.
CART = f"""
<mujoco><option gravity="0 0 0"/><worldbody>
  <geom type="plane" size="1 1 1" zaxis="1 0 0"/>
  <body pos="0.1 0 0"><joint name="x" type="slide" axis="1 0 0"/>
    <geom type="sphere" size="0.1" mass="1" condim="1"/></body></worldbody>
  <actuator><position joint="x" kp="{STIFFNESS}"/></actuator></mujoco>"""
RAIL = f"""
<mujoco><option gravity="0 0 0"/><worldbody><body>
  <joint name="x" type="slide" axis="1 0 0" range="0 1e4"/><geom type="sphere" size="0.1" mass="1"/>
  </body></worldbody>
  <actuator><position joint="x" kp="{STIFFNESS}"/></actuator></mujoco>"""
FAR = qdsim.Options(margin=np.inf, tolerance=1e-12)
COMMANDS = np.array([[-0.3], [-0.1], [-0.01], [0.0], [0.02], [0.1], [0.25]])


@pytest.mark.short_cases(1)
@pytest.mark.parametrize(("text", "logs"), [(CART, 2), (RAIL, 1)], ids=["contact", "limit"])
def test_equivalent_density(text: str, logs: int) -> None:
    """CQDC, Example 4: closed form of the barrier step; the density of that name samples it."""
    model = qdsim.load(text)
    kappa = 2.0
    analytic = Analytic(kappa).linearize(model, [0.3], COMMANDS, FAR)
    root = np.sqrt(COMMANDS**2 + 4.0 * logs / (kappa * STIFFNESS))
    # the other end of the rail, 10 km away, pushes by 5e-7 m
    np.testing.assert_allclose(analytic.c, 0.5 * (COMMANDS + root), rtol=0, atol=6e-7)
    np.testing.assert_allclose(analytic.B[..., 0], 0.5 * (1 + COMMANDS / root), rtol=0, atol=1e-5)
    scheme = Randomized(
        barrier_scale(kappa, STIFFNESS, logs), samples=16384, density="barrier", sobol=True
    )
    sampled = scheme.linearize(model, [0.3], COMMANDS, FAR)
    np.testing.assert_allclose(sampled.B, analytic.B, atol=5e-4)
    assert sampled.std_error is not None


def test_exact_scheme_is_linearize() -> None:
    model = qdsim.load(CART)
    one = Exact().linearize(model, [0.3], [-0.2], FAR.replace(kappa=3.0))
    want = qdsim.linearize(model, [0.3], [-0.2], FAR)
    assert one.A.tobytes() == want.A.tobytes()
    assert one.B.tobytes() == want.B.tobytes()
    assert one.c.tobytes() == want.q_next.tobytes()
    assert one.std_error is None


# ---------------------------------------------------------------- samples


@pytest.mark.parametrize("name", sorted(DENSITIES))
def test_densities_are_consistent(name: str) -> None:
    """The quantile inverts a distribution whose derivative's logarithm has the slope -S."""
    density = DENSITIES[name]
    p = np.linspace(0.001, 0.999, 4001)
    w = density.quantile(p)
    assert (np.diff(w) > 0).all()
    np.testing.assert_allclose(w, -w[::-1], atol=1e-12)
    if name != "barrier":  # whose variance is infinite
        middle = density.quantile((np.arange(200000) + 0.5) / 200000)
        assert np.mean(middle**2) == pytest.approx(1.0, rel=2e-3)
    if density.score is None:
        return
    log_rho = -np.log(np.gradient(w, p))
    slope = np.gradient(log_rho, w)
    inner = (p > 0.02) & (p < 0.98) & (np.abs(p - 0.5) > 0.01)  # one of them has a corner
    np.testing.assert_allclose(-slope[inner], density.score(w)[inner], atol=2e-3)
    middle = density.quantile((np.arange(400000) + 0.5) / 400000)
    assert np.mean(density.score(middle) ** 2) == pytest.approx(density.fisher, rel=1e-3)


def test_normal_quantile_inverts_the_distribution_function() -> None:
    p = np.concatenate([np.logspace(-300, -1, 300), np.linspace(0.01, 0.5, 250)])
    x = DENSITIES["gaussian"].quantile(p.reshape(50, 11))
    below = np.array([0.5 * math.erfc(-value / math.sqrt(2.0)) for value in x.ravel()])
    np.testing.assert_allclose(below, p, rtol=1e-12)


def test_the_generator_is_philox() -> None:
    """Known answers of Philox 4x64-10 (Salmon et al. 2011) for counter and key all zeros."""
    # NumPy raises the counter before the first block, so the block of counter 0 is never seen; the
    # known answer for all ones follows a counter of all ones minus one.
    ones = (1 << 64) - 1
    generator = np.random.Philox(
        key=np.array([ones, ones], dtype=np.uint64),
        counter=np.array([ones - 1, ones, ones, ones], dtype=np.uint64),
    )
    want = ["87b092c3013fe90b", "438c3c67be8d0224", "9cc7d7c69cd777b6", "a09caebf594f0ba0"]
    assert [f"{x:016x}" for x in generator.random_raw(4)] == want
    own = raw_numbers(5, 7, 8)
    direct = np.random.Philox(key=5 + (7 << 64)).random_raw(8)
    assert own.tolist() == direct.tolist()


@pytest.mark.parametrize("dimension", [1, 2, 7, 40, MAX_DIMENSION])
def test_sobol_points_fill_every_interval_once(dimension: int) -> None:
    points = scrambled_sobol(3, 0, 1, 256, dimension)
    for column in points.T:
        assert sorted(np.floor(column * 256)) == list(range(256))
    assert scrambled_sobol(3, 0, 1, 64, dimension).shape == (64, dimension)
    assert (scrambled_sobol(3, 0, 2, 256, dimension) != points).all(axis=1).any()


def test_sobol_points_fill_the_plane_of_the_first_two_coordinates() -> None:
    """A (0, m, 2)-net: every rectangle of area 2^-m of a dyadic grid holds one point."""
    points = scrambled_sobol(1, 0, 0, 256, 2)
    for k in range(9):
        cells = np.floor(points * [2**k, 2 ** (8 - k)]).astype(int)
        assert len({tuple(cell) for cell in cells}) == 256


@pytest.mark.long
def test_sobol_projections_are_even() -> None:
    """Star discrepancy of random planes of coordinates, bounded by what 512 random points have."""
    points = scrambled_sobol(1, 0, 0, 512, MAX_DIMENSION)
    rng = np.random.default_rng(0)
    corners = rng.random((400, 2))

    def discrepancy(plane: scenes.Vector) -> float:
        inside = (plane[:, None] < corners).all(axis=2).mean(axis=0)
        return float(np.abs(inside - corners.prod(axis=1)).max())

    planes = [rng.choice(MAX_DIMENSION, 2, replace=False) for _ in range(60)]
    own = [discrepancy(points[:, plane]) for plane in planes]
    random = [discrepancy(rng.random((512, 2))) for _ in planes]
    assert np.median(own) < 0.5 * np.median(random)
    assert max(own) < max(random)


# ---------------------------------------------------------------- estimates

SIGMA = 0.1
POINT = 0.04  # the nominal command


def gauss(x: float) -> tuple[float, float]:
    normal = statistics.NormalDist()
    return normal.cdf(x), normal.pdf(x)


def cart_truth() -> tuple[float, float]:
    """E max(u + w, 0) and its derivative."""
    below, density = gauss(POINT / SIGMA)
    return POINT * below + SIGMA * density, below


def on_cart(points: int, rng: int = 0, **scheme: Any) -> LocalModel:
    """The cart smoothed at one command, with samples of their own for every point."""
    made = Randomized(SIGMA, common=False, **scheme)
    model = qdsim.load(CART)
    return made.linearize(model, np.full((points, 1), 0.3), [POINT], FAR, rng=rng)


SCHEMES = {
    "first": {},
    "least squares": {"order": "zeroth"},
    "score": {"order": "zeroth", "estimator": "score"},
    "antithetic": {"antithetic": True},
    "antithetic zeroth": {"antithetic": True, "order": "zeroth"},
    "sobol": {"sobol": True, "replicates": 16},
    "alpha": {"order": 0.4},
}


@pytest.mark.short_cases(2)
@pytest.mark.parametrize(
    "name", [pytest.param(x, marks=[pytest.mark.long] if x == "sobol" else []) for x in SCHEMES]
)
def test_estimates_are_unbiased_and_errors_are_honest(name: str) -> None:
    """400 independent estimates: their mean is the truth, their spread is the standard error."""
    points = 400
    found = on_cart(points, samples=128, **SCHEMES[name])
    c, B = cart_truth()
    for value, error, want in (
        (found.c[:, 0], found.std_error.c[:, 0], c),
        (found.B[:, 0, 0], found.std_error.B[:, 0, 0], B),
    ):
        spread = value.std(ddof=1)
        assert abs(value.mean() - want) < 4.0 * spread / np.sqrt(points) + 0.05 * spread
        ratio = np.sqrt(np.mean(error**2)) / spread
        # the mixture's error is a bound; a spread of 400 numbers is known to 4 %
        assert 0.85 < ratio < (1.6 if name == "alpha" else 1.18)


@pytest.mark.long
def test_errors_fall_with_samples() -> None:
    """Like N^-1/2 for random samples; about like 1/N or better for Sobol points."""
    counts = np.array([64, 512, 4096])
    c, B = cart_truth()

    def rate(**scheme: Any) -> tuple[float, float]:
        errors = []
        for count in counts:
            found = on_cart(48, samples=int(count), **scheme)
            errors.append([np.std(found.c - c), np.std(found.B - B)])
        slopes = np.polyfit(np.log(counts), np.log(errors), 1)[0]
        return float(slopes[0]), float(slopes[1])

    for slope in (*rate(), *rate(order="zeroth")):
        assert slope == pytest.approx(-0.5, abs=0.12)
    for slope in rate(sobol=True):
        assert slope < -0.85


@pytest.mark.long
def test_pairs_and_nets_reduce_the_spread() -> None:
    def spread(**scheme: Any) -> float:
        return float(on_cart(300, samples=64, **scheme).B.std())

    plain = spread()
    assert spread(antithetic=True) < 0.9 * plain
    assert spread(sobol=True, replicates=2) < 0.3 * plain
    assert spread(order="zeroth") < spread(order="zeroth", estimator="score")


@pytest.mark.short_cases(1)
@pytest.mark.parametrize("density", sorted(DENSITIES))
def test_orders_agree(density: str) -> None:
    """First order and both zeroth orders estimate the same number, for any density."""
    first = on_cart(1, samples=16384, density=density, sobol=True)
    if DENSITIES[density].score is None:
        with pytest.raises(ValueError, match="density: 'uniform' has no score"):
            Randomized(SIGMA, density=density, order="zeroth")
        return
    for estimator in ("least_squares", "score"):
        zeroth = on_cart(
            1, samples=16384, density=density, sobol=True, order="zeroth", estimator=estimator
        )
        assert zeroth.B[0, 0, 0] == pytest.approx(first.B[0, 0, 0], abs=4e-3)


def test_forces_and_parameters_act_on_every_scheme() -> None:
    """Schemes without noise are the step of a model with these numbers, under these forces."""
    scene = scenes.planar_hand()
    model = scene.model
    q, u = scene.sample(np.random.default_rng(4))
    rng = np.random.default_rng(5)
    tau = rng.normal(size=(3, 1, model.nv))
    wrench = rng.normal(size=(2, model.body_count, 6))
    mass = model.parameters.body_mass * np.array([1.0, 3.0])[:, None]
    loads = {"tau": tau, "wrench": wrench, "parameters": {"body_mass": mass}}
    for scheme, options in (
        (Exact(), qdsim.Options()),
        (Analytic(300.0), qdsim.Options(kappa=300.0)),
        (Randomized(0.0, 2, kappa=300.0), qdsim.Options(kappa=300.0)),
    ):
        found = scheme.linearize(model, q, u, **loads)
        assert found.A is not None
        assert found.B is not None
        assert found.c.shape == (3, 2, model.nq)
        for i in np.ndindex(3, 2):
            own = model.with_parameters(body_mass=mass[i[1]])
            want = qdsim.linearize(own, q, u, options, tau=tau[i[0], 0], wrench=wrench[i[1]])
            np.testing.assert_allclose(found.c[i], want.q_next, rtol=0, atol=1e-15)
            np.testing.assert_allclose(found.A[i], want.A, rtol=0, atol=1e-13)
            np.testing.assert_allclose(found.B[i], want.B, rtol=0, atol=1e-13)
    by_name = Analytic(300.0).linearize(model, q, u, wrench={model.body_names[-1]: wrench[0, -1]})
    alone = np.zeros((model.body_count, 6))
    alone[-1] = wrench[0, -1]
    assert by_name.c.tobytes() == Analytic(300.0).linearize(model, q, u, wrench=alone).c.tobytes()


def test_failures_under_forces_are_those_of_the_step() -> None:
    """A weightless ball pushed off the ground has no next state; pushed down it has."""
    model = qdsim.load(
        """<mujoco><option gravity="0 0 0"/><worldbody><geom type="plane" size="1 1 1"/>
        <body pos="0 0 0.1"><joint type="slide" axis="0 0 1"/><geom type="sphere" size="0.1" mass="1"/></body>
        <body pos="0 1 1"><joint name="b" type="slide" axis="1 0 0"/><geom type="sphere" size="0.1" mass="1"/></body>
        </worldbody><actuator><position joint="b" kp="100"/></actuator></mujoco>"""
    )
    options = qdsim.Options(epsilon=0.0)
    scheme = Randomized(0.01, 4)
    down = scheme.linearize(model, [0.0, 0.0], [0.0], options, tau=[-1.0, 0.0])
    np.testing.assert_allclose(down.B[:, 0], [0.0, 1.0], atol=1e-9)
    with pytest.raises(qdsim.SolverError):
        scheme.linearize(model, [0.0, 0.0], [0.0], options, tau=[1.0, 0.0])


def test_force_field_of_a_projection() -> None:
    """CQDC, Example 3: f(q) = max(q, 0) of a block that nothing drives, with q sampled."""
    model = qdsim.load(
        """<mujoco><option gravity="0 0 0"/><worldbody><geom type="plane" size="1 1 1" zaxis="1 0 0"/>
        <body pos="0.1 0 0"><joint name="x" type="slide" axis="1 0 0"/>
        <geom type="sphere" size="0.1" mass="1" condim="1"/></body></worldbody></mujoco>"""
    )
    q = np.array([[-0.1], [0.0], [0.05], [0.3]])
    scheme = Randomized(0.0, samples=8192, sample_q=0.1, sobol=True)
    found = scheme.linearize(model, q, np.zeros(0), FAR)
    for row, c, A in zip(q[:, 0], found.c[:, 0], found.A[:, 0, 0]):
        below, density = gauss(row / 0.1)
        assert c == pytest.approx(row * below + 0.1 * density, abs=1e-4)
        assert pytest.approx(below, abs=1e-3) == A
    assert found.B.shape == (4, 1, 0)


def test_rotations_are_averaged_in_the_tangent_space() -> None:
    """A turning body of unequal inertias: both orders, and differences of c, give the same A, and c + A v
    is what smoothing at the moved point gives. Without the charts' Jacobians they differ by 0.03."""
    model = scenes.pusher("box").model
    options = qdsim.Options(margin=0.0, h=0.1)
    q = model.integrate(model.default_q, np.r_[0, 0, 1.0, 0.4, -0.3, 0.2, np.zeros(model.nv - 6)])
    tau = np.zeros(model.nv)
    tau[2:6] = 0.7 * 9.81, 0.2, 0.3, -0.25
    noise = np.zeros(model.nv)
    noise[3:6] = 0.3
    u = np.zeros(model.nu)
    common = {"samples": 4096, "sobol": True, "sample_q": noise}
    first = Randomized(0.0, **common).linearize(model, q, u, options, tau=tau)
    everywhere = {**common, "sample_q": np.where(noise > 0, noise, 1e-3)}
    zeroth = Randomized(1e-3, order="zeroth", **everywhere).linearize(model, q, u, options, tau=tau)
    turn = slice(3, 6)
    np.testing.assert_allclose(first.A[turn, turn], zeroth.A[turn, turn], atol=6e-3)
    plain = qdsim.linearize(model, q, u, options, tau=tau).A[turn, turn]
    assert np.abs(plain - first.A[turn, turn]).max() > 0.02


def test_numbers_do_not_depend_on_threads_or_company() -> None:
    hand = scenes.planar_hand()
    rng = np.random.default_rng(0)
    q, u = (np.array(x) for x in zip(*[hand.sample(rng) for _ in range(5)]))
    for order in ("first", "zeroth", 0.5):
        scheme = Randomized(0.05, samples=40, order=order, sample_q=0.01, antithetic=True)

        def digest(found: LocalModel) -> bytes:
            errors = found.std_error
            parts = (found.A, found.B, found.c, errors.A, errors.B, errors.c, found.failed)
            return b"".join(part.tobytes() for part in parts)

        found = [scheme.linearize(hand.model, q, u, rng=3, threads=k) for k in (1, 2, 8)]
        assert len({digest(f) for f in found}) == 1
        alone = [scheme.linearize(hand.model, q[i], u[i], rng=3) for i in range(5)]
        for name in ("A", "B", "c"):
            together = getattr(found[0], name)
            np.testing.assert_allclose(
                together, [getattr(a, name) for a in alone], rtol=1e-9, atol=1e-12
            )
        other = scheme.linearize(hand.model, q, u, rng=4)
        assert digest(other) != digest(found[0])


def test_pieces_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    """Points and samples are worked on in pieces: sums agree to rounding."""
    hand = scenes.planar_hand()
    q, u = hand.sample(np.random.default_rng(0))
    scheme = Randomized(0.05, samples=64, order=0.5, sample_q=0.01)
    whole = scheme.linearize(hand.model, np.stack([q] * 3), u)
    monkeypatch.setattr(sampler, "MOST_HELD", 1000)
    pieces = scheme.linearize(hand.model, np.stack([q] * 3), u)
    for name in ("A", "B", "c"):
        np.testing.assert_allclose(getattr(pieces, name), getattr(whole, name), rtol=1e-12)
        error = getattr(whole.std_error, name)
        np.testing.assert_allclose(getattr(pieces.std_error, name), error, rtol=1e-9, atol=1e-15)


def test_seeds_and_generators() -> None:
    model = qdsim.load(CART)
    scheme = Randomized(SIGMA, samples=10)

    def c(rng: Any) -> float:
        return float(scheme.linearize(model, [0.3], [0.0], FAR, rng=rng).c[0])

    assert c(0) == c(0) == c(np.int64(0))
    assert c(0) != c(1)
    generator = np.random.default_rng(5)
    assert c(generator) != c(generator)
    assert c(np.random.default_rng(5)) == c(np.random.default_rng(5))
    # more samples begin with the same ones, and points have the same ones unless told otherwise
    two = Randomized(SIGMA, samples=10).linearize(model, [[0.3], [0.3]], [0.0], FAR)
    assert two.c[0] == two.c[1]
    apart = Randomized(SIGMA, samples=10, common=False).linearize(model, [[0.3], [0.3]], [0.0], FAR)
    assert apart.c[0] == two.c[0] != apart.c[1]


# ---------------------------------------------------------------- charts


@pytest.mark.parametrize("name", ["planar_hand", "box", "pendulum", "floating"])
def test_charts_are_the_models(name: str) -> None:
    """Retraction and difference are those of the model, and carried matrices those of moved points."""
    made = {"box": lambda: scenes.pusher("box")}.get(name) or getattr(scenes, name)
    model = made().model
    chart = Chart(model)
    rng = np.random.default_rng(0)
    q = model.integrate(model.default_q, 0.5 * rng.standard_normal(model.nv))
    v = 0.8 * rng.standard_normal((5, model.nv))
    v[0] *= 1e-6  # where angles are small, series take over
    moved = chart.retract(q, v)
    for row, want in zip(moved, v):
        np.testing.assert_allclose(row, model.integrate(q, want), atol=1e-14)
    np.testing.assert_allclose(chart.difference(moved, q), v, atol=1e-13)
    other = chart.retract(moved, 0.3 * rng.standard_normal((5, model.nv)))
    for row, q1, q0 in zip(chart.difference(other, moved), other, moved):
        np.testing.assert_allclose(row, model.difference(q1, q0), atol=1e-13)
    eye, eps = np.eye(model.nv), 1e-6
    for k in range(5):
        # how the point at v moves, in its own tangent space, where v moves by e; and the inverse
        steps = (chart.retract(q, v[k] + eps * eye), chart.retract(q, v[k] - eps * eye))
        forward = (chart.difference(steps[0], moved[k]) - chart.difference(steps[1], moved[k])).T
        forward /= 2 * eps
        np.testing.assert_allclose(chart.columns_at(eye, v[k]), forward, atol=1e-8)
        np.testing.assert_allclose(chart.rows_from(eye, v[k]), forward, atol=1e-8)
        back = chart.rows_at(chart.rows_from(eye, v[k]), v[k])
        np.testing.assert_allclose(back, eye, atol=1e-12)


# ---------------------------------------------------------------- failures and arguments


def test_failed_samples_are_left_out_and_counted() -> None:
    """A ball in the air falls for ever where no mass holds it: samples of q that lift it fail."""
    model = qdsim.load(
        """<mujoco><option gravity="0 0 -9.81"/><worldbody><geom type="plane" size="1 1 1"/>
        <body pos="0 0 0.1"><joint name="z" type="slide" axis="0 0 1"/>
        <geom type="sphere" size="0.1" mass="1"/></body></worldbody></mujoco>"""
    )
    options = qdsim.Options(epsilon=0.0, margin=0.05, add_missed_pairs=False)
    scheme = Randomized(0.0, samples=200, sample_q=0.05)
    found = scheme.linearize(model, [0.0], [], options)
    assert 10 < found.failed < 60  # one sixth of a Gaussian is beyond one deviation
    assert np.isfinite(found.c).all()
    assert np.isfinite(found.A).all()
    assert np.isfinite(found.std_error.A).all()
    with pytest.raises(
        qdsim.SolverError, match=r"linearize: \d+ of 200 samples failed, sample \d+"
    ):
        scheme.linearize(model, [0.0], [], options, errors="raise")
    with pytest.raises(qdsim.SolverError, match="linearize: point 1: 1 of 1 samples failed"):
        Randomized(0.0, samples=1, sample_q=0.05).linearize(
            model, [[0.0], [0.0499]], [], options, rng=first_that_lifts(scheme)
        )


def first_that_lifts(scheme: Randomized) -> int:
    """A seed whose first number is positive, but less than one deviation."""
    for seed in range(100):
        noise = draw(scheme._design, DENSITIES["gaussian"], seed, 0, 1)[0, 0]
        if 0.1 < noise < 0.9:
            return seed
    raise AssertionError


def test_wrong_arguments_are_named() -> None:
    for change, error, message in (
        ({"std": -0.1}, ValueError, "std: expected a number >= 0"),
        ({"std": "x"}, TypeError, "std: expected a number >= 0 or one per coordinate"),
        ({"std": [[1.0]]}, ValueError, "std: expected a number >= 0 or one per coordinate"),
        ({"samples": 0}, ValueError, "samples: expected an integer from 1 to 16777216, got 0"),
        ({"samples": 2.0}, TypeError, "samples: expected an integer from 1 to 16777216, got float"),
        ({"samples": 7, "antithetic": True}, ValueError, "samples: expected a multiple of 2"),
        ({"samples": 10, "sobol": True}, ValueError, "samples: expected a multiple of 4, got 10"),
        ({"order": "second"}, ValueError, "order: expected 'first', 'zeroth' or a number"),
        ({"order": 1.5}, ValueError, "order: expected a number from 0 to 1"),
        ({"order": None}, TypeError, "order: expected a number from 0 to 1"),
        ({"density": "cauchy"}, ValueError, "density: expected one of"),
        ({"estimator": "ridge"}, ValueError, "estimator: expected 'least_squares' or 'score'"),
        ({"antithetic": 1}, TypeError, "antithetic: expected True or False"),
        ({"kappa": 0.0}, ValueError, "kappa: expected a number > 0"),
        ({"replicates": 1}, ValueError, "replicates: expected an integer from 2 to 16777216"),
    ):
        with pytest.raises(error, match=message):
            Randomized(**{"std": 0.1, **change})
    with pytest.raises(ValueError, match=r"kappa: expected a number > 0, got -1\.0"):
        Analytic(-1.0)
    with pytest.raises(ValueError, match="stiffness: expected a number > 0"):
        barrier_scale(1.0, 0.0)
    model = qdsim.load(CART)
    for scheme, keywords, error, message in (
        (
            Randomized([0.1, 0.1]),
            {},
            ValueError,
            r"std: expected a number or 1 of them, got shape \(2,\)",
        ),
        (Randomized(0.1, order="zeroth"), {"wrt": ("q",)}, ValueError, "give sample_q"),
        (Randomized(0.0, order="zeroth"), {}, ValueError, "std: of actuator 0 is 0"),
        (Randomized(0.1, 1, "zeroth"), {}, ValueError, "samples: least squares over 1 coordinates"),
        (Randomized(0.1), {"rng": -1}, ValueError, "rng: expected a seed"),
        (Randomized(0.1), {"rng": 0.5}, TypeError, "rng: expected an integer or"),
        (Exact(), {"rng": "x"}, TypeError, "rng: expected an integer or"),
        (Analytic(1.0), {"options": 3}, TypeError, "options: expected a qdsim.Options, got int"),
        (Randomized(0.1), {"errors": "mark"}, ValueError, "errors: expected 'drop' or 'raise'"),
        (Randomized(0.1), {"wrt": "x"}, ValueError, "wrt: expected 'q' or 'u'"),
        (
            Randomized(0.1),
            {"threads": 0},
            ValueError,
            "threads: expected an integer from 1 to 1024",
        ),
    ):
        with pytest.raises(error, match=message):
            scheme.linearize(model, [0.3], [0.0], **keywords)
    assert Randomized(0.1, order="zeroth").linearize(model, [0.3], [0.0]).A is None


def test_schemes_are_values() -> None:
    scheme = Randomized(np.array([0.1, 0.2]), order="zeroth")
    assert scheme == Randomized((0.1, 0.2), order="zeroth")
    assert hash(scheme) == hash(Randomized([0.1, 0.2], order="zeroth"))
    assert pickle.loads(pickle.dumps(scheme)) == scheme
    found = on_cart(2, samples=8)
    again = pickle.loads(pickle.dumps(found))
    assert again.c.tobytes() == found.c.tobytes()
    assert repr(found).startswith("LocalModel(shape=(2,), samples=8, failed=0, StandardError(")
    assert found.q_next is found.c
