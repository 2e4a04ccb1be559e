"""What a model predicts on a batch, in the shape the batch asks for: the ground of every other lens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from jaxtyping import Float
from torch import Tensor, nn

from sandlab.worlds.base import Batch, cross_entropy

__all__ = ["Loss", "evaluating", "log_predictions", "mean_loss"]

Loss = Batch | Callable[[nn.Module], Tensor]
"""What the landscape lenses measure: the cross-entropy on a batch, or any function from a model to a scalar."""


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Dropout off inside the block; the former mode comes back after it."""
    was_training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(was_training)


def log_predictions(model: nn.Module, batch: Batch) -> Float[Tensor, "*member example *time outputs"]:
    """log softmax of the logits at the positions that have targets (the last ones, when there are fewer targets).

    A population's member axis stays first. The autograd graph is kept; wrap in `torch.no_grad()` for plain numbers.
    """
    log_probs = model(batch.inputs).log_softmax(-1)
    return log_probs[..., -batch.mask.shape[-1] :, :] if batch.mask.ndim >= 2 else log_probs


def mean_loss(model: nn.Module, loss: Loss) -> Tensor:
    """The scalar that a landscape lens looks at: −mean log p(target) on a batch, or the given function of the model."""
    return cross_entropy(log_predictions(model, loss), loss) if isinstance(loss, Batch) else loss(model)
