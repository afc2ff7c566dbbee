"""Derivatives of MuJoCo's step at many states, on several threads."""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from qdsim.arguments import one_of
from qdsim.array_type import Array
from qdsim.batches.inputs import thread_count
from qdsim.mujoco.linearize import plan_of, transition
from qdsim.mujoco.rows import Crew, flat, lead_of, rows_of, shared_of, state_size


class Transitions(NamedTuple):
    """Derivatives of many steps: those of ``Transition``, with the leading dimensions of the batch.

    Attributes:
        A: (..., 2 nv + na, 2 nv + na) derivative of the next state [dq, dv, act] with respect to
            the present one, in MuJoCo's tangent coordinates.
        B: (..., 2 nv + na, nu) derivative of the next state with respect to the controls.
        differenced: (...) number of contacts differentiated by finite differences of MuJoCo's
            collision detection.
    """

    A: Array
    B: Array
    differenced: npt.NDArray[np.int64]


def linearize_batch(
    model: Any,
    states: npt.ArrayLike,
    controls: npt.ArrayLike | None = None,
    *,
    data: Any = None,
    contacts: Literal["exact", "differences"] = "exact",
    threads: int | None = None,
) -> Transitions:
    """Compute ``linearize`` at many states, laid out as in ``mujoco.rollout``.

    Args:
        model: A ``mujoco.MjModel``.
        states: (..., nstate) of ``mjSTATE_FULLPHYSICS``: time, qpos, qvel, act.
        controls: (..., nu); None: those of ``data``. The leading dimensions of states and controls
            broadcast to those of the batch.
        data: An ``MjData`` with the inputs common to all samples: applied forces, mocap poses,
            active equalities; it is not changed. None: MuJoCo's defaults.
        contacts: As in ``linearize``.
        threads: Number of threads, >= 1; None: one per processor of this process. Results are
            bitwise identical for any number.

    Returns:
        ``Transitions`` (A, B, differenced).

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: A shape is wrong, a number is not finite, or as in ``linearize``, with the first
            failed sample, counted in C order, at the beginning of the message.
        ArithmeticError: As in ``linearize``, with the sample.
    """
    one_of("contacts", contacts, allowed=("exact", "differences"))
    plan = plan_of(model)
    count = thread_count(threads)
    rows = rows_of("states", states, state_size(model))
    shared = shared_of(model, data)
    given = None if controls is None else rows_of("controls", controls, model.nu)
    others = rows.shape if given is None else given.shape
    lead = lead_of(rows.shape, others, ("states", "controls"))
    n, size = math.prod(lead), 2 * model.nv + model.na
    A, B = np.empty((n, size, size)), np.empty((n, size, model.nu))
    differenced = np.empty(n, np.int64)

    def work(i: int, own: Any) -> None:
        found = transition(plan, model, own, contacts)
        A[i], B[i], differenced[i] = found.A, found.B, found.differenced

    Crew(model, shared, count).each(
        flat(rows, lead), None if given is None else flat(given, lead), work
    )
    return Transitions(
        A.reshape(*lead, size, size),
        B.reshape(*lead, size, model.nu),
        differenced.reshape(lead),
    )
