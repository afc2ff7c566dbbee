"""The collision stage of models with many pairs: free shapes on a plane, where every pair is a candidate.

`Model.contacts` computes poses and all contacts within 20 mm; each call makes one array of contacts. Medians and
minima over rounds, one thread. The number of candidate pairs grows with the square of the number of shapes, the
number of contacts in proportion to it.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np

import qdsim

ROUNDS = 101
REPEAT = 3  # short enough for a time slice of a machine that others use too
COUNTS = (10, 25, 50, 100, 200, 400)
SIZES = {"sphere": (0.1,), "box": (0.1, 0.1, 0.1)}


def scene(kind: str, count: int) -> qdsim.Description:
    """Make a square grid of shapes on the plane, with gaps of 10 mm between them."""
    builder = qdsim.SceneBuilder()
    builder.geom("world", "plane")
    side = int(np.ceil(np.sqrt(count)))
    for i in range(count):
        body = builder.body(f"b{i}", pos=(0.21 * (i % side), 0.21 * (i // side), 0.1), mass=1.0)
        builder.joint(body, "free")
        builder.geom(body, kind, SIZES[kind])  # type: ignore[arg-type]
    return builder.build()


def table(kind: str, rounds: int) -> str:
    lines = [
        f"{kind.capitalize()}",
        "",
        "| shapes | candidate pairs | contacts | build ms | contacts: median us | min us | us per shape |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for count in COUNTS:
        description = scene(kind, count)
        start = time.perf_counter()
        model = qdsim.build(description)
        built = time.perf_counter() - start
        q, times = model.default_q, []
        found = len(model.contacts(q, 0.02))
        for _ in range(rounds):
            start = time.perf_counter()
            for _ in range(REPEAT):
                model.contacts(q, 0.02)
            times.append((time.perf_counter() - start) / REPEAT)
        median = 1e6 * statistics.median(times)
        lines.append(
            f"| {count} | {model.pair_count} | {found} | {1e3 * built:.1f} | {median:.1f} "
            f"| {1e6 * min(times):.1f} | {median / count:.2f} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    rounds = parser.parse_args().rounds
    print("\n\n".join(table(kind, rounds) for kind in SIZES))


if __name__ == "__main__":
    main()
