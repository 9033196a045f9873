"""The command line: every fault is a document, never a traceback."""

import json
import subprocess
import sys

import pytest

from tao_runtime.cli.main import COMMANDS, main
from tao_runtime.cli.output import MAX_FINDINGS_SHOWN, render_findings, unexpected
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


def test_abbreviated_flags_are_refused(capsys):
    assert main(["gaps", "--result", "x", "--out", "y", "--json"]) == 2
    assert "--result" in json.loads(capsys.readouterr().out)["findings"][0]["what"]


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
