#!/usr/bin/env python3
"""Turn results.json into a parquet of failures: the same as `tao-runtime gaps`, with the same arguments."""

import sys

try:
    from tao_runtime.cli.main import main
except ModuleNotFoundError as error:
    if error.name != "tao_runtime":
        raise
    print(f"tao-runtime is not installed for {sys.executable}; use the Python that it is installed for.", file=sys.stderr)
    sys.exit(5)

if __name__ == "__main__":
    sys.exit(main(["gaps", *sys.argv[1:]]))
