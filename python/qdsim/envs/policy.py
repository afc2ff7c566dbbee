"""Policies as files: layers of tanh on scaled observations, whatever trained them."""

from __future__ import annotations

import dataclasses
import itertools
import os
import zipfile
from typing import Any

import numpy as np

from qdsim.arguments import finite, reals
from qdsim.array_type import Array
from qdsim.whole_files import opened, replacing

__all__ = ["Policy"]


@dataclasses.dataclass(frozen=True, eq=False)
class Policy:
    """A network from observations to actions.

    Attributes:
        id: of the environment that it was trained in.
        weights: matrices and biases of its layers, tanh between them.
        mean, spread: observations are taken relative to these, and clipped to 10.
        choices: of actions that the last layer gives. With more than one it begins with a number
            for each, and the action with the largest is taken: between two good pushes, at two
            sides of a box, there need not be a good one.
    """

    id: str
    weights: list[tuple[Array, Array]]
    mean: Array
    spread: Array
    choices: int = 1

    def __call__(self, observation: Array) -> Array:
        """Actions (..., k) in [-1, 1] of observations (..., n).

        Raises:
            TypeError, ValueError: for observations of another size, or with NaN.
        """
        observation = finite("observation", reals("observation", observation), infinite=True)
        if observation.shape[-1:] != self.mean.shape:
            raise ValueError(
                f"policy: expected {len(self.mean)} numbers an observation, got shape {observation.shape}"
            )
        x = np.clip((observation - self.mean) / self.spread, -10.0, 10.0)
        for W, b in self.weights[:-1]:
            x = np.tanh(x @ W + b)
        W, b = self.weights[-1]
        x = x @ W + b
        if self.choices > 1:
            best = x[..., : self.choices].argmax(axis=-1)[..., None, None]
            actions = x[..., self.choices :].reshape(*x.shape[:-1], self.choices, -1)
            x = np.take_along_axis(actions, best, axis=-2)[..., 0, :]
        return np.asarray(np.clip(x, -1.0, 1.0), np.float64)

    def save(self, path: str | os.PathLike[str], **more: Any) -> None:
        """Write it, with more arrays beside, as NPZ: whole or not at all."""
        arrays: dict[str, Any] = {"id": np.array(self.id), "mean": self.mean, "spread": self.spread}
        arrays["choices"] = np.array(self.choices)
        for k, (W, b) in enumerate(self.weights):
            arrays[f"weight_{k}"], arrays[f"bias_{k}"] = W, b
        with replacing(path) as file:
            np.savez(file, **arrays, **more)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Policy:
        """What `save` wrote.

        Raises:
            ValueError: for a file that is none, naming it.
        """
        try:
            with opened(path) as file, np.load(file, allow_pickle=False) as found:
                count = sum(name.startswith("weight_") for name in found)
                weights = [(found[f"weight_{k}"], found[f"bias_{k}"]) for k in range(count)]
                choices = int(found["choices"]) if "choices" in found else 1
                policy = cls(str(found["id"]), weights, found["mean"], found["spread"], choices)
        except (KeyError, zipfile.BadZipFile, EOFError, ValueError) as error:
            raise ValueError(f"{os.fspath(path)}: no policy ({error})") from None
        policy._check(os.fspath(path))
        return policy

    def _check(self, path: str) -> None:
        """Raise ValueError for layers and numbers that are no policy's."""
        sizes = [len(self.mean), *(len(b) for _, b in self.weights)]
        fits = all(W.shape == s for (W, _), s in zip(self.weights, itertools.pairwise(sizes)))
        if self.choices != 1:  # a number for each and then the actions
            fits &= self.choices > 1 and sizes[-1] > self.choices and sizes[-1] % self.choices == 0
        if not self.weights or not fits or self.spread.shape != self.mean.shape:
            raise ValueError(f"{path}: no policy (layers that do not fit each other)")
        numbers = [self.mean, self.spread, *itertools.chain(*self.weights)]
        if not all(np.isfinite(x).all() for x in numbers) or not (self.spread > 0.0).all():
            raise ValueError(
                f"{path}: no policy (numbers that are not finite, or spreads that are not above 0)"
            )
