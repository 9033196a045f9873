"""Run an evaluation: ask, keep every answer as it comes, judge, and write results.json and the figures."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from tao_runtime import __version__
from tao_runtime.environment import Environment
from tao_runtime.errors import Finding, TaoError, Where
from tao_runtime.evaluate.prepare import EvaluateJob, output_dir_of, prepare_evaluation
from tao_runtime.evaluate.results import RESULTS_NAME, write_results
from tao_runtime.evaluate.saved import AnswerLog, SavedAnswer, answers_path, read_answers
from tao_runtime.evaluate.summary import choices_of, judge_answers, metrics_summary, result_rows
from tao_runtime.files import write_json
from tao_runtime.media.annotations import Record
from tao_runtime.status.events import RunStatus, StatusLog, new_run_id, status_path

if TYPE_CHECKING:
    from tao_runtime.config.evaluate import EvaluateSpec
    from tao_runtime.evaluate.generate import Answer, Answerer

SUMMARY_NAME = "metrics_summary.json"
CONFUSION_NAME = "confusion_matrix.json"
COMPONENT = "evaluate"


@dataclass(frozen=True)
class EvaluateResult:
    """Say what an evaluation came to.

    Attributes:
        job: what was decided before it began.
        summary: figures; None when nothing was run, or other shards are still answering.
        files: files written, by name.
        findings: warnings, and an error for every record that could not be asked.
    """

    job: EvaluateJob
    summary: dict[str, Any] | None = None
    files: dict[str, str] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain JSON values."""
        return {
            "output_dir": str(self.job.output_dir),
            "models": {key: source.to_dict() for key, source in self.job.models.items()},
            "num_records": len(self.job.records),
            "shard": {"number": self.job.shard.number, "count": self.job.shard.count},
            "summary": self.summary,
            "files": self.files,
        }


def run_evaluation(spec: EvaluateSpec, environment: Environment, *, dry_run: bool = False) -> EvaluateResult:
    """Check everything, ask every question of this shard, and when all shards are done judge the answers.

    Args:
        spec: the evaluate spec.
        environment: the process environment.
        dry_run: stop before anything is loaded or written.

    Raises:
        TaoError: with the cause, after a FAILURE record was written to status.json.
    """
    if dry_run:
        job = prepare_evaluation(spec, environment, dry_run=True)
        return EvaluateResult(job, findings=job.findings)
    status = _open_status(spec, environment)
    try:
        job = prepare_evaluation(spec, environment)
        status.write(RunStatus.STARTED, "Starting evaluation.", _progress(0, len(job.own_records)))
        return _run(job, status)
    except (Exception, KeyboardInterrupt) as error:
        findings = _findings_of(error)
        status.write_failure(findings, COMPONENT)
        if isinstance(error, OSError):
            raise TaoError(findings) from error
        raise
    finally:
        status.close()


def _open_status(spec: EvaluateSpec, environment: Environment) -> StatusLog:
    path = status_path(environment, Path(spec.results_dir or ".")) or output_dir_of(spec)
    try:
        return StatusLog(path, new_run_id())
    except OSError as error:
        # The check names the folder beside every other fault; what it can't see, such as a full disk, is named here.
        prepare_evaluation(spec, environment, dry_run=True)
        what = f"{path} can't be written: {error.strerror or error}"
        raise TaoError(Finding("RUN_STORAGE", what, Where(key="results_dir"), "Check the disk and its rights.")) from None


def _findings_of(error: BaseException) -> tuple[Finding, ...]:
    """Give whatever ended the run a code."""
    if isinstance(error, TaoError):
        return error.findings
    if isinstance(error, KeyboardInterrupt):
        fix = "Start again with --set evaluation.skip_saved=true."
        return (Finding("RUN_INTERRUPTED", "interrupted; the answers given so far are saved", fix=fix),)
    if isinstance(error, OSError):
        name = None if error.filename is None else str(error.filename)
        return (Finding("RUN_STORAGE", error.strerror or str(error), Where(file=name), "Check the disk and its rights."),)
    return (Finding("INTERNAL_ERROR", f"{type(error).__name__}: {error}", fix="Report this with the command that was run."),)


def _run(job: EvaluateJob, status: StatusLog) -> EvaluateResult:
    started_s = monotonic()
    path = answers_path(job.output_dir, job.shard.number, job.shard.count)
    kept, stale = read_answers(path, job.fingerprint) if job.spec.evaluation.skip_saved else ({}, [])
    remaining = [record for record in job.own_records if record.index not in kept]
    job.output_dir.mkdir(parents=True, exist_ok=True)
    _say(f"{len(job.own_records)} questions, {len(job.own_records) - len(remaining)} of them answered before")
    unasked, device = _ask(job, remaining, AnswerLog(path, job.fingerprint, list(kept.values())), status)
    findings = (*job.findings, *stale, *unasked)
    answers = _all_answers(job)
    if len(answers) + len(unasked) < len(job.records):
        status.write(RunStatus.SUCCESS, f"Shard {job.shard.number} of {job.shard.count} answered; others have not finished.")
        return EvaluateResult(job, findings=findings)
    facts = _run_facts(job, answers, monotonic() - started_s, device)
    summary, files = _write_results(job, answers, facts)
    score = summary["score"]
    kpi = {"accuracy": score["accuracy"], "balanced_accuracy": score["balanced_accuracy"], "macro_f1": score["macro_f1"]}
    status.write(RunStatus.SUCCESS, "Evaluation finished successfully.", _progress(len(answers), len(job.records)), kpi)
    return EvaluateResult(job, summary, files, findings)


def _ask(job: EvaluateJob, remaining: Sequence[Record], log: AnswerLog, status: StatusLog) -> tuple[list[Finding], str]:
    """Ask what remains and keep each answer; return what kept records from being asked, and the device's name."""
    with log:
        if not remaining:
            return [], "none: every answer was saved before"
        answerer, device = _load(job)
        done = 0
        for batch in answerer.answer(remaining):
            for answer in batch:
                log.append(_saved(answer))
            done += len(batch)
            status.write(RunStatus.RUNNING, f"{done} of {len(remaining)} answered.", _progress(done, len(remaining)))
            _say(f"answered {done} of {len(remaining)}")
        return answerer.findings, device


def _saved(answer: Answer) -> SavedAnswer:
    return SavedAnswer(answer.record.index, answer.response, answer.num_tokens, answer.finish, answer.likeliest)


def _load(job: EvaluateJob) -> tuple[Answerer, str]:
    """Load model and tokenizer and say every automatic choice."""
    import torch
    from transformers.utils import logging as transformers_logging

    from tao_runtime.data.frames import FrameCache
    from tao_runtime.data.samples import SampleBuilder
    from tao_runtime.evaluate.generate import Answerer, BatchLimits, choices_apart, choose_device, choose_threads, device_name
    from tao_runtime.evaluate.sampling import GenerationOptions
    from tao_runtime.media.sampling import VisionOptions
    from tao_runtime.models.export import load_for_inference
    from tao_runtime.models.load import attention_choice, load_tokenizer, pixel_statistics, vision_geometry

    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    spec = job.spec
    device, why_device = choose_device(spec.native.device, job.shard.local_rank)
    if spec.native.num_threads is not None:
        torch.set_num_threads(spec.native.num_threads)
    threads, why_threads = choose_threads(spec.evaluation.num_processes)
    attention = attention_choice(job.main_dir, device)
    _say(f"device: {device} ({why_device})\nattention: {attention.value} ({attention.reason})")
    _say(f"prompts: {threads} threads ({why_threads})")
    model = load_for_inference(job.model_dir, job.base_dir, dtype=getattr(torch, spec.model.dtype), device=device)
    if job.base_dir is not None:
        model = model.merge_and_unload(safe_merge=True)
        _say(f"adapter: merged into {job.base_dir} (model.enable_lora)")
    builder = SampleBuilder(
        tokenizer=load_tokenizer(job.tokenizer_dir),
        geometry=vision_geometry(job.main_dir),
        options=VisionOptions(**spec.vision.model_dump()),
        media_dir=job.media_dir,
        max_length=spec.model.max_length - spec.generation.max_tokens,
        system_prompt=spec.dataset.system_prompt,
        statistics=pixel_statistics(job.main_dir),
        cache=FrameCache(max_bytes=0),  # every question is asked once
    )
    options = GenerationOptions(**spec.generation.model_dump(exclude={"max_retries"}), seed=spec.evaluation.seed)
    limits = BatchLimits(spec.evaluation.batch_size, threads, spec.generation.max_retries)
    choices = choices_apart(builder.tokenizer, choices_of(spec, [record.answer for record in job.records]))
    return Answerer(model, builder, options, limits, choices=choices, say=_say), device_name(device)


def _all_answers(job: EvaluateJob) -> dict[int, SavedAnswer]:
    """Return what all shards have answered so far, by index."""
    answers: dict[int, SavedAnswer] = {}
    for shard in range(job.shard.count):
        answers |= read_answers(answers_path(job.output_dir, shard, job.shard.count), job.fingerprint)[0]
    wanted = {record.index for record in job.records}
    return {index: answer for index, answer in answers.items() if index in wanted}


def _write_results(
    job: EvaluateJob, answers: dict[int, SavedAnswer], facts: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Judge and write what the spec's results section asks for."""
    spec = job.spec
    pairs = [(record, answers[record.index]) for record in job.records if record.index in answers]
    judgements = judge_answers(spec, pairs)
    summary = metrics_summary(spec, pairs, judgements, facts)
    files: dict[str, str] = {}
    if spec.results.save_individual_results:
        write_results(job.output_dir / RESULTS_NAME, result_rows(pairs, judgements))
        files["results"] = str(job.output_dir / RESULTS_NAME)
    else:
        for shard in range(job.shard.count):
            answers_path(job.output_dir, shard, job.shard.count).unlink(missing_ok=True)
    if spec.results.save_metrics_summary:
        write_json(job.output_dir / SUMMARY_NAME, summary)
        files["metrics_summary"] = str(job.output_dir / SUMMARY_NAME)
    if spec.results.save_confusion_matrix:
        matrices = [
            {"policy": group["policy"], **group["confusion"]} for group in summary["score"]["groups"] if group["confusion"]
        ]
        write_json(job.output_dir / CONFUSION_NAME, {"schema_version": summary["schema_version"], "matrices": matrices})
        files["confusion_matrix"] = str(job.output_dir / CONFUSION_NAME)
    return summary, files


def _run_facts(job: EvaluateJob, answers: dict[int, SavedAnswer], seconds: float, device: str) -> dict[str, Any]:
    return {
        "num_records": len(job.records),
        "num_unanswered": len(job.records) - len(answers),
        "num_tokens": sum(answer.num_tokens for answer in answers.values()),
        "seconds": round(seconds, 3),
        "device": device,
        "num_shards": job.shard.count,
        "models": {key: source.to_dict() for key, source in job.models.items()},
        "versions": {"tao-runtime": __version__, **{name: version(name) for name in ("torch", "transformers")}},
    }


def _progress(done: int, total: int) -> dict[str, Any]:
    return {"component": COMPONENT, "step": done, "max_step": total}


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
