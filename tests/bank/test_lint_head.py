"""SK001 to SK009 and SK022: front matter and size."""

from collections.abc import Callable

import pytest
from bank.bank_factory import BODY, DESCRIPTION, FRONT, NAME, Bank

from tao_runtime import __version__
from tao_runtime.bank.lint_subject import CommandLine
from tao_runtime.errors import Severity

Change = Callable[[Bank], None]


def front(old: str, new: str) -> Change:
    return lambda bank: bank.replace("SKILL.md", old, new)


def whole(text: str) -> Change:
    return lambda bank: bank.write("SKILL.md", text)


def described(text: str) -> Change:
    return front(f"description: {DESCRIPTION}", f"description: {text}")


def without_file(bank: Bank) -> None:
    (bank.skill / "SKILL.md").unlink()


def in_small_letters(bank: Bank) -> None:
    (bank.skill / "SKILL.md").rename(bank.skill / "skill.md")


def not_utf8(bank: Bank) -> None:
    path = bank.skill / "SKILL.md"
    path.write_bytes(path.read_bytes() + "café".encode("latin-1"))


def twin(bank: Bank) -> None:
    other = bank.root / "skills" / "data" / NAME
    other.mkdir(parents=True)
    (other / "SKILL.md").write_text(FRONT)


def many_skills(count: int) -> Change:
    """Add skills whose descriptions have 990 characters."""

    def add(bank: Bank) -> None:
        for number in range(count):
            folder = bank.root / "skills" / "data" / f"tao-{number}"
            folder.mkdir(parents=True)
            (folder / "SKILL.md").write_text(f"---\nname: tao-{number}\ndescription: Fold. Use when {'x' * 976}\n---\n")

    return add


LONG_LINE = "word " * 20 + "\n"
BAD: list[tuple[str, Change, str, int | None]] = [
    # code, what is spoilt, words of the finding, its line
    ("SK001", without_file, "has no SKILL.md", None),
    ("SK001", in_small_letters, "holds skill.md", None),
    ("SK001", whole((FRONT + BODY).replace("\n", "\r\n")), "carriage return", 1),
    ("SK001", whole("\ufeff" + FRONT + BODY), "byte order mark", 1),
    ("SK001", not_utf8, "is not UTF-8", None),
    ("SK001", whole(FRONT.removesuffix("---\n") + BODY), "no front matter", 1),
    ("SK001", whole("\n" + FRONT + BODY), "no front matter", 1),
    ("SK002", front("allowed-tools: Read", "tags: [paper]\nallowed-tools: Read"), "tags is not a key", 10),
    ("SK002", front("license: Apache-2.0\n", "license: Apache-2.0\nlicense: MIT\n"), "license is written twice", 5),
    ("SK002", whole("---\n- name\n---\n"), "is not a mapping", 1),
    ("SK002", described("Fold: use when. Use when: no"), "mapping values are not allowed", 3),
    ("SK003", front(f"name: {NAME}", "name: tao-fold"), "'tao-fold' in a directory called", 2),
    ("SK003", front(f"name: {NAME}", f"name: {NAME.upper()}"), "TAO-FOLD-PAPER", 2),
    ("SK003", front(f"name: {NAME}\n", ""), "there is no name", None),
    ("SK003", twin, "has the same name", 2),
    ("SK004", front(f"description: {DESCRIPTION}\n", ""), "description is None", None),
    ("SK004", described('""'), "description is ''", 3),
    ("SK004", described(DESCRIPTION + " Paper." * 150), "characters", 3),
    ("SK004", described(f'"{DESCRIPTION.replace("boats", "boats <b>")}"'), "contains <", 3),
    ("SK004", described(f'"{DESCRIPTION} --- and more"'), "contains ---", 3),
    ("SK004", described(">\n  " + DESCRIPTION), "not one paragraph", 3),
    ("SK004", described("Fold paper. Use when http://a.b: or"), "unquoted colon", 3),
    ("SK004", described("Fold paper into boats and planes."), "when to use", 3),
    ("SK004", described("This skill folds paper. Use when a user wants a toy."), "starts with 'This'", 3),
    ("SK004", described("paper folding. Use when a user wants a toy."), "starts with 'paper'", 3),
    ("SK004", described("Fold " + "paper " * 40 + "well. Use when a user wants a toy."), "first sentence", 3),
    ("SK005", many_skills(8), "characters together", None),
    ("SK006", front("compatibility: Needs paper.", 'compatibility: ""'), "compatibility has 0", 5),
    ("SK006", front("compatibility: Needs paper.", "compatibility: " + "paper " * 100), "compatibility has 599", 5),
    ("SK006", front("compatibility: Needs paper.", "compatibility: [paper]"), "['paper']", 5),
    ("SK007", front(f'version: "{__version__}"', "version: 0.9"), "metadata.version is 0.9, not text", 6),
    ("SK007", front(f'version: "{__version__}"', 'version: "9.9.9"'), "manifest.json says", 6),
    ("SK007", front("tags: paper toys", "tags: [paper, toys]"), "metadata.tags", 6),
    (
        "SK007",
        front(f'metadata:\n  version: "{__version__}"\n  tags: paper toys\n  companions: tao-paint-paper\n', ""),
        "None",
        None,
    ),
    ("SK008", front("allowed-tools: Read Bash(git:*)", "allowed-tools: [Read, Bash]"), "['Read', 'Bash']", 10),
    ("SK008", front("allowed-tools: Read Bash(git:*)", "allowed-tools: Read, Bash"), "Read, Bash", 10),
    ("SK009", whole(FRONT + BODY + "word\n" * 500), "lines", None),
    ("SK009", whole(FRONT + BODY + LONG_LINE * 201), "tokens", None),
    ("SK009", whole(FRONT + BODY + "word\n" * 190), "200 are enough", None),
    ("SK022", front("license: Apache-2.0", "licence: Apache-2.0"), "Unexpected fields", None),
    ("SK022", front(f"name: {NAME}", "name: tao-fold"), "must match", None),
]

GOOD: list[tuple[str, Change]] = [
    ("SK001", whole(FRONT + "\nÉtoile, 船: é is UTF-8.\n")),
    ("SK001", whole(FRONT + BODY + "\n---\n\nA rule in the body.\n")),
    ("SK002", front("compatibility: Needs paper.\n", "")),
    ("SK003", many_skills(1)),
    ("SK004", described(f'"Fold paper: boats and planes. {DESCRIPTION}"')),
    ("SK004", described("Fold paper (A4 - A5) into boats. Use when a user has paper. Not for card.")),
    ("SK004", described(DESCRIPTION + " Paper." * 130)),
    ("SK005", many_skills(7)),
    ("SK006", front("compatibility: Needs paper.", "compatibility: " + "p" * 500)),
    ("SK007", front("tags: paper toys", 'tags: "1"')),
    ("SK008", front("allowed-tools: Read Bash(git:*)", "allowed-tools: Read Bash(git add:*) Write")),
    ("SK009", whole(FRONT + BODY + "word\n" * 170)),
    ("SK022", front("license: Apache-2.0", "license: MIT")),
]


@pytest.mark.parametrize(("code", "spoil", "words", "line"), BAD, ids=[f"{code}-{words}" for code, _, words, _ in BAD])
def test_a_spoilt_head_is_found(
    good_bank: Bank, real_command_line: CommandLine, code: str, spoil: Change, words: str, line: int | None
) -> None:
    spoil(good_bank)
    findings = good_bank.lint(real_command_line, [code])
    matching = [finding for finding in findings if words in finding.what]
    assert matching, [finding.what for finding in findings]
    assert {finding.code for finding in findings} == {code}
    assert all(finding.fix for finding in findings)
    if line is not None:
        assert matching[0].where.line == line
    assert matching[0].where.file is not None
    assert not matching[0].where.file.startswith("/")


@pytest.mark.parametrize(("code", "vary"), GOOD, ids=[f"{code}-{number}" for number, (code, _) in enumerate(GOOD)])
def test_the_nearest_good_head_passes(good_bank: Bank, real_command_line: CommandLine, code: str, vary: Change) -> None:
    vary(good_bank)
    assert good_bank.lint(real_command_line, [code]) == []


def test_a_long_body_is_a_warning_first(good_bank: Bank, real_command_line: CommandLine) -> None:
    good_bank.append("SKILL.md", "word\n" * 190)
    assert [finding.severity for finding in good_bank.lint(real_command_line, ["SK009"])] == [Severity.WARNING]


def test_without_the_standards_validator_the_check_is_skipped_and_says_so(
    good_bank: Bank, real_command_line: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "skills_ref", None)
    [finding] = good_bank.lint(real_command_line, ["SK022"])
    assert finding.severity is Severity.SKIPPED
    assert "not installed" in finding.what
