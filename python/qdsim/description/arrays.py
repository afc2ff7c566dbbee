"""A description as the flat arrays of the C struct qd_model_spec, without names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from qdsim.description.clouds import PointCloud
from qdsim.description.constraints import Constraint, Coupling, TendonCoupling, Weld
from qdsim.description.contact_solver import (
    ContactSolver,
    contact_reference,
    equality_solver,
    row_solver,
)
from qdsim.description.elements import JOINT_TYPES, Elements, Joint
from qdsim.description.height_fields import HeightField
from qdsim.description.pairs import CandidatePairs, candidate_pairs
from qdsim.description.shapes import GEOM_TYPES
from qdsim.description.tendons import Pulley, Tendon, Wrap

Array = npt.NDArray[Any]


def rotation_matrix(quat: Any) -> npt.NDArray[np.float64]:
    """(..., 3, 3) rotation matrices of unit quaternions (..., 4), order w x y z."""
    w, x, y, z = np.moveaxis(np.asarray(quat, dtype=np.float64), -1, 0)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.moveaxis(np.array(rows), (0, 1), (-2, -1))


UNLIMITED = (-np.inf, np.inf)
_INTEGRATION = {"Euler": 1, "implicitfast": 2}  # qd_integration
_AS_FORCE = (np.inf, -np.inf)  # of actuator_own_range
_POINT, _WRAP, _SIDE, _PULLEY = range(4)  # of qd_tendon_part


def model_arrays(description: Elements) -> dict[str, Array]:
    """Return the fields of ``qd_model_spec`` by name, without the counts, as C-contiguous float64
    and int32 arrays."""
    body_index = {body.name: i for i, body in enumerate(description.bodies)}
    joint_index = {joint.name: i for i, joint in enumerate(description.joints)}
    tendon_index = {tendon.name: i for i, tendon in enumerate(description.tendons)}
    pairs = candidate_pairs(description)
    return {
        **_body_arrays(description, body_index),
        **_joint_arrays(description),
        **_actuator_arrays(description, joint_index, tendon_index),
        **_geom_arrays(description),
        **_constraint_arrays(description, body_index, joint_index, tendon_index),
        **_pair_arrays(pairs, description.contact_solver),
        **_mesh_arrays(description, {int(i) for i in np.unique(pairs.geom)}),
        **_cloud_arrays(description),
        **_hfield_arrays(description),
        **_tendon_arrays(description, body_index, joint_index),
        "default_q": _floats(description.default_q),
        "reference_q": _floats(description.reference_q),
        "gravity": _floats(description.gravity),
        "integration": _ints([_integration(description.contact_solver)]),
    }


def _integration(solver: ContactSolver) -> int:
    return 0 if solver.springs == "late" else _INTEGRATION.get(solver.integrator, 0)


def _body_arrays(description: Elements, body_index: dict[str, int]) -> dict[str, Array]:
    bodies = description.bodies
    return {
        **_columns("body", bodies, "mass", "gravcomp", pos=3, quat=4, com=3),
        **_optional("body", bodies, "invweight", "turn_invweight"),
        "body_parent": _ints([body_index[body.parent] for body in bodies]),
        "body_inertia": _floats([body.inertia for body in bodies], 3, 3),
        "mocap_body": _ints([i for i, body in enumerate(bodies) if body.mocap]),
    }


def _joint_arrays(description: Elements) -> dict[str, Array]:
    joints = description.joints
    one = ("ref", "stiffness", "springref", "damping", "friction", "armature")
    return {
        **_columns("joint", joints, *one, pos=3, axis=3),
        **_optional("joint", joints, "invweight", "turn_invweight"),
        **_row_laws("joint", joints, description.contact_solver),
        "joint_type": _ints([JOINT_TYPES.index(joint.type) for joint in joints]),
        "joint_body": _ints([i for i, body in enumerate(description.bodies) for _ in body.joints]),
    }


def _actuator_arrays(
    description: Elements, joint_index: dict[str, int], tendon_index: dict[str, int]
) -> dict[str, Array]:
    items = description.actuators
    one = ("stiffness", "gear", "gain", "bias", "damping")
    return {
        **_columns("actuator", items, *one, gain_slope=2),
        "actuator_joint": _ints([_place(joint_index, item.joint) for item in items]),
        "actuator_tendon": _ints([_place(tendon_index, item.tendon) for item in items]),
        "actuator_range": _floats([item.range or UNLIMITED for item in items], 2),
        "actuator_force_range": _floats([item.force_range or UNLIMITED for item in items], 2),
        "actuator_own_range": _floats([item.own_force_range or _AS_FORCE for item in items], 2),
    }


def _geom_arrays(description: Elements) -> dict[str, Array]:
    geoms = description.geoms
    places = [i for i, body in enumerate(description.bodies) for _ in body.geoms]
    return {
        **_columns("geom", geoms, pos=3, quat=4, size=3),
        "geom_type": _ints([GEOM_TYPES.index(geom.type) for geom in geoms]),
        "geom_body": _ints(places),
    }


def _constraint_arrays(
    description: Elements,
    body_index: dict[str, int],
    joint_index: dict[str, int],
    tendon_index: dict[str, int],
) -> dict[str, Array]:
    items = description.constraints
    rows = [_constraint(item, body_index, joint_index, tendon_index) for item in items]
    objects = np.array([pair for _, pair, _ in rows], dtype=np.int32)
    return {
        "constraint_type": _ints([kind for kind, _, _ in rows]),
        "constraint_object": objects.reshape(len(rows), 2),
        "constraint_data": _floats([data for _, _, data in rows], 10),
        "constraint_compliance": _floats([item.compliance for item in items], 2),
        "constraint_solver": equality_solver(
            [item.solref for item in items],
            [item.solimp for item in items],
            description.contact_solver,
        ),
        "constraint_torquescale": _floats([getattr(item, "torquescale", 1.0) for item in items]),
    }


def _pair_arrays(pairs: CandidatePairs, solver: ContactSolver) -> dict[str, Array]:
    names = ("geom", "dim", "friction", "margin", "compliance", "restitution")
    edges = 2 * (pairs.dim - 1) if solver.cone == "pyramidal" else np.zeros_like(pairs.dim)
    return {
        **{f"pair_{name}": np.ascontiguousarray(getattr(pairs, name)) for name in names},
        "pair_reference": contact_reference(
            pairs.solref, pairs.solreffriction, pairs.solimp, solver
        ),
        "pair_impedance": np.ascontiguousarray(pairs.solimp),
        "pair_impratio": np.full(len(pairs.dim), solver.impratio),
        "pair_edges": np.ascontiguousarray(edges, dtype=np.int32),
    }


def _place(index: dict[str, int], name: str | None) -> int:
    """Return the index of ``name``, or -1 for None."""
    return -1 if name is None else index[name]


def _tendon_arrays(
    description: Elements,
    body_index: dict[str, int],
    joint_index: dict[str, int],
) -> dict[str, Array]:
    tendons = description.tendons
    geoms = {geom.name: i for i, geom in enumerate(description.geoms)}
    paths = [_tendon_path(tendon, body_index, joint_index, geoms) for tendon in tendons]
    path = [item for items in paths for item in items]
    one = ("stiffness", "frictionloss", "damping")
    return {
        **_columns("tendon", tendons, *one, springrange=2),
        **_optional("tendon", tendons, "invweight"),
        **_row_laws("tendon", tendons, description.contact_solver),
        "tendon_type": _ints([_tendon_type(tendon) for tendon in tendons]),
        "tendon_point_count": _ints([len(items) for items in paths]),
        "tendon_part": _ints([part for part, _, _ in path]),
        "tendon_object": _ints([place for _, place, _ in path]),
        "tendon_data": _floats([data for _, _, data in path], 3),
    }


def _tendon_type(tendon: Tendon) -> int:
    return 0 if tendon.joints else 2 if tendon.thrust else 3 if tendon.reach else 1


def _tendon_path(
    tendon: Tendon,
    body_index: dict[str, int],
    joint_index: dict[str, int],
    geom_index: dict[str, int],
) -> list[tuple[int, int, tuple[float, ...]]]:
    """Return the rows of a tendon: a qd_tendon_part, an index and three numbers each.

    A row is a joint with its coefficient, a body with a point, a geometry, the side of the geometry
    before it, or a pulley.
    """
    rows: list[tuple[int, int, tuple[float, ...]]]
    rows = [(_POINT, joint_index[name], (factor, 0.0, 0.0)) for name, factor in tendon.joints]
    for item in tendon.points:
        if isinstance(item, Pulley):
            rows.append((_PULLEY, 0, (item.divisor, 0.0, 0.0)))
        elif isinstance(item, Wrap):
            body, point = (None, (0.0, 0.0, 0.0)) if item.side is None else item.side
            rows.append((_WRAP, geom_index[item.geom], (0.0, 0.0, 0.0)))
            rows.append((_SIDE, _place(body_index, body), tuple(point)))
        else:
            rows.append((_POINT, body_index[item[0]], tuple(item[1])))
    return rows


def _cloud_arrays(description: Elements) -> dict[str, Array]:
    """Return the arrays of the point clouds; equal clouds are stored once."""
    index: dict[tuple[bytes, int], int] = {}
    clouds: list[PointCloud] = []
    geom_cloud = np.full(len(description.geoms), -1, dtype=np.int32)
    for i, geom in enumerate(description.geoms):
        if geom.cloud is None:
            continue
        key = geom.cloud.points.tobytes(), geom.cloud.contacts
        if key not in index:
            index[key] = len(clouds)
            clouds.append(geom.cloud)
        geom_cloud[i] = index[key]
    return {
        "geom_cloud": geom_cloud,
        "cloud_point_count": _ints([len(item) for item in clouds]),
        "cloud_contact_count": _ints([item.contacts for item in clouds]),
        "cloud_point": np.concatenate([np.zeros((0, 3)), *(item.points for item in clouds)]),
    }


def _hfield_arrays(description: Elements) -> dict[str, Array]:
    """Return the arrays of the height fields; equal height fields are stored once."""
    index: dict[HeightField, int] = {}
    geom_hfield = np.full(len(description.geoms), -1, dtype=np.int32)
    for i, geom in enumerate(description.geoms):
        if geom.hfield is not None:
            geom_hfield[i] = index.setdefault(geom.hfield, len(index))
    return {
        "geom_hfield": geom_hfield,
        "hfield_grid": np.array([item.heights.shape for item in index], dtype=np.int32).reshape(
            -1, 2
        ),
        "hfield_size": _floats([(*item.size, item.bottom) for item in index], 3),
        "hfield_height": np.concatenate([np.zeros(0), *(item.heights.ravel() for item in index)]),
    }


def _mesh_arrays(description: Elements, colliding: set[int]) -> dict[str, Array]:
    """Return the hulls of the meshes of ``colliding`` geometries; equal hulls are stored once."""
    meshes = {mesh.name: mesh for mesh in description.meshes}
    index: dict[bytes, int] = {}
    vertices: list[Array] = []
    faces: list[Array] = []
    geom_mesh = np.full(len(description.geoms), -1, dtype=np.int32)
    for i, geom in enumerate(description.geoms):
        if geom.type != "mesh" or geom.mesh is None or i not in colliding:
            continue
        mesh = meshes[geom.mesh]
        used, hull = np.unique(mesh.hull_faces, return_inverse=True)
        points = mesh.vertices[used]
        triangles = hull.reshape(-1, 3).astype(np.int32)
        key = points.tobytes() + triangles.tobytes()
        if key not in index:
            index[key] = len(vertices)
            vertices.append(points)
            faces.append(triangles)
        geom_mesh[i] = index[key]
    return {
        "geom_mesh": geom_mesh,
        "mesh_vertex_count": _ints([len(item) for item in vertices]),
        "mesh_face_count": _ints([len(item) for item in faces]),
        "mesh_vertex": np.concatenate([np.zeros((0, 3)), *vertices]),
        "mesh_face": np.concatenate([np.zeros((0, 3), dtype=np.int32), *faces]),
    }


def _constraint(
    item: Constraint,
    body_index: dict[str, int],
    joint_index: dict[str, int],
    tendon_index: dict[str, int],
) -> tuple[int, tuple[int, int], tuple[float, ...]]:
    """Return the qd_constraint_type, the indices of the two elements, and ten numbers."""
    if isinstance(item, Coupling):
        other = -1 if item.follows is None else joint_index[item.follows]
        return 2, (joint_index[item.joint], other), (*item.coefficients, *(0.0,) * 5)
    if isinstance(item, TendonCoupling):
        other = -1 if item.follows is None else tendon_index[item.follows]
        numbers = (*item.coefficients, *item.lengths, *(0.0,) * 3)
        return 3, (tendon_index[item.tendon], other), numbers
    bodies = (body_index[item.body_a], body_index[item.body_b])
    if isinstance(item, Weld):
        return 1, bodies, (*item.anchor_a, *item.anchor_b, *item.quat)
    return 0, bodies, (*item.anchor_a, *item.anchor_b, 1.0, 0.0, 0.0, 0.0)


def _ints(values: Any) -> npt.NDArray[np.int32]:
    return np.array(values, dtype=np.int32).reshape(len(values))


def _floats(values: Any, *shape: int) -> npt.NDArray[np.float64]:
    return np.array(values, dtype=np.float64).reshape(len(values), *shape)


def _columns(kind: str, items: Sequence[Any], *fields: str, **wide: int) -> dict[str, Array]:
    """Return the given fields of ``items`` as arrays: ``fields`` have one number per item, ``wide``
    gives the width of vectors."""
    return {
        f"{kind}_{field}": _floats([getattr(item, field) for item in items], *shape)
        for field, shape in [*((f, ()) for f in fields), *((f, (n,)) for f, n in wide.items())]
    }


def _optional(kind: str, items: Sequence[Any], *fields: str) -> dict[str, Array]:
    """Return fields of ``items`` that may be None as arrays, with -1 for None."""
    values = [[getattr(item, field) for item in items] for field in fields]
    return {
        f"{kind}_{field}": _floats([-1.0 if value is None else value for value in row])
        for field, row in zip(fields, values)
    }


def _row_laws(
    kind: str, items: Sequence[Joint] | Sequence[Tendon], solver: ContactSolver
) -> dict[str, Array]:
    """Return the ranges of joints or tendons, and MuJoCo's parameters of their limits and of their dry friction."""
    limits = row_solver([i.solreflimit for i in items], [i.solimplimit for i in items], solver)
    return {
        f"{kind}_range": _floats([item.range or UNLIMITED for item in items], 2),
        f"{kind}_limit_solver": np.column_stack((limits, [item.margin for item in items])),
        f"{kind}_friction_solver": row_solver(
            [item.solreffriction for item in items], [item.solimpfriction for item in items], solver
        ),
    }
