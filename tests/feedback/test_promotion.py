"""From a failure to an item: the queue, corrections, and promotion in one transaction."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipeline.errors import BadInput
from pipeline.feedback import promote as promote_module
from pipeline.feedback.promote import Promoted, promote, similar
from pipeline.feedback.queue import Correction, Failure, correct, end, enter, queue
from pipeline.golden.items import Draft, GoldenSet, parse_golden_set
from pipeline.jsonlines import Wrong
from pipeline.judgments.qrels import read_qrels
from pipeline.judgments.targets import Targets
from pipeline.ledger.ledger import Ledger, open_ledger
from pipeline.ledger.tables import COMMITS, FEEDBACK, FEEDBACK_EVENTS, GOLDEN_ITEMS, QRELS

AT = datetime(2026, 7, 1, tzinfo=UTC)
PIN = "a" * 40
BODY = sha256(b"git").hexdigest()
TABLES = (COMMITS, FEEDBACK, FEEDBACK_EVENTS, GOLDEN_ITEMS, QRELS)


@pytest.fixture
def ledger(ledger_url: str) -> Iterator[Ledger]:
    opened = open_ledger(ledger_url)
    yield opened
    opened.close()


@pytest.fixture
def targets() -> Targets:
    row = {"tap": "o/r", "path": b"git", "path_text": "git", "class_id": BODY, "body_sha256": BODY, "empty_body": False}
    return Targets(pa.Table.from_pylist([row]), {"o/r": PIN})


@pytest.fixture
def sets(tmp_path: Path) -> dict[str, GoldenSet]:
    file = tmp_path / "set.jsonl"
    rows = [
        {"queryId": "Q1", "question": "how do I rebase", "relevant": ["git"], "questionType": "simple"},
        {"queryId": "Q2", "question": "why is the moon a cheese", "questionType": "false_premise"},
    ]
    file.write_text("\n".join(map(json.dumps, rows)))
    return {"set": parse_golden_set(file, file.read_bytes())}


def failure(**change: Any) -> Failure:
    given = {"source": "run", "golden_set": "set", "query_id": "Q1", "item_version": 1, "engine": "bm25", "run_id": "r"}
    seen = {"failure_class": "retrieval_miss", "question": "how do I rebase", "shown": ["o/r::x"], "wanted": ["git"]}
    return Failure.model_validate({**given, **seen, **change})


RIGHT = Correction.model_validate({"text": "the interactive form", "citations": [{"docId": "o/r::git"}]})


def corrected(ledger: Ledger, one: Failure, correction: Correction = RIGHT) -> str:
    with ledger.adding("test", AT) as addition:
        (feedback_id,) = enter(addition, [one])
        correct(addition, feedback_id, correction, "kim")
    return feedback_id


def promoted(
    ledger: Ledger,
    feedback_id: str,
    sets: dict[str, GoldenSet],
    targets: Targets,
    by: str = "kim",
    look_up: Callable[[Draft], Draft] = lambda draft: draft,
) -> Promoted:
    with ledger.adding("test", AT) as addition:
        return promote(addition, feedback_id, by, sets, targets, look_up)


def refused(ledger: Ledger, feedback_id: str, *given: Any, **options: Any) -> list[str]:
    """Return why a promotion is refused, which leaves nothing behind."""
    before = everything(ledger), ledger.position()
    with pytest.raises(BadInput) as caught:
        promoted(ledger, feedback_id, *given, **options)
    assert (everything(ledger), ledger.position()) == before
    return [str(fault) for fault in caught.value.faults]


def everything(ledger: Ledger) -> dict[str, Any]:
    return {table.name: ledger.rows(table) for table in TABLES if table is not COMMITS}


def item(ledger: Ledger) -> dict[str, Any]:
    (row,) = ledger.rows(GOLDEN_ITEMS)
    found: dict[str, Any] = row["item"]
    return found


def test_the_same_failure_is_entered_once_whatever_the_run(ledger: Ledger) -> None:
    for run_id, new in (("r1", 1), ("r2", 0)):
        with ledger.adding("test", AT) as addition:
            assert len(enter(addition, [failure(run_id=run_id), failure(run_id=run_id)])) == new
    with ledger.adding("test", AT) as addition:
        assert len(enter(addition, [failure(engine="other"), failure(item_version=2)])) == 2
    assert [entered.state for entered in queue(ledger)] == ["open"] * 3


def test_a_failure_of_an_item_becomes_its_next_version(
    ledger: Ledger, sets: dict[str, GoldenSet], targets: Targets
) -> None:
    feedback_id = corrected(ledger, failure())
    assert promoted(ledger, feedback_id, sets, targets) == (feedback_id, "set-regression", "Q1", 2, True)
    found = item(ledger)
    assert (found["split"], found["origin"], found["questionType"]) == (
        "regression",
        f"promoted:{feedback_id}",
        "simple",
    )
    assert found["citations"] == [{"docId": f"o/r@{PIN}:git", "chunkId": f"class:{BODY}"}]
    assert [each["text"] for each in found["assertions"]] == ["the interactive form"]
    (qrel,) = read_qrels(ledger)
    assert (qrel.query_id, qrel.judged_sha256, qrel.source, qrel.grade) == ("Q1", BODY, "provenance", 3)
    assert queue(ledger)[0].state == "promoted"


def test_promoting_twice_changes_nothing(ledger: Ledger, sets: dict[str, GoldenSet], targets: Targets) -> None:
    feedback_id = corrected(ledger, failure())
    first = promoted(ledger, feedback_id, sets, targets)
    before = everything(ledger), ledger.position()
    assert promoted(ledger, feedback_id, sets, targets) == first._replace(new=False)
    assert (everything(ledger), ledger.position()) == before


def test_a_promotion_that_is_cut_off_leaves_nothing_behind(
    ledger: Ledger, sets: dict[str, GoldenSet], targets: Targets, monkeypatch: pytest.MonkeyPatch
) -> None:
    feedback_id = corrected(ledger, failure())
    before = everything(ledger)

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    for step in ("append_once", "note"):
        with monkeypatch.context() as patched:
            patched.setattr(promote_module, step, die)
            with pytest.raises(KeyboardInterrupt):
                promoted(ledger, feedback_id, sets, targets)
        assert everything(ledger) == before
    assert promoted(ledger, feedback_id, sets, targets).new


def test_a_new_question_becomes_a_new_item_unless_it_repeats_one(
    ledger: Ledger, sets: dict[str, GoldenSet], targets: Targets
) -> None:
    miss = {"source": "user", "query_id": None, "item_version": None, "engine": None, "run_id": None}
    new = corrected(ledger, failure(**miss, question="squash my commits"))
    assert promoted(ledger, new, sets, targets).item_version == 1
    again = corrected(ledger, failure(**miss, question="  Squash my COMMITS ", wanted=["other"]))
    assert promoted(ledger, again, sets, targets).item_version is None
    known = corrected(ledger, failure(**miss, question="How do I  rebase"))
    assert promoted(ledger, known, sets, targets)[1:4] == ("set-regression", "Q1", None)
    assert [entered.state for entered in queue(ledger)] == ["promoted", "duplicate", "duplicate"]
    assert len(ledger.rows(GOLDEN_ITEMS)) == 1


def test_the_same_failure_of_two_engines_makes_one_item(
    ledger: Ledger, sets: dict[str, GoldenSet], targets: Targets
) -> None:
    first, second = corrected(ledger, failure()), corrected(ledger, failure(engine="other"))
    promoted(ledger, first, sets, targets)
    assert promoted(ledger, second, sets, targets).item_version is None
    assert len(ledger.rows(GOLDEN_ITEMS)) == 1


def test_a_question_without_an_answer_becomes_an_item_that_asks_to_abstain(
    ledger: Ledger, sets: dict[str, GoldenSet], targets: Targets
) -> None:
    nothing = Correction(text="it is none", answerable=False)
    wrong = failure(query_id="Q2", failure_class="hallucination", question="why is the moon a cheese")
    promoted(ledger, corrected(ledger, wrong, nothing), sets, targets)
    found = item(ledger)
    assert (found["answerable"], found["questionType"]) == (False, "false_premise")
    assert found["assertions"] == [{"kind": "must", "text": "it is none", "check": {"type": "abstain"}}]
    assert read_qrels(ledger) == []


@pytest.mark.parametrize(
    ("correction", "by", "says"),
    [
        (None, "kim", "has no correction"),
        (RIGHT, " ", "nobody promotes"),
        (Correction(text="x"), "kim", "none says where the answer is"),
        (
            Correction.model_validate({"text": "x", "citations": [{"docId": "o/r::gone"}]}),
            "kim",
            "citations 1: 'o/r::gone' names nothing in the corpus",
        ),
        (
            Correction.model_validate({**RIGHT.model_dump(by_alias=True), "answerable": False}),
            "kim",
            "where there is no answer",
        ),
    ],
)
def test_what_is_not_ready_is_refused_and_leaves_nothing(
    ledger: Ledger, sets: dict[str, GoldenSet], targets: Targets, correction: Correction | None, by: str, says: str
) -> None:
    with ledger.adding("test", AT) as addition:
        (feedback_id,) = enter(addition, [failure()])
        if correction is not None:
            correct(addition, feedback_id, correction, "kim")
    before = everything(ledger)
    with pytest.raises(BadInput, match=says):
        promoted(ledger, feedback_id, sets, targets, by)
    assert everything(ledger) == before


def test_nothing_more_happens_to_a_rejected_failure(
    ledger: Ledger, sets: dict[str, GoldenSet], targets: Targets
) -> None:
    feedback_id = corrected(ledger, failure())
    with ledger.adding("test", AT) as addition:
        assert end(addition, feedback_id, "rejected", "kim", "both are right").state == "rejected"
    with pytest.raises(BadInput, match="is rejected"):
        promoted(ledger, feedback_id, sets, targets)
    with pytest.raises(BadInput, match="is rejected"), ledger.adding("test", AT) as addition:
        correct(addition, feedback_id, RIGHT, "kim")


def test_two_items_never_ask_one_question(ledger: Ledger, sets: dict[str, GoldenSet], targets: Targets) -> None:
    promoted(ledger, corrected(ledger, failure()), sets, targets)
    rows = [
        {"queryId": "Q1", "question": "why is the moon a cheese", "relevant": ["git"], "item_version": 2},
        {"queryId": "Q2", "question": "How do I  rebase", "relevant": ["git"], "item_version": 2},
    ]
    swapped = {"set": parse_golden_set(sets["set"].path, "\n".join(map(json.dumps, rows)).encode())}
    other = corrected(ledger, failure(query_id="Q2", question="How do I  rebase", item_version=2))
    (fault,) = refused(ledger, other, swapped, targets)
    assert "question: 'How do I  rebase' is asked by the item 'Q1' of set-regression too" in fault


def test_an_item_that_was_reworded_since_keeps_its_newest_question(
    ledger: Ledger, sets: dict[str, GoldenSet], targets: Targets
) -> None:
    feedback_id = corrected(ledger, failure())
    row = {"queryId": "Q1", "question": "how do I tidy commits", "relevant": ["git"], "item_version": 2}
    reworded = {"set": parse_golden_set(sets["set"].path, json.dumps(row).encode())}
    assert promoted(ledger, feedback_id, reworded, targets).item_version == 3
    assert item(ledger)["question"] == "how do I tidy commits"


def test_an_item_that_no_night_could_read_is_refused(
    ledger: Ledger, sets: dict[str, GoldenSet], targets: Targets
) -> None:
    def look_up(draft: Draft) -> Draft:
        (one,) = draft.golden.items
        return draft.with_wrongs(
            [(one.line, Wrong("citations 1", "mentions what the row calls irrelevant", "mend it"))]
        )

    feedback_id = corrected(ledger, failure())
    (fault,) = refused(ledger, feedback_id, sets, targets, look_up=look_up)
    assert fault == f"feedback {feedback_id} citations 1: mentions what the row calls irrelevant; mend it"


def test_a_set_in_a_file_takes_no_promoted_item(
    ledger: Ledger, sets: dict[str, GoldenSet], targets: Targets, tmp_path: Path
) -> None:
    file = tmp_path / "set-regression.jsonl"
    file.write_text('{"question": "q", "relevant": ["git"]}')
    both = {**sets, "set-regression": parse_golden_set(file, file.read_bytes())}
    (fault,) = refused(ledger, corrected(ledger, failure()), both, targets)
    assert fault.startswith("golden set set-regression: is a file; rename the file")


def test_a_failure_is_looked_at_before_it_is_corrected(ledger: Ledger) -> None:
    with ledger.adding("test", AT) as addition:
        (feedback_id,) = enter(addition, [failure()])
        assert end(addition, feedback_id, "triaged", "kim", "the author knows").state == "triaged"
    first = ledger.position()
    with ledger.adding("test", AT) as addition:
        assert correct(addition, feedback_id, RIGHT, "kim").state == "corrected"
    with ledger.adding("test", AT) as addition:
        assert correct(addition, feedback_id, RIGHT, "kim").state == "corrected"
        assert end(addition, feedback_id, "triaged", "kim", "again").state == "corrected"
    assert ledger.position() == first + 1
    assert [[each.state for each in queue(ledger, as_of)] for as_of in (0, first, first + 1)] == [
        [],
        ["triaged"],
        ["corrected"],
    ]


def test_questions_are_alike_by_their_words_not_their_case() -> None:
    assert similar("How do I rebase?", "how do i  REBASE?") == 1
    assert similar("how do I rebase my branch", "how do I bake bread") < 0.5
    assert similar("ab", "ac") == 0
