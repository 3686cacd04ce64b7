"""Judgments as rows of the ledger: what is appended, with its number, and what is read as of a position."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import ConfigDict, Field, JsonValue

from pipeline.jsonlines import Wrong
from pipeline.records import Record
from pipeline.store import canonical_json

if TYPE_CHECKING:
    from pipeline.ledger.ledger import Addition, Ledger

Source = Literal["human", "provenance", "llm"]
SOURCES: tuple[Source, ...] = ("human", "provenance", "llm")
"""Who judged, in the order in which they are believed."""

Grade = Annotated[int, Field(ge=0, le=3)]
Name = Annotated[str, Field(pattern=r"\S")]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Judgment(Record):
    """A judgment as somebody gives it. ``docId`` or ``chunkId`` says what is judged."""

    model_config = ConfigDict(populate_by_name=True)

    query_id: Name = Field(alias="queryId", description="The item.")
    doc_id: str | None = Field(
        default=None,
        alias="docId",
        pattern=r"^[^@:]+@([0-9a-f]{40}|[0-9a-f]{64}):(.|\s)",
        description="An entry at its pin, `tap@pin:path`.",
    )
    chunk_id: str | None = Field(
        default=None, alias="chunkId", pattern=r"^class:[0-9a-f]{64}$", description="Content, `class:<body digest>`."
    )
    grade: Grade = Field(description="0 irrelevant, 1 marginal, 2 relevant, 3 perfectly relevant.")
    source: Source = Field(description="Who judged.")
    judge_model: Name | None = Field(default=None, description="Model of the judge; for `llm` alone.")
    prompt_version: Name | None = Field(default=None, description="Version of its prompt; for `llm` alone.")
    verdict_id: Name | None = Field(default=None, description="The verdict that it comes from, of our own judge.")
    annotator: Name | None = Field(default=None, description="The person; for `human` alone.")
    judged_sha256: Digest | None = Field(default=None, description="Digest of the body that was judged.")
    rationale: str | None = Field(default=None, description="Why.")

    @property
    def judge(self) -> str:
        """Whose judgments are counted together: the annotator, the model with its prompt, or nobody."""
        if self.source == "llm":
            return canonical_json([self.judge_model, self.prompt_version])
        return self.annotator or ""


class Qrel(Judgment):
    """A judgment in the ledger."""

    judged_sha256: Digest = Field(description="Digest of the body that was judged; it joins in every later corpus.")
    id: str = Field(description="ULID.")
    seq: int = Field(ge=1, description="1, 2, ... within question, body, source and judge.")
    created_at: str = Field(alias="createdAt", description="UTC, milliseconds, `Z`.")
    position: int = Field(description="Position of the ledger at which it was added.")


def judgment_faults(judgment: Judgment) -> Iterator[Wrong]:
    """Yield what the fields of a judgment say against each other."""
    if judgment.query_id.split() != [judgment.query_id]:
        yield Wrong("queryId", "holds white space, as the id of no item does", "mend it")
    if judgment.doc_id is None and judgment.chunk_id is None:
        yield Wrong("docId", "is missing, and `chunkId` too", "say what was judged with one of them")
    needed = {"human": ("annotator",), "llm": ("judge_model", "prompt_version"), "provenance": ()}[judgment.source]
    for field in ("annotator", "judge_model", "prompt_version"):
        value = getattr(judgment, field)
        if field in needed and value is None:
            yield Wrong(field, f"is missing where the source is `{judgment.source}`", "write it")
        elif field not in needed and value is not None:
            yield Wrong(field, f"stands where the source is `{judgment.source}`", "leave it out")
    if judgment.source != "llm" and judgment.verdict_id is not None:
        yield Wrong("verdict_id", f"stands where the source is `{judgment.source}`", "leave it out")
    named = (judgment.chunk_id or "").removeprefix("class:")
    if named and judgment.judged_sha256 not in (None, named):
        yield Wrong("judged_sha256", "is not the digest that `chunkId` names", "keep one of them")


def append(addition: Addition, judgments: Iterable[Judgment]) -> list[Qrel]:
    """Append judgments in the transaction ``addition``; return them with id and number.

    Args:
        addition: an open transaction of the ledger.
        judgments: without faults, and each with its body.
    """
    from pipeline.ledger.tables import QRELS

    last: dict[tuple[str, str, str, str], int] = {}
    added: list[Qrel] = []
    rows: list[dict[str, JsonValue]] = []
    for judgment in judgments:
        values = judgment.model_dump(include=set(Judgment.model_fields))
        key = (judgment.query_id, str(judgment.judged_sha256), judgment.source, judgment.judge)
        same = dict(zip(("query_id", "judged_sha256", "source", "judge"), key, strict=True))
        number = (last[key] if key in last else addition.last(QRELS.c.seq, **same)) + 1
        last[key] = number
        new = {**values, "id": addition.new_id(), "seq": number, "created_at": addition.created_at}
        rows.append({**new, "judge": judgment.judge})
        added.append(Qrel.model_validate({**new, "position": addition.position}))
    addition.add(QRELS, rows)
    return added


def append_once(addition: Addition, judgments: Sequence[Judgment]) -> list[Qrel]:
    """Append those that were not said already: of the same question and body, by the same source and judge."""
    from pipeline.ledger.tables import QRELS

    sources = sorted({judgment.source for judgment in judgments})
    known = {_said(row) for source in sources for row in addition.rows(QRELS, source=source)}
    new: dict[tuple[object, ...], Judgment] = {}
    for judgment in judgments:
        key = (judgment.query_id, judgment.judged_sha256, judgment.source, judgment.judge)
        if key not in known:
            new.setdefault(key, judgment)
    return append(addition, new.values())


def _said(row: Mapping[str, Any]) -> tuple[object, ...]:
    return (row["query_id"], row["judged_sha256"], row["source"], row["judge"])


def read_qrels(ledger: Ledger, as_of: int | None = None) -> list[Qrel]:
    """Return every judgment up to a position, in the order in which they were added."""
    from pipeline.ledger.tables import QRELS

    return [
        Qrel.model_validate({name: value for name, value in row.items() if name != "judge"})
        for row in ledger.rows(QRELS, as_of)
    ]
