"""The schemes: exact, analytic, randomised of any order (CQDC, sections II and IV)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from qdsim.arguments import MOST_COUNT, fields, flag, integer, number, numbers, one_of, spread
from qdsim.batches.inputs import Wrench, wrt_names
from qdsim.batches.steps import linearize_batch
from qdsim.model import Model
from qdsim.smoothing.densities import DENSITIES, Density
from qdsim.smoothing.local_model import LocalModel
from qdsim.smoothing.noise import Design, Seed, key_of
from qdsim.smoothing.sampler import Sampler, points_of
from qdsim.step import Options

__all__ = ["Analytic", "Exact", "Randomized", "Scheme"]


class Scheme(Protocol):
    """A method that computes a local model of the step."""

    def linearize(
        self,
        model: Model,
        q: npt.ArrayLike,
        u: npt.ArrayLike,
        options: Options | None = None,
        *,
        tau: npt.ArrayLike | None = None,
        wrench: Wrench | None = None,
        parameters: Mapping[str, npt.ArrayLike] | None = None,
        wrt: Iterable[str] | None = None,
        rng: Seed = 0,
        threads: int | None = None,
    ) -> LocalModel:
        """Compute the local model at every (q, u).

        Args:
            model: The model.
            q: Configurations (..., nq).
            u: Commands (..., nu). Leading dimensions broadcast.
            options: Options of the step, None for the defaults; the scheme replaces their kappa.
            tau: Applied generalised forces (..., nv), N or Nm.
            wrench: Applied to the bodies, as in ``step_batch``.
            parameters: Values per point in place of the model's, as in ``step_batch``.
            wrt: Which of "q" (A) and "u" (B) are computed; None: all that the scheme estimates.
            rng: Seed or generator, for schemes that sample. The same seed gives the same samples
                for any number of threads; a generator advances with every call.
            threads: As in ``step_batch``.

        Raises:
            TypeError, ValueError: if an argument is invalid; the message names it.
            SolverError: if a step fails; for schemes that sample, see there.
        """
        ...


@dataclass(frozen=True)
class Exact(Scheme):
    """No smoothing: derivatives of the exact step (CQDC, section III-C)."""

    def linearize(
        self,
        model: Model,
        q: npt.ArrayLike,
        u: npt.ArrayLike,
        options: Options | None = None,
        *,
        tau: npt.ArrayLike | None = None,
        wrench: Wrench | None = None,
        parameters: Mapping[str, npt.ArrayLike] | None = None,
        wrt: Iterable[str] | None = None,
        rng: Seed = 0,
        threads: int | None = None,
    ) -> LocalModel:
        key_of(rng)
        return _at_points(
            model, q, u, _with_kappa(options, None), tau, wrench, parameters, wrt, threads
        )


@dataclass(frozen=True)
class Analytic(Scheme):
    """The log-barrier step and its derivatives (CQDC, section IV-B).

    Attributes:
        kappa: Weight of the barrier, 1/J, > 0; as in ``Options``.
    """

    kappa: float

    def __post_init__(self) -> None:
        fields(self, number, "kappa", above=0)

    def linearize(
        self,
        model: Model,
        q: npt.ArrayLike,
        u: npt.ArrayLike,
        options: Options | None = None,
        *,
        tau: npt.ArrayLike | None = None,
        wrench: Wrench | None = None,
        parameters: Mapping[str, npt.ArrayLike] | None = None,
        wrt: Iterable[str] | None = None,
        rng: Seed = 0,
        threads: int | None = None,
    ) -> LocalModel:
        key_of(rng)
        return _at_points(
            model, q, u, _with_kappa(options, self.kappa), tau, wrench, parameters, wrt, threads
        )


@dataclass(frozen=True)
class Randomized:
    """Averages over samples q̄ ⊞ w_q, ū + w_u around the point (CQDC, sections II-D and IV-A).

    c is the mean of the samples' next states in the tangent space at the exact next state of the
    point. First order: A and B are means of the samples' derivatives. Zeroth order: they are
    estimated from the next states alone. In between: order times the zeroth plus (1 - order) times
    the first.

    Attributes:
        std: Standard deviation of w_u, in the units of u, >= 0: one number, or one per actuator.
            For the density "barrier" it is the scale, see ``barrier_scale``.
        samples: Steps per point, >= 1; best a power of two times ``replicates`` for Sobol points.
        order: "first", "zeroth", or a number from 0 (first) to 1 (zeroth).
        density: A name among ``DENSITIES``, or a ``Density``; coordinates are independent.
        antithetic: Samples come in pairs w, -w (an even number of them).
        sobol: Samples are points of a Sobol sequence, in ``replicates`` independent random
            scramblings (linear matrix and digital shift). Coordinates beyond its ``MAX_DIMENSION``
            are pseudo-random.
        replicates: Scramblings of a Sobol sequence, >= 2; the standard error is that of their
            means.
        sample_q: Standard deviation of w_q in tangent coordinates, m or rad: one number, or one per
            DOF; None: q is not sampled, A is a mean of derivatives, and zeroth order has no A.
        estimator: Of the zeroth order. "least_squares": the slope of a regression on S(w) / E[S²]
            with an intercept (eq. 15, 22; for a Gaussian, on w); "score": the mean of (f - f(q̄,
            ū)) S(w)' (eq. 14). The first has the smaller variance, the second is unbiased for
            finite samples.
        common: Whether all points of a call have the same samples (common random numbers); else
            point i has stream i of the generator.
        kappa: Weight of the barrier of the sampled steps, 1/J; None: they are exact.

    Standard errors are those of means over independent blocks (samples, pairs, scramblings). For
    least squares they are valid for any variation of the residuals (White 1980); for a mixture of
    orders they are a bound, the sum of both. A direction with standard deviation 0 is not sampled:
    its column is a mean of derivatives in first order, and an error if zeroth order takes part.
    """

    std: float | npt.ArrayLike
    samples: int = 100
    order: float | Literal["first", "zeroth"] = "first"
    density: str | Density = "gaussian"
    antithetic: bool = False
    sobol: bool = False
    sample_q: float | npt.ArrayLike | None = None
    replicates: int = 4
    estimator: Literal["least_squares", "score"] = "least_squares"
    common: bool = True
    kappa: float | None = None

    def __post_init__(self) -> None:
        fields(self, numbers, "std", per="coordinate", least=0)
        fields(self, numbers, "sample_q", per="coordinate", least=0, or_none=True)
        fields(self, integer, "samples", least=1, most=MOST_COUNT)
        fields(self, integer, "replicates", least=2, most=MOST_COUNT)
        fields(self, number, "kappa", above=0, or_none=True)
        fields(self, flag, "antithetic", "sobol", "common")
        fields(self, one_of, "estimator", allowed=("least_squares", "score"))
        if not isinstance(self.density, Density) and not (
            isinstance(self.density, str) and self.density in DENSITIES
        ):
            raise ValueError(f"density: expected one of {sorted(DENSITIES)}, got {self.density!r}")
        if self._alpha > 0.0 and self._density.score is None:
            raise ValueError(f"density: {self._density.name!r} has no score, only the first order")
        unit = (self.replicates if self.sobol else 1) * (2 if self.antithetic else 1)
        if self.samples % unit != 0:
            raise ValueError(f"samples: expected a multiple of {unit}, got {self.samples}")

    @property
    def _alpha(self) -> float:
        if isinstance(self.order, str):
            if self.order not in ("first", "zeroth"):
                raise ValueError(
                    f"order: expected 'first', 'zeroth' or a number from 0 to 1, got {self.order!r}"
                )
            return float(self.order == "zeroth")
        return number("order", self.order, least=0, most=1)

    @property
    def _density(self) -> Density:
        return self.density if isinstance(self.density, Density) else DENSITIES[self.density]

    @property
    def _design(self) -> Design:
        return Design(self.samples, bool(self.antithetic), bool(self.sobol), self.replicates)

    def linearize(
        self,
        model: Model,
        q: npt.ArrayLike,
        u: npt.ArrayLike,
        options: Options | None = None,
        *,
        tau: npt.ArrayLike | None = None,
        wrench: Wrench | None = None,
        parameters: Mapping[str, npt.ArrayLike] | None = None,
        wrt: Iterable[str] | None = None,
        rng: Seed = 0,
        threads: int | None = None,
        errors: Literal["drop", "raise"] = "drop",
    ) -> LocalModel:
        """Compute the local model at every (q, u); arguments as in ``Exact.linearize``.

        Args:
            errors: "drop": a failed sample is left out, with its pair or replicate, and counted in
                ``failed``. "raise": it raises, after all samples have run.

        Raises:
            SolverError: if the step at a point itself fails, or a sample if errors is "raise", or
                if too many samples failed at a point for an estimate.
        """
        if not isinstance(errors, str) or errors not in ("drop", "raise"):
            raise ValueError(f"errors: expected 'drop' or 'raise', got {errors!r}")
        points = points_of(model, q, u, tau, wrench, parameters)
        alpha, sampled_q = self._alpha, self.sample_q is not None
        with_A, with_B = (alpha < 1.0 or sampled_q, True) if wrt is None else _wrt(wrt)
        if with_A and alpha == 1.0 and not sampled_q:
            raise ValueError("wrt: zeroth order estimates A only where q is sampled; give sample_q")
        std_q = np.zeros(model.nv) if self.sample_q is None else self.sample_q
        return Sampler(
            model=model,
            options=_with_kappa(options, self.kappa),
            design=self._design,
            density=self._density,
            alpha=alpha,
            by_score=self.estimator == "score",
            std=np.concatenate(
                [spread("sample_q", std_q, model.nv), spread("std", self.std, model.nu)]
            ),
            sampled_q=sampled_q,
            with_A=with_A,
            with_B=with_B,
        ).run(points, key_of(rng), bool(self.common), threads, errors)


# ---------------------------------------------------------------- what schemes share


def _with_kappa(options: Options | None, kappa: float | None) -> Options:
    if options is None:
        options = Options()
    elif not isinstance(options, Options):
        raise TypeError(f"options: expected a qdsim.Options, got {type(options).__name__}")
    return options if options.kappa == kappa else options.replace(kappa=kappa)


def _wrt(wrt: Iterable[str]) -> tuple[bool, bool]:
    """Return whether A and B are wanted."""
    names = wrt_names(wrt, ("q", "u"))
    return "q" in names, "u" in names


def _at_points(
    model: Model,
    q: npt.ArrayLike,
    u: npt.ArrayLike,
    options: Options,
    tau: npt.ArrayLike | None,
    wrench: Wrench | None,
    parameters: Mapping[str, npt.ArrayLike] | None,
    wrt: Iterable[str] | None,
    threads: int | None,
) -> LocalModel:
    with_A, with_B = (True, True) if wrt is None else _wrt(wrt)
    found = linearize_batch(
        model,
        q,
        u,
        options,
        tau=tau,
        wrench=wrench,
        parameters=parameters,
        wrt=("q",) * with_A + ("u",) * with_B,
        threads=threads,
        contacts=False,
    )
    return LocalModel(
        A=found.A,
        B=found.B,
        c=found.q_next,
        std_error=None,
        samples=1,
        failed=np.zeros(found.status.shape, dtype=np.int64),
        derivative_exact=found.derivative_exact,
    )
