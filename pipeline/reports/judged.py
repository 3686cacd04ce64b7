"""The sections of the page on judgments and on what a golden set is good for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from pipeline.reports.reading import (
    HEADLINE,
    Cell,
    Row,
    cell_of,
    count_of,
    names_of,
    number_of,
    rows_of,
    text_of,
)

if TYPE_CHECKING:
    import pyarrow as pa

SOURCES = {"human+provenance": "people and provenance", "all": "all sources"}
"""Judgments that count, as the page calls them."""
DEMANDS = {
    "question_types": "question types",
    "popularity": "popularity",
    "not_answerable": "items without an answer",
    "answerable_now": "none of them has an answer now",
    "false_premise": "a false premise",
    "provenance": "provenance of each answer",
    "judged@10": "judged among the first ten",
    "grade_0": "a wrong answer that is known",
    "concepts": "concepts of assertions",
    "citations": "citations that resolve",
    "duplicates": "no question twice",
    "clusters": "independent questions",
    "regression": "promoted items",
    "judge": "a judge that was validated",
}
"""What the page calls the demands on a set, in their order."""


class JudgedCell(NamedTuple):
    """A mean by judgments, and how much of what it looks at is judged."""

    cell: Cell
    judged: str


class Judged(NamedTuple):
    """The means by judgments of one set under one engine."""

    golden_set: str
    engine: str
    rows: list[tuple[str, list[JudgedCell]]]
    """Each headline measure: by people and provenance, and by all sources."""
    expected: list[tuple[str, Cell]]
    """What whole items expect: assertions, concepts, what a host would show."""


def judged(tables: Mapping[str, pa.Table]) -> list[Judged]:
    """Return the means by judgments; nothing where a run of an earlier release lacks them."""
    if "judged_metrics" not in tables:
        return []
    rows = rows_of(tables["judged_metrics"])
    found = {
        tuple(text_of(row, name) for name in ("golden_set", "engine", "grading", "source_filter", "metric")): row
        for row in rows
    }
    pairs = sorted({(text_of(row, "golden_set"), text_of(row, "engine")) for row in rows})
    return [
        Judged(
            *pair,
            [
                (metric, [_judged_cell(found.get((*pair, "qrels", source, metric))) for source in SOURCES])
                for metric in HEADLINE
            ],
            [(text_of(row, "metric"), cell_of(row)) for key, row in sorted(found.items()) if key[:3] == (*pair, "row")],
        )
        for pair in pairs
    ]


def _judged_cell(row: Row | None) -> JudgedCell:
    share = number_of(row, "judged_at_k")
    return JudgedCell(cell_of(row), "" if share is None else f"{share:.3f}")


class Demanded(NamedTuple):
    """A demand on a set."""

    verdict: str
    demand: str
    wanted: str
    says: str
    ids: list[str]
    more: int


class Ready(NamedTuple):
    """What a set is good for."""

    golden_set: str
    said: str
    rows: list[Demanded]


def ready(tables: Mapping[str, pa.Table]) -> list[Ready]:
    """Return what each set is good for; nothing where a run of an earlier release does not say."""
    if "readiness" not in tables:
        return []
    by_set: dict[str, list[Row]] = {}
    for row in rows_of(tables["readiness"]):
        by_set.setdefault(text_of(row, "golden_set"), []).append(row)
    order = [*DEMANDS]
    return [
        Ready(
            name,
            ", ".join(
                f"{sum(row['verdict'] == verdict for row in rows)} {verdict}" for verdict in ("pass", "warn", "fail")
            ),
            [_demanded(row) for row in sorted(rows, key=lambda row: order.index(text_of(row, "demand")))],
        )
        for name, rows in sorted(by_set.items())
    ]


def _demanded(row: Row) -> Demanded:
    ids = names_of(row, "ids")
    return Demanded(
        text_of(row, "verdict"),
        DEMANDS[text_of(row, "demand")],
        text_of(row, "wanted"),
        text_of(row, "says"),
        ids,
        count_of(row, "n_ids") - len(ids),
    )
