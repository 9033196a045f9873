"""Change single keys of a spec file and leave the rest of its text, comments too, as it was."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from tao_runtime.spec.files import parse_yaml, spec_text


@dataclass(frozen=True, slots=True)
class Change:
    """One change: the keys from the top to the leaf, and its new value; `is_removal` takes the key away."""

    keys: tuple[str, ...]
    value: Any = None
    is_removal: bool = False


def written_keys(value: Mapping[str, Any], path: str) -> tuple[str, ...] | None:
    """Return the keys that lead to what is written at a dotted path, None when nothing is.

    A key that itself has dots in it, which a spec may not have but a user may write, is found before the nested one.
    """
    names = path.split(".")
    for end in range(len(names), 0, -1):
        name = ".".join(names[:end])
        if name not in value:
            continue
        if end == len(names):
            return (name,)
        inner = value[name]
        rest = written_keys(inner, ".".join(names[end:])) if isinstance(inner, Mapping) else None
        if rest is not None:
            return (name, *rest)
    return None


def own_copy(value: Any) -> Any:
    """Copy a nested value so that no part of it stands in two places, as a YAML alias makes it."""
    if isinstance(value, dict):
        return {key: own_copy(part) for key, part in value.items()}
    return [own_copy(part) for part in value] if isinstance(value, list) else value


def apply_change(value: dict[str, Any], change: Change) -> None:
    """Make a change in a nested dictionary; sections that are null or absent are opened."""
    *parents, leaf = change.keys
    section = value
    for name in parents:
        if not isinstance(section.get(name), dict):
            section[name] = {}
        section = section[name]
    if change.is_removal:
        section.pop(leaf, None)
    else:
        section[leaf] = change.value


def changed_text(text: str, changes: Sequence[Change], expected: dict[str, Any], *, is_json: bool) -> tuple[str, bool]:
    """Return the text of a spec file after changes, and whether the rest of it was kept as it was written.

    Args:
        text: the file's text, YAML or JSON.
        changes: in order.
        expected: what the new text has to read as; a text that reads otherwise is written anew, without comments.
        is_json: whether the file is JSON, which has no comments.
    """
    if is_json:
        return json.dumps(expected, indent=2, ensure_ascii=False) + "\n", True
    edited = text
    try:
        for change in changes:
            edited = _removed(edited, change.keys) if change.is_removal else _with(edited, change)
        if parse_yaml(edited) == expected:
            return edited, True
    except (yaml.YAMLError, ValueError, IndexError):
        pass
    return spec_text(expected), False


def _with(text: str, change: Change) -> str:
    node: Any = yaml.compose(text, Loader=yaml.SafeLoader)
    for depth, name in enumerate(change.keys):
        rest = change.keys[depth + 1 :]
        found = _entry(node, name)
        if found is None:
            return _inserted(text, node, name, _nested(rest, change.value))
        value = found[1]
        if not rest or not isinstance(value, yaml.MappingNode) or (not value.value and not value.flow_style):
            return _replaced(text, value, _nested(rest, change.value))
        node = value
    raise ValueError("a change names no key")


def _removed(text: str, keys: Sequence[str]) -> str:
    node: Any = yaml.compose(text, Loader=yaml.SafeLoader)
    holder: yaml.Node | None = None
    for name in keys[:-1]:
        found = _entry(node, name)
        if found is None:
            return text
        holder = node = found[1]
    found = _entry(node, keys[-1])
    if found is None:
        return text
    if len(node.value) == 1:
        return "{}\n" if holder is None else _replaced(text, node, {})
    start, end = found[0].start_mark.index, _end(found[1])
    if not node.flow_style:
        return text[: text.rfind("\n", 0, start) + 1] + text[_line_end(text, end) + 1 :]
    comma = text.find(",", end, node.end_mark.index)
    if comma >= 0:
        return text[:start] + text[comma + 1 :].lstrip(" ")
    return text[: text.rfind(",", 0, start)] + text[end:]


def _entry(node: Any, name: str) -> tuple[yaml.Node, Any] | None:
    return next(((key, value) for key, value in node.value if key.value == name), None)


def _inserted(text: str, node: yaml.MappingNode, name: str, value: Any) -> str:
    entry = f"{_flow(name)}: {_flow(value)}"
    if node.flow_style:
        closing = node.end_mark.index - 1
        return text[:closing].rstrip(" ") + (", " if node.value else "") + entry + text[closing:]
    place = _line_end(text, _end(node))
    return f"{text[:place]}\n{' ' * node.value[0][0].start_mark.column}{entry}{text[place:]}"


def _replaced(text: str, node: yaml.Node, value: Any) -> str:
    start, end = node.start_mark.index, max(_end(node), node.start_mark.index)
    gap = "" if text[start - 1] in " \n{[" else " "
    head = text[:start]
    if isinstance(node, yaml.CollectionNode) and not node.flow_style:
        head = head.rstrip(" \n") + " "
        gap = ""
    tail = "\n" if text[start:end].endswith("\n") else ""
    return f"{head}{gap}{_flow(value)}{tail}{text[end:]}"


def _end(node: yaml.Node) -> int:
    """Return where a node's own text ends: a block collection's mark lies beyond the comments that follow it."""
    if not isinstance(node, yaml.CollectionNode) or node.flow_style or not node.value:
        end: int = node.end_mark.index
        return end
    last = node.value[-1]
    return _end(last[1] if isinstance(node, yaml.MappingNode) else last)


def _line_end(text: str, place: int) -> int:
    end = text.find("\n", place)
    return len(text) if end < 0 else end


def _nested(keys: Sequence[str], value: Any) -> Any:
    for name in reversed(keys):
        value = {name: value}
    return value


def _flow(value: Any) -> str:
    """Return a value as YAML on one line, fit to stand between brackets too."""
    text: str = yaml.dump(
        [value], Dumper=yaml.SafeDumper, default_flow_style=True, allow_unicode=True, width=2**30, sort_keys=False
    )
    return text.strip()[1:-1]
