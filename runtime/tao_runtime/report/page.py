"""Draw one self-contained HTML page: no script, no request, every picture inside.

The page's own content security policy forbids both, so a text from a data set can't bring one in either;
`tests/report/test_browser.py` opens pages in a real browser and watches.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from tao_runtime.files import write_text
from tao_runtime.report.chart import Frame, Line, line_chart
from tao_runtime.report.content import EvaluationView, FactGroup, Report, TrainingView
from tao_runtime.report.figures import confusion_tables, label_tables, metrics_table, tiles
from tao_runtime.report.gallery import failure_gallery
from tao_runtime.report.style import STYLE
from tao_runtime.report.text import escape, isolated, path_text

POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
SIDE = Frame(width=360, height=128, left=52, bottom=34)


def render_page(report: Report) -> str:
    """Return the page as HTML."""
    body = "".join(
        [
            _results(report.evaluations),
            _training(report.training),
            _matrices(report.evaluations),
            "" if report.failures is None else section("failures", "Failures", failure_gallery(report.failures), panel=False),
            _facts(report.facts),
        ]
    )
    return render_document(
        report.title, report.version, report.made_at, body or '<p class="lead">There is nothing to show.</p>'
    )


def render_document(title: str, version: str, made_at: datetime, body: str, style: str = "") -> str:
    """Return a whole page in the house's style around a body.

    Args:
        title: heading, as plain text.
        version: of this program.
        made_at: when.
        body: HTML of the sections, everything in it escaped.
        style: what the page needs beyond the house's style sheet.
    """
    made = made_at.strftime("%Y-%m-%d %H:%M %Z").strip()
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<link rel="icon" href="data:,">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}{style}</style>\n</head>\n<body>\n<main>\n"
        f'<header><h1>{isolated(title)}</h1><p class="byline">tao-runtime {escape(version)}, {escape(made)}</p>'
        f"</header>\n{body}\n"
        '<footer class="sub">One file, no script, no request: it can be mailed, archived and printed as it is.</footer>\n'
        "</main>\n</body>\n</html>\n"
    )


def write_page(path: Path, report: Report) -> None:
    """Write the page, atomically.

    Raises:
        OSError: when it can't be written.
    """
    write_text(path, render_page(report))


def section(name: str, title: str, body: str, *, panel: bool = True) -> str:
    """Return a section with a heading; `name` is its id."""
    inner = f'<div class="panel">{body}</div>' if panel else body
    return f'<section aria-labelledby="{name}"><h2 id="{name}">{title}</h2>{inner}</section>\n'


def _results(evaluations: Sequence[EvaluationView]) -> str:
    if not evaluations:
        return ""
    return f'<div class="tiles">{tiles(evaluations)}</div>\n' + section(
        "evaluations", "Evaluations", metrics_table(evaluations)
    )


def _training(training: TrainingView | None) -> str:
    if training is None:
        return ""
    lines = [
        Line("training loss", training.loss, "train", smooth=True),
        Line("validation loss", training.validation, "validation", dots=True),
    ]
    keys = _key("train", "training") + (_key("validation", "validation") if training.validation[0] else "")
    main = f"<div><h3>Loss an answer token {keys}</h3>{line_chart('Loss an answer token', lines)}</div>"
    rate = line_chart("Learning rate", [Line("learning rate", training.lr, "neutral")], frame=SIDE)
    norm_line = Line("gradient norm", training.grad_norm, "neutral", smooth=True)
    norm = line_chart("Gradient norm before clipping", [norm_line], frame=SIDE)
    side = f"<div><h3>Learning rate</h3>{rate}</div><div><h3>Gradient norm before clipping</h3>{norm}</div>"
    epoch = f'<p class="legend">{training.steps_per_epoch} steps make an epoch.</p>' if training.steps_per_epoch else ""
    return section("training", "Training", f'<div class="curves">{main}<div class="side">{side}</div></div>{epoch}')


def _key(style: str, word: str) -> str:
    mark = f'<svg viewBox="0 0 22 8" aria-hidden="true"><line class="line {style}" x1="1" y1="4" x2="21" y2="4"/></svg>'
    return f'<span class="key">{mark}{word}</span>'


def _matrices(evaluations: Sequence[EvaluationView]) -> str:
    confusion, labels = confusion_tables(evaluations), label_tables(evaluations)
    note = '<p class="legend">Rows are truths and add up to 100 %. Blue: right. Orange: wrong.</p>'
    parts = section("confusion", "Which answer for which truth", confusion + note) if confusion else ""
    return parts + (section("answers", "Figures by answer", labels) if labels else "")


def _facts(groups: Sequence[FactGroup]) -> str:
    if not groups:
        return ""
    lists = "".join(
        f"<div><h3>{escape(group.title)}</h3><dl>"
        + "".join(f"<dt>{escape(name)}</dt><dd>{path_text(value, 400)}</dd>" for name, value in group.facts)
        + "</dl></div>"
        for group in groups
    )
    return section("facts", "Facts of the run", f'<div class="facts">{lists}</div>')
