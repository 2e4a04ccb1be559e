"""The published numbers of the Dyck experiments, to stand beside ours (Li 2025, Tables 3.1 to 3.5 and 3.16)."""

from __future__ import annotations

__all__ = ["DIVERSITY", "ERRORS", "FORCED", "WITHOUT", "WITH_VERIFIER"]

# Table 3.1: share completed right from error-inducing prefixes after erasing B tokens.
FORCED = {"nucleus 0.9": 0.331, "greedy": 0.334, "B=1": 0.366, "B=2": 0.438, "B=4": 0.591, "B=8": 0.790}

# Table 3.2: the same with backtracking; "quota,stride".
WITH_VERIFIER = {
    "1,2": 0.421, "1,4": 0.500, "1,6": 0.604, "2,2": 0.457, "2,4": 0.634, "2,6": 0.762, "4,2": 0.518, "4,4": 0.762,
    "4,6": 0.921,
}  # fmt: skip

# Tables 3.3 and 3.16: errors among 10 000 fresh prompts, mean and standard error over five repetitions.
ERRORS = {
    "baseline 0.9": (240.0, 5.177),
    "trained 0.9": (179.4, 1.020),
    "no argmax 0.9": (245.8, 8.658),
    "baseline 1.0": (461.8, 8.304),
    "trained 1.0": (200.0, 3.225),
}

# Table 3.4: backtracks, and share of the rejected strings completed right without them (nucleus 0.9, greedy).
WITHOUT = {
    "1,2": (163, 0.313, 0.344), "1,4": (163, 0.337, 0.319), "1,6": (163, 0.331, 0.288), "2,2": (311, 0.347, 0.328),
    "2,4": (297, 0.357, 0.349), "2,6": (286, 0.374, 0.373), "4,2": (600, 0.371, 0.353), "4,4": (532, 0.419, 0.404),
    "4,6": (489, 0.509, 0.523),
}  # fmt: skip

# Table 3.5: distinct completions among ten, mean and standard deviation over 100 prompts.
DIVERSITY = {"trained 1.0": (5.52, 3.28), "baseline 0.9": (5.47, 3.06), "baseline 1.0": (5.84, 3.29)}
