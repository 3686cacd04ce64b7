"""Engine ``dense``: the cosine between a question and each entry, as a sentence model on disk sees them.

The text of an entry is its name opened, its description and its body, a line each, cut at ``max_tokens``. The index of
a tap holds the vector of each of its texts under the text's digest; a text that an earlier index holds, of any tap and
any night, is not embedded again. The cosine is exact, over all entries: products in float64, added dimension after
dimension, so scores have the same bits however entries are cut into taps.
"""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field, JsonValue

from pipeline.engines import Answer, Query
from pipeline.engines.embedding import SentenceModel
from pipeline.engines.text import opened
from pipeline.errors import BadInput, Fault
from pipeline.records import Record

if TYPE_CHECKING:
    import pyarrow as pa

LAYOUT = "vectors-1"
"""What an index of vectors holds, and of which text. It changes whenever the same entries would give other bytes."""

NOTHING: Mapping[bytes, bytes] = MappingProxyType({})


class DenseOptions(Record):
    """Options of engine ``dense``."""

    path: str = Field(description="The folder of the model: `tokenizer.json` with `model.onnx` or one `*.safetensors`.")
    max_tokens: int = Field(256, ge=1, le=8192, description="Tokens of an entry or a question that count, from 1.")


class Dense:
    """The engine: embeds the texts of taps, and joins their vectors into a retriever.

    Raises:
        BadInput: there is something at the path, and it is no folder.
    """

    name: ClassVar[str] = "dense"
    VERSION: ClassVar[int] = 1
    Options: ClassVar[type[Record]] = DenseOptions

    def __init__(self, options: DenseOptions) -> None:
        self.options = options
        folder = Path(options.path)
        if folder.exists() and not folder.is_dir():
            raise BadInput(
                [Fault(str(folder), "is a file, not a model folder", "name the folder that holds the model")]
            )
        self._model = SentenceModel(folder, options.max_tokens)

    def why_not(self) -> str | None:
        """Return which part of the model or which package is missing; None where all are there."""
        return self._model.why_not()

    def input_faults(self, asked: Container[str] | None) -> list[Fault]:
        """Return what is wrong with the files of the model, which shows when it is loaded and embeds a word."""
        try:
            self._model.try_out()
        except BadInput as error:
            return list(error.faults)
        return []

    def index_inputs(self) -> dict[str, JsonValue]:
        """Return what the vectors depend on: the files of the model, what reads them, how much of a text counts."""
        return {
            "layout": LAYOUT,
            "model": self._model.digest,
            "packages": dict(self._model.packages),
            "max_tokens": self.options.max_tokens,
        }

    def fingerprint_inputs(self) -> dict[str, JsonValue]:
        """Return what scores depend on: the vectors."""
        return {"index": self.index_inputs()}

    def index_tap(self, entries: pa.Table, known: Mapping[bytes, bytes] = NOTHING) -> bytes:
        """Embed the entries of one tap, but for the texts whose vectors are known."""
        import pyarrow as pa

        digests: list[bytes] = []
        vectors: dict[bytes, bytes] = {}
        columns = (entries.column(name).to_pylist() for name in ("slug", "description", "body"))
        for slug, description, body in zip(*columns, strict=True):
            text = self._model.cut("\n".join((opened(slug), description or "", body)))
            digest = hashlib.sha256(text.encode("utf-8")).digest()
            digests.append(digest)
            if digest not in vectors:
                vectors[digest] = known[digest] if digest in known else self._embed(text)
        batch = pa.record_batch(
            {
                "text_sha256": pa.array(digests, pa.binary(32)),
                "vector": pa.array([vectors[digest] for digest in digests], pa.binary()),
            }
        )
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, batch.schema) as writer:
            writer.write_batch(batch)
        return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]

    def parts(self, index: bytes | memoryview | pa.Buffer) -> Mapping[bytes, bytes]:
        """Return the vector of each text of an index, by the text's digest."""
        batch = _batch(index)
        columns = (batch.column(name).to_pylist() for name in ("text_sha256", "vector"))
        return dict(zip(*columns, strict=True))

    def retriever(self, indexes: Sequence[bytes | memoryview | pa.Buffer]) -> DenseRetriever:
        """Join the vectors of taps, in the order of the corpus, into one corpus."""
        return DenseRetriever([_batch(index) for index in indexes], self._model)

    def _embed(self, text: str) -> bytes:
        vector = self._model.embed(text)
        return b"" if vector is None else vector.astype("<f4").tobytes()


class DenseRetriever:
    """A corpus that answers by the cosine."""

    def __init__(self, taps: Sequence[pa.RecordBatch], model: SentenceModel) -> None:
        import numpy as np

        vectors = [vector for tap in taps for vector in tap.column("vector").to_pylist()]
        self._model = model
        self._rows = np.array([row for row, vector in enumerate(vectors) if vector], np.int64)
        held = np.frombuffer(b"".join(vectors), "<f4").reshape(self._rows.size, -1 if self._rows.size else 0)
        self._dimensions = np.ascontiguousarray(held.T)  # a dimension at a time, over all entries that have a vector

    def answer(self, queries: Sequence[Query]) -> Iterator[Answer]:
        """Answer each query, in order."""
        import numpy as np

        for query in queries:
            vector = self._model.embed(query.text)
            cosines = np.zeros(self._rows.size, np.float64)
            if vector is not None and self._rows.size:
                for of_entries, of_query in zip(self._dimensions, vector.astype(np.float64), strict=True):
                    cosines += of_entries * of_query
            found = np.flatnonzero(cosines > 0)
            yield Answer(query.query_id, self._rows[found], cosines[found], empty_query=vector is None, reach=1.0)


def _batch(index: bytes | memoryview | pa.Buffer) -> pa.RecordBatch:
    import pyarrow as pa

    return pa.ipc.open_file(index if isinstance(index, pa.Buffer) else pa.py_buffer(index)).get_batch(0)
