"""Derivatives of a step by forces and parameters: differences, closed forms, the adjoint identity."""

from __future__ import annotations

import gc
import pickle
from collections.abc import Iterable

import numpy as np
import pytest
from scenes import Scene, arm, floating, pendulum, planar_hand, pusher
from test_constraints import SCENES as CONSTRAINED
from test_linearize import STENCIL
from test_tendons import hand_scene
from test_wrench import BLOCK, MASS, MU, SPRING, G, H

import qdsim

ARGUMENTS = qdsim._core.ARGUMENT_NAMES
PARAMETERS = qdsim._core.PARAMETER_NAMES
STANDARD = 1e-6

Tangents = dict[str, np.ndarray]


def shape_of(model: qdsim.Model, name: str) -> tuple[int, ...]:
    inputs = {"q": (model.nv,), "u": (model.nu,), "tau": (model.nv,)}
    inputs["wrench"] = (model.body_count, 6)
    inputs["mocap"] = (model.mocap_count, 6)
    inputs["v"], inputs["h"] = (model.nv,), ()
    return inputs[name] if name in inputs else getattr(model.parameters, name).shape


def tangents(model: qdsim.Model, rng: np.random.Generator, names: Iterable[str]) -> Tangents:
    """Random directions that stay within what a model may be: in proportion, inertias symmetric."""
    out = {}
    for name in names:
        out[name] = rng.uniform(-1.0, 1.0, shape_of(model, name))
        if name in (
            "geom_size",
            "geom_modulus",
            "body_mass",
            "joint_stiffness",
            "actuator_stiffness",
            "joint_damping",
            "joint_armature",
            "actuator_damping",
            "pair_compliance",
            "tendon_stiffness",
            "joint_friction",
        ):
            out[name] *= getattr(model.parameters, name)
        if name == "pair_friction":
            out[name][:, 1], out[name][:, 4] = out[name][:, 0], out[name][:, 3]
            out[name] *= model.parameters.pair_friction
        if name == "body_inertia":
            out[name] = (
                0.2 * model.parameters.body_inertia * rng.uniform(-1, 1, (model.body_count, 1, 1))
            )
            largest = np.abs(model.parameters.body_inertia).max(axis=(1, 2), keepdims=True)
            turn = rng.uniform(-0.02, 0.02, out[name].shape)
            out[name] += largest * (turn + turn.transpose(0, 2, 1))
    return out


def moved(
    model: qdsim.Model, state: Tangents, direction: Tangents, s: float, options
) -> np.ndarray:
    """q_next after the arguments have moved by s along the direction."""
    changes = {
        name: getattr(model.parameters, name) + s * d
        for name, d in direction.items()
        if name in PARAMETERS
    }
    variant = model.with_parameters(**changes) if changes else model
    at = {name: state[name] + s * direction.get(name, 0.0) for name in ("u", "tau", "wrench")}
    q = model.integrate(state["q"], s * direction["q"]) if "q" in direction else state["q"]
    options = options.replace(h=options.h + s * float(direction.get("h", 0.0)))
    return qdsim.step(variant, q, at["u"], options, tau=at["tau"], wrench=at["wrench"]).q_next


def differences(
    model: qdsim.Model, state: Tangents, direction: Tangents, options, eps
) -> tuple[np.ndarray, np.ndarray]:
    """Derivatives along the direction by stencils of eps and eps / 2, which share points."""
    center = moved(model, state, {}, 0.0, options)
    odd = {}
    for s in (0.5, 1.0, 2.0):
        ends = (moved(model, state, direction, sign * s * eps, options) for sign in (1.0, -1.0))
        ahead, behind = (model.difference(end, center) for end in ends)
        odd[s] = ahead - behind
    wide, narrow = (
        sum(weight * odd[width * part] for width, weight in STENCIL) / (part * eps)
        for part in (1.0, 0.5)
    )
    return wide, narrow


def sample(scene: Scene, rng: np.random.Generator) -> Tangents:
    q, u = scene.sample(rng)
    model = scene.model
    return {
        "q": q,
        "u": u,
        "tau": 0.3 * rng.uniform(-1, 1, model.nv),
        "wrench": 0.3 * rng.uniform(-1, 1, (model.body_count, 6)),
    }


def differential(scene: Scene, state: Tangents, options) -> qdsim.Differential:
    return qdsim.differentiate(
        scene.model, state["q"], state["u"], options, tau=state["tau"], wrench=state["wrench"]
    )


def check_products(
    model: qdsim.Model,
    d: qdsim.Differential,
    state: Tangents,
    options: qdsim.Options,
    directions: Tangents,
    rng: np.random.Generator,
    tolerance: float,
) -> tuple[int, int]:
    """Products of a step's derivative beside its matrices, a pullback beside pushforwards along ``directions`` (both
    to ``tolerance``, in parts), and these beside differences: how many of those were compared, how many left out.

    Differences of two lengths that differ from each other are those at a kink, and say nothing."""
    lin = qdsim.linearize(
        model, state["q"], state["u"], options, tau=state["tau"], wrench=state["wrench"]
    )
    atol = tolerance * max(1.0, np.abs(lin.A).max())
    np.testing.assert_allclose(d.jvp({"q": np.eye(model.nv)}).T, lin.A, atol=atol)
    np.testing.assert_allclose(d.jvp({"u": np.eye(model.nu)}).T, lin.B, atol=atol)
    compared, left_out, w = 0, 0, rng.uniform(-1, 1, model.nv)
    pulled = d.vjp(w, tuple(directions))
    for name, tangent in directions.items():
        ours = d.jvp({name: tangent})
        size = max(1.0, np.abs(pulled[name] * tangent).sum())
        assert abs(w @ ours - np.sum(pulled[name] * tangent)) <= tolerance * size, name
        if not np.any(tangent):
            continue
        scale = max(1.0, np.abs(ours).max())
        wide, narrow = differences(model, state, {name: tangent}, options, 4e-5)
        if np.abs(wide - narrow).max() <= STANDARD * scale:
            compared += 1
            assert np.abs(ours - narrow).max() <= STANDARD * scale, name
        else:
            left_out += 1
    return compared, left_out


SPHERES = """<mujoco><option gravity="0 0 -9.81"/>
  <default><geom friction="0.6 0.02 0.01" condim="{condim}"/></default>
  <worldbody><geom type="plane" size="1 1 .1"/>
    <body name="a" pos="0 0 .1"><freejoint/><geom type="cylinder" size="0.12 0.1" mass="1"/></body>
    <body name="b" pos="0.01 0.02 .26"><freejoint/><geom type="ellipsoid" size="0.1 0.07 0.06" mass="0.4"/></body>
    <body pos="-0.17 0 .1"><joint name="x" type="slide" axis="1 0 0" stiffness="5" springref="0.1"/>
      <geom type="capsule" size="0.05 0.04"/></body>
  </worldbody>
  <actuator><position joint="x" kp="300"/></actuator></mujoco>"""


def curved(condim: int = 3) -> Scene:
    model = qdsim.load(SPHERES.format(condim=condim))

    def draw(rng: np.random.Generator):
        spread = np.array(
            [0.005, 0.005, 0.003, 0.05, 0.05, 1, 0.02, 0.02, 0.003, 0.1, 0.1, 1, 0.01]
        )
        q = model.integrate(model.default_q, spread * rng.uniform(-1, 1, model.nv))
        return q, rng.uniform(0.0, 0.05, 1)

    return Scene(model, draw)


def scenes(condim: int = 3) -> dict[str, Scene]:
    return {
        "hand": planar_hand(),
        "sphere": pusher("sphere", condim),
        "box": pusher("box", condim),
        "capsule": pusher("capsule", condim),
        "arm": arm(condim),
        "pendulum": pendulum(condim),
        "floating": floating(condim),
        "curved": curved(condim),
        **CONSTRAINED,
        "tendons": hand_scene(),
    }


OPTIONS = {
    "exact": qdsim.Options(margin=0.3),
    "pyramid": qdsim.Options(margin=0.3, friction="pyramid", h=0.07, gravity_on_actuated=True),
    "smoothed": qdsim.Options(margin=0.3, kappa=300.0, epsilon=0.6),
    "smoothed pyramid": qdsim.Options(margin=0.3, kappa=300.0, friction="pyramid"),
}


@pytest.mark.short_cases(1)
@pytest.mark.parametrize("kind", list(OPTIONS))
@pytest.mark.parametrize("name", list(scenes()))
def test_differences(name: str, kind: str) -> None:
    """Every argument alone along a random direction, states at a kink left out."""
    scene, options, rng = scenes(6)[name], OPTIONS[kind], np.random.default_rng(7)
    compared, left_out = 0, 0
    for _ in range(2 if kind == "exact" else 1):
        state = sample(scene, rng)
        d = differential(scene, state, options)
        for argument, tangent in tangents(scene.model, rng, ARGUMENTS).items():
            if not np.any(tangent):
                continue  # a model without springs, say
            ours = d.jvp({argument: tangent})
            scale = max(1.0, np.abs(ours).max())
            for width in (2e-4, 4e-5):  # closer by if there is a kink in the wide stencil
                wide, narrow = differences(scene.model, state, {argument: tangent}, options, width)
                if np.abs(wide - narrow).max() <= STANDARD * scale:
                    break
            else:
                left_out += 1
                continue
            compared += 1
            assert np.abs(ours - narrow).max() <= STANDARD * scale, argument
    assert compared >= 0.7 * (compared + left_out)


@pytest.mark.short_cases(1)
@pytest.mark.parametrize("kind", list(OPTIONS))
def test_both_ways_and_the_matrices_agree(kind: str) -> None:
    """<w, J v> = <J'w, v> to rounding; jvp of unit vectors, vjp of unit vectors and A, B are the same."""
    rng, options = np.random.default_rng(3), OPTIONS[kind]
    for name, scene in scenes(4).items():
        model, state = scene.model, sample(scene, rng)
        d = differential(scene, state, options)
        both = tangents(model, rng, ARGUMENTS)
        w = rng.uniform(-1, 1, model.nv)
        pulled = d.vjp(w, ARGUMENTS)
        for argument, v in both.items():
            assert pulled[argument].shape == v.shape
            forward, backward = w @ d.jvp({argument: v}), np.sum(pulled[argument] * v)
            size = max(1.0, abs(forward), np.abs(pulled[argument] * v).sum())
            assert abs(forward - backward) <= 1e-9 * size, (name, argument)
        together = d.jvp(both)
        alone = sum(d.jvp({argument: v}) for argument, v in both.items())
        np.testing.assert_allclose(together, alone, rtol=1e-7, atol=1e-9)
        lin = qdsim.linearize(
            model, state["q"], state["u"], options, tau=state["tau"], wrench=state["wrench"]
        )
        scale = max(1.0, np.abs(lin.A).max())
        np.testing.assert_allclose(d.jvp({"q": np.eye(model.nv)}).T, lin.A, atol=1e-9 * scale)
        np.testing.assert_allclose(d.jvp({"u": np.eye(model.nu)}).T, lin.B, atol=1e-9 * scale)
        rows = d.vjp(np.eye(model.nv))
        np.testing.assert_allclose(rows["q"], lin.A, atol=1e-9 * scale)
        np.testing.assert_allclose(rows["u"], lin.B, atol=1e-9 * scale)
        by_all = qdsim.linearize(
            model,
            state["q"],
            state["u"],
            options,
            tau=state["tau"],
            wrench=state["wrench"],
            wrt=ARGUMENTS,
        )
        np.testing.assert_array_equal(by_all.q_next, lin.q_next)
        np.testing.assert_allclose(by_all.A, lin.A, atol=1e-9 * scale)
        for argument in ARGUMENTS:
            jacobian = by_all.derivatives[argument]
            assert jacobian.shape == (model.nv, *shape_of(model, argument))
            assert not jacobian.flags.writeable
            np.testing.assert_allclose(
                np.tensordot(w, jacobian, 1), pulled[argument], rtol=1e-9, atol=1e-9
            )


def test_forces_and_held_joints() -> None:
    """tau enters as what it drives; held joints do not answer, and do not ask."""
    scene, rng = pusher("box"), np.random.default_rng(1)
    model, state = scene.model, sample(scene, rng)
    options = qdsim.Options(margin=0.3, held=("object",))
    d = differential(scene, state, options)
    jacobian = d.jacobians(("q", "u", "tau", "wrench", "geom_size"))
    held = model.slice_v("object")
    np.testing.assert_array_equal(jacobian["q"][held], np.eye(model.nv)[held])
    for name in ("u", "tau", "wrench", "geom_size"):
        np.testing.assert_array_equal(jacobian[name][held], 0.0)
    np.testing.assert_array_equal(jacobian["tau"][:, held], 0.0)
    everything = qdsim.Options(held=model.joint_names)
    d = differential(scene, state, everything)
    np.testing.assert_array_equal(d.jvp({"q": np.eye(model.nv)}), np.eye(model.nv))
    np.testing.assert_array_equal(
        d.vjp(np.ones(model.nv), ("pair_friction",))["pair_friction"], 0.0
    )


def test_springs_in_closed_form() -> None:
    """q+ = F / k: d/dk = -F / k^2, d/dF = 1 / k; with a rest position, d/d springref = 1."""
    model = qdsim.load(SPRING)
    wrench = {"cart": [3.0, 0, 0, 0, 0, 0]}
    options = qdsim.Options(epsilon=0.0, margin=0.0)
    lin = qdsim.linearize(
        model,
        np.zeros(2),
        [0.0],
        options,
        wrench=wrench,
        wrt=("wrench", "joint_stiffness", "joint_springref", "actuator_stiffness"),
    )
    assert lin.A is None and lin.B is None
    by = lin.derivatives
    assert by["joint_stiffness"][0, 0] == pytest.approx(-3.0 / 40.0**2, rel=1e-12)
    assert by["joint_springref"][0, 0] == pytest.approx(1.0, rel=1e-12)
    np.testing.assert_allclose(by["wrench"][0, 1], [1 / 40.0, 0, 0, 0, 0, 0], atol=1e-15)
    # the second hinge carries its centre of mass at 0.5 along x
    np.testing.assert_allclose(by["wrench"][1, 2], [0, 0.5 / 8, 0, 0, 0, 1 / 8.0], atol=1e-15)
    assert by["actuator_stiffness"][1, 0] == 0.0


def test_a_sliding_block_in_closed_form() -> None:
    """x = h^2 / m (F - mu m g) / (1 + mu^2), z = mu x (test_wrench): by mu, m, g and F."""
    model = qdsim.load(BLOCK)
    pull = 1.5 * MU * MASS * G
    lin = qdsim.linearize(
        model,
        model.default_q,
        [],
        qdsim.Options(h=H),
        wrench={"block": [pull, 0, 0, 0, -0.1 * pull, 0]},
        wrt=("pair_friction", "body_mass", "gravity", "wrench"),
    )
    by = lin.derivatives
    gamma, net = 1.0 + MU * MU, pull - MU * MASS * G
    x = H * H / MASS * net / gamma
    dx = H * H / MASS * (-MASS * G / gamma - 2.0 * MU * net / gamma**2)
    by_mu = by["pair_friction"][:, 0, 0] + by["pair_friction"][:, 0, 1]
    np.testing.assert_allclose(by_mu[[0, 2]], [dx, x + MU * dx], rtol=1e-8)
    by_mass = -x / MASS - H * H / MASS * MU * G / gamma
    np.testing.assert_allclose(by["body_mass"][[0, 2], 1], [by_mass, MU * by_mass], rtol=1e-8)
    by_g = H * H * MU / gamma  # by the z component, -g
    np.testing.assert_allclose(by["gravity"][[0, 2], 2], [by_g, MU * by_g], rtol=1e-8)
    by_force = H * H / MASS / gamma
    along = by["wrench"][0, 1, 0] - 0.1 * by["wrench"][0, 1, 4]
    assert along == pytest.approx(by_force, rel=1e-8)


def test_a_growing_ball_lifts_itself() -> None:
    """A ball on the ground: its centre stands a radius high, and no friction or mass changes that."""
    model = qdsim.load(
        '<mujoco><worldbody><geom type="plane" size="1 1 .1"/><body pos="0 0 .1"><freejoint/>'
        '<geom type="sphere" size=".1" mass="1"/></body></worldbody></mujoco>'
    )
    d = qdsim.differentiate(model, model.default_q, [])
    by = d.jacobians(("geom_size", "body_mass", "pair_friction"))
    assert by["geom_size"][2, 1, 0] == pytest.approx(1.0, rel=1e-12)
    np.testing.assert_allclose(by["geom_size"][:2], 0.0, atol=1e-12)
    np.testing.assert_allclose(by["body_mass"], 0.0, atol=1e-12)
    np.testing.assert_allclose(by["pair_friction"], 0.0, atol=1e-12)


def test_gradient_through_a_trajectory() -> None:
    """Pullbacks of ten steps, one after the other, against differences of the rollout."""
    scene, rng = planar_hand(), np.random.default_rng(5)
    model = scene.model
    options = qdsim.Options(margin=10.0, kappa=200.0)
    q, u = scene.sample(rng)
    goal = rng.uniform(-1, 1, model.nv)

    def end(friction: float) -> np.ndarray:
        variant = model.with_parameters(pair_friction=friction)
        return qdsim.rollout(variant, q, np.tile(u, (10, 1)), options).q[-1]

    middle = model.with_parameters(pair_friction=0.5)
    steps, now = [], q
    for _ in range(10):
        steps.append(qdsim.differentiate(middle, now, u, options))
        now = steps[-1].q_next
    cotangent, gradient = goal, 0.0
    for d in reversed(steps):
        pulled = d.vjp(cotangent, ("q", "pair_friction"))
        cotangent, gradient = pulled["q"], gradient + pulled["pair_friction"][:, :2].sum()
    eps = 1e-4
    numbers = sum(
        sign * weight / eps * goal @ model.difference(end(0.5 + sign * width * eps), now)
        for width, weight in STENCIL
        for sign in (1.0, -1.0)
    )
    assert gradient == pytest.approx(numbers, rel=1e-6)


@pytest.mark.long
def test_objects_live_alone() -> None:
    """Results do not depend on other calls in between, on order, or on copies that are alive."""
    scene, rng = arm(), np.random.default_rng(2)
    states = [sample(scene, rng) for _ in range(4)]
    alive = [differential(scene, state, None) for state in states]
    w = rng.uniform(-1, 1, scene.model.nv)
    later = [d.vjp(w)["q"] for d in alive]
    again = [d.vjp(w)["q"] for d in reversed(alive)][::-1]
    fresh = []
    for state in states:
        fresh.append(differential(scene, state, None).vjp(w)["q"])
        gc.collect()
    for a, b, c in zip(later, again, fresh):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(a, c)
    many = alive[0].vjp(np.tile(w, (7, 1)))["q"]
    np.testing.assert_allclose(many, np.tile(later[0], (7, 1)), rtol=1e-12, atol=1e-14)
    assert alive[0].jvp({}).tolist() == [0.0] * scene.model.nv
    step, out = qdsim.jvp(
        scene.model, states[0]["q"], states[0]["u"], tangents={"q": w}, tau=states[0]["tau"]
    )
    assert out.shape == (scene.model.nv,) and step.q_next.shape == (scene.model.nq,)
    step, gradient = qdsim.vjp(
        scene.model, states[0]["q"], states[0]["u"], cotangent=w, wrt=("gravity",)
    )
    assert gradient["gravity"].shape == (3,)


def test_pickled_linearizations_keep_everything() -> None:
    scene, rng = pusher("sphere"), np.random.default_rng(0)
    q, u = scene.sample(rng)
    lin = qdsim.linearize(scene.model, q, u, wrt=("q", "u", "gravity"))
    copy = pickle.loads(pickle.dumps(lin))
    assert set(copy.derivatives) == {"q", "u", "gravity"}
    for name, array in lin.derivatives.items():
        np.testing.assert_array_equal(copy.derivatives[name], array)
        assert not copy.derivatives[name].flags.writeable
    plain = qdsim.linearize(scene.model, q, u)
    assert plain.derivatives["q"] is plain.A and plain.derivatives["u"] is plain.B
    with pytest.raises(TypeError):
        plain.derivatives["q"] = plain.A  # type: ignore[index]


def test_bad_arguments_are_named() -> None:
    scene, rng = pusher("sphere"), np.random.default_rng(0)
    q, u = scene.sample(rng)
    d = qdsim.differentiate(scene.model, q, u)
    nv = scene.model.nv
    with pytest.raises(ValueError, match="wrt: expected names among"):
        d.vjp(np.zeros(nv), ("friction",))
    with pytest.raises(TypeError, match="wrt: expected names of arguments"):
        d.vjp(np.zeros(nv), 3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"cotangent: expected shape \(9,\)"):
        d.vjp(np.zeros(nv + 1))
    with pytest.raises(ValueError, match=r"cotangent: element \[0\] is nan"):
        d.vjp(np.full(nv, np.nan))
    with pytest.raises(TypeError, match="tangents: expected a mapping"):
        d.jvp(np.zeros(nv))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"tangents\['gravity'\]: expected shape \(3,\)"):
        d.jvp({"gravity": np.zeros(4)})
    with pytest.raises(ValueError, match="tangents: leading dimensions differ"):
        d.jvp({"gravity": np.zeros((2, 3)), "q": np.zeros(nv)})
    with pytest.raises(
        ValueError, match="wrt: expected 'q', 'u', 'tau', 'wrench', 'mocap' or a name"
    ):
        qdsim.linearize(scene.model, q, u, wrt=("mass",))
    with pytest.raises(TypeError, match=r"model: expected a qdsim\.Model"):
        qdsim.differentiate(3, q, u)  # type: ignore[arg-type]
