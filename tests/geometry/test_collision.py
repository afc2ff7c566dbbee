"""Contacts between shapes, through ``Model.collide``, against MuJoCo's and against geometry.

MuJoCo's primitive pairs are exact closed forms written by others; its ``mj_geomDistance`` is a
second witness. Values that neither has (four lowest vertices, manifolds) are worked out here.
Derivatives are tested in C (tests/c/geometry/test_derivative.c).
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math

import hypothesis
import hypothesis.strategies as st
import mujoco
import numpy as np
import numpy.typing as npt
import pytest

import qdsim

Array = npt.NDArray[np.float64]

SIZE_COUNT = {"plane": 3, "sphere": 1, "capsule": 2, "box": 3, "cylinder": 2, "ellipsoid": 3}
# MuJoCo has closed forms for these ...
CLOSED_FORMS = [
    ("plane", "sphere"),
    ("plane", "capsule"),
    ("plane", "box"),
    ("sphere", "sphere"),
    ("sphere", "capsule"),
    ("sphere", "box"),
    ("capsule", "capsule"),
    ("plane", "cylinder"),
    ("plane", "ellipsoid"),
    ("sphere", "cylinder"),
]
# ... and iterates, or simplifies, for these.
PAIRS = [
    *CLOSED_FORMS,
    ("sphere", "ellipsoid"),
    ("capsule", "box"),
    ("box", "box"),
    *(
        CURVED := [
            ("capsule", "cylinder"),
            ("capsule", "ellipsoid"),
            ("box", "cylinder"),
            ("box", "ellipsoid"),
            ("cylinder", "cylinder"),
            ("cylinder", "ellipsoid"),
            ("ellipsoid", "ellipsoid"),
        ]
    ),
]
BOTH_ORDERS = sorted({order for a, b in CLOSED_FORMS for order in ((a, b), (b, a))})


@dataclasses.dataclass
class Shape:
    """A shape on a body of its own: sizes (m), position (3, m), quaternion (4)."""

    type: str
    size: Array
    pos: Array
    quat: Array

    def xml(self, name: str) -> str:
        size = " ".join(repr(float(x)) for x in self.size[: SIZE_COUNT[self.type]])
        if self.type == "plane":  # planes do not move
            pos = " ".join(repr(float(x)) for x in self.pos)
            quat = " ".join(repr(float(x)) for x in self.quat)
            return (
                f'<body name="{name}" pos="{pos}" quat="{quat}">'
                f'<geom name="{name}" type="plane" size="1 1 1"/></body>'
            )
        return (
            f'<body name="{name}"><freejoint/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'
            f'<geom name="{name}" type="{self.type}" size="{size}"/></body>'
        )

    @property
    def rotation(self) -> Array:
        matrix = np.zeros(9)
        mujoco.mju_quat2Mat(matrix, self.quat)
        return matrix.reshape(3, 3)

    @property
    def extent(self) -> float:
        return 0.0 if self.type == "plane" else float(np.sum(self.size[: SIZE_COUNT[self.type]]))


def scene(a: Shape, b: Shape) -> str:
    return f"<mujoco><worldbody>{a.xml('a')}{b.xml('b')}</worldbody></mujoco>"


def configuration(a: Shape, b: Shape) -> Array:
    moving = [shape for shape in (a, b) if shape.type != "plane"]
    return np.concatenate([np.concatenate([shape.pos, shape.quat]) for shape in moving])


@functools.lru_cache(maxsize=2)
def loaded(xml: str) -> qdsim.Model:
    """A test asks for contacts of two shapes in several configurations, at several margins."""
    return qdsim.load(xml)


def our_contacts(a: Shape, b: Shape, margin: float = math.inf) -> npt.NDArray[np.void]:
    """Contacts with geom_a = a: the file's order is kept."""
    contacts = loaded(scene(a, b)).collide(configuration(a, b), margin)
    assert np.all(contacts["geom_a"] == 0) and np.all(contacts["geom_b"] == 1)
    return contacts


def mujoco_contacts(a: Shape, b: Shape, margin: float) -> list[tuple[float, Array, Array]]:
    """MuJoCo's contacts as (dist, pos, normal from a into b)."""
    spec = mujoco.MjSpec.from_string(scene(a, b))
    for geom in spec.geoms:
        geom.margin = margin
    model = spec.compile()
    data = mujoco.MjData(model)
    data.qpos[:] = configuration(a, b)
    mujoco.mj_forward(model, data)
    first = model.geom("a").id
    return [
        (c.dist, c.pos.copy(), c.frame[:3] * (1.0 if c.geom[0] == first else -1.0))
        for c in data.contact
    ]


def mujoco_distance(a: Shape, b: Shape) -> float:
    model = mujoco.MjModel.from_xml_string(scene(a, b))
    data = mujoco.MjData(model)
    data.qpos[:] = configuration(a, b)
    mujoco.mj_kinematics(model, data)
    ids = model.geom("a").id, model.geom("b").id
    return float(mujoco.mj_geomDistance(model, data, *ids, 1e6, None))


def random_quat(rng: np.random.Generator, aligned: bool) -> Array:
    if aligned:
        quarter = np.sqrt(0.5)
        turns = [(1, 0, 0, 0), (quarter, quarter, 0, 0), (quarter, 0, quarter, 0)]
        return np.array(turns[rng.integers(3)], dtype=float)
    quat = rng.normal(size=4)
    return np.asarray(quat / np.linalg.norm(quat))


def random_pair(
    types: tuple[str, str], sizes: list[float], seed: int, aligned: bool
) -> list[Shape]:
    """Two shapes near contact: from penetrating by half the smaller size to as far apart."""
    if types in CURVED:  # thin, but no needles
        sizes = [size**0.5 for size in sizes]
    rng = np.random.default_rng(seed)
    a, b = (
        Shape(
            kind,
            np.array(sizes[3 * i : 3 * i + 3]),
            rng.uniform(-1.0, 1.0, 3),
            random_quat(rng, aligned),
        )
        for i, kind in enumerate(types)
    )
    moving, other = (b, a) if b.type != "plane" else (a, b)
    reach = a.extent + b.extent
    direction = rng.normal(size=3)
    moving.pos = other.pos + reach * direction / np.linalg.norm(direction)
    contacts = our_contacts(a, b)
    nearest = contacts[np.argmin(contacts["dist"])]
    scale = min(min(s.size[: SIZE_COUNT[s.type]]) for s in (a, b) if s.type != "plane")
    target = rng.uniform(-0.5, 0.5) * scale
    sign = 1.0 if moving is b else -1.0
    moving.pos = moving.pos + sign * (target - nearest["dist"]) * nearest["frame"][0]
    return [a, b]


sizes_strategy = st.lists(
    st.floats(-4.0, 2.0).map(lambda exponent: 10.0**exponent), min_size=6, max_size=6
)
seeds = st.integers(0, 2**32 - 1)


def rounding(*shapes: Shape) -> float:
    """What coordinates of these sizes can hold, with room for a few operations."""
    return 1e-14 * (1.0 + sum(s.extent + float(np.max(np.abs(s.pos))) for s in shapes))


@pytest.mark.short_cases(1)
@pytest.mark.parametrize("types", BOTH_ORDERS, ids="-".join)
@hypothesis.given(sizes=sizes_strategy, seed=seeds, aligned=st.booleans())
def test_nearest_contact_is_mujocos(
    types: tuple[str, str], sizes: list[float], seed: int, aligned: bool
) -> None:
    a, b = random_pair(types, sizes, seed, aligned)
    ours = our_contacts(a, b)
    nearest = ours[np.argmin(ours["dist"])]
    theirs = mujoco_contacts(a, b, margin=10.0 * (a.extent + b.extent))
    least = min(dist for dist, _, _ in theirs)
    tolerance = 10.0 * rounding(a, b)
    assert abs(nearest["dist"] - least) <= tolerance
    if aligned:
        return  # parallel axes and faces: the point is a choice
    angle = 1.0
    if types == ("capsule", "capsule"):
        angle = float(np.linalg.norm(np.cross(a.rotation[:, 2], b.rotation[:, 2])))
    core = least + sum(s.size[0] for s in (a, b) if s.type in ("sphere", "capsule"))
    steadiness = angle * min(1.0, core / (a.extent + b.extent))
    if steadiness < 1e-6:
        return  # rounding decides where the point is
    match = min(
        np.linalg.norm(nearest["pos"] - pos) / (a.extent + b.extent)
        + np.linalg.norm(nearest["frame"][0] - normal)
        for dist, pos, normal in theirs
        if dist <= least + tolerance
    )
    assert match <= 100.0 * tolerance / ((a.extent + b.extent) * steadiness)


@pytest.mark.short_cases(1)
@pytest.mark.parametrize("types", PAIRS, ids="-".join)
@hypothesis.settings(max_examples=20)  # of each pair
@hypothesis.given(sizes=sizes_strategy, seed=seeds, aligned=st.booleans())
def test_distance_is_mujocos(
    types: tuple[str, str], sizes: list[float], seed: int, aligned: bool
) -> None:
    a, b = random_pair(types, sizes, seed, aligned)
    distance = float(np.min(our_contacts(a, b)["dist"]))
    if distance > 0.0:  # mj_geomDistance iterates to 1e-6 for some pairs
        scale = a.extent + b.extent
        assert distance == pytest.approx(mujoco_distance(a, b), abs=1e-5 * scale)


@pytest.mark.short_cases(1)
@pytest.mark.parametrize("types", PAIRS, ids="-".join)
@hypothesis.settings(max_examples=20)  # of each pair
@hypothesis.given(sizes=sizes_strategy, seed=seeds)
def test_exchanged_shapes_give_opposite_normals(
    types: tuple[str, str], sizes: list[float], seed: int
) -> None:
    a, b = random_pair(types, sizes, seed, aligned=False)
    straight, exchanged = our_contacts(a, b), our_contacts(b, a)
    assert len(straight) == len(exchanged)
    extent = a.extent + b.extent
    for contact in straight:
        nearest = min(
            abs(contact["dist"] - other["dist"]) / extent
            + np.linalg.norm(contact["pos"] - other["pos"]) / extent
            + 1e-3 * np.linalg.norm(contact["frame"][0] + other["frame"][0])
            for other in exchanged
        )
        assert nearest <= 1e-7


@pytest.mark.short_cases(1)
@pytest.mark.parametrize("types", PAIRS, ids="-".join)
@hypothesis.settings(max_examples=20)  # of each pair
@hypothesis.given(sizes=sizes_strategy, seed=seeds)
def test_frames_are_rotations_and_the_margin_cuts(
    types: tuple[str, str], sizes: list[float], seed: int
) -> None:
    a, b = random_pair(types, sizes, seed, aligned=False)
    contacts = our_contacts(a, b)
    for frame in contacts["frame"]:
        np.testing.assert_allclose(frame @ frame.T, np.eye(3), atol=1e-14)
        assert np.linalg.det(frame) > 0.0
    margin = max(0.0, float(np.mean(contacts["dist"])) + 10.0 * rounding(a, b))  # pairs' own: 0
    within = our_contacts(a, b, margin)
    np.testing.assert_array_equal(within["dist"], contacts["dist"][contacts["dist"] <= margin])


@pytest.mark.long
@hypothesis.given(sizes=sizes_strategy, seed=seeds)
def test_box_on_plane_has_its_four_lowest_vertices(sizes: list[float], seed: int) -> None:
    plane, box = random_pair(("plane", "box"), sizes, seed, aligned=False)
    normal = plane.rotation[:, 2]
    corners = np.array(list(itertools.product((-1.0, 1.0), repeat=3))) * box.size
    vertices = box.pos + corners @ box.rotation.T
    heights = (vertices - plane.pos) @ normal
    contacts = our_contacts(plane, box)
    assert len(contacts) == 4
    np.testing.assert_allclose(
        np.sort(contacts["dist"]), np.sort(heights)[:4], atol=rounding(plane, box)
    )
    for contact in contacts:
        vertex = contact["pos"] + 0.5 * contact["dist"] * normal
        assert np.min(np.linalg.norm(vertices - vertex, axis=1)) <= rounding(plane, box)
        np.testing.assert_allclose(contact["frame"][0], normal, atol=1e-15)


@pytest.mark.long
@hypothesis.given(sizes=sizes_strategy, seed=seeds)
def test_capsule_on_plane_has_both_ends_as_in_mujoco(sizes: list[float], seed: int) -> None:
    plane, capsule = random_pair(("plane", "capsule"), sizes, seed, aligned=False)
    ours = np.sort(our_contacts(plane, capsule)["dist"])
    margin = 10.0 * (1.0 + capsule.extent)
    theirs = np.sort([dist for dist, _, _ in mujoco_contacts(plane, capsule, margin)])
    np.testing.assert_allclose(ours, theirs, atol=rounding(plane, capsule))


@pytest.mark.parametrize("angle", [0.0, 1e-12, 1e-8, 1e-5, 1e-3])
def test_capsule_lying_along_a_capsule_is_held_at_both_ends_of_the_overlap(angle: float) -> None:
    """Half lengths 0.3 and 0.2, the upper one 0.25 ahead: they overlap from x = 0.05 to 0.3."""
    along = np.array([np.sqrt(0.5), 0.0, np.sqrt(0.5), 0.0])  # z to x
    yaw = np.array([np.cos(0.5 * angle), 0.0, 0.0, np.sin(0.5 * angle)])
    turned = np.zeros(4)
    mujoco.mju_mulQuat(turned, yaw, along)
    lower = Shape("capsule", np.array([0.05, 0.3, 0.0]), np.zeros(3), along)
    upper = Shape("capsule", np.array([0.03, 0.2, 0.0]), np.array([0.25, 0.0, 0.079]), turned)
    contacts = our_contacts(lower, upper, 0.01)
    ends = np.sort(contacts["pos"][:, 0])
    np.testing.assert_allclose([ends[0], ends[-1]], [0.05, 0.3], atol=1e-15 + angle)
    np.testing.assert_allclose(
        contacts["frame"][:, 0], [[0, 0, 1]] * len(contacts), atol=1e-14 + 4 * angle
    )
    # yawed by 1e-3, the axes cross 2.5e-7 m lower than the ends are near
    np.testing.assert_allclose(contacts["dist"], -0.001, atol=1e-15 + angle**2)


@pytest.mark.parametrize("offset", [0.0, 1.0, 50.0])
@pytest.mark.parametrize(("kind", "top"), [("plane", 0.0), ("box", 0.1), ("capsule", 0.2)])
def test_tiny_balls_lose_nothing_but_rounding(kind: str, top: float, offset: float) -> None:
    """Published systems put spheres of 1e-7 m on the corners of a box."""
    upright = np.array([1.0, 0.0, 0.0, 0.0])
    other = Shape(kind, np.full(3, 0.1), np.full(3, offset), upright)
    for depth in (-5e-8, 0.0, 5e-8):
        pos = other.pos + np.array([0.0, 0.0, top + 1e-7 - depth])
        (contact,) = our_contacts(other, Shape("sphere", np.array([1e-7, 0, 0]), pos, upright))
        assert contact["dist"] == pytest.approx(-depth, abs=1e-15 * (1.0 + 10.0 * offset))
        np.testing.assert_allclose(contact["frame"][0], [0, 0, 1], atol=1e-15)


UPRIGHT, ALONG_Y = "1 0 0 0", "0.70710678118654752 0.70710678118654752 0 0"
YAWED = "0.98006657784124163 0 0 0.19866933079506122"


def resting(*bodies: tuple[str, str, str, str]) -> str:
    """Free bodies (type, size, position, quaternion) over the ground."""
    free = "".join(
        f'<body pos="{pos}" quat="{quat}"><freejoint/>'
        f'<geom type="{kind}" size="{size}" mass="1"/></body>'
        for kind, size, pos, quat in bodies
    )
    return (
        '<mujoco><option gravity="0 0 -9.81"/><worldbody>'
        f'<geom type="plane" size="1 1 1"/>{free}</worldbody></mujoco>'
    )


GROUND_BOX = ("box", "0.1 0.1 0.1", "0 0 0.1", UPRIGHT)
RESTING = {
    "cylinder standing": (resting(("cylinder", "0.05 0.1", "0 0 0.1", UPRIGHT)), 6),
    "cylinder lying": (resting(("cylinder", "0.05 0.1", "0 0 0.05", ALONG_Y)), 2),
    "box on box": (resting(GROUND_BOX, ("box", "0.1 0.1 0.1", "0.02 0.03 0.3", YAWED)), 4 + 8),
    "cylinder on box": (
        resting(GROUND_BOX, ("cylinder", "0.05 0.1", "0.02 0.03 0.3", UPRIGHT)),
        4 + 6,
    ),
    "cylinder lying on box": (
        resting(GROUND_BOX, ("cylinder", "0.05 0.07", "0.02 0.01 0.25", ALONG_Y)),
        4 + 2,
    ),
    "capsule on box": (
        resting(GROUND_BOX, ("capsule", "0.05 0.2", "0 0 0.25", ALONG_Y)),
        4 + 2,
    ),
    "ellipsoid on box": (
        resting(GROUND_BOX, ("ellipsoid", "0.05 0.06 0.04", "0 0 0.24", UPRIGHT)),
        4 + 1,
    ),
}


@pytest.mark.parametrize("name", RESTING)
def test_resting_shapes_stay_and_their_smoothed_steps_are_differentiable(name: str) -> None:
    """Flat on flat no closest point is unique: the manifold holds the shapes, and stays on one
    smooth branch when they move by a millionth."""
    source, count = RESTING[name]
    model = qdsim.load(source)
    q, u = model.default_q.copy(), np.zeros(model.nu)
    assert len(model.collide(q, 1e-6)) == count
    options = qdsim.Options(h=0.05, margin=1e-3)
    for _ in range(5):
        q = qdsim.step(model, q, u, options).q_next
    np.testing.assert_allclose(model.difference(q, model.default_q), 0.0, atol=1e-9)
    smoothed = qdsim.Options(h=0.05, kappa=1e3, margin=1e-3)
    nominal = qdsim.step(model, q, u, smoothed).q_next
    A = qdsim.linearize(model, q, u, smoothed).A
    eps = 1e-6
    for j, unit in enumerate(np.eye(model.nv)):
        ahead, behind = (
            model.difference(
                qdsim.step(model, model.integrate(q, sign * eps * unit), u, smoothed).q_next,
                nominal,
            )
            for sign in (1.0, -1.0)
        )
        np.testing.assert_allclose(A[:, j], (ahead - behind) / (2.0 * eps), atol=1e-6)


@pytest.mark.short_cases(1)
@pytest.mark.parametrize("upside_down", [False, True])
def test_a_standing_cylinder_stays_at_any_yaw(upside_down: bool) -> None:
    """Axis and normal parallel to rounding: what is left of one across the other points anywhere.
    A can that stands in the ground by some depth has its six points at that depth, and the exact
    step takes it out by that and moves it in no other way."""
    rng = np.random.default_rng(7)
    for trial in range(300):
        if trial % 6 == 0:
            radius, half = rng.uniform(0.01, 0.2, 2)
            model = qdsim.load(
                resting(("cylinder", f"{radius} {half}", f"0 0 {half}", "1 0 0 0")),
            )
        yaw, depth = rng.uniform(-math.pi, math.pi), rng.choice([0.0, 1e-4 * half])
        turn = np.array([math.cos(yaw / 2), 0.0, 0.0, math.sin(yaw / 2)])
        if upside_down:  # half a turn about x first
            turn = np.array([-turn[1], turn[0], turn[3], -turn[2]])
        q = np.concatenate([[0.3, -0.2, half - depth], turn])
        contacts = model.collide(q, 0.03)
        assert len(contacts) == 6
        np.testing.assert_allclose(contacts["dist"], -depth, atol=1e-15)
        result = qdsim.step(model, q, np.zeros(0), qdsim.Options(h=0.05, margin=0.03))
        expected = np.array([0.0, 0.0, depth, 0.0, 0.0, 0.0])
        np.testing.assert_allclose(model.difference(result.q_next, q), expected, atol=1e-9)
