"""The worked examples themselves, read from beside the real registries where those are at hand."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.golden.items import parse_golden_set
from pipeline.golden.resolve import Resolved
from pipeline.scoring.grade import Hit, grade
from pipeline.scoring.intervals import clustered_error, label, wilson
from pipeline.scoring.measures import Graded, Undefined, Value, mean, over_ties, parse
from tests.worked import EXAMPLES

pytestmark = pytest.mark.corpora

Example = Mapping[str, Any]

NAMES = {
    "ndcg@5_linear": "ndcg@5",
    "ndcg@5_exponential": "ndcg_exp@5",
    "ndcg@5_linear_condensed": "ndcg_condensed@5",
    "ndcg@3_linear": "ndcg@3",
    "ndcg@3_exponential": "ndcg_exp@3",
    "judged@10_over_returned": "judged@10",
    "rbp_p0.8_binary": "rbp",
    "rbp_p0.8_grade_over_3": "rbp_graded",
    "rbp_residual_p0.8": "rbp_residual",
}
NOT_MEASURES_OF_OURS = ("unj_", "infAP", "dcg@", "idcg@")
"""The first two by the example's own note; the others are the parts of ndcg."""


@pytest.fixture(scope="module")
def examples(corpora: Path) -> Example:
    file = corpora.parent / "worked_examples.json"
    found: Example = json.loads(file.read_text(encoding="utf-8"))["examples"]
    return found


def judge(qrels: Mapping[str, int], ranking: list[str]) -> Graded:
    return Graded(
        np.array([qrels.get(document, 0) for document in ranking], dtype=np.float64),
        np.array([document in qrels for document in ranking], dtype=np.bool_),
        np.array(list(qrels.values()), dtype=np.float64),
    )


def plain(value: Value) -> float | None:
    return None if isinstance(value, Undefined) else value


def close(expected: float | None) -> object:
    return None if expected is None else pytest.approx(expected, abs=1e-9, rel=0)


@pytest.mark.parametrize("name", ["E1_graded_single_query", "E2_bpref_published", "E2b_bpref_no_judged_nonrelevant"])
def test_single_queries(examples: Example, name: str) -> None:
    graded = judge(examples[name]["input"]["qrels"], examples[name]["input"]["ranking"])
    expected = {
        measure: value
        for measure, value in examples[name]["expected"].items()
        if not measure.startswith(NOT_MEASURES_OF_OURS)
    }
    assert expected
    for measure, value in expected.items():
        assert plain(parse(NAMES.get(measure, measure))(graded)) == close(value), measure


def test_the_parts_of_ndcg(examples: Example) -> None:
    graded = judge(*(examples["E1_graded_single_query"]["input"][key] for key in ("qrels", "ranking")))
    expected = examples["E1_graded_single_query"]["expected"]
    for kind, measure in (("linear", "ndcg@5"), ("exponential", "ndcg_exp@5")):
        share = expected[f"dcg@5_{kind}"] / expected[f"idcg@5_{kind}"]
        assert plain(parse(measure)(graded)) == close(share)


def test_ties(examples: Example) -> None:
    given, expected = examples["E3_ties"]["input"], examples["E3_ties"]["expected"]
    order = sorted(given["scores"], key=lambda document: (-given["scores"][document], document))
    assert order == expected["order_score_desc_docid_asc"]
    graded = judge(given["qrels"], order)
    scores = [given["scores"][document] for document in order]
    assert plain(parse("hit@1")(graded)) == expected["hit@1_docid_asc"]
    assert plain(parse("rr")(graded)) == close(expected["rr_either"])
    for measure in ("hit@1", "rr", "ndcg@3"):
        spread = over_ties(parse(measure), graded, scores)
        assert not isinstance(spread, Undefined)
        assert spread.mean == close(expected[f"tie_averaged_{measure}"])
    first = over_ties(parse("hit@1"), graded, scores)
    assert not isinstance(first, Undefined)
    assert (first.low, first.high) == (expected["hit@1_min"], expected["hit@1_max"])


def test_one_order_of_ties_serves_all_measures(examples: Example) -> None:
    given = examples["E3b_tie_order_differs_inside_one_ir_measures_call"]["input"]
    graded = judge(given["qrels"], sorted(given["scores"]))
    assert plain(parse("precision@1")(graded)) == plain(parse("judged@1")(graded))


def test_queries_without_a_relevant_document_and_missing_ones(examples: Example) -> None:
    given, expected = (examples["E4_no_relevant_and_missing_query"][part] for part in ("input", "expected"))
    found = {
        query: parse("recall@5")(judge(qrels, list(given["run"].get(query, {}))))
        for query, qrels in given["qrels"].items()
    }
    assert {query: plain(value) for query, value in found.items()} == expected["recall@5"]
    total = mean(found.values())
    assert (plain(total.value), total.values, total.undefined) == (
        expected["mean_over_items_with_relevant"],
        expected["n_scored"],
        expected["n_no_relevant"],
    )


def test_means_of_a_set(examples: Example) -> None:
    given, expected = (examples["E5_set_level_means"][part] for part in ("input", "expected"))
    graded = {query: judge(given["qrels"][query], given["rankings"][query]) for query in given["qrels"]}
    for measure, average in expected["mean"].items():
        found = {query: parse(NAMES.get(measure, measure))(one) for query, one in graded.items()}
        for query, value in found.items():
            assert plain(value) == close(expected["per_query"][query][measure]), (measure, query)
        total = mean(found.values())
        assert plain(total.value) == close(average), measure
        assert total.undefined == expected["n_null"].get(measure, 0)


def slots(example: Example, match: str | None) -> tuple[Resolved, list[Hit]]:
    given = example["input"]
    row: dict[str, object] = {"query": "q", "relevant": given["relevant_names"]}
    if match:
        row |= {"exemplar": [f"t::{name}" for name in given["exemplar_classes"]], "match": match}
    item = parse_golden_set(Path("s.jsonl"), json.dumps(row).encode()).items[0]
    entries = sum(hit["class"] in given["exemplar_classes"] for hit in given["ranking"])
    hits = [Hit(hit["class"], hit["name"]) for hit in given["ranking"]]
    return Resolved(item, tuple(given["exemplar_classes"]), False, entries, 0), hits


@pytest.mark.parametrize(
    ("match", "part"), [(None, "by name"), ("any", "pinned, match any"), ("all", "pinned, match all")]
)
def test_slots(examples: Example, match: str | None, part: str) -> None:
    resolved, hits = slots(examples["E23_slots"], match)
    graded = grade(resolved, "exemplar" if match else "name", hits)
    assert len(graded.gains) == len(examples["E23_slots"]["expected"]["collapsed"])
    for measure, value in examples["E23_slots"]["expected"][part].items():
        assert plain(parse(measure)(graded)) == close(value), measure


def test_treatments_of_duplicates(examples: Example) -> None:
    resolved, hits = slots(examples["E23_slots"], "all")
    expected = dict(examples["E24_duplicate_treatments"]["expected"])
    tax = expected.pop("duplicate tax ndcg@5")
    found = {treatment: grade(resolved, "exemplar", hits, treatment) for treatment in expected}
    for treatment, wanted in expected.items():
        assert found[treatment].ideal.size == wanted.pop("n_relevant", 2)
        for measure, value in wanted.items():
            assert plain(parse(measure)(found[treatment])) == close(value), (treatment, measure)
    removed, irrelevant = (plain(parse("ndcg@5")(found[name])) for name in ("removed", "irrelevant"))
    assert removed is not None and irrelevant is not None
    assert removed - irrelevant == close(tax)


def test_intervals(examples: Example) -> None:
    for trial, bounds in examples["E14_wilson"]["expected"].items():
        hits, n = map(int, trial.split("/"))
        assert wilson(hits / n, n) == pytest.approx(bounds, abs=1e-9, rel=0)
    given, expected = (examples["E17_clustered_se"][part] for part in ("input", "expected"))
    assert clustered_error(given["values"], given["cluster"]) == close(expected["se_clustered"])


def test_labels(examples: Example) -> None:
    cells = examples["E20_cell_labels"]["input"]["cells"]
    assert {name: label(cell["n"], cell["changed"]) for name, cell in cells.items()} == examples["E20_cell_labels"][
        "expected"
    ]


def test_the_figures_that_stand_in_the_tests_are_those_of_the_examples(examples: Example) -> None:
    for name, held in EXAMPLES.items():
        assert held == {part: examples[name][part] for part in held}, name
