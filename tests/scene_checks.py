"""What holds for the steps of any scene, whatever pulls in it."""

from __future__ import annotations

import numpy as np
from scenes import Scene

import qdsim

__all__ = ["check_file_and_batch", "check_products"]


def check_products(scene: Scene) -> None:
    """Both products with derivatives agree with the matrices."""
    options = qdsim.Options(h=0.05, damping=True)
    for seed in range(4):
        q, u = scene.sample(np.random.default_rng(seed))
        lin = qdsim.linearize(scene.model, q, u, options)
        d = qdsim.differentiate(scene.model, q, u, options)
        eye, scale = np.eye(scene.model.nv), max(1.0, np.abs(lin.A).max())
        np.testing.assert_allclose(d.jvp({"q": eye}).T, lin.A, atol=1e-9 * scale)
        np.testing.assert_allclose(d.vjp(eye)["q"], lin.A, atol=1e-9 * scale)
        np.testing.assert_allclose(d.vjp(eye)["u"], lin.B, atol=1e-9 * scale)


def check_file_and_batch(scene: Scene) -> None:
    """The model that is written and read again makes the same steps, and a batch those of a loop."""
    model, rng = scene.model, np.random.default_rng(3)
    again = qdsim.load(model.description.to_mjcf())
    q, u = (np.array(part) for part in zip(*(scene.sample(rng) for _ in range(4))))
    batch = qdsim.step_batch(model, q, u)
    for i in range(4):
        one = qdsim.step(model, q[i], u[i])
        np.testing.assert_array_equal(batch.q_next[i], one.q_next)
        np.testing.assert_allclose(qdsim.step(again, q[i], u[i]).q_next, one.q_next, atol=1e-9)
