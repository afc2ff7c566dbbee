"""Options of sampling-based control."""

from __future__ import annotations

import dataclasses
from typing import Literal

from qdsim.arguments import fields, integer, numbers, one_of
from qdsim.planning.task.settings import Settings

__all__ = ["SamplingOptions"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class SamplingOptions(Settings):
    """Settings of :class:`qdsim.planning.SamplingMpc`.

    Control period, weights of the cost and reach of the springs are those of the task's ``impc``
    settings, or else those of :func:`qdsim.planning.dexterous`.

    Attributes:
        method: how samples determine the next commands. ``"cem"``: the mean of the six best
            (cross-entropy method, Kobilarov 2012). ``"mppi"``: the mean of all, weighted by
            ``exp(-10 (cost - least) / deviation)`` (model predictive path integral control,
            Williams et al. 2017). ``"predictive"``: the best one (predictive sampling, Howell et
            al. 2022).
        samples: number of command sequences that each call rolls out.
        horizon: number of control periods to look ahead.
        noise: standard deviation at the last of K knots over the horizon, in the units of the
            command, one number or one per actuator; at knot k it is ``sqrt(k / K)`` times that,
            with linear interpolation. None: noise that moves the fingertips by 0.6 of the object's
            radius of gyration.
        threads: number of threads of the rollouts; None: all cores. No effect on the results.
    """

    method: Literal["cem", "mppi", "predictive"] = "cem"
    samples: int = 100
    horizon: int = 10
    noise: float | tuple[float, ...] | None = None
    threads: int | None = None

    def __post_init__(self) -> None:
        fields(self, one_of, "method", allowed=("cem", "mppi", "predictive"))
        fields(self, integer, "samples", least=2)
        fields(self, integer, "horizon", least=1)
        fields(self, integer, "threads", least=1, or_none=True)
        fields(self, numbers, "noise", per="actuator", above=0, or_none=True)
