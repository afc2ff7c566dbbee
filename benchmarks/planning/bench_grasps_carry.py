"""Grasps of ``SurfaceSampler`` that have to carry an object: 60 cases, in which the table is taken away.

Four robots (a gripper on slides with a wrist and fingers that are boxes or capsules; an iiwa 7 with the Schunk
gripper; the Allegro hand on slides with its fingers down; two planar fingers of two hinges) grasp a box, a cylinder,
a sphere or a mesh of random size (4 to 7 cm), weight (50 to 200 g) and position, with friction 0.8; see
``tests/lifting.py``. The sampler is called once, for two contacts each. The fingers then press with at least one
weight of the object (``Grip``, one constant command), for half a second on the table and one second without it.
*Held*: the object moves by less than 2 cm in the second without the table, in exact steps of 0.1 s; in MuJoCo
(elliptic cones, contacts of 2 ms, critically damped joints, a robot without weight); and in both.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
import lifting

ROBOTS = ("gripper", "arm", "allegro", "fingers")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=15, help="of every robot")
    cases = parser.parse_args().cases
    print("| robot | grasps | held, exact steps | held, MuJoCo | held, both | s a grasp, median |")
    print("| --- | --- | --- | --- | --- | --- |")
    total = 0
    for robot in ROBOTS:
        moved, seconds = [], []
        for seed in range(cases):
            begin = time.process_time()
            grasp = lifting.grasp(robot, seed)
            seconds.append(time.process_time() - begin)
            if grasp is not None:
                moved.append(lifting.lift(robot, seed, grasp))
        held = [[distance < lifting.SLIPS for distance in pair] for pair in moved]
        both = sum(map(all, held))
        total += both
        exact, other = (sum(pair[k] for pair in held) for k in (0, 1))
        print(
            f"| {robot} | {len(moved)} of {cases} | {exact} | {other} | {both} "
            f"| {statistics.median(seconds):.3f} |",
            flush=True,
        )
    print(f"\nAll: {total} of {cases * len(ROBOTS)} held in both.")


if __name__ == "__main__":
    main()
