"""The film on the page of hidden Markov models: a circle of models with the same one-token predictions."""

from __future__ import annotations

import tempfile
from pathlib import Path

from sandlab.lenses.hmm.orbit_film import OrbitFilm

ORBIT = (
    "The model printed in eq. 2.47 of the source and its rotations about the all-ones vector. Every angle is another "
    "HMM; predictions of one token from another never change, those of two tokens from one do. At 2π/3 the rotation "
    "is a permutation of the hidden states."
)


def orbit_film(frames: int = 37) -> bytes:
    """The film as a GIF."""
    with tempfile.TemporaryDirectory() as folder:
        return OrbitFilm(frames=frames).save(Path(folder) / "orbit.gif").read_bytes()
