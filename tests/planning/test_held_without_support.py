"""What fingers hold without a support: objects that float, and those that are lifted to goals in the air."""

from __future__ import annotations

import numpy as np
import pytest

import qdsim
from qdsim import planning, systems
from qdsim.planning import ObjectSpace, Task, TransferOptions
from qdsim.planning.execution.loops.hand import Hand
from qdsim.planning.execution.plant import Plant, second_order
from qdsim.planning.execution.strokes import StrokePlanner
from qdsim.planning.grasps.equilibrium import contact_rows
from qdsim.planning.grasps.grip import Grip
from qdsim.planning.grasps.resting import landing
from qdsim.planning.grasps.samplers.firm import FirmSampler
from qdsim.planning.grasps.samplers.holding import Either, with_holding, without_holding
from qdsim.planning.task.robot import lies_on_a_plane

SPEED, DRAG, MASS, PERIOD = 0.05, 10.0, 1.0, 0.02
# A box between two fingertips, which press against two of its sides, at the height of its centre.
PINCH = """<mujoco><default><geom friction="{friction}"/></default><worldbody>
  <body name="box"><freejoint/><geom type="box" size=".03 .03 .03" mass=".06"/></body>
  <body pos="-.04 0 0"><joint name="lx" type="slide" axis="1 0 0"/>
    <joint name="lz" type="slide" axis="0 0 1"/><geom size=".01" mass=".04"/></body>
  <body pos=".04 0 0"><joint name="rx" type="slide" axis="1 0 0"/>
    <joint name="rz" type="slide" axis="0 0 1"/><geom size=".01" mass=".04"/></body>
  </worldbody><actuator><position joint="lx" kp="500"/><position joint="lz" kp="500"/>
  <position joint="rx" kp="500"/><position joint="rz" kp="500"/></actuator></mujoco>"""


def pen() -> Task:
    return systems.load("allegro_pen").tasks["place"]


def grip_of(task: Task) -> Grip:
    return Grip(task.model, task.object, task.length, bounds=task.command_bounds)


@pytest.mark.parametrize(("joints", "lies"), [("planar", True), ("free", False)])
def test_only_objects_that_move_in_a_plane_lie_on_one(joints: str, lies: bool) -> None:
    """Both without gravity along their slides: friction stops the first, and the second goes on by itself."""
    inner = {
        "planar": '<joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 1 0"/><joint axis="0 0 1"/>',
        "free": "<freejoint/>",
    }[joints]
    model = qdsim.load(
        f'<mujoco><option gravity="0 0 0"/><worldbody><body name="thing">{inner}'
        '<geom type="sphere" size="0.05" mass="1"/></body></worldbody></mujoco>'
    )
    space, world = ObjectSpace(model, "thing"), TransferOptions(support_friction=0.5)
    assert lies_on_a_plane(model, space) == lies
    plant = Plant(model, space, second_order(model, "thing", world), world, compensated=True)
    plant.reset(model.default_q)
    plant.data.qvel[0] = SPEED
    for _ in range(200):
        plant.advance(np.zeros(0))
    assert plant.v[0] == pytest.approx(0.0 if lies else SPEED, abs=1e-3)


def test_damping_is_a_load_of_what_moves_through_it() -> None:
    """A terminal speed is where the load and a force on the object balance."""
    task = pen()
    world = TransferOptions(object_damping=DRAG, timestep=1e-3)
    mj = second_order(task.model, task.object, world)
    plant = Plant(task.model, task.space, mj, world, compensated=True)
    way = np.array([SPEED * PERIOD, 0, 0, 0, 0, 0])
    load = plant.load(way, PERIOD)
    assert load is not None
    far = task.with_object(task.start, np.array([0, 0, 1.0, 0, 0, 0]))
    plant.reset(far)
    v = np.zeros(task.model.nv)
    for _ in range(1500):
        plant.data.qfrc_applied[task.space.v] = -load
        plant.advance(task.model.command_from(far))
        v = plant.v
    np.testing.assert_allclose(v[task.space.v][:3], way[:3] / PERIOD, atol=1e-4)


def test_fingers_hold_a_floating_pen_from_both_sides() -> None:
    """Grasps that hold have forces on the pen without a resultant, which the task's own grasps hardly ever have."""
    task = pen()
    grip, still = grip_of(task), np.zeros(6)
    wider = with_holding(task, grip, np.random.default_rng(0))
    assert isinstance(wider.sampler, Either)
    rng, held = np.random.default_rng(1), 0
    for _ in range(20):
        q = wider.grasp(task.start, rng)
        made = None if q is None else grip.command(q, still)
        if q is None or made is None or not grip.holds(made):
            continue
        held += 1
        contacts = grip.contacts(q, grip.options.near)
        _, J, _, _ = contact_rows(task.model, q, contacts)
        normals = contacts["frame"][:, 0]
        assert np.min(normals @ normals.T) < 0.0  # some fingers press against others
        assert J.shape[0] > 0 and np.all(made.forces > -1e-6)
    assert held >= 2


def test_a_sampler_whose_grasps_hold_is_kept() -> None:
    task = systems.load("allegro_sphere").tasks["half_turn"]
    assert with_holding(task, grip_of(task), np.random.default_rng(0)) is task


def test_a_goal_in_the_air_needs_grasps_that_carry() -> None:
    """The book's own grasps press it on the ground; those that are added lift it against gravity."""
    task = systems.load("allegro_book").tasks["drag"]
    assert with_holding(task, grip_of(task), np.random.default_rng(0)) is task
    up = task.towards(task.with_object(task.start, np.array([0, 0, 0.04, 0, 0, 0])))
    wider = with_holding(up, grip_of(up), np.random.default_rng(0))
    assert isinstance(wider.sampler, Either)
    assert isinstance(wider.sampler.second, planning.SurfaceSampler)
    firm = with_holding(up, grip_of(up), np.random.default_rng(0), lambda model, q: True)
    assert isinstance(firm.sampler, FirmSampler)


@pytest.mark.parametrize("friction", [0.1, 0.3, 1.0])
def test_fingers_press_as_hard_as_friction_asks(friction: float) -> None:
    """Coulomb's law: two fingers that carry a weight press with at least half of it, divided by the coefficient."""
    model = qdsim.load(PINCH.format(friction=friction))
    grip = Grip(model, "box", 0.03)
    made = grip.command(np.array(model.default_q), np.zeros(6), lean=False)
    assert made.fingers == 2 and grip.holds(made)
    assert made.residual < 0.05 * grip.weight
    assert np.all(made.forces > 0.95 * grip.weight / (2.0 * friction))


@pytest.mark.long
def test_a_box_between_arms_is_lifted_from_below_its_goal() -> None:
    """One in twelve of the task's grasps holds it, and one in twenty or more leads to the goal. There the arms alone
    bear its weight, and it stays."""
    whole = systems.load("iiwa_bimanual_box").tasks["turn"]
    task = whole.towards(whole.with_object(whole.start, np.array([0.04, 0.09, 0.15, 0, 0, -0.1])))
    below = landing(task.model, task.aim, "box", task.options)
    assert below is not None
    wider = with_holding(task, grip_of(task), np.random.default_rng(0))
    found = StrokePlanner(wider).candidates(below)
    assert found and task.reached(found[0].segment.end)
    end, u = found[0].segment.end, found[0].segment.inputs[-1]
    for _ in range(3):
        after = qdsim.step(task.model, end, u, task.options)
        assert task.space.errors(after.q_next, found[0].segment.end)[0] < 2e-3
        end = after.q_next
    ground = (after.contacts["body_a"] == 0) & (after.contacts["dist"] < 1e-3)
    assert not ground.any()


def test_new_plans_to_a_goal_in_the_air_end_below_it() -> None:
    """Where the box rests; from there it is lifted, and nothing is planned."""
    whole = systems.load("iiwa_bimanual_box").tasks["turn"]
    for way, below in (([0, 0, 0.15, 0, 0, 0], True), ([0.1, 0.1, 0.15, 0, 0, 0.8], False)):
        task = whole.towards(whole.with_object(whole.start, np.array(way)))
        executor = planning.Executor(task, world=TransferOptions(timestep=1e-3))
        phase = executor._routes._phase()
        assert (phase is None) == below
        if phase is not None:
            assert planning.is_stable(task.model, phase.aim, "box", task.options)
            apart = task.space.errors(phase.aim, task.aim)
            assert apart[0] == pytest.approx(way[2], abs=5e-3) and apart[1] < 0.01


def test_a_task_without_the_grasps_that_were_added() -> None:
    task = pen()
    wider = with_holding(task, grip_of(task), np.random.default_rng(0))
    assert wider is not task and without_holding(wider).sampler is task.sampler
    assert without_holding(task) is task


@pytest.mark.long
def test_what_lies_on_a_table_is_lifted_before_it_is_tilted() -> None:
    """Turned where it lies, the book's corners are in the ground, and its friction stops the book in the first step."""
    task = systems.load("allegro_book").tasks["drag"]
    tilt = np.array([0.02, -0.06, 0.013, 0.08, -0.055, 0.05])
    task = task.towards(task.with_object(task.start, tilt))
    sampler = planning.SurfaceSampler(task.object, carry=True, contacts=3)
    task = task.replace(sampler=sampler)
    planner, ends = StrokePlanner(task, rng=0), []
    for _ in range(10):
        grasp = task.grasp(task.start, planner.rng)
        if grasp is not None:
            ends.append(planner.stroke(grasp, 3e-3).segment)
    assert any(task.reached(segment.end) for segment in ends)
    for segment in ends:
        for q in segment.configurations:
            assert planner.grip.depth(q) < 1e-3


def test_a_hand_closes_to_the_grasp_itself_where_it_has_to() -> None:
    """Fingers that close straight to the book stop beside their places; the joints end where the grasp has them."""
    task = systems.load("allegro_book").tasks["drag"]
    world = TransferOptions(timestep=1e-3)
    mj = second_order(task.model, task.object, world)
    plant = Plant(task.model, task.space, mj, world, compensated=True)
    begin = np.array(task.start)
    grasp = np.array(begin)
    grasp[task.model.actuated_q] += 0.02
    plant.reset(begin)
    hand = Hand(plant, grip_of(task), world)
    hand.rest(begin)
    for u in hand._come_to(grasp):
        plant.advance(u)
    assert np.abs(plant.q - grasp)[task.model.actuated_q].max() < 0.01
