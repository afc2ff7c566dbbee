"""Control by sampling: its answers against closed forms, its models against the steps they stand for, and bad input."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from rails import rail, rail_text

import qdsim
from qdsim import planning, systems
from qdsim.planning import (
    Mpc,
    MujocoModel,
    QuasiDynamicModel,
    SamplingMpc,
    SamplingOptions,
    SecondOrderModel,
    Task,
)

Array = npt.NDArray[np.float64]


def driven(task: Task, loop: SamplingMpc, periods: int) -> Array:
    q = task.start
    for _ in range(periods):
        q = qdsim.step(task.model, q, loop.act(q), task.options).q_next
    return np.asarray(q)


@pytest.mark.parametrize("method", ["cem", "mppi", "predictive"])
def test_the_ball_is_pushed_to_the_goal_and_held(method: str) -> None:
    task = rail()
    loop = SamplingMpc(task, SamplingOptions(method=method, samples=40))  # type: ignore[arg-type]
    q = driven(task, loop, 40)
    assert task.reached(q), task.space.errors(q, task.goal)
    if method == "cem":
        assert loop.report.holding


def test_no_answer_is_predicted_to_cost_more_than_the_last_one() -> None:
    task = rail()
    q = task.start
    for method in ("cem", "mppi", "predictive"):
        loop = SamplingMpc(task, SamplingOptions(method=method, samples=12), hold=False)  # type: ignore[arg-type]
        for _ in range(8):
            q = qdsim.step(task.model, q, loop.act(q), task.options).q_next
            report = loop.report
            assert report.cost <= report.before and report.fallback == ""
            assert report.samples >= 12 and report.failed == 0
            assert report.source in ("mean", "sample", "last")


@pytest.mark.long
def test_bits_depend_on_the_seed_alone() -> None:
    task = systems.load("allegro_cube").tasks["turn"]

    def commands(threads: int, rng: int) -> bytes:
        loop = SamplingMpc(task, SamplingOptions(samples=20, threads=threads), rng)
        made = [loop.act(task.start) for _ in range(3)]
        loop.reset()
        again = [loop.act(task.start) for _ in range(3)]
        assert np.array(made).tobytes() == np.array(again).tobytes()
        return np.array(made).tobytes()

    assert commands(1, 0) == commands(2, 0) != commands(1, 1)


def test_commands_keep_their_bounds_and_springs_their_reach() -> None:
    """A goal beyond the pusher's range, and a spring that may pull with 10 N of its 400 N/m."""
    task = rail(2.0).replace(command_upper=np.array([0.4]))
    task = task.replace(impc=planning.dexterous(task).replace(reach=0.025))
    loop = SamplingMpc(task, SamplingOptions(samples=30), hold=False)
    q = task.start
    for _ in range(60):
        u = loop.act(q)
        after = qdsim.step(task.model, q, u, task.options).q_next
        assert np.all(u <= 0.4 + 1e-12)
        assert u[0] <= max(q[0], after[0]) + 0.025 + 1e-6
        q = after
    assert q[1] == pytest.approx(0.38, abs=0.01)  # where a pusher at 0.4 leaves the ball


def test_proposals_and_guides_are_samples() -> None:
    """A way that noise does not find is taken when it is offered."""
    task = rail()
    still = SamplingOptions(samples=4, noise=1e-9, method="predictive")
    loop = SamplingMpc(task, still)
    loop.act(task.start)
    assert abs(loop.commands[-1, 0]) < 1e-6  # type: ignore[index]
    loop.act(task.start, proposals=[np.array([0.2])])
    assert loop.report.source == "proposal"
    np.testing.assert_allclose(loop.commands[-1], 0.2)  # type: ignore[index]
    guide = Mpc(task, planning.dexterous(task).replace(kappa=300.0))
    guided = SamplingMpc(task, still, guide=guide)
    for _ in range(3):
        guided.act(task.start)
    alone = SamplingMpc(task, still)
    alone.act(task.start)
    assert guided.report.cost < 0.9 * alone.report.cost


def test_predictions_are_roll_outs_of_the_model() -> None:
    task = rail()
    loop = SamplingMpc(task, SamplingOptions(samples=20))
    first = loop.act(task.start)
    q = qdsim.rollout(task.model, task.start, loop.commands, task.options).q
    np.testing.assert_allclose(loop.prediction, q, atol=1e-9)
    np.testing.assert_array_equal(loop.commands[0], first)  # type: ignore[index]


@pytest.mark.parametrize("kind", ["own", "mujoco"])
def test_second_order_models_see_velocities(kind: str) -> None:
    """A ball that rolls freely comes as far as ``m v / d (1 - exp(-d t / m))``."""
    model = qdsim.load(rail_text())
    predictor: planning.Predictor = SecondOrderModel(
        model, qdsim.DynamicOptions(h=0.001, infeasible="soften")
    )
    if kind == "mujoco":
        import mujoco

        mj = mujoco.MjModel.from_xml_string(rail_text())
        mj.opt.timestep = 1e-3
        predictor = MujocoModel(mj, timestep=None)
    v = np.array([0.0, 0.5])
    u = np.zeros((3, 4, 1))
    q, good = predictor.roll(model.default_q, v, np.zeros(1), u, 0.1, 2)
    assert q.shape == (3, 5, 2) and good.all()
    t = 0.1 * np.arange(5)
    np.testing.assert_allclose(q[:, :, 1], np.tile(0.1 * (1 - np.exp(-5 * t)), (3, 1)), atol=5e-4)
    np.testing.assert_array_equal(q[0], q[2])


def test_models_agree_where_all_is_slow() -> None:
    """A slow push ends where the quasi-dynamic step and both second-order ones say."""
    import mujoco

    task = rail()
    u = np.linspace(0.0, 0.1, 20)[None, :, None]
    ends = []
    for predictor in (
        QuasiDynamicModel(task.model, task.options),
        SecondOrderModel(task.model),
        MujocoModel(mujoco.MjModel.from_xml_string(rail_text()), timestep=2e-3),
    ):
        q, good = predictor.roll(task.start, np.zeros(2), np.zeros(1), u, 0.1, 1)
        assert good.all()
        ends.append(q[0, -1])
    np.testing.assert_allclose(ends[1], ends[0], atol=8e-3)
    np.testing.assert_allclose(ends[2], ends[0], atol=8e-3)


def test_stiff_servos_are_predicted_with_long_steps() -> None:
    """1e5 N/m on 10 g swing at 500 Hz; a step of 4 ms is ten times too long without the armature."""
    import mujoco

    xml = """<mujoco><worldbody><body><joint name="x" type="slide" axis="1 0 0" damping="60"/>
      <geom type="sphere" size="0.01" mass="0.01"/></body></worldbody>
      <actuator><position joint="x" kp="1e5"/></actuator></mujoco>"""
    mj = mujoco.MjModel.from_xml_string(xml)
    q, good = MujocoModel(mj).roll(
        np.zeros(1), np.zeros(1), np.zeros(1), np.full((2, 5, 1), 0.3), 0.1, 1
    )
    assert good.all()
    assert q[0, -1, 0] == pytest.approx(0.3, abs=2e-3)
    assert mj.opt.timestep == 0.002 and mj.dof_armature[0] == 0.0  # the caller's stays


def test_a_model_that_fails_leaves_the_commands() -> None:
    class Broken:
        def roll(
            self, q: Array, v: Array, before: Array, u: Array, period: float, threads: int | None
        ) -> tuple[Array, npt.NDArray[np.bool_]]:
            path = np.full((len(u), u.shape[1] + 1, len(q)), np.nan)
            return path, np.zeros(len(u), dtype=bool)

    task = rail()
    loop = SamplingMpc(task, SamplingOptions(samples=5), model=Broken())
    given = np.full((10, 1), 0.04)
    loop.reset(given)
    for _ in range(3):
        np.testing.assert_array_equal(loop.act(task.start), [0.04])
        assert loop.report.failed == loop.report.samples and loop.report.fallback
    assert loop.prediction is None


@pytest.mark.parametrize("simulator", ["mujoco", "qdsim"])
def test_transfer_takes_it_as_a_function(simulator: str) -> None:
    """In a world of second order, with the commands of a plan as proposals."""
    task = rail()
    plan = planning.rrt(task, rng=0).plan()
    loop = SamplingMpc(task, SamplingOptions(samples=40))
    options = planning.TransferOptions(control_period=loop.period, timestep=2e-3)
    done = planning.transfer(
        plan,
        task,
        options,
        controller=lambda q, u_plan, q_plan, u_last: loop.act(q, proposals=[u_plan]),
        simulator=simulator,  # type: ignore[arg-type]
    )
    assert done.outcome == "reached", done


def test_splines_pass_through_their_knots() -> None:
    from qdsim.planning.tracking.sampling import _spline

    W = _spline(5, 10)
    np.testing.assert_allclose(W[1::2], np.eye(5), atol=1e-12)
    np.testing.assert_allclose(W.sum(axis=1)[1:], 1.0)
    np.testing.assert_allclose(W @ np.arange(1.0, 6.0), 0.5 * np.arange(1, 11))
    assert _spline(1, 3).shape == (3, 1)


def test_what_does_not_fit_is_refused() -> None:
    task = rail()
    loop = SamplingMpc(task)
    bad = (
        ({"samples": 1}, "samples"),
        ({"horizon": 0}, "horizon"),
        ({"noise": -1.0}, "noise"),
        ({"method": "best"}, "method"),
    )
    for changes, name in bad:
        with pytest.raises(ValueError, match=name):
            SamplingOptions(**changes)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="noise"):
        SamplingMpc(task, SamplingOptions(noise=(0.1, 0.1)))
    with pytest.raises(TypeError, match="model"):
        SamplingMpc(task, model=task.model)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="guide"):
        SamplingMpc(task, guide=Mpc(rail(), planning.dexterous(task)))
    for q in ([0.0], [0.0, np.nan]):
        with pytest.raises(ValueError, match="q"):
            loop.act(q)
    with pytest.raises(ValueError, match="reference"):
        loop.act(task.start, np.zeros((3, 2)))
    with pytest.raises(ValueError, match=r"proposals\[0\]"):
        loop.act(task.start, proposals=[np.zeros((3, 1))])
    with pytest.raises(ValueError, match="v"):
        loop.act(task.start, v=[0.0])
    with pytest.raises(ValueError, match="u"):
        loop.reset(np.full((10, 1), np.nan))
