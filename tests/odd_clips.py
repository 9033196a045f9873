"""Odd videos cut from a real one with ffmpeg, and ffmpeg's own idea of their frames."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np

# name -> ffmpeg arguments between input and output; the input is bikes.mp4
MADE = {
    "plain.mp4": "-t 2 -c:v libx264 -g 12 -bf 2",
    "one_frame.mp4": "-frames:v 1",
    "two_frames.mp4": "-frames:v 2",
    "variable_rate.mp4": "-vf select='if(lt(n,30),1,not(mod(n,3)))',scale=160:-2 -vsync vfr -t 4",
    "hevc.mkv": "-t 1 -vf scale=160:-2 -c:v libx265 -x265-params log-level=none",
    "in_order.mkv": "-t 1 -vf scale=160:-2 -c:v libx264 -bf 0 -g 12",
    "odd_size.webm": "-t 1 -vf scale=161:69 -c:v libvpx-vp9 -b:v 200k -deadline realtime -cpu-used 8",
    "thin.mp4": "-t 1 -vf scale=1024:8",
    "open_gop.mp4": "-t 2 -vf scale=160:-2 -c:v libx264 -x264-params open-gop=1:keyint=12:bframes=3",
    "ten_bit.mp4": "-t 1 -vf scale=160:-2 -c:v libx264 -pix_fmt yuv420p10le",
    "b_frames.avi": "-t 2 -vf scale=160:-2 -c:v mpeg4 -bf 2",
    "raw.h264": "-t 1 -vf scale=160:-2 -c:v libx264 -f h264",
    "stream.ts": "-t 1 -vf scale=160:-2 -c:v libx264",
    "no_keyframes.mp4": "-t 2 -vf scale=160:-2 -c:v libx264 -x264-params intra-refresh=1:keyint=20",
    "full_range.mp4": "-t 1 -vf scale=160:68,format=yuvj420p -color_range pc -c:v libx264",
    "bt709.mp4": "-t 1 -vf scale=160:68:out_color_matrix=bt709 -colorspace bt709 -color_primaries bt709 -color_trc bt709",
    "audio_first.mp4": "-f lavfi -i sine=d=1 -map 1:a -map 0:v -t 1 -vf scale=160:68 -c:v libx264",
    "whole.avi": "-t 2 -vf scale=160:68 -c:v mjpeg -q:v 5",
    "late_start.mp4": "-t 1 -vf scale=160:-2 -output_ts_offset 7",
}

# All that can be decoded but the files that are cut.
DECODABLE = (
    *MADE,
    "turned_90.mp4",
    "turned_180.mp4",
    "turned_270.mp4",
    "mirrored.mp4",
    "edit_list.mp4",
    "视频 with space été.mp4",
)


def ffmpeg(*words: str) -> None:
    """Run ffmpeg; its messages are in the error when it fails."""
    subprocess.run(["ffmpeg", "-nostdin", "-v", "error", "-y", *words], check=True, capture_output=True)


def make_odd_clips(folder: Path, clips: Path) -> None:
    """Write odd and broken videos, all cut from bikes.mp4."""
    source = str(clips / "bikes.mp4")
    for name, words in MADE.items():
        ffmpeg("-i", source, *words.split(), str(folder / name))
    for turn in ("90", "180", "270"):
        ffmpeg(
            "-i",
            str(folder / "plain.mp4"),
            "-c",
            "copy",
            "-metadata:s:v:0",
            f"rotate={turn}",
            str(folder / f"turned_{turn}.mp4"),
        )
    (folder / "mirrored.mp4").write_bytes(_mirrored((folder / "plain.mp4").read_bytes()))
    ffmpeg("-ss", "1", "-i", source, "-c", "copy", str(folder / "edit_list.mp4"))
    ffmpeg("-i", source, "-c", "copy", "-movflags", "+faststart", str(folder / "index_first.mp4"))
    ffmpeg("-f", "lavfi", "-i", "sine=d=1", str(folder / "audio_only.mp4"))
    (folder / "视频 with space été.mp4").write_bytes((folder / "plain.mp4").read_bytes())
    whole, first = (clips / "bikes.mp4").read_bytes(), (folder / "index_first.mp4").read_bytes()
    (folder / "cut_60_percent.mp4").write_bytes(first[: len(first) * 6 // 10])
    track = (folder / "in_order.mkv").read_bytes()
    (folder / "cut_80_percent.mkv").write_bytes(track[: len(track) * 8 // 10])
    frames = (folder / "whole.avi").read_bytes()
    (folder / "header_claims_more.avi").write_bytes(frames[: len(frames) * 6 // 10])
    (folder / "index_lost.mp4").write_bytes(whole[: len(whole) // 2])
    (folder / "first_3_kb.mp4").write_bytes(whole[:3072])
    (folder / "zero_bytes.mp4").touch()
    (folder / "lfs_pointer.mp4").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 509904\n")


def _mirrored(mp4: bytes) -> bytes:
    """Set the first number of the track's display matrix to -1: left and right change places."""
    one, zeros = bytes.fromhex("00010000"), bytes(12)
    place = mp4.index(one + zeros + one, mp4.index(b"tkhd"))
    return mp4[:place] + bytes.fromhex("ffff0000") + mp4[place + 4 :]


def ffmpeg_count(path: Path) -> int:
    """Return how many frames ffmpeg shows of a video."""
    return len(_output_places(path))


def ffmpeg_frames(path: Path, indices: list[int]) -> np.ndarray:
    """Return frames, counted in order of their presentation times, as ffmpeg shows them: uint8 [len(indices), H, W, 3]."""
    places = _output_places(path)
    wanted = [places[index] for index in indices]
    choice = "+".join(f"eq(n\\,{place})" for place in wanted)
    extract = ["ffmpeg", "-nostdin", "-v", "quiet", "-i", str(path), "-map", "0:v:0", "-vf", f"select={choice}"]
    command = [*extract, "-vsync", "passthrough", "-pix_fmt", "rgb24", "-f", "image2pipe", "-c:v", "ppm", "-"]
    data = subprocess.run(command, check=True, capture_output=True).stdout
    picture_at = dict(zip(sorted(wanted), _pictures(data), strict=True))
    return np.stack([picture_at[place] for place in wanted])


def _output_places(path: Path) -> list[int]:
    """Return where in ffmpeg's output each frame stands; AVI has no presentation times, its output is in order."""
    listing = ["ffprobe", "-v", "quiet", "-select_streams", "v:0", "-show_entries", "frame=pts", "-of", "csv=p=0", str(path)]
    rows = subprocess.run(listing, check=True, capture_output=True, text=True).stdout.split()
    times = [row.strip(",") for row in rows]
    pts = [int(time) for time in times] if path.suffix not in {".avi", ".h264"} else range(len(times))
    return sorted(range(len(times)), key=pts.__getitem__)


def _pictures(data: bytes) -> Iterator[np.ndarray]:
    """Split a stream of PPM pictures: `P6`, width and height, 255, then the pixels."""
    place = 0
    while place < len(data):
        header = data[place : place + 64].split(b"\n", 3)[:3]
        width, height = map(int, header[1].split())
        start = place + sum(map(len, header)) + 3
        place = start + width * height * 3
        yield np.frombuffer(data[start:place], np.uint8).reshape(height, width, 3)
