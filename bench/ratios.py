# SPDX-License-Identifier: Apache-2.0
"""Statistics of ratios between runs made in turn."""
import random
import statistics


def interval(ratios: list[float]) -> str:
    """Returns the median, with a 95 % interval from resampling the ratios."""
    draw = random.Random(0)
    medians = sorted(statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(2000))
    return f"{statistics.median(ratios):.3f} ({medians[50]:.3f} to {medians[-51]:.3f})"
