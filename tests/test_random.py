import pytest
import torch

import sandlab as sl


def test_the_same_seed_gives_the_same_draws_and_streams_differ() -> None:
    def draws(*name: str) -> torch.Tensor:
        return torch.rand(1000, generator=sl.rng(3, *name))

    assert torch.equal(draws(), draws())
    assert torch.equal(draws("data"), draws("data"))
    correlation = torch.corrcoef(torch.stack([draws(), draws("data"), draws("evaluation")]))
    assert (correlation - torch.eye(3)).abs().max() < 0.15


def test_draws_leave_the_global_generator_alone() -> None:
    before = torch.get_rng_state()
    torch.rand(10, generator=sl.rng(0))
    assert torch.equal(before, torch.get_rng_state())


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(sl.BadInput, match="seed must be a whole number of at least 0, got -1"):
        sl.rng(-1)
