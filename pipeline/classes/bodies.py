"""The distinct bodies of a corpus, one row a body digest: what near-duplicates are sought among.

Exact copies are one row, so they cost nothing and join nothing twice. Empty bodies have no row; alias stubs have one
that is not eligible, for two stubs that point elsewhere in the same words are not the same skill.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from pydantic import Field

from pipeline.records import Record, Table

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray


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
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    kept = catalogue.select(["body_sha256", "tap", "path", "body", "empty_body", "alias_stub"])
    kept = kept.filter(pc.invert(kept["empty_body"]))
    keys = kept.select(["body_sha256", "tap", "path"])
    order = pc.sort_indices(keys, [(name, "ascending") for name in keys.column_names])
    digests = keys["body_sha256"].take(order)
    same = pc.equal(digests[1:], digests[:-1]).to_numpy() if len(digests) else np.zeros(0, dtype=bool)
    is_first = np.append(True, ~same.astype(bool))[: len(digests)]
    own = np.flatnonzero(~kept["alias_stub"].take(order).to_numpy(zero_copy_only=False).astype(bool))
    numbers = np.cumsum(is_first) - 1
    firsts = kept.take(pa.array(np.asarray(order)[is_first]))
    eligible = np.zeros(firsts.num_rows, dtype=bool)
    eligible[numbers[own]] = True
    return DISTINCT_BODIES.from_columns(
        {"body_sha256": firsts["body_sha256"], "body": firsts["body"], "eligible": pa.array(eligible)}
    )


class Place(NamedTuple):
    """Where an entry is, and what it is called."""

    tap: str
    path: bytes
    path_text: str
    slug: str


class Holders(NamedTuple):
    """The entries that have a body."""

    first: Place
    """The first of them, by tap and path."""
    slugs: tuple[str, ...]
    """The slug of each."""
    taps: frozenset[str]
    locale_copies: int
    """How many of them are locale copies."""

    @property
    def names(self) -> frozenset[str]:
        """Their slugs, each once."""
        return frozenset(self.slugs)


class EntriesOfBodies:
    """Which entries have which body, looked up by the row of the body.

    Args:
        digests: body_sha256 of each body.
        entries: any table with the columns tap, path, path_text, slug, locale and body_sha256 of ``EntryFacts``, in any
            order; entries of other bodies are passed over.

    Raises:
        ValueError: no entry has one of the bodies.
    """

    def __init__(self, digests: pa.Array | pa.ChunkedArray, entries: pa.Table) -> None:
        import numpy as np
        import pyarrow as pa
        import pyarrow.compute as pc

        rows = pc.index_in(entries["body_sha256"], digests)
        kept = entries.select([*Place._fields, "locale"]).append_column("row", rows).filter(pc.is_valid(rows))
        self._entries = kept.sort_by([("tap", "ascending"), ("path", "ascending")])
        found = self._entries["row"].to_numpy().astype(np.int64)
        self._by_row = np.argsort(found, kind="stable")
        self.counts: NDArray[np.int64] = np.bincount(found, minlength=len(digests)).astype(np.int64)
        """How many entries have each body."""
        if not self.counts.all():
            lacking = digests[int(np.flatnonzero(self.counts == 0)[0])].as_py()
            raise ValueError(f"no entry has the body {lacking}")
        self._starts = np.cumsum(self.counts) - self.counts
        firsts = self._by_row[self._starts] if len(digests) else pa.array([], pa.int64()).to_numpy()
        self.standing: NDArray[np.int64] = np.empty(len(digests), np.int64)
        """The rank of each body: that of most entries comes first, then that of the first entry by tap and path."""
        self.standing[np.lexsort((firsts, -self.counts))] = np.arange(len(digests))

    def of(self, rows: Sequence[int]) -> list[Holders]:
        """Return the entries that have each of some bodies, by the rows of these."""
        import numpy as np
        import pyarrow as pa

        if not rows:
            return []
        places = [self._by_row[self._starts[row] : self._starts[row] + self.counts[row]] for row in rows]
        found = self._entries.take(pa.array(np.concatenate(places)))
        columns = {name: found[name].to_pylist() for name in (*Place._fields, "locale")}
        ends = np.cumsum([0, *map(len, places)]).tolist()
        return [
            Holders(
                first=Place(*(columns[name][start] for name in Place._fields)),
                slugs=tuple(columns["slug"][start:end]),
                taps=frozenset(columns["tap"][start:end]),
                locale_copies=sum(locale is not None for locale in columns["locale"][start:end]),
            )
            for start, end in pairwise(ends)
        ]


def group_id(digests: Iterable[str]) -> str:
    """Return the id of a group of bodies: the SHA-256 of their digests, sorted, a line each."""
    return hashlib.sha256("".join(f"{digest}\n" for digest in sorted(digests)).encode()).hexdigest()


def groups_of(labels: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Return the rows of each group of two or more, ascending, ordered by their first.

    Args:
        labels: for each row the smallest row of its group.
    """
    import numpy as np

    sizes = np.bincount(labels, minlength=1)
    rows = np.flatnonzero(sizes[labels] > 1)
    rows = rows[np.argsort(labels[rows], kind="stable")]
    return np.split(rows, np.flatnonzero(np.diff(labels[rows])) + 1) if rows.size else []
