"""Draw failures as cards with the frames that the model saw."""

from __future__ import annotations

import base64

from tao_runtime.report.content import FailuresView, FailureView
from tao_runtime.report.text import escape, isolated, number, path_text, plural

QUESTION_CHARS, ANSWER_CHARS, PATH_CHARS = 240, 160, 140


def failure_gallery(failures: FailuresView) -> str:
    """Return the counts by kind and a card for each failure that is shown."""
    if failures.total == 0:
        return '<p class="lead">No failures: every response is right' + _by(failures) + ".</p>"
    kinds = "".join(
        f'<li><span class="chip">{_words(kind)}</span> {number(count)}</li>'
        for kind, count in failures.by_type.items()
        if count
    )
    shown = len(failures.shown)
    turns = ", kinds taking turns" if len(failures.by_type) > 1 else ""
    all_of_them = "" if shown == failures.total else f" {number(shown)} of them are shown{turns}."
    lead = f"{plural(failures.total, 'failure')}{_by(failures)}.{all_of_them}"
    cards = "".join(_card(failure) for failure in failures.shown)
    return f'<p class="lead">{lead}</p><ul class="kinds">{kinds}</ul><div class="cards">{cards}</div>'


def _by(failures: FailuresView) -> str:
    return f" by the rule {escape(failures.policy)}" if failures.policy else ""


def _card(failure: FailureView) -> str:
    name = failure.media.replace("\\", "/").rpartition("/")[2] or failure.media
    title = failure.record_id or name
    response = isolated(failure.response, ANSWER_CHARS) if failure.response.strip() else '<span class="sub">(empty)</span>'
    return (
        f'<article class="card">{_picture(failure, name)}<div class="card-body">'
        f'<h3>{isolated(title, 60)} <span class="chip">{_words(failure.error_type)}</span></h3>'
        f'<p class="question">{isolated(failure.question, QUESTION_CHARS)}</p>'
        f'<dl class="pair"><dt>truth</dt><dd class="good">{isolated(failure.truth, ANSWER_CHARS)}</dd>'
        f'<dt>response</dt><dd class="bad">{response}</dd></dl>'
        f'<p class="sub">{path_text(failure.media, PATH_CHARS)}</p></div></article>'
    )


def _picture(failure: FailureView, name: str) -> str:
    if failure.frames_jpeg is None:
        return f'<div class="no-picture">{escape(failure.note or "no picture", 200)}</div>'
    data = base64.b64encode(failure.frames_jpeg).decode("ascii")
    alt = escape(f"{plural(failure.num_frames, 'frame')} of {name}, in order from left to right", 200)
    return f'<img class="frames" src="data:image/jpeg;base64,{data}" alt="{alt}">'


def _words(kind: str) -> str:
    return escape(kind.replace("_", " "))
