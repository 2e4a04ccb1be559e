"""Shared by the tests of the models."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state


@pytest.fixture
def run_members() -> Callable[[list[nn.Module], Tensor], Tensor]:
    """Run models of one architecture as a population with a native member axis, on inputs (member, batch, time)."""

    def run(models: list[nn.Module], inputs: Tensor) -> Tensor:
        parameters, _ = stack_module_state(models)
        # Buffers are shared: they depend on the configuration alone.
        return functional_call(models[0], parameters, (inputs,))

    return run


@pytest.fixture
def run_vmapped() -> Callable[[list[nn.Module], Tensor], Tensor]:
    """The same through `vmap` over stacked parameters."""

    def run(models: list[nn.Module], inputs: Tensor) -> Tensor:
        parameters, _ = stack_module_state(models)
        return torch.vmap(lambda weights, x: functional_call(models[0], weights, (x,)))(parameters, inputs)

    return run
