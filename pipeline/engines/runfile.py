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
import re
import unicodedata
from collections.abc import Container, Iterable, Iterator
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

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|[+-]?(?:nan|inf|infinity)", re.IGNORECASE)
"""A number as every language reads it; Python's own `float` takes `1_0` and the digits of all scripts too."""
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_A_SCORE = "write a number from 0 on; what scores 0 is no hit"


class RunFileOptions(Record):
    """Options of engine ``run-file``."""

    path: str = Field(description="The run file: Parquet where its name ends so, else TREC.")


class RunFile:
    """The engine: reads the file, and holds it against the corpus and the questions.

    Raises:
        BadInput: there is something at the path, and it is no file.
    """

    name: ClassVar[str] = "run-file"
    VERSION: ClassVar[int] = 1
    Options: ClassVar[type[Record]] = RunFileOptions

    def __init__(self, options: RunFileOptions) -> None:
        self.options = options
        self._path = Path(options.path)
        if self._path.exists() and not self._path.is_file():
            what = "is a folder, not a run file" if self._path.is_dir() else "is no file"
            raise BadInput([Fault(str(self._path), what, "name the run file itself")])
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
        paths = zip(lent.corpus.column("tap").to_pylist(), lent.corpus.column("path").to_pylist(), strict=True)
        row_of = {document_id(tap, path): row for row, (tap, path) in enumerate(paths)}
        faults: list[Fault] = []
        found = _by_query(self._lines(faults), lent.asked, row_of, faults)
        if faults:
            raise BadInput(_first(faults, str(self._path)))
        return _answers(lent, found, row_of)

    def input_faults(self, asked: Container[str] | None) -> list[Fault]:
        """Return what is wrong with the file whatever the corpus holds.

        Args:
            asked: the ids of all questions; None where they cannot be read.
        """
        faults: list[Fault] = []
        _by_query(self._lines(faults), asked, None, faults)
        return _first(faults, str(self._path))

    def _lines(self, faults: list[Fault]) -> Iterator[Line]:
        empty = True
        for line in self._read_parquet(faults) if self._is_parquet else self._read_trec(faults):
            empty = False
            yield line
        if empty and not faults:
            faults.append(Fault(str(self._path), "holds no row", "write at least one"))

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
            control = _CONTROL.search(row)
            if control is not None:
                what = f"holds the control character U+{ord(control[0]):04X}"
                faults.append(Fault(where, what, "remove it; in a path write %XX for it"))
                continue
            if len(columns) != 6:
                what = f"{len(columns)} columns, not 6"
                faults.append(Fault(where, what, "write: query Q0 document rank score tag"))
                continue
            query_id, _, document, _, score, _ = columns
            if _NUMBER.fullmatch(score):
                yield Line(where, query_id, document, float(score))
            else:
                faults.append(Fault(where, f"the score {score!r} is no number", _A_SCORE))

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


def _by_query(
    lines: Iterable[Line], asked: Container[str] | None, held: Container[str] | None, faults: list[Fault]
) -> dict[str, dict[str, float]]:
    """Return the score of each document that each query found, and note what is wrong with the lines.

    Args:
        lines: what the file says.
        asked: the ids of all questions; None where they are not known.
        held: the documents of the corpus; None where they are not known yet.
        faults: takes what is wrong.
    """
    found: dict[str, dict[str, float]] = {}
    for line in lines:
        scores = found.setdefault(line.query_id, {})
        is_asked = asked is None or line.query_id in asked
        wrong = _wrong(line, is_asked, held is None or line.document in held, line.document in scores)
        if wrong is None:
            scores[line.document] = line.score
        else:
            faults.append(wrong)
    return found


def _wrong(line: Line, asked: bool, known: bool, again: bool) -> Fault | None:
    if not asked:
        return Fault(line.where, f"no golden set asks the query {line.query_id!r}", "remove it or mend the id")
    if not known:
        todo = "write tap::path of an entry, white space as %20"
        return Fault(line.where, f"the corpus holds no document {line.document!r}", todo)
    if again:
        what = f"the query {line.query_id!r} has the document {line.document!r} twice"
        return Fault(line.where, what, "keep one of them")
    if not math.isfinite(line.score) or line.score < 0:
        return Fault(line.where, f"the score is {line.score}", _A_SCORE)
    return None


def _answers(lent: Lent, found: dict[str, dict[str, float]], row_of: dict[str, int]) -> Iterator[Answer]:
    import numpy as np

    for query in lent.queries:
        scores = found.get(query.query_id, {})
        hits = sorted((row_of[document], score) for document, score in scores.items() if score > 0)
        entries = np.array([row for row, _ in hits], np.int64)
        yield Answer(query.query_id, entries, np.array([score for _, score in hits], np.float64))


def _first(faults: list[Fault], where: str) -> list[Fault]:
    more = len(faults) - MOST_FAULTS
    return faults[:MOST_FAULTS] + ([Fault(where, f"{more} more faults", "mend these first")] if more > 0 else [])
