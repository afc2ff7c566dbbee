"""Parameters of a model from recordings of what happened: friction, stiffness, masses, sizes, centres of mass.

Gauss-Newton steps (Levenberg and Marquardt's damping, bounds by a bounded least squares) on the exact derivatives of
rollouts by parameters, carried forwards through contact.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from qdsim._core import PARAMETER_NAMES, SolverError
from qdsim.arguments import instance, integer, number, reals
from qdsim.array_type import Array
from qdsim.batches.products import rollout_jvp
from qdsim.batches.rollouts import rollout
from qdsim.model import Model
from qdsim.planning.task.least_squares import least_squares_in_box
from qdsim.step import Options

__all__ = ["Identified", "Recording", "identify"]

_DAMPING = 1e-3
"""Of the first step, relative to the squared columns of the jacobian."""
_MOST_DAMPING = 1e9
_LEFT = 1e-3
"""Share of the squared residuals, over their number less that of the unknowns, that the linear model may still promise to
take off an answer that is called converged: a thirtieth of a standard error."""
_SECANT = 1e-4
"""Relative change of an unknown whose effect is a secant."""
_PROBES = (0.25, 0.5, 2.0, 4.0)
"""Multiples of the unknowns at which searches may begin."""
_FLAT = 1e-10
"""Relative size of a singular value that counts as zero: a direction that the recordings do not show."""


@dataclasses.dataclass(frozen=True, eq=False)
class Recording:
    """What was commanded and what was seen.

    Attributes:
        q: ``(T + 1, nq)`` configurations, the first one included, one every step of the options' ``h``.
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


@dataclasses.dataclass(frozen=True, eq=False)
class Identified:
    """What recordings say about a model.

    Attributes:
        model: with the parameters that were found.
        parameters: from names to their arrays, as `Model.with_parameters` takes them.
        values: ``(k,)`` the unknowns, in order of names and group numbers.
        standard_errors: ``(k,)`` of these, under independent errors of one size; NaN of an unknown at a bound,
            infinite of one that the recordings do not determine.
        covariance: ``(k, k)`` likewise.
        names: of the unknowns, such as "pair_friction[0]".
        residual: root mean square of what is left, m and rad divided by `scale`: 1 where the scale is that of the
            measurements and the model is right.
        iterations: steps that were tried.
        converged: whether the optimality conditions hold: the linear model promises next to nothing from any further
            step within the bounds. Where it is False, the values are where the search was stuck, at a step that has
            no answer or a kink say, and the standard errors do not say how far they are from the truth.
        condition: number of the Jacobian with columns of one size: how nearly some combination of the unknowns that
            are not at bounds changes nothing; infinite where one does not.
    """

    model: Model
    parameters: dict[str, Array]
    values: Array
    standard_errors: Array
    covariance: Array
    names: tuple[str, ...]
    residual: float
    iterations: int
    converged: bool
    condition: float = math.nan

    @property
    def undetermined(self) -> tuple[str, ...]:
        """Names of the unknowns that the recordings do not determine, alone or in combination with others."""
        return tuple(
            name for name, error in zip(self.names, self.standard_errors) if math.isinf(error)
        )

    def __str__(self) -> str:
        lines = [
            f"{name}: {value:.6g} ± {error:.2g}"
            for name, value, error in zip(self.names, self.values, self.standard_errors)
        ]
        end = "converged" if self.converged else "NOT CONVERGED: stuck short of an optimum"
        lines.append(f"{end} after {self.iterations} steps; condition number {self.condition:.2g}")
        lines.append(
            f"residual: {self.residual:.3g} of the scale (1: the noise that a given scale says)"
        )
        if self.undetermined:
            lines.append(f"not determined by the recordings: {', '.join(self.undetermined)}")
        return "\n".join(lines)


def identify(
    model: Model,
    recordings: Recording | Sequence[Recording],
    parameters: Mapping[str, npt.ArrayLike],
    options: Options | None = None,
    *,
    bounds: Mapping[str, tuple[npt.ArrayLike, npt.ArrayLike]] | None = None,
    seen: Iterable[str] | None = None,
    scale: npt.ArrayLike = 1.0,
    horizon: int | None = None,
    kappa: float | None = None,
    threads: int | None = None,
    iterations: int = 50,
    tolerance: float = 1e-8,
) -> Identified:
    """Find parameters under which the model does what was recorded.

    Minimises the sum of squares of ``(q_simulated ⊟ q_recorded) / scale`` over all steps, unknowns within bounds. The
    search begins at the model's own parameters, and where it ends short of the optimality conditions or there is much
    left, at the best of some multiples of these, too; the least residual counts.

    Args:
        model: the model, whose own parameters are where the search begins.
        recordings: one or more; each is simulated from its own first configuration.
        parameters: the unknowns: from names of `model.parameters` to whole numbers of the
            parameter's shape (or such that broadcast to it). Entries with the same number, from 0
            on, are one unknown, that of -1 stay as they are: ``{"body_mass": [-1, 0, -1],
            "pair_friction": [[0, 0, -1, -1, -1]]}`` is the mass of one body and one coefficient of
            sliding friction.
        options: of the steps, None for the defaults.
        bounds: from names to (lower, upper) of their unknowns, numbers or one each; else they have
            to be positive, but for "body_com", "joint_springref" and "gravity", which may be
            anything.
        seen: names of the joints whose displacements count; None: all.
        scale: errors of the measurement, a number or one of each coordinate ``(nv,)``, m and rad; only their ratios
            matter.
        horizon: where given, recordings are cut into pieces of so many steps, each from its recorded configuration:
            a long rollout through contact forgets its beginning.
        kappa: where given, derivatives are those of the log-barrier step of this weight: contacts that are missed or
            that stick all the time still say something.
        threads: as in `qdsim.rollout`.
        iterations: steps to try at most, from each beginning.
        tolerance: relative change of the unknowns, or of what is left, at which the search ends.

    Returns:
        `Identified`.

    Raises:
        TypeError, ValueError: naming the argument and what was wrong.
        SolverError: if a step of the model as it is given has no answer.

    Example:
        >>> found = qdsim.identify(model, recording, {"pair_friction": [[0, 0, -1, -1, -1]]})
        >>> print(found)
    """
    instance("model", model, Model)
    instance("options", options, Options, or_none=True)
    given = [recordings] if isinstance(recordings, Recording) else list(recordings)
    if not given:
        raise ValueError("recordings: there is none")
    for k, recording in enumerate(given):
        instance(f"recordings[{k}]", recording, Recording)
        if recording.q.shape[1] != model.nq or recording.u.shape[1] != model.nu:
            raise ValueError(
                f"recordings[{k}]: expected rows of {model.nq} and {model.nu}, got {recording.q.shape[1]} and {recording.u.shape[1]}"
            )
    integer("iterations", iterations, least=1)
    number("tolerance", tolerance, above=0)
    if horizon is not None:
        integer("horizon", horizon, least=1)
    unknowns = _Unknowns(model, parameters, bounds or {})
    pieces = _Pieces(model, given, options or Options(), horizon, _weights(model, seen, scale))
    pieces.threads, pieces.kappa = threads, kappa
    return _search(model, unknowns, pieces, iterations, tolerance)


# ---------------------------------------------------------------- what is unknown


class _Unknowns:
    def __init__(
        self,
        model: Model,
        parameters: Mapping[str, npt.ArrayLike],
        bounds: Mapping[str, tuple[npt.ArrayLike, npt.ArrayLike]],
    ) -> None:
        if not isinstance(parameters, Mapping) or not parameters:
            raise TypeError("parameters: expected a mapping from names to numbers of groups")
        self.groups: dict[str, npt.NDArray[np.intp]] = {}
        self.base: dict[str, Array] = {}
        self.names: list[str] = []
        values: list[float] = []
        lower: list[float] = []
        upper: list[float] = []
        self.first: dict[str, int] = {}
        for name, numbers in parameters.items():
            if name not in PARAMETER_NAMES:
                raise ValueError(
                    f"parameters: expected names among {', '.join(PARAMETER_NAMES)}, got {name!r}"
                )
            base = np.array(getattr(model.parameters, name))
            groups = _groups(name, numbers, base.shape)
            count = int(groups.max()) + 1
            self.groups[name], self.base[name], self.first[name] = groups, base, len(values)
            free = name in ("body_com", "joint_springref", "gravity")
            low, high = bounds.get(name, (-math.inf if free else 1e-9, math.inf))
            lower += _spread(f"bounds[{name!r}]", low, count)
            upper += _spread(f"bounds[{name!r}]", high, count)
            for k in range(count):
                self.names.append(f"{name}[{k}]")
                values.append(float(base[groups == k].mean()))
        for name in bounds:
            if name not in parameters:
                raise ValueError(f"bounds: {name!r} is not among the parameters")
        self.lower, self.upper = np.array(lower), np.array(upper)
        if not (self.lower < self.upper).all():
            raise ValueError("bounds: a lower one is not below the upper one")
        self.values = np.clip(values, self.lower, self.upper)

    def arrays(self, values: Array) -> dict[str, Array]:
        """Parameters (*shape) with the unknowns in their places."""
        out = {}
        for name, base in self.base.items():
            groups, array = self.groups[name], base.copy()
            array[groups >= 0] = values[self.first[name] + groups[groups >= 0]]
            out[name] = array
        return out

    def directions(self) -> dict[str, Array]:
        """How parameters change (k, 1, *shape) with every unknown."""
        count = len(self.names)
        out = {}
        for name, groups in self.groups.items():
            array = np.zeros((count, 1, *groups.shape))
            for k in range(int(groups.max()) + 1):
                array[self.first[name] + k, 0] = groups == k
            out[name] = array
        return out


def _groups(name: str, numbers: npt.ArrayLike, shape: tuple[int, ...]) -> npt.NDArray[np.intp]:
    array = np.asarray(numbers)
    said = f"parameters[{name!r}]"
    if array.dtype.kind not in "iu":
        raise TypeError(f"{said}: expected whole numbers of groups, got dtype {array.dtype}")
    try:
        groups = np.broadcast_to(array, shape).astype(np.intp)
    except ValueError:
        raise ValueError(f"{said}: expected shape {shape}, got {array.shape}") from None
    found = set(np.unique(groups).tolist()) - {-1}
    if not found or found != set(range(len(found))):
        raise ValueError(
            f"{said}: expected groups 0, 1, ... and -1 for what is known, got {sorted(found)}"
        )
    return groups


def _spread(name: str, value: npt.ArrayLike, count: int) -> list[float]:
    array = reals(name, value)
    if array.ndim > 1 or (array.ndim == 1 and len(array) != count) or np.isnan(array).any():
        raise ValueError(f"{name}: expected a number or {count} of them, got shape {array.shape}")
    return [float(x) for x in np.broadcast_to(array, (count,))]


def _weights(model: Model, seen: Iterable[str] | None, scale: npt.ArrayLike) -> Array:
    """(nv,) one over the errors of the coordinates that count, else zero."""
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


# ---------------------------------------------------------------- recordings in pieces


class _Pieces:
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

    def residuals(self, arrays: dict[str, Array]) -> Array | None:
        """What is left (m,), None where a step has no answer."""
        parts = []
        for q, u in self.batches:
            found = rollout(
                self.model,
                q[:, 0],
                u,
                self.options,
                parameters=arrays,
                threads=self.threads,
                errors="mark",
            )
            if not found.ok.all():
                return None
            parts.append(self._errors(found.q, q))
        return np.concatenate(parts)

    def jacobian(
        self, arrays: dict[str, Array], directions: dict[str, Array]
    ) -> tuple[Array, Array]:
        """Residuals (m,) and their derivatives (m, k) by the unknowns."""
        more: dict[str, Any] = (
            {} if self.kappa is None else {"derivative": "smoothed", "kappa": self.kappa}
        )
        residuals, columns = [], []
        for q, u in self.batches:
            found = rollout_jvp(
                self.model,
                q[:, 0],
                u,
                self.options,
                tangents=directions,
                parameters=arrays,
                threads=self.threads,
                **more,
            )
            residuals.append(self._errors(found.q[0], q))
            moved = found.tangent[:, :, 1:] * self.weights
            columns.append(moved.reshape(len(moved), -1).T)
        return np.concatenate(residuals), np.concatenate(columns)


# ---------------------------------------------------------------- the search


@dataclasses.dataclass
class _End:
    """Where a search has ended: unknowns (k,), residuals (m,), their derivatives (m, k), steps tried, whether it is an
    optimum."""

    x: Array
    r: Array
    J: Array
    tried: int
    converged: bool

    @property
    def cost(self) -> float:
        return float(self.r @ self.r)


_Look = Callable[[Array], "tuple[Array, Array] | None"]
"""Residuals (m,) and their derivatives (m, k) at unknowns (k,), None where a step has no answer."""


def _search(
    model: Model, unknowns: _Unknowns, pieces: _Pieces, iterations: int, tolerance: float
) -> Identified:
    directions, first = unknowns.directions(), unknowns.values

    def slopes(x: Array) -> tuple[Array, Array] | None:
        try:
            return pieces.jacobian(unknowns.arrays(x), directions)
        except SolverError:
            return None

    def secants(x: Array) -> tuple[Array, Array] | None:
        return _secants(unknowns, pieces, x)

    begun = _End(first, *pieces.jacobian(unknowns.arrays(first), directions), 0, False)
    ends = [_descend(unknowns, pieces, begun, slopes, iterations, tolerance)]
    beginnings = _beginnings(unknowns, pieces, ends[0])
    # Slopes through contacts that begin and end say little where what happens jumps: then secants show the way.
    for look in (slopes, secants):
        best = min(ends, key=lambda end: end.cost)
        if look is secants and best.converged:
            break
        for x in beginnings if look is slopes else [best.x, *beginnings[:1]]:
            found = look(x)
            if found is not None:
                end = _End(x, *found, 0, False)
                ends.append(_descend(unknowns, pieces, end, look, iterations, tolerance))
    best = min(ends, key=lambda end: end.cost)
    exact = slopes(best.x) if best.converged else None
    # Secants may agree on an optimum where slopes do not: then nobody knows.
    sure = exact is not None and _is_optimal(unknowns, best.x, *exact, tolerance)
    tried = sum(end.tried for end in ends)
    return _told(model, unknowns, best.x, best.r, best.J, tried, sure)


def _secants(unknowns: _Unknowns, pieces: _Pieces, x: Array) -> tuple[Array, Array] | None:
    """Residuals and their differences over small changes of every unknown, to both sides within bounds."""
    r = pieces.residuals(unknowns.arrays(x))
    columns = []
    for k, change in enumerate(_SECANT * np.maximum(np.abs(x), _SECANT)):
        ends, at = [], []
        for sign in (-1.0, 1.0):
            trial = x.copy()
            trial[k] = min(max(x[k] + sign * change, unknowns.lower[k]), unknowns.upper[k])
            left = pieces.residuals(unknowns.arrays(trial))
            ends.append(left)
            at.append(trial[k])
        if r is None or ends[0] is None or ends[1] is None:
            return None
        columns.append((ends[1] - ends[0]) / (at[1] - at[0]))
    return (r, np.column_stack(columns)) if r is not None else None


def _beginnings(unknowns: _Unknowns, pieces: _Pieces, end: _End) -> list[Array]:
    """The multiples of the unknowns, each alone and all together, that fit best: one where a search has found an optimum,
    which may be that of another valley, else three."""
    count, first = len(unknowns.names), unknowns.values
    found = []
    for factor in _PROBES:
        for mask in (*np.eye(count, dtype=bool), np.ones(count, dtype=bool)):
            x = np.clip(np.where(mask, factor * first, first), unknowns.lower, unknowns.upper)
            left = pieces.residuals(unknowns.arrays(x))
            if left is not None and not np.array_equal(x, first):
                found.append((float(left @ left), x))
    found.sort(key=lambda pair: pair[0])
    return [x for _, x in found[: 1 if end.converged else 3]]


def _descend(
    unknowns: _Unknowns, pieces: _Pieces, end: _End, look: _Look, iterations: int, tolerance: float
) -> _End:
    """Gauss and Newton's steps with Levenberg and Marquardt's damping from ``end`` on; a step that cannot be solved is
    made shorter."""
    damping, tried = _DAMPING, 0
    x, r, J = end.x, end.r, end.J
    while tried < iterations and damping <= _MOST_DAMPING:
        step = _step(unknowns, x, r, J, damping)
        tried += 1
        trial = np.clip(x + step, unknowns.lower, unknowns.upper)
        small = bool((np.abs(trial - x) <= tolerance * (np.abs(x) + tolerance)).all())
        left = pieces.residuals(unknowns.arrays(trial))
        cost = float(r @ r)
        better = look(trial) if left is not None and float(left @ left) <= cost else None
        if better is None:
            damping *= 10.0
            if small:
                break
            continue
        little = cost - float(better[0] @ better[0]) <= tolerance * cost
        x, damping = trial, max(damping / 10.0, 1e-12)
        r, J = better
        if small or little:
            break
    return _End(x, r, J, tried, _is_optimal(unknowns, x, r, J, tolerance))


def _step(unknowns: _Unknowns, x: Array, r: Array, J: Array, damping: float) -> Array:
    """The damped step of Gauss and Newton within bounds (k,)."""
    sizes = np.maximum(np.linalg.norm(J, axis=0), 1e-300)
    units = np.where(sizes > _FLAT * sizes.max(), sizes, sizes.max())
    rows = np.vstack((J / units, math.sqrt(damping) * np.eye(len(x))))
    wanted = np.append(-r, np.zeros(len(x)))
    room = (unknowns.lower - x) * units, (unknowns.upper - x) * units
    return np.asarray(least_squares_in_box(rows, wanted, *room) / units)


def _is_optimal(unknowns: _Unknowns, x: Array, r: Array, J: Array, tolerance: float) -> bool:
    """Whether next to nothing is promised by a step that is hardly damped; that of exact recordings is their rounding."""
    step = _step(unknowns, x, r, J, 1e-12)
    cost, freedom = float(r @ r), max(len(r) - len(x), 1)
    promised = cost - float(np.sum((r + J @ step) ** 2))
    small = bool((np.abs(step) <= tolerance * (np.abs(x) + tolerance)).all())
    return small or promised <= _LEFT * cost / freedom


def _told(
    model: Model, unknowns: _Unknowns, x: Array, r: Array, J: Array, tried: int, converged: bool
) -> Identified:
    count = len(x)
    free = (x > unknowns.lower) & (x < unknowns.upper)
    covariance = np.full((count, count), np.nan)
    sizes = np.linalg.norm(J[:, free], axis=0)
    units = np.where(sizes > 0.0, sizes, 1.0)
    _, s, V = np.linalg.svd(J[:, free] / units, full_matrices=False)
    freedom = int(np.count_nonzero(np.any(J != 0.0, axis=1))) - int(free.sum())
    variance = float(r @ r) / freedom if freedom > 0 else math.inf
    flat = s <= _FLAT * s.max(initial=0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        inverse = np.where(flat, 0.0, 1.0 / s**2)
        own = (V.T * inverse) @ V * variance / np.outer(units, units)
    loose = np.abs(V[flat]).max(axis=0, initial=0.0) > 1e-6
    own[loose, loose] = np.inf
    covariance[np.ix_(free, free)] = own
    arrays = unknowns.arrays(x)
    changes: dict[str, Any] = dict(arrays)
    return Identified(
        model=model.with_parameters(**changes),
        parameters=arrays,
        values=x,
        standard_errors=np.sqrt(np.diag(covariance)),
        covariance=covariance,
        names=tuple(unknowns.names),
        residual=float(np.sqrt(np.mean(r**2))),
        iterations=tried,
        converged=converged,
        condition=_condition(s),
    )


def _condition(s: Array) -> float:
    """Of singular values, largest over least; NaN of none."""
    if not s.size:
        return math.nan
    return float(s.max() / s.min()) if s.min() > _FLAT * s.max() else math.inf
