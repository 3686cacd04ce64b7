"""Charts: Vega-Lite specifications drawn to SVG when the page is made, with tooltips and without any script.

A chart is drawn twice, wide and narrow, so that its text stays legible on a telephone. Colours are those of Okabe and
Ito, which colour-blind readers can tell apart, and every series has a shape of its own as well. Text is measured with
a font that comes with the drawing library, and shown in whatever font of the same metrics the reader has.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple
from xml.etree import ElementTree

from pydantic import JsonValue

Spec = dict[str, JsonValue]
"""A Vega-Lite specification, or a part of one."""

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
PARTS = ("#00588A", "#E69F00", "#D55E00", "#A6D8F5", "#009E73", "#7A3E65")
"""Colours of the parts of bars: neighbours differ in lightness too, so that they stay apart in grey."""
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right")
INK = "#1b1f24"
"""Colour of text and lines. On the page it becomes the colour of the text around the chart, in light and in dark."""
DASHES = (4, 3)
"""Of the lines of intervals that are of low confidence."""
PALE = "#8a9099"
"""Colour of what is drawn but should not be relied on."""
FONT = "Liberation Sans"
FAMILIES = "'Liberation Sans', Arial, Helvetica, sans-serif"
SVG = "http://www.w3.org/2000/svg"

_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # controls, terminal escapes among them
    "\xad\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb"  # without a width
    "\u2028-\u202e"  # line separators and bidirectional controls; the isolates are above
    "\ud800-\udfff\ufdd0-\ufdef"  # halves of characters, and what is no character
    + "".join(f"{chr(plane + 0xFFFE)}{chr(plane + 0xFFFF)}" for plane in range(0, 0x110000, 0x10000))
    + "\U000e0000-\U000e0fff]"  # tags, which hide text in plain sight
)


def visible(text: str) -> str:
    r"""Return ``text`` with everything that hides, reorders or steers written out, such as ``\x1b`` or ``\u202e``.

    Tabs and line feeds stay, for they are white space on a page. What remains is text that XML allows.
    """
    return _HIDDEN.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def brief(text: str, limit: int) -> str:
    """Return ``text`` made visible, on one line, of at most ``limit`` characters and with ``…`` where it was cut."""
    line = " ".join(visible(text[: 4 * limit]).split())
    return line if len(line) <= limit and len(text) <= 4 * limit else line[: limit - 1].rstrip() + "…"


class Size(NamedTuple):
    """How much room a chart has, in pixels."""

    width: int
    labels: int
    """Part of the width that is kept for the labels of rows."""
    notes: int
    """Part of the width that is kept for the figures at the end of rows."""
    long_notes: bool


WIDE = Size(width=740, labels=250, notes=180, long_notes=True)
NARROW = Size(width=350, labels=140, notes=80, long_notes=False)
ROOM = 1.03
"""What a logarithmic axis reaches beyond the outermost points, as a factor."""
LETTER = 6.1
"""Pixels that a letter takes, on average. Cutting labels here spares the drawing library most of its work, which is to
measure text."""


class Estimate(NamedTuple):
    """A mean to draw as a dot with its interval. Values lie in 0..1; null values are drawn as a dash."""

    panel: str
    row: str
    series: str
    value: float | None
    low: float | None
    high: float | None
    n: int
    weak: bool
    """Too few items to rely on: drawn grey."""
    tip: str
    hue: str = ""
    """What gives it its colour and its shape, such as an engine; its series unless given."""
    hollow: bool = False
    thin: bool = False
    """Few items, of low confidence: drawn with a dashed interval."""


class Point(NamedTuple):
    """A point of a curve: ``value`` at ``x``, at least 1."""

    panel: str
    series: str
    x: int
    value: float
    low: float | None
    high: float | None
    tip: str
    weak: bool = False
    """Too few items to rely on: drawn grey."""
    thin: bool = False
    """Few items, of low confidence: drawn with a dashed interval."""
    hue: str = ""
    """What gives it its colour and its shape, such as an engine; its series unless given."""
    hollow: bool = False
    """Drawn as a dashed line with hollow dots; of a falling curve."""


class Share(NamedTuple):
    """A point of a curve of one share against another, both in 0..1. It is drawn as a dot only where it is marked."""

    panel: str
    series: str
    x: float
    value: float
    tip: str
    marked: bool = False
    working: bool = False
    """Where the series is used: a larger, hollow mark."""


class Bar(NamedTuple):
    """A part of a bar. ``note`` stands at the end of its row and is the same for all parts of it."""

    panel: str
    row: str
    part: str
    value: float
    note: str
    tip: str


class Drawing(NamedTuple):
    """A chart, drawn."""

    wide: str
    """SVG to stand in a page, for screens of some width and for paper."""
    narrow: str
    """The same for a telephone."""
    png: bytes
    """The wide chart on white, in two pixels a unit."""


def drawn(make: Callable[[Size], Spec], label: str) -> Drawing:
    """Draw what ``make`` specifies, wide and narrow. ``label`` says in words what the chart shows."""
    import vl_convert

    wide, narrow = (_svg(make(size)) for size in (WIDE, NARROW))
    return Drawing(embeddable(wide, label), embeddable(narrow, label), vl_convert.svg_to_png(wide, scale=2.0))


def _svg(spec: Spec) -> str:
    import vl_convert

    # No base URL is allowed: a specification holds its data, and nothing may be fetched. Every text in it is made
    # visible, because the drawing library aborts the whole process on a character that XML does not have.
    svg = vl_convert.vegalite_to_svg(
        {name: _visible(part) for name, part in spec.items()}, vl_version="6.4", allowed_base_urls=[]
    )
    return _MARKED.sub(r"\1", svg)


_TAKEN = (
    "if", "constructor", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable", "toLocaleString", "toString",
    "valueOf", "__proto__", "__defineGetter__", "__defineSetter__", "__lookupGetter__", "__lookupSetter__",
)  # fmt: skip
"""Names that the drawing library takes for its own. It is handed them with a space, which is taken off again."""
_MARKED = re.compile(f'(?<=[>"])({"|".join(_TAKEN)})\u00a0(?=[<"])')


def _visible(value: JsonValue) -> JsonValue:
    if isinstance(value, str):
        return f"{value}\N{NO-BREAK SPACE}" if value in _TAKEN else visible(value)
    if isinstance(value, list):
        return [_visible(item) for item in value]
    if isinstance(value, dict):
        return {name: _visible(item) for name, item in value.items()}
    return value


def embeddable(svg: str, label: str) -> str:
    """Return a drawn ``svg`` as an image to stand in a page: titles for tooltips, the page's ink, nothing else.

    Raises:
        ValueError: the drawing declares a document type, which could hold entities.
    """
    if "<!" in svg:
        raise ValueError("a drawing may not hold declarations")
    root = ElementTree.fromstring(svg)
    background = root.find(f"{{{SVG}}}rect")
    if background is not None:
        root.remove(background)
    for element in root.iter():
        _give_title(element)
        _adopt_ink(element)
    _drop_unseen(root)
    width, height = root.attrib["width"], root.attrib["height"]
    root.attrib.clear()
    root.attrib.update({"viewBox": f"0 0 {width} {height}", "width": width, "height": height})
    root.attrib.update({"role": "img", "aria-label": visible(label), "font-family": FAMILIES})
    ElementTree.register_namespace("", SVG)
    return ElementTree.tostring(root, encoding="unicode")


def _give_title(element: ElementTree.Element) -> None:
    label = element.attrib.get("aria-label")
    if label and element.tag != f"{{{SVG}}}g":
        title = ElementTree.Element(f"{{{SVG}}}title")
        title.text = label
        element.insert(0, title)
    # The image as a whole has one label. Readers who cannot see it get the table beside it, not hundreds of marks.
    for name in [name for name in element.attrib if name.startswith("aria-") or name in ("role", "class", "style")]:
        del element.attrib[name]


def _adopt_ink(element: ElementTree.Element) -> None:
    element.attrib.pop("font-family", None)
    for name in ("fill", "stroke"):
        if element.attrib.get(name) == INK:
            element.attrib[name] = "currentColor"


def _drop_unseen(parent: ElementTree.Element) -> None:
    for child in list(parent):
        if child.attrib.get("display") == "none":
            parent.remove(child)
        else:
            _drop_unseen(child)


# --- what is drawn ---------------------------------------------------------------------------------------------------


def dots(estimates: Sequence[Estimate], title: str, hues: Sequence[str] = ()) -> Callable[[Size], Spec]:
    """Specify a row for each estimate: a dot for the mean, a line for its interval, its n at the end.

    ``hues`` are all that colours and shapes are given to, in order, so that each has the same in every chart.
    """
    coloured = [estimate.hue or estimate.series for estimate in estimates]
    all_hues = [*dict.fromkeys([*hues, *coloured])]

    def spec(size: Size) -> Spec:
        size = _fitted(size, [estimate.row for estimate in estimates])
        names = _short(size, [estimate.series for estimate in estimates])
        series = [*names.values()]
        called = _short(size, all_hues)
        colour, shape = _colour(called, coloured), _shape(called, coloured)
        y = _rows([estimate.row for estimate in estimates], series)
        tip: Spec = {"description": {"field": "tip"}}
        dot: Spec = {"type": "point", "size": 75, "strokeWidth": 1.5, "opacity": 1}
        sure, unsure = "!datum.weak", "datum.weak && datum.value != null"
        line: Spec = {"type": "rule", "strokeWidth": 2}
        mean, span = _mean(title, size), _span(size)
        layer: list[JsonValue] = [
            _layer(line, y | tip | span | colour, f"{sure} && !datum.thin"),
            _layer(line | {"strokeDash": [*DASHES]}, y | tip | span | colour, f"{sure} && datum.thin"),
            _layer({"type": "rule", "strokeWidth": 1.5, "color": PALE}, y | tip | span, unsure),
            _layer(dot | {"filled": True}, y | tip | mean | colour | shape, f"{sure} && !datum.hollow"),
            _layer(dot | {"filled": False}, y | tip | mean | colour | shape, f"{sure} && datum.hollow"),
            _layer(dot | {"filled": True, "color": PALE}, y | tip | mean | shape, f"{unsure} && !datum.hollow"),
            _layer(dot | {"filled": False, "color": PALE}, y | tip | mean | shape, f"{unsure} && datum.hollow"),
            _row_labels(size, y),
            _layer(_words(dx=8), y | {"x": {"value": _plot(size)}, "text": {"field": "note"}}),
        ]
        rows = [
            _row(size, estimate.panel, estimate.row)
            | {"series": names[estimate.series], "value": estimate.value, "low": estimate.low, "high": estimate.high}
            | {"weak": estimate.weak or estimate.value is None, "note": _end_note(estimate, size), "tip": estimate.tip}
            | {"hue": called[hue], "hollow": estimate.hollow, "thin": estimate.thin}
            for estimate, hue in zip(estimates, coloured, strict=True)
        ]
        return _panels(size, _first_marked(rows), layer, step=max(20, 17 * len(series)), left=size.labels)

    return spec


def curves(
    points: Sequence[Point], x_title: str, y_title: str, ticks: Sequence[int], hues: Sequence[str] = ()
) -> Callable[[Size], Spec]:
    """Specify a line for each series over a logarithmic x, with a dot and an interval at each point.

    Series are coloured in the order of ``hues``, and then of the points.
    """
    series = [point.series for point in points]

    def spec(size: Size) -> Spec:
        names = _short(size, [*hues, *series])
        x: Spec = {"field": "x", "type": "quantitative"}
        x["scale"] = {"type": "log", "domain": [min(ticks) * 0.9, max(ticks) * 1.1], "nice": False}
        x["axis"] = {"title": x_title, "values": [*ticks], "labelOverlap": False, "format": "d", "grid": False}
        y: Spec = {"x": x, "y": _unit("value", {"title": y_title})}
        ends: Spec = {"x": x, "y": _unit("low", {"title": y_title}), "y2": {"field": "high"}}
        tip: Spec = {"description": {"field": "tip"}}
        colour, shape = _colour(names, series), _shape(names, series)
        rule: Spec = {"type": "rule", "strokeWidth": 1.5, "opacity": 0.45}
        dashed: Spec = rule | {"strokeDash": [*DASHES], "opacity": 0.8}
        dot: Spec = {"type": "point", "filled": True, "size": 75, "opacity": 1}
        layer: list[JsonValue] = [
            _layer(rule, ends | tip | colour, "datum.low != null && !datum.weak && !datum.thin"),
            _layer(dashed, ends | tip | colour, "datum.low != null && !datum.weak && datum.thin"),
            _layer(rule | {"color": PALE}, ends | tip, "datum.low != null && datum.weak"),
            _layer({"type": "line", "strokeWidth": 2, "aria": False}, y | colour),
            _layer(dot, y | tip | colour | shape, "!datum.weak"),
            _layer(dot | {"color": PALE}, y | tip | shape, "datum.weak"),
        ]
        rows: list[Spec] = [point._asdict() | {"hue": names[point.series]} for point in points]
        return _panels(size, rows, layer, height=230, left=44)

    return spec


def shares(points: Sequence[Share], x_title: str, y_title: str, hues: Sequence[str] = ()) -> Callable[[Size], Spec]:
    """Specify a line for each series, of one share against another. Series are coloured in the order of ``hues``."""
    series = [point.series for point in points]

    def spec(size: Size) -> Spec:
        names = _short(size, [*hues, *series])
        colour, shape = _colour(names, series), _shape(names, series)
        x = _unit("x", {"title": x_title, "grid": False})
        y: Spec = {"x": x, "y": _unit("value", {"title": y_title})}
        tip: Spec = {"description": {"field": "tip"}}
        order: Spec = {"order": {"field": "x", "type": "quantitative"}}
        layer: list[JsonValue] = [
            _layer({"type": "line", "strokeWidth": 2, "aria": False}, y | colour | order),
            _layer(
                {"type": "point", "filled": True, "size": 60, "opacity": 1}, y | tip | colour | shape, "datum.marked"
            ),
            _layer(
                {"type": "point", "filled": False, "size": 260, "strokeWidth": 2, "opacity": 1},
                y | tip | colour | shape,
                "datum.working",
            ),
        ]
        rows: list[Spec] = [point._asdict() | {"hue": names[point.series]} for point in points]
        return _panels(size, rows, layer, height=230, left=44)

    return spec


def falling(
    points: Sequence[Point],
    x_title: str,
    y_title: str,
    ticks: Sequence[int],
    hues: Sequence[str] = (),
    *,
    least: int = 0,
) -> Callable[[Size], Spec]:
    """Specify a line with a band for each series over a log2 axis. ``low`` and ``high`` are the edges of the band.

    Series are coloured in the order of ``hues``, and then of the points. Values lie between ``least`` and 1.
    """
    coloured = [point.hue or point.series for point in points]

    def spec(size: Size) -> Spec:
        names = _short(size, [*hues, *coloured])
        series = _short(size, [point.series for point in points])
        colour = _colour(names, coloured) | {"detail": {"field": "series", "type": "nominal"}}
        ends = [point.x for point in points]
        shown = [*ticks] if size.long_notes else [*ticks][:: 1 + (len(ticks) > 4)]
        x: Spec = {"field": "x", "type": "quantitative"}
        x["scale"] = {"type": "log", "base": 2, "domain": [min(ends) / ROOM, max(ends) * ROOM], "nice": False}
        x["axis"] = {"title": x_title, "values": [*shown], "labelOverlap": False, "format": ",d", "grid": True}
        y: Spec = {"x": x, "y": _unit("value", {"title": y_title}, least=least)}
        band: Spec = {"x": x, "y": _unit("low", {"title": y_title}, least=least), "y2": {"field": "high"}}
        edges: list[JsonValue] = [
            _layer(
                {"type": "line", "strokeWidth": 1, "strokeDash": [3, 3], "opacity": 0.8, "aria": False},
                y | {"y": _unit(edge, {"title": y_title}, least=least)} | colour,
                f"datum.{edge} != null",
            )
            for edge in ("low", "high")
        ]
        line: Spec = {"type": "line", "strokeWidth": 2, "aria": False}
        dot: Spec = {"type": "point", "size": 65, "opacity": 1}
        told = y | {"description": {"field": "tip"}} | colour | _shape(names, coloured)
        layer: list[JsonValue] = [
            _layer({"type": "area", "opacity": 0.16, "aria": False}, band | colour, "datum.low != null"),
            *edges,
            _layer(line, y | colour, "!datum.hollow"),
            _layer(line | {"strokeDash": [*DASHES]}, y | colour, "datum.hollow"),
            _layer(dot | {"filled": True}, told, "!datum.hollow"),
            _layer(dot | {"filled": False}, told, "datum.hollow"),
        ]
        rows: list[Spec] = [
            point._asdict() | {"hue": names[hue], "series": series[point.series]}
            for point, hue in zip(points, coloured, strict=True)
        ]
        return _panels(size, rows, layer, height=230, left=44)

    return spec


def bars(
    parts: Sequence[Bar], title: str, *, share: bool = False, stacked: bool = True, hues: Sequence[str] = ()
) -> Callable[[Size], Spec]:
    """Specify a horizontal bar for each row, of parts that are stacked or, else, stand below one another.

    Rows and parts keep the order in which they first appear. With ``share`` values lie in 0..1, shown in percent. Parts
    are coloured in the order of ``hues``, and then in their own; without ``hues`` they have the colours of ``PARTS``.
    """

    def spec(size: Size) -> Spec:
        size = _fitted(size, [bar.row for bar in parts], max(len(bar.note) for bar in parts))
        names = _short(size, [*hues, *(bar.part for bar in parts)])
        kinds = [names[part] for part in dict.fromkeys(bar.part for bar in parts)]
        colour = _colour(names, [bar.part for bar in parts], PALETTE if hues else PARTS)
        y = _rows([bar.row for bar in parts], [] if stacked else kinds)
        axis: Spec = {"title": title, "format": ".0%" if share else ",d", "tickMinStep": 0.01 if share else 1}
        axis |= {"tickCount": 8 if size.long_notes else 2}
        x: Spec = {"field": "value", "type": "quantitative", "stack": "zero" if stacked else None, "axis": axis}
        x["scale"] = {"domainMin": 0, "nice": False}
        end: Spec = x | ({"field": "total", "stack": None} if stacked else {})
        order: Spec = {"order": {"field": "place", "type": "quantitative"}} if stacked else {}
        layer: list[JsonValue] = [
            _layer({"type": "bar"}, y | {"x": x, "description": {"field": "tip"}} | colour | order),
            _row_labels(size, y),
            _layer(_words(dx=6), y | {"x": end, "text": {"field": "note"}}, "datum.first" if stacked else None),
        ]
        totals = Counter[tuple[str, str]]()
        for bar in parts:
            totals[bar.panel, bar.row] += bar.value  # type: ignore[assignment]
        rows = [
            _row(size, bar.panel, bar.row)
            | {"series": names[bar.part], "hue": names[bar.part], "place": kinds.index(names[bar.part])}
            | {"value": bar.value, "total": totals[bar.panel, bar.row], "note": bar.note, "tip": bar.tip}
            for bar in parts
        ]
        step = 19 if stacked else max(20, 15 * len(kinds))
        return _panels(size, _first_marked(rows), layer, step=step, left=size.labels)

    return spec


def _panels(size: Size, rows: list[Spec], layer: list[JsonValue], *, left: int, step: int = 0, height: int = 0) -> Spec:
    """Put ``layer`` into one panel, or into one for each panel of ``rows``, below one another, with its name above."""
    plot = _plot(size) if step else size.width - left - 16
    view: Spec = {"width": plot, "height": height or {"step": step, "for": "position"}, "layer": layer}
    panels = _short(size, [str(row["panel"]) for row in rows])
    values: list[JsonValue] = [row | {"panel": panels[str(row["panel"])]} for row in rows]
    spec: Spec = {"data": {"values": values}, "background": "white", "padding": 4, "config": _config(size, left)}
    if len(panels) == 1:
        return spec | view
    header: Spec = {"title": None, "labelOrient": "top", "labelAnchor": "start", "labelLimit": 0}
    panel: Spec = {"field": "panel", "type": "nominal", "sort": [*panels.values()], "header": header}
    apart: Spec = {"y": "independent", "yOffset": "independent"}
    return spec | {"facet": {"row": panel}, "spec": view, "resolve": {"scale": apart}, "spacing": 14}


def _config(size: Size, left: int) -> Spec:
    axis: Spec = {
        "labelColor": INK,
        "titleColor": INK,
        "gridColor": INK,
        "gridOpacity": 0.12,
        "domainColor": INK,
        "domainOpacity": 0.35,
        "ticks": False,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "labelPadding": 6,
    }
    legend: Spec = {
        "orient": "top",
        "offset": 10,
        "title": None,
        "labelColor": INK,
        "labelFontSize": 12,
        "labelLimit": 0,
        "columns": 3 if size.long_notes else 1,
        "symbolOpacity": 1,
        "columnPadding": 20,
    }
    header: Spec = {"labelColor": INK, "labelFontSize": 13, "labelFontWeight": "bold", "labelPadding": 4}
    view: Spec = {"stroke": None}
    return {"font": FONT, "axis": axis, "legend": legend, "header": header, "view": view}


def _layer(mark: Spec, encoding: Spec, only: str | None = None) -> Spec:
    layer: Spec = {"mark": mark, "encoding": encoding}
    return layer if only is None else layer | {"transform": [{"filter": only}]}


def _words(dx: int) -> Spec:
    mark: Spec = {"type": "text", "align": "left", "baseline": "middle", "fontSize": 12, "color": INK, "aria": False}
    return mark | {"dx": dx}


def _rows(rows: Sequence[str], series: Sequence[str]) -> Spec:
    y: Spec = {"field": "row", "type": "nominal", "sort": [*dict.fromkeys(rows)], "axis": None}
    if len(series) < 2:
        return {"y": y}
    return {"y": y, "yOffset": {"field": "series", "type": "nominal", "scale": {"domain": [*series]}}}


def _row_labels(size: Size, y: Spec) -> Spec:
    # An axis would measure each label several times, which takes most of the time that a chart takes.
    label: Spec = {"x": {"value": -size.labels}, "text": {"field": "label"}}
    return _layer(_words(dx=0), {"y": y["y"]} | label, "datum.first")


def _fitted(size: Size, rows: Sequence[str], note: int | None = None) -> Size:
    """Give the plot what the labels of ``rows``, and notes of ``note`` letters, leave free."""
    labels = min(size.labels, int(max(len(visible(row)) for row in rows) * LETTER * 1.1) + 14)
    return size._replace(labels=labels, notes=size.notes if note is None else int(note * LETTER) + 16)


def _row(size: Size, panel: str, row: str) -> Spec:
    return {"panel": panel, "row": row, "label": _cut(row, size.labels - 8)}


def _cut(text: str, room: float) -> str:
    """Return ``text`` cut to ``room`` pixels: capitals are wide, and an average would let them run into the plot."""
    line = brief(text, int(room / _NARROWEST))
    width, fitting = 0.0, 0
    for char in line:
        width += _pixels(char)
        fitting += width <= room - _pixels("…")
    return line if width <= room else brief(line, fitting + 1)


def _pixels(char: str) -> float:
    """Return about how wide a letter of a label is, in the font's 12 pixels."""
    if char in "ijlI|!'.,:;/ ftr()[]-":
        return _NARROWEST
    if char in "mwMW%@…":
        return 10.5
    return 12.0 if char > "\u2e80" else 8.4 if char.isupper() else 6.7


_NARROWEST = 4.0


def _first_marked(rows: list[Spec]) -> list[Spec]:
    """Mark the first datum of each row, so that what a row has once is drawn once."""
    seen: set[tuple[JsonValue, JsonValue]] = set()
    marked = []
    for row in rows:
        marked.append(row | {"first": (row["panel"], row["row"]) not in seen})
        seen.add((row["panel"], row["row"]))
    return marked


def _unit(field: str, axis: Spec, *, few: bool = False, least: int = 0) -> Spec:
    ticks: list[JsonValue] = [-1, -0.5, 0, 0.5, 1] if least else [0, 0.5, 1] if few else [0, 0.2, 0.4, 0.6, 0.8, 1]
    axis = axis | {"format": ".1f", "values": ticks}
    return {"field": field, "type": "quantitative", "scale": {"domain": [least, 1]}, "axis": axis}


def _mean(title: str, size: Size) -> Spec:
    return {"x": _unit("value", {"title": title}, few=not size.long_notes)}


def _span(size: Size) -> Spec:
    return {"x": _unit("low", {}, few=not size.long_notes), "x2": {"field": "high"}}


def _short(size: Size, names: Sequence[str]) -> dict[str, str]:
    """Return what to call each of ``names``, in order, cut to the chart's room and all different.

    The drawing library is never left to cut a text, because it would cut characters in half.
    """
    limit = int((size.width - 40) / LETTER)
    short: dict[str, str] = {}
    for name in dict.fromkeys(names):
        cut = brief(name, limit)
        short[name] = cut if cut not in short.values() else f"{brief(name, limit - 6)} ({len(short) + 1})"
    return short


def _colour(called: Mapping[str, str], drawn: Sequence[str], palette: Sequence[str] = PALETTE) -> Spec:
    return {"color": _scaled(called, drawn, palette)}


def _shape(called: Mapping[str, str], drawn: Sequence[str]) -> Spec:
    return {"shape": _scaled(called, drawn, SHAPES)}


def _scaled(called: Mapping[str, str], drawn: Sequence[str], values: Sequence[str]) -> Spec:
    """Give each name that is drawn the value of its place among all names, so that it is the same in every chart."""
    places = {name: place for place, name in enumerate(called) if name in set(drawn)}
    used: list[JsonValue] = [values[place % len(values)] for place in places.values()]
    domain: list[JsonValue] = [called[name] for name in places]
    scaled: Spec = {"field": "hue", "type": "nominal", "scale": {"domain": domain, "range": used}}
    return scaled if len(places) > 1 else scaled | {"legend": None}


def _plot(size: Size) -> int:
    return size.width - size.labels - size.notes


def _end_note(estimate: Estimate, size: Size) -> str:
    if estimate.value is None:
        return "no items" if estimate.n == 0 else f"no value · n {estimate.n}"
    if not size.long_notes:
        return f"{estimate.value:.2f} · n {estimate.n}"
    return f"{estimate.value:.3f} · n {estimate.n}" + (
        " · insufficient items" if estimate.weak else " · low confidence" if estimate.thin else ""
    )
