"""What a golden set is good for: one line a demand, passed, nearly or not, with its number and the items at fault."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Literal, NamedTuple, get_args

from pydantic import Field

from pipeline.feedback.promote import SAME, character_runs
from pipeline.golden.items import GoldenItem, Popularity
from pipeline.golden.resolve import ResolvedSet
from pipeline.judgments.resolution import Grades
from pipeline.records import Record, Table
from pipeline.scoring.agreement import FEWEST, LOWEST_KAPPA, Agreement
from pipeline.scoring.failures import RIGHT

Verdict = Literal["pass", "warn", "fail"]
Demand = Literal[
    "question_types",
    "popularity",
    "not_answerable",
    "answerable_now",
    "false_premise",
    "provenance",
    "judged@10",
    "grade_0",
    "concepts",
    "citations",
    "duplicates",
    "clusters",
    "regression",
    "judge",
]

MOST_SHOWN = 20
"""Ids that a row names; the rest are counted."""


class ReadinessRow(Record):
    """A demand on a golden set, and whether it is met."""

    golden_set: str = Field(description="Name of the set.")
    golden_digest: str = Field(description="Digest of the frozen set.")
    demand: Demand = Field(description="What is demanded.")
    verdict: Verdict = Field(description="`pass`, `warn`: usable with care, `fail`.")
    value: float | None = Field(description="The number that decides; null where there is none.")
    wanted: str = Field(description="What it should be.")
    says: str = Field(description="What was found.")
    n_ids: int = Field(description="Items at fault.")
    ids: list[str] = Field(description=f"The first {MOST_SHOWN} of them, sorted.")


READINESS = Table("readiness", ReadinessRow, ("golden_set", "demand"))


class _Found(NamedTuple):
    demand: Demand
    verdict: Verdict
    value: float | None
    wanted: str
    says: str
    ids: Collection[str] = ()


def readiness(
    resolved: ResolvedSet, grades: Grades, pools: Mapping[str, Collection[str]], judge: Agreement | None = None
) -> list[ReadinessRow]:
    """Return every demand on a set, in a fixed order.

    Args:
        resolved: the set, resolved in the corpus.
        grades: resolved judgments of the classes of the corpus.
        pools: for each item the first ten classes of every engine.
        judge: how the pinned judge agrees with people; None where no judge is pinned.
    """
    items = [one.item for one in resolved.items]
    found = [
        *_kinds(items),
        *_sources(resolved),
        *_judged(items, grades, pools),
        *_structure(items),
        _judge(judge),
    ]
    return [
        ReadinessRow(
            golden_set=resolved.golden.name,
            golden_digest=resolved.golden.digest,
            demand=each.demand,
            verdict=each.verdict,
            value=each.value,
            wanted=each.wanted,
            says=each.says,
            n_ids=len(each.ids),
            ids=sorted(each.ids)[:MOST_SHOWN],
        )
        for each in found
    ]


def _kinds(items: Sequence[GoldenItem]) -> Iterator[_Found]:
    n = len(items)
    types = Counter(item.question_type for item in items if item.question_type)
    share = max(types.values(), default=0) / n
    untyped = [item.query_id for item in items if item.question_type is None]
    met = len(types) >= 4 and share <= 0.6
    says = f"{len(types)} types, the largest is {share:.0%}, {len(untyped)} items have none"
    yield _Found("question_types", _met(met), float(len(types)), "4 types, none above 60%", says, untyped)
    counts = Counter(item.popularity for item in items if item.popularity)
    head = counts["head"] / n
    missing = [value for value in get_args(Popularity) if not counts[value]]
    says = f"head is {head:.0%}" + (f", none is {', '.join(missing)}" if missing else "")
    unknown = [item.query_id for item in items if item.popularity is None]
    yield _Found("popularity", _met(not missing and head <= 0.5), head, "all values, head at most 50%", says, unknown)
    without = sum(not item.answerable for item in items)
    verdict: Verdict = "pass" if without >= 20 else "warn" if without >= 5 else "fail"
    yield _Found("not_answerable", verdict, float(without), "5 to be used, 20 for a claim", f"{without} items")
    false = sum(item.question_type == "false_premise" for item in items)
    yield _Found("false_premise", _met(false > 0), float(false), "1", f"{false} items")


def _sources(resolved: ResolvedSet) -> Iterator[_Found]:
    answerable = [one for one in resolved.items if one.item.answerable]
    bare = [one.item.query_id for one in answerable if not one.bodies]
    share = 1 - len(bare) / len(answerable) if answerable else None
    says = f"{len(answerable) - len(bare)} of {len(answerable)} answerable items have an exemplar or a citation"
    yield _Found("provenance", _met(not bare), share, "on each answerable item", says, bare)
    cited = sum(len(one.item.citations) for one in resolved.items)
    # One that resolves to nothing stops the night before this is asked.
    yield _Found("citations", "pass", float(cited), "each resolves", f"{cited} citations, each resolves")
    ungraded = [
        one.item.query_id
        for one in resolved.items
        if {each.concept_id for each in one.item.assertions if each.concept_id}
        - {each.concept_id for each in one.item.golden_concepts}
    ]
    named = sum(each.concept_id is not None for one in resolved.items for each in one.item.assertions)
    says = f"{named} assertions name a concept, in {len(ungraded)} items without its grade"
    yield _Found("concepts", _met(not ungraded), float(named), "graded where an assertion names one", says, ungraded)


def _judged(items: Sequence[GoldenItem], grades: Grades, pools: Mapping[str, Collection[str]]) -> Iterator[_Found]:
    answerable = [item.query_id for item in items if item.answerable]
    pooled = sum(len(pools.get(query_id, ())) for query_id in answerable)
    known = {
        query_id: sum(class_id in grades.get(query_id, {}) for class_id in pools.get(query_id, ()))
        for query_id in answerable
    }
    unjudged = [query_id for query_id in answerable if known[query_id] < len(pools.get(query_id, ()))]
    share = sum(known.values()) / pooled if pooled else None
    says = f"{sum(known.values())} of {pooled} classes among the first ten of all engines are judged"
    yield _Found("judged@10", _met(pooled > 0 and not unjudged), share, "1", says, unjudged)
    now = [
        item.query_id
        for item in items
        if not item.answerable and any(each.grade >= RIGHT for each in grades.get(item.query_id, {}).values())
    ]
    says = f"{len(now)} items without an answer have a class judged {RIGHT} or more in this corpus"
    yield _Found("answerable_now", _met(not now), float(len(now)), "0", says, now)
    no_zero = [query_id for query_id in answerable if all(each.grade for each in grades.get(query_id, {}).values())]
    says = f"{len(answerable) - len(no_zero)} of {len(answerable)} answerable items have one"
    value = float(len(answerable) - len(no_zero))
    yield _Found("grade_0", _met(not no_zero), value, "one an item", says, no_zero)


def _judge(judge: Agreement | None) -> _Found:
    wanted = f"quadratic kappa surely {LOWEST_KAPPA} or more, over {FEWEST} pairs"
    if judge is None:
        return _Found("judge", "warn", None, wanted, "no judge is pinned: judgments of models count nowhere")
    bounds = judge.interval
    interval = "no interval" if bounds is None else f"{bounds.low:.2f} to {bounds.high:.2f}"
    kappa = "no kappa" if judge.quadratic is None else f"kappa {judge.quadratic:.2f} ({interval})"
    says = f"{kappa} over {len(judge.pairs)} pairs that people graded too"
    return _Found("judge", _met(judge.validated), judge.quadratic, wanted, says + ("" if judge.validated else _UNSURE))


_UNSURE = ": `judge_unvalidated`"


def _structure(items: Sequence[GoldenItem]) -> Iterator[_Found]:
    # Equal questions stop the run; here are those that nearly are.
    runs = [(item.query_id, character_runs(item.question)) for item in items]
    alike = {
        query_id
        for (left, ours), (right, theirs) in combinations(runs, 2)
        if len(ours & theirs) >= SAME * len(ours | theirs)
        for query_id in (left, right)
    }
    verdict: Verdict = "warn" if alike else "pass"
    yield _Found("duplicates", verdict, float(len(alike)), "0", f"{len(alike)} questions are nearly another", alike)
    clusters = len({item.cluster_id for item in items})
    verdict = "pass" if clusters >= 50 else "warn" if clusters >= 20 else "fail"
    yield _Found("clusters", verdict, float(clusters), "50", f"{clusters} clusters")
    regression = [item.query_id for item in items if item.split == "regression"]
    share = len(regression) / len(items)
    met = share <= 0.5
    says = f"{share:.0%} are regression items"
    yield _Found("regression", _met(met), share, "at most half", says, () if met else regression)


def _met(met: bool) -> Verdict:
    return "pass" if met else "fail"
