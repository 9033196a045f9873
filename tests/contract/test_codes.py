"""Source, table and documentation share one set of codes."""

import re
from pathlib import Path

import pytest

from tao_runtime.bank.pages import error_codes_page
from tao_runtime.codes import _EXIT_BY_FAMILY, CODES, exit_code_of

FAMILIES = "|".join(family for family in _EXIT_BY_FAMILY if family != "SKILL")
LITERAL = re.compile(rf'"((?:{FAMILIES}|SKILL)_[A-Z][A-Z0-9_]*|SK0[0-9]{{2}})"')


def sources(repository: Path) -> list[Path]:
    files = [*repository.glob("runtime/tao_runtime/**/*.py"), *repository.glob("scripts/**/*.py")]
    return [path for path in files if path.name != "codes.py"]


def test_every_code_in_the_source_is_in_the_table_and_none_is_idle(repository: Path) -> None:
    used: dict[str, str] = {}
    for path in sources(repository):
        for word in LITERAL.findall(path.read_text(encoding="utf-8")):
            used.setdefault(word, str(path.relative_to(repository)))
    families = {word for word in used if any(code.startswith(f"{word}_") for code in CODES)}  # asked for by prefix
    assert {word: place for word, place in used.items() if word not in CODES and word not in families} == {}
    assert set(CODES) - set(used) == set()


@pytest.mark.parametrize("word", CODES)
def test_every_code_has_an_exit_code_and_one_sentence(word: str) -> None:
    assert exit_code_of(word) in {1, 2, 3, 4, 5, 6, 7}
    summary = CODES[word].summary
    assert summary.endswith(".")
    assert "\n" not in summary
    assert CODES[word].rule is None or re.fullmatch(r"[CDH][0-9]{1,2}", CODES[word].rule)


def test_the_page_lists_every_code_once_and_stands_where_it_is_read(repository: Path) -> None:
    page = error_codes_page()
    rows = re.findall(r"^\| ([A-Z][A-Z0-9_]+) \| ([A-Z0-9]*) \| (\d) \| (.+) \|$", page, flags=re.MULTILINE)
    assert [row[0] for row in rows] == list(CODES)
    assert {row[0]: row[1] for row in rows} == {word: code.rule or "" for word, code in CODES.items()}
    for path in (repository / "references/error-codes.md", *repository.glob("skills/*/*/references/error-codes.md")):
        assert path.read_text(encoding="utf-8") == page, path
