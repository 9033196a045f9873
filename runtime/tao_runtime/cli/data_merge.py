"""`tao-runtime data merge`: make one set of several."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tao_runtime.cli.output import CommandResult, add_command
from tao_runtime.cli.set_arguments import add_out_argument

if TYPE_CHECKING:
    from tao_runtime.dataset.merge import Folders


def add_word(words: Any) -> None:
    """Add `merge`."""
    parser = add_command(words, "merge", "make one set of several, in the order given", _merge)
    parser.add_argument("annotations", nargs="+", type=Path, metavar="ANNOTATIONS", help="two or more files, all in one form")
    parser.add_argument(
        "--from-media-dir",
        action="append",
        default=[],
        type=Path,
        metavar="DIR",
        help="media folder of each file, once a file and in their order; none when all have the same",
    )
    parser.add_argument("--media-dir", type=Path, metavar="DIR", help="folder that media paths of the merged set start from")
    parser.add_argument("--rename-ids", action="store_true", help="give a record whose id is taken another one")
    parser.add_argument("--dry-run", action="store_true", help="write nothing; say what would be written")
    add_out_argument(parser)


def _merge(arguments: argparse.Namespace) -> CommandResult:
    from tao_runtime.dataset.merge import merge_sets
    from tao_runtime.dataset.source import open_source
    from tao_runtime.dataset.writing import container_for, refuse_same_file
    from tao_runtime.errors import Finding, TaoError

    paths: list[Path] = arguments.annotations
    if len(paths) < 2:
        raise TaoError(Finding("USAGE_ARGUMENTS", "one file is no merge", fix="Name two or more annotation files."))
    folders = _folders(arguments)
    container = container_for(arguments.out, None)
    refuse_same_file(arguments.out, paths)
    out = None if arguments.dry_run else arguments.out
    result = merge_sets([open_source(path) for path in paths], out, container, folders=folders, rename_ids=arguments.rename_ids)
    data = {
        "out": None if out is None else str(out),
        "media_dir": None if folders.common is None else str(folders.common),
        "num_records": result.num_written,
        "by_file": dict(result.by_file),
        "num_repeated": result.num_repeated,
        "num_rewritten": result.num_rewritten,
        "num_renamed": result.num_renamed,
        "renamed": [{"file": file, "index": index, "id": old, "new_id": new} for file, index, old, new in result.renamed],
    }
    wrote = "nothing was written (--dry-run)" if out is None else f"wrote {out}"
    counts = f"{result.num_rewritten} with other media paths, {result.num_renamed} with another id"
    return CommandResult("data merge", data, result.findings, f"{result.num_written} records, {counts}\n{wrote}")


def _folders(arguments: argparse.Namespace) -> Folders:
    import os
    import shlex

    from tao_runtime.dataset.merge import Folders
    from tao_runtime.errors import Finding, FixKind, TaoError

    own, common, num_files = arguments.from_media_dir, arguments.media_dir, len(arguments.annotations)
    if own and len(own) != num_files:
        what = f"--from-media-dir was given {len(own)} times for {num_files} files"
        raise TaoError(Finding("USAGE_ARGUMENTS", what, fix="Give it once for each file, in their order."))
    if common is not None and not own:
        what = "--media-dir says where paths shall start from, and nothing says where they start from now"
        raise TaoError(Finding("USAGE_ARGUMENTS", what, fix="Give --from-media-dir once for each file, in their order."))
    different = {os.path.abspath(folder) for folder in own}  # noqa: PTH100 - pathlib keeps `..`
    if len(different) > 1 and common is None:
        what = "the files have different media folders, and one set has one"
        fix = f"Add --media-dir {shlex.quote(os.path.commonpath(different))}."
        raise TaoError(Finding("USAGE_ARGUMENTS", what, fix=fix, fix_kind=FixKind.EDIT))
    return Folders(own, common)
