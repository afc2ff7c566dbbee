"""What makes a geometry soft."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from qdsim.description import checks


@dataclass(frozen=True)
class Softness:
    """A geometry that presses by a pressure field (Elandt et al. 2019) on all that it touches.

    ``modulus``, Pa: the pressure at its deepest place; in between it grows linearly with the depth below the surface.
    ``dissipation``, s/m: by how much pressure grows with the speed of approach, for the second-order step.
    ``hint``, m: longest edges of the surface of round shapes; None: a quarter of the smallest radius. ``thickness``, m:
    of planes, and of them alone: the depth at which pressure is the modulus.
    """

    modulus: float
    dissipation: float = 0.0
    hint: float | None = None
    thickness: float | None = None

    def __post_init__(self) -> None:
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
        """What was given for a geometry of that type: a number is a modulus. Errors name the owner."""
        if value is None:
            return None
        try:
            soft = value if isinstance(value, Softness) else cls(value)
        except (TypeError, ValueError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(f"{owner}: {error}") from None
        if type == "cloud":
            raise ValueError(f"{owner}: a cloud cannot be soft")
        if (type == "plane") != (soft.thickness is not None):
            need = "needs the thickness of its layer" if type == "plane" else "has no thickness"
            raise ValueError(f"{owner}: soft: a {type} {need}")
        return soft
