"""From an id in the report to what stands behind it, and to the command that makes the same number again."""

from __future__ import annotations

import difflib
import json
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import JsonValue

from pipeline.config import Overrides, load
from pipeline.errors import AssayError, BadInput, Fault, MissingArtifact
from pipeline.ledger import shown
from pipeline.reports.explained import (
    FIGURE_TABLES,
    TABLES,
    Explained,
    ExplainedFigure,
    Figured,
    Published,
    Reproduction,
    without_lists,
)
from pipeline.reports.feed import (
    STUDIES,
    StudyRow,
    find_run,
    published_runs,
    published_studies,
    read_known,
    read_run,
    run_folder,
    study_folder,
)
from pipeline.reports.reading import Row, rows_of, text_of
from pipeline.store import canonical_json
from pipeline.study import StudyOptions, identity_of_study, narrow, options_of_study
from pipeline.taps.taplist import Tap, corpus_digest
from pipeline.workspace import Workspace, identity_of, in_order

SHORTEST = 6
"""Digits of an id that must be given."""
_MOST_LISTED = 10


class Found(NamedTuple):
    """Something that an id can mean."""

    kind: str
    id: str


def explain(workspace: Workspace, wanted: str, run: str | None = None, hits: int = 10) -> Explained:
    """Explain a number by its id, a run by its id, or a question by its query id.

    What the run does not have is looked for in the published studies, unless a run is named.

    Args:
        workspace: where the feed lies; its configuration is what the command for repeating is checked against.
        wanted: an id, of a number or a run at least its first six digits.
        run: the run that is looked into, by the first digits of its id; the one published last unless given.
        hits: how many hits of each ranking are shown.

    Raises:
        BadInput: nothing, or more than one thing, has this id.
        MissingArtifact: nothing was published yet.
    """
    store = workspace.store
    if run is None and not published_runs(store) and published_studies(store):
        figure = _in_studies(workspace, wanted)
        if figure is not None:
            return figure
    mine = _runs_like(workspace, wanted)
    run_id = mine[0] if run is None and len(mine) == 1 else find_run(store, run)
    published = Published(read_run(store, run_id, TABLES), hits)
    figured = Figured(read_known(run_folder(store, run_id), FIGURE_TABLES))
    figures = {digest: (table, row) for digest, table, row in figured.like(wanted) if len(wanted) >= SHORTEST}
    candidates = [
        *(Found("query", found) for found in published.queries_like(wanted)),
        *(Found("run", found) for found in mine),
        *(Found("metric", found) for found in _if_long(wanted, published.metrics_like)),
        *(Found("figure", found) for found in figures),
    ]
    if not candidates and run is None:
        figure = _in_studies(workspace, wanted)
        if figure is not None:
            return figure
    if not candidates:
        near = difflib.get_close_matches(wanted, sorted({str(item["query_id"]) for item in published.items}), n=3)
        raise BadInput([_unknown(wanted, run_id, str(store.feed), near)])
    found = _one_of(wanted, candidates)
    if found.kind == "query":
        return published.explain_query(found.id, reproduction(workspace, published, wanted))
    if found.kind == "metric":
        return published.explain_metric(found.id, reproduction(workspace, published, found.id[:8]))
    if found.kind == "figure":
        table, row = figures[found.id]
        names = {name: {text_of(row, name)} if name in row else None for name in ("golden_set", "engine")}
        return ExplainedFigure(
            id=found.id[:8],
            table=table,
            row=without_lists(row),
            behind=figured.behind(table, row),
            origin=published.origin(names["golden_set"], names["engine"]),
            reproduction=reproduction(workspace, published, found.id[:8]),
        )
    return published.explain_run(reproduction(workspace, published, found.id[:12]))


def _in_studies(workspace: Workspace, wanted: str) -> ExplainedFigure | None:
    """Explain a figure of a published study; None where no study has one of this id.

    Raises:
        BadInput: more than one figure has it.
    """
    if len(wanted) < SHORTEST:
        return None
    found: list[tuple[str, str, Row, Figured, StudyRow]] = []
    for study_id in published_studies(workspace.store):
        tables = read_known(study_folder(workspace.store, study_id), (*FIGURE_TABLES, STUDIES.name))
        if STUDIES.name not in tables:
            continue
        figured = Figured({name: table for name, table in tables.items() if name != STUDIES.name})
        (study,) = rows_of(tables[STUDIES.name])
        for digest, table, row in figured.like(wanted):
            found.append((digest, table, row, figured, StudyRow.model_validate(study)))
    if not found:
        return None
    _one_of(wanted, [Found("figure", digest) for digest, *_ in found])
    digest, table, row, figured, origin = found[0]
    return ExplainedFigure(
        id=digest[:8],
        table=table,
        row=without_lists(row),
        behind=figured.behind(table, row),
        origin=origin,
        reproduction=study_reproduction(workspace, origin, digest[:8]),
    )


def _runs_like(workspace: Workspace, wanted: str) -> list[str]:
    runs = published_runs(workspace.store)
    if not runs:
        raise MissingArtifact(f"{workspace.store.feed}: no run is published; run `assay run` first")
    return [run_id for run_id in runs if len(wanted) >= SHORTEST and run_id.startswith(wanted)]


def _if_long(wanted: str, like: Callable[[str], list[str]]) -> list[str]:
    return like(wanted) if len(wanted) >= SHORTEST else []


def _unknown(wanted: str, run_id: str, feed: str, near: Sequence[str]) -> Fault:
    where = f"id {wanted!r}"
    if near:
        what = f"run {run_id[:12]} has no number and no question of this id"
        return Fault(where, what, f"did you mean {' or '.join(near)}?")
    what = f"run {run_id[:12]} of {feed} has no number and no question of this id"
    todo = (
        f"give at least {SHORTEST} digits of an id in its report; an id belongs to one run, so name another run "
        "with --run, another store with --store"
    )
    return Fault(where, what, todo)


def _one_of(wanted: str, found: list[Found]) -> Found:
    if len(found) == 1:
        return found[0]
    listed = ", ".join(f"{one.kind} {one.id if one.kind == 'query' else one.id[:16]}" for one in found[:_MOST_LISTED])
    more = f" and {len(found) - _MOST_LISTED} more" if len(found) > _MOST_LISTED else ""
    raise BadInput([Fault(f"id {wanted!r}", f"{len(found)} ids begin so", f"give more digits, one of: {listed}{more}")])


# --- the command that makes it again ----------------------------------------------------------------------------------


class Pins(NamedTuple):
    """The pins of a tap list: all that a run's identity takes from a corpus."""

    digest: str
    taps: tuple[Tap, ...]


def reproduction(workspace: Workspace, published: Published, wanted: str) -> Reproduction:
    """Return the command that makes the run again in an empty store, and explains ``wanted`` there.

    The options that it names are held against the run's identity before they are shown: from the same pins, golden
    sets, options and versions follows the same id. What differs here is named in place of a command. The command reads
    the configuration file and all that it names as they are then, so one that is kept may make another run later.
    """
    identity = json.loads(text_of(published.run, "configuration"))
    return _reproduction(workspace, identity, wanted, "run", [])


def study_reproduction(workspace: Workspace, study: StudyRow, wanted: str) -> Reproduction:
    """Return the command that makes a study again in an empty store, and explains ``wanted`` there; see above."""
    identity = json.loads(study.configuration)
    asked = options_of_study(identity)
    words = [word for by in asked.by for word in ("--by", by)]
    words += [word for name in asked.exclude for word in ("--exclude", name)]
    words += [word for name in asked.engines for word in ("--engine", name)]
    words += [word for size in asked.at for word in ("--at", str(size))]
    words += ["--step", str(asked.step)] if asked.step else []
    words += ["--seed", str(asked.seed), "--statistics", asked.statistics]
    return _reproduction(workspace, identity, wanted, "study", words, asked)


def _reproduction(
    workspace: Workspace,
    identity: Mapping[str, Any],
    wanted: str,
    command: str,
    words: Sequence[str],
    asked: StudyOptions | None = None,
) -> Reproduction:
    options = _overrides(workspace, identity)
    try:
        missing = list(_differences(_identity_under(workspace, options, asked), identity))
    except AssayError as error:
        missing = str(error).splitlines()
    if missing:
        return Reproduction(command=None, missing=missing)
    assert options.config is not None
    again = ["--config", str(options.config), "--store", str(workspace.store.root / "again")]
    made = shlex.join(["assay", command, *words, *again, *_words(options)])
    explained = shlex.join(["assay", "explain", wanted, *again, "--json"])
    return Reproduction(command=f"{made} >/dev/null && {explained}", missing=[])


def _overrides(workspace: Workspace, identity: Mapping[str, Any]) -> Overrides:
    """Return the options of the run as a command line can name them, over the files of the current configuration.

    An option that is no single value is left to the configuration file.
    """
    settings, judge = workspace.settings, identity.get("judge")
    return Overrides(
        config=settings.file,
        taps=settings.tap_file,
        golden=settings.golden_files,
        class_rule=identity["class_rule"],
        cluster_decisions=settings.decision_file,
        near_threshold=identity["near_threshold"],
        orders=identity["orders"],
        sizes=identity["sizes"],
        abstain_by=identity.get("abstain_by"),  # not there in a run of an earlier release
        floors=identity["floors"] or None,
        concepts=settings.concept_file,
        judge_model=judge[0] if judge else None,
        judge_prompt_version=judge[1] if judge else None,
        # A run that read nothing from a ledger is made again without one.
        ledger=settings.ledger_url if identity["qrels_position"] else None,
        as_of=identity["qrels_position"],
        max_file_bytes=identity["max_file_bytes"],
        engines={
            engine: {name: _word(value) for name, value in options.items() if isinstance(value, str | int | float)}
            for engine, options in identity["options"].items()
        },
    )


def _word(value: str | int | float) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _words(options: Overrides) -> Iterator[str]:
    yield from ("--taps", str(options.taps))
    for path in options.golden or ():
        yield from ("--golden", str(path))
    if options.cluster_decisions is not None:
        yield from ("--cluster-decisions", str(options.cluster_decisions))
    yield from ("--near-threshold", str(options.near_threshold))
    yield from ("--orders", str(options.orders), "--sizes", str(options.sizes))
    if options.abstain_by is not None:
        yield from ("--abstain-by", options.abstain_by)
    for engine, floors in sorted((options.floors or {}).items()):
        for measure, floor in sorted(floors.items()):
            yield from (f"--floors.{engine}.{measure}", str(floor))
    if options.concepts is not None:
        yield from ("--concepts", str(options.concepts))
    if options.judge_model is not None:
        yield from ("--judge-model", options.judge_model, "--judge-prompt-version", str(options.judge_prompt_version))
    if options.ledger is not None:
        yield from ("--ledger", shown(options.ledger))
    yield from ("--as-of", str(options.as_of))
    yield from ("--class-rule", str(options.class_rule), "--max-file-bytes", str(options.max_file_bytes))
    for engine, given in sorted((options.engines or {}).items()):
        for name, value in sorted(given.items()):
            yield from (f"--engines.{engine}.{name}", value)


def _identity_under(
    workspace: Workspace, options: Overrides, asked: StudyOptions | None = None
) -> dict[str, JsonValue]:
    settings = load(options)
    whole = Workspace(settings, workspace.night)
    there = whole if asked is None else narrow(whole, asked)
    taps = in_order(there.settings.tap_list())
    pins, sets = Pins(corpus_digest(taps), taps), there.golden_sets()
    return identity_of(there, pins, sets) if asked is None else identity_of_study(whole, there, asked, pins, sets)


def _differences(here: Mapping[str, JsonValue], run: Mapping[str, JsonValue]) -> Iterator[str]:
    """Yield what makes two identities differ, field by field, of each field the first few parts."""
    for field in sorted({*here, *run}):
        lines = list(_parts_that_differ(field, here.get(field), run.get(field)))
        yield from lines[:_MOST_PARTS]
        if len(lines) > _MOST_PARTS:
            yield f"{field}: {len(lines) - _MOST_PARTS} more differ"


def _parts_that_differ(name: str, mine: JsonValue, its: JsonValue) -> Iterator[str]:
    if isinstance(mine, dict) and isinstance(its, dict):
        for part in sorted({*mine, *its}):
            yield from _parts_that_differ(f"{name} {part}", mine.get(part), its.get(part))
    elif mine != its:
        yield f"{name}: {_said(mine)} here, {_said(its)} in the run"


_MOST_PARTS = 3
"""Parts of a field that are named: a tap list of another corpus would differ in every tap."""
_MOST_CHARACTERS = 100
"""Characters of a value that are shown: a digest, or a few options."""


def _said(value: JsonValue) -> str:
    text = "none" if value is None else value if isinstance(value, str) else canonical_json(value)
    return text if len(text) <= _MOST_CHARACTERS else f"{text[: _MOST_CHARACTERS - 1]}…"
