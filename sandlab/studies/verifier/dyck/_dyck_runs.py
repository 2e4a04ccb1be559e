"""Language models of Dyck words, the errors they make on unfamiliar words, and how they complete prompts."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import torch
from matplotlib.axes import Axes
from torch import Tensor

from sandlab.decoding._session.session import Generations
from sandlab.decoding.decoders.backtracking import Backtracking, rejected_prefixes
from sandlab.decoding.decoders.base import Decoder
from sandlab.decoding.decoders.sampling import Greedy, Sampling
from sandlab.learning.experiment import Experiment, Snapshot, Training
from sandlab.learning.schedules import PowerDecay
from sandlab.learning.stopping import EarlyStop
from sandlab.models.transformer import TransformerConfig
from sandlab.random import rng
from sandlab.studies.study import Lab
from sandlab.studies.verifier._decoding_runs import (
    Decoding,
    DecodingSettings,
    ErrorSet,
    ModelJob,
    Models,
    Presets,
    Writer,
    table,
    untrained,
)
from sandlab.worlds.base import Batch
from sandlab.worlds.dyck.language import Dyck

LENGTH = 32
LIMIT = LENGTH + 2  # with START and END
FAMILIAR = Dyck(types=2, depth=None, length=LENGTH, words="complete", opening=0.5, type_probs=(0.2, 0.8))
UNFAMILIAR = replace(FAMILIAR, type_probs=(0.8, 0.2))
QUOTAS, STRIDES, ERASED = (1, 2, 4), (2, 4, 6), (1, 2, 4, 8)

# Table 3.1 of the thesis: share of error-inducing prefixes completed correctly after erasing B tokens.
FORCED = {"nucleus 0.9": 0.331, "greedy": 0.334, "B=1": 0.366, "B=2": 0.438, "B=4": 0.591, "B=8": 0.790}
# Table 3.2: the same with backtracking; "quota,stride".
WITH_VERIFIER = {
    "1,2": 0.421, "1,4": 0.500, "1,6": 0.604, "2,2": 0.457, "2,4": 0.634, "2,6": 0.762, "4,2": 0.518, "4,4": 0.762,
    "4,6": 0.921,
}  # fmt: skip
# Tables 3.3 and 3.16: errors among 10 000 fresh prompts, mean and standard error over five repetitions.
ERRORS = {
    "baseline 0.9": "240.0 ± 5.2", "trained 0.9": "179.4 ± 1.0", "no argmax 0.9": "245.8 ± 8.7",
    "baseline 1.0": "461.8 ± 8.3", "trained 1.0": "200.0 ± 3.2",
}  # fmt: skip


@torch.no_grad()
def closing_error(now: Snapshot) -> dict[str, Tensor]:
    """Share of closing brackets that are not the most probable of all tokens: "closing error"."""
    right, total = torch.zeros(()), 0
    for start in range(0, len(now.batch), 1000):
        part = now.batch[start : start + 1000]
        closing = is_closing(part)
        right = right + (now.model(part.inputs).argmax(-1) == part.targets)[..., closing].sum(-1).double().cpu()
        total += int(closing.sum())
    return {"closing error": 1 - right / total}


def is_closing(batch: Batch) -> Tensor:
    """Where the next token is a closing bracket."""
    return (batch.targets < 2 * FAMILIAR.types) & (batch.targets % 2 == 1)


SMALL = Experiment(
    world=FAMILIAR,
    model=TransformerConfig(vocab=FAMILIAR.vocab, length=LIMIT, layers=2, heads=4, width=64),
    training=Training(
        steps=1200, batch_size=32, lr=2e-3, weight_decay=0.1, schedule="linear", warmup=100, clip=1.0, ema=0.995,
        evals=1, eval_examples=200, precision="tf32",
    ),
    seeds=4,
)  # fmt: skip
# The published model: blocks as in Llama, one pass over 300 000 words in batches of 32, the first of the best averaged
# weights. Closing brackets are all right long before the end: the last weights make far fewer errors elsewhere.
PUBLISHED = Experiment(
    world=FAMILIAR,
    model=TransformerConfig(
        vocab=FAMILIAR.vocab, length=LIMIT, layers=6, heads=8, width=512, positions="rotary", norm_kind="rms",
        gated=True, mlp="silu", mlp_width=1024, bias=False,
    ),
    training=Training(
        steps=9375, batch_size=32, lr=3e-4, weight_decay=0.1, schedule="linear", warmup=100,
        ema=PowerDecay(0.999, 0.67, start=100), evals=93, eval_examples=10_000, keep="ema/closing error",
        # Nothing can be better than no error, and the first of equals is kept.
        stop=EarlyStop("ema/closing error", below=1e-9), precision="tf32",
    ),
    seeds=8,
    probes=(closing_error,),
)  # fmt: skip


@dataclass(frozen=True)
class Settings(DecodingSettings):
    """The language models, and how many strings each measurement uses.

    searched       prompts completed at most to find errors, of which
    for_verifier   train the verifiers, and
    prefixes       give prefixes right before an error, completed again `repetitions` times
    fresh, rounds  fresh prompts, and how often that many are completed
    diverse        prompts completed ten times
    points         of the picture of activations; shuffles: its random labellings
    probe_steps    of each probe in the tables; splits: how often the linear one is validated
    """

    searched: int = 20_000
    for_verifier: int = 235
    prefixes: int = 164
    repetitions: int = 5
    fresh: int = 400
    rounds: int = 5
    diverse: int = 40
    points: int = 400
    shuffles: int = 100
    probe_steps: int = 200
    splits: int = 4


QUICK = Settings(SMALL)
FULL = Settings(
    PUBLISHED, searched=200_000, for_verifier=441, fresh=10_000, rounds=1, diverse=100, shuffles=50, splits=5
)
PRESETS = Presets(quick=QUICK, full=FULL, null=replace(QUICK, model=untrained(SMALL)))
Job: TypeAlias = ModelJob[Settings]


def train_models(settings: Settings, lab: Lab) -> Models[Settings]:
    """The language models of all seeds, each with its errors; all Dyck studies share them."""
    return Models.train(settings, lab, UNFAMILIAR, LIMIT, find_errors)


def draw_prompts(n: int, source: torch.Generator, low: int = 25, high: int = 31) -> list[list[int]]:
    """START and the first 25 to 31 brackets of unfamiliar words."""
    tokens, lengths = UNFAMILIAR.prompts(n, low, high, rng=source)
    return [row[:cut] for row, cut in zip(tokens.tolist(), lengths.tolist())]


def whole_words(n: int, source: torch.Generator) -> list[list[int]]:
    """START, an unfamiliar word, END."""
    return [[*word, UNFAMILIAR.end_token] for word in draw_prompts(n, source, LENGTH, LENGTH)]


def is_word(done: Generations) -> Tensor:
    """Which rows are START, 32 balanced brackets, END."""
    return UNFAMILIAR.contains(done.tokens, done.lengths)


def find_errors(job: Job, writer: Writer) -> ErrorSet:
    """Complete unfamiliar prompts with nucleus 0.9 until enough errors are found, and train verifiers on some of them.

    Correct strings are prefixes of fresh words with the same lengths. The verifier "whole words" has seen complete
    words too, one for four prefixes: without them it knows no string of 32 brackets and may reject every one.
    """
    settings, source = job.settings, rng(job.seed, "errors", device=job.device)
    wrong: list[list[int]] = []
    prompts = 0
    while len(wrong) < settings.for_verifier + settings.prefixes and prompts < settings.searched:
        drawn = draw_prompts(min(max(2000, settings.fresh), settings.searched - prompts), source)
        done = writer.complete(drawn, Sampling(top_p=0.9), "errors", prompts)
        first = UNFAMILIAR.errors(done.tokens, done.lengths)[0].tolist()
        wrong += [done.string(row)[: index + 1] for row, index in enumerate(first) if index >= 0]
        prompts += len(drawn)
    used = min(settings.for_verifier, len(wrong) // 2)
    words = whole_words(used + used // 4 + 1, rng(job.seed, "correct", device=job.device))
    correct = [word[: len(string)] for word, string in zip(words, wrong[:used])]
    strings, labels = wrong[:used] + correct, [0] * used + [1] * used
    more = [word[:-1] for word in words[used:]]
    features = writer.features(strings + more, "ln_final")["ln_final"]
    verifiers = {
        "trained": writer.fit(features[: len(strings)], labels, "ln_final"),
        "whole words": writer.fit(features, labels + [1] * len(more), "ln_final"),
    }
    prefixes = [string[:-1] for string in wrong[used : used + settings.prefixes]]
    return ErrorSet(strings, labels, verifiers, prompts, prefixes)


def decodings() -> dict[str, Decoding]:
    """How fresh prompts are completed: "name top-p"."""
    found = {"greedy": Decoding(top_p=0.0)}
    for top_p in (0.9, 1.0):
        guided = Decoding(top_p, quota=4)
        found[f"baseline {top_p}"] = Decoding(top_p)
        found[f"no argmax {top_p}"] = replace(guided, redo="none")
        found |= {f"{name} {top_p}": replace(guided, verifier=name) for name in ("random", "trained", "whole words")}
        found[f"exact {top_p}"] = replace(guided, verifier="exact")
    found["checked before 0.9"] = Decoding(0.9, quota=4, check="before")
    return found


DECODINGS = decodings()


def fresh_completions(job: Job, writer: Writer) -> Iterator[tuple[Generations, Tensor]]:
    """Completions of fresh prompts, and which are wrong; every decoding has the same prompts and random numbers.

    Rounds are decoded together, as many as make ten thousand prompts.
    """
    settings = job.settings
    together = max(1, min(settings.rounds, 10_000 // settings.fresh))
    for first in range(0, settings.rounds, together):
        count = min(together, settings.rounds - first) * settings.fresh
        prompts = draw_prompts(count, rng(job.seed, "fresh", first, device=job.device))
        done = writer.complete(prompts, job.decoding.decoder(), "fresh", first, verifier=job.decoding.consulted)
        yield done, ~is_word(done)


def count_fresh(job: Job, writer: Writer) -> dict[str, float]:
    """Fresh prompts, those completed wrongly, queries, tokens written (kept or erased) and backtracks."""
    found: Counter[str] = Counter()
    for done, wrong in fresh_completions(job, writer):
        found.update(prompts=len(done), wrong=int(wrong.sum()), queries=done.total("oracle_calls"))
        found.update(written=int((done.lengths - done.starts).sum()) + done.total("tokens_erased"))
        found.update(backtracks=done.total("backtracks"))
    return dict(found)


@dataclass(frozen=True)
class Fresh:
    """Completions of fresh prompts: name of the decoding → name of the count → counts of each model."""

    counts: dict[str, dict[str, np.ndarray]]

    @classmethod
    def completed(cls, models: Models[Settings], names: Sequence[str]) -> Fresh:
        found = models.decode(count_fresh, [DECODINGS[name] for name in names], "fresh prompts")
        return cls({name: table(each) for name, each in zip(names, found)})

    def share(self, name: str, count: str = "wrong") -> np.ndarray:
        """Share of fresh prompts completed wrongly (or another count per prompt), for each model."""
        return self.counts[name][count] / self.counts[name]["prompts"]


def top_p_bars(axis: Axes, fresh: Fresh, names: dict[str, str]) -> None:
    """Share completed wrongly at both values of top-p, with a dot for each model; name → label."""
    for shift, top_p in ((-0.2, 0.9), (0.2, 1.0)):
        shares = [fresh.share(f"{name} {top_p}") for name in names]
        axis.bar(np.arange(len(names)) + shift, [share.mean() for share in shares], 0.38, label=f"top-p {top_p}")
        for index, share in enumerate(shares):
            axis.plot([index + shift] * len(share), share, "k.", markersize=3)
    axis.set(xticks=range(len(names)), ylabel="share completed wrongly")
    axis.set_xticklabels(list(names.values()))


def force_backtracking(job: Job, writer: Writer) -> dict[str, float]:
    """Erase the last B tokens of an error-inducing prefix once, then sample: share completed correctly."""
    every = writer.errors.prefixes * job.settings.repetitions
    erased = {"nucleus 0.9": 0} | {f"B={count}": count for count in ERASED}
    cut = [prefix[: max(len(prefix) - count, 1)] for count in erased.values() for prefix in every]
    sampled = is_word(writer.complete(cut, Sampling(top_p=0.9), "forced")).double().view(len(erased), -1).mean(1)
    greedy = is_word(writer.complete(every, Greedy(), "forced")).double().mean()
    return dict(zip(erased, sampled.tolist())) | {"greedy": float(greedy)}


def vary_quota(job: Job, writer: Writer) -> dict[str, float]:
    """Backtracking from error-inducing prefixes; keys are "accuracy 4,6", … for quota 4 and stride 6.

    accuracy          share completed correctly; backtracks: of all prefixes together, per repetition
    without, greedy   share of the rejected strings completed correctly without backtracking, sampled and greedily
    """
    prefixes, repetitions, found = writer.errors.prefixes, job.settings.repetitions, {}
    for quota, stride in itertools.product(QUOTAS, STRIDES):
        decoder = Backtracking(1.0, 0.9, quota, stride, keep_prompt=1)
        done = writer.complete(prefixes * repetitions, decoder, "quota", verifier="trained", trace=True)
        # The strings rejected in the first repetition are enough: hundreds in each cell.
        rejected = rejected_prefixes(done, prefixes)
        found[f"accuracy {quota},{stride}"] = float(is_word(done).double().mean())
        found[f"backtracks {quota},{stride}"] = done.total("backtracks") / repetitions
        found[f"without {quota},{stride}"] = _completed_correctly(writer, rejected, Sampling(top_p=0.9))
        found[f"greedy {quota},{stride}"] = _completed_correctly(writer, rejected, Greedy())
    return found


def _completed_correctly(writer: Writer, strings: list[list[int]], decoder: Decoder) -> float:
    """Share of the strings that become words; one that has ended or has no room left is its own completion."""
    ended = [string for string in strings if len(string) >= LIMIT or string[-1] == UNFAMILIAR.end_token]
    open_ = [string for string in strings if len(string) < LIMIT and string[-1] != UNFAMILIAR.end_token]
    tokens = torch.tensor([string + [0] * (LIMIT - len(string)) for string in ended]).view(-1, LIMIT)
    right = int(UNFAMILIAR.contains(tokens, torch.tensor([len(string) for string in ended], dtype=torch.long)).sum())
    if open_:
        right += int(is_word(writer.complete(open_, decoder, "without")).sum())
    return right / len(strings) if strings else float("nan")
