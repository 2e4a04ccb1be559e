import numpy as np
import pytest
import torch

import sandlab as sl
from sandlab.circuits import draw_attention_flow, draw_channels, draw_wiring, trace


def test_the_trace_shows_what_each_channel_holds():
    machine = sl.worlds.Abab()
    model = sl.circuits.compile(machine, 8, "krohn-rhodes")
    word = torch.tensor(machine.read("ababbaba"))
    rows = trace(model, word)
    assert set(rows) == set(model.config.channels) and len(rows["letter"]) == model.config.layers + 1
    # The last layer leaves one possible state: the automaton's.
    assert np.allclose(rows["possible states"][-1][1:], machine.run(word).numpy())
    assert (rows["letter"][0][1:] == word.numpy()).all()


def test_attention_is_drawn_as_lines_between_positions():
    machine = sl.worlds.named_machine("S3")
    model = sl.circuits.compile(machine, 8, "scan")
    (axis,) = draw_attention_flow(model, torch.zeros(8, dtype=torch.long)).axes
    lines = sum(
        len(collection.get_segments()) for collection in axis.collections if hasattr(collection, "get_segments")
    )
    # Three layers, two heads, sixteen tokens, one line each.
    assert lines == 3 * 2 * 16
    with pytest.raises(sl.BadInput, match="at most 64"):
        draw_attention_flow(sl.circuits.compile(machine, 64, "scan"), torch.zeros(64, dtype=torch.long))


def test_wiring_and_channels_are_drawn():
    model = sl.circuits.compile("abab", 10, "krohn-rhodes")
    (axis,) = draw_wiring(model).axes
    assert [label.get_text() for label in axis.get_yticklabels()] == list(model.config.channels)
    figure = draw_channels(model, torch.tensor([0, 1] * 5), ["possible states", "reset"])
    assert len(figure.axes) >= 2


def test_models_without_named_channels_are_refused():
    plain = sl.models.TheoryTransformer(vocab=2, length=4, outputs=2, width=3)
    with pytest.raises(sl.BadInput, match="no named channels"):
        trace(plain, torch.tensor([0, 1]))
