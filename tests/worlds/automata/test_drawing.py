import io

import pytest

import sandlab as sl

W = sl.worlds


def size(figure):
    picture = io.BytesIO()
    figure.savefig(picture, format="svg")
    return len(picture.getvalue())


def test_machines_graphs_towers_and_the_cube_are_drawn():
    figures = [
        W.draw_machine(W.Grid(size=4)),
        W.draw_machine(W.GridProduct(sizes=(2, 3))),
        W.draw_machine(W.from_regex("(ab)*")),
        W.draw_cayley_graph(W.named_machine("D6").semigroup(), letters=["advance", "toggle"]),
        W.draw_multiplication_table(W.named_machine("S3").semigroup()),
        W.draw_tower(W.Abab()),
        W.draw_rubik_net(turn="F"),
    ]
    assert all(2000 < size(figure) < 300_000 for figure in figures)


def test_a_diagram_shows_every_state_and_letter():
    machine = W.Abab()
    (axis,) = W.draw_machine(machine).axes
    written = {text.get_text() for text in axis.texts}
    assert set(machine.names_of_states) <= written and {"a", "b"} <= written


def test_the_tower_names_the_groups():
    (axis,) = W.draw_tower(W.Abab()).axes
    written = " ".join(text.get_text() for text in axis.texts)
    assert "C2 and resets" in written and "{0, 2, 4} {1, 3, 4}" in written and "level 2" in written
    # Every tile of two or more states points at the component that decides inside it.
    form = W.Abab().decomposition
    deeper = sum(form.component[tile] >= 0 for component in form.components for tile in component.tiles)
    assert sum(text.get_text() == "" for text in axis.texts) == deeper == 2


def test_large_towers_count_what_they_do_not_show():
    (axis,) = W.draw_tower(W.named_machine("S4")).axes
    written = [text.get_text() for text in axis.texts]
    assert "+ 19" in written and "S4 and resets" in written


def test_too_many_states_are_refused():
    with pytest.raises(sl.BadInput, match="cannot be read"):
        W.draw_machine(W.Cyclic(size=200))
    with pytest.raises(sl.BadInput, match="cannot be read"):
        W.draw_cayley_graph(W.named_machine("Grid9").semigroup())
