"""Ask SLURM: whether it answers, and whether the partition can ever run the launch (rule H1)."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tao_runtime.errors import Finding, FixKind, Severity, Where
from tao_runtime.files import nearest_existing
from tao_runtime.preflight.datasets import value_at
from tao_runtime.preflight.host_checks import ASK_LIMIT_S, Answer, ask, not_checked
from tao_runtime.preflight.host_request import HostRequest, Layout
from tao_runtime.preflight.report import Check, Part, joined

SUBJECT = "SLURM"
# A job that looks at paths: half of it to start, half to look.
NODE_LIMIT_S = 15.0
_COMMANDS = ("sinfo", "scontrol", "sbatch")
_GPUS = re.compile(r"\bgpu(?::[^:,()]+)?:(\d+)")
# States in which a node will not take a job before somebody mends it. Source: man sinfo, NODE STATE CODES.
_UNUSABLE = re.compile(r"down|drain|fail|inval|maint|powered_down|powering_down|unk|\*$")
_READ_KEYS = (
    "custom.train_dataset.annotation_path",
    "custom.train_dataset.media_path",
    "custom.val_dataset.annotation_path",
    "custom.val_dataset.media_path",
    "dataset.annotation_path",
    "dataset.media_dir",
    "policy.model_name_or_path",
    "model.model_name",
    "model.model_path",
    "model.base_model_path",
)
_WRITE_KEYS = ("results_dir", "train.output_dir")
# Runs on a node: $1 is the folder to write, the rest must be there.
_LOOK = 'test -w "$1" || echo "w $1"; shift; for path in "$@"; do test -e "$path" || echo "r $path"; done'


@dataclass(frozen=True, slots=True)
class Node:
    """One node of the partition."""

    name: str
    state: str
    gpus: int

    @property
    def is_usable(self) -> bool:
        """The node runs jobs, now or when others have ended."""
        return _UNUSABLE.search(self.state) is None


def slurm_part(request: HostRequest) -> Part:
    """Judge controller, partition, limits and account; the job itself is only tried with `sbatch --test-only`."""
    missing = [name for name in _COMMANDS if shutil.which(name) is None]
    if missing:
        what = f"{', '.join(missing)} not on PATH, so this machine can't submit to SLURM"
        fix = "Run preflight on a login node of the cluster."
        return Part((_error("HOST_SLURM_MISSING", what, fix),))
    answer = ask(["scontrol", "--oneliner", "show", "partition"])
    if not answer.is_good:
        return Part((_down(answer),))
    partitions = {fields["PartitionName"]: fields for fields in map(_fields, answer.output.splitlines()) if fields}
    name = request.place.partition or request.environment.slurm_partition
    name = name or next((key for key, fields in partitions.items() if fields.get("Default") == "YES"), None)
    if name not in partitions:
        return Part((_unknown_partition(name, sorted(partitions)),))
    return joined([_partition_part(request, name, partitions[name]), _trial(request, name), _paths_part(request, name)])


def _partition_part(request: HostRequest, name: str, fields: Mapping[str, str]) -> Part:
    answer = ask(["sinfo", "--noheader", "--Node", f"--partition={name}", "--format=%N|%T|%G"])
    nodes = [
        Node(n, s, sum(map(int, _GPUS.findall(g)))) for n, s, g in (line.split("|") for line in answer.output.splitlines())
    ]
    usable = [node for node in nodes if node.is_usable]
    layout = _wanted(request)
    outcome = (
        f"partition {name} is {fields.get('State', '?').lower()}: {len(usable)} of {len(nodes)} nodes usable, up to "
        f"{max((node.gpus for node in nodes), default=0)} GPUs each, at most {fields.get('MaxTime', '?').lower()} a job"
    )
    return Part(tuple(_partition_findings(name, fields, nodes, layout)), (Check(SUBJECT, outcome),))


def _wanted(request: HostRequest) -> Layout:
    return Layout(1, 0) if request.device == "cpu" else request.layout


def _partition_findings(name: str, fields: Mapping[str, str], nodes: list[Node], layout: Layout) -> Iterator[Finding]:
    if fields.get("State") != "UP":
        what = f"partition {name} is {fields.get('State', '?').lower()}: it starts no jobs"
        yield _error("HOST_SLURM_PARTITION_DOWN", what, "Name another with --partition; `sinfo` lists them.", name)
    allowed = fields.get("MaxNodes", "UNLIMITED")
    if allowed.isdigit() and layout.nodes > int(allowed):
        what = f"the spec takes {layout.nodes} nodes and partition {name} allows {allowed} a job"
        fix = f"Set policy.parallelism.dp_replicate_size to {allowed} or less, or name another partition."
        yield _error("HOST_SLURM_LIMIT", what, fix, name, FixKind.EDIT)
    fitting = [node for node in nodes if node.gpus >= layout.gpus_per_node]
    usable = [node for node in fitting if node.is_usable]
    needed = f"the spec takes {layout.nodes} nodes with {layout.gpus_per_node} GPUs each and partition {name} has"
    if len(fitting) < layout.nodes:
        most = max((node.gpus for node in nodes), default=0)
        what = f"{needed} {len(fitting)} such of {len(nodes)}; at most {most} GPUs in one"
        fix = "Lay the ranks out for the nodes there are (policy.parallelism), or name another partition."
        yield _error("HOST_SLURM_LIMIT", what, fix, name, FixKind.EDIT)
    elif len(usable) < layout.nodes:
        states = ", ".join(sorted({node.state for node in fitting if not node.is_usable}))
        what = f"{needed} {len(usable)} usable of {len(fitting)} such; the others are {states}"
        yield Finding(
            "HOST_SLURM_NODES_DOWN",
            what,
            Where(host=name),
            f"sinfo -R -p {shlex.quote(name)}",
            Severity.WARNING,
            FixKind.COMMAND,
            "H1",
        )


def _trial(request: HostRequest, name: str) -> Part:
    """Let the controller judge a job of this shape without submitting it: account, limits, quality of service."""
    layout = _wanted(request)
    account = request.place.account or request.environment.slurm_account
    words = ["sbatch", "--test-only", f"--partition={name}", f"--nodes={layout.nodes}"]
    words += [f"--gpus-per-node={layout.gpus_per_node}"] if layout.gpus_per_node else []
    words += [f"--account={account}"] if account else []
    answer = ask([*words, "--wrap=true"])
    if answer.exit_code is None:
        return not_checked("H1", "trial job", f"sbatch did not answer within {ASK_LIMIT_S:g} s", "Run the check again.")
    if answer.is_good:
        return Part((), (Check("trial job", answer.complaint.removeprefix("sbatch: ")),))
    said = answer.complaint
    if "account" in said.lower():
        what = f"SLURM takes no job of account {account or '(none named)'} on partition {name}: {said}"
        fix = "Name your account with --account; `sacctmgr -n show assoc user=$USER format=account` lists them."
        return Part((_error("HOST_SLURM_ACCOUNT", what, fix, name),))
    what = f"SLURM would refuse {shlex.join(words[2:])}: {said}"
    fix = "Change layout, partition or account as SLURM says."
    return Part((_error("HOST_SLURM_REFUSED", what, fix, name),))


def _paths_part(request: HostRequest, name: str) -> Part:
    """Look at the spec's paths from a compute node, in a job of a second, when that was allowed."""
    if not request.place.asks_nodes:
        why = "whether a compute node sees the spec's paths was not asked"
        return not_checked("H1", "shared paths", why, "Pass --ask-nodes: it starts a job of one second.")
    written = [nearest_existing(path) for path in _paths(request, _WRITE_KEYS)][:1] or [Path("/")]
    read = [path for path in _paths(request, _READ_KEYS) if nearest_existing(path) == path]
    account = request.place.account or request.environment.slurm_account
    words = [
        "srun",
        "--quiet",
        f"--partition={name}",
        *([f"--account={account}"] if account else []),
        "--nodes=1",
        "--ntasks=1",
    ]
    words += ["--time=1", f"--immediate={NODE_LIMIT_S // 2:g}", "--export=NONE", "--chdir=/", "/bin/sh", "-c", _LOOK, "look"]
    answer = ask([*words, *map(str, [*written, *read])], NODE_LIMIT_S)
    if not answer.is_good:
        said = "no node was free at once" if answer.exit_code is None else answer.complaint
        return not_checked("H1", "shared paths", f"no compute node could be asked: {said}", "Run the check again later.")
    unseen = [line.partition(" ") for line in answer.output.splitlines()]
    findings = tuple(
        _error(
            "HOST_PATH_NOT_SHARED",
            f"a compute node of {name} can't {'write' if how == 'w' else 'see'} {path}, which is there on this machine",
            "Move it to a file system that the nodes share, and name that path.",
            path,
        )
        for how, _, path in unseen
    )
    return Part(findings, (Check("shared paths", f"{len(read) + 1 - len(unseen)} of {len(read) + 1} seen by a node"),))


def _paths(request: HostRequest, keys: tuple[str, ...]) -> list[Path]:
    values = [value_at(request.spec, key) for key in keys]
    return [Path(value).absolute() for value in values if isinstance(value, str) and value and "\0" not in value]


def _fields(line: str) -> dict[str, str]:
    return dict(word.partition("=")[::2] for word in line.split() if "=" in word)


def _down(answer: Answer) -> Finding:
    said = f"no answer within {ASK_LIMIT_S:g} s" if answer.exit_code is None else answer.complaint
    fix = "Ask the cluster's operators; `scontrol ping` shows whether the controller is back."
    return _error("HOST_SLURM_DOWN", f"SLURM's controller does not answer: {said}", fix)


def _unknown_partition(name: str | None, known: list[str]) -> Finding:
    listed = ", ".join(known[:12]) + (" …" if len(known) > 12 else "")
    what = f"there is no partition {name!r}" if name else "no partition was named and the cluster has no default"
    return _error("HOST_SLURM_PARTITION", f"{what}; there are: {listed or 'none'}", "Name one of them with --partition.")


def _error(code: str, what: str, fix: str, host: str = SUBJECT, kind: FixKind = FixKind.MANUAL) -> Finding:
    return Finding(code, what, Where(host=host), fix, fix_kind=kind, rule="H1")
