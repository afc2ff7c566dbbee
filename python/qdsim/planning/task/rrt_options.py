"""Options of the planner."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

from qdsim.arguments import fields, flag, integer, number, numbers, one_of
from qdsim.planning.task.motion_options import MotionOptions
from qdsim.planning.task.settings import Settings
from qdsim.smoothing import Scheme

__all__ = ["RRTOptions"]

Strategy = Literal["chain", "published"]
Dynamics = Literal["exact", "smoothed"]


@dataclasses.dataclass(frozen=True)
class RRTOptions(Settings):
    """Settings of :func:`qdsim.planning.rrt`.

    The defaults are those of the chaining strategy; ``RRTOptions.published()`` gives the structure
    of CQDC Alg. 2 and 3 with the constants of the authors' planar hand script.

    Attributes:
        strategy: ``"chain"`` pushes towards one subgoal while that brings the object nearer, then
            tries random inputs, then a new grasp, and continues towards the same subgoal.
            ``"published"`` takes one step per iteration, or samples a contact with
            ``grasp_probability``.
        max_nodes: largest number of nodes.
        max_iterations: largest number of subgoals.
        max_steps: the search ends after the iteration that reaches this number of steps of the
            simulator; None: no limit.
        max_idle: largest number of subgoals in a row that add no node (no push helps and the
            sampler finds no grasp, for example because the robot does not reach the object); None:
            no limit.
        restart: number of nodes after which the search starts again, times Luby's sequence 1 1 2 1
            1 2 4 ...: an unlucky tree is abandoned. None: one tree.
        goal_probability: probability that the subgoal is the goal. In the chaining strategy, half
            of the other subgoals lie between the goal and the node nearest to it, the rest anywhere
            in the task's box.
        gamma: regularisation of the metric (CQDC eq. 45), m^2.
        step: longest change of the command on one edge, in the units of the command.
        dynamics: ``"exact"`` steps (CQDC Alg. 3), or ``"smoothed"`` ones at :attr:`kappa` as in the
            authors' released planner. Joint limits bound the commands in both cases, and the steps
            only if they are exact.
        sub_steps: number of steps of ``task.options.h`` on one edge; the command moves along a
            ramp.
        smoothing: a scheme of ``qdsim.smoothing`` for metric and inputs: ``Analytic(kappa)``,
            ``Exact()``, or ``Randomized(...)``, which draws its samples by the number of the node.
            None: the log barrier at 100/J.
        metric: ``"local"``: the Mahalanobis metric of CQDC §VI; ``"global"``: the plain distance
            between poses with rotations scaled to length (CQDC's ablation). A radian counts as the
            task's ``length``, in the published strategy as one metre.
        grasp_probability: published strategy: probability that an iteration samples a contact.
        chain_length: chaining strategy: largest number of pushes in a row.
        squeeze: share of a push's pressure with which the next push begins. The nominal command of
            a node is the last command of the push that leads to it, at most ``squeeze * step`` away
            from the robot's position, so that an object held against gravity stays held. With 0 it
            is the robot's position (CQDC).
        hold: if gravity acts on the object, prefer grasps whose forces can hold it
            (:func:`qdsim.planning.holding_command`), and begin with the holding command, as far as
            ``squeeze`` allows. If False, any grasp is taken (CQDC).
        require_static_regrasps: regrasp only where the object stays in place without the robot
            (:func:`qdsim.planning.is_stable`); without gravity it always does. CQDC ignores gravity
            here; with False, most regrasps of a plate or of a box between two arms drop the object,
            which ``Plan.check`` reports. The chaining strategy sets a held object down before a
            regrasp, and for a goal in the air takes grasps where the object rests below the goal.
        motion_seconds: keep only grasps that the robot can reach by a collision-free motion
            (:func:`qdsim.planning.connect`), with at most this many seconds of OMPL if the straight
            line is blocked. Trees are the same for the same seed unless a search runs out of time.
            None: not checked (CQDC), so some regrasps of a plan may be impossible.
        force: largest force of an actuator at the end of a step, N or Nm at the joint, one number
            or one per actuator: an edge ends where it would be exceeded. (In the quasi-dynamic
            model an object bears any squeeze; a real object is shot out.) None: no limit.
        certify: keep only pushes that end as planned in second-order rollouts at the speed of an
            execution, with errors of up to 30 % in friction and in the object's mass, as in
            ``Plan.check``.
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
        """Return the published settings: one step per iteration and a probability of grasps (CQDC Alg. 2 and 3).

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
        """Options of motions to new grasps; None if these are not checked."""
        if self.motion_seconds is None:
            return None
        return MotionOptions(time_limit=self.motion_seconds)
