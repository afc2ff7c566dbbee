"""``SamplingMpc``: the time of a control period, and executions of a cube and a pen in MuJoCo without a plan.

Periods: the cube in the Allegro hand, 100 samples, a horizon of 1 s, 20 calls with the quasi-dynamic model and 4 with
the others, after a first call that does not count. The table has wall time, CPU time of all threads per call, and the
share of the model's roll-outs. *Second order*: the package's own step at 10 ms. *MuJoCo*: ``mujoco.rollout`` at 4 ms
with stiff contacts.

Goals: those of bench_cube.py, 8 s, actuators of 0.7 Nm; the pen has the goal of its task, 24 s. The world is MuJoCo
at 1 ms. *Reached*: within the task's tolerances at the end. Predictions are quasi-dynamic except in rows with
"MuJoCo".

    python benchmarks/planning/bench_sampling.py [--goals 6] [--seeds 2] [--slow] [--periods-only]
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
from bench_cube import FORCE, tasks_of

from qdsim import planning, systems
from qdsim.planning import Mpc, SamplingMpc, SamplingOptions, Task, TransferOptions
from qdsim.planning.execution.plant import Plant

THREADS = (1, 2, 4)
Made = tuple[float, float, bool, float]


def mujoco_model(task: Task, contacts: str) -> planning.MujocoModel:
    world = TransferOptions(contacts=contacts)  # type: ignore[arg-type]
    return planning.MujocoModel(planning.second_order(task.model, task.object, world))


def periods() -> None:
    task = systems.load("allegro_cube").tasks["turn"]
    models: dict[str, Callable[[], planning.Predictor | None]] = {
        "quasi-dynamic": lambda: None,
        "second order": lambda: planning.SecondOrderModel(task.model),
        "MuJoCo": lambda: mujoco_model(task, "stiff"),
    }
    print("## A control period\n")
    print("| model | threads | ms, least | ms, median | ms of CPU | of it steps |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, make in models.items():
        for threads in THREADS:
            loop = SamplingMpc(task, SamplingOptions(threads=threads), model=make(), hold=False)
            calls = 20 if name == "quasi-dynamic" else 4
            for _ in range(5 if calls > 4 else 1):
                loop.act(task.start)
            seconds, steps, cpu = [], [], time.process_time()
            for _ in range(calls):
                begin = time.perf_counter()
                loop.act(task.start)
                seconds.append(time.perf_counter() - begin)
                steps.append(loop.report.step_seconds)
            cpu = (time.process_time() - cpu) / calls
            print(
                f"| {name} | {threads} | {1e3 * min(seconds):.0f} | {1e3 * statistics.median(seconds):.0f} "
                f"| {1e3 * cpu:.0f} | {sum(steps) / sum(seconds):.0%} |",
                flush=True,
            )


def drive(
    task: Task, loop: SamplingMpc | Mpc, contacts: str, force: float | None, seconds: float
) -> Made:
    """Return the object's final errors (m and rad), whether the goal is reached, and CPU seconds per period."""
    world = TransferOptions(force=force, contacts=contacts, timestep=1e-3)  # type: ignore[arg-type]
    mj = planning.second_order(task.model, task.object, world)
    plant = Plant(task.model, task.space, mj, world, compensated=True)
    plant.reset(task.start)
    u, cpu, count = np.asarray(task.model.command_from(task.start)), 0.0, round(10 * seconds)
    for _ in range(count):
        begin = time.process_time()
        wanted = loop.act(plant.q)
        cpu += time.process_time() - begin
        for k in range(1, 101):
            plant.advance(u + (k / 100) * (wanted - u))
        u = wanted
    shift, turn = task.space.errors(plant.q, task.goal)
    return shift, turn, task.reached(plant.q), cpu / count


def row(name: str, runs: list[Made]) -> None:
    shift, turn, reached, cpu = (np.array(column) for column in zip(*runs))
    ends = ", ".join(f"{np.degrees(t):.1f}" for t in turn)
    print(
        f"| {name} | {reached.sum()} of {len(runs)} | {1e3 * np.median(shift):.1f} "
        f"| {np.degrees(np.median(turn)):.1f} ({ends}) | {1e3 * cpu.mean():.0f} |",
        flush=True,
    )


def goals(count: int, seeds: int, slow: bool) -> None:
    print("\n## Goals\n")
    print(
        "| system, contacts, control | reached | mm, median | degrees, median (all) | ms of CPU a period |"
    )
    print("| --- | --- | --- | --- | --- |")
    tasks = tasks_of(1.0, count)
    for contacts in ("stiff", "default"):
        loops: dict[str, Callable[[Task], SamplingMpc | Mpc]] = {
            "Mpc": Mpc,
            **{
                method: lambda t, m=method: SamplingMpc(t, SamplingOptions(method=m, threads=1))  # type: ignore[misc]
                for method in ("cem", "mppi", "predictive")
            },
            "cem, guided by Mpc": lambda t: SamplingMpc(
                t, SamplingOptions(threads=1), guide=Mpc(t, hold=False)
            ),
        }
        if slow:
            loops["cem, MuJoCo"] = lambda t, c=contacts: SamplingMpc(  # type: ignore[misc]
                t, SamplingOptions(threads=1, samples=50), model=mujoco_model(t, c)
            )
        for name, make in loops.items():
            runs = [drive(t, make(t), contacts, FORCE, 8.0) for t in tasks]
            row(f"cube, {contacts}, {name}", runs)
    pen = systems.load("allegro_pen").tasks["place"]
    runs = [
        drive(pen, SamplingMpc(pen, SamplingOptions(threads=1), s), "stiff", None, 24.0)
        for s in range(seeds)
    ]
    row("pen, stiff, cem", runs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--goals", type=int, default=6)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--slow", action="store_true", help="with MuJoCo's model for goals too")
    parser.add_argument("--periods-only", action="store_true")
    arguments = parser.parse_args()
    print("# Control by sampling\n")
    periods()
    if not arguments.periods_only:
        goals(arguments.goals, arguments.seeds, arguments.slow)


if __name__ == "__main__":
    main()
