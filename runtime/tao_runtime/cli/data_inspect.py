"""`tao-runtime data inspect`: say what a data set holds, and show records as the model will see them."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tao_runtime.cli.output import CommandResult, Parser, add_command, positive_int
from tao_runtime.cli.progress import progress_bar
from tao_runtime.cli.set_arguments import named_set

if TYPE_CHECKING:
    from tao_runtime.media.sampling import VisionOptions
    from tao_runtime.report.dataset_page import DatasetView

_SAMPLING = (
    ("--fps", float, "RATE", "frames taken per second"),
    ("--nframes", positive_int, "N", "frames taken from a whole video"),
    ("--total-pixels", positive_int, "N", "pixel budget of one video over all its frames"),
    ("--min-pixels", positive_int, "N", "least pixels of a frame"),
    ("--max-pixels", positive_int, "N", "most pixels of a frame"),
)


def add_word(words: Any) -> None:
    """Add `inspect`."""
    summary = "say what a data set holds; show records as the model will see them"
    parser: Parser = add_command(words, "inspect", summary, _inspect)
    parser.add_argument("--annotations", metavar="FILE", type=Path, help="JSON array, JSON lines, Parquet or tao-vl-reason")
    parser.add_argument("--media-dir", metavar="DIR", type=Path, help="folder that media paths start from")
    parser.add_argument("--dataset", metavar="ROOT", type=Path, help="data set root: ROOT/annotations.json, media in ROOT")
    parser.add_argument("--html", metavar="FILE", type=Path, help="write a page with distributions and a contact sheet")
    parser.add_argument("--limit", metavar="N", type=positive_int, help="look at the first N records only")
    parser.add_argument("--samples", metavar="N", type=positive_int, default=12, help="records shown (default: %(default)s)")
    parser.add_argument("--seed", metavar="N", type=int, default=0, help="of the lot (default: %(default)s)")
    media = parser.add_mutually_exclusive_group()
    media.add_argument("--all-media", action="store_true", help="measure every media file, not a drawn sample of 200")
    media.add_argument("--no-media", action="store_false", dest="with_media", help="records only")
    parser.add_argument("--spec", metavar="FILE", type=Path, help="train spec whose custom.vision says how frames are sampled")
    for option, kind, metavar, text in _SAMPLING:
        parser.add_argument(option, type=kind, metavar=metavar, help=text)


def _inspect(arguments: argparse.Namespace) -> CommandResult:
    from dataclasses import replace
    from datetime import datetime

    from tao_runtime.dataset.inspect import LookOptions, look_over
    from tao_runtime.dataset.inspect_media import MediaLook, media_figures, unusable_findings
    from tao_runtime.dataset.inspect_view import Look, sampling_words, text_of, view_of
    from tao_runtime.dataset.writing import refuse_same_file
    from tao_runtime.environment import cache_dir
    from tao_runtime.media.probe_cache import ProbeCache

    annotations, media_dir = named_set(arguments)
    if arguments.html is not None:
        refuse_same_file(arguments.html, [annotations])
    vision = _vision(arguments)
    options = LookOptions(arguments.limit, arguments.samples, arguments.seed, arguments.all_media)
    why_no_media = _why_no_media(media_dir, with_media=arguments.with_media)
    with progress_bar() as progress, ProbeCache(cache_dir()) as cache:
        look_at = None if media_dir is None or why_no_media else MediaLook(media_dir, vision, cache)
        overview = look_over(annotations, options, progress)
        measured = [] if look_at is None else look_at.measure(overview.media, progress)
        examples = look_at.examples(overview.examples) if look_at is not None and arguments.html is not None else []
    unusable = unusable_findings(measured, str(annotations))
    findings = [*overview.findings, *unusable, *_not_looked(why_no_media, overview.num_media, annotations)]
    figures = None if look_at is None else media_figures(measured)
    look = Look(overview, figures, why_no_media, vision, [f"{replace(one.where, file=None)}: {one.what}" for one in unusable])
    if arguments.html is not None:
        _write_page(arguments.html, view_of(look, examples, arguments.seed, datetime.now().astimezone()))
    data = {
        **overview.to_dict(),
        "media_dir": None if look_at is None else str(media_dir),
        "media": figures,
        "sampling": sampling_words(vision),
        "html": None if arguments.html is None else str(arguments.html),
    }
    text = text_of(look) + (f"\nwrote {arguments.html}\n" if arguments.html is not None else "")
    return CommandResult("data inspect", data, findings, text)


def _vision(arguments: argparse.Namespace) -> VisionOptions:
    """Return the sampling of the spec, or of the options over a spec's defaults."""
    from tao_runtime.config.vision import VisionSection
    from tao_runtime.errors import Finding, TaoError, Where
    from tao_runtime.media.sampling import VisionOptions
    from tao_runtime.spec.build import load_spec

    names = [option.removeprefix("--").replace("-", "_") for option, *_ in _SAMPLING]
    given = {name: value for name in names if (value := getattr(arguments, name)) is not None}
    if arguments.spec is not None:
        if given:
            what = f"--spec and --{next(iter(given)).replace('_', '-')} both say how frames are sampled"
            raise TaoError(Finding("USAGE_ARGUMENTS", what, Where(key="--spec"), "Leave out one of them."))
        return VisionOptions(**load_spec(arguments.spec, "train", []).custom.vision.model_dump())
    if "fps" in given and ("nframes" in given or not 0 < given["fps"] < float("inf")):
        what = "--fps and --nframes exclude each other" if "nframes" in given else f"--fps is {given['fps']:g}, not above 0"
        raise TaoError(Finding("USAGE_ARGUMENTS", what, Where(key="--fps"), "Pass --fps 1, or --nframes 8."))
    defaults = VisionSection().model_dump()
    if "nframes" in given:
        defaults["fps"] = None
    return VisionOptions(**{**defaults, **given})


def _why_no_media(media_dir: Path | None, *, with_media: bool) -> str:
    if not with_media:
        return "--no-media was given"
    if media_dir is None:
        return "no media folder was given"
    return "" if media_dir.is_dir() else f"the media folder {media_dir} does not exist"


def _not_looked(why: str, num_media: int, annotations: Path) -> list[Any]:
    from tao_runtime.errors import Finding, Severity, Where

    if not why or not num_media:
        return []
    what, where = f"media files were not looked at: {why}", Where(file=str(annotations))
    fix = "Pass --media-dir DIR, a folder that is there, and leave out --no-media."
    return [Finding("DATA_MEDIA_NOT_CHECKED", what, where, fix, Severity.SKIPPED, rule="D3")]


def _write_page(path: Path, view: DatasetView) -> None:
    from tao_runtime.errors import Finding, TaoError, Where
    from tao_runtime.files import write_text
    from tao_runtime.report.dataset_page import dataset_page

    try:
        write_text(path, dataset_page(view))
    except OSError as error:
        what = f"{path} can't be written: {error.strerror or error}"
        raise TaoError(Finding("USAGE_OUTPUT_UNWRITABLE", what, Where(file=str(path)), "Choose another --html.")) from None
