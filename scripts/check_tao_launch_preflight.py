#!/usr/bin/env python3
"""Find every fault that can be known before launch: the same as `tao-runtime preflight`, with the same arguments."""

import sys

try:
    from tao_runtime.cli.main import main
except ModuleNotFoundError as error:
    if error.name != "tao_runtime":
        raise
    print(f"tao-runtime is not installed for {sys.executable}; use the Python that it is installed for.", file=sys.stderr)
    sys.exit(5)

if __name__ == "__main__":
    sys.exit(main(["preflight", *sys.argv[1:]]))
