"""States and controls as rows of numbers, laid out as in ``mujoco.rollout``, and threads that process
them."""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import mujoco
import numpy as np
import numpy.typing as npt

from qdsim.arguments import finite, reals
from qdsim.array_type import Array

STATE = mujoco.mjtState.mjSTATE_FULLPHYSICS
"""Time, qpos, qvel and act: the state that ``mujoco.rollout`` takes and returns."""
SHARED = mujoco.mjtState.mjSTATE_USER
"""The inputs of a step: controls, applied forces, active equalities, mocap poses."""


def state_size(model: Any) -> int:
    return int(mujoco.mj_stateSize(model, STATE))


def shared_of(model: Any, data: Any) -> Array:
    """Return the inputs common to all rows, from ``data`` or, if it is None, MuJoCo's defaults."""
    if not isinstance(data, (mujoco.MjData, type(None))):
        raise TypeError(f"data: expected a mujoco.MjData or None, got {type(data).__name__}")
    found = np.empty(mujoco.mj_stateSize(model, SHARED))
    own = mujoco.MjData(model) if data is None else data
    if (len(own.qpos), len(own.qvel), len(own.ctrl)) != (model.nq, model.nv, model.nu):
        raise ValueError("data: expected an MjData of this model")
    mujoco.mj_getState(model, own, found, SHARED)
    return found


def rows_of(name: str, given: npt.ArrayLike, width: int) -> Array:
    """Check an array of finite numbers (..., width)."""
    numbers = reals(name, given)
    if numbers.ndim < 1 or numbers.shape[-1] != width:
        raise ValueError(f"{name}: expected shape (..., {width}), got {numbers.shape}")
    return finite(name, numbers)


def lead_of(
    states: tuple[int, ...], controls: tuple[int, ...], names: tuple[str, str]
) -> tuple[int, ...]:
    """Return the leading dimensions to which those of both shapes broadcast."""
    try:
        return np.broadcast_shapes(states[:-1], controls[:-1])
    except ValueError:
        raise ValueError(
            f"{names[1]}: leading dimensions {controls[:-1]} do not broadcast with those of {names[0]},"
            f" {states[:-1]}"
        ) from None


def flat(rows: Array, lead: tuple[int, ...]) -> Array:
    """Broadcast rows to these leading dimensions and flatten them to (n, width)."""
    width = rows.shape[-1]
    return np.broadcast_to(rows, (*lead, width)).reshape(math.prod(lead), width)


class Crew:
    """Threads that process rows, each with an ``MjData`` of its own.

    Args:
        model: A ``mujoco.MjModel``.
        shared: From ``shared_of``.
        threads: Largest number of threads.
    """

    def __init__(self, model: Any, shared: Array, threads: int) -> None:
        self.model, self.shared, self.threads = model, shared, threads
        self._free: list[Any] = []

    def each(self, states: Array, controls: Array | None, work: Callable[[int, Any], None]) -> None:
        """Call work(i, data) for each of the states (n, nstate) with its controls (n, nu).

        If ``controls`` is None, the common ones apply. The solver starts cold in every row, so that
        results do not depend on the number of threads. If rows fail, the error of the first of them
        is raised, with its index at the beginning of the message.
        """
        count = len(states)
        claims = itertools.count()
        failed: dict[int, ArithmeticError | ValueError] = {}
        ended = threading.Event()

        def some() -> None:
            data = self._take()
            while not ended.is_set() and (i := next(claims)) < count:
                mujoco.mj_setState(self.model, data, self.shared, SHARED)
                mujoco.mj_setState(self.model, data, states[i], STATE)
                if controls is not None:
                    data.ctrl[:] = controls[i]
                data.qacc_warmstart[:] = 0.0
                try:
                    work(i, data)
                except (ArithmeticError, ValueError) as error:
                    failed[i] = error
                    ended.set()
            self._free.append(data)

        threads = min(self.threads, count)
        if threads > 1:
            with ThreadPoolExecutor(threads) as pool:
                try:
                    for one in [pool.submit(some) for _ in range(threads)]:
                        one.result()
                finally:
                    ended.set()
        else:
            some()
        if failed:
            first = min(failed)
            error = failed[first]
            raise type(error)(f"sample {first}: {error}") from None

    def _take(self) -> Any:
        try:
            return self._free.pop()
        except IndexError:
            return mujoco.MjData(self.model)
