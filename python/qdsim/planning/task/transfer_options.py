"""Options of the execution of plans."""

from __future__ import annotations

import dataclasses
from typing import Literal

from qdsim.arguments import fields, flag, integer, number, numbers, one_of
from qdsim.planning.task.settings import Settings

__all__ = ["TransferOptions"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class TransferOptions(Settings):
    """Settings of an execution: the simulated world, and the speed of the commands.

    Attributes:
        speed: largest speed at which commands move a link of the robot, m/s.
        timestep: time step of the second-order simulator, s.
        control_period: period of a controller, s; a grip has its own (`GripOptions.period`).
        settle: time for which the last command is held at the end of every segment, s.
        support_friction: friction coefficient between an object and the plane on which it lies, if
            this plane is not part of the model (gravity then acts along no slide of the object, as
            in planar systems seen from above). The object slides along the friction ellipsoid of
            the mass matrix: forces ``f`` move it along ``M^-1 f``, as in the quasi-dynamic model,
            if they exceed ``support_friction m g``. No effect on other objects.
        object_damping: viscous damping of the object's coordinates, N s/m and Nm s/rad; one number
            or one per coordinate. (Of the published planar systems, the pushed box has 100 for
            each coordinate, the others have none.)
        carry_on: True: one execution from start to end. The object keeps its actual pose from
            segment to segment, and grasps and commands are moved with it from its planned to its
            actual pose. False: the measure of CQDC, section IX; every segment begins as planned
            and is judged separately.
        motions: with ``carry_on``, whether the robot moves from grasp to grasp: it releases its
            springs and follows a collision-free motion that is planned from the actual
            configuration. It may touch the object on the way. If no motion is found, the execution
            ends or makes a new plan. False: the robot is placed at the next grasp, which a real
            robot cannot do.
        contacts: ``"stiff"``: a time constant of four time steps (at least 2 ms), elliptic cones,
            friction ten times as stiff as normals. ``"soft"``: the same with MuJoCo's time constant
            of 20 ms, so that fingers sink into objects by up to a millimetre. ``"default"``:
            MuJoCo's defaults, with pyramids and with friction as stiff as normals. Objects that
            friction carries then sink, a ball of 1 kg between fingertips by 20 to 50 mm per second
            (``R f / b`` of MuJoCo's contacts), and leave fingers that lift them, unless they are
            tall or light.
        force: largest force of an actuator at its joint, N or Nm, one number or one per actuator;
            None: no limit.
        press: largest force with which the springs of a robot that follows a plan by iMPC press, as
            a multiple of the object's weight; None: 8 for an object on a plane that is not part of
            the model, else 2.
        position_noise, rotation_noise: standard deviations of the object's initial pose relative to
            the plan, m and rad; for every segment that begins as planned.
        seed: seed of this noise, and of plans that are made during an execution.
    """

    speed: float = 0.1
    timestep: float = 5e-4
    control_period: float = 0.05
    settle: float = 0.5
    support_friction: float = 0.5
    object_damping: float | tuple[float, ...] = 0.0
    contacts: Literal["stiff", "soft", "default"] = "stiff"
    force: float | tuple[float, ...] | None = None
    carry_on: bool = True
    motions: bool = True
    press: float | None = None
    position_noise: float = 0.0
    rotation_noise: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        fields(self, number, "speed", "timestep", "control_period", above=0)
        fields(self, number, "press", above=0, or_none=True)
        fields(self, one_of, "contacts", allowed=("stiff", "soft", "default"))
        fields(self, numbers, "force", per="actuator", above=0, or_none=True)
        fields(
            self, number, "settle", "support_friction", "position_noise", "rotation_noise", least=0
        )
        fields(self, numbers, "object_damping", per="coordinate", least=0)
        fields(self, integer, "seed", least=0)
        fields(self, flag, "carry_on", "motions")
        if self.control_period < self.timestep:
            raise ValueError("control_period: shorter than timestep")
