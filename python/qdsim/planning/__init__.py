"""Planning and control through contact.

:func:`rrt`, :func:`impc`, :func:`gait` and :func:`roadmap` find plans for a :class:`Task`. :meth:`Plan.check` checks a
plan before its execution. :func:`transfer` executes a plan in a simulator and reports where the object ends.
:class:`Executor` brings an object to its goal in a simulator or on a robot, with or without a plan. :class:`Mpc` and
:class:`SamplingMpc` are model-predictive controllers: they compute one command at a time from the measured state.

CQDC is Pang, Suh, Yang and Tedrake 2023, "Global Planning for Contact-Rich Manipulation via Local Smoothing
of Quasi-dynamic Contact Models".
"""

from qdsim.planning.drawing import pictures as pictures
from qdsim.planning.execution.executed_motion import ExecutedMotion
from qdsim.planning.execution.executor import Executor
from qdsim.planning.execution.executor_options import ExecutorOptions
from qdsim.planning.execution.executor_report import EdgeReport, ExecutorReport, ExecutorState
from qdsim.planning.execution.loops.stabilizer import Stabilizer
from qdsim.planning.execution.pacing import paced
from qdsim.planning.execution.robot_interface import Robot
from qdsim.planning.execution.strokes import GaitOptions, Stroke, StrokePlanner, gait
from qdsim.planning.execution.transfer import (
    SegmentTransfer,
    Transfer,
    TransferOptions,
    gentle,
    second_order,
    transfer,
)
from qdsim.planning.execution.world import PlantError
from qdsim.planning.grasps import samplers as samplers
from qdsim.planning.grasps.closing import Closing, close_grasp
from qdsim.planning.grasps.equilibrium import (
    EquilibriumError,
    ForceClosure,
    Holding,
    force_closure,
    holding_command,
)
from qdsim.planning.grasps.grip import Grip, GripOptions, GripStep
from qdsim.planning.grasps.inverse_kinematics import PointReach, reach_point
from qdsim.planning.grasps.resting import drop, is_stable
from qdsim.planning.grasps.samplers import (
    BoxFaceSampler,
    BoxSideSampler,
    ClosingSampler,
    ContactSampler,
    PlanarHandSampler,
    SurfaceSampler,
)
from qdsim.planning.motion.motion import (
    Motion,
    MotionError,
    connect,
)
from qdsim.planning.plans.connecting import connect_segments
from qdsim.planning.plans.joint_trajectory import JointTrajectory
from qdsim.planning.plans.plan import Plan, ReplayResult, Verdict
from qdsim.planning.plans.segment import Segment
from qdsim.planning.roadmap.coverage import Coverage
from qdsim.planning.roadmap.query import NotCoveredError
from qdsim.planning.roadmap.roadmap import Roadmap, RoadmapPlan, roadmap
from qdsim.planning.roadmap.roadmap_options import RoadmapOptions
from qdsim.planning.search.many import Planned, plan_many
from qdsim.planning.search.measures import distance_to_goal, packing_ratio
from qdsim.planning.search.path import EdgeKind
from qdsim.planning.search.rrt import rrt
from qdsim.planning.search.tree import Tree
from qdsim.planning.task.cost import TrackingCost
from qdsim.planning.task.followers import reduce_tendons
from qdsim.planning.task.goal_region import GoalRegion
from qdsim.planning.task.impc_options import ImpcOptions
from qdsim.planning.task.least_squares import bounded_least_squares
from qdsim.planning.task.motion_options import MotionOptions
from qdsim.planning.task.refine_options import RefineOptions
from qdsim.planning.task.rrt_options import RRTOptions
from qdsim.planning.task.sampling_options import SamplingOptions
from qdsim.planning.task.space import ObjectSpace
from qdsim.planning.task.task import Task
from qdsim.planning.tracking.impc import ImpcResult, impc
from qdsim.planning.tracking.mpc import Mpc, MpcReport
from qdsim.planning.tracking.predictors import (
    MujocoModel,
    Predictor,
    QuasiDynamicModel,
    SecondOrderModel,
)
from qdsim.planning.tracking.preset import dexterous
from qdsim.planning.tracking.refinement import SegmentRefinement, refine, shorten
from qdsim.planning.tracking.sampling import SamplingMpc, SamplingReport

__all__ = [
    "BoxFaceSampler",
    "BoxSideSampler",
    "Closing",
    "ClosingSampler",
    "ContactSampler",
    "Coverage",
    "EdgeKind",
    "EdgeReport",
    "EquilibriumError",
    "ExecutedMotion",
    "Executor",
    "ExecutorOptions",
    "ExecutorReport",
    "ExecutorState",
    "ForceClosure",
    "GaitOptions",
    "GoalRegion",
    "Grip",
    "GripOptions",
    "GripStep",
    "Holding",
    "ImpcOptions",
    "ImpcResult",
    "JointTrajectory",
    "Motion",
    "MotionError",
    "MotionOptions",
    "Mpc",
    "MpcReport",
    "MujocoModel",
    "NotCoveredError",
    "ObjectSpace",
    "Plan",
    "PlanarHandSampler",
    "Planned",
    "PlantError",
    "PointReach",
    "Predictor",
    "QuasiDynamicModel",
    "RRTOptions",
    "RefineOptions",
    "ReplayResult",
    "Roadmap",
    "RoadmapOptions",
    "RoadmapPlan",
    "Robot",
    "SamplingMpc",
    "SamplingOptions",
    "SamplingReport",
    "SecondOrderModel",
    "Segment",
    "SegmentRefinement",
    "SegmentTransfer",
    "Stabilizer",
    "Stroke",
    "StrokePlanner",
    "SurfaceSampler",
    "Task",
    "TrackingCost",
    "Transfer",
    "TransferOptions",
    "Tree",
    "Verdict",
    "bounded_least_squares",
    "close_grasp",
    "connect",
    "connect_segments",
    "dexterous",
    "distance_to_goal",
    "drop",
    "force_closure",
    "gait",
    "gentle",
    "holding_command",
    "impc",
    "is_stable",
    "paced",
    "packing_ratio",
    "plan_many",
    "reach_point",
    "reduce_tendons",
    "refine",
    "roadmap",
    "rrt",
    "second_order",
    "shorten",
    "transfer",
]
