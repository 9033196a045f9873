"""Draw evaluations: tiles, the table with intervals, confusion matrices, and figures by answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tao_runtime.report.content import EvaluationView
from tao_runtime.report.text import NOTHING, escape, interval, isolated, number, path_text, percent, plural

STRIP_WIDTH, STRIP_HEIGHT, STRIP_MARGIN = 200, 24, 8
LABEL_CHARS = 28


def tiles(evaluations: Sequence[EvaluationView], limit: int = 4) -> str:
    """Return the accuracy of the first evaluations, large."""
    return "".join(
        f'<div class="tile"><div class="tile-name">{isolated(view.name, 60)}</div>'
        f'<div class="tile-value">{percent(view.score["accuracy"])}</div>'
        f'<div class="tile-note">95 % interval {interval(view.score["accuracy_low"], view.score["accuracy_high"])}</div></div>'
        for view in evaluations[:limit]
    )


def metrics_table(evaluations: Sequence[EvaluationView]) -> str:
    """Return one row an evaluation: accuracy with its interval drawn, and what else was measured."""
    has_choice = any(view.summary.get("closed_choice") for view in evaluations)
    heads = ["evaluation", "questions", "accuracy, 95 % Wilson interval", "balanced", "macro F1"]
    heads += ["likeliest answer"] * has_choice + ["unparseable", "best constant"]
    head = "".join(f'<th scope="col"{_numeric(place)}>{name}</th>' for place, name in enumerate(heads))
    rows = "".join(_metrics_row(view, has_choice=has_choice) for view in evaluations)
    return (
        f'<div class="scroll"><table class="metrics"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
        '<p class="legend">Dot: accuracy. Bar: 95 % interval. Tick: what always giving the commonest answer would reach. '
        "An unparseable response counts as wrong."
        + (
            " Likeliest answer: how often the truth begins with the likeliest of the possible answers’ first tokens."
            * has_choice
        )
        + "</p>"
    )


def short_path(path: str) -> str:
    """Return the last two parts of a path, after an ellipsis where there are more."""
    parts = path.replace("\\", "/").rstrip("/").split("/")
    return path if len(parts) <= 2 else "…/" + "/".join(parts[-2:])


def _numeric(place: int) -> str:
    return "" if place in (0, 2) else ' class="num"'


def _metrics_row(view: EvaluationView, *, has_choice: bool) -> str:
    score, choice, best = view.score, view.summary.get("closed_choice"), view.score["best_constant"]
    source = f'<div class="sub" title="{escape(view.source)}">{path_text(short_path(view.source), 70)}</div>'
    cells = [
        f'<th scope="row">{isolated(view.name, 80)}{source}</th>',
        f'<td class="num">{number(score["num_scored"])}</td>',
        f'<td><div class="acc"><span class="num-inline">{percent(score["accuracy"])}</span>{interval_strip(score)}</div></td>',
        f'<td class="num">{percent(score["balanced_accuracy"])}</td>',
        f'<td class="num">{percent(score["macro_f1"])}</td>',
    ]
    if has_choice:
        cells.append(f'<td class="num">{percent(choice["accuracy"]) if choice else NOTHING}</td>')
    constant = f'{percent(best["accuracy"])}<div class="sub">{isolated(best["answer"], LABEL_CHARS)}</div>' if best else NOTHING
    cells += [f'<td class="num">{number(score["num_unparseable"])}</td>', f'<td class="num">{constant}</td>']
    return f"<tr>{''.join(cells)}</tr>"


def interval_strip(score: Mapping[str, Any]) -> str:
    """Return accuracy as a dot on a line from 0 to 100 %, with its interval and the best constant answer."""
    if score["accuracy"] is None:
        return ""
    middle = STRIP_HEIGHT / 2

    def place(share: float) -> str:
        return f"{STRIP_MARGIN + share * (STRIP_WIDTH - 2 * STRIP_MARGIN):.1f}"

    low, high, best = place(score["accuracy_low"]), place(score["accuracy_high"]), score["best_constant"]
    words = f"accuracy {percent(score['accuracy'])}, interval {interval(score['accuracy_low'], score['accuracy_high'])}"
    parts = [
        f'<svg class="strip" viewBox="0 0 {STRIP_WIDTH} {STRIP_HEIGHT}" role="img" aria-label="{words}">',
        f'<line class="grid" x1="{place(0)}" y1="{middle}" x2="{place(1)}" y2="{middle}"/>',
        *(f'<line class="grid" x1="{place(s)}" y1="{middle - 3}" x2="{place(s)}" y2="{middle + 3}"/>' for s in (0, 0.5, 1)),
    ]
    if best:
        at = place(best["accuracy"])
        parts.append(f'<line class="chance" x1="{at}" y1="{middle - 8}" x2="{at}" y2="{middle + 8}"/>')
    parts.append(f'<line class="whisker" x1="{low}" y1="{middle}" x2="{high}" y2="{middle}"/>')
    parts.append(f'<circle class="dot train" cx="{place(score["accuracy"])}" cy="{middle}" r="4"/></svg>')
    return "".join(parts)


def confusion_tables(evaluations: Sequence[EvaluationView]) -> str:
    """Return every confusion matrix, side by side where there is room."""
    tables = [
        _confusion_table(view.name, group)
        for view in evaluations
        for group in view.score["groups"]
        if group["confusion"] is not None
    ]
    return f'<div class="matrices">{"".join(tables)}</div>' if tables else ""


def _confusion_table(name: str, group: Mapping[str, Any]) -> str:
    confusion = group["confusion"]
    labels, columns = confusion["labels"], confusion["columns"]
    heads = "".join(f'<th scope="col">{isolated(column, LABEL_CHARS)}</th>' for column in columns)
    rows = "".join(_confusion_row(label, columns, row) for label, row in zip(labels, confusion["counts"], strict=True))
    return (
        f'<div class="scroll"><table class="matrix"><caption>{isolated(name, 60)}'
        f' <span class="sub">{escape(group["policy"])}</span></caption>'
        f'<thead><tr><td></td><th scope="colgroup" colspan="{len(columns)}" class="axis-name">answer</th></tr>'
        f'<tr><th scope="col" class="axis-name">truth</th>{heads}</tr></thead><tbody>{rows}</tbody></table></div>'
    )


def _confusion_row(label: str, columns: Sequence[str], counts: Sequence[int]) -> str:
    support = sum(counts)
    cells = []
    for column, count in zip(columns, counts, strict=True):
        share = count / support if support else 0.0
        kind = "right" if column == label else "wrong"
        note = f'<div class="sub">{percent(share, 0 if share == 1 else 1)}</div>' if count else ""
        cells.append(f'<td class="cell {kind}" style="--share:{share:.3f}">{number(count)}{note}</td>')
    return f'<tr><th scope="row">{isolated(label, LABEL_CHARS)}</th>{"".join(cells)}</tr>'


def label_tables(evaluations: Sequence[EvaluationView]) -> str:
    """Return precision, recall and F1 of every answer, and TP, FP, TN, FN where answers are yes and no."""
    tables = [_label_table(view.name, group) for view in evaluations for group in view.score["groups"] if group["labels"]]
    return f'<div class="matrices">{"".join(tables)}</div>' if tables else ""


def _label_table(name: str, group: Mapping[str, Any]) -> str:
    heads = ("answer", "truths", "answered", "precision", "recall", "F1")
    head = "".join(f'<th scope="col"{"" if place == 0 else " class=num"}>{word}</th>' for place, word in enumerate(heads))
    rows = "".join(
        f'<tr><th scope="row">{isolated(label["label"], LABEL_CHARS)}</th>'
        + "".join(f'<td class="num">{number(label[key])}</td>' for key in ("support", "answered"))
        + "".join(f'<td class="num">{percent(label[key])}</td>' for key in ("precision", "recall", "f1"))
        + "</tr>"
        for label in group["labels"]
    )
    binary = group.get("binary")
    note = "" if binary is None else f'<p class="legend">{_binary_words(binary)}</p>'
    return (
        f'<div class="scroll"><table class="labels"><caption>{isolated(name, 60)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{note}</div>"
    )


def _binary_words(binary: Mapping[str, Any]) -> str:
    counts = ", ".join(f"{key.upper()} {number(binary[key])}" for key in ("tp", "fp", "tn", "fn"))
    lost = binary["unparseable_positive"] + binary["unparseable_negative"]
    return f"Yes is the positive answer: {counts}; {plural(lost, 'response')} could not be read."
