"""Which page shows what: models, steps, plans, trees, rollouts, executions, paths of configurations, files of plans and
robots."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from qdsim.arguments import instance, number, reals
from qdsim.batches.rollouts import Rollouts
from qdsim.model import Model
from qdsim.planning import Plan, Transfer, Tree
from qdsim.planning.task.task import Task
from qdsim.step import Step
from qdsim.systems import System
from qdsim.viewer.frames import Film, film_of_path, film_of_plan, film_of_transfer
from qdsim.viewer.viewer import Viewer

__all__ = ["save_html", "show"]

_MOST = 8
"""Rollouts that are shown, one after the other."""


def show(
    thing: Any,
    model: Model | None = None,
    *,
    rate: float = 20.0,
    port: int | None = None,
    open: bool = True,
) -> Viewer:
    """Show something in a browser: in a notebook inline, so that the saved notebook keeps it; else in a tab.

    Args:
        thing: a model, published system, task, step, plan, tree, result of :func:`qdsim.rollout` or
            :func:`qdsim.planning.transfer`, configurations ``(nq,)`` or ``(n, nq)``, or the path of
            a robot file or of a plan.
        model: what it belongs to, where it does not say so itself (steps, plans, rollouts, executions, configurations).
        rate: frames a second.
        port: of the page; None: one that is free.
        open: whether to open it in a browser.

    Raises:
        ImportError: without the extra ``viewer``.
        TypeError, ValueError: for what cannot be shown, or belongs to another model.
    """
    viewer = _viewer(thing, model, number("rate", rate, above=0), port)
    if open:
        viewer.open()
    return viewer


def save_html(
    thing: Any, path: str | os.PathLike[str], model: Model | None = None, *, rate: float = 20.0
) -> None:
    """Write what :func:`show` shows as one page that needs neither network nor Python; no server is left behind."""
    with _viewer(thing, model, number("rate", rate, above=0), None) as viewer:
        viewer.save_html(path)


def _viewer(thing: Any, model: Model | None, rate: float, port: int | None) -> Viewer:
    if isinstance(thing, (str, os.PathLike)):
        thing = _of_file(thing)
    if isinstance(thing, System):
        thing, model = thing.start.q, thing.model
    if isinstance(thing, Model):
        return Viewer(thing, port=port)
    if isinstance(thing, Task):
        viewer = Viewer(
            thing.model, object=thing.object, configurations=thing.start, goal=thing.goal, port=port
        )
        viewer.add_goal(thing.goal)
        return viewer
    if isinstance(thing, Tree):
        task = thing.task
        viewer = Viewer(
            task.model, object=task.object, configurations=thing.q, goal=task.goal, port=port
        )
        viewer.add_goal(task.goal)
        viewer.add_tree(thing)
        return viewer
    if model is None:
        raise ValueError(f"model: a {type(thing).__name__} needs the model that it belongs to")
    instance("model", model, Model)
    if isinstance(thing, Step):
        q = model.integrate(thing.q_next, -thing.delta)
        viewer = Viewer(model, configurations=q, port=port)
        viewer.update(q, step=thing)
        return viewer
    film = _film(thing, model, rate)
    viewer = Viewer(
        model, object=film.object, configurations=film.configurations, goal=film.goal, port=port
    )
    if len(film.frames) > 1:
        viewer.record(film)
    return viewer


def _film(thing: Any, model: Model, rate: float) -> Film:
    if isinstance(thing, Plan):
        return film_of_plan(thing, model, rate)
    if isinstance(thing, Transfer):
        return film_of_transfer(thing, rate)
    if isinstance(thing, Rollouts):
        thing = thing.q.reshape(-1, *thing.q.shape[-2:])[:_MOST].reshape(-1, thing.q.shape[-1])
    rows = np.atleast_2d(reals("thing", thing))
    if rows.ndim != 2 or rows.shape[1] != model.nq:
        raise ValueError(
            f"thing: expected configurations of {model.nq} numbers, got shape {rows.shape}"
        )
    return film_of_path(rows, rate)


def _of_file(path: str | os.PathLike[str]) -> Any:
    """The model of a robot file."""
    from qdsim.loading import load

    return load(path)
