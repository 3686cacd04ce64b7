"""Where those who judged differ: published with every run, because a resolved grade alone would hide it."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from pydantic import Field

from pipeline.judgments.qrels import Source
from pipeline.judgments.resolution import Resolution
from pipeline.records import Record, Table

Given = int | None


class AnnotatorGrade(Record):
    """What a person said last."""

    annotator: str = Field(description="Who.")
    grade: int = Field(description="0 to 3.")


class ConflictRow(Record):
    """A class of which sources, or people, think differently for a question."""

    golden_set: str = Field(description="Name of the set.")
    query_id: str = Field(description="The item.")
    class_id: str = Field(description="The class.")
    grade: int = Field(description="The grade that counts.")
    source: Source = Field(description="Whose it is.")
    human: Given = Field(description="Lower median of what people said last; null: nobody did.")
    provenance: Given = Field(description="3 where an exemplar or a citation names the content; null: none does.")
    llm: Given = Field(description="Grade of the pinned judge; null: it gave none.")
    annotators: list[AnnotatorGrade] = Field(description="Each person's last grade, by name.")


CONFLICTS = Table("conflicts", ConflictRow, ("golden_set", "query_id", "class_id"))


def conflict_rows(golden_set: str, asked: Collection[str], resolution: Resolution) -> Iterator[ConflictRow]:
    """Yield the conflicts about the questions of a set, in the order of question and class."""
    for conflict in resolution.conflicts:
        if conflict.query_id in asked:
            decided = resolution.grades[conflict.query_id][conflict.class_id]
            yield ConflictRow(
                golden_set=golden_set,
                query_id=conflict.query_id,
                class_id=conflict.class_id,
                grade=decided.grade,
                source=decided.source,
                human=conflict.grades.get("human"),
                provenance=conflict.grades.get("provenance"),
                llm=conflict.grades.get("llm"),
                annotators=[AnnotatorGrade(annotator=name, grade=grade) for name, grade in conflict.annotators.items()],
            )
