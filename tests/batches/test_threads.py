"""Threads that share a model: the same bits as one thread, whatever the interleaving."""

from __future__ import annotations

import copy
import hashlib
import pickle
import queue
import subprocess
import sys
import sysconfig
import textwrap
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scenes

import qdsim

THREADS = 8


def states(scene: scenes.Scene, count: int) -> list[tuple[scenes.Vector, scenes.Vector]]:
    rng = np.random.default_rng(0)
    return [scene.sample(rng) for _ in range(count)]


def outcome(model: qdsim.Model, q: scenes.Vector, u: scenes.Vector, options: qdsim.Options) -> str:
    """Hash of everything that comes out; of an error, its message with the residuals."""
    try:
        lin = qdsim.linearize(model, q, u, options)
    except qdsim.SolverError as error:
        return str(error)
    step = lin.step
    parts = (step.q_next, step.delta, step.limit_force, step.contacts, lin.A, lin.B)
    return hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()


def has_step(
    model: qdsim.Model, q: scenes.Vector, u: scenes.Vector, options: qdsim.Options
) -> bool:
    try:
        qdsim.step(model, q, u, options)
    except qdsim.SolverError:  # a sampler may penetrate where nothing gives way
        return False
    return True


def run_together(work: Callable[[int], object]) -> list[object]:
    """work(k) in THREADS threads that start at the same moment; exceptions come out here."""
    barrier = threading.Barrier(THREADS)

    def start(k: int) -> object:
        barrier.wait()
        return work(k)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(start, range(THREADS)))


def test_threads_share_a_model() -> None:
    """Each thread takes the states in another order; hashes of everything that comes out agree."""
    for scene in (scenes.planar_hand(), scenes.pusher("box"), scenes.pendulum()):
        cases = states(scene, 24)
        options = qdsim.Options(kappa=300.0)
        alone = [outcome(scene.model, q, u, options) for q, u in cases]

        def work(
            k: int,
            model: qdsim.Model = scene.model,
            cases: list = cases,
            options: qdsim.Options = options,
        ) -> list[str]:
            order = np.random.default_rng(k).permutation(len(cases))
            found = [""] * len(cases)
            for i in order:
                found[i] = outcome(model, *cases[i], options)
            return found

        for found in run_together(work):
            assert found == alone


def test_threads_roll_out() -> None:
    """Sixty steps in a row, each from the last one's end: an error anywhere would add up."""
    scene = scenes.planar_hand()
    starts = states(scene, THREADS)

    def rollout(k: int) -> bytes:
        q, u = starts[k]
        for _ in range(60):
            q = qdsim.step(scene.model, q, u).q_next
        return q.tobytes()

    alone = [rollout(k) for k in range(THREADS)]
    assert len(set(alone)) == THREADS
    assert run_together(rollout) == alone


def test_threads_query_while_others_step() -> None:
    scene = scenes.pusher("box")
    model = scene.model
    ((q, u),) = states(scene, 1)

    def everything() -> tuple[bytes, ...]:
        return (
            qdsim.step(model, q, u).q_next.tobytes(),
            model.collide(q).tobytes(),
            model.mass_matrix(q).tobytes(),
            model.body_poses(q)[1].tobytes(),
            model.integrate(q, np.full(model.nv, 0.01)).tobytes(),
        )

    alone = everything()
    for found in run_together(lambda k: [everything() for _ in range(50)]):
        assert set(found) == {alone}


def test_threads_read_one_result() -> None:
    """Attributes are made when first read: all threads get the one array."""
    scene = scenes.planar_hand()
    for q, u in states(scene, 20):
        step = qdsim.step(scene.model, q, u)
        found = run_together(lambda k, step=step: (step.contacts, step.q_next, step.delta))
        assert all(a is b for row in found for a, b in zip(row, found[0]))


def test_threads_resolve_held_names_together() -> None:
    scene = scenes.planar_hand()
    ((q, u),) = states(scene, 1)
    for _ in range(20):
        model = qdsim.build(scene.model.description)
        options = qdsim.Options(held=("l1", "disc"))
        found = run_together(
            lambda k, model=model, options=options: qdsim.step(model, q, u, options).delta.tobytes()
        )
        assert len(set(found)) == 1
        delta = np.frombuffer(found[0])
        assert not delta[:4].any()
        assert delta[4:].any()


def test_errors_in_some_threads_leave_the_others_alone() -> None:
    scene = scenes.planar_hand()
    ((q, u),) = states(scene, 1)
    want = qdsim.step(scene.model, q, u).q_next.tobytes()

    def work(k: int) -> int:
        errors = 0
        for i in range(60):
            if (i + k) % 2:
                try:
                    qdsim.step(scene.model, np.full(scene.model.nq, np.nan), u)
                except ValueError:
                    errors += 1
            else:
                assert qdsim.step(scene.model, q, u).q_next.tobytes() == want
        return errors

    assert run_together(work) == [30] * THREADS


def test_workspaces_grow_in_every_thread() -> None:
    """More contacts than a workspace starts with, met by all threads at once."""
    model = scenes.bed_of_spheres(20)
    found = run_together(lambda k: model.collide(model.default_q).tobytes())
    assert len(set(found)) == 1
    assert len(model.collide(model.default_q)) == 400


# ---------------------------------------------------------------- objects that threads share


def test_one_differential_serves_many_threads() -> None:
    """It has one workspace: products come one after the other, and are those of one thread."""
    scene = scenes.pusher("box")
    options = qdsim.Options(kappa=300.0)
    cases = [case for case in states(scene, 6) if has_step(scene.model, *case, options)]
    assert cases
    for q, u in cases:
        one = qdsim.differentiate(scene.model, q, u, options)
        rows = np.random.default_rng(0).standard_normal((THREADS, scene.model.nv))

        def products(k: int, one: qdsim.Differential = one, rows: scenes.Vector = rows) -> bytes:
            forward = one.jvp({"q": rows[k]})
            back = one.vjp(rows[k], wrt=("u", "geom_size", "pair_friction"))
            return forward.tobytes() + b"".join(back[name].tobytes() for name in sorted(back))

        alone = [products(k) for k in range(THREADS)]
        for _ in range(10):
            assert run_together(products) == alone


@pytest.mark.long
def test_models_come_and_go_in_threads() -> None:
    """Made in one thread, stepped in another, dropped in a third; more than an Options keeps masks of."""
    scene = scenes.planar_hand()
    ((q, u),) = states(scene, 1)
    description = scene.model.description
    options = qdsim.Options(held=("l1",))
    want = qdsim.step(scene.model, q, u, options).q_next.tobytes()
    waiting: queue.SimpleQueue[qdsim.Model] = queue.SimpleQueue()
    waiting.put(qdsim.build(description))

    def work(k: int) -> set[bytes]:
        found = set()
        for i in range(20):
            waiting.put(qdsim.build(description))
            model = waiting.get(timeout=900)
            found.add(qdsim.step(model, q, u, options).q_next.tobytes())
            rows = qdsim.step_batch(model, np.tile(q, (5, 1)), u, options, threads=1 + (i + k) % 3)
            del model  # the rows outlive it
            found.update(row.tobytes() for row in rows.q_next)
        return found

    assert set().union(*run_together(work)) == {want}


def test_results_are_copied_and_pickled_by_many_threads() -> None:
    """While others read the same results for the first time."""
    scene = scenes.pusher("box")
    model, options = scene.model, qdsim.Options(kappa=300.0)
    q, u = next(case for case in states(scene, 6) if has_step(model, *case, options))
    for _ in range(5):
        lin = qdsim.linearize(model, q, u, options)

        def work(k: int, lin: qdsim.Linearization = lin) -> tuple[bytes, ...]:
            other = pickle.loads(pickle.dumps(lin)) if k % 2 else lin
            twin = copy.deepcopy(model) if k % 4 == 0 else pickle.loads(pickle.dumps(model))
            again = qdsim.step(twin, q, u, options)
            parts = other.step.q_next, other.step.contacts, other.A, again.q_next, again.contacts
            return tuple(part.tobytes() for part in parts)

        assert len(set(run_together(work))) == 1


@pytest.mark.long
def test_arguments_may_change_meanwhile() -> None:
    """A thread that writes to arrays while others compute with them gets answers or exceptions, for
    whatever numbers; nobody else notices. (Which numbers of the two a call sees is not said.)"""
    scene = scenes.pusher("box")
    model = scene.model
    q, u = (np.array(rows) for rows in zip(*states(scene, 40)))
    names = ("body_mass", "geom_size", "pair_friction", "body_inertia", "actuator_stiffness")
    own = {name: np.repeat(getattr(model.parameters, name)[None], len(q), axis=0) for name in names}
    tau, wrench = np.zeros((len(q), model.nv)), np.zeros((len(q), model.body_count, 6))
    arrays = [q, u, tau, wrench, *own.values()]
    kept = [array.copy() for array in arrays]
    G = np.vstack([np.eye(3), -np.eye(3)])
    g, Q = np.ones(6), np.eye(3)
    want = qdsim.step_batch(model, q, u, errors="mark").status.tobytes()
    done = threading.Event()

    def scribble() -> None:
        rng = np.random.default_rng(1)
        odd = (np.nan, np.inf, -np.inf, 1e300, -1e300, 1e-300, -1.0, 0.0, 7.0)
        while not done.is_set():
            array = arrays[rng.integers(len(arrays))].reshape(-1)
            array[rng.integers(array.size, size=3)] = rng.choice(odd, size=3)
            g[rng.integers(6)], Q[0, 1] = rng.choice(odd), rng.choice(odd)
            for array, good in zip(arrays, kept):
                array[...] = good
            g[:], Q[...] = 1.0, np.eye(3)

    def work(k: int) -> int:
        answers = 0
        calls = (
            lambda: qdsim.step_batch(
                model, q, u, tau=tau, wrench=wrench, parameters=own, threads=2
            ),
            lambda: qdsim.linearize_batch(model, q, u, tau=tau, parameters=own, threads=3),
            lambda: qdsim.rollout(model, q, u[:, None, :], wrench=wrench[:, None], threads=2),
            lambda: qdsim.linearize(model, q[k], u[k], tau=tau[k], wrench=wrench[k]),
            lambda: model.collide(q[k]),
            lambda: qdsim.pair_distances(model, q, threads=2),
            lambda: qdsim.solve_cone_program(Q, g[:3], G, g, [("orthant", 3), ("lorentz", 3)]),
        )
        for call in calls * 6:
            try:
                call()
                answers += 1
            except (ValueError, ArithmeticError, qdsim.SolverError):
                pass
        return answers

    vandal = threading.Thread(target=scribble)
    vandal.start()
    try:
        answers = run_together(work)
    finally:
        done.set()
        vandal.join()
    assert all(answers)
    for array, good in zip(arrays, kept):
        array[...] = good
    assert qdsim.step_batch(model, q, u, errors="mark").status.tobytes() == want


@pytest.mark.skipif(
    not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="needs a free-threaded interpreter"
)
def test_the_gil_stays_off() -> None:
    text = "import sys, warnings; warnings.simplefilter('error'); import qdsim; print(sys._is_gil_enabled())"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"]


@pytest.mark.long
def test_subinterpreters_are_refused() -> None:
    """With an error, and the main interpreter goes on."""
    text = """
    import sys
    try:
        import _interpreters as interpreters
    except ImportError:
        import _xxsubinterpreters as interpreters
    code = "try:\\n    import qdsim\\nexcept ImportError as error:\\n    print(type(error).__name__, flush=True)"
    interpreters.run_string(interpreters.create(), code)
    import qdsim
    interpreters.run_string(interpreters.create(), code)
    print(len(qdsim.Options(h=0.2).held))
    """
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(text)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["ImportError", "ImportError", "0"]
