"""iMPC: the quadratic program, CQDC's Table II, random goals, and closed loop. One thread; times are CPU seconds.

CQDC does not print the weights of its Table II. The authors' released scripts have them, as well as goals, horizons
and schedules; all of these are used here. Contenders take turns in every round.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import piqp
import scipy.linalg
import scipy.sparse

import qdsim
from qdsim import systems
from qdsim._core import _solve_ocp_qp
from qdsim.planning import ImpcOptions, ImpcResult, Mpc, Task, TrackingCost, impc
from qdsim.planning.tracking.shooting import Shooting
from qdsim.smoothing import Exact, Randomized, Scheme

Array = npt.NDArray[np.float64]

TASKS = {
    "planar_pushing": "push_and_turn",
    "planar_hand": "shift_and_turn",
    "allegro_sphere": "turn",
    "allegro_sphere_hardware": "turn",
}
# Released schedules: kappa from, kappa to, iterations of the script (the base of the schedule), A used,
# trust region, standard deviation of the samples.
SCRIPTS: dict[str, dict[str, Any]] = {
    "planar_pushing": {"kappa": 100.0, "final": 2000.0, "span": 20, "run": 10, "A": True, "box": 0.2, "std": 0.2},
    "planar_hand": {"kappa": 500.0, "final": 1000.0, "span": 20, "run": 20, "A": False, "box": 0.2, "std": 0.2},
    "allegro_sphere": {"kappa": 100.0, "final": 6000.0, "span": 10, "run": 10, "A": False, "box": 0.1, "std": 0.3},
    "allegro_sphere_hardware": {"kappa": 200.0, "final": 6000.0, "span": 15, "run": 15, "A": False, "box": 0.03, "std": 0.2},
}  # fmt: skip
# The authors' released code on one 2.5 GHz core: iterations, first cost, best cost, seconds.
RELEASED = {
    "planar_pushing": (10, 3421.0, 122.0, 0.8),
    "planar_hand": (20, 408.0, 18.3, 5.0),
    "allegro_sphere_hardware": (15, 81.0, 8.2, 11.9),
}
# CQDC, Table II: cost, seconds (20 iterations; 16 cores).
TABLE = {
    "analytic": {"planar_pushing": (11.74, 2.17), "planar_hand": (26.55, 5.20), "allegro_sphere": (5.78, 19.59)},
    "randomized, first order": {"planar_pushing": (11.73, 4.64), "planar_hand": (17.87, 23.09), "allegro_sphere": (8.42, 40.07)},
    "randomized, zeroth order": {"planar_pushing": (12.86, 4.61), "planar_hand": (18.29, 11.93), "allegro_sphere": (28.21, 34.05)},
    "exact": {"planar_pushing": (31.64, 1.88), "planar_hand": (18.49, 5.91), "allegro_sphere": (44.68, 12.92)},
}  # fmt: skip
SAMPLES = 100
# What the scripts sample; the others are analytic.
OWN_SMOOTHING = {
    "planar_pushing": "randomized, first order",
    "planar_hand": "randomized, zeroth order",
}
TOLERANCE = 1e-8


def task_of(name: str) -> Task:
    return systems.load(name).tasks[TASKS[name]]


def published(name: str, task: Task, iterations: int) -> ImpcOptions:
    script = SCRIPTS[name]
    assert task.impc is not None
    first = script["kappa"]
    return ImpcOptions.published(
        cost=task.impc.cost,
        kappa=(first, first * (script["final"] / first) ** (iterations / script["span"])),
        use_A=script["A"],
        radii=(script["box"],),
        iterations=iterations,
        threads=1,
    )


def ours(task: Task, **changes: Any) -> ImpcOptions:
    assert task.impc is not None
    return task.impc.replace(threads=1, **changes)


def timed(task: Task, options: ImpcOptions, seed: int = 0) -> tuple[ImpcResult, float]:
    """Make a run, and measure its processor time, on which other processes have the least effect."""
    begin = time.process_time()
    found = impc(task, options, rng=seed)
    return found, time.process_time() - begin


def schemes(name: str) -> dict[str, Callable[[int], Scheme] | Scheme | None]:
    std = SCRIPTS[name]["std"]
    return {
        "analytic": None,
        "randomized, first order": lambda i: Randomized(std / (i + 1) ** 0.8, SAMPLES),
        "randomized, zeroth order": lambda i: Randomized(std / (i + 1) ** 0.8, SAMPLES, "zeroth"),
        "exact": Exact(),
    }


# ---------------------------------------------------------------- the quadratic program


def programs(name: str) -> tuple[list[Any], list[Any], list[Any]]:
    """Return the arguments of `_solve_ocp_qp`, and set-ups of PIQP, dense over the inputs and sparse.

    The model is that of an iterate of the optimisation; the box is 0.2 or that of the task.
    """
    task = task_of(name)
    options = ours(task, iterations=3)
    parts = Shooting(task, options)
    found = impc(task, options)
    before = np.asarray(task.model.command_from(task.start))
    path = parts.roll_out(task.start, found.u, before)
    local = parts.linearize(path, options.scheme(0), 0)
    T, nx, nu = local.B.shape
    offset = -(local.B @ path.u[..., None])[..., 0]
    lower, upper = path.u - parts.boxes[0], path.u + parts.boxes[0]
    mine = [
        local.A, local.B, offset, None, before, local.Q, local.linear, None, None, parts.moves, None,
        None, None, lower, upper, None, None, True, 1, TOLERANCE, 100,
    ]  # fmt: skip
    Q, S = scipy.linalg.block_diag(*local.Q), scipy.linalg.block_diag(*parts.moves)
    D = np.eye(T * nu) - np.eye(T * nu, k=-nu)
    e = np.concatenate([-before, np.zeros((T - 1) * nu)])
    L = np.eye(T * nx)  # L x = Bu + c
    for t in range(1, T):
        L[t * nx : (t + 1) * nx, (t - 1) * nx : t * nx] = -local.A[t]
    B = scipy.linalg.block_diag(*local.B)
    M, m = np.linalg.solve(L, B), np.linalg.solve(L, offset.ravel())
    H = M.T @ Q @ M + D.T @ S @ D
    g = M.T @ (Q @ m + local.linear.ravel()) + D.T @ S @ e
    dense = [0.5 * (H + H.T), g, None, None, None, None, None, lower.ravel(), upper.ravel()]
    P = scipy.sparse.csc_matrix(scipy.linalg.block_diag(D.T @ S @ D, Q))
    linear = np.concatenate([D.T @ S @ e, local.linear.ravel()])
    free = np.full(T * nx, np.inf)
    sparse = [
        P, linear, scipy.sparse.csc_matrix(np.hstack([-B, L])), offset.ravel(), None, None, None,
        np.concatenate([lower.ravel(), -free]), np.concatenate([upper.ravel(), free]),
    ]  # fmt: skip
    return mine, dense, sparse


def piqp_run(kind: Any, setup: list[Any]) -> tuple[float, Array]:
    solver = kind()
    solver.settings.eps_abs = solver.settings.eps_rel = TOLERANCE
    solver.settings.eps_duality_gap_abs = solver.settings.eps_duality_gap_rel = TOLERANCE
    begin = time.process_time()
    solver.setup(*setup)
    status = solver.solve()
    seconds = time.process_time() - begin
    assert status == piqp.PIQP_SOLVED, status
    return seconds, np.array(solver.result.x)


def check_same(dense: list[Any], x: Array, y: Array) -> None:
    """Check that both inputs are solutions: they agree to the accuracy of PIQP at 1e-8."""
    costs = [0.5 * v @ dense[0] @ v + dense[1] @ v for v in (x, y)]
    assert abs(costs[0] - costs[1]) <= 1e-6 * abs(costs[1]), costs
    np.testing.assert_allclose(x, y, atol=1e-3)


def print_programs(rounds: int) -> None:
    print("## The quadratic program of one iteration, horizon 20\n")
    print(
        "Set-up and solution in microseconds, median (minimum); tolerance 1e-8. The solutions agree in the inputs to "
        "1e-3 and in the cost to 1e-6 (dense PIQP differs most).\n"
    )
    print("| system | states, inputs | qdsim | iterations | PIQP, condensed | PIQP, sparse |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name in TASKS:
        mine, dense, sparse = programs(name)
        times: dict[str, list[float]] = {"qdsim": [], "dense": [], "sparse": []}
        for _ in range(rounds):
            solution = _solve_ocp_qp(*mine)
            times["qdsim"].append(solution[9])
            for key, kind, setup in (
                ("dense", piqp.DenseSolver, dense),
                ("sparse", piqp.SparseSolver, sparse),
            ):
                seconds, x = piqp_run(kind, setup)
                times[key].append(seconds)
                check_same(dense, x[: solution[1].size], solution[1].ravel())
        cells = [f"{1e6 * statistics.median(v):.0f} ({1e6 * min(v):.0f})" for v in times.values()]
        _, nx, nu = mine[1].shape
        print(
            f"| {name} | {nx}, {nu} | {cells[0]} | {solution[8].iterations} | {cells[1]} | {cells[2]} |"
        )


# ---------------------------------------------------------------- against the released code


def print_released(rounds: int) -> None:
    print("\n## The released scripts, settings for settings\n")
    print(
        "The schedule, weights, start, iterations and trust region of the released scripts (analytic smoothing), "
        "compared with the authors' released C++ and Python code on one 2.5 GHz core (whose times are those of analytic "
        "smoothing). Then the defaults of this package, with as many iterations and to the end. Seconds: median "
        "(minimum) of the rounds.\n\n"
        "*Equal or lower cost*: the default, stopped after the first iteration whose best cost is at most the authors'. "
        "The column has its cost, its iterations and its time in s; the next one has the authors' time divided by this "
        "time.\n"
    )
    print(
        "| system | iterations | first cost | released: best cost, s | qdsim, the same: best cost, s "
        "| times faster | default, as many iterations | default | equal or lower cost: cost, iterations, s | times faster |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, (iterations, first, cost, seconds) in RELEASED.items():
        task = task_of(name)
        records = impc(task, ours(task)).records
        enough = int(records["iteration"][np.flatnonzero(records["best_cost"] <= cost)[0]])
        runs: list[list[tuple[ImpcResult, float]]] = [[], [], [], []]
        for _ in range(rounds):
            runs[0].append(timed(task, published(name, task, iterations)))
            runs[1].append(timed(task, ours(task, iterations=iterations)))
            runs[2].append(timed(task, ours(task)))
            runs[3].append(timed(task, ours(task, iterations=enough)))
        t = [statistics.median(x for _, x in rs) for rs in runs]
        least = [min(x for _, x in rs) for rs in runs]
        begin = runs[0][0][0].records["cost"][0]
        print(
            f"| {name} | {iterations} | {first:.0f}; {begin:.0f} | {cost:g}, {seconds:g} "
            f"| {runs[0][0][0].cost:.1f}, {t[0]:.3f} ({least[0]:.3f}) | {seconds / t[0]:.0f} ({seconds / least[0]:.0f}) "
            f"| {runs[1][0][0].cost:.1f}, {t[1]:.3f} ({least[1]:.3f}) | {runs[2][0][0].cost:.1f}, {t[2]:.3f} ({least[2]:.3f}) "
            f"| {runs[3][0][0].cost:.1f}, {enough}, {t[3]:.3f} ({least[3]:.3f}) | {seconds / t[3]:.0f} ({seconds / least[3]:.0f}) |"
        )


def print_table(seeds: int) -> None:
    print("\n## CQDC, Table II\n")
    print(
        f"20 iterations; cost and seconds, means of {seeds} seeds for schemes that draw samples ({SAMPLES} of them; "
        "CQDC: 5 trials). CQDC's printed costs belong to weights that it does not give; the released weights are used "
        "here, so costs can only be compared within a column. Zeroth order has no A. Exact derivatives start in contact "
        "(squeeze), as CQDC's do. *default*: the default settings of this package with that smoothing.\n"
    )
    names = ["planar_pushing", "planar_hand", "allegro_sphere"]
    print(
        "| smoothing | "
        + " | ".join(f"{n}: CQDC | released settings | default" for n in names)
        + " |"
    )
    print("| --- |" + " --- |" * (3 * len(names)))
    for method, printed in TABLE.items():
        cells = []
        for name in names:
            task = task_of(name)
            scheme = schemes(name)[method]
            count = seeds if method.startswith("randomized") else 1
            A: dict[str, Any] = {"use_A": False} if method.endswith("zeroth order") else {}
            if method == "exact":
                A["start"] = "squeeze"
            settings = [
                published(name, task, 20).replace(smoothing=scheme, **A),
                ours(task, smoothing=scheme, iterations=20, **A),
            ]
            cells.append("{:.2f}, {:.2f}".format(*printed[name]))
            for options in settings:
                runs = [timed(task, options, seed) for seed in range(count)]
                cost = statistics.mean(r.cost for r, _ in runs)
                seconds = statistics.mean(x for _, x in runs)
                cells.append(f"{cost:.2f}, {seconds:.2f}")
        print(f"| {method} | " + " | ".join(cells) + " |", flush=True)


def print_scatter(seeds: int) -> None:
    print("\n## How far the released settings determine the cost\n")
    print(
        f"Median (smallest to largest) of {seeds} runs. *scripts' own samples*: the sampled smoothing that the scripts of "
        "pushing and hand use. *moved by 1e-9*: analytic smoothing from a first guess with random changes of 1e-9. *one "
        "more*: analytic smoothing with one more iteration, because it is not known whether the authors count the first "
        "guess. Successive iterates of the hand and of the ball differ much in cost, so small changes have a large "
        "effect on the best one.\n"
    )
    print("| system | authors | analytic | scripts' own samples | moved by 1e-9 | one more |")
    print("| --- | --- | --- | --- | --- | --- |")

    def spread(costs: list[float]) -> str:
        return f"{statistics.median(costs):.1f} ({min(costs):.1f} to {max(costs):.1f})"

    for name, (count, _, cost, _) in RELEASED.items():
        task = task_of(name)
        options = published(name, task, count)
        hold = np.tile(np.asarray(task.model.command_from(task.start)), (options.horizon, 1))
        moved = [
            impc(
                task, options, u=hold + 1e-9 * np.random.default_rng(k).standard_normal(hold.shape)
            )
            for k in range(seeds)
        ]
        own = OWN_SMOOTHING.get(name)
        sampled = "analytic"
        if own is not None:
            drawn = options.replace(smoothing=schemes(name)[own])
            sampled = spread([impc(task, drawn, rng=k).cost for k in range(seeds)])
        more = impc(task, options.replace(iterations=count + 1)).cost
        print(
            f"| {name} | {cost:g} | {impc(task, options).cost:.1f} | {sampled} "
            f"| {spread([r.cost for r in moved])} | {more:.1f} |",
            flush=True,
        )


# ---------------------------------------------------------------- random goals


def random_goals(name: str, count: int, seed: int) -> list[Task]:
    task, rng = task_of(name), np.random.default_rng(seed)
    found = []
    for _ in range(count):
        if name == "planar_pushing":
            v = [rng.uniform(-0.5, 0.5), rng.uniform(0.0, 0.7), rng.uniform(-0.8, 0.8)]
        elif name == "planar_hand":
            v = [rng.uniform(-0.3, 0.3), rng.uniform(-0.05, 0.1), rng.uniform(-0.6, 0.6)]
        else:
            axis = np.array([*rng.uniform(-0.3, 0.3, 2), rng.choice([-1.0, 1.0])])
            most = math.pi / 6 if name.endswith("hardware") else math.pi / 4
            turn = axis / np.linalg.norm(axis) * rng.uniform(0.5, 1.0) * most
            v = [0.0, 0.0, 0.0, *turn]
        goal = np.array(task.goal)
        goal[task.space.q] = task.with_object(task.start, v)[task.space.q]
        found.append(task.replace(goal=goal))
    return found


def print_goals(count: int, pushing: int, seed: int) -> None:
    print(f"\n## Random goals, {pushing} of pushing, {count} of the others\n")
    print(
        "Objects at random displacements from the start (pushing: up to 0.5 m to the side, 0.7 m ahead and 46 degrees; "
        "hand: 0.3 m, 0.1 m and 34 degrees; ball: 15 to 45 degrees about a nearly vertical axis, for the hardware ball "
        "two thirds of that). Columns: the median cost, its ratio to that of the released schedule, the median of the "
        "ratios for each goal, and the number of goals with at most half of the released schedule's cost. *Best known*: "
        "for every goal, the best of all variants.\n"
    )
    print("| system | variant | cost | ratio | goal by goal | half | seconds, median (most) |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name in TASKS:
        tasks = random_goals(name, pushing if name == "planar_pushing" else count, seed)
        first = ours(tasks[0])
        variants = {"released schedule, 20 iterations": published(name, tasks[0], 20)}
        variants[f"default (start: {first.start})"] = first
        for start in ("squeeze", "hold", "rrt"):
            if start != first.start:
                variants[f"start: {start}, 30 iterations"] = first.replace(
                    start=start, iterations=30
                )
        variants["squeeze, hold and tree, 5 iterations each, the best 15 more"] = first.replace(
            start=("squeeze", "hold", "rrt"), iterations=30
        )
        variants["default, without A"] = first.replace(use_A=False)
        runs = {v: [timed(t, o) for t in tasks] for v, o in variants.items()}
        costs = {v: np.array([r.cost for r, _ in rs]) for v, rs in runs.items()}
        base = next(iter(costs.values()))
        costs["best known"] = np.min(list(costs.values()), axis=0)
        for variant, cost in costs.items():
            times = [x for _, x in runs.get(variant, ())]
            seconds = f"{statistics.median(times):.3f} ({max(times):.3f})" if times else ""
            print(
                f"| {name} | {variant} | {np.median(cost):.1f} | {np.median(cost) / np.median(base):.2f} "
                f"| {np.median(cost / base):.2f} | {int((cost <= 0.5 * base).sum())} of {len(cost)} "
                f"| {seconds} |",
                flush=True,
            )


HARDWARE_SEEDS = (20, 21, 22)
"""Seeds of goals that were not used to choose any setting."""


def print_hardware() -> None:
    print("\n## The hardware ball, goal by goal\n")
    print(
        "Ten goals for each of the seeds 20, 21 and 22, which were not used to choose any setting. Columns: cost of the "
        'released schedule (20 iterations), cost of the default (starts "squeeze" and "hold" with 4 iterations each, '
        "then the better one, 30 iterations in all), and their ratio.\n"
    )
    name = "allegro_sphere_hardware"
    tasks = [task for seed in HARDWARE_SEEDS for task in random_goals(name, 10, seed)]
    costs = []
    for task in tasks:
        settings = published(name, task, 20), ours(task)
        costs.append([impc(task, options).cost for options in settings])
    columns = 5
    print("| " + " | ".join(["released, default, ratio"] * columns) + " |")
    print("|" + " --- |" * columns)
    cells = [f"{a:.2f}, {b:.2f}, {b / a:.2f}" for a, b in costs]
    for row in range(0, len(cells), columns):
        print("| " + " | ".join(cells[row : row + columns]) + " |")
    released, default = np.array(costs).T
    ratio = default / released
    print(
        f"\nRatio of the medians {np.median(default) / np.median(released):.2f}, median goal by goal {np.median(ratio):.2f}, "
        f"largest {ratio.max():.2f}; worse on {int((ratio > 1.0).sum())} of {len(ratio)}, at half or less on "
        f"{int((ratio <= 0.5).sum())}."
    )


# ---------------------------------------------------------------- closed loop


def closed_loop(
    task: Task, options: ImpcOptions, kick: Array, steps: int, at: int
) -> tuple[float, float, bool, float, float, float]:
    """Return the errors at the end, whether the goal is reached, and median, 95 % and 5 % of the seconds of a call."""
    loop, q, seconds = Mpc(task, options), task.start, []
    for k in range(steps):
        if k == at:
            q = task.with_object(q, kick)
        begin = time.process_time()
        command = loop.act(q)
        seconds.append(time.process_time() - begin)
        q = qdsim.step(task.model, q, command, task.options).q_next
    shift, turn = task.space.errors(q, task.goal)
    later = seconds[1:]
    low, middle, high = (float(np.quantile(later, share)) for share in (0.05, 0.5, 0.95))
    return shift, turn, task.reached(q), middle, high, low


def print_loop(count: int, seed: int) -> None:
    print(f"\n## Closed loop, one iteration a step, {count} goals or disturbances a system\n")
    print(
        "The object is displaced half way through the run (hand: 20 mm, 0.2 rad; ball: 3 mm, 0.1 rad). *Reached*: within "
        "20 mm and 0.05 rad (hand) or 10 mm and 0.1 rad (ball), 30 steps later. Weights: errors of the hand's disc 10, "
        "of the ball 500 / m2 and 10 / rad2, changes of the command 1.\n"
    )
    print(
        "| system | horizon, radii | reached | mm, rad, medians | ms a call, median (5 %, 95 %) | Hz |"
    )
    print("| --- | --- | --- | --- | --- | --- |")
    soft = TrackingCost(object=10.0, robot=1e-3, command=1.0)
    firm = TrackingCost(
        object=(500.0,) * 3 + (10.0,) * 3, robot=1e-3, command=1.0, final_robot=1e-3
    )
    cases: list[tuple[str, dict[str, Any]]] = [
        ("planar_hand", {"horizon": 20, "cost": soft, "start": "squeeze"}),
        ("planar_hand", {"horizon": 15, "cost": soft, "start": "squeeze"}),
        ("planar_hand", {"horizon": 10, "cost": soft, "start": "squeeze"}),
        ("allegro_sphere", {"horizon": 10, "cost": firm}),
        ("allegro_sphere", {"horizon": 10, "cost": firm, "radii": (0.1, 0.02)}),
        ("allegro_sphere", {"horizon": 10, "cost": firm, "radii": (0.1, 0.02), "use_A": False}),
    ]
    for name, changes in cases:
        rng = np.random.default_rng(seed)
        tasks = (
            random_goals(name, count, seed) if name != "planar_hand" else [task_of(name)] * count
        )
        options = ours(tasks[0], **changes)
        runs = []
        for task in tasks:
            shift, turn = (0.003, 0.1) if name == "allegro_sphere" else (0.02, 0.2)
            kick = rng.standard_normal(task.space.size)
            for part, size in ((~task.space.rotation, shift), (task.space.rotation, turn)):
                kick[part] *= size / np.linalg.norm(kick[part])
            at = 30 if name == "allegro_sphere" else 10
            runs.append(closed_loop(task, options, kick, at + 30, at))
        shifts, turns, done, median, late, early = (np.array(c) for c in zip(*runs))
        print(
            f"| {name} | {options.horizon}, {options.radii}, {options.use_A} | {int(done.sum())} of {count} "
            f"| {1e3 * np.median(shifts):.1f}, {np.median(turns):.3f} "
            f"| {1e3 * np.median(median):.2f} ({1e3 * np.median(early):.2f}, {1e3 * np.median(late):.2f}) "
            f"| {1.0 / np.median(median):.0f} |",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=30, help="rounds of the quadratic programs")
    parser.add_argument("--seeds", type=int, default=3, help="seeds of Table II")
    parser.add_argument("--goals", type=int, default=10, help="random goals a system")
    parser.add_argument("--pushing", type=int, default=32, help="random goals of pushing")
    parser.add_argument("--seed", type=int, default=0, help="of the goals")
    parser.add_argument("--hardware", action="store_true", help="goals of the hardware ball alone")
    arguments = parser.parse_args()
    if arguments.hardware:
        print_hardware()
        return
    print_programs(arguments.rounds)
    print_released(max(3, arguments.rounds // 10))
    print_scatter(8)
    print_table(arguments.seeds)
    print_goals(arguments.goals, arguments.pushing, arguments.seed)
    print_hardware()
    print_loop(arguments.goals, arguments.seed)


if __name__ == "__main__":
    main()
