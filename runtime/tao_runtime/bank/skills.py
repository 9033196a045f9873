"""Find the bank on disk and read its skills, cheaply: only front matter and manifests, no schema library."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tao_runtime.bank.clients import PLUGIN
from tao_runtime.errors import Finding, FixKind, TaoError, Where

COMPANION = re.compile(rf"{PLUGIN}:([A-Za-z0-9_-]+)")
_FENCE = "---"


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """Hold the head of a SKILL.md.

    Attributes:
        values: what the YAML between the fences says.
        lines: the raw lines between the fences; the first is line 2 of the file.
        body: text below the closing fence.
        body_line: 1-based line of the file where the body starts.
    """

    values: dict[str, Any]
    lines: tuple[str, ...]
    body: str
    body_line: int


@dataclass(frozen=True, slots=True)
class Skill:
    """One skill on disk.

    Attributes:
        name: from the front matter.
        folder: the skill's directory.
        layer: directory above it: models, data, applications or platform.
        front: its front matter and body.
    """

    name: str
    folder: Path
    layer: str
    front: FrontMatter

    @property
    def description(self) -> str:
        """What the skill is for."""
        return str(self.front.values.get("description", ""))

    @property
    def version(self) -> str | None:
        """Version in the metadata."""
        metadata = self.front.values.get("metadata")
        version = metadata.get("version") if isinstance(metadata, dict) else None
        return version if isinstance(version, str) else None

    def actions(self) -> list[str]:
        """Return the names of the actions that schemas/manifest.json lists; empty when there is none."""
        try:
            manifest = json.loads((self.folder / "schemas" / "manifest.json").read_text(encoding="utf-8"))
            return list(manifest["actions"])
        except (OSError, ValueError, KeyError, TypeError):
            return []

    def files(self) -> list[str]:
        """Return the paths of the skill's files below its folder, sorted."""
        return [path.relative_to(self.folder).as_posix() for path in files_below(self.folder)]

    def companions(self) -> list[str]:
        """Return the names of the other skills that the body sends its reader to, sorted."""
        return sorted(set(COMPANION.findall(self.front.body)) - {self.name})


def files_below(folder: Path) -> list[Path]:
    """Return the files below a folder, sorted, without Python's own leavings."""
    return sorted(
        path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".pyc"
    )


def bank_root(explicit: Path | None = None, start: Path | None = None) -> Path:
    """Find the bank: the folder that holds `skills/` and `manifest.json`.

    Args:
        explicit: what the user named; nothing else is then looked at.
        start: folder to walk up from, the current one by default; after it this package's own place.

    Raises:
        TaoError: USAGE_BANK_MISSING.
    """
    if explicit is not None:
        if (explicit / "skills").is_dir():
            return explicit
        raise TaoError(_bank_missing(f"{explicit} holds no skills folder", explicit))
    for place in (start or _current_folder(), Path(__file__)):
        for folder in (place, *place.resolve().parents):
            if (folder / "skills").is_dir() and (folder / "manifest.json").is_file():
                return folder
    raise TaoError(_bank_missing("no folder above this one holds skills/ and manifest.json", None))


def _current_folder() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:  # it was removed while a shell stands in it
        return Path("/")


def skill_folders(bank: Path) -> list[Path]:
    """Return the directories where skills belong, `skills/<layer>/<name>`, sorted, with a SKILL.md or without."""
    return sorted(path for path in (bank / "skills").glob("*/*") if path.is_dir() and not path.name.startswith((".", "__")))


def read_skills(bank: Path) -> tuple[list[Skill], list[Finding]]:
    """Read every skill of a bank.

    Returns:
        The skills that could be read, by layer and name; and one finding for each that could not.
    """
    skills: list[Skill] = []
    findings: list[Finding] = []
    for folder in skill_folders(bank):
        try:
            skills.append(read_skill(folder))
        except TaoError as error:
            findings.extend(error.findings)
    return skills, findings


def read_skill(folder: Path) -> Skill:
    """Read one skill.

    Raises:
        TaoError: SK001 when SKILL.md is missing or can't be read, SK002 when its front matter is not a mapping.
    """
    path = folder / "SKILL.md"
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise TaoError(_unreadable("SK001", path, f"{path} can't be read: {reason}", None)) from None
    front = parse_front_matter(text, path)
    return Skill(str(front.values.get("name", folder.name)), folder, folder.parent.name, front)


def find_skill(bank: Path, name: str) -> Skill:
    """Return the skill of this name, which may carry the plugin's prefix.

    Raises:
        TaoError: what `skill_folder` and `read_skill` raise.
    """
    return read_skill(skill_folder(bank, name))


def skill_folder(bank: Path, name: str) -> Path:
    """Return the directory of the skill of this name, which may carry the plugin's prefix; nothing in it is read.

    Raises:
        TaoError: USAGE_SKILL_UNKNOWN, with the nearest name.
    """
    wanted = name.removeprefix(f"{PLUGIN}:")
    folders = {folder.name: folder for folder in skill_folders(bank)}
    if wanted in folders:
        return folders[wanted]
    import difflib

    near = difflib.get_close_matches(wanted, folders, n=1, cutoff=0.0)
    fix = f"tao-runtime skills show {near[0]}" if near else "tao-runtime skills list"
    known = ", ".join(sorted(folders)) or "none"
    raise TaoError(
        Finding(
            "USAGE_SKILL_UNKNOWN",
            f"there is no skill {name}; there are: {known}",
            Where(file=str(bank / "skills")),
            fix,
            fix_kind=FixKind.COMMAND,
        )
    )


def parse_front_matter(text: str, path: Path) -> FrontMatter:
    """Split a SKILL.md into front matter and body.

    Raises:
        TaoError: SK001 when the fences are not there, SK002 when what they hold is not a YAML mapping.
    """
    import yaml

    lines = text.split("\n")
    closing = next((index for index, line in enumerate(lines[1:], start=1) if line.rstrip("\r") == _FENCE), None)
    if lines[0].rstrip("\r") != _FENCE or closing is None:
        what = f"{path} has no front matter between two lines of ---"
        raise TaoError(_unreadable("SK001", path, what, 1))
    head = lines[1:closing]
    try:
        values = yaml.load("\n".join(head), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or "it is not YAML"
        raise TaoError(
            _unreadable("SK002", path, f"the front matter of {path}: {problem}", mark.line + 2 if mark else 1)
        ) from None
    if not isinstance(values, dict):
        raise TaoError(_unreadable("SK002", path, f"the front matter of {path} is not a mapping", 1))
    return FrontMatter(
        values={str(key): value for key, value in values.items()},
        lines=tuple(head),
        body="\n".join(lines[closing + 1 :]),
        body_line=closing + 2,
    )


def _unreadable(code: str, path: Path, what: str, line: int | None) -> Finding:
    return Finding(
        code,
        what,
        Where(file=str(path), line=line),
        "Start SKILL.md with ---, name: and description:, --- and write the body below.",
        fix_kind=FixKind.EDIT,
    )


def _bank_missing(what: str, folder: Path | None) -> Finding:
    return Finding(
        "USAGE_BANK_MISSING",
        what,
        Where(file=None if folder is None else str(folder)),
        "Name the checkout of the bank with --bank DIR.",
    )
