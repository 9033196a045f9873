"""Keep transformers from importing torchvision, which it does as soon as it finds it, needed or not."""

from __future__ import annotations

import sys


def keep_torchvision_out() -> None:
    """Let transformers find no torchvision in this process; call it before importing from transformers or peft.

    Beside a build of torch that it was not made for, torchvision fails on import ("operator torchvision::nms does not exist"),
    and transformers then reports that the model class can't be imported. Nothing here needs it
    (`tests/models/test_load.py`, with a torchvision that fails). A process that has imported torchvision itself is left alone.
    """
    if "torchvision" in sys.modules:
        return
    sys.modules["torchvision"] = None  # type: ignore[assignment]  # Python's own way to say that a module is not there
    try:
        from transformers.utils.import_utils import is_torchvision_available, is_torchvision_v2_available

        for is_available in (is_torchvision_available, is_torchvision_v2_available):
            # transformers asks once and keeps the answer.
            is_available.cache_clear()
            is_available()
    finally:
        del sys.modules["torchvision"]
