"""Compare files on disk with what the Hub says of them: present, size, hash; and weights with their own header."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tao_runtime.files import sha256_of
from tao_runtime.hub.cache import Stamp
from tao_runtime.hub.questions import ModelFile

# Hashing reads at the disk's speed with few threads; hashlib lets go of the interpreter while it works.
_HASH_THREADS = 4
_LFS_POINTER = b"version https://git-lfs.github.com/spec/"
_HEADER_LIMIT_BYTES = 100 * 2**20


@dataclass(frozen=True, slots=True)
class FileFault:
    """Say what is wrong with one file.

    Attributes:
        path: name in the model.
        what: the fact, to stand after the name.
        missing: True when there is no file at all, False when there is a wrong one.
    """

    path: str
    what: str
    missing: bool = False

    def __str__(self) -> str:
        return f"{self.path} {self.what}"


class Verifier:
    """Verify the files of one snapshot, hashing each content at most once in this process.

    Args:
        folder: where the files lie under their own names.
        files: what the Hub says of them.
        known: stamps under which a file was found right before.
    """

    def __init__(self, folder: Path, files: Iterable[ModelFile], known: Mapping[str, Stamp]) -> None:
        self.folder = folder
        self.files = tuple(files)
        self.hashed_bytes = 0
        self._known = known
        self._digests: dict[tuple[int, int, int, int], str] = {}

    def faults(self) -> list[FileFault]:
        """Return the faults of all files, in the files' order; empty means that everything matches."""
        with ThreadPoolExecutor(_HASH_THREADS) as threads:
            return [fault for fault in threads.map(self._fault, self.files) if fault is not None]

    def unknown_bytes(self) -> int:
        """Return how much there is to hash, for a word to the user before it takes its time."""
        paths = ((file.path, self.folder / file.path) for file in self.files)
        stamps = ((name, Stamp.of(path)) for name, path in paths if path.is_file())
        return sum(stamp.size_bytes for name, stamp in stamps if self._known.get(name) != stamp)

    def matches(self, path: Path, file: ModelFile) -> bool:
        """Return whether the content at `path` has the hash that the Hub gives; True when it gives none."""
        expected = file.sha256 or file.git_sha1
        return expected is None or self._digest(path, file) == expected

    def _fault(self, file: ModelFile) -> FileFault | None:
        path = self.folder / file.path
        if not path.is_file():
            return FileFault(file.path, "is not there", missing=True)
        stamp = Stamp.of(path)
        if file.size_bytes is not None and stamp.size_bytes != file.size_bytes:
            return FileFault(file.path, f"has {stamp.size_bytes} bytes instead of {file.size_bytes}")
        if self._known.get(file.path) != stamp and not self.matches(path, file):
            return FileFault(file.path, f"has another {'SHA-256' if file.sha256 else 'git hash'} than the Hub says")
        return None

    def _digest(self, path: Path, file: ModelFile) -> str:
        stat = path.stat()
        identity = (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns)
        if identity not in self._digests:
            self._digests[identity] = sha256_of(path) if file.sha256 else _git_sha1_of(path)
            self.hashed_bytes += stat.st_size
        return self._digests[identity]


def hash_in_link(path: Path) -> tuple[str | None, str | None]:
    """Return (SHA-256, git hash) that the cache keeps as the name of the blob a snapshot's link leads to."""
    name = path.readlink().name if path.is_symlink() else ""
    if not all(digit in "0123456789abcdef" for digit in name):
        return None, None
    return (name if len(name) == 64 else None, name if len(name) == 40 else None)


def content_fault(path: Path, name: str) -> FileFault | None:
    """Return what a file shows to be wrong by itself: a Git LFS pointer, weights cut short, JSON that does not parse."""
    with path.open("rb") as stream:
        start = stream.read(len(_LFS_POINTER))
    if start == _LFS_POINTER:
        return FileFault(name, "is a Git LFS pointer, not the content")
    if name.endswith(".safetensors"):
        return _weights_fault(path, name)
    if name.endswith(".json"):
        try:
            json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            return FileFault(name, f"is not JSON: {error}")
    return None


def _weights_fault(path: Path, name: str) -> FileFault | None:
    """Compare a safetensors file's size with its header: 8 bytes of header length, the header, then the tensors."""
    size = path.stat().st_size
    with path.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        if size < 8 or length > min(size, _HEADER_LIMIT_BYTES):
            return FileFault(name, f"of {size} bytes is no safetensors file, or is cut short")
        try:
            header = json.loads(stream.read(length))
            ends = [entry["data_offsets"][1] for key, entry in header.items() if key != "__metadata__"]
        except (ValueError, KeyError, TypeError, AttributeError, IndexError):
            return FileFault(name, "has no safetensors header")
    expected = 8 + length + max(ends, default=0)
    return None if size == expected else FileFault(name, f"has {size} bytes; its header tells of {expected}")


def _git_sha1_of(path: Path) -> str:
    content = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
