"""One job for every table of the Dyck experiments: train the model once, decode in all ways, return the counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from sandlab.decoding.backtracking import Backtracking, rejected_prefixes
from sandlab.decoding.decoder import Decoder
from sandlab.decoding.sampling import Greedy, Sampling
from sandlab.decoding.session import Generations
from sandlab.decoding.trained import TrainedProbe, last_features, train_probe
from sandlab.decoding.verifiers import LanguageVerifier, RandomVerifier
from sandlab.random import rng
from sandlab.studies.verifier.dyck_model import (
    DyckModel,
    Errors,
    Prompts,
    Writer,
    fit_verifier,
    harvest,
    pretrain,
)

SMALL = DyckModel()
QUOTAS, STRIDES, CUTS = (1, 2, 4), (2, 4, 6), (1, 2, 4, 8)


@dataclass(frozen=True)
class Campaign:
    """The model, and how many prompts each experiment uses."""

    model: DyckModel = SMALL
    seed: int = 0
    device: str = "cpu"
    harvested: int = 12_000
    for_verifier: int = 235
    prefixes: int = 164
    unseen: int = 800
    repetitions: int = 5
    diverse: int = 60
    points: int = 400
    probe_steps: int = 400
    shuffles: int = 200


def campaign(config: Campaign) -> dict[str, Any]:
    """Everything that is measured on one model."""
    model, report = pretrain(config.model, config.seed, config.device)
    writer = Writer(model)
    errors = harvest(writer, config.harvested, config.seed)
    kept = min(config.for_verifier, len(errors.wrong) // 2)
    training = Errors(errors.wrong[:kept], errors.correct[:kept])
    prefixes = Prompts(errors.inducing.strings[kept : kept + config.prefixes])
    probe = fit_verifier(writer, training, config.seed)
    found: dict[str, Any] = {
        "pretraining": report,
        "errors harvested": len(errors.wrong),
        "probe": _probe_report(writer, training, probe, config),
        "completion accuracy": _accuracies(writer, config),
        "forced": _forced(writer, prefixes, config),
        "tables": _quota_tables(writer, prefixes, probe, config),
        "unseen": _unseen(writer, probe, config),
        "diversity": _diversity(writer, probe, config),
        "picture": _picture(writer, training, config),
        "prefixes": len(prefixes),
    }
    return found


def _probe_report(writer: Writer, errors: Errors, probe: TrainedProbe, config: Campaign) -> dict[str, Any]:
    """Validation accuracy over several splits, by layer, and by depth of the verifier."""
    names = [f"layers.{layer}.stream" for layer in range(config.model.layers)]
    strings = errors.wrong + errors.correct
    labels = torch.tensor([0] * len(errors.wrong) + [1] * len(errors.correct), device=writer.device)
    features = last_features(writer.generator(), strings, ["embedded", *names, "final"])

    def accuracy(point: str, layers: int, split: int) -> float:
        source = rng(config.seed, "split", split)
        return train_probe(
            features[point], labels, rng=source, layers=layers, steps=config.probe_steps
        ).validation_accuracy

    return {
        "count": probe.count,
        "validation": [accuracy("final", 1, split) for split in range(6)],
        "layers": {point: [accuracy(point, 1, split) for split in range(2)] for point in features},
        "depths": {depth: [accuracy("final", depth, split) for split in range(2)] for depth in (1, 2, 4)},
    }


def _accuracies(writer: Writer, config: Campaign) -> dict[str, float]:
    """Share of unfamiliar prompts completed correctly, by nucleus."""
    prompts = Prompts.drawn(config.unseen, rng(config.seed, "accuracy", device=config.device))
    return {
        name: float(writer.right(writer.complete(decoder, prompts, (config.seed, "accuracy"))).double().mean())
        for name, decoder in (("0.9", Sampling(top_p=0.9)), ("1.0", Sampling()), ("greedy", Greedy()))
    }


def _forced(writer: Writer, prefixes: Prompts, config: Campaign) -> dict[str, list[float]]:
    """Erase the last B tokens of an error-inducing prefix once, then sample: accuracy per repetition."""
    settings: dict[str, tuple[Decoder, int]] = {"nucleus 0.9": (Sampling(top_p=0.9), 0), "greedy": (Greedy(), 0)}
    settings |= {f"B={cut}": (Sampling(top_p=0.9), cut) for cut in CUTS}
    return {
        name: [
            float(
                writer.right(writer.complete(decoder, prefixes.cut(cut), (config.seed, "forced", rep))).double().mean()
            )
            for rep in range(config.repetitions)
        ]
        for name, (decoder, cut) in settings.items()
    }


def _quota_tables(writer: Writer, prefixes: Prompts, probe: TrainedProbe, config: Campaign) -> dict[str, Any]:
    """Backtracking from error-inducing prefixes by quota and stride; and completions of what was rejected, without."""
    found: dict[str, Any] = {}
    for quota in QUOTAS:
        for stride in STRIDES:
            decoder = Backtracking(top_p=0.9, quota=quota, stride=stride, keep_prompt=1)
            right, counts = [], []
            alone: list[float] = []
            greedy: list[float] = []
            for rep in range(config.repetitions):
                done = writer.complete(decoder, prefixes, (config.seed, "quota", rep), probe=probe, trace=True)
                right.append(float(writer.right(done).double().mean()))
                counts.append(done.total("backtracks"))
                # A finished string that was rejected has no continuation of its own.
                places = [string for string in rejected_prefixes(done, prefixes.strings) if string[-1] != 5]
                if rep == 0 and places:
                    rejected = Prompts([string[:33] for string in places])
                    for values, plain in ((alone, Sampling(top_p=0.9)), (greedy, Greedy())):
                        again = writer.complete(plain, rejected, (config.seed, "alone"))
                        values.append(float(writer.right(again).double().mean()))
            found[f"{quota},{stride}"] = {
                "accuracy": right,
                "backtracks": counts,
                "without": float(np.mean(alone)) if alone else float("nan"),
                "without, greedy": float(np.mean(greedy)) if greedy else float("nan"),
            }
    return found


def _unseen(writer: Writer, probe: TrainedProbe, config: Campaign) -> dict[str, Any]:
    """Errors on fresh prompts by nucleus and algorithm, per repetition; what the remaining errors are."""
    exact, random = LanguageVerifier(writer.world), RandomVerifier(config.seed)
    ways: dict[str, tuple[Any, Any, Any]] = {}
    for top_p in (0.9, 1.0):
        full = Backtracking(top_p=top_p, quota=4, stride=4)
        ways[f"baseline {top_p}"] = (Sampling(top_p=top_p), None, None)
        ways[f"trained {top_p}"] = (full, probe, None)
        ways[f"exact {top_p}"] = (full, None, exact)
        ways[f"random {top_p}"] = (full, None, random)
        ways[f"no argmax {top_p}"] = (Backtracking(top_p=top_p, quota=4, stride=4, redo="none"), probe, None)
    ways["checked before 0.9"] = (Backtracking(top_p=0.9, quota=4, stride=4, check="before"), probe, None)
    found: dict[str, Any] = {name: {"errors": [], "queries": [], "evaluations": [], "backtracks": []} for name in ways}
    mistakes: dict[str, list[dict[str, Any]]] = {"trained 0.9": [], "checked before 0.9": []}
    for rep in range(config.repetitions):
        prompts = Prompts.drawn(config.unseen, rng(config.seed, "unseen", rep, device=config.device))
        for name, (decoder, own, verifier) in ways.items():
            done = writer.complete(decoder, prompts, (config.seed, "unseen", rep), probe=own, verifier=verifier)
            wrong = ~writer.right(done)
            found[name]["errors"].append(int(wrong.sum()))
            found[name]["queries"].append(done.total("oracle_calls"))
            written = int((done.lengths - done.starts).sum()) + done.total("tokens_erased")
            found[name]["evaluations"].append(written)
            found[name]["backtracks"].append(done.total("backtracks"))
            if name in mistakes:
                mistakes[name] += _mistakes(writer, done, wrong)
    found["mistakes"] = mistakes
    found["prompts"] = config.unseen
    return found


def _mistakes(writer: Writer, done: Generations, wrong: torch.Tensor) -> list[dict[str, Any]]:
    """What was written at the first error of each wrong completion, and what the model thought of it."""
    rows = wrong.nonzero().squeeze(1)
    if not len(rows):
        return []
    place, kind = writer.world.errors(done.tokens[rows], done.lengths[rows])
    strings = [done.tokens[row, : int(at)].tolist() for row, at in zip(rows.tolist(), place.tolist())]
    generator = writer.generator()
    generator.start(len(strings), 34)
    width = max(map(len, strings))
    tokens = torch.tensor([row + [0] * (width - len(row)) for row in strings], device=writer.device)
    lengths = torch.tensor([len(row) for row in strings], device=writer.device)
    law = generator.next_logprobs(tokens, lengths, torch.arange(len(strings), device=writer.device)).exp()
    written = done.tokens[rows, place]
    best = law.max(1)
    return [
        {
            "kind": int(kind[i]),
            "prefix": writer.world.render(torch.tensor(strings[i])),
            "token": writer.world.letters[int(written[i])],
            "probability": float(law[i, written[i]]),
            "best": writer.world.letters[int(best.indices[i])],
            "best probability": float(best.values[i]),
            "quota left": int(done.counters["quota_left"][rows[i]]),
        }
        for i in range(len(strings))
    ]


def _diversity(writer: Writer, probe: TrainedProbe, config: Campaign) -> dict[str, list[int]]:
    """Distinct completions among ten, for each prompt of 16 to 31 brackets."""
    prompts = Prompts.drawn(config.diverse, rng(config.seed, "diverse", device=config.device), low=16)
    tenfold = Prompts([string for string in prompts.strings for _ in range(10)])
    exact = LanguageVerifier(writer.world)
    ways: dict[str, tuple[Decoder, Any, Any]] = {
        "trained 1.0": (Backtracking(quota=4, stride=4), probe, None),
        "exact 1.0": (Backtracking(quota=4, stride=4), None, exact),
        "baseline 0.9": (Sampling(top_p=0.9), None, None),
        "baseline 1.0": (Sampling(), None, None),
    }
    found = {}
    for name, (decoder, own, verifier) in ways.items():
        done = writer.complete(decoder, tenfold, (config.seed, "diverse"), probe=own, verifier=verifier)
        strings = [tuple(done.string(row)) for row in range(len(tenfold))]
        found[name] = [len(set(strings[place : place + 10])) for place in range(0, len(strings), 10)]
    return found


def _picture(writer: Writer, errors: Errors, config: Campaign) -> dict[str, Any]:
    """Two dimensions (t-SNE) of the last layer at wrong and correct prefixes, and how clustered the errors are."""
    from sklearn.manifold import TSNE
    from sklearn.metrics import silhouette_samples

    half = min(config.points // 2, len(errors.wrong))
    strings = errors.wrong[:half] + errors.correct[:half]
    labels = np.array([0] * half + [1] * half)
    features = last_features(writer.generator(), strings, ["final"])["final"].float().cpu().numpy()
    # The picture depends on the features' scale only through perplexity 30, the usual choice.
    places = TSNE(perplexity=min(30, half - 1), random_state=config.seed, init="pca").fit_transform(features)
    own = float(silhouette_samples(places, labels)[labels == 0].mean())
    chance = np.random.default_rng(config.seed)
    shuffled = []
    for _ in range(config.shuffles):
        mixed = chance.permutation(labels)
        shuffled.append(float(silhouette_samples(places, mixed)[mixed == 0].mean()))
    return {"places": places, "labels": labels, "silhouette": own, "shuffled": shuffled}
