"""Places of a round pusher at a box in the plane."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from qdsim.arguments import fields, instance, number
from qdsim.array_type import Array
from qdsim.batches.queries import body_poses, pair_distances
from qdsim.model import Model

__all__ = ["BoxSideSampler"]


@dataclasses.dataclass(frozen=True)
class BoxSideSampler:
    """Puts the pusher at a random place on one of the four sides of the box.

    The published sampler of planar pushing: a side with equal probability, a place uniform along it
    and slightly past the corners, where a gap opens.

    Attributes:
        object: body of the box, which moves in the yz plane.
        pusher: body of the pusher; its two slide joints along y and z are its configuration.
        reach: distance of the pusher's centre from that of the box, and largest offset along a
            side, m.
    """

    object: str = "box"
    pusher: str = "pusher"
    reach: float = 0.6

    def __post_init__(self) -> None:
        fields(self, instance, "object", "pusher", kind=str)
        fields(self, number, "reach", above=0)

    parameters = 2
    """Number of parameters of ``place``: a direction from the box's centre in its own axes, which
    gives a place on the outline."""
    stroke_parameters = 2
    """Number of parameters of ``stroke``: length and slant."""

    def __call__(self, model: Model, q: Array, rng: np.random.Generator) -> Array | None:
        """Compute a configuration ``(nq,)`` with the pusher at a side, or None if it would penetrate."""
        side = int(rng.integers(4))
        along = float(rng.uniform(-1.0, 1.0))
        away = 1.0 if side % 2 == 0 else -1.0
        return self.place(model, q, np.array([along, away] if side < 2 else [away, along]))

    def place(self, model: Model, q: Array, x: Array) -> Array | None:
        """Compute a configuration ``(nq,)`` with the pusher at the box's outline, or None if it would penetrate.

        Args:
            model: the model.
            q: ``(nq,)`` configuration with the box in its pose.
            x: ``(2,)`` direction from the box's centre, in its own axes.
        """
        found, good = self.place_batch(model, q[None], np.asarray(x)[None])
        return found[0] if good[0] else None

    def place_batch(self, model: Model, q: Array, x: Array) -> tuple[Array, NDArray[np.bool_]]:
        """Several at once: configurations ``(n, nq)``, and which of them do not penetrate ``(n,)``.

        Args:
            model: the model.
            q: ``(n, nq)`` configurations with the object in its poses.
            x: ``(n, 2)`` directions, as of :meth:`place`.

        Raises:
            ValueError: if the pusher does not have two joints.
        """
        body, own = model.body_index(self.object), model.slice_q(self.pusher)
        if own.stop - own.start != 2:
            raise ValueError(f"pusher: {self.pusher!r} has {own.stop - own.start} joints, not two")
        size = np.abs(x).max(axis=1, keepdims=True)
        local = np.zeros((len(q), 3))
        local[:, 1:] = self.reach * x / np.maximum(size, 1e-12)
        local[size[:, 0] == 0.0, 1] = self.reach
        pos, rot = body_poses(model, q, threads=1)
        result = q.copy()
        result[:, own] = (pos[:, body] + np.matmul(rot[:, body], local[:, :, None])[:, :, 0])[:, 1:]
        clear = np.all(pair_distances(model, result, 1e-3, threads=1) > 0.0, axis=1)
        result[~clear] = q[~clear]
        return result, np.asarray(clear)

    def stroke(self, model: Model, q: Array, x: Array, y: Array) -> Array:
        """Changes ``(n, 2)`` of the pusher's command that push into the touched side, m.

        Args:
            model: the model.
            q: ``(n, nq)`` configurations with the object in its poses.
            x: ``(n, 2)`` directions, as for :meth:`place`.
            y: ``(n, 2)`` in [-1, 1]: the length is ``0.02 * 100 ** ((1 + y0) / 2)`` m (2 cm to 2
                m), the slant ``y1`` times 45 degrees.
        """
        flat = np.abs(x[:, 0]) >= np.abs(x[:, 1])
        inwards = np.where(
            flat[:, None],
            np.stack((-np.sign(x[:, 0]), np.zeros(len(x))), axis=1),
            np.stack((np.zeros(len(x)), -np.sign(x[:, 1])), axis=1),
        )
        inwards[~inwards.any(axis=1)] = (-1.0, 0.0)
        angle = 0.25 * np.pi * y[:, 1]
        cosine, sine = np.cos(angle), np.sin(angle)
        turned = np.stack(
            (
                cosine * inwards[:, 0] - sine * inwards[:, 1],
                sine * inwards[:, 0] + cosine * inwards[:, 1],
            ),
            axis=1,
        )
        _, rot = body_poses(model, q, threads=1)
        body = model.body_names.index(self.object)
        world = np.matmul(rot[:, body, 1:, 1:], turned[:, :, None])[:, :, 0]
        length = 0.02 * 100.0 ** (0.5 * (1.0 + y[:, 0]))
        return np.asarray(length[:, None] * world)
