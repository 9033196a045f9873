import json
import math
from datetime import datetime
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tao_runtime.environment import Environment
from tao_runtime.status.events import EventLog, LineLog, RunStatus, StatusLog, clock_text, finite, new_run_id, status_path
from tao_runtime.status.follow import read_history, read_lines

SECOND_OF_MAY = datetime(2026, 5, 2, 4, 7, 9)


def strict(text):
    def refuse(word):
        raise ValueError(word)

    return json.loads(text, parse_constant=refuse)


def test_a_status_record_has_the_form_that_tao_reads(tmp_path):
    log = StatusLog(tmp_path / "status.json", "run1", lambda: SECOND_OF_MAY)
    log.write(RunStatus.STARTED, "Starting training.", {"epoch": 0, "max_epoch": 3})
    log.write(RunStatus.RUNNING, "Step 1.", {"step": 1}, {"train/step_loss": 0.5})
    log.close()
    first, second = map(strict, (tmp_path / "status.json").read_text().splitlines())
    assert first == {
        "epoch": 0,
        "max_epoch": 3,
        "date": "5/2/2026",
        "time": "4:7:9",
        "status": "STARTED",
        "verbosity": "INFO",
        "message": "Starting training.",
        "run_id": "run1",
    }
    assert second["kpi"] == {"train/step_loss": 0.5}
    assert "kpi" not in first


def test_a_failure_has_verbosity_error_and_only_finite_numbers(tmp_path):
    log = StatusLog(tmp_path / "s.json", "r")
    log.write(RunStatus.FAILURE, "loss is NaN", {"error_type": "X", "figures": [math.nan, {"lr": math.inf}, 1.0]})
    log.close()
    record = strict((tmp_path / "s.json").read_text())
    assert (record["verbosity"], record["figures"]) == ("ERROR", [None, {"lr": None}, 1.0])


def test_a_second_run_appends_under_another_id(tmp_path):
    for _ in range(2):
        log = StatusLog(tmp_path / "s.json", new_run_id())
        log.write(RunStatus.SUCCESS, "done")
        log.close()
    ids = [record["run_id"] for record in read_lines(tmp_path / "s.json")]
    assert len(ids) == len(set(ids)) == 2


def test_half_a_line_of_a_killed_writer_does_not_spoil_the_next_record(tmp_path):
    path = tmp_path / "events.jsonl"
    path.write_text('{"event": "a"}\n{"event": "b", "lo')
    log = EventLog(path, "r")
    log.write("c", loss=1.5)
    log.close()
    assert [record["event"] for record in read_lines(path)] == ["a", "c"]


def test_a_credential_never_reaches_a_log(tmp_path):
    with LineLog(tmp_path / "l.jsonl") as log:
        log.append({"message": "token hf_abcdefghijklmnopqrstuvwx was refused"})
    assert "hf_abc" not in (tmp_path / "l.jsonl").read_text()
    assert read_lines(tmp_path / "l.jsonl") == [{"message": "token [redacted] was refused"}]


def test_where_status_goes():
    there = Environment(results_root="/results", job_id="7", status_file="/early.json")
    assert status_path(there, Path("/mine")) == Path("/results/7/status.json")
    assert status_path(there, None) == Path("/early.json")
    assert status_path(Environment(), Path("/mine")) == Path("/mine/status.json")
    assert status_path(Environment(results_root="/results"), Path("/mine")) == Path("/mine/status.json")
    assert status_path(Environment(), None) is None


def test_history_takes_steps_that_were_made_again_once(tmp_path):
    first, second = EventLog(tmp_path / "e", "one"), EventLog(tmp_path / "e", "two")
    first.write("run_started", start_step=0)
    for step in (1, 2, 3):
        first.write("step", step=step, loss=float(step))
    first.write("validation", step=3, loss=9.0)
    second.write("run_started", start_step=2)
    for step in (3, 4):
        second.write("step", step=step, loss=step + 0.5)
    history = read_history(tmp_path / "e")
    assert history.run_ids == ["one", "two"]
    assert [(item["step"], item["loss"]) for item in history.steps] == [(1, 1.0), (2, 2.0), (3, 3.5), (4, 4.5)]
    assert history.validations == []


def test_durations_read_like_tao_writes_them():
    assert clock_text(0) == "0:00:00.000000"
    assert clock_text(3661.25) == "1:01:01.250000"
    assert clock_text(59.9999999) == "0:01:00.000000"
    assert clock_text(90_000) == "25:00:00.000000"


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_any_value_becomes_strict_json(value):
    strict(json.dumps(finite(value), allow_nan=False))
