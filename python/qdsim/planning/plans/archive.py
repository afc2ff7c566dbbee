"""Files of arrays with a JSON header (``.npz``, no pickles inside) that are always whole."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

__all__ = ["load_checkpoint", "read_archive", "write_archive"]

T = TypeVar("T")


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


def load_checkpoint(
    path: str | os.PathLike[str],
    begins: Mapping[str, Any],
    make: Callable[[Any, dict[str, Any]], T],
    *,
    run: str,
    inputs: str,
) -> T | None:
    """What ``make`` gets out of a file's header and arrays; None if there is no file.

    Args:
        begins: the header's format, version and mark, as they were written.
        run: what keeps itself there, for messages.
        inputs: what the mark depends on, for messages.

    Raises:
        OSError: if the file cannot be read.
        ValueError: if it is damaged, or not of this run.
    """
    if not os.path.exists(path):
        return None
    content = Path(path).read_bytes()
    try:
        header, arrays = read_archive(content)
        if any(header[name] != begins[name] for name in ("format", "version")):
            raise ValueError("its header is that of another format")
        if header["mark"] != begins["mark"]:
            raise ValueError(f"it belongs to another {inputs}")
        return make(header, arrays)
    except Exception as error:
        reason = f"has no {error}" if isinstance(error, KeyError) else str(error)
        raise ValueError(f"checkpoint: {Path(path)}: not one of this {run}: {reason}") from None


def _plain(value: Any) -> Any:
    """Numbers that JSON does not know: those of NumPy, as in the states of some random generators."""
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    raise TypeError(f"a {type(value).__name__} cannot be written")
