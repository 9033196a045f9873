"""`tao-runtime spec edit`: change single keys of a spec file, and leave the rest of it as it was written."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tao_runtime.cli.output import CommandResult, add_command
from tao_runtime.config.names import ACTION_NAMES, COSMOS_REASON


class _InOrder(argparse.Action):
    """Keep flag and value in one list, so that changes are made in the order in which they were given."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,  # noqa: ARG002 - the signature is argparse's
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        """Append."""
        namespace.words = [*namespace.words, option_string, values]


def add_word(words: Any) -> None:
    """Add `edit`."""
    parser = add_command(words, "edit", "change single keys of a spec file and keep the rest as it was written", _edit)
    parser.add_argument("--spec", type=Path, metavar="FILE", required=True, help="spec file")
    parser.add_argument("--skill", choices=tuple(ACTION_NAMES), default=COSMOS_REASON, help="skill (default: %(default)s)")
    actions = tuple(dict.fromkeys(name for names in ACTION_NAMES.values() for name in names))
    parser.add_argument("--action", choices=actions, default="train", help="action (default: %(default)s)")
    parser.set_defaults(words=[])
    for flag, metavar, effect in (
        ("--set", "KEY=VALUE", "write a value, as spec build converts it; repeatable"),
        ("--unset", "KEY", "take a key out; repeatable"),
        ("--rename", "OLD=NEW", "write the value of a key under another, over what stands there; repeatable"),
    ):
        parser.add_argument(flag, action=_InOrder, metavar=metavar, help=effect)
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="write here, which may be the same file; without it stdout is the spec"
    )
    parser.add_argument("--dry-run", action="store_true", help="write nothing")


def _edit(arguments: argparse.Namespace) -> CommandResult:
    from tao_runtime.cli.spec import write_spec
    from tao_runtime.config.actions import action_of
    from tao_runtime.environment import read_environment
    from tao_runtime.errors import Finding, Severity, Where, raise_errors
    from tao_runtime.spec.build import build_spec
    from tao_runtime.spec.edit import changed_text, own_copy
    from tao_runtime.spec.files import read_spec_file
    from tao_runtime.spec.fixes import changes_of
    from tao_runtime.spec.secrets import secret_findings

    path = arguments.spec
    value = own_copy(read_spec_file(path))
    changes, faults = changes_of(action_of(arguments.skill, arguments.action).model, value, arguments.words)
    raise_errors([*faults, *secret_findings("\n".join(arguments.words[1::2]), "--set", read_environment())])
    text = path.read_text(encoding="utf-8-sig")
    text, is_kept = changed_text(text, changes, value, is_json=path.suffix == ".json")
    findings = []
    if not is_kept:
        what = f"{path} could not be changed in place: it is written anew, its comments are lost"
        findings.append(Finding("SPEC_COMMENTS_LOST", what, Where(file=str(path)), severity=Severity.WARNING))
    written = None
    if arguments.out is not None and not arguments.dry_run:
        write_spec(arguments.out, text)
        written = str(arguments.out)
    left = build_spec(arguments.skill, arguments.action, (), value).findings
    faults_left = sorted({finding.code for finding in left if finding.severity in {Severity.ERROR, Severity.WARNING}})
    data = {"written": written, "text": text, "num_changes": len(changes), "faults_left": faults_left}
    remark = f"; still to mend: {', '.join(faults_left)}" if faults_left else ""
    return CommandResult("spec edit", data, findings, f"wrote {written}{remark}" if written else text)
