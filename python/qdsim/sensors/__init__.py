"""Sensors of forces in steps: touch, force, torque, contact and taxels, and net contact forces.

Files contain their own (``model.description.sensors``), `SceneBuilder.sensor` adds others, and
`read_sensors` reads any:

>>> values = qdsim.read_sensors(model, q, qdsim.step(model, q, u))  # doctest: +SKIP
"""

from qdsim.description.sensors import (
    ContactSensor,
    ForceSensor,
    Sensor,
    Site,
    TaxelSensor,
    TorqueSensor,
    TouchSensor,
)
from qdsim.sensors.loads import contact_forces
from qdsim.sensors.reading import read_sensors
from qdsim.sensors.taxels import taxel_grid

__all__ = [
    "ContactSensor",
    "ForceSensor",
    "Sensor",
    "Site",
    "TaxelSensor",
    "TorqueSensor",
    "TouchSensor",
    "contact_forces",
    "read_sensors",
    "taxel_grid",
]
