"""Robots of MuJoCo Menagerie at work, quasi-dynamic steps beside MuJoCo's simulation at slow commands.

``bench_robot_scenes.py MENAGERIE [--only NAME ...]``: a folder that has the robots' files (a clone
of the Menagerie). Scenes whose files are not there are skipped. Each scene is one MjSpec, which
both load; commands move slowly along the same course. MuJoCo runs at its file's time step, arms
without gravity (``gravcomp``), as the quasi-dynamic step counts that of actuated joints as
compensated; once with the contacts that the file has, once with stiff ones: elliptic cones,
``impratio`` 100, a time constant of 4 ms, impedance 0.99 to 0.999. Written: a table
(``results/robot_scenes.md``) and a picture a scene (``docs/images/robot_NAME.png``): where the
object goes in both, and what the actuators pull.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

import qdsim

HERE = Path(__file__).resolve().parent
PUSHER = 0.02  # radius of the stick that arms push with, m
BOX = 0.03  # half an edge of what they push, m


@dataclass(frozen=True)
class Task:
    """A scene, and the commands of its motion."""

    spec: Any
    body: str  # whose path is compared
    course: Callable[[Any, Any, float], Any]  # (model, u at the start, share of the way) -> u
    seconds: float
    start: Any  # of the body, m
    h: float = 0.1
    margin: float = 0.05
    gravity_on_actuated: bool = False


# ---------------------------------------------------------------- scenes


def compensated(spec: Any) -> None:
    for body in spec.bodies:
        body.gravcomp = 1.0


def home_pose(spec: Any) -> tuple[Any, Any]:
    """Return q and u of the first keyframe, and MuJoCo's data there."""
    model = spec.compile()
    data = mujoco.MjData(model)
    if model.nkey:
        mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_forward(model, data)
    return model, data


def pushing(path: Path, site: str, joint: str) -> Task:
    """An arm turns its base by 0.3 rad; a stick at its end pushes a box over a table."""
    spec = mujoco.MjSpec.from_file(str(path))
    compensated(spec)
    _, data = home_pose(spec)
    tool = spec.site(site)
    at, axes = data.site(site).xpos, data.site(site).xmat.reshape(3, 3)
    down = axes.T @ np.array([0.0, 0.0, -1.0])
    end = np.array(tool.pos) + _turned(tool.quat, 0.12 * down)
    tool.parent.add_geom(
        name="stick",
        type=mujoco.mjtGeom.mjGEOM_CAPSULE,
        fromto=[*(np.array(tool.pos) + _turned(tool.quat, 0.04 * down)), *end],
        size=[PUSHER, 0, 0],
        mass=0.01,
        friction=[0.5, 0.005, 1e-4],
    )
    tip = at - np.array([0.0, 0.0, 0.12 + PUSHER])
    top = tip[2] - 0.01
    spec.worldbody.add_geom(
        name="table", type=mujoco.mjtGeom.mjGEOM_BOX, size=[0.25, 0.25, 0.01],
        pos=[tip[0], tip[1] + 0.15, top - 0.01], friction=[0.5, 0.005, 1e-4],
    )  # fmt: skip
    place = [tip[0] + 0.01, tip[1] + PUSHER + BOX + 0.005, top + BOX]
    _free_box(spec, place)
    start = data.qpos.copy()

    def course(model: Any, u0: Any, share: float) -> Any:
        u = np.array(u0)
        u[model.slice_u(joint)] += 0.3 * share
        return u

    _home(spec, np.concatenate([start, place, [1, 0, 0, 0]]), data.ctrl)
    return Task(spec, "object", course, 6.0, np.array(place))


def two_fingers(path: Path) -> Task:
    """One of two arms closes its fingers, which mirror each other, on a block and lifts it."""
    spec = _spec_of(path)
    compensated(spec)
    model, data = home_pose(spec)
    for name in ("left/left_finger", "left/right_finger"):
        data.qpos[model.jnt_qposadr[model.joint(name).id]] = 0.02
    data.ctrl[model.actuator("left/gripper").id] = 0.02
    mujoco.mj_forward(model, data)
    place = data.site("left/gripper").xpos.copy()
    body = spec.worldbody.add_body(name="object", pos=list(place))
    body.add_freejoint(name="object")
    body.add_geom(
        name="object", type=mujoco.mjtGeom.mjGEOM_BOX, size=[0.015, 0.01, 0.02], mass=0.05,
        friction=[0.8, 0.005, 1e-4],
    )  # fmt: skip
    spec.worldbody.add_geom(
        name="stand", type=mujoco.mjtGeom.mjGEOM_BOX, size=[0.02, 0.008, 0.05],
        pos=[place[0], place[1], place[2] - 0.07],
    )  # fmt: skip
    _home(spec, np.concatenate([data.qpos, place, [1, 0, 0, 0]]), data.ctrl)

    def course(model: Any, u0: Any, share: float) -> Any:
        u = np.array(u0)
        u[model.slice_u("left/gripper")] = 0.02 - 0.015 * min(share / 0.3, 1.0)
        u[model.slice_u("left/shoulder")] -= 0.1 * max(share - 0.4, 0.0) / 0.6
        return u

    return Task(spec, "object", course, 8.0, place, h=0.05, margin=0.02)


def holding(path: Path) -> Task:
    """A humanoid that hangs by its pelvis closes its right hand on the handle of a tool, which is carried."""
    spec = _spec_of(path)
    _, data = home_pose(spec)
    q, u = data.qpos[7:].copy(), data.ctrl.copy()
    spec.delete(spec.joint("floating_base_joint"))
    compensated(spec)
    base = spec.body("pelvis")
    base.pos = list(data.body("pelvis").xpos)
    place = data.body("right_hand_index_1_link").xpos + data.body("right_hand_middle_1_link").xpos
    place = 0.5 * place + [0.0, 0.035, 0.02]
    body = spec.worldbody.add_body(
        name="object", pos=list(place), quat=[0.70710678, 0, 0.70710678, 0]
    )
    body.gravcomp = 1.0
    body.add_freejoint(name="object")
    body.add_geom(
        name="object", type=mujoco.mjtGeom.mjGEOM_CAPSULE, size=[0.012, 0.08, 0.0], mass=0.3,
        friction=[0.8, 0.005, 1e-4],
    )  # fmt: skip
    _home(spec, np.concatenate([q, place, [0.70710678, 0, 0.70710678, 0]]), u)

    def course(model: Any, u0: Any, share: float) -> Any:
        u = np.array(u0)
        for finger in ("index", "middle"):
            for k in range(2):
                u[model.slice_u(f"right_hand_{finger}_{k}_joint")] += 0.7 * share
        u[model.slice_u("right_hand_thumb_2_joint")] -= 0.7 * share
        return u

    return Task(spec, "object", course, 4.0, place, h=0.02, margin=0.02)


def standing(path: Path) -> Task:
    """A robot on four legs comes to stand, bends its knees and sways."""
    spec = mujoco.MjSpec.from_file(str(path))
    model, data = home_pose(spec)
    if not any(g.type == mujoco.mjtGeom.mjGEOM_PLANE for g in spec.geoms):
        spec.worldbody.add_geom(name="floor", type=mujoco.mjtGeom.mjGEOM_PLANE, size=[5, 5, 1])
    root = mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_BODY, 1)

    def course(model: Any, u0: Any, share: float) -> Any:
        return np.array(u0) * (1.0 + 0.15 * np.sin(np.pi * share))

    return Task(
        spec,
        root,
        course,
        4.0,
        data.body(root).xpos.copy(),
        h=0.02,
        gravity_on_actuated=True,
    )


def curling(path: Path, place: Any, shape: str, share_of_range: float) -> Task:
    """A hand whose palm looks up closes its fingers around what lies on it."""
    spec = mujoco.MjSpec.from_file(str(path))
    compensated(spec)
    body = spec.worldbody.add_body(name="object", pos=list(place))
    body.add_freejoint(name="object")
    kind = mujoco.mjtGeom.mjGEOM_BOX if shape == "cube" else mujoco.mjtGeom.mjGEOM_SPHERE
    size = [0.025] * 3 if shape == "cube" else [0.03, 0.0, 0.0]
    body.add_geom(
        name="object", type=kind, size=size, mass=0.1, friction=[0.7, 0.02, 0.005], condim=6
    )
    place = _lowered(spec, body, np.array(place))

    def course(model: Any, u0: Any, share: float) -> Any:
        bends = model.u_upper > np.abs(model.u_lower) + 0.3
        way = np.where(bends, np.where(np.isfinite(model.u_upper), model.u_upper, 0.0) - u0, 0.0)
        return u0 + share_of_range * share * way

    return Task(spec, "object", course, 4.0, np.array(place), h=0.02, margin=0.02)


def _spec_of(path: Path) -> Any:
    """Load a file with meshes from any folder, and without visual meshes that a copy of the Menagerie lacks."""
    spec = mujoco.MjSpec.from_file(str(path))
    folder = path.resolve().parent / spec.meshdir
    spec.meshdir = str(folder)
    lacking = {
        mesh.name or Path(mesh.file).stem: mesh
        for mesh in spec.meshes
        if not (folder / mesh.file).exists()
    }
    for geom in list(spec.geoms):
        if geom.meshname in lacking:
            spec.delete(geom)
    for mesh in lacking.values():
        spec.delete(mesh)
    return spec


def _lowered(spec: Any, body: Any, place: Any) -> Any:
    """Return the lowest position of the object at which nothing touches it, below a given one."""
    model = spec.compile()
    data = mujoco.MjData(model)
    own, at = model.body("object").id, int(model.jnt_qposadr[model.body("object").jntadr[0]])
    while True:
        data.qpos[at : at + 3] = place - [0.0, 0.0, 2e-3]
        mujoco.mj_forward(model, data)
        if any(own in model.geom_bodyid[pair] for pair in data.contact.geom):
            break
        place = place - [0.0, 0.0, 2e-3]
    body.pos = list(place)
    return place


def gripping(arm: Path, gripper: Path, can: float) -> Task:
    """An arm with a gripper on a tendon: it closes around a can, and lifts it by turning its elbow."""
    _, data = home_pose(_spec_of(arm))
    home_q, home_u = data.qpos.copy(), data.ctrl.copy()
    spec, tool = _spec_of(arm), _spec_of(gripper)
    spec.attach(tool, prefix="gripper/", site=spec.site("attachment_site"))
    compensated(spec)
    for key in list(spec.keys):
        spec.delete(key)
    model = spec.compile()
    data = mujoco.MjData(model)
    data.qpos[: len(home_q)] = home_q
    mujoco.mj_forward(model, data)
    place = data.site("gripper/pinch").xpos - [0.0, 0.0, 0.02]
    body = spec.worldbody.add_body(name="object", pos=list(place))
    body.add_freejoint(name="object")
    body.add_geom(
        name="object", type=mujoco.mjtGeom.mjGEOM_CYLINDER, size=[can, 0.04, 0.0], mass=0.2,
        friction=[0.8, 0.005, 1e-4],
    )  # fmt: skip
    spec.worldbody.add_geom(
        name="table", type=mujoco.mjtGeom.mjGEOM_BOX, size=[0.1, 0.1, 0.01],
        pos=[place[0], place[1], place[2] - 0.05],
    )  # fmt: skip
    q = np.concatenate([data.qpos, place, [1, 0, 0, 0]])
    _home(spec, q, np.concatenate([home_u, np.zeros(model.nu - len(home_u))]))

    def course(model: Any, u0: Any, share: float) -> Any:
        u = np.array(u0)
        u[-1] = 255.0 * min(share / 0.3, 1.0)
        u[1] -= 0.15 * max(share - 0.4, 0.0) / 0.6
        return u

    return Task(spec, "object", course, 8.0, np.array(place), h=0.05, margin=0.02)


def _turned(quat: Any, vector: Any) -> Any:
    out = np.zeros(3)
    mujoco.mju_rotVecQuat(out, vector, np.asarray(quat))
    return out


def _free_box(spec: Any, place: Any) -> None:
    body = spec.worldbody.add_body(name="object", pos=list(place))
    body.add_freejoint(name="object")
    body.add_geom(
        name="object", type=mujoco.mjtGeom.mjGEOM_BOX, size=[BOX] * 3, mass=0.1,
        friction=[0.5, 0.005, 1e-4],
    )  # fmt: skip


def _home(spec: Any, q: Any, u: Any) -> None:
    for key in list(spec.keys):
        spec.delete(key)
    spec.add_key(name="home", qpos=list(q), ctrl=list(u))


SCENES: dict[str, Callable[[Path], Task]] = {
    "panda": lambda m: pushing(m / "franka_emika_panda/panda_nohand.xml", "attachment_site", "joint1"),
    "fr3": lambda m: pushing(m / "franka_fr3/fr3.xml", "attachment_site", "fr3_joint1"),
    "xarm7": lambda m: pushing(m / "ufactory_xarm7/xarm7_nohand.xml", "attachment_site", "joint1"),
    "ur5e": lambda m: pushing(m / "universal_robots_ur5e/ur5e.xml", "attachment_site", "shoulder_pan_joint"),
    "leap": lambda m: curling(m / "leap_hand/right_hand.xml", [0.0, 0.0, 0.25], "cube", 0.5),
    "allegro": lambda m: curling(m / "wonik_allegro/right_hand.xml", [0.0, 0.0, 0.15], "cube", 0.5),
    "shadow": lambda m: curling(m / "shadow_hand/right_hand.xml", [0.295, -0.005, 0.15], "ball", 0.5),
    "ur5e_2f85": lambda m: gripping(m / "universal_robots_ur5e/ur5e.xml", m / "robotiq_2f85/2f85.xml", 0.025),
    "aloha": lambda m: two_fingers(m / "aloha/aloha.xml"),
    "g1": lambda m: holding(m / "unitree_g1/g1_with_hands.xml"),
    "anymal": lambda m: standing(m / "anybotics_anymal_c/anymal_c.xml"),
}  # fmt: skip


# ---------------------------------------------------------------- both


def quasi_dynamic(task: Task) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", qdsim.ModelWarning)
        model = qdsim.load(task.spec)
    options = qdsim.Options(
        h=task.h, margin=task.margin, gravity_on_actuated=task.gravity_on_actuated
    )
    q = np.array(model.default_q)
    home = model.keyframes.get("home") or next(iter(model.keyframes.values()), None)
    u0 = np.array(home.u) if home is not None else model.command_from(q)
    q = np.array(home.q) if home is not None else q
    count = round(task.seconds / task.h)
    poses, forces, begin = [], [], time.perf_counter()
    for k in range(count):
        result = qdsim.step(model, q, task.course(model, u0, (k + 1) / count), options)
        q = result.q_next
        poses.append(np.concatenate([p.ravel() for p in model.body_pose(q, task.body)]))
        forces.append(np.array(result.actuator_force))
    wall = time.perf_counter() - begin
    return {"model": model, "u0": u0, "poses": np.array(poses), "forces": np.array(forces),
            "ms": 1e3 * wall / count}  # fmt: skip


def simulated(task: Task, ours: dict[str, Any], stiff: bool) -> dict[str, Any]:
    model = task.spec.compile()
    if stiff:
        model.opt.cone, model.opt.impratio = mujoco.mjtCone.mjCONE_ELLIPTIC, 100.0
        model.geom_solref[:] = 0.004, 1.0
        model.geom_solimp[:] = 0.99, 0.999, 0.001, 0.5, 2.0
    data = mujoco.MjData(model)
    if model.nkey:
        mujoco.mj_resetDataKeyframe(model, data, 0)
    count = round(task.seconds / task.h)
    each = max(1, round(task.h / model.opt.timestep))
    most = _joint_limits(model)
    poses, forces, begin = [], [], time.perf_counter()
    for k in range(count):
        for i in range(each):
            share = (k + (i + 1) / each) / count
            data.ctrl[:] = task.course(ours["model"], ours["u0"], share)
            mujoco.mj_step(model, data)
        mujoco.mj_forward(model, data)
        poses.append(np.concatenate([data.body(task.body).xpos, data.body(task.body).xmat.ravel()]))
        forces.append(np.clip(data.actuator_force, *most))
    wall = time.perf_counter() - begin
    return {
        "poses": np.array(poses),
        "forces": np.array(forces),
        "ms": 1e3 * wall / count,
    }


def _joint_limits(model: Any) -> tuple[Any, Any]:
    """Return the limits of actuator forces by their joints; MuJoCo applies them after it computes
    ``actuator_force``."""
    limits = np.tile([[-np.inf], [np.inf]], model.nu)
    for i in range(model.nu):
        joint = int(model.actuator_trnid[i, 0])
        on_joint = model.actuator_trntype[i] == mujoco.mjtTrn.mjTRN_JOINT
        if on_joint and model.jnt_actfrclimited[joint]:
            limits[:, i] = np.sort(model.jnt_actfrcrange[joint] / model.actuator_gear[i, 0])
    return limits[0], limits[1]


def angle_between(a: Any, b: Any) -> float:
    trace = np.trace(a[3:].reshape(3, 3).T @ b[3:].reshape(3, 3))
    return float(np.degrees(np.arccos(np.clip(0.5 * (trace - 1.0), -1.0, 1.0))))


def draw(name: str, task: Task, runs: dict[str, dict[str, Any]]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.lines import Line2D

    ours, theirs = runs["ours"], runs["file"]
    styles = {"ours": "-", "file": ":", "stiff": "--"}
    t = task.h * (1 + np.arange(len(ours["poses"])))
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.4, 3.6), layout="constrained")
    for axis, label in enumerate("xyz"):
        for kind, run in runs.items():
            way = run["poses"][:, axis] - task.start[axis]
            named = label if kind == "ours" else None
            left.plot(t, 1e3 * way, styles[kind], color=f"C{axis}", label=named)
    left.set(xlabel="time (s)", ylabel="displacement (mm)", title=f"displacement of {task.body}")
    left.legend()
    most = np.argsort(-np.abs(theirs["forces"] - theirs["forces"][0]).max(axis=0))[:3]
    for i, actuator in enumerate(most):
        for kind, run in runs.items():
            named = task.spec.actuators[actuator].name or f"actuator {actuator}"
            named = named if kind == "ours" else None
            right.plot(t, run["forces"][:, actuator], styles[kind], color=f"C{i}", label=named)
    right.set(xlabel="time (s)", ylabel="force (N, Nm)", title="actuators whose force changes most")
    right.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0)
    words = {
        "ours": "qdsim",
        "file": "MuJoCo, the file's contacts",
        "stiff": "MuJoCo, stiff contacts",
    }
    lines = [Line2D([], [], color="black", linestyle=styles[kind]) for kind in words]
    figure.legend(
        lines, words.values(), loc="outside upper center", ncols=3, title=name, frameon=False
    )
    figure.savefig(HERE.parents[1] / f"docs/images/robot_{name}.png", dpi=80)
    plt.close(figure)


def row(name: str, task: Task) -> str:
    ours = quasi_dynamic(task)
    runs = {"ours": ours, "file": simulated(task, ours, False)}
    runs["stiff"] = simulated(task, ours, True)
    draw(name, task, runs)
    a = ours["poses"]
    cells = [f"{1e3 * np.linalg.norm(a[-1, :3] - task.start):.0f}"]
    for kind in ("file", "stiff"):
        b = runs[kind]["poses"]
        apart = 1e3 * np.linalg.norm(a[-1, :3] - b[-1, :3])
        pull = np.abs(ours["forces"] - runs[kind]["forces"]).max(axis=1)
        cells += [
            f"{apart:.1f}, {angle_between(a[-1], b[-1]):.1f}",
            f"{np.median(pull):.2f}",
        ]
    cells += [
        f"{np.abs(runs['file']['forces']).max():.1f}",
        f"{ours['ms']:.2f}",
        f"{runs['file']['ms']:.1f}",
    ]
    return f"| {name} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("menagerie", type=Path)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    lines = [
        "| scene | way, mm | MuJoCo: apart, mm and degrees | force apart | stiff contacts: apart, mm and degrees "
        "| force apart | largest force | ms a step | mj_steps in it, ms |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, build in SCENES.items():
        if given.only and name not in given.only:
            continue
        try:
            task = build(given.menagerie)
        except (OSError, ValueError) as error:
            print(f"{name}: skipped, {str(error).splitlines()[0]}")
            continue
        lines.append(row(name, task))
        print(lines[-1], flush=True)
    if given.out:
        given.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
