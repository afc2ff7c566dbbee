"""Loops that follow a plan in time: its commands as they are, or a controller's, asked once a period."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from qdsim._core import SolverError
from qdsim.arguments import reals
from qdsim.array_type import Array
from qdsim.planning.execution.loops.loop import Commands, Outcome, Record, World
from qdsim.planning.execution.schedule import Schedule
from qdsim.planning.execution.transfer_options import TransferOptions

__all__ = ["Controlled", "Controller", "Open", "Planner"]

Controller = Callable[[Array, Array, Array, Array], Array]
"""``controller(q, u_plan, q_plan, u_last) -> u``: measured configuration, planned command and
configuration at the end of the control period, last command; :class:`Stabilizer` is one."""

RECORD_PERIOD = 0.01
"""s, of what is kept of an execution."""


class Planner(Protocol):
    """Decides where a period's command goes."""

    def begin(self, schedule: Schedule) -> None:
        """Forget the last segment, and prepare for this one."""
        ...

    def command(self, q: Array, time: float, u_last: Array) -> tuple[Array, bool]:
        """The command ``(nu,)`` for the end of the period that begins at ``time``, and whether that failed."""
        ...


class Open:
    """The planned commands, whatever happens.

    Args:
        world: what is moved.
        options: time step and how long to settle.
    """

    failures = 0

    def __init__(self, world: World, options: TransferOptions) -> None:
        self.world, self.options = world, options

    def begin(self, schedule: Schedule) -> Commands[None]:
        """Nothing is to be done."""
        yield from ()

    def follow(self, schedule: Schedule, record: Record) -> Commands[Outcome]:
        """The commands of the schedule, the last one until everything has settled."""
        h = self.options.timestep
        count = int(np.ceil((schedule.duration + self.options.settle) / h))
        planned = schedule.commands_at(h * np.arange(count + 1.0))
        return (yield from self._run(schedule, record, lambda step: planned[step], count))

    def _run(
        self, schedule: Schedule, record: Record, u_of: Callable[[int], Array], count: int
    ) -> Commands[Outcome]:
        """The commands of steps 0 to ``count``, measured now and then."""
        per_record = max(1, round(RECORD_PERIOD / self.options.timestep))
        for step in range(count + 1):
            u = self.world.within(u_of(step))
            if step % per_record == 0 or step == count:
                time = step * self.options.timestep
                ended = record.take(time, schedule.configuration(time), u)
                if ended is not None:
                    return ended
            yield u
        return "followed"


class Controlled(Open):
    """A planner's commands: straight from each to the next over a control period.

    Args:
        world: what is moved.
        options: time step, control period and how long to settle.
        planner: decides.
    """

    def __init__(self, world: World, options: TransferOptions, planner: Planner) -> None:
        super().__init__(world, options)
        self.planner, self.failures = planner, 0

    def begin(self, schedule: Schedule) -> Commands[None]:
        """The planner is told."""
        self.planner.begin(schedule)
        yield from ()

    def follow(self, schedule: Schedule, record: Record) -> Commands[Outcome]:
        """What the planner says, from period to period."""
        given = self.options
        per_period = max(1, round(given.control_period / given.timestep))
        u_last = u_next = schedule.commands[0]
        self.failures = 0

        def u_of(step: int) -> Array:
            nonlocal u_last, u_next
            if step % per_period == 0:
                u_last = u_next
                u_next, failed = self.planner.command(self.world.q, step * given.timestep, u_last)
                self.failures += failed
            share = (step % per_period + 1) / per_period
            return np.asarray((1.0 - share) * u_last + share * u_next)

        count = int(np.ceil((schedule.duration + given.settle) / given.timestep))
        return (yield from self._run(schedule, record, u_of, count))


class Function:
    """A :data:`Controller` as a planner.

    Args:
        controller: the function.
        period: s, of the control.
    """

    def __init__(self, controller: Controller, period: float) -> None:
        self.controller, self.period = controller, period

    def begin(self, schedule: Schedule) -> None:
        """The segment from now on."""
        self.schedule = schedule

    def command(self, q: Array, time: float, u_last: Array) -> tuple[Array, bool]:
        """What the function says, or the planned command where its step cannot be solved."""
        end = time + self.period
        u_plan = self.schedule.command(end)
        u, fault = asked(self.controller, q, u_plan, self.schedule.configuration(end), u_last)
        return u, bool(fault)


def asked(
    controller: Controller, q: Array, u_plan: Array, q_plan: Array, u_last: Array
) -> tuple[Array, str]:
    """What a user's controller says ``(nu,)``, and ""; else the planned command, and why.

    Raises:
        TypeError, ValueError: if it answers with what is no command.
    """
    try:
        found = controller(q, u_plan, q_plan, u_last)
    except SolverError as error:
        return u_plan, str(error)
    u = np.array(reals("controller: its command", found, u_plan.shape))
    return (u, "") if np.isfinite(u).all() else (u_plan, "the command is not finite")
