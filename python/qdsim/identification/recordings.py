"""Recordings, divided into pieces that are simulated, and their residuals."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from qdsim.arguments import reals
from qdsim.array_type import SAME, Array
from qdsim.identification.simulated import Simulated
from qdsim.identification.unknowns import Unknowns
from qdsim.model import Model

__all__ = ["Pieces", "Recording", "weights"]


@dataclasses.dataclass(frozen=True, eq=False)
class Recording:
    """Commands and measured configurations of one experiment.

    Attributes:
        q: ``(N + 1, nq)`` configurations, the first one included, at equal distances in time.
        u: ``(T, nu)`` commands, one per step of the options' ``h``. T is N, or a multiple of N if
            steps are shorter than the time between configurations.
        v: ``(N + 1, nv)`` velocities, or None; second-order steps begin with them, and at rest
            without. They are not compared with.
    """

    q: Array
    u: Array
    v: Array | None = None

    def __post_init__(self) -> None:
        for name in ("q", "u") if self.v is None else ("q", "u", "v"):
            array = reals(name, getattr(self, name))
            if array.ndim != 2 or not np.isfinite(array).all():
                raise ValueError(
                    f"{name}: expected finite rows, one a step, got shape {array.shape}"
                )
            object.__setattr__(self, name, np.array(array))
        if len(self.u) == 0 or len(self.q) < 2 or len(self.u) % (len(self.q) - 1):
            raise ValueError(
                "q: expected one configuration more than commands, or one for every few commands and the first, "
                f"got {len(self.q)} and {len(self.u)}"
            )
        if self.v is not None and len(self.v) != len(self.q):
            raise ValueError(f"v: expected {len(self.q)} rows, as q has, got {len(self.v)}")

    @property
    def stride(self) -> int:
        """Number of steps from one configuration to the next."""
        return len(self.u) // (len(self.q) - 1)


@dataclasses.dataclass(frozen=True, eq=False)
class _Batch:
    """Pieces of one length: number of steps from one configuration to the next, configurations
    (n, N + 1, nq), initial velocities (n, nv), and commands (n, T, nu)."""

    stride: int
    q: Array
    v: Array
    u: Array


class Pieces:
    """Recordings in pieces, each simulated from its own first configuration."""

    def __init__(
        self,
        simulated: Simulated,
        recordings: list[Recording],
        horizon: int | None,
        weights: Array,
    ) -> None:
        self.simulated, self.model, self.weights = simulated, simulated.model, weights
        by_shape: dict[tuple[int, int], list[tuple[Array, Array, Array]]] = {}
        for recording in recordings:
            count, stride = len(recording.q) - 1, recording.stride
            v = np.zeros((count + 1, self.model.nv)) if recording.v is None else recording.v
            for t in range(0, count, horizon or count):
                q = recording.q[t : t + (horizon or count) + 1]
                u = recording.u[t * stride : (t + len(q) - 1) * stride]
                by_shape.setdefault((len(q), stride), []).append((q, v[t], u))
        self.batches = [
            _Batch(stride, *(np.array(part) for part in zip(*rows)))
            for (_, stride), rows in by_shape.items()
        ]

    def _errors(self, path: Array, batch: _Batch) -> Array:
        nq, seen = self.model.nq, path[:, batch.stride :: batch.stride]
        flat = zip(seen.reshape(-1, nq), batch.q[:, 1:].reshape(-1, nq))
        found = np.array([self.model.difference(a, b) for a, b in flat])
        return np.asarray((found * self.weights).ravel())

    @property
    def start_count(self) -> int:
        """Number of unknowns of the initial states of all pieces: every measured coordinate, in
        units of its error."""
        return sum(len(batch.q) for batch in self.batches) * int(np.count_nonzero(self.weights))

    @property
    def row_count(self) -> int:
        """Number of recorded coordinates after the initial configurations."""
        rows = sum(len(batch.q) * (int(batch.q.shape[1]) - 1) for batch in self.batches)
        return rows * self.model.nv

    def _begun(self, starts: Array) -> Iterator[tuple[Array, _Batch, Array]]:
        """Iterate over batches of pieces: initial configurations (n, nq), the batch, and starts.

        Starts (start_count,) are deviations of the initial configurations from the recorded ones;
        without any, the recorded ones are used.
        """
        seen, done = np.flatnonzero(self.weights), 0
        for batch in self.batches:
            own = starts[done : done + len(batch.q) * len(seen)]
            done += len(own)
            begin = batch.q[:, 0]
            if len(own):
                moved = np.zeros((len(batch.q), self.model.nv))
                moved[:, seen] = own.reshape(len(batch.q), -1) / self.weights[seen]
                begin = np.array([self.model.integrate(a, b) for a, b in zip(begin, moved)])
            yield begin, batch, own

    def correlation(self, r: Array) -> tuple[float, int]:
        """Return the correlation of residuals (m,) with those of the next step, and the number of pairs.

        For noise that is independent from step to step, the correlation is about zero, with a
        standard deviation of one over the root of the number. It is set to zero for residuals as
        small as rounding errors.
        """
        products, squares, pairs, done = 0.0, 0.0, 0, 0
        raw, moved = 0.0, 0.0
        seen = np.flatnonzero(self.weights)
        for batch in self.batches:
            q = batch.q
            n, steps, _ = shape = (len(q), int(q.shape[1]) - 1, self.model.nv)
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
        for begin, batch, own in self._begun(x[len(unknowns.names) :]):
            path = self.simulated.paths(begin, batch.v, batch.u, arrays)
            if path is None:
                return None
            parts += [self._errors(path, batch), own]
        return np.concatenate(parts)

    def jacobian(self, unknowns: Unknowns, x: Array) -> tuple[Array, Array]:
        """Return the residuals (m,) and their derivatives (m, len(x)) with respect to the unknowns."""
        count, arrays = len(unknowns.names), unknowns.arrays(x)
        seen = np.flatnonzero(self.weights) if len(x) > count else np.zeros(0, np.intp)
        tangents = unknowns.directions(len(seen))
        if len(seen):
            tangents["q"] = np.zeros((count + len(seen), 1, self.model.nv))
            tangents["q"][count + np.arange(len(seen)), 0, seen] = 1.0 / self.weights[seen]
        residuals, blocks, done = [], [], count
        for begin, batch, own in self._begun(x[count:]):
            path, moved = self.simulated.tangents(begin, batch.v, batch.u, arrays, tangents)
            residuals += [self._errors(path, batch), own]
            moved = moved[:, :, batch.stride :: batch.stride] * self.weights
            moved = moved.reshape(len(moved), len(begin), -1)
            rows = np.zeros((moved[0].size, len(x)))
            rows[:, :count] = moved[:count].reshape(count, -1).T
            for p, block in enumerate(np.split(rows, len(begin)) if len(own) else ()):
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
