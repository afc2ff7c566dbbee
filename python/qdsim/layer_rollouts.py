"""Rollouts and their derivatives on arrays, for the functions of ``jax`` and ``torch``.

A path is the sequence of states: configurations (..., T + 1, nq), for second-order steps followed
by velocities (..., T + 1, nq + nv). Coordinates are ambient.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from qdsim._core import PARAMETER_NAMES
from qdsim.array_type import Array
from qdsim.batches.dynamics import rollout_dynamic
from qdsim.batches.given import courses_of
from qdsim.batches.inputs import Inputs
from qdsim.batches.pulling import Products, products_of, pull_finished, push
from qdsim.batches.rollouts import rollout
from qdsim.dynamics import DynamicOptions
from qdsim.model import Model
from qdsim.step import Options

__all__ = ["LayerRollouts", "split"]


@dataclass(frozen=True)
class LayerRollouts:
    """Rollouts of a model, with all arguments that are not arrays.

    ``kappa`` is that of smoothed derivatives, or None.
    """

    model: Model
    options: Options | DynamicOptions
    kappa: float | None
    threads: int
    errors: Literal["raise", "mark"]

    @property
    def is_dynamic(self) -> bool:
        """Whether steps are second-order ones."""
        return isinstance(self.options, DynamicOptions)

    @property
    def width(self) -> int:
        """Number of components of a path's states."""
        return self.model.nq + self.model.nv * self.is_dynamic

    def forward(self, arrays: Mapping[str, Array]) -> tuple[Array, npt.NDArray[np.int32]]:
        """Compute the path and the status of rollouts for arrays by name: "q", "u" and others."""
        given, parameters = _apart(arrays)
        q, u, tau, wrench = (given.get(name) for name in ("q", "u", "tau", "wrench"))
        assert q is not None and u is not None
        more: dict[str, Any] = {
            "tau": tau,
            "wrench": wrench,
            "parameters": parameters,
            "threads": self.threads,
            "errors": self.errors,
        }
        if self.is_dynamic:
            found = rollout_dynamic(self.model, q, given["v"], u, self.options, **more)
            return np.concatenate((found.q, found.v), axis=-1), np.asarray(found.status)
        plain = rollout(self.model, q, u, self.options, **more)
        return plain.q, np.asarray(plain.status)

    def pull(
        self,
        arrays: Mapping[str, Array],
        path: Array,
        status: npt.NDArray[np.int32],
        cotangent: Array,
        wrt: Iterable[str],
    ) -> dict[str, Array]:
        """Compute gradients by name for rollouts along a path; they are zero for failed rollouts."""
        found, ok = pull_finished(
            self._products(arrays),
            split(self.model, self.is_dynamic, path),
            status,
            split(self.model, self.is_dynamic, cotangent),
            wrt,
            self.threads,
            self.errors,
        )
        for gradient in found.values():
            gradient[~ok] = 0.0
        return found

    def push(self, arrays: Mapping[str, Array], tangents: Mapping[str, Array]) -> Array:
        """Compute the change of the path for tangents of arrays; it is zero for failed rollouts."""
        products = self._products(arrays)
        found = push(products, tangents, self.threads, self.errors, self._caller)
        parts = [found[name] for name in ("tangent", *("v_tangent",) * self.is_dynamic)]
        changes = np.concatenate(parts, axis=-1)
        changes[found["status"] != 0] = 0.0
        return changes

    @property
    def _caller(self) -> str:
        return "rollout_dynamic" if self.is_dynamic else "rollout"

    def _products(self, arrays: Mapping[str, Array]) -> Products:
        given, parameters = _apart(arrays)
        q, v, u, tau, wrench = (given.get(name) for name in ("q", "v", "u", "tau", "wrench"))
        assert q is not None and u is not None
        courses = courses_of(self.model, q, v, Inputs(u, tau, wrench, None, parameters))
        derivative = "step" if self.kappa is None else "smoothed"
        return products_of(courses, self.options, "ambient", derivative, self.kappa)


def _apart(arrays: Mapping[str, Array]) -> tuple[dict[str, Array], dict[str, Array]]:
    """Separate the arguments of rollouts from parameters."""
    given = {name: array for name, array in arrays.items() if name not in PARAMETER_NAMES}
    return given, {name: array for name, array in arrays.items() if name in PARAMETER_NAMES}


def split(model: Model, dynamic: bool, path: Any) -> tuple[Any, ...]:
    """Split paths (..., width), of any library, into configurations and, for second-order steps, velocities."""
    return (path[..., : model.nq], path[..., model.nq :]) if dynamic else (path,)
