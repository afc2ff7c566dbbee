"""Show a robot file, a published system or a plan in a browser, or write a page that needs no network."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from qdsim.cli.outcome import Outcome, UnusableError
from qdsim.cli.replay import add_model
from qdsim.cli.sources import add_loading, first_configuration, is_archive, plan_and_model

if TYPE_CHECKING:
    from qdsim.array_type import Array
    from qdsim.model import Model
    from qdsim.planning import Plan

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``qdsim view``."""
    parser.add_argument("source", metavar="FILE|SYSTEM|PLAN", help="object to show")
    parser.add_argument("--html", metavar="PAGE", help="write a page instead of opening a browser")
    parser.add_argument("--port", type=int, help="port of the page; default: a free one")
    parser.add_argument(
        "--live", action="store_true", help="simulate continuously, with sliders for the commands"
    )
    add_model(parser)
    add_loading(parser)


def run(arguments: argparse.Namespace) -> Outcome:
    """Show the source until Ctrl-C, or write the page."""
    if arguments.html is not None and (arguments.live or arguments.port is not None):
        both = "--live" if arguments.live else "--port"
        raise UnusableError(
            f"{both} and --html: a page in a file has no steps and no port; give one of them"
        )
    if arguments.html is not None and not arguments.html.lower().endswith((".html", ".htm")):
        raise UnusableError(f"--html: expected a name that ends with .html, got {arguments.html!r}")
    if arguments.live and is_archive(arguments.source):
        raise UnusableError("--live: a plan has commands of its own; give its robot file or system")
    plan, model = plan_and_model(arguments, arguments.source, still=not arguments.live)
    return _show(arguments, first_configuration(model) if plan is None else plan, model)


def _show(arguments: argparse.Namespace, thing: Plan | Array, model: Model) -> Outcome:
    from qdsim import viewer

    try:
        if arguments.html is not None:
            viewer.save_html(thing, arguments.html, model)
            return Outcome({}, (f"written: {arguments.html}",))
        page = viewer.show(thing, model, port=arguments.port)
    except ValueError as error:
        raise UnusableError(str(error)) from None
    assert page is not None, "no notebook"
    with page:
        if arguments.live:
            page.live(None, first_configuration(model))
        print(f"{page.url} (Ctrl-C ends it)", flush=True)
        page.wait()
    return Outcome({}, ())
