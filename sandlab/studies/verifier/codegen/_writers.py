"""Which models can write at all: a difference between two decodings says nothing of models that write nothing right."""

from __future__ import annotations

import numpy as np

from sandlab.studies.verifier.codegen._code_runs import MAIN, Cases

SOME = 0.1  # of the requested test cases, distinct and correct


def of_writers(results: Cases, values: np.ndarray, otherwise: float) -> np.ndarray:
    """The values of models that write a tenth of what is requested with backtracking, `otherwise` for the others."""
    return np.where(results.accuracy(MAIN) > SOME, values, otherwise)
