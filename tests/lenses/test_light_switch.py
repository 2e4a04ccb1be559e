from pathlib import Path

import pytest
import torch

import sandlab as sl
from sandlab.lenses.light_switch import HuggingFaceReader, light_switch_accuracy


class Careful:
    """Reads the story itself."""

    def choose(self, prompts: list[str], words: tuple[str, ...]) -> list[int]:
        def latest(prompt: str) -> int:
            return max(range(len(words)), key=lambda place: prompt.rfind(f"Alice turns the light {words[place]}."))

        return [latest(prompt) for prompt in prompts]


def test_a_careful_reader_is_always_right() -> None:
    for demonstration in (0, 16):
        rate = light_switch_accuracy(Careful(), length=40, prompts=60, demonstration=demonstration, rng=sl.rng(0))
        assert rate.errors == 0


def test_a_reader_that_always_says_on_is_right_half_of_the_time() -> None:
    class Stubborn:
        def choose(self, prompts: list[str], words: tuple[str, ...]) -> list[int]:
            return [1] * len(prompts)

    assert 0.4 < light_switch_accuracy(Stubborn(), length=12, prompts=400, rng=sl.rng(1)).rate < 0.6


def test_a_local_hugging_face_model_can_be_asked(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    from sandlab.studies.flip_flop.light_switch import VOCABULARY

    words = {word: place for place, word in enumerate((*VOCABULARY, "?"))}
    inner = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="?"))
    inner.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    transformers.PreTrainedTokenizerFast(tokenizer_object=inner, unk_token="?").save_pretrained(tmp_path)
    torch.manual_seed(0)
    config = transformers.GPT2Config(vocab_size=len(words), n_positions=256, n_embd=16, n_layer=1, n_head=1)
    transformers.GPT2LMHeadModel(config).save_pretrained(tmp_path)
    reader = HuggingFaceReader(tmp_path)
    rate = light_switch_accuracy(reader, length=8, prompts=20, demonstration=4, rng=sl.rng(2))
    assert rate.count == 20
    prompt = "Alice turns the light on. The light is turned"
    with torch.no_grad():
        logits = reader.model(**reader.tokenizer(prompt, return_tensors="pt")).logits[0, -1]
    assert reader.choose([prompt], ("off", "on"))[0] == int(logits[words["on"]] > logits[words["off"]])


def test_a_missing_folder_is_refused_in_one_sentence() -> None:
    with pytest.raises(sl.BadInput, match="no model folder at nowhere"):
        HuggingFaceReader("nowhere")
