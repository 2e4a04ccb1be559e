"""Any model in the hands of TransformerLens: its `run_with_cache` and `run_with_hooks` on the activations named here.

`to_transformer_lens` makes TransformerLens's own network of a transformer that has an equivalent there. Every other
model, circuits above all, keeps its own code, and so its logits, and gets TransformerLens's hook points.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from torch import Tensor

from sandlab.errors import BadInput, shown
from sandlab.models.base import Model
from sandlab.models.layers import HookPoint

if TYPE_CHECKING:
    from transformer_lens.HookedRootModule import HookedRootModule

__all__ = ["bridge_to_transformer_lens"]


def bridge_to_transformer_lens(model: Model) -> HookedRootModule:  # type: ignore[no-any-unimported,unused-ignore]
    """A copy of any model as a `HookedRootModule` of TransformerLens, with the names that `record` knows.

    >>> bridge = bridge_to_transformer_lens(sl.circuits.induction_head(3, 16))
    >>> logits, cache = bridge.run_with_cache(tokens)
    >>> bridge.run_with_hooks(tokens, fwd_hooks=[("layers.0.attention.pattern", lambda value, hook: value * 0)])
    """
    if not isinstance(model, Model):
        raise BadInput(f"bridge_to_transformer_lens takes a model of SandLab, got {shown(type(model))}")
    try:
        from transformer_lens.hook_points import HookPoint as LensPoint
        from transformer_lens.HookedRootModule import HookedRootModule as Root
    except ImportError as problem:
        raise BadInput("this needs TransformerLens: pip install 'sandlab[lens]'") from problem

    class Point(LensPoint):  # type: ignore[misc,no-any-unimported,unused-ignore]
        """A hook point of both libraries."""

        hooked = HookPoint.hooked

    class Bridge(Root):  # type: ignore[misc,no-any-unimported,unused-ignore]
        """A model of SandLab with TransformerLens's hooks."""

        network: Model

        def __init__(self, network: Model) -> None:
            super().__init__()
            for part in list(network.modules()):
                for child, point in list(part.named_children()):
                    if isinstance(point, HookPoint):
                        setattr(part, child, Point())
            # The parts stand directly under the bridge, so that activations have the names of `record`.
            object.__setattr__(self, "network", network)
            for child, part in network.named_children():
                self.add_module(child, part)
            for name, weight in network.named_parameters(recurse=False):
                self.register_parameter(name, weight)
            self.setup()

        def forward(self, tokens: Tensor) -> Any:
            return self.network(tokens)

    return Bridge(copy.deepcopy(model))
