"""Curves over real registries, and over the embedded ones, against indexes that are rebuilt for a sample of points."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pipeline.cli import main
from pipeline.config import Overrides, load
from pipeline.engines.bm25 import Bm25, Bm25Options
from pipeline.engines.okapi import Okapi, OkapiOptions
from pipeline.falloff.attribution import attribute, taken_by_tap
from pipeline.falloff.grading import Curves, measure
from pipeline.falloff.models import fit_curves
from pipeline.falloff.orders import Subsets, random_orders, sizes_by_factor, subsets
from pipeline.falloff.points import points
from tests.conftest import PROJECT
from tests.falloff.stored import Stored, stored

BM25, OKAPI = Bm25(Bm25Options()), Okapi(OkapiOptions())
POINTS = 40
"""Points that are held against rebuilt indexes, with both engines."""


@pytest.fixture(scope="module")
def embedded(examples: Path, finished: Path) -> Stored:
    return stored(load(Overrides(config=examples / "config" / "assay.toml", store=finished), {}))


@pytest.fixture(scope="module")
def real(registries: Path, corpora: Path, tmp_path_factory: pytest.TempPathFactory) -> Stored:
    golden = corpora.parent / "golden" / "natural.jsonl"
    overrides = Overrides(
        config=PROJECT / "config" / "assay.toml",
        taps=registries / "taps.toml",
        golden=(golden,),
        store=tmp_path_factory.mktemp("falloff") / "store",
    )
    words = ["--config", overrides.config, "--taps", overrides.taps, "--golden", golden, "--store", overrides.store]
    main(["run", *map(str, words), "--json"])
    return stored(load(overrides, {}))


def measured(of: Stored, engine: Bm25 | Okapi) -> tuple[list[Subsets], Curves]:
    nominal = sizes_by_factor(of.corpus).nominal
    of_orders = [subsets(of.corpus, order, nominal) for order in random_orders(of.corpus).drawn]
    return of_orders, measure(of.asked, of.curve(engine), of_orders)


def sample(orders: int, steps: int, size: int) -> Iterator[tuple[int, int]]:
    cells = [(order, step) for order in range(orders) for step in range(steps)]
    yield from random.Random(1).sample(cells, size)


def assert_rebuilt(of: Stored, engine: Bm25 | Okapi, size: int) -> None:
    of_orders, curves = measured(of, engine)
    table = points(of.named, of.asked, curves)
    for order, step in sample(len(of_orders), curves.nominal.size, size):
        rows = table.filter(
            pc.and_(pc.equal(table["seed"], curves.orders[order].seed), pc.equal(table["step"], step + 1))
        ).to_pylist()
        ours = {(row["grading"], row["treatment"], row["metric"]): row["value"] for row in rows}
        assert ours == of.rebuilt(engine, of_orders[order], step)
    for end in (0, -1):
        assert (curves.values[:, end] == curves.values[:1, end])[~np.isnan(curves.values[:, end])].all()
        for sizes in (curves.entries, curves.classes, curves.taps):
            assert len({*sizes[:, end].tolist()}) == 1


def test_three_taps_join_the_embedded_targets_in_six_orders_and_the_other_fourteen_are_told(embedded: Stored) -> None:
    drawn = random_orders(embedded.corpus)
    assert (len(drawn.drawn), len(drawn.not_drawn)) == (6, 14)
    assert all("the same order as seed" in told.reason for told in drawn.not_drawn)


@pytest.mark.slow
@pytest.mark.parametrize("engine", [BM25, OKAPI], ids=["bm25", "bm25-okapi"])
def test_every_point_over_the_embedded_registries_is_that_of_a_rebuilt_index(
    embedded: Stored, engine: Bm25 | Okapi
) -> None:
    assert_rebuilt(embedded, engine, POINTS)


@pytest.mark.corpora
@pytest.mark.slow
@pytest.mark.xdist_group("corpora")
class TestRealRegistries:
    """Over the 39 registries."""

    def test_the_smallest_subset_is_the_five_targets(self, real: Stored) -> None:
        _, curves = measured(real, BM25)
        assert len(curves.orders) == 20
        assert {*curves.entries[:, 0].tolist()} == {724}
        assert {*curves.taps[:, 0].tolist()} == {5}
        named = {*real.entries.filter(pa.array(real.asked.slots[1].max(axis=0) >= 0))["tap"].to_pylist()}
        assert len(named) == 18, "taps that hold a relevant name"
        assert {*curves.entries[:, -1].tolist()} == {15_769}
        assert {*curves.classes[:, -1].tolist()} == {12_199}

    @pytest.mark.parametrize("engine", [BM25, OKAPI], ids=["bm25", "bm25-okapi"])
    def test_every_point_is_that_of_a_rebuilt_index(self, real: Stored, engine: Bm25 | Okapi) -> None:
        assert_rebuilt(real, engine, POINTS)

    def test_twenty_orders_of_twelve_sizes_cost_less_than_four_seconds(self, real: Stored) -> None:
        real.curve(BM25)  # what was compiled is loaded
        started = time.process_time()
        of_orders, curves = measured(real, BM25)
        points(real.named, real.asked, curves)
        assert len(of_orders) == 20 and curves.nominal.size == 12
        assert time.process_time() - started < 4

    def test_the_taps_took_every_lost_query_once(self, real: Stored) -> None:
        orders = random_orders(real.corpus, 5).drawn
        curve_of = lambda places: real.curve(BM25, places)  # noqa: E731
        table = attribute(real.named, real.corpus, real.asked, curve_of, orders, real.shown)
        lost = {*table.filter(pc.equal(table["grading"], "row"))["query_id"].to_pylist()}
        assert sum(taken_by_tap(table).values()) == pytest.approx(len(lost))
        assert len(lost) > 10

    def test_recall_at_ten_is_said_to_fall_with_every_doubling(self, real: Stored) -> None:
        _, curves = measured(real, BM25)
        fitted = fit_curves(real.named, real.asked, curves)
        (row,) = [
            row
            for row in fitted.summaries.to_pylist()
            if (row["grading"], row["metric"], row["summary"]) == ("row", "recall@10", "loss per doubling")
        ]
        assert 0 < row["low"] < row["value"] < row["high"]
