"""Test cases under misleading function names, and backtracking without greedy rewriting."""

from __future__ import annotations

from dataclasses import replace

from sandlab import figures
from sandlab.studies.claims import Above, Claim
from sandlab.studies.study import Lab, Outcome, study
from sandlab.studies.verifier.codegen_campaign import MAIN, PLAIN
from sandlab.studies.verifier.codegen_figures import bars
from sandlab.studies.verifier.codegen_published import NAMES, NO_ARGMAX
from sandlab.studies.verifier.codegen_settings import FULL, QUICK, Runs, Settings
from sandlab.studies.verifier.dyck_settings import spread
from sandlab.studies.verifier.sources import QUERIES, THESIS

MARGIN = 0.02
BOLD = replace(MAIN, threshold=0.5)


@study(
    "verifier/codegen-names",
    title="Misleading function names hurt sampling more than they hurt backtracking",
    source=f"{QUERIES}, code generation ({THESIS}, Tables 3.14 and 3.15)",
    quick=QUICK,
    full=FULL,
    claims=[
        Claim(
            "helps",
            "Under misleading names backtracking still writes more distinct correct test cases than sampling.",
            f"{THESIS}, Table 3.15",
            "accuracy with τ = 0.1 minus without verifier, misleading names",
            Above(0.0),
            paper="0.710 − 0.606",
        ),
        Claim(
            "smaller-drop",
            "Misleading names cost backtracking less accuracy than they cost sampling.",
            f"{THESIS}, Table 3.15",
            "loss of sampling minus loss of backtracking (τ = 0.1) from random to misleading names",
            Above(0.0),
            paper="0.054 − 0.004",
        ),
        Claim(
            "smaller-drop-bold",
            "The same holds with τ = 0.5.",
            f"{THESIS}, Table 3.15",
            "loss of sampling minus loss of backtracking (τ = 0.5) from random to misleading names",
            Above(0.0),
            paper="0.054 − (−0.011)",
        ),
    ],
)
def codegen_names(config: Settings, lab: Lab) -> Outcome:
    """The function that appends is called pop or max, names that the model has read with other bodies.

    Set-up as in verifier/codegen. In the model's documents a name that says what a function does is used only with
    that body, so here the name contradicts the body. Quick: the two misleading names among its functions, pop and max;
    full: the ten names of the source (pop, add, sub, mul, div, max, min, std, avg, exp), six of which the model has
    read. The verifier was trained under random names only.

    What to look for: the loss from the left to the right bar of a pair, with and without verifier.
    """
    runs = Runs(config, lab)
    ways = {0.1: MAIN, 0.5: BOLD, None: PLAIN}
    lost = {key: runs.gap(way, replace(way, foreign=True)) for key, way in ways.items()}
    measurements = {
        "helps": runs.gap(replace(MAIN, foreign=True), replace(PLAIN, foreign=True)),
        "smaller-drop": lost[None] - lost[0.1],
        "smaller-drop-bold": lost[None] - lost[0.5],
    }
    rows = [
        {
            "way": "sampling" if key is None else f"verifier, τ = {key}",
            "random names": spread(runs.values(way)),
            "misleading names": spread(runs.values(replace(way, foreign=True))),
            "published, random": NAMES[key][0],
            "published, misleading": NAMES[key][1],
        }
        for key, way in ways.items()
    ]
    figure, (axis,) = figures.new(width=6.2, height=3.2)
    with figures.style():
        both = [(key, one) for key, way in ways.items() for one in (way, replace(way, foreign=True))]
        heads = {0.1: "τ = 0.1", 0.5: "τ = 0.5", None: "sampling"}
        names = [f"{heads[key]}\n{'misleading' if way.foreign else 'random'}\nnames" for key, way in both]
        bars(axis, names, [runs.values(way) for _, way in both], [NAMES[key][way.foreign] for key, way in both])
    notes = {
        "smaller-drop": f"Misleading names cost sampling {lost[None].mean():+.3f} here (0.054 in the source): "
        "a model as small as this goes by the body, whatever the name, so there is little to repair."
    }
    return Outcome(measurements, {"names": figure}, {"names": rows}, notes)


@study(
    "verifier/codegen-no-argmax",
    title="For test cases the greedy rewriting matters little",
    source=f"{QUERIES}, ablation ({THESIS}, Table 3.17)",
    quick=QUICK,
    full=FULL,
    claims=[
        Claim(
            "cautious",
            "With τ = 0.1, rewriting greedily is no worse than sampling again.",
            f"{THESIS}, Table 3.17",
            "accuracy with greedy rewriting minus without, τ = 0.1",
            Above(-MARGIN),
            paper="0.714 − 0.711",
        ),
        Claim(
            "bold",
            "The same holds with τ = 0.5.",
            f"{THESIS}, Table 3.17",
            "accuracy with greedy rewriting minus without, τ = 0.5",
            Above(-MARGIN),
            paper="0.676 − 0.663",
        ),
    ],
)
def codegen_no_argmax(config: Settings, lab: Lab) -> Outcome:
    """After erasing four tokens: rewrite them greedily, as the algorithm says, or go on sampling?

    Set-up as in verifier/codegen, top-p 0.95. Greedy rewriting makes the text right more often and less varied;
    sampling again keeps the variety and may err again, for which quota is left.

    What to look for: pairs of nearly equal bars, unlike on Dyck words (verifier/dyck-no-argmax).
    """
    runs = Runs(config, lab)
    ways = {0.1: MAIN, 0.5: BOLD}
    measurements = {
        "cautious": runs.gap(MAIN, replace(MAIN, redo="none")),
        "bold": runs.gap(BOLD, replace(BOLD, redo="none")),
    }
    rows = [
        {
            "τ": key,
            "greedy rewriting": spread(runs.values(way)),
            "sampling again": spread(runs.values(replace(way, redo="none"))),
            "published, greedy rewriting": NO_ARGMAX[key][0],
            "published, sampling again": NO_ARGMAX[key][1],
        }
        for key, way in ways.items()
    ]
    figure, (axis,) = figures.new(width=5.4, height=3.2)
    with figures.style():
        both = [(key, one) for key, way in ways.items() for one in (way, replace(way, redo="none"))]
        names = [f"{'rewrite greedily' if way.redo == 'argmax' else 'sample again'}\nτ = {key}" for key, way in both]
        values = [runs.values(way) for _, way in both]
        bars(axis, names, values, [NO_ARGMAX[key][way.redo == "none"] for key, way in both])
    return Outcome(measurements, {"rewriting": figure}, {"rewriting": rows})
