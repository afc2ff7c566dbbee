"""The softness of geometries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from qdsim.array_type import Array
from qdsim.description import checks


@runtime_checkable
class FieldArrays(Protocol):
    """The arrays of a ``PressureField``: vertices (n, 3) m, tetrahedra (m, 4), pressure (n,) Pa."""

    @property
    def vertices(self) -> Array: ...
    @property
    def tetrahedra(self) -> npt.NDArray[np.integer[Any]]: ...
    @property
    def pressure(self) -> Array: ...


@dataclass(frozen=True)
class Softness:
    """Properties of a geometry that presses by a pressure field (Elandt et al. 2019).

    Rigid geometries press into soft ones by their own surface: a mesh by its triangles, convex or
    not, if they enclose a volume (every edge occurs once in each direction), else by its convex
    hull, with a warning.

    Attributes:
        modulus: pressure at the deepest place, Pa; in between it grows linearly with the depth
            below the surface.
        dissipation: relative increase of the pressure with the speed of approach, s/m, for the
            second-order step.
        hint: longest edges of the surface of round shapes, m; None: a quarter of the smallest
            radius. A warning gives the actual length if this is finer than the limit (balls have at
            most 524288 tetrahedra, circles 706 corners).
        thickness: depth at which the pressure is the modulus, m; for planes only.
        field: a ``PressureField`` in the geometry's own frame, from arrays or a file, in place of
            that of the shape. Without a modulus, its own pressure is used; otherwise its pressure
            is scaled. No hint. The shape has to enclose the field closely: it decides when the
            field may touch, and its contacts limit the depth per step (a warning is given if the
            distance between them exceeds half of the field's depth).
    """

    modulus: float | None = None
    dissipation: float = 0.0
    hint: float | None = None
    thickness: float | None = None
    field: FieldArrays | None = None

    def __post_init__(self) -> None:
        field: object = self.field
        if field is not None:
            if not isinstance(field, FieldArrays):
                kind = type(field).__name__
                raise TypeError(f"soft: field must be a PressureField or None, got {kind}")
            if self.hint is not None:
                raise ValueError("soft: hint has no effect on a field of its own")
            if self.modulus is None:
                object.__setattr__(self, "modulus", float(field.pressure.max()))
        for name, value in (
            ("modulus", self.modulus),
            ("hint", self.hint),
            ("thickness", self.thickness),
        ):
            given = checks.stiffness("soft", name, value)
            if given is None and name == "modulus":
                raise TypeError("soft: modulus must be a number, got None")
            object.__setattr__(self, name, given)
        dissipation = checks.non_negative("soft", "dissipation", self.dissipation)
        object.__setattr__(self, "dissipation", dissipation)

    @classmethod
    def of(cls, owner: str, type: str, value: Any) -> Softness | None:
        """Check and return the softness of a geometry; a number is taken as a modulus.

        Args:
            owner: name in error messages.
            type: of the geometry, e.g. ``"box"``.
            value: a modulus, Pa, arrays of a pressure field, a ``Softness`` or None.

        Raises:
            TypeError, ValueError: if it is not a softness, or geometries of this type cannot be
                soft; the message begins with ``owner``.
        """
        if value is None:
            return None
        try:
            if isinstance(value, FieldArrays):
                value = cls(field=value)
            soft = value if isinstance(value, Softness) else cls(value)
        except (TypeError, ValueError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(f"{owner}: {error}") from None
        if type in ("cloud", "hfield"):
            raise ValueError(f"{owner}: a geometry of type {type!r} cannot be soft")
        if type == "plane" and soft.field is not None:
            raise ValueError(f"{owner}: soft: a plane has no field of tetrahedra")
        if (type == "plane") != (soft.thickness is not None):
            need = "needs the thickness of its layer" if type == "plane" else "has no thickness"
            raise ValueError(f"{owner}: soft: a {type} {need}")
        return soft
