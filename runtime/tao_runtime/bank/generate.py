"""Generate everything that agents read from the one definition in `config/`, and tell where the files on disk differ.

Nothing here depends on time, machine or directory order: the same sources give the same bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tao_runtime import __version__
from tao_runtime.bank.clients import PLUGIN, client_manifests
from tao_runtime.bank.contracts import CONTRACTS, contract_schema
from tao_runtime.bank.pages import error_codes_page, parameters_page, template_text, troubleshooting_page
from tao_runtime.bank.schema import action_schema, schema_manifest
from tao_runtime.config.actions import ACTIONS, Action, skill_names
from tao_runtime.errors import Finding, FixKind, Where
from tao_runtime.files import json_text, sha256_of, write_text

# Folders and names that hold generated files only: anything else in them is left over or misplaced.
GENERATED_ONLY = (
    "schemas/**/*",
    "skills/*/*/schemas/**/*",
    "skills/*/*/references/spec_template_*",
    ".claude-plugin/**/*",
    ".codex-plugin/**/*",
    ".agents/plugins/**/*",
)
_HASHED = ("references/**/*", "schemas/**/*", "scripts/*.py", "skills/**/*")
_DEFAULT_LAYER = "models"
REGENERATE = "python scripts/generate_schemas.py"


def generated_files(root: Path) -> dict[str, str]:
    """Return the content of every generated file by its path below the root.

    Args:
        root: the repository; hand-written files of the skills are read for the manifest.
    """
    files: dict[str, str] = {}
    for skill in skill_names():
        files.update(_skill_files(_skill_path(root, skill), skill))
    files.update({f"schemas/{name}.schema.json": json_text(contract_schema(name)) for name in CONTRACTS})
    files["references/error-codes.md"] = error_codes_page()
    for folder in _skill_paths(root):
        files.update(_shared_pages(root, folder))
    files.update({path: json_text(value) for path, value in client_manifests(_skill_paths(root)).items()})
    files["manifest.json"] = json_text(_manifest(root, files))
    return files


def write_files(root: Path) -> list[str]:
    """Write the generated files that are missing or stale.

    Returns:
        Paths below the root that were written, sorted.
    """
    changed = {path: text for path, text in generated_files(root).items() if _text_of(root / path) != text}
    for path, text in changed.items():
        write_text(root / path, text)
    return sorted(changed)


def compare(root: Path) -> list[Finding]:
    """Compare the files on disk with what would be generated, in memory.

    Returns:
        DRIFT_MISSING, DRIFT_STALE and DRIFT_EXTRA findings, sorted by path; empty when nothing differs.
    """
    wanted = generated_files(root)
    findings = []
    for path in sorted({*wanted, *_files_matching(root, GENERATED_ONLY)}):
        if path not in wanted:
            findings.append(
                _drift("DRIFT_EXTRA", path, "is not generated and stands where only generated files belong", f"rm '{path}'")
            )
        elif (found := _text_of(root / path)) is None:
            findings.append(_drift("DRIFT_MISSING", path, "is missing", REGENERATE))
        elif found != wanted[path]:
            line = _first_difference(found, wanted[path])
            findings.append(
                _drift("DRIFT_STALE", path, f"differs from what the source gives, first in line {line}", REGENERATE, line)
            )
    return findings


def _drift(code: str, path: str, what: str, fix: str, line: int | None = None) -> Finding:
    return Finding(code, f"{path} {what}", Where(file=path, line=line), fix, fix_kind=FixKind.COMMAND)


def _skill_files(folder: str, skill: str) -> dict[str, str]:
    actions = [action for action in ACTIONS if action.skill == skill]
    files = {f"{folder}/schemas/{action.name}.schema.json": json_text(action_schema(action)) for action in actions}
    files[f"{folder}/schemas/manifest.json"] = json_text(schema_manifest(skill, actions))
    files.update({f"{folder}/references/spec_template_{action.name}.yaml": template_text(action) for action in actions})
    files[f"{folder}/references/parameters.md"] = parameters_page(actions)
    files[f"{folder}/references/troubleshooting.md"] = troubleshooting_page(skill)
    files[f"{folder}/references/error-codes.md"] = error_codes_page()
    return files


def _shared_pages(root: Path, folder: str) -> dict[str, str]:
    """Return copies of the bank's own pages that a SKILL.md names, so that a skill copied alone still has them."""
    text = _text_of(root / folder / "SKILL.md") or ""
    pages = [page for page in root.glob("references/*.md") if page.name != "error-codes.md"]
    return {f"{folder}/references/{page.name}": _text_of(page) or "" for page in pages if f"references/{page.name}" in text}


def _skill_path(root: Path, skill: str) -> str:
    """Return the skill's folder below the root, where it stands or where it will."""
    found = sorted(root.glob(f"skills/*/{skill}"))
    return found[0].relative_to(root).as_posix() if found else f"skills/{_DEFAULT_LAYER}/{skill}"


def _skill_paths(root: Path) -> list[str]:
    """Return the folders of all skills: those with a SKILL.md, and those with actions."""
    on_disk = {path.parent.relative_to(root).as_posix() for path in root.glob("skills/*/*/SKILL.md")}
    return sorted(on_disk | {_skill_path(root, skill) for skill in skill_names()})


def _manifest(root: Path, generated: dict[str, str]) -> dict[str, Any]:
    """Return manifest.json: skills with their actions, pages and scripts, and a hash of every file an agent may read or run."""
    hand_written = set(_files_matching(root, _HASHED)) - set(_files_matching(root, GENERATED_ONLY))
    hashes = {path: sha256_of(root / path) for path in hand_written}
    hashes.update({path: hashlib.sha256(text.encode()).hexdigest() for path, text in generated.items()})
    paths = sorted(hashes)
    return {
        "schema_version": "1.0",
        "name": PLUGIN,
        "version": __version__,
        "skills": [_skill_entry(root, folder, paths) for folder in _skill_paths(root)],
        "schemas": [path for path in paths if path.startswith("schemas/")],
        "scripts": [path for path in paths if path.startswith("scripts/")],
        "files": {path: hashes[path] for path in paths},
    }


def _skill_entry(root: Path, folder: str, paths: list[str]) -> dict[str, Any]:
    name = folder.rpartition("/")[2]
    actions: list[Action] = [action for action in ACTIONS if action.skill == name]
    inside = [path.removeprefix(f"{folder}/") for path in paths if path.startswith(f"{folder}/")]
    return {
        "name": name,
        "path": folder,
        "version": __version__,
        "description": _description(root / folder / "SKILL.md"),
        "actions": schema_manifest(name, actions)["actions"],
        "references": [path for path in inside if path.startswith("references/")],
        "scripts": [path for path in inside if path.startswith("scripts/")],
    }


def _description(skill_file: Path) -> str:
    """Return the description in the front matter; a skill without one is the linter's business."""
    text = _text_of(skill_file) or ""
    head = text.split("---", 2)[1] if text.count("---") >= 2 else ""
    try:
        front = yaml.safe_load(head)
    except yaml.YAMLError:
        front = None
    described = front.get("description") if isinstance(front, dict) else None
    return described if isinstance(described, str) and described else "(no description)"


def _files_matching(root: Path, patterns: tuple[str, ...]) -> Iterator[str]:
    for pattern in patterns:
        for path in root.glob(pattern):
            if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".pyc":
                yield path.relative_to(root).as_posix()


def _text_of(path: Path) -> str | None:
    """Return a file's text, None when it is absent; undecodable bytes make it differ, not fail."""
    return path.read_bytes().decode("utf-8", errors="replace") if path.is_file() else None


def _first_difference(found: str, wanted: str) -> int:
    left, right = found.split("\n"), wanted.split("\n")
    same = next((index for index, pair in enumerate(zip(left, right, strict=False)) if pair[0] != pair[1]), None)
    return min(len(left), len(right)) if same is None else same + 1
