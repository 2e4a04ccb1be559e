"""Documents with test cases, checked by running the functions they define; their parser on hand-made lines."""

from __future__ import annotations

import itertools
import random
import re

import pytest
import torch

import sandlab as sl
from sandlab.worlds.verifier.append_calls import FUNCTIONS
from sandlab.worlds.verifier.append_cases import OOD_NAMES, AppendCases
from sandlab.worlds.verifier.append_checking import (
    CaseError,
    can_be_completed,
    count_distinct,
    find_error,
    parse_cases,
    score_cases,
)
from sandlab.worlds.verifier.append_prefixes import label_prefixes

GOOD = "assert abc([1, 2], 3) == [1, 2, 3]"


def split(text: str) -> tuple[str, str, list[str]]:
    """Definition, name and test lines of the second function of a document."""
    _, _, second = text.partition("\n\ndef ")
    definition, _, tests = second.partition("\n\nList ")
    request, _, lines = tests.partition("\n")
    return "def " + definition, request.split("function ")[1].split(",")[0], lines.splitlines()


def documents(world: AppendCases, n: int, seed: int = 0) -> list[str]:
    batch = world.sample(n, rng=sl.rng(seed))
    return [world.render(row[mask]) for row, mask in zip(batch.inputs, batch.mask)]


def holds(definition: str, line: str) -> bool:
    # Under another name, so that a function called max does not call itself.
    name = definition[4 : definition.index("(")]
    space: dict[str, object] = {}
    exec(definition.replace(f"def {name}(", "def tested("), space)
    try:
        exec(line.replace(f"assert {name}(", "assert tested("), space)
    except (AssertionError, SyntaxError):
        return False
    return True


def test_without_errors_every_test_case_holds_when_it_is_run() -> None:
    texts = documents(AppendCases(errors=0.0), 120)
    for text in texts:
        definition, name, lines = split(text)
        assert len(lines) == 8
        assert all(line.startswith(f"assert {name}(") and holds(definition, line) for line in lines)
    assert len({split(text)[0].split("(", 1)[1] for text in texts}) == len(FUNCTIONS)


def test_the_demonstration_is_right_and_comes_first() -> None:
    for text in documents(AppendCases(), 20):
        first = text.partition("\n\nList 8 test cases of the above function f, one in each line:\n")
        lines = first[2].split("\n\n")[0].splitlines()
        assert len(lines) == 8 and all(holds(first[0], line) for line in lines)


def test_the_share_of_wrong_lines_is_the_parameter() -> None:
    wrong = total = missing = 0
    for text in documents(AppendCases(errors=0.4), 300, seed=1):
        definition, _, lines = split(text)
        wrong += sum(not holds(definition, line) for line in lines)
        total += len(lines)
        missing += len(lines) < 8
    # Three of four kinds of error are visible in a line; the fourth ends the list.
    assert abs(wrong / total - 0.3) < 0.04
    assert missing > 100


def test_meaningful_names_have_their_own_body() -> None:
    for text in documents(AppendCases(meaningful=1.0, errors=0.0), 100):
        definition, name, _ = split(text)
        body = definition.split("\n")[-1] if "pop" not in definition else "pop"
        if name in ("sum", "max", "min", "pop"):
            assert name in body
        if name in ("add", "sub", "mul"):
            assert {"add": "+", "sub": "-", "mul": "*"}[name] in body


def test_text_and_tokens_are_inverse_and_a_prompt_asks_for_append() -> None:
    world = AppendCases()
    for text in documents(world, 10):
        assert world.render(torch.tensor(world.encode(text))) == text
    prompt = world.prompt("qzk", rng=sl.rng(3))
    text = world.render(prompt)
    assert prompt[0] == world.start_token
    assert text.endswith("List 8 test cases of the above function qzk, one in each line:\n")
    assert "def qzk(l, item):\n    assert type(l) is list\n    l.append(item)\n    return l\n" in text
    assert all(len(name) == 3 for name in OOD_NAMES)


def test_bad_parameters_are_refused() -> None:
    with pytest.raises(sl.BadInput, match="name must be three lower-case letters"):
        AppendCases().prompt("ab", rng=sl.rng(0))
    with pytest.raises(sl.BadInput, match="functions must be one of"):
        AppendCases(functions=("append", "reverse"))
    with pytest.raises(sl.BadInput, match="'§' has no token"):
        AppendCases().encode("§")


@pytest.mark.parametrize(
    ("line", "kind", "position"),
    [
        ("abc([1], 2) == [1, 2]", CaseError.LINE_WITHOUT_ASSERT, 1),
        ("assert abd([1], 2) == [1, 2]", CaseError.FUNCTION_NOT_TESTED, 9),
        ("assert abc([1], 2 == [1, 2]", CaseError.FUNCTION_CALL_NO_CLOSING_PARENTHESIS, 27),
        ("assert abc([1,, 3], 2) == [1, 2]", CaseError.FUNCTION_CALL_SYNTAX_ERROR, None),
        ("assert abc([x], 2) == [1, 2]", CaseError.FUNCTION_CALL_UNKNOWN_VARIABLE, None),
        ("assert abc([1*2], 2) == [1, 2]", CaseError.FUNCTION_CALL_VALUE_ERROR, None),
        ("assert abc(1, 2) == [1, 2]", CaseError.FIRST_ARGUMENT_TYPE_ERROR, 11),
        ("assert abc([1]) == [1, 2]", CaseError.ONLY_ONE_ARGUMENT, 14),
        ("assert abc([1], 2, 3) == [1, 2]", CaseError.MORE_THAN_TWO_ARGUMENTS, 20),
        ("assert abc([1], 2)", CaseError.NO_ASSERTION_EQUALITY, 18),
        ("assert abc([1], 2) == [1, 2", CaseError.EXPECTED_OUTPUT_NO_CLOSING_BRACKET, 27),
        ("assert abc([1], 2) == [1, 2]]", CaseError.EXPECTED_OUTPUT_SYNTAX_ERROR, None),
        ("assert abc([1], 2) == l", CaseError.EXPECTED_OUTPUT_UNDEFINED_VARIABLE, 22),
        ("assert abc([1], 2) == [1]*2", CaseError.EXPECTED_OUTPUT_VALUE_ERROR, 22),
        ("assert abc([1], 2) == 12", CaseError.EXPECTED_OUTPUT_TYPE_ERROR, 22),
        ("assert abc([1], 2) == [2, 1]", CaseError.ASSERTION_FAILURE, 23),
        ("assert abc([1], 2) == [1, 3]", CaseError.ASSERTION_FAILURE, 26),
    ],
)
def test_every_kind_of_error_is_found_where_it_begins(line: str, kind: CaseError, position: int | None) -> None:
    before = GOOD + "\n"
    error = find_error(before + line + "\n", "abc", cases=3)
    assert error is not None and error[1] == kind
    if position is not None:
        assert error[0] == len(before) + position


def test_too_few_and_too_many_lines() -> None:
    assert find_error((GOOD + "\n") * 8, "abc") is None
    assert find_error((GOOD + "\n") * 7, "abc") == (7 * len(GOOD + "\n"), CaseError.FEWER_TEST_CASES_THAN_EXPECTED)
    assert find_error((GOOD + "\n") * 8 + "def", "abc") == (
        8 * len(GOOD + "\n"),
        CaseError.EXTRA_CONTENT_AFTER_TASK_COMPLETION,
    )


def test_score_counts_distinct_correct_cases_per_name() -> None:
    other = "assert abc([4], 5) == [4, 5]"
    wrong = "assert abc([4], 6) == [4, 5]"
    text = "\n".join([GOOD, other, wrong, GOOD, "", "what", "is", "this", other])
    assert [case.correct for case in parse_cases(text, "abc")] == [True, True, False, True]
    score = score_cases({"abc": [text, text], "xyz": [GOOD]}, limit=8)
    assert score.distinct_correct == 2 and score.requested == 24
    # Ten times the same list of eight cases, all correct: the score of greedy decoding.
    lines = "\n".join(f"assert abc([{digit}], 1) == [{digit}, 1]" for digit in range(8))
    assert score_cases({"abc": [lines] * 10}).accuracy == pytest.approx(0.1)
    assert len(parse_cases("\n".join([GOOD] * 20), "abc")) == 8


def test_a_prefix_is_completable_exactly_when_correct_lines_continue_it() -> None:
    chance = random.Random(0)
    right = []
    for size in (0, 1, 3):
        entries = [chance.randrange(10) for _ in range(size)]
        item = chance.randrange(10)
        right.append(f"assert abc({entries}, {item}) == {[*entries, item]}\n")
    text = "".join(right)
    for cut in range(len(text) + 1):
        assert can_be_completed(text[:cut], "abc", cases=3), text[:cut]
    assert can_be_completed(text + "anything", "abc", cases=3)
    for cut, wrong in itertools.product(range(0, len(text), 2), "x]),9["):
        changed = text[:cut] + wrong
        line = changed.split("\n")[-1]
        # A line of the grammar: digits may be any as long as the result is not begun.
        free = wrong.isdigit() and " == " not in line and text[cut].isdigit()
        if wrong != text[cut] and not free:
            allowed = completable_by_search(line)
            assert can_be_completed(changed, "abc", cases=3) == allowed, changed


def completable_by_search(line: str) -> bool:
    """Whether some correct line with at most four entries begins like this."""
    head = "assert abc("
    if not (head.startswith(line) or line.startswith(head)):
        return False
    digits = {number for number in re.findall(r"\d+", line) if number == "0" or number[0] != "0"} | {"0"}
    for size in range(6):
        for entries in itertools.product(sorted(digits), repeat=min(size, 5)):
            for item in sorted(digits):
                whole = f"assert abc([{', '.join(entries)}], {item}) == [{', '.join([*entries, item])}]"
                if whole.startswith(line):
                    return True
    return False


def test_membership_of_whole_strings_follows_the_text_after_the_last_request() -> None:
    world = AppendCases(cases=2, longest=2, examples=1)
    prompt = world.prompt("abc", rng=sl.rng(0))
    good = world.encode("assert abc([1], 2) == [1, 2]\nassert abc([], 3) == [3]\n")
    bad = world.encode("assert abc([1], 2) == [2, 1]\n")
    strings = [prompt, prompt + good, [*prompt, *good, world.end_token], [*prompt, *good[:-9], world.end_token]]
    strings += [prompt + bad, prompt + bad[:9]]
    width = max(map(len, strings))
    tokens = torch.tensor([string + [0] * (width - len(string)) for string in strings])
    lengths = torch.tensor([len(string) for string in strings])
    assert world.completable(tokens, lengths).tolist() == [True, True, True, False, False, True]
    assert world.contains(tokens, lengths).tolist() == [False, True, True, False, False, False]
    error = (len(prompt) + bad.index(world._index["2"], 10), CaseError.ASSERTION_FAILURE)
    assert world.first_error(prompt + bad + [world.end_token]) == error
    assert world.first_error([*prompt, world.end_token]) == (len(prompt), CaseError.FEWER_TEST_CASES_THAN_EXPECTED)
    with pytest.raises(sl.BadInput, match="no request for test cases"):
        world.contains(torch.tensor([[0, 5]]), torch.tensor([2]))


def test_entries_favour_small_numbers() -> None:
    world = AppendCases(cases=8, functions=("append",), errors=0.0, favour=1.0, examples=1)
    digits = "".join(line.split("(")[1].split(")")[0] for text in documents(world, 200) for line in split(text)[2])
    counts = torch.tensor([digits.count(str(digit)) for digit in range(10)], dtype=torch.float64)
    weights = 1 / torch.arange(1, 11, dtype=torch.float64)
    assert torch.allclose(counts / counts.sum(), weights / weights.sum(), atol=0.02)


def test_the_longest_document_fits_exactly() -> None:
    for cases, longest, examples in ((1, 1, 1), (2, 2, None), (8, 5, 1)):
        world = AppendCases(cases=cases, longest=longest, examples=examples, errors=0.0)
        numbers = list(range(longest))
        line = f"assert abc({numbers}, 7) == {[*numbers, 7]}\n"
        widest = 1 + len(world.encode(line * cases))
        assert max(len(world.prompt("abc", rng=sl.rng(seed))) for seed in range(40)) + widest <= world.length
        assert all(text.count("\n") == len(text.splitlines()) for text in documents(world, 200))
    # Sums of two digits in every line of the example.
    demonstration = "def f(a, b):\n    return a + b\n\nList 1 test cases of the above function f, one in each line:\n"
    demonstration += "assert f(9, 9) == 18\n\n"
    definition = "def abc(l, item):\n    assert type(l) is list\n    l.append(item)\n    return l\n"
    request = "\nList 1 test cases of the above function abc, one in each line:\nassert abc([5], 7) == [5, 7]\n"
    world = AppendCases(cases=1, longest=1)
    assert len(world.encode(demonstration + definition + request)) + 2 == world.length


def strings(world: AppendCases, n: int, seed: int) -> list[list[int]]:
    """Whole documents as tokens, END included."""
    batch = world.sample(n, rng=sl.rng(seed))
    return [
        [*row[mask].tolist(), int(last[mask][-1])] for row, mask, last in zip(batch.inputs, batch.mask, batch.targets)
    ]


def test_distinct_correct_cases_are_those_that_python_executes() -> None:
    """Random documents, each assertion run by Python; a case counts once per name."""
    world = AppendCases(cases=4, longest=2, functions=("append",), errors=0.4, favour=1.0)
    texts, names = [], []
    for text in documents(world, 60):
        names.append("abc" if len(names) % 2 else "xyz")
        drawn = text.rpartition("def ")[2][:3]
        texts.append(text.rpartition("each line:\n")[2].replace(drawn, names[-1]))
    seen = set()
    for index, (text, name) in enumerate(zip(texts, names)):
        for line in text.splitlines():
            space = {name: lambda given, item: [*given, item]}
            try:
                exec(line, space)
                space[name] = lambda given, item: (tuple(given), item)
                seen.add((name, eval(line.removeprefix("assert ").partition(" == ")[0], space)))
            except (AssertionError, SyntaxError):
                continue
        assert count_distinct(texts, names, 4)[index] == len(seen)


def test_the_first_error_is_the_first_token_that_makes_completion_impossible() -> None:
    world = AppendCases(cases=3, longest=2, functions=("append",), errors=0.3)
    wrong = 0
    for string in strings(world, 200, 1):
        error = world.first_error(string)
        if error is None:
            assert bool(world.contains(torch.tensor([string]), torch.tensor([len(string)])))
            continue
        wrong += 1
        tokens, lengths = torch.tensor([string, string]), torch.tensor([error[0], error[0] + 1])
        before, after = world.completable(tokens, lengths).tolist()
        assert before and not after, world.render(string)
    assert 60 < wrong < 180


def test_labels_of_prefixes_agree_with_the_exact_verifier() -> None:
    world = AppendCases(cases=3, longest=2, functions=("append",), errors=0.3, examples=1)
    request = world.encode(", one in each line:\n")[0]
    whole = strings(world, 60, 2)
    starts = [len(string) - string[::-1].index(request) for string in whole]
    tokens, lines = label_prefixes(world, zip(whole, starts), rng=sl.rng(0))
    for data in (tokens, lines):
        assert set(data.labels) == {0, 1} and len(data.labels) == len(data.strings)
        for string, label in zip(data.strings, data.labels):
            assert bool(world.completable(torch.tensor([string]), torch.tensor([len(string)]))) == bool(label)
    assert all(string[-1] in (world.newline, world.end_token, request) for string in lines.strings)
    # A wrong completion gives its shortest wrong prefix: without the last token it can be completed.
    for string, label in zip(tokens.strings, tokens.labels):
        if not label:
            assert bool(world.completable(torch.tensor([string]), torch.tensor([len(string) - 1])))


def test_every_beginning_of_an_accepted_answer_can_be_completed():
    """Definition of a process verifier: numbers of several digits, empty lists, no blank where none may be."""
    import itertools

    from sandlab.worlds.verifier.append_checking import can_be_completed, is_plain

    heads = [
        f"[{', '.join(entries)}]" for size in range(3) for entries in itertools.product(("0", "7", "10"), repeat=size)
    ]
    for head, item in itertools.product(heads, ("0", "3", "205")):
        result = head[:-1] + (", " if head != "[]" else "") + item + "]"
        line = f"assert abc({head}, {item}) == {result}"
        assert is_plain(line, "abc")
        text = line + "\n" + line
        assert all(can_be_completed(text[:cut], "abc", 2) for cut in range(len(text) + 1))
    for wrong in (
        "assert abc([01",
        "assert abc([1,2",
        "assert abc([1, ]",
        "assert abc([1], 2) == [2",
        "assert abc([1],2",
    ):
        assert not can_be_completed(wrong, "abc", 2)


def test_the_released_parser_is_lenient_about_blanks():
    from sandlab.worlds.verifier.append_checking import CaseError, find_error

    lines = "\n".join(["assert abc([1],2)==[1,2]"] * 8)
    assert find_error(lines, "abc")[1] is CaseError.NO_ASSERTION_EQUALITY
    assert find_error(lines, "abc", lenient=True) is None
    assert find_error("\n\n  " + lines.replace("\n", ";\n\n"), "abc", lenient=True) is None
    position, kind = find_error("\nassert abc([1],2)==[2]", "abc", 1, lenient=True)
    assert kind is CaseError.ASSERTION_FAILURE and position > 15
    assert find_error(lines, "abc", 9, lenient=True)[1] is CaseError.FEWER_TEST_CASES_THAN_EXPECTED
    assert find_error(lines, "abc", 7, lenient=True)[1] is CaseError.EXTRA_CONTENT_AFTER_TASK_COMPLETION
