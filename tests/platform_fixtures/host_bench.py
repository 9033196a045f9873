"""Give a host check its request and the state of the machine that a test needs, and collect what it finds."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import stat
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from platform_fixtures.fake_nvml import FakeGpu, fake_pynvml

from tao_runtime.environment import read_environment
from tao_runtime.errors import Finding
from tao_runtime.preflight.host_request import HostRequest, Place


class Bench:
    """One machine to check; every method changes it for the test alone."""

    def __init__(self, fixtures: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self._fixtures = fixtures
        self.monkeypatch = monkeypatch
        self.folder = folder
        self.spec: dict[str, Any] = {"results_dir": str(folder / "results"), "native": {"device": "auto"}}

    def fixture(self, name: str) -> Any:
        """Return a fixture of the suite, started when first asked for."""
        return self._fixtures.getfixturevalue(name)

    def request(self, platform: str = "local", backend: str = "native", action: str = "train", **place: Any) -> HostRequest:
        """Return a request for the spec of this bench."""
        where = replace(Place(platform), **place)  # type: ignore[arg-type]
        return HostRequest(action, backend, self.spec, where, read_environment())

    def lay_out(self, gpus: int, nodes: int = 1) -> None:
        """Let the spec ask for so many GPUs on each of so many nodes."""
        self.spec["policy"] = {"parallelism": {"dp_shard_size": gpus, "dp_replicate_size": nodes}}

    def gpus(self, *devices: FakeGpu, visible: str | None = None, **driver: Any) -> None:
        """Let NVML list these devices, and CUDA_VISIBLE_DEVICES be `visible`."""
        self.monkeypatch.setitem(sys.modules, "pynvml", fake_pynvml(list(devices), **driver))
        self.variable("CUDA_VISIBLE_DEVICES", visible)

    def variable(self, name: str, value: str | None) -> None:
        """Set or unset an environment variable."""
        if value is None:
            self.monkeypatch.delenv(name, raising=False)
        else:
            self.monkeypatch.setenv(name, value)

    def slurm(self) -> Any:
        """Point this process to the real cluster."""
        cluster = self.fixture("slurm")
        self.monkeypatch.setenv("SLURM_CONF", cluster.variables["SLURM_CONF"])
        return cluster

    def engine(self) -> Any:
        """Point this process to the real container engine."""
        engine = self.fixture("docker_engine")
        self.monkeypatch.setenv("DOCKER_HOST", engine.address)
        return engine

    def program(self, name: str, text: str) -> None:
        """Put a shell script before everything else on PATH."""
        path = self.folder / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        if not os.environ["PATH"].startswith(str(path.parent)):
            self.monkeypatch.setenv("PATH", f"{path.parent}:{os.environ['PATH']}")

    def without(self, *names: str) -> None:
        """Hide programs: PATH then leads to links of all others."""
        folder = self.folder / "others"
        folder.mkdir()
        for directory in dict.fromkeys(os.environ["PATH"].split(":")):
            for path in sorted(Path(directory).glob("*")):
                if path.name not in names and not (folder / path.name).exists():
                    with contextlib.suppress(OSError):
                        (folder / path.name).symlink_to(path)
        self.monkeypatch.setenv("PATH", str(folder))
        assert not any(map(shutil.which, names))


def codes(findings: tuple[Finding, ...]) -> set[str]:
    """Return the codes that were found."""
    return {finding.code for finding in findings}


@contextlib.contextmanager
def silent_socket(path: Path) -> Iterator[None]:
    """Accept connections on a socket and never answer, as a hanging daemon does."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen(8)
        yield


@contextlib.contextmanager
def listening() -> Iterator[int]:
    """Listen on a free port, on all addresses, and give its number."""
    with socket.socket() as server:
        server.bind(("", 0))
        server.listen(1)
        yield int(server.getsockname()[1])
