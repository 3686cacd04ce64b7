"""A corpus-growth study: falloff curves in orders of any kind, over all taps of the list or some, published by itself.

It shares the stages of the night, so what a night has read, parsed and indexed is there. A study moves no run: it is
published beside them, under the digest of all that can change its result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from pipeline.config import sources_of
from pipeline.errors import BadInput, Fault
from pipeline.falloff import Plan, Statistics
from pipeline.records import parquet_bytes
from pipeline.reports.feed import (
    STUDIES,
    GoldenSetRow,
    StudyRow,
    is_whole_folder,
    publish_folder,
    study_folder,
)
from pipeline.stages import Place, check_inputs, classes, corpus, falloff, index, place, read_taps, resolve
from pipeline.store import Artifact, canonical_json, digest
from pipeline.tables import FALLOFF_TABLES
from pipeline.taps.snapshot import verdict
from pipeline.taps.taplist import TapList
from pipeline.workspace import Facts, Pinned, Workspace, identity_of, read

if TYPE_CHECKING:
    import pyarrow as pa

    from pipeline.falloff.rows import OrderKind
    from pipeline.golden.items import GoldenSet
    from pipeline.reports.growth import Growth

By = Literal["random", "date", "size", "harm", "entries"]
"""In what order the catalogue grows, as people name it."""
MOST_SEED = 2**32 - 1
KINDS: dict[By, OrderKind] = {
    "random": "random",
    "date": "first_seen",
    "size": "size",
    "harm": "confuser",
    "entries": "entries",
}
"""What the tables call each."""


@dataclass(frozen=True)
class StudyOptions:
    """What is studied, beside what the configuration says."""

    by: tuple[By, ...] = ("random",)
    """In what orders the catalogue grows."""
    include: tuple[str, ...] = ()
    """The taps that join the targets; all unless named."""
    exclude: tuple[str, ...] = ()
    """Taps that do not join."""
    engines: tuple[str, ...] = ()
    """The engines; all that run unless named."""
    seed: int = 0
    """The first seed of drawn orders, and the seed of the draws of clusters."""
    step: int = 0
    """Entries between two sizes, in place of a number of sizes."""
    at: tuple[int, ...] = ()
    """The sizes themselves, in place of a number of them."""
    statistics: Statistics = "subset"
    """What engines of words take the weights of words from: each subset, or the whole corpus."""


class Studied(NamedTuple):
    """A published study."""

    row: StudyRow
    folder: Path
    growth: Growth
    """What it says in words."""


def study(workspace: Workspace, options: StudyOptions) -> Studied:
    """Make and publish a study. Whatever the store has of it is not made again.

    Raises:
        BadInput: an option, the tap list or a golden set is wrong, or a golden row names nothing without a tap.
        Unsound: a tap is gone or not as its row says.
        Outage: taps are out of reach.
    """
    prepare(workspace, options)
    for by in _each_once(options.by):
        draw(workspace, options, by)
    return publish(workspace, options)


def prepare(workspace: Workspace, options: StudyOptions) -> None:
    """Read, group and index all that takes part."""
    narrowed = narrow(workspace, options)
    taps = check_inputs(narrowed)
    verdict(read_taps(narrowed, taps.taps))
    whole = corpus(narrowed)
    resolve(narrowed, classes(narrowed, whole))
    for engine in engines_of(workspace, options):
        for each in (*sources_of(workspace.settings.engines[engine]), engine):
            index(narrowed, whole, each)


def draw(workspace: Workspace, options: StudyOptions, by: By) -> list[Artifact]:
    """Draw the curves of every set in orders of one kind.

    Raises:
        MissingArtifact: the study was not prepared yet.
    """
    narrowed = narrow(workspace, options)
    return _drawn(narrowed, options, by, place(narrowed))


def _drawn(narrowed: Workspace, options: StudyOptions, by: By, at: Place) -> list[Artifact]:
    config = narrowed.settings.config
    engines = engines_of(narrowed, options)
    plan = Plan(
        KINDS[by],
        config.orders,
        config.sizes,
        options.seed,
        engines,
        options.statistics,
        config.floors,
        options.step,
        tuple(sorted(set(options.at))),
        {} if options.engines else narrowed.settings.not_run,
    )
    return [falloff(narrowed, at, golden, plan) for golden in at.sets]


def publish(workspace: Workspace, options: StudyOptions) -> Studied:
    """Publish a study whose curves are drawn: its tables, its page, and its charts as PNG and SVG, by one rename.

    Raises:
        MissingArtifact: a curve was not drawn yet.
    """
    from pipeline.reports.growth import growth
    from pipeline.reports.page import render_study

    narrowed = narrow(workspace, options)
    at = place(narrowed)
    made = [each for by in _each_once(options.by) for each in _drawn(narrowed, options, by, at)]
    row = _row(workspace, narrowed, options, at)
    tables = {name: _with_study(_joined(narrowed, made, name), row) for name in FALLOFF_TABLES}
    questions = {item.query_id: item.question for golden in at.sets for item in golden.items}
    folder = study_folder(workspace.store, row.study_id)
    if not is_whole_folder(folder):
        page = render_study(row, tables, questions)
        files = {f"{name}.parquet": parquet_bytes(table) for name, table in tables.items()}
        files |= {"studies.parquet": STUDIES.to_bytes(STUDIES.from_rows([row])), "report.html": page.html}
        publish_folder(workspace.store, folder, files | page.images)
    return Studied(row, folder, growth(tables, questions, {}, drawn=False))


def narrow(workspace: Workspace, options: StudyOptions) -> Workspace:
    """Return the workspace over the taps that take part: the targets, and those that are to join them.

    Raises:
        BadInput: a named tap is not in the list, or a target is to be left out, or no curve is asked for.
    """
    taps = workspace.settings.tap_list()
    known = {tap.name for tap in taps.taps}
    targets = _targets(workspace, taps)
    faults = [
        Fault(f"--{option} {name}", "no tap of the list is called so", f"name a tap of {taps.path}")
        for option, names in (("include", options.include), ("exclude", options.exclude))
        for name in names
        if name not in known
    ]
    faults += [
        Fault(f"--exclude {name}", "it is a target, which every subset holds", "name a tap that may be left out")
        for name in options.exclude
        if name in targets
    ]
    faults += [
        Fault(f"--include {name}", "it is excluded as well", "name it once")
        for name in options.include
        if name in options.exclude
    ]
    faults += [
        Fault(f"--include {name}", "it is a target, which every subset holds", "name the taps that are to join")
        for name in options.include
        if name in targets
    ]
    if options.step < 0 or (options.step and options.at):
        what = "is below 0" if options.step < 0 else "and --at are two ways to say at what sizes"
        faults.append(Fault(f"--step {options.step}", what, "give one of them, of 1 or more entries"))
    faults += [Fault(f"--at {size}", "is no size", "give 1 or more entries") for size in options.at if size < 1]
    if not 0 <= options.seed <= MOST_SEED:
        faults.append(Fault("--seed", f"{options.seed} is no seed", f"give a whole number from 0 to {MOST_SEED}"))
    if not options.by:
        faults.append(Fault("--by", "no order is named", f"name one or more of: {', '.join(get_args(By))}"))
    if not workspace.settings.config.orders:
        faults.append(Fault("orders", "0 orders draw no curve", "ask for 1 or more; 20 give a band"))
    if faults:
        raise BadInput(faults)
    kept = tuple(
        tap
        for tap in taps.taps
        if tap.name in targets
        or (tap.name not in options.exclude and (not options.include or tap.name in options.include))
    )
    return replace(workspace, settings=replace(workspace.settings, other_taps=TapList(taps.path, kept)))


def engines_of(workspace: Workspace, options: StudyOptions) -> tuple[str, ...]:
    """Return the engines of a study.

    Raises:
        BadInput: one that is named is not configured, or cannot run.
    """
    settings = workspace.settings
    faults = [
        Fault(
            f"--engine {name}",
            settings.not_run.get(name, "it is not configured"),
            f"use: {', '.join(settings.running)}",
        )
        for name in options.engines
        if name not in settings.running
    ]
    if faults:
        raise BadInput(faults)
    return tuple(sorted(set(options.engines))) or tuple(settings.running)


def _targets(workspace: Workspace, taps: TapList) -> frozenset[str]:
    from pipeline.falloff.orders import targets_of

    sets = workspace.golden_sets()
    exemplars = [exemplar for golden in sets for item in golden.items for exemplar in item.exemplar]
    return targets_of([tap.name for tap in taps.taps if tap.role == "target"], exemplars)


def _each_once(by: Sequence[By]) -> list[By]:
    return [kind for kind in get_args(By) if kind in by]


def _row(workspace: Workspace, narrowed: Workspace, options: StudyOptions, at: Place) -> StudyRow:
    config, kept = workspace.settings.config, {tap.name for tap in at.corpus.taps}
    by = _each_once(options.by)
    engines = engines_of(workspace, options)
    left_out = [tap.name for tap in workspace.settings.tap_list().taps if tap.name not in kept]
    identity = identity_of_study(workspace, narrowed, options, at.corpus, at.sets)
    return StudyRow(
        study_id=digest(identity),
        corpus=at.corpus.digest,
        taps=len(at.corpus.taps),
        entries=int(str(at.grouped.facts["entries"])),
        classes=int(str(at.grouped.facts["classes"])),
        left_out=left_out,
        by=[*by],
        orders=config.orders,
        sizes=config.sizes,
        seed=options.seed,
        step=options.step,
        at=sorted(set(options.at)),
        statistics=options.statistics,
        engines=[*engines],
        golden_sets=[GoldenSetRow(name=each.name, digest=each.digest, items=len(each.items)) for each in at.sets],
        configuration=canonical_json(identity),
    )


def identity_of_study(
    workspace: Workspace, narrowed: Workspace, options: StudyOptions, corpus: Pinned, sets: Sequence[GoldenSet]
) -> Facts:
    """Return everything that can change what a study says: what its id is the digest of."""
    kept = {tap.name for tap in corpus.taps}
    asked: Facts = {
        "by": [*_each_once(options.by)],
        "engines": [*engines_of(workspace, options)],
        # What is left out and what was named change no curve, and are told.
        "named": [*sorted(set(options.engines))],
        "left_out": [tap.name for tap in workspace.settings.tap_list().taps if tap.name not in kept],
        "seed": options.seed,
        "step": options.step,
        "at": [*sorted(set(options.at))],
        "statistics": options.statistics,
    }
    return {**identity_of(narrowed, corpus, sets), "study": asked}


def options_of_study(identity: Mapping[str, Any]) -> StudyOptions:
    """Return the options that make a study of this identity again, over the same tap list."""
    asked = identity["study"]
    return StudyOptions(
        by=tuple(asked["by"]),
        exclude=tuple(asked["left_out"]),
        engines=tuple(asked["named"]),
        seed=asked["seed"],
        step=asked["step"],
        at=tuple(asked["at"]),
        statistics=asked["statistics"],
    )


def _joined(workspace: Workspace, made: Sequence[Artifact], name: str) -> pa.Table:
    import pyarrow as pa

    return FALLOFF_TABLES[name].sort(pa.concat_tables([read(workspace, each, f"{name}.parquet") for each in made]))


def _with_study(table: pa.Table, row: StudyRow) -> pa.Table:
    import pyarrow as pa

    field = pa.field("study_id", pa.string(), nullable=False, metadata={"description": "The study."})
    return table.add_column(0, field, pa.array([row.study_id] * table.num_rows, pa.string()))
