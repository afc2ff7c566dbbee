"""The geometries of a compiled model, its meshes, and the pairs of geometries that may touch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from qdsim.description import Exclude, Geom, HeightField, Mesh, Pair, PointCloud
from qdsim.description.contact_solver import SOLREF
from qdsim.description.hulls import hull_of_compiled
from qdsim.formats.reading import Reading
from qdsim.formats.softness import read_softness

_GEOM_NAMES = {
    0: "plane",
    1: "hfield",
    2: "sphere",
    3: "capsule",
    4: "ellipsoid",
    5: "cylinder",
    6: "box",
    7: "mesh",
}


class Geometries:
    """Reads the geometries of a compiled model, with frictions of a URDF and the caller's point clouds."""

    def __init__(self, reading: Reading, clouds: Mapping[str, PointCloud]) -> None:
        self.r = reading
        self.clouds = clouds
        self._frictions = self._match_frictions()
        self._softness = read_softness(reading)
        self._hfields: dict[int, HeightField] = {}

    def _match_frictions(self) -> list[float | None]:
        """Return the friction that a URDF gives to each geometry.

        The geometries of a link are in the order of its collision elements.
        """
        m = self.r.m
        result: list[float | None] = [None] * int(m.ngeom)
        for link, frictions in self.r.origin.frictions.items():
            if all(value is None for value in frictions):
                continue
            geoms = [
                g
                for g in range(m.ngeom)
                if self.r.body_names[int(m.geom_bodyid[g])] == link and m.geom_contype[g]
            ]
            if len(geoms) != len(frictions):
                self.r.refusals.error(
                    f"link '{link}': its friction cannot be matched with its geometries "
                    '(<compiler fusestatic="false"/> keeps links apart)'
                )
                continue
            for g, value in zip(geoms, frictions):
                result[g] = value
        return result

    def geom(self, g: int) -> Geom | None:
        m, name = self.r.m, self.r.geom_names[g]
        kind = int(m.geom_type[g])
        shape: Any = _GEOM_NAMES.get(kind)
        off = self.r.disabled("contact")
        contype = 0 if off else int(m.geom_contype[g])
        conaffinity = 0 if off else int(m.geom_conaffinity[g])
        cloud = self.clouds.get(name)
        if cloud is not None:
            shape = "cloud"
        if not self._has_shape(g):
            self._refuse(g, bool(contype or conaffinity))
            return None
        self._note_geom(g)
        friction, margin = self._surface(g)
        mesh = int(m.geom_dataid[g])
        pos, quat = m.geom_pos[g], m.geom_quat[g]
        if cloud is not None and _GEOM_NAMES.get(kind) == "mesh":
            pos, quat = self._frame_of_file(g)
        return Geom(
            name,
            shape,
            () if shape in ("mesh", "cloud", "hfield") else m.geom_size[g],
            pos=pos,
            quat=quat,
            friction=friction,
            condim=int(m.geom_condim[g]),
            priority=int(m.geom_priority[g]),
            contype=contype,
            conaffinity=conaffinity,
            margin=margin,
            mesh=self.r.mesh_names[mesh] if shape == "mesh" else None,
            rgba=self._colour(g),
            cloud=cloud,
            hfield=self._hfield(g) if shape == "hfield" else None,
            soft=self._softness.get(name),
            solmix=float(m.geom_solmix[g]),
            **self._solver("geom", g),
        )

    def _solver(self, kind: str, index: int) -> dict[str, Any]:
        """Return the solver parameters of a geometry or pair; MuJoCo's override option replaces them."""
        m = self.r.m
        if self.r.enabled("override"):
            found: dict[str, Any] = {"solref": m.opt.o_solref, "solimp": m.opt.o_solimp}
        else:
            fields = ("solref", "solimp") + (("solreffriction",) if kind == "pair" else ())
            found = {name: getattr(m, f"{kind}_{name}")[index] for name in fields}
        for name in ("solref", "solreffriction"):
            if name in found and (found[name][0] > 0.0) != (found[name][1] > 0.0):
                found[name] = SOLREF  # MuJoCo replaces mixed signs by the default, too
        return found

    def _colour(self, g: int) -> tuple[float, ...]:
        """Return the colour of a geometry, or that of its material if it has the default colour."""
        m = self.r.m
        own, material = tuple(map(float, m.geom_rgba[g])), int(m.geom_matid[g])
        if material >= 0 and own == (0.5, 0.5, 0.5, 1.0):
            return tuple(map(float, m.mat_rgba[material]))
        return own

    def _refuse(self, g: int, collides: bool) -> None:
        """Refuse a geometry without a shape if something may touch it; otherwise note that it is not shown."""
        m, name = self.r.m, self.r.geom_names[g]
        what = "signed distance fields"
        pairs = range(0 if self.r.disabled("contact") else m.npair)
        if collides or any(g in (int(m.pair_geom1[p]), int(m.pair_geom2[p])) for p in pairs):
            text = f"geom '{name}': {what} are not supported"
            self.r.refusals.error(f"{text}; clouds= puts points in its place")
        else:
            self.r.ignored.append(f"geom '{name}': {what} cannot be shown")

    def _surface(self, g: int) -> tuple[Any, float]:
        """Return frictions and margin; MuJoCo's override option or a URDF's friction replaces those of the geometry."""
        m, given = self.r.m, self._frictions[g]
        friction, margin = m.geom_friction[g], float(m.geom_margin[g])
        if self.r.enabled("override"):
            friction, margin = np.asarray(m.opt.o_friction)[[0, 2, 3]], 0.5 * m.opt.o_margin
            if len(set(m.opt.o_friction[:2])) > 1 or len(set(m.opt.o_friction[3:])) > 1:
                self.r.refusals.error("option o_friction: friction must be isotropic")
        return friction if given is None else (given, *friction[1:]), margin

    def _has_shape(self, g: int) -> bool:
        """Return whether a step can simulate contacts of a geometry; signed distance fields have no shape."""
        return int(self.r.m.geom_type[g]) in _GEOM_NAMES or self.r.geom_names[g] in self.clouds

    def _hfield(self, g: int) -> HeightField:
        """Convert a height field; MuJoCo's heights are fractions of size[2], and its bottom is at -size[3]."""
        m, i = self.r.m, int(self.r.m.geom_dataid[g])
        if i not in self._hfields:
            rows, columns, begin = (
                int(values[i]) for values in (m.hfield_nrow, m.hfield_ncol, m.hfield_adr)
            )
            size = m.hfield_size[i]
            heights = size[2] * np.float64(m.hfield_data[begin : begin + rows * columns])
            lowest = float(heights.min(initial=0.0))
            try:
                field = HeightField(heights.reshape(rows, columns), size[:2], size[3] + lowest)
            except ValueError as error:
                raise ValueError(f"geom '{self.r.geom_names[g]}': {error}") from None
            self._hfields[i] = field
        return self._hfields[i]

    def _frame_of_file(self, g: int) -> tuple[Any, Any]:
        """Return the pose of a mesh geometry as the file gives it.

        MuJoCo's compiler turns and shifts the vertices: a vertex x of the compiled mesh stands at
        mesh_quat x + mesh_pos in the mesh file. The compiled pose is changed back accordingly.
        """
        import mujoco

        m, mesh = self.r.m, int(self.r.m.geom_dataid[g])
        back, quat, shift = np.zeros(4), np.zeros(4), np.zeros(3)
        mujoco.mju_negQuat(back, m.mesh_quat[mesh])
        mujoco.mju_mulQuat(quat, m.geom_quat[g], back)
        mujoco.mju_rotVecQuat(shift, m.mesh_pos[mesh], quat)
        return m.geom_pos[g] - shift, quat

    def _note_geom(self, g: int) -> None:
        m, name = self.r.m, self.r.geom_names[g]
        if m.geom_gap[g]:
            self.r.ignored.append(f"geom '{name}': gap {m.geom_gap[g]:g}")
        for what, label in (("geom_adhesion", "adhesion"), ("geom_surfacevel", "surfacevel")):
            if self.r.given(what, g):
                self.r.refusals.error(f"geom '{name}': {label} is not supported")

    def pairs(self) -> tuple[Pair, ...]:
        m = self.r.m
        if self.r.disabled("contact"):
            return ()
        pairs: dict[frozenset[str], Pair] = {}
        for p in range(m.npair):
            both = (int(m.pair_geom1[p]), int(m.pair_geom2[p]))
            if not all(map(self._has_shape, both)):
                continue  # an error or note exists since the geometry was read
            a, b = (self.r.geom_names[g] for g in both)
            owner = f"pair '{a}' - '{b}'"
            if self.r.given("pair_adhesion", p):
                raise ValueError(f"{owner}: adhesion is not supported")
            if m.pair_gap[p]:
                self.r.ignored.append(f"{owner}: gap {m.pair_gap[p]:g}")
            friction = m.opt.o_friction if self.r.enabled("override") else m.pair_friction[p]
            margin = m.opt.o_margin if self.r.enabled("override") else m.pair_margin[p]
            solver = self._solver("pair", p)
            pair = Pair(a, b, int(m.pair_dim[p]), friction, float(margin), **solver)
            known = pairs.setdefault(frozenset((a, b)), pair)
            if known is not pair and known != replace(
                pair, geom_a=known.geom_a, geom_b=known.geom_b
            ):
                raise ValueError(f"{owner} is given twice, differently")
            if known is not pair:
                self.r.ignored.append(f"{owner}: given twice")
        return tuple(pairs.values())

    def excludes(self) -> tuple[Exclude, ...]:
        names = self.r.body_names
        signatures = [int(item) for item in self.r.m.exclude_signature]
        return tuple(
            Exclude(names[signature >> 16], names[signature & 0xFFFF]) for signature in signatures
        )

    def meshes(self) -> tuple[Mesh, ...]:
        m = self.r.m
        used = {
            int(m.geom_dataid[g])
            for g in range(m.ngeom)
            if _GEOM_NAMES.get(int(m.geom_type[g])) == "mesh"
            and self.r.geom_names[g] not in self.clouds
        }
        meshes = []
        for i in sorted(used):
            vertex, face = int(m.mesh_vertadr[i]), int(m.mesh_faceadr[i])
            vertices = m.mesh_vert[vertex : vertex + int(m.mesh_vertnum[i])]
            faces = m.mesh_face[face : face + int(m.mesh_facenum[i])]
            hull = hull_of_compiled(m, i)  # MuJoCo computes a hull for meshes that collide
            meshes.append(Mesh(self.r.mesh_names[i], vertices, faces, hull if len(hull) else None))
        return tuple(meshes)
