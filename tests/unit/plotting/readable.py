"""Whether a picture can be read: words that lie in it, and not on each other."""

import itertools

from matplotlib.text import Text


def texts_in(figure):
    """All words of a figure that are seen, after drawing it."""
    figure.canvas.draw()
    found = [*figure.texts, *(text for legend in figure.legends for text in legend.findobj(Text))]
    axes = list(figure.axes)
    axes += [child for ax in figure.axes for child in ax.child_axes]
    for ax in axes:
        if not ax.get_visible():
            continue
        found += [*ax.texts, ax.title, ax._left_title, ax._right_title]
        if ax.get_legend() is not None:
            found += ax.get_legend().findobj(Text)
        if not ax.axison:
            continue
        for axis in (ax.xaxis, ax.yaxis):
            if axis.get_visible():
                found += [axis.label, axis.offsetText]
                found += [label for tick in axis._update_ticks() for label in (tick.label1, tick.label2)]
    return [text for text in dict.fromkeys(found) if text.get_visible() and text.get_text().strip()]


def assert_readable(picture):
    """All words lie within the figure, none on another."""
    figure = picture.figure
    texts = texts_in(figure)
    assert texts
    boxes = [text.get_window_extent() for text in texts]
    whole = figure.bbox
    for text, box in zip(texts, boxes, strict=True):
        inside = box.x0 >= whole.x0 - 1 and box.x1 <= whole.x1 + 1 and box.y0 >= whole.y0 - 1 and box.y1 <= whole.y1 + 1
        assert inside, f"{text.get_text()!r} leaves the picture"
    for (text, box), (other, second) in itertools.combinations(zip(texts, boxes, strict=True), 2):
        if text.get_rotation() % 90 or other.get_rotation() % 90:
            continue  # the boxes of slanted words say nothing
        across = min(box.x1, second.x1) - max(box.x0, second.x0)
        up = min(box.y1, second.y1) - max(box.y0, second.y0)
        assert across < 1.5 or up < 1.5, f"{text.get_text()!r} lies on {other.get_text()!r}"


def legend_of(picture):
    """The words of the only legend, wherever it is."""
    figure = picture.figure
    legends = [*figure.legends, *(ax.get_legend() for ax in figure.axes if ax.get_legend() is not None)]
    (legend,) = legends
    return [text.get_text() for text in legend.get_texts()]
