"""`tao-runtime export`: write a checkpoint as an adapter or as a merged Hugging Face folder."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from tao_runtime.cli.output import CommandResult, add_command
from tao_runtime.cli.spec_fixes import fixes_for_file


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
    from tao_runtime.environment import read_environment
    from tao_runtime.spec.build import load_spec

    overrides = list(arguments.overrides)
    if arguments.results_dir is not None:
        overrides.append(f"results_dir={json.dumps(str(arguments.results_dir))}")
    with fixes_for_file(arguments.spec, "export", overrides):
        spec = load_spec(arguments.spec, "export", overrides)
        if spec.model_path is None or spec.results_dir is None:
            raise TypeError("the rules let a spec without model_path or results_dir pass")

        from tao_runtime.models.export_job import ExportJob, is_hub_model, stage_for_export

        environment = read_environment()
        spec, sources = stage_for_export(spec, environment, dry_run=arguments.dry_run)
        target = Path(str(spec.results_dir))
        job = ExportJob(Path(str(spec.model_path)), spec.base_model_path, spec.format, spec.dtype, target)
        job.check(with_source=not is_hub_model(str(spec.model_path)))  # after staging it is a folder
    data = {"folder": None, "format": job.format, "models": [source.to_dict() for source in sources]}
    if arguments.dry_run:
        return CommandResult("export", data, text=f"would write {job.target}")
    folder = job.run()
    return CommandResult("export", {**data, "folder": str(folder)}, text=str(folder))
