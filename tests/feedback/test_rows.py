"""The failures of a run as a table: what the queue knew of each, and the misses of users that wait."""

from __future__ import annotations

from pipeline.feedback.queue import Correction, Entered, Failure, State
from pipeline.feedback.rows import feedback_rows


def failure(query_id: str, source: str = "run") -> Failure:
    return Failure.model_validate(
        {
            "source": source,
            "golden_set": "set",
            "query_id": query_id,
            "item_version": 1,
            "engine": "bm25" if source == "run" else None,
            "run_id": "r",
            "failure_class": "rank_error",
            "question": f"what of {query_id}?",
            "shown": ["o/r::a"],
            "wanted": ["b"],
        }
    )


def entered(failure: Failure, state: State, correction: str | None = None) -> Entered:
    said = None if correction is None else Correction(text=correction, answerable=False)
    return Entered(id=f"id-{failure.query_id}", state=state, failure=failure, correction=said, by=None, created_at="")


def test_a_failure_has_its_state_in_the_queue_or_none_where_it_is_new() -> None:
    known, new = failure("known"), failure("new")
    rows = {row.query_id: row for row in feedback_rows([known, new], [entered(known, "corrected", "that")])}
    assert (rows["known"].state, rows["known"].feedback_id, rows["known"].correction) == (
        "corrected",
        "id-known",
        "that",
    )
    assert (rows["new"].state, rows["new"].feedback_id, rows["new"].correction) == (None, None, None)
    assert rows["new"].key == new.key


def test_a_miss_of_a_user_stands_there_until_somebody_has_dealt_with_it() -> None:
    waiting, done = failure("waiting", "user"), failure("done", "user")
    rows = feedback_rows([], [entered(waiting, "open"), entered(done, "rejected"), entered(failure("old"), "open")])
    assert [row.query_id for row in rows] == ["waiting"]
