"""A tap that was made to hurt is named and foreseen; a tap of unrelated text is neither."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pipeline.engines import Query
from pipeline.engines.bm25 import Bm25, Bm25Options
from pipeline.engines.lexical import IndexedTaps
from pipeline.errors import BadInput
from pipeline.falloff.attribution import Shown, attribute, harm, taken_by_tap
from pipeline.falloff.forecast import forecast
from pipeline.falloff.grading import Asked, ask
from pipeline.falloff.onepass import WordCurve
from pipeline.falloff.orders import entry_orders, order_by_harm, random_orders
from pipeline.falloff.points import Named
from pipeline.golden.items import parse_golden_set
from pipeline.golden.resolve import resolve
from tests.falloff.corpora import Entry, Small

NAMED = Named("set", "digest", "bm25")
ENGINE = Bm25(Bm25Options())
ITEMS = 30
HURT = 24
"""Items whose wording the hurting tap copies."""
TARGET, HURTING, HELPFUL, UNRELATED, EMPTY = "a/target", "b/hurting", "c/mirrors", "d/unrelated", "e/empty"


def question(item: int) -> str:
    return f"needle{item}a needle{item}b"


def registries(items: int = ITEMS) -> Small:
    """A target tap; one with twelve shorter copies of most questions; one of mirrors; one of other words; one empty."""
    draw = random.Random(1)
    other = [f"other{place}" for place in range(300)]
    found = [
        Entry(TARGET, b"%03d" % item, f"skill-{item}", f"{question(item)} {' '.join(draw.choices(other, k=20))}")
        for item in range(items)
    ]
    found += [
        Entry(HURTING, b"%03d-%02d" % (item, copy), "copy", f"{question(item)} {draw.choice(other)} copy{copy}")
        for item in range(min(HURT, items))
        for copy in range(12)
    ]
    found += [Entry(HELPFUL, b"%03d" % item, f"skill-{item}", found[item].body) for item in range(items)]
    found += [Entry(UNRELATED, b"%03d" % n, "other", " ".join(draw.choices(other, k=25))) for n in range(300)]
    return Small((TARGET, HURTING, HELPFUL, UNRELATED, EMPTY), tuple(found), frozenset({TARGET}))


class Study:
    def __init__(self, small: Small, items: int = ITEMS) -> None:
        rows = [{"query": question(item), "exemplar": f"{TARGET}::{item:03}"} for item in range(items)]
        golden = parse_golden_set(Path("set.jsonl"), "\n".join(map(json.dumps, rows)).encode())
        self.corpus = small.corpus
        self.shown = Shown([entry.slug for entry in small.entries], [entry.body for entry in small.entries])
        resolved = resolve(golden, small.listed(range(len(small.entries))))
        self.asked: Asked = ask(resolved, *self.shown, self.corpus)
        self.queries = [Query(item.query_id, item.question) for item in golden.items]
        self.indexed = IndexedTaps(small.indexes(ENGINE))

    def curve(self, places: Sequence[int] | None = None) -> WordCurve:
        queries = self.queries if places is None else [self.queries[place] for place in places]
        return WordCurve(self.indexed, ENGINE, queries, self.corpus.class_of, self.corpus.in_targets)


@pytest.fixture(scope="module")
def study() -> Study:
    return Study(registries())


@pytest.fixture(scope="module")
def attribution(study: Study) -> pa.Table:
    orders = random_orders(study.corpus).drawn
    return attribute(NAMED, study.corpus, study.asked, study.curve, orders, study.shown)


def test_the_hurting_tap_took_every_lost_query_and_no_other_tap_took_one(attribution: pa.Table) -> None:
    taken = taken_by_tap(attribution)
    assert taken[HURTING] == pytest.approx(HURT)
    assert all(share == 0 for tap, share in taken.items() if tap != HURTING)


def test_a_lost_query_is_found_again_without_the_hurting_tap_and_not_without_another(attribution: pa.Table) -> None:
    for row in attribution.to_pylist():
        assert row["recovered_without"] == (None if row["tap"] == TARGET else row["tap"] == HURTING)


def test_the_classes_that_outrank_a_target_are_named_and_share_what_their_tap_took(attribution: pa.Table) -> None:
    (one,) = attribution["query_id"].unique().to_pylist()[:1]
    rows = attribution.filter(
        pc.and_(pc.equal(attribution["query_id"], one), pc.equal(attribution["tap"], HURTING))
    ).to_pylist()
    whole, *classes = rows
    assert (whole["class_id"], whole["classes_above"], whole["share"]) == ("*", 12, 1.0)
    assert len(classes) == 12
    assert sum(row["share"] for row in classes) == pytest.approx(1.0)
    assert sorted(row["rank"] for row in classes) == [*range(1, 13)]
    assert {row["slug"] for row in classes} == {"copy"}


def test_the_hurting_tap_is_the_worst_confuser_and_joins_first(study: Study) -> None:
    found = harm(study.corpus, study.asked, study.curve())
    (order,) = order_by_harm(study.corpus, found).drawn
    assert order.taps[0] == HURTING
    assert found[HURTING] == 12 * HURT


@pytest.mark.parametrize(
    ("tap", "outlook", "taken", "mirrors"),
    [(HURTING, "hurts", HURT, 0), (UNRELATED, "no change shown", 0, 0), (HELPFUL, "no change shown", 0, ITEMS)],
)
def test_a_forecast_tells_the_tap_that_hurts(study: Study, tap: str, outlook: str, taken: int, mirrors: int) -> None:
    rows = forecast(NAMED, study.corpus, study.asked, study.curve(), tap).to_pylist()
    (row,) = [row for row in rows if (row["grading"], row["metric"]) == ("row", "recall@10")]
    assert (row["outlook"], len(row["taken"]), row["mirrors"]) == (outlook, taken, mirrors)
    assert row["change"] == pytest.approx(-taken / ITEMS)
    assert row["low"] <= row["change"] <= row["high"]


def test_a_measure_without_a_value_has_a_null_change_and_a_reason(study: Study) -> None:
    rows = forecast(NAMED, study.corpus, study.asked, study.curve(), HURTING).to_pylist()
    assert {(row["change"], row["reason"]) for row in rows if row["grading"] == "name"} == {
        (None, "no item has a value")
    }


def test_a_forecast_on_few_items_shows_the_change_and_makes_nothing_of_it() -> None:
    few = Study(registries(10), 10)
    rows = forecast(NAMED, few.corpus, few.asked, few.curve(), HURTING).to_pylist()
    (row,) = [row for row in rows if (row["grading"], row["metric"]) == ("row", "recall@10")]
    assert (row["change"], row["outlook"]) == (-1.0, "no change shown")
    assert row["reason"] == "insufficient items: 10 clusters, fewer than 20"


@pytest.mark.parametrize(
    ("tap", "what"),
    [("x/typo", "is not in the corpus"), (TARGET, "is a target"), (EMPTY, "it has no entry")],
)
def test_a_tap_that_cannot_be_left_out_has_no_forecast(study: Study, tap: str, what: str) -> None:
    with pytest.raises(BadInput, match=what):
        forecast(NAMED, study.corpus, study.asked, study.curve(), tap)


def test_where_no_query_is_lost_there_is_no_row(study: Study) -> None:
    small = registries()
    harmless = Study(Small(small.taps, tuple(e for e in small.entries if e.tap != HURTING), small.targets))
    orders = random_orders(harmless.corpus, 3).drawn
    assert attribute(NAMED, harmless.corpus, harmless.asked, harmless.curve, orders, harmless.shown).num_rows == 0


def test_single_entries_tell_no_taps_apart(study: Study) -> None:
    with pytest.raises(ValueError, match="orders of whole taps"):
        attribute(NAMED, study.corpus, study.asked, study.curve, entry_orders(study.corpus, 1).drawn, study.shown)
    assert np.array_equal(study.corpus.sizes, [ITEMS, 12 * HURT, ITEMS, 300, 0])
