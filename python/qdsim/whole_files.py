"""Files that are written completely or not at all (temporary file, sync, rename), and reading of
regular files only."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO

__all__ = ["SAVE_PAUSE", "opened", "replacing"]

SAVE_PAUSE = 30.0
"""Time between two writes of unfinished work, s; it is lost at a crash."""

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}
"""Numbers of errors during writing, which carry no file name; the path is added to them."""


def opened(path: str | os.PathLike[str]) -> IO[bytes]:
    """Open a file for reading; pipes and devices, which may never end, are errors.

    Raises:
        OSError: as ``open``; also if it is not a regular file.
    """
    mode = os.stat(path).st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        kind = "pipe" if stat.S_ISFIFO(mode) else "device or socket"
        raise OSError(
            errno.EINVAL, f"a {kind}, which may never end; save it as a file", os.fspath(path)
        )
    return open(path, "rb")


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str], *, named: bool = False) -> Iterator[IO[bytes]]:
    """Open a new file for writing that replaces ``path`` when the block ends without an error.

    An existing file at ``path`` stays until then, and permanently if the block raises (a full disk,
    an interrupt, a kill). If the system supports it, the new file has no name until it is complete,
    so a killed process leaves nothing behind; otherwise, or with ``named``, it is in the same
    folder under a random name with the suffix of ``path`` (``file.name``). It is never an existing
    file or link. It has the mode of the file that it replaces, else that of the umask. If ``path``
    is a link, its target is replaced. A device or a pipe is written to directly.

    Raises:
        OSError: as ``open`` for writing; if the disk is full, with ``path`` as its file.
    """
    try:
        with _replaced(path, named) as file:
            yield file
    except OSError as error:
        if error.filename is None and error.errno in _FULL:
            raise type(error)(error.errno, error.strerror, os.fspath(path)) from error
        raise


@contextlib.contextmanager
def _replaced(path: str | os.PathLike[str], named: bool) -> Iterator[IO[bytes]]:
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
    nameless = None if named else _nameless(place.parent)
    try:
        with nameless or _new_file(part, path) as file:
            if mode is not None:
                os.chmod(file.fileno(), stat.S_IMODE(mode))
            yield file
            file.flush()
            os.fsync(file.fileno())
            if nameless is not None:
                _name(file, part, path)
        os.replace(part, place)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(part)
        raise
    _sync_folder(place.parent)


def _nameless(folder: Path) -> IO[bytes] | None:
    """Open a file without a name in a folder; None if the system does not support this."""
    flag = getattr(os, "O_TMPFILE", None)
    if flag is None or not os.path.isdir("/proc/self/fd"):
        return None
    try:
        return os.fdopen(os.open(folder, os.O_WRONLY | flag | os.O_CLOEXEC, 0o666), "wb")
    except OSError:
        # The file system does not support it, or the folder does not exist; then the next attempt
        # reports it.
        return None


def _name(file: IO[bytes], part: Path, path: str | os.PathLike[str]) -> None:
    """Link a nameless file to a new name; an existing file is never replaced."""
    try:
        # Passing a directory, which has no effect on an absolute path, makes Python call linkat,
        # which follows the link.
        os.link(f"/proc/self/fd/{file.fileno()}", part, src_dir_fd=file.fileno())
    except OSError as error:
        raise type(error)(error.errno, error.strerror, os.fspath(path)) from None


def _new_file(part: Path, path: str | os.PathLike[str]) -> IO[bytes]:
    """Create a temporary file for ``path``, which must not exist, not even as a link; errors name ``path``."""
    try:
        return open(part, "xb")
    except OSError as error:
        raise type(error)(error.errno, error.strerror, os.fspath(path)) from None


def _mode_of(path: Path) -> int | None:
    """Return type and permissions of an existing file, or None."""
    try:
        return os.stat(path).st_mode
    except FileNotFoundError:
        return None


def _sync_folder(folder: Path) -> None:
    """Sync the folder, so that the new name survives a crash.

    File systems that cannot do this raise no error; the file is complete in either case.
    """
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
