"""Threads that share a model: the same bits as one thread, whatever the interleaving."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
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
