"""From the folders that commands wrote to a page: curves, figures, frames, and what is wrong with a source."""

import io
import json
import time
from datetime import UTC, datetime

import pytest
from PIL import Image

from tao_runtime.cli.main import main
from tao_runtime.deft.gaps import find_gaps, write_gaps
from tao_runtime.errors import TaoError
from tao_runtime.evaluate.answers import Policy, judge
from tao_runtime.evaluate.gather import MAX_CARDS, Sources, gather_report, taking_turns
from tao_runtime.evaluate.results import read_results, write_results
from tao_runtime.evaluate.score import score
from tao_runtime.evaluate.thumbnails import HEIGHT_PX, frame_strip
from tao_runtime.files import write_json
from tao_runtime.status.events import EventLog

MADE_AT = datetime(2026, 12, 1, tzinfo=UTC)
VISION = {"nframes": 4, "resized_height": 64, "resized_width": 64}


@pytest.fixture
def train_dir(tmp_path):
    folder = tmp_path / "train"
    log = EventLog(folder / "events.jsonl", "run1")
    plan = {"num_train_records": 40, "global_batch": 4, "total_steps": 20, "num_epochs": 2, "steps_per_epoch": 10}
    log.write("run_started", start_step=0, run_dir=str(folder / "run"), plan=plan, parameters={"model": "m", "parameters": 9})
    for step in range(1, 21):
        log.write("step", step=step, loss=float("nan") if step == 3 else 2 / step, lr=0.1, grad_norm=1.0)
    log.write("validation", step=20, loss=0.2)
    log.write("run_finished", step=20, first_loss=2.0, last_loss=0.1, validation_loss=0.2, seconds=61.0, export="e")
    log.close()
    return folder


def write_evaluation(folder, rows):
    """Write an evaluation's folder as the command does, from `(video_id, response, truth)`."""
    results = [{"video_id": v, "question": "which way?", "response": r, "gt": t, "id": f"id of {v}"} for v, r, t in rows]
    write_results(folder / "evaluation" / "results.json", results)
    judgements = [judge(response, truth, Policy.LOWER_STRIP) for _, response, truth in rows]
    summary = {
        "dataset": {"annotation_path": "data/a.json"},
        "score": score(judgements),
        "vision": VISION,
        "run": {"seconds": 3},
    }
    write_json(folder / "evaluation" / "metrics_summary.json", summary)
    return folder


def write_failures(folder, out, **more):
    write_gaps(out, find_gaps(read_results([folder]), **more))
    return out


def test_everything_is_gathered(tmp_path, train_dir, questions_dir):
    rows = [("clip_0.mp4", "left", "right"), ("clip_1.mp4", "left", "left"), ("gone.mp4", "hm", "left")]
    folder = write_evaluation(tmp_path / "after", rows)
    gaps = write_failures(folder, tmp_path / "gaps.parquet", media_dir=questions_dir)
    sources = Sources(train_dir, [("after", folder)], gaps)
    gathered = gather_report("Title", sources, MADE_AT)
    report = gathered.report
    assert report.training.loss[0] == tuple(map(float, range(1, 21)))
    assert report.training.loss[1][2] is None
    assert report.training.validation == ((20.0,), (0.2,))
    assert report.evaluations[0].score["accuracy"] == pytest.approx(1 / 3)
    seen, lost = report.failures.shown
    assert (seen.record_id, seen.truth, seen.response) == ("id of clip_0.mp4", "right", "left")
    picture = Image.open(io.BytesIO(seen.frames_jpeg))
    assert (picture.format, picture.size, seen.num_frames) == ("JPEG", (4 * HEIGHT_PX + 6, HEIGHT_PX), 4)
    assert lost.frames_jpeg is None
    assert "gone.mp4" in lost.note
    assert [finding.code for finding in gathered.findings] == ["RESULTS_NO_PICTURE"]
    facts = {group.title: dict(group.facts) for group in report.facts}
    assert facts["Training"]["steps"] == "20 in 2 epochs"
    assert facts["Training"]["time"] == "1 min 1 s"
    assert facts["Evaluation: after"]["questions"] == "data/a.json"


def test_run_folder_inside_the_results_folder_is_understood(train_dir):
    (train_dir / "20261201").mkdir()
    assert gather_report("t", Sources(train_dir / "20261201"), MADE_AT).report.training is not None


def test_run_that_has_not_finished_has_curves(tmp_path):
    log = EventLog(tmp_path / "events.jsonl", "run1")
    log.write("step", step=1, loss=1.0)
    log.close()
    report = gather_report("t", Sources(tmp_path), MADE_AT).report
    assert report.training.lr == ((1.0,), (None,))


def test_values_that_all_evaluations_share_are_said_once(tmp_path):
    first = write_evaluation(tmp_path / "a", [("x", "left", "left")])
    second = write_evaluation(tmp_path / "b", [("x", "right", "left")])
    titles = [group.title for group in gather_report("t", Sources(None, [("a", first), ("b", second)]), MADE_AT).report.facts]
    assert titles == ["All evaluations", "Evaluation: a", "Evaluation: b"]


def test_every_bad_source_is_named_at_once(tmp_path):
    (tmp_path / "bad.parquet").write_text("no parquet", encoding="utf-8")
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "metrics_summary.json").write_text('{"score": {}}', encoding="utf-8")
    sources = Sources(tmp_path / "none", [("a", tmp_path / "nothing"), ("b", broken)], tmp_path / "bad.parquet")
    with pytest.raises(TaoError) as caught:
        gather_report("t", sources, MADE_AT)
    found = [finding.code for finding in caught.value.findings]
    assert found == ["RESULTS_EVENTS_MISSING", "RESULTS_MISSING", "RESULTS_SUMMARY_INVALID", "RESULTS_GAPS_INVALID"]
    assert caught.value.exit_code == 4


@pytest.mark.parametrize(
    ("kinds", "limit", "places"),
    [("aaab", 2, [0, 3]), ("abcab", 4, [0, 1, 2, 3]), ("aaaa", 2, [0, 1]), ("", 3, []), ("ab", 9, [0, 1]), ("ab", 0, [])],
)
def test_kinds_take_turns(kinds, limit, places):
    assert taking_turns(list(kinds), limit) == places


def test_strip_of_a_long_clip_has_four_frames(clips):
    strip, count = frame_strip(clips / "bikes.mp4", {"fps": 2.0})
    assert count == 4
    assert Image.open(io.BytesIO(strip)).height == HEIGHT_PX


def test_strip_of_an_image(questions_dir):
    assert frame_strip(questions_dir / "still.png", {})[1] == 1


def test_clip_that_the_options_can_t_sample_is_shown_all_the_same(questions_dir):
    assert frame_strip(questions_dir / "clip_0.mp4", {"nframes": 400})[1] == 4


def report_command(capsys, *words):
    code = main(["report", *map(str, words), "--json"])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("num_failures", [0, 1, 100_000])
def test_command_with_few_and_many_failures(capsys, tmp_path, train_dir, questions_dir, num_failures):
    rows = [("clip_0.mp4", "left" if number < num_failures else "right", "right") for number in range(max(1, num_failures))]
    rows = [(f"./clip_{number % 9}.mp4", response, truth) for number, (_, response, truth) in enumerate(rows)]
    folder = write_evaluation(tmp_path / "after", rows)
    results = read_results([folder])
    for number, extra in enumerate(results.extras):
        extra["id"] = f"r{number}"
    write_gaps(tmp_path / "gaps.parquet", find_gaps(results))
    page = tmp_path / "report.html"
    started_s = time.process_time()
    words = ("--train", train_dir, "--evaluation", f"after training={folder}", "--gaps", tmp_path / "gaps.parquet")
    code, document = report_command(capsys, *words, "--media-dir", questions_dir, "--out", page)
    assert (code, document["findings"]) == (0, [])
    assert document["data"]["num_failures"] == num_failures
    assert document["data"]["num_failures_shown"] == min(num_failures, MAX_CARDS)
    assert page.stat().st_size < 1_500_000
    assert page.read_text(encoding="utf-8").count("data:image/jpeg;base64,") == min(num_failures, MAX_CARDS)
    assert time.process_time() - started_s < 15


def test_command_dry_run_and_bad_names(capsys, tmp_path, train_dir):
    code, document = report_command(capsys, "--train", train_dir, "--out", tmp_path / "r.html", "--dry-run")
    assert (code, document["data"]["out"]) == (0, None)
    assert not (tmp_path / "r.html").exists()
    code, document = report_command(capsys, "--evaluation", "name", "--evaluation", "=x", "--out", tmp_path / "r.html")
    assert (code, [finding["code"] for finding in document["findings"]]) == (2, ["USAGE_ARGUMENTS"] * 2)
    code, document = report_command(capsys, "--train", train_dir, "--out", train_dir / "events.jsonl" / "r.html")
    assert (code, document["findings"][0]["code"]) == (2, "USAGE_OUTPUT_UNWRITABLE")
