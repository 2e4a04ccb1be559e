"""A constant number of passes: latency of refinement and of autoregressive decoding against the length of the answer.

§4.2.3, "Speed". One sentence at a time on one device, models of the same size with random weights (latency does not
depend on what was learnt), answers of fixed lengths. Refinement with T passes does the same number of passes whatever
the length; the autoregressive model one per token, with and without a cache of keys and values. The source measures
more than twice the median speed and five times the 99th percentile end to end on a TPU, and claims 2 to 3 times.

The units are repeated measurements of the same pair of models in alternation. The null compares the autoregressive
model with itself. Full: the source's six layers of width 512, answers of up to 128 tokens, 15 measurements of each
(first planned: 50, factor 0.3).

**What was learnt** (2026-11-18). Four passes overtake the cached token-by-token decoder before 32 tokens and are about
sixteen times as fast at 64 in full (eight to nine times in quick). The latencies of the full run were measured while
other programs used the same GPU: they are too large, and only ratios within a round can be read from them.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np
import torch
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.decoding.parallel.beam import BeamSearch
from sandlab.decoding.parallel.refine import IterativeRefinement
from sandlab.models.base import seeded
from sandlab.models.parallel.encoder_decoder import EncoderDecoder, EncoderDecoderConfig
from sandlab.random import rng
from sandlab.studies.claims import Exact, Median
from sandlab.studies.parallel import _shared as shared
from sandlab.studies.study import Lab, Rows, Study

DECODERS = ("refinement, T = 1", "refinement, T = 4", "refinement, T = 10", "token by token, cached", "token by token")


@dataclass(frozen=True)
class Settings:
    """Sizes of the model, lengths of the answers, measurements of each; refinement=False times the baseline twice."""

    layers: int = 2
    width: int = 64
    lengths: tuple[int, ...] = (8, 16, 32, 64)
    repeats: int = 15
    refinement: bool = True


QUICK = Settings()
study = Study(
    "parallel/decode-speed",
    title="Refinement takes the same number of passes for every length and overtakes cached token-by-token decoding",
    source=shared.SOURCE,
    at="§4.2.3, Speed",
    quick=QUICK,
    full=Settings(layers=6, width=512, lengths=(8, 16, 32, 64, 128)),
    null=replace(QUICK, refinement=False),
)


@dataclass(frozen=True)
class Timing:
    settings: Settings
    length: int
    device: str


@dataclass(frozen=True)
class Results:
    """seconds[length, decoder, repeat] and passes[length, decoder]."""

    lengths: tuple[int, ...]
    seconds: np.ndarray
    passes: np.ndarray

    def ratio(self, length: int) -> np.ndarray:
        """Cached token-by-token latency over that of four passes, by repeat."""
        place = self.lengths.index(length)
        return self.seconds[place, 3] / self.seconds[place, 1]


def measure(job: Timing) -> tuple[np.ndarray, np.ndarray]:
    """Seconds of each decoder and repeat, in alternation, and decoder passes."""
    how, vocab = job.settings, 256
    sizes = EncoderDecoderConfig(vocab, job.length, job.length, layers=how.layers, width=how.width)
    with seeded(0):
        both = [EncoderDecoder.from_config(replace(sizes, causal=causal)) for causal in (False, True)]
    refine, write = (model.to(job.device).eval() for model in both)
    source = torch.randint(4, vocab, (1, job.length), generator=rng(0)).to(job.device)
    lengths = torch.full((1,), job.length, device=job.device)
    seconds, passes = np.zeros((len(DECODERS), how.repeats)), np.zeros(len(DECODERS))
    for repeat in range(-1, how.repeats):  # the first round warms up
        for place in range(len(DECODERS)):
            start = time.perf_counter()
            passes[place] = _once(place if how.refinement else max(place, 3), refine, write, source, lengths)
            if job.device != "cpu":
                torch.cuda.synchronize()
            if repeat >= 0:
                seconds[place, repeat] = time.perf_counter() - start
    return seconds, passes


def _once(
    place: int, refine: EncoderDecoder, write: EncoderDecoder, source: torch.Tensor, lengths: torch.Tensor
) -> int:
    """One translation; refinement never stops early here, so that T passes are T passes."""
    if place >= 3:
        return BeamSearch(1, cached=place == 3).translate(write, source, length=int(lengths)).passes
    steps = (1, 4, 10)[place]
    stream = rng(0, device=source.device)
    found = IterativeRefinement(steps).translate(refine, source, rng=stream, true_lengths=lengths)
    return int(found.passes)


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    found = lab.map(measure, [Timing(settings, length, lab.device) for length in settings.lengths], label="timing")
    return Results(settings.lengths, np.stack([each[0] for each in found]), np.stack([each[1] for each in found]))


@study.claim(Exact(below=4.5), at="§4.2.3", paper="4 passes instead of 28 to 33")
def passes_do_not_grow(results: Results) -> np.ndarray:
    """Four passes stay at most four passes for every length.

    Decoder passes of refinement with T = 4.
    """
    return results.passes[:, 1]


@study.claim(Exact(equals=1.0, within=0.0), at="§4.2.3", paper="N passes")
def one_pass_per_token(results: Results) -> np.ndarray:
    """Token by token it is one pass each.

    Passes of the cached decoder over the length.
    """
    return results.passes[:, 3] / np.array(results.lengths)


@study.claim(Median(above=1.0), at="§4.2.3", paper="more than 2 times, median")
def faster_from_32(results: Results) -> np.ndarray:
    """At 32 tokens four passes are faster than the cached token-by-token decoder.

    Ratio of latencies in each round.
    """
    return results.ratio(32)


@study.claim(Median(above=2.0), at="§4.2.3", paper="more than 2 times, median")
def twice_as_fast_at_64(results: Results) -> np.ndarray:
    """At 64 tokens more than twice as fast.

    Ratio of latencies in each round.
    """
    return results.ratio(64)


@study.table
def latencies(results: Results) -> Rows:
    return [
        {"length": length, "decoder": name, "median ms": 1000 * float(np.median(results.seconds[i, j])),
         "p99 ms": 1000 * float(np.quantile(results.seconds[i, j], 0.99)), "passes": float(results.passes[i, j])}
        for i, length in enumerate(results.lengths)
        for j, name in enumerate(DECODERS)
    ]  # fmt: skip


@study.figure
def latency(results: Results) -> Figure:
    figure, (axis,) = figures.new(
        width=6.2, height=3.6, title="Latency of one sentence by the length of its translation"
    )
    for place, name in enumerate(DECODERS):
        axis.plot(results.lengths, 1000 * np.median(results.seconds[:, place], -1), marker="o", label=name)
    axis.set(xscale="log", yscale="log", xlabel="tokens of the translation", ylabel="median latency (milliseconds)")
    axis.minorticks_off()
    axis.set_xticks(results.lengths, [str(length) for length in results.lengths])
    axis.legend(fontsize=8)
    return figure
