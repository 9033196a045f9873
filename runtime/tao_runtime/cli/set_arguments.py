"""Arguments and results that the words of `data` share that write a set of records."""

from __future__ import annotations

import argparse
from pathlib import Path

from tao_runtime.cli.output import Parser


def add_source_arguments(parser: Parser, *, with_media_dir: bool = True) -> None:
    """Add the arguments that name the set to read, and `--dry-run`."""
    parser.add_argument("--annotations", metavar="FILE", type=Path, help="JSON array, JSON lines, Parquet or tao-vl-reason")
    parser.add_argument("--dataset", metavar="ROOT", type=Path, help="data set root: ROOT/annotations.json, media in ROOT")
    if with_media_dir:
        parser.add_argument("--media-dir", metavar="DIR", type=Path, help="folder that media paths start from")
    parser.add_argument("--dry-run", action="store_true", help="write nothing; say what would be written")


def add_out_argument(parser: Parser) -> None:
    """Add `--out`."""
    parser.add_argument(
        "--out", metavar="FILE", type=Path, required=True, help="file to write; its ending says what it becomes"
    )


def named_set(arguments: argparse.Namespace) -> tuple[Path, Path | None]:
    """Return the annotation file and the media folder, or None, that the arguments name.

    Raises:
        TaoError: USAGE_ARGUMENTS when they name none, or two.
    """
    from tao_runtime.errors import Finding, TaoError

    annotations, root = arguments.annotations, arguments.dataset
    if (annotations is None) == (root is None):
        what = "no annotation file was named" if root is None else "--annotations and --dataset both name a set"
        raise TaoError(Finding("USAGE_ARGUMENTS", what, fix="Pass --annotations FILE or --dataset ROOT."))
    media_dir: Path | None = getattr(arguments, "media_dir", None)
    return (annotations, media_dir) if root is None else (root / "annotations.json", media_dir or root)


def add_content_argument(parser: Parser) -> None:
    """Add `--by-content`."""
    parser.add_argument(
        "--by-content", action="store_true", help="media files with the same bytes are one, whatever their names; reads them"
    )


def refuse_content_without_folder(arguments: argparse.Namespace, media_dir: Path | None) -> None:
    """Refuse to compare files that can't be found.

    Raises:
        TaoError: USAGE_ARGUMENTS.
    """
    from tao_runtime.errors import Finding, TaoError

    if arguments.by_content and media_dir is None:
        what = "--by-content reads media files, and no folder was named"
        raise TaoError(Finding("USAGE_ARGUMENTS", what, fix="Add --media-dir DIR."))
