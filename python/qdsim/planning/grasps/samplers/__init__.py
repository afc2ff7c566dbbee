"""Contact samplers: random grasps for a given pose of the object.

A sampler is any callable ``sampler(model, q, rng) -> q_new | None``. It keeps the pose of the
object, moves the robot to a configuration from which it can push, and returns a configuration
without penetration, or None if it found none. Samplers use only the model (``collide``,
``body_pose``), and no planner.
"""

from qdsim.planning.grasps.samplers.box_face import BoxFaceSampler
from qdsim.planning.grasps.samplers.closing_hand import ClosingSampler
from qdsim.planning.grasps.samplers.parametric import ParametricSampler, placed, strokes
from qdsim.planning.grasps.samplers.planar_hand import PlanarHandSampler
from qdsim.planning.grasps.samplers.planar_pushing import BoxSideSampler
from qdsim.planning.grasps.samplers.surface import SurfaceSampler
from qdsim.planning.grasps.samplers.touching import add_contact
from qdsim.planning.task.contact_sampler import ContactSampler

__all__ = [
    "BoxFaceSampler",
    "BoxSideSampler",
    "ClosingSampler",
    "ContactSampler",
    "ParametricSampler",
    "PlanarHandSampler",
    "SurfaceSampler",
    "add_contact",
    "placed",
    "strokes",
]
