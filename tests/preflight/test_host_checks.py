"""Checks run beside each other within a time limit; programs are asked without secrets, without input, and not forever."""

import os
import threading
import time

import pytest

from tao_runtime.environment import child_variables
from tao_runtime.preflight.host_checks import HostCheck, Running, ask
from tao_runtime.preflight.report import Check, Part


def done(text: str) -> Part:
    return Part((), (Check(text, "seen"),))


def test_checks_run_at_the_same_time_and_answer_in_their_order():
    meeting = threading.Barrier(3, timeout=5)

    def meet(name: str) -> Part:
        meeting.wait()
        return done(name)

    running = Running([HostCheck("H1", name, lambda name=name: meet(name)) for name in "abc"])
    assert [check.subject for check in running.result().checks] == ["a", "b", "c"]


def test_a_check_that_hangs_is_skipped_and_the_others_count():
    forever = threading.Event()
    running = Running(
        [HostCheck("H2", "GPUs", lambda: done("late") if forever.wait() else done("")), HostCheck("H8", "x", lambda: done("x"))]
    )
    started = time.monotonic()
    part = running.result(0.2)
    assert time.monotonic() - started < 2
    assert [(f.code, f.rule, str(f.severity)) for f in part.findings] == [("HOST_NOT_CHECKED", "H2", "skipped")]
    assert [check.subject for check in part.checks] == ["GPUs", "x"]
    forever.set()


def test_a_check_that_breaks_is_a_fault_of_ours_and_not_swallowed():
    running = Running([HostCheck("H1", "x", lambda: done(1 / 0))])
    with pytest.raises(ZeroDivisionError):
        running.result()


def test_a_program_that_does_not_end_is_killed_with_its_children(tmp_path):
    pid = tmp_path / "pid"
    started = time.monotonic()
    answer = ask(["sh", "-c", f"sleep 60 & echo $! > {pid}; wait"], 0.5)
    assert (answer.exit_code, answer.is_good) == (None, False)
    assert time.monotonic() - started < 5
    child = int(pid.read_text())
    end = time.monotonic() + 5
    while os.path.exists(f"/proc/{child}/stat") and open(f"/proc/{child}/stat").read().split()[2] != "Z":  # noqa: PTH110, PTH123, SIM115
        assert time.monotonic() < end


def test_a_program_that_ignores_the_polite_end_is_killed():
    started = time.monotonic()
    assert ask(["sh", "-c", "trap '' TERM; sleep 60 & wait; sleep 60"], 0.3).exit_code is None
    assert time.monotonic() - started < 5


def test_a_program_that_asks_gets_no_answer():
    assert ask(["sh", "-c", "read line || echo none"]).output == "none\n"


def test_programs_get_no_secret(monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_" + "a" * 30)
    monkeypatch.setenv("NOTE", "nvapi-" + "b" * 30)
    monkeypatch.setenv("SLURM_CONF", "/etc/slurm.conf")
    seen = ask(["env"]).output
    assert "hf_a" not in seen
    assert "nvapi" not in seen
    assert "SLURM_CONF=/etc/slurm.conf" in seen


def test_a_name_or_a_value_marks_a_secret():
    given = {
        "PATH": "/bin",
        "NGC_API_KEY": "x",
        "AWS_SECRET_ACCESS_KEY": "y",
        "URL": "https://u:p@h/",
        "DOCKER_HOST": "tcp://h:1",
    }
    assert child_variables(given) == {"PATH": "/bin", "DOCKER_HOST": "tcp://h:1"}
