"""`data inspect` on real and odd clips: the document, the page, and what the contact sheet shows."""

import base64
import io
import json
import re
import shutil

import numpy as np
import pytest
from PIL import Image
from report.browser_pipe import chromium, running_browser

from tao_runtime.cli.main import main
from tao_runtime.media.decode import decode_frames
from tao_runtime.media.probe import probe_video
from tao_runtime.media.sampling import VisionOptions, plan_frames

HOSTILE = "<script>alert(1)</script><img src=http://x.example/a.png>"
NAMES = ("bikes.mp4", "turned_90.mp4", "variable_rate.mp4", "one_frame.mp4", "cut_60_percent.mp4", "lfs_pointer.mp4")


@pytest.fixture(scope="module")
def data_set(clips, odd_clips, tmp_path_factory):
    root = tmp_path_factory.mktemp("set")
    for name in NAMES:
        shutil.copy((clips if name == "bikes.mp4" else odd_clips) / name, root / name)
    Image.new("RGB", (90, 60), (200, 10, 10)).save(root / "red.png")
    records = [
        {"id": name, "video": name, "video_fps": 25.0, "conversations": turns("<video>\nWhere to?", answer)}
        for name, answer in zip(NAMES, ("left", "right", "left", "right", "left", "left"), strict=True)
    ]
    records.append({"id": HOSTILE, "image": "red.png", HOSTILE: 1, "conversations": turns(f"<image>\n{HOSTILE}", HOSTILE)})
    records.append({"id": "gone", "video": "gone.mp4", "video_fps": 25.0, "conversations": turns("<video>\nWhere?", "right")})
    (root / "annotations.json").write_text(json.dumps(records), encoding="utf-8")
    return root


def turns(question, answer):
    return [{"from": "human", "value": question}, {"from": "gpt", "value": answer}]


def run(capsys, *words):
    code = main(["data", "inspect", *map(str, words), "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_the_document(data_set, capsys):
    code, document = run(capsys, "--dataset", data_set)
    assert code == 4  # two files can't be used
    assert {(f["code"], f["where"]["record_index"]) for f in document["findings"]} == {
        ("DATA_MEDIA_LFS_POINTER", 5),
        ("DATA_MEDIA_MISSING", 7),
    }
    media = document["data"]["media"]
    assert (media["num_measured"], media["num_unusable"]) == (8, 2)
    assert media["kinds"] == {"video": 7, "image": 1}
    assert media["sizes"]["272 × 640"] == 1  # as shown, not as coded
    assert media["fps"]["histogram"]["25"] == 4
    out = {(one["what"], one["media"]) for one in media["standing_out"]}
    assert {
        ("variable frame rate", "variable_rate.mp4"),
        ("turned by metadata", "turned_90.mp4"),
        ("header claims more frames", "cut_60_percent.mp4"),
        ("can't be sampled", "one_frame.mp4"),
        ("longest, s", "bikes.mp4"),
    } <= out
    assert document["data"]["answers"]["commonest"]["left"] == 4


def test_the_contact_sheet_shows_the_frames_that_the_model_gets(data_set, capsys, tmp_path):
    page = tmp_path / "page.html"
    run(capsys, "--dataset", data_set, "--html", page, "--nframes", 4)
    html = page.read_text(encoding="utf-8")
    article = next(part for part in html.split("<article")[1:] if "turned_90.mp4" in part)
    facts = probe_video(data_set / "turned_90.mp4")
    plan = plan_frames(facts, VisionOptions(nframes=4))
    assert re.findall(r"<span>(frame [^<]*)</span>", article) == [
        f"frame {index}, {time_s:.2f} s" for index, time_s in zip(plan.indices, plan.times_s, strict=True)
    ]
    assert f"4 frames of {plan.width} × {plan.height} px, {plan.num_tokens} tokens" in article
    width = round(120 / plan.height * plan.width)
    assert f"pictures scaled down to {width} × 120 px" in article
    frames = decode_frames(data_set / "turned_90.mp4", plan.indices)
    for code, frame in zip(re.findall(r"base64,([^\"]+)\"", article), frames, strict=True):
        picture = np.asarray(Image.open(io.BytesIO(base64.b64decode(code))), np.float32)
        expected = np.asarray(Image.fromarray(frame).resize((width, 120), Image.Resampling.BOX), np.float32)
        assert picture.shape == expected.shape
        assert np.abs(picture - expected).mean() < 8


def test_the_page_names_what_fails_and_escapes_what_is_hostile(data_set, capsys, tmp_path):
    page = tmp_path / "page.html"
    run(capsys, "--dataset", data_set, "--html", page)
    html = page.read_text(encoding="utf-8")
    assert "lfs_pointer.mp4 is a Git LFS pointer" in html
    assert "gone.mp4 does not exist" in html
    assert "the video has 1 frame; no sampling takes fewer than 2" in html
    assert "<script" not in html
    assert "<img src=http" not in html
    assert "&lt;script&gt;" in html


@pytest.mark.skipif(chromium() is None, reason="Chromium is not installed: make system")
def test_the_page_in_a_browser(data_set, capsys, tmp_path):
    page = tmp_path / "page.html"
    run(capsys, "--dataset", data_set, "--html", page)
    with running_browser() as browser:
        for scheme, media in (("light", ""), ("dark", ""), ("light", "print")):
            browser.emulate(media, scheme)
            visit = browser.open(page)
            assert (visit.requests, visit.complaints) == ([], [])
        assert browser.measure("[...document.images].every(image => image.complete && image.naturalWidth > 0)")
        assert browser.measure("document.images.length") > 10
        browser.emulate()
        for width in (1200, 700, 390):
            browser.resize(width, 900)
            browser.open(page)
            assert browser.measure("document.documentElement.scrollWidth") <= width


def test_a_spec_says_how_frames_are_sampled(data_set, capsys, tmp_path):
    spec = tmp_path / "spec.yaml"
    sets = [f"--set=custom.train_dataset.annotation_path={data_set}/annotations.json"]
    sets += [f"--set=custom.train_dataset.media_path={data_set}", f"--set=results_dir={tmp_path}/results"]
    sets += [
        "--set=custom.vision.fps=null",
        "--set=custom.vision.nframes=6",
        "--set=validation.enable=false",
        "--set=train.train_batch_per_replica=8",
    ]
    assert main(["spec", "build", "--action", "train", *sets, "--out", str(spec)]) in (0, 5)
    capsys.readouterr()
    _, document = run(capsys, "--dataset", data_set, "--spec", spec)
    assert document["data"]["sampling"].startswith("nframes 6")
    code, document = run(capsys, "--dataset", data_set, "--spec", spec, "--fps", "2")
    assert (code, document["findings"][0]["code"]) == (2, "USAGE_ARGUMENTS")


def test_with_media_nothing_is_skipped(data_set, capsys):
    _, document = run(capsys, "--dataset", data_set)
    assert "DATA_MEDIA_NOT_CHECKED" not in [f["code"] for f in document["findings"]]


def test_without_media_it_says_that_they_were_not_looked_at(data_set, capsys, tmp_path):
    page = tmp_path / "page.html"
    code, document = run(capsys, "--annotations", data_set / "annotations.json", "--html", page)
    assert code == 0
    assert [(f["code"], f["severity"]) for f in document["findings"]] == [("DATA_MEDIA_NOT_CHECKED", "skipped")]
    assert document["data"]["media"] is None
    assert "not measured: no media folder was given" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("words", [("--fps", "0"), ("--fps", "nan"), ("--fps", "1", "--nframes", "4"), ("--html", "{set}")])
def test_what_can_not_be_meant_is_refused(data_set, capsys, words):
    annotations = data_set / "annotations.json"
    before = annotations.read_bytes()
    code, document = run(capsys, "--dataset", data_set, *(word.format(set=annotations) for word in words))
    assert code == 2
    assert document["findings"][0]["fix"]
    assert annotations.read_bytes() == before


def test_a_page_that_can_not_be_written_is_named(data_set, capsys, tmp_path):
    code, document = run(capsys, "--dataset", data_set, "--html", tmp_path)
    assert (code, document["findings"][0]["code"]) == (2, "USAGE_OUTPUT_UNWRITABLE")
