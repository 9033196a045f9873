"""Check a model that lies in a folder: everything needed to load it is there and whole."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

from tao_runtime.errors import Finding, FixKind, Where
from tao_runtime.files import why_no_folder
from tao_runtime.hub.needed import INDEX, NeededFiles, needed_files, shards_of
from tao_runtime.hub.verify import FileFault, content_fault


def check_folder(folder: Path, *, weights: bool = True, key: str | None = None) -> tuple[tuple[str, ...], list[Finding]]:
    """Check a model folder without reading its weights; the size that each weight file's header tells is compared.

    Args:
        folder: the model's folder.
        weights: False when only config and tokenizer are needed.
        key: spec path that names the folder, for findings.

    Returns:
        The names of the needed files that are there, and what is wrong.
    """
    why = why_no_folder(folder)
    if why is not None:
        return (), [_finding("ACCESS_MODEL_FOLDER_MISSING", folder, f"The model folder {folder} {why}", key)]
    needed, faults = look_into(folder, weights=weights)
    findings = [_fault_finding(fault, folder, key) for fault in faults]
    if needed.missing:
        remark = f"; {needed.remark}" if needed.remark else ""
        what = f"The model folder {folder} has no {', '.join(needed.missing)}{remark}"
        findings.append(_finding("ACCESS_MODEL_INCOMPLETE", folder, what, key))
    return needed.present, findings


def look_into(folder: Path, *, weights: bool) -> tuple[NeededFiles, list[FileFault]]:
    """Return which needed files a folder holds, and which of them show by themselves that they are not whole."""
    names = model_names(folder)
    shards, index_fault = _shards(folder, names) if weights else (None, None)
    needed = needed_files(names, shards, weights=weights)
    faults = [] if index_fault is None else [index_fault]
    for name in needed.present:
        fault = None if name == INDEX else content_fault(folder / name, name)
        if fault is not None:
            faults.append(fault)
    return needed, faults


def model_names(folder: Path) -> list[str]:
    """Return the files at the top of a model folder and in its folder of chat templates; a link to nothing is none."""
    paths = [*folder.iterdir(), *(folder / "additional_chat_templates").glob("*")]
    return sorted(path.relative_to(folder).as_posix() for path in paths if path.is_file())


def _shards(folder: Path, names: list[str]) -> tuple[frozenset[str] | None, FileFault | None]:
    if INDEX not in names:
        return None, None
    try:
        return shards_of((folder / INDEX).read_text(encoding="utf-8")), None
    except ValueError as error:
        reason = f"JSON ends or breaks at line {error.lineno}" if isinstance(error, json.JSONDecodeError) else str(error)
        return None, FileFault(INDEX, f"is no index of weights: {reason}")


def _fault_finding(fault: FileFault, folder: Path, key: str | None) -> Finding:
    if "LFS pointer" in fault.what:
        where = Where(file=str(folder / fault.path), key=key)
        fix = f"git -C {shlex.quote(str(folder))} lfs pull"
        what = f"{folder / fault.path} {fault.what}"
        return Finding("ACCESS_MODEL_LFS_POINTER", what, where, fix, fix_kind=FixKind.COMMAND, rule="H3")
    return _finding("ACCESS_MODEL_DAMAGED", folder / fault.path, f"{folder / fault.path} {fault.what}", key)


def _finding(code: str, path: Path, what: str, key: str | None) -> Finding:
    fix = "Copy the whole model there again, or name the model as hf_model://OWNER/NAME to have it downloaded and verified."
    return Finding(code, what, Where(file=str(path), key=key), fix, rule="H3")
