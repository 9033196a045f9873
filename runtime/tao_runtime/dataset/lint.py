"""Check a whole annotation file: every record, every rule of the table whose number starts with D that needs no spec.

Fields are checked in one pass over plain dictionaries; media files are looked at afterwards, each once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tao_runtime.dataset.collector import Collector
from tao_runtime.dataset.fixes import with_commands
from tao_runtime.dataset.keylog import KeyLog
from tao_runtime.dataset.lint_fields import FieldChecks
from tao_runtime.dataset.lint_sets import SetChecks
from tao_runtime.dataset.media_identity import MediaIdentity
from tao_runtime.errors import Finding, FixKind, Severity, TaoError, Where
from tao_runtime.files import why_no_folder
from tao_runtime.media.annotations import scan_records
from tao_runtime.media.forms import Progress
from tao_runtime.media.quoting import shown

if TYPE_CHECKING:
    from tao_runtime.dataset.lint_media import MediaChecks
    from tao_runtime.media.probe import VideoFacts
    from tao_runtime.media.sampling import VisionOptions

FIELD_RULES = ("D1", "D2", "D9", "D10", "D11", "D12", "D13")
MEDIA_RULES = ("D3", "D4", "D15")
UNREAD_RULES = ("D1",)
ALL_RULES = tuple(sorted((*FIELD_RULES, *MEDIA_RULES), key=lambda rule: int(rule[1:])))
ANNOTATIONS_IN_ROOT = "annotations.json"


@dataclass(frozen=True, slots=True)
class LintResult:
    """Say what a lint looked at and found.

    Attributes:
        annotations: the file.
        media_dir: the media folder, None when media were not looked at.
        num_records: records that parse.
        num_with_video: those with at least one video.
        num_media: different media files named.
        questions, media: what each record asks, answers and shows, as numbers that another set can be compared with
            (`SetChecks`).
        media_facts: what was measured of each readable video, by its name as records write it; empty when media were not
            looked at.
        right_names: the right name of each file that records name in another letter case.
        findings: bounded in number.
        counts: how often each code and severity was found in all.
        checked: numbers of the rules that were applied.
        skipped: rule number to the reason why it was not applied.
    """

    annotations: Path
    media_dir: Path | None
    num_records: int
    num_with_video: int
    num_media: int
    questions: KeyLog
    media: KeyLog
    media_facts: Mapping[str, VideoFacts]
    right_names: Mapping[str, str]
    findings: list[Finding]
    counts: Mapping[tuple[str, Severity], int]
    checked: tuple[str, ...]
    skipped: Mapping[str, str]

    @property
    def was_read(self) -> bool:
        """The annotation file could be opened, so its records can be counted."""
        return self.checked != UNREAD_RULES

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain JSON values, without the findings."""
        return {
            "annotations": str(self.annotations),
            "media_dir": None if self.media_dir is None else str(self.media_dir),
            "num_records": self.num_records,
            "num_with_video": self.num_with_video,
            "num_media": self.num_media,
            "rules_checked": list(self.checked),
            "rules_skipped": dict(self.skipped),
        }


def lint_annotations(
    annotations: str | Path,
    media_dir: str | Path | None = None,
    *,
    with_media: bool = True,
    vision: VisionOptions | None = None,
    progress: Progress | None = None,
) -> LintResult:
    """Check an annotation file and the media it names.

    Args:
        annotations: JSON array, JSON lines or Parquet.
        media_dir: folder that media paths are relative to; without it media can't be checked.
        with_media: False leaves media alone: structure and fields only.
        vision: which frames a launch will sample: those must decode (rule D4). None: the first, middle and last of the file.
        progress: told now and then how much of the annotations and of the media was looked at.
    """
    out = Collector(str(annotations))
    root, why_not = _media_root(out, media_dir, with_media=with_media)
    fields, sets = FieldChecks(out), SetChecks(out, MediaIdentity(media_dir, may_look=root is not None).of)
    media_checks = None if root is None else _media_checks(out, root, vision)
    num_records, num_with_video = 0, 0
    of_file: list[Finding] = []
    checked: tuple[str, ...] = FIELD_RULES if why_not else ALL_RULES
    skipped = dict.fromkeys(MEDIA_RULES, why_not) if why_not else {}
    try:
        for index, raw in scan_records(annotations, of_file, progress):
            num_records += 1
            media, turns = fields.check(index, raw)
            sets.check(index, raw.get("id"), media, turns)
            num_with_video += bool(media) and "video" in dict(media)
            if media_checks is not None:
                media_checks.take(index, raw, media)
    except TaoError as error:
        of_file.extend(error.findings)
        checked, skipped = UNREAD_RULES, dict.fromkeys(ALL_RULES[1:], "the annotation file can't be read")
    out.extend(of_file)
    sets.end()
    if media_checks is not None:
        media_checks.end(progress)
    _add_fps_faults(out, fields, media_checks)
    num_media = sets.media.num_keys()
    found = [*out.summary(), *([] if why_not is None or not num_media else [_not_looked(out.file, why_not)])]
    return LintResult(
        annotations=Path(annotations),
        media_dir=root,
        num_records=num_records,
        num_with_video=num_with_video,
        num_media=num_media,
        questions=sets.questions,
        media=sets.media,
        media_facts={} if media_checks is None else media_checks.facts,
        right_names={} if media_checks is None else media_checks.right_names,
        findings=with_commands(found, annotations, root),
        counts=out.counts,
        checked=checked,
        skipped=skipped,
    )


def _media_root(out: Collector, media_dir: str | Path | None, *, with_media: bool) -> tuple[Path | None, str | None]:
    """Return the media folder, or None and why media are not looked at; a missing folder is one fault, not a million."""
    if not with_media:
        return None, "--no-media was given"
    if media_dir is None:
        return None, "no media folder was given"
    why = why_no_folder(Path(media_dir))
    if why is not None:
        what = f"the media folder {shown(str(media_dir))} {why}"
        out.add("DATA_MEDIA_FOLDER_MISSING", what, "Name the folder that media paths start from.")
        return None, f"the media folder {why}"
    return Path(media_dir), None


def _media_checks(out: Collector, root: Path, vision: VisionOptions | None) -> MediaChecks:
    # Imported here: a check without media starts without threads and decoder.
    from tao_runtime.dataset.lint_media import MediaChecks

    return MediaChecks(out, root, vision)


def _add_fps_faults(out: Collector, fields: FieldChecks, media: MediaChecks | None) -> None:
    """Report missing and wrong rates, naming the measured one where the file could be measured."""
    for index, own_id, code, what, videos in fields.fps_faults:
        rate = None if media is None else media.right_rate(videos)
        if rate is None:
            fix, kind = "Set video_fps to the file's frame rate; given the media folder, this check names it.", FixKind.MANUAL
        else:
            fix, kind = f"Set video_fps to {rate}, measured in the file.", FixKind.EDIT
        out.add(code, what, fix, record=(index, own_id), kind=kind)
    for code, count in fields.num_fps_faults.items():
        out.counts[code, Severity.ERROR] = count


def _not_looked(file: str, why_not: str) -> Finding:
    what = f"media files were not looked at: {why_not}"
    fix = "Pass --media-dir DIR, a folder that is there, and leave out --no-media."
    return Finding("DATA_MEDIA_NOT_CHECKED", what, Where(file=file), fix, Severity.SKIPPED, rule="D3")
