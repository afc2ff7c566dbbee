"""A user's robot or simulator, described by two functions, as a plant for executions."""

from __future__ import annotations

import dataclasses
import queue
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from qdsim.arguments import fields, number
from qdsim.array_type import Array
from qdsim.model import Model
from qdsim.planning.execution.world import PlantError, World
from qdsim.planning.task.space import ObjectSpace
from qdsim.planning.task.transfer_options import TransferOptions

__all__ = ["Robot", "RobotPlant"]

MOVED = 0.05
"""Share of the actuators' ranges; if commands move by more and the reading does not change, the robot has a fault."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Robot:
    """Your own robot or simulator, described by two functions; see :class:`Executor`.

    The functions are called in turn, ``read`` first, once per ``period``. One of them has to wait
    for the next period: ``send`` or ``read`` returns when it begins.

    Attributes:
        read: Returns ``(q, v)``: the configuration ``(nq,)``, object included, and the velocity
            ``(nv,)``, m/s and rad/s.
        send: Takes the command ``(nu,)`` for one period, within the bounds of the task.
        period: Time between two commands, s.
        lag: Time by which the robot's joints lag behind their commands, s; one number.
        patience: Time after which the robot counts as not answering, s: a call of ``read`` or
            ``send`` takes longer, or the reading does not change at all while commands move. Both
            functions are then called in one separate thread. None: they are called in the thread of
            the executor, without a time limit.
    """

    read: Callable[[], tuple[ArrayLike, ArrayLike]]
    send: Callable[[Array], object]
    period: float = 0.02
    lag: float = 0.0
    patience: float | None = 2.0

    def __post_init__(self) -> None:
        for name in ("read", "send"):
            if not callable(getattr(self, name)):
                raise TypeError(
                    f"{name}: expected a function, got {type(getattr(self, name)).__name__}"
                )
        fields(self, number, "period", above=0)
        fields(self, number, "lag", least=0)
        fields(self, number, "patience", above=0, or_none=True)


class RobotPlant(World):
    """A robot in motion.

    Args:
        model, space, options, compensated, bounds: As in ``World``; the time step is the robot's
            period.
        robot: Its functions.

    Raises:
        PlantError: The robot does not answer.
    """

    def __init__(
        self,
        model: Model,
        space: ObjectSpace,
        robot: Robot,
        options: TransferOptions,
        compensated: bool,
        bounds: tuple[Array, Array] | None = None,
    ) -> None:
        super().__init__(model, space, options, np.zeros(model.nv), compensated, bounds)
        self.lag = np.full(model.nu, robot.lag)
        self.robot = robot
        self._caller = None if robot.patience is None else _Caller(robot.patience)
        self._same = 0.0
        self._told: Array | None = None
        self._q, self._v = self._read()

    def _place(self, q: Array) -> None:
        raise PlantError("a robot cannot be set to a configuration")

    def _step(self, u: Array) -> None:
        self.tell(u)
        q, v = self._read()
        self._watch_for_standstill(q, u)
        self._q, self._v = q, v

    def tell(self, u: Array) -> None:
        """Send a command."""
        self._call("send", self.robot.send, np.array(u))

    def close(self) -> None:
        """End the calls of the robot's functions."""
        if self._caller is not None:
            self._caller.close()

    def _read(self) -> tuple[Array, Array]:
        found = self._call("read", self.robot.read)
        try:
            q, v = found
            read = np.array(q, dtype=np.float64), np.array(v, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise PlantError(f"read: expected q and v, got {found!r:.80}: {error}") from None
        for name, array, size in zip("qv", read, (self.model.nq, self.model.nv)):
            if array.shape != (size,):
                raise PlantError(
                    f"read: expected {size} numbers for {name}, got shape {array.shape}"
                )
            bad = np.flatnonzero(~np.isfinite(array))
            if len(bad):
                raise PlantError(f"read: {name}[{bad[0]}] is {array[bad[0]]}")
        try:
            return np.asarray(self.model.normalize(read[0])), read[1]
        except ValueError as error:  # a quaternion is zero
            raise PlantError(f"read: q: {error}") from None

    def _watch_for_standstill(self, q: Array, u: Array) -> None:
        """Raise PlantError if readings have been constant for longer than the patience while commands moved."""
        if self._told is None or not np.array_equal(q, self._q):
            self._same, self._told = 0.0, np.array(u)
            return
        self._same += self.robot.period
        width = np.minimum(self._upper - self._lower, 1e3)
        moved = bool(np.any(np.abs(u - self._told) > MOVED * width))
        if moved and self.robot.patience is not None and self._same > self.robot.patience:
            raise PlantError(
                f"read: the same reading for {self._same:.3g} s while commands have moved"
            )

    def _call(self, name: str, function: Callable[..., Any], *given: Any) -> Any:
        try:
            if self._caller is None:
                return function(*given)
            return self._caller.call(name, function, *given)
        except PlantError:
            raise
        except Exception as error:
            raise PlantError(f"{name}: {type(error).__name__}: {error}") from error


class _Caller:
    """Calls functions in a separate thread, and waits for a limited time.

    Args:
        patience: Longest time to wait, s.
    """

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._todo: queue.SimpleQueue[tuple[Callable[..., Any], tuple[Any, ...]] | None] = (
            queue.SimpleQueue()
        )
        self._done: queue.SimpleQueue[tuple[Any, Exception | None]] = queue.SimpleQueue()
        self._silent = ""
        threading.Thread(target=self._work, name="qdsim-robot", daemon=True).start()

    def call(self, name: str, function: Callable[..., Any], *given: Any) -> Any:
        """Call a function and return its result.

        Raises:
            PlantError: This call or an earlier one took too long.
        """
        if self._silent:
            raise PlantError(self._silent)
        self._todo.put((function, given))
        try:
            found, error = self._done.get(timeout=self._patience)
        except queue.Empty:
            self._silent = f"{name}: no answer within {self._patience:g} s"
            raise PlantError(self._silent) from None
        if error is not None:
            raise error
        return found

    def close(self) -> None:
        """End the thread."""
        self._todo.put(None)

    def _work(self) -> None:
        while (job := self._todo.get()) is not None:
            function, given = job
            try:
                self._done.put((function(*given), None))
            except Exception as error:
                self._done.put((None, error))
