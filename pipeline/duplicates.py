"""What of a published run is a copy of what, to be read and decided by a person. Nothing is written."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar

from pydantic import Field, JsonValue

from pipeline.catalog.entries import CATALOG
from pipeline.errors import BadInput, Fault, MissingArtifact, one_line
from pipeline.records import Record
from pipeline.reports.duplication import TABLES, Duplicates, Duplication, PairView, ReadPair, WordRun, became
from pipeline.reports.duplication import drawn as drawn_pairs
from pipeline.reports.duplication import first_of_each_side as first_of_each
from pipeline.reports.feed import NearDuplicateFacts, find_run, lineage_files, read_run, run_folder
from pipeline.reports.reading import rows_of
from pipeline.workspace import Workspace, read

if TYPE_CHECKING:
    import pyarrow as pa

    from pipeline.classes.clusters import CandidateCheck

Section = Literal["tap", "name", "family", "cluster", "pairs", "golden", "lineage"]
"""A section that can be shown alone."""

MOST_ASTRAY = 0.002
"""Share of the compared bodies that may stand in another cluster than by the exact join."""

R = TypeVar("R")


class ExactCheck(Record):
    """The clusters of a run held against the exact join over all pairs."""

    run_id: str = Field(description="The run.")
    near_threshold: float = Field(description="Similarity from which bodies are joined.")
    compared: int = Field(description="Distinct bodies that were compared.")
    exact_pairs: int = Field(description="Pairs at the threshold or above it, by the exact join.")
    exact_bodies: int = Field(description="Bodies in the clusters of the exact join.")
    clustered_bodies: int = Field(description="Bodies in the clusters of the run.")
    astray: int = Field(description="Bodies whose cluster in the run is not that of the exact join.")
    astray_share: float = Field(description="Share of the compared bodies that are.")
    candidates: int = Field(description="Pairs that locality-sensitive hashing proposes.")
    recall: float | None = Field(description="Share of the pairs of the exact join among them; null without any.")
    precision: float | None = Field(description="Share of them that the exact join has; null without any.")
    unverified_bodies: int = Field(description="Bodies that candidates alone would join, from the run.")

    @property
    def sound(self) -> bool:
        """Whether no more bodies are astray than may be."""
        return self.astray_share <= MOST_ASTRAY


class Choice(NamedTuple):
    """The lines of which a person pastes one into the decisions file."""

    same: dict[str, JsonValue]
    """The bodies of the cluster are one skill."""
    different: dict[str, JsonValue]
    """They are different ones."""

    def lines(self) -> tuple[str, str]:
        """Return both as JSON in plain ASCII, so that nothing in a name steers a terminal or an editor."""
        same, different = (json.dumps(choice) for choice in self)
        return same, different


def duplicates(
    workspace: Workspace,
    run: str | None = None,
    only: Section | None = None,
    most: int | None = None,
    draw: int | None = None,
) -> Duplicates:
    """Return the duplicates of a run.

    Args:
        workspace: where the feed lies, and the bodies of pairs.
        run: the run, by the first digits of its id; the one published last unless given.
        only: the one section that is wanted.
        most: rows of each section that are returned, of pairs on each side; all unless given.
        draw: a seed, by which pairs are drawn in place of those nearest to the threshold.

    Raises:
        BadInput: there is no such run.
        MissingArtifact: nothing was published yet, or the run is of a release that knew no near-duplicates.
    """
    run_id, tables = _tables(workspace, run)
    views = Duplication(tables)
    left_out: dict[str, int] = {}

    def cut(name: str, rows: Sequence[R]) -> list[R]:
        if most is not None and len(rows) > most:
            left_out[name] = len(rows) - most
        return list(rows[:most])

    def wanted(section: Section) -> bool:
        return only in (None, section)

    (row,) = rows_of(tables["runs"])
    return Duplicates(
        run_id=run_id,
        near_duplicates=NearDuplicateFacts.model_validate(row["near_duplicates"]),
        near_threshold=_configured(tables).threshold,
        taps=cut("taps", views.taps()) if wanted("tap") else None,
        names=cut("names", views.names()) if wanted("name") else None,
        families=cut("families", views.families()) if wanted("family") else None,
        clusters=cut("clusters", views.across_names()) if wanted("cluster") else None,
        pairs=_pairs(workspace, views.pairs(), most, draw, left_out) if wanted("pairs") else None,
        golden=views.golden() if wanted("golden") else None,
        golden_names=cut("golden_names", views.golden_names()) if wanted("golden") else None,
        became=became(_lineage(workspace, run_id)) if wanted("lineage") else None,
        left_out=left_out,
    )


def check_exact(workspace: Workspace, run: str | None = None) -> ExactCheck:
    """Sign and join the bodies of a run anew, over all pairs, and hold its clusters against that.

    Raises:
        BadInput: there is no such run, or it was made with other decisions than those of the configuration.
        MissingArtifact: nothing was published yet, or the store no longer holds the bodies of the run.
    """
    from pipeline.classes.bodies import distinct_bodies
    from pipeline.classes.clusters import NearDuplicateOptions, NearDuplicates, check_candidates
    from pipeline.classes.signatures import sign

    run_id, tables = _tables(workspace, run)
    configured = _configured(tables)
    decisions = workspace.settings.cluster_decisions()
    if configured.refused != decisions.inputs()["refused"]:
        what = f"run {run_id[:12]} was made with other decisions about clusters"
        raise BadInput([Fault("--exact", what, "name its file with --cluster-decisions, or run `assay run` first")])
    bodies = distinct_bodies(_with_bodies(workspace, run_id, tables["entries"]))
    signed = sign(bodies["body"], threads=workspace.settings.config.threads)
    members = tables["near_duplicate_members"]
    found = NearDuplicates(tables["near_duplicate_clusters"], members, tables["near_pairs"], {})
    options = NearDuplicateOptions(configured.threshold, refused=decisions.refused)
    (row,) = rows_of(tables["runs"])
    facts = NearDuplicateFacts.model_validate(row["near_duplicates"])
    return _exact(run_id, options.threshold, members.num_rows, facts, check_candidates(bodies, signed, found, options))


def decide(workspace: Workspace, cluster: str, run: str | None = None) -> Choice:
    """Return the lines that decide about a cluster: its bodies are one skill, or they are not.

    Who decided is left blank, which no decisions file takes: a line that nobody signed is refused.

    Args:
        workspace: where the feed lies.
        cluster: the first digits of the cluster's id.
        run: the run that has it; the one published last unless given.

    Raises:
        BadInput: there is no such run, or not one cluster has an id that begins so.
        MissingArtifact: nothing was published yet.
    """
    _, tables = _tables(workspace, run)
    members = rows_of(tables["near_duplicate_members"])
    found = sorted({str(row["cluster_id"]) for row in members if str(row["cluster_id"]).startswith(cluster)})
    if len(found) != 1:
        what = f"{len(found)} clusters have ids that begin so" if found else "no cluster has an id that begins so"
        todo = "give more digits" if found else "take an id that `assay duplicates --by cluster` shows"
        raise BadInput([Fault(f"cluster {cluster!r}", what, todo)])
    mine = sorted((row for row in members if row["cluster_id"] == found[0]), key=lambda row: str(row["body_sha256"]))
    bodies: list[JsonValue] = [f"class:{row['body_sha256']}" for row in mine]
    note = one_line("; ".join(f"{row['tap']}::{row['path_text']}" for row in mine))
    decision: dict[str, JsonValue] = {"bodies": bodies, "by": "", "note": note}
    return Choice({"same": True, **decision}, {"same": False, **decision})


def _tables(workspace: Workspace, run: str | None) -> tuple[str, dict[str, pa.Table]]:
    run_id = find_run(workspace.store, run)
    names = ("runs", *TABLES)
    missing = [name for name in names if not (run_folder(workspace.store, run_id) / f"{name}.parquet").is_file()]
    if missing:
        what = f"run {run_id[:12]} has no table {missing[0]}: an earlier release published it"
        raise MissingArtifact(f"{workspace.store.feed}: {what}; run `assay run`, then look at that run")
    return run_id, read_run(workspace.store, run_id, names)


class _Configured(NamedTuple):
    threshold: float
    refused: str
    """Digest of the refused pairs."""


def _configured(tables: Mapping[str, pa.Table]) -> _Configured:
    identity = json.loads(tables["runs"]["configuration"][0].as_py())
    return _Configured(float(identity["near_threshold"]), str(identity["cluster_decisions"]["refused"]))


def _lineage(workspace: Workspace, run_id: str) -> list[dict[str, JsonValue]]:
    import pyarrow.parquet as pq

    files = lineage_files(workspace.store, run_id)
    return rows_of(pq.ParquetFile(files[-1]).read()) if files else []


def _pairs(
    workspace: Workspace, pairs: Sequence[PairView], most: int | None, draw: int | None, left_out: dict[str, int]
) -> list[ReadPair]:
    from pipeline.classes.wordings import worded

    ordered = pairs if draw is None else drawn_pairs(pairs, draw)
    kept = list(ordered if most is None else first_of_each(ordered, most))
    if len(pairs) > len(kept):
        left_out["pairs"] = len(pairs) - len(kept)
    bodies = _bodies(workspace, {body for pair in kept for body in (pair.left_body, pair.right_body)})

    def words(pair: PairView) -> list[WordRun] | None:
        if pair.left_body not in bodies or pair.right_body not in bodies:
            return None
        runs = worded(bodies[pair.left_body], bodies[pair.right_body])
        return [WordRun(side=run.side, text=run.text) for run in runs]

    return [ReadPair(**pair.model_dump(), words=words(pair)) for pair in kept]


def _bodies(workspace: Workspace, wanted: Collection[str]) -> dict[str, str]:
    """Return the texts of bodies, by digest, from whatever catalogue of the store holds them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    found: dict[str, str] = {}
    for made in workspace.store.stored(CATALOG):
        lacking = pa.array(sorted(set(wanted) - found.keys()), pa.string())
        if not len(lacking):
            break
        held = read(workspace, made, "entries.parquet", ["body_sha256"])["body_sha256"]
        which = pc.is_in(held, lacking)
        if pc.any(which).as_py():
            texts = read(workspace, made, "entries.parquet", ["body"])["body"].filter(which)
            found |= dict(zip(held.filter(which).to_pylist(), texts.to_pylist(), strict=True))
    return found


def _with_bodies(workspace: Workspace, run_id: str, entries: pa.Table) -> pa.Table:
    """Return the entries of a run with their texts."""
    import pyarrow as pa

    digests: list[str] = entries["body_sha256"].to_pylist()
    bodies = _bodies(workspace, set(digests))
    lacking = sorted(set(digests) - bodies.keys())
    if lacking:
        what = f"{len(lacking)} bodies of run {run_id[:12]} are in no catalogue of the store any more"
        raise MissingArtifact(f"{workspace.store.root}: {what}; run `assay run` with its tap list first")
    return entries.append_column("body", pa.array([bodies[digest] for digest in digests], pa.string()))


def _exact(
    run_id: str, threshold: float, clustered: int, facts: NearDuplicateFacts, check: CandidateCheck
) -> ExactCheck:
    return ExactCheck(
        run_id=run_id,
        near_threshold=threshold,
        compared=check.eligible,
        exact_pairs=check.pairs,
        exact_bodies=check.bodies_joined,
        clustered_bodies=clustered,
        astray=check.bodies_astray,
        astray_share=check.bodies_astray / check.eligible if check.eligible else 0.0,
        candidates=check.candidates,
        recall=check.recall,
        precision=check.precision,
        unverified_bodies=facts.unverified_bodies,
    )
