"""Descriptions of scenes: frozen dataclasses between files and models, and a builder.

This package depends neither on MuJoCo nor on the C core. ``elements`` defines the elements of a
scene, ``scene`` checks their references, ``builder`` builds scenes in code, ``pairs`` computes
which geometries may touch and with which friction, ``arrays`` converts a description to flat arrays
for the core, and ``writer`` writes it as MJCF.
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
