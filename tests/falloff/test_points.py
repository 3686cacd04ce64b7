"""Points and their bands, models, and what is read off them, on curves whose truth is known."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest

from pipeline.errors import BadInput
from pipeline.falloff.grading import ABSENT, MEASURES, TREATMENTS, Asked, Curves, Firsts
from pipeline.falloff.models import MODELS, Fitted, _crossing, crossings, fit, fit_curves, predict
from pipeline.falloff.orders import Order
from pipeline.falloff.points import COLUMNS, Named, cluster_draws, mean_over_orders, points
from pipeline.falloff.rows import FalloffFit, FalloffPoint
from pipeline.scoring.means import GRADINGS

NAMED = Named("set", "digest", "bm25")


def asked(items: int, clusters: int | None = None, absent: int = 0) -> Asked:
    reasons = tuple([None] * (items - absent) + [ABSENT] * absent)
    nothing = np.zeros((2, items), np.int64)
    return Asked(
        tuple(f"q{place}" for place in range(items)),
        tuple(f"c{place * (clusters or items) // items}" for place in range(items)),
        np.zeros((2, items, 0), np.int16),
        np.ones((2, items), np.bool_),
        (reasons, reasons),
        nothing,
        nothing,
        np.zeros(0, np.int64),
    )


def curves(
    value: Callable[[int, float, int], float], *, orders: int = 3, items: int = 60, sizes: int = 9, drawn: bool = True
) -> Curves:
    """Curves from 100 entries on, doubling, of which every measure is ``value(order, log2 of the size, item)``."""
    entries = 100 * 2 ** np.arange(sizes)
    values = np.array(
        [
            [[1.0 * value(order, math.log2(size), item) for item in range(items)] for size in entries.tolist()]
            for order in range(orders)
        ]
    )
    shape = (orders, sizes, items, len(GRADINGS), len(TREATMENTS), len(MEASURES))
    same = np.broadcast_to(entries, (orders, sizes))
    return Curves(
        tuple(
            Order("random" if drawn else "size", seed if drawn else None, np.zeros(0, np.int64))
            for seed in range(orders)
        ),
        entries,
        same,
        same,
        same // 100,
        np.broadcast_to(values[..., None, None, None], shape).copy(),
        np.zeros(shape[:-1], np.int32),
        Firsts(*np.full((4, *shape[:3]), np.nan)),
    )  # fmt: skip


def rows(asked: Asked, curves: Curves, metric: str = "recall@10") -> list[FalloffPoint]:
    found = points(NAMED, asked, curves)
    for column, wanted in {"metric": metric, "grading": "row", "treatment": "removed"}.items():
        found = found.filter(pc.equal(found[column], wanted))
    return [FalloffPoint(**row) for row in found.to_pylist()]


def test_every_measure_has_a_point_under_each_treatment_and_grading_at_each_size_of_each_order() -> None:
    table = points(NAMED, asked(60), curves(lambda order, x, item: 0.5))
    assert table.num_rows == len(COLUMNS) * 9 * (3 + 1)
    assert len(COLUMNS) == 2 * (42 + 38 + 38)


def test_the_band_of_orders_has_no_width_where_the_orders_agree_and_that_of_queries_has() -> None:
    def value(order: int, x: float, item: int) -> float:
        inside = math.log2(100) < x < math.log2(25_600)
        return (item % 10) / 10 - (0.05 * order if inside else 0.0)

    curve = [row for row in rows(asked(60), curves(value)) if row.seed is None]
    for place, row in enumerate(curve):
        assert row.order_low is not None and row.order_high is not None and row.value is not None
        assert row.query_low is not None and row.query_high is not None
        assert (row.order_low == row.value == row.order_high) == (place in (0, 8))
        assert row.query_low < row.value < row.query_high
        assert row.orders == 3


def test_a_drawn_order_by_itself_has_no_band_and_a_fixed_order_has_that_of_queries() -> None:
    (one,) = [row for row in rows(asked(60), curves(lambda o, x, i: i % 2)) if row.seed == 1 and row.step == 3]
    assert (one.order_low, one.query_low, one.orders) == (None, None, 1)
    fixed = rows(asked(60), curves(lambda o, x, i: i % 2, orders=1, drawn=False))
    assert len(fixed) == 9
    assert all(row.order_low is None and row.query_low is not None and row.seed is None for row in fixed)


def test_clusters_are_drawn_as_one() -> None:
    value = lambda order, x, item: float(item < 20)  # noqa: E731
    apart, together = (rows(asked(60, clusters), curves(value, orders=1, drawn=False))[0] for clusters in (60, 3))
    assert apart.query_low is not None and apart.query_low > 0.15
    assert (together.query_low, together.query_high, together.n) == (0.0, 1.0, 3)
    assert (apart.label, together.label) == ("ok", "insufficient items")


def test_items_without_a_value_are_counted_and_left_out() -> None:
    given = curves(lambda order, x, item: math.nan if item >= 55 else 0.25)
    row = rows(asked(60, absent=5), given)[0]
    assert (row.value, row.n, row.n_items, row.n_null, row.n_absent) == (0.25, 55, 60, 5, 5)


def test_a_curve_without_a_value_is_null_with_a_reason() -> None:
    row = rows(asked(3, absent=3), curves(lambda order, x, item: math.nan, items=3))[0]
    assert (row.value, row.reason, row.label) == (None, "no item has a value", "no items")


def test_the_gap_is_by_name_minus_as_pinned_over_the_items_that_have_both() -> None:
    given = curves(lambda order, x, item: 0.5)
    given.values[:, :, :, GRADINGS.index("name")] += 0.25
    given.values[:, :, 0, GRADINGS.index("row")] = math.nan
    found = points(NAMED, asked(60), given).select(["grading", "gap"]).to_pylist()
    assert {(row["grading"], row["gap"]) for row in found} == {("name", 0.25), ("row", None)}


def test_draws_are_the_same_on_every_machine() -> None:
    assert cluster_draws(["a", "b", "a", "c"], 0, 3).tolist() == [[0, 1, 2], [1, 1, 1], [2, 1, 0]]
    assert (cluster_draws([str(n) for n in range(45)], 1).sum(axis=1) == 45).all()


def test_what_all_orders_agree_on_is_their_mean_to_the_bit() -> None:
    values = np.full((20, 1), 0.1 + 0.2)
    assert mean_over_orders(values).tolist() == [0.1 + 0.2]


@pytest.mark.parametrize(
    ("name", "a", "b"), [("log-linear", 1.1, -0.06), ("logistic", 3.0, -0.3), ("power", 1.5, -0.25)]
)
def test_a_model_finds_its_own_parameters(name: str, a: float, b: float) -> None:
    model = MODELS[name]  # type: ignore[index]
    x = np.log2(np.array([700, 1500, 3000, 6000, 12_000, 24_000]))
    found = fit(model, x, model.value(a + b * x)[None, :])
    assert (found[0][0], found[1][0]) == (pytest.approx(a, rel=1e-6), pytest.approx(b, rel=1e-6))


def noisy(base: Callable[[float], float]) -> Callable[[int, float, int], float]:
    """A curve whose items and orders lie around ``base``."""
    return lambda order, x, item: base(x) + 0.1 * math.sin(7 * item) + 0.005 * math.sin(5 * order + x)


def test_the_model_that_made_a_curve_is_chosen_and_its_half_size_found() -> None:
    made = curves(noisy(lambda x: 2.0 ** (1.9 - 0.3 * x)), items=60)
    fitted = fit_curves(NAMED, asked(60), made, floors={"recall@10": 0.3, "hit@1": 0.95})
    chosen = [row for row in fitted.fits.to_pylist() if row["metric"] == "recall@10" and row["chosen"]]
    assert {row["model"] for row in chosen} == {"power"}
    found = {
        (row["metric"], row["summary"], row["against"]): row
        for row in fitted.summaries.to_pylist()
        if row["grading"] == "row"
    }
    half = found["recall@10", "half size", ""]
    assert half["value"] == pytest.approx(100 * 2 ** (1 / 0.3), rel=0.1)
    assert half["low"] < half["value"] < half["high"]
    crossed = found["recall@10", "floor crossing", "0.3"]
    assert crossed["value"] == pytest.approx(2 ** ((1.9 - math.log2(0.3)) / 0.3), rel=0.1)
    assert found["hit@1", "floor crossing", "0.95"]["reason"] == "below it at the smallest size already"
    assert found["recall@10", "loss per doubling", ""]["low"] > 0


def test_a_flat_curve_reaches_no_half_size_and_says_so() -> None:
    fitted = fit_curves(NAMED, asked(60), curves(noisy(lambda x: 0.5)), floors={"recall@10": 0.1})
    for row in fitted.summaries.to_pylist():
        if row["summary"] != "loss per doubling":
            assert (row["value"], row["high"], row["reason"]) == (None, None, "not reached")


def test_a_half_size_beyond_twice_the_largest_size_is_not_reached() -> None:
    slow = fit_curves(NAMED, asked(60), curves(noisy(lambda x: 0.6 - 0.02 * x)))
    for row in slow.summaries.to_pylist():
        if row["summary"] == "half size":
            assert (row["value"], row["reason"]) == (None, "not reached")


@pytest.mark.parametrize(
    ("items", "sizes", "why"),
    [(19, 9, "insufficient items: 19 clusters, fewer than 20"), (60, 4, "4 different sizes, fewer than 5")],
)
def test_no_model_is_fitted_to_too_few_items_or_sizes(items: int, sizes: int, why: str) -> None:
    fitted = fit_curves(NAMED, asked(items), curves(noisy(lambda x: 1.1 - 0.06 * x), items=items, sizes=sizes))
    assert {row["reason"] for row in fitted.fits.to_pylist()} == {why}
    assert {(row["value"], row["reason"]) for row in fitted.summaries.to_pylist()} == {(None, why)}
    assert not any(row["chosen"] for row in fitted.fits.to_pylist())


def test_nothing_is_said_beyond_twice_the_largest_size_and_nothing_above_one() -> None:
    row = FalloffFit(
        golden_set="s", engine="e", order_kind="random", grading="row", treatment="removed", metric="recall@10",
        statistics="subset", model="log-linear", a=2.0, b=-0.1, error=0.0, held_out_error=0.0, held_out=3, chosen=True,
        smallest=500, largest=1000, reason=None,
    )  # fmt: skip
    assert predict(row, 2000) == pytest.approx(2 - 0.1 * math.log2(2000))
    assert predict(row.model_copy(update={"a": 9.0}), 600) == 1.0
    for size in (499, 2001):
        with pytest.raises(BadInput, match="the curve reaches from 500 to 1000"):
            predict(row, size)
    with pytest.raises(BadInput, match="there is no model: too few"):
        predict(row.model_copy(update={"a": None, "reason": "too few"}), 600)


def test_two_engines_cross_where_their_difference_changes_its_sign() -> None:
    steep, even = curves(noisy(lambda x: 1.3 - 0.1 * x)), curves(noisy(lambda x: 0.3))
    table = crossings(NAMED, NAMED._replace(engine="other"), asked(60), (steep, even))
    assert {row["against"] for row in table.to_pylist()} == {"other"}
    assert all(row["value"] == pytest.approx(1024, rel=1e-6) and row["reached"] == 1.0 for row in table.to_pylist())
    never = crossings(NAMED, NAMED._replace(engine="other"), asked(60), (even, even))
    assert {(row["value"], row["reason"]) for row in never.to_pylist()} == {(None, "not reached")}


def test_engines_on_other_subsets_are_not_compared() -> None:
    with pytest.raises(ValueError, match="same subsets"):
        crossings(NAMED, NAMED, asked(60), (curves(noisy(lambda x: 0.3)), curves(noisy(lambda x: 0.3), sizes=8)))


@pytest.mark.parametrize(
    ("difference", "size"),
    [
        ([0.1, -0.3, -0.3, -0.3], 2**10.25),
        ([0.1, 0.0, -0.3, -0.3], 2**11),
        ([0.1, 0.0, 0.0, -0.3], 2**11),
        ([0.0, 0.1, 0.1, -0.1], 2**12.5),
        ([0.1, 1e-17, -1e-17, 0.1], math.inf),
        ([0.1, 0.0, 0.1, 0.0], math.inf),
        ([0.0, 0.0, 0.0, 0.3], math.inf),
    ],
)
def test_curves_cross_where_their_difference_is_nothing_not_beyond(difference: list[float], size: float) -> None:
    found = _crossing(np.array([10.0, 11.0, 12.0, 13.0]), np.array([difference, [0.2, 0.2, 0.2, -0.2]]))
    assert found.tolist() == pytest.approx([size, 2**12.5])


def test_of_sizes_with_one_median_the_last_counts_so_that_a_curve_ends_where_the_corpus_does() -> None:
    made = curves(noisy(lambda x: 1.3 - 0.1 * x))
    values = made.values.copy()
    values[:, -2] += 0.4  # a mixture of smaller subsets, whose median is the whole corpus
    entries = made.entries.copy()
    entries[:, -2] = entries[:, -1]
    doubled = made._replace(entries=entries, values=values)
    kept = [*range(7), 8]
    alone = made._replace(entries=made.entries[:, kept], values=made.values[:, kept], nominal=made.nominal[kept])
    left, right = (fit_curves(NAMED, asked(60), of).summaries.to_pylist() for of in (doubled, alone))
    assert left == right


def test_a_model_is_not_chosen_by_what_comes_of_rounding() -> None:
    """As long as the curve is flat all models agree; the one that follows it down is the better one."""
    flat = lambda order, x, item: 1.0 if x < 12.7 else 0.96 if x < 13.7 else 0.72 if x < 14.5 else 0.5  # noqa: E731
    fitted = fit_curves(NAMED, asked(60), curves(flat, sizes=9))
    chosen = {(row["grading"], row["metric"]): row["model"] for row in fitted.fits.to_pylist() if row["chosen"]}
    assert chosen["row", "recall@10"] == "logistic"
    half = summary(fitted, "half size")
    assert half["value"] is not None and half["value"] < 2 * 25_600 and half["reached"] > 0.9


def test_where_nothing_was_drawn_no_share_of_draws_is_told() -> None:
    few = fit_curves(NAMED, asked(10), curves(noisy(lambda x: 0.5), items=10)).summaries.to_pylist()
    assert {row["reached"] for row in few} == {None}
    assert summary(fit_curves(NAMED, asked(60), curves(noisy(lambda x: 0.5))), "loss per doubling")["reached"] is None


def summary(fitted: Fitted, name: str) -> dict[str, Any]:
    (row,) = [
        row
        for row in fitted.summaries.to_pylist()
        if (row["grading"], row["metric"], row["summary"]) == ("row", "recall@10", name)
    ]
    return dict(row)
