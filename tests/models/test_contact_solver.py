"""MuJoCo's solver parameters of contacts, kept in descriptions and models, against MuJoCo."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any

import mujoco
import numpy as np
import numpy.typing as npt
import pytest

import qdsim
from qdsim.description import Body, ContactSolver, Description, Geom, Pair, SceneBuilder
from qdsim.description.arrays import model_arrays
from qdsim.description.pairs import candidate_pairs

BALLS = """<mujoco><option cone="{cone}" impratio="{impratio}" timestep="{timestep}">
<flag refsafe="{refsafe}"/></option><worldbody>
<geom name="floor" type="plane" size="1 1 1" {floor}/>
<body name="ball" pos="0 0 0.0995"><freejoint/><geom name="ball" size="0.1" {ball}/></body>
</worldbody><contact>{pair}</contact></mujoco>"""


def balls(
    floor: str = "",
    ball: str = "",
    pair: str = "",
    cone: str = "elliptic",
    impratio: float = 1.0,
    timestep: float = 0.002,
    refsafe: str = "enable",
) -> str:
    return BALLS.format(
        floor=floor,
        ball=ball,
        pair=pair,
        cone=cone,
        impratio=impratio,
        timestep=timestep,
        refsafe=refsafe,
    )


CASES = {
    "defaults": {},
    "mixed": {
        "floor": 'solref="0.05 0.7" solmix="3"',
        "ball": 'solimp="0.5 0.8 0.01 0.3 3" solmix="0.5"',
    },
    "no weight": {"floor": 'solref="0.05 0.7" solmix="0"', "ball": 'solref="0.03 1.2"'},
    "no weights": {"floor": 'solref="0.05 0.7" solmix="0"', "ball": 'solmix="0"'},
    "priority": {"floor": 'solref="0.05 0.7" priority="1"', "ball": 'solimp="0.2 0.3 0.1 0.5 1"'},
    "direct": {"floor": 'solref="-1000 -20"', "ball": 'solref="0.03 1"'},
    "both direct": {"floor": 'solref="-1000 -20"', "ball": 'solref="-500 -50"'},
    "refsafe": {"ball": 'solref="0.002 1"', "floor": 'solref="0.004 1"', "timestep": 0.005},
    "not safe": {
        "ball": 'solref="0.002 1"',
        "floor": 'solref="0.004 1"',
        "timestep": 0.005,
        "refsafe": "disable",
    },
    "margins": {"ball": 'margin="0.02"', "floor": 'margin="0.01"'},
    "pair": {
        "pair": '<pair geom1="ball" geom2="floor" condim="4" friction="0.7 0.7 0.02" solref="0.04 0.9" '
        'solreffriction="0.1 1" solimp="0.6 0.8 0.002" margin="0.01"/>'
    },
}


def test_pair_has_the_numbers_of_mujocos_contact() -> None:
    for name, case in CASES.items():
        source = balls(**case)  # type: ignore[arg-type]
        model = mujoco.MjModel.from_xml_string(source)
        data = mujoco.MjData(model)
        mujoco.mj_forward(model, data)
        contact = data.contact[0]
        description = qdsim.load(source).description
        pairs = candidate_pairs(description)
        assert np.allclose(pairs.solref[0], contact.solref, rtol=1e-14), name
        assert np.allclose(pairs.solimp[0], contact.solimp, rtol=1e-14), name
        assert np.allclose(pairs.solreffriction[0], contact.solreffriction, rtol=1e-14), name
        assert np.isclose(pairs.margin[0], contact.includemargin), name
        arrays = model_arrays(description)
        K, B, _, _ = data.efc_KBIP[0]
        across = data.efc_KBIP[1][1]
        times = contact.solref[0] > 0.0 and "refsafe" not in case
        expected = (K, B, across, float(times))
        assert np.allclose(arrays["pair_reference"][0], expected, rtol=1e-12), name
        assert arrays["pair_edges"][0] == 0


def test_options_of_the_file_are_kept() -> None:
    for cone in ("pyramidal", "elliptic"):
        solver = qdsim.load(balls(cone=cone, impratio=7.0, timestep=0.004)).description
        assert solver.contact_solver == ContactSolver(cone, 7.0, 0.004)  # type: ignore[arg-type]
        arrays = model_arrays(solver)
        assert arrays["pair_impratio"].tolist() == [7.0]
        assert arrays["pair_edges"].tolist() == [4 if cone == "pyramidal" else 0]
    assert qdsim.load(balls(refsafe="disable")).description.contact_solver.timestep is None


def test_iterations_without_slip_are_told() -> None:
    text = balls().replace('timestep="0.002"', 'timestep="0.002" noslip_iterations="2"')
    (told,) = qdsim.load(text).ignored_by_dynamics
    assert told.startswith("option noslip_iterations")


def test_overridden_contacts() -> None:
    source = balls(floor='solref="0.05 0.7"').replace("<flag ", '<flag override="enable" ')
    source = source.replace(
        "<option ", '<option o_solref="0.03 0.8" o_solimp="0.7 0.8 0.01 0.5 2" '
    )
    pairs = candidate_pairs(qdsim.load(source).description)
    assert pairs.solref.tolist() == [[0.03, 0.8]]
    assert pairs.solimp.tolist() == [[0.7, 0.8, 0.01, 0.5, 2.0]]


def invweight_without_mujoco(model: qdsim.Model) -> npt.NDArray[np.float64]:
    """Of the same bodies, without the numbers that the loader took from MuJoCo."""
    bodies = tuple(dataclasses.replace(body, invweight=None) for body in model.description.bodies)
    description = dataclasses.replace(model.description, bodies=bodies)
    return qdsim.build(description).body_invweight


def test_inverse_weights_are_mujocos() -> None:
    """Loaded ones to the bit, computed ones to rounding, of a branched arm with armature and a ball joint whose home
    is not the reference."""
    source = """<mujoco><worldbody>
    <body name="a" pos="0.1 0 0.2" quat="0.8 0.6 0 0"><joint armature="0.1" ref="0.3"/><geom size="0.1"/>
      <body name="b" pos="0.3 0 0"><joint type="ball"/><geom type="capsule" size="0.05 0.2" pos="0.1 0 0.1"/>
        <body name="c" pos="0 0.2 0"><geom type="box" size="0.1 0.2 0.3"/></body></body>
      <body name="d" pos="-0.3 0 0"><joint type="slide" axis="1 1 0"/><geom size="0.07"/></body></body>
    <body name="e"><freejoint/><geom type="box" size="0.1 0.2 0.3"/></body>
    <body name="f"><geom size="0.1"/></body>
    </worldbody><keyframe><key name="home" qpos="1 0.6 0.8 0 0 0.1 0 0 0 1 0 0 0"/></keyframe></mujoco>"""
    compiled = mujoco.MjModel.from_xml_string(source)
    model = qdsim.load(source)
    expected = compiled.body_invweight0[:, 0]
    assert model.body_invweight.tolist() == expected.tolist()
    assert np.allclose(invweight_without_mujoco(model), expected, rtol=1e-12, atol=1e-15)
    assert expected[-1] == 0.0 and np.all(expected[2:-1] > 0.0)


def test_files_pickles_and_copies_carry_them_along() -> None:
    solver = ContactSolver("elliptic", 5.0, 0.001)
    scene = SceneBuilder(contact_solver=solver)
    scene.geom("world", "plane", name="floor", solref=(0.05, 0.7), solmix=2.0)
    scene.body("ball", pos=(0, 0, 0.1), mass=1.0)
    scene.joint("ball", "free")
    scene.geom("ball", "sphere", 0.1, name="ball", solimp=(0.5, 0.8, 0.01))
    scene.body("other", pos=(0, 1, 0.1), mass=1.0)
    scene.joint("other", "free")
    scene.geom("other", "sphere", 0.1, name="other")
    scene.pair("ball", "other", solref=(-100.0, -3.0), solreffriction=(0.2, 1.0))
    description = scene.build()
    assert description.contact_solver == solver
    written = qdsim.load(description.to_mjcf())
    assert written.description.contact_solver == solver
    for other in (
        written,
        pickle.loads(pickle.dumps(written)),
        written.with_parameters(pair_friction=0.5 * written.parameters.pair_friction),
    ):
        made, again = candidate_pairs(description), candidate_pairs(other.description)
        for field in ("solref", "solreffriction", "solimp"):
            assert np.array_equal(getattr(made, field), getattr(again, field)), field
        assert np.allclose(other.body_invweight, qdsim.build(description).body_invweight)


def test_urdf_pairs_that_are_written_out_keep_them() -> None:
    scene = SceneBuilder(friction_combination="harmonic")
    scene.geom("world", "plane", name="floor", friction=0.3, solref=(0.05, 0.7))
    scene.body("ball", pos=(0, 0, 0.1), mass=1.0)
    scene.joint("ball", "free")
    scene.geom("ball", "sphere", 0.1, friction=0.6)
    made = candidate_pairs(scene.build())
    again = candidate_pairs(qdsim.load(scene.build().to_mjcf()).description)
    assert np.allclose(made.solref, again.solref, rtol=1e-15)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Geom("g", size=1.0, solref=(0.02, -1.0)),
            "geom 'g': solref must be two positive numbers",
        ),
        (lambda: Geom("g", size=1.0, solref=(0.02,)), "geom 'g': solref must hold 2 numbers"),
        (
            lambda: Geom("g", size=1.0, solimp=()),
            "geom 'g': solimp must hold 1 to 5 numbers, got 0",
        ),
        (lambda: Geom("g", size=1.0, solmix=-1.0), "geom 'g': solmix must not be negative"),
        (lambda: Pair("a", "b", solimp=(np.nan,)), "pair 'a' - 'b': solimp"),
        (lambda: Body("b", invweight=-1.0), "body 'b': invweight must not be negative"),
        (lambda: ContactSolver("round"), "cone must be 'pyramidal' or 'elliptic', got 'round'"),  # type: ignore[arg-type]
        (
            lambda: ContactSolver(springs="soon"),
            "springs must be 'integrator' or 'late', got 'soon'",
        ),  # type: ignore[arg-type]
        (lambda: ContactSolver(impratio=0.0), "contact_solver: impratio must be positive"),
    ],
)
def test_bad_numbers(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        make()


def test_bad_solver() -> None:
    with pytest.raises(TypeError, match="contact_solver must be a ContactSolver, got str"):
        Description(bodies=(Body("world"),), contact_solver="elliptic")  # type: ignore[arg-type]
