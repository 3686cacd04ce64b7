"""The feed: published runs as Parquet for dashboards, and the nights that made them.

A run is content-addressed: its id follows from what was measured and how, never from when or where. A night is a
circumstance: when it ran, how long, what was fetched. Readers glob ``run=*/`` and never see part of a run.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from pydantic import Field, JsonValue

from pipeline.classes.group import CorpusEntry
from pipeline.classes.lineage import ROWS, LineageRow
from pipeline.errors import BadInput, Fault, MissingArtifact
from pipeline.records import Record, Table, parquet_bytes
from pipeline.store import Stage, Store, canonical_json, digest
from pipeline.taps.snapshot import TapState

if TYPE_CHECKING:
    import pyarrow as pa

FEED = Stage("feed", 16)
"""Version of the published form: tables, page and charts."""

StepSource = Literal["computed", "fetched", "store"]


class EngineRow(Record):
    """An engine of a run."""

    engine: str = Field(description="Name of the engine.")
    kind: str = Field(description="Which engine it is; several may be of one kind.")
    status: Literal["ok", "not run"] = Field(description="`ok`, or `not run`: then it has no rows in other tables.")
    reason: str | None = Field(description="Why it did not run; null where it did.")
    fingerprint: str | None = Field(
        description="Digest of engine, version, parameters, class rule and corpus; null where it did not run."
    )
    options: str = Field(description="Options of the engine, as canonical JSON.")
    made_of: str | None = Field(
        default=None,
        description="What the fingerprint is made from beside class rule and corpus, as canonical JSON: version, "
        "options, digests of models and run files, packages, fingerprints of sources; null where it did not run.",
    )


class GoldenSetRow(Record):
    """A golden set of a run."""

    name: str = Field(description="Name of the set: the stem of its file.")
    digest: str = Field(description="Digest of the frozen set.")
    items: int = Field(description="Items in the set.")


class StageRow(Record):
    """The version of a stage."""

    stage: str = Field(description="Name of the stage.")
    version: int = Field(description="Version of the stage.")


class NearDuplicateFacts(Record):
    """The near-duplicates of a run in numbers, and how good the candidates were that they were found by."""

    clusters: int = Field(description="Near-duplicate clusters, joined by verified similarity.")
    clusters_copies: int = Field(description="Those read as copies of one skill.")
    clusters_family: int = Field(description="Those read as template families.")
    clusters_vetoed: int = Field(
        description="Those with confusable names, or with a pair that a person refused: only a person may join them."
    )
    clusters_chained: int = Field(description="Those of which two bodies are below the threshold.")
    bodies: int = Field(description="Distinct bodies in clusters.")
    entries: int = Field(description="Entries that have one of them.")
    eligible: int = Field(description="Distinct bodies that were compared: not empty, and no alias stubs.")
    unverified_clusters: int = Field(description="Clusters that candidates alone would make, unverified.")
    unverified_bodies: int = Field(description="Bodies in those.")
    exact_pairs: int = Field(description="Pairs at the threshold or above it, by the exact join over all pairs.")
    exact_bodies: int = Field(description="Bodies in the clusters of the exact join.")
    astray: int = Field(description="Bodies whose cluster is not that of the exact join.")
    lsh_candidates: int = Field(description="Pairs that locality-sensitive hashing proposes.")
    lsh_recall: float | None = Field(description="Share of the pairs of the exact join among them; null without any.")
    lsh_precision: float | None = Field(description="Share of them that the exact join has; null without any.")
    families: int = Field(description="Template families, sought at a lower similarity.")
    families_bodies: int = Field(description="Distinct bodies in families.")
    families_entries: int = Field(description="Entries that have one of them.")
    families_largest: int = Field(description="Bodies of the largest family.")


class RunRow(Record):
    """An evaluation: everything that identifies it, and its counts."""

    run_id: str = Field(description="Digest of everything that can change a result.")
    corpus: str = Field(description="Corpus digest: sha256 of the sorted lines `name pin`.")
    taps: int = Field(description="Taps in the corpus.")
    entries: int = Field(description="Entries in the corpus.")
    classes: int = Field(description="Content classes; each empty body is one.")
    class_rule: str = Field(description="The class rule in force.")
    near_duplicates: NearDuplicateFacts = Field(description="Near-duplicate clusters in numbers.")
    engines: list[EngineRow] = Field(description="Engines that are configured, and whether they ran.")
    golden_sets: list[GoldenSetRow] = Field(description="Golden sets that were scored.")
    stages: list[StageRow] = Field(description="Version of each stage.")
    configuration: str = Field(description="Options that can change a result, as canonical JSON.")
    status: str = Field(description="`ok`: published runs are whole.")


class StudyRow(Record):
    """A corpus-growth study: what was measured, and how."""

    study_id: str = Field(description="Digest of everything that can change a result.")
    corpus: str = Field(description="Corpus digest of the taps that take part.")
    taps: int = Field(description="Taps that take part.")
    entries: int = Field(description="Their entries.")
    classes: int = Field(description="Their content classes.")
    left_out: list[str] = Field(description="Taps of the list that take no part.")
    by: list[str] = Field(description="In what orders taps or entries join.")
    orders: int = Field(description="Orders that are drawn of each drawn kind.")
    sizes: int = Field(description="Sizes that are asked for.")
    seed: int = Field(description="The first seed of drawn orders, and the seed of the draws of clusters.")
    step: int = Field(description="Entries between two sizes; 0: as many sizes as asked for, or those listed.")
    at: list[int] = Field(description="The sizes that were listed; empty: by number or by step.")
    statistics: str = Field(
        description="What the weights of words are taken from: each `subset`, or the whole corpus, `global`."
    )
    engines: list[str] = Field(description="Engines that are measured.")
    golden_sets: list[GoldenSetRow] = Field(description="Golden sets that are measured.")
    configuration: str = Field(description="Options that can change a result, as canonical JSON.")


class EntryRow(CorpusEntry):
    """An entry in a run."""

    cluster_id: str | None = Field(description="The near-duplicate cluster of its body; null where it is in none.")


class TransitionRow(LineageRow):
    """What became of an entry or a cluster between two runs that were the latest one after the other."""

    run_before: str = Field(description="The earlier run.")
    run_after: str = Field(description="The later run.")


class PassedOver(Record):
    """Files of a tap that were not read, by reason."""

    reason: str = Field(description="Why they were passed over.")
    files: int = Field(description="How many.")


class TapRow(Record):
    """A tap in a run."""

    run_id: str = Field(description="The run.")
    tap: str = Field(description="owner/repo.")
    pin: str = Field(description="Full commit id.")
    tree: str = Field(description="Tree id of the commit.")
    committed: str | None = Field(description="Date of the commit, UTC; null where it has none that can be read.")
    licence: str | None = Field(description="SPDX guess from the licence file; null where none was recognised.")
    role: str = Field(description="`target` or `scale`.")
    entries: int = Field(description="Entries.")
    skills: int = Field(description="Entries that are skills.")
    rules: int = Field(description="Entries that are rules.")
    workflows: int = Field(description="Entries that are workflows.")
    classes: int = Field(description="Content classes within the tap, rule `body`; each empty body is one.")
    intra_tap_mirrors: int = Field(description="Entries that repeat an earlier entry of the same tap.")
    cross_tap_mirrors: int = Field(description="Entries that repeat an entry of an earlier tap.")
    renamed_mirrors: int = Field(description="Mirrors under another name.")
    duplication: float | None = Field(description="Share of its entries that are mirrors; null without entries.")
    empty_bodies: int = Field(description="Entries without a word in the body.")
    links: int = Field(description="Entries read through a symbolic link.")
    parse_ok: int = Field(description="Entries whose front matter is valid YAML.")
    parse_recovered: int = Field(description="Entries whose front matter was valid after quoting.")
    parse_lenient: int = Field(description="Entries whose front matter was read line by line.")
    parse_none: int = Field(description="Entries without front matter.")
    files: int = Field(description="Files in the tree.")
    passed_over: list[PassedOver] = Field(description="Files that were not read, by reason.")


class NightStep(Record):
    """What a stage did in a night."""

    stage: str = Field(description="Name of the stage.")
    computed: int = Field(description="Outputs that were made.")
    served: int = Field(description="Outputs that the store already had.")
    seconds: float = Field(description="Time it took, summed over its outputs.")


class StepDetail(Record):
    """How an output was made, where a part of it was taken from an earlier one."""

    stage: str = Field(description="Name of the stage.")
    subject: str = Field(description="What the output is of: a tap, an engine, a golden set.")
    detail: str = Field(description="What was done for it.")


class NightRow(Record):
    """A night: a circumstance, exempt from byte equality."""

    night: str = Field(description="Id of the night: its start and a random tail.")
    run_id: str | None = Field(description="The run that came out; null where none did.")
    logical_date: str | None = Field(description="The scheduler's date, UTC; null for runs without one.")
    trigger: str = Field(description="`command`, or the scheduler's kind of run, such as `scheduled` or `manual`.")
    started: str = Field(description="Start, UTC.")
    seconds: float = Field(description="Duration.")
    status: str = Field(description="`ok`, or the kind of failure.")
    exit_code: int = Field(description="0, 1, 2 or 75.")
    error: str | None = Field(description="Why it failed; null where it did not.")
    taps: list[TapState] = Field(description="State and source of each tap.")
    steps: list[NightStep] = Field(description="What each stage made and what the store served.")
    details: list[StepDetail] = Field(
        default=[], description="How outputs were made of which a part was taken from an earlier one."
    )


STUDIES = Table("studies", StudyRow, ("study_id",))
RUNS = Table("runs", RunRow, ("run_id",))
ENTRIES = Table("entries", EntryRow, ("tap", "path"))
LINEAGE = Table("lineage", TransitionRow, ROWS.key)
TAPS = Table("taps", TapRow, ("run_id", "tap"))
NIGHTS = Table("nights", NightRow, ("night",))


class Step(Record):
    """One output of one stage in one night. ``detail`` says how it was made, where there is more to say than that."""

    stage: str
    subject: str
    source: StepSource
    seconds: float
    detail: str | None = None


def _as_table(row: NightRow) -> pa.Table:
    """Build the table of one night from JSON: built from Python values, Arrow would load pandas, and take a second."""
    import io

    import pyarrow.json as pj

    options = pj.ParseOptions(explicit_schema=NIGHTS.schema, unexpected_field_behavior="error")
    return pj.read_json(io.BytesIO(row.model_dump_json().encode("utf-8")), parse_options=options).cast(NIGHTS.schema)


class Failure(Record):
    """What stopped a step."""

    status: str
    exit_code: int
    error: str


class Outcome(Record):
    """The run that came out of a night."""

    run_id: str


class LedgerRead(Record):
    """The position of the ledger as of which a night reads it."""

    position: int


_UNFINISHED = Failure(status="Unfinished", exit_code=1, error="the night ended before a run was published")


class Latest(Record):
    """`feed/latest.json`: which run was published last."""

    run_id: str = Field(description="The run.")
    folder: str = Field(description="Its folder, relative to the feed.")


R = TypeVar("R", bound=Record)


class Night:
    """The notes of a night that is running: one line a step, appended from any process."""

    def __init__(self, store: Store, night: str) -> None:
        self.store = store
        self.id = night

    @staticmethod
    def new_id(started: datetime) -> str:
        """Return an id that sorts by start and that no other night has."""
        return f"{started:%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}"

    @property
    def _notes(self) -> Path:
        return self.store.nights / f"{self.id}.jsonl"

    def note(self, record: Step | TapState | Failure | Outcome | LedgerRead) -> None:
        """Append a step, or the state of a tap. One short write, so that processes do not mix their lines."""
        line = canonical_json({type(record).__name__: record.model_dump()}) + "\n"
        self._notes.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._notes, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(descriptor, line.encode("utf-8"))
        finally:
            os.close(descriptor)

    def failed(self, error: BaseException) -> None:
        """Note what stopped a step. It tells only where no run comes out: a step that is tried again may succeed."""
        exit_code = int(getattr(error, "exit_code", 1))
        self.note(Failure(status=type(error).__name__, exit_code=exit_code, error=str(error) or type(error).__name__))

    def came_out(self, run_id: str) -> None:
        """Note the run that came out."""
        self.note(Outcome(run_id=run_id))

    @property
    def is_running(self) -> bool:
        """Whether it has notes: it has begun, and is not closed yet."""
        return self._notes.exists()

    def position(self) -> int | None:
        """Return the position of the ledger that was noted; None where none was yet."""
        noted = self._noted(LedgerRead)
        return noted[0].position if noted else None

    def steps(self) -> list[Step]:
        """Return the steps noted so far, in order."""
        return self._noted(Step)

    def tap_states(self) -> list[TapState]:
        """Return the last state noted of each tap, by name."""
        return [state for _, state in sorted({state.name: state for state in self._noted(TapState)}.items())]

    def row(self, started: datetime, ended: datetime, logical_date: str | None, trigger: str) -> NightRow:
        """Sum the notes up: the run that came out, or the failure that weighs most (2 before 1 before 75)."""
        outcomes = self._noted(Outcome)
        weight = {2: 0, 1: 1, 75: 2}
        failures = sorted(self._noted(Failure), key=lambda failure: weight.get(failure.exit_code, 3))
        failure = None if outcomes else next(iter(failures), _UNFINISHED)
        return NightRow(
            night=self.id,
            run_id=outcomes[-1].run_id if outcomes else None,
            logical_date=logical_date,
            trigger=trigger,
            started=f"{started:%Y-%m-%dT%H:%M:%SZ}",
            seconds=round((ended - started).total_seconds(), 3),
            status="ok" if failure is None else failure.status,
            exit_code=0 if failure is None else failure.exit_code,
            error=None if failure is None else failure.error,
            taps=self.tap_states(),
            steps=summary(self.steps()),
            details=[
                StepDetail(stage=step.stage, subject=step.subject, detail=step.detail)
                for step in self.steps()
                if step.detail is not None
            ],
        )

    def close(
        self, started: datetime, ended: datetime, logical_date: str | None = None, trigger: str = "command"
    ) -> NightRow:
        """Write the night into the feed and drop its notes; return its row."""
        row = self.row(started, ended, logical_date, trigger)
        self.store.replace(night_file(self.store, self.id), parquet_bytes(_as_table(row)))
        self.drop()
        return row

    def drop(self) -> None:
        """Drop the notes of what was no night."""
        self._notes.unlink(missing_ok=True)

    def _noted(self, record: type[R]) -> list[R]:
        return [record.model_validate(note[record.__name__]) for note in self._read() if record.__name__ in note]

    def _read(self) -> list[dict[str, object]]:
        try:
            lines = self._notes.read_text(encoding="utf-8").split("\n")
        except FileNotFoundError:
            return []
        return [json.loads(line) for line in lines if line]


def summary(steps: Sequence[Step]) -> list[NightStep]:
    """Count, for each stage in the order it first ran, what was made and what the store served."""
    by_stage: dict[str, list[Step]] = {}
    for step in steps:
        by_stage.setdefault(step.stage, []).append(step)
    return [
        NightStep(
            stage=stage,
            computed=sum(step.source != "store" for step in done),
            served=sum(step.source == "store" for step in done),
            seconds=round(sum(step.seconds for step in done), 3),
        )
        for stage, done in by_stage.items()
    ]


def with_clusters(entries: pa.Table, members: pa.Table) -> pa.Table:
    """Put the near-duplicate cluster of each entry beside it.

    Args:
        entries: rows of ``CorpusEntry``.
        members: columns body_sha256, each once, and cluster_id.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    places = pc.index_in(entries["body_sha256"], value_set=members["body_sha256"].combine_chunks())
    clusters = members["cluster_id"].combine_chunks().take(places.combine_chunks())
    columns = {name: entries[name] for name in entries.column_names}
    return pa.Table.from_pydict({**columns, "cluster_id": clusters}, schema=ENTRIES.schema)


def night_file(store: Store, night: str) -> Path:
    """Return where the night is published."""
    return store.feed / "nights" / f"{night}.parquet"


def read_night(store: Store, night: str) -> NightRow:
    """Read a night that was closed."""
    import pyarrow.parquet as pq

    (row,) = pq.read_table(night_file(store, night)).to_pylist()
    return NightRow.model_validate(row)


def run_folder(store: Store, run_id: str) -> Path:
    """Return where the run is published."""
    return store.feed / f"run={run_id}"


def study_folder(store: Store, study_id: str) -> Path:
    """Return where the study is published."""
    return store.feed / f"study={study_id}"


def forecast_files(store: Store, corpus: str, *, without: bool = False) -> list[Path]:
    """Return the forecasts that a run over ``corpus`` tells the outcome of.

    Args:
        store: where the feed lies.
        corpus: digest of the corpus.
        without: return those too of which it is the corpus without the tap.
    """
    folder = store.feed / "forecasts"
    found = {*folder.glob(f"{corpus[:16]}.*.parquet"), *(folder.glob(f"*.{corpus[:16]}.*.parquet") if without else ())}
    return sorted(found)


def run_id_of(identity: Mapping[str, JsonValue]) -> str:
    """Return the id of the evaluation that ``identity`` describes: a digest, so the same inputs give the same id."""
    return digest(dict(identity))


LISTED = "sha256.json"
"""The file of a published run that names its other files, with the SHA-256 of each."""


def publish(store: Store, run_id: str, files: Mapping[str, bytes]) -> Path:
    """Publish a run by one rename of its folder; return the folder. ``latest.json`` does not name it yet.

    A folder of this run that is not whole, say after a power cut, is replaced.
    """
    return publish_folder(store, run_folder(store, run_id), files)


def publish_folder(store: Store, folder: Path, files: Mapping[str, bytes]) -> Path:
    """Publish a folder of the feed by one rename; one that is there and not whole is replaced."""
    if folder.exists() and not is_whole_folder(folder):
        store.discard(folder)
    store.publish({**files, LISTED: _listed(files)}, folder)
    return folder


def _listed(files: Mapping[str, bytes]) -> bytes:
    digests = {name: hashlib.sha256(data).hexdigest() for name, data in sorted(files.items())}
    return canonical_json(digests).encode("utf-8")


def is_whole(store: Store, run_id: str) -> bool:
    """Say whether the run is published with every file that it had, each with the bytes that it had."""
    return is_whole_folder(run_folder(store, run_id))


def is_whole_folder(folder: Path) -> bool:
    """Say whether a folder of the feed holds every file that it was published with, byte for byte."""
    try:
        listed = (folder / LISTED).read_bytes()
        return _listed({name: (folder / name).read_bytes() for name in json.loads(listed)}) == listed
    except (FileNotFoundError, ValueError):
        return False


def point_to(store: Store, run_id: str) -> Path:
    """Make ``latest.json`` name the published run, leaving the file alone where it does so already."""
    latest = store.feed / "latest.json"
    pointer = Latest(run_id=run_id, folder=f"run={run_id}")
    text = canonical_json(pointer.model_dump()).encode("utf-8") + b"\n"
    if not latest.exists() or latest.read_bytes() != text:
        store.replace(latest, text)
    return run_folder(store, run_id)


def follows(store: Store, run_id: str) -> str | None:
    """Return the run that ``latest.json`` names while ``run_id`` is about to take its place; None where none is."""
    try:
        latest = Latest.model_validate_json((store.feed / "latest.json").read_bytes()).run_id
    except (FileNotFoundError, ValueError):
        return None
    return latest if latest != run_id else None


def lineage_files(store: Store, run_id: str = "*") -> list[Path]:
    """Return the published lineages that led to a run, or all, in the order of their nights."""
    return sorted((store.feed / "lineage").glob(f"*.*.{run_id}.parquet"))


def lineage_file(store: Store, night: str, before: str, after: str) -> Path:
    """Return where the lineage from one run to the next is published."""
    return store.feed / "lineage" / f"{night}.{before}.{after}.parquet"


def carried_ids(store: Store, run_id: str) -> dict[str, str]:
    """Return the lineage id of each cluster of a published run, by its own id, as the last night left them.

    Empty for a run that followed none: its clusters go by their own ids.
    """
    import pyarrow.parquet as pq

    files = lineage_files(store, run_id)
    if not files:
        return {}
    rows = pq.ParquetFile(files[-1]).read(["subject", "event", "cluster_after", "lineage_id"]).to_pylist()
    named = (row for row in rows if row["subject"] == "cluster" and row["event"] in _NAMING)
    return {row["cluster_after"]: row["lineage_id"] for row in named}


_NAMING = ("kept", "born", "split")
"""Events of a cluster whose lineage id is the one that it goes by from then on; each cluster has one of them."""


def find_run(store: Store, wanted: str | None) -> str:
    """Return the id of a published run: the one that was published last, or the one whose id begins with ``wanted``.

    Raises:
        MissingArtifact: nothing was published yet, or ``latest.json`` is missing or names no run that there is.
        BadInput: no published run, or more than one, has an id that begins so.
    """
    runs = published_runs(store)
    if not runs:
        raise MissingArtifact(f"{store.feed}: no run is published; run `assay run` first")
    if wanted is None:
        return _latest(store, runs)
    found = [run_id for run_id in runs if run_id.startswith(wanted)]
    if len(found) == 1:
        return found[0]
    listed = ", ".join(run_id[:12] for run_id in (found or runs)[:_MOST_LISTED])
    what = f"{len(found)} runs have ids that begin so" if found else "no published run has an id that begins so"
    raise BadInput([Fault(f"run {wanted!r}", what, f"name one of: {listed}")])


_MOST_LISTED = 10


def _latest(store: Store, runs: Sequence[str]) -> str:
    """Return the run that ``latest.json`` names; MissingArtifact where it names none of ``runs``."""
    place = store.feed / "latest.json"
    try:
        run_id = Latest.model_validate_json(place.read_bytes()).run_id
    except OSError as error:
        what = "is not there" if isinstance(error, FileNotFoundError) else f"cannot be read ({error.strerror})"
    except ValueError:
        what = "names no run: it is damaged"
    else:
        if run_id in runs:
            return run_id
        what = f"names the run {run_id[:12]}, which is not there"
    raise MissingArtifact(f"{place}: {what}; run `assay run` again, or name a run with --run")


def published_runs(store: Store) -> list[str]:
    """Return the ids of all published runs, sorted."""
    return sorted(folder.name.removeprefix("run=") for folder in store.feed.glob("run=*"))


def read_run(store: Store, run_id: str, names: Iterable[str]) -> dict[str, pa.Table]:
    """Read tables of a published run, by name."""
    import pyarrow.parquet as pq

    # Read as a file: as a data set, Arrow would take the folder's name for one more column.
    return {name: pq.ParquetFile(run_folder(store, run_id) / f"{name}.parquet").read() for name in names}


def read_known(folder: Path, names: Iterable[str]) -> dict[str, pa.Table]:
    """Read those tables of a folder of the feed that it holds; a run of an earlier release lacks some."""
    import pyarrow.parquet as pq

    paths = {name: folder / f"{name}.parquet" for name in names}
    return {name: pq.ParquetFile(path).read() for name, path in paths.items() if path.is_file()}


def published_studies(store: Store) -> list[str]:
    """Return the ids of all published studies, sorted."""
    return sorted(folder.name.removeprefix("study=") for folder in store.feed.glob("study=*"))


def with_run_id(table: pa.Table, run_id: str) -> pa.Table:
    """Put the run's id before the columns of ``table``."""
    import pyarrow as pa

    schema = published_schema(table.schema)
    return table.add_column(0, schema.field(0), pa.array([run_id] * table.num_rows, type=pa.string()))


def published_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema of a table in the feed: the run's id is its first column."""
    import pyarrow as pa

    if schema.names[0] == "run_id":
        return schema
    return schema.insert(0, pa.field("run_id", pa.string(), nullable=False, metadata={"description": "The run."}))
