"""Options of the refinement of plans."""

from __future__ import annotations

import dataclasses

from qdsim.arguments import fields, instance, integer, number
from qdsim.planning.task.impc_options import ImpcOptions
from qdsim.planning.task.settings import Settings

__all__ = ["RefineOptions"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class RefineOptions(Settings):
    """Settings of :func:`qdsim.planning.refine`.

    Attributes:
        h: time step of the refined plan in s; None: a quarter of the task's.
        most_steps: largest number of steps of a segment, which limits the size of the programs; the
            plan's commands are stretched over these steps.
        impc: settings of the optimisation; None: those of the task, or else the defaults with up to
            60 iterations. Its horizon and time step are set from the segment.
    """

    h: float | None = None
    most_steps: int = 200
    impc: ImpcOptions | None = None

    def __post_init__(self) -> None:
        instance("impc", self.impc, ImpcOptions, or_none=True)
        fields(self, number, "h", above=0, or_none=True)
        fields(self, integer, "most_steps", least=1)
