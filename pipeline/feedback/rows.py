"""The failures of a run and the open misses of users, as a table of the feed."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import Field

from pipeline.feedback.queue import CLOSED, Entered, Failure, State
from pipeline.records import Record, Table
from pipeline.scoring.failures import FailureClass


class FeedbackRow(Record):
    """A failure of the run, or a miss of a user that nobody has dealt with, with its state in the queue."""

    golden_set: str = Field(description="The set that it belongs to.")
    key: str = Field(
        description="What makes two of them one; `assay feedback` takes its first digits in place of an id."
    )
    source: str = Field(description="Who noticed it: `run` or `user`.")
    query_id: str | None = Field(description="The item; null for a question that no item asks.")
    item_version: int | None = Field(description="Its version.")
    engine: str | None = Field(description="The engine; null where a user did not say.")
    failure_class: FailureClass = Field(description="What kind of failure it is.")
    question: str = Field(description="What was asked.")
    shown: list[str] = Field(description="What was shown, best first.")
    wanted: list[str] = Field(description="What was wanted, as exemplars or names; empty: unknown, or nothing.")
    state: State | None = Field(
        description="State in the queue as of the run's position of the ledger; null: it was not there yet, and the "
        "night that made the run entered it."
    )
    feedback_id: str | None = Field(description="Its id in the queue; null where it was not there yet.")
    correction: str | None = Field(description="What somebody said is right; null where nobody did.")


FEEDBACK_ROWS = Table("feedback", FeedbackRow, ("golden_set", "key"))


def feedback_rows(failures: Iterable[Failure], queue: Iterable[Entered]) -> list[FeedbackRow]:
    """Return the rows of a run.

    Args:
        failures: those of the run.
        queue: what was in the queue as of the run's position.
    """
    entered = {each.failure.key: each for each in queue}
    of_run = {failure.key: failure for failure in failures}
    missed = {
        key: each.failure
        for key, each in entered.items()
        if each.failure.source == "user" and each.state not in CLOSED and key not in of_run
    }
    return [_row(failure, key, entered.get(key)) for key, failure in {**of_run, **missed}.items()]


def _row(failure: Failure, key: str, entered: Entered | None) -> FeedbackRow:
    kept = failure.model_dump(exclude={"run_id"})
    correction = entered.correction if entered else None
    return FeedbackRow(
        key=key,
        state=entered.state if entered else None,
        feedback_id=entered.id if entered else None,
        correction=correction.text if correction else None,
        **kept,
    )
