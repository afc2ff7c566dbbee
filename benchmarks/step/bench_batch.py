"""Steps per second of batches, for several numbers of threads, compared with `mujoco.rollout` on as many threads.

Every contender takes the same number of steps from states near a grasp. Contenders take turns in every round, so that
changes of the machine's speed affect all of them. The table gives medians over rounds, the ratio to MuJoCo's on the
same threads, the speed on all threads divided by that on one, and the processor time of a step on one thread divided
by that on all of them (the cost of sharing, also on a machine that others use).

- `step_batch`, `linearize_batch`: independent samples. `rollout`: 50 successive steps per sample, with random
  commands at every step (standard deviation 0.05). *On sines*: commands oscillate with a period of 25 steps and this
  amplitude. *Warm*: each step starts from the solution of the one before.
- `mujoco.rollout`: 50 steps of 2 ms per sample, on the same file with the same position commands, MuJoCo's own
  margins and its integrator `implicitfast`.

A quasi-dynamic step is 50 times as long as MuJoCo's (0.1 s and 2 ms), so equal steps per second are 50 times the
simulated time.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from functools import partial
from importlib import resources

import mujoco
import mujoco.rollout
import numpy as np

import qdsim
from qdsim import systems

ROUNDS = 9
SAMPLES = 64
STEPS = 50
PLANAR_GRASP = np.array([0.0, 0.35, 0.0, -0.880505, -0.605922, 0.880505, 0.605922])
START = {
    "planar_pushing": np.array([0.0, 0.5, 0.0, 0.0, -0.1]),
    "planar_hand": PLANAR_GRASP,
}


def all_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def mujoco_speed(name: str, q: np.ndarray, u: np.ndarray, threads: int) -> Callable[[], float]:
    folder = resources.files("qdsim.systems")
    with resources.as_file(folder.joinpath(f"{name}.xml")) as path:
        spec = mujoco.MjSpec.from_file(str(path))
    for actuator in spec.actuators:
        actuator.set_to_position(kp=actuator.gainprm[0], kv=0.1 * actuator.gainprm[0])
    spec.option.timestep = 0.002
    # Explicit steps of 2 ms are unstable with these stiff drives on light fingers.
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    twin = spec.compile()
    if (twin.nq, twin.nu) != (q.shape[1], u.shape[2]):
        raise ValueError(f"{name}: MuJoCo counts other joints or actuators than qdsim")
    data = mujoco.MjData(twin)
    kind = mujoco.mjtState.mjSTATE_FULLPHYSICS
    state = np.zeros((len(q), mujoco.mj_stateSize(twin, kind)))
    for row, position in zip(state, q):
        data.qpos[:] = position
        mujoco.mj_getState(twin, data, row, kind)
    copies = [mujoco.MjData(twin) for _ in range(threads)]
    pool = mujoco.rollout.Rollout(nthread=threads if threads > 1 else 0)

    def call() -> float:
        start = time.perf_counter()
        pool.rollout(twin, copies, initial_state=state, control=u)
        return len(q) * u.shape[1] / (time.perf_counter() - start)

    return call


def speed(call: Callable[[], object], steps: int) -> Callable[[], float]:
    def timed() -> float:
        start = time.perf_counter()
        call()
        return steps / (time.perf_counter() - start)

    return timed


def contenders(name: str, threads: int) -> dict[str, Callable[[], float]]:
    system = systems.load(name)
    model = system.model
    rng = np.random.default_rng(0)
    start = START.get(name, model.default_q)
    q = np.stack(
        [model.integrate(start, 0.005 * rng.standard_normal(model.nv)) for _ in range(SAMPLES)]
    )
    hold = np.stack([model.command_from(row) for row in q])
    u = hold[:, None] + 0.05 * rng.standard_normal((SAMPLES, STEPS, model.nu))
    exact = qdsim.Options(margin=0.05)
    smooth = exact.replace(kappa=100.0)
    phase = 2 * np.pi * rng.random((SAMPLES, 1, model.nu))
    sines = hold[:, None] + 0.05 * np.sin(2 * np.pi / 25 * np.arange(STEPS)[:, None] + phase)
    many_q = np.repeat(q, STEPS, axis=0)
    many_u = u.reshape(-1, model.nu)
    count = SAMPLES * STEPS
    common = {"threads": threads, "errors": "mark"}
    return {
        "`mujoco.rollout`": mujoco_speed(name, q, u, threads),
        "`step_batch`, exact": speed(
            lambda: qdsim.step_batch(model, many_q, many_u, exact, **common), count
        ),
        "`step_batch`, kappa = 100": speed(
            lambda: qdsim.step_batch(model, many_q, many_u, smooth, **common), count
        ),
        "`linearize_batch`, kappa = 100": speed(
            lambda: qdsim.linearize_batch(model, many_q, many_u, smooth, **common), count
        ),
        "`rollout`, exact": speed(lambda: qdsim.rollout(model, q, u, exact, **common), count),
        "`rollout`, exact, warm": speed(
            lambda: qdsim.rollout(model, q, u, exact, warm_start=True, **common), count
        ),
        **{
            f"`rollout`, kappa = 100, {title}{', warm' * warm}": speed(
                partial(qdsim.rollout, model, q, course, smooth, warm_start=warm, **common), count
            )
            for title, course in (("random", u), ("sines", sines))
            for warm in (False, True)
        },
    }


def table(name: str, rounds: int) -> str:
    counts = sorted({1, 2, all_cores()} & set(range(1, all_cores() + 1)))
    calls = {
        (k, threads): call for threads in counts for k, call in contenders(name, threads).items()
    }
    speeds: dict[tuple[str, int], list[float]] = {key: [] for key in calls}
    busy: dict[tuple[str, int], list[float]] = {key: [] for key in calls}
    for round_index in range(rounds + 1):
        for key, call in calls.items():
            before = time.process_time()
            found = call()
            if round_index > 0:  # the first round warms up
                speeds[key].append(found)
                busy[key].append(time.process_time() - before)
    median = {key: statistics.median(values) for key, values in speeds.items()}
    effort = {key: statistics.median(values) for key, values in busy.items()}
    lines = [
        f"{name}, {SAMPLES} samples of {STEPS} steps",
        "",
        "| contender | threads | steps/s | / `mujoco.rollout` | / one thread | processor time |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for (contender, threads), value in median.items():
        lines.append(
            f"| {contender} | {threads} | {value:,.0f} "
            f"| {value / median[('`mujoco.rollout`', threads)]:.2f} "
            f"| {value / median[(contender, 1)]:.2f} "
            f"| {effort[(contender, 1)] / effort[(contender, threads)]:.2f} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    arguments = parser.parse_args()
    for name in ("planar_pushing", "planar_hand", "allegro_sphere"):
        print(table(name, arguments.rounds), end="\n\n")


if __name__ == "__main__":
    main()
