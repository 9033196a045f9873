"""GPUs are counted as CUDA counts them: NVML read through CUDA_VISIBLE_DEVICES. tests/gpu holds the table against torch."""

import json
import sys
from pathlib import Path

import pytest
from platform_fixtures.fake_nvml import FakeGpu, fake_pynvml, gpus

from tao_runtime.cli.main import main
from tao_runtime.environment import read_environment
from tao_runtime.preflight.host_gpu_rules import gpu_part, take_inventory
from tao_runtime.preflight.host_gpus import NoDriverError, installed_gpus, visible_gpus
from tao_runtime.preflight.host_request import HostRequest, Place

SLICED = FakeGpu("GPU-0", capability=(9, 0), slices=("MIG-aaaa", "MIG-aabb"))


@pytest.fixture
def four(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", fake_pynvml(gpus(4)))
    return installed_gpus().devices


@pytest.mark.parametrize(
    ("variable", "seen", "fault"),
    [
        (None, [0, 1, 2, 3], None),
        ("0", [0], None),
        ("3,1", [3, 1], None),
        (" 2 , 0 ", [2, 0], None),
        ("+1", [1], None),
        ("", [], None),
        ("-1", [], None),
        ("1,-1,2", [1], None),
        ("0,4,1", [0], "'4' names no device"),
        ("0,gpu1", [0], "'gpu1' names no device"),
        ("0,1,0", [], "the second time"),
        ("GPU-20000000-aaaa-bbbb-cccc-000000000000", [2], None),
        ("GPU-1", [1], None),
        ("GPU-", [], "'GPU-' names no device"),
        ("GPU-9,0", [], "'GPU-9' names no device"),
        ("0x,1", [0, 1], None),
        ("GPU-3,0", [3], "'0' names no device"),
        ("0,GPU-3", [0], "'GPU-3' names no device"),
        (" GPU-3", [], "' GPU-3' names no device"),
        ("NoDevFiles", [], "'NoDevFiles' names no device"),
    ],
)
def test_the_variable_is_read_up_to_its_first_invalid_entry(four, variable, seen, fault):
    visible = visible_gpus(four, variable)
    assert [gpu.index for gpu in visible.devices] == seen
    assert (visible.fault is None) == (fault is None)
    assert fault is None or fault in visible.fault


@pytest.mark.parametrize(
    ("variable", "seen"),
    [(None, ["MIG-aaaa"]), ("MIG-aabb", ["MIG-aabb"]), ("MIG-aa", []), ("MIG-aaaa,MIG-aabb", ["MIG-aaaa"])],
)
def test_a_process_sees_one_slice_of_a_split_gpu(monkeypatch, variable, seen):
    monkeypatch.setitem(sys.modules, "pynvml", fake_pynvml([SLICED]))
    installed = installed_gpus()
    assert [gpu.uuid for gpu in installed.devices] == ["MIG-aaaa", "MIG-aabb"]
    assert installed.devices[0].memory_bytes == SLICED.memory_bytes // 7
    assert [gpu.uuid for gpu in visible_gpus(installed.devices, variable).devices] == seen


def test_a_gpu_too_old_to_be_split_is_listed_whole(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", fake_pynvml([FakeGpu("GPU-7", "Tesla T4", capability=(7, 5))]))
    (gpu,) = installed_gpus().devices
    assert (gpu.name, gpu.architecture, gpu.is_mig) == ("Tesla T4", "sm_75", False)


def test_without_a_driver_the_reason_is_nvmls_own(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", fake_pynvml([], fault="Driver Not Loaded"))
    with pytest.raises(NoDriverError, match="Driver Not Loaded"):
        installed_gpus()


def part_of(monkeypatch, devices, variable=None, num_gpus=None, device="auto", **driver):
    monkeypatch.setitem(sys.modules, "pynvml", fake_pynvml(devices, **driver))
    environment = read_environment({} if variable is None else {"CUDA_VISIBLE_DEVICES": variable})
    request = HostRequest("train", "native", {"native": {"device": device}}, Place(), environment, num_gpus=num_gpus)
    return gpu_part(request, take_inventory(request))


def test_a_cpu_run_needs_none(monkeypatch):
    part = part_of(monkeypatch, [], device="cpu", fault="Driver Not Loaded")
    assert (part.findings, part.checks[0].outcome) == ((), "none needed: native.device is cpu")


def test_gpus_that_the_user_counted_elsewhere_are_skipped_not_missed(monkeypatch):
    part = part_of(monkeypatch, [], num_gpus=8, device="cuda", fault="Driver Not Loaded")
    assert [(f.code, str(f.severity)) for f in part.findings] == [("HOST_NOT_CHECKED", "skipped")]


@pytest.mark.parametrize(("device", "severity"), [("auto", "warning"), ("cuda", "error")])
def test_no_gpu_is_an_error_where_the_spec_asks_for_one(monkeypatch, device, severity):
    part = part_of(monkeypatch, [], device=device, fault="Driver Not Loaded")
    assert [(f.code, str(f.severity)) for f in part.findings] == [("HOST_NO_CUDA", severity)]


def test_hidden_gpus_are_named_with_the_variable_that_hides_them(monkeypatch):
    part = part_of(monkeypatch, gpus(2), variable="-1", device="cuda")
    assert (part.findings[0].code, part.findings[0].fix) == ("HOST_NO_CUDA", "unset CUDA_VISIBLE_DEVICES")


@pytest.mark.parametrize(("variable", "fires"), [("0,1,2,3", False), ("0,1", True)])
def test_the_count_of_visible_gpus_feeds_rule_c8(monkeypatch, tmp_path: Path, capsys, variable, fires):
    monkeypatch.setitem(sys.modules, "pynvml", fake_pynvml(gpus(4)))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", variable)
    spec = tmp_path / "spec.yaml"
    spec.write_text(f"results_dir: {tmp_path}/out\npolicy: {{parallelism: {{dp_shard_size: 4}}}}\n")
    main(["preflight", "--spec", str(spec), "--for", "cosmos-rl", "--platform", "local", "--only", "C8,H2", "--json"])
    document = json.loads(capsys.readouterr().out)
    assert ("SPEC_GPU_COUNT" in {f["code"] for f in document["findings"] if f["severity"] == "error"}) == fires
    assert [gpu["index"] for gpu in document["data"]["host"]["gpus"]] == [int(n) for n in variable.split(",")]
    assert document["data"]["host"]["gpus"][0]["memory_bytes"] == 80 * 2**30
