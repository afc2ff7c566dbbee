"""Conversion of files and MuJoCo objects to descriptions.

MuJoCo's compiler reads MJCF and URDF. It is imported only when something is loaded, and models do
not need it.
"""

from qdsim.formats.decomposition import decompose
from qdsim.formats.points import read_points
from qdsim.formats.source import load_description

__all__ = ["decompose", "load_description", "read_points"]
