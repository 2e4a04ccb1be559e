"""What backtracking leaves are mostly wrong closing brackets, in all models but one.

Every wrong completion of fresh prompts after backtracking (Q = B = 4, top-p 0.9), read at its first error.

For each: the kind of error, the prefix, the token written and its probability, the most probable token, and what was
left of the quota. Two orders are compared: the verifier is consulted after each sampled token, as the algorithm is
printed, or before each token on the string so far, as the released code does, where greedily rewritten tokens are
checked too.

What to look for: the left panel, kinds of error; the right panel, quota left. Consulted after sampling only, the
verifier never sees the rewritten tokens: it rejects once, four tokens are written greedily, one of them is wrong and
goes unnoticed, so most errors end with quota to spare. The published figure, all errors with quota 0, belongs to the
other order: what is rewritten is verified again, the same tokens are written again, until the quota is gone.

**What was learnt.** At the published size (eight models), 593 errors remain in 80 000 prompts, 396 of them in one
model, which opens a bracket when only closing ones fit. In the seven others 182 of 197 are wrong closing brackets
(published 222 of 225), and in the order of the released code 194 of 243 end with quota 0. The claims of that run were
about all errors together, where the one model decided, and failed. Errors of one model are no independent draws: the
claims take each model's share now.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain

import numpy as np
import torch
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.studies.claims import Mean, NotMeasured
from sandlab.studies.study import Lab, Rows, Study
from sandlab.studies.verifier._decoding_runs import QUERIES, THESIS, Writer
from sandlab.studies.verifier.dyck import _dyck_runs as dyck
from sandlab.worlds.dyck.brackets import BracketError

CLOSING = int(BracketError.INCORRECT_CLOSING_BRACKET)

study = Study(
    "verifier/remaining-errors",
    title="What backtracking leaves are mostly wrong closing brackets, in all models but one",
    source=QUERIES,
    at=f"Dyck experiments ({THESIS}, Figure 3.2)",
    **dyck.PRESETS,
)


@dataclass(frozen=True)
class Mistake:
    """The first error of a completion: what was written after which prefix, and what the model thought of it."""

    kind: int
    prefix: str
    token: str
    probability: float
    best: str
    best_probability: float
    quota_left: int


def describe_errors(job: dyck.Job, writer: Writer) -> list[Mistake]:
    """The first error of every wrong completion of fresh prompts."""
    mistakes: list[Mistake] = []
    letters = dyck.UNFAMILIAR.letters
    for done, wrong in dyck.fresh_completions(job, writer):
        rows = wrong.nonzero().squeeze(1)
        if not len(rows):
            continue
        tokens = done.tokens[rows]
        index, kinds = dyck.UNFAMILIAR.errors(tokens, done.lengths[rows])
        generator = writer.generator()
        generator.start(len(rows), dyck.LIMIT)
        with torch.no_grad():
            probs = generator.next_logprobs(tokens, index, torch.arange(len(rows), device=tokens.device)).exp()
        written = tokens.gather(1, index.unsqueeze(1))
        chosen, best, top = probs.gather(1, written)[:, 0], probs.argmax(1), probs.amax(1)
        columns = (tokens, index, kinds, written[:, 0], chosen, best, top, done.counters["quota_left"][rows])
        mistakes += [
            Mistake(
                kind, "".join(letters[each] for each in string[:end]), letters[token], chance, letters[best], top, left
            )
            for string, end, kind, token, chance, best, top, left in zip(*(column.tolist() for column in columns))
        ]
    return mistakes


@dataclass(frozen=True)
class Results:
    """Errors of each model when the verifier is consulted after each sampled token, or before each token."""

    after: list[list[Mistake]]
    before: list[list[Mistake]]

    @property
    def together(self) -> dict[str, list[Mistake]]:
        """The errors of all models by when the verifier is consulted."""
        named = {"after each sampled token": self.after, "before each token": self.before}
        return {name: list(chain.from_iterable(models)) for name, models in named.items()}


@study.collect
def collect(settings: dyck.Settings, lab: Lab) -> Results:
    orders = [dyck.DECODINGS["trained 0.9"], dyck.DECODINGS["checked before 0.9"]]
    found = dyck.train_models(settings, lab).decode(describe_errors, orders, "remaining errors")
    return Results(*(list(models) for models in found))


def shares(models: list[list[Mistake]], test: Callable[[Mistake], bool]) -> list[float]:
    """Share of a model's errors that pass a test, for each model that has errors left."""
    found = [sum(map(test, each)) / len(each) for each in models if each]
    if not found:
        raise NotMeasured("no model has an error left")
    return found


@study.claim(Mean(above=0.9), source=THESIS, at="Figure 3.2", paper="222 of 225")
def closing(results: Results) -> list[float]:
    """Nearly all remaining errors are closing brackets of the wrong type.

    Share among the errors of backtracking, mean over models.
    """
    return shares(results.after, lambda mistake: mistake.kind == CLOSING)


@study.claim(
    Mean(above=0.9),
    source=THESIS,
    at="Figure 3.2",
    paper="225 of 225",
    note="The rewritten tokens are not verified in this order: an error among them leaves quota to spare.",
)
def quota(results: Results) -> list[float]:
    """They are made when the quota is spent (verifier consulted after each sampled token, as printed).

    Share of errors with quota 0, mean over models.
    """
    return shares(results.after, lambda mistake: mistake.quota_left == 0)


@study.claim(Mean(above=0.9), source=THESIS, at="Figure 3.2", paper="225 of 225")
def quota_before(results: Results) -> list[float]:
    """They are made when the quota is spent (verifier consulted before each token, as in the released code).

    Share of errors with quota 0, mean over models.
    """
    return shares(results.before, lambda mistake: mistake.quota_left == 0)


@study.claim(Mean(above=0.9), source=THESIS, at="Figure 3.2", paper="all rows shown, with probabilities 0.52 to 0.998")
def confident(results: Results) -> list[float]:
    """The model is sure of the wrong token.

    Share of errors whose token is more probable than all others together, mean over models.
    """
    return shares(results.after, lambda mistake: mistake.probability > 0.5)


@study.table
def remaining_errors(results: Results) -> Rows:
    rows: Rows = [
        {
            "verifier consulted": name,
            "errors": len(mistakes),
            "wrong closing bracket": sum(each.kind == CLOSING for each in mistakes),
            "with quota 0": sum(each.quota_left == 0 for each in mistakes),
            "most probable token": sum(each.token == each.best for each in mistakes),
        }
        for name, mistakes in results.together.items()
    ]
    return [
        *rows,
        {"verifier consulted": "published", "errors": 225, "wrong closing bracket": 222, "with quota 0": 225},
    ]


@study.table
def some_remaining_errors(results: Results) -> Rows:
    shown = sorted(chain.from_iterable(results.after), key=lambda each: -each.probability)
    return [
        {
            "kind": kind_name(each.kind),
            "prefix": each.prefix,
            "token": each.token,
            "probability": f"{each.probability:.3f}",
            "best": each.best,
            "best probability": f"{each.best_probability:.3f}",
            "quota left": each.quota_left,
        }
        for each in shown[:: max(1, len(shown) // 12)][:12]
    ]


def kind_name(kind: int) -> str:
    return BracketError(kind).name.lower().replace("_", " ")


@study.figure
def errors(results: Results) -> Figure:
    figure, axes = figures.new(columns=2, width=4.6, height=3.2)
    kinds = sorted({each.kind for mistakes in results.together.values() for each in mistakes}) or [CLOSING]
    for shift, (name, mistakes) in zip((-0.2, 0.2), results.together.items()):
        counts = [sum(each.kind == kind for each in mistakes) for kind in kinds]
        axes[0].bar(np.arange(len(kinds)) + shift, counts, 0.38, label=f"verifier consulted {name}")
        quotas = [sum(each.quota_left == left for each in mistakes) for left in range(5)]
        axes[1].bar(np.arange(5) + shift, quotas, 0.38, label=f"verifier consulted {name}")
    names = [kind_name(kind) for kind in kinds]
    for old, new in (("stack depth exceeds", "too deep for"), (" remaining", "\nremaining"), ("rect ", "rect\n")):
        names = [name.replace(old, new) for name in names]
    axes[0].set(xticks=range(len(kinds)), xlim=(-0.9, len(kinds) - 0.1), ylabel="errors", title="kind of first error")
    axes[0].set_xticklabels(names)
    axes[0].tick_params(axis="x", labelsize=8)
    axes[1].set(xticks=range(5), xlabel="quota left", ylabel="errors", title="quota left at the end")
    figure.legend(*axes[1].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    return figure
