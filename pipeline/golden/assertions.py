"""What a full item says beside its answer: what must hold of a ranking, which concepts belong there, what it cites."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from pipeline.records import Record

CheckType = Literal["class_in_top_k", "name_in_top_k", "not_in_top_k", "concept_in_top_k", "abstain"]
AssertionKind = Literal["must", "should"]
ConceptGrade = Literal["required", "acceptable", "irrelevant"]

DEPTH = 10
"""The first hits that a check looks at, where it does not say how many."""

Said = Annotated[str, Field(pattern=r"\S")]

_ENTRY = re.compile(r"(?P<tap>[^@:]+)(?:@(?:[0-9a-f]{40}|[0-9a-f]{64}):|::)(?P<path>.+)", re.DOTALL)
_CONTENT = re.compile(r"class:[0-9a-f]{64}")


class Check(Record):
    """How an assertion is checked against a ranking."""

    type: CheckType = Field(description="What is looked for.")
    arg: Said | None = Field(
        default=None,
        description="For `class_in_top_k` an entry `tap::path` or content `class:<body digest>`; for `name_in_top_k` a "
        "name; for `concept_in_top_k` the id of a concept; for `not_in_top_k` any of the three; none for `abstain`.",
    )
    k: int | None = Field(default=None, ge=1, description=f"How many first hits are looked at; {DEPTH} unless given.")


class Assertion(Record):
    """Something that must or should hold of a ranking for the item."""

    model_config = ConfigDict(populate_by_name=False)

    kind: AssertionKind = Field(description="Whether the item fails where it does not hold.")
    text: Said = Field(description="What must hold, for people.")
    concept_id: Said | None = Field(default=None, alias="conceptId", description="The concept that it is about.")
    check: Check | None = Field(
        default=None,
        description="How it is checked. Without one, an assertion with a concept is checked as `concept_in_top_k`, and "
        "another is not evaluated.",
    )

    @property
    def checked(self) -> Check | None:
        """How it is checked; None where it is not evaluated."""
        if self.check is None and self.concept_id is not None:
            return Check(type="concept_in_top_k", arg=self.concept_id, k=DEPTH)
        return self.check


class GoldenConcept(Record):
    """What a concept is worth in the first hits of an item."""

    model_config = ConfigDict(populate_by_name=False)

    concept_id: Said = Field(alias="conceptId", description="The concept.")
    grade: ConceptGrade = Field(description="Whether it has to be there, may be, or is of something else.")


class Citation(Record):
    """A place that answers the question."""

    model_config = ConfigDict(populate_by_name=False)

    doc_id: str = Field(
        alias="docId",
        pattern=_ENTRY.pattern.replace("?P<tap>", "").replace("?P<path>", ""),
        description="The entry, `tap@pin:path` or `tap::path`. The pin is not read.",
    )
    chunk_id: str | None = Field(
        default=None,
        alias="chunkId",
        pattern=r"^class:[0-9a-f]{64}$",
        description="Its content, `class:<body digest>`. Where it is given, it decides.",
    )

    @property
    def target(self) -> str:
        """What is cited, as an exemplar would name it."""
        found = _ENTRY.fullmatch(self.doc_id)
        return self.chunk_id or (f"{found['tap']}::{found['path']}" if found else self.doc_id)


def is_place(written: str) -> bool:
    """Return whether ``written`` names an entry or content, rather than a name or a concept."""
    return "::" in written or _CONTENT.fullmatch(written) is not None


def assertion_faults(assertions: Sequence[Assertion], answerable: bool | None) -> Iterator[tuple[str, str, str]]:
    """Yield field, what is wrong and what to do, for what the fields of assertions say against each other."""
    for place, assertion in enumerate(assertions, start=1):
        field = f"assertions {place} check"
        check = assertion.check
        if check is None:
            continue
        if check.type == "abstain":
            if check.arg is not None or check.k is not None:
                yield field, "`abstain` looks at nothing", "leave out `arg` and `k`"
            if answerable:
                yield field, "asks to abstain where there is an answer", "mend it, or write `answerable: false`"
        elif check.arg is None:
            yield f"{field} arg", "is missing", f"say what `{check.type}` looks for"
        elif check.type == "class_in_top_k" and not is_place(check.arg):
            todo = "write `tap::path` or `class:<body digest>`"
            yield f"{field} arg", f"names no entry and no content: {check.arg!r}", todo
        elif check.type == "concept_in_top_k" and assertion.concept_id not in (None, check.arg):
            yield f"{field} arg", "is another concept than the assertion's `conceptId`", "keep one of them"


def concept_faults(concepts: Sequence[GoldenConcept]) -> Iterator[tuple[str, str, str]]:
    """Yield field, what is wrong and what to do, for concepts that stand there twice."""
    ids = [concept.concept_id for concept in concepts]
    for place, concept_id in enumerate(ids, start=1):
        if concept_id in ids[: place - 1]:
            yield f"golden_concepts {place}", f"grades {concept_id!r} again", "keep one"


def citation_faults(citations: Sequence[Citation], answerable: bool | None) -> Iterator[tuple[str, str, str]]:
    """Yield field, what is wrong and what to do, for what citations say against each other and the row."""
    targets = [citation.target for citation in citations]
    for place, target in enumerate(targets, start=1):
        if target in targets[: place - 1]:
            yield f"citations {place}", f"cites {target!r} again", "keep one"
    if citations and answerable is False:
        yield "citations", "stands in a row that is not answerable", "leave out `citations` or `answerable`"
