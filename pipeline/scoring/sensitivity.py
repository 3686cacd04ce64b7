"""How much of a score hangs on the way of grading: by name, every candidate class pinned, the decisions applied.

The shift from the first to the last is split in three, which add up to it. All are means over the same items: those
that have a name, and something left to find once the decisions are applied.

- The **denominator effect**: all names of a row count as one item, and not each for itself. In a row that matches
  ``all`` every candidate class counts as an item instead, as it does from the next step on.
- The **identity effect**: every class of a relevant name is right, whatever name its shown entry carries.
- The **judgment effect**: only the classes that somebody decided for are right. A row's exemplars are such a decision.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from pydantic import Field

from pipeline.golden.resolve import Resolved
from pipeline.records import Record, Table
from pipeline.scoring.grade import Hit, grade
from pipeline.scoring.means import ItemScore, Run
from pipeline.scoring.measures import Graded, Measure, Undefined, mean

STUDIED = (Measure("recall", 10), Measure("hit", 1), Measure("mrr", 100), Measure("ndcg", 10))
"""The headline measures."""
NOTHING_COMPARED = "no item has a name and a class to find"


class SensitivityRow(Record):
    """A measure of a set under each way of grading, and what moved it."""

    golden_set: str = Field(description="Name of the set.")
    engine: str = Field(description="Name of the engine.")
    metric: str = Field(description="Canonical name of the measure.")
    by_name: float | None = Field(description="The mean with every row graded by name; null where no item compares.")
    by_name_as_one: float | None = Field(description="By name, all names of a row counted as one item.")
    all_pinned: float | None = Field(description="Every class of a relevant name pinned.")
    decided: float | None = Field(description="Exemplars and decisions applied.")
    denominator_effect: float | None = Field(description="`by_name_as_one` minus `by_name`.")
    identity_effect: float | None = Field(description="`all_pinned` minus `by_name_as_one`.")
    judgment_effect: float | None = Field(description="`decided` minus `all_pinned`.")
    shift: float | None = Field(description="`decided` minus `by_name`: the three effects together.")
    reason: str | None = Field(description="Why the values are null.")
    n_items: int = Field(description="Items compared.")
    n_left_out: int = Field(description="Items without a name, without an answer, or of which nothing was included.")
    n_decided: int = Field(description="Items compared that have an exemplar or a decision.")
    credited: int = Field(description="Hits that by name count within the cut of the measure.")
    credited_ambiguous: int = Field(description="Those of them whose name several classes carry.")


SENSITIVITY = Table("sensitivity", SensitivityRow, ("golden_set", "engine", "metric"))


class Views(NamedTuple):
    """A ranking of one item, graded in each way."""

    by_name: Graded
    by_name_as_one: Graded
    all_pinned: Graded
    decided: Graded


class Lookup(NamedTuple):
    """Whether a row of which each name has one class is the same by name and pinned."""

    equal: bool
    reason: str | None


def views(resolved: Resolved, hits: Sequence[Hit]) -> Views:
    """Grade a ranking in each way.

    Args:
        resolved: an item that has names.
        hits: ranked entries, best first, mirrors included.
    """
    pinned = grade(resolved._replace(classes=resolved.candidates), "exemplar", hits)
    decided = grade(resolved._replace(classes=resolved.decided), "exemplar", hits)
    return Views(grade(resolved, "name", hits), _by_name_as_pinned(resolved, hits), pinned, decided)


def sensitivity_rows(run: Run, scores: Sequence[ItemScore], ambiguous: frozenset[str]) -> Iterator[SensitivityRow]:
    """Yield the sensitivity of each headline measure.

    Args:
        run: what the rows share.
        scores: every item once, under any grading.
        ambiguous: names that several classes carry.
    """
    compared = [score for score in scores if score.item.relevant and score.resolved.decided]
    graded = [views(score.resolved, score.hits) for score in compared]
    names = [list(_shown_names(score.hits).values()) for score in compared]
    for measure in STUDIED:
        values = [_mean(measure, view) for view in zip(*graded, strict=True)] or [None] * 4
        by_name, as_one, pinned, decided = values
        credited = [
            name
            for view, shown in zip(graded, names, strict=True)
            for name, gain in zip(shown[: measure.cut], view.by_name.gains.tolist(), strict=False)
            if gain > 0
        ]
        yield SensitivityRow(
            golden_set=run.golden_set,
            engine=run.engine,
            metric=str(measure),
            by_name=by_name,
            by_name_as_one=as_one,
            all_pinned=pinned,
            decided=decided,
            denominator_effect=_minus(as_one, by_name),
            identity_effect=_minus(pinned, as_one),
            judgment_effect=_minus(decided, pinned),
            shift=_minus(decided, by_name),
            reason=None if compared else NOTHING_COMPARED,
            n_items=len(compared),
            n_left_out=len(scores) - len(compared),
            n_decided=sum(bool(one.item.exemplar or one.item.decisions) for one in compared),
            credited=len(credited),
            credited_ambiguous=sum(name in ambiguous for name in credited),
        )


def lookup(resolved: Resolved, hits: Sequence[Hit], measures: Iterable[Measure]) -> Lookup | None:
    """Say whether an item has the same values by name and pinned, match ``all``; None unless each name has one class.

    They differ only where a class is shown by an entry of another name, or two names have one class.
    """
    if not resolved.lookup:
        return None
    item = resolved.item.model_copy(update={"match": "all"})
    pinned = grade(resolved._replace(item=item, classes=resolved.candidates, excluded=()), "exemplar", hits)
    named = grade(resolved._replace(excluded=()), "name", hits)
    if all(measure(pinned) == measure(named) for measure in measures):
        return Lookup(True, None)
    names = len(resolved.item.relevant)
    reasons = [f"{names} names have {len(resolved.candidates)} classes"] if names != len(resolved.candidates) else []
    shown = _shown_names(hits)
    for class_id in resolved.candidates:
        if class_id in shown and shown[class_id] not in resolved.item.relevant:
            reasons.append(f"the class {class_id[:12]} is shown by a mirror called {shown[class_id]}")
    return Lookup(False, "; ".join(reasons))


def _by_name_as_pinned(resolved: Resolved, hits: Sequence[Hit]) -> Graded:
    """Grade by name, counted as the pinned row is: one item in all, or, matching ``all``, one a candidate class."""
    each = resolved.item.match == "all"
    named = np.array([name in resolved.item.relevant for name in _shown_names(hits).values()], dtype=np.bool_)
    gains = named.astype(np.float64)
    if not each:
        gains[np.flatnonzero(named)[1:]] = 0.0
    return Graded(gains, named, np.ones(len(resolved.candidates) if each else 1))


def _shown_names(hits: Sequence[Hit]) -> dict[str, str]:
    """Return the name of the best hit of each class, best first."""
    names: dict[str, str] = {}
    for hit in hits:
        names.setdefault(hit.class_id, hit.slug)
    return names


def _mean(measure: Measure, graded: Iterable[Graded]) -> float | None:
    value = mean(measure(one) for one in graded).value
    return None if isinstance(value, Undefined) else value


def _minus(after: float | None, before: float | None) -> float | None:
    return None if after is None or before is None else after - before
