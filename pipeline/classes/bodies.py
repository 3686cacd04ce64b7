"""The distinct bodies of a corpus, one row a body digest: what near-duplicates are sought among.

Exact copies are one row, so they cost nothing and join nothing twice. Empty bodies have no row; alias stubs have one
that is not eligible, for two stubs that point elsewhere in the same words are not the same skill.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from pipeline.records import Record, Table

if TYPE_CHECKING:
    import pyarrow as pa


class DistinctBody(Record):
    """A body that at least one entry has, its white space aside."""

    body_sha256: str = Field(description="SHA-256 of the body, its white space normalised.")
    body: str = Field(description="The text, as the first entry by tap and path has it.")
    eligible: bool = Field(description="Whether it may join others: false where every entry of it is an alias stub.")


DISTINCT_BODIES = Table("distinct_bodies", DistinctBody, ("body_sha256",))
"""Held in memory, never published: it repeats the texts of the catalogue."""


def distinct_bodies(catalogue: pa.Table) -> pa.Table:
    """Return one row a ``DistinctBody`` of the entries, ordered by digest. The order of the rows does not matter.

    Args:
        catalogue: any table with the columns tap, path, body, body_sha256, empty_body and alias_stub of ``Entry``.
    """
    raise NotImplementedError
