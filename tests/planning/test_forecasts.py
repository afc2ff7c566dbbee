"""iMPC whose roll-outs are those of a prediction model: what it predicts, and what it does not throw."""

from __future__ import annotations

import mujoco
import numpy as np
import numpy.typing as npt
import pytest
from rails import PERIOD, rail, rail_text

import qdsim
from qdsim import planning
from qdsim.planning import Mpc, MujocoModel, QuasiDynamicModel, SecondOrderModel, Task
from qdsim.planning.tracking.shooting import Shooting

Array = npt.NDArray[np.float64]

ROLLS = 0.5
"""Damping of the rail, N s/m: the ball rolls on for half a second."""


def loop_of(task: Task, model: planning.Predictor | None) -> Mpc:
    settings = planning.ImpcOptions(horizon=10, kappa=300.0, start="hold")
    return Mpc(task, settings, hold=False, model=model)


def farthest(task: Task, loop: Mpc) -> float:
    """Return how far the ball rolls in MuJoCo within 4 s."""
    world = mujoco.MjModel.from_xml_string(rail_text(ROLLS))
    data = mujoco.MjData(world)
    most = 0.0
    for _ in range(40):
        data.ctrl[:] = loop.act(np.array(data.qpos), v=np.array(data.qvel))
        for _ in range(round(PERIOD / world.opt.timestep)):
            mujoco.mj_step(world, data)
            most = max(most, float(data.qpos[1]))
    return most


def test_a_model_with_inertia_does_not_throw_what_rolls() -> None:
    """The quasi-dynamic step's ball stops where the pusher does; MuJoCo's rolls on, and nothing brings it back."""
    task = rail(tolerance=0.02, damping=ROLLS)
    goal = float(task.goal[1])
    thrown = farthest(task, loop_of(task, None)) - goal
    seen = farthest(task, loop_of(task, SecondOrderModel(task.model, stepped=True))) - goal
    assert thrown > 0.5
    assert -task.position_tolerance < seen < thrown / 4.0


@pytest.mark.parametrize("kind", ["second order", "quasi-dynamic"])
def test_predictions_are_the_models_roll_outs_from_the_measured_state(kind: str) -> None:
    task = rail(tolerance=0.02, damping=ROLLS)
    model: planning.Predictor = (
        SecondOrderModel(task.model, stepped=True)
        if kind == "second order"
        else QuasiDynamicModel(task.model, task.options)
    )
    loop = loop_of(task, model)
    v = np.array([0.0, 0.3])
    first = loop.act(task.start, v=v)
    u = loop.commands
    assert u is not None and loop.report.fallback == ""
    np.testing.assert_array_equal(u[0], first)
    before = np.asarray(task.model.command_from(task.start))
    q, good = model.roll(task.start, v, before, u[None], PERIOD, 1)
    assert good.all()
    np.testing.assert_allclose(loop.prediction, q[0], atol=1e-9)


def test_a_robot_whose_every_push_loses_the_object_does_not_stand_still() -> None:
    """The programs push the ball, and this model then has it a metre away: other commands are tried."""

    class Edge(QuasiDynamicModel):
        def roll(
            self, q: Array, v: Array, before: Array, u: Array, period: float, threads: int | None
        ) -> tuple[Array, npt.NDArray[np.bool_]]:
            path, good = super().roll(q, v, before, u, period, threads)
            path[(u[:, :, 0] > before[0] + 0.01).any(axis=1), -1, 1] -= 1.0
            return path, good

    task = rail(tolerance=0.02, damping=ROLLS)
    loop = loop_of(task, Edge(task.model, task.options))
    moved = [float(loop.act(task.start)[0]) for _ in range(4)]
    assert loop.prediction is not None and loop.prediction[-1, 1] > task.start[1] - 0.5
    assert np.abs(np.diff([0.0, *moved])).max() > 1e-3


def test_standing_still_is_tried_where_the_plan_breaks() -> None:
    """As long as the world does what was predicted, the old commands alone are rolled out."""
    rolled: list[int] = []

    class Counting(QuasiDynamicModel):
        def roll(
            self, q: Array, v: Array, before: Array, u: Array, period: float, threads: int | None
        ) -> tuple[Array, npt.NDArray[np.bool_]]:
            rolled.append(len(u))
            return super().roll(q, v, before, u, period, threads)

    task = rail(tolerance=0.02, damping=ROLLS)
    loop = loop_of(task, Counting(task.model, task.options))
    loop.act(task.start)
    assert rolled[:2] == [1, 2]  # nothing was promised yet
    assert loop.prediction is not None
    for _ in range(3):
        rolled.clear()
        loop.act(loop.prediction[1])
        assert rolled[:2] == [1, 3]  # the old commands, then the solutions of the programs
    away = loop.prediction[1] - np.array([0.0, 0.05])
    rolled.clear()
    loop.act(away)
    assert rolled[:2] == [1, 2]


@pytest.mark.parametrize("gap", [0.5e-3, -1e-3])
def test_smoothed_steps_keep_what_a_models_contacts_keep(gap: float) -> None:
    """A ball a millimetre deep in a wall, and nearly as near to the next or as deep: no step can end that."""
    model = qdsim.load(
        f"""<mujoco><option gravity="0 0 0"/><worldbody>
        <geom type="box" size="0.01 0.1 0.1" pos="-0.029 0 0"/><geom type="box" size="0.01 0.1 0.1" pos="{0.03 + gap} 0 0"/>
        <body name="ball"><freejoint/><geom size="0.02" mass="0.1"/></body>
        <body name="finger" pos="0 -0.05 0"><joint name="y" type="slide" axis="0 1 0"/><geom size="0.01" mass="0.1"/></body>
        </worldbody><actuator><position joint="y" kp="100"/></actuator></mujoco>"""
    )
    q = model.default_q
    options = qdsim.Options(h=PERIOD, infeasible="soften")
    task = Task("wedge", model, options, q, q, "ball", -np.ones(6), np.ones(6), start_tolerance=1.0)
    settings = planning.ImpcOptions(start="hold")
    relaxed = []
    for recover in (True, False):
        smooth = Shooting(task, settings, recover=recover).smooth_options.replace(kappa=300.0)
        info = qdsim.step(model, q, model.command_from(q), smooth).info
        relaxed.append(info.relaxed_contacts + info.softened)
    assert relaxed[0] > 0 and relaxed[1] == 0


def test_velocities_are_those_between_calls_if_none_is_measured() -> None:
    task = rail(tolerance=0.02, damping=ROLLS)
    later = task.start + np.array([0.0, 0.03])
    made = []
    for v in (np.array([0.0, 0.3]), None):
        loop = loop_of(task, SecondOrderModel(task.model))
        loop.act(task.start)
        loop.act(later, v=v)
        made.append(loop.prediction)
    np.testing.assert_allclose(made[0], made[1], atol=1e-12)


@pytest.mark.parametrize("stepped", [False, True])
@pytest.mark.parametrize("kind", ["own", "mujoco"])
def test_commands_are_linear_or_constant_in_a_period(kind: str, stepped: bool) -> None:
    """A light servo with damping follows ``u`` with the time constant ``c / k``, here half a period."""
    xml = """<mujoco><option gravity="0 0 0"/><worldbody><body name="b">
      <joint name="x" type="slide" axis="1 0 0" damping="5"/><geom size="0.01" mass="1e-3"/>
      </body></worldbody><actuator><position joint="x" kp="100"/></actuator></mujoco>"""
    own = qdsim.load(xml)
    predictor: planning.Predictor = SecondOrderModel(
        own, qdsim.DynamicOptions(h=1e-3), stepped=stepped
    )
    if kind == "mujoco":
        mj = mujoco.MjModel.from_xml_string(xml)
        predictor = MujocoModel(mj, timestep=1e-3, stepped=stepped)
    q, good = predictor.roll(np.zeros(1), np.zeros(1), np.zeros(1), np.array([[[0.1]]]), PERIOD, 1)
    periods = PERIOD / 0.05
    gone = 1.0 - np.exp(-periods)
    share = gone if stepped else 1.0 - gone / periods
    assert good.all()
    assert q[0, -1, 0] == pytest.approx(0.1 * share, abs=1e-3)


def test_a_model_that_cannot_predict_leaves_the_commands() -> None:
    class Broken:
        def roll(
            self, q: Array, v: Array, before: Array, u: Array, period: float, threads: int | None
        ) -> tuple[Array, npt.NDArray[np.bool_]]:
            return np.full((len(u), u.shape[1] + 1, len(q)), np.nan), np.zeros(len(u), dtype=bool)

    task = rail(tolerance=0.02, damping=ROLLS)
    loop = loop_of(task, Broken())
    np.testing.assert_allclose(loop.act(task.start), task.model.command_from(task.start))
    assert "predicted" in loop.report.fallback and loop.prediction is None
    with pytest.raises(TypeError, match="model: expected a model with a method roll"):
        Mpc(task, model=3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="v: "):
        loop_of(task, SecondOrderModel(task.model)).act(task.start, v=np.zeros(5))
