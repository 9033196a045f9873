"""Read a skill's own schemas as an agent would, and find keys, defaults and accepted values in them."""

from __future__ import annotations

import contextlib
import difflib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MISSING = object()


@dataclass(frozen=True, slots=True)
class SpecSchema:
    """The schema of one action."""

    action: str
    root: dict[str, Any]

    def node(self, path: str) -> dict[str, Any] | None:
        """Return the schema of the key at a dotted path, None when there is none."""
        node: dict[str, Any] | None = self.root
        for name in path.split("."):
            node = _child(node, name)
            if node is None:
                return None
        return node

    def default(self, path: str) -> Any:
        """Return the key's value in the schema's default, else the key's own; `MISSING` when it has none."""
        value: Any = self.root.get("default", {})
        for name in path.split("."):
            value = value.get(name, MISSING) if isinstance(value, dict) else MISSING
        node = self.node(path)
        return (node or {}).get("default", MISSING) if value is MISSING else value

    def walk(self) -> Iterator[str]:
        """Yield the dotted path of every key, sections included."""
        yield from _walk(self.root, "")

    def accepts(self, path: str, word: str) -> bool:
        """Say whether the text of an override is a value of the key: as JSON, or as plain text."""
        node = self.node(path)
        if node is None:
            return False
        readings: list[Any] = [word]
        with contextlib.suppress(ValueError):
            readings.append(json.loads(word))
        return any(not list(problems(node, reading)) for reading in readings)


def read_schemas(folder: Path) -> list[SpecSchema]:
    """Return the action schemas of a skill that are valid, by action; SK020 speaks of the others."""
    import jsonschema

    schemas = []
    for path in sorted(folder.glob("schemas/*.schema.json")):
        try:
            root = json.loads(path.read_text(encoding="utf-8"))
            jsonschema.Draft202012Validator.check_schema(root)
        except (OSError, ValueError, jsonschema.SchemaError):
            continue
        if isinstance(root, dict):
            schemas.append(SpecSchema(path.name.removesuffix(".schema.json"), root))
    return schemas


def problems(schema: Any, value: Any) -> Iterator[str]:
    """Yield what a schema finds wrong with a value, each with its place; a fault of the schema that shows is one too."""
    import jsonschema
    from referencing.exceptions import Unresolvable

    try:
        for problem in jsonschema.Draft202012Validator(schema).iter_errors(value):
            yield f"{problem.json_path}: {problem.message[:160]}"
    except Unresolvable as error:
        yield f"the schema's reference {error.ref} leads nowhere"
    except jsonschema.exceptions.UnknownType as error:
        yield f"the schema has an unknown type {error.type}"


def resolve(schemas: list[SpecSchema], path: str) -> list[tuple[SpecSchema, str]]:
    """Return where a dotted path is a key: as it stands, or as the unambiguous end of longer paths."""
    whole = [(schema, path) for schema in schemas if schema.node(path) is not None]
    if whole:
        return whole
    return [(schema, key) for schema in schemas for key in schema.walk() if key.endswith(f".{path}")]


def nearest(schemas: list[SpecSchema], path: str, cutoff: float) -> str | None:
    """Return the known key most like a path, None when none is near."""
    known = list(dict.fromkeys(key for schema in schemas for key in schema.walk()))
    return next(iter(difflib.get_close_matches(path, known, n=1, cutoff=cutoff)), None)


def _child(node: dict[str, Any] | None, name: str) -> dict[str, Any] | None:
    for branch in _branches(node or {}):
        properties = branch.get("properties")
        if isinstance(properties, dict) and isinstance(properties.get(name), dict):
            found: dict[str, Any] = properties[name]
            return found
    return None


def _branches(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for keyword in ("anyOf", "oneOf", "allOf"):
        for branch in node.get(keyword, ()):
            if isinstance(branch, dict):
                yield from _branches(branch)


def _walk(node: dict[str, Any], prefix: str) -> Iterator[str]:
    for branch in _branches(node):
        properties = branch.get("properties")
        for name, inner in properties.items() if isinstance(properties, dict) else ():
            if isinstance(inner, dict):
                yield f"{prefix}{name}"
                yield from _walk(inner, f"{prefix}{name}.")
