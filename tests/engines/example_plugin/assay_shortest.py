"""An engine as somebody else would write it: of the entries that hold a word of the query, the shortest first."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np
import pyarrow as pa
from pydantic import Field, JsonValue

from pipeline.engines import Answer, Query
from pipeline.records import Record


class ShortestOptions(Record):
    """Options of engine ``shortest``."""

    longest: int = Field(2000, gt=0, description="Entries of more characters are never found.")


class Shortest:
    """The engine."""

    name: ClassVar[str] = "shortest"
    VERSION: ClassVar[int] = 1
    Options: ClassVar[type[Record]] = ShortestOptions

    def __init__(self, options: ShortestOptions) -> None:
        self.options = options

    def why_not(self) -> str | None:
        return None

    def index_inputs(self) -> dict[str, JsonValue]:
        return {"layout": "shortest-1"}

    def fingerprint_inputs(self) -> dict[str, JsonValue]:
        return {"index": self.index_inputs(), "longest": self.options.longest}

    def index_tap(self, entries: pa.Table) -> bytes:
        columns = (entries.column(name).to_pylist() for name in ("slug", "description", "body"))
        return json.dumps(
            [" ".join(part or "" for part in entry).lower() for entry in zip(*columns, strict=True)]
        ).encode()

    def retriever(self, indexes: Sequence[bytes | memoryview | pa.Buffer]) -> ShortestRetriever:
        texts = [text for index in indexes for text in json.loads(bytes(index))]
        return ShortestRetriever(texts, self.options.longest)


class ShortestRetriever:
    """Texts that can be asked."""

    def __init__(self, texts: list[str], longest: int) -> None:
        self._texts = texts
        self._longest = longest

    def answer(self, queries: Sequence[Query]) -> Iterator[Answer]:
        for query in queries:
            words = set(query.text.lower().split())
            found = [
                (row, 1 / (1 + len(text)))
                for row, text in enumerate(self._texts)
                if len(text) <= self._longest and words & set(text.split())
            ]
            entries, scores = zip(*found, strict=True) if found else ((), ())
            yield Answer(query.query_id, np.array(entries, np.int64), np.array(scores, np.float64))
