"""Status of every sample of a batch, and the error for a failed one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from qdsim import _core
from qdsim._core import STATUS_NAMES
from qdsim.array_type import Array
from qdsim.batches.inputs import check_quaternions, sample_name

__all__ = ["BatchMarks", "Errors", "argument_shape", "settle"]

Errors = Literal["raise", "mark"]
"""Whether failed samples raise an error or only get a status."""

_OK = STATUS_NAMES.index("solved")
_BAD_ARGUMENT = STATUS_NAMES.index("bad argument")
_OUT_OF_MEMORY = STATUS_NAMES.index("out of memory")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BatchMarks:
    """Status of every sample of a batch, a part of all results of batches."""

    status: npt.NDArray[np.int32]
    """(...) codes; 0 for solved samples, else an index of ``STATUS_NAMES``."""

    @property
    def ok(self) -> npt.NDArray[np.bool_]:
        """(...) Whether the sample was solved."""
        return np.equal(self.status, _OK)

    @property
    def status_names(self) -> npt.NDArray[np.str_]:
        """(...) The status as a word, as in ``SolverInfo.status``."""
        return np.array(STATUS_NAMES)[self.status]

    def _tally(self) -> str:
        failed = self.status.size - int(np.count_nonzero(self.ok))
        return f"shape={self.status.shape}, failed={failed}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._tally()})"


def settle(
    caller: str,
    model: _core.Model,
    name: str,
    q: Array,
    status: npt.NDArray[np.int32],
    failure: _core._Failure | None,
    lead: tuple[int, ...],
    errors: Errors,
) -> None:
    """Raise the error of the first failed sample if ``errors`` is "raise", and always for invalid arguments."""
    if failure is None:
        return
    status = status.reshape(-1)
    check_quaternions(model, name, q, status, lead)
    if (status == _OUT_OF_MEMORY).any():
        raise MemoryError
    if errors == "raise" or (status == _BAD_ARGUMENT).any():
        where = f"{caller}: {sample_name(failure['sample'], lead)}"
        where += f", step {failure['step']}" if caller.startswith("rollout") else ""
        _core._raise_batch_failure(where, failure["info"], failure["culprits"])


def argument_shape(model: _core.Model, name: str) -> tuple[int, ...]:
    """Shape of an argument of a step; q and mocap poses are in tangent coordinates."""
    inputs = {
        "q": (model.nv,),
        "u": (model.nu,),
        "tau": (model.nv,),
        "wrench": (model.body_count, 6),
        "mocap": (model.mocap_count, 6),
        "v": (model.nv,),
        "h": (),
    }
    found = inputs.get(name)
    return np.shape(getattr(model.parameters, name)) if found is None else found  # type: ignore[attr-defined]
