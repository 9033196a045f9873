"""Memory is what is free within every cgroup limit; a loader's need follows from the spec and the largest clip."""

from pathlib import Path

import pytest

from tao_runtime.environment import read_environment
from tao_runtime.media.probe import probe_video
from tao_runtime.media.sampling import VisionOptions, plan_frames
from tao_runtime.preflight.host_memory import (
    Machine,
    Need,
    judge_memory,
    loader_need,
    measure_machine,
    memory_part,
    sizes_bytes,
)
from tao_runtime.preflight.host_request import HostRequest, Place

GIB = 2**30


def write(root: Path, **files: str) -> Path:
    texts = {"proc/meminfo": f"MemTotal: {64 * 2**20} kB\nMemAvailable: {32 * 2**20} kB\n", "dev/shm/x": ""}
    for name, text in {**texts, **files}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_without_a_limit_memory_is_what_the_kernel_calls_available(tmp_path):
    root = write(tmp_path, **{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n"})
    assert measure_machine(root).memory_bytes == 32 * GIB


def test_the_tightest_group_of_version_2_counts_with_droppable_cache_as_free(tmp_path):
    group = "sys/fs/cgroup/jobs/job_7"
    files = {
        "proc/self/cgroup": "0::/jobs/job_7/task\n",
        "sys/fs/cgroup/jobs/memory.max": f"{16 * GIB}\n",
        "sys/fs/cgroup/jobs/memory.current": "0\n",
        f"{group}/memory.max": f"{8 * GIB}\n",
        f"{group}/memory.current": f"{5 * GIB}\n",
        f"{group}/memory.stat": f"anon 1\ninactive_file {2 * GIB}\n",
        f"{group}/task/memory.max": "max\n",
    }
    assert measure_machine(write(tmp_path, **files)).memory_bytes == 5 * GIB


def test_the_limit_of_a_container_of_version_1_counts_though_its_path_is_the_hosts(tmp_path):
    files = {
        "proc/self/cgroup": "11:cpuset:/docker/abc\n4:memory:/docker/abc\n0::/\n",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": f"{4 * GIB}\n",
        "sys/fs/cgroup/memory/memory.usage_in_bytes": f"{1 * GIB}\n",
    }
    assert measure_machine(write(tmp_path, **files)).memory_bytes == 3 * GIB


def test_this_machine_has_memory_and_shm():
    machine = measure_machine()
    assert 0 < machine.memory_bytes < 2**50
    assert machine.shm_bytes >= 0


def request(backend: str, **place: str) -> HostRequest:
    loader = {"dataloader_num_workers": 4, "dataloader_prefetch_factor": 3}
    spec = {"train": {"train_batch_per_replica": 5, "train_policy": loader}, "policy": {"parallelism": {"dp_shard_size": 2}}}
    return HostRequest("train", backend, spec, Place(**place), read_environment({}))  # type: ignore[arg-type]


def test_cosmos_rl_holds_batches_of_float32_on_every_rank_and_hands_them_over_in_shm():
    need = loader_need(request("cosmos-rl"), [500, 1000])
    assert need.memory_bytes == need.shm_bytes == 2 * 4 * 3 * 5 * 4000


def test_the_native_trainer_holds_uint8_in_threads_no_more_than_cores_and_keeps_frames(monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    need = loader_need(request("native"), [500, 1000])
    assert (need.memory_bytes, need.shm_bytes, need.cache_bytes) == (2 * 3 * 1000, 0, 1500)


def test_kept_frames_take_no_more_than_a_quarter_of_what_is_free():
    need = Need(3 * GIB, 0, "", 4, cache_bytes=2 * GIB)
    assert judge_memory(need, Machine(4 * GIB, 0)).findings == ()
    (finding,) = judge_memory(need, Machine(4 * GIB - 4, 0)).findings
    assert (finding.code, finding.fix) == ("HOST_MEMORY_SMALL", "Set train.train_policy.dataloader_prefetch_factor to 3.")


def test_a_sample_has_the_size_of_a_real_clip_as_it_is_sampled(clips):
    facts = [probe_video(clips / name) for name in ("bikes.mp4", "bigbuckbunny.mp4", "carphone_pristine.mp4")]
    options = VisionOptions(nframes=8)
    plans = [plan_frames(one, options) for one in facts]
    assert sizes_bytes(facts, options) == [len(p.indices) * p.height * p.width * 3 for p in plans]


@pytest.mark.parametrize(("place", "why"), [("slurm", "can't be measured from here"), ("local", "no video was measured")])
def test_what_is_not_known_is_skipped_not_passed(place, why):
    part = memory_part(request("native", platform=place), [], None)
    assert [(f.code, str(f.severity)) for f in part.findings] == [("HOST_NOT_CHECKED", "skipped")]
    assert why in part.findings[0].what
