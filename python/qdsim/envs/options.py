"""Options of environments."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, get_args

from qdsim.arguments import fields, integer, number, one_of
from qdsim.description.sensors import Sensor
from qdsim.dynamics import DynamicOptions
from qdsim.envs.draws import Draw, check_draw
from qdsim.envs.laws import Contacts, Dynamics, checked_contacts

__all__ = ["EnvOptions"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class EnvOptions:
    """How a task becomes an environment.

    Attributes:
        action: "push": the move of the planners: parameters of the task's sampler, which places the
            robot at the object, then a change of the command (or a stroke, if the sampler has
            strokes), ramped over `sub_steps`. "command": a bounded change of the command: ``u =
            command at q + scale * action``, within the task's bounds.
        scale: of a change of the command, rad or m (times the gear); None: the step of the task's
            planner, or 0.2.
        sub_steps: number of steps for which an action is held, or over which a push is ramped;
            None: 4 for a push, 1 for a command.
        horizon: number of actions after which an episode is truncated; None: 40 pushes, 64
            commands.
        start: "grasp": the object anywhere in the task's box with the robot at it, drawn from a
            pool; "task": the task's own start.
        goal: "random": anywhere in the task's box; "task": the task's own.
        observation: "flat": one array, with the goal relative to the object; "goal": the dictionary
            of gymnasium-robotics' GoalEnv, {"observation", "achieved_goal", "desired_goal"}, with
            goals as in `GoalCoordinates`.
        reward: "shaped": the change of a potential, with the terms below; "sparse": 0 at the goal,
            -1 elsewhere; "dense": the potential itself, without the robot. The last two depend only
            on the object's pose and its goal; an end without the goal costs as much as a whole
            episode. None: "shaped" for flat observations, "sparse" for goals.
        near: half of the random goals are only the share ``U ** near`` of the way to a random pose,
            U uniform in [0, 1); None: all are anywhere.
        pool: number of starts, which are drawn once, when first needed.
        push_cost, failure: subtracted from shaped rewards (>= 0): for every push, and for losing
            the object or a failed step. Reaching the goal gives 5.
        lost: distance from the task's start at which the object counts as lost, m; None: the
            diagonal of the task's box plus four of its `length`.
        randomize: from names of `model.parameters` to distributions per episode: (low, high),
            factors on the model's values, or a `Range` of values; and from "position_noise" (m),
            "rotation_noise" (rad) and "delay" (whole actions) to a `Range`: standard deviations of
            the observed pose of the object, drawn anew with every action, and the age of
            observations. Rewards and achieved goals stay exact.
        contacts: "rigid" or "mujoco", in place of the task's `Options.contacts` (None keeps these),
            or `MujocoContacts`, with other numbers than the file's; with several, each episode
            draws one with equal probability. With "mujoco" contacts yield, and creep under load, as
            MuJoCo's do by default; friction then has cones, whatever the task's options are.
        dynamics: "quasi_dynamic", or "second_order": robot and object have velocities, and each of
            the `sub_steps` commands is held for the time step of the task, by several calls of
            `step_dynamic`, of 10 ms each, or with MuJoCo's contacts of the file's time step, each
            one `mj_step`. They have the task's options as far as `DynamicOptions` has them; or give
            `DynamicOptions`. A push begins at rest; with commands, observations contain velocities
            times the task's time step.
        sensors: names of sensors of the task's model, or sensors (`qdsim.sensors`), whose values
            come last in observations: those of a step from the state after the action, with its
            command held. In a plant they are the model's at the measured state.
        threads: number of threads of the core.

    Raises:
        TypeError, ValueError: if a field is invalid; the message names it.
    """

    action: Literal["push", "command"] = "push"
    scale: float | None = None
    sub_steps: int | None = None
    horizon: int | None = None
    start: Literal["grasp", "task"] = "grasp"
    goal: Literal["random", "task"] = "random"
    observation: Literal["flat", "goal"] = "flat"
    reward: Literal["shaped", "sparse", "dense"] | None = None
    near: float | None = None
    pool: int = 1024
    push_cost: float = 0.05
    failure: float = 2.0
    lost: float | None = None
    randomize: Mapping[str, Draw] = dataclasses.field(default_factory=dict)
    contacts: Contacts | Sequence[Contacts] | None = None
    dynamics: Dynamics = "quasi_dynamic"
    sensors: Sequence[str | Sensor] = ()
    threads: int = 1

    def __post_init__(self) -> None:
        fields(self, one_of, "action", allowed=("push", "command"))
        fields(self, one_of, "start", allowed=("grasp", "task"))
        fields(self, one_of, "goal", allowed=("random", "task"))
        fields(self, one_of, "observation", allowed=("flat", "goal"))
        if self.reward is None:
            object.__setattr__(self, "reward", "shaped" if self.observation == "flat" else "sparse")
        fields(self, one_of, "reward", allowed=("shaped", "sparse", "dense"))
        if self.observation == "goal" and self.reward == "shaped":
            raise ValueError(
                "reward: expected 'sparse' or 'dense' with observation='goal', got 'shaped', which depends on two steps"
            )
        fields(self, number, "scale", "lost", "near", above=0, or_none=True)
        fields(self, integer, "sub_steps", "horizon", least=1, or_none=True)
        fields(self, integer, "pool", "threads", least=1)
        fields(self, number, "push_cost", "failure", least=0)
        object.__setattr__(self, "contacts", checked_contacts(self.contacts))
        if not isinstance(self.dynamics, DynamicOptions):
            fields(self, one_of, "dynamics", allowed=("quasi_dynamic", "second_order"))
        elif self.dynamics.patch_law == "bristle":
            raise ValueError(
                "dynamics: patch_law='bristle' has a state that environments do not keep"
            )
        object.__setattr__(self, "sensors", _checked_sensors(self.sensors))
        if not isinstance(self.randomize, Mapping):
            raise TypeError(
                f"randomize: expected a mapping from names to factors or ranges, got {type(self.randomize).__name__}"
            )
        for name, draw in self.randomize.items():
            check_draw(name, draw)
        object.__setattr__(self, "randomize", dict(self.randomize))


def _checked_sensors(given: object) -> tuple[str | Sensor, ...]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise TypeError(f"sensors: expected names or sensors, got {type(given).__name__}")
    found = tuple(given)
    for i, sensor in enumerate(found):
        if not isinstance(sensor, (str, *get_args(Sensor))):
            raise TypeError(
                f"sensors[{i}]: expected a name or a sensor, got {type(sensor).__name__}"
            )
    return found
