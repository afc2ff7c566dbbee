"""A compiled MuJoCo model as a description.

Three things can happen to what the file says: it is honoured, it is listed in ``ignored`` (it has
no meaning in quasi-dynamics), or it is an error that names the element, because leaving it out
would give a wrong answer; the caller may have such things left out all the same, with a warning. Dry
friction of joints lies between and warns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from qdsim.description import (
    Body,
    Constraint,
    Coupling,
    Description,
    Exclude,
    Geom,
    Joint,
    Keyframe,
    Mesh,
    Pair,
    PointCloud,
)
from qdsim.description.arrays import rotation_matrix
from qdsim.description.hulls import hull_of_compiled
from qdsim.description.references import unknown_name
from qdsim.formats.actuation import Actuation, FileActuator, Plan
from qdsim.formats.equalities import Names, read_equalities
from qdsim.formats.refusals import Kind, Refusals

_JOINT_NAMES = {0: "free", 1: "ball", 2: "slide", 3: "hinge"}  # mjtJoint
_GEOM_NAMES = {0: "plane", 2: "sphere", 3: "capsule", 4: "ellipsoid", 5: "cylinder", 6: "box"}
_GEOM_MESH, _GEOM_HFIELD = 7, 1
_TRANSMISSIONS = {2: "slidercrank", 3: "tendon", 4: "site", 5: "body", 6: "so3"}  # mjtTrn
_ENABLE_OVERRIDE = 1
_SOLREF = (0.02, 1.0)
_SOLIMP = (0.9, 0.95, 0.001, 0.5, 2.0)


@dataclass(frozen=True)
class Origin:
    """Where a compiled model comes from. ``frictions``: of a URDF link's collision elements;
    ``repaired``: what was done to its inertias, if anything."""

    label: str
    urdf: bool = False
    frictions: dict[str, list[float | None]] = field(default_factory=dict)
    repaired: str | None = None


@dataclass(frozen=True)
class Wishes:
    """The caller's: actuation, clouds in the place of geometries, what may be left out."""

    actuation: Actuation
    clouds: Mapping[str, PointCloud]
    leave_out: frozenset[Kind]


def describe(
    model: Any,
    origin: Origin,
    wishes: Wishes,
    ignored: Sequence[str] = (),
) -> tuple[Description, list[str]]:
    """The scene, and warnings. Raises ValueError listing every element that cannot be honoured."""
    reader = _Reader(model, origin, wishes.clouds, Refusals(wishes.leave_out))
    reader.ignored.extend(ignored)
    try:
        reader.check_clouds()
        reader.check_equalities()
        plan = reader.read_actuation(wishes.actuation)
        reader.check_scene()
        reader.check_bodies()
        reader.check_tendons()
        bodies = reader.read_bodies() if not reader.refusals.errors else ()
        if not reader.refusals.errors:
            description = Description(
                bodies=bodies,
                actuators=tuple(plan.actuators),
                pairs=reader.read_pairs(),
                excludes=reader.read_excludes(),
                constraints=tuple(reader.constraints),
                keyframes=reader.read_keyframes(plan),
                meshes=reader.read_meshes(),
                gravity=reader.read_gravity(),
                friction_combination="harmonic" if origin.urdf else "max",
                parent_filter=not reader.disabled("filterparent"),
                name=reader.model_name(),
                ignored=tuple(dict.fromkeys(reader.ignored + reader.refusals.left_out)),
            )
    except ValueError as error:
        raise ValueError(f"source: {origin.label}: {error}") from None
    if reader.refusals.errors:
        raise ValueError(
            _listed(f"source: {origin.label} cannot be honoured", reader.refusals.errors)
        )
    return description, reader.warnings()


def _listed(title: str, problems: Sequence[str]) -> str:
    if len(problems) == 1:
        return f"{title}: {problems[0]}"
    shown = [f"  {item}" for item in problems[:20]]
    if len(problems) > 20:
        shown.append(f"  and {len(problems) - 20} more")
    return "\n".join([f"{title}:", *shown])


class _Reader:
    """One pass over a compiled model."""

    def __init__(
        self,
        model: Any,
        origin: Origin,
        clouds: Mapping[str, PointCloud],
        refusals: Refusals,
    ) -> None:
        self.m = model
        self.clouds = clouds
        self.origin = origin
        self.refusals = refusals
        self.ignored: list[str] = []
        self.body_names = self._names("body", model.nbody, model.name_bodyadr)
        self.joint_names = self._names("joint", model.njnt, model.name_jntadr)
        self.geom_names = self._names("geom", model.ngeom, model.name_geomadr)
        self.actuator_names = self._names(
            "actuator", len(model.actuator_trntype), model.name_actuatoradr
        )
        self.mesh_names = self._names("mesh", model.nmesh, model.name_meshadr)
        self.dropped_geoms: set[int] = set()
        self.constraints: list[Constraint] = []
        self.dry_friction: list[str] = []
        self.urdf_frictions = self._match_frictions()

    # ------------------------------------------------------------ names and options

    def _names(self, kind: str, count: int, addresses: Any) -> list[str]:
        """Names; elements without one are called by kind and index, as in "geom5"."""
        table = bytes(self.m.names)
        raw = []
        for i in range(count):
            begin = int(addresses[i])
            raw.append(table[begin : table.index(b"\0", begin)].decode("utf-8", "replace"))
        taken = set(raw)
        for i, name in enumerate(raw):
            if not name:
                name = f"{kind}{i}"
                while name in taken:
                    name += "_"
                taken.add(name)
                raw[i] = name
        return raw

    def _name(self, kind: str, index: int, addresses: Any) -> str:
        return self._names(kind, index + 1, addresses)[index]

    def _field(self, name: str, default: Any = 0) -> Any:
        """A field of the compiled model that older or newer versions of MuJoCo do not have."""
        return getattr(self.m, name, default)

    def model_name(self) -> str:
        table = bytes(self.m.names)
        return table[: table.index(b"\0")].decode("utf-8", "replace") or "model"

    def disabled(self, what: str) -> bool:
        """True if an option of the file switches this off. The bits move between versions."""
        import mujoco

        bits = mujoco.mjtDisableBit.__members__
        names = [what]
        if what in ("equality", "frictionloss", "limit", "contact"):
            names.append("constraint")
        elif what == "spring":
            names.append("passive")
        mask = sum(int(bits.get(f"mjDSBL_{name.upper()}", 0)) for name in names)
        return bool(int(self.m.opt.disableflags) & mask)

    @property
    def overridden(self) -> bool:
        """The file replaces margin and friction of all contacts."""
        return bool(int(self.m.opt.enableflags) & _ENABLE_OVERRIDE)

    def read_gravity(self) -> Any:
        return (0.0, 0.0, 0.0) if self.disabled("gravity") else tuple(self.m.opt.gravity)

    # ------------------------------------------------------------ what cannot be honoured

    def check_clouds(self) -> None:
        for name in self.clouds:
            if name not in self.geom_names:
                self.refusals.error(f"clouds: {unknown_name('geom', name, self.geom_names)}")

    def check_scene(self) -> None:
        m = self.m
        if self._field("nflex"):
            name = self._name("flex", 0, m.name_flexadr)
            self.refusals.error(f"flex '{name}': deformable bodies are not supported")
        for kind, addresses in (
            ("body", self._field("body_plugin", ())),
            ("geom", self._field("geom_plugin", ())),
            ("actuator", self._field("actuator_plugin", ())),
            ("joint", self._field("jnt_plugin", ())),
        ):
            names = getattr(self, f"{kind}_names")
            for i, plugin in enumerate(addresses):
                if plugin >= 0:
                    self.refusals.error(f"{kind} '{names[i]}': plugins are not supported")
        fluid = m.opt.density > 0.0 or m.opt.viscosity > 0.0
        if fluid and np.any(m.opt.wind):
            self.refusals.error("option wind: forces of a moving fluid are not supported")
        elif fluid:
            self.ignored.append("option density, viscosity: a fluid at rest resists motion only")
        if self.disabled("contact"):
            self.ignored.append("contacts: switched off by the file")

    def check_bodies(self) -> None:
        m = self.m
        carried = self._carried_by_unactuated()
        gravity = np.any(self.read_gravity())
        for i in range(m.nbody):
            owner = f"body '{self.body_names[i]}'"
            if m.body_mocapid[i] >= 0:
                self.refusals.refuse("mocap", f"{owner}: mocap bodies are not supported")
            compensation = float(self._field("body_gravcomp", np.zeros(m.nbody))[i])
            if compensation and gravity and carried[i]:
                self.refusals.error(
                    f"{owner}: gravcomp {compensation:g} on a body that unactuated joints carry "
                    "is not supported"
                )
            elif compensation:
                self.ignored.append(
                    f"{owner}: gravcomp {compensation:g} (gravity does not act on actuated joints)"
                )

    def _carried_by_unactuated(self) -> list[bool]:
        m = self.m
        result = [False] * m.nbody
        for i in range(1, m.nbody):
            begin = int(m.body_jntadr[i])
            joints = range(begin, begin + int(m.body_jntnum[i])) if begin >= 0 else range(0)
            own = any(self.joint_names[j] not in self.actuated for j in joints)
            result[i] = own or result[int(m.body_parentid[i])]
        return result

    def check_equalities(self) -> None:
        if not self.disabled("equality"):
            names = Names(self.body_names, self.joint_names)
            labels = self._names("equality", self.m.neq, self.m.name_eqadr)
            found = read_equalities(self.m, labels, names)
            self.constraints = found.constraints
            for kind, text in found.problems:
                self.refusals.refuse(kind, text)
            self.ignored.extend(found.ignored)

    def check_tendons(self) -> None:
        m = self.m
        for i, name in enumerate(self._names("tendon", m.ntendon, m.name_tendonadr)):
            acts = [
                what
                for what, value in (
                    ("stiffness", m.tendon_stiffness[i]),
                    ("limits", m.tendon_limited[i] and not self.disabled("limit")),
                    ("dry friction", m.tendon_frictionloss[i]),
                )
                if np.any(value)
            ]
            if acts:
                self.refusals.refuse(
                    "tendons",
                    f"tendon '{name}': tendons are not supported (this one has {acts[0]})",
                )
            else:
                self.ignored.append(f"tendon '{name}': exerts no force")

    def warnings(self) -> list[str]:
        """What changes the answer and was left out, or was repaired."""
        result = []
        if self.dry_friction:
            names = ", ".join(repr(name) for name in self.dry_friction)
            result.append(f"dry friction (frictionloss) is left out, joints {names}")
        if self.refusals.left_out:
            result.append("left out: " + "; ".join(self.refusals.left_out))
        if self.origin.repaired is not None:
            result.append(self.origin.repaired)
        return [f"{self.origin.label}: {item}" for item in result]

    # ------------------------------------------------------------ actuators

    def read_actuation(self, actuation: Actuation) -> Plan:
        """Fills ``actuated``; adds to ``problems`` and ``ignored``."""
        m = self.m
        scalar = [name for j, name in enumerate(self.joint_names) if _scalar(int(m.jnt_type[j]))]
        other = [name for name in self.joint_names if name not in set(scalar)]
        file = []
        for i, name in enumerate(self.actuator_names):
            group = int(m.actuator_group[i])
            off = self.disabled("actuation") or (
                0 <= group <= 30 and (int(m.opt.disableactuator) >> group) & 1
            )
            if off:
                self.ignored.append(f"actuator '{name}': switched off by the file")
            else:
                file.append(self._file_actuator(i))
        followers = {item.joint for item in self.constraints if isinstance(item, Coupling)}
        plan = actuation.plan(file, scalar, other, followers, self.origin.urdf, self.refusals)
        self.ignored.extend(plan.ignored)
        self.actuated = {actuator.joint for actuator in plan.actuators}
        return plan

    def _file_actuator(self, i: int) -> FileActuator:
        m, name = self.m, self.actuator_names[i]
        transmission = int(m.actuator_trntype[i])
        if transmission not in (0, 1):
            what = _TRANSMISSIONS.get(transmission, "this kind of")
            problem = f"{what} transmission is not supported"
            return FileActuator(name, i, None, problem=problem, tendon=what == "tendon")
        j = int(m.actuator_trnid[i, 0])
        joint = self.joint_names[j]
        if not _scalar(int(m.jnt_type[j])):
            kind = _JOINT_NAMES[int(m.jnt_type[j])]
            problem = f"joint '{joint}' is a {kind} joint, only hinges and slides can be actuated"
            return FileActuator(name, i, None, problem=problem)
        limit = self._force_limit(i, j)
        stiffness, gear, problem = self._spring(i)
        if problem:
            return FileActuator(name, i, joint, problem=problem, limit=limit)
        if m.actuator_biasprm[i, 2]:
            self.ignored.append(f"actuator '{name}': velocity gain {-m.actuator_biasprm[i, 2]:g}")
        if int(m.actuator_dyntype[i]) in (2, 3):
            self.ignored.append(f"actuator '{name}': time constant {m.actuator_dynprm[i, 0]:g}")
        for what in ("damping", "armature", "delay"):
            value = np.ravel(self._field(f"actuator_{what}", np.zeros(i + 1))[i])
            if np.any(value):
                self.ignored.append(f"actuator '{name}': {what} {value[0]:g}")
        limited = bool(m.actuator_ctrllimited[i]) and not self.disabled("clampctrl")
        low, high = m.actuator_ctrlrange[i]
        bounds = (float(low), float(high)) if limited else None
        return FileActuator(name, i, joint, stiffness, gear, bounds, limit=limit)

    def _force_limit(self, i: int, j: int) -> str | None:
        m = self.m
        if m.actuator_forcelimited[i]:
            low, high = m.actuator_forcerange[i]
            return f"forcerange {low:g} {high:g}"
        if self._field("jnt_actfrclimited", np.zeros(m.njnt))[j] and not self.origin.urdf:
            low, high = m.jnt_actfrcrange[j]
            return f"actuatorfrcrange {low:g} {high:g} of joint '{self.joint_names[j]}'"
        return None

    def _spring(self, i: int) -> tuple[float, float, str]:
        """Joint stiffness and effective gear of a position actuator, or what it is instead."""
        m = self.m
        gain, bias = m.actuator_gainprm[i], m.actuator_biasprm[i]
        gear = float(m.actuator_gear[i, 0])
        only = "is not a position actuator"
        if np.ravel(self._field("actuator_ctrlnum", np.ones(i + 1)))[i] != 1:
            return 0.0, 0.0, f"{only}: it has several controls"
        if int(m.actuator_gaintype[i]) != 0 or int(m.actuator_biastype[i]) not in (0, 1):
            return 0.0, 0.0, f"{only}: its gain or bias is neither fixed nor affine"
        if int(m.actuator_dyntype[i]) not in (0, 2, 3):
            return 0.0, 0.0, f"{only}: it has activation dynamics"
        position_gain = -float(bias[1]) if int(m.actuator_biastype[i]) == 1 else 0.0
        if position_gain == 0.0:
            return 0.0, 0.0, f"{only}: its force does not depend on the joint's position"
        if position_gain < 0.0:
            return 0.0, 0.0, f"its stiffness {position_gain:g} is negative"
        if bias[0]:
            return 0.0, 0.0, f"{only}: it has a constant force {bias[0]:g}"
        if gain[0] == 0.0 or gear == 0.0:
            return 0.0, 0.0, f"{only}: its gain or gear is zero"
        return position_gain * gear * gear, gear * position_gain / float(gain[0]), ""

    # ------------------------------------------------------------ bodies

    def read_bodies(self) -> tuple[Body, ...]:
        m = self.m
        bodies = []
        for i, name in enumerate(self.body_names):
            begin, count = int(m.body_jntadr[i]), int(m.body_jntnum[i])
            joints = tuple(self._joint(j) for j in range(begin, begin + count) if begin >= 0)
            begin, count = int(m.body_geomadr[i]), int(m.body_geomnum[i])
            geoms = tuple(
                geom
                for g in range(begin, begin + count)
                if begin >= 0 and (geom := self._geom(g)) is not None
            )
            pos, quat = m.body_pos[i], m.body_quat[i]
            if joints and joints[0].type == "free":
                at = int(m.jnt_qposadr[m.body_jntadr[i]])
                pos, quat = m.qpos0[at : at + 3], m.qpos0[at + 3 : at + 7]
            axes = rotation_matrix(m.body_iquat[i])
            inertia = axes @ np.diag(m.body_inertia[i]) @ axes.T
            if np.array_equal(m.body_iquat[i], (1.0, 0.0, 0.0, 0.0)):
                inertia = np.diag(m.body_inertia[i])
            bodies.append(
                Body(
                    name="world" if i == 0 else name,
                    parent="world" if i == 0 else self.body_names[int(m.body_parentid[i])],
                    pos=pos,
                    quat=quat,
                    mass=float(m.body_mass[i]) if i else 0.0,
                    com=m.body_ipos[i] if i and m.body_mass[i] else (0.0, 0.0, 0.0),
                    inertia=0.5 * (inertia + inertia.T) if i else np.zeros((3, 3)),  # type: ignore[arg-type]
                    joints=joints,
                    geoms=geoms,
                )
            )
        return tuple(bodies)

    def _joint(self, j: int) -> Joint:
        m, name = self.m, self.joint_names[j]
        kind: Any = _JOINT_NAMES[int(m.jnt_type[j])]
        limited = bool(m.jnt_limited[j]) and not self.disabled("limit")
        stiffness = 0.0 if self.disabled("spring") else float(m.jnt_stiffness[j])
        self._note_joint(j, limited)
        qpos = int(m.jnt_qposadr[j])
        if kind in ("ball", "free"):
            if limited:
                self.refusals.refuse(
                    "ball_limits", f"joint '{name}': limits on {kind} joints are not supported"
                )
            if stiffness:
                self.refusals.error(f"joint '{name}': springs on {kind} joints are not supported")
            return Joint(name, kind, pos=m.jnt_pos[j] if kind == "ball" else (0.0,) * 3)
        return Joint(
            name,
            kind,
            pos=m.jnt_pos[j],
            axis=m.jnt_axis[j],
            ref=float(m.qpos0[qpos]),
            range=tuple(m.jnt_range[j]) if limited else None,
            stiffness=stiffness,
            springref=float(m.qpos_spring[qpos]),
        )

    def _note_joint(self, j: int, limited: bool) -> None:
        m, name = self.m, self.joint_names[j]
        owner = f"joint '{name}'"
        dof = int(m.jnt_dofadr[j])
        poly = np.ravel(self._field("jnt_stiffnesspoly", np.zeros((j + 1, 1)))[j])
        if np.any(poly) and not self.disabled("spring"):
            self.refusals.error(f"{owner}: springs that are not linear are not supported")
        if self._field("jnt_plasticadr", np.full(j + 1, -1))[j] >= 0:
            self.refusals.error(f"{owner}: springs that yield are not supported")
        damping = np.ravel(self._field("dof_dampingpoly", np.zeros((dof + 1, 1)))[dof])
        if m.dof_damping[dof] or np.any(damping):
            self.ignored.append(f"{owner}: damping {m.dof_damping[dof]:g}")
        if m.dof_armature[dof]:
            self.ignored.append(f"{owner}: armature {m.dof_armature[dof]:g}")
        if m.dof_frictionloss[dof] and not self.disabled("frictionloss"):
            self.dry_friction.append(name)
            self.ignored.append(f"{owner}: frictionloss {m.dof_frictionloss[dof]:g}")
        if limited and m.jnt_margin[j]:
            self.ignored.append(f"{owner}: margin {m.jnt_margin[j]:g} of its limits")
        solver = self._field("jnt_solref", _SOLREF), self._field("jnt_solimp", _SOLIMP)
        if limited and _unusual(solver[0], _SOLREF, j) + _unusual(solver[1], _SOLIMP, j):
            self.ignored.append(f"{owner}: solver parameters of its limits")
        if self._field("jnt_actfrclimited", np.zeros(m.njnt))[j] and (
            self.origin.urdf or name not in self.actuated
        ):
            self.ignored.append(f"{owner}: effort limit {m.jnt_actfrcrange[j][1]:g}")

    # ------------------------------------------------------------ geometries and contacts

    def _match_frictions(self) -> list[float | None]:
        """Friction that a URDF gives to each geometry: collision elements in their links' order."""
        m = self.m
        result: list[float | None] = [None] * int(m.ngeom)
        for link, frictions in self.origin.frictions.items():
            if all(value is None for value in frictions):
                continue
            geoms = [
                g
                for g in range(m.ngeom)
                if self.body_names[int(m.geom_bodyid[g])] == link and m.geom_contype[g]
            ]
            if len(geoms) != len(frictions):
                self.refusals.error(
                    f"link '{link}': its friction cannot be matched with its geometries "
                    '(<compiler fusestatic="false"/> keeps links apart)'
                )
                continue
            for g, value in zip(geoms, frictions):
                result[g] = value
        return result

    def _geom(self, g: int) -> Geom | None:
        m, name = self.m, self.geom_names[g]
        kind = int(m.geom_type[g])
        shape: Any = "mesh" if kind == _GEOM_MESH else _GEOM_NAMES.get(kind)
        off = self.disabled("contact")
        contype = 0 if off else int(m.geom_contype[g])
        conaffinity = 0 if off else int(m.geom_conaffinity[g])
        cloud = self.clouds.get(name)
        if cloud is not None:
            shape = "cloud"
        if shape is None:
            what = "height fields" if kind == _GEOM_HFIELD else "signed distance fields"
            paired = not off and any(
                g in (int(m.pair_geom1[p]), int(m.pair_geom2[p])) for p in range(m.npair)
            )
            acts = bool(contype or conaffinity or paired)
            text = f"geom '{name}': {what} are not supported"
            if acts and self.refusals.refuse(
                "height_fields" if kind == _GEOM_HFIELD else None, text
            ):
                self.dropped_geoms.add(g)
            elif not acts:
                self.ignored.append(f"geom '{name}': {what} cannot be shown")
                self.dropped_geoms.add(g)
            return None
        self._note_geom(g)
        friction = m.geom_friction[g]
        margin = float(m.geom_margin[g])
        if self.overridden:
            friction, margin = np.asarray(m.opt.o_friction)[[0, 2, 3]], 0.5 * m.opt.o_margin
            if len(set(m.opt.o_friction[:2])) > 1 or len(set(m.opt.o_friction[3:])) > 1:
                self.refusals.error("option o_friction: friction must be isotropic")
        given = self.urdf_frictions[g]
        friction = friction if given is None else (given, *friction[1:])
        mesh = int(m.geom_dataid[g])
        pos, quat = m.geom_pos[g], m.geom_quat[g]
        if cloud is not None and kind == _GEOM_MESH:
            pos, quat = self._frame_of_file(g)
        return Geom(
            name,
            shape,
            () if shape in ("mesh", "cloud") else m.geom_size[g],
            pos=pos,
            quat=quat,
            friction=friction,
            condim=int(m.geom_condim[g]),
            priority=int(m.geom_priority[g]),
            contype=contype,
            conaffinity=conaffinity,
            margin=margin,
            mesh=self.mesh_names[mesh] if shape == "mesh" else None,
            rgba=tuple(float(item) for item in m.geom_rgba[g]),
            cloud=cloud,
        )

    def _frame_of_file(self, g: int) -> tuple[Any, Any]:
        """Pose of a mesh geometry as the file gives it: the compiler turns and shifts vertices, so
        that x in the file's mesh is mesh_quat x + mesh_pos of what it keeps, and the pose back."""
        import mujoco

        m, mesh = self.m, int(self.m.geom_dataid[g])
        back, quat, shift = np.zeros(4), np.zeros(4), np.zeros(3)
        mujoco.mju_negQuat(back, m.mesh_quat[mesh])
        mujoco.mju_mulQuat(quat, m.geom_quat[g], back)
        mujoco.mju_rotVecQuat(shift, m.mesh_pos[mesh], quat)
        return m.geom_pos[g] - shift, quat

    def _note_geom(self, g: int) -> None:
        m, name = self.m, self.geom_names[g]
        if m.geom_gap[g]:
            self.ignored.append(f"geom '{name}': gap {m.geom_gap[g]:g}")
        unusual = _unusual(m.geom_solref, _SOLREF, g) + _unusual(m.geom_solimp, _SOLIMP, g)
        if unusual or m.geom_solmix[g] != 1.0:
            self.ignored.append(f"geom '{name}': solver parameters")
        for what, label in (("geom_adhesion", "adhesion"), ("geom_surfacevel", "surfacevel")):
            if np.any(self._field(what, np.zeros(g + 1))[g]):
                self.refusals.error(f"geom '{name}': {label} is not supported")

    def read_pairs(self) -> tuple[Pair, ...]:
        m = self.m
        if self.disabled("contact"):
            return ()
        pairs: dict[frozenset[str], Pair] = {}
        for p in range(m.npair):
            a, b = (self.geom_names[int(g[p])] for g in (m.pair_geom1, m.pair_geom2))
            owner = f"pair '{a}' - '{b}'"
            if np.any(self._field("pair_adhesion", np.zeros(p + 1))[p]):
                raise ValueError(f"{owner}: adhesion is not supported")
            if m.pair_gap[p]:
                self.ignored.append(f"{owner}: gap {m.pair_gap[p]:g}")
            if _unusual(m.pair_solref, _SOLREF, p) + _unusual(m.pair_solimp, _SOLIMP, p):
                self.ignored.append(f"{owner}: solver parameters")
            friction = m.opt.o_friction if self.overridden else m.pair_friction[p]
            margin = m.opt.o_margin if self.overridden else m.pair_margin[p]
            pair = Pair(a, b, int(m.pair_dim[p]), friction, float(margin))
            known = pairs.setdefault(frozenset((a, b)), pair)
            if known is not pair and known != replace(
                pair, geom_a=known.geom_a, geom_b=known.geom_b
            ):
                raise ValueError(f"{owner} is given twice, differently")
            if known is not pair:
                self.ignored.append(f"{owner}: given twice")
        return tuple(pairs.values())

    def read_excludes(self) -> tuple[Exclude, ...]:
        names = self.body_names
        signatures = [int(item) for item in self.m.exclude_signature]
        return tuple(
            Exclude(names[signature >> 16], names[signature & 0xFFFF]) for signature in signatures
        )

    def read_meshes(self) -> tuple[Mesh, ...]:
        m = self.m
        used = {
            int(m.geom_dataid[g])
            for g in range(m.ngeom)
            if m.geom_type[g] == _GEOM_MESH and self.geom_names[g] not in self.clouds
        }
        meshes = []
        for i in sorted(used):
            vertex, face = int(m.mesh_vertadr[i]), int(m.mesh_faceadr[i])
            vertices = m.mesh_vert[vertex : vertex + int(m.mesh_vertnum[i])]
            faces = m.mesh_face[face : face + int(m.mesh_facenum[i])]
            hull = hull_of_compiled(m, i)  # MuJoCo has one where it collides
            meshes.append(Mesh(self.mesh_names[i], vertices, faces, hull if len(hull) else None))
        return tuple(meshes)

    def read_keyframes(self, plan: Plan) -> tuple[Keyframe, ...]:
        """Commands of actuators that the file does not have hold the keyframe's configuration."""
        m = self.m
        keyframes = []
        for i, name in enumerate(self._names("key", m.nkey, m.name_keyadr)):
            q = m.key_qpos[i]
            u = []
            for actuator, source in zip(plan.actuators, plan.source, strict=True):
                joint = self.joint_names.index(actuator.joint)
                hold = actuator.gear * float(q[int(m.jnt_qposadr[joint])])
                u.append(hold if source is None else float(m.key_ctrl[i, source]))
            keyframes.append(Keyframe(name, q, u))  # type: ignore[arg-type]
        return tuple(keyframes)


def _scalar(joint_type: int) -> bool:
    return joint_type in (2, 3)


def _unusual(values: Any, default: tuple[float, ...], index: int) -> bool:
    """True if a row of solver parameters differs from MuJoCo's default."""
    if isinstance(values, tuple):
        return False
    return not np.allclose(values[index][: len(default)], default, rtol=0.0, atol=1e-12)
