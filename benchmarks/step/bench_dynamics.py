"""The second-order step: heaps of spheres beside MuJoCo, growth with their number, small scenes, derivatives.

- Shaken spheres, 270 and 1001: `qdsim.systems.load_dynamic("brazil_nut_3d")`, from the same settled state, for
  half a second of shaking. MuJoCo 4 with the conjugate gradient solver and elliptic cones, at 5 ms
  as it is and with stiffer contacts and shorter steps until its deepest penetration is that of a
  rigid step. CPU seconds per simulated second.
- Growth: one step of settled grains, 30 to 3000 of them in one heap.
- 21 disks on a plank, which stand at a friction of 0.6 and spread at 0.4: medians over a motion.
- Small scenes: `step_dynamic` beside `step`, and its state and input derivatives beside `mjd_transitionFD`.

CPU times of one thread; contenders take turns where they are compared.
"""

from __future__ import annotations

import math
import statistics
import time

import mujoco
import numpy as np

import qdsim
from qdsim import systems
from qdsim.systems.heaps import shaking

RADIUS = 0.05
GRAINS = (30, 100, 300, 1000, 3000)


def cpu(call, rounds: int) -> float:
    """Return the smallest CPU seconds of a call."""
    times = []
    for _ in range(rounds):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)


def settled(grains: int, seconds: float):
    """Return the system and its state after grains have fallen for some time."""
    system = systems.load_dynamic("brazil_nut_3d", grains=grains)
    o = system.options.replace(h=0.03, restitution=0.0, margin=RADIUS / 2)
    done = system.simulate(seconds, o, tau=None)
    return system, done.q[-1], 0.0 * done.v[-1]


def deepest(model, q) -> float:
    return -float(model.collide(q, 0.0)["dist"].min(initial=0.0))


def ours(system, q, v, h: float, seconds: float):
    """Return CPU seconds per simulated second, median ms per step, deepest penetration, and largest gain of energy."""
    o = system.options.replace(h=h, margin=RADIUS / 2)
    tau = shaking(system.model, 0.05, 0.5, h)
    times, depth = [], 0.0
    for k in range(round(seconds / h)):
        start = time.process_time()
        s = qdsim.step_dynamic(system.model, q, v, [], o, tau=tau(k * h, q, v))
        times.append(time.process_time() - start)
        q, v = s.q_next, s.v_next
        depth = max(depth, deepest(system.model, q))
    return sum(times) / seconds, 1e3 * statistics.median(times), depth


def theirs(system, q, h: float, stiffness: float | None, seconds: float):
    """Return the same for MuJoCo; contacts have a time constant of `stiffness` steps, or MuJoCo's own 20 ms."""
    model = mujoco.MjModel.from_xml_string(system.model.description.to_mjcf())
    model.opt.timestep = h
    model.opt.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    model.opt.solver = mujoco.mjtSolver.mjSOL_CG
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    if stiffness is not None:
        model.geom_solref[:] = (stiffness * h, 1.0)
        model.geom_solimp[:, :2] = 0.999
    if model.npair:
        model.pair_solref[:], model.pair_solimp[:] = model.geom_solref[0], model.geom_solimp[0]
    data = mujoco.MjData(model)
    data.qpos[:] = q
    tau = shaking(system.model, 0.05, 0.5, h)
    times, depth = [], 0.0
    for k in range(round(seconds / h)):
        data.qfrc_applied[:] = tau(k * h, q, q)  # along z of free bodies: the same in both
        start = time.process_time()
        mujoco.mj_step(model, data)
        times.append(time.process_time() - start)
        if k % max(1, round(0.01 / h)) == 0:
            depth = max(depth, -data.contact.dist.min(initial=0.0))
    return sum(times) / seconds, 1e3 * statistics.median(times), depth


def shaken(grains: int) -> None:
    system, q, v = settled(grains, 0.6)
    print(f"\n## {grains + 1} shaken spheres\n\nOne heap; half a second of shaking.\n")
    print("| step | h ms | ms per step | CPU s per s | deepest / radius |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for h in (0.1, 0.02, 0.005):
        rate, each, depth = ours(system, q, v, h, 0.5)
        print(
            f"| qdsim, convex cone | {1e3 * h:g} | {each:.1f} | {rate:.2f} | {depth / RADIUS:.1e} |"
        )
    for name, h, stiffness in (
        ("MuJoCo, its own softness", 5e-3, None),
        ("MuJoCo, 2 h", 5e-3, 2.0),
        ("MuJoCo, 2 h", 2e-3, 2.0),
        ("MuJoCo, 2 h", 1e-3, 2.0),
        ("MuJoCo, 2 h", 5e-4, 2.0),
    ):
        rate, each, depth = theirs(system, q, h, stiffness, 0.5)
        print(f"| {name} | {1e3 * h:g} | {each:.1f} | {rate:.2f} | {depth / RADIUS:.1e} |")


def growth() -> None:
    print("\n## Growth\n\nOne step of 20 ms of settled grains.\n")
    print("| spheres | contacts that press | ms | factorisations |")
    print("| ---: | ---: | ---: | ---: |")
    counts, times = [], []
    for grains in GRAINS:
        system, q, v = settled(grains, 0.45)
        o = system.options.replace(h=0.02, margin=RADIUS / 2)
        first = qdsim.step_dynamic(system.model, q, v, [], o)
        call = lambda m=system.model, q=q, v=v, o=o: qdsim.step_dynamic(m, q, v, [], o)  # noqa: E731
        least = cpu(call, 3)
        pressing = int((first.contacts["force"][:, 0] > 1e-9).sum())
        print(
            f"| {grains + 1} | {pressing} | {1e3 * least:.1f} | {first.info.factorizations} |",
            flush=True,
        )
        counts.append(grains + 1)
        times.append(least)
    slope = np.polyfit(np.log(counts), np.log(times), 1)[0]
    print(f"\nExponent: {slope:.2f}.")


SMALL = {
    "cart": """<mujoco><worldbody><body><joint name="x" type="slide" axis="1 0 0"/><geom size=".1" mass="1"/></body>
</worldbody><actuator><position joint="x" kp="50"/></actuator></mujoco>""",
    "box on a plane": """<mujoco><worldbody><geom type="plane" size="9 9 1"/><body pos="0 0 .1"><freejoint/>
<geom type="box" size=".1 .1 .1" mass="1"/></body></worldbody></mujoco>""",
}


def small() -> None:
    print("\n## Small scenes\n")
    print(
        "| scene | step us | step_dynamic us | ratio | linearize_dynamic us | mjd_transitionFD us |"
    )
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    models = {name: qdsim.load(text) for name, text in SMALL.items()}
    for name in ("planar_hand", "allegro_sphere"):
        models[name] = systems.load(name).model
    models["21 disks"] = systems.load_dynamic("disks", friction=0.6).model
    for name, model in models.items():
        us = small_times(model, planar=name in ("planar_hand", "21 disks"))
        print(
            f"| {name} | {us['step']:.1f} | {us['dynamic']:.1f} | {us['dynamic'] / us['step']:.2f} "
            f"| {us['line']:.1f} | {us['fd']:.1f} |"
        )


def disks() -> None:
    """Print the times of the 21 disks of Anitescu and Hart 2003 with their step of 50 ms, over three seconds."""
    print("\n## 21 disks, h = 50 ms\n")
    print("| friction | law | from nothing us | from the step before us |")
    print("| ---: | --- | ---: | ---: |")
    for friction in (0.4, 0.6):
        for law in ("convex", "coulomb"):
            system = systems.load_dynamic("disks", friction=friction)
            model, o = system.model, system.options.replace(law=law)
            q, v, before = system.q, system.v, None
            times: dict[bool, list[float]] = {False: [], True: []}
            for _ in range(60):
                for warm, found in times.items():
                    start = before if warm else None
                    call = lambda m=model, q=q, v=v, o=o, s=start: qdsim.step_dynamic(  # noqa: E731
                        m, q, v, [], o, warm_start=s
                    )
                    found.append(cpu(call, 5))
                before = qdsim.step_dynamic(model, q, v, [], o, warm_start=before)
                q, v = before.q_next, before.v_next
            cold, warm = (1e6 * statistics.median(times[k]) for k in (False, True))
            print(f"| {friction} | {law} | {cold:.0f} | {warm:.0f} |")


def small_times(model, planar: bool):
    """Return the microseconds of both steps, of their derivatives, and of those of MuJoCo."""
    q = np.array(model.keyframes["start"].q if "start" in model.keyframes else model.default_q)
    u, v = model.command_from(q), np.zeros(model.nv)
    law = {"friction": "pyramid", "rays": 2} if planar else {}
    quasi, dynamic = qdsim.Options(h=0.01, **law), qdsim.DynamicOptions(h=0.01, **law)
    mj = mujoco.MjModel.from_xml_string(model.description.to_mjcf())
    mj.opt.timestep = 0.01
    data = mujoco.MjData(mj)
    data.qpos[:], data.ctrl[:] = q, u
    A, B = np.zeros((2 * mj.nv, 2 * mj.nv)), np.zeros((2 * mj.nv, mj.nu))
    calls = {
        "step": lambda: qdsim.step(model, q, u, quasi),
        "dynamic": lambda: qdsim.step_dynamic(model, q, v, u, dynamic),
        "line": lambda: qdsim.linearize_dynamic(model, q, v, u, dynamic),
        "fd": lambda: mujoco.mjd_transitionFD(mj, data, 1e-6, True, A, B, None, None),
    }
    return {key: 1e6 * each(call) for key, call in calls.items()}


def each(call) -> float:
    """Return the CPU seconds of one call, the smallest of five means; NaN if it fails."""
    try:
        repeat = max(1, math.ceil(0.02 / max(cpu(call, 3), 1e-7)))
    except qdsim.SolverError:
        return math.nan
    return min(cpu(lambda: [call() for _ in range(repeat)], 1) / repeat for _ in range(5))


if __name__ == "__main__":
    for grains in (269, 1000):
        shaken(grains)
    growth()
    small()
    disks()
