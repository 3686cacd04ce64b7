"""Golden sets as files: JSON Lines that people write, read strictly, then frozen under a digest.

Blank lines and lines that start with ``#`` are skipped. A row that is wrong in any way stops the run, and all wrong
rows are named at once. A key whose value is null counts as absent.
"""

from __future__ import annotations

import hashlib
import itertools
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from pydantic import ConfigDict, Field, JsonValue, ValidationError

from pipeline.catalog.names import slug
from pipeline.errors import BadInput, Fault
from pipeline.golden.assertions import (
    Assertion,
    Citation,
    GoldenConcept,
    assertion_faults,
    citation_faults,
    concept_faults,
)
from pipeline.golden.decisions import Decision, decision_faults
from pipeline.jsonlines import Wrong, bad_input, in_row, no_text, read_file, rows
from pipeline.records import Record
from pipeline.store import Stage, canonical_json

RESOLVE = Stage("resolve", 2)

QuestionType = Literal[
    "simple",
    "simple_w_condition",
    "set",
    "comparison",
    "aggregation",
    "multi_hop",
    "post_processing",
    "false_premise",
    "other",
]
Popularity = Literal["head", "torso", "tail"]
Dynamism = Literal["static", "slow", "fast"]
Split = Literal["tuning", "holdout", "regression"]
Match = Literal["any", "all"]
Mode = Literal["exemplar", "name"]

CLASS_EXEMPLAR = re.compile(r"class:([0-9a-f]{64})")
"""An exemplar that names content by the digest of its normalised body."""

_PATTERNS = {
    "query": "is blank",
    "question": "is blank",
    "queryId": "is empty or holds white space",
    "origin": "is none of authored, imported, promoted, promoted:<feedback id>",
    "class": "is no `class:` with the 64 hex digits of a body digest",
    "entry": "is no `tap::path`",
    "by": "is blank",
    "text": "is blank",
    "arg": "is blank",
    "conceptId": "is blank",
    "docId": "is no `tap@pin:path`, and no `tap::path`",
    "chunkId": "is no `class:` with the 64 hex digits of a body digest",
}
"""What a field says whose pattern does not match."""

Text = Annotated[str, Field(min_length=1)]
Asked = Annotated[str, Field(pattern=r"\S")]
Identifier = Annotated[str, Field(pattern=r"^\S+$")]


MOST_VERSIONS = 1_000_000_000
"""More are no count but a slip, and no database could keep them."""


class GoldenRow(Record):
    """A row of a golden set as people write it: the short form, or the full item."""

    model_config = ConfigDict(
        populate_by_name=False, json_schema_extra={"anyOf": [{"required": ["query"]}, {"required": ["question"]}]}
    )

    query: Asked | None = Field(default=None, description="The question; the short name of `question`.")
    question: Asked | None = Field(default=None, description="The question, unique in the set. Give this or `query`.")
    relevant: list[str] | None = Field(default=None, description="Names, as slugs, of what answers the question.")
    exemplar: str | list[str] | None = Field(
        default=None,
        description="Entries `tap::path`, or content `class:<body digest>`, that answer the question. They decide.",
    )
    match: Match | None = Field(
        default=None,
        description="`any` (the default): all exemplars are one right answer. `all`: each class is one of its own.",
    )
    kind: Text | None = Field(default=None, description="Kind of entry that is wanted; a facet.")
    note: str | None = Field(default=None, description="For people.")
    query_id: Identifier | None = Field(
        default=None, alias="queryId", description="Stable for life, no white space; default: a digest of the question."
    )
    item_version: int | None = Field(
        default=None,
        ge=1,
        le=MOST_VERSIONS,
        description="1, 2, ...: of rows with one `queryId` the highest is asked.",
    )
    answerable: bool | None = Field(
        default=None, description="Whether the corpus holds an answer; default true, but false for `false_premise`."
    )
    question_type: QuestionType | None = Field(default=None, alias="questionType", description="Type of the question.")
    popularity: Popularity | None = Field(default=None, description="How often such a thing is asked.")
    dynamism: Dynamism | None = Field(default=None, description="How fast the answer changes.")
    language: Text | None = Field(default=None, description="Language of the question; default `en`.")
    cluster_id: Text | None = Field(
        default=None, description="Items that are not independent share one; default: the item's own id."
    )
    split: Split | None = Field(default=None, description="What the item may be used for.")
    origin: str | None = Field(
        default=None,
        pattern=r"^(authored|imported|promoted(:\S+)?)$",
        description="`authored`, `imported`, or `promoted`, with `:` and the feedback id.",
    )
    decisions: list[Decision] | None = Field(
        default=None, description="Classes that somebody counted as answers, or did not, and why."
    )
    assertions: list[Assertion] | None = Field(
        default=None, description="What must or should hold of a ranking for the question."
    )
    golden_concepts: list[GoldenConcept] | None = Field(
        default=None, description="Concepts, and whether they belong among the first hits."
    )
    citations: list[Citation] | None = Field(
        default=None,
        description="Entries that answer the question. They decide in a row that has no exemplar and no name.",
    )
    created_at: str | None = Field(
        default=None, alias="createdAt", description="When it was written, ISO 8601. No part of the frozen digest."
    )


_NESTED = ("decisions", "assertions", "golden_concepts", "citations")
"""Fields whose entries have fields of their own."""
_ATTRIBUTES = {field.alias or name: name for name, field in GoldenRow.model_fields.items()}
_KNOWN = tuple(_ATTRIBUTES)


class GoldenItem(Record):
    """A question of a golden set, with every default filled in."""

    query_id: str = Field(description="Id of the item.")
    item_version: int = Field(description="Version of the item.")
    question: str = Field(description="What is asked.")
    relevant: tuple[str, ...] = Field(description="Relevant names, as slugs.")
    exemplar: tuple[str, ...] = Field(description="Exemplars as written.")
    match: Match = Field(description="`any`: the exemplars are one right answer; `all`: each class is one.")
    kind: str | None = Field(description="Kind of entry that is wanted.")
    note: str | None = Field(description="For people.")
    answerable: bool = Field(description="Whether the corpus holds an answer.")
    question_type: QuestionType | None = Field(description="Type of the question.")
    popularity: Popularity | None = Field(description="How often such a thing is asked.")
    dynamism: Dynamism | None = Field(description="How fast the answer changes.")
    language: str = Field(description="Language of the question.")
    cluster_id: str = Field(description="Items that are not independent share one.")
    split: Split | None = Field(description="What the item may be used for.")
    origin: str | None = Field(description="Where the item comes from.")
    decisions: tuple[Decision, ...] = Field(description="What was decided about classes, as written.")
    assertions: tuple[Assertion, ...] = Field(default=(), description="What must or should hold of a ranking.")
    golden_concepts: tuple[GoldenConcept, ...] = Field(default=(), description="What concepts are worth.")
    citations: tuple[Citation, ...] = Field(default=(), description="What answers the question, as written.")
    line: int = Field(description="Line of its file, from 1.")

    @property
    def mode(self) -> Mode | None:
        """How the row is graded: on its exemplars, else by name; None where nothing can be relevant."""
        return "exemplar" if self.exemplar else "name" if self.relevant else None


@dataclass(frozen=True)
class GoldenSet:
    """A frozen golden set."""

    name: str
    """Stem of the file."""
    path: Path
    items: tuple[GoldenItem, ...]
    """The items that are asked, in the order of the file."""
    superseded: int
    """Rows that stay in the file as older versions of an item."""
    digest: str
    """SHA-256 (hex) of the frozen set, older versions included."""
    written: tuple[Mapping[str, JsonValue], ...] = ()
    """Every row as it is frozen, older versions included, in the order of the file."""


class Draft(NamedTuple):
    """A golden set as far as it can be read, so that what it names can be looked up though rows are wrong."""

    golden: GoldenSet
    wrongs: list[tuple[int, Wrong]]
    """Everything that is wrong, by line; without any, the set is what ``parse_golden_set`` returns."""
    lines: tuple[int, ...] = ()
    """The line of each row of ``golden.written``."""
    places: Mapping[tuple[int, str], Sequence[int]] = {}
    """Where the members of a list stand that lost some of them, by line and field."""

    @property
    def faults(self) -> list[Fault]:
        """What is wrong, in the order of the lines."""
        return list(bad_rows(self.golden, self.wrongs).faults)

    def with_wrongs(self, found: Iterable[tuple[int, Wrong]]) -> Draft:
        """Add what is wrong with what the rows name, where the row did not say something of the same field already."""
        told = {(line, wrong.field) for line, wrong in self.wrongs}
        placed = [(line, wrong._replace(field=self._placed(line, wrong.field))) for line, wrong in found]
        new = [(line, wrong) for line, wrong in placed if (line, wrong.field) not in told]
        return self._replace(wrongs=[*self.wrongs, *new])

    def _placed(self, line: int, field: str) -> str:
        return _placed(field, {key: places for (at, key), places in self.places.items() if at == line})


class _Read(NamedTuple):
    """A row, as far as it can be read."""

    item: GoldenItem
    written: dict[str, JsonValue]
    asks: bool
    """Whether it has a question."""


def read_golden_set(path: Path) -> GoldenSet:
    """Read a golden set from a file of JSON Lines.

    Raises:
        BadInput: the file cannot be read, or rows are wrong; all faults are named with their line and field.
    """
    return parse_golden_set(path, read_file(path))


def parse_golden_set(path: Path, data: bytes) -> GoldenSet:
    """Read a golden set from the bytes ``data`` of the file ``path``, which is only named in faults.

    Raises:
        BadInput: rows are wrong; all faults are named with their line and field.
    """
    draft = draft_golden_set(path, data)
    if draft.wrongs:
        raise bad_rows(draft.golden, draft.wrongs)
    return draft.golden


def draft_golden_set(path: Path, data: bytes) -> Draft:
    """Read what can be read of a golden set, and note what is wrong. A set with wrong rows has no digest."""
    read: list[_Read] = []
    wrongs: list[tuple[int, Wrong]] = []
    places: dict[tuple[int, str], Sequence[int]] = {}
    for line, value, found in rows(data):
        wrongs += [(line, wrong) for wrong in found]
        if value is None:
            continue
        row, in_fields, moved = _read_row(line, value)
        wrongs += [(line, wrong) for wrong in in_fields]
        read.append(row)
        places |= {(line, field): left for field, left in moved.items()}
    if not read and not wrongs:
        wrongs.append((0, Wrong("", "holds no row", "write at least one question")))
    wrongs += _repeats([row for row in read if row.asks])
    items = [row.item for row in _asked(read)]
    written = tuple(row.written for row in read)
    digest = "" if wrongs else frozen_digest(written)
    golden = GoldenSet(_name_of(path), path, tuple(items), len(read) - len(items), digest, written)
    return Draft(golden, wrongs, tuple(row.item.line for row in read), places)


KEPT = "ledger:"
"""What the place of a set that the ledger keeps begins with; its name follows."""


def _name_of(path: Path) -> str:
    place = str(path)
    return place.removeprefix(KEPT) if place.startswith(KEPT) else path.stem


def frozen_digest(rows: Iterable[Mapping[str, JsonValue]]) -> str:
    """Return the SHA-256 (hex) of a frozen set, the same for any order of its rows and of their keys.

    Each row is full (``queryId`` and ``question``). ``createdAt`` is dropped, each row becomes canonical JSON, the
    rows are sorted by id (the versions of one id by their text) and joined by LF.
    """
    frozen = [{key: value for key, value in row.items() if key != "createdAt"} for row in rows]
    lines = [line for _, line in sorted((str(row["queryId"]), canonical_json(row)) for row in frozen)]
    return hashlib.sha256("\n".join(lines).encode("utf-8")).hexdigest()


def default_id(question: str) -> str:
    """Return the id of an item that was given none: the first 16 hex digits of the SHA-256 of its text."""
    return hashlib.sha256(question.encode("utf-8")).hexdigest()[:16]


_Places = Mapping[str, Sequence[int]]
"""Where the members of a list stand in the row, counted from 1, of lists that lost those of the wrong type."""


def _read_row(line: int, value: Mapping[str, JsonValue]) -> tuple[_Read, list[Wrong], _Places]:
    given = {key: content for key, content in value.items() if content is not None}
    row, wrongs, places = _typed(given)
    of_text = list(_text_faults(given, wrongs))
    row = row.model_copy(update={_ATTRIBUTES[wrong.field]: None for wrong in of_text})
    bad = {wrong.field.split(" ")[0] for wrong in [*wrongs, *of_text]}
    between = (wrong._replace(field=_placed(wrong.field, places)) for wrong in _row_faults(row, bad))
    question = row.question or row.query
    # What asks nothing has no id either: its line tells it from others.
    item = _item(row, question or f"line {line}", line)
    return _Read(item, _full(given, item.question), question is not None), [*wrongs, *between, *of_text], places


def _typed(given: Mapping[str, JsonValue]) -> tuple[GoldenRow, list[Wrong], _Places]:
    """Return the row, less what is of the wrong type or of no known name, and what is wrong with that."""
    wrongs = [_unknown(key) for key in given if key not in _KNOWN]
    known = {key: content for key, content in given.items() if key in _KNOWN}
    try:
        return GoldenRow.model_validate(known), wrongs, {}
    except ValidationError as error:
        bad: dict[str, set[int | None]] = {}
        for found in error.errors(include_url=False):
            place = next((part for part in found["loc"] if isinstance(part, int)), None)
            bad.setdefault(str(found["loc"][0]), set()).add(place)
        places: dict[str, list[int]] = {}
        for key, wrong in bad.items():
            content = known.pop(key)
            # A list that is also refused as the text that it is not has faults without a place.
            if isinstance(content, list) and wrong - {None}:
                left = [place for place in range(len(content)) if place not in wrong]
                known[key] = [content[place] for place in left]
                places[key] = [place + 1 for place in left]
        return GoldenRow.model_validate(known), wrongs + _type_faults(error), places


def _placed(field: str, places: _Places) -> str:
    """Return a field of a row with the place of a member as it is written."""
    key, *rest = field.split(" ")
    return " ".join([key, str(places[key][int(rest[0]) - 1]), *rest[1:]]) if key in places and rest else field


def _unknown(key: str) -> Wrong:
    return Wrong(key, "unknown field", f"use one of: {', '.join(_KNOWN)}")


def _type_faults(error: ValidationError) -> list[Wrong]:
    """Turn what pydantic found into one fault a field; the branches of a union are one fault."""
    wrongs: dict[str, Wrong] = {}
    for found in error.errors(include_url=False):
        key, *below = found["loc"]
        entry = [str(part + 1) for part in below if isinstance(part, int)]
        inner = [str(part) for part in below if isinstance(part, str) and key in _NESTED]
        field = " ".join([str(key), *entry, *inner])
        no_match = found["type"] == "string_pattern_mismatch"
        says = _PATTERNS[inner[-1] if inner else str(key)] if no_match else found["msg"]
        if key == "exemplar" and not entry:
            says = "neither text nor a list of texts"
        wrongs[field] = Wrong(field, f"{says}: {in_row(found['input'])}", "mend the value")
    # A list of which one member is wrong also fails as the text that it is not; the member says it better.
    members = {field.split(" ")[0] for field in wrongs if " " in field}
    return [wrong for field, wrong in wrongs.items() if field not in members]


def _row_faults(row: GoldenRow, bad: Collection[str]) -> Iterator[Wrong]:
    """Yield what is wrong between the fields of a row, but for what its ``bad`` fields would have said."""
    if row.question is None and row.query is None and not {"question", "query"} & set(bad):
        yield Wrong("question", "is missing", "write the question")
    if row.question is not None and row.query is not None:
        yield Wrong("query", "stands beside `question`", "keep one of them")
    yield from itertools.starmap(Wrong, decision_faults(row.decisions or []))
    yield from itertools.starmap(Wrong, concept_faults(row.golden_concepts or []))
    answerable = _answerable_if_known(row, bad)
    yield from _relevance_faults(row, bad, answerable)
    yield from itertools.starmap(Wrong, assertion_faults(row.assertions or [], answerable))
    yield from itertools.starmap(Wrong, citation_faults(row.citations or [], answerable))
    yield from _name_faults(row.relevant or [])
    yield from _exemplar_faults(_as_tuple(row.exemplar))
    if row.match is not None and not row.exemplar and "exemplar" not in bad:
        yield Wrong("match", "stands without an exemplar, to which alone it applies", "leave it out, or add exemplars")
    if row.created_at is not None and not _is_time(row.created_at):
        yield Wrong("createdAt", f"no ISO 8601 time: {in_row(row.created_at)}", "write it like 2026-07-01T00:00:00Z")


def _relevance_faults(row: GoldenRow, bad: Collection[str], answerable: bool | None) -> Iterator[Wrong]:
    if row.question_type == "false_premise" and row.answerable:
        yield Wrong("answerable", "is true for a false premise", "a false premise has no answer: leave it out")
    elif answerable:
        # An item that says that there is an answer, or what must hold of it, may leave to judgments which it is.
        told = row.relevant or row.exemplar or row.citations or row.assertions or row.answerable
        if not told and not {"relevant", "exemplar", "citations", "assertions"} & set(bad):
            todo = "add one; or write `answerable`: true leaves it to judgments, false says that nothing does"
            yield Wrong("relevant", "no name and no exemplar says what answers", todo)
    elif answerable is not None:
        included = any(decision.include for decision in row.decisions or ())
        for field, value in (("relevant", row.relevant), ("exemplar", row.exemplar), ("decisions", included)):
            if value:
                yield Wrong(field, "stands in a row that is not answerable", f"leave out `{field}` or `answerable`")


def _name_faults(names: Sequence[str]) -> Iterator[Wrong]:
    for place, name in enumerate(names, start=1):
        if slug(name) != name:
            yield Wrong(f"relevant {place}", f"no entry can be called {in_row(name)}", "write the catalogue's slug")
        if name in names[: place - 1]:
            yield Wrong(f"relevant {place}", f"names {in_row(name)} again", "keep one")


def _text_faults(given: Mapping[str, JsonValue], wrongs: Iterable[Wrong]) -> Iterator[Wrong]:
    """Refuse strings that are no text, but for those in fields that are refused already."""
    bad = {wrong.field.split(" ")[0] for wrong in wrongs}
    for name, value in given.items():
        found = no_text(value)
        if found is not None and name in _ATTRIBUTES and name not in bad:
            yield found._replace(field=name)


def _exemplar_faults(exemplars: Sequence[str]) -> Iterator[Wrong]:
    for place, exemplar in enumerate(exemplars, start=1):
        tap, separator, path = exemplar.partition("::")
        if not CLASS_EXEMPLAR.fullmatch(exemplar) and not (tap and separator and path):
            todo = "write `tap::path`, or `class:` and the 64 hex digits of a body digest"
            yield Wrong(f"exemplar {place}", f"names no entry: {in_row(exemplar)}", todo)
        if exemplar in exemplars[: place - 1]:
            yield Wrong(f"exemplar {place}", f"names {in_row(exemplar)} again", "keep one")


def _is_time(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _answerable(row: GoldenRow) -> bool:
    return row.question_type != "false_premise" if row.answerable is None else row.answerable


def _answerable_if_known(row: GoldenRow, bad: Collection[str]) -> bool | None:
    """Return whether the row has an answer; None where a field that says so is of no use."""
    open_ = "answerable" in bad or (row.answerable is None and "questionType" in bad)
    return None if open_ else _answerable(row)


def _as_tuple(exemplar: str | list[str] | None) -> tuple[str, ...]:
    return (exemplar,) if isinstance(exemplar, str) else tuple(exemplar or ())


def _cited(row: GoldenRow) -> tuple[str, ...]:
    """Return what answers a row that has citations, but no exemplar and no name."""
    return () if row.relevant else tuple(dict.fromkeys(citation.target for citation in row.citations or ()))


def _full(given: Mapping[str, JsonValue], question: str) -> dict[str, JsonValue]:
    """Return a row as it is frozen: as written, its text under `question`, and with its id."""
    written = {key: value for key, value in given.items() if key != "query"}
    return {"queryId": default_id(question), **written, "question": question}


def _item(row: GoldenRow, question: str, line: int) -> GoldenItem:
    query_id = row.query_id or default_id(question)
    return GoldenItem(
        query_id=query_id,
        item_version=row.item_version or 1,
        question=question,
        relevant=tuple(row.relevant or ()),
        exemplar=_as_tuple(row.exemplar) or _cited(row),
        match=row.match or "any",
        kind=row.kind,
        note=row.note,
        answerable=_answerable(row),
        question_type=row.question_type,
        popularity=row.popularity,
        dynamism=row.dynamism,
        language=row.language or "en",
        cluster_id=row.cluster_id or query_id,
        split=row.split,
        origin=row.origin,
        decisions=tuple(row.decisions or ()),
        assertions=tuple(row.assertions or ()),
        golden_concepts=tuple(row.golden_concepts or ()),
        citations=tuple(row.citations or ()),
        line=line,
    )


def _asked(read: Sequence[_Read]) -> list[_Read]:
    """Return the rows of highest version of each id, in the order of the file."""
    newest: dict[str, _Read] = {}
    for row in read:
        known = newest.setdefault(row.item.query_id, row)
        if row.item.item_version > known.item.item_version:
            newest[row.item.query_id] = row
    return sorted(newest.values(), key=lambda row: row.item.line)


def _repeats(read: Sequence[_Read]) -> Iterator[tuple[int, Wrong]]:
    versions: dict[tuple[str, int], GoldenItem] = {}
    for item in (row.item for row in read):
        first = versions.setdefault((item.query_id, item.item_version), item)
        if first is not item and plain_question(first.question) == plain_question(item.question):
            yield item.line, Wrong("question", f"asks the same as line {first.line}", "keep one")
        elif first is not item:
            what = f"{in_row(item.query_id)}, version {item.item_version}, is the id of line {first.line} too"
            yield item.line, Wrong("queryId", what, "give each item an id of its own, or raise its `item_version`")
    questions: dict[str, GoldenItem] = {}
    for item in (row.item for row in _asked(read)):
        first = questions.setdefault(plain_question(item.question), item)
        if first is not item:
            yield item.line, Wrong("question", f"asks the same as line {first.line}", "keep one")


def bad_rows(golden: GoldenSet, wrongs: Iterable[tuple[int, Wrong]]) -> BadInput:
    """Return the error that names every fault, by line; of a set that the ledger keeps, which has none, by item."""
    if not str(golden.path).startswith(KEPT):
        return bad_input(golden.path, wrongs)
    ids = {item.line: f" item {item.query_id}" for item in golden.items}
    in_order = sorted(wrongs, key=lambda numbered: numbered[0])
    return BadInput(
        Fault(f"{golden.path}{ids.get(line, '')} {wrong.field}".rstrip(), wrong.what, wrong.todo)
        for line, wrong in in_order
    )


def is_set_name(name: str) -> bool:
    """Say whether a set can be called so: as the stem of a file can, and by nothing that moves a cursor."""
    fits = 0 < len(name.encode("utf-8", "replace")) <= LONGEST_NAME and "/" not in name and name not in (".", "..")
    return fits and not any(unicodedata.category(each) in _NO_NAME for each in name)


LONGEST_NAME = 200
"""Bytes of the name of a set; file systems allow 255, and files are called by a set and more."""
_NO_NAME = ("Cc", "Cs", "Zl", "Zp")


def plain_question(question: str) -> str:
    """Return a question in the form in which two are the same: its words, whatever their case and the space between."""
    return " ".join(question.split()).casefold()
