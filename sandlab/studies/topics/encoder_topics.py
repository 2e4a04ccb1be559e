"""Encoders of text hold the topics of their words: embeddings are more alike and attention is higher within topics.

**Set-up.** The source looks at pretrained encoders (Bert, Albert, Bart, Electra, Roberta, and Bert with random weights)
on Wikipedia. Here the encoder is trained with masked words on a stand-in, `PseudoWiki` (overlapping topics, Zipf's law,
stop words), or on a text of one's own: `sandlab run topics/encoder-topics --set text=FILE`. Its control has the
same weights before training. The rest is the published protocol: LDA on the documents; for each topic the likeliest
⌊θn⌋ + 1 words, stop words left out, a word of several topics only where it is likeliest (Table 2.3) or in all of them
(Table 2.4); averages over pairs of different words; attention multiplied by N/100. Local checkpoints go through the
same pipeline with `load_encoder` and `topic_report`.

Quotients of averages are ill-defined where the average over different topics is about zero, as for embeddings drawn
around zero. What is asked for is therefore same − 1.05 · different > 0, which says the same as "a ratio above 1.05"
for positive averages. The published ratios near 1.000 for random Bert need embeddings with a common non-zero mean;
the control here has cosines near zero instead.

Table 2.5, same-topic pairs against the pairs that occur together most often, is shown and not asserted: on made-up
documents nothing but topics makes words occur together.

Chosen after a look at results: LDA's settings (plain counts or tf-idf, 3 or 10 passes, 2000 or 4000 documents of 64 or
64 to 256 words) were tried on how pure the topics that it finds are, as the specification asks, before an encoder was
looked at. The purity in the table is therefore no test of LDA; the claims about encoders were not tuned.

Quick: LDA's topics are pure to 74 %, and attention ratios are 1.22, 1.17 and 1.11 on average, as asked; but seeds
differ so much (in three of six the ratio stays below 1.05 at some threshold) that the claims on attention stay open.

Full: 4 layers of width 256 on 100 topics and 10 000 words, 6000 steps of 32 windows; the specification has width 512
(factor 2), 30 000 words (factor 3) and 50 000 steps (factor 8). The published encoders have 12 layers of width 768.

What was learnt (full, five seeds, one H200, 2026-11-18): embeddings of words of one topic are more alike (cosine ratios
of 1.7 to 1.8), but attention is not higher within topics (ratios of 0.83 to 0.98). This says little about attention:
from 4000 documents LDA finds lists that share a true topic for only 23 % of their words, where the specification
wants 70 %, so that these lists hardly are topics, and nine words of three of them form no blocks. The control is flat
(attention ratios of 0.9999 to 1.0002, mean cosines within 0.002 of zero: the table), though its claim is not judged in
full, since it is refused where attention has not become more topical.

More documents do not help (20 000: 22 %). What makes topics hard to find is that a word belongs to as many of them
(`sparsity` times their number: 5 for 1 in quick), and a document mixes as many (`concentration` times their number: 10
for 2), as there are: with both divided by five, 12 000 documents give 58 % and 40 000 give 59 %; with `concentration` a
tenth, 20 000 give 61 %. A hundred topics of this kind are not found as the specification asks; that purity was all
that was looked at.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from matplotlib.figure import Figure

from sandlab.figures import COLOURS, heatmap, new
from sandlab.learning.experiment import Experiment, Runs, Training
from sandlab.lenses.topics.report import cosines
from sandlab.models.topics.encoder import MaskedEncoderConfig
from sandlab.studies.claims import Mean, NotMeasured
from sandlab.studies.study import Lab, Rows, Study
from sandlab.studies.topics import _shared as shared
from sandlab.studies.topics._encoders import (
    ENCODERS,
    MEASURES,
    MODES,
    SHARES,
    Corpus,
    Known,
    Read,
    ReportJob,
    corpus,
    read,
    world,
)

WORDS = ("frog", "toad", "lizard", "mozart", "beethoven", "schubert", "algebra", "arithmetic", "calculus")


TRAINING = Training(1500, 16, 3e-3, warmup=75, evals=4, eval_examples=64, precision="tf32")


@dataclass(frozen=True)
class Settings:
    """The documents, the encoder and its training.

    text        a text file or a folder of them; empty: made-up documents
    size        words of the vocabulary; topics: of the documents and of LDA
    documents   for LDA (made-up ones); read: how many of them attention is read on
    shares      θ: of the vocabulary, for each topic; below 1 / size a topic has one word, and no pairs
    """

    text: str = ""
    size: int = 3000
    topics: int = 20
    layers: int = 2
    heads: int = 4
    width: int = 64
    length: int = 64
    training: Training = TRAINING
    seeds: int = 3
    documents: int = 4000
    read: int = 200
    shares: tuple[float, ...] = SHARES


QUICK = Settings(seeds=6)
study = Study(
    "topics/encoder-topics",
    title="In an encoder of made-up documents embeddings are more alike within topics; attention does not show it",
    source=shared.SOURCE,
    at="Figure 2.3, Tables 2.3, 2.4 and 2.5",
    quick=QUICK,
    full=Settings(
        size=10_000,
        topics=100,
        layers=4,
        heads=8,
        width=256,
        length=128,
        training=replace(TRAINING, steps=6000, batch_size=32, lr=1e-3, warmup=300),
        seeds=5,
        documents=4000,
        read=300,
    ),
    null=replace(QUICK, training=replace(TRAINING, lr=0.0, steps=4, warmup=0)),
)


@dataclass(frozen=True)
class Results:
    """What the encoders hold.

    reports    encoder → (seed, mode, share, measure, same or different)
    pairs      (seed, share, 4): attention and cosine of same-topic pairs, then of pairs that occur together most often
    counts     number of pairs in one topic, for each share
    nine       cosines (seed, 9, 9) of three words of three topics, and their names
    purity     share of the words of LDA's topics that share a true one, mean over θ (made-up documents only)
    loss       final held-out losses
    """

    reports: dict[str, np.ndarray]
    pairs: np.ndarray
    counts: np.ndarray
    nine: np.ndarray
    names: tuple[str, ...]
    purity: float
    loss: np.ndarray
    shares: tuple[float, ...] = SHARES

    def excess(self, measure: str, mode: str = MODES[0]) -> np.ndarray:
        """same − 1.05 · different; the smallest over shares, of each seed."""
        found = self.reports["trained"][:, MODES.index(mode), :, MEASURES.index(measure)]
        return (found[..., 0] - 1.05 * found[..., 1]).min(1)

    def ratios(self, encoder: str) -> np.ndarray:
        """(seed, mode, share, measure): same / different"""
        return self.reports[encoder][..., 0] / self.reports[encoder][..., 1]


def experiment(settings: Settings) -> Experiment:
    """The encoder on its documents."""
    source = world(settings.text, settings.size, settings.topics, settings.length)
    model = MaskedEncoderConfig(
        vocab=source.outputs,
        length=settings.length,
        layers=settings.layers,
        heads=settings.heads,
        width=settings.width,
        marked=source.marked,
    )
    return Experiment(source, model, settings.training, settings.seeds)


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    trained = experiment(settings)
    runs = lab.train(trained, label="encoders", weights=True)
    texts = Corpus(trained.world, settings.topics, settings.documents, settings.shares)
    (known,) = lab.map(corpus, [texts], label="LDA")
    found = {name: reports(name, trained, runs, texts, known, settings.read, lab) for name in ENCODERS}
    numbers = known.nine(WORDS)
    return Results(
        {name: np.stack([each.report for each in part]) for name, part in found.items()},
        pairs=np.stack([each.pairs for each in found["trained"]]),
        counts=known.pair_counts(),
        nine=np.stack([cosines(each.table[numbers]) for each in found["trained"]]),
        names=tuple(known.names[number] for number in numbers),
        purity=known.purity,
        loss=runs.metrics["loss"][:, -1],
        shares=settings.shares,
    )


def reports(
    name: str, trained: Experiment, runs: Runs, texts: Corpus, known: Known, count: int, lab: Lab
) -> list[Read]:
    """What each seed's encoder holds, with its trained weights or with those before training."""
    weights = (runs.weights or {}) if name == "trained" else {}
    jobs = [ReportJob(trained, texts, count, seed, name == "trained") for seed in trained.seed_list]
    own = [{key: value[index] for key, value in weights.items()} for index in range(len(jobs))]
    return lab.map(read, jobs, given=[(known, each) for each in own], label=f"reports, {name}")


@study.claim(Mean(above=0.0), at="Table 2.3", paper="ratios 1.11 to 7.7")
def embeddings_alike(results: Results) -> np.ndarray:
    """Embeddings of words of one topic are more alike than those of different topics, at every threshold.

    Cosine: same − 1.05 · different; the smallest over thresholds, one topic per word.
    """
    return results.excess("cosine")


@study.claim(Mean(above=0.0), at="Table 2.3", paper="ratios 1.13 to 8.1")
def inner_products_larger(results: Results) -> np.ndarray:
    """So are their inner products larger.

    Inner product: same − 1.05 · different; the smallest over thresholds, one topic per word.
    """
    return results.excess("dot")


@study.claim(Mean(above=0.0), at="Table 2.3", paper="ratios 1.22 to 2.14")
def attention_higher(results: Results) -> np.ndarray:
    """Attention is higher within topics, at every threshold.

    Attention · N/100: same − 1.05 · different; the smallest over thresholds, one topic per word.
    """
    return results.excess("attention")


@study.claim(Mean(above=0.05), at="Table 2.3", paper="0.9994 to 1.0001 for random weights")
def training_makes_it(results: Results) -> np.ndarray:
    """The untrained encoder shows nothing of it.

    Attention ratio of the trained encoder − that of the same encoder before training, mean over thresholds.
    """
    gap = results.ratios("trained") - results.ratios("untrained")
    return gap[:, 0, :, MEASURES.index("attention")].mean(1)


@study.claim(Mean(below=1.0), at="Table 2.3", paper="0.998 to 1.002")
def control_is_flat(results: Results) -> np.ndarray:
    """In the untrained encoder attention is the same within topics and between them, and no embeddings are alike.

    Larger of |attention ratio − 1|/0.02 and |mean cosine|/0.02, over thresholds and kinds of pairs, one topic per
    word; refused where training changed nothing.
    """
    if training_makes_it(results).mean() <= 0:
        raise NotMeasured("training changed nothing: there is nothing to be a control of")
    attention = np.abs(results.ratios("untrained")[:, 0, :, MEASURES.index("attention")] - 1).max(1)
    cosine = np.abs(results.reports["untrained"][:, 0, :, MEASURES.index("cosine")]).max((1, 2))
    return np.maximum(attention, cosine) / 0.02


@study.claim(Mean(below=0.0), at="Table 2.3", paper="−0.07 to −0.19")
def clearest_for_few_words(results: Results) -> np.ndarray:
    """Attention is most topical for the fewest and likeliest words.

    Attention ratio at the largest θ − that at the smallest, one topic per word.
    """
    found = results.ratios("trained")[:, 0, :, MEASURES.index("attention")]
    return found[:, -1] - found[:, 0]


@study.claim(Mean(above=0.5), at="Tables 2.3 and 2.4", paper="42 of 45 cells")
def several_topics_blur(results: Results) -> np.ndarray:
    """When words may have several topics, same-topic pairs stand out less.

    Share of the nine cells (threshold, measure) whose excess of same over different topics is smaller in Table 2.4.
    """
    found = results.reports["trained"]
    excess = found[..., 0] - found[..., 1]
    return (excess[:, 1] < excess[:, 0]).mean((1, 2))


@study.claim(Mean(above=0.0), at="Figure 2.3", paper="three blocks")
def nine_words(results: Results) -> np.ndarray:
    """Three words of each of three topics form three blocks.

    Mean cosine within a group (without a word and itself) − mean between groups.
    """
    group = np.repeat(np.arange(3), 3)
    same, other = group[:, None] == group, ~np.eye(9, dtype=bool)
    return results.nine[:, same & other].mean(1) - results.nine[:, ~same].mean(1)


@study.table
def tables(results: Results) -> dict[str, Rows]:
    found = {}
    for mode, name in enumerate(("table 2.3, one topic per word", "table 2.4, several topics per word")):
        found[name] = [
            {"encoder": encoder, "θ": share, **_cells(results.reports[encoder][:, mode, index].mean(0))}
            for encoder in ENCODERS
            for index, share in enumerate(results.shares)
        ]
    columns = ("attention, same topic", "cosine, same topic", "attention, frequent", "cosine, frequent")
    found["table 2.5, frequent pairs"] = [
        {"θ": share, "pairs": int(count), **dict(zip(columns, row.tolist()))}
        for share, count, row in zip(results.shares, results.counts, results.pairs.mean(0))
    ]
    found["documents"] = [{"purity of LDA's topics": results.purity, "loss": float(results.loss.mean())}]
    return found


def _cells(means: np.ndarray) -> dict[str, float]:
    """(measure, same or different) as named cells."""
    cells: dict[str, float] = {}
    for measure, (same, different) in zip(MEASURES, means.tolist()):
        cells |= {f"{measure}, same": same, f"{measure}, different": different, f"{measure}, ratio": same / different}
    return cells


@study.figure
def words(results: Results) -> Figure:
    figure, (axis,) = new(width=5.0, height=4.2, title="Cosines of nine words of three topics, first seed")
    heatmap(axis, results.nine[0], numbers=True)
    axis.set_xticks(range(9), results.names, rotation=60, ha="right")
    axis.set_yticks(range(9), results.names)
    return figure


@study.figure
def ratios(results: Results) -> Figure:
    figure, axes = new(columns=3, width=3.2, height=3.0, title="Embeddings and attention within topics and across")
    places = np.arange(len(results.shares))
    for column, (axis, measure) in enumerate(zip(axes, MEASURES)):
        for shift, (encoder, kind) in enumerate([(e, k) for e in ENCODERS for k in (0, 1)]):
            values = results.reports[encoder][:, 0, :, column, kind]
            label = f"{encoder}, {('same', 'different')[kind]}"
            axis.bar(
                places + 0.2 * (shift - 1.5),
                values.mean(0),
                0.18,
                yerr=values.std(0),
                color=COLOURS[shift],
                label=label,
            )
        axis.set_xticks(places, [str(share) for share in results.shares])
        axis.set(title=measure, xlabel="share of words per topic, θ")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    axes[0].set_ylabel("mean over pairs of words")
    return figure
