"""Smoothed local models of the step: exact, analytic (log barrier) and randomised.

Every scheme has ``linearize(model, q, u, options, ...) -> LocalModel``, over leading dimensions of
q and u, and returns A, B and c of ``q_next ~ c ⊞ (A (q ⊟ q̄) + B (u - ū))`` (Pang, Suh, Yang and
Tedrake 2023, section II-D).
"""

from qdsim.smoothing.densities import DENSITIES, Density, barrier_scale
from qdsim.smoothing.local_model import LocalModel, StandardError
from qdsim.smoothing.schemes import Analytic, Exact, Randomized, Scheme

__all__ = [
    "DENSITIES",
    "Analytic",
    "Density",
    "Exact",
    "LocalModel",
    "Randomized",
    "Scheme",
    "StandardError",
    "barrier_scale",
]
