"""The queue of failures. Nothing in it is changed: the state of a failure is the last of its events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, JsonValue

from pipeline.errors import BadInput, Fault, counted
from pipeline.golden.assertions import Citation
from pipeline.golden.items import plain_question
from pipeline.records import Record
from pipeline.scoring.failures import FAILURE_CLASSES, FailureClass
from pipeline.store import digest

if TYPE_CHECKING:
    from pipeline.ledger.ledger import Addition, Ledger

Event = Literal["triaged", "corrected", "promoted", "rejected", "duplicate"]
State = Literal["open", "triaged", "corrected", "promoted", "rejected", "duplicate"]
CLOSED: tuple[State, ...] = ("promoted", "rejected", "duplicate")
"""States in which nothing more happens to a failure."""
SHORTEST_KEY = 8
"""Digits of a key that name a failure; fewer could be the end of an id."""
MISSED: FailureClass = "retrieval_miss"
"""What a user's miss is taken for, where he does not say."""

Said = Annotated[str, Field(pattern=r"\S")]


class Failure(Record):
    """A failure of a run, or a miss of a user."""

    source: Literal["run", "user"] = Field(description="Who noticed it.")
    golden_set: str = Field(description="The set that it belongs to.")
    query_id: str | None = Field(description="The item; null for a question that no item asks.")
    item_version: int | None = Field(description="Its version.")
    engine: str | None = Field(description="The engine; null where a user did not say.")
    run_id: str | None = Field(description="The run in which it was first seen.")
    failure_class: FailureClass = Field(description="What kind of failure it is: " + ", ".join(FAILURE_CLASSES) + ".")
    question: str = Field(description="What was asked.")
    shown: list[str] = Field(description="What was shown, best first.")
    wanted: list[str] = Field(description="What was wanted, as exemplars or names; empty: unknown, or nothing.")

    @property
    def key(self) -> str:
        """What makes two of them one: the same item, engine and kind, or the same words of a user."""
        if self.source == "run":
            return digest(["run", self.golden_set, self.query_id, self.item_version, self.engine, self.failure_class])
        words: list[JsonValue] = ["user", self.golden_set, plain_question(self.question)]
        return digest([*words, list(self.shown), list(self.wanted)])


class Correction(Record):
    """What should have been answered."""

    text: Said = Field(description="The right answer in words; it becomes a `must` assertion.")
    answerable: bool = Field(default=True, description="Whether the corpus holds an answer.")
    citations: list[Citation] = Field(default=[], description="Where the answer is; none where there is no answer.")


class Entered(Record):
    """A failure in the queue, and what became of it."""

    id: str = Field(description="ULID.")
    state: State = Field(description="The last of its events; `open` before the first.")
    failure: Failure = Field(description="The failure.")
    correction: Correction | None = Field(description="The last correction.")
    by: str | None = Field(description="Who caused the last event.")
    created_at: str = Field(description="When it was entered.")


def enter(addition: Addition, failures: Iterable[Failure]) -> list[str]:
    """Enter the failures that the queue does not hold; return the ids of those that are new."""
    from pipeline.ledger.tables import FEEDBACK

    known = {row["key"] for row in addition.rows(FEEDBACK)}
    rows: dict[str, dict[str, JsonValue]] = {}
    for failure in failures:
        if failure.key not in known and failure.key not in rows:
            rows[failure.key] = {
                "id": addition.new_id(),
                "key": failure.key,
                "source": failure.source,
                "run_id": failure.run_id,
                "golden_set": failure.golden_set,
                "query_id": failure.query_id,
                "engine": failure.engine,
                "failure_class": failure.failure_class,
                "evidence": failure.model_dump(mode="json"),
                "created_at": addition.created_at,
            }
    addition.add(FEEDBACK, rows.values())
    return [str(row["id"]) for row in rows.values()]


def note(addition: Addition, feedback_id: str, event: Event, by: str, detail: Mapping[str, JsonValue]) -> None:
    """Append an event of a failure."""
    from pipeline.ledger.tables import FEEDBACK_EVENTS

    addition.add(
        FEEDBACK_EVENTS,
        [
            {
                "id": addition.new_id(),
                "feedback_id": feedback_id,
                "seq": addition.last(FEEDBACK_EVENTS.c.seq, feedback_id=feedback_id) + 1,
                "event": event,
                "by_whom": by,
                "detail": dict(detail),
                "created_at": addition.created_at,
            }
        ],
    )


def queue(ledger: Ledger | Addition, as_of: int | None = None) -> list[Entered]:
    """Return everything that was ever entered, in that order, or what was up to a position, as it was then."""
    from pipeline.ledger.tables import FEEDBACK, FEEDBACK_EVENTS

    entered, noted = (
        [row for row in ledger.rows(table) if as_of is None or row["position"] <= as_of]
        for table in (FEEDBACK, FEEDBACK_EVENTS)
    )
    events: dict[str, list[dict[str, Any]]] = {}
    for row in noted:
        events.setdefault(row["feedback_id"], []).append(row)
    for of_one in events.values():
        of_one.sort(key=lambda row: int(row["seq"]))
    return [_entered(row, events.get(row["id"], ())) for row in entered]


def _entered(row: Mapping[str, Any], events: Sequence[Mapping[str, Any]]) -> Entered:
    corrections = [event["detail"] for event in events if event["event"] == "corrected"]
    return Entered(
        id=row["id"],
        state=events[-1]["event"] if events else "open",
        failure=Failure.model_validate(row["evidence"]),
        correction=Correction.model_validate(corrections[-1]) if corrections else None,
        by=events[-1]["by_whom"] if events else None,
        created_at=row["created_at"],
    )


def find(ledger: Ledger | Addition, feedback_id: str) -> Entered:
    """Return the failure whose id ends as given, or whose key begins so.

    Reports show keys, which follow from the run alone; ids are made when a failure is entered.

    Raises:
        BadInput: there is none, or several.
    """
    found = [entered for entered in queue(ledger) if feedback_id and _is_called(entered, feedback_id)]
    if len(found) != 1:
        what = f"{counted(len(found), 'failure')} with an id that ends with {feedback_id!r}, or a key that begins so"
        raise BadInput([Fault("feedback", what, "give an id of `assay feedback list`")])
    return found[0]


def _is_called(entered: Entered, given: str) -> bool:
    by_key = len(given) >= SHORTEST_KEY and entered.failure.key.startswith(given.lower())
    return by_key or entered.id.endswith(given.upper())


def correct(addition: Addition, feedback_id: str, correction: Correction, by: str) -> Entered:
    """Note what should have been answered. A later correction counts instead of an earlier one.

    Raises:
        BadInput: there is no such failure, or nothing more happens to it.
    """
    entered = find(addition, feedback_id)
    if entered.state in CLOSED:
        raise BadInput([_closed(addition, entered)])
    detail: dict[str, JsonValue] = correction.model_dump(mode="json", by_alias=True)
    if entered.correction != correction:
        note(addition, entered.id, "corrected", by, detail)
    return find(addition, entered.id)


def end(addition: Addition, feedback_id: str, event: Literal["triaged", "rejected"], by: str, why: str) -> Entered:
    """Note that somebody looked at a failure, or that it is none.

    Raises:
        BadInput: there is no such failure, or nothing more happens to it.
    """
    entered = find(addition, feedback_id)
    if entered.state in CLOSED and entered.state != event:
        raise BadInput([_closed(addition, entered)])
    if entered.state == "open" or (event == "rejected" and entered.state != event):
        note(addition, entered.id, event, by, {"note": why})
    return find(addition, entered.id)


def _closed(addition: Addition, entered: Entered) -> Fault:
    """Return that nothing more happens to a failure, and how the item is mended that was made of it."""
    from pipeline.ledger.tables import FEEDBACK_EVENTS

    todo = "nothing more happens to it"
    if entered.state == "promoted":
        done = addition.rows(FEEDBACK_EVENTS, feedback_id=entered.id, event="promoted")[-1]["detail"]
        name, version = done["golden_set"], done["item_version"] + 1
        row = f"a row of {done['queryId']!r} with the `item_version` {version} or higher"
        todo = f"to mend its item, import {row}: `assay golden import {name} FILE`"
    return Fault(f"feedback {entered.id}", f"is {entered.state}", todo)
