"""What a model predicts on a batch, in the shape the batch asks for: what every other lens builds on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from jaxtyping import Float
from torch import Tensor, nn

from sandlab.learning.objectives import member_loss
from sandlab.learning.population import Population
from sandlab.worlds.base import Batch

__all__ = ["Loss", "evaluating", "log_predictions", "mean_loss", "named_weights"]

Loss = Batch | Callable[[nn.Module], Tensor]
"""What the landscape lenses measure: the cross-entropy on a batch, or any function from a model to a scalar."""


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Evaluation mode (no dropout) inside the block; the former mode is restored after it."""
    was_training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(was_training)


def log_predictions(model: nn.Module, batch: Batch) -> Float[Tensor, "*member_example_time outputs"]:
    """log softmax of the logits at the positions that have targets (the last ones, when there are fewer targets).

    A population's member axis stays first. The autograd graph is kept; use `torch.no_grad()` where it is not needed.
    """
    log_probs = model(batch.inputs).log_softmax(-1)
    return log_probs[..., -batch.mask.shape[-1] :, :] if batch.mask.ndim >= 2 else log_probs


def mean_loss(model: nn.Module, loss: Loss) -> Tensor:
    """The loss of a model: −mean log p(target) on a batch, or the given function of the model.

    A population's batch loss is one number per member.
    """
    return member_loss(model(loss.inputs), loss) if isinstance(loss, Batch) else loss(model)


def named_weights(model: nn.Module) -> tuple[dict[str, Tensor], int]:
    """The model's weights by name, and the number of leading axes: 1 (the members) for a population, else 0."""
    if isinstance(model, Population):
        return dict(model.stacked), 1
    return dict(model.named_parameters()), 0
