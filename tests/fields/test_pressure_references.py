"""Patches beside stored ones of Drake, tangents beside complex steps, and friction's torque of a ball's patch.

data/pressure_drake.json is written by tests/soak/pressure_beside_drake.py, which runs Drake.
"""

from __future__ import annotations

import json
import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from field_bodies import (
    HALF,
    all_bodies,
    deviations,
    moved,
    pose,
    random_pose,
    slow_tangent,
    soft_bodies,
)

from qdsim.pressure import HalfSpace, PressureField, pressure_energy, pressure_patch

RECORDS = json.loads((Path(__file__).parents[1] / "data" / "pressure_drake.json").read_text())
PAIRS = sorted({(record["first"]["kind"], record["second"]["kind"]) for record in RECORDS})
SAME_CELLS = {"sphere", "ellipsoid", "torus", "stone", "star", "corner"}
"""Bodies whose tetrahedra are Drake's; others have the same pressure in blocks that are cut in another way."""

SOFT = soft_bodies(1e6)
BODIES = all_bodies(1e6)
LENGTHS = np.r_[np.ones(3), np.full(3, HALF)]


@pytest.mark.parametrize("first, second", PAIRS)
def test_patches_are_those_of_drake(first: str, second: str) -> None:
    """Force, moment and area to 1e-10; sums of A, A p, A g, A p g to 1e-8; as many polygons of the same tetrahedra."""
    mine = [r for r in RECORDS if (r["first"]["kind"], r["second"]["kind"]) == (first, second)]
    for record in mine:
        wrench, area, sums, more = deviations(record)
        assert wrench < 1e-10 and area < 1e-10 and sums < 1e-8
        if {first, second} <= SAME_CELLS:
            assert more == 0


@pytest.mark.short_cases(1)
@pytest.mark.parametrize(
    "first, second",
    [
        pytest.param("small cube", "stone", marks=pytest.mark.long),
        pytest.param("star", "small cube", marks=pytest.mark.long),
        ("rigid small cube", "star"),
        ("rigid stone", "cube"),
    ],
)
def test_tangent_beside_a_complex_step(first: str, second: str) -> None:
    """Of a slow patch, cut by every face of both elements: to 1e-10 of the largest entry."""
    rng = np.random.default_rng(4)
    met = 0
    while met < 2:
        here, there = random_pose(rng, 0.025), random_pose(rng, 0.02)
        found = pressure_patch(BODIES[first], SOFT[second], here, there)
        if found.count < 5:
            continue
        met += 1
        unit = np.outer(LENGTHS, LENGTHS)
        exact = slow_tangent(BODIES[first], SOFT[second], here, there) / unit
        assert np.abs(found.tangent / unit - exact).max() < 1e-10 * np.abs(exact).max()


@pytest.mark.long
def test_tangent_and_force_beside_differences() -> None:
    """Both to 1e-7 in nine of ten poses of any pair, as far as nothing comes or goes within the step, and none far
    off."""
    rng = np.random.default_rng(5)
    tangents, forces = [], []
    names = list(BODIES)
    while len(forces) < 60:
        a, b = SOFT[rng.choice(list(SOFT))], BODIES[rng.choice(names)]
        here, there = random_pose(rng, 0.03), random_pose(rng, 0.02)
        found = pressure_patch(a, b, here, there, polygons=False)
        if found.area < 1e-4:
            continue
        wrench = np.r_[found.force, found.moment]
        differences, slopes = np.empty((6, 6)), np.empty(6)
        for j, step in enumerate(np.diag(1.0 / LENGTHS)):
            sides = [moved(here, s * 2e-8 * step) for s in (1.0, -1.0)]
            both = [pressure_patch(a, b, x, there, polygons=False) for x in sides]
            changes = [np.r_[x.force, x.moment] for x in both]
            differences[:, j] = (changes[0] - changes[1]) / (4e-8 * step[j])
            sides = [moved(here, s * 1e-6 * step) for s in (1.0, -1.0)]
            energies = [pressure_energy(a, b, x, there) for x in sides]
            slopes[j] = (energies[0] - energies[1]) / (2e-6 * step[j])
        unit = np.outer(LENGTHS, LENGTHS)
        off = np.abs(differences - found.tangent) / unit
        tangents.append(off.max() / np.abs(differences / unit).max())
        forces.append(np.abs((slopes - wrench) / LENGTHS).max() / found.total_pressure)
    assert np.quantile(tangents, 0.9) < 1e-7 and max(tangents) < 1e-4
    assert np.quantile(forces, 0.9) < 1e-7 and max(forces) < 1e-5


# ------------------------------------------------------------------------------------------------ friction's torque


def loads(depth: float, hint: float) -> tuple[np.ndarray, np.ndarray]:
    """Forces and places ``(n, 2)`` of a ball of radius 1 on a plane, polygons cut into triangles, three points each."""
    ball = PressureField.sphere(1.0, 1.0, hint=hint)
    found = pressure_patch(ball, HalfSpace(), pose((0, 0, 1.0 - depth)))
    force, place = [], []
    for polygon in found.polygons:
        start, count = polygon["vertex_start"], polygon["vertex_count"]
        x = found.vertices[start : start + count]
        for k in range(2, count):
            corner = np.stack([x[0], x[k - 1], x[k]])
            area = 0.5 * np.linalg.norm(np.cross(corner[1] - corner[0], corner[2] - corner[0]))
            for at in (np.ones((3, 3)) / 6 + np.eye(3) / 2) @ corner:
                pressure = polygon["pressure"] + polygon["gradient_a"] @ (at - _middle(x))
                force.append(area / 3 * pressure)
                place.append(at[:2])
    return np.array(force), np.array(place)


def _middle(x: np.ndarray) -> np.ndarray:
    """Centroid of a polygon: where the pressure is the mean."""
    areas = [np.linalg.norm(np.cross(b - x[0], c - x[0])) for b, c in pairwise(x[1:])]
    middles = [(x[0] + b + c) / 3 for b, c in pairwise(x[1:])]
    return np.average(middles, axis=0, weights=areas)


@pytest.mark.long
@pytest.mark.parametrize(
    "depth, share",
    [(0.05, 0.53204), (0.1, 0.53068), (0.2, 0.52780), (0.3, 0.52466), (0.5, 0.51756)],
)
def test_torsion_of_a_ball_on_a_plane(depth: float, share: float) -> None:
    """M / (mu F a) of a ball pressed to a depth of so many radii; 8/15 where that goes to zero."""
    force, place = loads(depth, 0.05)
    a = math.sqrt(depth * (2.0 - depth))
    assert force @ np.hypot(*place.T) / (force.sum() * a) == pytest.approx(share, rel=6e-3)


@pytest.mark.long
def test_limit_surface_of_a_ball_on_a_plane() -> None:
    """Force and torque of a sliding patch, over the largest of each: inside the ellipse by at most 5.6 %."""
    force, place = loads(0.1, 0.06)
    most = force.sum(), force @ np.hypot(*place.T)
    sizes = []
    for way in np.geomspace(1e-3, 10.0, 60):
        slip = np.stack([-place[:, 1], place[:, 0] + way], axis=1)  # turns about (-way, 0)
        slip /= np.linalg.norm(slip, axis=1, keepdims=True)
        pull = force @ slip[:, 1]
        torque = force @ (place[:, 0] * slip[:, 1] - place[:, 1] * slip[:, 0])
        sizes.append(math.hypot(pull / most[0], torque / most[1]))
    assert 1.0 - min(sizes) == pytest.approx(0.056, abs=0.002)
    assert max(sizes) < 1.0 + 1e-6
