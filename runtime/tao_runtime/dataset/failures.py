"""Find the records that the parquet of `tao-runtime gaps` calls failures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tao_runtime.dataset.identity import MediaNames, media_names, plain_question, question_of
from tao_runtime.errors import Finding, Severity, TaoError, Where
from tao_runtime.media.quoting import shown

COLUMNS = ("video_id", "question", "record_id")


class Failures:
    """Match records with the rows of failures: by id and question, or by media file and question.

    Both are asked together because an id alone may be doubled, and a position in the file shifts with every edit.
    """

    def __init__(self, rows: list[tuple[str, str, str | None]], names: MediaNames) -> None:
        self._names = names
        self._rows = rows
        self._row_of: dict[tuple[str, str, str], list[int]] = {}
        self._found: set[int] = set()
        for place, (video, asked, own_id) in enumerate(rows):
            question = plain_question(asked)
            self._row_of.setdefault(("file", names.file_of(video), question), []).append(place)
            if own_id is not None:
                self._row_of.setdefault(("id", own_id, question), []).append(place)

    def take(self, raw: dict[str, Any]) -> bool:
        """Tell whether a record is among the failures, and remember which rows it answers."""
        question = question_of(raw)
        keys = [("file", self._names.file_of(name), question) for name in media_names(raw)[:1]]
        if raw.get("id") is not None:
            keys.append(("id", str(raw["id"]), question))
        rows = [row for key in keys for row in self._row_of.get(key, ())]
        self._found.update(rows)
        return bool(rows)

    @property
    def num_rows(self) -> int:
        """Number of failures."""
        return len(self._rows)

    def unmatched(self, file: Path) -> list[Finding]:
        """Return a remark on the rows that no record answered."""
        missing = [row for place, row in enumerate(self._rows) if place not in self._found]
        if not missing:
            return []
        named = ", ".join(shown(own_id or video) for video, _, own_id in missing[:10])
        what = f"{len(missing)} of {len(self._rows)} failures belong to no record: {named}{', …' * (len(missing) > 10)}"
        fix = "Name the annotations that were evaluated, and the --media-dir that gaps was given."
        return [Finding("RESULTS_ID_UNKNOWN", what, Where(file=str(file)), fix, Severity.WARNING)]


def read_failures(path: Path, media_dir: Path | None) -> Failures:
    """Read the parquet of `tao-runtime gaps`.

    Raises:
        TaoError: RESULTS_GAPS_INVALID when it is not there or not of that form.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        columns = pq.read_table(path, columns=list(COLUMNS)).to_pydict()
        rows = list(zip(*(columns[name] for name in COLUMNS), strict=True))
    except (OSError, pa.ArrowException, KeyError, ValueError) as error:
        reason = "it has not the columns " + ", ".join(COLUMNS) if isinstance(error, KeyError) else str(error).split("\n")[0]
        what = f"{path} is not the parquet of tao-runtime gaps: {reason}"
        fix = "Write it with tao-runtime gaps --results R --out G.parquet."
        raise TaoError(Finding("RESULTS_GAPS_INVALID", what, Where(file=str(path)), fix)) from None
    return Failures(rows, MediaNames(media_dir))
