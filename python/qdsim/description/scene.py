"""A whole scene: its elements, checked together, and its MJCF."""

from __future__ import annotations

from dataclasses import dataclass

from qdsim.description.elements import Elements
from qdsim.description.references import check_references
from qdsim.description.writer import write_mjcf


@dataclass(frozen=True, repr=False)
class Description(Elements):
    """A whole scene, checked, from which ``qdsim.build`` makes a model.

    Attributes:
        bodies: depth first, the world (named "world", without joints) first; q and v list the
            joints in this order, which is MuJoCo's.
        actuators: in the order of u.
        pairs, excludes: explicit contact pairs, and bodies without contacts.
        constraints, tendons, keyframes, meshes, sensors: each with a unique name.
        gravity: (3) m/s^2, world axes.
        friction_combination: "max" (MJCF: element-wise maximum) or "harmonic" (URDF and SDF: 2ab /
            (a + b)).
        parent_filter: whether contacts between bodies joined by a joint are excluded, unless one of
            them is the world.
        name: of the model.
        contact_solver: a ``ContactSolver``, MuJoCo's options of contacts.
        ignored: elements of the source that a quasi-dynamic step does not use, as text.
        dynamic_only: those of them that the second-order step uses.
        unlike_mujoco: those with which MuJoCo's step differs from the one here, and how to load
            the source without.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "keyframes", check_references(self))

    def to_mjcf(self) -> str:
        """This scene as an MJCF document for MuJoCo's compiler."""
        return write_mjcf(self)

    def __repr__(self) -> str:
        return (
            f"Description({self.name!r}: {len(self.bodies)} bodies, {len(self.joints)} joints, "
            f"{len(self.geoms)} geoms, {len(self.actuators)} actuators)"
        )
