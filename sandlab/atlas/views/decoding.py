"""What the decoding page shows: a walk on the tree of prefixes, decoders racing at equal cost, refinement steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from sandlab.errors import BadInput, choice, integer, number
from sandlab.lab._store.plain import Facts

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor

    from sandlab.decoding.decoders.base import Decoder
    from sandlab.decoding.exact.trees import Tree
    from sandlab.decoding.parallel.samplers import SiteSampler
    from sandlab.worlds.parallel.finite import FiniteLaw

__all__ = ["race", "refine", "walk"]

MOST_MOMENTS, MOST_LEAVES, MOST_DRAWS, CHAINS = 400, 729, 4000, 500
RULES: dict[str, Callable[[tuple[int, ...]], bool]] = {
    "ends as it begins": lambda word: word[0] == word[-1],
    "no letter twice in a row": lambda word: all(a != b for a, b in pairwise(word)),
    "as many a as b": lambda word: word.count(0) == word.count(1),
    "an even number of b": lambda word: word.count(1) % 2 == 0,
    "exactly one b": lambda word: word.count(1) == 1,
}
# The same rules as the lines beside a page write them.
_WRITTEN = {
    "ends as it begins": "word[0] == word[-1]",
    "no letter twice in a row": "all(a != b for a, b in zip(word, word[1:]))",
    "as many a as b": "word.count(0) == word.count(1)",
    "an even number of b": "word.count(1) % 2 == 0",
    "exactly one b": "word.count(1) == 1",
}
ALGORITHMS = ("rejection", "tokenwise-rejection", "best-of-4", "value-guided", "backtracking", "vgb")


@dataclass(frozen=True)
class _Game:
    """A small language model, a language, and a value function with errors."""

    tree: Tree
    tilt: np.ndarray
    values: list[np.ndarray]
    verdicts: list[np.ndarray]

    def decoder(self, name: str) -> tuple[Decoder, list[np.ndarray], np.ndarray]:
        """An algorithm, the numbers its verifier gives, and its exact law."""
        from sandlab import decoding

        tree, tilt = self.tree, self.tilt
        if name == "rejection":
            return decoding.Rejection(), self.verdicts, decoding.restricted_distribution(tree, tilt)
        if name == "tokenwise-rejection":
            law = decoding.tokenwise_distribution(tree, self.verdicts)
            return decoding.TokenwiseRejection(), self.verdicts, law
        if name == "best-of-4":
            return decoding.BestOfN(candidates=4), self.verdicts, decoding.best_of_n_distribution(tree, tilt, 4)
        if name == "value-guided":
            return decoding.ValueGuided(), self.values, decoding.value_guided_distribution(tree, self.values)
        if name == "backtracking":
            law = decoding.backtracking_distribution(tree, self.verdicts, quota=4, stride=2)
            return decoding.Backtracking(quota=4, stride=2), self.verdicts, law
        choice("algorithm", name, ALGORITHMS)
        return decoding.VGB(), self.values, decoding.first_leaf_distribution(tree, self.values)


def _game(tokens: int, depth: int, seed: int, rule: str, error: float) -> _Game:
    import numpy as np

    from sandlab.decoding.exact.trees import Tree
    from sandlab.random import rng

    integer("tokens", tokens, low=2, high=3)
    integer("depth", depth, low=2, high=8)
    number("error", error, low=0.0, high=3.0)
    choice("rule", rule, tuple(RULES))
    if tokens**depth > MOST_LEAVES:
        raise BadInput(f"{tokens}^{depth} strings are too many to be drawn: at most {MOST_LEAVES}")
    draws = rng(integer("seed", seed, low=0))
    tree = Tree.random(tokens, depth, rng=draws)
    tilt = np.array([float(RULES[rule](tuple(word))) for word in tree.strings().tolist()])
    if not tilt.any():
        raise BadInput(f"no string of length {depth} obeys the rule: choose another length")
    noise = np.random.default_rng(seed)
    exact = tree.values(tilt)
    wrong = [np.minimum(level * np.exp(error * noise.standard_normal(len(level))), 1.0) for level in exact[:-1]]
    return _Game(tree, tilt, [*wrong, exact[-1]], tree.verdicts(tilt))


def walk(
    algorithm: str = "vgb",
    tokens: int = 2,
    depth: int = 5,
    seed: int = 0,
    rule: str = "as many a as b",
    error: float = 0.0,
    run: int = 0,
) -> Facts:
    """One run of a decoder, event by event: the string after each, and all prefixes with their values."""
    from sandlab.decoding.exact.trees import TableVerifier, TreeGenerator
    from sandlab.decoding.walk_film import moments
    from sandlab.random import rng

    depth = depth + 1 if rule == "as many a as b" and depth % 2 else depth
    game = _game(tokens, depth, seed, rule, error)
    decoder, numbers, _ = game.decoder(algorithm)
    done = decoder.generate(
        TreeGenerator(game.tree), [[]], verifier=TableVerifier(numbers, tokens), max_new=depth,
        rng=rng(integer("run", run, low=0), "walk"), trace=True,
    )  # fmt: skip
    assert done.events is not None
    steps = moments(done.events[0])
    return {
        "letters": "abc"[:tokens],
        "depth": depth,
        "values": [[round(float(value), 6) for value in level] for level in numbers],
        "reach": [[round(float(value), 6) for value in level] for level in game.tree.reach],
        "moments": [{"string": list(each.string), "kind": each.kind} for each in steps[:MOST_MOMENTS]],
        "all": len(steps),
        "string": done.generated(0),
        "calls": {name: int(done.counters[name][0]) for name in ("oracle_calls", "verifier_calls", "tokens_erased")},
        "law": decoder.law,
        "code": _game_code(tokens, depth, seed, rule, error, guided=numbers is game.values)
        + f"decoder = sl.decoding.{decoder!r}\nverifier = sl.decoding.TableVerifier(numbers, {tokens})\n"
        f"decoder.generate(sl.decoding.TreeGenerator(tree), [[]], verifier=verifier, max_new={depth},\n"
        f"                 rng=sl.rng({run}, 'walk'), trace=True)",
    }


def _game_code(tokens: int, depth: int, seed: int, rule: str, error: float, *, guided: bool) -> str:
    """Python lines that make the language model, the language, and the numbers of the verifier."""
    lines = [
        f"tree = sl.decoding.Tree.random({tokens}, {depth}, rng=sl.rng({seed}))",
        f"tilt = np.array([float({_WRITTEN[rule]}) for word in tree.strings().tolist()])",
    ]
    if guided:
        lines += [
            f"*inner, leaves = tree.values(tilt)\nnoise = np.random.default_rng({seed})",
            f"factors = [np.exp({error} * noise.standard_normal(len(level))) for level in inner]",
            "numbers = [*(np.minimum(level * factor, 1) for level, factor in zip(inner, factors)), leaves]",
        ]
    else:
        lines += ["numbers = tree.verdicts(tilt)"]
    return "\n".join(lines) + "\n"


def race(
    tokens: int = 2,
    depth: int = 5,
    seed: int = 0,
    rule: str = "as many a as b",
    error: float = 0.0,
    draws: int = 400,
    run: int = 0,
) -> Facts:
    """All algorithms on one game: what they draw, their exact laws, and the distance to the target at equal cost."""
    from sandlab.decoding.exact.distributions import restricted_distribution

    depth = depth + 1 if rule == "as many a as b" and depth % 2 else depth
    integer("draws", draws, low=10, high=MOST_DRAWS)
    game = _game(tokens, depth, seed, rule, error)
    target = restricted_distribution(game.tree, game.tilt)
    shown = sorted(range(len(target)), key=lambda leaf: -target[leaf])[:24]
    runners = [_runner(game, name, target, draws, run, shown) for name in ALGORITHMS]
    words = game.tree.strings()[shown].tolist()
    return {
        "strings": ["".join("abc"[token] for token in word) for word in words],
        "target": [round(float(target[leaf]), 6) for leaf in shown],
        "runners": runners,
        "code": _game_code(tokens, depth, seed, rule, error, guided=True)
        + "target = sl.decoding.restricted_distribution(tree, tilt)\n"
        "sl.decoding.total_variation(sl.decoding.value_guided_distribution(tree, numbers), target)",
    }


def _runner(game: _Game, name: str, target: np.ndarray, draws: int, run: int, shown: list[int]) -> Facts:
    import numpy as np

    from sandlab.decoding.exact.distributions import total_variation
    from sandlab.decoding.exact.trees import TableVerifier, TreeGenerator
    from sandlab.random import rng

    decoder, numbers, law = game.decoder(name)
    tree = game.tree
    done = decoder.generate(
        TreeGenerator(tree), [[]] * draws, verifier=TableVerifier(numbers, tree.tokens), max_new=tree.depth,
        rng=rng(integer("run", run, low=0), name),
    )  # fmt: skip
    cost = (done.counters["oracle_calls"] + done.counters["verifier_calls"]).numpy().cumsum()
    place = tree.tokens ** np.arange(tree.depth - 1, -1, -1)
    whole = (done.done & (done.lengths == tree.depth)).numpy()
    leaves = done.tokens[:, : tree.depth].numpy() @ place
    law = law / law.sum()
    curve = []
    for count in sorted({int(n) for n in np.geomspace(5, draws, 30)}):
        seen = np.bincount(leaves[:count][whole[:count]], minlength=len(target))
        if seen.sum():
            curve.append({"cost": int(cost[count - 1]), "distance": total_variation(seen / seen.sum(), target)})
    counts = np.bincount(leaves[whole], minlength=len(target))
    return {
        "name": name,
        "law": decoder.law,
        "exact": [round(float(law[leaf]), 6) for leaf in shown],
        "counts": [int(counts[leaf]) for leaf in shown],
        "drawn": int(counts.sum()),
        "cost": round(float(cost[-1]) / draws, 2),
        "limit": total_variation(law, target),
        "own": total_variation(counts / max(1, counts.sum()), law),
        "curve": curve,
    }


def refine(
    sites: int = 8,
    coupling: float = 0.4,
    edges: str = "cycle",
    block: int = 3,
    steps: int = 20,
    seed: int = 0,
) -> Facts:
    """Parallel decoding step by step: spins drawn again one at a time, in blocks, in two colours, or all at once."""
    import torch

    from sandlab import decoding
    from sandlab.worlds.parallel.families import Ising

    integer("sites", sites, low=3, high=9)
    integer("steps", steps, low=1, high=60)
    number("coupling", coupling, low=-3.0, high=3.0)
    integer("block", block, low=1, high=sites)
    law = Ising(sites=sites, coupling=coupling, edges=choice("edges", edges, ("cycle", "path", "complete"))).law
    exact = torch.as_tensor(law.probs)
    samplers: dict[str, SiteSampler] = {
        "one site (Gibbs)": decoding.KGibbs(1),
        f"blocks of {block}": decoding.KGibbs(block),
    }
    if edges == "path" or (edges == "cycle" and sites % 2 == 0):
        samplers["two colours"] = decoding.Checkerboard(tuple(site % 2 for site in range(sites)))
    samplers["all sites at once"] = decoding.IndependentParallel()
    films = [_film(name, sampler, law, steps, seed) for name, sampler in samplers.items()]
    agreement = float((_agreement(torch.as_tensor(law.states)).double() * exact).sum()) / sites
    world = f"sl.worlds.Ising(sites={sites}, coupling={coupling}, edges={edges!r})"
    code = (
        f"model = sl.decoding.LawSites({world}.law)\nstart = torch.zeros({CHAINS}, {sites}, dtype=torch.long)\n"
        f"sl.decoding.KGibbs({block}).run(model, start, {steps}, rng=sl.rng({seed}, 'blocks of {block}'))"
    )
    return {"films": films, "agree": agreement, "chains": CHAINS, "code": code}


def _film(name: str, sampler: SiteSampler, law: FiniteLaw, steps: int, seed: int) -> Facts:
    """One chain to look at; how far the law of (spins up, neighbours that agree) of all chains is from the exact."""
    import torch

    from sandlab.decoding.parallel.site_models import LawSites
    from sandlab.random import rng

    def kinds(states: Tensor) -> Tensor:
        return states.sum(1) * (law.sites + 1) + _agreement(states)

    size = (law.sites + 1) ** 2
    exact = torch.zeros(size, dtype=torch.float64)
    exact.index_add_(0, kinds(torch.as_tensor(law.states)), torch.as_tensor(law.probs))
    start = torch.zeros(CHAINS, law.sites, dtype=torch.long)
    trace = sampler.run(LawSites(law), start, steps, rng=rng(integer("seed", seed, low=0), name))
    laws = [torch.bincount(kinds(states), minlength=size).double() / CHAINS for states in trace.states]
    return {
        "name": name,
        "states": trace.states[:, 0].tolist(),
        "hidden": trace.hidden[:, 0].tolist(),
        "distance": [round(float((found - exact).abs().sum() / 2), 5) for found in laws],
        "agree": [round(float(_agreement(states).double().mean()) / law.sites, 5) for states in trace.states],
        "passes": trace.passes,
    }


def _agreement(states: Tensor) -> Tensor:
    """How many sites equal their left neighbour, the first one the last."""
    return (states == states.roll(1, 1)).sum(1)
