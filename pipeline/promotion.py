"""The loop from a failure to a test: the queue that a night fills, misses of users, corrections, promotion."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

from pipeline.errors import BadInput, Fault, MissingArtifact, counted
from pipeline.failing import failures_of
from pipeline.feedback import FEEDBACK
from pipeline.feedback.promote import Promoted, promote
from pipeline.feedback.queue import MISSED, Correction, Entered, Failure, State, correct, end, enter, queue
from pipeline.golden.assertions import Citation
from pipeline.golden.items import Draft, GoldenSet, plain_question
from pipeline.jsonlines import in_row
from pipeline.keeping import opened_ledger, targets_of
from pipeline.ledger import has_commit
from pipeline.store import Artifact
from pipeline.workspace import (
    Corpus,
    Facts,
    Workspace,
    earlier_bodies,
    find_classes,
    find_corpus,
    mentioned,
    now,
    read,
    score_keys,
)


class Filled(NamedTuple):
    """What a night brought into the queue."""

    failures: int
    """Failures of the run."""
    new: int
    """Those that the queue did not hold."""


def fill_queue(
    workspace: Workspace, corpus: Corpus, grouped: Artifact, sets: Sequence[GoldenSet], run_id: str
) -> Filled:
    """Enter the failures of the scored rankings into the queue, and write down what exemplars and citations say.

    It is done once for a run and a ledger, which says itself whether it was: an unchanged night adds nothing. A night
    that reads the ledger as of an earlier position writes nothing.

    Raises:
        MissingArtifact: an engine has not scored a set yet.
    """
    started = time.monotonic()
    reads_the_past = workspace.settings.config.as_of >= 0
    scores = score_keys(workspace, corpus, grouped, sets)
    inputs: Facts = {"run": run_id, "scores": scores, "entered": not reads_the_past}
    deed = f"night {workspace.store.key(FEEDBACK, inputs)}"
    done = workspace.store.find(FEEDBACK, inputs)
    if done is not None and (reads_the_past or has_commit(workspace.settings.ledger_url, deed)):
        workspace.note(FEEDBACK, run_id[:12], "store", time.monotonic() - started)
        return Filled(0, 0)
    failures = failures_of(workspace, corpus, grouped, sets, run_id)
    new = 0 if reads_the_past else _write(workspace, corpus, grouped, sets, failures, deed)
    if done is None:
        workspace.store.write(FEEDBACK, inputs, {}, {"failures": len(failures)})
    detail = f"{counted(len(failures), 'failure')}, {new:,} of them new"
    workspace.note(FEEDBACK, run_id[:12], "computed", time.monotonic() - started, detail)
    return Filled(len(failures), new)


def _write(
    workspace: Workspace,
    corpus: Corpus,
    grouped: Artifact,
    sets: Sequence[GoldenSet],
    failures: Sequence[Failure],
    deed: str,
) -> int:
    from pipeline.golden.resolve import resolve
    from pipeline.judgments.provenance import provenance_of
    from pipeline.judgments.qrels import append_once
    from pipeline.judgments.targets import Targets

    entries = read(workspace, grouped, "entries.parquet")
    targets = Targets(entries, {tap.name: str(tap.pin) for tap in corpus.taps})
    concepts = mentioned(workspace, entries)
    said = [row for golden in sets for row in provenance_of(resolve(golden, entries, concepts=concepts), targets)]
    with opened_ledger(workspace) as ledger, ledger.adding(deed, now()) as addition:
        addition.note()  # that this run was entered, though nothing of it may be new
        append_once(addition, said)
        return len(enter(addition, failures))


# --- by hand ---------------------------------------------------------------------------------------------------------


def listed(workspace: Workspace, state: State | None = None) -> list[Entered]:
    """Return the queue as of the position that is asked for, or what of it is in a state."""
    from pipeline.ledger.ledger import existing_ledger

    as_of = workspace.settings.config.as_of
    with existing_ledger(workspace.settings.ledger_url) as ledger:
        known = [] if ledger is None else queue(ledger, None if as_of < 0 else as_of)
    return [entered for entered in known if state in (None, entered.state)]


def add_miss(
    workspace: Workspace, question: str, shown: Sequence[str], wanted: Sequence[str], golden_set: str | None
) -> Entered:
    """Enter what a user asked and did not get. The same miss is entered once.

    Raises:
        BadInput: the question is blank, there is no such set, none is named where there are several, or an entry
            `tap::path` is not in the corpus, where there is one; all of these are named.
    """
    sets = {golden.name: golden for golden in workspace.golden_sets()}
    in_files = [name for name, golden in sets.items() if golden.path.exists()]
    if not question.strip():
        raise BadInput([Fault("question", "is blank", "say what was asked")])
    if golden_set is None and len(in_files) != 1:
        raise BadInput([Fault("--golden-set", "is missing, and there are several", f"name one of: {', '.join(sets)}")])
    name = golden_set or in_files[0]
    if name not in sets:
        todo = f"name one of: {', '.join(sets)}"
        raise BadInput([Fault("--golden-set", f"no golden set is called {name!r}", todo)])
    lacking = _lacking(workspace, {"--shown": shown, "--wanted": wanted})
    if lacking:
        raise BadInput(lacking)
    same = [item for item in sets[name].items if plain_question(item.question) == plain_question(question)]
    failure = Failure(
        source="user",
        golden_set=name,
        query_id=same[0].query_id if same else None,
        item_version=same[0].item_version if same else None,
        engine=None,
        run_id=None,
        failure_class=MISSED,
        question=same[0].question if same else question.strip(),
        shown=list(shown),
        wanted=list(wanted),
    )
    with opened_ledger(workspace) as ledger:
        with ledger.adding("feedback add", now()) as addition:
            enter(addition, [failure])
        return next(entered for entered in queue(ledger) if entered.failure.key == failure.key)


def _lacking(workspace: Workspace, given: Mapping[str, Sequence[str]]) -> list[Fault]:
    """Return the entries `tap::path` that the corpus lacks; none where it has not been grouped yet."""
    entries = [(option, written) for option, each in given.items() for written in each if "::" in written]
    try:
        targets = targets_of(workspace) if entries else None
    except MissingArtifact:
        return []
    what, todo = "the corpus has no such entry", "mend it, or leave it out"
    return [
        Fault(f"{option} {in_row(written)}", what, todo)
        for option, written in entries
        if targets is not None and not targets.has_entry(written)
    ]


def correct_failure(
    workspace: Workspace, feedback_id: str, text: str, citations: Sequence[str], by: str, answerable: bool = True
) -> Entered:
    """Note what should have been answered, and where it is: entries `tap::path`, or `class:<body digest>`.

    Raises:
        BadInput: there is no such failure, nothing more happens to it, a citation resolves to nothing, or not just one
            is said of where the answer is and that there is none.
    """
    targets = targets_of(workspace)
    found = [(written, targets.find(written)) for written in citations]
    todo = "mend it or leave it out"
    faults = [Fault(f"--cite {written}", target, todo) for written, target in found if isinstance(target, str)]
    if not text.strip():
        faults.append(Fault("text", "is blank", "say what is right"))
    if not by.strip():
        faults.append(Fault("--by", "is blank", "say who corrects"))
    if citations and not answerable:
        faults.append(Fault("--no-answer", "stands beside --cite", "give one of the two"))
    if not citations and answerable:
        todo = "cite what answers it, or say that nothing does"
        faults.append(Fault("--cite", "is missing, and --no-answer too", todo))
    if faults:
        raise BadInput(faults)
    cited = [
        Citation(docId=target.doc_id or targets.entry_of(target.body), chunkId=target.chunk_id)
        for _, target in found
        if not isinstance(target, str)
    ]
    correction = Correction(text=text, answerable=answerable, citations=cited)
    with opened_ledger(workspace) as ledger, ledger.adding("feedback correct", now()) as addition:
        return correct(addition, feedback_id, correction, by)


def reject_failure(workspace: Workspace, feedback_id: str, by: str, why: str) -> Entered:
    """Note that a failure is none.

    Raises:
        BadInput: there is no such failure, or nothing more happens to it.
    """
    with opened_ledger(workspace) as ledger, ledger.adding("feedback reject", now()) as addition:
        return end(addition, feedback_id, "rejected", by, why)


def triage_failure(workspace: Workspace, feedback_id: str, by: str, note: str) -> Entered:
    """Note that somebody looked at a failure.

    Raises:
        BadInput: there is no such failure, or nothing more happens to it.
    """
    with opened_ledger(workspace) as ledger, ledger.adding("feedback triage", now()) as addition:
        return end(addition, feedback_id, "triaged", by, note)


def promote_failure(workspace: Workspace, feedback_id: str, by: str) -> Promoted:
    """Make a permanent test of a corrected failure; the next night scores it. Doing it twice changes nothing.

    Raises:
        BadInput: there is no such failure, it has no correction, a citation resolves to nothing, or no night could read
            the set with the new item; all are named.
        MissingArtifact: the corpus has not been grouped yet, or not been searched for concepts.
    """
    from pipeline.golden.resolve import looked_up

    sets = {golden.name: golden for golden in workspace.golden_sets()}
    targets = targets_of(workspace)
    entries = read(workspace, find_classes(workspace, find_corpus(workspace)), "entries.parquet")
    mentions, earlier = mentioned(workspace, entries), partial(earlier_bodies, workspace)

    def look_up(draft: Draft) -> Draft:
        return looked_up(draft, entries, earlier, mentions)

    with opened_ledger(workspace) as ledger, ledger.adding(f"feedback promote {feedback_id}", now()) as addition:
        return promote(addition, feedback_id, by, sets, targets, look_up)
