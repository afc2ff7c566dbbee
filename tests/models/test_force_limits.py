"""Limits of actuators' forces and dry friction in joints: closed forms, balance of forces, derivatives."""

from __future__ import annotations

import dataclasses
import pickle

import mujoco
import numpy as np
import pytest
from scenes import Scene, arm, planar_hand, pusher
from test_actuators import chain, draw
from test_parameter_derivatives import (
    STANDARD,
    differences,
    differential,
    sample,
    tangents,
)

import qdsim
from qdsim import planning, systems
from qdsim.planning.task.robot import force_reach

GRIPPER = """<mujoco><option gravity="0 0 0"/><worldbody>
  <body name="can"><joint name="can" type="free"/><geom type="sphere" size=".05" mass="0.5"/></body>
  <body pos="-.2 0 0"><joint name="l" type="slide" axis="1 0 0"/><geom type="box" size=".05 .05 .05"/></body>
  <body pos=".2 0 0"><joint name="r" type="slide" axis="-1 0 0"/><geom type="box" size=".05 .05 .05"/></body>
  </worldbody><actuator><position name="l" joint="l" kp="200"/>
  <position name="r" joint="r" kp="100" gear="2"/></actuator></mujoco>"""


def gripper(limit: float) -> qdsim.Model:
    return qdsim.load(GRIPPER).with_parameters(actuator_force_range=[[-limit, limit]] * 2)


@pytest.mark.parametrize("friction", ["cone", "pyramid"])
def test_a_gripper_squeezes_with_exactly_its_limit(friction: str) -> None:
    model, options = gripper(3.0), qdsim.Options(friction=friction)
    for u, squeeze in ((0.05, 0.0), (0.11, 2.0), (0.115, 3.0), (0.9, 3.0)):
        q = model.default_q
        for _ in range(3):
            step = qdsim.step(model, q, [u, 2 * (0.1 + (u - 0.1) / 2)], options)
            q = step.q_next
        np.testing.assert_allclose(step.actuator_force, squeeze, atol=1e-9)
        assert step.actuator_limited.tolist() == [squeeze == 3.0] * 2
        np.testing.assert_allclose(step.contacts["force"][:, 0], squeeze, atol=1e-9)
        free = qdsim.step(model, q, [u, 2 * u], options.replace(force_limits=False))
        assert not free.actuator_limited.any()
        if squeeze == 3.0:
            assert free.actuator_force.max() > 3.0


def test_one_sided_and_single_forces() -> None:
    """Limits of different sides; lower = upper is a force that nothing changes."""
    model = gripper(1.0)
    only = model.with_parameters(actuator_force_range=[[-np.inf, 2.0], [-2.0, np.inf]])
    q = model.default_q
    for _ in range(40):
        step = qdsim.step(only, q, [0.2, 0.22])
        q = step.q_next
    np.testing.assert_allclose(step.actuator_force, 2.0, atol=1e-9)
    assert step.actuator_limited.tolist() == [True, False]
    constant = model.with_parameters(actuator_force_range=[[1.5, 1.5], [-4.0, 4.0]])
    step = qdsim.step(constant, q, [0.2, 0.3])
    assert step.actuator_force[0] == 1.5


def slider(friction: float, **kw: float) -> qdsim.Model:
    scene = qdsim.SceneBuilder(gravity=(0, 0, 0))
    scene.body("b", mass=2.0, inertia=(1, 1, 1))
    scene.joint("b", "slide", friction=friction)
    if kw:
        scene.actuator("b", **kw)
    return qdsim.build(scene.build())


def test_dry_friction_holds_then_slips() -> None:
    h, mass = 0.05, 2.0
    block = slider(4.0)
    for force in (-9.0, -4.001, -3.9, 0.0, 2.0, 4.0, 5.5):
        wrench = {"b": [0, 0, force, 0, 0, 0]}
        lin = qdsim.linearize(
            block, [0.3], [], qdsim.Options(h=h), wrench=wrench, wrt=("wrench", "joint_friction")
        )
        excess = np.sign(force) * max(0.0, abs(force) - 4.0)
        assert lin.q_next == pytest.approx([0.3 + h * h / mass * excess], abs=1e-12)
        slips = abs(force) > 4.0
        if force != 4.0:
            by = lin.derivatives
            assert by["wrench"][0, 1, 2] == pytest.approx(slips * h * h / mass, abs=1e-12)
            expected = -np.sign(force) * slips * h * h / mass
            assert by["joint_friction"][0, 0] == pytest.approx(expected, abs=1e-12)
    held = slider(4.0, stiffness=100.0)  # a spring that friction keeps from its rest
    for u, end in ((0.03, 0.0), (0.1, 0.06), (-0.05, -0.01)):
        assert qdsim.step(held, [0.0], [u]).q_next == pytest.approx([end], abs=1e-12)


def test_motors_are_clamped() -> None:
    motor = slider(0.0, gain=3.0, force_range=(-6.0, 9.0))
    for u, force in ((1.0, 3.0), (5.0, 9.0), (-4.0, -6.0)):
        lin = qdsim.linearize(motor, [0.0], [u], wrt=("u", "actuator_force_range"))
        step = qdsim.step(motor, [0.0], [u])
        assert step.q_next == pytest.approx([0.01 * force / 2.0])
        assert step.actuator_force.tolist() == [force]
        assert step.actuator_limited.tolist() == [abs(force) > 3.0]
        assert lin.B[0, 0] == pytest.approx(0.015 * (force == 3.0))
        by = lin.derivatives["actuator_force_range"][0, 0]
        np.testing.assert_allclose(by, [0.005 * (force == -6), 0.005 * (force == 9)], atol=1e-15)


def limited(scene: Scene, force: float, friction: float = 0.0) -> Scene:
    """The scene, its commands far enough from q that forces reach their limits."""
    scalar = [joint.scalar for joint in scene.model.description.joints]
    model = scene.model.with_parameters(
        actuator_force_range=np.outer(np.linspace(0.7, 1.3, scene.model.nu), [-force, force]),
        joint_friction=np.where(scalar, friction, 0.1 * friction),
    )

    def draw(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        q, u = scene.sample(rng)
        return q, u + rng.uniform(-0.3, 0.3, model.nu)

    return Scene(model, draw)


def scenes() -> dict[str, Scene]:
    return {
        "hand": limited(planar_hand(), 12.0),
        "box": limited(pusher("box", 3), 20.0, 0.5),
        "arm": limited(arm(3), 4.0, 0.6),
    }


def contact_force(model: qdsim.Model, q: np.ndarray, contacts: np.ndarray) -> np.ndarray:
    """(nv) generalised forces of contacts."""
    out = np.zeros(model.nv)
    poses = model.body_poses(q)
    for c in contacts:
        force, moment = c["frame"].T @ c["force"][:3], c["frame"].T @ c["force"][3:]
        for body, sign in ((c["body_b"], 1.0), (c["body_a"], -1.0)):
            point = poses[1][body].T @ (c["pos"] - poses[0][body])
            J = model.jacobian(q, int(body), point)
            out += sign * (force @ J[:3] + moment @ J[3:])
    return out


@pytest.mark.short_cases(2)
@pytest.mark.parametrize("kappa", [None, 300.0])
@pytest.mark.parametrize("name", list(scenes()))
def test_forces_balance_within_the_limits(name: str, kappa: float | None) -> None:
    """On every joint that an actuator drives: it, the joint's spring, limits, contacts and at most
    its dry friction. Each force is that of the spring where it is inside its limits."""
    scene, rng = scenes()[name], np.random.default_rng(2)
    model, at_limit, within = scene.model, 0, 0
    options = qdsim.Options(margin=0.3, kappa=kappa)
    p = model.parameters
    for _ in range(25):
        q, u = scene.sample(rng)
        step = qdsim.step(model, q, u, options)
        low, high = p.actuator_force_range.T
        assert np.all(step.actuator_force >= low - 1e-9)
        assert np.all(step.actuator_force <= high + 1e-9)
        driven = model.actuated_v
        spring = p.actuator_stiffness * (
            u / model.actuator_gear - q[model.actuated_q] - step.delta[driven]
        )
        if kappa is None:
            expected = np.clip(spring, low, high)
            np.testing.assert_allclose(step.actuator_force, expected, atol=1e-6)
            beyond = np.maximum(low - spring, spring - high)
            sure = np.abs(beyond) > 1e-6
            np.testing.assert_array_equal(step.actuator_limited[sure], beyond[sure] > 0)
        total = contact_force(model, q, step.contacts) + step.limit_force
        total[driven] += step.actuator_force
        for j, joint in enumerate(model.description.joints):
            if joint.scalar:
                v = model.slice_v(joint.name).start
                at = q[model.slice_q(joint.name).start] + step.delta[v]
                total[v] -= p.joint_stiffness[j] * (at - p.joint_springref[j])
        loss = np.array(
            [
                p.joint_friction[model.joint_names.index(joint)]
                for joint in (
                    next(n for n in model.joint_names if model.slice_v(n).start == v)
                    for v in driven
                )
            ]
        )
        assert np.all(np.abs(total[driven]) <= loss + 1e-6)
        moving = np.abs(step.delta[driven]) > 1e-6
        if kappa is None:
            slip = -loss * np.sign(step.delta[driven])
            np.testing.assert_allclose((total[driven] + slip)[moving], 0.0, atol=1e-6)
            at_limit, within = (
                at_limit + step.actuator_limited.sum(),
                within + (~step.actuator_limited).sum(),
            )
    assert kappa is not None or (at_limit > 5 and within > 5)


OPTIONS = {
    "exact": qdsim.Options(margin=0.3),
    "pyramid": qdsim.Options(margin=0.3, friction="pyramid", h=0.07, damping=True),
    "smoothed": qdsim.Options(margin=0.3, kappa=300.0, epsilon=0.6, damping=True),
}
LIMITS = (
    "q",
    "u",
    "tau",
    "joint_stiffness",
    "joint_friction",
    "joint_damping",
    "actuator_stiffness",
    "actuator_gain",
    "actuator_bias",
    "actuator_damping",
    "actuator_force_range",
)


@pytest.mark.short_cases(1)
@pytest.mark.parametrize("kind", list(OPTIONS))
@pytest.mark.parametrize("name", list(scenes()))
def test_derivatives(name: str, kind: str) -> None:
    scene, options, rng = scenes()[name], OPTIONS[kind], np.random.default_rng(6)
    model = scene.model
    compared = left_out = 0
    for _ in range(4 if kind == "exact" else 2):
        state = sample(scene, rng)
        d = differential(scene, state, options)
        lin = qdsim.linearize(
            model, state["q"], state["u"], options, tau=state["tau"], wrench=state["wrench"]
        )
        scale = max(1.0, np.abs(lin.A).max())
        np.testing.assert_allclose(d.jvp({"q": np.eye(model.nv)}).T, lin.A, atol=1e-8 * scale)
        np.testing.assert_allclose(d.jvp({"u": np.eye(model.nu)}).T, lin.B, atol=1e-8 * scale)
        if not d.step.info.derivative_exact:
            left_out += 1
            continue
        w = rng.uniform(-1, 1, model.nv)
        pulled = d.vjp(w, LIMITS)
        for argument, tangent in tangents(model, rng, LIMITS).items():
            ours = d.jvp({argument: tangent})
            backward = np.sum(pulled[argument] * tangent)
            size = max(1.0, np.abs(pulled[argument] * tangent).sum())
            assert abs(w @ ours - backward) <= 1e-8 * size, argument
            if argument in ("joint_damping", "actuator_damping"):
                continue  # at their bound
            for eps in (4e-5, 1e-5):
                wide, narrow = differences(model, state, {argument: tangent}, options, eps)
                if np.abs(wide - narrow).max() <= STANDARD * max(1.0, np.abs(ours).max()):
                    break
            else:
                left_out += 1
                continue
            compared += 1
            np.testing.assert_allclose(
                ours, narrow, atol=STANDARD * max(1.0, np.abs(ours).max()), err_msg=argument
            )
    assert compared >= 0.7 * (compared + left_out)


def test_batches_are_single_steps_and_steps_are_kept() -> None:
    scene, rng = scenes()["box"], np.random.default_rng(8)
    model = scene.model
    q, u = (np.array(x) for x in zip(*(scene.sample(rng) for _ in range(6))))
    own = {
        "actuator_force_range": model.parameters.actuator_force_range
        * rng.uniform(0.5, 2, (6, 1, 1)),
        "joint_friction": model.parameters.joint_friction * rng.uniform(0.5, 2, (6, 1)),
    }
    own["actuator_force_range"][2] = [-np.inf, np.inf]
    batch = qdsim.step_batch(model, q, u, OPTIONS["exact"], parameters=own)
    for i in range(6):
        variant = model.with_parameters(**{name: value[i] for name, value in own.items()})
        step = qdsim.step(variant, q[i], u[i], OPTIONS["exact"])
        np.testing.assert_array_equal(batch.q_next[i], step.q_next)
        np.testing.assert_array_equal(batch.actuator_force[i], step.actuator_force)
        np.testing.assert_array_equal(batch.actuator_limited[i], step.actuator_limited)
        again = pickle.loads(pickle.dumps(step))
        np.testing.assert_array_equal(again.actuator_force, step.actuator_force)
        np.testing.assert_array_equal(again.actuator_limited, step.actuator_limited)
        warm = qdsim.step(variant, q[i], u[i], OPTIONS["exact"], warm_start=step)
        np.testing.assert_allclose(warm.q_next, step.q_next, atol=1e-7)
        np.testing.assert_allclose(warm.actuator_force, step.actuator_force, atol=1e-5)


def test_wrong_limits_are_named() -> None:
    model = gripper(1.0)
    for wrong, words in (
        ([[1.0, -1.0], [0.0, 1.0]], "force_range must have lower < upper"),
        ([[np.nan, 1.0], [0.0, 1.0]], "force_range"),
        ([[np.inf, np.inf], [0.0, 1.0]], "force_range"),
    ):
        with pytest.raises(ValueError, match=words):
            model.with_parameters(actuator_force_range=wrong)
        with pytest.raises(ValueError, match=r"actuator_force_range.*element 0: "):
            qdsim.step_batch(
                model,
                model.default_q[None],
                np.zeros((1, 2)),
                parameters={"actuator_force_range": np.array([wrong])},
            )
    with pytest.raises(ValueError, match="friction must not be negative"):
        model.with_parameters(joint_friction=-1.0)
    with pytest.raises(TypeError, match="force_limits"):
        qdsim.Options(force_limits=2.0)  # type: ignore[arg-type]


def test_limits_from_tiny_to_huge() -> None:
    """What a joint is pulled with by limits of 1e-12 to 1e12 N, and as friction."""
    for limit in 10.0 ** np.arange(-12, 13, 3):
        model = gripper(float(limit))
        step = qdsim.step(model, qdsim.step(model, model.default_q, [0.1, 0.2]).q_next, [0.2, 0.3])
        squeeze = min(limit, step.actuator_force[0])
        np.testing.assert_allclose(step.actuator_force, squeeze, rtol=1e-6, atol=1e-9)
        assert limit > 5 or step.actuator_force[0] == pytest.approx(limit, rel=1e-6, abs=1e-9)
        block = slider(float(limit))
        moved = qdsim.step(block, [0.0], [], wrench={"b": [0, 0, 1.0, 0, 0, 0]}).q_next
        assert moved == pytest.approx([max(0.0, 1.0 - limit) * 0.005], abs=1e-12)


LIMP = """<mujoco><worldbody><geom type="sphere" size="0.1" pos="-0.15 0 0"/><body>
<joint name="x" type="slide" axis="1 0 0"/><joint name="y" type="slide" axis="0 1 0"/>
<geom type="sphere" size="0.04" mass="1"/></body></worldbody><actuator>
<position joint="x" kp="100"/><position joint="y" kp="100"/></actuator></mujoco>"""


@pytest.mark.parametrize("kappa", [1.0, 100.0, 1e4])
def test_a_joint_without_force_is_not_pushed_away_for_ever_by_a_barrier(kappa: float) -> None:
    """Its inertia holds it, as docs/formulation.md says: between a thousandth and a half of its stiffness. Before,
    some 600 iterations took a limp Allegro hand half a million metres away."""
    model = qdsim.load(LIMP).with_parameters(actuator_force_range=np.zeros((2, 2)))
    step = qdsim.step(model, np.zeros(2), np.zeros(2), qdsim.Options(kappa=kappa, margin=0.1))
    pushed = step.contacts["force"][0][0]
    assert 100.0 / 1000.0 <= pushed / step.q_next[0] <= 100.0 / 2.0
    assert step.info.factorizations < 30
    np.testing.assert_array_equal(step.actuator_force, 0.0)


@pytest.mark.parametrize("kappa", [None, 1e4])
@pytest.mark.parametrize("pushed", [0.5, -0.5])
@pytest.mark.parametrize("told", [1.0, -1.0])
def test_what_is_pushed_beyond_a_limit_moves_by_the_sum_of_both_forces(
    kappa: float | None, pushed: float, told: float
) -> None:
    """A mass of 1 kg, whose actuator pulls towards its command with 1 mN at most: m delta = h^2 (both), and the actuator
    is said to pull where it does. It was said to pull against the motion, whichever way its command was."""
    model = qdsim.load(
        """<mujoco><option gravity="0 0 0"/><worldbody><body><joint name="j" type="slide" axis="1 0 0"/>
        <geom size="0.1" mass="1"/></body></worldbody>
        <actuator><position joint="j" kp="1000" forcerange="-0.001 0.001"/></actuator></mujoco>"""
    )
    step = qdsim.step(model, [0.0], [told], qdsim.Options(h=0.1, kappa=kappa), tau=[pushed])
    pull = np.copysign(1e-3, told)
    np.testing.assert_allclose(step.q_next, 0.01 * (pushed + pull), atol=1e-6 if kappa else 1e-9)
    np.testing.assert_allclose(step.actuator_force, pull, rtol=1e-9)
    assert step.actuator_limited.all()


@pytest.mark.long
def test_limits_of_files_are_mujocos() -> None:
    """At rest, actuators pull with what mj_forward says, clamped by forcerange and actuatorfrcrange."""
    rng = np.random.default_rng(12)
    clamped = 0
    for _ in range(30):
        xml = chain(rng, 4, 1)
        for name in ("position", "motor", "velocity", "general", "cylinder"):
            force = f"{rng.uniform(-6, -1):.2f} {rng.uniform(1, 6):.2f}"
            xml = xml.replace(f"<{name} ", f'<{name} forcerange="{force}" ')
        xml = xml.replace('name="j1"', 'name="j1" actuatorfrcrange="-2 1"')
        xml = xml.replace('name="j2"', f'name="j2" frictionloss="{rng.uniform(0, 3):.2f}"')
        model, mj = qdsim.load(xml), mujoco.MjModel.from_xml_string(xml)
        data = mujoco.MjData(mj)
        q, u = draw(rng, model)
        u = np.clip(20 * u, model.u_lower, model.u_upper)
        slow = mj.actuator_actadr >= 0
        data.qpos[:], data.ctrl[:] = q, u
        data.act[mj.actuator_actadr[slow]] = u[slow]
        mujoco.mj_forward(mj, data)
        still = qdsim.step(model, q, u, qdsim.Options(held=model.joint_names))
        np.testing.assert_allclose(
            still.actuator_force, data.qfrc_actuator[model.actuated_v], rtol=1e-9, atol=1e-9
        )
        clamped += int(still.actuator_limited.sum())
        assert model.parameters.joint_friction[2] == mj.dof_frictionloss[2]
        again = qdsim.load(model.description.to_mjcf())
        np.testing.assert_allclose(
            again.parameters.actuator_force_range, model.parameters.actuator_force_range, rtol=1e-12
        )
    assert clamped > 20


def test_holding_commands_stay_within_the_limits() -> None:
    """A finger that bears a load at arm's length: held by as much as it can, else an error."""
    model = qdsim.load(
        """<mujoco><worldbody><body pos="0 0 1"><joint name="j" axis="0 -1 0"/>
        <geom type="capsule" size=".02" fromto="0 0 0 .5 0 0"/></body>
        <body name="b" pos=".4 0 1.07"><joint type="slide" axis="0 0 1"/><geom type="sphere" size=".05" mass=".2"/>
        </body></worldbody><actuator><position joint="j" kp="50" gear="-2"/></actuator></mujoco>"""
    )
    needed = 0.2 * 9.81 * 0.4
    for limit, held in ((2 * needed, True), (1.001 * needed, True), (0.9 * needed, False)):
        bounded = model.with_parameters(actuator_force_range=[[-limit, limit]])
        if held:
            holding = planning.holding_command(bounded, [0.0, 0.0])
            assert holding.torque == pytest.approx([needed], rel=1e-6)
            after = qdsim.step(bounded, [0.0, 0.0], holding.u)
            np.testing.assert_allclose(after.delta, 0.0, atol=1e-6)
            assert after.actuator_force == pytest.approx([needed], rel=1e-6)
        else:
            with pytest.raises(planning.EquilibriumError):
                planning.holding_command(bounded, [0.0, 0.0])


def allegro(limit: float) -> planning.Task:
    task = systems.load("allegro_sphere").tasks["half_turn"]
    model = task.model
    ranges = np.tile([-limit, limit], (model.nu, 1))
    return dataclasses.replace(task, model=model.with_parameters(actuator_force_range=ranges))


@pytest.mark.long
def test_a_plan_of_the_ball_pulls_with_what_an_allegro_hand_has() -> None:
    task = allegro(0.7)
    tree = planning.rrt(task, dataclasses.replace(task.planner, max_iterations=400), rng=1)
    assert tree.reached
    hardest = 0.0
    for segment in tree.plan().segments:
        q = segment.start
        for u in segment.inputs:
            step = qdsim.step(task.model, q, u, task.options)
            q, hardest = step.q_next, max(hardest, np.abs(step.actuator_force).max())
    assert 0.5 < hardest <= 0.7 * (1 + 1e-9)
    verdict = tree.plan().check(task.model, require_static_regrasps=False)
    assert verdict.largest_forces is not None
    assert max(verdict.largest_forces) == pytest.approx(hardest, rel=1e-12)
    assert any("actuators keep their limits" in note for note in verdict.notes)


def test_a_plan_with_two_arms_pulls_with_what_they_have() -> None:
    """A box moved and turned by two arms with an iiwa's torques; the plan says so, and weaker arms are told off."""
    task = systems.load("iiwa_bimanual_box").tasks["turn"]
    torques = np.resize([320.0, 320.0, 176.0, 176.0, 110.0, 40.0, 40.0], task.model.nu)
    model = task.model.with_parameters(actuator_force_range=np.column_stack((-torques, torques)))
    limited = dataclasses.replace(task, model=model)
    change = np.array([0.05, 0.0, 0.0, 0.0, 0.0, 0.25])
    near = limited.towards(limited.with_object(limited.start, change))
    trees = [planning.rrt(near, rng=seed) for seed in range(2)]
    plan = next(tree.plan() for tree in trees if tree.reached)
    verdict = plan.check(model, require_static_regrasps=False)
    assert verdict.good
    assert np.all(np.array(verdict.largest_forces) <= torques * (1 + 1e-9))
    assert any("actuators keep their limits" in note for note in verdict.notes)
    half = 0.5 * np.array(verdict.largest_forces)
    weak = task.model.with_parameters(actuator_force_range=np.column_stack((-half, half)))
    step = dataclasses.replace(plan, options=plan.options.replace(force_limits=False))
    faults = step.check(weak, require_static_regrasps=False).faults
    assert any("times what it can" in fault for fault in faults)


def test_grips_ask_for_no_more_than_the_limits() -> None:
    """A gripper told to hold a box that is heavier than its fingers can: its commands stay in their reach."""
    from qdsim.planning.grasps.grip import Grip

    model = qdsim.load(
        """<mujoco><worldbody>
        <body pos="0 -0.06 0.1"><joint name="l" type="slide" axis="0 1 0" range="-.1 .1"/><geom type="box" size=".02 .01 .02"/></body>
        <body pos="0 0.06 0.1"><joint name="r" type="slide" axis="0 -1 0" range="-.1 .1"/><geom type="box" size=".02 .01 .02"/></body>
        <body name="box" pos="0 0 0.1"><freejoint/><geom type="box" size=".03 .05 .03" mass="1"/></body>
        </worldbody><actuator><position joint="l" kp="1000"/><position joint="r" kp="1000"/></actuator></mujoco>"""
    )
    q = np.array(model.default_q)
    free = Grip(model, "box", 0.05).command(q, np.zeros(6))
    asked = 1000.0 * np.abs(free.u - q[:2])
    assert asked.min() > 6.0
    for limit in (4.0, 8.0):
        bounded = model.with_parameters(actuator_force_range=np.tile([-limit, limit], (2, 1)))
        told = Grip(bounded, "box", 0.05).command(q, np.zeros(6))
        assert np.all(1000.0 * np.abs(told.u - q[:2]) <= limit * (1 + 1e-6))
        step = qdsim.step(bounded, q, told.u, qdsim.Options(h=0.02))
        assert np.abs(step.actuator_force).max() <= limit * (1 + 1e-9)


def test_reach_of_commands() -> None:
    """What iMPC bounds its commands by, and holding commands theirs: limits over stiffness, through the gear."""
    model = gripper(1.0).with_parameters(actuator_force_range=[[-2.0, 4.0], [-np.inf, 8.0]])
    below, above = force_reach(model)
    np.testing.assert_allclose(below, [-2 / 200, -np.inf])
    np.testing.assert_allclose(above, [4 / 200, 8 * 2 / 400])
    turned = qdsim.load(GRIPPER.replace('gear="2"', 'gear="-2"'))
    turned = turned.with_parameters(actuator_force_range=[[-2.0, 4.0], [-3.0, 8.0]])
    np.testing.assert_allclose(force_reach(turned)[0], [-2 / 200, -8 * 2 / 400])
    np.testing.assert_allclose(force_reach(turned)[1], [4 / 200, 3 * 2 / 400])


AT_REST = """
<mujoco><compiler angle="radian"/><worldbody>
  <body name="a" gravcomp="1"><joint name="a" axis="0 0 1"/>
    <geom type="capsule" size="0.02" fromto="0 0 0 0.3 0 0" mass="0.5"/>
    <body name="b" pos="0.3 0 0"><joint name="b" axis="0 0 1"/>
      <geom type="capsule" size="0.02" fromto="0 0 0 0.3 0 0" mass="0.5"/>
      <body name="c" pos="0.3 0 0"><joint name="c" axis="0 0 1" frictionloss="0.1"/>
        <geom type="capsule" size="0.02" fromto="0.03 0 0 0.2 0 0" mass="0.5"/>
        <geom name="tip" pos="0.2 0.03 0" size="0.01"/></body></body></body>
  <body name="o" pos="0.5 0.4 0"><freejoint/><geom size="0.03" mass="0.1"/></body></worldbody>
  <actuator><position joint="a" kp="4500" forcerange="-87 87"/><position joint="b" kp="3500" forcerange="-87 87"/>
    <position joint="c" kp="2000" forcerange="-12 12"/></actuator></mujoco>"""


def test_springs_with_limits_rest_where_they_are_told() -> None:
    """Forces that are nothing but rounding, of springs that alone hold their joints, are no contradiction."""
    model = qdsim.load(AT_REST)
    rng = np.random.default_rng(0)
    for size in np.repeat([1e-20, 1e-16, 1e-15, 1e-13, 1e-10], 120):
        q = np.array(model.default_q)
        q[:3] = rng.uniform(-1, 1, 3)
        if model.collide(q, 0.0).size:
            continue
        step = qdsim.step(model, q, model.command_from(q) + size * rng.standard_normal(3))
        if not model.collide(q, 0.3).size:  # the ball falls 0.1 m in a step
            np.testing.assert_allclose(step.q_next[:3], q[:3], atol=1e-9)


def test_dry_friction_of_joints_that_follow_each_other_holds_together() -> None:
    """Two coupled joints hold up to the sum of their friction, whichever of them carries it, and slip beyond."""
    model = qdsim.load(
        """<mujoco><option gravity="0 0 0"/><worldbody>
      <body name="a"><joint name="a" axis="0 0 1" frictionloss="1"/><geom size="0.1" mass="1"/></body>
      <body name="b" pos="1 0 0"><joint name="b" axis="0 0 1" frictionloss="0.6"/><geom size="0.1" mass="1"/></body>
      <body name="c" pos="2 0 0"><joint name="c" axis="0 0 1" frictionloss="0.3"/><geom size="0.1" mass="1"/></body>
      </worldbody><equality><joint joint1="b" joint2="a" polycoef="0 -1 0 0 0"/>
        <joint joint1="c" joint2="b"/></equality></mujoco>"""
    )
    q = np.array(model.default_q)
    for torque in (0.2, 0.9, -1.2, 1.5, -1.8, 1.85):
        step = qdsim.step(model, q, [], tau=[torque, 0, 0])
        np.testing.assert_allclose(step.q_next, q, atol=1e-10)
    assert qdsim.step(model, q, [], tau=[1.95, 0, 0]).q_next[0] > 1e-4
    assert qdsim.step(model, q, [], tau=[0.2, 2.0, 0]).q_next[1] == pytest.approx(0.0, abs=1e-10)
    assert qdsim.step(model, q, [], tau=[0.0, 2.0, 0.0]).q_next[1] > 1e-4


def test_limits_that_no_force_reaches_change_no_bit() -> None:
    """Springs within their limits are springs."""
    rng = np.random.default_rng(5)
    for scene in (planar_hand(), arm()):
        model = scene.model
        far = model.with_parameters(actuator_force_range=[[-1e4, 1e4]] * model.nu)
        free = model.with_parameters(actuator_force_range=[[-np.inf, np.inf]] * model.nu)
        for _ in range(4):
            q, u = scene.sample(rng)
            a, b = qdsim.step(far, q, u), qdsim.step(free, q, u)
            assert np.array_equal(a.q_next, b.q_next)
            assert a.info.factorizations == b.info.factorizations


def test_a_load_pulls_an_actuator_over_its_limit() -> None:
    """At rest it pulls with nothing; under a load of 20 N with 10 N, and a floor carries what is left."""
    scene = qdsim.SceneBuilder(gravity=(0, 0, 0))
    scene.body("ball", mass=2.0, inertia=(1, 1, 1))
    scene.joint("ball", "slide", axis=(0, 0, 1))
    scene.geom("ball", "sphere", 0.1)
    scene.geom("world", "plane", pos=(0, 0, -0.101))
    scene.actuator("ball", stiffness=1e5)
    model = qdsim.build(scene.build())
    for limit, moved, force in ((30.0, -2e-4, 20.0), (10.0, -1e-3, 10.0)):
        limited = model.with_parameters(actuator_force_range=[[-limit, limit]])
        step = qdsim.step(limited, [0.0], [0.0], tau=[-20.0])
        np.testing.assert_allclose(step.delta, moved, atol=1e-12)
        np.testing.assert_allclose(step.actuator_force, force, atol=1e-9)
        assert step.actuator_limited.tolist() == [limit == force]
        carried = step.contacts["force"][:, 0].sum() if len(step.contacts) else 0.0
        np.testing.assert_allclose(carried, 20.0 - force, atol=1e-9)


@pytest.mark.parametrize("kappa", [10.0, 100.0, 1e4])
def test_a_barriers_own_step_is_a_start_at_its_end(kappa: float) -> None:
    """Joints that pull with a part and with nearly all of what they have: the step itself as its start is its
    solution, so there is nothing to do."""
    model = qdsim.load(
        """<mujoco><worldbody><body><joint name="a" axis="0 1 0"/><geom type="capsule" size=".03" fromto="0 0 0 .3 0 0"
        mass="1"/><body pos=".3 0 0"><joint name="b" axis="0 1 0"/><geom type="capsule" size=".03" mass="1"
        fromto="0 0 0 .3 0 0"/></body></body></worldbody><actuator><position joint="a" kp="80" forcerange="-9 9"/>
        <position joint="b" kp="40" forcerange="-3 3"/></actuator></mujoco>"""
    )
    options, q = qdsim.Options(kappa=kappa), np.zeros(2)
    for u, tau in (([-0.4, 0.1], [6.0, -2.0]), ([-0.1, -0.3], [8.5, 2.9])):
        step = qdsim.step(model, q, u, options, tau=tau)
        again = qdsim.step(model, q, u, options, tau=tau, warm_start=step)
        np.testing.assert_allclose(again.q_next, step.q_next, rtol=0, atol=1e-12)
        assert step.info.iterations > 0
        assert again.info.iterations == 0
