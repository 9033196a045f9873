"""Token counts made before launch are those of training's samples, on 200 records of real and made media (20 in CI)."""

import importlib.util
import json
import shutil
from pathlib import Path

import pytest
from token_material import make_records

from tao_runtime.data.samples import IGNORED, SampleBuilder
from tao_runtime.errors import TaoError
from tao_runtime.media.annotations import record_of
from tao_runtime.media.sampling import VisionOptions
from tao_runtime.models.load import load_tokenizer, vision_geometry
from tao_runtime.plan.tokens import count_records, open_counter

SETTINGS = (
    VisionOptions(fps=1.0, max_frames=8),
    VisionOptions(fps=2.0, total_pixels=300_000, min_pixels=4096, max_frames=12),
    VisionOptions(nframes=6, resized_height=64, resized_width=96),
    VisionOptions(nframes=4, max_pixels=50_000, min_pixels=10_000),
    VisionOptions(fps=4.0, video_start=0.1, video_end=0.9, min_frames=2, min_pixels=2048, max_pixels=30_000),
    VisionOptions(nframes=5, total_pixels=60_000),
)


@pytest.fixture(scope="module")
def qwen_dir(tmp_path_factory, qwen_tokenizer_dir, tiny_model_dir):
    """A model folder with Qwen's own tokenizer and the chat template of Qwen3-VL that trl ships."""
    folder = tmp_path_factory.mktemp("qwen")
    shutil.copy(tiny_model_dir / "config.json", folder)
    for name in ("tokenizer.json", "tokenizer_config.json", "vocab.json", "merges.txt"):
        shutil.copy(qwen_tokenizer_dir / name, folder)
    trl = importlib.util.find_spec("trl")
    shutil.copy(Path(trl.submodule_search_locations[0]) / "chat_templates" / "qwen3_vl.jinja", folder / "chat_template.jinja")
    return folder


def as_trained(builder, record):
    """Return what training makes of a record: length, answer tokens, vision tokens, place of the answer; or its faults."""
    try:
        sample = builder.training(record)
    except TaoError as error:
        return [finding.code for finding in error.findings]
    taught = (sample.labels != IGNORED).nonzero().flatten().tolist()
    return (len(sample), sample.num_answer_tokens, int((sample.token_types > 0).sum()), taught[0])


def as_counted(counted):
    """Return the same of a count."""
    tokens = counted.tokens
    if tokens is None:
        return [finding.code for finding in counted.faults]
    return (tokens.total, tokens.answer, tokens.vision, tokens.answer_start)


def test_counts_equal_the_samples_of_training(soak, tmp_path, clips, qwen_dir, tiny_model_dir):
    raw = make_records(tmp_path, clips, soak.count(200))
    records = [record_of(index, one) for index, one in enumerate(raw)]
    differing, num_media, num_faults = [], 0, 0
    for number, options in enumerate(SETTINGS):
        folder, system_prompt = (qwen_dir, "Be brief.") if number % 2 else (tiny_model_dir, "")
        builder = SampleBuilder(
            load_tokenizer(folder), vision_geometry(folder), options, tmp_path, 100_000, system_prompt=system_prompt
        )
        # Every record meets half of the settings: decoding 200 clips six times is what takes the time.
        own = [record for record in records if (record.index + number) % 2]
        for counted in count_records(own, tmp_path, open_counter(folder, options, system_prompt)):
            expected, got = as_trained(builder, counted.record), as_counted(counted)
            num_media += len(counted.media)
            num_faults += isinstance(got, list)
            if expected != got:
                differing.append((counted.record.id, options, expected, got))
    assert differing == []
    assert num_faults < len(records)
    figures = {"records": len(records), "settings": len(SETTINGS), "media_compared": num_media, "same_faults": num_faults}
    soak.record("token_counts", {**figures, "differing": 0})
    print(json.dumps(figures))
