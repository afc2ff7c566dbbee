"""Registers the ids of the published tasks once both Gymnasium and this package are imported, in
either order.

Gymnasium is an extra and takes as long to import as this package, so it is not imported here. If it
is imported later, its import hook registers the ids then. (Gymnasium's own plugins, by entry
points, were removed in version 1.0.) ``gymnasium.make("qdsim:qdsim/PlanarHand-v0")`` imports this
package by itself.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Literal

__all__ = ["GOAL_IDS", "IDS", "register", "register_with_gymnasium"]

IDS: dict[str, tuple[str, str, Literal["push", "command"], Literal["random", "task"]]] = {
    "qdsim/PlanarPushing-v0": ("planar_pushing", "move_back", "push", "random"),
    "qdsim/PlanarPushingPublished-v0": ("planar_pushing", "push_and_turn", "push", "task"),
    "qdsim/PlanarHand-v0": ("planar_hand", "half_turn", "push", "random"),
    "qdsim/PlanarHandCommand-v0": ("planar_hand", "half_turn", "command", "random"),
    "qdsim/PlanarHandPublished-v0": ("planar_hand", "half_turn", "push", "task"),
    "qdsim/AllegroBall-v0": ("allegro_sphere", "either_way", "push", "random"),
    "qdsim/AllegroBallPublished-v0": ("allegro_sphere", "half_turn", "push", "task"),
    "qdsim/AllegroPen-v0": ("allegro_pen", "place", "push", "random"),
    "qdsim/AllegroPlate-v0": ("allegro_plate", "pick_up", "push", "random"),
    "qdsim/AllegroBook-v0": ("allegro_book", "drag", "push", "random"),
    "qdsim/AllegroDoor-v0": ("allegro_door", "open", "push", "random"),
    "qdsim/Bucket-v0": ("iiwa_bimanual_cylinder", "turn", "push", "random"),
    "qdsim/BoxPush-v0": ("iiwa_box_push", "push_and_turn", "command", "random"),
}
"""From ids to system, task, action and goal."""

GOAL_IDS: dict[str, str] = {
    name.replace("-v", "Goal-v"): name for name, told in IDS.items() if told[3] == "random"
}
"""From ids of goal environments, for hindsight experience replay, to ids without goals."""


def register() -> None:
    """Register the ids with Gymnasium; existing registrations are kept."""
    import gymnasium

    for name in (*IDS, *GOAL_IDS):
        if name not in gymnasium.registry:
            gymnasium.register(
                name,
                entry_point="qdsim.envs.ids:one",
                vector_entry_point="qdsim.envs.ids:many",
                kwargs={"id_": name},
            )


def register_with_gymnasium() -> None:
    """Register the ids now if Gymnasium is imported, else when it is imported."""
    if "gymnasium" in sys.modules:
        register()
    elif not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Finder(MetaPathFinder):
    """Finds Gymnasium by Python's other finders, and registers the ids once it is imported."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != "gymnasium":
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


class _Loader(Loader):
    """Wraps another loader, and registers the ids after loading."""

    def __init__(self, loader: Loader) -> None:
        self.loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        module.__spec__.loader = module.__loader__ = self.loader
        self.loader.exec_module(module)
        register()
