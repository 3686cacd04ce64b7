"""Orders and nested subsets: drawn alike everywhere, nested, and outspoken where there is nothing to draw."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import BadInput
from pipeline.falloff.orders import (
    Corpus,
    Order,
    Orders,
    corpus_of,
    entry_orders,
    every_unit,
    order_by_date,
    order_by_harm,
    order_by_size,
    random_orders,
    sizes_by_factor,
    sizes_by_list,
    sizes_by_step,
    subsets,
    tap_last,
    targets_of,
)
from tests.falloff.corpora import Small, smalls

SIZES = {"a/target": 3, "b/large": 40, "c/small": 5, "d/empty": 0, "e/middle": 12}


def corpus(sizes: Mapping[str, int] = SIZES, targets: tuple[str, ...] = ("a/target",)) -> Corpus:
    taps = [tap for tap, size in sizes.items() for _ in range(size)]
    return corpus_of(sizes, taps, [f"class-{place}" for place in range(len(taps))], targets)


def only(orders: Orders) -> Order:
    (order,) = orders.drawn
    return order


def test_the_order_of_two_taps_never_depends_on_a_third() -> None:
    less = {tap: size for tap, size in SIZES.items() if tap != "c/small"}
    for seed, (order, shorter) in enumerate(
        zip(random_orders(corpus(), 50).drawn, random_orders(corpus(less), 50).drawn, strict=False)
    ):
        if order.seed == shorter.seed == seed:
            assert [tap for tap in order.taps if tap != "c/small"] == list(shorter.taps)


def test_drawn_orders_are_the_same_on_every_machine() -> None:
    assert [order.taps for order in random_orders(corpus(), 2).drawn] == [
        ("e/middle", "d/empty", "b/large", "c/small"),
        ("c/small", "b/large", "e/middle", "d/empty"),
    ]
    small = corpus({"a/target": 1, "b/other": 4})
    assert [order.joins.tolist() for order in entry_orders(small, 2).drawn] == [[0, 4, 3, 2, 1], [0, 2, 4, 1, 3]]


def test_an_order_that_is_drawn_twice_is_kept_once_and_the_second_is_told() -> None:
    drawn = random_orders(corpus({"a/target": 1, "b/one": 1, "c/two": 1}), 20)
    assert len(drawn.drawn) == 2
    assert len(drawn.not_drawn) == 18
    assert all(re.fullmatch(r"the same order as seed \d+: 2 taps join", told.reason) for told in drawn.not_drawn)


@pytest.mark.parametrize("draw", [random_orders, entry_orders, order_by_size])
def test_a_corpus_of_targets_alone_has_no_order_and_says_so(draw: object) -> None:
    drawn = draw(corpus({"a/target": 3}))  # type: ignore[operator]
    assert drawn.drawn == ()
    assert [told.reason for told in drawn.not_drawn] == ["nothing joins the targets, so there is one size and no curve"]


def test_the_smallest_tap_joins_first_by_size() -> None:
    assert only(order_by_size(corpus())).taps == ("d/empty", "c/small", "e/middle", "b/large")


def test_the_worst_confuser_joins_first_and_ties_go_by_name() -> None:
    assert only(order_by_harm(corpus(), {"e/middle": 3.0})).taps == ("e/middle", "b/large", "c/small", "d/empty")


def test_the_first_seen_tap_joins_first_and_a_tap_without_date_is_named() -> None:
    dates = {"b/large": "2025-03-01", "c/small": "2024-01-01", "d/empty": "2026-01-01", "e/middle": "2025-01-01"}
    assert only(order_by_date(corpus(), dates)).taps == ("c/small", "e/middle", "b/large", "d/empty")
    (told,) = order_by_date(corpus(), {"b/large": "2025-03-01"}).not_drawn
    assert told.reason == "no date is known of c/small, d/empty, e/middle"


@pytest.mark.parametrize(
    ("sizes", "targets", "what"),
    [
        (SIZES, (), "there is none"),
        (SIZES, ("x/typo",), "no tap is called 'x/typo'"),
        (SIZES, ("d/empty",), "none of them has an entry"),
    ],
)
def test_targets_that_hold_nothing_are_refused(sizes: Mapping[str, int], targets: tuple[str, ...], what: str) -> None:
    with pytest.raises(BadInput, match=what):
        corpus(sizes, targets)


def test_without_a_role_the_targets_are_the_taps_of_the_exemplars() -> None:
    exemplars = ["a/b::x/SKILL.md", "c/d::y.md", f"class:{'0' * 64}"]
    assert targets_of([], exemplars) == {"a/b", "c/d"}
    assert targets_of(["e/f"], exemplars) == {"e/f"}


def test_a_point_is_the_smallest_prefix_with_at_least_the_nominal_number() -> None:
    order = only(order_by_size(corpus()))
    found = subsets(corpus(), order, [3, 4, 8, 9, 60])
    assert found.entries.tolist() == [3, 8, 8, 20, 60]
    assert found.taps.tolist() == [1, 3, 3, 4, 5]
    assert found.nominal.tolist() == [3, 4, 8, 9, 60]


def test_taps_without_entries_are_counted_when_all_have_joined() -> None:
    for order in random_orders(corpus()).drawn:
        assert subsets(corpus(), order, [3, 60]).taps.tolist() == [1, 5]


def test_sizes_outside_of_the_curve_are_told() -> None:
    found = sizes_by_list(corpus(), [2, 10, 61])
    assert found.nominal == (3, 10, 60)
    assert [tuple(told) for told in found.left_out] == [
        ("size 2", "the targets alone have 3"),
        ("size 61", "the whole corpus has 60"),
    ]


def test_sizes_by_step_and_by_factor_reach_from_the_targets_to_the_whole() -> None:
    assert sizes_by_step(corpus(), 20).nominal == (3, 20, 40, 60)
    assert sizes_by_factor(corpus(), 4).nominal == (3, 8, 22, 60)
    with pytest.raises(BadInput, match="ask for a step of 1 or more"):
        sizes_by_step(corpus(), 0)
    with pytest.raises(BadInput, match="make no curve"):
        sizes_by_factor(corpus(), 1)


@given(smalls, st.integers(2, 9))
def test_subsets_of_an_order_are_nested_and_hold_the_targets(small: Small, sizes: int) -> None:
    numbers = small.corpus
    for order in (*random_orders(numbers, 2).drawn, *entry_orders(numbers, 2).drawn):
        found = subsets(numbers, order, sizes_by_factor(numbers, sizes).nominal)
        assert (found.step_of[numbers.in_targets] == 0).all()
        assert (np.diff(found.entries) >= 0).all()
        assert (found.entries >= found.nominal).all()
        for step in range(found.steps):
            inside = found.step_of <= step
            assert found.entries[step] == inside.sum()
            assert found.classes[step] == np.unique(numbers.class_of[inside]).size
            if order.taps:
                whole = np.isin(numbers.tap_of, numbers.tap_of[inside])
                assert (whole == inside).all()
        assert found.entries[0] == numbers.in_targets.sum()
        assert (found.entries[-1], found.taps[-1] <= len(numbers.taps)) == (numbers.entries, True)


@given(smalls)
def test_a_tap_that_joins_last_leaves_everything_else_before_it(small: Small) -> None:
    numbers = small.corpus
    for place, tap in enumerate(numbers.taps):
        size = int(numbers.sizes[place])
        if tap not in numbers.targets and size:
            found = subsets(numbers, tap_last(numbers, tap), [numbers.entries - size, numbers.entries])
            assert ((found.step_of == 1) == (numbers.tap_of == place)).all()


@given(smalls)
def test_every_unit_adds_entries(small: Small) -> None:
    for order in random_orders(small.corpus, 2).drawn:
        assert (np.diff(every_unit(small.corpus, order).entries) > 0).all()
