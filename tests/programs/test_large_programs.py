"""Programs with hundreds of unknowns and thousands of rows: one island of many objects."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from program import assemble, optimality
from scipy import sparse

import qdsim


def heap(count: int, seed: int = 0) -> qdsim.Model:
    """Boxes, balls and capsules in layers over a floor, each in the hollows of the layer below."""
    rng = np.random.default_rng(seed)
    side = int(np.ceil(np.sqrt(count / 3)))
    shapes = (
        'type="box" size=".05 .05 .05"',
        'type="sphere" size=".05"',
        'type="capsule" size=".05 .01"',
    )
    bodies = []
    for i in range(count):
        layer, place = divmod(i, side * side)
        x, y = 0.1 * (place % side) + 0.05 * (layer % 2), 0.1 * (place // side) + 0.05 * (layer % 2)
        x, y = x + rng.uniform(-1e-3, 1e-3), y + rng.uniform(-1e-3, 1e-3)
        shape = shapes[0] if rng.random() < 0.6 else shapes[rng.integers(1, 3)]
        bodies.append(
            f'<body pos="{x} {y} {0.0499 + 0.0999 * layer}" euler="{rng.uniform(-2, 2)} {rng.uniform(-2, 2)} 0">'
            f'<freejoint/><geom {shape} density="{rng.uniform(300, 900)}"/></body>'
        )
    return qdsim.load(
        f"""<mujoco><option gravity="0 0 -9.81"/><worldbody>
        <geom type="plane" size="9 9 1"/>{"".join(bodies)}
        <body name="pusher" pos="-.2 .1 .08"><joint name="x" type="slide" axis="1 0 0" range="-1 1"/>
          <geom type="box" size=".1 .2 .06"/></body></worldbody>
        <actuator><position joint="x" kp="3000"/></actuator></mujoco>"""
    )


OPTIONS = qdsim.Options(h=0.05, margin=0.02)


@pytest.mark.parametrize("count", [12, 60])
def test_a_heap_meets_the_optimality_conditions(count: int) -> None:
    model = heap(count)
    q, u = np.array(model.default_q), np.array([0.03])
    for _ in range(2):
        step = qdsim.step(model, q, u, OPTIONS)
        scale = 9.81 * float(np.sum(model.parameters.body_mass))
        gradient, gap, complementarity = optimality(model, q, u, OPTIONS, step)
        assert len(step.contacts) > 3 * count
        assert gradient < 1e-9 * scale
        assert gap < 1e-9
        assert complementarity < 1e-9 * scale
        q = np.array(step.q_next)


def test_a_heap_against_clarabel() -> None:
    from program import clarabel_program

    model = heap(45, seed=3)
    q, u = np.array(model.default_q), np.array([0.02])
    step = qdsim.step(model, q, u, OPTIONS)
    program = assemble(model, q, u, OPTIONS, step.contacts)
    reference = clarabel_program(program).answer()
    assert reference is not None
    cost = 0.5 * step.delta @ program.Q @ step.delta + program.b @ step.delta
    assert cost == pytest.approx(reference.objective, rel=1e-6, abs=1e-8)


def test_smoothed_heap_tends_to_the_exact_one() -> None:
    model = heap(60, seed=1)
    q, u = np.array(model.default_q), np.array([0.02])
    exact = qdsim.step(model, q, u, OPTIONS).info.objective
    gaps = []
    for kappa in (1e3, 1e4, 1e5):
        smooth = qdsim.step(model, q, u, OPTIONS.replace(kappa=kappa))
        gaps.append(smooth.info.objective - exact)
        # on the path the duality gap is the number of logs over kappa
        assert -1e-9 < gaps[-1] < 2.0 * len(smooth.contacts) / kappa
    assert gaps[0] > gaps[1] > gaps[2]


def test_derivative_of_a_heap_along_a_direction() -> None:
    model = heap(60, seed=2)
    q, u = np.array(model.default_q), np.array([0.02])
    options = OPTIONS.replace(kappa=500.0)
    lin = qdsim.linearize(model, q, u, options)
    rng = np.random.default_rng(0)
    for _ in range(3):
        v, w = rng.normal(size=model.nv), rng.normal(size=1)
        ours = lin.A @ v + lin.B @ w
        errors = []
        for eps in (1e-6, 1e-7, 1e-8):  # kinks of 700 pairs lie near
            ahead = qdsim.step(model, model.integrate(q, eps * v), u + eps * w, options).q_next
            behind = qdsim.step(model, model.integrate(q, -eps * v), u - eps * w, options).q_next
            errors.append(np.abs(model.difference(ahead, behind) / (2.0 * eps) - ours).max())
        assert min(errors) < 1e-5 * max(1.0, np.abs(ours).max())


def test_the_public_solver_takes_many_unknowns() -> None:
    """Beyond 64 tiles: a chain of 320 coupled unknowns with rows along it, scattered at random."""
    rng = np.random.default_rng(4)
    n = 320
    order = rng.permutation(n)
    Q = sparse.diags([np.full(n, 2.5), np.full(n - 1, -1.0), np.full(n - 1, -1.0)], [0, 1, -1])
    Q = np.asarray(Q.todense())[np.ix_(order, order)]
    b = rng.normal(size=n)
    G = np.zeros((3 * 150, n))
    for k in range(150):
        G[3 * k : 3 * k + 3, rng.choice(n, 4, replace=False)] = rng.normal(size=(3, 4))
    g = np.tile([0.3, 0.0, 0.0], 150)
    C = np.zeros((2, n))
    C[0, :2], C[1, 200:203] = 1.0, [1.0, -2.0, 1.0]
    for kind in ("lorentz", "orthant"):
        solution = qdsim.solve_cone_program(
            Q, b, G, g, [(kind, 3)] * 150, C=C, c=np.array([0.1, -0.2])
        )
        x, z, y = solution.x, solution.dual, solution.dual_eq
        slack = G @ x + g
        np.testing.assert_allclose(Q @ x + b - G.T @ z - C.T @ y, 0.0, atol=1e-9)
        np.testing.assert_allclose(C @ x + [0.1, -0.2], 0.0, atol=1e-10)
        s, z = slack.reshape(-1, 3), z.reshape(-1, 3)
        if kind == "lorentz":
            for w in (s, z):
                assert (np.linalg.norm(w[:, 1:], axis=1) - w[:, 0]).max() < 1e-9
        else:
            assert min(s.min(), z.min()) > -1e-9
        assert np.abs(np.sum(s * z, axis=1)).max() < 1e-9


PILES = np.load(Path(__file__).parents[1] / "data" / "smoothed_piles.npz")


@pytest.mark.parametrize("index", range(sum(name.startswith("q") for name in PILES.files)))
def test_smoothed_steps_that_are_hard(index: int) -> None:
    """Falling piles where a cold start did not arrive: offsets of rounding size that say nothing
    about lengths, and starts from which steps stay short."""
    h, epsilon, kappa, pyramid = PILES[f"o{index}"]
    model = qdsim.load(str(PILES[f"xml{index}"]))
    options = qdsim.Options(
        h=h,
        epsilon=epsilon,
        kappa=kappa,
        friction="pyramid" if pyramid else "cone",
        margin=0.05,
    )
    q, u = PILES[f"q{index}"], PILES[f"u{index}"]
    info = qdsim.step(model, q, u, options).info
    assert info.status == "solved"
    assert info.primal_residual < 1e-9
    assert info.complementarity < 1e-6 / kappa
    assert info.dual_residual < 1e-9 * 9.81 * float(np.sum(model.parameters.body_mass))
    assert np.all(np.isfinite(qdsim.linearize(model, q, u, options).A))
