"""Draw the systems of the second-order step into docs/images/motions, four moments each, with Matplotlib alone.

Usage: python tools/draw_motions.py [name ...]
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from qdsim import systems
from qdsim.planning import pictures
from shrink import shrink

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "images" / "motions"
SIZE = (160, 140)
OVERSAMPLING = 2
DPI = 100
MOMENTS = {
    "pendulum": (0.0, 0.45, 0.6, 0.9),
    "falling_ellipse": (0.0, 1.0, 2.0, 20.0),
    "disks": (0.0, 0.8, 1.5, 3.0),
    "brazil_nut": (0.0, 2.0, 6.0, 12.0),
    "brazil_nut_3d": (0.0, 0.4, 1.0, 2.0),
    "painleve_rod": (0.0, 0.06, 0.12, 0.2),
    "sliding_block": (0.0, 0.04, 0.08, 0.4),
    "cradle": (0.0, 0.1, 0.2, 0.4),
    "top": (0.0, 1.0, 1.5, 2.0),
    "ball_drop": (0.0, 0.1, 0.155, 0.24),
    "tipping_box": (0.0, 0.2, 0.35, 0.5),
    "four_boxes": (0.0, 0.2, 0.5, 2.0),
    "soft_pinch": (0.0, 0.3, 0.8, 1.2),
    "pencil": (0.0, 0.23, 0.27, 0.6),
}
"""s, as far as the motion goes."""


def moments(name: str) -> tuple[systems.DynamicSystem, np.ndarray, np.ndarray]:
    """The system, times and configurations."""
    system = systems.load_dynamic(name)
    wanted = np.minimum(MOMENTS[name], system.duration)
    o = system.options.replace(h=0.02) if name == "brazil_nut_3d" else system.options
    motion = system.simulate(float(wanted[-1]), o)
    return system, wanted, motion.at(wanted)[0]


def draw(name: str) -> int:
    """Draws a system; the size of the file in bytes."""
    system, times, q = moments(name)
    model = system.model
    scene = pictures.scene_of(model, pictures.object_of(model), q)
    low, high = scene.window(q)
    across, up = OVERSAMPLING * SIZE[0], OVERSAMPLING * SIZE[1]
    width, height = high - low
    more = 0.5 * np.maximum([height * across / up - width, width * up / across - height], 0.0)
    figure = pictures.new_figure(len(q) * across / DPI, up / DPI, dpi=DPI)
    for k, one in enumerate(q):
        ax = figure.add_axes((k / len(q), 0.0, 1.0 / len(q), 1.0))
        ax.axis("off")
        scene.prepare(ax, low - more, high + more)
        scene.draw(ax, one)
        ax.text(0.04, 0.94, f"{times[k]:g} s", transform=ax.transAxes, va="top", fontsize=14)
    path = FOLDER / f"{name}.png"
    figure.savefig(path)
    return shrink(path, len(q) * SIZE[0])


def main(names: list[str]) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in names or list(MOMENTS):
        print(f"{name}: {draw(name)} bytes", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
