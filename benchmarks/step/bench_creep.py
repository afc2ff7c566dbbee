"""What a grasp loses a second: objects that friction holds creep in MuJoCo; beside the quasi-dynamic step.

Two plates of 0.5 kg on springs press a ball or a cube of 1 kg, whose weight is a quarter of the largest friction (with
"light squeeze": six tenths); or a box of 0.8 kg stands on an incline of 0.3 rad. Friction is 1; solref and solimp are
MuJoCo's defaults. Speeds are means over two seconds, after 0.3 s in which contacts settle. MuJoCo takes steps of 1 ms
with the integrator implicitfast; "noslip" means ten noslip iterations. "qdsim" is `Options(contacts="mujoco", h=0.05)`
with the file's cone and impratio and with epsilon 0.01 (in brackets: with the default, 1). "qdsim, rigid" has rigid
contacts and starts where MuJoCo's contacts have settled.

The second table, if Drake is installed: hydroelastic contact, in which the held object has a modulus of 1e7 Pa, steps
of 1 ms, and Drake's default approximation of friction ("lagged") or that of SAP.

The last table has the time of such a step compared with that of `mj_step`, cold and warm, for friction cones, pyramids
and rigid contacts (cones), with h = 0.1. The cube and the ball are those above. The grasps are those of
bench_grasps.py, at rest (the held command; warm: from its own step) and in motion (means over eight commands around it,
0.03 rad; warm: from the step of a command nearer to the held one by a tenth). In brackets: factorisations. Times are
the smallest of all rounds, in which the contenders take turns.

    python benchmarks/step/bench_creep.py
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib.util
import statistics
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import mujoco
import numpy as np
from bench_allegro import MARGIN, close_hand, mean_seconds, mujoco_twin, settle
from bench_grasps import NAMES, REPEAT, ROLLOUT, fastest, grasp

import qdsim
from qdsim import _core, systems
from qdsim.description import ContactSolver

SECONDS, REST, H = 2.0, 0.3, 0.05
PLATES = """<mujoco><option cone="{cone}" impratio="{impratio}" timestep="0.001" integrator="implicitfast"/>
<default><geom friction="1" condim="4"/></default><worldbody>
<body name="left" pos="-0.04 0 0.5"><joint name="left" type="slide" axis="1 0 0"/>
  <geom type="box" size="0.01 0.3 0.3" mass="0.5"/></body>
<body name="right" pos="0.04 0 0.5"><joint name="right" type="slide" axis="1 0 0"/>
  <geom type="box" size="0.01 0.3 0.3" mass="0.5"/></body>
<body name="held" pos="0 0 0.5"><freejoint/><geom type="{shape}" mass="1"/></body></worldbody>
<actuator><position joint="left" kp="5000" kv="200"/><position joint="right" kp="5000" kv="200"/></actuator></mujoco>"""
INCLINE = """<mujoco><option cone="{cone}" impratio="{impratio}" timestep="0.001" integrator="implicitfast"
 gravity="2.899 0 -9.372"/><worldbody><geom type="plane" size="1 1 1"/><body pos="0 0 0.05"><freejoint/>
 <geom type="box" size="0.05 0.05 0.05" mass="0.8"/></body></worldbody></mujoco>"""
SLOPE = (2.899, 0.0, -9.372)
BALL, CUBE = 'sphere" size="0.03', 'box" size="0.03 0.03 0.03'
CASES: dict[str, tuple[str, str, Sequence[float], int]] = {
    "ball between plates": (PLATES, BALL, (0.00392, -0.00392), 4),
    "cube between plates": (PLATES, CUBE, (0.00392, -0.00392), 4),
    "ball, light squeeze": (PLATES, BALL, (0.00163, -0.00163), 4),
    "box on an incline": (INCLINE, "", (), 0),
}


def simulated(source: str, u: Sequence[float], axis: int, noslip: int) -> tuple[np.ndarray, float]:
    """Simulate in MuJoCo; return the settled configuration, and the speed of the creep from there, mm/s."""
    model = mujoco.MjModel.from_xml_string(source)
    model.opt.noslip_iterations = noslip
    data = mujoco.MjData(model)
    data.ctrl[:] = u
    mujoco.mj_step(model, data, round(REST / model.opt.timestep))
    start = data.qpos.copy()
    mujoco.mj_step(model, data, round(SECONDS / model.opt.timestep))
    return start, 1e3 * abs(data.qpos[axis] - start[axis]) / SECONDS


def stepped(
    source: str, start: np.ndarray, u: Sequence[float], axis: int, **options: object
) -> float:
    """Compute the same speed by quasi-dynamic steps."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = qdsim.load(source)
        settings, q = qdsim.Options(h=H, **options), start  # type: ignore[arg-type]
        for _ in range(round(SECONDS / H)):
            q = qdsim.step(model, q, u, settings).q_next
    return 1e3 * abs(q[axis] - start[axis]) / SECONDS


def in_drake() -> None:
    """Print the table of Drake, if Drake is installed."""
    if importlib.util.find_spec("pydrake") is None:
        return
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "worlds"))
    from drake_creep import creep_in_drake

    print("\n| mm/s | Drake, lagged | Drake, sap |\n| --- | --- | --- |")
    for name, (scene, shape, u, _) in CASES.items():
        held = scene == PLATES
        half, mass, gravity = (0.03, 1.0, (0.0, 0.0, -9.81)) if held else (0.05, 0.8, SLOPE)
        cells = [
            creep_in_drake(half, mass, shape == BALL, u, gravity, law, REST, SECONDS)
            for law in ("lagged", "sap")
        ]
        print(f"| {name} | " + " | ".join(f"{cell:.2g}" for cell in cells) + " |", flush=True)


Contenders = dict[str, Callable[[], float]]
LAWS = ("cones", "pyramids", "rigid")


def both_cones(model: qdsim.Model) -> dict[str, qdsim.Model]:
    """Return the model with each of MuJoCo's two friction cones."""
    elliptic, pyramidal = (
        qdsim.build(dataclasses.replace(model.description, contact_solver=ContactSolver(cone, 1.0)))
        for cone in ("elliptic", "pyramidal")
    )
    return {"cones": elliptic, "pyramids": pyramidal, "rigid": elliptic}


def contenders(
    compiled: mujoco.MjModel,
    data: mujoco.MjData,
    models: dict[str, qdsim.Model],
    q: np.ndarray,
    hold: np.ndarray,
    commands: Sequence[np.ndarray],
) -> tuple[Contenders, dict[str, float]]:
    """Return calls named contender/command, and the mean number of factorisations of each contender."""
    state = np.zeros(mujoco.mj_stateSize(compiled, mujoco.mjtState.mjSTATE_FULLPHYSICS))
    mujoco.mj_getState(compiled, data, state, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    control = np.tile(data.ctrl, (1, ROLLOUT, 1))

    def rollout() -> None:
        mujoco.rollout.rollout(compiled, [data], initial_state=state[None], control=control)

    calls: Contenders = {"mj_step/0": lambda: mean_seconds([rollout], 1) / ROLLOUT}
    factors: dict[str, list[int]] = {}

    def add(law: str, index: int, u: np.ndarray) -> None:
        model = models[law]
        options = qdsim.Options(margin=MARGIN, contacts="rigid" if law == "rigid" else "mujoco")
        near = qdsim.step(model, q, hold + 0.9 * (u - hold), options)
        for kind, start in (("cold", None), ("warm", near)):
            factors.setdefault(f"{law} {kind}", []).append(
                qdsim.step(model, q, u, options, warm_start=start).info.factorizations
            )
            calls[f"{law} {kind}/{index}"] = lambda start=start: _core._step_benchmark(
                model, q, u, options, REPEAT, False, start
            )

    for index, u in enumerate(commands):
        for law in LAWS:
            add(law, index, u)
    return calls, {name: statistics.fmean(of) for name, of in factors.items()}


def times(rounds: int) -> None:
    print(
        "\n| grasp | | `mj_step` us | " + " | ".join(f"{law}: cold | warm" for law in LAWS) + " |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    options = qdsim.Options(margin=MARGIN)
    for name in ("cube between plates", "ball between plates", "allegro_sphere", *NAMES):
        if name in CASES:
            scene, shape, u, _ = CASES[name]
            source = scene.format(cone="pyramidal", impratio=1, shape=shape)
            compiled, hold, spread = mujoco.MjModel.from_xml_string(source), np.array(u), 1e-3
            q, model = simulated(source, u, 0, 0)[0], qdsim.load(source)
            data = mujoco.MjData(compiled)
            data.qpos[:], data.ctrl[:] = q, hold
        else:
            model, spread = systems.load(name).model, 0.03
            q, hold = (
                close_hand(model, options) if name == "allegro_sphere" else grasp(name, options)[1:]
            )
            compiled = mujoco_twin(MARGIN, name)
            data, _ = settle(compiled, q, hold)
        rng = np.random.default_rng(0)
        moved = [hold + spread * rng.standard_normal(len(hold)) for _ in range(8)]
        for title, commands in (("at rest", [hold]), ("in motion", moved)):
            calls, factors = contenders(compiled, data, both_cones(model), q, hold, commands)
            t = fastest(calls, rounds)
            cells = [f"{t[key] / t['mj_step']:.2f} ({factors[key]:.1f})" for key in factors]
            print(
                f"| {name} | {title} | {1e6 * t['mj_step']:.1f} | " + " | ".join(cells) + " |",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20)
    rounds = parser.parse_args().rounds
    print((__doc__ or "").split("\n\n    python")[0].split("\n\n", 1)[1] + "\n")
    print("| mm/s | cone | impratio | MuJoCo | qdsim | MuJoCo, noslip | qdsim, rigid |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, (scene, shape, u, axis) in CASES.items():
        for cone, impratio in (
            ("pyramidal", 1),
            ("pyramidal", 10),
            ("elliptic", 1),
            ("elliptic", 10),
        ):
            source = scene.format(cone=cone, impratio=impratio, shape=shape)
            start, creep = simulated(source, u, axis, 0)
            _, held = simulated(source, u, axis, 10)
            ours, slow = (
                stepped(source, start, u, axis, contacts="mujoco", epsilon=epsilon)
                for epsilon in (0.01, 1.0)
            )
            rigid = stepped(source, start, u, axis)
            print(
                f"| {name} | {cone} | {impratio} | {creep:.3g} | {ours:.3g} ({slow:.3g}) | {held:.2g} | {rigid:.2g} |"
            )
    in_drake()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        times(rounds)


if __name__ == "__main__":
    main()
