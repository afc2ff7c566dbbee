"""Arrays of the caller for the results of a batch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Wanted", "outputs"]

Wanted = dict[str, tuple[tuple[int, ...], type[np.generic]]]
"""Shape and type of every result that can be written into an array of the caller."""


def outputs(out: object, wanted: Wanted, inputs: Iterable[Any]) -> dict[str, npt.NDArray[Any]]:
    """Check and return the arrays of ``out``, a mapping from names of results or an earlier result."""
    if out is None:
        return {}
    if isinstance(out, Mapping):
        given = dict(out)
    else:
        derivatives = getattr(out, "derivatives", {})
        given = {name: getattr(out, name, derivatives.get(name)) for name in wanted}
        given = {name: array for name, array in given.items() if array is not None}
        if not given:
            raise TypeError(
                f"out: expected a mapping from names to arrays or a result, got {type(out).__name__}"
            )
    for name, array in given.items():
        if name not in wanted:
            raise ValueError(f"out: expected names among {', '.join(wanted)}, got {name!r}")
        _check(name, array, *wanted[name])
    arrays = list(given.items())
    for i, (name, array) in enumerate(arrays):
        for other, before in arrays[:i]:
            if np.may_share_memory(array, before):
                raise ValueError(f"out[{name!r}]: shares memory with out[{other!r}]")
        if any(_overlap(array, read) for read in inputs):
            raise ValueError(f"out[{name!r}]: shares memory with an input")
    return given


def _check(name: str, array: object, shape: tuple[int, ...], kind: type[np.generic]) -> None:
    if not isinstance(array, np.ndarray):
        raise TypeError(f"out[{name!r}]: expected an array, got {type(array).__name__}")
    if array.dtype != np.dtype(kind) or not array.dtype.isnative:
        raise TypeError(f"out[{name!r}]: expected dtype {np.dtype(kind)}, got {array.dtype}")
    if array.shape != shape:
        raise ValueError(f"out[{name!r}]: expected shape {shape}, got {array.shape}")
    if not array.flags.c_contiguous or not array.flags.aligned:
        raise ValueError(f"out[{name!r}]: expected a C-contiguous array")
    if not array.flags.writeable:
        raise ValueError(f"out[{name!r}]: cannot be written to")


def _overlap(array: npt.NDArray[Any], read: npt.NDArray[Any]) -> bool:
    """Return whether two arrays share memory; if that takes too long to decide, True."""
    try:
        work: Any = 10_000  # the type stubs do not accept other numbers
        return bool(np.shares_memory(array, read, max_work=work))
    except np.exceptions.TooHardError:
        return True
