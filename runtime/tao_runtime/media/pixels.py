"""State how a model's processor scales pixels."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PixelStatistics:
    """Mean and standard deviation of a channel, in units of the full range 0 to 1."""

    mean: tuple[float, float, float] = (0.5, 0.5, 0.5)
    std: tuple[float, float, float] = (0.5, 0.5, 0.5)
