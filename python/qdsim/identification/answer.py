"""The answer: parameters, how sure they are, and what the recordings do not say."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from qdsim.arguments import instance, integer, number, one_of
from qdsim.array_type import ROUNDING, Array
from qdsim.identification.recordings import Pieces, Recording, weights
from qdsim.identification.search import End, search
from qdsim.identification.unknowns import Unknowns
from qdsim.model import Model
from qdsim.step import Options

__all__ = ["Identified", "identify"]

_CORRELATED = 0.3
"""Correlation of what is left from one step to the next from which on it is no noise, if there is enough of it:"""
_SURE = 5.0
"""standard deviations of that of independent noise."""


@dataclasses.dataclass(frozen=True, eq=False)
class Identified:
    """Estimated parameters of a model, with standard errors.

    Attributes:
        model: with the parameters that were found.
        parameters: from names to their arrays, as ``Model.with_parameters`` takes them.
        values: ``(k,)`` the unknowns, in order of names and group numbers.
        standard_errors: ``(k,)`` of these, under independent errors of one size; NaN of an unknown at a bound,
            infinite of one that the recordings do not determine.
        covariance: ``(k, k)`` likewise.
        names: of the unknowns, such as "pair_friction[0]".
        residual: root mean square of what is left, m and rad divided by ``scale``: 1 where the scale is that of the
            measurements and the model is right.
        iterations: steps that were tried.
        converged: whether the optimality conditions hold, the linear model promises next to nothing from any further
            step within the bounds, and what is left may be independent noise (``correlation``). Where it is False, the
            search was stuck, at a step that has no answer or a kink say, or the model cannot do what was recorded
            whatever its parameters, and the standard errors do not say how far the values are from the truth.
        condition: number of the Jacobian with columns of one size: how nearly some combination of the unknowns that
            are not at bounds changes nothing; infinite where one does not.
        correlation: of what is left with what is left a step later: about zero of independent noise, near one where the
            model goes its own way for many steps.
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
    correlation: float = 0.0

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
        end = "converged"
        if not self.converged and self.correlation > _CORRELATED:
            end = f"NOT CONVERGED: what is left is no noise (correlation {self.correlation:.2f} from step to step),"
        elif not self.converged:
            end = "NOT CONVERGED: stuck short of an optimum,"
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
    starts: Literal["measured", "exact"] = "measured",
    kappa: float | None = None,
    threads: int | None = None,
    iterations: int = 50,
    tolerance: float = 1e-8,
) -> Identified:
    """Estimate parameters of a model from recorded commands and configurations.

    Minimises the sum of squares of ``(q_simulated ⊟ q_recorded) / scale`` over all steps, unknowns within bounds. The
    search begins at the model's own parameters, and where it ends short of the optimality conditions or there is much
    left, at the best of some multiples of these, too; the least residual counts.

    Args:
        model: the model, whose own parameters are where the search begins.
        recordings: one or more; each is simulated from its own first configuration.
        parameters: the unknowns: from names of ``model.parameters`` to whole numbers of the
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
        starts: "measured": where recordings and pieces begin was measured with the same errors as all that follows, and
            is estimated along with the parameters; else an object that lies a millimetre off would be a millimetre off
            for ever, and blame the parameters. "exact": it is known; so it is taken to be where there are so many
            pieces that their Jacobian would have more than four million entries.
        kappa: where given, derivatives are those of the log-barrier step of this weight: contacts that are missed or
            that stick all the time still say something.
        threads: as in ``qdsim.rollout``.
        iterations: steps to try at most, from each beginning.
        tolerance: relative change of the unknowns, or of what is left, at which the search ends.

    Returns:
        ``Identified``.

    Raises:
        TypeError, ValueError: naming the argument and what was wrong.
        SolverError: if a step of the model as it is given has no answer.

    Example:
        >>> found = qdsim.identify(model, recording, {"pair_friction": [[0, 0, -1, -1, -1]]})
        >>> print(found)

    The search is that of Marquardt 1963 within bounds; the derivatives of rollouts are exact (formulation 4).
    """
    instance("model", model, Model)
    instance("options", options, Options, or_none=True)
    given = [recordings] if isinstance(recordings, Recording) else list(recordings)
    if not given:
        raise ValueError("recordings: expected at least one, got none")
    for k, recording in enumerate(given):
        instance(f"recordings[{k}]", recording, Recording)
        if recording.q.shape[1] != model.nq or recording.u.shape[1] != model.nu:
            raise ValueError(
                f"recordings[{k}]: expected rows of {model.nq} and {model.nu}, got {recording.q.shape[1]} and {recording.u.shape[1]}"
            )
    one_of("starts", starts, ("measured", "exact"))
    integer("iterations", iterations, least=1)
    number("tolerance", tolerance, above=0)
    if horizon is not None:
        integer("horizon", horizon, least=1)
    unknowns = Unknowns(model, parameters, bounds or {})
    pieces = Pieces(model, given, options or Options(), horizon, weights(model, seen, scale))
    pieces.threads, pieces.kappa = threads, kappa
    end = search(unknowns, pieces, iterations, tolerance, free=starts == "measured")
    return _told(model, unknowns, end, pieces.correlation(end.r))


def _told(model: Model, unknowns: Unknowns, end: End, correlation: tuple[float, int]) -> Identified:
    after, pairs = correlation
    is_noise = after <= max(_CORRELATED, _SURE / math.sqrt(max(pairs, 1)))
    count, starts = len(unknowns.names), len(end.x) - len(unknowns.names)
    x, r, J = end.x[:count], end.r, end.J[:, :count]
    rows = int(np.count_nonzero(np.any(end.J != 0.0, axis=1))) - starts
    if starts:  # what is left of the parameters' columns once starts have taken their share
        Q, _ = np.linalg.qr(end.J[:, count:])
        rest = J - Q @ (Q.T @ J)
        J = np.where(np.linalg.norm(rest, axis=0) > ROUNDING * np.linalg.norm(J, axis=0), rest, 0.0)
    lower, upper = unknowns.lower[:count], unknowns.upper[:count]
    free = (x > lower) & (x < upper)
    covariance = np.full((count, count), np.nan)
    sizes = np.linalg.norm(J[:, free], axis=0)
    units = np.where(sizes > 0.0, sizes, 1.0)
    _, s, V = np.linalg.svd(J[:, free] / units, full_matrices=False)
    freedom = rows - int(free.sum())
    variance = float(r @ r) / freedom if freedom > 0 else math.inf
    flat = s <= ROUNDING * s.max(initial=0.0)
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
        residual=math.sqrt(float(r @ r) / (len(r) - starts)),
        iterations=end.tried,
        converged=end.converged and is_noise,
        correlation=after,
        condition=_condition(s),
    )


def _condition(s: Array) -> float:
    """Of singular values, largest over least; NaN of none."""
    if not s.size:
        return math.nan
    return float(s.max() / s.min()) if s.min() > ROUNDING * s.max() else math.inf
