"""What the translation studies share: trained models, how they are decoded, and what is measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from sandlab.decoding.parallel.beam import BeamSearch
from sandlab.decoding.parallel.refine import IterativeRefinement
from sandlab.learning.experiment import Experiment, Runs
from sandlab.lenses.parallel.bleu_score import bleu
from sandlab.lenses.parallel.stuttering import stutter_rate
from sandlab.models.parallel.encoder_decoder import EncoderDecoder
from sandlab.random import rng
from sandlab.studies.study import Lab
from sandlab.worlds.parallel.translation import ToyTranslation

METRICS = ("valid", "stutter", "stuttering pairs", "bleu", "passes")
PART = 256
"""Sentences that are decoded at once."""


@dataclass(frozen=True)
class Judged:
    """One trained model under several decoders; the seed's test sentences are its own."""

    experiment: Experiment
    seed: int
    decoders: tuple[IterativeRefinement | BeamSearch, ...]
    sentences: int
    device: str = "cpu"


def prepared(model: nn.Module, device: str) -> EncoderDecoder:
    """A trained model, ready to translate."""
    assert isinstance(model, EncoderDecoder)
    return model.to(device).eval()


def judge_decoders(job: Judged, model: nn.Module) -> np.ndarray:
    """(decoder, metric): share of valid translations, repeats (before they are dropped), BLEU, decoder passes."""
    world = job.experiment.world
    assert isinstance(world, ToyTranslation)
    ready = prepared(model, job.device)
    stream = rng(job.seed, "test sentences", device=job.device)
    batch = world.sample(job.sentences, rng=stream)
    return np.array([_measure(ready, world, batch.inputs, batch.targets, decoder, stream) for decoder in job.decoders])


def _measure(
    model: EncoderDecoder, world: ToyTranslation, source: Tensor, target: Tensor,
    decoder: IterativeRefinement | BeamSearch, stream: torch.Generator,
) -> list[float]:  # fmt: skip
    answers, kept, passes = [], [], []
    for start in range(0, len(source), PART):
        part = source[start : start + PART]
        if isinstance(decoder, BeamSearch):
            found = decoder.translate(model, part)
            answers.append(found.tokens)
            kept.append(found.tokens)
            passes += (found.tokens != 0).sum(1).tolist()
        else:
            refined = decoder.translate(model, part, rng=stream)
            answers.append(refined.tokens)
            kept.append(refined.kept)
            passes += refined.passes.tolist()
    tokens, raw = torch.cat(answers), torch.cat(kept)
    rate = stutter_rate(raw, target)
    texts = [[world.render(row) for row in each.cpu()] for each in (tokens, target)]
    valid = float(world.valid(source, tokens).double().mean())
    return [valid, rate.sequences, rate.pairs, bleu(*texts), float(np.mean(passes))]


def judged(
    lab: Lab, experiment: Experiment, runs: Runs, decoders: Sequence[IterativeRefinement | BeamSearch], sentences: int
) -> np.ndarray:
    """(seed, decoder, metric) of all seeds of an experiment trained with weights."""
    jobs = [Judged(experiment, seed, tuple(decoders), sentences, lab.device) for seed in runs.seeds]
    models = [runs.model(experiment.model, place) for place in range(len(runs))]
    return np.stack(lab.map(judge_decoders, jobs, given=models, label="decoding"))
