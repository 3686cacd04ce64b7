"""Rankings and answers of a published run as TREC files, for other tools of the field.

A document is a content class, called by its first entry, ``tap::path``. A run file has six columns; a file of qrels
has four, of which the second is the place of the right answer that the document would be.

Tools order a ranking by its scores, break ties each in its own way, and trec_eval reads scores in single precision. So
scores fall strictly in single precision here: the engine's score, or, where that would tie with the hit above, the next
smaller number.

A right answer can be several documents: a name that several classes carry, exemplars of which any will do. Assay
counts such an answer once. Tools count documents; so there are two files of qrels for each set and grading:

- ``<set>.<grading>.qrels`` names every document that answers, for scoring any system;
- ``<set>.<grading>.<engine>.qrels`` names for each right answer the one document that this engine's ranking is
  credited with, or one that it missed. With it, other tools find the published values.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from pydantic import JsonValue

from pipeline import __version__
from pipeline.reports.answers import Answers, Credit, Slot, credits
from pipeline.reports.reading import Row, count_of, number_of, records_of, rows_of, text_of

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

TABLES = ("runs", "entries", "classes", "rankings", "items")
"""The tables of a run that are read."""
METADATA_VERSION = "0.2"
"""Version of the ir_metadata scheme."""
MEASURES = ("recall_10", "ndcg_cut_10", "success_1", "recip_rank")
_VISIBLE = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in "%#")


class TrecFile(NamedTuple):
    """A file, to be written."""

    name: str
    text: str
    queries: int
    rows: int


def quoted(text: str | bytes) -> str:
    """Return ``text`` as an identifier of TREC files: ``#`` and all but visible ASCII percent-encoded."""
    return quote(text, safe=_VISIBLE)


class Exported:
    """A published run, to be written as TREC files."""

    def __init__(self, tables: Mapping[str, pa.Table]) -> None:
        """Take the tables named in ``TABLES``."""
        (self.run,) = rows_of(tables["runs"])
        self._answers = Answers(tables["entries"])
        self._documents = {text_of(row, "class_id"): _document(row) for row in rows_of(tables["classes"])}
        self._items: dict[tuple[str, str, str], list[Row]] = {}
        for item in sorted(rows_of(tables["items"]), key=lambda item: text_of(item, "query_id")):
            key = (text_of(item, "golden_set"), text_of(item, "engine"), text_of(item, "grading"))
            self._items.setdefault(key, []).append(item)
        self._rankings: dict[tuple[str, str], dict[str, list[Row]]] = {}
        for hit in sorted(
            rows_of(tables["rankings"]), key=lambda hit: (text_of(hit, "query_id"), count_of(hit, "rank"))
        ):
            of_run = self._rankings.setdefault((text_of(hit, "golden_set"), text_of(hit, "engine")), {})
            of_run.setdefault(text_of(hit, "query_id"), []).append(hit)

    def files(self, header: bool = False) -> list[TrecFile]:
        """Return every file; with ``header`` run files begin with their metadata, in comment lines."""
        written = []
        for golden_set, engine in sorted({key[:2] for key in self._items}):
            written += self._run_files(golden_set, engine, header)
        answered = set()
        for golden_set, engine, grading in sorted(self._items):
            if (golden_set, grading) not in answered:
                answered.add((golden_set, grading))
                written.append(self._answers_of(golden_set, engine, grading))
            written.append(self._credited(golden_set, engine, grading))
        return sorted(written)

    def _run_files(self, golden_set: str, engine: str, header: bool) -> list[TrecFile]:
        rankings = self._rankings.get((golden_set, engine), {})
        name = f"{_file_part(golden_set)}.{_file_part(engine)}"
        lines = [line for query_id, hits in rankings.items() for line in self._ranking(query_id, hits, engine)]
        metadata = as_yaml(self._metadata(golden_set, engine, rankings))
        above = [*(f"# {line}" for line in ["ir_metadata.start", *metadata, "ir_metadata.end"])] if header else []
        return [
            TrecFile(f"{name}.run", _text(above + lines), len(rankings), len(lines)),
            TrecFile(f"{name}.ir_metadata.yml", _text(metadata), 0, len(metadata)),
        ]

    def _ranking(self, query_id: str, hits: Sequence[Row], engine: str) -> Iterator[str]:
        scores = falling([number_of(hit, "score") or 0.0 for hit in hits])
        for hit, score in zip(hits, scores, strict=True):
            document = self._documents[text_of(hit, "class_id")]
            yield f"{quoted(query_id)} Q0 {document} {hit['rank']} {score} {_tag(engine)}"

    def _answers_of(self, golden_set: str, engine: str, grading: str) -> TrecFile:
        """Name every document that answers, whatever was ranked."""
        rows = [
            (text_of(item, "query_id"), place, document, 1)
            for item in self._items[golden_set, engine, grading]
            for place, slot in enumerate(self._answers.slots(item), 1)
            for document in sorted(self._documents[class_id] for class_id in slot.classes)
        ]
        return _qrels(f"{_file_part(golden_set)}.{grading}.qrels", rows)

    def _credited(self, golden_set: str, engine: str, grading: str) -> TrecFile:
        """Name for each right answer one document: the one that the ranking is credited with, or one it missed."""
        rankings = self._rankings.get((golden_set, engine), {})
        rows = []
        for item in self._items[golden_set, engine, grading]:
            query_id = text_of(item, "query_id")
            hits = rankings.get(query_id, [])
            slots = self._answers.slots(item)
            worth = credits(item, slots, hits)
            for hit, credit in zip(hits, worth, strict=True):
                if credit.grade is not None:
                    rows.append(
                        (query_id, (credit.slot or 0) + 1, self._documents[text_of(hit, "class_id")], credit.grade)
                    )
            taken = {text_of(hit, "class_id") for hit in hits}
            for place, slot in _unfilled(slots, worth):
                rows.append((query_id, place, self._missed(slot, place, taken), 1))
        return _qrels(f"{_file_part(golden_set)}.{grading}.{_file_part(engine)}.qrels", rows)

    def _missed(self, slot: Slot, place: int, taken: set[str]) -> str:
        """Return a document of a right answer that was not found, and take it.

        Where all of them are taken, the ranking shows them by entries that are called otherwise, or they stand for
        other answers: then it is a document that does not exist.
        """
        free = sorted((self._documents[class_id], class_id) for class_id in slot.classes if class_id not in taken)
        if not free:
            return f"missed:{place}"
        taken.add(free[0][1])
        return free[0][0]

    def _metadata(self, golden_set: str, engine: str, rankings: Mapping[str, Sequence[Row]]) -> dict[str, JsonValue]:
        (used,) = [row for row in records_of(self.run, "engines") if row["engine"] == engine]
        (asked,) = [row for row in records_of(self.run, "golden_sets") if row["name"] == golden_set]
        return {
            "schema version": METADATA_VERSION,
            "tag": _tag(engine),
            "platform": {"software": {"libraries": {"python": [f"assay=={__version__}"]}}},
            "implementation": {"executable": {"cmd": "assay run"}},
            "method": {
                "automatic": True,
                "retrieval": [
                    {
                        "name": engine,
                        "options": used["options"],
                        "fingerprint": used["fingerprint"],
                        "made of": json.loads(text_of(used, "made_of") or "null") if "made_of" in used else None,
                    },
                ],
                "scores": "strictly falling in single precision; a tie takes the next smaller number",
            },
            "research goal": {"evaluation": {"reported measures": list(MEASURES)}},
            "data": {
                "test collection": {
                    "name": golden_set,
                    "topics": asked["digest"],
                    "corpus": self.run["corpus"],
                    "documents": self.run["classes"],
                    "class rule": self.run["class_rule"],
                    "queries": asked["items"],
                    "queries without a hit": count_of(asked, "items") - len(rankings),
                },
            },
            "assay run": self.run["run_id"],
        }


def falling(scores: Sequence[float]) -> list[str]:
    """Return ``scores``, which never rise, as text that falls strictly, read in single or in double precision.

    A score stands as it is where it is smaller, in single precision, than the one before it.
    """
    import numpy as np

    written: list[str] = []
    last: np.float32 | None = None
    with np.errstate(over="ignore"):
        for score in scores:
            single = np.float32(score)
            if last is None or single < last:
                written.append(repr(float(score)))
            else:
                single = np.nextafter(last, np.float32("-inf"))
                written.append(repr(float(single)))
            last = single
    return written


def as_yaml(value: Mapping[str, JsonValue]) -> list[str]:
    """Return ``value`` as lines of YAML."""
    import yaml

    return str(yaml.safe_dump(dict(value), sort_keys=False, allow_unicode=False, width=100_000)).splitlines()


def _unfilled(slots: Sequence[Slot], worth: Sequence[Credit]) -> list[tuple[int, Slot]]:
    filled = {credit.slot for credit in worth}
    return [(place, slot) for place, slot in enumerate(slots, 1) if place - 1 not in filled]


def _qrels(name: str, rows: Sequence[tuple[str, int, str, int]]) -> TrecFile:
    """Write judgments, each document once for a question: a class of two names can be two of its answers."""
    once: dict[tuple[str, str], str] = {}
    for query_id, place, document, grade in sorted(rows):
        once.setdefault((query_id, document), f"{quoted(query_id)} {place} {document} {grade}")
    return TrecFile(name, _text([*once.values()]), len({row[0] for row in rows}), len(once))


def _text(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _tag(engine: str) -> str:
    return f"assay-{quoted(engine)}"


def _file_part(name: str) -> str:
    return quote(name, safe="")


def _document(row: Row) -> str:
    path = row["path"]
    assert isinstance(path, bytes)
    return f"{quoted(text_of(row, 'tap'))}::{quoted(path)}"
