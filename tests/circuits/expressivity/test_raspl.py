"""RASP-L: programs answer their tasks, illegal ones are told, compiled ones equal the interpreter."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

import sandlab as sl
from sandlab.circuits.expressivity.crasp import all_words
from sandlab.circuits.expressivity.raspl import RaspL
from sandlab.circuits.expressivity.raspl_compiler import compile_raspl, run_compiled_raspl
from sandlab.circuits.expressivity.raspl_examples import RASPL_EXAMPLES, raspl_example
from sandlab.circuits.expressivity.raspl_programs import raspl_program
from sandlab.errors import BadInput
from sandlab.worlds.expressivity.program_tasks import TASKS, ProgramTask


@pytest.mark.parametrize("task", TASKS)
def test_each_program_answers_its_task_at_any_size(task: str) -> None:
    world = ProgramTask(task, 1, 15, pool=20)
    batch = world.sample(100, rng=sl.rng(0))
    answers = raspl_program(world).run(batch.inputs.numpy())
    assert np.array_equal(answers[batch.mask.numpy()], batch.targets[batch.mask].numpy())


def test_programs_are_legal_but_for_those_that_add_indices() -> None:
    legal = {task: raspl_program(ProgramTask(task, 1, 9, pool=12)).legal for task in TASKS}
    assert [task for task in TASKS if not legal[task]] == ["copy-repeat", "addition"]


def test_parity_is_long_and_grows_with_the_size() -> None:
    sizes = {task: raspl_program(ProgramTask(task, 1, 20)).operations for task in ("majority", "count", "parity")}
    longer = raspl_program(ProgramTask("parity", 1, 40)).operations
    assert sizes["majority"] < sizes["count"] < sizes["parity"] < longer
    assert raspl_program(ProgramTask("majority", 1, 40)).operations == sizes["majority"]


def test_the_remainder_of_a_count_is_not_allowed() -> None:
    short = RaspL('answer = sel_width(select(tokens, 1, "==")) % 2')
    assert "no bound" in short.check()[0]


def test_indices_may_be_moved_by_one_and_compared() -> None:
    assert RaspL('answer = aggr(select(indices, indices - 1, "=="), tokens, "max")').legal
    assert not RaspL('answer = aggr(select(indices, indices - 2, "=="), tokens, "max")').legal
    assert not RaspL('answer = aggr(select(indices, 0, ">="), indices, "mean") > 2').legal


def test_means_are_interpreted() -> None:
    share = RaspL('answer = kqv(tokens, 2, tokens == 1, "<", "mean")')
    assert share.run(np.array([[1, 0, 1, 1]]))[0].tolist() == pytest.approx([1, 1 / 2, 2 / 3, 3 / 4])


PROGRAMS = {
    **RASPL_EXAMPLES,
    "odd minus": "answer = where(tokens == 1, 3 - tokens, tokens * 2 // 1 % 3)",
    "default": 'answer = aggr(select(tokens, 7, "=="), tokens + 5, "max") + 1',
}

MEANINGS = {
    "previous": lambda word, i: word[i - 1] if i else 0,
    "first": lambda word, i: word[0],
    "smallest": lambda word, i: min(word[: i + 1]),
    "count-so-far": lambda word, i: word[: i + 1].count(word[i]),
    "count-run": lambda word, i: len(list(itertools.takewhile(lambda x: x == word[i], reversed(word[: i + 1])))),
    "last-equal": lambda word, i: max((j for j in range(i) if word[j] == word[i]), default=0),
}


@pytest.mark.parametrize("name", RASPL_EXAMPLES)
def test_each_example_says_what_its_name_says_of_every_word(name: str) -> None:
    program, words = raspl_example(name), all_words(3, 6)
    wanted = [[MEANINGS[name](word, i) for i in range(len(word))] for word in words.tolist()]
    assert program.legal and np.array_equal(program.run(words), wanted)


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_word_of_up_to_seven_letters_gets_the_interpreters_answer(name: str) -> None:
    program, words = RaspL(PROGRAMS[name]), all_words(3, 7)
    answers = run_compiled_raspl(compile_raspl(program, 3, 7), torch.as_tensor(words))
    assert np.array_equal(answers.numpy(), program.run(words))


@pytest.mark.parametrize("task", TASKS)
def test_compiled_programs_answer_their_tasks(task: str) -> None:
    world = ProgramTask(task, 1, 4, pool=6)
    batch = world.sample(24, rng=sl.rng(1))
    model = compile_raspl(raspl_program(world), world.vocab, world.length)
    answers = run_compiled_raspl(model, batch.inputs)
    assert torch.equal(answers[batch.mask], batch.targets[batch.mask])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("answer = tokens ** 2", "not part of RASP-L"),
        ('answer = select(tokens, 1, "==")', "selector"),
        ('answer = select(tokens, 1, "==") or tokens', "selectors"),
        ("answer = nothing", "defined"),
        ('answer = aggr(select(tokens, 1, "=="), tokens, "median")', "not part"),
        ("def f(x):\n    return f(x)\nanswer = f(tokens)", "calls itself"),
        ("def f(x):\n    return x\nanswer = f(tokens, 2)", "takes x"),
        ("tokens", "name = expression"),
    ],
)
def test_what_is_not_a_program_is_refused(text: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        RaspL(text)


def test_a_mean_is_not_compiled() -> None:
    with pytest.raises(BadInput, match="finite"):
        compile_raspl(RaspL('answer = kqv(tokens, tokens, tokens, "==", "mean")'), 3, 5)
