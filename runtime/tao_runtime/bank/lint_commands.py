"""Hold the commands in prose to the real command line: SK016."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tao_runtime.bank.lint_scripts import help_text
from tao_runtime.bank.lint_subject import CommandLine, Subject
from tao_runtime.bank.markdown import Page
from tao_runtime.errors import Finding

PROGRAM = "tao-runtime"
SHELLS = ("", "bash", "sh", "shell", "console", "text")
_BREAKS = re.compile(r"[;|&<>()]+")
_ASSIGNMENT = re.compile(r"[A-Z_][A-Z0-9_]*=.*")
_OPEN_END = ("…", "...")
# A script of the skill, or below a variable one of the bank: scripts/x.py, "$TAO_BANK/scripts/x.py".
_SCRIPT = re.compile(r"(\$\{?\w+\}?/)?((?:[\w.-]+/)+[\w-]+\.py)")


@dataclass(frozen=True, slots=True)
class Command:
    """One command as prose writes it.

    Attributes:
        words: program first.
        is_whole: False inside a sentence, where required arguments may be left out.
        line: 1-based line of the page.
    """

    words: tuple[str, ...]
    is_whole: bool
    line: int


def check_commands(subject: Subject) -> Iterator[Finding]:
    """SK016: commands in code blocks parse; commands and flags inside sentences exist."""
    command_line = subject.command_line
    for file, page in subject.pages.items():
        for command in commands_in(page):
            reason = _refusal(subject, command, command_line)
            if reason is not None:
                shown = " ".join(command.words)
                fix = f"`{' '.join(command.words[:2])} --help` lists what there is."
                yield subject.fault("SK016", f"`{shown}`: {reason}", fix, file, command.line)
        yield from _loose_flags(subject, file, page, command_line)
    for file, words in _commands_in_data(subject):
        reason = command_line.refusal(words)
        if reason is not None:
            what = f"`{PROGRAM} {' '.join(words)}`: {reason}"
            yield subject.fault("SK016", what, f"`{PROGRAM} --help` lists what there is.", file)


def commands_in(page: Page) -> Iterator[Command]:
    """Yield every command of a page's shell blocks and code spans that a check can judge."""
    for block in page.blocks:
        if block.language in SHELLS:
            for number, line in _joined(block.lines, block.line):
                yield from _simple_commands(line, number, is_whole=True)
    for span in page.spans:
        yield from _simple_commands(span.text, span.line, is_whole=False)


def _joined(lines: tuple[str, ...], start: int) -> Iterator[tuple[int, str]]:
    """Yield logical lines: a backslash at the end joins the next one."""
    held, first = "", start
    for number, line in enumerate(lines, start=start):
        first = first if held else number
        if line.rstrip().endswith("\\"):
            held += line.rstrip()[:-1] + " "
            continue
        yield first, held + line
        held = ""
    if held:
        yield first, held


def _simple_commands(line: str, number: int, *, is_whole: bool) -> Iterator[Command]:
    text = line.strip().removeprefix("$ ")
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = "#" if is_whole else ""
    try:
        tokens = list(lexer)
    except ValueError:
        return
    words: list[str] = []
    for token in [*tokens, ";"]:
        if not _BREAKS.fullmatch(token):
            words.append(token)
            continue
        command = _command(words, number, is_whole=is_whole)
        if command is not None:
            yield command
        words = []


def _command(words: list[str], line: int, *, is_whole: bool) -> Command | None:
    while words and _ASSIGNMENT.fullmatch(words[0]):
        words = words[1:]
    if words and re.fullmatch(r"(?:\S*/)?python[0-9.]*", words[0]):
        words = words[1:]
    if not words or not (words[0].rpartition("/")[2] == PROGRAM or (_SCRIPT.fullmatch(words[0]) and (is_whole or words[1:]))):
        return None
    has_open_end = any(word in _OPEN_END for word in words)
    kept = tuple(word for word in words if word not in _OPEN_END)
    return Command(kept, is_whole and not has_open_end, line)


def _refusal(subject: Subject, command: Command, command_line: CommandLine) -> str | None:
    script = _SCRIPT.fullmatch(command.words[0])
    if script:
        return _script_refusal(subject, command, (subject.bank if script[1] else subject.folder) / script[2])
    words = list(command.words[1:])
    return command_line.refusal(words) if command.is_whole else _unknown_part(words, command_line.flags)


def _script_refusal(subject: Subject, command: Command, script: Path) -> str | None:
    """Ask the script's own help; a script of the skill that isn't there is the business of SK010."""
    if not script.is_file():
        inside = script.is_relative_to(subject.folder) and not subject.is_bank
        return None if inside else f"there is no {script.relative_to(subject.bank)} in the bank"
    known = set(re.findall(r"--?[\w-]+", help_text(script)))
    return next((f"it has no {flag}" for flag in _flags_of(command.words) if flag not in known), None)


def _unknown_part(words: list[str], flags: Mapping[str, frozenset[str]]) -> str | None:
    """Return what a command inside a sentence has that the command line lacks."""
    path = ""
    for word in words:
        longer = f"{path} {word}".strip()
        if longer not in flags:
            break
        path = longer
    is_group = any(name.startswith(f"{path} ".lstrip()) for name in flags if name != path)
    rest = words[len(path.split()) :]
    if is_group and rest and re.fullmatch(r"[a-z][a-z-]*", rest[0]):
        return f"there is no command {path} {rest[0]}".replace("  ", " ")
    return next((f"it has no {flag}" for flag in _flags_of(words) if flag not in flags[path] | {"--version"}), None)


def _flags_of(words: tuple[str, ...] | list[str]) -> list[str]:
    return [word.partition("=")[0] for word in words if re.match(r"--?[A-Za-z]", word)]


def _loose_flags(subject: Subject, file: str, page: Page, command_line: CommandLine) -> Iterator[Finding]:
    """A flag that stands alone in a code span belongs to some command of ours, or to a script of the skill."""
    known = frozenset[str]().union(*command_line.flags.values())
    scripts = [help_text(path) for path in sorted(subject.folder.glob("scripts/*.py"))] if not subject.is_bank else []
    for span in page.spans:
        flag = re.fullmatch(r"(--[a-z][a-z0-9-]*)(?:[ =].*)?", span.text)
        if flag and flag[1] not in known and not any(flag[1] in text for text in scripts) and not _is_foreign(page, span.line):
            yield subject.fault("SK016", f"no command has {flag[1]}", "Correct the flag.", file, span.line)


def _is_foreign(page: Page, line: int) -> bool:
    """A line that names another program may name that program's flags."""
    return re.search(r"\b(docker|torchrun|SLURM|sbatch|srun|kubectl|git|pip|pytest|make)\b", page.lines[line - 1]) is not None


def _commands_in_data(subject: Subject) -> Iterator[tuple[str, list[str]]]:
    """Yield the commands of ours that skill_info.yaml and evals.json hold; malformed files are other checks' business."""
    for command in _texts(_load_yaml(subject.texts.get("references/skill_info.yaml", ""))):
        words = command.split()
        if words[:1] == [PROGRAM]:
            yield "references/skill_info.yaml", words[1:]
    for words in _lists(_load_json(subject.texts.get("evals/evals.json", ""))):
        if words[:1] == [PROGRAM] and all(isinstance(word, str) for word in words):
            yield "evals/evals.json", words[1:]


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)


def _lists(value: Any) -> Iterator[list[Any]]:
    if isinstance(value, list):
        yield value
    if isinstance(value, (list, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _lists(item)


def _load_json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _load_yaml(text: str) -> Any:
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return None
