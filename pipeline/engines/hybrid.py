"""Engine ``hybrid``: reciprocal rank fusion of two other engines of the configuration.

The score of a class is the sum of ``1 / (constant + rank)`` over the engines that rank it, 100 classes deep.
Its entry is the one that the engine shows which ranks it higher; of equal ranks, that of the engine named first. Scores
of the engines do not count, so any two can be fused. Source: Cormack, Clarke and Büttcher 2009.
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
        rankings = [_ranked(hits) for hits in lent.hits]
        for query in lent.queries:
            fused = self._fused([ranking.get(query.query_id, []) for ranking in rankings])
            scores = {row_of[entry]: score for entry, score in fused.items()}
            entries = np.array(sorted(scores), np.int64)
            yield Answer(query.query_id, entries, np.array([scores[row] for row in entries.tolist()], np.float64))

    def _fused(self, rankings: list[list[_Ranked]]) -> dict[tuple[str, bytes], float]:
        """Return the score of the shown entry of each class."""
        best: dict[str, _Ranked] = {}
        scores: dict[str, float] = {}
        for hit in (hit for ranking in rankings for hit in ranking):
            scores[hit.class_id] = scores.get(hit.class_id, 0.0) + 1.0 / (self.options.constant + hit.rank)
            if hit.class_id not in best or hit.rank < best[hit.class_id].rank:
                best[hit.class_id] = hit
        return {best[class_id].entry: score for class_id, score in scores.items()}


class _Ranked(NamedTuple):
    rank: int
    class_id: str
    entry: tuple[str, bytes]


def _ranked(hits: pa.Table) -> dict[str, list[_Ranked]]:
    """Return the ranked classes of each query; mirrors have no rank."""
    columns = (hits.column(name).to_pylist() for name in ("query_id", "rank", "class_id", "tap", "path"))
    found: dict[str, list[_Ranked]] = {}
    for query_id, rank, class_id, tap, path in zip(*columns, strict=True):
        if rank is not None:
            found.setdefault(query_id, []).append(_Ranked(rank, class_id, (tap, path)))
    return found
