"""The studies of Gaussian HMMs: claims on made-up results, and small runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from claim_cases import check, verdicts
from stand_in import LAB

from sandlab.studies.hmm import density, gaussian_pairs, middle_token, mirror_images

NOISE = np.random.default_rng(0)


def test_claims_of_gaussian_pairs() -> None:
    error = np.array([[1e-9] * 24] * 3 + [[0.1] * 24])
    sampled = NOISE.uniform(0.98, 1.02, (2, 10, 2)) * np.array([0.1, 0.0316])[:, None, None]
    zeros = np.zeros((3, 3, 2))
    good = gaussian_pairs.Results(np.zeros((4, 24)), error, (10**4, 10**5), sampled, (0.5, 1.0, 2.0), zeros)
    bad = replace(good, error=error[::-1] * np.array([[1], [1e8], [1e8], [1]]), sampled=sampled[::-1])
    check(gaussian_pairs.study, good, bad)


def test_claims_of_mirror_images_and_the_misprint() -> None:
    good = mirror_images.compare(mirror_images.Settings())
    found = verdicts(mirror_images.study, good)
    assert found.pop("only-two-centres") == "fails"
    assert set(found.values()) == {"holds"}
    bad = replace(
        good, same=good.same + 1, sums=-good.sums, sphere_same=good.sphere_same + 1, saturation=good.saturation + 1
    )
    assert set(verdicts(mirror_images.study, bad).values()) == {"fails"}
    assert set(mirror_images.study.judge(good).figures) == {"planes", "space"}


def test_claims_of_the_middle_token() -> None:
    accepted = np.array([[2] * 20, [1] * 20, [2] * 20, [1] * 20])
    good = middle_token.Results(accepted, np.full((4, 20), 1e-9), np.ones(6), np.full(6, 99.0), np.zeros((2, 8, 2)))
    found = verdicts(middle_token.study, good)
    assert found.pop("identifies-as-printed") == "fails"
    assert set(found.values()) == {"holds"}
    bad = replace(good, accepted=3 - accepted, following=np.ones(6))
    assert verdicts(middle_token.study, bad)["identifies-as-printed"] == "holds"
    assert "holds" not in [verdicts(middle_token.study, bad)[name] for name in found]


def test_claims_of_the_density() -> None:
    sizes = (10**4, 10**5, 10**6)
    sampled = NOISE.uniform(0.98, 1.02, (3, 10)) * np.array([0.1, 0.0316, 0.01])[:, None]
    good = density.Results(sizes, np.full((3, 20), 1e-12), sampled)
    check(density.study, good, density.Results(sizes, np.ones((3, 20)), NOISE.uniform(0.98, 1.02, (3, 10))))


def test_small_runs_from_end_to_end() -> None:
    twins = replace(middle_token.QUICK, models=2, triples=20_000, seeds=2)
    found = middle_token.study.run(twins, LAB, "quick").results
    np.testing.assert_array_equal(found.accepted, np.array(middle_token.EXPECTED)[:, None] * np.ones((1, 2)))
    small = replace(density.QUICK, seeds=2, sample_seeds=2, sizes=(1000, 4000))
    assert density.study.run(small, LAB, "quick").results.exact.max() < 1e-6
    assert density.study.run(replace(small, other=True), LAB, "null").results.exact.min() > 0.01
    fits = replace(gaussian_pairs.QUICK, starts=2, evaluations=4, sizes=(200, 400), seeds=2, norm_seeds=1, points=40)
    for settings in (fits, replace(fits, stream_steps=3)):
        assert gaussian_pairs.study.run(settings, LAB, "quick").results.sampled.shape == (2, 2, 2)


def test_a_fit_to_stored_pairs_comes_nearer_to_the_truth_than_its_start() -> None:
    job = gaussian_pairs.Sample(gaussian_pairs.QUICK, 20_000, seed=4)
    start = replace(job, settings=replace(job.settings, evaluations=0))
    found, before = (np.linalg.norm(gaussian_pairs.sampled_fit(each)) for each in (job, start))
    assert found < 0.5 * before
