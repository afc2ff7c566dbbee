"""Commands of rollouts that depend on the state at the beginning of each step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from qdsim import _core
from qdsim.arguments import instance
from qdsim.array_type import Array
from qdsim.batches.inputs import in_rows, numbers

__all__ = ["Feedback", "feedback_arrays", "feedback_leads", "feedback_rows"]

_PATHS = ("q_nominal", "v_nominal")
_GAINS = ("q_gain", "v_gain")
_BOUNDS = ("lower", "upper")


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Feedback:
    """Commands of a rollout that depend on the state at the beginning of each step.

    The command of step t is ``clip(u[t] + q_gain[t] (q - q_nominal[t]) + v_gain[t] (v -
    v_nominal[t]), lower, upper)``, with the first difference in tangent coordinates at
    q_nominal[t]. This is the form of a linear quadratic regulator. A quasi-dynamic rollout has no v
    and takes neither v_nominal nor v_gain.

    Derivatives of rollouts include the feedback; a command at a bound does not change. The gradient
    with respect to u[t] is also that with respect to the sum of the other terms, so the gradient
    with respect to q_gain[t] is ``np.outer(gradient_u[t], model.difference(q[t], q_nominal[t]))``,
    and with respect to v_gain[t] ``np.outer(gradient_u[t], v[t] - v_nominal[t])``.
    """

    q_nominal: npt.ArrayLike
    """(T, nq) configurations, the same for all samples."""
    v_nominal: npt.ArrayLike | None = None
    """(T, nv) velocities, the same for all samples; required with v_gain."""
    q_gain: npt.ArrayLike
    """(..., T, nu, nv)"""
    v_gain: npt.ArrayLike | None = None
    """(..., T, nu, nv); None: zero."""
    lower: npt.ArrayLike | None = None
    """(nu) lower bounds of commands; None: none."""
    upper: npt.ArrayLike | None = None
    """(nu) upper bounds of commands; None: none."""

    def arrays(self, model: _core.Model) -> dict[str, Array]:
        """Return all given arrays, checked.

        Args:
            model: the model of the rollout; its nq, nv and nu are the expected sizes.

        Raises:
            TypeError, ValueError: if a field is invalid; the message names it.
        """
        nu, nv = model.nu, model.nv
        shapes = {"q_nominal": (-1, model.nq), "q_gain": (-1, nu, nv)}
        if (self.v_nominal is None) != (self.v_gain is None):
            raise ValueError("feedback.v_gain: expected with v_nominal or not at all")
        if self.v_gain is not None:
            shapes |= {"v_nominal": (-1, nv), "v_gain": (-1, nu, nv)}
        found = {
            name: numbers(f"feedback.{name}", getattr(self, name), shape)
            for name, shape in shapes.items()
        }
        for name, array in found.items():
            if not np.isfinite(array).all():
                raise ValueError(f"feedback.{name}: expected finite numbers")
        for name in set(_PATHS) & set(found):
            if found[name].ndim != 2:
                raise ValueError(
                    f"feedback.{name}: expected the same for all samples, two dimensions"
                )
        for name, end in (("lower", -np.inf), ("upper", np.inf)):
            value = getattr(self, name)
            given = np.full(nu, end) if value is None else value
            found[name] = numbers(f"feedback.{name}", given, (nu,)).copy()
        if not np.all(found["lower"] <= found["upper"]):
            raise ValueError("feedback.lower: expected at most upper, and no NaN")
        return found


def feedback_arrays(
    model: _core.Model, feedback: Feedback | None, steps: int, dynamic: bool
) -> dict[str, Array] | None:
    """Return the checked arrays of a feedback for rollouts with a given number of steps, or None.

    Raises:
        TypeError, ValueError: if a field is invalid; the message names it.
    """
    instance("feedback", feedback, Feedback, or_none=True)
    if feedback is None:
        return None
    found = feedback.arrays(model)
    if "v_gain" in found and not dynamic:
        raise ValueError("feedback.v_gain: expected None, a quasi-dynamic step has no velocities")
    for name, array in found.items():
        if name in _BOUNDS:
            continue
        length = array.shape[-3 if name in _GAINS else -2]
        if length != steps:
            raise ValueError(f"feedback.{name}: expected {steps} steps, as u has, got {length}")
    return found


def feedback_leads(arrays: Mapping[str, Array] | None) -> dict[str, tuple[int, ...]]:
    """Return the leading dimensions of the gains by name."""
    found = arrays or {}
    return {f"feedback.{name}": found[name].shape[:-3] for name in _GAINS if name in found}


def feedback_rows(
    arrays: Mapping[str, Array] | None, lead: tuple[int, ...], steps: int
) -> dict[str, Array] | None:
    """Return the arrays in the form of the core: rows of samples."""
    if arrays is None:
        return None
    gains = {name: in_rows(arrays[name], lead, 3) for name in _GAINS if name in arrays}
    paths = {name: arrays[name] for name in _PATHS if name in arrays}
    nu = arrays["lower"].size
    count = len(gains["q_gain"])
    bounds = {name: np.broadcast_to(arrays[name], (count, steps, nu)) for name in _BOUNDS}
    gains["x_gain"] = gains.pop("q_gain")
    return {**paths, **bounds, **gains, "u_before": np.zeros(nu)}
