"""Contact islands: a step is one program for each set of trees that contacts connect, and nothing but
the work may depend on it."""

from __future__ import annotations

import numpy as np
import pytest
from program import assemble, clarabel_program
from scenes import Scene
from test_linearize import STANDARD, compare, difference

import qdsim

SHAPES = (
    '<geom type="box" size=".05 .04 .03" density="500"/>',
    '<geom type="sphere" size=".05" density="700" condim="4" friction="0.7 0.01 0.005"/>',
    '<geom type="capsule" size=".03 .05" density="900"/>',
    '<geom type="ellipsoid" size=".06 .04 .05" density="600" condim="6" friction="0.5 0.02 0.01"/>',
)


def body(name: str, x: float, z: float, kind: int) -> str:
    return (
        f'<body name="{name}" pos="{x} 0.003 {z}" euler="2 1 3"><freejoint name="{name}"/>'
        f"{SHAPES[kind]}</body>"
    )


def world(bodies: list[str]) -> str:
    return f"""
    <mujoco><option gravity="0 0 -9.81"/>
      <worldbody><geom name="floor" type="plane" size="9 9 1"/>{"".join(bodies)}
        <body name="tip" pos="-0.09 0 0.05">
          <joint name="tx" type="slide" axis="1 0 0" range="-1 1"/>
          <joint name="tz" type="slide" axis="0 0 1"/><geom type="sphere" size="0.03"/></body>
        <body name="bar" pos="1.5 0.2 0.05">
          <joint name="bar" type="slide" axis="0 1 0"/>
          <geom type="box" size="0.8 0.1 0.02" mass="1"/></body>
      </worldbody>
      <actuator><position joint="tx" kp="300"/><position joint="tz" kp="400"/>
        <position joint="bar" kp="500"/></actuator>
    </mujoco>"""


# A pile of two that the tip pushes, and two objects that stand along a bar.
BODIES = [
    body("low", 0.0, 0.031, 0),
    body("high", 0.01, 0.11, 1),
    body("left", 1.2, 0.031, 2),
    body("right", 1.8, 0.04, 3),
]
U = np.array([-0.05, 0.04, -0.07])
OPTIONS = qdsim.Options(h=0.05, margin=0.03)


def sample(model: qdsim.Model):
    def draw(rng: np.random.Generator):
        v = rng.uniform(-4e-3, 4e-3, model.nv)
        v[model.slice_v("bar")] -= 0.05
        q = model.integrate(model.default_q, v)
        return q, U + rng.uniform(-0.02, 0.02, 3)

    return draw


@pytest.fixture(scope="module")
def scene() -> Scene:
    model = qdsim.load(world(BODIES))
    return Scene(model, sample(model))


def groups(model: qdsim.Model, contacts, held=()) -> int:
    """Connected components of bodies that move, the world left out: a count of our own."""
    moving = [n for n in model.body_names[1:] if n not in held]
    label = {name: i for i, name in enumerate(moving)}
    for contact in contacts:
        pair = [model.body_names[int(contact[k])] for k in ("body_a", "body_b")]
        if all(name in label for name in pair):
            old, new = label[pair[0]], label[pair[1]]
            label = {k: new if v == old else v for k, v in label.items()}
    return len(set(label.values()))


def test_the_scene_has_several_islands(scene: Scene) -> None:
    q, u = scene.sample(np.random.default_rng(0))
    step = qdsim.step(scene.model, q, u, OPTIONS)
    assert groups(scene.model, step.contacts) == 2
    assert groups(scene.model, step.contacts, held=("bar",)) == 3


@pytest.mark.parametrize("held", [(), ("bar",), ("left", "tx", "tz")])
def test_all_islands_together_solve_the_whole_program(scene: Scene, held) -> None:
    model, options = scene.model, OPTIONS.replace(held=held)
    compared = 0
    for seed in range(6):
        q, u = scene.sample(np.random.default_rng(seed))
        step = qdsim.step(model, q, u, options)
        program = assemble(model, q, u, options, step.contacts)
        reference = clarabel_program(program).answer()
        free = program.free
        x = step.delta[free]
        cost = 0.5 * x @ program.Q[np.ix_(free, free)] @ x + program.b[free] @ x
        assert step.info.objective == pytest.approx(cost, rel=1e-9, abs=1e-12)
        assert step.info.primal_residual < 1e-9  # the options' tolerance
        assert np.all(step.delta[~free] == 0.0)
        if reference is not None:
            assert cost == pytest.approx(reference.objective, rel=1e-6, abs=1e-8)
            compared += 1
    assert compared >= 3


@pytest.mark.parametrize("friction", ["cone", "pyramid"])
@pytest.mark.parametrize("kappa", [None, 300.0])
def test_an_island_moves_as_it_would_alone(
    scene: Scene, friction: str, kappa: float | None
) -> None:
    model, options = scene.model, OPTIONS.replace(friction=friction, kappa=kappa)
    for seed in range(6):
        q, u = scene.sample(np.random.default_rng(seed))
        step = qdsim.step(model, q, u, options)
        for bodies, names in (
            (BODIES[:2], ["low", "high", "tx", "tz"]),
            (BODIES[2:], ["left", "right", "bar"]),
        ):
            part = qdsim.load(world(bodies))
            q_part = np.array(part.default_q)
            for joint in part.joint_names:
                q_part[part.slice_q(joint)] = q[model.slice_q(joint)]
            alone = qdsim.step(part, q_part, u, options)
            for joint in names:
                np.testing.assert_allclose(
                    step.delta[model.slice_v(joint)],
                    alone.delta[part.slice_v(joint)],
                    rtol=0,
                    atol=1e-13,
                )


@pytest.mark.parametrize("kappa", [None, 200.0])
@pytest.mark.parametrize("held", [(), ("bar", "right")])
def test_derivatives_of_several_islands(scene: Scene, kappa: float | None, held) -> None:
    """Held trees still move the islands that they touch: a held bar is a column of both of them."""
    options = OPTIONS.replace(kappa=kappa, held=held)
    report = compare(scene, options, 4)
    assert report.differentiable >= 2
    assert report.worst <= STANDARD
    q, u = scene.sample(np.random.default_rng(0))
    A = qdsim.linearize(scene.model, q, u, options).A
    v = scene.model.slice_v
    assert np.any(A[v("left"), v("bar")] != 0.0)
    assert np.all(A[v("low"), v("left")] == 0.0)
    assert np.all(A[v("bar"), v("high")] == 0.0)


def test_a_contact_within_one_island_does_not_widen_the_derivative(scene: Scene) -> None:
    """A and B of one island are those of a difference of whole steps: zero for all others."""
    q, u = scene.sample(np.random.default_rng(3))
    lin = qdsim.linearize(scene.model, q, u, OPTIONS)
    numbers = difference(scene.model, q, u, OPTIONS, 1e-5)
    zero = np.hstack([lin.A, lin.B]) == 0.0
    assert np.abs(numbers[zero]).max() < 1e-9


def test_the_order_of_bodies_does_not_matter(scene: Scene) -> None:
    model = scene.model
    rng = np.random.default_rng(5)
    for seed in range(4):
        q, u = scene.sample(np.random.default_rng(seed))
        step = qdsim.step(model, q, u, OPTIONS)
        other = qdsim.load(world([BODIES[i] for i in rng.permutation(len(BODIES))]))
        q_other = np.array(other.default_q)
        for joint in other.joint_names:
            q_other[other.slice_q(joint)] = q[model.slice_q(joint)]
        again = qdsim.step(other, q_other, u, OPTIONS)
        for joint in other.joint_names:
            np.testing.assert_allclose(
                again.delta[other.slice_v(joint)], step.delta[model.slice_v(joint)], atol=1e-9
            )
        assert again.info.objective == pytest.approx(step.info.objective, rel=1e-9)


def test_trees_in_any_body_order() -> None:
    """Bodies of two trees that alternate: DOFs of one tree are not neighbours."""
    text = """<mujoco><option gravity="0 0 -9.81"/><worldbody><geom type="plane" size="1 1 1"/>
      <body name="a" pos="0 0 .3"><joint name="a" axis="0 1 0"/><geom type="capsule" size=".02 .1"/>
        <body name="a2" pos="0 0 -.15"><joint name="a2" axis="0 1 0"/><geom type="sphere" size=".04"/></body></body>
      <body name="b" pos="2 0 .3"><joint name="b" axis="0 1 0"/><geom type="capsule" size=".02 .1"/>
        <body name="b2" pos="0 0 -.15"><joint name="b2" axis="0 1 0"/><geom type="sphere" size=".04"/></body></body>
      </worldbody>
      <actuator><position joint="a" kp="60"/><position joint="b" kp="30"/></actuator></mujoco>"""
    model = qdsim.load(text)
    scene = Scene(model, lambda rng: (rng.uniform(-0.3, 0.3, 4), rng.uniform(-0.4, 0.4, 2)))
    report = compare(scene, qdsim.Options(h=0.05, margin=0.2), 4)
    assert report.differentiable >= 3
    assert report.worst <= STANDARD


def test_a_failing_island_fails_the_step(scene: Scene) -> None:
    """Without mass in the cost nothing holds an object in the air, whatever the others do."""
    model = qdsim.load(world([*BODIES, body("air", -3.0, 2.0, 0)]))
    with pytest.raises(qdsim.SolverError, match="unbounded"):
        qdsim.step(model, model.default_q, U, OPTIONS.replace(epsilon=0.0))


def test_effort_adds_up_and_residuals_are_the_worst() -> None:
    one = qdsim.load(world(BODIES[:2]))
    both = qdsim.load(world(BODIES))
    u = U
    parts = qdsim.step(one, one.default_q, u, OPTIONS).info
    whole = qdsim.step(both, both.default_q, u, OPTIONS).info
    assert whole.status == "solved"
    assert whole.factorizations > parts.factorizations
    assert whole.objective != parts.objective
    assert whole.primal_residual < 1e-9


def test_a_hundred_objects_need_little_memory_and_no_more_each() -> None:
    """Every object alone is an island: the state of one does not depend on the number of others."""
    text = "".join(
        f'<body pos="{0.5 * (i % 10)} {0.5 * (i // 10)} .0301" euler="0 0 {i}"><freejoint/>{SHAPES[0]}</body>'
        for i in range(100)
    )
    model = qdsim.load(
        f'<mujoco><worldbody><geom type="plane" size="9 9 1"/>{text}</worldbody></mujoco>'
    )
    step = qdsim.step(model, model.default_q, np.zeros(0), OPTIONS)
    delta = step.delta.reshape(100, 6)
    np.testing.assert_allclose(delta, np.tile([0, 0, -1e-4, 0, 0, 0], (100, 1)), atol=1e-9)
    lin = qdsim.linearize(model, model.default_q, np.zeros(0), OPTIONS)
    blocks = lin.A.reshape(100, 6, 100, 6)
    for i in range(0, 100, 17):
        others = np.delete(blocks[i], i, axis=1)
        assert np.all(others == 0.0)
        np.testing.assert_allclose(blocks[i, 2, i, 2], 0.0, atol=1e-9)


def tray(count: int, kinds: tuple[int, ...]) -> str:
    """A tray on three driven slides, one of them near its limit, with things on it and two tips
    beside: one island of trees of 1 to 6 DOFs, whose blocks do not fill the solver's tiles."""
    side = 6
    bodies = "".join(
        body(
            f"b{i}", 0.13 * (i % side), (0.031, 0.05)[kinds[i % len(kinds)]], kinds[i % len(kinds)]
        ).replace("0.003", str(0.13 * (i // side) + 0.003))
        for i in range(count)
    )
    tips = "".join(
        f'<body name="tip{i}" pos="{x} {y} 0.05"><joint name="t{i}x" type="slide" axis="1 0 0"/>'
        f'<joint name="t{i}y" type="slide" axis="0 1 0"/><geom type="sphere" size="0.03"/></body>'
        for i, (x, y) in enumerate([(-0.08, 0.003), (0.003, -0.075)])
    )
    return f"""<mujoco><option gravity="0 0 -9.81"/><worldbody>
      <body name="tray" pos="0.3 0.3 -0.02"><joint name="px" type="slide" axis="1 0 0" range="-1 0.001"/>
        <joint name="py" type="slide" axis="0 1 0"/><joint name="pz" type="slide" axis="0 0 1"/>
        <geom type="box" size="2 2 0.02" mass="2"/></body>{bodies}{tips}</worldbody><actuator>
      <position joint="px" kp="3000"/><position joint="py" kp="3000"/><position joint="pz" kp="9000"/>
      <position joint="t0x" kp="300"/><position joint="t0y" kp="300"/><position joint="t1x" kp="300"/>
      <position joint="t1y" kp="300"/></actuator></mujoco>"""


def laden_tray(*kinds: int) -> tuple[qdsim.Model, np.ndarray, np.ndarray]:
    model = qdsim.load(tray(36, kinds))
    u = model.command_from(model.default_q) + [0.02, 0.01, 0.003, 0.03, 0.0, 0.0, 0.02]
    return model, np.array(model.default_q), u


@pytest.mark.parametrize("held", [(), ("b7", "t0y", "b20")])
def test_a_large_island_of_many_kinds_of_trees_solves_its_program(held) -> None:
    """Its columns stand in blocks of whole tiles, with padding between: none of it shows."""
    model, q, u = laden_tray(0, 1)
    options = OPTIONS.replace(held=held, margin=0.02)
    step = qdsim.step(model, q, u, options)
    assert groups(model, step.contacts, held=held) == 1
    program = assemble(model, q, u, options, step.contacts)
    reference = clarabel_program(program).answer()
    assert reference is not None
    free = program.free
    x = step.delta[free]
    cost = 0.5 * x @ program.Q[np.ix_(free, free)] @ x + program.b[free] @ x
    assert step.info.objective == pytest.approx(cost, rel=1e-9)
    assert cost == pytest.approx(reference.objective, rel=1e-6)
    assert step.info.primal_residual < 1e-10
    assert np.all(step.delta[~free] == 0.0)
    again = qdsim.step(model, q, u, options, warm_start=step)
    assert np.abs(again.delta - step.delta).max() < 1e-9


def test_derivatives_of_a_large_island() -> None:
    model, q, u = laden_tray(1)
    options = OPTIONS.replace(kappa=300.0, margin=0.1)
    rng = np.random.default_rng(2)
    dq, du, y = (rng.standard_normal(n) for n in (model.nv, model.nu, model.nv))
    lin = qdsim.linearize(model, q, u, options)
    differential = qdsim.differentiate(model, q, u, options)
    pushed = differential.jvp({"q": dq, "u": du})
    assert np.allclose(lin.A @ dq + lin.B @ du, pushed, rtol=0, atol=1e-9 * np.abs(pushed).max())
    gradient = differential.vjp(y)
    assert gradient["q"] @ dq + gradient["u"] @ du == pytest.approx(y @ pushed, rel=1e-9)
    eps = 1e-6
    ends = [
        qdsim.step(model, model.integrate(q, s * eps * dq), u + s * eps * du, options).q_next
        for s in (1.0, -1.0)
    ]
    difference = model.difference(ends[0], ends[1]) / (2 * eps)
    assert np.abs(difference - pushed).max() < 1e-5 * np.abs(pushed).max()
