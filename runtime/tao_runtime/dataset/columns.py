"""Choose the columns of a Parquet file of records, and write it; `media/parquet_rows.py` describes the layout and reads it.

Records are spooled as JSON lines first: a column's type is known only when all have been seen, and memory must not grow with
their number.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from tao_runtime.media.parquet_rows import EXACT_COLUMN, LAYOUT_KEY, LAYOUT_VERSION
from tao_runtime.media.quoting import is_whole

if TYPE_CHECKING:
    import pyarrow as pa

MAX_COLUMNS = 200
ROWS_AT_ONCE = 4096
_INT64 = 1 << 63
_TURN_KINDS = {("from", "value"): "conversations", ("role", "content"): "messages"}


class ColumnPlan:
    """Count what kinds of values each key has; the most frequent kind that a column can have is the column's."""

    def __init__(self) -> None:
        self._kinds: dict[str, Counter[str]] = {}

    def take(self, record: dict[str, Any]) -> None:
        """Count one record; keys beyond the bound get no column."""
        for key, value in record.items():
            counts = self._kinds.get(key)
            if counts is None:
                if len(self._kinds) >= MAX_COLUMNS or key == EXACT_COLUMN or not is_whole(key):
                    continue
                counts = self._kinds[key] = Counter()
            counts[kind_of(value)] += 1

    def columns(self) -> dict[str, str]:
        """Return the kind of each column, in the order in which keys were first met."""
        found = {}
        for key, counts in self._kinds.items():
            kinds = [kind for kind, _ in counts.most_common() if kind]
            if kinds:
                found[key] = "double" if set(kinds[:2]) == {"double", "int64"} else kinds[0]
        return found


def kind_of(value: Any) -> str:
    """Return the kind of column that holds a value exactly, an empty text when none does."""
    if isinstance(value, str):
        return "string" if is_whole(value) else ""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int64" if -_INT64 <= value < _INT64 else ""
    if isinstance(value, float):
        return "double"
    return _kind_of_list(value) if isinstance(value, list) and value else ""


def _kind_of_list(value: list[Any]) -> str:
    if all(kind_of(one) == "string" for one in value):
        return "strings"
    kinds = {_TURN_KINDS.get(tuple(one), "") if isinstance(one, dict) else "" for one in value}
    kind = kinds.pop() if len(kinds) == 1 else ""
    return kind if kind and all(kind_of(text) == "string" for one in value for text in one.values()) else ""


def write_parquet(spool: Path, path: Path, plan: ColumnPlan) -> None:
    """Write the records of a file of JSON lines as Parquet, batch by batch.

    Raises:
        OSError: when the file can't be written.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = plan.columns()
    fields = [pa.field(key, _arrow_type(kind)) for key, kind in columns.items()]
    schema = pa.schema([*fields, pa.field(EXACT_COLUMN, pa.string())], metadata={LAYOUT_KEY: LAYOUT_VERSION})
    with spool.open(encoding="ascii") as lines, pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for batch in _batches(lines):
            rows = [_row(record, columns) for record in batch]
            writer.write_batch(pa.RecordBatch.from_pylist(rows, schema=schema))


def _batches(lines: TextIO) -> Iterator[list[dict[str, Any]]]:
    while batch := [json.loads(line) for line in islice(lines, ROWS_AT_ONCE)]:
        yield batch


def _row(record: dict[str, Any], columns: dict[str, str]) -> dict[str, Any]:
    row: dict[str, Any] = {}
    exact: dict[str, Any] = {}
    for key, value in record.items():
        kind = columns.get(key)
        if kind is not None and kind_of(value) == kind:
            row[key] = value
            continue
        exact[key] = value
        if kind == "double" and kind_of(value) == "int64":
            # Other readers see 25 as 25.0; this one sees 25.
            row[key] = float(value)
    if exact:
        row[EXACT_COLUMN] = json.dumps(exact, ensure_ascii=True)
    return row


def _arrow_type(kind: str) -> pa.DataType:
    import pyarrow as pa

    turns = {kind: pa.list_(pa.struct([(name, pa.string()) for name in names])) for names, kind in _TURN_KINDS.items()}
    plain = {"string": pa.string(), "bool": pa.bool_(), "int64": pa.int64(), "double": pa.float64()}
    return ({"strings": pa.list_(pa.string())} | plain | turns)[kind]
