"""Know the layout of the Hub library's cache for one repository, and remember there what has been verified.

<root>/models--<owner>--<name>/refs/<revision>             the commit, as text
                               snapshots/<commit>/<path>   symbolic link to a blob
                               blobs/<sha256 or git-sha1>  the content
                               .tao-verified/<commit>.json ours: what was hashed, and its size and time then
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tao_runtime.files import write_json, write_text
from tao_runtime.hub.names import is_commit
from tao_runtime.hub.questions import ModelFile

_MARKER_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Stamp:
    """Identify a file's content cheaply: the same size and time mean that it was not written since."""

    size_bytes: int
    mtime_ns: int

    @classmethod
    def of(cls, path: Path) -> Stamp:
        """Read the stamp of the file that `path` or its link leads to."""
        stat = path.stat()
        return cls(stat.st_size, stat.st_mtime_ns)


@dataclass(frozen=True, slots=True)
class Verified:
    """Record that the files of a commit matched the Hub's sizes and hashes.

    Attributes:
        commit: the commit.
        weights: whether the weights are among the files.
        files: what was expected.
        stamps: size and time of each file when it was hashed, by path.
    """

    commit: str
    weights: bool
    files: tuple[ModelFile, ...]
    stamps: dict[str, Stamp]


@dataclass(frozen=True, slots=True)
class ModelCache:
    """Locate one repository's files in the library's cache.

    Attributes:
        root: folder of the cache.
        repo_id: `owner/name`.
    """

    root: Path
    repo_id: str

    @property
    def folder(self) -> Path:
        """Return the folder of this repository."""
        return self.root / self._name

    @property
    def lock_file(self) -> Path:
        """Return the file that one staging process holds at a time."""
        return self.root / ".locks" / self._name / "tao-stage.lock"

    @property
    def _name(self) -> str:
        return "models--" + self.repo_id.replace("/", "--")

    def snapshot(self, commit: str) -> Path:
        """Return the folder that shows a commit's files under their own names."""
        return self.folder / "snapshots" / commit

    def blob(self, file: ModelFile) -> Path | None:
        """Return where the library keeps a file's content, None when the Hub gave no hash."""
        name = file.sha256 or file.git_sha1
        return None if name is None else self.folder / "blobs" / name

    def partial(self, file: ModelFile) -> Path:
        """Return where the content gathers until it is whole and its hash is right."""
        return self.folder / "blobs" / f"{file.sha256}.tao-partial"

    def commit_of(self, revision: str) -> str | None:
        """Return the commit that the revision pointed to when it was last staged here."""
        if is_commit(revision):
            return revision
        try:
            text = (self.folder / "refs" / revision).read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError):
            return None
        return text if is_commit(text) else None

    def remember_commit(self, revision: str, commit: str) -> None:
        """Write what a revision points to, as the library itself does, so that the name works offline."""
        if revision != commit and self.commit_of(revision) != commit:
            write_text(self.folder / "refs" / revision, commit)

    def stamp(self, commit: str, path: str) -> Stamp | None:
        """Return the stamp of a snapshot's file, None when there is none."""
        try:
            return Stamp.of(self.snapshot(commit) / path)
        except OSError:
            return None

    def verified(self, commit: str) -> Verified | None:
        """Return what was verified of a commit, None when nothing is recorded or the record can't be read."""
        try:
            record = json.loads(self._marker(commit).read_text(encoding="utf-8"))
            if record["format"] != _MARKER_FORMAT:
                return None
            entries = record["files"]
            files = tuple(ModelFile(path, e["size_bytes"], e["sha256"], e["git_sha1"]) for path, e in entries.items())
            stamps = {path: Stamp(e["found_bytes"], e["mtime_ns"]) for path, e in entries.items()}
            return Verified(commit, record["weights"], files, stamps)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def remember_verified(self, commit: str, files: Iterable[ModelFile], *, weights: bool) -> None:
        """Record that these files of a commit match.

        Raises:
            OSError: when the cache can't be written.
        """
        entries = {}
        for file in files:
            stamp = Stamp.of(self.snapshot(commit) / file.path)
            entries[file.path] = {
                "size_bytes": file.size_bytes,
                "sha256": file.sha256,
                "git_sha1": file.git_sha1,
                "found_bytes": stamp.size_bytes,
                "mtime_ns": stamp.mtime_ns,
            }
        write_json(self._marker(commit), {"format": _MARKER_FORMAT, "commit": commit, "weights": weights, "files": entries})

    def _marker(self, commit: str) -> Path:
        return self.folder / ".tao-verified" / f"{commit}.json"
