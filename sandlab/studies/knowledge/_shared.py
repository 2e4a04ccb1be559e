"""What the studies of facts and memories have in common."""

from __future__ import annotations

SOURCE = "Nichani, Lee & Bietti 2024, Understanding factual recall in transformers via associative memories"
