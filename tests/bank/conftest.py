"""Banks to lint."""

from pathlib import Path

import pytest
from bank.bank_factory import Bank

from tao_runtime.bank.lint_subject import CommandLine
from tao_runtime.cli.skills import command_line


@pytest.fixture(scope="session")
def real_command_line() -> CommandLine:
    """The command line of tao-runtime as it is."""
    return command_line()


@pytest.fixture
def good_bank(tmp_path: Path) -> Bank:
    """A bank without a fault."""
    return Bank(tmp_path)
