"""Read and write spec files: YAML or JSON, nested, every key once."""

from __future__ import annotations

import json
import shlex
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from tao_runtime.errors import Finding, FixKind, TaoError, Where
from tao_runtime.spec.limits import unfit

_FAST_LOADER: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_FAST_DUMPER: type[Any] = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


_TAGS = {f"tag:yaml.org,2002:{name}" for name in ("null", "bool", "int", "float", "str", "timestamp", "seq", "map")}
_MERGE = "tag:yaml.org,2002:merge"


class _StrictLoader(_FAST_LOADER):  # type: ignore[misc]
    """A safe loader of what JSON has, and dates. A key written twice is refused: YAML would keep the last and say nothing."""

    yaml_constructors = {  # noqa: RUF012 - the name is PyYAML's
        tag: constructor for tag, constructor in _FAST_LOADER.yaml_constructors.items() if tag is None or tag in _TAGS
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """Build one mapping."""
        seen: set[Hashable] = set()
        for key_node, _ in node.value:
            if key_node.tag == _MERGE:
                raise yaml.constructor.ConstructorError(
                    None, None, "merge keys (<<) are not read, write the keys out", key_node.start_mark
                )
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                written = key_node.value if isinstance(key_node, yaml.ScalarNode) else f"of {type(key).__name__}"
                raise yaml.constructor.ConstructorError(None, None, f"the key {written} is not text", key_node.start_mark)
            if key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"the key {key} is written twice", key_node.start_mark)
            seen.add(key)
        mapping: dict[Hashable, Any] = super().construct_mapping(node, deep)
        return mapping


def read_spec_file(path: Path) -> dict[str, Any]:
    """Read a nested spec.

    Raises:
        TaoError: USAGE_FILE_UNREADABLE, or SPEC_FILE_INVALID with the line.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise TaoError(
            Finding(
                "USAGE_FILE_UNREADABLE",
                f"{path} can't be read: {reason}",
                Where(file=str(path)),
                fix=f"ls -l {shlex.quote(str(path))}",
            )
        ) from None
    try:
        value = _parse_json(text) if path.suffix == ".json" else parse_yaml(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise _invalid(path, getattr(error, "problem", None) or str(error), mark.line + 1 if mark else None) from None
    except json.JSONDecodeError as error:
        raise _invalid(path, error.msg, error.lineno) from None
    except RecursionError:
        raise _invalid(path, "it is nested too deeply", None) from None
    except ValueError as error:
        raise _invalid(path, str(error), None) from None
    if not isinstance(value, dict):
        raise _invalid(path, f"the file holds {'nothing' if value is None else 'no mapping of sections'}", None)
    reason = unfit(value)
    if reason is not None:
        raise _invalid(path, reason, None)
    return value


def parse_yaml(text: str) -> Any:
    """Read YAML as spec files are read.

    Raises:
        yaml.YAMLError, ValueError, RecursionError: for a text that no spec file may be.
    """
    return yaml.load(text, Loader=_StrictLoader)  # noqa: S506


def spec_text(value: dict[str, Any]) -> str:
    """Return a nested spec as YAML, keys in the given order."""
    text: str = yaml.dump(value, Dumper=_FAST_DUMPER, sort_keys=False, allow_unicode=True, width=128, default_flow_style=False)
    return text


def _parse_json(text: str) -> Any:
    def refuse(word: str) -> Any:
        raise ValueError(f"{word} is not JSON")

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in pairs]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"the key {twice} is written twice")
        return dict(pairs)

    return json.loads(text, parse_constant=refuse, object_pairs_hook=once)


def _invalid(path: Path, reason: str, line: int | None) -> TaoError:
    return TaoError(
        Finding(
            "SPEC_FILE_INVALID",
            f"{path} is not a spec: {reason}",
            Where(file=str(path), line=line),
            "Write a YAML mapping of sections; `tao-runtime spec build --out FILE` makes one.",
            fix_kind=FixKind.EDIT,
        )
    )
