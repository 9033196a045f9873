"""Find keys of a spec by dotted path, and say in words what a key takes."""

from __future__ import annotations

import difflib
import types
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt, MaxLen, MinLen
from pydantic.fields import FieldInfo

from tao_runtime.config.fields import Section


@dataclass(frozen=True, slots=True)
class Key:
    """One key of a spec.

    Attributes:
        path: dotted path from the top of the spec.
        field: pydantic's description of it.
        section: the section that the key opens, None for a leaf.
    """

    path: str
    field: FieldInfo
    section: type[Section] | None

    @property
    def metadata(self) -> dict[str, Any]:
        """What `meta(...)` was given."""
        extra = self.field.json_schema_extra
        return dict(extra) if isinstance(extra, dict) else {}


def section_of(annotation: Any) -> type[Section] | None:
    """Return the section class behind an annotation, also behind `Section | None`; None for a leaf."""
    for part in branches(annotation):
        if isinstance(part, type) and issubclass(part, Section):
            return part
    return None


def branches(annotation: Any) -> tuple[Any, ...]:
    """Return the alternatives of a union, or the annotation alone; `Annotated` is kept."""
    if get_origin(annotation) in (Union, types.UnionType):
        return get_args(annotation)
    return (annotation,)


def walk_keys(model: type[Section], prefix: str = "") -> Iterator[Key]:
    """Yield every key, a section before its own keys, in the order of definition."""
    for name, field in model.model_fields.items():
        key = Key(f"{prefix}{name}", field, section_of(field.annotation))
        yield key
        if key.section is not None:
            yield from walk_keys(key.section, f"{key.path}.")


def find_key(model: type[Section], path: str) -> Key | None:
    """Return the key at a dotted path, None when there is none."""
    section: type[Section] | None = model
    key: Key | None = None
    for name in path.split("."):
        if section is None or name not in section.model_fields:
            return None
        field = section.model_fields[name]
        key = Key(path, field, section_of(field.annotation))
        section = key.section
    return key


# A spec is judged again for each fix that is tried, and comparing spellings is the dearest part of it.
@lru_cache(maxsize=4096)
def nearest_key(model: type[Section], path: str) -> str | None:
    """Return the known key most like an unknown one: a key of the same name elsewhere, else the closest spelling."""
    known = [key.path for key in walk_keys(model)]
    name = path.rpartition(".")[2]
    same_name = [candidate for candidate in known if candidate.rpartition(".")[2] == name]
    if same_name:
        return difflib.get_close_matches(path, same_name, n=1, cutoff=0.0)[0]
    parent = path.rpartition(".")[0]
    siblings = [candidate for candidate in known if candidate.rpartition(".")[0] == parent]
    close = difflib.get_close_matches(path, siblings, n=1, cutoff=0.7) or difflib.get_close_matches(
        path, known, n=1, cutoff=0.6
    )
    if close:
        return close[0]
    names = {candidate.rpartition(".")[2]: candidate for candidate in reversed(known)}
    return next((names[match] for match in difflib.get_close_matches(name, names, n=1, cutoff=0.6)), None)


def backends_of(model: type[Section], path: str) -> list[str]:
    """Return the back ends that alone read a key, by its own metadata or that of a section around it; empty = all."""
    names = path.split(".")
    for end in range(len(names), 0, -1):
        key = find_key(model, ".".join(names[:end]))
        if key is not None and "backends" in key.metadata:
            return list(key.metadata["backends"])
    return []


def choices_of(annotation: Any) -> list[Any]:
    """Return the values that an annotation lists by `Literal`, in order."""
    found: list[Any] = []
    for part in branches(annotation):
        inner = get_args(part)[0] if get_origin(part) is Annotated else part
        if get_origin(inner) is Literal:
            found.extend(get_args(inner))
        elif get_origin(inner) is list:
            found.extend(choices_of(get_args(inner)[0]))
    return found


def type_text(field: FieldInfo) -> str:
    """Say what a field takes: `a whole number from 1 to 20`, `linear, sqrt, cosine or none`, `a number above 0, or null`."""
    parts = [_part_text(part, field.metadata) for part in branches(field.annotation)]
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])}, or {parts[-1]}"


def _part_text(annotation: Any, outer: Sequence[Any]) -> str:
    limits = list(outer)
    if get_origin(annotation) is Annotated:
        annotation, *inner = get_args(annotation)
        for item in inner:
            limits.extend(item.metadata if isinstance(item, FieldInfo) else [item])
    origin = get_origin(annotation)
    if origin is Literal:
        return _either([json_word(choice) for choice in get_args(annotation)])
    if origin is list:
        return f"a list{_length_text(limits)}, each {_part_text(get_args(annotation)[0], ())}"
    if origin is dict:
        return f"a table by name, each {_part_text(get_args(annotation)[1], ())}"
    return _scalar_text(annotation, limits)


def _scalar_text(annotation: Any, limits: Sequence[Any]) -> str:
    if section_of(annotation) is not None:
        return "a section"
    pattern = next((str(item.pattern) for item in limits if getattr(item, "pattern", None)), None)
    if pattern is not None:
        words = pattern.strip("^$").strip("()").replace("[1-9][0-9]*", "N").replace("[0-9]{1,5}", "digits in quotes")
        return _either(words.split("|"))
    names: dict[Any, str] = {type(None): "null", bool: "true or false", int: "a whole number", float: "a number", str: "text"}
    return names[annotation] + (_bounds_text(limits) if annotation in (int, float) else "")


def _either(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def bounds_of(field: FieldInfo) -> tuple[float | None, float | None]:
    """Return the least and greatest value that the field's own bounds allow, None where there is none or it is excluded."""
    low = next((item.ge for item in field.metadata if isinstance(item, Ge)), None)
    high = next((item.le for item in field.metadata if isinstance(item, Le)), None)
    return low, high  # type: ignore[return-value]


def _bounds_text(limits: Sequence[Any]) -> str:
    low = next((item.ge for item in limits if isinstance(item, Ge)), None)
    high = next((item.le for item in limits if isinstance(item, Le)), None)
    above = next((item.gt for item in limits if isinstance(item, Gt)), None)
    below = next((item.lt for item in limits if isinstance(item, Lt)), None)
    if low is not None and high is not None:
        return f" from {low} to {high}"
    texts = [("at least", low), ("at most", high), ("above", above), ("below", below)]
    named = [f"{word} {limit}" for word, limit in texts if limit is not None]
    return f" {' and '.join(named)}" if named else ""


def _length_text(limits: Sequence[Any]) -> str:
    low = next((item.min_length for item in limits if isinstance(item, MinLen)), None)
    high = next((item.max_length for item in limits if isinstance(item, MaxLen)), None)
    if low is None and high is None:
        return ""
    return f" of {low}" if low == high else f" of {low} to {high}" if high is not None else f" of at least {low}"


def json_word(value: Any) -> str:
    """Return a choice as a reader would type it; the empty text as two quotes."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return '""' if value == "" else str(value)
