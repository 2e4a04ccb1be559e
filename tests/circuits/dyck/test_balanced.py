import pytest
import torch

import sandlab as sl
from sandlab.circuits.dyck.balanced import (
    balanced_dyck,
    random_balanced_scores,
    stack_like_scores,
    uniform_dyck,
    zero_head,
)
from sandlab.errors import BadInput
from sandlab.lenses.dyck.balance import (
    balance_gap,
    balance_report,
    balance_violation,
    contribution,
    pair_frequencies,
    seen_drift,
)
from sandlab.models.dyck.codes import BalanceTransformer, MinimalDyck, code_table, depth_codes, pair_code
from sandlab.worlds.dyck.language import Dyck


def worst_error(model: BalanceTransformer, world: Dyck, words: int = 6) -> float:
    batch = world.sample(words, rng=sl.rng(0))
    with torch.no_grad():
        return float((model.probs(batch.inputs) - world.oracle(batch).exp()).abs().max())


def test_codes_tell_type_and_level_of_every_bracket() -> None:
    tokens = torch.tensor([[4, 0, 2, 3, 0, 2, 3, 1, 1]])  # START ( [ ] ( [ ] ) )
    levels = [1, 2, 2, 2, 3, 3, 2, 1]
    codes = depth_codes(tokens, 2, 4)[0].tolist()
    assert codes[0] == 16
    for token, level, code in zip(tokens[0, 1:].tolist(), levels, codes[1:]):
        assert code == 2 * ((token // 2) * 4 + level - 1) + token % 2


@pytest.mark.parametrize("kind", ["type-depth", "type+depth", "type-angle"])
def test_every_code_has_an_embedding_of_its_own(kind: str) -> None:
    table = code_table(2, 4, kind)
    assert len({tuple(row.tolist()) for row in table}) == 17


@pytest.mark.parametrize(("types", "depth", "opening"), [(2, 4, 0.5), (3, 3, 0.7), (1, 2, 0.3), (2, 1, 0.5)])
def test_uniform_attention_generates_dyck_prefixes_exactly(types: int, depth: int, opening: float) -> None:
    world = Dyck(types=types, depth=depth, length=300, opening=opening)
    assert worst_error(balanced_dyck(types, depth, opening), world) < 1e-6
    assert worst_error(uniform_dyck(types, depth, opening), world) < 1e-5


@pytest.mark.gate(6)
@pytest.mark.parametrize("types", [1, 2, 3])
@pytest.mark.parametrize("depth", [1, 2, 4, 6])
def test_every_construction_has_the_oracle_s_loss_at_every_length(types: int, depth: int) -> None:
    scores = random_balanced_scores(types, depth, rng=sl.rng(depth))
    size = 2 * types * depth + 1
    coordinates = torch.eye(size).double() + 0.1 * torch.randn(size, size, generator=sl.rng(1), dtype=torch.float64)
    models = [
        balanced_dyck(types, depth),
        balanced_dyck(types, depth, scores=scores),
        balanced_dyck(types, depth, scores=scores, coordinates=coordinates),
        uniform_dyck(types, depth),
    ]
    for length in (5, 60, 400):
        world = Dyck(types=types, depth=depth, length=length)
        batch = world.sample(3, rng=sl.rng(length))
        for model in models:
            with torch.no_grad():
                loss = sl.worlds.base.cross_entropy(model(batch.inputs), batch)
            assert float(loss) == pytest.approx(world.optimal_loss(batch), abs=1e-6)


def test_twenty_random_balanced_attentions_are_all_perfect() -> None:
    world = Dyck(types=2, depth=4, length=400)
    maps = []
    for seed in range(20):
        scores = random_balanced_scores(2, 4, rng=sl.rng(seed))
        assert balance_gap(scores, 2, 4) < 1e-12
        model = balanced_dyck(scores=scores)
        assert worst_error(model, world, words=2) < 1e-6
        assert balance_violation(model) < 1e-12 and balance_violation(model, "max") < 1e-12
        maps.append(scores[:, 3].softmax(0))
    distances = torch.pdist(torch.stack(maps), 1) / 2
    assert float(distances.mean()) > 0.3  # perfect models, very different attention


def test_stack_like_attention_is_balanced_exact_and_points_at_the_bracket_to_be_closed() -> None:
    scores = stack_like_scores(2, 4)
    assert balance_gap(scores, 2, 4) == 0.0
    model = balanced_dyck(scores=scores)
    assert worst_error(model, Dyck(types=2, depth=4, length=400)) < 1e-6
    word = torch.tensor([[4, 0, 2, 0, 0, 1, 1, 3]])  # START ( [ ( ( ) ) ]
    with sl.record(model, "layers.0.pattern") as cache, torch.no_grad():
        model.probs(word)
    assert cache["layers.0.pattern"][0].argmax(-1)[1:].tolist() == [1, 2, 3, 4, 3, 2, 1]
    assert float(cache["layers.0.pattern"][0, -1, 1]) > 0.9


def unbalanced(noise: float = 0.3) -> BalanceTransformer:
    scores = random_balanced_scores(2, 4, rng=sl.rng(3))
    model = balanced_dyck(scores=scores)
    with torch.no_grad():
        model.layers[0].score[:17, :17] += noise * torch.randn(17, 17, generator=sl.rng(4), dtype=torch.float64)
    return model


def test_an_unbalanced_attention_is_wrong_and_its_violation_says_so() -> None:
    model = unbalanced()
    assert worst_error(model, Dyck(types=2, depth=4, length=200)) > 0.2
    assert balance_violation(model) > 0.05


def pumped(model: BalanceTransformer, pairs: int) -> float:
    """L1 distance of the outputs after ( or [ followed by many matched pairs: the top bracket is all that differs."""
    outputs = []
    for top in (0, 1):
        word = [4, 2 * top] + [0, 1] * pairs + [2, 3]
        with torch.no_grad():
            outputs.append(model.probs(torch.tensor([word]))[0, -1])
    return float((outputs[0] - outputs[1]).abs().sum())


def test_pumping_makes_an_unbalanced_model_forget_the_top_of_the_stack() -> None:
    balanced = balanced_dyck(scores=random_balanced_scores(2, 4, rng=sl.rng(3)))
    assert [pumped(balanced, n) for n in (0, 10, 300)] == pytest.approx([1.0, 1.0, 1.0], abs=1e-6)
    # The embedding's linear read-out clips, so look at the normed stream itself: it forgets like 1/n.
    model = unbalanced()

    def distance(pairs: int) -> float:
        seen = []
        for top in (0, 1):
            with sl.record(model, "layers.0.normed") as cache, torch.no_grad():
                model.probs(torch.tensor([[4, 2 * top] + [0, 1] * pairs + [2, 3]]))
            seen.append(cache["layers.0.normed"][0, -1])
        return float((seen[0] - seen[1]).norm())

    assert 0.05 < distance(1000) / distance(100) < 0.2


def test_the_output_decomposes_into_pair_residues_and_the_stack() -> None:
    model = unbalanced()
    u = contribution(model)
    word = [4, 0, 1, 0, 1, 2, 0, 1]  # START () () [ (): query closes type 0 at level 2
    with sl.record(model, "layers.0.z", "layers.0.scores") as cache, torch.no_grad():
        model.probs(torch.tensor([word]))
    weights = cache["layers.0.scores"][0, -1].exp()
    mixed = cache["layers.0.z"][0, -1] * weights.sum()
    centred = mixed - mixed.mean()
    codes = depth_codes(torch.tensor([word]), 2, 4)[0]
    assert torch.allclose(u[codes[-1]][codes].sum(0), centred, atol=1e-12)


def test_the_report_is_what_brute_force_over_strings_gives() -> None:
    model = unbalanced()
    report = balance_report(model)
    u = contribution(model)

    def code(kind: int, level: int, closing: int) -> int:
        return 2 * (kind * 4 + level - 1) + closing

    seen = u[code(1, 3, 1)]
    lengths = {}
    for first in range(2):
        for second in range(2):
            parts = [16, code(first, 1, 0), code(second, 2, 0), code(1, 3, 0), code(1, 3, 1)]
            lengths[first, second] = float(seen[parts].sum(0).norm())
    best = min(lengths, key=lengths.__getitem__)
    scale = min(value for string, value in lengths.items() if string[1] != best[1])
    assert report.scale[1, 1] == pytest.approx(scale)
    residue = float((seen[code(0, 4, 0)] + seen[code(0, 4, 1)]).norm())
    assert report.residues[1, 1, 3, 0] == pytest.approx(residue)


def test_under_the_gpt_arrangement_the_attention_term_fades_with_length() -> None:
    model = balanced_dyck()

    def size(pairs: int) -> float:
        with sl.record(model, "layers.0.z") as cache, torch.no_grad():
            model.probs(torch.tensor([[4, 0] + [0, 1] * pairs + [2, 3]]))
        return float(cache["layers.0.z"][0, -1].norm())

    assert size(1000) / size(100) == pytest.approx(204 / 2004, rel=1e-6)


def test_a_zero_head_makes_the_output_independent_of_attention() -> None:
    tokens = Dyck(length=20).sample(3, rng=sl.rng(5)).inputs
    model = zero_head(balanced_dyck(scores=random_balanced_scores(2, 4, rng=sl.rng(6))))
    with torch.no_grad():
        assert float(model.probs(tokens).abs().max()) == 0.0


def test_trained_and_theory_models_report_their_own_scores() -> None:
    model = MinimalDyck(types=2, depth=4, width=12)
    tokens = Dyck(length=30).sample(2, rng=sl.rng(7)).inputs
    with sl.record(model, "scores") as cache, torch.no_grad():
        model(tokens)
    scores, _ = model.contributions()
    codes = depth_codes(tokens, 2, 4)
    expected = scores[codes[0].unsqueeze(0), codes[0].unsqueeze(1)]
    assert torch.allclose(cache["scores"][0].double(), expected, atol=1e-5)


def test_pair_frequencies_are_those_of_a_long_word() -> None:
    for depth, opening in ((4, 0.5), (3, 0.7), (1, 0.5)):
        tokens = Dyck(types=2, depth=depth, length=500, opening=opening).sample(80, rng=sl.rng(12)).inputs[:, 1:]
        codes = depth_codes(tokens, 2, depth)
        closes = codes % 2 == 1
        levels = (codes // 2) % depth
        counted = torch.stack([(closes & (levels == level)).double().mean() for level in range(depth)])
        assert torch.allclose(counted, torch.from_numpy(pair_frequencies(depth, opening)), atol=0.01)


def test_the_seen_drift_is_the_growth_of_the_read_out_along_a_long_word() -> None:
    with sl.models.seeded(4):
        model = MinimalDyck(types=2, depth=2, width=10)
    u = contribution(model)
    row = (model.unembed.weight * model.norm.weight).detach().double()
    across = row[1] - row[3]
    words = Dyck(types=2, depth=2, length=1000).sample(120, rng=sl.rng(13)).inputs
    counts = torch.stack([torch.bincount(word, minlength=9) for word in depth_codes(words, 2, 2)]).double().mean(0)
    found = []
    for kind in range(2):
        seen = u[2 * (2 * kind + 1) + 1] @ across
        growth = float(counts[:8] @ seen[:8]) / 1000  # START is seen once only
        found.append(abs(growth) / abs(float(seen[0] - seen[4])))
    assert seen_drift(model) == pytest.approx(sum(found) / 2, rel=0.05)


def test_scores_that_are_not_balanced_are_refused() -> None:
    scores = random_balanced_scores(2, 4, rng=sl.rng(1))
    scores[pair_code(0, 1, 4), pair_code(1, 2, 4) + 1] += 0.5
    with pytest.raises(BadInput, match=r"score\(open\) − score\(close\)"):
        balanced_dyck(scores=scores)
