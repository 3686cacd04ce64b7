"""What stands behind a number that is no mean of ``metrics``: its row, and the items that it was counted from."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Literal

from pydantic import Field, JsonValue

from pipeline.records import Record
from pipeline.reports.answering import policy_digest
from pipeline.reports.explained import Origin, Reproduction
from pipeline.reports.reading import Row, count_of, metric_digest, number_of, records_of, rows_of, text_of
from pipeline.scoring.abstention import label_of
from pipeline.scoring.policies import BEST_TO_ABSTAIN

if TYPE_CHECKING:
    import pyarrow as pa

TABLES = ("abstention", "judged_metrics", "outcomes")
"""The tables of a run that are read; runs of earlier releases lack them."""


class ExplainedRow(Record):
    """A row of a table, and what it was counted from."""

    kind: Literal["row"] = "row"
    id: str = Field(description="Id of the number.")
    table: str = Field(description="The table that it stands in.")
    row: dict[str, JsonValue] = Field(description="Its row, lists left out.")
    items: list[dict[str, JsonValue]] = Field(description="The items that it was counted from.")
    origin: Origin
    reproduction: Reproduction


class Behind:
    """The rows of a run that have an id, beside those of ``metrics``."""

    def __init__(self, tables: Mapping[str, pa.Table]) -> None:
        """Take those of ``TABLES`` that there are."""
        self._rows: dict[str, tuple[str, Row]] = {}
        self._outcomes = rows_of(tables["outcomes"]) if "outcomes" in tables else []
        digests = {"abstention": policy_digest, "judged_metrics": metric_digest}
        for name, digest in digests.items():
            if name in tables:
                self._rows |= {digest(row): (name, row) for row in rows_of(tables[name])}

    def like(self, wanted: str) -> list[str]:
        """Return the digests that begin with ``wanted``."""
        return sorted(found for found in self._rows if found.startswith(wanted))

    def explain(self, digest: str, origin: Origin, reproduction: Reproduction) -> ExplainedRow:
        """Explain the row with this digest."""
        table, row = self._rows[digest]
        found = [
            each
            for each in self._outcomes
            if all(each[name] == row[name] for name in ("golden_set", "engine"))
            and row.get("items", "all") in ("all", each["split"])
        ]
        return ExplainedRow(
            id=digest[:8],
            table=table,
            row={name: value for name, value in row.items() if not isinstance(value, list)},
            items=list(_under_policy(row, found) if table == "abstention" else _expected(row, found)),
            origin=origin,
            reproduction=reproduction,
        )

    def place(self, digest: str) -> tuple[str, str]:
        """Return set and engine of the row with this digest."""
        _, row = self._rows[digest]
        return text_of(row, "golden_set"), text_of(row, "engine")


def _under_policy(row: Row, outcomes: list[Row]) -> Iterator[dict[str, JsonValue]]:
    signal = text_of(row, "signal")
    why = row.get("threshold_reason")  # not there in a run of an earlier release
    lacking = why is not None and row["auroc_reason"] == why
    for each in outcomes:
        value = number_of(each, "top_score" if lacking else signal)
        answered = value is not None and value >= _threshold(row)
        grade = None if each["grade"] is None else count_of(each, "grade")
        yield {
            "query_id": text_of(each, "query_id"),
            "answerable": each["answerable"],
            signal: number_of(each, signal),
            "answered": answered,
            "grade": grade,
            "answer": label_of(bool(each["answerable"]), answered, grade),
        }


def _threshold(row: Row) -> float:
    if row["policy"] == "always_abstain" or row.get("threshold_reason") == BEST_TO_ABSTAIN:
        return math.inf
    threshold = number_of(row, "threshold")
    return -math.inf if threshold is None else threshold


def _expected(row: Row, outcomes: list[Row]) -> Iterator[dict[str, JsonValue]]:
    """Yield what each item gives to a mean; by judgments only the grade of the first class is published."""
    metric = text_of(row, "metric")
    for each in outcomes:
        values = {text_of(value, "metric"): value for value in records_of(each, "metrics")}
        own: dict[str, JsonValue] = {"grade of the first": each["grade"], "judged by": each["grade_source"]}
        if metric in values:
            own = {"value": values[metric]["value"], "reason": values[metric]["reason"]}
        yield {"query_id": text_of(each, "query_id"), **own}
