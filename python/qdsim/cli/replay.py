"""Recompute the steps of a plan and check its reproducibility, goal, bounds and regrasps. The exit
status is 1 if the plan is not good."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from qdsim.cli.outcome import Outcome, UnusableError, table
from qdsim.cli.sources import add_json, add_loading, is_archive, load_plan, plan_and_model

if TYPE_CHECKING:
    from qdsim.model import Model
    from qdsim.planning import Plan

__all__ = ["add_arguments", "add_model", "judged", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``qdsim replay``."""
    parser.add_argument("plan", metavar="PLAN", help="file of a plan")
    add_model(parser)
    add_loading(parser)
    add_json(parser)


def add_model(parser: argparse.ArgumentParser) -> None:
    """Add the arguments for the model of a plan."""
    parser.add_argument(
        "--model",
        metavar="FILE|SYSTEM",
        help="robot file or system of the plan; default: the published system of its task",
    )


def run(arguments: argparse.Namespace) -> Outcome:
    """Replay the plan and judge it."""
    if not is_archive(arguments.plan):
        load_plan(arguments.plan)  # its error names the kind of the file
    plan, model = plan_and_model(arguments, arguments.plan)
    assert plan is not None, "an archive"
    try:
        report, rows = judged(plan, model)
    except ValueError as error:  # the plan belongs to another model
        raise UnusableError(str(error)) from None
    return Outcome(report, [plan.task, *(f"  {line}" for line in table(rows))], report["good"])


def judged(plan: Plan, model: Model) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """Check a plan; return the result as a report and as rows of text."""
    verdict = plan.check(model)
    report = {
        "task": plan.task,
        "steps": plan.step_count,
        "segments": len(plan.segments),
        "regrasps": len(plan.regrasps),
        "position_error": verdict.position_error,
        "rotation_error": verdict.rotation_error,
        "replay_error": verdict.replay_error,
        "regrasp_penetration": verdict.regrasp_penetration,
        "faults": list(verdict.faults),
        "notes": list(verdict.notes),
        "good": verdict.good,
    }
    rows = [
        ("plan", f"{plan.step_count} steps, {len(plan.segments)} segments"),
        ("distance to goal", _beside(verdict.position_error, plan.position_tolerance, "m")),
        ("rotation to goal", _beside(verdict.rotation_error, plan.rotation_tolerance, "rad")),
        ("replay error", f"{verdict.replay_error:g}"),
        ("regrasps", f"at most {verdict.regrasp_penetration:.1e} m of penetration"),
        ("verdict", "good" if verdict.good else "; ".join(verdict.faults)),
    ]
    return report, rows + [("note", note) for note in verdict.notes]


def _beside(value: float, most: float, unit: str) -> str:
    return f"{value:.4f} {unit} (at most {most:g})"
