"""The files of a published run: its tables, put together from what the stages left, and the page drawn from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pipeline.classes.clusters import MEMBERS
from pipeline.failing import feedback_of
from pipeline.golden.items import GoldenSet
from pipeline.records import Table, parquet_bytes
from pipeline.reports.feed import (
    LINEAGE,
    EngineRow,
    GoldenSetRow,
    NearDuplicateFacts,
    PassedOver,
    RunRow,
    StageRow,
    TapRow,
    carried_ids,
    is_whole,
    lineage_file,
    lineage_files,
    read_run,
    with_clusters,
    with_run_id,
)
from pipeline.store import Artifact, canonical_json
from pipeline.tables import FALLOFF_TABLES, NEAR_TABLES, RUN_TABLES, SCORE_TABLES
from pipeline.taps.snapshot import TapManifest
from pipeline.workspace import (
    STAGES,
    Corpus,
    Files,
    Workspace,
    conflicts_of,
    engine_fingerprint,
    engine_made_of,
    find_checks,
    find_falloff,
    find_known_items,
    find_scores,
    find_snapshot,
    identity_of,
    options_of,
    read,
    readiness_of,
)

if TYPE_CHECKING:
    import pyarrow as pa


def run_files(
    workspace: Workspace,
    run_id: str,
    corpus: Corpus,
    grouped: Artifact,
    clustered: Artifact,
    sets: Sequence[GoldenSet],
) -> Files:
    """Return every file of the run's folder, by name. They follow from the store alone: same run, same bytes."""
    from pipeline.reports.page import render

    tables = {
        "runs": RUN_TABLES["runs"].from_rows([_run_row(workspace, run_id, corpus, grouped, clustered, sets)]),
        "taps": RUN_TABLES["taps"].from_rows(_tap_rows(workspace, run_id, corpus, grouped)),
        "entries": with_run_id(_entries(workspace, grouped, clustered), run_id),
        "classes": with_run_id(read(workspace, grouped, "classes.parquet"), run_id),
        **{name: with_run_id(read(workspace, clustered, f"{name}.parquet"), run_id) for name in NEAR_TABLES},
    }
    scores = find_scores(workspace, corpus, grouped, sets)
    for name in SCORE_TABLES:
        tables[name] = with_run_id(_joined(workspace, scores, RUN_TABLES[name]), run_id)
    tables["checks"] = with_run_id(read(workspace, find_checks(workspace, corpus, sets), "checks.parquet"), run_id)
    known = find_known_items(workspace, corpus, grouped)
    tables["known_items"] = with_run_id(_joined(workspace, known, RUN_TABLES["known_items"]), run_id)
    drawn = find_falloff(workspace, corpus, grouped, sets)
    for name in FALLOFF_TABLES:
        tables[name] = with_run_id(_joined(workspace, drawn, RUN_TABLES[name]), run_id)
    tables["falloff"] = _nightly(tables["falloff"])
    ready = [row for golden in sets for row in readiness_of(workspace, corpus, grouped, golden)]
    failed = feedback_of(workspace, corpus, grouped, sets, run_id)
    tables["feedback"] = with_run_id(RUN_TABLES["feedback"].from_rows(failed), run_id)
    tables["readiness"] = with_run_id(RUN_TABLES["readiness"].from_rows(ready), run_id)
    differ = [row for golden in sets for row in conflicts_of(workspace, corpus, grouped, golden)]
    tables["conflicts"] = with_run_id(RUN_TABLES["conflicts"].from_rows(differ), run_id)
    page = render(tables)
    files = {f"{name}.parquet": parquet_bytes(table) for name, table in tables.items()}
    return {**files, "report.html": page.html, **page.images}


def _nightly(falloff: pa.Table) -> pa.Table:
    """Keep the points over all orders, and of single orders those of the headline measures as pinned.

    A study publishes all of them, twenty times as many, which nobody reads every morning.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    from pipeline.reports.reading import HEADLINE

    wanted = {"metric": [*HEADLINE], "grading": ["row"], "treatment": ["removed"]}
    kept = pc.is_null(falloff["seed"])
    headline = [pc.is_in(falloff[name], value_set=pa.array(values)) for name, values in wanted.items()]
    for each in headline[1:]:
        headline[0] = pc.and_(headline[0], each)
    return falloff.filter(pc.or_(kept, headline[0]))


def publish_lineage(workspace: Workspace, before: str, after: str) -> str | None:
    """Publish what became of entries and clusters between the run that was the latest and the one that will be.

    Returns:
        Why there is no lineage: the earlier run is not whole any more, or of a release whose entries name no cluster.
    """
    import pyarrow as pa

    from pipeline.classes.lineage import COLUMNS, lineage

    store = workspace.store
    written = lineage_files(store)
    if written and written[-1].name.endswith(f".{before}.{after}.parquet"):
        return None  # a night that was killed got this far already
    if not is_whole(store, before):
        return f"no lineage: the run {before[:12]} that came before is damaged"
    old, new = (read_run(store, run_id, ["entries"])["entries"] for run_id in (before, after))
    if not set(COLUMNS) <= set(old.column_names):
        return f"no lineage: the run {before[:12]} that came before names no clusters"
    found = lineage(old, new, carried_ids(store, before))
    runs = {"run_before": before, "run_after": after}
    columns = {name: pa.array([run] * found.rows.num_rows, pa.string()) for name, run in runs.items()}
    table = LINEAGE.from_columns({**{name: found.rows[name] for name in found.rows.column_names}, **columns})
    store.replace(lineage_file(store, workspace.night.id, before, after), LINEAGE.to_bytes(table))
    return None


def _entries(workspace: Workspace, grouped: Artifact, clustered: Artifact) -> pa.Table:
    """Return the entries of the corpus, each with its near-duplicate cluster."""
    members = read(workspace, clustered, f"{MEMBERS.name}.parquet", ["body_sha256", "cluster_id"])
    return with_clusters(read(workspace, grouped, "entries.parquet"), members)


def _joined(workspace: Workspace, scores: Sequence[Artifact], table: Table) -> pa.Table:
    import pyarrow as pa

    parts = [read(workspace, made, f"{table.name}.parquet") for made in scores] or [table.schema.empty_table()]
    return table.sort(pa.concat_tables(parts))


def _run_row(
    workspace: Workspace,
    run_id: str,
    corpus: Corpus,
    grouped: Artifact,
    clustered: Artifact,
    sets: Sequence[GoldenSet],
) -> RunRow:
    settings = workspace.settings
    return RunRow(
        run_id=run_id,
        corpus=corpus.digest,
        taps=len(corpus.taps),
        entries=int(str(grouped.facts["entries"])),
        classes=int(str(grouped.facts["classes"])),
        class_rule=settings.config.class_rule,
        near_duplicates=NearDuplicateFacts.model_validate(clustered.facts),
        engines=[
            EngineRow(
                engine=name,
                kind=engine.name,
                status="not run" if name in settings.not_run else "ok",
                reason=settings.not_run.get(name),
                fingerprint=None if name in settings.not_run else engine_fingerprint(workspace, corpus, name),
                options=canonical_json(options_of(workspace, name)),
                made_of=None if name in settings.not_run else canonical_json(engine_made_of(workspace, corpus, name)),
            )
            for name, engine in sorted(settings.engines.items())
        ],
        golden_sets=[GoldenSetRow(name=golden.name, digest=golden.digest, items=len(golden.items)) for golden in sets],
        stages=[StageRow(stage=stage.name, version=stage.version) for stage in STAGES],
        configuration=canonical_json(identity_of(workspace, corpus, sets)),
        status="ok",
    )


def _tap_rows(workspace: Workspace, run_id: str, corpus: Corpus, grouped: Artifact) -> list[TapRow]:
    from pipeline.classes.group import NO_MIRRORS, mirrors_by_tap

    mirrors = mirrors_by_tap(read(workspace, grouped, "entries.parquet"))
    rows = []
    for tap, made in zip(corpus.taps, corpus.catalogs, strict=True):
        manifest = TapManifest.model_validate(find_snapshot(workspace, tap).facts)
        facts = made.facts
        copies = mirrors.get(tap.name, NO_MIRRORS)
        entries = int(str(facts["entries"]))
        rows.append(
            TapRow(
                run_id=run_id,
                tap=tap.name,
                pin=str(tap.pin),
                tree=manifest.tree,
                committed=manifest.committed,
                licence=manifest.licence,
                role=tap.role,
                duplication=(copies.intra_tap + copies.cross_tap) / entries if entries else None,
                files=manifest.files,
                passed_over=[
                    PassedOver(reason=reason, files=files) for reason, files in sorted(manifest.passed_over.items())
                ],
                intra_tap_mirrors=copies.intra_tap,
                cross_tap_mirrors=copies.cross_tap,
                renamed_mirrors=copies.renamed,
                **{name: int(str(facts[name])) for name in _CATALOG_COUNTS},
            )
        )
    return rows


_CATALOG_COUNTS = (
    "entries",
    "skills",
    "rules",
    "workflows",
    "classes",
    "empty_bodies",
    "links",
    "parse_ok",
    "parse_recovered",
    "parse_lenient",
    "parse_none",
)
