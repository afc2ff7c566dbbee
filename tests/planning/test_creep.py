"""What friction carries in MuJoCo's contacts sinks: how fast, in the worlds in which plans are executed."""

import mujoco
import numpy as np
import pytest

import qdsim
from qdsim import planning, systems

GRAVITY = 9.81
CASES = [(1.0, 0.05), (0.05, 0.05), (0.2, 1.0)]


def held_block(mass, plate):
    """A block between two plates on springs of 1000 N/m."""
    side = '<body name="{n}" pos="{x} 0 1"><joint name="{n}" type="slide" axis="1 0 0"/>' + (
        f'<geom type="box" size=".01 .1 .1" mass="{plate}"/></body>'
    )
    return qdsim.load(f"""<mujoco><option gravity="0 0 -9.81"/><worldbody>
    <body name="block" pos="0 0 1"><freejoint/><geom type="box" size=".03 .03 .03" mass="{mass}"/></body>
    {side.format(n="left", x=-0.04)}{side.format(n="right", x=0.04)}</worldbody><actuator>
    <position joint="left" kp="1000"/><position joint="right" kp="1000"/></actuator></mujoco>""")


def sinking(model, mass, contacts):
    """m/s at which the block goes down once the plates carry it; how deep it is in them, and by how many contacts."""
    options = planning.TransferOptions(contacts=contacts)
    mj = planning.second_order(model, "block", options)
    data = mujoco.MjData(mj)
    press = 4.0 * mass * GRAVITY / 1000.0
    heights = []
    for k in range(2000):
        share = min(1.0, k / 300)
        data.ctrl[:] = press * share, -press * share
        data.qfrc_applied[2] = mass * GRAVITY if k < 500 else 0.0
        mujoco.mj_step(mj, data)
        heights.append(data.qpos[2])
    speed = (heights[1200] - heights[1999]) / (799 * options.timestep)
    return speed, -float(data.contact.dist[: data.ncon].mean()), data.ncon


def predicted(mass, plate, depth, count, contacts):
    """Each of ``count`` contacts bears its share ``f`` by friction and gives way by ``R f / b``.

    ``R = (1 - d) / d`` times the two bodies' inverse masses, ``b = 2 / (d_max tau)`` (MuJoCo's documentation, "solver
    parameters"); friction's own R is a tenth with ``impratio`` 10, and twice it in a pyramid of friction 1.
    """
    tau = 2e-3 if contacts == "stiff" else 0.02
    x = min(1.0, depth / 1e-3)
    share = 2.0 * x**2 if x < 0.5 else 1.0 - 2.0 * (1.0 - x) ** 2
    d = 0.9 + 0.05 * share
    R = (1.0 - d) / d * (1.0 / mass + 1.0 / plate)
    R *= 2.0 if contacts == "default" else 0.1
    return R * mass * GRAVITY / count / (2.0 / (0.95 * tau))


@pytest.mark.short_cases(2)
@pytest.mark.parametrize(("mass", "plate"), CASES)
@pytest.mark.parametrize("contacts", ["stiff", "soft", "default"])
def test_held_objects_sink_by_the_law_of_soft_contacts(mass, plate, contacts):
    speed, depth, count = sinking(held_block(mass, plate), mass, contacts)
    expected = predicted(mass, plate, depth, count, contacts)
    assert speed == pytest.approx(expected, rel=0.03, abs=2e-6)


def test_default_contacts_give_way_a_hundred_times_as_fast_as_stiff_ones():
    for mass, plate in CASES:
        model = held_block(mass, plate)
        assert sinking(model, mass, "default")[0] > 90.0 * sinking(model, mass, "stiff")[0]


def test_the_own_second_order_step_holds():
    """Its contacts are rigid: no creep."""
    from qdsim.planning.execution.own_plant import OwnPlant, judging_options

    mass = 0.2
    model = held_block(mass, 1.0)
    options = planning.TransferOptions()
    space = planning.ObjectSpace(model, "block")
    plant = OwnPlant(model, space, judging_options(options, None), options, True)
    plant.reset(np.array(model.default_q))
    press = 4.0 * mass * GRAVITY / 1000.0
    heights = []
    for _ in range(400):
        plant.advance(np.array([press, -press]))
        heights.append(plant.q[model.slice_q(model.joint_names[0])][2])
    assert abs(heights[-1] - heights[200]) < 1e-6


@pytest.mark.parametrize("contacts", ["stiff", "soft", "default"])
def test_contacts_of_a_world_are_not_the_files(contacts):
    text = held_block(1.0, 0.05).description.to_mjcf()
    others = text.replace("<option ", '<option cone="elliptic" impratio="3" ').replace(
        'type="box"', 'type="box" solref="0.1 0.5" solimp="0.3 0.4 0.02" solmix="2"'
    )
    assert others.count("solmix") == 3
    plain, other = (
        planning.second_order(
            qdsim.load(source), "block", planning.TransferOptions(contacts=contacts)
        )
        for source in (text, others)
    )
    for field in ("geom_solref", "geom_solimp", "geom_solmix"):
        assert np.array_equal(getattr(plain, field), getattr(other, field))
    assert (plain.opt.cone, plain.opt.impratio) == (other.opt.cone, other.opt.impratio)


def test_planners_predict_the_creep():
    """Controllers of a task whose contacts are MuJoCo's step as such steps do."""
    task = systems.load("allegro_cube").tasks["turn"]
    task = task.replace(options=task.options.replace(contacts="mujoco"))
    for loop in (
        planning.Mpc(task),
        planning.SamplingMpc(task, planning.SamplingOptions(samples=8)),
    ):
        command = loop.act(task.start)
        assert loop.report.fallback == ""
        path = loop.prediction
        assert path is not None
        creeping, rigid = (
            qdsim.step(task.model, task.start, command, task.options.replace(contacts=word)).q_next
            for word in ("mujoco", "rigid")
        )
        assert np.abs(path[1] - creeping).max() < 0.01 * np.abs(path[1] - rigid).max() + 1e-9
