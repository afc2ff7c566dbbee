"""Decomposition of non-convex meshes into convex pieces by CoACD (Wei et al., "Approximate convex
decomposition for 3D meshes with collision-aware concavity and tree search", SIGGRAPH 2022)."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from qdsim.array_type import Array
from qdsim.description import Body, Description, Geom, Mesh, Pair
from qdsim.description.pairs import candidate_pairs
from qdsim.description.references import unknown_name
from qdsim.whole_files import replacing

CACHE_VARIABLE = "QDSIM_CACHE"
"""Environment variable that names the folder of the cache; if it is empty, nothing is cached."""

_CONVEX = 1e-3
"""A mesh counts as convex if it fills its convex hull but for this part of the volume."""

Pieces = list[tuple[Array, npt.NDArray[np.int32]]]


def decompose(
    description: Description,
    geoms: Iterable[str] | None = None,
    *,
    threshold: float = 0.05,
    pieces: int | None = None,
    seed: int = 0,
    cache: bool | str | os.PathLike[str] = True,
) -> Description:
    """Let non-convex meshes collide as several convex pieces instead of their hull (CoACD, Wei et
    al. 2022).

    A decomposed geometry keeps its name and is still drawn, but no longer collides. Its pieces,
    named ``<geom>_piece0`` and so on, collide with its friction, filters and explicit pairs.

    Args:
        description: The scene.
        geoms: Names of geometries of type mesh; None: all that collide and are not convex.
        threshold: Largest concavity of the pieces, relative to the mesh, 0.01 to 1.
        pieces: Largest number of pieces; None: no limit.
        seed: Seed of CoACD's search.
        cache: True: results are cached in ``$QDSIM_CACHE`` or, if that is not set, in
            ``$XDG_CACHE_HOME/qdsim`` (``~/.cache/qdsim``), under a hash of mesh and options. A
            folder: they are cached there. False: no cache.

    Raises:
        ImportError: CoACD is not installed: ``pip install 'qdsim[meshes]'``.
        ValueError: A name is unknown or not that of a mesh, or an option is out of range.
    """
    if not 0.01 <= threshold <= 1.0:
        raise ValueError(f"threshold must be between 0.01 and 1, got {threshold!r}")
    if pieces is not None and pieces < 1:
        raise ValueError(f"pieces must be positive, got {pieces!r}")
    folder = _cache_folder(cache)
    meshes = {mesh.name: mesh for mesh in description.meshes}
    chosen = _chosen(description, geoms, meshes)
    found: dict[str, list[Mesh]] = {}
    for name in dict.fromkeys(chosen.values()):
        options = {"threshold": float(threshold), "pieces": pieces or -1, "seed": int(seed)}
        parts = _pieces(meshes[name], options, folder)
        found[name] = _piece_meshes(name, parts, set(meshes))
    new_names: dict[str, list[str]] = {}
    taken = {geom.name for geom in description.geoms}
    bodies = [_taken_apart(body, chosen, found, taken, new_names) for body in description.bodies]
    return dataclasses.replace(
        description,
        bodies=tuple(bodies),
        meshes=description.meshes + tuple(mesh for parts in found.values() for mesh in parts),
        pairs=tuple(
            dataclasses.replace(pair, geom_a=a, geom_b=b)
            for pair in description.pairs
            for a, b in _replaced(pair, new_names)
        ),
    )


def _chosen(
    description: Description, geoms: Iterable[str] | None, meshes: dict[str, Mesh]
) -> dict[str, str]:
    """Return the mesh of each geometry that is to be decomposed, by the geometry's name."""
    known = {geom.name: geom for geom in description.geoms}
    if geoms is None:
        colliding = np.unique(candidate_pairs(description).geom)
        shapes = [description.geoms[i] for i in colliding.tolist()]
        return {
            geom.name: geom.mesh
            for geom in shapes
            if geom.mesh is not None and not is_convex(meshes[geom.mesh])
        }
    if isinstance(geoms, str):
        raise TypeError(f"geoms must be a sequence of names, got the string {geoms!r}")
    chosen = {}
    for name in geoms:
        if name not in known:
            raise ValueError(f"geoms: {unknown_name('geom', name, known)}")
        mesh = known[name].mesh
        if mesh is None:
            raise ValueError(f"geoms: {name!r} is a {known[name].type}, not a mesh")
        chosen[name] = mesh
    return chosen


def is_convex(mesh: Mesh) -> bool:
    """Return True if the triangles of a mesh enclose (almost) all of its convex hull."""
    inside = abs(_volume(mesh.vertices, mesh.faces))
    return inside >= (1.0 - _CONVEX) * abs(_volume(mesh.vertices, mesh.hull_faces))


def _volume(vertices: npt.NDArray[Any], faces: npt.NDArray[Any]) -> float:
    corners = vertices[faces] - vertices.mean(axis=0)
    return float(np.linalg.det(corners).sum() / 6.0)


def _pieces(mesh: Mesh, options: dict[str, Any], folder: Path | None) -> Pieces:
    key = hashlib.sha256()
    for item in (mesh.vertices, mesh.faces):
        key.update(f"{item.shape}{item.dtype}".encode() + item.tobytes())
    key.update(repr(sorted(options.items())).encode())
    file = None if folder is None else folder / f"pieces-{key.hexdigest()}.npz"
    if file is not None and (kept := _read_cache(file)) is not None:
        return kept
    result = _run_coacd(mesh, options)
    if file is not None:
        _write_cache(file, result)
    return result


def _run_coacd(mesh: Mesh, options: dict[str, Any]) -> Pieces:
    try:
        import coacd
    except ImportError:
        raise ImportError(
            "convex pieces of meshes need coacd: pip install 'qdsim[meshes]'", name="coacd"
        ) from None
    coacd.set_log_level("error")
    parts = coacd.run_coacd(
        coacd.Mesh(np.array(mesh.vertices), np.array(mesh.faces)),
        threshold=options["threshold"],
        max_convex_hull=options["pieces"],
        seed=options["seed"],
    )
    if not parts:
        raise ValueError(f"mesh {mesh.name!r}: CoACD finds no pieces of it")
    return [(np.array(v, dtype=np.float64), np.array(f, dtype=np.int32)) for v, f in parts]


def _cache_folder(cache: object) -> Path | None:
    if cache is False:
        return None
    if cache is not True:
        return Path(os.fspath(cache))  # type: ignore[call-overload]
    given = os.environ.get(CACHE_VARIABLE)
    if given is not None:
        return Path(given) if given else None
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "qdsim"


def _read_cache(file: Path) -> Pieces | None:
    try:
        with np.load(file, allow_pickle=False) as data:
            count = int(data["count"])
            return [(data[f"vertices{i}"], data[f"faces{i}"]) for i in range(count)]
    except FileNotFoundError:
        return None
    except Exception:  # the file is damaged or of another origin; it is written again
        return None


def _write_cache(file: Path, pieces: Pieces) -> None:
    """Write a file of the cache, completely or not at all; if the folder cannot be written to, do nothing."""
    arrays: dict[str, Any] = {"count": np.array(len(pieces))}
    for i, (vertices, faces) in enumerate(pieces):
        arrays[f"vertices{i}"], arrays[f"faces{i}"] = vertices, faces
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with replacing(file) as stream:
            np.savez_compressed(stream, **arrays)
    except OSError:
        return


def _piece_meshes(name: str, parts: Pieces, taken: set[str]) -> list[Mesh]:
    result = []
    for i, (vertices, faces) in enumerate(parts):
        piece = _free_name(f"{name}_piece{i}", taken)
        result.append(Mesh(piece, vertices, faces))
    return result


def _free_name(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _taken_apart(
    body: Body,
    chosen: dict[str, str],
    found: dict[str, list[Mesh]],
    taken: set[str],
    new_names: dict[str, list[str]],
) -> Body:
    geoms: list[Geom] = []
    for geom in body.geoms:
        if geom.name not in chosen:
            geoms.append(geom)
            continue
        geoms.append(dataclasses.replace(geom, contype=0, conaffinity=0))
        names = new_names.setdefault(geom.name, [])
        for i, mesh in enumerate(found[chosen[geom.name]]):
            names.append(_free_name(f"{geom.name}_piece{i}", taken))
            piece = dataclasses.replace(geom, name=names[-1], mesh=mesh.name)
            geoms.append(dataclasses.replace(piece, rgba=(*geom.rgba[:3], 0.0)))
    return dataclasses.replace(body, geoms=tuple(geoms))


def _replaced(pair: Pair, new_names: dict[str, list[str]]) -> list[tuple[str, str]]:
    first = new_names.get(pair.geom_a, [pair.geom_a])
    second = new_names.get(pair.geom_b, [pair.geom_b])
    return [(a, b) for a in first for b in second]
