import math
import re
import unicodedata
from collections.abc import Callable
from itertools import pairwise
from xml.etree import ElementTree
from xml.sax.saxutils import escape

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.reports.charts import (
    INK,
    NARROW,
    PALE,
    PALETTE,
    PARTS,
    SVG,
    WIDE,
    Bar,
    Estimate,
    Point,
    Size,
    Spec,
    _cut,
    _pixels,
    bars,
    brief,
    curves,
    dots,
    drawn,
    embeddable,
    falling,
    visible,
)

GRADINGS = ("as pinned", "by name")
HOSTILE = [
    "<script>document.title='pwned'</script>",
    "</svg></title><img src=x onerror=alert(1)>",
    "\x1b[31mred\x1b[0m and \x00 nothing",
    "\u202egnp.exe\u2066",
    "]]> & &amp; \"quoted\" 'too'",
    "\U000e0041\ufffe\uffff\ud800",
    "datum.value ? 1 : {{7*7}}",
]
BIDIRECTIONAL = {"LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI"}
TAGS = {f"{{{SVG}}}{name}" for name in ("svg", "g", "path", "line", "rect", "text", "title")}


def estimate(row: str = "recall@10", series: str = "bm25", value: float | None = 0.5, **more: object) -> Estimate:
    weak, panel, tip = bool(more.get("weak")), str(more.get("panel", "")), str(more.get("tip", f"{row} {series}"))
    low, high = (None, None) if value is None else (value - 0.1, value + 0.1)
    return Estimate(panel, row, series, value, low, high, 30 if value is not None else 0, weak, tip)


def elements(svg: str) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(svg).iter())


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in elements(svg) if element.tag == f"{{{SVG}}}text"]


def titles(svg: str) -> list[str]:
    return [element.text or "" for element in elements(svg) if element.tag == f"{{{SVG}}}title"]


def marks_with(svg: str, title: str, tag: str = "path") -> list[ElementTree.Element]:
    return [
        element
        for element in elements(svg)
        if element.tag == f"{{{SVG}}}{tag}" and element.findtext(f"{{{SVG}}}title") == title
    ]


@given(st.text())
@settings(deadline=None)
def test_visible_text_hides_steers_and_reorders_nothing_and_is_valid_xml(text: str) -> None:
    shown = visible(text)
    kept = {"\t", "\n", "\u200c", "\u200d"}
    assert not [c for c in shown if c not in kept and unicodedata.category(c) in ("Cc", "Zl", "Zp", "Cs")]
    assert not [c for c in shown if unicodedata.bidirectional(c) in BIDIRECTIONAL]
    ElementTree.fromstring(f"<a>{escape(shown)}</a>")
    assert visible(shown) == shown


@given(
    st.text(
        alphabet=st.characters(categories=["L", "N", "P", "S", "Zs"], exclude_characters="\u3164\uffa0\u115f\u1160")
    )
)
@settings(deadline=None)
def test_harmless_text_of_any_script_stays_as_it_is(text: str) -> None:
    assert visible(text) == text


def test_a_terminal_escape_is_written_out() -> None:
    assert visible("\x1b[2J\u202e") == "\\x1b[2J\\u202e"


@given(st.text(), st.integers(min_value=2, max_value=40))
@settings(deadline=None)
def test_a_brief_text_is_one_line_of_the_given_length_and_says_that_it_was_cut(text: str, limit: int) -> None:
    short = brief(text, limit)
    assert len(short) <= limit
    assert "\n" not in short and "\t" not in short
    assert short == " ".join(visible(text).split()) or short.endswith("…")


@pytest.mark.parametrize(
    "chart",
    [
        dots([estimate(text, text, panel=text, tip=text) for text in HOSTILE], HOSTILE[0]),
        bars([Bar(text, text, text, 3, text, text) for text in HOSTILE], HOSTILE[1]),
        curves([Point(text, text, 5, 0.5, None, None, text) for text in HOSTILE], HOSTILE[2], HOSTILE[3], (1, 10)),
    ],
    ids=["dots", "bars", "curves"],
)
def test_hostile_names_are_text_in_every_chart(chart: Callable[[Size], Spec]) -> None:
    drawing = drawn(chart, HOSTILE[0])
    for svg in (drawing.wide, drawing.narrow):
        assert {element.tag for element in elements(svg)} <= TAGS
        assert {visible(text) for text in HOSTILE} <= set(titles(svg))
        assert ElementTree.fromstring(svg).attrib["aria-label"] == HOSTILE[0]


@given(st.lists(st.text(), min_size=1, max_size=25))
@settings(deadline=None, max_examples=8)
def test_no_text_stops_a_chart_from_being_drawn(texts_of_others: list[str]) -> None:
    drawing = drawn(bars([Bar("", text, text, 1, text, text) for text in texts_of_others], "entries"), "")
    assert {visible(text) for text in texts_of_others} - {""} <= set(titles(drawing.wide))


def test_characters_beyond_the_basic_plane_are_never_cut_in_half() -> None:
    names = ["\N{SLEEPING SYMBOL}" * length for length in range(100, 125, 3)]
    svg = drawn(dots([estimate(name, name, panel=name) for name in names], "mean"), "").narrow
    assert len([text for text in texts(svg) if text.endswith("…")]) >= len(names)


def test_long_names_that_begin_alike_stay_apart() -> None:
    names = ["x" * 200 + end for end in "abc"]
    svg = drawn(curves([Point(name, name, 1, 0.5, None, None, "") for name in names], "k", "recall", (1, 10)), "").wide
    assert len({text for text in texts(svg) if text.startswith("xxx")}) == 3


def test_a_chart_is_one_labelled_image_without_style_class_or_link() -> None:
    svg = drawn(dots([estimate(), estimate(series="dense")], "mean"), "What it shows.").wide
    root, *inner = elements(svg)
    assert (root.attrib["role"], root.attrib["aria-label"]) == ("img", "What it shows.")
    names = {name for element in inner for name in element.attrib}
    assert not [name for name in names if name.startswith(("on", "aria-")) or "href" in name]
    assert not names & {"style", "class", "role", "id", "font-family"}


def test_every_dot_and_bar_and_point_has_its_tooltip() -> None:
    dot = drawn(dots([estimate(tip="a dot")], "mean"), "").wide
    bar = drawn(bars([Bar("", "row", "part", 3, "3", "a bar")], "entries"), "").wide
    point = drawn(curves([Point("", "bm25", 10, 0.5, 0.4, 0.6, "a point")], "k", "recall", (1, 10)), "").wide
    assert len(marks_with(dot, "a dot")) == len(marks_with(bar, "a bar")) == len(marks_with(point, "a point")) == 1
    assert len(marks_with(dot, "a dot", "line")) == len(marks_with(point, "a point", "line")) == 1


def test_an_estimate_on_too_few_items_is_grey() -> None:
    chart = dots([estimate("kind", tip="sure"), estimate("mode", tip="unsure", weak=True)], "mean")
    svg = drawn(chart, "").wide
    (sure,), (unsure,) = marks_with(svg, "sure"), marks_with(svg, "unsure")
    assert sure.attrib["fill"] == PALETTE[0]
    assert unsure.attrib["fill"] == PALE
    assert [text for text in texts(svg) if "insufficient items" in text] == ["0.500 · n 30 · insufficient items"]


def test_a_grading_is_told_by_filling_and_takes_neither_colour_nor_shape() -> None:
    both = [estimate(series=f"bm25, {way}", tip=way)._replace(hue="bm25", hollow=way == "by name") for way in GRADINGS]
    other = estimate(series="dense, as pinned", tip="other")._replace(hue="dense")
    svg = drawn(dots([*both, other], "mean"), "").wide
    filled, hollow, apart = (marks_with(svg, tip)[0].attrib for tip in (*GRADINGS, "other"))
    assert filled["fill"] == hollow["stroke"] == PALETTE[0] != apart["fill"]
    assert hollow.get("fill", "none") in ("none", "transparent")
    assert filled["d"] == hollow["d"] != apart["d"]


def test_an_engine_keeps_its_colour_and_shape_where_others_are_not_drawn() -> None:
    hues = ("bm25", "dense", "hybrid")
    charts = [
        dots([estimate(series="hybrid", tip="x")], "mean", hues),
        dots([estimate(series=name, tip="x" if name == "hybrid" else name) for name in hues], "mean", hues),
        curves([Point("", "hybrid", 10, 0.5, 0.4, 0.6, "x")], "k", "recall", (1, 10), hues),
    ]
    marks = [marks_with(drawn(chart, "").wide, "x")[0].attrib for chart in charts]
    assert {mark["fill"] for mark in marks} == {PALETTE[2]}
    assert len({mark["d"] for mark in marks}) == 1
    bar = drawn(bars([Bar("", "row", "hybrid", 1, "1", "x")], "questions", hues=hues), "").wide
    assert marks_with(bar, "x")[0].attrib["fill"] == PALETTE[2]


def test_low_confidence_has_a_mark_of_its_own() -> None:
    made = [estimate("kind", tip="ok"), estimate("mode", tip="low")._replace(thin=True)]
    svg = drawn(dots(made, "mean"), "").wide
    assert "stroke-dasharray" in marks_with(svg, "low", "line")[0].attrib
    assert "stroke-dasharray" not in marks_with(svg, "ok", "line")[0].attrib
    assert "0.500 · n 30 · low confidence" in texts(svg)
    points = [Point("", "bm25", k, 0.5, 0.4, 0.6, str(k), thin=k == 10) for k in (1, 10)]
    svg = drawn(curves(points, "k", "recall", (1, 10)), "").wide
    assert ["stroke-dasharray" in marks_with(svg, tip, "line")[0].attrib for tip in ("1", "10")] == [False, True]


def test_a_narrow_chart_has_few_ticks_that_do_not_run_into_one_another() -> None:
    rows = [estimate("a-very-long-name-of-a-row-" + "x" * 40)]
    drawing = drawn(dots(rows, "mean"), "")
    ticks = ["0.0", "0.2", "0.4", "0.5", "0.6", "0.8", "1.0"]
    assert [text for text in texts(drawing.narrow) if text in ticks] == ["0.0", "0.5", "1.0"]
    assert len([text for text in texts(drawing.wide) if text in ticks]) == 6


def test_a_missing_value_is_said_and_never_drawn_as_a_dot() -> None:
    svg = drawn(dots([estimate("kind"), estimate("mode", value=None, tip="missing")], "mean"), "").wide
    assert "no items" in texts(svg)
    assert not marks_with(svg, "missing") and not marks_with(svg, "missing", "line")


def test_series_differ_in_colour_and_in_shape() -> None:
    names = [f"engine {place}" for place in range(6)]
    svg = drawn(dots([estimate(series=name, tip=name) for name in names], "mean"), "").wide
    found = [marks_with(svg, name)[0].attrib for name in names]
    assert len({mark["fill"] for mark in found}) == len({mark["d"] for mark in found}) == 6


def test_neighbouring_parts_of_bars_stay_apart_in_grey() -> None:
    def lightness(colour: str) -> float:
        shares = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
        linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
        return 116 * math.cbrt(0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]) - 16

    first, second, third = (lightness(colour) for colour in PARTS[:3])
    assert min(abs(first - second), abs(second - third), abs(first - third)) > 15
    assert all(abs(lightness(one) - lightness(other)) > 15 for one, other in pairwise(PARTS))
    svg = drawn(bars([Bar("", "row", part, 1, "2", part) for part in ("a", "b")], "entries"), "").wide
    assert [marks_with(svg, part)[0].attrib["fill"] for part in ("a", "b")] == [*PARTS[:2]]


def test_rows_keep_the_order_in_which_they_are_given() -> None:
    rows = ["zebra", "apple", "mango"]
    svg = drawn(bars([Bar("", row, part, 1, "2", "") for row in rows for part in ("b", "a")], "entries"), "").wide
    assert [text for text in texts(svg) if text in rows] == rows
    assert [text for text in texts(svg) if text in ("a", "b")] == ["b", "a"]


def test_bars_that_are_stacked_begin_where_the_one_before_ends() -> None:
    svg = drawn(bars([Bar("", "row", "one", 3, "4", "one"), Bar("", "row", "two", 1, "4", "two")], "entries"), "").wide
    (one,), (two,) = marks_with(svg, "one"), marks_with(svg, "two")
    (start, width), (then, rest) = (
        (float(left), float(right))
        for left, right in (re.findall(r"M([\d.]+),.*?h([\d.]+)v", mark.attrib["d"])[0] for mark in (one, two))
    )
    assert start == 0 and then == pytest.approx(width) and width == pytest.approx(3 * rest)


def test_panels_of_several_sets_show_every_series_in_each() -> None:
    made = [estimate(series=s, panel=p, tip=f"{p} {s}") for p in ("first", "second") for s in ("bm25", "dense")]
    svg = drawn(dots(made, "mean"), "").wide
    assert {text for text in texts(svg) if text in ("first", "second")} == {"first", "second"}
    places = [marks_with(svg, one.tip)[0].attrib["transform"] for one in made]
    assert places[0] != places[1] and places[:2] == places[2:]


@pytest.mark.parametrize("size", [WIDE, NARROW])
def test_a_chart_is_no_wider_than_its_room(size: Size) -> None:
    rows = ["a-very-long-owner-name/" + "x" * 60, "short"]
    drawing = drawn(bars([Bar("", row, "part", 3, "12% of 4,321", "") for row in rows], "entries"), "")
    svg = drawing.wide if size is WIDE else drawing.narrow
    assert float(ElementTree.fromstring(svg).attrib["width"]) <= size.width + 12


def test_ink_becomes_the_colour_of_the_text_around_the_chart() -> None:
    drawing = drawn(dots([estimate()], "mean"), "")
    assert INK not in drawing.wide and "currentColor" in drawing.wide
    assert drawing.png.startswith(b"\x89PNG\r\n\x1a\n")


def test_the_same_estimates_give_the_same_bytes() -> None:
    assert drawn(dots([estimate()], "mean"), "x") == drawn(dots([estimate()], "mean"), "x")


def test_a_specification_that_would_fetch_data_is_refused() -> None:
    def fetching(size: Size) -> Spec:
        return {"data": {"url": "http://127.0.0.1:9/data.json"}, "mark": "point", "encoding": {}}

    with pytest.raises(ValueError, match="not allowed"):
        drawn(fetching, "")


def test_a_drawing_with_a_document_type_is_refused() -> None:
    with pytest.raises(ValueError, match="declarations"):
        embeddable('<!DOCTYPE svg [<!ENTITY a "b">]><svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>', "")


def test_a_label_of_capitals_is_cut_before_it_runs_into_the_plot() -> None:
    room = NARROW.labels - 8
    for text in ("SchneiderSam/awesome-windsurfrules", "WWWWWWWWWWWWWWWWWWWWWWWW", "界" * 40, "a/b"):
        label = _cut(text, room)
        assert sum(_pixels(char) for char in label) <= room
        assert label == text or (label.endswith("…") and text.startswith(label[:-1]))
    assert _cut("a/b", room) == "a/b"
    assert len(_cut("i" * 30, room)) == 30


def _one_of_each(name: str) -> list[Callable[[Size], Spec]]:
    """Every kind of chart, with a name in every place that takes one."""
    points = [Point(name, series, x, 0.5, 0.4, 0.6, name) for series in (name, "other") for x in (100, 200)]
    spread = [Estimate(name, name, series, 0.5, 0.4, 0.6, 30, False, name) for series in (name, "other")]
    parts = [Bar(name, name, part, 0.5, name, name) for part in (name, "other")]
    return [
        falling(points, "x", "y", [100, 200], [name]),
        curves(points, "x", "y", [100, 200], [name]),
        dots(spread, "t", [name]),
        bars(parts, "t", stacked=True),
        bars(parts, "t", stacked=False),
    ]


@pytest.mark.parametrize(
    "name", ["if", "toString", "constructor", "__proto__", "a.b[0]", "x'y\"z", "datum['hue']", "\\"]
)
def test_a_name_that_means_something_to_the_drawing_library_is_drawn_like_any_other(name: str) -> None:
    for chart in _one_of_each(name):
        assert name in texts(drawn(chart, "chart").wide)


def test_falling_curves_have_the_colour_of_their_hue_and_are_dashed_where_they_are_hollow() -> None:
    points = [
        Point("", f"{engine}, {how}", x, 0.5, None, None, f"{engine} {how}", hue=engine, hollow=how == "by name")
        for engine in ("one", "two")
        for how in GRADINGS
        for x in (100, 200)
    ]
    svg = drawn(falling(points, "x", "y", [100, 200], ["zero", "one", "two"]), "chart").wide
    paths = [element for element in elements(svg) if element.get("stroke-width") == "2" and element.get("stroke")]
    lines = [path for path in paths if not path.get("transform")]
    of = {(line.get("stroke"), line.get("stroke-dasharray")) for line in lines}
    assert {colour for colour, _ in of} == {*PALETTE[1:3]}
    assert len(of) == len(lines) == 4
    assert {"one", "two"} <= {*texts(svg)} and "zero" not in texts(svg)
