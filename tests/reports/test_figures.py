"""What the charts are drawn from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pytest

from pipeline.reports.figures import repeated
from pipeline.reports.page import render
from pipeline.reports.reading import Feed
from tests.reports.conftest import Tables


def with_taps(run: Tables, classes: Mapping[str, Sequence[str]]) -> Tables:
    """A run whose taps hold entries of these classes, and nothing else of interest."""
    taps = [name for name, held in classes.items() for _ in held]
    rows = pa.table({"tap": taps, "class_id": [each for held in classes.values() for each in held]})
    counted = [{**run["taps"].to_pylist()[0], "tap": name, "entries": len(held)} for name, held in classes.items()]
    return {**run, "entries": rows, "taps": pa.Table.from_pylist(counted, schema=run["taps"].schema)}


def shares(run: Tables) -> dict[str, tuple[int, int]]:
    return {tap.tap: (tap.here, tap.elsewhere) for tap in repeated(Feed(run), {})}


def test_of_two_taps_that_hold_the_same_neither_is_called_the_copy(small_run: Tables) -> None:
    both = {"a/a": ["x", "y"], "z/z": ["x", "y"]}
    assert shares(with_taps(small_run, both)) == {"a/a": (0, 2), "z/z": (0, 2)}


def test_content_that_stands_in_one_tap_alone_is_told_apart_from_that_of_others(small_run: Tables) -> None:
    held = {"a/a": ["x", "x", "y", "y", "alone"], "b/b": ["y"], "c/c": ["rare"], "d/d": []}
    assert shares(with_taps(small_run, held)) == {"a/a": (2, 2), "b/b": (0, 1), "c/c": (0, 0)}


@pytest.mark.parametrize("names", [("a/a", "b/b"), ("b/b", "a/a")])
def test_the_order_of_names_changes_no_share(small_run: Tables, names: tuple[str, str]) -> None:
    one, other = names
    found = shares(with_taps(small_run, {one: ["x", "x", "y"], other: ["x", "z"]}))
    assert (found[one], found[other]) == ((0, 2), (0, 1))


def test_the_chart_says_that_no_order_is_known(small_run: Tables) -> None:
    page = render(small_run).html.decode()
    assert "Counted from both sides, for which was first is not known." in page
    assert "earlier one" not in page
