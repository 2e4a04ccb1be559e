"""The linear recurrence h_t = a_t h_{t−1} + b_t by an associative scan: log₂ T steps instead of T."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import FunctionCtx

from sandlab.errors import choice

__all__ = ["linear_recurrence"]


def linear_recurrence(
    gates: Float[Tensor, "..."], drive: Float[Tensor, "*lead time channel"], *, method: str = "auto"
) -> Float[Tensor, "*lead time channel"]:
    """h_t = a_t ⊙ h_{t−1} + b_t with h₀ = 0, by a parallel "scan" or by "steps"; "auto": by steps on a CPU.

    The maps h ↦ a h + b compose associatively, (a', b') ∘ (a, b) = (a' a, a' b + b'), so neighbours are composed, the
    recurrence of half the length is solved the same way, and the skipped steps are filled in: depth ⌈log₂ T⌉, work
    proportional to T. The gradient is the same recurrence run backwards, g_t = ∂h_t + a_{t+1} g_{t+1}.

    Source: Blelloch 1993, "Prefix sums and their applications"; Martin and Cundy 2018.
    """
    choice("method", method, ("auto", "scan", "steps"))
    gates, drive = torch.broadcast_tensors(gates, drive)
    # A CPU core gains nothing from depth log₂ T and would pay for the scan's extra memory traffic.
    by_steps = method == "steps" or (method == "auto" and drive.device.type == "cpu")
    return _Recurrence.apply(gates, drive, by_steps)


def _steps(gates: Tensor, drive: Tensor) -> Tensor:
    hidden = drive[..., 0, :]
    steps = [hidden]
    for gate, push in zip(gates.unbind(-2)[1:], drive.unbind(-2)[1:]):
        hidden = torch.addcmul(push, gate, hidden)
        steps.append(hidden)
    return torch.stack(steps, -2)


def _scan(gates: Tensor, drive: Tensor) -> Tensor:
    time = drive.shape[-2]
    if time == 1:
        return drive
    odd_gates, odd = gates[..., 1::2, :], drive[..., 1::2, :]
    pairs = odd.shape[-2]
    even_gates, even = gates[..., 0::2, :], drive[..., 0::2, :]
    inner = _scan(odd_gates * even_gates[..., :pairs, :], torch.addcmul(odd, odd_gates, even[..., :pairs, :]))
    rest = even.shape[-2] - 1
    later = torch.addcmul(even[..., 1:, :], even_gates[..., 1:, :], inner[..., :rest, :])
    filled = torch.cat([even[..., :1, :], later], -2)
    # Interleave even and odd steps; an odd length has one more even step.
    both = torch.stack([filled[..., :pairs, :], inner], -2).flatten(-3, -2)
    return both if time % 2 == 0 else torch.cat([both, filled[..., -1:, :]], -2)


class _Context(FunctionCtx):
    saved_tensors: tuple[Tensor, Tensor]
    by_steps: bool


class _Recurrence(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(gates: Tensor, drive: Tensor, by_steps: bool) -> Tensor:
        if by_steps:
            return _steps(gates, drive)
        # A custom function may not return its own input.
        return _scan(gates, drive) if drive.shape[-2] > 1 else drive.clone()

    @staticmethod
    def setup_context(ctx: _Context, inputs: tuple[Tensor, Tensor, bool], output: Tensor) -> None:
        ctx.save_for_backward(inputs[0], output)
        ctx.by_steps = inputs[2]

    @staticmethod
    def backward(ctx: _Context, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        gates, hidden = ctx.saved_tensors
        last = torch.zeros_like(gates[..., :1, :])
        following = torch.cat([gates[..., 1:, :], last], -2)
        # Run backwards in time by the same function, so that it can be differentiated again.
        sent = _Recurrence.apply(following.flip(-2), gradient.flip(-2), ctx.by_steps).flip(-2)
        before = torch.cat([last, hidden[..., :-1, :]], -2)
        return sent * before, sent, None
