"""SK016: commands in prose against the real command line."""

import pytest
from bank.bank_factory import PAGE, Bank

from tao_runtime.bank.lint_commands import Command, commands_in
from tao_runtime.bank.lint_subject import CommandLine
from tao_runtime.bank.markdown import parse_page


def block(text: str, language: str = "bash") -> str:
    return f"\n```{language}\n{text}\n```\n"


BAD = [
    (block("tao-runtime spec bild --action train"), "invalid choice: 'bild'"),
    (block("tao-runtime spec build --actoin train"), "unrecognized arguments: --actoin"),
    (block("tao-runtime spec build --action trian"), "invalid choice: 'trian'"),
    (block("tao-runtime plan"), "required: --spec"),
    (block("tao-runtime spec build \\\n  --set a=1 \\\n  --sett b=2"), "--sett"),
    (block("$ HF_TOKEN=x tao-runtime plan --spec a.yaml | tao-runtime spec diff"), "required: OLD"),
    (block("cd x && /opt/bin/tao-runtime jobs list"), "invalid choice: 'jobs'"),
    (block("tao-runtime plan --spec=a.yaml --fast", ""), "--fast"),
    (block("python scripts/fold.py --paint red"), "it has no --paint"),
    (block('python "$TAO_BANK/scripts/none.py" --json'), "there is no scripts/none.py in the bank"),
    ("\nRun `tao-runtime deft run` next.\n", "there is no command deft"),
    ("\nRun `tao-runtime spec buidl --set a=1`.\n", "there is no command spec buidl"),
    ("\nRun `tao-runtime plan --sepc a.yaml …`.\n", "it has no --sepc"),
    ("\nGive `--no-medai` for structure only.\n", "no command has --no-medai"),
]
GOOD = [
    block("tao-runtime spec build --action train --set a=1 --out spec.yaml --json  # comment"),
    block("tao-runtime plan …"),
    block("tao-runtime plan --help"),
    block("tao-runtime --version"),
    block("Path('tao-runtime').run('tao-runtime nonsense')", "python"),
    block("docker run --gpus all image\nsbatch --signal=USR1@300 job.sh"),
    block("python scripts/fold.py --out a.txt"),
    "\nRun `tao-runtime plan` or `tao-runtime spec build --set KEY=VALUE …`; `tao-runtime skills` has three words.\n",
    "\nGive `--no-media`, `--set a.b=1`, and docker `--env HF_TOKEN`; `--out` is of the script.\n",
    "\nThe file `tao-runtime.log`, the package `tao_runtime`, the path `doctor/patterns.py`.\n",
]


@pytest.mark.parametrize(("text", "words"), BAD, ids=[words for _, words in BAD])
def test_a_command_that_is_not_there_is_found(good_bank: Bank, real_command_line: CommandLine, text: str, words: str) -> None:
    good_bank.append(PAGE, text)
    [finding] = good_bank.lint(real_command_line, ["SK016"])
    assert finding.code == "SK016"
    assert words in finding.what
    assert finding.where.file is not None
    assert finding.where.file.endswith(PAGE)
    assert finding.where.line is not None


@pytest.mark.parametrize("text", GOOD)
def test_a_command_that_is_there_passes(good_bank: Bank, real_command_line: CommandLine, text: str) -> None:
    good_bank.append(PAGE, text)
    assert good_bank.lint(real_command_line, ["SK016"]) == []


def test_commands_of_data_files_are_held_too(good_bank: Bank, real_command_line: CommandLine) -> None:
    good_bank.replace("evals/evals.json", '"skills", "list"', '"skills", "lits"')
    good_bank.replace("references/skill_info.yaml", "tao-runtime train --spec", "tao-runtime train --spek")
    files = {finding.where.file for finding in good_bank.lint(real_command_line, ["SK016"])}
    folder = f"skills/models/{good_bank.skill.name}"
    assert files == {f"{folder}/evals/evals.json", f"{folder}/references/skill_info.yaml"}


def test_the_banks_pages_are_held_too(good_bank: Bank, real_command_line: CommandLine) -> None:
    (good_bank.root / "README.md").write_text("Run `tao-runtime fly`.\n" + block("python scripts/none.py --fast"))
    found = {finding.what for finding in good_bank.lint(real_command_line, ["SK016"])}
    assert found == {
        "`tao-runtime fly`: there is no command fly",
        "`scripts/none.py --fast`: there is no scripts/none.py in the bank",
    }


def test_lines_and_continuations_are_counted() -> None:
    page = parse_page(
        "# A\n\n```bash\nls\ntao-runtime a \\\n  --b \\\n  c\n# tao-runtime no\ntao-runtime d\n```\n`tao-runtime e`\n"
    )
    assert list(commands_in(page)) == [
        Command(("tao-runtime", "a", "--b", "c"), is_whole=True, line=5),
        Command(("tao-runtime", "d"), is_whole=True, line=9),
        Command(("tao-runtime", "e"), is_whole=False, line=11),
    ]


def test_the_command_line_lists_every_command_and_its_flags(real_command_line: CommandLine) -> None:
    assert {"", "spec", "spec build", "skills lint", "data lint", "preflight", "plan", "train", "gaps"} <= set(
        real_command_line.flags
    )
    assert {"--json", "--set", "--for"} <= real_command_line.flags["spec build"]
    assert real_command_line.refusal(["skills", "list", "--json"]) is None
    assert real_command_line.refusal(["skills", "liszt"]) is not None
