"""Conversion of a compiled MuJoCo model to a description.

Each element of the file is used, or ignored, or an error. Elements that have no meaning in a
quasi-dynamic step are listed in ``ignored``. An element without which the result would be wrong is
an error that names it, unless the caller leaves such elements out; then it is a warning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from qdsim.array_type import SAME
from qdsim.description import (
    Body,
    Constraint,
    Coupling,
    Description,
    Joint,
    Keyframe,
    PointCloud,
)
from qdsim.description.arrays import rotation_matrix
from qdsim.description.contact_solver import INTEGRATORS
from qdsim.description.elements import HOME
from qdsim.description.references import unknown_name
from qdsim.description.tendons import Tendon
from qdsim.formats.actuation import Actuation, Plan
from qdsim.formats.actuators import joint_force_ranges, read_actuators, read_thrusts
from qdsim.formats.equalities import Names, read_equalities
from qdsim.formats.geometries import Geometries
from qdsim.formats.reading import JOINT_NAMES, Origin, Reading, scalar
from qdsim.formats.refusals import Kind, Refusals
from qdsim.formats.sensors import read_sensors
from qdsim.formats.tendons import read_tendons


@dataclass(frozen=True)
class Wishes:
    """The caller's arguments.

    Attributes:
        actuation: which joints are actuated, and how.
        clouds: point clouds in place of geometries, by the geometries' names.
        leave_out: kinds of unsupported elements that are left out.
    """

    actuation: Actuation
    clouds: Mapping[str, PointCloud]
    leave_out: frozenset[Kind]


def describe(
    model: Any,
    origin: Origin,
    wishes: Wishes,
    ignored: Sequence[str] = (),
) -> tuple[Description, list[str]]:
    """Return the description of a compiled model, and warnings.

    Args:
        model: the ``mujoco.MjModel``.
        origin: where the model comes from.
        wishes: the caller's arguments.
        ignored: messages about elements that were ignored before compilation.

    Raises:
        ValueError: The model has unsupported elements; the message lists all of them.
    """
    reader = _Reader(model, origin, wishes.clouds, Refusals(wishes.leave_out))
    reader.ignored.extend(ignored)
    try:
        reader.check_clouds()
        reader.tendons = read_tendons(reader) + read_thrusts(reader)
        reader.check_equalities()
        plan = reader.read_actuation(wishes.actuation)
        reader.drop_thrusts(plan)
        reader.check_scene()
        bodies = reader.read_bodies()
        pairs = reader.geometries.pairs()
        if not reader.refusals.errors:
            description = Description(
                bodies=bodies,
                actuators=tuple(plan.actuators),
                pairs=pairs,
                excludes=reader.geometries.excludes(),
                constraints=tuple(reader.constraints),
                tendons=reader.tendons,
                keyframes=reader.read_keyframes(plan),
                meshes=reader.geometries.meshes(),
                sensors=read_sensors(reader, {geom.name for body in bodies for geom in body.geoms}),
                gravity=reader.gravity(),
                friction_combination="harmonic" if origin.urdf else "max",
                parent_filter=not reader.disabled("filterparent"),
                name=reader.model_name(),
                contact_solver=reader.contact_solver(),
                ignored=tuple(dict.fromkeys(reader.ignored + reader.refusals.left_out)),
                dynamic_only=tuple(reader.dynamic_only),
                unlike_mujoco=tuple(reader.refusals.unlike_mujoco),
            )
    except ValueError as error:
        if not reader.refusals.errors:
            raise ValueError(f"source: {origin.label}: {error}") from None
    if reader.refusals.errors:
        raise ValueError(reader.refusals.message(f"source: {origin.label} cannot be loaded"))
    return description, reader.warnings()


class _Reader(Reading):
    """One pass over a compiled model."""

    def __init__(
        self,
        model: Any,
        origin: Origin,
        clouds: Mapping[str, PointCloud],
        refusals: Refusals,
    ) -> None:
        super().__init__(model, origin, refusals)
        self.clouds = clouds
        self.geometries = Geometries(self, clouds)
        self.constraints: list[Constraint] = []
        self.tendons: tuple[Tendon, ...] = ()
        self.dynamic_only: list[str] = []

    # ------------------------------------------------------------ unsupported elements

    def check_clouds(self) -> None:
        for name in self.clouds:
            if name not in self.geom_names:
                self.refusals.error(f"clouds: {unknown_name('geom', name, self.geom_names)}")

    def check_scene(self) -> None:
        m = self.m
        if self.field("nflex"):
            name = self.name("flex", 0, m.name_flexadr)
            self.refusals.error(f"flex '{name}': deformable bodies are not supported")
        for kind, addresses in (
            ("body", self.field("body_plugin", ())),
            ("joint", self.field("jnt_plugin", ())),
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
            self.refusals.differ("fluids", "option density, viscosity")
        if m.opt.noslip_iterations > 0:
            self.ignored.append('option noslip_iterations: contacts="mujoco" creeps as without')
        self._check_solver()
        if self.disabled("contact"):
            self.ignored.append("contacts: switched off by the file")

    def _check_solver(self) -> None:
        """Record settings of MuJoCo's solver that steps by its law do not reproduce."""
        option, integrator = self.m.opt, INTEGRATORS[self.m.opt.integrator]
        undamped = self.disabled("eulerdamp") and not self.disabled("damper")
        for is_on, text in (
            (option.noslip_iterations > 0, "option noslip_iterations"),
            (integrator in ("RK4", "implicit"), f"integrator {integrator!r}"),
            (
                integrator == "Euler" and undamped and bool(np.any(self.m.dof_damping)),
                "flag eulerdamp, of the integrator 'Euler'",
            ),
            (self.enabled("diagexact"), "flag diagexact"),
        ):
            if is_on:
                self.refusals.differ("solver", text)

    def check_equalities(self) -> None:
        if not self.disabled("equality"):
            tendons = self.names("tendon", self.m.ntendon, self.m.name_tendonadr)
            known = {item.name for item in self.tendons}
            names = Names(self.body_names, self.joint_names, tendons, known)
            labels = self.names("equality", self.m.neq, self.m.name_eqadr)
            found = read_equalities(self.m, labels, names)
            self.constraints = found.constraints
            for kinds, text in found.problems:
                self.refusals.refuse(kinds, text)
            self.ignored.extend(found.ignored)

    def warnings(self) -> list[str]:
        """Return messages about elements that were left out or repaired and change the result."""
        result = []
        if self.refusals.left_out:
            result.append("left out: " + "; ".join(self.refusals.left_out))
        if self.origin.repaired is not None:
            result.append(self.origin.repaired)
        return [f"{self.origin.label}: {item}" for item in result]

    # ------------------------------------------------------------ actuators

    def read_actuation(self, actuation: Actuation) -> Plan:
        """Choose the actuators; adds to ``refusals`` and ``ignored``.

        Sets ``driven``, the joints that actuators drive, and ``actuated``, those that springs of
        actuators hold.
        """
        m = self.m
        scalars = [name for j, name in enumerate(self.joint_names) if scalar(int(m.jnt_type[j]))]
        other = [name for name in self.joint_names if name not in set(scalars)]
        followers = {item.joint for item in self.constraints if isinstance(item, Coupling)}
        plan = actuation.plan(
            read_actuators(self),
            scalars,
            other,
            followers,
            {item.name for item in self.tendons},
            joint_force_ranges(self),
            self.origin.urdf,
            self.refusals,
        )
        self.ignored.extend(plan.ignored)
        driven = [(item.joint, item.stiffness) for item in plan.actuators if item.joint is not None]
        self.driven = {joint for joint, _ in driven}
        self.actuated = {joint for joint, stiffness in driven if stiffness > 0.0}
        return plan

    def drop_thrusts(self, plan: Plan) -> None:
        """Remove the tendons that were made for actuators that are left out."""
        used = {item.tendon for item in plan.actuators}
        self.tendons = tuple(t for t in self.tendons if not (t.thrust or t.reach) or t.name in used)

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
                if begin >= 0 and (geom := self.geometries.geom(g)) is not None
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
                    gravcomp=float(self.field("body_gravcomp", np.zeros(m.nbody))[i]),
                    mocap=bool(m.body_mocapid[i] >= 0),
                    invweight=float(m.body_invweight0[i][0]),
                    turn_invweight=float(m.body_invweight0[i][1]),
                )
            )
        return tuple(bodies)

    def _joint(self, j: int) -> Joint:
        m, name = self.m, self.joint_names[j]
        kind: Any = JOINT_NAMES[int(m.jnt_type[j])]
        limited = bool(m.jnt_limited[j]) and not self.disabled("limit")
        stiffness = 0.0 if self.disabled("spring") else float(m.jnt_stiffness[j])
        self._note_joint(j, limited)
        qpos = int(m.jnt_qposadr[j])
        if kind in ("ball", "free"):
            most = max(
                SAME, float(max(m.jnt_range[j]))
            )  # MuJoCo holds ball joints whose range is zero in place
            return Joint(
                name,
                kind,
                pos=m.jnt_pos[j] if kind == "ball" else (0.0,) * 3,
                range=(0.0, most) if limited and kind == "ball" else None,
                stiffness=stiffness,
                damping=self._damping(j),
                friction=self._friction(j),
                armature=float(m.dof_armature[m.jnt_dofadr[j]]),
                **self._laws(j),
            )
        return Joint(
            name,
            kind,
            pos=m.jnt_pos[j],
            axis=m.jnt_axis[j],
            ref=float(m.qpos0[qpos]),
            range=tuple(m.jnt_range[j]) if limited else None,
            stiffness=stiffness,
            springref=float(m.qpos_spring[qpos]),
            damping=self._damping(j),
            friction=self._friction(j),
            armature=float(m.dof_armature[m.jnt_dofadr[j]]),
            **self._laws(j),
        )

    def _laws(self, j: int) -> dict[str, Any]:
        """Return the parameters of MuJoCo's law for the limits and dry friction of a joint."""
        m, dof, free = self.m, int(self.m.jnt_dofadr[j]), int(self.m.jnt_type[j]) == 0
        return {
            "margin": float(m.jnt_margin[j]),
            "solreflimit": m.jnt_solref[j],
            "solimplimit": m.jnt_solimp[j],
            "solreffriction": m.dof_solref[dof],
            "solimpfriction": m.dof_solimp[dof],
            "invweight": float(m.dof_invweight0[dof]),
            "turn_invweight": float(m.dof_invweight0[dof + 3]) if free else None,
        }

    def _friction(self, j: int) -> float:
        off = self.disabled("frictionloss")
        return 0.0 if off else float(self.m.dof_frictionloss[self.m.jnt_dofadr[j]])

    def _damping(self, j: int) -> float:
        return 0.0 if self.disabled("damper") else float(self.m.dof_damping[self.m.jnt_dofadr[j]])

    def _note_joint(self, j: int, limited: bool) -> None:
        m, name = self.m, self.joint_names[j]
        owner = f"joint '{name}'"
        dof, counted = int(m.jnt_dofadr[j]), len(self.dynamic_only)
        poly = np.ravel(self.field("jnt_stiffnesspoly", np.zeros((j + 1, 1)))[j])
        if np.any(poly) and not self.disabled("spring"):
            self.refusals.error(f"{owner}: springs that are not linear are not supported")
        if self.field("jnt_plasticadr", np.full(j + 1, -1))[j] >= 0:
            self.refusals.error(f"{owner}: springs that yield are not supported")
        nonlinear = np.any(np.ravel(self.field("dof_dampingpoly", np.zeros((dof + 1, 1)))[dof]))
        if m.dof_armature[dof]:
            self.dynamic_only.append(f"{owner}: armature {m.dof_armature[dof]:g}")
        self.ignored.extend(self.dynamic_only[counted:])
        if nonlinear:
            self.ignored.append(f"{owner}: damping that is not linear")
        if limited and scalar(int(m.jnt_type[j])):
            self._note_reference(j)
        if self.field("jnt_actfrclimited", np.zeros(m.njnt))[j] and name not in self.driven:
            self.ignored.append(f"{owner}: effort limit {m.jnt_actfrcrange[j][1]:g}")

    def _note_reference(self, j: int) -> None:
        """Note a reference outside the joint's limits, as in files whose reference is zero by default."""
        m = self.m
        low, high = (float(end) for end in m.jnt_range[j])
        value = float(m.qpos0[m.jnt_qposadr[j]])
        if not low <= value <= high and HOME not in self.names("key", m.nkey, m.name_keyadr):
            self.ignored.append(
                f"joint '{self.joint_names[j]}': its reference {value:.4g} is outside its range, the "
                f"default configuration has {min(max(value, low), high):.4g}"
            )

    def read_keyframes(self, plan: Plan) -> tuple[Keyframe, ...]:
        """Read the key frames; actuators that are not in the file get commands that hold the configuration."""
        m = self.m
        keyframes = []
        for i, name in enumerate(self.names("key", m.nkey, m.name_keyadr)):
            q = m.key_qpos[i]
            u = []
            for actuator, source in zip(plan.actuators, plan.source, strict=True):
                if source is not None:
                    u.append(float(m.key_ctrl[i, source]))
                else:
                    joint = self.joint_names.index(str(actuator.joint))
                    u.append(actuator.gear * float(q[int(m.jnt_qposadr[joint])]))
            keyframes.append(Keyframe(name, q, u))  # type: ignore[arg-type]
        return tuple(keyframes)
