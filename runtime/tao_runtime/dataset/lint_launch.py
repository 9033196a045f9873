"""Let a run's own model read its records before the weights come: what it can't take shows at the start, not midway."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tao_runtime.dataset.lint import LintResult
from tao_runtime.dataset.lint_tokens import Reading, checks_of, counted_records, not_counted, open_reading
from tao_runtime.environment import Environment
from tao_runtime.errors import Finding, TaoError, raise_errors
from tao_runtime.hub.sources import AskedModel, bring_small_files, small_files_here


def check_reading(
    found: Sequence[Finding],
    results: Sequence[LintResult],
    reading: Reading | None,
    readers: Sequence[AskedModel],
    environment: Environment,
    *,
    dry_run: bool,
) -> list[Finding]:
    """Count the tokens of every record and raise with every fault of a launch; only small files are downloaded.

    Where config and tokenizer are on this disk, all faults are raised at once; else those that were found before come first.

    Args:
        found: what was found before.
        results: data sets that were linted.
        reading: how the spec has them read; None when its vision section contradicts itself, which `found` says.
        readers: the model, then that of the tokenizer if it is another.
        environment: the Hub, its cache, the token.
        dry_run: download nothing.

    Returns:
        What is no error.

    Raises:
        TaoError: with every fault that could be found.
    """
    if reading is None or not all(one.is_ok for one in readers):
        raise_errors(found)
        return list(found)
    folders = [folder for one in readers if (folder := small_files_here(one, environment)) is not None]
    if len(folders) < len(readers):
        raise_errors(found)
        if dry_run:
            names = " and ".join(one.wanted.name for one in readers)
            return [*found, not_counted(f"{names} is not on this disk", "Run it without --dry-run: it counts before it loads.")]
        folders = [bring_small_files(one, environment) for one in readers]
    everything = [*found, *reading_faults(results, reading, folders[0], folders[-1])]
    raise_errors(everything)
    return everything


def reading_faults(results: Sequence[LintResult], reading: Reading, model: Path, tokenizer: Path) -> list[Finding]:
    """Return what the model would find wrong with the records of these sets (rules D5 to D8 and D14), and with itself.

    Args:
        results: data sets that were linted; those that could not be read, or whose media were not found, are left out.
        reading: how the spec has them read.
        model: folder with the model's config.json; weights are not needed.
        tokenizer: folder of the tokenizer, which may be the same.
    """
    try:
        counter, most_positions = open_reading(reading, model, tokenizer)
    except TaoError as error:
        return list(error.findings)
    findings: list[Finding] = []
    for result in results:
        if result.was_read and (result.media_dir is not None or not result.num_media):
            checks = checks_of(result, reading)
            for _ in counted_records(result.annotations, result.media_dir, counter, checks):
                pass
            findings += checks.findings(most_positions)
    return findings
