"""Rows of CRAG, the Comprehensive RAG Benchmark, under the names and values of golden sets.

Source of the fields: the data schema of CRAG's public release. What a registry has no use for is dropped: the search
results, and the time zone of the query.
"""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue

_NAMES = {"interaction_id": "queryId", "question_type": "questionType", "static_or_dynamic": "dynamism"}
_DYNAMISM = {"slow-changing": "slow", "fast-changing": "fast", "real-time": "fast"}
_SPLITS: dict[JsonValue, JsonValue] = {0: "tuning", 1: "holdout"}
_DROPPED = ("search_results", "query_time", "domain", "answer", "alt_ans", "answer_type")
_NO_ANSWER = ("i don't know", "invalid question")
"""Their answers to what has none, without the full stop that some have."""


def from_crag(row: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return a row with CRAG's names and values mapped; a row without them is returned as it is.

    Their answer becomes a `must` assertion that people read, since a text is not checked against a ranking; the domain
    and further answers become part of the note. An answer that says that there is none makes the row not answerable.
    CRAG names no entry of a registry: until somebody adds names, exemplars or citations, judgments say what answers.
    """
    mapped = {_NAMES.get(key, key): value for key, value in row.items() if key not in _DROPPED}
    if isinstance(mapped.get("questionType"), str):
        mapped["questionType"] = str(mapped["questionType"]).replace("-", "_")
    dynamism = mapped.get("dynamism")
    if isinstance(dynamism, str):
        mapped["dynamism"] = _DYNAMISM.get(dynamism, dynamism)
    if mapped.get("popularity") == "":
        del mapped["popularity"]
    split = mapped.get("split")
    if isinstance(split, int) and split in _SPLITS:
        mapped["split"] = _SPLITS[split]
    if "query" in mapped and "question" not in mapped:
        mapped["question"] = mapped.pop("query")
    answer = row.get("answer")
    if isinstance(answer, str) and answer.strip().rstrip(".").lower() in _NO_ANSWER:
        mapped.setdefault("answerable", False)
    elif isinstance(answer, str) and answer.strip() and "assertions" not in mapped:
        mapped["assertions"] = [{"kind": "must", "text": answer}]
    notes = [f"{key}: {row[key]}" for key in ("domain", "alt_ans") if row.get(key)]
    if notes and "note" not in mapped:
        mapped["note"] = "; ".join(notes)
    return mapped
