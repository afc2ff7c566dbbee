"""Every argument given wrongly raises an exception that names it; nothing crashes, no NaN goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scenes
from hypothesis import given
from hypothesis import strategies as st

import qdsim
from qdsim import _core

HAND = scenes.planar_hand()
MODEL = HAND.model
Q, U = HAND.sample(np.random.default_rng(0))
TAU = np.zeros(MODEL.nv)


def put(array: np.ndarray, index: int, value: float) -> np.ndarray:
    out = np.array(array)
    out[index] = value
    return out


WRONG_VECTORS: dict[str, tuple[Any, type[Exception], str]] = {
    "short": (lambda v: v[:-1], ValueError, r"{name}: expected shape \({n},\), got \({m},\)"),
    "long": (lambda v: np.append(v, 0.0), ValueError, r"{name}: expected shape \({n},\)"),
    "matrix": (lambda v: v[None], ValueError, r"{name}: expected shape \({n},\), got \(1, {n}\)"),
    "number": (lambda v: 1.0, ValueError, r"{name}: expected shape \({n},\), got \(\)"),
    "nan": (lambda v: put(v, 1, np.nan), ValueError, r"{name}: element 1 is nan"),
    "inf": (lambda v: put(v, 2, np.inf), ValueError, r"{name}: element 2 is inf"),
    "-inf": (lambda v: put(v, 0, -np.inf), ValueError, r"{name}: element 0 is -inf"),
    "nan in a list": (
        lambda v: put(v, 3, np.nan).tolist(),
        ValueError,
        r"{name}: element 3 is nan",
    ),
    "float32 inf": (
        lambda v: np.full(v.size, np.float32(np.inf)),
        ValueError,
        "{name}: element",
    ),
    "complex": (lambda v: v + 0j, TypeError, "{name}: expected real numbers, got dtype complex128"),
    "text": (lambda v: ["1.0"] * v.size, TypeError, "{name}: expected real numbers"),
    "word": (lambda v: "home", TypeError, "{name}: expected real numbers"),
    "bytes": (lambda v: v.tobytes(), TypeError, "{name}: expected real numbers"),
    "object": (lambda v: v.astype(object), TypeError, "{name}: expected real numbers"),
    "bool": (lambda v: v > 0, TypeError, "{name}: expected real numbers, got dtype bool"),
    "dict": (lambda v: {"q": v}, TypeError, "{name}: expected real numbers"),
    "ragged": (lambda v: [[1.0], [1.0, 2.0]], TypeError, "{name}: expected an array of numbers"),
    "time": (lambda v: v.astype("m8[s]"), TypeError, "{name}: expected real numbers"),
}


@pytest.mark.parametrize("function", [qdsim.step, qdsim.linearize])
@pytest.mark.parametrize("name", ["q", "u", "tau"])
@pytest.mark.parametrize("kind", WRONG_VECTORS)
def test_wrong_vectors(function: Any, name: str, kind: str) -> None:
    spoil, error, message = WRONG_VECTORS[kind]
    arguments = {"q": Q, "u": U, "tau": TAU}
    right = arguments[name]
    arguments[name] = spoil(right)
    pattern = message.format(name=name, n=right.size, m=right.size - 1)
    with pytest.raises(error, match=r"^" + pattern):
        function(MODEL, arguments["q"], arguments["u"], tau=arguments["tau"])


@pytest.mark.parametrize("missing", ["q", "u"])
def test_none_is_no_vector(missing: str) -> None:
    arguments: dict[str, Any] = {"q": Q, "u": U, missing: None}
    with pytest.raises(TypeError, match=f"^{missing}: "):
        qdsim.step(MODEL, **arguments)


class Hostile:
    """An object whose conversion raises what it likes."""

    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray:
        raise KeyError("no")


def test_exceptions_of_the_argument_come_through() -> None:
    with pytest.raises(KeyError, match="no"):
        qdsim.step(MODEL, Hostile(), U)


@pytest.mark.parametrize("function", [qdsim.step, qdsim.linearize])
def test_wrong_calls(function: Any) -> None:
    for call, message in (
        (lambda: function(), "model"),
        (lambda: function(MODEL, Q), "'u'"),
        (lambda: function(MODEL, Q, U, None, TAU), "positional"),
        (lambda: function(MODEL, Q, U, step=1), "'step'"),
        (lambda: function(MODEL, Q, U, q=Q), "'q'"),
        (lambda: function("hand", Q, U), "model: expected a qdsim.Model, got str"),
        (lambda: function(None, Q, U), "model: expected a qdsim.Model, got NoneType"),
        (lambda: function(MODEL, Q, U, {"h": 0.1}), "options: expected a qdsim.Options, got dict"),
        (lambda: function(MODEL, Q, U, 0.1), "options: expected a qdsim.Options, got float"),
    ):
        with pytest.raises(TypeError, match=message):
            call()


@pytest.mark.parametrize("wrt", ["x", ("q", "x"), [1], ("q", None)])
def test_wrong_wrt_value(wrt: Any) -> None:
    with pytest.raises(ValueError, match=r"^wrt: expected 'q', 'u'"):
        qdsim.linearize(MODEL, Q, U, wrt=wrt)


def test_wrong_wrt_type() -> None:
    with pytest.raises(TypeError, match=r"^wrt: "):
        qdsim.linearize(MODEL, Q, U, wrt=3)  # type: ignore[arg-type]


# ---------------------------------------------------------------- quaternions

FREE = """<mujoco><worldbody>
  <body name="base"><joint name="knee" type="hinge"/><geom type="sphere" size=".1" mass="1"/>
  <body name="top" pos="0 0 1"><joint name="shoulder" type="ball"/>
    <geom type="sphere" size=".1" mass="1"/></body></body>
  <body name="box" pos="3 0 0"><freejoint name="loose"/><geom type="sphere" size=".1" mass="1"/></body>
</worldbody></mujoco>"""


@pytest.mark.parametrize("length", [0.0, 0.3, 0.998, 1.002, 1e200])
@pytest.mark.parametrize(("joint", "start"), [("shoulder", 1), ("loose", 8)])
def test_quaternions_that_are_not_unit(joint: str, start: int, length: float) -> None:
    model = qdsim.load(FREE)
    q = np.array(model.default_q)
    q[start : start + 4] = [0.0, length, 0.0, 0.0]
    v = np.zeros(model.nv)
    for name, call in {
        "q": lambda: qdsim.step(model, q, []),
        "q ": lambda: qdsim.linearize(model, q, []),
        "q  ": lambda: model.integrate(q, v),
        "q1": lambda: model.difference(q, model.default_q),
        "q0": lambda: model.difference(model.default_q, q),
        "q   ": lambda: model.mass_matrix(q),
    }.items():
        pattern = f"^{name.strip()}: the quaternion of joint '{joint}' has length"
        with pytest.raises(ValueError, match=pattern):
            call()


def test_nearly_unit_quaternions_are_taken() -> None:
    model = qdsim.load(FREE)
    q = np.array(model.default_q)
    q[8:12] = [0.0, 0.9995, 0.0, 0.0]
    assert np.linalg.norm(qdsim.step(model, q, []).q_next[8:12]) == pytest.approx(1.0, abs=1e-12)


# ---------------------------------------------------------------- options

WRONG_OPTIONS: list[tuple[dict[str, Any], type[Exception]]] = [
    ({"h": 0.0}, ValueError),
    ({"h": -0.1}, ValueError),
    ({"h": np.nan}, ValueError),
    ({"h": np.inf}, ValueError),
    ({"h": "0.1"}, TypeError),
    ({"h": None}, TypeError),
    ({"h": True}, TypeError),
    ({"friction": "ellipse"}, ValueError),
    ({"friction": "Cone"}, ValueError),
    ({"friction": 1}, TypeError),
    ({"rays": 1}, ValueError),
    ({"rays": -4}, ValueError),
    ({"rays": 4.0}, TypeError),
    ({"rays": 2**40}, ValueError),
    ({"rays": 65}, ValueError),
    ({"kappa": 0}, ValueError),
    ({"kappa": -1.0}, ValueError),
    ({"kappa": np.nan}, ValueError),
    ({"kappa": "exact"}, TypeError),
    ({"epsilon": -1e-9}, ValueError),
    ({"epsilon": np.inf}, ValueError),
    ({"epsilon": np.nan}, ValueError),
    ({"mass_ratio": 0.0}, ValueError),
    ({"mass_ratio": -5.0}, ValueError),
    ({"mass_ratio": [5.0]}, TypeError),
    ({"margin": -0.01}, ValueError),
    ({"margin": np.nan}, ValueError),
    ({"margin": None}, TypeError),
    ({"joint_limits": 1}, TypeError),
    ({"add_missed_pairs": 2}, TypeError),
    ({"gravity_on_actuated": "no"}, TypeError),
    ({"held": "l1"}, TypeError),
    ({"held": 3}, TypeError),
    ({"held": ("l1", 2)}, TypeError),
    ({"tolerance": 0.0}, ValueError),
    ({"tolerance": 1.0}, ValueError),
    ({"tolerance": -1e-9}, ValueError),
    ({"iteration_limit": 0}, ValueError),
    ({"iteration_limit": 1e3}, TypeError),
]


@pytest.mark.parametrize(("wrong", "error"), WRONG_OPTIONS)
def test_wrong_options(wrong: dict[str, Any], error: type[Exception]) -> None:
    (name,) = wrong
    with pytest.raises(error, match=f"^{name}: "):
        qdsim.Options(**wrong)
    with pytest.raises(error, match=f"^{name}: "):
        qdsim.Options().replace(**wrong)


def test_epsilon_and_mass_ratio_together() -> None:
    for epsilon in (1.0, 2.0, 0.0):
        with pytest.raises(ValueError, match=r"^mass_ratio: .*epsilon"):
            qdsim.Options(epsilon=epsilon, mass_ratio=5.0)
        with pytest.raises(ValueError, match=r"^mass_ratio: .*epsilon"):
            qdsim.Options().replace(epsilon=epsilon, mass_ratio=5.0)


def test_unknown_option() -> None:
    with pytest.raises(TypeError, match="kapa"):
        qdsim.Options(kapa=1.0)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="kapa"):
        qdsim.Options().replace(kapa=1.0)


def test_options_the_model_cannot_serve() -> None:
    spatial = scenes.pusher("box").model
    u = spatial.command_from(spatial.default_q)
    two_rays = qdsim.Options(friction="pyramid", rays=2)
    with pytest.raises(ValueError, match=r"^rays: 2 is the planar law"):
        qdsim.step(spatial, spatial.default_q, u, two_rays)
    assert qdsim.step(MODEL, Q, U, two_rays).info.status == "solved"
    passive = qdsim.load(FREE)
    with pytest.raises(ValueError, match=r"^mass_ratio: "):
        qdsim.step(passive, passive.default_q, [], qdsim.Options(mass_ratio=5.0))
    for held in (("nobody",), ("l1", "nobody"), ("",), ("L1",)):
        with pytest.raises(ValueError, match=f"^held: '{held[-1]}' is neither a joint nor a body"):
            qdsim.step(MODEL, Q, U, qdsim.Options(held=held))


def test_held_name_with_two_meanings() -> None:
    """A joint and a body of one name: fine where they mean the same DOFs, an error otherwise."""
    text = """<mujoco><option gravity="0 0 -10"/><worldbody><body name="{body}">
      <joint name="x" type="slide" axis="0 0 1"/><joint name="y" type="slide" axis="0 1 0"/>
      <geom type="sphere" size="0.1" mass="1"/></body>
      <body name="z" pos="3 0 0"><joint name="z" type="slide" axis="0 0 1"/>
      <geom type="sphere" size="0.1" mass="1"/></body></worldbody></mujoco>"""
    model = qdsim.load(text.format(body="x"))
    with pytest.raises(ValueError, match=r"^held: 'x' names both a joint and a body"):
        qdsim.step(model, np.zeros(3), [], qdsim.Options(held=("x",)))
    delta = qdsim.step(model, np.zeros(3), [], qdsim.Options(held=("z",))).delta
    assert delta[2] == 0 and delta[0] < 0


# ---------------------------------------------------------------- queries


FAR = """<mujoco><worldbody><geom type="plane" size="1 1 1"/>
  <body name="a"><joint type="slide"/><joint name="turn"/><geom size="0.1"/>
  <body name="b"><joint type="slide" axis="1 0 1"/><geom size="0.1" pos="0 0 0.5"/></body></body>
  <body name="c"><freejoint/><geom type="box" size="0.1 0.1 0.1"/></body></worldbody></mujoco>"""


def test_finite_numbers_too_large_for_the_answer() -> None:
    model = qdsim.load(FAR)
    q = np.array(model.default_q)
    q[[0, 2]] = 1.5e308
    opposite = np.array(model.default_q)
    opposite[[0, 2]] = -1.5e308
    queries: dict[str, Callable[[], object]] = {
        "integrate": lambda: model.integrate(q, np.full(model.nv, 1e308)),
        "difference": lambda: model.difference(q, opposite),
        "body_poses": lambda: model.body_poses(q),
        "mass_matrix": lambda: model.mass_matrix(q),
        "point_jacobian": lambda: model.jacobian(q, "b", [1e308, 1e308, 1e308]),
        "contacts": lambda: model.collide(q, np.inf),
        "step": lambda: qdsim.step(model, q, []),
    }
    for name, query in queries.items():
        with pytest.raises(ValueError, match=f"^{name}: the numbers overflow"):
            query()


@pytest.mark.parametrize("name", [None, 3, b"a", ["a"], np.zeros(2)])
def test_names_that_are_no_strings(name: Any) -> None:
    for query in (MODEL.slice_q, MODEL.slice_v, MODEL.slice_u):
        with pytest.raises(TypeError, match="name must be a string"):
            query(name)


@pytest.mark.parametrize("kind", WRONG_VECTORS)
def test_wrong_vectors_in_queries(kind: str) -> None:
    spoil, error, message = WRONG_VECTORS[kind]
    core = _core.Model
    wrong_q, wrong_v = spoil(Q), spoil(TAU)
    wrong_point = spoil(np.zeros(4))
    for name, size, call in (
        ("q", 7, lambda: core.integrate(MODEL, wrong_q, TAU)),
        ("v", 7, lambda: core.integrate(MODEL, Q, wrong_v)),
        ("q1", 7, lambda: core.difference(MODEL, wrong_q, Q)),
        ("q0", 7, lambda: core.difference(MODEL, Q, wrong_q)),
        ("q", 7, lambda: core.normalize(MODEL, wrong_q)),
        ("q", 7, lambda: core.body_poses(MODEL, wrong_q)),
        ("q", 7, lambda: core.mass_matrix(MODEL, wrong_q)),
        ("q", 7, lambda: core.contacts(MODEL, wrong_q, 0.1)),
        ("q", 7, lambda: core.point_jacobian(MODEL, wrong_q, 1, [0, 0, 0])),
    ):
        pattern = message.format(name=name, n=size, m=size - 1)
        with pytest.raises(error, match=r"^" + pattern):
            call()
    if not isinstance(wrong_point, np.ndarray) or wrong_point.shape != (3,):
        with pytest.raises((TypeError, ValueError), match=r"^point: "):
            core.point_jacobian(MODEL, Q, 1, wrong_point)


@pytest.mark.parametrize("body", [-1, 6, 2**40, -(2**70)])
def test_wrong_body_index(body: int) -> None:
    with pytest.raises(IndexError, match=r"^body_index: expected 0 to 5"):
        _core.Model.point_jacobian(MODEL, Q, body, np.zeros(3))


def test_wrong_margin() -> None:
    with pytest.raises(ValueError, match=r"^margin: is nan"):
        _core.Model.contacts(MODEL, Q, float("nan"))
    with pytest.raises(TypeError, match=r"^margin: expected a number"):
        _core.Model.contacts(MODEL, Q, "wide")  # type: ignore[arg-type]


# ---------------------------------------------------------------- the flat model


def spec() -> dict[str, Any]:
    """A pendulum in the form that the C core takes."""
    f, i = np.float64, np.int32
    return {
        "body_parent": np.array([0, 0], i), "body_pos": np.zeros((2, 3)),
        "body_quat": np.array([[1.0, 0, 0, 0]] * 2), "body_mass": np.array([0.0, 1.0]),
        "body_com": np.zeros((2, 3)), "body_inertia": np.array([np.zeros((3, 3)), np.eye(3)]),
        "body_invweight": np.full(2, -1.0), "body_turn_invweight": np.full(2, -1.0),
        "joint_type": np.array([0], i), "joint_body": np.array([1], i), "joint_pos": np.zeros((1, 3)),
        "joint_axis": np.array([[1.0, 0, 0]]), "joint_ref": np.zeros(1),
        "joint_range": np.array([[-np.inf, np.inf]]), "joint_stiffness": np.zeros(1),
        "joint_springref": np.zeros(1), "joint_damping": np.zeros(1), "joint_armature": np.zeros(1),
        "default_q": np.zeros(1), "reference_q": np.zeros(1),
        "actuator_joint": np.array([0], i), "actuator_tendon": np.array([-1], i), "actuator_stiffness": np.array([5.0]),
        "actuator_gear": np.array([1.0]), "actuator_gain": np.zeros(1),
        "actuator_gain_slope": np.zeros((1, 2)), "actuator_bias": np.zeros(1),
        "actuator_damping": np.zeros(1), "actuator_force_range": np.array([[-np.inf, np.inf]]),
        "actuator_range": np.array([[-np.inf, np.inf]]), "actuator_own_range": np.array([[np.inf, -np.inf]]),
        "joint_friction": np.zeros(1), "joint_invweight": np.full(1, -1.0), "joint_turn_invweight": np.full(1, -1.0),
        "joint_limit_solver": np.full((1, 9), 0.5) * (1, 1, 2, 1, 1, 1, 1, 1, 0), "joint_friction_solver": np.full((1, 8), 1.0),
        "geom_type": np.array([1], i), "geom_body": np.array([1], i), "geom_pos": np.zeros((1, 3)),
        "geom_quat": np.array([[1.0, 0, 0, 0]]), "geom_size": np.array([[0.1, 0, 0]]),
        "geom_mesh": np.array([-1], i), "mesh_vertex_count": np.zeros(0, i),
        "mesh_face_count": np.zeros(0, i), "mesh_vertex": np.zeros((0, 3), f),
        "mesh_face": np.zeros((0, 3), i),
        "geom_hfield": np.array([-1], i), "hfield_grid": np.zeros((0, 2), i),
        "hfield_size": np.zeros((0, 3)), "hfield_height": np.zeros(0),
        "geom_cloud": np.array([-1], i), "cloud_point_count": np.zeros(0, i),
        "cloud_contact_count": np.zeros(0, i), "cloud_point": np.zeros((0, 3), f),
        "geom_field": np.array([-1], i), "geom_modulus": np.zeros(1), "geom_dissipation": np.zeros(1),
        "field_kind": np.zeros(0, i), "field_slope": np.zeros(0), "field_vertex_count": np.zeros(0, i),
        "field_element_count": np.zeros(0, i), "field_vertex": np.zeros((0, 3)), "field_pressure": np.zeros(0),
        "field_index": np.zeros(0, i),
        "pair_geom": np.zeros((0, 2), i), "pair_dim": np.zeros(0, i),
        "pair_friction": np.zeros((0, 5), f), "pair_margin": np.zeros(0), "pair_compliance": np.zeros(0), "pair_restitution": np.zeros(0),
        "pair_reference": np.zeros((0, 4)), "pair_impedance": np.zeros((0, 5)), "pair_impratio": np.zeros(0),
        "pair_edges": np.zeros(0, i),
        "body_gravcomp": np.zeros(2), "mocap_body": np.zeros(0, i),
        "tendon_type": np.zeros(0, i), "tendon_point_count": np.zeros(0, i),
        "tendon_range": np.zeros((0, 2)), "tendon_part": np.zeros(0, i), "tendon_object": np.zeros(0, i), "tendon_data": np.zeros((0, 3)),
        "tendon_stiffness": np.zeros(0), "tendon_springrange": np.zeros((0, 2)),
        "tendon_frictionloss": np.zeros(0), "tendon_damping": np.zeros(0),
        "tendon_limit_solver": np.zeros((0, 9)), "tendon_friction_solver": np.zeros((0, 8)), "tendon_invweight": np.zeros(0),
        "constraint_compliance": np.zeros((0, 2)), "constraint_solver": np.zeros((0, 8)), "constraint_torquescale": np.zeros(0),
        "constraint_type": np.zeros(0, np.int32), "constraint_object": np.zeros((0, 2), np.int32),
        "constraint_data": np.zeros((0, 10), f),
        "gravity": np.array([0, 0, -9.81]),
        "integration": np.array([0], np.int32),
    }  # fmt: skip


def test_flat_model_works() -> None:
    model = _core.Model(spec())
    assert (model.nq, model.nv, model.nu, model.body_count) == (1, 1, 1, 2)
    assert qdsim.step(model, [0.0], [0.3]).q_next == pytest.approx([0.3])


@pytest.mark.parametrize("key", spec())
def test_flat_model_with_a_wrong_array(key: str) -> None:
    for change, error, pattern in (
        (lambda a: None, (TypeError, ValueError), f"^{key}: "),
        (lambda a: "x", TypeError, f"^{key}: expected"),
        (lambda a: a.astype(complex), TypeError, f"^{key}: expected"),
        (lambda a: a[..., None], ValueError, f"^{key}: expected shape"),
    ):
        wrong = spec()
        wrong[key] = change(wrong[key])
        with pytest.raises(error, match=pattern):
            _core.Model(wrong)
    missing = spec()
    del missing[key]
    with pytest.raises(ValueError, match=f"'{key}' is missing"):
        _core.Model(missing)
    if spec()[key].dtype == np.int32:
        wrong = spec()
        wrong[key] = wrong[key].astype(float)
        if wrong[key].size:
            with pytest.raises(TypeError, match=f"^{key}: expected integers"):
                _core.Model(wrong)


def test_flat_model_with_an_unknown_key() -> None:
    for key in ("body_color", 3):
        with pytest.raises(ValueError, match=f"^spec: unknown key {key!r}"):
            _core.Model({**spec(), key: np.zeros(2)})  # type: ignore[dict-item]


@pytest.mark.parametrize(
    "change",
    [
        {"body_parent": [0, 1]}, {"body_parent": [0, 7]}, {"body_parent": [0, -1]},
        {"body_parent": [1, 0]}, {"body_mass": [0.0, -1.0]}, {"body_mass": [0.0, np.nan]},
        {"body_quat": [[1.0, 0, 0, 0], [0.0, 0, 0, 0]]}, {"body_pos": [[0, 0, 0], [np.inf, 0, 0]]},
        {"joint_type": [9]}, {"joint_type": [-1]}, {"joint_body": [2]}, {"joint_body": [-1]},
        {"joint_body": [0]}, {"joint_axis": [[0.0, 0, 0]]}, {"joint_axis": [[np.nan, 0, 0]]},
        {"joint_range": [[1.0, -1.0]]}, {"joint_range": [[np.nan, 1.0]]},
        {"joint_stiffness": [-1.0]}, {"default_q": [np.nan]}, {"reference_q": [np.inf]}, {"body_invweight": [0.0, np.nan]},
        {"actuator_joint": [1]}, {"actuator_joint": [-1]}, {"actuator_tendon": [0]}, {"actuator_damping": [-1.0]},
        {"actuator_force_range": [[1.0, -1.0]]}, {"actuator_force_range": [[np.nan, 1.0]]},
        {"joint_friction": [-1.0]}, {"joint_friction": [np.inf]}, {"joint_invweight": [np.nan]},
        {"joint_limit_solver": np.full((1, 9), np.nan)}, {"joint_limit_solver": np.full((1, 9), -1.0)}, {"joint_friction_solver": np.full((1, 8), 1.5)},
        {"actuator_gain": [np.nan]}, {"actuator_gear": [np.nan]}, {"actuator_stiffness": [-5.0]}, {"actuator_stiffness": [np.inf]}, {"actuator_gear": [0.0]},
        {"geom_type": [99]}, {"geom_type": [-1]}, {"geom_body": [2]}, {"geom_body": [-1]},
        {"geom_field": [0]}, {"geom_field": [-2]}, {"geom_modulus": [1e5]}, {"geom_modulus": [np.nan]},
        {"geom_dissipation": [-1.0]}, {"field_vertex": np.zeros((1, 3)), "field_pressure": np.zeros(1)},
        {"field_index": [0]},
        {"geom_size": [[-0.1, 0, 0]]}, {"geom_quat": [[0.0, 0, 0, 0]]}, {"gravity": [0, 0, np.nan]},
        {"integration": [3]}, {"integration": [-1]}, {"integration": [0, 0]},
    ],
    ids=str,
)  # fmt: skip
def test_flat_model_with_values_that_make_no_sense(change: dict[str, Any]) -> None:
    key = next(iter(change))
    with pytest.raises(ValueError, match=key):
        _core.Model({**spec(), **change})


# ---------------------------------------------------------------- cone programs


def program() -> dict[str, Any]:
    """minimise 1/2 |x|^2 - x_0 subject to x_1 >= 1 and |x| <= 2."""
    return {
        "Q": np.eye(2), "b": np.array([-1.0, 0.0]),
        "G": np.array([[0.0, 1.0], [0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]),
        "g": np.array([-1.0, 2.0, 0.0, 0.0]), "cones": [("orthant", 1), ("lorentz", 3)],
    }  # fmt: skip


def test_program_itself() -> None:
    solution = qdsim.solve_cone_program(**program())
    assert solution.x == pytest.approx([1.0, 1.0], abs=1e-7)
    assert solution.info.status == "solved"


@pytest.mark.parametrize("name", ["Q", "b", "G", "g", "C", "c"])
def test_wrong_arrays_of_a_program(name: str) -> None:
    right = {**program(), "C": np.array([[1.0, -1.0]]), "c": np.zeros(1)}
    array = right[name]
    bad = array.copy()
    bad.flat[0] = np.nan
    for wrong, error in (
        (bad, ValueError),
        (array + 0j, TypeError),
        (array.astype(str), TypeError),
        (array.astype(object), TypeError),
        (array[..., None], ValueError),
        ([[1.0], [1.0, 2.0]], TypeError),
    ):
        with pytest.raises(error, match=f"^{name}: "):
            qdsim.solve_cone_program(**{**right, name: wrong})
    with pytest.raises(ValueError, match="expected"):
        qdsim.solve_cone_program(**{**right, name: np.vstack([array, array])})


@pytest.mark.parametrize(
    ("change", "error", "pattern"),
    [
        ({"Q": np.array([[1.0, 0.5], [0.0, 1.0]])}, ValueError, "^Q: not symmetric"),
        ({"b": np.zeros(0)}, ValueError, "^b: "),
        ({"cones": [("orthant", 1)]}, ValueError, "^cones: have 1 rows in all, and g has 4"),
        ({"cones": [("orthant", 2), ("lorentz", 3)]}, ValueError, "^cones: have 5"),
        ({"cones": [("orthant", 0), ("lorentz", 4)]}, ValueError, r"^cones\[0\]: "),
        ({"cones": [("orthant", -1), ("lorentz", 5)]}, ValueError, r"^cones\[0\]: "),
        ({"cones": [("orthant", 1), ("ice", 3)]}, ValueError, r"^cones\[1\]: .*'ice'"),
        ({"cones": [("orthant", 1.0), ("lorentz", 3)]}, TypeError, r"^cones\[0\]: "),
        ({"cones": [3, 1]}, TypeError, r"^cones\[0\]: "),
        ({"cones": None}, TypeError, r"^cones: .*NoneType"),
        ({"cones": "orthant"}, TypeError, r"^cones: .*str"),
        ({"cones": [(["orthant"], 4)]}, TypeError, r"^cones\[0\]: "),
        ({"C": np.ones((1, 2))}, ValueError, "^c: C and c come together"),
        ({"c": np.ones(1)}, ValueError, "^C: C and c come together"),
        ({"target_mu": -1.0}, ValueError, "^target_mu: "),
        ({"target_mu": np.nan}, ValueError, "^target_mu: "),
        ({"target_mu": [0.1, 0.1, 0.1]}, ValueError, "^target_mu: .*one per cone"),
        ({"target_mu": "small"}, TypeError, "^target_mu: "),
        ({"tolerance": 0.0}, ValueError, "^tolerance: "),
        ({"tolerance": 2.0}, ValueError, "^tolerance: "),
        ({"iteration_limit": 0}, ValueError, "^iteration_limit: "),
    ],
)
def test_wrong_programs(change: dict[str, Any], error: type[Exception], pattern: str) -> None:
    with pytest.raises(error, match=pattern):
        qdsim.solve_cone_program(**{**program(), **change})


def test_programs_without_solution() -> None:
    with pytest.raises(qdsim.SolverError, match="infeasible") as caught:
        qdsim.solve_cone_program([[1.0]], [0.0], [[1.0], [-1.0]], [-1.0, -1.0], [("orthant", 2)])
    assert caught.value.info.status == "infeasible"
    with pytest.raises(qdsim.SolverError, match="unbounded") as caught:
        qdsim.solve_cone_program([[0.0]], [-1.0], [[1.0]], [0.0], [("orthant", 1)])
    assert caught.value.info.status == "unbounded"


# ---------------------------------------------------------------- anything at all

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=8) | st.dictionaries(st.text(max_size=2), inner, max_size=2)
    ),
    max_leaves=12,
)


@pytest.mark.long
@given(q=ANYTHING, u=ANYTHING, options=ANYTHING, tau=ANYTHING)
def test_anything_raises_or_works(q: Any, u: Any, options: Any, tau: Any) -> None:
    for arguments in (
        (q, U, None, None),
        (Q, u, None, None),
        (Q, U, options, None),
        (Q, U, None, tau),
    ):
        try:
            result = qdsim.step(MODEL, arguments[0], arguments[1], arguments[2], tau=arguments[3])
        except (TypeError, ValueError, qdsim.SolverError):
            continue
        assert np.isfinite(result.q_next).all()


@given(
    st.lists(st.floats(-1e300, 1e300), min_size=7, max_size=7),
    st.lists(st.floats(-1e300, 1e300), min_size=4, max_size=4),
)
def test_any_numbers_raise_or_give_numbers(q: list[float], u: list[float]) -> None:
    """Huge, tiny, subnormal: an answer is finite, everything else is an error that says so."""
    for options in (qdsim.Options(), qdsim.Options(kappa=100.0), qdsim.Options(friction="pyramid")):
        try:
            lin = qdsim.linearize(MODEL, q, u, options)
        except qdsim.SolverError:
            continue
        except ValueError as error:
            assert "overflow" in str(error)
            continue
        for array in (lin.q_next, lin.A, lin.B, lin.step.contacts["force"]):
            assert np.isfinite(array).all()


def test_an_indefinite_cost_is_named() -> None:
    """Unit diagonal, eigenvalues -1 and 3; singular ones pass."""
    with pytest.raises(
        ValueError, match="Q: not positive semidefinite, its smallest eigenvalue is -1"
    ):
        qdsim.solve_cone_program(
            [[1.0, 2.0], [2.0, 1.0]], [0, 0], np.eye(2), [0, 0], [("orthant", 2)]
        )
    singular = qdsim.solve_cone_program(
        [[1.0, 1.0], [1.0, 1.0]], [-1.0, -1.0], np.eye(2), [0, 0], [("orthant", 2)]
    )
    assert singular.x.sum() == pytest.approx(1.0, abs=1e-8)


@pytest.mark.parametrize("n", [5, 49, 130, 261])
def test_costs_whose_few_entries_stand_anywhere(n: int) -> None:
    """Singular ones pass, the least negative direction and the largest asymmetry are found, in any order of rows."""
    rng = np.random.default_rng(n)
    order = rng.permutation(n)
    band = np.zeros((n, n))
    for i in range(n - 2):  # springs between neighbours, as in a chain: rigid motions cost nothing
        spring = np.zeros(n)
        spring[i : i + 3] = [1.0, -2.0, 1.0]
        band += 10.0 ** rng.uniform(-2, 2) * np.outer(spring, spring)
    Q = band[np.ix_(order, order)]
    box = np.vstack([np.eye(n), -np.eye(n)])
    program = (rng.normal(size=n), box, np.ones(2 * n), [("orthant", 2 * n)])
    assert np.isfinite(qdsim.solve_cone_program(Q, *program).x).all()
    low = Q - 1e-6 * np.abs(Q).max() * np.eye(n)
    with pytest.raises(ValueError, match="Q: not positive semidefinite, its smallest eigenvalue"):
        qdsim.solve_cone_program(low, *program)
    i, j = np.unravel_index(np.argmax(np.triu(Q, 1)), Q.shape)
    Q[i, j] *= 1.01
    with pytest.raises(ValueError, match=rf"Q: not symmetric, \[({i}, {j}|{j}, {i})\]"):
        qdsim.solve_cone_program(Q, *program)


def test_a_system_has_a_name() -> None:
    with pytest.raises(TypeError, match="name: expected a string, got list"):
        qdsim.systems.load([1])
