"""Apply `KEY=VALUE` overrides: the only place where text becomes a number, and only as the key's own type allows."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal, get_args, get_origin

from tao_runtime.config.fields import Section
from tao_runtime.config.keys import Key, branches, find_key, json_word, type_text
from tao_runtime.config.validation import override, section_expected, unknown_key
from tao_runtime.errors import Finding, FixKind, Where
from tao_runtime.spec.limits import unfit

# Python reads no text of more than 4300 digits as a number, and no key takes one of 300.
_INTEGER = re.compile(r"[-+]?[0-9]{1,300}")
_NOTHING = object()
_MAX_SHOWN = 80


def apply_overrides(model: type[Section], value: dict[str, Any], overrides: Sequence[str]) -> list[Finding]:
    """Set each override at its leaf, in order; the last one for a key wins.

    Args:
        model: class of the spec.
        value: nested dictionary, changed in place.
        overrides: texts such as `train.epoch=3`.

    Returns:
        One finding for each override that could not be applied.
    """
    findings = [apply_override(model, value, text) for text in overrides]
    return [finding for finding in findings if finding is not None]


def apply_override(model: type[Section], value: dict[str, Any], text: str) -> Finding | None:
    """Set one override at its leaf and return None, or return what is wrong with it."""
    path, equals, word = text.partition("=")
    path = path.strip()
    if not equals or not path:
        what = f"override {text!r} is not KEY=VALUE"
        return Finding("SPEC_OVERRIDE_SYNTAX", what, Where(key=path or None), "--set train.epoch=3", fix_kind=FixKind.EDIT)
    key = find_key(model, path)
    if key is None:
        return unknown_key(model, path, word)
    if key.section is not None:
        return _set_section(model, value, key, word)
    converted = convert(key, word)
    if converted is _NOTHING:
        received = word if len(word) <= _MAX_SHOWN else f"{word[: _MAX_SHOWN - 1]}…"
        what = f"{path} is {json.dumps(received, ensure_ascii=False)}; it takes {type_text(key.field)}"
        return Finding(
            "SPEC_TYPE",
            what,
            Where(key=path),
            override(path, key.field.get_default(call_default_factory=True)),
            fix_kind=FixKind.EDIT,
        )
    _assign(value, path, converted)
    return None


def convert(key: Key, word: str) -> Any:
    """Convert text by the key's type; a marker that is no value when no branch of the type takes it.

    null, true, false and numbers are read as such where the type has them; a list or table is JSON; a JSON string in double
    quotes is text.
    """
    kinds = _kinds(key.field.annotation)
    for reading in (_scalar(kinds, word), _structure(kinds, word)):
        if reading is not _NOTHING:
            return reading
    if word.startswith('"') and _is_json(word):
        quoted = _json(word)
        return next((choice for choice in _literals(key.field.annotation) if choice == quoted), _NOTHING)
    choice = next((choice for choice in _literals(key.field.annotation) if json_word(choice) == word), _NOTHING)
    return word if choice is _NOTHING and "str" in kinds else choice


def _scalar(kinds: set[str], word: str) -> Any:
    if "null" in kinds and word == "null":
        return None
    if "bool" in kinds and word in ("true", "false"):
        return word == "true"
    if "int" in kinds and _INTEGER.fullmatch(word):
        return int(word)
    number = _number(word) if "float" in kinds else None
    return _NOTHING if number is None else number


def _structure(kinds: set[str], word: str) -> Any:
    if word[:1] not in ("[", "{", '"'):
        return _NOTHING
    parsed = _json(word)
    return parsed if type(parsed).__name__ in kinds else _NOTHING


def _set_section(model: type[Section], value: dict[str, Any], key: Key, word: str) -> Finding | None:
    optional = type(None) in branches(key.field.annotation)
    if optional and word == "null":
        _assign(value, key.path, None)
        return None
    table = _json(word) if word.startswith("{") else _NOTHING
    if key.section is None or not isinstance(table, dict):
        return section_expected(key.path, key.section or model, word)
    for name, item in table.items():
        path = f"{key.path}.{name}"
        if find_key(model, path) is None:
            return unknown_key(model, path, item)
        _assign(value, path, item)
    return None


def _assign(value: dict[str, Any], path: str, item: Any) -> None:
    """Walk to the leaf, opening sections that are null or absent, and set it."""
    *parents, leaf = path.split(".")
    section = value
    for name in parents:
        inner = section.get(name)
        if not isinstance(inner, dict):
            inner = {}
            section[name] = inner
        section = inner
    section[leaf] = item


def _kinds(annotation: Any) -> set[str]:
    kinds: set[str] = set()
    for part in branches(annotation):
        inner = get_args(part)[0] if get_origin(part) is Annotated else part
        if inner is type(None):
            kinds.add("null")
        elif get_origin(inner) is not Literal:
            kinds.add((get_origin(inner) or inner).__name__)
    return kinds


def _literals(annotation: Any) -> list[Any]:
    inners = [get_args(part)[0] if get_origin(part) is Annotated else part for part in branches(annotation)]
    return [choice for inner in inners if get_origin(inner) is Literal for choice in get_args(inner)]


def _number(word: str) -> float | None:
    try:
        number = float(word)
    except ValueError:
        return None
    return number if math.isfinite(number) and "_" not in word else None


def _json(word: str) -> Any:
    try:
        parsed = json.loads(word, parse_constant=_refuse, parse_float=_finite)
    except (ValueError, RecursionError):
        return _NOTHING
    return _NOTHING if unfit(parsed) is not None else parsed


def _is_json(word: str) -> bool:
    try:
        json.loads(word)
    except (ValueError, RecursionError):
        return False
    return True


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def _finite(word: str) -> float:
    number = _number(word)
    return _refuse(word) if number is None else number
