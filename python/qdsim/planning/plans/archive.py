"""Files of arrays with a JSON header (``.npz``, no pickles inside): plans, trees and checkpoints,
written and read.

A file is written completely or not at all (:func:`qdsim.whole_files.replacing`). A reader requests
each entry with its type and size; both are compared with those in the file before the entry is
read. Entries that are not requested are an error and are not read. Any fault of a file is a
``ValueError`` that names it.
"""

from __future__ import annotations

import dataclasses
import json
import os
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from qdsim.arguments import MOST_COUNT
from qdsim.whole_files import opened, replacing

__all__ = ["Archive", "Format", "load_checkpoint", "read_archive", "write_archive"]

T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class Format:
    """One kind of file.

    Attributes:
        name: name of the format, in the header.
        version: version that is written and read.
        noun: name of the kind of file in messages: "not ``noun``".
    """

    name: str
    version: int
    noun: str


def write_archive(
    path: str | os.PathLike[str],
    format: Format,
    header: Mapping[str, Any],
    arrays: Mapping[str, Any],
    *,
    compressed: bool = False,
) -> None:
    """Write arrays and a header, to which the format's name and version are added."""
    whole = {"format": format.name, "version": format.version, **header}
    text = np.array(json.dumps(whole, default=_plain))
    with replacing(path) as file:
        (np.savez_compressed if compressed else np.savez)(file, header=text, **arrays)


def read_archive(
    path: str | os.PathLike[str],
    format: Format,
    make: Callable[[Archive], T],
    *,
    argument: str = "",
) -> T:
    """Read a file with ``make``.

    Args:
        path: path of the file.
        format: format of the file.
        make: requests all entries and returns the result.
        argument: name of the public function's argument, for messages.

    Raises:
        OSError: if the file cannot be opened.
        ValueError: if it is damaged, has another format, or ``make`` raises anything.
    """
    with opened(path) as file:
        try:
            archive = Archive(file, format)
            made = make(archive)
            archive.check_used()
            return made
        except (
            Exception
        ) as error:  # NumPy, zipfile, json and makers raise all sorts at damaged files
            reason = f"has no {error}" if isinstance(error, KeyError) else str(error)
            said = f"{argument}: " if argument else ""
            raise ValueError(f"{said}{Path(path)}: not {format.noun}: {reason}") from None


def load_checkpoint(
    path: str | os.PathLike[str],
    format: Format,
    mark: str,
    make: Callable[[Archive], T],
    *,
    inputs: str,
) -> T | None:
    """Read a checkpoint with ``make``; None if the file does not exist.

    Args:
        mark: fingerprint of this run.
        inputs: inputs that the fingerprint depends on, for messages.

    Raises:
        OSError: if the file cannot be opened.
        ValueError: if it is damaged, or belongs to another run.
    """

    def checked(archive: Archive) -> T:
        if archive.header["mark"] != mark:
            raise ValueError(f"it belongs to another {inputs}")
        return make(archive)

    if not os.path.exists(path):
        return None
    return read_archive(path, format, checked, argument="checkpoint")


class Archive:
    """An open file.

    Attributes:
        header: its header.
    """

    header: dict[str, Any]

    def __init__(self, file: IO[bytes], format: Format) -> None:
        if not zipfile.is_zipfile(file):
            raise ValueError("it is not an archive of arrays (.npz), or is truncated")
        self._zip = zipfile.ZipFile(file)
        names = self._zip.namelist()
        if len(set(names)) < len(names):
            raise ValueError("it has two entries of one name")
        self._left = set(names)
        header = json.loads(self._header())
        if not isinstance(header, dict) or header.get("format") != format.name:
            raise ValueError("its header is that of another format")
        version = header["version"]
        if type(version) is not int or version != format.version:
            raise ValueError(f"version {version} of the format, this qdsim reads {format.version}")
        self.header = header

    def __contains__(self, name: str) -> bool:
        return f"{name}.npy" in self._zip.NameToInfo

    def shape(self, name: str, rank: int) -> tuple[int, ...]:
        """Return the shape of an entry according to the file, after checking its number of dimensions."""
        with self._open(name) as stream:
            shape, _, _ = _npy_header(stream)
        if len(shape) != rank:
            raise ValueError(f"{name} has shape {shape} in place of {rank} dimensions")
        return shape

    def array(
        self, name: str, dtype: DTypeLike, *shape: int | None, fault: str = ""
    ) -> NDArray[Any]:
        """Read an entry, which must have this type and shape (None: any size). Floats must be finite.

        ``fault`` is the error message for another type or shape.
        """
        wanted = np.dtype(dtype)
        with self._open(name) as stream:
            found_shape, fortran, found = _npy_header(stream)
            fits = len(found_shape) == len(shape) and all(
                size is None or size == there for size, there in zip(shape, found_shape)
            )
            if found != wanted:
                raise ValueError(fault or f"{name} has dtype {found} in place of {wanted}")
            if not fits:
                sizes = ", ".join("any" if n is None else str(n) for n in shape)
                raise ValueError(
                    fault
                    or f"the sizes of its arrays contradict each other: {name} has shape {found_shape} "
                    f"in place of ({sizes})"
                )
            array = self._data(name, stream, found_shape, found, fortran)
        if wanted.kind == "f" and not np.all(np.isfinite(array)):
            raise ValueError(f"{name} is not a table of finite numbers")
        return array

    def counts(self, name: str, size: int | None = None, fault: str = "") -> NDArray[np.int64]:
        """Read an entry of counts, which must not be negative."""
        array = self.array(name, np.int64, size, fault=fault)
        if np.any(array < 0):
            raise ValueError(f"{name} is not a list of counts")
        return array

    def check_used(self) -> None:
        """Check that every entry was requested."""
        if self._left:
            raise ValueError(f"it has an entry {min(self._left)!r} that does not belong there")

    def _header(self) -> str:
        with self._open("header") as stream:
            shape, _, dtype = _npy_header(stream)
            if shape != () or dtype.kind != "U" or dtype.itemsize > 4 * MOST_COUNT:
                raise ValueError("its header is no text")
            return str(self._data("header", stream, shape, dtype, False))

    def _open(self, name: str) -> IO[bytes]:
        member = f"{name}.npy"
        if member not in self._zip.NameToInfo:
            raise KeyError(name)
        self._left.discard(member)
        return self._zip.open(member)

    def _data(
        self,
        name: str,
        stream: IO[bytes],
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        fortran: bool,
    ) -> NDArray[Any]:
        count = 1
        for size in shape:
            count *= size
        length = count * dtype.itemsize
        if self._zip.NameToInfo[f"{name}.npy"].file_size != stream.tell() + length:
            raise ValueError(f"{name} is not as long as its shape {shape} says")
        content = bytearray(stream.read())  # reading to the end makes zipfile verify the checksum
        return np.ascontiguousarray(
            np.ndarray(shape, dtype, buffer=content, order="F" if fortran else "C")
        ).reshape(shape)


def _npy_header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Read the shape, the order (True: column-major) and the type of an array in NumPy's format."""
    version = np.lib.format.read_magic(stream)
    read = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }[version]
    shape, fortran, dtype = read(stream)
    if dtype.hasobject:
        raise ValueError("it holds Python objects")
    return shape, fortran, dtype


def _plain(value: Any) -> Any:
    """Convert NumPy's numbers for JSON; the states of some random generators contain them."""
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    raise TypeError(f"a {type(value).__name__} cannot be written")
