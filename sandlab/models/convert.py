"""Transformers in other libraries: Hugging Face's GPT-2 and TransformerLens, with the same logits.

Options without an equivalent are refused in one sentence. Options that only say where weights come from are absorbed
into weights: one-hot, sinusoidal and linear codes become plain tables, a missing bias a zero, a scale of the scores a
factor of the query map, loops repeated layers, and (in GPT-2) missing feed-forward blocks blocks of zeros.
"""

from __future__ import annotations

import importlib
import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from sandlab.errors import BadInput
from sandlab.models.attention import Attention
from sandlab.models.base import seeded
from sandlab.models.layers import HookPoint, LayerNorm, Linear, RMSNorm
from sandlab.models.transformer import Layer, Transformer

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


def to_hugging_face(model: Transformer) -> Any:
    """The same network as a `transformers.GPT2LMHeadModel`, whose logits are those of every position.

    >>> hf = to_hugging_face(model)
    >>> hf(tokens).logits                  # equals model(tokens)
    """
    config = model.config
    _refuse("a GPT-2 of Hugging Face", _beyond_both(model) | _beyond_gpt2(model))
    transformers = _library("transformers", "hf")
    settings = transformers.GPT2Config(
        vocab_size=config.vocab,
        n_positions=config.length,
        n_embd=config.width,
        n_layer=config.layers * config.loops,
        n_head=config.heads_per_layer[0] if config.layers else 1,
        n_inner=config.mlp_width or 4 * config.width,
        activation_function=HF_ACTIVATIONS.get(config.mlp, "relu"),
        layer_norm_epsilon=1e-5 if config.norm_eps is None else config.norm_eps,
        resid_pdrop=config.dropout,
        attn_pdrop=config.attention_dropout,
        embd_pdrop=config.embedding_dropout,
        tie_word_embeddings=config.tied,
        bos_token_id=None,
        eos_token_id=None,
    )
    with seeded(0):  # drawn weights are overwritten; the caller's generator stays where it was
        twin = transformers.GPT2LMHeadModel(settings).to(device=model.device, dtype=model.dtype)
    body = twin.transformer
    with torch.no_grad():
        tokens, positions = model.embedding_tables()
        body.wte.weight.copy_(tokens)
        body.wpe.weight.copy_(positions)
        for layer, block in zip(_unrolled(model), body.h):
            _fill_gpt2_block(layer, block)
        _copy_norm(model.ln_final, body.ln_f)
        if not config.tied:
            twin.lm_head.weight.copy_(model.unembed.weight)
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
            vocab=settings.vocab_size,
            length=settings.n_positions,
            width=settings.n_embd,
            layers=settings.n_layer,
            heads=settings.n_head,
            mlp_width=settings.n_inner or 4 * settings.n_embd,
            mlp=OUR_ACTIVATIONS[settings.activation_function],
            scale=None if settings.scale_attn_weights else 1.0,
            norm_eps=settings.layer_norm_epsilon,
            tied=bool(settings.tie_word_embeddings),
            dropout=float(settings.resid_pdrop),
            attention_dropout=float(settings.attn_pdrop),
            embedding_dropout=float(settings.embd_pdrop),
        )
    model = model.to(device=gpt2.device, dtype=gpt2.dtype)
    body = gpt2.transformer
    with torch.no_grad():
        model.embedding.weight.copy_(body.wte.weight)
        model.position.weight.copy_(body.wpe.weight)
        for layer, block in zip(model.layers, body.h):
            _read_gpt2_block(layer, block)
        _copy_norm(body.ln_f, model.ln_final)
        if not model.config.tied:
            model.unembed.weight.copy_(gpt2.lm_head.weight)
    return model.train(gpt2.training)


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
        d_model=config.width,
        d_head=head_width,
        n_heads=heads,
        n_layers=config.layers * config.loops,
        n_ctx=config.length,
        d_vocab=config.vocab,
        d_vocab_out=config.outputs or config.vocab,
        d_mlp=config.mlp_width or 4 * config.width,
        act_fn=LENS_ACTIVATIONS.get(config.mlp, "relu"),
        attn_only=config.mlp == "none",
        normalization_type=None if config.norm == "none" else ("RMS" if rms else "LN"),
        eps=eps,
        positional_embedding_type="rotary" if config.positions == "rotary" else "standard",
        rotary_base=config.rotary_base,
        rotary_dim=head_width // 2 * 2,
        attention_dir="causal" if config.causal else "bidirectional",
        init_weights=False,
        default_prepend_bos=False,
    )
    with seeded(0):
        bridge = boot(settings, device=model.device, dtype=model.dtype, model_name="sandlab-transformer")
    bridge.load_state_dict(_lens_weights(model), strict=True)
    return bridge.train(model.training)


@dataclass(frozen=True)
class _PlainAttention:
    """Attention as other libraries know it: scores divided by √head_width, one output map, a bias everywhere."""

    query: tuple[Tensor, Tensor]
    key: tuple[Tensor, Tensor]
    value: tuple[Tensor, Tensor]
    output: tuple[Tensor, Tensor]


def _plain_attention(attention: Attention) -> _PlainAttention:
    query_weight, query_bias = _weight_and_bias(attention.query)
    factor = attention.scale * math.sqrt(attention.head_width)
    if isinstance(attention.output, Linear):
        output = _weight_and_bias(attention.output)
    else:  # heads are summed: the output map is one identity per head, side by side
        width = attention.value.weight.shape[-1]
        identity = torch.eye(width, dtype=query_weight.dtype, device=query_weight.device)
        output = (identity.repeat(1, attention.heads), torch.zeros_like(identity[0]))
    return _PlainAttention(
        (query_weight * factor, query_bias * factor),
        _weight_and_bias(attention.key),
        _weight_and_bias(attention.value),
        output,
    )


def _weight_and_bias(part: Linear) -> tuple[Tensor, Tensor]:
    bias = torch.zeros_like(part.weight[:, 0]) if part.bias is None else part.bias
    return part.weight.detach(), bias.detach()


def _unrolled(model: Transformer) -> list[Layer]:
    return list(model.layers) * model.config.loops


def _fill_gpt2_block(layer: Layer, block: Any) -> None:
    """GPT-2 stores maps as (inputs, outputs), and query, key and value side by side."""
    plain = _plain_attention(layer.attention)
    parts = (plain.query, plain.key, plain.value)
    block.attn.c_attn.weight.copy_(torch.cat([weight for weight, _ in parts]).T)
    block.attn.c_attn.bias.copy_(torch.cat([bias for _, bias in parts]))
    block.attn.c_proj.weight.copy_(plain.output[0].T)
    block.attn.c_proj.bias.copy_(plain.output[1])
    _copy_norm(layer.attention_norm, block.ln_1)
    if not layer.has_mlp:
        for parameter in block.mlp.parameters():
            parameter.zero_()
        return
    _copy_norm(layer.mlp_norm, block.ln_2)
    for ours, theirs in ((layer.mlp.up_proj, block.mlp.c_fc), (layer.mlp.down_proj, block.mlp.c_proj)):
        weight, bias = _weight_and_bias(ours)
        theirs.weight.copy_(weight.T)
        theirs.bias.copy_(bias)


def _read_gpt2_block(layer: Layer, block: Any) -> None:
    attention = layer.attention
    assert isinstance(attention.output, Linear)
    parts = (attention.query, attention.key, attention.value)
    for part, weight, bias in zip(parts, block.attn.c_attn.weight.T.chunk(3), block.attn.c_attn.bias.chunk(3)):
        _set(part, weight, bias)
    _set(attention.output, block.attn.c_proj.weight.T, block.attn.c_proj.bias)
    _set(layer.mlp.up_proj, block.mlp.c_fc.weight.T, block.mlp.c_fc.bias)
    _set(layer.mlp.down_proj, block.mlp.c_proj.weight.T, block.mlp.c_proj.bias)
    _copy_norm(block.ln_1, layer.attention_norm)
    _copy_norm(block.ln_2, layer.mlp_norm)


def _set(part: Linear, weight: Tensor, bias: Tensor) -> None:
    assert part.bias is not None
    part.weight.copy_(weight)
    part.bias.copy_(bias)


def _lens_weights(model: Transformer) -> dict[str, Tensor]:
    """Every weight under TransformerLens's name for it."""
    rotary = model.config.positions == "rotary"
    tokens, positions = (table.detach() for table in model.embedding_tables())
    readout = (model.embedding if model.config.tied else model.unembed).weight.detach()
    weights = {"embed.weight": tokens, "unembed.weight": readout, "unembed.bias": torch.zeros_like(readout[:, 0])}
    if not rotary:
        weights["pos_embed.weight"] = positions
    for i, layer in enumerate(_unrolled(model)):
        plain = _plain_attention(layer.attention)
        query, key = plain.query, plain.key
        if rotary:
            query, key = (_in_adjacent_pairs(part, layer.attention.heads) for part in (query, key))
        maps = {"attn.q": query, "attn.k": key, "attn.v": plain.value, "attn.o": plain.output}
        if layer.has_mlp:
            maps |= {"mlp.in": _weight_and_bias(layer.mlp.up_proj), "mlp.out": _weight_and_bias(layer.mlp.down_proj)}
        for name, (weight, bias) in maps.items():
            weights |= {f"blocks.{i}.{name}.weight": weight, f"blocks.{i}.{name}.bias": bias}
        weights |= _norm_weights(f"blocks.{i}.ln1", layer.attention_norm)
        weights |= _norm_weights(f"blocks.{i}.ln2", layer.mlp_norm) if layer.has_mlp else {}
    return weights | _norm_weights("ln_final", model.ln_final)


def _norm_weights(name: str, norm: nn.Module) -> dict[str, Tensor]:
    if isinstance(norm, RMSNorm):
        return {f"{name}.weight": norm.weight.detach()}
    if not isinstance(norm, LayerNorm):
        return {}
    bias = torch.zeros_like(norm.weight) if norm.bias is None else norm.bias
    return {f"{name}.weight": norm.weight.detach(), f"{name}.bias": bias.detach()}


def _in_adjacent_pairs(part: tuple[Tensor, Tensor], heads: int) -> tuple[Tensor, Tensor]:
    """Rotary pairs (i, i + half) of each head's coordinates moved to (2i, 2i + 1)."""
    weight, bias = part
    head_width = len(weight) // heads
    half = head_width // 2
    order = torch.arange(2 * half).view(2, half).T.flatten().tolist() + list(range(2 * half, head_width))
    rows = torch.cat([torch.tensor(order) + h * head_width for h in range(heads)])
    return weight[rows], bias[rows]


Norm = LayerNorm | RMSNorm | nn.LayerNorm | HookPoint


def _copy_norm(source: Norm, target: Norm) -> None:
    """Gain and bias of a norm; a missing bias is zero, and an identity has nothing to copy."""
    if isinstance(source, HookPoint) or isinstance(target, HookPoint):
        return
    target.weight.copy_(source.weight)
    if not isinstance(target, RMSNorm) and target.bias is not None:
        bias = None if isinstance(source, RMSNorm) else source.bias
        target.bias.copy_(torch.zeros_like(target.bias) if bias is None else bias)


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
