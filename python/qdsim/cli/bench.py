"""Time steps and derivatives beside MuJoCo's step of the same scene, by turns in one run: medians of one thread."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from qdsim.cli.outcome import Outcome, UnusableError, table
from qdsim.cli.sources import (
    add_json,
    add_loading,
    first_configuration,
    load_model,
    load_system,
    loading,
)

if TYPE_CHECKING:
    from qdsim.model import Model
    from qdsim.step import Options

__all__ = ["add_arguments", "run"]

Contender = tuple[Callable[[], None], Callable[[], object]]
"""What is done before a block of calls, untimed, and the call."""

_BLOCK = 20
"""Calls between two looks at the clock."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``qdsim bench``."""
    parser.add_argument(
        "sources",
        metavar="FILE|SYSTEM",
        nargs="*",
        default=["planar_hand", "allegro_sphere"],
        help="what to time; without any, the planar hand and the Allegro hand",
    )
    parser.add_argument("--seconds", type=float, default=1.0, help="for each of them")
    add_loading(parser)
    add_json(parser)


def run(arguments: argparse.Namespace) -> Outcome:
    """Time them all."""
    if not 0.0 < arguments.seconds < 1e4:
        raise UnusableError(
            f"--seconds: must be positive and below 10000, got {arguments.seconds:g}"
        )
    report: dict[str, Any] = {}
    rows = [("", "step", "with derivatives", "mj_step", "mj_step / step")]
    for source in arguments.sources:
        model, q, u, options = _scene(source, arguments)
        step, linearize, other = _medians(_contenders(model, q, u, options), arguments.seconds)
        report[source] = {"step": step, "linearize": linearize, "mj_step": other, "unit": "s"}
        told = [f"{1e6 * value:.1f} us" for value in (step, linearize, other)]
        rows.append((source, *told, f"{other / step:.2f}"))
    return Outcome(report, table(rows))


def _scene(source: str, arguments: argparse.Namespace) -> tuple[Model, Any, Any, Options]:
    """A model with a configuration, a command and options."""
    from qdsim.step import Options

    if os.path.exists(source):
        model = load_model(source, **loading(arguments, source))
        q = first_configuration(model)
        return model, q, model.command_from(q), Options()
    system = load_system(source)
    return system.model, system.start.q, system.start.u, system.options


def _contenders(model: Model, q: Any, u: Any, options: Options) -> list[Contender]:
    import mujoco

    from qdsim.step import linearize, step

    compiled = mujoco.MjModel.from_xml_string(model.description.to_mjcf())
    data = mujoco.MjData(compiled)

    def begin() -> None:
        """MuJoCo's state moves on from call to call: every block starts where the others stand."""
        mujoco.mj_resetData(compiled, data)
        data.qpos[:] = q
        data.ctrl[:] = u
        mujoco.mj_forward(compiled, data)

    return [
        (_nothing, lambda: step(model, q, u, options)),
        (_nothing, lambda: linearize(model, q, u, options)),
        (begin, lambda: mujoco.mj_step(compiled, data)),
    ]


def _nothing() -> None:
    """A pure map needs no preparation."""


def _medians(contenders: Sequence[Contender], seconds: float) -> list[float]:
    """Seconds a call, the contenders by turns."""
    taken: list[list[float]] = [[] for _ in contenders]
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or not taken[0]:
        for (prepare, call), times in zip(contenders, taken):
            prepare()
            begin = time.perf_counter()
            for _ in range(_BLOCK):
                call()
            times.append((time.perf_counter() - begin) / _BLOCK)
    return [float(np.median(times)) for times in taken]
