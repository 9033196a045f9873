"""Rules about what is on this disk: the model's modules, folders to write, samples that were cached before."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from tao_runtime.config.rule import Fault, Rule, RuleContext
from tao_runtime.config.rules_shared import COSMOS_RL, read_path
from tao_runtime.config.train import TrainSpec
from tao_runtime.config.validation import override
from tao_runtime.errors import FixKind

_TARGETS = "policy.lora.target_modules"
_NAME = "train.train_policy.dataset.name"


def writable_rule(*keys: str) -> Rule:
    """Return the rule that the folders of these keys can be made and written (C13)."""

    def find(context: RuleContext[Any]) -> Iterator[Fault]:
        for key in keys:
            reason = (context.unwritable or {}).get(key)
            if reason is not None:
                yield Fault(f"{key} is {read_path(context.spec, key)}: {reason}", key, "Name another folder.", FixKind.MANUAL)

    return Rule("SPEC_OUTPUT_UNWRITABLE", keys, find, "a run that can't write its folder ends at its first checkpoint")


def _absent_targets(context: RuleContext[TrainSpec]) -> Iterator[Fault]:
    lora, weights = context.spec.policy.lora, context.weight_names
    if lora is None or isinstance(lora.target_modules, str) or not weights:
        return
    modules = {name.rpartition(".")[0] for name in weights}
    present = [name for name in lora.target_modules if any(f".{module}".endswith(f".{name}") for module in modules)]
    absent = [name for name in lora.target_modules if name not in present]
    if absent:
        what = f"{_TARGETS} names {', '.join(absent)}, and no module of {context.spec.policy.model_name_or_path} is called so"
        yield Fault(what, _TARGETS, override(_TARGETS, present or "all-linear"))


def _stale_cache(context: RuleContext[TrainSpec]) -> Iterator[Fault]:
    policy = context.spec.train.train_policy
    stale = (context.stale_caches or {}).get(policy.dataset.name)
    if policy.enable_dataset_cache and stale is not None:
        name = f"{re.sub(r'-[0-9a-f]{8}$', '', policy.dataset.name) or 'data'}-{context.fingerprint}"
        what = f"{stale}; cosmos-rl reads them whatever fps, pixels, length, model and annotations are now"
        yield Fault(what, _NAME, override(_NAME, name))


TRAIN_DISK_RULES: tuple[Rule, ...] = (
    Rule(
        "SPEC_LORA_TARGETS",
        (_TARGETS, "policy.model_name_or_path"),
        _absent_targets,
        "peft matches a target with the end of a module's name; one that matches none is dropped, or ends the run",
    ),
    writable_rule("results_dir", "train.output_dir"),
    Rule(
        "SPEC_CACHE_STALE",
        (_NAME, "train.train_policy.enable_dataset_cache"),
        _stale_cache,
        "run: cosmos-rl 0.4.7 keys its cache by dataset.name and train_policy only",
        backends=COSMOS_RL,
    ),
)
