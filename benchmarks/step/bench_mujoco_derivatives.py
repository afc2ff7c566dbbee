"""Derivatives of MuJoCo's step: `qdsim.mujoco.linearize` beside centred `mjd_transitionFD`, on the same states.

Accuracy: the largest error of A and B, divided by the largest entry (or by 1 if that is larger), with its median and
its largest value over states. The reference is central differences of `mj_step` with the Newton solver at 1e-15, the
best of six step lengths. States at which no two successive lengths agree to 1e-6 lie at a kink: they are counted and
left out. States are taken every 40 steps from a rollout under random commands; mechanisms (springs, dampers, limits,
dry friction, tendons, activations; with each kind of equality; spatial tendons around geometries) are at random
states. `mjd_transitionFD` runs with its usual step of 1e-6, centred, at the same tight tolerance and at MuJoCo's
default one. Time: the smallest of single calls in rounds in which both take turns, at MuJoCo's default tolerance.
`mj_forward` is part of both, and has a column of its own. *At most*: the ratio if only `mj_forward` took time. One
thread.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import sys
import time
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

import qdsim.mujoco

ROOT = Path(__file__).resolve().parents[2]
DISCRETE = getattr(mujoco.mjtIntegrator, "mjINT_DISCRETE", None)
STEPS = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8)
BOXES = """<mujoco><option timestep="0.002" cone="{cone}" impratio="{impratio}"/><default><geom condim="{dim}"
friction="0.8 0.01 0.002"/></default><worldbody><geom type="plane" size="3 3 1"/>{bodies}</worldbody></mujoco>"""
BODY = '<body pos="{x} {y} {z}"><freejoint/><geom type="box" size="0.1 0.1 0.1" mass="1"/></body>'


def boxes(count: int, cone: str, dim: int, impratio: float) -> Any:
    bodies = [
        BODY.format(x=0.3 * (i % 3), y=0.3 * (i // 3 % 3), z=0.099 + 0.2 * (i // 9))
        for i in range(count)
    ]
    text = BOXES.format(cone=cone, impratio=impratio, dim=dim, bodies="".join(bodies))
    return mujoco.MjModel.from_xml_string(text)


def scenes() -> dict[str, Any]:
    found = {}
    for name in ("allegro_sphere_hardware", "allegro_pen", "planar_hand"):
        model = mujoco.MjModel.from_xml_path(str(files("qdsim.systems") / f"{name}.xml"))
        model.opt.timestep = min(model.opt.timestep, 0.002)
        model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
        found[name] = model
    for cone, dim, impratio in (
        ("elliptic", 3, 1),
        ("pyramidal", 3, 1),
        ("elliptic", 4, 10),
        ("elliptic", 6, 10),
    ):
        found[f"boxes, {cone}, condim {dim}, impratio {impratio}"] = boxes(4, cone, dim, impratio)
    found.update(discrete())
    found.update(robots())
    found.update(mechanisms())
    return found


def robots() -> dict[str, Any]:
    """Return models of gymnasium and gymnasium_robotics, if these are installed."""
    found = {}
    for name, package, path in (
        *(
            (name, "gymnasium", f"envs/mujoco/assets/{name}.xml")
            for name in ("humanoid", "walker2d", "half_cheetah", "pusher")
        ),
        ("shadow hand, block", "gymnasium_robotics", "envs/assets/hand/manipulate_block.xml"),
    ):
        spec = importlib.util.find_spec(package)
        if spec is None or spec.origin is None:
            continue
        model = mujoco.MjModel.from_xml_path(str(Path(spec.origin).parent / path))
        model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
        model.opt.density = model.opt.viscosity = 0.0
        found[name] = model
    return found


def mechanisms() -> dict[str, Any]:
    """Return models of the tests: every kind of drive, spring, limit, dry friction, equality and tendon."""
    sys.path[:0] = [str(ROOT / "tests" / room) for room in ("", "dynamics", "models", "steps")]
    from test_mujoco_derivatives import ALL_AT_ONCE, EQUALITIES, FINGER, MECHANISM

    found = {}
    for i, (equality, text) in enumerate(EQUALITIES.items()):
        integrator = ("Euler", "implicitfast")[i % 2]
        model = MECHANISM.format(option=f'integrator="{integrator}"', equality=text)
        found[f"mechanism, {integrator}, equality: {equality}"] = model
        if DISCRETE is not None:
            model = MECHANISM.format(option='integrator="discrete"', equality=text)
            found[f"mechanism, discrete, equality: {equality}"] = model
    found["spatial tendons"] = FINGER.format(**ALL_AT_ONCE)
    return {name: mujoco.MjModel.from_xml_string(text) for name, text in found.items()}


def discrete() -> dict[str, Any]:
    """Return a hand and damped boxes with the integrator "discrete", if MuJoCo has it."""
    if DISCRETE is None:
        return {}
    hand = mujoco.MjModel.from_xml_path(str(files("qdsim.systems") / "allegro_sphere_hardware.xml"))
    piled = boxes(4, "elliptic", 3, 1)
    hand.opt.timestep, piled.dof_damping[:] = 0.002, 0.5
    hand.opt.integrator = piled.opt.integrator = DISCRETE
    return {"allegro_sphere_hardware, discrete": hand, "boxes with dampers, discrete": piled}


def states(model: Any, count: int) -> list[Any]:
    """Return states along a rollout under small random controls; random states for models without contacts."""
    rng, found = np.random.default_rng(0), []
    data = mujoco.MjData(model)
    middle = np.array(data.ctrl)
    for i in range(model.nu):
        if model.actuator_biastype[i] == 1 and model.actuator_trntype[i] == 0:
            middle[i] = data.qpos[model.jnt_qposadr[model.actuator_trnid[i, 0]]]
    for _ in range(count):
        if model.na + model.ntendon > 0 and model.ngeom < 20:
            randomize(model, data, rng)
        else:
            data.ctrl[:] = middle + 0.1 * rng.normal(size=model.nu)
            for _ in range(40):
                mujoco.mj_step(model, data)
        copy = mujoco.MjData(model)
        mujoco.mj_copyData(copy, model, data)
        found.append(copy)
    return found


def randomize(model: Any, data: Any, rng: np.random.Generator) -> None:
    mujoco.mj_resetData(model, data)
    q = np.array(data.qpos)
    mujoco.mj_integratePos(model, q, 0.15 * rng.normal(size=model.nv), 1.0)
    data.qpos[:], data.qvel[:] = q, 0.5 * rng.normal(size=model.nv)
    data.ctrl[:] = 0.3 * rng.normal(size=model.nu)
    data.act[:] = 0.3 * rng.normal(size=model.na)
    data.qfrc_applied[:] = 0.1 * rng.normal(size=model.nv)
    mujoco.mj_forward(model, data)


def tighten(model: Any, tight: bool) -> None:
    model.opt.tolerance, model.opt.ls_tolerance = (1e-15, 1e-12) if tight else (1e-8, 0.01)
    model.opt.iterations = model.opt.ls_iterations = 1000 if tight else 100


def differences(model: Any, data: Any, step: float) -> np.ndarray:
    nv, na, nu = model.nv, model.na, model.nu
    twin = mujoco.MjData(model)
    out = np.zeros((2 * nv + na, 2 * nv + na + nu))
    for column in range(out.shape[1]):
        ends = []
        for sign in (1.0, -1.0):
            change = np.zeros(out.shape[1])
            change[column] = sign * step
            mujoco.mj_copyData(twin, model, data)
            q = np.array(data.qpos)
            mujoco.mj_integratePos(model, q, change[:nv], 1.0)
            twin.qpos[:], twin.qvel[:] = q, data.qvel + change[nv : 2 * nv]
            twin.act[:] = data.act + change[2 * nv : 2 * nv + na]
            twin.ctrl[:] = data.ctrl + change[2 * nv + na :]
            mujoco.mj_step(model, twin)
            ends.append((np.array(twin.qpos), np.concatenate([twin.qvel, twin.act])))
        dq = np.zeros(nv)
        mujoco.mj_differentiatePos(model, dq, 2 * step, ends[1][0], ends[0][0])
        out[:, column] = np.concatenate([dq, (ends[0][1] - ends[1][1]) / (2 * step)])
    return out


def transition_fd(model: Any, data: Any) -> np.ndarray:
    size = 2 * model.nv + model.na
    A, B = np.zeros((size, size)), np.zeros((size, model.nu))
    mujoco.mjd_transitionFD(model, data, 1e-6, 1, A, B, None, None)
    return np.hstack([A, B])


def exact(model: Any, data: Any) -> np.ndarray:
    found = qdsim.mujoco.linearize(model, data, contacts="differences")
    return np.hstack([found.A, found.B])


def accuracy(model: Any, data: Any) -> tuple[float, float, float] | None:
    """Return errors of qdsim, and of mjd_transitionFD with a tight and the default tolerance; None at a kink."""
    tighten(model, True)
    tried = [differences(model, data, step) for step in STEPS]
    scale = max(1.0, float(np.abs(tried[1]).max()))
    apart = [float(np.abs(a - b).max()) / scale for a, b in itertools.pairwise(tried)]
    best = int(np.argmin(apart))
    if apart[best] > 1e-6:
        return None
    ours = exact(model, data)
    error = [float(np.abs(ours - one).max()) / scale for one in tried[best : best + 2]]
    central = tried[best + int(np.argmin(error))]
    tight = float(np.abs(transition_fd(model, data) - central).max()) / scale
    tighten(model, False)
    return min(error), tight, float(np.abs(transition_fd(model, data) - central).max()) / scale


def seconds(call: Callable[[], object], repeat: int) -> float:
    """Return the seconds of the fastest call."""
    found = []
    for _ in range(repeat):
        start = time.perf_counter()
        call()
        found.append(time.perf_counter() - start)
    return min(found)


def row(name: str, model: Any, count: int, errors: list[tuple[float, float, float]]) -> str:
    """Return a row of the table, and append the errors of states without a kink to ``errors``."""
    found, before = states(model, count), len(errors)
    contacts = [data.ncon for data in found]
    for data in found:
        one = accuracy(model, data)
        if one is not None:
            errors.append(one)
    tighten(model, False)
    data = max(found, key=lambda one: one.ncon)
    times = [
        (
            seconds(lambda: qdsim.mujoco.linearize(model, data, contacts="differences"), 50),
            seconds(lambda: transition_fd(model, data), 10),
            seconds(lambda: mujoco.mj_forward(model, data), 50),
        )
        for _ in range(10)
    ]
    ours, theirs, forward = (min(one) for one in zip(*times, strict=True))
    own = np.array(errors[before:])
    worst = [f"{np.median(own[:, 0]):.0e}", *(f"{one:.0e}" for one in own.max(axis=0))]
    cells = [name, model.nv, f"{np.mean(contacts):.0f}", f"{len(own)} / {count}", *worst]
    cells += [f"{1e6 * one:.0f}" for one in (ours, forward, theirs)]
    cells += [f"{theirs / ours:.0f}", f"{theirs / forward:.0f}"]
    return "| " + " | ".join(map(str, cells)) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--states", type=int, default=56)
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    lines = [
        "# Derivatives of MuJoCo's step",
        "",
        " ".join((__doc__ or "").split("\n\n", 1)[1].split()),
        "",
        f"MuJoCo {mujoco.__version__}.",
        "",
        "| scene | DOFs | contacts | states without a kink | error: median | largest | of mjd_transitionFD, tight | default "
        "| µs | of mj_forward | of mjd_transitionFD | times | at most |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    errors: list[tuple[float, float, float]] = []
    for name, model in scenes().items():
        lines.append(row(name, model, arguments.states, errors))
        print(lines[-1], flush=True)
    ours = np.array(errors)[:, 0]
    parts = [f"{100 * part:g} % {np.quantile(ours, part):.0e}" for part in (0.5, 0.9, 0.99, 1.0)]
    total = arguments.states * (len(lines) - lines.index("| --- |" + " --- |" * 12) - 1)
    lines += ["", f"All {len(ours)} of {total} states without a kink: {', '.join(parts)}."]
    print(lines[-1])
    if arguments.output:
        arguments.output.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
