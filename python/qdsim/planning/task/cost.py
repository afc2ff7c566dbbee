"""Weights of trajectory optimisation: squared errors of object and robot, and changes of the
command."""

from __future__ import annotations

import dataclasses
from typing import Protocol

import numpy as np

from qdsim.arguments import fields, number, numbers
from qdsim.planning.task.space import ObjectSpace

__all__ = ["TrackingCost"]


class HasObject(Protocol):
    """Has the object's coordinates and length, as a task does."""

    @property
    def space(self) -> ObjectSpace: ...
    @property
    def length(self) -> float: ...


@dataclasses.dataclass(frozen=True)
class TrackingCost:
    """Weights of CQDC eq. (43b), with changes of the command in place of the command itself.

        cost = |e_T|^2_final + sum_{t<T} |e_t|^2_running + |u_t - u_{t-1}|^2_command
               + sum_{0<t<=T} touch |d_t|^2

    Here ``e_t`` is the error of configuration ``t`` from the task's goal, and ``u_{-1}`` is the
    command that holds the start. ``d_t`` are the vectors from the object's centre of mass to the ends
    of the robot's last links: they bring fingers to the object and keep them around it. As in the
    authors' code, there is no factor 1/2. Errors of rotation are logarithms, so the cost does not
    depend on coordinates.

    Each weight is one number or one per coordinate.

    Attributes:
        object: weights of the object's displacement from its goal, 1/m^2 and 1/rad^2, one per
            tangent coordinate of ``task.space``.
        robot: weights of the actuated joints' distances from the goal's, one per actuator.
        command: weights of the change of the command per step, one per actuator, > 0.
        touch: weight of the fingertips' distances from the object, 1/m^2.
        final_object, final_robot: weights at the last configuration; None: 100 times those of the
            other steps.
    """

    object: float | tuple[float, ...] = 10.0
    robot: float | tuple[float, ...] = 1e-3
    command: float | tuple[float, ...] = 10.0
    touch: float = 0.0
    final_object: float | tuple[float, ...] | None = None
    final_robot: float | tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        fields(self, number, "touch", least=0)
        for field in dataclasses.fields(self):
            if field.name == "touch":
                continue
            value = getattr(self, field.name)
            if value is None and field.name.startswith("final"):
                value = tuple(100.0 * np.atleast_1d(getattr(self, field.name[6:])))
                value = value[0] if len(value) == 1 else value
            above, least = (0, None) if field.name == "command" else (None, 0)
            checked = numbers(field.name, value, per="coordinate", above=above, least=least)
            object.__setattr__(self, field.name, checked)

    @classmethod
    def for_task(cls, task: HasObject) -> TrackingCost:
        """Make a cost in which a displacement by the object's length and a rotation by one radian
        have equal weight.

        Args:
            task: its object and characteristic ``length`` (m) determine the weights.
        """
        scale = task.space.scale(task.length) / task.length
        return cls(object=tuple(10.0 * scale**2))
