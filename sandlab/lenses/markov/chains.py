"""Predictions of models trained on Markov data, measured against the known kernel.

Every measurement takes one model or a population, whose member axis then comes first.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor, nn

from sandlab.lenses.distances import divergence
from sandlab.lenses.predictions import evaluating, log_predictions
from sandlab.registry import register
from sandlab.worlds.base import Batch
from sandlab.worlds.markov.causal_graphs import InContextTree
from sandlab.worlds.markov.chain import MarkovChain
from sandlab.worlds.markov.interleaved import InterleavedChains

__all__ = ["chain_predictions", "enumerated_chain_loss", "lag_found", "prior_errors"]


@register("lenses")
def chain_predictions(model: nn.Module, chain: MarkovChain, batch: Batch) -> dict[str, Float[Tensor, "*member"]]:
    """A model on a binary chain: "expected loss", and the mean predicted P(1|0) and P(1|1), "after zero", "after one".

    The expected loss is the chain's entropy rate plus the mean divergence of the predictions from the kernel: the loss
    without the noise of the targets.
    """
    with evaluating(model), torch.no_grad():
        predicted = log_predictions(model, batch).double()
    one = predicted[..., 1].exp()
    return {
        "expected loss": chain.entropy_rate() + divergence(chain.oracle(batch), predicted).mean((-1, -2)),
        "after zero": one[..., batch.inputs == 0].mean(-1),
        "after one": one[..., batch.inputs == 1].mean(-1),
    }


def enumerated_chain_loss(p: float, q: float, length: int) -> Callable[[nn.Module], Tensor]:
    """The expected loss on the chain P(1|0) = p, P(0|1) = q as a function of the model.

    A sum over all words of length + 1 tokens, weighted by their probability, float64.
    """
    words = torch.tensor(list(itertools.product((0, 1), repeat=length + 1)))
    step = torch.tensor([[1 - p, p], [q, 1 - q]], dtype=torch.float64)
    start = torch.tensor([q, p], dtype=torch.float64) / (p + q)
    probs = start[words[:, 0]] * step[words[:, :-1], words[:, 1:]].prod(-1)

    def loss(model: nn.Module) -> Tensor:
        log_probs = model(words[:, :-1]).log_softmax(-1)
        return -(probs * log_probs.gather(-1, words[:, 1:, None]).squeeze(-1).mean(-1)).sum()

    return loss


@register("lenses")
def lag_found(
    world: InterleavedChains, batch: Batch, predicted: Float[Tensor, "*member example time states"]
) -> Float[Tensor, "*member time"]:
    """Share of examples, by position, whose predicted log-probabilities are nearest to those of the true lag.

    Only examples on which the lags predict different things count. The distance is KL(the lag's prediction ‖ given).
    """
    each = world.lag_predictions(batch.inputs).log()
    lags = torch.tensor(world.lags, device=batch.inputs.device)
    true = (lags == batch.truth["lag"].unsqueeze(-1)).long().argmax(-1)
    distance = divergence(each, predicted.unsqueeze(-2).expand(*predicted.shape[:-1], *each.shape[-2:]))
    # Lags that predict the same as the true one are as right as it is.
    own = each.gather(-2, true.view(-1, 1, 1, 1).expand(-1, each.shape[1], 1, each.shape[-1]))
    same = (each - own).abs().amax(-1) < 1e-9
    right = torch.where(same, distance, torch.inf).amin(-1) <= torch.where(same, torch.inf, distance).amin(-1)
    counted = ~same.all(-1)
    return torch.where(counted, right, False).double().sum(-2) / counted.sum(-2).clamp(min=1)


@register("lenses")
def prior_errors(
    model: nn.Module,
    world: InContextTree,
    concentrations: Sequence[float],
    *,
    rng: torch.Generator,
    examples: int = 4096,
) -> tuple[Float[Tensor, "*member prior"], Float[Tensor, "prior"]]:
    """Mean of max_a |f(a) − P(a|s_T)| on kernels of other Dirichlet priors: the model's, and the counting estimator's.

    The counting estimator is that of the world (it adds the world's concentration), whatever the kernels' prior.

    Source: Nichani, Damian & Lee 2024, "How transformers learn causal structure with gradient descent", Theorem 2.
    """
    errors, counting = [], []
    for concentration in concentrations:
        batch = replace(world, concentration=concentration).sample(examples, rng=rng)
        truth = batch.targets.squeeze(1)
        with evaluating(model), torch.no_grad():
            predicted = model(batch.inputs).softmax(-1).squeeze(-2).double()
        errors.append((predicted - truth).abs().amax(-1).mean(-1))
        counting.append((world.baselines()["graph"](batch).exp().squeeze(1) - truth).abs().amax(-1).mean())
    return torch.stack(errors, -1), torch.stack(counting)
