"""Decoding within a grammar: masking here against `transformers.generate` with llguidance and with xgrammar.

    python benchmarks/constrained_decoding.py [--json] [--quick] [--steps 24] [--repeats 5] [--part "128000 tokens"]

One process, one thread, random weights (4 layers, width 256), a regular expression that allows letters only. CPU time a
token, reading the prompt included, the median of five runs that take turns (two for long prompts), for vocabularies of
8 000 and 128 000, batches of 1 and 8, prompts of 16 and of 4 000 tokens; for a prompt of 4 000 tokens the memory that a
fresh process needs on top of the model (Linux). Then a verifier trained on activations on a vocabulary of 50 257: cost
of one query of the walk over that of a plain step, and its memory. xgrammar is left out where it is not installed.
--part measures the rows whose names contain the text, for machines that are quiet for a few minutes only.
"""

from __future__ import annotations

import argparse
import json
import statistics
import string
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import torch

import sandlab as sl
from sandlab.decoding.decoders.sampling import Sampling
from sandlab.decoding.decoders.walks import VGB, ValueGuided
from sandlab.decoding.generators.hugging_face import LanguageModel
from sandlab.decoding.verifiers.grammars import GrammarVerifier
from sandlab.decoding.verifiers.schemas import compile_grammar
from sandlab.decoding.verifiers.trained import ProbeNetwork
from sandlab.decoding.verifiers.values import ValueFunction

# It may end anywhere, so that all ways write as many tokens with as many passes: at the last place ours allows the end
# token only, and the pass that is saved there is spent on the log-probability of what was forced.
LETTERS = r"[a-z]*"
Row = dict[str, Any]
QUICK = {"steps": 6, "vocabularies": (8_000,), "long": 0, "repeats": 1}


@cache
def tokenizer(vocab: int) -> Any:
    """All bytes, then words of one to four letters: as many tokens as asked for."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = ["<s>", "</s>", *alphabet]
    known = set(words)
    for size in (2, 3, 4):
        for letters in product(string.ascii_lowercase, repeat=size):
            word = "".join(letters)
            if len(words) < vocab and word not in known:
                words.append(word)
    raw = Tokenizer(models.BPE({word: index for index, word in enumerate(words)}, []))
    raw.pre_tokenizer, raw.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=raw, bos_token="<s>", eos_token="</s>", pad_token="</s>")


def network(vocab: int, width: int = 256, layers: int = 4, heads: int = 8) -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    shape = LlamaConfig(
        vocab_size=vocab, hidden_size=width, intermediate_size=2 * width, num_hidden_layers=layers,
        num_attention_heads=heads, max_position_embeddings=8192, bos_token_id=0, eos_token_id=1, pad_token_id=1,
        tie_word_embeddings=True,
    )  # fmt: skip
    return LlamaForCausalLM(shape).eval()


def prompt(length: int, rows: int) -> torch.Tensor:
    return torch.randint(2, 250, (rows, length), generator=sl.rng(0))


# -- the ways to do it ------------------------------------------------------------------------------------------------


def ours(model: Any, words: Any) -> Callable[[torch.Tensor, int], Any]:
    loaded, language = LanguageModel.of(model, words), compile_grammar(regex=LETTERS)
    judges: dict[tuple[int, int], GrammarVerifier] = {}

    def run(tokens: torch.Tensor, steps: int) -> Any:
        # The tokens' bytes are read once, as by the others.
        key = tuple(tokens.shape)
        if key not in judges:
            judges[key] = GrammarVerifier(language, loaded, [tokens.shape[1]] * len(tokens))
        return ValueGuided().generate(
            loaded.generator, tokens, max_new=steps, verifier=judges[key], eos=loaded.ends, rng=sl.rng(1)
        )

    return run


def with_generate(model: Any, make: Callable[[int], Any]) -> Callable[[torch.Tensor, int], Any]:
    def run(tokens: torch.Tensor, steps: int) -> Any:
        return model.generate(
            tokens,
            attention_mask=torch.ones_like(tokens),
            do_sample=True,
            top_k=0,
            max_new_tokens=steps,
            logits_processor=make(len(tokens)),
        )

    return run


def with_llguidance(model: Any, words: Any) -> Callable[[torch.Tensor, int], Any]:
    import llguidance.hf
    import llguidance.torch
    from llguidance import LLMatcher
    from transformers import LogitsProcessor

    reader = llguidance.hf.from_tokenizer(words, n_vocab=model.config.vocab_size)
    grammar = LLMatcher.grammar_from_regex(LETTERS)

    class Mask(LogitsProcessor):
        def __init__(self, rows: int) -> None:
            self.matchers = [LLMatcher(reader, grammar) for _ in range(rows)]
            self.bits = llguidance.torch.allocate_token_bitmask(rows, reader.vocab_size)
            self.begun = False

        def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
            for row, matcher in enumerate(self.matchers):
                if self.begun:
                    matcher.consume_token(int(input_ids[row, -1]))
                llguidance.torch.fill_next_token_bitmask(matcher, self.bits, row)
            self.begun = True
            llguidance.torch.apply_token_bitmask_inplace(scores, self.bits)
            return scores

    return with_generate(model, lambda rows: [Mask(rows)])


def with_xgrammar(model: Any, words: Any) -> Callable[[torch.Tensor, int], Any]:
    import xgrammar
    from xgrammar.contrib.hf import LogitsProcessor

    info = xgrammar.TokenizerInfo.from_huggingface(words, vocab_size=model.config.vocab_size)
    compiled = xgrammar.GrammarCompiler(info).compile_regex(LETTERS)
    return with_generate(model, lambda rows: [LogitsProcessor(compiled)])


def ways() -> dict[str, Callable[[Any, Any], Callable[[torch.Tensor, int], Any]]]:
    found = {"masking": ours, "generate + llguidance": with_llguidance}
    try:
        import xgrammar  # noqa: F401
    except ImportError:
        return found
    return {**found, "generate + xgrammar": with_xgrammar}


# -- measuring --------------------------------------------------------------------------------------------------------


def speed(vocab: int, rows: int, length: int, steps: int, repeats: int) -> dict[str, list[float]]:
    """Milliseconds of CPU a token in each run of each way; the ways take turns."""
    model, words = network(vocab), tokenizer(vocab)
    made = {name: make(model, words) for name, make in ways().items()}
    tokens, taken = prompt(length, rows), {name: [] for name in made}
    for turn in range(repeats + 1):
        for name, run in made.items():
            begin = time.process_time()
            run(tokens, steps)
            if turn:
                taken[name].append(1e3 * (time.process_time() - begin) / (steps * rows))
    return taken


def peak(name: str, vocab: int, length: int) -> tuple[float, float]:
    """Megabytes that one run adds to the peak of a process that has everything loaded, and its CPU seconds."""
    run = ways()[name](network(vocab), tokenizer(vocab))
    run(prompt(16, 1), 2)
    before, begin = _used_now(), time.process_time()
    run(prompt(length, 1), 4)
    return _peak() - before, time.process_time() - begin


def trained(vocab: int) -> tuple[float, float]:
    """A walk with a verifier that reads the network: cost of a query over a plain step, and megabytes on top."""
    loaded = LanguageModel.of(network(vocab, width=768, layers=6, heads=12), tokenizer(vocab))
    tokens, probe = prompt(16, 1), ProbeNetwork(768)
    Sampling().generate(loaded.generator, tokens, max_new=4, rng=sl.rng(0))
    begin = time.process_time()
    Sampling().generate(loaded.generator, tokens, max_new=24, rng=sl.rng(0))
    plain = (time.process_time() - begin) / 24
    value = ValueFunction(loaded.generator, "hidden.6", probe, lambda tokens, lengths: torch.ones(len(lengths)))
    evaluations, before, begin = loaded.generator.evaluations, _used_now(), time.process_time()
    VGB(children="sampled", remember=64).generate(
        loaded.generator, tokens, max_new=24, verifier=value, eos=loaded.ends, rng=sl.rng(0), budget=60
    )
    asked = loaded.generator.evaluations - evaluations
    return (time.process_time() - begin) / asked / plain, _peak() - before


def _used_now() -> float:
    """The memory of this process in megabytes; from here on its largest memory is counted anew.

    What was needed to load everything would otherwise hide a part of what a run needs.
    """
    Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def _peak() -> float:
    """The largest memory of this process since `_used_now`, in megabytes."""
    return _status("VmHWM")


def _status(name: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(f"{name}:")) / 1024


def in_process(what: str, *arguments: object) -> tuple[float, float]:
    """A measurement in a process of its own: a peak of memory never falls."""
    words = [sys.executable, __file__, "--only", json.dumps([what, *arguments])]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    first, second = json.loads(done.stdout.splitlines()[-1])
    return float(first), float(second)


def measure(
    *,
    steps: int = 24,
    vocabularies: tuple[int, ...] = (8_000, 128_000),
    long: int = 4_000,
    repeats: int = 5,
    part: str = "",
) -> Iterator[Row]:
    """Rows for the table of benchmarks: ours, the faster of the others, and the ratio."""
    lengths = {16: repeats, long: min(repeats, 2)} if long else {16: repeats}
    for vocab, batch, length in product(vocabularies, (1, 8), lengths):
        name = f"masking, {vocab} tokens, batch {batch}, a prompt of {length}"
        if part in name:
            yield {"name": name, **speed_row(speed(vocab, batch, length, steps, lengths[length]))}
    for vocab in vocabularies if long else ():
        name = f"memory, {vocab} tokens, at a prompt of {long}"
        if part in name:
            yield {"name": name, **memory_row(vocab, long)}
    if long and part in (name := "a query of the walk with a trained verifier, 50 257 tokens, over a plain step"):
        ratio, megabytes = in_process("trained", 50_257)
        yield {"name": name, "unit": "×", "ours": ratio, "baseline": 1.0, "ratio": 1 / ratio, "megabytes": megabytes}


def speed_row(taken: dict[str, list[float]]) -> Row:
    """Tokens a second by the medians; milliseconds a token of all runs stand beside them."""
    medians = {name: statistics.median(each) for name, each in taken.items()}
    mine = medians.pop("masking")
    best = min(medians, key=lambda name: medians[name])
    return {
        "unit": "tokens/s",
        "against": best,
        "ours": 1e3 / mine,
        "baseline": 1e3 / medians[best],
        "ratio": medians[best] / mine,
        "milliseconds": {name: [round(value, 3) for value in each] for name, each in taken.items()},
    }


def memory_row(vocab: int, length: int) -> Row:
    """Megabytes on top of the model, each way in a process of its own."""
    found = {name: in_process("peak", name, vocab, length) for name in ways()}
    seconds = {name: each[1] for name, each in found.items()}
    mine, _ = found.pop("masking")
    best = min(found, key=lambda name: found[name][0])
    return {
        "unit": "MB",
        "against": best,
        "ours": mine,
        "baseline": found[best][0],
        "ratio": found[best][0] / max(mine, 1e-9),
        "megabytes": {name: each[0] for name, each in found.items()},
        "seconds": seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--steps", type=int, default=24)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--part", default="", help="only rows whose names contain this")
    parser.add_argument("--only", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    if chosen.only:
        what, *arguments = json.loads(chosen.only)
        print(json.dumps({"peak": peak, "trained": trained}[what](*arguments)))
        return
    rows = measure(**QUICK) if chosen.quick else measure(steps=chosen.steps, repeats=chosen.repeats, part=chosen.part)
    if chosen.json:
        print(json.dumps(list(rows), indent=1))
        return
    for row in rows:
        print(f"{row['name']:<60}{row['ours']:>12,.1f} {row['unit']}{row['baseline']:>12,.1f}{row['ratio']:>8.2f}×")


if __name__ == "__main__":
    main()
