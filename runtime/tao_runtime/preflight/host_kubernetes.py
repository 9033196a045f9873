"""Ask a Kubernetes cluster through the official client: version, namespace and GPUs (rule H1)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tao_runtime.errors import Finding, FixKind, Severity, Where
from tao_runtime.preflight.host_checks import not_checked
from tao_runtime.preflight.host_request import HostRequest
from tao_runtime.preflight.host_torch import is_importable
from tao_runtime.preflight.report import Check, Part, joined

SUBJECT = "Kubernetes"
GPU_RESOURCE = "nvidia.com/gpu"
# Indexed jobs whose pods find each other by name are stable from here on.
LOWEST_VERSION = (1, 28)
_CONNECT_S, _READ_S = 2.0, 4.0


@dataclass(frozen=True, slots=True)
class _Cluster:
    """The current context: client, name and namespace."""

    api: Any
    context: str
    namespace: str


def kubernetes_part(request: HostRequest) -> Part:
    """Judge the cluster of the current context, which KUBECONFIG may name. Nothing is created there."""
    if not is_importable("kubernetes"):
        what, fix = "the Python package kubernetes is not installed", "pip install kubernetes"
        return Part((_error("HOST_KUBERNETES_MISSING", what, fix, kind=FixKind.COMMAND),))
    cluster = _open(request)
    if isinstance(cluster, Finding):
        return Part((cluster,))
    version = _asked(cluster, "version", _version_part)
    if any(finding.code in {"HOST_KUBERNETES_DOWN", "HOST_KUBERNETES_REFUSED"} for finding in version.findings):
        return version  # every further question would fail alike
    return joined(
        [
            version,
            _asked(cluster, "namespace", _namespace_part),
            Part() if request.device == "cpu" else _asked(cluster, "GPUs of the cluster", lambda c: _gpus_part(c, request)),
        ]
    )


def _open(request: HostRequest) -> _Cluster | Finding:
    from kubernetes import config

    try:
        _, active = config.list_kube_config_contexts(config_file=request.environment.kubeconfig)
        api = config.new_client_from_config(config_file=request.environment.kubeconfig)
    except (config.ConfigException, OSError, ValueError) as error:
        what = f"there is no usable kubectl configuration: {_first_line(error)}"
        fix = "Choose a cluster with `kubectl config use-context NAME`, or name its file in KUBECONFIG."
        return _error("HOST_KUBERNETES_CONFIG", what, fix)
    api.configuration.retries = False
    api.rest_client.pool_manager.connection_pool_kw["retries"] = False
    namespace = request.place.namespace or active["context"].get("namespace") or "default"
    return _Cluster(api, active["name"], namespace)


def _asked(cluster: _Cluster, subject: str, question: Callable[[_Cluster], Part]) -> Part:
    """Put one question; what goes wrong on the way becomes a finding."""
    from kubernetes.client.exceptions import ApiException
    from urllib3.exceptions import HTTPError

    try:
        return question(cluster)
    except ApiException as error:
        if error.status == 403:
            return not_checked(
                "H1", subject, f"this user may not read it in context {cluster.context}", "Ask the cluster's operators."
            )
        if error.status == 401:
            what = f"context {cluster.context} rejects the credentials"
            fix = "Log in to the cluster again; `kubectl auth whoami` shows as whom."
            return Part((_error("HOST_KUBERNETES_REFUSED", what, fix, cluster.context),))
        what = f"context {cluster.context} answers {error.status} {error.reason or ''}".rstrip()
        return Part((_error("HOST_KUBERNETES_DOWN", what, "kubectl cluster-info", cluster.context, FixKind.COMMAND),))
    except (HTTPError, OSError) as error:
        what = f"context {cluster.context} does not answer at {cluster.api.configuration.host}: {_first_line(error)}"
        return Part((_error("HOST_KUBERNETES_DOWN", what, "kubectl cluster-info", cluster.context, FixKind.COMMAND),))


def _version_part(cluster: _Cluster) -> Part:
    from kubernetes import client

    code = client.VersionApi(cluster.api).get_code(_request_timeout=(_CONNECT_S, _READ_S))
    numbers = [
        int(found[0]) if (found := re.match(r"\d+", text)) else 0 for text in (code.major, code.minor)
    ]  # minor can be 27+
    check = Check(SUBJECT, f"context {cluster.context}, version {code.git_version}")
    if tuple(numbers) >= LOWEST_VERSION:
        return Part((), (check,))
    what = f"the cluster is {code.git_version}; jobs over several nodes need {'.'.join(map(str, LOWEST_VERSION))} or newer"
    fix = "Take a newer cluster, or have this one updated."
    return Part((_error("HOST_KUBERNETES_VERSION", what, fix, cluster.context),), (check,))


def _namespace_part(cluster: _Cluster) -> Part:
    from kubernetes import client

    try:
        found = client.CoreV1Api(cluster.api).read_namespace(cluster.namespace, _request_timeout=(_CONNECT_S, _READ_S))
    except client.ApiException as error:
        if error.status != 404:
            raise
        what = f"there is no namespace {cluster.namespace} in context {cluster.context}"
        fix = f"kubectl create namespace {cluster.namespace}"
        return Part((_error("HOST_KUBERNETES_NAMESPACE", what, fix, cluster.context, FixKind.COMMAND),))
    if found.status and found.status.phase == "Terminating":
        what = f"namespace {cluster.namespace} is being deleted"
        return Part((_error("HOST_KUBERNETES_NAMESPACE", what, "Name another with --namespace.", cluster.context),))
    return Part((), (Check("namespace", cluster.namespace),))


def _gpus_part(cluster: _Cluster, request: HostRequest) -> Part:
    from kubernetes import client

    nodes = client.CoreV1Api(cluster.api).list_node(_request_timeout=(_CONNECT_S, _READ_S)).items
    gpus = [(node, int((node.status.allocatable or {}).get(GPU_RESOURCE, "0"))) for node in nodes]
    layout = request.layout
    fitting = [node for node, number in gpus if number >= layout.gpus_per_node]
    ready = [node for node in fitting if _takes_pods(node)]
    most = max((number for _, number in gpus), default=0)
    outcome = f"{sum(number for _, number in gpus)} on {len(nodes)} nodes, at most {most} on one"
    check = Check("GPUs of the cluster", outcome)
    needed = f"the spec takes {layout.nodes} nodes with {layout.gpus_per_node} GPUs each"
    if len(fitting) < layout.nodes:
        what = f"{needed}; the cluster has {len(fitting)} such: {outcome} ({GPU_RESOURCE} allocatable)"
        fix = "Lay the ranks out for the nodes there are (policy.parallelism), or install NVIDIA's device plugin on them."
        return Part((_error("HOST_KUBERNETES_GPUS", what, fix, cluster.context),), (check,))
    if len(ready) < layout.nodes:
        what = f"{needed}; {len(fitting)} such exist and {len(ready)} take pods now (the others are cordoned or not ready)"
        names = ", ".join(_names([node for node in fitting if node not in ready]))
        fix = f"Wait for {names}, or have them uncordoned."
        finding = Finding("HOST_KUBERNETES_NODES_DOWN", what, Where(host=cluster.context), fix, Severity.WARNING, rule="H1")
        return Part((finding,), (check,))
    return Part((), (check,))


def _takes_pods(node: Any) -> bool:
    is_ready = any(one.type == "Ready" and one.status == "True" for one in node.status.conditions or [])
    return is_ready and not node.spec.unschedulable


def _names(nodes: Sequence[Any]) -> list[str]:
    return [str(node.metadata.name) for node in nodes][:5]


def _error(code: str, what: str, fix: str, host: str = SUBJECT, kind: FixKind = FixKind.MANUAL) -> Finding:
    return Finding(code, what, Where(host=host), fix, fix_kind=kind, rule="H1")


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
