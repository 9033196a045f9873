"""`tao-runtime data dedupe`: leave out records that say what an earlier one says."""

from __future__ import annotations

import argparse
from typing import Any

from tao_runtime.cli.output import CommandResult, add_command
from tao_runtime.cli.set_arguments import (
    add_content_argument,
    add_out_argument,
    add_source_arguments,
    named_set,
    refuse_content_without_folder,
)


def add_word(words: Any) -> None:
    """Add `dedupe`."""
    parser = add_command(words, "dedupe", "leave out records with the question, answer and media of an earlier one", _dedupe)
    add_source_arguments(parser)
    add_content_argument(parser)
    add_out_argument(parser)


def _dedupe(arguments: argparse.Namespace) -> CommandResult:
    from tao_runtime.dataset.collector import Collector
    from tao_runtime.dataset.copying import write_kept
    from tao_runtime.dataset.dedupe import find_duplicates
    from tao_runtime.dataset.source import open_source
    from tao_runtime.dataset.writing import container_for, refuse_same_file

    path, media_dir = named_set(arguments)
    refuse_content_without_folder(arguments, media_dir)
    container = container_for(arguments.out, None)
    refuse_same_file(arguments.out, [path])
    source = open_source(path)
    found = find_duplicates(source, media_dir=media_dir, by_content=arguments.by_content)
    out = None if arguments.dry_run else arguments.out
    faults = Collector(str(path))
    num_written = write_kept(source, found.kept(source.records(faults)), out, container, faults)
    num_removed = len(found.kept_for)
    data = {
        "annotations": str(path),
        "out": None if out is None else str(out),
        "num_records": found.num_records,
        "num_written": num_written,
        "num_removed": num_removed,
        "removed": found.removed,
    }
    return CommandResult("data dedupe", data, found.findings, _text(data))


def _text(data: dict[str, Any]) -> str:
    lines = [f"{data['num_removed']} of {data['num_records']} records say what an earlier one says"]
    for one in data["removed"][:20]:
        also = f"; differs in {', '.join(one['differs_in'])}" if one["differs_in"] else ""
        lines.append(f"  record {one['index']} is left out for record {one['kept_index']}{also}: {one['record'][:100]}")
    if data["num_removed"] > 20:
        lines.append(f"  … and {data['num_removed'] - 20} more; --json shows them")
    lines.append("nothing was written (--dry-run)" if data["out"] is None else f"wrote {data['out']}")
    return "\n".join(lines)
