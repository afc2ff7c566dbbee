"""A part of a plan with one grasp."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdsim.array_type import Array

__all__ = ["Segment"]


@dataclasses.dataclass(frozen=True, eq=False)
class Segment:
    """A part of a plan between two regrasps.

    Attributes:
        inputs: ``(steps, nu)`` commands, one for each step of ``Plan.options.h``.
        configurations: ``(steps + 1, nq)``, the start and the configuration after every step.
        knots: ``(edges,)`` number of steps up to the end of each edge of the tree.
        contacts: contacts that exert a force, of all steps one after the other, as in
            ``Step.contacts`` (points and frames are those at the beginning of their step); None if
            not known.
        contact_start: ``(steps + 1,)``, step k's contacts are
            ``contacts[contact_start[k]:contact_start[k + 1]]``; None without ``contacts``.
    """

    inputs: Array
    configurations: Array
    knots: np.ndarray[Any, np.dtype[np.int64]]
    contacts: NDArray[np.void] | None = None
    contact_start: np.ndarray[Any, np.dtype[np.int64]] | None = None

    def __post_init__(self) -> None:
        if (self.contacts is None) != (self.contact_start is None):
            raise ValueError("contacts: belong together with contact_start")
        if self.contacts is not None and self.contact_start is not None:
            start = self.contact_start
            if (
                start.shape != (len(self.inputs) + 1,)
                or start[0] != 0
                or start[-1] != len(self.contacts)
                or np.any(np.diff(start) < 0)
            ):
                raise ValueError("contact_start: does not divide the contacts among the steps")

    @property
    def start(self) -> Array:
        """Configuration ``(nq,)`` before the first step."""
        return np.asarray(self.configurations[0])

    @property
    def end(self) -> Array:
        """Configuration ``(nq,)`` after the last step."""
        return np.asarray(self.configurations[-1])

    @property
    def steps(self) -> int:
        """Number of steps."""
        return len(self.inputs)

    def contacts_of(self, step: int) -> NDArray[np.void]:
        """Return the contacts with a force of one step, as in ``Step.contacts``.

        Args:
            step: its index, from 0.

        Raises:
            IndexError: if there is no such step.
            ValueError: if the contacts are not known; ``plan.with_forces(model)`` computes them.
        """
        if not 0 <= step < self.steps:
            raise IndexError(f"step: expected 0 to {self.steps - 1}, got {step!r}")
        if self.contacts is None or self.contact_start is None:
            raise ValueError("contacts: not known; take them from plan.with_forces(model)")
        return self.contacts[self.contact_start[step] : self.contact_start[step + 1]]

    def cut(self, count: int) -> Segment:
        """Return the segment's first ``count`` steps.

        Args:
            count: number of steps, 1 to ``steps``.
        """
        knots = np.append(self.knots[self.knots < count], count)
        start = None if self.contact_start is None else self.contact_start[: count + 1]
        own = None if self.contacts is None or start is None else self.contacts[: start[-1]]
        return Segment(self.inputs[:count], self.configurations[: count + 1], knots, own, start)

    def __repr__(self) -> str:
        return f"Segment({self.steps} steps, {len(self.knots)} edges)"
