"""Values of contact sensors: the selected contacts and their data (MuJoCo's ``contact``)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from qdsim.array_type import ROUNDING, Array
from qdsim.description.sensors import CONTACT_DATA, ContactSensor, Side
from qdsim.model import Model
from qdsim.sensors.loads import Loads, Poses, local
from qdsim.sensors.volumes import inside

__all__ = ["read_contact_sensor", "touching"]


def touching(loads: Loads) -> Loads:
    """Return the contacts that exert a force or whose distance is not positive."""
    rows = loads.rows
    return loads.of((rows["force"][:, 0] > 0.0) | (rows["dist"] <= 0.0))


def read_contact_sensor(model: Model, sensor: ContactSensor, loads: Loads, poses: Poses) -> Array:
    """Return the values (steps, numbers) of a contact sensor."""
    loads, flipped = _counted(model, sensor, loads, poses)
    slots = np.zeros((loads.count, sensor.num, sum(CONTACT_DATA[name] for name in sensor.data)))
    found = np.bincount(loads.sample, minlength=loads.count)
    if sensor.reduce == "netforce":
        slots[:, 0] = _net(sensor, loads, flipped, found)
        return slots.reshape(loads.count, -1)
    order = np.lexsort((_rank(sensor, loads), loads.sample))
    loads, flipped = loads.of(order), flipped[order]
    place = np.arange(len(order)) - (np.cumsum(found) - found)[loads.sample]
    told = place < sensor.num
    frames = _frames(model, loads, poses)
    frames[:, :2] *= np.where(flipped, -1.0, 1.0)[:, None, None]
    values = _told(sensor, loads, frames, found[loads.sample])
    slots[loads.sample[told], place[told]] = values[told]
    return slots.reshape(loads.count, -1)


def _counted(
    model: Model, sensor: ContactSensor, loads: Loads, poses: Poses
) -> tuple[Loads, npt.NDArray[np.bool_]]:
    """Return the contacts that the sensor counts, and whether the second side of each is geometry a."""
    rows, site = loads.rows, sensor.site
    first = [_match(model, sensor.first, rows[f"geom_{end}"], rows[f"body_{end}"]) for end in "ab"]
    second = [
        _match(model, sensor.second, rows[f"geom_{end}"], rows[f"body_{end}"]) for end in "ab"
    ]
    regular, reverse = first[0] & second[1], first[1] & second[0]
    if sensor.first is None or sensor.second is None:
        counts = (first[0] | first[1]) & (second[0] | second[1])
        ahead = first[0] & second[1]
    else:
        counts, ahead = regular | reverse, regular
    if site is not None:
        frame = poses.frame(model.body_index(site.body), site.pos, site.quat)
        counts &= inside(site.shape, site.size, local(frame, loads.sample, rows["pos"]))
    return loads.of(counts), ~ahead[counts]


def _match(
    model: Model, side: Side | None, geom: npt.NDArray[np.int32], body: npt.NDArray[np.int32]
) -> npt.NDArray[np.bool_]:
    if side is None:
        return np.ones(len(geom), dtype=bool)
    kind, name = side
    if kind == "geom":
        return np.asarray(geom == model.geom_index(name))
    if kind == "body":
        return np.asarray(body == model.body_index(name))
    return np.isin(body, subtree(model, model.body_index(name)))


def subtree(model: Model, body: int) -> npt.NDArray[np.intp]:
    """Return indices of a body and of all its descendants."""
    names, found = {model.body_names[body]}, [body]
    for i, item in enumerate(model.description.bodies):
        if i > body and item.parent in names:
            names.add(item.name)
            found.append(i)
    return np.array(found, dtype=np.intp)


def _rank(sensor: ContactSensor, loads: Loads) -> Array:
    """Return the sort keys (n,) of the contacts; smaller keys come first."""
    if sensor.reduce == "mindist":
        return np.asarray(loads.rows["dist"])
    if sensor.reduce == "maxforce":
        return np.asarray(-np.linalg.norm(loads.force, axis=1))
    return np.zeros(len(loads.rows))


def _frames(model: Model, loads: Loads, poses: Poses) -> Array:
    """Return the axes (n, 3, 3) of the contacts: the normal and MuJoCo's two tangents.

    The first tangent is along y, or along z if the normal is nearer to y. For a capsule on a plane
    it is along the capsule.
    """
    rows = loads.rows
    normal = rows["frame"][:, 0]
    axis = np.where(np.abs(normal[:, 1:2]) < 0.5, [0.0, 1.0, 0.0], [0.0, 0.0, 1.0])
    types = np.array([geom.type for geom in model.description.geoms])
    for i in np.flatnonzero(_is_capsule_on_plane(types, rows)).tolist():
        end = "a" if types[rows["geom_a"][i]] == "capsule" else "b"
        geom = model.description.geoms[rows[f"geom_{end}"][i]]
        _, rot = poses.frame(rows[f"body_{end}"][i], geom.pos, geom.quat)
        along = rot[loads.sample[i], :, 2]
        if np.linalg.norm(np.cross(along, normal[i])) > ROUNDING:
            axis[i] = along
    tangent = axis - np.sum(axis * normal, axis=1, keepdims=True) * normal
    tangent /= np.linalg.norm(tangent, axis=1, keepdims=True)
    return np.stack((normal, tangent, np.cross(normal, tangent)), axis=1)


def _is_capsule_on_plane(
    types: npt.NDArray[np.str_], rows: npt.NDArray[np.void]
) -> npt.NDArray[np.bool_]:
    a, b = types[rows["geom_a"]], types[rows["geom_b"]]
    return np.asarray(((a == "capsule") & (b == "plane")) | ((a == "plane") & (b == "capsule")))


def _told(sensor: ContactSensor, loads: Loads, frames: Array, found: npt.NDArray[np.intp]) -> Array:
    """Return the data (n, numbers) of each contact.

    The first two axes of ``frames`` are reversed if the first side is geometry b.
    """
    rows = loads.rows
    side = np.sign(np.sum(frames[:, 0] * rows["frame"][:, 0], axis=1))[:, None]
    parts = {
        "found": found[:, None],
        "force": side * (frames @ loads.force[:, :, None])[..., 0],
        "torque": side * (frames @ loads.torque[:, :, None])[..., 0],
        "dist": rows["dist"][:, None],
        "pos": rows["pos"],
        "normal": frames[:, 0],
        "tangent": frames[:, 1],
    }
    return np.concatenate([parts[name] for name in sensor.data], axis=1)


def _net(
    sensor: ContactSensor, loads: Loads, flipped: npt.NDArray[np.bool_], found: npt.NDArray[np.intp]
) -> Array:
    """Return the data (steps, numbers) of the sum of all contacts."""
    count = loads.count
    weight, weighted, force, torque = (np.zeros((count, n)) for n in (1, 3, 3, 3))
    share = np.linalg.norm(loads.force, axis=1, keepdims=True)
    np.add.at(weight, loads.sample, share)
    np.add.at(weighted, loads.sample, share * loads.rows["pos"])
    centre = np.divide(weighted, weight, out=np.zeros((count, 3)), where=weight > 0.0)
    sign = np.where(flipped, -1.0, 1.0)[:, None]
    arm = loads.rows["pos"] - centre[loads.sample]
    np.add.at(force, loads.sample, sign * loads.force)
    np.add.at(torque, loads.sample, sign * (loads.torque + np.cross(arm, loads.force)))
    axes = np.broadcast_to(np.eye(3), (count, 3, 3))
    parts = {
        "found": found[:, None],
        "force": force,
        "torque": torque,
        "dist": np.zeros((count, 1)),
        "pos": centre,
        "normal": axes[:, 0],
        "tangent": axes[:, 1],
    }
    return np.concatenate([parts[name] for name in sensor.data], axis=1)
