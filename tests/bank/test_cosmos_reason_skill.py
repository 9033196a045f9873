"""The skill tao-finetune-cosmos-reason as an agent would use it: its commands run, its tables agree, its evals hold."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from preflight.hub_of_test import filled_hub

from tao_runtime.bank.evals import CommandAssertion, JsonClaim, read_evals, values_at
from tao_runtime.bank.generate import generated_files
from tao_runtime.bank.lint import chosen_checks, lint_bank
from tao_runtime.bank.lint_commands import commands_in
from tao_runtime.bank.lint_subject import CommandLine
from tao_runtime.bank.markdown import Page, parse_page
from tao_runtime.bank.skill_info import SkillInfo
from tao_runtime.cli.main import main
from tao_runtime.config.actions import ACTIONS
from tao_runtime.config.keys import find_key
from tao_runtime.evaluate.answers import Policy
from tao_runtime.evaluate.results import COLUMNS

REPOSITORY = Path(__file__).resolve().parents[2]
NAME = "tao-finetune-cosmos-reason"
SKILL = REPOSITORY / "skills" / "models" / NAME
CASES = {case.id: case for case in read_evals(SKILL).evals}
RUNNABLE = [
    pytest.param(assertion, id=f"{case.id}-{number}")
    for case in CASES.values()
    for number, assertion in enumerate(case.assertions)
    if isinstance(assertion, CommandAssertion)
]


def page(file: str) -> Page:
    return parse_page((SKILL / file).read_text(encoding="utf-8"))


def info() -> SkillInfo:
    return SkillInfo.model_validate(yaml.safe_load((SKILL / "references/skill_info.yaml").read_text()))


def run(words: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, Any]:
    """Run a command of ours in this process; return its exit code and its document."""
    assert words[0] == "tao-runtime"
    code = main(words[1:])
    return code, json.loads(capsys.readouterr().out)


@pytest.fixture
def nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Somebody who has no token, before a Hub that hands the model out to those who accepted its licence."""
    for name in [name for name in os.environ if name.startswith(("HF_", "HUGGING_FACE"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    with filled_hub() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
        yield


def holds(claim: JsonClaim, document: Any) -> bool:
    found = values_at(document, claim.path)
    given = claim.model_fields_set
    return (
        ("equals" not in given or found == [claim.equals])
        and ("contains" not in given or claim.contains in found)
        and ("lacks" not in given or claim.lacks not in found)
    )


def test_the_real_bank_passes_every_check(real_command_line: CommandLine) -> None:
    findings = lint_bank(REPOSITORY, command_line=real_command_line)
    assert [finding.to_dict() for finding in findings] == []


def test_the_standards_own_program_accepts_the_skill() -> None:
    program = Path(sys.executable).with_name("agentskills")
    done = subprocess.run([program, "validate", SKILL], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_skill_copied_alone_has_everything_it_links_to(tmp_path: Path, real_command_line: CommandLine) -> None:
    shutil.copytree(SKILL, tmp_path / "skills" / "models" / NAME)
    assert lint_bank(tmp_path, command_line=real_command_line, checks=chosen_checks(["SK010", "SK011", "SK012"])) == []


def test_a_shared_page_that_the_skill_names_is_copied_into_it_and_no_other() -> None:
    files = generated_files(REPOSITORY)
    folder = f"skills/models/{NAME}/references"
    assert files[f"{folder}/credentials.md"] == (REPOSITORY / "references/credentials.md").read_text(encoding="utf-8")
    assert f"{folder}/glossary.md" not in files


@pytest.mark.parametrize("assertion", RUNNABLE)
@pytest.mark.usefixtures("nobody")
def test_an_eval_that_runs_holds(
    assertion: CommandAssertion, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "skill"
    shutil.copytree(SKILL, copy)
    monkeypatch.chdir(copy)
    words = list(assertion.command)
    if words[1] == "skills":
        words += ["--bank", str(REPOSITORY)]
    code, document = run(words, capsys)
    assert code == assertion.exit_code, document["findings"]
    failed = [(claim, values_at(document, claim.path)) for claim in assertion.json_claims if not holds(claim, document)]
    assert failed == []


def test_evals_have_claims_that_can_fail() -> None:
    document = {"ok": True, "findings": [{"code": "A"}, {"code": "B"}]}
    assert holds(JsonClaim(path="ok", equals=True), document)
    assert not holds(JsonClaim(path="ok", equals=1.5), document)
    assert not holds(JsonClaim(path="missing", equals=None), document)
    assert holds(JsonClaim(path="findings.*.code", contains="B"), document)
    assert not holds(JsonClaim(path="findings.*.code", contains="C"), document)
    assert not holds(JsonClaim(path="findings.*.code", lacks="A"), document)
    claims = [claim for param in RUNNABLE for claim in param.values[0].json_claims]
    assert all(claim.model_fields_set & {"equals", "contains", "lacks"} for claim in claims)
    assert len(claims) > 10


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Annotations as the pages name them, below a folder of the test: 512 records each."""
    root = tmp_path_factory.mktemp("data")
    turns = [{"from": "human", "value": "<video>\nDoes it stop?"}, {"from": "gpt", "value": "yes"}]
    for name in ("train", "val"):
        (root / name).mkdir()
        records = [
            {"id": f"{name}{n}", "video": f"{name}{n}.mp4", "video_fps": 25.0, "conversations": turns} for n in range(512)
        ]
        (root / name / "annotations.json").write_text(json.dumps(records))
    return root


BUILDS = [
    pytest.param(file, command.words, id=f"{file}:{command.line}")
    for file in ("SKILL.md", "references/datasets.md", "references/spec-construction.md", "references/evaluate.md")
    for command in commands_in(page(file))
    if command.is_whole and command.words[1:3] == ("spec", "build") and "--spec" not in command.words
]


@pytest.mark.parametrize(("file", "words"), BUILDS)
def test_a_spec_that_a_page_builds_keeps_every_rule(
    file: str, words: tuple[str, ...], data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    here = [re.sub(r"(?<![\w/])/data/", f"{data}/", word) for word in words]
    code, document = run([*here, "--dry-run"], capsys)
    assert code == 0, shlex.join(here) + str(document["findings"])
    warnings = {finding["code"] for finding in document["findings"] if finding["severity"] == "warning"}
    assert warnings <= {"SPEC_CHECKPOINT_CADENCE"}


def test_skill_info_has_its_form_and_the_schema_is_made_of_it() -> None:
    found = info()
    on_disk = json.loads((REPOSITORY / "schemas" / "skill_info.schema.json").read_text())
    assert on_disk["properties"].keys() == SkillInfo.model_fields.keys()
    assert found.automl_enabled
    assert [(c.name, c.required, c.pass_as) for c in found.credentials] == [("HF_TOKEN", True, "docker_env_var")]
    assert found.dataset.model_dump() == {"type": "vlm", "formats": ["llava"], "intents": ["training", "evaluation", "testing"]}
    assert set(found.actions) == {action.name for action in ACTIONS if action.skill == NAME}
    assert found.checkpoint.model_dump() == {"format": "safetensors", "folder": True, "parents": ["train", "export", "automl"]}


def test_spec_keys_of_skill_info_belong_to_their_action() -> None:
    found = info()
    models = {action.name: action.model for action in ACTIONS if action.skill == NAME}
    named = [(action, key) for action, sources in found.data_sources.items() for key in sources]
    for action, entry in found.actions.items():
        named += [(action, key) for key in (*entry.inputs, *entry.outputs, *entry.spec_from_parent)]
        named += [(action, part.selective.annotation) for part in entry.inputs.values() if part.selective]
    assert [(action, key) for action, key in named if find_key(models[action], key) is None] == []
    assert len(named) > 30


def test_the_page_of_mappings_says_what_skill_info_says() -> None:
    rows = {
        (row.cells[0], row.cells[1].strip("`"), row.cells[2]) for row in page("references/deft-and-inference-mappings.md").rows
    }
    wanted = {(action, key, value) for action, entry in info().actions.items() for key, value in entry.spec_from_parent.items()}
    assert rows == wanted


def test_the_page_of_data_sets_says_what_skill_info_says() -> None:
    said = {
        (row.cells[0], row.cells[1].strip("`")): (row.cells[2], row.cells[3], row.cells[4].startswith("yes"))
        for row in page("references/datasets.md").rows
        if row.cells[1].startswith("`")
    }
    wanted = {
        (action, key): (source.dataset, source.path, source.required)
        for action, sources in info().data_sources.items()
        for key, source in sources.items()
    }
    assert {key: (dataset, required) for key, (dataset, _, required) in said.items()} == {
        key: (dataset, required) for key, (dataset, _, required) in wanted.items()
    }
    for key, (_, path, _) in wanted.items():
        assert (path or "the root") in said[key][1]


def test_the_deft_contract_names_what_there_is() -> None:
    import pyarrow as pa

    from tao_runtime.deft.gaps import schema

    config = json.loads((SKILL / "config.json").read_text())
    deft = config["deft"]
    assert (SKILL / deft["contract"]).is_file()
    assert (SKILL / deft["gaps"]["script"]).is_file()
    assert Policy(deft["gaps"]["comparison"]) is Policy.LOWER_STRIP
    columns: pa.Schema = schema()
    assert set(deft["gaps"]["columns"]) <= set(columns.names)
    assert deft["evaluate"]["results_fields"] == list(COLUMNS)
    train = next(action.model for action in ACTIONS if (action.skill, action.name) == (NAME, "train"))
    assert all(find_key(train, deft["train"][name]) for name in ("annotation_key", "media_key", "cache_name_key"))
    assert "spec_from_parent" not in json.dumps(config)
    stages = [row.cells[0] for row in page("workflow/deft/deft.md").rows]
    assert stages == deft["stages"]


def test_analyze_gaps_is_the_gaps_command(tmp_path: Path) -> None:
    script = SKILL / "scripts" / "analyze_gaps.py"
    words = ["--results", str(SKILL / "evals/files/results.json"), "--out", str(tmp_path / "gaps.parquet"), "--json"]
    done = subprocess.run([sys.executable, script, *words], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert json.loads(done.stdout)["data"]["num_failures"] == 2

    import pyarrow.parquet as pq

    rows = pq.read_table(tmp_path / "gaps.parquet").to_pylist()
    assert [(row["video_id"], row["ground_truth"], row["verdict_yes_no"]) for row in rows] == [
        ("clips/002.mp4", "yes", "correct"),
        ("clips/003.mp4", "no", "wrong"),
    ]


def test_a_script_under_another_python_says_what_is_missing(tmp_path: Path) -> None:
    script = SKILL / "scripts" / "analyze_gaps.py"
    done = subprocess.run(
        [sys.executable, "-S", "-I", script, "--help"], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert (done.returncode, done.stdout) == (5, "")
    assert "tao-runtime is not installed" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        "turn off AutoML", "disable AutoML", "no HPO", "plain training",  # the seed's phrases
        "tao-skill-bank:tao-run-automl", "skill_dir", "automl_policy", "docker_env_var",
        "https://huggingface.co/nvidia/Cosmos-Reason2-8B", "Error processing sample: 'video_fps'", "~/tao-core",
        ".lower().strip()", "its_directionality", "'NoneType' object has no attribute 'state_dict'",
    ],
)  # fmt: skip
def test_the_skill_says_what_the_users_own_document_says(words: str) -> None:
    assert words in (SKILL / "SKILL.md").read_text(encoding="utf-8")


def test_the_body_is_short_in_real_tokens(qwen_tokenizer_dir: Path) -> None:
    from tokenizers import Tokenizer

    body = (SKILL / "SKILL.md").read_text(encoding="utf-8")
    number = len(Tokenizer.from_file(str(qwen_tokenizer_dir / "tokenizer.json")).encode(body).ids)
    assert number < 5_000
    assert number < len(body) / 4 * 1.3, "SK009's estimate of four characters a token is far off"
    assert len(body.split("\n")) <= 200
