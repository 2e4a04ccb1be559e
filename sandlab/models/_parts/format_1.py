"""Models saved by SandLab 0.1 (format 1): their options and weights under the present names."""

from __future__ import annotations

import re

from torch import Tensor

__all__ = ["translate"]

Options = dict[str, object]
Weights = dict[str, Tensor]

_ARRANGEMENTS = {"pre": "pre", "gpt": "attention-post", "theory": "attention-branch"}
_NAMES = {"markov-3param": "three-parameter-markov", "placed-transformer": "transformer"}
_WEIGHTS = (
    (r"\brecurrence\.rise\b", "recurrence.in_proj"),
    (r"\brecurrence\.fall\b", "recurrence.out_proj"),
    (r"\brise\b", "up_proj"),
    (r"\bfall\b", "down_proj"),
    (r"\bmlp\.gate\b", "mlp.gate_proj"),
    (r"^final\b", "ln_final"),
)


def translate(name: str, options: Options, weights: Weights) -> tuple[str, Options, Weights]:
    """Registry name, options and weights of a saved model as this version understands them."""
    if name == "placed-transformer":
        options = _placed(options)
    if name == "bracket-transformer":
        return "transformer", *_bracket(options, weights)
    return _NAMES.get(name, name), options, {_renamed(key): value for key, value in weights.items()}


def _renamed(key: str) -> str:
    for old, new in _WEIGHTS:
        key = re.sub(old, new, key)
    return key


def _placed(options: Options) -> Options:
    kept = {key: value for key, value in options.items() if key not in ("slope", "shift")}
    linear = {"positions": "linear", "position_slope": options["slope"]} if options["slope"] else {}
    return {**kept, **linear, "position_shift": options["shift"]}


def _bracket(options: Options, weights: Weights) -> tuple[Options, Weights]:
    """One linear map of [one-hot token | position/6000] is a table of token vectors and a learned direction."""
    kept = {key: value for key, value in options.items() if key != "arrangement"}
    norm = _ARRANGEMENTS[str(options["arrangement"])]
    made: Options = {**kept, "norm": norm, "mlp": "relu", "readout_bias": True}
    table, bias = weights["embed.weight"], weights["embed.bias"]
    found = {"embedding.weight": (table[:, :-1].mT + bias).contiguous(), "readout_bias": weights["unembed.bias"]}
    if options["positions"] == "linear":
        made |= {"positions": "learned-linear", "position_slope": 1 / 6000}
        found["direction"] = table[:, -1].contiguous()
    gone = ("embed.weight", "embed.bias", "unembed.bias")
    rest = {_renamed(key): value for key, value in weights.items() if key not in gone}
    return made, found | {re.sub(r"^(layers\.\d+)\.norm\b", r"\1.attention_norm", key): v for key, v in rest.items()}
