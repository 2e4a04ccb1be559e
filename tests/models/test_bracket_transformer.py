import pytest
import torch

import sandlab as sl
from sandlab.models.bracket_transformer import BracketTransformer
from sandlab.worlds.dyck import Dyck


@pytest.mark.parametrize("arrangement", ["pre", "gpt", "theory"])
def test_it_is_causal_and_its_attention_is_recorded(arrangement: str) -> None:
    with sl.models.seeded(0):
        model = BracketTransformer(vocab=6, layers=2, width=12, mlp_width=8, arrangement=arrangement, init_std=0.3)
    tokens = Dyck(words="bounded").sample(3, rng=sl.rng(0)).inputs
    other = tokens.clone()
    other[:, 10:] = 0
    with torch.no_grad(), sl.record(model, "layers.*.attention.pattern") as tape:
        first = model(tokens)
        second = model(other)
    assert torch.equal(first[:, :10], second[:, :10]) and not torch.equal(first, second)
    assert len(tape) >= 2


def test_in_the_theory_s_arrangement_the_norm_sees_attention_alone() -> None:
    with sl.models.seeded(1):
        model = BracketTransformer(vocab=5, layers=1, width=10, mlp_width=6, arrangement="theory", init_std=0.5)
    tokens = Dyck(length=9).sample(2, rng=sl.rng(1)).inputs
    with torch.no_grad(), sl.record(model, "embed", "layers.0.attention", "layers.0.stream") as tape:
        model(tokens)
    layer = model.layers[0]
    mixed = tape["layers.0.attention"]
    normed = (mixed - mixed.mean(-1, keepdim=True)) / (mixed.var(-1, unbiased=False, keepdim=True) + 1e-5).sqrt()
    middle = normed + tape["embed"]
    with torch.no_grad():
        assert torch.allclose(tape["layers.0.stream"], middle + layer.mlp(middle), atol=1e-5)


def test_only_linear_positions_change_with_the_place() -> None:
    tokens = torch.tensor([[2, 2, 2]])
    for positions, differs in (("none", False), ("linear", True)):
        model = BracketTransformer(vocab=4, positions=positions)
        entries = model.inputs(tokens)[0]
        assert entries[:, :4].argmax(-1).tolist() == [2, 2, 2]
        assert bool((entries[1] != entries[2]).any()) == differs
    assert entries[:, 4].tolist() == pytest.approx([0, 1 / 6000, 2 / 6000])


def test_a_population_is_its_members() -> None:
    crowd = sl.learning.Population(lambda seed: BracketTransformer(vocab=5, width=8, mlp_width=8), seeds=range(3))
    tokens = Dyck(length=7).sample(2, rng=sl.rng(2)).inputs
    with torch.no_grad():
        together = crowd(tokens)
        for place in range(3):
            assert torch.allclose(together[place], crowd.member(place)(tokens), atol=1e-6)


def test_bad_options_are_refused() -> None:
    with pytest.raises(sl.BadInput, match="arrangement"):
        BracketTransformer(vocab=5, arrangement="middle")
