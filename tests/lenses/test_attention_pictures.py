import numpy as np

from sandlab import figures
from sandlab.lenses.attention_pictures import mark_attention


def test_marks_sit_on_row_maxima_writes_and_wrong_rows() -> None:
    pattern = np.tril(np.ones((4, 4))) * np.array([1.0, 3.0, 2.0, 0.5])
    _, (axis,) = figures.new()
    figures.heatmap(axis, pattern, bar=False)
    mark_attention(axis, pattern, writes={0: 1, 2: 0}, wrong=[3])
    maxima = axis.lines[0].get_xydata()
    assert maxima.tolist() == [[0, 0], [1, 1], [1, 2], [1, 3]]
    shapes = [(line.get_marker(), float(line.get_xdata()[0])) for line in axis.lines[1:3]]
    assert shapes == [("D", 0.0), ("o", 2.0)]
    assert [float(line.get_ydata()[0]) for line in axis.lines[3:]] == [2.5, 3.5]
    assert axis.get_ylim() == (3.5, -0.5)
