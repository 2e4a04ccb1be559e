import itertools

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import sandlab as sl
from sandlab.worlds.automata._running.buffer_pool import BufferPool
from sandlab.worlds.automata._running.machines import step_by_step
from sandlab.worlds.automata._running.words import lasting_words


def by_hand(table, word, start):
    """The definition: one table look-up after the other."""
    states = []
    for letter in word:
        start = table[start][letter]
        states.append(start)
    return states


@st.composite
def machines(draw, most=6):
    states, letters = draw(st.integers(1, most)), draw(st.integers(1, 4))
    entry = st.integers(0, states - 1)
    table = draw(st.lists(st.lists(entry, min_size=letters, max_size=letters), min_size=states, max_size=states))
    return sl.worlds.Automaton(transitions=table, start=draw(entry))


@given(machines(), st.integers(1, 70), st.integers(0, 1000))
@settings(max_examples=60, deadline=None)
def test_every_way_of_running_gives_the_states_of_the_table(machine, time, seed):
    words = torch.randint(machine.alphabet, (3, time), generator=sl.rng(seed))
    expected = [by_hand(machine.transitions, word, machine.start) for word in words.tolist()]
    assert machine.run(words).tolist() == expected
    maps = torch.as_tensor(machine.maps)[words]
    assert machine.runner.run_maps(maps, machine.start).tolist() == expected
    assert step_by_step(torch.as_tensor(machine.table), words, machine.start).tolist() == expected


@given(machines(), st.integers(1, 70), st.integers(0, 1000))
@settings(max_examples=40, deadline=None)
def test_samples_carry_the_states_of_their_letters(machine, time, seed):
    batch = machine.task(length=time).sample(5, rng=sl.rng(seed))
    expected = [by_hand(machine.transitions, word, machine.start) for word in batch.inputs.tolist()]
    assert batch.targets.tolist() == expected
    assert batch.inputs.is_contiguous() and batch.inputs.shape == (5, time)
    assert machine.optimal_loss(batch) == 0.0


def test_products_of_one_hot_matrices_are_the_run_of_the_table():
    machine = sl.worlds.random_automaton(5, 3, rng=sl.rng(1))
    word = torch.randint(3, (12,), generator=sl.rng(2))
    for start in range(5):
        vector = torch.eye(5, dtype=torch.float64)[start]
        for letter in word:
            vector = machine.matrices()[letter] @ vector
        assert int(vector.argmax()) == int(machine.run(word, start)[-1]) and vector.sum() == 1


def test_block_draws_are_independent_uniform_letters():
    machine = sl.worlds.Cyclic(size=3, length=7)
    words = machine.sample(40_000, rng=sl.rng(0)).inputs
    counts = np.bincount((words[:, 2:5] * torch.tensor([9, 3, 1])).sum(1).numpy(), minlength=27)
    # Pearson's statistic of 27 equally likely triples has mean 26 and standard deviation √52.
    assert ((counts - 40_000 / 27) ** 2 / (40_000 / 27)).sum() < 26 + 4 * 52**0.5


def test_memory_is_used_again_only_when_nobody_holds_it():
    buffers = BufferPool()
    first = buffers.empty(512, 1024)
    first.fill_(7)
    part, address = first[3:5], first.data_ptr()
    del first
    others = [buffers.empty(512, 1024).fill_(1) for _ in range(6)]
    assert (part == 7).all() and address not in [other.data_ptr() for other in others]
    del part, others
    assert len({buffers.empty(512, 1024).data_ptr() for _ in range(5)}) == 1
    machine = sl.worlds.Cyclic(size=3, length=1024)
    batches = [machine.sample(300, rng=sl.rng(seed)) for seed in range(4)]
    assert all((machine.run(batch.inputs) == batch.targets).all() for batch in batches)


def test_letter_probabilities_fixed_counts_patterns_and_lengths_are_kept():
    parity = sl.worlds.Cyclic(size=2, length=40)
    shifted = parity.task(probs=(0.2, 0.8)).sample(4000, rng=sl.rng(0))
    assert abs(shifted.inputs.double().mean() - 0.8) < 0.005
    counted = parity.task(count=7).sample(4000, rng=sl.rng(1))
    assert (counted.inputs.sum(1) == 7).all()
    assert abs(counted.inputs.double().mean(0) - 7 / 40).max() < 0.03
    ranged = parity.task(length=(5, 40)).sample(4000, rng=sl.rng(2))
    lengths = ranged.mask.sum(1)
    assert set(lengths.tolist()) == set(range(5, 41))
    assert (ranged.mask == (torch.arange(40) < lengths.unsqueeze(1))).all()
    half = sl.worlds.Abab(length=12, label="accept").sample(4000, rng=sl.rng(3))
    pattern = (half.inputs == torch.tensor([0, 1]).repeat(6)).all(1).double().mean()
    assert abs(pattern - (0.5 + 0.5 * 2**-12)) < 0.03
    assert sl.worlds.Abab(length=12, pattern_share=1.0).sample(3, rng=sl.rng(0)).inputs.sum() == 18


def test_revealed_labels_are_a_bernoulli_share():
    batch = sl.worlds.Cyclic(size=4, reveal=0.1, length=50).sample(4000, rng=sl.rng(0))
    assert abs(batch.mask.double().mean() - 0.1) < 0.005


def test_observations_replace_the_state():
    grid = sl.worlds.Grid(size=9, label="boundary", length=30)
    batch = grid.sample(50, rng=sl.rng(0))
    touching = (batch.truth["states"] == 0) | (batch.truth["states"] == 8)
    assert grid.outputs == 2 and (batch.targets == touching.long()).all()
    assert grid.optimal_loss(batch) == 0.0
    custom = sl.worlds.Cyclic(size=4, length=9).observe(lambda state: state // 2)
    batch = custom.sample(5, rng=sl.rng(0))
    assert (batch.targets == batch.truth["states"] // 2).all()


def test_the_scratchpad_interleaves_letters_and_states():
    machine = sl.worlds.Cyclic(size=3, length=6, scratchpad=True)
    batch = machine.sample(4, rng=sl.rng(0))
    assert batch.inputs.shape == (4, 11) and machine.vocab == 6
    assert (batch.inputs[:, ::2] == batch.truth["letters"]).all()
    assert (batch.inputs[:, 1::2] - 3 == batch.truth["states"][:, :-1]).all()
    assert (batch.targets[:, ::2] == batch.truth["states"]).all()
    assert batch.mask[:, ::2].all() and not batch.mask[:, 1::2].any()
    assert machine.optimal_loss(batch) == 0.0


def test_the_position_baseline_is_the_exact_distribution_of_the_label():
    machine = sl.worlds.Grid(size=4, length=5)
    words = torch.tensor(list(itertools.product(range(2), repeat=5)))
    states = machine.run(words)
    counted = torch.stack([torch.bincount(column, minlength=4) for column in states.T]).double() / 32
    assert torch.allclose(machine.label_probs(5), counted)
    batch = machine.sample(10, rng=sl.rng(0))
    assert torch.allclose(machine.baselines()["position"](batch)[3].exp(), counted)


def test_state_dependent_letters_are_uniform_among_the_legal_ones():
    machine = sl.worlds.Automaton(
        transitions=[[1, 0, 0], [2, 0, 1], [2, 1, 0]],
        legal=[[True, False, False], [True, True, False], [True, True, True]],
        length=30,
    )
    batch = machine.sample(4000, rng=sl.rng(0))
    before = torch.cat([torch.zeros(4000, 1, dtype=torch.long), batch.targets[:, :-1]], 1)
    for state in range(3):
        letters = batch.inputs[before == state]
        share = torch.bincount(letters, minlength=3).double() / len(letters)
        assert torch.allclose(share, torch.tensor(machine.letter_probs()[state]), atol=0.02)
    assert (machine.run(batch.inputs) == batch.targets).all()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"transitions": [[0, 1], [1]]}, "state 1 has transitions for 1 of 2 letters"),
        ({"transitions": [[0, 2], [1, 0]]}, "must be a state between 0 and 1, got 2"),
        ({"transitions": [[], []]}, "the alphabet is empty"),
        ({"transitions": []}, "one row per state"),
        ({"transitions": [[0.5]]}, "must be a state"),
        ({"transitions": [[0, 1], [1, 0]], "start": 2}, "start must be a whole number between 0 and 1, got 2"),
        ({"probs": (0.5,)}, "one entry for each of the 2 letters"),
        ({"probs": (-1.0, 2.0)}, "probabilities"),
        ({"length": 0}, "length must be"),
        ({"reveal": 1.5}, "reveal must be a number between"),
        ({"pattern": (2,)}, "pattern must be one of"),
        ({"count": 3, "probs": (0.5, 0.5)}, "choose one way of drawing letters"),
        ({"legal": [[False, False], [True, True]]}, "at least one legal letter"),
    ],
)
def test_a_bad_machine_is_refused_with_one_sentence(options, words):
    with pytest.raises(sl.BadInput, match=r"^[^\n]+$") as refusal:
        sl.worlds.Automaton(**options)
    assert words in str(refusal.value)


def test_unknown_letters_are_refused_with_the_alphabet():
    machine = sl.worlds.from_regex("(ab)*")
    with pytest.raises(sl.BadInput, match="unknown letter 'c': the alphabet is a, b"):
        machine.run("abc")
    with pytest.raises(sl.BadInput, match="unknown letter 7"):
        machine.run(torch.tensor([[0, 7]]))


def test_lasting_words_keep_the_most_states_within_reach_until_they_turn_to_uniform_letters():
    machine = sl.worlds.from_regex("(abab)*")
    graph = nx.DiGraph((state, goal) for state, row in enumerate(machine.transitions) for goal in row)
    reach = [len(nx.descendants(graph, state) | {state}) for state in range(machine.states)]
    words = lasting_words(machine, 2000, 20, sl.rng(0))
    states = machine.run(words)
    kept = torch.tensor([count == max(reach) for count in reach])[states].all(1)
    # Half of the words never turn; of the others hardly any stays by chance.
    assert 0.5 <= float(kept.float().mean()) < 0.7
    uniform = machine.run(torch.randint(2, (2000, 20), generator=sl.rng(1)))
    assert float(torch.tensor(reach)[uniform[:, -1]].float().mean()) < 1.01


def test_where_every_state_stays_within_reach_lasting_words_are_uniform():
    words = lasting_words(sl.worlds.named_machine("S4"), 500, 40, sl.rng(0))
    shares = torch.bincount(words.flatten(), minlength=8) / words.numel()
    assert torch.allclose(shares, torch.full((8,), 1 / 8), atol=0.01)
