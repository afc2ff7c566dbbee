"""The sensors of contact forces in a compiled model."""

from __future__ import annotations

from collections.abc import Collection

from qdsim.description.sensors import (
    CONTACT_DATA,
    REDUCTIONS,
    ContactSensor,
    ForceSensor,
    Sensor,
    Side,
    Site,
    TorqueSensor,
    TouchSensor,
)
from qdsim.description.shapes import GEOM_SIZES
from qdsim.formats.reading import Reading

_AT_SITES: dict[str, type[TouchSensor | ForceSensor | TorqueSensor]] = {
    "touch": TouchSensor,
    "force": ForceSensor,
    "torque": TorqueSensor,
}


def read_sensors(r: Reading, geoms: Collection[str]) -> tuple[Sensor, ...]:
    """Read the sensors of forces; note the other sensors, and those of geometries that are not in ``geoms``."""
    import mujoco

    result: list[Sensor] = []
    others: dict[str, int] = {}
    for i, name in enumerate(r.names("sensor", r.m.nsensor, r.m.name_sensoradr)):
        kind = mujoco.mjtSensor(int(r.m.sensor_type[i])).name.removeprefix("mjSENS_").lower()
        sensor = _sensor(r, i, name, kind)
        if sensor is None:
            others[kind] = others.get(kind, 0) + 1
            continue
        sides = (sensor.first, sensor.second) if isinstance(sensor, ContactSensor) else ()
        left = [side[1] for side in sides if side and side[0] == "geom" and side[1] not in geoms]
        if left:
            r.ignored.append(f"sensor '{name}': geom '{left[0]}' is left out")
            continue
        result.append(sensor)
    if others:
        kinds = ", ".join(f"{count} {kind}" for kind, count in others.items())
        r.ignored.append(f"sensors that are not read: {kinds}")
    return tuple(result)


def _sensor(r: Reading, i: int, name: str, kind: str) -> Sensor | None:
    if kind in _AT_SITES:
        cutoff = float(r.m.sensor_cutoff[i])
        return _AT_SITES[kind](
            name, _site(r, int(r.m.sensor_objid[i])), cutoff if cutoff > 0.0 else None
        )
    return _contact(r, i, name) if kind == "contact" else None


def _contact(r: Reading, i: int, name: str) -> ContactSensor | None:
    """Read a contact sensor; None if it reports data that ``CONTACT_DATA`` does not list."""
    m = r.m
    told, reduce = int(m.sensor_intprm[i][0]), REDUCTIONS[int(m.sensor_intprm[i][1])]
    data = tuple(word for bit, word in enumerate(CONTACT_DATA) if told >> bit & 1)
    size = sum(CONTACT_DATA[word] for word in data)
    if told >> len(CONTACT_DATA):
        return None
    first, second = (
        _side(r, int(kind), int(index))
        for kind, index in (
            (m.sensor_objtype[i], m.sensor_objid[i]),
            (m.sensor_reftype[i], m.sensor_refid[i]),
        )
    )
    site = first if isinstance(first, Site) else None
    return ContactSensor(
        name,
        None if isinstance(first, Site) else first,
        None if isinstance(second, Site) else second,
        site,
        data,
        reduce,  # type: ignore[arg-type]
        int(m.sensor_dim[i]) // size,
    )


def _side(r: Reading, kind: int, index: int) -> Side | Site | None:
    import mujoco

    objects = mujoco.mjtObj
    if kind == objects.mjOBJ_SITE:
        return _site(r, index)
    if kind == objects.mjOBJ_GEOM:
        return "geom", r.geom_names[index]
    if kind == objects.mjOBJ_BODY:
        return "body", r.body_names[index]
    return ("subtree", r.body_names[index]) if kind == objects.mjOBJ_XBODY else None


def _site(r: Reading, index: int) -> Site:
    import mujoco

    m = r.m
    shape = mujoco.mjtGeom(int(m.site_type[index])).name.removeprefix("mjGEOM_").lower()
    return Site(
        r.body_names[int(m.site_bodyid[index])],
        m.site_pos[index],
        m.site_quat[index],
        shape,
        m.site_size[index][: GEOM_SIZES[shape]],
    )
