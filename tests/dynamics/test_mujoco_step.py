"""Steps with contacts="mujoco" against MuJoCo's own: `mj_step`, and the equation of motion that it solves."""

from __future__ import annotations

import dataclasses
from typing import Any

import mujoco
import numpy as np
import numpy.typing as npt
import pytest
from mass_matrix import mass_matrix

import qdsim
from qdsim import DynamicOptions, step_dynamic, systems
from qdsim.velocities import from_mujoco_velocity, to_mujoco_velocity

Vector = npt.NDArray[np.float64]

EULER, IMPLICITFAST, DISCRETE = 0, 3, 4
INTEGRATORS = [EULER, DISCRETE][: 1 + hasattr(mujoco.mjtIntegrator, "mjINT_DISCRETE")]
needs_discrete = pytest.mark.skipif(len(INTEGRATORS) < 2, reason="a MuJoCo without 'discrete'")

FALLING = """<mujoco><option cone="{cone}" impratio="{impratio}"/><worldbody>
<geom type="plane" size="1 1 1" condim="{condim}" {geom}/>
<body pos="0 0 {z}"><freejoint/>
<geom type="{shape}" mass="0.8" condim="{condim}" friction="0.8 0.02 0.003" {geom}/></body></worldbody></mujoco>"""
SHAPES = {
    "sphere": ('sphere" size="0.05', 0.049),
    "capsule": ('capsule" size="0.03 0.06', 0.029),
    "box": ('box" size="0.04 0.05 0.03', 0.029),
}

LIMITS = """<mujoco><option cone="elliptic"/><worldbody>
<body pos="0 0 1"><joint name="a" axis="0 1 0" range="-0.2 0.3" limited="true" frictionloss="0.3" {law}/>
<geom type="capsule" size="0.03" fromto="0 0 0 0.3 0 0" mass="0.5"/>
<body pos="0.3 0 0"><joint name="b" type="slide" axis="0 0 1" range="-0.01 0.02" limited="true" {law}/>
<geom size="0.05" mass="0.3"/>
<body pos="0 0.2 0"><joint name="c" axis="1 0 0" armature="0.01" frictionloss="0.05" damping="{damping}"/>
<geom size="0.04" pos="0 0.1 0" mass="0.2"/></body></body></body></worldbody>
<actuator>{actuator}</actuator></mujoco>"""
LAWS = {
    "defaults": "",
    "margins": 'margin="0.05"',
    "soft and slow": 'solreflimit="0.05 0.7" solimplimit="0.5 0.8 0.05" solreffriction="0.04 1" solimpfriction="0.4 0.9"',
    "direct": 'solreflimit="-3000 -40" solreffriction="-100 -30"',
    "shorter than a step allows": 'solreflimit="0.001 1" solreffriction="0.001 1"',
}


def compiled(source: str, integrator: int, **changes: Any) -> mujoco.MjModel:
    model = mujoco.MjModel.from_xml_string(source)
    model.opt.integrator = integrator
    model.opt.tolerance, model.opt.iterations, model.opt.ls_iterations = 1e-15, 300, 200
    model.opt.ls_tolerance = 1e-12
    for name, value in changes.items():
        setattr(model.opt, name, value)
    return model


def perturb(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    rng: np.random.Generator,
    spread: float,
    speed: float,
) -> None:
    """A random state near the first keyframe, or the reference."""
    mujoco.mj_resetData(model, data)
    if model.nkey:
        data.qpos[:] = model.key_qpos[0]
    mujoco.mj_integratePos(model, data.qpos, spread * rng.normal(size=model.nv), 1.0)
    data.qvel[:] = speed * rng.normal(size=model.nv)
    data.ctrl[:] = 0.3 * rng.normal(size=model.nu)


def same_points(data: mujoco.MjData, step: qdsim.DynamicStep) -> bool:
    """Whether both have the same contacts, at the same points."""
    if len(step.contacts) != data.ncon:
        return False
    theirs = np.array([[*contact.pos, contact.dist] for contact in data.contact]).reshape(-1, 4)
    ours = np.column_stack((step.contacts["pos"], step.contacts["dist"]))
    return all(np.abs(theirs - row).max(axis=1).min() < 1e-9 for row in ours)


def residual(model: mujoco.MjModel, data: mujoco.MjData, acceleration: Vector) -> float:
    """Of M a - qfrc_smooth - J' f(J a - aref), beside the largest force, where data is at the state."""
    J = np.zeros((data.nefc, model.nv))
    if mujoco.mj_isSparse(model):
        rows = data.efc_J_rownnz, data.efc_J_rowadr, data.efc_J_colind
        mujoco.mju_sparse2dense(J, data.efc_J, *rows)
    else:
        J = data.efc_J.reshape(J.shape)
    mujoco.mj_constraintUpdate(model, data, J @ acceleration - data.efc_aref, None, 0)
    force = J.T @ data.efc_force
    error = mass_matrix(model, data) @ acceleration - data.qfrc_smooth - force
    return float(np.abs(error).max() / max(1.0, np.abs(force).max()))


def compare(mj: mujoco.MjModel, seed: int, count: int, spread: float, speed: float) -> int:
    """One step each from random states; how many had contacts or other rows at the same points.

    MuJoCo's solver stops at about 1e-9 of the forces now and then: under Euler our answer is held against the equation
    that it solves, before dampers of joints act again.
    """
    model, data, rng = qdsim.load(mj), mujoco.MjData(mj), np.random.default_rng(seed)
    options = DynamicOptions(h=mj.opt.timestep, contacts="mujoco")
    compared = 0
    for _ in range(count):
        perturb(mj, data, rng, spread, speed)
        mujoco.mj_forward(mj, data)
        q, qvel = data.qpos.copy(), data.qvel.copy()
        step = step_dynamic(model, q, from_mujoco_velocity(model, q, qvel), data.ctrl, options)
        if not same_points(data, step) or data.nefc == 0:
            continue
        compared += 1
        found = to_mujoco_velocity(model, step.q_next, step.v_next)
        size = max(1.0, np.abs(qvel).max())
        if mj.opt.integrator == EULER:
            rounding = 1e-14 * data.efc_D.max() * np.abs(data.efc_aref).max()
            gained = (found - qvel) / options.h
            damped = options.h * np.linalg.solve(
                mass_matrix(mj, data), mj.dof_damping.ravel() * gained
            )
            assert residual(mj, data, gained + damped) < 1e-9 + rounding
        mujoco.mj_step(mj, data)
        np.testing.assert_allclose(found, data.qvel, atol=1e-8 * size)
        np.testing.assert_allclose(step.q_next, data.qpos, atol=1e-8 * size * options.h)
    return compared


@pytest.mark.short_cases(2)
@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("cone", ["elliptic", "pyramidal"])
@pytest.mark.parametrize("shape", SHAPES)
def test_shapes_on_a_plane(shape: str, cone: str, integrator: int) -> None:
    """Every condim, impratio 1 and 10. Edges of a pyramid between plane and capsule lie along the capsule."""
    size, z = SHAPES[shape]
    compared = 0
    for condim in (1, 3, 4, 6):
        for impratio in (1, 10):
            source = FALLING.format(
                shape=size, z=z, cone=cone, condim=condim, impratio=impratio, geom=""
            )
            compared += compare(compiled(source, integrator), condim, 8, 0.003, 1.0)
    assert compared >= 6


@pytest.mark.short_cases(9)
@pytest.mark.parametrize("integrator", [*INTEGRATORS, IMPLICITFAST])
@pytest.mark.parametrize(
    "geom",
    [
        'margin="0.01"',
        'solref="0.05 0.6" solimp="0.4 0.8 0.02 0.3 3"',
        'solref="-3000 -60"',
        'solref="-400000 -60"',
        'solref="0.001 1"',
        'friction="0 0 0"',
    ],
)
@pytest.mark.parametrize("cone", ["elliptic", "pyramidal"])
def test_solver_parameters(cone: str, geom: str, integrator: int) -> None:
    size, z = SHAPES[
        "sphere" if integrator == IMPLICITFAST else "box"
    ]  # implicitfast: implicit spins
    source = FALLING.format(shape=size, z=z, cone=cone, condim=4, impratio=2, geom=geom)
    if "friction" in geom:
        source = source.replace('friction="0.8 0.02 0.003" ', "")
    assert compare(compiled(source, integrator), 3, 12, 0.003, 1.0) >= 4


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("cone", ["elliptic", "pyramidal"])
def test_a_contact_that_never_parts_holds_by_friction(cone: str, integrator: int) -> None:
    """A turntable in the floor, which steps with rigid contacts leave alone."""
    source = f"""<mujoco><option cone="{cone}"/><worldbody><geom type="plane" size="1 1 1"/>
    <body pos="0 0 0.02"><joint axis="0 0 1"/><geom type="capsule" fromto="0.01 0 0 0.2 0 0" size="0.03"/></body>
    </worldbody></mujoco>"""
    assert compare(compiled(source, integrator), 11, 10, 0.3, 1.0) == 10


def test_friction_across_has_its_own_damping() -> None:
    source = FALLING.format(
        shape='sphere" name="s" size="0.05', z=0.049, cone="elliptic", condim=3, impratio=1, geom=""
    ).replace('type="plane"', 'type="plane" name="p"')
    pair = '<contact><pair geom1="p" geom2="s" condim="3" solreffriction="0.05 1"/></contact>'
    source = source.replace("</mujoco>", f"{pair}</mujoco>")
    for integrator in INTEGRATORS:
        assert compare(compiled(source, integrator), 4, 15, 0.003, 1.0) >= 5


@pytest.mark.short_cases(2)
@needs_discrete
@pytest.mark.parametrize("cone", [0, 1])
@pytest.mark.parametrize("name", ["allegro_sphere", "allegro_cube", "iiwa_bimanual_box"])
def test_hands_and_arms(name: str, cone: int) -> None:
    """Springs of actuators in the metric: the integrator "discrete"."""
    path = systems.load(name).model.description.to_mjcf()
    mj = compiled(path, DISCRETE, cone=cone, impratio=3.0, timestep=0.002)
    assert compare(mj, 5, 12, 0.02, 0.3) >= 6


@pytest.mark.short_cases(2)
@pytest.mark.parametrize("integrator", [*INTEGRATORS, IMPLICITFAST])
@pytest.mark.parametrize("law", LAWS)
def test_limits_and_dry_friction(law: str, integrator: int) -> None:
    actuator = '<position joint="a" kp="20"/>'
    source = LIMITS.format(law=LAWS[law], actuator=actuator, damping=0.2)
    assert compare(compiled(source, integrator), 6, 20, 0.1, 1.0) == 20


COUPLED = """<mujoco><worldbody>
<body pos="0 0 1"><joint name="a" axis="0 1 0"/><geom type="capsule" size="0.03" fromto="0 0 0 0.3 0 0" mass="0.5"/></body>
<body pos="0 1 1"><joint name="b" type="slide" axis="0 0 1" {spring}/><geom size="0.05" mass="0.3"/></body>
<body pos="1 1 1"><joint name="c" axis="1 0 0" {spring}/><geom size="0.05" pos="0 0.2 0" mass="0.3"/></body></worldbody>
<equality><joint joint1="a" joint2="b" polycoef="0.01 0.8 0.3 0.1 0" {law}/><joint joint1="c" polycoef="0.1 0 0 0 0" {law}/>
</equality>{driven}</mujoco>"""
DRIVEN = """<tendon><fixed name="t" stiffness="40" damping="0.3"><joint joint="a" coef="0.7"/><joint joint="b" coef="-1"/></fixed>
</tendon><actuator><position tendon="t" kp="50" kv="0.5"/><position joint="c" kp="20" forcerange="-900 900"/></actuator>"""


@pytest.mark.parametrize("integrator", [*INTEGRATORS, IMPLICITFAST])
@pytest.mark.parametrize(
    "law",
    ["", 'solref="0.05 0.7" solimp="0.5 0.8 0.05"', 'solref="-900 -20"', 'solref="0.003 0.5"'],
)
def test_couplings_of_joints(law: str, integrator: int) -> None:
    """Also of joints that springs, dampers and actuators pull, by tendons and within limits of force, too."""
    spring = 'stiffness="30" damping="0.4"'
    for driven in ["", DRIVEN]:
        mj = compiled(COUPLED.format(law=law, spring=spring, driven=driven), integrator)
        assert compare(mj, 7, 20, 0.1, 1.0) == 20


DRIVEN_ARM = """<mujoco><option timestep="0.004" cone="{cone}"/><worldbody><geom type="plane" size="3 3 0.1"/>
<body pos="0 0 0.3"><joint name="a" axis="0 1 0" damping="0.3" stiffness="4" springref="20"/>
<geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.03" mass="1"/>
<body pos="0.3 0 0"><joint name="b" axis="0 1 0" damping="0.2"/><geom type="capsule" fromto="0 0 0 0.3 0 -0.1" size="0.03" mass="1"/>
<body pos="0.3 0 -0.1"><joint type="ball" stiffness="2" damping="0.1"/><geom size="0.05" pos="0.05 0 0" mass="0.3"/></body></body></body>
<body pos="1 0 0.099"><joint type="free" stiffness="30" damping="2"/><geom size="0.1" mass="1"/></body>
<body pos="0 2 0.5"><joint name="s" type="slide" axis="0 0 1"/><geom size="0.1"/></body>
<body pos="0 3 0.5"><joint name="t" type="slide" axis="0 0 1" armature="0.3"/><geom size="0.1"/></body></worldbody>
<tendon><fixed name="ab" damping="0.5" stiffness="5"><joint joint="a" coef="1"/><joint joint="b" coef="-0.7"/></fixed>
<fixed damping="0.7" stiffness="3" springlength="-0.01 0.01"><joint joint="s" coef="1"/><joint joint="t" coef="0.5"/></fixed></tendon>
<actuator><position joint="b" kp="20" kv="1"/><position tendon="ab" kp="9" kv="0.3" forcerange="-2 2"/>
<general joint="a" gaintype="affine" gainprm="2 -3 -0.5" biastype="affine" biasprm="0.1 -5 -0.4"/>
<motor joint="a" forcelimited="true" forcerange="-0.05 0.05"/></actuator></mujoco>"""


@pytest.mark.parametrize("integrator", [EULER, IMPLICITFAST])
@pytest.mark.parametrize("cone", ["elliptic", "pyramidal"])
def test_springs_and_dampers_that_act_early(cone: str, integrator: int) -> None:
    """Of all kinds of joints, of tendons within and across trees, and of actuators whose gain depends on the speed."""
    mj = compiled(DRIVEN_ARM.format(cone=cone), integrator)
    assert compare(mj, 12, 40, 0.05, 0.5) >= 15


def test_late_springs_are_stable_where_mujocos_are_not() -> None:
    """A stiff servo of a light link: the published hands, whose springs act late."""
    source = """<mujoco><worldbody><body><joint name="j" axis="0 1 0"/><geom size="0.01" pos="0 0 0.05" mass="0.01"/></body>
    </worldbody><actuator><position joint="j" kp="100"/></actuator></mujoco>"""
    early = qdsim.load(source).description
    solver = dataclasses.replace(early.contact_solver, springs="late")
    late = dataclasses.replace(early, contact_solver=solver)
    options, ends = DynamicOptions(h=0.002, contacts="mujoco"), []
    for description in (early, late):
        model = qdsim.build(description)
        q, v = np.zeros(1), np.zeros(1)
        for _ in range(100):
            step = step_dynamic(model, q, v, [0.5], options)
            q, v = step.q_next, step.v_next
        ends.append(abs(v[0]))
    assert ends[0] > 1e6 and ends[1] < 1.0
    assert systems.load("allegro_sphere").model.description.contact_solver.springs == "late"
    assert qdsim.build(late).description.to_mjcf() == qdsim.build(early).description.to_mjcf()


def test_the_flag_of_eulers_damping_is_named() -> None:
    """Without dampers it has no effect; of other integrators neither."""
    text = DRIVEN_ARM.format(cone="elliptic").replace(
        "/><worldbody>", '><flag eulerdamp="disable"/></option><worldbody>', 1
    )
    model = qdsim.load(text)
    assert model.unlike_mujoco == (
        "flag eulerdamp, of the integrator 'Euler' (load(..., leave_out='solver') leaves it out)",
    )
    assert qdsim.load(text.replace("damping=", "armature=")).unlike_mujoco == ()
    mj = mujoco.MjModel.from_xml_string(text)
    mj.opt.integrator = IMPLICITFAST
    assert qdsim.load(mj).unlike_mujoco == ()


TENDONS = """<mujoco><worldbody><geom name="g" type="sphere" size="0.05" pos="0.15 0 0.9" contype="0" conaffinity="0"/>
<site name="s" pos="0 0.05 1.2"/>
<body pos="0 0 1"><joint name="a" axis="0 1 0" {spring}/><geom type="capsule" size="0.03" fromto="0 0 0 0.3 0 0" mass="0.5"/>
<body pos="0.3 0 0"><joint name="b" axis="0 1 0.2"/><geom type="capsule" size="0.03" fromto="0 0 0 0.2 0 0" mass="0.3"/>
<site name="t" pos="0.2 0.02 0"/></body></body>
<body pos="0.3 0.3 0.7"><freejoint/><geom size="0.05" mass="0.2"/><site name="f" pos="0.03 0 0.01"/></body>
<body pos="0 1 1"><joint name="c" type="slide" axis="0 0 1"/><geom size="0.05" mass="0.3"/></body></worldbody>
<tendon><fixed name="ab" limited="true" range="-0.03 0.02" frictionloss="0.1" {law}><joint joint="a" coef="0.5"/><joint joint="b" coef="-1"/></fixed>
<spatial name="st" limited="true" range="0.1 {most}" frictionloss="0.3" {law}><site site="s"/><site site="t"/></spatial>
<spatial name="tf" limited="true" range="0.6 0.9" {law}><site site="t"/><geom geom="g"/><site site="f"/></spatial>
<fixed name="c"><joint joint="c" coef="2"/></fixed></tendon>
<equality><tendon tendon1="ab" tendon2="c" polycoef="0.01 0.4 0.5 0.2 0" {equal}/><tendon tendon1="tf" polycoef="0.01 0 0 0 0" {equal}/></equality>
</mujoco>"""
SLOW, DIRECT = 'solref{0}="0.05 0.7" solimp{0}="0.5 0.8 0.05" ', 'solref{0}="-900 -20" '
TENDON_LAWS = {
    "defaults": ("", ""),
    "soft and slow": (
        SLOW.format("limit") + SLOW.format("friction") + 'margin="0.02"',
        SLOW.format(""),
    ),
    "direct": (DIRECT.format("limit") + DIRECT.format("friction"), DIRECT.format("")),
}


@pytest.mark.short_cases(2)
@pytest.mark.parametrize("integrator", [*INTEGRATORS, IMPLICITFAST])
@pytest.mark.parametrize("law", TENDON_LAWS)
def test_tendons(law: str, integrator: int) -> None:
    """Limits, dry friction and equalities of fixed and spatial ones, around a sphere too."""
    own, equal = TENDON_LAWS[law]
    spring = 'stiffness="30" damping="0.4"'
    for most in (0.5, 0.6):
        source = TENDONS.format(law=own, equal=equal, most=most, spring=spring)
        assert compare(compiled(source, integrator), 8, 20, 0.1, 1.0) == 20


LOOPS = """<mujoco><worldbody>
<body name="a" pos="0 0 1"><joint axis="0 1 0" {spring}/><geom type="capsule" size="0.03" fromto="0 0 0 0.3 0 0" mass="0.5"/>
<body name="b" pos="0.3 0 0"><joint axis="0 1 0.2"/><joint axis="1 0.3 0"/><geom type="capsule" size="0.03" fromto="0 0 0 0.2 0 0" mass="0.3"/></body>
<body name="c" pos="0 0.2 0"><joint type="ball" {spring}/><geom type="box" size="0.1 0.05 0.04" pos="0.1 0 0" mass="0.4"/></body></body>
<body name="f" pos="0.6 0 1"><freejoint/><geom type="box" size="0.05 0.04 0.03" pos="0.01 0 0.02" mass="0.3"/><site name="s" pos="0 0.1 0" euler="10 20 30"/></body>
<body name="g" pos="1 1 1">{free}<geom type="box" size="0.05 0.04 0.03" mass="0.3"/></body>
<body name="m" mocap="true" pos="1 1 1.1"><geom size="0.01" contype="0" conaffinity="0"/><site name="t" quat="0.9 0.1 0 0.2"/></body></worldbody>
<equality><connect body1="b" body2="c" anchor="0.1 0.1 0" {law}/><connect body1="b" body2="f" anchor="0.2 0 0" {law}/>
{welds}</equality>
<contact><exclude body1="a" body2="f"/><exclude body1="b" body2="f"/><exclude body1="c" body2="f"/><exclude body1="b" body2="c"/><exclude body1="f" body2="g"/></contact></mujoco>"""


WELDS = """<weld body1="g" body2="m" torquescale="0.7" {law}/><weld site1="s" site2="t" {law}/><weld body1="f" body2="c" torquescale="0.2" {law}/>"""


@pytest.mark.short_cases(2)
@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("law", ["", SLOW.format(""), DIRECT.format(""), 'solref="0.002 0.6"'])
def test_connects_and_welds(law: str, integrator: int) -> None:
    """Loops in a tree, between trees and to the world, with violations of a tenth of a metre and of radians.

    With damping in the metric of "discrete", connects alone (weights of a weld's turn are of other axes there)."""
    all_welds, free = WELDS.format(law=law), "<freejoint/>"
    kinds = [("", all_welds, free), ('damping="0.4"', "", "")]
    if integrator != DISCRETE:
        kinds = [('damping="0.4"', all_welds, free)]
    for spring, welds, joint in kinds:
        mj = compiled(LOOPS.format(law=law, spring=spring, welds=welds, free=joint), integrator)
        for spread in (0.001, 0.05, 0.5):
            assert compare(mj, 9, 10, spread, 1.0) >= 8


PINNED = """<mujoco><option cone="{cone}" timestep="0.005"/><worldbody>
<geom type="plane" size="1 1 1"/>
<body pos="0 0 0.1"><joint type="ball"/><geom type="capsule" size="0.05 0.08" mass="0.7"/></body>
<body name="wheel" pos="1 0 0.1"><joint axis="0 1 0"/><geom type="box" size="0.1 0.05 0.06" mass="0.4"/></body>
<body pos="2 0 0.3"><joint type="ball"/><geom type="box" size="0.1 0.05 0.06" mass="0.4"/></body></worldbody>
<equality><connect body1="wheel" anchor="0.05 0 0.02" solref="0.03 1"/></equality></mujoco>"""


@pytest.mark.parametrize("cone", ["elliptic", "pyramidal"])
def test_bodies_that_turn_about_their_centre_of_mass_have_a_weight(cone: str) -> None:
    """MuJoCo's is zero there, and R 1e-15: what its solver makes of rows that contradict each other is rounding.

    Here it is at least 1e-7 of that of turns, at the radius of gyration; MuJoCo with this weight gives the answer.
    """
    mj = compiled(PINNED.format(cone=cone), EULER)
    model = qdsim.load(mj, exclude_overlaps=False)
    assert mj.body_invweight0[1:, 0].max() < 1e-12
    squared = mj.body_inertia[1:].mean(axis=1) / mj.body_mass[1:]
    mj.body_invweight0[1:, 0] = 1e-7 * squared * mj.body_invweight0[1:, 1]
    data, rng = mujoco.MjData(mj), np.random.default_rng(0)
    options = DynamicOptions(h=mj.opt.timestep, contacts="mujoco")
    touched = 0
    for _ in range(6):
        perturb(mj, data, rng, 0.3, 1.0)
        v = from_mujoco_velocity(model, data.qpos, data.qvel)
        step = step_dynamic(model, data.qpos, v, np.zeros(0), options)
        mujoco.mj_step(mj, data)
        found = to_mujoco_velocity(model, step.q_next, step.v_next)
        np.testing.assert_allclose(found, data.qvel, atol=1e-6 * np.abs(data.qvel).max())
        touched += data.ncon > 0
    assert touched >= 3


BALLS = """<mujoco><worldbody>
<body pos="0 0 1"><joint type="ball" range="0 {most}" limited="true" frictionloss="0.05" {law} {spring}/><geom type="box" size="0.1 0.05 0.04" pos="0.1 0 0" mass="0.4"/>
<body pos="0.2 0 0"><joint type="ball" frictionloss="0.03" {law}/><geom type="box" size="0.1 0.05 0.04" pos="0.1 0 0" mass="0.4"/></body></body>
<body pos="1 0 1"><joint type="free" frictionloss="0.1" {law}/><geom type="box" size="0.1 0.05 0.04" mass="0.4"/></body></worldbody></mujoco>"""


@pytest.mark.short_cases(2)
@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("law", ["defaults", "soft and slow", "direct"])
def test_turns_of_ball_and_free_joints(law: str, integrator: int) -> None:
    """Limits of an angle, and dry friction about axes of bodies that have turned far."""
    spring = 'damping="0.4" stiffness="3"'
    for most in (1e-3, 20.0):
        source = BALLS.format(most=most, law=LAWS[law], spring=spring)
        assert compare(compiled(source, integrator), 10, 20, 0.5, 1.0) == 20


def test_a_motion_is_mujocos() -> None:
    """A box that is thrown, slides and comes to rest: 400 steps."""
    size, z = SHAPES["box"]
    source = FALLING.format(shape=size, z=z + 0.05, cone="elliptic", condim=4, impratio=2, geom="")
    mj = compiled(source, EULER)
    model, data = qdsim.load(mj), mujoco.MjData(mj)
    data.qvel[:] = 0.6, 0.2, 0.0, 0.3, -0.2, 0.5
    q, v = data.qpos.copy(), from_mujoco_velocity(model, data.qpos, data.qvel)
    options = DynamicOptions(h=mj.opt.timestep, contacts="mujoco")
    rolled = qdsim.rollout_dynamic(model, q, v, np.zeros((400, 0)), options)
    for k in range(400):
        mujoco.mj_step(mj, data)
        np.testing.assert_allclose(rolled.q[k + 1], data.qpos, atol=1e-6)
    assert np.abs(data.qvel).max() < 1e-2


def box(cone: str = "elliptic") -> tuple[qdsim.Model, Vector, Vector]:
    size, z = SHAPES["box"]
    model = qdsim.load(FALLING.format(shape=size, z=z, cone=cone, condim=4, impratio=2, geom=""))
    v = np.array((0.5, 0.1, -0.3, 0.2, 0.1, 0.4))
    return model, np.asarray(model.default_q), v


@pytest.mark.parametrize("cone", ["elliptic", "pyramidal"])
def test_batches_rollouts_and_motions_are_the_same_step(cone: str) -> None:
    model, q, v = box(cone)
    options = DynamicOptions(h=0.002, contacts="mujoco")
    one = step_dynamic(model, q, v, [], options)
    assert one.contacts["force"][:, 0].sum() > 1.0
    batch = qdsim.step_dynamic_batch(model, np.tile(q, (3, 1)), v, np.zeros(0), options, threads=2)
    assert np.array_equal(batch.v_next[2], one.v_next)
    warm = step_dynamic(model, q, v, [], options, warm_start=one)
    np.testing.assert_allclose(warm.v_next, one.v_next, atol=1e-9)
    motion = qdsim.simulate(model, q, v, [], 0.02, options)
    rolled = qdsim.rollout_dynamic(model, q, v, np.zeros((10, 0)), options)
    np.testing.assert_allclose(motion.q[-1], rolled.q[-1], atol=1e-9)
    lin = qdsim.linearize_dynamic(model, q, v, [], options)
    assert lin.step.info.derivative_exact
    turn = np.array((0.1, -0.2, 0.0, 1.0, 0.5, 0.2))
    pushed = qdsim.rollout_dynamic_jvp(
        model, q, v, np.zeros((10, 0)), options, tangents={"q": np.zeros(6), "v": turn}
    )
    ends = [
        qdsim.rollout_dynamic(model, q, v + s * 1e-6 * turn, np.zeros((10, 0)), options).v[-1]
        for s in (1, -1)
    ]
    slope = (ends[0] - ends[1]) / 2e-6
    np.testing.assert_allclose(pushed.v_tangent[-1], slope, atol=1e-6 * np.abs(slope).max())


# ---------------------------------------------------------------- options, files and bad input


def test_what_does_not_touch_does_not_act() -> None:
    """No look-ahead: what falls towards the floor is not stopped before it is in it."""
    model, q, v = box()
    q = q + np.array((0, 0, 0.002, 0, 0, 0, 0))
    q[2] = 0.0301
    v = np.array((0, 0, -1.0, 0, 0, 0))
    step = step_dynamic(model, q, v, [], DynamicOptions(h=0.002, contacts="mujoco"))
    assert len(step.contacts) == 0
    assert step.v_next[2] == pytest.approx(-1.0 - 9.81 * 0.002, rel=1e-12)
    assert step.info.missed_pairs == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"contacts": "soft"}, "contacts: expected 'rigid' or 'mujoco', got 'soft'"),
        ({"kappa": 100.0}, "kappa: expected None with contacts='mujoco', got 100.0"),
        ({"restitution": 0.5}, "restitution: expected 0.0 with contacts='mujoco', got 0.5"),
        ({"law": "coulomb"}, "law: expected 'convex' with contacts='mujoco'"),
        ({"friction": "pyramid"}, "friction: expected 'cone' with contacts='mujoco'"),
        ({"contact_stiffness": 1e3}, "contact_stiffness: expected None with contacts='mujoco'"),
        ({"gyroscopic": "none"}, "gyroscopic: expected 'implicit' or 'explicit'"),
    ],
)
def test_bad_options_are_named(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        DynamicOptions(**{"contacts": "mujoco", **arguments})


def test_restitution_of_geometries_is_named() -> None:
    scene = qdsim.SceneBuilder()
    scene.geom("world", "plane", name="floor", restitution=0.5)
    scene.body("ball", pos=(0, 0, 0.1), mass=1.0)
    scene.joint("ball", "free")
    scene.geom("ball", "sphere", 0.1, name="ball", restitution=0.5)
    model = qdsim.build(scene.build())
    with pytest.raises(
        ValueError, match="contacts: 'mujoco' knows no restitution, which contacts of 'floor'"
    ):
        step_dynamic(model, model.default_q, np.zeros(6), [], DynamicOptions(contacts="mujoco"))


def test_spins_are_explicit_unless_told() -> None:
    model, _, _ = box()
    q, v = np.array((0, 0, 1.0, 1, 0, 0, 0)), np.array((0, 0, 0, 1.0, 2.0, -3.0))

    def turned(**options: Any) -> Vector:
        return np.asarray(step_dynamic(model, q, v, [], DynamicOptions(h=0.01, **options)).v_next)

    assert np.array_equal(turned(contacts="mujoco"), turned(gyroscopic="explicit"))
    assert np.array_equal(turned(), turned(gyroscopic="implicit"))
    assert np.array_equal(
        turned(contacts="mujoco", gyroscopic="implicit"), turned(gyroscopic="implicit")
    )


@needs_discrete
def test_files_carry_the_law_along() -> None:
    actuator = '<position joint="a" kp="20"/>'
    source = LIMITS.format(
        law=LAWS["soft and slow"] + ' margin="0.05"', actuator=actuator, damping=0.2
    ).replace("<option", '<option integrator="discrete"')
    model = qdsim.load(source)
    again = qdsim.load(model.description.to_mjcf())
    assert again.description.contact_solver == model.description.contact_solver
    assert [joint.margin for joint in again.description.joints] == [0.05, 0.05, 0.0]
    v = np.array((1.0, -0.5, 0.3))
    options = DynamicOptions(h=0.002, contacts="mujoco")
    q = np.array((0.29, -0.02, 0.1))
    steps = [step_dynamic(each, q, v, [0.1], options).v_next for each in (model, again)]
    np.testing.assert_allclose(steps[0], steps[1], rtol=1e-12)


ASKING = """<mujoco><option timestep="0.005" {option}>{flag}</option><worldbody><geom type="plane" size="1 1 1"/>
<body pos="0 0 0.099"><joint name="j" type="slide" axis="0 0 1"/><geom size="0.1" mass="1"/></body></worldbody>
<actuator>{actuator}</actuator></mujoco>"""
FILTER = '<general name="slow" joint="j" dyntype="filterexact" dynprm="0.1" gainprm="40"/>'


@pytest.mark.parametrize(
    ("option", "flag", "actuator", "words", "kind"),
    [
        ('density="1.2"', "", "", "option density, viscosity", "fluids"),
        ('viscosity="0.1"', "", "", "option density, viscosity", "fluids"),
        ('noslip_iterations="3"', "", "", "option noslip_iterations", "solver"),
        ('integrator="RK4"', "", "", "integrator 'RK4'", "solver"),
        ('integrator="implicit"', "", "", "integrator 'implicit'", "solver"),
        ("", '<flag diagexact="enable"/>', "", "flag diagexact", "solver"),
        ("", "", FILTER, "actuator 'slow': time constant 0.1", "activations"),
    ],
)
def test_what_a_file_asks_for_beyond_the_law_is_named(
    option: str, flag: str, actuator: str, words: str, kind: str
) -> None:
    """In every kind of call; the file loads, other steps are as ever, and loaded without it all are."""
    source = ASKING.format(option=option, flag=flag, actuator=actuator)
    if "diagexact" in flag and not hasattr(mujoco.mjtEnableBit, "mjENBL_DIAGEXACT"):
        pytest.skip("a MuJoCo without diagexact")
    model = qdsim.load(source)
    at = (model, model.default_q, [0.0], np.zeros(model.nu))
    options = DynamicOptions(h=0.005, contacts="mujoco")
    message = rf"contacts: .* without {words} \(load\(..., leave_out='{kind}'\)"
    for call in (step_dynamic, qdsim.linearize_dynamic, qdsim.step_dynamic_batch):
        with pytest.raises(ValueError, match=message):
            call(*at, options)
    with pytest.raises(ValueError, match=message):
        qdsim.rollout_dynamic(*at[:3], np.zeros((3, model.nu)), options)
    step_dynamic(*at, DynamicOptions(h=0.005))
    with pytest.warns(qdsim.ModelWarning, match=words):
        without = qdsim.load(source, leave_out=kind)  # type: ignore[arg-type]
    assert without.unlike_mujoco == () and len(model.unlike_mujoco) == 1
    step_dynamic(without, *at[1:], options)


def test_commands_are_activations_where_those_are_left_out() -> None:
    mj = compiled(ASKING.format(option="", flag="", actuator=FILTER), EULER)
    with pytest.warns(qdsim.ModelWarning, match="time constant"):
        model = qdsim.load(mj, leave_out="activations")
    data = mujoco.MjData(mj)
    data.act[0], data.ctrl[0] = 0.8, -0.5
    step = step_dynamic(
        model, data.qpos, data.qvel, data.act, DynamicOptions(h=0.005, contacts="mujoco")
    )
    mujoco.mj_step(mj, data)
    np.testing.assert_allclose(step.v_next, data.qvel, atol=1e-10)


SLOW_DRIVES = """<general joint="j" dyntype="filter" dynprm="0.03" gainprm="40" biastype="affine" biasprm="0 -30 -2"/>
<general joint="j" dyntype="filterexact" dynprm="0.05" gainprm="20" ctrllimited="true" ctrlrange="-0.5 0.5"/>
<intvelocity joint="j" kp="60" kv="1" actrange="-0.01 0.02"/>"""


@pytest.mark.parametrize("integrator", [EULER, IMPLICITFAST])
def test_activations_are_carried_by_the_caller(integrator: int) -> None:
    """Filters and an integrator, whose activations do not depend on the motion."""
    mj = compiled(ASKING.format(option="", flag="", actuator=SLOW_DRIVES), integrator)
    with pytest.warns(qdsim.ModelWarning, match="integrator"):
        model = qdsim.load(mj, leave_out="activations")
    assert np.all(np.isinf(model.u_upper[:2])) and model.u_upper[2] == 0.02
    data, h, rng = mujoco.MjData(mj), 0.005, np.random.default_rng(0)
    options = DynamicOptions(h=h, contacts="mujoco")
    q, v, act = data.qpos.copy(), data.qvel.copy(), data.act.copy()
    share = np.array([h / 0.03, -np.expm1(-h / 0.05), h])
    for _ in range(60):
        data.ctrl[:] = rng.normal(size=3)
        step = step_dynamic(model, q, v, act, options)
        wanted = np.clip(data.ctrl, [-9, -0.5, -9], [9, 0.5, 9])
        act = act + share * (wanted - act * [1, 1, 0])
        act[2] = np.clip(act[2], -0.01, 0.02)
        mujoco.mj_step(mj, data)
        q, v = step.q_next, step.v_next
        np.testing.assert_allclose(act, data.act, atol=1e-12)
        np.testing.assert_allclose(np.concatenate([q, v]), [*data.qpos, *data.qvel], atol=1e-9)


def test_commands_of_filters_end_where_their_activations_do() -> None:
    """In the quasi-dynamic step, a filter's activation is its command, within both ranges."""
    drive = SLOW_DRIVES.replace(
        "/>\n<intvelocity", ' actlimited="true" actrange="-0.3 0.9"/>\n<intvelocity'
    )
    drive = drive[: drive.index("<intvelocity")]
    model = qdsim.load(ASKING.format(option="", flag="", actuator=drive))
    assert np.isinf(model.u_upper[0])
    np.testing.assert_allclose((model.u_lower[1], model.u_upper[1]), (-0.3, 0.5))
