"""The items that a policy of answering, or a mean by judgments, was counted from."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from pydantic import JsonValue

from pipeline.reports.reading import Row, count_of, number_of, records_of, text_of
from pipeline.scoring.abstention import label_of
from pipeline.scoring.policies import BEST_TO_ABSTAIN

Given = dict[str, JsonValue]


def items_behind(table: str, row: Row, outcomes: Iterable[Row]) -> list[Given]:
    """Return what each item gave to a row of ``abstention`` or ``judged_metrics``.

    Args:
        table: the table that the row stands in.
        row: the row.
        outcomes: the rows of ``outcomes``, of which those of its set, engine and split count.
    """
    found = [
        each
        for each in outcomes
        if all(each[name] == row[name] for name in ("golden_set", "engine"))
        and row.get("items", "all") in ("all", each["split"])
    ]
    return list(_under_policy(row, found) if table == "abstention" else _expected(row, found))


def _under_policy(row: Row, outcomes: list[Row]) -> Iterator[Given]:
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


def _expected(row: Row, outcomes: list[Row]) -> Iterator[Given]:
    """Yield what each item gives to a mean; by judgments only the grade of the first class is published."""
    metric = text_of(row, "metric")
    for each in outcomes:
        values = {text_of(value, "metric"): value for value in records_of(each, "metrics")}
        own: Given = {"grade of the first": each["grade"], "judged by": each["grade_source"]}
        if metric in values:
            own = {"value": values[metric]["value"], "reason": values[metric]["reason"]}
        yield {"query_id": text_of(each, "query_id"), **own}
