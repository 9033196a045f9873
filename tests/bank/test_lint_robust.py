"""Damaged skills give findings, never a traceback."""

import json
import random
from pathlib import Path

import pytest
from bank.bank_factory import Bank

from tao_runtime.bank import lint_commands
from tao_runtime.bank.lint import CHECKS, lint_bank
from tao_runtime.bank.lint_subject import CommandLine

RUNS_SCRIPTS = ("SK013", "SK014", "SK015")
PIECES = (
    *(b"---\n", b"- ", b": ", b"[", b"{", b"}", b"null", b"true", b"1e999", b"NaN", b"2020-01-01", b"&a *a"),
    *(b"\xff", b"\x00", b"\r\n", b"\\\n", b"`", b"```\n", b"|", b"(", b")", b'"', b"'", b"#", b"<", b"..", b"/"),
    *(b"!!python/object:x", b"tao-runtime ", b"$ref", b'"anyOf": 3', b'"properties": []'),
)  # fmt: skip
NUM_BANKS = 40


def damage(path: Path, chance: random.Random) -> None:
    text = bytearray(path.read_bytes())
    for _ in range(chance.randint(1, 4)):
        start = chance.randint(0, len(text))
        text[start : start + chance.choice([0, 0, 1, 5, 40])] = chance.choice(PIECES)
    path.write_bytes(bytes(text))


@pytest.mark.parametrize("seed", range(3))
def test_damaged_skills_give_findings(
    tmp_path: Path, real_command_line: CommandLine, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(lint_commands, "help_text", lambda _script: "--out --help")  # no process for each bank
    checks = [check for check in CHECKS if check.code not in RUNS_SCRIPTS]
    chance = random.Random(seed)
    found = set()
    for number in range(NUM_BANKS):
        (tmp_path / str(number)).mkdir()
        bank = Bank(tmp_path / str(number))
        files = sorted(path for path in bank.root.rglob("*") if path.is_file())
        for path in chance.sample(files, 2):
            damage(path, chance)
        findings = lint_bank(bank.root, command_line=real_command_line, checks=checks)
        assert json.dumps([finding.to_dict() for finding in findings], allow_nan=False)
        found |= {finding.code for finding in findings}
    assert len(found) >= 5
