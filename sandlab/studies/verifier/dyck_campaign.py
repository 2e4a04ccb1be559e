"""One job for every table of the Dyck experiments: train the model once, decode in all ways, return the counts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch

from sandlab.decoding._session.session import Generations
from sandlab.decoding.decoders.backtracking import Backtracking, rejected_prefixes
from sandlab.decoding.decoders.base import Decoder
from sandlab.decoding.decoders.sampling import Greedy, Sampling
from sandlab.decoding.verifiers.base import LanguageVerifier, RandomVerifier, Verifier
from sandlab.decoding.verifiers.trained import TrainedProbe, last_features, train_probe
from sandlab.learning._engine.precision import computing
from sandlab.random import rng
from sandlab.studies.verifier.dyck_model import (
    LENGTH,
    TOTAL,
    DyckModel,
    Errors,
    Prompts,
    Writer,
    fit_verifier,
    harvest,
    pretrain,
    whole_words,
)

SMALL = DyckModel()
QUOTAS, STRIDES, CUTS = (1, 2, 4), (2, 4, 6), (1, 2, 4, 8)
TOP_PS = (0.9, 1.0)


@dataclass(frozen=True)
class Campaign:
    """The model, and how many prompts each experiment uses.

    harvested       prompts completed at most to find errors, of which
    for_verifier    train the verifier, and
    prefixes        are the error-inducing prefixes that are completed again
    repetitions     of those completions; rounds: of the completions of
    unseen          fresh prompts; diverse: prompts completed ten times
    points          points of the picture; shuffles: its labellings at random
    probe_steps     steps of each probe of the table; splits: how often the linear one is validated
    """

    model: DyckModel = SMALL
    seed: int = 0
    device: str = "cpu"
    harvested: int = 20_000
    for_verifier: int = 235
    prefixes: int = 164
    unseen: int = 400
    repetitions: int = 5
    rounds: int = 5
    diverse: int = 40
    points: int = 400
    probe_steps: int = 200
    splits: int = 4
    shuffles: int = 100


@dataclass(frozen=True)
class Way:
    """A decoder and what verifies its prefixes: a probe of the model itself, another verifier, or nothing."""

    decoder: Decoder
    probe: TrainedProbe | None = None
    verifier: Verifier | None = None

    def complete(self, writer: Writer, prompts: Prompts, seed: tuple[Any, ...], trace: bool = False) -> Generations:
        return writer.complete(self.decoder, prompts, seed, probe=self.probe, verifier=self.verifier, trace=trace)


def campaign(config: Campaign) -> dict[str, Any]:
    """Train a model and measure everything on it. On a GPU factors of products are rounded to 11 bits (TF32)."""
    with computing("tf32", torch.device(config.device)):
        model, report = pretrain(config.model, config.seed, config.device)
        return {"pretraining": report} | examine(Writer(model), config)


def examine(writer: Writer, config: Campaign) -> dict[str, Any]:
    """Everything that is measured on one model."""
    wanted, batch = config.for_verifier + config.prefixes, max(2000, config.unseen)
    errors, tried = harvest(writer, wanted, config.seed, config.harvested, batch)
    kept = min(config.for_verifier, len(errors.wrong) // 2)
    training = Errors(errors.wrong[:kept], errors.correct[:kept])
    prefixes = Prompts(errors.inducing.strings[kept : kept + config.prefixes])
    probe = fit_verifier(writer, training, config.seed)
    return {
        "errors harvested": len(errors.wrong),
        "prompts harvested": tried,
        "prefixes": len(prefixes),
        "alarms": _false_alarms(writer, probe, config),
        "probe": _probe_report(writer, training, config),
        "forced": _forced(writer, prefixes, config),
        "tables": _quota_tables(writer, prefixes, probe, config),
        "unseen": _unseen(writer, training, probe, config),
        "diversity": _diversity(writer, probe, config),
        "picture": _picture(writer, training, config),
    }


def _false_alarms(writer: Writer, probe: TrainedProbe, config: Campaign, words: int = 500) -> list[float]:
    """Share of correct unfamiliar prefixes of 25, 26, … 32 brackets that the probe rejects."""
    whole = whole_words(words, rng(config.seed, "alarms", device=config.device))
    strings = [word[: brackets + 1] for brackets in range(25, LENGTH + 1) for word in whole]
    features = last_features(writer.generator(), strings, ["ln_final"])["ln_final"]
    rejected = probe.network.score(features.float()) < 0.5
    return rejected.double().view(-1, words).mean(1).tolist()


def _probe_report(writer: Writer, errors: Errors, config: Campaign) -> dict[str, Any]:
    """Validation accuracy over several splits, by layer, and by depth of the verifier."""
    names = [f"layers.{layer}.resid_post" for layer in range(config.model.layers)]
    strings = errors.wrong + errors.correct
    labels = torch.tensor([0] * len(errors.wrong) + [1] * len(errors.correct), device=writer.device)
    features = last_features(writer.generator(), strings, ["embed", *names, "ln_final"])

    @lru_cache
    def accuracy(point: str, layers: int, split: int) -> float:
        source = rng(config.seed, "split", split)
        found = train_probe(features[point], labels, rng=source, layers=layers, steps=config.probe_steps)
        return found.validation_accuracy

    return {
        "validation": [accuracy("ln_final", 1, split) for split in range(config.splits)],
        "layers": {point: [accuracy(point, 1, split) for split in range(2)] for point in features},
        "depths": {depth: [accuracy("ln_final", depth, split) for split in range(2)] for depth in (1, 2, 4)},
    }


def _forced(writer: Writer, prefixes: Prompts, config: Campaign) -> dict[str, list[float]]:
    """Erase the last B tokens of an error-inducing prefix once, then sample: accuracy per repetition."""
    every = prefixes * config.repetitions
    cuts = {"nucleus 0.9": 0} | {f"B={cut}": cut for cut in CUTS}
    strings = [string for cut in cuts.values() for string in every.cut(cut).strings]
    sampled = writer.right(writer.complete(Sampling(top_p=0.9), Prompts(strings), (config.seed, "forced")))
    greedy = writer.right(writer.complete(Greedy(), every, (config.seed, "forced")))
    parts = dict(zip(cuts, sampled.split(len(every)))) | {"greedy": greedy}
    return {name: _by_repetition(part, config).mean(1).tolist() for name, part in parts.items()}


def _by_repetition(values: torch.Tensor, config: Campaign) -> torch.Tensor:
    """Rows of all repetitions, one repetition after another → (repetition, row)."""
    return values.double().view(config.repetitions, -1)


def _quota_tables(writer: Writer, prefixes: Prompts, probe: TrainedProbe, config: Campaign) -> dict[str, Any]:
    """Backtracking from error-inducing prefixes by quota and stride; and completions of what was rejected, without."""
    found: dict[str, Any] = {}
    rejected: dict[str, list[list[int]]] = {}
    every = prefixes * config.repetitions
    for quota in QUOTAS:
        for stride in STRIDES:
            way = Way(Backtracking(top_p=0.9, quota=quota, stride=stride, keep_prompt=1), probe)
            done = way.complete(writer, every, (config.seed, "quota"), trace=True)
            found[cell := f"{quota},{stride}"] = {
                "accuracy": _by_repetition(writer.right(done), config).mean(1).tolist(),
                "backtracks": _by_repetition(done.counters["backtracks"], config).sum(1).tolist(),
            }
            # The strings rejected in the first repetition are enough: hundreds in each cell.
            rejected[cell] = rejected_prefixes(done, every.strings[: len(prefixes)])
    for name, decoder in (("without", Sampling(top_p=0.9)), ("without, greedy", Greedy())):
        for cell, share in _going_on(writer, rejected, decoder, config).items():
            found[cell][name] = share
    return found


def _going_on(
    writer: Writer, cells: dict[str, list[list[int]]], decoder: Decoder, config: Campaign
) -> dict[str, float]:
    """Share of each cell's strings that become words when they are completed without backtracking.

    A string that has ended, or has no room left, is its own completion.
    """
    strings = [string for rows in cells.values() for string in rows]
    over = torch.tensor([len(string) >= TOTAL or string[-1] == writer.world.end_token for string in strings])
    tokens = torch.tensor([string + [0] * (TOTAL - len(string)) for string in strings]).view(-1, TOTAL)
    right = writer.world.contains(tokens, torch.tensor([len(string) for string in strings]))
    if not bool(over.all()):
        rest = Prompts([string for string, ended in zip(strings, over.tolist()) if not ended])
        right[~over] = writer.right(writer.complete(decoder, rest, (config.seed, "alone"))).cpu()
    parts = right.double().split([len(rows) for rows in cells.values()])
    return {cell: float(part.mean()) for cell, part in zip(cells, parts)}


def _ways(writer: Writer, training: Errors, probe: TrainedProbe, seed: int) -> dict[str, Way]:
    """Every way to complete fresh prompts.

    "whole words": the verifier whose correct strings have complete words among them, one for four prefixes; without
    them it knows no string of 32 brackets and may reject each.
    """
    words = whole_words(max(len(training.correct) // 4, 1), rng(seed, "whole words", device=writer.device))
    more = Errors(training.wrong, training.correct + [word[:-1] for word in words])
    informed = fit_verifier(writer, more, seed)
    exact, random = LanguageVerifier(writer.world), RandomVerifier(seed)
    ways = {"greedy": Way(Greedy())}
    for top_p in TOP_PS:
        full = Backtracking(top_p=top_p, quota=4, stride=4)
        ways[f"baseline {top_p}"] = Way(Sampling(top_p=top_p))
        ways[f"no argmax {top_p}"] = Way(Backtracking(top_p=top_p, quota=4, stride=4, redo="none"), probe)
        ways[f"random {top_p}"] = Way(full, verifier=random)
        ways[f"trained {top_p}"] = Way(full, probe)
        ways[f"whole words {top_p}"] = Way(full, informed)
        ways[f"exact {top_p}"] = Way(full, verifier=exact)
    ways["checked before 0.9"] = Way(Backtracking(top_p=0.9, quota=4, stride=4, check="before"), probe)
    return ways


def _unseen(writer: Writer, training: Errors, probe: TrainedProbe, config: Campaign) -> dict[str, Any]:
    """Errors on fresh prompts by way and round; what the remaining errors are.

    All ways complete the same prompts with the same random numbers. Rounds are decoded together, as many as make ten
    thousand prompts.
    """
    ways = _ways(writer, training, probe, config.seed)
    found: dict[str, Any] = {name: {"errors": [], "queries": [], "written": [], "backtracks": []} for name in ways}
    mistakes: dict[str, list[dict[str, Any]]] = {"trained 0.9": [], "checked before 0.9": []}
    together = max(1, min(config.rounds, 10_000 // config.unseen))
    for first in range(0, config.rounds, together):
        count = min(together, config.rounds - first) * config.unseen
        prompts = Prompts.drawn(count, rng(config.seed, "unseen", first, device=config.device))
        for name, way in ways.items():
            done = way.complete(writer, prompts, (config.seed, "unseen", first))
            wrong = ~writer.right(done)
            written = done.lengths - done.starts + done.counters["tokens_erased"]
            counts = (wrong, done.counters["oracle_calls"], written, done.counters["backtracks"])
            for key, values in zip(("errors", "queries", "written", "backtracks"), counts):
                found[name][key] += values.long().view(-1, config.unseen).sum(1).tolist()
            if name in mistakes:
                mistakes[name] += _mistakes(writer, done, wrong)
    return {"ways": found, "mistakes": mistakes, "prompts": config.unseen}


def _mistakes(writer: Writer, done: Generations, wrong: torch.Tensor) -> list[dict[str, Any]]:
    """What was written at the first error of each wrong completion, and what the model thought of it."""
    rows = wrong.nonzero().squeeze(1)
    if not len(rows):
        return []
    place, kind = writer.world.errors(done.tokens[rows], done.lengths[rows])
    here = torch.arange(len(rows), device=writer.device)
    tokens = done.tokens[rows]
    generator = writer.generator()
    generator.start(len(rows), TOTAL)
    law = generator.next_logprobs(tokens, place, here).exp()
    best, letter = law.max(1)
    written = tokens.gather(1, place.unsqueeze(1)).squeeze(1)
    chance = law.gather(1, written.unsqueeze(1)).squeeze(1)
    left = done.counters["quota_left"][rows]
    columns = (tokens, place, kind, written, chance, letter, best, left)
    letters = writer.world.letters
    return [
        {
            "kind": kind,
            "prefix": "".join(letters[token] for token in string[:place]),
            "token": letters[written],
            "probability": chance,
            "best": letters[letter],
            "best probability": best,
            "quota left": left,
        }
        for string, place, kind, written, chance, letter, best, left in zip(*(each.tolist() for each in columns))
    ]


def _diversity(writer: Writer, probe: TrainedProbe, config: Campaign) -> dict[str, dict[str, list[int]]]:
    """Distinct completions among ten, for each prompt of 16 to 31 and of 25 to 31 brackets."""
    lows = (16, 25)
    drawn = [Prompts.drawn(config.diverse, rng(config.seed, "diverse", device=config.device), low=low) for low in lows]
    tenfold = Prompts([string for prompts in drawn for string in prompts.strings for _ in range(10)])
    ways = {
        "trained 1.0": Way(Backtracking(quota=4, stride=4), probe),
        "exact 1.0": Way(Backtracking(quota=4, stride=4), verifier=LanguageVerifier(writer.world)),
        "baseline 0.9": Way(Sampling(top_p=0.9)),
        "baseline 1.0": Way(Sampling()),
    }
    found: dict[str, dict[str, list[int]]] = {f"{low} to 31": {} for low in lows}
    for name, way in ways.items():
        done = way.complete(writer, tenfold, (config.seed, "diverse"))
        strings = [tuple(row[:end]) for row, end in zip(done.tokens.tolist(), done.lengths.tolist())]
        counts = [len(set(strings[place : place + 10])) for place in range(0, len(strings), 10)]
        for part, each in enumerate(found.values()):
            each[name] = counts[part * config.diverse : (part + 1) * config.diverse]
    return found


def _picture(writer: Writer, errors: Errors, config: Campaign) -> dict[str, Any]:
    """Two dimensions (t-SNE) of the last layer at wrong and correct prefixes, and how clustered the errors are."""
    from sklearn.manifold import TSNE
    from sklearn.metrics import pairwise_distances, silhouette_samples
    from threadpoolctl import threadpool_limits

    half = min(config.points // 2, len(errors.wrong))
    strings = errors.wrong[:half] + errors.correct[:half]
    labels = np.array([0] * half + [1] * half)
    features = last_features(writer.generator(), strings, ["ln_final"])["ln_final"].float().cpu().numpy()
    # Perplexity 30 is the usual choice. One thread: the picture then depends on nothing else on the machine.
    with threadpool_limits(limits=1):
        places = TSNE(perplexity=min(30, half - 1), random_state=config.seed, init="pca").fit_transform(features)
    distances = pairwise_distances(places.astype(np.float64))

    def silhouette(labelling: np.ndarray) -> float:
        return float(silhouette_samples(distances, labelling, metric="precomputed")[labelling == 0].mean())

    chance = np.random.default_rng(config.seed)
    shuffled = [silhouette(chance.permutation(labels)) for _ in range(config.shuffles)]
    return {"places": places, "labels": labels, "silhouette": silhouette(labels), "shuffled": shuffled}
