from pathlib import Path

import pytest
import torch

import sandlab as sl
from sandlab.lenses.flip_flop.light_switch import HuggingFaceReader, light_switch_accuracy


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


def test_a_word_model_reads_stories_of_different_lengths_at_their_own_ends() -> None:
    from sandlab.lenses.flip_flop.light_switch import WordReader
    from sandlab.studies.flip_flop.light_switch import VOCABULARY

    with sl.models.seeded(3):
        model = sl.models.Transformer(vocab=len(VOCABULARY), length=64, layers=1, width=16, init_std=0.5)
    reader = WordReader(model, VOCABULARY)
    prompts = [
        "Alice turns the light on. The light is turned",
        "Alice turns the light off. Bob eats an apple. The light is turned",
    ]
    together = reader.choose(prompts, ("off", "on"))
    assert together == [reader.choose([prompt], ("off", "on"))[0] for prompt in prompts]


def test_stories_are_the_strings_told_word_by_word() -> None:
    from sandlab.studies.flip_flop.light_switch import VOCABULARY, Story
    from sandlab.worlds.flip_flop.language import FlipFlop, light_switch_text

    story = Story(16).sample(6, rng=sl.rng(4))
    batch = FlipFlop.ignoring(0.8, length=16).sample(6, rng=sl.rng(4))
    texts = light_switch_text(torch.cat([batch.inputs, batch.targets[:, -1:]], 1), ask=False)
    tokens = torch.cat([story.inputs, story.targets[:, -1:]], 1)
    for row, text in zip(tokens.tolist(), texts):
        words = text.replace(".", " .").split()
        assert [VOCABULARY[token] for token in row[: len(words)]] == words and not any(row[len(words) :])
    assert int(story.mask.sum()) == int(batch.mask.sum())


def test_the_study_asks_local_models_in_the_order_given(tmp_path: Path) -> None:
    from types import SimpleNamespace

    transformers = pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    from sandlab.studies.flip_flop.light_switch import VOCABULARY, light_switch

    folders = []
    for size in (1, 2):
        folder = tmp_path / f"model-{size}"
        words = {word: place for place, word in enumerate((*VOCABULARY, "?"))}
        inner = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="?"))
        inner.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
        transformers.PreTrainedTokenizerFast(tokenizer_object=inner, unk_token="?").save_pretrained(folder)
        config = transformers.GPT2Config(vocab_size=len(words), n_positions=256, n_embd=16, n_layer=size, n_head=1)
        transformers.GPT2LMHeadModel(config).save_pretrained(folder)
        folders.append(str(folder))
    lab = SimpleNamespace(device="cpu", map=lambda job, configs, label="": [job(config) for config in configs])
    config = light_switch.config("quick", folder=",".join(folders), lengths=(8, 12), prompts=10)
    outcome, findings = light_switch.measure(config, lab)
    assert len(outcome.measurements["published-models-decay"]) == 2
    assert "larger-is-better" in outcome.measurements
    # Without folders the claims about published models are not among those that are due.
    assert {finding.claim.split(".")[1] for finding in findings} == {"short", "decays"}
