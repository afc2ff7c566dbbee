"""Time steps and derivatives, and MuJoCo's step of the same scene, alternately in one run: medians
of one thread. A quasi-dynamic step lasts h (0.1 s), a step of MuJoCo the time step of the file (2
ms): the last table gives both in steps and in simulated seconds per second. Ctrl-C ends it with the
results so far."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
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
from qdsim.progress import progress_bar

if TYPE_CHECKING:
    from qdsim.model import Model
    from qdsim.step import Options

__all__ = ["add_arguments", "run"]

Contender = tuple[Callable[[], None], Callable[[], object]]
"""A preparation before each block of calls, which is not timed, and the call."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``qdsim bench``."""
    parser.add_argument(
        "sources",
        metavar="FILE|SYSTEM",
        nargs="*",
        default=["planar_hand", "allegro_sphere"],
        help="models to time; default: the planar hand and the Allegro hand",
    )
    parser.add_argument("--seconds", type=float, default=1.0, help="time spent on each")
    add_loading(parser)
    add_json(parser)


def run(arguments: argparse.Namespace) -> Outcome:
    """Time all contenders."""
    if not 0.0 < arguments.seconds < 1e4:
        raise UnusableError(
            f"--seconds: must be positive and below 10000, got {arguments.seconds:g}"
        )
    loading(arguments, *arguments.sources)
    report: dict[str, Any] = {}
    times = [("", "step", "with derivatives", "mj_step", "mj_step / step")]
    rates = [("", "steps/s", "simulated s/s", "mj_step/s", "simulated s/s")]
    interrupted = False
    shown = sys.stderr.isatty()
    with progress_bar(shown, len(arguments.sources), "bench", "scenes") as update:
        for source in arguments.sources:
            update(len(report), source)
            scene = _scene(source, arguments)
            compiled = _compiled(source, scene[0])
            contenders = _contenders(*scene, compiled)
            taken, interrupted = _medians(contenders, arguments.seconds)
            if interrupted and not taken:
                break
            step, linearize, other = taken
            report[source] = {"step": step, "linearize": linearize, "mj_step": other, "unit": "s"}
            h, mj_h = scene[3].h, float(compiled.opt.timestep)
            report[source] |= {"h": h, "mj_h": mj_h}
            told = [f"{1e6 * value:.1f} us" for value in taken]
            times.append((source, *told, f"{other / step:.2f}"))
            rate = (1.0 / step, h / step, 1.0 / other, mj_h / other)
            rates.append((source, *(f"{value:,.0f}" for value in rate)))
            if interrupted:
                break
    return Outcome(report, [*table(times), "", *table(rates)], interrupted=interrupted)


def _scene(source: str, arguments: argparse.Namespace) -> tuple[Model, Any, Any, Options]:
    """Return a model with a configuration, a command and options."""
    from qdsim.step import Options

    if os.path.exists(source):
        model = load_model(source, **loading(arguments, source))
        q = first_configuration(model)
        return model, q, model.command_from(q), Options()
    system = load_system(source)
    return system.model, system.start.q, system.start.u, system.options


def _compiled(source: str, model: Model) -> Any:
    """Return MuJoCo's model of the file, or of qdsim's description if the file gives other coordinates."""
    import mujoco

    if os.path.exists(source):
        with contextlib.suppress(ValueError):
            compiled = mujoco.MjModel.from_xml_path(source)
            if (compiled.nq, compiled.nu) == (model.nq, model.nu):
                return compiled
    return mujoco.MjModel.from_xml_string(model.description.to_mjcf())


def _contenders(model: Model, q: Any, u: Any, options: Options, compiled: Any) -> list[Contender]:
    import mujoco

    from qdsim.step import linearize, step

    data = mujoco.MjData(compiled)

    def begin() -> None:
        """Reset MuJoCo's state, which every call changes, to that of the other contenders."""
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
    """Do nothing: the other contenders have no state."""


def _medians(contenders: Sequence[Contender], seconds: float) -> tuple[list[float], bool]:
    """Time the contenders in turn; return the median seconds per call, and whether Ctrl-C ended the measurement.

    After an early Ctrl-C there may be no medians.
    """
    taken: list[list[float]] = [[] for _ in contenders]
    interrupted = False
    end = time.perf_counter() + seconds
    try:
        while time.perf_counter() < end or not taken[0]:
            for (prepare, call), times in zip(contenders, taken):
                prepare()
                begin = time.perf_counter()
                call()
                times.append(time.perf_counter() - begin)
    except KeyboardInterrupt:
        interrupted = True
    return [float(np.median(times)) for times in taken] if all(taken) else [], interrupted
