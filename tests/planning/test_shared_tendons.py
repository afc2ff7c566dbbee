"""Fingers whose two outer joints share one tendon: planners steer its length, and the step finds how the joints share
it. Springs in the joints, or friction, decide that where nothing touches."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import qdsim
from qdsim import planning
from qdsim.planning.task import drives, robot
from qdsim.planning.tracking.cost_model import CostModel
from qdsim.planning.tracking.shooting import Shooting

OPTIONS = qdsim.Options(h=0.1, margin=0.1)
SHARE = (1.0, 0.8)
"""How much a tendon's length changes with its two joints."""


def finger(name: str, side: int, spring: str) -> str:
    return f"""<body name="{name}0" pos="{0.15 * side} 0 0"><joint name="{name}0" axis="0 0 {-side}" range="-1.5 1.5"/>
      <geom type="capsule" fromto="0 0 0 0 0.15 0" size="0.03" mass="0.1"/>
      <body name="{name}1" pos="0 0.15 0"><joint name="{name}1" axis="0 0 {side}" range="0 1.6" {spring}/>
        <geom type="capsule" fromto="0 0 0 0 0.12 0" size="0.03" mass="0.1"/>
        <body name="{name}2" pos="0 0.12 0"><joint name="{name}2" axis="0 0 {side}" range="0 1.6" {spring}/>
          <geom type="capsule" fromto="0 0 0 0 0.1 0" size="0.03" mass="0.1"/></body></body></body>"""


def tendon(name: str) -> str:
    return f"""<fixed name="{name}"><joint joint="{name}1" coef="{SHARE[0]}"/>
      <joint joint="{name}2" coef="{SHARE[1]}"/></fixed>"""


def actuators(name: str) -> str:
    return f"""<position name="{name}0" joint="{name}0" kp="50"/>
      <position name="{name}t" tendon="{name}" kp="20" forcerange="-30 30"/>"""


@functools.cache
def hand(spring: str = 'stiffness="2"') -> qdsim.Model:
    """Two fingers in a plane, and a disc between them."""
    both = (("l", -1), ("r", 1))
    return qdsim.load(
        f"""<mujoco model="tendon hand"><compiler angle="radian"/><option gravity="0 0 0"/>
        <default><geom friction="0.6"/><joint damping="0.05"/></default>
        <worldbody>{"".join(finger(*one, spring) for one in both)}
          <body name="disc" pos="0 0.26 0"><joint name="x" type="slide" axis="1 0 0"/>
            <joint name="y" type="slide" axis="0 1 0"/><joint name="turn" axis="0 0 1"/>
            <geom name="disc" type="sphere" size="0.1" mass="1"/></body></worldbody>
        <tendon>{"".join(tendon(name) for name, _ in both)}</tendon>
        <actuator>{"".join(actuators(name) for name, _ in both)}</actuator></mujoco>"""
    )


def open_hand(model: qdsim.Model) -> np.ndarray:
    q = np.array(model.default_q)
    for joint in ("l1", "l2", "r1", "r2"):
        q[model.slice_q(joint)] = 0.1
    return q


@functools.cache
def turning(spring: str = 'stiffness="2"') -> planning.Task:
    """By half a radian and 2 cm, from a grasp, with others to be taken."""
    model = hand(spring)
    start = planning.close_grasp(model, open_hand(model), [0.0, 1.0, 0.0, 1.0]).q
    goal = np.array(start)
    goal[-2:] += 0.02, 0.5
    return planning.Task(
        "turn",
        model,
        OPTIONS,
        start,
        goal,
        "disc",
        lower=[-0.05, -0.05, -0.7],
        upper=[0.05, 0.05, 0.7],
        position_tolerance=0.01,
        rotation_tolerance=0.05,
        length=0.1,
        sampler=planning.samplers.ClosingSampler(
            "disc",
            basis=np.eye(4),
            mean=[-0.3, 1.2, -0.3, 1.2],
            spread=[1.0, 0.8, 1.0, 0.8],
            opened=[0.2, 0.05, 0.2, 0.05],
            contacts=2,
            reach=1.5,
        ),
    )


# ---------------------------------------------------------------- lengths


def test_lengths_are_those_of_joints_and_tendons() -> None:
    model, rng = hand(), np.random.default_rng(0)
    q = rng.uniform(0.1, 1.0, (5, model.nq))
    found = drives.lengths(model, q)
    np.testing.assert_array_equal(found[:, [0, 2]], q[:, [0, 3]])
    np.testing.assert_allclose(found[:, 1], q[:, 1] + 0.8 * q[:, 2], rtol=1e-15)
    np.testing.assert_array_equal(drives.lengths(model, q[0]), found[0])
    names = [joint.name for joint in drives.robot_joints(model)]
    assert names == ["l0", "l1", "l2", "r0", "r1", "r2"]
    assert drives.owners(model).tolist() == [0, 1, 1, 2, 3, 3]
    slope = drives.slopes(model, q)
    for k in range(model.nv):
        moved = np.array(q)
        moved[:, k] += 0.1
        np.testing.assert_allclose(
            drives.lengths(model, moved) - found, 0.1 * slope[:, :, k], atol=1e-15
        )
    share = drives.shares(model, q[0])
    np.testing.assert_allclose(slope[0] @ share, np.eye(4), atol=1e-15)
    np.testing.assert_allclose(share[1:3, 1], np.array(SHARE) / np.dot(SHARE, SHARE))


def test_limits_and_bodies_are_those_of_all_joints_of_a_tendon() -> None:
    model = hand()
    lower, upper = robot.command_range(model)
    np.testing.assert_allclose(lower, [-1.5, 0.0, -1.5, 0.0])
    np.testing.assert_allclose(upper, [1.5, 1.8 * 1.6, 1.5, 1.8 * 1.6])
    moved = robot.moved_bodies(model)
    for name, first in (("l", 0), ("r", 2)):
        for link in range(3):
            expected = [False] * 4
            expected[first : first + 2] = [True, link > 0]
            assert moved[:, model.body_index(f"{name}{link}")].tolist() == expected
    assert not moved[:, model.body_index("disc")].any()
    assert robot.turning(model).all()


@pytest.mark.parametrize("points", [False, True])
def test_hands_are_put_at_lengths_by_the_least_motion(points: bool) -> None:
    """Also along a tendon through points, whose length is no linear function."""
    model = hand() if not points else through_points()
    q, rng = open_hand(hand()) if not points else np.array([0.3, 0.4]), np.random.default_rng(1)
    for _ in range(5):
        wanted = drives.lengths(model, q) * rng.uniform(0.97, 1.03, model.nu)
        there = q[None].copy()
        drives.put_lengths(model, there, wanted[None])
        np.testing.assert_allclose(drives.lengths(model, there)[0], wanted, atol=1e-9)
        low, high = drives.robot_limits(model)
        assert np.all(
            (there[0, drives.robot_q(model)] >= low) & (there[0, drives.robot_q(model)] <= high)
        )


def through_points() -> qdsim.Model:
    """A finger of two joints that a string bends."""
    return qdsim.load("""<mujoco><compiler angle="radian"/><worldbody>
      <site name="s0" pos="0.05 0.02 0"/>
      <body name="a"><joint name="a" axis="0 0 1" range="-1.5 1.5" stiffness="1"/><geom size="0.01" pos="0.1 0 0" mass="0.1"/>
        <site name="s1" pos="0.1 0.02 0"/>
        <body name="b" pos="0.15 0 0"><joint name="b" axis="0 0 1" range="-1.5 1.5" stiffness="1"/>
          <geom size="0.01" pos="0.1 0 0" mass="0.1"/><site name="s2" pos="0.08 0.02 0"/></body></body>
      </worldbody><tendon><spatial name="t"><site site="s0"/><site site="s1"/><site site="s2"/></spatial></tendon>
      <actuator><position name="t" tendon="t" kp="500"/></actuator></mujoco>""")


# ---------------------------------------------------------------- what planners compute


def test_the_cost_of_a_robots_posture_is_that_of_its_lengths() -> None:
    """The quadratic model along a trajectory against differences of the cost: exact, as lengths are linear."""
    task, rng = turning(), np.random.default_rng(2)
    weights = planning.TrackingCost(0.0, robot=(1.0, 2.0, 3.0, 4.0), command=1.0, final_object=0.0)
    cost = CostModel(task, weights)
    T, nv = 3, task.model.nv
    q = np.tile(task.start, (T + 1, 1)) + 0.1 * rng.standard_normal((T + 1, nv))
    Q, linear = cost.expand(q[1:])
    u = np.zeros((T, 4))
    delta = rng.standard_normal((T, nv))
    moved = np.array(q)
    moved[1:] += delta
    change = cost.values(moved, u, u[0])[0] - cost.values(q, u, u[0])[0]
    model = np.sum(linear * delta) + 0.5 * np.einsum("ti,tij,tj->", delta, Q, delta)
    assert model == pytest.approx(change, rel=1e-10)


def test_a_holding_command_balances_the_tendons_joints_and_the_disc() -> None:
    """Its step leaves everything where it is: forces of contacts and springs in joints, pulls along tendons."""
    model = hand()
    q, u = turning().start, np.array(turning().model.command_from(turning().start))
    u += [-0.05, 0.2, -0.05, 0.2]
    for _ in range(60):
        q = np.array(qdsim.step(model, q, u, OPTIONS).q_next)
    found = planning.holding_command(model, q)
    still = qdsim.step(model, q, found.u, OPTIONS)
    np.testing.assert_allclose(still.delta, 0.0, atol=1e-8)
    np.testing.assert_allclose(still.actuator_force, found.torque, atol=1e-6)
    q[model.slice_q("l2")] += (
        0.5  # nothing but the disc's and the springs' forces could hold it there
    )
    with pytest.raises(planning.EquilibriumError, match="cannot hold the load"):
        planning.holding_command(model, q)


def test_dry_friction_helps_to_hold_what_a_tendon_leaves_open() -> None:
    """Where fingers press with one link each and no spring is in their joints: as much as it takes, and no more."""
    loose, rubbing = hand('frictionloss="0.4"'), hand('frictionloss="0.05"')
    q = np.array(turning().start)
    load = np.zeros(loose.nv)
    load[loose.slice_v("l2")] = 0.3  # turns the outer link; the inner one feels nothing of it
    found = planning.holding_command(loose, q, tau=load)
    still = qdsim.step(loose, q, found.u, OPTIONS, tau=load)
    np.testing.assert_allclose(still.delta, 0.0, atol=1e-8)
    with pytest.raises(planning.EquilibriumError, match="cannot hold the load"):
        planning.holding_command(rubbing, open_hand(rubbing), tau=load)
    found = planning.holding_command(loose, open_hand(loose), tau=load)
    still = qdsim.step(loose, open_hand(loose), found.u, OPTIONS, tau=load)
    np.testing.assert_allclose(still.delta, 0.0, atol=1e-8)


def test_an_outer_joint_closes_on_where_an_inner_one_has_stopped() -> None:
    """Both move in proportion to their shares until the inner link meets something."""
    model = hand()
    q = open_hand(model)
    q[model.slice_q("y")] = -0.12  # the disc stands beside the first links
    for name in "lr":
        q[model.slice_q(f"{name}0")] = 0.3
    free = planning.close_grasp(model, q, [0.0, 0.5, 0.0, 0.5], reach=1.0)
    for name in "lr":
        inner, outer = (free.q[model.slice_q(f"{name}{k}")][0] - 0.1 for k in (1, 2))
        np.testing.assert_allclose(inner / outer, SHARE[0] / SHARE[1])
        np.testing.assert_allclose(inner + 0.8 * outer, 0.5)
    ends = planning.close_grasp(model, q, [0.0, 9.0, 0.0, 9.0], reach=1.0)
    assert ends.at_limit[[1, 3]].any() or ends.blocked[[1, 3]].any()
    touched = planning.close_grasp(model, open_hand(model), [0.0, 3.0, 0.0, 3.0])
    assert touched.blocked.tolist() == [False, True, False, True]
    assert len(touched.touching) > 0


# ---------------------------------------------------------------- plans


def test_impc_turns_the_disc_by_tendons() -> None:
    task = turning()
    result = planning.impc(task)
    assert result.reached
    plan = result.plan()
    verdict = plan.check(task.model)
    assert verdict.good and verdict.replay_error == 0.0
    assert max(verdict.largest_forces) <= 30.0


@pytest.mark.long
def test_impc_without_the_derivative_by_configurations() -> None:
    """A robot follows its commands then: lengths do, and what they leave open of the joints stays."""
    task = turning()
    parts = Shooting(task, planning.ImpcOptions(use_A=False))
    u = np.tile(task.model.command_from(task.start), (3, 1))
    path = parts.roll_out(task.start, u, u[0])
    local = parts.linearize(path, planning.ImpcOptions().scheme(0), 0)
    own, slope = drives.robot_v(task.model), drives.slopes(task.model, task.start)
    np.testing.assert_allclose(slope @ local.B[0], np.eye(4), atol=1e-12)
    np.testing.assert_allclose(slope @ local.A[0], 0.0, atol=1e-12)
    still = local.A[0][np.ix_(own, own)]
    np.testing.assert_allclose(still @ still, still, atol=1e-12)
    assert np.linalg.matrix_rank(still) == 2
    result = planning.impc(task, planning.ImpcOptions(use_A=False))
    assert result.errors[1] < 0.3  # of 0.5 rad


@pytest.mark.long
def test_a_tree_turns_the_disc_by_tendons_and_its_plan_is_executed() -> None:
    """With changes of grasp that close the hand along its tendons; in a world of second order, by its commands and by a
    grip. Motions from grasp to grasp are not planned for such hands: segments begin as planned."""
    task = turning()
    tree = planning.rrt(task, planning.RRTOptions(max_nodes=500), rng=0)
    assert tree.reached and tree.regrasp_count > 0
    plan = tree.plan()
    assert plan.check(task.model).good
    with pytest.raises(ValueError, match=r"tendon that joints share.*carry_on=False"):
        planning.transfer(plan, task.model)
    each = planning.TransferOptions(carry_on=False)
    for controller in ("open", "grip"):
        executed = planning.transfer(plan, task.model, each, controller=controller)
        assert executed.rotation_error < 0.1 and executed.position_error < 0.02


@pytest.mark.long
def test_a_tree_limits_what_tendons_pull_with() -> None:
    """``force`` bounds the springs of all actuators, of tendons by their lengths."""
    tree = planning.rrt(turning(), planning.RRTOptions(max_nodes=40, force=2.0), rng=0)
    model, gear = turning().model, np.asarray(turning().model.actuator_gear)
    pulls = [
        model.parameters.actuator_stiffness
        * (tree.inputs(n) / gear - drives.lengths(model, tree.trajectory(n)))
        for n in range(tree.count)
        if tree.inputs(n) is not None
    ]
    assert len(pulls) > 5
    assert np.abs(np.concatenate(pulls)).max() <= 2.0 + 1e-9


# ---------------------------------------------------------------- what is refused


def test_what_puts_every_joint_where_it_wants_it_says_so() -> None:
    model = hand()
    q = open_hand(model)
    message = r"actuator 'lt' acts on a tendon that joints share"
    with pytest.raises(ValueError, match=message + "; a motion"):
        planning.connect(model, q, q)
    with pytest.raises(ValueError, match=message + "; reach_point"):
        planning.reach_point(model, q, "l2", [0, 0, 0], [0.0, 0.2, 0.0])
    sampler = planning.samplers.SurfaceSampler("disc")
    with pytest.raises(ValueError, match=message + "; SurfaceSampler"):
        sampler(model, q, np.random.default_rng(0))


def two(joints: tuple[str, ...], more: str = "", actuator: str = "") -> qdsim.Model:
    """A chain of joints ``a`` and ``b``, and a free object ``c``, some of which a tendon moves."""
    share = "".join(f'<joint joint="{name}" coef="1"/>' for name in joints)
    return qdsim.load(f"""<mujoco><worldbody>
      <body name="a"><joint name="a" type="slide" axis="1 0 0"/><geom size="0.01" mass="0.1"/>
        <body name="b" pos="0.1 0 0"><joint name="b" type="slide" axis="1 0 0"/><geom size="0.01" mass="0.1"/></body></body>
      <body name="c" pos="1 0 0"><freejoint name="c"/><geom size="0.01" mass="0.1"/></body></worldbody>
      <tendon><fixed name="t">{share}</fixed>{more}</tendon>
      <actuator><position name="t" tendon="t" kp="1"/>{actuator}</actuator></mujoco>""")


@pytest.mark.parametrize(
    ("actuator", "message"),
    [
        ('<position name="other" joint="b" kp="1"/>', "whose joint 'b' 'other' moves, too"),
        ('<position name="other" tendon="s" kp="1"/>', "whose joint 'b' 'other' moves, too"),
        ('<motor name="other" tendon="s"/>', "whose joint 'b' 'other' moves, too"),
    ],
)
def test_joints_that_more_than_one_actuator_moves_are_named(actuator: str, message: str) -> None:
    other = '<fixed name="s"><joint joint="b" coef="2"/></fixed>'
    model = two(("a", "b"), other, actuator)
    with pytest.raises(ValueError, match=message):
        planning.holding_command(model, model.default_q)


def massless(stiffness: float) -> qdsim.Model:
    """Two slides along one line, with nothing that weighs between them."""
    scene = qdsim.SceneBuilder()
    scene.body("a", mass=0.0)
    scene.joint("a", "slide", name="a", stiffness=stiffness)
    scene.body("b", parent="a", mass=1.0, inertia=(1, 1, 1))
    scene.joint("b", "slide", name="b")
    scene.tendon("t", joints={"a": 1.0, "b": 1.0})
    scene.actuator(None, 5.0, tendon="t", name="t")
    return qdsim.build(scene.build())


def test_joints_with_neither_mass_nor_springs_are_named() -> None:
    """How they share the length has no answer, and a step says so; a spring gives one."""
    model = massless(0.0)
    with pytest.raises(qdsim.SolverError, match="nothing determines how far"):
        qdsim.step(model, model.default_q, [0.1])
    with pytest.raises(
        ValueError, match="'t' pulls along tendon 't', whose joints have neither mass nor springs"
    ):
        planning.holding_command(model, model.default_q)
    model = massless(1.0)
    planning.holding_command(model, model.default_q)
    qdsim.step(model, model.default_q, [0.1])


def test_reduce_tendons_leaves_tendons_that_are_shared_freely() -> None:
    model = two(("a", "b"))
    assert planning.reduce_tendons(model) is model
    assert planning.reduce_tendons(hand()) is hand()
