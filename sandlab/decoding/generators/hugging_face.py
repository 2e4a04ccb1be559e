"""Hugging Face causal language models from a local folder as generators, with a cache that rolls back row by row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sandlab.decoding.generators.base import Generator
from sandlab.decoding.generators.neural import CachedGenerator
from sandlab.errors import BadInput, choice

__all__ = ["HuggingFaceGenerator", "LanguageModel", "load_language_model"]


@dataclass(frozen=True)
class LanguageModel:
    """A Hugging Face model with its tokenizer, ready to decode."""

    generator: Generator
    tokenizer: Any
    name: str

    @property
    def eos(self) -> int:
        return int(self.tokenizer.eos_token_id)

    def encode(self, text: str) -> list[int]:
        """Tokens of a prompt; an empty one becomes the model's begin (or end) token."""
        tokens = list(self.tokenizer(text).input_ids)
        # Some tokenizers end every text: a prompt goes on.
        if len(tokens) > 1 and tokens[-1] == self.eos and not text.endswith(self.tokenizer.eos_token):
            tokens.pop()
        if tokens:
            return tokens
        start = self.tokenizer.bos_token_id
        return [int(self.eos if start is None else start)]

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of some tokens, with the blank in front that many tokenizers drop at the beginning of a text."""
        anchor, known = self._anchor
        return self._plain([*anchor, *tokens])[known:]

    def _plain(self, tokens: Sequence[int]) -> str:
        return str(self.tokenizer.decode(list(tokens), skip_special_tokens=True, clean_up_tokenization_spaces=False))

    @cached_property
    def _anchor(self) -> tuple[list[int], int]:
        """Tokens of a letter to put in front, and how many characters they are."""
        tokens = list(self.tokenizer("a", add_special_tokens=False).input_ids)
        return tokens, len(self._plain(tokens))


def load_language_model(folder: str | Path, *, device: str = "cpu") -> LanguageModel:
    """The causal language model and tokenizer saved in `folder` (`save_pretrained`); nothing is downloaded."""
    try:
        from transformers import AutoModelForCausalLM, AutoTokenizer
    except ImportError as missing:
        raise BadInput("language models need transformers: pip install 'sandlab[hf]'") from missing
    _check_device(device)
    path = Path(folder)
    if not path.is_dir():
        raise BadInput(f"there is no model folder {str(folder)!r}: give a folder written by save_pretrained")
    if not (path / "config.json").exists():
        raise BadInput(f"the folder {str(folder)!r} has no config.json: give a folder written by save_pretrained")
    try:
        with _quiet():
            model = AutoModelForCausalLM.from_pretrained(path, local_files_only=True, trust_remote_code=False)
            tokenizer = AutoTokenizer.from_pretrained(path, local_files_only=True, trust_remote_code=False)
    except (OSError, ValueError, KeyError, TypeError, ImportError) as problem:
        reason = " ".join(str(problem).split())[:200]
        raise BadInput(
            f"the folder {str(folder)!r} holds no causal language model with a tokenizer: {reason}"
        ) from None
    if tokenizer.eos_token_id is None:
        raise BadInput(f"the tokenizer in {str(folder)!r} has no end token: set eos_token and save it again")
    network: Any = model
    return LanguageModel(HuggingFaceGenerator(network.to(device).eval()), tokenizer, path.name)


def _check_device(device: str) -> None:
    choice("device", device.partition(":")[0], ("cpu", "cuda"))
    if device != "cpu" and not torch.cuda.is_available():
        raise BadInput(f"device must be 'cpu' on this machine, got {device!r}: torch finds no CUDA device")


@contextmanager
def _quiet() -> Iterator[None]:
    """The library's own bars would stand between the results of a command."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


class HuggingFaceGenerator(CachedGenerator):
    """Any Hugging Face causal model. Points a verifier may read: "hidden.0" (embeddings) to "hidden.L" (last layer).

    Keys and values live in one buffer of fixed size per layer, in which every row has its own length: the library's
    own caches grow in step for all rows and cannot take back tokens of one row alone. Positions and a mask are given
    to the model explicitly. At construction one pass with the cache is compared with one without; a model for which
    they differ (its attention does not take such a mask) is recomputed from the start at each question instead.
    """

    def __init__(self, model: Any, points: Sequence[str] = ()) -> None:
        super().__init__(int(model.config.vocab_size), next(model.parameters()).device, points)
        self.model = model.eval()
        self.longest = getattr(model.config, "max_position_embeddings", None)
        self.cache_works = self._cache_works()
        # Within its window, sliding attention is plain attention; beyond it, our mask would be too wide.
        self.window = getattr(model.config, "sliding_window", None)

    def start(self, strings: int, capacity: int) -> None:
        if self.longest is not None and capacity > self.longest:
            raise BadInput(
                f"prompt and answer may have {capacity} tokens, the model reads {self.longest}: lower max_new"
            )
        self.cached = self.cache_works and (self.window is None or capacity <= self.window)
        super().start(strings, capacity)

    def _open(self, strings: int, capacity: int) -> _RowCache:
        return _RowCache(strings, capacity, self.device)

    @torch.no_grad()
    def _run(self, cache: Any, chunk: Tensor, starts: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        new = chunk.shape[1]
        if not self.cached:
            return self._recompute(cache, chunk, starts)
        places = starts.unsqueeze(1) + torch.arange(new, device=self.device)
        cache.places, cache.reach = places, int(places.max()) + 1
        seen = torch.arange(cache.reach, device=self.device) <= places.unsqueeze(-1)
        lowest = torch.finfo(self.model.dtype).min
        mask = torch.zeros(seen.shape, dtype=self.model.dtype, device=self.device).masked_fill(~seen, lowest)
        output = self.model(
            input_ids=chunk,
            position_ids=places,
            attention_mask=mask.unsqueeze(1),
            past_key_values=cache.for_transformers(),
            use_cache=True,
            output_hidden_states=bool(self.points),
        )
        return output.logits, self._watched(output)

    def _recompute(self, cache: Any, chunk: Tensor, starts: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Everything anew: the tokens read so far stand in the cache object, nothing else does."""
        index = starts.unsqueeze(1) + torch.arange(chunk.shape[1], device=self.device)
        cache.texts.scatter_(1, index, chunk)
        whole = cache.texts[:, : int(index.max()) + 1]
        output = self.model(input_ids=whole, use_cache=False, output_hidden_states=bool(self.points))
        wide = index.unsqueeze(-1)
        logits = output.logits.gather(1, wide.expand(-1, -1, output.logits.shape[-1]))
        features = {
            point: value.gather(1, wide.expand(-1, -1, value.shape[-1]))
            for point, value in self._watched(output).items()
        }
        return logits, features

    def _watched(self, output: Any) -> dict[str, Tensor]:
        found = {}
        for point in self.points:
            kind, _, number = point.partition(".")
            if kind != "hidden" or not number.isdigit() or int(number) >= len(output.hidden_states):
                raise BadInput(f"no activation {point!r}: there are hidden.0 to hidden.{len(output.hidden_states) - 1}")
            found[point] = output.hidden_states[int(number)]
        return found

    @torch.no_grad()
    def _cache_works(self) -> bool:
        """Whether rows of different lengths, read in pieces and written over, get the logits of a plain pass."""
        self.cached, points, self.points = True, self.points, []
        tokens = torch.arange(1, 13, device=self.device).view(2, 6) % self.vocab
        try:
            plain = self.model(input_ids=tokens, use_cache=False).logits
            cache = self._open(2, 6)
            for begin, end in (([0, 0], 4), ([4, 1], 2), ([3, 3], 3)):
                starts = torch.tensor(begin, device=self.device)
                index = starts.unsqueeze(1) + torch.arange(end, device=self.device)
                logits, _ = self._run(cache, tokens.gather(1, index), starts)
                expected = plain.gather(1, index.unsqueeze(-1).expand_as(logits))
                if float((logits - expected).abs().max()) > 1e-4 + 1e-3 * float(plain.abs().max()):
                    return False
        except (TypeError, ValueError, RuntimeError, AttributeError, IndexError, NotImplementedError):
            return False
        finally:
            self.points = points
        return True


class _RowCache:
    """One buffer of keys and one of values per layer; the tokens being read stand at `places` of their rows."""

    def __init__(self, rows: int, capacity: int, device: torch.device) -> None:
        self.rows, self.capacity, self.device = rows, capacity, device
        self.places: Int[Tensor, "row new"] = torch.zeros(rows, 0, dtype=torch.long, device=device)
        self.reach = 0
        self.lengths = torch.zeros(rows, dtype=torch.long, device=device)
        self.texts = torch.zeros(rows, capacity, dtype=torch.long, device=device)
        self.slots: list[_RowSlot] = []

    def select(self, rows: Int[Tensor, "chosen"]) -> _RowCache:
        chosen = _RowCache(len(rows), self.capacity, self.device)
        chosen.texts = self.texts[rows]
        chosen.slots = [_RowSlot(chosen, slot.keys[rows], slot.values[rows]) for slot in self.slots]
        return chosen

    def for_transformers(self) -> Any:
        from transformers.cache_utils import Cache

        owner = self

        class Rows(Cache):
            """What the library calls: `update` per layer; lengths are only asked for masks, which are given."""

            def __init__(self) -> None:
                super().__init__(layers=[])

            def update(
                self, key_states: Tensor, value_states: Tensor, layer_idx: int, *_: object, **__: object
            ) -> tuple[Tensor, Tensor]:
                return owner.slot(layer_idx, key_states, value_states).extend(key_states, value_states)

            def get_seq_length(self, layer_idx: int = 0) -> int:
                return owner.reach - owner.places.shape[1]

            def get_mask_sizes(self, query_length: Any, layer_idx: int = 0) -> tuple[int, int]:
                return owner.reach, 0

        return Rows()

    def slot(self, layer: int, keys: Tensor, values: Tensor) -> _RowSlot:
        while len(self.slots) <= layer:
            shape = (self.rows, keys.shape[1], self.capacity)
            self.slots.append(
                _RowSlot(self, keys.new_zeros(*shape, keys.shape[-1]), values.new_zeros(*shape, values.shape[-1]))
            )
        return self.slots[layer]


class _RowSlot:
    def __init__(self, cache: _RowCache, keys: Float[Tensor, "row head place dim"], values: Tensor) -> None:
        self.cache, self.keys, self.values = cache, keys, values

    def extend(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Write the new keys and values at their rows' places; everything up to the furthest place is handed back."""
        index = self.cache.places[:, None, :, None]
        self.keys.scatter_(2, index.expand_as(keys), keys)
        self.values.scatter_(2, index.expand_as(values), values)
        return self.keys[:, :, : self.cache.reach], self.values[:, :, : self.cache.reach]
