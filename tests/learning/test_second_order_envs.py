"""Environments over second-order steps: the same bits as single steps, MuJoCo's own where contacts are its own, and
what episodes draw of contacts and senses."""

from __future__ import annotations

import copy
import dataclasses
import pickle

import mujoco
import numpy as np
import numpy.typing as npt
import pytest

import qdsim
from qdsim.planning import Task

gymnasium = pytest.importorskip("gymnasium")

from qdsim.envs import (  # noqa: E402
    EnvOptions,
    MujocoContacts,
    Range,
    TaskEnv,
    TaskVectorEnv,
    published,
)

Array = npt.NDArray[np.float64]
SECOND = {"pool": 16, "dynamics": "second_order"}

PUSHER = """<mujoco><option timestep="0.002" cone="{cone}" impratio="{impratio}"/><worldbody>
<geom type="plane" size="2 2 1"/>
<body name="ball" pos="0 0 0.05"><freejoint name="ball"/><geom type="sphere" size="0.05" mass="0.3" condim="4"
 friction="0.9 0.02 0.001"/></body>
<body pos="-0.14 0 0.05"><joint name="x" type="slide" axis="1 0 0" damping="4" armature="0.1"/>
<joint name="y" type="slide" axis="0 1 0" damping="4" armature="0.1"/>
<geom type="sphere" size="0.04" mass="0.5"/></body></worldbody>
<actuator><position joint="x" kp="200"/><position joint="y" kp="200"/></actuator></mujoco>"""


def pusher(cone: str = "elliptic", impratio: float = 1.0) -> tuple[mujoco.MjModel, Task]:
    """A finger and a ball on a plane, whose contacts are at the same points in MuJoCo."""
    compiled = mujoco.MjModel.from_xml_string(PUSHER.format(cone=cone, impratio=impratio))
    compiled.opt.integrator = mujoco.mjtIntegrator.mjINT_DISCRETE
    compiled.opt.tolerance, compiled.opt.iterations, compiled.opt.ls_iterations = 1e-15, 300, 200
    compiled.opt.ls_tolerance = 1e-12
    model = qdsim.load(compiled)
    start, box = model.default_q, np.array([0.2, 0.2, 0.01, 0.1, 0.1, 3.0])
    goal = start.copy()
    goal[model.slice_q("ball")][0] += 0.1
    task = Task(
        name="push the ball",
        model=model,
        options=qdsim.Options(h=0.02, gravity_on_actuated=True),
        start=start,
        goal=goal,
        object="ball",
        lower=-box,
        upper=box,
        length=0.05,
    )
    return compiled, task


def stepped(
    model: qdsim.Model, q: Array, v: Array, u: Array, options: qdsim.DynamicOptions, count: int
):
    """By single steps under one command after another (k, nu), each held for `count` steps."""
    for command in u:
        for _ in range(count):
            step = qdsim.step_dynamic(model, q, v, command, options)
            q, v = step.q_next, step.v_next
    return q, v


@pytest.mark.short_cases(1)
@pytest.mark.parametrize("contacts", ["rigid", "mujoco"])
@pytest.mark.parametrize("name", ["qdsim/PlanarPushing-v0", "qdsim/PlanarHandCommand-v0"])
def test_environments_have_the_bits_of_single_steps(name: str, contacts: str) -> None:
    """Of each sample with its own parameters; commands go on from the velocities that there are, pushes begin at
    rest."""
    draw = {"pair_friction": (0.5, 2.0), "body_mass": (0.7, 1.5), "joint_damping": Range(0.1, 1.0)}
    task, given = published(name, **SECOND, contacts=contacts, randomize=draw)
    env = TaskVectorEnv(task, 3, given)
    env.reset(seed=2)
    law = env.rules.moves.laws[0]
    assert law.options.contacts == contacts and law.options.h * law.steps == task.options.h
    rng = np.random.default_rng(1)
    for _ in range(3):
        before = dataclasses.replace(env.players)
        action = rng.uniform(-1.0, 1.0, env.action_space.shape)
        course = env.rules.moves.course(before.q, action)
        *_, terminated, _, _ = env.step(action)
        assert not terminated.any() and course.good.all()
        for i in range(3):
            own = {key: values[i] for key, values in before.parameters.items()}
            v = before.v[i] if given.action == "command" else np.zeros(task.model.nv)
            model = task.model.with_parameters(**own)
            q, v = stepped(model, course.begin[i], v, course.u[i], law.options, law.steps)
            assert np.array_equal(env.players.q[i], q) and np.array_equal(env.players.v[i], v)
        assert np.abs(env.players.v).max() > 1e-3


@pytest.mark.skipif(not hasattr(mujoco.mjtIntegrator, "mjINT_DISCRETE"), reason="an older MuJoCo")
@pytest.mark.parametrize(
    ("cone", "impratio"), [("elliptic", 1.0), ("elliptic", 10.0), ("pyramidal", 1.0)]
)
def test_environments_with_contacts_of_mujoco_are_mujoco(cone: str, impratio: float) -> None:
    """An episode of commands, beside `mj_step` under the same ones; in contact with plane and finger."""
    compiled, task = pusher(cone, impratio)
    options = EnvOptions(
        action="command", start="task", scale=0.1, dynamics="second_order", contacts="mujoco"
    )
    env, data = TaskEnv(task, options), mujoco.MjData(compiled)
    env.reset(seed=0)
    data.qpos[:] = env.q
    touched = 0
    for k in range(8):
        action = np.array([1.0, 0.1 * k])
        u = data.qpos[7:] + options.scale * action
        env.step(action)
        for _ in range(10):
            data.ctrl[:] = u
            mujoco.mj_step(compiled, data)
            touched += data.ncon == 2
        qvel = qdsim.to_mujoco_velocity(task.model, env.q, env.v)
        size = max(1.0, np.abs(data.qvel).max())
        assert (
            np.abs(env.q - data.qpos).max() < 1e-9 and np.abs(qvel - data.qvel).max() < 1e-9 * size
        )
    assert touched > 5


def test_contacts_have_the_numbers_that_are_drawn() -> None:
    """An episode is stepped by the model of the contacts that it drew: as if the file had these numbers."""
    _, task = pusher("pyramidal")
    kinds = (
        MujocoContacts(cone="elliptic", impratio=5.0),
        MujocoContacts(solref=(0.05, 1.0), solimp=(0.5, 0.9)),
        "rigid",
    )
    options = EnvOptions(action="command", start="task", dynamics="second_order", contacts=kinds)
    env = TaskVectorEnv(task, 40, options)
    env.reset(seed=0)
    q, drawn = env.players.q.copy(), env.players.contacts
    assert set(drawn) == {0, 1, 2}
    env.step(np.ones(env.action_space.shape))
    u = np.repeat(q[:1, 7:] + 0.2, 1, axis=0)
    first, second, third = env.rules.moves.laws
    made = first.model.description.contact_solver
    assert (made.cone, made.impratio) == ("elliptic", 5.0)
    assert all(
        g.solref == (0.05, 1.0) and g.solimp[:3] == (0.5, 0.9, 0.001) for g in geoms(second.model)
    )
    assert third.model is task.model and third.options.contacts == "rigid"
    found = []
    for kind, law in enumerate((first, second, third)):
        expected, _ = stepped(law.model, q[0], np.zeros(8), u, law.options, law.steps)
        assert np.array_equal(env.players.q[drawn == kind][0], expected)
        found.append(expected[2])
    assert found[1] < found[0] - 1e-4  # softer ones sink in further


def geoms(model: qdsim.Model):
    return [geom for body in model.description.bodies for geom in body.geoms]


@pytest.mark.short_cases(1)
@pytest.mark.parametrize("mode", ["SameStep", "NextStep"])
def test_a_vector_is_many_single_ones(mode: str) -> None:
    """Velocities, noise and delays included; copies go on alike."""
    draw = {
        "pair_friction": (0.7, 1.3),
        "position_noise": Range(0.0, 5e-3),
        "rotation_noise": Range(0.01, 0.02),
        "delay": Range(0, 2),
    }
    task, options = published("qdsim/PlanarHandCommand-v0", **SECOND, horizon=3, randomize=draw)
    many = TaskVectorEnv(task, 3, options, autoreset_mode=mode)
    single = [TaskEnv(task, options) for _ in range(3)]
    observation, _ = many.reset(seed=5)
    for i, env in enumerate(single):
        assert np.array_equal(env.reset(seed=5 + i)[0], observation[i])
    rng, over = np.random.default_rng(0), np.zeros(3, dtype=bool)
    for k in range(8):
        actions = rng.uniform(-1.0, 1.0, many.action_space.shape)
        if k == 1:
            many, single = copy.deepcopy(many), pickle.loads(pickle.dumps(single))
        observation, reward, terminated, truncated, _ = many.step(actions)
        for i, env in enumerate(single):
            if over[i] and mode == "NextStep":
                assert np.array_equal(env.reset()[0], observation[i])
                continue
            seen, own, *ends, _ = env.step(actions[i])
            if any(ends) and mode == "SameStep":
                seen = env.reset()[0]
            assert np.array_equal(seen, observation[i]) and own == reward[i]
            assert ends == [terminated[i], truncated[i]]
        over = (terminated | truncated) & ~over if mode == "NextStep" else over


def test_noise_and_delay_change_what_is_seen_alone() -> None:
    plain = {"horizon": 50, "goal": "task"}
    late = {**plain, "randomize": {"delay": Range(2, 2)}}
    noisy = {**plain, "randomize": {"position_noise": Range(0.01, 0.01)}}
    envs = [
        TaskVectorEnv(*ordered(published("qdsim/PlanarHandCommandGoal-v0", pool=16, **changes)))
        for changes in (plain, late, noisy)
    ]
    seen = [[env.reset(seed=1)[0]] for env in envs]
    rng = np.random.default_rng(0)
    for _ in range(8):
        action = rng.uniform(-1.0, 1.0, envs[0].action_space.shape)
        results = [env.step(action) for env in envs]
        for own, result in zip(seen, results):
            own.append(result[0])
            assert np.array_equal(result[1], results[0][1])
            for key in ("achieved_goal", "desired_goal"):
                assert np.array_equal(result[0][key], results[0][0][key])
    exact, delayed, off = ([o["observation"] for o in own] for own in seen)
    for k in range(9):
        assert np.array_equal(delayed[k], exact[max(0, k - 2)])
    names = envs[0].rules.viewer.names
    place = [i for i, name in enumerate(names) if name.startswith("object, lengths")]
    errors = (np.array(off) - np.array(exact))[..., place] * envs[0].rules.task.length
    assert 0.008 < errors.std() < 0.012 and abs(errors.mean()) < 0.001
    still = [i for i, name in enumerate(names) if name.startswith(("joint", "command", "last"))]
    assert np.array_equal(np.array(off)[..., still], np.array(exact)[..., still])


def ordered(found):
    task, options = found
    return task, 60, options


def test_velocities_are_seen_and_may_be_given() -> None:
    task, options = published("qdsim/PlanarHandCommand-v0", **SECOND)
    env = TaskEnv(task, options)
    v = np.linspace(-0.3, 0.3, task.model.nv)
    seen, _ = env.reset(seed=0, options={"v": v})
    assert np.array_equal(env.v, v)
    at = [i for i, name in enumerate(env.rules.viewer.names) if name.startswith("velocity")]
    assert np.allclose(seen[at], task.options.h * v)
    assert not env.reset(seed=0)[0][at].any()
    for wrong in (v[:-1], np.nan * v):
        with pytest.raises(ValueError, match=r"^options\['v'\]: expected"):
            env.reset(options={"v": wrong})
    quasi = TaskEnv(*published("qdsim/PlanarHandCommand-v0", pool=16))
    with pytest.raises(ValueError, match="expected keys among q, goal, got 'v'"):
        quasi.reset(options={"v": v})


def test_what_is_no_dynamics_is_named() -> None:
    for wrong, words in (
        ({"dynamics": "second"}, "^dynamics: "),
        ({"dynamics": qdsim.DynamicOptions(patch_law="bristle")}, "^dynamics: patch_law='bristle'"),
        ({"contacts": (MujocoContacts(), "soft")}, r"^contacts\[1\]: "),
        ({"randomize": {"delay": Range(-1, 2)}}, r"^randomize\['delay'\]"),
        (
            {"randomize": {"position_noise": Range(1.0, 2.0, log=True)}},
            r"^randomize\['position_noise'\]",
        ),
    ):
        with pytest.raises(ValueError, match=words):
            EnvOptions(**wrong)
    for wrong in (
        {"randomize": {"delay": (1.0, 2.0)}},
        {"randomize": {"delay": Range(0.0, 1.5)}},
        {"dynamics": 3},
    ):
        with pytest.raises((TypeError, ValueError), match=r"^(randomize|dynamics)"):
            EnvOptions(**wrong)
    for wrong in ({"impratio": -1.0}, {"cone": "round"}, {"solref": (1.0, -1.0)}, {"solimp": ()}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            MujocoContacts(**wrong)
    task, options = published("qdsim/PlanarHand-v0", pool=16)
    own = dataclasses.replace(options, dynamics=qdsim.DynamicOptions(h=0.03))
    law = TaskEnv(task, own).rules.moves.laws[0]
    assert law.steps == 3 and np.isclose(law.options.h, task.options.h / 3)
