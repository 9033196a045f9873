"""Hold what the checks of a skill look at, read once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tao_runtime.bank.markdown import Page, parse_page
from tao_runtime.bank.skills import Skill, files_below, read_skill, skill_folders
from tao_runtime.errors import Finding, FixKind, TaoError, Where


@dataclass(frozen=True, slots=True)
class CommandLine:
    """The real command line, handed in by the floor that owns it.

    Attributes:
        refusal: words after the program's name to what is wrong with them, None when they parse.
        flags: words of each command (empty for the program) to its option strings.
    """

    refusal: Callable[[list[str]], str | None]
    flags: Mapping[str, frozenset[str]]


@dataclass(frozen=True, slots=True)
class Subject:
    """One skill, or the bank's own pages and scripts.

    Attributes:
        bank: root of the bank.
        folder: the skill's directory; the bank's root for its own pages.
        skill: what its front matter says; None when it can't be read, and for the bank's own pages.
        texts: text of every file that is UTF-8, by path below `folder`.
        pages: its Markdown pages, parsed, by path below `folder`.
        manifest: manifest.json of the bank; empty when it can't be read.
        skill_names: directory names of all skills of the bank.
        command_line: the real command line.
    """

    bank: Path
    folder: Path
    skill: Skill | None
    texts: dict[str, str]
    pages: dict[str, Page]
    manifest: dict[str, Any]
    skill_names: frozenset[str]
    command_line: CommandLine

    @property
    def is_bank(self) -> bool:
        """True for the bank's own pages."""
        return self.folder == self.bank

    def fault(self, code: str, what: str, fix: str, file: str = "SKILL.md", line: int | None = None) -> Finding:
        """Return an error about a file of this subject; its path is given below the bank's root."""
        return Finding(code, what, Where(file=self.shown(file), line=line), fix, fix_kind=FixKind.EDIT)

    def shown(self, file: str) -> str:
        """Return a file's path below the bank's root."""
        return (self.folder / file).relative_to(self.bank).as_posix()

    def matches(self, pattern: str) -> list[str]:
        """Return the files or folders below the subject's folder that a path with `*` in it names."""
        return [path.relative_to(self.folder).as_posix() for path in self.folder.glob(pattern.rstrip("/"))]


def skill_subject(bank: Path, folder: Path, command_line: CommandLine) -> Subject:
    """Read one skill for its checks."""
    try:
        skill = read_skill(folder)
    except TaoError:
        skill = None
    return _subject(bank, folder, skill, files_below(folder), command_line)


def bank_subject(bank: Path, command_line: CommandLine) -> Subject:
    """Read the bank's own pages: those at the root and the shared references."""
    files = [*sorted(bank.glob("*.md")), *sorted(bank.glob("references/*.md"))]
    return _subject(bank, bank, None, files, command_line)


def _subject(bank: Path, folder: Path, skill: Skill | None, files: list[Path], command_line: CommandLine) -> Subject:
    texts = dict(_texts(folder, files))
    pages = {path: parse_page(text) for path, text in texts.items() if path.endswith(".md")}
    names = frozenset(path.name for path in skill_folders(bank))
    return Subject(bank, folder, skill, texts, pages, _manifest(bank), names, command_line)


def _texts(folder: Path, files: list[Path]) -> Iterator[tuple[str, str]]:
    for path in files:
        try:
            text = path.read_bytes().decode("utf-8")
        except UnicodeDecodeError:
            continue
        yield path.relative_to(folder).as_posix(), text


def _manifest(bank: Path) -> dict[str, Any]:
    try:
        value = json.loads((bank / "manifest.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
