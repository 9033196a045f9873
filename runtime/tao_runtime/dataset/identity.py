"""Say what makes two records alike: the media they name, the question, the answer's class."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tao_runtime.dataset.lint_sets import normalised
from tao_runtime.errors import Finding, TaoError, Where
from tao_runtime.media.annotations import ROLE_OF, media_of, turns_of
from tao_runtime.media.quoting import shown

MEDIA_TAGS = ("<video>", "<image>")


class MediaNames:
    """Tell which names lead to one file.

    Args:
        media_dir: folder that names start from; with it links of both kinds are followed; without it names are compared as
            paths.

    Raises:
        TaoError: DATA_MEDIA_FOLDER_MISSING.
    """

    def __init__(self, media_dir: Path | None) -> None:
        if media_dir is not None and not media_dir.is_dir():
            what = f"the media folder {shown(str(media_dir))} does not exist"
            fix = "Name the folder that media paths start from."
            raise TaoError(Finding("DATA_MEDIA_FOLDER_MISSING", what, Where(file=str(media_dir)), fix, rule="D3"))
        self._root = None if media_dir is None else os.path.realpath(media_dir)
        self._known: dict[str, str] = {}
        self._first_name: dict[tuple[int, int], str] = {}

    def file_of(self, name: str) -> str:
        """Return one text for all names of a file."""
        found = self._known.get(name)
        if found is None:
            found = os.path.normpath(name) if self._root is None else self._file_at(os.path.join(self._root, name))  # noqa: PTH118
            self._known[name] = found
        return found

    def _file_at(self, path: str) -> str:
        """Follow links of both kinds; of the names of a hard-linked file, the first one asked for stands for all."""
        real = os.path.normpath(path)
        try:
            real = os.path.realpath(path)
            state = os.stat(real)  # noqa: PTH116 - keeps what a name is
        except (OSError, ValueError):  # no file, or half a character, which names none: the linter says so
            return real
        return self._first_name.setdefault((state.st_dev, state.st_ino), real)


def media_names(raw: dict[str, Any]) -> list[str]:
    """Return the media of a record as it writes them; what is no text is written as Python shows it."""
    return [path if isinstance(path, str) else repr(path) for _, path in media_of(raw)]


def first_text(raw: dict[str, Any], role: str) -> str | None:
    """Return the text of the first turn of a role (`user`, `assistant`), None when there is none."""
    return next((text for one, text in spoken(raw) if one == role and isinstance(text, str)), None)


def spoken(raw: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield `(role, text)` of a record's turns, roles by one name each (`human` is `user`)."""
    for written, text in turns_of(raw):
        yield (ROLE_OF.get(written, written) if isinstance(written, str) else repr(written)), text


def question_of(raw: dict[str, Any]) -> str:
    """Return the question without media tags and outer blanks; empty when there is none."""
    return plain_question(first_text(raw, "user") or "")


def plain_question(text: str) -> str:
    """Return a question without media tags and outer blanks."""
    for tag in MEDIA_TAGS:
        text = text.replace(tag, "")
    return text.strip()


def class_of(raw: dict[str, Any]) -> str | None:
    """Return the answer in small letters without sentence marks, None when there is no answer."""
    answer = first_text(raw, "assistant")
    return None if answer is None else normalised(answer) or answer.strip()


def digest(text: str) -> bytes:
    """Return 16 bytes that stand for a text, half characters included."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def canonical_digest(raw: dict[str, Any]) -> bytes:
    """Return 16 bytes that stand for a record, whatever the order of its keys."""
    return digest(json.dumps(raw, sort_keys=True, ensure_ascii=True, default=repr))


def alike(text: str) -> str:
    """Return a text without case, extra blanks and final stops; what can turn a meaning around (-, <, digits) stays."""
    return " ".join(text.casefold().split()).rstrip(".!?。 ")
