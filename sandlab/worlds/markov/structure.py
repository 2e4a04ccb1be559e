"""Learning the causal tree of a distribution from samples: mutual information and Chow–Liu."""

from __future__ import annotations

import networkx as nx
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from sandlab.errors import choice, require

__all__ = ["chow_liu", "pair_frequencies", "position_information"]


def pair_frequencies(tokens: Int[Tensor, "example time"], states: int) -> Float[Tensor, "time time states states"]:
    """Frequencies of (x_i, x_j) for every pair of positions."""
    marks = F.one_hot(tokens, states).double()
    return torch.einsum("nia,njb->ijab", marks, marks) / len(tokens)


def position_information(
    tokens: Int[Tensor, "example time"], states: int, kind: str = "shannon"
) -> Float[Tensor, "time time"]:
    """Plug-in information between every pair of positions, over sequences of one distribution.

    "shannon"     Σ P(a, b) log[P(a, b)/(P(a)P(b))], in nats
    "chi-square"  Σ P(a, b)²/(P(a)P(b)) − 1

    Both are non-negative, zero for independent positions, and never increase along a Markov chain (data processing).
    """
    choice("kind", kind, ("shannon", "chi-square"))
    joint = pair_frequencies(tokens, states)
    product = joint.sum(-1, keepdim=True) * joint.sum(-2, keepdim=True)
    ratio = torch.where(joint > 0, joint / product.clamp(min=1e-300), 1.0)
    if kind == "shannon":
        return (joint * ratio.log()).sum((-1, -2))
    return torch.where(joint > 0, joint * ratio, 0.0).sum((-1, -2)) - 1


def chow_liu(information: Float[Tensor, "time time"], *, threshold: float = 0.0) -> tuple[int, ...]:
    """Parents of the tree that keeps the most information: a maximum spanning tree, directed away from its roots.

    With Shannon information it is the maximum-likelihood tree. Edges with information of at most `threshold` are left
    out; each remaining component is rooted at its first position (parent −1). Where a position would have two earlier
    neighbours, the direction away from the root decides, so that a parent comes after its child only if no tree of
    earlier parents has the same edges.

    Source: Chow and Liu 1968, "Approximating discrete probability distributions with dependence trees".
    """
    time = information.shape[-1]
    require(information.shape == (time, time), "information", tuple(information.shape), "a square matrix")
    graph = nx.Graph()
    graph.add_nodes_from(range(time))
    for i in range(time):
        for j in range(i):
            if float(information[i, j]) > threshold:
                graph.add_edge(j, i, weight=float(information[i, j]))
    tree = nx.maximum_spanning_tree(graph)
    parents = [-1] * time
    for part in nx.connected_components(tree):
        for parent, child in nx.bfs_edges(tree, min(part)):
            parents[child] = parent
    return tuple(parents)
