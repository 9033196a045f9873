"""For every code of the host rules: an input on which it fires, and the nearest one on which it is silent.

`CASES` is the table; a mutation check can import it. SLURM, the container engine, ports and locks are real. Stood in for are
NVML (there is no GPU in CI), a Kubernetes cluster (its answers are recorded), and SLURM's word on accounts (needs a database).
"""

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from platform_fixtures.fake_nvml import GIB, FakeGpu, gpus
from platform_fixtures.host_bench import Bench, codes, listening, silent_socket
from platform_fixtures.recorded_cluster import NAMESPACE, namespace, node, serving_cluster, version

from tao_runtime.errors import Finding, FixKind
from tao_runtime.preflight import host_backends, host_checks, host_files
from tao_runtime.preflight.host_backends import backends_part
from tao_runtime.preflight.host_docker import docker_part, redis_part
from tao_runtime.preflight.host_files import locks_part
from tao_runtime.preflight.host_gpu_rules import gpu_part, take_inventory
from tao_runtime.preflight.host_kubernetes import kubernetes_part
from tao_runtime.preflight.host_memory import Machine, judge_memory, loader_need
from tao_runtime.preflight.host_ports import ports_part
from tao_runtime.preflight.host_slurm import slurm_part
from tao_runtime.preflight.host_torch import TorchBuild
from tao_runtime.preflight.run import HOST_CODES

CUDA_BUILD, CPU_BUILD = TorchBuild("2.13.0", (13, 0)), TorchBuild("2.13.0+cpu", None)
Findings = tuple[Finding, ...]
Check = Callable[[Bench], Findings]


@dataclass(frozen=True)
class Pair:
    """A firing input and the nearest silent one."""

    fires: Check
    silent: Check


@pytest.fixture
def bench(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Bench:
    return Bench(request, monkeypatch, tmp_path)


# --- containers


def docker(bench: Bench, image: str = "plain", backend: str = "native", device: str = "cpu") -> Findings:
    engine = bench.engine()
    bench.spec["native"] = {"device": device}
    return docker_part(bench.request("docker", backend, image=getattr(engine, image, image))).findings


def docker_without_client(bench: Bench) -> Findings:
    engine = bench.engine()
    bench.without("docker")
    return docker_part(bench.request("docker", image=engine.plain)).findings


def docker_at(address: Callable[[Bench], str]) -> Check:
    def check(bench: Bench) -> Findings:
        bench.monkeypatch.setenv("DOCKER_HOST", address(bench))
        return docker_part(bench.request("docker")).findings

    return check


def docker_as_nobody(bench: Bench) -> Findings:
    engine = bench.engine()
    Path(engine.address.removeprefix("unix://")).chmod(0o600)
    real = subprocess.run(["which", "docker"], capture_output=True, text=True, check=True).stdout.strip()
    bench.program("docker", f'exec setpriv --reuid 65534 --clear-groups env HOME=/ {real} "$@"')
    return docker_part(bench.request("docker", image=engine.plain)).findings


def docker_that_hangs(bench: Bench) -> Findings:
    bench.monkeypatch.setattr(host_checks, "ASK_LIMIT_S", 0.5)
    with silent_socket(bench.folder / "s"):
        bench.monkeypatch.setenv("DOCKER_HOST", f"unix://{bench.folder}/s")
        return docker_part(bench.request("docker")).findings


def docker_with_hook(bench: Bench) -> Findings:
    bench.program("nvidia-container-runtime-hook", "exit 0")
    return docker(bench, device="cuda")


def redis_on_host(bench: Bench) -> Findings:
    bench.program("redis-server", "exit 0")
    return redis_part(bench.request(backend="cosmos-rl")).findings


def no_redis_on_host(bench: Bench) -> Findings:
    bench.without("redis-server")
    return redis_part(bench.request(backend="cosmos-rl")).findings


# --- SLURM


def slurm(
    bench: Bench, partition: str | None = None, layout: tuple[int, int] = (8, 1), account: str | None = None, state: str = ""
) -> Findings:
    cluster = bench.slurm()
    bench.lay_out(*layout)
    try:
        if state:
            host = os.uname().nodename.partition(".")[0]
            done = cluster.command("scontrol", "update", f"nodename={host}", f"state={state}", "reason=test")
            assert done.returncode == 0, done.stderr
        return slurm_part(bench.request("slurm", partition=partition, account=account)).findings
    finally:
        if state:
            cluster.command("scontrol", "update", f"nodename={host}", "state=resume")
            cluster.wait_until_idle()


def slurm_without_commands(bench: Bench) -> Findings:
    bench.slurm()
    bench.without("sinfo", "scontrol", "sbatch")
    return slurm_part(bench.request("slurm")).findings


def slurm_down(bench: Bench) -> Findings:
    cluster = bench.slurm()
    with listening() as port:
        text = (cluster.folder / "slurm.conf").read_text().splitlines()
    lines = [f"SlurmctldPort={port}" if line.startswith("SlurmctldPort=") else line for line in text]
    (bench.folder / "slurm.conf").write_text("\n".join([*lines, "MessageTimeout=1"]))
    bench.monkeypatch.setenv("SLURM_CONF", str(bench.folder / "slurm.conf"))
    bench.monkeypatch.setattr(host_checks, "ASK_LIMIT_S", 1.0)
    return slurm_part(bench.request("slurm")).findings


def slurm_account(said: str, exit_code: int) -> Check:
    def check(bench: Bench) -> Findings:
        bench.program("sbatch", f"echo '{said}' >&2; exit {exit_code}")
        return slurm(bench, account="vision")

    return check


UNKNOWN_ACCOUNT = "allocation failure: Invalid account or account/partition combination specified"


def shared_path(is_hidden: bool) -> Check:
    """Ask a node for the data: seen by both, or by preflight alone, which then has a file system mounted that slurmd lacks."""

    def check(bench: Bench) -> Findings:
        cluster = bench.slurm()
        bench.spec["native"] = {"device": "cpu"}
        data = bench.folder / "data"
        data.mkdir()
        mount = f"mount -t tmpfs none {data} && " if is_hidden else ""
        spec = {**bench.spec, "custom": {"train_dataset": {"annotation_path": f"{data}/a.json", "media_path": str(data)}}}
        program = (
            "import json, sys; from tao_runtime.environment import read_environment\n"
            "from tao_runtime.preflight.host_request import HostRequest, Place\n"
            "from tao_runtime.preflight.host_slurm import slurm_part\n"
            f"request = HostRequest('train', 'native', {spec!r}, Place('slurm', asks_nodes=True), read_environment())\n"
            "json.dump([f.to_dict() for f in slurm_part(request).findings], sys.stdout)"
        )
        words = ["unshare", "--mount", "sh", "-c", f'{mount}touch {data}/a.json && exec "$0" -c "$1"', sys.executable, program]
        variables = {**os.environ, **cluster.variables}
        for _ in range(3):  # on a busy machine srun 22.05 now and then waits for a step that has ended
            done = subprocess.run(words, capture_output=True, text=True, check=False, env=variables)
            assert done.returncode == 0, done.stderr
            found = tuple(Finding(one["code"], one["what"]) for one in json.loads(done.stdout))
            if "HOST_NOT_CHECKED" not in codes(found):
                return found
        pytest.fail(f"no node could be asked: {found}")

    return check


# --- Kubernetes


def kubernetes(
    change: Callable[[object], None] = lambda cluster: None, layout: tuple[int, int] = (8, 1), **place: str
) -> Check:
    def check(bench: Bench) -> Findings:
        with serving_cluster(bench.folder) as cluster:
            change(cluster)
            bench.monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig()))
            bench.lay_out(*layout)
            return kubernetes_part(bench.request("kubernetes", **place)).findings

    return check


def kubernetes_without_client(bench: Bench) -> Findings:
    bench.monkeypatch.setattr("tao_runtime.preflight.host_kubernetes.is_importable", lambda name: False)
    return kubernetes()(bench)


def kubernetes_without_config(bench: Bench) -> Findings:
    bench.monkeypatch.setenv("KUBECONFIG", str(bench.folder / "none"))
    return kubernetes_part(bench.request("kubernetes")).findings


def kubernetes_down(bench: Bench) -> Findings:
    with serving_cluster(bench.folder) as cluster, listening() as port:
        pass
    bench.monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig(port)))
    return kubernetes_part(bench.request("kubernetes")).findings


# --- this machine


def machine(
    *devices: FakeGpu,
    visible: str | None = None,
    backend: str = "native",
    action: str = "train",
    num_gpus: int = 1,
    build: TorchBuild = CUDA_BUILD,
    **driver: object,
) -> Check:
    def check(bench: Bench) -> Findings:
        bench.gpus(*devices, visible=visible, **driver)
        bench.monkeypatch.setattr("tao_runtime.preflight.host_gpu_rules.torch_build", lambda: build)
        bench.spec["num_gpus"] = num_gpus
        request = bench.request(backend=backend, action=action)
        return gpu_part(request, take_inventory(request)).findings

    return check


def backends(
    build: TorchBuild | None = CUDA_BUILD,
    backend: str = "native",
    modules: tuple[str, ...] = ("flash_attn", "decord"),
    heads: int = 8,
) -> Check:
    def check(bench: Bench) -> Findings:
        bench.monkeypatch.setattr(host_backends, "torch_build", lambda: build)
        bench.monkeypatch.setattr(host_backends, "is_importable", modules.__contains__)
        (bench.folder / "config.json").write_text(json.dumps({"text_config": {"num_key_value_heads": heads}}))
        bench.spec["policy"] = {"model_name_or_path": str(bench.folder)}
        return backends_part(bench.request(backend=backend), has_gpu=True).findings

    return check


def locks(kind: str, options: str, fault: int | None = None) -> Check:
    """Take real locks in a real folder that /proc/mounts says is on such a file system; `fault` is what the kernel answers."""

    def check(bench: Bench) -> Findings:
        def refuse(*_: object) -> None:
            raise OSError(fault, os.strerror(fault or 0))

        if fault is not None:
            bench.monkeypatch.setattr(host_files.fcntl, "flock", refuse)
        mounts = bench.folder / "mounts"
        mounts.write_text(f"/dev/root / ext4 rw 0 0\nserver:/export {bench.folder} {kind} rw,{options} 0 0\n")
        return locks_part(bench.request(), mounts).findings

    return check


def port(is_taken: bool) -> Check:
    def check(bench: Bench) -> Findings:
        bench.lay_out(2)
        with listening() as number:
            bench.monkeypatch.setenv("MASTER_PORT", str(number))
            if is_taken:
                return ports_part(bench.request()).findings
        return ports_part(bench.request()).findings

    return check


def memory(sample_bytes: int, shm_bytes: int = 8 * GIB) -> Check:
    """Let 2 ranks · 8 workers · 8 batches · 2 samples · 4 bytes meet 10 GiB of memory: 1024 times `sample_bytes`."""

    def check(bench: Bench) -> Findings:
        bench.lay_out(2)
        loader = {"dataloader_num_workers": 8, "dataloader_prefetch_factor": 8}
        bench.spec["train"] = {"train_batch_per_replica": 2, "train_policy": loader}
        need = loader_need(bench.request(backend="cosmos-rl"), [sample_bytes])
        return judge_memory(need, Machine(10 * GIB, shm_bytes)).findings

    return check


T4 = FakeGpu("GPU-1", "Tesla T4", capability=(7, 5))
V100 = FakeGpu("GPU-1", "Tesla V100-SXM2-32GB", capability=(7, 0))

CASES: dict[str, Pair] = {
    "HOST_DOCKER_MISSING": Pair(docker_without_client, docker),
    "HOST_DOCKER_DOWN": Pair(docker_at(lambda bench: f"unix://{bench.folder}/none"), docker),
    "HOST_DOCKER_SILENT": Pair(docker_that_hangs, docker),
    "HOST_DOCKER_PERMISSION": Pair(docker_as_nobody, docker),
    "HOST_DOCKER_GPU_RUNTIME": Pair(lambda bench: docker(bench, device="cuda"), docker_with_hook),
    "HOST_IMAGE_MISSING": Pair(lambda bench: docker(bench, "nvcr.io/nvidia/none:1"), docker),
    "HOST_REDIS_MISSING": Pair(no_redis_on_host, redis_on_host),
    "HOST_SLURM_MISSING": Pair(slurm_without_commands, slurm),
    "HOST_SLURM_DOWN": Pair(slurm_down, slurm),
    "HOST_SLURM_PARTITION": Pair(lambda bench: slurm(bench, "debog"), lambda bench: slurm(bench, "debug")),
    "HOST_SLURM_PARTITION_DOWN": Pair(lambda bench: slurm(bench, "closed"), slurm),
    "HOST_SLURM_LIMIT": Pair(lambda bench: slurm(bench, layout=(9, 1)), lambda bench: slurm(bench, layout=(8, 1))),
    "HOST_SLURM_NODES_DOWN": Pair(lambda bench: slurm(bench, state="drain"), slurm),
    "HOST_SLURM_ACCOUNT": Pair(slurm_account(UNKNOWN_ACCOUNT, 1), slurm_account("sbatch: Job 2 to start at once", 0)),
    "HOST_SLURM_REFUSED": Pair(lambda bench: slurm(bench, "reserved"), slurm),
    "HOST_PATH_NOT_SHARED": Pair(shared_path(is_hidden=True), shared_path(is_hidden=False)),
    "HOST_KUBERNETES_MISSING": Pair(kubernetes_without_client, kubernetes()),
    "HOST_KUBERNETES_CONFIG": Pair(kubernetes_without_config, kubernetes()),
    "HOST_KUBERNETES_DOWN": Pair(kubernetes_down, kubernetes()),
    "HOST_KUBERNETES_REFUSED": Pair(kubernetes(lambda c: c.refuse("/version/", 401, "Unauthorized")), kubernetes()),
    "HOST_KUBERNETES_VERSION": Pair(
        kubernetes(lambda c: c.answers.update({"/version/": version("1", "27+")})),
        kubernetes(lambda c: c.answers.update({"/version/": version("1", "28+")})),
    ),
    "HOST_KUBERNETES_NAMESPACE": Pair(kubernetes(namespace="visoin"), kubernetes(namespace=NAMESPACE)),
    "HOST_KUBERNETES_GPUS": Pair(
        kubernetes(lambda c: c.set_nodes(node("a", 8), node("b", 4)), (8, 2)),
        kubernetes(lambda c: c.set_nodes(node("a", 8), node("b", 8)), (8, 2)),
    ),
    "HOST_KUBERNETES_NODES_DOWN": Pair(
        kubernetes(lambda c: c.set_nodes(node("a", 8, cordoned=True))), kubernetes(lambda c: c.set_nodes(node("a", 8)))
    ),
    "HOST_NO_CUDA": Pair(machine(*gpus(2), visible=""), machine(*gpus(2), visible="1")),
    "HOST_GPU_VISIBLE": Pair(machine(*gpus(2), visible="0,2"), machine(*gpus(2), visible="0,1")),
    "HOST_GPU_COUNT": Pair(machine(*gpus(2), action="evaluate", num_gpus=3), machine(*gpus(2), action="evaluate", num_gpus=2)),
    "HOST_GPU_DRIVER": Pair(
        machine(*gpus(1), backend="cosmos-rl", driver="575.57.08", cuda=12090), machine(*gpus(1), backend="cosmos-rl")
    ),
    "HOST_GPU_ARCHITECTURE": Pair(machine(V100), machine(T4)),
    "HOST_MEMORY_SMALL": Pair(memory(10 * 2**20 + 1), memory(10 * 2**20)),
    "HOST_SHM_SMALL": Pair(memory(8 * 2**20 + 1), memory(8 * 2**20)),
    "HOST_TORCH_MISSING": Pair(backends(None), backends()),
    "HOST_TORCH_CPU_BUILD": Pair(backends(CPU_BUILD), backends()),
    "HOST_ATTENTION_SLOW": Pair(backends(heads=1), backends(heads=2)),
    "HOST_FLASH_ATTENTION_MISSING": Pair(
        backends(backend="cosmos-rl", modules=("decord",)), backends(backend="cosmos-rl", modules=("decord", "flash_attn"))
    ),
    "HOST_DECODER_FALLBACK": Pair(
        backends(backend="cosmos-rl", modules=("flash_attn",)), backends(backend="cosmos-rl", modules=("decord", "flash_attn"))
    ),
    "HOST_LOCKS_FAIL": Pair(locks("nfs4", "local_lock=none", errno.ENOLCK), locks("nfs4", "local_lock=none")),
    "HOST_LOCKS_LOCAL": Pair(locks("nfs", "nolock"), locks("nfs", "local_lock=none")),
    "HOST_PORT_TAKEN": Pair(port(is_taken=True), port(is_taken=False)),
}
# What a run needs is held against the machine in test_host_needs.py; a download that does not fit is in tests/hub.
ELSEWHERE = {"HOST_NOT_CHECKED", "HOST_DISK_MODEL", "HOST_DISK_SMALL", "HOST_GPU_MEMORY"}


def kubernetes_answers(path: str, status: int, reason: str) -> Check:
    return kubernetes(lambda cluster: cluster.refuse(path, status, reason))


def dying_namespace(cluster: object) -> None:
    cluster.answers[f"/api/v1/namespaces/{NAMESPACE}"] = namespace(NAMESPACE, "Terminating")


def path_seen_by_srun(said: str, exit_code: int) -> Check:
    """Put a stand-in for srun before the real one: HOST_PATH_NOT_SHARED is fired by a real job above."""

    def check(bench: Bench) -> Findings:
        bench.program("srun", f"{said}; exit {exit_code}")
        bench.slurm()
        bench.spec["native"] = {"device": "cpu"}
        return slurm_part(bench.request("slurm", asks_nodes=True)).findings

    return check


A100 = FakeGpu("GPU-1", "NVIDIA A100-SXM4-80GB", capability=(8, 0))
# Where several faults look alike, each also has to be silent on the others: code, another that fires, where it is silent.
APART: list[tuple[str, Check, Check]] = [
    ("HOST_DOCKER_SILENT", docker_that_hangs, CASES["HOST_DOCKER_DOWN"].fires),
    ("HOST_DOCKER_PERMISSION", docker_as_nobody, CASES["HOST_DOCKER_DOWN"].fires),
    ("HOST_DOCKER_GPU_RUNTIME", CASES["HOST_DOCKER_GPU_RUNTIME"].fires, docker),
    ("HOST_KUBERNETES_REFUSED", kubernetes_answers("/version/", 401, "No"), kubernetes_answers("/version/", 500, "No")),
    ("HOST_KUBERNETES_DOWN", kubernetes_answers("/version/", 500, "No"), kubernetes_answers("/version/", 401, "No")),
    (
        "HOST_KUBERNETES_NAMESPACE",
        kubernetes(dying_namespace),
        kubernetes_answers(f"/api/v1/namespaces/{NAMESPACE}", 403, "No"),
    ),
    ("HOST_SLURM_REFUSED", slurm_account("sbatch: error: QOS", 1), slurm_account(UNKNOWN_ACCOUNT, 1)),
    ("HOST_SLURM_ACCOUNT", slurm_account(UNKNOWN_ACCOUNT, 1), slurm_account("sbatch: error: QOS", 1)),
    ("HOST_PATH_NOT_SHARED", path_seen_by_srun("echo r /data", 0), path_seen_by_srun("echo r /data", 1)),
    ("HOST_GPU_ARCHITECTURE", machine(V100, backend="cosmos-rl"), machine(A100, backend="cosmos-rl")),
]


@pytest.mark.parametrize(("code", "fires", "silent"), APART, ids=[f"{code}-{n}" for n, (code, *_) in enumerate(APART)])
def test_the_code_is_told_from_what_looks_alike(
    request: pytest.FixtureRequest, tmp_path: Path, code: str, fires: Check, silent: Check
) -> None:
    found = []
    for number, check in enumerate((fires, silent)):
        (tmp_path / str(number)).mkdir()
        with pytest.MonkeyPatch.context() as changes:
            found.append(codes(check(Bench(request, changes, tmp_path / str(number)))))
    assert [code in some for some in found] == [True, False]


def test_an_engine_that_docker_host_names_is_not_started_by_us(bench: Bench) -> None:
    (finding,) = [one for one in CASES["HOST_DOCKER_DOWN"].fires(bench) if one.code == "HOST_DOCKER_DOWN"]
    assert finding.where.host == os.environ["DOCKER_HOST"]
    assert "unset DOCKER_HOST" in finding.fix


def test_an_engine_of_this_machine_is_started(bench: Bench) -> None:
    bench.variable("DOCKER_HOST", None)
    bench.program("docker", "echo Cannot connect to the Docker daemon >&2; exit 1")
    (finding,) = docker_part(bench.request("docker")).findings
    assert (finding.code, finding.fix_kind) == ("HOST_DOCKER_DOWN", FixKind.COMMAND)
    assert finding.fix.endswith("systemctl start docker")


def test_one_process_needs_no_port(bench: Bench) -> None:
    part = ports_part(bench.request())
    assert [check.outcome for check in part.checks] == ["the launch needs no fixed port"], "and no HOST_PORT_TAKEN"
    assert part.findings == ()


def test_every_host_code_has_its_pair() -> None:
    assert set(CASES) == set(HOST_CODES) - ELSEWHERE


@pytest.mark.parametrize("code", CASES)
def test_the_code_is_silent_on_the_nearest_good_input(bench: Bench, code: str) -> None:
    assert code not in codes(CASES[code].silent(bench))


@pytest.mark.parametrize("code", CASES)
def test_the_code_fires_with_a_place_and_a_fix(bench: Bench, code: str) -> None:
    everything = CASES[code].fires(bench)
    found = [finding for finding in everything if finding.code == code]
    assert found, everything
    if code != "HOST_PATH_NOT_SHARED":  # came back from another process, with its text only
        assert all(one.where.host or one.where.file for one in found)
        assert all(one.fix and one.rule for one in found)
        for one in found:
            if one.fix_kind is FixKind.COMMAND:
                assert subprocess.run(["sh", "-n", "-c", one.fix], check=False).returncode == 0
