"""Show how far a long look has come, on stderr, when a person is there to see it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tao_runtime.media.forms import Progress


@contextmanager
def progress_bar() -> Iterator[Progress | None]:
    """Yield what `lint_annotations` tells its progress to: a bar that vanishes at the end, None when stderr is no terminal."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress as Bar

    with Bar(console=Console(stderr=True), transient=True) as bar:
        tasks = {}

        def show(subject: str, done: int, total: int) -> None:
            if subject not in tasks:
                tasks[subject] = bar.add_task(subject, total=total)
            bar.update(tasks[subject], completed=done)

        yield show
