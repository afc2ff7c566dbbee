"""Rigid meshes press into soft bodies with their own triangles, convex or not: rings, corners, cups."""

import itertools

import numpy as np
import pytest
from field_bodies import STILL, blocks, corner, pose, random_pose, slow_patch, torus

import qdsim
from qdsim.description import ModelWarning
from qdsim.pressure import PressureField, RigidSurface, pressure_energy, pressure_patch
from qdsim.pressure.tessellation import surface_of

STONE = PressureField.ellipsoid((0.03, 0.02, 0.025), 1e6, hint=0.012)
WIDE, WALL, DEEP = 0.05, 0.01, 0.03
"""Of a cup, m: half its hollow's width, how thick it is, how deep."""


def cup() -> RigidSurface:
    """A square one whose hollow begins at z = 0 and is open above: 7 x 7 blocks around 5 x 5."""
    cubes = set(itertools.product(range(7), range(7), range(3)))
    cubes -= set(itertools.product(range(1, 6), range(1, 6), range(1, 3)))
    points, cells = blocks(cubes, 1.0)
    points = points - points.min(axis=0) - [3.5, 3.5, 1.0]
    at = np.array([-WIDE - WALL, *np.linspace(-WIDE, WIDE, 6), WIDE + WALL])
    for axis in range(2):
        points[:, axis] = np.interp(points[:, axis], np.arange(8) - 3.5, at)
    points[:, 2] = np.interp(points[:, 2], [-1, 0, 2], [-WALL, 0, DEEP])
    return RigidSurface(points, surface_of(cells.astype(np.int32)))


SURFACES = {
    "ring": RigidSurface.of(torus(1.0)),
    "corner": RigidSurface.of(corner(1.0)),
    "cup": cup(),
}


def volume(surface):
    return np.linalg.det(surface.vertices[surface.triangles]).sum() / 6.0


def scene(surface, kind, size, soft, *, triangles=None, gravity=(0, 0, 0), friction=0.0):
    """A rigid thing that stands still, and a soft body."""
    made = qdsim.SceneBuilder(gravity=gravity)
    made.mesh("thing", surface.vertices, surface.triangles if triangles is None else triangles)
    made.geom("world", "mesh", mesh="thing", name="thing", friction=friction)
    made.body("body", mass=1.0)
    made.joint("body", "free")
    made.geom("body", kind, size, name="body", soft=soft, friction=friction)
    return made.build()


def beside(surface, **more):
    soft = qdsim.Softness(1e6, hint=0.012)
    return scene(surface, "ellipsoid", (0.03, 0.02, 0.025), soft, **more)


@pytest.mark.long
@pytest.mark.parametrize("name", SURFACES)
def test_patches_are_those_of_the_triangles(name):
    """In random poses and from files, those of the arrays alone and of a slow clipper; in the hollow there is none."""
    surface, rng = SURFACES[name], np.random.default_rng(7)
    description = beside(surface)
    models = qdsim.build(description), qdsim.load(description.to_mjcf())
    met = hollow = 0
    for k in range(60):
        q = random_pose(rng, 0.04)
        alone = pressure_patch(surface, STONE, STILL, q)
        unit = alone.total_pressure + 1e-12
        # MuJoCo keeps vertices in single precision
        for model, share in zip(models, (1e-9, 1e-5 * (1.0 + 1.0 / unit))):
            found = qdsim.pressure_surface(model, q)
            assert len(found) == (alone.count > 0)
            for one in found:
                np.testing.assert_allclose(one.force, alone.force, atol=share * unit)
                np.testing.assert_allclose(one.moment, alone.moment, atol=0.1 * share * unit)
        met += alone.count > 0
        hollow += alone.count == 0
        if alone.count and k % 15 == 0:
            slow = slow_patch(surface, STONE, STILL, q)
            np.testing.assert_allclose(slow[:3], alone.force, atol=1e-10 * unit)
    assert met >= 20 and (hollow or name == "cup")


@pytest.mark.parametrize("name", SURFACES)
def test_a_soft_half_space_carries_what_they_displace(name):
    """Archimedes: slope times the volume of the triangles, not of their hull, at the middle of that volume."""
    surface = SURFACES[name]
    made = qdsim.SceneBuilder(gravity=(0, 0, 0))
    made.geom("world", "plane", name="sea", soft=qdsim.Softness(1e5, thickness=1.0))
    made.mesh("thing", surface.vertices, surface.triangles)
    made.body("thing", mass=1.0)
    made.joint("thing", "free")
    made.geom("thing", "mesh", mesh="thing", name="thing")
    q = random_pose(np.random.default_rng(1), 0.0, (0.3, 0.2, -0.5))
    (found,) = qdsim.pressure_surface(qdsim.build(made.build()), q)
    np.testing.assert_allclose(found.force, [0, 0, 1e5 * volume(surface)], atol=1e-9)
    corners = surface.vertices[surface.triangles]
    sizes = np.linalg.det(corners) / 6.0
    middle = sizes @ corners.sum(axis=1) / (4.0 * sizes.sum())
    arm = qdsim.build(made.build()).body_pose(q, 1)[1] @ middle + q[:3]
    np.testing.assert_allclose(found.moment, np.cross(arm, found.force), atol=1e-9)


def test_force_is_the_change_of_energy_around_a_ring():
    ring = SURFACES["ring"]
    model = qdsim.build(beside(ring))
    rng, size, errors = np.random.default_rng(3), 1e-6, []
    for _ in range(12):
        q = random_pose(rng, 0.02, (0.06, 0.0, 0.02))
        for found in qdsim.pressure_surface(model, q):
            slopes = []
            for axis in np.eye(3):
                there = [
                    pressure_energy(ring, STONE, STILL, q + np.r_[s * size * axis, np.zeros(4)])
                    for s in (1, -1)
                ]
                slopes.append((there[1] - there[0]) / (2 * size))
            errors.append(np.abs(found.force - slopes).max() / found.total_pressure)
    assert len(errors) >= 8
    assert (
        np.median(errors) < 1e-6 and max(errors) < 1e-4
    )  # a patch of next to nothing changes its faces


HALF = np.array([0.03, 0.02, 0.01])


@pytest.mark.parametrize("weight", [50.0, 500.0])
def test_a_soft_box_rests_on_the_floor_of_a_cup(weight):
    """At the depth of the closed form, between walls that do not touch it; the hull of the cup would be full of it."""
    model = qdsim.build(scene(SURFACES["cup"], "box", HALF, 1e6))
    options = qdsim.Options(h=0.01, epsilon=1e-3)
    a, b, height = 2 * HALF[0], 2 * HALF[1], HALF[2]
    q = pose((0.003, -0.002, height - 1e-3))
    for _ in range(6):
        step = qdsim.step(model, q, [], options, tau=[0, 0, -weight, 0, 0, 0])
        q = step.q_next
    d = height - q[2]
    closed = 1e6 / height * (a * b * d - (a + b) * d**2 + 4 * d**3 / 3)
    assert step.info.soft_converged and closed == pytest.approx(weight, rel=1e-9)
    np.testing.assert_allclose(q[[0, 1, 4, 5, 6]], [0.003, -0.002, 0, 0, 0], atol=1e-9)


@pytest.mark.parametrize("radius", [0.03, 0.045])
def test_a_ball_falls_through_a_ring_or_sticks_in_it(radius):
    """Through the hole of 0.035 m, or as deep as its weight presses it into the ring, on its axis."""
    soft = qdsim.Softness(3e5, hint=0.006)
    model = qdsim.build(scene(SURFACES["ring"], "sphere", radius, soft, gravity=(0, 0, -9.81)))
    q = pose((1e-3, 5e-4, 0.05))
    for _ in range(30):
        step = qdsim.step(model, q, [], qdsim.Options(h=0.05, epsilon=1.0))
        q = step.q_next
    if radius < 0.035:
        assert q[2] < -0.2 and not qdsim.pressure_surface(model, q)
    else:
        (found,) = qdsim.pressure_surface(model, q)
        np.testing.assert_allclose(found.force, [0, 0, 9.81], atol=1e-6)
        assert step.info.soft_converged and q[2] > 0.0 and np.hypot(*q[:2]) < 1e-3


def test_steps_between_concave_walls_have_derivatives():
    """A soft box in a corner of the cup, on its floor and at two walls, beside central differences."""
    model = qdsim.build(scene(SURFACES["cup"], "box", HALF, 1e6, friction=0.3))
    options = qdsim.Options(h=0.01, epsilon=1.0)
    q = pose((WIDE - HALF[0] + 1e-4, WIDE - HALF[1] + 2e-4, HALF[2] - 1e-3))
    tau = np.array([30.0, 25.0, -60.0, 0.01, 0.02, 0.0])
    linear = qdsim.linearize(model, q, [], options, tau=tau)
    rng = np.random.default_rng(0)
    for _ in range(3):
        way = 1e-3 * rng.normal(size=6)
        ends = [
            qdsim.step(model, model.integrate(q, s * way), [], options, tau=tau).q_next
            for s in (1e-3, -1e-3)
        ]
        change = model.difference(ends[0], ends[1]) / 2e-3
        np.testing.assert_allclose(linear.A @ way, change, atol=2e-5 * np.abs(way).max())


def test_surfaces_turned_inside_out_are_turned_back():
    """A closed surface has one outside; double vertices and triangles without area do not matter."""
    ring = SURFACES["ring"]
    right, odd = beside(ring), beside(ring, triangles=ring.triangles[:, ::-1])
    ragged = RigidSurface(ring.vertices[ring.triangles].reshape(-1, 3), surface_apart(ring))
    flat = np.r_[ragged.triangles, [[0, 0, 1], [2, 1, 1]]]
    q = pose((0.06, 0.0, 0.035))
    expected = qdsim.pressure_surface(qdsim.build(right), q)[0].force
    for other in (odd, beside(ragged), beside(ragged, triangles=flat)):
        found = qdsim.pressure_surface(qdsim.build(other), q)[0].force
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def surface_apart(surface):
    return np.arange(3 * len(surface.triangles)).reshape(-1, 3)


@pytest.mark.parametrize("fault", ["rim", "sides"])
def test_surfaces_that_enclose_nothing_are_met_by_their_hull(fault):
    ring = SURFACES["ring"]
    faces = ring.triangles[1:] if fault == "rim" else ring.triangles.copy()
    if fault == "sides":
        faces[3] = faces[3, ::-1]
    description = beside(ring, triangles=faces)
    with pytest.warns(ModelWarning, match="mesh 'thing': its triangles enclose no volume"):
        model = qdsim.build(description)
    (found,) = qdsim.pressure_surface(model, pose())
    assert found.geom_a == "thing" and found.count > 0
    assert not pressure_patch(ring, STONE, STILL, pose()).count
