"""Record of the solver's attempts in a step: ``step.info.trace`` with ``Options(trace=True)``."""

from __future__ import annotations

import math
from typing import NamedTuple

__all__ = ["Trace", "TraceRow"]


class TraceRow(NamedTuple):
    """One stage of a step, and its result.

    Attributes:
        stage: "attempt 1" (a form of the step's program), "round 1" (its working set of contacts),
            "island 1", or a method of the cone solver, as in ``info.method``; "certificate" checks
            the solution of the methods before it.
        reason: Why the stage was tried, or the size of its program.
        iterations: Interior-point iterations, including those of its parts.
        factorizations: Factorisations, including those of its parts.
        residual: Largest residual at the end of the stage, nan if not measured. For methods it is
            relative.
        verdict: Its result.
        level: 0 for attempts. Following rows with a higher level are parts of the stage.
    """

    stage: str
    reason: str
    iterations: int
    factorizations: int
    residual: float
    verdict: str
    level: int = 0


class Trace(tuple[TraceRow, ...]):
    """Rows of a trace in the order in which the stages began; ``str`` of it is a table."""

    __slots__ = ()

    def __str__(self) -> str:
        lines = [f"{'stage':28}{'reason':36}{'iter':>6}{'fact':>6}{'residual':>10}  verdict"]
        for row in self:
            stage = "  " * row.level + row.stage
            residual = "-" if math.isnan(row.residual) else f"{row.residual:.1e}"
            lines.append(
                f"{stage:28}{row.reason:36}{row.iterations:6}{row.factorizations:6}{residual:>10}  {row.verdict}"
            )
        return "\n".join(lines)


def _trace_of(rows: tuple[tuple[str, str, int, int, float, str, int], ...], dropped: int) -> Trace:
    """Convert the extension's rows to a trace; if rows were dropped, a last row gives their number."""
    found = [TraceRow(*row) for row in rows]
    if dropped:
        found.append(
            TraceRow("dropped", f"{dropped} rows, because the buffer was full", 0, 0, math.nan, "")
        )
    return Trace(found)
