"""Examples written by hand for the pages of circuits, lenses and decoders that people open first. A test runs each."""

from __future__ import annotations

HAND = {
    "lenses/accuracy": """
machine = sl.worlds.named_machine("C3", length=32)
shortcut = sl.circuits.compile(machine, length=32, method="scan")
sl.lenses.accuracy(shortcut, machine, examples=256, rng=sl.rng(0))  # 1.0
""",
    "lenses/attention-maps": """
world = sl.worlds.InContextMarkov(states=3, length=24)
model = sl.circuits.induction_head(3, 24)
maps = sl.lenses.attention_maps(model, world.sample(8, rng=sl.rng(0)).inputs, names="*pattern")
{name: tuple(pattern.shape) for name, pattern in maps.items()}
""",
    "lenses/attention-lipschitz": """
sl.lenses.attention_lipschitz(radius=1.0, floor=0.5)  # 400: the output moves at most so much per change of X
""",
    "lenses/delta-closeness": """
import numpy as np

truth = np.array([[0.5, 0.5], [0.2, 0.8]])
guess = np.array([[0.6, 0.4], [0.1, 0.9]])
sl.lenses.delta_closeness(guess, truth)  # the smallest and the largest p/p*
""",
    "lenses/exact-match": """
machine = sl.worlds.named_machine("C3", length=16)
model = sl.circuits.compile(machine, length=16, method="scan")
sl.lenses.exact_match(model, machine.sample(64, rng=sl.rng(0)))  # 1: every word right from end to end
""",
    "lenses/feature-magnitudes": """
from sandlab.learning import FeatureTraining, train_features

descent = train_features(FeatureTraining("C4", neurons=4, phases=((5.0, 200),)))
sl.lenses.feature_magnitudes(descent.final, "C4").shape  # class, neuron, value
""",
    "lenses/predictor-difference": """
hmm = sl.worlds.HMM()
sl.lenses.predictor_difference(hmm, hmm, "2|1")  # 0: a model predicts as it does itself
""",
    "lenses/generalization-gap": """
import numpy as np

answers = np.array([1, 0, 1, 1])
guesses = np.array([[0.9, 0.2, 0.8, 0.7], [0.5, 0.5, 0.5, 0.5]])  # of two classifiers
sl.lenses.generalization_gap(guesses, answers, population=np.array([0.1, 0.25]))
""",
    "lenses/plateaus": """
import numpy as np

steps = np.arange(0, 3000, 10)
loss = np.where(steps < 1000, 1.1, np.where(steps < 2000, 0.8, 0.5)) + 0.001 * np.sin(steps)
for found in sl.lenses.plateaus(steps, loss):
    print(found)
""",
    "lenses/linear-probe": """
features = torch.randn(400, 8, generator=sl.rng(0))
labels = (features[:, 0] > 0).long()
print(sl.lenses.linear_probe(features, labels, rng=sl.rng(1)))
""",
    "lenses/softmax-change": """
sl.lenses.softmax_change(0.1)  # no attention row moves further, in the sum of its changes
""",
    "lenses/tail-error": """
world = sl.worlds.FlipFlop.ignoring(0.8, length=32)
model = sl.circuits.flip_flop_transformer(32)
rate = sl.lenses.tail_error(model, world, targets=2000, rng=sl.rng(0))
print(rate)  # with an exact interval
""",
    "lenses/distances-to-estimators": """
world = sl.worlds.InContextNgrams(states=3, order=2, length=32)
model = sl.circuits.ngram_estimator(3, 2, 32)
sl.lenses.distances_to_estimators(model, world, world.sample(64, rng=sl.rng(0)))
""",
    "circuits/scan-circuit": """
machine = sl.worlds.named_machine("D6", length=64)  # a car that turns round
model = sl.circuits.scan_circuit(machine, 64)
sl.lenses.accuracy(model, machine, examples=256, rng=sl.rng(0))  # 1.0
""",
    "circuits/krohn-rhodes-circuit": """
machine = sl.worlds.named_machine("Grid4", length=32)
model = sl.circuits.krohn_rhodes_circuit(machine, 32)
sl.lenses.accuracy(model, machine, examples=256, rng=sl.rng(0))  # 1.0
""",
    "circuits/induction-head": """
world = sl.worlds.InContextMarkov(states=3, length=24)
model = sl.circuits.induction_head(3, 24)
batch = world.sample(4, rng=sl.rng(0))
model(batch.inputs).exp()[0, -1]  # what followed the last token before
""",
    "circuits/flip-flop-transformer": """
world = sl.worlds.FlipFlop.ignoring(0.8, length=32)
model = sl.circuits.flip_flop_transformer(32)
sl.lenses.accuracy(model, world, examples=256, rng=sl.rng(0))  # 1.0
""",
    "circuits/uniform-dyck": """
world = sl.worlds.Dyck(types=2, depth=4, length=24)
model = sl.circuits.uniform_dyck(types=2, depth=4)
logits = model(world.sample(4, rng=sl.rng(0)).inputs)
""",
    "circuits/parity-by-uniform-attention": """
world = sl.worlds.SparseParity(12, 3, "tokens")
model = sl.circuits.parity_by_uniform_attention(12, 3)
sl.lenses.accuracy(model, world, examples=256, rng=sl.rng(0))  # 1.0
""",
    "circuits/select-network": """
points = torch.arange(4.0).double().unsqueeze(1)
tables = torch.tensor([[0.0, 1.0, 0.5, 2.0], [2.0, 0.0, 1.5, 0.5]], dtype=torch.float64)
networks = [sl.circuits.look_up(points, row.unsqueeze(1), rng=sl.rng(0)) for row in tables]
chosen = sl.circuits.select_network(networks, 10.0)
chosen(torch.tensor([[2.0, 0.0]], dtype=torch.float64))  # 2: the second table at 0
""",
}  # fmt: skip
"""kind/name → what to type after `import sandlab as sl` (and `import torch`)."""

DECODER = """
from sandlab.decoding.exact.trees import TableVerifier, Tree, TreeGenerator

tree = Tree.random(2, 6, rng=sl.rng(0))  # a model of six bits, known exactly
accepted = (tree.strings().sum(1) == 3).astype(float)  # strings with three ones
done = sl.decoding.{name}({options}).generate(
    TreeGenerator(tree),
    torch.zeros(8, 0, dtype=torch.long),  # eight empty prompts
    verifier={verifier},
    max_new=6,
    rng=sl.rng(1),
)
[done.string(row) for row in range(8)]
"""
"""A run of any decoder on a model whose distribution is known."""
