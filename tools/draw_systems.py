"""Draw every published system into docs/images/systems.

Usage: python tools/draw_systems.py [name ...]
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import qdsim
from qdsim import systems
from qdsim.planning import pictures
from shrink import shrink

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "images" / "systems"
SIZE = (320, 240)
OVERSAMPLING = 2
DPI = 100
SHARE = {"allegro_sphere": 0.6, "plate_pickup": 0.8, "rope": 0.65, "box_pivoting": 0.55}
CLOSE = {"allegro_door", "allegro_door_pull"}
"""Where the object would make the hand small: the picture shows the hand and as much again around it."""
LAST = {"allegro_sphere_soft", "cloud_grasp", "cloud_grasp_without_torsion", "block_stacking"}


def configuration(system: systems.System) -> np.ndarray:
    """In the middle of the motion, or the start."""
    q = np.array(system.model.keyframes[system.commands_from].q)
    count = len(system.commands)
    share = 1.0 if system.name in LAST else SHARE.get(system.name, 0.5)
    for u in system.commands[: round(share * count)]:
        q = qdsim.step(system.model, q, u, system.options).q_next
    return np.array(q)


def object_of(system: systems.System) -> str:
    """What its tasks move; else what nothing drives."""
    for task in system.tasks.values():
        return str(task.object)
    return pictures.object_of(system.model)


def around_robot(
    scene: pictures.PlanarScene | pictures.SpatialScene, q: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The window of a scene in space around the robot alone, with room for what it acts on."""
    assert isinstance(scene, pictures.SpatialScene)
    pos, _ = scene.model.body_poses(q)
    robot = [pos[s.body] for s in scene.solids if scene.kind[s.body] == "robot"]
    places = np.array(robot) @ scene.view[:2].T
    low, high = places.min(axis=0), places.max(axis=0)
    room = 0.5 * (high - low).max()
    return low - room, high + room


def draw(name: str) -> int:
    """Draws a system; the size of the file in bytes."""
    system = systems.load(name)
    q = configuration(system)
    goals = [task.goal for task in system.tasks.values()]
    scene = pictures.scene_of(system.model, object_of(system), q[None], *goals[:1])
    low, high = scene.window(q[None])
    if name in CLOSE:
        low, high = around_robot(scene, q)
    across, up = OVERSAMPLING * SIZE[0], OVERSAMPLING * SIZE[1]
    width, height = high - low
    more = 0.5 * np.maximum([height * across / up - width, width * up / across - height], 0.0)
    figure = pictures.new_figure(across / DPI, up / DPI, dpi=DPI)
    ax = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    ax.axis("off")
    scene.prepare(ax, low - more, high + more)
    scene.draw(ax, q)
    path = FOLDER / f"{name}.png"
    figure.savefig(path)
    return shrink(path, SIZE[0])


def main(names: list[str]) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in names or list(systems.NAMES):
        print(f"{name}: {draw(name)} bytes", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
