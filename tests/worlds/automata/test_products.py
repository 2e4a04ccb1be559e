import itertools
import json

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import sandlab as sl

W = sl.worlds


def test_the_direct_product_runs_its_machines_side_by_side():
    left, right = W.Grid(size=3), W.Cyclic(size=4, moves="unit")
    both = W.direct_product(left, right)
    words = torch.randint(9, (20, 15), generator=sl.rng(0))
    first, second = words // 3, words % 3
    idle_left = W.Grid(size=3, stay=True)
    idle_right = W.Automaton(transitions=np.column_stack([right.table, np.arange(4)]))
    assert (both.run(words) == idle_left.run(first) * 4 + idle_right.run(second)).all()


@pytest.mark.parametrize("names", [("C2", "C3"), ("flip-flop", "C2"), ("Grid3", "D6")])
def test_the_monoid_of_a_direct_product_is_the_product_of_the_monoids(names):
    machines = [W.named_machine(name) for name in names]
    sizes = [len(semigroup) + (not semigroup.has_identity) for semigroup in (m.semigroup() for m in machines)]
    product = W.direct_product(*machines).semigroup()
    assert product.has_identity and len(product) == sizes[0] * sizes[1]


def test_a_cascade_reads_the_states_before_the_step():
    # Parity feeds a second counter: together they count modulo 4 in binary, low bit first.
    bit = W.Cyclic(size=2)
    counter = W.cascade_product([bit, bit], [lambda above, letter: letter, lambda above, letter: letter * above[0]])
    word = [1] * 9
    low, high = counter.run(word) // 2, counter.run(word) % 2
    assert (low + 2 * high).tolist() == [t % 4 for t in range(1, 10)]


def test_the_wreath_product_of_two_parities_is_the_group_d8():
    product = W.wreath_product(W.Cyclic(size=2), W.Cyclic(size=2))
    semigroup = product.semigroup()
    # C2 ≀ C2 = D8: order 8, not abelian, two elements of order 4.
    maps = semigroup.maps.astype(int)
    squares = np.take_along_axis(maps, maps, 1)
    of_order_four = (squares != np.arange(4)).any(1).sum()
    assert len(semigroup) == 8 and semigroup.is_group and not semigroup.is_abelian and of_order_four == 2


def test_generators_must_be_permutations():
    machine = W.from_generators([[1, 2, 0], [1, 0, 2]])
    assert len(machine.semigroup()) == 6
    with pytest.raises(sl.BadInput, match="permutations"):
        W.from_generators([[0, 0, 1]])


def test_letters_of_a_permutation_reset_machine_are_bijections_or_constants():
    machine = W.permutation_reset([[1, 2, 0], [0, 1, 2]], [2, 0])
    images = [len(set(row)) for row in machine.maps.tolist()]
    assert images == [3, 3, 1, 1]


def test_there_are_as_many_automata_as_tables():
    tables = {W.random_automaton(2, 2, rng=sl.rng(seed)).transitions for seed in range(300)}
    assert len(tables) == 2 ** (2 * 2) == len(list(itertools.product(range(2), repeat=4)))


def test_automata_are_read_from_names_expressions_and_json():
    assert W.read_machine("S4").states == 24
    assert W.read_machine("(ab)*").accepts("abab")
    assert W.read_machine('{"transitions": [[0, 1], [1, 0]], "start": 1}').start == 1
    named = W.read_machine(
        '{"transitions": {"even": {"a": "odd", "b": "even"}, "odd": {"a": "even", "b": "odd"}}, "accepting": ["even"]}'
    )
    assert named.accepts("aba") and named.names_of_states == ["even", "odd"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"transitions": {"p": {"a": "p"}, "q": {}}}', "state 'q' has no transition for letter 'a'"),
        ('{"transitions": {"p": {"a": "r"}}}', "unknown state 'r'"),
        ('{"transitions": {"p": {"a": "p", "b": "p"}}, "letters": ["a"]}', "unknown letter 'b'"),
        ('{"transitions": [[0, 1]]}', "must be a state between 0 and 0, got 1"),
        ('{"transition": [[0]]}', "did you mean 'transitions'"),
        ('{"start": 0}', "needs transitions"),
        ('{"transitions": {"p": {"a": "p"}}, "states": 1}', "states must be a list of names or numbers, got 1"),
        ('{"transitions": {"p": {"a": "p"}, "q": {"a": "p"}}, "states": ["p"]}', "unknown state 'q'"),
        ('{"transitions": [["p"]]}', "holds the numbers of states"),
        ('{"transitions": []}', "a row for every state"),
        ('{"transitions": {"p": {"a": "p"}}, "letters": []}', "the list of letters is empty"),
        ('{"transitions": {"p": {}}}', "the alphabet is empty"),
        ('{"transitions": [[], []]}', "the alphabet is empty"),
        ("{broken", "not a JSON automaton"),
        ("missing.json", "no file 'missing.json'"),
        ("D7", "even order"),
    ],
)
def test_a_bad_description_is_refused_with_one_sentence(text, words):
    with pytest.raises(sl.BadInput, match=r"^[^\n]+$") as refusal:
        W.read_machine(text)
    assert words in str(refusal.value)


LEAVES = st.sampled_from([None, True, -1, 0, 1, 2.5, "a", "b", "p", "0", ""])
ANYTHING = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abp0"), inner, max_size=3),
    max_leaves=8,
)
NAMED = st.dictionaries(
    st.sampled_from("p0"), st.dictionaries(st.sampled_from("ab"), st.sampled_from("p0"), max_size=2), max_size=2
)
TABLES = st.lists(st.lists(st.integers(-1, 2), max_size=2), max_size=2)
DOCUMENTS = st.fixed_dictionaries(
    {"transitions": NAMED | TABLES | ANYTHING},
    optional=dict.fromkeys(("start", "accepting", "states", "letters"), ANYTHING),
)


@settings(max_examples=400, deadline=None)
@given(DOCUMENTS)
def test_any_json_is_an_automaton_or_refused_with_one_sentence(document):
    machine, told = None, ""
    try:
        machine = W.from_json(json.dumps(document))
    except sl.BadInput as refusal:
        told = str(refusal)
    assert "\n" not in told
    assert machine is None or machine.run(torch.zeros(1, 5, dtype=torch.long)).max() < machine.states
