"""A model that steps continuously, with sliders for its commands."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qdsim._core import SolverError
from qdsim.array_type import Array
from qdsim.model import DEFAULT_MARGIN, Model
from qdsim.planning.task.robot import GRAVITY, command_range
from qdsim.step import Options, Step, step

__all__ = ["Live"]

_PERIOD = 1.0 / 30.0
"""Time between frames, s."""

_WEIGHTS = 5.0
"""A drag pulls with at most this many weights of the object, if the way to its target is at least as long as the margin
of contacts; shorter ways pull in proportion to their length."""

_HALVINGS = 10
"""Number of halvings of the force in the search for half of the way; the last force is 5 / 2^10 weights of the object."""


class Live:
    """Sliders for commands, smoothing and margin, dragging of objects, reset and pause.

    If a step fails, the failure is reported and the state does not change.

    Args:
        gui: The viser interface.
        model: The model.
        options: Options of the steps.
        start: Initial configuration ``(nq,)``, also after a reset.
        show: Shows a configuration with the step that begins there.
    """

    def __init__(
        self,
        gui: Any,
        model: Model,
        options: Options,
        start: Array,
        show: Callable[..., None],
    ) -> None:
        self._model, self._options, self._start, self._show = model, options, start, show
        self._q = np.array(start)
        self._folder = gui.add_folder("Live")
        command = np.asarray(model.command_from(start))
        lower, upper = _ranges(model, command)
        with self._folder:
            self._paused = gui.add_checkbox("pause", False)
            self._reset = gui.add_button("reset")
            self._smooth = gui.add_checkbox("smoothed", options.kappa is not None)
            kappa = 100.0 if options.kappa is None else options.kappa
            self._kappa = gui.add_slider(
                "log10 kappa", min=0.0, max=6.0, step=0.1, initial_value=_clipped(kappa)
            )
            self._margin = gui.add_slider(
                "margin (m)", min=0.0, max=0.2, step=0.005, initial_value=min(options.margin, 0.2)
            )
            self._said = gui.add_text("solver", "", disabled=True)
            self._commands = [
                gui.add_slider(
                    name,
                    min=low,
                    max=high,
                    step=10.0**-digits,
                    initial_value=min(max(round(value, digits), low), high),
                )
                for name, low, high, value, digits in zip(
                    model.actuator_names, lower, upper, command, _digits(lower, upper)
                )
            ]
        self._pull: _Pull | None = None
        self._initial = [slider.value for slider in self._commands]
        self._reset.on_click(lambda _: self._restart())
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="qdsim live", daemon=True)
        self._thread.start()

    def _restart(self) -> None:
        self._q = np.array(self._start)
        for slider, value in zip(self._commands, self._initial):
            slider.value = float(value)

    def pull(self, body: int, point: Array | None, target: Array | None) -> None:
        """Pull a body at a point (m) towards a target (m); None releases it."""
        if point is None or target is None:
            self._pull = None
            return
        p, r = (part[body] for part in self._model.body_poses(self._q))
        held = self._pull
        place = r.T @ (point - p) if held is None or held.body != body else held.place
        self._pull = _Pull(body, place, target)

    def _pulled(self, q: Array, u: Array, options: Options, pull: _Pull) -> Step:
        """Compute the step in which a spring pulls the held point towards its target.

        The force acts from where the point would move without it. It is the largest force, found by
        halvings, with which the point neither goes more than half of the way to its target (light
        objects would overshoot) nor moves aside where fingers turn it away; the motion of the point
        grows with the force.
        """
        model, body = self._model, self._model.description.bodies[pull.body]
        at, middle = self._place(q, pull), self._place(q, pull, body.com)

        def stepped(force: Array) -> tuple[Step, Array]:
            """Compute the step with a force on the point; return it and the motion of the point."""
            wrench = np.concatenate([force, np.cross(at - middle, force)])
            taken = step(model, q, u, options, wrench={body.name: wrench})
            return taken, self._place(taken.q_next, pull) - at

        best, drift = stepped(np.zeros(3))
        left = pull.target - at - drift
        way = left - 0.5 * (pull.target - at)
        reach, far = float(np.linalg.norm(way)), float(np.linalg.norm(left))
        most = _WEIGHTS * GRAVITY * max(body.mass, 1e-6) / max(reach, DEFAULT_MARGIN) * way
        low, high, share = 0.0, 1.0, 1.0
        for _ in range(_HALVINGS):
            taken, moved = stepped(share * most)
            gone = moved - drift
            still = float(np.linalg.norm(left - gone))
            if way @ gone <= reach**2 and still <= far:
                best, far, low = taken, still, share
            else:
                high = share
            if low == high:
                break
            share = 0.5 * (low + high)
        return best

    def _place(self, q: Array, pull: _Pull, place: npt.ArrayLike | None = None) -> Array:
        """Return the position of the held point, or of another point of its body (body frame, m)."""
        p, r = (part[pull.body] for part in self._model.body_poses(q))
        return np.asarray(p + r @ (pull.place if place is None else np.asarray(place)))

    def _run(self) -> None:
        while not self._over.is_set():
            begin = time.monotonic()
            if not self._paused.value:
                self._advance()
            self._over.wait(max(_PERIOD - (time.monotonic() - begin), 0.001))

    def _advance(self) -> None:
        u = np.array([slider.value for slider in self._commands])
        smooth = self._smooth.value
        kappa = 10.0**self._kappa.value if smooth else None
        options = self._options.replace(kappa=kappa, margin=float(self._margin.value))
        q = self._q
        try:
            pull = self._pull
            if pull is None:
                taken = step(self._model, q, u, options)
            else:
                taken = self._pulled(q, u, options, pull)
        except SolverError as error:
            self._said.value = str(error).split(";")[0][:120]
            return
        self._said.value = f"solved in {taken.info.iterations} iterations"
        self._show(q, **{"smoothed" if smooth else "step": taken})
        if self._q is q:  # otherwise a reset came in between
            self._q = taken.q_next

    def close(self) -> None:
        """Stop, and remove the sliders."""
        self._over.set()
        self._thread.join(timeout=2.0)
        self._folder.remove()


@dataclass(frozen=True, eq=False)
class _Pull:
    """A body, the held point (body frame, m), and its target (world, m)."""

    body: int
    place: Array
    target: Array


def _clipped(kappa: float) -> float:
    return float(np.clip(math.log10(kappa), 0.0, 6.0))


def _ranges(model: Model, command: Array) -> tuple[list[float], list[float]]:
    """Return the ends of the sliders: ranges of actuators, or of joints, or around the command, which they include."""
    lower = np.array(model.u_lower)
    upper = np.array(model.u_upper)
    if len(lower):
        low, high = command_range(model)
        lower, upper = np.maximum(lower, low), np.minimum(upper, high)
    lower = np.where(np.isfinite(lower), lower, command - 1.0)
    upper = np.where(np.isfinite(upper), upper, command + 1.0)
    lower, upper = np.minimum(lower, command), np.maximum(upper, command)
    return lower.tolist(), np.maximum(upper, lower + 1e-6).tolist()


def _digits(lower: list[float], upper: list[float]) -> list[int]:
    """Return the decimals of the sliders' numbers, so that each slider has at least 500 steps."""
    return [max(0, math.ceil(math.log10(500.0 / (high - low)))) for low, high in zip(lower, upper)]
