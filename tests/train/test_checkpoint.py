import os
import signal
import subprocess
import sys
import textwrap

import pytest
import torch

from tao_runtime.errors import TaoError
from tao_runtime.train.checkpoint import (
    CheckpointContent,
    find_newest,
    open_checkpoint,
    prune,
    read_checkpoint,
    remove_partial,
    write_checkpoint,
)


def content(step):
    generator = torch.Generator().manual_seed(step)
    weights = {"a.weight": torch.randn(7, 3, generator=generator), "b": torch.tensor(2.5, dtype=torch.bfloat16)}
    return CheckpointContent(
        step, {"weights": weights, "optimizer": {"step/b": torch.tensor(float(step))}}, {"n": step}, {"seed": 1}
    )


def saved(output, *steps, run="20260101000000"):
    for step in steps:
        write_checkpoint(output / run / "checkpoints" / f"epoch_{step}", content(step))
    return output / run / "checkpoints"


def test_what_is_written_reads_back_bit_for_bit(tmp_path):
    folder = saved(tmp_path, 3) / "epoch_3"
    for named in (folder, folder / "policy"):
        found = open_checkpoint(named)
        assert (found.folder, found.step, found.fingerprint) == (folder, 3, {"seed": 1})
    read = read_checkpoint(found)
    assert read.state == {"n": 3}
    for file, tensors in content(3).tensors.items():
        for name, tensor in tensors.items():
            assert read.tensors[file][name].dtype == tensor.dtype
            assert torch.equal(read.tensors[file][name], tensor)


def test_the_newest_is_found_by_run_and_step(tmp_path):
    saved(tmp_path, 30, run="20250101000000")
    saved(tmp_path, 2, 10, 9)
    found, torn = find_newest(tmp_path)
    assert found is not None
    assert (found.step, found.run_dir.name, torn) == (10, "20260101000000", [])


def test_nothing_to_find(tmp_path):
    assert find_newest(tmp_path) == (None, [])


def cut(path):
    path.write_bytes(path.read_bytes()[:-5])


def flip(path):
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(bytes(data))


@pytest.mark.parametrize(
    ("file", "damage", "said"),
    [
        ("policy/weights.safetensors", cut, "bytes"),
        ("policy/weights.safetensors", flip, "SHA-256"),
        ("policy/optimizer.safetensors", os.remove, "missing"),
        ("policy/state.json", flip, "SHA-256"),
        ("manifest.json", cut, "manifest"),
        ("manifest.json", os.remove, "manifest.json can't be read"),
    ],
)
def test_a_torn_checkpoint_is_passed_over_aloud_and_refused_by_name(tmp_path, file, damage, said):
    folder = saved(tmp_path, 1, 2) / "epoch_2"
    damage(folder / file)
    found, torn = find_newest(tmp_path)
    assert found is not None
    assert found.step == 1
    (warning,) = torn
    assert (warning.code, str(warning.severity), warning.where.file) == ("RUN_CHECKPOINT_TORN", "warning", str(folder))
    assert said in warning.what
    with pytest.raises(TaoError) as caught:
        open_checkpoint(folder)
    assert (caught.value.findings[0].code, caught.value.exit_code) == ("RUN_CHECKPOINT_TORN", 6)


def test_a_checkpoint_is_replaced_as_a_whole(tmp_path):
    folder = saved(tmp_path, 2) / "epoch_2"
    (folder / "policy" / "stray").write_text("old")
    write_checkpoint(folder, content(5))
    assert open_checkpoint(folder).step == 5
    assert not (folder / "policy" / "stray").exists()
    assert [path.name for path in folder.parent.iterdir()] == ["epoch_2"]


@pytest.mark.parametrize(("max_keep", "left"), [(-1, [1, 2, 10, 11]), (2, [10, 11]), (9, [1, 2, 10, 11]), (0, [11])])
def test_max_keep_keeps_the_newest(tmp_path, max_keep, left):
    folder = saved(tmp_path, 1, 2, 10, 11)
    removed = prune(folder, max_keep)
    assert sorted(path.name for path in folder.iterdir()) == sorted(f"epoch_{step}" for step in left)
    assert len(removed) == 4 - len(left)


def test_a_kill_in_the_middle_of_a_write_leaves_the_previous_checkpoint_and_no_torn_one(tmp_path):
    """The write is killed by its own process after the first file, from inside the second save."""
    checkpoints = saved(tmp_path, 1)
    script = textwrap.dedent(f"""
        import os, signal, pathlib, torch, safetensors.torch as st
        from tao_runtime.train.checkpoint import CheckpointContent, write_checkpoint
        save = st.save_file
        def save_then_die(tensors, path):
            save(tensors, path)
            os.kill(os.getpid(), signal.SIGKILL)
        st.save_file = save_then_die
        weights = {{"weights": {{"a": torch.zeros(3)}}, "optimizer": {{"b": torch.zeros(3)}}}}
        write_checkpoint(pathlib.Path({str(checkpoints / "epoch_2")!r}), CheckpointContent(2, weights, {{}}, {{}}))
    """)
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -signal.SIGKILL
    assert (checkpoints / ".epoch_2.partial").is_dir()
    found, torn = find_newest(tmp_path)
    assert found is not None
    assert (found.step, torn) == (1, [])
    remove_partial(checkpoints.parent)
    assert [path.name for path in checkpoints.iterdir()] == ["epoch_1"]
