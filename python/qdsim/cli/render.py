"""Draw a plan (.png: key frames; .gif, .mp4: a movie), a robot file or a published system (.png)."""

from __future__ import annotations

import argparse
import os
import sys

from qdsim.cli.outcome import Outcome, UnusableError
from qdsim.cli.replay import add_model
from qdsim.cli.sources import (
    add_loading,
    first_configuration,
    is_archive,
    load_model,
    load_plan,
    loading,
    model_of_plan,
)

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``qdsim render``."""
    parser.add_argument("source", metavar="PLAN|FILE|SYSTEM", help="what to draw")
    parser.add_argument(
        "-o", "--output", required=True, metavar="PICTURE", help=".png, .gif or .mp4"
    )
    parser.add_argument(
        "--collision", action="store_true", help="draw what can touch, not what is there to be seen"
    )
    add_model(parser)
    add_loading(parser)


def run(arguments: argparse.Namespace) -> Outcome:
    """Draw it."""
    output = arguments.output
    ending = os.path.splitext(output)[1].lower()
    if is_archive(arguments.source):
        _render_plan(arguments.source, arguments.model, output, ending)
    else:
        _render_model(arguments, output, ending)
    return Outcome({"written": output}, (f"written: {output}",))


def _render_plan(path: str, model_name: str | None, output: str, ending: str) -> None:
    if ending not in (".png", ".gif", ".mp4"):
        raise UnusableError(f"--output: expected .png, .gif or .mp4, got {output!r}")
    from qdsim.planning import pictures

    pictures.check_installed(ending != ".png")
    plan = load_plan(path)
    model = model_of_plan(plan, model_name)
    try:
        replay = plan.replay(model)
    except ValueError as error:
        raise UnusableError(str(error)) from None
    if ending == ".png":
        pictures.draw_key_frames(plan, replay, model, output)
    else:
        pictures.write_movie(plan, replay, model, [output], progress=sys.stderr.isatty())


def _render_model(arguments: argparse.Namespace, output: str, ending: str) -> None:
    if ending != ".png":
        raise UnusableError(f"--output: expected .png for a model, got {output!r}")
    from qdsim.planning import pictures

    source = arguments.source
    model = load_model(source, **loading(arguments, source, still=True))
    geometry = "collision" if arguments.collision else "visual"
    pictures.draw_configuration(model, output, first_configuration(model), geometry=geometry)
