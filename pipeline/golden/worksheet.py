"""Worksheets: what a person needs to see to pin the rows of a golden set that are still graded by name.

Generated, never stored as truth: what was decided belongs into the row, as exemplars or as ``decisions``.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from pydantic import Field, JsonValue

from pipeline.errors import counted, one_line
from pipeline.golden.items import GoldenItem
from pipeline.golden.resolve import Resolved, ResolvedSet
from pipeline.records import Record

if TYPE_CHECKING:
    import pyarrow as pa

Ranks = Mapping[str, Mapping[str, Mapping[str, int]]]
"""Rank of a class, by engine, id of the item and class; a class that is not ranked is not there."""

_WORD = re.compile(r"\w+")


class CandidateEntry(Record):
    """An entry of a candidate class."""

    entry: str = Field(description="The entry, `tap::path`.")
    name: str = Field(description="Its name, as a slug.")
    locale: str | None = Field(description="Locale of which it is a copy; null where it is none.")
    alias_stub: bool = Field(description="Whether its body only points elsewhere.")


class CandidateClass(Record):
    """A content class that a row's names may mean."""

    class_id: str = Field(description="The content class.")
    taps: list[str] = Field(description="Taps that hold it.")
    entries: list[CandidateEntry] = Field(description="Its entries, by tap and path.")
    description: str | None = Field(description="Description of the first entry that has one; null where none has.")
    decision: bool | None = Field(description="What the row's decisions say of it already; null where nothing.")
    similarity: dict[str, float | None] = Field(
        description="To each other candidate: words that both descriptions have / words that one of them has; null "
        "where a description is missing."
    )
    ranks: dict[str, int | None] = Field(description="Rank under each engine; null where it is not ranked.")


class RowToJudge(Record):
    """A row that is graded by a name that several classes carry."""

    query_id: str = Field(description="Id of the item.")
    line: int = Field(description="Line of its file.")
    question: str = Field(description="What is asked.")
    relevant: list[str] = Field(description="Its relevant names.")
    median_similarity: float | None = Field(description="Median over all pairs of candidates that compare.")
    candidates: list[CandidateClass] = Field(description="Every class of a relevant name, by its first entry.")


class Worksheet(Record):
    """A golden set to be pinned."""

    golden_set: str = Field(description="Name of the set.")
    pinned: int = Field(description="Rows that have an exemplar.")
    pinnable: int = Field(description="Rows by name of which each name has one class: a lookup pins them.")
    to_judge: int = Field(description="Rows by name of which a name has several classes.")
    judged: int = Field(description="Those of them of which every candidate has a decision already.")
    without_answer: int = Field(description="Rows to which nothing is relevant.")
    rows: list[RowToJudge] = Field(description="The rows to judge, in the order of the file.")


class _Entry(NamedTuple):
    tap: str
    path: bytes
    path_text: str
    slug: str
    class_id: str
    description: str | None
    locale: str | None
    alias_stub: bool
    body_sha256: str


def worksheet(resolved: ResolvedSet, entries: pa.Table, ranks: Ranks) -> Worksheet:
    """List every candidate of every row that is graded by a name of several classes.

    Args:
        resolved: the set, resolved among ``entries``.
        entries: the rows of the corpus.
        ranks: where each engine ranked each class.
    """
    to_judge = [one for one in resolved.items if one.item.mode == "name" and one.ambiguous]
    members = _members(entries, {class_id for one in to_judge for class_id in one.candidates})
    return Worksheet(
        golden_set=resolved.golden.name,
        pinned=sum(one.item.mode == "exemplar" for one in resolved.items),
        pinnable=len(_pinnable(resolved)),
        to_judge=len(to_judge),
        judged=sum({*one.candidates} <= {*one.included, *one.excluded} for one in to_judge),
        without_answer=sum(one.item.mode is None for one in resolved.items),
        rows=[_row(one, members, ranks) for one in to_judge],
    )


def pinned_lines(
    resolved: ResolvedSet,
    entries: pa.Table,
    written: Mapping[int, Mapping[str, JsonValue]],
    targets: Collection[str] = frozenset(),
) -> list[str]:
    """Return, as lines of JSON ready for the file, the rows that a lookup pins: as written, with their exemplars.

    The exemplar of a class is its first entry of the relevant name in a tap of ``targets``, by tap and path. Where none
    of them has one and several taps hold the class, it is the content itself, ``class:<body digest>``: which of them
    came first nobody knows, and the first by name is often a collection of copies. Else it is the first entry of the
    name. A row of several names gets ``match: all``, as by name each of them is an item.

    Args:
        resolved: the set, resolved among ``entries``.
        entries: the rows of the corpus.
        written: each row of the file as it stands there, by its line.
        targets: taps that hold right answers.
    """
    pinnable = _pinnable(resolved)
    members = _members(entries, {class_id for one in pinnable for class_id in one.candidates})
    alone = _of_one_class(entries, {entry.body_sha256 for found in members.values() for entry in found})
    lines = []
    for one in pinnable:
        named = {
            class_id: [entry for entry in members[class_id] if entry.slug in one.item.relevant]
            for class_id in one.candidates
        }
        in_order = sorted(named, key=lambda class_id: one.item.relevant.index(named[class_id][0].slug))
        found = [_exemplar(named[class_id], members[class_id], targets, alone) for class_id in in_order]
        pins: dict[str, JsonValue] = (
            {"exemplar": found[0]} if len(found) == 1 else {"exemplar": [*found], "match": "all"}
        )
        lines.append(json.dumps({**written[one.item.line], **pins}, ensure_ascii=False))
    return lines


def _exemplar(
    named: Sequence[_Entry], members: Sequence[_Entry], targets: Collection[str], alone: Collection[str]
) -> str:
    """Return what names a class: an entry of the name in a target tap, the content where several taps hold it."""
    first = next((entry for entry in named if entry.tap in targets), None)
    if first is None and len({entry.tap for entry in members}) > 1 and named[0].body_sha256 in alone:
        return f"class:{named[0].body_sha256}"
    return _identity(first or named[0])


def _of_one_class(entries: pa.Table, bodies: Iterable[str]) -> frozenset[str]:
    """Return those of some bodies that stand in one class only; under some class rules a body may be in several."""
    import pyarrow as pa
    import pyarrow.compute as pc

    mine = entries.filter(pc.is_in(entries["body_sha256"], value_set=pa.array(sorted(bodies), pa.string())))
    counts = mine.group_by("body_sha256").aggregate([("class_id", "count_distinct")])
    return frozenset(counts.filter(pc.equal(counts["class_id_count_distinct"], 1))["body_sha256"].to_pylist())


def _pinnable(resolved: ResolvedSet) -> list[Resolved]:
    return [one for one in resolved.items if one.item.mode == "name" and one.lookup]


def _members(entries: pa.Table, classes: Iterable[str]) -> dict[str, list[_Entry]]:
    """Return the entries of each class, by tap and path."""
    import pyarrow as pa
    import pyarrow.compute as pc

    wanted = pa.array(sorted(classes), pa.string())
    found = entries.filter(pc.is_in(entries["class_id"], value_set=wanted)).select(list(_Entry._fields))
    members: dict[str, list[_Entry]] = {}
    for row in found.sort_by([("tap", "ascending"), ("path", "ascending")]).to_pylist():
        members.setdefault(row["class_id"], []).append(_Entry(**row))
    return members


def _identity(entry: _Entry) -> str:
    return f"{entry.tap}::{entry.path_text}"


def _row(one: Resolved, members: Mapping[str, Sequence[_Entry]], ranks: Ranks) -> RowToJudge:
    classes = sorted(one.candidates, key=lambda class_id: (members[class_id][0].tap, members[class_id][0].path))
    described = {class_id: _description(members[class_id]) for class_id in classes}
    pairs = {
        frozenset(pair): similarity(described[pair[0]], described[pair[1]])
        for pair in itertools.combinations(classes, 2)
    }
    compared = [value for value in pairs.values() if value is not None]
    return RowToJudge(
        query_id=one.item.query_id,
        line=one.item.line,
        question=one.item.question,
        relevant=list(one.item.relevant),
        median_similarity=median(compared) if compared else None,
        candidates=[
            CandidateClass(
                class_id=class_id,
                taps=sorted({entry.tap for entry in members[class_id]}),
                entries=[
                    CandidateEntry(
                        entry=_identity(entry), name=entry.slug, locale=entry.locale, alias_stub=entry.alias_stub
                    )
                    for entry in members[class_id]
                ],
                description=described[class_id],
                decision=True if class_id in one.included else False if class_id in one.excluded else None,
                similarity={other: pairs[frozenset((class_id, other))] for other in classes if other != class_id},
                ranks=_ranks(one.item, class_id, ranks),
            )
            for class_id in classes
        ],
    )


def _description(entries: Sequence[_Entry]) -> str | None:
    return next((entry.description for entry in entries if entry.description), None)


def _ranks(item: GoldenItem, class_id: str, ranks: Ranks) -> dict[str, int | None]:
    return {engine: ranked.get(item.query_id, {}).get(class_id) for engine, ranked in sorted(ranks.items())}


def similarity(one: str | None, other: str | None) -> float | None:
    """Return the Jaccard similarity of the words of two descriptions; None where one of them has no word."""
    left, right = ({*_WORD.findall((text or "").casefold())} for text in (one, other))
    return len(left & right) / len(left | right) if left and right else None


# --- as Markdown -----------------------------------------------------------------------------------------------------


def as_markdown(sheet: Worksheet) -> str:
    """Return the worksheet as Markdown. What comes from registries is made one line and cannot mark anything up."""
    lines = [f"# Worksheet: {_said(sheet.golden_set)}", "", _counts(sheet), ""]
    for row in sheet.rows:
        lines += [f"## Line {row.line}: {_said(row.question)}", ""]
        names = ", ".join(_said(name) for name in row.relevant)
        lines += [f"Names: {names}. Median similarity of the candidates: {_number(row.median_similarity)}.", ""]
        for place, candidate in enumerate(row.candidates, start=1):
            lines += [*_candidate(place, candidate, row.candidates), ""]
    return "\n".join(lines)


def _counts(sheet: Worksheet) -> str:
    return (
        f"{counted(sheet.pinned, 'row')} pinned, {sheet.pinnable} pinnable by lookup, {sheet.to_judge} to be judged "
        f"({sheet.judged} of them with a decision on every candidate), {sheet.without_answer} without an answer."
    )


def _candidate(place: int, candidate: CandidateClass, others: Sequence[CandidateClass]) -> list[str]:
    decided = {True: "included", False: "excluded", None: "undecided"}[candidate.decision]
    ranked = ", ".join(f"{_said(engine)} {rank or 'not ranked'}" for engine, rank in candidate.ranks.items())
    alike = ", ".join(
        f"{number}: {_number(candidate.similarity[other.class_id])}"
        for number, other in enumerate(others, start=1)
        if other is not candidate
    )
    return [
        f"### Candidate {place}: class {candidate.class_id[:12]}, {decided}",
        "",
        f"- description: {_said(candidate.description or 'none')}",
        f"- taps: {', '.join(map(_said, candidate.taps))}",
        f"- rank: {ranked or 'no engine'}",
        f"- similarity to the other candidates: {alike or 'none'}",
        *(f"- entry: {_said(entry.entry)}{_flags(entry)}" for entry in candidate.entries),
    ]


def _flags(entry: CandidateEntry) -> str:
    flags = [f"called {_said(entry.name)}"]
    flags += [f"locale copy: {_said(entry.locale)}"] if entry.locale else []
    flags += ["alias stub"] if entry.alias_stub else []
    return f" ({'; '.join(flags)})"


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f}"


def _said(text: str) -> str:
    return re.sub(r"([\\`*_{}\[\]<>#|&!~])", r"\\\1", one_line(text))
