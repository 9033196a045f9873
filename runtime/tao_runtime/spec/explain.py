"""Say what a key of a spec means, from the same definition that parses it."""

from __future__ import annotations

import json
from typing import Any

from tao_runtime.codes import CODES
from tao_runtime.config.actions import ACTIONS, Action
from tao_runtime.config.defaults import default_value, flatten
from tao_runtime.config.keys import Key, backends_of, find_key, type_text
from tao_runtime.config.validation import unknown_key
from tao_runtime.errors import TaoError
from tao_runtime.spec.dialects import DERIVED, NOT_RENDERED


def explain_key(path: str, skill: str, action: str | None = None) -> list[dict[str, Any]]:
    """Describe a key in every action that has it.

    Args:
        path: dotted path.
        skill: name of the skill directory.
        action: only this action; None = all actions of the skill.

    Returns:
        One plain dictionary an action; at least one.

    Raises:
        TaoError: SPEC_UNKNOWN_KEY with the nearest known key.
    """
    candidates = [entry for entry in ACTIONS if entry.skill == skill and action in (None, entry.name)]
    described = [_describe(entry, key) for entry in candidates if (key := find_key(entry.model, path)) is not None]
    if not described:
        raise TaoError(unknown_key(candidates[0].model, path, "VALUE"))
    return described


def explanation_text(described: list[dict[str, Any]]) -> str:
    """Return descriptions as lines for a terminal."""
    blocks = []
    for entry in described:
        lines = [f"{entry['key']}  ({entry['skill']}, {entry['action']})", f"  {entry['help']}"]
        for label in ("takes", "default", "unit", "required_when", "backends", "keys"):
            if entry.get(label) not in (None, []):
                shown = entry[label] if isinstance(entry[label], str) else json.dumps(entry[label])
                lines.append(f"  {label}: {shown}")
        lines.extend(f"  automl {name}: {json.dumps(value)}" for name, value in entry["automl"].items())
        lines.extend(f"  cosmos-rl: {text}" for text in entry["cosmos_rl"])
        lines.extend(f"  rule {rule['rule'] or '-'} {rule['code']}: {rule['summary']}" for rule in entry["rules"])
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def _describe(action: Action, key: Key) -> dict[str, Any]:
    metadata = key.metadata
    automl = ("automl_enabled", "popular", "option_weights", "math_cond", "depends_on", "parent_param")
    defaults = flatten(action.model, default_value(action.model))
    return {
        "skill": action.skill,
        "action": action.name,
        "key": key.path,
        "help": key.field.description or "",
        "takes": "a section" if key.section is not None else type_text(key.field),
        "default": None
        if key.section is not None
        else defaults.get(key.path, key.field.get_default(call_default_factory=True)),
        "unit": metadata.get("unit"),
        "required_when": metadata.get("required"),
        "backends": backends_of(action.model, key.path) or None,
        "keys": [f"{key.path}.{name}" for name in key.section.model_fields] if key.section is not None else None,
        "automl": {name: metadata[name] for name in automl if name in metadata},
        "cosmos_rl": _cosmos_rl(action, key.path),
        "rules": _rules(action, key.path),
    }


def _rules(action: Action, path: str) -> list[dict[str, Any]]:
    found = {}
    for rule in action.rules:
        if any(read == path or read.startswith(f"{path}.") for read in rule.reads):
            found[rule.code] = {"rule": rule.number, "code": rule.code, "summary": CODES[rule.code].summary}
    return list(found.values())


def _cosmos_rl(action: Action, path: str) -> list[str]:
    if action.name != "train":
        return []
    notes = [f"{entry.target} depends on it: {entry.how}" for entry in DERIVED if path in entry.sources]
    notes.extend(f"not rendered: {why}" for key, why in NOT_RENDERED.items() if path == key or path.startswith(f"{key}."))
    return notes
