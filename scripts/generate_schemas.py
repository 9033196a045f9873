"""Write schemas, templates, reference pages and manifests from the definitions in runtime/tao_runtime, or check them."""

from __future__ import annotations

import sys
from pathlib import Path

from tao_runtime.bank.generate import GENERATED_ONLY, compare, write_files
from tao_runtime.bank.skills import bank_root
from tao_runtime.cli.output import CommandResult, Parser, print_result, unexpected
from tao_runtime.errors import Finding, TaoError, Where


def main(words: list[str]) -> int:
    """Generate or check; return the exit code, 7 when files differ."""
    parser = Parser(prog="generate_schemas.py", description=__doc__, epilog=f"Generated only: {', '.join(GENERATED_ONLY)}")
    parser.add_argument("--check", action="store_true", help="write nothing; list missing, stale and extra files, exit 7")
    parser.add_argument("--dry-run", action="store_true", help="the same as --check")
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[1], help="repository (default: this one)")
    parser.add_argument("--json", action="store_true", help="print one JSON document on stdout")
    name = "generate schemas"
    try:
        arguments = parser.parse_args(words)
        bank_root(arguments.root)
        written = [] if arguments.check or arguments.dry_run else write_files(arguments.root)
        findings = compare(arguments.root)
        text = "\n".join(f"wrote {path}" for path in written) or ("" if findings else "nothing differs")
        result = CommandResult(name, {"written": written, "differing": [f.where.file for f in findings]}, findings, text)
    except TaoError as error:
        result = CommandResult(name, None, error.findings)
    except OSError as error:
        what = f"{error.filename} can't be written: {error.strerror}"
        result = CommandResult(name, None, [Finding("USAGE_OUTPUT_UNWRITABLE", what, Where(file=str(error.filename)))])
    except Exception as error:
        result = CommandResult(name, None, [unexpected(error)])
    return print_result(result, as_json="--json" in words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
