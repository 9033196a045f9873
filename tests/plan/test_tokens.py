"""Counts are made once for what repeats, and never for what can't be known; exactness is shown in tests/soak."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tao_runtime.errors import TaoError
from tao_runtime.media.annotations import record_of
from tao_runtime.media.images import image_shown_size
from tao_runtime.media.probe import probe_video
from tao_runtime.media.sampling import VisionOptions, budget_tokens, plan_frames
from tao_runtime.plan import tokens
from tao_runtime.plan.tokens import TokenCounter, count_records, open_counter

OPTIONS = VisionOptions(nframes=4, resized_height=64, resized_width=64)


def record(number=0, question="<video>\nWhich way?", answer="left", **fields):
    turns = [{"from": "human", "value": question}, {"from": "gpt", "value": answer}]
    return record_of(number, {"id": f"r{number}", "video": "bikes.mp4", "conversations": turns, **fields})


@pytest.fixture
def counter(tiny_model_dir):
    return open_counter(tiny_model_dir, OPTIONS)


def test_equal_texts_are_encoded_once_and_equal_files_measured_once(counter, clips, monkeypatch):
    encoded, measured = [], []
    count_text, measure = TokenCounter._count_text, TokenCounter.measure
    monkeypatch.setattr(TokenCounter, "_count_text", lambda self, *a: encoded.append(a) or count_text(self, *a))
    monkeypatch.setattr(TokenCounter, "measure", lambda self, *a: measured.append(a) or measure(self, *a))
    records = [record(n, answer=("left", "right")[n % 2]) for n in range(50)]
    counts = [one.tokens for one in count_records(records, clips, counter)]
    assert (len(encoded), len(measured)) == (2, 1)
    assert len(set(counts[::2])) == len(set(counts[1::2])) == 1


def test_what_is_remembered_is_bounded(counter, clips, monkeypatch):
    monkeypatch.setattr(tokens, "MAX_REMEMBERED", 10)
    monkeypatch.setattr(tokens, "CHUNK_RECORDS", 7)
    records = [record(n, answer=f"answer {n % 40}") for n in range(100)]
    whole = [one.tokens for one in count_records(records, clips, counter)]
    assert len(counter._texts) <= 10
    assert whole[:40] == whole[40:80]


def test_records_are_not_held(counter, clips):
    taken = []

    def endless():
        for number in range(10**9):
            taken.append(number)
            yield record(number)

    counted = count_records(endless(), clips, counter)
    assert next(counted).tokens.total > 16
    assert len(taken) == tokens.CHUNK_RECORDS


def test_without_a_media_folder_only_texts_are_counted(counter, clips):
    talk, seen = count_records([record(video=None, question="Hi?"), record(1)], None, counter)
    assert talk.tokens.vision == 0
    assert seen.tokens is None
    assert [f.code for f in seen.faults] == ["DATA_MEDIA_NOT_CHECKED"]
    (with_folder,) = count_records([record(1)], clips, counter)
    assert with_folder.faults == ()


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        ({"video": "none.mp4"}, "DATA_MEDIA_MISSING"),
        ({"video": "a\0b.mp4"}, "DATA_MEDIA_MISSING"),
        ({"video": None, "image": "x" * 300, "question": "<image>x"}, "DATA_MEDIA_PATH_INVALID"),
        ({"video": None, "image": "none.png", "question": "<image>x"}, "DATA_MEDIA_MISSING"),
        ({"question": "<video><video>x"}, "DATA_TAG_COUNT"),
        ({"question": "<video><|im_end|>"}, "DATA_LITERAL_TOKENS"),
        ({"conversations": [{"from": "human", "value": "<video>x"}]}, "DATA_TURNS_MISSING"),
        ({"conversations": [{"from": "gpt", "value": "left"}]}, "DATA_TURNS_MISSING"),
    ],
)
def test_faults_are_returned_with_the_record(counter, clips, bad, code):
    (counted,) = count_records([record(3, **bad)], clips, counter)
    assert counted.tokens is None
    assert [(f.code, f.where.record_index, f.where.record_id) for f in counted.faults] == [(code, 3, "r3")]
    assert next(count_records([record(3)], clips, counter)).faults == ()


def test_a_prompt_ends_where_the_answer_begins(counter, clips):
    (whole,), (prompt,) = (list(count_records([record()], clips, counter, purpose=way)) for way in ("training", "prompt"))
    assert prompt.tokens.total == whole.tokens.answer_start == prompt.tokens.answer_start
    assert prompt.tokens.answer == 0


def test_facts_that_are_known_are_not_measured_again(counter, tmp_path, clips):
    facts = {"gone.mp4": probe_video(clips / "bikes.mp4")}
    (known,) = count_records([record(video="gone.mp4")], tmp_path, counter, facts)
    (measured,) = count_records([record()], clips, counter)
    assert known.tokens == measured.tokens


def test_a_variable_rate_without_its_times_is_measured_again(counter, odd_clips):
    path = odd_clips / "variable_rate.mp4"
    facts = probe_video(path)
    assert facts.is_variable_rate
    bare = replace(facts, uneven_times_s=None)
    assert counter.measure("video", path, bare) == counter.measure("video", path)


def test_images_are_measured_as_shown(tmp_path):
    from PIL import Image

    picture = Image.new("RGB", (60, 30))
    for orientation, expected in ((1, (30, 60)), (6, (60, 30)), (3, (30, 60)), (8, (60, 30))):
        exif = picture.getexif()
        exif[0x0112] = orientation
        picture.save(tmp_path / "a.jpg", exif=exif)
        assert image_shown_size(tmp_path / "a.jpg") == expected
    (tmp_path / "b.png").write_text("no image")
    with pytest.raises(TaoError, match="DATA_IMAGE_UNREADABLE"):
        image_shown_size(tmp_path / "b.png")


def test_the_pixel_floor_defeats_the_budget(clips):
    """The case of the facts page: 300 s at 4 fps with 0.9 x 40960 tokens of budget take 46,080."""
    facts = replace(probe_video(clips / "bikes.mp4"), num_frames=9000, average_fps=30.0, height=1080, width=1920)
    options = VisionOptions(fps=4.0, total_pixels=int(0.9 * 40960 * 1024))
    geometry = tokens.VisionGeometry()
    assert plan_frames(facts, options, geometry).num_tokens == 46_080
    assert budget_tokens(options, geometry) == pytest.approx(36_864)
    assert budget_tokens(replace(options, resized_height=64, resized_width=64), geometry) is None


def test_a_model_without_vision_tower_is_refused(tiny_model_dir, tmp_path):
    import shutil

    shutil.copytree(tiny_model_dir, tmp_path / "model")
    (tmp_path / "model" / "config.json").write_text(json.dumps({"model_type": "qwen3"}))
    with pytest.raises(TaoError, match="RUN_MODEL_UNSUPPORTED"):
        open_counter(Path(tmp_path / "model"), OPTIONS)
