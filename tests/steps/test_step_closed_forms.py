"""Steps whose answer is known on paper (formulation 5; CQDC, examples 3 and 4)."""

from __future__ import annotations

import numpy as np
import pytest

import qdsim

CART = """
<mujoco><option gravity="0 0 0"/>
  <worldbody>
    <geom type="plane" size="1 1 1" zaxis="1 0 0" condim="1"/>
    <body pos="0.1 0 0"><joint name="x" type="slide" axis="1 0 0"/>
      <geom type="sphere" size="0.1" condim="1" mass="2"/></body>
  </worldbody>{actuator}
</mujoco>"""


def cart(stiffness: float | None) -> qdsim.Model:
    actuator = f'<actuator><position joint="x" kp="{stiffness}"/></actuator>' if stiffness else ""
    return qdsim.load(CART.format(actuator=actuator))


@pytest.mark.parametrize("stiffness", [1.0, 50.0, 3e3])
def test_cart_against_wall(stiffness: float) -> None:
    """q+ = max(u, 0), and with the barrier (u + sqrt(u^2 + 4/(kappa k))) / 2; derivatives too."""
    model = cart(stiffness)
    exact = qdsim.Options(margin=10.0)
    for u in (-0.5, -1e-3, 1e-3, 0.4):
        lin = qdsim.linearize(model, [0.2], [u], exact)
        assert lin.q_next[0] == pytest.approx(max(u, 0.0), abs=1e-12)
        assert lin.B[0, 0] == pytest.approx(float(u > 0), abs=1e-9)
        assert lin.A[0, 0] == pytest.approx(0.0, abs=1e-9)
        assert lin.step.contacts["force"][0, 0] == pytest.approx(
            stiffness * max(-u, 0.0), abs=1e-7 * stiffness
        )
        for kappa in (1.0, 1e2, 1e4):
            lin = qdsim.linearize(model, [0.2], [u], exact.replace(kappa=kappa))
            root = np.sqrt(u * u + 4.0 / (kappa * stiffness))
            assert lin.q_next[0] == pytest.approx(0.5 * (u + root), rel=1e-8, abs=1e-10)
            assert lin.B[0, 0] == pytest.approx(0.5 * (1.0 + u / root), rel=1e-7, abs=1e-9)


@pytest.mark.parametrize("q", [-0.3, -1e-4, 0.0, 0.2])
def test_penetrating_block_is_projected(q: float) -> None:
    """Without a command the step is the projection f(q) = max(q, 0)."""
    model = cart(None)
    lin = qdsim.linearize(model, [q], [], qdsim.Options(margin=10.0))
    assert lin.q_next[0] == pytest.approx(max(q, 0.0), abs=1e-12)
    assert lin.B.shape == (1, 0)
    if q != 0.0:
        assert lin.A[0, 0] == pytest.approx(float(q > 0), abs=1e-9)


RESTING = """
<mujoco><option gravity="0 0 -10"/>
  <worldbody><geom type="plane" size="1 1 1"/>
    <body pos="0 0 0.5"><freejoint/><geom type="sphere" size="0.5" mass="1"/></body></worldbody>
</mujoco>"""


@pytest.mark.parametrize("friction", ["cone", "pyramid"])
def test_resting_ball_weighs_ten_newtons(friction: str) -> None:
    model = qdsim.load(RESTING)
    step = qdsim.step(model, model.default_q, [], qdsim.Options(friction=friction))
    np.testing.assert_allclose(step.contacts["force"], [[10.0, 0, 0, 0, 0, 0]], atol=1e-8)
    np.testing.assert_allclose(step.q_next, model.default_q, atol=1e-12)


@pytest.mark.parametrize("friction", ["cone", "pyramid"])
def test_free_fall_is_h_squared_g(friction: str) -> None:
    model = qdsim.load(RESTING)
    q = np.array(model.default_q)
    q[2] += 5.0
    for epsilon, h in [(1.0, 0.1), (0.5, 0.05)]:
        step = qdsim.step(model, q, [], qdsim.Options(friction=friction, epsilon=epsilon, h=h))
        np.testing.assert_allclose(step.delta, [0, 0, -10.0 * h * h / epsilon, 0, 0, 0], atol=1e-12)


SLIDER = """
<mujoco><option gravity="0 0 -10"/>
  <worldbody><geom type="plane" size="1 1 1" friction="{mu}"/>
    <body><joint name="x" type="slide" axis="1 0 0"/><joint name="z" type="slide" axis="0 0 1"/>
      <geom type="box" size="0.2 0.1 0.1" pos="0 0 0.1" mass="2" friction="{mu}"/></body>
    <body pos="-0.3 0 0.1"><joint name="push" type="slide" axis="1 0 0"/>
      <geom type="sphere" size="0.1" friction="0" condim="1" priority="1"/></body>
  </worldbody><actuator><position joint="push" kp="1000"/></actuator>
</mujoco>"""


@pytest.mark.parametrize("mu", [0.2, 0.5, 0.9])
@pytest.mark.parametrize("friction", ["cone", "pyramid"])
def test_coulomb_friction_of_a_pushed_box(mu: float, friction: str) -> None:
    """Sticks below mu m g; above it slides against mu times the normal force, and floats up by
    mu times the sliding distance (the boundary layer of the convex relaxation)."""
    model = qdsim.load(SLIDER.format(mu=mu))
    options = qdsim.Options(friction=friction, epsilon=1e-6, joint_limits=False)
    weight = 20.0
    stick = qdsim.step(model, [0, 0, 0], [0.5 * mu * weight / 1000], options)
    np.testing.assert_allclose(stick.q_next, 0.0, atol=1e-8)  # m, the solver's standard
    slide = qdsim.step(model, [0, 0, 0], [0.1], options)
    ground = slide.contacts[slide.contacts["dim"] == 3]
    assert ground["force"][:, 0].sum() == pytest.approx(weight, rel=1e-4)
    tangential = np.linalg.norm(ground["force"][:, 1:3], axis=1).sum()
    assert tangential == pytest.approx(mu * weight, rel=1e-4)
    distance = 0.1 - mu * weight / 1000
    assert slide.delta[0] == pytest.approx(distance, rel=1e-4)
    assert slide.delta[1] == pytest.approx(mu * distance, rel=1e-4)


SPIN = """
<mujoco><option gravity="0 0 -10"/>
  <worldbody><geom type="plane" size="1 1 1" condim="4" friction="0.5 0.02 0"/>
    <body pos="0 0 0.1"><freejoint/><geom type="sphere" size="0.1" mass="1" condim="4" friction="0.5 0.02 0"/>
    </body></worldbody>
</mujoco>"""


@pytest.mark.parametrize("friction", ["cone", "pyramid"])
def test_spinning_ball_moves_only_beyond_the_torsional_limit(friction: str) -> None:
    """Tracy and Manchester's spinning sphere: the torque limit is mu_torsion m g = 0.2 Nm."""
    model = qdsim.load(SPIN)
    options = qdsim.Options(friction=friction, epsilon=1.0)
    for torque in (0.1, 0.19, 0.3):
        tau = np.array([0, 0, 0, 0, 0, torque])
        step = qdsim.step(model, model.default_q, [], options, tau=tau)
        if torque < 0.2:
            np.testing.assert_allclose(step.delta, 0.0, atol=1e-9)
            assert step.contacts["force"][0, 3] == pytest.approx(-torque, abs=1e-8)
        else:
            assert step.delta[5] > 1e-3
            normal = step.contacts["force"][0, 0]
            assert step.contacts["force"][0, 3] == pytest.approx(-0.02 * normal, rel=1e-8)


def test_joint_limit_stops_and_reports_its_force() -> None:
    model = qdsim.load(
        '<mujoco><worldbody><body><joint name="j" axis="0 0 1" range="-30 45"/>'
        '<geom type="sphere" size="0.1"/></body></worldbody>'
        '<actuator><position joint="j" kp="10"/></actuator></mujoco>'
    )
    step = qdsim.step(model, [0.5], [1.5], qdsim.Options())
    assert step.q_next[0] == pytest.approx(np.deg2rad(45.0), abs=1e-12)
    assert step.limit_force[0] == pytest.approx(-10.0 * (1.5 - np.deg2rad(45.0)), abs=1e-8)
    beyond = qdsim.step(model, [1.0], [1.0], qdsim.Options())
    assert beyond.q_next[0] == pytest.approx(np.deg2rad(45.0), abs=1e-12)


def test_spring_rests_where_forces_balance() -> None:
    """A passive sprung joint under gravity settles where k (q - q_ref) = m g within many steps."""
    model = qdsim.load(
        '<mujoco><option gravity="0 0 -10"/><worldbody><body><joint type="slide" axis="0 0 1" '
        'stiffness="50" springref="0.3"/><geom type="sphere" size="0.1" mass="2"/></body>'
        "</worldbody></mujoco>"
    )
    q = np.array([0.0])
    for _ in range(120):
        q = qdsim.step(model, q, [], qdsim.Options()).q_next
    assert q[0] == pytest.approx(0.3 - 20.0 / 50.0, abs=1e-9)


def test_planar_input_matrix_in_closed_form() -> None:
    """CQDC equation (49), with the sign of formulation 5: B from the active rows of a grasped disc."""
    from program import contact_jacobian
    from scenes import planar_hand

    scene = planar_hand()
    model = scene.model
    q = np.array([0.0, 0.314, 0.0, -0.775, -0.785, 0.775, 0.785])
    u = model.command_from(q)
    options = qdsim.Options(h=0.05, margin=10.0, joint_limits=False)
    lin = qdsim.linearize(model, q, u, options)
    rows = []
    for contact in lin.step.contacts:
        force = contact["force"]
        if force[0] <= 1e-9:
            continue
        J = contact_jacobian(model, q, contact)
        mu = contact["friction"][0]
        for sign in (1.0, -1.0):
            beta = 0.5 * (force[0] + sign * force[1] / mu)
            if beta > 1e-9:
                rows.append(J[0] + sign * mu * J[1])
    J = np.array(rows)
    assert 2 <= len(J) <= 7
    K = np.diag(model.parameters.actuator_stiffness)
    M = model.mass_matrix(q)[:3, :3]
    Q = np.block([[M / options.h**2, np.zeros((3, 4))], [np.zeros((4, 3)), K]])
    P = np.linalg.pinv(J @ np.linalg.solve(Q, J.T), rcond=1e-10)
    B_actuated = np.eye(4) - np.linalg.solve(K, J[:, 3:].T) @ P @ J[:, 3:]
    B_object = -(options.h**2) * np.linalg.solve(M, J[:, :3].T) @ P @ J[:, 3:]
    np.testing.assert_allclose(lin.B, np.vstack([B_object, B_actuated]), atol=1e-8)


@pytest.mark.parametrize(
    "kappa, solution",
    [
        (1e2, (-0.217378340, 0.046239704)),
        (1e4, (-0.208469801, 0.000538564)),
        (None, (-0.20834914, 0.0)),
    ],
)
def test_barrier_test_problem_of_the_authors(
    kappa: float | None, solution: tuple[float, float]
) -> None:
    """One contact in the plane: Q = 1, tau = (-0.41669826, -0.46413128, 0), normal y, one tangent (-1, 0, 1)."""
    tau = np.array([-0.41669826, -0.46413128, 0.0])
    G = np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 1.0]])
    result = qdsim.solve_cone_program(
        np.eye(3),
        -tau,
        G,
        np.zeros(2),
        [("lorentz", 2)],
        target_mu=0.0 if kappa is None else 2.0 / kappa,
    )
    np.testing.assert_allclose(result.x[:2], solution, atol=2e-8)
