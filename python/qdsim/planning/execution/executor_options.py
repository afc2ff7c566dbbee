"""Options of an executor."""

from __future__ import annotations

import dataclasses

from qdsim.arguments import fields, integer, number, one_of
from qdsim.planning.execution.loops.steering import Controller
from qdsim.planning.task.settings import Settings

__all__ = ["CONTROLLERS", "ROUTES", "ExecutorOptions"]

CONTROLLERS = ("planned", "mpc", "grip", "sampling")
"""Names of the executor's own controllers."""
ROUTES = ("strokes", "plan", "straight", "new plan")
"""Kinds of edges."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExecutorOptions(Settings):
    """Settings of an :class:`Executor`.

    Attributes:
        controllers: Controllers tried on every edge, the most trusted first: ``"planned"`` (the
            plan's commands), ``"mpc"`` (iMPC along a segment, or straight to the goal), ``"grip"``
            (fingers that hold), ``"sampling"`` (:class:`SamplingMpc`), or functions ``controller(q,
            u_plan, q_plan, u_last) -> u``. None: chosen for the task.
        routes: Kinds of edges, in the order in which they are tried: ``"strokes"`` of fingers that
            hold the object, segments of the ``"plan"``, ``"straight"`` to the goal, and a ``"new
            plan"`` from the current state.
        hold: Time for which the object has to stay within the tolerances at its goal, s.
        stall: Time without progress after which an attempt of a controller ends, s.
        seconds: Time limit of the execution, in seconds of the plant.
        plans: Largest number of new plans.
        samples: Number of samples of ``"sampling"``.
        seed: Seed of new plans, grasps, motions and samples.
    """

    controllers: tuple[str | Controller, ...] | None = None
    routes: tuple[str, ...] = ROUTES
    hold: float = 2.0
    stall: float = 1.5
    seconds: float = 600.0
    plans: int = 24
    samples: int = 50
    seed: int = 0

    def __post_init__(self) -> None:
        fields(self, number, "stall", "seconds", above=0)
        fields(self, number, "hold", least=0)
        fields(self, integer, "plans", "seed", least=0)
        fields(self, integer, "samples", least=2)
        routes: object = self.routes
        if not isinstance(routes, tuple | list) or not routes:
            raise ValueError(f"routes: expected a tuple of names, got {routes!r}")
        object.__setattr__(self, "routes", tuple(one_of("routes", r, ROUTES) for r in routes))
        given: object = self.controllers
        if given is None:
            return
        if not isinstance(given, tuple | list) or not given:
            raise ValueError(f"controllers: expected a tuple of names or functions, got {given!r}")
        object.__setattr__(self, "controllers", tuple(given))
        for one in given:
            if not callable(one) and one not in CONTROLLERS:
                raise ValueError(
                    f"controllers: expected names out of {', '.join(CONTROLLERS)} or functions, got {one!r}"
                )
