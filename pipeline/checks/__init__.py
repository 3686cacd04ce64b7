"""Checks of the night: what other programs make of a sample of today's text, held against what we make of it.

``peers`` is the list of checks; ``okapi`` holds scores and ``minhash`` signatures against other packages. A check that
fails stops the night before anything is published. ``known`` is a measure, of entries that are asked for by name; it
stops nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from pydantic import Field

from pipeline.engines import Query
from pipeline.records import Record, Table
from pipeline.store import Stage

if TYPE_CHECKING:
    import pyarrow as pa

CHECKS = Stage("checks", 4)


class CheckRow(Record):
    """A check of one subject. One that fails is not published, for its run is not."""

    check: str = Field(description="Name of the check.")
    subject: str = Field(description="What was checked: an engine, or an index.")
    peer: str = Field(description="The package that it was checked with, and its version.")
    entries: int = Field(description="Entries of the sample, drawn by the digests of corpus, tap and path.")
    values: int = Field(description="Values that were compared.")
    worst_difference: float | None = Field(
        description="The largest difference, of signatures 1 where one differs; null where nothing was compared."
    )
    tolerance: float = Field(description="The largest difference that passes.")
    passed: bool | None = Field(
        description="Whether every value is within the tolerance; null: none was compared, as `detail` says."
    )
    detail: str = Field(description="What was compared, and what could not be.")


CHECK_ROWS = Table("checks", CheckRow, ("check", "subject"))


class Sample(NamedTuple):
    """What the checks of a night are made on."""

    entries: pa.Table
    """Entries in ``(tap, path)`` order, with the columns tap, path_text, slug, description, body."""
    queries: Sequence[Query]
    """Questions of the golden sets."""


class Outcome(NamedTuple):
    """What came of a check of one subject."""

    row: CheckRow
    disagreement: str
    """The first value that differs by more than the tolerance, in one line; empty where none does."""
