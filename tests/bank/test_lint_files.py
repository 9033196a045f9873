"""SK010 to SK012, SK019 and SK021: what hangs together, and what must not be in a file."""

from collections.abc import Callable

import pytest
from bank.bank_factory import NAME, PAGE, Bank

from tao_runtime.bank.lint_subject import CommandLine

Change = Callable[[Bank], None]


def add(text: str, file: str = "SKILL.md") -> Change:
    return lambda bank: bank.append(file, f"\n{text}\n")


def new_file(file: str, text: str = "Text.\n", mention: str = "") -> Change:
    def change(bank: Bank) -> None:
        bank.write(file, text)
        bank.append("SKILL.md", mention)

    return change


def at_root(file: str, text: str) -> Change:
    def change(bank: Bank) -> None:
        (bank.root / file).parent.mkdir(exist_ok=True)
        (bank.root / file).write_text(text)

    return change


# Put together here so that this file holds nothing that looks like one.
TOKEN = "hf_" + "Ab3" * 10
KEY_HEADER = "-----BEGIN " + "PRIVATE KEY-----"

BAD: list[tuple[str, Change, str, str]] = [
    # code, what is spoilt, words of the finding, its file
    ("SK010", add("Open [more](references/more.md)."), "leads nowhere", "SKILL.md"),
    ("SK010", add("[more]: references/more.md"), "leads nowhere", "SKILL.md"),
    ("SK010", add("Open [the root](../../../README.md)."), "leaves the skill", "SKILL.md"),
    ("SK010", add("Open [folds](references/folds.md#planes)."), "names no heading", "SKILL.md"),
    ("SK010", add("Open `references/more.md`."), "references/more.md is not in the skill", "SKILL.md"),
    ("SK010", add("Open `schemas/<action>.yaml`."), "is not in the skill", "SKILL.md"),
    ("SK010", add("```bash\npython scripts/unfold.py\n```"), "scripts/unfold.py is not in the skill", "SKILL.md"),
    ("SK010", add("See `config.json`.", PAGE), "config.json is not in the skill", PAGE),
    ("SK010", add("See `skills/data/tao-cut/SKILL.md`."), "lies outside", "SKILL.md"),
    ("SK010", add("Cut with `tao-skill-bank:tao-cut-paper`."), "there is no skill tao-cut-paper", "SKILL.md"),
    ("SK010", at_root("README.md", "See [it](docs/none.md).\n"), "leads nowhere", "../../../README.md"),
    ("SK011", new_file("references/planes.md"), "doesn't name references/planes.md", "references/planes.md"),
    ("SK011", new_file("scripts/cut.sh"), "doesn't name scripts/cut.sh", "scripts/cut.sh"),
    (
        "SK012",
        new_file("references/planes.md", "See [folds](folds.md).\n", "`references/planes.md`"),
        "on to folds.md",
        "references/planes.md",
    ),
    (
        "SK012",
        new_file("references/planes.md", "See `references/folds.md`.\n", "`references/planes.md`"),
        "on to references/folds.md",
        "references/planes.md",
    ),
    ("SK012", add("word\n" * 300, PAGE), "no contents", PAGE),
    ("SK019", add(f"Use {TOKEN}.", PAGE), "looks like a credential", PAGE),
    ("SK019", add("API_KEY=abcdefgh12345678abcd"), "looks like a credential", "SKILL.md"),
    ("SK019", new_file("evals/files/key.pem", KEY_HEADER + "\n"), "looks like a credential", "evals/files/key.pem"),
    (
        "SK019",
        at_root("references/credentials.md", f"HF_TOKEN={TOKEN}\n"),
        "looks like a credential",
        "../../../references/credentials.md",
    ),
    ("SK021", add("Fold\u200b it."), "U+200B ZERO WIDTH SPACE", "SKILL.md"),
    ("SK021", add("if admin\u202e then", "scripts/fold.py"), "U+202E RIGHT-TO-LEFT OVERRIDE", "scripts/fold.py"),
    ("SK021", add("a\U000e0041b", PAGE), "U+E0041", PAGE),
    ("SK021", add("a\u3164b", PAGE), "U+3164 HANGUL FILLER", PAGE),
    ("SK021", new_file("evals/files/a.json", '["\ufeff"]'), "U+FEFF", "evals/files/a.json"),
]

GOOD: list[tuple[str, Change]] = [
    ("SK010", add("Open [folds](references/folds.md#folds), [here](#fold), [web](https://example.org/a.md).")),
    ("SK010", add("It writes `/results/references/more.md`, `safetensors/epoch_1` and `out/config.json`.")),
    ("SK010", add("Names: `tao-skill-bank:tao-paint-paper`, `tao-skill-bank:" + NAME + "`, `schemas/<action>.schema.json`.")),
    ("SK010", add("```text\nreferences are not paths, schemas neither\n```")),
    ("SK010", add("In code `[a](references/none.md)` is no link.")),
    ("SK010", at_root("README.md", "Run `scripts/none.py`, see [changes](manifest.json).\n")),
    ("SK011", new_file("references/planes.md", mention="\n[Planes](references/planes.md) when wings are wanted.\n")),
    ("SK011", new_file("references/spec_template_cut.yaml")),
    ("SK011", new_file("scripts/__pycache__/fold.cpython-311.pyc")),
    (
        "SK012",
        new_file(
            "references/planes.md",
            "As `references/skill_info.yaml` says; see [its top](planes.md#planes).\n\n# Planes\n",
            "`references/planes.md`",
        ),
    ),
    ("SK012", add("## Contents\n" + "word\n" * 300, PAGE)),
    ("SK019", add("HF_TOKEN=YOUR_TOKEN, HF_TOKEN=$HF_TOKEN, API_KEY: <your key>, and hf_model://nvidia/Cosmos-Reason2-8B.")),
    ("SK019", add("max_tokens=1024 token_count: 12345678 sha256 9d63e68bbc394765692e3c7cfec8fe098bb1bfe0")),
    ("SK021", add("Ça va → 視頻 ≥ 3 “ok” ⚠\ufe0f …", PAGE)),
    ("SK021", lambda bank: (bank.skill / "evals" / "files" / "clip.mp4").write_bytes(b"\x00\xff\xe2\x80\x8b\xff")),
]


def ids(cases: list[tuple[str, Change, str, str]]) -> list[str]:
    return [f"{code}-{words}-{number}" for number, (code, _, words, _) in enumerate(cases)]


@pytest.mark.parametrize(("code", "spoil", "words", "file"), BAD, ids=ids(BAD))
def test_a_spoilt_file_is_found(
    good_bank: Bank, real_command_line: CommandLine, code: str, spoil: Change, words: str, file: str
) -> None:
    spoil(good_bank)
    [finding] = good_bank.lint(real_command_line, [code])
    assert finding.code == code
    assert words in finding.what
    assert finding.where.file == (good_bank.skill / file).resolve().relative_to(good_bank.root).as_posix()
    assert finding.fix


@pytest.mark.parametrize(("code", "vary"), GOOD, ids=[f"{code}-{number}" for number, (code, _) in enumerate(GOOD)])
def test_the_nearest_good_file_passes(good_bank: Bank, real_command_line: CommandLine, code: str, vary: Change) -> None:
    vary(good_bank)
    assert good_bank.lint(real_command_line, [code]) == []


def test_lines_are_named_and_a_credential_is_not_quoted(good_bank: Bank, real_command_line: CommandLine) -> None:
    good_bank.write(PAGE, f"# Folds\n\nUse\n{TOKEN}\n")
    [finding] = good_bank.lint(real_command_line, ["SK019"])
    assert finding.where.line == 4
    assert TOKEN not in finding.what + finding.fix


def test_a_companion_that_is_in_the_bank_needs_no_declaration(good_bank: Bank, real_command_line: CommandLine) -> None:
    good_bank.append("SKILL.md", "\nCut with tao-skill-bank:tao-cut-paper.\n")
    (good_bank.root / "skills" / "data" / "tao-cut-paper").mkdir(parents=True)
    assert good_bank.lint(real_command_line, ["SK010"]) == []
