"""`tao-runtime data select`: write the records that meet what is asked."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tao_runtime.cli.output import CommandResult, add_command, positive_int
from tao_runtime.cli.set_arguments import add_out_argument, add_source_arguments, named_set

if TYPE_CHECKING:
    from tao_runtime.dataset.failures import Failures
    from tao_runtime.dataset.select import Criterion, Ids


def add_word(words: Any) -> None:
    """Add `select`."""
    parser = add_command(
        words, "select", "write the records that meet every option; of values of one option, any will do", _select
    )
    add_source_arguments(parser)
    for option, metavar, text in (
        ("--answer", "TEXT", "the answer, as it is written"),
        ("--class", "LABEL", 'the answer in small letters without sentence marks: yes is "Yes." too'),
        ("--media", "GLOB", "a media name, as the record writes it"),
        ("--where", "KEY=VALUE", "a key of the record, dotted for nested ones"),
    ):
        name = option.removeprefix("--").replace("class", "classes")
        parser.add_argument(option, action="append", default=[], metavar=metavar, dest=name, help=f"{text}; repeatable")
    parser.add_argument("--ids", type=Path, metavar="FILE", help="ids, one a line or a JSON array")
    parser.add_argument("--failures", type=Path, metavar="FILE", help="parquet of tao-runtime gaps: records that failed")
    number = parser.add_mutually_exclusive_group()
    number.add_argument("--limit", type=positive_int, metavar="N", help="the first N of them")
    number.add_argument("--sample", type=positive_int, metavar="N", help="N of them, drawn by lot")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the lot (default: %(default)s)")
    add_out_argument(parser)


def _select(arguments: argparse.Namespace) -> CommandResult:
    from tao_runtime.dataset.collector import Collector
    from tao_runtime.dataset.copying import write_kept
    from tao_runtime.dataset.failures import read_failures
    from tao_runtime.dataset.select import read_ids, select_records
    from tao_runtime.dataset.source import open_source
    from tao_runtime.dataset.writing import container_for, refuse_same_file
    from tao_runtime.errors import raise_errors

    path, media_dir = named_set(arguments)
    container = container_for(arguments.out, None)
    refuse_same_file(arguments.out, [path])
    source = open_source(path)
    failures = None if arguments.failures is None else read_failures(arguments.failures, media_dir)
    ids = None if arguments.ids is None else read_ids(arguments.ids)
    criteria = _criteria(arguments, ids, failures)
    sample = None if arguments.sample is None else (arguments.sample, arguments.seed)
    chosen = select_records(source, criteria, limit=arguments.limit, sample=sample)
    raise_errors([] if ids is None else ids.unknown())
    out = None if arguments.dry_run else arguments.out
    faults = Collector(str(path))
    num_written = write_kept(source, chosen.of(source.records(faults)), out, container, faults)
    findings = [*chosen.findings, *([] if failures is None else failures.unmatched(arguments.failures))]
    data = {
        "annotations": str(path),
        "out": None if out is None else str(out),
        "num_records": chosen.num_records,
        "num_matching": chosen.num_matching,
        "num_selected": num_written,
        "by_criterion": dict(chosen.counts),
    }
    text = f"{num_written} of {chosen.num_records} records selected; {chosen.num_matching} meet every option"
    wrote = "nothing was written (--dry-run)" if out is None else f"wrote {out}"
    return CommandResult("data select", data, findings, f"{text}\n{wrote}")


def _criteria(arguments: argparse.Namespace, ids: Ids | None, failures: Failures | None) -> list[Criterion]:
    from tao_runtime.dataset import select
    from tao_runtime.errors import Finding, TaoError

    criteria = []
    for values, make in (
        (arguments.answer, select.by_answers),
        (arguments.classes, select.by_classes),
        (arguments.media, select.by_media),
    ):
        if values:
            criteria.append(make(values))
    if arguments.where:
        pairs = [word.partition("=") for word in arguments.where]
        wrong = [word for word, (key, mark, _) in zip(arguments.where, pairs, strict=True) if not (key and mark)]
        if wrong:
            what = f"--where {wrong[0]} is not KEY=VALUE"
            raise TaoError(Finding("USAGE_ARGUMENTS", what, fix="Write it as --where scene=rain."))
        criteria.append(select.by_values([(key, value) for key, _, value in pairs]))
    if ids is not None:
        criteria.append(ids.criterion())
    if failures is not None:
        criteria.append(select.by_failures(failures, arguments.failures))
    if not criteria and arguments.limit is None and arguments.sample is None:
        fix = "Pass --answer, --class, --media, --where, --ids, --failures, --limit or --sample."
        raise TaoError(Finding("USAGE_ARGUMENTS", "nothing says which records to select", fix=fix))
    return criteria
