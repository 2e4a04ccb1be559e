"""Networks as generators: key-value caches that follow strings as they grow, shrink and branch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from sandlab.decoding.generators.base import Generator
from sandlab.errors import BadInput
from sandlab.models._parts.cache import KeyValueCache
from sandlab.models.hooks import matching, record
from sandlab.models.transformer import Transformer

__all__ = ["CachedGenerator", "ModelGenerator", "RecomputingGenerator", "generator_of"]


class RecomputingGenerator(Generator):
    """Any model from tokens to logits, run over the whole prefix at each question: no cache, the plain truth."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model.eval()
        self.device = next(model.parameters()).device
        self.vocab = _classes(model)

    def _next_log_probs(self, tokens: Tensor, lengths: Tensor, rows: Tensor) -> Tensor:
        logits = self.model(self._cut(tokens, lengths))
        return logits[_here(rows), lengths - 1].log_softmax(-1)

    def features(self, tokens: Tensor, lengths: Tensor, rows: Tensor, point: str) -> Tensor:
        with torch.no_grad(), record(self.model, point) as activations:
            self.model(self._cut(tokens, lengths))
        return activations[point][_here(rows), lengths - 1]

    def _cut(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        if int(lengths.min()) < 1:
            raise BadInput("a network needs at least one token to predict from: begin prompts with a start token")
        return tokens[:, : int(lengths.max())]


class CachedGenerator(Generator):
    """The bookkeeping of a generator with a cache: what each row has read, and what must be read anew.

    Asked about a prefix, it compares it with what the row has read, forgets the rest and feeds what is missing. The
    last log-probabilities and features of each row are kept, so that a verifier that reads the network and a decoder
    that samples from it cost one pass together. Memory per string: one cache of `capacity` tokens.

    A subclass gives `_open`, which makes a cache, and `_run`, which feeds tokens to it.
    """

    def __init__(self, vocab: int, device: torch.device, points: Sequence[str] = ()) -> None:
        super().__init__()
        self.vocab, self.device, self.points = vocab, device, list(points)
        self.read_tokens = torch.zeros(0, 0, dtype=torch.long, device=device)

    def start(self, strings: int, capacity: int) -> None:
        self.read_tokens = torch.full((strings, capacity), -1, dtype=torch.long, device=self.device)
        self.read_lengths = torch.zeros(strings, dtype=torch.long, device=self.device)
        self.last_logprobs: Tensor | None = None
        self.last_normaliser = torch.zeros(strings, device=self.device)
        self.last_features: dict[str, Tensor] = {}
        self.cache = self._open(strings, capacity)

    def watch(self, point: str) -> None:
        """Keep this activation at the last token of every prefix that is read."""
        if point not in self.points:
            self.points.append(point)

    def next_logprobs(self, tokens: Tensor, lengths: Tensor, rows: Tensor) -> Tensor:
        self._catch_up(tokens, lengths, rows)
        assert self.last_logprobs is not None
        return self.last_logprobs[rows]

    def normaliser(self, rows: Tensor) -> Tensor:
        return self.last_normaliser[rows]

    @torch.no_grad()
    def token_logprobs(self, tokens: Tensor, begins: Tensor, lengths: Tensor, rows: Tensor) -> Tensor:
        """One pass over the last tokens of each string: its logits say how likely each of them was."""
        # The pass reads the token before `begins` in any case: only what stands before that one must be known.
        _, common = self._shared(tokens, (begins - 1).clamp(min=1), rows)
        behind = common < begins - 1
        if bool(behind.any()):
            self._catch_up(tokens[behind], begins[behind] - 1, rows[behind])
        new = int((lengths - begins).max())
        starts = (lengths - 1 - new).clamp(min=0)
        index = starts.unsqueeze(1) + torch.arange(new, device=self.device)
        part = self.cache.select(rows)
        self.evaluations += len(rows)
        logits, _ = self._run(part, tokens.gather(1, index), starts, None)
        following = tokens.gather(1, index + 1)
        own = logits.float().log_softmax(-1).gather(2, following.unsqueeze(-1)).squeeze(-1)
        return torch.zeros(tokens.shape, dtype=own.dtype, device=self.device).scatter(1, index + 1, own)

    def features(self, tokens: Tensor, lengths: Tensor, rows: Tensor, point: str) -> Tensor:
        if point not in self.points:
            raise BadInput(f"the generator does not watch {point!r}: call generator.watch({point!r}) first")
        if len(rows) > 1 and len(rows.unique()) < len(rows):
            return self._branch(tokens, lengths, rows, point)
        self._catch_up(tokens, lengths, rows)
        return self.last_features[point][rows]

    def _catch_up(self, tokens: Tensor, lengths: Tensor, rows: Tensor) -> None:
        """Read what these rows have not read yet."""
        if len(self.read_lengths) <= int(rows.max()):
            raise BadInput("the generator was not started for this batch: call generator.start(strings, capacity)")
        if int(lengths.min()) < 1:
            raise BadInput("a network needs at least one token to predict from: begin prompts with a start token")
        if self._grown_by_one(tokens, lengths, rows):
            self.evaluations += len(rows)
            self._read(self._widened(tokens), lengths, rows, lengths - 1)
            return
        tokens, common = self._shared(tokens, lengths, rows)
        stale = (common < lengths) | (self.read_lengths[rows] != lengths)
        if not bool(stale.any()):
            return
        tokens, lengths, rows, common = tokens[stale], lengths[stale], rows[stale], common[stale]
        first, twin = self._twins(tokens, lengths, common)
        self.evaluations += len(first)
        self._read(tokens[first], lengths[first], rows[first], common[first])
        if len(first) < len(rows):
            self._copy(rows, rows[first][twin])

    def _grown_by_one(self, tokens: Tensor, lengths: Tensor, rows: Tensor) -> bool:
        """Whether all rows have one length and one token more than they had: the common case, seen at a glance."""
        size = int(lengths[0])
        return (
            len(rows) == len(self.read_lengths)
            and size > 1
            and bool(((lengths == size) & (self.read_lengths == size - 1)).all())
            and torch.equal(rows, _here(rows))
            and torch.equal(tokens[:, : size - 1], self.read_tokens[:, : size - 1])
        )

    def _widened(self, tokens: Tensor) -> Tensor:
        """The tokens at the cache's width."""
        width = self.read_tokens.shape[1]
        if tokens.shape[1] >= width:
            return tokens[:, :width]
        return nn.functional.pad(tokens, (0, width - tokens.shape[1]))

    def _twins(self, tokens: Tensor, lengths: Tensor, common: Tensor) -> tuple[Tensor, Tensor]:
        """Rows to read, and for every row the number of the one that reads the same from the beginning."""
        every = _here(lengths)
        if len(lengths) < 2 or bool((common > 0).any()):
            return every, every
        inside = torch.arange(tokens.shape[1], device=tokens.device) < lengths.unsqueeze(1)
        _, twin = torch.where(inside, tokens, -1).unique(dim=0, return_inverse=True)
        count = int(twin.max()) + 1
        if count == len(lengths):
            return every, every
        first = torch.full((count,), len(lengths), device=tokens.device).scatter_reduce_(0, twin, every, "amin")
        return first, twin

    def _copy(self, rows: Tensor, sources: Tensor) -> None:
        """Rows that have read the same as others take over what those have."""
        for slot in self.cache.slots:
            slot.keys[rows], slot.values[rows] = slot.keys[sources], slot.values[sources]
        for kept in (self.last_logprobs, self.last_normaliser, *self.last_features.values()):
            if kept is not None:
                kept[rows] = kept[sources]
        self.read_tokens[rows], self.read_lengths[rows] = self.read_tokens[sources], self.read_lengths[sources]

    def _shared(self, tokens: Tensor, lengths: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
        """The tokens at the cache's width, and how many of them each row has read already."""
        tokens = self._widened(tokens)
        place = torch.arange(tokens.shape[1], device=tokens.device)
        known = (tokens == self.read_tokens[rows]) & (place < self.read_lengths[rows].unsqueeze(1))
        return tokens, torch.minimum(known.long().cumprod(1).sum(1), lengths)

    def _read(self, tokens: Tensor, lengths: Tensor, rows: Tensor, common: Tensor) -> None:
        new = int((lengths - torch.minimum(common, lengths - 1)).max())
        # Rows with fewer new tokens read some old ones again, so that all end at their last token.
        starts = (lengths - new).clamp(min=0)
        index = starts.unsqueeze(1) + torch.arange(new, device=self.device)
        last = lengths - 1 - starts
        logits, features = self._feed(tokens.gather(1, index), starts, rows, last)
        logits = logits.float()
        total = logits.logsumexp(-1)
        if self.last_logprobs is None:
            self.last_logprobs = logits.new_zeros(len(self.read_lengths), logits.shape[1])
        self.last_logprobs[rows], self.last_normaliser[rows] = logits - total.unsqueeze(1), total
        for point, values in features.items():
            if point not in self.last_features:
                self.last_features[point] = values.new_zeros(len(self.read_lengths), values.shape[-1])
            self.last_features[point][rows] = values
        self.read_tokens[rows], self.read_lengths[rows] = tokens, lengths

    def _feed(
        self, chunk: Tensor, starts: Tensor, rows: Tensor, last: Tensor
    ) -> tuple[Float[Tensor, "row vocab"], dict[str, Tensor]]:
        if 2 * len(rows) >= len(self.read_lengths):
            return self._feed_all(chunk, starts, rows, last)
        part = self.cache.select(rows)
        logits, features = self._run(part, chunk, starts, last)
        self._put(rows, part)
        return logits, features

    def _put(self, rows: Tensor, part: Any) -> None:
        """Write what was read into a copy of some rows back to them."""
        for slot, own in zip(self.cache.slots, part.slots):
            slot.keys[rows], slot.values[rows] = own.keys, own.values

    def _feed_all(
        self, chunk: Tensor, starts: Tensor, rows: Tensor, last: Tensor
    ) -> tuple[Float[Tensor, "row vocab"], dict[str, Tensor]]:
        """Run the whole batch when most of it is asked for: the other rows read their last tokens once more."""
        if len(rows) == len(self.read_lengths) and bool((rows == _here(rows)).all()):
            return self._run(self.cache, chunk, starts, last)
        new = chunk.shape[1]
        every_start = (self.read_lengths - new).clamp(min=0)
        index = every_start.unsqueeze(1) + torch.arange(new, device=self.device)
        every_chunk = self.read_tokens.gather(1, index).clamp(min=0)
        every_start[rows], every_chunk[rows] = starts, chunk
        every_last = torch.full_like(self.read_lengths, new - 1)
        every_last[rows] = last
        logits, features = self._run(self.cache, every_chunk, every_start, every_last)
        return logits[rows], {point: value[rows] for point, value in features.items()}

    def _branch(self, tokens: Tensor, lengths: Tensor, rows: Tensor, point: str) -> Tensor:
        """Several continuations of the same rows at once: read into copies, the rows themselves stay."""
        own = torch.unique(rows)
        first = torch.zeros_like(own)
        first[torch.searchsorted(own, rows)] = torch.arange(len(rows), device=rows.device)
        # The parents must have been read; their distributions are needed anyway by whoever compares children.
        self._catch_up(tokens[first], lengths[first] - 1, own)
        self.evaluations += len(rows)
        ends = tokens.gather(1, (lengths - 1).unsqueeze(1)).squeeze(1)
        parts = [self._run_children(some, ends[some], lengths[some] - 1, rows[some], point) for some in self._few(rows)]
        return torch.cat(parts)

    def _few(self, rows: Tensor) -> list[Tensor]:
        """Children that are read in one pass: never the whole vocabulary at once."""
        return list(_here(rows).split(64))

    def _run_children(self, some: Tensor, ends: Tensor, places: Tensor, rows: Tensor, point: str) -> Tensor:
        """The activation of one more token after each of these rows."""
        _, features = self._run(self.cache.select(rows), ends.unsqueeze(1), places, torch.zeros_like(ends))
        return features[point]

    def _open(self, strings: int, capacity: int) -> Any:
        """An empty cache: `slots` with `keys` and `values` (row first), `lengths`, `reach`, and `select(rows)`."""
        raise NotImplementedError

    def _run(self, cache: Any, chunk: Tensor, starts: Tensor, last: Tensor | None) -> tuple[Tensor, dict[str, Tensor]]:
        """Read `chunk` at positions starts, starts + 1, … of every row.

        Logits and watched features at the position `last` of each row's chunk; None: logits at every position.
        """
        raise NotImplementedError


class ModelGenerator(CachedGenerator):
    """A transformer of the zoo with its key-value cache.

    `points` are activations that verifiers read ("layers.1.resid_post").
    """

    def __init__(self, model: Transformer, points: Sequence[str] = ()) -> None:
        for point in points:
            matching(model, point)
        super().__init__(_classes(model), next(model.parameters()).device, points)
        self.model = model.eval()

    def _open(self, strings: int, capacity: int) -> KeyValueCache:
        return self.model.start_cache(strings, capacity)

    def _run(
        self, cache: KeyValueCache, chunk: Tensor, starts: Tensor, last: Tensor | None
    ) -> tuple[Tensor, dict[str, Tensor]]:
        # What stands behind `starts` is written over: the cache's own lengths only say where.
        cache.lengths, cache.reach = starts, int(starts.max())
        if not self.points:
            return _at(self.model(chunk, cache=cache), last), {}
        with record(self.model, *self.points) as activations:
            logits = self.model(chunk, cache=cache)
        return _at(logits, last), {point: _at(activations[point], last) for point in self.points}


def generator_of(model: nn.Module, points: Sequence[str] = ()) -> Generator:
    """The model with a cache where it has one, otherwise recomputed from the start at each question."""
    if isinstance(model, Transformer) and model.config.causal:
        return ModelGenerator(model, points)
    return RecomputingGenerator(model)


def _classes(model: nn.Module) -> int:
    config = getattr(model, "config", None)
    classes = getattr(config, "outputs", None) or getattr(config, "vocab", None)
    if classes is None:
        raise BadInput(f"{type(model).__name__} has no config with vocab: wrap it in a Generator of your own")
    return int(classes)


def _at(values: Tensor, last: Tensor | None) -> Tensor:
    """The values at one position of each row; None: all of them."""
    if last is None or values.shape[1] == 1:
        return values if last is None else values[:, 0]
    return values[_here(last), last]


def _here(rows: Tensor) -> Int[Tensor, "row"]:
    return torch.arange(len(rows), device=rows.device)
