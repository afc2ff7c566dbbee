"""Choice of the model's actuators, from those of the file and the caller's arguments."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from qdsim.description import Actuator
from qdsim.description.references import unknown_name
from qdsim.formats.refusals import Kind, Refusals


@dataclass(frozen=True)
class FileActuator:
    """An actuator of the file.

    Attributes:
        name: its name.
        control: index of its command in the file.
        joint: the joint that it drives, or None.
        law: its force law, or None if a step cannot simulate it.
        problem: why a step cannot simulate it, or None.
        force_range: limits of its force on the joint, N or Nm.
        tendon: the tendon that it drives, or None.
    """

    name: str
    control: int
    joint: str | None
    law: Actuator | None = None
    problem: str | None = None
    force_range: tuple[float, float] | None = None
    tendon: str | None = None
    thrust: bool = False
    """Whether ``tendon`` was made for an actuator at a site, and is no tendon of the file."""

    @property
    def spring(self) -> bool:
        """Whether the command of this actuator sets the rest position of a spring."""
        return self.law is not None and self.law.stiffness > 0.0 and math.isfinite(self.law.gear)


@dataclass
class Plan:
    """The actuators of the model.

    Attributes:
        refusals: the unsupported elements of the file; the plan adds its own to them.
        actuators: the actuators.
        source: for each actuator, the index of its command in the file, or None if the key frames
            of the file hold no command for it.
        ignored: messages about elements that were ignored.
    """

    refusals: Refusals
    actuators: list[Actuator] = field(default_factory=list)
    source: list[int | None] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Actuation:
    """The caller's arguments ``stiffness`` and ``actuated``.

    Attributes:
        number: the stiffness of all joints, or None.
        by_joint: the stiffness of each joint, or None.
        joints: the names of the actuated joints, or None.
    """

    number: float | None = None
    by_joint: Mapping[str, float] | None = None
    joints: tuple[str, ...] | None = None

    @staticmethod
    def parse(stiffness: object, actuated: object) -> Actuation:
        """Check the arguments as far as is possible without a file.

        Raises:
            TypeError, ValueError: An argument is wrong; the message names it.
        """
        result = Actuation()
        if isinstance(stiffness, Mapping):
            table = {}
            for joint, value in stiffness.items():
                if not isinstance(joint, str):
                    raise TypeError(f"stiffness: joint names must be strings, got {joint!r}")
                table[joint] = _positive(f"stiffness[{joint!r}]", value)
            result = replace(result, by_joint=table)
        elif stiffness is not None:
            result = replace(result, number=_positive("stiffness", stiffness))
        if actuated is not None:
            if isinstance(actuated, (str, bytes)) or not isinstance(actuated, Iterable):
                raise TypeError(
                    f"actuated must be a sequence of joint names, got {type(actuated).__name__}"
                )
            names = tuple(actuated)
            for name in names:
                if not isinstance(name, str):
                    raise TypeError(f"actuated must hold joint names, got {name!r}")
            if len(set(names)) != len(names):
                raise ValueError("actuated names a joint twice")
            result = replace(result, joints=names)
        return result

    def stiffness_of(self, joint: str) -> float | None:
        """Return the stiffness that the caller gave for this joint, or None."""
        return self.by_joint.get(joint) if self.by_joint is not None else self.number

    def plan(
        self,
        file: Sequence[FileActuator],
        scalar_joints: Sequence[str],
        other_joints: Sequence[str],
        followers: Collection[str],
        tendons: Collection[str],
        joint_force_ranges: Mapping[str, tuple[float, float]],
        urdf: bool,
        refusals: Refusals,
    ) -> Plan:
        """Choose the actuators: those of the file in its order, then new ones in the order of joints.

        Args:
            file: the actuators of the file.
            scalar_joints: names of the hinges and slides.
            other_joints: names of the ball and free joints.
            followers: joints that are coupled to others (mimic); a single stiffness for all joints
                does not apply to them.
            tendons: names of the model's tendons.
            joint_force_ranges: limits of the sum of all actuator forces on a joint.
            urdf: whether the file is a URDF.
            refusals: receives the unsupported elements.
        """
        self._check_names(scalar_joints, other_joints)
        plan = Plan(refusals)
        leading = [joint for joint in scalar_joints if joint not in followers]
        asked = self._asked(file, leading, urdf, plan)
        first = _one_a_joint(file)
        for item in file:
            if item.tendon is not None:
                self._add_to_tendon(item, item.tendon in tendons, plan)
            elif item.joint is None:
                refusals.refuse("actuators", f"actuator '{item.name}': {item.problem}")
            elif self.joints is not None and item.joint not in self.joints:
                plan.ignored.append(f"actuator '{item.name}': left out, actuated= does not name it")
            elif item is not first[item.joint] and self.stiffness_of(item.joint) is not None:
                plan.ignored.append(
                    f"actuator '{item.name}': stiffness= makes joint '{item.joint}' one spring, that of "
                    f"'{first[item.joint].name}'"
                )
            elif self._add_from_file(item, item.joint, plan):
                asked.discard(item.joint)
        taken = {actuator.name for actuator in plan.actuators}
        for joint in scalar_joints:
            if joint not in asked:
                continue
            stiffness = self.stiffness_of(joint)
            if stiffness is None:
                refusals.error(f"joint '{joint}': actuated= names it, stiffness= does not")
                continue
            name = joint if joint not in taken else f"{joint}_position"
            plan.actuators.append(Actuator(name, joint, stiffness))
            plan.source.append(None)
        _limit_joints(plan, joint_force_ranges)
        return plan

    def _check_names(self, scalar: Sequence[str], other: Sequence[str]) -> None:
        for argument, names in (
            ("stiffness", self.by_joint or ()),
            ("actuated", self.joints or ()),
        ):
            for name in names:
                if name in other:
                    raise ValueError(
                        f"{argument}: joint {name!r} is a ball or free joint; only hinge and slide "
                        "joints can be actuated"
                    )
                if name not in scalar:
                    raise ValueError(f"{argument}: {unknown_name('joint', name, scalar)}")

    def _asked(
        self, file: Sequence[FileActuator], scalar: Sequence[str], urdf: bool, plan: Plan
    ) -> set[str]:
        """Return the joints that the caller wants actuated, whether or not the file actuates them."""
        if self.joints is not None:
            return set(self.joints)
        if self.by_joint is not None:
            return set(self.by_joint)
        if self.number is not None and not file:
            return set(scalar)
        if urdf and scalar and self.number is None:
            plan.refusals.error(
                "a URDF has no actuators: say which joints are actuated and how stiff, with "
                "stiffness=number (all hinges and slides), stiffness={joint: number}, or "
                "actuated=() for none"
            )
        return set()

    def _add_to_tendon(self, item: FileActuator, tendon_exists: bool, plan: Plan) -> None:
        owner = f"actuator '{item.name}'"
        if self.joints is not None:
            plan.ignored.append(f"{owner}: left out, actuated= names joints alone")
        elif item.law is None or not tendon_exists:
            kinds: tuple[Kind, ...] = ("actuators",) if item.thrust else ("tendons", "actuators")
            problem = item.problem or f"its tendon '{item.tendon}' is not supported"
            plan.refusals.refuse(kinds, f"{owner}: {problem}")
        else:
            plan.actuators.append(replace(item.law, force_range=item.force_range))
            plan.source.append(item.control)
            _leave_out_limits(plan)

    def _add_from_file(self, item: FileActuator, joint: str, plan: Plan) -> bool:
        """Add an actuator of the file; return False if the caller left it out.

        Its joint is then free, unless the caller wants it actuated.
        """
        owner = f"actuator '{item.name}'"
        stiffness = self.stiffness_of(joint)
        if item.law is None and stiffness is None:
            hint = "; stiffness= replaces it by a position actuator"
            return not plan.refusals.refuse("actuators", f"{owner}: {item.problem}", hint)
        if stiffness is not None and not item.spring:
            force = item.force_range or _motor_range(item.law)
            plan.actuators.append(Actuator(item.name, joint, stiffness, force_range=force))
            plan.source.append(None)
            what = item.problem or "is no spring that its command moves"
            plan.ignored.append(f"{owner}: {what}; replaced by stiffness=")
        else:
            assert item.law is not None
            law = item.law if stiffness is None else replace(item.law, stiffness=stiffness)
            plan.actuators.append(replace(law, force_range=item.force_range))
            plan.source.append(item.control)
        _leave_out_limits(plan)
        return True


def _leave_out_limits(plan: Plan) -> None:
    """Remove the force limit of the last actuator if the caller left force limits out."""
    last = plan.actuators[-1]
    if last.force_range is not None and "force_limits" in plan.refusals.leave_out:
        low, high = last.force_range
        text = f"actuator '{last.name}': its force is limited to {low:g} .. {high:g}"
        plan.refusals.refuse("force_limits", text)
        plan.actuators[-1] = replace(last, force_range=None)


def _motor_range(law: Actuator | None) -> tuple[float, float] | None:
    """Return the range of force of a motor whose command has a range; None for other actuators."""
    if law is None or law.range is None or law.stiffness or any(law.gain_slope) or law.damping:
        return None
    ends = sorted(law.bias + law.gain * end for end in law.range)
    return (ends[0], ends[1]) if math.isfinite(ends[1] - ends[0]) and ends[0] < ends[1] else None


def _limit_joints(plan: Plan, ranges: Mapping[str, tuple[float, float]]) -> None:
    """Apply the force limits of joints to their actuators; several actuators of one joint are an error."""
    for joint, (low, high) in ranges.items():
        own = [i for i, item in enumerate(plan.actuators) if item.joint == joint]
        text = f"joint '{joint}': its actuators' force is limited to {low:g} .. {high:g}"
        if own and "force_limits" in plan.refusals.leave_out:
            plan.refusals.refuse("force_limits", text)
        elif len(own) > 1:
            plan.refusals.refuse(
                "force_limits", f"{text}, which is not supported of several together"
            )
        elif own:
            item = plan.actuators[own[0]]
            ends = item.force_range or (-math.inf, math.inf)
            both = min(max(ends[0], low), high), min(max(ends[1], low), high)
            plan.actuators[own[0]] = replace(item, force_range=both, own_force_range=ends)


def _one_a_joint(file: Sequence[FileActuator]) -> dict[str, FileActuator]:
    """Return the actuator of each joint that ``stiffness=`` changes: its first spring, or else its first actuator."""
    result: dict[str, FileActuator] = {}
    for item in sorted(file, key=lambda item: not item.spring):
        if item.joint is not None:
            result.setdefault(item.joint, item)
    return result


def _positive(argument: str, value: object) -> float:
    if isinstance(value, (bool, str, bytes)):
        raise TypeError(f"{argument} must be a positive number, got {value!r}")
    try:
        result = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise TypeError(
            f"{argument} must be a positive number or a mapping from joints to numbers, "
            f"got {type(value).__name__}"
        ) from None
    if not math.isfinite(result) or result <= 0.0:
        raise ValueError(f"{argument} must be positive and finite, got {value!r}")
    return result
