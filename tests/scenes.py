"""Small scenes that several test files share: MJCF text and a sampler of states near contact."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import qdsim

Vector = NDArray[np.float64]

PLANAR_HAND = """
<mujoco>
  <option gravity="0 0 0"/>
  <default><geom friction="0.8 0.01 0.005"/></default>
  <worldbody>
    <body name="disc"><joint name="y" type="slide" axis="0 1 0"/>
      <joint name="z" type="slide" axis="0 0 1"/><joint name="turn" type="hinge" axis="1 0 0"/>
      <inertial pos="0 0 0" mass="1" diaginertia="0.025 0.025 0.025"/>
      <geom type="sphere" size="0.25"/></body>
    <body pos="0 -0.1 0"><joint name="l1" axis="1 0 0" range="-1.5708 0"/>
      <geom type="sphere" size="0.05" pos="0 -0.1 0"/><geom type="sphere" size="0.05" pos="0 -0.2 0"/>
      <geom type="sphere" size="0.05" pos="0 -0.3 0"/>
      <body pos="0 -0.3 0"><joint name="l2" axis="1 0 0" range="-2.4 0"/>
        <geom type="sphere" size="0.05" pos="0 -0.1 0"/>
        <geom type="sphere" size="0.05" pos="0 -0.2 0"/></body></body>
    <body pos="0 0.1 0"><joint name="r1" axis="1 0 0" range="0 1.5708"/>
      <geom type="sphere" size="0.05" pos="0 0.1 0"/><geom type="sphere" size="0.05" pos="0 0.2 0"/>
      <geom type="sphere" size="0.05" pos="0 0.3 0"/>
      <body pos="0 0.3 0"><joint name="r2" axis="1 0 0" range="0 2.4"/>
        <geom type="sphere" size="0.05" pos="0 0.1 0"/>
        <geom type="sphere" size="0.05" pos="0 0.2 0"/></body></body>
  </worldbody>
  <actuator><position joint="l1" kp="50"/><position joint="l2" kp="25"/>
    <position joint="r1" kp="50"/><position joint="r2" kp="25"/></actuator>
</mujoco>"""

# An actuated finger tip (three slides) that pushes {body} over a plane.
PUSHER = """
<mujoco>
  <option gravity="0 0 -9.81"/>
  <default><geom friction="0.6 0.02 0.01" condim="{condim}"/></default>
  <worldbody>
    <geom name="ground" type="plane" size="1 1 0.1"/>
    <body name="object" pos="0 0 0.1"><freejoint/>{geom}
      <inertial pos="0.01 -0.02 0.005" mass="0.7" fullinertia="0.004 0.005 0.006 0.0003 0.0002 0.0001"/>
    </body>
    <body name="tip" pos="-0.2 0 0.1">
      <joint name="tx" type="slide" axis="1 0 0"/><joint name="ty" type="slide" axis="0 1 0"/>
      <joint name="tz" type="slide" axis="0 0 1" range="-0.06 0.3"/>
      <geom type="sphere" size="0.05" mass="0.2"/></body>
  </worldbody>
  <actuator><position joint="tx" kp="400"/><position joint="ty" kp="400"/>
    <position joint="tz" kp="400" gear="2"/></actuator>
</mujoco>"""

ARM = """
<mujoco>
  <option gravity="0 0 -9.81"/>
  <default><geom friction="0.7 0.02 0.01" condim="{condim}"/></default>
  <worldbody>
    <geom name="ground" type="plane" size="1 1 0.1" pos="0 0 -0.05" euler="3 -2 0"/>
    <body pos="0 0 0.35"><joint name="j1" axis="0 1 0"/>
      <geom type="capsule" size="0.04" fromto="0 0 0 0.3 0 0"/>
      <body pos="0.3 0 0"><joint name="j2" axis="0 1 0" stiffness="3" springref="0.4"/>
        <joint name="j2b" axis="0 0 1" pos="0.02 0 0.01"/>
        <geom type="capsule" size="0.04" fromto="0 0 0 0.25 0 0"/>
        <body pos="0.25 0 0"><joint name="j3" axis="1 0 1" stiffness="8"/>
          <geom type="capsule" size="0.03" fromto="0 0 0 0.1 0.05 0.0"/></body></body></body>
    <body name="rod" pos="0.45 0.02 0.05"><freejoint/>
      <geom type="capsule" size="0.05" fromto="0 -0.15 0 0 0.2 0" mass="0.4"/></body>
  </worldbody>
  <actuator><position joint="j1" kp="120"/><position joint="j2" kp="60"/>
    <position joint="j2b" kp="60"/></actuator>
</mujoco>"""

# A pendulum on a ball joint with hinged tail, actuated and passive DOFs in one tree, and a pusher.
PENDULUM = """
<mujoco>
  <option gravity="0.3 -0.2 -9.81"/>
  <default><geom friction="0.5 0.02 0.01" condim="{condim}"/></default>
  <worldbody>
    <body pos="0 0 0.8"><joint name="slide" type="slide" axis="0.6 0 0.8" stiffness="40"/>
      <joint name="ball" type="ball" pos="0 0 0.05"/>
      <geom type="capsule" size="0.03" fromto="0 0 0 0.05 0 -0.3" mass="0.5"/>
      <body pos="0.05 0 -0.3"><joint name="tail" axis="0 1 0" range="-1 1"/>
        <geom type="box" size="0.08 0.03 0.05" pos="0.02 0 -0.05" mass="0.3"/>
        <body pos="0.02 0 -0.1"><joint name="end" axis="1 0 0"/>
          <geom type="sphere" size="0.04" pos="0 0.01 -0.05" mass="0.1"/></body></body></body>
    <body pos="-0.06 0.01 0.44"><joint name="px" type="slide" axis="1 0 0"/>
      <joint name="py" type="slide" axis="0 1 0"/><joint name="pz" type="slide" axis="0 0 1"/>
      <geom type="sphere" size="0.05" mass="0.2"/></body>
  </worldbody>
  <actuator><position joint="tail" kp="15"/><position joint="px" kp="300"/>
    <position joint="py" kp="300"/><position joint="pz" kp="300"/></actuator>
</mujoco>"""

# A hand on a floating base: actuated fingers behind passive DOFs.
FLOATING = """
<mujoco>
  <option gravity="0 0 -9.81"/>
  <default><geom friction="0.6 0.02 0.01" condim="{condim}"/></default>
  <worldbody>
    <geom type="plane" size="1 1 0.1"/>
    <body name="base" pos="0 0 0.15"><freejoint/><geom type="box" size="0.12 0.1 0.05" mass="1.2"/>
      <body pos="0.1 0.05 0"><joint name="a" axis="0 1 0"/>
        <geom type="capsule" size="0.03" fromto="0 0 0 0.15 0 -0.1" mass="0.2"/></body>
      <body pos="-0.1 0 0"><joint name="b" axis="0 1 0.2"/>
        <geom type="sphere" size="0.04" pos="-0.1 0 -0.1" mass="0.2"/></body></body>
  </worldbody>
  <actuator><position joint="a" kp="30"/><position joint="b" kp="40"/></actuator>
</mujoco>"""


@dataclass(frozen=True)
class Scene:
    model: qdsim.Model
    sample: Callable[[np.random.Generator], tuple[Vector, Vector]]
    """rng -> (q, u): a state near contact, often slightly penetrating."""


def bed_of_spheres(side: int) -> qdsim.Model:
    """side x side spheres of one body, side by side on a plane: as many contacts."""
    spheres = "".join(
        f'<geom type="sphere" size="0.05" mass="0.01" pos="{0.1 * i} {0.1 * j} 0" condim="1"/>'
        for i in range(-(side // 2), side - side // 2)
        for j in range(-(side // 2), side - side // 2)
    )
    return qdsim.load(
        f"""<mujoco><option gravity="0 0 -10"/><worldbody>
        <geom type="plane" size="9 9 1" condim="1"/>
        <body pos="0 0 0.05"><freejoint/>{spheres}</body></worldbody></mujoco>"""
    )


def _around(
    model: qdsim.Model, q0: Vector, spread: Vector, push: float
) -> Callable[..., tuple[Vector, Vector]]:
    def sample(rng: np.random.Generator) -> tuple[Vector, Vector]:
        q = model.integrate(q0, spread * rng.uniform(-1.0, 1.0, model.nv))
        u = model.command_from(q) + push * rng.uniform(-1.0, 1.0, model.nu)
        return q, u

    return sample


def planar_hand() -> Scene:
    model = qdsim.load(PLANAR_HAND)
    q0 = np.array([0.0, 0.33, 0.3, -0.80, -0.72, 0.80, 0.72])
    return Scene(
        model, _around(model, q0, np.array([0.02, 0.02, 1.0, 0.06, 0.06, 0.06, 0.06]), 0.12)
    )


GEOMS = {
    "sphere": '<geom type="sphere" size="0.1"/>',
    "box": '<geom type="box" size="0.12 0.1 0.1"/>',
    "capsule": '<geom type="capsule" size="0.1 0.08" euler="90 20 0"/>',
}


def pusher(shape: str, condim: int = 3) -> Scene:
    model = qdsim.load(PUSHER.format(condim=condim, geom=GEOMS[shape]))
    q0 = np.array(model.default_q)
    q0[model.slice_q("tx")] += 0.06 if shape != "box" else 0.035
    spread = np.concatenate([[0.01, 0.02, 0.004, 0.1, 0.1, 2.0], [0.01, 0.03, 0.05]])
    if shape == "box":
        spread[3:6] = [0.03, 0.03, 0.2]
    return Scene(model, _around(model, q0, spread, 0.05))


def arm(condim: int = 3) -> Scene:
    model = qdsim.load(ARM.format(condim=condim))
    q0 = np.array(model.default_q)
    q0[model.slice_q("j1")] = 0.25
    q0[model.slice_q("j2")] = 0.45
    spread = np.concatenate([[0.1, 0.1, 0.2, 0.3], [0.03, 0.05, 0.02, 0.05, 0.05, 0.3]])
    return Scene(model, _around(model, q0, spread, 0.1))


def pendulum(condim: int = 3) -> Scene:
    model = qdsim.load(PENDULUM.format(condim=condim))
    spread = np.concatenate([[0.05], [0.15, 0.15, 0.6], [0.2, 0.4], [0.04, 0.05, 0.05]])
    return Scene(model, _around(model, np.array(model.default_q), spread, 0.1))


def floating(condim: int = 3) -> Scene:
    model = qdsim.load(FLOATING.format(condim=condim))
    q0 = np.array(model.default_q)
    q0[2] = 0.12
    spread = np.concatenate([[0.1, 0.1, 0.03, 0.1, 0.1, 1.0], [0.3, 0.3]])
    return Scene(model, _around(model, q0, spread, 0.2))


def spatial(condim: int = 3) -> dict[str, Scene]:
    """Every spatial scene, for tests that hold on all of them."""
    return {
        "sphere": pusher("sphere", condim),
        "box": pusher("box", condim),
        "capsule": pusher("capsule", condim),
        "arm": arm(condim),
        "pendulum": pendulum(condim),
        "floating": floating(condim),
    }
