"""Light commands stay light: no torch or transformers, and the start times of design.md."""

import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.start_times import Case, make_cases, measure, table

HEAVY = ("torch", "transformers", "peft", "safetensors", "av", "pandas", "pyarrow")
VERY_LIGHT_LACKS = (*HEAVY, "pydantic", "jsonschema", "numpy", "rich", "huggingface_hub")
ROUNDS, RUNS = 3, 5
SKILL = "tao-finetune-cosmos-reason"
# Runs one command, then says on stderr which of the libraries it loaded.
PROBE = """
import sys
from tao_runtime.cli.main import main
code = 1
try:
    code = main(sys.argv[2:])
except SystemExit as end:
    code = end.code
print("loaded:", *[name for name in sys.argv[1].split(",") if name in sys.modules], file=sys.stderr)
sys.exit(code)
"""


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> list[Case]:
    return make_cases(tmp_path_factory.mktemp("start"))


def loaded_by(words: list[str], names: tuple[str, ...]) -> list[str]:
    done = subprocess.run([sys.executable, "-c", PROBE, ",".join(names), *words], capture_output=True, text=True, check=False)
    assert done.returncode in (0, 5), done.stdout + done.stderr
    return done.stderr.strip().rsplit("\n", 1)[-1].removeprefix("loaded:").split()


def test_the_probe_sees_torch() -> None:
    words = [sys.executable, "-c", PROBE.replace("import sys", "import sys, safetensors", 1), "safetensors", "--version"]
    assert subprocess.run(words, capture_output=True, text=True, check=True).stderr.endswith("loaded: safetensors\n")


@pytest.mark.parametrize(
    "words",
    [["--help"], ["--version"], ["skills", "list", "--json"], ["skills", "show", SKILL], ["skills", "--help"]],
    ids=" ".join,
)
def test_help_and_skills_load_next_to_nothing(words: list[str]) -> None:
    assert loaded_by(words, VERY_LIGHT_LACKS) == []


@pytest.mark.parametrize(
    "words",
    [
        *([*command, "--help"] for command in (["train"], ["evaluate"], ["export"], ["gaps"], ["report"], ["data", "lint"])),
        ["spec", "explain", "train.optm_lr"],
        ["skills", "lint", "--only", "SK016", "--only", "SK017", "--only", "SK020"],
    ],
    ids=" ".join,
)
def test_commands_that_compute_nothing_load_nothing_heavy(words: list[str]) -> None:
    assert loaded_by(words, HEAVY) == []


def test_checks_without_media_load_nothing_heavy(cases: list[Case]) -> None:
    loaded = {case.name: loaded_by(list(case.words), HEAVY) for case in cases}
    assert loaded == {case.name: [] for case in cases}
    assert {"spec build", "plan", "preflight", "data lint", "data split", "data convert"} <= loaded.keys()


def test_scripts_print_their_help_without_torch(repository: Path) -> None:
    for script in [*repository.glob("scripts/*.py"), *repository.glob("skills/*/*/scripts/*.py")]:
        words = [sys.executable, "-X", "importtime", str(script), "--help"]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()}
        assert imported & set(HEAVY) == set(), script


def test_commands_start_as_fast_as_the_design_says(cases: list[Case]) -> None:
    """CPU time, since the other test processes share the cores; a round in which they got in the way is made again."""
    for _ in range(ROUNDS):
        measured = measure(cases, RUNS)
        print(table(measured, RUNS))
        late = [m for m in measured if m.cpu_s > m.case.limit_s]
        if not late:
            return
    pytest.fail(table(late, RUNS))
