"""Samples around points: drawn, stepped on all cores, averaged in pieces of limited size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from qdsim import _core
from qdsim.arguments import MOST_HELD
from qdsim.array_type import Array
from qdsim.batches.inputs import Inputs, Wrench, parameters_in, rows_of
from qdsim.batches.steps import linearize_batch, step_batch
from qdsim.model import Model
from qdsim.smoothing.charts import Chart
from qdsim.smoothing.densities import Density
from qdsim.smoothing.estimates import Estimate, Means, block_mean, score_slope, slope
from qdsim.smoothing.local_model import LocalModel, StandardError
from qdsim.smoothing.noise import Design, draw
from qdsim.step import Options, linearize

__all__ = ["Points", "Sampler", "points_of"]

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Points:
    """Nominal points as rows, and their leading dimensions."""

    lead: tuple[int, ...]
    q: Array
    u: Array
    loads: dict[str, Array]  # tau (points, nv) and wrench (points, body_count, 6), if given
    parameters: dict[str, Array]  # (points, *shape) parameters of each point

    def others(self, at: Any) -> dict[str, Any]:
        """Return the arguments of a batch other than q and u, indexed by ``at``."""
        own = {name: array[at] for name, array in self.parameters.items()}
        return {**{name: array[at] for name, array in self.loads.items()}, "parameters": own}


def points_of(
    model: Model,
    q: npt.ArrayLike,
    u: npt.ArrayLike,
    tau: npt.ArrayLike | None,
    wrench: Wrench | None,
    parameters: Mapping[str, npt.ArrayLike] | None,
) -> Points:
    lead, rows = rows_of(model, q, Inputs(u, tau, wrench, None, parameters))
    loads: dict[str, Array] = {}
    if "tau" in rows:
        loads["tau"] = rows["tau"]
    if "wrench" in rows:
        loads["wrench"] = rows["wrench"].reshape(-1, model.body_count, 6)
    return Points(lead, rows["q"], rows["u"], loads, parameters_in(model, rows))


@dataclass(frozen=True)
class _Piece:
    """Results of some samples of some points."""

    shift: Array  # (points, samples, nv) next states relative to the nominal next state
    slopes: (
        Array | None
    )  # (points, samples, nv, columns) derivatives, in tangent coordinates at the nominal points
    ok: Flags  # (points, samples)
    exact: Flags  # (points, samples)


@dataclass(frozen=True)
class Sampler:
    """A randomized scheme for one model. Coordinates of samples are those of q (nv), then u (nu)."""

    model: Model
    options: Options
    design: Design
    density: Density
    alpha: float
    by_score: bool
    std: Array  # (nv + nu)
    sampled_q: bool
    with_A: bool
    with_B: bool

    def run(
        self,
        points: Points,
        key: int,
        common: bool,
        threads: int | None,
        errors: Literal["drop", "raise"],
    ) -> LocalModel:
        """Compute the local models at all points."""
        self._check_columns()
        model, count = self.model, len(points.q)
        nominal = step_batch(
            model,
            points.q,
            points.u,
            self.options,
            **points.others(slice(None)),
            threads=threads,
            contacts=False,
        ).q_next
        first = draw(self.design, self.density, key, 0, self._active.size)[None]
        parts = []
        for part in _cuts(count, max(1, MOST_HELD // (self._cut * self._width))):
            noise = first
            if not common:
                streams = range(part.start, part.stop)
                noise = np.stack(
                    [draw(self.design, self.density, key, k, self._active.size) for k in streams]
                )
            parts.append(self._estimate(points, nominal, part, noise, threads, errors))
        return self._collect(points.lead, parts)

    # ------------------------------------------------------------ sizes

    @property
    def _active(self) -> npt.NDArray[np.intp]:
        """Indices of the coordinates that are sampled."""
        return np.flatnonzero(self.std > 0.0)

    @property
    def _columns(self) -> npt.NDArray[np.intp]:
        """Indices of the coordinates whose derivatives are wanted: the columns of [A B]."""
        nv, n = self.model.nv, self.model.nv + self.model.nu
        return np.arange(0 if self.with_A else nv, n if self.with_B else nv)

    @property
    def _share(self) -> Array:
        """Weight (columns) of the zeroth order in each column."""
        zeroth = (self._columns >= self.model.nv) | self.sampled_q
        return np.where(zeroth, self.alpha, 0.0)

    @property
    def _width(self) -> int:
        model = self.model
        return max(1, model.nq + model.nv * (2 + model.nv + model.nu))

    @property
    def _cut(self) -> int:
        """Number of samples of a point that are computed at a time.

        It does not depend on the number of points, and neither do the results. Eight points are in memory.
        """
        block = self.design.block
        return min(self.design.samples, max(1, MOST_HELD // (8 * self._width * block)) * block)

    def _check_columns(self) -> None:
        zeroth = self._columns[self._share > 0.0]
        idle = zeroth[self.std[zeroth] == 0.0]
        if idle.size:
            at = int(idle[0]) - self.model.nv
            name = f"std: of actuator {at}" if at >= 0 else f"sample_q: of DOF {int(idle[0])}"
            raise ValueError(f"{name} is 0, and zeroth order needs noise in every direction")
        if zeroth.size and not self.by_score:
            own = self.design.samples // (2 if self.design.antithetic else 1)
            least = self._least_own
            if own < least:
                least *= 2 if self.design.antithetic else 1
                raise ValueError(
                    f"samples: least squares over {self._active.size} coordinates needs at least "
                    f"{least}, got {self.design.samples}"
                )

    @property
    def _least_own(self) -> int:
        """Smallest number of samples, without mirrored ones, that determines a regression."""
        return self._active.size + (0 if self.design.antithetic else 1)

    # ------------------------------------------------------------ some points

    def _estimate(
        self,
        points: Points,
        nominal: Array,
        part: slice,
        noise: Array,
        threads: int | None,
        errors: str,
    ) -> tuple[Estimate, Estimate, Flags, Flags, Array]:
        """Estimate the shift of c and [A B]; return also which samples succeeded, where derivatives
        are exact, and c."""
        chart = Chart(self.model)
        n, block = part.stop - part.start, self.design.block
        shift = Means(n, self.model.nv)
        slopes = Means(n, self.model.nv, self._columns.size)
        share = self._share
        pieces, kept = [], []
        for cut in _cuts(self.design.samples, self._cut):
            piece = self._piece(points, nominal, part, noise[:, cut], threads, chart)
            good: Flags = np.all(piece.ok.reshape(n, -1, block), axis=2)
            shift.add(block_mean(piece.shift, block), good)
            if piece.slopes is not None:
                slopes.add(block_mean(piece.slopes, block), good)
            pieces.append((piece.ok, piece.exact, good))
            if share.any():
                kept.append(piece.shift)
        ok, exact, good = (np.concatenate(parts, axis=1) for parts in zip(*pieces))
        self._check_failures(points, part, noise, ok, good, chart, errors)
        found = slopes.estimate()
        if share.any():
            found = self._mix(found, self._zeroth(np.concatenate(kept, axis=1), noise, good))
        moved = shift.estimate()
        value = chart.rows_from(found.value, moved.value)
        c = chart.retract(nominal[part], moved.value)
        return moved, Estimate(value, found.error), ok, (exact | ~ok).all(axis=1), c

    def _samples(
        self, points: Points, part: slice, unit: Array, chart: Chart
    ) -> tuple[Array, Array, Array]:
        """Return q and u of samples with this noise, and the part w_q of the noise."""
        nv = self.model.nv
        noise = np.zeros((*unit.shape[:-1], self.std.size))
        noise[..., self._active] = unit * self.std[self._active]
        q = points.q[part, None]
        if self.sampled_q:
            q = chart.retract(q, noise[..., :nv])
        return q, points.u[part, None] + noise[..., nv:], noise[..., :nv]

    def _piece(
        self,
        points: Points,
        nominal: Array,
        part: slice,
        unit: Array,
        threads: int | None,
        chart: Chart,
    ) -> _Piece:
        q, u, noise_q = self._samples(points, part, unit, chart)
        derivative = bool((self._share < 1.0).any())
        common: dict[str, Any] = {
            **points.others((part, None)),
            "threads": threads,
            "errors": "mark",
            "contacts": False,
        }
        if not derivative:
            steps = step_batch(self.model, q, u, self.options, **common)
            shift = chart.difference(steps.q_next, nominal[part, None])
            return _Piece(shift, None, steps.ok, np.ones_like(steps.ok))
        wrt = ("q",) * self.with_A + ("u",) * self.with_B
        found = linearize_batch(self.model, q, u, self.options, wrt=wrt, **common)
        shift = chart.difference(found.q_next, nominal[part, None])
        blocks = []
        if found.A is not None:
            blocks.append(chart.columns_at(found.A, noise_q) if self.sampled_q else found.A)
        if found.B is not None:
            blocks.append(found.B)
        slopes = chart.rows_at(np.concatenate(blocks, axis=-1), shift)
        return _Piece(shift, slopes, found.ok, found.derivative_exact)

    def _zeroth(self, shift: Array, noise: Array, good: Flags) -> Estimate:
        """Estimate slopes with respect to the sampled coordinates, and put them into their columns."""
        score = self.density.score
        assert score is not None
        active, columns = self._active, self._columns
        std = self.std[active]
        count = len(shift)
        value = np.broadcast_to(score(noise), (count, *noise.shape[1:]))
        if self.by_score:
            found = score_slope(shift, value, good, self.design.block)
        else:
            found = slope(shift, value / self.density.fisher, good, self.design.block)
        at = np.searchsorted(active, columns)
        there = at < active.size
        there[there] = active[at[there]] == columns[there]
        result = np.zeros((2, count, self.model.nv, columns.size))
        for into, estimate in zip(result, (found.value, found.error)):
            into[..., there] = (estimate / std)[..., at[there]]
        return Estimate(result[0], result[1])

    def _mix(self, first: Estimate, zeroth: Estimate) -> Estimate:
        """Combine the two orders.

        Both estimates use the same samples, so the sum of their errors is a bound.
        """
        a, b = self._share, 1.0 - self._share
        # A weight of zero removes even an infinite error.
        error = [
            np.where(s > 0, np.where(s > 0, s, 1.0) * e, 0.0)
            for s, e in ((a, zeroth.error), (b, first.error))
        ]
        return Estimate(a * zeroth.value + b * first.value, error[0] + error[1])

    # ------------------------------------------------------------ failures

    def _check_failures(
        self,
        points: Points,
        part: slice,
        noise: Array,
        ok: Flags,
        good: Flags,
        chart: Chart,
        errors: str,
    ) -> None:
        if ok.all():
            return
        least = 1
        if (self._share > 0).any() and not self.by_score:
            own = self.design.block // 2 if self.design.antithetic else self.design.block
            least = -(-self._least_own // own)
        bad = np.flatnonzero(~ok.all(axis=1) if errors == "raise" else good.sum(axis=1) < least)
        if bad.size == 0:
            return
        k = int(bad[0])
        i = int(np.flatnonzero(~ok[k])[0])
        q, u, _ = self._samples(
            points,
            slice(part.start + k, part.start + k + 1),
            noise[k % len(noise) :][:1, i : i + 1],
            chart,
        )
        others = points.others(part.start + k)
        model = self.model.with_parameters(**others.pop("parameters"))
        where = "" if points.lead == () else f"point {_index(part.start + k, points.lead)}: "
        said = f"Randomized.linearize: {where}{int((~ok[k]).sum())} of {ok.shape[1]} samples failed"
        try:
            linearize(model, q[0, 0], u[0, 0], self.options, **others)
        except _core.SolverError as error:
            _core._raise_batch_failure(f"{said}, sample {i}", error.info, error.culprits)
        raise RuntimeError(f"{said}, but sample {i} does not fail on its own")  # never seen

    # ------------------------------------------------------------ together

    def _collect(
        self, lead: tuple[int, ...], parts: list[tuple[Estimate, Estimate, Flags, Flags, Array]]
    ) -> LocalModel:
        nv = self.model.nv

        def joined(arrays: list[Any], *tail: int) -> Array:
            empty = np.zeros((0, *tail))
            return np.concatenate([empty, *arrays]).reshape((*lead, *tail))

        def split(both: Array) -> tuple[Array | None, Array | None]:
            A = np.ascontiguousarray(both[..., :nv]) if self.with_A else None
            B = np.ascontiguousarray(both[..., nv if self.with_A else 0 :]) if self.with_B else None
            return A, B

        columns = self._columns.size
        A, B = split(joined([p[1].value for p in parts], nv, columns))
        error_A, error_B = split(joined([p[1].error for p in parts], nv, columns))
        failed = joined([(~p[2]).sum(axis=1) for p in parts])
        return LocalModel(
            A=A,
            B=B,
            c=joined([p[4] for p in parts], self.model.nq),
            std_error=StandardError(error_A, error_B, joined([p[0].error for p in parts], nv)),
            samples=self.design.samples,
            failed=failed.astype(np.int64),
            derivative_exact=joined([p[3] for p in parts]).astype(np.bool_),
        )


def _cuts(count: int, size: int) -> Iterator[slice]:
    for start in range(0, count, size):
        yield slice(start, min(count, start + size))


def _index(flat: int, lead: tuple[int, ...]) -> str:
    index = [int(i) for i in np.unravel_index(flat, lead)]
    return str(index[0] if len(index) == 1 else index)
