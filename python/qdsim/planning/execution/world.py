"""The interface of a simulator or robot for executions: its state, and a time step with a command."""

from __future__ import annotations

import abc
import math

import numpy as np

from qdsim.array_type import Array
from qdsim.model import Model
from qdsim.planning.execution.loops.loop import LOOK
from qdsim.planning.task.drives import robot_v, sharing, slopes
from qdsim.planning.task.robot import (
    GRAVITY,
    command_range,
    critical_damping,
    lies_on_a_plane,
    mass_metric,
)
from qdsim.planning.task.space import ObjectSpace, as_slice
from qdsim.planning.task.transfer_options import TransferOptions

__all__ = ["PlantError", "World", "damping_of", "lag_of"]

FAR = 2.0
"""Distance from its path at which the object counts as lost, in largest distances of the robot from the
object. With ten times as much, test_execution_outcomes.py fails."""


class PlantError(RuntimeError):
    """A plant does not answer, or its answer is not a valid state; the message says which."""


class World(abc.ABC):
    """A simulated or real plant, with the robot's gravity compensated, and with the object's support.

    Args:
        model: The model.
        space: Coordinates of the object.
        options: Friction of the support.
        damping: Damping ``(nv,)`` of all coordinates, N s/m and Nm s/rad.
        compensated: Whether gravity on the robot is compensated.
        bounds: Lower and upper bounds ``(nu,)`` of the commands.

    Attributes:
        rubs: Whether the object's support has friction.
        supported: Whether the object lies on a plane that is not part of the model.
        lag: Time ``(nu,)`` by which a moving command has to be advanced because of the joints'
            damping, s.
        lost: Whether the object has left the watched region; the simulation then stands still.
        steps: Number of time steps so far.
        timestep: Time step, s.
    """

    _q: Array
    _v: Array

    def __init__(
        self,
        model: Model,
        space: ObjectSpace,
        options: TransferOptions,
        damping: Array,
        compensated: bool,
        bounds: tuple[Array, Array] | None = None,
    ) -> None:
        self.model, self.space = model, space
        self.held = np.asarray(model.actuated_v[model.actuated_v >= 0])
        # As slices, these entries are views and not copies.
        self._held, self._object = as_slice(self.held), as_slice(space.v)
        self.compensated = compensated
        self._lower, self._upper = command_range(model) if bounds is None else bounds
        self.lag = lag_of(model, damping)
        mass = mass_metric(model)[space.v]
        slides = mass[~space.rotation]
        self.supported = lies_on_a_plane(model, space)
        self._friction = options.support_friction * GRAVITY * mass * self.supported
        self.rubs = bool(self._friction.any())
        self._resists = np.asarray(damping)[space.v]
        self._per_mass = mass / slides.max(initial=1e-300)
        self.lost = False
        self._center, self._radius = np.zeros(3), math.inf
        self._look = max(1, round(LOOK / options.timestep))
        self.steps, self.timestep = 0, options.timestep

    @property
    def q(self) -> Array:
        """The configuration ``(nq,)``; of a robot, the last one read."""
        return np.array(self._q)

    @property
    def v(self) -> Array:
        """The velocity ``(nv,)``, m/s and rad/s; of a robot, the last one read."""
        return np.array(self._v)

    @abc.abstractmethod
    def _place(self, q: Array) -> None:
        """Set the configuration to ``q``, at rest."""

    @abc.abstractmethod
    def _step(self, u: Array) -> None:
        """Take a time step with a command within its bounds."""

    def watch(self, configurations: Array) -> None:
        """Set the region beyond which the object counts as lost, from all ``configurations`` (n, nq).

        The object is lost if it is farther from its poses in these configurations than twice the
        largest distance of any link of the robot from the object. A door on its hinge is never lost.
        """
        model, body = self.model, self.space.body
        way = np.array([model.body_pose(q, body)[0] for q in configurations])
        self._center = 0.5 * (way.min(axis=0) + way.max(axis=0))
        parts = sorted({int(b) for b in model.geom_body if b > 0})
        away = [
            np.linalg.norm(model.body_pose(q, model.body_names[b])[0] - p)
            for q, p in zip(configurations, way)
            for b in parts
        ]
        extent = float(np.linalg.norm(way - self._center, axis=1).max())
        self._radius = extent + FAR * float(np.max(away, initial=0.0))

    def reset(self, q: Array) -> None:
        """Set the configuration to ``q``, at rest."""
        self._place(q)
        self.lost = False

    def support_load(self, way: Array) -> Array | None:
        """Return the friction ``(size,)`` of the support on an object that moves along ``way``, N and Nm;
        None without friction."""
        size = float(np.sqrt(self._per_mass @ (way * way)))
        if not self._friction.any() or size == 0.0:
            return None
        return np.asarray(-self._friction * way / size)

    def load(self, way: Array, seconds: float) -> Array | None:
        """Return what resists an object that moves along ``way`` in a time, N and Nm: the friction of its support, and
        its damping; None without either."""
        friction = self.support_load(way)
        if not self._resists.any():
            return friction
        drag = np.asarray(-self._resists * way / seconds)
        return drag if friction is None else drag + friction

    def within(self, u: Array) -> Array:
        """Return a command ``(nu,)`` clipped to its bounds."""
        return np.minimum(np.maximum(u, self._lower), self._upper)

    def advance(self, u: Array) -> None:
        """Take a time step with the command ``u``, clipped to its bounds; no step if the object is
        lost.

        Raises:
            PlantError: The plant does not answer, or its answer is not a valid state.
        """
        if self.lost:
            return
        self._step(self.within(u))
        self.steps += 1
        if self.steps % self._look == 0:
            here = self.model.body_pose(self.q, self.space.body)[0]
            self.lost = not float(np.linalg.norm(here - self._center)) <= self._radius


def lag_of(model: Model, damping: Array) -> Array:
    """Compute the lag ``(nu,)`` of each actuator, s: the damping of the joints that it moves, divided by its stiffness.

    Joints that share a tendon yield like dampers in series: under a tension p, each joint moves with the speed
    ``c p / d``, where c is the change of the tendon's length per unit of the joint, and d the joint's damping.
    """
    stiffness = np.asarray(model.parameters.actuator_stiffness)
    if not sharing(model):
        return np.asarray(damping[model.actuated_v] / stiffness)
    own = robot_v(model)
    with np.errstate(divide="ignore"):
        speed = slopes(model, model.default_q)[:, own] ** 2 @ (1.0 / damping[own])
    return np.asarray(1.0 / (speed * stiffness))


def damping_of(model: Model, space: ObjectSpace, options: TransferOptions) -> Array:
    """Return the damping ``(nv,)`` that executions add: critical damping, ``2 sqrt(k m)``, of actuated
    joints, and the object's damping."""
    damping = critical_damping(model)
    damping[space.v] += options.object_damping
    return damping
