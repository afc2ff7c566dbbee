"""Systems of the second-order step: the class, and parts of scenes."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from qdsim.array_type import Array
from qdsim.description import SceneBuilder
from qdsim.dynamics import DynamicOptions
from qdsim.model import Model
from qdsim.simulation import Simulation, simulate

__all__ = ["DynamicSystem", "Force", "open_box", "planar_body", "still"]

Force = Callable[[float, Array, Array], Array]


@dataclasses.dataclass(frozen=True, eq=False)
class DynamicSystem:
    """A system of the second-order step.

    Attributes:
        name: as given to ``load_dynamic``.
        model: the model.
        options: of its step.
        q, v: initial state (nq), (nv).
        duration: of its motion, s.
        tau: applied forces (nv) as a function of time, q and v, or None.
        about: description, and which parts were published.
    """

    name: str
    model: Model
    options: DynamicOptions
    q: Array
    v: Array
    duration: float
    tau: Force | None = None
    about: str = ""

    def simulate(
        self, duration: float | None = None, options: DynamicOptions | None = None, **more: Any
    ) -> Simulation:
        """Compute its motion by ``qdsim.simulate``, from the system's own start.

        Args:
            duration: s; None: the system's own.
            options: None: the system's own.
            **more: other keywords of ``qdsim.simulate``.

        Raises:
            SolverError: if a step cannot be solved.
        """
        return simulate(
            self.model,
            self.q,
            self.v,
            np.zeros(self.model.nu),
            self.duration if duration is None else duration,
            self.options if options is None else options,
            **{"tau": self.tau, **more},
        )

    def __repr__(self) -> str:
        return f"DynamicSystem({self.name!r}, nv={self.model.nv})"


def planar_body(
    scene: SceneBuilder, name: str, pos: tuple[float, float], mass: float, turning: float
) -> str:
    """Add a body that moves in the xz plane, by two slides and a hinge (x, z, angle about y).

    Args:
        scene, name: the scene and the name of the body.
        pos: x and z of its centre of mass at q = 0, m.
        mass: kg.
        turning: moment of inertia about y, kg m^2.
    """
    scene.body(name, pos=(pos[0], 0.0, pos[1]), mass=mass, inertia=(turning, turning, turning))
    scene.joint(name, "slide", axis=(1, 0, 0))
    scene.joint(name, "slide", axis=(0, 0, 1))
    scene.joint(name, "hinge", axis=(0, 1, 0))
    return name


def still(
    name: str, model: Model, options: DynamicOptions, duration: float, about: str, **more: Any
) -> DynamicSystem:
    """Make a system that begins at its model's default configuration, at rest unless ``v`` is given."""
    v = np.array(more.pop("v", np.zeros(model.nv)), dtype=float)
    v.flags.writeable = False
    text = " ".join(about.split())
    return DynamicSystem(name, model, options, model.default_q, v, duration, about=text, **more)


def open_box(scene: SceneBuilder, width: float, depth: float | None, friction: float) -> None:
    """Add the floor and walls of an open box, as planes: |x| <= width / 2, and |y| <= depth / 2 unless None."""
    turn = math.sqrt(0.5)
    scene.geom("world", "plane", name="floor", friction=friction)
    sides: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
        "left": ((-width / 2, 0, 0), (turn, 0, turn, 0)),
        "right": ((width / 2, 0, 0), (turn, 0, -turn, 0)),
    }
    if depth is not None:
        sides["front"] = ((0, -depth / 2, 0), (turn, -turn, 0, 0))
        sides["back"] = ((0, depth / 2, 0), (turn, turn, 0, 0))
    for name, (pos, quat) in sides.items():
        scene.geom("world", "plane", name=name, pos=pos, quat=quat, friction=friction)
