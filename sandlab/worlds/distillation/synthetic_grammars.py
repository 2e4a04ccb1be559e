"""The grammars of the chapter by name: cfg3b to cfg3f over the terminals 1, 2, 3, and a toy English one."""

from __future__ import annotations

import functools

from sandlab.errors import choice
from sandlab.worlds.distillation.pcfg import PCFG

__all__ = ["GRAMMARS", "grammar"]

_CFG3B = """
22→21 20|20 19; 19→16 17 18|17 18 16; 20→17 16 18|16 17; 21→18 16|16 18 17
16→15 13|13 15 14; 17→14 13 15|15 13 14; 18→15 14 13|14 13
13→11 12|12 11; 14→11 10 12|10 11 12; 15→12 11 10|11 12 10
10→7 9 8|9 8 7; 11→8 7 9|7 8 9; 12→8 9 7|9 7 8
7→3 1|1 2 3; 8→3 2|3 1 2; 9→3 2 1|2 1
"""

GRAMMARS: dict[str, str] = {
    "cfg3b": _CFG3B,
    "cfg3b-release": _CFG3B.replace("9→3 2 1|2 1", "9→3 2 1"),
    "cfg3i": """
22→19 19 20|21 20 19; 19→18 16 18|16 16; 20→17 16 17|18 18; 21→16 16 18|18 17
16→13 13|14 14; 17→15 15|15 14; 18→14 15 13|14 15
13→12 11|10 12 11; 14→10 10 10|10 10; 15→11 11 10|11 10 12
10→8 7 7|9 9; 11→7 7 7|7 7 8; 12→7 9 9|8 7
7→3 1 2|2 3 1; 8→1 1|2 2; 9→1 1 3|1 2
""",
    "cfg3h": """
22→20 20 21|19 21; 19→16 17|18 17; 20→18 16|17 16; 21→17 17 18|17 18 17
16→14 13|15 13; 17→13 14|15 13 15; 18→15 13 13|15 14 14|14 15 15
13→12 11|11 10; 14→10 12 12|10 10|12 12 10; 15→10 12|11 11 10
10→8 7 9|9 7|8 8; 11→8 7 7|7 7|7 9 9; 12→7 9|8 7|9 8
7→2 3 2|1 2 3|1 3 1; 8→1 2|3 3 1|1 3; 9→2 1 3|1 3 3
""",
    "cfg3g": """
22→19 20|20 20 19|20 19 21; 19→17 17 16|18 17 16|18 16 17; 20→16 17|18 18|16 17 17; 21→16 16|16 16 18|18 16
16→14 13 13|13 14|13 13; 17→14 13 14|14 15 13|15 14; 18→15 13|15 15|14 13 15
13→10 12|11 11 11|11 11; 14→11 12|10 11 10|10 10; 15→10 11|12 10 10|12 11
10→8 8 8|7 7 7|7 7; 11→8 8 9|9 7|8 9 7; 12→7 9|7 8|9 9 9
7→2 3 1|1 1|2 2; 8→1 3 2|1 3|3 3 1; 9→2 3 3|2 3|2 1
""",
    "cfg3f": """
22→20 21|20 19 21|21 19 19|20 20; 19→18 16 18|17 18|18 18; 20→16 16|16 17|17 16 18; 21→18 17|17 16|16 17 18|16 18
16→15 15|13 15 13|14 13|14 14; 17→15 14 13|14 15|15 14; 18→14 15 13|15 13 13|13 15
13→11 12|12 11 12|10 12 11; 14→10 12|12 10 12|12 11|10 12 12; 15→10 11 11|11 11 10|10 10|12 12 11
10→8 9 9|9 7 9|7 9 9; 11→8 8|9 7|9 7 7; 12→7 9 7|9 8|8 8 9
7→2 2 1|3 2 2|3 1 2|3 2; 8→3 1 1|1 2|3 3 1; 9→1 2 1|3 3|1 1
""",
    "toy-english": """
S → NP VP; NP → Det Noun; VP → Verb Adv
Det → the | a; Noun → cat | dog; Verb → ran | walked; Adv → away | home
""",
}
"""Name → rules. The five of fixed depth (7 layers of nodes) are those of Allen-Zhu and Li 2023; "cfg3b-release" is the
file that the authors of progressive distillation published, which lacks 9 → 2 1; "toy-english" generates the example
of Figure 4.6, "the cat ran away"."""


@functools.lru_cache(maxsize=64)
def grammar(name: str, root: str | None = None) -> PCFG:
    """The grammar of that name, or the one that a text of rules describes; with `root`, the part below that symbol.

    "13|14|15" as root draws one of these symbols with equal probability.
    """
    text = name if "→" in name or "->" in name else GRAMMARS[choice("grammar", name, GRAMMARS)]
    found = PCFG.parse(text)
    if root is None or root == "":
        return found
    if "|" not in root:
        return found.rooted(root)
    return PCFG.parse(f"root → {root}\n{found}", start="root")
