"""Give findings about an annotation file the shell command that mends exactly them.

A check says what to change in words, with `FixKind.EDIT`, where `data repair` can make that change; here the words move into
the fact, and the command takes their place. `tests/dataset/test_data_fixes.py` runs each.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from tao_runtime.errors import Finding, FixKind, Severity
from tao_runtime.media.forms import SUFFIX_OF, can_take_form, look_at

# What `data repair` mends, and for which of it it looks at the media.
_MENDED = frozenset(
    {
        "DATA_ANNOTATIONS_SYNTAX",
        "DATA_ANNOTATIONS_ENCODING",
        "DATA_TURNS_ROLES",
        "DATA_TURN_NOT_TEXT",
        "DATA_LITERAL_TOKENS",
        "DATA_TAG_COUNT",
        "DATA_TAG_MISSING",
        "DATA_ANSWERS_DRIFT",
        "DATA_ID_DUPLICATE",
    }
)
_MENDED_WITH_MEDIA = frozenset(
    {
        "DATA_VIDEO_FPS_MISSING",
        "DATA_VIDEO_FPS_INVALID",
        "DATA_VIDEO_FPS_CONTRADICTS",
        "DATA_MEDIA_MISSING",
        "DATA_TURNS_EXTRA",
    }
)
_COMMAND = "tao-runtime data repair"


def is_repairable(finding: Finding) -> bool:
    """Tell whether the fix of a finding is a command of `data repair`."""
    return finding.fix_kind is FixKind.COMMAND and finding.fix.startswith(_COMMAND)


def with_commands(findings: Iterable[Finding], annotations: Path | str, media_dir: Path | str | None) -> list[Finding]:
    """Return the findings of one annotation file, each mendable one with its command.

    Args:
        findings: what was found in the file.
        annotations: the file, as the user named it.
        media_dir: the media folder that was looked at, None when none was.
    """
    found, file, folder = list(findings), str(annotations), None if media_dir is None else str(media_dir)
    kinds = {f.fix_kind for f in found if f.rule == "D1" and f.severity is Severity.ERROR}
    return [
        _with_named_form(one, file, kinds) if one.code == "DATA_ANNOTATIONS_EXTENSION" else _with_command(one, file, folder)
        for one in found
    ]


def repair_command(annotations: str, media_dir: str | None, *codes: str, record: int | None = None) -> str:
    """Return the command that mends the faults of some codes, or all of them, in one record or the whole file."""
    words = [_COMMAND, "--annotations", _path(annotations)]
    if media_dir is not None:
        words += ["--media-dir", _path(media_dir)]
    for code in codes:
        words += ["--only", code]
    if record is not None:
        words += ["--record", str(record)]
    return " ".join([*words, "--in-place"])


def _with_command(finding: Finding, annotations: str, media_dir: str | None) -> Finding:
    if finding.fix_kind is not FixKind.EDIT or finding.code not in _MENDED | _MENDED_WITH_MEDIA:
        return finding
    folder = media_dir if finding.code in _MENDED_WITH_MEDIA else None
    command = repair_command(annotations, folder, finding.code, record=finding.where.record_index)
    return _commanded(finding, command)


def _with_named_form(finding: Finding, annotations: str, errors: set[FixKind]) -> Finding:
    """Give a file the form that its name says, so that specs that name it stay right; where that can't be, another name."""
    path = Path(annotations)
    if FixKind.MANUAL not in errors and can_take_form(path, path.suffix.lower()):
        # Only a sound file takes another form: what breaks it is mended on the way.
        on_the_way = ["DATA_ANNOTATIONS_SYNTAX"] if errors else []
        return _commanded(finding, repair_command(annotations, None, *on_the_way, finding.code))
    new = path.with_suffix(SUFFIX_OF[look_at(path)[1]])
    if new.exists():
        return replace(finding, fix=f"{finding.fix} Another file has that name.", fix_kind=FixKind.MANUAL)
    return _commanded(finding, f"mv -n {_path(annotations)} {_path(str(new))}")


def _commanded(finding: Finding, command: str) -> Finding:
    return replace(finding, what=f"{finding.what}. {finding.fix}", fix=command, fix_kind=FixKind.COMMAND)


def _path(path: str) -> str:
    """Quote a path for a shell; one that begins with a dash would be read as an option."""
    return shlex.quote(f"./{path}" if path.startswith("-") else path)
