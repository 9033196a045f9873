"""A pytest plugin: instead of running the collected tests once, run each code's rows against every mutant of the code.

`python -m pytest -p mutants.rows_plugin --mutants-out FILE [--mutants-share N/M] TESTS…`, with tests/ on PYTHONPATH. A row of
a code is a test that has the code in its id or names it in its text. Where no id has it, the neighbours of those tests count
too that mirror the changed module's package: the silent test of a code seldom names it.
"""

import inspect
import json
import os
import re
import signal
import sys
import tempfile
import time
import types
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from types import FrameType

import pytest
from _pytest.runner import runtestprotocol
from mutants.sites import Mutant, find_mutants, read_package
from mutants.swap import mutated

PACKAGE = Path(__file__).resolve().parents[2] / "runtime" / "tao_runtime"
ROW_LIMIT_S = 60
WORD = re.compile(r"\b[A-Z]+(?:_[A-Z0-9]+)+\b")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--mutants-out", help="file for what became of each mutant, JSON")
    parser.addoption("--mutants-share", default="1/1", help="N/M takes the N-th of every M mutants")
    parser.addoption("--mutants-like", default="", help="take mutants whose name matches this expression")


class Between(pytest.Item):
    """Stand for the next test, which is in no module: every row is torn down, and fixtures of the session stay."""

    def runtest(self) -> None:
        """Do nothing."""


class Rows:
    """The collected tests as rows of codes."""

    def __init__(self, session: pytest.Session) -> None:
        items = [item for item in session.items if isinstance(item, pytest.Function)]
        self._between = Between.from_parent(session, name="between")
        self._holds: dict[str, bool] = {}
        self._beside: dict[Path, list[pytest.Function]] = defaultdict(list)
        self._in_id: dict[str, list[pytest.Function]] = defaultdict(list)
        self._in_text: dict[str, list[pytest.Function]] = defaultdict(list)
        words_of = lru_cache(_words_of)
        for item in items:
            self._beside[item.path].append(item)
            for code in set(WORD.findall(item.name)):
                self._in_id[code].append(item)
            for code in words_of(item.function):
                self._in_text[code].append(item)

    def of(self, mutant: Mutant) -> list[pytest.Function]:
        """Return the rows of a mutant's code, those that name it first."""
        exact, naming = self._in_id[mutant.code], self._in_text[mutant.code]
        mirror = mutant.module.partition("/")[0]
        files = dict.fromkeys(item.path for item in naming if item.path.parent.name == mirror)
        beside = [] if exact else [item for path in files for item in self._beside[path]]
        return list(dict.fromkeys([*exact, *naming, *beside]))

    def fails(self, item: pytest.Function) -> bool:
        """Run a row; return whether it fails. A hanging one does."""
        with own_cache(), time_limit():
            reports = runtestprotocol(item, nextitem=self._between, log=False)
        return any(report.failed for report in reports)

    def holds(self, item: pytest.Function) -> bool:
        """Return whether a row passes without a mutant; it is run once."""
        if item.nodeid not in self._holds:
            self._holds[item.nodeid] = not self.fails(item)
        return self._holds[item.nodeid]

    def holds_again(self, item: pytest.Function) -> bool:
        """Return whether a row that failed passes now: else it was not the mutant, and it is no row any more."""
        self._holds[item.nodeid] = not self.fails(item)
        return self._holds[item.nodeid]


def _words_of(function: types.FunctionType) -> set[str]:
    """Return the codes in a function's text, and those that it names by a constant of its module."""
    constants = map(function.__globals__.get, function.__code__.co_names)
    return {*WORD.findall(inspect.getsource(function)), *(one for one in constants if isinstance(one, str))}


@contextmanager
def own_cache() -> Iterator[None]:
    """Keep what one row measured from the next, on disk and in the process."""
    for module in [one for name, one in sys.modules.items() if name.startswith("tao_runtime.")]:
        for value in list(vars(module).values()):
            if hasattr(value, "cache_clear"):
                value.cache_clear()
    before = os.environ.get("TAO_CACHE_DIR")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TAO_CACHE_DIR"] = folder
        try:
            yield
        finally:
            if before is not None:
                os.environ["TAO_CACHE_DIR"] = before


@contextmanager
def time_limit() -> Iterator[None]:
    def stop(_: int, __: FrameType | None) -> None:
        raise TimeoutError(f"the row ran longer than {ROW_LIMIT_S} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(ROW_LIMIT_S)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def chosen_mutants(share: str, like: str) -> list[Mutant]:
    """Return the mutants whose name matches, of them a share `N/M`: it stays the same when others come and go."""
    number, of = map(int, share.split("/"))
    mutants = [one for one in find_mutants(read_package(PACKAGE)) if re.search(like, one.name)]
    return [one for one in mutants if zlib.crc32(one.name.encode()) % of == number - 1]


def fate_of(mutant: Mutant, rows: Rows) -> dict[str, object]:
    """Run the rows of a mutant's code until one fails."""
    started, row_names = time.monotonic(), []
    killed_by = None
    for row in rows.of(mutant):
        if not rows.holds(row):
            continue
        row_names.append(row.nodeid)
        with mutated(mutant, PACKAGE):
            is_dead = rows.fails(row)
        if is_dead and rows.holds_again(row):
            killed_by = row.nodeid
            break
    seconds = round(time.monotonic() - started, 2)
    return {"mutant": mutant.name, "line": mutant.line, "killed_by": killed_by, "rows": len(row_names), "seconds": seconds}


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    out = session.config.getoption("--mutants-out")
    if out is None or session.testsfailed or session.config.option.collectonly:
        return None
    option: Callable[[str], str] = session.config.getoption
    rows, fates = Rows(session), []
    for mutant in chosen_mutants(option("--mutants-share"), option("--mutants-like")):
        fates.append(fate_of(mutant, rows))
        print(json.dumps(fates[-1]), file=sys.__stderr__, flush=True)
    broken = sorted(name for name, holds in rows._holds.items() if not holds)
    Path(out).write_text(json.dumps({"fates": fates, "rows": len(rows._holds), "rows_that_fail_unchanged": broken}))
    return True
