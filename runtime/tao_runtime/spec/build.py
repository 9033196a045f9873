"""Build a spec from template and overrides, or read one from a file, and report every fault at once."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, overload

from tao_runtime.config.actions import ACTIONS, Action, action_of
from tao_runtime.config.defaults import default_value, dump_spec
from tao_runtime.config.evaluate import EvaluateSpec
from tao_runtime.config.export import ExportSpec
from tao_runtime.config.fields import Section
from tao_runtime.config.inference import InferenceSpec
from tao_runtime.config.model_keys import MODEL_KEYS
from tao_runtime.config.names import COSMOS_REASON
from tao_runtime.config.quantize import QuantizeSpec
from tao_runtime.config.rules import NO_FACTS, Facts, RuleContext, check_rules
from tao_runtime.config.train import TrainSpec
from tao_runtime.config.validation import parse_spec
from tao_runtime.errors import Finding, TaoError, Where, in_file, raise_errors
from tao_runtime.hub.names import parse_model
from tao_runtime.spec.edit import Change, apply_change, own_copy, written_keys
from tao_runtime.spec.files import read_spec_file
from tao_runtime.spec.overrides import apply_override, apply_overrides

__all__ = ["BuiltSpec", "apply_override", "apply_overrides", "build_spec", "load_spec", "read_spec"]


@dataclass(frozen=True, slots=True)
class BuiltSpec:
    """A spec and everything that was found about it.

    Attributes:
        action: what it is a spec of.
        given: nested dictionary as written: base or template, with the overrides.
        model: the parsed spec, None when its form is wrong.
        form_findings: faults of keys, types, bounds and choices.
        rule_findings: what the rules say; where the form is wrong, those that don't read the keys at fault.
    """

    action: Action
    given: dict[str, Any]
    model: Section | None
    form_findings: list[Finding] = field(default_factory=list)
    rule_findings: list[Finding] = field(default_factory=list)

    @property
    def findings(self) -> list[Finding]:
        """All findings."""
        return [*self.form_findings, *self.rule_findings]

    @property
    def value(self) -> dict[str, Any]:
        """The complete nested spec when its form is right, else what was given."""
        return self.given if self.model is None else dump_spec(self.model)


def build_spec(
    skill: str,
    action: str,
    overrides: Sequence[str] = (),
    base: dict[str, Any] | None = None,
    *,
    facts: Facts = NO_FACTS,
) -> BuiltSpec:
    """Walk overrides into a template and judge the result.

    Args:
        skill: name of the skill directory.
        action: name of the action.
        overrides: texts such as `train.epoch=3`, applied in order.
        base: nested dictionary to start from instead of the template; not changed.
        facts: what is known beside the spec.

    Raises:
        TaoError: USAGE_ACTION_UNKNOWN only; faults of the spec are in the result.
    """
    registered = action_of(skill, action)
    given = default_value(registered.model) if base is None else copy.deepcopy(base)
    form = apply_overrides(registered.model, given, overrides)
    model, faults = parse_spec(registered.model, given)
    if model is not None and facts.backend is not None and "backend" in registered.model.model_fields:
        given["backend"] = facts.backend
        model, faults = parse_spec(registered.model, given)
    other = None if model is not None or base is None else _action_of_another(registered, base)
    form = [*form, *faults] if other is None else [_wrong_action(registered, base or {}, other)]
    if model is not None:
        rules = check_rules(action, _context(model, given, facts))
    else:
        rules = [] if other is not None else _rules_despite(registered, given, form, facts)
    return BuiltSpec(registered, given, model, form, [*rules, *_model_names(registered, given)])


def _rules_despite(registered: Action, given: dict[str, Any], faults: Sequence[Finding], facts: Facts) -> list[Finding]:
    """Judge what can be judged of a spec whose form is wrong: without the keys at fault, by the rules that don't read them."""
    keys = {fault.where.key for fault in faults if fault.where.key is not None}
    sound = own_copy(given)
    for key in keys:
        written = written_keys(sound, key)
        if written is not None:
            apply_change(sound, Change(written, is_removal=True))
    model, left = parse_spec(registered.model, sound)
    if model is None or left:
        return []
    context = _context(model, sound, facts)
    rules = (rule for rule in registered.rules if not any(_overlap(key, read) for key in keys for read in rule.reads))
    return [finding for rule in rules for finding in rule.judge(context)]


def _overlap(one: str, other: str) -> bool:
    """Return whether two dotted paths are the same, or one lies within the other."""
    return f"{one}.".startswith(f"{other}.") or f"{other}.".startswith(f"{one}.")


def _model_names(registered: Action, given: dict[str, Any]) -> list[Finding]:
    """Return a finding for each written model name that is neither a folder nor a repository of the Hub (C15)."""
    findings: list[Finding] = []
    for key in MODEL_KEYS[registered.name]:
        name: Any = given
        for part in key.path.split("."):
            name = name.get(part) if isinstance(name, dict) else None
        try:
            if isinstance(name, str) and name:
                parse_model(name, key.path)
        except TaoError as error:
            findings += error.findings
    return findings


def _action_of_another(registered: Action, base: dict[str, Any]) -> str | None:
    """Return the one other action whose spec has all keys of the top, None when this one has them or no single other does."""
    if base.keys() <= registered.model.model_fields.keys():
        return None
    others = [a.name for a in ACTIONS if a.skill == registered.skill and base.keys() <= a.model.model_fields.keys()]
    return others[0] if len(others) == 1 else None


def _wrong_action(registered: Action, base: dict[str, Any], other: str) -> Finding:
    strange = ", ".join(sorted(base.keys() - registered.model.model_fields.keys()))
    what = f"this is a spec of action {other}, not of {registered.name}, which has no {strange}"
    fix = f"Pass --action {other} where the command takes it, or name a {registered.name} spec."
    return Finding("SPEC_UNKNOWN_KEY", what, Where(), fix, rule="C14")


def read_spec(
    path: Path | str, action: str, overrides: Sequence[str] = (), *, skill: str = COSMOS_REASON, facts: Facts = NO_FACTS
) -> BuiltSpec:
    """Read a spec file and judge it with the overrides applied; findings name the file.

    Raises:
        TaoError: when the file can't be read as a mapping.
    """
    built = build_spec(skill, action, overrides, read_spec_file(Path(path)), facts=facts)
    return BuiltSpec(
        built.action, built.given, built.model, in_file(built.form_findings, str(path)), in_file(built.rule_findings, str(path))
    )


@overload
def load_spec(path: Path | str, action: Literal["train"], overrides: Sequence[str] = ...) -> TrainSpec: ...
@overload
def load_spec(path: Path | str, action: Literal["evaluate"], overrides: Sequence[str] = ...) -> EvaluateSpec: ...
@overload
def load_spec(path: Path | str, action: Literal["inference"], overrides: Sequence[str] = ...) -> InferenceSpec: ...
@overload
def load_spec(path: Path | str, action: Literal["quantize"], overrides: Sequence[str] = ...) -> QuantizeSpec: ...
@overload
def load_spec(path: Path | str, action: Literal["export"], overrides: Sequence[str] = ...) -> ExportSpec: ...
def load_spec(path: Path | str, action: str, overrides: Sequence[str] = ()) -> Any:
    """Read a spec file that is about to be run.

    Args:
        path: YAML or JSON file.
        action: name of the action.
        overrides: texts such as `train.epoch=3`, applied on top.

    Returns:
        The parsed spec; every rule that the spec alone decides has passed.

    Raises:
        TaoError: with all faults at once.
    """
    built = read_spec(path, action, overrides)
    raise_errors(built.findings)
    return built.model


def _context(model: Section, given: dict[str, Any], facts: Facts) -> RuleContext[Any]:
    known = {field.name: getattr(facts, field.name) for field in fields(facts)}
    return RuleContext(spec=model, given=given, **known)
