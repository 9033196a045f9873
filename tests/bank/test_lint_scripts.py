"""SK013 to SK015: scripts are really run."""

import pytest
from bank.bank_factory import PLAIN_SCRIPT, SCRIPT, Bank

from tao_runtime.bank.lint_subject import CommandLine

FILE = "scripts/fold.py"
PARSES = "arguments = parser.parse_args()\n"


def first(line: str) -> str:
    """The plain script with a line before its parser."""
    return PLAIN_SCRIPT.replace("parser = ", f"{line}\n\nparser = ", 1)


def after(line: str) -> str:
    """The plain script with a line after its arguments are parsed."""
    return PLAIN_SCRIPT + line + "\n"


JSON_FLAG = PLAIN_SCRIPT.replace("required=True)", "default='x')\nparser.add_argument('--json', action='store_true')")
DOCUMENT = '{"schema_version": "1.0", "command": "fold", "ok": true, "data": null, "findings": []}'

BAD = [
    ("SK013", first("import time\ntime.sleep(1.05)"), "--help takes"),
    ("SK013", first("import sys\nsys.modules['torch'] = sys"), "imports torch"),
    (
        "SK013",
        first("import urllib.request\ntry:\n    urllib.request.urlopen('http://127.0.0.1:9')\nexcept OSError:\n    pass"),
        "uses the network",
    ),
    (
        "SK013",
        PLAIN_SCRIPT.replace("import argparse", "import argparse_of_another_world"),
        "ends with exit code 1 (ModuleNotFoundError",
    ),
    (
        "SK014",
        PLAIN_SCRIPT.replace("parse_args()", "parse_known_args()").replace("required=True", "default='x'"),
        "ends with exit code 0",
    ),
    ("SK014", first("name = input('Name: ')"), "ends with exit code 1 (EOFError"),
    ("SK015", JSON_FLAG + "print('talk')\n", "--json: stdout is not one JSON document"),
    ("SK015", JSON_FLAG + f"print({DOCUMENT!r})\nprint({DOCUMENT!r})\n", "--json: stdout is not one JSON document"),
    ("SK015", JSON_FLAG + f"print({DOCUMENT.replace('true', '1')!r})\n", "--json: $.ok: 1 is not of type 'boolean'"),
    ("SK015", JSON_FLAG, "--json --no-such-flag: stdout is not one JSON document"),
]
GOOD = [
    ("SK013", PLAIN_SCRIPT),
    ("SK013", after("import torch")),
    ("SK013", after("import urllib.request\nurllib.request.urlopen('http://127.0.0.1:9')")),
    ("SK014", PLAIN_SCRIPT),
    ("SK014", PLAIN_SCRIPT.replace("required=True", "default='x'") + "import sys\nsys.stdin.read()\n"),
    ("SK015", PLAIN_SCRIPT),
    ("SK015", SCRIPT),
]


@pytest.mark.parametrize(("code", "script", "words"), BAD, ids=[f"{code}-{words}" for code, _, words in BAD])
def test_a_spoilt_script_is_found(
    good_bank: Bank, real_command_line: CommandLine, monkeypatch: pytest.MonkeyPatch, code: str, script: str, words: str
) -> None:
    monkeypatch.setattr("tao_runtime.bank.lint_scripts.MAX_HELP_S", 1.0)
    good_bank.write(FILE, script)
    findings = good_bank.lint(real_command_line, [code])
    assert {finding.code for finding in findings} == {code}
    assert any(words in finding.what for finding in findings), [finding.what for finding in findings]
    assert {finding.where.file for finding in findings} == {f"skills/models/{good_bank.skill.name}/{FILE}"}


@pytest.mark.parametrize(("code", "script"), GOOD, ids=[f"{code}-{number}" for number, (code, _) in enumerate(GOOD)])
def test_the_nearest_good_script_passes(good_bank: Bank, real_command_line: CommandLine, code: str, script: str) -> None:
    good_bank.write(FILE, script)
    assert good_bank.lint(real_command_line, [code]) == []


def test_a_script_that_waits_is_stopped(
    good_bank: Bank, real_command_line: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tao_runtime.bank.lint_scripts.MAX_RUN_S", 1.0)
    good_bank.write(FILE, PLAIN_SCRIPT.replace("required=True", "default='x'") + "import time\ntime.sleep(60)\n")
    [finding] = good_bank.lint(real_command_line, ["SK014"])
    assert "without arguments still runs" in finding.what


def test_a_shell_script_is_refused(good_bank: Bank, real_command_line: CommandLine) -> None:
    good_bank.write("scripts/cut.sh", "true\n")
    [finding] = good_bank.lint(real_command_line, ["SK013"])
    assert "is not a Python script" in finding.what


def test_the_banks_own_scripts_are_never_started_without_an_unknown_flag(
    good_bank: Bank, real_command_line: CommandLine
) -> None:
    (good_bank.root / "scripts").mkdir()
    trace = good_bank.root / "started"
    writes = f"from pathlib import Path\nPath({str(trace)!r}).write_text('x')\n"
    (good_bank.root / "scripts" / "write.py").write_text(PLAIN_SCRIPT.replace("required=True", "default='x'") + writes)
    assert good_bank.lint(real_command_line, ["SK013", "SK014", "SK015"]) == []
    assert not trace.exists()
