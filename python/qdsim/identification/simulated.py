"""Rollouts of quasi-dynamic or of second-order steps, as the options say, and their tangents."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from qdsim.array_type import Array
from qdsim.batches.dynamics import DynamicRollouts, rollout_dynamic, rollout_dynamic_jvp
from qdsim.batches.products import rollout_jvp
from qdsim.batches.rollouts import Rollouts, rollout
from qdsim.dynamics import DynamicOptions
from qdsim.model import Model
from qdsim.step import Options

__all__ = ["Simulated"]


@dataclasses.dataclass(frozen=True, eq=False)
class Simulated:
    """A model with the steps that are compared with recordings.

    Attributes:
        model: the model.
        options: of the steps; their class decides between ``step`` and ``step_dynamic``.
        threads: as in ``qdsim.rollout``.
        kappa: weight of the log barrier of derivatives, None: exact derivatives.
    """

    model: Model
    options: Options | DynamicOptions
    threads: int | None
    kappa: float | None

    def paths(self, q: Array, v: Array, u: Array, arrays: Mapping[str, Array]) -> Array | None:
        """Return configurations (n, T + 1, nq) from states (n, nq), (n, nv) on by commands (n, T,
        nu); None if a step fails.
        """
        model, threads = self.model, self.threads
        found: Rollouts | DynamicRollouts
        if isinstance(self.options, DynamicOptions):
            found = rollout_dynamic(
                model, q, v, u, self.options, parameters=arrays, threads=threads, errors="mark"
            )
        else:
            found = rollout(
                model, q, u, self.options, parameters=arrays, threads=threads, errors="mark"
            )
        return found.q if found.ok.all() else None

    def tangents(
        self,
        q: Array,
        v: Array,
        u: Array,
        arrays: Mapping[str, Array],
        directions: Mapping[str, Array],
    ) -> tuple[Array, Array]:
        """Return configurations (n, T + 1, nq) and their tangents (k, n, T + 1, nv) along k
        directions.

        Raises:
            SolverError: if a step fails.
        """
        if isinstance(self.options, DynamicOptions):
            moved = rollout_dynamic_jvp(
                self.model,
                q,
                v,
                u,
                self.options,
                tangents=directions,
                parameters=arrays,
                threads=self.threads,
            )
            return moved.q[0], moved.tangent
        found = rollout_jvp(
            self.model,
            q,
            u,
            self.options,
            tangents=directions,
            parameters=arrays,
            threads=self.threads,
            derivative="step" if self.kappa is None else "smoothed",
            kappa=self.kappa,
        )
        return found.q[0], found.tangent
