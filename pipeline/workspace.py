"""What every stage is handed, and the keys under which each finds and keeps its output."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from pydantic import JsonValue

from pipeline.catalog.entries import CATALOG
from pipeline.checks import CHECKS, peers
from pipeline.checks.known import KNOWN_ITEMS
from pipeline.classes import CLUSTER, SIGN
from pipeline.classes.families import FAMILY_THRESHOLD
from pipeline.classes.group import CLASSES
from pipeline.classes.signatures import SCHEME
from pipeline.config import Settings, faults_in, sources_of
from pipeline.engines import INDEX, RANK, CheckedEngine, IndexEngine, RememberingEngine, fingerprint, made_of
from pipeline.errors import BadInput, Fault
from pipeline.falloff import CURVES, Plan
from pipeline.feedback import FEEDBACK
from pipeline.golden.concepts import (
    CONCEPTS,
    NO_DRAFT,
    Concepts,
    DraftConcepts,
    Mentioned,
    draft_concepts,
    in_both_places,
)
from pipeline.golden.concepts import mentioned as in_classes
from pipeline.golden.items import KEPT, RESOLVE, Draft, GoldenItem, GoldenSet, draft_golden_set
from pipeline.golden.kept import CONCEPTS_PLACE, concept_lines, set_lines
from pipeline.jsonlines import read_file
from pipeline.ledger import Kept, KeptRow, kept_rows, results_position
from pipeline.reports.feed import FEED, LedgerRead, Night, Step, StepSource
from pipeline.scoring import SCORE
from pipeline.store import Artifact, Stage, Store, digest
from pipeline.taps.snapshot import SNAPSHOT, SnapshotOptions, TapManifest, snapshot_inputs
from pipeline.taps.taplist import Tap, TapList, corpus_digest

if TYPE_CHECKING:
    import pyarrow as pa

    from pipeline.feedback.readiness import ReadinessRow
    from pipeline.golden.resolve import ResolvedSet
    from pipeline.judgments.conflicts import ConflictRow
    from pipeline.judgments.qrels import Source
    from pipeline.judgments.resolution import Grades, Resolution

CORPUS = Stage("corpus", 1)

STAGES = (
    SNAPSHOT,
    CATALOG,
    CORPUS,
    CLASSES,
    SIGN,
    CLUSTER,
    CONCEPTS,
    RESOLVE,
    INDEX,
    RANK,
    SCORE,
    CURVES,
    CHECKS,
    KNOWN_ITEMS,
    FEEDBACK,
    FEED,
)
"""Every stage, in order. Their versions are part of a run's identity."""

Files = dict[str, bytes]
Facts = dict[str, JsonValue]
Made = tuple[Files, Facts]
Told = tuple[Files, Facts, str | None]
"""The same, and how it was made, if there is something to tell: `Step.detail`, a circumstance, which is not stored."""


def now() -> datetime:
    """Return the time, UTC. Only circumstances are stamped with it."""
    return datetime.now(UTC)


@dataclass(frozen=True)
class Workspace:
    """The configuration, the store, and where to note and show what was done."""

    settings: Settings
    night: Night
    on_step: Callable[[Step], None] = field(default=lambda step: None)

    @property
    def store(self) -> Store:
        """Where everything derived is kept."""
        return self.settings.store

    @cached_property
    def position(self) -> int:
        """Position of the ledger as of which this night reads it: the same for all its processes.

        It is that of the last row that can change a result: an earlier position of the same results is the same night.

        Raises:
            BadInput: what is there is no ledger, or it ends before the position that was asked for.
            Outage: the ledger is out of reach.
        """
        configured = self.settings.config.as_of
        if configured >= 0:
            return results_position(self.settings.ledger_url, configured)
        noted = self.night.position()
        if noted is None:
            noted = results_position(self.settings.ledger_url)
            # Nothing is noted of a night that is over: its notes would be left behind.
            if self.night.is_running:
                self.night.note(LedgerRead(position=noted))
        return noted

    @cached_property
    def kept(self) -> Kept:
        """What the ledger keeps in place of files, as of the night's position."""
        return kept_rows(self.settings.ledger_url, self.position)

    @cached_property
    def concepts(self) -> Concepts:
        """What concepts there are: those of the file, and those that the ledger keeps.

        Raises:
            BadInput: rows are wrong, or a concept is declared in both places; all faults are named.
        """
        declared = self.declared()
        if declared.faults:
            raise BadInput(declared.faults)
        return declared.concepts

    def declared(self, kept: Sequence[KeptRow] | None = None) -> DraftConcepts:
        """Read concepts as far as they can be read, and note what is wrong.

        Args:
            kept: rows of the table ``concepts`` that are read in place of those that the ledger keeps.
        """
        faults = [] if kept is not None else faults_in(lambda: self.kept)
        lines = [] if faults else concept_lines(self.kept.concepts if kept is None else kept)
        of_ledger = draft_concepts(CONCEPTS_PLACE, "\n".join(lines).encode("utf-8"))
        of_file = NO_DRAFT
        if self.settings.concept_file is not None:
            try:
                of_file = draft_concepts(self.settings.concept_file, read_file(self.settings.concept_file))
            except BadInput as error:
                faults += error.faults
        both = [in_both_places(concept_id) for concept_id in sorted(of_file.named & of_ledger.named)]
        return DraftConcepts(
            Concepts((*of_file.concepts.concepts, *of_ledger.concepts.concepts)),
            of_file.named | of_ledger.named,
            [*faults, *of_file.faults, *of_ledger.faults, *both],
        )

    def golden_sets(self) -> list[GoldenSet]:
        """Read every golden set: the files, then those that the ledger keeps, each in the order of their names.

        Raises:
            BadInput: rows are wrong, or a set lies in both places; all faults are named.
        """
        drafts = self.drafts()
        if drafts.faults:
            raise BadInput(drafts.faults)
        return [draft.golden for draft in drafts.sets]

    def drafts(self) -> Drafts:
        """Read every golden set as far as it can be read, and note what is wrong."""
        unread = faults_in(lambda: self.kept)
        kept = Kept() if unread else self.kept
        readers: list[Callable[[], Draft]] = [partial(_draft_of_file, path) for path in self.settings.golden_files]
        files = {path.stem for path in self.settings.golden_files}
        for name, lines in set_lines(kept.golden_items, kept.decisions).items():
            if name in files:
                todo = "a set lies in a file or in the ledger, never in both: rename the file"
                unread.append(Fault(f"golden set {name}", "is a file, and in the ledger too", todo))
            else:
                data = "\n".join(lines).encode("utf-8")
                readers.append(partial(draft_golden_set, Path(KEPT + name), data))
        sets: list[Draft] = []
        for draft in readers:
            try:
                sets.append(draft())
            except BadInput as error:
                unread += error.faults
        return Drafts(sets, unread)

    @property
    def snapshot_options(self) -> SnapshotOptions:
        """How taps are read."""
        return SnapshotOptions(self.settings.config.max_file_bytes, self.settings.config.fetch_seconds)

    def note(self, stage: Stage, subject: str, source: StepSource, seconds: float, detail: str | None = None) -> None:
        """Note a step of the night, and show it."""
        step = Step(stage=stage.name, subject=subject, source=source, seconds=round(seconds, 4), detail=detail)
        self.night.note(step)
        self.on_step(step)

    def once(self, stage: Stage, subject: str, inputs: Facts, make: Callable[[], Made | Told]) -> Artifact:
        """Return what ``stage`` makes from ``inputs``, from the store where it is there already."""
        started = time.monotonic()
        found = self.store.find(stage, inputs)
        source: StepSource = "store"
        detail = None
        if found is None:
            made = make()
            found, source = self.store.write(stage, inputs, made[0], made[1]), "computed"
            detail = made[2] if len(made) == 3 else None
        self.note(stage, subject, source, time.monotonic() - started, detail)
        return found


class Drafts(NamedTuple):
    """All golden sets, as far as they can be read."""

    sets: list[Draft]
    unread: list[Fault]
    """What is wrong with files as a whole, and with what the ledger keeps."""

    @property
    def faults(self) -> list[Fault]:
        """Everything that is wrong."""
        return [*self.unread, *(fault for draft in self.sets for fault in draft.faults)]


def _draft_of_file(path: Path) -> Draft:
    return draft_golden_set(path, read_file(path))


class Pinned(Protocol):
    """What a run's identity takes from a corpus: which taps, and the digest of their pins."""

    @property
    def digest(self) -> str:
        """The corpus digest."""
        ...

    @property
    def taps(self) -> tuple[Tap, ...]:
        """The taps, in byte order of their names."""
        ...


class Corpus(NamedTuple):
    """All taps of the list, each read at its pin, in byte order of their names."""

    artifact: Artifact
    digest: str
    taps: tuple[Tap, ...]
    catalogs: tuple[Artifact, ...]
    """The catalogue of each tap, in the order of ``taps``."""


# --- what each output is derived from --------------------------------------------------------------------------------


def catalog_inputs(taken: Artifact) -> Facts:
    """Return what a catalogue is derived from: the snapshot, whose key holds the tap's name, pin and options.

    The name belongs to it because a rule file at the root of a tap is called by it.
    """
    return {"snapshot": taken.key}


def corpus_inputs(taps: Sequence[Tap], catalogs: Sequence[Artifact]) -> Facts:
    """Return what a corpus is derived from."""
    return {"taps": [[tap.name, tap.pin, made.key] for tap, made in zip(taps, catalogs, strict=True)]}


def classes_inputs(workspace: Workspace, corpus: Corpus) -> Facts:
    """Return what the content classes are derived from."""
    return {
        "corpus": corpus.artifact.key,
        "rule": workspace.settings.config.class_rule,
        "confirmed": workspace.settings.cluster_decisions().confirmed_digest,
    }


def sign_inputs(bodies: Collection[str]) -> Facts:
    """Return what the signatures of some bodies are derived from: how they are made, and the digests."""
    return {"scheme": str(SCHEME), "bodies": digest(sorted(bodies))}


def cluster_inputs(workspace: Workspace, corpus: Corpus) -> Facts:
    """Return what the near-duplicate clusters are derived from. Not how the bodies were cut into shards."""
    return {
        "corpus": corpus.artifact.key,
        "scheme": str(SCHEME),
        "threshold": workspace.settings.config.near_threshold,
        "family_threshold": FAMILY_THRESHOLD,
        "refused": workspace.settings.cluster_decisions().inputs()["refused"],
    }


def mentions_inputs(made: Artifact, declared: Concepts) -> Facts:
    """Return what the mentions of concepts in a catalogue are derived from."""
    return {"catalog": made.key, "concepts": declared.digest}


def resolve_inputs(workspace: Workspace, grouped: Artifact, golden: GoldenSet) -> Facts:
    """Return what a resolved golden set is derived from."""
    concepts = workspace.concepts.digest
    return {"classes": grouped.key, "golden": golden.digest, "concepts": concepts}


def index_inputs(made: Artifact, engine: IndexEngine) -> Facts:
    """Return what the index of a catalogue is derived from: no engine by name, so that engines may share it."""
    return {"catalog": made.key, "index": engine.index_inputs()}


def rank_inputs(workspace: Workspace, corpus: Corpus, grouped: Artifact, engine: str, golden: GoldenSet) -> Facts:
    """Return what a ranking is derived from."""
    built = workspace.settings.engines[engine]
    inputs: Facts = {
        "fingerprint": engine_fingerprint(workspace, corpus, engine),
        "classes": grouped.key,
        "golden": golden.digest,
    }
    if isinstance(built, IndexEngine):
        return {**inputs, "indices": _index_keys(corpus, built)}
    sources: Facts = {
        source: Store.key(RANK, rank_inputs(workspace, corpus, grouped, source, golden)) for source in sources_of(built)
    }
    return {**inputs, "sources": sources, "asked": digest(sorted(asked_ids(workspace)))}


def score_inputs(workspace: Workspace, corpus: Corpus, grouped: Artifact, engine: str, golden: GoldenSet) -> Facts:
    """Return what the scores of a ranking are derived from."""
    ranked = Store.key(RANK, rank_inputs(workspace, corpus, grouped, engine, golden))
    clustered = Store.key(CLUSTER, cluster_inputs(workspace, corpus))
    return {
        "rank": ranked,
        "clusters": clustered,
        "engine": engine,
        "golden": golden.digest,
        "set": golden.name,
        "concepts": workspace.concepts.digest,
        "position": workspace.position,
        "abstain_by": workspace.settings.config.abstain_by,
        "judge": pinned_judge(workspace),
    }


def pinned_judge(workspace: Workspace) -> list[JsonValue] | None:
    """Return model and prompt version of the judge whose judgments count; None where those of no judge do."""
    return None if workspace.settings.judge is None else [*workspace.settings.judge]


def checks_inputs(workspace: Workspace, corpus: Corpus, sets: Sequence[GoldenSet]) -> Facts:
    """Return what the checks of a night are derived from."""
    asked: Facts = {golden.name: golden.digest for golden in sets}
    return {"corpus": corpus.artifact.key, "golden": asked, "checks": peers.inputs(workspace.settings.engines_that_run)}


def known_items_inputs(workspace: Workspace, corpus: Corpus, grouped: Artifact, engine: str) -> Facts:
    """Return what the known items of an engine are derived from."""
    built = workspace.settings.engines[engine]
    return {
        "engine": engine,
        "fingerprint": engine_fingerprint(workspace, corpus, engine),
        "classes": grouped.key,
        "indices": _index_keys(corpus, built) if isinstance(built, IndexEngine) else [],
    }


def nightly_plan(workspace: Workspace) -> Plan:
    """Return what curves a night draws: taps in drawn orders, under every engine that runs."""
    config = workspace.settings.config
    running = tuple(workspace.settings.running)
    not_run = workspace.settings.not_run
    return Plan("random", config.orders, config.sizes, 0, running, floors=config.floors, not_run=not_run)


def falloff_inputs(
    workspace: Workspace, corpus: Corpus, grouped: Artifact, sets: Sequence[GoldenSet], golden: GoldenSet, plan: Plan
) -> Facts:
    """Return what the curves of a golden set are derived from.

    What the targets are hangs on the roles of the taps, and where no tap has one, on the exemplars of all sets.
    """
    ranked: Facts = {
        engine: Store.key(RANK, rank_inputs(workspace, corpus, grouped, engine, golden)) for engine in plan.engines
    }
    asked: Facts = {each.name: each.digest for each in sets}
    return {
        "classes": grouped.key,
        "set": golden.name,
        "golden": golden.digest,
        "roles": {tap.name: tap.role for tap in corpus.taps},
        "asked": asked,
        "position": workspace.position,
        "judge": pinned_judge(workspace),
        "abstain_by": workspace.settings.config.abstain_by,
        "engines": ranked,
        "plan": {name: getattr(plan, name) for name in ("kind", "orders", "sizes", "seed", "statistics", "step")}
        | {"at": [*plan.at], "not_run": dict(plan.not_run)},
        "floors": {engine: dict(plan.floors[engine]) for engine in plan.engines if engine in plan.floors},
    }


def _index_keys(corpus: Corpus, built: IndexEngine) -> list[JsonValue]:
    return [Store.key(INDEX, index_inputs(made, built)) for made in corpus.catalogs]


def engine_fingerprint(workspace: Workspace, corpus: Pinned, engine: str) -> str:
    """Return the fingerprint of an engine over a corpus: with that of its package, and of the engines it reads."""
    settings = workspace.settings
    others = _beside(workspace, corpus, engine)
    return fingerprint(settings.engines[engine], settings.config.class_rule, corpus.digest, others)


def engine_made_of(workspace: Workspace, corpus: Pinned, engine: str) -> Facts:
    """Return what the fingerprint of an engine is made from, beside class rule and corpus."""
    return made_of(workspace.settings.engines[engine], _beside(workspace, corpus, engine))


def _beside(workspace: Workspace, corpus: Pinned, engine: str) -> Facts:
    """Return what an engine depends on beside itself: the fingerprints of its sources, its package."""
    settings = workspace.settings
    sources = sources_of(settings.engines[engine])
    others: Facts = {"sources": {source: engine_fingerprint(workspace, corpus, source) for source in sources}}
    if engine in settings.packages:
        others["package"] = settings.packages[engine]
    return others


def asked_ids(workspace: Workspace) -> set[str]:
    """Return the ids of the questions of all golden sets."""
    return {item.query_id for golden in workspace.golden_sets() for item in golden.items}


def proven_engines(workspace: Workspace) -> set[str]:
    """Return the engines that have indexed a tap with just what they read now: a model need not be loaded to try it."""
    running = workspace.settings.engines_that_run.items()
    reading = {
        name: engine.index_inputs()
        for name, engine in running
        if isinstance(engine, IndexEngine) and isinstance(engine, CheckedEngine)
    }
    if not reading:
        return set()
    indexed = [made.inputs["index"] for made in workspace.store.stored(INDEX)]
    return {name for name, inputs in reading.items() if inputs in indexed}


def options_of(workspace: Workspace, engine: str) -> Facts:
    """Return the options of an engine that can change a result: what a path names counts, not where it lies."""
    built = workspace.settings.engines[engine]
    return {"kind": built.name, **built.options.model_dump(mode="json", exclude={"path"})}


def identity_of(workspace: Workspace, corpus: Pinned, sets: Sequence[GoldenSet]) -> Facts:
    """Return everything that can change a result of an evaluation: what its run id is the digest of."""
    settings = workspace.settings
    return {
        "corpus": corpus.digest,
        "roles": {tap.name: tap.role for tap in corpus.taps},
        "max_file_bytes": settings.config.max_file_bytes,
        "class_rule": settings.config.class_rule,
        "cluster_decisions": settings.cluster_decisions().inputs(),
        "near_threshold": settings.config.near_threshold,
        "orders": settings.config.orders,
        "sizes": settings.config.sizes,
        "abstain_by": settings.config.abstain_by,
        "floors": {engine: dict(floors) for engine, floors in settings.config.floors.items()},
        "engines": {engine: engine_fingerprint(workspace, corpus, engine) for engine in settings.running},
        "not_run": dict(settings.not_run),
        "options": {engine: options_of(workspace, engine) for engine in sorted(settings.engines)},
        "golden": {golden.name: golden.digest for golden in sets},
        "checks": peers.inputs(settings.engines_that_run),
        "qrels_position": workspace.position,
        "judge": pinned_judge(workspace),
        "concepts": workspace.concepts.digest,
        "stages": {stage.name: stage.version for stage in STAGES},
    }


# --- finding what earlier steps left ---------------------------------------------------------------------------------


def find_snapshot(workspace: Workspace, tap: Tap) -> Artifact:
    """Return the stored snapshot of a tap; MissingArtifact where there is none."""
    return workspace.store.get(SNAPSHOT, snapshot_inputs(tap, workspace.snapshot_options), f"assay snapshot {tap.name}")


def find_catalog(workspace: Workspace, tap: Tap) -> Artifact:
    """Return the stored catalogue of a tap; MissingArtifact where there is none."""
    return workspace.store.get(CATALOG, catalog_inputs(find_snapshot(workspace, tap)), f"assay catalog {tap.name}")


def in_order(taps: TapList) -> tuple[Tap, ...]:
    """Return the taps in byte order of their names, the order of every table."""
    return tuple(sorted(taps.taps, key=lambda tap: tap.name.encode("utf-8")))


def find_corpus(workspace: Workspace) -> Corpus:
    """Return the stored corpus of the tap list; MissingArtifact where a tap or the corpus itself is missing."""
    taps = in_order(workspace.settings.tap_list())
    catalogs = tuple(find_catalog(workspace, tap) for tap in taps)
    made = workspace.store.get(CORPUS, corpus_inputs(taps, catalogs), "assay classes")
    return Corpus(made, corpus_digest(taps), taps, catalogs)


def find_classes(workspace: Workspace, corpus: Corpus) -> Artifact:
    """Return the stored content classes of a corpus; MissingArtifact where there are none."""
    return workspace.store.get(CLASSES, classes_inputs(workspace, corpus), "assay classes")


def find_clusters(workspace: Workspace, corpus: Corpus) -> Artifact:
    """Return the stored near-duplicate clusters of a corpus; MissingArtifact where there are none."""
    return workspace.store.get(CLUSTER, cluster_inputs(workspace, corpus), "assay classes")


def kept_signatures(workspace: Workspace) -> list[Artifact]:
    """Return everything that holds signatures made as they are made today."""
    return [made for made in workspace.store.stored(SIGN) if made.inputs["scheme"] == str(SCHEME)]


def earlier_bodies(workspace: Workspace) -> dict[tuple[str, bytes], list[str]]:
    """Return the digests of the bodies that each entry has held in any catalogue of the store, the latest first."""
    taken = {made.key: TapManifest.model_validate(made.facts) for made in workspace.store.stored(SNAPSHOT)}
    catalogs = [made for made in workspace.store.stored(CATALOG) if made.inputs["snapshot"] in taken]

    def latest_first(made: Artifact) -> tuple[str, str]:
        manifest = taken[str(made.inputs["snapshot"])]
        return manifest.committed or "", manifest.pin

    return bodies_in(workspace, sorted(catalogs, key=latest_first, reverse=True))


def known_parts(workspace: Workspace, engine: RememberingEngine) -> dict[bytes, bytes]:
    """Return what the stored indexes that an engine would make alike hold of each text, by the digest of the text."""
    known: dict[bytes, bytes] = {}
    for made in workspace.store.stored(INDEX):
        if made.inputs["index"] == engine.index_inputs():
            known.update(engine.parts(workspace.store.read(made, "index.arrow")))
    return known


class EarlierIndex(NamedTuple):
    """An index of a tap at another commit, and what it was made from."""

    catalog: Artifact
    indexed: Artifact


def earlier_indexes(workspace: Workspace, engine: IndexEngine) -> dict[str, EarlierIndex]:
    """Return for each tap, by name, the stored index of its latest commit that an engine would make alike."""
    taken = {made.key: TapManifest.model_validate(made.facts) for made in workspace.store.stored(SNAPSHOT)}
    catalogs = {made.key: made for made in workspace.store.stored(CATALOG) if made.inputs["snapshot"] in taken}
    latest: dict[str, tuple[str, str, EarlierIndex]] = {}
    for made in workspace.store.stored(INDEX):
        catalog = catalogs.get(str(made.inputs["catalog"]))
        if catalog is None or made.inputs["index"] != engine.index_inputs():
            continue
        manifest = taken[str(catalog.inputs["snapshot"])]
        found = (manifest.committed or "", manifest.pin, EarlierIndex(catalog, made))
        latest[manifest.name] = max(found, latest.get(manifest.name, found), key=lambda each: each[:2])
    return {name: found for name, (_, _, found) in latest.items()}


def resolved_judgments(
    workspace: Workspace, corpus: Corpus, sets: Sequence[ResolvedSet], entries: pa.Table
) -> Callable[[Collection[Source]], Resolution]:
    """Return what tells, for some sources, what all judgments of a corpus come to: grades, and where they conflict.

    What exemplars and citations say follows from ``sets``; the rest is read from the ledger as of the night's position,
    and may be about questions that none of the sets asks. Of judges the pinned one counts.
    """
    from pipeline.judgments.provenance import provenance_of, unwritten
    from pipeline.judgments.qrels import read_qrels
    from pipeline.judgments.resolution import resolve_qrels
    from pipeline.judgments.targets import Targets

    targets = Targets(entries, {tap.name: str(tap.pin) for tap in corpus.taps})
    qrels = [qrel for resolved in sets for qrel in unwritten(provenance_of(resolved, targets))]
    if workspace.position:
        from pipeline.ledger.ledger import existing_ledger

        with existing_ledger(workspace.settings.ledger_url) as ledger:
            said = [] if ledger is None else read_qrels(ledger, workspace.position)
        qrels += [qrel for qrel in said if qrel.source != "provenance"]
    return lambda sources: resolve_qrels(qrels, targets.classes_of, workspace.settings.judge, sources)


def judged_grades(workspace: Workspace, corpus: Corpus, resolved: ResolvedSet, entries: pa.Table) -> dict[str, Grades]:
    """Return the grades of the classes of a corpus for the items of a set, for each filter of sources."""
    from pipeline.scoring.outcomes import SOURCE_FILTERS

    by = resolved_judgments(workspace, corpus, [resolved], entries)
    return {name: _asked(resolved, by(sources).grades) for name, sources in SOURCE_FILTERS.items()}


def _asked(resolved: ResolvedSet, grades: Grades) -> Grades:
    asked = {one.item.query_id for one in resolved.items}
    return {query_id: found for query_id, found in grades.items() if query_id in asked}


def readiness_of(workspace: Workspace, corpus: Corpus, grouped: Artifact, golden: GoldenSet) -> list[ReadinessRow]:
    """Return what a set is good for.

    Raises:
        MissingArtifact: an engine has not scored it yet.
    """
    from pipeline.feedback.readiness import readiness
    from pipeline.golden.resolve import resolve
    from pipeline.judgments.qrels import SOURCES
    from pipeline.scoring.agreement import agreement

    entries = read(workspace, grouped, "entries.parquet")
    resolved = resolve(golden, entries, concepts=mentioned(workspace, entries))
    pools: dict[str, set[str]] = {}
    scores = find_scores(workspace, corpus, grouped, [golden])
    for made in scores:
        for hit in read(workspace, made, "rankings.parquet", ["query_id", "rank", "class_id"]).to_pylist():
            if hit["rank"] <= 10:
                pools.setdefault(hit["query_id"], set()).add(hit["class_id"])
    by = resolved_judgments(workspace, corpus, [resolved], entries)
    people, model = (_asked(resolved, by([source]).grades) for source in (SOURCES[0], SOURCES[-1]))
    judge = None if workspace.settings.judge is None else agreement(people, model)
    return readiness(
        resolved, _asked(resolved, by(SOURCES).grades), pools, len(scores), judge, _promoted_beside(workspace, golden)
    )


def _promoted_beside(workspace: Workspace, golden: GoldenSet) -> list[GoldenItem]:
    """Return the items of the set that the failures of a set in a file are promoted to, or the other way round."""
    from pipeline.feedback.promote import SUFFIX

    names = {golden.name + SUFFIX, golden.name.removesuffix(SUFFIX)} - {golden.name}
    return [item for other in workspace.golden_sets() if other.name in names for item in other.items]


def conflicts_of(workspace: Workspace, corpus: Corpus, grouped: Artifact, golden: GoldenSet) -> list[ConflictRow]:
    """Return where those who judged differ about the questions of a set, in the order of question and class."""
    from pipeline.golden.resolve import resolve_known
    from pipeline.judgments.conflicts import conflict_rows
    from pipeline.judgments.qrels import SOURCES

    entries = read(workspace, grouped, "entries.parquet")
    resolved = resolve_known(golden, entries)
    said = resolved_judgments(workspace, corpus, [resolved], entries)(SOURCES)
    return list(conflict_rows(golden.name, {one.item.query_id for one in resolved.items}, said))


def mentioned(workspace: Workspace, entries: pa.Table, drafted: Concepts | None = None) -> Mentioned:
    """Return which classes of the corpus mention which concept; MissingArtifact where a tap was not searched yet."""
    declared = workspace.concepts if drafted is None else drafted
    if not declared.concepts:
        return Mentioned()
    import pyarrow as pa

    made = [
        workspace.store.get(CONCEPTS, mentions_inputs(catalog, declared), "assay rank")
        for catalog in find_corpus(workspace).catalogs
    ]
    return in_classes(declared, pa.concat_tables([read(workspace, each, "mentions.parquet") for each in made]), entries)


def read(workspace: Workspace, made: Artifact, file: str, columns: Sequence[str] | None = None) -> pa.Table:
    """Read a Parquet file of an artifact."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    data = pa.BufferReader(workspace.store.read(made, file))
    # Without threads: one that lets go of Python's memory while the interpreter ends takes the process down with it.
    return pq.ParquetFile(data).read(None if columns is None else list(columns), use_threads=False)


def bodies_in(workspace: Workspace, catalogs: Iterable[Artifact]) -> dict[tuple[str, bytes], list[str]]:
    """Return the digests of the bodies that each entry holds in ``catalogs``, in their order.

    The key is the tap, and the path in its bytes or as it is shown.
    """
    bodies: dict[tuple[str, bytes], list[str]] = {}
    for made in catalogs:
        columns = ["tap", "path", "path_text", "body_sha256"]
        table = read(workspace, made, "entries.parquet", columns)
        for tap, path, readable, body in zip(*(table[name].to_pylist() for name in columns), strict=True):
            for name in {path, readable.encode()}:
                held = bodies.setdefault((tap, name), [])
                if body not in held:
                    held.append(body)
    return bodies


def score_keys(workspace: Workspace, corpus: Corpus, grouped: Artifact, sets: Sequence[GoldenSet]) -> list[JsonValue]:
    """Return the keys of the scores of every set under every engine that runs."""
    return [
        Store.key(SCORE, score_inputs(workspace, corpus, grouped, engine, golden))
        for engine in workspace.settings.running
        for golden in sets
    ]


def find_scores(workspace: Workspace, corpus: Corpus, grouped: Artifact, sets: Sequence[GoldenSet]) -> list[Artifact]:
    """Return the stored scores of every set under every engine that runs; MissingArtifact where one is missing."""
    return [
        workspace.store.get(
            SCORE, score_inputs(workspace, corpus, grouped, engine, golden), f"assay score --engine {engine}"
        )
        for engine in workspace.settings.running
        for golden in sets
    ]


def find_checks(workspace: Workspace, corpus: Corpus, sets: Sequence[GoldenSet]) -> Artifact:
    """Return the stored checks of a night; MissingArtifact where they were not made yet."""
    return workspace.store.get(CHECKS, checks_inputs(workspace, corpus, sets), "assay checks")


def find_known_items(workspace: Workspace, corpus: Corpus, grouped: Artifact) -> list[Artifact]:
    """Return the stored known items of every engine that runs; MissingArtifact where they were not asked for yet."""
    return [
        workspace.store.get(KNOWN_ITEMS, known_items_inputs(workspace, corpus, grouped, engine), "assay checks")
        for engine in workspace.settings.running
    ]


def find_falloff(workspace: Workspace, corpus: Corpus, grouped: Artifact, sets: Sequence[GoldenSet]) -> list[Artifact]:
    """Return the stored curves of every set, none where they are switched off; MissingArtifact where one is missing."""
    plan = nightly_plan(workspace)
    return [
        workspace.store.get(CURVES, falloff_inputs(workspace, corpus, grouped, sets, golden, plan), "assay run")
        for golden in (sets if plan.orders else ())
    ]
