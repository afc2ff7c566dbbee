"""Probability densities of samples: quantile and score of one coordinate of unit scale."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import NormalDist
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


_normal_quantile = np.vectorize(NormalDist().inv_cdf, otypes=[np.float64])


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
            Density("gaussian", _normal_quantile, _identity, 1.0),
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
