"""Engine ``run-file``: the rankings of an outside system, from a file that it wrote.

Two forms. TREC: lines of six columns, ``query Q0 document rank score tag``, of which query, document and score count.
Parquet (``.parquet``): the columns ``query_id``, ``doc_id`` and ``score``, or ``rank`` from 1 instead, which is then
scored ``1 / rank``. Hits are ordered by the ranking rule of every engine: by score, then ``(tap, path)``.

A document is called ``tap::path``. In the path each byte of ``%``, of white space, of a control character, and of what
is no UTF-8 is written ``%XX``, because a line of TREC holds no space; see `document_id`.
"""

from __future__ import annotations

import hashlib
import math
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from pydantic import Field, JsonValue

from pipeline.engines import Answer, Lent
from pipeline.errors import BadInput, Fault
from pipeline.records import Record

if TYPE_CHECKING:
    import pyarrow as pa

MOST_FAULTS = 100
"""Faults of one file that are named; the others are counted."""
COLUMNS = ("query_id", "doc_id", "score", "rank")


class RunFileOptions(Record):
    """Options of engine ``run-file``."""

    path: str = Field(description="The run file: Parquet where its name ends so, else TREC.")


class RunFile:
    """The engine: reads the file, and holds it against the corpus and the questions."""

    name: ClassVar[str] = "run-file"
    VERSION: ClassVar[int] = 1
    Options: ClassVar[type[Record]] = RunFileOptions

    def __init__(self, options: RunFileOptions) -> None:
        self.options = options
        self._path = Path(options.path)
        self._digest: str | None = None

    def why_not(self) -> str | None:
        """Return that the file is missing; None where it is there."""
        return None if self._path.is_file() else f"there is no run file {self._path.name}"

    def fingerprint_inputs(self) -> dict[str, JsonValue]:
        """Return what scores depend on: the bytes of the file, and how they are read."""
        if self._digest is None:
            with self._path.open("rb") as file:
                self._digest = hashlib.file_digest(file, "sha256").hexdigest()
        return {"sha256": self._digest, "parquet": self._is_parquet}

    def sources(self) -> tuple[str, ...]:
        """Return none."""
        return ()

    def answer(self, lent: Lent) -> Iterator[Answer]:
        """Answer each query with what the file says of it, in order.

        Raises:
            BadInput: lines are wrong, or name a document or query that there is not.
        """
        faults: list[Fault] = []
        lines = self._read_parquet(faults) if self._is_parquet else self._read_trec(faults)
        found = _by_query(lines, lent, faults)
        if faults:
            raise BadInput(_first(faults, str(self._path)))
        return _answers(lent, found)

    @property
    def _is_parquet(self) -> bool:
        return self._path.suffix == ".parquet"

    def _read_trec(self, faults: list[Fault]) -> Iterator[Line]:
        try:
            text = self._path.read_bytes().decode("utf-8")
        except UnicodeDecodeError as error:
            faults.append(Fault(str(self._path), f"byte {error.start} is no UTF-8", "write it as UTF-8"))
            return
        for number, row in enumerate(text.split("\n"), 1):
            columns = row.split()
            if not columns:
                continue
            where = f"{self._path} line {number}"
            if len(columns) != 6:
                what = f"{len(columns)} columns, not 6"
                faults.append(Fault(where, what, "write: query Q0 document rank score tag"))
                continue
            query_id, _, document, _, score, _ = columns
            try:
                yield Line(where, query_id, document, float(score))
            except ValueError:
                faults.append(Fault(where, f"the score {score!r} is no number", "write a number above 0"))

    def _read_parquet(self, faults: list[Fault]) -> Iterator[Line]:
        table = self._parquet(faults)
        if table is None:
            return
        by_rank = "score" not in table.column_names
        numbers = table.column("rank" if by_rank else "score").to_pylist()
        rows = zip(table.column("query_id").to_pylist(), table.column("doc_id").to_pylist(), numbers, strict=True)
        for number, (query_id, document, value) in enumerate(rows, 1):
            where = f"{self._path} row {number}"
            if query_id is None or document is None or value is None:
                faults.append(Fault(where, "a value is null", "leave the row out, or fill it in"))
            elif by_rank and value < 1:
                faults.append(Fault(where, f"the rank is {value}", "count ranks from 1"))
            else:
                yield Line(where, query_id, document, 1.0 / value if by_rank else float(value))

    def _parquet(self, faults: list[Fault]) -> pa.Table | None:
        """Read the file; None, with the faults, where it is none or has other columns."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            table = pq.ParquetFile(self._path).read()
        except (pa.ArrowException, OSError) as error:
            faults.append(Fault(str(self._path), f"cannot be read as Parquet ({error})", "write it again"))
            return None
        types = {field.name: field.type for field in table.schema}
        text = (pa.types.is_string, pa.types.is_large_string)
        number = (pa.types.is_integer, pa.types.is_floating)
        allowed = {"query_id": text, "doc_id": text, "score": number, "rank": number[:1]}
        wrong = [
            f"{name} is {kind}" if name in allowed else f"{name} is not known"
            for name, kind in types.items()
            if not any(is_kind(kind) for is_kind in allowed.get(name, ()))
        ]
        wrong += [f"{name} is missing" for name in COLUMNS[:2] if name not in types]
        wrong += ["score or rank is missing"] if not {"score", "rank"} & set(types) else []
        if len(types) < table.num_columns:
            wrong.append("a column is there twice")
        todo = "write query_id and doc_id as text, and score as a number or rank as a whole number"
        faults += [Fault(str(self._path), f"column {what}", todo) for what in wrong]
        return None if wrong else table


class Line(NamedTuple):
    """What a run file says of one document."""

    where: str
    query_id: str
    document: str
    score: float


def document_id(tap: str, path: bytes) -> str:
    """Return what run files call an entry: ``tap::path``, without white space and reversible."""
    return f"{tap}::{''.join(map(_written, path.decode('utf-8', 'surrogateescape')))}"


def _written(character: str) -> str:
    if character != "%" and not character.isspace() and unicodedata.category(character) not in ("Cc", "Cs"):
        return character
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogateescape"))


def _by_query(lines: Iterable[Line], lent: Lent, faults: list[Fault]) -> dict[str, dict[int, float]]:
    """Return the score of each entry that each query found, and note what is wrong with the lines."""
    paths = zip(lent.corpus.column("tap").to_pylist(), lent.corpus.column("path").to_pylist(), strict=True)
    row_of = {document_id(tap, path): row for row, (tap, path) in enumerate(paths)}
    found: dict[str, dict[int, float]] = {}
    for line in lines:
        row = row_of.get(line.document)
        scores = found.setdefault(line.query_id, {})
        wrong = _wrong(line, line.query_id in lent.asked, row is not None, row in scores)
        if wrong is None and row is not None:
            scores[row] = line.score
        elif wrong is not None:
            faults.append(wrong)
    return found


def _wrong(line: Line, asked: bool, known: bool, again: bool) -> Fault | None:
    if not asked:
        return Fault(line.where, f"no golden set asks the query {line.query_id!r}", "remove the line or mend the id")
    if not known:
        todo = "write tap::path of an entry, white space as %20"
        return Fault(line.where, f"the corpus holds no document {line.document!r}", todo)
    if again:
        what = f"the query {line.query_id!r} has the document {line.document!r} twice"
        return Fault(line.where, what, "keep one of the lines")
    if not math.isfinite(line.score) or line.score < 0:
        todo = "write a number from 0 on; what scores 0 is no hit"
        return Fault(line.where, f"the score is {line.score}", todo)
    return None


def _answers(lent: Lent, found: dict[str, dict[int, float]]) -> Iterator[Answer]:
    import numpy as np

    for query in lent.queries:
        hits = sorted((row, score) for row, score in found.get(query.query_id, {}).items() if score > 0)
        entries = np.array([row for row, _ in hits], np.int64)
        yield Answer(query.query_id, entries, np.array([score for _, score in hits], np.float64))


def _first(faults: list[Fault], where: str) -> list[Fault]:
    more = len(faults) - MOST_FAULTS
    return faults[:MOST_FAULTS] + ([Fault(where, f"{more} more faults", "mend these first")] if more > 0 else [])
