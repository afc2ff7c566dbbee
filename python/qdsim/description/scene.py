"""A whole scene: its elements, checked against each other, and the way back to a file."""

from __future__ import annotations

from dataclasses import dataclass

from qdsim.description.elements import Elements
from qdsim.description.references import check_references
from qdsim.description.writer import write_mjcf


@dataclass(frozen=True, repr=False)
class Description(Elements):
    """A whole scene, checked: what ``qdsim.build`` turns into a model.

    ``bodies``: depth first, the world (named "world", without joints) first; q and v list the
    joints in this order, which is MuJoCo's. ``friction_combination``: "max" (MJCF: element-wise
    maximum) or "harmonic" (URDF and SDF: 2ab / (a + b)). ``parent_filter``: bodies joined by a
    joint do not touch, unless one of them is the world. ``gravity`` (3), m/s^2, world.
    ``actuators``, in the order of u; ``pairs``, ``excludes``: what may touch besides the filters;
    ``constraints``, ``tendons``, ``keyframes``, ``meshes``, ``sensors``: found by their names. ``name``: of the
    model. ``contact_solver``: a ``ContactSolver``, MuJoCo's options of contacts. ``ignored``: what the source said and quasi-dynamics has no use for, in words;
    ``dynamic_only``: the part of it that the second-order step uses.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "keyframes", check_references(self))

    def to_mjcf(self) -> str:
        """This scene as an MJCF document, as MuJoCo's compiler reads it."""
        return write_mjcf(self)

    def __repr__(self) -> str:
        return (
            f"Description({self.name!r}: {len(self.bodies)} bodies, {len(self.joints)} joints, "
            f"{len(self.geoms)} geoms, {len(self.actuators)} actuators)"
        )
