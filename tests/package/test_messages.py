"""What people read: representations, help, warnings about what is hardly meant, bars; and what
travels to other processes."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import sys
import types
import warnings
from typing import Any

import numpy as np
import pytest

import qdsim
from qdsim import planning, systems
from qdsim.planning.drawing.pictures import _how_grasps_change

HAND = systems.load("planar_hand")
TASK = HAND.tasks["half_turn"]


# -------------------------------------------------------------------- what is hardly meant


@pytest.mark.short_cases(6)
@pytest.mark.parametrize("name", systems.NAMES)
def test_published_tasks_give_no_warning_and_systems_travel(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        system = systems.load(name)
        again = pickle.loads(pickle.dumps(system))
    assert repr(again) == repr(system) and list(again.tasks) == list(system.tasks)
    q, u = system.start
    first = qdsim.step(system.model, q, u, system.options)
    second = qdsim.step(again.model, *again.start, again.options)
    assert first.q_next.tobytes() == second.q_next.tobytes()
    for task in again.tasks.values():
        assert task.model is again.model  # one model, as before
    deep = copy.deepcopy(system)
    assert deep.model is system.model


@pytest.mark.short_cases(5)
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", systems.TASK_NAMES)
def test_goals_in_the_box_give_no_warning_and_goals_outside_do(name: str, seed: int) -> None:
    task = next(iter(systems.load(name).tasks.values()))
    rng = np.random.default_rng(seed)
    inside = rng.uniform(task.lower, task.upper)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings(
            "ignore", "goal: .* penetrate"
        )  # a plate's corner in the ground, say
        task.replace(goal=task.with_object(task.start, inside))
    i = int(rng.integers(task.space.size))
    slack = task.rotation_tolerance if task.space.rotation[i] else task.position_tolerance
    wide = np.where(
        task.space.rotation, 0.5, 0.0
    )  # small turns, whose coordinates are what they seem
    outside = np.clip(inside, -wide, wide) * task.space.rotation + inside * ~task.space.rotation
    outside[i] = task.upper[i] + 3.0 * slack + (0.3 if not task.space.rotation[i] else 0.0)
    if task.space.rotation[i] and outside[i] > 3.0 and task.space.rotation_vectors:
        return  # beyond half a turn it is another turn
    with pytest.warns(UserWarning, match="goal: outside the box"):
        task.replace(goal=task.with_object(task.start, outside))


@pytest.mark.parametrize("degrees", [30.0, -45.0, 90.0, 180.0, 270.0])
def test_angles_in_degrees_give_a_warning(degrees: float) -> None:
    goal = TASK.start.copy()
    goal[TASK.space.q[2]] = degrees
    with pytest.warns(UserWarning, match=r"goal: .* looks like degrees") as said:
        TASK.replace(goal=goal)
    assert all(warning.filename == __file__ for warning in said)  # where the mistake is
    ends = np.array(TASK.upper)
    ends[2] = abs(degrees)
    with pytest.warns(UserWarning, match=r"upper: .* looks like degrees"):
        TASK.replace(upper=ends)
    with pytest.warns(UserWarning, match=r"rotation_tolerance: .* looks like degrees"):
        TASK.replace(rotation_tolerance=abs(degrees))


WALLED = """<mujoco><worldbody><geom type="plane" size="1 1 1"/>
<geom type="box" size="0.05 0.5 0.2" pos="0.5 0 0.2"/>
<body name="box" pos="0 0 0.051"><freejoint/><geom type="box" size="0.05 0.05 0.05" mass="1"/></body>
<body name="pusher" pos="-0.2 0 0.05"><joint name="x" type="slide" axis="1 0 0"/>
<geom type="sphere" size="0.02" mass="0.1"/></body></worldbody>
<actuator><position name="x" joint="x" kp="100"/></actuator></mujoco>"""


@pytest.mark.parametrize("depth", [-0.01, 0.004, 0.03])
def test_a_goal_inside_of_a_wall_gives_a_warning(depth: float) -> None:
    """Its face is 0.45 m from the origin; only what the tolerance of 5 mm cannot bring out of it is told."""
    model = qdsim.load(WALLED)
    goal = np.array(model.default_q)
    goal[model.slice_q("box").start] = 0.4 + depth
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        planning.Task(
            name="push",
            model=model,
            options=qdsim.Options(h=0.1),
            start=model.default_q,
            goal=goal,
            object="box",
            lower=np.full(6, -0.5),
            upper=np.full(6, 0.5),
            position_tolerance=5e-3,
        )
    inside = [w for w in said if "penetrate 'world'" in str(w.message)]
    assert len(inside) == (depth > 5e-3)
    assert all(f"{depth:.3g} m" in str(w.message) and w.filename == __file__ for w in inside)


@pytest.mark.short_cases(2)
@pytest.mark.parametrize("name", ["planar_hand", "allegro_sphere", "iiwa_box_push"])
@pytest.mark.parametrize("size", [1e-6, 1e-3, 1.0])
def test_a_sampler_that_moves_the_object_is_an_error_at_once(name: str, size: float) -> None:
    task = next(iter(systems.load(name).tasks.values()))

    def pushes(model: qdsim.Model, q: Any, rng: np.random.Generator) -> Any:
        v = np.zeros(model.nv)
        v[task.space.v] = size * rng.standard_normal(task.space.size)
        return model.integrate(q, v)

    odd = task.replace(sampler=pushes)
    with pytest.raises(ValueError, match="sampler: it moved"):
        planning.rrt(odd, planning.RRTOptions(max_nodes=100), rng=0)
    with pytest.raises(ValueError, match="sampler: it moved"):
        planning.StrokePlanner(odd).candidates(task.start)


@pytest.mark.parametrize("answer", [np.zeros(3), "grasp", np.full(7, np.nan)])
def test_a_sampler_that_returns_no_configuration_is_an_error_at_once(answer: Any) -> None:
    odd = TASK.replace(sampler=lambda model, q, rng: answer)
    with pytest.raises((TypeError, ValueError), match="sampler: its configuration"):
        planning.rrt(odd, planning.RRTOptions(max_nodes=100), rng=0)


def test_captions_tell_which_regrasps_have_a_motion() -> None:
    plan = planning.rrt(TASK, rng=0).plan()
    plan = dataclasses.replace(plan, segments=plan.segments[:4])
    count = len(plan.regrasps)
    assert count == 3
    assert _how_grasps_change(plan) == "by contact sampling, without input"
    motions = [
        planning.Motion(np.array(ends), np.array([0.0, 1.0]), "line") for ends in plan.regrasps
    ]
    connected = dataclasses.replace(plan, motions=tuple(motions))
    assert _how_grasps_change(connected) == "by a collision-free motion"
    for k in range(count):
        motions = tuple(None if i == k else m for i, m in enumerate(connected.motions))
        said = _how_grasps_change(dataclasses.replace(connected, motions=motions))
        assert f"regrasp {k + 1}: by contact sampling" in said
    none = dataclasses.replace(connected, motions=(None,) * count)
    assert "collision-free" not in _how_grasps_change(none)


# -------------------------------------------------------------------- what is said


def test_representations_say_what_counts() -> None:
    plan = planning.rrt(TASK, rng=0).plan()
    verdict = plan.check(HAND.model)
    assert verdict.good and repr(verdict).startswith("Verdict(good;")
    bad = dataclasses.replace(plan, position_tolerance=1e-9).check(HAND.model)
    assert repr(bad).startswith("Verdict(not good: the object ends")
    for system in (HAND, systems.load("allegro_door")):
        for task in system.tasks.values():
            text = repr(task)
            assert len(text) < 300 and "array" not in text
            assert task.name in text and task.object in text and system.model.name in text
    assert HAND.model.name == HAND.model.description.name == "planar_hand"


@pytest.mark.parametrize("name", ["planar_hand", "allegro_sphere", "rope"])
def test_a_wrong_name_of_a_task_lists_the_right_ones(name: str) -> None:
    tasks = systems.load(name).tasks
    with pytest.raises(KeyError) as error:
        tasks["nonsense"]
    assert all(repr(known) in str(error.value) for known in tasks)
    assert "nonsense" in str(error.value)
    assert tasks.get("nonsense") is None and "nonsense" not in tasks


class Bar:
    """Stands in for tqdm."""

    made: list[Bar]

    def __init__(self, total: int | None, desc: str, **_: Any) -> None:
        self.total, self.desc, self.n, self.text = total, desc, 0, ""
        Bar.made.append(self)

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_: object) -> None: ...

    def update(self, count: int) -> None:
        self.n += count

    def set_postfix_str(self, text: str, refresh: bool) -> None:
        self.text = text


@pytest.mark.long
def test_bars_show_how_far_everything_has_come(monkeypatch: pytest.MonkeyPatch) -> None:
    Bar.made = []
    monkeypatch.setitem(sys.modules, "tqdm", types.SimpleNamespace(tqdm=Bar))  # type: ignore[arg-type]
    plan = planning.rrt(TASK, rng=0).plan()
    plan = dataclasses.replace(plan, segments=tuple(s.cut(2) for s in plan.segments[:2]))
    impc = planning.ImpcOptions(iterations=2, horizon=4, threads=1)
    fast = planning.TransferOptions(speed=3.0, settle=0.0, timestep=2e-3)
    refine = planning.RefineOptions(impc=impc, most_steps=4)

    def run(progress: bool) -> tuple[Any, ...]:
        return (
            planning.rrt(TASK, planning.RRTOptions(max_nodes=20), progress=progress),
            planning.impc(TASK, impc, progress=progress),
            planning.refine(plan, TASK, refine, progress=progress),
            planning.transfer(plan, TASK.model, fast, progress=progress),
        )

    run(False)
    assert not Bar.made
    tree, found, _, done = run(True)
    assert [bar.total for bar in Bar.made] == [20, 2, 2, 2]
    assert [bar.n for bar in Bar.made] == [tree.count, 2, 2, len(done.segments)]
    assert all(bar.desc == TASK.name and "to the goal" in bar.text for bar in Bar.made)
    assert f"{found.cost:.4g}" in Bar.made[1].text
    for call in (planning.impc, planning.refine, planning.transfer):
        arguments = (TASK,) if call is planning.impc else (plan, TASK)
        with pytest.raises(TypeError, match="progress: expected True or False"):
            call(*arguments, progress=1)  # type: ignore[operator]


# -------------------------------------------------------------------- to other processes and back


@pytest.mark.parametrize("name", ["planar_hand", "allegro_sphere", "iiwa_bimanual_box"])
@pytest.mark.parametrize("kappa", [None, 100.0])
def test_differentials_travel(name: str, kappa: float | None) -> None:
    system = systems.load(name)
    model, (q, u) = system.model, system.start
    options = system.options.replace(kappa=kappa)
    rng = np.random.default_rng(0)
    tau, q = 1e-3 * rng.standard_normal(model.nv), np.array(q)
    wrench = {model.body_names[1]: 1e-3 * rng.standard_normal(6)}
    warm = qdsim.step(model, q, u, options)
    given = qdsim.differentiate(model, q, u, options, tau=tau, wrench=wrench, warm_start=warm)
    c = rng.standard_normal((2, model.nv))
    wrt = ("q", "u", "tau", "wrench", "body_mass", "pair_friction")
    wanted = given.vjp(c, wrt=wrt)
    travelled = pickle.dumps(given)
    q[:] = 0.0  # what the caller does with its arrays later does not count
    for other in (pickle.loads(travelled), copy.copy(given), copy.deepcopy(given)):
        assert other.step.q_next.tobytes() == given.step.q_next.tobytes()
        found = other.vjp(c, wrt=wrt)
        assert all(found[key].tobytes() == wanted[key].tobytes() for key in wrt)


def test_what_planners_make_travels() -> None:
    tree = planning.rrt(TASK, rng=0)
    plan = tree.plan()
    impc = planning.impc(TASK, planning.ImpcOptions(iterations=1, horizon=4, threads=1))
    again, same, found = pickle.loads(pickle.dumps((tree, plan, impc)))
    assert again.count == tree.count and np.array_equal(again.q, tree.q)
    assert same.check(TASK.model).good
    assert found.u.tobytes() == impc.u.tobytes()
