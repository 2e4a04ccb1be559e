"""Which masked task identifies which model: dimensions of the ambiguity, and exact recovery where there is none.

For random models the null space of the predictor's Jacobian has an integer dimension that depends on the tasks and
the number of states k alone. Where it is 0 and Kruskal's condition holds, Jennrich's algorithm recovers (O, T)
exactly. For Gaussian HMMs the task 1⊗3|2 is different: the source's Theorem 8 says it identifies the model, but for k
= 2 always, and for k ≥ 3 with equal Gram row sums and T ≤ 2/k, a second model (the mirror image) has the same
predictor.

Random models are drawn by seed; claims on them are judged over seeds. The null replaces every two-token predictor by
that of another model, so that recovery has nothing to find.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.learning.hmm.gaussian_recovery import read_ghmm_pairwise, read_ghmm_two_tokens
from sandlab.learning.hmm.recovery import parameter_error, recover_hmm
from sandlab.lenses.hmm.identifiability import jacobian_nullity, predictor_difference
from sandlab.studies.claims import Exact, Share
from sandlab.studies.hmm import _shared as shared
from sandlab.studies.study import Lab, Study
from sandlab.worlds.hmm.doubly_stochastic import circulant
from sandlab.worlds.hmm.instances import make_ghmm, random_ghmm, random_hmm
from sandlab.worlds.hmm.twins import householder, reflected_ghmm

PAIRS = (("2|1",), ("3|1",), ("2|1", "1|2"), ("2|1", "3|1"), ("2|1", "1|2", "3|1", "1|3"))
TASKS = (*PAIRS, *((each,) for each in shared.TWO))
SIZES = ((3, 2), (4, 3), (6, 4), (7, 5))


@dataclass(frozen=True)
class Settings:
    """Random models per size; `other`: predictors of a different model than the one judged (the null)."""

    seeds: int = 8
    sizes: tuple[tuple[int, int], ...] = ((3, 3), (4, 3), (6, 4), (10, 5))
    gaussian: tuple[tuple[int, int], ...] = ((2, 2), (3, 3), (5, 3), (6, 4))
    other: bool = False


@dataclass(frozen=True)
class Seed:
    """One seed: its random models are drawn from it."""

    settings: Settings
    seed: int


@dataclass(frozen=True)
class Found:
    """Largest errors over sizes and tasks, and how many candidates the middle-token task accepts."""

    hmm_error: float
    pairwise_error: float
    one_sided_error: float
    candidates_two: int
    candidates_generic: int
    mirror_sum: float


@dataclass(frozen=True)
class Results:
    nullity: np.ndarray
    gaussian_nullity: np.ndarray
    found: tuple[Found, ...]
    twin_same: np.ndarray
    twin_apart: np.ndarray


QUICK = Settings()
study = Study(
    "hmm/identifiability-map",
    title="Two tokens identify an HMM, one does not; 1⊗3|2 fails for some Gaussian HMMs",
    source=shared.SOURCE,
    at="Theorems 4 to 8",
    quick=QUICK,
    full=replace(QUICK, seeds=20, sizes=(*QUICK.sizes, (20, 6)), gaussian=(*QUICK.gaussian, (8, 5))),
    null=replace(QUICK, other=True),
)


def recover_all(job: Seed) -> Found:
    """Recovery from every exact predictor of the random models of one seed."""
    settings, errors = job.settings, []
    for d, k in settings.sizes:
        hmm = random_hmm(d, k, np.random.default_rng(job.seed))
        source = random_hmm(d, k, np.random.default_rng(job.seed + 1000)) if settings.other else hmm
        for task in shared.TWO:
            errors.append(parameter_error(hmm, *recover_hmm(source.predictor(task), task, k)).largest)
    candidates: dict[bool, list[int]] = {}
    pairwise, one_sided, mirror = [], [], []
    for d, k in settings.gaussian:
        ghmm = random_ghmm(d, k, np.random.default_rng(job.seed))
        source_g = random_ghmm(d, k, np.random.default_rng(job.seed + 1000)) if settings.other else ghmm
        found = read_ghmm_pairwise(lambda x, model=source_g: model.predictor("2|1", x), d, k, seed=job.seed)
        pairwise.append(min(parameter_error(ghmm, each.means, each.transitions).largest for each in found))
        for task in ("2x3|1", "1x2|3"):
            found = read_ghmm_two_tokens(lambda x, m=source_g, t=task: m.predictor(t, x), task, d, k, seed=job.seed)
            one_sided.append(min(parameter_error(ghmm, each.means, each.transitions).largest for each in found))
        found = read_ghmm_two_tokens(lambda x, m=ghmm: m.predictor("1x3|2", x), "1x3|2", d, k, seed=job.seed)
        candidates.setdefault(k == 2, []).append(sum(each.accepted for each in found))
        forced = np.linalg.pinv(householder(ghmm.M)) @ source_g.M @ source_g.T
        mirror.append(float(np.abs(forced.sum(0) + 1).max()))
    wrong = settings.other
    return Found(
        max(errors),
        max(pairwise),
        max(one_sided),
        0 if wrong else candidates[True][0],
        0 if wrong else max(candidates[False]),
        max(mirror),
    )


def exact_parts(settings: Settings) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The integer tables, and the twins of the counter-example on both tasks."""
    rng = np.random.default_rng
    nullity = [[jacobian_nullity(random_hmm(d, k, rng(1), 1.0), tasks) for d, k in SIZES] for tasks in TASKS]
    single = ("2|1", "3|1", "2x3|1", "1x3|2")
    gaussian = [[jacobian_nullity(random_ghmm(d, k, rng(1)), [task]) for d, k in SIZES] for task in single]
    root = np.linalg.cholesky(0.7 * np.eye(3) + 0.3).T
    models = [
        make_ghmm(random_ghmm(2, 2, rng(2)).M, np.array([[0.8, 0.2], [0.2, 0.8]])),
        make_ghmm(random_ghmm(4, 2, rng(4)).M, np.array([[0.8, 0.2], [0.2, 0.8]])),
        make_ghmm(root, circulant((0.6, 0.1, 0.3))),
        make_ghmm(np.concatenate([root, np.zeros((2, 3))]), circulant((0.6, 0.1, 0.3))),
    ]
    same = [predictor_difference(each, reflected_ghmm(each), "1x3|2") for each in models]
    apart = [predictor_difference(each, reflected_ghmm(each), "2x3|1") for each in models]
    return np.array(nullity), np.array(gaussian), np.array(same), np.array(apart)


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    found = lab.map(recover_all, [Seed(settings, seed) for seed in range(settings.seeds)])
    (parts,) = lab.map(exact_parts, [replace(settings, seeds=1, other=False)])
    return Results(parts[0], parts[1], tuple(found), parts[2], parts[3])


def expected_nullity() -> np.ndarray:
    k = np.array([size[1] for size in SIZES])
    rows = [(k - 1) ** 2] * 3 + [(k - 1) * (k - 2) // 2] * 2 + [0 * k] * 3
    return np.array(rows)


@study.claim(Exact(equals=0, within=0), at="Theorems 4, 6 and 7")
def integer_table(results: Results) -> np.ndarray:
    """The dimension of the ambiguity is (k − 1)², (k − 1)(k − 2)/2 or 0, as the tasks say.

    Nullity of the Jacobian minus the formula, for eight sets of tasks and four sizes.
    """
    return (results.nullity - expected_nullity()).ravel()


@study.claim(Exact(equals=0, within=0), at="Theorems 5 and 8")
def gaussian_table(results: Results) -> np.ndarray:
    """Gaussian HMMs have no flat direction for any of the tasks.

    Nullity of the Jacobian, for four tasks and four sizes.
    """
    return results.gaussian_nullity.ravel()


@study.claim(Share(above=0.5), at="Theorem 7", paper="identifiable")
def two_tokens_recover(results: Results) -> list[bool]:
    """Any of the three two-token predictors determines (O, T).

    Share of seeds whose largest parameter error over sizes and tasks is below 1e-6.
    """
    return [each.hmm_error < 1e-6 for each in results.found]


@study.claim(Share(above=0.5), at="Theorem 5", paper="identifiable")
def gaussian_neighbours_recover(results: Results) -> list[bool]:
    """E[x₂ | x₁] determines a Gaussian HMM.

    Share of seeds whose largest parameter error over sizes is below 1e-6.
    """
    return [each.pairwise_error < 1e-6 for each in results.found]


@study.claim(Share(above=0.5), at="Theorem 8", paper="identifiable")
def gaussian_two_tokens_recover(results: Results) -> list[bool]:
    """2⊗3|1 and 1⊗2|3 determine a Gaussian HMM.

    Share of seeds whose largest parameter error over sizes is below 1e-6.
    """
    return [each.one_sided_error < 1e-6 for each in results.found]


@study.claim(Share(above=0.5), at="Theorem 8", paper="one model", held=False)
def middle_token_identifies(results: Results) -> list[bool]:
    """As printed, 1⊗3|2 would determine a Gaussian HMM of two states; it does not.

    Share of seeds in which exactly one candidate is accepted.
    """
    return [each.candidates_two == 1 for each in results.found]


@study.claim(Share(above=0.5), at="Theorem 8")
def middle_token_has_two_models(results: Results) -> list[bool]:
    """With two states it always leaves two models, with three or more generic ones one.

    Share of seeds with two accepted candidates for k = 2 and one for k ≥ 3.
    """
    return [each.candidates_two == 2 and each.candidates_generic == 1 for each in results.found]


@study.claim(Exact(below=1e-13), at="Theorem 8", paper="no such pair")
def counter_example(results: Results) -> np.ndarray:
    """Two different Gaussian HMMs have the same E[x₁ ⊗ x₃ | x₂].

    Largest difference at 64 points, for (k, d) = (2, 2), (2, 4), (3, 3), (3, 5).
    """
    return results.twin_same


@study.claim(Exact(above=0.1), at="Theorem 8")
def counter_example_is_no_permutation(results: Results) -> np.ndarray:
    """They differ on E[x₂ ⊗ x₃ | x₁].

    Largest difference at 64 points.
    """
    return results.twin_apart


@study.claim(Share(above=0.5), at="Lemma 7")
def mirror_image_is_invalid(results: Results) -> list[bool]:
    """The mirror image would need transitions whose columns sum to −1.

    Share of seeds in which all column sums of (HM)†MT are −1 to 1e-8.
    """
    return [each.mirror_sum < 1e-8 for each in results.found]


@study.figure
def nullity_map(results: Results) -> Figure:
    figure, (axis,) = figures.new(width=6.5, title="Dimension of the family of HMMs with the same predictions")
    figures.heatmap(axis, results.nullity, x="hidden states k", y="", numbers=True, bar=False)
    axis.set_xticks(range(len(SIZES)), [str(k) for _, k in SIZES])
    axis.set_yticks(range(len(TASKS)), [", ".join(tasks) for tasks in TASKS])
    return figure
