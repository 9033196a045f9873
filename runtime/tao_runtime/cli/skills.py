"""`tao-runtime skills`: list, show and lint the skills of the bank."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tao_runtime.cli.output import CommandResult, Parser, add_command, severity_counts

if TYPE_CHECKING:
    from tao_runtime.bank.lint_subject import CommandLine
    from tao_runtime.bank.skills import Skill


def add_parser(commands: Any, summary: str) -> None:
    """Add `skills` and its three words."""
    parser: Parser = commands.add_parser("skills", help=summary, description=f"{summary[:1].upper()}{summary[1:]}.")
    words = parser.add_subparsers(dest="word", required=True, metavar="WORD")
    listed = add_command(words, "list", "name every skill with what it is for", _list)
    _bank_argument(listed)
    show = add_command(words, "show", "print one skill's SKILL.md", _show)
    show.add_argument("name", metavar="NAME", help="name of the skill, with or without the plugin's prefix")
    _bank_argument(show)
    lint = add_command(words, "lint", "hold the skills to every SK check", _lint)
    lint.add_argument("names", metavar="NAME", nargs="*", help="skills to check (default: all, and the bank's own pages)")
    lint.add_argument("--only", action="append", default=[], metavar="CODE", help="make this check only; repeatable")
    lint.add_argument("--skip", action="append", default=[], metavar="CODE", help="leave this check out; repeatable")
    _bank_argument(lint)


def _bank_argument(parser: Parser) -> None:
    parser.add_argument("--bank", type=Path, metavar="DIR", help="checkout of the bank (default: the one around here)")


def _list(arguments: argparse.Namespace) -> CommandResult:
    from tao_runtime.bank.skills import bank_root, read_skills

    bank = bank_root(arguments.bank)
    skills, findings = read_skills(bank)
    data = {"bank": str(bank), "skills": [_summary(bank, skill) for skill in skills]}
    text = "\n".join(f"{skill.name}  ({skill.layer})\n    {skill.description}" for skill in skills)
    return CommandResult("skills list", data, findings, text)


def _show(arguments: argparse.Namespace) -> CommandResult:
    from tao_runtime.bank.skills import bank_root, find_skill, skill_folders

    bank = bank_root(arguments.bank)
    skill = find_skill(bank, arguments.name)
    here = {folder.name for folder in skill_folders(bank)}
    body = skill.front.body.lstrip("\n")
    data = {
        **_summary(bank, skill),
        "files": skill.files(),
        "companions": {name: name in here for name in skill.companions()},
        "body": body,
    }
    return CommandResult("skills show", data, (), body)


def _summary(bank: Path, skill: Skill) -> dict[str, Any]:
    return {
        "name": skill.name,
        "layer": skill.layer,
        "path": str(skill.folder.relative_to(bank)),
        "version": skill.version,
        "description": skill.description,
        "actions": skill.actions(),
    }


def _lint(arguments: argparse.Namespace) -> CommandResult:
    from tao_runtime.bank.lint import chosen_checks, lint_bank
    from tao_runtime.bank.skills import bank_root

    bank = bank_root(arguments.bank)
    checks = chosen_checks(arguments.only, arguments.skip)
    findings = lint_bank(bank, checks=checks, names=arguments.names, command_line=command_line())
    counts = severity_counts(findings)
    worst = {finding.code: str(finding.severity) for finding in reversed(findings)}
    data = {
        "bank": str(bank),
        "counts": counts,
        "checks": {check.code: worst.get(check.code, "passed") for check in checks},
    }
    text = f"{len(checks)} checks: " + ", ".join(f"{number} {name}" for name, number in counts.items())
    return CommandResult("skills lint", data, findings, text)


def command_line() -> CommandLine:
    """Return the real command line as the skill linter asks it: does this parse, and which flags has this command."""
    from tao_runtime.bank.lint_subject import CommandLine
    from tao_runtime.cli.main import build_parser
    from tao_runtime.errors import TaoError

    parser = build_parser()

    def refusal(words: list[str]) -> str | None:
        if {"--help", "-h", "--version"} & set(words):
            return None
        try:
            parser.parse_args(words)
        except TaoError as error:
            return error.findings[0].what
        return None

    return CommandLine(refusal, _flags(parser))


def _flags(parser: argparse.ArgumentParser, path: str = "") -> dict[str, frozenset[str]]:
    """Return the option strings of every command by its words, the top level under the empty text."""
    # argparse lists a parser's arguments nowhere public; _actions is what its own help is printed from.
    actions = parser._actions
    flags = {path: frozenset(flag for action in actions for flag in action.option_strings)}
    for action in actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, inner in action.choices.items():
                flags.update(_flags(inner, f"{path} {name}".strip()))
    return flags
