"""Objects turned on the palm of an Allegro hand and by three fingers: the trials published with arXiv 2408.07855.

``--folder`` is a copy of that paper's repository (Complementarity-Free-Dexterous-Manipulation). Scenes, starts, goals,
seeds, bounds on commands and verdicts are read from it, and its simulation is done as its own scripts do it: MuJoCo
with the settings of the scene, 50 steps of 2 ms for a command of the hand, 20 for one of the three fingers, whose
joints a PD law with compensated gravity moves. ``pip install casadi``, which its files import.

Every command is at most 0.2 rad (hand) or 0.01 rad (three fingers) away from the measured joint. A trial succeeds once
``1 - <q, q*>^2`` stays below the threshold (0.04; 0.03 for the airplane in the hand) for more than 20 commands in a
row, within 500. *Near* is a success within 2 cm of the goal's position.

*Mpc* is ``planning.Mpc`` with the settings that the package derives from the task (``planning.dexterous``), the period
and the bound of the commands (``stride``): for the hand two iterations a command, for the three fingers, whose horizon
of one second has more periods, one. *inertia* is the same with ``planning.SecondOrderModel`` as its prediction model, in
steps of 10 and 5 ms with MuJoCo's law of contact, from the measured velocity.

    bench_dexterous_objects.py --folder FOLDER --cache FILE [--sets allegro] [--objects cube ...] [--trials 5]
    bench_dexterous_objects.py --folder FOLDER --cache FILE --cached
    bench_dexterous_objects.py --folder FOLDER --sets allegro --objects cube --film cube.gif
"""

from __future__ import annotations

import functools
import importlib
import re
import sys
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

STEPS, ROW = 500, 20
LOST = 0.15
"""Distance from the goal beyond which an object counts as dropped, m."""
MARGIN = 0.02
"""Contacts of the model within this distance, m; farther ones would carry less than a weight in 20."""
TOUCH = 5.0
"""Weight of the distances of the fingertips from the object: some fingers begin away from it."""
STEP = {True: 0.01, False: 0.005}
"""Time step of the prediction model for the hand and for three fingers, whose joints swing faster, s."""
STEPS_AHEAD = 20
"""Steps of the model that all iterations of a call look ahead together: its time is within 50 ms."""
MISSING = {"stanford_bunny2.stl": "bunny.stl"}
"""Mesh files that copies of the repository may lack, and what stands in for them."""


def objects(folder: Path, kind: str) -> list[str]:
    """Return the objects of a set, in alphabetical order."""
    return sorted(p.parent.name for p in (folder / "examples/mpc" / kind).glob("*/params.py"))


def scene(folder: Path, path: str) -> Any:
    """Return the scene; an absent mesh is replaced, absent textures are left out."""
    file = folder / path
    text = file.read_text()
    for name, other in MISSING.items():
        if not (folder / "envs/assets/objects" / name).exists():
            text = text.replace(name, other)
    for texture in re.findall(r"<texture[^>]*file=[^>]*/>", text):
        found = re.search(r'file="([^"]*)"', texture)
        name = re.search(r"name=[\"']([^\"']*)", texture)
        if found and name and not (file.parent / found.group(1)).exists():
            text = text.replace(texture, "").replace(f'texture="{name.group(1)}"', "")
    copy = file.with_name(f".{file.stem}_repaired.xml")
    if text == file.read_text():
        return mujoco.MjSpec.from_file(str(file))
    copy.write_text(text)
    try:
        return mujoco.MjSpec.from_file(str(copy))
    finally:
        copy.unlink()


class World:
    """One trial: the published scene, start, goal and simulation."""

    def __init__(self, folder: Path, kind: str, name: str, trial: int) -> None:
        module = importlib.import_module(f"examples.mpc.{kind}.{name}.params")
        self.param: Any = module.ExplicitMPCParams(rand_seed=trial, target_type="rotation")
        self.kind, self.name = kind, name
        self.hand = kind == "allegro"
        verdict = (folder / f"examples/mpc/{kind}/{name}/test.py").read_text()
        found = re.search(r"success_quat_threshold = ([0-9.]+)", verdict)
        assert found is not None
        self.threshold = float(found.group(1))
        self.spec = scene(folder, self.param.model_path_)
        self.model = self.spec.compile()
        self.data = mujoco.MjData(self.model)
        robot, thing = self.param.init_robot_qpos_, self.param.init_obj_qpos_
        self.data.qpos[:] = np.hstack((robot, thing) if self.hand else (thing, robot))
        self.robot = np.arange(16) if self.hand else np.arange(7, 16)
        self.thing = slice(16, 23) if self.hand else slice(0, 7)
        self.period = self.param.frame_skip_ * self.model.opt.timestep
        self.bound = float(self.param.mpc_u_ub_)
        self.model.body("goal").pos = self.param.target_p_
        self.model.body("goal").quat = self.param.target_q_
        mujoco.mj_forward(self.model, self.data)

    def errors(self) -> tuple[float, float]:
        """Return the published measure of the rotation, and the distance from the goal (m)."""
        thing = self.data.qpos[self.thing]
        way = float(np.linalg.norm(thing[:3] - self.param.target_p_))
        return float(1.0 - np.dot(thing[3:], self.param.target_q_) ** 2), way

    def step(self, u: Any) -> float:
        """Send a command for one period; return how far it was beyond its bound, rad."""
        data, now = self.data, self.data.qpos[self.robot].copy()
        change = np.clip(u - now, -self.bound, self.bound)
        target = now + change
        for _ in range(self.param.frame_skip_):
            if self.hand:
                data.ctrl[:] = target
            else:
                drive = self.param.jc_kp_ * (target - data.qpos[self.robot])
                drive -= self.param.jc_damping_ * data.qvel[6:]
                data.ctrl[:] = drive + data.qfrc_bias[6:]
            mujoco.mj_step(self.model, data)
        mujoco.mj_forward(self.model, data)
        return float(np.abs(u - now - change).max())


def bare(spec: Any) -> Any:
    """Return a copy of a scene without the marker of the goal."""
    spec = spec.copy()
    for body in list(spec.bodies):
        if body.name == "goal":
            spec.delete(body)
    return spec


def task_of(world: World, damped: bool = False) -> planning.Task:
    """Return the task: the model of the scene, with the springs of the joints' controllers; ``damped``: and
    their damping."""
    springs, spec = None, bare(world.spec)
    if not world.hand:
        springs = float(world.param.jc_kp_)
        for joint in spec.joints if damped else ():
            if joint.type == mujoco.mjtJoint.mjJNT_HINGE:
                joint.damping = np.asarray(joint.damping) + float(world.param.jc_damping_)
    model = qdsim.load(spec, stiffness=springs)
    start = np.array(world.data.qpos)
    goal = start.copy()
    goal[world.thing] = np.hstack((world.param.target_p_, world.param.target_q_))
    return planning.Task(
        name=f"{world.kind} {world.name}",
        model=model,
        options=qdsim.Options(
            h=world.period,
            margin=MARGIN,
            damping=True,
            infeasible="soften",
            gravity_on_actuated=world.hand,
        ),
        start=start,
        goal=goal,
        object="obj",
        lower=-np.full(6, 0.3),
        upper=np.full(6, 0.3),
        start_tolerance=np.inf,  # objects begin above the palm or, some, in the table
        position_tolerance=0.02,
        rotation_tolerance=2.0 * np.arcsin(np.sqrt(world.threshold)),
    )


Act = Callable[[Any, Any], Any]


def loop_of(world: World, task: planning.Task, model: Any = None) -> planning.Mpc:
    settings = planning.dexterous(task, period=world.period, touch=TOUCH)
    settings = settings.replace(stride=world.bound)
    count = max(1, round(STEPS_AHEAD / settings.horizon))
    return planning.Mpc(task, settings, iterations=count, first_iterations=count, model=model)


def mpc(world: World) -> Act:
    loop = loop_of(world, task_of(world))
    return lambda q, v: loop.act(q)


def inertia(world: World) -> Act:
    task = task_of(world, damped=True)
    options = qdsim.DynamicOptions(
        h=STEP[world.hand], contacts="mujoco", gravity_on_actuated=world.hand, infeasible="soften"
    )
    loop = loop_of(world, task, planning.SecondOrderModel(task.model, options, stepped=True))
    return lambda q, v: loop.act(q, v=qdsim.from_mujoco_velocity(task.model, q, v))


CONTROLLERS: dict[str, Callable[[World], Act]] = {"Mpc": mpc, "inertia": inertia}


def trial(
    folder: Path,
    kind: str,
    name: str,
    number: int,
    controller: str,
    steps: int = STEPS,
    frames: list[Any] | None = None,
) -> dict[str, Any]:
    """Run one trial; with ``frames``, append the configuration after every command."""
    world = World(folder, kind, name, number)
    act = CONTROLLERS[controller](world)
    first, _ = world.errors()
    cpu, row, beyond, least = [], 0, 0.0, np.inf
    for _ in range(steps):
        begin = time.process_time()
        u = act(np.array(world.data.qpos), np.array(world.data.qvel))
        cpu.append(time.process_time() - begin)
        beyond = max(beyond, world.step(u))
        if frames is not None:
            frames.append(np.array(world.data.qpos))
        turn, way = world.errors()
        least = min(least, turn)
        row = row + 1 if turn < world.threshold else 0
        if row > ROW or way > LOST:
            break
    return {
        "success": row > ROW,
        "steps": len(cpu),
        "begin": first,
        "turn": turn,
        "least": least,
        "way": way,
        "dropped": way > LOST,
        "beyond": beyond,
        "cpu": [float(np.percentile(cpu, p)) for p in (50, 95, 100)],
    }


def report(known: dict[Any, Any], kinds: list[str], controllers: list[str]) -> None:
    print(
        "| set | object | controller | success | near | dropped | commands, median | cm, median "
        "| ms of CPU a command: median | 95 % | max |\n" + "| --- " * 11 + "|"
    )

    def row(kind: str, name: str, controller: str, runs: list[dict[str, Any]]) -> None:
        good = [r for r in runs if r["success"]]
        near = sum(r["way"] < 0.02 for r in good)
        cpu = np.array([r["cpu"] for r in runs]) * 1e3
        median = f"{np.median([r['steps'] for r in good]):.0f}" if good else "-"
        way = f"{100 * np.median([r['way'] for r in good]):.1f}" if good else "-"
        print(
            f"| {kind} | {name} | {controller} | {len(good)} of {len(runs)} | {near} "
            f"| {sum(r['dropped'] for r in runs)} | {median} | {way} | {np.median(cpu[:, 0]):.0f} "
            f"| {np.median(cpu[:, 1]):.0f} | {cpu[:, 2].max():.0f} |"
        )

    for kind in kinds:
        for controller in controllers:
            of = {key: run for key, run in known.items() if (key[0], key[3]) == (kind, controller)}
            for name in sorted({key[1] for key in of}):
                row(kind, name, controller, [run for key, run in of.items() if key[1] == name])
            if of:
                row(kind, "all", controller, list(of.values()))


def film(folder: Path, kind: str, name: str, number: int, controller: str, path: Path) -> None:
    """Draw a trial, one frame for each command."""
    from PIL import Image

    poses: list[Any] = []
    print(trial(folder, kind, name, number, controller, frames=poses))
    world = World(folder, kind, name, number)
    drawn = []
    with mujoco.Renderer(world.model, 360, 480) as renderer:
        for q in poses:
            world.data.qpos[:] = q
            mujoco.mj_forward(world.model, world.data)
            renderer.update_scene(world.data, camera="demo-cam")
            drawn.append(Image.fromarray(renderer.render()))
    drawn[0].save(path, save_all=True, append_images=drawn[1:], duration=60, loop=0)


def main() -> None:
    parser = arguments(__doc__, CONTROLLERS)
    parser.set_defaults(controllers=["Mpc"])
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--sets", nargs="*", default=["allegro", "trifinger"])
    parser.add_argument("--objects", nargs="*")
    parser.add_argument("--trials", type=int, default=5)
    parser.add_argument("--first", type=int, default=0, help="the first trial")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--film", type=Path, help="draw the first of the trials")
    given = parser.parse_args()
    sys.path.insert(0, str(given.folder))
    if given.film:
        name = given.objects[0]
        film(given.folder, given.sets[0], name, given.first, given.controllers[0], given.film)
        return
    asked = (
        (kind, name, number, controller)
        for number, kind in product(range(given.first, given.first + given.trials), given.sets)
        for name in given.objects or objects(given.folder, kind)
        for controller in given.controllers
    )
    known = episodes(given, asked, functools.partial(trial, given.folder, steps=given.steps))
    report(known, given.sets, given.controllers)


if __name__ == "__main__":
    main()
