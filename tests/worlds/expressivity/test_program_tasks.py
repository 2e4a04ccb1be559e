"""The tasks of length generalisation say what they should, read back word by word."""

from __future__ import annotations

import pytest
import torch

import sandlab as sl
from sandlab.errors import BadInput
from sandlab.worlds.base import Batch
from sandlab.worlds.expressivity.program_tasks import TASKS, ProgramTask


def examples(world: ProgramTask, n: int = 200) -> list[tuple[list[str], list[str]]]:
    """Prompts and answers as lists of words; the answer without $."""
    batch = world.sample(n, rng=sl.rng(0))
    found = []
    for row, targets, mask in zip(batch.inputs, batch.targets, batch.mask):
        words = [world.letters[token] for token in row]
        answer = [world.letters[token] for token in targets[mask]]
        assert answer[-1] == "$"
        found.append((words[: words.index("#")], answer[:-1]))
    return found


def numbers(words: list[str]) -> list[int]:
    return [int(word) for word in words]


def value(digits: list[str], base: int) -> int:
    return sum(int(digit) * base**place for place, digit in enumerate(digits))


TRUTH = {
    "count": lambda p: [str(number) for number in range(int(p[0]), int(p[1]) + 1)],
    "copy-unique": lambda p: p,
    "copy-repeat": lambda p: p,
    "sort": lambda p: [str(number) for number in sorted(numbers(p))],
    "mode": lambda p: [min(sorted(set(p)), key=lambda letter: -p.count(letter))],
    "majority": lambda p: [str(int(2 * p.count("1") > len(p)))],
    "parity": lambda p: [str(p.count("1") % 2)],
}


@pytest.mark.parametrize("task", TRUTH)
def test_answers_are_right(task: str) -> None:
    for prompt, answer in examples(ProgramTask(task, 1, 9, pool=12)):
        assert answer == TRUTH[task](prompt)


def test_letters_of_unique_tasks_do_not_repeat_and_sizes_vary() -> None:
    prompts = [prompt for prompt, _ in examples(ProgramTask("copy-unique", 2, 9, pool=12))]
    assert all(len(set(prompt)) == len(prompt) for prompt in prompts)
    assert {len(prompt) for prompt in prompts} == set(range(2, 10))


@pytest.mark.parametrize("base", [2, 10])
def test_sums_are_right(base: int) -> None:
    for prompt, answer in examples(ProgramTask("addition", 1, 7, symbols_given=base)):
        cut = prompt.index("+")
        assert value(answer, base) == value(prompt[:cut], base) + value(prompt[cut + 1 :], base)
        assert len(answer) == cut + 1 == len(prompt) - cut


def test_hinted_sums_carry_the_same_markers_everywhere() -> None:
    for prompt, answer in examples(ProgramTask("addition-hints", 1, 6, symbols_given=10, pool=9)):
        cut = prompt.index("+")
        first, second = prompt[:cut], prompt[cut + 1 :]
        assert first[::2] == second[::2] == answer[::2][:-1]
        assert value(answer[1::2], 10) == value(first[1::2], 10) + value(second[1::2], 10)
        start = int(answer[0][1:])
        assert [int(word[1:]) for word in answer[::2]] == list(range(start, start + len(first) // 2 + 1))


@pytest.mark.parametrize("task", TASKS)
def test_a_longer_room_gives_longer_sequences_of_the_same_sizes(task: str) -> None:
    world = ProgramTask(task, 3, 3, room=8, pool=12)
    batch = world.sample(8, rng=sl.rng(1))
    assert batch.inputs.shape[1] == ProgramTask(task, 8, 8, pool=12).length == world.length
    assert int(batch.inputs.max()) < world.vocab and world.optimal_loss(batch) == 0.0


@pytest.mark.parametrize("task", TASKS)
def test_the_oracle_reads_the_prompt_alone(task: str) -> None:
    world = ProgramTask(task, 1, 7, pool=12, room=9)
    batch = world.sample(100, rng=sl.rng(2))
    best = world.oracle(batch)
    after = torch.arange(world.length) > (batch.inputs == world.separator).long().argmax(1, keepdim=True)
    noise = torch.randint(0, world.vocab, batch.inputs.shape, generator=sl.rng(3))
    spoilt = Batch(torch.where(after, noise, batch.inputs), noise, batch.mask, {})
    assert torch.equal(world.oracle(spoilt), best)
    assert (best.gather(2, batch.targets.unsqueeze(-1))[batch.mask] == 0).all()
    outside = best[~batch.mask & ~after].exp()
    assert torch.allclose(outside, torch.full_like(outside, 1 / world.vocab))
    cut = Batch(batch.inputs[:, :1], batch.targets[:, :1], batch.mask[:, :1], {})  # a prompt that has not ended
    assert torch.allclose(world.oracle(cut).exp(), torch.tensor(1 / world.vocab, dtype=torch.float64))


@pytest.mark.parametrize("task", TASKS)
def test_the_oracle_says_the_right_answer(task: str) -> None:
    base = 10 if task.startswith("addition") else None
    world = ProgramTask(task, 1, 6, symbols_given=base, pool=12)
    batch = world.sample(100, rng=sl.rng(4))
    unseen = Batch(batch.inputs, torch.zeros_like(batch.targets), batch.mask, {})
    for row, chosen in zip(batch.inputs, world.oracle(unseen).argmax(-1)):
        words, begin = [world.letters[token] for token in row], row.tolist().index(world.separator)
        prompt, answer = words[:begin], [world.letters[token] for token in chosen[begin:]]
        answer = answer[: answer.index("$")] if "$" in answer else answer
        assert answer == independent(task, prompt)


def independent(task: str, prompt: list[str]) -> list[str]:
    """The answer by Python's own arithmetic and sorting."""
    if not task.startswith("addition"):
        return TRUTH[task](prompt)
    step, cut = 1 + (task == "addition-hints"), prompt.index("+")
    digits = [part[step - 1 :: step] for part in (prompt[:cut], prompt[cut + 1 :])]
    total = str(sum(value(each, 10) for each in digits)).zfill(len(digits[0]) + 1)[::-1]
    if step == 1:
        return list(total)
    return [word for place, digit in enumerate(total) for word in (f"h{int(prompt[0][1:]) + place}", digit)]


@pytest.mark.parametrize("bad", [{"task": "nothing"}, {"longest": 0}, {"pool": 3}, {"room": 4}])
def test_impossible_tasks_are_refused(bad) -> None:
    with pytest.raises(BadInput):
        ProgramTask(**bad)
