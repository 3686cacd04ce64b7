"""The charts of the page: which rows of a run each is drawn from, and what stands beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from pipeline.reports.charts import Bar, Drawing, Estimate, Point, Size, Spec, bars, curves, dots, drawn
from pipeline.reports.duplication import Duplication
from pipeline.reports.reading import (
    DEPTHS,
    GRADINGS,
    HEADLINE,
    NOTHING,
    Feed,
    Row,
    between,
    cell_of,
    count_of,
    counted,
    left_out,
    number_of,
    text_of,
)

FACETS = ("kind", "mode", "question_type", "popularity", "dynamism", "split", "language", "target_tap")
RANK_BANDS = ((1, 1), (2, 3), (4, 10), (11, 100))
KINDS = {"skills": "skill", "rules": "rule", "workflows": "workflow"}
MOST_BARS = 40
MOST_FACET_ROWS = 60


class Figure(NamedTuple):
    """A chart with what stands beside it."""

    name: str
    title: str
    note: str
    drawing: Drawing | None
    """None where there is nothing to draw; the note says why."""
    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    """The numbers of the chart as a table, for those who cannot see it."""


def figures(feed: Feed, duplication: Duplication) -> list[Figure]:
    """Draw all charts of a run, in the order of the page."""
    return [
        _headline_figure(feed),
        _facet_figure(feed),
        _depth_figure(feed),
        _rank_figure(feed),
        _duplication_figure(feed, duplication),
        _composition_figure(feed),
    ]


def figure_of(
    name: str,
    title: str,
    note: str,
    make: Callable[[Size], Spec] | None,
    head: tuple[str, ...],
    rows: Sequence[tuple[str, ...]],
) -> Figure:
    """Draw what ``make`` specifies, with its name, its title, what there is to say about it, and its numbers."""
    drawing = None if make is None else drawn(make, f"{title}. {note} The same numbers stand in the table beside it.")
    return Figure(name, title, note, drawing, head, rows)


def _headline_figure(feed: Feed) -> Figure:
    estimates, rows = [], []
    for golden_set, engine in feed.evaluated:
        for grading in feed.gradings:
            for metric in HEADLINE:
                row = feed.metric(golden_set, engine, grading, metric)
                if row is not None:
                    series = f"{engine}, {GRADINGS[grading]}"
                    estimate = _estimate(row, golden_set, metric, series)
                    estimates.append(estimate._replace(hue=engine, hollow=grading == "name"))
                    rows.append((golden_set, engine, GRADINGS[grading], metric, *_figures_of(row)))
    return figure_of(
        "headline",
        "Headline measures",
        f"Dots are means over questions, filled {GRADINGS['row']}, hollow {GRADINGS['name']}; lines are their 95% "
        f"intervals, n clusters of related questions. {_CONFIDENCE}"
        if estimates
        else "No measure was computed.",
        dots(estimates, "mean over questions", engines_of(feed)) if estimates else None,
        ("golden set", "engine", "graded", "measure", *_MEAN_HEAD),
        rows,
    )


def _facet_figure(feed: Feed) -> Figure:
    found = [
        row
        for row in feed.metrics
        if row["metric"] == "recall@10" and row["grading"] == "row" and row["facet"] in _telling_facets(feed)
    ]
    found.sort(key=lambda row: (text_of(row, "golden_set"), FACETS.index(text_of(row, "facet"))))
    kept = found[:MOST_FACET_ROWS]
    several = len({row["golden_set"] for row in kept}) > 1
    estimates = [
        _estimate(
            row,
            (f"{row['golden_set']} · " if several else "") + text_of(row, "facet").replace("_", " "),
            text_of(row, "facet_value"),
            text_of(row, "engine"),
        )
        for row in kept
    ]
    return figure_of(
        "facets",
        "Recall at ten, by kind of question",
        "Share of the right answers that stand in the first ten, for questions of each kind and way of grading. "
        + _CONFIDENCE
        + left_out(len(found) - len(kept), "metrics")
        if estimates
        else "No facet was computed.",
        dots(estimates, "recall@10", engines_of(feed)) if estimates else None,
        ("golden set", "engine", "facet", "value of the facet", *_MEAN_HEAD),
        [
            (*(text_of(row, column) for column in ("golden_set", "engine", "facet", "facet_value")), *_figures_of(row))
            for row in kept
        ],
    )


def _telling_facets(feed: Feed) -> set[str]:
    """Return the facets that divide the items: kind and mode always, others where they have more than one value."""
    values: dict[str, set[str]] = {}
    for row in feed.metrics:
        values.setdefault(text_of(row, "facet"), set()).add(text_of(row, "facet_value"))
    return {name for name in FACETS if len(values.get(name, ())) > (0 if name in ("kind", "mode") else 1)}


def _depth_figure(feed: Feed) -> Figure:
    points, rows = [], []
    for golden_set, engine in feed.evaluated:
        for k in DEPTHS:
            row = feed.metric(golden_set, engine, "row", f"recall@{k}")
            if row is None:
                continue
            rows.append((golden_set, engine, str(k), *_figures_of(row)))
            value = number_of(row, "value")
            if value is not None:
                low, high = number_of(row, "ci_low"), number_of(row, "ci_high")
                tip, weak, thin = f"{engine}: {_said(row)}", row["label"] in _WEAK, row["label"] == "low confidence"
                points.append(Point(golden_set, engine, k, value, low, high, tip, weak, thin))
    return figure_of(
        "depth",
        "How deep one has to read",
        "Share of the right answers among the first k hits, k on a logarithmic scale. " + _CONFIDENCE
        if points
        else "No recall was computed.",
        curves(points, "k, hits read", "recall@k", DEPTHS, engines_of(feed)) if points else None,
        ("golden set", "engine", "k", *_MEAN_HEAD),
        rows,
    )


def _rank_figure(feed: Feed) -> Figure:
    parts, rows = [], []
    for golden_set, engine in feed.evaluated:
        ranks = [item["first_relevant_rank"] for item in feed.items_of(golden_set, engine) if item["scored"]]
        counts = {
            between(low, high): sum(isinstance(rank, int) and low <= rank <= high for rank in ranks)
            for low, high in RANK_BANDS
        }
        counts["not found"] = len(ranks) - sum(counts.values())
        for band, count in counts.items() if ranks else ():
            share = f"{count / len(ranks):.0%}"
            tip = f"{engine}, first right answer at rank {band}: {count} of {len(ranks)} questions"
            parts.append(Bar(golden_set, band, engine, count, f"{count:,} ({share})", tip))
            rows.append((golden_set, engine, band, f"{count:,}", share))
    return figure_of(
        "ranks",
        "Where the first right answer stands",
        "Questions by the rank of their first right answer, after mirrors have left the ranking."
        if parts
        else "No question was scored.",
        bars(parts, "questions", stacked=False, hues=engines_of(feed)) if parts else None,
        ("golden set", "engine", "rank", "questions", "share"),
        rows,
    )


class Repeated(NamedTuple):
    """How many entries of a tap have content that stands in another entry too."""

    tap: str
    entries: int
    here: int
    """In the same tap, and in no other."""
    elsewhere: int
    """In another tap, whatever else of it the same tap holds."""
    nearly: int
    """In no other entry, but nearly in one."""

    @property
    def share(self) -> float:
        """The share of the tap's entries that any of these holds of."""
        return (self.here + self.elsewhere + self.nearly) / self.entries


def repeated(feed: Feed, nearly: Mapping[str, int]) -> list[Repeated]:
    """Count for each tap, in the order of their names, what stands elsewhere too. Taps without entries are left out.

    It is the same in both directions: which entry was there first is not known, and no tap is called the copy.

    Args:
        feed: the run.
        nearly: by tap, the entries whose content stands nowhere else, but nearly does.
    """
    taps_of: dict[str, Counter[str]] = {}
    for class_id, tap in zip(feed.entries["class_id"].to_pylist(), feed.entries["tap"].to_pylist(), strict=True):
        taps_of.setdefault(class_id, Counter())[tap] += 1
    here, elsewhere = Counter[str](), Counter[str]()
    for counts in taps_of.values():
        for tap, entries in counts.items():
            if len(counts) > 1:
                elsewhere[tap] += entries
            elif entries > 1:
                here[tap] += entries
    return [
        Repeated(name, entries, here[name], elsewhere[name], nearly.get(name, 0))
        for tap in feed.taps
        for name, entries in [(text_of(tap, "tap"), count_of(tap, "entries"))]
        if entries
    ]


def _duplication_figure(feed: Feed, duplication: Duplication) -> Figure:
    found = repeated(feed, duplication.nearly_elsewhere())
    copied = sorted((tap for tap in found if tap.share), key=lambda tap: (-tap.share, tap.tap))
    kept = copied[:MOST_BARS]
    parts, rows = [], []
    for tap in kept:
        counts = {
            "in the same tap only": tap.here,
            "in another tap": tap.elsewhere,
            "nearly, in another entry": tap.nearly,
        }
        for part, entries in counts.items():
            tip = f"{tap.tap}: content of {entries:,} of {tap.entries:,} entries stands {part} too"
            parts.append(Bar("", tap.tap, part, entries / tap.entries, f"{tap.share:.0%} of {tap.entries:,}", tip))
        rows.append(
            (tap.tap, f"{tap.entries:,}", f"{tap.here:,}", f"{tap.elsewhere:,}", f"{tap.nearly:,}", f"{tap.share:.1%}")
        )
    without = len(found) - len(copied)
    return figure_of(
        "duplication",
        "Duplication, by tap",
        "Share of a tap's entries whose content stands in another entry too: in the same tap only, in another tap, or "
        "nearly, in a cluster of copies. Counted from both sides, for which was first is not known. "
        + (f"{counted(without, 'tap')} without any {'is' if without == 1 else 'are'} not drawn." if without else "")
        + left_out(len(copied) - len(kept), "entries")
        if parts
        else "No entry repeats another.",
        bars(parts, "share of the tap's entries", share=True) if parts else None,
        ("tap", "entries", "in the same tap only", "in another tap", "nearly", "share"),
        rows,
    )


def _composition_figure(feed: Feed) -> Figure:
    taps = sorted(feed.taps, key=lambda tap: (-count_of(tap, "entries"), text_of(tap, "tap")))
    kept = taps[:MOST_BARS]
    parts = [
        Bar(
            "",
            text_of(tap, "tap"),
            kind,
            count_of(tap, column),
            f"{count_of(tap, 'entries'):,}",
            f"{tap['tap']}: {counted(count_of(tap, column), kind)} of {counted(count_of(tap, 'entries'), 'entry')}",
        )
        for tap in kept
        for column, kind in KINDS.items()
    ]
    return figure_of(
        "composition",
        "What the corpus is made of",
        "Entries of each tap, by kind." + left_out(len(taps) - len(kept), "taps") if parts else "There is no tap.",
        bars(parts, "entries") if parts else None,
        ("tap", *KINDS, "entries"),
        [(text_of(tap, "tap"), *(f"{count_of(tap, column):,}" for column in (*KINDS, "entries"))) for tap in kept],
    )


def _estimate(row: Row, panel: str, name: str, series: str) -> Estimate:
    return Estimate(
        panel=panel,
        row=name,
        series=series,
        value=number_of(row, "value"),
        low=number_of(row, "ci_low"),
        high=number_of(row, "ci_high"),
        n=count_of(row, "n"),
        weak=row["label"] in _WEAK,
        tip=f"{name}, {series}: {_said(row)}",
        thin=row["label"] == "low confidence",
    )


_WEAK = ("insufficient items", "no items")
_CONFIDENCE = "A dashed interval: n under 50, low confidence. Grey: n under 20, no conclusion."


def engines_of(feed: Feed) -> list[str]:
    """Return all engines that were scored: each has one colour and one shape in every chart."""
    return sorted({engine for _, engine in feed.evaluated})


def _said(row: Row) -> str:
    cell = cell_of(row)
    between = f" ({cell.interval})" if cell.interval else ""
    why = f", {cell.reason}" if cell.reason else ""
    return f"{row['metric']} {cell.value}{between}, n {cell.n}, {cell.label}{why}, id {cell.id}"


def _figures_of(row: Row) -> tuple[str, ...]:
    """Return the cells that describe a mean in the table beside a chart, as named in ``_MEAN_HEAD``."""
    cell = cell_of(row)
    return (cell.value, cell.interval or NOTHING, str(cell.n), cell.reason or cell.label, cell.id)


_MEAN_HEAD = ("value", "95% interval", "n", "label", "id")
