"""Every decoder gives the frames that ffmpeg itself extracts, bit for bit, or says that it does not."""

import logging
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from importlib import import_module
from typing import get_args

import numpy as np
import pytest
from odd_clips import DECODABLE, ffmpeg_frames

from tao_runtime.environment import DecoderChoice, VariableError, read_environment
from tao_runtime.media import decode
from tao_runtime.media.decode import choose_decoder, decode_frames
from tao_runtime.media.decoders.interface import DecoderName, Unproven
from tao_runtime.media.timeline import read_timeline

NAMES = get_args(DecoderName)
REAL = ("bikes.mp4", "bigbuckbunny.mp4", "carphone_pristine.mp4")
# What each decoder may refuse, with a word of its reason; it must read everything else.
UNPROVEN = {
    "pyav": {},
    "torchcodec": {
        **dict.fromkeys(("b_frames.avi", "whole.avi", "raw.h264"), "no times of their own"),
        "edit_list.mp4": "+0.200 s off",
        "mirrored.mp4": "mirror",
        "no_keyframes.mp4": "no more frames",
        "stream.ts": "no more frames",
    },
    "decord": {
        "b_frames.avi": "times are up to",
        "raw.h264": "Failed to measure",
        "stream.ts": "Unable to handle EOF",
        "edit_list.mp4": "it counts 250 frames, not 225",
        "mirrored.mp4": "mirror",
        "odd_size.webm": "161 x 69",
        "ten_bit.mp4": "10 bits",
    },
}


def module(name):
    found = import_module(f"tao_runtime.media.decoders.{name}")
    if name == "decord" and os.uname().machine != "x86_64":
        pytest.skip("decord has wheels for x86-64 only")
    assert found.import_fault() is None
    return found


def spread(count: int) -> list[int]:
    return sorted({0, count // 5, count // 2, count // 2 + 1, count - 1} & set(range(count)))


@lru_cache(maxsize=2)
def expected_frames(path, wanted):
    return ffmpeg_frames(path, list(wanted))


@pytest.fixture(autouse=True)
def _fresh_memory():
    """Forget what was warned of in other tests."""
    decode._warn_once.cache_clear()
    decode._import_fault.cache_clear()


@pytest.mark.parametrize("clip", [*REAL, *DECODABLE])
@pytest.mark.parametrize("name", NAMES)
def test_frames_are_those_of_ffmpeg_or_refused(clips, odd_clips, name, clip):
    path = (clips if clip in REAL else odd_clips) / clip
    timeline = read_timeline(path)
    wanted = spread(len(timeline.pts))
    reason = UNPROVEN[name].get(clip)
    if reason is not None:
        with pytest.raises(Unproven) as caught:
            module(name).read_frames(path, timeline, wanted, 1)
        assert reason in str(caught.value)
        assert "\n" not in str(caught.value)
        return
    np.testing.assert_array_equal(module(name).read_frames(path, timeline, wanted, 1), expected_frames(path, tuple(wanted)))


@pytest.mark.parametrize("name", ["torchcodec", "decord"])
def test_a_file_cut_short_is_read_by_the_decoder_that_counts_right(odd_clips, caplog, name):
    path = odd_clips / "cut_60_percent.mp4"
    last = len(read_timeline(path).pts) - 1
    np.testing.assert_array_equal(decode_frames(path, [0, last], decoder=name), decode_frames(path, [0, last]))
    assert f"{name} differs" in caplog.text


@pytest.mark.parametrize("name", ["torchcodec", "decord"])
def test_a_refused_file_is_read_by_pyav_and_named_once(odd_clips, caplog, name):
    path = odd_clips / "edit_list.mp4"
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            frames = decode_frames(path, [5, 0, 5], decoder=name)
            np.testing.assert_array_equal(frames, ffmpeg_frames(path, [0, 5])[[1, 0, 1]])
    (record,) = caplog.records
    assert str(path) in record.getMessage()
    assert f"PyAV decodes {path}: {name} differs from its timeline (" in record.getMessage()


@pytest.mark.parametrize("name", NAMES)
def test_threads_do_not_disturb_each_other(clips, odd_clips, name):
    """Loader threads share a process, and in it the decoders' libraries."""
    paths = [clips / "carphone_pristine.mp4", odd_clips / "plain.mp4", odd_clips / "open_gop.mp4", odd_clips / "hevc.mkv"]
    jobs = [(path, spread(20 + turn)) for turn in range(6) for path in paths]
    alone = [decode_frames(path, wanted, num_threads=1) for path, wanted in jobs]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda job: decode_frames(*job, num_threads=1, decoder=name), jobs))
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_choice_and_its_reason():
    assert choose_decoder("auto")[0] == "pyav"
    assert "docs/adr/0003" in choose_decoder("auto")[1]
    for name in NAMES:
        assert choose_decoder(name)[0] == name
        assert "asked for" in choose_decoder(name)[1]


def test_the_environment_asks(monkeypatch):
    monkeypatch.setenv("TAO_DECODER", "decord")
    assert choose_decoder()[0] == "decord"
    monkeypatch.setenv("TAO_DECODER", "")
    assert choose_decoder()[0] == "pyav"
    with pytest.raises(VariableError, match="TAO_DECODER is 'opencv', one of auto, pyav, torchcodec, decord is needed"):
        read_environment({"TAO_DECODER": "opencv"})
    assert get_args(DecoderChoice) == ("auto", *NAMES)


def run(code: str, **variables: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **variables}, capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout + done.stderr


def test_a_library_that_does_not_import_is_a_reason_not_a_crash(clips, tmp_path):
    """As torchcodec 0.17 fails beside a torch without CUDA: the cause is what a reader can act on."""
    broken = tmp_path / "torchcodec"
    broken.mkdir()
    (broken / "__init__.py").write_text(
        "try:\n    raise OSError('libnvrtc.so.13: cannot open shared object file')\n"
        "except OSError as error:\n    raise RuntimeError('Could not load\\nthis library') from error\n"
    )
    code = (
        "from tao_runtime.media.decode import choose_decoder, decode_frames\n"
        f"print(choose_decoder()); print(decode_frames({str(clips / 'bikes.mp4')!r}, [3]).shape)"
    )
    path = f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    said = run(code, TAO_DECODER="torchcodec", PYTHONPATH=path)
    assert "('pyav', 'torchcodec was asked for and does not import here: libnvrtc.so.13" in said
    assert "(1, 272, 640, 3)" in said
    assert "PyAV decodes: torchcodec does not import here (libnvrtc.so.13" in said


@pytest.mark.parametrize("asked", ["auto", "pyav", "decord"])
def test_torch_is_imported_for_torchcodec_only(clips, asked):
    code = (
        "import sys\nfrom tao_runtime.media.decode import decode_frames\n"
        f"decode_frames({str(clips / 'bikes.mp4')!r}, [3]); print('torch' in sys.modules)"
    )
    assert run(code, TAO_DECODER=asked).strip() == "False"
