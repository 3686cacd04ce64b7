import base64
import hashlib
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pipeline.errors import MissingArtifact
from pipeline.reports.page import Page, metric_id, render
from pipeline.reports.reading import HEADLINE, METRIC_KEY, TABLES, figure_id

Tables = dict[str, pa.Table]
MakeRun = Callable[..., Tables]
PAYLOAD = "<script>document.title='pwned'</script></style></svg>\x1b[31m\u202e\u200b\"'&"
VOID = {"meta", "link", "br"}
"""Elements of the page that have no end tag."""

APART = {"td", "th", "tr", "li", "p", "div", "br", "dt", "dd", "summary", "details"}
"""Elements whose text stands apart from what comes before."""


class Seen(HTMLParser):
    """What a browser would find in a page: elements with their attributes, and the text of each kind of element."""

    def __init__(self, page: Page) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.text = ""
        self.unbalanced: list[str] = []
        self._open: list[str] = []
        self.feed(page.html.decode("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        self.text += " " if tag in APART else ""
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open.pop() != tag:
            self.unbalanced.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.elements if name == tag]


def changed(tables: Tables, table: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Tables:
    """Return ``tables`` with every row of one of them changed."""
    rows = [row | change(row) for row in tables[table].to_pylist()]
    return {**tables, table: pa.Table.from_pylist(rows, schema=tables[table].schema)}


def plain(page: Page) -> str:
    return " ".join(Seen(page).text.split())


@pytest.fixture(scope="module")
def page(small_run: Tables) -> Page:
    return render(small_run)


def test_the_order_of_rows_changes_no_byte(small_run: Tables, page: Page) -> None:
    reversed_rows = {name: table.take(list(range(table.num_rows))[::-1]) for name, table in small_run.items()}
    assert render(reversed_rows) == page


def test_the_nights_of_a_run_change_no_byte(small_run: Tables, page: Page) -> None:
    assert render({**small_run, "nights": pa.table({"night": ["20260101T000000Z-1"]})}) == page


@pytest.mark.slow
def test_another_process_with_another_hash_seed_gives_the_same_bytes(tmp_path: Any, small_run: Tables) -> None:
    import pyarrow.parquet as pq

    for name, table in small_run.items():
        pq.write_table(table, tmp_path / f"{name}.parquet")
    program = (
        "import sys, pathlib, hashlib, pyarrow.parquet as pq; from pipeline.reports.page import render;"
        "page = render({p.stem: pq.read_table(p) for p in pathlib.Path(sys.argv[1]).iterdir()});"
        "print(hashlib.sha256(page.html + b''.join(page.images.values())).hexdigest())"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", program, str(tmp_path)],
            env={**os.environ, "PYTHONHASHSEED": seed, "TZ": zone},
            capture_output=True,
            check=True,
        ).stdout
        for seed, zone in (("1", "UTC"), ("2", "Asia/Tokyo"))
    }
    assert len(digests) == 1


@pytest.mark.parametrize("missing", TABLES)
def test_a_missing_table_is_named(small_run: Tables, missing: str) -> None:
    with pytest.raises(MissingArtifact, match=missing):
        render({name: table for name, table in small_run.items() if name != missing})


# --- safety ----------------------------------------------------------------------------------------------------------


def test_the_page_holds_no_script_no_inline_style_no_handler_and_no_address(page: Page) -> None:
    seen = Seen(page)
    assert not seen.unbalanced
    assert not {tag for tag, _ in seen.elements} & {"script", "iframe", "object", "embed", "img", "form", "base", "use"}
    for tag, attributes in seen.elements:
        assert not [name for name in attributes if name.startswith("on") or name in ("style", "src", "srcset")], tag
        address = attributes.get("href", "")
        assert not address or address.startswith("#") or address == "data:,"


def test_links_within_the_page_lead_somewhere_and_ids_are_unique(page: Page) -> None:
    seen = Seen(page)
    ids = [attributes["id"] for _, attributes in seen.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {link["href"][1:] for link in seen.all("a")} <= set(ids)


def test_the_policy_allows_the_pages_own_style_and_nothing_else(page: Page) -> None:
    (policy,) = [meta["content"] for meta in Seen(page).all("meta") if "http-equiv" in meta]
    (style,) = re.findall(rb"<style>(.*?)</style>", page.html, re.DOTALL)
    allowed = base64.b64encode(hashlib.sha256(style).digest()).decode()
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{allowed}'; img-src data:; base-uri 'none'; form-action 'none'"
    )


def hostile(tables: Tables) -> Tables:
    """Put a hostile text into everything that other people write."""

    def spoil(value: str) -> str:
        return f"{PAYLOAD} {value}"

    spoiled = changed(
        tables,
        "entries",
        lambda row: {name: spoil(row[name] or "") for name in ("slug", "name", "description", "path_text", "tap")},
    )
    spoiled = changed(
        spoiled, "rankings", lambda row: {name: spoil(row[name]) for name in ("slug", "path_text", "tap")}
    )
    spoiled = changed(spoiled, "classes", lambda row: {"names": [spoil(name) for name in row["names"]]})
    place = ("tap", "path_text")
    spoiled = changed(
        spoiled,
        "near_duplicate_clusters",
        lambda row: {"names": [spoil(name) for name in row["names"]], **{name: spoil(row[name]) for name in place}},
    )
    spoiled = changed(
        spoiled,
        "template_families",
        lambda row: {name: [spoil(text) for text in row[name]] for name in ("names", "slots", "evidence")},
    )
    pair = ("left_tap", "left_slug", "right_tap", "right_slug", "differs")
    spoiled = changed(spoiled, "near_pairs", lambda row: {name: spoil(row[name]) for name in pair})
    spoiled = changed(
        spoiled, "near_metrics", lambda row: {name: spoil(row[name]) for name in ("golden_set", "engine")}
    )
    spoiled = changed(spoiled, "taps", lambda row: {"tap": spoil(row["tap"]), "pin": spoil(row["pin"])})
    names = ("golden_set", "engine", "query_id")
    for table in ("rankings", "items"):
        spoiled = changed(spoiled, table, lambda row: {name: spoil(row[name]) for name in names})
    spoiled = changed(
        spoiled,
        "items",
        lambda row: {
            "question": spoil(row["question"]),
            "unknown_words": [spoil(word) for word in row["unknown_words"]],
            "wanted": [spoil(name) for name in row["wanted"]],
            "reason": row["reason"] and spoil(row["reason"]),
        },
    )
    return changed(
        spoiled,
        "metrics",
        lambda row: {
            name: spoil(row[name])
            for name in ("golden_set", "engine") + (("facet_value",) if row["facet"] != "all" else ())
        },
    )


def test_hostile_text_everywhere_adds_no_element_and_no_attribute(small_run: Tables, page: Page) -> None:
    seen, before = Seen(render(hostile(small_run))), Seen(page)
    assert not seen.unbalanced
    assert {tag for tag, _ in seen.elements} <= {tag for tag, _ in before.elements}
    assert {name for _, found in seen.elements for name in found} <= {name for _, a in before.elements for name in a}
    assert seen.text.count("<script>document.title='pwned'</script>") > 50


def test_no_control_or_bidirectional_character_reaches_the_page(small_run: Tables) -> None:
    html = render(hostile(small_run)).html.decode("utf-8")
    assert not re.findall("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069]", html)
    assert "\\x1b[31m\\u202e" in html


def test_long_texts_are_cut(small_run: Tables, page: Page) -> None:
    endless = changed(small_run, "entries", lambda row: {"description": "word " * 50_000})
    endless = changed(endless, "items", lambda row: {"question": "x" * 100_000})
    assert len(render(endless).html) < len(page.html) + 100_000


# --- what it says ----------------------------------------------------------------------------------------------------


def test_the_headline_says_in_words_what_was_found(small_run: Tables, page: Page) -> None:
    row = next(row for row in small_run["metrics"].to_pylist() if (row["metric"], row["facet"]) == ("hit@10", "all"))
    assert f"Of {row['n']} answerable questions, {row['value']:.0%} find a right skill in the first ten" in plain(page)


def test_every_headline_measure_stands_there_with_interval_n_label_and_id(small_run: Tables, page: Page) -> None:
    text = plain(page)
    rows = [row for row in small_run["metrics"].to_pylist() if row["facet"] == "all" and row["metric"] in HEADLINE]
    assert len(rows) == 8
    for row in rows:
        interval = f"{row['ci_low']:.3f}\N{EN DASH}{row['ci_high']:.3f}"
        bound = f" · {row['n_upper_bound']} by an ambiguous name" if row["n_upper_bound"] else ""
        assert f"{row['value']:.3f} {interval} · n {row['n']} · {row['label']}{bound} {metric_id(row)}" in text


def test_a_null_is_a_dash_with_its_reason(small_run: Tables) -> None:
    nulls = {"value": None, "ci_low": None, "ci_high": None, "n": 0, "label": "no items", "reason": "no item is graded"}
    undefined = render(changed(small_run, "metrics", lambda row: nulls))
    (reasons, text) = ([cell.get("title") for cell in Seen(undefined).all("td")], plain(undefined))
    assert reasons.count("no item is graded") == 8
    assert "\N{EN DASH} no item is graded · n 0 · no items" in text
    assert "No share of questions can be given: no item is graded." in text
    assert "None" not in text and "nan" not in text.lower().split()


def test_the_id_of_a_figure_follows_from_its_key_and_from_nothing_else(small_run: Tables) -> None:
    row = small_run["metrics"].to_pylist()[0]
    assert re.fullmatch("[0-9a-f]{8}", metric_id(row))
    assert metric_id(row | {"value": 0.123, "n": 7}) == metric_id(row)
    assert (
        len({metric_id(row | {column: "another"}) for column in METRIC_KEY} | {metric_id(row)}) == len(METRIC_KEY) + 1
    )


def test_every_figure_carries_its_id_as_an_anchor_and_the_page_says_what_it_is_for(
    small_run: Tables, page: Page
) -> None:
    seen = Seen(page)
    anchors = [link for link in seen.all("a") if link.get("class") == "id"]
    assert all(re.fullmatch("#[0-9a-f]{8}", link["href"]) for link in anchors)
    shown = {row["href"][1:] for row in anchors}
    placed = [link["id"] for link in anchors if "id" in link]
    assert sorted(placed) == sorted(shown)
    headline = [row for row in small_run["metrics"].to_pylist() if row["facet"] == "all" and row["metric"] in HEADLINE]
    assert {metric_id(row) for row in headline} < shown
    assert len(shown) > 15
    (told,) = re.findall("assay explain ([0-9a-f]{8}) --run ([0-9a-f]{12}) shows", plain(page))
    assert told[0] in shown and small_run["runs"]["run_id"][0].as_py().startswith(told[1])


def test_it_is_said_in_how_many_rankings_recall_hangs_on_the_order_of_ties(small_run: Tables) -> None:
    tied = changed(small_run, "items", lambda row: {"tied_at_10": True})
    apart = [int(found) for found in re.findall(r"In (\d+) an answer ties", plain(render(tied)))]
    assert apart and set(apart) == {0}
    same = changed(tied, "rankings", lambda row: {"score": 5.0})
    hanging = 0
    hits = small_run["rankings"].to_pylist()
    for item in small_run["items"].to_pylist():
        if item["grading"] == "row" and item["scored"]:
            names = ("golden_set", "engine", "query_id")
            mine = [hit for hit in hits if all(hit[name] == item[name] for name in names)]
            hanging += len(mine) >= 10 and len({hit["grade"] == 1 for hit in mine}) == 2
    assert hanging
    assert sum(map(int, re.findall(r"In (\d+) an answer ties", plain(render(same))))) == hanging


def test_the_failures_are_the_scored_items_without_a_right_answer_in_the_first_ten(
    small_run: Tables, page: Page
) -> None:
    expected = {
        row["query_id"]
        for row in small_run["items"].to_pylist()
        if row["scored"] and (row["first_relevant_rank"] is None or row["first_relevant_rank"] > 10)
    }
    assert set(re.findall(r"Item (q\d+)", plain(page))) == expected != set()


@pytest.mark.parametrize(("rank", "fails"), [(1, False), (10, False), (11, True), (None, True)])
def test_an_answer_at_rank_ten_is_found_and_one_at_eleven_is_not(
    small_run: Tables, rank: int | None, fails: bool
) -> None:
    text = plain(render(changed(small_run, "items", lambda row: {"first_relevant_rank": rank})))
    scored = pc.sum(pc.and_(small_run["items"]["scored"], pc.equal(small_run["items"]["grading"], "row"))).as_py()
    assert f"everyday · bm25: {scored if fails else 0} of {scored} questions" in text


def test_a_failure_shows_what_was_wanted_and_what_came_first(small_run: Tables, page: Page) -> None:
    item = next(row for row in small_run["items"].to_pylist() if row["scored"] and row["first_relevant_rank"] == 37)
    hits = {row["rank"]: row for row in small_run["rankings"].to_pylist() if row["query_id"] == item["query_id"]}
    description = {(row["tap"], row["path"]): row["description"] for row in small_run["entries"].to_pylist()}
    shown = plain(page).split(f"Item {item['query_id']} ")[1].split("Item ")[0]
    assert item["question"] in plain(page) and item["wanted"][0] in shown
    for rank in (1, 2, 3, 37):
        hit = hits[rank]
        assert f"{hit['tap']}::{hit['path_text']}" in shown and f"score {hit['score']:.3f}" in shown
        assert (description[hit["tap"], hit["path"]] or "without a description")[:100] in shown
    assert "right" in shown and f"{hits[4]['tap']}::{hits[4]['path_text']}" not in shown


def test_a_feed_that_did_not_keep_what_was_wanted_still_gives_a_page(small_run: Tables) -> None:
    older = {**small_run, "items": small_run["items"].drop_columns(["wanted"])}
    assert "wanted: 1 answer" in plain(render(older))


def test_questions_without_an_answer_show_what_was_returned_first(small_run: Tables, page: Page) -> None:
    section = plain(page).split("Nothing in the corpus answers these.")[1].split("Words that no document")[0]
    items = [row for row in small_run["items"].to_pylist() if row["grading"] == "row" and not row["answerable"]]
    first = {row["query_id"]: row for row in small_run["rankings"].to_pylist() if row["rank"] == 1}
    assert items
    for item in items:
        hit = first.get(item["query_id"])
        returned = "nothing, rightly" if hit is None else f"{hit['slug']} {hit['tap']} {hit['score']:.3f}"
        assert f"{item['question']} everyday · bm25 {returned}" in section


def test_items_that_do_not_count_are_counted_by_reason(page: Page) -> None:
    assert "everyday bm25 not answerable 4" in plain(page)


def near_section(page: Page) -> str:
    return plain(page).split("Near-duplicates ")[-1].split("Failures Questions without a right")[0]


def test_the_near_duplicates_are_said_with_how_good_they_are_and_unverified_beside(
    small_run: Tables, page: Page
) -> None:
    (facts,) = small_run["runs"]["near_duplicates"].to_pylist()
    text = near_section(page)
    assert f"{facts['bodies']} distinct bodies of {facts['entries']} entries form {facts['clusters']} clusters" in text
    assert "bodies compared 1,234" in text and "astray: in another cluster than by the exact join 2" in text
    assert "would join 321 in 77 clusters" in text
    assert "recall of the candidates 0.9871" in text and "precision of the candidates 0.6543, of 99" in text


def test_the_second_number_stands_beside_the_headline_with_its_label(small_run: Tables, page: Page) -> None:
    rows = small_run["near_metrics"].to_pylist()
    assert {row["grading"] for row in rows} == {"row", "name"} and len(rows) == 8
    for row in rows:
        interval = f"{row['ci_low']:.3f}\N{EN DASH}{row['ci_high']:.3f}"
        beside = f"near copies joined: {row['value']:.3f} · {interval} · {row['label']}"
        assert beside in plain(page).split("The questions that failed")[0]
        second = f"{row['value']:.3f} {interval} · n {row['n']} · {row['label']} {figure_id('near_metrics', row)}"
        line = f"{row['metric']} {row['exact']:.3f} {second} 3 of {row['n_items']}"
        assert (line in near_section(page)) or row["grading"] == "name"


def test_a_second_number_that_does_not_exist_is_a_dash_with_its_reason(small_run: Tables) -> None:
    nulls = {"value": None, "ci_low": None, "ci_high": None, "n": 0, "label": "no items", "reason": "nothing is graded"}
    text = plain(render(changed(small_run, "near_metrics", lambda row: nulls)))
    assert text.count("near copies joined: \N{EN DASH} · nothing is graded · no items") == 8
    assert text.count("\N{EN DASH} nothing is graded · n 0 · no items") == 4


def test_clusters_families_and_pairs_are_shown_with_their_words(small_run: Tables, page: Page) -> None:
    text = near_section(page)
    clusters = small_run["near_duplicate_clusters"].to_pylist()
    several = [row for row in clusters if len(row["names"]) > 1]
    families = [row["family_id"] for row in small_run["template_families"].to_pylist()]
    ids = [*families, *(row["cluster_id"] for row in clusters), *(row["cluster_id"] for row in several)]
    assert several and families and all(text.count(one[:12]) == ids.count(one) for one in ids)
    assert "not measured" in text
    pairs = small_run["near_pairs"].to_pylist()
    assert pairs and all(f"{row['similarity']:.4f} {row['side']}" in text for row in pairs)
    assert text.count("runs [-npm-] {+pnpm+} install") == len(pairs)
    assert "the job" in text and "%" in text


def test_a_run_without_near_duplicates_says_so(make_run: MakeRun) -> None:
    run = make_run()
    near = ("near_duplicate_clusters", "near_duplicate_members", "near_pairs", "template_families")
    none = {name: run[name].slice(0, 0) for name in near}
    facts = run["runs"]["near_duplicates"].to_pylist()[0] | {"clusters": 0, "lsh_recall": None, "lsh_precision": None}
    runs = changed(run, "runs", lambda row: {"near_duplicates": facts})["runs"]
    text = plain(render({**run, **none, "runs": runs}))
    assert "No two bodies are nearly the same." in text and "No family was found." in text
    assert "No cluster has entries of different names." in text and "No pair lies near the threshold." in text
    assert text.count("no value: no such pair") == 2


def test_unknown_words_are_counted_once_a_question(small_run: Tables, page: Page) -> None:
    questions = {row["query_id"] for row in small_run["items"].to_pylist() if "wibble" in row["unknown_words"]}
    assert len(questions) > 1 and f"wibble {len(questions)}" in plain(page)


def test_homonyms_and_classes_are_counted_over_the_corpus(small_run: Tables, page: Page) -> None:
    entries = small_run["entries"].to_pylist()
    text = plain(page)
    contents: dict[str, set[str]] = {}
    for entry in entries:
        contents.setdefault(entry["slug"], set()).add(entry["class_id"])
    slug = min(contents, key=lambda name: (-len(contents[name]), -sum(e["slug"] == name for e in entries), name))
    same = [entry for entry in entries if entry["slug"] == slug]
    assert f"contents entries taps {slug} {len(contents[slug])} {len(same)} {len({e['tap'] for e in same})}" in text
    largest = max(small_run["classes"].to_pylist(), key=lambda row: row["entries"])
    members = [entry for entry in entries if entry["class_id"] == largest["class_id"]]
    counts = f"{len(members)} {len({e['tap'] for e in members})}"
    assert re.search(rf"{counts} .*{re.escape(members[0]['tap'])}::{re.escape(members[0]['path_text'])}", text)


def test_long_lists_say_how_much_they_leave_out_and_where_it_stands(make_run: MakeRun) -> None:
    text = plain(render(make_run(items=300, entries=400)))
    failures = int(re.findall(r"everyday · bm25: (\d+) of", text)[0])
    assert failures > 60 and text.count("Item q") == 60
    assert f"and {failures - 60} more, in items.parquet" in text
    assert re.search(r"and \d+ more, in entries.parquet", text) and re.search(r"and \d+ more, in classes.parquet", text)


def test_each_chart_has_a_label_and_its_numbers_as_a_table(page: Page) -> None:
    seen = Seen(page)
    names = [figure["id"] for figure in seen.all("figure")]
    assert names == [f"chart-{n}" for n in ("headline", "facets", "depth", "ranks", "duplication", "composition")]
    svgs = seen.all("svg")
    assert len(svgs) == 2 * len(names)
    assert all(svg["role"] == "img" and len(svg["aria-label"]) > 20 for svg in svgs)
    assert seen.text.count("The numbers as a table") == len(names)


def test_every_chart_stands_beside_the_page_as_a_png(page: Page) -> None:
    assert set(page.images) == {
        f"{name}.png" for name in ("headline", "facets", "depth", "ranks", "duplication", "composition")
    }
    assert all(image.startswith(b"\x89PNG\r\n\x1a\n") for image in page.images.values())


def test_the_bands_of_ranks_add_up_to_the_scored_questions(small_run: Tables, page: Page) -> None:
    rows = re.findall(r"everyday bm25 (1|2.3|4.10|11.100|not found) (\d+) (\d+)%", plain(page))
    found = [row["first_relevant_rank"] for row in small_run["items"].to_pylist() if row["scored"]][::2]
    assert [name[0] for name, _, _ in rows] == ["1", "2", "4", "1", "n"]
    assert [int(count) for _, count, _ in rows] == [
        sum(rank is not None and low <= rank <= high for rank in found)
        for low, high in ((1, 1), (2, 3), (4, 10), (11, 100))
    ] + [sum(rank is None for rank in found)]


def test_several_sets_and_engines_each_get_their_measures_and_failures(make_run: MakeRun) -> None:
    text = plain(render(make_run(golden_sets=("everyday", "rare"), engines=("bm25", "dense"))))
    for golden_set in ("everyday", "rare"):
        for engine in ("bm25", "dense"):
            assert f"Golden set {golden_set} · engine {engine}" in text
            assert re.search(rf"{golden_set} · {engine}: \d+ of 36 questions", text)


def test_a_run_without_golden_items_says_so(make_run: MakeRun) -> None:
    empty = render(make_run(items=0))
    assert "Nothing was scored" in plain(empty)
    assert set(empty.images) == {"duplication.png", "composition.png"}


def test_a_run_without_entries_says_so(make_run: MakeRun) -> None:
    text = plain(render(make_run(taps=0, entries=0, items=0)))
    assert "There is no tap." in text and "No content stands in the corpus twice." in text


@pytest.mark.slow
def test_a_corpus_of_sixteen_thousand_entries_makes_a_page_of_a_few_hundred_kilobytes(make_run: MakeRun) -> None:
    tables = make_run(taps=39, entries=15_769, items=120, golden_sets=("everyday", "rare"))
    started = time.process_time()
    page = render(tables)
    assert len(page.html) < 3_000_000
    # Four seconds on an idle machine; the allowance is for processors that other programs use as well.
    assert time.process_time() - started < 12


# --- the section on grading ------------------------------------------------------------------------------------------


def test_the_sensitivity_and_its_effects_stand_on_the_page(small_run: Tables) -> None:
    text = Seen(render(small_run)).text
    assert re.search(r"recall@10 ?0\.400 ?0\.450 ?0\.500 ?0\.300 ?\+0\.050 ?\+0\.050 ?-0\.200 ?-0\.100", text)
    assert "20 hits among the first ten counted as right; 7 of them by a name that several contents carry" in text


def test_the_duplicate_tax_stands_there_with_the_taps_that_cost_most(small_run: Tables) -> None:
    taps = sorted(small_run["taps"]["tap"].to_pylist())
    text = Seen(render(small_run)).text
    assert f"{taps[0]} 0.100" in text and f"{taps[4]} 0.020" in text
    assert f"{taps[5]} 0.017" not in text
    assert "and 1 more, in duplicate_tax.parquet" in text


def test_a_tax_that_rounds_to_nothing_accuses_no_tap(small_run: Tables) -> None:
    tiny = changed(small_run, "duplicate_tax", lambda row: {"value": 0.0004 if row["value"] else 0.0})
    text = Seen(render(tiny)).text
    assert "6 taps with less than 0.0005, in duplicate_tax.parquet" in text
    assert not re.search(r"/\S+ 0\.000", text)


def test_a_row_that_differs_by_name_and_pinned_is_told_with_its_reason(small_run: Tables) -> None:
    rows = [row for row in small_run["items"].to_pylist() if row["lookup_equal"] is False and row["grading"] == "row"]
    text = Seen(render(small_run)).text
    assert rows
    assert text.count("is shown by a mirror called copied-name") == len(rows)


def test_pinned_pinnable_and_ambiguous_rows_are_counted(small_run: Tables) -> None:
    rows = [row for row in small_run["items"].to_pylist() if row["grading"] == "row"]
    pinned = sum(row["mode"] == "exemplar" for row in rows)
    pinnable = sum(row["mode"] == "name" and row["lookup_equal"] is not None for row in rows)
    judged = sum(row["mode"] == "name" and row["upper_bound"] for row in rows)
    text = Seen(render(small_run)).text
    assert f"{pinned} rows pinned by an exemplar, {pinnable} graded by name that a lookup could pin" in text
    assert f"a lookup could pin, {judged} by a name that several contents carry" in text


# --- several engines -------------------------------------------------------------------------------------------------

TAPS = [f"owner/{'long-name-' * 5}{place:03}" for place in range(30)]
MADE_OF = '{"engine":"bm25","inputs":{"index":{"model":"0123abcd"},"packages":{"onnxruntime":"1.2.3"}},"version":7}'


@pytest.fixture(scope="module")
def several(make_run: MakeRun) -> str:
    """The page of a run of two engines that ran and one that did not."""
    tables = make_run(taps=2, entries=20, items=12, engines=("bm25", "dense"))

    def with_absent(run: dict[str, Any]) -> dict[str, Any]:
        made = [{**engine, "made_of": MADE_OF} for engine in run["engines"]]
        absent = {**made[0], "engine": "theirs", "status": "not run", "reason": "there is no run file", "made_of": None}
        configuration = {"near_threshold": 0.8, "qrels_position": 0, "roles": dict.fromkeys(TAPS, "target")}
        return {"engines": [*made, {**absent, "fingerprint": None}], "configuration": json.dumps(configuration)}

    (run,) = [{**row, **with_absent(row)} for row in tables["runs"].to_pylist()]
    return render({**tables, "runs": pa.Table.from_pylist([run])}).html.decode()


def text_of_page(html: str) -> str:
    return " ".join(Seen(Page(html.encode(), {})).text.split())


def test_a_run_with_an_engine_that_did_not_run_says_so_at_the_top(several: str) -> None:
    text = text_of_page(several)
    assert "1 engine did not run" in text and "engines 2 of 3" in text


def test_all_engines_stand_side_by_side_with_the_figures_of_their_own_tables(several: str) -> None:
    (table,) = re.findall('<table class="compared">.*?</table>', several, re.DOTALL)
    rows = [re.sub("<[^>]*>", " ", row).split() for row in re.findall("<tr>.*?</tr>", table, re.DOTALL)]
    assert [" ".join(row[:3]) for row in rows[1:3]] == ["everyday · bm25", "everyday · dense"]
    assert " ".join(rows[3]) == "theirs not run there is no run file"
    own = re.findall('<span class="value">(.*?)</span>', several)[::2]
    shown = [value for row in rows[1:3] for value in row[3:] if re.fullmatch(r"[01]\.\d{3}", value)]
    assert shown == own


def test_a_run_of_one_engine_has_no_table_of_all(page: Page) -> None:
    assert b'<table class="compared">' not in page.html


def test_on_paper_the_failures_of_one_engine_alone_are_unfolded(several: str) -> None:
    assert several.count('<div class="items printed">') == 1
    assert several.count('<div class="items') >= 2


def test_provenance_is_in_words_and_whole(several: str) -> None:
    text = text_of_page(several)
    assert "roles of taps target: " in text and all(tap in text for tap in TAPS)
    assert "position of the ledger 0: nothing was read from it" in text
    assert "index model 0123abcd · packages onnxruntime 1.2.3 · version 7" in text
    assert "option " not in text and "qrels_position" not in text


def test_a_table_that_is_cut_shows_it_by_a_shadow(several: str) -> None:
    assert re.search(r"\.scroll \{[^}]*var\(--shade\)[^}]*scroll;", several)
    shown = re.findall(r"<table", several)
    assert len(re.findall(r'<div class="scroll"[^>]*><table|<div class="scroll"[^>]*>\s*<table', several)) == len(shown)


def test_where_the_gradings_have_other_questions_both_are_told_over_those_of_both(small_run: Tables) -> None:
    said = "The two gradings do not have the same questions: over the "
    items = small_run["items"].to_pylist()
    by_name = next(item for item in items if item["grading"] == "name" and item["scored"])
    by_name["scored"] = False
    values = [[{"metric": metric, "value": 0.5, "reason": None} for metric in HEADLINE]] * len(items)
    fewer = pa.Table.from_pylist(items, small_run["items"].schema).append_column("metrics", pa.array(values))
    assert said not in render(small_run).html.decode()
    page = render(small_run | {"items": fewer}).html.decode()
    assert page.count(said) == 1
    assert "both, as pinned and by name: recall@10 0.5000 and 0.5000, hit@1 0.5000 and 0.5000" in page
