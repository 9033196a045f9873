"""`tao-runtime export`: write a checkpoint as an adapter or as a merged Hugging Face folder."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from tao_runtime.cli.output import CommandResult, add_command


def add_parser(commands: Any, summary: str) -> None:
    """Add `export`."""
    parser = add_command(commands, "export", summary, _run)
    parser.add_argument("--spec", type=Path, metavar="FILE", required=True, help="export spec")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", dest="overrides", help="override; repeatable"
    )
    parser.add_argument(
        "--results-dir", type=Path, metavar="DIR", help="folder that is made (default: results_dir of the spec)"
    )
    parser.add_argument("--dry-run", action="store_true", help="check the spec and the folders; load and write nothing")


def _run(arguments: argparse.Namespace) -> CommandResult:
    from tao_runtime.spec.build import load_spec

    overrides = list(arguments.overrides)
    if arguments.results_dir is not None:
        overrides.append(f"results_dir={json.dumps(str(arguments.results_dir))}")
    spec = load_spec(arguments.spec, "export", overrides)
    if spec.model_path is None or spec.results_dir is None:
        raise TypeError("the rules let a spec without model_path or results_dir pass")

    from tao_runtime.models.export_job import ExportJob

    job = ExportJob(Path(spec.model_path), spec.base_model_path, spec.format, spec.dtype, Path(spec.results_dir))
    job.check()
    if arguments.dry_run:
        return CommandResult("export", {"folder": None, "format": job.format}, text=f"would write {job.target}")
    folder = job.run()
    return CommandResult("export", {"folder": str(folder), "format": job.format}, text=str(folder))
