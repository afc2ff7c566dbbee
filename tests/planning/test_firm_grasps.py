"""Grasps that carry an object by its shape rather than by friction, and that the robot can come to."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import qdsim
from qdsim import planning
from qdsim.array_type import Array
from qdsim.model import Model
from qdsim.planning import ObjectSpace, TransferOptions
from qdsim.planning.execution.loops.hand import Hand
from qdsim.planning.execution.loops.loop import Record, Sample, drive
from qdsim.planning.execution.plant import Plant, second_order
from qdsim.planning.execution.schedule import Schedule
from qdsim.planning.grasps.grip import Grip, GripOptions
from qdsim.planning.grasps.samplers.carrying import CARRIES, carrying_effort, carrying_efforts
from qdsim.planning.grasps.samplers.firm import FirmSampler
from qdsim.planning.grasps.samplers.touching import contacts_between
from qdsim.planning.motion.clearance import can_leave
from qdsim.planning.plans.segment import Segment

RADIUS, TIP = 0.04, 0.01
CLEARANCE = 3e-3

# A ball on a table between balls on slides.
BALL = """
<mujoco><compiler angle="radian"/><option gravity="0 0 -10"/><default><geom friction=".5"/></default>
<worldbody><geom name="table" type="plane" size="1 1 .1"/>
  <body name="object" pos="0 0 .04"><freejoint/><geom size=".04" mass=".1"/></body>
  {tips}
</worldbody><actuator>{drives}</actuator></mujoco>"""


def hand(places: list[tuple[float, float, float]]) -> Model:
    """A ball on a table, and tips that move along x, y and z by up to 10 cm from their places."""
    tips = drives = ""
    for k, (x, y, z) in enumerate(places):
        slides = ""
        for n, axis in enumerate(("1 0 0", "0 1 0", "0 0 1")):
            slides += f'<joint name="t{k}{n}" type="slide" axis="{axis}" range="-.1 .1"/>'
            drives += f'<position joint="t{k}{n}" kp="500"/>'
        tips += f'<body name="t{k}" pos="{x} {y} {z}">{slides}<geom size="{TIP}" mass=".1"/></body>'
    return qdsim.load(BALL.format(tips=tips, drives=drives))


def around(height: float, far: float = 1e-4) -> list[tuple[float, float, float]]:
    """Three places of tips around the ball, in contact at an angle ``height`` above its middle."""
    reach = RADIUS + TIP + far
    angles = 2.0 * np.pi * np.arange(3) / 3
    return [
        (
            reach * np.cos(height) * np.cos(a),
            reach * np.cos(height) * np.sin(a),
            RADIUS + reach * np.sin(height),
        )
        for a in angles
    ]


def test_efforts_below_the_middle_need_no_friction() -> None:
    """Three contacts at an angle below the middle bear the weight by their normals: 1 / (3 sin) of it each."""
    angle = 0.5
    model = hand(around(-angle))
    used = (0.7, 0.3, 1e-3)
    efforts = carrying_efforts(model, model.default_q, "object", 1e-3, used)
    assert efforts[0] == pytest.approx(carrying_effort(model, model.default_q, "object", 1e-3))
    assert efforts == sorted(efforts)
    upright = 1e-2 * np.sqrt(3.0) / (3.0 * np.sin(angle))  # tilted loads take less here
    assert efforts[2] == pytest.approx(upright, rel=0.02)
    above = hand(around(angle))
    assert carrying_efforts(above, above.default_q, "object", 1e-3, used)[2] > 0.9


def test_firm_grasps_are_below_the_middle() -> None:
    """Only there do normal forces bear a ball; grasps that carry by friction are anywhere around its middle."""
    model = hand([(0.09, 0, 0.05), (-0.09, 0.02, 0.05), (-0.09, -0.02, 0.05)])
    surface = planning.SurfaceSampler("object", carry=True, contacts=2)
    firm = FirmSampler(surface, surface, lambda model, q: can_leave(model, q, "object", CLEARANCE))
    q = model.default_q

    def rises(grasp: Array) -> float:
        """Return the mean height of the contacts over the ball's middle, in its radii."""
        contacts = contacts_between(model, grasp, "object", 2e-3)
        return float(np.mean(contacts["pos"][:, 2] - RADIUS)) / RADIUS

    grasp = firm(model, q, np.random.default_rng(0))
    assert grasp is not None
    assert carrying_efforts(model, grasp, "object", 2e-3, (0.3,))[0] < CARRIES
    assert can_leave(model, grasp, "object", CLEARANCE)
    drawn = [surface(model, q, np.random.default_rng(seed)) for seed in range(4)]
    assert rises(grasp) < -0.1
    assert max(rises(one) for one in drawn if one is not None) > rises(grasp)


CAGE = """
<mujoco><compiler angle="radian"/><worldbody>
  <body name="object" pos="0 0 0"><freejoint/>
    <geom type="box" size=".05 .05 .005" pos="0 0 0" mass=".1"/>
    <geom type="box" size=".02 .05 .005" pos="-.03 0 .035" mass=".1"/>
    <geom type="box" size=".02 .05 .005" pos=".03 0 .035" mass=".1"/>
    <geom type="box" size=".005 .05 .02" pos="-.018 0 .02" mass=".1"/>
    <geom type="box" size=".005 .05 .02" pos=".018 0 .02" mass=".1"/></body>
  <body name="finger" pos="0 0 {z}"><joint name="x" type="slide" axis="1 0 0" range="-.1 .1"/>
    <joint name="z" type="slide" axis="0 0 1" range="-.2 .2"/><geom size=".012" mass=".1"/></body>
</worldbody><actuator><position joint="x" kp="500"/><position joint="z" kp="500"/></actuator></mujoco>"""


@pytest.mark.parametrize(("z", "free"), [(0.0175, False), (0.0525, True)])
def test_a_finger_below_a_narrow_slot_cannot_leave(z: float, free: bool) -> None:
    """The slot is 20 mm wide and the finger 24: below it the finger has 1 mm of room, above it all that it wants."""
    model = qdsim.load(CAGE.format(z=z))
    assert can_leave(model, model.default_q, "object", CLEARANCE) is free


def test_a_finger_that_carries_presses_where_it_carries() -> None:
    """One of its two contacts is above the middle, where each newton takes away from what the others bear."""
    below, above = around(-0.4), around(0.9)
    places = [*below, above[0]]
    model = hand(places)
    q, still = model.default_q, np.zeros(6)
    alone = Grip(model, "object", RADIUS, GripOptions(fingers=3))
    carrying = Grip(model, "object", RADIUS, GripOptions(fingers=3), carries=True)
    for grip in (alone, carrying):
        grip._finger[model.body_index("t3")] = grip._finger[model.body_index("t0")]
    contacts = carrying.contacts(q, 1e-3)
    top = int(contacts["pos"][contacts["dist"] > 5e-5, 2].argmax())  # without the table
    pressed = alone.command(q, still, lean=False).forces
    loose = carrying.command(q, still, lean=False)
    assert pressed[top] >= 0.5 * alone.weight - 1e-4
    assert loose.forces[top] < 0.1 * alone.weight
    assert loose.residual < 0.01 * alone.weight


def closed(height: float, carries: bool) -> tuple[Plant, Hand]:
    """Return MuJoCo's world and a hand whose tips have closed around the ball at an angle above its middle."""
    model = hand(around(height))
    world = TransferOptions(timestep=1e-3, contacts="stiff")
    mj = second_order(model, "object", world)
    plant = Plant(model, ObjectSpace(model, "object"), mj, world, compensated=True)
    fingers = Hand(plant, Grip(model, "object", RADIUS, carries=carries), world)
    plant.reset(model.default_q)
    fingers.rest(model.default_q)
    assert drive(fingers.close(model.default_q, exactly=True), plant.advance)
    return plant, fingers


@pytest.mark.parametrize("carries", [False, True])
def test_fingers_that_will_lift_bear_the_weight_first(carries: bool) -> None:
    """Else the load jumps to them as the object leaves the table; MuJoCo says how much the table still bears."""
    plant, fingers = closed(0.1, carries)
    borne, force = 0.0, np.zeros(6)
    for k in range(plant.data.ncon):
        if plant.mj.geom("table").id in plant.data.contact[k].geom:
            mujoco.mj_contactForce(plant.mj, plant.data, k, force)
            borne += force[0]
    weight = fingers.grip.weight
    assert borne < 0.3 * weight if carries else borne > 0.5 * weight


@pytest.mark.parametrize(("carries", "ends"), [(False, "given up"), (True, "followed")])
def test_what_is_carried_may_be_lower_than_foreseen(carries: bool, ends: str) -> None:
    """By 4 mm here, as something heavier than its model would be; it is where the plan has it within 6 mm."""
    plant, fingers = closed(-0.3, carries)
    q, u = plant.q, fingers.u
    segment = Segment(np.array([u]), np.array([q, q]), np.array([1]))
    schedule = Schedule(plant.model, segment, 0.05, 0.3)
    higher = np.array(q)
    higher[plant.model.slice_q("object").start + 2] += 4e-3
    foreseen = [Sample(0.0, q, higher, u)]
    follow = fingers.follow(schedule, Record(plant), 0.1, True, foreseen)
    assert drive(follow, plant.advance) == ends
