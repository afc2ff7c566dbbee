"""Scenes with closed forms that other simulators know too: a box slides, a ball slips, rolls and bounces, a hand lifts."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

G = 9.81
FLOOR = '<geom name="floor" type="box" size="5 5 .5" pos="0 0 -.5" friction="{0}"/>'
HEAD = '<mujoco model="scene"><option gravity="0 0 -9.81"/><worldbody>'


@dataclass(frozen=True)
class WitnessScene:
    """What moves, for how long, and what of the last state is known.

    `known` are pairs of an index of q and its value at the end; velocities begin as `v`, in q's order.
    """

    xml: str
    duration: float
    known: tuple[tuple[int, float], ...]
    v: tuple[float, ...]
    u: tuple[float, ...] = ()
    restitution: float = 0.0
    scale: float = field(default=1.0)
    """m, of the motion: errors are shares of it."""

    def error(self, q: np.ndarray) -> float:
        """The largest error of what is known, as a share of the motion."""
        return max(abs(float(q[i]) - value) for i, value in self.known) / self.scale


def _slide() -> WitnessScene:
    """A box that does not turn is braked by mu m g and stops."""
    speed, mu = 2.0, 0.4
    body = (
        '<body pos="0 0 .1"><joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1"/>'
        f'<geom type="box" size=".1 .1 .1" mass="1" friction="{mu}"/></body></worldbody></mujoco>'
    )
    way = speed**2 / (2 * mu * G)
    return WitnessScene(
        HEAD + FLOOR.format(mu) + body, 1.0, ((0, way), (1, 0.0)), (speed, 0.0), scale=way
    )


def _roll() -> WitnessScene:
    """A ball slips until 2 v / (7 mu g), then rolls with 5/7 of its speed."""
    speed, mu, end = 1.0, 0.3, 1.0
    body = (
        '<body pos="0 0 .1"><joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1"/>'
        f'<joint axis="0 1 0"/><geom size=".1" mass="1" friction="{mu}"/></body></worldbody></mujoco>'
    )
    slips = 2 * speed / (7 * mu * G)
    way = speed * slips - 0.5 * mu * G * slips**2 + 5 / 7 * speed * (end - slips)
    return WitnessScene(
        HEAD + FLOOR.format(mu) + body, end, ((0, way), (1, 0.0)), (speed, 0, 0), scale=way
    )


def _bounce() -> WitnessScene:
    """A ball falls by half a metre, comes back without loss, and is on its way down again."""
    fall, end = 0.5, 0.8
    body = (
        f'<body pos="0 0 {fall + 0.1}"><joint type="slide" axis="0 0 1"/>'
        '<geom size=".1" mass="1" friction="0"/></body></worldbody></mujoco>'
    )
    hit = np.sqrt(2 * fall / G)
    up = end - hit
    height = G * hit * up - 0.5 * G * up**2 - fall
    return WitnessScene(
        HEAD + FLOOR.format(0.5) + body, end, ((0, height),), (0,), restitution=1.0, scale=fall
    )


def _lift(mu: float) -> WitnessScene:
    """Two fingers press on a box by 10 N each and are pulled up; with little friction it slips between them."""
    press, box, hand, finger, pull, end = 10.0, 0.5, 1.0, 0.1, 20.0, 0.4
    sides = "".join(
        f'<body pos="{s * 0.12} 0 1"><joint name="{n}" type="slide" axis="{-s} 0 0"/>'
        f'<geom type="box" size=".02 .05 .1" mass="{finger}" friction="{mu}"/></body>'
        for n, s in (("left", -1), ("right", 1))
    )
    rest = (
        '<body><joint name="hand" type="slide" axis="0 0 1"/>'
        f'<inertial pos="0 0 0" mass="{hand}" diaginertia=".1 .1 .1"/>{sides}</body>'
        '<body pos="0 0 1"><joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1"/>'
        f'<geom type="box" size=".1 .05 .05" mass="{box}" friction="{mu}"/></body></worldbody>'
        '<actuator><motor joint="hand"/><motor joint="left"/><motor joint="right"/></actuator></mujoco>'
    )
    moved, all_of_it = hand + 2 * finger, hand + 2 * finger + box
    together = pull / all_of_it - G
    held = box * (together + G) <= 2 * mu * press
    up = (
        (together, together)
        if held
        else ((pull - 2 * mu * press) / moved - G, 2 * mu * press / box - G)
    )
    ways = [0.5 * a * end**2 for a in up]
    known = ((0, ways[0]), (4, ways[1]), (3, 0.0))
    return WitnessScene(HEAD + rest, end, known, (0,) * 5, (pull, press, press), scale=abs(ways[1]))


SCENES = {
    "slides": _slide(),
    "rolls": _roll(),
    "bounces": _bounce(),
    "is lifted": _lift(0.6),
    "slips": _lift(0.28),
}
