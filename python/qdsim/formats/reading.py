"""A compiled MuJoCo model while it is read: its names and options, and lists of ignored and
unsupported elements."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from qdsim.description.contact_solver import INTEGRATORS, Cone, ContactSolver
from qdsim.formats.refusals import Refusals

JOINT_NAMES = {0: "free", 1: "ball", 2: "slide", 3: "hinge"}  # mjtJoint

CONES: tuple[Cone, ...] = ("pyramidal", "elliptic")  # mjtCone


@dataclass(frozen=True)
class Origin:
    """Origin of a compiled model.

    Attributes:
        label: its name in messages.
        urdf: whether it is a URDF.
        frictions: frictions of the collision elements of each link of a URDF.
        repaired: message about changes of the inertias of a URDF, or None.
    """

    label: str
    urdf: bool = False
    frictions: dict[str, list[float | None]] = field(default_factory=dict)
    repaired: str | None = None


class Reading:
    """A compiled model ``m`` while it is read: names of its elements, and the lists of ignored and
    unsupported elements, which grow."""

    def __init__(self, model: Any, origin: Origin, refusals: Refusals) -> None:
        self.m = model
        self.origin = origin
        self.refusals = refusals
        self.ignored: list[str] = []
        self.body_names = self.names("body", model.nbody, model.name_bodyadr)
        self.joint_names = self.names("joint", model.njnt, model.name_jntadr)
        self.geom_names = self._names_of_geoms()
        self.actuator_names = self.names(
            "actuator", len(model.actuator_trntype), model.name_actuatoradr
        )
        self.mesh_names = self.names("mesh", model.nmesh, model.name_meshadr)

    def names(self, kind: str, count: int, addresses: Any) -> list[str]:
        """Return the names; elements without a name are named by kind and index, as in "geom5"."""
        said = self._said(count, addresses)
        taken = set(said)
        return [name or _free(f"{kind}{i}", taken) for i, name in enumerate(said)]

    def _said(self, count: int, addresses: Any) -> list[str]:
        """Return the names as the file gives them; they are empty for elements without a name."""
        table = bytes(self.m.names)
        result = []
        for i in range(count):
            begin = int(addresses[i])
            result.append(table[begin : table.index(b"\0", begin)].decode("utf-8", "replace"))
        return result

    def _names_of_geoms(self) -> list[str]:
        """Return the names of geometries.

        Visual elements of a URDF are numbered separately, so that the names of colliding geometries do
        not depend on them.
        """
        m = self.m
        if not self.origin.urdf:
            return self.names("geom", m.ngeom, m.name_geomadr)
        result = self._said(m.ngeom, m.name_geomadr)
        taken = set(result)
        counts = {"geom": 0, "visual": 0}
        for i, name in enumerate(result):
            kind = "geom" if m.geom_contype[i] else "visual"
            result[i] = name or _free(f"{kind}{counts[kind]}", taken)
            counts[kind] += 1
        return result

    def name(self, kind: str, index: int, addresses: Any) -> str:
        return self.names(kind, index + 1, addresses)[index]

    def field(self, name: str, default: Any = 0) -> Any:
        """Return a field of the compiled model, or the default in versions of MuJoCo without this field."""
        return getattr(self.m, name, default)

    def given(self, name: str, index: int) -> bool:
        """Return whether the installed MuJoCo has this field, and its row is not zero."""
        return bool(np.any(self.field(name)[index])) if hasattr(self.m, name) else False

    def model_name(self) -> str:
        table = bytes(self.m.names)
        return table[: table.index(b"\0")].decode("utf-8", "replace") or "model"

    def disabled(self, what: str) -> bool:
        """Return whether an option of the file disables ``what``; the bits differ between versions of MuJoCo."""
        import mujoco

        bits = mujoco.mjtDisableBit.__members__
        names = [what]
        if what in ("equality", "frictionloss", "limit", "contact"):
            names.append("constraint")
        elif what in ("spring", "damper"):
            names.append("passive")
        mask = sum(int(bits.get(f"mjDSBL_{name.upper()}", 0)) for name in names)
        return bool(int(self.m.opt.disableflags) & mask)

    def enabled(self, what: str) -> bool:
        """Return whether an option of the file enables ``what``; older versions of MuJoCo lack some."""
        import mujoco

        bit = mujoco.mjtEnableBit.__members__.get(f"mjENBL_{what.upper()}", 0)
        return bool(int(self.m.opt.enableflags) & int(bit))

    def contact_solver(self) -> ContactSolver:
        opt = self.m.opt
        timestep = None if self.disabled("refsafe") else float(opt.timestep)
        integrator = INTEGRATORS[int(opt.integrator)]
        return ContactSolver(CONES[int(opt.cone)], float(opt.impratio), timestep, integrator)

    def gravity(self) -> Any:
        return (0.0, 0.0, 0.0) if self.disabled("gravity") else tuple(self.m.opt.gravity)


def _free(name: str, taken: set[str]) -> str:
    """Return the name, with underscores appended until it is not taken."""
    while name in taken:
        name += "_"
    return name


def scalar(joint_type: int) -> bool:
    """Return whether a joint has one coordinate: slides and hinges."""
    return joint_type in (2, 3)
