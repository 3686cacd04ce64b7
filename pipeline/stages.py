"""The night, step by step. The DAG and the command line both go through these functions.

Each stage finds its output in the store by the key of what it is derived from, and makes it only where it is missing.
So a second night over the same inputs recomputes nothing, and a night that was killed goes on where it stopped.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, cast

from pydantic import Field

from pipeline.catalog.entries import CATALOG, EntryFacts
from pipeline.checks import CHECKS, CheckRow, Sample
from pipeline.checks.known import KNOWN_ITEMS, KnownItemsRow
from pipeline.classes import CLUSTER, SIGN, WHOLE, Shard
from pipeline.classes.group import CLASSES
from pipeline.config import LOOKED_UP_LATER, Absent, faults_in, sources_of
from pipeline.engines import (
    INDEX,
    RANK,
    Answer,
    Borrower,
    Earlier,
    IndexEngine,
    Lent,
    Query,
    RememberingEngine,
    Retriever,
    UpdatingEngine,
)
from pipeline.errors import AssayError, BadInput, Fault, MissingArtifact, Unsound, counted
from pipeline.falloff import CURVES, Plan, bound
from pipeline.golden.concepts import CONCEPTS, Concepts, DraftConcepts
from pipeline.golden.items import RESOLVE, Draft, GoldenSet
from pipeline.records import Record
from pipeline.reports.feed import FEED, StepSource, follows, forecast_files, is_whole, point_to, run_folder, run_id_of
from pipeline.reports.feed import publish as put_in_feed
from pipeline.scoring import SCORE
from pipeline.scoring.answered import Answered
from pipeline.store import Artifact
from pipeline.taps.snapshot import SNAPSHOT, TapState, attempt, snapshot_inputs, verdict
from pipeline.taps.taplist import Tap, TapList, corpus_digest, is_local
from pipeline.workspace import (
    CORPUS,
    Corpus,
    Drafts,
    EarlierIndex,
    Made,
    Told,
    Workspace,
    asked_ids,
    catalog_inputs,
    checks_inputs,
    classes_inputs,
    cluster_inputs,
    corpus_inputs,
    earlier_bodies,
    earlier_indexes,
    falloff_inputs,
    find_catalog,
    find_checks,
    find_classes,
    find_clusters,
    find_corpus,
    find_known_items,
    find_scores,
    find_snapshot,
    identity_of,
    in_order,
    index_inputs,
    judged_grades,
    kept_signatures,
    known_items_inputs,
    known_parts,
    mentioned,
    mentions_inputs,
    nightly_plan,
    proven_engines,
    rank_inputs,
    read,
    resolve_inputs,
    score_inputs,
    sign_inputs,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from pipeline.promotion import Filled


class StepDoc(NamedTuple):
    """A row of the table of steps in the README."""

    stage: str
    reads: str
    writes: str
    command: str


STEPS = (
    StepDoc("snapshot", "tap list, git", "the files of each tap that may be entries", "assay snapshot"),
    StepDoc("catalog", "files", "entries of each tap, with bodies and digests", "assay catalog"),
    StepDoc("corpus", "entries", "that every tap is whole, and the corpus digest", "assay classes"),
    StepDoc("classes", "entries", "content classes, mirrors, homonyms", "assay classes"),
    StepDoc("signatures", "bodies that are new", "their MinHash signatures", "assay classes"),
    StepDoc("clusters", "signatures, bodies", "near-duplicate clusters, template families", "assay classes"),
    StepDoc("concepts", "entries, concepts", "which entries mention which concept", "assay rank"),
    StepDoc("resolve", "golden sets, classes", "that every row names something", "assay rank"),
    StepDoc("index", "entries", "one index a tap", "assay rank"),
    StepDoc("rank", "indices, golden sets", "hits of each question, mirrors included", "assay rank"),
    StepDoc("score", "hits, golden sets, clusters", "rankings, items, metrics, and what moves them", "assay score"),
    StepDoc("falloff", "indices, golden sets", "how scores fall as taps join, and who took what", "assay study"),
    StepDoc("checks", "entries, golden sets", "that another package scores a sample alike", "assay checks"),
    StepDoc("known-items", "indices, entries", "how often a name alone finds its content", "assay checks"),
    StepDoc("feedback", "scores", "failures that are new, into the ledger", "assay feedback fill"),
    StepDoc("feed", "all of these", "the published run and its report", "assay run"),
)
"""The steps of a night, in order: what each reads and writes, and the command that repeats it."""


def snapshot(workspace: Workspace, tap: Tap) -> TapState:
    """Read a tap at its pin, from the store or by git. Writes ``files``: what the catalogue may need.

    Trouble with the tap is the state that is returned, never an error, so that every tap is attempted.
    """
    done = attempt(workspace.store, tap, workspace.settings.tap_file.parent, workspace.snapshot_options)
    if done.state.source is not None:
        workspace.note(SNAPSHOT, tap.name, done.state.source, done.state.seconds)
    return done.state


def catalog(workspace: Workspace, tap: Tap) -> Artifact:
    """Parse a tap's files into entries. Reads ``files``; writes ``entries`` with their bodies and digests.

    Raises:
        MissingArtifact: the tap has not been snapshotted yet.
    """
    taken = find_snapshot(workspace, tap)

    def make() -> Made:
        from pipeline.catalog.entries import ENTRIES, catalogue
        from pipeline.taps.snapshot import read_files

        found = catalogue(tap.name, read_files(workspace.store, taken))
        return {"entries.parquet": ENTRIES.to_bytes(found.entries)}, found.facts()

    return workspace.once(CATALOG, tap.name, catalog_inputs(taken), make)


def corpus(workspace: Workspace) -> Corpus:
    """Put the catalogues of all taps together. A partial corpus is never used: every tap must be as its row says.

    Raises:
        MissingArtifact: a tap has not been catalogued yet.
        Unsound: a tap's counts differ from its row.
    """
    taps = in_order(workspace.settings.tap_list())
    catalogs = tuple(find_catalog(workspace, tap) for tap in taps)
    verdict([checked(tap, made, _ok(tap)) for tap, made in zip(taps, catalogs, strict=True)])
    return put_together(workspace, taps, catalogs)


def put_together(workspace: Workspace, taps: Sequence[Tap], catalogs: Sequence[Artifact]) -> Corpus:
    """Return the corpus of some taps, each with a pin, in byte order of their names, and their catalogues."""
    pinned = corpus_digest(taps)

    def make() -> Made:
        entries = sum(count(made, "entries") for made in catalogs)
        return {}, {"digest": pinned, "taps": len(taps), "entries": entries}

    made = workspace.once(CORPUS, pinned[:12], corpus_inputs(taps, catalogs), make)
    return Corpus(made, pinned, tuple(taps), tuple(catalogs))


def classes(workspace: Workspace, corpus: Corpus) -> Artifact:
    """Group a corpus's entries into content classes: by digest, and what a person confirmed to be one skill.

    Reads the catalogues and the decisions. Writes ``entries``, one row an entry without its body, and ``classes``, one
    row a class.
    """

    def make() -> Told:
        import pyarrow as pa

        from pipeline.classes.group import CLASS_ROWS, CORPUS_ENTRIES, group

        decisions = workspace.settings.cluster_decisions()
        columns = list(EntryFacts.model_fields)
        tables = [read(workspace, made, "entries.parquet", columns) for made in corpus.catalogs]
        grouped = group(pa.concat_tables(tables), workspace.settings.config.class_rule, decisions)
        idle = decisions.idle(set(grouped.entries["body_sha256"].to_pylist()))
        files = {
            "entries.parquet": CORPUS_ENTRIES.to_bytes(grouped.entries),
            "classes.parquet": CLASS_ROWS.to_bytes(grouped.classes),
        }
        detail = f"{idle} of the decided sets and pairs of bodies are not in this corpus" if idle else None
        return files, {**grouped.facts(), "idle_decisions": idle}, detail

    return workspace.once(CLASSES, corpus.digest[:12], classes_inputs(workspace, corpus), make)


def sign(workspace: Workspace, corpus: Corpus, shard: Shard = WHOLE) -> None:
    """Make the signatures of those bodies of a shard that have none yet. A body seen before is never hashed again.

    Reads the catalogues. Writes ``signatures``: one artifact for all new bodies of the shard, or none.
    """
    started = time.monotonic()
    if workspace.store.find(CLUSTER, cluster_inputs(workspace, corpus)):
        workspace.note(SIGN, str(shard), "store", time.monotonic() - started)
        return
    wanted = {body for made in corpus.catalogs for body in _bodies_with_words(workspace, made) if shard.holds(body)}
    new = wanted - _signed(workspace)
    if not new:
        workspace.note(SIGN, str(shard), "store", time.monotonic() - started)
        return

    def make() -> Told:
        from pipeline.classes.signatures import SIGNATURES, signature_table

        signed = signature_table(_bodies(workspace, corpus, new), threads=workspace.settings.config.threads)
        detail = f"{len(new):,} of {counted(len(wanted), 'body')} hashed"
        return {"signatures.parquet": SIGNATURES.to_bytes(signed)}, {"bodies": len(new)}, detail

    workspace.once(SIGN, str(shard), sign_inputs(new), make)


def _bodies_with_words(workspace: Workspace, made: Artifact) -> list[str]:
    import pyarrow.compute as pc

    entries = read(workspace, made, "entries.parquet", ["body_sha256", "empty_body"])
    return cast("list[str]", entries.filter(pc.invert(entries["empty_body"]))["body_sha256"].to_pylist())


def _signed(workspace: Workspace) -> set[str]:
    return {
        body
        for made in kept_signatures(workspace)
        for body in read(workspace, made, "signatures.parquet", ["body_sha256"])["body_sha256"].to_pylist()
    }


def _bodies(workspace: Workspace, corpus: Corpus, wanted: set[str]) -> pa.Table:
    """Return the texts of some bodies, with their digests; a body may be there more than once."""
    import pyarrow as pa
    import pyarrow.compute as pc

    digests = pa.array(sorted(wanted), pa.string())
    tables = (read(workspace, made, "entries.parquet", ["body_sha256", "body"]) for made in corpus.catalogs)
    return pa.concat_tables([table.filter(pc.is_in(table["body_sha256"], digests)) for table in tables])


def clusters(workspace: Workspace, corpus: Corpus) -> Artifact:
    """Join bodies that are nearly the same into clusters, and tell template families from them.

    Reads the catalogues and ``signatures``. Writes ``clusters``, ``cluster_members``, ``near_pairs``, ``families`` and
    ``family_members``, and holds the clusters against the exact join over all pairs.

    Raises:
        MissingArtifact: a body has no signature yet.
    """

    def make() -> Made:
        import pyarrow as pa

        from pipeline.classes.bodies import distinct_bodies
        from pipeline.classes.clusters import NearDuplicateOptions, check_candidates, near_duplicates
        from pipeline.classes.families import template_families
        from pipeline.classes.signatures import SIGNATURES, signatures_of

        read_columns = partial(read, workspace, file="entries.parquet", columns=_CLUSTERED)
        entries = pa.concat_tables([read_columns(made) for made in corpus.catalogs])
        kept = [read(workspace, made, "signatures.parquet") for made in kept_signatures(workspace)]
        bodies = distinct_bodies(entries)
        signed = signatures_of(bodies["body_sha256"], pa.concat_tables([SIGNATURES.schema.empty_table(), *kept]))
        refused = workspace.settings.cluster_decisions().refused
        options = NearDuplicateOptions(workspace.settings.config.near_threshold, refused=refused)
        found = near_duplicates(bodies, signed, entries, options, workspace.settings.config.threads)
        families = template_families(bodies, entries)
        check = check_candidates(bodies, signed, found, options)
        facts = {**found.facts(), **families.facts(), **check.facts()}
        files = {**found.files(), **families.files()}
        return {f"{name}.parquet": data for name, data in files.items()}, facts

    return workspace.once(CLUSTER, corpus.digest[:12], cluster_inputs(workspace, corpus), make)


_CLUSTERED = ("tap", "path", "path_text", "slug", "locale", "body", "body_sha256", "empty_body", "alias_stub")


def concepts(workspace: Workspace, corpus: Corpus) -> list[Artifact]:
    """Find which entries mention which concept, a tap at a time.

    Reads the catalogues and the file of concepts. Writes ``mentions``, one artifact a tap; nothing without concepts.
    """
    return _mentions(workspace, corpus, workspace.concepts)


def _mentions(workspace: Workspace, corpus: Corpus, declared: Concepts) -> list[Artifact]:
    if not declared.concepts:
        return []

    def find(tap: Tap, made: Artifact) -> Artifact:
        def make() -> Made:
            from pipeline.golden.concepts import COLUMNS, MENTIONS, find_mentions

            found = find_mentions(read(workspace, made, "entries.parquet", COLUMNS), declared)
            return {"mentions.parquet": MENTIONS.to_bytes(found)}, {"mentions": found.num_rows}

        return workspace.once(CONCEPTS, tap.name, mentions_inputs(made, declared), make)

    return [find(tap, made) for tap, made in zip(corpus.taps, corpus.catalogs, strict=True)]


def resolve(workspace: Workspace, grouped: Artifact) -> list[GoldenSet]:
    """Read every golden set and find what each of its rows names in the corpus.

    Where a row names nothing, the catalogues that the store holds of other commits tell where its content is now.

    Raises:
        BadInput: rows are wrong, or name nothing in the corpus; all rows of all sets are named, with candidates.
    """
    corpus = find_corpus(workspace)
    drafts, declared = workspace.drafts(), workspace.declared()
    if drafts.faults or declared.faults:
        raise BadInput([*declared.faults, *_looked_up(workspace, corpus, grouped, drafts, declared).faults])
    concepts(workspace, corpus)
    sets = [draft.golden for draft in drafts.sets]
    faults: list[Fault] = []
    for golden in sets:

        def make(golden: GoldenSet = golden) -> Made:
            from pipeline.golden.resolve import resolve as resolve_rows

            entries = read(workspace, grouped, "entries.parquet")
            earlier = partial(earlier_bodies, workspace)
            return {}, resolve_rows(golden, entries, earlier, mentioned(workspace, entries)).facts()

        try:
            workspace.once(RESOLVE, golden.name, resolve_inputs(workspace, grouped, golden), make)
        except BadInput as error:
            faults += error.faults
    if faults:
        raise BadInput(faults)
    return sets


def _looked_up(
    workspace: Workspace, corpus: Corpus, grouped: Artifact, drafts: Drafts, declared: DraftConcepts
) -> Drafts:
    """Return golden sets of which rows are wrong with what all their rows name wrongly, so that it is told at once."""
    from pipeline.golden.resolve import looked_up as look_up

    _mentions(workspace, corpus, declared.concepts)
    entries = read(workspace, grouped, "entries.parquet")
    mentions = mentioned(workspace, entries, declared.concepts)._replace(known=declared.named)
    earlier = cache(partial(earlier_bodies, workspace))
    return drafts._replace(sets=[look_up(draft, entries, earlier, mentions) for draft in drafts.sets])


def looked_up(workspace: Workspace, draft: Draft) -> Draft:
    """Return a set, of rows that are no golden set of the night yet, with what they name wrongly in the corpus.

    Raises:
        MissingArtifact: the corpus has not been grouped yet.
    """
    corpus = find_corpus(workspace)
    grouped = find_classes(workspace, corpus)
    (found,) = _looked_up(workspace, corpus, grouped, Drafts([draft], []), workspace.declared()).sets
    return found


def wrong_through(workspace: Workspace, declared: DraftConcepts, changed: Container[str]) -> list[Fault]:
    """Return what would be wrong with the golden sets if these concepts were declared, and is not wrong as it is.

    Args:
        workspace: its golden sets, and the concepts that it has now.
        declared: the concepts that it would have.
        changed: ids of the concepts that are new or changed; only what a row grades `irrelevant` can make it wrong.

    Raises:
        MissingArtifact: a row grades one of these `irrelevant`, and the corpus has not been grouped yet.
    """
    sets = [draft for draft in workspace.drafts().sets if _has_irrelevant(draft, changed)]
    if not sets:
        return []
    corpus = find_corpus(workspace)
    grouped = find_classes(workspace, corpus)
    before, after = (
        _looked_up(workspace, corpus, grouped, Drafts(sets, []), concepts).faults
        for concepts in (workspace.declared(), declared)
    )
    return [fault for fault in after if fault not in before]


def _has_irrelevant(draft: Draft, changed: Container[str]) -> bool:
    asked = (each for item in draft.golden.items for each in item.golden_concepts)
    return any(each.grade == "irrelevant" and each.concept_id in changed for each in asked)


def index(workspace: Workspace, corpus: Corpus, engine: str) -> list[Artifact]:
    """Index the entries of each tap for an engine, so that one changed tap costs its new entries.

    Reads the catalogues. Writes ``index``, one artifact a tap; nothing for an engine without an index.
    """
    built = workspace.settings.engines[engine]
    if not isinstance(built, IndexEngine):
        return []
    build = _index_builder(workspace, built)
    return [
        _index_tap(workspace, tap, made, engine, built, build)
        for tap, made in zip(corpus.taps, corpus.catalogs, strict=True)
    ]


def _index_tap(
    workspace: Workspace,
    tap: Tap,
    made: Artifact,
    engine: str,
    built: IndexEngine,
    build: BuildIndex,
) -> Artifact:
    def make() -> Told:
        documents = read(workspace, made, "entries.parquet", INDEXED)
        data, detail = build(tap, documents)
        return {"index.arrow": data}, {"entries": documents.num_rows}, detail

    return workspace.once(INDEX, f"{engine} {tap.name}", index_inputs(made, built), make)


INDEXED = ("slug", "description", "body")
"""The columns of a catalogue that an index is made from."""
BuildIndex = Callable[[Tap, "pa.Table"], tuple[bytes, str | None]]
"""Indexes the entries of a tap; returns the index, and how it was made where a part was taken from earlier ones."""


def _index_builder(workspace: Workspace, built: IndexEngine) -> BuildIndex:
    """Return how an engine indexes. What the store holds is looked for once, and only when something is to be made."""
    if isinstance(built, RememberingEngine):
        return _from_known_texts(workspace, built)
    if isinstance(built, UpdatingEngine):
        return _from_earlier_commits(workspace, built)
    return lambda tap, documents: (built.index_tap(documents), None)


def _from_known_texts(workspace: Workspace, built: RememberingEngine) -> BuildIndex:
    known = cache(partial(known_parts, workspace, built))

    def build(tap: Tap, documents: pa.Table) -> tuple[bytes, str | None]:
        parts = known()
        before = len(parts)
        data = built.index_tap(documents, parts)
        parts.update(built.parts(data))
        return data, f"{len(parts) - before} new texts"

    return build


def _from_earlier_commits(workspace: Workspace, built: UpdatingEngine) -> BuildIndex:
    earlier = cache(partial(earlier_indexes, workspace, built))

    def build(tap: Tap, documents: pa.Table) -> tuple[bytes, str | None]:
        before = _read_earlier(workspace, earlier().get(tap.name))
        if before is None:
            return built.index_tap(documents), None
        updated = built.update_tap(documents, before)
        return updated.data, f"{updated.new:,} of {counted(documents.num_rows, 'entry')} tokenized"

    return build


def _read_earlier(workspace: Workspace, found: EarlierIndex | None) -> Earlier | None:
    """Read the index of a tap at another commit; None where there is none, or it was damaged and is no loss."""
    if found is None:
        return None
    try:
        entries = read(workspace, found.catalog, "entries.parquet", INDEXED)
        return Earlier(entries, workspace.store.read(found.indexed, "index.arrow"))
    except Unsound:
        return None


def rank(workspace: Workspace, corpus: Corpus, grouped: Artifact, engine: str, golden: GoldenSet) -> Artifact:
    """Rank the corpus for every question of a golden set.

    Reads ``index`` of each tap, or the rankings of other engines, and ``entries``. Writes ``hits``: for each question
    the entries down to the 100th class, mirrors included; and ``queries``: what became of the words of each question.

    Raises:
        MissingArtifact: a tap has not been indexed yet, or an engine that is read has not ranked yet.
        BadInput: a run file is wrong.
    """

    def make() -> Made:
        from pipeline.engines.ranking import HITS, RANKED_QUERIES, rank_answers

        entries = read(workspace, grouped, "entries.parquet")
        ranked = rank_answers(answers(entries), entries)
        files = {
            "hits.parquet": HITS.to_bytes(ranked.hits),
            "queries.parquet": RANKED_QUERIES.to_bytes(ranked.queries),
        }
        return files, {"queries": ranked.queries.num_rows, "hits": ranked.hits.num_rows}

    built = workspace.settings.engines[engine]
    if isinstance(built, IndexEngine):
        answers = _by_index(workspace, corpus, engine, built, golden)
    else:
        answers = _by_rankings(workspace, corpus, grouped, cast(Borrower, built), golden)
    inputs = rank_inputs(workspace, corpus, grouped, engine, golden)
    return workspace.once(RANK, f"{engine} {golden.name}", inputs, make)


Answers = Callable[["pa.Table"], Iterator[Answer]]
"""What an engine answers, given the entries of the corpus."""


def _by_index(workspace: Workspace, corpus: Corpus, engine: str, built: IndexEngine, golden: GoldenSet) -> Answers:
    joined = _joined(workspace, corpus, engine, built)
    return lambda entries: joined().answer(_queries(golden))


def _joined(workspace: Workspace, corpus: Corpus, engine: str, built: IndexEngine) -> Callable[[], Retriever]:
    """Find the index of every tap, and return what joins them into one corpus when it is asked."""
    command = f"assay rank --engine {engine}"
    indices = [workspace.store.get(INDEX, index_inputs(made, built), command) for made in corpus.catalogs]

    def join() -> Retriever:
        import pyarrow as pa

        return built.retriever([pa.py_buffer(workspace.store.read(made, "index.arrow")) for made in indices])

    return join


def _by_rankings(
    workspace: Workspace, corpus: Corpus, grouped: Artifact, built: Borrower, golden: GoldenSet
) -> Answers:
    ranked = [
        workspace.store.get(
            RANK, rank_inputs(workspace, corpus, grouped, source, golden), f"assay rank --engine {source}"
        )
        for source in built.sources()
    ]

    def answers(entries: pa.Table) -> Iterator[Answer]:
        hits = [read(workspace, made, "hits.parquet") for made in ranked]
        return built.answer(Lent(_queries(golden), asked_ids(workspace), entries, hits))

    return answers


def _queries(golden: GoldenSet) -> list[Query]:
    return [Query(item.query_id, item.question) for item in golden.items]


def score(workspace: Workspace, corpus: Corpus, grouped: Artifact, engine: str, golden: GoldenSet) -> Artifact:
    """Score a ranking against its golden set.

    Reads ``hits`` and ``clusters``. Writes ``rankings``, ``items``, ``metrics``, ``duplicate_tax`` and ``sensitivity``.

    Raises:
        MissingArtifact: the engine has not ranked this set yet.
    """
    ranked = workspace.store.get(
        RANK, rank_inputs(workspace, corpus, grouped, engine, golden), f"assay rank --engine {engine}"
    )
    clustered = find_clusters(workspace, corpus)

    def make() -> Made:
        from pipeline.golden.resolve import resolve as resolve_rows
        from pipeline.scoring.near import copies
        from pipeline.scoring.score import TABLES, score_run

        entries = read(workspace, grouped, "entries.parquet")
        resolved = resolve_rows(golden, entries, concepts=mentioned(workspace, entries))
        scored = score_run(
            resolved,
            grades=judged_grades(workspace, corpus, resolved, entries),
            hits=read(workspace, ranked, "hits.parquet"),
            queries=read(workspace, ranked, "queries.parquet"),
            entries=entries,
            near=copies(
                read(workspace, clustered, "near_duplicate_clusters.parquet"),
                read(workspace, clustered, "near_duplicate_members.parquet"),
            ),
            engine=engine,
            corpus=corpus.digest,
            class_rule=workspace.settings.config.class_rule,
            deciding=workspace.settings.config.abstain_by,
        )
        return {f"{table.name}.parquet": table.to_bytes(scored.table(table)) for table in TABLES}, scored.facts()

    inputs = score_inputs(workspace, corpus, grouped, engine, golden)
    return workspace.once(SCORE, f"{engine} {golden.name}", inputs, make)


def falloff(workspace: Workspace, at: Place, golden: GoldenSet, plan: Plan) -> Artifact:
    """Measure how the scores of a golden set fall as taps join those that hold its answers, under all engines at once.

    Reads ``index`` of each tap and ``entries``. Writes ``falloff``, ``falloff_fits``, ``falloff_summaries``,
    ``falloff_notes`` and ``attribution``.

    Raises:
        MissingArtifact: a tap has not been indexed yet.
    """

    def make() -> Made:
        from pipeline.growth import draw

        drawn = draw(workspace, at.corpus, at.grouped, at.sets, golden, plan)
        return drawn.files(), drawn.facts()

    inputs = falloff_inputs(workspace, at.corpus, at.grouped, at.sets, golden, plan)
    return workspace.once(CURVES, f"{golden.name} {plan.kind}", inputs, make)


def nightly_falloff(workspace: Workspace, at: Place) -> list[Artifact]:
    """Draw the nightly curves of every set: taps in drawn orders; none where they are switched off."""
    plan = nightly_plan(workspace)
    return [falloff(workspace, at, golden, plan) for golden in (at.sets if plan.orders else ())]


def checks(workspace: Workspace, corpus: Corpus, grouped: Artifact, sets: Sequence[GoldenSet]) -> Artifact:
    """Hold a sample of today's text against what other packages make of it.

    Reads the catalogues. Writes ``checks``, one row a check and subject; nothing where one fails, so that it is made
    again in the next night.

    Raises:
        CheckFailed: a value differs; the question and the entry are named.
    """

    def make() -> Made:
        from pipeline.checks import CHECK_ROWS
        from pipeline.checks.peers import check_all

        rows = check_all(_sample(workspace, corpus, grouped, sets), workspace.settings.engines_that_run)
        return {"checks.parquet": CHECK_ROWS.to_bytes(CHECK_ROWS.from_rows(rows))}, {
            "checks": [row.model_dump() for row in rows]
        }

    return workspace.once(CHECKS, corpus.digest[:12], checks_inputs(workspace, corpus, sets), make)


def _sample(workspace: Workspace, corpus: Corpus, grouped: Artifact, sets: Sequence[GoldenSet]) -> Sample:
    """Draw the entries and questions that are checked."""
    import pyarrow as pa

    from pipeline.checks.peers import ASKED, SAMPLED
    from pipeline.checks.sampling import drawn

    named = read(workspace, grouped, "entries.parquet", ["tap", "path"]).to_pydict()
    names = [tap.encode() + b"\0" + path for tap, path in zip(named["tap"], named["path"], strict=True)]
    chosen = drawn(names, corpus.digest, SAMPLED)
    texts: list[pa.Table] = []
    first = 0
    for made in corpus.catalogs:
        inside = [row - first for row in chosen if first <= row < first + count(made, "entries")]
        first += count(made, "entries")
        if inside or not texts:
            columns = ["tap", "path_text", "slug", "description", "body"]
            texts.append(read(workspace, made, "entries.parquet", columns).take(pa.array(inside, pa.int64())))
    queries = [query for golden in sets for query in _queries(golden)]
    asked = drawn([query.text.encode() for query in queries], corpus.digest, ASKED)
    return Sample(pa.concat_tables(texts), [queries[place] for place in asked])


def known_items(workspace: Workspace, corpus: Corpus, grouped: Artifact, engine: str) -> Artifact:
    """Ask an engine for entries by their exact names, and measure how often it finds their content.

    Reads ``index`` of each tap, and ``entries``. Writes ``known_items``, one row; without a value for an engine that
    has no index to ask.

    Raises:
        MissingArtifact: a tap has not been indexed yet.
    """
    built = workspace.settings.engines[engine]

    def make() -> Made:
        from pipeline.checks.known import KNOWN_ITEM_ROWS, ask, not_asked

        if isinstance(built, IndexEngine):
            retriever = _joined(workspace, corpus, engine, built)()
            row = ask(engine, retriever, read(workspace, grouped, "entries.parquet"))
        else:
            row = not_asked(engine)
        files = {"known_items.parquet": KNOWN_ITEM_ROWS.to_bytes(KNOWN_ITEM_ROWS.from_rows([row]))}
        return files, {"known_items": row.model_copy(update={"misses": []}).model_dump()}

    return workspace.once(KNOWN_ITEMS, engine, known_items_inputs(workspace, corpus, grouped, engine), make)


def check(workspace: Workspace, at: Place) -> tuple[Artifact, list[Artifact]]:
    """Make the checks, and ask every engine that runs for known items."""
    held = checks(workspace, at.corpus, at.grouped, at.sets)
    return held, [known_items(workspace, at.corpus, at.grouped, engine) for engine in workspace.settings.running]


def feedback(workspace: Workspace, corpus: Corpus, grouped: Artifact, sets: Sequence[GoldenSet]) -> Filled:
    """Enter the failures into the queue, once for a run.

    Reads ``outcomes`` and ``rankings``. Writes into the ledger: failures that are new, and what exemplars say.

    Raises:
        MissingArtifact: an engine has not scored a set yet.
    """
    from pipeline.promotion import fill_queue

    return fill_queue(workspace, corpus, grouped, sets, run_id_of(identity_of(workspace, corpus, sets)))


def publish(workspace: Workspace, corpus: Corpus, grouped: Artifact, sets: Sequence[GoldenSet]) -> Published:
    """Publish the run: its tables and its report by one rename, then its lineage, then ``latest.json``.

    Raises:
        MissingArtifact: an engine has not scored a set yet.
    """
    started = time.monotonic()
    published = published_as(workspace, corpus, grouped, sets)
    source: StepSource = "store"
    if not is_whole(workspace.store, published.run_id):
        from pipeline.publication import run_files

        clustered = find_clusters(workspace, corpus)
        files = run_files(workspace, published.run_id, corpus, grouped, clustered, sets)
        put_in_feed(workspace.store, published.run_id, files)
        source = "computed"
    before = follows(workspace.store, published.run_id)
    detail = None
    if before is not None:
        from pipeline.publication import publish_lineage

        detail = publish_lineage(workspace, before, published.run_id)
    point_to(workspace.store, published.run_id)
    # A run that was there already told what it tells of a corpus without a tap when it was published.
    told = forecast_files(workspace.store, corpus.digest, without=source == "computed")
    if told:
        from pipeline.reports.forecasts import record_outcomes

        detail = "; ".join([*([detail] if detail else []), *record_outcomes(workspace.store, told)]) or None
    workspace.note(FEED, published.run_id[:12], source, time.monotonic() - started, detail)
    workspace.night.came_out(published.run_id)
    return published


# --- the whole night ------------------------------------------------------------------------------------------------


class Headline(Record):
    """The headline measures of one golden set under one engine and one grading."""

    golden_set: str = Field(description="Name of the set.")
    engine: str = Field(description="Name of the engine.")
    grading: Literal["row", "name"] = Field(description="`row` as pinned, `name` all rows by name.")
    values: dict[str, float | None] = Field(description="Measures by canonical name; null where undefined.")
    n_items: int = Field(description="Items scored.")
    label: str = Field(description="What the number of items allows to say.")
    n_both: int = Field(default=0, description="Items scored under both gradings; 0 where they are the same items.")
    over_both: dict[str, float | None] = Field(default={}, description="The measures over those items.")


class Published(NamedTuple):
    """A run in the feed."""

    run_id: str
    folder: Path
    headline: tuple[Headline, ...]
    answers: tuple[Answered, ...]
    """How each set was answered under each engine."""
    not_run: Mapping[str, str]
    """Why an engine did not run, by name."""
    absent: Absent
    """The same, as it is told on this machine."""
    checks: tuple[CheckRow, ...]
    """What was held against other packages."""
    known_items: tuple[KnownItemsRow, ...]
    """How often a name alone finds its content, an engine each; without the entries that were missed."""


def published_as(workspace: Workspace, corpus: Corpus, grouped: Artifact, sets: Sequence[GoldenSet]) -> Published:
    """Return what the run is called, where it is or will be published, and its headline.

    Raises:
        MissingArtifact: an engine has not scored a set yet.
    """
    run_id = run_id_of(identity_of(workspace, corpus, sets))
    scores = find_scores(workspace, corpus, grouped, sets)
    return Published(
        run_id,
        run_folder(workspace.store, run_id),
        headline_of(scores),
        tuple(Answered.model_validate(made.facts["answers"]) for made in scores),
        workspace.settings.not_run,
        workspace.settings.absent,
        checks_of(find_checks(workspace, corpus, sets)),
        known_items_of(find_known_items(workspace, corpus, grouped)),
    )


def headline_of(scores: Sequence[Artifact]) -> tuple[Headline, ...]:
    """Return the headline measures that scores left among their facts."""
    rows = [row for made in scores for row in cast("list[object]", made.facts["headline"])]
    return tuple(Headline.model_validate(row) for row in rows)


def checks_of(made: Artifact) -> tuple[CheckRow, ...]:
    """Return the rows that checks left among their facts."""
    return tuple(CheckRow.model_validate(row) for row in cast("list[object]", made.facts["checks"]))


def known_items_of(made: Sequence[Artifact]) -> tuple[KnownItemsRow, ...]:
    """Return the rows that known items left among their facts."""
    return tuple(KnownItemsRow.model_validate(each.facts["known_items"]) for each in made)


class Place(NamedTuple):
    """Where a step that is repeated by hand starts from: what the steps before it left in the store."""

    corpus: Corpus
    grouped: Artifact
    sets: list[GoldenSet]


def resolved_place(workspace: Workspace) -> Place:
    """Find the corpus and its classes, and resolve the golden sets there.

    Raises:
        BadInput: rows are wrong, or name nothing in the corpus; all rows of all sets are named.
        MissingArtifact: the corpus has not been grouped yet.
    """
    try:
        found = find_corpus(workspace)
        grouped = find_classes(workspace, found)
    except MissingArtifact:
        faults = [*workspace.declared().faults, *workspace.drafts().faults]
        if faults:
            raise BadInput([*faults, LOOKED_UP_LATER]) from None
        raise
    return Place(found, grouped, resolve(workspace, grouped))


def place(workspace: Workspace) -> Place:
    """Find the corpus, its classes, and the golden sets as they were resolved.

    Raises:
        MissingArtifact: one of them is not in the store yet.
    """
    found = find_corpus(workspace)
    grouped = find_classes(workspace, found)
    sets = workspace.golden_sets()
    for golden in sets:
        workspace.store.get(RESOLVE, resolve_inputs(workspace, grouped, golden), "assay run")
    return Place(found, grouped, sets)


def check_inputs(workspace: Workspace) -> TapList:
    """Read everything that people wrote, before any work; return the tap list.

    Raises:
        BadInput: the tap list, the decisions, a golden set, a run file or a model is wrong; the faults of all of them
            are named, but for entries that there are not, which only the corpus shows.
    """
    settings = workspace.settings
    drafts, declared = workspace.drafts(), workspace.declared()
    asked = None if drafts.faults else asked_ids(workspace)
    of_engines = settings.engine_faults(asked, proven_engines(workspace))
    if not drafts.faults:
        of_engines += faults_in(partial(_bound_curves, workspace))
    of_corpus = [*faults_in(settings.tap_list), *faults_in(settings.cluster_decisions)]
    if drafts.faults or declared.faults or of_engines or of_corpus:
        of_rows = drafts.faults or declared.faults
        found = _looked_up_at_once(workspace, drafts, declared) if of_rows and not of_corpus else None
        later = [LOOKED_UP_LATER] if of_engines or (drafts.faults and found is None) else []
        told = [*of_corpus, *declared.faults, *(found or drafts).faults, *of_engines, *later]
        raise BadInput(dict.fromkeys(told))
    return settings.tap_list()


def _looked_up_at_once(workspace: Workspace, drafts: Drafts, declared: DraftConcepts) -> Drafts | None:
    """Read the taps though golden sets are wrong, to tell all that is wrong with them.

    None where a tap is wrong itself, or has to be fetched first: nobody waits for that to be told of a slip.
    """
    taps = workspace.settings.tap_list()
    if not all(is_local(tap) or _is_snapshotted(workspace, tap) for tap in taps.taps):
        return None
    try:
        verdict(read_taps(workspace, taps.taps))
        whole = corpus(workspace)
        return _looked_up(workspace, whole, classes(workspace, whole), drafts, declared)
    except AssayError:
        return None


def _is_snapshotted(workspace: Workspace, tap: Tap) -> bool:
    return workspace.store.find(SNAPSHOT, snapshot_inputs(tap, workspace.snapshot_options)) is not None


def _bound_curves(workspace: Workspace) -> None:
    config, sets = workspace.settings.config, workspace.golden_sets()
    bound(config.orders, config.sizes, max((len(golden.items) for golden in sets), default=0))


def read_tap(workspace: Workspace, tap: Tap) -> TapState:
    """Snapshot and catalogue one tap and hold it against its row. Trouble with a tap is its state, not an error."""
    started = time.monotonic()
    state = snapshot(workspace, tap)
    if state.state == "ok":
        state = checked(tap, catalog(workspace, tap), state)
    state = state.model_copy(update={"seconds": round(time.monotonic() - started, 3)})
    workspace.night.note(state)
    return state


def read_taps(workspace: Workspace, taps: Sequence[Tap]) -> list[TapState]:
    """Attempt every tap, some at the same time; return the state of each, in the order given."""
    with ThreadPoolExecutor(workspace.settings.config.threads) as pool:
        return list(pool.map(lambda tap: read_tap(workspace, tap), taps))


def evaluate(
    workspace: Workspace, corpus: Corpus, grouped: Artifact, engine: str, sets: Sequence[GoldenSet]
) -> list[Artifact]:
    """Index, rank and score every golden set with one engine; return the scores in the order of the sets."""
    rank_sets(workspace, corpus, grouped, engine, sets)
    return [score(workspace, corpus, grouped, engine, golden) for golden in sets]


def rank_sets(
    workspace: Workspace, corpus: Corpus, grouped: Artifact, engine: str, sets: Sequence[GoldenSet]
) -> list[Artifact]:
    """Index and rank every golden set with one engine, and before it with those whose rankings it reads."""
    for source in sources_of(workspace.settings.engines[engine]):
        rank_sets(workspace, corpus, grouped, source, sets)
    index(workspace, corpus, engine)
    return [rank(workspace, corpus, grouped, engine, golden) for golden in sets]


def run(workspace: Workspace) -> Published:
    """Run all stages in this process, in order.

    Raises:
        AssayError: the night cannot be finished; every tap was attempted, and nothing is published.
    """
    workspace.store.sweep()
    taps = check_inputs(workspace)
    verdict(read_taps(workspace, taps.taps))
    whole = corpus(workspace)
    grouped = classes(workspace, whole)
    sign(workspace, whole)
    clusters(workspace, whole)
    sets = resolve(workspace, grouped)
    for engine in workspace.settings.running:
        evaluate(workspace, whole, grouped, engine, sets)
    nightly_falloff(workspace, Place(whole, grouped, sets))
    check(workspace, Place(whole, grouped, sets))
    feedback(workspace, whole, grouped, sets)
    return publish(workspace, whole, grouped, sets)


# --- small parts ----------------------------------------------------------------------------------------------------


def _ok(tap: Tap) -> TapState:
    return TapState(name=tap.name, pin=tap.pin, state="ok", reason="", source="store", seconds=0.0)


def checked(tap: Tap, made: Artifact, state: TapState) -> TapState:
    """Hold the counts of a catalogue against the tap's row; the state is `drift` where they differ."""
    measured = {"entries": count(made, "entries"), "classes": count(made, "classes")}
    expected = {"entries": tap.entries, "classes": tap.classes}
    differs = [
        f"{name}: the row says {expected[name]}, the pinned tree has {value}"
        for name, value in measured.items()
        if expected[name] not in (None, value)
    ]
    if not differs and measured["entries"] == 0 and tap.entries is None:
        differs = ["the pinned tree has no entry; if that is right, say entries = 0 in its row"]
    if not differs:
        return state
    return state.model_copy(update={"state": "drift", "reason": "; ".join(differs)})


def count(made: Artifact, fact: str) -> int:
    """Return a count that a stage left among its facts."""
    value = made.facts[fact]
    assert isinstance(value, int)
    return value
