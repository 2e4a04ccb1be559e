"""Exact verifiers of regular and context-free languages against enumeration and another parser."""

from __future__ import annotations

import itertools

import pytest
import torch

import sandlab as sl
from sandlab.decoding.decoders.rejection import TokenwiseRejection
from sandlab.decoding.exact.trees import Tree, TreeGenerator
from sandlab.decoding.verifiers.base import LanguageVerifier
from sandlab.decoding.verifiers.earley import ContextFreeGrammar, EarleyVerifier
from sandlab.decoding.verifiers.regular import AutomatonVerifier
from sandlab.worlds.automata.machine import Automaton
from sandlab.worlds.dyck.language import Dyck

BRACKETS = "S = ( S ) S | [ S ] S |"
GRAMMARS = {
    "brackets": (BRACKETS, "()[]"),
    "palindromes": ("S = a S a | b S b | a | b |", "ab"),
    "sums": ("E = E + T | T\nT = T x F | F\nF = ( E ) | n", "n+x()"),
    "hidden left recursion": ("S = A S a | b\nA = |", "ab"),
    "useless rules": ("S = a S | b | U\nU = U a", "ab"),
    "nullable chain": ("S = A B C\nA = a |\nB = b | A\nC = c |", "abc"),
}


def derive(grammar: ContextFreeGrammar, longest: int) -> set[tuple[str, ...]]:
    """All words of at most `longest` terminals, by a fixpoint over the lengths of derived strings."""
    words: dict[str, set[tuple[str, ...]]] = {left: set() for left, _ in grammar.rules}
    changed = True
    while changed:
        changed = False
        for left, right in grammar.rules:
            parts = [words.get(symbol, {(symbol,)}) for symbol in right]
            found = {sum(choice, ()) for choice in itertools.product(*parts) if sum(map(len, choice)) <= longest}
            if not found <= words[left]:
                words[left] |= found
                changed = True
    return words[grammar.start]


def ask(verifier, strings, what="value") -> list[bool]:
    width = max(max(map(len, strings)), 1)
    tokens = torch.tensor([[*string, *[0] * (width - len(string))] for string in strings])
    lengths = torch.tensor([len(string) for string in strings])
    return (getattr(verifier, what)(tokens, lengths, torch.arange(len(strings))) > 0).tolist()


@pytest.mark.parametrize("name", GRAMMARS)
def test_earley_accepts_exactly_the_prefixes_of_words(name):
    text, letters = GRAMMARS[name]
    grammar = ContextFreeGrammar.parse(text)
    longest = 6 if len(letters) < 4 else 5
    words = {tuple(map(letters.index, word)) for word in derive(grammar, longest)}
    strings = [string for size in range(longest + 1) for string in itertools.product(range(len(letters)), repeat=size)]
    prefixes = {word[:size] for word in words for size in range(longest + 1)}
    bounded = EarleyVerifier(grammar, letters, length=longest)
    assert ask(bounded, strings) == [string in prefixes for string in strings]
    assert ask(bounded, strings, "outcome") == [string in words for string in strings]
    # Without a bound on the length, every prefix of a bounded word stays alive, and words stay words.
    free = EarleyVerifier(grammar, letters)
    alive = dict(zip(strings, ask(free, strings)))
    assert all(alive[string] for string in prefixes if len(string) <= longest)
    assert ask(free, strings, "outcome") == [string in words for string in strings]


def test_earley_agrees_with_lark_on_longer_random_strings():
    from lark import Lark, UnexpectedInput

    parser = Lark('start: "(" start ")" start | "[" start "]" start | ', parser="earley")

    def in_lark(text: str) -> bool:
        try:
            parser.parse(text)
        except UnexpectedInput:
            return False
        return True

    world = Dyck(depth=None, length=12, words="complete")
    words = world.sample(40, rng=sl.rng(0)).targets[:, :-1]
    damage = torch.rand(words.shape, generator=sl.rng(1)) < 0.05
    strings = torch.where(damage, torch.randint(0, 4, words.shape, generator=sl.rng(2)), words)
    verifier = EarleyVerifier(ContextFreeGrammar.parse(BRACKETS), "()[]")
    ours = ask(verifier, strings.tolist(), "outcome")
    assert ours == [in_lark(world.render(row)) for row in strings]
    assert 5 < sum(ours) < 38


def test_earley_on_brackets_is_the_dyck_verifier():
    world = Dyck(depth=None, length=6, words="complete")
    verifier = EarleyVerifier(ContextFreeGrammar.parse(BRACKETS), "()[]^$", length=6, eos=5, skip=1)
    exact = LanguageVerifier(world)
    stems = [(4, *rest) for size in range(5) for rest in itertools.product(range(6), repeat=size)]
    words = [
        tuple(row) for row in torch.cat([world.sample(50, rng=sl.rng(3)).inputs, torch.full((50, 1), 5)], 1).tolist()
    ]
    strings = (
        stems + words + [word[:cut] for word in words for cut in range(4, 8)] + [(*word[:-1], 1) for word in words]
    )
    ours, theirs = ask(verifier, strings), ask(exact, strings)
    # The world asks for exactly six brackets, the grammar for at most six: they differ on ends that come early.
    early = [string[-1] == 5 and len(string) < 8 for string in strings]
    assert all(mine == other or soon for mine, other, soon in zip(ours, theirs, early))
    assert sum(theirs) > 100


def test_a_grammar_that_cannot_be_used_is_refused():
    for text, message in (
        ("S = S a", "derives no string from 'S'"),
        ("S a b", "cannot read the rule"),
        ("  ", "has no rules"),
    ):
        with pytest.raises(sl.BadInput, match=message):
            ContextFreeGrammar.parse(text)
    with pytest.raises(sl.BadInput, match=r"terminal '\]'"):
        EarleyVerifier(ContextFreeGrammar.parse(BRACKETS), "()[")


MACHINES = {
    "parity": Automaton(transitions=((0, 1), (1, 0)), start=0, accepting=(0,)),
    "dead end": Automaton(transitions=((1, 2), (1, 0), (2, 2)), start=0, accepting=(1,)),
    "counter": Automaton(transitions=((1, 0, 0), (2, 1, 0), (3, 2, 1), (3, 3, 3)), start=0, accepting=(2,)),
}


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("length", [None, 5])
def test_an_automaton_accepts_exactly_the_prefixes_of_its_words(name, length):
    machine = MACHINES[name]
    letters = len(machine.transitions[0])
    longest = 8 if length is None else length
    words = [
        string
        for size in ([length] if length is not None else range(longest + 1))
        for string in itertools.product(range(letters), repeat=size)
        if machine.accepts(torch.tensor(string, dtype=torch.long))
    ]
    prefixes = {word[:size] for word in words for size in range(longest + 1)}
    strings = [string for size in range(6) for string in itertools.product(range(letters), repeat=size)]
    verifier = AutomatonVerifier(machine, length=length)
    assert ask(verifier, strings) == [string in prefixes for string in strings]
    assert ask(verifier, strings, "outcome") == [string in set(words) for string in strings]
    ended = AutomatonVerifier(machine, length=length, eos=letters)
    with_end = [(*string, letters) for string in strings]
    assert ask(ended, with_end) == ask(ended, with_end, "outcome") == [string in set(words) for string in strings]
    assert not any(ask(ended, [(*string, letters, 0) for string in strings]))


def test_decoding_under_an_automaton_gives_words_of_its_language():
    machine = MACHINES["counter"]
    done = TokenwiseRejection().generate(
        TreeGenerator(Tree.uniform(3, 9)),
        [[]] * 300,
        verifier=AutomatonVerifier(machine, length=9),
        max_new=9,
        rng=sl.rng(0),
    )
    assert bool(done.done.all()) and bool(machine.accepts(done.tokens).all())


def test_an_automaton_without_accepting_states_is_no_language():
    with pytest.raises(sl.BadInput, match="no accepting states"):
        AutomatonVerifier(Automaton(transitions=((0, 1), (1, 0))))
