"""Pressure fields: soft bodies that press where their pressures balance (Elandt et al. 2019)."""

from qdsim.pressure.field import HalfSpace, PressureField, RigidSurface
from qdsim.pressure.patch import POLYGON_DTYPE, Patch, pressure_energy, pressure_patch

__all__ = [
    "POLYGON_DTYPE",
    "HalfSpace",
    "Patch",
    "PressureField",
    "RigidSurface",
    "pressure_energy",
    "pressure_patch",
]
