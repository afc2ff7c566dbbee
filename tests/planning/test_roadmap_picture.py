"""Pictures of roadmaps: what is drawn where, from roadmaps that are written down."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from qdsim import systems
from qdsim.array_type import Array
from qdsim.planning import Roadmap, RoadmapOptions, Task, pictures
from qdsim.planning.roadmap.edges import Edges
from qdsim.planning.roadmap.symmetric_copies import orbits
from qdsim.planning.task.symmetry import symmetries

pytest.importorskip("matplotlib")


def written(task: Task, nodes: Array, ends: list[tuple[int, int]]) -> Roadmap:
    """A roadmap with edges that do nothing."""
    count, model = len(ends), task.model
    none = np.zeros(count, dtype=np.int64)
    source, target = np.array(ends, dtype=np.int64).reshape(-1, 2).T
    table = {"source": source, "target": target, "tries": none, "arrived": none}
    table |= {"radius": np.zeros(count), "segments": none, "steps": np.empty(0, dtype=np.int64)}
    table |= {"inputs": np.empty((0, model.nu)), "configurations": np.empty((0, model.nq))}
    return Roadmap(task, RoadmapOptions(), nodes, Edges(table))


def test_rotations_lie_in_a_ball_and_edges_end_at_nodes() -> None:
    """A half turn about z, and a turn by 200 degrees, which leaves the ball where it enters it again."""
    task = systems.load("allegro_cube").tasks["turn"]
    angles = np.radians((0.0, 90.0, 170.0, 200.0))
    shifts = np.zeros((4, task.space.size))
    shifts[np.ix_(range(4), task.space.rotation)] = np.outer(angles, (0.0, 0.0, 1.0))
    nodes = np.array([task.with_object(task.start, shift) for shift in shifts])
    made = written(task, nodes, [(0, 1), (2, 3)])
    figure = pictures.draw_roadmap(made)
    (axes,) = figure.axes
    lines = [np.array(line.get_data_3d()) for line in axes.lines]
    ball, edges, points = lines[:3], lines[3:-1], lines[-1]
    for circle in ball:
        np.testing.assert_allclose(np.linalg.norm(circle, axis=0), np.pi, atol=1e-12)
    expected = [0.0, np.pi / 2, np.radians(170.0), np.radians(-160.0)]
    np.testing.assert_allclose(points, np.outer((0.0, 0.0, 1.0), expected), atol=1e-9)
    assert len(edges) == 3  # the second one in two parts
    np.testing.assert_allclose(
        edges[0][2], np.linspace(0.0, np.pi / 2, edges[0].shape[1]), atol=1e-9
    )
    assert edges[1][2, 0] == pytest.approx(expected[2])
    assert edges[2][2, -1] == pytest.approx(expected[3])
    assert max(np.linalg.norm(edge, axis=0).max() for edge in edges) <= np.pi + 1e-9


def test_all_nodes_are_drawn_with_their_places_in_space() -> None:
    """Symmetric poses of a cube at two places."""
    task = systems.load("allegro_cube").tasks["turn"]
    there = task.with_object(task.start, [0.1, 0.0, 0.05, 0.0, 0.0, 0.0])
    nodes = orbits(task, np.array([task.start, there]), symmetries(task.model, task.space))
    figure = pictures.draw_roadmap(written(task, nodes, [(0, 24)]))
    places, rotations = (np.array(axes.lines[-1].get_data_3d()).T for axes in figure.axes)
    assert len(places) == len(rotations) == 48
    np.testing.assert_allclose(np.unique(places.round(9), axis=0), [[0, 0, 0], [0.1, 0, 0.05]])
    # the rotation group of the cube: identity, 9 turns about faces, 8 about corners, 6 about edges
    sizes = np.degrees(np.linalg.norm(rotations, axis=1)).round(6)
    values, counts = np.unique(sizes, return_counts=True)
    np.testing.assert_allclose(values, [0.0, 90.0, 120.0, 180.0])
    assert counts.tolist() == [2, 12, 16, 18]


def test_needles_show_turns_in_the_plane(tmp_path: Path) -> None:
    task = systems.load("planar_hand").tasks["half_turn"]
    shifts = [[0.0, 0.0, 0.0], [0.3, 0.4, np.pi / 2]]
    nodes = np.array([task.with_object(task.start, shift) for shift in shifts])
    figure = pictures.draw_roadmap(written(task, nodes, [(0, 1)]), tmp_path / "disc")
    assert (tmp_path / "disc.png").exists()
    edge, points, first, second = (np.array(line.get_data()) for line in figure.axes[0].lines)
    np.testing.assert_allclose(points.T, [[0.0, 0.0], [0.3, 0.4]], atol=1e-12)
    np.testing.assert_allclose(edge[:, [0, -1]], points, atol=1e-12)
    for needle, direction in ((first, [1.0, 0.0]), (second, [0.0, 1.0])):
        way = needle[:, 1] - needle[:, 0]
        np.testing.assert_allclose(way / np.linalg.norm(way), direction, atol=1e-9)


def test_what_cannot_be_drawn_is_named() -> None:
    task = systems.load("planar_hand").tasks["half_turn"]
    with pytest.raises(TypeError, match="roadmap: expected"):
        pictures.draw_roadmap(task)  # type: ignore[arg-type]
    nothing = written(task, np.empty((0, task.model.nq)), [])
    with pytest.raises(ValueError, match="roadmap: expected at least one node"):
        pictures.draw_roadmap(nothing)
