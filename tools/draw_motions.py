"""Draw the systems of the second-order step into docs/images/motions, four moments each, with Matplotlib alone.

Usage: python tools/draw_motions.py [--movies] [name ...]. What moves in a plane is drawn from the side, with the
ground; the spheres of the Brazil nut are cut through the large one. --movies draws the boxes that are shaken as films of the gallery.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from PIL import Image

from qdsim import systems
from qdsim.planning import pictures
from qdsim.planning.drawing.movies import image_of, save_movie
from qdsim.systems.heaps import shaking
from shrink import shrink
from side_view import SideView

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
FOLDER, GALLERY = IMAGES / "motions", IMAGES / "gallery"
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
    "sliding_box": (0.0, 0.1, 0.2, 0.35),
    "spinning_disc": (0.0, 0.04, 0.08, 0.16),
    "pencil": (0.0, 0.4, 0.9, 1.5),
    "spoon": (0.0, 0.02, 0.1, 0.5),
}
"""s, as far as the motion goes."""


def moments(name: str) -> tuple[systems.DynamicSystem, np.ndarray, np.ndarray]:
    """The system, times and configurations."""
    system = systems.load_dynamic(name)
    wanted = np.minimum(MOMENTS[name], system.duration)
    o = system.options.replace(h=0.02) if name == "brazil_nut_3d" else system.options
    motion = system.simulate(float(wanted[-1]), o)
    return system, wanted, motion.at(wanted)[0]


SIDE_VIEWS = {
    "pendulum": None,
    "falling_ellipse": None,
    "disks": None,
    "brazil_nut": None,
    "brazil_nut_3d": "nut",
    "painleve_rod": None,
    "sliding_block": None,
    "cradle": None,
}
"""What is drawn from the side, and the body through whose middle it is cut."""
SHAKES, FRAMES = 20, 5
"""Of movies, and how many frames each shake has."""
SHAKEN = {"brazil_nut": (0.75, 1.0, 0.05), "brazil_nut_3d": (0.05, 0.5, 0.01)}
"""Amplitude m, period s, and the step of a movie, s."""


def wider(
    low: np.ndarray, high: np.ndarray, across: float, up: float
) -> tuple[np.ndarray, np.ndarray]:
    """The window made wider or higher, to the shape of a picture."""
    width, height = high - low
    more = 0.5 * np.maximum([height * across / up - width, width * up / across - height], 0.0)
    return low - more, high + more


def draw(name: str) -> int:
    """Draws a system; the size of the file in bytes."""
    system, times, q = moments(name)
    model = system.model
    flat = name in SIDE_VIEWS
    view = SideView(model, SIDE_VIEWS[name]) if flat else None
    scene = view or pictures.scene_of(model, pictures.object_of(model), q)
    across, up = OVERSAMPLING * SIZE[0], OVERSAMPLING * SIZE[1]
    low, high = wider(*scene.window(q), across, up)
    figure = pictures.new_figure(len(q) * across / DPI, up / DPI, dpi=DPI)
    for k, one in enumerate(q):
        ax = figure.add_axes((k / len(q), 0.0, 1.0 / len(q), 1.0))
        ax.axis("off")
        if view:
            view.draw(ax, one, low, high)
        else:
            scene.prepare(ax, low, high)
            scene.draw(ax, one)
        ax.text(0.04, 0.96, f"{times[k]:g} s", transform=ax.transAxes, va="top", fontsize=14)
    path = FOLDER / f"{name}.png"
    figure.savefig(path)
    return shrink(path, len(q) * SIZE[0])


def film(name: str) -> int:
    """Draws a box that is shaken as a movie, with the box's own motion; the size of the file in bytes."""
    amplitude, period, h = SHAKEN[name]
    system = systems.load_dynamic(name)
    o = system.options.replace(h=h)
    motion = system.simulate(SHAKES * period, o, tau=shaking(system.model, amplitude, period, h))
    times = np.linspace(0, SHAKES * period, SHAKES * FRAMES + 1)
    q = motion.at(times)[0]
    view = SideView(system.model, SIDE_VIEWS[name])
    low, high = view.window(q[:: 2 * FRAMES])
    low, high = wider(low - [0, amplitude], high + [0, amplitude], 2.0, 3.0)
    images = []
    for t, one in zip(times, q):
        figure = pictures.new_figure(1.7, 2.55, dpi=DPI)
        ax = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        view.draw(ax, one, low, high, amplitude * np.sin(2 * np.pi * t / period))
        ax.text(0.04, 0.98, f"shake {t / period:.0f}", transform=ax.transAxes, va="top", fontsize=9)
        images.append(image_of(figure))
    path = GALLERY / f"{name}.webm"
    save_movie(images, [path], round(FRAMES / period))
    Image.fromarray(images[-1]).save(path.with_suffix(".jpg"), quality=85)
    return path.stat().st_size


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--movies", action="store_true")
    args = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    if args.movies:
        for name in args.names or list(SHAKEN):
            print(f"{name}: movie of {film(name)} bytes", flush=True)
        return
    for name in args.names or list(MOMENTS):
        print(f"{name}: {draw(name)} bytes", flush=True)


if __name__ == "__main__":
    main()
