"""The demo's clips: what the annotations say is what the decoded files show."""

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path

import av
import numpy as np
import pytest
from demo.make_dataset import (
    ANSWERS,
    MIRRORED,
    NUM_FRAMES,
    SIDE_PX,
    cut_clips,
    footage_folder,
    make_dataset,
    read_footage,
    write_video,
)

SETS = ("train", "validation", "reversed", "frozen")


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo") / "data"
    make_dataset(folder, seed=5, num_train=60, num_validation=60)
    return folder


def records_of(root: Path) -> list[dict]:
    return json.loads((root / "annotations.json").read_text(encoding="utf-8"))


def frames_of(path: Path) -> np.ndarray:
    with av.open(str(path)) as container:
        return np.stack([frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)])


def answer_of(record: dict) -> str:
    return record["conversations"][1]["value"]


def drift_by_phase_correlation(frames: np.ndarray) -> float:
    """Median sideways shift a frame in pixels, by another method than the one that picked the clips."""
    window = np.outer(np.hanning(SIDE_PX), np.hanning(SIDE_PX))
    shifts = []
    grey = frames.mean(axis=3)
    for first, second in pairwise(grey):
        spectra = [np.fft.fft2((picture - picture.mean()) * window) for picture in (first, second)]
        product = spectra[1] * spectra[0].conj()
        product /= np.abs(product) + 1e-3 * np.abs(product).max()
        column = int(np.fft.ifft2(product).real.max(axis=0).argmax())
        shifts.append(column if column < SIDE_PX // 2 else column - SIDE_PX)
    return float(np.median(shifts))


@pytest.mark.parametrize("name", SETS)
def test_every_answer_is_the_motion_that_the_decoded_file_shows(dataset, name):
    wrong = []
    for record in records_of(dataset / name):
        drift_px = drift_by_phase_correlation(frames_of(dataset / name / record["video"]))
        seen = "left" if drift_px < -2.5 else "right" if drift_px > 2.5 else "straight"
        if seen != answer_of(record):
            wrong.append((record["id"], answer_of(record), drift_px))
    assert not wrong


@pytest.mark.parametrize("name", SETS)
def test_files_have_the_shape_and_rate_that_annotations_state(dataset, name):
    for record in records_of(dataset / name):
        path = dataset / name / record["video"]
        assert frames_of(path).shape == (NUM_FRAMES, SIDE_PX, SIDE_PX, 3)
        with av.open(str(path)) as container:
            assert float(container.streams.video[0].average_rate) == pytest.approx(record["video_fps"], abs=1e-5)


def test_train_and_validation_are_balanced_and_share_no_footage(dataset):
    for name in ("train", "validation"):
        assert Counter(map(answer_of, records_of(dataset / name))) == dict.fromkeys(ANSWERS, 20)
    # 25 and 29.97 frames a second: the rate tells the footage.
    rates = [{record["video_fps"] for record in records_of(dataset / name)} for name in ("train", "validation")]
    assert rates[0] == {25.0}
    assert rates[1] == {29.97003}


def test_controls_are_the_validation_clips_backwards_and_frozen(dataset):
    sets = [records_of(dataset / name) for name in ("validation", "reversed", "frozen")]
    for forward, backward, still in zip(*sets, strict=True):
        frames = frames_of(dataset / "validation" / forward["video"]).astype(int)
        mirrored = frames_of(dataset / "reversed" / backward["video"]).astype(int)
        frozen = frames_of(dataset / "frozen" / still["video"]).astype(int)
        # Encoding is lossy; another frame of the clip differs far more than this.
        assert np.abs(frames[::-1] - mirrored).mean() < 4
        assert np.abs(frozen - frozen[:1]).mean() < 2
        assert np.abs(frozen - frames[:1]).mean() < 4
        assert answer_of(backward) == MIRRORED[answer_of(forward)]
        assert answer_of(still) == "straight"


def test_the_same_seed_gives_the_same_files_and_another_seed_others(dataset, tmp_path):
    make_dataset(tmp_path / "again", seed=5, num_train=60, num_validation=60)
    make_dataset(tmp_path / "other", seed=6, num_train=6, num_validation=6)
    files = [path.relative_to(dataset) for path in sorted(dataset.rglob("*")) if path.is_file()]
    assert len(files) == 244
    assert [path for path in files if (dataset / path).read_bytes() != (tmp_path / "again" / path).read_bytes()] == []
    first = Path("train/videos/train_0000.mp4")
    assert (tmp_path / "other" / first).read_bytes() != (dataset / first).read_bytes()


def test_equal_frames_give_equal_bytes(clips, tmp_path):
    """An encoder that reads what it never wrote differs with what the heap held before: fill it with something else."""
    random = np.random.default_rng(1)
    cut = cut_clips([read_footage(clips / "bikes.mp4")], 15, random)
    for clip in cut:
        written = set()
        for turn in range(20):
            noise = [np.full(size, turn * 31 % 251, np.uint8) for size in random.integers(1_000, 60_000, 40)]
            del noise
            write_video(tmp_path / "clip.mp4", clip.frames, clip.fps)
            written.add((tmp_path / "clip.mp4").read_bytes())
        assert len(written) == 1


def test_more_train_clips_leave_the_validation_clips_as_they_were(dataset, tmp_path):
    make_dataset(tmp_path / "small", seed=5, num_train=3, num_validation=60)
    for record in records_of(dataset / "validation"):
        assert (tmp_path / "small/validation" / record["video"]).read_bytes() == (
            dataset / "validation" / record["video"]
        ).read_bytes()


def test_an_old_data_set_is_replaced_as_a_whole(tmp_path):
    stray = tmp_path / "data" / "train" / "stray.mp4"
    stray.parent.mkdir(parents=True)
    stray.write_bytes(b"old")
    make_dataset(tmp_path / "data", seed=0, num_train=3, num_validation=3)
    assert not stray.exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data"]


def test_footage_is_decoded_whole(clips):
    assert footage_folder() == clips
    carphone = read_footage(clips / "carphone_pristine.mp4")
    assert len(carphone.frames) == 120
    assert carphone.frames[0].size == (176, 144)
