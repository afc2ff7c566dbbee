"""A pusher in front of a ball on a rail, which rolls on for as long as the rail's damping lets it."""

from __future__ import annotations

import numpy as np

import qdsim
from qdsim.planning import Task

PERIOD = 0.1

_RAIL = """
<mujoco>
  <option gravity="0 0 0"/>
  <worldbody>
    <body name="pusher">
      <joint name="push" type="slide" axis="1 0 0" range="-1 1" damping="20"/>
      <geom type="sphere" size="0.05" mass="1"/>
    </body>
    <body name="ball" pos="0.12 0 0">
      <joint name="rail" type="slide" axis="1 0 0" damping="{}"/>
      <geom type="sphere" size="0.05" mass="0.2"/>
    </body>
  </worldbody>
  <actuator><position joint="push" kp="400"/></actuator>
</mujoco>
"""


def rail_text(damping: float = 1.0) -> str:
    """Return the scene with a damping of the rail, N s/m."""
    return _RAIL.format(damping)


def rail(goal: float = 0.2, tolerance: float = 0.01, damping: float = 1.0) -> Task:
    """Return the task to push the ball along by ``goal``, m."""
    model = qdsim.load(rail_text(damping))
    q = model.default_q
    return Task(
        name="push the ball along",
        model=model,
        options=qdsim.Options(h=PERIOD, margin=0.5),
        start=q,
        goal=q + np.array([0.0, goal]),
        object="ball",
        lower=np.array([-2.0]),
        upper=np.array([2.0]),
        length=0.1,
        position_tolerance=tolerance,
    )
