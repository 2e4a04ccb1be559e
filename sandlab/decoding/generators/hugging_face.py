"""Hugging Face causal language models from a local folder as generators, with a cache that rolls back row by row."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from sandlab.decoding.generators._row_cache import RowCache, beside
from sandlab.decoding.generators.base import Generator
from sandlab.decoding.generators.neural import CachedGenerator, _at
from sandlab.errors import BadInput, choice

__all__ = ["HuggingFaceGenerator", "LanguageModel", "load_language_model"]

Chat = Sequence[Mapping[str, str]]  # messages: {"role": "user", "content": "…"}


@dataclass(frozen=True)
class LanguageModel:
    """A Hugging Face model with its tokenizer, ready to decode."""

    generator: Generator
    tokenizer: Any
    name: str

    @classmethod
    def of(cls, model: Any, tokenizer: Any, name: str = "") -> LanguageModel:
        """A Hugging Face causal model and tokenizer that are already in memory."""
        if tokenizer.eos_token_id is None:
            raise BadInput("the tokenizer has no end token: set tokenizer.eos_token")
        return cls(HuggingFaceGenerator(model.eval()), tokenizer, name or type(model).__name__)

    @property
    def eos(self) -> int:
        """The tokenizer's end token."""
        return int(self.tokenizer.eos_token_id)

    @cached_property
    def ends(self) -> tuple[int, ...]:
        """Every token that ends a text: the tokenizer's, and those of the model's generation config."""
        return self.ends_of(getattr(self.generator, "model", None), self.tokenizer)

    @staticmethod
    def ends_of(model: object, tokenizer: Any) -> tuple[int, ...]:
        """The end token of a tokenizer and those of a model's generation config."""
        listed = getattr(getattr(model, "generation_config", None), "eos_token_id", None)
        more = [] if listed is None else [listed] if isinstance(listed, int) else listed
        return tuple(dict.fromkeys([int(tokenizer.eos_token_id), *map(int, more)]))

    def encode(self, text: str | Chat) -> list[int]:
        """Tokens of a prompt; an empty one becomes the model's begin (or end) token, a chat goes by its template."""
        if not isinstance(text, str):
            return self._encode_chat(text)
        tokens = list(self.tokenizer(text).input_ids)
        # Some tokenizers end every text: a prompt goes on.
        if len(tokens) > 1 and tokens[-1] == self.eos and not text.endswith(self.tokenizer.eos_token):
            tokens.pop()
        if tokens:
            return tokens
        start = self.tokenizer.bos_token_id
        return [int(self.eos if start is None else start)]

    def _encode_chat(self, messages: Chat) -> list[int]:
        if getattr(self.tokenizer, "chat_template", None) is None:
            raise BadInput("the tokenizer has no chat template: set tokenizer.chat_template or give the prompt as text")
        text = self.tokenizer.apply_chat_template(list(messages), tokenize=False, add_generation_prompt=True)
        return list(self.tokenizer(text, add_special_tokens=False).input_ids)

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
        self.keeps = "logits_to_keep" in inspect.signature(model.forward).parameters
        self.longest = getattr(model.config, "max_position_embeddings", None)
        self.single = False
        self.cache_works = self._cache_works()
        # Within its window, sliding attention is plain attention; beyond it, our mask would be too wide.
        self.window = getattr(model.config, "sliding_window", None)

    def start(self, strings: int, capacity: int) -> None:
        if self.longest is not None and capacity > self.longest:
            raise BadInput(
                f"prompt and answer may have {capacity} tokens, the model reads {self.longest}: lower max_new"
            )
        self.cached = self.cache_works and (self.window is None or capacity <= self.window)
        if hasattr(self, "cache"):
            self.cache.close()
        super().start(strings, capacity)

    @torch.no_grad()
    def next_logprobs(self, tokens: Tensor, lengths: Tensor, rows: Tensor) -> Float[Tensor, "row vocab"]:
        # One token more for all rows, nothing to watch: on small models the bookkeeping is felt beside the pass.
        if self.cached and not self.points and (place := self._next_place(tokens, lengths, rows)) is not None:
            return self._step(tokens, lengths, place)
        return super().next_logprobs(tokens, lengths, rows)

    def _next_place(self, tokens: Tensor, lengths: Tensor, rows: Tensor) -> int | None:
        """Where the one token stands that all rows have more than they had, or None: lists are quicker than tensors."""
        sizes = lengths.tolist()
        place = sizes[0] - 1
        grown = (
            place >= 1
            and sizes == [place + 1] * len(self.read_lengths)
            and self.read_lengths.tolist() == [place] * len(sizes)
            and rows.tolist() == list(range(len(sizes)))
            and torch.equal(tokens[:, :place], self.read_tokens[:, :place])
        )
        return place if grown else None

    def _step(self, tokens: Tensor, lengths: Tensor, place: int) -> Tensor:
        """Every row reads its last token; what stood in their place is replaced, not written over."""
        newest = tokens[:, place : place + 1]
        self.evaluations += len(tokens)
        self.single = True
        self.cache.places, self.cache.reach, self.cache.aligned = torch.full_like(newest, place), place + 1, True
        logits = self._pass(self.cache, newest, None).logits[:, 0].float()
        self.last_logprobs = logits.log_softmax(-1)
        self.last_normaliser = logits[:, 0] - self.last_logprobs[:, 0]
        self.read_tokens[:, place : place + 1], self.read_lengths = newest, lengths.clone()
        return self.last_logprobs

    def _open(self, strings: int, capacity: int) -> RowCache:
        return RowCache(strings, capacity, self.device)

    @torch.no_grad()
    def _run(self, cache: Any, chunk: Tensor, starts: Tensor, last: Tensor | None) -> tuple[Tensor, dict[str, Tensor]]:
        new = chunk.shape[1]
        self.single = new == 1 and self.cached
        if not self.cached:
            return self._recompute(cache, chunk, starts, last)
        places = starts.unsqueeze(1) + torch.arange(new, device=self.device)
        cache.places, cache.reach = places, int(starts.max()) + new
        cache.aligned = int(starts.min()) + new == cache.reach
        output = self._pass(cache, chunk, last)
        return self._wanted(output.logits, last), self._watched(output, last)

    def _pass(self, cache: RowCache, chunk: Tensor, last: Tensor | None) -> Any:
        """The model over tokens that stand at the cache's places."""
        return self.model(
            input_ids=chunk,
            position_ids=cache.places,
            attention_mask=self._mask(cache.places, cache.reach, cache.aligned),
            past_key_values=cache.for_transformers(),
            use_cache=True,
            output_hidden_states=bool(self.points),
            **self._positions_wanted(last),
        )

    def _mask(self, places: Tensor, reach: int, aligned: bool) -> Tensor | None:
        """None where plain causal attention is right: all rows stand at the same place, at the beginning or alone."""
        new = places.shape[1]
        if aligned and (new == 1 or new == reach):
            return None
        seen = torch.arange(reach, device=self.device) <= places.unsqueeze(-1)
        lowest = torch.finfo(self.model.dtype).min
        mask = torch.zeros(seen.shape, dtype=self.model.dtype, device=self.device).masked_fill(~seen, lowest)
        return mask.unsqueeze(1)

    def _few(self, rows: Tensor) -> list[Tensor]:
        """The children of one prefix share a pass, some hundred at a time."""
        edges = (rows[1:] != rows[:-1]).nonzero().squeeze(1) + 1
        groups = torch.arange(len(rows), device=rows.device).tensor_split(edges.cpu())
        return [part for group in groups for part in group.split(256)]

    @torch.no_grad()
    def _run_children(self, some: Tensor, ends: Tensor, places: Tensor, rows: Tensor, point: str) -> Tensor:
        """Children of one prefix side by side in one row: each sees the prefix and itself, and no cache is copied."""
        if not self.cached:
            return super()._run_children(some, ends, places, rows, point)
        known, count, self.single = int(places[0]), len(ends), False
        own = torch.eye(count, dtype=torch.bool, device=self.device)
        seen = torch.cat([torch.ones(count, known, dtype=torch.bool, device=self.device), own], 1)
        lowest = torch.finfo(self.model.dtype).min
        mask = torch.zeros(seen.shape, dtype=self.model.dtype, device=self.device).masked_fill(~seen, lowest)
        output = self.model(
            input_ids=ends.unsqueeze(0),
            position_ids=places.unsqueeze(0),
            attention_mask=mask[None, None],
            past_key_values=beside(self.cache, int(rows[0]), known),
            use_cache=True,
            output_hidden_states=True,
            **self._positions_wanted(torch.zeros(1, dtype=torch.long, device=self.device)),
        )
        return output.hidden_states[int(point.partition(".")[2])][0]

    def _put(self, rows: Tensor, part: RowCache) -> None:
        # Layers have their buffers only once something was read.
        for layer, own in enumerate(part.slots):
            slot = self.cache.slot(layer, own.keys, own.values)
            slot.keys[rows], slot.values[rows] = own.keys, own.values
        self.cache.texts[rows] = part.texts

    def _copy(self, rows: Tensor, sources: Tensor) -> None:
        super()._copy(rows, sources)
        self.cache.texts[rows] = self.cache.texts[sources]

    def _positions_wanted(self, last: Tensor | None) -> dict[str, Tensor]:
        """The positions of which logits are computed: a prompt of 4 000 tokens needs those of its last one only."""
        return {} if last is None or self._all_computed else {"logits_to_keep": last.unique()}

    @property
    def _all_computed(self) -> bool:
        """Whether logits of all positions are computed: the model cannot leave some out, or there is only one."""
        return not self.keeps or self.single

    def _wanted(self, logits: Tensor, last: Tensor | None) -> Tensor:
        if last is None or self._all_computed:
            return _at(logits, last)
        return _at(logits, torch.searchsorted(last.unique(), last))

    def _recompute(
        self, cache: Any, chunk: Tensor, starts: Tensor, last: Tensor | None
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Everything anew: the tokens read so far stand in the cache object, nothing else does."""
        index = starts.unsqueeze(1) + torch.arange(chunk.shape[1], device=self.device)
        cache.texts.scatter_(1, index, chunk)
        whole = cache.texts[:, : int(index.max()) + 1]
        if last is not None:
            spot = starts + last
            output = self.model(
                input_ids=whole,
                use_cache=False,
                output_hidden_states=bool(self.points),
                **self._positions_wanted(spot),
            )
            return self._wanted(output.logits, spot), self._watched(output, spot)
        logits = self.model(input_ids=whole, use_cache=False).logits
        return logits.gather(1, index.unsqueeze(-1).expand(-1, -1, logits.shape[-1])), {}

    def _watched(self, output: Any, last: Tensor | None) -> dict[str, Tensor]:
        found: dict[str, Tensor] = {}
        if last is None:
            return found
        for point in self.points:
            kind, _, number = point.partition(".")
            if kind != "hidden" or not number.isdigit() or int(number) >= len(output.hidden_states):
                raise BadInput(f"no activation {point!r}: there are hidden.0 to hidden.{len(output.hidden_states) - 1}")
            found[point] = _at(output.hidden_states[int(number)], last)
        return found

    @torch.no_grad()
    def _cache_works(self) -> bool:
        """Whether rows of different lengths, read in pieces and written over, get the logits of a plain pass."""
        self.cached, points, self.points = True, self.points, []
        tokens = torch.arange(1, 13, device=self.device).view(2, 6) % self.vocab
        try:
            plain = self.model(input_ids=tokens, use_cache=False).logits
            cache = self._open(2, 6)
            for begin, end in (([0, 0], 4), ([4, 4], 1), ([4, 1], 2), ([3, 3], 3)):
                starts = torch.tensor(begin, device=self.device)
                index = starts.unsqueeze(1) + torch.arange(end, device=self.device)
                logits, _ = self._run(cache, tokens.gather(1, index), starts, None)
                expected = plain.gather(1, index.unsqueeze(-1).expand_as(logits))
                if float((logits - expected).abs().max()) > 1e-4 + 1e-3 * float(plain.abs().max()):
                    return False
        except (TypeError, ValueError, RuntimeError, AttributeError, IndexError, NotImplementedError):
            return False
        finally:
            self.points = points
        return True
