"""Environments: Gymnasium's own checks, what Gymnasium's own vectors do with one of ours, and physics by single
steps."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import subprocess
import sys

import numpy as np
import pytest
import scenes

import qdsim
from qdsim import DynamicOptions, systems
from qdsim.planning import samplers

gymnasium = pytest.importorskip("gymnasium")

from gymnasium.utils.env_checker import check_env  # noqa: E402
from gymnasium.vector import AutoresetMode, SyncVectorEnv  # noqa: E402

from qdsim.envs import (  # noqa: E402
    GOAL_IDS,
    IDS,
    EnvOptions,
    GoalTaskEnv,
    MujocoContacts,
    Policy,
    Range,
    TaskEnv,
    TaskVectorEnv,
    published,
)
from qdsim.envs.goals import GoalCoordinates  # noqa: E402
from qdsim.envs.streams import uniforms  # noqa: E402

SMALL = {"pool": 24}
GOALS = tuple(GOAL_IDS)
FEW = (
    "qdsim/PlanarPushing-v0",
    "qdsim/PlanarHand-v0",
    "qdsim/PlanarHandCommand-v0",
    "qdsim/AllegroBall-v0",
)


def vector(name: str, count: int, *, mode: str = "SameStep", **changes: object) -> TaskVectorEnv:
    task, options = published(name, **{**SMALL, **changes})
    return TaskVectorEnv(task, count, options, autoreset_mode=mode)


@pytest.mark.short_cases(1)
@pytest.mark.parametrize(
    "name", (*FEW, pytest.param("qdsim/AllegroBallGoal-v0", marks=pytest.mark.long))
)
@pytest.mark.filterwarnings("ignore")
def test_gymnasium_finds_nothing_wrong(name: str) -> None:
    env = gymnasium.make(name, **SMALL)
    check_env(env.unwrapped, skip_render_check=True)
    many = gymnasium.make_vec(name, num_envs=3, vectorization_mode="vector_entry_point", **SMALL)
    observation, _ = many.reset(seed=1)
    assert observation in many.observation_space
    observation, reward, *_ = many.step(many.action_space.sample())
    assert observation in many.observation_space and reward.shape == (3,)


@pytest.mark.long
def test_every_id_has_its_task() -> None:
    for name, (system, task, action, _) in IDS.items():
        found, options = published(name)
        assert found.name and options.action == action
        assert task in systems.load(system).tasks
    with pytest.raises(ValueError, match=r"^name: expected one of"):
        published("qdsim/Nothing-v0")


@pytest.mark.short_cases(3)
@pytest.mark.parametrize(
    "name", (*IDS, *(pytest.param(name, marks=pytest.mark.long) for name in GOALS))
)
def test_every_id_is_made_reset_stepped_and_copied(name: str) -> None:
    env = gymnasium.make(name, pool=2).unwrapped
    env.reset(seed=0)
    action = np.random.default_rng(0).uniform(-1.0, 1.0, env.action_space.shape)
    state = env.get_state()
    copies = [copy.deepcopy(env), pickle.loads(pickle.dumps(env))]
    observation, reward, *_ = env.step(action)
    assert observation in env.observation_space and np.isfinite(reward)
    for other in copies:
        assert same_observations(other.step(action)[0], observation)
    env.set_state(state)
    assert same_observations(env.step(action)[0], observation)
    assert same_observations(env.reset()[0], copies[0].reset()[0])


@pytest.mark.long
@pytest.mark.parametrize("first", ["qdsim", "gymnasium"])
def test_gymnasium_knows_the_ids_whoever_comes_first(first: str) -> None:
    second = {"qdsim": "gymnasium", "gymnasium": "qdsim"}[first]
    code = f"""import {first}, {second}, sys
assert "qdsim.envs" not in sys.modules
env = gymnasium.make("qdsim/PlanarHand-v0", pool=2)
env.reset(seed=0)
assert type(gymnasium.__spec__.loader).__module__.startswith("_frozen")
"""
    subprocess.run([sys.executable, "-W", "error::UserWarning", "-c", code], check=True)


@pytest.mark.long
def test_gymnasium_imports_the_package_that_an_id_names() -> None:
    code = "import gymnasium, sys; assert 'qdsim' not in sys.modules; gymnasium.make('qdsim:qdsim/PlanarHand-v0', pool=2)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_episodes_begin_where_they_are_told_to() -> None:
    env, many = gymnasium.make(FEW[0], **SMALL).unwrapped, vector(FEW[0], 3)
    task = env.rules.task
    q, goal = np.array(task.start), np.array(task.start)
    q[:2] += 0.1
    goal[1] += 0.3
    env.reset(seed=0, options={"q": q, "goal": goal})
    assert np.array_equal(env.q, q)
    found = env.step(np.zeros(env.action_space.shape))[4]["shift"]
    assert found == pytest.approx(np.hypot(0.1, 0.2), abs=0.05)
    drawn = env.reset(seed=3)[0]
    env.reset(seed=3, options={"goal": goal})
    begun = np.array(env.q)
    assert np.array_equal(env.reset(seed=3, options={})[0], drawn) and np.array_equal(env.q, begun)
    mask = np.array([True, False, True])
    many.reset(seed=0)
    other = many.players.q[1].copy()
    many.reset(options={"reset_mask": mask, "q": np.array([q, q + 0.01, q + 0.02])})
    assert np.array_equal(many.players.q, [q, other, q + 0.02])
    for wrong, kind, words in (
        ({"position": q}, ValueError, "'position'"),
        ({"q": q[:-1]}, ValueError, r"'q'"),
        ({"goal": goal * np.nan}, ValueError, r"'goal'"),
        ({"goal": goal + 1e12}, ValueError, r"'goal'"),
        ([q], TypeError, "options"),
        ({"q": "there"}, TypeError, r"'q'"),
    ):
        for environment in (env, many):
            with pytest.raises(kind, match=words):
                environment.reset(options=wrong)
    with pytest.raises(ValueError, match="'reset_mask'"):
        env.reset(options={"reset_mask": mask})


def test_factors_on_nothing_are_refused() -> None:
    task, options = published(FEW[3], **SMALL)
    for name in ("pair_compliance", "geom_modulus", "joint_friction"):
        assert not np.any(getattr(task.model.parameters, name))
        with pytest.raises(ValueError, match=name):
            TaskEnv(task, dataclasses.replace(options, randomize={name: (0.5, 2.0)}))


def test_ranges_take_the_place_of_parameters() -> None:
    """One number an episode, uniform or in the logarithm; steps are those of the model with what was drawn."""
    task, options = published(FEW[0], **SMALL)
    mass = np.array(task.model.parameters.body_mass)
    body = task.model.body_names.index(task.object)
    low, high = mass.copy(), mass.copy()
    low[body], high[body] = 0.5, 20.0
    drawn = {
        "pair_compliance": Range(1e-5, 1e-1, log=True),
        "body_mass": Range(low, high),
        "pair_friction": Range(0.0, 0.8),
    }
    env = TaskVectorEnv(task, 300, dataclasses.replace(options, randomize=drawn))
    env.reset(seed=0)
    found, friction = env.players.parameters, np.asarray(task.model.parameters.pair_friction)
    soft = found["pair_compliance"]
    assert soft.shape == (300, len(friction)) and np.array_equal(soft, soft[:, :1] + 0.0 * soft)
    decades = np.histogram(np.log10(soft[:, 0]), 4, (-5.0, -1.0))[0]
    assert decades.sum() == 300 and decades.min() > 45
    assert np.all(found["body_mass"][:, np.arange(len(mass)) != body] == np.delete(mass, body))
    heavy = found["body_mass"][:, body]
    assert 0.5 <= heavy.min() < 1.0 and 19.0 < heavy.max() <= 20.0
    assert np.array_equal(found["pair_friction"][0, :, 2:], friction[:, 2:])
    assert np.array_equal(
        np.unique(found["pair_friction"][0, :, :2]), found["pair_friction"][0, 0, :1]
    )
    before, action = env.players.q.copy(), np.zeros(env.action_space.shape)
    env.step(action)
    for i in (0, 7):
        model = task.model.with_parameters(**{name: row[i] for name, row in found.items()})
        course = env.rules.moves.course(before[i : i + 1], action[i : i + 1])
        q = qdsim.rollout(model, course.begin[0], course.u[0], task.options).q[-1]
        assert np.allclose(env.players.q[i], q, atol=1e-12)


def test_wrong_ranges_are_named() -> None:
    task, options = published(FEW[0], **SMALL)
    for kind, said, make in (
        (ValueError, r"^high: expected no less than low", lambda: Range(2.0, 1.0)),
        (ValueError, r"^high: expected shape", lambda: Range([1.0, 2.0], [1.0, 2.0, 3.0])),
        (ValueError, r"^low: .*log=True", lambda: Range(0.0, 1.0, log=True)),
        (ValueError, r"^low: ", lambda: Range(np.nan, 1.0)),
        (TypeError, r"^low: ", lambda: Range("soft", 1.0)),
        (TypeError, r"^log: ", lambda: Range(1.0, 2.0, log=3)),
    ):
        with pytest.raises(kind, match=said):
            make()
    for name, draw in (
        ("body_mass", Range([1.0], [2.0])),
        ("body_mass", Range(-1.0, 2.0)),
        ("pair_compliance", Range(-1e-3, 0.0)),
    ):
        with pytest.raises(ValueError, match=rf"^randomize\['{name}'\]: "):
            TaskEnv(task, dataclasses.replace(options, randomize={name: draw}))


@pytest.mark.parametrize("name", (FEW[0], FEW[2]))
def test_contacts_are_those_that_are_asked_for(name: str) -> None:
    """Each episode has one of several, half of them each, and is stepped by it alone; steps are those of the core."""
    words = ("rigid", "mujoco")
    env = vector(name, 200, contacts=words, randomize={"pair_friction": (0.7, 1.3)})
    alone = [vector(name, 200, contacts=w, randomize={"pair_friction": (0.7, 1.3)}) for w in words]
    for one in (env, *alone):
        one.reset(seed=3)
    drawn, before = env.players.contacts.copy(), env.players.q.copy()
    assert 70 < drawn.sum() < 130
    action = np.random.default_rng(0).uniform(-1.0, 1.0, env.action_space.shape)
    for one in (env, *alone):
        one.players.actions_done[:] = 0
        one.rules.play(one.players, action)
    apart = np.abs(alone[0].players.q - alone[1].players.q).max(axis=1)
    assert np.count_nonzero(apart > 1e-6) > 20
    for kind, one in enumerate(alone):
        rows = drawn == kind
        assert np.array_equal(env.players.q[rows], one.players.q[rows])
    task = env.rules.task
    course = env.rules.moves.course(before, action)
    moved = np.flatnonzero(course.good & (apart > 1e-6))
    for kind, word in enumerate(words):
        options = task.options.replace(
            contacts=word, friction="cone" if word == "mujoco" else task.options.friction
        )
        for i in moved[drawn[moved] == kind][:2]:
            model = task.model.with_parameters(
                pair_friction=env.players.parameters["pair_friction"][i]
            )
            q = qdsim.rollout(model, course.begin[i], course.u[i], options).q[-1]
            assert np.allclose(env.players.q[i], q, atol=1e-12)


def test_contacts_of_an_episode_stay_and_change_with_the_next() -> None:
    env = gymnasium.make(FEW[0], contacts=["rigid", "mujoco"], **SMALL).unwrapped
    env.reset(seed=1)
    twin, kinds = pickle.loads(pickle.dumps(env)), []
    for _ in range(12):
        for one in (env, twin):
            one.reset()
        first = env._players.contacts[0]
        env.step(np.zeros(env.action_space.shape))
        assert first == env._players.contacts[0] == twin._players.contacts[0]
        kinds.append(first)
    assert set(kinds) == {0, 1}


def test_wrong_contacts_are_named() -> None:
    for wrong, kind, words in (
        ("soft", ValueError, r"contacts: .*'soft'"),
        (("rigid", "soft"), ValueError, r"contacts\[1\]: .*'soft'"),
        ((), ValueError, "contacts"),
        (3, TypeError, "contacts"),
    ):
        with pytest.raises(kind, match=words):
            EnvOptions(contacts=wrong)
    task, options = published(FEW[3], contacts="mujoco", **SMALL)
    stiff = task.replace(options=task.options.replace(friction="cone", contact_stiffness=1e4))
    with pytest.raises(ValueError, match=r"contact_stiffness: .*contacts='mujoco'"):
        TaskEnv(stiff, options)


@pytest.mark.short_cases(1)
@pytest.mark.parametrize("mode", ["SameStep", "NextStep"])
@pytest.mark.parametrize("name", (*FEW[:3], "qdsim/PlanarHandCommandGoal-v0"))
def test_a_vector_is_many_single_ones(name: str, mode: str) -> None:
    """The same numbers as Gymnasium's own vector of single environments, through ends and resets."""
    changes = {"horizon": 3, "near": 3.0, "randomize": {"pair_friction": (0.7, 1.3)}}
    ours = vector(name, 4, mode=mode, **changes)
    task, options = published(name, **SMALL, **changes)
    single = GoalTaskEnv if name in GOALS else TaskEnv
    theirs = SyncVectorEnv([lambda: single(task, options)] * 4, autoreset_mode=AutoresetMode(mode))
    a, b = ours.reset(seed=5)[0], theirs.reset(seed=5)[0]
    assert same_observations(a, b)
    rng = np.random.default_rng(0)
    ended = 0
    for _ in range(8):
        action = rng.uniform(-1.0, 1.0, ours.action_space.shape)
        a, b = ours.step(action), theirs.step(action)
        assert same_observations(a[0], b[0])
        assert all(np.array_equal(x, y) for x, y in zip(a[1:4], b[1:4]))
        same_infos(a[4], b[4])
        ended += (a[2] | a[3]).sum()
    assert ended >= 4


def same_infos(ours: dict, theirs: dict) -> None:
    """What one has the other has; ours keeps the names of what no environment has, with masks that are False."""
    for name, values in ours.items():
        if name not in theirs:
            assert not np.any(values)
        elif isinstance(values, dict):
            same_infos(values, theirs[name])
        elif name == "final_obs":
            for x, y in zip(values, theirs[name]):
                assert same_observations(x, y) if x is not None else y is None
        else:
            assert np.array_equal(values, theirs[name])
    assert set(theirs) <= set(ours)


def same_observations(a: object, b: object) -> bool:
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)
    return np.array_equal(a, b)


@pytest.mark.short_cases(1)
@pytest.mark.parametrize(
    ("name", "reward"),
    [
        ("qdsim/PlanarPushingGoal-v0", "sparse"),
        ("qdsim/PlanarHandCommandGoal-v0", "dense"),
        ("qdsim/AllegroBallGoal-v0", "dense"),
        ("qdsim/AllegroDoorGoal-v0", "sparse"),
    ],
)
def test_rewards_follow_from_goals(name: str, reward: str) -> None:
    """What gymnasium-robotics' GoalEnv promises, of single goals and of many."""
    env = gymnasium.make(name, pool=8, near=8.0, horizon=4, reward=reward, lost=0.5).unwrapped
    rng, seen, begun = np.random.default_rng(3), [], env.reset(seed=3)[0]
    assert set(begun) == {"observation", "achieved_goal", "desired_goal"}
    for _ in range(16):
        after, value, terminated, truncated, info = env.step(
            rng.uniform(-1, 1, env.action_space.shape)
        )
        ends = after["achieved_goal"], after["desired_goal"], info
        assert value == env.compute_reward(*ends)
        assert terminated == env.compute_terminated(*ends)
        assert truncated == env.compute_truncated(*ends)
        shift, turn = env.rules.goal.errors(*(x[None] for x in ends[:2]))
        assert shift[0] == pytest.approx(info["shift"], abs=1e-9)
        assert turn[0] == pytest.approx(info["turn"], abs=1e-7)
        seen.append((*ends, value))
        if terminated or truncated:
            env.reset()
    achieved, desired, infos, values = zip(*seen)
    both = np.array(achieved), np.array(desired)
    assert np.array_equal(env.compute_reward(*both, np.array(infos)), values)
    over = np.array([info["lost"] or info["failed"] for info in infos])
    again = env.compute_reward(both[0], both[0], infos)
    assert np.allclose(again[~over], 0.0, atol=1e-5)  # it is where it should have been
    assert np.all(env.compute_terminated(both[0], both[0], {}))
    cube = env.compute_reward(*(np.tile(x, (3, 2, 1)) for x in both), {})
    assert cube.shape == (3, 2 * len(values))
    assert np.array_equal(cube[0, : len(values)][~over], np.array(values)[~over])


def test_an_end_without_the_goal_costs_a_horizon() -> None:
    """Else it would be a way out of being told off at every step."""
    env = gymnasium.make("qdsim/PlanarPushingGoal-v0", pool=8, lost=1e-6, horizon=7).unwrapped
    after = env.reset(seed=0)[0]
    while True:
        after, reward, terminated, *_, info = env.step(env.action_space.sample())
        if terminated:
            break
    goals = after["achieved_goal"], after["desired_goal"]
    assert info["lost"] and reward == -7.0 and env.compute_reward(*goals, {}) == -1.0
    assert env.compute_reward(goals[0], goals[0], info) == -7.0


@pytest.mark.parametrize("name", ["planar_pushing", "allegro_sphere", "allegro_door"])
def test_goals_are_told_by_their_numbers(name: str) -> None:
    """There and back again, in any turn of the object."""
    task = next(iter(systems.load(name).tasks.values()))
    numbers, model, rng = GoalCoordinates(task), task.model, np.random.default_rng(0)
    v = np.zeros((50, model.nv))
    v[:, task.space.v] = rng.uniform(-2.0, 2.0, (50, task.space.size)) * (
        1.0 + 4.0 * (rng.random((50, 1)) < 0.5)
    )
    if name == "allegro_door":  # its joints have limits
        v[:, task.space.v] *= 0.1
    q = np.array([model.integrate(task.start, row) for row in v])
    found = numbers.of(q)
    assert np.abs(numbers.of(numbers.configurations(found)) - found).max() < 1e-12
    assert np.abs(np.array(numbers.errors(found, found))).max() < 1e-12
    # of any length: of rotations, the nearest counts
    q_there = numbers.configurations(found)
    shifts = [task.space.errors(a, b)[0] for a, b in zip(q, q_there)]
    assert np.max(shifts) < 1e-12
    assert np.isfinite(numbers.configurations(np.zeros((1, len(numbers.names))))).all()


def test_wrong_goals_are_named() -> None:
    env = gymnasium.make("qdsim/PlanarPushingGoal-v0", pool=2).unwrapped
    goal = env.reset(seed=0)[0]["desired_goal"]
    for said, ends in (
        (r"^achieved_goal: expected \(\.\.\., 4\)", (goal[:3], goal, {})),
        (r"^desired_goal: ", (goal, goal * np.nan, {})),
        (r"^desired_goal: expected shape", (goal, goal[None], {})),
        (r"^info: expected one for each", (goal, goal, [{}, {}])),
    ):
        with pytest.raises(ValueError, match=said):
            env.compute_reward(*ends)
    task, options = published("qdsim/PlanarPushing-v0", pool=2)
    assert not hasattr(TaskEnv(task, options), "compute_reward")
    with pytest.raises(ValueError, match=r"^options: expected observation='goal'"):
        GoalTaskEnv(task, options)
    with pytest.raises(ValueError, match=r"^options: observation='goal' needs a GoalTaskEnv"):
        TaskEnv(task, EnvOptions(observation="goal"))
    with pytest.raises(ValueError, match=r"^reward: expected 'sparse' or 'dense'"):
        EnvOptions(observation="goal", reward="shaped")


def test_stable_baselines_takes_goals_as_they_are() -> None:
    checker = pytest.importorskip("stable_baselines3.common.env_checker")
    checker.check_env(gymnasium.make("qdsim/PlanarPushingGoal-v0", pool=4).unwrapped)


def test_resets_by_hand() -> None:
    env = vector(FEW[0], 3, mode="Disabled", horizon=2)
    with pytest.raises(ValueError, match=r"^step: reset"):
        env.step(np.zeros((3, 4)))
    env.reset(seed=0)
    for _ in range(2):
        *_, truncated, _ = env.step(np.zeros((3, 4)))
    assert truncated.all()
    with pytest.raises(ValueError, match=r"environments \[0, 1, 2\] have ended"):
        env.step(np.zeros((3, 4)))
    mask = np.array([True, False, True])
    env.reset(options={"reset_mask": mask})
    with pytest.raises(ValueError, match=r"environments \[1\] have ended"):
        env.step(np.zeros((3, 4)))
    for wrong in (np.zeros(3, bool), np.ones(2, bool), np.ones(3)):
        with pytest.raises(ValueError, match=r"^reset_mask: "):
            env.reset(options={"reset_mask": wrong})


def test_episodes_do_not_depend_on_how_many_there_are() -> None:
    few, many = vector(FEW[0], 2), vector(FEW[0], 7)
    assert np.array_equal(few.reset(seed=3)[0], many.reset(seed=3)[0][:2])
    seeds, episodes = np.arange(2000, dtype=np.uint64), np.zeros(2000, dtype=np.uint64)
    numbers = uniforms(seeds, episodes, 3)
    assert np.array_equal(numbers[7], uniforms(seeds[7:8], episodes[:1], 3)[0])
    numbers = np.concatenate([numbers, uniforms(seeds[:1].repeat(2000), seeds, 3)], axis=1)
    assert np.abs(numbers.mean(axis=0) - 0.5).max() < 0.03
    assert np.abs(np.corrcoef(numbers.T) - np.eye(6)).max() < 0.1


@pytest.mark.parametrize("name", [FEW[0], FEW[2]])
def test_actions_are_steps_of_the_model(name: str) -> None:
    task, options = published(name, **SMALL, goal="task", randomize={"pair_friction": (0.5, 2.0)})
    env = TaskVectorEnv(task, 3, options)
    env.reset(seed=2)
    before = dataclasses.replace(env._players)
    friction = env._players.parameters["pair_friction"]
    assert len(np.unique(friction[:, 0, 0])) == 3
    action = np.random.default_rng(1).uniform(-1.0, 1.0, env.action_space.shape)
    env.step(action)
    for i in range(3):
        model = task.model.with_parameters(pair_friction=friction[i])
        q = before.q[i]
        if options.action == "push":
            x, y = action[i, :2], action[i, 2:]
            q = task.sampler.place(task.model, q, x)
            change = task.sampler.stroke(task.model, q[None], x[None], y[None])[0]
            commands = model.command_from(q) + np.arange(1, 5)[:, None] / 4 * change
        else:
            commands = [np.clip(model.command_from(q) + 0.2 * action[i], *task.command_bounds)]
        for u in commands:
            q = qdsim.step(model, q, u, task.options).q_next
        assert np.allclose(env._players.q[i], q, atol=1e-12)


def test_observations_know_no_whole_turns() -> None:
    task, options = published(FEW[0], **SMALL)
    env = TaskVectorEnv(task, 2, options)
    env.reset(seed=0)
    here = env.rules.observe(env._players)
    turn = task.model.slice_q("theta" if "theta" in task.model.joint_names else "box").stop - 1
    turned = env._players
    turned.q[:, turn] += 2.0 * np.pi
    assert np.allclose(env.rules.observe(turned), here, atol=1e-9)
    look = env.rules.look(turned)
    assert (look.turn <= np.pi + 1e-9).all() and (look.shift > 0.0).all()


@pytest.mark.short_cases(2)
@pytest.mark.parametrize(
    "name", [*FEW, "qdsim/PlanarPushing-v0 command", "qdsim/AllegroBall-v0 command"]
)
def test_observations_say_where_everything_is(name: str) -> None:
    """Every column by its name, and what rewards come from, from poses and differences of the model."""
    name, *kind = name.split()
    task, options = published(name, **SMALL, **({"action": kind[0]} if kind else {}))
    rules = TaskVectorEnv(task, 2, options).rules
    players = rules.draw(np.arange(5, dtype=np.uint64), np.zeros(5, np.uint64))
    rng = np.random.default_rng(0)
    rules.play(players, rng.uniform(-1.0, 1.0, (5, rules.action_size)))
    look, model, length = rules.look(players), task.model, task.length
    bodies = model.body_names
    for i in range(5):
        q, goal = players.q[i], players.goals.q[i]
        p, r = model.body_pose(q, task.object)
        pg, rg = model.body_pose(goal, task.object)
        e = model.difference(goal, q)[task.space.v]
        turns = task.space.rotation
        if name != FEW[3]:
            e[turns] -= 2.0 * np.pi * np.round(e[turns] / (2.0 * np.pi))
        shift, turn = np.linalg.norm(e[~turns]), np.linalg.norm(e[turns])
        away = r.T @ (pg - p)
        both = np.hypot(shift, length * turn)
        told = players.command[i] - model.command_from(q)
        tips = {bodies[b]: model.body_pose(q, bodies[b])[0] - p for b in rules.viewer.tips}
        far = np.mean([np.linalg.norm(tip) for tip in tips.values()]) / length
        reach = max(0.0, far - 1.2) if options.action == "command" else 0.0
        potential = -both / length - np.log1p(both / task.position_tolerance) - reach
        judged = shift, turn, max(shift / task.position_tolerance, turn / task.rotation_tolerance)
        judged += potential, np.linalg.norm(p - model.body_pose(task.start, task.object)[0])
        assert np.allclose([x[i] for x in look[1:]], judged, atol=1e-9)
        wanted = {
            "log distance": np.log1p(shift / task.position_tolerance),
            "log angle": np.log1p(turn / task.rotation_tolerance),
        }
        for k, axis in enumerate("xyz"):
            wanted[f"goal from object, lengths {axis}"] = away[k] / length
            wanted[f"direction of goal from object {axis}"] = away[k] / np.linalg.norm(away)
            wanted[f"object, lengths {axis}"] = p[k] / length
            wanted[f"goal from object in the world, lengths {axis}"] = (pg - p)[k] / length
            for j, column in enumerate("xy"):
                wanted[f"goal's rotation from object {axis}{column}"] = (r.T @ rg)[k, j]
                wanted[f"object's rotation {axis}{column}"] = r[k, j]
            for tip, place in tips.items():
                wanted[f"{tip} from object, lengths {axis}"] = (r.T @ place)[k] / length
                wanted[f"{tip} in the world, lengths {axis}"] = place[k] / length
        for k, actuator in enumerate(model.actuator_names):
            low, high = np.asarray(model.joint_range)[model.actuated_v[k]]
            joint = q[model.actuated_q[k]]
            if np.isfinite(low) and np.isfinite(high):
                wanted[f"joint of {actuator}, of its range"] = (2.0 * joint - low - high) / (
                    high - low
                )
            wanted[f"command of {actuator}, past the joint"] = told[k]
        wanted |= {f"last action {k}": x for k, x in enumerate(players.action[i])}
        assert np.allclose(look.seen[i], [wanted[n] for n in rules.viewer.names], atol=1e-9)


def test_hands_see_where_in_the_world_the_object_is() -> None:
    """A pusher that reaches everywhere need not; fingers with a base do different things at different places."""
    for name, seen in ((FEW[0], False), (FEW[1], True)):
        task, options = published(name, **SMALL)
        env = TaskVectorEnv(task, 2, options)
        env.reset(seed=0)
        here, moved = env._players, env.rules.observe(env._players)
        shift = np.zeros(task.model.nv)
        shift[task.space.v[0]] = 0.01
        q = np.array([task.model.integrate(q, shift) for q in here.q])
        goal = np.array([task.model.integrate(q, shift) for q in here.goals.q])
        there = env.rules.begin(q, goal, {})
        assert np.allclose(env.rules.observe(there), moved, atol=1e-9) != seen


class HalfSampler(samplers.BoxSideSampler):
    """Refuses half of the outline."""

    def place_batch(self, model, q, x):
        found, good = super().place_batch(model, q, x)
        good &= x[:, 0] > 0.0
        return np.where(good[:, None], found, q), good


def test_failed_steps_end_their_own_episode_only() -> None:
    """Without the mass term nothing decides how a box turns about its one contact."""
    task, _ = published(FEW[0])
    task = task.replace(options=task.options.replace(epsilon=0.0), sampler=HalfSampler())
    options = EnvOptions(failure=7.0, push_cost=0.5, **SMALL)
    env = TaskVectorEnv(task, 24, options, autoreset_mode="SameStep")
    env.reset(seed=0)
    before = env._players.q.copy()
    action = np.random.default_rng(0).uniform(-1.0, 1.0, env.action_space.shape)
    observation, reward, terminated, _, info = env.step(action)
    failed = info["final_info"]["failed"]
    assert np.array_equal(failed, action[:, 0] > 0.0) and np.array_equal(terminated, failed)
    assert np.array_equal(info["refused"], ~failed) and np.array_equal(info["_refused"], ~failed)
    assert np.allclose(reward[failed], -7.5) and np.allclose(reward[~failed], -0.5)
    assert np.isfinite(observation).all()
    # the failed ones have begun anew, the others are where they were
    same = (env._players.q == before).all(axis=1)
    assert np.array_equal(same, ~failed)
    assert env._players.actions_done.tolist() == (~failed).astype(int).tolist()


def test_rewards_and_ends_of_an_action() -> None:
    """Of all cases: at the goal, lost, failed, out of actions, and of two at once."""
    rng = np.random.default_rng(0)
    count = 400
    measure = rng.uniform(0.0, 2.0, (count, 5))
    measure[:8, 4] = np.nan
    before, failed = rng.normal(size=count), rng.random(count) < 0.3
    done = rng.integers(1, 12, count)
    game = (5.0, 2.0, 0.25, 1.5, 10)
    reward, terminated, truncated, success, lost = qdsim._core._judge(
        measure, before, failed, done, *game
    )
    assert np.array_equal(lost, ~(measure[:, 4] <= 1.5)) and lost[:8].all()
    assert np.array_equal(success, (measure[:, 2] <= 1.0) & ~lost & ~failed)
    assert np.array_equal(terminated, success | lost | failed)
    assert np.array_equal(truncated, (done >= 10) & ~terminated) and truncated.any()
    wanted = measure[:, 3] - before + 5.0 * success - 2.0 * (lost | failed) - 0.25
    assert np.allclose(reward, wanted, rtol=0.0, atol=1e-14)
    for k, wrong in enumerate((measure[:, :4], before[1:], failed.astype(float), done[::2])):
        given = [measure, before, failed, done]
        given[k] = wrong
        with pytest.raises(ValueError, match="expected"):
            qdsim._core._judge(*given, *game)


def test_views_that_do_not_fit_are_refused() -> None:
    """What the core is given by hand."""
    task, options = published(FEW[0], **SMALL)
    rules = TaskVectorEnv(task, 2, options).rules
    players = rules.draw(np.arange(2, dtype=np.uint64), np.zeros(2, np.uint64))
    q, goals, told = players.q, players.goals, np.empty((2, 0))
    core, view = qdsim._core, rules.viewer._view
    for given in (
        (q[:1], goals.q, goals.pose, told),
        (q, goals.q[:, :2], goals.pose, told),
        (q, goals.q, goals.pose[:, :7], told),
        (q, goals.q, goals.pose, np.zeros((2, 1))),
    ):
        with pytest.raises(ValueError, match="expected rows of"):
            core._observe(task.model, view, *given, 1)
    with pytest.raises(ValueError, match=r"^q: sample 0"):
        core._observe(task.model, view, np.full_like(q, np.nan), goals.q, goals.pose, told, 1)
    with pytest.raises(ValueError):
        core._observe(task.model, object(), q, goals.q, goals.pose, told, 1)
    ints = np.zeros(1, np.int32)
    sizes = (0, np.zeros(3), ints, ints, ints[:0], ints[:0])
    rest = (np.zeros(0), np.zeros(0), False, 0, 1.0, 1.0, 1.0, 0.0)
    order = np.arange(14, dtype=np.int32)
    core._view_create(task.model, *sizes, order, *rest)
    for wrong in (order[:5], order[::-1].copy()):
        with pytest.raises(ValueError, match=r"^view: "):
            core._view_create(task.model, *sizes, wrong, *rest)
    for k, value in ((0, 99), (2, ints + 99), (3, ints + 3), (4, ints + 99)):
        with pytest.raises(ValueError, match=r"^view: "):
            core._view_create(
                task.model, *(value if i == k else x for i, x in enumerate(sizes)), order, *rest
            )


def test_wrong_arguments_are_named() -> None:
    env = vector(FEW[0], 2)
    env.reset(seed=0)
    for action, kind, said in (
        (np.full((2, 4), np.nan), ValueError, r"^action: element \[0, 0\] is nan"),
        (np.zeros((3, 4)), ValueError, r"^action: expected shape \(2, 4\)"),
        (np.zeros((2, 4), dtype=complex), TypeError, r"^action: expected real numbers"),
    ):
        with pytest.raises(kind, match=said):
            env.step(action)
    task, _ = published(FEW[0])
    with pytest.raises(ValueError, match=r"^num_envs: "):
        TaskVectorEnv(task, 0)
    with pytest.raises(ValueError, match=r"^action: 'push' needs a sampler"):
        TaskEnv(task.replace(sampler=None))
    with pytest.raises(ValueError, match=r"^render_mode: "):
        TaskEnv(task, render_mode="ansi")
    with pytest.raises(ValueError, match=r"^render_mode: .*single environments"):
        TaskVectorEnv(task, 2, render_mode="human")
    for wrong in (
        {"action": "pull"},
        {"near": 0.0},
        {"pool": 0},
        {"horizon": 0},
        {"failure": -1.0},
    ):
        with pytest.raises(ValueError, match=f"^{next(iter(wrong))}: "):
            EnvOptions(**wrong)
    for wrong in ({"mass": (1.0, 2.0)}, {"body_mass": (2.0, 1.0)}):
        with pytest.raises(ValueError, match=r"^randomize"):
            EnvOptions(randomize=wrong)


def test_pictures() -> None:
    env = gymnasium.make(FEW[0], render_mode="rgb_array", **SMALL)
    env.reset(seed=0)
    picture = env.render()
    assert picture.dtype == np.uint8 and picture.shape[2] == 3 and picture.std() > 1.0


def test_pictures_show_the_goal_and_keep_their_zoom() -> None:
    """Green moves with the goal; the box covers as many pixels after every reset."""
    env = gymnasium.make("qdsim/PlanarPushing-v0", render_mode="rgb_array", **SMALL)
    goals, boxes = [], []
    for seed in range(3):
        env.reset(seed=seed)
        red, green, blue = np.moveaxis(env.render().astype(int), 2, 0)
        goals.append((green > red + 20) & (green > blue + 20))
        boxes.append(int(((red > 200) & (blue < 140)).sum()))
    assert min(goal.sum() for goal in goals) > 20
    assert (goals[0] != goals[1]).any() and (goals[1] != goals[2]).any()
    assert max(boxes) < 1.06 * min(boxes)


def test_people_see_episodes_in_a_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("viser")
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda url: bool(opened.append(url)) or True)
    env = gymnasium.make(FEW[0], render_mode="human", **SMALL)
    assert not opened  # not before there is something to see
    env.reset(seed=0)
    for _ in range(2):
        env.step(env.action_space.sample())
    inner = env.unwrapped
    viewer = inner._window._viewer
    assert opened == [viewer.url] and viewer.url.startswith("http://127.0.0.1")
    assert np.array_equal(viewer._frame.q, inner.q)
    assert np.array_equal(viewer._goal, inner._players.goals.q[0])
    assert env.render() is None
    other = pickle.loads(pickle.dumps(inner))
    assert np.array_equal(other.q, inner.q) and other._window._viewer is None
    env.close()
    env.close()
    assert inner._window._viewer is None


# ---------------------------------------------------------------- samplers


@pytest.mark.parametrize(
    ("system", "task"),
    [
        ("planar_pushing", "move_back"),
        ("planar_hand", "half_turn"),
        ("allegro_sphere", "half_turn"),
    ],
)
def test_samplers_take_their_choice_as_numbers(system: str, task: str) -> None:
    given = systems.load(system).tasks[task]
    sampler, model, rng = given.sampler, given.model, np.random.default_rng(0)
    assert isinstance(sampler, samplers.ParametricSampler)
    x = rng.uniform(-1.0, 1.0, (12, sampler.parameters))
    q = np.repeat(given.start[None], 12, axis=0)
    found, good = samplers.placed(sampler, model, q, x)
    assert good.sum() >= 3
    for here, numbers, grasp, is_good in zip(q, x, found, good):
        alone = sampler.place(model, here, numbers)
        assert (alone is not None) == is_good
        assert np.array_equal(grasp, here if alone is None else alone)
        if is_good:
            robot = np.setdiff1d(np.arange(model.nq), given.space.q)
            assert np.array_equal(np.delete(grasp, robot), here[given.space.q])
            contacts = model.collide(grasp, 0.0)
            moved = np.isin(contacts["body_a"], model.geom_body) & (contacts["dist"] < -1e-3)
            assert not moved.any()


def test_poses_of_many_configurations() -> None:
    for scene in (scenes.planar_hand(), scenes.pendulum()):
        rng = np.random.default_rng(0)
        q = np.array([scene.sample(rng)[0] for _ in range(6)]).reshape(2, 3, -1)
        pos, rot = qdsim.body_poses(scene.model, q, threads=2)
        for i in np.ndindex(2, 3):
            p, r = scene.model.body_poses(q[i])
            assert np.array_equal(pos[i], p) and np.array_equal(rot[i], r)
        with pytest.raises(ValueError, match=r"^q: sample \[1, 0\]: element 0 is nan"):
            qdsim.body_poses(scene.model, np.where(np.arange(2)[:, None, None] == 1, np.nan, q))


# ---------------------------------------------------------------- policies


def test_policies_as_files(tmp_path) -> None:
    rng = np.random.default_rng(0)
    weights = [
        (rng.standard_normal((5, 4)), rng.standard_normal(4)),
        (rng.standard_normal((4, 2)), np.zeros(2)),
    ]
    policy = Policy("qdsim/PlanarPushing-v0", weights, rng.standard_normal(5), np.ones(5))
    policy.save(tmp_path / "policy.npz")
    again = Policy.load(tmp_path / "policy.npz")
    seen = rng.standard_normal((3, 5))
    assert np.array_equal(policy(seen), again(seen)) and again.id == policy.id
    assert np.abs(policy(seen)).max() <= 1.0
    with pytest.raises(ValueError, match=r"^policy: expected 5 numbers"):
        policy(seen[:, :4])
    assert again.options == {}
    # options of the environment stand in the file
    options = {
        "scale": 0.2,
        "contacts": ("rigid", MujocoContacts(cone="elliptic", solref=(0.005, 1.0))),
        "dynamics": DynamicOptions(h=0.01, friction="cone"),
        "randomize": {"pair_friction": (0.7, 1.3), "position_noise": Range(0.0, np.float64(1e-3))},
    }
    Policy(policy.id, weights, np.zeros(5), np.ones(5), options=options).save(tmp_path / "own.npz")
    found = published(policy.id, **Policy.load(tmp_path / "own.npz").options)[1]
    wanted = published(policy.id, **options)[1]
    assert found.contacts == wanted.contacts and found.dynamics == wanted.dynamics
    assert found.scale == 0.2 and found.randomize["position_noise"].high == 1e-3
    assert tuple(found.randomize["pair_friction"]) == (0.7, 1.3)
    with pytest.raises(TypeError, match=r"^scale: "):
        Policy(policy.id, weights, np.zeros(5), np.ones(5), options={"scale": "far"})
    with np.load(tmp_path / "policy.npz") as file:
        arrays = {name: file[name] for name in file if name != "options"}
    for text in ("{", "[]", '{"scale": -1.0}', '{"size": 1}', '{"contacts": {"kind": "Range"}}'):
        name = f"text{len(text)}"
        np.savez(tmp_path / f"{name}.npz", **arrays, options=np.array(text))
        with pytest.raises(ValueError, match=rf"{name}\.npz: no policy"):
            Policy.load(tmp_path / f"{name}.npz")
    # of two choices the likelier one, whatever the other is
    bias = np.array([0.0, 1.0, 9.0, 9.0, 0.25, -0.5])
    two = Policy(policy.id, [(np.zeros((5, 6)), bias)], np.zeros(5), np.ones(5), choices=2)
    two.save(tmp_path / "two.npz")
    assert np.array_equal(Policy.load(tmp_path / "two.npz")(seen), np.tile([0.25, -0.5], (3, 1)))
    odd = Policy(policy.id, [(np.zeros((5, 5)), np.zeros(5))], np.zeros(5), np.ones(5), choices=2)
    odd.save(tmp_path / "odd.npz")
    (tmp_path / "bad.npz").write_bytes((tmp_path / "policy.npz").read_bytes()[:200])
    np.savez(tmp_path / "other.npz", mean=np.zeros(3))
    wrong = Policy(policy.id, weights[:1], np.zeros(4), np.ones(4))
    wrong.save(tmp_path / "wrong.npz")
    ends, five = np.zeros(4), np.ones(5)
    Policy(policy.id, [(np.full((5, 4), np.nan), ends)], five, five).save(tmp_path / "nan.npz")
    Policy(policy.id, [(np.zeros((5, 4)), ends)], five, 0.0 * five).save(tmp_path / "flat.npz")
    for name in ("bad", "other", "wrong", "odd", "nan", "flat"):
        with pytest.raises(ValueError, match=rf"{name}\.npz: no policy"):
            Policy.load(tmp_path / f"{name}.npz")


def test_seeds_that_are_none() -> None:
    task, options = published(FEW[0], **SMALL)
    env, many = TaskEnv(task, options), TaskVectorEnv(task, 3, options)
    for seed in (-1, 2**64):
        with pytest.raises(ValueError, match="seed: expected an integer"):
            env.reset(seed=seed)
        with pytest.raises(ValueError, match="seed: expected an integer"):
            many.reset(seed=seed)
        with pytest.raises(ValueError, match="seed: element 1: expected an integer"):
            many.reset(seed=[0, seed, 1])
    with pytest.raises(ValueError, match="seed: expected an integer"):
        many.reset(seed=2**64 - 1)  # the last environments would have none
    for seed in (1.5, "a"):
        with pytest.raises(TypeError, match="seed: expected an integer"):
            env.reset(seed=seed)
        with pytest.raises(TypeError, match="seed: expected an integer"):
            many.reset(seed=seed)
    first, _ = many.reset(seed=2**64 - 3)
    each, _ = many.reset(seed=(2**64 - 3, None, 2**64 - 1))
    assert np.array_equal(first[[0, 2]], each[[0, 2]])


def test_actions_of_different_lengths() -> None:
    many = vector(FEW[0], 2)
    many.reset(seed=0)
    with pytest.raises(
        ValueError, match=r"action: expected shape \(2, \d\), got rows of different"
    ):
        many.step([[0.0, 0.0], [0.0]])


@pytest.mark.filterwarnings("ignore:goal. outside")
def test_a_goal_that_no_distance_reaches() -> None:
    """Its reward was NaN."""
    task, options = published(FEW[0], **SMALL)
    goal = np.array(task.goal)
    goal[task.space.q[0]] = 1e300
    with pytest.raises(ValueError, match="task: expected a goal within"):
        TaskEnv(task.replace(goal=goal), options)


def test_what_a_policy_does_not_take() -> None:
    policy = Policy("x", [(np.ones((3, 2)), np.zeros(2))], np.zeros(3), np.ones(3))
    assert np.array_equal(policy([1, 1, 1]), [1.0, 1.0])
    assert policy(np.zeros((0, 3))).shape == (0, 2)
    with pytest.raises(ValueError, match=r"observation: element \[1\] is nan"):
        policy([0.0, np.nan, 0.0])
    with pytest.raises(TypeError, match="observation: "):
        policy("abc")
    with pytest.raises(ValueError, match="policy: expected 3 numbers"):
        policy(np.zeros((2, 4)))


def test_a_mode_that_is_none() -> None:
    with pytest.raises(ValueError, match=r"autoreset_mode: .*SameStep"):
        vector(FEW[0], 2, mode="same")
