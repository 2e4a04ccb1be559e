"""Perfect balance and nothing else: many attention maps, one exact function; and what imbalance costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from sandlab import figures
from sandlab.circuits.dyck import balanced_dyck, random_balanced_scores, uniform_dyck
from sandlab.lenses.balance import balance_gap, balance_report, balance_violation
from sandlab.lenses.balance_bounds import cancelling_residue, pumped_twins
from sandlab.models.base import seeded
from sandlab.models.dyck_codes import BalanceTransformer
from sandlab.models.recording import record
from sandlab.random import rng
from sandlab.studies.base import Lab, Outcome, study
from sandlab.studies.claims import Above, Below, Between, Claim, Equals
from sandlab.studies.dyck.runs import SOURCE, probe_word
from sandlab.worlds.base import cross_entropy
from sandlab.worlds.dyck import Dyck

PUMPS = (0, 1, 3, 10, 30, 100, 300, 1000)
DEPTHS, LENGTHS = (1, 2, 3, 4, 6), (28, 1000)
FAR = 1_000_000
NOISES = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0)


@dataclass(frozen=True)
class Settings:
    """Random balanced attentions tried, length of the test words, types and depth."""

    seeds: int = 6
    attentions: int = 20
    length: int = 600
    types: int = 2
    depth: int = 4


@dataclass(frozen=True)
class BalanceJob:
    seed: int
    length: int
    types: int
    depth: int


def examine(job: BalanceJob) -> dict[str, Any]:
    """One random balanced attention: its error and violation, the same with noise, and how pumping forgets."""
    world = Dyck(job.types, job.depth, job.length)
    batch = world.sample(4, rng=rng(job.seed, "words"))
    truth = world.oracle(batch).exp()
    scores = random_balanced_scores(job.types, job.depth, rng=rng(job.seed, "scores"))
    places = random_coordinates(len(scores), rng(job.seed, "places"))
    exact = balanced_dyck(job.types, job.depth, scores=scores, coordinates=places)
    with torch.no_grad():
        elsewhere = float((exact.law(batch.inputs) - truth).abs().max())
    noise = torch.randn(scores.shape, generator=rng(job.seed, "noise"), dtype=torch.float64)
    errors, violations, losses, ratios = [], [], [], []
    best = float((truth * (1 - truth)).sum(-1).mean())  # the squared loss of the true law
    for size in NOISES:
        model = _perturbed(scores, size * noise, job)
        with torch.no_grad():
            law = model.law(batch.inputs)
        errors.append(float((law - truth).abs().max()))
        losses.append(float((law - truth).square().sum(-1).mean()) / best)
        violations.append(balance_violation(model))
        ratios.append(float(balance_report(model).ratios.max()))
    probe = probe_word(job.types, job.depth)
    model = _perturbed(scores, 0 * noise, job)
    with record(model, "layers.0.pattern") as tape, torch.no_grad():
        model.law(probe)
    unbalanced = _perturbed(scores, 0.3 * noise, job)
    return {
        "errors": np.array(errors),
        "violations": np.array(violations),
        "losses": np.array(losses),
        "ratios": np.array(ratios),
        "gap": balance_gap(scores, job.types, job.depth),
        "elsewhere": elsewhere,
        "random": random_parameters(job),
        "equivalence": _equivalence(job, exact, elsewhere),
        "cancelling": cancelling_residue(scores, job.types, job.depth),
        "not_cancelling": cancelling_residue(scores + 0.3 * noise, job.types, job.depth),
        "faded": _attention_size(model, 1000) / _attention_size(model, 100),
        "map": tape["layers.0.pattern"][0].numpy(),
        "balanced_pump": np.array([_pump(model, pairs) for pairs in PUMPS]),
        "unbalanced_pump": np.array([_pump(unbalanced, pairs) for pairs in PUMPS]),
    }


def excess_loss(types: int, depth: int, length: int) -> float:
    """Largest difference between the cross-entropy of three exact models and the oracle's on the same words.

    The three: random balanced attention, uniform attention over (type, depth) codes, uniform attention over tokens.
    """
    world = Dyck(types, depth, length)
    batch = world.sample(2, rng=rng(depth, "loss"))
    scores = random_balanced_scores(types, depth, rng=rng(depth, "scores"))
    models = (balanced_dyck(types, depth, scores=scores), balanced_dyck(types, depth), uniform_dyck(types, depth))
    best = world.optimal_loss(batch)
    with torch.no_grad():
        return max(abs(float(cross_entropy(model(batch.inputs), batch)) - best) for model in models)


def random_coordinates(codes: int, generator: torch.Generator) -> torch.Tensor:
    """Linearly independent embeddings: the unit vectors and a random matrix, well conditioned."""
    return torch.eye(codes, dtype=torch.float64) + 0.1 * torch.randn(
        codes, codes, generator=generator, dtype=torch.float64
    )


def random_parameters(job: BalanceJob) -> float:
    """All weights drawn at random: how far apart the normed outputs on two pumped words are, worst query and pair.

    The two words have different brackets to close; where this goes to 0, no continuous read-out can be right on both.
    """
    model = _random_model(job, job.seed)
    query, kind, level, pair = np.unravel_index(int(balance_report(model).ratios.argmax()), _shape(job))
    return pumped_twins(model, FAR, (int(query) + 2, int(kind)), (int(level) + 1, int(pair))).apart


def _shape(job: BalanceJob) -> tuple[int, int, int, int]:
    return job.depth - 1, job.types, job.depth, job.types


def _random_model(job: BalanceJob, seed: int) -> BalanceTransformer:
    with seeded(seed):
        return BalanceTransformer(
            types=job.types, depth=job.depth, widths=(24, 2 * job.types), hidden=((32,),)
        ).double()


def _least_confusion(model: BalanceTransformer, job: BalanceJob, length: int) -> float:
    """Over queries and pairs whose residue does not vanish: the smallest of the larger errors of the two words."""
    report = balance_report(model)
    found = [0.0]
    for query, kind, level, pair in np.argwhere(report.ratios > 1e-6):
        twins = pumped_twins(model, length, (int(query) + 2, int(kind)), (int(level) + 1, int(pair)))
        found.append(max(twins.errors) / (twins.law_apart / 2))
    return min(found[1:], default=0.0)


def _equivalence(job: BalanceJob, exact: BalanceTransformer, error: float) -> float:
    """Of two random models, one balanced and one not: the share for which balance and exactness say the same."""
    other = _random_model(job, job.seed + 1000)
    agree = []
    for model, wrong in ((exact, error), (other, None)):
        balanced = balance_report(model).ratios.max() < 1e-9
        perfect = (wrong is None or wrong < 1e-6) and _least_confusion(model, job, FAR) < 1e-3
        agree.append(bool(balanced) == perfect)
    return float(np.mean(agree))


def _attention_size(model: BalanceTransformer, pairs: int) -> float:
    """Length of the attention's output before the norm, after so many matched pairs."""
    words = torch.tensor([[2 * model.config.types, 0, *[0, 1] * pairs, 2, 3]])
    with record(model, "layers.0.mixed") as tape, torch.no_grad():
        model.law(words)
    return float(tape["layers.0.mixed"][0, -1].norm())


def _perturbed(scores: torch.Tensor, noise: torch.Tensor, job: BalanceJob) -> BalanceTransformer:
    """The exact circuit for `scores` whose attention is then disturbed, everything else unchanged."""
    model = balanced_dyck(job.types, job.depth, scores=scores)
    size = len(scores)
    with torch.no_grad():
        model.layers[0].score[:size, :size] += noise  # type: ignore[index,operator]
    return model


def _pump(model: BalanceTransformer, pairs: int) -> float:
    """How far apart the normed streams are after ( and after [, with so many matched pairs put between."""
    start = 2 * model.config.types
    words = torch.tensor([[start, top, *[0, 1] * pairs, 2, 3] for top in (0, 2)])
    with record(model, "layers.0.normed") as tape, torch.no_grad():
        model.law(words)
    first, second = tape["layers.0.normed"][:, -1]
    return float((first - second).norm())


@study(
    "dyck/theorems",
    title="Attention may look like anything, as long as matched brackets cancel",
    source=f"{SOURCE}, Theorems 1 and 2, Corollary 1",
    quick=Settings(),
    full=Settings(seeds=40, length=1500),
    claims=[
        Claim(
            "sufficiency",
            "Any attention that satisfies the balance condition can be completed to an exact generator.",
            f"{SOURCE}, Theorem 1",
            "largest error of the output over all prefixes, random balanced attentions",
            Below(1e-6),
            exact=True,
        ),
        Claim(
            "necessity",
            "Without balance the model cannot stay exact: its output forgets the top of the stack under pumping.",
            f"{SOURCE}, Theorem 1",
            "distance of streams after 1000 pumped pairs over that after 100, disturbed attention",
            Between(0.02, 0.35),
            paper="goes to 0 like 1/n",
        ),
        Claim(
            "balanced-remembers",
            "With balance pumping changes nothing.",
            f"{SOURCE}, Theorem 1",
            "distance of streams after 1000 pumped pairs over that after none",
            Above(0.99),
            exact=True,
        ),
        Claim(
            "uniform",
            "Uniform attention in both layers, without positions, generates Dyck prefixes exactly.",
            f"{SOURCE}, Corollary 1",
            "largest error of the output over all prefixes",
            Below(1e-5),
            exact=True,
        ),
        Claim(
            "oracle-loss",
            "The exact models have the oracle's loss at every depth and length.",
            f"{SOURCE}, Theorem 1 and Corollary 1",
            "largest ∣loss − optimal loss∣ in nats, two and three types, depths 1 to 6, up to 1000 brackets",
            Below(1e-6),
            exact=True,
        ),
        Claim(
            "any-embedding",
            "Linearly independent embeddings are all that the construction needs.",
            f"{SOURCE}, Theorem 1",
            "largest error of the output over all prefixes, random balanced attentions on random embeddings",
            Below(1e-6),
            exact=True,
        ),
        Claim(
            "cancelling-values",
            "Values that let all matched pairs cancel exist when the scores are balanced …",
            f"{SOURCE}, Theorem 1",
            "largest sine of the angle between a pair's columns e^score over closing queries, balanced scores",
            Below(1e-9),
            exact=True,
        ),
        Claim(
            "no-cancelling-values",
            "… and do not exist when they are not.",
            f"{SOURCE}, Theorem 1",
            "the same for disturbed scores, smallest over draws",
            Above(0.01),
            exact=True,
        ),
        Claim(
            "random-parameters",
            "With all weights drawn at random, pumping makes two words alike whose next brackets differ.",
            f"{SOURCE}, Theorem 1 (necessity)",
            "distance of the normed outputs on two words of 10⁶ brackets, worst query and pair, largest over draws",
            Below(1e-3),
            exact=True,
        ),
        Claim(
            "equivalence",
            "Balanced and exact at every length are the same, on random models of both kinds.",
            f"{SOURCE}, Theorem 1",
            "share of random models for which the two agree",
            Equals(1.0, 0.0),
            exact=True,
        ),
        Claim(
            "gpt-fades",
            "Where the stream is added before the norm, balance does not suffice: the attention's part fades like 1/n.",
            f"{SOURCE}, on the GPT-like layer",
            "length of the attention's output after 1000 pairs over that after 100, balanced models",
            Below(0.15),
            exact=True,
            paper="∝ 1/n",
        ),
        Claim(
            "violation-costs",
            "The larger the violation, the larger the loss.",
            f"{SOURCE}, Theorem 2",
            "rank correlation of violation and loss over disturbances of growing size",
            Above(0.8),
        ),
        Claim(
            "different-maps",
            "Exact models have attention maps as different as random ones.",
            f"{SOURCE}, Figure 1",
            "mean total variation between rows of two exact models' maps",
            Above(0.2),
        ),
    ],
)
def theorems(config: Settings, lab: Lab) -> Outcome:
    """Random attention scores that satisfy the balance condition, each completed to an exact Dyck generator.

    The maps are the attention of three of them on one word; all three generate bounded Dyck prefixes with an error
    below 1e-6 at every position. Fourth panel: when matched pairs are pumped in between, a balanced model keeps the top
    of the stack, one with disturbed attention forgets it like 1/n. Last panel: loss above the best against the balance
    violation, for disturbances from 0 to 1.

    Both directions of the theorem are checked on random draws: balanced scores on random linearly independent
    embeddings are completed to exact models; models with all weights drawn at random are wrong on one of two words
    that pumping makes indistinguishable (see `pumped_twins`). What a violation of a given size costs is measured in
    `dyck/violation-bound`.
    """
    jobs = [BalanceJob(seed, config.length, config.types, config.depth) for seed in range(config.seeds)]
    found = lab.map(examine, jobs, label="balanced attentions")
    world = Dyck(config.types, config.depth, config.length)
    batch = world.sample(4, rng=rng(0, "uniform"))
    with torch.no_grad():
        uniform = (uniform_dyck(config.types, config.depth).law(batch.inputs) - world.oracle(batch).exp()).abs().max()
    maps = np.stack([result["map"] for result in found])
    apart = [0.5 * np.abs(maps[place] - maps[place - 1]).sum(-1).mean() for place in range(len(maps))]
    pumps = np.stack([result["unbalanced_pump"] for result in found])
    kept = np.stack([result["balanced_pump"] for result in found])
    measurements: dict[str, Any] = {
        "sufficiency": max(float(result["errors"][0]) for result in found),
        "necessity": pumps[:, -1] / pumps[:, PUMPS.index(100)],
        "balanced-remembers": float((kept[:, -1] / kept[:, 0]).min()),
        "uniform": float(uniform),
        "oracle-loss": max(
            excess_loss(types, depth, length) for types in (2, 3) for depth in DEPTHS for length in LENGTHS
        ),
        "any-embedding": max(result["elsewhere"] for result in found),
        "cancelling-values": max(result["cancelling"] for result in found),
        "no-cancelling-values": min(result["not_cancelling"] for result in found),
        "random-parameters": max(result["random"] for result in found),
        "equivalence": float(np.mean([result["equivalence"] for result in found])),
        "gpt-fades": max(result["faded"] for result in found),
        "violation-costs": [_rank_correlation(result) for result in found],
        "different-maps": apart,
    }
    columns = ("violations", "errors", "losses", "ratios")
    rows = [
        {"noise": noise, **{name: float(np.mean([result[name][place] for result in found])) for name in columns}}
        for place, noise in enumerate(NOISES)
    ]
    return Outcome(measurements, {"balance": _draw(found)}, {"disturbance": rows})


def _rank_correlation(result: dict[str, Any]) -> float:
    from scipy import stats

    return float(stats.spearmanr(result["violations"], result["losses"]).statistic)


def _draw(found: list[dict[str, Any]]) -> Any:
    figure, axes = figures.new(columns=5, width=2.9, height=2.9)
    for axis, result in zip(axes, found[:3]):
        figures.heatmap(
            axis, result["map"], title=f"exact, error {result['errors'][0]:.0e}", low=0.0, high=0.6, bar=False
        )
        axis.set(xlabel="key", ylabel="query")
    kept = np.stack([result["balanced_pump"] for result in found])
    lost = np.stack([result["unbalanced_pump"] for result in found])
    figures.band(axes[3], PUMPS, kept, label="balanced")
    figures.band(axes[3], PUMPS, lost, label="disturbed")
    axes[3].set_xscale("symlog", linthresh=1)
    axes[3].set_yscale("log")
    axes[3].set(title="pumping", xlabel="matched pairs put in", ylabel="memory of the top bracket")
    axes[3].legend()
    for result in found:
        axes[4].plot(
            result["violations"], result["losses"], "o-", markersize=3, linewidth=0.8, color=figures.COLOURS[0]
        )
    axes[4].set_xscale("symlog", linthresh=1e-3)
    axes[4].set_yscale("symlog", linthresh=1e-6)
    axes[4].set(title="violation costs loss", xlabel="balance violation β", ylabel="squared loss above the best")
    return figure
