"""Arguments that `preflight` and `data` share: which data set, and which rules count."""

from __future__ import annotations

from tao_runtime.cli.output import Parser


def add_dataset_arguments(parser: Parser) -> None:
    """Add the arguments that name a data set and choose rules."""
    parser.add_argument("--annotations", metavar="FILE", help="JSON array, JSON lines or Parquet")
    parser.add_argument("--media-dir", metavar="DIR", help="folder that media paths in the annotations start from")
    parser.add_argument("--dataset", metavar="ROOT", help="data set root: ROOT/annotations.json, media in ROOT")
    parser.add_argument(
        "--no-media", action="store_false", dest="with_media", help="structure and fields only; media are reported as skipped"
    )
    for name, effect in (("--only", "report nothing but this"), ("--skip", "leave this out")):
        parser.add_argument(
            name, action="append", default=[], metavar="CODE", help=f"{effect}: a rule (D12) or a code; repeatable"
        )
