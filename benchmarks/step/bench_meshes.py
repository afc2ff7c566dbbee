"""Contacts of two convex meshes, compared with MuJoCo's distance and collision functions.

The meshes are hulls of random points on a sphere of 0.1 m, in random directions and orientations: separate, just
touching, or overlapping by a quarter of their width. All contenders see the same poses in turn. Times are those of
whole calls from Python; the row of two spheres shows the overhead of a call. Medians over rounds of the mean of a
round, in microseconds.

- `collide`: kinematics, closest points, manifold and frames; distances are exact to the rounding of the vertices.
- `mj_geomDistance`: after `mj_kinematics`, which is not timed. `mj_collision`: likewise; it gives contacts without
  distances beyond the margin.
"""

from __future__ import annotations

import statistics
import time

import mujoco
import numpy as np

import qdsim

ROUNDS = 15
POSES = 40
RADIUS = 0.1
GAPS = {"0.05 m apart": 0.05, "touching": 0.0, "overlapping by 0.05 m": -0.05}


def points(rng: np.random.Generator, count: int) -> np.ndarray:
    x = rng.normal(size=(count, 3))
    return RADIUS * x / np.linalg.norm(x, axis=1)[:, None]


def scene(rng: np.random.Generator, count: int) -> str:
    shapes, assets = [f'size="{RADIUS}"'] * 2, ""
    if count:
        for i in range(2):
            text = " ".join(repr(float(item)) for item in points(rng, count).ravel())
            assets += f'<mesh name="m{i}" vertex="{text}"/>'
            shapes[i] = f'type="mesh" mesh="m{i}"'
    bodies = "".join(
        f'<body><freejoint/><geom {shape} margin="0.05" mass="1"/></body>' for shape in shapes
    )
    return f"<mujoco><asset>{assets}</asset><worldbody>{bodies}</worldbody></mujoco>"


def poses(rng: np.random.Generator, gap: float) -> np.ndarray:
    q = np.zeros((POSES, 14))
    direction = rng.normal(size=(POSES, 3))
    q[:, 7:10] = (2 * RADIUS + gap) * direction / np.linalg.norm(direction, axis=1, keepdims=True)
    for begin in (3, 10):
        turn = rng.normal(size=(POSES, 4))
        q[:, begin : begin + 4] = turn / np.linalg.norm(turn, axis=1, keepdims=True)
    return q


def row(rng: np.random.Generator, count: int, gap: float) -> list[float]:
    """Return microseconds per call of collide, mj_geomDistance and mj_collision."""
    source = scene(rng, count)
    model, theirs = qdsim.load(source), mujoco.MjModel.from_xml_string(source)
    data, q = mujoco.MjData(theirs), poses(rng, gap)
    rounds: list[list[float]] = [[], [], []]
    for _ in range(ROUNDS):
        spent = [0.0, 0.0, 0.0]
        for item in q:
            data.qpos[:] = item
            mujoco.mj_kinematics(theirs, data)
            mujoco.mj_comPos(theirs, data)
            start = time.perf_counter()
            model.collide(item, 0.1)
            spent[0] += time.perf_counter() - start
            start = time.perf_counter()
            mujoco.mj_geomDistance(theirs, data, 0, 1, 1.0, None)
            spent[1] += time.perf_counter() - start
            start = time.perf_counter()
            mujoco.mj_collision(theirs, data)
            spent[2] += time.perf_counter() - start
        for kept, seconds in zip(rounds, spent):
            kept.append(1e6 * seconds / POSES)
    return [statistics.median(kept) for kept in rounds]


def main() -> None:
    print("| vertices each | place | collide | mj_geomDistance | mj_collision |")
    print("| --- | --- | --- | --- | --- |")
    for count in (0, 8, 100, 1000, 5000):
        for place, gap in GAPS.items():
            times = row(np.random.default_rng(count), count, gap)
            cells = " | ".join(f"{item:.1f}" for item in times)
            print(f"| {count or 'spheres'} | {place} | {cells} |")


if __name__ == "__main__":
    main()
