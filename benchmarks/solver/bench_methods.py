"""The methods of the cone solver: which one answers, how often, and its share of the time.

The programs are: the problem set, exact and smoothed; steps of the published systems under random commands; the nodes
of an RRT with the commands that led to them; the iterates of an iMPC; a step and the same step slightly changed,
started from its solution; the steps of tests/data/found_steps.jsonl; and the published friction problems. Each is
solved twice and the faster call counts, including the binding. *tries*: the mean number of methods tried, including
the one that answered. A step with several islands counts once, with the last of the methods that they need, and the
sum of their tries.
"""

from __future__ import annotations

import json
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import problem_set

import qdsim
from qdsim import planning, systems

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
import external_programs

FOUND = Path(__file__).resolve().parents[2] / "tests/data/found_steps.jsonl"
Call = Callable[[], Any]
KAPPAS = (None, 100.0)
NO_ANSWER = "no answer"


def problems(target_mu: float | None) -> Iterator[Call]:
    for kind in problem_set.KINDS:
        for p in problem_set.load(problem_set.path_of(kind)):
            cones = [("lorentz", int(k)) if k > 1 else ("orthant", 1) for k in p.dims]
            yield lambda p=p, cones=cones: qdsim.solve_cone_program(
                p.Q, p.b, p.G, p.g, cones, target_mu=target_mu
            )


def one_step(model: qdsim.Model, q: Any, u: Any, options: qdsim.Options) -> Call:
    return lambda: qdsim.step(model, q, u, options)


def motions(kappa: float | None) -> Iterator[Call]:
    rng = np.random.default_rng(0)
    for name in systems.NAMES:
        system = systems.load(name)
        model, options = system.model, system.options.replace(kappa=kappa)
        q, u = system.start
        for _ in range(12):
            command = u + 0.1 * rng.standard_normal(model.nu)
            yield one_step(model, q, command, options)
            try:
                q = qdsim.step(model, q, command, options).q_next
            except qdsim.SolverError:
                break


def tree_steps(kappa: float | None) -> Iterator[Call]:
    for name in ("planar_hand", "allegro_sphere"):
        system = systems.load(name)
        options = system.options.replace(kappa=kappa)
        tree = planning.rrt(next(iter(system.tasks.values())), rng=0)
        for q in tree.q[: tree.count][:300]:
            yield one_step(system.model, q, system.model.command_from(q), options)


def impc_steps(kappa: float | None) -> Iterator[Call]:
    for name in ("planar_hand", "planar_pushing"):
        system = systems.load(name)
        options = system.options.replace(kappa=kappa)
        found = planning.impc(next(iter(system.tasks.values())))
        for q, u in zip(found.q[:-1], found.u, strict=True):
            yield one_step(system.model, q, u, options)


def again() -> Iterator[Call]:
    rng = np.random.default_rng(1)
    for kind in problem_set.KINDS:
        for p in problem_set.load(problem_set.path_of(kind)):
            cones = [("lorentz", int(k)) if k > 1 else ("orthant", 1) for k in p.dims]
            first = qdsim.solve_cone_program(p.Q, p.b, p.G, p.g, cones)
            b = p.b * (1.0 + 1e-3 * rng.standard_normal(len(p.b)))
            yield lambda p=p, b=b, cones=cones, first=first: qdsim.solve_cone_program(
                p.Q, b, p.G, p.g, cones, warm_start=first
            )


def found_steps() -> Iterator[Call]:
    for line in FOUND.read_text().splitlines():
        step = json.loads(line)
        options = qdsim.Options(**step["options"])
        yield one_step(qdsim.load(step["xml"]), np.array(step["q"]), np.array(step["u"]), options)


def friction() -> Iterator[Call]:
    for name in external_programs.friction_names():
        for form in ("forces", "velocities"):
            p = external_programs.friction_program(name, form)
            yield lambda p=p: qdsim.solve_cone_program(p.Q, p.b, p.G, p.g, p.cones)


def measure(call: Call) -> tuple[str, int, float]:
    """Return the method, the tries and the seconds of a call."""
    seconds = np.inf
    for _ in range(2):
        start = time.perf_counter()
        try:
            info = call().info
            method = info.method
        except qdsim.SolverError as error:
            info = error.info
            method = info.method if info.status == "infeasible" else NO_ANSWER
        seconds = min(seconds, time.perf_counter() - start)
    return method, info.tries, seconds


def rows(name: str, calls: Iterator[Call]) -> list[str]:
    count: dict[str, int] = defaultdict(int)
    spent: dict[str, float] = defaultdict(float)
    tried: dict[str, int] = defaultdict(int)
    for call in calls:
        method, tries, seconds = measure(call)
        count[method] += 1
        spent[method] += seconds
        tried[method] += tries
    total, whole = sum(count.values()), sum(spent.values())
    lines = []
    for method in sorted(count, key=lambda m: -count[m]):
        n, share = count[method], 100.0 * spent[method] / whole
        each, tries = 1e6 * spent[method] / n, tried[method] / n
        first = f"{name} ({total})" if not lines else ""
        lines.append(f"| {first} | {method} | {n} | {tries:.1f} | {each:.0f} | {share:.0f} % |")
    return lines


def sets() -> dict[str, Iterator[Call]]:
    """Return the names of the sets of programs, and the calls that solve them."""
    sources: dict[str, Iterator[Call]] = {}
    for kappa in KAPPAS:
        kind = "exact" if kappa is None else "smoothed"
        sources[f"problem set, {kind}"] = problems(None if kappa is None else 1e-3)
        sources[f"motions, {kind}"] = motions(kappa)
        sources[f"RRT nodes, {kind}"] = tree_steps(kappa)
        sources[f"iMPC steps, {kind}"] = impc_steps(kappa)
    sources["problem set, from a solution nearby"] = again()
    sources["found steps"] = found_steps()
    sources["friction problems"] = friction()
    return sources


def main() -> None:
    print("| programs | answered by | times | tries | us each | of the time |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, calls in sets().items():
        print("\n".join(rows(name, calls)), flush=True)


if __name__ == "__main__":
    main()
