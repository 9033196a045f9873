"""`tao-runtime preflight`: find every fault that can be known before launch."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from tao_runtime.cli.dataset_arguments import add_dataset_arguments, report_result
from tao_runtime.cli.output import CommandResult, add_command, positive_int
from tao_runtime.config.actions import ACTIONS, skill_names
from tao_runtime.config.names import COSMOS_REASON


def add_parser(commands: Any, summary: str) -> None:
    """Add `preflight`."""
    parser = add_command(commands, "preflight", summary, _run)
    parser.add_argument("--spec", type=Path, metavar="FILE", help="spec to judge; without it, spec and access are skipped")
    parser.add_argument("--skill", choices=skill_names(), default=COSMOS_REASON, help="skill (default: %(default)s)")
    actions = tuple(dict.fromkeys(action.name for action in ACTIONS))
    parser.add_argument("--action", choices=actions, default="train", help="action (default: %(default)s)")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", dest="overrides", help="override; repeatable"
    )
    parser.add_argument(
        "--for", dest="backend", choices=("native", "cosmos-rl"), help="back end that will run it (default: the spec's)"
    )
    parser.add_argument("--num-gpus", type=positive_int, metavar="N", help="GPUs that the job will have")
    parser.add_argument(
        "--hub-timeout",
        type=positive_int,
        metavar="SECONDS",
        default=30,
        help="wait so long for the Hub in all (default: %(default)s)",
    )
    _add_place(parser)
    add_dataset_arguments(parser)


def _add_place(parser: argparse.ArgumentParser) -> None:
    place = parser.add_argument_group("where it will run")
    place.add_argument(
        "--platform",
        choices=("local", "docker", "slurm", "kubernetes"),
        help="where the launch will run (default: local for native; cosmos-rl must be told)",
    )
    place.add_argument("--image", metavar="REFERENCE", help="container image, tag or digest included")
    place.add_argument("--partition", metavar="NAME", help="of SLURM (default: SBATCH_PARTITION, then the cluster's)")
    place.add_argument("--account", metavar="NAME", help="of SLURM (default: SBATCH_ACCOUNT)")
    place.add_argument("--namespace", metavar="NAME", help="of Kubernetes (default: the current context's)")
    place.add_argument(
        "--ask-nodes", action="store_true", help="start a job of one second that looks at the spec's paths from a SLURM node"
    )


def _run(arguments: argparse.Namespace) -> CommandResult:
    from tao_runtime.dataset.collector import select
    from tao_runtime.environment import read_environment
    from tao_runtime.hub.connection import Limits
    from tao_runtime.preflight.datasets import named_source
    from tao_runtime.preflight.host_request import Place
    from tao_runtime.preflight.run import PreflightRequest, run_preflight

    annotations, media_dir = named_source(arguments.annotations, arguments.media_dir, arguments.dataset)
    request = PreflightRequest(
        spec=arguments.spec,
        skill=arguments.skill,
        action=arguments.action,
        overrides=arguments.overrides,
        annotations=annotations,
        media_dir=media_dir,
        backend=arguments.backend,
        num_gpus=arguments.num_gpus,
        with_media=arguments.with_media,
        selection=select(arguments.only, arguments.skip),
        command_line="\n".join(str(value) for name, value in vars(arguments).items() if name != "overrides"),
        hub_limits=Limits(time_limit_s=float(arguments.hub_timeout)),
        place=Place(
            arguments.platform,
            arguments.image,
            arguments.partition,
            arguments.account,
            arguments.namespace,
            asks_nodes=arguments.ask_nodes,
        ),
    )
    report = run_preflight(request, read_environment())
    return report_result("preflight", report, arguments)
