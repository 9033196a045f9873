"""Say how much host memory the trainer's loader will hold: decoded frames for later epochs, and samples prepared ahead."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

# Most that decoded frames are given; a machine with less than four times as much free gives a quarter of it.
MAX_CACHE_BYTES = 2 << 30


@dataclass(frozen=True, slots=True)
class HostPlan:
    """State the loader's memory.

    Attributes:
        frame_bytes: decoded frames of all media files of an epoch.
        cache_bytes: part of them that is kept, at most.
        samples_ahead: samples prepared before they are asked for.
        sample_bytes: the largest sample's pixels.
    """

    frame_bytes: int
    cache_bytes: int
    samples_ahead: int
    sample_bytes: int

    @property
    def total_bytes(self) -> int:
        """Most that both take together."""
        return self.cache_bytes + self.samples_ahead * self.sample_bytes

    @property
    def fits(self) -> bool:
        """Return whether every frame stays in memory, so that nothing is decoded twice."""
        return self.frame_bytes <= self.cache_bytes

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain JSON values."""
        return {
            "total_bytes": self.total_bytes,
            "frame_bytes": self.frame_bytes,
            "frame_cache_bytes": self.cache_bytes,
            "samples_ahead": self.samples_ahead,
            "largest_sample_bytes": self.sample_bytes,
        }


def plan_host(frame_bytes: int, sample_bytes: int, num_workers: int, prefetch_factor: int) -> HostPlan:
    """Plan the loader's memory on a machine with enough cores and memory for what the spec asks.

    Args:
        frame_bytes: decoded frames of all media files.
        sample_bytes: the largest sample.
        num_workers: train.train_policy.dataloader_num_workers.
        prefetch_factor: samples that each worker prepares ahead.
    """
    ahead = max(1, num_workers * prefetch_factor)
    return HostPlan(frame_bytes, min(frame_bytes, MAX_CACHE_BYTES), ahead, sample_bytes)
