"""Engine ``hybrid``: reciprocal rank fusion of two other engines of the configuration.

The score of a class is the sum of ``1 / (constant + rank)`` over the engines that rank it, 100 classes deep.
Every entry of it that either engine found has that score, so mirrors stand together, and the ranking rule shows the
first by ``(tap, path)``. Scores of the engines do not count, so any two can be fused. Source: Cormack, Clarke and
Büttcher 2009.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Self

from pydantic import Field, JsonValue, model_validator

from pipeline.engines import Answer, Lent
from pipeline.records import Record

if TYPE_CHECKING:
    import pyarrow as pa


class HybridOptions(Record):
    """Options of engine ``hybrid``."""

    of: list[str] = Field(min_length=2, max_length=2, description="The names of the two engines that are fused.")
    constant: int = Field(60, ge=0, description="What is added to every rank: how little the first ranks stand out.")

    @model_validator(mode="after")
    def _two(self) -> Self:
        if self.of[0] == self.of[1]:
            raise ValueError(f"of names {self.of[0]} twice; name two engines")
        return self


class Hybrid:
    """The engine."""

    name: ClassVar[str] = "hybrid"
    VERSION: ClassVar[int] = 1
    Options: ClassVar[type[Record]] = HybridOptions

    def __init__(self, options: HybridOptions) -> None:
        self.options = options

    def why_not(self) -> str | None:
        """Return None: it can run wherever the engines can that it fuses."""
        return None

    def fingerprint_inputs(self) -> dict[str, JsonValue]:
        """Return what scores depend on, beside what the two engines do."""
        return {"of": list(self.options.of), "constant": self.options.constant}

    def sources(self) -> tuple[str, ...]:
        """Return the two engines."""
        return tuple(self.options.of)

    def answer(self, lent: Lent) -> Iterator[Answer]:
        """Answer each query with the classes that either engine ranked, in order."""
        import numpy as np

        paths = zip(lent.corpus.column("tap").to_pylist(), lent.corpus.column("path").to_pylist(), strict=True)
        row_of = {entry: row for row, entry in enumerate(paths)}
        found = [_found(hits, row_of) for hits in lent.hits]
        for query in lent.queries:
            scores = self._fused([hits.get(query.query_id, []) for hits in found])
            entries = np.array(sorted(scores), np.int64)
            fused = np.array([scores[row] for row in entries.tolist()], np.float64)
            yield Answer(query.query_id, entries, fused, reach=reach_of(self.options.constant, len(self.options.of)))

    def _fused(self, rankings: list[list[_Found]]) -> dict[int, float]:
        """Return the score of each entry."""
        hits = [hit for ranking in rankings for hit in ranking]
        of_class: dict[str, float] = {}
        for hit in hits:
            if hit.rank is not None:
                of_class[hit.class_id] = of_class.get(hit.class_id, 0.0) + 1.0 / (self.options.constant + hit.rank)
        return {hit.row: of_class[hit.class_id] for hit in hits}


class _Found(NamedTuple):
    rank: int | None
    """Its rank among classes; None for a mirror."""
    class_id: str
    row: int
    """Of the corpus."""


def _found(hits: pa.Table, row_of: dict[tuple[str, bytes], int]) -> dict[str, list[_Found]]:
    """Return the hits of each query."""
    columns = (hits.column(name).to_pylist() for name in ("query_id", "rank", "class_id", "tap", "path"))
    found: dict[str, list[_Found]] = {}
    for query_id, rank, class_id, tap, path in zip(*columns, strict=True):
        found.setdefault(query_id, []).append(_Found(rank, class_id, row_of[tap, path]))
    return found


def reach_of(constant: int, engines: int) -> float:
    """Return the score of a class that every engine ranks first."""
    return engines / (constant + 1)
