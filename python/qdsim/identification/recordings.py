"""Recordings, divided into pieces that are simulated, and their residuals."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from qdsim.arguments import reals
from qdsim.array_type import SAME, Array
from qdsim.batches.products import rollout_jvp
from qdsim.batches.rollouts import rollout
from qdsim.identification.unknowns import Unknowns
from qdsim.model import Model
from qdsim.step import Options

__all__ = ["Pieces", "Recording", "weights"]


@dataclasses.dataclass(frozen=True, eq=False)
class Recording:
    """Commands and measured configurations of one experiment.

    Attributes:
        q: ``(T + 1, nq)`` configurations, the first one included, one per step of the options'
            ``h``.
        u: ``(T, nu)`` commands.
    """

    q: Array
    u: Array

    def __post_init__(self) -> None:
        for name in ("q", "u"):
            array = reals(name, getattr(self, name))
            if array.ndim != 2 or not np.isfinite(array).all():
                raise ValueError(
                    f"{name}: expected finite rows, one a step, got shape {array.shape}"
                )
            object.__setattr__(self, name, np.array(array))
        if len(self.q) != len(self.u) + 1 or len(self.u) == 0:
            raise ValueError(
                f"q: expected one configuration more than commands, got {len(self.q)} and {len(self.u)}"
            )


class Pieces:
    threads: int | None
    kappa: float | None

    def __init__(
        self,
        model: Model,
        recordings: list[Recording],
        options: Options,
        horizon: int | None,
        weights: Array,
    ) -> None:
        self.model, self.options, self.weights = model, options, weights
        by_length: dict[int, list[tuple[Array, Array]]] = {}
        for recording in recordings:
            length = len(recording.u) if horizon is None else horizon
            for t in range(0, len(recording.u), length):
                u = recording.u[t : t + length]
                by_length.setdefault(len(u), []).append((recording.q[t : t + len(u) + 1], u))
        self.batches = [
            (np.array([q for q, _ in rows]), np.array([u for _, u in rows]))
            for rows in by_length.values()
        ]

    def _errors(self, path: Array, q: Array) -> Array:
        flat = zip(path[:, 1:].reshape(-1, self.model.nq), q[:, 1:].reshape(-1, self.model.nq))
        found = np.array([self.model.difference(a, b) for a, b in flat])
        return np.asarray((found * self.weights).ravel())

    @property
    def start_count(self) -> int:
        """Number of unknowns of the initial states of all pieces: every measured coordinate, in
        units of its error."""
        return sum(len(q) for q, _ in self.batches) * int(np.count_nonzero(self.weights))

    @property
    def row_count(self) -> int:
        """Number of recorded coordinates after the initial configurations."""
        return sum(int(u.shape[0]) * int(u.shape[1]) for _, u in self.batches) * self.model.nv

    def _begun(self, starts: Array) -> Iterator[tuple[Array, Array, Array, Array]]:
        """Iterate over batches of pieces: initial configurations (n, nq), recorded configurations,
        commands, and starts.

        Starts (start_count,) are deviations of the initial configurations from the recorded ones;
        without any, the recorded ones are used.
        """
        seen, done = np.flatnonzero(self.weights), 0
        for q, u in self.batches:
            own = starts[done : done + len(q) * len(seen)]
            done += len(own)
            begin = q[:, 0]
            if len(own):
                moved = np.zeros((len(q), self.model.nv))
                moved[:, seen] = own.reshape(len(q), -1) / self.weights[seen]
                begin = np.array([self.model.integrate(a, b) for a, b in zip(begin, moved)])
            yield begin, q, u, own

    def correlation(self, r: Array) -> tuple[float, int]:
        """Return the correlation of residuals (m,) with those of the next step, and the number of pairs.

        For noise that is independent from step to step, the correlation is about zero, with a
        standard deviation of one over the root of the number. It is set to zero for residuals as
        small as rounding errors.
        """
        products, squares, pairs, done = 0.0, 0.0, 0, 0
        raw, moved = 0.0, 0.0
        seen = np.flatnonzero(self.weights)
        for q, u in self.batches:
            n, steps, _ = shape = (*u.shape[:2], self.model.nv)
            left = r[done : done + math.prod(shape)].reshape(shape)[..., seen]
            done += math.prod(shape) + (n * len(seen) if len(r) > self.row_count else 0)
            products += float(np.sum(left[:, 1:] * left[:, :-1]))
            squares += float(np.sum(left * left)) * (steps - 1) / steps
            pairs += n * (steps - 1) * len(seen)
            raw += float(np.sum((left / self.weights[seen]) ** 2))
            moved += float(np.sum((q[:, 1:] - q[:, :1]) ** 2))
        told = squares > 0.0 and pairs > 0 and raw > SAME**2 * moved
        return (products / squares if told else 0.0), pairs

    def residuals(self, unknowns: Unknowns, x: Array) -> Array | None:
        """Return the residuals (m,), with those of the starts; None if a step fails."""
        parts, arrays = [], unknowns.arrays(x)
        for begin, q, u, own in self._begun(x[len(unknowns.names) :]):
            found = rollout(
                self.model,
                begin,
                u,
                self.options,
                parameters=arrays,
                threads=self.threads,
                errors="mark",
            )
            if not found.ok.all():
                return None
            parts += [self._errors(found.q, q), own]
        return np.concatenate(parts)

    def jacobian(self, unknowns: Unknowns, x: Array) -> tuple[Array, Array]:
        """Return the residuals (m,) and their derivatives (m, len(x)) with respect to the unknowns."""
        more: dict[str, Any] = (
            {} if self.kappa is None else {"derivative": "smoothed", "kappa": self.kappa}
        )
        count, arrays = len(unknowns.names), unknowns.arrays(x)
        seen = np.flatnonzero(self.weights) if len(x) > count else np.zeros(0, np.intp)
        tangents = unknowns.directions(len(seen))
        if len(seen):
            tangents["q"] = np.zeros((count + len(seen), 1, self.model.nv))
            tangents["q"][count + np.arange(len(seen)), 0, seen] = 1.0 / self.weights[seen]
        residuals, blocks, done = [], [], count
        for begin, q, u, own in self._begun(x[count:]):
            found = rollout_jvp(
                self.model,
                begin,
                u,
                self.options,
                tangents=tangents,
                parameters=arrays,
                threads=self.threads,
                **more,
            )
            residuals += [self._errors(found.q[0], q), own]
            moved = (found.tangent[:, :, 1:] * self.weights).reshape(len(found.tangent), len(q), -1)
            rows = np.zeros((moved[0].size, len(x)))
            rows[:, :count] = moved[:count].reshape(count, -1).T
            for p, block in enumerate(np.split(rows, len(q)) if len(own) else ()):
                at = done + p * len(seen)
                block[:, at : at + len(seen)] = moved[count:, p].T
            blocks += [rows, np.eye(len(x))[done : done + len(own)]]
            done += len(own)
        return np.concatenate(residuals), np.concatenate(blocks)


def weights(model: Model, seen: Iterable[str] | None, scale: npt.ArrayLike) -> Array:
    """Return one over the measurement errors (nv,), and zero for coordinates that are not measured."""
    sizes = reals("scale", scale)
    if sizes.ndim > 1 or (sizes.ndim == 1 and len(sizes) != model.nv) or not (sizes > 0.0).all():
        raise ValueError(
            f"scale: expected a number > 0 or {model.nv} of them, got shape {sizes.shape}"
        )
    weights = 1.0 / np.broadcast_to(sizes, (model.nv,))
    if seen is None:
        return weights
    counts = np.zeros(model.nv)
    for name in seen:
        if name not in model.joint_names:
            raise ValueError(f"seen: the model has no joint {name!r}")
        counts[model.slice_v(name)] = 1.0
    return np.asarray(weights * counts)
