"""Falloff over a store: what curves are made from, and the curves of a golden set in orders of one kind.

It joins what the stages left, catalogues, classes and indices, to the library in ``pipeline/falloff``. All sets and
engines of a corpus share its targets and its subsets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache, cached_property
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from pipeline.engines import INDEX, IndexEngine, Query
from pipeline.engines.bm25 import Bm25
from pipeline.engines.dense import Dense
from pipeline.engines.hybrid import Hybrid
from pipeline.engines.lexical import IndexedTaps
from pipeline.engines.okapi import Okapi
from pipeline.errors import BadInput
from pipeline.falloff import SHARES, Plan, Statistics, bound
from pipeline.falloff.abstaining import Judged, abstention_points, judged
from pipeline.falloff.attribution import CurveOf, Shown, attribute, harm
from pipeline.falloff.grading import Asked, Curves, ask, measure
from pipeline.falloff.models import FITTABLE, crossings, fit_curves
from pipeline.falloff.onepass import FusedCurve, ScoreCurve, WordCurve
from pipeline.falloff.orders import (
    Corpus,
    Order,
    Orders,
    Sizes,
    corpus_of,
    entry_orders,
    order_by_date,
    order_by_harm,
    order_by_size,
    random_orders,
    sizes_by_factor,
    sizes_by_list,
    sizes_by_step,
    subsets,
    targets_of,
)
from pipeline.falloff.points import Named, points
from pipeline.falloff.rows import (
    ATTRIBUTION,
    FALLOFF,
    FALLOFF_FITS,
    FALLOFF_NOTES,
    FALLOFF_SUMMARIES,
    FalloffNote,
)
from pipeline.golden.items import GoldenSet
from pipeline.golden.resolve import resolve_known
from pipeline.records import Table
from pipeline.store import Artifact
from pipeline.taps.snapshot import read_manifest
from pipeline.workspace import Corpus as Taps
from pipeline.workspace import Facts, Files, Workspace, find_snapshot, index_inputs, judged_grades, read

if TYPE_CHECKING:
    from pipeline.engines import Engine

EVERY_ENGINE = "*"
NOT_OURS = "a plug-in: whether its scores depend on the rest of the corpus is not known"
RUN_FILE = "its ranking was made outside, of the whole corpus, and no subset can be asked"


class NoCurve(Exception):
    """There is no curve, for the reason that is this error's text."""


class Ground:
    """A corpus with its targets, and its engines over it: what all curves of it stand on."""

    def __init__(
        self,
        workspace: Workspace,
        taps: Taps,
        grouped: Artifact,
        sets: Sequence[GoldenSet],
        statistics: Statistics = "subset",
    ) -> None:
        """Read the classes of the corpus and find its targets.

        Args:
            workspace: where indices are kept.
            taps: the corpus.
            grouped: its classes.
            sets: the golden sets; the targets may hang on them.
            statistics: what the weights of words are taken from in every subset.

        Raises:
            NoCurve: it has no target, or none with an entry.
        """
        self.workspace = workspace
        self.taps = taps
        self.sets = sets
        self.statistics = statistics
        self.deciding = workspace.settings.config.abstain_by
        self.entries = read(workspace, grouped, "entries.parquet")
        self.shown = Shown(self.entries["slug"].to_pylist(), self.entries["class_id"].to_pylist())
        self._set = {golden.name: _in_order(golden) for golden in sets}
        self._resolved = cache(lambda name: resolve_known(self._set[name], self.entries))
        try:
            self.corpus: Corpus = corpus_of(
                [tap.name for tap in taps.taps],
                self.entries["tap"].to_pylist(),
                self.shown.class_ids,
                self._targets(),
            )
        except BadInput as error:
            raise NoCurve("; ".join(f"{fault.where}: {fault.what}; {fault.todo}" for fault in error.faults)) from error
        self._asked = cache(self._ask)
        self._judged = cache(self._judge)
        self._indices = cache(self._read_indices)
        self._indexed = cache(lambda engine: IndexedTaps(self._indices(engine)))
        self._scored = cache(self._score)

    def _targets(self) -> frozenset[str]:
        """Return the targets: the taps that the list calls so; where it calls none so, those that hold an exemplar."""
        with_role = targets_of((tap.name for tap in self.taps.taps if tap.role == "target"), ())
        if with_role:
            return with_role
        resolved = [one for golden in self.sets for one in self._resolved(golden.name).items if one.item.exemplar]
        return frozenset(tap for one in resolved for tap in one.taps)

    def asked(self, golden: GoldenSet) -> Asked:
        """Return a set over the corpus, its items by id."""
        return self._asked(golden.name)

    def _ask(self, golden_set: str) -> Asked:
        return ask(self._resolved(golden_set), *self.shown, self.corpus)

    def judged(self, golden: GoldenSet) -> Judged:
        """Return what is known of the items of a set, by id, to say whether they were to be answered."""
        return self._judged(golden.name)

    def _judge(self, golden_set: str) -> Judged:
        grades = judged_grades(self.workspace, self.taps, self._resolved(golden_set), self.entries)["all"]
        items = [one.item for one in self._resolved(golden_set).items]
        return judged(items, self._asked(golden_set), self.shown.class_ids, grades)

    def _queries(self, golden_set: str) -> list[Query]:
        return [Query(item.query_id, item.question) for item in self._set[golden_set].items]

    def curve_of(self, engine: str, golden: GoldenSet) -> CurveOf:
        """Return what makes the curve of an engine over some items of a set.

        Raises:
            NoCurve: the engine cannot be asked about a subset.
            MissingArtifact: a tap has not been indexed yet.
        """
        built = self.workspace.settings.engines[engine]
        return self._curve_of(engine, built, golden)

    def _curve_of(self, engine: str, built: Engine, golden: GoldenSet) -> CurveOf:
        class_of = self.corpus.class_of
        queries = self._queries(golden.name)
        if isinstance(built, Dense) or (self.statistics == "global" and isinstance(built, IndexEngine)):
            # No subset changes these scores.
            return lambda places: self._scored(engine, golden.name).of_queries(places)
        if isinstance(built, Bm25 | Okapi):
            indexed = self._indexed(engine)
            return lambda places: WordCurve(
                indexed, built, [queries[place] for place in places], class_of, self.corpus.in_targets
            )
        if isinstance(built, Hybrid):
            return self._fused(built, golden)
        raise NoCurve(NOT_OURS if engine in self.workspace.settings.packages else RUN_FILE)

    def _fused(self, built: Hybrid, golden: GoldenSet) -> CurveOf:
        sources: list[CurveOf] = []
        for source in built.sources():
            try:
                sources.append(self.curve_of(source, golden))
            except NoCurve as error:
                raise NoCurve(f"its source {source} has no curve: {error}") from error
        first, second = sources
        constant, class_of = built.options.constant, self.corpus.class_of
        return lambda places: FusedCurve((first(places), second(places)), constant, class_of)

    def _read_indices(self, engine: str) -> list[pa.Buffer]:
        built = self.workspace.settings.engines[engine]
        assert isinstance(built, IndexEngine)
        store, command = self.workspace.store, f"assay rank --engine {engine}"
        made = [store.get(INDEX, index_inputs(catalog, built), command) for catalog in self.taps.catalogs]
        return [pa.py_buffer(store.read(each, "index.arrow")) for each in made]

    def _score(self, engine: str, golden_set: str) -> ScoreCurve:
        built = self.workspace.settings.engines[engine]
        assert isinstance(built, IndexEngine)
        answers = built.retriever(self._indices(engine)).answer(self._queries(golden_set))
        return ScoreCurve.of(answers, self.corpus.class_of)

    def curves(self, engines: Sequence[str], golden: GoldenSet) -> Iterator[tuple[str, CurveOf | NoCurve]]:
        """Yield for each engine what makes its curve, or why it has none."""
        for engine in engines:
            try:
                yield engine, self.curve_of(engine, golden)
            except NoCurve as error:
                yield engine, error

    @cached_property
    def first_seen(self) -> dict[str, str]:
        """The date of each tap: that of its pinned commit, the only one that a pin tells."""
        found = {tap.name: read_manifest(find_snapshot(self.workspace, tap)).committed for tap in self.taps.taps}
        return {tap: date for tap, date in found.items() if date is not None}

    def orders(self, plan: Plan) -> Orders:
        """Return the orders of a plan. The worst confuser is the worst over all engines and sets of the plan."""
        if plan.kind == "random":
            return random_orders(self.corpus, plan.orders, plan.seed)
        if plan.kind == "entries":
            return entry_orders(self.corpus, plan.orders, plan.seed)
        if plan.kind == "size":
            return order_by_size(self.corpus)
        if plan.kind == "first_seen":
            return order_by_date(self.corpus, self.first_seen)
        taken: Counter[str] = Counter()
        for golden in self.sets:
            for _, curve_of in self.curves(plan.engines, golden):
                if not isinstance(curve_of, NoCurve):
                    taken.update(harm(self.corpus, self.asked(golden), curve_of(range(len(golden.items)))))
        return order_by_harm(self.corpus, taken)


def _in_order(golden: GoldenSet) -> GoldenSet:
    """Return the set with its items by id: draws of clusters hang on the order of items, and rows may be shuffled."""
    return replace(golden, items=tuple(sorted(golden.items, key=lambda item: item.query_id)))


class Drawn(NamedTuple):
    """The curves of one golden set."""

    tables: dict[Table, pa.Table]
    taps: int
    """Taps that join the targets."""

    def files(self) -> Files:
        """Return the files of the artifact."""
        return {f"{table.name}.parquet": table.to_bytes(rows) for table, rows in self.tables.items()}

    def facts(self) -> Facts:
        """Return what there is to say without reading a table."""
        return {
            "points": self.tables[FALLOFF].num_rows,
            "notes": self.tables[FALLOFF_NOTES].num_rows,
            "lost": len(set(self.tables[ATTRIBUTION]["query_id"].to_pylist())),
        }


def draw(
    workspace: Workspace, taps: Taps, grouped: Artifact, sets: Sequence[GoldenSet], golden: GoldenSet, plan: Plan
) -> Drawn:
    """Measure a golden set under every engine of a plan, on the same subsets.

    Where there is nothing to draw the tables are empty, and ``falloff_notes`` says why.

    Raises:
        MissingArtifact: a tap has not been indexed yet.
        BadInput: there are more orders, sizes and items than fit into memory.
    """
    notes = _Notes(golden.name, plan)
    for engine, reason in plan.not_run.items():
        notes.add("curve", f"it is not run: {reason}", engine)
    found: dict[Table, list[pa.Table]] = {table: [] for table in TABLES}
    joining = 0
    try:
        ground = Ground(workspace, taps, grouped, sets, plan.statistics)
        joining = len(ground.corpus.taps) - len(ground.corpus.targets)
        _measure(ground, golden, plan, found, notes)
    except NoCurve as error:
        notes.add("curve", str(error))
    found[FALLOFF_NOTES] = [FALLOFF_NOTES.from_rows(notes.rows)]
    return Drawn(
        {table: table.sort(pa.concat_tables([table.schema.empty_table(), *parts])) for table, parts in found.items()},
        joining,
    )


TABLES = (FALLOFF, FALLOFF_FITS, FALLOFF_SUMMARIES, FALLOFF_NOTES, ATTRIBUTION)


class _Notes:
    def __init__(self, golden_set: str, plan: Plan) -> None:
        self._golden_set, self._plan = golden_set, plan
        self.rows: list[FalloffNote] = []

    def add(self, what: str, reason: str, engine: str = EVERY_ENGINE) -> None:
        self.rows.append(
            FalloffNote(
                golden_set=self._golden_set, engine=engine, order_kind=self._plan.kind, what=what, reason=reason
            )
        )


def _measure(ground: Ground, golden: GoldenSet, plan: Plan, found: dict[Table, list[pa.Table]], notes: _Notes) -> None:
    orders = ground.orders(plan)
    for each in orders.not_drawn:
        notes.add(each.what, each.reason)
    for tap, size in zip(ground.corpus.taps, ground.corpus.sizes.tolist(), strict=True):
        if not size:
            notes.add(f"tap {tap}", "it has no entry, so no curve shows it joining")
    if not orders.drawn:
        return
    sizes = _sizes(ground.corpus, plan)
    for each in sizes.left_out:
        notes.add(each.what, each.reason)
    nominal = sizes.nominal
    bound(len(orders.drawn), len(nominal), len(golden.items))
    of_orders = [subsets(ground.corpus, order, nominal) for order in orders.drawn]
    asked = ground.asked(golden)
    measured: dict[str, tuple[Named, Curves]] = {}
    for engine, curve_of in ground.curves(plan.engines, golden):
        if isinstance(curve_of, NoCurve):
            notes.add("curve", str(curve_of), engine)
            continue
        named = Named(golden.name, golden.digest, engine, plan.statistics)
        curves = measure(asked, curve_of(range(len(golden.items))), of_orders)
        measured[engine] = named, curves
        floors = plan.floors.get(engine, {})
        for name in sorted(floors.keys() - FITTABLE):
            notes.add(f"floor of {name}", "it is measured on the whole corpus alone, so no curve crosses it", engine)
        fitted = fit_curves(named, asked, curves, seed=plan.seed, floors=floors)
        found[FALLOFF].append(points(named, asked, curves, plan.seed))
        found[FALLOFF].append(
            abstention_points(named, asked, ground.judged(golden), curves, ground.deciding, plan.seed)
        )
        found[FALLOFF_FITS].append(fitted.fits)
        found[FALLOFF_SUMMARIES].append(fitted.summaries)
        if plan.kind == "random":
            found[ATTRIBUTION].append(_attributed(ground, named, asked, curve_of, orders.drawn[:SHARES]))
    for (one, of_one), (other, of_other) in combinations(measured.values(), 2):
        found[FALLOFF_SUMMARIES].append(crossings(one, other, asked, (of_one, of_other), seed=plan.seed))


def _sizes(corpus: Corpus, plan: Plan) -> Sizes:
    if plan.at:
        return sizes_by_list(corpus, plan.at)
    return sizes_by_step(corpus, plan.step) if plan.step else sizes_by_factor(corpus, plan.sizes)


def _attributed(ground: Ground, named: Named, asked: Asked, curve_of: CurveOf, orders: Sequence[Order]) -> pa.Table:
    return attribute(named, ground.corpus, asked, curve_of, orders, ground.shown)
