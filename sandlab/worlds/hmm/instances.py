"""Named instances of this chapter, and random ones."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sandlab.errors import choice
from sandlab.worlds.hmm._matrices import as_rows
from sandlab.worlds.hmm.doubly_stochastic import random_doubly_stochastic, three_cycle
from sandlab.worlds.hmm.models import HMM, GaussianHMM

__all__ = ["HMM_INSTANCES", "make_ghmm", "make_hmm", "named_hmm", "random_ghmm", "random_hmm"]

PRINTED_O = (
    (0.23016003, 0.3549092, 0.16493077),
    (0.30716059, 0.06962305, 0.37321636),
    (0.2580854, 0.26965425, 0.22226035),
    (0.20459398, 0.3058135, 0.23959252),
)
PRINTED_O_TWIN = (
    (0.24120928, 0.35062535, 0.15816537),
    (0.28937626, 0.07433156, 0.38629218),
    (0.26077674, 0.26749114, 0.22173212),
    (0.20863772, 0.30755194, 0.23381033),
)
PRINTED_T = (
    (0.56893146, 0.35811118, 0.07295736),
    (0.35811118, 0.10805638, 0.53383243),
    (0.07295736, 0.53383243, 0.39321021),
)
PRINTED_T_TWIN = (
    (0.59740926, 0.30452087, 0.09806987),
    (0.30452087, 0.1331689, 0.56231024),
    (0.09806987, 0.56231024, 0.33961989),
)


def make_hmm(emissions: np.ndarray, transitions: np.ndarray, length: int = 3) -> HMM:
    """An HMM of two arrays."""
    return HMM(as_rows("transitions", transitions), length, as_rows("emissions", emissions))


def make_ghmm(centres: np.ndarray, transitions: np.ndarray, length: int = 3) -> GaussianHMM:
    """A Gaussian HMM of two arrays."""
    return GaussianHMM(as_rows("transitions", transitions), length, as_rows("centres", centres))


def random_hmm(d: int, k: int, rng: np.random.Generator, concentration: float = 0.5, spread: float = 1.0) -> HMM:
    """Columns of O ~ Dirichlet(concentration), T = Sinkhorn of N(0, spread²) logits."""
    return make_hmm(rng.dirichlet(np.full(d, concentration), size=k).T, random_doubly_stochastic(k, rng, spread))


def random_ghmm(d: int, k: int, rng: np.random.Generator, spread: float = 1.0) -> GaussianHMM:
    """Random unit centres, T = Sinkhorn of N(0, spread²) logits."""
    centres = rng.normal(size=(d, k))
    return make_ghmm(centres / np.linalg.norm(centres, axis=0), random_doubly_stochastic(k, rng, spread))


def _power_centres() -> np.ndarray:
    """√(2/3) [[1, −½, −½], [0, −√3/2, √3/2], [1/√2, …]]: unit centres on a cone around the third axis."""
    angles = np.array([0.0, 4, 2]) * np.pi / 3
    return np.sqrt(2 / 3) * np.stack([np.cos(angles), np.sin(angles), np.full(3, np.sqrt(0.5))])


def _k2() -> GaussianHMM:
    centres = np.random.default_rng(0).normal(size=(2, 2))
    return make_ghmm(centres / np.linalg.norm(centres, axis=0), np.array([[0.8, 0.2], [0.2, 0.8]]))


HMM_INSTANCES: dict[str, Callable[[], HMM | GaussianHMM]] = {
    "hmm-canon": HMM,
    "hmm-thm6": lambda: make_hmm(np.asarray(PRINTED_O), np.asarray(PRINTED_T)),
    "hmm-thm6-twin": lambda: make_hmm(np.asarray(PRINTED_O_TWIN), np.asarray(PRINTED_T_TWIN)),
    "hmm-2x2": lambda: make_hmm(np.array([[0.8, 0.2], [0.2, 0.8]]), np.array([[0.7, 0.3], [0.3, 0.7]])),
    "ghmm-canon": GaussianHMM,
    "ghmm-k2": _k2,
    "ghmm-power": lambda: make_ghmm(_power_centres(), (np.eye(3) + three_cycle()) / 2),
}


def named_hmm(name: str) -> HMM | GaussianHMM:
    """A model of this chapter by name: "hmm-canon", "hmm-thm6" (eq. 2.47), "hmm-2x2", "ghmm-canon", …"""
    make: Callable[[], HMM | GaussianHMM] = HMM_INSTANCES[choice("name", name, HMM_INSTANCES)]
    return make()
