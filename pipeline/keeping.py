"""The ledger and judgments by hand: opening the one, adding, importing and exporting the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from pydantic import JsonValue

from pipeline.errors import BadInput, Fault
from pipeline.golden.items import GoldenSet
from pipeline.jsonlines import in_row, read_file
from pipeline.store import canonical_json
from pipeline.workspace import (
    Workspace,
    asked_ids,
    conflicts_of,
    find_classes,
    find_corpus,
    now,
    read,
    resolved_judgments,
)

if TYPE_CHECKING:
    from pipeline.judgments.conflicts import ConflictRow
    from pipeline.judgments.qrels import Judgment, Qrel
    from pipeline.judgments.targets import Targets
    from pipeline.ledger.ledger import Ledger


class ImportedJudgments(NamedTuple):
    """What became of the judgments of a file."""

    added: int
    passed_over: int
    """Rows of the source `provenance`."""
    unasked: list[str]
    """Ids of questions that no golden set asks: their judgments count nowhere yet."""


@contextmanager
def opened_ledger(workspace: Workspace) -> Iterator[Ledger]:
    """Open the ledger, made where it is not there yet."""
    from pipeline.ledger.ledger import open_ledger

    with closing(open_ledger(workspace.settings.ledger_url)) as ledger:
        yield ledger


def golden_set(workspace: Workspace, name: str) -> GoldenSet:
    """Return the golden set called ``name``, from its file or the ledger.

    Raises:
        BadInput: no set has this name, or one is wrong.
    """
    sets = {golden.name: golden for golden in workspace.golden_sets()}
    if name not in sets:
        listed = ", ".join(sorted(sets)) or "none"
        raise BadInput([Fault("golden set", f"no golden set is called {name!r}", f"name one of: {listed}")])
    return sets[name]


# --- judgments -------------------------------------------------------------------------------------------------------


def targets_of(workspace: Workspace) -> Targets:
    """Return what judgments can name in the corpus of the tap list.

    Raises:
        MissingArtifact: the corpus has not been grouped yet.
    """
    from pipeline.judgments.targets import COLUMNS, Targets

    corpus = find_corpus(workspace)
    entries = read(workspace, find_classes(workspace, corpus), "entries.parquet", COLUMNS)
    return Targets(entries, {tap.name: str(tap.pin) for tap in corpus.taps})


def add_judgment(workspace: Workspace, target: str, given: Mapping[str, JsonValue]) -> Qrel:
    """Append one judgment about ``target``, its other fields as in a file.

    Raises:
        BadInput: it is wrong, the target names nothing, or no golden set has its item.
    """
    from pipeline.judgments.files import parse_jsonl

    if given["queryId"] not in asked_ids(workspace):
        todo = "mend the id; `assay qrels import` takes judgments of items that are to come"
        raise BadInput([Fault("judgment queryId", f"no golden set has an item {given['queryId']!r}", todo)])
    targets = targets_of(workspace)
    found = targets.find_shown(target)
    if isinstance(found, str):
        todo = "write `tap::path`, `tap@<full pin>:path`, or `class:` with the digits of its id"
        raise BadInput([Fault(f"judgment of {in_row(target)}", found, todo)])
    named: dict[str, JsonValue] = {"chunkId": found.chunk_id} if found.doc_id is None else {"docId": found.doc_id}
    try:
        (judgment,) = parse_jsonl(Path("judgment"), canonical_json({**given, **named}).encode("utf-8"), targets)
    except BadInput as error:  # who types a judgment wrote no line
        typed = [fault._replace(where=fault.where.replace(" line 1", "", 1)) for fault in error.faults]
        raise BadInput(typed) from None
    return _append(workspace, "qrels add", [judgment])[0]


def import_judgments(
    workspace: Workspace, file: Path, form: Literal["jsonl", "trec"], annotator: str | None
) -> ImportedJudgments:
    """Append the judgments of a file in one transaction. Importing a file twice says all twice.

    Rows of the source `provenance` are passed over: they follow from the exemplars and citations of the golden sets.

    Raises:
        BadInput: rows are wrong, or name nothing; all faults are named with their line.
    """
    from pipeline.judgments.files import parse_jsonl, parse_trec

    targets = targets_of(workspace)
    if form == "jsonl":
        judgments = parse_jsonl(file, read_file(file), targets)
    elif annotator is None or not annotator.strip():
        raise BadInput([Fault("--annotator", "is missing", "say who gave the grades of a TREC file")])
    else:
        judgments = parse_trec(file, read_file(file), targets, "human", annotator)
    said = [judgment for judgment in judgments if judgment.source != "provenance"]
    unasked = sorted({judgment.query_id for judgment in said} - asked_ids(workspace))
    added = _append(workspace, f"qrels import {file.name}", said)
    return ImportedJudgments(len(added), len(judgments) - len(said), unasked)


def exported_judgments(workspace: Workspace, form: Literal["jsonl", "trec"]) -> list[str]:
    """Return the judgments as of the night's position: every row as JSON Lines, or resolved grades as TREC qrels.

    The grades are those that a night counts: what exemplars and citations say follows from the golden sets as they are.
    """
    from pipeline.golden.resolve import resolve_known
    from pipeline.judgments.files import as_jsonl, as_trec
    from pipeline.judgments.qrels import SOURCES, read_qrels
    from pipeline.ledger.ledger import existing_ledger

    if form == "jsonl":
        with existing_ledger(workspace.settings.ledger_url) as ledger:
            as_of = workspace.settings.config.as_of
            return [] if ledger is None else list(as_jsonl(read_qrels(ledger, None if as_of < 0 else as_of)))
    corpus = find_corpus(workspace)
    entries = read(workspace, find_classes(workspace, corpus), "entries.parquet")
    sets = [resolve_known(golden, entries) for golden in workspace.golden_sets()]
    return list(as_trec(resolved_judgments(workspace, corpus, sets, entries)(SOURCES).grades))


def listed_conflicts(workspace: Workspace) -> list[ConflictRow]:
    """Return where those who judged differ, of every golden set.

    Raises:
        MissingArtifact: the corpus has not been grouped yet.
    """
    corpus = find_corpus(workspace)
    grouped = find_classes(workspace, corpus)
    return [row for golden in workspace.golden_sets() for row in conflicts_of(workspace, corpus, grouped, golden)]


def _append(workspace: Workspace, what: str, judgments: Sequence[Judgment]) -> list[Qrel]:
    from pipeline.judgments.qrels import append

    with opened_ledger(workspace) as ledger, ledger.adding(what, now()) as addition:
        return append(addition, judgments)
