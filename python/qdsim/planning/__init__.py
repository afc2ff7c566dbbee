"""Planning through contact: tasks, contact samplers, random trees, plans, pictures.

Docstrings call Pang, Suh, Yang and Tedrake 2023, "Global Planning for Contact-Rich Manipulation via
Local Smoothing of Quasi-dynamic Contact Models", S3.
"""

from qdsim.planning.closing import Closing, close_grasp
from qdsim.planning.equilibrium import (
    EquilibriumError,
    ForceClosure,
    Holding,
    force_closure,
    holding_command,
)
from qdsim.planning.gaiting import GaitOptions, Stroke, StrokePlanner, gait
from qdsim.planning.grip import Grip, GripOptions, GripStep
from qdsim.planning.inverse_kinematics import PointReach, reach_point
from qdsim.planning.least_squares import bounded_least_squares
from qdsim.planning.measures import distance_to_goal, packing_ratio
from qdsim.planning.motion import (
    Motion,
    MotionError,
    MotionOptions,
    connect,
    connect_segments,
)
from qdsim.planning.options import RRTOptions
from qdsim.planning.pacing import paced
from qdsim.planning.plan import Plan, ReplayResult, Segment, Verdict
from qdsim.planning.refinement import RefineOptions, SegmentRefinement, refine, shorten
from qdsim.planning.resting import drop, stays
from qdsim.planning.rrt import rrt
from qdsim.planning.samplers import (
    BoxFaceSampler,
    BoxSideSampler,
    ClosingSampler,
    ContactSampler,
    PlanarHandSampler,
    SurfaceSampler,
)
from qdsim.planning.space import ObjectSpace
from qdsim.planning.stabilizer import Stabilizer
from qdsim.planning.task import Task
from qdsim.planning.tracking.cost import TrackingCost
from qdsim.planning.tracking.impc import ImpcResult, impc
from qdsim.planning.tracking.mpc import Mpc, MpcReport
from qdsim.planning.tracking.options import ImpcOptions
from qdsim.planning.transfer import (
    SegmentTransfer,
    Transfer,
    TransferOptions,
    gentle,
    second_order,
    transfer,
)
from qdsim.planning.tree import EdgeKind, Tree

__all__ = [
    "BoxFaceSampler",
    "BoxSideSampler",
    "Closing",
    "ClosingSampler",
    "ContactSampler",
    "EdgeKind",
    "EquilibriumError",
    "ForceClosure",
    "GaitOptions",
    "Grip",
    "GripOptions",
    "GripStep",
    "Holding",
    "ImpcOptions",
    "ImpcResult",
    "Motion",
    "MotionError",
    "MotionOptions",
    "Mpc",
    "MpcReport",
    "ObjectSpace",
    "Plan",
    "PlanarHandSampler",
    "PointReach",
    "RRTOptions",
    "RefineOptions",
    "ReplayResult",
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
    "distance_to_goal",
    "drop",
    "force_closure",
    "gait",
    "gentle",
    "holding_command",
    "impc",
    "paced",
    "packing_ratio",
    "reach_point",
    "refine",
    "rrt",
    "second_order",
    "shorten",
    "stays",
    "transfer",
]
