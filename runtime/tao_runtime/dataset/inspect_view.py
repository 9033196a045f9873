"""Put what a look at a data set found into lines for a terminal and into the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from tao_runtime import __version__
from tao_runtime.dataset.inspect import MAX_LISTED, Overview
from tao_runtime.dataset.tally import Tally
from tao_runtime.media.quoting import shown
from tao_runtime.media.sampling import VisionOptions
from tao_runtime.report.dataset_page import Bars, DatasetView, Example
from tao_runtime.report.text import number, plural

MAX_BARS = 15
MAX_LINES = 8
_SPREADS = (
    ("duration_s", "duration, s"),
    ("fps", "frames per second"),
    ("num_frames", "frames in the file"),
    ("vision_tokens", "vision tokens in the model"),
)


@dataclass(frozen=True, slots=True)
class Look:
    """Hold everything that was found.

    Attributes:
        overview: of the records.
        media: as `media_figures` gives it; None when media were not looked at.
        why_no_media: why they were not.
        vision: how frames are chosen and sized.
        unusable: what can't be used, and why.
    """

    overview: Overview
    media: Mapping[str, Any] | None
    why_no_media: str
    vision: VisionOptions
    unusable: Sequence[str] = ()

    @property
    def measured_of(self) -> str:
        """How many media files were measured, in words."""
        num_media = self.overview.num_media
        if self.media is None:
            return f"not measured: {self.why_no_media}"
        count = int(self.media["num_measured"])
        return "all measured" if count == num_media else f"{number(count)} drawn by lot were measured; --all-media measures all"


def sampling_words(vision: VisionOptions) -> str:
    """Return the options that are set: `fps 1, max_pixels 1000`."""
    values = ((one.name, getattr(vision, one.name)) for one in fields(vision))
    return ", ".join(f"{name} {value:g}" for name, value in values if value is not None) or "the defaults"


def text_of(look: Look) -> str:
    """Return lines for a terminal."""
    overview = look.overview
    first = "" if overview.limit is None else f" (the first {overview.limit} were asked for)"
    lines = [
        f"{overview.annotations}",
        f"{plural(overview.num_records, 'record')}{first}, {plural(overview.num_media, 'media file')}, {look.measured_of}",
        *_lines("fields", [(key, types.total(), ", ".join(types)) for key, types in _fields(overview)]),
    ]
    for title, tally in _tallies(overview):
        lines += _lines(title, [(label, count, "") for label, count in tally.counts.most_common(MAX_LINES)], tally)
    if look.media is not None:
        for title, rows in _media_rows(look.media):
            lines += _lines(title, [(label, count, "") for label, count in rows[:MAX_BARS]])
    lines += ["", "standing out"]
    lines += [f"  {what}: {value}  {where}" for what, value, where in _odd(look)]
    return "\n".join(lines) + "\n"


def view_of(look: Look, examples: Sequence[Example], seed: int, made_at: datetime) -> DatasetView:
    """Return the page's content."""
    overview = look.overview
    num_unusable = 0 if look.media is None else int(look.media["num_unusable"])
    answers = overview.answers
    groups = [
        ("records", "Records", [_bars(title, tally, overview.num_records) for title, tally in _tallies(overview)[:3]], ""),
        ("answers", "Answers and questions", [_wide(t, tally, overview) for t, tally in _tallies(overview)[3:]], ""),
    ]
    if look.media is not None:
        total = int(look.media["num_measured"])
        bars = [Bars(title, rows[:MAX_BARS], total) for title, rows in _media_rows(look.media) if rows]
        groups.append(("media", "Media", bars, f"{number(total)} of {plural(overview.num_media, 'file')}: {look.measured_of}."))
    return DatasetView(
        title=f"Data set {overview.annotations.rpartition('/')[2]}",
        version=__version__,
        made_at=made_at,
        source=overview.annotations,
        tiles=[
            ("records", number(overview.num_records), "" if overview.limit is None else f"at most {overview.limit} looked at"),
            ("media files", number(overview.num_media), look.measured_of),
            ("different answers", number(len(answers.counts)), _more(answers) or "in small letters, without sentence marks"),
            ("can't be used", number(num_unusable), "of the files measured" if look.media else look.why_no_media),
        ],
        groups=groups,
        fields=[(shown(key), types.total(), ", ".join(types)) for key, types in _fields(overview)],
        num_records=overview.num_records,
        odd=_odd(look),
        faults=look.unusable,
        examples=examples,
        sheet_note=f"{plural(len(examples), 'record')} drawn by lot (seed {seed}), classes taking turns. Sampling: "
        f"{sampling_words(look.vision)}. Frames are resized to the model's size with Pillow's bicubic filter.",
    )


def _tallies(overview: Overview) -> list[tuple[str, Tally]]:
    return [
        ("media of a record", overview.media_sets),
        ("turns of a record", overview.turns),
        ("video_fps as written", overview.rates),
        ("answers", overview.answers),
        ("question templates", overview.questions),
    ]


def _bars(title: str, tally: Tally, total: int) -> Bars:
    return Bars(title, tally.counts.most_common(MAX_BARS), total, _more(tally))


def _wide(title: str, tally: Tally, overview: Overview) -> Bars:
    return Bars(title, tally.counts.most_common(MAX_BARS), overview.num_records, _more(tally), wide=True)


def _more(tally: Tally) -> str:
    hidden = len(tally.counts) - MAX_BARS
    parts = [f"{number(hidden)} more"] if hidden > 0 else []
    if tally.num_uncounted:
        parts.append(f"{plural(tally.num_uncounted, 'record')} with still other values")
    return ", ".join(parts)


def _media_rows(media: Mapping[str, Any]) -> list[tuple[str, list[tuple[str, int]]]]:
    rows = [("size, px", list(media["sizes"].items())), ("codec", list(media["codecs"].items()))]
    return [(title, list(media[name]["histogram"].items())) for name, title in _SPREADS if media[name] is not None] + rows


def _fields(overview: Overview) -> list[tuple[str, Any]]:
    return sorted(overview.fields.items(), key=lambda item: -item[1].total())[: 2 * MAX_LISTED]


def _odd(look: Look) -> list[tuple[str, str, str]]:
    found = [
        (f"most {one.what}", f"{one.value:g}", _record(one.record_index, one.record_id))
        for one in look.overview.extremes.values()
    ]
    first_with = look.overview.first_with
    found += [
        (f"key {shown(key)}", f"in {plural(look.overview.fields[key].total(), 'record')}", f"first in record {first_with[key]}")
        for key in look.overview.rare_keys()[:MAX_LINES]
    ]
    for one in () if look.media is None else look.media["standing_out"]:
        where = f"{one['media']}, {_record(one['record_index'], one['record_id'])}"
        found.append((one["what"], one["value"], where))
    return found


def _record(index: int, own_id: Any) -> str:
    return f"record {index}" + ("" if own_id is None else f" ({shown(own_id)})")


def _lines(title: str, rows: Sequence[tuple[str, int, str]], tally: Tally | None = None) -> list[str]:
    lines = ["", title]
    lines += [f"  {number(count):>9}  {shown(label)}{f'  ({note})' if note else ''}" for label, count, note in rows]
    hidden = 0 if tally is None else len(tally.counts) - len(rows)
    return lines + ([f"             … and {number(hidden)} more"] if hidden > 0 else [])
