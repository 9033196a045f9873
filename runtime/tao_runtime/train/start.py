"""Start a run and see it to its end: whatever happens, status.json says so."""

from __future__ import annotations

import errno
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tao_runtime import __version__
from tao_runtime.codes import EXIT_INTERRUPTED, EXIT_OK, EXIT_REQUEUE
from tao_runtime.config.defaults import dump_spec
from tao_runtime.config.train import TrainSpec
from tao_runtime.environment import Environment
from tao_runtime.errors import Finding, TaoError, Where, raise_errors
from tao_runtime.files import write_text
from tao_runtime.spec.build import read_spec
from tao_runtime.spec.files import spec_text
from tao_runtime.status.events import EVENTS_NAME, EventLog, StatusLog, new_run_id, status_path
from tao_runtime.train.signals import StopRequest, stop_signals

if TYPE_CHECKING:
    from tao_runtime.train.loop import TrainOutcome
    from tao_runtime.train.prepare import Job


SPEC_NAME = "spec.yaml"


@dataclass(frozen=True, slots=True)
class TrainResult:
    """Say what a run came to.

    Attributes:
        run_id: its id in status.json and events.jsonl.
        job: what was decided before it began.
        run_dir: its folder; None when nothing was started.
        outcome: what the loop did; None when nothing was started.
        status_file, events_file: logs; None when nothing was started.
    """

    run_id: str
    job: Job
    run_dir: Path | None = None
    outcome: TrainOutcome | None = None
    status_file: Path | None = None
    events_file: Path | None = None

    @property
    def exit_code(self) -> int:
        """0 at the plan's end, 75 when it should be started again, 130 when it was interrupted."""
        stopped_by = None if self.outcome is None else self.outcome.stopped_by
        if stopped_by is None:
            return EXIT_OK
        return EXIT_INTERRUPTED if stopped_by == "SIGINT" else EXIT_REQUEUE

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain JSON values."""
        outcome, job = self.outcome, self.job
        document: dict[str, Any] = {
            "run_id": self.run_id,
            "model": job.model.to_dict(),
            "plan": job.plan.to_dict(),
            "choices": [{"name": c.name, "value": c.value, "reason": c.reason} for c in job.choices],
            "start_step": job.start_step,
            "run_dir": _text(self.run_dir),
            "status_file": _text(self.status_file),
            "events_file": _text(self.events_file),
        }
        return document if outcome is None else document | outcome.to_dict()


def load_train_spec(path: Path, overrides: Sequence[str], environment: Environment, *, dry_run: bool = False) -> TrainSpec:
    """Read a train spec that is about to be run.

    Raises:
        TaoError: with all its faults, after a FAILURE record was written (not with `dry_run`) where platform or spec say.
    """
    results_dir: Path | None = None
    try:
        built = read_spec(path, "train", overrides)
        results_dir = _named_results_dir(built.given)
        raise_errors(built.findings)
        spec = built.model
        if not isinstance(spec, TrainSpec):
            raise TypeError(f"{path} was read as {type(spec).__name__}")
    except TaoError as error:
        if not dry_run:
            _record_failure(status_path(environment, results_dir), new_run_id(), error.findings)
        raise
    return spec


def run_training(spec: TrainSpec, environment: Environment, *, dry_run: bool = False) -> TrainResult:
    """Check everything, train, and leave a terminal record.

    Args:
        spec: the train spec.
        environment: the process environment.
        dry_run: stop before anything is loaded or written.

    Raises:
        TaoError: with the cause, after a FAILURE record was written; so does what is no known cause, as it is.
        KeyboardInterrupt: at an interrupt before the first step or a second one later, after a FAILURE record was written.
    """
    run_id = new_run_id()
    try:
        with stop_signals() as stop:
            from tao_runtime.train.prepare import prepare_job

            stop.at_once = True
            job = prepare_job(spec, environment, dry_run=dry_run)
            stop.at_once = False
            announce(job)
            return TrainResult(run_id, job) if dry_run else _run(job, run_id, environment, stop)
    except (Exception, KeyboardInterrupt) as error:
        findings = findings_of(error)
        if not dry_run:
            name = spec.results_dir or spec.train.output_dir
            _record_failure(status_path(environment, None if name is None else Path(name)), run_id, findings)
        if isinstance(error, TaoError | KeyboardInterrupt) or findings[0].code == "INTERNAL_ERROR":
            raise
        raise TaoError(findings) from error


def announce(job: Job) -> None:
    """Print the plan and every automatic choice with its reason on stderr."""
    plan = job.plan
    lines = [
        f"{plan.num_train_records} records, {plan.batch_per_rank} a step in {plan.accumulation} x {plan.micro_batch}: "
        f"{plan.steps_per_epoch} steps an epoch, {plan.total_steps} steps, {plan.warmup_steps} of warm-up",
        f"checkpoints: {len(plan.save_steps())}; validations: {len(plan.validation_steps())} of {plan.num_val_records} records",
        *map(str, job.choices),
    ]
    lines += [f"{f.severity} {f.code}  {f.where}\n    {f.what}" for f in job.findings]
    print("\n".join(lines), file=sys.stderr, flush=True)


def findings_of(error: BaseException) -> tuple[Finding, ...]:
    """Give an exception a code and a cause that a reader can act on."""
    if isinstance(error, TaoError):
        return error.findings
    if isinstance(error, KeyboardInterrupt):
        what = "interrupted: stopped at once, nothing saved since the last checkpoint; a download goes on where it stopped"
        return (Finding("RUN_INTERRUPTED", what, fix="Start again with train.resume=true."),)
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        key = "train.train_policy.mini_batch"
        fix = f"Lower {key}, which leaves the optimizer step as it is, or custom.vision.total_pixels."
        return (Finding("RUN_OUT_OF_MEMORY", _first_line(error), Where(key=key), fix),)
    if isinstance(error, OSError):
        full = error.errno == errno.ENOSPC
        fix = "Free space on the disk, or choose another results_dir." if full else "Check the path and its rights."
        return (Finding("RUN_STORAGE", error.strerror or _first_line(error), Where(file=_text(error.filename)), fix),)
    what = f"{type(error).__name__}: {_first_line(error)}"
    return (Finding("INTERNAL_ERROR", what, fix="Report this with the command that was run."),)


def _run(job: Job, run_id: str, environment: Environment, stop: StopRequest) -> TrainResult:
    from tao_runtime.train.checkpoint import remove_partial
    from tao_runtime.train.loop import train
    from tao_runtime.train.reporter import Reporter

    run_dir = _run_dir(job)
    remove_partial(run_dir)
    write_text(run_dir / SPEC_NAME, recorded_spec(job))
    status_file = status_path(environment, job.results_dir) or job.results_dir
    reporter = Reporter(
        StatusLog(status_file, run_id),
        EventLog(job.results_dir / EVENTS_NAME, run_id),
        job.plan,
        every=job.spec.native.log_every_steps,
        to_console="console" in job.spec.logging.logger,
    )
    try:
        outcome = train(job, run_dir, reporter, stop)
        result = TrainResult(run_id, job, run_dir, outcome, status_file, reporter.events.path)
        if outcome.stopped_by == "SIGINT":
            reporter.failed((interrupted(outcome),))
        elif outcome.stopped_by is not None:
            reporter.stopped(outcome.step, outcome.stopped_by, outcome.checkpoint)
        else:
            reporter.finished(outcome.step, outcome.to_dict())
        return result
    finally:
        reporter.close()


def recorded_spec(job: Job) -> str:
    """Return the complete spec of a run as YAML: the model under the name that the user gave, its commit in a comment.

    With the pinned name in its place the spec trains on the same weights whatever the repository's branch becomes.
    """
    head = f"# tao-runtime {__version__}; spec of this run, complete\n"
    if job.model.commit is not None:
        head += f"# policy.model_name_or_path was {job.model.pinned}\n"
    return head + spec_text(dump_spec(job.spec))


def interrupted(outcome: TrainOutcome) -> Finding:
    """Describe a run that a signal ended."""
    kept = "nothing was done yet" if outcome.checkpoint is None else f"saved in {outcome.checkpoint}"
    what = f"stopped by {outcome.stopped_by} after step {outcome.step}; {kept}"
    return Finding("RUN_STOPPED", what, Where(key="train.resume"), fix="Start again with --set train.resume=true.")


def _run_dir(job: Job) -> Path:
    """Return the folder of the resumed run, or make one named by the time; two starts in a second get two folders."""
    if job.resume is not None and job.resume.run_dir.resolve().parent == job.output_dir.resolve():
        return job.resume.run_dir
    stamp = datetime.now().astimezone().strftime("%Y%m%d%H%M%S")
    job.output_dir.mkdir(parents=True, exist_ok=True)
    for attempt in range(1, 1000):
        folder = job.output_dir / (stamp if attempt == 1 else f"{stamp}_{attempt}")
        try:
            folder.mkdir()
        except FileExistsError:
            continue
        return folder
    raise FileExistsError(f"{job.output_dir} holds a thousand runs of this second")


def _record_failure(path: Path | None, run_id: str, findings: Sequence[Finding]) -> None:
    """Write the FAILURE record; a folder that can't be written must not hide the cause."""
    from tao_runtime.status.events import write_failure

    if path is None:
        return
    try:
        write_failure(path, run_id, findings)
    except OSError as error:
        print(f"{path} could not be written: {error}", file=sys.stderr)


def _named_results_dir(given: dict[str, Any]) -> Path | None:
    train = given.get("train")
    name = given.get("results_dir") or (train.get("output_dir") if isinstance(train, dict) else None)
    return Path(name) if isinstance(name, str) else None


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _text(path: Any) -> str | None:
    return None if path is None else str(path)
