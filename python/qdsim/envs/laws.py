"""Steps of an environment's model, quasi-dynamic or second-order, and the contact laws that
episodes draw."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from qdsim.arguments import instance, one_of
from qdsim.description import Description
from qdsim.description import contact_solver as solver
from qdsim.description.contact_solver import Cone
from qdsim.dynamics import DynamicOptions
from qdsim.model import Model
from qdsim.planning.plans.trials import SECOND_ORDER
from qdsim.planning.task.task import Task
from qdsim.step import CONTACTS, CommonOptions, Options

__all__ = ["Contacts", "Dynamics", "Law", "MujocoContacts", "checked_contacts", "laws_of"]

_SHARED = tuple(
    field.name
    for field in dataclasses.fields(CommonOptions)
    if field.init and field.name not in ("h", "kappa")
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class MujocoContacts:
    """MuJoCo's contact law with other numbers than the file's; None keeps those of the file.

    Attributes:
        cone, impratio: of all contacts, as in `ContactSolver`.
        solref, solimp: of all geometries and pairs, as in `Geom`.

    Raises:
        TypeError, ValueError: if a field is invalid; the message names it.
    """

    cone: Cone | None = None
    impratio: float | None = None
    solref: tuple[float, float] | None = None
    solimp: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        solver.ContactSolver(**self._of_solver())
        if self.solref is not None:
            object.__setattr__(self, "solref", solver.solref("contacts", "solref", self.solref))
        if self.solimp is not None:
            object.__setattr__(self, "solimp", solver.solimp("contacts", "solimp", self.solimp))

    def _of_solver(self) -> dict[str, Any]:
        given = {"cone": self.cone, "impratio": self.impratio}
        return {name: value for name, value in given.items() if value is not None}

    def model(self, model: Model) -> Model:
        """Return a copy of a model with these contacts.

        Args:
            model: whose geometries and pairs get this ``solref`` and ``solimp``.
        """
        own: dict[str, Any] = {"solref": self.solref, "solimp": self.solimp}
        changes = {name: value for name, value in own.items() if value is not None}
        description = model.description
        bodies = (
            dataclasses.replace(
                body, geoms=tuple(dataclasses.replace(geom, **changes) for geom in body.geoms)
            )
            for body in description.bodies
        )
        changed: Description = dataclasses.replace(
            description,
            bodies=tuple(bodies),
            pairs=tuple(dataclasses.replace(pair, **changes) for pair in description.pairs),
            contact_solver=dataclasses.replace(description.contact_solver, **self._of_solver()),
        )
        return type(model)(changed)


Contacts: TypeAlias = "Literal['rigid', 'mujoco'] | MujocoContacts"
"""A value of `Options.contacts`, or MuJoCo's contact law with numbers that differ from the file's."""

Dynamics: TypeAlias = "Literal['quasi_dynamic', 'second_order'] | DynamicOptions"


class Law(NamedTuple):
    """The steps of an episode: a model, the options of its steps, and the number of steps for which
    a command is held."""

    model: Model
    options: Options | DynamicOptions
    steps: int


def checked_contacts(given: object) -> tuple[Contacts, ...] | None:
    """Check one or several kinds of contacts and return them as a tuple, or None.

    Raises:
        TypeError, ValueError: if an argument is invalid; the message names it.
    """
    if given is None:
        return None
    if isinstance(given, (str, MujocoContacts)):
        return (_kind("contacts", given),)
    if not isinstance(given, (list, tuple)):
        raise TypeError(
            f"contacts: expected a word, MujocoContacts, a sequence of these or None, got {type(given).__name__}"
        )
    if not given:
        raise ValueError("contacts: expected at least one, got none")
    return tuple(_kind(f"contacts[{i}]", word) for i, word in enumerate(given))


def _kind(name: str, given: object) -> Contacts:
    if not isinstance(given, MujocoContacts):
        one_of(name, given, allowed=tuple(CONTACTS))
    return given  # type: ignore[return-value]  # one of these two


def laws_of(
    task: Task, dynamics: Dynamics, contacts: Contacts | Sequence[Contacts] | None
) -> tuple[Law, ...]:
    """Return the law for each kind of contacts that episodes draw from; None: the contacts of the
    task's options.

    MuJoCo's contacts have friction cones, whatever the task's options are. A second-order step has
    the task's options as far as they apply, and a time step of 10 ms, or with MuJoCo's contacts
    that of the file, such that a whole number of them is the task's own step.

    Raises:
        ValueError: for MuJoCo's contacts if the task's options have Coulomb's law, or a stiffness
            of contacts.
    """
    return tuple(_law(task, dynamics, kind) for kind in checked_contacts(contacts) or (None,))


def _law(task: Task, dynamics: Dynamics, kind: Contacts | None) -> Law:
    model = kind.model(task.model) if isinstance(kind, MujocoContacts) else task.model
    word = "mujoco" if isinstance(kind, MujocoContacts) else kind
    own = task.options if isinstance(dynamics, str) else dynamics
    changes: dict[str, Any] = {} if word is None else {"contacts": word}
    if word == "mujoco":
        changes["friction"] = "cone"
    if dynamics == "quasi_dynamic":
        return Law(model, task.options.replace(**changes), 1)
    options: DynamicOptions
    if dynamics == "second_order":
        shared: dict[str, Any] = {name: getattr(own, name) for name in _SHARED} | changes
        if shared["recovery_speed"] is None:
            shared["recovery_speed"] = SECOND_ORDER.recovery_speed
        h = model.description.contact_solver.timestep if shared["contacts"] == "mujoco" else None
        options = DynamicOptions(**shared) if h is None else DynamicOptions(h=h, **shared)
    else:
        options = instance("dynamics", own, DynamicOptions).replace(**changes)
    steps = max(1, round(task.options.h / options.h))
    return Law(model, options.replace(h=task.options.h / steps), steps)
