"""Cached decoding gives what recomputation from scratch gives, and computes no more than it must."""

from __future__ import annotations

import pytest
import torch

import sandlab as sl
from sandlab.decoding.decoders.backtracking import Backtracking
from sandlab.decoding.decoders.blocks import BlockBestOfN
from sandlab.decoding.decoders.rejection import BestOfN, EarlyAbort, ExhaustiveSearch, Rejection, TokenwiseRejection
from sandlab.decoding.decoders.sampling import Nucleus, Sampling
from sandlab.decoding.decoders.walks import VGB, SinclairJerrum, ValueGuided
from sandlab.decoding.generators.neural import ModelGenerator, RecomputingGenerator, generator_of
from sandlab.decoding.verifiers.base import FunctionVerifier, LanguageVerifier
from sandlab.models.transformer import Transformer
from sandlab.worlds.dyck.language import Dyck

WORLD = Dyck(depth=None, length=12, words="complete")


def model(**options) -> Transformer:
    torch.manual_seed(0)
    settings = {"vocab": 6, "length": 14, "layers": 2, "heads": 2, "width": 16, "init_std": 0.3, **options}
    return Transformer(**settings).eval()


def prompts(n: int) -> tuple[list[list[int]], torch.Tensor]:
    tokens, lengths = WORLD.prompts(n, 3, 9, rng=sl.rng(0))
    return [row[:cut] for row, cut in zip(tokens.tolist(), lengths.tolist())], 14 - lengths


def both(decoder, network, **options):
    starts, room = prompts(24)
    shared = {"verifier": LanguageVerifier(WORLD), "max_new": room, "eos": 5, "rng": sl.rng(1), **options}
    cached = decoder.generate(ModelGenerator(network), starts, **shared)
    plain = decoder.generate(RecomputingGenerator(network), starts, **{**shared, "rng": sl.rng(1)})
    return cached, plain


@pytest.mark.gate(12)
@pytest.mark.parametrize("positions", ["learned", "rotary", "none", "sinusoidal", "relative", "alibi"])
@pytest.mark.parametrize(
    "decoder",
    [
        Sampling(top_p=0.9),
        Backtracking(quota=4, stride=3, top_p=0.9),
        Backtracking(quota=3, stride=4, keep_prompt=1, redo="none"),
        TokenwiseRejection(max_draws=30),
        BestOfN(candidates=3),
    ],
    ids=lambda decoder: type(decoder).__name__,
)
def test_a_cache_that_rolls_back_gives_what_recomputation_gives(decoder, positions):
    cached, plain = both(decoder, model(positions=positions))
    assert torch.equal(cached.lengths, plain.lengths)
    assert [cached.string(row) for row in range(24)] == [plain.string(row) for row in range(24)]
    assert torch.allclose(cached.logprob, plain.logprob, atol=1e-4)


def test_a_walk_on_a_network_gives_what_recomputation_gives():
    cached, plain = both(VGB(max_steps=60), model(norm_kind="rms", gated=True), budget=40)
    assert [cached.string(row) for row in range(24)] == [plain.string(row) for row in range(24)]


def test_the_network_is_evaluated_once_per_query():
    network = model()
    starts, room = prompts(24)
    for decoder in (Sampling(), Backtracking(quota=4, stride=3, keep_prompt=1)):
        generator = ModelGenerator(network)
        done = decoder.generate(generator, starts, verifier=LanguageVerifier(WORLD), max_new=room, eos=5, rng=sl.rng(2))
        assert generator.evaluations == done.total("oracle_calls")
    # A second draw from the same distribution is a query, but no second evaluation.
    generator = ModelGenerator(network)
    done = TokenwiseRejection(max_draws=20).generate(
        generator, starts, verifier=LanguageVerifier(WORLD), max_new=room, eos=5, rng=sl.rng(2)
    )
    assert generator.evaluations < done.total("oracle_calls")


EVERY = [
    Sampling(),
    Nucleus(),
    BestOfN(candidates=2),
    BlockBestOfN(candidates=2, block=3),
    Rejection(max_tries=3),
    EarlyAbort(max_tries=5),
    TokenwiseRejection(max_draws=20),
    ExhaustiveSearch(),
    Backtracking(quota=4, stride=3),
    Backtracking(quota=4, stride=3, check="before", keep_prompt=1, forbid_repeat=True),
    Backtracking(quota=4, stride=3, redo="released"),
    ValueGuided(),
    VGB(max_steps=60),
    VGB(base="constrained"),
    VGB(returns="uniform-time", max_steps=30, restarts=2),
    SinclairJerrum(returns="final", max_steps=40),
]


class Watched(ModelGenerator):
    """Notes every distribution that is asked for."""

    def __init__(self, network) -> None:
        super().__init__(network)
        self.asked: list[tuple[int, tuple[int, ...]]] = []

    def next_logprobs(self, tokens, lengths, rows):
        listed = zip(rows.tolist(), tokens.tolist(), lengths.tolist())
        self.asked += [(row, tuple(string[:cut])) for row, string, cut in listed]
        return super().next_logprobs(tokens, lengths, rows)


@pytest.mark.parametrize("decoder", EVERY, ids=lambda decoder: type(decoder).__name__)
def test_every_query_asks_for_one_law_and_only_a_new_prefix_costs_a_pass(decoder):
    starts, room = prompts(12)
    generator = Watched(model())
    done = decoder.generate(
        generator, starts, verifier=LanguageVerifier(WORLD), max_new=room, eos=5, rng=sl.rng(2), budget=60
    )
    assert len(generator.asked) == done.total("oracle_calls")
    last: dict[int, tuple[int, ...]] = {}
    passes = 0
    for row, prefix in generator.asked:
        passes += last.get(row) != prefix
        last[row] = prefix
    # Tokens that were forced are scored in one pass at the end, for which the row may have to go back to their first.
    forced = int((done.counters["forced"] > 0).sum())
    assert passes <= generator.evaluations <= passes + 2 * forced


def held(generator: ModelGenerator) -> int:
    """Bytes of everything that the generator keeps."""
    slots = [tensor for slot in generator.cache.slots for tensor in (slot.keys, slot.values)]
    kept = [*slots, generator.read_tokens, generator.read_lengths, generator.last_logprobs]
    return sum(tensor.numel() * tensor.element_size() for tensor in kept)


def test_memory_per_prompt_depends_neither_on_how_long_it_takes_nor_on_the_number_of_prompts():
    network = model()

    def after(prompt_count: int, budget: int) -> float:
        generator = ModelGenerator(network)
        VGB(returns="final", max_steps=10**6).generate(
            generator,
            [[4]] * prompt_count,
            verifier=FunctionVerifier(lambda tokens, lengths: torch.ones(len(lengths))),
            max_new=12,
            rng=sl.rng(0),
            budget=budget,
        )
        return held(generator) / prompt_count

    assert after(4, 5) == after(4, 300) == after(32, 40)


def test_features_and_laws_of_one_prefix_cost_one_evaluation_and_equal_the_recorded_ones():
    network = model()
    starts, _ = prompts(8)
    width = max(map(len, starts))
    tokens = torch.tensor([row + [0] * (width - len(row)) for row in starts])
    lengths, rows = torch.tensor([len(row) for row in starts]), torch.arange(8)
    generator = ModelGenerator(network, points=["layers.0.resid_post", "ln_final"])
    generator.start(8, 14)
    probs = generator.next_logprobs(tokens, lengths, rows)
    for point in ("layers.0.resid_post", "ln_final"):
        expected = RecomputingGenerator(network).features(tokens, lengths, rows, point)
        assert torch.allclose(generator.features(tokens, lengths, rows, point), expected, atol=1e-5)
    assert generator.evaluations == 8
    assert torch.allclose(probs, RecomputingGenerator(network)._next_log_probs(tokens, lengths, rows), atol=1e-5)


def test_children_of_a_prefix_are_read_into_copies_of_the_cache():
    network = model()
    generator = ModelGenerator(network, points=["ln_final"])
    generator.start(3, 14)
    tokens = torch.tensor([[4, 0, 2, 0], [4, 2, 3, 0], [4, 0, 0, 0]])
    lengths, rows = torch.tensor([3, 3, 2]), torch.arange(3)
    before = generator.next_logprobs(tokens, lengths, rows)
    verifier = FunctionVerifier(lambda tokens, lengths: tokens[:, 0])

    class Reader(type(verifier)):
        def value(self, tokens, lengths, rows):
            return generator.features(tokens, lengths, rows, "ln_final")[:, 0]

    children = Reader(lambda tokens, lengths: tokens).children(tokens, lengths, rows, 6)
    for row in range(3):
        for letter in range(6):
            string = torch.tensor([[*tokens[row, : int(lengths[row])].tolist(), letter]])
            alone = RecomputingGenerator(network).features(
                string, torch.tensor([string.shape[1]]), torch.zeros(1, dtype=torch.long), "ln_final"
            )
            assert float(children[row, letter]) == pytest.approx(float(alone[0, 0]), abs=1e-5)
    assert torch.equal(before, generator.next_logprobs(tokens, lengths, rows))


def test_rows_may_be_asked_in_any_order_and_number():
    network = model()
    cached, plain = ModelGenerator(network), RecomputingGenerator(network)
    cached.start(10, 14)
    chance = sl.rng(7)
    tokens = torch.randint(0, 6, (10, 14), generator=chance)
    for _ in range(40):
        count = int(torch.randint(1, 11, (1,), generator=chance))
        rows = torch.randperm(10, generator=chance)[:count]
        lengths = torch.randint(1, 14, (count,), generator=chance)
        if int(torch.randint(0, 2, (1,), generator=chance)):
            tokens[rows, lengths - 1] = torch.randint(0, 6, (count,), generator=chance)
        ours = cached.next_logprobs(tokens[rows], lengths, rows)
        assert torch.allclose(ours, plain._next_log_probs(tokens[rows], lengths, rows), atol=1e-4)


def test_an_empty_prompt_and_an_unwatched_activation_are_refused():
    with pytest.raises(sl.BadInput, match="at least one token"):
        Sampling().generate(generator_of(model()), [[]], max_new=3, rng=sl.rng(0))
    generator = ModelGenerator(model())
    generator.start(1, 14)
    with pytest.raises(sl.BadInput, match="does not watch 'ln_final'"):
        generator.features(torch.zeros(1, 4, dtype=torch.long), torch.tensor([2]), torch.tensor([0]), "ln_final")
    with pytest.raises(sl.BadInput, match="no activation matches"):
        ModelGenerator(model(), points=["layers.9.resid_post"])


def test_rejection_on_a_network_returns_only_accepted_strings():
    done = Rejection(max_tries=50).generate(
        ModelGenerator(model()),
        [[4, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1]] * 8,
        verifier=LanguageVerifier(WORLD),
        max_new=3,
        eos=5,
        rng=sl.rng(3),
    )
    accepted = WORLD.contains(done.tokens, done.lengths)
    assert torch.equal(accepted, done.done)
