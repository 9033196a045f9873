"""Skills on disk, and the skills command."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from bank.bank_factory import BODY, DESCRIPTION, NAME, Bank

from tao_runtime import __version__
from tao_runtime.bank.lint import CHECKS
from tao_runtime.bank.lint_subject import CommandLine
from tao_runtime.bank.skills import bank_root, find_skill, read_skills
from tao_runtime.cli.main import main
from tao_runtime.errors import TaoError


def run(words: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, Any]:
    code = main([*words, "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_a_bank_without_a_fault_is_silent(good_bank: Bank, real_command_line: CommandLine) -> None:
    assert [finding.to_dict() for finding in good_bank.lint(real_command_line)] == []


def test_the_bank_is_found_from_below_and_from_anywhere(good_bank: Bank, repository: Path) -> None:
    assert bank_root(start=good_bank.skill / "references") == good_bank.root
    assert bank_root(start=Path("/")).resolve() == repository
    assert bank_root(good_bank.root) == good_bank.root


def test_a_folder_that_is_no_bank_is_named(tmp_path: Path) -> None:
    with pytest.raises(TaoError) as raised:
        bank_root(tmp_path)
    assert [finding.code for finding in raised.value.findings] == ["USAGE_BANK_MISSING"]
    assert str(tmp_path) in raised.value.findings[0].what


def test_a_skill_is_read_with_its_parts(good_bank: Bank) -> None:
    skill = find_skill(good_bank.root, f"tao-skill-bank:{NAME}")
    assert (skill.name, skill.layer, skill.version, skill.description) == (NAME, "models", __version__, DESCRIPTION)
    assert skill.front.body == BODY
    assert skill.front.body_line == 12
    assert skill.companions() == ["tao-paint-paper"]
    assert skill.actions() == []
    assert skill.files() == sorted(skill.files())
    assert "references/folds.md" in skill.files()


def test_an_unknown_skill_gets_the_nearest_name(good_bank: Bank) -> None:
    with pytest.raises(TaoError) as raised:
        find_skill(good_bank.root, "tao-fold-papers")
    [finding] = raised.value.findings
    assert finding.code == "USAGE_SKILL_UNKNOWN"
    assert finding.fix == f"tao-runtime skills show {NAME}"


def test_a_broken_skill_hides_no_other(good_bank: Bank, capsys: pytest.CaptureFixture[str]) -> None:
    broken = good_bank.root / "skills" / "data" / "tao-broken"
    broken.mkdir(parents=True)
    (broken / "SKILL.md").write_text("no front matter")
    skills, findings = read_skills(good_bank.root)
    assert [skill.name for skill in skills] == [NAME]
    assert [finding.code for finding in findings] == ["SK001"]
    code, document = run(["skills", "list", "--bank", str(good_bank.root)], capsys)
    assert code == 4
    assert [skill["name"] for skill in document["data"]["skills"]] == [NAME]


def test_list_says_what_each_skill_is_for(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, document = run(["skills", "list", "--bank", str(repository)], capsys)
    assert (code, document["ok"], document["findings"]) == (0, True, [])
    [skill] = [skill for skill in document["data"]["skills"] if skill["name"] == "tao-finetune-cosmos-reason"]
    assert skill["path"] == "skills/models/tao-finetune-cosmos-reason"
    assert skill["actions"] == ["train", "evaluate", "inference", "quantize", "export"]
    assert "Use when" in skill["description"]
    assert main(["skills", "list", "--bank", str(repository)]) == 0
    assert "tao-finetune-cosmos-reason  (models)" in capsys.readouterr().out


def test_show_prints_the_body_and_says_which_companions_are_here(good_bank: Bank, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["skills", "show", NAME, "--bank", str(good_bank.root)]) == 0
    assert capsys.readouterr().out == BODY.lstrip("\n")
    _, document = run(["skills", "show", NAME, "--bank", str(good_bank.root)], capsys)
    assert document["data"]["companions"] == {"tao-paint-paper": False}
    (good_bank.root / "skills" / "data" / "tao-paint-paper").mkdir(parents=True)
    _, document = run(["skills", "show", NAME, "--bank", str(good_bank.root)], capsys)
    assert document["data"]["companions"] == {"tao-paint-paper": True}


def test_show_of_an_unknown_name_is_a_usage_error(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, document = run(["skills", "show", "cosmos", "--bank", str(repository)], capsys)
    assert (code, [finding["code"] for finding in document["findings"]]) == (2, ["USAGE_SKILL_UNKNOWN"])


def test_lint_reports_every_check_by_its_worst(good_bank: Bank, capsys: pytest.CaptureFixture[str]) -> None:
    good_bank.replace("SKILL.md", "license: Apache-2.0", "licence: Apache-2.0")
    good_bank.append("SKILL.md", "word\n" * 190)
    only = [word for code in ("SK002", "SK004", "SK009") for word in ("--only", code)]
    code, document = run(["skills", "lint", "--bank", str(good_bank.root), *only], capsys)
    assert code == 4
    assert document["data"]["checks"] == {"SK002": "error", "SK004": "passed", "SK009": "warning"}
    assert document["data"]["counts"] == {"error": 1, "warning": 1, "skipped": 0, "info": 0}


def test_lint_takes_names_only_and_skip(good_bank: Bank, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(good_bank.skill, good_bank.root / "skills" / "data" / "tao-copy")
    base = ["skills", "lint", "--bank", str(good_bank.root), "--only", "SK003"]
    assert run(base, capsys)[0] == 4
    assert run([*base, NAME], capsys)[0] == 0
    assert run([*base, "--skip", "SK003"], capsys)[1]["data"]["checks"] == {}
    assert list(run([*base, "--only", "sk001,SK002"], capsys)[1]["data"]["checks"]) == ["SK001", "SK002", "SK003"]


def test_lint_of_a_check_that_is_not_there_is_a_usage_error(good_bank: Bank, capsys: pytest.CaptureFixture[str]) -> None:
    code, document = run(["skills", "lint", "--bank", str(good_bank.root), "--only", "SK099"], capsys)
    assert (code, document["findings"][0]["code"]) == (2, "USAGE_ARGUMENTS")


def test_a_bank_without_skills_does_not_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "skills").mkdir()
    code, document = run(["skills", "lint", "--bank", str(tmp_path), "--only", "SK001"], capsys)
    assert (code, document["findings"][0]["code"]) == (4, "SK001")


def test_every_code_of_the_standard_has_one_check() -> None:
    assert [check.code for check in CHECKS] == [f"SK{number:03}" for number in range(1, 23)]
