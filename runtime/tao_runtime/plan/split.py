"""Choose which records are split off for validation: the same ones for every seed, so that trials can be compared."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence


def held_out_indices(keys: Sequence[str], num_held_out: int) -> frozenset[int]:
    """Choose records by the SHA-256 of their key, so that neither file order nor train.seed decides.

    Records with one key stay on one side as far as the count allows: at most one key is on both sides.

    Args:
        keys: one string a record, its media path where it has media (so that a video is not on both sides).
        num_held_out: records to choose.

    Returns:
        0-based positions of the records chosen for validation.
    """
    digests = [hashlib.sha256(key.encode()).digest() for key in keys]
    by_digest = sorted(range(len(keys)), key=lambda index: (digests[index], index))
    return frozenset(by_digest[:num_held_out])
