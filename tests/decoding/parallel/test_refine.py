"""Refinement and beam search with models whose answers are known."""

from __future__ import annotations

import itertools

import pytest
import torch

import sandlab as sl
from sandlab.decoding.parallel.beam import BeamSearch, distil
from sandlab.decoding.parallel.films import RefinementFilm, SpinFilm
from sandlab.decoding.parallel.refine import IterativeRefinement, drop_repeats
from sandlab.decoding.parallel.samplers import KGibbs
from sandlab.decoding.parallel.site_models import CliqueSites
from sandlab.models.base import seeded
from sandlab.models.parallel.encoder_decoder import EncoderDecoder
from sandlab.worlds.parallel.clique import IsingClique
from sandlab.worlds.parallel.translation import END, PAD, RESERVED, ToyTranslation

WORLD = ToyTranslation(longest=5)


def model(*, causal: bool = False, seed: int = 0) -> EncoderDecoder:
    with seeded(seed):
        made = EncoderDecoder(
            vocab=WORLD.vocab, source_length=5, target_length=11, width=16, heads=2, layers=1, causal=causal
        )
    return made.double().eval()


class Scripted(EncoderDecoder):
    """Predicts given tokens with given certainty, whatever it reads; counts its passes."""

    script: list[list[int]]
    calls = 0

    def decode(self, cache, tokens):
        row = self.script[min(self.calls, len(self.script) - 1)]
        self.calls += 1
        logits = torch.zeros(*tokens.shape, self.config.vocab, dtype=torch.float64)
        wanted = torch.tensor(row + [END] * (tokens.shape[1] - len(row)))
        return logits.scatter(-1, wanted.expand(tokens.shape).unsqueeze(-1), 5.0)


def scripted(*rows: list[int]) -> Scripted:
    with seeded(0):
        made = Scripted(vocab=WORLD.vocab, source_length=5, target_length=11, width=16, heads=2, layers=1).double()
    made.script = list(rows)
    return made


SOURCE = torch.full((1, 5), RESERVED)
LENGTH = torch.tensor([4])


def test_a_prediction_that_repeats_itself_stops_early() -> None:
    found = IterativeRefinement(8, drop=False).translate(
        scripted([10, 11, 12, END]), SOURCE, rng=sl.rng(0), true_lengths=LENGTH
    )
    assert found.kept[0, :4].tolist() == [10, 11, 12, END] and int(found.passes) == 2
    assert bool((found.kept[0, 4:] == PAD).all())


def test_repeats_are_put_back_between_passes_and_dropped_at_the_end() -> None:
    how = IterativeRefinement(3)
    found = how.translate(scripted([10, 10, 12, END]), SOURCE, rng=sl.rng(0), true_lengths=LENGTH)
    assert bool(found.remasked[0, 0, 1]) and int(found.history[1, 0, 1]) == int(found.history[0, 0, 1])
    assert found.kept[0, :4].tolist() == [10, 10, 12, END]
    assert found.tokens[0, :4].tolist() == [10, 12, END, PAD]


def test_stopping_on_the_remasked_sequence_returns_noise_and_the_corrected_rule_does_not() -> None:
    fixed = scripted([10, 10, 12, END])
    right = IterativeRefinement(6, drop=False).translate(fixed, SOURCE, rng=sl.rng(0), true_lengths=LENGTH)
    fixed.calls = 0
    wrong = IterativeRefinement(6, drop=False, stop="remasked").translate(
        fixed, SOURCE, rng=sl.rng(0), true_lengths=LENGTH
    )
    assert right.kept[0, :4].tolist() == [10, 10, 12, END]
    assert wrong.kept[0, 0] == 10 and wrong.kept[0, 1] == wrong.history[0, 0, 1] != 10


def test_a_repeat_that_is_certain_stays_when_it_is_protected() -> None:
    found = IterativeRefinement(2, protect=0.5, drop=False).translate(
        scripted([10, 10, 12, END]), SOURCE, rng=sl.rng(0), true_lengths=LENGTH
    )
    assert not bool(found.remasked.any())


OPTIONS = [
    {"reject": "linear"},
    {"reject": "bottom"},
    {"replace": "initial"},
    {"replace": "summed"},
    {"noise": "mask"},
    {"lengths": 3, "brevity": 0.6},
    {"lengths": 3, "length_weight": 1.0},
]


@pytest.mark.parametrize("options", OPTIONS)
def test_every_way_to_refine_gives_an_answer_of_a_tried_length(options: dict[str, object]) -> None:
    source = WORLD.sample(8, rng=sl.rng(1)).inputs
    found = IterativeRefinement(3, drop=False, **options).translate(model(), source, rng=sl.rng(2))
    lengths = (found.kept != PAD).sum(1)
    assert bool((lengths <= 11).all()) and bool((found.passes <= 3).all())
    assert found.lengths.shape[1] == options.get("lengths", 1)


def test_a_heavy_weight_of_the_length_takes_the_likeliest_one() -> None:
    source, net = WORLD.sample(8, rng=sl.rng(1)).inputs, model()
    with torch.no_grad():
        likely = net.encode(source).length_logits.argmax(-1) + 1
    found = IterativeRefinement(2, lengths=4, length_weight=1e6, drop=False).translate(net, source, rng=sl.rng(2))
    assert bool((found.lengths[:, 0] == likely).all())


def test_dropping_repeats_closes_the_gap() -> None:
    assert drop_repeats(torch.tensor([[5, 5, 6, 6, END, PAD]])).tolist() == [[5, 6, END, PAD, PAD, PAD]]


def brute_force(net: EncoderDecoder, source: torch.Tensor, longest: int) -> tuple[float, list[int]]:
    """The likeliest answer of at most so many tokens, by scoring all of them."""
    best = (-1e9, [0])
    words = [token for token in range(WORLD.vocab) if token not in (PAD, 2)]
    for length in range(1, longest + 1):
        for body in itertools.product([w for w in words if w != END], repeat=length - 1):
            answer = [*body, END]
            fed = torch.tensor([[2, *answer[:-1]]])
            logs = net.decode(net.encode(source), fed).log_softmax(-1)[0]
            best = max(best, (float(sum(logs[i, token] for i, token in enumerate(answer))), answer))
    return best


def test_a_wide_beam_finds_the_likeliest_short_answer() -> None:
    net = model(causal=True, seed=3)
    with torch.no_grad():
        net.embedding.weight[END] *= 6  # make short answers likely
    source = WORLD.sample(1, rng=sl.rng(3)).inputs
    with torch.no_grad():
        score, _ = brute_force(net, source, 2)
    found = BeamSearch(60).translate(net, source)
    assert float(found.scores) >= score - 1e-9


def test_cached_and_uncached_search_agree() -> None:
    net, source = model(causal=True), WORLD.sample(6, rng=sl.rng(4)).inputs
    first, second = (BeamSearch(3, cached=cached).translate(net, source) for cached in (True, False))
    assert bool((first.tokens == second.tokens).all())
    assert torch.allclose(first.scores, second.scores)


def test_distilled_pairs_are_the_teachers_own_translations() -> None:
    teacher = model(causal=True)
    pairs = distil(teacher, WORLD, 10, beam=2, batch=4, rng=sl.rng(5))
    again = BeamSearch(2).translate(teacher, pairs.sources).tokens
    assert len(pairs.sources) == 10 and bool((pairs.targets == again).all())


def test_films_have_a_frame_for_every_step(tmp_path) -> None:
    found = IterativeRefinement(3).translate(
        scripted([10, 10, 12, END], [10, 11, 12, END]), SOURCE, rng=sl.rng(0), true_lengths=LENGTH
    )
    film = RefinementFilm(WORLD, SOURCE, found)
    assert film.words(1)[1][1] == "#b9bcc0" and film.words(2)[1][2]
    assert film.save(tmp_path / "refine.gif").stat().st_size > 1000
    trace = KGibbs(10).run(
        CliqueSites(IsingClique(10, 4, 8.0, 5.0, 5.0)), torch.zeros(1, 10, dtype=torch.long), 2, rng=sl.rng(0)
    )
    spins = SpinFilm(trace, clique=4)
    assert [spins.mode(0), spins.mode(2)] == ["all minus", "all plus"]
    assert spins.save(tmp_path / "spins.gif").stat().st_size > 1000 and spins.strip(3) is not None


def test_passes_of_refinement_do_not_grow_with_the_length_and_those_of_search_do() -> None:
    from sandlab.lab._bench.measure import load_benchmark
    from sandlab.lab._exec.sources import PACKAGE

    rows = list(load_benchmark(PACKAGE.parent / "benchmarks" / "parallel_decoding.py").measure((4, 8, 12), rounds=1))
    assert [row["passes"] for row in rows] == [4, 4, 4]
    assert [row["baseline passes"] for row in rows] == [4, 8, 12]
