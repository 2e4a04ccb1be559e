"""A training that tells the page how it goes, one JSON object per line: `python -m sandlab.atlas.live_training`."""

from __future__ import annotations

import json
import sys
from typing import Any

__all__ = ["main"]


def main(arguments: list[str]) -> None:
    """Arguments: one JSON object {world, settings, model, options, steps, seeds, lr}."""
    from sandlab.cli.browse import make_world
    from sandlab.cli.training import model_config
    from sandlab.lab.training import _levels
    from sandlab.learning.experiment import Experiment, Training
    from sandlab.learning.population import Population
    from sandlab.learning.training import train
    from sandlab.models.base import build
    from sandlab.random import rng

    asked = json.loads(arguments[0])
    world = make_world(asked["world"], asked.get("settings", {}))
    config = model_config(world, asked["model"], asked.get("options", {}))
    steps, seeds = int(asked["steps"]), int(asked["seeds"])
    experiment = Experiment(world, config, Training(steps, 32, float(asked["lr"]), eval_examples=256), seeds)
    _tell({"levels": _levels(experiment), "seeds": seeds, "steps": steps})
    population = Population(lambda _seed: build(config), seeds=range(seeds))
    held_out = world.sample(256, rng=rng(1, "held out"))

    def note(step: int, _model: Any, metrics: dict[str, Any]) -> None:
        _tell({"step": step, "loss": [round(float(value), 5) for value in metrics["loss"]]})

    train(
        population, world, steps=steps, batch_size=32, lr=experiment.training.lr, rng=rng(0), evaluate=held_out,
        every=max(1, steps // 60), callbacks=(note,), progress=False, data="separate", nan="continue",
    )  # fmt: skip
    _tell({"end": True})


def _tell(facts: dict[str, Any]) -> None:
    print(json.dumps(facts), flush=True)


if __name__ == "__main__":
    from sandlab.errors import BadInput

    try:
        main(sys.argv[1:])
    except BadInput as refusal:
        _tell({"text": str(refusal)})
        sys.exit(2)
