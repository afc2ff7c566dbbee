"""Trajectory optimisation: its cost and models against closed forms and differences, its answers
against the physics they claim.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from cost_slopes import cost_slopes

import qdsim
from qdsim import systems
from qdsim.batches.rollouts import feedback_rollout
from qdsim.planning import ImpcOptions, Mpc, RRTOptions, Task, TrackingCost, impc, rrt
from qdsim.planning.tracking.cost_model import CostModel
from qdsim.planning.tracking.shooting import Shooting
from qdsim.planning.tracking.starts import squeeze_direction
from qdsim.smoothing import Analytic, Exact, Randomized

Array = npt.NDArray[np.float64]


@pytest.fixture(scope="module")
def pushing() -> Task:
    return systems.load("planar_pushing").tasks["push_and_turn"]


@pytest.fixture(scope="module")
def hand() -> Task:
    return systems.load("planar_hand").tasks["shift_and_turn"]


@pytest.fixture(scope="module")
def ball() -> Task:
    return systems.load("allegro_sphere").tasks["turn"]


# A pusher far from a box, geared and bounded: nothing but the pusher moves.
ALONE = """
<mujoco>
  <option gravity="0 0 0"/>
  <worldbody>
    <body name="pusher">
      <joint name="x" type="slide" axis="1 0 0" range="-2 2"/>
      <joint name="y" type="slide" axis="0 1 0" range="-2 2"/>
      <geom type="sphere" size="0.1" mass="1"/>
    </body>
    <body name="box" pos="50 0 0">
      <freejoint name="box"/>
      <geom type="box" size="0.15 0.15 0.15" mass="1"/>
    </body>
  </worldbody>
  <actuator><position joint="x" kp="100"/><position joint="y" kp="50"/></actuator>
</mujoco>
"""


@pytest.fixture(scope="module")
def alone() -> Task:
    model = qdsim.load(ALONE)
    goal = model.default_q + 0.0
    goal[:2] = [0.7, -0.4]
    bounds = np.full(6, 1.0)
    return Task(
        name="alone",
        model=model,
        options=qdsim.Options(h=0.1, margin=0.1),
        start=model.default_q,
        goal=goal,
        object="box",
        lower=-bounds,
        upper=bounds,
        impc=ImpcOptions(
            horizon=8,
            cost=TrackingCost(object=1.0, robot=(2.0, 3.0), command=(5.0, 4.0), final_robot=(7.0, 8.0)),
            radii=(10.0,),
            start="hold",
        ),
    )  # fmt: skip


def written_out(task: Task, cost: TrackingCost, q: Array, u: Array) -> float:
    """The cost of CQDC eq. (43b) with moves of the command, term by term."""
    total, before = 0.0, task.model.command_from(task.start)
    for t in range(len(q)):
        last = t == len(q) - 1
        e = task.space.difference(q[t], task.goal)
        r = q[t][task.model.actuated_q] - task.goal[task.model.actuated_q]
        total += float(np.sum(np.array(cost.final_object if last else cost.object) * e**2))
        total += float(np.sum(np.array(cost.final_robot if last else cost.robot) * r**2))
        if not last:
            total += float(np.sum(np.array(cost.command) * (u[t] - before) ** 2))
            before = u[t]
    return total


# -------------------------------------------------------------------- cost and program


def test_costs_of_the_published_starts(pushing: Task, hand: Task, ball: Task) -> None:
    """The released scripts begin at 3421, 408 and 81."""
    hardware = systems.load("allegro_sphere_hardware").tasks["turn"]
    for task, cost in ((pushing, 3421.0), (hand, 408.0), (hardware, 81.0)):
        held = impc(task, task.impc.replace(iterations=0, start="hold"))
        assert held.cost == pytest.approx(cost, rel=0.015)


def test_without_contact_the_solution_is_a_banded_linear_system(alone: Task) -> None:
    """The robot is where it is told to be: cost = sum w (u_t - g)^2 + c (u_t - u_{t-1})^2."""
    found = impc(alone, alone.impc.replace(iterations=1))
    T, cost = 8, alone.impc.cost
    for i in range(2):
        w = np.full(T, cost.robot[i])
        w[-1] = cost.final_robot[i]
        D = np.eye(T) - np.eye(T, k=-1)
        u = np.linalg.solve(np.diag(w) + cost.command[i] * D.T @ D, w * alone.goal[i])
        np.testing.assert_allclose(found.u[:, i], u, atol=1e-5)
    np.testing.assert_allclose(found.q[1:, :2], found.u, atol=1e-9)
    assert found.records["cost"][1] == pytest.approx(
        written_out(alone, cost, found.q, found.u), rel=1e-12
    )


def test_bounds_hold(alone: Task) -> None:
    """Of the commands, and of the states, which follow them one to one here."""
    slow = impc(alone, alone.impc.replace(iterations=1, radii=(0.05,)))
    assert np.abs(slow.u).max() == pytest.approx(0.05, abs=1e-6)
    upper = np.full(alone.model.nv, math.inf)
    upper[0] = 0.3
    lower = np.full(alone.model.nv, -math.inf)
    low = impc(alone, alone.impc.replace(state_bounds=(lower, upper)))
    assert low.q[:, 0].max() == pytest.approx(0.3, abs=1e-5)
    wide = alone.replace(command_lower=np.array([-2.0, -0.1]), goal=alone.goal * 1.0)
    assert impc(wide).u[:, 1].min() == pytest.approx(-0.1, abs=1e-6)
    # a start outside of the bounds is no dead end
    outside = impc(alone, alone.impc.replace(state_bounds=(lower, upper - 0.5)))
    assert outside.cost < outside.records["cost"][0]


@pytest.mark.parametrize("name", ["ball", "pushing"])
def test_the_quadratic_model_has_the_slopes_of_the_cost(
    name: str, request: pytest.FixtureRequest
) -> None:
    """Also far from the goal, where the logarithm's Jacobian is no identity."""
    task = request.getfixturevalue(name)
    model, rng = task.model, np.random.default_rng(0)
    cost = CostModel(task, task.impc.cost)
    u = np.tile(model.command_from(task.start), (3, 1))
    path = np.array(
        [model.integrate(task.start, v) for v in 0.8 * rng.standard_normal((4, model.nv))]
    )
    Q, linear = cost.expand(path[1:])
    assert np.allclose(Q, Q.swapaxes(1, 2)) and np.linalg.eigvalsh(Q).min() > -1e-12
    assert linear == pytest.approx(cost_slopes(cost, model, path, u), abs=1e-4)


def test_the_cost_does_not_depend_on_the_sign_of_quaternions(ball: Task) -> None:
    cost = CostModel(ball, ball.impc.cost)
    rng = np.random.default_rng(1)
    path = np.array(
        [ball.model.integrate(ball.start, 0.3 * v) for v in rng.standard_normal((5, 22))]
    )
    other = path.copy()
    other[:, ball.space.q[3:]] *= -1.0
    u = np.zeros((4, 16))
    assert cost.values(path, u, u[0])[0] == pytest.approx(float(cost.values(other, u, u[0])[0]))
    assert cost.values(path, u, u[0])[0] == pytest.approx(
        written_out(ball.replace(), ball.impc.cost, path, u)
        - float(np.sum(10.0 * ball.model.command_from(ball.start) ** 2))
    )


# -------------------------------------------------------------------- answers


@pytest.mark.parametrize(("name", "bound"), [("pushing", 100.0), ("hand", 20.0)])
def test_planar_tasks_reach_half_the_published_cost_or_less(
    name: str, bound: float, request: pytest.FixtureRequest
) -> None:
    """The released code ends at 122 (pushing) and 18.3 to 24 (hand); open rollouts, same commands."""
    task = request.getfixturevalue(name)
    found = impc(task)
    assert found.cost < bound
    assert found.cost == pytest.approx(
        written_out(task, task.impc.cost, found.q, found.u), rel=1e-9
    )
    again = qdsim.rollout(task.model, task.start, found.u, found.step_options)
    assert again.q.tobytes() == found.q.tobytes()
    records = found.records
    assert (np.diff(records["best_cost"]) <= 0.0).all()
    assert found.cost == records["best_cost"][-1] == records["cost"].min()
    assert found.cost == records["cost"][found.iteration]
    assert (np.diff(records["seconds"]) > 0.0).all()
    assert len(records) == task.impc.iterations + 1


def test_the_published_algorithm_comes_to_the_published_cost(pushing: Task) -> None:
    """Same weights, schedule and start as the released script: 3421 to 122 in ten iterations."""
    settings = ImpcOptions.published(
        cost=pushing.impc.cost, iterations=10, kappa=(100.0, 100.0 * 20.0**0.5)
    )
    found = impc(pushing, settings)
    assert found.cost == pytest.approx(122.0, rel=0.15)
    assert found.records["programs"][-1] == 200
    assert found.records["kappa"][-1] == pytest.approx(100.0 * 20.0 ** (9 / 20))


def test_an_easy_goal_is_reached_and_becomes_a_plan(hand: Task) -> None:
    goal = hand.with_object(hand.start, [0.02, 0.02, 0.3])
    easy = hand.replace(goal=goal, impc=hand.impc.replace(
        cost=TrackingCost(object=10.0, robot=1e-3, command=1.0)))  # fmt: skip
    found = impc(easy)
    assert found.reached, found
    verdict = found.plan().check(easy.model)
    assert verdict.good, verdict.faults


@pytest.mark.long
def test_a_ball_is_turned_in_space(ball: Task) -> None:
    """Further than the released code's eighth turn costs, with the rollout's own errors."""
    found = impc(ball)
    shift, turn = found.errors
    assert found.cost < 0.1 * found.records["cost"][0] and turn < 0.1 and shift < 0.02
    w = abs(float(found.q[-1][-4:] @ ball.goal[-4:]))  # the angle once more, from quaternions
    assert turn == pytest.approx(2.0 * math.acos(min(1.0, w)), abs=1e-6)


@pytest.mark.parametrize(
    "scheme",
    [
        Exact(),
        Analytic(300.0),
        lambda i: Randomized(0.2 / (i + 1) ** 0.8, samples=20),
        lambda i: Randomized(0.2 / (i + 1) ** 0.8, samples=20, order="zeroth"),
    ],
)
def test_every_smoothing_lowers_the_cost_and_repeats(scheme: Any, pushing: Task) -> None:
    settings = pushing.impc.replace(iterations=4, smoothing=scheme, use_A=False)
    runs = [impc(pushing, settings.replace(threads=threads), rng=3) for threads in (1, 2)]
    assert runs[0].cost < 0.7 * runs[0].records["cost"][0]
    assert runs[0].u.tobytes() == runs[1].u.tobytes()


def test_several_first_guesses(pushing: Task) -> None:
    """Each is iterated for a while, the best then alone; no guess alone did better in its trials."""
    settings = pushing.impc.replace(trials=3, iterations=12)
    starts = ("hold", "squeeze", "hold")
    found = impc(pushing, settings.replace(start=starts))
    records = found.records
    assert len(records) == 12 + len(starts)
    assert records["iteration"].tolist() == [0, 1, 2, 3, 3, 4, 5, 6, 6, 7, 8, 9, 10, 11, 12]
    assert (np.diff(records["best_cost"]) <= 0.0).all()
    assert found.cost == records["cost"].min() == records["best_cost"][-1]
    assert found.cost in records["cost"][records["iteration"] == found.iteration]
    alone = {s: impc(pushing, settings.replace(start=s, iterations=3)) for s in starts}
    assert records["cost"][:4].tolist() == alone["hold"].records["cost"].tolist()
    assert records["cost"][4:8].tolist() == alone["squeeze"].records["cost"].tolist()
    assert records["cost"][8:12].tolist() == alone["hold"].records["cost"].tolist()
    best = min(alone, key=lambda s: alone[s].cost)
    more = impc(pushing, settings.replace(start=best, iterations=6))  # 12 less 2 times 3
    assert found.cost == more.cost
    assert found.u.tobytes() == more.u.tobytes()
    few = impc(pushing, settings.replace(start=starts, iterations=4)).records
    assert few["iteration"].tolist() == [0, 1, 2, 3, 3, 4, 4]
    loop = Mpc(pushing, settings.replace(start=("hold", "rrt"), iterations=1))
    only = Mpc(pushing, settings.replace(start="hold", iterations=1))
    assert loop.act(pushing.start).tobytes() == only.act(pushing.start).tobytes()


def test_starts_and_variants(pushing: Task) -> None:
    settings = pushing.impc.replace(iterations=6)
    held = impc(pushing, settings.replace(start="hold"))
    tree = impc(pushing, settings.replace(start="rrt"), rng=1)
    given = impc(pushing, settings.replace(iterations=0), u=tree.u)
    assert given.cost == tree.cost and given.q.tobytes() == tree.q.tobytes()
    assert tree.cost < 600.0 and held.cost < 600.0
    lazy = impc(pushing, settings.replace(patience=2, iterations=60))
    assert len(lazy.records) < 61


def test_the_squeeze_closes_the_hand(hand: Task) -> None:
    """Left fingers turn one way, right ones the other, and the disc stays."""
    direction = squeeze_direction(hand, hand.start, 100.0)
    assert np.abs(direction).max() == pytest.approx(1.0)
    assert direction[0] * direction[2] < 0.0 and direction[1] * direction[3] < 0.0
    u = hand.model.command_from(hand.start) + 0.05 * direction
    pressed = qdsim.step(hand.model, hand.start, u, hand.options)
    force = [c["force"][0] for c in pressed.contacts if c["force"][0] > 0.1]
    assert len(force) >= 2
    assert hand.space.errors(pressed.q_next, hand.start)[0] < 0.02


@pytest.mark.parametrize("name", ["hand", "ball"])
def test_commands_react_in_the_core_as_step_by_step(
    name: str, request: pytest.FixtureRequest
) -> None:
    """Gains on displacements and on the command before, bounds that are met, the same bits on threads."""
    task: Task = request.getfixturevalue(name)
    model, rng, T, count = task.model, np.random.default_rng(4), 5, 3
    nu, nv, hold = model.nu, model.nv, np.asarray(model.command_from(task.start))
    nominal = np.array(
        [model.integrate(task.start, 0.02 * v) for v in rng.standard_normal((T, nv))]
    )
    u = hold + 0.05 * rng.standard_normal((count, T, nu))
    x_gain = 0.3 * rng.standard_normal((count, T, nu, nv)) / nv
    u_gain = 0.3 * rng.standard_normal((count, T, nu, nu)) / nu
    lower, upper = u - 0.1, u + 0.1
    feedback = (nominal, hold, x_gain, u_gain, lower, upper)
    q0 = np.broadcast_to(task.start, (count, model.nq))
    q, commands, good = feedback_rollout(model, q0, u, task.options, feedback, threads=1)
    assert (
        good.all() and np.any(commands == upper) and np.any((commands < upper) & (commands > lower))
    )
    for k in range(count):
        now, before = np.array(task.start), hold
        for t in range(T):
            wanted = u[k, t] + x_gain[k, t] @ model.difference(now, nominal[t])
            before = np.clip(wanted + u_gain[k, t] @ before, lower[k, t], upper[k, t])
            np.testing.assert_allclose(commands[k, t], before, atol=1e-8)
            now = qdsim.step(model, now, commands[k, t], task.options).q_next
            np.testing.assert_allclose(q[k, t + 1], now, atol=1e-12)
    shared = feedback_rollout(model, q0, u, task.options, feedback, threads=3)
    assert shared[0].tobytes() == q.tobytes() and shared[1].tobytes() == commands.tobytes()
    broken = task.options.replace(kappa=100.0, iteration_limit=1)
    q, commands, good = feedback_rollout(model, q0, u, broken, feedback)
    assert not good.any() and np.isnan(commands).all() and (q == q[:, :1]).all()
    with pytest.raises(ValueError, match="x_gain"):
        feedback_rollout(model, q0, u, task.options, (nominal, hold, u_gain, *feedback[3:]))
    with pytest.raises(ValueError, match="misses upper"):
        feedback_rollout(model, q0, u, task.options, feedback[:5])  # type: ignore[arg-type]


# -------------------------------------------------------------------- searches that were cut off


class Cut(Exception):
    """Where a run ends."""


@pytest.mark.short_cases(1)
@pytest.mark.parametrize("last", [1, 4, 7, 9, 13])
def test_a_search_goes_on_with_the_same_bits(
    last: int, pushing: Task, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut off in the trials of each first guess and in the iterations after them; sampled, from trees too."""
    file = tmp_path / "search.npz"
    options = pushing.impc.replace(
        start=("hold", "rrt", "squeeze"),
        trials=4,
        iterations=16,
        smoothing=Randomized(0.1, samples=4),
    )
    whole = impc(pushing, options, rng=3)
    calls = 0
    linearize = Shooting.linearize

    def counted(self: Shooting, *arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == last + 1:
            raise Cut
        return linearize(self, *arguments)

    monkeypatch.setattr(Shooting, "linearize", counted)
    with pytest.raises(Cut):
        impc(pushing, options, rng=3, checkpoint=file, checkpoint_seconds=0.0)
    resumed = impc(pushing, options.replace(threads=2), rng=99, checkpoint=file)
    assert calls == 17  # none was done twice
    assert resumed.q.tobytes() == whole.q.tobytes() and resumed.u.tobytes() == whole.u.tobytes()
    assert (resumed.cost, resumed.iteration) == (whole.cost, whole.iteration)
    for name in whole.records.dtype.names:
        if name != "seconds":
            np.testing.assert_array_equal(resumed.records[name], whole.records[name])
    assert (np.diff(resumed.records["seconds"]) > 0.0).all()
    again = impc(pushing, options, checkpoint=file)  # a finished one has nothing left to do
    assert calls == 17 and again.u.tobytes() == whole.u.tobytes()


def test_a_resumed_search_is_as_patient_as_an_uninterrupted_one(
    pushing: Task, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = pushing.impc.replace(iterations=40, patience=4, start="hold")
    whole = impc(pushing, options)
    stopped = whole.records["iteration"][-1]
    assert stopped < 40  # patience ended it
    linearize = Shooting.linearize
    for cut in range(1, stopped, 3):
        file, calls = tmp_path / f"{cut}.npz", 0

        def counted(self: Shooting, *arguments: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls > cut:  # noqa: B023
                raise Cut
            return linearize(self, *arguments)

        monkeypatch.setattr(Shooting, "linearize", counted)
        with pytest.raises(Cut):
            impc(pushing, options, checkpoint=file, checkpoint_seconds=0.0)
        monkeypatch.setattr(Shooting, "linearize", linearize)
        resumed = impc(pushing, options, checkpoint=file)
        assert resumed.u.tobytes() == whole.u.tobytes()
        assert resumed.records["iteration"].tolist() == whole.records["iteration"].tolist()


def test_iterations_may_grow(pushing: Task, tmp_path: Any) -> None:
    file = tmp_path / "search.npz"
    options = pushing.impc.replace(iterations=6)
    first = impc(pushing, options.replace(iterations=2), checkpoint=file)
    grown = impc(pushing, options, checkpoint=file)
    assert len(first.records) == 3 and len(grown.records) == 7
    assert grown.u.tobytes() == impc(pushing, options).u.tobytes()
    given = impc(
        pushing, options.replace(iterations=1), u=first.u, checkpoint=tmp_path / "given.npz"
    )
    more = impc(pushing, options, u=first.u, checkpoint=tmp_path / "given.npz")
    assert (
        more.cost <= given.cost
        and more.u.tobytes() == impc(pushing, options, u=first.u).u.tobytes()
    )


@pytest.mark.parametrize("kind", ["MT19937", "Philox", "SFC64"])
def test_every_generator_goes_on_where_it_was(kind: str, pushing: Task, tmp_path: Any) -> None:
    """Some keep arrays in their state."""

    def fresh(seed: int) -> np.random.Generator:
        return np.random.Generator(getattr(np.random, kind)(seed))

    options = pushing.impc.replace(iterations=4, smoothing=Randomized(0.1, samples=4))
    whole = impc(pushing, options, fresh(1))
    file = tmp_path / "search.npz"
    impc(pushing, options.replace(iterations=2), fresh(1), checkpoint=file)
    assert impc(pushing, options, fresh(7), checkpoint=file).u.tobytes() == whole.u.tobytes()


def test_checkpoints_of_something_else_are_named(pushing: Task, hand: Task, tmp_path: Any) -> None:
    file = tmp_path / "search.npz"
    options = pushing.impc.replace(iterations=1)
    found = impc(pushing, options, checkpoint=file)
    changes = ({"radii": (0.1,)}, {"kappa": (100.0, 200.0)}, {"start": ("hold", "squeeze")})
    for change in changes:
        with pytest.raises(
            ValueError, match=r"checkpoint: .*another task, first guess or other options"
        ):
            impc(pushing, options.replace(**change), checkpoint=file)
    for task, u in ((hand, None), (pushing, found.u)):
        with pytest.raises(ValueError, match=r"checkpoint: .*another task, first guess"):
            impc(task, options.replace(cost=None), u=u, checkpoint=file)
    with pytest.raises(ValueError, match=r"checkpoint: .*not one of this optimisation"):
        impc(pushing, options, np.random.Generator(np.random.SFC64(0)), checkpoint=file)
    with pytest.raises(ValueError, match="checkpoint_seconds: expected a number >= 0"):
        impc(pushing, options, checkpoint=file, checkpoint_seconds=math.nan)
    whole = file.read_bytes()
    tree = tmp_path / "tree.npz"
    rrt(pushing, RRTOptions(max_nodes=3), checkpoint=tree)
    at = len(whole) // 2
    flipped = whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]
    for content in (whole[:200], b"", flipped, tree.read_bytes()):
        file.write_bytes(content)
        with pytest.raises(ValueError, match=r"checkpoint: .*not one of this optimisation"):
            impc(pushing, options, checkpoint=file)
    with pytest.raises(OSError):
        impc(pushing, options, checkpoint=tmp_path / "nowhere" / "search.npz")


# -------------------------------------------------------------------- closed loop


@pytest.mark.short_cases(1)
@pytest.mark.parametrize("seed", range(12))
def test_a_displaced_disc_is_brought_back(seed: int, hand: Task) -> None:
    """Displaced by 2 cm and 0.2 rad on its way; commands of an open loop miss by that much."""
    rng = np.random.default_rng(seed)
    cost = TrackingCost(object=10.0, robot=1e-3, command=1.0)
    options = hand.impc.replace(horizon=15, cost=cost, start="squeeze")
    loop, q = Mpc(hand, options), hand.start
    for k in range(40):
        if k == 10:
            a = rng.uniform(0.0, 2.0 * math.pi)
            turn = 0.2 * rng.choice([-1.0, 1.0])
            q = hand.with_object(q, [0.02 * math.cos(a), 0.02 * math.sin(a), turn])
        q = qdsim.step(hand.model, q, loop.act(q), hand.options).q_next
        assert loop.report.fallback == ""
    assert hand.reached(q), hand.space.errors(q, hand.goal)


def test_a_reset_controller_repeats_itself(pushing: Task) -> None:
    loop = Mpc(pushing, pushing.impc.replace(smoothing=Randomized(0.1, samples=8)), rng=5)
    runs = []
    for _ in range(2):
        q, commands = pushing.start, []
        for _ in range(4):
            commands.append(loop.act(q))
            q = qdsim.step(pushing.model, q, commands[-1], pushing.options).q_next
        runs.append(np.array(commands))
        loop.reset()
    assert runs[0].tobytes() == runs[1].tobytes()
    guess = np.tile(pushing.model.command_from(pushing.start), (20, 1))
    loop.reset(guess)
    np.testing.assert_array_equal(loop.commands, guess)


def test_changes_count_from_the_command_that_was_executed(pushing: Task) -> None:
    """If changes of the command cost much more than all else, the best command is the one before."""
    cost = TrackingCost(object=1e-6, robot=0.0, command=1e6)
    loop = Mpc(pushing, pushing.impc.replace(cost=cost, start="hold"), iterations=5)
    other = loop.act(pushing.start) + 0.05
    np.testing.assert_allclose(loop.act(pushing.start, before=other), other, atol=1e-4)
    with pytest.raises(ValueError, match="before"):
        loop.act(pushing.start, before=other[:1])


def test_predictions_are_roll_outs(pushing: Task) -> None:
    loop = Mpc(pushing)
    assert loop.prediction is None and loop.commands is None
    command = loop.act(pushing.start)
    q = qdsim.rollout(pushing.model, pushing.start, loop.commands, pushing.options).q
    np.testing.assert_allclose(loop.prediction, q, atol=1e-12)
    np.testing.assert_array_equal(loop.commands[0], command)
    assert loop.report.cost > 0.0 and loop.report.iterations >= 1


def test_a_controller_survives_steps_that_fail(pushing: Task) -> None:
    broken = pushing.replace(options=pushing.options.replace(iteration_limit=1, tolerance=1e-15))
    loop = Mpc(broken, broken.impc)
    u = np.tile([0.1, 0.2], (20, 1))
    loop.reset(u)
    for _ in range(3):  # what it was told goes on
        np.testing.assert_array_equal(loop.act(pushing.start), u[0])
        assert "not converged" in loop.report.fallback


@pytest.mark.long
@pytest.mark.slow
def test_a_picture_shows_the_curves(pushing: Task, tmp_path: Any) -> None:
    pytest.importorskip("matplotlib")
    from matplotlib import colors, image

    from qdsim.planning.drawing.style import LIMBS
    from qdsim.planning.drawing.trajectories import draw_convergence

    runs = {
        name: impc(pushing, pushing.impc.replace(iterations=3, start=name))
        for name in ("hold", "squeeze")
    }
    draw_convergence(runs, tmp_path / "curves.png")
    pixels = image.imread(tmp_path / "curves.png")[..., :3]
    for colour in LIMBS[:2]:
        near = np.abs(pixels - colors.to_rgb(colour)).max(axis=-1) < 0.03
        assert near.mean() > 2e-4
    with pytest.raises(ValueError, match="at least one"):
        draw_convergence({}, tmp_path / "none.png")


# -------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"horizon": 0}, ValueError, "horizon"),
        ({"iterations": -1}, ValueError, "iterations"),
        ({"kappa": 0.0}, ValueError, "kappa"),
        ({"kappa": (1.0, -1.0)}, ValueError, "kappa"),
        ({"kappa": (1.0, 2.0, 3.0)}, ValueError, r"kappa: expected a number or \(first, last\)"),
        ({"h": -0.1}, ValueError, "h:"),
        ({"radii": ()}, ValueError, "radii"),
        ({"radii": (0.1, -0.1)}, ValueError, "radii"),
        ({"method": "best"}, ValueError, "method"),
        ({"start": "nowhere"}, ValueError, "start"),
        ({"start": ()}, ValueError, "start: expected at least one"),
        ({"start": ("hold", "nowhere")}, ValueError, "start"),
        ({"trials": -1}, ValueError, "trials"),
        ({"cost": 3.0}, TypeError, "cost"),
        ({"smoothing": 3.0}, TypeError, "smoothing"),
        ({"patience": 0}, ValueError, "patience"),
    ],
)
def test_bad_options_are_named(
    change: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        ImpcOptions(**change)


def test_bad_arguments_are_named(pushing: Task, ball: Task) -> None:
    options = pushing.impc.replace(iterations=1)
    with pytest.raises(TypeError, match="task: expected a Task"):
        impc("push")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="options: expected ImpcOptions"):
        impc(pushing, {})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="rng"):
        impc(pushing, options, rng="x")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"u: expected shape \(20, 2\)"):
        impc(pushing, options, u=np.zeros((3, 2)))
    with pytest.raises(ValueError, match="u: not finite"):
        impc(pushing, options, u=np.full((20, 2), math.nan))
    with pytest.raises(ValueError, match="radii: expected a number or 2 of them"):
        impc(pushing, options.replace(radii=((0.1, 0.1, 0.1),)))
    with pytest.raises(ValueError, match=r"cost.object: expected a number or 3 of them"):
        impc(pushing, options.replace(cost=TrackingCost(object=(1.0, 2.0))))
    with pytest.raises(ValueError, match=r"state_bounds: expected shape \(5,\)"):
        impc(pushing, options.replace(state_bounds=(np.zeros(5), np.zeros(3))))
    with pytest.raises(ValueError, match="state_bounds: lower 1 at 4 exceeds upper 0"):
        impc(pushing, options.replace(state_bounds=([0, 0, 0, 0, 1.0], np.zeros(5))))
    with pytest.raises(TypeError, match=r"state_bounds: expected \(lower, upper\)"):
        impc(pushing, options.replace(state_bounds=np.zeros(5)))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="cannot be bounded"):
        impc(ball, ball.impc.replace(iterations=1, state_bounds=(np.zeros(22), np.ones(22))))
    with pytest.raises(TypeError, match="smoothing: expected a scheme for iteration 0"):
        impc(pushing, options.replace(smoothing=lambda i: None))  # type: ignore[arg-type, return-value]
    for weights in ({"object": -1.0}, {"command": 0.0}, {"robot": math.nan}):
        with pytest.raises(ValueError, match=next(iter(weights))):
            TrackingCost(**weights)
    with pytest.raises(TypeError, match="object"):
        TrackingCost(object="x")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="method"):
        Mpc(pushing, ImpcOptions.published())
    with pytest.raises(ValueError, match="iterations"):
        Mpc(pushing, iterations=0)
    with pytest.raises(ValueError, match="q: expected shape"):
        Mpc(pushing).act([0.0])
    with pytest.raises(ValueError, match=r"q: element \[2\] is nan"):
        Mpc(pushing).act([0.0, 0.5, math.nan, 0.0, -0.1])


def test_steps_that_fail_are_errors_of_the_solver(pushing: Task) -> None:
    hopeless = pushing.replace(options=pushing.options.replace(iteration_limit=1, tolerance=1e-15))
    with pytest.raises(qdsim.SolverError, match="not converged"):
        impc(hopeless, pushing.impc.replace(start="hold"))
