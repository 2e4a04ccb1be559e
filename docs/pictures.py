"""Pictures for the pages of worlds and circuits, drawn while the documentation is built."""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from gadget_pictures import GADGETS

import sandlab as sl
from sandlab import figures

EXAMPLES = 24
LETTERS = 48
LARGEST_DIAGRAM = 12


def world_picture(world: Any) -> bytes | None:
    """Small automata as state diagrams; examples as coloured tokens and how uncertain the oracle is by position."""
    if isinstance(world, sl.worlds.Automaton) and world.states <= LARGEST_DIAGRAM:
        return svg(sl.worlds.draw_machine(world))
    batch = world.sample(EXAMPLES, rng=sl.rng(0))
    if batch.inputs.is_floating_point() or batch.inputs.ndim != 2:
        if batch.inputs.ndim == 3:  # a sequence of points
            batch = sl.worlds.Batch(batch.inputs.flatten(0, 1), batch.targets.flatten(), batch.mask.flatten())
        return _points(batch) if batch.inputs.ndim == 2 else _images(batch)
    entropy = _entropy(world)
    certain = entropy is not None and entropy.max() < 1e-6  # an empty panel would say less than a word
    entropy = None if certain else entropy
    figure, axes = figures.new(columns=1 if entropy is None else 2, width=4.6, height=2.9)
    tokens, title = batch.inputs[:, :LETTERS].numpy(), "examples; every answer is certain" if certain else "examples"
    figures.heatmap(axes[0], tokens, title=title, x="position", y="example", bar=False)
    if entropy is not None:
        axes[1].plot(np.arange(len(entropy)), entropy)
        axes[1].set(title="best prediction", xlabel="position", ylabel="mean uncertainty (nats)", ylim=(0, None))
    return svg(figure)


def _entropy(world: Any) -> np.ndarray | None:
    """Mean entropy of the oracle's prediction at each counted position."""
    try:
        batch = world.sample(256, rng=sl.rng(1))
        log_probs = world.oracle(batch)
    except (NotImplementedError, AttributeError, IndexError, RuntimeError):
        return None
    log_probs = log_probs[..., -batch.mask.shape[-1] :, :] if batch.mask.ndim >= 2 else log_probs
    if log_probs.ndim != 3 or log_probs.shape[1] < 2:
        return None
    entropy = torch.special.entr(log_probs.exp()).sum(-1)
    counted = batch.mask.double()
    mean = (entropy * counted).sum(0) / counted.sum(0).clamp(min=1)
    return mean[counted.sum(0) > 0].numpy()


def _points(batch: Any) -> bytes:
    """Real-valued examples: the first coordinates, coloured by label."""
    figure, (axis,) = figures.new(width=4.4, height=2.9)
    values = batch.inputs.numpy()
    second = values[:, 1] if values.shape[1] > 1 else np.zeros(len(values))
    labels = batch.targets.flatten().numpy()[: len(values)] if batch.targets.numel() >= len(values) else None
    axis.scatter(values[:, 0], second, c=labels, cmap="cividis", s=18)
    axis.set(title="examples", xlabel="first coordinate", ylabel="second coordinate")
    return svg(figure)


def _images(batch: Any) -> bytes | None:
    """Images of both classes, a row each."""
    if batch.inputs.ndim != 4:
        return None
    rows = [batch.inputs[batch.targets == label][:8] for label in (1, 0)]
    shown = min(map(len, rows))
    figure, axes = figures.new(columns=shown, rows=2, width=1.0, height=1.1)
    for axis, image in zip(axes, torch.cat([row[:shown] for row in rows])):
        axis.imshow(image[0].numpy(), cmap="cividis")
        axis.axis("off")
    axes[0].set_title("images", fontsize=9, loc="left")
    axes[shown].set_title("noise", fontsize=9, loc="left")
    return svg(figure)


CIRCUITS: dict[str, Callable[[], tuple[Any, torch.Tensor]]] = {
    "flip-flop-transformer": lambda: (
        sl.circuits.flip_flop_transformer(32),
        sl.worlds.FlipFlop.ignoring(0.6, length=32).sample(1, rng=sl.rng(0)).inputs,
    ),
    "memory-transformer": lambda: (
        sl.circuits.memory_transformer(24),
        sl.worlds.FlipFlopTransduction(length=24, idle=0.8).sample(1, rng=sl.rng(0)).inputs,
    ),
    "balanced-dyck": lambda: (
        sl.circuits.balanced_dyck(scores=sl.circuits.random_balanced_scores(2, 4, rng=sl.rng(1))),
        sl.worlds.Dyck(length=24).sample(1, rng=sl.rng(0)).inputs,
    ),
    "uniform-dyck": lambda: (
        sl.circuits.uniform_dyck(),
        sl.worlds.Dyck(length=24).sample(1, rng=sl.rng(0)).inputs,
    ),
    "ngram-estimator": lambda: (sl.circuits.ngram_estimator(3, 2, 20), _tokens(20)),
    "all-heads-bigram": lambda: (sl.circuits.all_heads_bigram(3, 2, 20), _tokens(20)),
    "lag-set-estimator": lambda: (sl.circuits.lag_set_estimator(3, (1, 3), 20), _tokens(20)),
    "heads-for-lags": lambda: (sl.circuits.heads_for_lags(3, 20, (1, 2, 2)), _tokens(20)),
    "additive-ngram-estimator": lambda: (sl.circuits.additive_ngram_estimator(3, 2, 20), _tokens(20)),
    "induction-head": lambda: (sl.circuits.induction_head(3, 20), _tokens(20)),
    "korder-three-layers": lambda: (sl.circuits.korder_three_layers(2, 2, 20), _tokens(20, 2)),
    "korder-two-layers": lambda: (sl.circuits.korder_two_layers(2, 2, 20), _tokens(20, 2)),
    "running-average": lambda: (sl.circuits.running_average(3, 20), _tokens(20)),
    "causal-graph-estimator": lambda: (
        sl.circuits.causal_graph_estimator(3, [-1, 0, 0, 1, 2, 2, 4, 3, 5, -1]),
        _tokens(10),
    ),
    "parent-heads-estimator": lambda: (
        sl.circuits.parent_heads_estimator(3, sl.worlds.skip_parents(16)),
        sl.worlds.InContextDag(3, sl.worlds.skip_parents(16)).sample(1, rng=sl.rng(0)).inputs,
    ),
    "ideal-lego-transformer": lambda: (
        sl.circuits.ideal_lego_transformer(_chain(), 3.0),
        _chain().sample(1, rng=sl.rng(0)).inputs,
    ),
    "gate-by-gate": lambda: (
        sl.circuits.gate_by_gate(sl.worlds.CircuitEvaluation(inputs=3, gates=5)),
        sl.worlds.CircuitEvaluation(inputs=3, gates=5).sample(1, rng=sl.rng(0)).inputs,
    ),
    "repeated-squaring": lambda: (sl.circuits.repeated_squaring(6, 5), _path(6)),
    "select-largest": lambda: (sl.circuits.select_largest([0.0, 1.0, 2.0], 20), _tokens(20)),
    "compile-crasp": lambda: _compiled_crasp("dyck-1", "(()())(())"),
    "compile-raspl": lambda: _compiled_raspl(),
    "disentangle": lambda: (_disentangled(), _tokens(12)),
    "parity-by-selection": lambda: (
        sl.circuits.parity_by_selection(12, 4),
        sl.worlds.SparseParity(12, 4, "tokens").sample(1, rng=sl.rng(0)).inputs,
    ),
    "parity-by-uniform-attention": lambda: (
        sl.circuits.parity_by_uniform_attention(12, 3),
        sl.worlds.SparseParity(12, 3, "tokens").sample(1, rng=sl.rng(0)).inputs,
    ),
}
"""Circuit → a small instance and an input, whose attention is drawn."""


def _chain() -> Any:
    return sl.worlds.Lego("C3", variables=8, length=5, predict_blanks=True)


def _path(vertices: int) -> torch.Tensor:
    """Is the last vertex of a path reachable from the first?"""
    ends = torch.stack([torch.arange(vertices - 1), torch.arange(1, vertices)], -1).unsqueeze(0)
    return sl.circuits.squaring_inputs(ends, torch.tensor([0]), torch.tensor([vertices - 1]), vertices)


def _tokens(length: int, states: int = 3) -> torch.Tensor:
    return sl.worlds.InContextMarkov(states=states, length=length).sample(1, rng=sl.rng(3)).inputs


def _compiled_crasp(name: str, word: str) -> tuple[Any, torch.Tensor]:
    program = sl.circuits.crasp_program(name)
    tokens = torch.tensor([[program.letters.index(letter) for letter in word]])
    return sl.circuits.compile_crasp(program, len(word)), sl.circuits.with_beginning(tokens, len(program.letters))


def _compiled_raspl() -> tuple[Any, torch.Tensor]:
    """Copying: layer 1 looks one back, layer 2 finds what followed."""
    task = sl.worlds.ProgramTask("copy-unique", 4, 4, pool=5)
    model = sl.circuits.compile_raspl(sl.circuits.raspl_program(task), task.vocab, task.length)
    return model, sl.circuits.with_beginning(task.sample(1, rng=sl.rng(0)).inputs, task.vocab)


COMPUTATIONS: dict[str, tuple[str, int]] = {
    "scan-circuit": ("Grid4", 8),
    "krohn-rhodes-circuit": ("Grid4", 10),
    "gridworld-circuit": ("Grid4", 10),
    "memory-circuit": ("flip-flop", 10),
    "counter-circuit": ("C3", 10),
    "sine-counter-circuit": ("C3", 10),
    "direct-product-circuit": ("C2^2", 8),
    "semidirect-circuit": ("D6", 8),
    "series-circuit": ("D6", 8),
    "group-circuit": ("Q8", 8),
    "permutation-reset-circuit": ("flip-flop", 8),
    "sequential-circuit": ("C3", 6),
}
"""Circuit of an automaton → machine and word length on which its computation is drawn."""


def _computation(circuit: str) -> bytes:
    name, length = COMPUTATIONS[circuit]
    machine = sl.worlds.named_machine(name, length=length)
    word = machine.sample(1, rng=sl.rng(1)).inputs[0]
    return svg(sl.circuits.draw_computation(sl.get("circuits", circuit)(machine, length), machine, word))


def _disentangled() -> Any:
    with sl.models.seeded(0):
        given = sl.models.Transformer(
            vocab=3, length=12, layers=2, heads=2, width=16, mlp="none", norm="none", init_std=0.6
        )  # fmt: skip
    return sl.circuits.disentangle(given)


def _wreath() -> Any:
    """C₂ ≀ C₂, which is D₈, on a word of its elements."""
    from sandlab.worlds.automata.algebra.groups import FiniteGroup

    two = FiniteGroup.cyclic(2)
    machine = sl.worlds.canonical(FiniteGroup.wreath(two, two).products)
    word = torch.randint(0, machine.vocab, (8,), generator=sl.rng(1))
    return sl.circuits.draw_computation(sl.circuits.wreath_circuit(two, 2, 8), machine, word)


FIGURES: dict[str, Callable[[], Any]] = {**GADGETS, "wreath-circuit": _wreath}
"""Circuit → its figure."""


def _compose() -> Any:
    """Outputs of the network that composes two tables, for every pair of permutations of three, against the truth."""
    tables = list(itertools.permutations((1, 2, 3)))
    pairs = torch.tensor([(*g, *f) for g in tables for f in tables], dtype=torch.float64)
    return sl.circuits.compose_functions(3)(pairs).detach()


def _look_up() -> Any:
    """A table over the 5 × 5 grid with three entries, read off between the points too."""
    points, values = np.array([[1, 1], [2, 3], [4, 2]]), np.array([[1.0], [2.0], [3.0]])
    fine = torch.linspace(0, 5, 101, dtype=torch.float64)
    return sl.circuits.tabulate(points, values)(torch.cartesian_prod(fine, fine)).detach().view(101, 101).mT


def _steps(model: Any) -> torch.Tensor:
    """Transition probabilities of a parallel decoder of three bits."""
    return torch.as_tensor(sl.decoding.decoding_matrix(model, 3, 2))


def _gram(table: torch.Tensor) -> torch.Tensor:
    return (table.mT @ table).detach()


def _probs(model: Any, inputs: torch.Tensor) -> torch.Tensor:
    return model(inputs).detach().softmax(-1)[0].mT


MAPS: dict[str, tuple[Callable[[], Any], str, str, str]] = {
    "rnn-circuit": (
        lambda: sl.circuits.rnn_circuit(_three(), 24)(_three().sample(1, rng=sl.rng(1)).inputs).detach()[0].mT,
        "letter", "state", "the state of a counter modulo 3 after each letter",
    ),
    "flip-flop-parser": (
        lambda: sl.circuits.flip_flop_parser()(
            sl.worlds.FlipFlop.ignoring(0.6, length=32).sample(1, rng=sl.rng(0)).inputs
        ).detach()[0].mT,
        "token", "stored bit", "the bit that a read would have to return",
    ),
    "kernel-predictor": (
        lambda: _probs(sl.circuits.kernel_predictor(0.2, 0.3, length=24), _tokens(24, 2)),
        "position", "next token", "predicted probabilities: the kernel's row of each token",
    ),
    "marginal-predictor": (
        lambda: _probs(sl.circuits.marginal_predictor(0.2, 0.3, length=24), _tokens(24, 2)),
        "position", "next token", "predicted probabilities: the marginal, whatever is read",
    ),
    "three-parameter-transformer": (
        lambda: _probs(sl.circuits.three_parameter_transformer(1.0, 1.0, length=24), _tokens(24, 2)),
        "position", "next token", "predicted probabilities at e = w = 1, a = b = 0",
    ),
    "value-topics": (
        lambda: sl.circuits.value_topics(sl.worlds.MaskedStatistics(topics=5, words=4)).value.detach(),
        "word (0 is [MASK])", "predicted word", "the block optimum of the value matrix: five topics of four words",
    ),
    "embedding-topics": (
        lambda: _gram(sl.circuits.embedding_topics(sl.worlds.MaskedStatistics(topics=5, words=4), "block").embedding),
        "word (0 is [MASK])", "word", "inner products of the embeddings with one dimension per topic",
    ),
    "outer-product-memory": (
        lambda: sl.circuits.outer_product_memory(torch.arange(24), 24)(torch.arange(24).unsqueeze(-1)).detach()[:, 0],
        "answer", "item", "what 24 items retrieve from 24 dimensions: 1 on the diagonal, and cross-talk",
    ),
    "parity-state-space": (
        lambda: _probs(sl.circuits.parity_state_space(), _tokens(24, 2)),
        "bit", "parity", "probability of an even and of an odd number of ones",
    ),
    "product-chain": (
        lambda: _steps(sl.circuits.product_chain(np.random.default_rng(0).dirichlet([1, 1], size=(8, 3)))),
        "next state of three bits", "state", "probability of each step: a product over the three positions",
    ),
    "deterministic-map": (
        lambda: _steps(sl.circuits.deterministic_map(sl.worlds.enumerate_states(3)[[3, 1, 4, 1, 5, 2, 6, 5]], 2)),
        "next state of three bits", "state", "every state goes where the map says",
    ),
    "gibbs-site-step": (
        lambda: _steps(sl.circuits.gibbs_site_step(sl.worlds.Ising(3, 0.6).law, 1)),
        "next state of three spins", "state", "only the second of three coupled spins is drawn again",
    ),
    "compose-functions": (lambda: _compose().mT, "pair of permutations", "argument − 1", "f(g(i)) of the network"),
    "tabulate": (_look_up, "first argument (×20)", "second argument (×20)", "exact at whole numbers, 0 elsewhere"),
}  # fmt: skip
"""Circuit → numbers that show what it does, and the labels of its axes."""


def _three() -> Any:
    return sl.worlds.named_machine("C3", length=24)


def _map(name: str) -> bytes:
    values, x, y, title = MAPS[name]
    figure, (axis,) = figures.new(width=5.2, height=2.6)
    figures.heatmap(axis, values().numpy(), x=x, y=y, title=title)
    return svg(figure)


def circuit_picture(name: str) -> bytes | None:
    """What a circuit of an automaton computes on a word; of other circuits the attention, at most eight maps."""
    if name in COMPUTATIONS:
        return _computation(name)
    if name in FIGURES:
        return svg(FIGURES[name]())
    if name in MAPS:
        return _map(name)
    if name not in CIRCUITS:
        return None
    try:
        model, inputs = CIRCUITS[name]()
        maps = sl.lenses.attention_maps(model, inputs, names="*pattern", average=False)
    except sl.BadInput:
        return None
    panels = []
    for path, pattern in maps.items():
        pattern = pattern[0]  # of the one input
        pattern = pattern if pattern.ndim == 3 else pattern.unsqueeze(0)
        layer = next((part for part in path.split(".") if part.isdigit()), "0")
        panels += [(f"layer {int(layer) + 1}, head {head + 1}", pattern[head]) for head in range(len(pattern))]
    panels = panels[:8]
    figure, axes = figures.new(columns=min(4, len(panels)), rows=(len(panels) + 3) // 4, width=2.5, height=2.5)
    for axis, (title, pattern) in zip(axes, panels):
        figures.heatmap(axis, pattern.detach().numpy(), title=title, x="key", y="query", low=0.0, high=1.0, bar=False)
        axis.title.set_fontsize(9)
    for axis in axes[len(panels) :]:
        axis.remove()
    return svg(figure)


def svg(figure: Any) -> bytes:
    buffer = io.BytesIO()
    with figures.style():
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()
