"""Start a real container engine with the API of Docker, as root: podman on runc, with a socket and a store of its own.

No registry is asked: images are made from Debian's static busybox.
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tarfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PROGRAMS = ("podman", "runc", "docker", "busybox")
START_LIMIT_S = 30.0
APPLETS = ("sh", "true", "false", "cat", "echo", "env", "ls", "sleep", "test")
# What works here: crun fails on limits and on mixed cgroups. Two engines, of two test processes, would share their locks in
# /dev/shm and their state in /run/libpod, and one would wait for a container of the other's.
_CONTAINERS_CONF = """
[containers]
default_ulimits = ["nofile=1000:1000", "nproc=1000:1000"]
netns = "host"
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
lock_type = "file"
tmp_dir = "{folder}/state"
"""


@dataclass(frozen=True)
class ContainerEngine:
    """A running engine; `address` is its DOCKER_HOST, `plain` an image, `with_redis` one that holds a redis-server."""

    folder: Path
    address: str
    plain: str = "localhost/tao-test:plain"
    with_redis: str = "localhost/tao-test:redis"

    def docker(self, *words: str, stdin: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
        """Run the docker client against this engine."""
        variables = {**os.environ, "DOCKER_HOST": self.address}
        return subprocess.run(["docker", *words], input=stdin, capture_output=True, check=False, env=variables)


def root_file_system(*more: str) -> bytes:
    """Return a tar of a file system that busybox serves; `more` are further programs that do nothing."""
    busybox = shutil.which("busybox")
    assert busybox is not None
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        tar.add(busybox, "bin/busybox")
        for name in (*APPLETS, *more):
            link = tarfile.TarInfo(f"bin/{name}")
            link.type, link.linkname = tarfile.SYMTYPE, "/bin/busybox"
            tar.addfile(link)
        temporary = tarfile.TarInfo("tmp")
        temporary.type, temporary.mode = tarfile.DIRTYPE, 0o1777
        tar.addfile(temporary)
    return content.getvalue()


@contextmanager
def running_engine(folder: Path) -> Iterator[ContainerEngine]:
    """Start an engine below `folder` with both images in it, and stop it afterwards.

    Raises:
        RuntimeError: when a program is missing, or the engine does not start; its log is in the message.
    """
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing or os.geteuid() != 0:
        raise RuntimeError(f"a test engine needs root, podman, runc, docker and busybox (make system); missing: {missing}")
    (folder / "containers.conf").write_text(_CONTAINERS_CONF.format(folder=folder))
    (folder / "storage.conf").write_text(
        f'[storage]\ndriver = "overlay"\ngraphroot = "{folder}/store"\nrunroot = "{folder}/run"\n'
    )
    environment = {
        **os.environ,
        "CONTAINERS_CONF": str(folder / "containers.conf"),
        "CONTAINERS_STORAGE_CONF": str(folder / "storage.conf"),
    }
    socket_path = folder / "engine.sock"
    with (folder / "engine.log").open("wb") as log:
        service = subprocess.Popen(
            ["podman", "system", "service", "--time=0", f"unix://{socket_path}"],
            env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
        )  # fmt: skip
    try:
        engine = ContainerEngine(folder, f"unix://{socket_path}")
        end = time.monotonic() + START_LIMIT_S
        while engine.docker("version").returncode:
            if time.monotonic() > end or service.poll() is not None:
                raise RuntimeError(f"podman's service did not start:\n{(folder / 'engine.log').read_text()[-2000:]}")
            time.sleep(0.05)
        for image, more in ((engine.plain, ()), (engine.with_redis, ("redis-server",))):
            made = engine.docker("import", "-", image, stdin=root_file_system(*more))
            if made.returncode:
                raise RuntimeError(f"no image could be made: {made.stderr.decode()}")
        yield engine
    finally:
        engine_containers = subprocess.run(
            ["podman", "ps", "-aq"], env=environment, capture_output=True, text=True, check=False
        )
        if engine_containers.stdout.split():
            subprocess.run(
                ["podman", "rm", "-f", *engine_containers.stdout.split()], env=environment, check=False, capture_output=True
            )
        service.terminate()
        try:
            service.wait(10)
        except subprocess.TimeoutExpired:
            service.kill()
            service.wait()
        # The store is a mount of its own, which keeps pytest from removing the folder.
        subprocess.run(["umount", str(folder / "store" / "overlay")], check=False, capture_output=True)
