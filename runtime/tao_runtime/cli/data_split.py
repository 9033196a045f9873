"""`tao-runtime data split`: split a set into train, validation and test sides that share no video."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

from tao_runtime.cli.output import CommandResult, add_command
from tao_runtime.cli.set_arguments import add_content_argument, add_source_arguments, named_set, refuse_content_without_folder


def share_or_count(word: str) -> float | int:
    """Convert an argument: a number with a point is a share of the records, without one a number of records."""
    if re.fullmatch(r"[1-9][0-9]{0,8}", word):
        return int(word)
    if re.fullmatch(r"0?\.[0-9]{1,9}", word) and float(word) > 0:
        return float(word)
    raise argparse.ArgumentTypeError(f"{word!r} is neither a share such as 0.1 nor a number of records such as 50")


def add_word(words: Any) -> None:
    """Add `split`."""
    parser = add_command(words, "split", "split a set into sides that share no video, classes of answers spread evenly", _split)
    add_source_arguments(parser)
    add_content_argument(parser)
    parser.add_argument("--val", type=share_or_count, required=True, metavar="N", help="share (0.1) or number (50) of records")
    parser.add_argument("--test", type=share_or_count, metavar="N", help="the same for a test side (default: none)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="another seed, another split (default: %(default)s)")
    parser.add_argument(
        "--out-dir", type=Path, required=True, metavar="DIR", help="gets train/annotations.json, val/annotations.json, …"
    )


def _split(arguments: argparse.Namespace) -> CommandResult:
    from tao_runtime.dataset.source import open_source
    from tao_runtime.dataset.split import Side, files_of, split_set, write_split

    path, media_dir = named_set(arguments)
    refuse_content_without_folder(arguments, media_dir)
    source = open_source(path)
    asked = [Side(name, wanted) for name, wanted in (("val", arguments.val), ("test", arguments.test)) if wanted is not None]
    split = split_set(source, asked, seed=arguments.seed, media_dir=media_dir, by_content=arguments.by_content)
    files = files_of(source, split, arguments.out_dir)
    if not arguments.dry_run:
        write_split(source, split, files)
    data = {
        "annotations": str(path),
        "media_dir": None if media_dir is None else str(media_dir),
        "seed": arguments.seed,
        **split.summary,
        "files": None if arguments.dry_run else {side: str(file) for side, file in files.items()},
    }
    return CommandResult("data split", data, split.findings, _text(data, arguments))


def _text(data: dict[str, Any], arguments: argparse.Namespace) -> str:
    lines = [f"{data['num_records']} records in {data['num_groups']} groups that share no video"]
    for name, side in data["sides"].items():
        classes = ", ".join(f"{label} {one['got']}/{one['wanted']:g}" for label, one in list(side["classes"].items())[:10])
        lines.append(
            f"  {name:5}  {side['num_records']} records for {side['num_wanted']}, {side['num_groups']} groups; {classes}"
        )
    lines.append("nothing was written (--dry-run)" if arguments.dry_run else f"wrote {', '.join(data['files'].values())}")
    return "\n".join(lines)
