"""Files of arrays with a JSON header (``.npz``, no pickles inside) that are always whole."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["read_archive", "write_archive"]


def write_archive(
    path: str | os.PathLike[str], header: Mapping[str, Any], arrays: Mapping[str, Any]
) -> None:
    """Write a header and arrays. The file is written beside its place and then moved there, so that a run that is cut
    off leaves the last whole one.
    """
    place = Path(path)
    part = place.with_name(place.name + ".part")
    with open(part, "wb") as file:
        np.savez(file, header=np.array(json.dumps(header, default=_plain)), **arrays)
    os.replace(part, place)


def read_archive(content: bytes) -> tuple[Any, dict[str, Any]]:
    """Header and arrays of a file's content. NumPy, zipfile and json raise all sorts at damaged ones."""
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    return json.loads(str(arrays["header"])), arrays


def _plain(value: Any) -> Any:
    """Numbers that JSON does not know: those of NumPy, as in the states of some random generators."""
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    raise TypeError(f"a {type(value).__name__} cannot be written")
