"""Put staged folders in the place of Hub names, for a back end that resolves no Hub name itself."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from tao_runtime.config.defaults import dump_spec
from tao_runtime.config.fields import Section
from tao_runtime.config.model_keys import MODEL_KEYS
from tao_runtime.environment import Environment
from tao_runtime.errors import Finding, FixKind, Severity, Where, raise_errors
from tao_runtime.hub.names import HubModel, parse_model
from tao_runtime.hub.sources import ModelSource, WantedModel, ask_for_model, bring_model


def hub_models(action: str, spec: Section) -> list[WantedModel]:
    """Return the models of a spec that are named by a repository of the Hub.

    Raises:
        TaoError: SPEC_MODEL_NAME for a name that is neither folder nor repository.
    """
    values, found = dump_spec(spec), []
    for key in MODEL_KEYS[action]:
        name = _value(values, key.path)
        if name is None or (key.switch is not None and not _value(values, key.switch)):
            continue
        if isinstance(parse_model(name, key.path), HubModel):
            found.append(WantedModel(name, key.path, key.weights))
    return found


def stage_models(
    action: str, spec: Section, environment: Environment, *, dry_run: bool = False
) -> tuple[Section, dict[str, ModelSource]]:
    """Stage every Hub model of a spec.

    Args:
        action: name of the action.
        spec: the parsed spec; not changed.
        environment: the Hub, its cache, the token.
        dry_run: ask for access only.

    Returns:
        The spec with the staged folders in place of the names, and what was staged, by key.

    Raises:
        TaoError: with every fault of access, or what a download ends in.
    """
    asked = [ask_for_model(one, environment) for one in hub_models(action, spec)]
    raise_errors(finding for one in asked for finding in one.findings)
    if dry_run:
        return spec, {}
    values, sources = copy.deepcopy(dump_spec(spec)), {}
    for one in asked:
        source = bring_model(one, environment)
        sources[one.wanted.key] = source
        *parents, leaf = one.wanted.key.split(".")
        section = values
        for name in parents:
            section = section[name]
        section[leaf] = str(source.folder)
    return type(spec).model_validate(values), sources


def mounts(sources: dict[str, ModelSource]) -> list[Path]:
    """Return the folders that a container needs under the same paths: the files of a snapshot are links inside these."""
    return sorted({source.folder.parents[1] for source in sources.values() if source.commit is not None})


def source_comments(sources: dict[str, ModelSource]) -> str:
    """Return comment lines that say which model each staged folder is, for the head of a rendered file."""
    return "".join(f"# {key} is {source.pinned}\n" for key, source in sources.items())


def unstaged(action: str, spec: Section, command: str) -> list[Finding]:
    """Warn of Hub names in a file for a back end that resolves none.

    Args:
        action: name of the action.
        spec: the parsed spec.
        command: writes the file again with the models staged.
    """
    return [
        Finding(
            "SPEC_MODEL_UNSTAGED",
            f"{one.key} is {one.name} in the rendered file, and cosmos-rl resolves no Hub name: what starts the job has to",
            Where(key=one.key),
            command,
            Severity.WARNING,
            FixKind.COMMAND,
            "C15",
        )
        for one in hub_models(action, spec)
    ]


def _value(values: dict[str, Any], path: str) -> Any:
    value: Any = values
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value
