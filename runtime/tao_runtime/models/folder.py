"""Make a folder that is there with all its files, or not at all."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tao_runtime.errors import Finding, TaoError, Where
from tao_runtime.files import sync


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder beside `folder`; when all is written, fsync its files and give it the final name.

    Raises:
        TaoError: USAGE_OUTPUT_UNWRITABLE when `folder` exists or can't be made, RUN_STORAGE when a file can't be written.
    """
    from safetensors import SafetensorError

    if folder.exists():
        raise unwritable(folder, "it exists already")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    except OSError as error:
        raise unwritable(folder, error.strerror or "it can't be made") from None
    try:
        yield temporary
        for path in temporary.iterdir():
            sync(path)
        temporary.chmod(0o755)
        temporary.rename(folder)
        sync(folder.parent)
    except (OSError, SafetensorError) as error:
        what = f"{folder} can't be written: {error}"
        fix = f"df -h '{folder.parent}'"
        raise TaoError(Finding("RUN_STORAGE", what, Where(file=str(folder)), fix)) from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def unwritable(folder: Path, reason: str) -> TaoError:
    """Describe a folder that can't take an export."""
    what = f"{folder} can't be written: {reason}"
    return TaoError(Finding("USAGE_OUTPUT_UNWRITABLE", what, Where(file=str(folder)), "Name another results folder."))
