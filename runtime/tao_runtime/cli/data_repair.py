"""`tao-runtime data repair`: mend an annotation file, quoting every change."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tao_runtime.cli.output import CommandResult, add_command
from tao_runtime.cli.set_arguments import add_source_arguments, named_set

if TYPE_CHECKING:
    from tao_runtime.dataset.repair import RepairResult

MAX_CHANGES_SHOWN = 40


def add_word(words: Any) -> None:
    """Add `repair`."""
    parser = add_command(
        words, "repair", "mend an annotation file: measure video_fps, set tags, names, turns, ids right", _repair
    )
    add_source_arguments(parser)
    for name, effect in (("--only", "mend nothing but this"), ("--skip", "leave this as it is")):
        parser.add_argument(
            name, action="append", default=[], metavar="CODE", help=f"{effect}: a rule (D12) or a code; repeatable"
        )
    parser.add_argument(
        "--record",
        action="append",
        default=[],
        type=_index,
        metavar="N",
        help="mend this record only, counted from 0 as `data lint` does; repeatable",
    )
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--out", type=Path, metavar="FILE", help="file to write")
    where.add_argument(
        "--in-place", action="store_true", help="write the annotations themselves; FILE.bak keeps them as they were"
    )


def _index(word: str) -> int:
    if not (word.isascii() and word.isdigit() and len(word) < 10):
        raise argparse.ArgumentTypeError(f"{word!r} is not a whole number from 0 on")
    return int(word)


def _repair(arguments: argparse.Namespace) -> CommandResult:
    from tao_runtime.dataset.collector import select
    from tao_runtime.dataset.repair import RepairRequest, repair
    from tao_runtime.dataset.writing import refuse_same_file

    path, media_dir = named_set(arguments)
    if arguments.out is not None:
        refuse_same_file(arguments.out, [path])
    request = RepairRequest(
        annotations=path,
        media_dir=None if media_dir is None else Path(media_dir),
        selection=select(arguments.only, arguments.skip),
        records=frozenset(arguments.record) or None,
        out=arguments.out,
        dry_run=arguments.dry_run,
    )
    result = repair(request)
    data = {
        "annotations": str(path),
        "media_dir": None if media_dir is None else str(media_dir),
        "dry_run": arguments.dry_run,
        **result.to_dict(),
    }
    return CommandResult("data repair", data, result.left, _text(result, arguments))


def _text(result: RepairResult, arguments: argparse.Namespace) -> str:
    log = result.log
    lines = [_line(change) for change in log.shown[:MAX_CHANGES_SHOWN]]
    hidden = log.by_code.total() - len(lines)
    if hidden > 0:
        lines.append(f"… and {hidden} more changes; --json shows up to 1000")
    if lines:
        lines.append("")
    lines += [f"{count:>7}  {code}" for code, count in log.by_code.most_common()]
    if result.num_new_records:
        lines.append(f"{result.num_new_records:>7}  new records at the end of the file")
    lines.append(_outcome(result, arguments))
    return "".join(f"{line}\n" for line in lines)


def _outcome(result: RepairResult, arguments: argparse.Namespace) -> str:
    if not result.log.by_code:
        done = "nothing to mend"
    else:
        number = result.log.by_code.total()
        done = f"{number} change{'s' if number > 1 else ''}, {result.log.num_records} of {result.num_records} records"
    if arguments.dry_run:
        return f"{done}; nothing was written (--dry-run)"
    if result.written is None:
        return done
    kept = "" if result.backup is None else f"; the file as it was: {result.backup}"
    return f"{done}; wrote {result.written}{kept}"


def _line(change: dict[str, Any]) -> str:
    from tao_runtime.media.quoting import as_json, shown

    place = ""
    if "record_index" in change:
        own_id = "" if change["record_id"] is None else f" ({shown(change['record_id'])})"
        place = f"record {change['record_index']}{own_id}  "
    before = _short(as_json(change["before"])) if "before" in change else "(not there)"
    return f"{place}{shown(change['key'])}: {before} → {_short(as_json(change['after']))}"


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:59]}…"
