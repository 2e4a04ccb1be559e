import itertools

import pytest
import torch
from simulation import all_words, errors, random_words

import sandlab as sl
from sandlab.circuits import complexity, gridworld_circuit, walk_by_boundaries

CHOICES = ["tree", "pool", "table"]


def walk(moves, size, start):
    for move in moves:
        start = min(max(start + move, 0), size - 1)
    return start


@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_the_boundary_algorithm_finds_the_state_of_every_short_walk(size):
    for start in range(size):
        for length in range(8):
            letters = (-1, 0, 1) if length <= 5 else (-1, 1)
            for moves in itertools.product(letters, repeat=length):
                trace = walk_by_boundaries(moves, size, start)
                state = walk(moves, size, start)
                assert trace.state == state == trace.state_by_minimum
                assert min(trace.lowest, trace.highest) == trace.unique
                tail = trace.sums[trace.unique :]
                assert tail.max() - tail.min() == size - 1


def test_the_last_touched_wall_is_where_the_walker_stood():
    for seed in range(50):
        moves = (2 * random_words(2, 30, 1, seed)[0] - 1).tolist()
        trace = walk_by_boundaries(moves, 4, start=seed % 4)
        before = trace.final - trace.first + 1
        if before >= 0:
            assert walk(moves[:before], 4, seed % 4) == trace.boundary


@pytest.mark.slow
@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_the_boundary_algorithm_finds_the_state_of_every_walk_of_up_to_ten_moves(size):
    for start in range(size):
        for letters, longest in (((-1, 1), 10), ((-1, 0, 1), 8)):
            for length in range(longest + 1):
                for moves in itertools.product(letters, repeat=length):
                    trace = walk_by_boundaries(moves, size, start)
                    assert trace.state == walk(moves, size, start) == trace.state_by_minimum


@pytest.mark.parametrize("choose", CHOICES)
@pytest.mark.parametrize("wall", [1, 3, 8])
def test_two_layers_simulate_the_walk_from_every_start(choose, wall):
    if choose == "table" and wall > 4:
        with pytest.raises(sl.BadInput, match=r"2\^25 cases"):
            gridworld_circuit(sl.worlds.Grid(size=9), 10, choose=choose)
        return
    for start, stay in itertools.product(range(wall + 1), (False, True)):
        machine = sl.worlds.Grid(size=wall + 1, start=start, stay=stay)
        model = gridworld_circuit(machine, 40, choose=choose, embed="sine" if start % 2 else "table")
        assert errors(model, machine, random_words(machine.alphabet, 40, 15, start)) == 0
        size = complexity(model)
        assert size.depth == 2 and size.heads == 2 * wall + 1


@pytest.mark.parametrize("wall", [1, 3, 8])
def test_two_layers_suffice_at_length_one_hundred(wall):
    machine = sl.worlds.Grid(size=wall + 1, start=wall)
    assert errors(gridworld_circuit(machine, 100), machine, random_words(2, 100, 10, 0)) == 0


def test_every_word_of_nine_letters():
    for start in range(4):
        machine = sl.worlds.Grid(size=4, start=start)
        assert errors(gridworld_circuit(machine, 9), machine, all_words(2, 9)) == 0


def test_a_box_walks_its_axes_side_by_side_in_the_same_two_layers():
    for start in (0, 5, 11):
        machine = sl.worlds.GridProduct(sizes=(3, 4), start=start)
        model = gridworld_circuit(machine, 40)
        assert errors(model, machine, random_words(5, 40, 40, start)) == 0
        assert model.config.layers == 2 and model.config.heads == (2, 5 + 7)
    cube = sl.worlds.GridProduct(sizes=(2, 3, 2), start=7)
    assert errors(gridworld_circuit(cube, 30, choose="table"), cube, random_words(7, 30, 20, 0)) == 0
    with pytest.raises(sl.BadInput, match="one axis"):
        gridworld_circuit(cube, 30, choose="pool")


def test_widths_of_the_variants():
    machine = sl.worlds.Grid(size=9)
    tree, pool = (gridworld_circuit(machine, 60, choose=choose) for choose in ("tree", "pool"))
    tokens = 60 + 8
    assert tree.config.hidden[0] == (4 * (2 * tokens + 1),)
    assert len(tree.config.hidden[1]) == 2 + 1 + 4 + 1 and len(pool.config.hidden[1]) == 5
    assert max(pool.config.hidden[1]) <= 11 * 9 and max(tree.config.hidden[1][2:]) <= 3 * 9 + 4
    sine = [gridworld_circuit(machine, length, embed="sine") for length in (20, 200)]
    assert sine[0].config.hidden == sine[1].config.hidden
    table = gridworld_circuit(sl.worlds.Grid(size=4), 60, choose="table")
    assert len(table.config.hidden[1]) == 3


def test_boundary_observations_are_read_out():
    machine = sl.worlds.Grid(size=9, label="boundary")
    for choose in ("tree", "pool"):
        assert errors(gridworld_circuit(machine, 30, choose=choose), machine, random_words(2, 30, 30, 0)) == 0


def test_an_anchor_without_its_share_misleads_the_search():
    """With γ_0 = 0 the anchor would be the most attractive position of height 0, however old it is."""
    machine = sl.worlds.Grid(size=4)
    model = gridworld_circuit(machine, 30)
    words = random_words(2, 30, 50, 0)
    with torch.no_grad():
        model.anchors[0, model.config.channels.index("share")] = 0
    assert errors(model, machine, words) > 0


def test_unmatched_heads_do_not_select_the_own_position():
    """A head whose height was never visited finds the latest visit of the nearest one, often not position t."""
    machine = sl.worlds.Grid(size=9)
    model = gridworld_circuit(machine, 60)
    words = random_words(2, 60, 20, 0)
    channels = model.config.channels
    with sl.record(model, "layers.1.attention.pattern", "layers.1.resid_mid") as cache, torch.no_grad():
        model(words)
    stream, pattern = cache["layers.1.resid_mid"], cache["layers.1.attention.pattern"]
    here = stream[..., channels.index("height 0")]
    total, itself = model.config.prefix - 1 + 60, torch.arange(pattern.shape[-1])
    selected = []
    for s in range(17):
        found = stream[..., channels.index(f"height 0 found {s}")]
        unmatched = (found - here - (s - 8) / (2 * total)).abs() > 1 / (8 * total)
        unmatched[:, : model.config.prefix] = False
        selected.append((pattern[:, s].argmax(-1) == itself)[unmatched])
    share = torch.cat(selected).double().mean()
    assert 0.1 < share < 0.6


def test_machines_that_do_not_walk_are_refused():
    with pytest.raises(sl.BadInput, match="step left, right or stay"):
        gridworld_circuit(sl.worlds.Cyclic(size=4), 10)
