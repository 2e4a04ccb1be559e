"""Bars of accuracies beside the published ones: the shape that the code-generation studies share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

PUBLISHED = "#b9bcc0"


def bars(axis: Any, names: Sequence[str], values: Sequence[np.ndarray], published: Sequence[float | str]) -> None:
    """One bar for each way with a dot for each model, and a grey one for the published mean (none where it is "")."""
    place = np.arange(len(names))
    printed = [mean(each) for each in published]
    axis.bar(place - 0.2, [value.mean() for value in values], 0.38, label="here")
    axis.bar(place + 0.2, printed, 0.38, color=PUBLISHED, label="published")
    for spot, value in zip(place, values):
        axis.plot([spot - 0.2] * len(value), value, "k.", markersize=3)
    axis.set(xticks=place, ylabel="distinct correct test cases / asked for")
    axis.set_xticklabels(names, fontsize=8)
    # Room for the legend above the highest bar.
    axis.set_ylim(0, 1.2 * max([value.max() for value in values] + [each for each in printed if each == each]))
    axis.legend(loc="upper right", ncol=2)


def mean(text: float | str) -> float:
    """The number before the ± of a published entry."""
    if isinstance(text, float):
        return text
    return float(text.split()[0]) if text else float("nan")
