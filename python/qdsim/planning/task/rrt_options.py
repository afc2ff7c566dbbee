"""What a planner may be told."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

from qdsim.arguments import fields, flag, former, integer, number, numbers, one_of
from qdsim.planning.task.motion_options import MotionOptions
from qdsim.smoothing import Scheme

__all__ = ["RRTOptions"]

Strategy = Literal["chain", "published"]
Dynamics = Literal["exact", "smoothed"]


@former(
    removed={
        "kappa": "give a scheme, smoothing=qdsim.smoothing.Analytic(kappa)",
        "between_probability": "the chaining strategy has a half, the published one none",
        "rotation_length": "give the task another length; the published strategy has 1 m",
        "progress": "a push counts if the distance to the subgoal falls by a hundredth",
        "shots": "where a push does not count, eight random inputs are tried",
        "shot_spread": "they spread as far as the direction of least squares is long",
        "regrasps": "an iteration makes at most three",
        "grasps": "eight contact samples are tried for a new grasp",
        "contact_tolerance": "grasps are changed where nothing penetrates by more than 1e-6 m",
    }
)
@dataclasses.dataclass(frozen=True)
class RRTOptions:
    """Settings of :func:`qdsim.planning.rrt`.

    The defaults are those of the chaining strategy; ``RRTOptions.published()`` gives the structure
    of CQDC Alg. 2 and 3 with the constants of the authors' planar hand script.

    Attributes:
        strategy: ``"chain"`` pushes towards one subgoal for as long as that brings the object
            nearer, then tries random inputs, then a new grasp, and goes on to the same subgoal.
            ``"published"`` takes one step an iteration, or samples a contact with
            ``grasp_probability``.
        max_nodes: the tree ends at this many nodes.
        max_iterations: and after this many subgoals,
        max_steps: and after the iteration in which the simulator has taken this many steps; None: any
            number.
        max_idle: and after this many subgoals in a row that added no node: no push helps and the sampler finds no
            grasp, as where the robot does not reach the object. Searches that got anywhere had at most some 20. None:
            any number.
        restart: nodes after which the search begins anew at the start, times Luby's sequence 1 1 2 1 1 2 4
            ...: a tree that went astray is left alone. None: one tree.
        goal_probability: how often the subgoal is the goal. Half of the other ones of the chaining strategy lie
            between the node nearest to the goal and the goal, the rest anywhere in the task's box.
        gamma: regularisation of the metric (CQDC eq. 45), m^2.
        step: longest change of the command on one edge, in the units of the command.
        dynamics: ``"exact"`` steps (CQDC Alg. 3), or the ``"smoothed"`` ones at :attr:`kappa` that the
            authors' released planner takes. Joint limits bound the commands in both, the steps
            themselves only where they are exact.
        sub_steps: steps of ``task.options.h`` on one edge; the command moves along a ramp.
        smoothing: a scheme of ``qdsim.smoothing`` for metric and inputs: ``Analytic(kappa)``, ``Exact()``, or
            ``Randomized(...)``, which draws its samples by the number of the node. None: the log barrier at 100/J.
        metric: "local", the Mahalanobis metric of CQDC §VI, or "global", the plain distance between
            poses with rotations scaled to length (CQDC's ablation). A radian counts for the task's
            ``length``, in the published strategy for one metre.
        grasp_probability: published strategy: how often an iteration samples a contact.
        chain_length: chain: most pushes in a row.
        squeeze: how much of a push's pressure the next push begins with: the nominal command of a node is where
            the push before commanded the robot to, at most ``squeeze * step`` away from where the robot is. What
            is held against gravity stays held. With 0 it is where the robot is (CQDC).
        hold: where gravity would take the object, prefer contact samples whose forces can hold it
            (:func:`qdsim.planning.holding_command`), and begin with the command
            that does, as far as ``squeeze`` lets it. With False they are taken as they come (CQDC).
        require_static_regrasps: change a grasp only where the object stays where it is without the robot
            (:func:`qdsim.planning.is_stable`); without gravity it always does. CQDC ignores gravity there; with False
            most regrasps of a plate or of a box between two arms drop it, and ``Plan.check`` says so. The chaining
            strategy sets down what hangs before it takes hold elsewhere, and for a goal in the air takes grasps where
            the object rests below it.
        motion_seconds: keep only grasps that the robot can get to from where it is: that
            :func:`qdsim.planning.connect` finds a collision-free motion to, with at most this many seconds
            for OMPL where the straight line is not free. Some tens of milliseconds a grasp; trees are the
            same for the same seed unless a search runs out of time. None: not asked (CQDC), and some regrasps
            of a plan may be shut in.
        force: N or Nm at the joint, the hardest that an actuator may pull at the end of a step of an edge, one number
            or one per actuator: there the edge ends.
            The quasi-dynamic object bears any squeeze, others are shot out. None: any.
        certify: keep only pushes that end as planned in second-order roll-outs at the pace of an execution, with
            friction and the object's mass off by up to 30 %, as ``Plan.check`` looks at them.
    """

    strategy: Strategy = "chain"
    max_nodes: int = 4000
    max_iterations: int = 20000
    max_steps: int | None = None
    max_idle: int | None = 200
    restart: int | None = 400
    goal_probability: float = 0.3
    gamma: float = 1e-4
    step: float = 0.5
    dynamics: Dynamics = "exact"
    sub_steps: int = 4
    smoothing: Scheme | None = None
    metric: Literal["local", "global"] = "local"
    grasp_probability: float = 0.3
    chain_length: int = 10
    squeeze: float = 0.5
    force: float | tuple[float, ...] | None = None
    hold: bool = True
    require_static_regrasps: bool = True
    motion_seconds: float | None = None
    certify: bool = False

    def __post_init__(self) -> None:
        fields(self, one_of, "strategy", allowed=("chain", "published"))
        fields(self, one_of, "dynamics", allowed=("exact", "smoothed"))
        fields(self, one_of, "metric", allowed=("local", "global"))
        if self.smoothing is not None and not hasattr(self.smoothing, "linearize"):
            raise TypeError(
                f"smoothing: expected a scheme or None, got {type(self.smoothing).__name__}"
            )
        counts = ("max_nodes", "max_iterations", "sub_steps", "chain_length")
        fields(self, integer, *counts, least=1)
        fields(self, integer, "max_steps", "max_idle", "restart", least=1, or_none=True)
        fields(self, number, "goal_probability", "grasp_probability", least=0, most=1)
        fields(self, number, "gamma", "step", above=0)
        fields(self, number, "squeeze", least=0)
        fields(self, number, "motion_seconds", above=0, or_none=True)
        fields(self, numbers, "force", per="actuator", above=0, or_none=True)
        fields(self, flag, "hold", "require_static_regrasps", "certify")

    @classmethod
    def published(cls, **changes: Any) -> RRTOptions:
        """One step an iteration and a grasp probability (CQDC Alg. 2 and 3).

        Args:
            **changes: fields that differ from the published settings.
        """
        settings: dict[str, Any] = {
            "strategy": "published",
            "step": 0.35,
            "sub_steps": 1,
            "restart": None,
            "squeeze": 0.0,
            "hold": False,
            "require_static_regrasps": False,
        }
        return cls(**(settings | changes))

    @property
    def kappa(self) -> float:
        """Log-barrier weight of smoothed steps, 1/J: that of the scheme, 100 for schemes without."""
        return getattr(self.smoothing, "kappa", None) or 100.0

    @property
    def motion_options(self) -> MotionOptions | None:
        """What motions to new grasps are asked for, None if they are not."""
        if self.motion_seconds is None:
            return None
        return MotionOptions(time_limit=self.motion_seconds)

    def replace(self, **changes: Any) -> RRTOptions:
        """The same options with some changed.

        Args:
            **changes: fields and their new values.
        """
        return dataclasses.replace(self, **changes)
