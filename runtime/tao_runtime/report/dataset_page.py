"""Draw a data set on one self-contained page: figures, distributions, and a contact sheet of what the model will see."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from tao_runtime.report.page import render_document, section
from tao_runtime.report.text import escape, isolated, number, path_text, percent

LABEL_CHARS, TEXT_CHARS, PATH_CHARS = 90, 300, 140

DATASET_STYLE = """
.bars-grid { display: grid; grid-template-columns: repeat(auto-fit, minmax(300px, 1fr)); gap: 24px 32px; }
.bars-grid > * { min-width: 0; }
.bars { font-size: 13.5px; table-layout: fixed; }
.bars th, .bars td { border: 0; padding: 3px 0; vertical-align: middle; }
.bars th { width: 42%; padding-right: 12px; font-weight: 400; }
.bars.wide th { width: 62%; }
.bars .num { width: 92px; padding-left: 10px; }
.bar { height: 10px; border-radius: 3px; background: var(--train); width: max(calc(var(--share) * 100%), 2px); }
.fields td, .fields th, .odd td, .odd th { padding: 6px 10px 6px 0; font-size: 13.5px; }
.sheet { display: grid; gap: 14px; }
.example { background: var(--surface); border: 1px solid var(--rule); border-radius: 10px; padding: 14px 16px; min-width: 0;
  break-inside: avoid; }
.example h3 { justify-content: flex-start; gap: 2px 10px; }
.odd { overflow-wrap: anywhere; }
.odd th { width: 26%; }
.cannot-list { margin: 0; padding-left: 18px; font-size: 13.5px; }
.frames-row { list-style: none; display: flex; flex-wrap: wrap; gap: 8px; padding: 0; margin: 8px 0 6px; }
.frames-row img { display: block; max-width: 100%; height: auto; border-radius: 4px; background: #0b0d11; }
.frames-row span { display: block; font-size: 11.5px; color: var(--soft); padding-top: 2px; white-space: nowrap;
  font-variant-numeric: tabular-nums; }
.cannot { color: var(--bad); }
.texts { display: grid; grid-template-columns: max-content 1fr; gap: 2px 12px; margin: 8px 0 0; font-size: 14px; }
.texts dt { color: var(--soft); }
.texts dd { margin: 0; white-space: pre-line; }
@media screen and (max-width: 560px) { .frames-row li { width: calc(50% - 4px); } .frames-row img { width: 100%; } }
"""


@dataclass(frozen=True, slots=True)
class Bars:
    """Counts under a heading.

    Attributes:
        title: heading.
        rows: label and count.
        total: what counts are shares of.
        note: what a reader must know.
        wide: labels are long.
    """

    title: str
    rows: Sequence[tuple[str, int]]
    total: int
    note: str = ""
    wide: bool = False


@dataclass(frozen=True, slots=True)
class FramePicture:
    """One frame as JPEG, and what stands under it."""

    jpeg: bytes
    caption: str


@dataclass(frozen=True, slots=True)
class Strip:
    """One media file of a record.

    Attributes:
        media: its name in the record.
        source: what the file is.
        model: what the model gets of it.
        scaled: how pictures differ in size from what the model gets; empty = not at all.
        pictures: frames in order.
        note: why there are none.
    """

    media: str
    source: str = ""
    model: str = ""
    scaled: str = ""
    pictures: tuple[FramePicture, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Example:
    """One record of the contact sheet."""

    record_index: int
    record_id: str
    label: str
    question: str
    answer: str
    strips: tuple[Strip, ...]


@dataclass(frozen=True, slots=True)
class DatasetView:
    """Everything on the page.

    Attributes:
        title, version, made_at: heading, this program's version, and when.
        source: the annotation file.
        tiles: name, value and note of the large figures.
        groups: name, heading, bars and note of each section of distributions.
        fields: key, records that have it and its types.
        odd: what stands out, its value, and where.
        faults: what can't be used, and why.
        examples: the contact sheet.
        sheet_note: how it was drawn, and by which sampling.
    """

    title: str
    version: str
    made_at: datetime
    source: str
    tiles: Sequence[tuple[str, str, str]]
    groups: Sequence[tuple[str, str, Sequence[Bars], str]]
    fields: Sequence[tuple[str, int, str]]
    num_records: int
    odd: Sequence[tuple[str, str, str]]
    faults: Sequence[str]
    examples: Sequence[Example]
    sheet_note: str


def dataset_page(view: DatasetView) -> str:
    """Return the page as HTML."""
    body = [f'<p class="sub">{path_text(view.source)}</p>', _tiles(view.tiles)]
    for name, title, bars, note in view.groups:
        body.append(section(name, title, _bars_grid(bars) + _note(note)))
    body.append(section("fields", "Fields", _fields(view)))
    if view.odd:
        body.append(section("odd", "Records and files that stand out", _odd(view.odd)))
    if view.faults:
        items = "".join(f"<li>{isolated(fault, TEXT_CHARS)}</li>" for fault in view.faults)
        body.append(section("faults", "What can't be used", f'<ul class="cannot-list">{items}</ul>'))
    if view.examples:
        sheet = "".join(map(_example, view.examples))
        body.append(section("sheet", "As the model will see them", f'<div class="sheet">{sheet}</div>', panel=False))
        body.append(_note(view.sheet_note))
    return render_document(view.title, view.version, view.made_at, "".join(body), DATASET_STYLE)


def _tiles(tiles: Sequence[tuple[str, str, str]]) -> str:
    drawn = "".join(
        f'<div class="tile"><div class="tile-name">{escape(name)}</div><div class="tile-value">{escape(value)}</div>'
        f'<div class="tile-note">{escape(note)}</div></div>'
        for name, value, note in tiles
    )
    return f'<div class="tiles">{drawn}</div>'


def _note(note: str) -> str:
    return f'<p class="legend">{escape(note)}</p>' if note else ""


def _bars_grid(groups: Sequence[Bars]) -> str:
    return f'<div class="bars-grid">{"".join(map(_bars, groups))}</div>'


def _bars(bars: Bars) -> str:
    most = max((count for _, count in bars.rows), default=0) or 1
    rows = "".join(
        f'<tr><th scope="row">{isolated(label, LABEL_CHARS)}</th>'
        f"<td>{_bar(count / most)}</td>"
        f'<td class="num">{number(count)} <span class="sub">{_share(count, bars.total)}</span></td></tr>'
        for label, count in bars.rows
    )
    wide = " wide" if bars.wide else ""
    return f'<div><h3>{escape(bars.title)}</h3><table class="bars{wide}"><tbody>{rows}</tbody></table>{_note(bars.note)}</div>'


def _bar(share: float) -> str:
    return f'<div class="bar" style="--share:{share:.4f}"></div>' if share else ""


def _share(count: int, total: int) -> str:
    return percent(count / total if total else None)


def _fields(view: DatasetView) -> str:
    rows = "".join(
        f'<tr><th scope="row">{isolated(key, LABEL_CHARS)}</th><td class="num">{number(count)}</td>'
        f'<td class="num">{_share(count, view.num_records)}</td><td>{escape(types)}</td></tr>'
        for key, count, types in view.fields
    )
    head = '<th scope="col">key</th><th scope="col" class="num">records</th><th scope="col" class="num">share</th>'
    return (
        f'<div class="scroll"><table class="fields"><thead><tr>{head}<th scope="col">types</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _odd(odd: Sequence[tuple[str, str, str]]) -> str:
    rows = "".join(
        f'<tr><th scope="row">{escape(what)}</th><td>{isolated(value, TEXT_CHARS)}</td>'
        f"<td>{path_text(where, PATH_CHARS)}</td></tr>"
        for what, value, where in odd
    )
    head = '<th scope="col">what</th><th scope="col">value</th><th scope="col">where</th>'
    return f'<div class="scroll"><table class="odd"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def _example(example: Example) -> str:
    strips = "".join(map(_strip, example.strips)) or '<p class="sub">text only</p>'
    return (
        f'<article class="example"><h3>{isolated(example.record_id, 60)} '
        f'<span class="chip">{isolated(example.label, 40)}</span>'
        f' <span class="sub">record {example.record_index}</span></h3>{strips}'
        f'<dl class="texts"><dt>question</dt><dd>{isolated(example.question.strip(), TEXT_CHARS)}</dd>'
        f"<dt>answer</dt><dd>{isolated(example.answer.strip(), TEXT_CHARS)}</dd></dl></article>"
    )


def _strip(strip: Strip) -> str:
    name = path_text(strip.media, PATH_CHARS)
    if not strip.pictures:
        return f'<p class="sub">{name}</p><p class="cannot">{isolated(strip.note, TEXT_CHARS)}</p>'
    frames = "".join(
        f'<li><img src="data:image/jpeg;base64,{base64.b64encode(picture.jpeg).decode("ascii")}" '
        f'alt="{escape(picture.caption)}"><span>{escape(picture.caption)}</span></li>'
        for picture in strip.pictures
    )
    facts = " · ".join(escape(part) for part in (strip.model, strip.scaled) if part)
    return (
        f'<p class="sub">{name} <span>({escape(strip.source)})</span></p>'
        f'<ul class="frames-row">{frames}</ul><p class="sub">{facts}</p>'
    )
