"""Meta-World: a Sawyer arm pushes a puck, lifts a puck, and puts a peg into a hole, in that package's environments.

``pip install metaworld "mujoco<3.7"`` (its version 3.1.1 does not run with later MuJoCo). The tasks are `MT1(name,
seed=300)` with its 50 goals. An action every 12.5 ms is a displacement of the hand, at most 1 cm in each direction, and
an effort of the gripper. An episode has 500 actions (6.25 s). *Success* is the environment's own, at any action: the puck
within 5 cm of its goal (push), within 7 cm (lift), the head of the peg within 7 cm, with sideways errors counted twice.

The arm is driven by a weld of its hand to a mocap body. The model for planning has the same hand and fingers on three
slides with servos, without the arm, among the other bodies (`planning_spec`). The two fingers get one command, as in the
environment. `Arm` is the environment as a robot of two functions for ``planning.Executor``, which looks at the measured
state in every period.

*Plan*: ``planning.rrt`` and ``planning.Executor`` along its plans, with new plans where one fails. The grasps are those of
``planning.SurfaceSampler``. *Samples*: ``planning.SamplingMpc`` with qdsim's step, *MuJoCo samples* with
MuJoCo's steps of the same model, without a plan. *Scripted*: the policy that the package has for each task.

    bench_metaworld.py --cache FILE [--goals 50] [--controllers plan ...] [--cached]

``--cache FILE`` saves every episode as a line of JSON and continues from there. ``--cached`` prints the table of the
episodes in the file.
"""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Callable
from itertools import product
from typing import Any

import metaworld
import mujoco
import numpy as np
from episodes import arguments, episodes
from metaworld.policies import ENV_POLICY_MAP

import qdsim
from qdsim import planning

TASKS = {"push-v3": "obj", "pick-place-v3": "obj", "peg-insert-side-v3": "peg"}
"""The body that is moved in each."""
SEED = 300
"""Of the goals; settings were chosen with seeds 1, 100 and 200."""
PERIOD = 0.0125
SLIDES = ("x", "y", "z")
HAND = 5000.0
"""Stiffness with which the model holds the hand, N/m; the weld of the environment holds it nearly rigidly."""
FINGER, GAIN = 400.0, 25.0
"""Stiffness of a finger's servo, N/m, and factor on it by feedback of the fingers: alone they need 2.5 s to close."""
LAG = 0.1
"""Time by which hand and fingers lag behind their commands, s."""
SPEED = 0.3
"""Speed of the hand along a plan, m/s."""
SAMPLES, HORIZON, HELD = 40, 10, 8
"""Command sequences of a sampler, their control periods, and actions in a control period."""
NOISE = (0.1, 0.1, 0.1, 0.02)
"""Noise of a sampler at the end of its horizon, m."""
REACH, CHANGE = 0.3, 0.1
"""Weights of the hand's distance from a grasp of the object, and of changes of the command, in that of the object."""
DOWN = (0.5**0.5, 0.0, 0.5**0.5, 0.0)
"""Quaternion of the hand, which looks down."""
WAIT = 8
"""Number of actions before planning: a peg begins 5 mm above the table, and falls."""
TREES, NODES = 8, 200
"""Largest number of trees until a plan passes its check, and of the nodes of each."""
ROOM = np.array([0.05, 0.05, 0.02, 0.3, 0.3, 0.3])
"""Room around the way to the goal, m and rad."""
BEFORE = 0.16
"""Distance of the peg from its goal at which its head is before the hole, m."""
INSERT = 0.1
"""Distance from the middle of the peg to its head, m."""


def planning_spec(world: Any) -> Any:
    """Return the hand on three slides with servos, without the arm, among the environment's other bodies.

    Args:
        world: The environment, reset: the slides are zero where the hand is now.
    """
    theirs = mujoco.MjSpec.from_file(world.model_name)
    for geom in list(theirs.geoms):
        if geom.type == mujoco.mjtGeom.mjGEOM_MESH or not (geom.contype or geom.conaffinity):
            theirs.delete(geom)
        else:
            geom.material = ""
    for part in (
        theirs.meshes, theirs.materials, theirs.textures, theirs.actuators, theirs.equalities,
    ):  # fmt: skip
        for one in list(part):
            theirs.delete(one)
    made = mujoco.MjSpec()
    made.option.timestep, made.option.cone = world.model.opt.timestep, world.model.opt.cone
    carrier = made.worldbody.add_body(
        name="carrier", pos=world.data.body("hand").xpos, mass=1.0, inertia=[0.01] * 3
    )
    for name, axis, *limits in zip(
        SLIDES,
        np.eye(3),
        *(end - world.data.mocap_pos[0] for end in (world.mocap_low, world.mocap_high)),
    ):
        slide = mujoco.mjtJoint.mjJNT_SLIDE
        carrier.add_joint(name=name, type=slide, axis=axis, range=limits, limited=True)
        servo(made, name, HAND)
    gripper = theirs.body("hand")
    gripper.pos, gripper.quat = [0.0, 0.0, 0.0], DOWN
    carrier.add_frame().attach_body(gripper, "", "")
    for body in theirs.worldbody.bodies:
        if body.name not in ("base", "mocap"):
            body.pos = world.model.body(body.name).pos
            made.worldbody.add_frame().attach_body(body, "", "")
    made.add_equality(
        type=mujoco.mjtEq.mjEQ_JOINT, objtype=mujoco.mjtObj.mjOBJ_JOINT, name1="l_close",
        name2="r_close", data=[0.0, -1.0] + [0.0] * 9,
    )  # fmt: skip
    servo(made, "r_close", 2.0 * GAIN * FINGER, 2.0 * FINGER)
    return made


def servo(spec: Any, joint: str, stiffness: float, force: float = 0.0) -> None:
    """Add a position servo; a force limit of 0 is none."""
    made = spec.add_actuator(name=joint, target=joint, trntype=mujoco.mjtTrn.mjTRN_JOINT)
    made.set_to_position(kp=stiffness)
    if force:
        made.forcelimited, made.forcerange = True, (-force, force)


Controller = Callable[["Arm", str, int], str]


class Over(Exception):
    """The episode is over."""


class Arm:
    """An environment as a robot of two functions, for the model of `planning_spec`.

    The fingers of the environment differ in their places by what they touch. The middle between them counts as the place
    of the hand.

    Attributes:
        reached: Whether the environment told of success.
        steps: Number of actions so far.
    """

    def __init__(self, world: Any) -> None:
        self.world = world
        self.hand = np.array(world.data.body("hand").xpos)
        self.mocap = np.array(world.data.mocap_pos[0])
        joints = [world.model.joint(name) for name in ("r_close", "l_close")]
        self.fingers = [int(joint.qposadr[0]) for joint in joints]
        self.dofs = [int(joint.dofadr[0]) for joint in joints]
        self.reached, self.steps = False, 0

    def read(self) -> tuple[Any, Any]:
        data, velocity = self.world.data, np.zeros(6)
        body = data.body("hand").id
        mujoco.mj_objectVelocity(
            self.world.model, data, mujoco.mjtObj.mjOBJ_XBODY, body, velocity, 0
        )
        q = self._even(data.body("hand").xpos - self.hand, data.qpos[self.fingers])
        v = self._even(velocity[3:], data.qvel[self.dofs])
        return np.append(q, data.qpos[-7:]), np.append(v, data.qvel[-6:])

    def _even(self, hand: Any, fingers: Any) -> Any:
        """Return hand and fingers (5,) with the fingers at equal distances from the middle."""
        right, left = fingers
        middle, width = 0.5 * (right + left), 0.5 * (right - left)
        return np.array([hand[0], hand[1] + middle, hand[2], width, -width])

    def send(self, u: Any) -> None:
        """Take one action towards the command (4,): the place of the hand, and that of its fingers."""
        world, (right, left) = self.world, self.world.data.qpos[self.fingers]
        way = (self.mocap + u[:3] - world.data.mocap_pos[0]) / world.action_scale
        width = 0.5 * (right - left)
        self.act(np.append(way, width + GAIN * (u[3] - width)))

    def act(self, action: Any) -> Any:
        """Take one action (4,) and return the observation.

        Raises:
            Over: The episode has ended, with or without success.
        """
        if self.reached or self.steps == self.world.max_path_length:
            raise Over
        observed, _, _, _, told = self.world.step(np.clip(action, -1.0, 1.0))
        self.steps += 1
        self.reached = bool(told["success"])
        return observed


def task_of(arm: Arm, name: str) -> planning.Task:
    """Return the task of an environment; a puck may turn. Subgoals lie around the way to the goal."""
    thing, world = TASKS[name], arm.world
    model = qdsim.load(planning_spec(world))
    start = np.asarray(model.clamp_to_limits(arm.read()[0]))
    goal = start.copy()
    goal[5:8] = world._target_pos + np.array([INSERT * (thing == "peg"), 0.0, 0.0])
    way = np.append(goal[5:8] - start[5:8], np.zeros(3))
    return planning.Task(
        name=name,
        model=model,
        options=qdsim.Options(h=0.1, margin=0.05),
        start=start,
        goal=goal,
        object=thing,
        lower=np.minimum(way, 0.0) - ROOM,
        upper=np.maximum(way, 0.0) + ROOM,
        sampler=planning.SurfaceSampler(thing, contacts=2, carry=True),
        position_tolerance=0.01 if thing == "peg" else 0.03,
        rotation_tolerance=0.1,
        goal_region=None if thing == "peg" else planning.GoalRegion(rotation="any"),
        start_tolerance=1e-3,
    )


def executable(task: planning.Task, seed: int) -> planning.Plan:
    """Return the first of some plans of which ``check`` says that an execution can follow them, or else the last one.

    Raises:
        RuntimeError: There is no plan.
    """
    found = None
    for k in range(TREES):
        tree = planning.rrt(task, planning.RRTOptions(max_nodes=NODES), rng=TREES * seed + k)
        if tree.reached:
            found = tree.plan()
            if found.check(task, executable=True).executable:
                break
    if found is None:
        raise RuntimeError("no tree reaches the goal")
    return found


def plan(arm: Arm, name: str, seed: int) -> str:
    """Bring the object to its goal, a peg first to a place before the hole."""
    for _ in range(WAIT):
        arm.send(np.zeros(4))
    task, told = task_of(arm, name), "no plan"
    before = np.array(task.goal)
    before[5] += BEFORE
    for goal in (before, task.goal) if TASKS[name] == "peg" else (task.goal,):

        def planner(q: Any, seed: int, goal: Any = goal) -> planning.Plan:
            start = np.asarray(task.model.clamp_to_limits(q))
            return executable(task.towards(goal, start=start, start_tolerance=np.inf), seed)

        told = (
            planning.Executor(
                task.towards(goal),
                planner(arm.read()[0], seed),
                planning.Robot(read=arm.read, send=arm.send, period=PERIOD, lag=LAG, patience=None),
                world=planning.TransferOptions(speed=SPEED, settle=0.05),
                options=planning.ExecutorOptions(
                    controllers=("planned",),
                    routes=("plan", "new plan"),
                    stall=0.5,
                    hold=0.1,
                    seed=seed,
                ),
                planner=planner,
            )
            .run()
            .outcome
        )
    return told


def sampled(exact: bool) -> Controller:
    """Return a sampler that is told one grasp, so that the hand is drawn to the object."""

    def control(arm: Arm, name: str, seed: int) -> str:
        for _ in range(WAIT):
            arm.send(np.zeros(4))
        task = task_of(arm, name)
        weights = planning.TrackingCost.for_task(task).object
        assert isinstance(weights, tuple)
        cost = planning.TrackingCost(
            object=weights, robot=REACH * weights[0], command=CHANGE * weights[0]
        )
        settings = planning.ImpcOptions(cost=cost, h=PERIOD * HELD, horizon=HORIZON)
        grasp = task.grasp(task.start, np.random.default_rng(seed))
        if grasp is None:
            return "no grasp"
        model = planning.MujocoModel(planning_spec(arm.world).compile()) if exact else None
        loop = planning.SamplingMpc(
            task.replace(impc=settings),
            planning.SamplingOptions(samples=SAMPLES, horizon=HORIZON, noise=NOISE, threads=1),
            rng=seed,
            model=model,
        )
        before = np.asarray(task.model.command_from(task.start))
        while True:
            q, v = arm.read()
            wanted = np.array(grasp)
            wanted[:3] += q[5:8] - grasp[5:8]
            wanted[5:] = task.goal[5:]
            u = loop.act(q, np.tile(wanted, (HORIZON + 1, 1)), v=v)
            for k in range(1, HELD + 1):
                arm.send(before + k / HELD * (u - before))
            before = u

    return control


def scripted(arm: Arm, name: str, seed: int) -> str:
    policy, observed = ENV_POLICY_MAP[name](), arm.world._get_obs()
    while True:
        observed = arm.act(policy.get_action(observed))


CONTROLLERS: dict[str, Controller] = {
    "plan": plan,
    "samples": sampled(exact=False),
    "MuJoCo samples": sampled(exact=True),
    "scripted": scripted,
}


def episode(world: Any, name: str, controller: str, number: int, goal: Any) -> dict[str, Any]:
    world.set_task(goal)
    world.reset()
    arm, begin, outcome = Arm(world), time.process_time(), "out of time"
    spent = 0.0
    act = arm.act

    def timed(action: Any) -> Any:
        nonlocal spent
        now = time.process_time()
        try:
            return act(action)
        finally:
            spent += time.process_time() - now

    arm.act = timed  # type: ignore[method-assign]
    with contextlib.suppress(Over):
        outcome = CONTROLLERS[controller](arm, name, number)
    cpu = time.process_time() - begin - spent
    if arm.steps == world.max_path_length or arm.reached:
        outcome = "out of time"
    return {
        "success": arm.reached,
        "outcome": "success" if arm.reached else outcome,
        "steps": arm.steps,
        "cpu": cpu,
        "world": spent,
    }


def row(name: str, controller: str, runs: list[dict[str, Any]]) -> str:
    good = [run for run in runs if run["success"]]
    missed = [run["outcome"] for run in runs if not run["success"]]
    ends = ", ".join(f"{missed.count(end)} {end}" for end in dict.fromkeys(missed))
    seconds = f"{PERIOD * statistics.median(run['steps'] for run in good):.1f}" if good else "-"
    cpu = [run["cpu"] for run in runs]
    each = 1e3 * statistics.median(run["cpu"] / max(1, run["steps"]) for run in runs)
    return (
        f"| {name} | {controller} | {len(good)} of {len(runs)} | {ends or '-'} | {seconds} "
        f"| {statistics.median(cpu):.2f} ({max(cpu):.1f}) | {each:.1f} |"
    )


def main() -> None:
    parser = arguments(__doc__, CONTROLLERS)
    parser.add_argument("--goals", type=int, default=50)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--only", nargs="*", default=list(TASKS))
    given = parser.parse_args()
    made = (
        {} if given.cached else {name: metaworld.MT1(name, seed=given.seed) for name in given.only}
    )
    worlds = {name: own.train_classes[name]() for name, own in made.items()}

    def run(name: str, controller: str, number: int) -> dict[str, Any]:
        return episode(worlds[name], name, controller, number, made[name].train_tasks[number])

    asked = (
        (name, controller, number)
        for name, number, controller in product(made, range(given.goals), given.controllers)
    )
    known = episodes(given, asked, run)
    print(
        "| task | controller | success | misses | s, median | CPU s an episode, median (most) | ms of CPU an action |\n"
        + "| --- " * 7
        + "|"
    )
    for name in TASKS:
        for controller in CONTROLLERS:
            runs = [run for key, run in known.items() if key[:2] == (name, controller)]
            if runs:
                print(row(name, controller, runs))


if __name__ == "__main__":
    main()
