"""What sampling-based control may be told."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

from qdsim.arguments import fields, instance, integer, number, numbers, one_of
from qdsim.planning.task.cost import TrackingCost

__all__ = ["SamplingOptions"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class SamplingOptions:
    """Settings of :class:`qdsim.planning.SamplingMpc`.

    Attributes:
        method: How samples become the next answer. ``"cem"``: the mean of the ``elites`` best, and with more than one
            iteration their spread is the next one's noise (cross-entropy method, Kobilarov 2012). ``"mppi"``: the mean
            of all, weighted by ``exp(-(cost - least) / (temperature deviation))`` (model predictive path integral
            control, Williams et al. 2017). ``"predictive"``: the best one (predictive sampling, Howell et al. 2022).
        samples: Command sequences that each iteration rolls out.
        iterations: Of every call.
        horizon: Control periods to look ahead.
        h: Control period, s; None: that of the task's ``impc`` settings, else 0.1 s.
        knots: Knots of the noise over the horizon; before the first one is the command that acts now, which has none.
        spline: How noise goes from knot to knot: ``"zero"`` (it stays until the next), ``"linear"`` or ``"cubic"``.
        noise: Standard deviation at the last knot, in the units of the command, one number or one per actuator; at
            knot k of K it is ``sqrt(k / K)`` times that. None: what moves the fingertips by 0.6 of the object's radius of gyration.
        small: Share of the noise that every other sample has: large noise finds ways, small noise finishes.
        moved: Probability with which a sample moves an actuator at all.
        elites: Of ``"cem"``, how many samples the mean is of.
        temperature: Of ``"mppi"``, in standard deviations of the costs.
        cost: Weights; None: those of the task's ``impc`` settings, else of :func:`qdsim.planning.dexterous`.
        reach: As in `ImpcOptions`; None: that of the same settings.
        touch: Weight of the distances of fingertips from the object at the end of the horizon, as squared lengths of
            the object, beyond half a length.
        threads: Of the rollouts; None: all cores. Without effect on the results.
    """

    method: Literal["cem", "mppi", "predictive"] = "cem"
    samples: int = 100
    iterations: int = 1
    horizon: int = 10
    h: float | None = None
    knots: int = 4
    spline: Literal["zero", "linear", "cubic"] = "linear"
    noise: float | tuple[float, ...] | None = None
    small: float = 0.3
    moved: float = 0.6
    elites: int = 6
    temperature: float = 0.1
    cost: TrackingCost | None = None
    reach: float | tuple[float, ...] | None = None
    touch: float = 10.0
    threads: int | None = None

    def __post_init__(self) -> None:
        fields(self, one_of, "method", allowed=("cem", "mppi", "predictive"))
        fields(self, one_of, "spline", allowed=("zero", "linear", "cubic"))
        fields(self, integer, "samples", least=2)
        fields(self, integer, "iterations", "horizon", "knots", "elites", least=1)
        fields(self, integer, "threads", least=1, or_none=True)
        fields(self, number, "h", above=0, or_none=True)
        fields(self, number, "temperature", above=0)
        fields(self, number, "touch", least=0)
        fields(self, number, "small", "moved", above=0, most=1)
        fields(self, numbers, "noise", "reach", per="actuator", above=0, or_none=True)
        instance("cost", self.cost, TrackingCost, or_none=True)
        if self.knots > self.horizon:
            raise ValueError(f"knots: expected at most horizon = {self.horizon}, got {self.knots}")

    def replace(self, **changes: Any) -> SamplingOptions:
        """The same options with some changed."""
        return dataclasses.replace(self, **changes)
