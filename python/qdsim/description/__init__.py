"""Descriptions of scenes: frozen dataclasses between files and models, and a builder.

Nothing here knows MuJoCo or the C core. ``elements`` says what a scene is made of, ``scene`` checks
that it fits together, ``builder`` makes one in code, ``pairs`` says which geometries may touch and
with which friction, ``arrays`` lays a description out flat for the core, ``writer`` writes it as
MJCF.
"""

from qdsim.description.builder import SceneBuilder
from qdsim.description.clouds import PointCloud
from qdsim.description.constraints import Connect, Constraint, Coupling, TendonCoupling, Weld
from qdsim.description.contact_solver import ContactSolver
from qdsim.description.elements import Actuator, Body, Exclude, Joint, Keyframe, ModelWarning, Pair
from qdsim.description.height_fields import HeightField
from qdsim.description.scene import Description
from qdsim.description.sensors import (
    ContactSensor,
    ForceSensor,
    Site,
    TaxelSensor,
    TorqueSensor,
    TouchSensor,
)
from qdsim.description.shapes import Geom, Mesh
from qdsim.description.softness import Softness
from qdsim.description.tendons import Pulley, Tendon, Wrap

__all__ = [
    "Actuator",
    "Body",
    "Connect",
    "Constraint",
    "ContactSensor",
    "ContactSolver",
    "Coupling",
    "Description",
    "Exclude",
    "ForceSensor",
    "Geom",
    "HeightField",
    "Joint",
    "Keyframe",
    "Mesh",
    "ModelWarning",
    "Pair",
    "PointCloud",
    "Pulley",
    "SceneBuilder",
    "Site",
    "Softness",
    "TaxelSensor",
    "Tendon",
    "TendonCoupling",
    "TorqueSensor",
    "TouchSensor",
    "Weld",
    "Wrap",
]
