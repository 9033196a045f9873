"""Turn the fixes of a spec file's findings into commands, each only after it was tried in memory and found to mend."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tao_runtime.config.fields import Section
from tao_runtime.config.names import COSMOS_REASON
from tao_runtime.errors import Finding, FixKind, Severity
from tao_runtime.spec.edit import Change, apply_change, own_copy, written_keys
from tao_runtime.spec.overrides import apply_override

FLAGS = ("--set", "--unset", "--rename")
# A file with more faults than this is not the template with a slip; its fixes stay flags.
MAX_TRIED = 60

Judge = Callable[[dict[str, Any]], list[Finding]]


@dataclass(frozen=True, slots=True)
class SpecFile:
    """Name the spec file whose findings are mended.

    Attributes:
        path: of the file.
        skill, action, model: what it is a spec of.
        value: what it holds.
        overrides: texts such as `train.epoch=3` that the command line puts over it: an edit below them would change nothing.
    """

    path: Path
    skill: str
    action: str
    model: type[Section]
    value: dict[str, Any]
    overrides: Sequence[str] = ()

    def is_overridden(self, words: Sequence[str]) -> bool:
        """Tell whether the command line decides a key that these flags name."""
        named = {word.partition("=")[0].strip() for word in words}
        given = {word.partition("=")[0].strip() for word in self.overrides}
        return any(f"{one}.".startswith(f"{other}.") or f"{other}.".startswith(f"{one}.") for one in named for other in given)


def pasteable(findings: Sequence[Finding], file: SpecFile, judge: Judge) -> list[Finding]:
    """Return the findings with a complete command as fix wherever that command mends.

    Args:
        findings: what `judge` said of the file as it is.
        file: the spec file.
        judge: returns the findings of a nested spec, with the same facts and overrides.
    """
    before = _marks(findings)
    tried = [f for f in findings if _is_fault(f)][:MAX_TRIED]
    return [_with_command(finding, file, judge, before) if finding in tried else finding for finding in findings]


def as_edits(findings: Sequence[Finding], file: SpecFile, judge: Judge) -> list[Finding]:
    """Return findings of other checks than `judge`, each fix of flags alone as the command that edits the file.

    A command that would bring the file a fault that it has not yet is not offered: the flags stay.
    """
    before = _marks(judge(own_copy(file.value)))
    return [_edited(finding, file, judge, before) for finding in findings]


def with_edits(findings: Sequence[Finding], file: SpecFile, judge: Judge) -> list[Finding]:
    """Return findings of any check, each fix of flags as the command that edits the file wherever that mends.

    Args:
        findings: those of `judge`, and of other checks.
        file: the spec file.
        judge: returns the findings of a nested spec, with the same overrides.
    """
    own = _marks(judge(own_copy(file.value)))
    judged = [finding for finding in findings if (finding.code, finding.where.key) in own]
    mended = dict(zip(map(id, judged), pasteable(judged, file, judge), strict=True))
    return as_edits([mended.get(id(finding), finding) for finding in findings], file, judge)


def _edited(finding: Finding, file: SpecFile, judge: Judge, before: set[tuple[str, str | None]]) -> Finding:
    words = _flags(finding.fix)
    value = own_copy(file.value)
    if not words or file.is_overridden(words[1::2]) or changes_of(file.model, value, words)[1] or _marks(judge(value)) - before:
        return finding
    return replace(finding, fix=_command(file, words), fix_kind=FixKind.COMMAND)


def changes_of(model: type[Section], value: dict[str, Any], words: Sequence[str]) -> tuple[list[Change], list[Finding]]:
    """Read the flags --set, --unset and --rename, in order, as changes of a nested spec; each sees the ones before it.

    Args:
        model: class of the spec.
        value: the nested spec, changed in place.
        words: flags and their values.

    Returns:
        The changes, and one finding for each flag that can't be applied.
    """
    changes: list[Change] = []
    faults: list[Finding] = []
    for flag, word in zip(words[::2], words[1::2], strict=True):
        made, fault = _read(model, value, flag, word)
        if fault is not None:
            faults.append(fault)
        for change in made:
            apply_change(value, change)
        changes += made
    return changes, faults


def _read(model: type[Section], value: dict[str, Any], flag: str, word: str) -> tuple[list[Change], Finding | None]:
    if flag == "--set":
        probe: dict[str, Any] = {}
        fault = apply_override(model, probe, word)
        return ([], fault) if fault is not None else ([_leaf(probe, word.partition("=")[0].strip())], None)
    old, _, new = word.partition("=") if flag == "--rename" else (word, "", "")
    keys = written_keys(value, old.strip())
    if keys is None:
        what = f"{flag} {word}: nothing is written at {old.strip()}"
        return [], Finding("SPEC_OVERRIDE_SYNTAX", what, fix="Name a key that the file holds.", fix_kind=FixKind.EDIT)
    removal = Change(keys, is_removal=True)
    if flag == "--unset":
        return [removal], None
    return [removal, Change(tuple(new.strip().split(".")), _value_at(value, keys))], None


def _leaf(probe: dict[str, Any], path: str) -> Change:
    keys = tuple(path.split("."))
    return Change(keys, _value_at(probe, keys))


def _value_at(value: dict[str, Any], keys: Sequence[str]) -> Any:
    part: Any = value
    for name in keys:
        part = part[name]
    return own_copy(part)


def _with_command(finding: Finding, file: SpecFile, judge: Judge, before: set[tuple[str, str | None]]) -> Finding:
    mark = (finding.code, finding.where.key)
    for candidate in _candidates(finding, file):
        words = candidate
        for _ in range(2):
            value = own_copy(file.value)
            _, faults = changes_of(file.model, value, words)
            after = [] if faults else [f for f in judge(value) if _is_fault(f)]
            new = [f for f in after if (f.code, f.where.key) not in before]
            if faults or mark in _marks(after):
                break
            if not new:
                return replace(finding, fix=_command(file, _once(words)), fix_kind=FixKind.COMMAND)
            # A right value may contradict another key: what mends that goes into the same command.
            words = [*words, *(word for f in new for word in _flags(f.fix))]
    return finding


def _candidates(finding: Finding, file: SpecFile) -> list[list[str]]:
    """Return the flags that may mend, best first: what the fix says, another name for a key, leaving the key out."""
    candidates = []
    words = _flags(finding.fix)
    key = finding.where.key
    is_written = key is not None and written_keys(file.value, key) is not None
    if finding.code == "SPEC_UNKNOWN_KEY" and words and key is not None and is_written:
        candidates.append(["--rename", f"{key}={words[1].partition('=')[0]}"])
    if words:
        candidates.append([*words, "--unset", key] if finding.code == "SPEC_UNKNOWN_KEY" and key is not None else words)
    # Without its name another model would be taken, which nobody asked for.
    if is_written and key is not None and finding.code != "SPEC_MODEL_NAME":
        candidates.append(["--unset", key])
    return candidates


def _once(words: Sequence[str]) -> list[str]:
    """Leave out each --set of a key that a later one sets again."""
    pairs = list(zip(words[::2], words[1::2], strict=True))
    last = {word.partition("=")[0]: place for place, (flag, word) in enumerate(pairs) if flag == "--set"}
    kept = [pair for place, pair in enumerate(pairs) if pair[0] != "--set" or last[pair[1].partition("=")[0]] == place]
    return [word for pair in kept for word in pair]


def _flags(fix: str) -> list[str]:
    """Return a fix as flags when it is nothing but flags, else nothing."""
    try:
        words = shlex.split(fix)
    except ValueError:
        return []
    is_flags = len(words) % 2 == 0 and all(word in FLAGS for word in words[::2])
    return words if is_flags else []


def _command(file: SpecFile, words: Sequence[str]) -> str:
    skill = [] if file.skill == COSMOS_REASON else ["--skill", file.skill]
    action = [] if file.action == "train" else ["--action", file.action]
    path = str(file.path)
    return shlex.join(["tao-runtime", "spec", "edit", *skill, *action, "--spec", path, *words, "--out", path])


def _marks(findings: Sequence[Finding]) -> set[tuple[str, str | None]]:
    return {(finding.code, finding.where.key) for finding in findings if _is_fault(finding)}


def _is_fault(finding: Finding) -> bool:
    return finding.severity in {Severity.ERROR, Severity.WARNING}
