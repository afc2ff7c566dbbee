"""Settings of every Python test, and what the tests of a run cost."""

from __future__ import annotations

import os
import random
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import hypothesis
import pytest

# Pictures are written, never shown, and by Matplotlib, whether the machine has OpenGL or not; one BLAS thread, so that
# the machine's size changes nothing.
os.environ.setdefault("MPLBACKEND", "Agg")
os.environ["MUJOCO_GL"] = "disable"
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

hypothesis.settings.register_profile(
    "qdsim", deadline=None, derandomize=True, max_examples=50, print_blob=True
)
hypothesis.settings.load_profile("qdsim")

LONG = 1.0  # seconds of CPU, those of children included, beyond which a test is to be marked `long`


def cpu_seconds() -> float:
    return sum(os.times()[:4])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    start = cpu_seconds()
    try:
        return (yield)
    finally:
        item.user_properties.append(("cpu", cpu_seconds() - start))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    thinned = defaultdict(list)
    for item in items:
        if item.path.suffix == ".ipynb":
            item.add_marker("long")
        elif item.get_closest_marker("short_cases"):
            thinned[item.nodeid.partition("[")[0]].append(item)
    for name, cases in thinned.items():
        _keep_short(name, cases)


def _keep_short(name: str, cases: list[pytest.Item]) -> None:
    """Of a test's cases some, drawn by its name, stay short; the others are long."""
    marker = cases[0].get_closest_marker("short_cases")
    assert marker is not None
    kept = random.Random(name).sample(range(len(cases)), min(marker.args[0], len(cases)))
    for i in set(range(len(cases))) - set(kept):
        cases[i].add_marker("long")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """What costs more than it may is named; a busy machine makes no test fail."""
    reports = [r for kind in ("passed", "failed") for r in terminalreporter.stats.get(kind, [])]
    dear = [
        (cost, report.nodeid)
        for report in reports
        for name, cost in report.user_properties
        if name == "cpu" and cost > LONG and "long" not in report.keywords
    ]
    for cost, name in sorted(dear, reverse=True):
        terminalreporter.write_line(f"{cost:.1f} s of CPU: mark it long or make it smaller: {name}")
