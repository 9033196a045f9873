"""What commands that run a spec file share: the fixes of their faults as commands that edit that file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tao_runtime.errors import Finding, TaoError


@contextmanager
def fixes_for_file(path: Path, action: str, overrides: Sequence[str]) -> Iterator[None]:
    """Let what is raised inside carry, instead of bare `--set` flags, commands that edit the spec file.

    Args:
        path: spec file that the command was given.
        action: what it is a spec of.
        overrides: texts such as `train.epoch=3` of the command line.
    """
    try:
        yield
    except TaoError as error:
        raise TaoError(with_commands(error.findings, path, action, overrides)) from None


def with_commands(findings: Sequence[Finding], path: Path, action: str, overrides: Sequence[str]) -> list[Finding]:
    """Return the findings with those commands; as they are where the file does not read."""
    from tao_runtime.config.actions import action_of
    from tao_runtime.config.names import COSMOS_REASON
    from tao_runtime.spec.build import build_spec
    from tao_runtime.spec.files import read_spec_file
    from tao_runtime.spec.fixes import SpecFile, with_edits

    try:
        base = read_spec_file(path)
    except TaoError:
        return list(findings)
    model = action_of(COSMOS_REASON, action).model
    file = SpecFile(path, COSMOS_REASON, action, model, base, overrides)
    return with_edits(findings, file, lambda value: build_spec(COSMOS_REASON, action, overrides, value).findings)
