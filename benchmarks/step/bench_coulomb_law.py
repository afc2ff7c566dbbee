"""Steps under Coulomb's law from random states: how many satisfy its certificate, and with how much work.

The scenes are those of tests/coulomb_states.py: three loose bodies of one shape on a level or tilted plane, an arm
with a force limit among boxes, a chain, and ten discs in a heap. Random states are advanced under the convex law and
then disturbed by random velocities. Friction is 0.1 to 1.6, contacts have 3, 4 or 6 dimensions, speeds are 0.1 to 4,
h is 1 to 50 ms. Steps are second-order and, from the same states, quasi-dynamic. *programs*: convex programs per step
(1: nothing slides). *several*: steps with `info.unique` False. *closing*: the largest overlap of a contact beyond
that of the law, by public queries, in steps that had no penetrations to relax. No times.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import qdsim
from qdsim import DynamicOptions, Options, step, step_dynamic

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
from coulomb_states import NAMES, law_gaps, random_states

STATES = 100


def one_step(kind: str, model: qdsim.Model, state, h: float, friction):
    """Take a step from a state (q, v, u), second-order or quasi-dynamic."""
    q, v, u = state
    if kind == "dynamic":
        return step_dynamic(model, q, v, u, DynamicOptions(h=h, friction=friction, law="coulomb"))
    return step(model, q, u, Options(h=h, friction=friction, law="coulomb"))


def row(name: str, kind: str, friction: str) -> str:
    """Return the row of one scene, one kind of step, and one kind of friction."""
    programs: list[int] = []
    states = several = 0
    closing = residual = 0.0
    for model, (q, v, u), h in random_states(name, STATES):
        states += 1
        try:
            s = one_step(kind, model, (q, v, u), h, friction)
        except qdsim.SolverError:
            continue
        programs.append(s.info.convex_programs)
        several += s.info.unique is False
        residual = max(residual, s.info.law_residual)
        if s.info.relaxed_contacts == 0:
            closing = max(closing, law_gaps(model, q, s, friction)[0])
    few, most = np.median(programs), max(programs)
    return (
        f"| {name} | {kind} | {friction} | {len(programs)} of {states} | {few:.0f} | {np.percentile(programs, 90):.0f} | {most} "
        f"| {several} | {residual:.1e} | {closing:.1e} |"
    )


def main() -> None:
    """Print the table."""
    print(
        "| scene | step | friction | solved | programs, median | 90 % | most | several | residual (m) | closing (m) |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name in NAMES:
        for kind in ("dynamic", "quasi-dynamic"):
            for friction in ("cone", "pyramid"):
                print(row(name, kind, friction), flush=True)


if __name__ == "__main__":
    main()
