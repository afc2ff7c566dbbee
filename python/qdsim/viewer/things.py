"""Pages for all kinds of objects: models, steps, plans, trees, rollouts, executions,
configurations, files."""

from __future__ import annotations

import os
import zipfile
from dataclasses import dataclass
from typing import Any

import numpy as np

from qdsim import systems
from qdsim.arguments import instance, integer, number, path_of, reals
from qdsim.array_type import Array
from qdsim.batches.rollouts import Rollouts
from qdsim.model import Model
from qdsim.planning import ExecutedMotion, ExecutorReport, Plan, Transfer, Tree
from qdsim.planning.task.task import Task
from qdsim.step import Step
from qdsim.systems import System
from qdsim.viewer.branches import branches_of
from qdsim.viewer.frames import (
    Film,
    Frame,
    film_of_execution,
    film_of_path,
    film_of_plan,
    film_of_tree,
)
from qdsim.viewer.notebook import notebook_display
from qdsim.viewer.page import framed_page, page_of
from qdsim.viewer.roles import roles_of
from qdsim.viewer.stage import stage_of
from qdsim.viewer.viewer import Viewer
from qdsim.whole_files import replacing

__all__ = ["Shown", "save_html", "show", "shown_of"]

_MOST = 8
"""Largest number of rollouts that are shown, one after the other."""


@dataclass(frozen=True, eq=False)
class Shown:
    """The content of a page: frames, the goal, and a planner's tree."""

    model: Model
    film: Film
    goal: Array | None = None
    tree: Tree | None = None

    def page(self, *, dark: bool = False) -> str:
        """Return a page that needs neither network nor Python."""
        seen = self.film.configurations
        roles = roles_of(self.model, self.film.object, seen, self.goal)
        branches = None if self.tree is None else branches_of(self.tree, roles)
        return page_of(stage_of(self.model, roles, self.film, self.goal, branches), dark=dark)

    def viewer(self, port: int | None = None) -> Viewer:
        """Show the content on a server."""
        film = self.film
        viewer = Viewer(
            self.model,
            object=film.object,
            configurations=film.configurations,
            goal=self.goal,
            port=port,
        )
        if self.goal is not None:
            viewer.add_goal(self.goal)
        if self.tree is not None:
            viewer.add_tree(self.tree)
        elif len(film.frames) > 1:
            viewer.record(film)
        else:
            viewer.update(film.frames[0].q, step=film.frames[0].step)
        return viewer


def show(
    thing: Any,
    model: Model | None = None,
    *,
    rate: float = 20.0,
    port: int | None = None,
    open: bool = True,
    height: int = 520,
) -> Viewer | None:
    """Show a plan, model, step or similar object in a browser.

    In a notebook the page is in a frame below the cell, which needs no server and stays in the
    saved notebook; otherwise a server on this machine shows it in a tab.

    Args:
        thing: A model, published system, task, step, plan, tree, result of :func:`qdsim.rollout` or
            :func:`qdsim.planning.transfer` or an :class:`qdsim.planning.Executor`, configurations ``(nq,)`` or ``(n, nq)``, or the path of
            a robot file or a plan.
        model: The model of ``thing``, if it does not contain it (steps, rollouts, executions,
            configurations, and plans of tasks that are not published).
        rate: Frames per second, 1/s.
        port: Port of the page; None: a free one.
        open: Whether to open the browser; if not, only the server is started.
        height: Height of the frame in a notebook, pixels.

    Returns:
        The server's viewer; None if a notebook shows the page.

    Raises:
        ImportError: The extra ``viewer`` is not installed.
        TypeError, ValueError: The object cannot be shown, or belongs to another model.
    """
    height = integer("height", height, least=1)
    shown = shown_of(thing, model, number("rate", rate, above=0))
    display = notebook_display() if open and port is None else None
    if display is not None:
        display(framed_page(shown.page(), height))
        return None
    viewer = shown.viewer(port)
    if open:
        viewer.open()
    return viewer


def save_html(
    thing: Any,
    path: str | os.PathLike[str],
    model: Model | None = None,
    *,
    rate: float = 20.0,
    dark: bool = False,
) -> None:
    """Write a page that shows a plan, model, step or similar object, and needs neither network nor
    Python.

    Args:
        thing, model: As for :func:`show`, for example a plan or configurations ``(n, nq)``.
        path: The file; if writing fails, an existing file stays.
        rate: Frames per second, 1/s.
        dark: Whether the background is dark.

    Raises:
        ImportError: The extra ``viewer`` is not installed.
        OSError: The file cannot be written.
        TypeError, ValueError: As :func:`show`.
    """
    place = path_of("path", path)
    page = shown_of(thing, model, number("rate", rate, above=0)).page(dark=dark)
    with replacing(place) as file:
        file.write(page.encode("utf-8"))


def shown_of(thing: Any, model: Model | None, rate: float) -> Shown:
    """Return the content of a page for an object.

    Raises:
        TypeError, ValueError: As :func:`show`.
    """
    if isinstance(thing, (str, os.PathLike)):
        thing = _of_file(thing)
    if isinstance(thing, System):
        thing, model = thing.start.q, thing.model
    if isinstance(thing, Model):
        return Shown(thing, _still(thing.default_q, thing.name))
    if isinstance(thing, Task):
        film = _still(thing.start, thing.name, object=thing.object)
        return Shown(thing.model, film, thing.goal)
    if isinstance(thing, Tree):
        return Shown(thing.task.model, film_of_tree(thing), thing.task.goal, thing)
    if model is None and isinstance(thing, Plan):
        model = published_model(thing)
    if model is None:
        raise ValueError(f"model: a {type(thing).__name__} needs the model that it belongs to")
    instance("model", model, Model)
    if isinstance(thing, Step):
        if len(thing.q_next) != model.nq:
            raise ValueError(f"model: the step has nq = {len(thing.q_next)}, the model {model.nq}")
        q = model.integrate(thing.q_next, -thing.delta)
        return Shown(model, _still(q, model.name, step=thing))
    film = _film(thing, model, rate)
    return Shown(model, film, film.goal)


def published_model(plan: Plan) -> Model | None:
    """Return the model of the published system with a plan's task; None if there is none."""
    for system in map(systems.load, systems.TASK_NAMES):
        if any(task.name == plan.task for task in system.tasks.values()):
            return system.model
    return None


def _still(q: Array, title: str, *, object: str | None = None, step: Step | None = None) -> Film:
    return Film([Frame(np.asarray(q), 1.0, step)], object=object, title=title)


def _film(thing: Any, model: Model, rate: float) -> Film:
    if isinstance(thing, Plan):
        return film_of_plan(thing, model, rate)
    if isinstance(thing, (Transfer, ExecutorReport)):
        thing = thing.motion
    if isinstance(thing, ExecutedMotion):
        return film_of_execution(thing, rate)
    if isinstance(thing, Rollouts):
        thing = thing.q.reshape(-1, *thing.q.shape[-2:])[:_MOST].reshape(-1, thing.q.shape[-1])
    rows = np.atleast_2d(reals("thing", thing))
    if rows.ndim != 2 or rows.shape[1] != model.nq:
        raise ValueError(
            f"thing: expected configurations of {model.nq} numbers, got shape {rows.shape}"
        )
    return film_of_path(rows, rate)


def _of_file(path: str | os.PathLike[str]) -> Any:
    """Load the plan or the model of a file."""
    from qdsim.loading import load

    return Plan.load(path) if zipfile.is_zipfile(path) else load(path)
