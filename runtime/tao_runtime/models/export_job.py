"""Export what a run left: check the folders, then write an adapter or a whole model."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch

from tao_runtime.config.export import ExportSpec
from tao_runtime.environment import Environment
from tao_runtime.errors import Finding, TaoError, Where, raise_errors
from tao_runtime.files import why_unwritable, write_json
from tao_runtime.hub.names import HubModel, parse_model
from tao_runtime.hub.sources import ModelSource, WantedModel, ask_for_model, bring_model
from tao_runtime.models.export import (
    ADAPTER_CONFIG,
    ADAPTER_WEIGHTS,
    base_of,
    is_adapter,
    load_for_inference,
    named_base,
    save_merged,
    unreadable_adapter,
    write_adapter,
)
from tao_runtime.models.folder import new_folder, unwritable
from tao_runtime.models.load import model_folder

# Folders that a run writes side by side: what a resume reads, and what others load.
CHECKPOINTS, EXPORTS = "checkpoints", "safetensors"


@dataclass(frozen=True, slots=True)
class ExportJob:
    """One export.

    Attributes:
        model: a model folder, an adapter folder, or a checkpoint folder of a run, which stands for its export.
        base: base model of an adapter; None takes the one its config names.
        format: `adapter` writes the adapter alone, `merged` a whole model.
        dtype: of the written weights, in torch's word.
        target: folder that is made.
    """

    model: Path
    base: str | None
    format: Literal["adapter", "merged"]
    dtype: str
    target: Path

    def check(self, *, with_source: bool = True) -> None:
        """Look at the folders before anything is loaded.

        Args:
            with_source: False leaves the model alone, in a dry run that did not stage it.

        Raises:
            TaoError: with every fault: ACCESS_MODEL_FOLDER_MISSING, RUN_ADAPTER_BASE, RUN_ADAPTER_UNREADABLE, RUN_NO_ADAPTER,
                RUN_NO_EXPORT, USAGE_OUTPUT_UNWRITABLE.
        """
        faults: list[Finding] = []
        for look in (self._check_source, self._check_target) if with_source else (self._check_target,):
            try:
                look()
            except TaoError as error:
                faults.extend(error.findings)
        raise_errors(faults)

    def run(self) -> Path:
        """Write the folder and return it.

        Raises:
            TaoError: the codes of `check`, of `load_for_inference` and of `save_merged`.
        """
        source, dtype = exported(self.model), getattr(torch, self.dtype)
        if self.format == "adapter":
            return _copy_adapter(source, self.target, self.base, dtype)
        companions = base_of(source, self.base) if is_adapter(source) else model_folder(source)
        # Sums of base and adapter are rounded once: in float32, then to the wanted type.
        return save_merged(load_for_inference(source, self.base, dtype=torch.float32), self.target, companions, dtype)

    def _check_source(self) -> None:
        source = exported(self.model)
        if not is_adapter(source):
            model_folder(source)
            if self.format == "adapter":
                what = f"{source} is a whole model, it has no adapter"
                raise TaoError(Finding("RUN_NO_ADAPTER", what, Where(key="model_path"), "--set format=merged"))
        elif self.format == "merged":
            base_of(source, self.base)
        else:
            named_base(source)

    def _check_target(self) -> None:
        reason = why_unwritable(self.target)
        if reason is not None:
            what = f"results_dir is {self.target}: {reason}"
            raise TaoError(
                Finding("SPEC_OUTPUT_UNWRITABLE", what, Where(key="results_dir"), "Name another folder.", rule="C13")
            )
        if self.target.exists():
            raise unwritable(self.target, "it exists already")


def stage_for_export(
    spec: ExportSpec, environment: Environment, *, dry_run: bool = False
) -> tuple[ExportSpec, list[ModelSource]]:
    """Bring the Hub models that an export reads to this disk.

    Args:
        spec: the export spec.
        environment: the Hub, its cache, the token.
        dry_run: ask for access only, and leave the names as they are.

    Returns:
        The spec with folders in place of the Hub names that were staged, and what was staged. An adapter that stays an
        adapter needs no base, so a base that it shall name is left as it is.

    Raises:
        TaoError: with every fault of access.
    """
    wanted = [WantedModel(spec.model_path or "", "model_path")]
    if spec.format == "merged" and spec.base_model_path is not None:
        wanted.append(WantedModel(spec.base_model_path, "base_model_path"))
    remote = [ask_for_model(one, environment) for one in wanted if is_hub_model(one.name)]
    raise_errors(finding for one in remote for finding in one.findings)
    if dry_run:
        return spec, []
    sources = {one.wanted.key: bring_model(one, environment) for one in remote}
    staged = spec.model_copy(update={key: str(source.folder) for key, source in sources.items()})
    base = _base_in_adapter(staged)
    if base is not None:
        asked = ask_for_model(WantedModel(base, "base_model_path"), environment)
        raise_errors(asked.findings)
        sources["base_model_path"] = bring_model(asked, environment)
        staged = staged.model_copy(update={"base_model_path": str(sources["base_model_path"].folder)})
    return staged, list(sources.values())


def _base_in_adapter(spec: ExportSpec) -> str | None:
    """Return the Hub model that an adapter's own config names as its base, where a merge needs it and the spec names none."""
    if spec.format != "merged" or spec.base_model_path is not None:
        return None
    source = exported(Path(spec.model_path or ""))
    base = named_base(source) if is_adapter(source) else None
    return base if base and is_hub_model(base) else None


def is_hub_model(name: str) -> bool:
    """Return whether a name means a repository of the Hub.

    Raises:
        TaoError: SPEC_MODEL_NAME when it means nothing.
    """
    return isinstance(parse_model(name, "model_path"), HubModel)


def exported(folder: Path) -> Path:
    """Return the export of a run that belongs to a checkpoint folder; any other folder is returned as it is.

    Raises:
        TaoError: RUN_NO_EXPORT when the checkpoint has none.
    """
    if folder.parent.name != CHECKPOINTS or (folder / "config.json").is_file() or is_adapter(folder):
        return folder
    beside = folder.parent.parent / EXPORTS / folder.name
    if not beside.is_dir():
        what = f"{folder} is a checkpoint, and its export {beside} is not there"
        fix = "Go on training with train.ckpt.export_safetensors=true and train.resume=true, or name another checkpoint."
        raise TaoError(Finding("RUN_NO_EXPORT", what, Where(file=str(folder)), fix))
    return beside


def _copy_adapter(source: Path, target: Path, base: str | None, dtype: torch.dtype) -> Path:
    """Write an adapter in another type; its base model is not needed."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    config = json.loads((source / ADAPTER_CONFIG).read_text(encoding="utf-8"))
    if base is not None:
        config["base_model_name_or_path"] = base
    try:
        state = load_file(source / ADAPTER_WEIGHTS)
    except (OSError, SafetensorError) as error:
        raise unreadable_adapter(source / ADAPTER_WEIGHTS, str(error)) from None
    with new_folder(target) as temporary:
        write_adapter(state, temporary, dtype)
        write_json(temporary / ADAPTER_CONFIG, config)
    return target
