"""Derivatives of MuJoCo's contacts by finite differences of MuJoCo's collision detection."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import mujoco
import numpy as np
import numpy.typing as npt

from qdsim.array_type import Array

IntArray = npt.NDArray[np.int32]


def contact_change(model: Any, data: Any, contact: int, step: float = 1e-6) -> Array:
    """Compute central differences of a contact's gap, position and normal for motions of its second
    geometry.

    If a motion in one direction ends the contact, because the contact is no deeper than the motion is
    long, the difference for this direction is one-sided.

    Args:
        model: A ``mujoco.MjModel``.
        data: Its ``MjData`` after ``mj_forward``; it is not changed.
        contact: Index in ``data.contact``.
        step: Length in m, and angle in rad, of the motions, > 0.

    Returns:
        (7, 6) Rows: gap (m), position (3, m) and normal (3), in world axes. Columns: angular velocity
        (3) of the second geometry, and velocity (3) of its point at the contact, with the first
        geometry at rest.

    Raises:
        ValueError: MuJoCo's contact jumps: for some direction, no motion leaves a contact nearby.
    """
    return contact_changes(model, data, [contact], step)[contact]


def contact_changes(
    model: Any, data: Any, contacts: Iterable[int], step: float = 1e-6
) -> dict[int, Array]:
    """Compute ``contact_change`` of several contacts, by their indices."""
    twin = mujoco.MjData(model)
    mujoco.mj_copyData(twin, model, data)
    return {i: _change(model, data, twin, i, step) for i in contacts}


def _change(model: Any, data: Any, twin: Any, contact: int, step: float) -> Array:
    """Compute ``contact_change`` of one contact; ``twin`` is a copy of ``data``, which is changed."""
    one = data.contact[contact]
    geoms, place, normal = np.array(one.geom), np.array(one.pos), np.array(one.frame[:3])
    moved = int(geoms[1])
    pos = np.array(data.geom_xpos[moved])
    rot = np.array(data.geom_xmat[moved]).reshape(3, 3)
    at = np.concatenate([[one.dist], place, normal])
    out = np.zeros((7, 6))
    for column in range(6):
        ends = {0.0: at}
        for sign in (1.0, -1.0):
            shift, turn = np.zeros(3), np.eye(3)
            if column < 3:
                turn = _turn(column, sign * step)
            else:
                shift[column - 3] = sign * step
            twin.geom_xpos[moved] = place + turn @ (pos - place) + shift
            twin.geom_xmat[moved] = (turn @ rot).ravel()
            mujoco.mj_collision(model, twin)
            found = _nearest(twin, geoms, at, step)
            if found is not None:
                ends[sign] = found
        first, last = min(ends), max(ends)
        if first == last:
            names = " and ".join(repr(model.geom(g).name or int(g)) for g in geoms)
            raise ValueError(
                f"contacts: no differences of the contact of geometries {names}, MuJoCo's contact points jump"
            )
        out[:, column] = (ends[last] - ends[first]) / ((last - first) * step)
    twin.geom_xpos[moved], twin.geom_xmat[moved] = pos, rot.ravel()
    return out


def _turn(axis: int, angle: float) -> Array:
    i, j = (axis + 1) % 3, (axis + 2) % 3
    out = np.eye(3)
    out[i, i] = out[j, j] = np.cos(angle)
    out[i, j], out[j, i] = -np.sin(angle), np.sin(angle)
    return out


def _nearest(data: Any, geoms: IntArray, at: Array, step: float) -> Array | None:
    """Return gap, position and normal of the contact of two geometries nearest to ``at``; None if none is near."""
    contacts = data.contact
    same = np.flatnonzero((contacts.geom == geoms).all(axis=1))
    if len(same) == 0:
        return None
    here = np.column_stack(
        (contacts.dist[same], contacts.pos[same], contacts.frame.reshape(-1, 9)[same, :3])
    )
    off = np.abs(here - at).max(axis=1)
    nearest = int(off.argmin())
    return here[nearest] if off[nearest] < 1e3 * step else None
