"""What the section of falloff says and draws."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest

from pipeline.config import Overrides, load
from pipeline.reports.charts import PALETTE
from pipeline.reports.feed import published_runs, read_run
from pipeline.reports.growth import TABLES, Growth, Said, _each_once, growth
from pipeline.reports.reading import figure_id


@pytest.fixture(scope="module")
def embedded(examples: Path, finished: Path) -> Growth:
    """The section of the night over the embedded registries."""
    store = load(Overrides(config=examples / "config" / "assay.toml", store=finished), {}).store
    (run,) = published_runs(store)
    return growth(read_run(store, run, TABLES), {}, {("default", "bm25"): None})


def test_a_curve_ends_where_the_corpus_does_and_its_band_over_orders_has_no_width_there(embedded: Growth) -> None:
    """Three taps join in six orders, so several nominal sizes have the whole corpus as their median."""
    (said,) = embedded.said
    assert "to 0.707 over 229 entries of 10 taps." in said.sentences[0]
    (figure,) = [figure for figure in embedded.figures if figure.name == "falloff"]
    last = dict(zip(figure.head, figure.rows[-1], strict=True))
    assert (last["entries"], last["recall@10"], last["over orders"]) == ("229", "0.707", "0.707")


def test_what_answering_is_worth_is_told_at_both_ends_and_drawn(embedded: Growth) -> None:
    (said,) = embedded.said
    told = " ".join(said.sentences)
    assert "truthfulness goes from 0.394 to 0.375; always abstaining is 0 throughout." in told
    assert "Always answering, it goes from 0.394 to 0.375." in told
    assert "goes from 1.000 to 1.000 (n 10, insufficient items)" in told
    (figure,) = [figure for figure in embedded.figures if figure.name == "falloff-abstaining"]
    assert {row[3] for row in figure.rows} >= {"truthfulness", "false answer rate", "auroc"}


def test_each_sentence_that_tells_a_figure_has_its_id(embedded: Growth) -> None:
    (said,) = embedded.said
    without = [sentence for sentence, id_ in zip(said.sentences, said.ids, strict=True) if not id_]
    assert not [sentence for sentence in without if re.search(r"\d\.\d", sentence)]


def test_the_model_that_fits_best_is_told_with_its_id(examples: Path, finished: Path) -> None:
    store = load(Overrides(config=examples / "config" / "assay.toml", store=finished), {}).store
    (run,) = published_runs(store)
    tables = read_run(store, run, TABLES)
    wanted = {"grading": "row", "metric": "recall@10", "model": "power"}
    fits = [row for row in tables["falloff_fits"].to_pylist() if all(row[name] == wanted[name] for name in wanted)]
    best = fits[0] | {"chosen": True, "held_out": 1, "held_out_error": 0.0034}
    fitted = pa.Table.from_pylist([best], tables["falloff_fits"].schema)
    (said,) = growth({**tables, "falloff_fits": fitted}, {}, {}, drawn=False).said
    told = dict(zip(said.sentences, said.ids, strict=True))
    sentence = "Of three models the power one fits best: on the largest size, held out, it is off by 0.003."
    assert told[sentence] == figure_id("falloff_fits", best)


def test_what_all_orders_have_in_common_is_said_once() -> None:
    one = Said("s", "bm25", "taps in drawn orders", "ok", ("Begins.", "Loses."), ("a", "b"))
    other = one._replace(kind="the smallest tap first", sentences=("Begins.", "Gains."), ids=("c", "d"))
    common, *rest = _each_once([one, other])
    assert common.kind == "in each of these orders: taps in drawn orders; the smallest tap first"
    assert (common.sentences, common.ids) == (("Begins.",), ("a",))
    assert [(said.sentences, said.ids) for said in rest] == [(("Loses.",), ("b",)), (("Gains.",), ("d",))]
    assert _each_once([one]) == (one,)


def test_orders_that_equal_others_are_counted_in_one_sentence(embedded: Growth) -> None:
    assert embedded.not_drawn == (
        "Golden set default: 6 different orders of the 3 taps that join exist; all are drawn (20 were asked for).",
    )


def test_a_tap_that_brought_back_more_than_it_took_is_named(embedded: Growth) -> None:
    (figure,) = [figure for figure in embedded.figures if figure.name == "attribution"]
    assert "which is not drawn: gleaner/awesome-skills -0.17." in figure.note


def test_an_engine_has_the_colour_of_its_place_among_all(examples: Path, finished: Path) -> None:
    store = load(Overrides(config=examples / "config" / "assay.toml", store=finished), {}).store
    (run,) = published_runs(store)
    drawn = growth(read_run(store, run, TABLES), {}, {}, ["a", "b", "bm25"]).figures
    for figure in drawn:
        if figure.name in ("falloff", "falloff-gradings"):
            assert figure.drawing is not None and PALETTE[2] in figure.drawing.wide
            assert PALETTE[0] not in figure.drawing.wide
