"""The record of a training run: losses, measurements, averaged weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from torch import Tensor, nn

from sandlab.errors import BadInput

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["History"]

ModelType = TypeVar("ModelType", bound=nn.Module)


@dataclass
class History:
    """One model's training.

    steps       0, 1, 2, …: loss[i] was measured on the batch of step i, before its update
    loss        training loss of each step, in nats
    eval_steps  numbers of updates after which the model was evaluated (0: before the first)
    metrics     name → one value per evaluation
    stopped_at  number of updates after which early stopping froze the model, or None
    deviation   when not trained in float32: how far the loss of the final weights is from float32's, on one batch
    averaged    with `ema`: the exponential moving average of the weights, name → tensor
    best        with `keep`: the weights of the evaluation at which the metric was smallest, name → tensor
    """

    steps: np.ndarray
    loss: np.ndarray
    eval_steps: np.ndarray
    metrics: dict[str, np.ndarray]
    stopped_at: int | None = None
    deviation: float | None = None
    averaged: dict[str, Tensor] | None = field(default=None, repr=False)
    best: dict[str, Tensor] | None = field(default=None, repr=False)

    @property
    def final(self) -> dict[str, float]:
        """The last value of every metric."""
        return {name: float(values[-1]) for name, values in self.metrics.items() if len(values)}

    def apply_average(self, model: ModelType) -> ModelType:
        """Write the averaged weights into `model` and return it."""
        if self.averaged is None:
            raise BadInput("there are no averaged weights: train with ema=0.999 or so")
        model.load_state_dict(self.averaged, strict=False)
        return model

    def plot(self, *, levels: Mapping[str, float] | None = None, title: str = "", smooth: int = 1) -> Figure:
        """Training loss and metrics over steps, with horizontal lines for known losses (`levels`)."""
        from sandlab import figures

        losses = [name for name in self.metrics if name.endswith("loss")]
        others = [name for name in self.metrics if name not in losses]
        figure, axes = figures.new(2 if others else 1, title=title)
        with figures.style():
            if len(self.loss):
                window = max(1, min(smooth, len(self.loss)))
                curve = np.convolve(self.loss, np.ones(window) / window, mode="valid")
                axes[0].plot(self.steps[: len(curve)] + window // 2, curve, label="training", alpha=0.7, linewidth=1)
            for name in losses:
                axes[0].plot(self.eval_steps, self.metrics[name], label=name.replace("/", " ") + " (held out)")
            figures.levels(axes[0], levels or {})
            axes[0].set(xlabel="updates", ylabel="loss (nats)")
            axes[0].legend()
            for name in others:
                axes[1].plot(self.eval_steps, self.metrics[name], label=name.replace("/", " "))
            if others:
                axes[1].set(xlabel="updates")
                axes[1].legend()
        return figure
