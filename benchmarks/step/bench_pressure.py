"""Surfaces of pressure fields, beside Drake's hydroelastic contact of the same shapes (`pip install drake`).

Each row is one pair of bodies in one pose. Both sides tessellate by the same rules, so polygons and forces agree but
for Drake's filter of polygons by angle and its points of force (centroids). CPU time of one thread, contenders in
turn, medians over rounds, in microseconds:

- `pressure_patch`: the public call with its polygons; `core`: the query alone (force, moment, tangent, no polygons
  kept), through the binding; the same without its tangent; the energy.
- Drake: `ComputeContactSurfaces` with polygons, poses being set; no tangent.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from qdsim._core import _field_energy, _field_patch
from qdsim.pressure import HalfSpace, PressureField, RigidSurface, pressure_patch

ROUNDS = 9
TURN = np.array([0.9, 0.3, 0.25, 0.1])
TURN /= np.linalg.norm(TURN)


def ball(radius: float, hint: float) -> PressureField:
    return PressureField.sphere(radius, 1e6, hint=hint)


def cases() -> dict[str, tuple[Any, Any, list[float], Callable[[Any], tuple[Any, Any]]]]:
    """Return bodies, the pose of the first in the frame of the second, and Drake's shapes with their properties."""

    def sphere(g: Any, radius: float) -> Any:
        return g.Sphere(radius)

    def soft(g: Any, hint: float) -> Any:
        properties = g.ProximityProperties()
        g.AddCompliantHydroelasticProperties(hint, 1e6, properties)
        return properties

    def rigid(g: Any, hint: float) -> Any:
        properties = g.ProximityProperties()
        g.AddRigidHydroelasticProperties(hint, properties)
        return properties

    def mud(g: Any) -> Any:
        properties = g.ProximityProperties()
        g.AddCompliantHydroelasticPropertiesForHalfSpace(1.0, 1e7, properties)
        return properties

    def pair(first: Any, second: Any) -> Callable[[Any], tuple[Any, Any]]:
        return lambda g: (first(g), second(g))

    def soft_ball(radius: float, hint: float) -> Callable[[Any], Any]:
        return lambda g: (sphere(g, radius), soft(g, hint))

    coarse, fine = ball(0.1, 0.02), ball(0.1, 0.01)
    box = PressureField.box([0.1, 0.1, 0.05], 1e6)
    large = ball(3.0, 1.0)
    egg = PressureField.ellipsoid([3.0, 3.5, 4.0], 1e6, hint=1.0)
    return {
        "two balls": (
            coarse,
            ball(0.08, 0.02),
            [0, 0, 0.17],
            pair(soft_ball(0.1, 0.02), soft_ball(0.08, 0.02)),
        ),
        "two fine balls": (
            fine,
            fine,
            [0, 0, 0.19],
            pair(soft_ball(0.1, 0.01), soft_ball(0.1, 0.01)),
        ),
        "ball and box": (
            coarse,
            box,
            [0.01, 0.02, 0.145],
            pair(soft_ball(0.1, 0.02), lambda g: (g.Box(0.2, 0.2, 0.1), soft(g, 1.0))),
        ),
        "ball deep in an ellipsoid": (
            large,
            egg,
            [2.0, 1.5, 0.3],
            pair(soft_ball(3.0, 1.0), lambda g: (g.Ellipsoid(3.0, 3.5, 4.0), soft(g, 1.0))),
        ),
        "ball and rigid ball": (
            fine,
            RigidSurface.of(fine),
            [0, 0, 0.19],
            pair(soft_ball(0.1, 0.01), lambda g: (sphere(g, 0.1), rigid(g, 0.01))),
        ),
        "ball on a rigid half space": (
            fine,
            HalfSpace(),
            [0, 0, 0.08],
            pair(soft_ball(0.1, 0.01), lambda g: (g.HalfSpace(), rigid(g, 1.0))),
        ),
        "rigid ball in a soft half space": (
            RigidSurface.of(fine),
            HalfSpace(1e7),
            [0, 0, 0.08],
            pair(lambda g: (sphere(g, 0.1), rigid(g, 0.01)), lambda g: (g.HalfSpace(), mud(g))),
        ),
        "boxes overlap, no contact": (
            fine,
            fine,
            [0.117, 0.117, 0.117],
            pair(soft_ball(0.1, 0.01), soft_ball(0.1, 0.01)),
        ),
        "far apart": (fine, fine, [0, 0, 1.0], pair(soft_ball(0.1, 0.01), soft_ball(0.1, 0.01))),
    }


def drake_query(
    shapes: Callable[[Any], tuple[Any, Any]], place: list[float]
) -> Callable[[], Any] | None:
    """Return a call that sets the pose, so that nothing is cached, and computes the surfaces; None without Drake."""
    try:
        import pydrake.geometry as g
        from pydrake.common.eigen_geometry import Quaternion
        from pydrake.math import RigidTransform
    except ImportError:
        return None
    graph = g.SceneGraph()
    source = graph.RegisterSource("bodies")
    frames = []
    for name, (shape, properties) in zip("ab", shapes(g)):
        frame = graph.RegisterFrame(source, g.GeometryFrame(name))
        instance = g.GeometryInstance(RigidTransform(), shape, name)
        instance.set_proximity_properties(properties)
        graph.RegisterGeometry(source, frame, instance)
        frames.append(frame)
    context = graph.CreateDefaultContext()
    port = graph.get_source_pose_port(source)

    def query() -> Any:
        poses = g.FramePoseVector()
        poses.set_value(frames[0], RigidTransform(Quaternion(TURN), place))
        poses.set_value(frames[1], RigidTransform())
        port.FixValue(context, poses)
        asked = graph.get_query_output_port().Eval(context)
        return asked.ComputeContactSurfaces(g.HydroelasticContactRepresentation.kPolygon)

    return query


def drake_wrench(surfaces: Any) -> tuple[int, np.ndarray, float]:
    """Return the number of polygons, the force (up to its sign) and the area."""
    if not surfaces:
        return 0, np.zeros(3), 0.0
    surface, force = surfaces[0], np.zeros(3)
    for i in range(surface.num_faces()):
        pressure = surface.poly_e_MN().EvaluateCartesian(i, surface.centroid(i))
        force += surface.area(i) * pressure * surface.face_normal(i)
    return surface.num_faces(), force, surface.total_area()


def micros(calls: list[Callable[[], Any]]) -> list[float]:
    """Return medians of the CPU time per call, measured in turns of at least 2 ms."""
    spent: list[list[float]] = [[] for _ in calls]
    for round_index in range(ROUNDS + 1):
        for call, kept in zip(calls, spent):
            count, start = 0, time.process_time()
            while time.process_time() - start < 5e-3:
                for _ in range(4):
                    call()
                count += 4
            if round_index:
                kept.append(1e6 * (time.process_time() - start) / count)
    return [statistics.median(kept) for kept in spent]


def row(name: str, a: Any, b: Any, place: list[float], shapes: Any) -> str:
    pose = np.r_[place, TURN]
    found = pressure_patch(a, b, pose)
    calls: list[Callable[[], Any]] = [
        lambda: pressure_patch(a, b, pose),
        lambda: _field_patch(a._handle, b._handle, pose, None, 0.0, False, True),
        lambda: _field_patch(a._handle, b._handle, pose, None, 0.0, False, False),
        lambda: _field_energy(a._handle, b._handle, pose, None),
    ]
    query = drake_query(shapes, place)
    if query:
        calls.append(query)
    times = micros(calls)
    cells = [f"{item:.1f}" for item in times]
    per = f"{times[1] / found.count:.2f}" if found.count else "-"
    if not query:
        return f"| {name} | {found.count} | {' | '.join(cells)} | {per} | - | - | - | - |"
    polygons, force, area = drake_wrench(query())
    theirs = f"{times[4] / polygons:.2f}" if polygons else "-"
    off = min(np.linalg.norm(found.force - s * force) for s in (1, -1))
    agree = f"{off / np.linalg.norm(force):.1e}" if polygons else "-"
    areas = f"{abs(found.area / area - 1):.1e}" if polygons else "-"
    return f"| {name} | {found.count} | {' | '.join(cells)} | {per} | {theirs} | {polygons} | {agree} | {areas} |"


def main() -> None:
    print(
        "| pair | polygons | `pressure_patch` us | core us | without tangent us | energy us | Drake us "
        "| core us per polygon | Drake us per polygon | Drake's polygons | force differs | area differs |"
    )
    print("|" + " --- |" * 12)
    for name, case in cases().items():
        print(row(name, *case))


if __name__ == "__main__":
    main()
