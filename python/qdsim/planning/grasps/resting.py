"""Whether an object stays in place when the robot releases it."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from qdsim._core import SolverError
from qdsim.arguments import instance, vector
from qdsim.array_type import SAME, Array
from qdsim.model import Model
from qdsim.planning.task.drives import once
from qdsim.planning.task.robot import robot_bodies
from qdsim.planning.task.space import ObjectSpace
from qdsim.step import Options, step

__all__ = [
    "FALL",
    "STILL_POSITION",
    "STILL_ROTATION",
    "drop",
    "is_stable",
    "landing",
    "without_robot",
]

STILL_POSITION, STILL_ROTATION = 1e-3, 1e-2
"""Limits in m and rad: an object that moves by less in a step without the robot counts as resting. With
ten times as much, test_motion.py fails."""

FALL = 0.1
"""Shortest time step, s: in a shorter step, free fall and rest could not be distinguished."""

FALLS = 40
"""Largest number of steps of a fall, of about 10 cm each."""


def drop(model: Model, q: Array, object: str, options: Options) -> tuple[float, float]:
    """Measure how far an object moves in one exact step without the robot, m and rad.

    The model is stepped without the geometries of all bodies that actuators move. If the
    surroundings (a table, a fixed palm) can hold the object, it stays in place; otherwise it falls
    or slides by about ``h^2 g / epsilon``, with h at least 0.1 s.

    Args:
        model: the model.
        q: ``(nq,)`` configuration.
        object: name of the object's body.
        options: of the plan's steps.

    Raises:
        ValueError: if an argument is invalid; the message names it.

    The step is that of CQDC, section III (formulation 2), without the robot.
    """
    instance("model", model, Model)
    instance("options", options, Options)
    after = _fallen(model, q, options)
    return (math.inf, math.inf) if after is None else ObjectSpace(model, object).errors(after, q)


def _fallen(model: Model, q: Array, options: Options) -> Array | None:
    """Compute one exact step without the robot; None if it cannot be solved."""
    bare = without_robot(model)
    exact = options.replace(h=max(options.h, FALL), kappa=None, held=())
    try:
        return np.asarray(step(bare, q, bare.command_from(q), exact).q_next)
    except SolverError:
        return None


def landing(model: Model, q: Array, object: str, options: Options) -> Array | None:
    """Find where an object comes to rest after the robot releases it, by steps of :func:`drop`.

    Args:
        model, q, object, options: as for :func:`drop`.

    Returns:
        ``(nq,)``, the robot as in ``q``; None if the object falls out of the scene.
    """
    own, here = ObjectSpace(model, object).q, np.array(q)
    for _ in range(FALLS):
        after = _fallen(model, here, options)
        if after is None:
            return None
        moved = float(np.abs(after[own] - here[own]).max())
        here[own] = after[own]
        if moved <= SAME:
            return here
    return None


def is_stable(model: Model, q: Array, object: str, options: Options) -> bool:
    """Compute whether an object stays in place without the robot: :func:`drop` is at most 1 mm and
    0.01 rad.

    Args:
        model: the model; without gravity every object stays.
        q: ``(nq,)`` configuration, m and rad.
        object: name of the object's body.
        options: of the plan's steps.

    Raises:
        ValueError: as for :func:`drop`.
    """
    instance("model", model, Model)
    instance("options", options, Options)
    if not np.any(model.parameters.gravity):
        ObjectSpace(model, object)
        vector("q", q, model.nq)
        return True
    shift, turn = drop(model, q, object, options)
    return shift <= STILL_POSITION and turn <= STILL_ROTATION


@once
def without_robot(model: Model) -> Model:
    """Return the model without the geometries of bodies that actuators move."""
    description = model.description
    robot: list[bool] = robot_bodies(model).tolist()
    gone = {
        geom.name for b, body in enumerate(description.bodies) if robot[b] for geom in body.geoms
    }
    bodies = tuple(
        dataclasses.replace(body, geoms=()) if robot[b] else body
        for b, body in enumerate(description.bodies)
    )
    pairs = tuple(pair for pair in description.pairs if not {pair.geom_a, pair.geom_b} & gone)
    return Model(dataclasses.replace(description, bodies=bodies, pairs=pairs))
