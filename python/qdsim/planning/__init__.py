"""Planning through contact: tasks, contact samplers, random trees, plans, pictures."""

from qdsim.planning.least_squares import bounded_least_squares
from qdsim.planning.options import RRTOptions
from qdsim.planning.plan import Plan, ReplayResult, Segment, Verdict
from qdsim.planning.rrt import rrt
from qdsim.planning.samplers import BoxSideSampler, ContactSampler, PlanarHandSampler
from qdsim.planning.space import ObjectSpace
from qdsim.planning.task import Task
from qdsim.planning.tree import EdgeKind, Tree

__all__ = [
    "BoxSideSampler",
    "ContactSampler",
    "EdgeKind",
    "ObjectSpace",
    "PlanarHandSampler",
    "Plan",
    "RRTOptions",
    "ReplayResult",
    "Segment",
    "Task",
    "Tree",
    "Verdict",
    "bounded_least_squares",
    "rrt",
]
