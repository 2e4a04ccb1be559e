"""Scratchpads filled in by models that know, and by models that do not know, the automaton."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import sandlab as sl
from sandlab.decoding.decoders.scratchpad import scratchpad_decode
from sandlab.errors import BadInput
from sandlab.worlds.automata.catalogue import named_machine


class OneStep(nn.Module):
    """Looks at the last letter and the state written before it; nothing else. `wrong`: every state is off by one."""

    def __init__(self, machine, wrong=0):
        super().__init__()
        self.machine, self.wrong = machine, wrong
        self.table = torch.tensor(machine.transitions)

    def forward(self, tokens):
        letter = tokens[..., -1]
        state = tokens[..., -2] - self.machine.alphabet if tokens.shape[-1] > 1 else torch.full_like(letter, 0)
        following = (self.table[state, letter] + self.wrong) % self.machine.states
        return nn.functional.one_hot(following, self.machine.states).float().unsqueeze(-2)


@pytest.mark.parametrize("name", ["C3", "D6", "Grid4", "flip-flop"])
def test_one_step_of_the_automaton_is_enough_when_states_are_written_down(name):
    machine = named_machine(name, length=30, scratchpad=True)
    batch = machine.sample(20, rng=sl.rng(0))
    written = scratchpad_decode(OneStep(machine), machine, batch.truth["letters"])
    assert torch.equal(written, batch.truth["states"])


def test_errors_are_carried_along():
    machine = named_machine("C3", length=12, scratchpad=True)
    words = machine.sample(5, rng=sl.rng(1)).truth["letters"]
    written = scratchpad_decode(OneStep(machine, wrong=1), machine, words)
    assert torch.equal(written, (machine.run(words) + torch.arange(1, 13)) % 3)


def test_members_of_a_population_write_as_they_would_alone():
    machine = named_machine("C2", length=6, scratchpad=True)
    population = sl.learning.Population(lambda seed: sl.models.LSTM(vocab=4, outputs=2, width=6), seeds=range(3))
    words = machine.sample(7, rng=sl.rng(2)).truth["letters"]
    together = scratchpad_decode(population, machine, words)
    alone = [scratchpad_decode(member, machine, words) for member in population.members()]
    assert torch.equal(together, torch.stack(alone))


def test_a_machine_without_a_scratchpad_is_refused():
    with pytest.raises(BadInput, match="scratchpad"):
        scratchpad_decode(nn.Identity(), named_machine("C2"), torch.zeros(1, 3, dtype=torch.long))
