"""Read and write results.json: an array of `{video_id, question, response, gt}`, further keys allowed.

Reading never stops at a bad row: what is wrong is reported with file and index, and every other row is used.
"""

from __future__ import annotations

import gc
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tao_runtime.errors import Finding, Severity, TaoError, Where
from tao_runtime.files import write_text
from tao_runtime.media.annotations import scan_records

RESULTS_NAME = "results.json"
COLUMNS = ("video_id", "question", "response", "gt")
MAX_FINDINGS_PER_CODE = 20

_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_CODE_OF_SYNTAX = {
    "DATA_ANNOTATIONS_UNREADABLE": "RESULTS_UNREADABLE",
    "DATA_ANNOTATIONS_EMPTY": "RESULTS_EMPTY",
    "DATA_RECORD_NOT_OBJECT": "RESULTS_ROW_INVALID",
}


@dataclass
class Results:
    """Hold the rows of one or more results files, column by column.

    Attributes:
        video_id, question, response, gt: one text a row.
        extras: the row as read, for its further keys.
        files: every file read.
        file_of: for each row, its place in `files`.
        index: for each row, its place in that file, counted from 0.
        findings: what is wrong.
    """

    video_id: list[str] = field(default_factory=list)
    question: list[str] = field(default_factory=list)
    response: list[str] = field(default_factory=list)
    gt: list[str] = field(default_factory=list)
    extras: list[Mapping[str, Any]] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    file_of: list[int] = field(default_factory=list)
    index: list[int] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.gt)

    def where(self, row: int) -> Where:
        """Return the place of a row."""
        own_id = self.extras[row].get("id")
        return Where(
            file=self.files[self.file_of[row]],
            record_index=self.index[row],
            record_id=self.video_id[row] if own_id is None else str(own_id),
        )


class BoundedFindings:
    """Collect findings, at most `MAX_FINDINGS_PER_CODE` of a kind, and count the rest."""

    def __init__(self) -> None:
        self._found: list[Finding] = []
        self._counts: dict[str, int] = {}

    def add(self, finding: Finding) -> None:
        """Add one finding; beyond the bound it is only counted."""
        self._counts[finding.code] = self._counts.get(finding.code, 0) + 1
        if self._counts[finding.code] <= MAX_FINDINGS_PER_CODE:
            self._found.append(finding)

    def summary(self) -> list[Finding]:
        """Return the findings, with one more for each kind that went beyond the bound."""
        more = []
        for code, count in self._counts.items():
            if count > MAX_FINDINGS_PER_CODE:
                last = next(finding for finding in self._found if finding.code == code)
                what = f"{count - MAX_FINDINGS_PER_CODE} more of this kind ({count} together)"
                more.append(replace(last, what=what, where=Where(file=last.where.file)))
        return [*self._found, *more]


def find_results(paths: Sequence[Path]) -> list[Path]:
    """Return the results files that files and folders mean; a folder means its own results.json, else all below it.

    Raises:
        TaoError: RESULTS_MISSING for every path that leads to none.
    """
    found: list[Path] = []
    missing: list[Finding] = []
    for path in paths:
        here = _results_below(path) if path.is_dir() else [path] if path.exists() else []
        if not here:
            what = f"{path} holds no {RESULTS_NAME}" if path.is_dir() else f"{path} does not exist"
            fix = f"Name a {RESULTS_NAME}, or a folder that an evaluation wrote."
            missing.append(Finding("RESULTS_MISSING", what, Where(file=str(path)), fix))
        found.extend(here)
    if missing:
        raise TaoError(missing)
    return list(dict.fromkeys(found))


def read_results(paths: Sequence[Path]) -> Results:
    """Read results files, or the folders they lie in.

    Returns:
        Every row that has a truth; findings name what is wrong with the others.

    Raises:
        TaoError: when a path leads to no results file, a file can't be read or holds only totals.
    """
    results = Results()
    fatal: list[Finding] = []
    faults = BoundedFindings()
    with collection_paused():
        for path in find_results(paths):
            try:
                rows = _read_rows(path, faults)
                _replace_lone_surrogates(path, rows, faults)
            except TaoError as error:
                fatal.extend(error.findings)
                continue
            results.files.append(str(path))
            _append(results, rows, faults)
    if fatal:
        raise TaoError([*fatal, *faults.summary()])
    results.findings = faults.summary()
    return results


def write_results(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Replace `path` with strict JSON, an array with one row a line, atomically."""
    lines = (json.dumps(row, ensure_ascii=False, allow_nan=False) for row in rows)
    body = ",\n".join(lines)
    write_text(path, f"[\n{body}\n]\n" if body else "[]\n")


def _results_below(folder: Path) -> list[Path]:
    own = folder / RESULTS_NAME
    return [own] if own.is_file() else sorted(folder.rglob(RESULTS_NAME))


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows of one file, each with its index there; without an escape of a surrogate, a file holds no half of a character."""

    values: list[Any]
    indices: Sequence[int]
    may_hold_surrogates: bool = True


def _read_rows(path: Path, faults: BoundedFindings) -> _Rows:
    """Return everything in the file that parses.

    Raises:
        TaoError: RESULTS_UNREADABLE, RESULTS_TOTALS_ONLY or RESULTS_NOT_ARRAY.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
        document = json.loads(text, parse_constant=_reject_constant)
    except OSError as error:
        what = f"{path} can't be read: {error.strerror}"
        raise TaoError(Finding("RESULTS_UNREADABLE", what, Where(file=str(path)), fix=f"ls -l '{path}'")) from None
    except (ValueError, RecursionError):
        return _scan_rows(path, faults)
    if isinstance(document, list):
        if not document:
            faults.add(
                _warning("RESULTS_EMPTY", f"{path} holds no rows", Where(file=str(path)), "Evaluate at least one record.")
            )
        return _Rows(document, range(len(document)), may_hold_surrogates=_SURROGATE_ESCAPE.search(text) is not None)
    raise TaoError(_not_an_array(path, document))


def _replace_lone_surrogates(path: Path, rows: _Rows, faults: BoundedFindings) -> None:
    """Write `?` for every half of a character: JSON can spell one, and no text column or page can hold it."""
    if not rows.may_hold_surrogates:
        return
    for place, (index, row) in enumerate(zip(rows.indices, rows.values, strict=True)):
        text = json.dumps(row, ensure_ascii=False)
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            rows.values[place] = json.loads(text.encode("utf-8", errors="replace"))
            what = f"row {index} has a lone surrogate, half of a character; it is read as ?"
            where = Where(file=str(path), record_index=index)
            faults.add(_warning("RESULTS_VALUE_NOT_TEXT", what, where, "Write whole characters."))


def _reject_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _not_an_array(path: Path, document: Any) -> Finding:
    where = Where(file=str(path))
    if isinstance(document, dict) and "overall" in document:
        what = f"{path} holds totals only ({{'overall': …}}), no answers"
        fix = "Evaluate again with results.save_individual_results=true, and name that results.json."
        return Finding("RESULTS_TOTALS_ONLY", what, where, fix)
    what = f"{path} is {_json_name(document)}, not an array of rows"
    return Finding("RESULTS_NOT_ARRAY", what, where, "Name the results.json of an evaluation.")


def _scan_rows(path: Path, faults: BoundedFindings) -> _Rows:
    """Read row by row a file that is not one JSON document: broken in places, or JSON lines."""
    found: list[Finding] = []
    rows = list(scan_records(path, found))
    for finding in found:
        code = _CODE_OF_SYNTAX.get(finding.code, "RESULTS_SYNTAX")
        faults.add(replace(finding, code=code, rule=None))
    return _Rows([row for _, row in rows], [index for index, _ in rows])


def _append(results: Results, rows: _Rows, faults: BoundedFindings) -> None:
    if not _append_clean(results, rows):
        for index, row in zip(rows.indices, rows.values, strict=True):
            _append_row(results, index, row, faults)


def _append_clean(results: Results, rows: _Rows) -> bool:
    """Append all rows at once where every one has its four texts; the common case, ten times as fast."""
    try:
        columns = [[row[name] for row in rows.values] for name in COLUMNS]
    except (KeyError, TypeError, IndexError):
        return False
    if not all(set(map(type, column)) <= {str} for column in columns):
        return False
    for name, column in zip(COLUMNS, columns, strict=True):
        getattr(results, name).extend(column)
    results.extras.extend(rows.values)
    results.file_of.extend([len(results.files) - 1] * len(rows.values))
    results.index.extend(rows.indices)
    return True


def _append_row(results: Results, index: int, row: Any, faults: BoundedFindings) -> None:
    place = Where(file=results.files[-1], record_index=index)
    if not isinstance(row, dict):
        what = f"row {index} is {_json_name(row)}, not an object"
        faults.add(Finding("RESULTS_ROW_INVALID", what, place, "Remove the row, or evaluate again."))
        return
    own_id = row.get("id", row.get("video_id"))
    place = replace(place, record_id=own_id if isinstance(own_id, str) else None)
    if row.get("gt") is None:
        what = f"row {index} has no gt, so its response can't be judged"
        faults.add(Finding("RESULTS_ROW_INVALID", what, place, "Give the row its true answer, or evaluate again."))
        return
    for name in COLUMNS:
        getattr(results, name).append(_text_of(row, name, index, place, faults))
    results.extras.append(row)
    results.file_of.append(len(results.files) - 1)
    results.index.append(index)


def _text_of(row: Mapping[str, Any], name: str, index: int, place: Where, faults: BoundedFindings) -> str:
    value = row.get(name)
    if isinstance(value, str):
        return value
    text = "" if value is None else json.dumps(value, ensure_ascii=False)
    shown = "has no" if value is None else f"has {_json_name(value)} as"
    what = f"row {index} {shown} {name}; it is read as the text {text!r}"
    faults.add(_warning("RESULTS_VALUE_NOT_TEXT", what, replace(place, key=name), f"Write {name} as a text."))
    return text


def _warning(code: str, what: str, where: Where, fix: str) -> Finding:
    return Finding(code, what, where, fix, Severity.WARNING)


def _json_name(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, dict | list | str):
        return {"dict": "an object", "list": "an array", "str": "a text"}[type(value).__name__]
    return "a number"


@contextmanager
def collection_paused() -> Iterator[None]:
    """Keep the cyclic collector from walking over a million fresh rows again and again, which takes half the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
