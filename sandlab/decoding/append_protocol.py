"""The published test-case experiment on any local causal language model."""

from __future__ import annotations

import string
from dataclasses import dataclass, field
from typing import Any

import torch

from sandlab.decoding._session.session import Generations
from sandlab.decoding.decoders.backtracking import Backtracking
from sandlab.decoding.decoders.base import Decoder
from sandlab.decoding.decoders.blocks import BlockBestOfN
from sandlab.decoding.decoders.sampling import Nucleus
from sandlab.decoding.generators.hugging_face import LanguageModel
from sandlab.decoding.verifiers.base import Verifier
from sandlab.decoding.verifiers.trained import ProbeVerifier, TrainedProbe, last_features, train_probe
from sandlab.errors import BadInput, integer, require
from sandlab.random import rng
from sandlab.worlds.verifier.append_cases import OOD_NAMES
from sandlab.worlds.verifier.append_checking import CaseError, find_error, score_cases

__all__ = ["AppendProtocol", "AppendReport", "append_prompt"]

TRAINING_NAMES = ("ovs", "cyk", "mcl", "heh", "fgu", "knk", "zmf")
Strings = list[list[int]]


def append_prompt(name: str, *, rng: torch.Generator, cases: int = 8) -> str:
    """The prompt of the source: a function of two numbers with its test cases, then list append called `name`."""
    pairs = torch.randint(1, 10, (cases, 2), generator=rng).tolist()
    shown = "\n".join(f"assert f({i}, {j}) == {i + j}" for i, j in pairs)
    ask = f"List {cases} test cases of the above function {{}}, one in each line:\n"
    first = f"def f(a, b):\n    return a + b\n\n{ask.format('f')}{shown}\n"
    second = f"def {name}(l, item):\n    assert type(l) is list\n    l.append(item)\n    return l\n\n{ask.format(name)}"
    return f"{first}\n{second}"


@dataclass(frozen=True)
class Labelled:
    """Prompts with beginnings of their answers, and for each whether its last token is an error (0) or not (1)."""

    strings: Strings
    labels: list[int]

    def add(self, prompt: list[int], answer: list[int], place: int, label: int) -> None:
        self.strings.append([*prompt, *answer[: place + 1]])
        self.labels.append(label)


@dataclass(frozen=True)
class AppendReport:
    """What the protocol found.

    validation            accuracy of the verifier on strings held out; errors: wrong completions that it learnt from
    accuracy, queries     by decoding: distinct correct test cases over those requested, and all queries to the model
    """

    validation: float
    errors: int
    accuracy: dict[str, float]
    queries: dict[str, int]


@dataclass(frozen=True)
class AppendProtocol:
    """Test cases of list append as in the source, for any Hugging Face model in a local folder or in memory.

    >>> AppendProtocol(layer=27).run(load_language_model("CodeLlama-7b"))

    Completions of functions with the training names are searched for errors; a probe on the activation of one layer
    learns the first wrong token against an earlier one, another the end of a line with an error against the end of the
    line before. Then functions with other names are completed by nucleus sampling, by tokenwise rejection with
    backtracking, and by block best-of-n: n candidates for each line, of which the probe of lines keeps the best.
    Botta, Li et al. 2025 (CodeLlama-7B, layer 27 of 31).

    layer        which hidden state the verifier reads: 0 are the embeddings; None: the last but one in eight of all
    misleading   names that contradict the function instead of random ones
    names        functions; completions: of each; searched: completions that are searched for errors
    max_new      tokens of a completion
    candidates   n of block best-of-n, one decoding for each; decoders: more of them, asked with the probe of tokens
    """

    layer: int | None = None
    misleading: bool = False
    names: int = 10
    completions: int = 10
    searched: int = 700
    cases: int = 8
    max_new: int = 384
    top_p: float = 0.95
    temperature: float = 1.0
    quota: int = 4
    stride: int = 4
    threshold: float = 0.1
    probe_layers: int = 1
    batch: int = 20
    seed: int = 0
    candidates: tuple[int, ...] = (2, 4, 8)
    decoders: dict[str, Decoder] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("names", "completions", "searched", "cases", "max_new", "batch"):
            integer(name, getattr(self, name), low=1)

    def run(self, model: LanguageModel) -> AppendReport:
        """Find errors, train the verifiers, decode with and without them, and score what was written."""
        point = f"hidden.{self._layer(model)}"
        tokens, lines = self.find_errors(model)
        probe = self.train(model, point, tokens)
        guide = ProbeVerifier(model.generator, point, probe.network)
        ways: dict[str, Decoder] = {
            "nucleus sampling": Nucleus(**self._warp),
            "backtracking": Backtracking(**self._warp, quota=self.quota, stride=self.stride, threshold=self.threshold),
            **self.decoders,
        }
        scores = {name: self.score(model, decoder, guide) for name, decoder in ways.items()}
        if self.candidates:
            judge = ProbeVerifier(model.generator, point, self.train(model, point, lines).network)
            for n in self.candidates:
                blocks = BlockBestOfN(**self._warp, candidates=n, separator=_newline(model), blocks=self.cases)
                scores[f"block best of {n}"] = self.score(model, blocks, judge)
        accuracy = {name: each[0] for name, each in scores.items()}
        queries = {name: each[1] for name, each in scores.items()}
        return AppendReport(probe.validation_accuracy, tokens.labels.count(0), accuracy, queries)

    @property
    def _warp(self) -> dict[str, Any]:
        return {"temperature": self.temperature, "top_p": self.top_p}

    def find_errors(self, model: LanguageModel) -> tuple[Labelled, Labelled]:
        """Strings with 0 (an error) or 1, for a verifier of tokens and one of lines.

        Tokens: the first wrong one, and any before it. Lines: the end of the one with the error, and of the one before.
        """
        source, newline = rng(self.seed, "training prompts"), _newline(model)
        names = [TRAINING_NAMES[index % len(TRAINING_NAMES)] for index in range(self.searched)]
        tokens, lines = Labelled([], []), Labelled([], [])
        prompts, answers, _ = self._complete(model, names, Nucleus(**self._warp), None, "training")
        for name, prompt, answer in zip(names, prompts, answers):
            cut = self._first_error(model, name, answer)
            end = len(answer) if cut is None else cut
            if end:
                tokens.add(prompt, answer, int(torch.randint(end, (1,), generator=source)), 1)
            if cut is None:
                continue
            tokens.add(prompt, answer, cut, 0)
            ends = [place for place, token in enumerate(answer) if token == newline]
            # Before the first line stands the prompt, which ends with a newline, too.
            lines.add(prompt, answer, max((place for place in ends if place < cut), default=-1), 1)
            for place in [place for place in ends if place >= cut][:1]:
                lines.add(prompt, answer, place, 0)
        return tokens, lines

    def train(self, model: LanguageModel, point: str, found: Labelled) -> TrainedProbe:
        """A probe of one activation that tells the strings with an error from the others."""
        labels = found.labels
        if len(set(labels)) < 2:
            raise BadInput(
                f"{labels.count(0)} errors and {labels.count(1)} correct strings among {self.searched} completions: "
                "search more of them"
            )
        features = last_features(model.generator, found.strings, [point], batch=8)[point]
        truth = torch.tensor(labels, device=features.device)
        return train_probe(features, truth, rng=rng(self.seed, "probe"), layers=self.probe_layers)

    def score(self, model: LanguageModel, decoder: Decoder, guide: Verifier | None) -> tuple[float, int]:
        """Distinct correct test cases over those requested, and queries."""
        chosen = self._test_names()
        names = [name for name in chosen for _ in range(self.completions)]
        _, answers, queries = self._complete(model, names, decoder, guide, "test")
        texts: dict[str, list[str]] = {name: [] for name in chosen}
        for name, answer in zip(names, answers):
            texts[name].append(model.decode(answer))
        return score_cases(texts, self.cases).accuracy, queries

    def _complete(
        self, model: LanguageModel, names: list[str], decoder: Decoder, guide: Verifier | None, stream: str
    ) -> tuple[Strings, Strings, int]:
        source = rng(self.seed, stream, "prompts")
        prompts = [model.encode(append_prompt(name, rng=source, cases=self.cases)) for name in names]
        answers: Strings = []
        queries, keys = 0, rng(self.seed, stream, type(decoder).__name__)
        for begin in range(0, len(prompts), self.batch):
            part = prompts[begin : begin + self.batch]
            done: Generations = decoder.generate(
                model.generator, part, max_new=self.max_new, verifier=guide, eos=model.ends, rng=keys
            )
            answers += [done.generated(row) for row in range(len(done))]
            queries += done.total("oracle_calls")
        return prompts, answers, queries

    def _first_error(self, model: LanguageModel, name: str, answer: list[int]) -> int | None:
        """The token that holds the first wrong character; None if there is no error."""
        error = find_error(model.decode(answer), name, self.cases, lenient=True)
        if error is None or error[1] is CaseError.EXTRA_CONTENT_AFTER_TASK_COMPLETION:
            return None
        sizes = (len(model.decode(answer[: cut + 1])) for cut in range(len(answer)))
        return next((cut for cut, size in enumerate(sizes) if size > error[0]), max(len(answer) - 1, 0))

    def _test_names(self) -> list[str]:
        if self.misleading:
            require(self.names <= len(OOD_NAMES), "names", self.names, f"at most {len(OOD_NAMES)} misleading ones")
            return list(OOD_NAMES[: self.names])
        source = rng(self.seed, "names")
        found: list[str] = []
        while len(found) < self.names:
            letters = torch.randint(26, (3,), generator=source).tolist()
            name = "".join(string.ascii_lowercase[letter] for letter in letters)
            if name not in (*TRAINING_NAMES, *OOD_NAMES, *found):
                found.append(name)
        return found

    def _layer(self, model: LanguageModel) -> int:
        layers = int(getattr(model.generator, "model").config.num_hidden_layers)  # noqa: B009
        chosen = layers - layers // 8 if self.layer is None else self.layer
        require(0 <= chosen <= layers, "layer", chosen, f"between 0 and {layers}")
        return chosen


def _newline(model: LanguageModel) -> int:
    """The token of the end of a line."""
    return int(model.tokenizer("a\n", add_special_tokens=False).input_ids[-1])
