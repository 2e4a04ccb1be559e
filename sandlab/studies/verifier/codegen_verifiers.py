"""Which verifier writes the best test cases: its threshold, the layer it reads, its depth, its kind."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sandlab import figures
from sandlab.studies.claims import Above, Between, Claim
from sandlab.studies.study import Lab, Outcome, study
from sandlab.studies.verifier.codegen_campaign import DEPTHS, HOT, MAIN, PLAIN
from sandlab.studies.verifier.codegen_figures import bars
from sandlab.studies.verifier.codegen_published import BASELINE, KINDS, LAYERS, RANDOM, TABLE
from sandlab.studies.verifier.codegen_published import DEPTHS as PUBLISHED_DEPTHS
from sandlab.studies.verifier.codegen_settings import FULL, QUICK, Runs, Settings
from sandlab.studies.verifier.dyck_settings import spread
from sandlab.studies.verifier.sources import QUERIES, THESIS

# Differences below this are not told apart.
MARGIN = 0.02
LAWS = {
    "nucleus": ("top-p 0.95", MAIN),
    "plain": ("top-p 1.0", replace(MAIN, top_p=1.0)),
    "hot": ("top-p 1.0, T 1.2", HOT),
    "long-stride": ("top-p 1.0, B 10", replace(MAIN, top_p=1.0, stride=10)),
}
RANDOMLY = replace(MAIN, verifier="random")
EXACT = replace(MAIN, verifier="exact")


@study(
    "verifier/codegen-threshold",
    title="A verifier that speaks up only when it is sure (τ = 0.1) does no worse than one that rejects below ½",
    source=f"{QUERIES}, code generation ({THESIS}, Table 3.10)",
    quick=QUICK,
    full=FULL,
    claims=[
        Claim(
            name,
            f"Backtracking only below 0.1 is no worse than below 0.5 ({LAWS[name][0]}).",
            f"{THESIS}, Table 3.10",
            "accuracy with τ = 0.1 minus τ = 0.5",
            Above(-MARGIN),
            paper=paper,
        )
        for name, paper in (
            ("nucleus", "0.714 − 0.676"),
            ("plain", "0.639 − 0.604"),
            ("hot", "0.440 − 0.334"),
            ("long-stride", "0.622 − 0.604"),
        )
    ],
)
def codegen_threshold(config: Settings, lab: Lab) -> Outcome:
    """τ = 0.1 against τ = 0.5 for four laws and strides, quota 4.

    Set-up as in verifier/codegen. The threshold is the value below which V, the estimated probability that the text is
    right so far, counts as a rejection. Wrong tokens are rare among those sampled and frequent among those the probe
    was trained on, so it cries wolf at ½: the quota is spent on false alarms, and what was varied is rewritten
    greedily.

    What to look for: in each pair the left bar is at least as high as the right one. The last row of the published
    table prints τ = 0.1; by Table 3.13 it is 0.5.
    """
    runs = Runs(config, lab)
    pairs = {name: (way, replace(way, threshold=0.5)) for name, (_, way) in LAWS.items()}
    measurements = {name: runs.gap(*pair) for name, pair in pairs.items()}
    rows = [
        runs.row(way)
        | {"backtracks per completion": float(runs.values(way, "backtracks").mean())}
        for pair in pairs.values()
        for way in pair
    ]  # fmt: skip
    figure, (axis,) = figures.new(width=7.6, height=3.3)
    with figures.style():
        ways = [way for pair in pairs.values() for way in pair]
        names = [
            f"{LAWS[name][0].replace(', ', chr(10))}\nτ = {way.threshold}" for name in pairs for way in pairs[name]
        ]
        bars(axis, names, [runs.values(way) for way in ways], [TABLE[way.published][0] for way in ways])
    return Outcome(measurements, {"threshold": figure}, {"thresholds": rows})


@study(
    "verifier/codegen-layers",
    title="Verifiers of different layers serve about equally well",
    source=f"{QUERIES}, code generation ({THESIS}, Table 3.9)",
    quick=QUICK,
    full=FULL,
    claims=[
        Claim(
            "beat-random",
            "Averaged over layers, trained verifiers beat a random one.",
            f"{THESIS}, Table 3.9",
            "mean accuracy over layers minus the random verifier's",
            Above(0.0),
            paper="0.694 − 0.663",
        ),
        Claim(
            "earlier",
            "A layer before the last serves as well as the last.",
            f"{THESIS}, Table 3.9",
            "accuracy with the best earlier layer minus with the last",
            Above(-MARGIN),
            paper="0.714 − 0.688",
        ),
    ],
)
def codegen_layers(config: Settings, lab: Lab) -> Outcome:
    """A linear verifier on each layer's stream in turn; τ = 0.1, quota 4, stride 4, top-p 0.95.

    Set-up as in verifier/codegen. The source reads layers 3 to 31 of 32; here there are two (full: four).

    What to look for: accuracy differs little from layer to layer, and more from model to model (small dots). The
    horizontal lines are the random verifier and sampling alone. (The published value of layer 31 is the one that Table
    3.13 lists at τ = 0.5; at 0.1 it has 0.677.)
    """
    runs = Runs(config, lab)
    layers = runs.campaign.model.layers
    ways = [replace(MAIN, layer=layer) for layer in range(layers - 1)] + [MAIN]
    scores = [runs.values(way) for way in ways]
    best = runs.best(ways[:-1])
    measurements = {
        "beat-random": np.mean(scores, axis=0) - runs.values(RANDOMLY),
        "earlier": runs.gap(best, MAIN),
    }
    rows = [
        {
            "layer": f"{layer + 1} of {layers}",
            "validation accuracy": float(
                np.mean([each["validation"][f"layers.{layer}.resid_post,1"] for each in runs.results])
            ),
            "accuracy": spread(value),
        }
        for layer, value in enumerate(scores)
    ]
    rows += [{"layer": "random verifier", "validation accuracy": 0.5, "accuracy": spread(runs.values(RANDOMLY))}]
    rows += [{"layer": "no verifier", "validation accuracy": None, "accuracy": spread(runs.values(PLAIN))}]
    printed = [{"layer": f"{layer + 1} of 32", "accuracy": value} for layer, value in LAYERS.items()]
    figure, axes = figures.new(columns=2, width=4.4, height=3.2)
    with figures.style():
        for layer, value in enumerate(scores):
            axes[0].plot([layer + 1] * len(value), value, "k.", markersize=4)
        axes[0].plot(range(1, layers + 1), [value.mean() for value in scores], "o-", label="trained verifier")
        axes[1].plot([layer + 1 for layer in LAYERS], list(LAYERS.values()), "o-", label="trained verifier")
        lines = (runs.values(RANDOMLY).mean(), runs.values(PLAIN).mean()), (RANDOM, BASELINE)
        for axis, (chance, alone), name in zip(axes, lines, ("here", "published")):
            axis.axhline(chance, color="#d1495b", linestyle="--", label="random verifier")
            axis.axhline(alone, color="#555555", linestyle=":", label="no verifier")
            axis.set(xlabel="layer the verifier reads", ylabel="distinct correct / asked for", title=name)
            low, high = axis.get_ylim()
            axis.set_ylim(low - 0.35 * (high - low), high)
            axis.legend(loc="lower right")
        axes[0].set(xticks=range(1, layers + 1), xlim=(0.5, layers + 0.5))
    return Outcome(measurements, {"layers": figure}, {"layers": rows, "published": printed})


@study(
    "verifier/codegen-depth",
    title="A deeper verifier is hardly more accurate and writes no better test cases",
    source=f"{QUERIES}, code generation ({THESIS}, Table 3.11)",
    quick=QUICK,
    full=FULL,
    claims=[
        Claim(
            "accurate",
            "The linear verifier tells wrong from right prefixes.",
            f"{THESIS}, Table 3.11",
            "validation accuracy of the linear verifier",
            Above(0.85),
            paper="0.96",
        ),
        Claim(
            "hardly-more",
            "Deeper verifiers are hardly more accurate.",
            f"{THESIS}, Table 3.11",
            "highest validation accuracy of 2, 4, 8 layers minus the linear one's",
            Between(-0.05, 0.05),
            paper="0.97 − 0.96",
        ),
        Claim(
            "no-better",
            "They write no better test cases.",
            f"{THESIS}, Table 3.11",
            "accuracy with the linear verifier minus the best of 2, 4, 8 layers",
            Above(-MARGIN),
            paper="0.714 − 0.699",
        ),
    ],
)
def codegen_depth(config: Settings, lab: Lab) -> Outcome:
    """Verifiers of 1, 2, 4 and 8 linear maps with ReLU between them on the last layer's activation.

    Set-up as in verifier/codegen; hidden width 256 (quick 64). Validation accuracy is on a tenth of the labelled
    strings, the tenth that also chose the weights.

    What to look for: bars of equal height, whatever the depth. Unlike in the source, deeper probes of this small model
    are more accurate than the linear one (0.91 against 0.85), perhaps because two layers do not lay out along a line
    whether two digits agree. What is written gains at most 0.02 by it.
    """
    runs = Runs(config, lab)
    ways = {depth: replace(MAIN, depth=depth) for depth in DEPTHS}
    last = f"layers.{runs.campaign.model.layers - 1}.resid_post"
    valid = {depth: np.array([each["validation"][f"{last},{depth}"] for each in runs.results]) for depth in DEPTHS}
    deeper = runs.best([ways[depth] for depth in DEPTHS[1:]])
    measurements = {
        "accurate": valid[1],
        "hardly-more": np.max([valid[depth] for depth in DEPTHS[1:]], axis=0) - valid[1],
        "no-better": runs.gap(ways[1], deeper),
    }
    rows = [
        {
            "linear maps": str(depth),
            "validation accuracy": spread(valid[depth]),
            "published validation": PUBLISHED_DEPTHS[depth][0],
            "accuracy": spread(runs.values(way)),
            "published": PUBLISHED_DEPTHS[depth][1],
        }
        for depth, way in ways.items()
    ]
    others = {"random verifier": (RANDOMLY, RANDOM), "no verifier": (PLAIN, BASELINE)}
    figure, (axis,) = figures.new(width=6.0, height=3.2)
    with figures.style():
        names = ["1 layer\n(linear)", *(f"{depth} layers" for depth in DEPTHS[1:]), "random\nverifier", "no\nverifier"]
        values = [runs.values(way) for way in (*ways.values(), RANDOMLY, PLAIN)]
        printed: list[float | str] = [*(PUBLISHED_DEPTHS[depth][1] for depth in DEPTHS), RANDOM, BASELINE]
        bars(axis, names, values, printed)
    rows += [
        {"linear maps": name, "accuracy": spread(runs.values(way)), "published": f"{value}"}
        for name, (way, value) in others.items()
    ]
    return Outcome(measurements, {"depth": figure}, {"depths": rows})


@study(
    "verifier/codegen-verifiers",
    title="The trained verifier is nearly as good as the exact one, and better than a random one",
    source=f"{QUERIES}, code generation ({THESIS}, Table 3.12)",
    quick=QUICK,
    full=FULL,
    claims=[
        Claim(
            "exact",
            "The exact verifier writes at least as many distinct correct test cases as the trained one.",
            f"{THESIS}, Table 3.12",
            "accuracy with the exact minus with the trained verifier",
            Above(-MARGIN),
            paper="0.719 − 0.714",
        ),
        Claim(
            "trained",
            "The trained verifier writes at least as many as a random one.",
            f"{THESIS}, Table 3.12",
            "accuracy with the trained minus with the random verifier",
            Above(-MARGIN),
            paper="0.714 − 0.663",
        ),
        Claim(
            "random",
            "A random verifier makes no difference.",
            f"{THESIS}, Table 3.12",
            "accuracy with the random verifier minus without any",
            Between(-0.05, 0.05),
            paper="0.663 − 0.660",
        ),
        Claim(
            "quota",
            "With the exact verifier a quota of 10 is no better than 4.",
            f"{THESIS}, Table 3.12",
            "accuracy with quota 10 minus quota 4",
            Between(-0.05, 0.05),
            paper="0.717 − 0.719",
        ),
    ],
)
def codegen_verifiers(config: Settings, lab: Lab) -> Outcome:
    """The exact verifier, the trained one and a random one in the same algorithm.

    Set-up as in verifier/codegen: top-p 0.95, temperature 1, τ = 0.1. The exact verifier says whether what is written
    can still become the correct lines that were asked for. The random one answers a uniform number, so it rejects every
    tenth token until the quota is spent.

    What to look for: exact ≥ trained ≥ random. The exact verifier's lead is what a better probe could still gain. The
    published last row, trained (4, 10), has the value of the row at top-p 1.0 of Table 3.13.
    """
    runs = Runs(config, lab)
    ways = {
        ("exact", 4, 4): EXACT,
        ("exact", 10, 4): replace(EXACT, quota=10),
        ("trained", 4, 4): MAIN,
        ("trained", 10, 4): replace(MAIN, quota=10),
        ("trained", 4, 10): replace(MAIN, stride=10),
        ("random", 4, 4): RANDOMLY,
    }
    measurements = {
        "exact": runs.gap(EXACT, MAIN),
        "trained": runs.gap(MAIN, RANDOMLY),
        "random": runs.gap(RANDOMLY, PLAIN),
        "quota": runs.gap(replace(EXACT, quota=10), EXACT),
    }
    rows = [
        {
            "verifier": kind,
            "Q": quota,
            "B": stride,
            "accuracy": spread(runs.values(way)),
            "published": KINDS[kind, quota, stride],
            "queries": spread(runs.values(way, "queries"), 0),
            "backtracks per completion": float(runs.values(way, "backtracks").mean()),
        }
        for (kind, quota, stride), way in ways.items()
    ]
    rows.append({"verifier": "none", "accuracy": spread(runs.values(PLAIN)), "published": f"{BASELINE}"})
    figure, (axis,) = figures.new(width=6.6, height=3.2)
    with figures.style():
        names = [*(f"{kind}\nQ {quota}, B {stride}" for kind, quota, stride in ways), "no\nverifier"]
        values = [runs.values(way) for way in (*ways.values(), PLAIN)]
        bars(axis, names, values, [*(KINDS[key] for key in ways), BASELINE])
    notes = {
        "random": f"Of {runs.length(PLAIN):.0f} tokens of a completion the random verifier has up to 16 rewritten "
        "greedily, which makes the text repeat itself; in the source it is 16 of 384."
    }
    return Outcome(measurements, {"verifiers": figure}, {"verifiers": rows}, notes)
