"""The measures of every subset are those that scoring gives a ranking of that subset alone."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.engines import Query
from pipeline.engines.bm25 import Bm25, Bm25Options
from pipeline.engines.lexical import IndexedTaps
from pipeline.falloff import kernel, orders
from pipeline.falloff.grading import ABSENT, MEASURES, TREATMENTS, Asked, ask, measure, measure_rankings
from pipeline.falloff.onepass import Rankings, WordCurve
from pipeline.golden.items import parse_golden_set
from pipeline.golden.resolve import Resolved, ResolvedSet, resolve
from pipeline.scoring.grade import Hit
from pipeline.scoring.means import GRADINGS, score_item
from pipeline.scoring.measures import Graded, Undefined
from tests.falloff.corpora import ASKED, Entry, Small, drawn, rebuilt, smalls

ENGINE = Bm25(Bm25Options())


def golden(small: Small, seed: int) -> ResolvedSet:
    """Rows that are graded by exemplar, any and all, by name, with decisions, and not at all."""
    draw = random.Random(seed)
    rows: list[dict[str, object]] = []
    names = sorted({entry.slug for entry in small.entries})
    ids = [f"{entry.tap}::{entry.path.decode()}" for entry in small.entries]
    for place in range(6):
        row: dict[str, object] = {"query": f"{' '.join(draw.choices(ASKED, k=3))} {place}", "queryId": f"q{place}"}
        kind = draw.choice(["any", "all", "name", "none"])
        if kind == "none":
            rows.append(row | {"answerable": False})
            continue
        if kind != "name":
            # Mostly targets, so that most rows count.
            near = [id_ for id_ in ids if id_.partition("::")[0] in small.targets or draw.random() < 0.1]
            row |= {"exemplar": draw.sample(near, k=min(2, len(near))), "match": kind}
        if kind == "name" or draw.random() < 0.5:
            row |= {"relevant": draw.sample(names, k=draw.randrange(1, len(names) + 1))}
        if kind != "name" and draw.random() < 0.7:
            bodies = {entry.body for entry, id_ in zip(small.entries, ids, strict=True) if id_ in str(row["exemplar"])}
            others = {
                entry.body: id_ for entry, id_ in zip(small.entries, ids, strict=True) if entry.body not in bodies
            }
            wrong = draw.sample(sorted(others.values()), k=min(draw.randrange(1, 4), len(others)))
            row |= {
                "decisions": [{"entry": id_, "include": False, "by": "x", "reason": "different_job"} for id_ in wrong]
            }
        if kind == "name" and draw.random() < 0.7:
            row |= {"decisions": [{"entry": draw.choice(ids), "include": False, "by": "x", "reason": "different_job"}]}
        rows.append(row)
    data = "\n".join(map(json.dumps, rows)).encode()
    return resolve(parse_golden_set(Path("set.jsonl"), data), small.listed(range(len(small.entries))))


def within(one: Resolved, small: Small, rows: list[int]) -> Resolved:
    """The item in a subset: its entries are those of the subset, all else is what the whole corpus says."""
    entries = [small.entries[row] for row in rows]
    return one._replace(
        class_entries=sum(entry.body in one.classes for entry in entries),
        name_entries=sum(entry.slug in one.item.relevant for entry in entries),
    )


@settings(deadline=None, max_examples=15)
@given(smalls, st.integers(0, 10**6))
def test_every_measure_is_that_of_a_ranking_of_the_subset_alone(small: Small, seed: int) -> None:
    corpus, resolved = small.corpus, golden(small, seed)
    queries = [Query(one.item.query_id, one.item.question) for one in resolved.items]
    asked = ask(resolved, [e.slug for e in small.entries], [e.body for e in small.entries], corpus)
    curve = WordCurve(IndexedTaps(small.indexes(ENGINE)), ENGINE, queries, corpus.class_of, corpus.in_targets)
    for order in (*orders.random_orders(corpus, 1).drawn, *orders.entry_orders(corpus, 1).drawn):
        subsets = orders.subsets(corpus, order, orders.sizes_by_factor(corpus, 3).nominal)
        curves = measure(asked, curve, [subsets])
        for step in range(subsets.steps):
            rows = np.flatnonzero(subsets.step_of <= step).tolist()
            for place, (one, ranking) in enumerate(
                zip(resolved.items, rebuilt(small, ENGINE, rows, queries), strict=True)
            ):
                hits = [Hit(small.entries[row].body, small.entries[row].slug) for row in ranking.entries.tolist()]
                for number, grading in enumerate(GRADINGS):
                    values = curves.values[0, step, place, number]
                    if asked.reasons[number][place] == ABSENT:
                        assert np.isnan(values).all()
                        continue
                    score = score_item(within(one, small, rows), grading, hits)
                    for treatment, found in zip(TREATMENTS, values.tolist(), strict=True):
                        right = score.values if treatment == "removed" else score.compared[treatment]
                        for measured, value in zip(MEASURES, found, strict=True):
                            if measured not in right:
                                continue
                            wanted = right[measured]
                            if isinstance(wanted, Undefined):
                                assert math.isnan(value), measured
                            else:
                                assert value == wanted, (str(measured), treatment, grading)


def test_every_measure_is_that_of_the_grades_along_a_ranking() -> None:
    for seed in range(200):
        assert_measures_of_grades(seed)


def assert_measures_of_grades(seed: int) -> None:
    """Each hit fills a slot, is unjudged, or is wrong; some that are relevant or wrong are not ranked at all."""
    draw = random.Random(seed)
    relevant, unseen = draw.randrange(1, 8), draw.choice([0, 0, 1, 9])
    slots = draw.choices([kernel.WRONG, kernel.UNJUDGED, *range(relevant)], k=draw.choice([0, 5, 20, 50, 130]))
    size, others = len(slots), slots.count(kernel.WRONG) + unseen
    wanted_of, others_of = (np.full((2, 1), number, np.int64) for number in (relevant, others))
    asked = Asked(
        ("q",),
        ("q",),
        np.tile(np.array(slots, np.int16), (2, 1, 1)),
        np.ones((2, 1), np.bool_),
        ((None,), (None,)),
        wanted_of,
        others_of,
        np.arange(size),
    )
    ranks = np.minimum(np.arange(1, size + 1), 100).astype(np.int32)
    rankings = Rankings(1, np.array([0, size]), np.arange(size, dtype=np.int32), np.ones(size), ranks, np.ones(1))
    order = orders.Order("random", 0, np.zeros(size, np.int64))
    one = np.array([size])
    values, _ = measure_rankings(asked, rankings, orders.Subsets(order, one, np.zeros(size, np.int32), one, one, one))
    gains = np.array([slot >= 0 and slot not in slots[:place] for place, slot in enumerate(slots)], np.float64)
    graded = Graded(gains, np.array(slots) != kernel.UNJUDGED, np.repeat([1.0, 0.0], [relevant, others]))
    known = graded._replace(judged=(gains > 0) | (np.array(slots) == kernel.WRONG))
    for measured, value in zip(MEASURES, values[0, 0, 0, 0].tolist(), strict=True):
        wanted = measured(known if measured.family == "bpref" else graded)
        assert math.isnan(value) if isinstance(wanted, Undefined) else value == wanted, measured


@given(st.lists(st.floats(-1e6, 1e6) | st.sampled_from([1e-300, 0.1, 2.0**-53, 1.0, 2.0**53]), max_size=30))
def test_a_sum_is_rounded_once(values: list[float]) -> None:
    given_ = np.array([*values, 0.0])
    assert kernel.exact_sum(given_, len(values), np.zeros(64)) == math.fsum(values)


def test_an_item_whose_target_is_in_no_small_subset_is_left_out_of_all() -> None:
    small = Small(
        ("t/0", "t/1"),
        (Entry("t/0", b"a", "x", "alpha"), Entry("t/1", b"b", "y", "beta")),
        frozenset({"t/0"}),
    )
    rows = [{"query": "alpha", "relevant": ["x"]}, {"query": "beta", "relevant": ["y"]}]
    data = "\n".join(map(json.dumps, rows)).encode()
    resolved = resolve(parse_golden_set(Path("set.jsonl"), data), small.listed([0, 1]))
    asked = ask(resolved, ["x", "y"], ["alpha", "beta"], small.corpus)
    assert asked.reasons == ((None, ABSENT), (None, ABSENT))


def test_an_order_that_is_given_twice_and_rankings_of_something_else_are_refused() -> None:
    small = drawn(1)
    corpus = small.corpus
    resolved = golden(small, 0)
    asked = ask(resolved, [e.slug for e in small.entries], [e.body for e in small.entries], corpus)
    curve = WordCurve(IndexedTaps(small.indexes(ENGINE)), ENGINE, [], corpus.class_of, corpus.in_targets)
    subsets = orders.subsets(corpus, orders.random_orders(corpus, 1).drawn[0], [corpus.entries])
    with pytest.raises(ValueError, match="given twice"):
        measure(asked, curve, [subsets, subsets])
    with pytest.raises(ValueError, match="one or more"):
        measure(asked, curve, [])
    with pytest.raises(ValueError, match="not of the same questions"):
        measure(asked, curve, [subsets])
    with pytest.raises(ValueError, match="subsets of 1 entries"):
        curve.rank(subsets._replace(step_of=np.zeros(1, np.int32)))
