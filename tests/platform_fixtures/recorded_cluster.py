"""Serve recorded answers of a Kubernetes API server over HTTP on loopback, for the official client to talk to.

The answers have the fields that a 1.30 API server sends, shortened. No cluster ran here.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml

CONTEXT, NAMESPACE = "training", "vision"


class RecordedCluster:
    """Answers by path: a document, or a status and a document; `asked` holds the paths in order."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.asked: list[str] = []
        self.answers: dict[str, Any] = {
            "/version/": version("1", "30"),
            f"/api/v1/namespaces/{NAMESPACE}": namespace(NAMESPACE),
            "/api/v1/nodes": {"kind": "NodeList", "apiVersion": "v1", "metadata": {}, "items": [node("gpu-1", 8)]},
        }
        self.port = 0

    def set_nodes(self, *nodes: dict[str, Any]) -> None:
        """Replace the nodes of the cluster."""
        self.answers["/api/v1/nodes"] = {"kind": "NodeList", "apiVersion": "v1", "metadata": {}, "items": list(nodes)}

    def refuse(self, path: str, status: int, reason: str) -> None:
        """Answer a path with a failure as the API server words it."""
        failure = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": status}
        self.answers[path] = (status, failure)

    def kubeconfig(self, port: int | None = None) -> Path:
        """Write the configuration that points kubectl and the client here."""
        server = f"http://127.0.0.1:{port or self.port}"
        path = self.folder / "kubeconfig"
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": CONTEXT,
            "clusters": [{"name": "c", "cluster": {"server": server}}],
            "users": [{"name": "u", "user": {"token": "abc"}}],
            "contexts": [{"name": CONTEXT, "context": {"cluster": "c", "user": "u", "namespace": NAMESPACE}}],
        }
        path.write_text(yaml.safe_dump(document))
        return path


def version(major: str, minor: str) -> dict[str, str]:
    """Return an answer of /version/."""
    return {
        "major": major, "minor": minor, "gitVersion": f"v{major}.{minor.rstrip('+')}.4", "gitCommit": "a51b3b7",
        "gitTreeState": "clean", "buildDate": "2025-05-15T08:20:12Z", "goVersion": "go1.22.5", "compiler": "gc",
        "platform": "linux/amd64",
    }  # fmt: skip


def namespace(name: str, phase: str = "Active") -> dict[str, Any]:
    """Return a namespace."""
    metadata = {"name": name, "uid": "5d1b", "creationTimestamp": "2025-05-20T10:00:00Z"}
    return {"kind": "Namespace", "apiVersion": "v1", "metadata": metadata, "spec": {}, "status": {"phase": phase}}


def node(name: str, gpus: int, *, ready: bool = True, cordoned: bool = False) -> dict[str, Any]:
    """Return a node with so many GPUs to hand out."""
    amounts = {"cpu": "96", "memory": "1056270096Ki", "pods": "110", **({"nvidia.com/gpu": str(gpus)} if gpus else {})}
    conditions = [{"type": "Ready", "status": "True" if ready else "False", "reason": "KubeletReady"}]
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": {"unschedulable": True} if cordoned else {},
        "status": {"capacity": amounts, "allocatable": amounts, "conditions": conditions},
    }


@contextmanager
def serving_cluster(folder: Path) -> Iterator[RecordedCluster]:
    """Serve until the block ends."""
    cluster = RecordedCluster(folder)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # the name is http.server's
            path = self.path.partition("?")[0]
            cluster.asked.append(path)
            missing = (404, {"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404})
            answer = cluster.answers.get(path, missing)
            status, document = answer if isinstance(answer, tuple) else (200, answer)
            body = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    cluster.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield cluster
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
