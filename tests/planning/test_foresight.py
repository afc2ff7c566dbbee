"""What an executor foresees in a simulation of its own happens in the world, and what drifts is brought back."""

from __future__ import annotations

import numpy as np
import pytest

import qdsim
from qdsim import planning, systems
from qdsim.planning.execution.foresight import Foresight
from qdsim.planning.execution.goal_hold import GoalHold
from qdsim.planning.execution.loops.hand import Hand
from qdsim.planning.execution.loops.loop import FAULTS, Record, Sample, drive
from qdsim.planning.execution.plant import Plant, second_order
from qdsim.planning.execution.schedule import Schedule
from qdsim.planning.execution.strokes import StrokePlanner
from qdsim.planning.grasps.carried import grip_of_steps
from qdsim.planning.grasps.grip import GripOptions
from qdsim.planning.plans.trials import SETTLE

WORLD = planning.TransferOptions(timestep=1e-3, control_period=0.02)


def test_strokes_end_where_they_are_foreseen_to_end() -> None:
    """From a moment in motion: closed fingers press, joints move."""
    whole = systems.load("allegro_sphere").tasks["half_turn"]
    task = whole.towards(whole.with_object(whole.start, np.array([0.0, 0.0, 0.0, 0.1, 0.0, 0.4])))
    planner = StrokePlanner(task)
    mj = second_order(task.model, task.object, WORLD)
    world, own = (Plant(task.model, task.space, mj, WORLD, compensated=True) for _ in range(2))
    hand, foreseen = (Hand(p, grip_of_steps(task, GripOptions()), WORLD) for p in (world, own))
    foresight = Foresight(planner, own, foreseen, WORLD.speed, hold=0.2)
    stroke = foresight.those_that_work(planner.candidates(task.start, here=True))[0]

    world.watch(stroke.segment.configurations)
    world.reset(stroke.segment.start)
    hand.rest(world.q)
    assert drive(hand.close(world.q), world.advance)
    before = planner.distance(world.q)
    part = foresight.best(stroke, world.q, world.v, hand.u)
    assert part is not None and part.gain > 5e-3
    schedule = Schedule(task.model, part.segment, WORLD.speed, WORLD.timestep)
    drive(hand.follow(schedule, Record(world), SETTLE, give_up=True), world.advance)
    if task.reached(world.q):
        drive(hand.hold(part.segment.end, 0.2, hand.grip.touching(world.q)), world.advance)
    if not task.reached(world.q):
        drive(hand.release(), world.advance)
    assert before - planner.distance(world.q) == pytest.approx(part.gain, abs=1e-3)

    # an object that is elsewhere than it was foreseen to be ends the stroke
    world.reset(stroke.segment.start)
    hand.rest(world.q)
    drive(hand.close(world.q), world.advance)
    elsewhere = task.with_object(world.q, np.array([0.0, 0.0, 0.0, 0.0, 0.0, -0.5]))
    foreseen = [Sample(0.0, world.q, elsewhere, hand.u)]
    record = Record(world)
    assert drive(hand.follow(schedule, record, SETTLE, True, foreseen), world.advance) == "given up"
    assert record.samples[-1].time <= FAULTS * hand.period


def test_samples_begin_at_the_command_that_acts() -> None:
    """A controller that takes over does not let go of what another one presses."""
    task = systems.load("allegro_cube").tasks["turn"]
    begins = []

    class Still(planning.QuasiDynamicModel):
        def roll(self, q, v, before, u, period, threads):  # type: ignore[no-untyped-def]
            begins.append(before)
            return super().roll(q, v, before, u, period, threads)

    options = planning.SamplingOptions(samples=4, threads=1)
    loop = planning.SamplingMpc(task, options, model=Still(task.model, task.options))
    acts = np.asarray(task.model.command_from(task.start)) - 0.01
    acts = np.clip(acts, *task.command_bounds)
    loop.act(task.start, before=acts)
    assert begins and all(np.allclose(b, acts) for b in begins)
    with pytest.raises(ValueError, match="before"):
        loop.act(task.start, before=acts[:-1])


def test_what_stays_is_not_moved() -> None:
    """Nothing acts on an object that is off its goal, but does not drift."""
    task = systems.load("allegro_cube").tasks["turn"]
    task = task.towards(task.with_object(task.start, np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.1])))
    loop = planning.Executor(task, world=planning.TransferOptions(timestep=1e-3, force=0.7))
    u = np.array(loop._execution.command)
    hold = GoalHold(loop._plant, loop._controllers, loop._routes.track(None), 0.1)
    for _ in range(3):
        assert np.array_equal(hold.command(u)[0], u)


@pytest.mark.long
def test_a_cube_that_creeps_is_kept_at_its_goal() -> None:
    """In MuJoCo's default contacts, it leaves its tolerances within 2 s where commands are kept."""
    task = systems.load("allegro_cube").tasks["turn"]
    world = planning.TransferOptions(timestep=1e-3, force=0.7, contacts="default")
    goals = systems.random_cube_goals(task, 13, 0)
    reached = [planning.Executor(goals[k], world=world).run().reached for k in (6, 12)]
    assert any(reached)


def test_a_users_model_of_mujoco_is_predicted_with_the_contacts_named() -> None:
    task = systems.load("allegro_cube").tasks["turn"]
    world = planning.TransferOptions(timestep=1e-3, force=0.7, contacts="default")
    mj = second_order(task.model, task.object, world)
    made = planning.Executor(task, plant=mj, world=world)._controllers
    assert made.task.options.contacts == "mujoco"
    assert isinstance(made._model, qdsim.planning.MujocoModel)


def test_strokes_are_executed_as_they_were_foreseen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The goal lies within the tolerances of where a stroke ends, and the stroke still goes where it was rolled out."""
    whole = systems.load("allegro_sphere").tasks["half_turn"]
    task = whole.towards(whole.with_object(whole.start, np.array([0.0, 0.0, 0.0, 0.1, 0.0, 0.3])))
    follow, off = Hand.follow, list[float]()

    def followed(self, schedule, record, settle, give_up=False, foreseen=()):  # type: ignore[no-untyped-def]
        ended = yield from follow(self, schedule, record, settle, give_up, foreseen)
        for one, other in zip(record.samples, foreseen):
            off.extend(self.space.errors(one.executed, other.executed))
        return ended

    monkeypatch.setattr(Hand, "follow", followed)
    report = planning.Executor(
        task, world=WORLD, options=planning.ExecutorOptions(hold=0.1, seconds=20.0)
    ).run()
    assert report.reached and len(off) > 20
    assert max(off) < 1e-6
