"""Identification of parameters, with standard errors and the parameters that the recordings do not
determine."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from qdsim.arguments import instance, integer, number, one_of
from qdsim.array_type import ROUNDING, Array
from qdsim.dynamics import DynamicOptions
from qdsim.identification.recordings import Pieces, Recording, weights
from qdsim.identification.search import End, search
from qdsim.identification.simulated import Simulated
from qdsim.identification.unknowns import Unknowns
from qdsim.model import Model
from qdsim.step import Options

__all__ = ["Identified", "identify"]

_CORRELATED = 0.3
"""Residuals with a larger correlation from one step to the next are not independent noise; without the limit, what
a model cannot do counts as noise (test_identification.py)."""
_SURE = 5.0
"""The correlation must also exceed this many standard deviations of that of independent noise."""


@dataclasses.dataclass(frozen=True, eq=False)
class Identified:
    """Estimated parameters of a model, with standard errors.

    Attributes:
        model: the model with the estimated parameters.
        parameters: from names to their arrays, as in ``Model.with_parameters``.
        values: ``(k,)`` the unknowns, in the order of names and group numbers.
        standard_errors: ``(k,)`` standard errors, for independent measurement errors of one size;
            NaN for an unknown at a bound, infinite for one that the recordings do not determine.
        covariance: ``(k, k)`` covariance under the same assumption.
        names: of the unknowns, such as "pair_friction[0]".
        residual: root mean square of the residuals, m and rad divided by ``scale``: 1 if the scale
            is that of the measurement noise and the model is correct.
        iterations: number of attempted steps.
        converged: whether the optimality conditions hold, no further step within the bounds
            promises an improvement, and the residuals may be independent noise (``correlation``).
            If False, either the search stopped early (for example at a failed step or a kink), or
            no parameters of the model reproduce the recording; the standard errors then do not
            measure the distance from the truth.
        condition: condition number of the Jacobian with columns scaled to one size: how nearly some
            combination of the unknowns that are not at bounds has no effect; infinite if one has
            none.
        correlation: correlation of residuals of successive steps: about zero for independent noise,
            near one if the model deviates for many steps.
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
            end = f"NOT CONVERGED: the residuals are not noise (correlation of steps: {self.correlation:.2f}),"
        elif not self.converged:
            end = "NOT CONVERGED: stopped before an optimum,"
        lines.append(f"{end} after {self.iterations} steps; condition number {self.condition:.2g}")
        lines.append(
            f"residual: {self.residual:.3g} of the scale (1: as much as noise of this scale)"
        )
        if self.undetermined:
            lines.append(f"not determined by the recordings: {', '.join(self.undetermined)}")
        return "\n".join(lines)


def identify(
    model: Model,
    recordings: Recording | Sequence[Recording],
    parameters: Mapping[str, npt.ArrayLike],
    options: Options | DynamicOptions | None = None,
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

    Minimises the sum of squares of ``(q_simulated ⊟ q_recorded) / scale`` over all steps, with
    bounds on the unknowns. The search begins at the model's own parameters. If it does not
    converge, or the residual remains large, it is repeated from the best of some multiples of
    these; the smallest residual counts.

    Args:
        model: the model; its parameters are the start of the search.
        recordings: one or more; each is simulated from its own first configuration.
        parameters: the unknowns: from names of ``model.parameters`` to integers of the parameter's
            shape (or broadcastable to it). Entries with the same number >= 0 are one unknown, those
            with -1 are fixed: ``{"body_mass": [-1, 0, -1], "pair_friction": [[0, 0, -1, -1, -1]]}``
            is the mass of one body and one coefficient of sliding friction.
        options: of the steps, None for the defaults. With ``DynamicOptions`` second-order steps are
            compared with the recordings; with their ``contacts="mujoco"`` those are ``mj_step``.
        bounds: from names to (lower, upper) of their unknowns, numbers or one each. By default
            unknowns are positive, except "body_com", "joint_springref" and "gravity", which are
            free.
        seen: names of the joints whose displacements are measured; None: all.
        scale: measurement errors, a number or one per coordinate ``(nv,)``, m and rad; only their
            ratios matter.
        horizon: if given, recordings are divided into pieces of this many configurations after the
            first, each from its recorded configuration, because a long rollout through contact
            forgets its beginning. Second-order steps also need recorded velocities then.
        starts: "measured": the first configurations of recordings and pieces have the same
            measurement errors as the others, and are estimated along with the parameters; otherwise
            an initial error of a millimetre would persist and distort the parameters. "exact": they
            are known. They are also taken as exact if there are so many pieces that their Jacobian
            would have more than four million entries.
        kappa: if given, derivatives are those of log-barrier steps with this weight, so that
            contacts that are missed or always stick still give information. Quasi-dynamic steps
            only.
        threads: as in ``qdsim.rollout``.
        iterations: largest number of attempted steps, from each start.
        tolerance: relative change of the unknowns, or of the residual, at which the search ends.

    Returns:
        ``Identified``.

    Raises:
        TypeError, ValueError: if an argument is invalid; the message names it.
        SolverError: if a step with the model's own parameters fails.

    Example:
        >>> found = qdsim.identify(model, recording, {"pair_friction": [[0, 0, -1, -1, -1]]})
        >>> print(found)

    The search is that of Marquardt 1963 within bounds; the derivatives of rollouts are exact
    (formulation 4).
    """
    instance("model", model, Model)
    if not isinstance(options, DynamicOptions):
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
        if recording.v is not None and recording.v.shape[1] != model.nv:
            raise ValueError(
                f"recordings[{k}]: expected velocities of {model.nv} numbers, got {recording.v.shape[1]}"
            )
    one_of("starts", starts, ("measured", "exact"))
    integer("iterations", iterations, least=1)
    number("tolerance", tolerance, above=0)
    if horizon is not None:
        integer("horizon", horizon, least=1)
    if isinstance(options, DynamicOptions):
        _check_second_order(given, horizon, kappa)
    unknowns = Unknowns(model, parameters, bounds or {})
    simulated = Simulated(model, options or Options(), threads, kappa)
    pieces = Pieces(simulated, given, horizon, weights(model, seen, scale))
    end = search(unknowns, pieces, iterations, tolerance, free=starts == "measured")
    return _told(model, unknowns, end, pieces.correlation(end.r))


def _check_second_order(given: list[Recording], horizon: int | None, kappa: float | None) -> None:
    if kappa is not None:
        raise ValueError("kappa: expected None with DynamicOptions, whose steps are not smoothed")
    for k, recording in enumerate(given):
        if horizon is not None and recording.v is None:
            raise ValueError(
                f"recordings[{k}]: expected velocities, because pieces of second-order motions begin in motion (horizon)"
            )


def _told(model: Model, unknowns: Unknowns, end: End, correlation: tuple[float, int]) -> Identified:
    after, pairs = correlation
    is_noise = after <= max(_CORRELATED, _SURE / math.sqrt(max(pairs, 1)))
    count, starts = len(unknowns.names), len(end.x) - len(unknowns.names)
    x, r, J = end.x[:count], end.r, end.J[:, :count]
    rows = int(np.count_nonzero(np.any(end.J != 0.0, axis=1))) - starts
    if starts:  # the part of the parameters' columns that is orthogonal to those of the starts
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
    """Condition number from singular values: largest over smallest; NaN if there are none."""
    if not s.size:
        return math.nan
    return float(s.max() / s.min()) if s.min() > ROUNDING * s.max() else math.inf
