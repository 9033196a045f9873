"""Start a real SLURM on this machine: munged, slurmctld and slurmd with a configuration of their own, as root.

Partitions: `debug` (default, up), `closed` (down), `small` (one node, ten minutes), `reserved` (only for jobs with a
reservation). The only node claims eight GPUs that are device files of no importance: they are scheduled, never opened.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "scontrol")
GPUS = 8
START_LIMIT_S = 30.0


@dataclass(frozen=True)
class SlurmCluster:
    """A running cluster; `variables` point SLURM's commands to it."""

    folder: Path
    variables: dict[str, str]

    def wait_until_idle(self) -> None:
        """Wait for the node: after a start or a resume it is `idle*`, not responding, until its daemon has reported."""
        _wait(lambda: "idle" in self.command("sinfo", "--noheader", "--format=%T").stdout.split(), self.folder)

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run one of SLURM's commands against this cluster."""
        return subprocess.run(words, capture_output=True, text=True, check=False, env={**os.environ, **self.variables})


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def write_config(folder: Path, munge_socket: Path) -> Path:
    """Write slurm.conf and gres.conf for one node, this machine."""
    host = socket.gethostname().partition(".")[0]
    for name in ("state", "spool", "log"):
        (folder / name).mkdir()
    devices = " ".join(f"Name=gpu Type=h100 File=/dev/tty{number}\n" for number in range(GPUS))
    (folder / "gres.conf").write_text("AutoDetect=off\n" + devices.replace("\n ", "\n"))
    (folder / "cgroup.conf").write_text("CgroupAutomount=no\n")
    config = folder / "slurm.conf"
    config.write_text(f"""
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={free_port()}
SlurmdPort={free_port()}
AuthType=auth/munge
AuthInfo=socket={munge_socket}
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SlurmUser=root
SlurmdUser=root
ReturnToService=2
GresTypes=gpu
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/filetxt
JobCompLoc={folder}/log/jobs
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/slurmd.log
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
MessageTimeout=10
KillWait=2
MinJobAge=60
NodeName={host} NodeAddr=127.0.0.1 CPUs={os.cpu_count()} RealMemory=2000 Gres=gpu:h100:{GPUS} State=UNKNOWN
PartitionName=debug Nodes={host} Default=YES MaxTime=INFINITE State=UP
PartitionName=closed Nodes={host} Default=NO MaxTime=INFINITE State=DOWN
PartitionName=small Nodes={host} Default=NO MaxTime=10 MaxNodes=1 State=UP
PartitionName=reserved Nodes={host} Default=NO ReqResv=YES State=UP
""")
    return config


@contextmanager
def running_cluster(folder: Path) -> Iterator[SlurmCluster]:
    """Start a cluster below `folder`, wait until its node is idle, and stop it afterwards.

    Raises:
        RuntimeError: when a program is missing or a daemon does not start; its log is in the message.
    """
    missing = [name for name in PROGRAMS if _program(name) is None]
    if missing or os.geteuid() != 0:
        raise RuntimeError(f"a test cluster needs root and the packages slurm-wlm and munge (make system); missing: {missing}")
    munge_folder = folder / "munge"
    munge_folder.mkdir()
    shutil.chown(munge_folder, "munge", "munge")
    for parent in folder.parents:  # munged insists on reaching its own socket; pytest's folders are for one user only
        if tempfile.gettempdir() in map(str, parent.parents):
            parent.chmod(0o755)
    folder.chmod(0o755)
    socket_path = munge_folder / "munge.socket"
    config = write_config(folder, socket_path)
    variables = {"SLURM_CONF": str(config)}
    environment = {**os.environ, **variables}
    key = munge_folder / "key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o400)
    shutil.chown(key, "munge", "munge")
    words = (
        [
            "setpriv", "--reuid=munge", "--regid=munge", "--clear-groups", str(_program("munged")), "--foreground", "--force",
            f"--key-file={key}", f"--socket={socket_path}", f"--pid-file={munge_folder}/pid",
            f"--log-file={munge_folder}/log", f"--seed-file={munge_folder}/seed",
        ],
        [str(_program("slurmctld")), "-D", "-c", "-f", str(config)],
        [str(_program("slurmd")), "-D", "-f", str(config)],
    )  # fmt: skip
    daemons: list[subprocess.Popen[bytes]] = []
    try:
        with (folder / "daemons.log").open("wb") as log:
            for line in words:
                daemons.append(subprocess.Popen(line, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log))
                _wait(socket_path.is_socket, folder)
        cluster = SlurmCluster(folder, variables)
        cluster.wait_until_idle()
        yield cluster
    finally:
        for daemon in reversed(daemons):
            daemon.terminate()
        for daemon in daemons:
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()


def _program(name: str) -> str | None:
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


def _wait(is_ready, folder: Path) -> None:
    end = time.monotonic() + START_LIMIT_S
    while not is_ready():
        if time.monotonic() > end:
            logs = [folder / "daemons.log", *sorted((folder / "log").glob("*.log"))]
            raise RuntimeError("SLURM did not start:\n" + "\n".join(f"{log.name}: {log.read_text()[-2000:]}" for log in logs))
        time.sleep(0.05)
