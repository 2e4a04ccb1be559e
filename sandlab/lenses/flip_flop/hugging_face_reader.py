"""A causal language model of Hugging Face as a reader of flip-flop strings in English."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from sandlab.decoding.generators.hugging_face import LanguageModel, load_language_model

__all__ = ["HuggingFaceReader"]


class HuggingFaceReader:
    """A causal language model from a local folder, see `load_language_model`; nothing is downloaded."""

    def __init__(self, folder: str | Path, device: str = "cpu") -> None:
        self.language: LanguageModel = load_language_model(folder, device=device)

    def choose(self, prompts: Sequence[str], words: Sequence[str]) -> list[int]:
        # The word's first token after a space decides, as in the published comparison.
        tokenizer = self.language.tokenizer
        choices = [tokenizer(f" {word}", add_special_tokens=False).input_ids[0] for word in words]
        return [int(self.next_log_probs(prompt)[choices].argmax()) for prompt in prompts]

    def next_log_probs(self, prompt: str) -> Tensor:
        """Log-probabilities of the token after a prompt."""
        generator = self.language.generator
        tokens = torch.tensor([self.language.encode(prompt)], device=generator.device)
        generator.start(1, tokens.shape[1])
        length = torch.tensor([tokens.shape[1]], device=generator.device)
        return generator.next_logprobs(tokens, length, torch.zeros_like(length))[0]
