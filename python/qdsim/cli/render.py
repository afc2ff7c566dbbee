"""Draw a plan (.png: key frames; .gif, .mp4: a movie), a robot file or a published system (.png)."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from qdsim.cli.outcome import Outcome, UnusableError
from qdsim.cli.replay import add_model
from qdsim.cli.sources import (
    add_loading,
    first_configuration,
    is_archive,
    plan_and_model,
    refuse,
)

if TYPE_CHECKING:
    from qdsim.model import Model
    from qdsim.planning import Plan

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``qdsim render``."""
    parser.add_argument("source", metavar="PLAN|FILE|SYSTEM", help="object to draw")
    parser.add_argument(
        "-o", "--output", required=True, metavar="PICTURE", help=".png, .gif or .mp4"
    )
    parser.add_argument(
        "--collision", action="store_true", help="draw collision geometry, not visual geometry"
    )
    add_model(parser)
    add_loading(parser)


def run(arguments: argparse.Namespace) -> Outcome:
    """Draw the source."""
    output = arguments.output
    endings = (".png", ".gif", ".mp4") if is_archive(arguments.source) else (".png",)
    ending = os.path.splitext(output)[1].lower()
    if ending not in endings:
        of = "a plan" if len(endings) > 1 else "a model"
        raise UnusableError(f"--output: expected {' or '.join(endings)} for {of}, got {output!r}")
    if is_archive(arguments.source):
        refuse(arguments, ["--collision"], "plans are drawn with visual geometry")
    from qdsim.planning import pictures

    pictures.check_installed(ending != ".png")
    plan, model = plan_and_model(arguments, arguments.source, still=True)
    try:
        if plan is not None:
            _render_plan(plan, model, output)
        else:
            geometry = "collision" if arguments.collision else "visual"
            start = first_configuration(model)
            pictures.draw_configuration(model, output, start, geometry=geometry)
    except KeyboardInterrupt as stopped:
        raise KeyboardInterrupt(f"{stopped}; {output} is not written".lstrip("; ")) from None
    return Outcome({"written": output}, (f"written: {output}",))


def _render_plan(plan: Plan, model: Model, output: str) -> None:
    """Draw key frames or a movie of a plan."""
    from qdsim.planning import pictures

    try:
        replay = plan.replay(model)
    except ValueError as error:  # the plan belongs to another model
        raise UnusableError(str(error)) from None
    if output.lower().endswith(".png"):
        pictures.draw_key_frames(plan, replay, model, output)
    else:
        pictures.write_movie(plan, replay, model, [output], progress=sys.stderr.isatty())
