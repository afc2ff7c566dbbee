"""MuJoCo's step as a function of arrays, with quaternions as four numbers, for libraries without manifolds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import mujoco
import numpy as np
import numpy.typing as npt

from qdsim.arguments import finite, one_of
from qdsim.array_type import Array
from qdsim.batches.inputs import thread_count
from qdsim.mujoco.linearize import plan_of, transition
from qdsim.mujoco.refusals import BALL, FREE
from qdsim.mujoco.rows import STATE, Crew, lead_of, shared_of, state_size

_RESETS = (
    mujoco.mjtWarning.mjWARN_BADQPOS,
    mujoco.mjtWarning.mjWARN_BADQVEL,
    mujoco.mjtWarning.mjWARN_BADQACC,
)
"""Warnings after which MuJoCo continues from its default state."""


class Coordinates:
    """Conversion between derivatives by the numbers of a state [qpos, v, act] and by tangents [dq, dv, act].

    The length of a quaternion has no effect, because MuJoCo normalises it.
    """

    def __init__(self, model: Any) -> None:
        self.nq, self.nv, self.size = model.nq, model.nv, model.nq + model.nv + model.na
        self.turns: list[tuple[int, int]] = []  # first index of each quaternion in qpos, and in dq
        plain_q, plain_v = set(range(model.nq)), set(range(model.nv))
        for kind, q, v in zip(model.jnt_type, model.jnt_qposadr, model.jnt_dofadr, strict=True):
            if kind in (FREE, BALL):
                further = 3 * int(kind == FREE)
                self.turns.append((q + further, v + further))
                plain_q -= set(range(q + further, q + further + 4))
                plain_v -= set(range(v + further, v + further + 3))
        self.plain_q, self.plain_v = sorted(plain_q), sorted(plain_v)

    def by_numbers(self, matrix: Array, state: Array) -> Array:
        """Convert columns for tangents [dq, dv, act] to columns for numbers [qpos, v, act]."""
        out = np.empty((len(matrix), self.size))
        out[:, self.plain_q] = matrix[:, self.plain_v]
        for q, v in self.turns:
            p = state[q : q + 4]
            out[:, q : q + 4] = matrix[:, v : v + 3] @ (4.0 / (p @ p) * _by_turn(p).T)
        out[:, self.nq :] = matrix[:, self.nv :]
        return out

    def of_numbers(self, matrix: Array, state: Array) -> Array:
        """Convert rows for tangents [dq, dv, act] to rows for numbers [qpos, v, act]."""
        out = np.empty((self.size, matrix.shape[1]))
        out[self.plain_q] = matrix[self.plain_v]
        for q, v in self.turns:
            out[q : q + 4] = _by_turn(state[q : q + 4]) @ matrix[v : v + 3]
        out[self.nq :] = matrix[self.nv :]
        return out


def _by_turn(p: Array) -> Array:
    """Return the derivative (4, 3) of a quaternion p by a turn about the body's own axes: half of p (0, turn)."""
    w, x, y, z = p
    return 0.5 * np.array([[-x, -y, -z], [w, -z, y], [z, w, -x], [-y, x, w]])


@dataclass(frozen=True)
class Step:
    """``mj_step`` of many states (..., nstate) of ``mjSTATE_FULLPHYSICS`` under controls (..., nu).

    Objects are hashable, so that a library compiles its program once for each. The methods check the
    arguments that differ from call to call.
    """

    model: Any
    shared: bytes
    contacts: str
    threads: int
    crew: Crew = field(compare=False, repr=False)
    coordinates: Coordinates = field(compare=False, repr=False)

    def advance(self, states: npt.ArrayLike, controls: npt.ArrayLike) -> Array:
        """Compute the next states.

        Raises:
            ValueError: A number is not finite.
            ArithmeticError: MuJoCo's simulation of a state failed.
        """
        x, u = self._rows(states, controls)
        out = np.empty(x.shape)
        self.crew.each(x, u, lambda i, data: self._step(data, out[i]))
        return out.reshape(np.shape(states))

    def linearize(
        self, states: npt.ArrayLike, controls: npt.ArrayLike
    ) -> tuple[Array, Array, Array]:
        """Compute the next states, and their derivatives (..., nstate, nstate) and (..., nstate, nu).

        Raises:
            ValueError, ArithmeticError: As ``advance`` and ``qdsim.mujoco.linearize``.
        """
        x, u = self._rows(states, controls)
        plan, (n, size) = plan_of(self.model), x.shape
        out, by_control = np.empty((n, size)), np.zeros((n, size, self.model.nu))
        by_state = np.zeros((n, size, size))
        by_state[:, 0, 0] = 1.0

        def work(i: int, data: Any) -> None:
            A, B, _, _ = transition(plan, self.model, data, self.contacts)
            data.qacc_warmstart[:] = 0.0
            self._step(data, out[i])
            A = self.coordinates.by_numbers(A, x[i, 1:])
            by_state[i, 1:, 1:] = self.coordinates.of_numbers(A, out[i, 1:])
            by_control[i, 1:] = self.coordinates.of_numbers(B, out[i, 1:])

        self.crew.each(x, u, work)
        lead = np.shape(states)[:-1]
        return (
            out.reshape(*lead, size),
            by_state.reshape(*lead, size, size),
            by_control.reshape(*lead, size, self.model.nu),
        )

    def _rows(self, states: npt.ArrayLike, controls: npt.ArrayLike) -> tuple[Array, Array]:
        x = finite("state", np.asarray(states, np.float64))
        u = finite("control", np.asarray(controls, np.float64))
        return x.reshape(-1, state_size(self.model)), u.reshape(-1, self.model.nu)

    def _step(self, data: Any, out: Array) -> None:
        mujoco.mj_step(self.model, data)
        if any(data.warning[kind].number for kind in _RESETS):
            mujoco.mj_resetData(self.model, data)
            raise ArithmeticError("mj_step: the state or its acceleration is beyond MuJoCo's range")
        mujoco.mj_getState(self.model, data, out, STATE)


_steps: dict[Step, Step] = {}
_defaults: dict[Any, Array] = {}
"""Steps and default inputs are kept until the process ends, as are compiled programs, and so are their models."""


def step_of(
    model: Any,
    data: Any = None,
    contacts: Literal["exact", "differences"] = "exact",
    threads: int | None = None,
) -> Step:
    """Return the step of these arguments; the same arguments give the same object.

    Args:
        model: A ``mujoco.MjModel``.
        data: An ``MjData`` with the inputs common to all samples; None: MuJoCo's defaults.
        contacts: As in ``linearize``.
        threads: As in ``linearize_batch``.
    """
    one_of("contacts", contacts, allowed=("exact", "differences"))
    plan_of(model)
    count = thread_count(threads)
    if data is not None:
        shared = shared_of(model, data)
    elif model in _defaults:
        shared = _defaults[model]
    else:
        shared = _defaults.setdefault(model, shared_of(model, None))
    step = Step(
        model, shared.tobytes(), contacts, count, Crew(model, shared, count), Coordinates(model)
    )
    return _steps.setdefault(step, step)


def lead_of_step(model: Any, state: Any, control: Any) -> tuple[int, ...]:
    """Return the leading dimensions of arrays of any library, and check their widths."""
    for name, array, width in (("state", state, state_size(model)), ("control", control, model.nu)):
        if array.ndim < 1 or array.shape[-1] != width:
            raise ValueError(f"{name}: expected shape (..., {width}), got {tuple(array.shape)}")
    return lead_of(tuple(state.shape), tuple(control.shape), ("state", "control"))
