"""A few lines for the page of every model: how it is made and what comes out. A test runs each of them."""

from __future__ import annotations

MODELS = {
    "associative-memory": """
memory = sl.models.AssociativeMemory(items=64, width=16)
logits = memory(torch.arange(64).unsqueeze(-1))  # (64, 1, 64): what each item retrieves
""",
    "balance-transformer": """
model = sl.models.BalanceTransformer(types=2, depth=3, widths=(16, 4), hidden=((8,),))
world = sl.worlds.Dyck(types=2, depth=3, length=12)
logits = model(world.sample(4, rng=sl.rng(0)).inputs)
""",
    "density-ratio": """
model = sl.models.DensityRatio(size=8, body="mlp", features=16, width=32)
log_ratio = model(torch.randn(4, 1, 8, 8))  # of four images: log p(x)/q(x), up to training
""",
    "disentangled-transformer": """
world = sl.worlds.InContextTree(states=3, parents=(-1, 0, 0, 1, 2, 2))
model = sl.models.DisentangledTransformer(vocab=3, length=world.length)
logits = model(world.sample(8, rng=sl.rng(0)).inputs)
""",
    "encoder-decoder": """
model = sl.models.EncoderDecoder(vocab=20, source_length=4, target_length=6, width=16, heads=2)
sum(weight.numel() for weight in model.parameters())
""",
    "fact-transformer": """
world = sl.worlds.FactRecall(subjects=8, relations=8, answers=4, noise=8, length=8)
model = sl.models.FactTransformer(vocab=world.vocab, outputs=world.outputs, width=16)
logits = model(world.sample(4, rng=sl.rng(0)).inputs)
""",
    "hybrid": """
world = sl.worlds.AssociativeRecall()
model = sl.models.Hybrid(vocab=world.vocab, length=world.length, layers=2, width=32)
logits = model(world.sample(4, rng=sl.rng(0)).inputs)
""",
    "lego-theory-transformer": """
world = sl.worlds.Lego("C3", variables=8, length=5)
model = sl.models.LegoTheoryTransformer(vocab=world.vocab, neurons=3)
logits = model(world.sample(4, rng=sl.rng(0)).inputs)
""",
    "lego-transformer": """
world = sl.worlds.Lego("C3", variables=8, length=5)
model = sl.models.LegoTransformer(vocab=world.vocab)
logits = model(world.sample(4, rng=sl.rng(0)).inputs)
""",
    "linear-attention-facts": """
model = sl.models.LinearAttentionFacts(vocab=5, outputs=3)
logits = model(torch.randint(0, 5, (8, 6)))
""",
    "linear-position-memory": """
world = sl.worlds.FlipFlopTransduction(length=32)
model = sl.models.LinearPositionMemory(width=8, scale=8.0)
logits = model(world.sample(4, rng=sl.rng(0)).inputs)
""",
    "lstm": """
world = sl.worlds.FlipFlop.ignoring(0.8, length=32)
model = sl.models.LSTM(vocab=world.vocab, width=32)
sl.lenses.accuracy(model, world, examples=64, rng=sl.rng(0))  # before training: chance
""",
    "masked-encoder": """
model = sl.models.MaskedEncoder(vocab=8, length=30, layers=2, heads=2, width=16)
logits = model(torch.randint(0, 8, (4, 30)))
""",
    "minimal-dyck": """
model = sl.models.MinimalDyck(types=2, depth=4, width=12)
world = sl.worlds.Dyck(types=2, depth=4, length=16)
logits = model(world.sample(4, rng=sl.rng(0)).inputs)
""",
    "mlp": """
world = sl.worlds.SparseParity(12, 3)
model = sl.models.MLP(features=12, hidden=(64,), outputs=1)
logits = model(world.sample(4, rng=sl.rng(0)).inputs)
""",
    "one-layer-markov": """
chain = sl.worlds.MarkovChain.binary(0.2, 0.3, length=64)
model = sl.models.OneLayerMarkov(length=64)
predicted = sl.lenses.chain_predictions(model, chain, chain.sample(16, rng=sl.rng(0)))
""",
    "one-layer-topics": """
model = sl.models.OneLayerTopics(vocab=13)
logits = model(torch.randint(0, 13, (4, 20)))
""",
    "own-module": """
from pathlib import Path

from sandlab.plugins import add

Path("my_gru.py").write_text('''
from torch import nn

class MyModel(nn.Module):
    def __init__(self, vocab: int, width: int = 32) -> None:
        super().__init__()
        self.table, self.cell = nn.Embedding(vocab, width), nn.GRU(width, width, batch_first=True)
        self.readout = nn.Linear(width, vocab)

    def forward(self, tokens):
        return self.readout(self.cell(self.table(tokens))[0])
''')
add("my_gru.py")
model = sl.models.OwnModule(module="my_gru.py:MyModel", vocab=3)
logits = model(torch.randint(0, 3, (4, 16)))
""",
    "real-transformer": """
world = sl.worlds.InContextRegression()
batch = world.sample(4, rng=sl.rng(0))
model = sl.models.RealTransformer(
    vocab=1, length=batch.inputs.shape[1], features=batch.inputs.shape[2], outputs=1, width=32
)
predictions = model(batch.inputs)
""",
    "rnn": """
world = sl.worlds.named_machine("C3", length=24)
model = sl.models.RNN(vocab=world.vocab, outputs=world.states, width=32)
logits = model(world.sample(4, rng=sl.rng(0)).inputs)
""",
    "simplified-transformer": """
world = sl.worlds.InContextNgrams(states=3, order=2, length=32)
model = sl.models.SimplifiedTransformer(vocab=3, length=32)
with sl.record(model, "*pattern") as cache:
    model(world.sample(4, rng=sl.rng(0)).inputs)
""",
    "state-space": """
world = sl.worlds.AssociativeRecall()
model = sl.models.StateSpace(vocab=world.vocab, width=32)
logits = model(world.sample(4, rng=sl.rng(0)).inputs)
""",
    "theory-perceptron": """
model = sl.models.TheoryPerceptron(features=11, width=64)
outputs = model(sl.worlds.SparseParity(11, 3).sample(4, rng=sl.rng(0)).inputs)
""",
    "theory-transformer": """
machine = sl.worlds.named_machine("C3", length=16)
model = sl.circuits.compile(machine, length=16)  # weights of this model, computed
logits = model(machine.sample(4, rng=sl.rng(0)).inputs)
""",
    "three-parameter-markov": """
chain = sl.worlds.MarkovChain.binary(0.2, 0.3, length=64)
model = sl.models.ThreeParameterMarkov(embedding=0.5, feedforward=1.0)
predicted = sl.lenses.chain_predictions(model, chain, chain.sample(16, rng=sl.rng(0)))
""",
    "transformer": """
world = sl.worlds.InContextMarkov(states=3, length=64)
model = sl.models.Transformer(vocab=3, length=64, layers=2, heads=1, width=32, positions="rotary")
with sl.record(model, "layers.*.attention.pattern") as cache:
    model(world.sample(4, rng=sl.rng(0)).inputs)
cache["layers.0.attention.pattern"].shape  # (4, 1, 64, 64): example, head, query, key
""",
}  # fmt: skip
"""Model → what to type after `import sandlab as sl` and `import torch`."""
