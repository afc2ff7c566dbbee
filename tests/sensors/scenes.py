"""Scenes with sensors, and MuJoCo beside them."""

from __future__ import annotations

import mujoco
import numpy as np

import qdsim

ARM_OVER_BOX = """
<mujoco>
  <option timestep="0.002" cone="elliptic" integrator="Euler" tolerance="1e-15" iterations="500"/>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 .1"/>
    <body name="base" pos="0 0 .5">
      <joint name="j0" type="hinge" axis="0 1 0"/>
      <geom name="g0" type="capsule" fromto="0 0 0 .3 0 0" size=".03" mass="1"/>
      <site name="s0" pos=".1 0 0" euler="10 20 30" type="box" size=".2 .06 .06"/>
      <body name="link" pos=".3 0 0">
        <joint name="j1" type="hinge" axis="0 1 0"/>
        <joint name="j2" type="hinge" axis="1 0 0"/>
        <geom name="g1" type="capsule" fromto="0 0 0 .25 0 -.2" size=".03" mass=".5"/>
        <site name="s1" pos=".02 .01 .03" euler="40 20 -30" type="ellipsoid" size=".3 .2 .3"/>
        <body name="tip" pos=".25 0 -.2">
          <geom name="g2" type="sphere" size=".05" mass=".2"/>
          <site name="s2" type="capsule" size=".03 .02" pos=".02 0 -.03" euler="0 60 0"/>
          <site name="s3" type="cylinder" size=".06 .02" pos="0 .01 -.04"/>
          <site name="s4" type="sphere" size=".03" pos="0 0 -.02"/>
          <site name="s5" type="box" size=".02 .03 .04" pos="0 .03 -.04"/>
        </body>
      </body>
    </body>
    <body name="box" pos=".5 .02 .06">
      <freejoint/>
      <geom name="gb" type="box" size=".1 .08 .06" mass=".7"/>
      <site name="sb" type="sphere" size=".1"/>
    </body>
    <body name="rod" pos="-.3 0 .03" euler="0 90 20">
      <freejoint/>
      <geom name="gr" type="capsule" size=".03 .1" mass=".4"/>
      <site name="sr" type="cylinder" size=".05 .2"/>
    </body>
  </worldbody>
  <actuator><motor joint="j0"/><motor joint="j1"/></actuator>
  <sensor>
    <touch name="t0" site="s0"/><touch name="t1" site="s1"/><touch name="t2" site="s2"/>
    <touch name="t3" site="s3"/><touch name="t4" site="s4"/><touch name="t5" site="s5"/>
    <touch name="tb" site="sb"/><touch name="tr" site="sr"/>
    <force name="f0" site="s0"/><torque name="m0" site="s0"/>
    <force name="f1" site="s1"/><torque name="m1" site="s1"/>
    <force name="f2" site="s2"/><torque name="m2" site="s2"/>
    <force name="fb" site="sb"/><torque name="mb" site="sb"/>
    <jointpos joint="j0"/><accelerometer site="s1"/>
    <contact name="c0" geom1="gb" data="found force torque dist pos normal tangent" num="6"/>
    <contact name="c1" geom2="gb" data="found force pos normal tangent" num="3" reduce="maxforce"/>
    <contact name="c2" body1="tip" body2="box" data="found force torque pos" reduce="netforce"/>
    <contact name="c3" body1="box" body2="world" data="found force torque dist pos normal tangent" reduce="netforce"/>
    <contact name="c4" subtree1="base" geom2="gb" data="found force dist" num="4" reduce="mindist"/>
    <contact name="c5" site="sb" data="found force" num="2"/>
    <contact name="c6" data="found"/>
    <contact name="c7" body1="rod" data="found force normal tangent" num="3" reduce="maxforce"/>
    <contact name="c8" body1="rod" body2="box" data="found"/>
  </sensor>
</mujoco>
"""

TWO_LOOPS = """
<mujoco>
  <option timestep="0.002" cone="elliptic" integrator="Euler" tolerance="1e-15" iterations="500"/>
  <worldbody>
    <body name="a" pos="0 0 .5">
      <joint type="hinge" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 .3 0 0" size=".03" mass="1"/>
      <site name="sa" pos=".1 0 0" euler="10 20 30"/>
      <body name="b" pos=".3 0 0">
        <joint type="ball"/>
        <geom type="capsule" fromto="0 0 0 .25 0 -.2" size=".03" mass=".5"/>
        <site name="sb" pos=".02 .01 .03" euler="40 20 -30"/>
      </body>
    </body>
    <body name="c" pos="0 .2 .5">
      <joint type="hinge" axis="0 1 1"/>
      <geom type="capsule" fromto="0 0 0 .3 0 0" size=".03" mass=".6" contype="0" conaffinity="0"/>
      <site name="sc" pos=".1 0 0"/>
      <body name="d" pos=".3 0 0" gravcomp="1">
        <joint type="slide" axis="1 0 .2"/>
        <geom type="box" size=".03 .04 .05" mass=".3" contype="0" conaffinity="0"/>
        <site name="sd" euler="0 0 40"/>
      </body>
    </body>
    <body name="free" pos=".6 .3 .5"><freejoint/><geom type="box" size=".03 .04 .05" mass=".3" contype="0" conaffinity="0"/></body>
  </worldbody>
  <equality>
    <connect body1="b" body2="d" anchor=".1 .2 .1"/>
    <connect body1="free" body2="c" anchor="0 0 .1"/>
  </equality>
  <sensor>
    <force name="fa" site="sa"/><torque name="ma" site="sa"/><force name="fb" site="sb"/><torque name="mb" site="sb"/>
    <force name="fc" site="sc"/><torque name="mc" site="sc"/><force name="fd" site="sd"/><torque name="md" site="sd"/>
  </sensor>
</mujoco>
"""


class Beside:
    """A file in MuJoCo and here, stepped from the same states by MuJoCo's law."""

    def __init__(self, xml: str) -> None:
        self.theirs = mujoco.MjModel.from_xml_string(xml)
        self.data = mujoco.MjData(self.theirs)
        self.model = qdsim.load(xml)
        self.options = qdsim.DynamicOptions(contacts="mujoco", h=self.theirs.opt.timestep)

    def step(self, wrench: np.ndarray | None = None) -> tuple[dict[str, np.ndarray], bool]:
        """Values of our sensors in the step that MuJoCo takes next, and whether both have the same contacts and end."""
        data, model = self.data, self.model
        q = data.qpos.copy()
        v = model.from_mujoco_qvel(q, data.qvel.copy())
        step = qdsim.step_dynamic(model, q, v, data.ctrl, self.options, wrench=wrench)
        if wrench is not None:
            data.xfrc_applied[:] = wrench
        values = qdsim.read_sensors(model, q, step, v=v, wrench=wrench)
        mujoco.mj_step(self.theirs, data)
        same = np.count_nonzero(step.contacts["dist"] <= 0.0) == data.ncon
        return values, same and bool(np.abs(step.q_next - data.qpos).max() < 1e-9)
