"""Pretrained encoders from a local folder: their embeddings, attention and tokenizer."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sandlab.errors import BadInput

__all__ = ["PretrainedEncoder", "load_encoder"]


@dataclass(frozen=True, eq=False)
class PretrainedEncoder:
    """A Hugging Face encoder (Bert, Albert, Electra, Roberta; of Bart, its encoder) with its tokenizer."""

    model: Any
    tokenizer: Any

    def table(self) -> Float[Tensor, "vocab width"]:
        """Input embeddings of the tokens."""
        return self.model.get_input_embeddings().weight.detach()

    @torch.no_grad()
    def mean_attention(self, tokens: Int[Tensor, "batch time"]) -> Float[Tensor, "batch query key"]:
        """Attention between positions, averaged over layers and heads.

        The special tokens that the model expects around a text are put there, and left out of the answer.
        """
        before, after = self._around
        rows = [torch.full((len(tokens), 1), special) for special in (before, after) if special is not None]
        inputs = torch.cat([*rows[:1], tokens.cpu(), *rows[1:]], 1).to(self.model.device)
        found = self.model(input_ids=inputs, output_attentions=True).attentions
        mean = torch.stack([layer.mean(1) for layer in found]).mean(0)
        inside = slice(1, -1) if rows else slice(None)
        return mean[:, inside, inside]

    @property
    def longest(self) -> int:
        """Tokens that a text may have beside the special ones."""
        known = getattr(self.model.config, "max_position_embeddings", 512)
        # Roberta counts positions from its padding token on.
        return int(known) - 4

    @property
    def _around(self) -> tuple[int | None, int | None]:
        first = self.tokenizer.cls_token_id if self.tokenizer.cls_token_id is not None else self.tokenizer.bos_token_id
        last = self.tokenizer.sep_token_id if self.tokenizer.sep_token_id is not None else self.tokenizer.eos_token_id
        return (None, None) if first is None or last is None else (int(first), int(last))


def load_encoder(folder: str | Path, *, random: bool = False, seed: int = 0) -> PretrainedEncoder:
    """The encoder saved in a folder; nothing is downloaded.

    random   keep its architecture and tokenizer, but draw the weights anew: the untrained control
    """
    place = Path(folder)
    if not (place / "config.json").is_file():
        raise BadInput(f"{place} holds no config.json: give the folder of a saved encoder with its tokenizer")
    from transformers import AutoConfig, AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(place, local_files_only=True)
    if random:
        from sandlab.models.base import seeded

        with seeded(seed):
            model = AutoModel.from_config(AutoConfig.from_pretrained(place), attn_implementation="eager")
    else:
        model = AutoModel.from_pretrained(place, local_files_only=True, attn_implementation="eager")
    model = model.get_encoder() if getattr(model.config, "is_encoder_decoder", False) else model
    return PretrainedEncoder(model.eval(), tokenizer)
