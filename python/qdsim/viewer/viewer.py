"""A model in a browser: configurations, forces, goals, trees, plans, and commands by sliders."""

from __future__ import annotations

import contextlib
import io
import math
import os
import socket
import threading
import time
import webbrowser
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from qdsim.arguments import finite, instance, integer, number, path_of, reals
from qdsim.array_type import Array
from qdsim.contact_surfaces import pressure_surface
from qdsim.model import Model
from qdsim.planning import Plan, Tree
from qdsim.step import Options, Step
from qdsim.viewer.branches import branches_of
from qdsim.viewer.forces import forces_of
from qdsim.viewer.frames import Film, Frame, film_of_path, film_of_plan, film_of_tree
from qdsim.viewer.live import Live
from qdsim.viewer.needs import need
from qdsim.viewer.notebook import notebook_display
from qdsim.viewer.page import framed_page, page_of
from qdsim.viewer.patches import highest_pressure
from qdsim.viewer.player import Player, said_of
from qdsim.viewer.roles import Roles, roles_of
from qdsim.viewer.scene import LAYERS, Scene
from qdsim.viewer.stage import Branches, stage_of
from qdsim.whole_files import replacing

__all__ = ["Viewer"]

_ANGLE = math.radians(30.0)
"""Vertical angle of the first view, rad."""


class Viewer:
    """A page that shows a model; it lives until :meth:`close`, or the end of a ``with`` block.

    Args:
        model: The model.
        object: The body that the camera looks at, with the robot in view; None: the last unactuated
            one.
        configurations: Configurations ``(n, nq)`` that the camera has to show; None: the default
            configuration.
        goal: Goal ``(nq,)`` that the camera has to show.
        port: Port of the page; None: a free one.
        host: Network interface of the server. Everyone who can reach it can use its sliders.

    Raises:
        ImportError: The extra ``viewer`` is not installed.
        ValueError: The port is out of range or in use, a body is unknown, or configurations have
            another size.
    """

    def __init__(
        self,
        model: Model,
        *,
        object: str | None = None,
        configurations: npt.ArrayLike | None = None,
        goal: npt.ArrayLike | None = None,
        port: int | None = None,
        host: str = "127.0.0.1",
    ) -> None:
        self.model = instance("model", model, Model)
        shown = self._rows(
            "configurations", model.default_q if configurations is None else configurations
        )
        target = None if goal is None else self._one("goal", goal)
        roles = roles_of(model, object, shown, target)
        self._roles = roles
        self._server = _server(host, port)
        self._film: Film | None = None
        self._frame = Frame(shown[0], 1.0)
        self._goal: Array | None = None
        self._branches: Branches | None = None
        self._said: Any = None
        self._player: Player | None = None
        self._live: Live | None = None
        self._lock = threading.RLock()
        camera = self._server.initial_camera
        camera.position, camera.look_at, camera.up = (
            tuple(_first_eye(roles)),
            tuple(roles.centre),
            tuple(roles.up),
        )
        camera.fov = _angle(roles)
        self._scene = Scene(self._server.scene, model, roles)
        self._server.gui.configure_theme(show_logo=False, show_share_button=False)
        self._title(model.name)
        self._add_switches()
        self.update(shown[0])

    def _title(self, title: str) -> None:
        self._server.gui.set_panel_label(title or "qdsim")

    def _add_switches(self) -> None:
        """Add switches that hide layers; their folder is closed, so that commands and frames come first."""
        gui = self._server.gui
        with gui.add_folder("Show", expand_by_default=False, order=1e3):
            for name in LAYERS:
                box = gui.add_checkbox(name, True)
                box.on_update(
                    lambda event, name=name: self._scene.show_layer(name, event.target.value)
                )
            glass = gui.add_checkbox("see through bodies", False)
            glass.on_update(lambda _: self._scene.look_through(glass.value))
            if self._scene.has_visuals:
                switch = gui.add_checkbox("collision shapes", False)
                switch.on_update(lambda _: self._scene.show_collision(switch.value))

    # ------------------------------------------------------------------------------------------ content

    @property
    def url(self) -> str:
        """Address of the page."""
        return f"http://{self._server.get_host()}:{self._server.get_port()}"

    def update(
        self, q: npt.ArrayLike, *, step: Step | None = None, smoothed: Step | None = None
    ) -> None:
        """Show a configuration, with contact surfaces of its soft geometries, coloured by pressure.

        Args:
            q: Configuration ``(nq,)``.
            step: A step that begins there; its forces are shown with friction cones.
            smoothed: A smoothed step that begins there; its forces, which also act at a distance,
                are shown in another colour.
        """
        q = self._one("q", q)
        self._frame = Frame(
            q, 1.0, step or smoothed, smoothed=step is None and smoothed is not None
        )
        with self._lock, self._server.atomic():
            self._scene.place(q)
            for name, taken in (("exact", step), ("smoothed", smoothed)):
                forces = None
                if taken is not None:
                    forces = forces_of(instance("step", taken, Step), self._roles.objects)
                self._scene.draw_forces(name, forces)
            self._scene.draw_patches(pressure_surface(self.model, q))

    def add_goal(self, q: npt.ArrayLike) -> None:
        """Draw outlines of the objects at a goal.

        Args:
            q: Configuration ``(nq,)`` with the objects at the goal.

        Raises:
            ValueError: The shape is wrong.
        """
        self._goal = self._one("q", q)
        self._scene.draw_goal(self._goal)

    def add_tree(self, tree: Tree) -> None:
        """Draw the object's paths along a tree's edges; the path to the goal is red, with its
        regrasps.

        Args:
            tree: A tree of ``planning.rrt``.

        Raises:
            ValueError: The tree belongs to another model.
        """
        instance("tree", tree, Tree)
        if tree.q.shape[1] != self.model.nq:
            raise ValueError(f"tree: its nq is {tree.q.shape[1]}, the model's {self.model.nq}")
        self._branches = branches_of(tree, self._roles)
        self._scene.draw_tree(self._branches, lambda node: self._chosen(tree, node))
        film = film_of_tree(tree)
        self._film = film
        self._title(film.title)
        self.update(film.frames[-1].q)

    def _chosen(self, tree: Tree, node: int) -> None:
        """Show the configuration of a clicked node, with a description."""
        self.update(tree.q[node])
        if self._said is None:
            self._said = self._server.gui.add_markdown("", order=-1.0)
        assert self._film is not None
        self._said.content = said_of(self._film.frames[node])

    def add_plan(self, plan: Plan, rate: float = 20.0) -> None:
        """Add a plan with its goal, and a slider for its steps.

        Args:
            plan: A plan of this model.
            rate: Frames per second.

        Raises:
            ValueError: The plan belongs to another model.
        """
        self.record(film_of_plan(instance("plan", plan, Plan), self.model, _rate(rate)))

    def record(self, trajectory: Film | npt.ArrayLike, rate: float = 20.0) -> None:
        """Add frames with a slider, replacing earlier ones.

        Args:
            trajectory: Configurations ``(n, nq)``.
            rate: Frames per second.

        Raises:
            TypeError, ValueError: The array has another shape, or the rate is not positive.
        """
        if not isinstance(trajectory, Film):
            trajectory = film_of_path(self._rows("trajectory", trajectory), _rate(rate))
        if trajectory.steps:
            sizes = [np.linalg.norm(s.contacts["force"][:, :3], axis=1) for s in trajectory.steps]
            loads = np.concatenate([size[size > 0.0] for size in sizes])
            self._scene.typical = float(np.median(loads)) if len(loads) else 0.0
        if self.model.soft_pair_count:
            self._scene.most_pressure = max(
                highest_pressure(pressure_surface(self.model, frame.q))
                for frame in trajectory.frames
            )
        if trajectory.goal is not None:
            self.add_goal(trajectory.goal)
        if self._player is not None:
            self._player.close()
        self._film = trajectory
        self._title(trajectory.title or self.model.name)
        self._player = Player(self._server.gui, trajectory, self._show_frame)
        self._show_frame(0)

    def _show_frame(self, index: int) -> None:
        assert self._film is not None
        frame = self._film.frames[index]
        self.update(frame.q, step=frame.step)

    def live(self, options: Options | None = None, q: npt.ArrayLike | None = None) -> None:
        """Simulate continuously from ``q``, with sliders for commands, smoothing and margin.

        Unactuated objects can be dragged: a spring pulls the clicked point towards the pointer.

        Args:
            options: Options of the steps; None: the defaults.
            q: Initial configuration ``(nq,)``, also after a reset; None: the default configuration.
        """
        start = self._one("q", self.model.default_q if q is None else q)
        options = Options() if options is None else instance("options", options, Options)
        if self._live is not None:
            self._live.close()
        self._live = Live(self._server.gui, self.model, options, start, self.update)
        self._scene.on_drag(self._live.pull)

    # ------------------------------------------------------------------------------------------ pages and closing

    def page(self, *, dark: bool = False) -> str:
        """Return the offline page as HTML text; it needs neither network nor Python.

        Its time bar shows the frames of :meth:`record` or :meth:`add_plan`.

        Args:
            dark: Whether the page is dark.
        """
        with self._lock:
            film = self._film or Film([self._frame], title=self.model.name)
            stage = stage_of(self.model, self._roles, film, self._goal, self._branches)
        return page_of(stage, dark=dark)

    def save_html(self, path: str | os.PathLike[str], *, dark: bool = False) -> None:
        """Write the :meth:`page` to a file; if writing fails, an existing file stays.

        Args:
            path: Path of the file.
            dark: Whether the background is dark.

        Raises:
            OSError: The file cannot be written.
        """
        place = path_of("path", path)
        page = self.page(dark=dark)
        with replacing(place) as file:
            file.write(page.encode("utf-8"))

    def open(self, height: int = 520) -> None:
        """Show the page inline in a notebook, where it stays when the notebook is saved; elsewhere
        open a browser tab.

        Args:
            height: Height of the inline page, pixels.

        Raises:
            TypeError, ValueError: The height is not a positive integer.
        """
        height = integer("height", height, least=1)
        display = notebook_display()
        if display is None:
            webbrowser.open(self.url)
        else:
            display(framed_page(self.page(), height))

    def wait(self) -> None:
        """Keep the page alive until the process is interrupted."""
        with contextlib.suppress(KeyboardInterrupt):
            while True:
                time.sleep(3600.0)

    def close(self) -> None:
        """Close the page; may be called twice."""
        for part in (self._live, self._player):
            if part is not None:
                part.close()
        self._live = self._player = None
        with contextlib.suppress(RuntimeError), _silence():
            self._server.stop()

    def __enter__(self) -> Viewer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Viewer({self.model.name!r}, {self.url})"

    def _one(self, name: str, q: npt.ArrayLike) -> Array:
        row = self._rows(name, q)
        if np.ndim(q) != 1:
            raise ValueError(
                f"{name}: expected ({self.model.nq},) numbers, got shape {np.shape(q)}"
            )
        return np.asarray(row[0])

    def _rows(self, name: str, values: npt.ArrayLike) -> Array:
        rows = np.atleast_2d(finite(name, reals(name, values)))
        if rows.ndim != 2 or rows.shape[1] != self.model.nq or len(rows) == 0:
            raise ValueError(
                f"{name}: expected configurations of {self.model.nq} numbers, got shape {np.shape(values)}"
            )
        return rows


def _first_eye(roles: Roles) -> Array:
    """Return the position ``(3,)`` m of the camera from which the whole visible region fits into the first view."""
    towards = roles.eye - roles.centre
    half = math.tan(0.5 * _angle(roles))
    distance = 0.6 * roles.size / half
    return np.asarray(roles.centre + distance * towards / np.linalg.norm(towards))


def _rate(rate: float) -> float:
    return number("rate", rate, above=0)


def _server(host: str, port: int | None) -> Any:
    if not isinstance(host, str):
        raise TypeError(f"host: expected a string, got {type(host).__name__}")
    if port is not None:
        port = integer("port", port, least=1, most=65535)
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port or 0))
        except OSError as error:
            raise ValueError(f"port: {host}:{port} cannot be used: {error.strerror}") from None
        free = probe.getsockname()[1]
    viser = need("viser")
    with _silence():
        return viser.ViserServer(host=host, port=free, verbose=False)


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Suppress viser's messages about its address and its end."""
    with contextlib.redirect_stdout(io.StringIO()):
        yield


def _angle(roles: Roles) -> float:
    """Return the vertical angle of the first view; planar models are shown almost without perspective."""
    return _ANGLE if roles.flat is None else 0.25 * _ANGLE
