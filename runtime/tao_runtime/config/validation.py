"""Parse a nested dictionary as a spec and turn everything that is wrong into findings, all at once."""

from __future__ import annotations

import difflib
import json
import re
import shlex
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from tao_runtime.codes import CODES
from tao_runtime.config.fields import Section
from tao_runtime.config.keys import Key, bounds_of, choices_of, find_key, json_word, nearest_key, type_text
from tao_runtime.errors import Finding, FixKind, Where

SpecT = TypeVar("SpecT", bound=Section)

_UNQUOTED_FLOAT = re.compile(r"[-+]?[0-9]+[eE][-+]?[0-9]+")
_RANGE_ERRORS = {
    "greater_than",
    "greater_than_equal",
    "less_than",
    "less_than_equal",
    "too_short",
    "too_long",
    "string_too_short",
    "string_too_long",
    "finite_number",
}
_UNKNOWN_KEY_ERRORS = {"extra_forbidden", "invalid_key"}
_MAX_SHOWN = 80
# Words of cosmos-rl and of YAML 1.1 for what is written true and false here.
_MEANT = {"always": "true", "never": "false", "yes": "true", "no": "false", "on": "true", "off": "false"}
_MAX_FIX = 300


def parse_spec(model: type[SpecT], value: Mapping[str, Any]) -> tuple[SpecT | None, list[Finding]]:
    """Parse strictly.

    Args:
        model: class of the spec.
        value: nested dictionary; never changed.

    Returns:
        The spec, or None with one finding for each key that is wrong.
    """
    try:
        return model.model_validate(dict(value)), []
    except ValidationError as error:
        by_path: dict[str, list[ErrorDetails]] = {}
        for detail in error.errors(include_url=False):
            by_path.setdefault(_path_of(model, detail), []).append(detail)
        return None, [_finding(model, value, path, details) for path, details in by_path.items()]


def show(value: Any) -> str:
    """Return a received value as JSON, shortened, with its kind: `"42" (text)`."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    if len(text) > _MAX_SHOWN:
        text = f"{text[: _MAX_SHOWN - 1]}…"
    kinds = {str: "text", bool: "true or false", int: "a whole number", float: "a number", list: "a list", dict: "a section"}
    return "null" if value is None else f"{text} ({kinds.get(type(value), type(value).__name__)})"


def unknown_key(model: type[Section], path: str, value: Any) -> Finding:
    """Describe a key that the spec does not have, with the nearest that it has."""
    if find_key(model, path) is not None:
        what = f"{path} is written with dots; specs are nested, dots are for --set only"
        return Finding(
            "SPEC_UNKNOWN_KEY",
            what,
            Where(key=path),
            override(path, value),
            fix_kind=FixKind.EDIT,
            rule="C14",
        )
    nearest = nearest_key(model, path)
    what = f"{path} is not a key of this spec"
    fix = f"Remove {path}; `tao-runtime spec explain KEY` says what a key means."
    if nearest is not None:
        what += f"; the nearest is {nearest}"
        shown = find_key(model, nearest)
        leaf = shown is not None and shown.section is None
        fix = override(nearest, value) if leaf else f"Write the keys under {nearest}."
        if len(fix) > _MAX_FIX:
            fix = f"Call the key {nearest}."
    return Finding("SPEC_UNKNOWN_KEY", what, Where(key=path), fix, fix_kind=FixKind.EDIT, rule=CODES["SPEC_UNKNOWN_KEY"].rule)


def override(path: str, value: Any) -> str:
    """Return the flag that sets a key, quoted for a shell."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return f"--set {shlex.quote(f'{path}={text}')}"


def _path_of(model: type[Section], detail: ErrorDetails) -> str:
    """Return the dotted path of the key, without the union branches and list positions that pydantic adds."""
    names: list[str] = []
    for part in detail["loc"]:
        candidate = ".".join([*names, str(part)])
        if find_key(model, candidate) is None and detail["type"] not in _UNKNOWN_KEY_ERRORS:
            break
        names.append(str(part))
    return ".".join(names)


def _finding(model: type[Section], value: Mapping[str, Any], path: str, details: list[ErrorDetails]) -> Finding:
    kinds = {detail["type"] for detail in details}
    received = _value_at(value, path)
    if kinds & _UNKNOWN_KEY_ERRORS:
        return unknown_key(model, path, received)
    key = find_key(model, path)
    if key is None:
        return Finding("SPEC_TYPE", f"the spec is {show(dict(value))}, a mapping of sections is needed", fix_kind=FixKind.EDIT)
    if key.section is not None:
        return section_expected(path, key.section, received)
    code = _code_for(kinds, key)
    what = f"{path} is {show(received)}; it takes {type_text(key.field)}"
    return Finding(code, what, Where(key=path), _fix(key, received), fix_kind=FixKind.EDIT, rule=CODES[code].rule)


def section_expected(path: str, section: type[Section], received: Any) -> Finding:
    """Describe a value given where a section stands."""
    names = list(section.model_fields)
    shown = ", ".join(names[:6]) + (", …" if len(names) > 6 else "")
    what = f"{path} is {show(received)}; it is a section with the keys {shown}"
    return Finding(
        "SPEC_SECTION",
        what,
        Where(key=path),
        f"Set a key inside it, such as --set {path}.{names[0]}=VALUE.",
        fix_kind=FixKind.EDIT,
    )


def _code_for(kinds: set[str], key: Key) -> str:
    if kinds & {"literal_error", "string_pattern_mismatch"}:
        return str(key.metadata.get("code", "SPEC_CHOICE"))
    if kinds & _RANGE_ERRORS:
        return str(key.metadata.get("code", "SPEC_RANGE"))
    return "SPEC_TYPE"


def _fix(key: Key, received: Any) -> str:
    if isinstance(received, str) and _UNQUOTED_FLOAT.fullmatch(received):
        mantissa, _, exponent = received.lower().partition("e")
        return f"YAML reads {received} as text: write {key.path.rpartition('.')[2]}: {mantissa}.0e{exponent}"
    return override(key.path, _nearest_value(key, received))


def _nearest_value(key: Key, received: Any) -> Any:
    """Return a value that the key takes and that is close to what was received; else its default."""
    choices = [json_word(choice) for choice in choices_of(key.field.annotation)]
    default = key.field.get_default(call_default_factory=True)
    close: list[Any]
    if isinstance(default, list) and isinstance(received, str | list):
        return _nearest_words([received] if isinstance(received, str) else received, choices) or default
    if isinstance(received, str) and _MEANT.get(received.lower()) in choices:
        close = [_MEANT[received.lower()]]
    elif isinstance(received, bool):
        close = [word for word in choices if word == json_word(received)]
    elif isinstance(received, int | float):
        close = [_within_bounds(key, received)] if _within_bounds(key, received) != received else []
    elif isinstance(received, str) and re.fullmatch(r"[-+]?[0-9]+", received):
        close = [_within_bounds(key, int(received))]
    elif isinstance(received, str) and re.fullmatch(r"[-+]?[0-9]*\.[0-9]+|true|false|null", received):
        close = [received]
    else:
        close = difflib.get_close_matches(str(received), choices, n=1, cutoff=0.4)
    return close[0] if close else default


def _nearest_words(received: list[Any], choices: list[str]) -> list[str]:
    """Return the choices nearest to the words received, each once."""
    near = (difflib.get_close_matches(str(word), choices, n=1, cutoff=0.4) for word in received)
    return list(dict.fromkeys(word for found in near for word in found))


def _within_bounds(key: Key, number: float) -> float:
    low, high = bounds_of(key.field)
    return low if low is not None and number < low else high if high is not None and number > high else number


def _value_at(value: Any, path: str) -> Any:
    if isinstance(value, Mapping) and path in value:
        return value[path]
    for name in path.split("."):
        if not isinstance(value, Mapping):
            return value
        value = value.get(name)
    return value
