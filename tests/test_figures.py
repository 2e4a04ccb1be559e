import io

import numpy as np

from sandlab import figures


def test_a_figure_has_as_many_panels_as_asked_and_can_be_written() -> None:
    figure, axes = figures.new(columns=3, rows=2, title="a claim")
    assert len(axes) == 6
    figures.band(axes[0], np.arange(4), np.random.default_rng(0).normal(size=(5, 4)), label="runs")
    figures.levels(axes[0], {"floor": 0.1})
    figures.heatmap(axes[1], np.eye(3), title="identity", numbers=True)
    with figures.style():
        buffer = io.BytesIO()
        figure.savefig(buffer, format="svg")
    assert buffer.getvalue().startswith(b"<?xml")


def test_the_band_shades_the_range_between_runs() -> None:
    _, (axis,) = figures.new()
    curves = np.array([[0.0, 1.0], [2.0, 5.0], [1.0, 3.0]])
    figures.band(axis, [0, 1], curves)
    assert axis.lines[0].get_ydata().tolist() == [1.0, 3.0]
    shaded = axis.collections[0].get_paths()[0].vertices
    assert shaded[:, 1].min() == 0.0 and shaded[:, 1].max() == 5.0


def test_colours_differ_in_lightness() -> None:
    def lightness(colour: str) -> float:
        red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    first_four = sorted(lightness(colour) for colour in figures.COLOURS[:4])
    assert min(np.diff(first_four)) > 8
