"""Seeds, configs and names that all models share."""

from __future__ import annotations

import pytest
import torch

import sandlab as sl
from sandlab.errors import BadInput
from sandlab.models.base import Config, Model, seeded
from sandlab.models.transformer import Transformer


def test_seeded_weights_depend_on_the_seed_alone_and_disturb_nothing() -> None:
    def draw(seed: int) -> torch.Tensor:
        with seeded(seed):
            return Transformer(vocab=3, length=4).embedding.weight

    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    first = draw(5)
    assert torch.equal(torch.rand(3), expected)
    assert torch.equal(draw(5), first)
    assert not torch.equal(draw(6), first)
    with pytest.raises(BadInput, match="seed must be"):
        draw(-1)


def test_options_are_checked_by_name() -> None:
    with pytest.raises(BadInput, match="Transformer has no option 'lenght': did you mean 'length'"):
        Transformer(vocab=3, lenght=4)
    with pytest.raises(BadInput, match="Transformer needs vocab, length"):
        Transformer()


def test_activations_lists_what_can_be_recorded() -> None:
    model = Transformer(vocab=3, length=4, layers=1)
    names = model.activations()
    assert "layers.0.attention.pattern" in names
    with sl.record(model, *names) as cache:
        model(torch.tensor([[0, 1]]))
    assert list(names) != [] and set(names) == set(cache)


def test_counts_and_places() -> None:
    model = Transformer(vocab=3, length=4, layers=0, width=5, norm="none", positions="none").double()
    assert model.parameter_count() == 3 * 5 + 5 * 3
    assert model.dtype == torch.float64
    assert model.device == torch.device("cpu")
    with pytest.raises(NotImplementedError):
        Model(Config())(torch.zeros(1))


@pytest.mark.parametrize("name", sl.names("models"))
def test_every_registered_model_has_a_summary_and_a_config(name: str) -> None:
    thing = sl.get("models", name)
    summary = sl.registry.summary(thing)
    assert len(summary) > 20
    if isinstance(thing, type) and issubclass(thing, Model):
        assert issubclass(thing.config_class, Config)
        assert thing.config_class.__doc__
