"""Write a plan as lines for a terminal: at most a hundred characters wide, and few."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tao_runtime.plan.disk import DiskPlan
from tao_runtime.plan.host import HostPlan
from tao_runtime.plan.memory import MemoryPlan
from tao_runtime.plan.pace import TimePlan
from tao_runtime.plan.steps import StepPlan
from tao_runtime.plan.summary import Bin, NamedRecord, TokenSummary
from tao_runtime.report.text import duration, size

NAME_WIDTH, BAR_WIDTH = 20, 40
MAX_SHOWN, MAX_NAME = 8, 60


def rows_text(rows: Iterable[tuple[str, str]]) -> str:
    """Return named values, one a line; a value of several lines is indented."""
    return "".join(f"{name:<{NAME_WIDTH}}" + value.replace("\n", "\n" + " " * NAME_WIDTH) + "\n" for name, value in rows)


def step_rows(plan: StepPlan) -> list[tuple[str, str]]:
    """Return what is known of the schedule."""
    held_out = "not known" if plan.num_val_records is None else str(plan.num_val_records)
    saves, validations = [plan.name_at(step) for step in plan.save_steps()], [str(step) for step in plan.validation_steps()]
    return [
        ("training records", f"{plan.num_train_records}, {plan.dropped_records} of them left out of each epoch"),
        ("validation records", held_out),
        ("batch", f"{plan.batch_per_rank} a rank x {plan.dp_size} ranks, {plan.accumulation} x {plan.micro_batch} a rank"),
        ("steps per epoch", str(plan.steps_per_epoch)),
        ("steps", f"{plan.total_steps}, {plan.epoch_at(plan.total_steps):g} of {plan.num_epochs} epochs"),
        ("warm-up steps", str(plan.warmup_steps)),
        ("checkpoints", _shortened(saves)),
        ("validations", _shortened([f"after step {step}" for step in validations])),
    ]


def token_rows(summary: TokenSummary, epoch_tokens: int, max_length: int) -> list[tuple[str, str]]:
    """Return the tokens of the records: spread, histogram, the longest by name, and the sum of an epoch."""
    spread = ", ".join(
        f"{word} {summary.quantile(share):,}" for word, share in (("min", 0.0), ("median", 0.5), ("p95", 0.95), ("max", 1.0))
    )
    share = summary.vision_tokens / summary.tokens
    return [
        ("tokens per record", f"{spread}, of {max_length:,} allowed; {share:.0%} vision\n{_bars(summary.histogram())}"),
        ("longest records", "\n".join(map(_longest, summary.longest()[:3]))),
        ("tokens per epoch", f"{epoch_tokens:,}, padding excluded"),
    ]


def memory_row(plan: MemoryPlan) -> tuple[str, str]:
    """Return the peak of the GPU's memory by term."""
    terms = sorted(plan.terms.items(), key=lambda item: -item[1])
    lines = [f"{size(plan.device_bytes)} at the {plan.moment}, with the driver's own share; of it"]
    return "GPU memory", "\n".join([*lines, *(f"  {size(count):>10}  {name}" for name, count in terms)])


def disk_row(plan: DiskPlan, folder: str) -> tuple[str, str]:
    """Return what the run writes."""
    if not plan.num_saves:
        return "disk", "nothing: checkpoints are off"
    each = f"{size(plan.checkpoint_bytes)} a checkpoint, {size(plan.export_bytes)} an export"
    kept = f"{plan.num_kept} of {plan.num_saves} are kept, {plan.num_at_once} stand there at once"
    return "disk", f"{size(plan.peak_bytes)} in {folder}: {each}; {kept}"


def host_row(plan: HostPlan) -> tuple[str, str]:
    """Return the loader's memory."""
    kept = "all kept for later epochs" if plan.fits else f"{size(plan.cache_bytes)} kept, the rest decoded again each epoch"
    ahead = f"{plan.samples_ahead} samples ahead of at most {size(plan.sample_bytes)}"
    return "host memory", f"{size(plan.total_bytes)}: decoded frames {size(plan.frame_bytes)}, {kept}; {ahead}"


def time_row(plan: TimePlan | None) -> tuple[str, str]:
    """Return the time, or why it is not known."""
    if plan is None:
        return "time", "not known: no rate was measured; --like FOLDER takes that of an earlier run"
    pace = plan.pace
    measured = f"{pace.tokens_per_s:,.0f} tokens/s and {pace.step_s:.3g} s a step, medians of {pace.num_steps} steps"
    basis = "steps" if plan.by_tokens_s is None else "tokens"
    return "time", f"{duration(plan.seconds)} by {basis}, as in {pace.source} ({measured})"


def _bars(bins: Sequence[Bin]) -> str:
    most = max(one.count for one in bins)
    width = len(f"{bins[-1].last:,}")
    return "\n".join(
        f"{one.first:>{width},} to {one.last:>{width},}  {'#' * _bar(one.count, most):<{BAR_WIDTH}}  {one.count:,}"
        for one in bins
    )


def _bar(count: int, most: int) -> int:
    return max(round(BAR_WIDTH * count / most), min(count, 1))


def _longest(one: NamedRecord) -> str:
    media = f", {_cut(one.media)}" if one.media else ""
    return f"record {one.index} ({_cut(one.id)}): {one.total:,}, {one.vision:,} vision, {one.answer:,} answer{media}"


def _cut(text: str) -> str:
    return text if len(text) <= MAX_NAME else text[: MAX_NAME - 1] + "…"


def _shortened(words: list[str]) -> str:
    if not words:
        return "none"
    shown = words if len(words) <= MAX_SHOWN else [*words[: MAX_SHOWN - 2], "…", words[-1]]
    return f"{len(words)}: {', '.join(shown)}"
