"""The section of falloff: curves with both bands, what they say in words, and which tap took which questions.

A curve that would mislead is not drawn; a sentence says why. The numbers stand in the tables beside the charts.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from pipeline.falloff.rows import BELOW, SAME_ORDER
from pipeline.reports.charts import ROOM, Bar, Point, bars, falling
from pipeline.reports.figures import Figure, figure_of
from pipeline.reports.reading import (
    GRADINGS,
    NOTHING,
    Row,
    between,
    count_of,
    counted,
    figure_id,
    left_out,
    number_of,
    rows_of,
    text_of,
)

if TYPE_CHECKING:
    import pyarrow as pa

METRIC = "recall@10"
"""The measure whose curve is drawn; the tables hold all."""
KINDS = {
    "random": "taps in drawn orders",
    "first_seen": "the oldest tap first",
    "size": "the smallest tap first",
    "confuser": "the worst confuser first",
    "entries": "single entries, drawn uniformly",
}
"""In what order the catalogue grows, and how the page calls it."""
TITLES = {
    "random": "",
    "first_seen": ", the oldest tap first",
    "size": ", the smallest tap first",
    "confuser": ", the worst confuser first",
    "entries": ", entry by entry",
}
"""What the title of a curve says of its order."""
BANDS = {
    "order": "band: other orders of the same catalogue",
    "query": "band: other questions of the same kind",
}
"""The two bands, and what each is the spread over."""
TABLES = ("falloff", "falloff_fits", "falloff_summaries", "falloff_notes", "attribution")
MOST_TAKERS = 15
MOST_LOST = 60
MOST_NOTES = 6
WEAK = ("insufficient items", "no items")


class Said(NamedTuple):
    """What a curve says in words."""

    golden_set: str
    engine: str
    kind: str
    label: str
    sentences: tuple[str, ...]
    ids: tuple[str, ...]
    """For each sentence the id of the figure that it tells; empty where it tells none, or several."""


class Taker(NamedTuple):
    """A tap, and what it took of a lost question."""

    tap: str
    share: float
    recovered: str
    first: str
    """What stands first of those of its classes that outrank the answer; empty where none does."""


class Lost(NamedTuple):
    """A question that is answered in the smallest subset and not in the whole corpus."""

    golden_set: str
    engine: str
    query_id: str
    question: str
    takers: tuple[Taker, ...]


class Growth(NamedTuple):
    """All that the section shows."""

    said: tuple[Said, ...]
    not_drawn: tuple[str, ...]
    """Sentences: what is not there, and why."""
    figures: tuple[Figure, ...]
    lost: tuple[Lost, ...]
    more_lost: int


class _Key(NamedTuple):
    golden_set: str
    engine: str
    kind: str
    grading: str


def growth(
    tables: Mapping[str, pa.Table],
    questions: Mapping[str, str],
    headline: Mapping[tuple[str, str], float | None],
    hues: Sequence[str] = (),
    *,
    drawn: bool = True,
) -> Growth:
    """Make the section from the tables of falloff.

    Args:
        tables: the tables by name; those that are missing count as empty.
        questions: the text of each question, by the id of its item.
        headline: recall@10 over the whole corpus, by set and engine, where it is known.
        hues: the engines, each of which has the colour of its place.
        drawn: whether charts are drawn too.
    """
    if "falloff" not in tables:
        return Growth((), ("No curve was drawn: the run was made by an earlier release.",), (), (), 0)
    curves = _curves(tables["falloff"])
    rows = {name: rows_of(tables[name]) for name in TABLES[1:]}
    abstaining = _abstaining(tables["falloff"])
    drawable = {key: points for key, points in curves.items() if _drawable(points)}
    notes = _notes(rows["falloff_notes"], curves)
    if not curves and not rows["falloff_notes"]:
        notes = ["No curve was drawn: orders = 0 in the configuration switches curves off."]
    elif curves and not any(key.kind == "random" for key in curves):
        notes.append("Which taps took lost questions is looked at over drawn orders of taps alone (--by random).")
    taken = [row for row in rows["attribution"] if row["grading"] == "row"]
    lost = _lost(taken, questions)
    return Growth(
        said=_each_once(
            _said(key, points, curves.get(key._replace(grading="name"), []), rows, headline, abstaining)
            for key, points in curves.items()
            if key.grading == "row"
        ),
        not_drawn=tuple(notes),
        figures=(*_figures(drawable, taken, hues), *_abstaining_figure(abstaining)) if drawn else (),
        lost=tuple(lost[:MOST_LOST]),
        more_lost=max(0, len(lost) - MOST_LOST),
    )


def _curves(falloff: pa.Table) -> dict[_Key, list[Row]]:
    """Return the points of each curve over all orders, by rising size."""
    import pyarrow.compute as pc

    for column, value in (("metric", METRIC), ("treatment", "removed")):
        falloff = falloff.filter(pc.equal(falloff[column], value))
    curves: dict[_Key, list[Row]] = defaultdict(list)
    for row in _over_all_orders(falloff):
        curves[_key_of(row)].append(row)
    return {
        key: _by_size(rows)
        for key, rows in sorted(
            curves.items(), key=lambda one: (one[0].golden_set, [*KINDS].index(one[0].kind), one[0])
        )
    }


def _abstaining(falloff: pa.Table) -> dict[_Key, dict[str, list[Row]]]:
    """Return the points of what abstaining is worth, by measure."""
    import pyarrow.compute as pc

    found: dict[_Key, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in _over_all_orders(falloff.filter(pc.equal(falloff["grading"], "qrels"))):
        found[_key_of(row)._replace(grading="row")][text_of(row, "metric")].append(row)
    return {key: {metric: _by_size(rows) for metric, rows in of_key.items()} for key, of_key in sorted(found.items())}


def _over_all_orders(falloff: pa.Table) -> list[Row]:
    import pyarrow.compute as pc

    drawn = pc.and_(pc.invert(pc.is_null(falloff["seed"])), pc.is_in(falloff["order_kind"], value_set=_drawn_kinds()))
    return rows_of(falloff.filter(pc.invert(drawn)))


def _by_size(rows: Iterable[Row]) -> list[Row]:
    """Return points by rising size; of equal sizes the last, which is closest."""
    return [[*same][-1] for _, same in groupby(sorted(rows, key=_place), key=lambda row: count_of(row, "entries"))]


def _drawn_kinds() -> pa.Array:
    import pyarrow as pa

    return pa.array(["random", "entries"])


def _place(row: Row) -> tuple[int, int]:
    return count_of(row, "entries"), count_of(row, "step")


def _drawable(points: Sequence[Row]) -> bool:
    """Say whether a curve can be drawn without misleading: several sizes, values, and enough questions."""
    return len(points) > 1 and all(row["value"] is not None and row["label"] not in WEAK for row in points)


def _why_not(points: Sequence[Row]) -> str:
    for row in points:
        if row["value"] is None:
            return text_of(row, "reason") or "it has no value"
        if row["label"] in WEAK:
            few = counted(count_of(row, "n"), "independent question")
            return f"{few} of {count_of(row, 'n_items'):,} can be followed, and fewer than 20 support no curve"
    return "there is one size"


# --- in words ---------------------------------------------------------------------------------------------------------


def _said(
    key: _Key,
    points: Sequence[Row],
    by_name: Sequence[Row],
    rows: Mapping[str, Sequence[Row]],
    headline: Mapping[tuple[str, str], float | None],
    abstaining: Mapping[_Key, Mapping[str, Sequence[Row]]],
) -> Said:
    label = text_of(points[-1], "label")
    if not _drawable(points):
        return _of(key, label, [_Sentence(f"No curve is drawn: {_why_not(points)}.")])
    first, last = points[0], points[-1]
    sentences = [
        _Sentence(
            f"{METRIC} goes from {_value(first)} over {counted(count_of(first, 'entries'), 'entry')} of "
            f"{counted(count_of(first, 'taps'), 'tap')} to {_value(last)} over "
            f"{counted(count_of(last, 'entries'), 'entry')} of {counted(count_of(last, 'taps'), 'tap')}.",
            figure_id("falloff", last),
        )
    ]
    if _weighed(points).note:
        sentences.append(_Sentence(_weighed(points).note))
    mine = [
        row
        for row in rows["falloff_summaries"]
        if _key_of(row) == key and (row["metric"] == METRIC or row["summary"] == "floor crossing")
    ]
    mine.sort(key=lambda row: (SUMMARIES.index(text_of(row, "summary")), row["metric"] != METRIC, row["metric"]))
    unknown = next((text_of(row, "reason") for row in mine if row["summary"] == "loss per doubling"), "")
    if unknown:
        why_not = f"No model is fitted, so neither what a doubling costs nor any size is told: {unknown}."
        sentences.append(_Sentence(why_not, figure_id("falloff_summaries", mine[0])))
    sentences += [
        _Sentence(_summary(row, count_of(last, "entries")), figure_id("falloff_summaries", row))
        for row in mine
        if not unknown
    ]
    fits = [row for row in rows["falloff_fits"] if _key_of(row) == key and row["metric"] == METRIC]
    sentences += [
        _Sentence(
            f"Of three models the {text_of(row, 'model')} one fits best: on {_largest(count_of(row, 'held_out'))}, "
            f"held out, it is off by {number_of(row, 'held_out_error'):.3f}.",
            figure_id("falloff_fits", row),
        )
        for row in fits
        if row["chosen"] and row["held_out_error"] is not None
    ]
    if _drawable(by_name):
        sentences.append(_Sentence(_gap(by_name), figure_id("falloff", by_name[-1])))
    sentences += _answering(abstaining.get(key, {}))
    sentences += [_Sentence(said) for said in _left_out(last, headline.get((key.golden_set, key.engine)))]
    return _of(key, label, sentences)


def _each_once(said: Iterable[Said]) -> tuple[Said, ...]:
    """Say once what the curves of a set under an engine have in common: all orders begin and end alike."""
    of: dict[tuple[str, str], list[Said]] = defaultdict(list)
    for each in said:
        of[each.golden_set, each.engine].append(each)
    found: list[Said] = []
    for same in of.values():
        common = set.intersection(*({*each.sentences} for each in same)) if len(same) > 1 else set()
        if common:
            orders = "; ".join(each.kind for each in same)
            found.append(_only(same[0]._replace(kind=f"in each of these orders: {orders}"), common))
            same = [_only(each, {*each.sentences} - common) for each in same]
        found += [each for each in same if each.sentences]
    return tuple(found)


def _only(said: Said, kept: Container[str]) -> Said:
    told = [(text, id_) for text, id_ in zip(said.sentences, said.ids, strict=True) if text in kept]
    return said._replace(sentences=tuple(text for text, _ in told), ids=tuple(id_ for _, id_ in told))


class _Sentence(NamedTuple):
    """A sentence, and the id of the figure that it tells."""

    text: str
    id: str = ""


def _of(key: _Key, label: str, sentences: Sequence[_Sentence]) -> Said:
    texts, ids = zip(*sentences, strict=True)
    return Said(key.golden_set, key.engine, KINDS[key.kind], label, texts, ids)


def _key_of(row: Row) -> _Key:
    return _Key(*(text_of(row, name) for name in ("golden_set", "engine", "order_kind", "grading")))


SUMMARIES = ("loss per doubling", "half size", "floor crossing", "engine crossing")


def _summary(row: Row, largest: int) -> str:
    value, low, high = (number_of(row, name) for name in ("value", "low", "high"))
    summary, against = text_of(row, "summary"), text_of(row, "against")
    if summary == "loss per doubling":
        if value is None:
            return f"What a doubling costs is not known: {text_of(row, 'reason')}."
        if abs(value) < 0.0005:
            return f"It neither loses nor gains with a doubling (a loss of {_end(low)} to {_end(high)})."
        verb = "loses" if value > 0 else "gains"
        ends = sorted([abs(low), abs(high)]) if low is not None and high is not None and low * high > 0 else None
        said = f"{ends[0]:.3f} to {ends[1]:.3f}" if ends else f"a loss of {_end(low)} to {_end(high)}"
        return f"It {verb} {abs(value):.3f} with every doubling ({said})."
    what = "It is half of what it was at the start"
    if summary == "engine crossing":
        what = f"It crosses the curve of {against}"
    elif summary == "floor crossing":
        what = f"{text_of(row, 'metric')} falls below its floor of {_floor(against)}"
        if text_of(row, "reason") == BELOW:
            return f"{text_of(row, 'metric')} is below its floor of {_floor(against)} at the smallest size already."
    if value is None:
        reached = number_of(row, "reached")
        draws = "" if reached is None else f"; {reached:.0%} of the draws reach it"
        return f"{what}: {text_of(row, 'reason') or 'not reached'}{draws}."
    beyond = ", more than there are, if the model goes on to hold" if value > largest else ""
    return f"{what} at about {value:,.0f} entries ({_size(low)} to {_size(high)}){beyond}."


def _floor(against: str) -> str:
    """Return a floor with two places, where it has no more."""
    short = f"{float(against):.2f}"
    return short if float(short) == float(against) else against


def _end(value: float | None) -> str:
    return "not known" if value is None else f"{value:.3f}".replace("-0.000", "0.000")


def _size(value: float | None) -> str:
    return "not reached" if value is None else f"{value:,.0f}"


def _gap(by_name: Sequence[Row]) -> str:
    first, last = (number_of(row, "gap") for row in (by_name[0], by_name[-1]))
    if first is None or last is None:
        return "By name and as pinned cannot be compared: no question has both."
    return (
        f"By name it ends at {_value(by_name[-1])}; over the questions that have both, by name minus as pinned is "
        f"{first:+.3f} at the start and {last:+.3f} at the end."
    )


def _largest(sizes: int) -> str:
    return "the largest size" if sizes == 1 else f"the {sizes} largest sizes"


def _answering(measures: Mapping[str, Sequence[Row]]) -> Iterable[_Sentence]:
    """Say what answering is worth at both ends, and how often it answers what has no answer."""
    if not measures:
        return
    if not _drawable(measures["truthfulness"]):
        least = min(measures["truthfulness"], key=lambda row: count_of(row, "n"))
        yield _Sentence(
            f"What answering is worth is not drawn: {counted(count_of(least, 'n'), 'independent first answer')} "
            f"{'is' if least['n'] == 1 else 'are'} judged, and fewer than 20 support no curve.",
            figure_id("falloff", least),
        )
    else:
        fitted = "With a threshold fitted at each size truthfulness"
        yield _goes(fitted, measures["truthfulness"], "; always abstaining is 0 throughout")
        yield _goes("Always answering, it", measures["truthfulness_always_answer"])
    rate = measures["false_answer_rate"]
    if rate[-1]["value"] is None:
        unknown = f"How often it answers what has no answer is not known: {text_of(rate[-1], 'reason')}."
        yield _Sentence(unknown, figure_id("falloff", rate[-1]))
    else:
        weak = f", {rate[-1]['label']}" if rate[-1]["label"] != "ok" else ""
        yield _goes("The share of questions without an answer that it answers", rate, f" (n {rate[-1]['n']}{weak})")
        yield _goes("The share of answerable questions that it abstains from", measures["false_abstention_rate"])


def _goes(what: str, rows: Sequence[Row], more: str = "") -> _Sentence:
    said = f"{what} goes from {_value(rows[0])} to {_value(rows[-1])}{more}."
    return _Sentence(said, figure_id("falloff", rows[-1]))


def _left_out(last: Row, headline: float | None) -> list[str]:
    absent, value = count_of(last, "n_absent"), number_of(last, "value")
    if absent:
        end = "" if headline is None else f", so the curve does not end at the headline, {headline:.3f}"
        verb = "is" if absent == 1 else "are"
        return [
            f"{counted(absent, 'question')} {verb} left out of every point, since what is asked for is not in the "
            f"smallest subset{end}."
        ]
    if headline is not None and value is not None and abs(headline - value) < 1e-9:
        return ["Its end is the headline of the run."]
    return []


def _notes(notes: Sequence[Row], curves: Mapping[_Key, Sequence[Row]]) -> list[str]:
    """Say what is not there, and why; what holds of many orders is said once."""
    found: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for row in notes:
        what = text_of(row, "what").partition(",")[0]
        found[text_of(row, "golden_set"), what, "" if what == "curve" else text_of(row, "engine")].append(row)
    sentences = []
    for (golden_set, what, _), rows in sorted(found.items()):
        about = "" if rows[0]["engine"] == "*" else f"{text_of(rows[0], 'engine')}: "
        repeated = _repeated(rows, curves)
        if repeated:
            sentences.append(f"Golden set {golden_set}: {repeated}.")
        elif what == "curve":
            for row in rows:
                of = "" if row["engine"] == "*" else f" of {text_of(row, 'engine')}"
                sentences.append(f"Golden set {golden_set}: no curve{of} is drawn: {text_of(row, 'reason')}.")
        elif len({(row["what"], row["reason"]) for row in rows}) > 1:
            first = text_of(rows[0], "reason")
            sentences.append(f"Golden set {golden_set}: {len(rows)} times «{what}» is not drawn: {about}{first}, ...")
        else:
            sentences.append(
                f"Golden set {golden_set}: {about}{text_of(rows[0], 'what')}: {text_of(rows[0], 'reason')}."
            )
    more = len(sentences) - MOST_NOTES
    return [*sentences[:MOST_NOTES], *([f"And {more:,} more, in falloff_notes.parquet."] if more > 0 else [])]


def _repeated(rows: Sequence[Row], curves: Mapping[_Key, Sequence[Row]]) -> str:
    """Say how many orders there are, where all of ``rows`` are orders that equal an earlier one; else nothing."""
    about = rows[0]["golden_set"], rows[0]["order_kind"]
    points = next((of for key, of in curves.items() if (key.golden_set, key.kind) == about), [])
    if not points or not all(text_of(row, "reason").startswith(SAME_ORDER) for row in rows):
        return ""
    unit = "entries" if rows[0]["order_kind"] == "entries" else "taps"
    one = {"entries": "entry", "taps": "tap"}[unit]
    first, last = points[0], points[-1]
    drawn, joining = count_of(last, "orders"), count_of(last, unit) - count_of(first, unit)
    asked = drawn + len(rows)
    if joining == 1:
        return f"one {one} joins, so there is one order; it is drawn once ({asked} were asked for)"
    if drawn == math.factorial(min(joining, 20)):
        exist = f"{drawn} different orders of the {joining:,} {unit} that join exist"
        return f"{exist}; all are drawn ({asked} were asked for)"
    return f"of {asked} orders of the {joining:,} {unit} that join {drawn} are different, and drawn"


def _value(row: Row) -> str:
    value = number_of(row, "value")
    return NOTHING if value is None else f"{value:.3f}"


class _Weighed(NamedTuple):
    """What is said where words do not weigh what an index of the subset would make of them; else nothing."""

    title: str
    note: str

    def beside(self, note: str) -> str:
        """Return what stands beside a chart."""
        return f"{note} {self.note}".strip()


def _weighed(rows: Iterable[Row]) -> _Weighed:
    if not any(row.get("statistics") == "global" for row in rows):
        return _Weighed("", "")
    return _Weighed(
        ", with the weights of the whole corpus",
        "Words weigh in each subset what they weigh in the whole corpus: what joins outranks, but changes no weight.",
    )


# --- drawn ------------------------------------------------------------------------------------------------------------


def _figures(curves: Mapping[_Key, Sequence[Row]], taken: Sequence[Row], hues: Sequence[str]) -> Iterable[Figure]:
    drawn = {kind: {key: rows for key, rows in curves.items() if key.kind == kind} for kind in KINDS}
    # The curve of a fixed order is drawn by itself where there are no drawn ones; then no other order has a band.
    alone = [kind for kind in ("first_seen", "size", "confuser") if not drawn["random"]]
    for kind in ("random", *alone, "entries"):
        name = "falloff" if kind == "random" else f"falloff-{kind.replace('_', '-')}"
        if drawn[kind]:
            as_pinned = {key: rows for key, rows in drawn[kind].items() if key.grading == "row"}
            yield _band_figure(name, kind, as_pinned, hues)
    if drawn["random"]:
        yield _grading_figure(drawn["random"], hues)
    others = {key: rows for key, rows in curves.items() if key.kind not in ("entries",) and key.grading == "row"}
    if len({key.kind for key in others}) > 1:
        yield _kinds_figure(others)
    if taken:
        yield _taken_figure(taken)


def _band_figure(name: str, kind: str, curves: Mapping[_Key, Sequence[Row]], hues: Sequence[str]) -> Figure:
    several = len({key.golden_set for key in curves}) > 1
    points = []
    for key, rows in curves.items():
        for band, meaning in BANDS.items() if kind in ("random", "entries") else [("query", BANDS["query"])]:
            panel = (f"{key.golden_set} · " if several else "") + meaning
            points += [_point(panel, key.engine, row, band) for row in rows]
    panels = [*dict.fromkeys(point.panel for point in points)]
    points.sort(key=lambda point: panels.index(point.panel))
    weighed = _weighed(row for rows in curves.values() for row in rows)
    regime = (
        "Single entries join, drawn uniformly: another regime than whole taps, and no real catalogue grows so. "
        if kind == "entries"
        else "Whole taps join those that hold the answers. "
    )
    return figure_of(
        name,
        f"How {METRIC} falls as the catalogue grows{TITLES[kind]}{weighed.title}",
        weighed.beside(
            f"{regime}Dots are as pinned; equal steps double the size. There is one such order, so the band is over "
            "other questions of the same kind alone, 2.5th to 97.5th percentile."
            if kind not in ("random", "entries")
            else f"{regime}Dots are means over the orders at the median size, graded as pinned; equal steps double the "
            "size. The curve stands twice, since its two bands answer two questions: what another order of the same "
            "catalogue would have shown, and what other questions of the same kind. The first has no width at the "
            "ends, where every order holds the same entries. 2.5th to 97.5th percentile."
        ),
        falling(points, "entries in the catalogue", METRIC, ticks_of([point.x for point in points]), hues),
        _CURVE_HEAD,
        [row for key, rows in curves.items() for row in _curve_rows(key, rows)],
    )


def _grading_figure(curves: Mapping[_Key, Sequence[Row]], hues: Sequence[str]) -> Figure:
    weighed = _weighed(row for rows in curves.values() for row in rows)
    points = [
        _point(key.golden_set, f"{key.engine}, {GRADINGS[key.grading]}", row, None)._replace(
            hue=key.engine, hollow=key.grading == "name"
        )
        for key, rows in curves.items()
        for row in rows
    ]
    return figure_of(
        "falloff-gradings",
        "The same curve, graded by name and as pinned" + weighed.title,
        weighed.beside(
            "The more contents carry a name, the looser is grading by it, and a catalogue that grows gives names to "
            "more contents. Where the two curves part, a score by name says less and less. Lines and dots are full as "
            "pinned, dashed and hollow by name."
        ),
        falling(points, "entries in the catalogue", METRIC, ticks_of([point.x for point in points]), hues),
        ("golden set", "engine", "graded", "entries", "value", "gap", "judged@10", "id"),
        [
            (
                *(key.golden_set, key.engine, GRADINGS[key.grading], f"{count_of(row, 'entries'):,}", _value(row)),
                *(_shown(row, "gap"), _shown(row, "judged_at_k"), figure_id("falloff", row)),
            )
            for key, rows in curves.items()
            for row in rows
        ],
    )


def _kinds_figure(curves: Mapping[_Key, Sequence[Row]]) -> Figure:
    weighed = _weighed(row for rows in curves.values() for row in rows)
    points = [
        _point(f"{key.golden_set} · {key.engine}", KINDS[key.kind], row, None)
        for key, rows in sorted(curves.items(), key=lambda one: (one[0].golden_set, one[0].engine))
        for row in rows
    ]
    return figure_of(
        "falloff-orders",
        "The same taps in other orders" + weighed.title,
        weighed.beside(
            "All curves begin and end alike; between, the order decides. The date of a tap is that of its pinned "
            "commit. The worst confuser is the tap of which most classes outrank the answers in the whole corpus."
        ),
        falling(points, "entries in the catalogue", METRIC, ticks_of([point.x for point in points]), [*KINDS.values()]),
        _CURVE_HEAD,
        [row for key, rows in curves.items() for row in _curve_rows(key, rows)],
    )


ANSWERING = {"truthfulness": "threshold fitted at each size", "truthfulness_always_answer": "always answering"}
"""What is drawn of abstaining, and how the chart calls it."""


def _abstaining_figure(abstaining: Mapping[_Key, Mapping[str, Sequence[Row]]]) -> Iterable[Figure]:
    """Draw what answering is worth over drawn orders of taps, where enough answers are judged."""
    drawn = {
        key: measures
        for key, measures in abstaining.items()
        if key.kind == "random" and all(_drawable(measures[metric]) for metric in ANSWERING)
    }
    if not drawn:
        return
    weighed = _weighed(row for measures in drawn.values() for row in measures["truthfulness"])
    points = [
        _point(f"{key.golden_set} · {key.engine}", called, row, "query", metric)
        for key, measures in drawn.items()
        for metric, called in ANSWERING.items()
        for row in measures[metric]
    ]
    yield figure_of(
        "falloff-abstaining",
        "What answering is worth as the catalogue grows" + weighed.title,
        weighed.beside(
            "Truthfulness counts 1 for a first class judged 3, 0.5 for one judged 2, -1 for a worse one and for any "
            "answer to what has none, 0 for abstaining, and leaves out what nobody judged: always abstaining is the "
            "line at 0. The threshold on the score is fitted anew at each size, on the questions of the split tuning "
            "alone. Bands are over other questions of the same kind; the table has the error rates and AUROC, and "
            "falloff.parquet the bands over orders too."
        ),
        falling(
            points,
            "entries in the catalogue",
            "truthfulness",
            ticks_of([point.x for point in points]),
            [*ANSWERING.values()],
            least=-1,
        ),
        ("golden set", "engine", "entries", "measure", "value", "over orders", "over questions", "n", "label", "id"),
        [
            (
                *(key.golden_set, key.engine, f"{count_of(row, 'entries'):,}", metric.replace("_", " "), _value(row)),
                *(_ends(row, band) for band in BANDS),
                *(str(row["n"]), text_of(row, "label"), figure_id("falloff", row)),
            )
            for key, measures in drawn.items()
            for metric in SHOWN_OF_ABSTAINING
            for row in measures[metric]
        ],
    )


SHOWN_OF_ABSTAINING = (*ANSWERING, "false_answer_rate", "false_abstention_rate", "auroc")


def _taken_figure(taken: Sequence[Row]) -> Figure:
    weighed = _weighed(taken)
    whole = [row for row in taken if row["class_id"] == "*"]
    of: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for row in whole:
        of[text_of(row, "golden_set"), text_of(row, "engine"), text_of(row, "tap")].append(row)
    sums = {key: sum(number_of(row, "share") or 0.0 for row in rows) for key, rows in of.items()}
    several = Counter(key[:2] for key in sums)
    order = sorted(sums, key=lambda key: (key[:2], -sums[key], key[2].encode()))
    takers = [key for key in order if sums[key] > 0.005]
    parts: list[Bar] = []
    for pair in several:
        for key in [key for key in takers if key[:2] == pair][:MOST_TAKERS]:
            names = ", ".join(text_of(row, "query_id") for row in of[key] if (number_of(row, "share") or 0.0) > 0.005)
            panel = " · ".join(pair) if len(several) > 1 else ""
            parts.append(
                Bar(panel, key[2], "questions taken", sums[key], f"{sums[key]:.1f}", f"{key[2]} took: {names}")
            )
    return figure_of(
        "attribution",
        "Which tap took how many questions" + weighed.title,
        weighed.beside(
            f"{_lost_in_words(whole, len(several))} answered among the taps that hold the answers, and no more in the "
            f"whole corpus. A tap's part of a question is how often its joining lost it, over "
            f"{count_of(whole[0], 'orders')} orders; the parts of a question add up to 1. A tap that brings back what "
            f"others took can have a part below 0, which is not drawn{_below(sums)}."
            + left_out(len(takers) - len(parts), "attribution")
        ),
        bars(parts, "questions taken") if parts else None,
        ("golden set", "engine", "tap", "questions taken", "which, and its part"),
        [(*key, f"{sums[key]:.2f}", "; ".join(_parts(of[key]))) for key in order[:MOST_LOST]],
    )


def _below(sums: Mapping[tuple[str, str, str], float]) -> str:
    """Name the taps that brought back more than they took."""
    below = [(key[2], value) for key, value in sorted(sums.items(), key=lambda one: one[1]) if value < -0.005]
    more = f" and {len(below) - MOST_NOTES} more" if len(below) > MOST_NOTES else ""
    return (": " if below else "") + ", ".join(f"{tap} {value:.2f}" for tap, value in below[:MOST_NOTES]) + more


def _lost_in_words(whole: Sequence[Row], panels: int) -> str:
    lost = len({(row["golden_set"], row["engine"], row["query_id"]) for row in whole})
    if panels > 1:
        return f"{lost:,} times, over all sets and engines, a question is"
    return f"{counted(lost, 'question')} {'is' if lost == 1 else 'are'}"


def _parts(rows: Sequence[Row]) -> list[str]:
    told = sorted(rows, key=lambda row: -(number_of(row, "share") or 0.0))
    return [f"{text_of(row, 'query_id')} {number_of(row, 'share'):+.2f}" for row in told if row["share"]]


def _lost(taken: Sequence[Row], questions: Mapping[str, str]) -> list[Lost]:
    found: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    best: dict[tuple[str, str, str, str], Row] = {}
    for row in taken:
        key = (text_of(row, "golden_set"), text_of(row, "engine"), text_of(row, "query_id"))
        if row["class_id"] == "*":
            found[key].append(row)
        else:
            at = (*key, text_of(row, "tap"))
            if at not in best or count_of(row, "rank") < count_of(best[at], "rank"):
                best[at] = row
    return [
        Lost(
            *key,
            questions.get(key[2], ""),
            tuple(
                Taker(
                    text_of(row, "tap"),
                    number_of(row, "share") or 0.0,
                    "found again once it alone is left out" if row["recovered_without"] else "",
                    _first(best.get((*key, text_of(row, "tap")))),
                )
                for row in sorted(rows, key=lambda row: (-(number_of(row, "share") or 0.0), text_of(row, "tap")))
                if (number_of(row, "share") or 0.0) > 0.005 or row["recovered_without"]
            ),
        )
        for key, rows in sorted(found.items())
    ]


def _first(row: Row | None) -> str:
    return "" if row is None else f"{text_of(row, 'slug')} at rank {count_of(row, 'rank')}"


def _point(panel: str, series: str, row: Row, band: str | None, metric: str = METRIC) -> Point:
    value = number_of(row, "value")
    assert value is not None
    low, high = (None, None) if band is None else (number_of(row, f"{band}_{end}") for end in ("low", "high"))
    spread = "" if low is None or high is None else f", {between(f'{low:.3f}', f'{high:.3f}')}"
    entries = count_of(row, "entries")
    tip = f"{series}: {metric} {value:.3f}{spread} over {counted(entries, 'entry')}, n {row['n']}"
    return Point(panel, series, max(entries, 1), value, low, high, tip)


_CURVE_HEAD = (
    "golden set", "engine", "order", "entries", "classes", "taps", METRIC, "over orders", "over questions", "n",
    "judged@10", "id",
)  # fmt: skip


def _curve_rows(key: _Key, rows: Sequence[Row]) -> Iterable[tuple[str, ...]]:
    for row in rows:
        yield (
            key.golden_set,
            key.engine,
            KINDS[key.kind],
            *(f"{count_of(row, name):,}" for name in ("entries", "classes", "taps")),
            _value(row),
            *(_ends(row, band) for band in BANDS),
            str(row["n"]),
            _shown(row, "judged_at_k"),
            figure_id("falloff", row),
        )


def _ends(row: Row, band: str) -> str:
    low, high = (number_of(row, f"{band}_{end}") for end in ("low", "high"))
    return NOTHING if low is None or high is None else between(f"{low:.3f}", f"{high:.3f}")


def _shown(row: Row, column: str) -> str:
    value = number_of(row, column)
    return NOTHING if value is None else f"{value:.3f}"


def ticks_of(sizes: Sequence[int]) -> list[int]:
    """Return round numbers for a log2 axis: doublings of 125 where three of them fit, else even steps."""
    low, high = min(sizes), max(sizes)
    doublings = [tick for power in range(40) if low <= (tick := 125 * 2**power) <= high * ROOM]
    if len(doublings) >= 3:
        return doublings
    for step in (step * 10**power for power in range(12) for step in (1, 2, 5)):
        ticks = [tick for tick in range(-(-low // step) * step, high + 1, step) if tick]
        if len(ticks) <= 6:
            return ticks or [low, high]
    return [low, high]
