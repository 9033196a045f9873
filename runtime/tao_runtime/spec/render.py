"""Render a spec in the language of the back end that will run it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import tomli_w

from tao_runtime.config.counts import split_counts, steps_per_epoch, warmup_steps
from tao_runtime.config.defaults import dump_spec
from tao_runtime.config.evaluate import EvaluateSpec
from tao_runtime.config.fields import Section
from tao_runtime.config.train import TrainSpec
from tao_runtime.errors import Finding, FixKind, Severity, TaoError, Where
from tao_runtime.spec.dialects import NOT_RENDERED, RESHARD
from tao_runtime.spec.files import spec_text

_ARRAY = re.compile(r"\[\n((?:    .*\n)+)\]")


def render(spec: Section, backend: str, num_train_records: int | None = None) -> str:
    """Return the text that a back end reads.

    Args:
        spec: a spec that has passed its rules.
        backend: `native` (YAML, the spec itself) or `cosmos-rl` (TOML).
        num_train_records: records of the training annotations; without it `underived` says what is missing.

    Raises:
        TaoError: USAGE_DIALECT_UNKNOWN when the action can't be rendered for the back end.
    """
    if backend == "native":
        return spec_text(dump_spec(spec))
    renderers: dict[tuple[str, type[Section]], Callable[[Any, int | None], dict[str, Any]]] = {
        ("cosmos-rl", TrainSpec): _cosmos_rl_train,
        ("cosmos-rl", EvaluateSpec): _cosmos_rl_evaluate,
    }
    renderer = renderers.get((backend, type(spec)))
    if renderer is None:
        raise TaoError(
            Finding(
                "USAGE_DIALECT_UNKNOWN",
                f"{type(spec).__name__} can't be rendered for {backend}",
                fix="cosmos-rl renders the actions train and evaluate; native renders all.",
            )
        )
    return toml_text(renderer(spec, num_train_records))


def underived(spec: Section, backend: str, num_train_records: int | None) -> list[Finding]:
    """Return a finding for each key that can't be derived because the number of records is not known."""
    if backend != "cosmos-rl" or not isinstance(spec, TrainSpec) or num_train_records is not None:
        return []
    faults = []
    if spec.validation.enable:
        faults.append(
            (
                "validation.freq_in_epoch",
                "validation.freq is left out, and cosmos-rl then validates every 20 steps and at the end",
            )
        )
    if spec.train.optm_warmup_epochs:
        share = _warmup_share(spec)
        faults.append(
            (
                "train.optm_warmup_epochs",
                f"train.optm_warmup_steps is {share}, the share of the run, instead of a number of steps",
            )
        )
    return [
        Finding(
            "SPEC_RECORD_COUNT_UNKNOWN",
            f"the number of training records is not known: {text}",
            Where(key=key),
            "Pass --annotations FILE so that steps per epoch can be counted.",
            Severity.WARNING,
            FixKind.MANUAL,
        )
        for key, text in faults
    ]


def toml_text(table: dict[str, Any]) -> str:
    """Return TOML with each value on one line, so that two specs can be compared line by line."""
    return _ARRAY.sub(lambda match: f"[{', '.join(item.strip(' ,') for item in _items(match))}]", tomli_w.dumps(table))


def _items(match: re.Match[str]) -> list[str]:
    return match[1].splitlines()


def _cosmos_rl_train(spec: TrainSpec, num_train_records: int | None) -> dict[str, Any]:
    table = _rendered_part(spec)
    train = table["train"]
    train["output_dir"] = spec.train.output_dir or spec.results_dir
    table.pop("results_dir", None)
    if isinstance(spec.train.optm_lr, list):
        train["optm_lr"] = _rates_in_order(spec.train.optm_lr)
    train["fsdp_reshard_after_forward"] = RESHARD[spec.train.fsdp_reshard_after_forward]
    if not spec.train.train_policy.dataset.test_size:
        train["train_policy"]["dataset"].pop("test_size", None)
    records = split_counts(spec, num_train_records, None).train
    del train["optm_warmup_epochs"]
    train["optm_warmup_steps"] = _warmup_share(spec) if records is None else warmup_steps(spec, records)
    freq_in_epoch = table["validation"].pop("freq_in_epoch")
    if records is not None:
        table["validation"]["freq"] = freq_in_epoch * max(steps_per_epoch(spec, records), 1)
    return table


def _cosmos_rl_evaluate(spec: EvaluateSpec, _num_train_records: int | None) -> dict[str, Any]:
    return _rendered_part(spec)


def _rendered_part(spec: Section) -> dict[str, Any]:
    """Return the spec without null values and without the keys that have no counterpart."""
    table = spec.model_dump(exclude_none=True)
    for path in NOT_RENDERED:
        *parents, leaf = path.split(".")
        section = table
        for name in parents:
            section = section.get(name, {})
        section.pop(leaf, None)
    return table


def _rates_in_order(rates: list[float]) -> list[float]:
    """Turn rates of language model, vision tower, projector and head into cosmos-rl's order, which has the projector second.

    A list that stops early gives the projector the vision tower's rate and the head the language model's, as in training here.
    """
    language, vision = rates[:2]
    return [language, rates[2] if len(rates) > 2 else vision, vision, rates[3] if len(rates) > 3 else language]


def _warmup_share(spec: TrainSpec) -> float | int:
    """Return the share of the run; the whole number 0 when there is no warm-up."""
    warmup = spec.train.optm_warmup_epochs
    return min(float(warmup) / spec.train.epoch, 1.0) if warmup else 0
