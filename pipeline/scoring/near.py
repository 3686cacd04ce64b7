"""The second, labelled number: the same rankings, with near-duplicate clusters taken for classes.

Exact classes decide the headline. Here the bodies of a cluster of copies fill one rank, as if a person had confirmed
it; template families and clusters whose names are confusable stay apart. How far the two numbers lie apart says how
much of a ranking is filled by small edits of one skill. Rankings hold 100 exact classes, which make fewer here, so
measures without a cut see a little less deep.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from pydantic import Field

from pipeline.golden.resolve import ResolvedSet
from pipeline.records import Record, Table
from pipeline.scoring.grade import Grading, Hit
from pipeline.scoring.intervals import Label
from pipeline.scoring.means import Run, metric_rows, score_item
from pipeline.scoring.rows import MetricRow

if TYPE_CHECKING:
    import pyarrow as pa

TOP = 10


class NearMetricRow(Record):
    """A mean over all items with near-duplicate clusters as classes, beside the one with exact classes."""

    corpus: str = Field(description="Digest of the corpus.")
    class_rule: str = Field(description="The class rule of the exact classes.")
    golden_set: str = Field(description="Name of the set.")
    golden_digest: str = Field(description="Digest of the frozen set.")
    engine: str = Field(description="Name of the engine.")
    grading: Grading = Field(description="`row`: as the row says, the headline; `name`: by name.")
    metric: str = Field(description="Canonical name of the measure.")
    k: int | None = Field(description="Cut of the measure.")
    value: float | None = Field(description="The mean with near-duplicate clusters as classes; null without a value.")
    exact: float | None = Field(description="The mean with exact classes: the headline.")
    reason: str | None = Field(description="Why there is no value.")
    n: int = Field(description="Clusters of the items that have a value.")
    n_items: int = Field(description="Items, those without a value included.")
    n_null: int = Field(description="Items without a value.")
    n_moved: int = Field(description="Items of which two of the first ten classes are one cluster, so that hits moved.")
    ci_low: float | None = Field(description="Lower bound of the 95% interval of `value`.")
    ci_high: float | None = Field(description="Upper bound.")
    label: Label = Field(description="What n allows to say.")


NEAR_METRICS = Table("near_metrics", NearMetricRow, ("golden_set", "engine", "grading", "metric"))


class Copies(NamedTuple):
    """Bodies that are copies of each other but for small edits."""

    cluster_of: Mapping[str, str]
    """The cluster of each such body, by the digest of the body."""


NO_COPIES = Copies({})


def copies(clusters: pa.Table, members: pa.Table) -> Copies:
    """Return the bodies of the clusters that are read as copies of one skill.

    Args:
        clusters: rows of ``NearDuplicateCluster``.
        members: rows of ``ClusterMember``.
    """
    reading = dict(zip(clusters["cluster_id"].to_pylist(), clusters["reading"].to_pylist(), strict=True))
    bodies = zip(members["body_sha256"].to_pylist(), members["cluster_id"].to_pylist(), strict=True)
    return Copies({body: cluster for body, cluster in bodies if reading[cluster] == "copies"})


def joined_classes(entries: pa.Table, near: Copies) -> dict[str, str]:
    """Return for each content class that is joined with another the id of what they become.

    A class may hold several bodies (a person joined them) and a cluster several classes, so both kinds of tie count.

    Args:
        entries: columns class_id and body_sha256 of the corpus.
        near: which bodies are copies.
    """
    parent: dict[str, str] = {}

    def root(one: str) -> str:
        while parent.setdefault(one, one) != one:
            parent[one] = one = parent[parent[one]]
        return one

    for class_id, body in zip(entries["class_id"].to_pylist(), entries["body_sha256"].to_pylist(), strict=True):
        if body in near.cluster_of:
            left, right = root(class_id), root("near:" + near.cluster_of[body])
            parent[max(left, right)] = min(left, right)
    return {class_id: root(class_id) for class_id in list(parent) if not class_id.startswith("near:")}


def near_metric_rows(
    run: Run,
    resolved: ResolvedSet,
    rankings: Mapping[str, Sequence[Hit]],
    becomes: Mapping[str, str],
    exact: Sequence[MetricRow],
) -> Iterator[NearMetricRow]:
    """Yield the means with near-duplicate clusters as classes.

    Args:
        run: what the rows share.
        resolved: the set, resolved among entries whose classes are joined.
        rankings: ranked entries of each query, best first, mirrors included, under their exact classes.
        becomes: what each joined class becomes.
        exact: the means with exact classes; those over all items, as the headline takes them, stand beside.
    """
    beside = {(row.grading, row.metric): row for row in exact if _is_headline(row)}
    near = {
        query: [Hit(becomes.get(hit.class_id, hit.class_id), hit.slug) for hit in hits]
        for query, hits in rankings.items()
    }
    moved = sum(_classes(rankings[query], TOP, becomes) < _classes(rankings[query], TOP, {}) for query in rankings)
    for grading in ("row", "name"):
        scores = [score_item(one, grading, near.get(one.item.query_id, ())) for one in resolved.items]
        for row in metric_rows(run, grading, scores):
            if _is_headline(row):
                yield NearMetricRow(
                    **row.model_dump(include=_SHARED),
                    exact=beside[grading, row.metric].value,
                    n_moved=moved,
                )


_SHARED = set(NearMetricRow.model_fields) - {"exact", "n_moved"}


def _is_headline(row: MetricRow) -> bool:
    return row.facet == "all" and row.treatment == "removed" and row.aggregate == "micro"


def _classes(hits: Sequence[Hit], top: int, becomes: Mapping[str, str]) -> int:
    """Count what the first ``top`` exact classes of a ranking are under ``becomes``."""
    first = list(dict.fromkeys(hit.class_id for hit in hits))[:top]
    return len({becomes.get(class_id, class_id) for class_id in first})
