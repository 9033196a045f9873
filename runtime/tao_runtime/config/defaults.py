"""Give the value of a spec that nothing was said about; template and schema default are this value."""

from __future__ import annotations

import copy
from typing import Any

from tao_runtime.config.fields import Section
from tao_runtime.config.keys import Key, find_key, section_of, walk_keys


def default_value(model: type[Section]) -> dict[str, Any]:
    """Return the default as a nested dictionary, without the paths that the user must always give.

    Read off the definitions, so that no validator is built for it.
    """
    value: dict[str, Any] = {}
    for name, field in model.model_fields.items():
        section = section_of(field.annotation)
        if section is not None and field.default_factory is not None:
            value[name] = default_value(section)
        elif Key(name, field, section).metadata.get("required_when") != "always":
            value[name] = copy.deepcopy(field.get_default(call_default_factory=False))
    return value


def dump_spec(spec: Section) -> dict[str, Any]:
    """Return a spec as a nested dictionary of plain values; required paths that are not set are left out."""
    value = spec.model_dump()
    for key in required_keys(type(spec)):
        if key.metadata["required_when"] == "always":
            _drop_if_none(value, key.path)
    return value


def required_keys(model: type[Section]) -> list[Key]:
    """Return the keys that the user must give, always or under a condition, in the order of definition."""
    return [key for key in walk_keys(model) if key.metadata.get("required_when")]


def flatten(model: type[Section], value: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return leaf values by dotted path; a section that is null counts as a leaf."""
    flat: dict[str, Any] = {}
    for name, item in value.items():
        path = f"{prefix}{name}"
        key = find_key(model, path)
        if isinstance(item, dict) and key is not None and key.section is not None:
            flat.update(flatten(model, item, f"{path}."))
        else:
            flat[path] = item
    return flat


def _drop_if_none(value: dict[str, Any], path: str) -> None:
    *parents, leaf = path.split(".")
    section: Any = value
    for name in parents:
        section = section.get(name)
        if not isinstance(section, dict):
            return
    if section.get(leaf, 0) is None:
        del section[leaf]
