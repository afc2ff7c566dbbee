"""MuJoCo's own law in the second-order step: `step_dynamic` with contacts="mujoco" beside `mj_step`.

Colliders: one body over another, for each pair of shapes, at random poses in contact, with elliptic cones and the
integrator Euler. Columns: the number of states with the same contact points in both simulators (to 1e-9 m), and the
largest difference of velocities after a step of 2 ms, m/s and rad/s, in these states and in the others. Springs and
dampers: an arm with a ball joint, a free ball on a plane and two slides, whose joints, tendons and actuators have what
the row names; the same difference after a step of 4 ms, in states with the same contact points. Time: the
smallest of single calls in rounds in which all take turns, with the integrator "discrete" and MuJoCo's default
tolerance (the step of qdsim is exact to 1e-9). Warm: from the step before. One thread.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable
from importlib.resources import files
from typing import Any

import mujoco
import numpy as np

import qdsim

SHAPES = {
    "plane": 'type="plane" size="1 1 1"',
    "sphere": 'type="sphere" size="0.1"',
    "capsule": 'type="capsule" size="0.06 0.1"',
    "box": 'type="box" size="0.1 0.08 0.06"',
    "cylinder": 'type="cylinder" size="0.08 0.07"',
    "ellipsoid": 'type="ellipsoid" size="0.1 0.08 0.06"',
    "mesh": 'type="mesh" mesh="m"',
}
PAIR = """<mujoco><option timestep="0.002" cone="elliptic"/><asset><mesh name="m" vertex="{vertices}"/></asset>
<worldbody><geom name="a" {a}/><body name="b" pos="0 0 1"><freejoint/><geom name="b" mass="1" {b}/></body></worldbody></mujoco>"""
DISCRETE = 4
INTEGRATORS = {"Euler": 0, "implicitfast": 3, "discrete": DISCRETE}
ARM = """<mujoco><option timestep="0.004" cone="elliptic"/><worldbody><geom type="plane" size="3 3 0.1"/>
<body pos="0 0 0.3"><joint name="a" axis="0 1 0" {joint}/><geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.03" mass="1"/>
<body pos="0.3 0 0"><joint name="b" axis="0 1 0" {joint}/><geom type="capsule" fromto="0 0 0 0.3 0 -0.1" size="0.03" mass="1"/>
<body pos="0.3 0 -0.1"><joint type="ball" {joint}/><geom size="0.05" pos="0.05 0 0" mass="0.3"/></body></body></body>
<body pos="1 0 0.099"><joint type="free" {joint}/><geom size="0.1" mass="1"/></body>
<body pos="0 2 0.5"><joint name="s" type="slide" axis="0 0 1"/><geom size="0.1"/></body>
<body pos="0 3 0.5"><joint name="t" type="slide" axis="0 0 1" armature="0.3"/><geom size="0.1"/></body></worldbody>
<tendon><fixed name="ab" {tendon}><joint joint="a" coef="1"/><joint joint="b" coef="-0.7"/></fixed>
<fixed {tendon}><joint joint="s" coef="1"/><joint joint="t" coef="0.5"/></fixed></tendon>
<actuator><position joint="b" kp="20" kv="{kv}"/><position tendon="ab" kp="9" kv="{kv}"/><motor joint="a"/></actuator></mujoco>"""
DRIVES = {
    "servos": {},
    "servos with damping": {"kv": 1.0},
    "springs of joints": {"joint": 'stiffness="4"'},
    "dampers of joints": {"joint": 'damping="0.3"'},
    "springs and dampers of tendons": {"tendon": 'stiffness="5" damping="0.5"'},
    "all": {
        "kv": 1.0,
        "joint": 'stiffness="4" damping="0.3"',
        "tendon": 'stiffness="5" damping="0.5"',
    },
}


def pair_model(a: str, b: str) -> Any:
    rng = np.random.default_rng(0)
    points = rng.normal(size=(20, 3))
    points *= 0.1 / np.linalg.norm(points, axis=1, keepdims=True)
    text = PAIR.format(
        a=SHAPES[a], b=SHAPES[b], vertices=" ".join(f"{x:.6f}" for x in points.ravel())
    )
    return mujoco.MjModel.from_xml_string(text)


def touching(model: Any, data: Any, rng: np.random.Generator) -> None:
    """Turn the body at random, and move it until it is one to three millimetres deep."""
    mujoco.mj_resetData(model, data)
    turn = rng.normal(size=4)
    data.qpos[3:] = turn / np.linalg.norm(turn)
    away = rng.normal(size=3)
    away[2] = abs(away[2])
    away /= np.linalg.norm(away)
    depth, low, high = rng.uniform(1e-3, 3e-3), 0.0, 1.0
    for _ in range(50):
        middle = 0.5 * (low + high)
        data.qpos[:3] = middle * away
        mujoco.mj_forward(model, data)
        apart = min((c.dist for c in data.contact), default=1.0)
        low, high = (middle, high) if apart < -depth else (low, middle)
    data.qpos[:3] = high * away
    data.qvel[:] = rng.normal(size=6)


def same_points(data: Any, step: qdsim.DynamicStep) -> bool:
    if len(step.contacts) != data.ncon:
        return False
    theirs = np.array([[*c.pos, c.dist] for c in data.contact]).reshape(-1, 4)
    ours = np.column_stack((step.contacts["pos"], step.contacts["dist"]))
    return all(np.abs(theirs - row).max(axis=1).min() < 1e-9 for row in ours)


def tight(model: Any) -> None:
    model.opt.tolerance, model.opt.iterations, model.opt.ls_tolerance = 1e-15, 300, 1e-12


def collider_line(a: str, b: str, count: int) -> str:
    mj = pair_model(a, b)
    tight(mj)
    model, data, rng = qdsim.load(mj), mujoco.MjData(mj), np.random.default_rng(1)
    options = qdsim.DynamicOptions(h=mj.opt.timestep, contacts="mujoco")
    errors: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(count):
        touching(mj, data, rng)
        mujoco.mj_forward(mj, data)
        v = qdsim.from_mujoco_velocity(model, data.qpos, data.qvel)
        step = qdsim.step_dynamic(model, data.qpos, v, [], options)
        same = same_points(data, step)
        mujoco.mj_step(mj, data)
        found = qdsim.to_mujoco_velocity(model, step.q_next, step.v_next)
        errors[same].append(float(np.abs(found - data.qvel).max()))
    cells = [f"{max(part):.0e}" if part else "" for part in errors.values()]
    return f"| {a} - {b} | {len(errors[True])} / {count} | {cells[0]} | {cells[1]} |"


def drive_line(name: str, count: int) -> str:
    cells = []
    for integrator in INTEGRATORS.values():
        mj = mujoco.MjModel.from_xml_string(
            ARM.format(**{"joint": "", "tendon": "", "kv": 0.0, **DRIVES[name]})
        )
        tight(mj)
        mj.opt.integrator = integrator
        model, data, rng = qdsim.load(mj), mujoco.MjData(mj), np.random.default_rng(2)
        options = qdsim.DynamicOptions(h=mj.opt.timestep, contacts="mujoco")
        errors = []
        for _ in range(count):
            mujoco.mj_resetData(mj, data)
            mujoco.mj_integratePos(mj, data.qpos, 0.05 * rng.normal(size=mj.nv), 1.0)
            data.qvel[:], data.ctrl[:] = 0.5 * rng.normal(size=mj.nv), 0.3 * rng.normal(size=mj.nu)
            mujoco.mj_forward(mj, data)
            v = qdsim.from_mujoco_velocity(model, data.qpos, data.qvel)
            step = qdsim.step_dynamic(model, data.qpos, v, data.ctrl, options)
            if same_points(data, step):
                mujoco.mj_step(mj, data)
                found = qdsim.to_mujoco_velocity(model, step.q_next, step.v_next)
                errors.append(float(np.abs(found - data.qvel).max()))
        cells.append(f"{max(errors):.0e}")
    return f"| {name} | {' | '.join(cells)} |"


def timed(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def scene_model(name: str) -> Any:
    if name == "box on a plane":
        text = PAIR.format(a=SHAPES["plane"], b=SHAPES["box"], vertices="0 0 0 1 0 0 0 1 0 0 0 1")
        mj = mujoco.MjModel.from_xml_string(text)
        mj.qpos0[2] = 0.0599
    else:
        mj = mujoco.MjModel.from_xml_path(str(files("qdsim.systems") / f"{name}.xml"))
    mj.opt.timestep, mj.opt.integrator = 0.002, DISCRETE
    return mj


def time_line(name: str, rounds: int) -> str:
    mj = scene_model(name)
    model, data = qdsim.load(mj), mujoco.MjData(mj)
    if mj.nkey:
        mujoco.mj_resetDataKeyframe(mj, data, 0)
    for i in range(mj.nu):
        data.ctrl[i] = data.qpos[mj.jnt_qposadr[mj.actuator_trnid[i, 0]]]
    for _ in range(20):
        mujoco.mj_step(mj, data)
    state = data.qpos.copy(), data.qvel.copy()
    q, u = state[0], data.ctrl.copy()
    v = qdsim.from_mujoco_velocity(model, q, state[1])
    options = qdsim.DynamicOptions(h=mj.opt.timestep, contacts="mujoco")
    first = qdsim.step_dynamic(model, q, v, u, options)
    again = mujoco.MjData(mj)

    def reset(cold: bool) -> None:
        again.qpos[:], again.qvel[:], again.ctrl[:] = *state, u
        again.qacc_warmstart[:] = 0.0 if cold else data.qacc

    times: dict[str, list[float]] = {}
    calls = {
        "mj_step, cold": (lambda: reset(True), lambda: mujoco.mj_step(mj, again)),
        "mj_step, warm": (lambda: reset(False), lambda: mujoco.mj_step(mj, again)),
        "cold": (lambda: None, lambda: qdsim.step_dynamic(model, q, v, u, options)),
        "warm": (
            lambda: None,
            lambda: qdsim.step_dynamic(model, q, v, u, options, warm_start=first),
        ),
        "derivatives": (lambda: None, lambda: qdsim.linearize_dynamic(model, q, v, u, options)),
    }
    for _ in range(rounds):
        for what, (prepare, call) in calls.items():
            prepare()
            times.setdefault(what, []).append(timed(call))
    micros = {what: 1e6 * min(values) for what, values in times.items()}
    cells = " | ".join(f"{micros[what]:.0f}" for what in calls)
    return f"| {name} | {mj.nv} | {len(first.contacts)} | {cells} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--states", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=300)
    given = parser.parse_args()
    lines = [
        "# MuJoCo's own law in the second-order step",
        "",
        " ".join((__doc__ or "").split("\n\n", 1)[1].split()),
        "",
        f"MuJoCo {mujoco.__version__}.",
        "",
        "| pair | same points | difference there | elsewhere |",
        "| --- | --- | --- | --- |",
    ]
    pairs = [("plane", b) for b in SHAPES if b != "plane"]
    pairs += list(itertools.combinations_with_replacement([s for s in SHAPES if s != "plane"], 2))
    lines += [collider_line(a, b, given.states) for a, b in pairs]
    lines += [
        "",
        f"| springs and dampers | {' | '.join(INTEGRATORS)} |",
        "| --- | --- | --- | --- |",
        *(drive_line(name, given.states) for name in DRIVES),
    ]
    lines += [
        "",
        "| scene | DOFs | contacts | `mj_step` cold, us | warm | `step_dynamic` cold | warm | with derivatives |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    names = ("box on a plane", "allegro_sphere", "allegro_cube", "iiwa_bimanual_box")
    lines += [time_line(name, given.rounds) for name in names]
    print("\n".join(lines))


if __name__ == "__main__":
    main()
