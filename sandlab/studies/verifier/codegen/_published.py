"""Table 3.13 of the thesis: accuracy and queries of every decoding, with the verifier on layer 27."""

from __future__ import annotations

from sandlab.studies.verifier._decoding_runs import Decoding

# (top-p, temperature) of sampling alone; (stride, τ, top-p, temperature) of backtracking with quota 4; candidates per
# line of block best-of-n, top-p 0.95.
SAMPLING: dict[tuple[float, float], tuple[str, str]] = {
    (0.95, 1.0): ("0.660 ± 0.042", "38231 ± 165"), (0.9, 1.0): ("0.634 ± 0.023", "38393 ± 14"),
    (0.9, 1.2): ("0.630 ± 0.028", "38005 ± 232"), (0.8, 1.2): ("0.627 ± 0.015", "38343 ± 90"),
    (0.95, 1.2): ("0.584 ± 0.027", "36601 ± 535"), (1.0, 0.8): ("0.562 ± 0.021", "36610 ± 669"),
    (0.7, 1.2): ("0.531 ± 0.035", "38400 ± 0"), (0.95, 0.8): ("0.523 ± 0.029", "38386 ± 28"),
    (0.8, 1.0): ("0.511 ± 0.028", "38400 ± 0"), (1.0, 1.0): ("0.504 ± 0.025", "30754 ± 1272"),
    (0.9, 0.8): ("0.466 ± 0.032", "38400 ± 0"), (1.0, 0.6): ("0.399 ± 0.070", "38320 ± 73"),
    (0.7, 1.0): ("0.353 ± 0.021", "38400 ± 0"), (0.8, 0.8): ("0.351 ± 0.039", "38400 ± 0"),
    (0.95, 0.6): ("0.337 ± 0.053", "38400 ± 0"), (0.9, 0.6): ("0.284 ± 0.044", "38400 ± 0"),
    (1.0, 1.2): ("0.269 ± 0.025", "21906 ± 1780"), (0.7, 0.8): ("0.239 ± 0.019", "38400 ± 0"),
    (0.8, 0.6): ("0.212 ± 0.011", "38400 ± 0"), (1.0, 0.4): ("0.207 ± 0.029", "38400 ± 0"),
    (0.95, 0.4): ("0.176 ± 0.013", "38400 ± 0"), (0.9, 0.4): ("0.147 ± 0.013", "38400 ± 0"),
    (0.7, 0.6): ("0.101 ± 0.028", "38400 ± 0"), (1.0, 0.2): ("0.080 ± 0.020", "38400 ± 0"),
    (0.8, 0.4): ("0.074 ± 0.027", "38400 ± 0"), (0.95, 0.2): ("0.057 ± 0.018", "38400 ± 0"),
    (0.9, 0.2): ("0.029 ± 0.015", "38400 ± 0"), (0.7, 0.4): ("0.025 ± 0.016", "38400 ± 0"),
    (0.8, 0.2): ("0.021 ± 0.014", "38400 ± 0"), (0.7, 0.2): ("0.018 ± 0.011", "38400 ± 0"),
    (0.0, 1.0): ("0.013 ± 0.000", "38400 ± 0"),
}  # fmt: skip
BACKTRACKING: dict[tuple[int, float, float, float], tuple[str, str]] = {
    (4, 0.1, 0.95, 1.0): ("0.714 ± 0.011", "39443 ± 235"), (4, 0.5, 0.95, 1.0): ("0.676 ± 0.019", "38555 ± 140"),
    (4, 0.1, 1.0, 1.0): ("0.639 ± 0.061", "31274 ± 1559"), (10, 0.1, 1.0, 1.0): ("0.622 ± 0.046", "32923 ± 1772"),
    (4, 0.5, 1.0, 1.0): ("0.604 ± 0.047", "31091 ± 968"), (10, 0.5, 1.0, 1.0): ("0.604 ± 0.030", "27287 ± 7580"),
    (4, 0.1, 1.0, 1.2): ("0.440 ± 0.026", "24916 ± 954"), (4, 0.5, 1.0, 1.2): ("0.334 ± 0.013", "24217 ± 1214"),
}  # fmt: skip
BEST_OF: dict[int, tuple[str, str]] = {
    2: ("0.684 ± 0.038", "39364 ± 1252"), 4: ("0.623 ± 0.036", "65496 ± 7638"), 8: ("0.559 ± 0.038", "122933 ± 3832"),
}  # fmt: skip
RANDOM_VERIFIER, NO_VERIFIER = 0.663, 0.660  # accuracy, top-p 0.95


def published(decoding: Decoding) -> tuple[str, str]:
    """The published accuracy and queries of a decoding ("" where there are none)."""
    missing, warp = ("", ""), (decoding.top_p, decoding.temperature)
    if decoding.quota:
        found = BACKTRACKING.get((decoding.stride, decoding.threshold, *warp), missing)
        return found if (decoding.quota, decoding.verifier, decoding.redo) == (4, "trained", "argmax") else missing
    return BEST_OF.get(decoding.candidates, missing) if decoding.candidates else SAMPLING.get(warp, missing)
