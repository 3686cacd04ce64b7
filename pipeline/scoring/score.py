"""Items and means of a ranking held against a golden set: the tables ``rankings``, ``items`` and ``metrics``.

Every item is graded twice, as its row says (``row``, the headline) and by name. Nothing here depends on the order of
items, hits or queries.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import JsonValue

from pipeline.golden.resolve import ResolvedSet
from pipeline.scoring.grade import Grading
from pipeline.scoring.means import GRADINGS, ItemScore, Run, metric_rows, number, reason, score_item
from pipeline.scoring.rows import ITEMS, METRICS, RANKINGS, ItemRow, MetricRow, MetricValue, RankingRow

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["HEADLINE", "ITEMS", "METRICS", "RANKINGS", "Scored", "score_run"]

HEADLINE = ("recall@10", "hit@1", "mrr@100", "ndcg@10")
TIE_RANK = 10
"""The cut at which ties are reported."""


@dataclass(frozen=True)
class Scored:
    """The tables of one engine on one golden set."""

    rankings: pa.Table
    items: pa.Table
    metrics: pa.Table
    headline: tuple[MetricRow, ...]

    def facts(self) -> dict[str, JsonValue]:
        """Return the headline measures, for each grading."""
        return {"headline": [self._headline(grading) for grading in GRADINGS]}

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
        }


class Ranked(NamedTuple):
    """A hit of the ranking, with what was seen of its class."""

    rank: int
    raw_rank: int
    tap: str
    path: bytes
    path_text: str
    slug: str
    class_id: str
    score: float
    mirrors: int


class Words(NamedTuple):
    """What became of the words of a question."""

    unknown_words: Sequence[str] = ()
    empty_query: bool = False


def score_run(
    resolved: ResolvedSet, *, hits: pa.Table, queries: pa.Table, engine: str, corpus: str, class_rule: str
) -> Scored:
    """Score what one engine ranked for the items of one golden set.

    Args:
        resolved: the set, resolved in the corpus that was ranked.
        hits: columns query_id, raw_rank, rank (null for later mirrors), tap, path, path_text, slug, class_id, score;
            an item without a row abstained, and scores 0.
        queries: columns query_id, unknown_words, empty_query; an item without a row has neither.
        engine: name of the engine.
        corpus: digest of the corpus.
        class_rule: the class rule in force.

    Raises:
        ValueError: hits or queries are not of this set.
    """
    rankings, words = _rankings(hits), _words(queries)
    strangers = {*rankings, *words} - {one.item.query_id for one in resolved.items}
    if strangers:
        raise ValueError(f"hits or queries that {resolved.golden.name} does not ask: {sorted(strangers)}")
    run = Run(corpus, class_rule, resolved.golden.name, resolved.golden.digest, engine)
    scores = [
        score_item(one, grading, [(hit.class_id, hit.slug) for hit in rankings.get(one.item.query_id, [])])
        for grading in GRADINGS
        for one in resolved.items
    ]
    means = [
        row
        for grading in GRADINGS
        for row in metric_rows(run, grading, [score for score in scores if score.grading == grading])
    ]
    shown = [(score, rankings.get(score.item.query_id, [])) for score in scores]
    pinned = [(score, ranking) for score, ranking in shown if score.grading == "row"]
    return Scored(
        RANKINGS.from_rows(row for score, ranking in pinned for row in _hit_rows(run, score, ranking)),
        ITEMS.from_rows(_item_row(run, one, ranking, words.get(one.item.query_id, Words())) for one, ranking in shown),
        METRICS.from_rows(means),
        tuple(row for row in means if row.facet == "all" and row.metric in HEADLINE),
    )


def _rankings(hits: pa.Table) -> dict[str, list[Ranked]]:
    """Return the collapsed ranking of each query, best first."""
    columns = ["query_id", "rank", "raw_rank", "tap", "path", "path_text", "slug", "class_id", "score"]
    rows: list[dict[str, Any]] = hits.select(columns).to_pylist()
    entries = Counter((row["query_id"], row["class_id"]) for row in rows)
    rankings: dict[str, list[Ranked]] = {}
    for row in rows:
        if row["rank"] is not None:
            query_id = row.pop("query_id")
            rankings.setdefault(query_id, []).append(Ranked(**row, mirrors=entries[query_id, row["class_id"]] - 1))
    for ranking in rankings.values():
        ranking.sort(key=lambda hit: hit.rank)
    return rankings


def _words(queries: pa.Table) -> dict[str, Words]:
    rows: list[dict[str, Any]] = queries.select(["query_id", "unknown_words", "empty_query"]).to_pylist()
    return {row["query_id"]: Words(row["unknown_words"], row["empty_query"]) for row in rows}


def _hit_rows(run: Run, score: ItemScore, ranking: Sequence[Ranked]) -> Iterator[RankingRow]:
    for hit, gain, judged in zip(ranking, score.graded.gains.tolist(), score.graded.judged.tolist(), strict=True):
        yield RankingRow(
            golden_set=run.golden_set,
            query_id=score.item.query_id,
            engine=run.engine,
            **hit._asdict(),
            grade=int(gain) if judged else None,
            grade_source=score.mode if judged else None,
        )


def _item_row(run: Run, score: ItemScore, ranking: Sequence[Ranked], words: Words) -> ItemRow:
    item, scores = score.item, [hit.score for hit in ranking]
    found = [hit.rank for hit, gain in zip(ranking, score.graded.gains.tolist(), strict=True) if gain > 0]
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
        cluster_id=item.cluster_id,
        relevant=score.graded.ideal.size if score.mode else None,
        hits=len(ranking),
        abstained=not ranking,
        first_relevant_rank=found[0] if found else None,
        top_score=scores[0] if scores else None,
        tied_at_10=len(scores) > TIE_RANK and scores[TIE_RANK - 1] == scores[TIE_RANK],
        unknown_words=list(words.unknown_words),
        empty_query=words.empty_query,
        scored=score.reason is None,
        reason=score.reason,
        metrics=[
            MetricValue(metric=str(measure), value=number(value), reason=reason(value))
            for measure, value in score.values.items()
        ],
    )
