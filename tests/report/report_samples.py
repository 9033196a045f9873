"""Small reports for tests, with texts as hostile as data sets can be."""

import io
from datetime import UTC, datetime

from PIL import Image

from tao_runtime.evaluate.answers import Policy, judge
from tao_runtime.evaluate.score import score
from tao_runtime.report.content import EvaluationView, FactGroup, FailuresView, FailureView, Report, TrainingView

HOSTILE = (
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)> 'quoted'",
    "</style></svg></title><iframe src=http://127.0.0.1:9/></iframe>",
    "&lt;b&gt; &amp; \x00\x1b[31m \u202e reversed \ud83d\ude00",
    "<link rel=stylesheet href=http://127.0.0.1:9/a.css>",
    "word" * 500,
)
MADE_AT = datetime(2026, 12, 1, 9, 30, tzinfo=UTC)


def jpeg() -> bytes:
    """Return a small picture."""
    buffer = io.BytesIO()
    Image.new("RGB", (64, 24), (90, 120, 160)).save(buffer, "JPEG")
    return buffer.getvalue()


def evaluation(name="after training", pairs=(("left", "left"), ("right", "left"), ("hm", "right")), **summary):
    """Return an evaluation of `(response, truth)` pairs."""
    judgements = [judge(response, truth, Policy.DIRECTIONALITY) for response, truth in pairs]
    return EvaluationView(name, "data/validation/annotations.json", {"score": score(judgements), **summary})


def failure(text="left", **changes):
    """Return a failure whose every text is `text`."""
    values = {"media": text, "record_id": text, "question": text, "truth": text, "response": text, "reason": text}
    return FailureView(**{**values, "error_type": "wrong_choice", "frames_jpeg": jpeg(), "num_frames": 4, **changes})


def training(num_steps=120):
    """Return curves."""
    steps = tuple(float(step) for step in range(1, num_steps + 1))
    loss = tuple(None if step == 7 else 3.0 / step for step in steps)
    every = steps[29::30]
    return TrainingView((steps, loss), (every, tuple(4.0 / step for step in every)), (steps, steps), (steps, loss), 30)


def report(**parts):
    """Return a report with every part, changed by `parts`."""
    values = {
        "title": "Which way?",
        "made_at": MADE_AT,
        "version": "0.1.0",
        "training": training(),
        "evaluations": (evaluation("before"), evaluation(closed_choice={"accuracy": 0.5})),
        "failures": FailuresView(2, {"wrong_choice": 2}, (failure(), failure(frames_jpeg=None, note="it is missing"))),
        "facts": (FactGroup("Model", (("folder", "models/a"),)),),
    }
    return Report(**{**values, **parts})
