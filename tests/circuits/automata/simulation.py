"""What every circuit test needs: the truth by single look-ups, and the count of wrong states."""

import itertools

import torch


def truth(machine, words, start):
    """The definition: one table look-up after the other."""
    table = torch.tensor(machine.transitions)
    state, states = torch.full((len(words),), start), []
    for time in range(words.shape[1]):
        state = table[state, words[:, time]]
        states.append(state)
    return torch.stack(states, 1)


def all_words(letters, length):
    return torch.tensor(list(itertools.product(range(letters), repeat=length)))


def random_words(letters, length, count, seed):
    return torch.randint(letters, (count, length), generator=torch.Generator().manual_seed(seed))


@torch.no_grad()
def errors(model, machine, words, start=None):
    """Positions at which the model's state is not the automaton's."""
    expected = truth(machine, words, machine.start if start is None else start)
    labels = torch.as_tensor(machine.labels)[expected]
    wrong = 0
    for part, label in zip(words.split(512), labels.split(512)):
        wrong += int((model(part).argmax(-1) != label).sum())
    return wrong
