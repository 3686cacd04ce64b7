"""A corpus from the store of a finished night, and the measures of an index that is rebuilt for a subset of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline import stages
from pipeline.config import Settings
from pipeline.engines import INDEX, Answer, Query
from pipeline.engines.bm25 import Bm25
from pipeline.engines.lexical import IndexedTaps
from pipeline.engines.okapi import Okapi
from pipeline.engines.ranking import rank_answers
from pipeline.falloff.attribution import Shown
from pipeline.falloff.grading import TREATMENTS, Asked, ask
from pipeline.falloff.onepass import WordCurve
from pipeline.falloff.orders import Corpus, Subsets, corpus_of, targets_of
from pipeline.falloff.points import Named
from pipeline.golden.items import GoldenSet
from pipeline.golden.resolve import Resolved, ResolvedSet, resolve
from pipeline.reports.feed import Night
from pipeline.scoring.grade import Hit
from pipeline.scoring.means import GRADINGS, MAIN, PUBLISHED, TREATMENT, number, score_item
from pipeline.scoring.measures import mean
from pipeline.workspace import Workspace, index_inputs, read


@dataclass(frozen=True)
class Stored:
    """One golden set over the corpus of a store whose indices are there."""

    entries: pa.Table
    golden: GoldenSet
    corpus: Corpus
    indices: Sequence[pa.Buffer]

    @property
    def named(self) -> Named:
        return Named(self.golden.name, self.golden.digest, "bm25")

    @property
    def queries(self) -> list[Query]:
        return [Query(item.query_id, item.question) for item in self.golden.items]

    @property
    def shown(self) -> Shown:
        return Shown(self.entries["slug"].to_pylist(), self.entries["class_id"].to_pylist())

    @cached_property
    def resolved(self) -> ResolvedSet:
        return resolve(self.golden, self.entries)

    @cached_property
    def asked(self) -> Asked:
        return ask(self.resolved, *self.shown, self.corpus)

    def curve(self, engine: Bm25 | Okapi, places: Sequence[int] | None = None) -> WordCurve:
        queries = self.queries if places is None else [self.queries[place] for place in places]
        corpus = self.corpus
        return WordCurve(IndexedTaps(self.indices), engine, queries, corpus.class_of, corpus.in_targets)

    def rebuilt(self, engine: Bm25 | Okapi, subsets: Subsets, step: int) -> dict[tuple[str, str, str], float | None]:
        """The means over a subset of whole taps, by grading, treatment and measure: indexed, ranked, scored anew."""
        rows = np.flatnonzero(subsets.step_of <= step)
        entries = self.entries.take(pa.array(rows))
        present = {*entries["tap"].to_pylist()}
        indices = [index for tap, index in zip(self.corpus.taps, self.indices, strict=True) if tap in present]
        return self._measured(engine.retriever(indices).answer(self.queries), entries)

    def filtered(self, engine: Bm25 | Okapi, subsets: Subsets, step: int) -> dict[tuple[str, str, str], float | None]:
        """The same with the scores that entries have in the whole corpus: of each answer what lies in the subset."""
        rows = np.flatnonzero(subsets.step_of <= step)
        place = {row: at for at, row in enumerate(rows.tolist())}

        def within(answer: Answer) -> Answer:
            kept = np.isin(answer.entries, rows)
            inside = np.array([place[row] for row in answer.entries[kept].tolist()], np.int64)
            return Answer(answer.query_id, inside, answer.scores[kept])

        whole = engine.retriever(self.indices).answer(self.queries)
        return self._measured([within(answer) for answer in whole], self.entries.take(pa.array(rows)))

    def _measured(self, answers: Iterable[Answer], entries: pa.Table) -> dict[tuple[str, str, str], float | None]:
        ranked = rank_answers(answers, entries)
        hits: dict[str, list[Hit]] = {}
        for row in ranked.hits.select(["query_id", "class_id", "slug"]).to_pylist():
            hits.setdefault(row["query_id"], []).append(Hit(row["class_id"], row["slug"]))
        found: dict[tuple[str, str, str], float | None] = {}
        for grading, reasons in zip(GRADINGS, self.asked.reasons, strict=True):
            scores = [
                score_item(self._within(one, entries), grading, hits.get(one.item.query_id, []))
                for one, why in zip(self.resolved.items, reasons, strict=True)
                if why is None
            ]
            for treatment in TREATMENTS:
                for measure in PUBLISHED if treatment == TREATMENT else MAIN:
                    of_items = (s.values if treatment == TREATMENT else s.compared[treatment] for s in scores)
                    found[grading, treatment, str(measure)] = number(mean(of[measure] for of in of_items).value)
        return found

    @staticmethod
    def _within(one: Resolved, entries: pa.Table) -> Resolved:
        """The item in a subset: its entries are those of the subset, all else is what the whole corpus says."""

        def entries_of(column: str, wanted: Sequence[str]) -> int:
            return int(pc.sum(pc.is_in(entries[column], pa.array(wanted, pa.string()))).as_py() or 0)

        return one._replace(
            class_entries=entries_of("class_id", one.classes), name_entries=entries_of("slug", one.item.relevant)
        )


def stored(settings: Settings, engine: str = "bm25") -> Stored:
    """Read what a night over one golden set left in its store."""
    workspace = Workspace(settings, Night(settings.store, "falloff"))
    corpus, grouped, (golden,) = stages.place(workspace)
    entries = read(workspace, grouped, "entries.parquet")
    built = settings.engines[engine]
    assert isinstance(built, Bm25)
    indices = [
        pa.py_buffer(settings.store.read(settings.store.get(INDEX, index_inputs(made, built), ""), "index.arrow"))
        for made in corpus.catalogs
    ]
    with_role = [tap.name for tap in corpus.taps if tap.role == "target"]
    targets = targets_of(with_role, [exemplar for item in golden.items for exemplar in item.exemplar])
    columns = entries["tap"].to_pylist(), entries["class_id"].to_pylist()
    return Stored(entries, golden, corpus_of([tap.name for tap in corpus.taps], *columns, targets), indices)
