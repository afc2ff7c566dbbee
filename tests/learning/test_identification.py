"""Parameters found again from noisy recordings of the model, and from recordings of MuJoCo."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import qdsim

# A finger drags a sledge with a spring over the floor, by friction, and a wall stops a second one.
SLEDGE = """
<mujoco><option gravity="0 0 -9.81"/><worldbody>
  <body name="sledge"><joint name="x" type="slide" axis="1 0 0" stiffness="30"/>
    <geom type="box" size="0.3 0.2 0.1" mass="1" friction="0.4"/></body>
  <body name="finger" pos="0 0 0.15"><joint name="fx" type="slide" axis="1 0 0"/>
    <joint name="fz" type="slide" axis="0 0 1"/>
    <geom type="sphere" size="0.05" mass="0.1" friction="0.4"/></body></worldbody>
  <actuator><position joint="fx" kp="300"/><position joint="fz" kp="300"/></actuator></mujoco>"""
OPTIONS = qdsim.Options(h=0.1)
FRICTION = {"pair_friction": [[0, 0, -1, -1, -1]], "joint_stiffness": [0, -1, -1]}


def commands(seed: int, steps: int = 40) -> np.ndarray:
    rng = np.random.default_rng(seed)
    u = np.zeros((steps, 2))
    u[:, 0] = 0.3 * np.sin(np.linspace(0.0, 7.0, steps) + rng.uniform(0.0, 1.0))
    u[:, 1] = -0.02 - 0.02 * rng.random()
    return u


def recorded(model: qdsim.Model, seed: int, noise: float) -> qdsim.Recording:
    u = commands(seed)
    q = qdsim.rollout(model, np.zeros(3), u, OPTIONS).q
    rng = np.random.default_rng(seed + 1000)
    q[1:] += noise * rng.standard_normal(q[1:].shape)
    return qdsim.Recording(q, u)


@pytest.fixture
def model() -> qdsim.Model:
    return qdsim.load(SLEDGE)


def test_exact_recordings_give_exact_parameters(model: qdsim.Model) -> None:
    friction = np.asarray(model.parameters.pair_friction).copy()
    friction[:, :2] = 0.55
    stiffness = np.asarray(model.parameters.joint_stiffness).copy()
    stiffness[0] = 47.0
    truth = model.with_parameters(pair_friction=friction, joint_stiffness=stiffness)
    records = [recorded(truth, seed, 0.0) for seed in range(3)]
    found = qdsim.identify(model, records, FRICTION, OPTIONS)
    assert found.converged and found.names == ("pair_friction[0]", "joint_stiffness[0]")
    assert np.allclose(found.values, [0.55, 47.0], rtol=1e-6)
    assert found.residual < 1e-8
    assert np.allclose(found.model.parameters.joint_stiffness, stiffness)
    assert "joint_stiffness[0]: 47" in str(found)


@pytest.mark.long
def test_standard_errors_are_the_spread_of_what_is_found(model: qdsim.Model) -> None:
    """Over many noisy recordings of one truth, errors over standard errors are about normal."""
    friction = np.asarray(model.parameters.pair_friction).copy()
    friction[:, :2] = 0.5
    truth = model.with_parameters(pair_friction=friction)
    ratios = []
    for seed in range(16):
        found = qdsim.identify(model, recorded(truth, seed, 1e-3), FRICTION, OPTIONS)
        ratios.append((found.values - [0.5, 30.0]) / found.standard_errors)
    spread = np.std(ratios, axis=0)
    assert np.all((spread > 0.6) & (spread < 1.5)) and np.all(np.abs(np.mean(ratios, axis=0)) < 0.6)


def test_bounds_hold_and_what_is_not_shown_is_not_known(model: qdsim.Model) -> None:
    record = recorded(model, 0, 1e-4)
    found = qdsim.identify(
        model,
        record,
        {"joint_stiffness": [0, -1, -1]},
        OPTIONS,
        bounds={"joint_stiffness": (10.0, 25.0)},
    )
    assert found.values[0] == 25.0 and np.isnan(found.standard_errors[0])
    # the mass of the finger, on a joint that holds it, changes nothing
    both = {"joint_stiffness": [0, -1, -1], "body_mass": [-1, -1, 0]}
    found = qdsim.identify(model, record, both, OPTIONS)
    assert np.isinf(found.standard_errors[1]) and found.standard_errors[0] < 1.0
    assert found.undetermined == ("body_mass[0]",) and np.isinf(found.condition)
    assert "not determined by the recordings: body_mass[0]" in str(found)
    assert np.isclose(found.values[0], 30.0, rtol=0.05)


def test_what_scales_every_force_alike_is_not_determined(model: qdsim.Model) -> None:
    """Springs, drives and masses twice as large move as before: each is named, and their ratios are right."""
    unknowns = {
        "joint_stiffness": [0, -1, -1],
        "actuator_stiffness": [0, 0],
        "body_mass": [-1, 0, 1],
    }
    found = qdsim.identify(model, recorded(model, 0, 1e-4), unknowns, OPTIONS, scale=1e-4)
    assert found.undetermined == found.names and np.isinf(found.condition)
    assert found.values[1] / found.values[0] == pytest.approx(10.0, rel=0.01)
    assert all(name in str(found).splitlines()[-1] for name in found.names)


BOX = """
<mujoco><option gravity="0 0 -9.81"/><worldbody><geom type="plane" size="2 2 0.1" friction="0.6"/>
  <body name="box" pos="0 0 0.05"><freejoint/>
    <geom type="box" size="0.1 0.08 0.05" mass="1" friction="0.6"/></body>
  <body name="finger" pos="-0.15 0.03 0.05"><joint name="fx" type="slide" axis="1 0 0"/>
    <joint name="fy" type="slide" axis="0 1 0"/><geom size="0.03" mass="0.2" friction="0.6"/></body></worldbody>
  <actuator><position joint="fx" kp="300"/><position joint="fy" kp="300"/></actuator></mujoco>"""


def pushed(
    seed: int, law: str = "convex", *, start: bool = False
) -> tuple[qdsim.Model, qdsim.Recording, dict, qdsim.Options]:
    """A box pushed off its centre with friction 0.25, in a recording with noise of 1e-3 m and rad, of the start as
    well or not: model, recording, unknowns and options."""
    model, options = qdsim.load(BOX), qdsim.Options(h=0.1, law=law)  # type: ignore[arg-type]
    friction = np.asarray(model.parameters.pair_friction).copy()
    groups = -np.ones(friction.shape, dtype=int)
    friction[:, :2], groups[:, :2] = 0.25, 0
    rng = np.random.default_rng(seed)
    u = np.zeros((20, 2))
    u[:, 0] = np.linspace(0.01, 0.35, 20)
    u[:, 1] = rng.uniform(-0.05, 0.05) * np.linspace(0, 1, 20)
    truth = model.with_parameters(pair_friction=friction)
    path = qdsim.rollout(truth, model.default_q, u, options).q
    seen = [model.integrate(q, 1e-3 * rng.standard_normal(model.nv)) for q in path[not start :]]
    record = qdsim.Recording(np.array([*path[: not start], *seen]), u)
    return model, record, {"pair_friction": groups}, options


@pytest.mark.long
def test_a_start_that_is_measured_does_not_blame_the_friction() -> None:
    """A box that is recorded a millimetre off where it lies stays so: errors were up to a third, standard errors 0.4 %."""
    for seed in range(3):
        model, record, unknowns, options = pushed(seed, start=True)
        found = qdsim.identify(model, record, unknowns, options, scale=1e-3)
        assert found.names == ("pair_friction[0]",) and found.covariance.shape == (1, 1)
        assert abs(found.values[0] - 0.25) < 4.0 * found.standard_errors[0] < 0.04
        assert found.residual == pytest.approx(1.0, abs=0.2)
        assert abs(found.correlation) < 0.25
        exact = qdsim.identify(model, record, unknowns, options, scale=1e-3, starts="exact")
        assert exact.residual > found.residual


@pytest.mark.long
@pytest.mark.parametrize("start", [False, True])
def test_intervals_cover_the_truth(model: qdsim.Model, start: bool) -> None:
    """Of a hundred recordings each, 95 % intervals of friction and stiffness."""
    covered = []
    for seed in range(100):
        box, record, unknowns, options = pushed(seed, start=start)
        found = qdsim.identify(box, record, unknowns, options, scale=1e-3)
        off = abs(found.values[0] - 0.25) / found.standard_errors[0]
        friction = np.asarray(model.parameters.pair_friction).copy()
        friction[:, :2] = 0.5
        record = recorded(model.with_parameters(pair_friction=friction), seed, 1e-3)
        if start:
            rng = np.random.default_rng(seed)
            q = np.vstack((record.q[:1] + 1e-3 * rng.standard_normal((1, 3)), record.q[1:]))
            record = qdsim.Recording(q, record.u)
        found = qdsim.identify(model, record, FRICTION, OPTIONS, scale=1e-3)
        covered.append([off, *np.abs(found.values - [0.5, 30.0]) / found.standard_errors])
    share = np.mean(np.array(covered) < 1.96, axis=0)
    assert np.all((share > 0.88) & (share < 0.99)), share


@pytest.mark.parametrize(
    ("law", "seed"),
    [
        ("convex", 0),
        ("coulomb", 3),
        pytest.param("coulomb", 5, marks=pytest.mark.long),
    ],
)
def test_what_is_called_converged_is_near_the_truth(law: str, seed: int) -> None:
    """Under Coulomb's law where the box goes jumps with friction, and searches are stuck."""
    model, record, unknowns, options = pushed(seed, law)
    found = qdsim.identify(model, record, unknowns, options, scale=1e-3)
    if law == "convex":
        assert found.converged and found.residual == pytest.approx(1.0, abs=0.15)
    if found.converged:
        assert abs(found.values[0] - 0.25) < 5.0 * found.standard_errors[0]
    assert ("NOT CONVERGED" in str(found)) is not found.converged
    assert f"{found.residual:.3g} of the scale" in str(found)


@pytest.mark.short_cases(1)
@pytest.mark.parametrize("friction", [0.25, 0.6])
def test_what_the_model_cannot_do_is_not_noise(friction: float) -> None:
    """A box pushed in MuJoCo over a support whose friction a quasi-dynamic step does not feel: mass and friction stand
    in for it, and fit what is seen. They are right, or it is told."""
    text = BOX.replace('friction="0.6"', f'friction="{friction}"')
    text = text.replace('axis="1 0 0"', 'axis="1 0 0" damping="20"')
    text = text.replace('axis="0 1 0"', 'axis="0 1 0" damping="20"')
    mj = mujoco.MjModel.from_xml_string(text)
    mj.opt.timestep, mj.geom_solref[:] = 2e-3, (8e-3, 1.0)
    data = mujoco.MjData(mj)
    mujoco.mj_step(mj, data, 200)
    u = np.linspace(0.0, 1.0, 21)[1:, None] * [0.35, 0.03]
    q = [data.qpos.copy()]
    for a, b in zip(np.vstack((np.zeros(2), u)), u):
        for k in range(250):
            data.ctrl[:] = a + (b - a) * (k + 1) / 250
            mujoco.mj_step(mj, data)
        q.append(data.qpos.copy())
    model, rng = qdsim.load(BOX), np.random.default_rng(0)
    scale = np.array([5e-4] * 3 + [2e-3] * 3 + [5e-4] * 2)
    seen = [model.integrate(x, scale * rng.standard_normal(model.nv)) for x in q]
    groups = -np.ones(np.shape(model.parameters.pair_friction), dtype=int)
    groups[:, :2] = 0
    box = [0 if name == "box" else -1 for name in model.body_names]
    found = qdsim.identify(
        model,
        qdsim.Recording(np.array(seen), u),
        {"pair_friction": groups, "body_mass": box},
        qdsim.Options(h=0.5),
        scale=scale,
    )
    near = np.allclose(found.values, [friction, 1.0], rtol=0.05)
    assert near or not found.converged
    if not near:
        assert found.correlation > 0.3 and "not noise" in str(found)


def test_a_search_goes_past_steps_without_an_answer_and_other_valleys(model: qdsim.Model) -> None:
    """With friction for which the finger sticks all the time nothing says how much there is: the search begins where
    it slides, too."""
    friction = np.asarray(model.parameters.pair_friction).copy()
    friction[:, :2] = 0.2
    record = recorded(model.with_parameters(pair_friction=friction), 0, 1e-4)
    friction[:, :2] = 1.2
    stuck = model.with_parameters(pair_friction=friction)
    found = qdsim.identify(stuck, record, {"pair_friction": [[0, 0, -1, -1, -1]]}, OPTIONS)
    assert found.converged and found.values[0] == pytest.approx(0.2, rel=0.02)
    assert found.condition == 1.0 and not found.undetermined


def test_pieces_of_a_recording(model: qdsim.Model) -> None:
    record = recorded(model, 1, 0.0)
    start = model.with_parameters(joint_stiffness=np.array([60.0, 0.0, 0.0]))
    for horizon in (1, 7, 40, 100):
        found = qdsim.identify(
            start, record, {"joint_stiffness": [0, -1, -1]}, OPTIONS, horizon=horizon
        )
        assert np.isclose(found.values[0], 30.0, rtol=1e-6)
    seen = qdsim.identify(
        start, record, {"joint_stiffness": [0, -1, -1]}, OPTIONS, seen=("x",), kappa=1e6
    )
    assert np.isclose(seen.values[0], 30.0, rtol=1e-4)


@pytest.mark.long
def test_a_recording_of_mujoco() -> None:
    """A slowly pushed carriage on a spring, with noise: its stiffness, and the radius of the finger."""
    text = """
    <mujoco><option gravity="0 0 0" timestep="1e-3"/><worldbody>
      <body name="carriage" pos="0.3 0 0"><joint name="c" type="slide" axis="1 0 0" stiffness="{k}" damping="20"/>
        <geom type="box" size="0.1 0.1 0.1" mass="0.5"/></body>
      <body name="finger"><joint name="f" type="slide" axis="1 0 0" damping="20"/>
        <geom type="sphere" size="{r}" mass="0.2"/></body></worldbody>
      <actuator><position joint="f" kp="200"/></actuator></mujoco>"""
    mj = mujoco.MjModel.from_xml_string(text.format(k=80.0, r=0.062))
    mj.geom_solref[:] = (2e-3, 1.0)
    data = mujoco.MjData(mj)
    u = np.concatenate([np.linspace(0.0, 0.4, 25), np.linspace(0.4, 0.1, 15)])[:, None]
    q = [data.qpos.copy()]
    for command in u:
        data.ctrl[:] = command
        mujoco.mj_step(mj, data, 2000)
        q.append(data.qpos.copy())
    noise = 3e-4 * np.random.default_rng(0).standard_normal((len(u), 2))
    q[1:] += noise
    model = qdsim.load(text.format(k=50.0, r=0.05))
    finger = model.body_names.index("finger")
    sizes = -np.ones((len(model.geom_body), 3), dtype=int)
    sizes[np.flatnonzero(np.asarray(model.geom_body) == finger)[0], 0] = 0
    carriage = -np.ones(2, dtype=int)
    carriage[model.joint_names.index("c")] = 0
    found = qdsim.identify(
        model,
        qdsim.Recording(np.array(q), u),
        {"joint_stiffness": carriage, "geom_size": sizes},
        qdsim.Options(h=2.0),
    )
    assert np.isclose(found.values[found.names.index("joint_stiffness[0]")], 80.0, rtol=0.02)
    assert np.isclose(found.values[found.names.index("geom_size[0]")], 0.062, atol=5e-4)
    assert found.residual < 6e-4


DRAGGED = """
<mujoco><option gravity="0 0 -9.81" timestep="2e-3" integrator="implicitfast" cone="elliptic"/><worldbody>
  <body name="sledge"><joint name="x" type="slide" axis="1 0 0" stiffness="{k}" damping="3"/>
    <geom type="box" size="0.3 0.2 0.1" mass="{m}" friction="{mu}"/></body>
  <body name="finger" pos="0 0 0.149"><joint name="fx" type="slide" axis="1 0 0" damping="10"/>
    <joint name="fz" type="slide" axis="0 0 1" damping="10"/>
    <geom type="sphere" size="0.05" mass="0.1" friction="{mu}"/></body></worldbody>
  <actuator><position joint="fx" kp="300"/><position joint="fz" kp="300"/></actuator></mujoco>"""


@pytest.mark.parametrize(
    ("truth", "pieces"),
    [
        ((0.6, 1.5, 30.0), True),
        pytest.param((0.25, 1.0, 47.0), False, marks=pytest.mark.long),
        pytest.param((0.6, 1.5, 30.0), False, marks=pytest.mark.long),
        pytest.param((0.25, 1.0, 47.0), True, marks=pytest.mark.long),
    ],
)
def test_motion_in_mujoco_shows_mass_friction_and_stiffness(
    truth: tuple[float, float, float], pieces: bool
) -> None:
    """Second-order steps are those of the simulator that recorded, so that mass and friction are
    both determined, within their standard errors."""
    friction, mass, stiffness = truth
    mj = mujoco.MjModel.from_xml_string(DRAGGED.format(mu=friction, m=mass, k=stiffness))
    data, stride = mujoco.MjData(mj), 20
    t = mj.opt.timestep * np.arange(30 * stride)
    u = np.stack([0.3 * np.sin(3.0 * t), np.full(len(t), -0.03)], axis=1)
    q, v = [data.qpos.copy()], [data.qvel.copy()]
    for k, command in enumerate(u):
        data.ctrl[:] = command
        mujoco.mj_step(mj, data)
        if (k + 1) % stride == 0:
            q.append(data.qpos.copy())
            v.append(data.qvel.copy())
    noise = 5e-4 * np.random.default_rng(0).standard_normal(np.shape(q))
    recording = qdsim.Recording(np.array(q) + noise, u, np.array(v) if pieces else None)
    model = qdsim.load(DRAGGED.format(mu=0.45, m=1.2, k=40.0))
    unknowns = {
        "pair_friction": [[0, 0, -1, -1, -1]],
        "body_mass": [0 if name == "sledge" else -1 for name in model.body_names],
        "joint_stiffness": [0, -1, -1],
    }
    options = qdsim.DynamicOptions(h=mj.opt.timestep, contacts="mujoco")
    horizon = 10 if pieces else None
    found = qdsim.identify(model, recording, unknowns, options, scale=5e-4, horizon=horizon)
    errors = np.abs(found.values - truth)
    assert np.all(errors < 4.0 * found.standard_errors), str(found)
    assert np.all(errors < 0.03 * np.array(truth)), str(found)
    assert found.residual == pytest.approx(1.0, abs=0.15)


def test_wrong_arguments_of_second_order_are_named(model: qdsim.Model) -> None:
    record, options = recorded(model, 0, 0.0), qdsim.DynamicOptions()
    with pytest.raises(ValueError, match=r"^kappa: expected None with DynamicOptions"):
        qdsim.identify(model, record, FRICTION, options, kappa=1e3)
    with pytest.raises(ValueError, match=r"^recordings\[0\]: expected velocities, because"):
        qdsim.identify(model, record, FRICTION, options, horizon=5)
    with pytest.raises(ValueError, match=r"^v: expected 3 rows"):
        qdsim.Recording(np.zeros((3, 2)), np.zeros((2, 1)), np.zeros((2, 2)))
    with pytest.raises(ValueError, match=r"^q: expected one configuration more"):
        qdsim.Recording(np.zeros((3, 2)), np.zeros((5, 1)))
    fast = qdsim.Recording(record.q, record.u, np.zeros((len(record.q), model.nv + 1)))
    with pytest.raises(ValueError, match=r"^recordings\[0\]: expected velocities of"):
        qdsim.identify(model, fast, FRICTION, options)
    with pytest.raises(TypeError, match=r"^options: expected Options"):
        qdsim.identify(model, record, FRICTION, {"h": 0.1})  # type: ignore[arg-type]


def test_wrong_arguments_are_named(model: qdsim.Model) -> None:
    record = recorded(model, 0, 0.0)
    for kind, said, parameters, more in (
        (ValueError, r"^parameters: expected names", {"mass": [0]}, {}),
        (TypeError, r"^parameters\['body_mass'\]: expected whole", {"body_mass": [0.5] * 3}, {}),
        (ValueError, r"^parameters\['body_mass'\]: expected shape", {"body_mass": [0, 1]}, {}),
        (ValueError, r"^parameters\['body_mass'\]: expected groups", {"body_mass": [0, 2, -1]}, {}),
        (ValueError, r"^bounds: 'gravity'", FRICTION, {"bounds": {"gravity": (0, 1)}}),
        (ValueError, r"^bounds: a lower", FRICTION, {"bounds": {"pair_friction": (2, 1)}}),
        (ValueError, r"^seen: ", FRICTION, {"seen": ("nothing",)}),
        (ValueError, r"^scale: ", FRICTION, {"scale": -1.0}),
        (ValueError, r"^horizon: ", FRICTION, {"horizon": 0}),
        (ValueError, r"^starts: ", FRICTION, {"starts": "known"}),
    ):
        with pytest.raises(kind, match=said):
            qdsim.identify(model, record, parameters, OPTIONS, **more)
    with pytest.raises(ValueError, match=r"^recordings: expected at least one"):
        qdsim.identify(model, [], FRICTION)
    with pytest.raises(ValueError, match=r"^q: expected one configuration more"):
        qdsim.Recording(np.zeros((3, 2)), np.zeros((3, 1)))
    with pytest.raises(ValueError, match=r"^recordings\[0\]: expected rows"):
        qdsim.identify(model, qdsim.Recording(np.zeros((3, 2)), np.zeros((2, 2))), FRICTION)
