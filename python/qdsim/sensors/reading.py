"""Reads sensors of a model from steps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import get_args

import numpy as np
import numpy.typing as npt

from qdsim.arguments import instance
from qdsim.array_type import Array
from qdsim.description.references import check_sensor
from qdsim.description.sensors import (
    ContactSensor,
    ForceSensor,
    Sensor,
    Site,
    TaxelSensor,
    TorqueSensor,
    TouchSensor,
)
from qdsim.model import Model
from qdsim.sensors.contact_sensor import read_contact_sensor, touching
from qdsim.sensors.interaction import Interaction
from qdsim.sensors.loads import Loads, Poses, Result, loads_of, local, poses_of
from qdsim.sensors.taxels import read_taxels
from qdsim.sensors.volumes import crossing

__all__ = ["read_sensors"]

_WITH_CUTOFF = (TouchSensor, ForceSensor, TorqueSensor)


def read_sensors(
    model: Model,
    q: npt.ArrayLike,
    result: Result,
    *,
    v: npt.ArrayLike | None = None,
    wrench: npt.ArrayLike | Mapping[str, npt.ArrayLike] | None = None,
    sensors: Iterable[Sensor] | None = None,
) -> dict[str, Array]:
    """Read sensors of forces from a step, or from each step of a batch.

    Values are those of MuJoCo's sensors of the same names, for the forces in the step and the
    configuration at its beginning, as in ``sensordata`` after ``mj_step``. Accelerations are those
    of the step, ``(v_next - v) / h``. MuJoCo's are those before its integrator adds implicit
    damping, so force and torque sensors differ slightly if joints are damped. In a quasi-dynamic
    step nothing accelerates: force and torque sensors read the static load, including the weight of
    the subtree for any `gravity_on_actuated`. Forces along tendons count as forces of the parent. A
    failed sample of a batch has no contacts.

    Args:
        model: the model.
        q: (..., nq) configurations at the beginning of the steps.
        result: a step, or a batch of steps with contacts.
        v: (..., nv) velocities at the beginning of second-order steps; required for force and
            torque sensors.
        wrench: the wrench given to the step.
        sensors: the sensors; None: those of the model (``model.description.sensors``).

    Returns:
        From names to values: touch (...), N; force (..., 3), N; torque (..., 3), Nm; contact (...,
        num * numbers), see `ContactSensor`; taxels (..., n, 3), Pa: pressure into the surface and
        along its two tangents.

    Raises:
        TypeError, ValueError: if an argument is invalid; the message names it.
    """
    instance("model", model, Model)
    wanted = _checked(model, sensors)
    loads = loads_of(result)
    poses = poses_of(model, q, loads)
    found: dict[str, Array] = {}
    interaction = None
    if any(isinstance(sensor, (ForceSensor, TorqueSensor)) for sensor in wanted):
        interaction = Interaction(model, v, wrench, result, loads, poses)
    touched = touching(loads)
    for sensor in wanted:
        if isinstance(sensor, TouchSensor):
            values = _touch(model, sensor.site, touched, poses)
        elif isinstance(sensor, ContactSensor):
            values = read_contact_sensor(model, sensor, touched, poses)
        elif isinstance(sensor, TaxelSensor):
            values = read_taxels(model, sensor, loads, poses)
        else:
            assert interaction is not None
            values = interaction.at(sensor)
        if isinstance(sensor, _WITH_CUTOFF) and sensor.cutoff is not None:
            values = np.clip(values, -sensor.cutoff, sensor.cutoff)
        found[sensor.name] = values.reshape((*loads.lead, *values.shape[1:]))
    return found


def _checked(model: Model, sensors: Iterable[Sensor] | None) -> tuple[Sensor, ...]:
    if sensors is None:
        return model.description.sensors
    wanted = (sensors,) if isinstance(sensors, get_args(Sensor)) else tuple(sensors)
    names: set[str] = set()
    for sensor in wanted:
        if not isinstance(sensor, get_args(Sensor)):
            raise TypeError(f"sensors: expected sensors, got {type(sensor).__name__}")
        check_sensor(model.description, sensor)
        if sensor.name in names:
            raise ValueError(f"sensors: two are named {sensor.name!r}")
        names.add(sensor.name)
    return wanted


def _touch(model: Model, site: Site, loads: Loads, poses: Poses) -> Array:
    """Return the sums (steps) of normal forces in the volume of a site."""
    body = model.body_index(site.body)
    loads = loads.of((loads.rows["body_a"] == body) | (loads.rows["body_b"] == body))
    pos, rot = poses.frame(body, site.pos, site.quat)
    back = np.swapaxes(rot, 1, 2)[loads.sample]
    point = local((pos, rot), loads.sample, loads.rows["pos"])
    away = np.where(loads.rows["body_b"] == body, -1.0, 1.0)[:, None] * loads.rows["frame"][:, 0]
    _, last = crossing(site.shape, site.size, point, (back @ away[:, :, None])[..., 0])
    normal = np.where(last >= 0.0, loads.rows["force"][:, 0], 0.0)
    return np.bincount(loads.sample, normal, minlength=loads.count).astype(float)
