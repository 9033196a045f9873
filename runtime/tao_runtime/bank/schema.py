"""Turn a spec class into the JSON Schema that agents, other tools and the hyperparameter search read."""

from __future__ import annotations

from typing import Any

from tao_runtime.bank.spec_schemas import SpecSchema
from tao_runtime.codes import CODES
from tao_runtime.config.actions import Action
from tao_runtime.config.defaults import default_value
from tao_runtime.config.keys import Key, type_text, walk_keys
from tao_runtime.spec.dialects import DERIVED, NOT_RENDERED

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_INTERNAL_KEYWORDS = ("code", "title")


def action_schema(action: Action) -> dict[str, Any]:
    """Return the schema of an action's spec: Draft 2020-12, no references, finite numbers only.

    Beside the standard keywords the top level has `default` (the template's value), `automl_default_parameters` (searched
    unless told otherwise), `automl_disabled_parameters` (never searched) and `popular`, lists of dotted paths; a property can
    have `unit`, `required_when`, `backends`, `automl_enabled`, `popular`, `option_weights`, `math_cond`, `depends_on`
    and `parent_param`. What `spec explain` prints is there too: `takes` (type and bounds in words), `rules` (rule, code and
    summary of each that reads the key or a key below it) and, for train, `cosmos_rl` (what rendering makes of the key).
    """
    raw = action.model.model_json_schema()
    definitions = raw.pop("$defs", {})
    body = _inline(raw, definitions)
    schema = {
        "$schema": DIALECT,
        "$id": f"{action.skill}/{action.name}.schema.json",
        "title": f"{action.skill}: {action.name}",
        "description": f"Spec to {action.summary}.",
        "type": "object",
        "additionalProperties": False,
        "default": default_value(action.model),
        "automl_default_parameters": _paths(action, "automl_enabled", wanted=True),
        "automl_disabled_parameters": _paths(action, "automl_enabled", wanted=False),
        "popular": _paths(action, "popular", wanted=True),
        "properties": body["properties"],
    }
    for key in walk_keys(action.model):
        node = SpecSchema(action.name, schema).node(key.path)
        if node is not None:
            node.update(_explained(action, key))
    return schema


def schema_manifest(skill: str, actions: list[Action]) -> dict[str, Any]:
    """Return schemas/manifest.json: which actions a skill has, with schema and template."""
    return {
        "schema_version": "1.0",
        "skill": skill,
        "actions": {
            action.name: {
                "summary": action.summary,
                "schema": f"schemas/{action.name}.schema.json",
                "template": f"references/spec_template_{action.name}.yaml",
                "backends": list(action.dialects),
            }
            for action in actions
        },
    }


def _paths(action: Action, keyword: str, *, wanted: bool) -> list[str]:
    keys: list[Key] = list(walk_keys(action.model))
    return [key.path for key in keys if key.metadata.get(keyword) is wanted]


def _explained(action: Action, key: Key) -> dict[str, Any]:
    """Return the keywords that save `spec explain` from importing the definitions; one with nothing to say is left out."""
    words = {
        "takes": type_text(key.field) if key.section is None else None,
        "rules": _rules(action, key.path),
        "cosmos_rl": _rendering(key.path) if action.name == "train" else None,
    }
    return {name: value for name, value in words.items() if value}


def _rules(action: Action, path: str) -> list[dict[str, str | None]]:
    reading = [rule for rule in action.rules if any(read == path or read.startswith(f"{path}.") for read in rule.reads)]
    by_code = {rule.code: {"rule": rule.number, "code": rule.code, "summary": CODES[rule.code].summary} for rule in reading}
    return list(by_code.values())


def _rendering(path: str) -> list[str]:
    notes = [f"{entry.target} depends on it: {entry.how}" for entry in DERIVED if path in entry.sources]
    notes.extend(f"not rendered: {why}" for key, why in NOT_RENDERED.items() if path == key or path.startswith(f"{key}."))
    return notes


def _inline(node: Any, definitions: dict[str, Any]) -> Any:
    """Replace references by what they name; our specs hold no cycle."""
    if isinstance(node, list):
        return [_inline(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        target = definitions[node["$ref"].rpartition("/")[2]]
        siblings = {name: value for name, value in node.items() if name != "$ref"}
        return _inline({**target, **siblings}, definitions)
    return {
        name: _properties(value, definitions) if name == "properties" else _keyword(name, value, definitions)
        for name, value in node.items()
        if name not in _INTERNAL_KEYWORDS
    }


def _properties(properties: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    return {name: _inline(value, definitions) for name, value in properties.items()}


def _keyword(name: str, value: Any, definitions: dict[str, Any]) -> Any:
    return value if name == "default" else _inline(value, definitions)
