"""Pressure fields: closed forms, action and reaction, exact tangents, ties, conservation, and what is refused.

Formulas are those of a linear pressure in each tetrahedron (Elandt et al. 2019); k is modulus over depth.
"""

from __future__ import annotations

import math
import pickle
from itertools import pairwise

import numpy as np
import pytest
from field_bodies import moved, pose, random_pose
from scipy.spatial.transform import Rotation

from qdsim.pressure import (
    HalfSpace,
    PressureField,
    RigidSurface,
    pressure_energy,
    pressure_patch,
    tessellation,
)

SHAPES = {
    "sphere": PressureField.sphere(0.1, 1e5, hint=0.05),
    "ellipsoid": PressureField.ellipsoid([0.1, 0.15, 0.2], 2e5, hint=0.06),
    "box": PressureField.box([0.1, 0.2, 0.15], 3e5),
    "capsule": PressureField.capsule(0.05, 0.1, 1e5, hint=0.04),
    "long cylinder": PressureField.cylinder(0.05, 0.1, 1e5, hint=0.04),
    "cylinder": PressureField.cylinder(0.1, 0.1, 1e5, hint=0.05),
    "disc": PressureField.cylinder(0.1, 0.04, 1e5, hint=0.05),
}
VOLUMES = {
    "sphere": 4 / 3 * math.pi * 0.1**3,
    "ellipsoid": 4 / 3 * math.pi * 0.1 * 0.15 * 0.2,
    "box": 8 * 0.1 * 0.2 * 0.15,
    "capsule": math.pi * 0.05**2 * (0.2 + 4 / 3 * 0.05),
    "long cylinder": math.pi * 0.05**2 * 0.2,
    "cylinder": math.pi * 0.1**2 * 0.2,
    "disc": math.pi * 0.1**2 * 0.08,
}
PAIRS = [
    ("sphere", "ellipsoid"),
    ("box", "disc"),
    ("capsule", "box"),
    ("cylinder", "long cylinder"),
    ("box", "box"),
    ("sphere", "rigid"),
    ("rigid", "box"),
    ("box", "floor"),
    ("floor", "cylinder"),
    ("capsule", "mud"),
    ("mud", "ellipsoid"),
    ("rigid", "mud"),
    ("mud", "rigid"),
]
BODIES = SHAPES | {
    "rigid": RigidSurface.of(SHAPES["ellipsoid"]),
    "floor": HalfSpace(),
    "mud": HalfSpace(1e6),
}


# ------------------------------------------------------------------------------------------------ fields


def six_volumes(field: PressureField) -> np.ndarray:
    corner = field.vertices[field.tetrahedra]
    return np.linalg.det(corner[:, 1:] - corner[:, :1])


@pytest.mark.parametrize("name", SHAPES)
def test_tetrahedra_fill_their_shape(name: str) -> None:
    volumes = six_volumes(SHAPES[name]) / 6.0
    assert volumes.min() > 0.0
    full = name == "box"
    assert (1.0 if full else 0.75) * VOLUMES[name] < volumes.sum() * (1 + 1e-12)
    assert volumes.sum() <= VOLUMES[name] * (1 + 1e-12)


def test_finer_hints_fill_more() -> None:
    for make, volume in (
        (lambda h: PressureField.sphere(1.0, 1.0, hint=h), 4 / 3 * math.pi),
        (lambda h: PressureField.capsule(1.0, 0.5, 1.0, hint=h), math.pi * (1.0 + 4 / 3)),
        (lambda h: PressureField.cylinder(1.0, 2.0, 1.0, hint=h), 4 * math.pi),
    ):
        errors = [1 - six_volumes(make(h)).sum() / 6 / volume for h in (2.0, 1.0, 0.5, 0.25, 0.12)]
        assert all(0 < after < before for before, after in pairwise(errors))
        assert errors[-1] < 0.02


@pytest.mark.parametrize(
    "half", [(1, 1, 1), (1, 1, 2), (2, 1, 1), (1, 2, 2), (3, 1, 2), (1, 1, 1 + 1e-15)]
)
def test_pressure_of_a_box_is_the_depth_below_its_faces(half: tuple[float, ...]) -> None:
    sizes = np.array(half, dtype=float)
    field = PressureField.box(sizes, 1.0)
    assert six_volumes(field).sum() / 6 == pytest.approx(8 * np.prod(sizes), rel=1e-12)
    weights = np.random.default_rng(0).dirichlet(np.ones(4), size=len(field.tetrahedra))
    points = np.einsum("ij,ijk->ik", weights, field.vertices[field.tetrahedra])
    pressure = np.einsum("ij,ij->i", weights, field.pressure[field.tetrahedra])
    assert pressure == pytest.approx(
        np.min(sizes - np.abs(points), axis=1) / sizes.min(), abs=1e-12
    )


@pytest.mark.parametrize("name", SHAPES)
def test_surfaces_are_closed(name: str) -> None:
    """Every edge of the surface belongs to two triangles, run through in opposite ways."""
    triangles = tessellation.surface_of(SHAPES[name].tetrahedra)
    edges = triangles[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2)
    assert len(np.unique(edges, axis=0)) == len(edges)
    assert set(map(tuple, edges)) == set(map(tuple, edges[:, ::-1]))


# ------------------------------------------------------------------------------------------------ closed forms


@pytest.mark.parametrize(
    "depth, force",
    [(1e-4, 239.0013333), (1e-3, 2301.333333), (5e-3, 9666.666667), (1e-2, 15333.33333)],
)
@pytest.mark.parametrize("turn", [0.0, 0.7])
def test_soft_box_on_a_rigid_plane(depth: float, force: float, turn: float) -> None:
    """F = (E / H) (a b d - (a + b) d^2 + 4 d^3 / 3), whatever its yaw; and in turned worlds."""
    box = PressureField.box([0.03, 0.02, 0.01], 1e7)
    here = pose((0.3, -0.2, 0.01 - depth), Rotation.from_euler("z", turn))
    found = pressure_patch(box, HalfSpace(), here)
    assert found.force == pytest.approx([0, 0, -force], abs=1e-8 * force)
    assert found.moment == pytest.approx(np.cross(here[:3], found.force), abs=1e-9 * force)
    assert found.area == pytest.approx(0.06 * 0.04, rel=1e-12)
    world = random_pose(np.random.default_rng(1), 1.0)
    turned = Rotation.from_quat(world[[4, 5, 6, 3]])
    there = pose(
        turned.apply(here[:3]) + world[:3], turned * Rotation.from_quat(here[[4, 5, 6, 3]])
    )
    again = pressure_patch(box, HalfSpace(), there, world)
    assert again.force == pytest.approx(turned.apply(found.force), abs=1e-8 * force)


def test_past_the_medial_axis_the_force_falls_and_does_not_jump() -> None:
    box = PressureField.box([0.03, 0.02, 0.01], 1e7)
    below = pressure_patch(box, HalfSpace(), pose((0, 0, -0.002))).force[2]
    assert below == pytest.approx(-13482.6667, rel=1e-8)
    around = [
        pressure_patch(box, HalfSpace(), pose((0, 0, z))).force[2] for z in (-1e-9, 0.0, 1e-9)
    ]
    assert np.ptp(around) < 1e-4 * abs(around[0])


@pytest.mark.parametrize("beyond", [-1e-6, 1e-6])
def test_rigid_face_across_the_middle_of_a_soft_box(beyond: float) -> None:
    box = PressureField.box([0.03, 0.03, 0.01], 1e6)
    square = np.array([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]]) * 0.01
    face = RigidSurface(square, [[0, 2, 1], [0, 3, 2]])  # looks down
    assert pressure_patch(face, box, pose((0, 0, -beyond))).force[2] == pytest.approx(
        -399.96, rel=1e-6
    )


@pytest.mark.short_cases(1)
@pytest.mark.parametrize("depth", [0.1, 0.2, 0.4])
def test_soft_ball_on_a_plane_converges_from_below(depth: float) -> None:
    """F = pi / 3 E d^2 (3 - 2 d / R), and the ratios of inscribed octahedral meshes."""
    published = {
        0.1: [0.023, 0.133, 0.549, 0.874, 0.968, 0.992],
        0.2: [0.049, 0.285, 0.771, 0.939, 0.984, 0.996],
        0.4: [0.116, 0.572, 0.854, 0.962, 0.990, 0.998],
    }[depth]
    exact = math.pi / 3 * depth**2 * (3 - 2 * depth)
    for level, ratio in enumerate(published):
        hint = 2.0 * math.sin(math.pi / 2 ** (level + 2)) * (1 + 1e-9)
        ball = PressureField.sphere(1.0, 1.0, hint=hint)
        assert len(ball.tetrahedra) == 8 * 4**level
        force = -pressure_patch(ball, HalfSpace(), pose((0, 0, 1 - depth))).force[2]
        assert force / exact == pytest.approx(ratio, abs=6e-4)


def test_equal_balls_press_on_their_middle_plane() -> None:
    ball = PressureField.sphere(1.0, 1.0, hint=0.1)
    found = pressure_patch(ball, ball, pose((0, 0, 1.6)))
    exact = math.pi / 3 * 0.2**2 * (3 - 0.4)
    assert -found.force[2] == pytest.approx(exact, rel=0.03)
    assert found.vertices[:, 2] == pytest.approx(0.8, abs=1e-9)
    assert found.force[:2] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("ratio", [1.0, 3.0, 1e-3, 1e6])
def test_two_slabs_share_their_overlap_by_stiffness(ratio: float) -> None:
    """p = s k1 k2 / (k1 + k2), at depth s k2 / (k1 + k2) in the first."""
    first, second = PressureField.box([1, 1, 0.1], 1e5), PressureField.box([1, 1, 0.1], 1e5 * ratio)
    k1, k2 = 1e6, 1e6 * ratio
    overlap = 0.02
    found = pressure_patch(first, second, pose((0.3, 0.2, 0.2 - overlap)))
    # Far from the rims, where the fields of the narrow sides meet those of the faces.
    depth, pressure = overlap * k2 / (k1 + k2), overlap * k1 * k2 / (k1 + k2)
    middle = np.hypot(found.vertices[:, 0] - 0.15, found.vertices[:, 1] - 0.1) < 0.6
    assert middle.sum() > 4
    assert found.vertices[middle, 2] == pytest.approx(0.1 - overlap + depth, abs=1e-9)
    assert found.polygons["pressure"].max() == pytest.approx(pressure, rel=1e-9)


def box_surface(half: np.ndarray) -> RigidSurface:
    return RigidSurface.of(PressureField.box(half, 1.0))


def torus() -> RigidSurface:
    u, v = np.meshgrid(np.arange(24), np.arange(12), indexing="ij")
    a, b = 2 * np.pi * u / 24, 2 * np.pi * v / 12
    r = 0.1 + 0.03 * np.cos(b)
    points = np.stack([r * np.cos(a), r * np.sin(a), 0.03 * np.sin(b)], axis=-1).reshape(-1, 3)
    index = lambda i, j: (i % 24) * 12 + j % 12  # noqa: E731
    corner = index(u, v), index(u + 1, v), index(u + 1, v + 1), index(u, v + 1)
    first = np.stack([corner[0], corner[1], corner[2]], axis=-1).reshape(-1, 3)
    second = np.stack([corner[0], corner[2], corner[3]], axis=-1).reshape(-1, 3)
    return RigidSurface(points, np.concatenate([first, second]))


@pytest.mark.parametrize("body", [box_surface(np.array([0.1, 0.2, 0.05])), torus()])
def test_archimedes(body: RigidSurface) -> None:
    """A closed rigid body in a soft half space is lifted by slope times what is below, through its centroid."""
    rng = np.random.default_rng(3)
    corner = body.vertices[body.triangles]
    parts = np.einsum("ij,ij->i", corner[:, 0], np.cross(corner[:, 1], corner[:, 2])) / 6
    centroid = np.einsum("i,ij->j", parts, corner.sum(axis=1)) / 4 / parts.sum()
    for _ in range(10):
        there = random_pose(rng, 0.01, (0.3, -0.2, -1.0))
        found = pressure_patch(body, HalfSpace(2e5), there)
        lifted = Rotation.from_quat(there[[4, 5, 6, 3]]).apply(centroid) + there[:3]
        force = np.array([0, 0, -2e5 * parts.sum()])  # on the half space
        assert found.force == pytest.approx(force, abs=1e-8 * abs(force[2]))
        assert found.moment == pytest.approx(np.cross(lifted, force), abs=1e-8 * abs(force[2]))


def test_flat_base_in_a_soft_half_space_resists_tilt() -> None:
    """Moment k b a^3 / 12 sin(theta) of a base that is wet all over, about its middle."""
    a, b, k, theta = 0.1, 0.06, 1e6, 0.02
    corners = np.array([[-a, -b, 0], [a, -b, 0], [a, b, 0], [-a, b, 0]]) / 2
    base = RigidSurface(corners, [[0, 2, 1], [0, 3, 2]])
    found = pressure_patch(base, HalfSpace(k), pose((0, 0, -0.01), Rotation.from_euler("y", theta)))
    about = found.moment - np.cross([0, 0, -0.01], found.force)
    assert abs(about[1]) == pytest.approx(k * b * a**3 / 12 * math.sin(theta), rel=1e-9)
    assert np.linalg.norm(found.force) == pytest.approx(k * a * b * 0.01, rel=1e-9)


# ------------------------------------------------------------------------------------------------ any pair


@pytest.mark.short_cases(1)
@pytest.mark.parametrize("first, second", PAIRS)
def test_random_poses(first: str, second: str) -> None:
    """Tangent against differences; action and reaction; polygons add up to the whole; nothing depends on the world."""
    a, b = BODIES[first], BODIES[second]
    rng = np.random.default_rng(7)
    met = 0
    for _ in range(25):
        up = 0.08 if "floor" not in (first, second) and "mud" not in (first, second) else 0.0
        here, there = random_pose(rng, 0.05, (0, 0, up)), random_pose(rng, 0.03)
        found = pressure_patch(a, b, here, there)
        if not found.count:
            assert found.area == 0.0 and not found.force.any() and not found.tangent.any()
            continue
        met += 1
        wrench = np.r_[found.force, found.moment]
        scale = np.abs(wrench).max() + 1e-3
        differences = np.empty((6, 6))
        for j, step in enumerate(1e-6 * np.eye(6)):
            ahead, back = (pressure_patch(a, b, moved(here, s), there) for s in (step, -step))
            differences[:, j] = np.r_[ahead.force - back.force, ahead.moment - back.moment] / 2e-6
        assert found.tangent == pytest.approx(
            differences, abs=2e-6 * np.abs(differences).max() + 1e-9 * scale / 1e-6
        )
        other = pressure_patch(b, a, there, here)
        assert np.r_[other.force, other.moment] == pytest.approx(-wrench, abs=1e-9 * scale)
        assert other.count == found.count
        load = found.polygons["area"] * found.polygons["pressure"]
        normal = found.polygons["normal"]
        assert load @ normal == pytest.approx(found.force, abs=1e-9 * scale)
        arm = np.cross(found.polygons["centre"], normal)
        assert load @ arm == pytest.approx(found.moment, abs=1e-9 * scale)
        assert found.polygons["pressure"].min() > -1e-6 * found.polygons["pressure"].max()
        last = found.polygons[-1]
        assert found.vertices.shape[0] == last["vertex_start"] + last["vertex_count"]
    assert met > 10


@pytest.mark.short_cases(4)
@pytest.mark.parametrize("first, second", [*PAIRS, ("torus", "box"), ("sphere", "torus")])
def test_force_and_moment_are_the_change_of_energy(first: str, second: str) -> None:
    bodies = BODIES | {"torus": torus()}
    a, b = bodies[first], bodies[second]
    rng = np.random.default_rng(11)
    up = 0.0 if {"floor", "mud"} & {first, second} else 0.08
    met = 0
    for _ in range(6):
        here, there = random_pose(rng, 0.05, (0, 0, up)), random_pose(rng, 0.03)
        found = pressure_patch(a, b, here, there, polygons=False)
        if found.count < 3:
            continue
        met += 1
        differences = [
            (
                pressure_energy(a, b, moved(here, step), there)
                - pressure_energy(a, b, moved(here, -step), there)
            )
            / 2e-6
            for step in 1e-6 * np.eye(6)
        ]
        scale = np.abs([found.force, found.moment]).max()
        assert np.r_[found.force, found.moment] == pytest.approx(differences, abs=1e-5 * scale)
        energy = pressure_energy(a, b, here, there)
        assert energy > 0.0
        assert pressure_energy(b, a, there, here) == pytest.approx(energy, rel=1e-9)
    assert met > 2


@pytest.mark.short_cases(1)
@pytest.mark.parametrize("depth", [0.01, 0.05, 0.09])
def test_energy_of_a_ball_and_of_a_slab(depth: float) -> None:
    """Ball on a plane: pi / 3 E (d^3 - d^4 / (2 R)); rigid block in a soft half space: k A d^2 / 2."""
    ball = PressureField.sphere(0.1, 1e6, hint=0.005)
    exact = math.pi / 3 * 1e6 * (depth**3 - depth**4 / 0.2)
    energy = pressure_energy(ball, HalfSpace(), pose((0, 0, 0.1 - depth)))
    assert 0.97 * exact < energy < exact
    block = box_surface(np.array([0.1, 0.2, 0.15]))
    energy = pressure_energy(block, HalfSpace(1e6), pose((0, 0, 0.15 - depth)))
    assert energy == pytest.approx(1e6 * 0.08 * depth**2 / 2, rel=1e-12)


def test_energy_needs_a_closed_surface() -> None:
    square = np.array([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]]) * 0.01
    face = RigidSurface(square, [[0, 2, 1], [0, 3, 2]])
    with pytest.raises(ValueError, match="b: expected a closed surface"):
        pressure_energy(SHAPES["box"], face)
    with pytest.raises(ValueError, match="at least one of them must be soft"):
        pressure_energy(HalfSpace(), HalfSpace(1e5))
    with pytest.raises(TypeError, match="a: "):
        pressure_energy("ball", face)  # type: ignore[arg-type]


def test_corners_run_round_the_normal() -> None:
    found = pressure_patch(SHAPES["box"], SHAPES["sphere"], pose((0.15, 0.05, 0.1)))
    for polygon in found.polygons:
        start = polygon["vertex_start"]
        x = found.vertices[start : start + polygon["vertex_count"]]
        area = 0.5 * sum(np.cross(p - x[0], q - x[0]) for p, q in pairwise(x[1:]))
        assert area == pytest.approx(polygon["area"] * polygon["normal"], abs=1e-12)


@pytest.mark.short_cases(1)
@pytest.mark.parametrize("first, second", [("sphere", "ellipsoid"), ("box", "capsule")])
def test_a_closed_way_takes_no_work(first: str, second: str) -> None:
    a, b = SHAPES[first], SHAPES[second]
    angles = 2 * np.pi * np.arange(2000) / 2000
    places = np.stack(
        [0.04 * np.cos(angles), 0.03 * np.sin(angles), 0.15 + 0.02 * np.cos(2 * angles)], axis=1
    )
    forces = np.array([pressure_patch(a, b, pose(x), polygons=False).force for x in places])
    steps = np.roll(places, -1, axis=0) - np.roll(places, 1, axis=0)
    powers = 0.5 * np.einsum("ij,ij->i", forces, steps)
    assert abs(powers.sum()) < 1e-5 * np.abs(powers).sum()


@pytest.mark.parametrize("overlap, force", [(1e-3, 39.00833), (4e-3, 144.5333), (1e-2, 308.3333)])
def test_flush_equal_cubes(overlap: float, force: float) -> None:
    """Equal fields side by side have a surface of finite thickness: it counts once, nothing is pushed sideways."""
    cube = PressureField.box([0.02, 0.02, 0.02], 1e6)
    found = pressure_patch(cube, cube, pose((0, 0, 0.04 - overlap)))
    assert found.force[2] == pytest.approx(-force, rel=1e-6)
    assert found.force[:2] == pytest.approx(0.0, abs=1e-6 * force)


def test_rigid_face_in_a_plane_of_two_tetrahedra_counts_once() -> None:
    box = PressureField.box([0.03, 0.03, 0.01], 1e6)
    square = np.array([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]]) * 0.01
    face = RigidSurface(square, [[0, 2, 1], [0, 3, 2]])
    assert pressure_patch(face, box).force[2] == pytest.approx(-400.0, rel=1e-9)


MUD = HalfSpace(1e13)


def test_a_filter_leaves_polygons_out() -> None:
    box = PressureField.box([0.03, 0.02, 0.01], 1e7)
    deep = pose((0, 0, -0.002))
    kept = [pressure_patch(box, MUD, deep, filter_angle=a) for a in (5 * math.pi / 8, math.pi)]
    assert kept[0].count < kept[1].count == pressure_patch(box, MUD, deep).count


def test_a_field_without_a_neighbour_is_rejected_by_its_box() -> None:
    assert pressure_patch(SHAPES["box"], SHAPES["sphere"], pose((1.0, 0, 0))).count == 0
    assert pressure_patch(SHAPES["box"], HalfSpace(), pose((0, 0, 1.0))).count == 0


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1e3, 1e6])
def test_any_unit_of_length(scale: float) -> None:
    """Forces go with the square of lengths where pressures stay; nothing vanishes when it is small."""
    rng = np.random.default_rng(5)
    for _ in range(5):
        here, there = random_pose(rng, 0.05, (0, 0, 0.08)), random_pose(rng, 0.03)
        found = pressure_patch(SHAPES["box"], SHAPES["ellipsoid"], here, there)
        a, b = (
            PressureField(scale * f.vertices, f.tetrahedra, f.pressure)
            for f in (SHAPES["box"], SHAPES["ellipsoid"])
        )
        here[:3] *= scale
        there[:3] *= scale
        again = pressure_patch(a, b, here, there)
        assert again.force == pytest.approx(scale**2 * found.force, rel=1e-9, abs=1e-9 * scale**2)
        assert again.count == found.count


@pytest.mark.short_cases(1)
@pytest.mark.parametrize("order", [(0, 1, 0), (1, 0, 1)])
def test_large_and_small_patches_in_turn(order: tuple[int, ...]) -> None:
    """Room for polygons is kept between calls; what a call returned stays as it was, and is the caller's to change."""
    bodies = [
        PressureField.sphere(0.1, 1e5, hint=0.006),
        PressureField.sphere(0.1, 1e5, hint=0.05),
    ]
    kept = []
    for which in order:
        found = pressure_patch(bodies[which], HalfSpace(), pose((0, 0, 0.05)))
        assert len(found.polygons) == found.count
        assert len(found.vertices) == found.polygons["vertex_count"].sum()
        load = found.polygons["area"] @ found.polygons["pressure"]
        assert load == pytest.approx(found.total_pressure, rel=1e-12)
        kept.append((found, found.polygons.copy(), found.vertices.copy()))
    assert max(found.count for found, _, _ in kept) > 600
    for found, polygons, vertices in kept:
        assert np.array_equal(found.polygons, polygons) and np.array_equal(found.vertices, vertices)
        found.polygons["area"] *= 2.0
        found.vertices[:] = 1.0
        found.force[:] = 0.0


# ------------------------------------------------------------------------------------------------ objects


@pytest.mark.parametrize("name", BODIES)
def test_bodies_never_change_and_can_be_pickled(name: str) -> None:
    body = BODIES[name]
    with pytest.raises(AttributeError, match="immutable"):
        body.vertices = np.zeros((1, 3))  # type: ignore[misc, union-attr]
    copy = pickle.loads(pickle.dumps(body))
    other = HalfSpace(1e6) if name in ("rigid",) else SHAPES["sphere"]
    there = pose((0.02, 0.01, -0.05))
    first, second = (
        pressure_patch(body, other, None, there),
        pressure_patch(copy, other, None, there),
    )
    assert first.force.tobytes() == second.force.tobytes()
    assert type(body).__name__ in repr(body)


TETRAHEDRON = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [0.2, 0.2, 0.2]])
FOUR = np.array([[4, 1, 2, 3], [0, 4, 2, 3], [0, 1, 4, 3], [0, 1, 2, 4]])
INSIDE = np.array([0.0, 0, 0, 0, 1e5])


def test_the_tetrahedron_of_the_errors_is_a_good_one() -> None:
    assert PressureField(TETRAHEDRON, FOUR, INSIDE).pressure[4] == 1e5


@pytest.mark.parametrize(
    "vertices, tetrahedra, pressure, message",
    [
        (TETRAHEDRON[:, :2], FOUR, INSIDE, "vertices"),
        (np.where(TETRAHEDRON == 1, np.nan, TETRAHEDRON), FOUR, INSIDE, "vertices"),
        (TETRAHEDRON, FOUR[:, :3], INSIDE, "tetrahedra"),
        (TETRAHEDRON, FOUR + 0.5, INSIDE, "tetrahedra"),
        (TETRAHEDRON, FOUR + 1, INSIDE, "tetrahedra: row 0 names vertex 5"),
        (TETRAHEDRON, FOUR - 1, INSIDE, "tetrahedra"),
        (TETRAHEDRON, FOUR[:0], INSIDE, "too few"),
        (TETRAHEDRON, FOUR[:, [1, 0, 2, 3]], INSIDE, "tetrahedra: tetrahedron 0 is inverted"),
        (TETRAHEDRON, np.vstack([FOUR, [0, 0, 1, 2]]), INSIDE, "tetrahedron 4 is flat"),
        (TETRAHEDRON, np.vstack([FOUR, FOUR[:1]]), INSIDE, "tetrahedra: .*share"),
        (TETRAHEDRON, FOUR, INSIDE[:4], "pressure"),
        (TETRAHEDRON, FOUR, -INSIDE, "pressure: entry 4"),
        (TETRAHEDRON, FOUR, INSIDE * np.nan, "pressure"),
        (TETRAHEDRON, FOUR, 0 * INSIDE, "pressure: no vertex"),
        (TETRAHEDRON, FOUR, INSIDE + 1.0, "pressure: vertex .* lies on the surface"),
    ],
)
def test_bad_fields_are_refused(vertices, tetrahedra, pressure, message) -> None:
    with pytest.raises(ValueError, match=message):
        PressureField(vertices, tetrahedra, pressure)


def test_bad_arguments_are_named() -> None:
    ball = SHAPES["sphere"]
    with pytest.raises(ValueError, match="radius"):
        PressureField.sphere(0.0, 1e5)
    with pytest.raises(ValueError, match="modulus"):
        PressureField.box([1, 1, 1], -1.0)
    with pytest.raises(ValueError, match="half_sizes"):
        PressureField.box([1, 0, 1], 1.0)
    with pytest.raises(ValueError, match="hint"):
        PressureField.capsule(1.0, 1.0, 1e5, hint=math.nan)
    with pytest.raises(ValueError, match="slope"):
        HalfSpace(-1.0)
    with pytest.raises(ValueError, match="triangles: triangle 0 has no area"):
        RigidSurface(TETRAHEDRON, [[0, 0, 1]])
    with pytest.raises(TypeError, match="b: "):
        pressure_patch(ball, "ball")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="pose_a"):
        pressure_patch(ball, ball, np.zeros(6))
    with pytest.raises(ValueError, match="pose_b: the quaternion"):
        pressure_patch(ball, ball, None, np.zeros(7))
    with pytest.raises(ValueError, match="at least one of them must be soft"):
        pressure_patch(HalfSpace(), RigidSurface.of(ball))
    with pytest.raises(ValueError, match="filter_angle"):
        pressure_patch(ball, ball, filter_angle=4.0)
