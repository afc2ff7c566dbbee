"""Convex hulls, computed by the qhull inside MuJoCo's compiler: the same hulls that MuJoCo collides
with.

MuJoCo is imported only if a hull has to be computed.
"""

from __future__ import annotations

import functools

import numpy as np
import numpy.typing as npt

from qdsim.array_type import SAME, Array


def hull_faces(owner: str, vertices: Array) -> npt.NDArray[np.int32]:
    """(k, 3) triangles of the convex hull of ``vertices`` (n, 3), anticlockwise seen from outside.

    Raises ValueError with the owner's name if the points do not span a solid.
    """
    if len(vertices) < 4:
        raise ValueError(f"{owner}: a solid has four vertices at least, got {len(vertices)}")
    centered = vertices - 0.5 * (vertices.min(axis=0) + vertices.max(axis=0))
    scale = float(np.max(np.abs(centered)))
    if scale > 0.0:
        # MuJoCo's compiler computes in single precision and in units of the mesh.
        centered = centered / scale
    widths = np.linalg.svd(centered - centered.mean(axis=0), compute_uv=False)
    if not widths[-1] > SAME * np.sqrt(len(vertices)):
        raise ValueError(
            f"{owner}: its vertices lie in a plane, a line or a point; a convex hull needs a solid "
            "(use a thin box instead)"
        )
    try:
        faces = _compiled_hull(np.ascontiguousarray(centered, dtype=np.float32).tobytes())
    except ValueError as error:
        message = " ".join(str(error).split())
        raise ValueError(f"{owner}: MuJoCo cannot compute its convex hull: {message}") from None
    return np.frombuffer(faces, dtype=np.int32).reshape(-1, 3)


@functools.lru_cache(maxsize=256)
def _compiled_hull(vertices: bytes) -> bytes:
    import mujoco

    spec = mujoco.MjSpec()
    mesh = spec.add_mesh(name="mesh", uservert=np.frombuffer(vertices, dtype=np.float32))
    mesh.inertia = mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_MESH, meshname="mesh")
    return hull_of_compiled(spec.compile(), 0).tobytes()


def hull_of_compiled(model: object, mesh: int) -> npt.NDArray[np.int32]:
    """(k, 3) the hull of a mesh in a compiled ``mujoco.MjModel``, as indices into the mesh's own
    vertices.

    No rows if there is none (no geometry with this mesh collides).
    """
    address = int(model.mesh_graphadr[mesh])  # type: ignore[attr-defined]
    if address < 0:
        return np.zeros((0, 3), dtype=np.int32)
    graph = model.mesh_graph[address:]  # type: ignore[attr-defined]
    vertex_count, face_count = int(graph[0]), int(graph[1])
    begin = 2 + 3 * vertex_count + 3 * face_count
    faces = graph[begin : begin + 3 * face_count].reshape(-1, 3)
    return np.array(faces, dtype=np.int32)
