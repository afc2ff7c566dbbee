"""Contacts that yield and creep as MuJoCo's do at rest, against MuJoCo's own simulation."""

from __future__ import annotations

import pickle
from typing import Any

import mujoco
import numpy as np
import numpy.typing as npt
import pytest
from scenes import Scene, _around
from test_linearize import STANDARD, STENCIL, compare

import qdsim
from qdsim import systems
from qdsim.description import ContactSolver

Vector = npt.NDArray[np.float64]

GRASP = """<mujoco><option cone="{cone}" impratio="{impratio}" timestep="0.002" integrator="implicitfast"/>
<default><geom friction="1 0.005 0.0001" condim="4" {geom}/></default><worldbody>
<body name="left" pos="-0.04 0 0.5"><joint name="left" type="slide" axis="1 0 0"/>
  <geom type="box" size="0.01 0.3 0.3" mass="0.5"/></body>
<body name="right" pos="0.04 0 0.5"><joint name="right" type="slide" axis="1 0 0"/>
  <geom type="box" size="0.01 0.3 0.3" mass="0.5"/></body>
<body name="held" pos="0 0 0.5"><freejoint/><geom type="{shape}" mass="1"/></body></worldbody>
<actuator><position joint="left" kp="5000" kv="200"/><position joint="right" kp="5000" kv="200"/></actuator></mujoco>"""

INCLINE = """<mujoco><option cone="{cone}" impratio="{impratio}" gravity="{along} 0 {down}"/><worldbody>
<geom type="plane" size="1 1 1" {geom}/>
<body pos="0 0 0.0498"><freejoint/><geom type="{shape}" mass="0.8" {geom}/></body></worldbody></mujoco>"""

BALL, CUBE = 'sphere" size="0.03', 'box" size="0.03 0.03 0.03'
SQUEEZE = np.array((0.004, -0.004))
LIGHT = np.array((0.00163, -0.00163))
"""Of friction 1, six tenths hold the object: edges of MuJoCo's pyramids let go from a half on, or a third."""


def grasp(shape: str, cone: str = "elliptic", impratio: float = 1.0, geom: str = "") -> str:
    return GRASP.format(shape=shape, cone=cone, impratio=impratio, geom=geom)


def incline(angle: float, cone: str = "elliptic", impratio: float = 1.0, geom: str = "") -> str:
    along, down = 9.81 * np.sin(angle), -9.81 * np.cos(angle)
    shape = 'box" size="0.05 0.05 0.05'
    return INCLINE.format(
        shape=shape, cone=cone, impratio=impratio, geom=geom, along=along, down=down
    )


def slope(normal: str, geom: str = "") -> str:
    """A box on a plane whose tangents, in MuJoCo, are not along any axis of the world."""
    body = '<body pos="0 0 0.0498" {0}><freejoint/><geom type="box" size="0.05 0.05 0.05" mass="0.8" {1}/></body>'
    z = np.array(normal.split(), dtype=np.float64)
    z /= np.linalg.norm(z)
    place = f'pos="{" ".join(map(str, 0.0498 * z))}" zaxis="{normal}"'
    return f"""<mujoco><worldbody><geom type="plane" size="1 1 1" zaxis="{normal}" {geom}/>
{body.format("", geom).replace('pos="0 0 0.0498" ', place)}</worldbody></mujoco>"""


STICKY = 'friction="2 0.005 0.0001"'


def at_rest(source: str, u: Any, seconds: float = 0.3) -> tuple[mujoco.MjModel, mujoco.MjData]:
    """MuJoCo's simulation, in which what was pushed together has come to rest, and creeps."""
    model = mujoco.MjModel.from_xml_string(source)
    model.opt.tolerance = 1e-14
    data = mujoco.MjData(model)
    data.ctrl[:] = u
    mujoco.mj_step(model, data, round(seconds / model.opt.timestep))
    return model, data


SCENES: dict[str, tuple[str, Any, int]] = {
    "ball": (grasp(BALL), SQUEEZE, 4),
    "ball, pyramids": (grasp(BALL, "pyramidal"), SQUEEZE, 4),
    "cube, impratio": (grasp(CUBE, impratio=10.0), SQUEEZE, 4),
    "cube, pyramids, impratio": (grasp(CUBE, "pyramidal", 10.0), SQUEEZE, 4),
    "ball, direct": (grasp(BALL, geom='solref="-3000 -60"'), SQUEEZE, 4),
    "ball, slow and soft": (
        grasp(BALL, geom='solref="0.04 0.7" solimp="0.8 0.9 0.01 0.4 3"'),
        SQUEEZE,
        4,
    ),
    "incline": (incline(0.3), (), 0),
    "steep incline": (incline(0.6), (), 0),
    "incline, pyramids": (incline(0.3, "pyramidal"), (), 0),
    "incline, margins": (incline(0.3, geom='margin="0.001"'), (), 0),
    "flat incline, pyramids": (incline(0.1, "pyramidal"), (), 0),
    "steep incline, pyramids": (incline(0.6, "pyramidal"), (), 0),
    "light, pyramids": (grasp(BALL, "pyramidal"), LIGHT, 4),
    "light, pyramids, impratio": (grasp(BALL, "pyramidal", 10.0), LIGHT, 4),
    "light, condim 3": (grasp(BALL, "pyramidal").replace('condim="4"', 'condim="3"'), LIGHT, 4),
    "light, condim 6": (grasp(BALL, "pyramidal").replace('condim="4"', 'condim="6"'), LIGHT, 4),
    "light, friction 0.7": (
        grasp(BALL, "pyramidal").replace("1 0.005 0.0001", "0.7 0.01 0.001"),
        1.3 * LIGHT,
        4,
    ),
    "cube, light, pyramids": (grasp(CUBE, "pyramidal"), LIGHT, 4),
    "cube, light, soft": (
        grasp(CUBE, "pyramidal", geom='solref="0.04 0.7" solimp="0.8 0.9 0.01 0.4 3"'),
        LIGHT,
        4,
    ),
}


NEARLY_SLIDES = {"steep incline, pyramids": 0.03}
"""The corners behind slide, and lift by what convex friction lets slide."""


@pytest.mark.short_cases(4)
@pytest.mark.parametrize("name", list(SCENES))
def test_creeps_as_fast_as_mujoco(name: str) -> None:
    """Two seconds at steps of 20, 50 and 100 ms."""
    source, u, axis = SCENES[name]
    compiled, data = at_rest(source, u)
    start = data.qpos.copy()
    mujoco.mj_step(compiled, data, round(2.0 / compiled.opt.timestep))
    expected = data.qpos[axis] - start[axis]
    model = qdsim.load(source)
    for h in (0.02, 0.05, 0.1):
        options = qdsim.Options(h=h, contacts="mujoco", epsilon=0.01)
        q = start
        for _ in range(round(2.0 / h)):
            q = qdsim.step(model, q, u, options).q_next
        assert q[axis] - start[axis] == pytest.approx(
            expected, rel=NEARLY_SLIDES.get(name, 0.02)
        ), h
        other = np.delete(q - start, axis)
        assert np.abs(other).max() < (3e-3 if name in NEARLY_SLIDES else 1e-3)


@pytest.mark.parametrize("normal", ["0.2 0.4 0.9", "-0.1 0.6 0.75", "0.3 0.1 0.9"])
def test_pyramids_stand_as_mujocos(normal: str) -> None:
    """How fast a box creeps down a slope, and where to, depends on the tangents that edges are along."""
    compiled, data = at_rest(slope(normal, STICKY), ())
    start = data.qpos.copy()
    mujoco.mj_step(compiled, data, round(2.0 / compiled.opt.timestep))
    model, q = qdsim.load(slope(normal, STICKY)), start
    options = qdsim.Options(h=0.05, contacts="mujoco", epsilon=0.01)
    for _ in range(40):
        q = qdsim.step(model, q, [], options).q_next
    way = data.qpos[:3] - start[:3]
    assert np.linalg.norm(q[:3] - data.qpos[:3]) < 0.03 * np.linalg.norm(way)
    step = qdsim.step(model, q, [], options)
    assert np.linalg.norm(step.contacts["force"][:, :3].sum(axis=0)) == pytest.approx(
        0.8 * 9.81, rel=1e-3
    )


def test_forces_and_depth_at_rest_are_mujocos() -> None:
    """What rests in MuJoCo rests here, at the same depth and with the same forces."""
    for condim in (1, 3, 4, 6):
        for cone in ("elliptic", "pyramidal"):
            source = INCLINE.format(
                shape=BALL,
                cone=cone,
                impratio=3.0,
                along=0.0,
                down=-9.81,
                geom=f'condim="{condim}"',
            ).replace("0.0498", "0.0298")
            _, data = at_rest(source, (), 2.0)
            model = qdsim.load(source)
            for h in (0.02, 0.1, 2.0):
                step = qdsim.step(model, data.qpos, [], qdsim.Options(h=h, contacts="mujoco"))
                assert np.abs(step.q_next - data.qpos).max() < 1e-8, (condim, cone, h)
                assert step.contacts["force"][0][0] == pytest.approx(0.8 * 9.81, rel=1e-5)


def test_deep_contacts_come_out_without_overshoot() -> None:
    """At MuJoCo's pace, whatever h is: the depth falls to that at rest, and at most 1e-6 m below."""
    source = incline(0.0)
    model = qdsim.load(source)
    for h in (0.01, 0.1, 1.0):
        q = np.array((0, 0, 0.045, 1.0, 0, 0, 0))
        heights = [q[2]]
        for _ in range(30):
            q = qdsim.step(model, q, [], qdsim.Options(h=h, contacts="mujoco")).q_next
            heights.append(q[2])
        assert np.all(np.diff(heights) > -1e-6), h
        assert heights[-1] < 0.05


def test_what_does_not_touch_moves_to_the_bit_as_with_rigid_contacts() -> None:
    model = qdsim.load(grasp(BALL))
    q = np.array((-0.02, 0.02, 0.0, 0.0, 0.5, 1, 0, 0, 0))
    for u in ((-0.01, 0.01), (-0.03, 0.03)):
        for held in (("held",), ()):
            rigid = qdsim.Options(h=0.01, held=held)
            steps = [
                qdsim.step(model, q, u, options)
                for options in (rigid, rigid.replace(contacts="mujoco"))
            ]
            assert np.array_equal(steps[0].q_next, steps[1].q_next)
            lin = [
                qdsim.linearize(model, q, u, o) for o in (rigid, rigid.replace(contacts="mujoco"))
            ]
            assert np.array_equal(lin[0].A, lin[1].A)
            assert np.array_equal(lin[0].B, lin[1].B)


def test_what_comes_from_afar_is_not_held_before_it_touches() -> None:
    """A fall onto a plane ends at the plane, a yield below it; rigid contacts end there."""
    model = qdsim.load(
        INCLINE.format(shape=BALL, cone="elliptic", impratio=1, along=0, down=-9.81, geom="")
    )
    q = np.array((0, 0, 0.04, 1.0, 0, 0, 0))
    rigid, soft = (
        qdsim.step(model, q, [], qdsim.Options(h=0.1, contacts=word)).q_next[2]
        for word in ("rigid", "mujoco")
    )
    assert rigid == pytest.approx(0.03, abs=1e-12)
    assert 0.029 < soft < 0.03


def test_stiffness_of_its_own_counts() -> None:
    scene = qdsim.SceneBuilder()
    scene.geom("world", "plane", stiffness=1e3)
    scene.body("ball", pos=(0, 0, 0.1), mass=1.0)
    scene.joint("ball", "free")
    scene.geom("ball", "sphere", 0.1)
    model = qdsim.build(scene.build())
    steps = [
        qdsim.step(model, model.default_q, [], qdsim.Options(contacts=word))
        for word in ("rigid", "mujoco")
    ]
    assert np.array_equal(steps[0].q_next, steps[1].q_next)


# ---------------------------------------------------------------- derivatives

SMOOTH = 'solref="0.05 1" solimp="0.5 0.9 0.03 0.4 3" margin="0.001"'
"""Of an impedance that changes over more than what stencils reach."""


def settled(source: str, u: Any, axis: int, spread: float) -> Scene:
    _, data = at_rest(source, u)
    model = qdsim.load(source)
    near = _around(model, data.qpos.copy(), np.full(model.nv, spread), 0.0)
    shift = np.asarray(u, dtype=np.float64)

    def sample(rng: np.random.Generator) -> tuple[Vector, Vector]:
        return near(rng)[0], shift + 2e-4 * rng.uniform(-1.0, 1.0, model.nu)

    return Scene(model, sample)


@pytest.mark.short_cases(3)
@pytest.mark.parametrize("kappa", [None, 1e2])
@pytest.mark.parametrize(
    "name", ["cube", "ball, pyramids", "incline", "light, pyramids", "rolling", "slope"]
)
def test_derivatives(name: str, kappa: float | None) -> None:
    source, u, axis = {
        "cube": (grasp(CUBE, geom=SMOOTH), SQUEEZE, 4),
        "ball, pyramids": (grasp(BALL, "pyramidal", geom=SMOOTH), SQUEEZE, 4),
        "incline": (incline(0.6, geom=SMOOTH), (), 0),
        "light, pyramids": (grasp(BALL, "pyramidal", geom=SMOOTH), 2.0 * LIGHT, 4),
        "rolling": (
            grasp(BALL, "pyramidal", geom=SMOOTH)
            .replace('condim="4"', 'condim="6"')
            .replace("1 0.005 0.0001", "1 0.01 0.01"),
            SQUEEZE,
            4,
        ),
        "slope": (slope("0.2 0.4 0.9", SMOOTH), (), 0),
    }[name]
    scene = settled(source, u, axis, 1e-4 if name == "slope" else 5e-4)
    options = qdsim.Options(h=0.05, kappa=kappa, contacts="mujoco", epsilon=0.1)
    report = compare(scene, options, 4)
    assert report.share >= 0.7
    assert report.worst <= STANDARD
    for seed in range(2):
        q, command = scene.sample(np.random.default_rng(seed))
        lin = qdsim.linearize(scene.model, q, command, options)
        d = qdsim.differentiate(scene.model, q, command, options)
        scale = max(1.0, np.abs(lin.A).max())
        eye = np.eye(scene.model.nv)
        rows = d.vjp(eye)
        np.testing.assert_allclose(rows["q"], lin.A, atol=1e-8 * scale)
        np.testing.assert_allclose(d.jvp({"q": eye}).T, lin.A, atol=1e-8 * scale)
        np.testing.assert_allclose(rows["u"], lin.B, atol=1e-8 * scale)


@pytest.mark.parametrize("kappa", [None, 1e2])
@pytest.mark.parametrize(
    ("cone", "squeeze"), [("elliptic", 1.0), ("pyramidal", 1.0), ("pyramidal", 0.5)]
)
def test_derivatives_by_parameters(cone: str, squeeze: float, kappa: float | None) -> None:
    """By friction, which sets the compliance across the normal; sizes, which set the depth; and the time step."""
    scene = settled(grasp(BALL, cone, geom=SMOOTH), squeeze * SQUEEZE, 4, 2e-4)
    model, rng = scene.model, np.random.default_rng(3)
    options = qdsim.Options(h=0.05, kappa=kappa, contacts="mujoco", epsilon=0.1)
    q, u = scene.sample(rng)
    d = qdsim.differentiate(model, q, u, options)
    for parameter in ("pair_friction", "geom_size", "h"):
        value = 0.05 if parameter == "h" else getattr(model.parameters, parameter)
        direction = value * (1.0 if parameter == "h" else rng.uniform(-1, 1, np.shape(value)))
        if parameter == "pair_friction":
            direction[:, 1], direction[:, 4] = direction[:, 0], direction[:, 3]
        out, eps = np.zeros(model.nv), 1e-4
        for width, weight in STENCIL:
            for sign in (1.0, -1.0):
                changed = value + sign * width * eps * direction
                if parameter == "h":
                    q_next = qdsim.step(model, q, u, options.replace(h=changed)).q_next
                else:
                    q_next = qdsim.step(
                        model.with_parameters(**{parameter: changed}), q, u, options
                    ).q_next
                out += sign * weight / eps * model.difference(q_next, d.q_next)
        ours = d.jvp({parameter: direction})
        assert np.abs(ours).max() > 1e-6
        np.testing.assert_allclose(ours, out, atol=1e-7 + 1e-6 * np.abs(out).max())
        w = rng.uniform(-1, 1, model.nv)
        back = np.sum(d.vjp(w, wrt=(parameter,))[parameter] * direction)
        assert back == pytest.approx(w @ ours, rel=1e-7, abs=1e-12)


@pytest.mark.parametrize("cone", ["elliptic", "pyramidal"])
def test_derivatives_by_force_limits(cone: str) -> None:
    """One plate presses with all that its actuator has, the other with what its spring asks."""
    scene = settled(grasp(CUBE, cone, geom=SMOOTH), SQUEEZE, 4, 2e-4)
    limits = np.array(((-3.0, 3.0), (-60.0, 60.0)))
    options = qdsim.Options(h=0.05, contacts="mujoco", epsilon=0.1)
    q, u = scene.sample(np.random.default_rng(4))

    def limited(by: Vector) -> qdsim.Model:
        return scene.model.with_parameters(actuator_force_range=limits + by)

    d = qdsim.differentiate(limited(np.zeros((2, 2))), q, u, options)
    assert qdsim.step(limited(np.zeros((2, 2))), q, u, options).info.method == "envelope"
    for direction in np.eye(4).reshape(4, 2, 2):
        out = np.zeros(scene.model.nv)
        for width, weight in STENCIL:
            for sign in (1.0, -1.0):
                step = qdsim.step(limited(1e-3 * sign * width * direction), q, u, options)
                out += sign * weight / 1e-3 * scene.model.difference(step.q_next, d.q_next)
        ours = d.jvp({"actuator_force_range": direction})
        np.testing.assert_allclose(ours, out, atol=1e-9 + 1e-6 * np.abs(out).max())
    assert np.abs(d.jvp({"actuator_force_range": np.array(((0, 1.0), (0, 0)))})).max() > 1e-6


# ---------------------------------------------------------------- batches, rollouts, bad input


@pytest.mark.parametrize("cone", ["elliptic", "pyramidal"])
def test_batches_rollouts_and_warm_starts(cone: str) -> None:
    scene = settled(grasp(CUBE, cone), SQUEEZE, 4, 5e-4)
    model, rng = scene.model, np.random.default_rng(2)
    q, u = (np.array(part) for part in zip(*[scene.sample(rng) for _ in range(5)]))
    options = qdsim.Options(h=0.05, contacts="mujoco")
    batch = qdsim.linearize_batch(model, q, u, options, threads=2)
    for i in range(5):
        one = qdsim.linearize(model, q[i], u[i], options)
        assert np.array_equal(batch.q_next[i], one.q_next)
        assert np.array_equal(batch.A[i], one.A)
        again = qdsim.step(model, q[i], u[i], options, warm_start=one)
        np.testing.assert_allclose(again.q_next, one.q_next, atol=1e-8)
    commands = np.tile(SQUEEZE, (4, 1))
    rolled = qdsim.rollout(model, q[0], commands, options)
    state = q[0]
    for k, command in enumerate(commands):
        state = qdsim.step(model, state, command, options).q_next
        np.testing.assert_allclose(rolled.q[k + 1], state, atol=1e-8)


def test_scenes_made_in_code_are_mujocos_by_default() -> None:
    for solver in (None, ContactSolver("elliptic", 5.0)):
        scene = qdsim.SceneBuilder(contact_solver=solver, gravity=(2.0, 0, -9.81))
        scene.geom("world", "plane")
        scene.body("box", pos=(0, 0, 0.0499), mass=1.0)
        scene.joint("box", "free")
        scene.geom("box", "box", (0.05, 0.05, 0.05))
        description = scene.build()
        options = qdsim.Options(contacts="mujoco")
        made, read = qdsim.build(description), qdsim.load(description.to_mjcf())
        steps = [qdsim.step(model, model.default_q, [], options) for model in (made, read)]
        np.testing.assert_allclose(steps[0].q_next, steps[1].q_next, atol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"contacts": "soft"}, "contacts: expected 'rigid' or 'mujoco', got 'soft'"),
        (
            {"contacts": "mujoco", "friction": "pyramid"},
            "friction: expected 'cone' with contacts='mujoco'",
        ),
        ({"contacts": "mujoco", "law": "coulomb"}, "law: expected 'convex' with contacts='mujoco'"),
        (
            {"contacts": "mujoco", "contact_stiffness": 1e3},
            "contact_stiffness: expected None with contacts",
        ),
    ],
)
def test_bad_options_are_named(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        qdsim.Options(**arguments)


def test_contacts_without_damping_are_named() -> None:
    model = qdsim.load(incline(0.0, geom='solref="-1000 0"'))
    with pytest.raises(
        ValueError, match=r"contacts: 'mujoco' needs damping in solref .* 'geom0' with 'geom1'"
    ):
        qdsim.step(model, model.default_q, [], qdsim.Options(contacts="mujoco"))
    qdsim.step(model, model.default_q, [])


def test_options_are_kept_by_pickles_and_copies() -> None:
    options = qdsim.Options(contacts="mujoco")
    assert pickle.loads(pickle.dumps(options)) == options
    assert options.replace(h=0.2).contacts == "mujoco"
    assert options != qdsim.Options()


@pytest.mark.parametrize("options", [{"contacts": "mujoco"}, {"contact_stiffness": 1e4}])
def test_large_islands_step(options: dict[str, Any]) -> None:
    """192 DOFs in one island, whose factor has more tiles than its variables have."""
    scene = qdsim.SceneBuilder()
    scene.geom("world", "plane")
    for i in range(32):
        scene.body(f"b{i}", pos=(0.099 * (i % 2), 0, 0.05 + 0.0995 * (i // 2)), mass=1.0)
        scene.joint(f"b{i}", "free")
        scene.geom(f"b{i}", "box", (0.05, 0.05, 0.05))
    model = qdsim.build(scene.build())
    step = qdsim.step(model, model.default_q, [], qdsim.Options(margin=0.02, **options))
    floor = step.contacts["body_a"] == 0
    assert step.contacts["force"][floor, 0].sum() == pytest.approx(32 * 9.81, rel=0.2)


@pytest.mark.parametrize("cone", ["elliptic", "pyramidal"])
def test_large_islands_balance(cone: str) -> None:
    """Forces on each of 40 boxes are its mass times what it moves, over h squared, and within friction."""
    count, gravity = 40, np.array((1.5, 0.7, -9.81))
    scene = qdsim.SceneBuilder(contact_solver=ContactSolver(cone, 2.0), gravity=gravity)
    scene.geom("world", "plane")
    for i in range(count):
        scene.body(f"b{i}", pos=(0.099 * (i % 4), 0, 0.0499 + 0.0998 * (i // 4)), mass=1.0)
        scene.joint(f"b{i}", "free")
        scene.geom(f"b{i}", "box", (0.05, 0.05, 0.05))
    model = qdsim.build(scene.build())
    options = qdsim.Options(h=0.05, margin=0.02, contacts="mujoco")
    step = qdsim.step(model, model.default_q, [], options)
    total = np.tile(gravity, (count + 1, 1))
    for contact in step.contacts:
        force, friction = contact["force"], contact["friction"][0]
        across = np.linalg.norm(force[1:3])
        assert across <= friction * force[0] + 1e-9
        world = force[:3] @ contact["frame"].reshape(3, 3)
        total[contact["body_b"]] += world
        total[contact["body_a"]] -= world
    moved = np.asarray(step.delta).reshape(count, 6)[:, :3]
    np.testing.assert_allclose(moved / 0.05**2, total[1:], atol=1e-7)
    assert np.abs(moved).max() > 1e-5


def test_carrots_step() -> None:
    """205 DOFs, most of them one island of cylinders on a board: it ends, and warm steps are the same."""
    system = systems.load("carrots")
    options = system.options.replace(contacts="mujoco", friction="cone")
    step = qdsim.step(system.model, system.start.q, system.start.u, options)
    again = qdsim.step(system.model, system.start.q, system.start.u, options, warm_start=step)
    np.testing.assert_allclose(again.q_next, step.q_next, atol=1e-7)
