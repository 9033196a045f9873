"""Write some of a set's records as they are."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tao_runtime.dataset.collector import Collector
from tao_runtime.dataset.source import Source, unwritable_value
from tao_runtime.dataset.writing import Container, writing_set
from tao_runtime.errors import Finding, FixKind, TaoError, raise_errors


def write_kept(
    source: Source, kept: Iterable[tuple[int, dict[str, Any]]], out: Path | None, container: Container, faults: Collector
) -> int:
    """Write records of a source in their own form.

    Args:
        source: where they come from.
        kept: `(index, record)`, drawn from `source.records(faults)`.
        out: the file; None checks only.
        container: what it is to be.
        faults: what was found so far; nothing is written when it holds an error at the end.

    Returns:
        How many were written.

    Raises:
        TaoError: the errors; USAGE_OUTPUT_UNWRITABLE.
    """
    if source.header is not None and container is not Container.JSON:
        raise TaoError(no_place_for_header(container))
    num_written = 0
    with writing_set(out, container, source.header) as write:
        for index, raw in kept:
            try:
                write(raw)
            except ValueError as error:
                faults.extend([unwritable_value(source, (index, raw), error)])
            num_written += 1
        raise_errors(faults.summary())
    return num_written


def no_place_for_header(container: Container) -> Finding:
    """Say that a tao-vl-reason document is one JSON object."""
    what = f"a tao-vl-reason document is JSON; {container} has no place for its header"
    fix = "Convert it with --to llava: the header is then kept in the records, and restored by --to tao-vl-reason."
    return Finding("USAGE_ARGUMENTS", what, fix=fix, fix_kind=FixKind.EDIT)
