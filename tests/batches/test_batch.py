"""Batches: the same bits as a loop of steps, whatever the threads, the layout and the company."""

from __future__ import annotations

import hashlib
import os
import pickle
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scenes

import qdsim
from qdsim import _core

SMOOTH = qdsim.Options(kappa=300.0)
EXACT = qdsim.Options()

# Without the mass term a ball that nothing holds falls for ever: samples with the ball in the air fail.
FALLING = """
<mujoco><option gravity="0 0 -9.81"/><worldbody>
  <geom type="plane" size="1 1 1"/>
  <body pos="0 0 0.1"><joint name="height" type="slide" axis="0 0 1"/>
    <geom type="sphere" size="0.1" mass="1"/></body>
  <body pos="0 1 1"><joint name="b" type="slide" axis="1 0 0"/>
    <geom type="sphere" size="0.1" mass="1"/></body></worldbody>
  <actuator><position joint="b" kp="100"/></actuator></mujoco>"""
NO_MASS = qdsim.Options(epsilon=0.0)


def can_step(scene: scenes.Scene, q: scenes.Vector, u: scenes.Vector) -> bool:
    try:
        qdsim.step(scene.model, q, u)
    except qdsim.SolverError:  # a sampler may penetrate where nothing can give way
        return False
    return True


def states(scene: scenes.Scene, *lead: int, seed: int = 0) -> tuple[scenes.Vector, scenes.Vector]:
    """States that have a next one."""
    rng = np.random.default_rng(seed)
    pairs: list[tuple[scenes.Vector, scenes.Vector]] = []
    while len(pairs) < np.prod(lead):
        pair = scene.sample(rng)
        if can_step(scene, *pair):
            pairs.append(pair)
    q = np.array([q for q, _ in pairs]).reshape(*lead, scene.model.nq)
    return q, np.array([u for _, u in pairs]).reshape(*lead, scene.model.nu)


def digest(batch: qdsim.BatchSteps) -> str:
    """Hash of all bytes that came out."""
    names = ["q_next", "delta", "limit_force", "constraint_force", "status"]
    names += ["contact_start", "contacts", "A", "B", "derivative_exact"]
    arrays = [getattr(batch, name) for name in names if hasattr(batch, name)]
    arrays += [array for _, array in sorted(getattr(batch, "derivatives", {}).items())]
    assert all(array is not None for array in arrays)
    return hashlib.sha256(b"".join(array.tobytes() for array in arrays)).hexdigest()


@pytest.fixture(params=["planar_hand", "box", "pendulum"])
def scene(request: pytest.FixtureRequest) -> scenes.Scene:
    made = {
        "planar_hand": scenes.planar_hand,
        "box": lambda: scenes.pusher("box"),
        "pendulum": scenes.pendulum,
    }
    return made[request.param]()


@pytest.mark.parametrize("options", [EXACT, SMOOTH], ids=["exact", "smooth"])
def test_steps_equal_a_loop(scene: scenes.Scene, options: qdsim.Options) -> None:
    q, u = states(scene, 4, 8)
    batch = qdsim.step_batch(scene.model, q, u, options, threads=3)
    assert batch.ok.all()
    assert batch.status_names[2, 3] == "solved"
    for i in np.ndindex(4, 8):
        step = qdsim.step(scene.model, q[i], u[i], options)
        for name in ("q_next", "delta", "limit_force", "constraint_force"):
            assert getattr(batch, name)[i].tobytes() == getattr(step, name).tobytes()
        assert batch.contacts_of(*i).tobytes() == step.contacts.tobytes()
    assert batch.contact_start[-1] == len(batch.contacts) > 0


def test_linearizations_equal_a_loop(scene: scenes.Scene) -> None:
    q, u = states(scene, 16)
    batch = qdsim.linearize_batch(scene.model, q, u, SMOOTH, threads=3)
    for i in range(16):
        lin = qdsim.linearize(scene.model, q[i], u[i], SMOOTH)
        assert batch.q_next[i].tobytes() == lin.q_next.tobytes()
        assert batch.A[i].tobytes() == lin.A.tobytes()
        assert batch.B[i].tobytes() == lin.B.tobytes()
        assert batch.derivative_exact[i] == lin.step.info.derivative_exact
        assert batch.contacts_of(i).tobytes() == lin.step.contacts.tobytes()


def test_wrt_leaves_out_what_is_not_asked_for() -> None:
    scene = scenes.planar_hand()
    q, u = states(scene, 5)
    both = qdsim.linearize_batch(scene.model, q, u, SMOOTH)
    only = qdsim.linearize_batch(scene.model, q, u, SMOOTH, wrt=("u",))
    assert only.A is None
    np.testing.assert_allclose(only.B, both.B, rtol=0.0, atol=1e-12)  # by other solves
    neither = qdsim.linearize_batch(scene.model, q, u, SMOOTH, wrt=())
    assert neither.A is None
    assert neither.B is None
    assert neither.q_next.tobytes() == both.q_next.tobytes()


@pytest.mark.parametrize("options", [EXACT, SMOOTH], ids=["exact", "smooth"])
def test_derivatives_by_every_argument_equal_a_loop(
    scene: scenes.Scene, options: qdsim.Options
) -> None:
    model, names = scene.model, _core.ARGUMENT_NAMES
    q, u = states(scene, 2, 3)
    rng = np.random.default_rng(3)
    tau, wrench = rng.normal(size=model.nv), 0.1 * rng.normal(size=(3, model.body_count, 6))
    given = {"body_mass": model.parameters.body_mass * np.array([[[1.0]], [[1.2]]])}
    loads = {"tau": tau, "wrench": wrench}
    batches = [
        qdsim.linearize_batch(
            model, q, u, options, **loads, parameters=given, wrt=names, threads=threads
        )
        for threads in (1, 2, 7)
    ]
    for name in names:
        assert len({batch.derivatives[name].tobytes() for batch in batches}) == 1
    batch = batches[0]
    assert tuple(batch.derivatives) == names
    for i in np.ndindex(2, 3):
        own = model.with_parameters(body_mass=given["body_mass"][i[0], 0])
        lin = qdsim.linearize(own, q[i], u[i], options, tau=tau, wrench=wrench[i[1]], wrt=names)
        assert batch.q_next[i].tobytes() == lin.q_next.tobytes()
        assert batch.derivative_exact[i] == lin.step.info.derivative_exact
        for name in names:
            assert batch.derivatives[name][i].shape == lin.derivatives[name].shape
            assert batch.derivatives[name][i].tobytes() == lin.derivatives[name].tobytes()
    assert batch.A is batch.derivatives["q"]
    assert batch.B is batch.derivatives["u"]


def test_some_derivatives_and_arrays_for_them() -> None:
    scene = scenes.planar_hand()
    model = scene.model
    q, u = states(scene, 4)
    wrt = ("pair_friction", "u")
    found = qdsim.linearize_batch(model, q, u, SMOOTH, wrt=wrt)
    assert set(found.derivatives) == set(wrt)
    assert found.A is None
    room = np.full((4, model.nv, model.pair_count, 5), np.nan)
    into = {"pair_friction": room, "B": np.empty((4, model.nv, model.nu))}
    again = qdsim.linearize_batch(model, q, u, SMOOTH, wrt=wrt, out=into)
    assert again.derivatives["pair_friction"] is room
    assert again.B is into["B"]
    assert room.tobytes() == found.derivatives["pair_friction"].tobytes()
    assert again.B.tobytes() == found.B.tobytes()
    reused = qdsim.linearize_batch(model, q[::-1], u[::-1], SMOOTH, wrt=wrt, out=again)
    assert reused.derivatives["pair_friction"] is room
    assert room[::-1].tobytes() == found.derivatives["pair_friction"].tobytes()
    with pytest.raises(ValueError, match=r"out: expected names among .*, got 'tau'"):
        qdsim.linearize_batch(model, q, u, SMOOTH, wrt=wrt, out={"tau": room})
    none = qdsim.linearize_batch(model, q[:0], u[:0], SMOOTH, wrt=_core.ARGUMENT_NAMES)
    assert none.derivatives["geom_size"].shape == (0, model.nv, model.geom_count, 3)


def test_derivatives_of_a_failed_sample_are_nan() -> None:
    model = qdsim.load(FALLING)
    q = np.array([[0.0, 0.0], [0.3, 0.0]])  # resting, in the air
    found = qdsim.linearize_batch(model, q, [0.0], NO_MASS, wrt=("tau", "gravity"), errors="mark")
    assert found.ok.tolist() == [True, False]
    assert np.isnan(found.derivatives["tau"][1]).all()
    assert np.isfinite(found.derivatives["gravity"][0]).all()


def test_rollouts_equal_a_loop(scene: scenes.Scene) -> None:
    q, u = states(scene, 6)
    rng = np.random.default_rng(1)
    commands = u[:, None] + 0.02 * rng.standard_normal((6, 12, scene.model.nu))
    options = qdsim.Options(infeasible="soften")
    found = qdsim.rollout(scene.model, q, commands, options, threads=2)
    assert found.q.shape == (6, 13, scene.model.nq)
    assert (found.steps_done == 12).all()
    for i in range(6):
        now = q[i]
        np.testing.assert_allclose(found.q[i, 0], now, rtol=0, atol=1e-15)
        for t in range(12):
            now = qdsim.step(scene.model, now, commands[i, t], options).q_next
            assert found.q[i, t + 1].tobytes() == now.tobytes()


def test_rollouts_broadcast() -> None:
    scene = scenes.planar_hand()
    (q,), u = states(scene, 1)[0], states(scene, 2, 3, 5)[1]
    found = qdsim.rollout(scene.model, q, u)
    assert found.q.shape == (2, 3, 6, scene.model.nq)
    alone = qdsim.rollout(scene.model, q, u[1, 2])
    assert alone.q.shape == (6, scene.model.nq)
    assert alone.status.shape == ()
    assert alone.q.tobytes() == found.q[1, 2].tobytes()
    many = qdsim.rollout(scene.model, np.stack([q, q]), u[1, 2])
    assert many.q.shape == (2, 6, scene.model.nq)
    assert many.q[1].tobytes() == alone.q.tobytes()
    assert qdsim.rollout(scene.model, q, u[:, :, :0]).q.shape == (2, 3, 1, scene.model.nq)


def test_threads_give_the_same_bits(scene: scenes.Scene) -> None:
    q, u = states(scene, 150)
    found = {
        digest(qdsim.linearize_batch(scene.model, q, u, SMOOTH, threads=threads))
        for threads in (1, 2, 3, 8, 64, None)
    }
    assert len(found) == 1


def test_layouts_give_the_same_bits(scene: scenes.Scene) -> None:
    q, u = states(scene, 6, 8)
    want = digest(qdsim.step_batch(scene.model, q, u))
    wide = np.full((6, 16, 2 * scene.model.nq), np.nan)
    wide[:, ::2, ::2] = q
    backwards = np.ascontiguousarray(q[::-1, ::-1])[::-1, ::-1]
    packed = np.zeros((6, 8), dtype=np.dtype([("pad", "i1"), ("q", "f8", scene.model.nq)]))
    packed["q"] = q
    rows = np.zeros((6, 8, scene.model.nq + 3))
    rows[..., : scene.model.nq] = q
    layouts = [wide[:, ::2, ::2], np.asfortranarray(q), backwards, packed["q"], q.tolist()]
    layouts += [rows[..., : scene.model.nq], q.astype(">f8")]
    for layout in layouts:
        assert digest(qdsim.step_batch(scene.model, layout, np.asfortranarray(u))) == want


def test_broadcasting(scene: scenes.Scene) -> None:
    model = scene.model
    q, u = states(scene, 3)
    tau = 0.1 * np.random.default_rng(2).standard_normal((4, 1, model.nv))
    batch = qdsim.step_batch(model, q, u[0], tau=tau)
    assert batch.q_next.shape == (4, 3, model.nq)
    for i in np.ndindex(4, 3):
        step = qdsim.step(model, q[i[1]], u[0], tau=tau[i[0], 0])
        assert batch.q_next[i].tobytes() == step.q_next.tobytes()
    one = qdsim.step_batch(model, q[0], u[0])
    assert one.q_next.shape == (model.nq,)
    assert one.status.shape == ()
    assert one.contacts_of().tobytes() == qdsim.step(model, q[0], u[0]).contacts.tobytes()


def test_arguments_are_not_written(scene: scenes.Scene) -> None:
    q, u = states(scene, 9)
    before = q.tobytes(), u.tobytes()
    batch = qdsim.step_batch(scene.model, q, u)
    assert (q.tobytes(), u.tobytes()) == before
    assert not np.shares_memory(batch.q_next, q)


def test_empty_batches() -> None:
    scene = scenes.planar_hand()
    nq, nv, nu = scene.model.nq, scene.model.nv, scene.model.nu
    batch = qdsim.linearize_batch(scene.model, np.zeros((0, nq)), np.zeros(nu))
    assert batch.q_next.shape == (0, nq)
    assert batch.A.shape == (0, nv, nv)
    assert batch.B.shape == (0, nv, nu)
    assert batch.contact_start.tolist() == [0]
    assert len(batch.contacts) == 0
    assert qdsim.step_batch(scene.model, np.zeros((2, 0, nq)), np.zeros(nu)).ok.shape == (2, 0)
    assert qdsim.rollout(scene.model, np.zeros((0, nq)), np.zeros((3, nu))).q.shape == (0, 4, nq)


def test_contacts_can_be_left_out() -> None:
    scene = scenes.planar_hand()
    q, u = states(scene, 9)
    batch = qdsim.step_batch(scene.model, q, u, contacts=False)
    assert batch.contacts is None
    assert batch.q_next.tobytes() == qdsim.step_batch(scene.model, q, u).q_next.tobytes()
    with pytest.raises(ValueError, match="contacts=False"):
        batch.contacts_of(0)
    with pytest.raises(IndexError, match="expected 1 indices"):
        qdsim.step_batch(scene.model, q, u).contacts_of(0, 1)


def test_workspaces_grow() -> None:
    """Samples with 400 contacts among samples with none: some workspaces grow, others do not."""
    model = scenes.bed_of_spheres(20)
    q = np.tile(model.default_q, (8, 1))
    q[::2, 2] += 1.0
    options = qdsim.Options(margin=0.01, epsilon=1.0, add_missed_pairs=False)
    batch = qdsim.step_batch(model, q, np.zeros(0), options, threads=2)
    assert np.diff(batch.contact_start).tolist() == [0, 400] * 4
    assert digest(qdsim.step_batch(model, q, np.zeros(0), options, threads=1)) == digest(batch)
    step = qdsim.step(model, q[1], np.zeros(0), options)
    assert batch.q_next[1].tobytes() == step.q_next.tobytes()


# ---------------------------------------------------------------- failures


def falling(*bad: int) -> tuple[qdsim.Model, scenes.Vector, scenes.Vector]:
    model = qdsim.load(FALLING)
    q = np.zeros((40, 2))
    q[list(bad), 0] = 2.0
    return model, q, np.linspace(-1.0, 1.0, 40)[:, None]


def test_failed_samples_are_marked() -> None:
    model, q, u = falling(7, 23)
    with pytest.raises(qdsim.SolverError):
        qdsim.step(model, q[7], u[7], NO_MASS)
    batch = qdsim.linearize_batch(model, q, u, NO_MASS, errors="mark", threads=2)
    assert np.flatnonzero(~batch.ok).tolist() == [7, 23]
    assert set(batch.status_names[[7, 23]]) <= set(_core.STATUS_NAMES[1:])
    assert batch.q_next[[7, 23]].tobytes() == q[[7, 23]].tobytes()
    assert not batch.delta[[7, 23]].any()
    assert np.isnan(batch.A[7]).all()
    assert np.isnan(batch.B[7]).all()
    good = np.flatnonzero(batch.ok)
    alone = qdsim.linearize_batch(model, q[good], u[good], NO_MASS)
    assert batch.q_next[good].tobytes() == alone.q_next.tobytes()
    assert batch.B[good].tobytes() == alone.B.tobytes()


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_the_first_failed_sample_is_raised(threads: int) -> None:
    model, q, u = falling(33, 12, 27)
    with pytest.raises(qdsim.SolverError) as alone:
        qdsim.step(model, q[12], u[12], NO_MASS)
    with pytest.raises(qdsim.SolverError, match=r"step_batch: sample 12: ") as caught:
        qdsim.step_batch(model, q, u, NO_MASS, threads=threads)
    assert repr(caught.value.info) == repr(alone.value.info)
    shaped = q.reshape(4, 10, 2), u.reshape(4, 10, 1)
    with pytest.raises(qdsim.SolverError, match=r"step_batch: sample \[1, 2\]: "):
        qdsim.step_batch(model, *shaped, NO_MASS, threads=threads)


def test_failed_rollouts_stop() -> None:
    """The commands of one rollout overflow in its fourth step."""
    scene = scenes.planar_hand()
    q, u = states(scene, 4)
    commands = u[:, None] + np.linspace(0.0, 0.1, 5)[:, None]
    commands[2, 3] = 1.7e308  # times a stiffness: infinite
    found = qdsim.rollout(scene.model, q, commands, errors="mark")
    assert found.ok.tolist() == [True, True, False, True]
    assert found.steps_done.tolist() == [5, 5, 3, 5]
    assert found.q[2, 3].tobytes() == found.q[2, 4].tobytes() == found.q[2, 5].tobytes()
    assert found.q[2, 0].tobytes() != found.q[2, 3].tobytes()
    with pytest.raises((qdsim.SolverError, ValueError), match="rollout: sample 2, step 3: "):
        qdsim.rollout(scene.model, q, commands)


@pytest.mark.parametrize("errors", ["raise", "mark"])
def test_bad_numbers_name_argument_and_sample(errors: str) -> None:
    scene = scenes.pusher("sphere")
    model = scene.model
    q, u = states(scene, 3, 4)

    def check(message: str, **changes: scenes.Vector) -> None:
        given = {"q": q, "u": u, **changes}
        with pytest.raises(ValueError, match=message):
            qdsim.step_batch(model, **given, errors=errors)

    bad = q.copy()
    bad[2, 1, 5] = np.nan
    check(r"q: sample \[2, 1\]: element 5 is nan", q=bad)
    bad = u.copy()
    bad[0, 3, 1] = -np.inf
    check(r"u: sample \[0, 3\]: element 1 is -inf", u=bad)
    tau = np.zeros((4, model.nv))
    tau[1, 2] = np.nan
    check(r"tau: sample \[0, 1\]: element 2 is nan", tau=tau)
    bad = q.copy()
    bad[1, 2, 3:7] *= 1.5
    check(r"q: sample \[1, 2\]: the quaternion of joint .* has length 1\.5", q=bad)
    commands = np.tile(u[0, 0], (2, 3, 1))
    commands[1, 2, 0] = np.inf
    with pytest.raises(ValueError, match=r"u: sample 1: element \[2, 0\] is inf"):
        qdsim.rollout(model, q[0, 0], commands, errors=errors)
    bad = q[0].copy()
    bad[3, 3:7] *= 1.5
    with pytest.raises(ValueError, match=r"q0: sample 3: the quaternion of joint"):
        qdsim.rollout(model, bad, commands[0], errors=errors)


def test_wrong_arguments_are_named() -> None:
    scene = scenes.planar_hand()
    model = scene.model
    q, u = states(scene, 5)
    wrong = [
        ((model, q[:, :3], u), {}, ValueError, r"q: expected shape \(\.\.\., 7\), got \(5, 3\)"),
        ((model, q, u[:4]), {}, ValueError, r"do not broadcast: q \(5,\), u \(4,\)"),
        ((model, q, 3.0), {}, ValueError, r"u: expected shape \(\.\.\., 4\), got \(\)"),
        ((model, q.astype(complex), u), {}, TypeError, "q: expected an array of real numbers"),
        ((model, q, u > 0), {}, TypeError, "u: expected an array of real numbers, got dtype bool"),
        ((model, [[1.0], [1.0, 2.0]], u), {}, TypeError, "q: expected an array of real numbers"),
        ((model, q, u), {"tau": np.zeros(3)}, ValueError, r"tau: expected shape \(\.\.\., 7\)"),
        ((None, q, u), {}, TypeError, "model: expected a qdsim.Model, got NoneType"),
        ((model, q, u, 3), {}, TypeError, "options: expected a qdsim.Options, got int"),
        (
            (model, q, u),
            {"threads": 0},
            ValueError,
            "threads: expected an integer from 1 to 1024 or None, got 0",
        ),
        (
            (model, q, u),
            {"threads": 2.0},
            TypeError,
            "threads: expected an integer from 1 to 1024 or None, got float",
        ),
        ((model, q, u), {"errors": "ignore"}, ValueError, "errors: expected 'raise' or 'mark'"),
        ((model, q, u, qdsim.Options(held=("x",))), {}, ValueError, "held: 'x' is neither"),
    ]
    for arguments, keywords, error, message in wrong:
        with pytest.raises(error, match=message):
            qdsim.step_batch(*arguments, **keywords)
    with pytest.raises(ValueError, match=r"wrt: expected 'q', 'u', .* or 'gravity', got 'x'"):
        qdsim.linearize_batch(model, q, u, wrt="x")
    with pytest.raises(ValueError, match=r"u: expected shape \(\.\.\., T, 4\), got \(4,\)"):
        qdsim.rollout(model, q, u[0])


# ---------------------------------------------------------------- company


def test_python_threads_run_batches_together() -> None:
    scene = scenes.planar_hand()
    q, u = states(scene, 60)
    want = digest(qdsim.linearize_batch(scene.model, q, u, SMOOTH, threads=1))

    def work(k: int) -> set[str]:
        return {
            digest(qdsim.linearize_batch(scene.model, q, u, SMOOTH, threads=1 + (i + k) % 4))
            for i in range(10)
        }

    with ThreadPoolExecutor(8) as pool:
        assert set().union(*pool.map(work, range(8))) == {want}


def test_results_pickle() -> None:
    scene = scenes.planar_hand()
    q, u = states(scene, 4)
    batch = qdsim.linearize_batch(scene.model, q, u, SMOOTH)
    assert digest(pickle.loads(pickle.dumps(batch))) == digest(batch)
    rolled = qdsim.rollout(scene.model, q, u[:, None])
    assert pickle.loads(pickle.dumps(rolled)).q.tobytes() == rolled.q.tobytes()
    assert repr(batch) == "BatchLinearizations(shape=(4,), failed=0)"
    assert repr(rolled) == "Rollouts(shape=(4,), failed=0, steps=1)"


def run_script(text: str, **environment: str) -> str:
    """What a process of its own prints; fails where it fails or hangs."""
    head = """
    import numpy as np, qdsim
    hand = qdsim.systems.load("planar_hand")
    q = np.array([0.0, 0.35, 0.0, -0.880505, -0.605922, 0.880505, 0.605922])
    u = q[3:] + np.linspace(-0.1, 0.1, 400)[:, None]
    def work(threads):
        return qdsim.step_batch(hand.model, q, u, threads=threads).q_next.tobytes()
    """
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c"]
        + [textwrap.dedent(head) + textwrap.dedent(text)],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.long
def test_children_start_their_own_threads() -> None:
    """Forked while the pool's threads exist, and while another thread is inside a batch."""
    out = run_script("""
    import multiprocessing, threading
    want = work(4)
    stop = threading.Event()
    def keep_busy():
        while not stop.is_set():
            assert work(3) == want
    busy = threading.Thread(target=keep_busy)
    busy.start()
    with multiprocessing.get_context("fork").Pool(3) as pool:
        found = pool.map(work, [1, 2, 4, 8] * 5)
    stop.set()
    busy.join()
    print(all(f == want for f in found), work(4) == want)
    """)
    assert out.split() == ["True", "True"]


@pytest.mark.long
def test_interpreter_ends_while_a_batch_runs() -> None:
    """Threads of the pool, and a daemon thread inside a batch, do not keep the process. What the
    abandoned thread still holds goes with the process: no leak, whatever a leak checker says."""
    script = """
    import threading, time
    started = threading.Event()
    def keep_busy():
        while True:
            work(4)
            started.set()
    threading.Thread(target=keep_busy, daemon=True).start()
    started.wait()
    print("end")
    """
    out = run_script(script, ASAN_OPTIONS="detect_leaks=0")
    assert out.split() == ["end"]


@pytest.mark.long
def test_interrupt_comes_between_short_batches() -> None:
    out = run_script("""
    import os, signal, threading
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
    want = work(4)
    try:
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
        while True:
            work(4)
    except KeyboardInterrupt:
        print("interrupted", work(4) == want)
    """)
    assert out.split() == ["interrupted", "True"]


LONG = """
    import os, signal, threading
    spheres = "".join(
        f"<geom type='sphere' size='0.05' mass='0.01' pos='{0.1 * i} {0.1 * j} 0'/>"
        for i in range(20) for j in range(20)
    )
    bed = qdsim.load(
        "<mujoco><option gravity='0 0 -10'/><worldbody><geom type='plane' size='9 9 1'/>"
        f"<body pos='0 0 0.05'><freejoint/>{spheres}</body></worldbody></mujoco>"
    )
    rows = np.tile(bed.default_q, (300_000, 1))  # a step has 400 contacts: minutes of them
    courses = np.zeros((150_000, 0))
    far = np.tile(bed.default_q, (80_000, 1))
    works = {
        "steps": lambda n: qdsim.step_batch(bed, rows, (), contacts=False, threads=n),
        "rollouts": lambda n: qdsim.rollout(bed, rows[:2], courses, threads=n),
        "distances": lambda n: qdsim.pair_distances(bed, far, margin=10.0, threads=n),
    }
    def few():
        return qdsim.step_batch(bed, rows[:5], ()).q_next.tobytes()
    want = few()
"""


@pytest.mark.long
@pytest.mark.slow
def test_signals_end_long_batches() -> None:
    """Ctrl-C, and whatever a handler raises, from the middle of a batch; the model is as before."""
    out = run_script(
        LONG
        + """
    class Late(Exception):
        pass
    def late(*_):
        raise Late
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGALRM, late)
    for name, work in works.items():
        for number in (signal.SIGINT, signal.SIGALRM):
            for threads in (1, 2, 5):
                threading.Timer(0.2, os.kill, (os.getpid(), number)).start()
                try:
                    work(threads)
                except (KeyboardInterrupt, Late) as error:
                    print(name, type(error).__name__, few() == want)
    """
    )
    lines = out.splitlines()
    assert len(lines) == 18
    assert all(line.endswith("True") for line in lines)
    assert sum("KeyboardInterrupt" in line for line in lines) == 9


@pytest.mark.long
def test_handlers_that_return_do_not_end_a_batch() -> None:
    """They run in the middle of it, and may use the model themselves."""
    out = run_script("""
    import signal
    import threading
    many = np.tile(q, (60_000, 1))
    def step(*_):
        seen.append(work(2) == want)
        signal.setitimer(signal.ITIMER_REAL, 0.01)  # once: slow machines would nest handlers
    want, seen = work(1), []
    plain = qdsim.step_batch(hand.model, many, u[0], contacts=False, threads=2).q_next.tobytes()
    signal.signal(signal.SIGALRM, step)
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    while len(seen) < 3:
        found = qdsim.step_batch(hand.model, many, u[0], contacts=False, threads=2).q_next
        assert found.tobytes() == plain
    signal.setitimer(signal.ITIMER_REAL, 0)
    print(all(seen))
    """)
    assert out.split() == ["True"]
