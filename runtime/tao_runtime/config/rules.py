"""Judge a spec by everything that is known about its keys together."""

from __future__ import annotations

from typing import Any

from tao_runtime.config.rule import NO_FACTS, Facts, Fault, Rule, RuleContext
from tao_runtime.config.rules_disk import TRAIN_DISK_RULES, writable_rule
from tao_runtime.config.rules_other import EVALUATE_RULES, EXPORT_RULES, INFERENCE_RULES, QUANTIZE_RULES
from tao_runtime.config.rules_train import TRAIN_RULES
from tao_runtime.errors import Finding

__all__ = ["NO_FACTS", "RULES", "Facts", "Fault", "Rule", "RuleContext", "check_rules"]

RULES: dict[str, tuple[Rule, ...]] = {
    "train": (*TRAIN_RULES, *TRAIN_DISK_RULES),
    "evaluate": (*EVALUATE_RULES, writable_rule("results_dir")),
    "inference": (*INFERENCE_RULES, writable_rule("results_dir")),
    "quantize": (*QUANTIZE_RULES, writable_rule("results_dir")),
    "export": (*EXPORT_RULES, writable_rule("results_dir")),
}


def check_rules(action: str, context: RuleContext[Any]) -> list[Finding]:
    """Return the findings of every rule of an action that speaks of the context's back end.

    A rule whose facts are not known yields a finding of severity skipped, never nothing.
    """
    return [finding for rule in RULES[action] for finding in rule.judge(context)]
