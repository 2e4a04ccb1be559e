"""Backtracking writes a few more distinct correct test cases than sampling in two of three settings.

A model is asked for test cases of a function that appends an item to a list; how many are correct and distinct?

    def qzk(l, item):
        assert type(l) is list
        l.append(item)
        return l

    List 8 test cases of the above function qzk, one in each line:
    assert qzk([2, 5], 7) == [2, 5, 7]
    …

The published experiment asks a frozen model of 7 billion parameters. Here a small transformer stands in for it, trained
on documents of this form (world append-cases) for several functions, whose test lines are wrong with probability 0.15.
Quick: two layers of width 64, four lines, lists of at most two entries, functions append, prepend, pop and max, one
example line; full: five models of four layers and width 256, eight lines, lists of at most five, nine functions.
Entries favour small numbers, as people's tests do, so that sampling from a sharp distribution repeats itself.

Accuracy: for each function name the distinct correct cases of its ten completions, divided by all that were requested.
The verifier is a linear probe of the last layer at the last token, trained on the model's own errors under other names:
the first wrong token of a wrong completion, and random earlier tokens. Below τ the last four tokens are erased and
rewritten greedily, at most four times. Block best-of-n draws n candidates for every line and keeps the one to which a
probe at the line's end gives the highest value. All decodings of one model use the same random numbers; findings are
over models.

What to look for: the trained verifier's bar beside plain sampling's, at hardly more queries, while the best of eight
candidates costs eight times as much. The table of errors says what is repaired: mostly false results.

**What was learnt.** The three models of the quick preset gain by backtracking at top-p 0.95 and at temperature 1.2, by
intervals that end just above zero; without a nucleus, and against the best of n candidates, zero lies inside. An
earlier custom run with eight models showed gains of 0.02 at top-p 0.95, 0.04 at 1.0 and 0.06 at temperature 1.2 (larger
where the distribution makes more errors, as in the source); its number of models had been raised after four and six
were seen to leave them open, so it counts for less than its intervals said (`sandlab claims --history
verifier/codegen.helps`). The best of n candidates for each line is worse than sampling here and better in the source (n
= 2): the probe of lines prefers lines that it has seen, and what repeats is not counted. That backtracking beats it
therefore says little.

How it was measured: size and training of the model were chosen among eight on seed 0, with its accuracies in view, and
seed 0 is among the models.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.studies.claims import Mean
from sandlab.studies.study import Lab, Rows, Study
from sandlab.studies.verifier._decoding_runs import GREY, QUERIES, THESIS, bars, published_mean
from sandlab.studies.verifier.codegen import _code_runs as code
from sandlab.studies.verifier.codegen._code_runs import BLOCKS, BOLD, EXACT, HOT, MAIN, PLAIN, WIDE, alone
from sandlab.studies.verifier.codegen._published import published
from sandlab.studies.verifier.codegen._writers import of_writers

study = Study(
    "verifier/codegen",
    title="Backtracking writes a few more distinct correct test cases than sampling in two of three settings",
    source=QUERIES,
    at=f"code generation ({THESIS}, Tables 3.6 to 3.8)",
    quick=code.QUICK,
    full=replace(code.FULL, model=replace(code.FULL.model, seeds=5)),
    null=code.PRESETS["null"],
)
COMPARED = {
    "sampling": PLAIN,
    **{f"best of {decoding.candidates}\nper line": decoding for decoding in BLOCKS},
    "verifier\nτ = 0.1": MAIN,
    "verifier\nτ = 0.5": BOLD,
}


@study.collect
def collect(settings: code.Settings, lab: Lab) -> code.Cases:
    return code.Cases.collect(settings, lab, [*COMPARED.values(), WIDE, alone(WIDE), HOT, alone(HOT), EXACT])


@study.claim(Mean(above=0.0), source=THESIS, at="Table 3.6", paper="0.714 − 0.660")
def helps(results: code.Cases) -> np.ndarray:
    """Backtracking with a linear verifier writes more distinct correct test cases than the same sampling alone.

    Accuracy with quota 4, stride 4, τ = 0.1 minus without, top-p 0.95.
    """
    return results.gap(MAIN, PLAIN)


@study.claim(Mean(above=0.0), source=THESIS, at="Table 3.13", paper="0.639 − 0.504")
def helps_plain(results: code.Cases) -> np.ndarray:
    """It does so without a nucleus.

    Accuracy with minus without backtracking, top-p 1.0.
    """
    return results.gap(WIDE, alone(WIDE))


@study.claim(Mean(above=0.0), source=THESIS, at="Table 3.13", paper="0.440 − 0.269")
def helps_hot(results: code.Cases) -> np.ndarray:
    """It does so at temperature 1.2.

    Accuracy with minus without backtracking, top-p 1.0, temperature 1.2.
    """
    return results.gap(HOT, alone(HOT))


@study.claim(Mean(above=0.0), source=THESIS, at="Table 3.6", paper="0.714 − 0.684")
def beats_blocks(results: code.Cases) -> np.ndarray:
    """It beats choosing the best of n candidates for each line, whatever n.

    Accuracy with backtracking minus that of the best n of 2, 4, 8.
    """
    return results.accuracy(MAIN) - np.max([results.accuracy(decoding) for decoding in BLOCKS], axis=0)


@study.claim(Mean(above=0.0), source=THESIS, at="Table 3.6", paper="0.684 − 0.660")
def blocks_help(results: code.Cases) -> np.ndarray:
    """The best of two candidates for each line is better than sampling: what backtracking is compared with works.

    Accuracy with the best of 2 candidates for each line minus sampling.
    """
    return results.gap(BLOCKS[0], PLAIN)


@study.claim(Mean(below=1.1), source=THESIS, at="Table 3.6", paper="39443/38231 = 1.03")
def cheap(results: code.Cases) -> np.ndarray:
    """Backtracking costs less than a tenth more queries than sampling.

    Queries with backtracking divided by queries without, top-p 0.95; 2 for models that write less than a tenth of the
    test cases.
    """
    return of_writers(results, results.queries(MAIN) / results.queries(PLAIN), 2.0)


@study.table
def ways_of_writing(results: code.Cases) -> Rows:
    named = [(name.replace("\n", " "), decoding) for name, decoding in COMPARED.items()]
    named += [("verifier", WIDE), ("sampling", alone(WIDE)), ("verifier", HOT)]
    return [{"decoding": name} | results.row(decoding) for name, decoding in named]


@study.table
def first_errors_of_completions(results: code.Cases) -> Rows:
    """Share of completions by the kind of their first error."""
    counts: dict[str, Counter[str]] = {}
    for name, decoding in {"sampling": PLAIN, "verifier": MAIN, "exact verifier": EXACT}.items():
        counts[name] = sum((Counter(each.first_errors) for each in results[decoding]), Counter())
    total = sum(each.completions for each in results[PLAIN])
    kinds = sorted(set().union(*counts.values()), key=lambda kind: -counts["sampling"][kind])
    return [{"first error": kind, **{name: count[kind] / total for name, count in counts.items()}} for kind in kinds]


@study.table
def the_models(results: code.Cases) -> Rows:
    return [
        {
            "model": model,
            "loss, nats per token": loss,
            "wrong completions to train on": results.errors[model],
            "verifier of tokens, validation": results.validation["trained"][model],
            "verifier of lines, validation": results.validation["lines"][model],
            "a completion": results[MAIN][model].example.split("\n")[0],
        }
        for model, loss in enumerate(results.loss)
    ]


@study.figure
def accuracy(results: code.Cases) -> Figure:
    figure, axes = figures.new(columns=2, width=5.2, height=3.3)
    decodings, index = list(COMPARED.values()), np.arange(len(COMPARED))
    bars(axes[0], list(COMPARED), [results.accuracy(each) for each in decodings], [published(d)[0] for d in decodings])
    ours = [(results.queries(each) / results.queries(PLAIN).mean()).mean() for each in decodings]
    theirs = [published_mean(published(each)[1]) / published_mean(published(PLAIN)[1]) for each in decodings]
    axes[1].bar(index - 0.2, ours, 0.38, label="here")
    axes[1].bar(index + 0.2, theirs, 0.38, color=GREY, label="published")
    axes[1].set(xticks=index, ylabel="queries relative to sampling")
    axes[1].set_xticklabels(list(COMPARED), fontsize=8)
    axes[1].legend()
    return figure
