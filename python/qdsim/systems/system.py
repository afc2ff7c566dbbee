"""Published systems: the class, and how its files are read."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from importlib import resources

import numpy as np
import numpy.typing as npt

from qdsim.array_type import Array
from qdsim.description import PointCloud
from qdsim.formats import load_description
from qdsim.loading import build
from qdsim.model import KeyframeState, Model
from qdsim.model_checks import UnknownNameError
from qdsim.planning.task.task import Task
from qdsim.step import Options

__all__ = ["System", "Tasks", "files", "published_system", "ramp", "read_model"]


class Tasks(Mapping[str, Task]):
    """Tasks by name, in a fixed order; an unknown name is an error that lists them."""

    __slots__ = ("_tasks",)

    def __init__(self, tasks: Mapping[str, Task] | None = None) -> None:
        self._tasks = dict(tasks or {})

    def __getitem__(self, name: str) -> Task:
        if name in self._tasks:
            return self._tasks[name]
        known = ", ".join(map(repr, self._tasks)) or "none"
        raise UnknownNameError(f"no task is named {name!r}; there are {known}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._tasks)

    def __len__(self) -> int:
        return len(self._tasks)

    def __repr__(self) -> str:
        return f"Tasks({self._tasks!r})"


@dataclasses.dataclass(frozen=True, eq=False)
class System:
    """A published system.

    Attributes:
        name: as given to :func:`qdsim.systems.load`.
        model: the model. Key frame "start" is the start of the published task; ``about`` describes
            others.
        options: of its exact step, as published: time step, friction rays, contact distance, mass
            ratio. Systems in space have friction cones; ``options.rays`` is the number of rays of
            the published pyramids.
        tasks: its tasks by name, empty for systems without a planning task; the first one is the
            published RRT task.
        commands: ``(steps, nu)`` published motion, the command of each step from key frame
            ``commands_from`` on; ``(0, nu)`` if none is published.
        commands_from: key frame at which ``commands`` begin.
        about: description, and choices made where the published files disagree or are incomplete.
    """

    name: str
    model: Model
    options: Options
    tasks: Mapping[str, Task] = dataclasses.field(default_factory=Tasks)
    commands: Array = dataclasses.field(default_factory=lambda: np.zeros((0, 0)))
    commands_from: str = "start"
    about: str = ""

    def __post_init__(self) -> None:
        if self.commands.size == 0:
            object.__setattr__(self, "commands", np.zeros((0, self.model.nu)))

    @property
    def start(self) -> KeyframeState:
        """Configuration ``q`` (nq) and command ``u`` (nu) where the published task begins."""
        return self.model.keyframes["start"]

    def __repr__(self) -> str:
        return f"System({self.name!r}, nq={self.model.nq}, tasks={list(self.tasks)})"


def files() -> dict[str, bytes]:
    """Read all MJCF files of the package: parts include and attach each other.

    Returns:
        The files' bytes by their names. MuJoCo itself reads a system with
        ``mujoco.MjModel.from_xml_string(files()["rope.xml"].decode(), files())``; it combines friction coefficients by
        their maximum.
    """
    folder = resources.files(__package__)
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.name.endswith(".xml")}


def read_model(
    name: str,
    *,
    without_geoms: str | None = None,
    clouds: Mapping[str, PointCloud] | None = None,
    harmonic: bool = True,
) -> Model:
    """Load the model of ``<name>.xml`` in this package.

    The published simulator combines friction coefficients as ``2 a b / (a + b)``, which MJCF cannot
    express. Its commands are those of stiff springs without dampers, which are unstable at the
    beginning of a second-order step.

    Args:
        name: of the file.
        without_geoms: bodies whose names begin with this lose their geometries, as in published
            models that share an arm.
        clouds: point clouds in place of geometries, by name.
        harmonic: whether friction coefficients are combined by the harmonic mean, or as in the
            file.
    """
    assets = files()
    description = load_description(
        assets[f"{name}.xml"].decode("utf-8"), assets=assets, clouds=clouds
    )
    late = dataclasses.replace(description.contact_solver, springs="late")
    description = dataclasses.replace(description, contact_solver=late)
    if not harmonic:
        return build(description)
    bodies = tuple(
        dataclasses.replace(body, geoms=())
        if without_geoms is not None and body.name.startswith(without_geoms)
        else body
        for body in description.bodies
    )
    return build(dataclasses.replace(description, bodies=bodies, friction_combination="harmonic"))


def published_system(
    name: str,
    model: Model,
    options: Options,
    about: str,
    *,
    commands: npt.ArrayLike | None = None,
    commands_from: str = "start",
) -> System:
    """Make a system without tasks."""
    motion = np.zeros((0, model.nu)) if commands is None else np.array(commands, dtype=float)
    if motion.shape[1:] != (model.nu,):
        raise ValueError(f"commands: expected shape (steps, {model.nu}), got {motion.shape}")
    motion.flags.writeable = False
    return System(
        name, model, options, commands=motion, commands_from=commands_from, about=about.strip()
    )


def ramp(times: npt.ArrayLike, knots: npt.ArrayLike, h: float, *, smooth: bool = False) -> Array:
    """Compute commands ``(steps, nu)`` along straight lines between ``knots`` (n, nu) at ``times`` (n), s.

    The step from ``l h`` to ``(l + 1) h`` has the value at its end, as in the published simulator.

    Args:
        times, knots, h: seconds, commands, time step in s.
        smooth: cubics with zero velocity at the knots in place of lines.
    """
    t, values = np.asarray(times, dtype=float), np.asarray(knots, dtype=float)
    at = np.arange(1, round((t[-1] - t[0]) / h) + 1) * h + t[0]
    k = np.clip(np.searchsorted(t, at, side="left") - 1, 0, len(t) - 2)
    s = ((at - t[k]) / (t[k + 1] - t[k]))[:, None]
    if smooth:
        s = s * s * (3.0 - 2.0 * s)
    return np.asarray((1.0 - s) * values[k] + s * values[k + 1])
