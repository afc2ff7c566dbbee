"""Policies in MuJoCo: the same observation from the simulator, and actions executed as
displacements.

A quasi-dynamic step has no friction of a support and no inertia, so a command does less in a
simulator than in the model. The motion of the robot transfers: every push continues until the robot
is where it is in the model; then the next observation is taken.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from qdsim.arguments import flag, instance, integer, low_high, number
from qdsim.array_type import SAME, Array
from qdsim.envs.moves import Moved, holder
from qdsim.envs.options import EnvOptions
from qdsim.envs.rules import Rules, checked
from qdsim.planning.execution.plant import STILL, Plant, second_order
from qdsim.planning.motion.motion import MotionError, connect
from qdsim.planning.plans.trials import SETTLE
from qdsim.planning.task.drives import robot_q
from qdsim.planning.task.motion_options import MotionOptions
from qdsim.planning.task.task import Task
from qdsim.planning.task.transfer_options import TransferOptions
from qdsim.planning.tracking.arrival import NEARER

if TYPE_CHECKING:
    import mujoco

__all__ = ["Deployed", "deploy"]

_ARRIVES = 4.0
"""Time for which the robot waits at a grasp, as a multiple of the largest lag of a joint."""
_LITTLE = 0.2
"""A push counts as without effect if the object moved by less than this share of its displacement in
the model, or by less than counts as progress."""
_PATIENCE = 4.0
"""Additional time for which the command of a push may continue, s; pushes end too early with a tenth (test_teaching.py)."""
_WAY = MotionOptions(clearance=5e-3, speed=1.0, penetration=5e-3, time_limit=2.0)
"""Options of motions between grasps."""
_LATE = 12
"""Number of pushes after which noise is added to all actions, so that the policy does not repeat a failing push."""


@dataclasses.dataclass(frozen=True)
class Deployed:
    """Results of all runs of `deploy`, (n,) each.

    Attributes:
        success: whether the object came within the task's tolerances of its goal.
        pushes: number of pushes; the largest allowed number if the run failed.
        shift, turn: final errors, m and rad.
        in_model: whether the policy succeeds on the same problem in the model of its training.
    """

    success: NDArray[np.bool_]
    pushes: NDArray[np.int64]
    shift: Array
    turn: Array
    in_model: NDArray[np.bool_]

    def __str__(self) -> str:
        pushes = self.pushes[self.success]
        return (
            f"{self.success.sum()} of {len(self.success)} reach the goal in MuJoCo, {self.in_model.sum()} in the model; "
            f"{pushes.mean() if len(pushes) else float('nan'):.1f} pushes; median left "
            f"{1e3 * np.median(self.shift):.0f} mm, {np.median(self.turn):.3f} rad"
        )


def deploy(
    policy: Callable[[Array], Array],
    task: Task,
    options: EnvOptions | None = None,
    *,
    runs: int = 20,
    seed: int = 0,
    speed: float = 0.3,
    transfer: TransferOptions | None = None,
    friction: tuple[float, float] = (0.7, 1.3),
    support_friction: tuple[float, float] = (0.3, 0.7),
    mass: tuple[float, float] = (0.7, 1.3),
    noise: float = 0.15,
    motions: bool = False,
) -> Deployed:
    """Run a policy in MuJoCo and, for comparison, in the model.

    Friction of contacts and of the support, and the object's mass, are drawn for every run.

    Args:
        policy: from observations (n, k) to actions (n, m).
        task, options: of the environment of its training; actions have to be pushes. If it has
            several contact laws, the first one determines how far a push goes in the model.
        runs: number of problems, drawn by `seed` as in a `TaskVectorEnv`.
        seed: of problems, friction, masses and noise.
        speed: largest speed of a command, m/s or rad/s (Euclidean norm over all joints); >= 1e-4.
        transfer: simulation settings of MuJoCo; None: stiff contacts.
        friction: range of factors on the model's friction; at most 1e6, as for the next two.
        support_friction: range of friction coefficients between the object and a plane that is not
            part of the model.
        mass: range of factors on mass and inertia of the object (and of bodies that it carries).
        noise: standard deviation of noise that is added to actions from the 13th push of a run on;
            before that, after n pushes in a row with (almost) no effect, n times this, because the
            same push would again have no effect.
        motions: whether the robot moves to the grasp of every push by a collision-free motion
            (needs OMPL if this is not a straight line); a push without such a motion is left out,
            and counts. False: the robot is placed there.

    Raises:
        TypeError, ValueError: if an argument is invalid (the message names it), or if the policy
            does not return finite numbers (n, m).
    """
    given = options or EnvOptions()
    if given.action != "push":
        raise ValueError(f"options: expected action 'push', got {given.action!r}")
    if not callable(policy):
        raise TypeError(f"policy: expected a function, got {type(policy).__name__}")
    integer("runs", runs, least=1)
    integer("seed", seed, least=0)
    number("speed", speed, least=STILL)
    number("noise", noise, least=0)
    flag("motions", motions)
    how = instance("transfer", transfer, TransferOptions, or_none=True) or TransferOptions()
    low_high("friction", friction, least=0, most=1.0 / SAME)
    low_high("support_friction", support_friction, least=0, most=1.0 / SAME)
    low_high("mass", mass, above=0, most=1.0 / SAME)
    rules = Rules(task, given)
    draws = [np.random.default_rng([seed, i, 0xD3]) for i in range(runs)]
    ends = []
    for i, rng in enumerate(draws):
        support, rubbing, heavy = (
            float(rng.uniform(*x)) for x in (support_friction, friction, mass)
        )
        # A plant computes the support's friction force from the mass in the model.
        own = how.replace(support_friction=support * heavy)
        mj = second_order(task.model, task.object, own)
        mj.geom_friction[:, 0] *= rubbing
        mj.pair_friction[:, :2] *= rubbing
        make_heavier(mj, task.object, heavy)
        plant = Plant(task.model, task.space, mj, own, not task.options.gravity_on_actuated)
        robot = _Robot(task, plant, speed, motions, rng)
        ends.append(_run(policy, rules, robot, seed + i, noise, rng))
    success, pushes, shift, turn = (np.array(column) for column in zip(*ends))
    return Deployed(success, pushes, shift, turn, _in_model(policy, rules, seed, runs, noise))


def make_heavier(mj: mujoco.MjModel, body: str, factor: float) -> None:
    """Multiply mass and inertia of a body, and of the bodies that it carries, by a factor."""
    import mujoco

    top = mj.body(body).id
    for b in range(top, mj.nbody):
        above = b
        while above > top:
            above = mj.body_parentid[above]
        if above == top:
            mj.body_mass[b] *= factor
            mj.body_inertia[b] *= factor
    mujoco.mj_setConst(mj, mujoco.MjData(mj))


def _asked(policy: Callable[[Array], Array], rules: Rules, seen: Array) -> Array:
    return checked(policy(seen), (len(seen), rules.action_size), "policy")


def _in_model(
    policy: Callable[[Array], Array], rules: Rules, seed: int, runs: int, noise: float
) -> NDArray[np.bool_]:
    rng = np.random.default_rng([seed, 0x30DE])
    players = rules.draw(np.arange(seed, seed + runs, dtype=np.uint64), np.zeros(runs, np.uint64))
    success, over = np.zeros(runs, dtype=bool), np.zeros(runs, dtype=bool)
    for k in range(rules.horizon):
        action = _asked(policy, rules, rules.observe(players))
        if k >= _LATE:
            action = action + noise * rng.standard_normal(action.shape)
        ended = rules.play(players, np.clip(action, -1.0, 1.0))
        success |= ended.success & ~over
        over |= ended.terminated
        if over.all():
            break
    return success


def _run(
    policy: Callable[[Array], Array],
    rules: Rules,
    robot: _Robot,
    seed: int,
    noise: float,
    rng: np.random.Generator,
) -> tuple[bool, int, float, float]:
    """Run the policy once; return success, number of pushes, and the final errors (m, rad)."""
    task, plant = rules.task, robot.plant
    players = rules.draw(np.array([seed], np.uint64), np.zeros(1, np.uint64))
    plant.reset(players.q[0])
    idle = 0  # number of successive pushes without effect
    for k in range(rules.horizon):
        players.q = _normalized(task, plant.q)[None]
        players.command = task.model.command_from(players.q)
        look = rules.look(players)
        shift, turn = look.shift, look.turn
        if shift[0] <= task.position_tolerance and turn[0] <= task.rotation_tolerance:
            return True, k, float(shift[0]), float(turn[0])
        action = _asked(policy, rules, look.seen)
        action = action + noise * max(idle, k >= _LATE) * rng.standard_normal(action.shape)
        idle += 1
        players.action = np.clip(action, -1.0, 1.0)
        moved = rules.moves(players.q, players.action, players.parameters)
        if moved.refused[0] or moved.failed[0] or not robot.go(moved.placed[0]):
            continue
        robot.push(moved)
        if not np.isfinite(plant.q).all():
            break
        wanted, done = (_went(task, moved.placed[0], q) for q in (moved.q[0], plant.q))
        # Without effect: the object sticks to its support, fingers slip, or the push fails in the model, too.
        if done > max(_LITTLE * wanted, NEARER * task.position_tolerance):
            idle = 0
    return False, rules.horizon, float(shift[0]), float(turn[0])


def _went(task: Task, before: Array, after: Array) -> float:
    """Return the distance that the object moved between two configurations (nq,), m, with rotations
    multiplied by the task's length."""
    shift, turn = task.space.errors(before, after)
    return math.hypot(shift, task.length * turn)


class _Robot:
    """A robot that moves to grasps and pushes, in a plant.

    Args:
        task, plant: of the run.
        speed: of a command, m/s or rad/s over all joints.
        motions: whether it goes to a grasp or is set there.
        rng: of motions.
    """

    def __init__(
        self, task: Task, plant: Plant, speed: float, motions: bool, rng: np.random.Generator
    ) -> None:
        self.task, self.plant, self.speed = task, plant, speed
        self.motions, self.rng = motions, rng
        self.holding = holder(task.model)
        self.dt = float(plant.mj.opt.timestep)

    def go(self, grasp: Array) -> bool:
        """Move to a grasp (nq,) at the object's present pose; return whether this was possible."""
        model, plant = self.task.model, self.plant
        rows = robot_q(model)
        target = plant.q
        target[rows] = grasp[rows]
        if not self.motions:
            plant.reset(target)
            return True
        here = _normalized(self.task, plant.q)
        target = _normalized(self.task, target)
        try:
            motion = connect(model, here, target, _WAY, self.rng)
        except (MotionError, ImportError):  # OMPL is an extra
            return False
        times = np.arange(1, math.ceil(motion.duration / self.dt) + 1) * self.dt
        course = model.command_from(motion.at(np.minimum(times, motion.duration)))
        ahead = np.diff(course, axis=0, append=course[-1:]) / self.dt
        self._follow(course + plant.lag * ahead)
        rest = _ARRIVES * float(plant.lag.max(initial=0.0))
        self._follow(np.repeat(course[-1:], round(rest / self.dt), axis=0))
        return True

    def _follow(self, commands: Array) -> None:
        for u in commands:
            self.plant.advance(u)

    def push(self, moved: Moved) -> None:
        """Continue the command along the stroke until the robot has moved as far as in the model,
        then release it.

        What a support resists with takes a spring some way to get; a command that goes on finds out how far.
        """
        plant = self.plant
        held = self.holding
        begin = held(moved.placed)[0]
        stroke = moved.command[0] - begin
        size = float(np.linalg.norm(stroke))
        if size == 0.0:
            return
        along = stroke / size
        length = float(along @ (held(moved.q)[0] - begin))
        # The springs press and release in twice the time in which they settle. After faster pushes the object slides on.
        seconds = max(length / self.speed, 2.0 * SETTLE)
        rate = length / seconds
        for tick in range(round((seconds + _PATIENCE) / self.dt)):
            plant.advance(begin + (tick + 1) * self.dt * rate * along)
            if along @ (held(plant.q[None])[0] - begin) >= length:
                break
        self._follow(np.repeat(held(plant.q[None]), round(SETTLE / self.dt), axis=0))


def _normalized(task: Task, q: Array) -> Array:
    return np.asarray(task.model.normalize(q)) if np.isfinite(q).all() else q
