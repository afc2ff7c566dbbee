"""Probability densities of samples: quantile and score of one coordinate of unit scale."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from qdsim.arguments import MOST_COUNT, integer, number
from qdsim.array_type import Array

__all__ = ["DENSITIES", "Density", "barrier_scale"]


@dataclass(frozen=True)
class Density:
    """A probability density rho on the real line, symmetric about 0, of every coordinate
    independently.

    Attributes:
        name: Name in messages.
        quantile: Inverse of the distribution function, from (0, 1), element by element.
        score: S(w) = -d log rho(w) / dw, element by element; None if rho is not differentiable, so
            that zeroth order is not defined.
        fisher: E[S(w)^2], the Fisher information; required with the score.
    """

    name: str
    quantile: Callable[[Array], Array]
    score: Callable[[Array], Array] | None = None
    fisher: float = 0.0

    def __post_init__(self) -> None:
        if not callable(self.quantile) or not (self.score is None or callable(self.score)):
            raise TypeError("density: quantile and score are functions of an array")
        if self.score is not None and not (np.isfinite(self.fisher) and self.fisher > 0):
            raise ValueError("density: with a score, fisher is its second moment, > 0")


def barrier_scale(kappa: float, stiffness: float, logs: int = 1) -> float:
    """Compute the scale of the density "barrier" that is equivalent to ``Analytic(kappa)``.

    For a cart on a spring in front of a wall, without friction, the barrier has the same effect as
    commands drawn from rho(w) = sqrt(4 s / (s w^2 + 4)^3), s = kappa stiffness / logs (CQDC,
    Example 4, in joules): Student's density with two degrees of freedom and this scale.

    Args:
        kappa: Weight of the barrier, 1/J.
        stiffness: Of the spring, N/m.
        logs: Number of logarithms of the distance in the barrier: 1 for a joint limit, 2 for a
            contact, whose barrier (that of the friction cone without its tangential part) is
            log(distance^2).
    """
    kappa = number("kappa", kappa, above=0)
    stiffness = number("stiffness", stiffness, above=0)
    logs = integer("logs", logs, least=1, most=MOST_COUNT)
    return float(np.sqrt(2.0 * logs / (kappa * stiffness)))


# Rational approximations on three ranges, with a relative error of 1e-16 (Wichura 1988, algorithm
# AS 241, PPND16).
_CENTRE = (
    (
        (2509.0809287301226727, 33430.575583588128105, 67265.770927008700853)
        + (45921.953931549871457, 13731.693765509461125, 1971.5909503065514427)
        + (133.14166789178437745, 3.387132872796366608)
    ),
    (
        (5226.495278852854561, 28729.085735721942674, 39307.89580009271061)
        + (21213.794301586595867, 5394.1960214247511077, 687.1870074920579083)
        + (42.313330701600911252, 1.0)
    ),
)
_MIDDLE = (
    (
        (7.7454501427834140764e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1)
        + (1.27045825245236838258, 3.64784832476320460504, 5.76949722146069140550)
        + (4.63033784615654529590, 1.42343711074968357734)
    ),
    (
        (1.05075007164441684324e-9, 5.475938084995344946e-4, 1.51986665636164571966e-2)
        + (1.48103976427480074590e-1, 6.89767334985100004550e-1, 1.67638483018380384940)
        + (2.05319162663775882187, 1.0)
    ),
)
_TAIL = (
    (
        (2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3)
        + (2.65321895265761230930e-2, 2.96560571828504891230e-1, 1.78482653991729133580)
        + (5.46378491116411436990, 6.65790464350110377720)
    ),
    (
        (2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5)
        + (7.86869131145613259100e-4, 1.48753612908506148525e-2, 1.36929880922735805310e-1)
        + (5.99832206555887937690e-1, 1.0)
    ),
)


def _ratio(coefficients: tuple[tuple[float, ...], tuple[float, ...]], x: Array) -> Array:
    above, below = coefficients
    ratio: Array = np.polyval(above, x) / np.polyval(below, x)
    return ratio


def normal_quantile(p: Array) -> Array:
    """Inverse of the standard normal distribution function on (0, 1)."""
    centred = p - 0.5
    radius = np.sqrt(-np.log(np.minimum(p, 1.0 - p)))
    tail = np.where(radius <= 5.0, _ratio(_MIDDLE, radius - 1.6), _ratio(_TAIL, radius - 5.0))
    centre = centred * _ratio(_CENTRE, 0.180625 - centred * centred)
    value: Array = np.where(np.abs(centred) <= 0.425, centre, np.copysign(tail, centred))
    return value


def _identity(w: Array) -> Array:
    return w


_LOGISTIC = np.sqrt(3.0) / np.pi  # scale of variance 1
_LAPLACE = np.sqrt(0.5)


def _logistic_quantile(p: Array) -> Array:
    value: Array = _LOGISTIC * (np.log(p) - np.log1p(-p))
    return value


def _logistic_score(w: Array) -> Array:
    value: Array = np.tanh(w / (2.0 * _LOGISTIC)) / _LOGISTIC
    return value


def _laplace_quantile(p: Array) -> Array:
    centred = p - 0.5
    value: Array = -_LAPLACE * np.sign(centred) * np.log1p(-2.0 * np.abs(centred))
    return value


def _laplace_score(w: Array) -> Array:
    value: Array = np.sign(w) / _LAPLACE
    return value


def _uniform_quantile(p: Array) -> Array:
    value: Array = np.sqrt(12.0) * (p - 0.5)
    return value


def _barrier_quantile(p: Array) -> Array:
    value: Array = (2.0 * p - 1.0) / np.sqrt(2.0 * p * (1.0 - p))
    return value


def _barrier_score(w: Array) -> Array:
    value: Array = 3.0 * w / (2.0 + w * w)
    return value


DENSITIES: Mapping[str, Density] = MappingProxyType(
    {
        density.name: density
        for density in (
            Density("gaussian", normal_quantile, _identity, 1.0),
            Density("logistic", _logistic_quantile, _logistic_score, np.pi**2 / 9.0),
            Density("laplace", _laplace_quantile, _laplace_score, 2.0),
            Density("uniform", _uniform_quantile),
            Density("barrier", _barrier_quantile, _barrier_score, 0.6),
        )
    }
)
"""Densities by name, with standard deviation 1: "gaussian", "logistic" (which smooths a corner to
the softplus), "laplace", "uniform" (first order only), and "barrier", Student's density with two
degrees of freedom and scale 1, whose variance is infinite; see ``barrier_scale``."""
