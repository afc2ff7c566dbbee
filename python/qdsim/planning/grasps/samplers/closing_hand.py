"""Grasps of any hand by closing its fingers along a random direction of the joints."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from qdsim.arguments import MOST_COUNT, fields, instance, integer, number, reals, vector
from qdsim.array_type import Array
from qdsim.model import Model
from qdsim.planning.grasps.closing import close_grasps, meet
from qdsim.planning.grasps.samplers.touching import (
    add_contact,
    bodies_touching,
    touched_bodies,
)
from qdsim.planning.task.drives import lengths, put_lengths, robot_limits, robot_q
from qdsim.planning.task.followers import with_followers

__all__ = ["ClosingSampler"]


@dataclasses.dataclass(frozen=True, eq=False)
class ClosingSampler:
    """Opens the hand, draws a direction of its joints and closes along it until contact.

    CQDC §VII-C: "we pick a random direction in the hand configuration space using EigenGrasps, and
    simulate closing the hand along that direction until contact is established". Here the closing
    is geometric (:func:`qdsim.planning.close_grasp`): each joint stops before a body that it moves
    touches the object or another finger, or at its limit. Samples therefore lie within the limits,
    do not penetrate and do not move the object.

    Attributes:
        object: name of the object's body; contacts with bodies that it carries also count.
        opened: ``(nu,)`` joint positions of the open hand (lengths of shared tendons), or None to
            begin with the present position of the robot; NaN entries keep the robot's own value.
        basis: ``(k, nu)`` motions of the joints (eigengrasps), for example all flexions.
        mean, spread: ``(k,)`` the weights of the motions are ``mean + spread (U - 1/2)``, U uniform
            in [0, 1).
        reach: joints travel at most ``reach`` times the drawn direction.
        wrist: moves the wrist to where the hand reaches the object: called with model,
            configuration (with the opened hand) and generator before the fingers close, changes the
            configuration in place. It may return a direction ``(nu,)`` that is added to the drawn
            one. None: the wrist stays.
        contacts: bodies of the robot (fingers) that have to touch the object.
        near: bodies of the robot within this distance touch the object, m.
        gap: distance that the fingers keep, m.
        extra: how often another shape of the robot is brought to touch after the fingers have
            closed (:func:`qdsim.planning.samplers.add_contact`); if that fails the grasp stays as
            it is. Without more contacts, an object that few round links touch falls out of the
            grasp.
        draws: largest number of attempts.
    """

    object: str
    basis: Array
    mean: Array
    spread: Array
    opened: Array | None = None
    reach: float = 1.0
    wrist: Callable[[Model, Array, np.random.Generator], Array | None] | None = None
    contacts: int = 1
    near: float = 1e-3
    gap: float = 0.0
    extra: int = 0
    draws: int = 20

    def __post_init__(self) -> None:
        fields(self, instance, "object", kind=str)
        basis = reals("basis", self.basis)
        if basis.ndim != 2 or basis.shape[0] == 0 or not np.isfinite(basis).all():
            raise ValueError(f"basis: expected (k, nu) finite numbers, got shape {basis.shape}")
        object.__setattr__(self, "basis", basis)
        for name in ("mean", "spread"):
            object.__setattr__(self, name, vector(name, getattr(self, name), len(basis)))
        if self.opened is not None:
            opened = reals("opened", self.opened)
            if opened.shape != basis.shape[1:]:
                raise ValueError(f"opened: expected shape {basis.shape[1:]}, got {opened.shape}")
            object.__setattr__(self, "opened", opened)
        if self.wrist is not None and not callable(self.wrist):
            raise TypeError(f"wrist: expected a function or None, got {type(self.wrist).__name__}")
        fields(self, number, "reach", "near", above=0)
        fields(self, number, "gap", least=0)
        fields(self, integer, "contacts", "extra", least=0)
        fields(self, integer, "draws", least=1, most=MOST_COUNT)

    @property
    def parameters(self) -> int:
        """Number of parameters of ``place``: one weight per motion."""
        return len(self.mean)

    def __call__(self, model: Model, q: Array, rng: np.random.Generator) -> Array | None:
        """Compute a configuration ``(nq,)`` with the object unmoved, or None if no attempt succeeded.

        After failed attempts, several hands are closed at once, which costs little more than one.
        """
        tried, at_once = 0, 1
        while tried < self.draws:
            drawn, states = [], []
            for _ in range(min(at_once, self.draws - tried)):
                begin, extra = self._open(model, q[None], [rng])
                drawn.append((begin[0], rng.random(len(self.mean)) - 0.5, extra[0]))
                states.append(rng.bit_generator.state)
            found, good = self._closed(model, *(np.array(part) for part in zip(*drawn)))
            if good.any():
                first = int(good.argmax())
                rng.bit_generator.state = states[first]  # as if the others had not been drawn
                return self._touched_more(model, found[first], rng)
            tried, at_once = tried + len(drawn), 2 * at_once
        return None

    def place(self, model: Model, q: Array, x: Array) -> Array | None:
        """Compute the grasp ``(nq,)`` with given weights of the motions, or None if too few fingers touch.

        Other random choices of a call (the wrist's place) are drawn with the same seed every time.

        Args:
            model: the model.
            q: ``(nq,)`` configuration with the object in its pose.
            x: ``(k,)`` in [-1, 1]; the weights are ``mean + spread x / 2``.
        """
        found, good = self.place_batch(model, q[None], np.asarray(x)[None])
        return found[0] if good[0] else None

    def place_batch(self, model: Model, q: Array, x: Array) -> tuple[Array, NDArray[np.bool_]]:
        """Several grasps at once: configurations ``(n, nq)``, and which of them are grasps ``(n,)``.

        Args:
            model: the model.
            q: ``(n, nq)`` configurations with the object in its poses.
            x: ``(n, k)``, as of :meth:`place`.
        """
        drawn = self.wrist is not None or self.extra > 0
        rngs = [np.random.default_rng(0) for _ in q] if drawn else []
        begin, extra = self._open(model, q, rngs)
        found, good = self._closed(model, begin, 0.5 * x, extra)
        for i in np.flatnonzero(good).tolist() if self.extra else ():
            found[i] = self._touched_more(model, found[i], rngs[i])
        found[~good] = q[~good]
        return found, good

    def _open(self, model: Model, q: Array, rngs: list[np.random.Generator]) -> tuple[Array, Array]:
        """Return opened hands (n, nq) with their wrists in place, and the directions (n, nu) that
        the wrists add."""
        lower, upper = robot_limits(model)
        rows = robot_q(model)
        begin, extra = np.array(q), np.zeros((len(q), model.nu))
        if self.opened is not None:
            now = lengths(model, begin)
            put_lengths(model, begin, np.where(np.isnan(self.opened), now, self.opened))
        if self.wrist is not None:
            for here, more, rng in zip(begin, extra, rngs):
                added = self.wrist(model, here, rng)
                more += 0.0 if added is None else added
        begin[:, rows] = np.clip(begin[:, rows], lower, upper)
        return with_followers(model, begin), extra

    def _closed(
        self, model: Model, begin: Array, shares: Array, extra: Array
    ) -> tuple[Array, NDArray[np.bool_]]:
        """Close opened hands along weighted motions; return configurations, and which are grasps (n,).

        The weights are the mean plus ``shares`` (n, k) of the spread; ``extra`` (n, nu) is added to
        the direction.
        """
        good, found = ~meet(model, begin), begin.copy()
        weights = self.mean + self.spread * shares
        # Not a matrix product, whose rounding would depend on the number of rows.
        direction = np.sum(weights[:, :, None] * self.basis, axis=1) + extra
        found[good] = close_grasps(
            model, begin[good], direction[good], reach=self.reach, gap=self.gap
        ).q
        touched = touched_bodies(model, found, self.object, self.near)
        return found, good & (touched.sum(axis=1) >= self.contacts)

    def _touched_more(self, model: Model, q: Array, rng: np.random.Generator) -> Array:
        """Try ``extra`` times to bring another shape of the robot into contact; return the grasp (nq,)."""
        for _ in range(self.extra):
            more = add_contact(model, q, self.object, rng, near=self.near)
            q = q if more is None else more
        return q

    def touching(self, model: Model, q: Array) -> NDArray[np.intp]:
        """Indices of the robot's bodies that touch the object.

        Args:
            model: the model.
            q: ``(nq,)`` configuration.
        """
        return bodies_touching(model, q, self.object, self.near)
