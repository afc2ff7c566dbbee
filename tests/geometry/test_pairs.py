"""Which pairs count, with which contact dimension, friction and margin, against MuJoCo's contacts."""

from __future__ import annotations

import itertools

import mujoco
import numpy as np
import pytest

from qdsim.description import Description
from qdsim.description.arrays import model_arrays
from qdsim.formats import load_description


def mjcf(body: str = "", rest: str = "", option: str = "") -> str:
    return f"<mujoco>{option}<worldbody>{body}</worldbody>{rest}</mujoco>"


def mujoco_contacts(source: str) -> dict[tuple[int, int], tuple[int, np.ndarray]]:
    """(geoms) -> (dim, friction) of MuJoCo's contacts in the default configuration.

    MuJoCo also reports explicit pairs on bodies that are welded together. They have no relative
    motion, so they are left out here as they are in qdsim.
    """
    model = mujoco.MjModel.from_xml_string(source)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    weld = model.body_weldid[model.geom_bodyid]
    return {
        (min(a, b), max(a, b)): (int(contact.dim), np.array(contact.friction))
        for contact in data.contact
        for a, b in [contact.geom.tolist()]
        if weld[a] != weld[b]
    }


def our_pairs(description: Description) -> dict[tuple[int, int], tuple[int, np.ndarray]]:
    arrays = model_arrays(description)
    return {
        (int(a), int(b)): (int(dim), friction)
        for (a, b), dim, friction in zip(
            arrays["pair_geom"], arrays["pair_dim"], arrays["pair_friction"]
        )
    }


def assert_pairs_are_mujocos(source: str) -> int:
    """Every geometry of these scenes overlaps every other, so candidate pairs are contacts."""
    ours, theirs = our_pairs(load_description(source)), mujoco_contacts(source)
    assert ours.keys() == theirs.keys()
    for key, (dim, friction) in ours.items():
        assert dim == theirs[key][0], key
        if dim > 1:
            np.testing.assert_allclose(friction, theirs[key][1], rtol=1e-12, err_msg=str(key))
    return len(ours)


def random_contact_scene(rng: np.random.Generator) -> str:
    """A random tree of spheres that all overlap, with random filters, priorities and pairs."""
    count = int(rng.integers(2, 8))
    parents = [int(rng.integers(-1, i)) for i in range(count)]

    def geom(name: str) -> str:
        friction = " ".join(f"{value:.3f}" for value in rng.uniform(0.1, 1.0, 3))
        return (
            f'<geom name="{name}" size="{rng.uniform(1.0, 1.2):.3f}" friction="{friction}" '
            f'condim="{rng.choice([1, 3, 4, 6])}" priority="{rng.choice([0, 0, 0, 1, 2])}" '
            f'contype="{rng.choice([1, 1, 2, 3])}" conaffinity="{rng.choice([1, 1, 2, 3])}"/>'
        )

    def body(i: int) -> str:
        joint = rng.choice(["", "<joint/>", '<joint type="slide"/>', '<joint type="ball"/>'])
        if parents[i] < 0 and rng.random() < 0.3:
            joint = "<freejoint/>"
        offset = " ".join(f"{value:.3f}" for value in rng.uniform(-0.05, 0.05, 3))
        inner = "".join(geom(f"g{i}_{k}") for k in range(rng.integers(1, 3)))
        inner += "".join(body(j) for j in range(count) if parents[j] == i)
        return f'<body name="b{i}" pos="{offset}">{joint}{inner}</body>'

    bodies = "".join(body(i) for i in range(count) if parents[i] < 0)
    bodies = geom("ground") + bodies
    names = [part.split('"')[0] for part in bodies.split('<geom name="')[1:]]
    contact = ""
    chosen = itertools.combinations(names, 2)
    for a, b in [pair for pair in chosen if rng.random() < 0.1]:
        if a.split("_")[0] == b.split("_")[0]:
            continue
        contact += (
            f'<pair geom1="{a}" geom2="{b}" condim="{rng.choice([1, 3, 4, 6])}" '
            f'friction="0.3 0.3 0.02 0.001 0.001"/>'
        )
    for a, b in itertools.combinations(range(count), 2):
        if rng.random() < 0.1:
            contact += f'<exclude body1="b{a}" body2="b{b}"/>'
    return mjcf(bodies, f"<contact>{contact}</contact>")


class TestContacts:
    @pytest.mark.long
    def test_random_scenes(self) -> None:
        rng = np.random.default_rng(5)
        checked = 0
        for _ in range(60):
            checked += assert_pairs_are_mujocos(random_contact_scene(rng))
        assert checked > 300

    @pytest.mark.short_cases(12)
    @pytest.mark.parametrize("condims", list(itertools.product((1, 3, 4, 6), repeat=2)))
    @pytest.mark.parametrize("priorities", [(0, 0), (1, 0), (0, 3)])
    def test_condim_and_priority(
        self, condims: tuple[int, int], priorities: tuple[int, int]
    ) -> None:
        bodies = "".join(
            f'<body><freejoint/><geom size="1" condim="{condims[i]}" priority="{priorities[i]}" '
            f'friction="0.{i + 2} 0.0{i + 3} 0.00{5 - i}"/></body>'
            for i in range(2)
        )
        assert assert_pairs_are_mujocos(mjcf(bodies)) == 1

    def test_parent_filter_switched_off(self) -> None:
        chain = '<body><joint/><geom size="1"/><body><joint/><geom size="1"/></body></body>'
        assert assert_pairs_are_mujocos(mjcf(chain)) == 0
        option = '<option><flag filterparent="disable"/></option>'
        assert assert_pairs_are_mujocos(mjcf(chain, option=option)) == 1

    def test_child_of_the_world_touches_it(self) -> None:
        scene = '<geom size="1"/><body><joint/><geom size="1"/></body>'
        assert assert_pairs_are_mujocos(mjcf(scene)) == 1

    def test_welded_bodies_count_as_one(self) -> None:
        """grandparent - parent (welded to it) - child: the child's parent is the grandparent."""
        chain = (
            '<body><joint/><geom size="1"/><body><geom size="1"/>'
            '<body><joint/><geom size="1"/></body></body></body>'
        )
        assert assert_pairs_are_mujocos(mjcf(chain)) == 0

    def test_fixed_things_never_touch(self) -> None:
        scene = '<geom size="1"/><body><geom size="1"/></body><body><geom size="1"/></body>'
        assert assert_pairs_are_mujocos(mjcf(scene)) == 0

    def test_override(self) -> None:
        bodies = (
            '<body><freejoint/><geom size="1"/></body><body><freejoint/><geom size="1"/></body>'
        )
        option = (
            '<option o_margin="0.3" o_friction="0.2 0.2 0.03 0.004 0.004">'
            '<flag override="enable"/></option>'
        )
        assert assert_pairs_are_mujocos(mjcf(bodies, option=option)) == 1
        arrays = model_arrays(load_description(mjcf(bodies, option=option)))
        assert arrays["pair_margin"].tolist() == [0.3]

    def test_contacts_switched_off(self) -> None:
        bodies = '<body><freejoint/><geom size="1"/></body><geom size="1"/>'
        source = mjcf(bodies, option='<option><flag contact="disable"/></option>')
        description = load_description(source)
        assert len(model_arrays(description)["pair_geom"]) == 0
        assert description.ignored == ("contacts: switched off by the file",)

    def test_margins_add_up(self) -> None:
        """MuJoCo's contacts begin where the margins of both geometries meet; so do ours."""
        for gap, expected in ((0.29, 1), (0.31, 0)):
            source = mjcf(
                '<geom size="1" margin="0.1"/>'
                f'<body pos="0 0 {2 + gap}"><freejoint/><geom size="1" margin="0.2"/></body>'
            )
            margin = model_arrays(load_description(source))["pair_margin"][0]
            assert margin == pytest.approx(0.3)
            assert len(mujoco_contacts(source)) == expected == int(gap <= margin)

    def test_explicit_pairs_carry_everything(self) -> None:
        source = mjcf(
            '<body><freejoint/><geom name="a" size="1" contype="0" conaffinity="0"/></body>'
            '<geom name="b" size="1" contype="0" conaffinity="0"/>',
            '<contact><pair geom1="a" geom2="b" condim="6" friction="0.2 0.2 0.03 0.04 0.04" '
            'margin="0.05"/></contact>',
        )
        assert assert_pairs_are_mujocos(source) == 1
        assert model_arrays(load_description(source))["pair_margin"].tolist() == [0.05]

    def test_anisotropic_pairs_are_errors(self) -> None:
        source = mjcf(
            '<body><freejoint/><geom name="a" size="1"/></body><geom name="b" size="1"/>',
            '<contact><pair geom1="a" geom2="b" friction="0.2 0.3 0.03 0.04 0.04"/></contact>',
        )
        with pytest.raises(ValueError, match=r"pair 'b' - 'a'.*two different sliding"):
            load_description(source)
