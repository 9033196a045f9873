"""Turn answers into the rows of results.json and the figures of metrics_summary.json. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tao_runtime.config.evaluate import EvaluateSpec
from tao_runtime.evaluate.answers import Judgement, Policy, Verdict, choose_policies, final_answer, judge
from tao_runtime.evaluate.saved import SavedAnswer
from tao_runtime.evaluate.score import score, soft_accuracy, wilson
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
        "choices": spec.native.choices,
        "score": score(judgements),
        "exact": exact_figures([(answer.response, record.answer) for record, answer in pairs]),
        "soft_accuracy": soft_accuracy(texts, soft.f1_threshold) if soft.enabled else None,
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


def _final(spec: EvaluateSpec, response: str) -> str:
    return final_answer(response) if spec.evaluation.answer_type == "reasoning" else response
