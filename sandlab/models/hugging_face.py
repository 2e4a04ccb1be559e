"""Every model as a Hugging Face folder, with the same logits: circuits and trained models alike.

`AutoModelForCausalLM.from_pretrained(folder)` loads it after `import sandlab`: the folder names the model and its
options, and the network is SandLab's own, so nothing needs an equivalent elsewhere. (`to_hugging_face` makes a GPT-2 of
a transformer that has one, for machines without SandLab.)
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from sandlab.errors import BadInput
from sandlab.models.base import Model
from sandlab.registry import get, name_of

__all__ = ["export_hugging_face", "register_with_transformers"]

MODEL_TYPE = "sandlab"


def export_hugging_face(model: Model, folder: str | Path, *, letters: Sequence[str] = (), about: str = "") -> Path:
    """Write a model as a Hugging Face folder: config, weights, model card and, with the world's letters, a tokenizer.

    >>> export_hugging_face(sl.circuits.induction_head(3, 64), "induction", letters="abc")
    >>> AutoModelForCausalLM.from_pretrained("induction")       # after import sandlab
    """
    if not isinstance(model, Model):
        raise BadInput(f"export_hugging_face takes a model of SandLab, got {type(model).__name__}")
    config_class, model_class = _classes()
    options = dataclasses.asdict(model.config)
    try:
        json.dumps(options)
    except TypeError as problem:
        kind = type(model).__name__
        raise BadInput(f"{kind} has options that are no JSON ({problem}): it cannot be exported") from None
    name, target = _name(model), Path(folder)
    vocab = int(getattr(model.config, "outputs", None) or getattr(model.config, "vocab", 0) or 0)
    config = config_class(sandlab_model=name, sandlab_options=options, vocab_size=vocab, dtype=model.dtype)
    with torch.random.fork_rng(devices=[]):
        twin = model_class(config)
    twin.inner = model
    twin.save_pretrained(target)
    if letters:
        _tokenizer(list(letters)).save_pretrained(target)
    (target / "README.md").write_text(_card(model, name, vocab, letters, about), encoding="utf-8")
    return target


def _name(model: Model) -> str:
    """The model's registered name; a class of SandLab that only one circuit uses is named by its module."""
    kind = type(model)
    try:
        return name_of("models", model)
    except BadInput:
        if not kind.__module__.startswith("sandlab."):
            raise BadInput(
                f"{kind.__name__} is not registered among the models: put @register('models') above its class"
            ) from None
        return f"{kind.__module__}:{kind.__qualname__}"


def _kind(name: str) -> Callable[..., Model]:
    """The class that `_name` named: nothing outside SandLab and the registry, whatever a folder says."""
    module, _, kind = name.partition(":")
    if not kind:
        return get("models", name)
    found = getattr(importlib.import_module(module), kind, None) if module.startswith("sandlab.") else None
    if not (isinstance(found, type) and issubclass(found, Model)):
        raise BadInput(f"{name!r} is no model of SandLab")
    return found


@functools.cache
def _classes() -> tuple[Any, Any]:
    try:
        import transformers
        from transformers import GenerationMixin, PretrainedConfig, PreTrainedModel
        from transformers.modeling_outputs import CausalLMOutput
    except ImportError as problem:
        raise BadInput("this needs Hugging Face's transformers: pip install 'sandlab[hf]'") from problem

    class SandlabConfig(PretrainedConfig):  # type: ignore[misc,no-any-unimported,unused-ignore]
        """Which model of SandLab, and its options."""

        model_type = MODEL_TYPE

        def __init__(
            self,
            sandlab_model: str = "",
            sandlab_options: Mapping[str, object] | None = None,
            vocab_size: int = 0,
            **rest: Any,
        ) -> None:
            self.sandlab_model, self.sandlab_options, self.vocab_size = sandlab_model, sandlab_options or {}, vocab_size
            self.num_hidden_layers = 1  # `generate` asks for it; there is no cache of Hugging Face's kind
            super().__init__(**{"bos_token_id": None, "eos_token_id": None, "use_cache": False, **rest})

    class SandlabForCausalLM(PreTrainedModel, GenerationMixin):  # type: ignore[misc,no-any-unimported,unused-ignore]
        """A model of SandLab behind Hugging Face's interface."""

        config_class = SandlabConfig
        base_model_prefix = "inner"
        main_input_name = "input_ids"

        def __init__(self, config: SandlabConfig) -> None:
            super().__init__(config)
            with torch.device("cpu"):  # `from_pretrained` builds on "meta", which computes no tables
                self.inner: nn.Module = _kind(config.sandlab_model)(**config.sandlab_options)
            self.post_init()

        def _init_weights(self, module: nn.Module) -> None:
            """Weights are those of the file."""

        @classmethod
        def from_pretrained(cls, *args: Any, **options: Any) -> Any:
            loaded = super().from_pretrained(*args, **options)
            _restore_tables(loaded[0] if isinstance(loaded, tuple) else loaded)
            return loaded

        def forward(
            self, input_ids: Tensor, attention_mask: object = None, labels: Tensor | None = None, **_: object
        ) -> object:
            if isinstance(attention_mask, Tensor) and not attention_mask.all():
                raise BadInput("models of SandLab read every position: give sequences of one length, without padding")
            logits = self.inner(input_ids)
            loss = None
            if labels is not None:
                shifted = logits[:, :-1].flatten(0, 1).float()
                loss = nn.functional.cross_entropy(shifted, labels[:, 1:].flatten())
            return CausalLMOutput(loss=loss, logits=logits)  # type: ignore[arg-type]

        def prepare_inputs_for_generation(  # type: ignore[override]
            self, input_ids: object, **kwargs: object
        ) -> dict[str, object]:
            return {"input_ids": input_ids}

    del transformers
    return SandlabConfig, SandlabForCausalLM


def _restore_tables(model: Any) -> None:
    """Compute anew the tables that are not stored with the weights: loading leaves them empty."""
    fresh = dict(_kind(model.config.sandlab_model)(**model.config.sandlab_options).named_buffers())
    stored = model.inner.state_dict()
    for name, table in model.inner.named_buffers():
        if name not in stored:
            table.copy_(fresh[name])


@functools.cache
def register_with_transformers() -> None:
    """Let `AutoConfig` and `AutoModelForCausalLM` know folders that `export_hugging_face` wrote."""
    from transformers import AutoConfig, AutoModelForCausalLM

    config_class, model_class = _classes()
    AutoConfig.register(MODEL_TYPE, config_class, exist_ok=True)
    AutoModelForCausalLM.register(config_class, model_class, exist_ok=True)


def _tokenizer(letters: list[str]) -> Any:
    """One token per letter; words of several signs are separated by spaces. Other letters are refused."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    single = all(len(letter) == 1 for letter in letters)
    known = dict.fromkeys(letters)
    if len(known) != len(letters):
        raise BadInput("letters must differ, so that text can be read back")
    inner = Tokenizer(models.WordLevel({letter: index for index, letter in enumerate(letters)}, unk_token="no letter"))
    every_sign = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    inner.pre_tokenizer = every_sign if single else pre_tokenizers.WhitespaceSplit()
    if single:
        inner.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(tokenizer_object=inner, clean_up_tokenization_spaces=False)


def _card(model: Model, name: str, vocab: int, letters: Sequence[str], about: str) -> str:
    """README.md of a folder: what the model is, and the lines that load it."""
    source, _, own = getattr(model.config, "module", "").rpartition(":")  # where a module of one's own is defined
    known = f"Letters: `{' '.join(letters)}`.\n" if letters else ""
    return f"""---
library_name: transformers
tags: [sandlab]
---
# {own or name.rpartition(":")[2]}

{about or (type(model).__doc__ or "").strip().splitlines()[0]}

{model.parameter_count():,} numbers, {vocab} outputs. {known}
```python
{_lines_that_load(source, letters)}
```
"""


def _lines_that_load(source: str, letters: Sequence[str]) -> str:
    """Python for the model card, with the plug-in of a module of one's own and the tokenizer of known letters."""
    joiner = "" if all(len(letter) == 1 for letter in letters) else " "
    lines = ["import sandlab.plugins" if source else "import sandlab  # tells transformers of its models"]
    lines += [f"from transformers import AutoModelForCausalLM{', AutoTokenizer' if letters else ''}", ""]
    lines += [f"sandlab.plugins.add({source!r})  # the file or module that defines it"] if source else []
    lines += ['model = AutoModelForCausalLM.from_pretrained("this folder")']
    if letters:
        lines += ['reader = AutoTokenizer.from_pretrained("this folder")']
        lines += [f"tokens = reader({joiner.join(letters[:3])!r}, return_tensors='pt')['input_ids']"]
    return "\n".join([*lines, "logits = model(tokens).logits"])
