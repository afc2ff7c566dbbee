"""Names of the systems: exact, of environments, or similar."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

from qdsim.registration import IDS

__all__ = ["environments_of", "near_names", "plain_name"]


def plain_name(name: str, names: Sequence[str]) -> str | None:
    """Return the system that a name refers to, or None.

    It may be spelled differently (``Planar-Hand``), be an environment (``qdsim/AllegroBall-v0``,
    ``allegro_ball``), or the object of the Allegro hand (``ball``).
    """
    known = _ENVIRONMENTS | {other: other for other in names}
    key = _spelt(name)
    return known.get(key) or known.get(f"allegro_{key}")


def near_names(name: str, names: Sequence[str], most: int = 4) -> list[str]:
    """Return similar names, best first: names that contain it (``box``), are spelled similarly, or
    share a word (``plates``)."""
    key = _spelt(name)
    all_of = _ENVIRONMENTS | {known: known for known in names}
    with_words = [
        other for other in all_of if any(len(w) > 2 and w in key for w in other.split("_"))
    ]
    containing = [other for other in all_of if len(key) > 2 and key in other]
    alike = difflib.get_close_matches(key, list(all_of), n=most)
    found = [all_of[other] for other in [*containing, *alike, *with_words]]
    return list(dict.fromkeys(found))[:most]


def environments_of(system: str) -> list[str]:
    """Return the ids of the environments of a system."""
    return [id_ for id_, (known, *_) in IDS.items() if known == system]


def _spelt(name: str) -> str:
    """Convert a name to lower case with underscores, without ``qdsim/`` and ``-v0``."""
    bare = re.sub(r"-v\d+$", "", name.strip().removeprefix("qdsim/"))
    parts = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", bare)
    return re.sub(r"[\s_-]+", "_", parts).lower()


_ENVIRONMENTS = {_spelt(id_): system for id_, (system, *_) in IDS.items()}
"""Names of systems by ids in the form of :func:`_spelt`."""
