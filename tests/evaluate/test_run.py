"""Evaluations through the real command: files, resume, shards, adapters, and every fault at once."""

import json
import shlex
import subprocess
import sys

import jsonschema
import pytest
import torch

from tao_runtime.cli.main import main
from tao_runtime.config.policy import LoraSection
from tao_runtime.environment import Environment
from tao_runtime.errors import TaoError
from tao_runtime.evaluate.run import run_evaluation
from tao_runtime.models.adapters import add_lora
from tao_runtime.models.export import save_adapter
from tao_runtime.models.load import load_model
from tao_runtime.spec.build import load_spec
from tao_runtime.status.follow import read_lines


def run(capsys, spec, *words):
    code = main(["evaluate", "--spec", str(spec), "--json", *words])
    return code, json.loads(capsys.readouterr().out)


def rows_of(folder):
    return json.loads((folder / "evaluation" / "results.json").read_text(encoding="utf-8"))


def test_files(capsys, tmp_path, write_spec, questions_dir, repository):
    code, document = run(capsys, write_spec())
    assert code == 0
    folder = tmp_path / "out" / "evaluation"
    rows = rows_of(tmp_path / "out")
    records = json.loads((questions_dir / "annotations.json").read_text(encoding="utf-8"))
    assert [row["id"] for row in rows] == [record["id"] for record in records]
    assert [row["video_id"] for row in rows[8:]] == ["clip_8.mp4", "still.png", "r10"]
    assert [row["gt"] for row in rows] == [record["conversations"][1]["value"] for record in records]
    assert "<video>" not in rows[0]["question"]
    schema = json.loads((repository / "schemas" / "results.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema).validate(rows)
    assert {row["policy"] for row in rows} == {"directionality@1"}
    summary = json.loads((folder / "metrics_summary.json").read_text(encoding="utf-8"))
    assert summary == document["data"]["summary"]
    assert summary["score"]["num_records"] == summary["closed_choice"]["num_scored"] == 11
    assert summary["run"]["num_unanswered"] == 0
    [matrix] = json.loads((folder / "confusion_matrix.json").read_text(encoding="utf-8"))["matrices"]
    assert sum(map(sum, matrix["counts"])) == 11
    last = read_lines(tmp_path / "out" / "status.json")[-1]
    assert (last["status"], last["kpi"]["accuracy"]) == ("SUCCESS", summary["score"]["accuracy"])


def test_results_that_are_not_wanted_are_not_written(capsys, tmp_path, write_spec):
    kinds = ("individual_results", "confusion_matrix", "metrics_summary")
    run(capsys, write_spec(**{f"results.save_{kind}": False for kind in kinds}, **{"evaluation.limit": 2}))
    assert [path.name for path in (tmp_path / "out" / "evaluation").iterdir()] == []


def test_limit_takes_the_first_records(capsys, tmp_path, write_spec):
    run(capsys, write_spec(**{"evaluation.limit": 3}))
    assert [row["index"] for row in rows_of(tmp_path / "out")] == [0, 1, 2]


def test_results_go_where_the_command_says(capsys, tmp_path, write_spec):
    _, document = run(capsys, write_spec(**{"evaluation.limit": 1}), "--results-dir", str(tmp_path / "other"))
    assert document["data"]["output_dir"] == str(tmp_path / "other" / "evaluation")
    assert len(rows_of(tmp_path / "other")) == 1


def test_saved_answers_are_kept_and_the_rest_is_asked(capsys, tmp_path, write_spec):
    run(capsys, write_spec())
    whole = rows_of(tmp_path / "out")
    answers = tmp_path / "out" / "evaluation" / "answers.jsonl"
    lines = answers.read_text(encoding="utf-8").splitlines(keepends=True)
    marked = lines[2].replace('"response": "', '"response": "kept ')
    # Killed in the middle of the sixth answer.
    answers.write_text("".join([*lines[:2], marked, *lines[3:6], lines[6][:20]]), encoding="utf-8")
    main(["evaluate", "--spec", str(write_spec(**{"evaluation.skip_saved": True}))])
    assert "11 questions, 5 of them answered before" in capsys.readouterr().err
    rows = rows_of(tmp_path / "out")
    assert rows[1]["response"] == f"kept {whole[1]['response']}"
    assert [row["response"] for row in rows[2:]] == [row["response"] for row in whole[2:]]
    main(["evaluate", "--spec", str(write_spec())])
    assert rows_of(tmp_path / "out") == whole


def test_answers_given_under_other_settings_are_asked_again(capsys, tmp_path, write_spec):
    run(capsys, write_spec())
    code, document = run(capsys, write_spec(**{"evaluation.skip_saved": True, "generation.max_tokens": 3}))
    assert code == 0
    assert [finding["code"] for finding in document["findings"]] == ["RUN_SAVED_ANSWERS_STALE"]
    assert all(row["num_tokens"] <= 3 for row in rows_of(tmp_path / "out"))


def test_shards_give_together_what_one_process_gives(capsys, tmp_path, write_spec):
    run(capsys, write_spec())
    whole = rows_of(tmp_path / "out")
    results = []
    for shard in (1, 0, 2):
        spec = write_spec(**{"num_gpus": 3, "evaluation.shard_id": shard, "results_dir": str(tmp_path / "shards")})
        _, document = run(capsys, spec)
        results.append(document["data"]["summary"])
    assert results[:2] == [None, None]
    assert rows_of(tmp_path / "shards") == whole
    assert results[2]["score"]["num_records"] == 11


def test_torchrun_s_variables_choose_the_shard(tmp_path, write_spec):
    spec = load_spec(write_spec(num_gpus=2), "evaluate")
    result = run_evaluation(spec, Environment(world_size=2, rank=1, local_rank=1), dry_run=True)
    assert [record.index for record in result.job.own_records] == [1, 3, 5, 7, 9]
    with pytest.raises(TaoError) as caught:
        run_evaluation(spec, Environment(world_size=3, rank=1, local_rank=1), dry_run=True)
    assert caught.value.findings[0].code == "SPEC_SHARD"


@pytest.fixture(scope="module")
def adapter_dir(tmp_path_factory, weights_dir):
    """An adapter that changes the answers."""
    model = add_lora(load_model(weights_dir), LoraSection(r=4, lora_alpha=32, target_modules=["q_proj", "v_proj", "down_proj"]))
    torch.manual_seed(0)
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.2)
    return save_adapter(model, tmp_path_factory.mktemp("adapter") / "epoch_1", weights_dir)


def test_merged_adapter_answers_as_the_unmerged_one(capsys, tmp_path, write_spec, adapter_dir, weights_dir, questions_dir):
    from tao_runtime.data.samples import SampleBuilder
    from tao_runtime.evaluate.generate import Answerer, BatchLimits
    from tao_runtime.evaluate.sampling import GenerationOptions
    from tao_runtime.media.annotations import read_annotations
    from tao_runtime.media.sampling import VisionOptions
    from tao_runtime.models.export import load_for_inference
    from tao_runtime.models.load import load_tokenizer, vision_geometry

    lora = {"model.model_name": str(adapter_dir), "model.enable_lora": True, "model.base_model_path": str(weights_dir)}
    code, _ = run(capsys, write_spec(**lora))
    assert code == 0
    merged = [row["response"] for row in rows_of(tmp_path / "out")]
    vision = VisionOptions(nframes=4, resized_height=64, resized_width=64)
    builder = SampleBuilder(load_tokenizer(weights_dir), vision_geometry(weights_dir), vision, questions_dir, 2000)
    model = load_for_inference(adapter_dir, weights_dir)
    answerer = Answerer(model, builder, GenerationOptions(6), BatchLimits(4), say=print)
    records = read_annotations(questions_dir / "annotations.json").records
    assert [answer.response for batch in answerer.answer(records) for answer in batch] == merged
    run(capsys, write_spec())
    assert [row["response"] for row in rows_of(tmp_path / "out")] != merged


def test_every_fault_at_once_and_nothing_written(capsys, tmp_path, write_spec, adapter_dir):
    spec = write_spec(
        **{
            "model.model_name": str(adapter_dir),
            "model.tp_size": 2,
            "num_gpus": 2,
            "evaluation.shard_id": 5,
            "metrics.names": ["bleu"],
            "dataset.annotation_path": str(tmp_path / "missing.json"),
        }
    )
    code, document = run(capsys, spec)
    found = {finding["code"] for finding in document["findings"]}
    assert found >= {"SPEC_ADAPTER_SWITCH", "SPEC_NATIVE_UNSUPPORTED", "SPEC_SHARD", "DATA_ANNOTATIONS_UNREADABLE"}
    assert code == 3
    assert not (tmp_path / "out" / "evaluation").exists()
    assert read_lines(tmp_path / "out" / "status.json")[-1]["status"] == "FAILURE"


def test_a_gpu_that_is_not_there_is_named_before_the_model_is_staged_and_the_fix_is_a_command(capsys, write_spec):
    import torch

    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    spec = write_spec(**{"native.device": "cuda", "model.model_name": "/nowhere/model"})
    code, document = run(capsys, spec, "--dry-run")
    found = {f["code"]: f for f in document["findings"]}
    assert (code, set(found)) == (5, {"HOST_NO_CUDA", "ACCESS_MODEL_FOLDER_MISSING"})
    assert (found["HOST_NO_CUDA"]["rule"], found["HOST_NO_CUDA"]["fix_kind"]) == ("H2", "command")
    assert main(shlex.split(found["HOST_NO_CUDA"]["fix"])[1:]) == 0
    capsys.readouterr()
    assert {f["code"] for f in run(capsys, spec, "--dry-run")[1]["findings"]} == {"ACCESS_MODEL_FOLDER_MISSING"}


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"model.model_name": "/nowhere/model"}, "ACCESS_MODEL_FOLDER_MISSING"),
        ({"model.model_name": "hf_model://no-owner"}, "SPEC_MODEL_NAME"),
        ({"model.enable_lora": True, "model.base_model_path": "x"}, "SPEC_ADAPTER_SWITCH"),
        ({"results_dir": __file__}, "SPEC_OUTPUT_UNWRITABLE"),
        (
            {"model.max_length": 1024, "generation.max_tokens": 980, "vision.nframes": 6, "vision.fps": None},
            "DATA_SAMPLE_TOO_LONG",
        ),
    ],
)
@pytest.mark.parametrize("words", [(), ("--dry-run",)])
def test_faults_of_model_and_output(capsys, write_spec, changes, code, words):
    exit_code, document = run(capsys, write_spec(**changes), *words)
    assert exit_code != 0
    assert code in {finding["code"] for finding in document["findings"]}
    assert code not in {finding["code"] for finding in run(capsys, write_spec(), "--dry-run")[1]["findings"]}


def test_dry_run_checks_and_writes_nothing(capsys, tmp_path, write_spec):
    code, document = run(capsys, write_spec(), "--dry-run")
    assert (code, document["data"]["num_records"], document["data"]["summary"]) == (0, 11, None)
    assert not (tmp_path / "out").exists()


def test_dry_run_needs_no_torch(write_spec):
    program = (
        "import sys; from tao_runtime.cli.main import main; "
        f"code = main(['evaluate', '--spec', {str(write_spec())!r}, '--dry-run']); "
        "sys.exit(code or ('torch' in sys.modules) * 9)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False, capture_output=True).returncode == 0
