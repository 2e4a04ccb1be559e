"""Every model of the zoo on a GPU against the loop a good engineer would write; budgeted, most telling first.

The good loop: stock modules (`nn.LSTM` and `nn.RNN` by cuDNN, a GPT of `nn.Linear` and fused attention, compiled),
fused AdamW, batches drawn on the device, no reading of losses. Ours: `train` on a population with one batch per member.
For the other models of tokens, which torch has no module for, the loop trains our own module, eager or compiled,
whichever is faster; these rows are one member each (`--only "one member"`). Populations of LSTMs are measured with the
kernels of `lstm_on_chip.py` and, as "plain", without; `--only LSTM` is these rows, and how exact both ways are.

    python benchmarks/zoo_gpu.py [--budget 300] [--only WORDS] [--out zoo.json]
"""

from __future__ import annotations

import argparse
import json
import time
import traceback
from collections.abc import Callable
from typing import Any
from unittest import mock

import torch
import torch.nn.functional as F
import training as zoo
from torch import Tensor, nn

import sandlab as sl
from sandlab.learning._engine.precision import computing
from sandlab.models._parts import lstm_on_chip, recurrent_scan
from sandlab.models.base import Config, Model, build

DEVICE = "cuda"
PEAK_BF16 = 989e12  # dense bf16 products of one H200, per second
FLIP_FLOP = sl.worlds.FlipFlop.ignoring(0.8, length=512)
MARKOV = sl.worlds.InContextMarkov(states=3, order=1, length=64)


class Recurrent(nn.Module):
    """Embedding, one recurrent layer of torch, readout."""

    def __init__(self, kind: type[nn.Module], vocab: int, width: int) -> None:
        super().__init__()
        self.embed, self.core, self.read = (
            nn.Embedding(vocab, width),
            kind(width, width, batch_first=True),
            nn.Linear(width, vocab),
        )

    def forward(self, tokens: Tensor) -> Tensor:
        return self.read(self.core(self.embed(tokens))[0])


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.qkv(self.first(x)).chunk(3, -1)
        )
        z = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(z.transpose(1, 2).flatten(-2))
        return x + self.mlp(self.second(x))


class GPT(nn.Module):
    """The transformer a good engineer writes."""

    def __init__(self, vocab: int, length: int, layers: int, width: int, heads: int) -> None:
        super().__init__()
        self.embed, self.place = nn.Embedding(vocab, width), nn.Parameter(torch.randn(length, width) * 0.02)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm, self.read = nn.LayerNorm(width), nn.Linear(width, vocab, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.read(self.norm(self.blocks(self.embed(tokens) + self.place[: tokens.shape[1]])))


def good_loop(
    model: nn.Module, world: Any, batch: int, *, compiled: bool, precision: str, seconds: float = 4.0
) -> float:
    """Steps per second of the good loop."""
    model = model.to(DEVICE)
    call = torch.compile(model) if compiled else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    generator = sl.rng(0, device=DEVICE)

    def step() -> None:
        drawn = world.sample(batch, rng=generator)
        with torch.autocast("cuda", torch.bfloat16, enabled=precision == "bf16"):
            loss = F.cross_entropy(call(drawn.inputs).flatten(0, 1).float(), drawn.targets.flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    with computing("float32" if precision == "bf16" else precision, torch.device(DEVICE)):
        for _ in range(10):
            step()
        return _rate(step, seconds)


def _rate(step: Callable[[], object], seconds: float) -> float:
    torch.cuda.synchronize()
    start, count = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        for _ in range(5):
            step()
        torch.cuda.synchronize()
        count += 5
    return count / (time.perf_counter() - start)


def ours(config: Config, world: Any, batch: int, members: int, **options: Any) -> dict[str, float]:
    """Model-steps per second of `train` on a population, without the time of getting ready, which is told beside it."""
    marks = []

    def mark(step: int, _model: object, _metrics: object) -> None:
        torch.cuda.synchronize()
        marks.append((step, time.perf_counter()))

    begun = time.perf_counter()
    population = sl.learning.Population(lambda _seed: build(config), seeds=range(members)).to(DEVICE)
    settings = {"lr": 1e-3, "every": 32, "data": "separate", "progress": False, "rng": sl.rng(1, device=DEVICE)}
    sl.learning.train(population, world, batch_size=batch, callbacks=(mark,), **{**settings, **options})
    (first, start), (last, end) = marks[1], marks[-1]
    memory = torch.cuda.max_memory_allocated() / 2**30
    return {"ours": members * (last - first) / (end - start), "ready s": start - begun, "memory GiB": memory}


def lstms(members: int, **options: Any) -> dict[str, float]:
    """A population of LSTMs with the kernels (`kernels` is 1 where they passed their check) and step by step."""
    config = sl.models.LSTMConfig(vocab=5, width=128, layers=1, readout_bias=True, torch_start=True)
    found = ours(config, FLIP_FLOP, 16, members, **options)
    if members == 1:  # cuDNN
        return found
    passed = float(any(lstm_on_chip._trusted.values()))
    torch.cuda.empty_cache()
    with mock.patch.object(lstm_on_chip, "serves", return_value=False):
        plain = ours(config, FLIP_FLOP, 16, members, **options)
    return {**found, "kernels": passed, "plain": plain["ours"]}


def exactness(members: int = 8, time: int = 511, batch: int = 16, width: int = 128) -> dict[str, float]:
    """Relative distance of states and of the weights' gradient from full float32: both ways in TF32."""
    rng = sl.rng(0)
    shapes = [(members, time, batch, 4 * width), (members, 4 * width, width), *[(members, batch, width)] * 2]
    values = [torch.randn(shape, generator=rng).to(DEVICE) for shape in shapes]
    values[1] *= width**-0.5
    sent = torch.randn(members, time, batch, width, generator=rng).to(DEVICE) / (time * batch)

    def outcome(way: Callable[..., tuple[Tensor, Tensor]], precision: str) -> list[Tensor]:
        given = [each.requires_grad_() for each in values]
        with computing(precision, torch.device(DEVICE)):
            every, _ = way(*given)
            return [every.detach(), torch.autograd.grad(every, given[1], sent)[0]]

    plain = recurrent_scan._Scan.apply
    truth, ways = outcome(plain, "float32"), {"kernels": lstm_on_chip.scan, "plain": plain}
    found = {}
    for name, way in ways.items():
        for part, one, other in zip(("states", "gradient"), outcome(way, "tf32"), truth):
            found[f"{name}, {part}"] = float((one - other).norm() / other.norm())
    return found


def flops(config: Any, tokens: int) -> float:
    """Products of one training step of a transformer on so many tokens: 6 per weight and token, and the attention."""
    weights = 12 * config.layers * config.width**2
    return tokens * (6 * weights + 6 * config.layers * config.length * config.width)


def others() -> list[tuple[str, Config]]:
    """Models of tokens that predict at every position and have no stock module beside them above."""
    batch = zoo.WORLD.sample(2, rng=sl.rng(0))
    made = [(name, make(0)) for name, make in zoo.zoo().items() if name not in ("lstm", "rnn", "transformer")]
    every = [(name, model) for name, model in made if model(batch.inputs).shape[:2] == batch.inputs.shape]
    return [(name, model.config) for name, model in every if isinstance(model, Model)]


def rows() -> list[tuple[str, float, Callable[[], dict[str, Any]]]]:
    """Name, seconds it needs, measurement."""
    small = sl.models.TransformerConfig(vocab=3, length=64, layers=2, heads=1, width=64)
    big = sl.models.TransformerConfig(vocab=5, length=511, layers=6, heads=8, width=512, init_std=None)
    rnn = sl.models.RNNConfig(vocab=5, width=128, layers=1, readout_bias=True)
    base: dict[str, float] = {}

    def against(name: str, make: Callable[[], float]) -> float:
        if name not in base:
            base[name] = make()
        return base[name]

    def row(baseline: float, found: dict[str, float], **more: float) -> dict[str, Any]:
        return {**found, "baseline": baseline, "ratio": found["ours"] / baseline, **more}

    def cudnn() -> float:
        return against(
            "lstm", lambda: good_loop(Recurrent(nn.LSTM, 5, 128), FLIP_FLOP, 16, compiled=False, precision="tf32")
        )

    def elman() -> float:
        return against(
            "rnn", lambda: good_loop(Recurrent(nn.RNN, 5, 128), FLIP_FLOP, 16, compiled=False, precision="tf32")
        )

    def gpt(precision: str, compiled: bool = True) -> float:
        name = f"gpt {precision} {compiled}"
        return against(
            name, lambda: good_loop(GPT(5, 511, 6, 512, 8), FLIP_FLOP, 16, compiled=compiled, precision=precision)
        )

    def tiny() -> float:
        return against("tiny", lambda: good_loop(GPT(3, 64, 2, 64, 1), MARKOV, 64, compiled=False, precision="tf32"))

    def big_row(members: int) -> dict[str, Any]:
        found = ours(big, FLIP_FLOP, 16, members, precision="bf16", steps=384, compile=True)
        return row(gpt("bf16"), found, chip=found["ours"] * flops(big, 16 * 511) / PEAK_BF16)

    def own_row(config: Config) -> dict[str, Any]:
        loops = [
            good_loop(build(config), zoo.WORLD, 64, compiled=compiled, precision="tf32", seconds=2.0)
            for compiled in (False, True)
        ]
        found = ours(config, zoo.WORLD, 64, 1, precision="tf32", steps=512, compile=False)
        return row(max(loops), found, eager=loops[0], compiled=loops[1])

    made = [
        (
            f"LSTM, {n} members",
            40.0,
            lambda n=n: row(cudnn(), lstms(n, precision="tf32", steps=160, compile=False)),
        )
        for n in (100, 1, 25, 8)
    ]
    made += [("LSTM, distance from full float32", 15.0, exactness)]
    made += [(f"19 M transformer, bf16, {n} members", 60.0, lambda n=n: big_row(n)) for n in (1, 4)]
    made += [
        (
            f"small transformer, {p}, {n} members",
            45.0,
            lambda n=n, p=p: row(tiny(), ours(small, MARKOV, 64, n, precision=p, steps=256, compile=True)),
        )
        for n, p in ((1024, "bf16"), (256, "bf16"), (256, "tf32"), (1, "tf32"))
    ]
    made += [
        (
            "Elman, 1 members",
            25.0,
            lambda: row(elman(), ours(rnn, FLIP_FLOP, 16, 1, precision="tf32", steps=160, compile=False)),
        )
    ]
    made += [(f"{name}, one member", 20.0, lambda c=config: own_row(c)) for name, config in others()]
    telling = ("100 members", "4 members", "256 members", "1 members", "1024 members")
    return sorted(made, key=lambda each: next((i for i, end in enumerate(telling) if each[0].endswith(end)), 9))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", type=float, default=300.0)
    parser.add_argument("--only", default="", help="rows whose names hold these words")
    parser.add_argument("--out", default="")
    options = parser.parse_args()
    end, done = time.monotonic() + options.budget, []
    for name, needs, measure in rows():
        if options.only not in name:
            continue
        if end - time.monotonic() < needs:
            print(f"left out for lack of time: {name}", flush=True)
            continue
        try:
            found = {"name": name, **measure()}
        except Exception as problem:
            traceback.print_exc(limit=6)
            found = {"name": name, "failed": str(problem)}
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        torch.compiler.reset()
        done.append(found)
        print(
            ", ".join(f"{key} {value:.4g}" if isinstance(value, float) else str(value) for key, value in found.items()),
            flush=True,
        )
        if options.out:
            with open(options.out, "w", encoding="utf-8") as file:
                json.dump(
                    {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "rows": done}, file, indent=1
                )


if __name__ == "__main__":
    main()
