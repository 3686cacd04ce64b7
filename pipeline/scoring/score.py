"""Items and means of a ranking held against a golden set: ``rankings``, ``items``, ``metrics`` and what moves them.

Every item is graded twice, as its row says (``row``, the headline) and by name. Nothing here depends on the order of
items, hits or queries.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import JsonValue

from pipeline.catalog.flags import language_of
from pipeline.golden.resolve import ResolvedSet, resolve_known
from pipeline.judgments.resolution import Grades
from pipeline.records import Table
from pipeline.scoring import DECIDING, Signal
from pipeline.scoring.answered import Answered
from pipeline.scoring.duplicates import DUPLICATE_TAX, tax_rows
from pipeline.scoring.expectations import Listed
from pipeline.scoring.grade import Grading, Hit, judged_wrong
from pipeline.scoring.means import (
    GRADINGS,
    PUBLISHED,
    TREATMENT,
    ItemScore,
    Run,
    metric_rows,
    number,
    reason,
    score_item,
)
from pipeline.scoring.measures import mean
from pipeline.scoring.near import NEAR_METRICS, NO_COPIES, Copies, joined_classes, near_metric_rows
from pipeline.scoring.outcomes import JUDGED_METRICS, OUTCOMES, SOURCE_FILTERS, outcomes
from pipeline.scoring.outcomes import Ranked as RankedItem
from pipeline.scoring.policies import ABSTENTION
from pipeline.scoring.rows import ITEMS, METRICS, RANKINGS, ItemRow, MetricRow, MetricValue, RankingRow
from pipeline.scoring.sensitivity import SENSITIVITY, lookup, sensitivity_rows

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["HEADLINE", "ITEMS", "METRICS", "RANKINGS", "TABLES", "Scored", "score_run"]

UNJUDGED: Mapping[str, Grades] = {name: {} for name in SOURCE_FILTERS}
"""No judgment at all."""
HEADLINE = ("recall@10", "hit@1", "mrr@100", "ndcg@10")
SHOWN = 10
"""How many first hits are looked at for locale copies in another language."""
TABLES = (RANKINGS, ITEMS, METRICS, NEAR_METRICS, DUPLICATE_TAX, SENSITIVITY, OUTCOMES, ABSTENTION, JUDGED_METRICS)
"""What a set's scores under an engine consist of."""


@dataclass(frozen=True)
class Scored:
    """The tables of one engine on one golden set."""

    rankings: pa.Table
    items: pa.Table
    metrics: pa.Table
    near_metrics: pa.Table
    duplicate_tax: pa.Table
    sensitivity: pa.Table
    outcomes: pa.Table
    abstention: pa.Table
    judged_metrics: pa.Table
    headline: tuple[MetricRow, ...]
    both: Mapping[Grading, Sequence[ItemScore]]
    """The items that count under both gradings; none where they are the same items anyway."""
    answers: Answered

    def table(self, table: Table) -> pa.Table:
        """Return one of ``TABLES``."""
        return getattr(self, table.name)

    def facts(self) -> dict[str, JsonValue]:
        """Return the headline measures, for each grading, and how the set was answered."""
        return {
            "headline": [self._headline(grading) for grading in GRADINGS],
            "answers": self.answers.model_dump(mode="json"),
        }

    def _headline(self, grading: Grading) -> dict[str, JsonValue]:
        rows = {row.metric: row for row in self.headline if row.grading == grading}
        first = rows[HEADLINE[0]]
        return {
            "golden_set": first.golden_set,
            "engine": first.engine,
            "grading": grading,
            "values": {metric: rows[metric].value for metric in HEADLINE},
            "n_items": first.n_items - first.n_null,
            "label": first.label,
            "n_both": len(self.both[grading]),
            "over_both": {
                str(measure): number(mean(score.values[measure] for score in self.both[grading]).value)
                for measure in PUBLISHED
                if str(measure) in HEADLINE and self.both[grading]
            },
        }


class Ranked(NamedTuple):
    """A ranked entry, with what was seen of its class."""

    rank: int | None
    """Rank among classes; None for a later mirror."""
    raw_rank: int
    tap: str
    path: bytes
    path_text: str
    slug: str
    class_id: str
    score: float
    mirrors: int


class Query(NamedTuple):
    """What is known of a question and its ranking as a whole."""

    unknown_words: Sequence[str] = ()
    empty_query: bool = False
    tied_at_1: bool = False
    tied_at_10: bool = False
    tied_at_100: bool = False
    reach: float | None = None


def score_run(
    resolved: ResolvedSet,
    *,
    hits: pa.Table,
    queries: pa.Table,
    entries: pa.Table,
    engine: str,
    corpus: str,
    class_rule: str,
    near: Copies = NO_COPIES,
    grades: Mapping[str, Grades] = UNJUDGED,
    deciding: Signal = DECIDING,
) -> Scored:
    """Score what one engine ranked for the items of one golden set.

    Args:
        resolved: the set, resolved in the corpus that was ranked.
        hits: columns query_id, raw_rank, rank (null for later mirrors), tap, path, path_text, slug, class_id, score;
            an item without a row abstained, and scores 0.
        queries: columns query_id, unknown_words, empty_query, tied_at_1, tied_at_10, tied_at_100, reach; an item
            without a row has none of them.
        entries: the corpus that was ranked, with the columns of ``CorpusEntry``.
        engine: name of the engine.
        corpus: digest of the corpus.
        class_rule: the class rule in force.
        near: which bodies are copies of each other but for small edits.
        grades: resolved judgments, for each filter of sources.
        deciding: the signal by which an item counts as answered.

    Raises:
        ValueError: hits or queries are not of this set.
    """
    rankings, asked = _rankings(hits), _queries(queries)
    strangers = {*rankings, *asked} - {one.item.query_id for one in resolved.items}
    if strangers:
        raise ValueError(f"hits or queries that {resolved.golden.name} does not ask: {sorted(strangers)}")
    run = Run(corpus, class_rule, resolved.golden.name, resolved.golden.digest, engine)
    ranked = {query: [Hit(hit.class_id, hit.slug) for hit in ranking] for query, ranking in rankings.items()}
    scores: dict[Grading, list[ItemScore]] = {
        grading: [score_item(one, grading, ranked.get(one.item.query_id, ())) for one in resolved.items]
        for grading in GRADINGS
    }
    means = [row for grading in GRADINGS for row in metric_rows(run, grading, scores[grading])]
    taps = {query_id: [hit.tap for hit in ranking] for query_id, ranking in rankings.items()}
    locales = _locales(entries)
    becomes = joined_classes(entries, near)
    listed = list(_listed(scores["row"], rankings, asked, entries))
    ended = outcomes(run, listed, grades, _taps_of_judged(entries, grades["all"]), deciding)
    again = resolve_known(resolved.golden, _under(entries, becomes)) if becomes else resolved
    return Scored(
        RANKINGS.from_rows(
            row for score in scores["row"] for row in _hit_rows(run, score, rankings.get(score.item.query_id, ()))
        ),
        ITEMS.from_rows(
            _item_row(run, score, rankings.get(query_id, ()), asked.get(query_id, Query()), locales)
            for grading in GRADINGS
            for score in scores[grading]
            for query_id in [score.item.query_id]
        ),
        METRICS.from_rows(means),
        NEAR_METRICS.from_rows(near_metric_rows(run, again, ranked, becomes, means)),
        DUPLICATE_TAX.from_rows(row for grading in GRADINGS for row in tax_rows(run, grading, scores[grading], taps)),
        SENSITIVITY.from_rows(sensitivity_rows(run, scores["row"], _ambiguous(entries))),
        OUTCOMES.from_rows(ended.outcomes),
        ABSTENTION.from_rows(ended.abstention),
        JUDGED_METRICS.from_rows(ended.metrics),
        tuple(row for row in means if row.facet == "all" and row.treatment == TREATMENT and row.metric in HEADLINE),
        _over_both(scores),
        ended.in_short(run, deciding),
    )


def _over_both(scores: Mapping[Grading, Sequence[ItemScore]]) -> dict[Grading, list[ItemScore]]:
    """Return the items that count under both gradings; none where the gradings have the same items."""
    counting = [{one.item.query_id for one in of_one if one.reason is None} for of_one in scores.values()]
    both = set.intersection(*counting) if counting[0] != counting[1] else set()
    return {grading: [one for one in of_one if one.item.query_id in both] for grading, of_one in scores.items()}


def _taps_of_judged(entries: pa.Table, grades: Grades) -> dict[str, set[str]]:
    """Return the taps that hold each class that is judged for a question."""
    judged = {class_id for of_item in grades.values() for class_id in of_item}
    taps: dict[str, set[str]] = {}
    for class_id, tap in zip(entries["class_id"].to_pylist(), entries["tap"].to_pylist(), strict=True):
        if class_id in judged:
            taps.setdefault(class_id, set()).add(tap)
    return taps


def _listed(
    scores: Sequence[ItemScore],
    rankings: Mapping[str, Sequence[Ranked]],
    asked: Mapping[str, Query],
    entries: pa.Table,
) -> Iterator[RankedItem]:
    """Yield the ranking of each item, mirrors removed, with what a host would list of each hit."""
    columns = (entries[name].to_pylist() for name in ("tap", "path", "slug", "description"))
    length = {
        (tap, path): len(slug) + len(description or "") for tap, path, slug, description in zip(*columns, strict=True)
    }
    for score in scores:
        query_id = score.item.query_id
        hits = _collapsed(rankings.get(query_id, ()))
        listed = [Listed(hit.class_id, hit.slug, length.get((hit.tap, hit.path), len(hit.slug))) for hit in hits]
        yield RankedItem(score, listed, [hit.score for hit in hits], asked.get(query_id, Query()).reach)


def _rankings(hits: pa.Table) -> dict[str, list[Ranked]]:
    """Return the ranked entries of each query, best first, mirrors included."""
    columns = ["query_id", "rank", "raw_rank", "tap", "path", "path_text", "slug", "class_id", "score"]
    rows: list[dict[str, Any]] = hits.select(columns).to_pylist()
    entries = Counter((row["query_id"], row["class_id"]) for row in rows)
    rankings: dict[str, list[Ranked]] = {}
    for row in rows:
        query_id = row.pop("query_id")
        rankings.setdefault(query_id, []).append(Ranked(**row, mirrors=entries[query_id, row["class_id"]] - 1))
    for ranking in rankings.values():
        ranking.sort(key=lambda hit: hit.raw_rank)
    return rankings


def _queries(queries: pa.Table) -> dict[str, Query]:
    rows: list[dict[str, Any]] = queries.select(["query_id", *Query._fields]).to_pylist()
    return {row.pop("query_id"): Query(**row) for row in rows}


def _under(entries: pa.Table, becomes: Mapping[str, str]) -> pa.Table:
    """Return the entries with their classes joined."""
    import pyarrow as pa

    ids = [becomes.get(class_id, class_id) for class_id in entries["class_id"].to_pylist()]
    return entries.set_column(entries.schema.get_field_index("class_id"), "class_id", pa.array(ids, pa.string()))


def _locales(entries: pa.Table) -> dict[tuple[str, bytes], str]:
    """Return the locale of each entry that is a locale copy, by tap and path."""
    copies = entries.select(["tap", "path", "locale"]).filter(entries["locale"].is_valid()).to_pylist()
    return {(row["tap"], row["path"]): row["locale"] for row in copies}


def _ambiguous(entries: pa.Table) -> frozenset[str]:
    """Return the names that several classes carry."""
    import pyarrow.compute as pc

    return frozenset(pc.unique(entries.filter(pc.greater(entries["homonyms"], 0))["slug"]).to_pylist())


def _hit_rows(run: Run, score: ItemScore, ranking: Sequence[Ranked]) -> Iterator[RankingRow]:
    graded = zip(score.graded.gains.tolist(), score.graded.judged.tolist(), strict=True)
    wrong = judged_wrong(score.resolved, score.mode)
    for hit, (gain, judged) in zip(_collapsed(ranking), graded, strict=True):
        yield RankingRow(
            golden_set=run.golden_set,
            query_id=score.item.query_id,
            engine=run.engine,
            **hit._asdict(),
            grade=int(gain) if judged else None,
            grade_source=("decision" if hit.class_id in wrong and not gain else score.mode) if judged else None,
        )


def _collapsed(ranking: Sequence[Ranked]) -> list[Ranked]:
    return [hit for hit in ranking if hit.rank is not None]


def _item_row(
    run: Run,
    score: ItemScore,
    ranking: Sequence[Ranked],
    query: Query,
    locales: Mapping[tuple[str, bytes], str],
) -> ItemRow:
    item, shown = score.item, _collapsed(ranking)
    found = [hit.rank for hit, gain in zip(shown, score.graded.gains.tolist(), strict=True) if gain > 0]
    copies = [locales[hit.tap, hit.path] for hit in shown[:SHOWN] if (hit.tap, hit.path) in locales]
    looked_up = lookup(score.resolved, score.hits, PUBLISHED)
    return ItemRow(
        golden_set=run.golden_set,
        query_id=item.query_id,
        engine=run.engine,
        grading=score.grading,
        mode=score.mode,
        upper_bound=score.upper_bound,
        question=item.question,
        wanted=list({"exemplar": item.exemplar, "name": item.relevant}.get(score.mode or "", ())),
        kind=item.kind,
        answerable=item.answerable,
        question_type=item.question_type,
        popularity=item.popularity,
        dynamism=item.dynamism,
        split=item.split,
        language=item.language,
        target_tap=score.target_tap,
        cluster_id=item.cluster_id,
        relevant=int((score.graded.ideal > 0).sum()) if score.mode else None,
        hits=len(shown),
        abstained=not shown,
        first_relevant_rank=found[0] if found else None,
        top_score=shown[0].score if shown else None,
        other_language_hits=sum(language_of(locale) != language_of(item.language) for locale in copies),
        lookup_equal=looked_up.equal if looked_up else None,
        lookup_reason=looked_up.reason if looked_up else None,
        unknown_words=list(query.unknown_words),
        **{name: getattr(query, name) for name in ("empty_query", "tied_at_1", "tied_at_10", "tied_at_100")},
        scored=score.reason is None,
        reason=score.reason,
        metrics=[
            MetricValue(metric=str(measure), value=number(value), reason=reason(value))
            for measure, value in score.values.items()
        ],
    )
