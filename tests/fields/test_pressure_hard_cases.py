"""Patches where geometry is unkind: flush faces, equal bodies, containment, ragged arrays, all sizes and moduli."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from field_bodies import (
    HALF,
    STILL,
    all_bodies,
    moved,
    pose,
    random_pose,
    rotation_of,
    slow_patch,
    soft_bodies,
)
from scipy.spatial.transform import Rotation

from qdsim.pressure import (
    HalfSpace,
    Patch,
    PressureField,
    RigidSurface,
    pressure_energy,
    pressure_patch,
)

SOFT = soft_bodies(1e6)
BODIES = all_bodies(1e6)
SPACES = ("floor", "mud")

LENGTHS = np.r_[np.ones(3), np.full(3, HALF)]
"""Moments over these compare with forces."""


def wrench(patch: Patch) -> np.ndarray:
    return np.r_[patch.force, patch.moment]


def off(first: np.ndarray, second: np.ndarray, patch: Patch) -> float:
    return float(np.abs((first - second) / LENGTHS).max() / max(patch.total_pressure, 1e-300))


# ------------------------------------------------------------------------------------------------ any two bodies


@pytest.mark.short_cases(1)
@pytest.mark.parametrize(
    "first",
    [
        "cube",
        "disc",
        *(
            pytest.param(name, marks=pytest.mark.long)
            for name in ("torus", "corner", "stone", "star")
        ),
    ],
)
def test_patches_beside_a_slow_one(first: str) -> None:
    rng = np.random.default_rng(len(first))
    met = 0
    for second in ("sphere", "slab", "star", "rigid stone", "rigid torus"):
        here, there = random_pose(rng, 0.03), random_pose(rng, 0.02)
        found = pressure_patch(BODIES[second], SOFT[first], here, there)
        expected = slow_patch(BODIES[second], SOFT[first], here, there)
        met += found.count > 0
        assert off(wrench(found), expected[:6], found) < 1e-10
        assert found.area == pytest.approx(expected[6], rel=1e-9, abs=1e-15)
    assert met >= 3


def numbered_anew(body: PressureField | RigidSurface, rng: np.random.Generator):
    """The same body: vertices, elements and the corners of each in another order."""
    order = rng.permutation(len(body.vertices))
    back = np.argsort(order)
    if isinstance(body, RigidSurface):
        faces = back[rng.permutation(body.triangles)]
        return RigidSurface(body.vertices[order], np.roll(faces, 1, axis=1))
    even = np.array([[0, 1, 2, 3], [1, 2, 0, 3], [3, 0, 2, 1], [2, 3, 0, 1]])
    cells = back[rng.permutation(body.tetrahedra)]
    cells = np.take_along_axis(cells, even[rng.integers(4, size=len(cells))], axis=1)
    return PressureField(body.vertices[order], cells, body.pressure[order])


def test_order_of_vertices_and_bodies_does_not_matter() -> None:
    rng = np.random.default_rng(1)
    pairs = [pair for pair in itertools.product(SOFT, BODIES) if pair[1] not in SPACES]
    for index in rng.choice(len(pairs), size=60, replace=False):
        first, second = (BODIES[name] for name in pairs[index])
        here, there = random_pose(rng, 0.03), random_pose(rng, 0.02)
        found = pressure_patch(first, second, here, there)
        again = pressure_patch(
            numbered_anew(first, rng), numbered_anew(second, rng), here, there, polygons=False
        )
        swapped = pressure_patch(second, first, there, here, polygons=False)
        assert off(wrench(again), wrench(found), found) < 1e-10
        assert off(-wrench(swapped), wrench(found), found) < 1e-11
        assert swapped.area == pytest.approx(found.area, rel=1e-9)
        for polygon in found.polygons:
            assert max(first.pressure) > 0 and 0 <= polygon["element_a"] < len(first.tetrahedra)
            start = polygon["vertex_start"]
            corners = found.vertices[start : start + polygon["vertex_count"]]
            slack = 1e-6 * np.ptp(corners, axis=0).max() + 1e-12
            assert np.all(polygon["centre"] >= corners.min(axis=0) - slack)
            assert np.all(polygon["centre"] <= corners.max(axis=0) + slack)


def resized(body, size: float, stiffness: float):
    if isinstance(body, PressureField):
        return PressureField(size * body.vertices, body.tetrahedra, stiffness * body.pressure)
    if isinstance(body, RigidSurface):
        return RigidSurface(size * body.vertices, body.triangles)
    return HalfSpace(body.slope * stiffness / size) if body.slope else body


@pytest.mark.long
def test_any_size_any_moduli_anywhere() -> None:
    """Lengths from 1e-4 to 1e2 m, moduli from 1e3 to 1e9 Pa, 1e3 lengths from the origin; energy and tangent beside."""
    rng = np.random.default_rng(2)
    names, bodies = list(SOFT), list(BODIES)
    met = 0
    while met < 40:
        first, second = BODIES[rng.choice(names)], BODIES[rng.choice(bodies)]
        size, moduli = 10 ** rng.uniform(-3.0, 3.3), 10 ** rng.uniform(-3.0, 3.0, size=2)
        here, there = random_pose(rng, 0.035), random_pose(rng, 0.02)
        a, b = resized(first, 1.0, moduli[0]), resized(second, 1.0, moduli[1])
        found = pressure_patch(a, b, here, there)
        if found.area < 1e-5:
            continue
        met += 1
        units = np.r_[np.full(3, size**2), np.full(3, size**3)]
        large = resized(first, size, moduli[0]), resized(second, size, moduli[1])
        places = [np.r_[size * x[:3], x[3:]] for x in (here, there)]
        again = pressure_patch(*large, *places)
        assert off(wrench(again) / units, wrench(found), found) < 1e-9
        assert again.count == found.count
        shift = np.r_[1e3 * HALF * size * rng.normal(size=3), np.zeros(4)]
        away = pressure_patch(*large, places[0] + shift, places[1] + shift)
        assert np.abs(away.force / size**2 - found.force).max() < 1e-7 * found.total_pressure
        differences, forces = np.empty((6, 6)), np.empty(6)
        for j, step in enumerate(1e-6 * np.diag(HALF / LENGTHS)):
            sides = [moved(here, step), moved(here, -step)]
            ahead, back = (wrench(pressure_patch(a, b, x, there, polygons=False)) for x in sides)
            differences[:, j] = (ahead - back) / (2 * step[j])
            energies = [pressure_energy(a, b, x, there) for x in sides]
            forces[j] = (energies[0] - energies[1]) / (2 * step[j])
        assert off(forces, wrench(found), found) < 1e-4
        unit = np.outer(LENGTHS, LENGTHS)
        assert np.abs((differences - found.tangent) / unit).max() < 1e-3 * np.abs(
            differences / unit
        ).max() + 1e-6 * (found.total_pressure / HALF)


# ------------------------------------------------------------------------------------------------ flush


TURNS = [
    Rotation.from_matrix(np.eye(3)[list(order)] * np.array(signs)[:, None])
    for order in itertools.permutations(range(3))
    for signs in itertools.product((1.0, -1.0), repeat=3)
    if np.linalg.det(np.eye(3)[list(order)] * np.array(signs)[:, None]) > 0
] + [
    Rotation.from_euler("z", np.pi / 4),
    Rotation.from_euler("x", np.pi / 4),
    Rotation.from_euler("xy", [np.pi / 4, np.arctan(np.sqrt(0.5))]),
]
STEPS = HALF * np.array([-2, -1.5, -1, -0.5, -0.25, 0, 0.25, 0.5, 1, 1.5, 2])
FLUSH = [name for name in BODIES if name.split()[-1] not in ("stone", "star", "ellipsoid")]


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_aligned_poses_are_between_those_beside_them(seed: int) -> None:
    """Faces, edges and corners of grids on each other: rounding chooses no side, and nothing counts
    twice or not at all.

    Where equal fields lie on each other force has a kink; there too it is one of those around.
    """
    rng = np.random.default_rng(seed)
    met = 0
    while met < 60:
        first = rng.choice([name for name in FLUSH if name in SOFT])
        second = rng.choice(FLUSH)
        here = pose(rng.choice(STEPS, size=3), TURNS[rng.integers(len(TURNS))])
        a, b = BODIES[first], BODIES[second]
        found = pressure_patch(a, b, here, polygons=False)
        beside = []
        for _ in range(24):
            twist = 1e-7 * rng.normal(size=6) * np.r_[np.full(3, HALF), np.ones(3)]
            at = pose(here[:3] + twist[:3], Rotation.from_rotvec(twist[3:]) * rotation_of(here))
            beside.append(pressure_patch(a, b, at, polygons=False))
        wrenches = np.array([wrench(patch) for patch in beside]) / LENGTHS
        scale = max(patch.total_pressure for patch in [*beside, found])
        if scale < 1e-6:
            continue
        met += 1
        at = wrench(found) / LENGTHS
        slack = 1e-5 * scale
        assert np.all(at >= wrenches.min(axis=0) - slack), (first, second, here)
        assert np.all(at <= wrenches.max(axis=0) + slack), (first, second, here)
        swapped = pressure_patch(b, a, STILL, here, polygons=False)
        assert np.abs(wrench(swapped) / LENGTHS + at).max() < 1e-6 * scale
        world = random_pose(rng, 1.0)
        turn = rotation_of(world)
        there = pose(turn.apply(here[:3]) + world[:3], turn * rotation_of(here))
        elsewhere = pressure_patch(a, b, there, world, polygons=False)
        assert np.abs(turn.inv().apply(elsewhere.force) - found.force).max() < 1e-6 * scale


@pytest.mark.parametrize("name", SOFT)
def test_a_body_in_the_place_of_its_equal_is_not_pushed(name: str) -> None:
    for second in (SOFT[name], RigidSurface.of(SOFT[name])):
        found = pressure_patch(SOFT[name], second)
        assert np.abs(found.force).max() < 1e-6 * 1e6 * HALF**2


def test_faces_that_only_touch_do_not_press() -> None:
    cube = SOFT["cube"]
    for second in ("cube", "stiff cube", "rigid cube", "floor", "mud"):
        other = BODIES[second]
        height = HALF if second in SPACES else 2 * HALF
        found = pressure_patch(cube, other, pose((0, 0, height)))
        assert found.area == 0.0 and found.count == 0
        assert pressure_patch(other, cube, STILL, pose((0, 0, height))).count == 0


# ------------------------------------------------------------------------------------------------ ways


WAYS = [
    ("sphere", "cube"),
    ("small cube", "stiff cube"),
    ("small cube", "cube"),
    ("torus", "capsule"),
    ("star", "torus"),
    ("corner", "disc"),
    ("rigid small cube", "box"),
    ("rigid torus", "stone"),
    ("sphere", "floor"),
    ("corner", "mud"),
]


@pytest.mark.short_cases(2)
@pytest.mark.parametrize("first, second", WAYS)
def test_a_way_right_through_has_no_jumps(first: str, second: str) -> None:
    """From outside through the middle, medial axes and containment to the other side: halved steps halve the largest
    change of force, and the work done is the change of energy."""
    a, b = BODIES[first], BODIES[second]
    turn = Rotation.from_rotvec([0.3, -0.2, 0.5])
    offset = np.array([0.003, -0.002, 0.0])

    def along(count: int) -> tuple[np.ndarray, np.ndarray]:
        heights = np.linspace(0.25, -0.25, count)
        patches = [
            pressure_patch(a, b, pose(offset + [0, 0, z], turn), polygons=False) for z in heights
        ]
        return heights, np.array([wrench(patch) / LENGTHS for patch in patches])

    jumps = []
    for count in (500, 1000):
        heights, wrenches = along(count)
        jumps.append(np.linalg.norm(np.diff(wrenches, axis=0), axis=1).max())
    largest = np.linalg.norm(wrenches, axis=1).max()
    assert largest > 0.0
    assert jumps[1] < 0.7 * jumps[0] < 0.1 * largest
    middle = 0.5 * (wrenches[1:, 2] + wrenches[:-1, 2])
    work = -np.cumsum(middle * np.diff(heights))  # by a on b, b being at rest
    for i in (299, 499, 799):
        gained = pressure_energy(a, b, pose(offset + [0, 0, heights[i + 1]], turn))
        assert -work[i] == pytest.approx(gained, abs=1e-4 * largest * HALF)


# ------------------------------------------------------------------------------------------------ arrays


def test_vertices_of_no_element_are_nowhere() -> None:
    box = SOFT["box"]
    more = np.vstack([box.vertices, [[9.0, 9.0, 9.0]]])
    field = PressureField(more, box.tetrahedra, np.r_[box.pressure, 0.0])
    here = pose((0.02, 0.01, 0.03))
    assert pressure_patch(field, SOFT["sphere"], here).force == pytest.approx(
        pressure_patch(box, SOFT["sphere"], here).force, rel=1e-12
    )
    with pytest.raises(
        ValueError, match=rf"pressure: vertex {len(box.vertices)} has 5 Pa and .* no"
    ):
        PressureField(more, box.tetrahedra, np.r_[box.pressure, 5.0])


def test_surfaces_have_one_outside() -> None:
    cube = RigidSurface.of(SOFT["cube"])
    faces = cube.triangles.copy()
    faces[3] = faces[3][::-1]
    with pytest.raises(ValueError, match=r"triangles: rows .* reverse one of them"):
        RigidSurface(cube.vertices, faces)
    RigidSurface(cube.vertices, faces[[0, 1, 2, 4, 5]])  # open ones have an outside too
    two = np.vstack([cube.vertices, cube.vertices + [2 * HALF, 2 * HALF, 0]])
    points, index = np.unique(two, axis=0, return_inverse=True)
    both = index.reshape(-1)[np.vstack([cube.triangles, cube.triangles + len(cube.vertices)])]
    RigidSurface(points, both)  # cubes that share an edge


@pytest.mark.parametrize(
    "index, message",
    [
        (2**31, "tetrahedra: expected indices of vertices"),
        (2**31 - 1, "tetrahedra: row 2 names vertex 2147483647"),
        (-1, "tetrahedra: expected indices of vertices"),
    ],
)
def test_huge_indices_are_refused(index: int, message: str) -> None:
    box = SOFT["box"]
    cells = box.tetrahedra.astype(np.int64)
    cells[2, 1] = index
    with pytest.raises(ValueError, match=message):
        PressureField(box.vertices, cells, box.pressure)


def test_numbers_that_are_too_large_are_refused() -> None:
    box = SOFT["box"]
    for size, modulus in ((1e200, 1.0), (1.0, 1e300), (1e-120, 1.0)):
        with pytest.raises(ValueError, match=r"(vertices|pressure|tetrahedr)"):
            PressureField(size * box.vertices, box.tetrahedra, modulus * box.pressure)
