"""A training that tells the page how it goes, one JSON object per line: `python -m sandlab.atlas.live_training`."""

from __future__ import annotations

import json
import math
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from sandlab.lab._store.plain import Facts

if TYPE_CHECKING:
    from torch import Tensor

    from sandlab.learning.population import Population
    from sandlab.models.base import Model
    from sandlab.worlds.base import Batch, World

__all__ = ["main"]

_SHOWN = 24  # letters of the example whose attention is drawn


class _Stop(Exception):
    """The page asked for the end."""


def main(arguments: list[str]) -> None:
    """Arguments: one JSON object {world, settings, model, options, steps, seeds, lr, folder}."""
    from sandlab.atlas.guard import close_files, readable_roots
    from sandlab.cli.browse import make_world
    from sandlab.cli.training import model_config
    from sandlab.lab.training import _levels
    from sandlab.learning.experiment import Experiment, Training
    from sandlab.learning.population import Population
    from sandlab.learning.training import train
    from sandlab.models.base import build
    from sandlab.plugins import load_all
    from sandlab.random import rng

    for number in (signal.SIGTERM, signal.SIGXCPU):
        signal.signal(number, _stop)
    asked = json.loads(arguments[0])
    folder = Path(asked["folder"])
    folder.mkdir(parents=True, exist_ok=True)
    load_all()  # plug-ins, while files are open to them
    close_files(readable_roots(), [folder])
    world = make_world(asked["world"], asked["settings"])
    config = model_config(world, asked["model"], asked["options"])
    steps, seeds = int(asked["steps"]), int(asked["seeds"])
    experiment = Experiment(world, config, Training(steps, 32, float(asked["lr"]), eval_examples=256), seeds)
    levels = {name: level for name, level in _levels(experiment).items() if math.isfinite(level)}
    _tell({"levels": levels, "seeds": seeds, "steps": steps})
    population = Population(lambda _seed: build(config), seeds=range(seeds))
    held_out = world.sample(256, rng=rng(1, "held out"))
    curve = _Curve(levels, world, held_out, population)
    try:
        train(
            population, world, steps=steps, batch_size=32, lr=experiment.training.lr, rng=rng(0), evaluate=held_out,
            every=max(1, steps // 60), callbacks=(curve.note,), progress=False, data="separate", nan="continue",
        )  # fmt: skip
    except _Stop:
        _tell({"text": "stopped on request; the weights are those of this moment"})
    _write(folder, asked, curve, population)
    _tell({"end": True})


class _Curve:
    """The losses so far, told as they come: plateaus named after the nearest baseline, attention of every member."""

    def __init__(self, levels: dict[str, float], world: World, held_out: Batch, population: Population[Model]) -> None:
        self.levels, self.world, self.population = levels, world, population
        self.row = held_out.inputs[:1]
        self.steps: list[int] = []
        self.losses: list[list[float]] = []

    def note(self, step: int, _model: object, metrics: Facts) -> None:
        self.steps.append(int(step))
        self.losses.append([round(float(value), 5) for value in metrics["loss"]])
        facts: Facts = {"step": self.steps[-1], "loss": self.losses[-1]}
        if len(self.steps) >= 8 and self.levels:
            facts["plateaus"] = self._plateaus()
        if len(self.steps) % 6 == 1:
            facts |= self._attention()
        _tell(facts)

    def _plateaus(self) -> list[Facts]:
        from sandlab.lenses.ngrams.stages import name_plateaus, plateaus

        mean = [sum(row) / len(row) for row in self.losses]
        if not all(value < 1e9 for value in mean):  # some member has diverged
            return []
        found: list[Facts] = []
        for each in name_plateaus(plateaus(self.steps, mean, shortest=0.1), self.levels):
            if found and found[-1]["name"] == each.name:  # a slow slope beside one baseline is one stay there
                before, now = found[-1]["stop"] - found[-1]["start"], each.stop - each.start
                mean_loss = (found[-1]["loss"] * before + each.loss * now) / max(1, before + now)
                found[-1] |= {"stop": each.stop, "loss": round(mean_loss, 5)}
            else:
                found.append({"start": each.start, "stop": each.stop, "loss": round(each.loss, 5), "name": each.name})
        return found

    def _attention(self) -> Facts:
        """Attention maps of every member on the first held-out example; empty for models without attention."""
        import torch

        from sandlab.models.hooks import record

        if self.row.is_floating_point() or self.row.ndim != 2:
            return {}
        members = []
        for member in self.population.members():
            with torch.no_grad(), record(member.eval(), "*") as cache:
                member(self.row)
            members.append(_maps(cache))
        letters = [self.world.letters[token] for token in self.row[0, :_SHOWN].tolist()]
        return {"attention": members, "row": letters} if members[0] else {}


def _maps(cache: Mapping[str, Tensor]) -> list[Facts]:
    """Name and heads (query, key) of every attention layer that was recorded, on the first letters."""
    return [
        {"name": name, "heads": [[[round(w, 3) for w in row] for row in head.tolist()] for head in cut]}
        for name in cache
        if name.endswith("attention.pattern") and (cut := cache[name][0, ..., :_SHOWN, :_SHOWN]).ndim == 3
    ]


def _write(folder: Path, asked: Facts, curve: _Curve, population: Population[Model]) -> None:
    """Weights of every member, the curves, and what was trained."""
    about = {name: asked[name] for name in ("world", "settings", "model", "options", "steps", "seeds", "lr")}
    about |= {"levels": curve.levels, "at": curve.steps, "loss": curve.losses}
    for seed, member in enumerate(population.members()):
        member.save(folder / f"model-{seed}")
    (folder / "about.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    _tell({"saved": True})


def _stop(*_: object) -> None:
    for number in (signal.SIGTERM, signal.SIGXCPU):
        signal.signal(number, signal.SIG_IGN)
    raise _Stop


def _tell(facts: Facts) -> None:
    print(json.dumps(facts), flush=True)


if __name__ == "__main__":
    from sandlab.errors import BadInput

    try:
        main(sys.argv[1:])
    except BadInput as refusal:
        _tell({"text": str(refusal)})
        sys.exit(2)
    except _Stop:  # before anything was trained
        sys.exit(0)
