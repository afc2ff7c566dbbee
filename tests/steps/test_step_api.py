"""What step and linearize take and give: conversions, results, options, errors that carry the info."""

from __future__ import annotations

import copy
import gc
import pickle
import sys

import numpy as np
import pytest
import scenes

import qdsim
from qdsim import _core

# A cart on a rail before a wall at x = 0.5: the sphere touches at x = 0.4.
CART = """
<mujoco><option gravity="0 0 0"/>
  <worldbody>
    <geom name="wall" type="plane" size="1 1 1" pos="0.5 0 0" zaxis="-1 0 0" condim="1"/>
    <body name="cart"><joint name="x" type="slide" axis="1 0 0" range="-1 {upper}" limited="true"/>
      <geom name="bumper" type="sphere" size="0.1" condim="1" mass="2"/></body>
  </worldbody>{actuator}
</mujoco>"""
PUSHED = '<actuator><position name="push" joint="x" kp="100"/></actuator>'

# Two free spheres far from everything.
FREE = """
<mujoco><option gravity="0 0 {gravity}"/>
  <worldbody>
    <body name="a"><freejoint name="fa"/><geom type="sphere" size="0.1" mass="2"/></body>
    <body name="b" pos="5 0 0"><freejoint name="fb"/><geom type="sphere" size="0.1" mass="0.5"/></body>
  </worldbody>
</mujoco>"""


def cart(upper: float = 3.0, actuator: str = PUSHED) -> qdsim.Model:
    return qdsim.load(CART.format(upper=upper, actuator=actuator))


def free(gravity: float = 0.0) -> qdsim.Model:
    return qdsim.load(FREE.format(gravity=gravity))


# ---------------------------------------------------------------- results


def test_step_result_is_consistent() -> None:
    """q_next = q [+] delta, contacts are those of the query, and a wall pushes with k (u - x)."""
    model = cart()
    result = qdsim.step(model, [0.35], [0.6])
    assert result.q_next == pytest.approx([0.4], abs=1e-9)
    np.testing.assert_array_equal(result.q_next, model.integrate([0.35], result.delta))
    assert result.limit_force.shape == (1,)
    (contact,) = result.contacts
    (query,) = model.collide([0.35])
    for name in ("geom_a", "geom_b", "body_a", "body_b", "pair", "dim", "dist"):
        assert contact[name] == query[name]
    np.testing.assert_array_equal(contact["frame"], query["frame"])
    assert contact["dist"] == pytest.approx(0.05)
    assert contact["pos"] == pytest.approx([0.475, 0.0, 0.0])
    names = model.geom_names
    assert {names[contact["geom_a"]], names[contact["geom_b"]]} == {"wall", "bumper"}
    assert contact["force"] == pytest.approx([100.0 * (0.6 - 0.4), 0, 0, 0, 0, 0], abs=1e-6)
    push = np.sign(contact["frame"][0][0]) * (-1 if names[contact["geom_b"]] == "wall" else 1)
    assert push == -1.0  # the wall pushes the cart back


def test_limit_force_balances_the_spring() -> None:
    """At a joint limit of 0.2 the limit takes what the spring pulls further: k (u - 0.2)."""
    result = qdsim.step(cart(upper=0.2), [0.1], [0.5])
    assert result.q_next == pytest.approx([0.2], abs=1e-9)
    assert result.limit_force == pytest.approx([-100.0 * 0.3], abs=1e-6)
    assert result.info.row_count == 1  # the lower end is out of reach
    free_cart = qdsim.step(cart(upper=0.2), [0.1], [0.3], qdsim.Options(joint_limits=False))
    assert free_cart.q_next == pytest.approx([0.3], abs=1e-9)
    assert free_cart.limit_force == pytest.approx([0.0])


def test_arrays_are_read_only_and_made_once() -> None:
    scene = scenes.planar_hand()
    q, u = scene.sample(np.random.default_rng(0))
    lin = qdsim.linearize(scene.model, q, u)
    result = lin.step
    for array in (
        result.q_next, result.delta, result.limit_force, result.contacts, lin.A, lin.B, lin.q_next,
    ):  # fmt: skip
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    assert result.q_next is result.q_next
    assert result.contacts is result.contacts
    assert lin.q_next is result.q_next
    kept = result.contacts
    numbers = kept.tobytes()
    del lin, result
    for _ in range(50):  # the workspace is used again; what was handed out stays
        qdsim.step(scene.model, *scene.sample(np.random.default_rng(1)))
    assert kept.tobytes() == numbers


def test_contact_dtype() -> None:
    dtype = qdsim.step(cart(), [0.35], [0.6]).contacts.dtype
    assert dtype == _core.CONTACT_DTYPE
    shapes = {name: dtype[name].shape for name in dtype.names or ()}
    assert shapes == {
        "geom_a": (), "geom_b": (), "body_a": (), "body_b": (), "pair": (), "dim": (),
        "dist": (), "pos": (3,), "frame": (3, 3), "friction": (5,), "force": (6,), "softened": (),
    }  # fmt: skip


def test_no_contact_gives_an_empty_array() -> None:
    contacts = qdsim.step(free(), free().default_q, []).contacts
    assert contacts.shape == (0,)
    assert contacts["force"].shape == (0, 6)


def test_linearize_wrt() -> None:
    scene = scenes.planar_hand()
    q, u = scene.sample(np.random.default_rng(2))
    both = qdsim.linearize(scene.model, q, u)
    only_q = qdsim.linearize(scene.model, q, u, wrt=("q",))
    only_u = qdsim.linearize(scene.model, q, u, wrt=["u"])
    neither = qdsim.linearize(scene.model, q, u, wrt=())
    assert both.A.shape == (7, 7)
    assert both.B.shape == (7, 4)
    np.testing.assert_allclose(only_q.A, both.A, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(only_u.B, both.B, rtol=1e-12, atol=1e-14)
    assert only_q.B is None and only_u.A is None
    assert neither.A is None and neither.B is None
    plain = qdsim.step(scene.model, q, u)
    for lin in (both, only_q, only_u, neither):
        assert lin.q_next.tobytes() == plain.q_next.tobytes()
    assert plain.info.derivative_exact is None
    assert isinstance(both.step.info.derivative_exact, bool)


def test_reprs_say_what_matters() -> None:
    lin = qdsim.linearize(cart(), [0.35], [0.6])
    assert repr(lin.step).startswith("Step(status='solved', contacts=1, q_next=array([0.4")
    assert repr(lin).startswith("Linearization(A=array(")
    info = lin.step.info
    for name in ("iterations", "polished", "primal_residual", "objective", "derivative_exact"):
        assert f"{name}={getattr(info, name)!r}" in repr(info)
    said = str(info)
    assert said.startswith(
        f"solved by {info.method} in {info.iterations} iterations, largest residual"
    )
    assert said.endswith(", 1 contacts") and "\n" not in said and len(said) < 100


def test_info_is_filled() -> None:
    scene = scenes.planar_hand()
    q, u = scene.sample(np.random.default_rng(3))
    info = qdsim.step(scene.model, q, u).info
    assert info.status == "solved"
    assert info.iterations >= 0 and info.factorizations >= 0
    assert max(info.primal_residual, info.dual_residual, info.complementarity) < 1e-6
    assert info.contact_count == len(qdsim.step(scene.model, q, u).contacts)
    assert np.isfinite(info.objective)


# ---------------------------------------------------------------- inputs


def test_inputs_of_every_form_give_the_same_bits() -> None:
    scene = scenes.planar_hand()
    q, u = scene.sample(np.random.default_rng(4))
    q, u = np.float32(q).astype(float), np.float32(u).astype(float)  # so that float32 is exact
    want = qdsim.step(scene.model, q, u).q_next.tobytes()
    frozen = q.copy()
    frozen.flags.writeable = False
    forms = {
        "list": q.tolist(),
        "tuple": tuple(q),
        "float32": q.astype(np.float32),
        "strided": np.repeat(q, 3)[::3],
        "reversed": q[::-1].copy()[::-1],
        "big endian": q.astype(">f8"),
        "unaligned": np.frombuffer(b"x" + q.tobytes(), dtype=np.uint8)[1:].view(np.float64),
        "long double": q.astype(np.longdouble),
        "read-only": frozen,
        "subclass": q.view(type("Sub", (np.ndarray,), {})),
    }
    for name, form in forms.items():
        assert qdsim.step(scene.model, form, u).q_next.tobytes() == want, name
    whole = qdsim.step(cart(), np.array([0], dtype=np.int64), [1]).q_next
    assert whole.tobytes() == qdsim.step(cart(), [0.0], [1.0]).q_next.tobytes()


def test_quaternions_are_normalised_and_inputs_left_alone() -> None:
    model = free()
    q = np.array(model.default_q)
    q[3:7] = [0.6, 0.0, 0.8, 0.0]
    off = q.copy()
    off[3:7] *= 1.0005
    before = off.copy()
    result = qdsim.step(model, off, [])
    np.testing.assert_array_equal(off, before)
    assert result.q_next == pytest.approx(q, abs=1e-12)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_tau_moves_a_free_body(epsilon: float) -> None:
    """Newton's law over one step from rest: epsilon m delta / h^2 = tau."""
    model = free()
    tau = np.zeros(12)
    tau[:3] = [0.3, -0.2, 0.1]
    tau[6:9] = [0.0, 0.0, 0.4]
    options = qdsim.Options(h=0.05, epsilon=epsilon)
    result = qdsim.step(model, model.default_q, [], options, tau=tau)
    want = np.zeros(12)
    want[:3] = tau[:3] * 0.05**2 / (epsilon * 2.0)
    want[6:9] = tau[6:9] * 0.05**2 / (epsilon * 0.5)
    np.testing.assert_allclose(result.delta, want, rtol=1e-9, atol=1e-15)
    lin = qdsim.linearize(model, model.default_q, [], options, tau=list(tau))
    assert lin.q_next.tobytes() == result.q_next.tobytes()


# ---------------------------------------------------------------- options


def test_default_options_are_one() -> None:
    """None, Options() and the C core's own defaults are the same numbers."""
    native = qdsim.Options()._native
    own = _core.StepOptions()
    for name in (
        "h", "friction_model", "rays", "kappa", "epsilon", "mass_ratio", "margin", "joint_limits",
        "gravity_on_actuated", "held", "tolerance", "iteration_limit",
    ):  # fmt: skip
        assert getattr(native, name) == getattr(own, name), name


def test_options_replace() -> None:
    options = qdsim.Options()
    assert (options.h, options.epsilon, options.kappa, options.margin) == (0.1, 1.0, None, 0.1)
    smooth = options.replace(kappa=100, h=0.2)
    assert (smooth.kappa, smooth.h, smooth.rays) == (100.0, 0.2, 4)
    assert options.kappa is None
    automatic = options.replace(mass_ratio=5.0)
    assert automatic.epsilon is None
    assert automatic.replace(h=0.2).mass_ratio == 5.0
    again = automatic.replace(epsilon=2.0)
    assert (again.epsilon, again.mass_ratio) == (2.0, None)
    assert options.replace() == options
    assert hash(options.replace()) == hash(options)
    assert qdsim.Options(held=["a", "b"]).held == ("a", "b")
    with pytest.raises(AttributeError):
        options.h = 0.2  # type: ignore[misc]


def test_held_by_joint_and_by_body() -> None:
    """Held objects stay, the others move as if alone; their rows of A are the identity's."""
    model = free(gravity=-10.0)
    fall = -10.0 * 0.1**2
    for held in (("fa",), ["a"], ("a", "fa")):
        options = qdsim.Options(held=held)
        lin = qdsim.linearize(model, model.default_q, [], options)
        np.testing.assert_array_equal(lin.step.delta[:6], np.zeros(6))
        assert lin.step.delta[8] == pytest.approx(fall, rel=1e-9)
        np.testing.assert_array_equal(lin.A[:6], np.eye(12)[:6])
    both = qdsim.step(model, model.default_q, [], qdsim.Options(held=("fa", "b")))
    np.testing.assert_array_equal(both.delta, np.zeros(12))


@pytest.mark.long
def test_held_is_resolved_for_each_model() -> None:
    """One Options serves many models, in which the same name stands for different DOFs."""
    options = qdsim.Options(held=("b",))
    swapped = FREE.replace('name="a"', 'name="c"').replace('name="b"', 'name="a"')
    swapped = swapped.replace('name="c"', 'name="b"').format(gravity=-10.0)
    one, other = free(-10.0), qdsim.load(swapped)
    for _ in range(3):
        for _ in range(40):  # more models than the cache keeps
            one, other = one.with_parameters(), other.with_parameters()
            delta = qdsim.step(one, one.default_q, [], options).delta
            assert delta[2] < 0 and delta[8] == 0
            delta = qdsim.step(other, one.default_q, [], options).delta
            assert delta[2] == 0 and delta[8] < 0


# ---------------------------------------------------------------- pickles and copies


def test_pickle_and_copy() -> None:
    scene = scenes.planar_hand()
    q, u = scene.sample(np.random.default_rng(5))
    lin = qdsim.linearize(scene.model, q, u, wrt=("q",))
    for clone in (pickle.loads(pickle.dumps(lin)), copy.deepcopy(lin), copy.copy(lin)):
        assert clone.B is None
        assert clone.A.tobytes() == lin.A.tobytes()
        assert not clone.A.flags.writeable
        assert clone.q_next.tobytes() == lin.q_next.tobytes()
        assert clone.step.delta.tobytes() == lin.step.delta.tobytes()
        assert clone.step.limit_force.tobytes() == lin.step.limit_force.tobytes()
        assert clone.step.contacts.tobytes() == lin.step.contacts.tobytes()
        assert repr(clone.step.info) == repr(lin.step.info)
    options = qdsim.Options(mass_ratio=3.0, held=("l1",), kappa=7.0)
    for twin in (pickle.loads(pickle.dumps(options)), copy.copy(options), copy.deepcopy(options)):
        assert twin == options
        assert twin._native.mass_ratio == 3.0
        assert qdsim.step(scene.model, q, u, twin).delta[3] == 0.0


# ---------------------------------------------------------------- solver errors


def test_unbounded_step_raises() -> None:
    """Without inertia nothing holds a free body against gravity."""
    model = free(gravity=-10.0)
    for function in (qdsim.step, qdsim.linearize):
        with pytest.raises(qdsim.SolverError, match="nothing limits") as caught:
            function(model, model.default_q, [], qdsim.Options(epsilon=0.0))
        assert caught.value.info.status == "unbounded"
        assert "residual" in str(caught.value)
        assert "epsilon = 0" in str(caught.value)
        twin = pickle.loads(pickle.dumps(caught.value))
        assert str(twin) == str(caught.value)
        assert repr(twin.info) == repr(caught.value.info)
    # The model serves on.
    assert qdsim.step(model, model.default_q, []).delta[2] == pytest.approx(-0.1)


def test_infeasible_step_raises() -> None:
    """A cart deep in the wall (x <= 0.4) whose joint limit (x >= 0.6) forbids the way out."""
    model = qdsim.load(CART.format(upper=3.0, actuator=PUSHED).replace('"-1 3.0"', '"0.6 3.0"'))
    with pytest.raises(qdsim.SolverError, match="constraints") as caught:
        qdsim.step(model, [0.7], [0.7])
    assert caught.value.info.status == "infeasible"


def test_iteration_limit_raises() -> None:
    scene = scenes.pusher("box")
    q, u = scene.sample(np.random.default_rng(6))
    with pytest.raises(qdsim.SolverError, match="iteration limit") as caught:
        qdsim.step(scene.model, q, u, qdsim.Options(iteration_limit=1, kappa=1e3))
    assert caught.value.info.iterations <= 1
    assert isinstance(caught.value, RuntimeError)


# ---------------------------------------------------------------- capacity and memory


def test_more_contacts_than_the_workspace_starts_with() -> None:
    """A bed of 900 spheres on a plane: each carries its share of the weight, none is dropped."""
    model = scenes.bed_of_spheres(30)
    assert len(model.collide(model.default_q)) == 900
    result = qdsim.step(model, model.default_q, [])
    assert len(result.contacts) == 900
    assert result.contacts["force"][:, 0].sum() == pytest.approx(900 * 0.01 * 10.0, rel=1e-6)
    assert np.abs(result.delta).max() < 1e-6


@pytest.mark.long
def test_reference_counts() -> None:
    """No call keeps or drops a reference to its arguments, whether it succeeds or raises."""
    scene = scenes.planar_hand()
    model = scene.model
    q, u = scene.sample(np.random.default_rng(7))
    tau = np.zeros(model.nv)
    bad = np.full(model.nq, np.nan)
    options = qdsim.Options(held=("l2",))
    everything = (model, q, u, tau, bad, options, options._native, None, "q")

    def use() -> None:
        qdsim.step(model, q, u, options, tau=tau)
        lin = qdsim.linearize(model, q, u, options, tau=tau, wrt=("q",))
        repr((lin, lin.step.contacts, lin.step.info, lin.step.limit_force))
        pickle.loads(pickle.dumps(lin))
        model.integrate(q, tau), model.difference(q, q), model.collide(q), model.mass_matrix(q)
        for wrong in ((model, bad, u), (model, q, bad), (model, q, u, 3), (3, q, u), (model, q)):
            with pytest.raises((TypeError, ValueError)):
                qdsim.step(*wrong)
        with pytest.raises(ValueError):
            qdsim.linearize(model, q, u, options, wrt=("x",))
        with pytest.raises(ValueError):
            qdsim.step(model, q, u, qdsim.Options(held=("nobody",)))

    use()
    gc.collect()  # what earlier tests left behind holds None, too
    before = [sys.getrefcount(x) for x in everything]
    for _ in range(200):
        use()
    after = [sys.getrefcount(x) for x in everything]
    for x, first, last in zip(everything, before, after):
        assert abs(last - first) < 100, (type(x), first, last)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_memory_stays() -> None:
    """Resident memory does not grow over many steps, errors, models and options."""

    def resident() -> int:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096

    scene = scenes.planar_hand()
    model = scene.model
    q, u = scene.sample(np.random.default_rng(8))
    small = cart()
    spec_text = CART.format(upper=1.0, actuator=PUSHED)
    falling = free(gravity=-10.0)
    q_free = falling.default_q
    quasi_static = qdsim.Options(epsilon=0.0)

    def use(count: int) -> None:
        for _ in range(count):
            lin = qdsim.linearize(model, q, u)
            lin.step.contacts, lin.step.delta, lin.step.info  # noqa: B018
            qdsim.step(small, [0.35], [0.6]).q_next  # noqa: B018
            with pytest.raises(ValueError):
                qdsim.step(model, q[:-1], u)
        for _ in range(count // 20):
            with pytest.raises(qdsim.SolverError):
                qdsim.step(falling, q_free, [], quasi_static)
            copy.deepcopy(small)
            qdsim.Options(held=("x",))
        for _ in range(count // 500):
            qdsim.load(spec_text)

    use(2000)
    start = resident()
    use(10000)
    assert resident() - start < 3_000_000


# ---------------------------------------------------------------- life of a model


def test_model_is_initialised_once() -> None:
    empty = _core.Model.__new__(_core.Model)
    for call in (
        lambda: qdsim.step(empty, [], []),
        lambda: empty.integrate([], []),
        lambda: empty.mass_matrix([]),
        lambda: empty.contacts([], 0.1),
    ):
        with pytest.raises(RuntimeError, match="__init__"):
            call()
    model = cart()
    spec = {"body_parent": [0]}
    with pytest.raises(RuntimeError, match="never changes"):
        _core.Model.__init__(model, spec)
    assert qdsim.step(model, [0.1], [0.2]).q_next == pytest.approx([0.2])


def test_results_outlive_the_model() -> None:
    model = cart()
    result = qdsim.step(model, [0.35], [0.6])
    del model
    assert result.contacts["dist"] == pytest.approx([0.05])
    assert result.q_next == pytest.approx([0.4])


# ---------------------------------------------------------------- hooks of the benchmarks


def test_benchmark_hooks() -> None:
    """They run what the public functions run, so they fail where those fail."""
    model = cart()
    for linearize in (False, True):
        assert _core._step_benchmark(model, [0.35], [0.6], None, 3, linearize) > 0
    with pytest.raises(ValueError, match=r"^q: element 0 is nan"):
        _core._step_benchmark(model, [np.nan], [0.6], None, 3, False)
    with pytest.raises(ValueError, match=r"^repeat: "):
        _core._step_benchmark(model, [0.35], [0.6], None, 0, False)
    falling = free(gravity=-10.0)
    with pytest.raises(qdsim.SolverError):
        _core._step_benchmark(falling, falling.default_q, [], qdsim.Options(epsilon=0.0), 3, False)
    program = (np.eye(2), [-1.0, 0.0], np.eye(2), [0.0, 0.0], [("orthant", 2)])
    for target_mu in (None, [0.1]):
        assert _core._cone_benchmark(*program, target_mu, 3) > 0
    with pytest.raises(ValueError, match=r"^cones: "):
        _core._cone_benchmark(*program[:4], [("orthant", 1)], None, 3)
    with pytest.raises(ValueError, match=r"^target_mu: "):
        _core._cone_benchmark(*program, [-0.1], 3)


# ---------------------------------------------------------------- step and linearize


@pytest.mark.parametrize("kappa", [None, 100.0])
@pytest.mark.parametrize("friction", ["cone", "pyramid"])
def test_linearize_takes_the_same_step(friction: str, kappa: float | None) -> None:
    """Bit by bit, but for what moves by itself: exact steps answer that in closed form, to rounding."""
    options = qdsim.Options(friction=friction, kappa=kappa)
    for scene in (scenes.planar_hand(), scenes.pusher("sphere"), scenes.pusher("box")):
        model, rng = scene.model, np.random.default_rng(4)
        for _ in range(40):
            q, u = scene.sample(rng)
            try:
                step = qdsim.step(model, q, u, options)
                other = qdsim.linearize(model, q, u, options).step
            except qdsim.SolverError:
                continue
            np.testing.assert_allclose(other.q_next, step.q_next, rtol=4e-16, atol=4e-16)
            pushed = {
                int(body)
                for contact in step.contacts
                for body in (contact["body_a"], contact["body_b"])
                if np.abs(contact["force"]).max() > 0.0
            }
            moved = np.zeros(model.nv, bool)  # by bodies that a force acts on
            for body in pushed - {0}:
                jacobian = model.jacobian(q, model.body_names[body], np.zeros(3))
                moved |= np.abs(jacobian).max(axis=0) > 0.0
            same = step.delta == other.delta
            assert same[moved].all()
            assert same.all() or kappa is None
