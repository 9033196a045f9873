"""Find media files that have the same bytes under different names."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tao_runtime.dataset.collector import Collector
from tao_runtime.dataset.identity import MediaNames, media_names
from tao_runtime.dataset.source import Source
from tao_runtime.errors import Finding, Severity, Where
from tao_runtime.files import sha256_of
from tao_runtime.media.quoting import shown


@dataclass
class Content:
    """Know which files have the same bytes.

    Attributes:
        same_as: file to the first file with its bytes.
        unread: files that could not be compared.
    """

    same_as: Mapping[str, str] = field(default_factory=dict)
    unread: list[str] = field(default_factory=list)

    def name_of(self, file: str) -> str:
        """Return one name for all files with the same bytes."""
        return self.same_as.get(file, file)

    def findings(self, source: Source) -> list[Finding]:
        """Say which files were not compared."""
        if not self.unread:
            return []
        listed = ", ".join(map(shown, self.unread[:10]))
        what = f"{len(self.unread)} media files can't be read and were compared by name only: {listed}"
        fix = "Run tao-runtime data lint with the same --media-dir."
        return [Finding("DATA_MEDIA_NOT_CHECKED", what, Where(file=str(source.path)), fix, Severity.SKIPPED)]


def content_of_files(source: Source, names: MediaNames) -> Content:
    """Compare the bytes of the media files of a set; only files of one size are read.

    Args:
        source: the set.
        names: of its media, with their folder: without it no file is found.
    """
    found = Content()
    of_size: dict[int, list[str]] = {}
    files = dict.fromkeys(
        names.file_of(name) for _, raw in source.records(Collector("")) for name in media_names(source.plain(raw))
    )
    for file in files:
        try:
            of_size.setdefault(os.stat(file).st_size, []).append(file)  # noqa: PTH116 - a name may be no path
        except (OSError, ValueError):
            found.unread.append(file)
    same_as: dict[str, str] = {}
    for alike_in_size in of_size.values():
        first_with: dict[str, str] = {}
        for file in alike_in_size if len(alike_in_size) > 1 else ():
            try:
                same_as[file] = first_with.setdefault(sha256_of(Path(file)), file)
            except OSError:
                found.unread.append(file)
    found.same_as = same_as
    return found
