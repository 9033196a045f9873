"""Say in names and values what a run and its evaluations were: for the end of a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tao_runtime.report.content import EvaluationView, FactGroup
from tao_runtime.report.text import duration, number, percent
from tao_runtime.status.follow import RunHistory


def run_facts(history: RunHistory) -> list[FactGroup]:
    """Return model, data, schedule, choices and result of a training run, as events.jsonl has them."""
    started = _last(history, "run_started")
    finished = _last(history, "run_finished")
    plan, parameters = _mapping(started.get("plan")), _mapping(started.get("parameters"))
    lora = parameters.get("lora")
    model = {
        "model": parameters.get("model"),
        "commit": parameters.get("model_commit"),
        "parameters": _counted(parameters.get("parameters")),
        "trainable": _counted(parameters.get("trainable_parameters")),
        "adapter": _pairs(lora) if isinstance(lora, dict) else "none, all weights are tuned",
        "optimizer": _text(parameters.get("optimizer")),
        "learning rate": _joined(parameters.get("lr"), parameters.get("decay")),
        "gradient clipped at": _text(parameters.get("grad_norm_clip")),
        **{name: _text(value) for name, value in _mapping(parameters.get("choices")).items() if name != "samples"},
    }
    run = {
        "records": _joined(plan.get("num_train_records"), "to train,", plan.get("num_val_records") or "none", "to validate"),
        "batch": _text(plan.get("global_batch")),
        "steps": _joined(plan.get("total_steps"), "in", plan.get("num_epochs"), "epochs"),
        "warm-up steps": _text(plan.get("warmup_steps")),
        "loss": _arrow(finished.get("first_loss"), finished.get("last_loss")),
        "validation loss": _figure(finished.get("validation_loss")),
        "time": duration(finished["seconds"]) if isinstance(finished.get("seconds"), int | float) else "not finished",
        "started": _text(started.get("time")),
        "starts of the run": _text(len(history.run_ids)),
        "exported model": _text(finished.get("export")),
        "folder": _text(started.get("run_dir")),
    }
    return [FactGroup("Model", _known(model)), FactGroup("Training", _known(run))]


def evaluation_facts(evaluations: Sequence[EvaluationView]) -> list[FactGroup]:
    """Return what was asked, and of whom: what all evaluations share once, then what is each one's own."""
    each = [_evaluation(view.summary) for view in evaluations]
    if len(each) < 2:
        return [FactGroup(f"Evaluation: {view.name}", _known(facts)) for view, facts in zip(evaluations, each, strict=True)]
    common = {name: value for name, value in each[0].items() if all(facts.get(name) == value for facts in each)}
    groups = [FactGroup("All evaluations", _known(common))] if common else []
    for view, facts in zip(evaluations, each, strict=True):
        own = {name: value for name, value in facts.items() if name not in common}
        groups.append(FactGroup(f"Evaluation: {view.name}", _known(own)))
    return groups


def _evaluation(summary: Mapping[str, Any]) -> dict[str, Any]:
    model, run, task = (_mapping(summary.get(key)) for key in ("model", "run", "task"))
    policies = _mapping(_mapping(summary.get("score")).get("policies"))
    generation = _mapping(summary.get("generation"))
    soft = _mapping(summary.get("soft_accuracy"))
    return {
        "model": model.get("model_name"),
        "base model": model.get("base_model_path"),
        "precision": _joined(model.get("dtype"), "on", run.get("device")),
        "questions": _mapping(summary.get("dataset")).get("annotation_path"),
        "task": task.get("type") or "general",
        "policy": ", ".join(policies),
        "frames": _pairs(_mapping(summary.get("vision"))),
        "longest answer": _joined(generation.get("max_tokens"), "tokens"),
        "cut off": _text(summary.get("num_cut_off")),
        "not answered": _text(run.get("num_unanswered")),
        "equal text": _share(_mapping(summary.get("exact"))),
        "soft accuracy": _joined(_share(soft), "at word overlap of", soft.get("f1_threshold")),
        "time": duration(run["seconds"]) if isinstance(run.get("seconds"), int | float) else None,
        "versions": _pairs(_mapping(run.get("versions"))),
    }


def _last(history: RunHistory, name: str) -> Mapping[str, Any]:
    return next((event for event in reversed(history.others) if event.get("event") == name), {})


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _known(facts: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple((name, str(value)) for name, value in facts.items() if value is not None and str(value) != "")


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _counted(value: Any) -> str | None:
    return number(value) if isinstance(value, int) else None


def _figure(value: Any) -> str | None:
    return number(value) if isinstance(value, int | float) else None


def _share(figures: Mapping[str, Any]) -> str | None:
    return percent(figures["accuracy"]) if isinstance(figures.get("accuracy"), int | float) else None


def _arrow(first: Any, last: Any) -> str | None:
    return None if _figure(first) is None or _figure(last) is None else f"{_figure(first)} → {_figure(last)}"


def _joined(*parts: Any) -> str | None:
    """Join figures and words; None when a figure is missing."""
    return None if any(part is None for part in parts) else " ".join(str(part) for part in parts)


def _pairs(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in values.items() if value is not None)
