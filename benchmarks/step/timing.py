"""What benchmarks of calls share: contenders in one interleaved run, and their tables."""

from __future__ import annotations

import statistics
from collections.abc import Callable

__all__ = ["Times", "beside_mujoco", "micros", "race"]

Times = dict[str, list[float]]


def race(calls: dict[str, Callable[[], float]], rounds: int) -> Times:
    """Return the seconds that each call measures, in rounds of all calls; a first round warms up."""
    times: Times = {name: [] for name in calls}
    for round_index in range(rounds + 1):
        for name, call in calls.items():
            seconds = call()
            if round_index > 0:
                times[name].append(seconds)
    return times


def micros(times: Times, column: str = "contender", digits: int = 1) -> list[str]:
    """Return the lines of a table with medians and minima in microseconds."""
    lines = [f"| {column} | median us | min us |", "| --- | --- | --- |"]
    for name, values in times.items():
        median, least = 1e6 * statistics.median(values), 1e6 * min(values)
        lines.append(f"| {name} | {median:.{digits}f} | {least:.{digits}f} |")
    return lines


def beside_mujoco(times: Times) -> list[str]:
    """Return the same lines with ratios to two of the contenders, MuJoCo's step and its derivatives."""
    median = {name: statistics.median(values) for name, values in times.items()}
    lines = [
        "| contender | median us | min us | / `mj_step` | `mjd_transitionFD` / it |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name, values in times.items():
        lines.append(
            f"| {name} | {1e6 * median[name]:.1f} | {1e6 * min(values):.1f} "
            f"| {median[name] / median['`mj_step`']:.2f} "
            f"| {median['`mjd_transitionFD`, centred'] / median[name]:.1f} |"
        )
    return lines
