"""What preflight counts through NVML is what CUDA lists to torch, for every way to write CUDA_VISIBLE_DEVICES."""

import json
import subprocess
import sys

import pytest

from tao_runtime.environment import child_variables
from tao_runtime.preflight.host_gpus import installed_gpus, visible_gpus

PROGRAM = """
import json, torch
names = [torch.cuda.get_device_properties(i) for i in range(torch.cuda.device_count())] if torch.cuda.is_available() else []
print(json.dumps([[p.name, p.major, p.minor, p.total_memory] for p in names]))
"""


@pytest.mark.gpu
@pytest.mark.parametrize(
    "variable",
    [
        None,
        "",
        "-1",
        "0",
        "+0",
        " 0 ",
        "0,0",
        "0,99",
        "99,0",
        "0,-1",
        "x",
        "0x",
        "UUID",
        "UUID[:12]",
        "UUID,UUID",
        "GPU-",
        "UUID,0",
        "0,UUID",
        " UUID",
        "0x0",
        "00",
        "0,x",
    ],
)
def test_preflight_counts_as_torch_does(variable):
    devices = installed_gpus().devices
    if variable is not None and "UUID" in variable:
        uuid = devices[0].uuid
        variable = variable.replace("UUID[:12]", uuid[:12]).replace("UUID", uuid)
    environment = {name: value for name, value in child_variables().items() if name != "CUDA_VISIBLE_DEVICES"}
    environment |= {} if variable is None else {"CUDA_VISIBLE_DEVICES": variable}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True)
    by_torch = json.loads(done.stdout.splitlines()[-1])
    seen = visible_gpus(devices, variable).devices
    assert [(gpu.name, *gpu.capability) for gpu in seen] == [tuple(one[:3]) for one in by_torch]
    for gpu, (*_, memory) in zip(seen, by_torch, strict=True):  # NVML also counts what the driver keeps for itself
        assert 0.97 < memory / gpu.memory_bytes <= 1
