"""The command line: every fault is a document, never a traceback."""

import errno
import json
import os
import subprocess
import sys

import pytest

from tao_runtime.cli.main import COMMANDS, main
from tao_runtime.cli.output import MAX_FINDINGS_SHOWN, CommandResult, print_result, render_findings, unexpected
from tao_runtime.errors import Finding


@pytest.mark.parametrize("words", [["no-such-command", "--json"], ["gaps", "--no-such-flag", "--json"], ["--json"]])
def test_usage_errors_are_one_json_document_with_exit_2(words, capsys):
    assert main(words) == 2
    printed = capsys.readouterr()
    document = json.loads(printed.out)
    assert document["ok"] is False
    assert [f["code"] for f in document["findings"]] == ["USAGE_ARGUMENTS"]
    assert printed.err == ""


@pytest.mark.parametrize("command", [command.name for command in COMMANDS])
def test_every_command_has_help_that_says_what_it_does(command, capsys):
    with pytest.raises(SystemExit) as left:
        main([command, "--help"])
    assert left.value.code == 0
    assert f"usage: tao-runtime {command}" in capsys.readouterr().out


@pytest.mark.parametrize("number", ["0", "-1", "1.5", "", "9" * 5000])
def test_a_number_of_gpus_is_at_least_one(number, capsys):
    assert main(["preflight", f"--num-gpus={number}", "--json"]) == 2
    assert "is not a whole number from 1 on" in json.loads(capsys.readouterr().out)["findings"][0]["what"]


def test_abbreviated_flags_are_refused(capsys):
    assert main(["gaps", "--result", "x", "--out", "y", "--json"]) == 2
    assert "--result" in json.loads(capsys.readouterr().out)["findings"][0]["what"]


def test_the_document_of_a_fault_names_the_whole_command(tmp_path, capsys):
    main(["spec", "check", "--spec", str(tmp_path / "none.yaml"), "--json"])
    assert json.loads(capsys.readouterr().out)["command"] == "spec check"
    main(["gaps", "--results", str(tmp_path / "none"), "--out", "x", "--json"])
    assert json.loads(capsys.readouterr().out)["command"] == "gaps"


def test_an_internal_fault_names_its_place_without_a_traceback():
    try:
        render_findings(None)  # type: ignore[arg-type]
    except TypeError as error:
        finding = unexpected(error)
    assert finding.code == "INTERNAL_ERROR"
    assert finding.where.file.endswith("cli/output.py")
    assert "Traceback" not in finding.what


def test_findings_on_a_terminal_are_bounded():
    shown = render_findings([Finding("DRIFT_STALE", f"n{i}") for i in range(MAX_FINDINGS_SHOWN + 7)])
    assert "… and 7 more" in shown
    assert shown.count("DRIFT_STALE") == MAX_FINDINGS_SHOWN


def test_a_closed_pipe_ends_quietly():
    command = f"{sys.executable} -m tao_runtime.cli.main no-such-command --json | true"
    ended = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert ended.stderr == ""


COMMAND = f"{sys.executable} -m tao_runtime.cli.main"


def shell(line: str, **variables: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["bash", "-c", line], capture_output=True, check=False, env={**os.environ, **variables})


@pytest.mark.parametrize(("place", "why"), [(">&-", "it is closed"), (">/dev/full", "No space left on device")])
@pytest.mark.parametrize("json_flag", ["--json", ""])
def test_a_stdout_that_takes_nothing_is_told_without_a_traceback(place, why, json_flag):
    ended = shell(f"{COMMAND} skills list {json_flag} {place}")
    assert ended.returncode == 2
    assert f"stdout can't be written: {why}" in ended.stderr.decode()
    assert b"Traceback" not in ended.stderr


@pytest.mark.parametrize("place", ["2>&-", "2>/dev/full", ">&- 2>&- <&-"])
def test_a_stderr_that_takes_nothing_does_not_change_the_exit_code(place):
    assert shell(f"{COMMAND} spec build {place}").returncode == 3


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8", "utf-16"])
def test_the_document_is_json_in_any_encoding_of_stdout(encoding):
    ended = shell(f"{COMMAND} spec explain 'épochs€.😀' --json", PYTHONIOENCODING=encoding)
    document = json.loads(ended.stdout.decode(encoding))
    assert document["findings"][0]["where"]["key"] == "épochs€.😀"


def nested(depth: int) -> list:
    value: list = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("value", [float("nan"), b"bytes", {1, 2}, nested(5000)], ids=["nan", "bytes", "set", "deep"])
def test_data_that_json_can_t_hold_is_a_document_about_that(value, capsys):
    assert print_result(CommandResult("x", {"a": value}), as_json=True) == 1
    document = json.loads(capsys.readouterr().out)
    assert (document["ok"], [f["code"] for f in document["findings"]]) == (False, ["INTERNAL_ERROR"])


def test_a_secret_that_is_a_number_leaves_the_document_whole(monkeypatch, capsys):
    monkeypatch.setenv("SOME_TOKEN", "12345678")
    print_result(CommandResult("x", {"number": 12345678, "text": "a 12345678"}), as_json=True)
    assert json.loads(capsys.readouterr().out)["data"] == {"number": 12345678, "text": "a [redacted]"}


def test_names_from_a_user_s_file_can_t_steer_the_terminal(capsys):
    print_result(
        CommandResult("x", findings=[Finding("DRIFT_STALE", "a\x1b[31mb\u202ec\r")], text="\x1b]0;t\x07\n  ok"), as_json=False
    )
    printed = capsys.readouterr()
    assert printed.out == "\\x1b]0;t\\x07\n  ok\n"
    assert "a\\x1b[31mb\\u202ec\\r\n" in printed.err


@pytest.mark.parametrize("words", [["skills", "list", "--bank"], ["gaps", "--out", "x", "--results"]])
def test_a_folder_that_may_not_be_searched_is_no_fault_of_ours(words, tmp_path, monkeypatch, capsys):
    def refuse(path, **_):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr("os.stat", refuse)
    code = main([*words, str(tmp_path), "--json"])
    monkeypatch.undo()
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert (code, finding["code"]) == (2, "USAGE_FILE_UNREADABLE")
    assert str(tmp_path) in finding["what"]


def test_an_environment_variable_of_the_wrong_form_is_named(monkeypatch, capsys):
    monkeypatch.setenv("WORLD_SIZE", "two")
    assert main(["preflight", "--json"]) == 5
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert (finding["code"], finding["where"]) == ("ENV_VARIABLE_INVALID", {"host": "WORLD_SIZE"})


def test_a_current_folder_that_is_gone_is_not_needed(tmp_path):
    ended = shell(f"mkdir {tmp_path}/gone && cd {tmp_path}/gone && rmdir ../gone && {COMMAND} skills list --json")
    assert json.loads(ended.stdout)["ok"] is True
