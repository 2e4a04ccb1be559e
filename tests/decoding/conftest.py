"""Small Hugging Face models in local folders: one trained on JSON for some seconds, one with random weights."""

from __future__ import annotations

import fcntl
import json
import os
import random
from pathlib import Path

import pytest
import torch


def documents(count: int, seed: int = 0) -> list[str]:
    chance = random.Random(seed)
    return [
        json.dumps(
            {
                "name": chance.choice(["Ada", "Alan", "Emmy", "Kurt"]),
                "age": chance.randrange(100),
                "tags": chance.choices(["x", "yy", "z"], k=chance.randrange(4)),
            },
            separators=(",", ":"),
        )
        for _ in range(count)
    ]


def tokenizer_of(texts: list[str]):
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=290, special_tokens=["<s>", "</s>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    raw.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=raw, bos_token="<s>", eos_token="</s>", pad_token="</s>")


def small_llama(vocab: int):
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=vocab,
            hidden_size=48,
            intermediate_size=96,
            num_hidden_layers=2,
            num_attention_heads=4,
            max_position_embeddings=256,
            bos_token_id=0,
            eos_token_id=1,
            pad_token_id=1,
        )
    )


@pytest.fixture(scope="session")
def random_folder(tmp_path_factory) -> Path:
    """A model that knows nothing."""
    folder = tmp_path_factory.mktemp("random-model")
    tokenizer = tokenizer_of(documents(200))
    tokenizer.save_pretrained(folder)
    small_llama(len(tokenizer)).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def blank_folder(tmp_path_factory) -> Path:
    """A model that knows nothing, with a tokenizer that puts a blank in front of every text and drops it again."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    raw = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>"))
    raw.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    raw.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    special = ["<s>", "</s>", "<unk>", *(f"<0x{byte:02X}>" for byte in range(256))]
    raw.train_from_iterator(["ab cd abc"] * 20, trainers.BpeTrainer(vocab_size=300, special_tokens=special))
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=raw, bos_token="<s>", eos_token="</s>", unk_token="<unk>", pad_token="</s>"
    )
    folder = tmp_path_factory.mktemp("blank-model")
    tokenizer.save_pretrained(folder)
    small_llama(len(tokenizer)).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def json_folder(tmp_path_factory) -> Path:
    """A model that has seen "Person 17: {...}" and writes such objects, most of them valid."""
    return shared_json_model(tmp_path_factory)


def shared_json_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trained once for all processes of a run of the tests."""
    base = tmp_path_factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder = base / "json-model"
    with (base / "json-model.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return folder if (folder / "model.safetensors").is_file() else train_json_model(folder)


def train_json_model(folder: Path) -> Path:
    """Some seconds of training on people written as JSON, saved into the folder."""
    texts = documents(1500)
    tokenizer = tokenizer_of([*texts, *(f"Person {number}: " for number in range(100))])
    tokenizer.save_pretrained(folder)
    model = small_llama(len(tokenizer))
    # Prompt and answer are tokenised apart, as they will be when it is used.
    rows = [
        [*tokenizer(f"Person {number % 100}: ").input_ids, *tokenizer(text).input_ids, 1]
        for number, text in enumerate(texts)
    ]
    width = max(map(len, rows))
    tokens = torch.tensor([row + [1] * (width - len(row)) for row in rows])
    inside = torch.arange(width) < torch.tensor([len(row) for row in rows]).unsqueeze(1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=6e-3, total_steps=160)
    for step in range(160):
        chosen = torch.arange(step * 32, step * 32 + 32) % len(tokens)
        logits = model(input_ids=tokens[chosen, :-1]).logits
        losses = torch.nn.functional.cross_entropy(logits.transpose(1, 2), tokens[chosen, 1:], reduction="none")
        loss = (losses * inside[chosen, 1:]).sum() / inside[chosen, 1:].sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    model.save_pretrained(folder)
    return folder
