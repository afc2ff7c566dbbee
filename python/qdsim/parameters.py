"""The parameters of a model, and descriptions with other parameters."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from qdsim._core import PARAMETER_NAMES
from qdsim.arguments import reals
from qdsim.array_type import Array
from qdsim.description import Actuator, Description, Geom, Joint, Pair
from qdsim.description.pairs import candidate_pairs
from qdsim.description.references import unknown_name

__all__ = ["Parameters", "frozen", "with_parameters"]

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_Element = TypeVar("_Element", bound="DataclassInstance")

IntArray = npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True, eq=False)
class Parameters:
    """The numbers of a model that can vary while its topology is fixed. Read-only float64 arrays.

    Rows follow ``body_names``, ``joint_names``, ``actuator_names``, ``geom_names`` and the
    candidate pairs of the model (``Model.pair_index``).
    """

    body_mass: Array
    """(bodies) kg."""
    body_com: Array
    """(bodies, 3) centre of mass in the body frame, m."""
    body_inertia: Array
    """(bodies, 3, 3) about the centre of mass in body axes, kg m^2."""
    joint_stiffness: Array
    """(joints) springs, N/m or Nm/rad."""
    joint_springref: Array
    """(joints) rest positions of the springs, m or rad."""
    joint_damping: Array
    """(joints) Ns/m or Nms/rad; used with ``Options.damping``, as is ``actuator_damping``."""
    joint_armature: Array
    """(joints) kg or kg m^2 added to the mass of each DOF of the joint; for the second-order
    step."""
    joint_friction: Array
    """(joints) dry friction of each DOF of the joint, N or Nm."""
    actuator_stiffness: Array
    """(nu) N/m or Nm/rad, joint units; always zero for actuators without a spring."""
    actuator_gain: Array
    """(nu) N or Nm per unit of u, besides the spring."""
    actuator_bias: Array
    """(nu) N or Nm."""
    actuator_damping: Array
    """(nu) Ns/m or Nms/rad."""
    actuator_force_range: Array
    """(nu, 2) N or Nm on the joint, infinite for no limit; used with ``Options.force_limits``."""
    geom_size: Array
    """(geoms, 3) m; see ``Geom``. Fixed for geometries with a pressure field, and for those whose
    surface touches one."""
    geom_modulus: Array
    """(geoms) Pa; always zero for rigid geometries."""
    pair_friction: Array
    """(pairs, 5) two sliding, torsional (m), two rolling (m)."""
    pair_compliance: Array
    """(pairs) m/N along the normal, 0 for rigid contacts."""
    tendon_stiffness: Array
    """(tendons) springs, N/m."""
    gravity: Array
    """(3) m/s^2, world."""

    def replace(self, **changes: Any) -> Parameters:
        """Return a copy with some arrays replaced. A single number fills its array.

        ``pair_friction`` may also be one number or one per pair; this changes only the sliding
        coefficients.

        Args:
            changes: arrays or numbers by the names of the attributes, in their units.

        Raises:
            TypeError: for unknown names.
            ValueError: for wrong shapes, or values that are not finite.
        """
        for name in changes:
            if name not in PARAMETER_NAMES:
                raise TypeError(f"parameters: {unknown_name('parameter', name, PARAMETER_NAMES)}")
        values = {}
        for name, change in changes.items():
            old: Array = getattr(self, name)
            new = np.array(reals(name, change))
            if name == "pair_friction" and new.ndim < 2:
                sliding = np.broadcast_to(new, old.shape[:1]) if new.ndim == 0 else new
                if sliding.shape != old.shape[:1]:
                    raise ValueError(f"{name} must have shape {old.shape} or {old.shape[:1]}")
                new = np.concatenate([sliding[:, None], sliding[:, None], old[:, 2:]], axis=1)
            elif new.ndim == 0:
                new = np.full(old.shape, new)
            if new.shape != old.shape:
                raise ValueError(f"{name} must have shape {old.shape}, got {new.shape}")
            if not np.all(np.isfinite(new)) and name != "actuator_force_range":
                raise ValueError(f"{name} must be finite")
            values[name] = frozen(new)
        return dataclasses.replace(self, **values)

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name}{getattr(self, name).shape}" for name in PARAMETER_NAMES)
        return f"Parameters({shapes})"


def with_parameters(
    description: Description, old: Parameters, parameters: Parameters, pair_geom: IntArray
) -> Description:
    """Return the description with other parameters than the old ones; rows of ``pair_geom`` are the pairs."""
    joints = iter(range(len(description.joints)))
    geoms = iter(range(len(description.geoms)))
    bodies = []
    for i, body in enumerate(description.bodies):
        new_joints = [_joint_with(joint, next(joints), parameters) for joint in body.joints]
        new_geoms = [_geom_with(geom, next(geoms), parameters) for geom in body.geoms]
        bodies.append(
            _changed(
                body,
                mass=float(parameters.body_mass[i]),
                com=tuple(parameters.body_com[i].tolist()),
                inertia=tuple(tuple(row) for row in parameters.body_inertia[i].tolist()),
                joints=tuple(new_joints),
                geoms=tuple(new_geoms),
            )
        )
    _check_springs(description, old, parameters)
    return _changed(
        description,
        bodies=tuple(bodies),
        actuators=tuple(
            _actuator_with(actuator, i, parameters)
            for i, actuator in enumerate(description.actuators)
        ),
        tendons=tuple(
            _changed(tendon, stiffness=stiffness)
            for tendon, stiffness in zip(description.tendons, parameters.tendon_stiffness.tolist())
        ),
        pairs=_pairs_with_friction(description, old, parameters, pair_geom),
        gravity=tuple(parameters.gravity.tolist()),
    )


def _changed(element: _Element, **values: Any) -> _Element:
    """Return the element with these values; without changes the element itself, which is then not checked again."""
    if all(getattr(element, name) == value for name, value in values.items()):
        return element
    return dataclasses.replace(element, **values)


def _joint_with(joint: Joint, index: int, parameters: Parameters) -> Joint:
    names = ("stiffness", "springref", "damping", "armature", "friction")
    return _changed(joint, **_values(parameters, "joint", names, index))


def _actuator_with(actuator: Actuator, index: int, parameters: Parameters) -> Actuator:
    own = _values(parameters, "actuator", ("stiffness", "gain", "bias", "damping"), index)
    force_range = _range_or_none(parameters.actuator_force_range[index])
    return _changed(actuator, **own, force_range=force_range)


def _values(
    parameters: Parameters, kind: str, names: tuple[str, ...], index: int
) -> dict[str, float]:
    return {name: float(getattr(parameters, f"{kind}_{name}")[index]) for name in names}


def _geom_with(geom: Geom, index: int, parameters: Parameters) -> Geom:
    size, modulus = tuple(parameters.geom_size[index].tolist()), parameters.geom_modulus[index]
    if geom.soft is None and modulus != 0.0:
        raise ValueError(f"geom {geom.name!r}: geom_modulus must be zero: it is not soft")
    soft = None if geom.soft is None else _changed(geom.soft, modulus=float(modulus))
    return _changed(geom, size=size, soft=soft)


def _range_or_none(values: Array) -> tuple[float, float] | None:
    return (
        None
        if np.all(np.isinf(values)) and values[0] < values[1]
        else (float(values[0]), float(values[1]))
    )


def _check_springs(description: Description, old: Parameters, parameters: Parameters) -> None:
    """Raise ValueError if a stiffness becomes zero or ceases to be; whether an actuator has a spring is fixed."""
    springs = old.actuator_stiffness > 0.0
    for i, value in enumerate(parameters.actuator_stiffness.tolist()):
        if springs[i] != (value > 0.0):
            what = "must be positive" if springs[i] else "must be zero: it has no spring"
            raise ValueError(
                f"actuator {description.actuators[i].name!r}: stiffness {what}, got {value:g}"
            )


def _pairs_with_friction(
    description: Description, old: Parameters, parameters: Parameters, pair_geom: IntArray
) -> tuple[Pair, ...]:
    """Return the explicit pairs, and an explicit pair for every pair whose friction or compliance changes."""
    if np.any(parameters.pair_compliance < 0.0):
        raise ValueError("pair_compliance must not be negative")
    changed = np.any(old.pair_friction != parameters.pair_friction, axis=1)
    changed |= old.pair_compliance != parameters.pair_compliance
    if not np.any(changed):
        return description.pairs
    made, names = candidate_pairs(description), [geom.name for geom in description.geoms]
    pairs = {frozenset((pair.geom_a, pair.geom_b)): pair for pair in description.pairs}
    for i in np.flatnonzero(changed).tolist():
        a, b = (names[geom] for geom in pair_geom[i])
        pairs[frozenset((a, b))] = Pair(
            a,
            b,
            condim=int(made.dim[i]),
            friction=tuple(parameters.pair_friction[i].tolist()),
            margin=float(made.margin[i]),
            stiffness=1.0 / soft if (soft := float(parameters.pair_compliance[i])) else None,
            solref=tuple(made.solref[i].tolist()),
            solimp=tuple(made.solimp[i].tolist()),
            solreffriction=tuple(made.solreffriction[i].tolist()),
        )
    return tuple(pairs.values())


def frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Make the array read-only and return it."""
    array.setflags(write=False)
    return array
