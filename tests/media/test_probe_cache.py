"""What was measured is taken from the disk only for the very file that was measured, and a broken cache harms nothing."""

import os
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tao_runtime.media import probe_cache
from tao_runtime.media.probe import VideoFacts, probe_video
from tao_runtime.media.probe_cache import ProbeCache, Probed

FACTS = VideoFacts("", 64, 48, 10, 25.0, 0.4, codec="h264", header_frames=10, header_fps=25.0)


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """Trust fresh files, but where a test says otherwise."""
    monkeypatch.setattr(probe_cache, "_TICK_S", 0)


@pytest.fixture
def clip(tmp_path) -> Path:
    path = tmp_path / "clip.mp4"
    path.write_bytes(b"a" * 100)
    return path


def remember(folder: Path, clip: Path, facts: VideoFacts | None = FACTS) -> None:
    with ProbeCache(folder) as cache:
        cache.put(str(clip), clip.stat(), Probed(facts, frozenset({0, 9})))


def recall(folder: Path, clip: Path) -> Probed | None:
    with ProbeCache(folder) as cache:
        return cache.get(str(clip), clip.stat())


def test_what_was_measured_comes_back_whole(tmp_path, clip, odd_clips):
    remember(tmp_path, clip)
    assert recall(tmp_path, clip) == Probed(replace(FACTS, path=str(clip)), frozenset({0, 9}))
    uneven = odd_clips / "variable_rate.mp4"
    facts = probe_video(uneven)
    assert facts.uneven_times_s
    remember(tmp_path, uneven, facts)
    assert recall(tmp_path, uneven) == Probed(facts, frozenset({0, 9}))
    remember(tmp_path, clip, None)
    assert recall(tmp_path, clip) == Probed(None, frozenset({0, 9}))


def rewrite(clip: Path) -> None:
    """Change the content, and set size and time of change back."""
    before = clip.stat()
    clip.write_bytes(b"b" * before.st_size)
    os.utime(clip, ns=(before.st_atime_ns, before.st_mtime_ns))


def exchange(clip: Path) -> None:
    before = clip.stat()
    other = clip.with_name("other")
    other.write_bytes(b"c" * before.st_size)
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.replace(clip)


@pytest.mark.parametrize("change", [rewrite, exchange, lambda clip: clip.write_bytes(b"longer" * 100), os.utime])
def test_a_changed_file_is_measured_again(tmp_path, clip, change):
    remember(tmp_path, clip)
    time.sleep(0.02)  # one tick of the file system's clock
    change(clip)
    assert recall(tmp_path, clip) is None


def test_a_file_that_changed_meanwhile_or_just_now_is_not_remembered(tmp_path, clip, monkeypatch):
    with ProbeCache(tmp_path) as cache:
        before = clip.stat()
        clip.write_bytes(b"longer" * 100)
        cache.put(str(clip), before, Probed(FACTS, frozenset()))
    assert recall(tmp_path, clip) is None
    monkeypatch.setattr(probe_cache, "_TICK_S", 60)
    remember(tmp_path, clip)
    assert recall(tmp_path, clip) is None


def test_another_version_of_the_probe_measures_again(tmp_path, clip, monkeypatch):
    remember(tmp_path, clip)
    monkeypatch.setattr(probe_cache, "PROBE_VERSION", probe_cache.PROBE_VERSION + 1)
    assert recall(tmp_path, clip) is None


@pytest.mark.parametrize("damage", ["cut", "garbage", "empty", "header", "pages"])
def test_a_broken_cache_is_never_believed_and_is_replaced(tmp_path, clip, damage):
    folder = tmp_path / "cache"
    remember(folder, clip)
    (file,) = folder.iterdir()
    content = file.read_bytes()
    broken = {
        "cut": content[: len(content) // 2],
        "garbage": b"no database at all, but long enough to look at" * 100,
        "empty": b"",
        "header": bytes(50) + content[50:],
        "pages": content[:4096] + bytes(len(content) - 4096),
    }[damage]
    file.write_bytes(broken)
    assert recall(folder, clip) is None
    remember(folder, clip)
    assert recall(folder, clip) is not None or damage == "pages"
    remember(folder, clip)
    assert recall(folder, clip) is not None


def test_a_changed_byte_in_an_entry_is_not_believed(tmp_path, clip):
    remember(tmp_path, clip)
    (file,) = tmp_path.glob("*.sqlite3")
    with sqlite3.connect(file) as database:
        assert database.execute("UPDATE probes SET content = replace(content, '25.0', '26.0')").rowcount == 1
    assert recall(tmp_path, clip) is None


def test_without_a_place_to_write_nothing_is_kept_and_nothing_is_raised(tmp_path, clip):
    (tmp_path / "a file").touch()
    remember(tmp_path / "a file" / "cache", clip)
    assert recall(tmp_path / "a file" / "cache", clip) is None


def test_a_name_that_is_no_utf8_is_kept_too(tmp_path):
    clip = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.mp4"))
    clip.write_bytes(b"a")
    remember(tmp_path, clip)
    assert recall(tmp_path, clip) is not None


def test_the_cache_is_bounded_and_keeps_the_latest(tmp_path, monkeypatch):
    monkeypatch.setattr(probe_cache, "MAX_BYTES", 100_000)
    clips = [tmp_path / f"{number}.mp4" for number in range(1200)]
    seconds = iter(range(2_000_000_000, 2_100_000_000))
    monkeypatch.setattr(probe_cache.time, "time", lambda: next(seconds))
    with ProbeCache(tmp_path) as cache:
        for clip in clips:
            clip.write_bytes(b"a")
            cache.put(str(clip), clip.stat(), Probed(FACTS, frozenset({0})))
    (file,) = tmp_path.glob("*.sqlite3")
    assert file.stat().st_size < 300_000
    assert recall(tmp_path, clips[-1]) is not None
    assert recall(tmp_path, clips[0]) is None


def test_many_processes_share_a_cache(tmp_path):
    program = (
        "import sys; from pathlib import Path; from tao_runtime.media import probe_cache as p\n"
        "from tao_runtime.media.probe import VideoFacts\n"
        "p._TICK_S, p._WRITE_EVERY, folder = 0, 5, Path(sys.argv[1])\n"
        "with p.ProbeCache(folder) as cache:\n"
        "    for n in range(100):\n"
        "        clip = folder / f'{sys.argv[2]}_{n}'; clip.touch()\n"
        "        facts = VideoFacts('', 8, 8, n + 2, 25.0, 1.0)\n"
        "        cache.put(str(clip), clip.stat(), p.Probed(facts, frozenset({0})))\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", program, str(tmp_path), str(number)]) for number in range(4)]
    assert [one.wait() for one in running] == [0, 0, 0, 0]
    for number in range(4):
        found = recall(tmp_path, tmp_path / f"{number}_57")
        assert found is not None
        assert found.facts is not None
        assert found.facts.num_frames == 59
