"""What the studies of this chapter share."""

from __future__ import annotations

SOURCE = "Liu 2024 (thesis, CMU-ML-24-110)"
TWO = ("2x3|1", "1x3|2", "1x2|3")
