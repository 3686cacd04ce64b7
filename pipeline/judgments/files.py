"""Judgments as files: JSON Lines with every field, and TREC qrels with question, document and grade."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import unquote

from pydantic import ValidationError

from pipeline.jsonlines import Wrong, bad_input, in_row, rows
from pipeline.judgments.qrels import Judgment, Qrel, Source, judgment_faults
from pipeline.judgments.resolution import Grades
from pipeline.judgments.targets import Targets

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
        try:
            judgment = Judgment.model_validate(given)
        except ValidationError as error:
            wrongs += [(line, wrong) for wrong in typed_faults(error)]
            continue
        faults = list(judgment_faults(judgment))
        completed = judgment if faults else _with_body(judgment, targets)
        if isinstance(completed, Wrong):
            faults = [completed]
        else:
            read.append(completed)
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
    for number, line in enumerate(data.split(b"\n"), start=1):
        words = line.decode("utf-8", errors="replace").split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) != 4:
            wrongs.append((number, Wrong("", f"has {len(words)} columns", "write question, 0, document, grade")))
            continue
        query_id, _, document, written = words
        grade = int(written) if written.lstrip("-").isdecimal() else -1
        if grade not in range(4):
            wrongs.append((number, Wrong("grade", f"is none of 0 to 3: {in_row(written)}", "mend the grade")))
            continue
        target = targets.find(unquote(document))
        if isinstance(target, str):
            wrongs.append((number, Wrong("document", f"{in_row(document)} {target}", "mend it or take it out")))
            continue
        read.append(
            Judgment(
                query_id=unquote(query_id),
                doc_id=target.doc_id,
                chunk_id=target.chunk_id,
                judged_sha256=target.body,
                grade=grade,
                source=source,
                annotator=annotator,
            )
        )
    if wrongs:
        raise bad_input(path, wrongs)
    return read


def as_jsonl(qrels: Iterable[Qrel]) -> Iterator[str]:
    """Yield each judgment as a line, all fields that it has."""
    for qrel in qrels:
        yield qrel.model_dump_json(by_alias=True, exclude_none=True)


def as_trec(grades: Grades) -> Iterator[str]:
    """Yield resolved grades as lines of TREC qrels, sorted; a document is called by its class."""
    for query_id, of_query in sorted(grades.items()):
        for class_id, resolved in sorted(of_query.items()):
            yield f"{query_id} 0 class:{class_id} {resolved.grade}"


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


def _with_body(judgment: Judgment, targets: Targets) -> Judgment | Wrong:
    if judgment.judged_sha256 is not None:
        return judgment
    written = judgment.chunk_id or judgment.doc_id or ""
    target = targets.find(written)
    if isinstance(target, str):
        field = "chunkId" if judgment.chunk_id else "docId"
        return Wrong(field, f"{in_row(written)} {target}", "mend it, or give `judged_sha256`")
    named = {"chunk_id": target.chunk_id} if judgment.chunk_id else {}
    return judgment.model_copy(update={"judged_sha256": target.body, **named})
