"""Bodies that press on each other: soft bodies with a pressure field, rigid surfaces, half spaces."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import numpy.typing as npt

from qdsim import _core
from qdsim.arguments import finite, instance, number, real_array, vector
from qdsim.array_type import Array
from qdsim.pressure import tessellation, volumes
from qdsim.pressure.tessellation import Indices, Tessellation

__all__ = ["HalfSpace", "PressureField", "RigidSurface"]

_SOFT, _RIGID, _SOFT_SPACE, _RIGID_SPACE = range(4)

_NOTHING = np.zeros(0)


def _frozen(array: npt.ArrayLike, dtype: npt.DTypeLike) -> npt.NDArray[np.generic]:
    copy = np.array(array, dtype=dtype, order="C")
    copy.flags.writeable = False
    return copy


def _rows(name: str, values: npt.ArrayLike, width: int) -> Array:
    rows = np.asarray(finite(name, real_array(name, values)), dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != width:
        raise ValueError(f"{name}: expected shape (any, {width}), got {rows.shape}")
    return rows


def _indices(name: str, values: npt.ArrayLike, width: int) -> Indices:
    rows = np.asarray(values)
    if rows.dtype.kind not in "iu" or rows.ndim != 2 or rows.shape[1] != width:
        raise ValueError(
            f"{name}: expected integers of shape (any, {width}), got {rows.dtype} {rows.shape}"
        )
    if rows.size and (rows.min() < 0 or rows.max() > np.iinfo(np.int32).max):
        raise ValueError(f"{name}: expected indices of vertices, got {rows.min()} to {rows.max()}")
    return rows.astype(np.int32)


class _Body:
    """A body that can exert pressure: the arguments it was made from, and its handle in the C core."""

    _arguments: tuple[str, ...] = ()
    __slots__: tuple[str, ...] = ("_handle",)

    _handle: object

    def _fill(self, handle: object, *values: object) -> None:
        for name, value in zip(("_handle", *self._arguments), (handle, *values)):
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a {type(self).__name__} is immutable: {name} cannot be set")

    def __reduce__(self) -> tuple[type[_Body], tuple[Any, ...]]:
        return type(self), tuple(getattr(self, name) for name in self._arguments)


class PressureField(_Body):
    """A soft body: tetrahedra with a pressure at each vertex, linear in between, zero on the
    surface. Immutable.

    Arguments are in the body's own frame. The class methods make fields of shapes whose pressure
    grows linearly with the depth below the surface, up to ``modulus`` at the deepest place (Elandt
    et al. 2019, section VI; the hydroelastic modulus of Drake).

    Args:
        vertices: ``(n, 3)`` m.
        tetrahedra: ``(m, 4)`` indices of vertices, of positive volume. Unused vertices are ignored.
        pressure: ``(n,)`` Pa, not negative; zero at every vertex of the surface.

    Raises:
        TypeError, ValueError: for wrong shapes, indices out of range, numbers that are not finite,
            flat or inverted tetrahedra, faces of more than two tetrahedra, pressure on the surface,
            or none inside; the message names the array and the row.
    """

    _arguments = ("vertices", "tetrahedra", "pressure")
    __slots__ = _arguments

    vertices: Array
    tetrahedra: Indices
    pressure: Array

    def __init__(
        self, vertices: npt.ArrayLike, tetrahedra: npt.ArrayLike, pressure: npt.ArrayLike
    ) -> None:
        points = _rows("vertices", vertices, 3)
        cells = _indices("tetrahedra", tetrahedra, 4)
        values = vector("pressure", pressure, len(points))
        handle = _created(_SOFT, points, cells, values, 0.0, "tetrahedra")
        _check_unused(cells, values)
        _check_surface(cells, values)
        self._fill(handle, _frozen(points, float), _frozen(cells, np.int32), _frozen(values, float))

    def __repr__(self) -> str:
        return (
            f"PressureField({len(self.vertices)} vertices, {len(self.tetrahedra)} tetrahedra, "
            f"at most {self.pressure.max():.3g} Pa)"
        )

    @classmethod
    def _of(cls, made: Tessellation, modulus: float) -> PressureField:
        points, cells, depth = made
        return cls(points, cells, number("modulus", modulus, above=0) * depth)

    @classmethod
    def sphere(cls, radius: float, modulus: float, *, hint: float = 0.02) -> PressureField:
        """Make a sphere about the origin.

        Args:
            radius: m.
            modulus: pressure at the deepest place, Pa.
            hint: longest edges on the surface, m.

        Raises:
            TypeError, ValueError: for numbers that are not positive and finite, and wrong shapes.
        """
        radius = number("radius", radius, above=0)
        return cls._of(
            tessellation.ellipsoid(np.full(3, radius), number("hint", hint, above=0)), modulus
        )

    @classmethod
    def ellipsoid(
        cls, semi_axes: npt.ArrayLike, modulus: float, *, hint: float = 0.02
    ) -> PressureField:
        """Make an ellipsoid about the origin, with the pressure ``modulus (1 - |x / semi_axes|)``.

        Args:
            semi_axes: ``(3,)`` m along x, y, z.
            modulus: pressure at the deepest place, Pa.
            hint: longest edges on the surface, m.

        Raises:
            TypeError, ValueError: for numbers that are not positive and finite, and wrong shapes.
        """
        axes = _sizes("semi_axes", semi_axes)
        return cls._of(tessellation.ellipsoid(axes, number("hint", hint, above=0)), modulus)

    @classmethod
    def box(cls, half_sizes: npt.ArrayLike, modulus: float) -> PressureField:
        """Make a box about the origin.

        Args:
            half_sizes: ``(3,)`` m along x, y, z.
            modulus: pressure at the deepest place, Pa.

        Raises:
            TypeError, ValueError: for numbers that are not positive and finite, and wrong shapes.
        """
        return cls._of(tessellation.box(_sizes("half_sizes", half_sizes)), modulus)

    @classmethod
    def cylinder(
        cls, radius: float, half_length: float, modulus: float, *, hint: float = 0.02
    ) -> PressureField:
        """Make a cylinder about the z axis, centred at the origin.

        Args:
            radius, half_length: m.
            modulus: pressure at the deepest place, Pa.
            hint: longest edges on the surface, m.

        Raises:
            TypeError, ValueError: for numbers that are not positive and finite, and wrong shapes.
        """
        made = tessellation.cylinder(
            number("radius", radius, above=0),
            number("half_length", half_length, above=0),
            number("hint", hint, above=0),
        )
        return cls._of(made, modulus)

    @classmethod
    def capsule(
        cls, radius: float, half_length: float, modulus: float, *, hint: float = 0.02
    ) -> PressureField:
        """Make a capsule about the z axis, centred at the origin.

        Args:
            radius: m.
            half_length: half of the distance between the centres of its caps, m.
            modulus: pressure at the deepest place, Pa.
            hint: longest edges on the surface, m.

        Raises:
            TypeError, ValueError: for numbers that are not positive and finite, and wrong shapes.
        """
        made = tessellation.capsule(
            number("radius", radius, above=0),
            number("half_length", half_length, above=0),
            number("hint", hint, above=0),
        )
        return cls._of(made, modulus)

    @classmethod
    def convex_mesh(
        cls, vertices: npt.ArrayLike, triangles: npt.ArrayLike, modulus: float
    ) -> PressureField:
        """Make the inside of a closed convex surface; its pressure is largest at the centroid of its volume.

        Args:
            vertices: ``(n, 3)`` m.
            triangles: ``(m, 3)`` indices of vertices, anticlockwise seen from outside.
            modulus: pressure at the deepest place, Pa.

        Raises:
            TypeError, ValueError: for wrong shapes, indices out of range, and surfaces that are not
                closed and convex.
        """
        points, faces = _rows("vertices", vertices, 3), _indices("triangles", triangles, 3)
        return cls._of(tessellation.hull(points, faces), modulus)

    @classmethod
    def from_file(
        cls, path: str | os.PathLike[str], modulus: float, *, scale: float = 1.0
    ) -> PressureField:
        """Read tetrahedra from a file (VTK, VTU, MSH and other formats of meshio). Needs the extra
        ``fields``.

        The pressure grows with the distance from the surface, up to ``modulus`` where this distance
        is largest.

        Args:
            path: path of the file; its cells of lower dimensions are ignored.
            modulus: Pa.
            scale: the file's unit of length, m.

        Raises:
            FileNotFoundError: if there is no such file.
            ValueError: if it cannot be read, has no tetrahedra, has volumes of other shapes or no
                inner vertex, or as for arrays.
            ImportError: without meshio.
        """
        scale = number("scale", scale, above=0)
        points, cells, depth = volumes.read_tetrahedra(path)
        return cls._of((scale * points, cells, depth), modulus)

    @classmethod
    def within(
        cls,
        vertices: npt.ArrayLike,
        triangles: npt.ArrayLike,
        modulus: float,
        *,
        edge: float | None = None,
    ) -> PressureField:
        """Fill a closed surface of any shape with tetrahedra by fTetWild (Hu et al. 2020). Needs
        the extra ``fields``.

        The pressure is as for :meth:`from_file`. The surface is kept to within a thousandth of its
        size.

        Args:
            vertices, triangles: ``(n, 3)`` m and ``(m, 3)`` indices, anticlockwise seen from
                outside.
            modulus: Pa.
            edge: approximate length of edges, m; None: a twentieth of the surface's diagonal.

        Raises:
            TypeError, ValueError: as for arrays, and for surfaces with a rim, or too thin for an
                inner vertex.
            ImportError: without pytetwild.
        """
        surface = RigidSurface(vertices, triangles)
        length = None if edge is None else number("edge", edge, above=0)
        made = volumes.tetrahedra_within(surface.vertices, surface.triangles, length)
        return cls._of(made, modulus)


class RigidSurface(_Body):
    """The surface of a rigid body, which presses into soft ones. Immutable.

    Args:
        vertices: ``(n, 3)`` m, in the body's own frame.
        triangles: ``(m, 3)`` indices of vertices, anticlockwise seen from outside. The surface need
            not be closed, but energy is not conserved at its rim.

    Raises:
        TypeError, ValueError: for wrong shapes, indices out of range, numbers that are not finite,
            triangles without area, or neighbours with opposite orientation; the message names the
            array and the row.
    """

    _arguments = ("vertices", "triangles")
    __slots__ = _arguments

    vertices: Array
    triangles: Indices

    def __init__(self, vertices: npt.ArrayLike, triangles: npt.ArrayLike) -> None:
        points, faces = _rows("vertices", vertices, 3), _indices("triangles", triangles, 3)
        handle = _created(_RIGID, points, faces, _NOTHING, 0.0, "triangles")
        _check_windings(faces)
        self._fill(handle, _frozen(points, float), _frozen(faces, np.int32))

    def __repr__(self) -> str:
        return f"RigidSurface({len(self.vertices)} vertices, {len(self.triangles)} triangles)"

    @classmethod
    def of(cls, field: PressureField) -> RigidSurface:
        """Return the surface of a soft body as a rigid surface.

        Args:
            field: the soft body's pressure field.

        Raises:
            TypeError: if it is not a ``PressureField``.
        """
        instance("field", field, PressureField)
        return cls(field.vertices, tessellation.surface_of(field.tetrahedra))


class HalfSpace(_Body):
    """All points with ``z <= 0`` of its own frame. Immutable.

    Args:
        slope: pressure per depth, Pa/m (a slab's modulus over its thickness); None: rigid.

    Raises:
        TypeError, ValueError: if the slope is not a positive number.
    """

    _arguments = ("slope",)
    __slots__ = _arguments

    slope: float | None

    def __init__(self, slope: float | None = None) -> None:
        given = None if slope is None else number("slope", slope, above=0)
        none, points = np.zeros((0, 3), dtype=np.int32), np.zeros((0, 3))
        if given is None:
            handle = _created(_RIGID_SPACE, points, none, _NOTHING, 0.0, "")
        else:
            cells = np.zeros((0, 3), dtype=np.int32)
            handle = _created(_SOFT_SPACE, points, cells, _NOTHING, given, "")
        self._fill(handle, given)

    def __repr__(self) -> str:
        return f"HalfSpace({'' if self.slope is None else f'slope={self.slope:g}'})"


def _sizes(name: str, values: npt.ArrayLike) -> Array:
    sizes = vector(name, values, 3)
    if not np.all(sizes > 0.0):
        raise ValueError(f"{name}: expected positive numbers, got {sizes.tolist()}")
    return sizes


def _created(
    kind: int, points: Array, elements: Indices, pressure: Array, slope: float, noun: str
) -> object:
    try:
        return _core._field_create(kind, points, elements, pressure, slope)
    except ValueError as error:
        raise ValueError(str(error).replace("elements", noun, 1)) from None


def _check_unused(tetrahedra: Indices, pressure: Array) -> None:
    unused = np.flatnonzero(np.bincount(tetrahedra.ravel(), minlength=len(pressure)) == 0)
    loaded = unused[pressure[unused] > 0.0]
    if len(loaded):
        raise ValueError(
            f"pressure: vertex {loaded[0]} has {pressure[loaded[0]]:g} Pa and belongs to no tetrahedron"
        )


def _check_windings(triangles: Indices) -> None:
    """Check that any two triangles with a common edge run through it in opposite directions."""
    edges = triangles[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2)
    _, index, count = np.unique(
        np.sort(edges, axis=1), axis=0, return_inverse=True, return_counts=True
    )
    index = index.reshape(-1)
    ways = np.bincount(index, weights=np.sign(edges[:, 1] - edges[:, 0]))
    wrong = np.flatnonzero((count == 2) & (ways != 0.0))
    if len(wrong):
        first, second = np.flatnonzero(index == wrong[0]) // 3
        raise ValueError(
            f"triangles: rows {first} and {second} have opposite orientations; reverse one of them"
        )


def _check_surface(tetrahedra: Indices, pressure: Array) -> None:
    """Check that every face belongs to one or two tetrahedra, and that the pressure is zero on outer faces."""
    faces = np.sort(tetrahedra[:, [[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]]], axis=2)
    _, index, count = np.unique(
        faces.reshape(-1, 3), axis=0, return_inverse=True, return_counts=True
    )
    shared = count[index.reshape(-1)].reshape(-1, 4)
    if shared.max() > 2:
        row = int(np.argmax(shared.max(axis=1)))
        raise ValueError(
            f"tetrahedra: row {row} has a face that {shared.max()} share; it is no surface"
        )
    outside = faces[shared == 1]
    loaded = np.flatnonzero(pressure[outside].max(axis=1) > 1e-14 * pressure.max())
    if len(loaded):
        vertex = int(outside[loaded[0]][np.argmax(pressure[outside[loaded[0]]])])
        raise ValueError(
            f"pressure: vertex {vertex} lies on the surface and has {pressure[vertex]:g} Pa; expected 0"
        )
