"""`qdsim.mujoco.linearize` beside central differences of `mj_step` itself, whose solver runs to 1e-14.

Differences are taken with several steps; the best one counts, as long as two of them agree, since a step across a kink or
one lost in rounding says nothing.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from test_wrapping_tendons import FINGER
from test_wrapping_tendons import KINDS as WRAPPING

import qdsim.mujoco

STEPS = (1e-5, 1e-6, 1e-7, 1e-8)
HAS_DISCRETE = hasattr(mujoco.mjtIntegrator, "mjINT_DISCRETE")
INTEGRATORS = ["Euler", "implicitfast", *["discrete"] * HAS_DISCRETE]
INTEGRATOR_NUMBERS = {"Euler": 0, "implicitfast": 3, "discrete": 4}
needs_discrete = pytest.mark.skipif(not HAS_DISCRETE, reason="a MuJoCo without 'discrete'")

SHAPES = """
<mujoco><option timestep="0.005" {option}/><default><geom condim="{dim}" friction="0.8 0.01 0.002"/></default>
<worldbody><geom type="plane" size="3 3 1" euler="3 5 0"/>
<body pos="0 0 0.09"><freejoint/><geom type="box" size="0.1 0.15 0.1"/></body>
<body pos="0.6 0 0.035"><freejoint/><geom type="sphere" size="0.1"/></body>
<body pos="-0.7 0 0.15"><freejoint/><geom type="capsule" size="0.1 0.2" euler="90 10 0"/></body>
<body pos="0.6 0.05 0.23"><freejoint/><geom type="sphere" size="0.1"/></body>
<body pos="0 0.6 0.11"><freejoint/><geom type="ellipsoid" size="0.1 0.2 0.1"/></body>
</worldbody></mujoco>"""

MECHANISM = """
<mujoco><option timestep="0.005" {option}/><worldbody>
<body name="a" pos="0 0 1" gravcomp="0.4">
 <joint name="j1" axis="0 1 0" limited="true" range="-10 10" damping="0.2" frictionloss="0.5"/>
 <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.03"/><site name="s" pos="0.1 0 0.05" euler="20 30 0"/>
 <body name="b" pos="0.3 0 0"><joint name="j2" axis="0 0 1" frictionloss="0.1" actuatorfrcrange="-0.01 0.01"/>
  <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.03"/>
  <body name="c" pos="0.3 0 0">
   <joint name="j3" type="ball" limited="true" range="0 20" stiffness="2" damping="0.3"/>
   <geom type="capsule" fromto="0 0 0 0.3 0 0.1" size="0.03"/></body></body></body>
<body name="d" pos="1 0 1"><joint type="free" stiffness="3" damping="0.1"/>
 <geom type="box" size="0.1 0.1 0.1" pos="0.1 0 0" contype="0" conaffinity="0"/></body>
<body name="e" pos="1 1 1"><freejoint/><geom type="box" size="0.1 0.1 0.1" contype="0" conaffinity="0"/></body>
<body pos="0 2 0"><joint name="s1" type="slide" axis="0 0 1" stiffness="4"/><geom size="0.1"/></body>
<body pos="0 3 0"><joint name="s2" type="slide" axis="0 0 1" armature="0.3"/><geom size="0.1"/></body>
</worldbody>
<tendon><fixed name="t" limited="true" range="-0.1 0.1" stiffness="5" damping="0.3" frictionloss="0.2">
 <joint joint="s1" coef="1"/><joint joint="s2" coef="-0.7"/></fixed>
 <fixed name="t2" armature="0.2"><joint joint="j1" coef="1"/><joint joint="s1" coef="0.7"/></fixed></tendon>
<equality>{equality}</equality>
<actuator><position joint="j1" kp="20" kv="2" gear="1.5"/><velocity joint="s1" kv="3"/>
<motor joint="j3" gear="1 0.5 0.2"/><motor site="s" gear="1 0.2 0.3 0.1 0.2 0.3"/>
<general joint="s2" dyntype="integrator" gaintype="affine" gainprm="3 1 0.5" biastype="affine" biasprm="1 -2 -0.3"/>
<general tendon="t" dyntype="filter" dynprm="0.03" gainprm="4" biastype="affine" biasprm="0 -4 -0.4" actlimited="true"
 actrange="-0.5 0.5"/>
<general joint="j2" dyntype="filterexact" dynprm="0.02" actearly="true" gaintype="affine" gainprm="2 -3 -0.5"/>
<intvelocity joint="j1" kp="3" actrange="-1 1"/>
<motor joint="s1" forcelimited="true" forcerange="-0.05 0.05" ctrllimited="true" ctrlrange="-0.2 0.2"/>
<general joint="j3" gear="1 0.3 0.2" gaintype="affine" gainprm="2 -3 -0.5" biastype="affine" biasprm="0 -5 -0.4"/></actuator>
</mujoco>"""

EQUALITIES = {
    "none": "",
    "joint": '<joint joint1="s1" joint2="s2" polycoef="0.1 0.5 0.3 0.1 0.2"/>',
    "tendon": '<tendon tendon1="t" tendon2="t2" polycoef="0.1 0.5 0.3 0.1 0.2"/>',
    "connect": '<connect body1="c" body2="d" anchor="0.1 0 0.1"/>',
    "weld": '<weld body1="d" body2="e" torquescale="0.7"/><weld body1="e" relpose="1 1 1 0.9 0.1 0.2 0.3"/>',
}


def careful(model: Any) -> None:
    model.opt.tolerance = 1e-14
    model.opt.ls_tolerance = 1e-12
    model.opt.iterations = model.opt.ls_iterations = 100


def differences(model: Any, data: Any, step: float) -> np.ndarray:
    """(2 nv + na, 2 nv + na + nu) A and B side by side, by steps of this length either way."""
    nv, na, nu = model.nv, model.na, model.nu
    twin = mujoco.MjData(model)
    out = np.zeros((2 * nv + na, 2 * nv + na + nu))
    for column in range(out.shape[1]):
        ends = []
        for sign in (1.0, -1.0):
            change = np.zeros(out.shape[1])
            change[column] = sign * step
            mujoco.mj_copyData(twin, model, data)
            q = np.array(data.qpos)
            mujoco.mj_integratePos(model, q, change[:nv], 1.0)
            twin.qpos[:], twin.qvel[:] = q, data.qvel + change[nv : 2 * nv]
            twin.act[:] = data.act + change[2 * nv : 2 * nv + na]
            twin.ctrl[:] = data.ctrl + change[2 * nv + na :]
            mujoco.mj_step(model, twin)
            ends.append((np.array(twin.qpos), np.concatenate([twin.qvel, twin.act])))
        dq = np.zeros(nv)
        mujoco.mj_differentiatePos(model, dq, 2 * step, ends[1][0], ends[0][0])
        out[:, column] = np.concatenate([dq, (ends[0][1] - ends[1][1]) / (2 * step)])
    return out


def check(model: Any, data: Any, contacts: Any = "exact") -> None:
    """Every entry within 1e-6 of the largest one (or of 1) of what differences say."""
    careful(model)
    found = qdsim.mujoco.linearize(model, data, contacts=contacts)
    exact = np.hstack([found.A, found.B])
    tried = [differences(model, data, step) for step in STEPS]
    scale = max(1.0, np.abs(tried[1]).max())
    errors = [np.abs(exact - one).max() / scale for one in tried]
    assert min(errors) < 1e-6, f"errors {errors} at steps {STEPS}"


def random_state(model: Any, seed: int, far: float, fast: float) -> Any:
    rng = np.random.default_rng(seed)
    data = mujoco.MjData(model)
    q = np.array(data.qpos)
    mujoco.mj_integratePos(model, q, far * rng.normal(size=model.nv), 1.0)
    data.qpos[:], data.qvel[:] = q, fast * rng.normal(size=model.nv)
    data.ctrl[:] = 0.3 * rng.normal(size=model.nu)
    data.act[:] = 0.3 * rng.normal(size=model.na)
    data.qfrc_applied[:] = 0.1 * rng.normal(size=model.nv)
    data.xfrc_applied[1:] = 0.1 * rng.normal(size=(model.nbody - 1, 6))
    return data


@pytest.mark.short_cases(2)
@pytest.mark.parametrize(
    ("cone", "dim", "impratio"),
    [(c, d, i) for c in ("elliptic", "pyramidal") for d, i in ((1, 1), (3, 1), (4, 10), (6, 10))],
)
def test_shapes_on_a_plane(cone: str, dim: int, impratio: int) -> None:
    option = f'cone="{cone}" impratio="{impratio}"'
    model = mujoco.MjModel.from_xml_string(SHAPES.format(option=option, dim=dim))
    data = random_state(model, seed=3, far=0.01, fast=0.3)
    check(model, data)
    assert data.ncon >= 3


def test_sparse_jacobians_are_the_same() -> None:
    text = SHAPES.format(option='cone="elliptic" jacobian="{}"', dim=3)
    found = []
    for word in ("dense", "sparse"):
        model = mujoco.MjModel.from_xml_string(text.format(word))
        data = random_state(model, seed=3, far=0.01, fast=0.3)
        found.append(qdsim.mujoco.linearize(model, data))
    np.testing.assert_allclose(found[0].A, found[1].A, atol=1e-7 * np.abs(found[0].A).max())


def test_own_friction_in_two_directions_turns_with_the_frame() -> None:
    text = """<mujoco><option timestep="0.005" cone="elliptic"/><worldbody>
    <geom name="g" type="plane" size="1 1 1"/><body pos="0 0 0.0983"><freejoint/><geom name="b" size="0.1"/></body>
    <body pos="0.05 0.1 0.22"><freejoint/><geom name="c" size="0.05"/></body></worldbody>
    <contact><pair geom1="g" geom2="b" condim="6" friction="0.9 0.3 0.01 0.02 0.001"/>
    <pair geom1="b" geom2="c" condim="6" friction="0.9 0.3 0.01 0.02 0.001"/></contact></mujoco>"""
    model = mujoco.MjModel.from_xml_string(text)
    data = random_state(model, seed=1, far=0.0, fast=0.5)
    data.qpos[7:10] = [0.03, 0.05, 0.225]
    check(model, data)
    assert data.ncon == 2


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("equality", EQUALITIES)
def test_drives_springs_limits_friction_and_equalities(integrator: str, equality: str) -> None:
    text = MECHANISM.format(option=f'integrator="{integrator}"', equality=EQUALITIES[equality])
    model = mujoco.MjModel.from_xml_string(text)
    check(model, random_state(model, seed=5, far=0.2, fast=0.5))


@needs_discrete
@pytest.mark.short_cases(4)
@pytest.mark.parametrize("solref", ["0.02 1", "0.004 0.5", "-2000 -30"])  # the second at its bound
@pytest.mark.parametrize(("cone", "dim"), [("elliptic", 3), ("pyramidal", 4), ("elliptic", 1)])
def test_discrete_weighs_contacts_by_springs_and_dampers(cone: str, dim: int, solref: str) -> None:
    """A spring changes the R of a contact by its share of the metric, which changes with the configuration."""
    text = SHAPES.format(option=f'integrator="discrete" cone="{cone}"', dim=dim)
    text = text.replace("<freejoint/>", '<joint type="free" damping="4" stiffness="30"/>')
    law = f'solref="{solref}" solimp="0.8 0.99 0.02 0.4 3"'
    model = mujoco.MjModel.from_xml_string(text.replace("<geom condim", f"<geom {law} condim"))
    check(model, random_state(model, seed=3, far=0.01, fast=0.3))


@needs_discrete
@pytest.mark.parametrize("equality", EQUALITIES)
def test_discrete_takes_long_steps_of_fast_mechanisms(equality: str) -> None:
    """Springs in the metric and the drift of connects and welds have a large effect."""
    text = MECHANISM.format(option='integrator="discrete"', equality=EQUALITIES[equality])
    text = text.replace('timestep="0.005"', 'timestep="0.02"')
    law = 'solref="0.01 1" solimp="0.7 0.96 0.5"'
    for kind in ("connect", "weld"):
        text = text.replace(f"<{kind} ", f"<{kind} {law} ")
    model = mujoco.MjModel.from_xml_string(text)
    check(model, random_state(model, seed=6, far=0.2, fast=2.0))


def test_springs_of_tendons_pull_at_their_rest_length() -> None:
    model = mujoco.MjModel.from_xml_string(MECHANISM.format(option="", equality=""))
    data = random_state(model, seed=5, far=0.0, fast=0.1)
    mujoco.mj_forward(model, data)
    assert data.ten_length[0] == model.tendon_lengthspring[0, 0] == model.tendon_lengthspring[0, 1]
    check(model, data)


@pytest.mark.parametrize("of_a_group", [False, True])
def test_actuators_that_are_off_keep_their_activations(of_a_group: bool) -> None:
    model = mujoco.MjModel.from_xml_string(MECHANISM.format(option="", equality=""))
    if of_a_group:
        model.opt.disableactuator = 1
    else:
        model.opt.disableflags = mujoco.mjtDisableBit.mjDSBL_ACTUATION
    data = random_state(model, seed=5, far=0.2, fast=0.5)
    data.act[1] = 1.0  # beyond its range
    check(model, data)


@pytest.mark.parametrize("integrator", INTEGRATORS[1:])
def test_bodies_alone_on_a_free_joint_spin_implicitly(integrator: str) -> None:
    """With "discrete", a body that is driven, or touches another one, does not."""
    text = """<mujoco><option timestep="0.01"/><worldbody><body><joint type="free" damping="0.3"/>
    <geom type="box" size="0.1 0.2 0.05" pos="0.1 0.05 0.02"/><body pos="0.3 0 0"><geom size="0.1"/></body></body>
    <body pos="2 0 0"><freejoint/><geom type="box" size="0.1 0.2 0.05"/>
    <body pos="0.3 0 0"><joint/><geom size="0.1"/></body></body>
    <body pos="9 0 0"><freejoint name="driven"/><geom type="box" size="0.1 0.2 0.05"/></body>
    <body pos="9 9 0"><freejoint/><geom type="box" size="0.1 0.2 0.05"/></body>
    <body pos="9 9 0.14"><freejoint/><geom size="0.1"/></body></worldbody><actuator>
    <general joint="driven" gear="0 0 1 1 0.5 0" biastype="affine" biasprm="0 -2 -1"/></actuator></mujoco>"""
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.integrator = INTEGRATOR_NUMBERS[integrator]
    data = random_state(model, seed=7, far=0.01, fast=3.0)
    mujoco.mj_forward(model, data)
    assert data.ncon > 0
    check(model, data)


@pytest.mark.parametrize("integrator", ["Euler", *INTEGRATORS[2:]])
def test_the_allegro_hand_with_a_ball(integrator: str) -> None:
    path = files("qdsim.systems") / "allegro_sphere_hardware.xml"
    model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.integrator = INTEGRATOR_NUMBERS[integrator]
    data = mujoco.MjData(model)
    data.ctrl[:] = data.qpos[model.jnt_qposadr[model.actuator_trnid[:, 0]]] + 0.05
    for _ in range(100):
        mujoco.mj_step(model, data)
    check(model, data)
    assert data.ncon > 0


def test_the_humanoid() -> None:
    gymnasium = pytest.importorskip("gymnasium")
    path = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets" / "humanoid.xml"
    model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    data = mujoco.MjData(model)
    for _ in range(300):
        data.ctrl[:] = 0.1
        mujoco.mj_step(model, data)
    check(model, data)
    assert data.ncon > 0


BLOCKS = """<mujoco><option timestep="0.002" cone="elliptic"/>
<asset><mesh name="rock" vertex="0 0 0 0.2 0 0.02 0 0.2 0.01 0.05 0.05 0.2 0.15 0.15 0.1"/></asset><worldbody>
<geom name="floor" type="box" size="1 1 0.1" pos="0 0 -0.1"/>
<body pos="0 0 0.06"><freejoint/><geom name="rock" type="mesh" mesh="rock"/></body></worldbody></mujoco>"""


def test_contacts_without_closed_form_are_named_or_differenced() -> None:
    model = mujoco.MjModel.from_xml_string(BLOCKS)
    data = mujoco.MjData(model)
    while data.ncon == 0:
        mujoco.mj_step(model, data)
    try:
        qdsim.mujoco.linearize(model, data)
    except ValueError as error:
        assert "'floor' and 'rock'" in str(error)
    check(model, data, contacts="differences")


def test_a_contact_by_differences_is_that_of_closed_forms() -> None:
    model = mujoco.MjModel.from_xml_string(SHAPES.format(option="", dim=3))
    data = random_state(model, seed=3, far=0.0, fast=0.3)
    data.qpos[23] = 0.2
    mujoco.mj_forward(model, data)
    spheres = [i for i, one in enumerate(data.contact) if set(one.geom) == {2, 4}]
    assert spheres
    found = qdsim.mujoco.contact_change(model, data, spheres[0])
    normal, step = data.contact[spheres[0]].frame[:3], 0.2 + data.contact[spheres[0]].dist
    np.testing.assert_allclose(found[0, 3:], normal, atol=1e-8)
    across = (np.eye(3) - np.outer(normal, normal)) / step
    np.testing.assert_allclose(found[4:, 3:], across, atol=1e-7)


def test_shallow_contacts_are_differenced_to_one_side() -> None:
    text = """<mujoco><option timestep="0.002"/><worldbody><geom type="box" size="1 1 0.1" pos="0 0 -0.1"/>
    <body pos="0 0 0.0399998"><freejoint/><geom type="ellipsoid" size="0.1 0.07 0.04"/></body></worldbody></mujoco>"""
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    assert data.ncon == 1 and -1e-6 < data.contact[0].dist < 0.0
    found = qdsim.mujoco.contact_change(model, data, 0)
    up = (
        1.0 if model.geom_type[data.contact[0].geom[1]] == mujoco.mjtGeom.mjGEOM_ELLIPSOID else -1.0
    )
    np.testing.assert_allclose(found[0], [0, 0, 0, 0, 0, up], atol=0.02)  # MuJoCo iterates to 1e-6
    assert qdsim.mujoco.linearize(model, data, contacts="differences").differenced == 1


def test_tangents_that_jump_are_named() -> None:
    text = """<mujoco><option cone="pyramidal"/><worldbody><geom name="floor" type="plane" size="1 1 1"/>
    <body pos="0 0 0.299"><freejoint/><geom name="post" type="capsule" size="0.1 0.2"/></body></worldbody></mujoco>"""
    model = mujoco.MjModel.from_xml_string(text)
    with pytest.raises(ValueError, match=r"'floor' and 'post' \(the tangents of the contact jump"):
        qdsim.mujoco.linearize(model, mujoco.MjData(model), contacts="differences")


def test_the_state_stays_and_tolerance_does_not_matter() -> None:
    model = mujoco.MjModel.from_xml_string(SHAPES.format(option='cone="elliptic"', dim=3))
    data = random_state(model, seed=3, far=0.01, fast=0.3)
    before = [np.array(x) for x in (data.qpos, data.qvel, data.ctrl, data.qacc_warmstart)]
    model.opt.tolerance = 1e-3
    rough = qdsim.mujoco.linearize(model, data)
    careful(model)
    fine = qdsim.mujoco.linearize(model, data)
    np.testing.assert_allclose(rough.A, fine.A, atol=1e-8 * np.abs(fine.A).max())
    after = (data.qpos, data.qvel, data.ctrl, data.qacc_warmstart)
    for old, new in zip(before, after, strict=True):
        np.testing.assert_array_equal(old, new)
    assert fine.C is None and fine.D is None and data.time == 0.0


def test_one_data_serves_state_after_state_and_model_after_model() -> None:
    text = SHAPES.format(option='cone="elliptic"', dim=3)
    models = [mujoco.MjModel.from_xml_string(text) for _ in range(2)]
    models[1].opt.timestep = 0.002
    shared = mujoco.MjData(models[0])
    for model, height in ((models[0], 1.0), (models[0], 0.0), (models[1], 1.0), (models[1], 0.0)):
        fresh = mujoco.MjData(model)
        for data in (shared, fresh):
            mujoco.mj_resetData(model, data)
            data.qpos[2::7] += height
            found = qdsim.mujoco.linearize(model, data)
            assert (data.ncon == 0) == (height > 0.5)
            if data is shared:
                first = found
        np.testing.assert_array_equal(found.A, first.A)


ALL_AT_ONCE = {
    "flexor": 'stiffness="30" springlength="1.2" damping="0.8" limited="true" range="0.2 1.53" frictionloss="0.2"',
    "guy": 'stiffness="20" springlength="0.2 0.6" frictionloss="0.3" limited="true" range="0.775 2"',
    "equality": WRAPPING["equalities"]["equality"],
    "actuators": WRAPPING["actuators"]["actuators"],
}
TENDONS = {**WRAPPING, "all": ALL_AT_ONCE}


@pytest.mark.short_cases(2)
@pytest.mark.parametrize("integrator", ["Euler", *INTEGRATORS[2:]])
@pytest.mark.parametrize("jacobian", ["dense", "sparse"])
@pytest.mark.parametrize("kind", list(TENDONS))
def test_spatial_tendons(kind: str, jacobian: str, integrator: str) -> None:
    """Around spheres and cylinders, from inside, over pulleys, with all that acts on tendons."""
    fields = {"flexor": "", "guy": "", "equality": "", "actuators": "", **TENDONS[kind]}
    text = FINGER.format(**fields).replace(
        "<option ", f'<option timestep="0.005" integrator="{integrator}" jacobian="{jacobian}" '
    )
    model = mujoco.MjModel.from_xml_string(text)
    assert qdsim.mujoco.refusals(model) == []
    rows = 0
    for seed in range(3):
        data = random_state(model, seed, far=0.05, fast=0.5)
        check(model, data)
        rows += sum(data.efc_type == mujoco.mjtConstraint.mjCNSTR_LIMIT_TENDON)
    assert rows > 0 or kind not in ("limits", "all")


def test_refusals_of_spatial_tendons() -> None:
    text = FINGER.format(**{**ALL_AT_ONCE, "equality": "", "actuators": ""})
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    qdsim.mujoco.linearize(model, data)
    model.opt.integrator = 3
    with pytest.raises(ValueError, match="tendon 'flexor': damping of a spatial tendon"):
        qdsim.mujoco.linearize(model, data)
    model.tendon_damping[:] = 0.0
    check(model, random_state(model, 0, far=0.05, fast=0.5))
    model = mujoco.MjModel.from_xml_string(text.replace('divisor="2.5"', 'divisor="0"'))
    (found,) = qdsim.mujoco.refusals(model)
    assert found == "tendon 'flexor': a pulley without a positive divisor"
    pulled = FINGER.format(**{**ALL_AT_ONCE, "equality": ""})
    limited = pulled.replace('name="j1"', 'name="j1" actuatorfrcrange="-1 1"')
    model = mujoco.MjModel.from_xml_string(limited)
    assert any("beside limits of joints" in item for item in qdsim.mujoco.refusals(model))


@needs_discrete
def test_the_dual_solver_is_refused_under_discrete() -> None:
    text = SHAPES.format(option='integrator="discrete" solver="PGS"', dim=3)
    model = mujoco.MjModel.from_xml_string(text)
    with pytest.raises(ValueError, match="solver 'PGS' under the integrator 'discrete'"):
        qdsim.mujoco.linearize(model, mujoco.MjData(model))
    model.opt.solver = mujoco.mjtSolver.mjSOL_CG
    assert qdsim.mujoco.refusals(model) == []


def test_refusals_are_named() -> None:
    text = """<mujoco><option integrator="RK4" density="1.2" noslip_iterations="3"/><worldbody><site name="w"/>
    <body><joint name="j"/><geom size="0.1"/><site name="s" pos="0 0 1"/></body></worldbody>
    <tendon><spatial name="rope" stiffness="3" armature="0.1"><site site="w"/><site site="s"/></spatial></tendon>
    <actuator><muscle name="arm" joint="j" lengthrange="0 1"/></actuator></mujoco>"""
    model = mujoco.MjModel.from_xml_string(text)
    words = ("RK4", "noslip", "density", "tendon 'rope'", "actuator 'arm'")
    found = "; ".join(qdsim.mujoco.refusals(model))
    assert all(word in found for word in words)
    with pytest.raises(ValueError, match="model: no derivatives of integrator 'RK4'"):
        qdsim.mujoco.linearize(model, mujoco.MjData(model))


def test_wrong_arguments() -> None:
    model = mujoco.MjModel.from_xml_string(SHAPES.format(option="", dim=3))
    other = mujoco.MjModel.from_xml_string(MECHANISM.format(option="", equality=""))
    with pytest.raises(TypeError, match=r"model: expected a mujoco\.MjModel, got str"):
        qdsim.mujoco.linearize("model", mujoco.MjData(model))
    with pytest.raises(TypeError, match=r"data: expected a mujoco\.MjData, got NoneType"):
        qdsim.mujoco.linearize(model, None)
    with pytest.raises(ValueError, match="data"):
        qdsim.mujoco.linearize(model, mujoco.MjData(other))
    with pytest.raises(ValueError, match="contacts"):
        qdsim.mujoco.linearize(model, mujoco.MjData(model), contacts="none")  # type: ignore[arg-type]
