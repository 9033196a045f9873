"""Find out whether the ports that a launch will listen on are free, by listening on them (rule H9)."""

from __future__ import annotations

import errno
import socket
from dataclasses import dataclass

from tao_runtime.errors import Finding, FixKind, Where
from tao_runtime.preflight.host_request import HostRequest
from tao_runtime.preflight.report import Check, Part

SUBJECT = "ports"
# Defaults of `torchrun --master-port` and of cosmos-rl's `--port` (0.4.7, launcher/launch_all.py).
RENDEZVOUS_PORT = 29500
CONTROLLER_PORT = 8000


@dataclass(frozen=True, slots=True)
class NeededPort:
    """A port that must be exactly this one, what for, and how to take another."""

    number: int
    purpose: str
    fix: str
    fix_kind: FixKind


def needed_ports(request: HostRequest) -> list[NeededPort]:
    """Return the ports that a launch can't do without.

    One process needs none. On a single node cosmos-rl moves its controller (8000) and redis (12800) on to the next free port;
    across nodes every node computes the controller's address from the number, so it must be free.
    """
    layout = request.layout
    if request.backend == "native" and layout.gpus > 1:
        number = request.environment.master_port or RENDEZVOUS_PORT
        return [NeededPort(number, "the rendezvous of torchrun", f"export MASTER_PORT={_free_port()}", FixKind.COMMAND)]
    if request.backend == "cosmos-rl" and layout.nodes > 1:
        fix = f"Start cosmos-rl with --port {_free_port()} on every node."
        return [NeededPort(CONTROLLER_PORT, "the controller of cosmos-rl", fix, FixKind.MANUAL)]
    return []


def ports_part(request: HostRequest) -> Part:
    """Listen on each needed port for a moment, on all addresses, as the launch will."""
    needed = needed_ports(request)
    if not needed:
        return Part((), (Check(SUBJECT, "the launch needs no fixed port"),))
    taken = [port for port in needed if not _is_free(port.number)]
    findings = tuple(
        Finding(
            "HOST_PORT_TAKEN",
            f"port {port.number} is in use, which {port.purpose} needs",
            Where(host=f"port {port.number}"),
            port.fix,
            fix_kind=port.fix_kind,
            rule="H9",
        )
        for port in taken
    )
    outcome = ", ".join(f"{port.number} for {port.purpose} is {'taken' if port in taken else 'free'}" for port in needed)
    return Part(findings, (Check(SUBJECT, outcome),))


def _is_free(number: int) -> bool:
    family = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        if family == socket.AF_INET6:
            probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        # A port whose last connections still linger (TIME_WAIT) can be listened on again, and servers do.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", number))
            probe.listen(1)
        except OSError as error:
            if error.errno in {errno.EADDRINUSE, errno.EACCES}:
                return False
            raise
    return True


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("", 0))
        number: int = probe.getsockname()[1]
        return number
