"""Write a set of records as a JSON array, JSON lines, Parquet or a tao-vl-reason document: whole or not at all."""

from __future__ import annotations

import json
import shlex
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Any, TextIO

from tao_runtime.dataset.columns import ColumnPlan, write_parquet
from tao_runtime.errors import Finding, FixKind, TaoError, Where
from tao_runtime.files import replacing
from tao_runtime.media.quoting import is_whole

Write = Callable[[dict[str, Any]], None]


class Container(StrEnum):
    """What a file of records is."""

    JSON = "json"
    JSONL = "jsonl"
    PARQUET = "parquet"


def json_of(value: Any) -> str:
    """Return strict JSON in one line; half characters are escaped, since UTF-8 can't hold them.

    Raises:
        ValueError: for what JSON has not: NaN, an infinity, bytes or a date of a Parquet file.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except TypeError as error:
        raise ValueError(str(error)) from None
    return text if is_whole(text) else json.dumps(value, allow_nan=False)


@contextmanager
def writing_set(path: Path | None, container: Container, header: Mapping[str, Any] | None = None) -> Iterator[Write]:
    """Yield a function that writes one record; the file is replaced when all went well, and left as it was when not.

    Args:
        path: the file; None writes nothing, but refuses what could not be written.
        container: what the file is to be.
        header: keys of a tao-vl-reason document beside its items; None writes a list of records. Only for JSON.

    Raises:
        TaoError: USAGE_OUTPUT_UNWRITABLE.
    """
    if path is None:
        yield _refuse_only
        return
    try:
        with replacing(path) as temporary:
            if container is Container.PARQUET:
                with _parquet(temporary) as write:
                    yield write
            else:
                with temporary.open("w", encoding="utf-8", newline="\n") as stream:
                    before, between, after = _frame(container, header)
                    stream.write(before)
                    write = _Lines(stream, between)
                    yield write
                    stream.write(after if write.num_written else after.lstrip("\n"))
    except OSError as error:
        what = f"{path} can't be written: {error.strerror or error}"
        raise TaoError(Finding("USAGE_OUTPUT_UNWRITABLE", what, Where(file=str(path)), "Choose another path.")) from None


def refuse_same_file(out: Path, sources: list[Path]) -> None:
    """Refuse to write over what is read.

    Raises:
        TaoError: USAGE_OUTPUT_UNWRITABLE.
    """
    if any(source.exists() and out.exists() and out.samefile(source) for source in sources):
        fix = f"Choose another --out than {shlex.quote(str(out))}."
        finding = Finding("USAGE_OUTPUT_UNWRITABLE", f"{out} is the file that is read", Where(file=str(out)), fix)
        raise TaoError(finding)


def container_for(out: Path, named: str | None) -> Container:
    """Return the container that was named, or that the file's name says.

    Raises:
        TaoError: USAGE_ARGUMENTS when neither says one, or they disagree.
    """
    by_name = {f".{one}": one for one in Container}.get(out.suffix.lower())
    chosen = by_name if named is None else Container(named)
    if chosen is None or by_name not in (None, chosen):
        what = (
            f"--out {out} does not end in .json, .jsonl or .parquet"
            if chosen is None
            else (f"--format {chosen} and --out {out} disagree; other readers go by the name")
        )
        fix = f"Write to {out.with_suffix(f'.{chosen or Container.JSON}')}."
        raise TaoError(Finding("USAGE_ARGUMENTS", what, Where(file=str(out)), fix, fix_kind=FixKind.EDIT))
    return chosen


class _Lines:
    """Write records one a line."""

    def __init__(self, stream: TextIO, between: str) -> None:
        self._stream, self._between = stream, between
        self.num_written = 0

    def __call__(self, record: dict[str, Any]) -> None:
        text = json_of(record)
        self._stream.write(self._between + text if self.num_written else text)
        self.num_written += 1


@contextmanager
def _parquet(path: Path) -> Iterator[Write]:
    plan = ColumnPlan()
    with tempfile.TemporaryDirectory(prefix=".spool.", dir=path.parent) as folder:
        spool = Path(folder) / "records.jsonl"
        with spool.open("w", encoding="ascii") as stream:

            def write(record: dict[str, Any]) -> None:
                try:
                    text = json.dumps(record, allow_nan=False)
                except TypeError as error:
                    raise ValueError(str(error)) from None
                plan.take(record)
                stream.write(f"{text}\n")

            yield write
        write_parquet(spool, path, plan)


def _frame(container: Container, header: Mapping[str, Any] | None) -> tuple[str, str, str]:
    if container is Container.JSONL:
        return "", "\n", "\n"
    if header is None:
        return "[\n", ",\n", "\n]\n"
    return (
        "".join(["{", *(f"{json_of(key)}: {json_of(value)},\n" for key, value in header.items()), '"items": [\n']),
        ",\n",
        "\n]}\n",
    )


def _refuse_only(record: dict[str, Any]) -> None:
    json_of(record)
