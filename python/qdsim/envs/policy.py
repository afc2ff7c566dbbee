"""Policies as files: layers of tanh on scaled observations, independent of the training library."""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import zipfile
from collections.abc import Mapping
from typing import Any, get_args

import numpy as np

from qdsim.arguments import finite, reals
from qdsim.array_type import Array
from qdsim.description.sensors import Sensor, Site
from qdsim.dynamics import DynamicOptions
from qdsim.envs.draws import Range
from qdsim.envs.laws import MujocoContacts
from qdsim.envs.options import EnvOptions
from qdsim.whole_files import opened, replacing

__all__ = ["Policy"]

_KINDS: dict[str, type[Any]] = {
    kind.__name__: kind for kind in (MujocoContacts, DynamicOptions, Range, Site, *get_args(Sensor))
}
"""Classes of options that are not plain words and numbers, by name."""


@dataclasses.dataclass(frozen=True, eq=False)
class Policy:
    """A network from observations to actions.

    Attributes:
        id: of the environment of its training.
        weights: matrices and biases of its layers, tanh between them.
        mean, spread: observations are standardised by these, and clipped to 10.
        choices: number of candidate actions of the last layer. With more than one, the layer begins
            with one score for each, and the action with the largest score is taken: the mean of two
            good pushes, at two sides of a box, need not be a good one.
        options: fields of `EnvOptions` in which its training differed from those of the id:
            ``published(policy.id, **policy.options)`` is its environment, and so is
            ``gymnasium.make`` with the same arguments.

    Raises:
        TypeError, ValueError: if an option is invalid; the message names it.
    """

    id: str
    weights: list[tuple[Array, Array]]
    mean: Array
    spread: Array
    choices: int = 1
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        EnvOptions(**self.options)
        object.__setattr__(self, "options", dict(self.options))

    def __call__(self, observation: Array) -> Array:
        """Compute actions (..., k) in [-1, 1] for observations (..., n).

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
        """Write the policy as one NPZ file, completely or not at all.

        Args:
            path: path of the file.
            **more: more arrays to store.

        Raises:
            OSError: if the file cannot be written.
        """
        arrays: dict[str, Any] = {"id": np.array(self.id), "mean": self.mean, "spread": self.spread}
        arrays["choices"] = np.array(self.choices)
        arrays["options"] = np.array(json.dumps(self.options, default=_plain))
        for k, (W, b) in enumerate(self.weights):
            arrays[f"weight_{k}"], arrays[f"bias_{k}"] = W, b
        with replacing(path) as file:
            np.savez(file, **arrays, **more)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Policy:
        """Read a file written by `save`.

        Args:
            path: path of the file.

        Raises:
            ValueError: if the file is not a policy; the message names it.
        """
        try:
            with opened(path) as file, np.load(file, allow_pickle=False) as found:
                count = sum(name.startswith("weight_") for name in found)
                weights = [(found[f"weight_{k}"], found[f"bias_{k}"]) for k in range(count)]
                choices = int(found["choices"])
                options = _options(str(found["options"]))
                policy = cls(
                    str(found["id"]), weights, found["mean"], found["spread"], choices, options
                )
        except (KeyError, zipfile.BadZipFile, EOFError, TypeError, ValueError) as error:
            raise ValueError(f"{os.fspath(path)}: no policy ({error})") from None
        policy._check(os.fspath(path))
        return policy

    def _check(self, path: str) -> None:
        """Raise ValueError if layers or numbers cannot be those of a policy."""
        sizes = [len(self.mean), *(len(b) for _, b in self.weights)]
        fits = all(W.shape == s for (W, _), s in zip(self.weights, itertools.pairwise(sizes)))
        if self.choices != 1:  # one score per candidate, then the actions
            fits &= self.choices > 1 and sizes[-1] > self.choices and sizes[-1] % self.choices == 0
        if not self.weights or not fits or self.spread.shape != self.mean.shape:
            raise ValueError(f"{path}: no policy (layers that do not fit each other)")
        numbers = [self.mean, self.spread, *itertools.chain(*self.weights)]
        if not all(np.isfinite(x).all() for x in numbers) or not (self.spread > 0.0).all():
            raise ValueError(
                f"{path}: no policy (numbers that are not finite, or spreads that are not above 0)"
            )


def _plain(value: Any) -> Any:
    """Convert values for JSON: settings with the name of their class, arrays as lists."""
    if type(value).__name__ in _KINDS:
        own = {f.name: getattr(value, f.name) for f in dataclasses.fields(value) if f.init}
        return {"kind": type(value).__name__, **own}
    return np.asarray(value).tolist()


def _options(text: str) -> dict[str, Any]:
    """Read options from text."""
    found = json.loads(text, object_hook=_settings)
    if not isinstance(found, dict):
        raise ValueError("options that are no mapping")
    return found


def _settings(values: dict[str, Any]) -> Any:
    """Restore settings written by `_plain`; sequences become tuples."""
    own = {k: tuple(value) if isinstance(value, list) else value for k, value in values.items()}
    kind = _KINDS.get(str(own.pop("kind", "")))
    return own if kind is None else kind(**own)
