"""Settings of environments."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, get_args

from qdsim.arguments import fields, former, integer, number, one_of
from qdsim.description.sensors import Sensor
from qdsim.dynamics import DynamicOptions
from qdsim.envs.draws import Draw, check_draw
from qdsim.envs.laws import Contacts, Dynamics, checked_contacts

__all__ = ["EnvOptions"]


@former(
    removed={
        "pool_seed": "starts are those of one pool",
        "success": "reaching the goal brings 5; scale the other rewards",
        "reach": "the robot's distance from the object counts as much as the object's from the goal",
    }
)
@dataclasses.dataclass(frozen=True, kw_only=True)
class EnvOptions:
    """How a task becomes an environment.

    Attributes:
        action: "push": the planners' own move. Parameters of the task's sampler, which puts the
            robot at the object, then a change of the command (a stroke, where the sampler has
            those), ramped over `sub_steps`. "command": the robot where it is, plus a bounded
            change: ``u = command at q + scale * action``, within the task's bounds.
        scale: of a change of the command, rad or m (times the gear); None: the planner's own step, 0.2 without one.
        sub_steps: steps that one action is held for, or a push is ramped over; None: 4 of a push, 1 of a command.
        horizon: actions until an episode is truncated; None: 40 pushes, 64 commands.
        start: "grasp": the object anywhere in the task's box with the robot at it, drawn from a
            pool; "task": the task's own start.
        goal: "random": anywhere in the task's box; "task": the task's own.
        observation: "flat": one array, with the goal as the object sees it; "goal": the dictionary of gymnasium-robotics'
            GoalEnv, {"observation", "achieved_goal", "desired_goal"}, with goals as `GoalCoordinates` has them.
        reward: "shaped": the change of a potential, and what follows below; "sparse": 0 at the goal, -1 elsewhere;
            "dense": the potential itself, without the robot. The last two are functions of where the object is and
            should be, and an end without the goal costs as much as a whole horizon there. None: "shaped" of flat
            observations, "sparse" of goals.
        near: half of the random goals are only a share of the way off, ``U ** near`` with U uniform in [0, 1); None:
            all are anywhere.
        pool: starts that are drawn once, when they are first needed.
        push_cost, failure: taken off shaped rewards (>= 0): of every push, and for losing the object or failing a step.
            Reaching the goal brings 5.
        lost: m from the task's start, where the object counts as lost; None: the diagonal of the task's box and four of
            its `length` more.
        randomize: from names of `model.parameters` to what each episode draws: (low, high), factors on the model's
            values, or a `Range` of values in their place; and of "position_noise" (m), "rotation_noise" (rad) and
            "delay" (whole actions) a `Range`: standard deviations of where the object is seen to be, anew with every
            action, and how old observations are. Rewards and goals that were reached stay exact.
        contacts: "rigid" or "mujoco", in place of the task's own `Options.contacts` (None keeps those), or
            `MujocoContacts`, with other numbers than the file's; several, of which each episode draws one, all equally
            likely. With "mujoco" contacts yield, and creep under load, as MuJoCo's do by default; friction is that of
            cones then, whatever the task's options say.
        dynamics: "quasi_dynamic", or "second_order": the robot and the object have velocities, and each of the
            `sub_steps` commands is held for the task's step through several steps of `step_dynamic`, of 10 ms, with
            MuJoCo's contacts of the file's time step, as one `mj_step` each. They have the task's options as far as
            `DynamicOptions` has them; `DynamicOptions` instead of the word: those. A push begins at rest; for commands
            observations have velocities, times the task's step.
        sensors: names of sensors of the task's model, or sensors (`qdsim.sensors`), whose values come last in
            observations: those of a step from where the action has led, with its command held. In a plant they are the
            model's at the measured state.
        threads: of the core.

    Raises:
        TypeError, ValueError: naming the field and what was wrong with it.
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
