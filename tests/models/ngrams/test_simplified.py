"""The simplified transformer against loops written from its definition and against counting."""

from __future__ import annotations

import itertools
import math

import pytest
import torch

from sandlab.errors import BadInput
from sandlab.models.base import seeded
from sandlab.models.ngrams.simplified import SimplifiedTransformer


def law_by_loops(model: SimplifiedTransformer, row: list[int], last: int) -> torch.Tensor:
    """p at position `last` of one sequence: the definition, one position, head and coordinate at a time."""
    config = model.config
    first, second = (layer.attention for layer in model.layers)
    bos = config.boundary == "bos"
    width, heads = config.vocab + bos, config.heads
    row = ([config.vocab] if bos else []) + row[: last + 1]
    time = len(row)
    unit = torch.eye(width, dtype=torch.float64)
    stream = torch.zeros(time, (heads + 1) * width, dtype=torch.float64)
    for i in range(time):
        stream[i, :width] = unit[row[i]]
        for h in range(heads):
            weights = [math.exp(float(first.weight[h, i, j])) for j in range(i + 1)]
            copied = sum(w * unit[row[j]] for j, w in enumerate(weights)) / sum(weights)
            stream[i, (h + 1) * width : (h + 2) * width] = first.value[h] @ copied if config.value else copied
    asking = stream[-1].clone()
    if not config.query_skip:
        asking[:width] = 0
    query = second.query.weight
    matrix = query.T if config.merged else query.T @ second.key.weight
    keys = [i for i in range(bos, time) if not (config.mask_self and i == time - 1)] or [time - 1]
    weights = [math.exp(float(asking @ matrix @ stream[i])) for i in keys]
    probs = sum(w * unit[row[i]] for i, w in zip(keys, weights)) / sum(weights)
    return probs[: config.vocab]


OPTIONS = [
    {},
    {"value": False},
    {"merged": True},
    {"query_skip": False},
    {"mask_self": True},
    {"boundary": "bos"},
    {"boundary": "bos", "mask_self": True, "merged": True, "head_ratio": 0.5},
    {"heads": 0},
    {"heads": 3, "head_ratio": 0.5, "init_scale": 2.0},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_every_option_computes_its_definition(options: dict) -> None:
    with seeded(1):
        model = SimplifiedTransformer(vocab=3, length=7, read="all", floor=1e-12, **options).double()
        model.layers[0].attention.weight.data.normal_()
        tokens = torch.randint(3, (4, 6))
    logits = model(tokens)
    model.requires_grad_(False)
    assert logits.shape == (4, 6, 3)
    for row, last in itertools.product(range(4), range(6)):
        expected = (law_by_loops(model, tokens[row].tolist(), last) + 1e-12).log()
        torch.testing.assert_close(logits[row, last], expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_reading_the_last_position_equals_the_last_of_all(options: dict) -> None:
    with seeded(2):
        everywhere = SimplifiedTransformer(vocab=4, length=9, read="all", **options)
        tokens = torch.randint(4, (2, 5, 9))
    at_end = SimplifiedTransformer(vocab=4, length=9, read="last", **options)
    at_end.load_state_dict(everywhere.state_dict())
    assert at_end(tokens).shape == (2, 5, 1, 4)
    torch.testing.assert_close(at_end(tokens), everywhere(tokens)[..., -1:, :])


def test_zero_weights_give_the_frequencies_of_the_tokens() -> None:
    model = SimplifiedTransformer(vocab=3, length=8, heads=2, init_scale=0.0, floor=0.0)
    tokens = torch.tensor([[0, 1, 1, 2, 1, 0, 0, 0]])
    torch.testing.assert_close(model(tokens).exp(), torch.tensor([[[0.5, 0.375, 0.125]]]))


def test_matching_weights_give_the_follower_counts() -> None:
    """Head 1 copies the previous token, layer 2 compares it with the query's token: the bigram estimator."""
    vocab, length, strength = 3, 40, 40.0
    model = SimplifiedTransformer(vocab=vocab, length=length, heads=1, boundary="bos", floor=0.0).double()
    first, second = (layer.attention for layer in model.layers)
    width = model.config.token_width
    with torch.no_grad():
        previous = torch.arange(1, length + 1)
        first.weight[0, previous, previous - 1] = strength
        first.value[0] = torch.eye(width)
        second.query.weight.zero_()
        second.key.weight.zero_()
        second.query.weight[:width, :width] = strength * torch.eye(width)
        second.key.weight[:width, width:] = torch.eye(width)
    with seeded(3):
        tokens = torch.randint(vocab, (20, length))
    probs = model(tokens).exp()[:, 0]
    for row, predicted in zip(tokens.tolist(), probs):
        followers = [b for a, b in itertools.pairwise(row) if a == row[-1]]
        counted = torch.tensor([followers.count(s) for s in range(vocab)], dtype=torch.float64) / len(followers)
        torch.testing.assert_close(predicted, counted, rtol=0, atol=1e-12)


def test_initial_weights_have_the_stated_scales() -> None:
    with seeded(4):
        model = SimplifiedTransformer(vocab=50, length=6, heads=3, init_scale=2.0)
    first, second = (layer.attention for layer in model.layers)
    width, stream = 50, 200
    assert torch.equal(first.weight, torch.zeros(3, 6, 6))
    assert first.value.std().item() == pytest.approx(1 / math.sqrt(width), rel=0.05)
    assert second.query.weight.shape == (stream, stream)
    assert second.query.weight.std().item() == pytest.approx(2 / math.sqrt(stream), rel=0.05)
    assert second.key.weight.std().item() == pytest.approx(2 / math.sqrt(stream), rel=0.05)


def test_parameter_count_is_the_papers() -> None:
    length = 32
    model = SimplifiedTransformer(vocab=5, length=length, heads=2)
    assert model.parameter_count() == 2 * length**2 + 2 * 25 + 2 * 225


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_members_compute_what_each_computes_alone(options: dict, run_members, run_vmapped) -> None:
    models = []
    for seed in range(3):
        with seeded(seed):
            models.append(SimplifiedTransformer(vocab=3, length=6, read="all", **options).double())
            models[-1].layers[0].attention.weight.data.normal_()
    tokens = torch.randint(3, (3, 5, 6))
    alone = torch.stack([model(x) for model, x in zip(models, tokens)])
    torch.testing.assert_close(run_members(models, tokens), alone)
    torch.testing.assert_close(run_vmapped(models, tokens), alone)


def test_gradients_agree_with_finite_differences() -> None:
    with seeded(5):
        model = SimplifiedTransformer(vocab=3, length=5, heads=2, mask_self=True, boundary="bos").double()
        tokens = torch.randint(3, (2, 5))
    names, values = zip(*model.named_parameters())

    def loss(*values: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(model, dict(zip(names, values)), (tokens,)).sum()

    assert torch.autograd.gradcheck(loss, values)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"vocab": 0, "length": 4}, "vocab must be"),
        ({"vocab": 2, "length": 4, "read": "first"}, "read must be one of"),
        ({"vocab": 2, "length": 4, "boundary": "eos"}, "did you mean 'bos'"),
        ({"vocab": 2, "length": 4, "head_ratio": 0.0}, "head_ratio must be"),
        ({"vocab": 2, "length": 4, "head": 2}, "did you mean 'heads'"),
        ({"vocab": 2}, "needs length"),
    ],
)
def test_bad_options_are_refused_in_one_sentence(options: dict, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        SimplifiedTransformer(**options)


def test_bad_inputs_are_refused_in_one_sentence() -> None:
    model = SimplifiedTransformer(vocab=3, length=4)
    with pytest.raises(BadInput, match="sequence length must be 1 to 4, got 5"):
        model(torch.zeros(1, 5, dtype=torch.long))
    with pytest.raises(BadInput, match="tokens must be between 0 and 2, got 0 to 3"):
        model(torch.tensor([[0, 3]]))
    with pytest.raises(BadInput, match="whole numbers"):
        model(torch.zeros(1, 4))
