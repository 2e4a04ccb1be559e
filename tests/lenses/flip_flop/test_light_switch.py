"""Readers of light-switch stories: rules, word models, Hugging Face models."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

import sandlab as sl
from sandlab.lenses.flip_flop.hugging_face_reader import HuggingFaceReader
from sandlab.lenses.flip_flop.light_switch import WordReader, light_switch_accuracy
from sandlab.worlds.flip_flop.light_switch import VOCABULARY


class Careful:
    """Looks up the latest switching of the light."""

    def choose(self, prompts: Sequence[str], words: Sequence[str]) -> list[int]:
        def latest(prompt: str) -> int:
            return max(range(len(words)), key=lambda index: prompt.rfind(f"Alice turns the light {words[index]}."))

        return [latest(prompt) for prompt in prompts]


class Stubborn:
    """Always says "on"."""

    def choose(self, prompts: Sequence[str], words: Sequence[str]) -> list[int]:
        return [1] * len(prompts)


def test_a_careful_reader_is_always_right() -> None:
    for demonstration in (0, 16):
        rate = light_switch_accuracy(Careful(), length=40, prompts=60, demonstration=demonstration, rng=sl.rng(0))
        assert rate.errors == 0


def test_a_reader_that_always_says_on_is_right_half_of_the_time() -> None:
    assert 0.4 < light_switch_accuracy(Stubborn(), length=12, prompts=400, rng=sl.rng(1)).rate < 0.6


def test_a_local_hugging_face_model_can_be_asked(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    words = {word: token for token, word in enumerate((*VOCABULARY, "?"))}
    inner = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="?"))
    inner.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    saved = transformers.PreTrainedTokenizerFast(tokenizer_object=inner, unk_token="?", eos_token="?")
    saved.save_pretrained(tmp_path)
    torch.manual_seed(0)
    config = transformers.GPT2Config(vocab_size=len(words), n_positions=256, n_embd=16, n_layer=1, n_head=1)
    model = transformers.GPT2LMHeadModel(config).eval()
    model.save_pretrained(tmp_path)
    reader = HuggingFaceReader(tmp_path)
    assert light_switch_accuracy(reader, length=8, prompts=20, demonstration=4, rng=sl.rng(2)).count == 20
    prompt = "Alice turns the light on. The light is turned"
    with torch.no_grad():
        logits = model(**saved(prompt, return_tensors="pt")).logits[0, -1]
    assert torch.allclose(reader.next_log_probs(prompt), logits.log_softmax(-1), atol=1e-5)
    assert reader.choose([prompt], ("off", "on"))[0] == int(logits[words["on"]] > logits[words["off"]])


def test_a_missing_folder_is_refused_in_one_sentence() -> None:
    with pytest.raises(sl.BadInput, match="no model folder 'nowhere'"):
        HuggingFaceReader("nowhere")


def test_a_word_model_reads_stories_of_different_lengths_up_to_their_ends() -> None:
    with sl.models.seeded(3):
        model = sl.models.Transformer(vocab=len(VOCABULARY), length=64, layers=1, width=16, init_std=0.5)
    reader = WordReader(model, VOCABULARY)
    prompts = [
        "Alice turns the light on. The light is turned",
        "Alice turns the light off. Bob eats an apple. The light is turned",
    ]
    together = reader.choose(prompts, ("off", "on"))
    assert together == [reader.choose([prompt], ("off", "on"))[0] for prompt in prompts]
