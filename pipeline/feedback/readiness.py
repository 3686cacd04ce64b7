"""What a golden set is good for: one line a demand, passed, nearly or not, with its number and the items at fault."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Literal, NamedTuple, get_args

from pydantic import Field

from pipeline.errors import counted
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
    resolved: ResolvedSet,
    grades: Grades,
    pools: Mapping[str, Collection[str]],
    configurations: int = 2,
    judge: Agreement | None = None,
    beside: Sequence[GoldenItem] = (),
) -> list[ReadinessRow]:
    """Return every demand on a set, in a fixed order.

    Args:
        resolved: the set, resolved in the corpus.
        grades: resolved judgments of the classes of the corpus.
        pools: for each item the first ten classes of every engine.
        configurations: how many engines, or settings of one, the pools are of.
        beside: the items of the set that this one's failures were promoted to, or were promoted from.
        judge: how the pinned judge agrees with people; None where no judge is pinned.
    """
    items = [one.item for one in resolved.items]
    found = [
        *_kinds(items),
        *_sources(resolved),
        *_judged(items, grades, pools, configurations),
        *_structure(items),
        _regression(items, beside),
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


class _Shares(NamedTuple):
    """How often each value of a field is given; items that have none are told, and in no share."""

    of_item: Mapping[str, str | None]
    counts: Counter[str]

    def share(self, value: str) -> float:
        known = sum(self.counts.values())
        return self.counts[value] / known if known else 0.0

    def at_fault(self, value: str | None) -> list[str]:
        """Return the items without a value, and those that have one of which there are too many."""
        return [query_id for query_id, own in self.of_item.items() if own is None or own == value]

    @property
    def unknown_said(self) -> str:
        unknown = len(self.at_fault(None))
        return f", of those that have one; {counted(unknown, 'item')} without" if unknown else ""


def _shares(of_item: Mapping[str, str | None]) -> _Shares:
    return _Shares(of_item, Counter(value for value in of_item.values() if value is not None))


def _known(met: bool, shares: _Shares) -> Verdict:
    """Return the verdict on what is known: it cannot be passed while items have no value."""
    return "fail" if not met else "warn" if shares.at_fault(None) else "pass"


def _kinds(items: Sequence[GoldenItem]) -> Iterator[_Found]:
    types = _shares({item.query_id: item.question_type for item in items})
    largest = max(types.counts, key=lambda name: (types.counts[name], name), default="")
    too_many = types.share(largest) > 0.6
    says = f"{counted(len(types.counts), 'type')}, the largest is {types.share(largest):.0%}{types.unknown_said}"
    says = says if largest else "no item has a type"
    yield _Found(
        "question_types",
        _known(len(types.counts) >= 4 and not too_many, types),
        float(len(types.counts)),
        "4 types, none above 60%",
        says,
        types.at_fault(largest if too_many else None),
    )
    popularity = _shares({item.query_id: item.popularity for item in items})
    head = popularity.share("head")
    missing = [value for value in get_args(Popularity) if not popularity.counts[value]]
    says = f"head is {head:.0%}" + (f", none is {', '.join(missing)}" if missing else "") + popularity.unknown_said
    yield _Found(
        "popularity",
        _known(not missing and head <= 0.5, popularity),
        head,
        "all values, head at most 50%",
        says,
        popularity.at_fault("head" if head > 0.5 else None),
    )
    without = sum(not item.answerable for item in items)
    verdict: Verdict = "pass" if without >= 20 else "warn" if without >= 5 else "fail"
    yield _Found("not_answerable", verdict, float(without), "5 to be used, 20 for a claim", counted(without, "item"))
    false = sum(item.question_type == "false_premise" for item in items)
    yield _Found("false_premise", _met(false > 0), float(false), "1", counted(false, "item"))


def _sources(resolved: ResolvedSet) -> Iterator[_Found]:
    answerable = [one for one in resolved.items if one.item.answerable]
    bare = [one.item.query_id for one in answerable if not one.bodies]
    share = 1 - len(bare) / len(answerable) if answerable else None
    says = f"{len(answerable) - len(bare)} of {len(answerable)} answerable items have an exemplar or a citation"
    yield _Found("provenance", _met(not bare), share, "on each answerable item", says, bare)
    cited = sum(len(one.item.citations) for one in resolved.items)
    # One that resolves to nothing stops the night before this is asked.
    yield _Found(
        "citations",
        "pass",
        float(cited),
        "each resolves",
        f"{counted(cited, 'citation')}, each resolves" if cited else "none to check",
    )
    ungraded = [
        one.item.query_id
        for one in resolved.items
        if {each.concept_id for each in one.item.assertions if each.concept_id}
        - {each.concept_id for each in one.item.golden_concepts}
    ]
    named = sum(each.concept_id is not None for one in resolved.items for each in one.item.assertions)
    says = f"{counted(named, 'assertion')} with a concept, {counted(len(ungraded), 'item')} without its grade"
    says = says if named else "none to check"
    yield _Found("concepts", _met(not ungraded), float(named), "graded where an assertion names one", says, ungraded)


def _judged(
    items: Sequence[GoldenItem], grades: Grades, pools: Mapping[str, Collection[str]], configurations: int
) -> Iterator[_Found]:
    answerable = [item.query_id for item in items if item.answerable]
    pooled = sum(len(pools.get(query_id, ())) for query_id in answerable)
    known = {
        query_id: sum(class_id in grades.get(query_id, {}) for class_id in pools.get(query_id, ()))
        for query_id in answerable
    }
    unjudged = [query_id for query_id in answerable if known[query_id] < len(pools.get(query_id, ()))]
    share = sum(known.values()) / pooled if pooled else None
    says = f"{sum(known.values()):,} of {counted(pooled, 'class')} judged, among the first ten of all engines"
    met = pooled > 0 and not unjudged
    if met and configurations < 2:
        says += ", which is one alone: what another would show nobody looked at"
    verdict: Verdict = "fail" if not met else "warn" if configurations < 2 else "pass"
    yield _Found("judged@10", verdict, share, "1, over two configurations", says, unjudged)
    now = [
        item.query_id
        for item in items
        if not item.answerable and any(each.grade >= RIGHT for each in grades.get(item.query_id, {}).values())
    ]
    says = f"{counted(len(now), 'item')} without an answer and with a class judged {RIGHT} or more in this corpus"
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
    said = f"{counted(len(alike), 'question')} nearly the same as another"
    yield _Found("duplicates", _met(not alike), float(len(alike)), "0", said, alike)
    clusters = len({item.cluster_id for item in items})
    verdict: Verdict = "pass" if clusters >= 50 else "warn" if clusters >= 20 else "fail"
    yield _Found("clusters", verdict, float(clusters), "50", counted(clusters, "cluster"))


def _regression(items: Sequence[GoldenItem], beside: Sequence[GoldenItem]) -> _Found:
    """Say how much of a set was promoted. A set in a file and the one that its failures went to are one in this."""
    own = [item.query_id for item in items if item.split == "regression"]
    every = [*items, *beside]
    share = sum(item.split == "regression" for item in every) / len(every)
    says = f"{share:.0%} are regression items" + (", of this set and the one beside it" if beside else "")
    return _Found("regression", _met(share <= 0.5), share, "at most half", says, own if share > 0.5 else ())


def _met(met: bool) -> Verdict:
    return "pass" if met else "fail"
