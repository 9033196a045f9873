"""Tell whether two names mean one media file."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

MAX_NAMES_KEPT = 1 << 16


class MediaIdentity:
    """Give each media file one number, whatever names lead to it.

    Args:
        folder: the media folder that names start from; None leaves names as they are.
        may_look: files may be looked at: links of both kinds and absolute paths then count as the file they lead to. Without it
            only `./`, `..` and doubled slashes are seen through.
    """

    def __init__(self, folder: str | Path | None, *, may_look: bool) -> None:
        self._folder = "" if folder is None else os.path.join(os.path.abspath(folder), "")  # noqa: PTH100, PTH118 - keeps `..`
        self._may_look = may_look
        self.of = lru_cache(maxsize=MAX_NAMES_KEPT)(self._of)

    def _of(self, name: str) -> int:
        path = name if name.startswith("/") else self._folder + name
        if self._may_look:
            try:
                state = os.stat(path)  # noqa: PTH116
            except (OSError, ValueError):  # not there, or no name for a file: other rules say so
                pass
            else:
                return hash((state.st_dev, state.st_ino))
        return hash(os.path.normpath(path) if "//" in path or "./" in path else path)
