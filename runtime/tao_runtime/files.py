"""Write files so that a reader sees the old content or the new, never a half."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; on success fsync it and rename it into place, on failure remove it.

    Args:
        path: the final file; parent directories are made, a link is followed.

    Raises:
        OSError: when the directory can't be written, the disk is full, or `path` is a folder or a device: root could rename
            a file over /dev/null. `path` is then untouched.
    """
    if path.is_symlink():
        path = path.resolve()
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if path.exists() and not path.is_file():
        raise FileExistsError(errno.EEXIST, "it is a device or a pipe, not a file", str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=path.suffix, dir=path.parent)
    os.close(descriptor)
    temporary = Path(name)
    try:
        yield temporary
        sync(temporary)
        temporary.chmod(_mode_for_new_file())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Replace `path` with UTF-8 `text` and LF line ends, atomically."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def write_json(path: Path, value: Any) -> None:
    """Replace `path` with strict JSON (no NaN or Infinity), two-space indent, final line end."""
    write_text(path, json_text(value))


def json_text(value: Any) -> str:
    """Return strict JSON with two-space indent, keys in the given order and a final line end.

    Raises:
        ValueError: when the value holds NaN or an infinity.
    """
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def sync(path: Path) -> None:
    """Have the content of a file, or the names in a folder, on the disk before going on.

    Raises:
        OSError: when there is no such path, or the disk fails.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sha256_of(path: Path) -> str:
    """Return the hexadecimal SHA-256 of a file's bytes."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def exists(path: Path) -> bool:
    """Tell whether a path is there; one that hides behind a closed folder is not, where Path.exists raises."""
    return os.path.exists(path)  # noqa: PTH110


def is_folder(path: Path) -> bool:
    """Tell whether a folder is there; one that hides behind a closed folder is not, where Path.is_dir raises."""
    return os.path.isdir(path)  # noqa: PTH112


def is_plain_file(path: Path) -> bool:
    """Tell whether a file is there; one that hides behind a closed folder is not, where Path.is_file raises."""
    return os.path.isfile(path)  # noqa: PTH113


def why_no_folder(path: Path) -> str | None:
    """Return why a folder can't be read, None when it can."""
    try:
        is_there = stat.S_ISDIR(path.stat().st_mode)
    except PermissionError as error:
        return f"can't be read: {error.strerror}"
    except (OSError, ValueError):
        return "does not exist"
    if not is_there:
        return "is a file"
    return None if os.access(path, os.R_OK | os.X_OK) else "can't be read: Permission denied"


def nearest_existing(path: Path) -> Path:
    """Return the path, or the nearest folder above it that is there; one that hides behind a closed folder is not there."""
    absolute = path.absolute()
    return next(one for one in (absolute, *absolute.parents) if exists(one))


def why_unwritable(folder: Path) -> str | None:
    """Return why a folder can't be made or written, None when it can as far as rights tell; nothing is written."""
    existing = nearest_existing(folder)
    if not existing.is_dir():
        return f"{existing} is a file"
    return None if os.access(existing, os.W_OK | os.X_OK) else f"{existing} can't be written"


def _mode_for_new_file() -> int:
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask
