"""Transformers in other libraries: Hugging Face's GPT-2 and TransformerLens, with the same logits.

Options without an equivalent are refused in one sentence. Options that only say where weights come from are absorbed
into weights: one-hot, sinusoidal and linear codes become plain tables, a missing bias a zero, a scale of the scores a
factor of the query map, loops repeated layers, and (in GPT-2) missing feed-forward blocks blocks of zeros.
"""

from __future__ import annotations

import importlib
import math
from typing import Any

import torch
from torch import Tensor, nn

from sandlab._door import guarded
from sandlab.errors import BadInput
from sandlab.models._parts.transformer_layer import Layer
from sandlab.models.attention import Attention
from sandlab.models.base import seeded
from sandlab.models.layers import LayerNorm, Linear, RMSNorm
from sandlab.models.transformer import Transformer

__all__ = ["from_hugging_face", "to_hugging_face", "to_transformer_lens"]

HF_ACTIVATIONS = {
    "gelu": "gelu",
    "gelu-tanh": "gelu_new",
    "relu": "relu",
    "silu": "silu",
    "tanh": "tanh",
    "identity": "linear",
}
OUR_ACTIVATIONS = {theirs: ours for ours, theirs in HF_ACTIVATIONS.items()} | {
    "gelu_pytorch_tanh": "gelu-tanh",
    "swish": "silu",
}
LENS_ACTIVATIONS = {"gelu": "gelu", "gelu-tanh": "gelu_new", "relu": "relu", "silu": "silu"}


@guarded
def to_hugging_face(model: Transformer) -> Any:
    """The same network as a `transformers.GPT2LMHeadModel`, whose logits are those of every position.

    >>> hf = to_hugging_face(model)
    >>> hf(tokens).logits                  # equals model(tokens)
    """
    config = model.config
    _refuse("a GPT-2 of Hugging Face", _beyond_both(model) | _beyond_gpt2(model))
    transformers = _library("transformers", "hf")
    settings = transformers.GPT2Config(
        vocab_size=config.vocab, n_positions=config.length, n_embd=config.width, n_layer=config.layers * config.loops,
        n_head=config.heads_per_layer[0] if config.layers else 1, n_inner=config.mlp_width or 4 * config.width,
        activation_function=HF_ACTIVATIONS.get(config.mlp, "relu"),
        layer_norm_epsilon=1e-5 if config.norm_eps is None else config.norm_eps,
        resid_pdrop=config.dropout, attn_pdrop=config.attention_dropout, embd_pdrop=config.embedding_dropout,
        tie_word_embeddings=config.tied, bos_token_id=None, eos_token_id=None,
    )  # fmt: skip
    with seeded(0):  # drawn weights are overwritten; the caller's generator stays where it was
        twin = transformers.GPT2LMHeadModel(settings).to(device=model.device, dtype=model.dtype)
    twin.load_state_dict(twin.state_dict() | _gpt2_weights(model))
    return twin.train(model.training)


def from_hugging_face(gpt2: Any) -> Transformer:
    """The same network as a `Transformer`, from a `transformers.GPT2LMHeadModel`."""
    settings = getattr(gpt2, "config", None)
    if settings is None or settings.model_type != "gpt2" or "lm_head" not in dict(gpt2.named_children()):
        raise BadInput(f"from_hugging_face takes a GPT2LMHeadModel, got {type(gpt2).__name__}: other layouts differ")
    if settings.activation_function not in OUR_ACTIVATIONS:
        known = ", ".join(OUR_ACTIVATIONS)
        raise BadInput(f"activation_function must be one of {known}, got {settings.activation_function!r}")
    for option in ("scale_attn_by_inverse_layer_idx", "add_cross_attention"):
        if getattr(settings, option, False):
            raise BadInput(f"{option} must be False, got True: the transformer has no equivalent")
    with seeded(0):
        model = Transformer(
            vocab=settings.vocab_size, length=settings.n_positions, width=settings.n_embd, layers=settings.n_layer,
            heads=settings.n_head, mlp_width=settings.n_inner or 4 * settings.n_embd,
            mlp=OUR_ACTIVATIONS[settings.activation_function], scale=None if settings.scale_attn_weights else 1.0,
            norm_eps=settings.layer_norm_epsilon, tied=bool(settings.tie_word_embeddings),
            dropout=float(settings.resid_pdrop), attention_dropout=float(settings.attn_pdrop),
            embedding_dropout=float(settings.embd_pdrop),
        )  # fmt: skip
    model = model.to(device=gpt2.device, dtype=gpt2.dtype)
    model.load_state_dict(_weights_of_gpt2(gpt2.state_dict(), model.config.layers, model.config.tied))
    return model.train(gpt2.training)


@guarded
def to_transformer_lens(model: Transformer) -> Any:
    """The same network as a `transformer_lens` bridge (TransformerLens 4 or later) around its native model.

    >>> bridge = to_transformer_lens(model)
    >>> logits, cache = bridge.run_with_cache(tokens)
    >>> cache["blocks.0.attn.hook_pattern"]
    """
    config = model.config
    _refuse("a TransformerLens model", _beyond_both(model) | _beyond_lens(model))
    lens = _library("transformer_lens", "lens")
    from transformer_lens.model_bridge.sources.native import boot

    heads = config.heads_per_layer[0] if config.layers else 1
    head_width = config.head_width or config.width // heads
    rms = config.norm_kind == "rms"
    eps = (1e-6 if rms else 1e-5) if config.norm_eps is None else config.norm_eps
    settings = lens.TransformerBridgeConfig(
        d_model=config.width, d_head=head_width, n_heads=heads, n_layers=config.layers * config.loops,
        n_ctx=config.length, d_vocab=config.vocab, d_vocab_out=config.outputs or config.vocab,
        d_mlp=config.mlp_width or 4 * config.width, act_fn=LENS_ACTIVATIONS.get(config.mlp, "relu"),
        attn_only=config.mlp == "none",
        normalization_type=None if config.norm == "none" else ("RMS" if rms else "LN"), eps=eps,
        positional_embedding_type="rotary" if config.positions == "rotary" else "standard",
        rotary_base=config.rotary_base, rotary_dim=head_width // 2 * 2,
        attention_dir="causal" if config.causal else "bidirectional", init_weights=False, default_prepend_bos=False,
    )  # fmt: skip
    with seeded(0):
        bridge = boot(settings, device=model.device, dtype=model.dtype, model_name="sandlab-transformer")
    bridge.load_state_dict(_lens_weights(model), strict=True)
    return bridge.train(model.training)


Map = tuple[Tensor, Tensor]  # weight and bias


def _plain_attention(attention: Attention) -> tuple[Map, Map, Map, Map]:
    """Query, key, value and output as other libraries know them: scores over √head_width, one output map, biases."""
    weight, bias = _weight_and_bias(attention.query)
    factor = attention.scale * math.sqrt(attention.head_width)
    if isinstance(attention.output, Linear):
        output = _weight_and_bias(attention.output)
    else:  # heads are summed: the output map is one identity per head, side by side
        identity = torch.eye(attention.value.weight.shape[-1], dtype=weight.dtype, device=weight.device)
        output = (identity.repeat(1, attention.heads), torch.zeros_like(identity[0]))
    key, value = _weight_and_bias(attention.key), _weight_and_bias(attention.value)
    return (weight * factor, bias * factor), key, value, output


def _weight_and_bias(part: Linear | LayerNorm) -> Map:
    bias = part.weight.new_zeros(len(part.weight)) if part.bias is None else part.bias
    return part.weight.detach(), bias.detach()


def _unrolled(model: Transformer) -> list[Layer]:
    return list(model.layers) * model.config.loops


def _readout(model: Transformer) -> Tensor:
    return (model.embedding if model.config.tied else model.unembed).weight.detach()


# GPT-2 stores maps as (inputs, outputs), and query, key and value side by side in attn.c_attn.
GPT2_MAPS = {"attention.output": "attn.c_proj", "mlp.up_proj": "mlp.c_fc", "mlp.down_proj": "mlp.c_proj"}
GPT2_NORMS = {"attention_norm": "ln_1", "mlp_norm": "ln_2"}


def _gpt2_weights(model: Transformer) -> dict[str, Tensor]:
    """Every weight under GPT-2's name for it."""
    tokens, positions = (table.detach() for table in model.embedding_tables())
    weights = {"transformer.wte.weight": tokens, "transformer.wpe.weight": positions, "lm_head.weight": _readout(model)}
    weights |= _norm_weights("transformer.ln_f", model.ln_final)
    for i, layer in enumerate(_unrolled(model)):
        query, key, value, output = _plain_attention(layer.attention)
        joint = (torch.cat([query[0], key[0], value[0]]), torch.cat([query[1], key[1], value[1]]))
        maps = {"attn.c_attn": joint, "attn.c_proj": output}
        weights |= _norm_weights(f"transformer.h.{i}.ln_1", layer.attention_norm)
        if layer.has_mlp:
            maps |= {
                "mlp.c_fc": _weight_and_bias(layer.mlp.up_proj),
                "mlp.c_proj": _weight_and_bias(layer.mlp.down_proj),
            }
            weights |= _norm_weights(f"transformer.h.{i}.ln_2", layer.mlp_norm)
        else:
            hidden, width = model.config.mlp_width or 4 * model.config.width, model.config.width
            maps["mlp.c_fc"] = tokens.new_zeros(hidden, width), tokens.new_zeros(hidden)
            maps["mlp.c_proj"] = tokens.new_zeros(width, hidden), tokens.new_zeros(width)
        for name, (weight, bias) in maps.items():
            weights |= {f"transformer.h.{i}.{name}.weight": weight.T, f"transformer.h.{i}.{name}.bias": bias}
    return weights


def _weights_of_gpt2(theirs: dict[str, Tensor], layers: int, tied: bool) -> dict[str, Tensor]:
    """Every weight of a GPT-2 under our name for it."""
    ours = {"embedding.weight": theirs["transformer.wte.weight"], "position.weight": theirs["transformer.wpe.weight"]}
    ours |= {} if tied else {"unembed.weight": theirs["lm_head.weight"]}
    for part in ("weight", "bias"):
        ours[f"ln_final.{part}"] = theirs[f"transformer.ln_f.{part}"]
        for i in range(layers):
            block = f"transformer.h.{i}"
            for name, other in (GPT2_MAPS | GPT2_NORMS).items():
                ours[f"layers.{i}.{name}.{part}"] = theirs[f"{block}.{other}.{part}"].t()
            joint = theirs[f"{block}.attn.c_attn.{part}"].t().chunk(3)
            ours |= {
                f"layers.{i}.attention.{name}.{part}": each for name, each in zip(("query", "key", "value"), joint)
            }
    return ours


def _lens_weights(model: Transformer) -> dict[str, Tensor]:
    """Every weight under TransformerLens's name for it."""
    rotary, readout = model.config.positions == "rotary", _readout(model)
    tokens, positions = (table.detach() for table in model.embedding_tables())
    weights = {"embed.weight": tokens, "unembed.weight": readout, "unembed.bias": torch.zeros_like(readout[:, 0])}
    weights |= {} if rotary else {"pos_embed.weight": positions}
    for i, layer in enumerate(_unrolled(model)):
        query, key, value, output = _plain_attention(layer.attention)
        if rotary:
            query, key = (_in_adjacent_pairs(part, layer.attention.heads) for part in (query, key))
        maps = {"attn.q": query, "attn.k": key, "attn.v": value, "attn.o": output}
        weights |= _norm_weights(f"blocks.{i}.ln1", layer.attention_norm)
        if layer.has_mlp:
            maps |= {"mlp.in": _weight_and_bias(layer.mlp.up_proj), "mlp.out": _weight_and_bias(layer.mlp.down_proj)}
            weights |= _norm_weights(f"blocks.{i}.ln2", layer.mlp_norm)
        for name, (weight, bias) in maps.items():
            weights |= {f"blocks.{i}.{name}.weight": weight, f"blocks.{i}.{name}.bias": bias}
    return weights | _norm_weights("ln_final", model.ln_final)


def _norm_weights(name: str, norm: nn.Module) -> dict[str, Tensor]:
    if isinstance(norm, RMSNorm):
        return {f"{name}.weight": norm.weight.detach()}
    if not isinstance(norm, LayerNorm):
        return {}
    weight, bias = _weight_and_bias(norm)
    return {f"{name}.weight": weight, f"{name}.bias": bias}


def _in_adjacent_pairs(part: tuple[Tensor, Tensor], heads: int) -> tuple[Tensor, Tensor]:
    """Rotary pairs (i, i + half) of each head's coordinates moved to (2i, 2i + 1)."""
    weight, bias = part
    head_width = len(weight) // heads
    half = head_width // 2
    order = torch.arange(2 * half).view(2, half).T.flatten().tolist() + list(range(2 * half, head_width))
    rows = torch.cat([torch.tensor(order) + h * head_width for h in range(heads)])
    return weight[rows], bias[rows]


def _beyond_both(model: Transformer) -> dict[str, bool]:
    config = model.config
    return {
        f'norm="{config.norm}"': config.norm not in ("pre", "none"),
        "attention other than softmax": config.attention != "softmax",
        "a window": config.window is not None,
        "heads that differ by layer": len(set(config.heads_per_layer)) > 1,
        "layers without a residual connection": not all(config.residual_per_layer),
        "a readout bias": config.readout_bias,
        "a gated feed-forward block": config.gated and config.mlp != "none",
        "log_output": config.log_output is not None,
        f'positions="{config.positions}"': config.positions in ("relative", "alibi"),
        "position_shift in training": config.position_shift > 0 and model.training,
    }


def _beyond_gpt2(model: Transformer) -> dict[str, bool]:
    config = model.config
    split = config.head_width not in (None, config.width // config.heads_per_layer[0]) if config.layers else False
    return {
        'norm="none"': config.norm == "none",
        'norm_kind="rms"': config.norm != "none" and config.norm_kind == "rms",
        "an encoder (causal=False)": not config.causal,
        "rotary positions": config.positions == "rotary",
        "a head_width other than width / heads": split,
        "heads that are summed (output_map=False)": not config.output_map,
        "outputs other than vocab": config.outputs not in (None, config.vocab),
    }


def _beyond_lens(model: Transformer) -> dict[str, bool]:
    config = model.config
    return {
        f'mlp="{config.mlp}"': config.mlp not in (*LENS_ACTIVATIONS, "none"),
        "heads that are summed with a head_width other than width": not config.output_map
        and config.head_width != config.width,
        "dropout in training": model.training
        and any((config.dropout, config.attention_dropout, config.embedding_dropout)),
    }


def _refuse(target: str, reasons: dict[str, bool]) -> None:
    found = [reason for reason, holds in reasons.items() if holds]
    if found:
        raise BadInput(f"{target} has no equivalent of {' and '.join(found)}: change the option or keep the model here")


def _library(name: str, extra: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise BadInput(f"{name} is not installed: pip install 'sandlab[{extra}]'") from None
