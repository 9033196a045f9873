"""Keep answers as they come, so that an evaluation that was stopped goes on where it was.

One file a shard, JSON lines: first the fingerprint of the settings, then an object an answer.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from tao_runtime.errors import Finding, Severity, Where
from tao_runtime.status.events import LineLog


@dataclass(frozen=True, slots=True)
class SavedAnswer:
    """Hold one answer: place of its record in the annotation file, text, tokens, how it ended, and the likeliest choice."""

    index: int
    response: str
    num_tokens: int
    finish: str
    likeliest: str | None = None


def answers_path(folder: Path, shard: int, num_shards: int) -> Path:
    """Return the file of one shard."""
    return folder / ("answers.jsonl" if num_shards == 1 else f"answers_{shard}_of_{num_shards}.jsonl")


def read_answers(path: Path, fingerprint: str) -> tuple[dict[int, SavedAnswer], list[Finding]]:
    """Read the answers given under the same settings, by index.

    Returns:
        The answers, and a warning when there are some that were given under other settings.
    """
    if not path.is_file():
        return {}, []
    found: dict[int, SavedAnswer] = {}
    num_stale, is_current = 0, False
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        record = _parsed(line)
        if "fingerprint" in record:
            is_current = record["fingerprint"] == fingerprint
        elif not is_current:
            num_stale += bool(record)
        elif (answer := _answer(record)) is not None:
            found[answer.index] = answer
    if num_stale and not found:
        what = f"{path} holds {num_stale} answers given under other settings; they are asked again"
        return {}, [Finding("RUN_SAVED_ANSWERS_STALE", what, Where(file=str(path)), severity=Severity.WARNING)]
    return found, []


class AnswerLog:
    """Append answers to the file of a shard.

    Args:
        path: the file; what it holds is dropped but for `kept`.
        fingerprint: of the settings.
        kept: answers that stay.

    Raises:
        OSError: when it can't be written.
    """

    def __init__(self, path: Path, fingerprint: str, kept: Sequence[SavedAnswer]) -> None:
        partial = path.with_name(f".{path.name}.partial")
        partial.unlink(missing_ok=True)
        with LineLog(partial) as lines:
            lines.append({"fingerprint": fingerprint})
            for answer in kept:
                lines.append(_document(answer))
        partial.replace(path)
        self._lines = LineLog(path)

    def append(self, answer: SavedAnswer) -> None:
        """Append one answer and hand it to the operating system."""
        self._lines.append(_document(answer))

    def __enter__(self) -> AnswerLog:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._lines.close()


def _document(answer: SavedAnswer) -> dict[str, Any]:
    return asdict(answer)


def _parsed(line: str) -> dict[str, Any]:
    """Return the object on a line; empty for a half line, which a killed process leaves."""
    try:
        value = json.loads(line)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _answer(record: dict[str, Any]) -> SavedAnswer | None:
    try:
        choice = record["likeliest"]
        return SavedAnswer(
            index=int(record["index"]),
            response=str(record["response"]),
            num_tokens=int(record["num_tokens"]),
            finish=str(record["finish"]),
            likeliest=None if choice is None else str(choice),
        )
    except (KeyError, TypeError, ValueError):
        return None
