"""Tokenwise rejection with backtracking, step by step on hand-made generators."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import sandlab as sl
from sandlab.decoding._session.session import Status
from sandlab.decoding.decoders.backtracking import Backtracking, rejected_prefixes
from sandlab.decoding.decoders.rejection import Rejection, TokenwiseRejection
from sandlab.decoding.decoders.sampling import Sampling
from sandlab.decoding.decoders.walks import VGB
from sandlab.decoding.exact.trees import Tree, TreeGenerator
from sandlab.decoding.generators.base import Generator
from sandlab.decoding.verifiers.base import FunctionVerifier, NoisyVerifier, RandomVerifier

EOS = 3


class Fixed(Generator):
    """Token 0 with probability 0.6, token 1 with 0.4 − ε, the end with ε; after `wall` tokens only the end."""

    vocab = 4

    def __init__(self, end: float = 0.0, wall: int | None = None) -> None:
        super().__init__()
        self.end, self.wall = end, wall

    def _next_log_probs(self, tokens, lengths, rows):
        probs = torch.tensor([0.6, 0.4 - self.end, 0.0, self.end], dtype=torch.float64).expand(len(lengths), 4).clone()
        if self.wall is not None:
            probs[lengths >= self.wall] = torch.tensor([0.0, 0.0, 0.0, 1.0], dtype=torch.float64)
        return probs.log()


def no_ones(tokens, lengths):
    """Rejects strings that contain token 1."""
    place = torch.arange(tokens.shape[1])
    return ~((tokens == 1) & (place < lengths.unsqueeze(1))).any(1)


def no_final_one(tokens, lengths):
    """Rejects strings that end in token 1."""
    return tokens.gather(1, lengths.unsqueeze(1) - 1).squeeze(1) != 1


def go(decoder, *, generator=None, verify=no_ones, prompts=200, max_new=8, **options):
    generator = Fixed() if generator is None else generator
    prompts = [[]] * prompts if isinstance(prompts, int) else prompts
    return decoder.generate(
        generator, prompts, verifier=FunctionVerifier(verify), max_new=max_new, rng=sl.rng(0), trace=True, **options
    )


def test_queries_are_sampled_tokens_plus_rewritten_tokens_and_the_generator_computes_no_more():
    generator = Fixed()
    done = go(Backtracking(quota=3, stride=2), generator=generator)
    kinds = [[event.kind for event in events] for events in done.events]
    sampled = torch.tensor([row.count("sampled") for row in kinds])
    rewritten = torch.tensor([row.count("argmax") for row in kinds])
    erased = torch.tensor([row.count("erased") for row in kinds])
    calls = done.counters["oracle_calls"]
    assert torch.equal(calls, sampled + rewritten)
    assert torch.equal(calls, (done.lengths - done.starts) + done.counters["tokens_erased"])
    assert torch.equal(erased, done.counters["tokens_erased"])
    assert torch.equal(rewritten, 2 * done.counters["backtracks"])
    assert generator.evaluations == int(calls.sum())


def test_erased_block_contains_the_token_just_sampled_and_is_rewritten_greedily():
    done = go(Backtracking(quota=5, stride=3), verify=no_final_one)
    for events in done.events:
        for place, event in enumerate(events):
            if event.kind == "rejected":
                after = [later.kind for later in events[place + 1 : place + 1 + 3]]
                length = event.position + 1
                erased = min(3, length)
                assert after[:erased] == ["erased"] * erased
                block = events[place + 1 + erased : place + 1 + erased + 3]
                assert [later.kind for later in block] == ["argmax"] * len(block)
                assert all(later.token == 0 for later in block)


def test_nothing_is_rejected_once_the_quota_is_gone():
    done = go(Backtracking(quota=2, stride=1, redo="none"))
    assert int(done.counters["backtracks"].max()) == 2
    assert torch.equal(done.counters["quota_left"], 2 - done.counters["backtracks"])
    spent = done.counters["quota_left"] == 0
    assert bool((done.tokens[~spent] != 1).all()) and bool((done.tokens[spent] == 1).any())


def test_an_end_token_while_rewriting_ends_the_string():
    done = go(Backtracking(quota=1, stride=4), generator=Fixed(wall=2), verify=no_final_one, eos=EOS)
    rejected = done.counters["backtracks"] > 0
    assert bool(rejected.any())
    assert all(done.string(row) == [0, 0, EOS] for row in torch.arange(200)[rejected].tolist())


def test_the_prompt_is_not_cut_unless_allowed_and_then_the_total_length_stays():
    prompts = [[0, 0, 1, 1]] * 50
    kept = go(Backtracking(quota=2, stride=3), prompts=prompts, max_new=4)
    assert bool((kept.tokens[:, :4] == torch.tensor([0, 0, 1, 1])).all())
    assert bool((kept.starts == 4).all())
    cut = go(Backtracking(quota=2, stride=3, keep_prompt=1, verify_prompt=True), prompts=prompts, max_new=4)
    assert bool((cut.starts == 1).all()) and bool((cut.lengths == 8).all())
    # Rejected at once: three tokens erased, three zeros written in their place.
    assert cut.tokens[:, :4].tolist() == [[0, 0, 0, 0]] * 50
    assert bool((cut.counters["tokens_erased"] >= 3).all())


def test_checking_before_sampling_also_checks_rewritten_tokens():
    # Token 0 itself is rejected: the greedy rewriting produces a string that is rejected again.
    def no_zeros(tokens, lengths):
        last = tokens.gather(1, (lengths - 1).clamp(min=0).unsqueeze(1)).squeeze(1)
        return (last != 0) | (lengths == 0)

    after = go(Backtracking(quota=6, stride=1), verify=no_zeros)
    before = go(Backtracking(quota=6, stride=1, check="before"), verify=no_zeros)
    assert int(after.counters["backtracks"].float().mean()) < 6
    assert bool((before.counters["backtracks"][before.tokens[:, 0] == 0] == 6).all())


def test_a_string_is_not_rejected_twice_when_repeats_are_forbidden():
    def no_zeros(tokens, lengths):
        last = tokens.gather(1, (lengths - 1).clamp(min=0).unsqueeze(1)).squeeze(1)
        return (last != 0) | (lengths == 0)

    done = go(Backtracking(quota=6, stride=1, check="before", forbid_repeat=True), verify=no_zeros)
    for row in range(len(done)):
        strings = [tuple(string) for string in rejected_prefixes_of(done, row)]
        assert len(strings) == len(set(strings))


def rejected_prefixes_of(done, row):
    alone = type(done)(**{**vars(done), "events": [done.events[row]]})
    return rejected_prefixes(alone, [[]])


def test_rejected_prefixes_are_replayed_from_the_trace():
    done = go(Backtracking(quota=3, stride=2), verify=no_final_one)
    strings = rejected_prefixes(done, [[]] * len(done))
    assert len(strings) == done.total("backtracks")
    assert all(string[-1] == 1 for string in strings)


def test_released_variant_is_greedy_at_the_first_positions_of_the_generation():
    done = go(Backtracking(quota=3, stride=2, redo="released"), verify=no_final_one)
    for events in done.events:
        erased = 0
        for event in events:
            erased += event.kind == "erased"
            if event.kind in ("argmax", "sampled"):
                assert (event.kind == "argmax") == (event.position < erased)


def test_a_string_over_its_budget_stops_and_says_so():
    for decoder in (Rejection(), TokenwiseRejection(), Backtracking(quota=100, stride=2), VGB()):
        done = go(decoder, verify=lambda tokens, lengths: torch.zeros(len(lengths)) + (lengths < 5), budget=30)
        assert bool((done.status == Status.BUDGET).any()) or decoder == Backtracking(quota=100, stride=2)
        assert int(done.counters["oracle_calls"].max()) <= 30


def test_random_verifier_rejects_with_the_probability_of_its_threshold():
    tree = TreeGenerator(Tree.uniform(2, 20))
    for threshold in (0.1, 0.5):
        done = Backtracking(quota=1, stride=1, threshold=threshold).generate(
            tree, [[]] * 4000, verifier=RandomVerifier(3), max_new=1, rng=sl.rng(0)
        )
        share = float(done.counters["backtracks"].double().mean())
        assert abs(share - threshold) < 4 * np.sqrt(threshold * (1 - threshold) / 4000)


@pytest.mark.parametrize("fresh", [False, True])
def test_noisy_verifier_errs_as_often_as_asked_and_alike_for_prefixes_and_children(fresh):
    exact = FunctionVerifier(no_ones)
    noisy = NoisyVerifier(exact, 0.05, seed=1, fresh=fresh)
    tokens = torch.randint(0, 3, (5000, 9), generator=sl.rng(5))
    lengths = torch.randint(1, 9, (5000,), generator=sl.rng(6))
    rows = torch.arange(5000)
    verdicts, truth = noisy.value(tokens, lengths, rows), exact.value(tokens, lengths, rows)
    assert abs(float((verdicts != truth).double().mean()) - 0.05) < 4 * np.sqrt(0.05 * 0.95 / 5000)
    again = noisy.value(tokens, lengths, rows)
    assert torch.equal(verdicts, again) != fresh
    assert torch.equal(noisy.outcome(tokens, lengths, rows), truth)
    if not fresh:
        children = noisy.children(tokens, lengths - 1, rows, 3)
        last = tokens.gather(1, lengths.unsqueeze(1) - 1)
        assert torch.equal(children.gather(1, last).squeeze(1), verdicts)


def test_a_noisy_verifier_with_a_prior_reports_the_probability_of_being_good():
    exact = FunctionVerifier(no_ones)
    noisy = NoisyVerifier(exact, 0.2, prior=0.3)
    tokens = torch.randint(0, 3, (200_000, 12), generator=sl.rng(0))
    # Three prefixes in ten are made good, so that the prior is true.
    tokens[:60_000][tokens[:60_000] == 1] = 0
    tokens[60_000:, 0] = 1
    lengths, rows = torch.full((200_000,), 11), torch.arange(200_000)
    values, truth = noisy.value(tokens, lengths, rows), exact.value(tokens, lengths, rows)
    levels = values.unique()
    assert len(levels) == 2
    for level in levels.tolist():
        assert float(truth[(values - level).abs() < 1e-9].mean()) == pytest.approx(level, abs=0.01)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Backtracking(quota=-1), "quota must be a whole number of at least 0, got -1"),
        (lambda: Backtracking(stride=0), "stride must be a whole number of at least 1, got 0"),
        (lambda: Backtracking(redo="argmin"), "redo must be one of 'argmax', 'none', 'released'"),
        (lambda: Sampling(top_p=1.5), "top_p must be a number between 0.0 and 1.0, got 1.5"),
        (lambda: VGB(returns="leaf"), "returns must be one of"),
        (lambda: Backtracking().generate(Fixed(), [[]], max_new=3, rng=sl.rng(0)), "asks a verifier"),
        (lambda: Sampling().generate(Fixed(), [], max_new=3, rng=sl.rng(0)), "there is no prompt"),
        (lambda: Sampling().generate(Fixed(), [[7]], max_new=3, rng=sl.rng(0)), "the prompt has token 7"),
        (lambda: Sampling().generate(Fixed(), [[]], max_new=0, rng=sl.rng(0)), "max_new must be at least 1"),
        (lambda: Sampling().generate(Fixed(), [[]], max_new=2, rng=sl.rng(0), budget=0), "budget must be at least 1"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(make, message):
    with pytest.raises(sl.BadInput, match=message):
        make()
