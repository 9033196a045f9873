"""The memory prediction against what was measured on an H200, and against peft's own count of adapters."""

import json
from dataclasses import fields, replace
from pathlib import Path

import pytest
import torch
from benchmarks.memory import ALL, HELD_OUT, QV, RUNS, TOWER_LORA, Run, config_of, page, predict, spec_of

from tao_runtime.config.policy import LoraSection
from tao_runtime.plan.memory import BatchShape, adapter_parameters, predict_memory
from tao_runtime.plan.shape import shape_of

DOCS = Path(__file__).resolve().parents[2] / "docs"
MEASURED = json.loads((DOCS / "evidence" / "memory_h200.json").read_text())
BY_NAME = {run.name: run for run in (*RUNS, *HELD_OUT)}
BASE = RUNS[0]


@pytest.mark.parametrize("row", MEASURED["runs"], ids=lambda row: row["name"])
def test_the_prediction_is_within_ten_percent_of_the_measured_peak(row):
    run = BY_NAME[row["name"]]
    assert all(getattr(run, f.name) in (row[f.name], tuple(row[f.name]) if f.name == "texts" else ()) for f in fields(Run))
    assert predict(run).peak_bytes == pytest.approx(row["peak"], rel=0.1)


def test_the_measured_runs_are_the_ones_that_were_asked_for():
    assert {row["name"] for row in MEASURED["runs"]} == set(BY_NAME)
    assert len({row["size"] for row in MEASURED["runs"]}) >= 2
    assert {(row["lora"] is None, row["checkpointing"]) for row in MEASURED["runs"]} == {(a, b) for a in (0, 1) for b in (0, 1)}


def test_the_page_is_what_the_figures_give():
    assert (DOCS / "memory.md").read_text() == page(MEASURED)


@pytest.mark.parametrize(
    "values", [ALL, QV, TOWER_LORA, {"r": 8, "r_pattern": {r"layers\.[0-3]\.": 4, "mlp": 2}, "target_modules": "all-linear"}]
)
def test_adapters_are_counted_as_peft_counts_them(values):
    from transformers import AutoConfig, Qwen3VLForConditionalGeneration

    from tao_runtime.models.adapters import add_lora

    config, lora = config_of("2b"), LoraSection.model_validate(values)
    with torch.device("meta"):
        model = Qwen3VLForConditionalGeneration(AutoConfig.for_model(config.pop("model_type"), **config))
        adapted = add_lora(model, lora)
    wanted = sum(p.numel() for p in adapted.parameters() if p.requires_grad)
    assert adapter_parameters(lora, shape_of(config_of("2b"))) == wanted


def peak(run, **changes):
    return predict(replace(run, **changes)).peak_bytes


def test_what_needs_more_is_predicted_to_need_more():
    assert peak(BASE, checkpointing=False) > peak(BASE)
    assert peak(BASE, micro_batch=8) > peak(BASE)
    assert peak(BASE, lora=None) > peak(BASE) > peak(BASE, lora=QV)
    full = replace(BASE, size="2b", lora=None)
    assert peak(full, accumulation=2) > peak(full, impl="fused")
    assert peak(full) - peak(full, impl="fused") > 2**30
    assert peak(full, master="bfloat16") < peak(full) / 1.8


def test_the_terms_are_those_of_the_fullest_moment():
    plan = predict(BASE)
    assert sum(plan.terms.values()) == plan.peak_bytes == max(plan.by_moment.values()) == plan.by_moment[plan.moment]
    assert plan.terms["weights"] == pytest.approx(8.767e9 * 2 + 174587904 * 4, rel=1e-3)
    assert plan.device_bytes > plan.peak_bytes


def test_a_batch_without_media_has_no_term_of_the_tower():
    batch = BatchShape(rows=2, length=512, answer_tokens=64, patches=0, is_padded=False)
    plan = predict_memory(spec_of(BASE), shape_of(config_of("8b")), batch)
    assert not [name for name in plan.terms if "tower" in name or "block" in name]
