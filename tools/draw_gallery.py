"""Films of the published systems' plans, commands and motions, with posters, into docs/images/gallery.

Usage: python tools/draw_gallery.py [name ...]. Each film has at most 500 kB.
"""

from __future__ import annotations

import sys
from pathlib import Path

import imageio.v2 as imageio
import numpy as np
from PIL import Image

import qdsim
from draw_plans import first_plan
from qdsim import systems
from qdsim.planning import pictures, rrt

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "images" / "gallery"
FRAMES, RATE, INCHES = 60, 12, 3.2
MOST = 500_000  # bytes
MOTIONS = [name for name in systems.DYNAMIC_NAMES if not name.startswith("brazil")]
"""Those of the Brazil nut are drawn by draw_motions.py."""


def film_of_plan(name: str, film: Path) -> None:
    """The plan of the first seed that reaches the goal, in at most so many frames.

    Soft tips sink into what they hold, so that no collision-free motion begins there.
    """
    system = systems.load(name)
    task = next(iter(system.tasks.values()))
    plan = rrt(task, rng=0).plan() if name not in systems.TASK_NAMES else first_plan(task)[1]
    replay = plan.replay(system.model)
    every = -(-(plan.step_count + 14 * len(plan.regrasps)) // FRAMES)
    pictures.write_movie(
        plan, replay, system.model, [film], frames_per_second=RATE, size=INCHES, every=every
    )


def film_of_commands(name: str, film: Path) -> None:
    """The system under its published commands, in at most so many frames."""
    system = systems.load(name)
    start = system.model.keyframes[system.commands_from].q
    path = qdsim.rollout(system.model, start, system.commands, system.options).q
    path = path[:: -(-len(path) // FRAMES)]
    pictures.write_motion(system.model, path, [film], frames_per_second=RATE, size=INCHES)


def film_of_motion(name: str, film: Path) -> None:
    """The motion of a system of the second-order step, evenly in time."""
    system = systems.load_dynamic(name)
    duration = min(system.duration, 4.0)
    motion = system.simulate(duration, system.options)
    path = motion.at(np.linspace(0.0, duration, FRAMES))[0]
    pictures.write_motion(system.model, path, [film], frames_per_second=RATE, size=INCHES)


def planned() -> list[str]:
    """Systems whose film is a plan: those of CQDC, and others that have a task and no commands."""
    others = [name for name in systems.NAMES if name not in systems.TASK_NAMES]
    loaded = {name: systems.load(name) for name in others}
    return [*systems.TASK_NAMES, *(n for n, s in loaded.items() if s.tasks and not len(s.commands))]


def draw(name: str) -> int:
    """Film and poster; bytes of the film."""
    film = FOLDER / f"{name}.webm"
    make = film_of_motion if name in MOTIONS else film_of_commands
    (film_of_plan if name in planned() else make)(name, film)
    images = imageio.mimread(film, format="FFMPEG", memtest=False)
    Image.fromarray(images[2 * len(images) // 3]).save(film.with_suffix(".jpg"), quality=85)
    size = film.stat().st_size
    if size > MOST:
        raise SystemExit(f"{name}: a film of {size} bytes")
    return size


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    commanded = [name for name in systems.NAMES if len(systems.load(name).commands)]
    planned_first = dict.fromkeys((*planned(), *commanded, *MOTIONS))
    for name in sys.argv[1:] or planned_first:
        print(f"{name}: {draw(name)} bytes", flush=True)


if __name__ == "__main__":
    main()
