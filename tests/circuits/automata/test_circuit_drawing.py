import numpy as np
import pytest
import torch

import sandlab as sl
from sandlab import figures
from sandlab.circuits import (
    animate_computation,
    draw_attention_flow,
    draw_channels,
    draw_computation,
    draw_wiring,
    reading_paths,
    trace,
)


def test_the_trace_shows_what_each_channel_holds():
    machine = sl.worlds.Abab()
    model = sl.circuits.compile(machine, 8, "krohn-rhodes")
    word = machine.read_text("ababbaba")
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


def boxes(figure):
    """Texts by (position, layer)."""
    (axis,) = figure.axes
    return {tuple(round(x, 2) for x in text.get_position()): text.get_text() for text in axis.texts}


def test_a_scan_is_drawn_as_maps_that_are_composed():
    machine = sl.worlds.Grid(size=4)
    word = machine.read_text("RRLRRRLR").tolist()
    drawn = boxes(draw_computation(sl.circuits.compile(machine, 8, "scan"), machine, word))
    for layer in (1, 2):
        for position in range(8):
            window = word[max(0, position + 1 - 2**layer) : position + 1]
            ends = [int(machine.task(start=start).run(torch.tensor([window]))[0, -1]) for start in range(4)]
            assert drawn[position, layer] == "".join(map(str, ends))
    states = machine.run(torch.tensor([word]))[0].tolist()
    assert [drawn[position, 3] for position in range(8)] == [str(state) for state in states]


def test_a_cascade_is_drawn_as_the_states_still_possible():
    machine = sl.worlds.Abab()
    word = machine.read_text("ababbaba").tolist()
    model = sl.circuits.compile(machine, 8, "krohn-rhodes")
    drawn = boxes(draw_computation(model, machine, word))
    states = machine.run(torch.tensor([word]))[0].tolist()
    for layer in range(1, model.config.layers + 1):
        assert all(str(state) in drawn[position, layer] for position, state in enumerate(states))


def test_other_circuits_are_drawn_with_what_they_answer():
    for name, word in (("flip-flop", [1, 0, 2, 0]), ("Grid4", [1, 1, 0, 1]), ("C3", [1, 2, 0, 2])):
        machine = sl.worlds.named_machine(name)
        drawn = boxes(draw_computation(sl.circuits.compile(machine, 4), machine, word))
        states = machine.run(torch.tensor([word]))[0].tolist()
        top = max(layer for _, layer in drawn if layer == int(layer))
        assert [drawn[position, top] for position in range(4)] == [machine.names_of_states[state] for state in states]
    with pytest.raises(sl.BadInput, match="at most 24"):
        draw_computation(sl.circuits.compile("C3", 30), sl.worlds.named_machine("C3"), [0] * 30)


def test_paths_lead_from_the_last_token_back_to_what_it_read():
    first = np.zeros((1, 3, 3))
    first[0, 2, 1] = first[0, 1, 0] = first[0, 0, 0] = 1
    kept = np.eye(3)[None]
    letters, middle, last = reading_paths([first, kept])
    assert last.tolist() == middle.tolist() == [False, False, True] and letters.tolist() == [False, True, True]
    assert [row.tolist() for row in reading_paths([None])] == [[True], [True]]


def test_the_film_shows_letters_first_and_each_layer_after_its_lines(tmp_path):
    machine = sl.worlds.Grid(size=3)
    model = sl.circuits.compile(machine, 4, "scan")
    animation = animate_computation(model, machine, [1, 0, 1, 1])
    (axis,) = animation._fig.axes
    seen = []
    for frame in range(6):
        animation._func(frame)
        lines = sum(line.get_visible() for line in axis.lines)
        # Boxes of the letters, of the first layer, of the second.
        layers = {round(text.get_position()[1]) for text in axis.texts if text.get_bbox_patch() and text.get_visible()}
        seen.append((lines, len(layers)))
    assert seen == [(0, 1), (8, 1), (8, 2), (16, 2), (16, 3), (16, 3)]
    assert figures.save_film(animation, tmp_path / "scan.gif", fps=1).stat().st_size > 5000
