"""A corrected failure becomes an item: the item, its provenance rows and the event, all of them or none."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pydantic import JsonValue

from pipeline.errors import BadInput, Fault
from pipeline.feedback.queue import CLOSED, Correction, Entered, find, note
from pipeline.golden.items import KEPT, Draft, GoldenSet, default_id, draft_golden_set, is_set_name, plain_question
from pipeline.judgments.provenance import GRADE
from pipeline.judgments.qrels import Judgment, append_once
from pipeline.judgments.targets import Target, Targets
from pipeline.store import canonical_json

if TYPE_CHECKING:
    from pipeline.ledger.ledger import Addition

SUFFIX = "-regression"
"""What the set in the ledger is called that takes the promoted items of a set in a file."""
SAME = 0.9
"""Jaccard similarity of their runs of five characters from which two questions are one."""
_RUN = 5
_CARRIED = ("questionType", "popularity", "dynamism", "language", "kind", "cluster_id", "golden_concepts")
"""Fields of an item that its next version takes over."""


class Promoted(NamedTuple):
    """What became of a failure that was to be promoted."""

    feedback_id: str
    golden_set: str
    query_id: str
    item_version: int | None
    """None: it repeats an item, and none was made."""
    new: bool
    """Whether anything was added now."""


def promote(
    addition: Addition,
    feedback_id: str,
    by: str,
    sets: Mapping[str, GoldenSet],
    targets: Targets,
    look_up: Callable[[Draft], Draft],
) -> Promoted:
    """Make an item of a corrected failure. Doing it twice changes nothing.

    A failure of an item becomes that item's next version; a new question a new item, unless it repeats one. The item
    goes to the set itself where the ledger keeps it, else to the set with ``SUFFIX``.

    Args:
        addition: an open transaction of the ledger; whatever is raised in it leaves nothing behind.
        feedback_id: the failure.
        by: who promotes.
        sets: every golden set, by name.
        targets: the corpus, in which the citations must resolve.
        look_up: adds to a set what its rows name wrongly in the corpus.

    Raises:
        BadInput: there is no such failure, it is rejected or has no correction, a citation resolves to nothing, nobody
            promotes, or no night could read the set with the new item; all faults are named.
    """
    from pipeline.ledger.tables import FEEDBACK_EVENTS, GOLDEN_ITEMS

    entered = find(addition, feedback_id)
    if entered.state in ("promoted", "duplicate"):
        (done,) = [
            event["detail"]
            for event in addition.rows(FEEDBACK_EVENTS, feedback_id=entered.id)
            if event["event"] == entered.state
        ]
        return Promoted(entered.id, done["golden_set"], done["queryId"], done.get("item_version"), new=False)
    cited = _check(entered, by, targets)
    correction = entered.correction
    assert correction is not None
    name = _set_for(entered, sets)
    kept = addition.rows(GOLDEN_ITEMS, golden_set=name)
    item = _item(entered, correction, cited, sets.get(entered.failure.golden_set), kept)
    query_id = str(item["queryId"])
    repeated = _repeated(item, entered, sets, kept)
    if repeated is not None:
        note(addition, entered.id, "duplicate", by, {"golden_set": name, "queryId": repeated})
        return Promoted(entered.id, name, repeated, None, new=True)
    _demand_readable(entered, name, kept, item, look_up)
    version = int(str(item["item_version"]))
    addition.add(
        GOLDEN_ITEMS, [{"golden_set": name, "query_id": query_id, "item_version": version, "item": dict(item)}]
    )
    append_once(
        addition,
        [
            Judgment(
                query_id=query_id,
                doc_id=target.doc_id if target.doc_id and "@" in target.doc_id else None,
                chunk_id=target.chunk_id,
                grade=GRADE,
                source="provenance",
                judged_sha256=target.body,
            )
            for target in cited
        ],
    )
    note(addition, entered.id, "promoted", by, {"golden_set": name, "queryId": query_id, "item_version": version})
    return Promoted(entered.id, name, query_id, version, new=True)


def _check(entered: Entered, by: str, targets: Targets) -> list[Target]:
    """Return what the correction cites."""
    where = f"feedback {entered.id}"
    faults = []
    cited: list[Target] = []
    if not by.strip():
        faults.append(Fault("--by", "nobody promotes", "say who answers for the new item"))
    if entered.state in CLOSED:
        faults.append(Fault(where, f"is {entered.state}", "nothing more happens to it"))
    correction = entered.correction
    if correction is None:
        faults.append(Fault(where, "has no correction", "say what is right: `assay feedback correct`"))
    else:
        if correction.answerable and not correction.citations:
            todo = "correct it again with --cite, or with --no-answer"
            faults.append(Fault(f"{where} citations", "none says where the answer is", todo))
        if not correction.answerable and correction.citations:
            todo = "correct it again with either --cite or --no-answer"
            faults.append(Fault(f"{where} citations", "stand where there is no answer", todo))
        for place, citation in enumerate(correction.citations, start=1):
            found = targets.find(citation.chunk_id or citation.target)
            if isinstance(found, str):
                faults.append(Fault(f"{where} citations {place}", f"{citation.target!r} {found}", "correct it again"))
            else:
                # The entry is named as it is written where it cannot be found at its pin: the content decides.
                cited.append(Target(found.doc_id or citation.doc_id, found.body))
    if faults:
        raise BadInput(faults)
    return cited


def _set_for(entered: Entered, sets: Mapping[str, GoldenSet]) -> str:
    """Return the set that takes the item: itself where the ledger keeps it, else the one beside the file."""
    named = entered.failure.golden_set
    in_files = {name for name, golden in sets.items() if golden.path.exists()}
    name = named + SUFFIX if named in in_files else named
    if name in in_files:
        todo = f"rename the file: promoted items of {named} go to a set of this name in the ledger"
        raise BadInput([Fault(f"golden set {name}", "is a file", todo)])
    if not is_set_name(name):
        raise BadInput(
            [Fault(f"feedback {entered.id}", f"belongs to {name!r}, which no set can be called", "reject it")]
        )
    return name


def _demand_readable(
    entered: Entered,
    name: str,
    kept: Sequence[Mapping[str, JsonValue]],
    item: Mapping[str, JsonValue],
    look_up: Callable[[Draft], Draft],
) -> None:
    """Refuse an item that no night could read beside those that are kept: what is added can never be taken out."""
    rows = [*(row["item"] for row in kept), dict(item)]
    draft = draft_golden_set(Path(KEPT + name), "\n".join(map(canonical_json, rows)).encode("utf-8"))
    alone = replace(draft.golden, items=tuple(each for each in draft.golden.items if each.line == len(rows)))
    where = f"feedback {entered.id}"
    faults = [
        Fault(f"{where} {wrong.field}", wrong.what, wrong.todo)
        for line, wrong in look_up(draft._replace(golden=alone)).wrongs
        if line == len(rows) and not wrong.what.startswith("asks the same")
    ]
    question = plain_question(str(item["question"]))
    for each in draft.golden.items:
        if each.line < len(rows) and plain_question(each.question) == question:
            what = f"{item['question']!r} is asked by the item {each.query_id!r} of {name} too"
            faults.append(Fault(f"{where} question", what, "reword one of the two, or reject this failure"))
    if faults:
        raise BadInput(faults)


def _item(
    entered: Entered,
    correction: Correction,
    cited: Sequence[Target],
    asked: GoldenSet | None,
    kept: Sequence[Mapping[str, JsonValue]],
) -> dict[str, JsonValue]:
    failure = entered.failure
    query_id = failure.query_id or default_id(failure.question)
    versions = [row for row in asked.written if row["queryId"] == query_id] if asked is not None else []
    of_item = [row["item"] for row in kept if row["query_id"] == query_id]
    earlier = [*versions, *(row for row in of_item if isinstance(row, dict))]
    numbers = [int(str(row.get("item_version", 1))) for row in earlier]
    newest = earlier[numbers.index(max(numbers))] if numbers else {}
    carried = {field: newest[field] for field in _CARRIED if field in newest}
    if correction.answerable and carried.get("questionType") == "false_premise":
        del carried["questionType"]
    assertion: dict[str, JsonValue] = {"kind": "must", "text": correction.text}
    if not correction.answerable:
        assertion["check"] = {"type": "abstain"}
    elif len(cited) == 1:
        assertion["check"] = {"type": "class_in_top_k", "arg": cited[0].chunk_id, "k": 10}
    item: dict[str, JsonValue] = {
        **carried,
        "queryId": query_id,
        "item_version": max(numbers, default=0) + 1,
        "question": newest.get("question", failure.question),
        "answerable": correction.answerable,
        "assertions": [assertion],
        "split": "regression",
        "origin": f"promoted:{entered.id}",
    }
    if cited:
        item["citations"] = [{"docId": target.doc_id, "chunkId": target.chunk_id} for target in cited]
    return item


def _repeated(
    item: Mapping[str, JsonValue],
    entered: Entered,
    sets: Mapping[str, GoldenSet],
    kept: Sequence[Mapping[str, JsonValue]],
) -> str | None:
    """Return the item that this one repeats: the same question, or, for a known item, the same correction."""
    if entered.failure.query_id is not None:
        for row in kept:
            if row["query_id"] == item["queryId"] and _content(row["item"]) == _content(dict(item)):
                return str(row["query_id"])
        return None
    questions = {each.query_id: each.question for golden in sets.values() for each in golden.items}
    for row in kept:
        written = row["item"]
        if isinstance(written, dict):
            questions[str(row["query_id"])] = str(written["question"])
    wanted = str(item["question"])
    for query_id, question in sorted(questions.items()):
        if similar(question, wanted) >= SAME:
            return query_id
    return None


def _content(item: JsonValue) -> str:
    own = ("item_version", "origin", "createdAt")
    assert isinstance(item, dict)
    return canonical_json({key: value for key, value in item.items() if key not in own})


def similar(left: str, right: str) -> float:
    """Return how alike two questions are, 0 to 1: the Jaccard similarity of their runs of five characters.

    It is what MinHash would estimate; of texts so short it is counted. The same words are 1, whatever their case.
    """
    ours, theirs = character_runs(left), character_runs(right)
    return len(ours & theirs) / len(ours | theirs)


def character_runs(question: str) -> set[str]:
    """Return the runs of five characters of a question, in the form in which questions are compared."""
    text = plain_question(question)
    return {text[start : start + _RUN] for start in range(max(1, len(text) - _RUN + 1))}
