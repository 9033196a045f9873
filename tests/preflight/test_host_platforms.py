"""What the platform checks say beside their codes: evidence, several faults at once, time limits, and nothing left behind."""

import json
import os
import shutil
import time
from pathlib import Path

import pytest
from platform_fixtures.host_bench import Bench, codes, silent_socket
from platform_fixtures.recorded_cluster import NAMESPACE, node, serving_cluster

from tao_runtime.cli.main import main
from tao_runtime.environment import read_environment
from tao_runtime.preflight import host_checks, host_docker
from tao_runtime.preflight.host import start_host_checks
from tao_runtime.preflight.host_docker import docker_part
from tao_runtime.preflight.host_files import Mount, lock_fault, mount_of, read_mounts
from tao_runtime.preflight.host_kubernetes import kubernetes_part
from tao_runtime.preflight.host_ports import CONTROLLER_PORT, RENDEZVOUS_PORT, needed_ports
from tao_runtime.preflight.host_request import HostRequest, Place
from tao_runtime.preflight.host_slurm import slurm_part


@pytest.fixture
def bench(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Bench:
    return Bench(request, monkeypatch, tmp_path)


def outcomes(part) -> str:
    return "\n".join(f"{check.subject}: {check.outcome}" for check in part.checks)


def test_a_sound_engine_with_the_image_says_what_it_is(bench):
    engine = bench.engine()
    bench.spec["native"] = {"device": "cpu"}
    part = docker_part(bench.request("docker", image=engine.plain))
    assert part.findings == ()
    assert f"at {engine.address} answers" in outcomes(part)
    assert f"{engine.plain} is there: sha256:" in outcomes(part)


def test_the_image_of_cosmos_rl_is_asked_for_redis_and_no_container_stays(bench):
    engine = bench.engine()
    plain, with_redis = (
        docker_part(bench.request("docker", "cosmos-rl", image=image)) for image in (engine.plain, engine.with_redis)
    )
    assert "HOST_REDIS_MISSING" in codes(plain.findings), [finding.what for finding in plain.findings]
    assert "redis-server in the image" in outcomes(with_redis), [finding.what for finding in with_redis.findings]
    assert "HOST_REDIS_MISSING" not in codes(with_redis.findings)
    assert engine.docker("ps", "--all", "--quiet").stdout == b""


def test_a_container_that_is_waited_for_too_long_is_skipped_and_taken_away(bench):
    bench.engine()
    log, program = bench.folder / "calls", bench.folder / "bin" / "docker"
    program.parent.mkdir()
    real = shutil.which("docker")
    program.write_text(f'#!/bin/sh\necho "$@" >> {log}\n[ "$1" = start ] && exec sleep 60\nexec {real} "$@"\n')
    program.chmod(0o755)
    bench.monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    bench.monkeypatch.setattr(host_docker, "RUN_LIMIT_S", 0.3)
    part = docker_part(bench.request("docker", "cosmos-rl", image="localhost/tao-test:plain"))
    assert [f.what for f in part.findings if f.code == "HOST_NOT_CHECKED" and "did not start" in f.what]
    calls = [line.split() for line in log.read_text().splitlines()]
    (started,) = [call[call.index("--name") + 1] for call in calls if call[0] == "create"]
    assert ["rm", "--force", started] in calls


def test_an_image_without_a_shell_is_skipped_not_passed(bench):
    engine = bench.engine()
    image = "localhost/tao-test:empty"
    assert engine.docker("import", "-", image, stdin=bytes(10240)).returncode == 0
    part = docker_part(bench.request("docker", "cosmos-rl", image=image))
    assert [f.what for f in part.findings if f.code == "HOST_NOT_CHECKED" and "did not start" in f.what]


def test_an_image_name_is_no_option_of_docker(bench):
    bench.engine()
    bench.spec["native"] = {"device": "cpu"}
    (finding,) = docker_part(bench.request("docker", image="--help")).findings
    assert (finding.code, str(finding.severity)) == ("HOST_IMAGE_MISSING", "warning")


def test_a_hanging_daemon_costs_its_limit_once(bench):
    bench.monkeypatch.setattr(host_checks, "ASK_LIMIT_S", 1.0)
    with silent_socket(bench.folder / "s"):
        bench.monkeypatch.setenv("DOCKER_HOST", f"unix://{bench.folder}/s")
        started = time.monotonic()
        part = start_host_checks(bench.request("docker", image="a:1")).result([], None)
    assert "HOST_DOCKER_SILENT" in codes(part.findings)
    assert time.monotonic() - started < 4


def test_the_cluster_says_partition_limits_and_when_a_trial_job_would_start(bench):
    bench.slurm()
    bench.lay_out(8)
    part = slurm_part(bench.request("slurm", partition="small"))
    assert "partition small is up: 1 of 1 nodes usable, up to 8 GPUs each, at most 00:10:00 a job" in outcomes(part)
    assert "trial job: Job " in outcomes(part)
    assert [f.code for f in part.findings] == ["HOST_NOT_CHECKED"]  # the nodes were not asked


def test_every_fault_of_a_layout_is_found_at_once(bench):
    bench.slurm()
    bench.lay_out(gpus=9, nodes=2)
    found = slurm_part(bench.request("slurm", partition="small")).findings
    texts = [f.what for f in found if f.code == "HOST_SLURM_LIMIT"]
    assert texts == [
        "the spec takes 2 nodes and partition small allows 1 a job",
        "the spec takes 2 nodes with 9 GPUs each and partition small has 0 such of 1; at most 8 GPUs in one",
    ]
    assert "HOST_SLURM_REFUSED" in codes(found)


def test_partition_and_account_come_from_sbatchs_variables(bench):
    bench.slurm()
    bench.monkeypatch.setenv("SBATCH_PARTITION", "nowhere")
    (finding,) = slurm_part(bench.request("slurm")).findings
    assert finding.what == "there is no partition 'nowhere'; there are: closed, debug, reserved, small"


def test_preflight_leaves_no_job_in_the_queue(bench):
    cluster = bench.slurm()
    bench.spec["native"] = {"device": "cpu"}
    part = slurm_part(bench.request("slurm", asks_nodes=True))
    assert "shared paths: 1 of 1 seen by a node" in outcomes(part)
    assert cluster.command("squeue", "--noheader", "--states=PENDING,RUNNING").stdout == ""


def test_a_hanging_controller_costs_its_limit_once(bench):
    bench.monkeypatch.setattr(host_checks, "ASK_LIMIT_S", 0.5)
    bench.slurm()
    bench.program("scontrol", "sleep 60")
    started = time.monotonic()
    (finding,) = slurm_part(bench.request("slurm")).findings
    assert (finding.code, "no answer within" in finding.what) == ("HOST_SLURM_DOWN", True)
    assert time.monotonic() - started < 3


def kubernetes(bench: Bench, change=lambda cluster: None, **place: str):
    with serving_cluster(bench.folder) as cluster:
        change(cluster)
        bench.monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig()))
        bench.lay_out(8)
        part = kubernetes_part(bench.request("kubernetes", **place))
    return part, cluster


def test_a_sound_cluster_is_asked_three_questions(bench):
    part, cluster = kubernetes(bench)
    assert part.findings == ()
    assert cluster.asked == ["/version/", f"/api/v1/namespaces/{NAMESPACE}", "/api/v1/nodes"]
    assert "GPUs of the cluster: 8 on 1 nodes, at most 8 on one" in outcomes(part)


@pytest.mark.parametrize("path", [f"/api/v1/namespaces/{NAMESPACE}", "/api/v1/nodes"])
def test_what_a_user_may_not_read_is_skipped_not_passed(bench, path):
    part, _ = kubernetes(bench, lambda c: c.refuse(path, 403, "Forbidden"))
    assert [(f.code, str(f.severity)) for f in part.findings] == [("HOST_NOT_CHECKED", "skipped")]


@pytest.mark.parametrize("status", [500, 503])
def test_a_failing_api_server_is_asked_once(bench, status):
    part, cluster = kubernetes(bench, lambda c: c.refuse("/version/", status, "ServiceUnavailable"))
    assert ([f.code for f in part.findings], cluster.asked) == (["HOST_KUBERNETES_DOWN"], ["/version/"])


def test_a_cpu_job_needs_no_gpu_nodes(bench):
    bench.spec["native"] = {"device": "cpu"}
    part, cluster = kubernetes(bench, lambda c: c.set_nodes(node("a", 0)))
    assert (part.findings, "/api/v1/nodes" in cluster.asked) == ((), False)


def test_a_silent_api_server_costs_its_limit(bench, monkeypatch):
    import socket

    monkeypatch.setattr("tao_runtime.preflight.host_kubernetes._READ_S", 0.5)
    with serving_cluster(bench.folder) as cluster, socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(8)
        bench.monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig(silent.getsockname()[1])))
        started = time.monotonic()
        part = kubernetes_part(bench.request("kubernetes"))
    assert [f.code for f in part.findings] == ["HOST_KUBERNETES_DOWN"]
    assert time.monotonic() - started < 3


MOUNTS = """/dev/sda1 / ext4 rw,relatime 0 0
server:/home /home nfs4 rw,vers=4.2,local_lock=none 0 0
tmpfs /home/me/scratch tmpfs rw 0 0
sshfs /mnt/my\\040files fuse.sshfs rw,user_id=0 0 0
overlay /var/lib/x overlay rw 0 0
fuse-overlayfs /run/x fuse.fuse-overlayfs rw 0 0
"""


@pytest.mark.parametrize(
    ("path", "kind", "is_network"),
    [
        ("/homework/a", "ext4", False),
        ("/home/me/.tao", "nfs4", True),
        ("/home/me/scratch/a", "tmpfs", False),
        ("/mnt/my files/a", "fuse.sshfs", True),
        ("/run/x/y", "fuse.fuse-overlayfs", False),
    ],
)
def test_a_path_lies_on_its_longest_mount(path, kind, is_network):
    mount = mount_of(Path(path), read_mounts(MOUNTS))
    assert mount is not None
    assert (mount.kind, mount.is_network) == (kind, is_network)


def test_locks_exclude_on_a_real_disk_and_the_probe_leaves_nothing(tmp_path):
    assert lock_fault(tmp_path) is None
    assert list(tmp_path.iterdir()) == []
    assert Mount("/", "ext4", frozenset()).is_network is False


def test_locks_that_exclude_nobody_are_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr("tao_runtime.preflight.host_files.fcntl.flock", lambda *_: None)
    assert lock_fault(tmp_path) == "a file that is locked can be locked again"


@pytest.mark.parametrize(
    ("backend", "layout", "port"),
    [
        ("native", (1, 1), None),
        ("native", (2, 1), RENDEZVOUS_PORT),
        ("cosmos-rl", (8, 1), None),  # there it moves on to the next free port
        ("cosmos-rl", (8, 2), CONTROLLER_PORT),
    ],
)
def test_only_ports_that_can_not_move_are_needed(bench, backend, layout, port):
    bench.variable("MASTER_PORT", None)
    bench.lay_out(*layout)
    assert [needed.number for needed in needed_ports(bench.request(backend=backend))] == ([] if port is None else [port])


def test_cosmos_rl_without_a_place_is_skipped_not_judged_by_this_machine():
    request = HostRequest("train", "cosmos-rl", {}, Place(), read_environment({}))
    part = start_host_checks(request).result([], None)
    assert [(f.code, str(f.severity)) for f in part.findings] == [("HOST_NOT_CHECKED", "skipped")]


def test_the_command_asks_the_cluster_and_keeps_secrets_to_itself(bench, tmp_path, capsys):
    bench.slurm()
    token = "hf_" + "q" * 30
    bench.monkeypatch.setenv("HF_TOKEN", token)
    bench.program("sbatch", f"env > {tmp_path}/seen; echo started >&2")
    spec = tmp_path / "spec.yaml"
    spec.write_text(json.dumps({"results_dir": str(tmp_path), "policy": {"parallelism": {"dp_shard_size": 8}}}))
    main(["preflight", "--spec", str(spec), "--platform", "slurm", "--partition", "small", "--only", "H1", "--json"])
    document = json.loads(capsys.readouterr().out)
    assert {"subject": "trial job", "outcome": "started"} in document["data"]["checked"]
    assert token not in (tmp_path / "seen").read_text()
    assert f"SLURM_CONF={os.environ['SLURM_CONF']}" in (tmp_path / "seen").read_text()
