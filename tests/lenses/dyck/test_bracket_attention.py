import pytest
import torch

import sandlab as sl
from sandlab.circuits.dyck.balanced import balanced_dyck
from sandlab.circuits.flip_flop.memory import memory_transformer
from sandlab.lenses.ablation import accuracy_with_attention, head_importance, prune_heads
from sandlab.lenses.dyck.bracket_attention import (
    attention_variation,
    bracket_preference,
    closing_accuracy,
    random_attention_variation,
    random_causal_attention,
    stack_likeness,
    variation_per_run,
)
from sandlab.worlds.dyck.language import Dyck
from sandlab.worlds.flip_flop.language import FlipFlopTransduction


def test_the_exact_circuit_closes_every_bracket_correctly() -> None:
    tokens = Dyck(length=60).sample(20, rng=sl.rng(0)).inputs
    found = closing_accuracy(balanced_dyck(), tokens, 2)
    assert float(found["argmax"]) == 1.0 and float(found["threshold"]) == 1.0


def test_closing_accuracy_counts_positions_with_an_open_bracket_only() -> None:
    class FirstType(torch.nn.Module):
        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            logits = torch.zeros(*tokens.shape, 4)
            logits[..., 1] = 3.0
            return logits

    tokens = torch.tensor([[4, 0, 2, 3, 1]])  # START ( [ ] ): tops are none, (, [, (, none
    found = closing_accuracy(FirstType(), tokens, 2)
    assert float(found["argmax"]) == pytest.approx(2 / 3)
    assert float(closing_accuracy(FirstType(), tokens[:, :3], 2, positions=[-1])["argmax"]) == 0.0


@pytest.mark.parametrize(("length", "value"), [(15, 2.886), (16, 2.997), (19, 3.295), (20, 3.386)])
def test_the_random_baseline_has_its_closed_form(length: int, value: float) -> None:
    assert random_attention_variation(length) == pytest.approx(value, abs=1e-3)
    maps = random_causal_attention(600, length, rng=sl.rng(1))
    assert torch.allclose(maps.sum(-1), torch.ones(600, length).double())
    pairs = (maps[:300] - maps[300:]).square().sum((-1, -2)).mean()
    assert float(pairs) == pytest.approx(value, rel=0.03)


def test_variation_is_the_mean_over_all_pairs_of_runs() -> None:
    maps = random_causal_attention(4, 6, rng=sl.rng(2))
    brute = torch.tensor([[float(((a - b) ** 2).sum()) for b in maps] for a in maps])
    assert variation_per_run(maps).tolist() == pytest.approx((brute.sum(1) / 3).tolist())
    assert attention_variation(maps) == pytest.approx(float(brute.sum() / 12))
    several = maps.view(2, 2, 6, 6)  # two runs on two words
    assert attention_variation(several) == pytest.approx(float((brute[0, 2] + brute[1, 3]) / 2))
    assert attention_variation(torch.stack([maps[0], maps[0]])) == 0.0


def test_attention_on_the_opener_is_perfectly_stack_like() -> None:
    tokens = Dyck(length=30).sample(10, rng=sl.rng(3)).inputs
    opener = sl.worlds.scan_brackets(tokens, 2).opener.clamp(min=0)
    perfect = torch.nn.functional.one_hot(opener, tokens.shape[1]).double()
    found = stack_likeness(perfect, tokens, 2)
    assert float(found["mass"]) == 1.0 and float(found["argmax"]) == 1.0
    uniform = torch.ones_like(perfect).tril() / torch.arange(1, tokens.shape[1] + 1).unsqueeze(1)
    assert float(stack_likeness(uniform, tokens, 2)["mass"]) < 0.3
    alike = stack_likeness(uniform, tokens, 2, same=True)["mass"]
    assert float(alike) > float(stack_likeness(uniform, tokens, 2)["mass"])


def test_a_head_on_closing_brackets_prefers_them_and_a_uniform_one_nothing() -> None:
    tokens = torch.tensor([[4, 0, 2, 3, 1]])  # START ( [ ] )
    uniform = torch.ones(5, 5).tril()
    uniform = (uniform / uniform.sum(-1, keepdim=True)).expand(1, 2, 5, 5)
    assert float(bracket_preference(uniform, tokens, 2)) == pytest.approx(0, abs=1e-6)
    closing = uniform.clone()
    closing[0, 1, 3:] = torch.tensor([0, 0, 0, 1.0, 0])  # the last two queries of the second head look at ]
    assert float(bracket_preference(closing, tokens, 2)) == pytest.approx((3 / 4 + 3 / 5) / 5)


def test_a_memory_circuit_needs_its_attention() -> None:
    model = memory_transformer(24)
    batch = FlipFlopTransduction(length=24, idle=0.8).sample(60, rng=sl.rng(4))
    assert accuracy_with_attention(model, batch, "uniform") < 0.9
    assert accuracy_with_attention(model, batch, "self") < 0.7
    importance = head_importance(model, batch)
    assert list(importance) == [("layers.0.attention.pattern", 0)] and next(iter(importance.values())) > 0.2
    assert prune_heads(model, batch) == []


class TwoOfAKind(torch.nn.Module):
    """Two heads that each carry the whole answer: either is dispensable, both are not."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = torch.nn.Module()
        self.attention.pattern = sl.models.HookPoint()

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        pattern = torch.eye(tokens.shape[1]).expand(len(tokens), 2, -1, -1)
        seen = self.attention.pattern(pattern) @ torch.nn.functional.one_hot(tokens, 3).float().unsqueeze(1)
        return seen.amax(1)


def test_importance_alone_and_together_differ_for_redundant_heads() -> None:
    tokens = torch.randint(1, 3, (10, 8), generator=sl.rng(5))
    batch = sl.worlds.Batch(tokens, tokens, torch.ones_like(tokens, dtype=torch.bool))
    model = TwoOfAKind()
    alone = head_importance(model, batch, names="attention.pattern")
    assert all(drop == 0 for drop in alone.values()) and len(alone) == 2
    assert len(prune_heads(model, batch, names="attention.pattern")) == 1
