"""Plan every published task and draw its key frames into docs/images/plans.

Usage: python tools/draw_plans.py [--movies FOLDER] [name ...]. Each plan is that of the first seed that reaches the
goal with motions between all its grasps; --movies also writes FOLDER/name.mp4.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from qdsim import planning, systems
from qdsim.planning import pictures
from shrink import shrink

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "images" / "plans"
SEEDS = 10
FRAMES = 12
WIDTH = 1200  # pixels


def first_plan(task: planning.Task) -> tuple[int, planning.Plan]:
    """Seed and plan of the first search that reaches the goal by grasps between which the robot can move."""
    for seed in range(SEEDS):
        tree = planning.rrt(task, rng=seed)
        if tree.reached:
            plan, reasons = planning.connect_segments(tree.plan(), task.model)
            if all(reason is None for reason in reasons):
                return seed, plan
    raise SystemExit(f"{task.name}: no plan with all motions in {SEEDS} searches")


def draw(name: str, movies: Path | None) -> str:
    """Plan, draw, and say in one line what came out."""
    system = systems.load(name)
    task = next(iter(system.tasks.values()))
    seed, plan = first_plan(task)
    verdict = plan.check(system.model)
    replay = plan.replay(system.model)
    path = FOLDER / f"{name}.png"
    pictures.draw_key_frames(plan, replay, system.model, path, most=FRAMES)
    size = shrink(path, WIDTH)
    if movies is not None:
        pictures.write_movie(plan, replay, system.model, [movies / f"{name}.mp4"])
    said = "; ".join((*verdict.faults, *verdict.notes)) or "good"
    return (
        f"{name}: seed {seed}, {plan.step_count} steps, {len(plan.motions)} motions, "
        f"{size // 1000} kB; {said}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--movies", type=Path, help="folder for movies")
    parser.add_argument("names", nargs="*", default=systems.TASK_NAMES)
    given = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    if given.movies is not None:
        given.movies.mkdir(parents=True, exist_ok=True)
    for name in given.names:
        print(draw(name, given.movies), flush=True)


if __name__ == "__main__":
    sys.exit(main())
