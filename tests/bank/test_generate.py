"""The drift gate: what is generated stands on disk to the byte, and every kind of drift is found."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tao_runtime import __version__
from tao_runtime.bank.generate import GENERATED_ONLY, compare, generated_files, write_files
from tao_runtime.config.actions import ACTIONS, COSMOS_REASON

SKILL = f"skills/models/{COSMOS_REASON}"


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Path:
    """The hand-written skills with freshly generated files; not to be changed."""
    root = tmp_path_factory.mktemp("bank")
    shutil.copytree(repository / "skills", root / "skills", ignore=shutil.ignore_patterns("__pycache__"))
    write_files(root)
    assert compare(root) == []
    return root


@pytest.fixture
def bank(tmp_path: Path, pristine: Path) -> Path:
    """A copy of `pristine` to change."""
    shutil.copytree(pristine, tmp_path / "bank")
    return tmp_path / "bank"


def drift(root: Path) -> dict[str, str]:
    return {str(finding.where.file): finding.code for finding in compare(root)}


def test_this_repository_has_no_drift(repository: Path) -> None:
    assert [(f.code, f.what) for f in compare(repository)] == []


def test_an_edited_template_is_stale_with_its_line(bank: Path) -> None:
    path = bank / SKILL / "references/spec_template_train.yaml"
    path.write_text(path.read_text().replace("epoch: 10", "epoch: 3"))
    template = next(f for f in compare(bank) if f.where.file == f"{SKILL}/references/spec_template_train.yaml")
    assert template.code == "DRIFT_STALE"
    assert template.where.line is not None
    assert path.read_text().splitlines()[template.where.line - 1].strip() == "epoch: 3"


@pytest.mark.parametrize(
    "path",
    [
        f"{SKILL}/schemas/deploy.schema.json",
        f"{SKILL}/schemas/old/train.schema.json",
        f"{SKILL}/references/spec_template_deploy.yaml",
        "schemas/stray.txt",
        ".claude-plugin/stray.json",
        ".codex-plugin/stray.json",
        ".agents/plugins/stray.json",
        "skills/models/another-skill/schemas/train.schema.json",
    ],
)
def test_a_stray_file_is_extra(bank: Path, path: str) -> None:
    (bank / path).parent.mkdir(parents=True, exist_ok=True)
    (bank / path).write_text("{}")
    assert drift(bank)[path] == "DRIFT_EXTRA"
    (finding,) = [f for f in compare(bank) if f.where.file == path]
    assert finding.fix == f"rm '{path}'"


@pytest.mark.parametrize("path", [f"{SKILL}/schemas/train.schema.json", "manifest.json", "references/error-codes.md"])
def test_a_deleted_file_is_missing(bank: Path, path: str) -> None:
    (bank / path).unlink()
    assert drift(bank) == {path: "DRIFT_MISSING"}


def test_line_ends_and_undecodable_bytes_are_drift_not_a_crash(bank: Path) -> None:
    manifest, schema = bank / "manifest.json", bank / SKILL / "schemas/train.schema.json"
    manifest.write_bytes(manifest.read_bytes().replace(b"\n", b"\r\n"))
    schema.write_bytes(b"\xff\xfe")
    assert drift(bank) == {"manifest.json": "DRIFT_STALE", f"{SKILL}/schemas/train.schema.json": "DRIFT_STALE"}


def test_an_edited_hand_written_file_makes_the_manifest_stale(bank: Path) -> None:
    page = bank / SKILL / "references" / "datasets.md"
    page.write_text("changed\n")
    assert drift(bank) == {"manifest.json": "DRIFT_STALE"}


def test_writing_mends_missing_and_stale_and_is_idempotent(bank: Path) -> None:
    (bank / "manifest.json").unlink()
    (bank / SKILL / "schemas/export.schema.json").write_text("{}")
    assert write_files(bank) == ["manifest.json", f"{SKILL}/schemas/export.schema.json"]
    assert write_files(bank) == []


def test_generation_is_deterministic(bank: Path) -> None:
    assert generated_files(bank) == generated_files(bank)


def run_script(repository: Path, *words: str) -> subprocess.CompletedProcess[str]:
    script = str(repository / "scripts/generate_schemas.py")
    return subprocess.run([sys.executable, script, *words], capture_output=True, text=True, check=False)


def test_the_script_checks_with_exit_7_and_one_document(bank: Path, repository: Path) -> None:
    assert run_script(repository, "--check", "--root", str(bank)).returncode == 0
    (bank / "schemas/stray.json").write_text("{}")
    (bank / "gemini-extension.json").unlink()
    ended = run_script(repository, "--check", "--root", str(bank), "--json")
    assert ended.returncode == 7
    document = json.loads(ended.stdout)
    assert {f["where"]["file"]: f["code"] for f in document["findings"]} == {
        "schemas/stray.json": "DRIFT_EXTRA",
        "gemini-extension.json": "DRIFT_MISSING",
    }
    assert not (bank / "gemini-extension.json").exists()


def test_the_script_writes_and_still_tells_of_extra_files(bank: Path, repository: Path) -> None:
    (bank / "schemas/stray.json").write_text("{}")
    (bank / "gemini-extension.json").unlink()
    ended = run_script(repository, "--root", str(bank))
    assert ended.returncode == 7
    assert (bank / "gemini-extension.json").exists()
    assert "stray.json" in ended.stderr


def test_the_script_writes_only_into_a_bank(tmp_path: Path, repository: Path) -> None:
    for root in (tmp_path, tmp_path / "none", Path("/etc/passwd")):
        ended = run_script(repository, "--root", str(root), "--json")
        assert (ended.returncode, json.loads(ended.stdout)["findings"][0]["code"]) == (2, "USAGE_BANK_MISSING")
    assert list(tmp_path.iterdir()) == []


def test_the_script_names_what_it_can_t_write(bank: Path, repository: Path) -> None:
    (bank / "gemini-extension.json").unlink()
    (bank / "gemini-extension.json").mkdir()
    ended = run_script(repository, "--root", str(bank), "--json")
    assert (ended.returncode, ended.stderr) == (2, "")
    assert json.loads(ended.stdout)["findings"][0]["code"] == "USAGE_OUTPUT_UNWRITABLE"


def test_the_script_refuses_an_unknown_flag_with_exit_2(repository: Path) -> None:
    assert run_script(repository, "--chek", "--json").returncode == 2


def test_manifest_lists_every_action_with_files_that_exist(bank: Path) -> None:
    manifest = json.loads((bank / "manifest.json").read_text())
    (entry,) = [skill for skill in manifest["skills"] if skill["name"] == COSMOS_REASON]
    assert set(entry["actions"]) == {action.name for action in ACTIONS}
    for action in entry["actions"].values():
        assert (bank / entry["path"] / action["schema"]).is_file()
        assert (bank / entry["path"] / action["template"]).is_file()
    for path in manifest["files"]:
        assert (bank / path).is_file()


def test_client_manifests_have_one_name_one_version_and_the_same_skills(bank: Path) -> None:
    read = {
        path: json.loads((bank / path).read_text()) for path in generated_files(bank) if "plugin" in path or "gemini" in path
    }
    assert {value["name"] for value in read.values()} == {"tao-skill-bank"}
    versions = {value["version"] for value in read.values() if "version" in value}
    versions.add(read[".claude-plugin/marketplace.json"]["plugins"][0]["version"])
    versions.add(json.loads((bank / "manifest.json").read_text())["version"])
    assert versions == {__version__}
    listed = read[".claude-plugin/plugin.json"]["skills"]
    assert listed == read[".claude-plugin/marketplace.json"]["plugins"][0]["skills"]
    assert listed == [f"./{skill['path']}" for skill in json.loads((bank / "manifest.json").read_text())["skills"]]


def test_generated_only_patterns_hold_only_what_is_generated(bank: Path) -> None:
    wanted = generated_files(bank)
    found = {path.relative_to(bank).as_posix() for pattern in GENERATED_ONLY for path in bank.glob(pattern) if path.is_file()}
    assert found <= set(wanted)
    assert found
