"""Judgments as files: JSON Lines with every field, and TREC qrels with question, document and grade."""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import quote, unquote

from pydantic import JsonValue, ValidationError

from pipeline.jsonlines import BOM, Wrong, bad_input, in_row, no_text, rows
from pipeline.judgments.qrels import Judgment, Qrel, Source, judgment_faults
from pipeline.judgments.resolution import Grades
from pipeline.judgments.targets import Targets

_PLAIN = string.punctuation.replace("%", "").replace("#", "")
_GIVEN_BY_US = ("id", "seq", "createdAt", "position")
"""Fields of an exported judgment that are made anew where it is imported."""


def parse_jsonl(path: Path, data: bytes, targets: Targets) -> list[Judgment]:
    """Read judgments from JSON Lines; each gets the digest of the body that it names.

    A row that brings its ``judged_sha256`` may name what this corpus does not hold: it counts where its content is.

    Raises:
        BadInput: rows are wrong; all faults are named with their line and field.
    """
    read: list[Judgment] = []
    wrongs: list[tuple[int, Wrong]] = []
    for line, value, found in rows(data):
        wrongs += [(line, wrong) for wrong in found]
        if value is None:
            continue
        given = {key: content for key, content in value.items() if key not in _GIVEN_BY_US and content is not None}
        judgment, faults = _typed(given)
        if judgment is not None:
            completed, between = _completed(judgment, targets)
            read.append(completed)
            bad = {wrong.field for wrong in faults}
            faults += [wrong for wrong in between if wrong.field not in bad]
        wrongs += [(line, wrong) for wrong in faults]
    if wrongs:
        raise bad_input(path, wrongs)
    return read


def parse_trec(path: Path, data: bytes, targets: Targets, source: Source, annotator: str | None) -> list[Judgment]:
    """Read judgments from TREC qrels: question, a column that is not read, document, grade.

    A document is named in any way that ``Targets`` knows, percent-encoded where it holds a space. A negative grade, by
    which some tools mean «not judged», is refused: leave such lines out.

    Raises:
        BadInput: lines are wrong; all faults are named with their line.
    """
    read: list[Judgment] = []
    wrongs: list[tuple[int, Wrong]] = []
    if data.startswith(BOM):
        wrongs.append((1, Wrong("", "starts with a byte order mark", "save the file as UTF-8 without one")))
        data = data.removeprefix(BOM)
    for number, line in enumerate(data.split(b"\n"), start=1):
        try:
            words = line.decode("utf-8").split()
        except UnicodeDecodeError as error:
            wrongs.append((number, Wrong("", f"byte {error.start + 1} is not UTF-8", "save the file as UTF-8")))
            continue
        if not words or words[0].startswith("#"):
            continue
        if len(words) != 4:
            wrongs.append((number, Wrong("", f"has {len(words)} columns", "write question, 0, document, grade")))
            continue
        judged = _trec_row(words, targets, source, annotator)
        if isinstance(judged, Judgment):
            read.append(judged)
        else:
            wrongs += [(number, wrong) for wrong in judged]
    if wrongs:
        raise bad_input(path, wrongs)
    return read


def _trec_row(words: Sequence[str], targets: Targets, source: Source, annotator: str | None) -> Judgment | list[Wrong]:
    query_id, _, document, written = words
    asked, named = _decoded(query_id), _decoded(document)
    wrongs: list[Wrong] = []
    if asked is None or re.search(r"[\s\0]", asked):
        wrongs.append(Wrong("question", f"is no id: {in_row(query_id)}", "mend it"))
    if written not in ("0", "1", "2", "3"):
        wrongs.append(Wrong("grade", f"is none of 0 to 3: {in_row(written)}", "mend the grade"))
    target = "is no text in percent-encoding" if named is None else targets.find(named)
    if isinstance(target, str):
        wrongs.append(Wrong("document", f"{in_row(document)} {target}", "mend it or take it out"))
    elif not wrongs:
        return Judgment(
            query_id=str(asked),
            doc_id=target.doc_id,
            chunk_id=target.chunk_id,
            judged_sha256=target.body,
            grade=int(written),
            source=source,
            annotator=annotator,
        )
    return wrongs


def _decoded(word: str) -> str | None:
    """Return a word without its percent-encoding; None where that is no text."""
    try:
        return unquote(word, errors="strict") or None
    except UnicodeDecodeError:
        return None


def as_jsonl(qrels: Iterable[Qrel]) -> Iterator[str]:
    """Yield each judgment as a line, all fields that it has."""
    for qrel in qrels:
        yield qrel.model_dump_json(by_alias=True, exclude_none=True)


def as_trec(grades: Grades) -> Iterator[str]:
    """Yield resolved grades as lines of TREC qrels, sorted; a document is called by its class.

    Ids are percent-encoded where they hold a space, a percent sign, or what is no ASCII.
    """
    for query_id, of_query in sorted(grades.items()):
        for class_id, resolved in sorted(of_query.items()):
            yield f"{quote(query_id, safe=_PLAIN)} 0 class:{class_id} {resolved.grade}"


def typed_faults(error: ValidationError) -> Iterator[Wrong]:
    """Yield what pydantic found in a row that people wrote, one fault a field."""
    for found in error.errors(include_url=False):
        field = " ".join(str(part + 1) if isinstance(part, int) else str(part) for part in found["loc"])
        match found["type"]:
            case "extra_forbidden":
                known = ", ".join(each.alias or name for name, each in Judgment.model_fields.items())
                yield Wrong(field, "unknown field", f"use one of: {known}")
            case "missing":
                yield Wrong(field, "is missing", "write it")
            case _:
                yield Wrong(field, f"{found['msg']}: {in_row(found['input'])}", "mend the value")


def _typed(given: Mapping[str, JsonValue]) -> tuple[Judgment | None, list[Wrong]]:
    """Return a judgment without its fields that are wrong by themselves, as far as there is one, and those faults."""
    faults = [wrong._replace(field=key) for key, content in given.items() if (wrong := no_text(content))]
    try:
        return Judgment.model_validate(_without(given, faults)), faults
    except ValidationError as error:
        told = {fault.field for fault in faults}
        faults += [wrong for wrong in typed_faults(error) if wrong.field not in told]
    rest = _without(given, faults)
    return (None if "source" not in rest else Judgment.model_validate(rest)), faults


def _without(given: Mapping[str, JsonValue], faults: Iterable[Wrong]) -> dict[str, JsonValue]:
    """Return a row without its wrong fields; what every judgment has stands there with a value that says nothing."""
    bad = {wrong.field.split(" ")[0] for wrong in faults}
    stand_in: dict[str, JsonValue] = {"queryId": "-", "grade": 0}
    kept = {key: content for key, content in given.items() if key not in bad}
    return kept | {key: content for key, content in stand_in.items() if key in bad}


def _completed(judgment: Judgment, targets: Targets) -> tuple[Judgment, list[Wrong]]:
    """Return a judgment with the digest of its body, and what is wrong with what it names.

    What it says to be judged has to be one content, as far as the corpus can tell: an entry at another pin, and content
    that is gone, are believed where the digest is given.
    """
    faults = list(judgment_faults(judgment))
    named = {"chunkId": judgment.chunk_id, "docId": judgment.doc_id}
    found = {field: targets.find(written) for field, written in named.items() if written is not None}
    bodies = {field: target.body for field, target in found.items() if not isinstance(target, str)}
    body = judgment.judged_sha256 or bodies.get("chunkId") or bodies.get("docId")
    for field, target in found.items():
        written = str(named[field])
        if isinstance(target, str):
            if body is None or (field == "docId" and targets.holds_tap_of(written)):
                faults.append(Wrong(field, f"{in_row(written)} {target}", "mend it, or give `judged_sha256` alone"))
        elif target.body != body and not targets.are_one(target.body, str(body)):
            faults.append(Wrong(field, f"{in_row(written)} is other content than the row judges", "keep one of them"))
    chunk = {"chunk_id": f"class:{bodies['chunkId']}"} if "chunkId" in bodies and judgment.judged_sha256 is None else {}
    return judgment.model_copy(update={"judged_sha256": body, **chunk}), faults
