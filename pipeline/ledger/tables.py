"""What the ledger holds. Every table is append-only; each row carries the position of the transaction that added it.

The migrations make the tables, with their keys and checks; here stand the columns that are read and written.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from pydantic import JsonValue

from pipeline.store import canonical_json

APPLICATION = "assay_application"
"""Role that may read and add, and nothing else, in PostgreSQL."""


class CanonicalJson(sa.TypeDecorator[JsonValue]):
    """A JSON value, kept as canonical text, so that both databases hold the same bytes."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: JsonValue, dialect: sa.Dialect) -> str | None:
        """Return the text that is kept."""
        return None if value is None else canonical_json(value)

    def process_result_value(self, value: str | None, dialect: sa.Dialect) -> Any:
        """Return the value."""
        import json

        return None if value is None else json.loads(value)


METADATA = sa.MetaData()


def _table(name: str, *columns: sa.Column[Any]) -> sa.Table:
    return sa.Table(name, METADATA, sa.Column("position", sa.BigInteger), *columns)


def _text(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.Text)


def _number(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.BigInteger)


def _json(name: str) -> sa.Column[Any]:
    return sa.Column(name, CanonicalJson)


COMMITS = _table("commits", _text("id"), _text("created_at"), _text("what"))
"""A transaction: its position (1, 2, ...), when it was, and what it did."""

GOLDEN_ITEMS = _table("golden_items", _text("golden_set"), _text("query_id"), _number("item_version"), _json("item"))
"""A version of an item of a golden set that is kept here: the full row, as a file would hold it."""

CONCEPTS = _table("concepts", _text("concept_id"), _number("version"), _json("concept"))
"""A version of a concept."""

DECISIONS = _table(
    "decisions", _text("id"), _text("golden_set"), _text("query_id"), _json("decision"), _text("created_at")
)
"""What somebody decided about a class, for an item."""

QRELS = _table(
    "qrels",
    _text("id"),
    _text("query_id"),
    _text("doc_id"),
    _text("chunk_id"),
    _number("grade"),
    _text("source"),
    _text("judge"),
    _text("judge_model"),
    _text("prompt_version"),
    _text("verdict_id"),
    _text("annotator"),
    _text("judged_sha256"),
    _number("seq"),
    _text("rationale"),
    _text("created_at"),
)
"""A judgment. ``judge`` is the annotator, or the model and prompt as JSON, or empty; ``seq`` counts within query, body,
source and judge."""

FEEDBACK = _table(
    "feedback",
    _text("id"),
    _text("key"),
    _text("source"),
    _text("run_id"),
    _text("golden_set"),
    _text("query_id"),
    _text("engine"),
    _text("failure_class"),
    _json("evidence"),
    _text("created_at"),
)
"""A failure that waits for somebody. ``key`` tells the same one from another: it is entered once."""

FEEDBACK_EVENTS = _table(
    "feedback_events",
    _text("id"),
    _text("feedback_id"),
    _number("seq"),
    _text("event"),
    _text("by_whom"),
    _json("detail"),
    _text("created_at"),
)
"""What became of a failure; its state is the last of them. ``seq`` counts within the failure."""

TABLES: dict[str, sa.Table] = {
    table.name: table for table in (COMMITS, GOLDEN_ITEMS, CONCEPTS, DECISIONS, QRELS, FEEDBACK, FEEDBACK_EVENTS)
}
