"""Parity by a linear recurrence with a gate of ±1."""

from __future__ import annotations

import torch
from torch import nn

from sandlab.models.base import seeded
from sandlab.models.state_space import StateSpace, StateSpaceMixer
from sandlab.registry import register

__all__ = ["parity_state_space"]


@register("circuits")
def parity_state_space(*, saturation: float = 60.0) -> StateSpace:
    """h_t = (1 − 2x_t) h_{t−1}, h₀ = 1: the sign of the state is the parity of the ones so far (float64).

    One layer of a selective state-space model on one-hot bits, whose gate 2σ(±c) − 1 is ±1 to the last digit at c =
    `saturation`. Class 1: an odd number of ones. With gates in [0, 1] no finite precision tracks parity: on 1, 1, 1,
    … the state converges.

    Source: Grazzi et al. 2024; Sarrof, Veitsman and Hahn 2024.
    """
    with seeded(0):
        model = StateSpace(
            vocab=2, width=2, outputs=2, embedding="one-hot", state_width=1, selective=True, signed=True, convolution=1,
            gated=False, activation="identity", learned_start=True, bias=False,
        ).double()  # fmt: skip
    mixer = model.layers[0].recurrence
    assert isinstance(mixer, StateSpaceMixer) and mixer.start is not None
    root = 2**0.5  # the norm gives a one-hot pair the length √2
    with torch.no_grad():
        for weight in mixer.parameters():
            nn.init.zeros_(weight)
        mixer.in_proj.weight.copy_(torch.eye(2) / root)
        mixer.shift.weight.copy_(torch.tensor([[saturation, -saturation]] * 2))
        mixer.show.weight.fill_(1.0)
        mixer.start.fill_(1.0)
        mixer.out_proj.weight.fill_(0.5)
        # The stream is e_x + h(1, 1): its sum is 3 after an even number of ones and −1 after an odd one.
        model.unembed.weight.copy_(torch.tensor([[1.0, 1.0], [-1.0, -1.0]]))
    return model
