"""Decide everything about a run before anything is loaded or written, and report every fault at once."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tao_runtime.config.defaults import dump_spec
from tao_runtime.config.rules import RuleContext, check_rules
from tao_runtime.config.train import TrainSpec
from tao_runtime.dataset.lint_launch import check_reading
from tao_runtime.dataset.lint_tokens import reading_of
from tao_runtime.environment import Environment
from tao_runtime.errors import Finding, Severity, worst_first
from tao_runtime.files import sha256_of
from tao_runtime.hub.sources import AskedModel, ModelSource, ask_for_model, bring_model
from tao_runtime.media.decode import choose_decoder
from tao_runtime.models.load import attention_choice
from tao_runtime.plan.steps import StepPlan, plan_steps
from tao_runtime.spec.on_disk import unwritable
from tao_runtime.train.checkpoint import FoundCheckpoint, find_newest, open_checkpoint
from tao_runtime.train.checks import ignored_keys, layout_faults, wanted_model
from tao_runtime.train.feed import FeedOptions, choose_feed
from tao_runtime.train.precision import Choice, Precision, choose_precision, choose_seed, precision_faults
from tao_runtime.train.records import CheckedSets, RecordSet, check_sets, split_off
from tao_runtime.train.state import compare_fingerprints


@dataclass(frozen=True, slots=True)
class Job:
    """Hold everything that is decided about a run.

    Attributes:
        spec: the train spec.
        plan: its schedule.
        results_dir: folder of status.json and events.jsonl.
        output_dir: folder that gets a folder for the run.
        model: where the model lies and what it is called.
        train, validation: records; validation is None when there is none.
        precision: device and formats.
        seed: of data order and initial values.
        feed: how samples are prepared.
        resume: checkpoint to go on from, None to begin.
        fingerprint: what the run is made of, kept in checkpoints.
        choices: automatic choices with reasons, to be printed.
        findings: warnings and remarks.
    """

    spec: TrainSpec
    plan: StepPlan
    results_dir: Path
    output_dir: Path
    model: ModelSource
    train: RecordSet
    validation: RecordSet | None
    precision: Precision
    seed: int
    feed: FeedOptions
    resume: FoundCheckpoint | None
    fingerprint: dict[str, Any]
    choices: tuple[Choice, ...]
    findings: tuple[Finding, ...]

    @property
    def model_dir(self) -> Path:
        """Folder of the model."""
        return self.model.folder

    @property
    def start_step(self) -> int:
        """Optimizer steps already done."""
        return 0 if self.resume is None else self.resume.step


def prepare_job(spec: TrainSpec, environment: Environment, *, dry_run: bool = False) -> Job:
    """Check spec, machine, data, output and access to the model, then stage the model and choose what is to be chosen.

    Args:
        spec: the train spec.
        environment: the process environment.
        dry_run: download nothing; else a Hub model is written into the Hub's cache, and nothing anywhere else.

    Raises:
        TaoError: with every fault that could be found.
    """
    findings, sets, asked = _check(spec, environment, dry_run=dry_run)
    model = bring_model(asked, environment, dry_run=dry_run)
    precision, choices = choose_precision(spec)
    train_set, val_set = sets.read()
    plan = plan_steps(spec, len(train_set.records), sets.num_validation)
    train_set, val_set = split_off(train_set, val_set, plan)
    seed, of_seed = choose_seed(spec)
    feed, why_feed = choose_feed(
        spec.train.train_policy.dataloader_num_workers, spec.train.train_policy.dataloader_prefetch_factor
    )
    fingerprint = _fingerprint(spec, model, plan, seed)
    resume, of_resume = _resume(spec, fingerprint)
    if model.is_here:
        attention = attention_choice(model.folder, precision.device)
        choices += [Choice("attention", attention.value, attention.reason)]
    decoder, why_decoder = choose_decoder(environment.decoder)
    choices += [Choice("decoder", decoder, why_decoder)]
    choices += [of_seed, Choice("samples", f"{feed.num_threads} threads", why_feed), _resume_choice(spec, resume)]
    return Job(
        spec=spec,
        plan=plan,
        results_dir=Path(spec.results_dir or spec.train.output_dir or "."),
        output_dir=Path(spec.train.output_dir or spec.results_dir or "."),
        model=model,
        train=train_set,
        validation=val_set,
        precision=precision,
        seed=seed,
        feed=feed,
        resume=resume,
        fingerprint=fingerprint,
        choices=tuple(choices),
        findings=tuple(worst_first([*findings, *model.findings, *plan.findings, *of_resume])),
    )


def _check(spec: TrainSpec, environment: Environment, *, dry_run: bool) -> tuple[list[Finding], CheckedSets, AskedModel]:
    """Check everything that needs no weights; return what is no error, the data sets, and the model.

    Raises:
        TaoError: with every fault that could be found.
    """
    reading = reading_of(spec)
    asked = ask_for_model(wanted_model(spec), environment)
    sets = check_sets(spec, None if reading is None else reading.options)
    findings = [*layout_faults(spec, environment), *ignored_keys(spec), *precision_faults(spec)]
    findings += [*asked.findings, *sets.findings]
    context = RuleContext(
        spec=spec,
        num_train_records=sets.num_train,
        num_val_records=sets.num_validation,
        unwritable=unwritable(dump_spec(spec)),
    )
    findings += [finding for finding in check_rules("train", context) if finding.severity is not Severity.SKIPPED]
    findings = check_reading(findings, list(sets.results), reading, [asked], environment, dry_run=dry_run)
    return findings, sets, asked


def _fingerprint(spec: TrainSpec, model: ModelSource, plan: StepPlan, seed: int) -> dict[str, Any]:
    """Return what decides the figures of a run, in values that JSON keeps; a model that is not here yet is left out."""
    lora = spec.policy.lora
    return {
        **({"model_config_sha256": sha256_of(model.folder / "config.json")} if model.is_here else {}),
        "init": spec.native.init,
        "lora": None if lora is None else lora.model_dump(mode="json"),
        "annotations_sha256": sha256_of(Path(str(spec.custom.train_dataset.annotation_path))),
        "num_train_records": plan.num_train_records,
        "seed": seed,
        "batch_per_rank": plan.batch_per_rank,
        "micro_batch": plan.micro_batch,
        "total_steps": plan.total_steps,
        "warmup_steps": plan.warmup_steps,
        "vision_sha256": hashlib.sha256(spec.custom.vision.model_dump_json().encode()).hexdigest(),
        "system_prompt": spec.custom.system_prompt,
        "param_dtype": spec.train.param_dtype,
        "master_dtype": spec.train.master_dtype,
    }


def _resume(spec: TrainSpec, fingerprint: dict[str, Any]) -> tuple[FoundCheckpoint | None, list[Finding]]:
    """Find the checkpoint that train.resume means.

    Raises:
        TaoError: when a named one is torn, or it belongs to another model or data set.
    """
    findings: list[Finding] = []
    if spec.train.resume is False:
        return None, findings
    if spec.train.resume is True:
        found, findings = find_newest(Path(spec.train.output_dir or spec.results_dir or "."))
    else:
        found = open_checkpoint(Path(spec.train.resume))
    if found is not None:
        findings.extend(compare_fingerprints(found.fingerprint, fingerprint))
    return found, findings


def _resume_choice(spec: TrainSpec, found: FoundCheckpoint | None) -> Choice:
    if found is not None:
        return Choice("start", f"after step {found.step}", f"train.resume: {found.folder}")
    if spec.train.resume:
        return Choice("start", "step 1", "train.resume is true and the output folder holds no whole checkpoint")
    return Choice("start", "step 1", "train.resume is false")
