"""State and input derivatives of a second-order step compared with other simulators, from the same state in contact.

- qdsim: `linearize_dynamic`, exact, with the convex law on the cone; and smoothed.
- MuJoCo: `mjd_transitionFD`, centred differences, elliptic cones.
- Drake: its discrete plant (SAP) with automatic differentiation, if `drake` is installed.
- nimblephysics: its analytic Jacobians, if `nimblephysics` is installed (it needs NumPy 1).

Quasi-dynamic steps of qdsim bring the robot to rest against the object; commands move in the direction in which
distances decrease fastest. A last motion of 10 um in this direction makes the geometries overlap, because other
simulators count only overlaps. *Warm*: from the solution of a step from the same state, as along a motion. CPU time
of one thread, the smallest of seven rounds in which the contenders take turns.
"""

from __future__ import annotations

import contextlib
import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import mujoco
import numpy as np
from bench_dynamics import SMALL
from timing import race

import qdsim
from qdsim import systems
from qdsim.model import Model

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "worlds"))
from drake_world import DrakeScene
from nimble_world import NimbleWorld

H = 0.01
STEPS, PRESS, REACH, NEAREST = 40, 0.1, 0.2, 4
"""Quasi-dynamic steps; lead of the commands, m or rad; range, m, and number of the distances that are reduced."""
OVERLAP = 1e-5
ROUNDS = 7
LEAST_TIME = 0.01
"""Shortest duration of a measurement, s."""

BESIDE = {
    "qdsim, warm": "qdsim",
    "qdsim, smoothed": "qdsim",
    "MuJoCo": "qdsim",
    "MuJoCo, warm": "qdsim, warm",
    "Drake": "qdsim",
    "nimblephysics": "qdsim",
}
"""The simulators that are compared with qdsim."""

Jacobians = Callable[[], object]


def scenes() -> dict[str, tuple[Model, np.ndarray, np.ndarray]]:
    """Return models in contact, each with a state and commands."""
    found = {}
    for name, text in SMALL.items():
        model = qdsim.load(text)
        q = np.array(model.default_q)
        q[2:3] -= OVERLAP  # the box, into its plane
        found[name] = model, q, model.command_from(q)
    for name in ("planar_pushing", "planar_hand", "allegro_sphere"):
        found[name] = pressed(systems.load(name))
    return found


def pressed(system: systems.System) -> tuple[Model, np.ndarray, np.ndarray]:
    """Bring the robot to rest against the object."""
    model, o = system.model, system.options
    q = np.array(model.keyframes["start"].q)
    for _ in range(STEPS):
        way = nearer(model, q)
        u = model.command_from(q + PRESS * way)
        q = np.array(qdsim.step(model, q, u, o).q_next)
    return model, q + OVERLAP * nearer(model, q), u


def nearer(model: Model, q: np.ndarray) -> np.ndarray:
    """Return the unit direction of the robot's joints in which the sum of near distances decreases fastest."""
    joints = {a.joint for a in model.description.actuators}
    columns = [model.slice_q(joint).start for joint in joints]
    way = np.zeros(model.nq)
    for k in columns:
        move = np.eye(model.nq)[k] * 1e-6
        way[k] = gap(model, q - move) - gap(model, q + move)
    return way / np.linalg.norm(way)


def gap(model: Model, q: np.ndarray) -> float:
    return float(np.sort(model.collide(q, REACH)["dist"])[:NEAREST].sum())


def ours(
    model: Model,
    q: np.ndarray,
    u: np.ndarray,
    planar: bool,
    kappa: float | None = None,
    warm: bool = False,
) -> Jacobians:
    law = {"friction": "pyramid", "rays": 2} if planar else {}
    o = qdsim.DynamicOptions(h=H, kappa=kappa, **law)
    v = np.zeros(model.nv)
    before = qdsim.step_dynamic(model, q, v, u, o) if warm else None
    return lambda: qdsim.linearize_dynamic(model, q, v, u, o, warm_start=before)


def mujocos(model: Model, q: np.ndarray, u: np.ndarray, warm: bool = False) -> Jacobians:
    mj = mujoco.MjModel.from_xml_string(model.description.to_mjcf())
    mj.opt.timestep, mj.opt.cone = H, mujoco.mjtCone.mjCONE_ELLIPTIC
    data = mujoco.MjData(mj)
    data.qpos[:], data.ctrl[:] = q, u
    if warm:
        mujoco.mj_forward(mj, data)
        data.qacc_warmstart[:] = data.qacc
    A, B = np.zeros((2 * mj.nv, 2 * mj.nv)), np.zeros((2 * mj.nv, mj.nu))
    return lambda: mujoco.mjd_transitionFD(mj, data, 1e-6, True, A, B, None, None)


def drakes(model: Model, q: np.ndarray, u: np.ndarray) -> Jacobians:
    import pydrake.all as drake

    scene = DrakeScene(model, np.zeros(model.nv), H, False, sampled=False)
    diagram = scene.simulator.get_system().ToAutoDiffXd()
    context = diagram.CreateDefaultContext()
    plant = diagram.GetSubsystemByName("plant")
    own = plant.GetMyMutableContextFromRoot(context)
    x, many = np.zeros(model.nq + model.nv), model.nq + model.nv + model.nu
    x[: model.nq][scene.columns] = q
    state = drake.InitializeAutoDiff(x, many, 0)
    if model.nu:
        desired = np.concatenate((u[scene.order], np.zeros(model.nu)))
        wanted = drake.InitializeAutoDiff(desired, many + model.nu, len(x))[:, 0]
        wanted = [drake.AutoDiffXd(w.value(), w.derivatives()[:many]) for w in wanted]
        robot = plant.GetModelInstanceByName("robot")
        plant.get_desired_state_input_port(robot).FixValue(own, wanted)

    def jacobians() -> object:
        plant.SetPositionsAndVelocities(own, state)
        after = diagram.EvalUniquePeriodicDiscreteUpdate(context)
        return drake.ExtractGradient(after.get_vector().CopyToVector())

    return jacobians


def nimbles(model: Model, q: np.ndarray, u: np.ndarray) -> Jacobians:
    return NimbleWorld(model, q, u, H).jacobians


def seconds(call: Jacobians) -> Callable[[], float]:
    """Return a function that measures the CPU seconds of one call, as the mean of a sufficient number of calls."""
    start = time.process_time()
    call()
    repeat = max(1, math.ceil(LEAST_TIME / max(time.process_time() - start, 1e-7)))

    def timed() -> float:
        start = time.process_time()
        for _ in range(repeat):
            call()
        return (time.process_time() - start) / repeat

    return timed


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Suppress what libraries write to the standard error (nimblephysics: a line per contact along z)."""
    with open(os.devnull, "w", encoding="utf-8") as nothing:
        kept = os.dup(2)
        os.dup2(nothing.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)


def main() -> None:
    names = ["qdsim", *BESIDE]
    print(
        "Times in microseconds. In brackets: the time divided by that of qdsim's exact derivatives; times from warm starts "
        "are\ndivided by qdsim's from warm starts.\n"
    )
    print(f"| scene | degrees of freedom | contacts | {' | '.join(names)} |")
    print("| --- |" + " ---: |" * (len(names) + 2))
    for scene, (model, q, u) in scenes().items():
        planar = scene.startswith("planar")
        calls: dict[str, Callable[[], float]] = {}
        with quiet():
            calls["qdsim"] = seconds(ours(model, q, u, planar))
            calls["qdsim, warm"] = seconds(ours(model, q, u, planar, warm=True))
            calls["qdsim, smoothed"] = seconds(ours(model, q, u, planar, 1e3))
            calls["MuJoCo"] = seconds(mujocos(model, q, u))
            calls["MuJoCo, warm"] = seconds(mujocos(model, q, u, warm=True))
            for name, make in (("Drake", drakes), ("nimblephysics", nimbles)):
                # Drake has no derivatives between some shapes, a box and a half space for one, and says so.
                with contextlib.suppress(ImportError, RuntimeError):
                    calls[name] = seconds(make(model, q, u))
            least = {name: 1e6 * min(times) for name, times in race(calls, ROUNDS).items()}
        cells = [f"{least['qdsim']:.1f}"]
        for name, other in BESIDE.items():
            us = least.get(name, math.nan)
            cells.append("none" if math.isnan(us) else f"{us:.0f} ({us / least[other]:.1f})")
        touching = int((model.collide(q, 0.0)["dist"] < 0.0).sum())
        print(f"| {scene} | {model.nv} | {touching} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
