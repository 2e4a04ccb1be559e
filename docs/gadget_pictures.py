"""Pictures of the small networks of the constructions: what they answer, and what they should."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import sandlab as sl
from sandlab import figures
from sandlab.circuits.dyck import pruning

ACCENT = "#d1495b"


def _line(start: float, end: float) -> torch.Tensor:
    return torch.linspace(start, end, 400, dtype=torch.float64).unsqueeze(1)


def _curve(x: torch.Tensor, values: torch.Tensor, points: Any = None, **labels: str) -> Any:
    """A network of one number over its argument, and the points at which it must be exact."""
    figure, (axis,) = figures.new(width=4.6, height=2.6)
    axis.plot(x.flatten().numpy(), values.detach().flatten().numpy())
    if points is not None:
        axis.plot(*points, "o", color=ACCENT)
    axis.set(**labels)
    return figure


def interpolate() -> Any:
    points, values, x = np.arange(5.0), np.array([1.0, 3.0, 0.0, 2.0, 2.0]), _line(-1.5, 5.5)
    network = sl.circuits.interpolate(points, values)
    title = "exact within a quarter of the gap"
    return _curve(x, network(x), (points, values), xlabel="argument", ylabel="value", title=title)


def step() -> Any:
    x = _line(-1.5, 1.5)
    return _curve(x, sl.circuits.step_up(1.0)(x), xlabel="argument", ylabel="value")


def look_up() -> Any:
    points, values = torch.arange(5.0).double().unsqueeze(1), torch.tensor([1.0, 3.0, 0.0, 2.0, 2.0]).double()
    network, x = sl.circuits.look_up(points, values.unsqueeze(1), rng=sl.rng(0)), _line(-1, 5)
    labels = {"xlabel": "argument", "ylabel": "value", "title": "exact at the entries of the table"}
    return _curve(x, network(x), (points.flatten().numpy(), values.numpy()), **labels)


def indexing() -> Any:
    entries = torch.tensor([1.0, 3.0, 0.5, 2.0, 2.5], dtype=torch.float64)
    network, y = sl.circuits.indexing(5, 3.0), _line(1, 5)
    answers = network(torch.cat([entries.expand(len(y), -1), y], 1))
    labels = {"xlabel": "index y", "ylabel": "x_y", "title": "exact at whole indices"}
    return _curve(y, answers, (np.arange(1, 6), entries.numpy()), **labels)


def hot_index() -> Any:
    """The index of the hot entry, for entries from 0 to twice the threshold."""
    network, height = sl.circuits.hot_index(5, 1.0), _line(0, 2)
    figure, (axis,) = figures.new(width=4.6, height=2.6)
    for index in range(5):
        x = torch.zeros(len(height), 5, dtype=torch.float64)
        x[:, index] = height.flatten()
        axis.plot(height.flatten().numpy(), network(x).detach().flatten().numpy(), label=f"entry {index + 1}")
    axis.axvline(1.0, color="#555555", linestyle=":")
    axis.set(xlabel="value of the hot entry (threshold 1)", ylabel="answer", title="right from the threshold on")
    axis.legend(fontsize=7)
    return figure


def select() -> Any:
    """Three tables as networks, and the one network that answers for all of them."""
    points = torch.arange(4.0).double().unsqueeze(1)
    tables = torch.tensor([[0.0, 1.0, 0.5, 2.0], [2.0, 0.0, 1.5, 0.5], [1.0, 1.0, 2.0, 0.0]], dtype=torch.float64)
    make = sl.circuits.look_up
    networks = [make(points, row.unsqueeze(1), rng=sl.rng(0)) for row in tables]
    chosen, x = sl.circuits.select_network(networks, 10.0), _line(0, 3)
    figure, (axis,) = figures.new(width=4.6, height=2.6)
    for which, row in enumerate(tables, start=1):
        answers = chosen(torch.cat([torch.full_like(x, which), x], 1)).detach().flatten().numpy()
        (drawn,) = axis.plot(x.flatten().numpy(), answers, label=f"y = {which}")
        axis.plot(points.flatten().numpy(), row.numpy(), "o", color=drawn.get_color())
    axis.set(xlabel="x", ylabel="f_y(x)", title="one network, three tables (dots)")
    axis.legend(fontsize=7)
    return figure


def _unit(size: int) -> np.ndarray:
    matrix = np.random.default_rng(0).normal(size=(size, size))
    return matrix / np.linalg.norm(matrix, 2)


def _pruned(product: Callable[[np.ndarray, int, Any], np.ndarray]) -> Any:
    """A matrix, what random ones are pruned to, and the median error of nine draws by the number of random units."""
    target, copies = _unit(6), (4, 8, 12, 16, 20)
    found = [[product(target, count, np.random.default_rng(seed)) for seed in range(9)] for count in copies]
    figure, axes = figures.new(columns=3, width=3.2, height=2.8)
    largest = float(np.abs(target).max())
    for axis, values, title in zip(axes, (target, found[2][0]), ("target", "pruned, 12 units per input")):
        figures.heatmap(axis, values, title=title, low=-largest, high=largest, bar=False)
    axes[2].plot(copies, [np.median([np.abs(each - target).max() for each in row]) for row in found], "o-")
    axes[2].set(yscale="log", xlabel="random units per input", title="largest error of an entry")
    return figure


def _two_layers(target: np.ndarray, copies: int, draw: Any) -> np.ndarray:
    first, second = pruning.prune_linear(target, copies, rng=draw).weights
    return second @ first


def _key_and_query(target: np.ndarray, copies: int, draw: Any) -> np.ndarray:
    key, query = pruning.prune_bilinear(target, copies, rng=draw)
    return key.T @ query


def _outputs(layers: int) -> Any:
    """Outputs of a random transformer after pruning against those of the one it was pruned into."""
    draw = np.random.default_rng(4)
    targets = [pruning.random_layer(4, 2, 6, rng=draw) for _ in range(layers)]
    options: dict[str, Any] = {"width": 40, "linear_copies": 20, "relu_copies": 60, "rng": draw}
    found = pruning.prune_layer(targets[0], **options) if layers == 1 else pruning.prune_transformer(targets, **options)
    expected, answer = [], []
    for _ in range(12):
        x = draw.normal(size=(4, 6))
        x /= np.linalg.norm(x, axis=0).max()
        padded = np.concatenate([x, np.zeros((36, 6))])
        for target in targets:
            x = pruning.layer_output(target, x)
        for layer in found:
            padded = pruning.layer_output(layer, padded)
        expected.append(x.ravel())
        answer.append(padded[:4].ravel())
    figure, (axis,) = figures.new(width=3.4, height=3.2)
    axis.plot(np.concatenate(expected), np.concatenate(answer), ".", markersize=4)
    axis.axline((0, 0), slope=1, color="#999999", linewidth=1)
    axis.set(
        xlabel="output of the given layers", ylabel="of the pruned random ones", title=f"{len(found)} random layers"
    )
    return figure


def suffix_table() -> Any:
    """The next-token probabilities of an order-2 chain given the last two tokens, and given the last one only."""
    chain = sl.worlds.MarkovChain.random(states=3, order=2, length=24, concentration=0.4, seed=1)
    make = sl.circuits.suffix_table
    pairs = chain.sample(1, rng=sl.rng(1)).inputs[0].unfold(0, 2, 1)
    figure, axes = figures.new(columns=2, width=4.4, height=2.4)
    for axis, lags in zip(axes, ((1, 2), (1,))):
        probs = make(chain, lags)(pairs).detach().softmax(-1)[:, -1].mT.numpy()
        title = f"lags {', '.join(map(str, lags))}"
        figures.heatmap(axis, probs, x="position", y="next token", title=title, low=0.0, high=1.0)
    return figure


GADGETS: dict[str, Callable[[], Any]] = {
    "interpolate": interpolate,
    "step-up": step,
    "look-up": look_up,
    "indexing": indexing,
    "hot-index": hot_index,
    "select-network": select,
    "prune-linear": lambda: _pruned(_two_layers),
    "prune-bilinear": lambda: _pruned(_key_and_query),
    "prune-layer": lambda: _outputs(1),
    "prune-transformer": lambda: _outputs(2),
    "suffix-table": suffix_table,
}
"""Circuit → its figure."""
