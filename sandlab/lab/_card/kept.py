"""Cards that were measured here: files of the store, which the atlas shows beside the recorded ones."""

from __future__ import annotations

import json
import re
from pathlib import Path

from sandlab.lab._card.battery import BATTERY
from sandlab.lab._card.measure import Card
from sandlab.lab._store.files import write_atomic

__all__ = ["keep_card", "kept_cards"]


def keep_card(card: Card, store: Path) -> Path:
    """Write a card into the store, in the place of an older one of the same model and size."""
    name = re.sub(r"[^\w.-]+", "-", card.model)[:100]
    file = store / "cards" / f"{name}-{card.size}.json"
    write_atomic(file, card.to_json().encode())
    return file


def kept_cards(store: Path) -> list[Card]:
    """The cards in the store, for this battery, by name; a file that is no card is left out."""
    found = []
    for file in sorted((store / "cards").glob("*.json")):
        try:
            found.append(Card.from_dict(json.loads(file.read_text(encoding="utf-8"))))
        except (OSError, ValueError, TypeError, KeyError):  # someone has been at the store
            continue
    return [card for card in found if card.battery == BATTERY]
