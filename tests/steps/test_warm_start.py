"""Steps that start from an earlier one: the same answers as without, optimal by conditions written down
elsewhere, whatever the start was."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import numpy as np
import pytest
from scenes import Scene, planar_hand, spatial
from test_step_optimality import check_exact, check_smoothed

import qdsim
from qdsim import systems

CLOSE = 1e-8
KAPPAS = [None, 1e2, 1e4]


def trajectory(
    scene: Scene, options: qdsim.Options, rng: np.random.Generator, count: int
) -> Iterator[tuple[np.ndarray, np.ndarray, qdsim.Step | None]]:
    """States and commands along a motion, each with the step before: quiet, with jumps of the command."""
    model = scene.model
    q, u = scene.sample(rng)
    previous = None
    drift = 0.01 * rng.standard_normal(model.nu)
    for index in range(count):
        jump = index % 7 == 6
        u = u + drift + (0.2 if jump else 0.0) * rng.standard_normal(model.nu)
        yield q, u, previous
        try:
            previous = qdsim.step(model, q, u, options, warm_start=previous)
        except qdsim.SolverError:
            return
        q = np.array(previous.q_next)


def all_scenes(condim: int) -> dict[str, Scene]:
    return {"hand": planar_hand(), **spatial(condim)} if condim == 3 else spatial(condim)


def check_same(warm: qdsim.Step, cold: qdsim.Step, where: str) -> None:
    size = np.abs(cold.q_next).max()
    np.testing.assert_allclose(warm.q_next, cold.q_next, rtol=0, atol=CLOSE * size, err_msg=where)


@pytest.mark.short_cases(2)
@pytest.mark.parametrize("kappa", KAPPAS)
@pytest.mark.parametrize("friction", ["cone", "pyramid"])
@pytest.mark.parametrize("condim", [1, 3, 6])
def test_same_as_without(condim: int, friction: str, kappa: float | None) -> None:
    options = qdsim.Options(friction=friction, kappa=kappa)
    effort = {"warm": 0, "cold": 0}
    for name, scene in all_scenes(condim).items():
        for q, u, previous in trajectory(scene, options, np.random.default_rng(condim), 15):
            try:
                cold = qdsim.step(scene.model, q, u, options)
            except qdsim.SolverError as error:
                with pytest.raises(qdsim.SolverError) as caught:
                    qdsim.step(scene.model, q, u, options, warm_start=previous)
                assert caught.value.info.status == error.info.status
                continue
            warm = qdsim.step(scene.model, q, u, options, warm_start=previous)
            check_same(warm, cold, name)
            effort["warm"] += warm.info.factorizations
            effort["cold"] += cold.info.factorizations
    if kappa is not None:
        assert effort["warm"] < effort["cold"]


@pytest.mark.parametrize("friction", ["cone", "pyramid"])
def test_optimal(friction: str) -> None:
    """KKT conditions of steps that start from the one before, and from one of other options."""
    exact = qdsim.Options(friction=friction)
    for scene in all_scenes(3).values():
        for kappa in KAPPAS:
            options = exact.replace(kappa=kappa)
            for q, u, previous in trajectory(scene, exact, np.random.default_rng(1), 5):
                if kappa is None:
                    check_exact(scene, q, u, options, warm_start=previous)
                else:
                    check_smoothed(scene, q, u, options, warm_start=previous)


@pytest.mark.parametrize("kappa", KAPPAS)
def test_derivatives(kappa: float | None) -> None:
    options = qdsim.Options(kappa=kappa)
    exact = unsure = 0
    for name, scene in all_scenes(3).items():
        for q, u, previous in trajectory(scene, options, np.random.default_rng(2), 12):
            try:
                cold = qdsim.linearize(scene.model, q, u, options)
            except qdsim.SolverError:
                continue
            warm = qdsim.linearize(scene.model, q, u, options, warm_start=previous)
            kept = qdsim.differentiate(scene.model, q, u, options, warm_start=previous)
            if not cold.step.info.derivative_exact:
                continue
            exact += 1
            unsure += not warm.step.info.derivative_exact
            for mine, theirs in (
                (warm.A, cold.A),
                (warm.B, cold.B),
                (kept.vjp(np.eye(len(cold.A)), ("q",))["q"], cold.A),
            ):
                scale = max(1.0, np.abs(theirs).max())
                np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-7 * scale, err_msg=name)
    assert exact > 20 and unsure <= 0.02 * exact  # beside a kink either start may see it


def test_near_kinks_derivatives_that_differ_are_not_exact() -> None:
    """A pen comes to rest between fingers: forces of sliding contacts fall to 1e-9 of the others', where the
    error of any answer decides how fast the sliding direction turns. Two answers that both call their
    derivative exact have the same one."""
    options = qdsim.Options(margin=0.01)
    system = systems.load("allegro_pen")
    model = system.model
    exact = []
    for seed in (3, 5):
        q, u = np.array(system.start.q), np.zeros(model.nu)
        ahead = 0.02 * np.random.default_rng(seed).standard_normal(model.nu)
        previous = None
        for index in range(48):
            u = model.command_from(q) + ahead if index < 20 else u
            if index > 30:
                cold = qdsim.linearize(model, q, u, options)
                warm = qdsim.linearize(model, q, u, options, warm_start=previous)
                exact.append(cold.step.info.derivative_exact and warm.step.info.derivative_exact)
                if exact[-1]:
                    size = max(1.0, np.abs(cold.A).max())
                    np.testing.assert_allclose(warm.A, cold.A, rtol=0, atol=2e-6 * size)
            previous = qdsim.step(model, q, u, options, warm_start=previous if index > 25 else None)
            q = np.array(previous.q_next)
    assert any(exact)


def test_nothing_to_do_at_rest() -> None:
    """The step itself as the start: no iteration, and the same state."""
    system = systems.load("block_stacking")
    q = np.array(system.start.q)
    u = system.model.command_from(q)
    for friction in ("cone", "pyramid"):
        options = system.options.replace(friction=friction)
        step = qdsim.step(system.model, q, u, options)
        for start in (step, qdsim.linearize(system.model, q, u, options)):
            again = qdsim.step(system.model, q, u, options, warm_start=start)
            check_same(again, step, friction)
            assert again.info.iterations == 0
            assert again.info.factorizations < step.info.factorizations / 2
        through = pickle.loads(pickle.dumps(step))
        twice = qdsim.step(system.model, q, u, options, warm_start=through)
        assert np.array_equal(
            twice.q_next, qdsim.step(system.model, q, u, options, warm_start=step).q_next
        )


def rebuilt(step: qdsim.Step, contacts: np.ndarray, numbers: dict[str, np.ndarray]) -> qdsim.Step:
    restore, (q, delta, limit, *others, _, info) = step.__reduce__()
    delta, limit = numbers.get("delta", delta), numbers.get("limit_force", limit)
    return restore(q, delta, limit, *others, contacts, info)


def spoilt(step: qdsim.Step, rng: np.random.Generator) -> Iterator[qdsim.Step]:
    """Steps that no solver has given: contacts in any order, missing, twice, with any force."""
    contacts = np.array(step.contacts)
    yield rebuilt(step, contacts[::-1].copy(), {})
    yield rebuilt(step, contacts[:0].copy(), {})
    yield rebuilt(step, np.concatenate([contacts, contacts]), {})
    for scale in (1e-3, 1.0, 1e6, 1e150, np.inf, np.nan):
        wild = rng.permutation(contacts)
        wild["force"] += scale * rng.standard_normal(wild["force"].shape)
        wild["frame"] = wild["frame"][:, ::-1]
        nv = step.delta.size
        finite = min(scale, 1e200) if scale == scale else 1.0
        yield rebuilt(
            step,
            wild,
            {
                "delta": finite * rng.standard_normal(nv),
                "limit_force": finite * rng.standard_normal(nv),
            },
        )


@pytest.mark.short_cases(2)
@pytest.mark.parametrize("kappa", KAPPAS)
@pytest.mark.parametrize("friction", ["cone", "pyramid"])
def test_any_start_will_do(friction: str, kappa: float | None) -> None:
    options = qdsim.Options(friction=friction, kappa=kappa)
    rng = np.random.default_rng(3)
    for name, scene in all_scenes(3).items():
        for q, u, previous in trajectory(scene, options, rng, 4):
            if previous is None:
                continue
            try:
                cold = qdsim.step(scene.model, q, u, options)
            except qdsim.SolverError:
                continue
            for start in spoilt(previous, rng):
                check_same(qdsim.step(scene.model, q, u, options, warm_start=start), cold, name)


def test_a_step_of_other_options() -> None:
    scene = planar_hand()
    rng = np.random.default_rng(4)
    first = qdsim.Options()
    for q, u, previous in trajectory(scene, first, rng, 6):
        for changes in (
            {"kappa": 30.0},
            {"friction": "pyramid"},
            {"friction": "pyramid", "rays": 2},
            {"h": 0.01},
            {"held": ("l1",)},
            {"epsilon": 0.1},
            {"joint_limits": False},
        ):
            options = first.replace(**changes)
            cold = qdsim.step(scene.model, q, u, options)
            check_same(
                qdsim.step(scene.model, q, u, options, warm_start=previous), cold, str(changes)
            )


def test_wrong_starts_are_named() -> None:
    scene, other = planar_hand(), systems.load("allegro_sphere")
    q, u = scene.sample(np.random.default_rng(0))
    start = qdsim.step(other.model, other.start.q, other.model.command_from(other.start.q))
    with pytest.raises(ValueError, match="warm_start: a step of another model"):
        qdsim.step(scene.model, q, u, warm_start=start)
    with pytest.raises(TypeError, match="warm_start: expected a Step"):
        qdsim.linearize(scene.model, q, u, warm_start=q)
    bad = np.array(qdsim.step(scene.model, q, u).contacts)
    bad["pair"] = 10**6
    with pytest.raises(ValueError, match="warm_start: a step of another model"):
        qdsim.step(scene.model, q, u, warm_start=rebuilt(qdsim.step(scene.model, q, u), bad, {}))


def test_cone_programs() -> None:
    rng = np.random.default_rng(5)
    n, cones = 8, [("orthant", 4), ("lorentz", 3), ("lorentz", 4)]
    m = sum(rows for _, rows in cones)
    root = rng.standard_normal((n, n))
    Q, b, G = root @ root.T + np.eye(n), rng.standard_normal(n), rng.standard_normal((m, n))
    C, c = rng.standard_normal((2, n)), np.zeros(2)
    g = np.zeros(m)
    g[[0, 1, 2, 3, 4, 7]] = 1.0
    for target_mu in (0.0, 1e-3):
        first = qdsim.solve_cone_program(Q, b, G, g, cones, C, c, target_mu)
        for change in (0.0, 1e-3, 1.0):
            moved = b + change * rng.standard_normal(n)
            cold = qdsim.solve_cone_program(Q, moved, G, g, cones, C, c, target_mu)
            warm = qdsim.solve_cone_program(
                Q, moved, G, g, cones, C, c, target_mu, warm_start=first
            )
            np.testing.assert_allclose(warm.x, cold.x, rtol=0, atol=1e-8)
            np.testing.assert_allclose(warm.dual, cold.dual, rtol=0, atol=1e-7)
            if change == 0.0:
                assert warm.info.factorizations <= min(2, cold.info.factorizations)
    with pytest.raises(ValueError, match="warm_start: has"):
        qdsim.solve_cone_program(Q, b, G[:4], g[:4], cones[:1], warm_start=first)
    with pytest.raises(TypeError, match="warm_start: expected a ConeSolution"):
        qdsim.solve_cone_program(Q, b, G, g, cones, warm_start=(first.x, first.dual))


def courses(scene: Scene, samples: int, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """States and smooth commands with a jump."""
    rng = np.random.default_rng(7)
    q, hold = map(np.stack, zip(*(scene.sample(rng) for _ in range(samples)), strict=True))
    phase = 2 * np.pi * rng.random((samples, 1, scene.model.nu))
    u = hold[:, None] + 0.05 * np.sin(0.3 * np.arange(steps)[None, :, None] + phase)
    u[:, steps // 2] += 0.2 * rng.standard_normal((samples, scene.model.nu))
    return q, u


@pytest.mark.parametrize("kappa", KAPPAS)
def test_rollouts(kappa: float | None) -> None:
    """As a loop over steps that start from the one before, in all bits, whatever the threads; and close to
    the loop without."""
    options = qdsim.Options(kappa=kappa)
    for name, scene in all_scenes(3).items():
        q, u = courses(scene, 6, 12)
        cold = qdsim.rollout(scene.model, q, u, options, errors="mark")
        warm = [
            qdsim.rollout(
                scene.model, q, u, options, errors="mark", warm_start=True, threads=threads
            ).q
            for threads in (1, 2, 5)
        ]
        assert all(np.array_equal(warm[0], other) for other in warm[1:])
        for i in np.flatnonzero(cold.ok):
            loop, previous = [np.array(q[i])], None
            for command in u[i]:
                previous = qdsim.step(scene.model, loop[-1], command, options, warm_start=previous)
                loop.append(previous.q_next)
            assert np.array_equal(loop[1:], warm[0][i, 1:]), name
            np.testing.assert_allclose(warm[0][i], cold.q[i], rtol=0, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("kappa", [None, 1e2])
def test_batches(kappa: float | None) -> None:
    """Samples around a nominal point from its step, and each from an earlier one of its own: as single
    calls, in all bits."""
    options = qdsim.Options(kappa=kappa)
    scene = planar_hand()
    rng = np.random.default_rng(8)
    nominal_q, nominal_u = scene.sample(rng)
    nominal = qdsim.linearize(scene.model, nominal_q, nominal_u, options)
    q = np.stack(
        [
            scene.model.integrate(nominal_q, 1e-3 * rng.standard_normal(scene.model.nv))
            for _ in range(6)
        ]
    )
    u = nominal_u + 1e-2 * rng.standard_normal((6, scene.model.nu))
    cold = qdsim.linearize_batch(scene.model, q, u, options)
    around = qdsim.linearize_batch(scene.model, q, u, options, warm_start=nominal, threads=2)
    own = qdsim.step_batch(scene.model, q, u + 1e-3, options, warm_start=cold)
    for i in range(6):
        one = qdsim.linearize(scene.model, q[i], u[i], options, warm_start=nominal.step)
        assert np.array_equal(one.A, around.A[i])
        start = qdsim.step(scene.model, q[i], u[i], options)
        assert np.array_equal(
            own.q_next[i],
            qdsim.step(scene.model, q[i], u[i] + 1e-3, options, warm_start=start).q_next,
        )
    np.testing.assert_allclose(around.A, cold.A, rtol=0, atol=1e-7)
    np.testing.assert_allclose(around.q_next, cold.q_next, rtol=0, atol=CLOSE)


def test_wrong_starts_of_batches_are_named() -> None:
    scene, other = planar_hand(), systems.load("allegro_sphere")
    rng = np.random.default_rng(9)
    q, u = map(np.stack, zip(*(scene.sample(rng) for _ in range(4)), strict=True))
    start = qdsim.step_batch(scene.model, q, u)
    foreign = qdsim.step(other.model, other.start.q, other.model.command_from(other.start.q))
    with pytest.raises(ValueError, match="warm_start: has leading dimensions"):
        qdsim.step_batch(scene.model, q[:2], u[:2], warm_start=start)
    with pytest.raises(ValueError, match="contacts=False"):
        bare = qdsim.step_batch(scene.model, q, u, contacts=False)
        qdsim.step_batch(scene.model, q, u, warm_start=bare)
    with pytest.raises(ValueError, match="another model"):
        qdsim.step_batch(scene.model, q, u, warm_start=foreign)
    with pytest.raises(ValueError, match="another model"):
        qdsim.rollout(scene.model, q, u[:, None], warm_start=foreign)
    with pytest.raises(TypeError, match="warm_start: expected"):
        qdsim.linearize_batch(scene.model, q, u, warm_start=q)
    with pytest.raises(TypeError, match="warm_start: expected"):
        qdsim.rollout(scene.model, q, u[:, None], warm_start=1.0)
    failed = qdsim.step_batch(
        scene.model, q, u, qdsim.Options(iteration_limit=1, kappa=1.0), errors="mark"
    )
    assert not failed.ok.any()
    np.testing.assert_allclose(
        qdsim.step_batch(scene.model, q, u, warm_start=failed).q_next, start.q_next, atol=CLOSE
    )


@pytest.mark.parametrize("friction", ["cone", "pyramid"])
def test_coming_to_rest(friction: str) -> None:
    """The same command again and again: slips go to zero, where no active set is strict."""
    options = qdsim.Options(friction=friction)
    cases = {
        name: (s.model, *s.sample(np.random.default_rng(11))) for name, s in all_scenes(3).items()
    }
    for name in ("allegro_plate", "iiwa_bimanual_box"):
        system = systems.load(name)
        q = np.array(system.start.q)
        cases[name] = system.model, q, system.model.command_from(q) + 0.02
    for name, (model, q, u) in cases.items():
        previous = None
        for _ in range(15):
            try:
                cold = qdsim.step(model, q, u, options)
            except qdsim.SolverError:
                break
            previous = qdsim.step(model, q, u, options, warm_start=previous)
            check_same(previous, cold, name)
            info = previous.info
            assert info.primal_residual <= 1e-9, name
            assert info.dual_residual <= 1e-6, name
            assert info.complementarity <= 1e-9, name
            q = np.array(previous.q_next)
