#!/usr/bin/env python3
"""Turn results.json into a parquet of failures: the same as `tao-runtime gaps`, with the same arguments."""

import sys

from tao_runtime.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["gaps", *sys.argv[1:]]))
