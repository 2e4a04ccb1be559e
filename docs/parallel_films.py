"""Films on the pages of two worlds: spins under samplers, and a translation that is refined pass by pass."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import sandlab as sl
from sandlab.decoding.parallel.films import RefinementFilm, SpinFilm
from sandlab.decoding.parallel.refine import IterativeRefinement
from sandlab.decoding.parallel.samplers import KGibbs
from sandlab.decoding.parallel.site_models import CliqueSites
from sandlab.learning.parallel.refinement import RefinementLoss
from sandlab.models.parallel.encoder_decoder import EncoderDecoder

SPINS = (
    "The ten spins of Figure 4.3 under 6-Gibbs, from the mode in which the clique (the first four spins) is all minus. "
    "The framed spins were just drawn together. Most steps leave the clique where it is; it crosses when three or four "
    "of its spins are drawn at once."
)
REFINEMENT = (
    "A small model translates one sentence in four passes, after 300 steps of training on ambiguous pairs. It starts "
    "from random words; words that changed are shaded, repeats are red, and words that were put back are grey."
)


def spin_film(steps: int = 12) -> bytes:
    """6-Gibbs on a clique of four spins among ten, J = 5 and fields 5."""
    model = CliqueSites(sl.worlds.IsingClique(10, 4, 5.0, 5.0, 5.0))
    trace = KGibbs(6).run(model, torch.zeros(1, 10, dtype=torch.long), steps, rng=sl.rng(2))
    film = SpinFilm(trace, clique=4, columns=5)
    film.size = (3.6, 2.0)
    return _gif(film)


def refinement_film(steps: int = 300) -> bytes:
    """The sentence, of 64, whose answer changed in the most passes."""
    world = sl.worlds.ToyTranslation(longest=6)
    with sl.models.seeded(0):
        model = EncoderDecoder(world.vocab, world.source_length, world.target_length, layers=2, width=64)
    how = {"batch_size": 32, "lr": 3e-3, "warmup": min(50, steps), "schedule": "linear", "progress": False}
    sl.learning.train(model, world, steps=steps, objective=RefinementLoss(world.vocab), rng=sl.rng(0), **how)
    source = world.sample(64, rng=sl.rng(1)).inputs
    refined = IterativeRefinement(4).translate(model.eval(), source, rng=sl.rng(2))
    return _gif(RefinementFilm(world, source, refined, row=int(refined.passes.argmax())))


def _gif(film: Any) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        return film.save(Path(folder) / "film.gif", fps=1).read_bytes()


FILMS: dict[tuple[str, str], tuple[str, Callable[[], bytes]]] = {
    ("worlds", "ising-clique"): (SPINS, spin_film),
    ("worlds", "toy-translation"): (REFINEMENT, refinement_film),
}
"""(kind, name of the page) → caption, and how the film is made."""
