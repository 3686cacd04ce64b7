"""One grade a question and class, out of everything that was said: human, else provenance, else the pinned judge.

What nobody judged has no grade, which is not 0. Where sources differ, the conflict is returned, never hidden.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from pipeline.judgments.qrels import SOURCES, Qrel, Source


class PinnedJudge(NamedTuple):
    """The judge whose rows count in a run; those of other models and prompts do not."""

    judge_model: str
    prompt_version: str


class ResolvedGrade(NamedTuple):
    """What a class is worth for a question."""

    grade: int
    """0 to 3."""
    source: Source
    row: str
    """Id of the judgment that decided."""


class Conflict(NamedTuple):
    """Sources, or annotators, that differ about a class."""

    query_id: str
    class_id: str
    grades: Mapping[Source, int]
    """The grade by each source that has one."""
    annotators: Mapping[str, int]
    """The grade that each annotator gave last."""


Grades = Mapping[str, Mapping[str, ResolvedGrade]]
"""Grades by question, then by class."""


class Resolution(NamedTuple):
    """All grades, and where sources differ."""

    grades: Grades
    conflicts: tuple[Conflict, ...]
    """In the order of question and class."""


def resolve_qrels(
    qrels: Iterable[Qrel],
    classes_of: Callable[[str], Collection[str]],
    judge: PinnedJudge | None = None,
    sources: Collection[Source] = SOURCES,
) -> Resolution:
    """Resolve judgments to one grade a question and class.

    Args:
        qrels: in the order in which they were added: what somebody said later counts instead of what he said before.
        classes_of: gives the classes that hold a body in the corpus; none where no entry has it, and then its
            judgments do not count.
        judge: the judge whose rows count; None: no row of source `llm` does.
        sources: those that are believed at all.

    Returns:
        For people the lower median over annotators, of what each said last.
    """
    said: dict[tuple[str, str], dict[Source, dict[str, Qrel]]] = defaultdict(lambda: defaultdict(dict))
    for qrel in qrels:
        pinned = judge is not None and (qrel.judge_model, qrel.prompt_version) == judge
        if qrel.source not in sources or (qrel.source == "llm" and not pinned):
            continue
        for class_id in classes_of(qrel.judged_sha256):
            said[qrel.query_id, class_id][qrel.source][qrel.judge] = qrel
    grades: dict[str, dict[str, ResolvedGrade]] = {}
    conflicts = []
    for (query_id, class_id), by_source in sorted(said.items()):
        decided = {source: _lower_median(list(by_source[source].values())) for source in SOURCES if source in by_source}
        source, qrel = next(iter(decided.items()))
        grades.setdefault(query_id, {})[class_id] = ResolvedGrade(qrel.grade, source, qrel.id)
        by = {source: row.grade for source, row in decided.items()}
        people = {judge: row.grade for judge, row in sorted(by_source.get("human", {}).items())}
        if len(set(by.values())) > 1 or len(set(people.values())) > 1:
            conflicts.append(Conflict(query_id, class_id, by, people))
    return Resolution(grades, tuple(conflicts))


def _lower_median(latest: Sequence[Qrel]) -> Qrel:
    ordered = sorted(latest, key=lambda qrel: (qrel.grade, qrel.id))
    return ordered[(len(ordered) - 1) // 2]
