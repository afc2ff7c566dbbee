"""A program that fills the closed surface in ``surface.npz`` with tetrahedra, and writes them to
``volume.npz``, in a folder of its own.

fTetWild always prints its progress to the standard output and writes a file in the current folder.
A separate process hides both from the user.
"""

import numpy as np


def fill() -> None:
    """Read ``points``, ``triangles`` and ``share`` (edge length over the surface's diagonal); write
    ``points``, ``tetrahedra``."""
    import wildmeshing

    with np.load("surface.npz") as surface:
        filled = wildmeshing.Tetrahedralizer(
            epsilon=1e-3, edge_length_r=float(surface["share"]), max_threads=1
        )
        filled.set_log_level(6)
        filled.set_mesh(surface["points"], surface["triangles"])
    filled.tetrahedralize()
    made, cells = filled.get_tet_mesh()[:2]
    np.savez("volume.npz", points=np.asarray(made, dtype=np.float64), tetrahedra=np.asarray(cells))


if __name__ == "__main__":
    fill()
