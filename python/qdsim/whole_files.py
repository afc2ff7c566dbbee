"""Files that are whole or not there: written beside their place, synced, then moved to it."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO

__all__ = ["replacing"]


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A new file, open for writing, that takes the place of ``path`` when the block ends well.

    What was at ``path`` stays as it was until then, and for good if the block raises (a full disk,
    an interrupt). The new file lies in the same folder under a random name, with the suffix of
    ``path`` (``file.name`` says where); it is never one that was there before, a link included. It
    has the mode of the file that it replaces, else what the umask leaves. Where ``path`` is a link,
    the file that it points to is replaced. A device or a pipe is written to directly.

    Raises:
        OSError: as ``open`` for writing does.
    """
    place = Path(os.path.realpath(path))
    mode = _mode_of(place)
    if mode is not None and not stat.S_ISREG(mode):
        with open(place, "wb") as file:  # a directory is an error here
            yield file
        return
    if mode is not None and not os.access(place, os.W_OK):
        raise PermissionError(13, "it is read-only", os.fspath(path))
    suffix = place.suffix if len(place.suffix) <= 16 else ""
    part = place.with_name(f".{secrets.token_hex(8)}{suffix}")
    try:
        with _new_file(part, path) as file:
            if mode is not None:
                os.chmod(part, stat.S_IMODE(mode))
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, place)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(part)
        raise
    _sync_folder(place.parent)


def _new_file(part: Path, path: str | os.PathLike[str]) -> IO[bytes]:
    """Open what is going to be ``path``, never one that is there, a link included; errors name ``path``."""
    try:
        return open(part, "xb")
    except OSError as error:
        raise type(error)(error.errno, error.strerror, os.fspath(path)) from None


def _mode_of(path: Path) -> int | None:
    """Type and permissions of what is there, None if nothing is."""
    try:
        return os.stat(path).st_mode
    except FileNotFoundError:
        return None


def _sync_folder(folder: Path) -> None:
    """Make the new name last; file systems that cannot are no error, the file is whole either way."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
