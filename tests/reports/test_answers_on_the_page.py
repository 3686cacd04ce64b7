"""The page's sections on answers, judgments, readiness and failures, of the embedded registries."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipeline.reports.feed import read_run
from pipeline.reports.page import Page, metric_id, render
from pipeline.reports.reading import figure_id
from pipeline.scoring.failures import FAILURE_CLASSES
from pipeline.store import Store
from pipeline.tables import RUN_TABLES
from tests.conftest import Ended
from tests.reports.test_page import PAYLOAD, Seen, Tables, changed, plain


@pytest.fixture(scope="module")
def tables(finished: Path) -> Tables:
    (run,) = (finished / "feed").glob("run=*")
    return read_run(Store(finished), run.name.removeprefix("run="), RUN_TABLES)


@pytest.fixture(scope="module")
def page(tables: Tables) -> Page:
    return render(tables)


def section(page: Page, name: str) -> str:
    """Return the text of a section, white space collapsed."""
    found = re.search(rf'<section>\n<h2 id="{name}">.*?</section>', page.html.decode(), re.DOTALL)
    assert found is not None
    bare = re.sub(r"<(script|style|svg).*?</\1>", " ", found[0], flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", bare)).split())


def rows_of(tables: Tables, name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = tables[name].to_pylist()
    return rows


def test_each_policy_stands_there_with_both_error_rates_their_intervals_n_and_id(tables: Tables, page: Page) -> None:
    text = section(page, "answers")
    for row in rows_of(tables, "abstention"):
        if row["signal"] != "top_score":
            continue
        n = row["false_answer_n"], row["false_abstention_n"]
        told = ""
        for count, name in zip(n, ("false_answer", "false_abstention"), strict=True):
            rate, low, high = (row[f"{name}_{part}"] for part in ("rate", "low", "high"))
            interval = "" if rate is None else f"{low:.2f}–{high:.2f} · "
            told += f" {'–' if rate is None else format(rate, '.3f')} {interval}n {count}"
        assert f"{told} {figure_id('abstention', row)}" in text
        assert f"{row['truthfulness']:.3f}" in text


def test_the_three_signals_stand_side_by_side_and_one_decides(tables: Tables, page: Page) -> None:
    text = section(page, "answers")
    assert re.search(r"top score decides 0\.\d+", text)
    for row in rows_of(tables, "abstention"):
        if row["items"] == "all" and row["policy"] == "fitted":
            assert f"{row['auroc']:.3f}" in text


def test_the_curve_stands_there_as_chart_picture_and_table(tables: Tables, page: Page) -> None:
    assert page.images["risk-coverage.png"].startswith(b"\x89PNG")
    (row,) = [
        row
        for row in rows_of(tables, "abstention")
        if (row["items"], row["policy"], row["signal"]) == ("all", "fitted", "top_score")
    ]
    last = row["curve"][-1]
    assert f"1.000 {last['selective_risk']:.3f} {last['generalised_risk']:.3f}" in section(page, "answers")


def test_an_item_that_became_answerable_is_an_alarm_that_names_the_tap(tables: Tables, page: Page) -> None:
    assert "Answerable now" not in section(page, "answers")
    alarmed = changed(
        tables,
        "outcomes",
        lambda row: {"answerable_now": True, "answering_taps": ["new/tap"]} if row["query_id"] == "no-tax" else {},
    )
    text = section(render(alarmed), "answers")
    assert re.search(r"Answerable now: How high is the corporate .* lies in new/tap", text)


def test_every_failure_stands_under_its_kind_with_its_commands(tables: Tables, page: Page) -> None:
    text = section(page, "failures")
    failed = rows_of(tables, "feedback")
    assert failed
    for kind, meaning in FAILURE_CLASSES.items():
        count = sum(row["failure_class"] == kind for row in failed)
        assert (f"{kind.replace('_', ' ')} {count} · {meaning}" in text) == (count > 0)
    for row in failed:
        shown = text.split(f"Item {row['query_id']} ")[1].split("Item ")[0]
        key = row["key"][:8]
        assert "State: new: this night entered it" in shown
        assert f'assay feedback correct {key} "WHAT IS RIGHT"' in shown
        assert f"assay feedback promote {key} --by YOU" in shown
        assert row["shown"][0].partition("::")[0] in shown
        assert ("--no-answer" in shown) == (row["failure_class"] == "hallucination")


def test_what_is_promoted_or_rejected_asks_for_nothing_more(tables: Tables) -> None:
    told = changed(tables, "feedback", lambda row: {"state": "promoted", "correction": "the other one"})
    text = section(render(told), "failures")
    assert "State: promoted: a permanent test asks it too: the other one" in text
    assert "assay feedback correct" not in text


def test_misses_of_users_wait_on_the_page(tables: Tables) -> None:
    row = rows_of(tables, "feedback")[0]
    miss = {**row, "source": "user", "key": "f" * 64, "engine": None, "query_id": None, "question": "unpush?"}
    with_miss = pa.Table.from_pylist([*rows_of(tables, "feedback"), miss], schema=tables["feedback"].schema)
    text = section(render({**tables, "feedback": with_miss}), "failures")
    assert "Misses of users unpush?" in text
    assert "assay feedback correct ffffffff" in text


def test_text_of_registries_is_escaped_in_the_new_sections_and_quoted_in_commands(tables: Tables, page: Page) -> None:
    names = ("question", "shown", "wanted", "correction")

    def spoiled(row: dict[str, Any]) -> dict[str, Any]:
        hostile = {name: [f"{PAYLOAD}::x"] if isinstance(row[name], list) else PAYLOAD for name in names}
        return {**hostile, "state": "corrected"}

    found = changed(tables, "feedback", spoiled)
    found = changed(found, "readiness", lambda row: {"ids": [PAYLOAD], "says": PAYLOAD})
    found = changed(
        found, "outcomes", lambda row: {"answerable_now": row["answerable"] is False, "answering_taps": [PAYLOAD]}
    )
    made = render(found)
    before, after = Seen(page), Seen(made)
    assert not after.unbalanced
    assert {name for name, _ in after.elements} <= {name for name, _ in before.elements}
    assert not {"\x1b", "\u202e", "\u200b"} & set(made.html.decode())
    # What cannot be shown as it is stands in no command.
    assert "--cite TAP::PATH" in section(made, "failures")
    quoted = changed(tables, "feedback", lambda row: {"wanted": ["o/r::a b'; rm -rf $HOME"]})
    assert "--cite 'o/r::a b'\"'\"'; rm -rf $HOME'" in section(render(quoted), "failures")


def test_each_demand_stands_there_with_verdict_and_items(tables: Tables, page: Page) -> None:
    text = section(page, "readiness")
    rows = rows_of(tables, "readiness")
    assert len(rows) == 14
    for row in rows:
        assert f"{row['wanted']} {row['says']}" in text
        assert all(query_id in text for query_id in row["ids"])


def test_means_by_judgments_stand_there_twice_with_how_much_is_judged(tables: Tables, page: Page) -> None:
    text = section(page, "judgments")
    rows = [row for row in rows_of(tables, "judged_metrics") if row["metric"] == "recall@10"]
    assert {row["source_filter"] for row in rows} == {"all", "human+provenance"}
    for row in rows:
        assert re.search(rf"{row['value']:.3f} \S+ · n {row['n']} .*?{metric_id(row)}", text)
        assert f"judged {row['judged_at_k']:.3f}" in text


def test_a_run_without_these_tables_still_gives_a_page(tables: Tables) -> None:
    older = {name: table for name, table in tables.items() if name not in ("outcomes", "abstention", "feedback")}
    text = plain(render({name: table for name, table in older.items() if name not in ("readiness", "judged_metrics")}))
    assert "of a release that kept no answers" in text
    assert "Questions without a right answer among the first ten hits" in text


def test_the_id_of_a_policy_leads_to_its_items_from_which_the_same_value_follows(
    tables: Tables, assay: Any, finished: Path, examples: Path
) -> None:
    options = ["--config", examples / "config" / "assay.toml", "--store", finished]
    worth = {"perfect": 1.0, "acceptable": 0.5, "incorrect": -1.0, "missing": 0.0}
    for row in rows_of(tables, "abstention")[::5]:
        found = assay("explain", figure_id("abstention", row), "--json", *options).json
        assert found["table"] == "abstention"
        assert len(found["behind"][0]["rows"]) == row["n_items"]
        values = [worth[item["answer"]] for item in found["behind"][0]["rows"] if item["answer"] != "unjudged"]
        assert sum(values) / len(values) == pytest.approx(row["truthfulness"], abs=1e-12)
    ended: Ended = assay("explain", figure_id("abstention", rows_of(tables, "abstention")[0]), *options)
    assert "Behind it, of outcomes" in ended.out
    judged = next(row for row in rows_of(tables, "judged_metrics") if row["metric"] == "visible@15000")
    found = assay("explain", metric_id(judged), "--json", *options).json
    values = [item["value"] for item in found["behind"][0]["rows"] if item["value"] is not None]
    assert sum(values) / len(values) == pytest.approx(judged["value"], abs=1e-12)
