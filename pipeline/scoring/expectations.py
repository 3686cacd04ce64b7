"""What a whole item expects of the first hits: assertions that hold or not, concepts that belong there or not."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from pipeline.golden.assertions import DEPTH, Assertion, Check, ConceptGrade, is_place
from pipeline.golden.items import GoldenItem
from pipeline.golden.resolve import Resolved
from pipeline.scoring.measures import Undefined, Value

BUDGET = 15_000
"""Characters of names and descriptions that a host lists."""
SHOULD_WEIGHS = 0.5
"""Weight of a `should` where a `must` weighs 1."""

NO_MUST = "no `must` that is evaluated"
NO_SHOULD = "no `should` that is evaluated"
NO_REQUIRED = "no required concept"
NO_CONCEPT = "no concept is graded"


class Listed(NamedTuple):
    """A hit as a host lists it."""

    class_id: str
    slug: str
    characters: int
    """Of its name and description."""


def holds(check: Check, resolved: Resolved, hits: Sequence[Listed], abstained: bool) -> bool:
    """Return whether a check holds of a ranking: the hits, best first, mirrors removed."""
    if check.type == "abstain":
        return abstained
    first = hits[: check.k or DEPTH]
    wanted = check.arg or ""
    classes = resolved.places.get(wanted, frozenset())
    found = any(hit.class_id in classes for hit in first)
    concept = any(wanted in resolved.concepts.get(hit.class_id, ()) for hit in first)
    named = any(hit.slug == wanted for hit in first)
    match check.type:
        case "class_in_top_k":
            return found
        case "name_in_top_k":
            return named
        case "concept_in_top_k":
            return concept
        case _:
            return not (found if is_place(wanted) else named or concept)


class Held(NamedTuple):
    """What became of the assertions that are evaluated."""

    must: tuple[bool, ...]
    should: tuple[bool, ...]
    not_evaluated: int

    @property
    def must_pass(self) -> Value:
        """1 where every `must` holds, else 0."""
        return float(all(self.must)) if self.must else Undefined(NO_MUST)

    @property
    def must_rate(self) -> Value:
        """Share of the `must` that hold."""
        return sum(self.must) / len(self.must) if self.must else Undefined(NO_MUST)

    @property
    def should_rate(self) -> Value:
        """Share of the `should` that hold."""
        return sum(self.should) / len(self.should) if self.should else Undefined(NO_SHOULD)

    @property
    def weighted(self) -> Value:
        """Share of all that hold, a `should` counted half."""
        whole = len(self.must) + SHOULD_WEIGHS * len(self.should)
        return (sum(self.must) + SHOULD_WEIGHS * sum(self.should)) / whole if whole else Undefined(NO_MUST)


def evaluate(assertions: Sequence[Assertion], resolved: Resolved, hits: Sequence[Listed], abstained: bool) -> Held:
    """Return which assertions hold of a ranking; those without a check are counted, and not evaluated."""
    checked = [(assertion.kind, assertion.checked) for assertion in assertions]
    held = {
        kind: tuple(
            holds(check, resolved, hits, abstained) for each, check in checked if each == kind and check is not None
        )
        for kind in ("must", "should")
    }
    return Held(held["must"], held["should"], sum(check is None for _, check in checked))


class ConceptsFound(NamedTuple):
    """The concepts among the first hits, by what the item says of them."""

    required_recall: Value
    acceptable_recall: Value
    irrelevant: tuple[str, ...]
    """Concepts that the item calls irrelevant, and that are there."""
    unlabelled: tuple[str, ...]
    """Concepts that are there, and of which the item says nothing."""
    precision: Value
    """Share of the graded concepts that are there which are not irrelevant."""


def concepts_found(grades: Mapping[str, ConceptGrade], found: Collection[str]) -> ConceptsFound:
    """Compare the concepts that are mentioned with the grades of an item."""

    def graded(grade: ConceptGrade) -> set[str]:
        return {concept for concept, each in grades.items() if each == grade}

    def recall(wanted: set[str], reason: str) -> Value:
        return len(wanted & set(found)) / len(wanted) if wanted else Undefined(reason)

    irrelevant = graded("irrelevant") & set(found)
    labelled = grades.keys() & set(found)
    return ConceptsFound(
        recall(graded("required"), NO_REQUIRED),
        recall(graded("acceptable"), "no acceptable concept"),
        tuple(sorted(irrelevant)),
        tuple(sorted(set(found) - grades.keys())),
        1 - len(irrelevant) / len(labelled) if labelled else Undefined(NO_CONCEPT),
    )


def concepts_of(item: GoldenItem, resolved: Resolved, hits: Sequence[Listed], k: int = DEPTH) -> ConceptsFound:
    """Return the concepts that the first ``k`` hits mention, by the item's grades."""
    grades = {concept.concept_id: concept.grade for concept in item.golden_concepts}
    found = frozenset[str]().union(*(resolved.concepts.get(hit.class_id, frozenset()) for hit in hits[:k]))
    return concepts_found(grades, found)


def visible(hits: Sequence[Listed], relevant: Sequence[bool], budget: int = BUDGET) -> float:
    """Return 1 where a relevant hit is among those whose names and descriptions fit a host's list, else 0.

    The list is filled in the order of ranks, and ends before the first that does not fit.
    """
    used = 0
    for hit, is_relevant in zip(hits, relevant, strict=True):
        used += hit.characters
        if used > budget:
            return 0.0
        if is_relevant:
            return 1.0
    return 0.0


def mean_of(values: Sequence[Value]) -> float | None:
    """Return the mean of the values that exist; None where none does."""
    defined = [value for value in values if not isinstance(value, Undefined)]
    return math.fsum(defined) / len(defined) if defined else None
