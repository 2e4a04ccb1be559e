"""RASP-L programs on plain words: short things that a causal transformer can say of every position."""

from __future__ import annotations

from sandlab.circuits.expressivity.raspl import RaspL
from sandlab.errors import choice

__all__ = ["RASPL_EXAMPLES", "raspl_example"]

RASPL_EXAMPLES: dict[str, str] = {
    "previous": 'answer = aggr(select(indices, indices - 1, "=="), tokens, "max")',
    "first": 'answer = aggr(select(indices, 0, "=="), tokens, "min")',
    "smallest": 'answer = aggr(select(indices, 0, ">="), tokens, "min")',
    "count-so-far": 'answer = sel_width(select(tokens, tokens, "=="))',
    "count-run": """
before = aggr(select(indices, indices - 1, "=="), tokens, "max")
new = before != tokens or indices == 0
start = aggr(select(new, 1, "=="), indices, "max")
answer = sel_width(select(indices, start, ">="))
""",
    "last-equal": 'answer = aggr(select(tokens, tokens, "==") and select(indices, indices, "<"), indices, "max")',
}
"""Name → program: the token before, the first one, the smallest so far, how often the token came so far, how long the
run of equal tokens is that ends here, and where the token came last (0 where it never did)."""


def raspl_example(name: str) -> RaspL:
    """A program of the examples: `raspl_example("count-run")`."""
    return RaspL(RASPL_EXAMPLES[choice("name", name, RASPL_EXAMPLES)], name)
