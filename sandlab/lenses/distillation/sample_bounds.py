"""Orders of growth of the samples that sparse parity takes, with and without a teacher, side by side."""

from __future__ import annotations

from sandlab.errors import integer, number
from sandlab.lenses.distillation.one_step import oneshot_samples, progressive_samples, teacher_samples

__all__ = ["corollary_samples", "informal_samples", "sample_bounds"]


def informal_samples(d: int, k: int, epsilon: float = 0.1) -> float:
    """2^k d² ε⁻² + k³: with an intermediate teacher, as the informal Theorem 22 puts it.

    Theorem 23 (`progressive_samples`) has k² log(dm̃/δ) for k³ and a factor k⁴ log(k/δ) more in the other term.
    """
    integer("k", k, low=1, high=integer("d", d, low=1))
    return float(2**k * d**2 / number("epsilon", epsilon, low=1e-12) ** 2 + k**3)


def corollary_samples(d: int, k: int) -> float:
    """d^(k + 7/3): the power of d in Corollary 5, constants left out."""
    integer("k", k, low=1, high=integer("d", d, low=1))
    return float(d ** (k + 7 / 3))


def sample_bounds(
    d: int, k: int, *, width: int = 128, epsilon: float = 0.1, delta: float = 0.1, power: float = 2.0
) -> dict[str, float]:
    """Every bound at one size: they are orders of growth, so only how they change with d and k means something.

    width   m̃ of the student; epsilon, delta: error and probability of failure; power: c of a final teacher that is
            d^(−c) near to the truth

    Source: Panigrahi et al. 2024, thesis section 4.2.6: Theorems 22 and 23, Lemma 65, Corollary 5.
    """
    return {
        "teacher (Lemma 65)": teacher_samples(d, k, epsilon, delta),
        "progressive (Theorem 23)": progressive_samples(d, k, width, epsilon, delta),
        "progressive (Theorem 22)": informal_samples(d, k, epsilon),
        "one-shot at least (Theorem 23)": oneshot_samples(d, k, width, power),
        "Corollary 5": corollary_samples(d, k),
    }
