"""Keep on the disk what was measured of media files, so that a second look at a data set takes no time.

An entry counts only for the very file that was measured: same path, device, inode, size, times of change of content and of
inode (which no program can set back), measured by the same version of this code and of the decoder. Only success is kept: a
file that failed is tried again. `tests/media/test_probe_cache.py` holds all of it.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import threading
import time
from array import array
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Any

from tao_runtime.media.probe import VideoFacts

# Raise it whenever a file could be measured differently than before.
PROBE_VERSION = 2
MAX_BYTES = 256 << 20
# A file may change twice within one tick of a file system's clock without showing it; so young a change is not trusted.
_TICK_S = 0.1
_WRITE_EVERY = 256
_TABLE = """CREATE TABLE IF NOT EXISTS probes (
    path BLOB PRIMARY KEY, state TEXT NOT NULL, content TEXT NOT NULL, times BLOB, digest BLOB NOT NULL, seen_s INTEGER NOT NULL
)"""


@dataclass(frozen=True, slots=True)
class Probed:
    """Say what is known of a sound media file.

    Attributes:
        facts: what was measured of a video; None for an image.
        decoded: frame numbers that are known to decode.
    """

    facts: VideoFacts | None
    decoded: frozenset[int]


class ProbeCache:
    """Hold a cache file open; many threads and processes may share it.

    Whatever is wrong with the file or its place, nothing is raised: files are then measured as without a cache.

    Args:
        folder: where the cache file lies or will lie.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / "probes-1.sqlite3"
        self._versions = f"{PROBE_VERSION}/{version('av')}/{version('pillow')}"
        self._lock = threading.Lock()
        self._unwritten: list[tuple[Any, ...]] = []
        self._database = self._opened()

    def __enter__(self) -> ProbeCache:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with self._lock:
            self._write()
            if self._database is not None:
                self._database.close()
                self._database = None

    def get(self, path: str, state: os.stat_result) -> Probed | None:
        """Return what is known of a file in this state; None when it has to be measured."""
        with self._lock:
            rows = self._run("SELECT state, content, times, digest FROM probes WHERE path = ?", (os.fsencode(path),))
        if not rows or rows[0][0] != self._state(state):
            return None
        _, content, times, digest = rows[0]
        # SQLite notices a broken page, not a changed byte in a row.
        return _parsed(path, content, times) if digest == _digest(rows[0][:3]) else None

    def put(self, path: str, state: os.stat_result, probed: Probed) -> None:
        """Remember what was measured of a file that was in this state before."""
        try:
            now = os.stat(path)  # noqa: PTH116
        except OSError:
            return
        if self._state(now) != self._state(state) or time.time() - now.st_ctime < _TICK_S:
            return
        row = (self._state(now), *_packed(probed))
        with self._lock:
            self._unwritten.append((os.fsencode(path), *row, _digest(row), int(time.time())))
            if len(self._unwritten) >= _WRITE_EVERY:
                self._write()

    def _state(self, state: os.stat_result) -> str:
        parts = (state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns)
        return f"{self._versions}/{'/'.join(map(str, parts))}"

    def _write(self) -> None:
        """Write what is held; when the file has grown too large, the half that was written longest ago goes."""
        rows, self._unwritten = self._unwritten, []
        if not rows or self._database is None:
            return
        try:
            with self._database:
                self._database.executemany("INSERT OR REPLACE INTO probes VALUES (?, ?, ?, ?, ?, ?)", rows)
            if self._file.stat().st_size > MAX_BYTES:
                with self._database:
                    self._database.execute(
                        "DELETE FROM probes WHERE path IN "
                        "(SELECT path FROM probes ORDER BY seen_s LIMIT (SELECT (count(*) + 1) / 2 FROM probes))"
                    )
                self._database.execute("VACUUM")
        except (sqlite3.Error, OSError) as error:
            self._give_up(error)

    def _run(self, statement: str, values: tuple[Any, ...]) -> list[Any]:
        if self._database is None:
            return []
        try:
            return self._database.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            self._give_up(error)
            return []

    def _opened(self) -> sqlite3.Connection | None:
        for _ in range(2):
            try:
                self._file.parent.mkdir(parents=True, exist_ok=True)
                database = sqlite3.connect(self._file, timeout=5, check_same_thread=False)
                database.execute(_TABLE)
            except sqlite3.Error as error:
                if not _remove_if_broken(self._file, error):
                    return None
            except OSError:
                return None
            else:
                return database
        return None

    def _give_up(self, error: Exception) -> None:
        """Go on without a cache: it is locked, full or broken. A broken file is removed, so that the next run has a new one."""
        if self._database is not None:
            self._database.close()
            self._database = None
            _remove_if_broken(self._file, error)


def _remove_if_broken(file: Path, error: Exception) -> bool:
    name = getattr(error, "sqlite_errorname", "")
    if not name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
        return False
    with suppress(OSError):
        file.unlink(missing_ok=True)
        return True
    return False


def _digest(row: tuple[Any, ...]) -> bytes:
    return hashlib.blake2b(repr(row).encode("utf-8", "surrogatepass"), digest_size=8).digest()


def _packed(probed: Probed) -> tuple[str, bytes | None]:
    facts, times = probed.facts, None
    if facts is not None:
        times = None if facts.uneven_times_s is None else array("d", facts.uneven_times_s).tobytes()
        facts = replace(facts, path="", uneven_times_s=None)
    return json.dumps([facts and asdict(facts), sorted(probed.decoded)]), times


def _parsed(path: str, content: str, times: bytes | None) -> Probed:
    facts, decoded = json.loads(content)
    if facts is None:
        return Probed(None, frozenset(decoded))
    uneven = None if times is None else tuple(array("d", times))
    return Probed(VideoFacts(**facts | {"path": path, "uneven_times_s": uneven}), frozenset(decoded))
