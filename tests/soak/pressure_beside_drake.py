"""Patches beside Drake's hydroelastic contact surfaces of the same tetrahedra (`pip install drake`).

    python tests/soak/pressure_beside_drake.py --poses 40              compare in so many random poses of each pair
    python tests/soak/pressure_beside_drake.py --write tests/data/pressure_drake.json --poses 4

Drake's filter of polygons by angle is on in both. Its forces and moments are integrated over its polygons exactly:
pressure is linear on them. Stored poses are compared by tests/fields/test_pressure_references.py, without Drake.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import tempfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from field_bodies import body_of, deviations

PAIRS: list[tuple[dict[str, Any], dict[str, Any], float]] = []
"""Two bodies, and how far apart their centres are about, m."""


def _pair(first: str, second: str, apart: float) -> None:
    PAIRS.append((_spec(first), _spec(second), apart))


def _spec(text: str) -> dict[str, Any]:
    """kind sizes.. [hint h] [modulus E]; without a modulus it is rigid."""
    words = text.split()
    spec: dict[str, Any] = {"kind": words.pop(0), "sizes": []}
    while words:
        word = words.pop(0)
        if word in ("hint", "modulus", "thickness"):
            spec[word] = float(words.pop(0))
        else:
            spec["sizes"].append(float(word))
    return spec


_pair("sphere .1 hint .06 modulus 1e6", "sphere .08 hint .05 modulus 1e6", 0.14)
_pair("sphere .1 hint .06 modulus 1e6", "box .1 .15 .05 modulus 3e5", 0.13)
_pair("box .1 .1 .1 modulus 1e5", "box .1 .2 .05 modulus 1e7", 0.15)
_pair("capsule .04 .08 hint .03 modulus 2e5", "box .1 .1 .05 modulus 1e6", 0.09)
_pair("cylinder .05 .1 hint .04 modulus 1e6", "ellipsoid .05 .1 .15 hint .06 modulus 1e6", 0.1)
_pair("cylinder .05 .05 hint .04 modulus 1e6", "cylinder .1 .03 hint .07 modulus 2e6", 0.08)
_pair("torus .1 .04 modulus 1e6", "box .05 .08 .05 modulus 1e6", 0.08)
_pair("torus .1 .04 modulus 1e6", "torus .1 .04 modulus 1e6", 0.1)
_pair("torus .06 .025 modulus 1e6", "capsule .03 .04 hint .02 modulus 1e6", 0.07)
_pair("stone modulus 1e6", "star modulus 1e6", 0.04)
_pair("box .1 .1 .1 modulus 1e5", "sphere .08 hint .05", 0.15)
_pair("torus .1 .04", "ellipsoid .05 .1 .15 hint .06 modulus 1e6", 0.1)
_pair("star modulus 1e6", "box .05 .05 .05", 0.07)
_pair("capsule .04 .08 hint .03 modulus 2e5", "space", 0.04)
_pair("torus .1 .04 modulus 1e6", "space", 0.03)
_pair("cylinder .05 .1 hint .04", "space thickness .1 modulus 1e6", 0.05)
_pair("corner", "space thickness .1 modulus 1e6", 0.03)


def _file_of(body: Any, folder: Path) -> Path:
    """A volume mesh (VTK); Drake takes its surface where it is rigid."""
    path = folder / f"{len(list(folder.iterdir()))}.vtk"
    cells = body.tetrahedra
    lines = ["# vtk DataFile Version 3.0", "field", "ASCII", "DATASET UNSTRUCTURED_GRID"]
    lines.append(f"POINTS {len(body.vertices)} double")
    lines += [" ".join(f"{x:.17g}" for x in row) for row in body.vertices]
    lines.append(f"CELLS {len(cells)} {5 * len(cells)}")
    lines += ["4 " + " ".join(str(i) for i in row) for row in cells]
    lines += [f"CELL_TYPES {len(cells)}", *["10"] * len(cells)]
    path.write_text("\n".join(lines) + "\n")
    return path


def _drake_shape(g: Any, spec: dict[str, Any], folder: Path) -> Any:
    sizes = spec["sizes"]
    if spec["kind"] == "box":
        return g.Box(*(2 * x for x in sizes))
    if spec["kind"] in ("cylinder", "capsule"):
        return {"cylinder": g.Cylinder, "capsule": g.Capsule}[spec["kind"]](sizes[0], 2 * sizes[1])
    simple = {"sphere": g.Sphere, "ellipsoid": g.Ellipsoid, "space": g.HalfSpace}
    if spec["kind"] in simple:
        return simple[spec["kind"]](*sizes)
    return g.Mesh(str(_file_of(body_of({**spec, "modulus": 1.0}), folder)))


def _drake_properties(g: Any, spec: dict[str, Any]) -> Any:
    properties = g.ProximityProperties()
    if "modulus" not in spec:
        g.AddRigidHydroelasticProperties(spec.get("hint", 1.0), properties)
    elif spec["kind"] == "space":
        g.AddCompliantHydroelasticPropertiesForHalfSpace(
            spec["thickness"], spec["modulus"], properties
        )
    else:
        g.AddCompliantHydroelasticProperties(spec.get("hint", 1.0), spec["modulus"], properties)
    return properties


def _integrated(surface: Any) -> dict[str, Any]:
    """Force and moment on the second body, and sums over the polygons."""
    mesh, field = surface.poly_mesh_W(), surface.poly_e_MN()
    force, moment, sums = np.zeros(3), np.zeros(3), np.zeros(4)
    for i in range(surface.num_faces()):
        element, normal = mesh.element(i), -surface.face_normal(i)
        x = [np.array(mesh.vertex(element.vertex(k))) for k in range(element.num_vertices())]
        for b, c in pairwise(x[1:]):
            share = 0.5 * np.cross(b - x[0], c - x[0]) @ surface.face_normal(i) / 3
            for at in (np.ones((3, 3)) / 6 + np.eye(3) / 2) @ np.stack([x[0], b, c]):
                part = share * field.EvaluateCartesian(i, at) * normal
                force += part
                moment += np.cross(at, part)
        slopes = []
        if surface.HasGradE_M():
            slopes.append(-surface.EvaluateGradE_M_W(i) @ normal)
        if surface.HasGradE_N():
            slopes.append(surface.EvaluateGradE_N_W(i) @ normal)
        g = slopes[0] * slopes[1] / sum(slopes) if len(slopes) == 2 else slopes[0]
        area, pressure = surface.area(i), field.EvaluateCartesian(i, surface.centroid(i))
        sums += area * np.array([1.0, pressure, g, pressure * g])
    return {
        "polygons": surface.num_faces(),
        "force": force.tolist(),
        "moment": moment.tolist(),
        "sums": sums.tolist(),
    }


def _drake(
    first: dict[str, Any], second: dict[str, Any], poses: list[tuple[np.ndarray, np.ndarray]]
) -> Iterator[dict[str, Any] | None]:
    import pydrake.geometry as g
    from pydrake.common.eigen_geometry import Quaternion
    from pydrake.math import RigidTransform

    graph = g.SceneGraph()
    source = graph.RegisterSource("bodies")
    frames = []
    with tempfile.TemporaryDirectory() as folder:
        for name, spec in (("a", first), ("b", second)):
            frame = graph.RegisterFrame(source, g.GeometryFrame(name))
            shape = _drake_shape(g, spec, Path(folder))
            instance = g.GeometryInstance(RigidTransform(), shape, name)
            instance.set_proximity_properties(_drake_properties(g, spec))
            graph.RegisterGeometry(source, frame, instance)
            frames.append(frame)
        context = graph.CreateDefaultContext()
    for pair in poses:
        given = g.FramePoseVector()
        for frame, pose in zip(frames, pair):
            turn = Quaternion(pose[3:] / np.linalg.norm(pose[3:]))
            given.set_value(frame, RigidTransform(turn, pose[:3]))
        graph.get_source_pose_port(source).FixValue(context, given)
        asked = graph.get_query_output_port().Eval(context)
        found = asked.ComputeContactSurfaces(g.HydroelasticContactRepresentation.kPolygon)
        yield _integrated(found[0]) if found else None


def records(count: int, seed: int) -> Iterator[dict[str, Any]]:
    """Pairs in random poses with at least three polygons."""
    rng = np.random.default_rng(seed)
    for first, second, apart in PAIRS:
        kept = 0
        while kept < count:
            poses = []
            for _ in range(count):
                way, turns = rng.normal(size=3), rng.normal(size=(2, 4))
                turns /= np.linalg.norm(turns, axis=1, keepdims=True)
                at = apart * way / np.linalg.norm(way)
                if second["kind"] == "space":
                    w, x, y, z = turns[1]
                    up = np.array(
                        [2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)]
                    )
                    at += (apart * rng.uniform(0.5, 1.0) - at @ up) * up
                poses.append((np.r_[at, turns[0]], np.r_[np.zeros(3), turns[1]]))
            for pair, result in zip(poses, _drake(first, second, poses)):
                if result and result["polygons"] > 2 and kept < count:
                    kept += 1
                    yield {
                        "first": first,
                        "second": second,
                        "pose_a": pair[0].tolist(),
                        "pose_b": pair[1].tolist(),
                        **result,
                    }


def main() -> int:
    parser = argparse.ArgumentParser(description="Patches beside Drake's.")
    parser.add_argument("--poses", type=int, default=20, help="of each pair")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", type=Path, help="store what Drake says")
    given = parser.parse_args()
    if importlib.util.find_spec("pydrake") is None:
        print("Drake is not installed (pip install drake): nothing to compare with")
        return 0
    kept, worst, counts = [], np.zeros(3), 0
    for record in records(given.poses, given.seed):
        off = deviations(record)
        worst = np.maximum(worst, off[:3])
        counts += off[3] != 0
        if max(off[:2]) > 1e-10 or off[2] > 1e-8 or off[3]:
            names = [record[side]["kind"] for side in ("first", "second")]
            print(names, "force {:.1e} area {:.1e} sums {:.1e} polygons {:+d}".format(*off))
        kept.append(record)
    print(f"{len(kept)} poses, other polygon counts in {counts}")
    print("largest deviation: wrench {:.1e}, area {:.1e}, sums {:.1e}".format(*worst))
    if given.write:
        lines = [json.dumps(record) for record in kept]
        given.write.write_text("[\n" + ",\n".join(lines) + "\n]\n")
    return int(max(worst[:2]) > 1e-10 or worst[2] > 1e-8)


if __name__ == "__main__":
    sys.exit(main())
