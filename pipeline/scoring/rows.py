"""The rows of the tables ``rankings``, ``items`` and ``metrics``."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pipeline.golden.items import Dynamism, Mode, Popularity, QuestionType, Split
from pipeline.records import Record, Table
from pipeline.scoring.grade import Grading, Treatment
from pipeline.scoring.intervals import Label


class MetricValue(Record):
    """A measure of an item."""

    metric: str = Field(description="Canonical name of the measure.")
    value: float | None = Field(description="The value; null where it is undefined.")
    reason: str | None = Field(description="Why it is undefined; null where it is not.")


class RankingRow(Record):
    """A hit: one content class in the ranking of an item."""

    golden_set: str = Field(description="Name of the set.")
    query_id: str = Field(description="Id of the item.")
    engine: str = Field(description="Name of the engine.")
    rank: int = Field(description="Rank among the classes, from 1 to 100.")
    raw_rank: int = Field(description="Rank among the entries, before mirrors left.")
    class_id: str = Field(description="The content class.")
    tap: str = Field(description="Tap of the shown entry: the best placed one of the class.")
    path: bytes = Field(description="Path of the shown entry, as bytes.")
    path_text: str = Field(description="Path of the shown entry, readable.")
    slug: str = Field(description="Name of the shown entry.")
    score: float = Field(description="Score of the shown entry, above 0.")
    grade: int | None = Field(
        description="1: it answers; 0: it answers what a better hit answered already, or a decision excludes it; null: "
        "unjudged. As the row says."
    )
    grade_source: Literal["exemplar", "name", "decision"] | None = Field(
        description="What the grade comes from: an exemplar, a name or a decision; null: unjudged."
    )
    mirrors: int = Field(description="Mirrors that left the ranking in favour of this hit, above its last class.")


class ItemRow(Record):
    """An item under an engine and a grading."""

    golden_set: str = Field(description="Name of the set.")
    query_id: str = Field(description="Id of the item.")
    engine: str = Field(description="Name of the engine.")
    grading: Grading = Field(description="`row`: as the row says, the headline; `name`: by name.")
    mode: Mode | None = Field(description="How the item was graded: on its exemplars or by name; null: not at all.")
    upper_bound: bool = Field(description="Graded by name, and a name has several classes: an upper bound.")
    question: str = Field(description="What is asked.")
    wanted: list[str] = Field(description="What answers it by this grading: exemplars as `tap::path`, or names.")
    kind: str | None = Field(description="Kind of entry that is wanted.")
    answerable: bool = Field(description="Whether the corpus holds an answer.")
    question_type: QuestionType | None = Field(description="Type of the question.")
    popularity: Popularity | None = Field(description="How often such a thing is asked.")
    dynamism: Dynamism | None = Field(description="How fast the answer changes.")
    split: Split | None = Field(description="What the item may be used for.")
    language: str = Field(description="Language of the question.")
    target_tap: str | None = Field(
        description="Tap of the entries that its exemplars name, or, without one, that carry its names; `(several)` "
        "where they lie in more than one; null where it has no answer."
    )
    cluster_id: str = Field(description="Items that are not independent share one.")
    relevant: int | None = Field(description="Number of relevant items; null where the item is not graded.")
    hits: int = Field(description="Classes ranked.")
    abstained: bool = Field(description="Whether there was no hit.")
    first_relevant_rank: int | None = Field(description="Rank of the first relevant hit; null where there is none.")
    top_score: float | None = Field(description="Score of the first hit; null where there is none.")
    tied_at_1: bool = Field(description="Whether ranks 1 and 2 have equal scores, so that their order is arbitrary.")
    tied_at_10: bool = Field(description="Whether ranks 10 and 11 have.")
    tied_at_100: bool = Field(description="Whether rank 100 and the next one below the cut have.")
    other_language_hits: int = Field(
        description="Hits among the first ten that are locale copies in another language than the question's."
    )
    lookup_equal: bool | None = Field(
        description="Whether every measure is the same by name and pinned, where each name of the row has exactly one "
        "class; null where one has several, or the row has no name."
    )
    lookup_reason: str | None = Field(description="Why it is not the same; null where it is.")
    unknown_words: list[str] = Field(description="Words of the question that no document holds.")
    empty_query: bool = Field(description="Whether no word of the question was left to search for.")
    scored: bool = Field(description="Whether the item counts in the means.")
    reason: str | None = Field(description="Why it does not; null where it does.")
    metrics: list[MetricValue] = Field(description="Every measure of the item.")


class MetricRow(Record):
    """A mean over the items of a facet."""

    corpus: str = Field(description="Digest of the corpus.")
    class_rule: str = Field(description="The class rule in force.")
    golden_set: str = Field(description="Name of the set.")
    golden_digest: str = Field(description="Digest of the frozen set.")
    engine: str = Field(description="Name of the engine.")
    grading: Grading = Field(
        description="`row`: as the row says, the headline; `name`: by name; `qrels`: by judgments, 0 to 3."
    )
    treatment: Treatment = Field(
        description="What became of later mirrors: `removed`, the headline; `irrelevant`, they keep their rank and "
        "score nothing; `unmodified`, every entry counts for itself. The latter two have no rows for single values of "
        "a facet."
    )
    source_filter: str = Field(
        description="Judgments that count: `all`, or `human+provenance` alone; it matters to the grading `qrels`."
    )
    k: int | None = Field(description="Cut of the measure.")
    facet: str = Field(description="`all`, or what the items are told apart by.")
    facet_value: str = Field(description="Value of the facet, `(none)` where items have none; `*`: all of them.")
    aggregate: Literal["micro", "macro"] = Field(
        description="`micro`: mean over items; `macro`: mean over the means of the facet's values, `(none)` among them."
    )
    metric: str = Field(description="Canonical name of the measure.")
    value: float | None = Field(description="The mean; null where no item has a value.")
    reason: str | None = Field(description="Why it is null.")
    n: int = Field(description="Clusters of the items that have a value.")
    n_items: int = Field(description="Items, those without a value included.")
    n_null: int = Field(description="Items without a value: not answerable, without a relevant item, or undefined.")
    n_upper_bound: int = Field(description="Items with a value that is an upper bound, by name on an ambiguous name.")
    ci_low: float | None = Field(description="Lower bound of the 95% interval: Wilson for hit@k, else Student's t.")
    ci_high: float | None = Field(description="Upper bound; null, as the lower, for macro means and under 2 clusters.")
    label: Label = Field(description="What n allows to say.")
    judged_at_k: float | None = Field(description="Mean of judged@k at the cut of the measure, over the same items.")


RANKINGS = Table("rankings", RankingRow, ("golden_set", "query_id", "engine", "rank"))
ITEMS = Table("items", ItemRow, ("golden_set", "query_id", "engine", "grading"))
METRICS = Table(
    "metrics",
    MetricRow,
    (
        "corpus",
        "class_rule",
        "golden_set",
        "golden_digest",
        "engine",
        "grading",
        "treatment",
        "source_filter",
        "facet",
        "facet_value",
        "aggregate",
        "metric",
    ),
)
