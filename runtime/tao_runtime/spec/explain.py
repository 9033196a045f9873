"""Say what a key of a spec means, read from the generated schemas so that no spec class is imported for it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tao_runtime.config.names import ACTION_NAMES
from tao_runtime.errors import Finding, FixKind, TaoError, Where

_AUTOML = ("automl_enabled", "popular", "option_weights", "math_cond", "depends_on", "parent_param")


SchemaOf = Callable[[str], dict[str, Any]]


def explain_key(path: str, skill: str, schema_of: SchemaOf, action: str | None = None) -> list[dict[str, Any]]:
    """Describe a key in every action that has it.

    Args:
        path: dotted path.
        skill: name of the skill directory.
        schema_of: gives the schema of an action of the skill, as `bank/schema.py` makes it.
        action: only this action; None = all actions of the skill.

    Returns:
        One plain dictionary an action; at least one.

    Raises:
        TaoError: SPEC_UNKNOWN_KEY with the nearest known key, and what `schema_of` raises.
    """
    names = [name for name in ACTION_NAMES[skill] if action in (None, name)]
    described = []
    for name in names:
        schema = schema_of(name)
        nodes = _nodes(schema, path)
        if nodes:
            described.append({"skill": skill, "action": name, "key": path, **_describe(schema, path, nodes)})
    if not described:
        raise TaoError(_unknown_key(path, skill, action or names[0]))
    return described


def schemas_in(folder: Path) -> SchemaOf:
    """Return what reads the schemas of a skill's `schemas/`; it raises DRIFT_MISSING or DRIFT_STALE where it can't."""
    return lambda action: _read(folder / f"{action}.schema.json")


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


def _describe(schema: dict[str, Any], path: str, nodes: list[dict[str, Any]]) -> dict[str, Any]:
    node = nodes[-1]
    keys = [f"{path}.{name}" for name in _properties(node)]
    return {
        "help": node.get("description", ""),
        "takes": "a section" if keys else node.get("takes"),
        "default": None if keys else _default(schema, path, node),
        "unit": node.get("unit"),
        "required_when": node.get("required_when"),
        "backends": next((above["backends"] for above in reversed(nodes) if "backends" in above), None),
        "keys": keys or None,
        "automl": {name: node[name] for name in _AUTOML if name in node},
        "cosmos_rl": node.get("cosmos_rl", []),
        "rules": node.get("rules", []),
    }


def _nodes(schema: dict[str, Any], path: str) -> list[dict[str, Any]]:
    """Return the schemas of the key and of the sections around it, outermost first; empty when there is no such key."""
    nodes = [schema]
    for name in path.split("."):
        properties = _properties(nodes[-1])
        if name not in properties:
            return []
        nodes.append(properties[name])
    return nodes[1:]


def _properties(node: dict[str, Any]) -> dict[str, Any]:
    """Return the keys of a section, also of `section or null`; empty for a leaf."""
    return next((branch["properties"] for branch in (node, *node.get("anyOf", ())) if "properties" in branch), {})


def _default(schema: dict[str, Any], path: str, node: dict[str, Any]) -> Any:
    """Return the template's value, else (in a section that is null there) the key's own."""
    value: Any = schema.get("default")
    for name in path.split("."):
        if not isinstance(value, dict) or name not in value:
            return node.get("default")
        value = value[name]
    return value


def _read(path: Path) -> dict[str, Any]:
    try:
        schema = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise TaoError(_drift("DRIFT_MISSING", path, f"can't be read: {error.strerror}")) from None
    except ValueError:
        schema = None
    if not isinstance(schema, dict):
        raise TaoError(_drift("DRIFT_STALE", path, "is not a JSON object"))
    return schema


def _drift(code: str, path: Path, what: str) -> Finding:
    return Finding(
        code,
        f"{path} {what}",
        Where(file=str(path)),
        "python scripts/generate_schemas.py",
        fix_kind=FixKind.COMMAND,
    )


def _unknown_key(path: str, skill: str, action: str) -> Finding:
    from tao_runtime.config.actions import action_of
    from tao_runtime.config.validation import unknown_key

    return unknown_key(action_of(skill, action).model, path, "VALUE")
