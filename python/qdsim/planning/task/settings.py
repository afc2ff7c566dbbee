"""The base of all classes of options of planning."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

__all__ = ["Settings"]

_Settings = TypeVar("_Settings", bound="Settings")


@dataclasses.dataclass(frozen=True)
class Settings:
    """Options that do not change; :meth:`replace` makes others from them."""

    def replace(self: _Settings, **changes: Any) -> _Settings:
        """Return the same options with some changed.

        Args:
            **changes: fields and their new values.

        Raises:
            TypeError, ValueError: as for the constructor.
        """
        return dataclasses.replace(self, **changes)
