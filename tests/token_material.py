"""Clips, images and records of mixed kinds: real clips, cuts of them, and clips that ffmpeg makes."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

from PIL import Image

REAL = ("bikes.mp4", "carphone_pristine.mp4", "carphone_distorted.mp4", "bigbuckbunny.mp4")
SIZES = ((64, 64), (320, 180), (176, 144), (90, 160), (641, 359), (48, 400), (1280, 720), (34, 34), (500, 62), (256, 256))
RATES = ("1", "5", "10", "12.5", "15", "24", "30000/1001", "25", "30", "50", "60")
FRAMES = (4, 5, 7, 8, 16, 23, 31, 60, 90, 121, 240)
CODECS = (("libx264", "mp4"), ("mpeg4", "avi"), ("libx264", "mkv"), ("libvpx-vp9", "webm"))
ANSWERS = ("left", "  Yes, it's so.\n", "C", "El coche gira a la izquierda, 左に曲がる 👍", "1234567890 " * 20)
QUESTIONS = ("Which way?", "Don't you see  it?\n\nSay A, B or C.", "¿Qué ves? 看", "x" * 300, "They're 12:05, we've 3.14 <b>")


def make_clip(folder: Path, number: int, clips: Path) -> str:
    """Write video `number` and return its name."""
    if number % 5 == 3:
        name = f"{number}_{REAL[number // 5 % len(REAL)]}"
        shutil.copy(clips / name.partition("_")[2], folder / name)
        return name
    if number % 5 == 4:
        source, name = clips / REAL[number // 5 % len(REAL)], f"cut_{number}.mp4"
        ways = ("-vf select='if(lt(n,9),1,not(mod(n,3)))' -vsync vfr", "-vf scale=96:-2", "-vf transpose=1,scale=64:-2")
        words = ["-ss", f"{number % 3 * 0.4}", "-t", f"{1 + number % 3}", "-i", str(source), *ways[number % 3].split()]
        return ffmpeg(folder / name, *words, "-an", "-preset", "ultrafast")
    width, height = SIZES[number % len(SIZES)]
    codec, suffix = CODECS[number % len(CODECS)]
    even = f"{width + width % 2}x{height + height % 2}"
    source = f"testsrc2=size={even}:rate={RATES[number % len(RATES)]}"
    frames = FRAMES[number // 2 % len(FRAMES)] if width < 1000 else 24
    fast = ("-deadline", "realtime", "-cpu-used", "8") if suffix == "webm" else ()
    words = ("-f", "lavfi", "-i", source, "-frames:v", str(frames), "-c:v", codec, "-pix_fmt", "yuv420p", *fast)
    return ffmpeg(folder / f"made_{number}.{suffix}", *words)


def make_image(folder: Path, number: int) -> str:
    """Write image `number`, some turned by EXIF, and return its name."""
    width, height = SIZES[number % len(SIZES)]
    picture = Image.new("RGB", (width, height), (number % 256, 20, 30))
    name = f"image_{number}.{'jpg' if number % 2 else 'png'}"
    exif = picture.getexif()
    exif[0x0112] = number % 8 + 1
    picture.save(folder / name, exif=exif)
    return name


def make_records(folder: Path, clips: Path, count: int) -> list[dict[str, Any]]:
    """Write media for `count` records of mixed forms and return the records as an annotation file holds them."""
    return [_record(folder, clips, number) for number in range(count)]


def _record(folder: Path, clips: Path, number: int) -> dict[str, Any]:
    question, answer = QUESTIONS[number % len(QUESTIONS)], ANSWERS[number // 2 % len(ANSWERS)]
    videos = [make_clip(folder, number, clips)] if number % 4 else []
    images = [make_image(folder, number)] if number % 4 == 0 or number % 7 == 0 else []
    if number % 9 == 0:
        videos.append(make_clip(folder, 1000 + number, clips))
    record: dict[str, Any] = {"id": f"r{number}", "videos": videos, "images": images, "video_fps": 25}
    if number % 6 == 5:
        parts = [{"type": kind, kind: name} for kind, names in (("video", videos), ("image", images)) for name in names]
        user = {"role": "user", "content": [*parts, {"type": "text", "text": question}]}
        return {"id": f"r{number}", "messages": [user, {"role": "assistant", "content": answer}]}
    tags = "<video>\n" * len(videos) + "<image>" * len(images) if number % 10 else ""
    turns = [{"from": "human", "value": tags + question}, {"from": "gpt", "value": answer}]
    if number % 8 == 1:
        turns += [{"from": "human", "value": "And then?"}, {"from": "gpt", "value": "right"}]
    if number % 13 == 2:
        turns.insert(0, {"from": "system", "value": "Mine."})
    return {**record, "conversations": turns}


def ffmpeg(target: Path, *words: str) -> str:
    """Run ffmpeg and return the name of what it wrote."""
    subprocess.run(["ffmpeg", "-nostdin", "-v", "error", "-y", *words, str(target)], check=True, capture_output=True)
    return target.name
