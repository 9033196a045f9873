"""Decide everything about an evaluation before anything is loaded or written, and report every fault at once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tao_runtime.config.evaluate import EvaluateSpec
from tao_runtime.dataset.lint import lint_annotations
from tao_runtime.dataset.lint_launch import check_reading
from tao_runtime.dataset.lint_tokens import reading_of
from tao_runtime.environment import Environment
from tao_runtime.errors import Finding, FixKind, Severity, TaoError, Where, raise_errors, worst_first
from tao_runtime.files import is_folder, is_plain_file, sha256_of, why_unwritable
from tao_runtime.hub.sources import AskedModel, ModelSource, WantedModel, ask_for_model, bring_model
from tao_runtime.media.annotations import Record, read_annotations

ADAPTER_CONFIG = "adapter_config.json"
MODEL, BASE, TOKENIZER = "model.model_name", "model.base_model_path", "model.tokenizer_model_name"


@dataclass(frozen=True, slots=True)
class Shard:
    """Say which part of the questions a process answers: every `count`-th, from the `number`-th on."""

    number: int
    count: int
    local_rank: int | None


@dataclass(frozen=True)
class EvaluateJob:
    """Hold everything that is decided about an evaluation.

    Attributes:
        spec: the evaluate spec.
        output_dir: folder of the results.
        models: where each model lies and what it is called, by the spec's key.
        media_dir: folder that media paths start from.
        records: all records that are asked, by all shards.
        shard: part that this process answers.
        fingerprint: of everything that an answer depends on.
        findings: warnings and remarks.
    """

    spec: EvaluateSpec
    output_dir: Path
    models: dict[str, ModelSource]
    media_dir: Path
    records: tuple[Record, ...]
    shard: Shard
    fingerprint: str
    findings: tuple[Finding, ...]

    @property
    def own_records(self) -> tuple[Record, ...]:
        """Records of this process's shard."""
        return self.records[self.shard.number :: self.shard.count]

    @property
    def model_dir(self) -> Path:
        """Folder of the model, or of the adapter."""
        return self.models[MODEL].folder

    @property
    def base_dir(self) -> Path | None:
        """Folder of the adapter's base, None without an adapter."""
        return self.models[BASE].folder if BASE in self.models else None

    @property
    def tokenizer_dir(self) -> Path:
        """Folder of the tokenizer."""
        return self.models[TOKENIZER].folder if TOKENIZER in self.models else self.main_dir

    @property
    def main_dir(self) -> Path:
        """Folder with config.json and tokenizer."""
        return self.model_dir if self.base_dir is None else self.base_dir


def output_dir_of(spec: EvaluateSpec) -> Path:
    """Return the folder that takes the results."""
    return Path(spec.results_dir or ".") / spec.model.save_folder


def prepare_evaluation(spec: EvaluateSpec, environment: Environment, *, dry_run: bool = False) -> EvaluateJob:
    """Check spec, machine, data, output and access to the models, then stage the models.

    Args:
        spec: the evaluate spec.
        environment: the process environment.
        dry_run: download nothing; else Hub models are written into the Hub's cache, and nothing anywhere else.

    Raises:
        TaoError: with every fault that could be found.
    """
    annotations, media_dir = _data_paths(spec)
    shard, reading = _shard(spec, environment), reading_of(spec)
    asked = {one.key: ask_for_model(one, environment) for one in wanted_models(spec)}
    result = lint_annotations(annotations, media_dir, vision=None if reading is None else reading.options)
    findings = [*_unsupported(spec), *_shard_faults(spec, environment, shard), *_output_faults(spec)]
    findings += [*(finding for one in asked.values() for finding in one.findings), *result.findings]
    findings += [*_switch_faults(spec, _is_adapter(asked[MODEL])), *_device_faults(spec, shard)]
    findings = check_reading(findings, [result], reading, _readers(asked), environment, dry_run=dry_run)
    models = {key: bring_model(one, environment, dry_run=dry_run) for key, one in asked.items()}
    if not dry_run:
        raise_errors(_switch_faults(spec, (models[MODEL].folder / ADAPTER_CONFIG).is_file()))
    findings += [finding for source in models.values() for finding in source.findings]
    records = read_annotations(annotations).records
    chosen = tuple(records if spec.evaluation.limit < 0 else records[: spec.evaluation.limit])
    return EvaluateJob(
        spec=spec,
        output_dir=output_dir_of(spec),
        models=models,
        media_dir=media_dir,
        records=chosen,
        shard=shard,
        fingerprint=_fingerprint(spec, annotations, models),
        findings=tuple(worst_first(findings)),
    )


def _data_paths(spec: EvaluateSpec) -> tuple[Path, Path]:
    annotations = Path(spec.dataset.annotation_path or "annotations.json")
    return annotations, annotations.parent if spec.dataset.media_dir is None else Path(spec.dataset.media_dir)


def _unsupported(spec: EvaluateSpec) -> Iterator[Finding]:
    """Refuse what is not done here: a key that is silently without effect would be worse."""
    if spec.backend != "native":
        fix = "--set backend=native, or give the TOML of `tao-runtime spec build --for cosmos-rl` to the TAO evaluator"
        yield _spec_fault("SPEC_NATIVE_UNSUPPORTED", "backend", f"{spec.backend}; this command evaluates native specs", fix)
    if spec.model.tp_size != 1:
        key = "model.tp_size"
        yield _spec_fault(
            "SPEC_NATIVE_UNSUPPORTED", key, f"{spec.model.tp_size}; each GPU holds a whole model here", f"--set {key}=1"
        )
    if spec.metrics.names:
        key = "metrics.names"
        what = f"{', '.join(spec.metrics.names)}; this version computes accuracy, precision, recall, F1 and word overlap"
        yield _spec_fault("SPEC_NATIVE_UNSUPPORTED", key, what, f"--set {key}=[]")


def _shard(spec: EvaluateSpec, environment: Environment) -> Shard:
    count = max(1, spec.num_gpus // spec.model.tp_size)
    if environment.world_size > 1:
        return Shard(environment.rank, count, environment.local_rank)
    return Shard(spec.evaluation.shard_id, count, None)


def _shard_faults(spec: EvaluateSpec, environment: Environment, shard: Shard) -> Iterator[Finding]:
    if environment.world_size not in (1, shard.count):
        what = f"{spec.num_gpus}, so there are {shard.count} shards, and WORLD_SIZE is {environment.world_size}"
        yield _spec_fault("SPEC_SHARD", "num_gpus", what, f"--set num_gpus={environment.world_size * spec.model.tp_size}")
    elif shard.number >= shard.count:
        what = f"{shard.number}; num_gpus is {spec.num_gpus}, so shards are numbered from 0 to {shard.count - 1}"
        yield _spec_fault("SPEC_SHARD", "evaluation.shard_id", what, f"--set num_gpus={shard.number + 1}")


def wanted_models(spec: EvaluateSpec) -> list[WantedModel]:
    """Return the models that an evaluation loads."""
    model = spec.model
    wanted = [WantedModel(model.model_name, MODEL)]
    if model.enable_lora and model.base_model_path is not None:
        wanted.append(WantedModel(model.base_model_path, BASE))
    if model.tokenizer_model_name is not None:
        wanted.append(WantedModel(model.tokenizer_model_name, TOKENIZER, weights=False))
    return wanted


def _readers(asked: Mapping[str, AskedModel]) -> list[AskedModel]:
    """Return the models whose config and tokenizer read the records: an adapter's are its base's."""
    return [asked[BASE if BASE in asked else MODEL], *([asked[TOKENIZER]] if TOKENIZER in asked else [])]


def _is_adapter(asked: AskedModel) -> bool | None:
    """Return whether a model is an adapter, None while neither folder nor Hub say it."""
    folder = Path(asked.wanted.name)
    if is_folder(folder):
        return is_plain_file(folder / ADAPTER_CONFIG)
    files = () if asked.report is None else asked.report.files
    return any(file.path == ADAPTER_CONFIG for file in files) if files else None


def _switch_faults(spec: EvaluateSpec, is_adapter: bool | None) -> Iterator[Finding]:
    model = spec.model
    if is_adapter and not model.enable_lora:
        fix = "--set model.enable_lora=true --set model.base_model_path=FOLDER"
        yield _spec_fault("SPEC_ADAPTER_SWITCH", "model.enable_lora", f"false and {model.model_name} is an adapter", fix)
    if model.enable_lora and is_adapter is False:
        what = f"true and {model.model_name} holds no {ADAPTER_CONFIG}"
        yield _spec_fault("SPEC_ADAPTER_SWITCH", "model.enable_lora", what, "--set model.enable_lora=false")


def _device_faults(spec: EvaluateSpec, shard: Shard) -> tuple[Finding, ...]:
    """Say when a device was asked for that is not here, before a model is staged for it."""
    if spec.native.device != "cuda":
        return ()
    from tao_runtime.evaluate.generate import choose_device

    try:
        choose_device(spec.native.device, shard.local_rank)
    except TaoError as error:
        return error.findings
    return ()


def _output_faults(spec: EvaluateSpec) -> Iterator[Finding]:
    reason = why_unwritable(output_dir_of(spec))
    if reason is not None:
        what = f"results_dir is {spec.results_dir}: {reason}"
        yield Finding("SPEC_OUTPUT_UNWRITABLE", what, Where(key="results_dir"), "Name another folder.", rule="C13")


def _spec_fault(code: str, key: str, value: str, fix: str) -> Finding:
    return Finding(code, f"{key} is {value}", Where(key=key), fix, Severity.ERROR, FixKind.EDIT)


def _fingerprint(spec: EvaluateSpec, annotations: Path, models: Mapping[str, ModelSource]) -> str:
    """Return a hash of all that an answer depends on; model files go in by size and time, which a copy keeps apart."""
    values: dict[str, Any] = {
        "model_files": [_file_marks(source.folder) for source in models.values() if source.is_here],
        "model": spec.model.model_dump(mode="json", exclude={"save_folder"}),
        "annotations": sha256_of(annotations),
        "media_dir": spec.dataset.media_dir,
        "system_prompt": spec.dataset.system_prompt,
        "vision": spec.vision.model_dump(mode="json"),
        "generation": spec.generation.model_dump(mode="json", exclude={"max_retries"}),
        "seed": spec.evaluation.seed,
    }
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def _file_marks(folder: Path) -> list[tuple[str, int, int]]:
    files = sorted(path for path in folder.iterdir() if path.is_file())
    return [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in files]
