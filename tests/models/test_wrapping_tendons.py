"""Tendons around spheres and cylinders, and over pulleys: MuJoCo's lengths and moments, closed forms, derivatives."""

from __future__ import annotations

import pickle
from typing import Any

import mujoco
import numpy as np
import pytest
from scenes import Scene, _around
from test_linearize import STANDARD, compare
from test_parameter_derivatives import check_products, differential, sample, tangents
from test_tendons import mujoco_jacobian

import qdsim
from qdsim.description import Pulley, TendonCoupling, Wrap

Rng = np.random.Generator


def random_body(scene: qdsim.SceneBuilder, rng: Rng, name: str, parent: str) -> None:
    quat = rng.standard_normal(4)
    scene.body(name, parent, pos=rng.uniform(-0.3, 0.3, 3), quat=quat / np.linalg.norm(quat),
               mass=1.0, com=(0, 0, 0), inertia=(0.1, 0.1, 0.1))  # fmt: skip
    kinds = ["hinge", "slide", "ball"] + ["free"] * (parent == "world")
    kind = str(rng.choice(kinds))
    scene.joint(name, kind, axis=rng.standard_normal(3), pos=rng.uniform(-0.1, 0.1, 3) * (kind != "free"))  # fmt: skip


def random_geom(scene: qdsim.SceneBuilder, rng: Rng, body: str) -> str:
    kind, quat = str(rng.choice(["sphere", "cylinder"])), rng.standard_normal(4)
    radius = rng.uniform(0.05, 0.25)
    size = (radius,) if kind == "sphere" else (radius, 0.1)
    return scene.geom(
        body, kind, size, pos=rng.uniform(-0.1, 0.1, 3), quat=quat / np.linalg.norm(quat),
        contype=0, conaffinity=0,
    )  # fmt: skip


def random_side(
    rng: Rng, scene: qdsim.SceneBuilder, geom: str, bodies: list[str], inside: bool
) -> tuple[str, Any] | None:
    """None, a point anywhere, or one near the geometry's centre."""
    if inside:
        body = next(body for body in bodies if geom.startswith(f"{body}_"))
        place = next(g.pos for g in scene.build().geoms if g.name == geom)
        return body, np.asarray(place) + rng.uniform(-0.02, 0.02, 3)
    return (str(rng.choice(bodies)), rng.uniform(-0.5, 0.5, 3)) if rng.random() < 0.5 else None


def random_path(
    rng: Rng, scene: qdsim.SceneBuilder, bodies: list[str], geoms: list[str], inside: bool
) -> list[Any]:
    """One or several branches of points with geometries between some of them."""
    path: list[Any] = [Pulley(rng.uniform(0.5, 4.0))] if rng.random() < 0.2 else []
    for branch in range(int(rng.integers(1, 4))):
        if branch:
            path.append(Pulley(rng.uniform(0.5, 4.0)))
        count = int(rng.integers(2, 5))
        for i in range(count):
            path.append((str(rng.choice(bodies)), rng.uniform(-0.4, 0.4, 3)))
            if i + 1 < count and rng.random() < 0.8:
                geom = str(rng.choice(geoms))
                path.append(Wrap(geom, random_side(rng, scene, geom, bodies, inside)))
    return path


def random_model(rng: Rng, inside: bool) -> qdsim.Model:
    scene = qdsim.SceneBuilder()
    bodies = ["world"]
    for i in range(int(rng.integers(2, 6))):
        random_body(scene, rng, f"b{i}", str(rng.choice(bodies)))
        bodies.append(f"b{i}")
    geoms = [random_geom(scene, rng, str(rng.choice(bodies))) for _ in range(6)]
    for i in range(8):
        scene.tendon(f"t{i}", points=random_path(rng, scene, bodies, geoms, inside))
    return qdsim.build(scene.build())


def of_mujoco(model: qdsim.Model, q: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Lengths, Jacobians in our coordinates, and the smallest angle of each tendon's arcs (infinite without any;
    arcs of almost none have few digits in MuJoCo, as differences of inverse cosines)."""
    theirs = mujoco.MjModel.from_xml_string(model.description.to_mjcf())
    data = mujoco.MjData(theirs)
    data.qpos[:] = q
    mujoco.mj_forward(theirs, data)
    turned = np.array([model.from_mujoco_qvel(q, row) for row in np.eye(model.nv)])
    angles = np.full(theirs.ntendon, np.inf)
    places, objects = data.wrap_xpos.reshape(-1, 3), data.wrap_obj.ravel()
    for i in range(theirs.ntendon):
        begin, end = data.ten_wrapadr[i], data.ten_wrapadr[i] + data.ten_wrapnum[i]
        for k in range(begin, end - 1):
            if objects[k] >= 0 and objects[k] == objects[k + 1]:
                chord = np.linalg.norm(places[k] - places[k + 1])
                angles[i] = min(angles[i], chord / theirs.geom_size[objects[k], 0])
    return data.ten_length.copy(), mujoco_jacobian(theirs, data) @ np.linalg.inv(turned.T), angles


@pytest.mark.short_cases(3)
@pytest.mark.parametrize("seed", range(12))
def test_lengths_and_jacobians_are_mujocos(seed: int) -> None:
    """Around surfaces to rounding. From inside MuJoCo stops at 1e-6 of the angle, which shifts moments as much."""
    rng = np.random.default_rng(seed)
    arcs = 0
    for inside, atol in ((False, 1e-12), (True, 3e-6)):
        model = random_model(rng, inside)
        for _ in range(4):
            q = model.integrate(model.default_q, rng.uniform(-1, 1, model.nv))
            lengths, jacobians, angles = of_mujoco(model, q)
            sure = angles > 1e-3 if not inside else np.full(len(angles), True)
            arcs += np.sum(np.isfinite(angles))
            np.testing.assert_allclose(
                model.tendon_lengths(q)[sure], lengths[sure], rtol=1e-12, atol=min(atol, 1e-10)
            )
            np.testing.assert_allclose(
                model.tendon_jacobians(q)[sure], jacobians[sure], rtol=1e-12, atol=atol
            )
    assert arcs > 8


def springs(rng: Rng, inside: bool) -> tuple[qdsim.Model, float]:
    """Joints with springs alone, and one force on all tendons: q moves by the moments over the springs."""
    scene = qdsim.SceneBuilder(gravity=(0, 0, 0))
    bodies = ["world"]
    for i in range(3):
        parent = bodies[-1] if rng.random() < 0.7 else "world"
        scene.body(f"b{i}", parent, pos=rng.uniform(-0.3, 0.3, 3), mass=1.0, com=(0, 0, 0), inertia=(1, 1, 1))  # fmt: skip
        for j, kind in enumerate(("hinge", "slide")):
            scene.joint(f"b{i}", kind, name=f"j{i}{j}", axis=rng.standard_normal(3), stiffness=100.0)  # fmt: skip
        bodies.append(f"b{i}")
    geoms = [random_geom(scene, rng, str(rng.choice(bodies))) for _ in range(6)]
    scene.tendon("t", points=random_path(rng, scene, bodies, geoms, inside))
    scene.actuator(None, tendon="t", name="pull", gain=1.0)
    return qdsim.build(scene.build()), 100.0


@pytest.mark.short_cases(1)
@pytest.mark.parametrize("inside", [False, True])
def test_moments_change_as_differences_say(inside: bool) -> None:
    rng = np.random.default_rng(5)
    compared = 0
    options = qdsim.Options(epsilon=0.0)
    for _ in range(60):
        model, stiffness = springs(rng, inside)
        q = rng.uniform(-0.7, 0.7, model.nq)
        model_at = model.tendon_jacobians(q)[0]
        if not np.any(model_at):
            continue
        by_q = np.empty((2, model.nv, model.nv))
        for k, eps in enumerate((2e-4, 1e-4)):
            for j in range(model.nv):
                for width, weight in ((1.0, 8.0 / 12.0), (2.0, -1.0 / 12.0)):
                    ends = [
                        model.tendon_jacobians(q + sign * width * eps * np.eye(model.nv)[j])[0]
                        for sign in (1, -1)
                    ]
                    ends = (ends[0] - ends[1]) * weight / eps
                    by_q[k, :, j] = ends if width == 1.0 else by_q[k, :, j] + ends
        scale = max(1.0, np.abs(by_q).max())
        if np.abs(by_q[0] - by_q[1]).max() > 1e-8 * scale:
            continue  # touches or leaves within the stencil, or an end near the surface
        compared += 1
        lin = qdsim.linearize(model, q, [1.0], options)
        np.testing.assert_allclose(lin.A * stiffness, by_q[1], atol=1e-7 * scale)
    assert compared > 25


# A finger of three links, closed by a tendon around its knuckles (one from inside), with a branch to a weight over a
# pulley; another one around a ball that moves; everything that acts on tendons acts on them.
FINGER = """
<mujoco><option gravity="0 0 -9.81"/><default><geom contype="0" conaffinity="0"/></default>
  <worldbody><site name="base" pos="-0.05 0.01 0.03"/><site name="front" pos="0.3 0 0.08"/>
    <geom name="drum" type="cylinder" size="0.03 0.1" pos="0 0 0.05" euler="90 0 10"/>
    <body name="l1" pos="0 0 0.05"><joint name="j1" axis="0 1 0" damping="0.1"/>
      <geom type="capsule" size="0.01" fromto="0 0 0 0 0 0.1" mass="0.2"/><site name="s1" pos="-0.02 0 0.06"/>
      <geom name="knuckle" type="sphere" size="0.015" pos="0 0 0.1"/><site name="in" pos="0.001 0 0.1"/>
      <body name="l2" pos="0 0 0.1"><joint name="j2" axis="0 1 0.1"/><joint name="j2b" axis="1 0 0"/>
        <geom type="capsule" size="0.01" fromto="0 0 0 0 0 0.08" mass="0.1"/><site name="s2" pos="-0.03 0.01 0.04"/>
        <geom name="roll" type="cylinder" size="0.015 0.1" pos="0 0 0.08" euler="80 10 0"/>
        <body name="l3" pos="0 0 0.08"><joint name="j3" type="ball"/><site name="s3" pos="-0.02 0 0.05"/>
          <site name="back" pos="0.3 0 0"/><inertial pos="0 0 0.02" mass="0.1" diaginertia="0.001 0.001 0.0008"/>
        </body></body></body>
    <body name="weight" pos="0.1 0.2 0.06" euler="10 20 30"><freejoint/><site name="hook" pos="0.02 0.01 -0.06"/>
      <geom name="ball" type="sphere" size="0.04" pos="0.01 0 0.01" mass="0.3"/></body>
    <site name="roof" pos="0.1 0.3 0.4"/><site name="floor" pos="0.12 0.35 -0.3"/><site name="yard" pos="0.1 -1 0.05"/>
  </worldbody>
  <tendon>
    <spatial name="flexor" {flexor}>
      <site site="base"/><geom geom="drum" sidesite="front"/><site site="s1"/><geom geom="knuckle" sidesite="in"/>
      <site site="s2"/><geom geom="roll" sidesite="back"/><site site="s3"/>
      <pulley divisor="2.5"/><site site="roof"/><geom geom="ball"/><site site="hook"/>
      <pulley divisor="0.7"/><site site="s3"/><site site="floor"/></spatial>
    <spatial name="guy" {guy}><site site="roof"/><geom geom="ball" sidesite="yard"/><site site="floor"/></spatial>
  </tendon>
  <equality>{equality}</equality>
  <actuator><position joint="j1" kp="30"/><position joint="j2" kp="10"/>{actuators}</actuator>
</mujoco>"""

KINDS = {
    "limits": {"flexor": 'limited="true" range="0.2 1.53"', "guy": 'limited="true" range="0.775 2"'},
    "springs": {
        "flexor": 'stiffness="30" springlength="1.2" damping="0.8"',
        "guy": 'stiffness="20" springlength="0.2 0.6" frictionloss="0.3"',
    },
    "equalities": {
        "equality": '<tendon tendon1="flexor" tendon2="guy" polycoef="0 0.4 0.2 0 0"/>',
        "guy": 'frictionloss="0.3"',
    },
    "actuators": {
        "actuators": '<position tendon="flexor" kp="40" forcerange="-3 3"/><motor tendon="guy" gear="2"/>'
        '<general tendon="guy" gaintype="affine" gainprm="9 -4 -.3" biastype="affine" biasprm="1 -60 -2"/>'
    },
}  # fmt: skip


def finger(kind: str) -> Scene:
    fields = {"flexor": "", "guy": "", "equality": "", "actuators": "", **KINDS[kind]}
    model = qdsim.load(FINGER.format(**fields))
    return Scene(model, _around(model, np.array(model.default_q), np.full(model.nv, 0.05), 0.3))


@pytest.mark.short_cases(2)
@pytest.mark.parametrize("kappa", [None, 1e2])
@pytest.mark.parametrize("kind", list(KINDS))
def test_derivatives_of_steps(kind: str, kappa: float | None) -> None:
    scene, options = finger(kind), qdsim.Options(kappa=kappa, damping=True)
    report = compare(scene, options, 3)
    assert report.share >= 0.6
    assert report.worst <= STANDARD
    rng = np.random.default_rng(1)
    compared = 0
    for _ in range(2):
        state = sample(scene, rng)
        d = differential(scene, state, options)
        directions = tangents(scene.model, rng, ("q", "u", "h", "geom_size", "tendon_stiffness"))
        compared += check_products(scene.model, d, state, options, directions, rng, 1e-8)[0]
        alone = d.vjp(np.ones(scene.model.nv), ("geom_size",))["geom_size"]
        acts = np.any(d.step.tendon_force) and kind in ("springs", "actuators")
        assert np.any(alone) or not acts
    assert compared > 6


@pytest.mark.parametrize("kind", list(KINDS))
def test_derivatives_of_dynamic_steps(kind: str) -> None:
    scene, rng = finger(kind), np.random.default_rng(2)
    model, options = scene.model, qdsim.DynamicOptions(h=0.01)
    compared = 0
    for _ in range(4):
        q, u = scene.sample(rng)
        v = rng.uniform(-0.3, 0.3, model.nv)
        d = qdsim.differentiate_dynamic(model, q, v, u, options)
        ours = d.jacobians(("q", "v", "u", "geom_size"))[1]
        for name in ours:
            t = rng.uniform(-1, 1, ours[name].shape[1:])
            errors = []
            along = ours[name].reshape(model.nv, -1) @ np.ravel(t)
            scale = max(1.0, np.abs(along).max())
            for e in (1e-5, 1e-6):
                ends = [
                    qdsim.step_dynamic(
                        model.with_parameters(geom_size=model.parameters.geom_size + s * t)
                        if name == "geom_size" else model,
                        model.integrate(q, s * t) if name == "q" else q,
                        v + s * t if name == "v" else v,
                        u + s * t if name == "u" else u,
                        options,
                    ).v_next
                    for s in (e, -e)
                ]  # fmt: skip
                errors.append(np.abs((ends[0] - ends[1]) / (2 * e) - along).max() / scale)
            compared += min(errors) <= 1e-6
            assert min(errors) <= 1e-6 or errors[0] > 1e-4, name  # a kink in between
    assert compared >= 12


def test_forces_are_mujocos() -> None:
    """What springs, dampers and actuators on such tendons do to the joints, while nothing moves."""
    text = FINGER.format(**{"equality": "", **KINDS["springs"], **KINDS["actuators"]})
    model, theirs = qdsim.load(text), mujoco.MjModel.from_xml_string(text)
    theirs.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    data, rng = mujoco.MjData(theirs), np.random.default_rng(3)
    options = qdsim.DynamicOptions(h=1e-6)
    free = qdsim.load(text.replace('frictionloss="0.3"', ""))
    for _ in range(5):
        q = free.integrate(free.default_q, rng.uniform(-0.1, 0.1, free.nv))
        v, u = rng.uniform(-1, 1, free.nv), rng.uniform(-0.3, 0.3, free.nu)
        data.qpos[:], data.ctrl[:] = q, u
        data.qvel[:] = free.to_mujoco_qvel(q, v)
        mujoco.mj_forward(theirs, data)
        step = qdsim.step_dynamic(free, q, v, u, options)
        ours = free.to_mujoco_qvel(step.q_next, step.v_next)
        acceleration = (ours - data.qvel) / options.h
        np.testing.assert_allclose(
            acceleration, data.qacc, atol=1e-4 * max(1.0, np.abs(data.qacc).max())
        )
    assert model.tendon_count == 2


def test_weights_over_a_drum_and_a_tackle() -> None:
    """Atwood's machine: accelerations g (m1 - m2) / (m1 + m2); with a pulley of divisor 2, half the length and force."""

    def machine(divisor: float | None) -> qdsim.Model:
        scene = qdsim.SceneBuilder()
        scene.geom("world", "cylinder", (0.1, 0.05), quat=(np.sqrt(0.5), np.sqrt(0.5), 0, 0), name="drum", contype=0, conaffinity=0)  # fmt: skip
        for name, x, mass in (("left", -0.1, 1.0), ("right", 0.1, 3.0)):
            scene.body(name, pos=(x, 0, -1.0), mass=mass, com=(0, 0, 0), inertia=(1, 1, 1))
            scene.joint(name, "slide", axis=(0, 0, 1))
        over = Wrap("drum", ("world", (0, 0, 0.5)))
        path: list[Any] = [("left", (0, 0, 0)), over, ("right", (0, 0, 0))]
        if divisor is not None:
            path = [("left", (0, 0, 0)), over, ("world", (0.1, 0, 0)), Pulley(divisor), ("world", (0.1, 0, 0)), ("right", (0, 0, 0))]  # fmt: skip
        length = 2.0 + 0.1 * np.pi if divisor is None else 1.0 + 0.1 * np.pi + 1.0 / divisor
        scene.tendon("rope", points=path, range=(0.0, length))
        return qdsim.build(scene.build())

    g, options = 9.81, qdsim.DynamicOptions(h=1e-3)
    plain = machine(None)
    assert plain.tendon_lengths([0.0, 0.0])[0] == pytest.approx(2 + 0.1 * np.pi, abs=1e-14)
    step = qdsim.step_dynamic(plain, [0.0, 0.0], [0.0, 0.0], [], options)
    np.testing.assert_allclose(step.v_next / options.h, [g / 2, -g / 2], rtol=1e-9)
    assert step.tendon_force[0] == pytest.approx(-1.5 * g, rel=1e-9)  # 2 m1 m2 g / (m1 + m2)
    tackle = machine(2.0)  # T on the left, T / 2 on the right, which moves twice as fast
    step = qdsim.step_dynamic(tackle, [0.0, 0.0], [0.0, 0.0], [], options)
    left, right = step.v_next / options.h
    assert left + right / 2 == pytest.approx(0.0, abs=1e-9)
    tension = -step.tendon_force[0]
    assert left == pytest.approx(tension - g, rel=1e-9)
    assert right == pytest.approx(tension / 2 / 3 - g, rel=1e-9)


def test_files_and_round_trips() -> None:
    text = FINGER.format(
        flexor='limited="true" range="0.2 1.53"', guy="", equality="", actuators=""
    )
    model = qdsim.load(text)
    flexor = model.description.tendons[0]
    assert [type(item) for item in flexor.points].count(Pulley) == 2
    assert flexor.points[1] == Wrap("drum", ("world", (0.3, 0.0, 0.08)))
    assert flexor.points[9] == Wrap("ball")
    again = qdsim.load(model.description.to_mjcf())
    assert again.description.tendons == model.description.tendons
    assert again.description.geoms == model.description.geoms
    q = model.integrate(model.default_q, np.random.default_rng(0).uniform(-0.2, 0.2, model.nv))
    copy = pickle.loads(pickle.dumps(model))
    for other in (again, copy):
        np.testing.assert_array_equal(other.tendon_lengths(q), model.tendon_lengths(q))
        np.testing.assert_array_equal(other.tendon_jacobians(q), model.tendon_jacobians(q))
    larger = np.array(model.parameters.geom_size)
    larger[model.geom_names.index("drum"), 0] = 0.035
    variant = model.with_parameters(geom_size=larger)
    thick = qdsim.load(text.replace('size="0.03 0.1"', 'size="0.035 0.1"'))
    np.testing.assert_allclose(variant.tendon_lengths(q), thick.tendon_lengths(q), rtol=1e-14)
    assert variant.tendon_lengths(q)[0] > model.tendon_lengths(q)[0] + 1e-3


@pytest.mark.parametrize(
    ("points", "words"),
    [
        ([("x", (0, 0, 1)), Wrap("nothing"), ("world", (1, 0, 0))], "tendon 't': no geom is named 'nothing'"),
        ([("x", (0, 0, 1)), Wrap("box"), ("world", (1, 0, 0))], "geom 'box' is a box, tendons wrap around spheres"),
        ([("x", (0, 0, 1)), Wrap("post", ("nobody", (0, 0, 0))), ("world", (1, 0, 0))], "no body is named 'nobody'"),
        ([Wrap("post"), ("world", (1, 0, 0))], r"points\[0\], 'post', must lie between two points"),
        ([("x", (0, 0, 1)), Wrap("post")], r"points\[1\], 'post', must lie between"),
        ([("x", (0, 0, 1)), Wrap("post"), Wrap("post"), ("world", (1, 0, 0))], r"points\[1\], 'post', must lie"),
        ([("x", (0, 0, 1)), Wrap("post"), Pulley(2), ("x", (0, 0, 0)), ("world", (1, 0, 0))], "must lie between"),
        ([("x", (0, 0, 1)), ("world", (1, 0, 0)), Pulley(2)], r"points\[2\], a pulley, must have a point"),
        ([("x", (0, 0, 1)), ("world", (1, 0, 0)), Pulley(2), Pulley(2), ("x", (0, 0, 0)), ("world", (1, 0, 0))], "a pulley, must have"),
        ([("x", (0, 0, 1)), Pulley(2), ("world", (1, 0, 0)), ("x", (0, 0, 0))], r"points\[0\] must have a neighbour"),
        ([("x", (0, 0, 1)), ("world", (1, 0, 0)), Pulley(2), ("x", (0, 0, 0))], r"points\[3\] must have a neighbour"),
        ([("x", (0, 0, 1)), 3.0], "sequence of pairs"),
    ],
)  # fmt: skip
def test_bad_paths_are_named(points: list[Any], words: str) -> None:
    scene = qdsim.SceneBuilder()
    scene.body("x", mass=1.0, com=(0, 0, 0), inertia=(1, 1, 1))
    scene.joint("x", "slide")
    scene.geom("world", "box", (0.1, 0.1, 0.1), name="box")
    scene.geom("world", "cylinder", (0.1, 0.1), name="post")
    with pytest.raises((ValueError, TypeError), match=words):
        scene.tendon("t", points=points)
        scene.build()


@pytest.mark.parametrize("divisor", [0.0, -1.0, np.inf, np.nan])
def test_bad_divisors_and_sides_are_named(divisor: float) -> None:
    with pytest.raises(ValueError, match="pulley: divisor must be"):
        Pulley(divisor)
    with pytest.raises(ValueError, match="wrap around 'g': side must hold 3 numbers"):
        Wrap("g", ("x", (0, 0)))
    with pytest.raises(TypeError, match="wrap around 'g': side"):
        Wrap("g", "x")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="neither wraps nor pulleys"):
        qdsim.description.Tendon(
            "t", points=[("x", (0, 0, 0)), Wrap("g"), ("x", (0, 0, 0))], thrust=True
        )  # type: ignore[arg-type]


def test_pulleys_of_files_without_a_divisor() -> None:
    limited = {"flexor": 'limited="true" range="0 1"', "guy": "", "equality": "", "actuators": ""}
    text = FINGER.format(**limited).replace('divisor="2.5"', 'divisor="0"')
    with pytest.raises(
        ValueError, match="tendon 'flexor': it has a pulley whose divisor is not positive"
    ):
        qdsim.load(text)
    with pytest.warns(qdsim.ModelWarning, match="flexor"):
        model = qdsim.load(text, leave_out="tendons")
    assert model.tendon_names == ("guy",)
    passive = qdsim.load(text.replace(limited["flexor"], ""))
    assert any("flexor" in item for item in passive.ignored)


@pytest.mark.parametrize(
    ("row", "part", "item", "words"),
    [
        (0, 9, None, "unknown part"),
        (0, 3, None, "no line leads|pulley needs a point"),
        (1, 1, 99, "must be a sphere or a cylinder"),
        (1, 1, 1, "must be a sphere or a cylinder"),
        (2, 0, None, "needs a point before it, and a row for its side"),
        (2, 2, 99, "no such body"),
        (3, 2, None, "a side needs a geometry before it"),
        (10, 3, None, "divisor must be positive"),
    ],
)
def test_rows_are_checked_where_they_are_built(
    row: int, part: int, item: int | None, words: str
) -> None:
    """The C core's own checks, of arrays that no description makes."""
    from qdsim.description.arrays import model_arrays
    from qdsim.pressure.geometries import field_arrays

    plain = dict.fromkeys(("flexor", "guy", "equality", "actuators"), "")
    description = qdsim.load(FINGER.format(**plain)).description
    arrays = model_arrays(description)
    arrays = {**arrays, **field_arrays(description, arrays["pair_geom"])}
    assert qdsim._core.Model(arrays).tendon_count == 2
    parts, objects, data = (np.array(arrays[f"tendon_{n}"]) for n in ("part", "object", "data"))
    assert parts[10] == 3
    parts[row], data[10] = part, 0.0
    if item is not None:
        objects[row] = item
    wrong = {"tendon_part": parts, "tendon_object": objects, "tendon_data": data}
    with pytest.raises(ValueError, match=rf"tendon_part\[\d+\]: .*({words})"):
        qdsim._core.Model({**arrays, **wrong})


def test_couplings_of_wrapping_tendons_hold_to_first_order() -> None:
    scene = finger("equalities")
    model = scene.model
    coupling = model.description.constraints[0]
    assert isinstance(coupling, TendonCoupling)
    q, u = scene.sample(np.random.default_rng(0))
    for _ in range(20):
        step = qdsim.step(model, q, u, qdsim.Options(h=0.05))
        rates = model.tendon_jacobians(q) @ step.delta
        y, x = model.tendon_lengths(q) - np.array(coupling.lengths)
        ours = y + rates[0] - 0.4 * (x + rates[1]) - 0.2 * x * (x + 2.0 * rates[1])
        assert ours == pytest.approx(0.0, abs=1e-9)
        q = step.q_next
