"""What makes a geometry soft."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from qdsim.description import checks


@runtime_checkable
class FieldArrays(Protocol):
    """What a ``PressureField`` is made of: vertices (n, 3) m, tetrahedra (m, 4), pressure (n,) Pa."""

    @property
    def vertices(self) -> npt.NDArray[np.float64]: ...
    @property
    def tetrahedra(self) -> npt.NDArray[np.integer[Any]]: ...
    @property
    def pressure(self) -> npt.NDArray[np.float64]: ...


@dataclass(frozen=True)
class Softness:
    """A geometry that presses by a pressure field (Elandt et al. 2019) on all that it touches.

    ``modulus``, Pa: the pressure at its deepest place; in between it grows linearly with the depth below the surface.
    ``dissipation``, s/m: by how much pressure grows with the speed of approach, for the second-order step.
    ``hint``, m: longest edges of the surface of round shapes; None: a quarter of the smallest radius. A warning says
    how long they are where that is finer than can be (balls have 524288 tetrahedra at most, circles 706 corners). ``thickness``, m:
    of planes, and of them alone: the depth at which pressure is the modulus.

    ``field``: a ``PressureField`` in the geometry's own frame, from arrays or a file, in place of the one that the
    shape has; the modulus is that of its own pressure where none is given, else its pressure is scaled. No hint then.
    The shape has to enclose it, and closely: it says when the field may touch, and its contacts keep one step from
    going deep (a warning says where more than half of the field's depth is between them).

    Rigid geometries press into soft ones by their own surface: of a mesh its triangles, convex or not, if they enclose
    something (every edge is run through once in each way), else its convex hull, with a warning.
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
                raise ValueError("soft: a field of its own has no hint")
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
        """The softness of a geometry, checked; a number is a modulus.

        Args:
            owner: name in error messages.
            type: of the geometry, e.g. ``"box"``.
            value: a modulus, Pa, arrays of a pressure field, a ``Softness`` or None.

        Raises:
            TypeError, ValueError: beginning with ``owner``: not a softness, or geometries of that type cannot be
                soft.
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
