"""Tell people, TAO and later readers what a run does: progress on stderr, status.json and events.jsonl."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import monotonic
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from tao_runtime.errors import Finding
from tao_runtime.plan.steps import StepPlan
from tao_runtime.status.events import EventLog, RunStatus, StatusLog, clock_text

LINES_PER_RUN = 20


@dataclass(frozen=True, slots=True)
class StepFigures:
    """Hold the figures of one optimizer step, over all ranks.

    Attributes:
        step: 1-based.
        loss: loss_numerator / answer_tokens.
        loss_numerator: summed cross entropy of the answer tokens.
        answer_tokens: answer tokens.
        grad_norm: before clipping.
        lr: rate of the first parameter group.
        step_s: seconds from step to step, waiting included.
        data_wait_s: seconds of it spent waiting for samples.
        tokens: text and vision tokens of the step, padding excluded.
        memory_bytes: peak of the device, or of the process on a CPU.
    """

    step: int
    loss: float
    loss_numerator: float
    answer_tokens: int
    grad_norm: float
    lr: float
    step_s: float
    data_wait_s: float
    tokens: int
    memory_bytes: int

    @property
    def tokens_per_s(self) -> float:
        """Text and vision tokens per second."""
        return self.tokens / self.step_s if self.step_s > 0 else 0.0


@dataclass(frozen=True, slots=True)
class ValidationFigures:
    """Hold one validation: `loss_numerator` / `answer_tokens` over all records, never a mean of means."""

    step: int
    loss: float
    loss_numerator: float
    answer_tokens: int
    num_records: int
    seconds: float


class Reporter:
    """Report one run.

    Args:
        status: status.json.
        events: events.jsonl.
        plan: schedule of the run.
        every: optimizer steps between progress records; the first and last step always report.
        to_console: print progress on stderr.
    """

    def __init__(self, status: StatusLog, events: EventLog, plan: StepPlan, *, every: int = 1, to_console: bool = True) -> None:
        self.status, self.events = status, events
        self._plan, self._every, self._to_console = plan, every, to_console
        self._bar: Progress | None = None
        self._task: Any = None
        self._start_step = 0
        self._started_s = monotonic()
        self._epoch_sums = (0.0, 0)

    def say(self, text: str) -> None:
        """Print a line on stderr, above the progress bar where there is one."""
        if self._bar is not None:
            self._bar.console.print(text, markup=False, highlight=False)
        else:
            print(text, file=sys.stderr, flush=True)

    def started(self, start_step: int, run_dir: Path, parameters: Mapping[str, Any]) -> None:
        """Report that training begins after `start_step` finished steps."""
        self._start_step, self._started_s = start_step, monotonic()
        data = {
            **self._progress(start_step),
            "event": "training_started",
            "run_dir": str(run_dir),
            "parameters": dict(parameters),
        }
        self.status.write(RunStatus.STARTED, "Starting training.", data)
        self.events.write(
            "run_started", start_step=start_step, run_dir=str(run_dir), plan=self._plan.to_dict(), parameters=dict(parameters)
        )
        if self._to_console and sys.stderr.isatty():
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeRemainingColumn(),
                console=Console(file=sys.stderr),
            )
            self._task = self._bar.add_task("step", total=self._plan.total_steps, completed=start_step)
            self._bar.start()

    def stepped(self, figures: StepFigures) -> None:
        """Report one step."""
        step, first_of_epoch = figures.step, (figures.step - 1) % self._plan.steps_per_epoch == 0
        numerator, tokens = (0.0, 0) if first_of_epoch else self._epoch_sums
        self._epoch_sums = (numerator + figures.loss_numerator, tokens + figures.answer_tokens)
        if self._bar is not None:
            text = f"epoch {self._plan.epoch_at(step):.1f}  loss {figures.loss:.4f}  norm {figures.grad_norm:.2f}"
            self._bar.update(self._task, completed=step, description=text)
        elif self._to_console and step % max(1, self._plan.total_steps // LINES_PER_RUN) == 0:
            self.say(
                f"step {step}/{self._plan.total_steps}  epoch {self._plan.epoch_at(step):.2f}  loss {figures.loss:.4f}  "
                f"grad_norm {figures.grad_norm:.3f}  lr {figures.lr:.3g}  {figures.step_s:.3f} s/step"
            )
        if step % self._every and step not in (self._start_step + 1, self._plan.total_steps):
            return
        self.events.write("step", **asdict(figures), tokens_per_s=figures.tokens_per_s, epoch=self._plan.epoch_at(step))
        kpi = {
            "train/step_loss": figures.loss,
            "train/avg_loss": self._epoch_sums[0] / max(1, self._epoch_sums[1]),
            "train/loss_numerator": figures.loss_numerator,
            "train/valid_label_count": figures.answer_tokens,
        }
        data = {**self._progress(step), "event": "training_step", "time_per_step": clock_text(figures.step_s)}
        self.status.write(RunStatus.RUNNING, f"Step {step} of {self._plan.total_steps}.", data, kpi)

    def validating(self, step: int) -> None:
        """Report that a validation begins."""
        self.status.write(
            RunStatus.RUNNING, f"Validation after step {step}.", {**self._progress(step), "event": "validation_started"}
        )

    def validated(self, figures: ValidationFigures) -> None:
        """Report one validation."""
        self.events.write("validation", **asdict(figures), epoch=self._plan.epoch_at(figures.step))
        kpi = {
            "val/loss": figures.loss,
            "val/avg_loss": figures.loss,
            "val/loss_numerator": figures.loss_numerator,
            "val/valid_label_count": figures.answer_tokens,
        }
        data = {**self._progress(figures.step), "event": "validation_complete"}
        self.status.write(RunStatus.RUNNING, f"Validation loss {figures.loss:.6g} after step {figures.step}.", data, kpi)
        if self._to_console:
            self.say(
                f"validation after step {figures.step}: loss {figures.loss:.4f} over {figures.answer_tokens} answer tokens"
            )

    def saved(self, step: int, checkpoint: Path, export: Path | None, seconds: float) -> None:
        """Report one checkpoint."""
        paths = {"checkpoint": str(checkpoint), "export": None if export is None else str(export)}
        self.events.write("checkpoint", step=step, seconds=seconds, **paths)
        data = {**self._progress(step), "event": "checkpoint_complete", **paths}
        self.status.write(RunStatus.RUNNING, f"Checkpoint {checkpoint.name} written.", data, durable=True)
        if self._to_console:
            self.say(f"saved {checkpoint}")

    def remarked(self, findings: Sequence[Finding], *, aloud: bool = True) -> None:
        """Report findings that don't stop the run; `aloud` also prints them."""
        for finding in findings:
            self.events.write("finding", **finding.to_dict())
            if not aloud:
                continue
            self.say(f"{finding.severity} {finding.code}  {finding.where}\n    {finding.what}")

    def stopped(self, step: int, signal_name: str, checkpoint: Path | None) -> None:
        """Report that the run stopped at a signal and is to be started again; the job goes on, so the status stays RUNNING."""
        self.close_bar()
        kept = "nothing was done yet" if checkpoint is None else f"{checkpoint.name} holds everything"
        data = {**self._progress(step), "event": "training_stopped", "signal": signal_name}
        self.events.write("stopped", step=step, signal=signal_name, checkpoint=None if checkpoint is None else str(checkpoint))
        message = f"Stopped by {signal_name} after step {step}; {kept}; start again with train.resume=true."
        self.status.write(RunStatus.RUNNING, message, data, durable=True)

    def finished(self, step: int, results: Mapping[str, Any]) -> None:
        """Report success."""
        self.close_bar()
        self.events.write("run_finished", **results)
        self.status.write(RunStatus.RUNNING, "Training complete.", {**self._progress(step), "event": "training_complete"})
        self.status.write(RunStatus.SUCCESS, "Training finished successfully.", {**results, **self._progress(step)})

    def failed(self, findings: Sequence[Finding]) -> None:
        """Report a failure that ends the run, after everything was saved."""
        self.close_bar()
        self.status.write_failure(findings)

    def close_bar(self) -> None:
        """End the progress bar."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def close(self) -> None:
        """Close bar and files."""
        self.close_bar()
        self.events.close()
        self.status.close()

    def _progress(self, step: int) -> dict[str, Any]:
        plan = self._plan
        pace: dict[str, str] = {}
        if step > self._start_step:
            per_step_s = (monotonic() - self._started_s) / (step - self._start_step)
            pace["time_per_epoch"] = clock_text(per_step_s * plan.steps_per_epoch)
            pace["eta"] = clock_text(per_step_s * (plan.total_steps - step))
        return {
            "component": "train",
            "epoch": min(plan.num_epochs, (max(step, 1) - 1) // plan.steps_per_epoch + 1),
            "max_epoch": plan.num_epochs,
            "step": step,
            "max_step": plan.total_steps,
            "step_in_epoch": (max(step, 1) - 1) % plan.steps_per_epoch + 1 if step else 0,
            "steps_per_epoch": plan.steps_per_epoch,
            **pace,
        }
