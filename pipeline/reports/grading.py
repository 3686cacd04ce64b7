"""The section of the page on what hangs on the way of grading, and on what duplicates cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pipeline.reports.reading import NOTHING, Feed, Row, count_of, counted, number_of, rows_of, text_of

VIEWS = ("by_name", "by_name_as_one", "all_pinned", "decided")
EFFECTS = ("denominator_effect", "identity_effect", "judgment_effect", "shift")
MOST_TAPS = 5
MOST_ROWS = 30
CUT = 10
"""The rank of which it is said whether ties across it could move recall."""


class Differing(NamedTuple):
    """A row that ought to be the same by name and pinned, and is not."""

    query_id: str
    question: str
    reason: str


class Tax(NamedTuple):
    """What duplicates cost a measure."""

    metric: str
    whole: str
    taps: list[tuple[str, str]]
    """The taps that cost most of it, each with its share."""
    others: int
    """Taps with a smaller share that is not 0.000 either."""
    negligible: int
    """Taps whose share is above 0 and rounds to 0.000."""


class Trust(NamedTuple):
    """How one set under one engine depends on its grading."""

    golden_set: str
    engine: str
    state: str
    """How its rows are pinned, in words."""
    credited: str
    reason: str
    """Why there is no measure; empty where there are."""
    rows: list[tuple[str, list[str]]]
    """Each measure: its value in each view, then each effect."""
    tax: list[Tax]
    lookups: int
    """Rows that ought to be the same by name and pinned."""
    differing: list[Differing]
    more_differing: int
    notes: str
    """Ties, and copies in another language, in words."""


def trust(feed: Feed) -> list[Trust]:
    """Return the section's parts, one a golden set and engine."""
    return [_trust(feed, golden_set, engine) for golden_set, engine in feed.evaluated]


def _trust(feed: Feed, golden_set: str, engine: str) -> Trust:
    items = feed.items_of(golden_set, engine)
    studied = [row for row in feed.sensitivity if _is_of(row, golden_set, engine)]
    taxes = [row for row in feed.duplicate_tax if _is_of(row, golden_set, engine)]
    lookups = [item for item in items if item["lookup_equal"] is not None]
    differing = [
        Differing(*(text_of(item, column) for column in ("query_id", "question", "lookup_reason")))
        for item in lookups
        if not item["lookup_equal"]
    ]
    return Trust(
        golden_set=golden_set,
        engine=engine,
        state=_state(items, studied),
        credited=_credited(studied),
        reason=next((text_of(row, "reason") for row in studied if row["reason"]), ""),
        rows=[
            (
                text_of(row, "metric"),
                [_shown(row, name) for name in VIEWS] + [_shown(row, name, signed=True) for name in EFFECTS],
            )
            for row in studied
        ],
        tax=[_tax(metric, taxes) for metric in dict.fromkeys(text_of(row, "metric") for row in taxes)],
        lookups=len(lookups),
        differing=differing[:MOST_ROWS],
        more_differing=max(0, len(differing) - MOST_ROWS),
        notes=_notes(items, _hanging_on_ties(feed, golden_set, engine, items)),
    )


def _is_of(row: Row, golden_set: str, engine: str) -> bool:
    return (row["golden_set"], row["engine"]) == (golden_set, engine)


def _state(items: Sequence[Row], studied: Sequence[Row]) -> str:
    pinned = sum(item["mode"] == "exemplar" for item in items)
    pinnable = sum(item["mode"] == "name" and item["lookup_equal"] is not None for item in items)
    judged = sum(item["mode"] == "name" and bool(item["upper_bound"]) for item in items)
    left_out = max((count_of(row, "n_left_out") for row in studied), default=0)
    return (
        f"{counted(pinned, 'row')} pinned by an exemplar, {pinnable:,} graded by name that a lookup could pin, "
        f"{judged:,} by a name that several contents carry, which somebody has to judge. "
        f"{counted(left_out, 'item')} without a name or an answer left out here."
    )


def _credited(studied: Sequence[Row]) -> str:
    for row in studied:
        if row["metric"] == "recall@10":
            ambiguous, credited = count_of(row, "credited_ambiguous"), count_of(row, "credited")
            return (
                f"By name, {counted(credited, 'hit')} among the first ten counted as right; {ambiguous:,} of them by a "
                "name that several contents carry."
            )
    return ""


def _tax(metric: str, taxes: Sequence[Row]) -> Tax:
    rows = [row for row in taxes if row["metric"] == metric]
    whole = next((row for row in rows if row["tap"] == "*"), None)
    costly = [row for row in rows if row["tap"] != "*" and number_of(row, "value")]
    costly.sort(key=lambda row: (-(number_of(row, "value") or 0.0), text_of(row, "tap")))
    shares = [(text_of(row, "tap"), _shown(row, "value")) for row in costly]
    shown = [(tap, share) for tap, share in shares if float(share)]
    return Tax(
        metric=metric,
        whole=NOTHING if whole is None else _shown(whole, "value"),
        taps=shown[:MOST_TAPS],
        others=max(0, len(shown) - MOST_TAPS),
        negligible=len(shares) - len(shown),
    )


def _hanging_on_ties(feed: Feed, golden_set: str, engine: str, items: Sequence[Row]) -> int:
    """Count the rankings whose recall@10 hangs on the order of ties: an answer ties with another hit across rank 10."""
    import pyarrow as pa
    import pyarrow.compute as pc

    asked = [text_of(item, "query_id") for item in items if item["tied_at_10"] and item["scored"]]
    hits = feed.rankings
    mine = pc.and_(pc.equal(hits["golden_set"], golden_set), pc.equal(hits["engine"], engine))
    mine = pc.and_(mine, pc.is_in(hits["query_id"], value_set=pa.array(asked, pa.string())))
    tied: dict[str, list[Row]] = {}
    for hit in rows_of(hits.filter(mine).select(["query_id", "rank", "score", "grade"])):
        tied.setdefault(text_of(hit, "query_id"), []).append(hit)
    return sum(len({_answers(hit) for hit in _across_ten(ranking)}) > 1 for ranking in tied.values())


def _across_ten(ranking: Sequence[Row]) -> list[Row]:
    scores = {hit["score"] for hit in ranking if hit["rank"] == CUT}
    return [hit for hit in ranking if hit["score"] in scores]


def _answers(hit: Row) -> bool:
    return hit["grade"] is not None and count_of(hit, "grade") > 0


def _notes(items: Sequence[Row], hanging: int) -> str:
    ties = {cut: sum(bool(item[f"tied_at_{cut}"]) for item in items) for cut in (1, 10, 100)}
    copies = sum(count_of(item, "other_language_hits") for item in items)
    asked = sum(count_of(item, "other_language_hits") > 0 for item in items)
    return (
        f"Equal scores straddle rank 1 in {counted(ties[1], 'ranking')}, rank 10 in {ties[10]:,} and rank 100 in "
        f"{ties[100]:,}; the names of tap and path order them. In {hanging:,} an answer ties with another content "
        f"across rank 10, so that recall@10 hangs on that order. Among the first ten hits, {copies:,} are copies "
        f"in another language than the question's, in {counted(asked, 'ranking')}."
    )


def _shown(row: Row, column: str, signed: bool = False) -> str:
    value = number_of(row, column)
    if value is None:
        return NOTHING
    text = f"{value:+.3f}" if signed else f"{value:.3f}"
    return text[1:] if float(text) == 0 and signed else text
