"""What abstaining is worth at a size is what the table ``abstention`` would say of that corpus."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from pipeline import stages
from pipeline.config import Overrides, load
from pipeline.engines.bm25 import Bm25, Bm25Options
from pipeline.engines.okapi import Okapi, OkapiOptions
from pipeline.engines.ranking import rank_answers
from pipeline.falloff.abstaining import ABSTAINING, OF_PAIRS, Judged, abstention_points, judged
from pipeline.falloff.grading import ABSENT, Asked, Curves, Firsts, measure
from pipeline.falloff.orders import Order, Subsets, random_orders, sizes_by_factor, subsets
from pipeline.falloff.points import Named, cluster_draws
from pipeline.falloff.rows import FalloffPoint
from pipeline.judgments.resolution import Grades
from pipeline.reports.feed import Night, published_runs, read_run
from pipeline.scoring import Signal
from pipeline.scoring.abstention import Point, at_threshold, auroc, fit
from pipeline.scoring.signals import SIGNALS, signals_of
from pipeline.workspace import Workspace, judged_grades
from tests.falloff.stored import Stored, stored

NAMED = Named("set", "digest", "bm25")
BM25, OKAPI = Bm25(Bm25Options()), Okapi(OkapiOptions())


@pytest.fixture(scope="module")
def embedded(examples: Path, finished: Path) -> tuple[Stored, Grades]:
    settings = load(Overrides(config=examples / "config" / "assay.toml", store=finished), {})
    of = stored(settings)
    workspace = Workspace(settings, Night(settings.store, "abstaining"))
    return of, judged_grades(workspace, stages.place(workspace).corpus, of.resolved, of.entries)["all"]


def rows(
    known: Judged, asked: Asked, curves: Curves, seed: int | None, deciding: Signal = "top_score"
) -> dict[tuple[str, int], FalloffPoint]:
    table = abstention_points(NAMED, asked, known, curves, deciding)
    found = [FalloffPoint(**row) for row in table.to_pylist()]
    return {(row.metric, row.step): row for row in found if row.seed == seed}


def test_the_end_of_the_curve_is_what_the_night_says_of_the_whole_corpus(examples: Path, finished: Path) -> None:
    store = load(Overrides(config=examples / "config" / "assay.toml", store=finished), {}).store
    (run,) = published_runs(store)
    tables = read_run(store, run, ["falloff", "abstention"])
    ends = {
        (row["engine"], row["metric"]): row
        for row in sorted(tables["falloff"].to_pylist(), key=lambda row: row["step"])
        if (row["grading"], row["seed"]) == ("qrels", None)
    }
    nightly = {
        (row["engine"], row["signal"], row["policy"]): row
        for row in tables["abstention"].to_pylist()
        if row["items"] == "all"
    }
    assert {metric for _, metric in ends} == {*ABSTAINING}
    for (engine, metric), row in ends.items():
        policy = "always_answer" if metric == "truthfulness_always_answer" else "fitted"
        signal, column = (OF_PAIRS[metric], "auroc") if metric in OF_PAIRS else ("top_score", metric)
        column = "truthfulness" if policy == "always_answer" else column
        assert row["value"] == pytest.approx(nightly[engine, signal, policy][column], abs=1e-12), metric
        assert row["order_low"] == row["order_high"] == row["value"]
        assert (row["k"], row["n_items"], row["n_absent"]) == (None, 93, 0)


@pytest.mark.parametrize("deciding", SIGNALS)
@pytest.mark.parametrize("engine", [BM25, OKAPI], ids=["bm25", "bm25-okapi"])
def test_every_point_is_what_a_rebuilt_index_would_answer(
    embedded: tuple[Stored, Grades], engine: Bm25 | Okapi, deciding: Signal
) -> None:
    of, grades = embedded
    nominal = sizes_by_factor(of.corpus, 5).nominal
    items = [one.item for one in of.resolved.items]
    known = judged(items, of.asked, of.shown.class_ids, grades)
    of_orders = [subsets(of.corpus, order, nominal) for order in random_orders(of.corpus, 3).drawn]
    curves = measure(of.asked, of.curve(engine), of_orders)
    for order in of_orders:
        found = rows(known, of.asked, curves, order.order.seed, deciding)
        for step in random.Random(order.order.seed).sample(range(len(nominal)), 2):
            for name, value in rebuilt(of, engine, grades, order, step, deciding).items():
                assert found[name, step + 1].value == pytest.approx(value, abs=1e-12), name


def rebuilt(
    of: Stored, engine: Bm25 | Okapi, grades: Grades, subset: Subsets, step: int, deciding: Signal
) -> dict[str, float | None]:
    kept = np.flatnonzero(subset.step_of <= step)
    entries = of.entries.take(kept)
    present = {*entries["tap"].to_pylist()}
    indices = [index for tap, index in zip(of.corpus.taps, of.indices, strict=True) if tap in present]
    answers = [*engine.retriever(indices).answer(of.queries)]
    reach = {answer.query_id: answer.reach for answer in answers}
    hits: dict[str, list[dict[str, object]]] = {}
    for hit in rank_answers(answers, entries).hits.to_pylist():
        if hit["rank"] is not None:
            hits.setdefault(hit["query_id"], []).append(hit)
    points: dict[Signal, list[Point]] = {signal: [] for signal in SIGNALS}
    tuning = []
    for one, why in zip(of.resolved.items, of.asked.reasons[0], strict=True):
        if why == ABSENT:
            continue
        ranking = hits.get(one.item.query_id, [])
        scores = [float(str(hit["score"])) for hit in ranking]
        judged_as = grades.get(one.item.query_id, {}).get(str(ranking[0]["class_id"])) if ranking else None
        grade = judged_as.grade if judged_as else None
        signals = signals_of(scores, reach[one.item.query_id])
        for signal, of_signal in points.items():
            of_signal.append(Point(signals.of(signal), one.item.answerable, grade))
        tuning.append(one.item.split == "tuning")
    threshold = fit([point for point, fits in zip(points[deciding], tuning, strict=True) if fits])
    policy = at_threshold(points[deciding], -math.inf if threshold is None else threshold)
    return {
        "truthfulness": policy.truthfulness.value,
        "truthfulness_low": policy.truthfulness.low,
        "truthfulness_high": policy.truthfulness.high,
        "truthfulness_abstain_credit": policy.credit,
        "truthfulness_always_answer": at_threshold(points[deciding], -math.inf).truthfulness.value,
        "coverage": policy.coverage,
        "false_abstention_rate": policy.false_abstention_rate,
        "false_answer_rate": policy.false_answer_rate,
        **{metric: auroc(points[signal]) for metric, signal in OF_PAIRS.items()},
    }


def made(
    scores: Sequence[Sequence[float]], clusters: Sequence[str], answerable: Sequence[bool]
) -> tuple[Asked, Judged, Curves]:
    """Orders of one size; of each item the first score, NaN for none. Class 0 is first everywhere, graded 3."""
    orders, items = len(scores), len(clusters)
    nothing = np.zeros((2, items), np.int64)
    asked = Asked(
        tuple(f"q{at}" for at in range(items)),
        tuple(clusters),
        np.zeros((2, items, 0), np.int16),
        np.ones((2, items), np.bool_),
        ((None,) * items,) * 2,
        nothing,
        nothing,
        np.zeros(0, np.int64),
    )
    top = np.array(scores)[:, None, :]
    sizes = np.full((orders, 1), 10)
    firsts = Firsts(np.where(np.isnan(top), -1, 0), top, np.full(top.shape, np.nan), np.full(top.shape, 4.0))
    drawn = tuple(Order("random", seed, np.zeros(0, np.int64)) for seed in range(orders))
    curves = Curves(
        drawn, np.array([10]), sizes, sizes, sizes, np.zeros((orders, 1, items, 0, 0, 0)), np.zeros(0, np.int32), firsts
    )
    flags = np.array(answerable)
    return asked, Judged(flags, flags & False, flags | True, np.full((items, 1), 3, np.int8)), curves


def test_a_pair_of_items_counts_in_a_draw_as_often_as_both_of_its_clusters_were_drawn() -> None:
    draw = random.Random(3)
    scores = [[draw.choice([1.0, 2.0, 3.0, 4.0, math.nan]) for _ in range(12)] for _ in range(3)]
    clusters = [f"c{at // 2}" for at in range(12)]
    answerable = [at % 3 > 0 for at in range(12)]
    asked, known, curves = made(scores, clusters, answerable)
    row = rows(known, asked, curves, None)["auroc", 1]

    def area(items: Sequence[int]) -> float | None:
        """AUROC over items, some of them several times, as the mean over orders."""
        of = [
            auroc(Point(None if math.isnan(order[at]) else order[at], answerable[at], 3) for at in items)
            for order in scores
        ]
        return None if None in of else sum(value or 0.0 for value in of) / len(of)

    assert row.value == pytest.approx(area(range(12)))
    assert (row.n, row.n_null, row.orders) == (4, 0, 3)
    weights = cluster_draws(clusters, 0)
    drawn = [area([at for at in range(12) for _ in range(of[at // 2])]) for of in weights.tolist()]
    known_draws = [value for value in drawn if value is not None]
    assert (row.query_low, row.query_high) == pytest.approx(tuple(np.percentile(known_draws, (2.5, 97.5))))


def test_what_is_not_defined_is_null_with_a_reason() -> None:
    asked, known, curves = made([[1.0, 2.0]], ["a", "b"], [True, True])
    found = rows(known, asked, curves, None)
    assert (found["false_answer_rate", 1].value, found["false_answer_rate", 1].reason) == (
        None,
        "every item has an answer",
    )
    assert (found["auroc", 1].value, found["auroc", 1].reason) == (
        None,
        "items with an answer and without are both needed",
    )
    assert (found["auroc", 1].n, found["auroc", 1].n_null) == (0, 2)
    unjudged = known._replace(grades=np.full((2, 1), -1, np.int8))
    row = rows(unjudged, asked, curves, None)["truthfulness", 1]
    assert (row.value, row.reason, row.label) == (None, "no answer is judged", "no items")
    none = rows(known._replace(answerable=~known.answerable), asked, curves, None)
    assert none["false_abstention_rate", 1].reason == "no item has an answer"


def test_where_another_order_judges_other_answers_the_mean_lies_between_the_orders() -> None:
    """In one order half of the answers are unjudged, and those that are judged are right."""
    asked, known, curves = made([[1.0] * 4, [1.0] * 4], ["a", "b", "c", "d"], [True] * 4)
    grades = np.array([[3, 3], [3, -1], [0, -1], [0, 3]], np.int8)
    firsts = curves.firsts._replace(classes=np.array([[[0] * 4], [[1] * 4]]))
    row = rows(known._replace(grades=grades), asked, curves._replace(firsts=firsts), None)["truthfulness", 1]
    assert row.order_low is not None and row.order_high is not None and row.value is not None
    assert row.order_low <= row.value <= row.order_high
    assert (row.value, row.n) == (0.5, 2)
