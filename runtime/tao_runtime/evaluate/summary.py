"""Turn answers into the rows of results.json and the figures of metrics_summary.json. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tao_runtime.config.evaluate import EvaluateSpec
from tao_runtime.evaluate.answers import WORDS, Judgement, Policy, Verdict, choose_policies, final_answer, judge
from tao_runtime.evaluate.saved import SavedAnswer
from tao_runtime.evaluate.score import MAX_LABELS, score, soft_accuracy, wilson
from tao_runtime.media.annotations import Record

SCHEMA_VERSION = "1.0"


def judge_answers(spec: EvaluateSpec, pairs: Sequence[tuple[Record, SavedAnswer]]) -> list[Judgement]:
    """Judge every answer by the policy that task, answer type and truths ask for."""
    policies = choose_policies([record.answer for record, _ in pairs], spec.task.type, spec.evaluation.answer_type)
    return [
        judge(_final(spec, answer.response), record.answer, policy)
        for (record, answer), policy in zip(pairs, policies, strict=True)
    ]


def result_rows(pairs: Sequence[tuple[Record, SavedAnswer]], judgements: Sequence[Judgement]) -> list[dict[str, Any]]:
    """Return the rows of results.json: the four keys of its contract, then what was found."""
    return [
        {
            "video_id": record.media[0].path if record.media else record.id,
            "question": record.question,
            "response": answer.response,
            "gt": record.answer,
            "id": record.id,
            "index": record.index,
            "policy": judgement.policy.versioned,
            "verdict": str(judgement.verdict),
            "answer": judgement.answer,
            "truth": judgement.truth,
            "error_type": None if judgement.error_type is None else str(judgement.error_type),
            "reason": judgement.reason,
            "num_tokens": answer.num_tokens,
            "finish": answer.finish,
            "likeliest": answer.likeliest,
        }
        for (record, answer), judgement in zip(pairs, judgements, strict=True)
    ]


def metrics_summary(
    spec: EvaluateSpec,
    pairs: Sequence[tuple[Record, SavedAnswer]],
    judgements: Sequence[Judgement],
    run: Mapping[str, Any],
) -> dict[str, Any]:
    """Return metrics_summary.json: what was asked, of whom, how it was judged, and every figure.

    Args:
        spec: the evaluate spec.
        pairs: records and their answers.
        judgements: one for each pair.
        run: facts of the run itself.
    """
    texts = [(_final(spec, answer.response), record.answer) for record, answer in pairs]
    soft = spec.evaluation.soft_accuracy
    return {
        "schema_version": SCHEMA_VERSION,
        "task": {"type": spec.task.type, "answer_type": spec.evaluation.answer_type},
        "model": spec.model.model_dump(mode="json", exclude={"save_folder"}),
        "dataset": spec.dataset.model_dump(mode="json"),
        "vision": spec.vision.model_dump(mode="json", exclude_none=True),
        "generation": spec.generation.model_dump(mode="json"),
        "score": score(judgements),
        "exact": exact_figures([(answer.response, record.answer) for record, answer in pairs]),
        "soft_accuracy": soft_accuracy(texts, soft.f1_threshold) if soft.enabled else None,
        "closed_choice": closed_choice(pairs),
        "num_cut_off": sum(answer.finish == "length" for _, answer in pairs),
        "run": dict(run),
    }


def exact_figures(pairs: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Return accuracy by the rule of the gap analysis, so that both can be compared."""
    right = sum(judge(response, truth, Policy.LOWER_STRIP).verdict is Verdict.CORRECT for response, truth in pairs)
    share = wilson(right, len(pairs))
    return {
        "policy": Policy.LOWER_STRIP.versioned,
        "num_correct": right,
        "accuracy": share.value,
        "accuracy_low": share.low,
        "accuracy_high": share.high,
    }


def choices_of(spec: EvaluateSpec, truths: Sequence[str]) -> list[str]:
    """Return the closed set that the truths come from, empty when they are free text: a task's own words, else the truths."""
    distinct = sorted({truth.strip() for truth in truths})
    words = WORDS[Policy.DIRECTIONALITY]
    if spec.task.type == "its_directionality" and set(distinct) <= set(words):
        return list(words)
    return distinct if len(distinct) <= MAX_LABELS else []


def closed_choice(pairs: Sequence[tuple[Record, SavedAnswer]]) -> dict[str, Any] | None:
    """Return how often the truth was the likeliest of the closed set; None when no choice was noted.

    This is what a model knows apart from the form of its answers: one that was never trained gives no valid word and is at
    chance here.
    """
    noted = [(record, answer) for record, answer in pairs if answer.likeliest is not None]
    if not noted:
        return None
    share = wilson(sum(answer.likeliest == record.answer.strip() for record, answer in noted), len(noted))
    figures = {"accuracy": share.value, "accuracy_low": share.low, "accuracy_high": share.high}
    return {"num_scored": share.total, "num_correct": share.count, **figures}


def _final(spec: EvaluateSpec, response: str) -> str:
    return final_answer(response) if spec.evaluation.answer_type == "reasoning" else response
