"""Arguments of rollouts, checked: initial states and the inputs of every step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from qdsim import _core
from qdsim.array_type import Array
from qdsim.batches.inputs import (
    Inputs,
    bristles_of,
    check_finite,
    check_model,
    check_parameters,
    every_step,
    in_rows,
    inputs_of,
    numbers,
    parameter_rows,
    parameters_of,
)

__all__ = ["Given", "courses_of", "one_step_of"]


@dataclass(frozen=True)
class Given:
    """Initial states and inputs of rollouts; arrays have their own leading dimensions."""

    model: _core.Model
    steps: int
    begin: dict[str, Array]
    """The initial q, for second-order steps also v and perhaps bristles, by the names of the caller's arguments."""
    courses: dict[str, Array]
    """Inputs (..., steps, width) of every step, by name."""
    values: dict[str, Array]
    """Parameters (..., size), the same in all steps."""

    @property
    def dynamic(self) -> bool:
        return len(self.begin) > 1

    def leads(self) -> dict[str, tuple[int, ...]]:
        """Leading dimensions by the names of arguments."""
        found = {name: array.shape[:-1] for name, array in self.begin.items()}
        found.update({name: array.shape[:-2] for name, array in self.courses.items()})
        found.update({name: array.shape[:-1] for name, array in self.values.items()})
        return found

    def arguments(self, lead: tuple[int, ...]) -> dict[str, Any]:
        """Checked arguments for the core, as rows of samples."""
        first = {name: in_rows(array, lead, 1) for name, array in self.begin.items()}
        rows = {name: in_rows(array, lead, 2) for name, array in self.courses.items()}
        for name, flat in {**first, **rows}.items():
            check_finite(name, flat, lead)
        own = {name: in_rows(array, lead, 1) for name, array in self.values.items()}
        check_parameters(self.model, own, lead)
        q, v = (*first.values(), None)[:2]
        return {
            "q": q,
            "v": v,
            "u": rows["u"],
            "tau": rows.get("tau"),
            "wrench": rows.get("wrench"),
            "mocap": rows.get("mocap"),
            "parameters": parameter_rows(own),
        }

    def bristles(self, lead: tuple[int, ...]) -> Array | None:
        """Rows of the initial bristle stretches, or None."""
        own = self.begin.get("bristles")
        return None if own is None else in_rows(own, lead, 1)


def courses_of(
    model: _core.Model,
    q0: npt.ArrayLike,
    v0: npt.ArrayLike | None,
    inputs: Inputs,
    bristles: npt.ArrayLike | None = None,
) -> Given:
    """Check the arguments of rollouts."""
    check_model(model)
    begin = {"q0": numbers("q0", q0, (model.nq,))}
    if v0 is not None:
        begin["v0"] = numbers("v0", v0, (model.nv,))
    if bristles is not None:
        begin["bristles"] = bristles_of(model, bristles)
    given = inputs_of(model, inputs, (-1,))
    steps = given["u"].shape[-2]
    courses = {name: every_step(name, course, steps) for name, course in given.items()}
    return Given(model, steps, begin, courses, parameters_of(model, inputs.parameters))


def one_step_of(model: _core.Model, q: npt.ArrayLike, inputs: Inputs) -> Given:
    """Check the arguments of a batch of steps, in the form of rollouts of one step."""
    check_model(model)
    given = inputs_of(model, inputs)
    courses = {name: array[..., None, :] for name, array in given.items()}
    begin = {"q": numbers("q", q, (model.nq,))}
    return Given(model, 1, begin, courses, parameters_of(model, inputs.parameters))
