"""`tao-runtime data convert`: write a set in another form, without loss."""

from __future__ import annotations

import argparse
from typing import Any

from tao_runtime.cli.output import CommandResult, add_command
from tao_runtime.cli.set_arguments import add_out_argument, add_source_arguments, named_set


def add_word(words: Any) -> None:
    """Add `convert`."""
    parser = add_command(words, "convert", "write a set in another form; nothing is lost on the way there and back", _convert)
    add_source_arguments(parser, with_media_dir=False)
    parser.add_argument(
        "--to", choices=("llava", "messages", "tao-vl-reason"), help="form of the records (default: each keeps its own)"
    )
    parser.add_argument("--format", choices=("json", "jsonl", "parquet"), help="what the file is to be (default: by its name)")
    add_out_argument(parser)


def _convert(arguments: argparse.Namespace) -> CommandResult:
    from tao_runtime.dataset.convert import convert_set
    from tao_runtime.dataset.record_forms import RecordForm
    from tao_runtime.dataset.source import open_source
    from tao_runtime.dataset.writing import container_for, refuse_same_file

    path, _ = named_set(arguments)
    container = container_for(arguments.out, arguments.format)
    refuse_same_file(arguments.out, [path])
    form = None if arguments.to is None else RecordForm(arguments.to)
    result = convert_set(open_source(path), None if arguments.dry_run else arguments.out, container, form)
    data = {
        "annotations": str(path),
        "out": None if arguments.dry_run else str(arguments.out),
        "format": str(container),
        "form": arguments.to,
        "num_records": result.num_records,
        "num_converted": result.num_converted,
        "num_with_note": result.num_with_note,
    }
    text = f"{result.num_records} records, {result.num_converted} of them in another form than before"
    return CommandResult("data convert", data, result.findings, f"{text}\n{written_line(arguments)}")


def written_line(arguments: argparse.Namespace) -> str:
    """Return the line that says what was written."""
    return "nothing was written (--dry-run)" if arguments.dry_run else f"wrote {arguments.out}"
