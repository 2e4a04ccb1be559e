"""Teachers that keep checkpoints: weights by step, member axis first, in memory or in a folder."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.func import functional_call

from sandlab.errors import BadInput, number
from sandlab.files import write_atomic
from sandlab.learning.experiment import Runs, Snapshot
from sandlab.models.attention import Attention
from sandlab.models.base import Config, Model, build

__all__ = ["CheckpointStore", "keep_weights", "soften", "without_weights"]

KEPT = "kept."


def keep_weights(snapshot: Snapshot) -> dict[str, Tensor]:
    """A probe that keeps the weights of every evaluation: a teacher's checkpoints (`CheckpointStore.of`)."""
    return {f"{KEPT}{name}": value for name, value in snapshot.model.state().items()}


def without_weights(runs: Runs) -> Runs:
    """The runs without their checkpoints, for results that are stored and shown."""
    return replace(runs, metrics={name: value for name, value in runs.metrics.items() if not name.startswith(KEPT)})


def soften(logits: Tensor, tau: float) -> Tensor:
    """softmax(logits/τ); below 10⁻⁶ equal shares of the largest logits, as for τ → 0."""
    number("tau", tau, low=0.0)
    if tau >= 1e-6:
        return (logits / tau).softmax(-1)
    largest = (logits == logits.amax(-1, keepdim=True)).to(logits.dtype)
    return largest / largest.sum(-1, keepdim=True)


@dataclass(frozen=True)
class CheckpointStore:
    """The weights of teachers after certain numbers of updates.

    config    the teachers' model; seeds: one per teacher
    saved_steps  updates done, increasing
    weights   name → (seed, checkpoint, …)
    """

    config: Config
    seeds: tuple[int, ...]
    saved_steps: tuple[int, ...]
    weights: Mapping[str, Tensor]

    @classmethod
    def of(cls, runs: Runs, config: Config) -> CheckpointStore:
        """The checkpoints of an experiment that was trained with the probe `keep_weights`."""
        kept = {name.removeprefix(KEPT): value for name, value in runs.metrics.items() if name.startswith(KEPT)}
        if not kept:
            raise BadInput("these runs keep no checkpoints: give the experiment probes=(keep_weights,)")
        weights = {name: torch.as_tensor(value) for name, value in kept.items()}
        return cls(config, runs.seeds, tuple(int(step) for step in runs.eval_steps), weights)

    @property
    def final(self) -> int:
        return self.saved_steps[-1]

    @property
    def nbytes(self) -> int:
        """Memory of all weights."""
        return sum(value.numel() * value.element_size() for value in self.weights.values())

    def at(self, step: int) -> dict[str, Tensor]:
        """The teachers' weights after so many updates, seed axis first."""
        if step not in self.saved_steps:
            raise BadInput(f"there is no checkpoint at step {step}: there are {', '.join(map(str, self.saved_steps))}")
        return {name: value[:, self.saved_steps.index(step)] for name, value in self.weights.items()}

    def nearest(self, step: float) -> int:
        """The kept step closest to `step`, never the untrained one when there is another."""
        trained = [each for each in self.saved_steps if each > 0] or list(self.saved_steps)
        return min(trained, key=lambda each: abs(each - step))

    def member(self, index: int) -> CheckpointStore:
        """The checkpoints of one teacher."""
        weights = {name: value[index : index + 1] for name, value in self.weights.items()}
        return replace(self, seeds=self.seeds[index : index + 1], weights=weights)

    def only(self, steps: Sequence[int]) -> CheckpointStore:
        """The store with some of its checkpoints."""
        places = [self.saved_steps.index(step) for step in steps]
        return replace(self, saved_steps=tuple(steps), weights={name: v[:, places] for name, v in self.weights.items()})

    def model(self, index: int, step: int) -> Model:
        """One teacher at one checkpoint, as a model in evaluation mode."""
        model = build(self.config)
        model.load_state_dict({name: value[index] for name, value in self.at(step).items()})
        return model.eval()

    def save(self, folder: str | Path) -> Path:
        """Write a file of weights per checkpoint; those that are there already are not written again."""
        from safetensors.torch import save

        path = Path(folder)
        for step in self.saved_steps:
            file = path / f"{step}.safetensors"
            if not file.exists():
                write_atomic(file, save({name: value.contiguous() for name, value in self.at(step).items()}))
        write_atomic(path / "seeds.json", json.dumps(list(self.seeds)).encode())
        return path

    @classmethod
    def load(cls, folder: str | Path, config: Config) -> CheckpointStore:
        """Read what `save` wrote: all checkpoints that are whole."""
        from safetensors.torch import load_file

        path = Path(folder)
        steps = sorted(int(file.stem) for file in path.glob("*.safetensors"))
        if not steps:
            raise BadInput(f"there are no checkpoints in {path}")
        parts = [load_file(str(path / f"{step}.safetensors")) for step in steps]
        weights = {name: torch.stack([part[name] for part in parts], 1) for name in parts[0]}
        return cls(config, tuple(json.loads((path / "seeds.json").read_text())), tuple(steps), weights)


class Teachers(nn.Module):
    """The teachers of a store at one checkpoint at a time, in evaluation mode and without gradients."""

    def __init__(self, store: CheckpointStore, device: torch.device) -> None:
        super().__init__()
        self.store, self.template = store, build(store.config).eval().requires_grad_(False).to(device)
        self.place, self._step, self._weights = device, -1, dict[str, Tensor]()
        for part in self.template.modules():
            if isinstance(part, Attention):
                part.fused = device.type == "cuda"

    def weights(self, step: int) -> dict[str, Tensor]:
        if step != self._step:
            self._weights = {name: value.to(self.place) for name, value in self.store.at(step).items()}
            self._step = step
        return self._weights

    @torch.no_grad()
    def logits(self, step: int, inputs: Tensor) -> Tensor:
        """Logits (seed, example, …) of each teacher on inputs of its own (seed, example, …)."""
        weights = self.weights(step)
        if self.template.carries_members and len(self.store.seeds) > 1:
            return functional_call(self.template, weights, (inputs,))
        rows = range(len(self.store.seeds))
        own = [functional_call(self.template, {n: v[row] for n, v in weights.items()}, (inputs[row],)) for row in rows]
        return torch.stack(own)
