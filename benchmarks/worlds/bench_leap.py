"""LeapCubeReorient of MuJoCo Playground: a LEAP hand turns a cube to one goal after another, in that package's scene.

``pip install --no-deps playground``: its scene is read, not its code, which needs JAX. The world is MuJoCo with the
scene's own options, 10 ms a step. Meshes of the hand lie in another repository; they are visual, without contacts and
mass, so they are taken out (`scene`). All contacts are between boxes.

The laws are those of the package's ``reorient.py``. Every 50 ms an action of 16 numbers in [-1, 1], times 0.5 rad, is
added to the targets of the joints' servos. Hand, cube and goal begin at random, the cube 5 cm above the palm's
mount with any rotation. A goal is reached when the cube's rotation is within 0.1 rad of it; it then turns away by a
vector of three numbers between 0.5 and 2.5 rad, within a second. An episode ends after 1000 actions (50 s), or when
the cube is 5 cm below the hand's mount. States are measured without the package's noise.

*Mpc*: ``planning.Mpc``, 20 steps of 50 ms with the joints' damping. *Samples*: ``planning.SamplingMpc`` (cross-entropy
method), 40 samples of 10 steps of 100 ms with qdsim's step; *MuJoCo samples*: the same with ``mujoco.rollout`` of the
scene's own model, which knows contacts and masses exactly. *Still*: no actions. Settings were chosen with seeds 0 to 2.

    bench_leap.py --cache FILE [--seeds 8] [--controllers Mpc ...] [--cached]

``--cache FILE`` saves every episode as a line of JSON and continues from there. ``--cached`` prints the table of the
episodes in the file.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import statistics
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from episodes import arguments, episodes

import qdsim
from qdsim import planning

SCALE, PERIOD, STEPS, WITHIN, FALLEN = 0.5, 0.05, 1000, 0.1, -0.05
FIRST = 100
"""First seed of the table; settings were chosen with seeds below."""
SAMPLES = 40
MARGIN = 0.03
"""Distance of contacts in the model, m; in a period the fingertips move by at most 1 cm."""
Act = Callable[[Any, Any, Any], Any]


def scene(goal: bool = True) -> Any:
    """Return the package's scene without geoms that have a mesh.

    Args:
        goal: Whether it has the body that shows the goal.

    Raises:
        RuntimeError: If a mesh takes part in contacts.
    """
    found = importlib.util.find_spec("mujoco_playground")
    assert found is not None and found.submodule_search_locations is not None
    folder = Path(found.submodule_search_locations[0]) / "_src/manipulation/leap_hand/xmls"
    spec = mujoco.MjSpec.from_file(str(folder / "scene_mjx_cube.xml"))
    for geom in list(spec.geoms):
        if geom.type == mujoco.mjtGeom.mjGEOM_MESH:
            if geom.contype or geom.conaffinity:
                raise RuntimeError(f"mesh {geom.meshname} has contacts")
            spec.delete(geom)
    for mesh in list(spec.meshes):
        spec.delete(mesh)
    if not goal:
        spec.delete(spec.body("goal"))
    return spec


class World:
    """The package's environment, in MuJoCo on a CPU."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.mj = scene().compile()
        self.data = mujoco.MjData(self.mj)
        key = self.mj.key("home")
        low, high = self.mj.actuator_ctrlrange.T
        hand = np.clip(key.qpos[:16] + 0.1 * self.rng.standard_normal(16), low, high)
        place = np.array([0.1, 0.0, 0.05]) + self.rng.uniform(-0.01, 0.01, 3)
        self.data.qpos[:] = np.concatenate((hand, place, rotation(self.rng)))
        self.data.ctrl[:] = hand
        self.data.mocap_pos[0], self.data.mocap_quat[0] = key.mpos, rotation(self.rng)
        self.turning = np.zeros(3)
        mujoco.mj_forward(self.mj, self.data)

    @property
    def goal(self) -> Any:
        """Quaternion (4,) of the goal."""
        return np.array(self.data.mocap_quat[0])

    @property
    def error(self) -> float:
        """Angle between the cube and its goal as the sensors have it, rad."""
        cube, goal = (self.data.sensor(f"cube_{name}orientation").data for name in ("", "goal_"))
        return 2.0 * float(np.arccos(min(1.0, abs(cube @ goal))))

    @property
    def fallen(self) -> bool:
        return bool(self.data.sensor("cube_position").data[2] < FALLEN)

    def step(self, action: Any) -> bool:
        """Apply an action (16,), turn the goal, and return whether it was reached before."""
        data, (low, high) = self.data, self.mj.actuator_ctrlrange.T
        data.ctrl[:] = np.clip(data.ctrl + SCALE * np.clip(action, -1.0, 1.0), low, high)
        for _ in range(round(PERIOD / self.mj.opt.timestep)):
            mujoco.mj_step(self.mj, data)
        reached = self.error < WITHIN
        self.turning = 3.0 + self.rng.uniform(-2.0, 2.0, 3) if reached else 0.8 * self.turning
        mujoco.mju_quatIntegrate(data.mocap_quat[0], self.turning, 2.0 * PERIOD)
        return reached


def rotation(rng: np.random.Generator) -> Any:
    """Draw a quaternion evenly from all rotations."""
    quat = rng.standard_normal(4)
    return quat / np.linalg.norm(quat)


def task_of(period: float, horizon: int) -> planning.Task:
    """Return the task, with settings for goals that are to be reached within seconds.

    The joints move at most 1 rad/s, so their damping is part of the step. The cube should stay where it begins.
    """
    model = qdsim.load(scene(goal=False))
    start = np.array(model.keyframes["home"].q)
    task = planning.Task(
        name="leap",
        model=model,
        options=qdsim.Options(h=period, damping=True, infeasible="soften", margin=MARGIN),
        start=start,
        goal=start,
        object="cube",
        lower=-np.full(6, 0.3),
        upper=np.full(6, 0.3),
        length=0.035,
        start_tolerance=0.1,
        position_tolerance=0.02,
        rotation_tolerance=WITHIN,
    )
    preset = planning.dexterous(task)
    assert preset.cost is not None and preset.kappa is not None
    cost = dataclasses.replace(
        preset.cost,
        command=tuple(np.asarray(preset.cost.command) / 30.0),
        robot=tuple(np.asarray(preset.cost.robot) / 10.0),
    )
    settings = preset.replace(
        cost=cost,
        h=period,
        horizon=horizon,
        radii=tuple(tuple(6.0 * np.asarray(radius)) for radius in preset.radii),
        kappa=9.0 * preset.kappa,
    )
    return task.replace(impc=settings)


def aims(task: planning.Task, horizon: int, quat: Any) -> Any:
    """Return a reference (horizon + 1, nq) with the cube at a goal."""
    goal = np.array(task.goal)
    goal[-4:] = quat
    return np.tile(goal, (horizon + 1, 1))


def mpc() -> tuple[int, Act]:
    task = task_of(PERIOD, 20)
    loop = planning.Mpc(task)
    return 1, lambda q, v, quat: loop.act(q, aims(task, 20, quat))


def sampling(model: Any) -> tuple[int, Act]:
    task = task_of(2 * PERIOD, 10)
    options = planning.SamplingOptions(samples=SAMPLES, horizon=10, threads=1)
    loop = planning.SamplingMpc(task, options, model=model)
    return 2, lambda q, v, quat: loop.act(q, aims(task, 10, quat), v=v)


def exact() -> Any:
    """Return the scene itself as a model."""
    return planning.MujocoModel(scene(goal=False).compile(), timestep=None, compensated=False)


CONTROLLERS: dict[str, Callable[[], tuple[int, Act]] | None] = {
    "Mpc": mpc,
    "samples": lambda: sampling(None),
    "MuJoCo samples": lambda: sampling(exact()),
    "still": None,
}


def episode(controller: str, seed: int) -> dict[str, Any]:
    world = World(seed)
    make = CONTROLLERS[controller]
    every, act = make() if make else (1, None)
    cpu, calls, times, nearest = 0.0, 0, [], world.error
    u = old = np.array(world.data.ctrl)
    for k in range(STEPS):
        if act and k % every == 0:
            begin, old = time.process_time(), u
            u = act(np.array(world.data.qpos), np.array(world.data.qvel), world.goal)
            cpu, calls = cpu + time.process_time() - begin, calls + 1
        target = old + (k % every + 1) / every * (u - old)
        action = (target - world.data.ctrl) / SCALE
        if world.step(action):
            times.append(round((k + 1) * PERIOD, 2))
        if not times:
            nearest = min(nearest, world.error)
        if world.fallen:
            break
    return {
        "goals": len(times),
        "times": times,
        "nearest": nearest,
        "fallen": world.fallen,
        "seconds": (k + 1) * PERIOD,
        "cpu": cpu / max(1, calls),
    }


def row(controller: str, runs: list[dict[str, Any]]) -> str:
    goals = [run["goals"] for run in runs]
    seconds = sum(run["seconds"] for run in runs)
    near = statistics.median(run["nearest"] for run in runs)
    each = f"{seconds / sum(goals):.1f}" if sum(goals) else "-"
    return (
        f"| {controller} | {len(runs)} | {statistics.mean(goals):.1f} | {statistics.median(goals):.0f} "
        f"| {', '.join(map(str, sorted(goals)))} | {sum(run['fallen'] for run in runs)} "
        f"| {statistics.mean(run['seconds'] for run in runs):.0f} | {each} | {near:.2f} "
        f"| {1e3 * statistics.median(run['cpu'] for run in runs):.0f} |"
    )


def main() -> None:
    parser = arguments(__doc__, CONTROLLERS)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--first", type=int, default=FIRST)
    given = parser.parse_args()
    seeds = range(given.first, given.first + given.seeds)
    asked = ((controller, seed) for seed, controller in product(seeds, given.controllers))
    known = episodes(given, asked, episode)
    print(
        "| controller | episodes | goals, mean | median | each | cube lost | s an episode | s a goal | rad, nearest to the first goal "
        "| ms of CPU a call |\n" + "| --- " * 10 + "|"
    )
    for controller in CONTROLLERS:
        runs = [run for key, run in known.items() if key[0] == controller]
        if runs:
            print(row(controller, runs))


if __name__ == "__main__":
    main()
