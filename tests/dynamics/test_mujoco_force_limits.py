"""Actuators at their force limits with contacts="mujoco": MuJoCo clamps forces at the beginning of the step."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from test_mujoco_step import DISCRETE, EULER, IMPLICITFAST, compiled, needs_discrete

import qdsim
from qdsim import DynamicOptions

ARM = """<mujoco><option timestep="0.005"/><worldbody><geom type="plane" size="2 2 1"/>
<body pos="0 0 0.5"><joint name="a" axis="0 1 0" {joint} {passive}/><geom type="capsule" size="0.03" fromto="0 0 0 0.3 0 0" mass="0.5"/>
<body pos="0.3 0 0"><joint name="b" axis="0 1 0.2" {passive}/><geom type="capsule" size="0.03" fromto="0 0 0 0.25 0 0" mass="0.3"/>
<body pos="0.25 0 -0.2"><joint name="c" type="slide" axis="0 0 1"/><geom name="tip" size="0.04" mass="0.2"/></body></body></body>
<body pos="0.4 0.5 0.059"><joint type="slide" axis="0 0 1"/><joint type="slide" axis="1 0 0"/><geom type="box" size="0.1 0.08 0.06" mass="1"/></body></worldbody>
<tendon><fixed name="t"><joint joint="b" coef="0.7"/><joint joint="c" coef="-1"/></fixed></tendon>
<actuator>{actuators}</actuator></mujoco>"""
PASSIVE = 'damping="0.2" stiffness="3"'

ACTUATORS = {
    "motor": '<motor {at} gear="2" {limit}/>',
    "position": '<position {at} kp="60" kv="3" {limit}/>',
    "velocity": '<velocity {at} kv="7" gear="-1.5" {limit}/>',
    "general": '<general {at} gainprm="3 2 0.2" gaintype="affine" biastype="affine" biasprm="0.2 -30 -2" {limit}/>',
}
OWN, LOOSE = 'forcerange="-0.9 0.7"', 'forcerange="-2.5 2"'
LIMITS = {  # of the actuators, and of joint a
    "own": (OWN, ""),
    "of the joint": ("", 'actuatorfrcrange="-1 0.8"'),
    "of both": (LOOSE, 'actuatorfrcrange="-1 0.8"'),
    "of both, the same": (OWN, 'actuatorfrcrange="-1.8 1.4"'),
}


def scene(kind: str, limits: str, integrator: int) -> mujoco.MjModel:
    own, joint = LIMITS[limits]
    gear = 1.5 if kind == "velocity" else (2.0 if kind == "motor" else 1.0)
    joint = (
        joint if limits != "of both, the same" else f'actuatorfrcrange="{-0.9 * gear} {0.7 * gear}"'
    )
    parts = [ACTUATORS[kind].format(at='joint="a"', limit=own)]
    parts += [ACTUATORS[kind].format(at=at, limit=OWN) for at in ('joint="c"', 'tendon="t"')]
    passive = PASSIVE
    return compiled(ARM.format(joint=joint, passive=passive, actuators="".join(parts)), integrator)


def states(mj: mujoco.MjModel, count: int) -> list[mujoco.MjData]:
    """With commands that most actuators cannot follow."""
    rng, found = np.random.default_rng(2), []
    for _ in range(count):
        data = mujoco.MjData(mj)
        mujoco.mj_integratePos(mj, data.qpos, 0.02 * rng.normal(size=mj.nv), 1.0)
        data.qvel[:] = rng.normal(size=mj.nv)
        data.ctrl[:] = 2.0 * rng.normal(size=mj.nu)
        mujoco.mj_forward(mj, data)
        found.append(data)
    return found


def held(mj: mujoco.MjModel, data: mujoco.MjData) -> np.ndarray:
    """Which actuators are at a limit, of their own or of joint a."""
    low, high = mj.actuator_forcerange.T
    own = mj.actuator_forcelimited.astype(bool) & (
        (data.actuator_force <= low) | (data.actuator_force >= high)
    )
    low, high = mj.jnt_actfrcrange[0]
    own[0] |= mj.jnt_actfrclimited[0] and not low < data.qfrc_actuator[0] < high
    return own


def step_of(mj: mujoco.MjModel, data: mujoco.MjData) -> tuple[qdsim.Model, tuple, DynamicOptions]:
    model = qdsim.load(mj)
    v = qdsim.from_mujoco_velocity(model, data.qpos, data.qvel)
    return (
        model,
        (np.array(data.qpos), v, np.array(data.ctrl)),
        DynamicOptions(h=mj.opt.timestep, contacts="mujoco"),
    )


@pytest.mark.short_cases(8)
@pytest.mark.parametrize("integrator", [DISCRETE, EULER, IMPLICITFAST])
@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("kind", ACTUATORS)
def test_a_step_is_mujocos(kind: str, limits: str, integrator: int) -> None:
    if integrator == DISCRETE and not hasattr(mujoco.mjtIntegrator, "mjINT_DISCRETE"):
        pytest.skip("a MuJoCo without 'discrete'")
    mj = scene(kind, limits, integrator)
    compared, at_limits = 0, 0
    for data in states(mj, 40):
        at = held(mj, data)
        model, arguments, options = step_of(mj, data)
        step = qdsim.step_dynamic(model, *arguments, options)
        mujoco.mj_step(mj, data)
        found = qdsim.to_mujoco_velocity(model, step.q_next, step.v_next)
        np.testing.assert_allclose(found, data.qvel, atol=1e-9 * max(1.0, np.abs(data.qvel).max()))
        compared, at_limits = compared + 1, at_limits + int(at.sum())
    assert compared == 40 and at_limits >= compared


@pytest.mark.short_cases(6)
@pytest.mark.parametrize("integrator", [EULER, IMPLICITFAST, DISCRETE])
@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("kind", ACTUATORS)
def test_derivatives_are_those_of_mujocos_step(kind: str, limits: str, integrator: int) -> None:
    """By q, v and u, against differences of mj_step; columns, products either way, and the limits themselves."""
    if integrator == DISCRETE and not hasattr(mujoco.mjtIntegrator, "mjINT_DISCRETE"):
        pytest.skip("a MuJoCo without 'discrete'")
    mj = scene(kind, limits, integrator)
    compared = 0
    for data in states(mj, 12):
        model, (q, v, u), options = step_of(mj, data)
        lin = qdsim.linearize_dynamic(model, q, v, u, options, wrt=("q", "v", "u"))
        twin, rng = mujoco.MjData(mj), np.random.default_rng(3)
        way = [rng.normal(size=n) for n in (model.nv, model.nv, model.nu)]

        def after(
            s: float, twin: mujoco.MjData = twin, way: list = way, at: tuple = (model, q, v, u)
        ) -> np.ndarray:
            model, q, v, u = at
            mujoco.mj_resetData(mj, twin)
            twin.qpos[:] = model.integrate(q, s * way[0])
            twin.qvel[:] = qdsim.to_mujoco_velocity(model, twin.qpos, v + s * way[1])
            twin.ctrl[:] = u + s * way[2]
            mujoco.mj_step(mj, twin)
            return qdsim.from_mujoco_velocity(model, twin.qpos, twin.qvel)

        slopes = [(after(s) - after(-s)) / (2 * s) for s in (1e-5, 1e-6, 1e-7)]
        scale = max(1.0, np.abs(slopes[1]).max())
        if (
            min(np.abs(slopes[0] - slopes[1]).max(), np.abs(slopes[1] - slopes[2]).max())
            > 1e-6 * scale
        ):
            continue  # a kink
        compared += 1
        named = dict(zip("qvu", way, strict=True))
        ours = sum(lin.of_v[name] @ change for name, change in named.items())
        assert min(np.abs(ours - slope).max() for slope in slopes) < 1e-6 * scale
        d = qdsim.differentiate_dynamic(model, q, v, u, options)
        np.testing.assert_allclose(d.jvp(named)[1], ours, atol=1e-9 * scale)
        back = rng.normal(size=model.nv)
        gradient = d.vjp(None, back)
        assert sum(gradient[n] @ named[n] for n in named) == pytest.approx(
            back @ ours, abs=1e-8 * scale
        )
        names = ("actuator_force_range", "actuator_damping", "actuator_stiffness", "h")
        check_parameters(model, (q, v, u), options, names)
    assert compared >= 8


def check_parameters(
    model: qdsim.Model, at: tuple, options: DynamicOptions, names: tuple[str, ...]
) -> None:
    d = qdsim.differentiate_dynamic(model, *at, options)
    for name in names:
        if name == "h":
            steps = [
                qdsim.step_dynamic(model, *at, options.replace(h=options.h + s))
                for s in (1e-9, -1e-9)
            ]
            ours, slope = d.jvp({"h": np.array(1.0)})[1], (steps[0].v_next - steps[1].v_next) / 2e-9
        else:
            value = np.array(getattr(model.parameters, name))
            way = np.where(
                np.isfinite(value), np.random.default_rng(0).normal(size=value.shape), 0.0
            )
            way = np.where(value == 0.0, 0.0, way)
            value = [np.where(np.isfinite(value), value + s * way, value) for s in (1e-6, -1e-6)]
            steps = [
                qdsim.step_dynamic(model.with_parameters(**{name: x}), *at, options) for x in value
            ]
            ours, slope = d.jvp({name: way})[1], (steps[0].v_next - steps[1].v_next) / 2e-6
        np.testing.assert_allclose(ours, slope, atol=2e-5 * max(1.0, np.abs(slope).max()))


def test_limits_survive_a_file() -> None:
    """Those of the joint and of the actuator apart."""
    if not hasattr(mujoco.mjtIntegrator, "mjINT_DISCRETE"):
        pytest.skip("a MuJoCo without 'discrete'")
    mj = scene("velocity", "of both", DISCRETE)
    model = qdsim.load(mj)
    (item, *_) = model.description.actuators
    assert item.force_range == (-1.0, 0.8)
    np.testing.assert_allclose(item.own_force_range, (-3.0, 3.75))
    again = mujoco.MjModel.from_xml_string(model.description.to_mjcf())
    np.testing.assert_allclose(again.jnt_actfrcrange[0], (-1.0, 0.8))
    np.testing.assert_allclose(
        qdsim.load(again).description.actuators[0].own_force_range, (-3.0, 3.75)
    )


@needs_discrete
@pytest.mark.parametrize("kind", ACTUATORS)
def test_commands_beyond_their_range_are_clamped(kind: str) -> None:
    """As MuJoCo does, and they have no derivative there; steps with rigid contacts take them as given."""
    parts = [
        ACTUATORS[kind].format(at=at, limit='ctrlrange="-0.3 0.2"')
        for at in ('joint="a"', 'joint="c"', 'tendon="t"')
    ]
    text = ARM.format(joint="", passive=PASSIVE, actuators="".join(parts))
    mj = compiled(text, DISCRETE)
    beyond = 0
    for data in states(mj, 20):
        model, (q, v, u), options = step_of(mj, data)
        lin = qdsim.linearize_dynamic(model, q, v, u, options)
        inside = np.clip(u, -0.3, 0.2)
        out = inside != u
        assert np.abs(lin.B[:, ~out]).max(initial=1.0) > 0.0 and not lin.B[:, out].any()
        mujoco.mj_step(mj, data)
        found = qdsim.to_mujoco_velocity(model, lin.q_next, lin.v_next)
        np.testing.assert_allclose(found, data.qvel, atol=1e-9 * max(1.0, np.abs(data.qvel).max()))
        d = qdsim.differentiate_dynamic(model, q, v, u, options)
        assert not d.vjp(None, np.ones(model.nv), wrt=("u",))["u"][out].any()
        assert not d.jvp({"u": np.where(out, 1.0, 0.0)})[1].any()
        rigid = DynamicOptions(h=0.005)
        steps = [qdsim.step_dynamic(model, q, v, each, rigid).v_next for each in (u, inside)]
        assert not out.any() or np.abs(steps[0] - steps[1]).max() > 0.0
        beyond += int(out.sum())
    assert beyond > 20
