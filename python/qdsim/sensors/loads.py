"""Contacts of one step or of many as rows of numbers, and their net forces on bodies and
geometries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from qdsim._core import DynamicStep, Linearization, Step
from qdsim.arguments import finite, instance, one_of, reals
from qdsim.array_type import Array
from qdsim.batches.dynamics import BatchDynamicSteps
from qdsim.batches.queries import body_poses
from qdsim.batches.steps import BatchSteps
from qdsim.description.arrays import rotation_matrix
from qdsim.model import Model

__all__ = [
    "Loads",
    "Poses",
    "Result",
    "contact_forces",
    "loads_of",
    "local",
    "net_forces",
    "poses_of",
    "rows_like",
]

Result = Step | DynamicStep | Linearization | BatchSteps | BatchDynamicSteps
"""Results from which sensors can be read."""


@dataclass(frozen=True)
class Loads:
    """The n contacts of all steps in a row.

    Attributes:
        lead: leading dimensions of the steps, () for one step.
        sample: (n) index of each contact's step, counted in C order.
        rows: (n) structured array with the fields of `Step.contacts`.
        force, torque: (n, 3) on the second geometry, world axes, N and Nm about ``rows["pos"]``.
    """

    lead: tuple[int, ...]
    sample: npt.NDArray[np.intp]
    rows: npt.NDArray[np.void]
    force: Array
    torque: Array

    @property
    def count(self) -> int:
        """Number of steps."""
        return int(np.prod(self.lead, dtype=int))

    def of(self, mask: npt.NDArray[Any]) -> Loads:
        """Return the contacts selected by indices or by a mask."""
        return Loads(
            self.lead, self.sample[mask], self.rows[mask], self.force[mask], self.torque[mask]
        )


@dataclass(frozen=True)
class Poses:
    """Configurations (s, nq) of s steps, and poses of all bodies there: positions (s, b, 3),
    rotation matrices (s, b, 3, 3) and centres of mass (s, b, 3)."""

    q: Array
    pos: Array
    rot: Array
    com: Array

    def frame(self, body: int, pos: npt.ArrayLike, quat: npt.ArrayLike) -> tuple[Array, Array]:
        """Return the position (s, 3) and rotation (s, 3, 3) in the world of a frame that is fixed to a body."""
        return (
            self.pos[:, body] + self.rot[:, body] @ np.asarray(pos),
            self.rot[:, body] @ rotation_matrix(np.asarray(quat)),
        )


def local(frame: tuple[Array, Array], sample: npt.NDArray[np.intp], point: Array) -> Array:
    """Transform world points (n, 3) at the steps ``sample`` (n) into a frame given by `Poses.frame`."""
    pos, rot = frame
    return np.asarray((np.swapaxes(rot, 1, 2)[sample] @ (point - pos[sample])[:, :, None])[..., 0])


def loads_of(result: Result) -> Loads:
    """Return the contacts of a step or a batch as ``Loads``.

    Raises:
        TypeError, ValueError: for another type, or a batch made with contacts=False.
    """
    step = result.step if isinstance(result, Linearization) else result
    if isinstance(step, (Step, DynamicStep)):
        lead: tuple[int, ...] = ()
        rows = step.contacts
        sample = np.zeros(len(rows), dtype=np.intp)
    elif isinstance(step, BatchSteps):
        if step.contacts is None or step.contact_start is None:
            raise ValueError("result: the batch was made with contacts=False")
        lead, rows = step.status.shape, step.contacts
        sample = np.repeat(np.arange(step.status.size), np.diff(step.contact_start))
    else:
        raise TypeError(f"result: expected a step or a batch of steps, got {type(result).__name__}")
    turned = np.swapaxes(rows["frame"], 1, 2)
    force = (turned @ rows["force"][:, :3, None])[..., 0]
    torque = (turned @ rows["force"][:, 3:, None])[..., 0]
    return Loads(lead, sample, rows, force, torque)


def poses_of(model: Model, q: npt.ArrayLike, loads: Loads) -> Poses:
    """Compute poses of all bodies at the configurations (..., nq) at the beginning of the steps.

    Raises:
        TypeError, ValueError: if q does not fit the steps.
    """
    rows = rows_like("q", q, (*loads.lead, model.nq))
    rows = rows.reshape(-1, model.nq)
    pos, rot = body_poses(model, rows, threads=1)
    com = np.asarray(model.parameters.body_com)
    return Poses(rows, pos, rot, pos + (rot @ com[:, :, None])[..., 0])


def rows_like(name: str, given: npt.ArrayLike, wanted: tuple[int, ...]) -> Array:
    """Check finite numbers of shape ``wanted``, or one row for all steps, and broadcast them."""
    rows = finite(name, reals(name, given))
    if rows.shape not in (wanted, wanted[-1:]):
        raise ValueError(f"{name}: expected shape {wanted}, as the steps have it, got {rows.shape}")
    return np.broadcast_to(rows, wanted)


def contact_forces(
    model: Model, q: npt.ArrayLike, result: Result, *, by: Literal["body", "geom"] = "body"
) -> Array:
    """Add up the contact forces on each body or geometry.

    Args:
        model: the model.
        q: (..., nq) configurations at the beginning of the steps.
        result: a step, or a batch of steps with contacts.
        by: "body" or "geom".

    Returns:
        (..., body_count or geom_count, 6) force, N, and moment, Nm, about a body's centre of mass
        or the origin of a geometry's frame, world axes, in the form of the argument `wrench=` of a
        step.

    Raises:
        TypeError, ValueError: if an argument is invalid; the message names it.
    """
    instance("model", model, Model)
    one_of("by", by, ("body", "geom"))
    loads = loads_of(result)
    poses = poses_of(model, q, loads)
    if by == "body":
        centre = poses.com
    else:
        bodies, places = model.geom_body, np.array([geom.pos for geom in model.description.geoms])
        centre = poses.pos[:, bodies] + (poses.rot[:, bodies] @ places[:, :, None])[..., 0]
    total = net_forces(loads, by, centre)
    return total.reshape((*loads.lead, *total.shape[1:]))


def net_forces(loads: Loads, by: str, centre: Array) -> Array:
    """Sum the forces on the k bodies or geometries, with moments about the points ``centre``
    (steps, k, 3): (steps, k, 6)."""
    total = np.zeros((loads.count, centre.shape[1], 6))
    for side, sign in (("a", -1.0), ("b", 1.0)):
        index = loads.rows[f"{by}_{side}"]
        arm = loads.rows["pos"] - centre[loads.sample, index]
        moment = loads.torque + np.cross(arm, loads.force)
        at = (loads.sample, index)
        np.add.at(total, at, sign * np.concatenate((loads.force, moment), axis=1))
    return total
