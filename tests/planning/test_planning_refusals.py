"""Wrong arguments of everything public in planning: an error that names the argument, or a result; nothing else."""

import dataclasses
import os

import numpy as np
import pytest

import qdsim
from qdsim import planning
from qdsim.planning import pictures

SCENE = """
<mujoco>
  <option gravity="0 0 0"/>
  <worldbody>
    <body name="bridge"><joint name="x" type="slide" axis="1 0 0" range="-1 1"/>
      <inertial pos="0 0 0" mass="0.5" diaginertia="1e-3 1e-3 1e-3"/>
      <body name="finger"><joint name="y" type="slide" axis="0 1 0" range="-1 1"/>
        <geom name="tip" type="sphere" size="0.04" mass="0.2" friction="0.5"/></body></body>
    <body name="tray" pos="0.3 0 0">
      <joint name="tx" type="slide" axis="1 0 0"/><joint name="ty" type="slide" axis="0 1 0"/>
      <joint name="turn" type="hinge" axis="0 0 1"/>
      <geom type="box" size="0.2 0.12 0.05" mass="1" friction="0.5"/></body>
  </worldbody>
  <actuator>
    <position name="x" joint="x" kp="200"/><position name="y" joint="y" kp="200"/>
  </actuator>
</mujoco>"""

WRONG = [
    None, "x", 1j, float("nan"), float("inf"), -1.0, -1, 0, True, [], [1], [[1.0]], {}, object(),
    np.zeros(0), np.full(5, np.nan), np.zeros((5, 1)), ["a"] * 5, [None] * 5, np.zeros(5, complex),
    1.5, "nan", -3, np.array(2.0),
]  # fmt: skip

MODEL = qdsim.load(SCENE)
Q = np.array(MODEL.default_q)
STEP = qdsim.Options(h=0.1, margin=0.1)
TASK = planning.Task(
    name="push",
    model=MODEL,
    options=STEP,
    start=Q,
    goal=Q + [0.0, 0.0, 0.1, 0.0, 0.0],
    object="tray",
    lower=[-0.3, -0.3, -1.0],
    upper=[0.3, 0.3, 1.0],
    sampler=planning.SurfaceSampler("tray"),
    length=0.2,
)
SEARCH = planning.RRTOptions(step=0.15, max_nodes=40)
SHORT = planning.ImpcOptions(horizon=3, iterations=1, radii=(0.05,))
TREE = planning.rrt(TASK, SEARCH)
PLAN = TREE.plan()
REPLAY = PLAN.replay(MODEL)


def sampled(kind):
    """A sampler that is made and asked for a grasp."""
    return lambda **given: kind(**given)(MODEL, Q, np.random.default_rng(0))


def transferred(**given):
    return planning.transfer(**given)


def replayed(model):
    return PLAN.replay(model)


TASK_FIELDS = {f.name: getattr(TASK, f.name) for f in dataclasses.fields(planning.Task) if f.init}
TWO = {"model": MODEL, "object": "tray"}
CLOSING = {"object": "tray", "basis": np.eye(2), "mean": np.zeros(2), "spread": np.ones(2)}
FACE = {
    "object": "tray",
    "half": (0.2, 0.12, 0.05),
    "height": 0.0,
    "body": "finger",
    "tip": (0, 0, 0),
    "radius": 0.04,
    "posture": np.zeros(2),
}
REACH = {"model": MODEL, "q": Q, "body": "finger", "point": [0, 0, 0], "target": [0.1, 0.1, 0.0]}
SQUARES = {"B": np.eye(2), "target": np.ones(2), "lower": -np.ones(2), "upper": np.ones(2)}
STROKES = {"task": TASK, "options": planning.GaitOptions(strokes=1, candidates=1)}
REFINE = planning.RefineOptions(h=0.1, most_steps=5, impc=SHORT)
CALLS = {
    "Task": (planning.Task, TASK_FIELDS, ()),
    "rrt": (
        planning.rrt,
        {"task": TASK, "options": SEARCH},
        ("rng", "progress", "checkpoint_seconds"),
    ),
    "impc": (planning.impc, {"task": TASK, "options": SHORT}, ("rng", "u")),
    "Mpc": (
        planning.Mpc,
        {"task": TASK, "options": SHORT},
        ("rng", "iterations", "first_iterations"),
    ),
    "act": (planning.Mpc(TASK, SHORT).act, {"q": Q}, ("reference",)),
    "refine": (planning.refine, {"plan": PLAN, "task": TASK, "options": REFINE}, ()),
    "shorten": (planning.shorten, {"plan": PLAN, "space": TASK.space}, ()),
    "close_grasp": (
        planning.close_grasp,
        {"model": MODEL, "q": Q, "direction": [1.0, 0.0]},
        ("reach", "resolution", "tolerance", "gap"),
    ),
    "connect": (planning.connect, {"model": MODEL, "q_from": Q, "q_to": Q}, ("options", "rng")),
    "connect_segments": (
        planning.connect_segments,
        {"plan": PLAN, "model": MODEL, "options": planning.MotionOptions(time_limit=0.1)},
        ("rng",),
    ),
    "drop": (planning.drop, {**TWO, "q": Q, "options": STEP}, ()),
    "is_stable": (planning.is_stable, {**TWO, "options": STEP, "q": Q}, ()),
    "force_closure": (planning.force_closure, {**TWO, "q": Q}, ("reach", "length", "tolerance")),
    "holding_command": (
        planning.holding_command,
        {"model": MODEL, "q": Q},
        ("tau", "reach", "tolerance"),
    ),
    "reach_point": (
        planning.reach_point,
        REACH,
        (
            "axis",
            "direction",
            "actuators",
            "length",
            "tolerance",
            "angle_tolerance",
            "iteration_limit",
        ),
    ),
    "bounded_least_squares": (
        planning.bounded_least_squares,
        SQUARES,
        ("regularization", "first_guess"),
    ),
    "distance_to_goal": (planning.distance_to_goal, {"tree": TREE}, ()),
    "packing_ratio": (planning.packing_ratio, {"tree": TREE}, ("eta", "samples", "rng")),
    "paced": (planning.paced, {"task": TASK, "planner": SEARCH}, ("options", "rng")),
    "gentle": (planning.gentle, {"options": SEARCH}, ()),
    "second_order": (planning.second_order, {"model": MODEL, "object_name": "tray"}, ("options",)),
    "transfer": (
        transferred,
        {
            "plan": PLAN,
            "model": MODEL,
            "options": planning.TransferOptions(timestep=0.002, speed=5.0),
        },
        ("controller", "simulator", "planner"),
    ),
    "ObjectSpace": (planning.ObjectSpace, {"model": MODEL, "body": "tray"}, ()),
    "Stabilizer": (
        planning.Stabilizer,
        {**TWO, "options": STEP.replace(kappa=100.0)},
        ("position_weight", "rotation_weight", "command_weight", "reach"),
    ),
    "Grip": (planning.Grip, {**TWO, "length": 0.1}, ("options",)),
    "gait": (planning.gait, STROKES, ("rng",)),
    "StrokePlanner": (planning.StrokePlanner, STROKES, ("rng",)),
    "SurfaceSampler": (
        sampled(planning.SurfaceSampler),
        {"object": "tray"},
        ("tips", "contacts", "close", "gap", "reach", "near", "draws"),
    ),
    "ClosingSampler": (
        sampled(planning.ClosingSampler),
        CLOSING,
        ("opened", "reach", "place", "contacts", "near", "gap", "extra", "draws"),
    ),
    "BoxFaceSampler": (
        sampled(planning.BoxFaceSampler),
        FACE,
        ("top", "gap", "angle_tolerance", "draws"),
    ),
    "BoxSideSampler": (
        sampled(planning.BoxSideSampler),
        {"object": "tray", "pusher": "finger", "reach": 0.3},
        (),
    ),
    "replay": (replayed, {"model": MODEL}, ()),
    "key_frames": (
        pictures.key_frames,
        {"plan": PLAN, "replay": REPLAY, "model": MODEL},
        ("most",),
    ),
    "scene_of": (pictures.scene_of, TWO, ()),
}
for kind in (
    planning.RRTOptions,
    planning.ImpcOptions,
    planning.MotionOptions,
    planning.RefineOptions,
    planning.TransferOptions,
    planning.GripOptions,
    planning.GaitOptions,
    planning.TrackingCost,
):
    CALLS[kind.__name__] = (kind, {}, tuple(f.name for f in dataclasses.fields(kind)))

# Other names under which messages speak of an argument.
ALIASES = {
    "B": ("target",),
    "basis": ("mean",),
    "body": ("object",),
    "object_name": ("object",),
    "pusher": ("joint",),
    "reach": ("pusher",),
}


@pytest.mark.short_cases(4)
@pytest.mark.filterwarnings("error::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("name", CALLS)
def test_wrong_arguments_are_named(name):
    function, good, optional = CALLS[name]
    refused = 0
    for argument in (*good, *optional):
        for wrong in WRONG:
            try:
                function(**{**good, argument: wrong})
            except (TypeError, ValueError, LookupError) as error:
                said = f"{error}"
                assert any(
                    word in said for word in (argument, *ALIASES.get(argument, ()), "named '")
                ), f"{name}({argument}={wrong!r}): {type(error).__name__}: {said}"
                refused += 1
            except (qdsim.SolverError, planning.EquilibriumError, planning.MotionError):
                pass
    assert refused > 0


@pytest.mark.parametrize("path", [1, True, b"plan.npz", None, 1.5, ""])
def test_paths_are_paths(path, tmp_path):
    """Integers would be descriptors of open files: a plan saved to 1 would close the standard output."""
    for call in (
        lambda: PLAN.save(path),
        lambda: planning.Plan.load(path),
        lambda: TREE.save(path),
        lambda: planning.Tree.load(path, TASK),
        lambda: pictures.draw_key_frames(PLAN, REPLAY, MODEL, path),
        lambda: pictures.draw_tree(TREE, path),
    ):
        with pytest.raises(TypeError, match="path: expected the path of a file"):
            call()
    if path is not None:
        with pytest.raises(TypeError, match="checkpoint: expected the path of a file"):
            planning.rrt(TASK, SEARCH, checkpoint=path)
        with pytest.raises(TypeError, match="checkpoint: expected the path of a file"):
            planning.refine(PLAN, TASK, REFINE, checkpoint=path)
    for paths in (path, "movie.gif", [path]):
        with pytest.raises(TypeError, match="paths: expected"):
            pictures.write_movie(PLAN, REPLAY, MODEL, paths)
    with pytest.raises(ValueError, match=r"paths: expected \.gif, \.mp4 or \.webm"):
        pictures.write_movie(PLAN, REPLAY, MODEL, [tmp_path / "movie.avi"])
    assert not os.listdir(tmp_path)


def test_a_picture_wants_the_replay_of_its_plan():
    other = dataclasses.replace(PLAN, segments=PLAN.segments[:1], motions=())
    if len(PLAN.segments) == 1:
        other = dataclasses.replace(PLAN, segments=(PLAN.segments[0].cut(1),), motions=())
    with pytest.raises(ValueError, match="replay: not of this plan"):
        pictures.key_frames(other, REPLAY, MODEL)


def test_crossed_bounds_of_commands_are_named():
    with pytest.raises(
        ValueError, match=r"command_lower: 0\.5 at index 1 exceeds command_upper 0\.1"
    ):
        TASK.replace(command_lower=[-1.0, 0.5], command_upper=[1.0, 0.1])


def test_goals_have_unit_quaternions():
    free = qdsim.load(
        """<mujoco><option gravity="0 0 0"/><worldbody>
        <body name="bridge"><joint name="x" type="slide" axis="1 0 0" range="-1 1"/>
          <geom type="sphere" size="0.04" mass="0.2"/></body>
        <body name="ball" pos="0.3 0 0"><freejoint name="free"/><geom type="sphere" size="0.1" mass="1"/></body>
        </worldbody><actuator><position joint="x" kp="200"/></actuator></mujoco>"""
    )
    q, box = np.array(free.default_q), np.ones(6)
    goal = q.copy()
    goal[-4:] = 0.0
    with pytest.raises(ValueError, match="goal: the quaternion at index 4 has length 0"):
        planning.Task("free", free, STEP, q, goal, "ball", -box, box)


def test_a_robot_without_actuators_is_refused():
    model = qdsim.load(
        """<mujoco><worldbody><geom type="plane" size="1 1 1"/><body name="box" pos="0 0 0.1"><freejoint/>
        <geom type="box" size="0.1 0.1 0.1" mass="1"/></body></worldbody></mujoco>"""
    )
    q, six = np.array(model.default_q), np.ones(6)
    with pytest.raises(ValueError, match="model: it has no actuators"):
        planning.Task("still", model, STEP, q, q, "box", -six, six)
    with pytest.raises(ValueError, match="model: it has no actuators"):
        planning.reach_point(model, q, "box", [0, 0, 0], [1, 0, 0])


def test_goals_where_the_object_is(tmp_path):
    """Every planner says so with a plan without steps, or one that stays."""
    there = TASK.replace(goal=TASK.start)
    tree = planning.rrt(there)
    plan = tree.plan()
    assert tree.count == 1 and plan.step_count == 0 and plan.check(MODEL).good
    better, reports = planning.refine(plan, there)
    assert better.step_count == 0 and better.check(MODEL).good and len(reports) == 1
    strokes = planning.gait(there, planning.GaitOptions(strokes=1, candidates=1))
    assert strokes.step_count == 0 and strokes.check(MODEL).good
    for found in (plan, better, strokes):
        found.save(tmp_path / "plan.npz")
        assert planning.Plan.load(tmp_path / "plan.npz").replay(MODEL).identical
        assert planning.transfer(found, MODEL).reached
    result = planning.impc(there)
    assert result.reached and result.plan().check(MODEL).good


@pytest.mark.parametrize(
    ("actuators", "words"),
    [
        ('<motor name="m" joint="x" gear="30"/>', "actuator 'm' is no position actuator"),
        (
            '<position joint="x" kp="30"/><velocity name="m" joint="x" kv="3"/>',
            "actuator 'm' is no position actuator",
        ),
        (
            '<position joint="x" kp="30"/><position name="m" joint="x" kp="3"/>',
            "actuator 'm' shares its joint with another one",
        ),
    ],
)
def test_robots_that_planners_cannot_command(actuators: str, words: str) -> None:
    model = qdsim.load(
        '<mujoco><worldbody><geom type="plane" size="1 1 .1"/><body name="box" pos="0 0 .1"><freejoint/>'
        '<geom type="box" size=".1 .1 .1"/></body><body pos="-.3 0 .1"><joint name="x" type="slide" axis="1 0 0"/>'
        f'<geom type="sphere" size=".1"/></body></worldbody><actuator>{actuators}</actuator></mujoco>'
    )
    with pytest.raises(ValueError, match=words):
        qdsim.planning.Task(
            "push", model, qdsim.Options(), model.default_q, model.default_q, "box",
            -np.ones(6), np.ones(6),
        )  # fmt: skip
    with pytest.raises(ValueError, match=words):
        qdsim.planning.holding_command(model, model.default_q)
