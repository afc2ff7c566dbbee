"""How a plan is executed: options of every world and way."""

from __future__ import annotations

import dataclasses
from typing import Literal

from qdsim.arguments import fields, flag, former, integer, number, numbers, one_of

__all__ = ["TransferOptions"]


@former(
    removed={
        "damping_ratio": "the joint springs are damped critically",
        "shift_grasps": "grasps are moved with the object wherever it carries on",
    }
)
@dataclasses.dataclass(frozen=True, kw_only=True)
class TransferOptions:
    """How a plan is executed.

    Attributes:
        speed: m/s, that commands move the parts of the robot with at most, be it an arm or a finger.
        timestep: of the second-order simulator, s.
        control_period: of a controller, s; a grip has its own (`GripOptions.period`).
        settle: s that the last command is held at the end of every segment.
        support_friction: coefficient of the friction between an object and the plane it lies on, where gravity
            does not act along the object's slides (planar systems seen from above), whose plane is not part
            of the model. The object then slides along the mass matrix's ellipsoid of friction: pushed by
            forces ``f`` it moves along ``M^-1 f``, as in the quasi-dynamic model, and needs
            ``support_friction m g`` for that. Without effect on other objects.
        object_damping: viscous resistance of the object's coordinates, N s/m and Nm s/rad; a number for all or one
            for each. (Of the published planar systems the box that is pushed has 100 for each, others none.)
        carry_on: True: an execution from start to end; the object goes from segment to segment as it is, and grasps and
            commands are moved with it from where it was planned to where it is. False:
            CQDC's measure (its section IX); every segment begins as planned, and is judged by itself.
        motions: where the object carries on, the robot goes from grasp to grasp as a robot does: it lets the
            springs go, follows a collision-free motion planned from where everything is, and may touch the object on
            the way. Where no such motion is found the execution ends, or plans anew. False: the robot is set to the
            next grasp, which no robot can do.
        contacts: ``"stiff"``: time constant of four time steps (2 ms at least), elliptic cones, friction ten times as
            stiff as normals. ``"soft"``: the same with MuJoCo's 20 ms, so that fingers sink into objects by up to a
            millimetre.
            ``"default"``: as MuJoCo has them unless told otherwise, with pyramids and friction no stiffer than
            normals besides; there what friction carries sinks, a ball of 1 kg between fingertips by 20 to 50 mm a
            second (``R f / b`` of MuJoCo's contacts), so that lifts do not arrive.
        force: N or Nm at the joint, what an actuator pulls with at most, one number or one per actuator; None: any.
        press: springs of a robot that follows a plan by iMPC press with at most so many times the object's weight;
            None: 8 where it lies on a plane that is not part of the model, else 2.
        position_noise, rotation_noise: standard deviations of where the object begins with respect to the plan,
            m and rad; of every segment that begins as planned.
        seed: of this noise, and of plans that are made on the way.
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
