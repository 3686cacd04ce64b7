"""What kind of failure a ranking is, the first kind that fits."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Literal, NamedTuple

FailureClass = Literal["hallucination", "retrieval_miss", "false_abstention", "conflict_mishandled", "rank_error"]

FAILURE_CLASSES: Mapping[FailureClass, str] = {
    "hallucination": "answered, and there is no answer",
    "retrieval_miss": "there is an answer, and none of the first hits is graded 2 or more",
    "false_abstention": "abstained, and there is an answer",
    "conflict_mishandled": "the first hit only shares the name of the right one, or is of an irrelevant concept",
    "rank_error": "another wrong first hit",
}
"""The kinds of failure in the order in which they are tried."""

CUT = 10
"""How many first hits count as found."""
RIGHT = 2
"""The least grade that is right."""


class Case(NamedTuple):
    """An item and its ranking, as far as a failure depends on them."""

    answerable: bool
    answered: bool
    ranking: Sequence[str]
    """Classes, best first."""
    grades: Mapping[str, int]
    """Grades of the classes that are judged."""
    mistaken_for: Collection[str] = ()
    """Classes that are a homonym of a right one, or of an irrelevant concept."""


def failure_class(case: Case, cut: int = CUT) -> FailureClass | None:
    """Return the kind of failure; None where there is none. A first hit that nobody judged is not wrong."""
    if not case.answerable:
        return "hallucination" if case.answered else None
    if all(case.grades.get(class_id, 0) < RIGHT for class_id in case.ranking[:cut]):
        return "retrieval_miss"
    if not case.answered:
        return "false_abstention"
    first = case.ranking[0]
    if case.grades.get(first, RIGHT) >= RIGHT and not (first in case.mistaken_for and first not in case.grades):
        return None
    return "conflict_mishandled" if first in case.mistaken_for else "rank_error"
