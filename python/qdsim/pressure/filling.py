"""Run as a program, in a folder of its own: fills the closed surface of ``surface.npz`` into ``volume.npz``.

fTetWild tells its progress on the process's output and writes a file where the process stands, whatever is asked; a
process of its own keeps both from the user.
"""

import numpy as np


def fill() -> None:
    """Reads ``points``, ``triangles`` and ``share``, the edge beside the surface's diagonal; writes ``points``, ``tetrahedra``."""
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
