"""Two test files of one name can't be collected together: pytest imports them by their names alone."""

from collections import Counter
from pathlib import Path


def test_every_test_file_has_a_name_of_its_own(repository: Path):
    names = Counter(path.name for path in (repository / "tests").rglob("test_*.py"))
    assert [name for name, count in names.items() if count > 1] == []
