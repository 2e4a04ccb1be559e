"""Measure the cards of the built-in architectures, which `sandlab card` shows beside a user's: size by size.

    python scripts/zoo_cards.py --size quick --store runs --on processes:16
    python scripts/zoo_cards.py --size full --device cuda --budget 300

The same command goes on where it was stopped. Results are written into the package.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict
from pathlib import Path

from sandlab.lab._card import measure
from sandlab.lab._card.measure import REFERENCES, Reference, measure_card
from sandlab.lab._exec.executors import executor
from sandlab.lab._store.store import Store
from sandlab.lab.laboratory import Laboratory

PARAMETERS = {"quick": 30_000, "full": 200_000}
SEEDS = {"quick": 3, "full": 5}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=list(PARAMETERS), default="quick")
    parser.add_argument("--store", default="runs")
    parser.add_argument("--on", default="local")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--budget", type=float, default=None, help="seconds")
    parser.add_argument("--out", type=Path, default=None, help="file (default: in the package)")
    options = parser.parse_args()
    out = options.out or Path(measure.__file__).with_name(f"zoo-{options.size}.json")
    place, start, cards = executor(options.on), time.monotonic(), []
    try:
        for name in REFERENCES:
            left = None if options.budget is None else max(0.0, options.budget - (time.monotonic() - start))
            lab = Laboratory(Store.open(options.store), place, device=options.device, budget=left)
            config = Reference(name, PARAMETERS[options.size])
            card = measure_card(name, config, lab, size=options.size, seeds=SEEDS[options.size])
            print(
                f"{name}: {len(card.rows)} rows, left out {card.left_out}, {time.monotonic() - start:.0f} s", flush=True
            )
            cards.append(card)
            if any(each.rows for each in cards):
                out.write_text(json.dumps([asdict(each) for each in cards if each.rows], indent=0), encoding="utf-8")
    finally:
        place.close()


if __name__ == "__main__":
    main()
