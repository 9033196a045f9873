#!/usr/bin/env python3
"""Find every fault that can be known before launch: the same as `tao-runtime preflight`, with the same arguments."""

import sys

from tao_runtime.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["preflight", *sys.argv[1:]]))
