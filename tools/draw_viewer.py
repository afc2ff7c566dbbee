"""Screenshots of the viewer and of a saved page, into docs/images/viewer.

Usage: python tools/draw_viewer.py. Needs chromium.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from qdsim import systems, viewer
from qdsim.planning import RRTOptions, rrt
from shrink import shrink

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from browser import CHROMIUM, open_page  # noqa: E402  (the browser that the tests look through)

FOLDER = ROOT / "docs" / "images" / "viewer"
SIZE = (1100, 700)
CLOSE = "document.querySelectorAll('.mantine-Notification-closeButton').forEach(b => b.click())"
"""Browsers that draw in software get a notice."""


def keep(picture: np.ndarray, name: str) -> None:
    """Writes a screenshot."""
    path = FOLDER / f"{name}.png"
    Image.fromarray(picture).save(path)
    print(f"{name}: {shrink(path, SIZE[0])} bytes", flush=True)


def screenshot(url: str, name: str, seconds: float = 40.0) -> None:
    """What a page looks like once it stands still, or after so long."""
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        open_page(url, Path(folder), size=SIZE) as page,
    ):
        page.settled_picture(3.0)
        page.evaluate(CLOSE)
        keep(page.settled_picture(seconds), name)


def draw_live() -> None:
    """The hand with its sliders, pressed a little against the ball, seen through."""
    system = systems.load("allegro_sphere")
    q, u = system.start.q, system.start.u
    with viewer.Viewer(system.model, configurations=q) as shown:
        shown.live(system.options, q)
        live: Any = shown._live
        for slider, value in zip(live._commands, u):
            slider.value = float(value) + 0.1
        time.sleep(2.0)
        live._paused.value = True
        shown._scene.look_through(True)
        screenshot(shown.url, "live")


def draw_page() -> None:
    """A plan as one file, in the middle of its motion."""
    system = systems.load("allegro_sphere")
    task = next(iter(system.tasks.values()))
    plan = rrt(task, task.planner or RRTOptions(), rng=0).plan()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plan.html"
        viewer.save_html(plan, path, system.model)
        screenshot(path.as_uri() + "#frame=60", "page", seconds=4.0)


def main() -> int:
    """Draws both."""
    if CHROMIUM is None:
        print("chromium is not installed (Debian: chromium)", file=sys.stderr)
        return 1
    FOLDER.mkdir(parents=True, exist_ok=True)
    draw_live()
    draw_page()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
