"""Play, pause, speed and a slider for the frames of a film."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from qdsim.viewer.frames import Film, Frame

__all__ = ["Player", "said_of"]


def said_of(frame: Frame) -> str:
    """Return the text of a page for a frame, as Markdown: caption and distance to the goal."""
    return f"**{frame.caption}**  \n{frame.left}" if frame.caption else frame.left


class Player:
    """Controls of a page.

    Args:
        gui: The viser interface.
        film: The frames.
        show: Shows a frame, given by its index.
    """

    def __init__(self, gui: Any, film: Film, show: Callable[[int], None]) -> None:
        self._film, self._show = film, show
        last = max(len(film.frames) - 1, 1)
        self._folder = gui.add_folder("Plan" if film.steps else "Motion")
        with self._folder:
            self._caption = gui.add_markdown(said_of(film.frames[0]))
            self._slider = gui.add_slider("frame", min=0, max=last, step=1, initial_value=0)
            self._play = gui.add_checkbox("play", False)
            self._speed = gui.add_slider("speed", min=0.1, max=5.0, step=0.1, initial_value=1.0)
            if film.marks:
                names = [f"{name} (frame {index})" for index, name in film.marks]
                self._marks = gui.add_dropdown("go to", names)
                self._marks.on_update(lambda _: self._jump(names.index(self._marks.value)))
        self._slider.on_update(lambda _: self._moved())
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="qdsim player", daemon=True)
        self._thread.start()

    def _moved(self) -> None:
        index = min(int(self._slider.value), len(self._film.frames) - 1)
        self._caption.content = said_of(self._film.frames[index])
        self._show(index)

    def _jump(self, mark: int) -> None:
        self._slider.value = min(self._film.marks[mark][0], len(self._film.frames) - 1)

    def _run(self) -> None:
        wait = 0.05
        while not self._over.wait(wait):
            wait = 0.05
            if self._play.value:
                index = (int(self._slider.value) + 1) % len(self._film.frames)
                self._slider.value = index
                wait = max(self._film.frames[index].seconds / self._speed.value, 0.01)

    def close(self) -> None:
        """Stop, and remove the controls."""
        self._over.set()
        self._thread.join(timeout=2.0)
        self._folder.remove()
