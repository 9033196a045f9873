"""Hold records of JSON values in Parquet exactly: typed columns for what is uniform, one column of JSON for the rest.

A null in a typed column is an absent key. A value that its column can't hold exactly (null itself, 25 among 25.0, a nested
object) stands in the column `EXACT_COLUMN`, which overrides the others. `dataset/columns.py` writes this layout.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

LAYOUT_KEY = b"tao_records"
LAYOUT_VERSION = b"1"
EXACT_COLUMN = "_exact_json"


def is_exact_layout(metadata: Mapping[bytes, bytes] | None) -> bool:
    """Tell from a Parquet file's key-value metadata whether its rows are in this layout."""
    return metadata is not None and metadata.get(LAYOUT_KEY) == LAYOUT_VERSION


def record_of_row(row: dict[str, Any], *, is_exact: bool) -> dict[str, Any]:
    """Return the record that a row holds; nulls of the row are absent keys.

    Raises:
        ValueError: when the JSON of an exact row does not parse.
    """
    exact = row.pop(EXACT_COLUMN, None) if is_exact else None
    record = {key: value for key, value in row.items() if value is not None}
    if exact is not None:
        record.update(json.loads(exact))
    return record
