"""Options of trajectory optimisation."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable
from typing import Any, Literal

from numpy.typing import ArrayLike

from qdsim.arguments import fields, flag, integer, number, numbers, one_of, spread
from qdsim.array_type import Array
from qdsim.planning.task.cost import TrackingCost
from qdsim.planning.task.settings import Settings
from qdsim.smoothing import Analytic, Scheme

__all__ = ["ImpcOptions"]

Start = Literal["squeeze", "rrt", "hold"]


@dataclasses.dataclass(frozen=True, eq=False)
class ImpcOptions(Settings):
    """Settings of :func:`qdsim.planning.impc` and :class:`qdsim.planning.Mpc`.

    By default each iteration linearises the step once along the trajectory, solves one quadratic
    program for each of a few trust radii, rolls all solutions out with the feedback of their
    programs, and continues from the best rollout, even if it is worse than the last iterate.
    ``ImpcOptions.published()`` gives CQDC Alg. 1 as in the authors' code.

    Attributes:
        method: ``"feedback"``: as above. ``"published"``: at every step of the rollout, the
            program over the rest of the horizon is solved again (CQDC Alg. 1), with the first
            radius.
        horizon: number of steps T.
        iterations: largest number of iterations, for all first guesses together.
        h: time step in s; None: that of the task.
        cost: weights; None: :meth:`TrackingCost.for_task`.
        kappa: log-barrier weight of the smoothed model, 1/J: a number, or a pair: the weights of
            the first iteration and after all ``iterations``, geometric in between. With
            ``smoothing``, only the first one has an effect.
        smoothing: a scheme of :mod:`qdsim.smoothing`, or a function from the iteration (from 0) to
            a scheme; None: analytic smoothing with ``kappa``.
        use_A: whether the derivative with respect to the state is used. If False, the linear model
            keeps objects in place and ignores the position of the robot (CQDC's released code).
        radii: half widths of the trust regions of the commands, tried in one batch; each in the
            units of the command, one number or one per actuator. They are centred at the commands
            of the last iterate; in the published method at the robot's position.
        reach: largest distance of a command from the robot's position in the last iterate, before
            or after the step, which bounds the forces of the springs; in the units of the command,
            one number or one per actuator; None: no bound. Force limits of the model's actuators
            (``Actuator.force_range``) also apply.
        stride: largest distance of a command from the robot's position before its step, for robots
            that take commands relative to where they are; in the units of the command, one number
            or one per actuator; None: no bound.
        start: first guess: ``"squeeze"`` (the holding command and a ramp into contact), ``"rrt"``
            (the path of a small tree towards the goal), ``"hold"`` (CQDC §V-B2), or a tuple of
            these (repetitions are useful, because trees are random): each is iterated ``trials``
            times, and then the best one alone. ``Mpc`` begins with the first of them.
        trials: see ``start``.
        squeeze: length of the ramp, in the units of the command.
        patience: stop after this many iterations without an improvement of 1 %; None: never.
        state_bounds: lower and upper bounds ``(nv,)`` of the displacement from the task's start, m
            and rad, infinite for none (required for rotations of ball and free joints). They are
            bounds of the linear model; an iterate outside is only kept from moving farther away.
        limits: whether commands and exact steps respect the task's limits.
        threads: number of threads of linearisations and rollouts; None: all cores. No effect on
            the results.
    """

    method: Literal["feedback", "published"] = "feedback"
    horizon: int = 20
    iterations: int = 30
    h: float | None = None
    cost: TrackingCost | None = None
    kappa: float | tuple[float, float] = 100.0
    smoothing: Scheme | Callable[[int], Scheme] | None = None
    use_A: bool = True
    radii: tuple[float | tuple[float, ...], ...] = (0.2, 0.07, 0.02)
    reach: float | tuple[float, ...] | None = None
    stride: float | tuple[float, ...] | None = None
    start: Start | tuple[Start, ...] = "squeeze"
    trials: int = 5
    squeeze: float = 0.05
    patience: int | None = None
    state_bounds: tuple[ArrayLike, ArrayLike] | None = None
    limits: bool = True
    threads: int | None = None

    def __post_init__(self) -> None:
        fields(self, one_of, "method", allowed=("feedback", "published"))
        if not self.starts:
            raise ValueError("start: expected at least one first guess")
        for start in self.starts:
            one_of("start", start, ("squeeze", "rrt", "hold"))
        fields(self, integer, "trials", "iterations", least=0)
        fields(self, integer, "horizon", least=1)
        fields(self, integer, "patience", "threads", least=1, or_none=True)
        fields(self, numbers, "kappa", per="end of the schedule", above=0)
        if isinstance(self.kappa, tuple) and len(self.kappa) != 2:
            raise ValueError(f"kappa: expected a number or (first, last), got {self.kappa!r}")
        fields(self, number, "h", above=0, or_none=True)
        fields(self, number, "squeeze", least=0)
        fields(self, numbers, "reach", "stride", per="actuator", above=0, or_none=True)
        fields(self, flag, "use_A", "limits")
        if self.cost is not None and not isinstance(self.cost, TrackingCost):
            raise TypeError(f"cost: expected a TrackingCost, got {type(self.cost).__name__}")
        if not (
            self.smoothing is None
            or callable(self.smoothing)
            or hasattr(self.smoothing, "linearize")
        ):
            raise TypeError(
                f"smoothing: expected a scheme of qdsim.smoothing or a function from the iteration "
                f"to one, got {type(self.smoothing).__name__}"
            )
        self._check_radii()

    def _check_radii(self) -> None:
        given: object = self.radii
        if (
            isinstance(given, str)
            or not isinstance(given, Iterable)
            or getattr(given, "ndim", 1) == 0
        ):
            raise TypeError(f"radii: expected a tuple of radii, got {type(given).__name__}")
        radii = tuple(
            numbers(f"radii[{i}]", radius, per="actuator", above=0)
            for i, radius in enumerate(given)
        )
        if not radii:
            raise ValueError("radii: expected at least one radius, got ()")
        object.__setattr__(self, "radii", radii)

    @classmethod
    def published(cls, **changes: Any) -> ImpcOptions:
        """CQDC Alg. 1 as in the authors' scripts: trust region around the robot, constant start.

        Args:
            **changes: fields that differ from the published settings.
        """
        settings: dict[str, Any] = {
            "method": "published",
            "radii": (0.2,),
            "start": "hold",
            "kappa": (100.0, 1000.0),
            "limits": False,
        }
        return cls(**(settings | changes))

    @property
    def starts(self) -> tuple[Start, ...]:
        """The first guesses, ``start`` as a tuple."""
        return self.start if isinstance(self.start, tuple) else (self.start,)

    @property
    def kappas(self) -> tuple[float, float]:
        """First and last log-barrier weight, 1/J."""
        return self.kappa if isinstance(self.kappa, tuple) else (self.kappa, self.kappa)

    def scheme(self, iteration: int) -> Scheme:
        """Return the smoothing of one iteration.

        Args:
            iteration: its index, from 0.

        Raises:
            TypeError: if the function ``smoothing`` returns no scheme.
        """
        if self.smoothing is None:
            first, last = self.kappas
            share = iteration / max(1, self.iterations)
            return Analytic(first * math.exp(share * math.log(last / first)))
        if hasattr(self.smoothing, "linearize"):
            return self.smoothing
        scheme = self.smoothing(iteration)
        if not hasattr(scheme, "linearize"):
            raise TypeError(
                f"smoothing: expected a scheme for iteration {iteration}, got "
                f"{type(scheme).__name__}"
            )
        return scheme

    def boxes(self, nu: int) -> list[Array]:
        """Return the radii of the trust regions as arrays ``(nu,)``, in the units of the command.

        Args:
            nu: number of commands.

        Raises:
            ValueError: if a radius is neither one number nor nu of them.
        """
        return [spread("radii", radius, nu) for radius in self.radii]
