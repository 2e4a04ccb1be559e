"""Pictures of runs: what they show is what happened."""

from __future__ import annotations

import numpy as np
import pytest

import sandlab as sl
from sandlab.decoding.decoders.backtracking import Backtracking
from sandlab.decoding.decoders.blocks import BlockBestOfN
from sandlab.decoding.decoders.rejection import BestOfN, ExhaustiveSearch, TokenwiseRejection
from sandlab.decoding.decoders.walks import VGB
from sandlab.decoding.exact.trees import TableVerifier, Tree, TreeGenerator
from sandlab.decoding.traces import draw_trace, lifetimes
from sandlab.decoding.walk_film import WalkFilm, moments
from sandlab.figures import new

DECODERS = [
    Backtracking(quota=3, stride=2),
    BestOfN(candidates=3),
    BlockBestOfN(candidates=2, block=2),
    TokenwiseRejection(),
    ExhaustiveSearch(),
    VGB(),
    VGB(returns="final", max_steps=60),
]


def instance() -> tuple[Tree, list[np.ndarray]]:
    tree = Tree.random(2, 4, rng=sl.rng(0))
    accepted = (np.random.default_rng(0).uniform(size=16) < 0.5).astype(float)
    return tree, tree.verdicts(accepted)


def run(decoder, runs: int = 30):
    tree, verdicts = instance()
    return decoder.generate(
        TreeGenerator(tree), [[]] * runs, verifier=TableVerifier(verdicts, 2), max_new=4, rng=sl.rng(1), trace=True
    )


@pytest.mark.parametrize("decoder", DECODERS, ids=lambda decoder: type(decoder).__name__)
def test_the_last_moment_is_the_string_that_came_out(decoder):
    done = run(decoder)
    for row in range(len(done)):
        assert list(moments(done.events[row])[-1].string) == done.string(row)


@pytest.mark.parametrize("decoder", DECODERS, ids=lambda decoder: type(decoder).__name__)
def test_tokens_that_stay_are_the_string_and_the_others_were_erased(decoder):
    done = run(decoder)
    for row in range(len(done)):
        lives = lifetimes(done.events[row])
        kept = sorted((each for each in lives if not each.erased), key=lambda each: each.position)
        assert [each.token for each in kept] == done.string(row)
        restored = sum(each.kind == "restored" for each in lives)
        assert sum(each.erased for each in lives) == int(done.counters["tokens_erased"][row]) + restored
        assert sum(each.rejected for each in lives) == (
            int(done.counters["backtracks"][row]) if isinstance(decoder, Backtracking) else 0
        )
        assert all(each.begin < each.end for each in lives)


def test_a_token_that_was_put_back_is_counted_as_kept():
    done = run(BestOfN(candidates=3), 200)
    assert bool(((done.lengths + done.counters["tokens_erased"]) == done.counters["oracle_calls"]).all())


def test_a_film_has_one_frame_per_event_and_shades_what_was_visited(tmp_path):
    from PIL import Image

    tree, verdicts = instance()
    events = run(VGB(), 1).events[0][:6]
    film = WalkFilm(tree, verdicts, events, letters="ab")
    assert int(film.visits(len(events)).sum()) == len(events) + 1
    assert film.visits(0).argmax() == 0
    with Image.open(film.save(tmp_path / "walk.gif")) as written:
        assert written.n_frames == len(events) + 1
    assert film.title(0) == "0: the empty string"
    assert film.title(1) == f"1: writes {'ab'[events[0].token]}"
    figure = film.strip(4)
    assert len(figure.axes) == 4


def test_a_trace_draws_every_token_and_names_what_happened():
    done = run(Backtracking(quota=3, stride=2), 30)
    row = int(done.counters["backtracks"].argmax())
    _, (axis,) = new()
    draw_trace(axis, done.events[row], letter=lambda token: "ab"[token])
    assert len(axis.texts) == len(lifetimes(done.events[row]))
    assert {"sampled", "the likeliest", "taken back", "rejected"} == {
        text.get_text() for text in axis.get_legend().get_texts()
    }


def test_trees_too_large_to_draw_and_values_of_another_tree_are_refused():
    large = Tree.uniform(3, 6)
    with pytest.raises(sl.BadInput, match="at most 400 nodes to be drawn"):
        WalkFilm(large, large.values(np.ones(729)), [])
    with pytest.raises(sl.BadInput, match="one number per node"):
        WalkFilm(Tree.uniform(2, 3), [np.ones(1), np.ones(2)], [])
