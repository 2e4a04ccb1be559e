"""The RASP-L programs of the length-generalisation tasks, for the tokens of `ProgramTask`."""

from __future__ import annotations

from sandlab.circuits.expressivity.raspl import RaspL
from sandlab.errors import choice
from sandlab.worlds.expressivity.program_tasks import TASKS, ProgramTask

__all__ = ["raspl_program"]

LIBRARY = """
def shift(x):
    return aggr(select(indices, indices - 1, "=="), x, "max")
def at(x, place):
    return aggr(select(indices, place, "=="), x, "max")
def seen(token):
    return sel_width(select(tokens, token, "==")) >= 1
"""

PROGRAMS = {
    "count": """
answer = where(tokens == SEP, at(tokens, 0), where(tokens == at(tokens, 1), EOS, tokens + 1))
""",
    "copy-unique": """
before = shift(tokens)
follower = aggr(select(before, tokens, "==") and select(indices, 0, ">"), tokens, "max")
answer = where(tokens == SEP, at(tokens, 0), where(follower == SEP, EOS, follower))
""",
    "copy-repeat": """
size = aggr(select(tokens, SEP, "=="), indices, "max")
follower = aggr(select(indices, indices - size, "=="), tokens, "max")
answer = where(indices - size == size, EOS, follower)
""",
    "sort": """
larger = select(tokens, tokens, ">") and select(tokens, SEP, "<")
smallest = aggr(select(tokens, SEP, "<"), tokens, "min")
answer = where(tokens == SEP, smallest, where(sel_width(larger) == 0, EOS, aggr(larger, tokens, "min")))
""",
    "mode": """
counted = where(tokens < SEP, sel_width(select(tokens, tokens, "==")), 0)
most = aggr(select(indices, 0, ">="), counted, "max")
answer = where(tokens == SEP, aggr(select(counted, most, "=="), tokens, "min"), EOS)
""",
    "majority": """
ones = sel_width(select(tokens, 1, "=="))
zeros = sel_width(select(tokens, 0, "=="))
answer = where(tokens == SEP, ones > zeros, EOS)
""",
    "addition": """
plus = aggr(select(tokens, PLUS, "=="), indices, "max")
place = indices - plus - plus - 1
first = aggr(select(indices, place, "==") and select(tokens, BASE, "<"), tokens, "max")
second = aggr(select(indices, place + plus + 1, "==") and select(tokens, BASE, "<"), tokens, "max")
total = first + second
carry = place >= 1 and shift(total) > tokens
answer = where(place == plus + 1, EOS, (total + carry) % BASE)
""",
    "addition-hints": """
before = shift(tokens)
part = seen(PLUS) + seen(SEP)
digit = select(before, tokens, "==") and select(tokens, BASE, "<")
total = aggr(digit and select(part, 0, "=="), tokens, "max") + aggr(digit and select(part, 1, "=="), tokens, "max")
carry = before != SEP and shift(shift(total)) > before
more = sel_width(select(tokens, before, "==") and select(part, 0, "==")) >= 1
step = where(more, before + 1, EOS)
answer = where(tokens == SEP, at(tokens, 0), where(tokens < BASE, step, (total + carry) % BASE))
""",
}


def raspl_program(task: ProgramTask) -> RaspL:
    """The program that answers a task: short for most, long for parity, and illegal where indices must be added.

    Copying with repeated letters and addition without hints need the difference of two indices. Parity has no table of
    fixed size: the program here lists the odd numbers up to the task's longest word.
    """
    choice("task", task.task, TASKS)
    text = LIBRARY + (_parity(task.longest) if task.task == "parity" else PROGRAMS[task.task])
    for name, token in (("SEP", task.separator), ("EOS", task.end), ("PLUS", task.plus), ("BASE", task.symbols)):
        text = text.replace(name, str(token))
    return RaspL(text, task.task)


def _parity(longest: int) -> str:
    odd = " or ".join(f"ones == {number}" for number in range(1, longest + 1, 2))
    return f'ones = sel_width(select(tokens, 1, "=="))\nanswer = where(tokens == SEP, {odd}, EOS)\n'
