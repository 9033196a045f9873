"""Ask the container engine: whether it answers, has the image, and hands out GPUs (rule H1)."""

from __future__ import annotations

import getpass
import json
import os
import secrets
import shlex
import shutil
import time
from collections.abc import Mapping
from typing import Any

from tao_runtime.errors import Finding, FixKind, Severity, Where
from tao_runtime.preflight.host_checks import ASK_LIMIT_S, Answer, ask, not_checked
from tao_runtime.preflight.host_request import HostRequest
from tao_runtime.preflight.report import Check, Part, joined

SUBJECT = "docker"
_REDIS = "redis-server"
_NOT_THERE = 9
_ASK_AGAIN_S = 0.2
# A first container of an image of many gigabytes takes longer than a question.
RUN_LIMIT_S = 30.0


def docker_part(request: HostRequest) -> Part:
    """Judge the engine that `docker` reaches, which DOCKER_HOST may name, and the image in it."""
    if shutil.which("docker") is None:
        what = "there is no `docker` command on PATH"
        fix = "Install Docker as https://docs.docker.com/engine/install says for this system."
        return Part((_error("HOST_DOCKER_MISSING", what, fix),))
    answer = ask(["docker", "info", "--format", "{{json .}}"])
    info = _parsed(answer)
    if info is None:
        return Part((_no_engine(request, answer),))
    outcome = f"engine {info.get('ServerVersion') or '?'} at {request.environment.docker_host or 'its default address'} answers"
    return joined([Part((), (Check(SUBJECT, outcome),)), _gpu_runtime(request, info), _image_part(request)])


def redis_part(_: HostRequest) -> Part:
    """Look for the redis-server that cosmos-rl starts on this machine."""
    found = shutil.which(_REDIS)
    if found:
        return Part((), (Check(_REDIS, found),))
    what = "cosmos-rl starts redis-server, which is not on PATH here"
    finding = Finding(
        "HOST_REDIS_MISSING",
        what,
        Where(host=_REDIS),
        _as_root("apt-get install -y redis-server"),
        fix_kind=FixKind.COMMAND,
        rule="H1",
    )
    return Part((finding,))


def _parsed(answer: Answer) -> Mapping[str, Any] | None:
    """Return what `docker info` says of the engine, None when it could not be asked (old clients then end with 0)."""
    if not answer.is_good:
        return None
    try:
        info = json.loads(answer.output)
    except ValueError:
        return None
    return info if isinstance(info, dict) and not info.get("ServerErrors") else None


def _no_engine(request: HostRequest, answer: Answer) -> Finding:
    address = request.environment.docker_host
    said = answer.complaint
    if answer.exit_code is None:
        what = f"the container engine did not answer within {ASK_LIMIT_S:g} s"
        return _error("HOST_DOCKER_SILENT", what, _as_root("systemctl restart docker"), FixKind.COMMAND, address)
    if "permission denied" in f"{answer.errors}{answer.output}".lower():
        what = f"this user may not use the engine's socket (log in again after the fix): {said}"
        fix = _as_root(f"usermod -aG docker {shlex.quote(_user())}")
        return _error("HOST_DOCKER_PERMISSION", what, fix, FixKind.COMMAND, address)
    if address is not None:
        fix = "Start the engine that DOCKER_HOST names, or unset DOCKER_HOST to use the one of this machine."
        return _error("HOST_DOCKER_DOWN", said, fix, FixKind.MANUAL, address)
    return _error("HOST_DOCKER_DOWN", said, _as_root("systemctl start docker"), FixKind.COMMAND)


def _gpu_runtime(request: HostRequest, info: Mapping[str, Any]) -> Part:
    if request.device == "cpu":
        return Part()
    runtimes = sorted(info.get("Runtimes") or {})
    devices = [str(device) for device in info.get("DiscoveredDevices") or [] if "nvidia.com/gpu" in str(device)]
    # Docker also serves --gpus when it finds this hook beside itself, without naming a runtime.
    hook = shutil.which("nvidia-container-runtime-hook") if request.is_local_engine else None
    if "nvidia" in runtimes or devices or hook:
        return Part(
            (), (Check("docker GPUs", "the engine has NVIDIA's runtime" if "nvidia" in runtimes else "the engine lists GPUs"),)
        )
    what = f"the engine has no NVIDIA runtime and lists no GPU device; its runtimes are {', '.join(runtimes) or 'none'}"
    fix = _as_root("nvidia-ctk runtime configure --runtime=docker && " + _as_root("systemctl restart docker"))
    return Part((_error("HOST_DOCKER_GPU_RUNTIME", what, fix, FixKind.COMMAND),))


def _image_part(request: HostRequest) -> Part:
    image = request.place.image
    if image is None:
        return not_checked("H1", "image", "no image was named", "Pass --image REFERENCE, tag or digest included.")
    answer = ask(["docker", "image", "inspect", "--format", "{{.Id}}", "--", image])
    if answer.exit_code is None:
        return not_checked("H1", "image", f"the engine did not say whether it has {image}", "Run the check again.")
    if not answer.is_good:
        what = f"the engine does not have {image}, so the job pulls it first: {answer.complaint}"
        fix = f"docker pull {shlex.quote(image)}"
        return Part((Finding("HOST_IMAGE_MISSING", what, Where(host=image), fix, Severity.WARNING, FixKind.COMMAND, "H1"),))
    there = Part((), (Check("image", f"{image} is there: {answer.output.strip()[:19]}"),))
    return joined([there, _redis_in_image(image)]) if request.backend == "cosmos-rl" else there


def _redis_in_image(image: str) -> Part:
    """Look for redis-server on the image's own PATH, in a container without network that ends at once.

    Its exit code is the answer, asked for until it is there. Attaching to it instead, as `docker run` does, waits for an end
    that podman's service has been seen to never report.
    """
    name = f"tao-preflight-{secrets.token_hex(6)}"
    options = ["--name", name, "--pull", "never", "--network", "none", "--entrypoint", "/bin/sh"]
    answer = ask(["docker", "create", *options, image, "-c", f"command -v {_REDIS} || exit {_NOT_THERE}"])
    if answer.is_good:
        answer = ask(["docker", "start", name], RUN_LIMIT_S)
    exit_code = _exit_code(name) if answer.is_good else None
    ask(["docker", "rm", "--force", name])  # also when the client was ended: what it had asked for happens all the same
    if exit_code == 0:
        return Part((), (Check(f"{_REDIS} in the image", "it is on PATH"),))
    if exit_code != _NOT_THERE:
        ended = f" and ended with {exit_code}" if exit_code is not None else ""
        why = f"a container of {image} did not start{ended}" + (f": {answer.complaint}" if answer.exit_code else "")
        return not_checked("H1", f"{_REDIS} in the image", why, f"docker run --rm {shlex.quote(image)} {_REDIS} --version")
    what = f"cosmos-rl starts redis-server, which is not on PATH in {image}"
    fix = "Take an image that holds redis-server, such as NVIDIA's Cosmos-RL image."
    return Part((Finding("HOST_REDIS_MISSING", what, Where(host=image), fix, rule="H1"),))


def _exit_code(name: str) -> int | None:
    """Return the exit code of a started container, None when it does not end in time."""
    end = time.monotonic() + RUN_LIMIT_S
    while time.monotonic() < end:
        answer = ask(["docker", "inspect", "--format", "{{.State.Status}} {{.State.ExitCode}}", name])
        status, _, code = answer.output.strip().partition(" ")
        if answer.is_good and status in {"exited", "stopped", "dead"}:
            return int(code)
        time.sleep(_ASK_AGAIN_S)
    return None


def _error(code: str, what: str, fix: str, kind: FixKind = FixKind.MANUAL, address: str | None = None) -> Finding:
    return Finding(code, what, Where(host=address or SUBJECT), fix, fix_kind=kind, rule="H1")


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user under a number, as in a container
        return "$USER"


def _as_root(command: str) -> str:
    return command if os.geteuid() == 0 else f"sudo {command}"
