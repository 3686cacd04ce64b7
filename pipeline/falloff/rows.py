"""The rows of the tables of falloff: ``falloff`` and its fits, summaries and notes, ``attribution``, ``forecasts``."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pipeline.falloff import Statistics
from pipeline.records import Record, Table
from pipeline.scoring.grade import Grading, Treatment
from pipeline.scoring.intervals import Label

OrderKind = Literal["random", "first_seen", "size", "confuser", "entries"]
"""``random``: whole taps at random; ``first_seen``: the oldest tap first; ``size``: the smallest first; ``confuser``:
the worst confuser first; ``entries``: single entries drawn uniformly."""
Regime = Literal["taps", "entries"]
"""Whether whole taps join or single entries. Curves of the two never share an axis."""
ModelName = Literal["log-linear", "logistic", "power"]
Summary = Literal["loss per doubling", "half size", "floor crossing", "engine crossing"]
Outlook = Literal["hurts", "helps", "no change shown"]
BELOW = "below it at the smallest size already"
"""Why a floor is crossed at no size."""
SAME_ORDER = "the same order as seed"
"""Why a seed has no order of its own begins with this."""


class FalloffPoint(Record):
    """A measure at one size: in one order, or over all orders of a kind."""

    golden_set: str = Field(description="Name of the set.")
    golden_digest: str = Field(description="Digest of the frozen set.")
    engine: str = Field(description="Name of the engine.")
    regime: Regime = Field(
        description="What joins the targets: whole `taps`, or single `entries` drawn uniformly. The two share no axis."
    )
    order_kind: OrderKind = Field(description="In what order they join.")
    statistics: Statistics = Field(
        description="What the weights of words are taken from: each `subset`, as an index of it would have them, or "
        "the whole corpus, `global`."
    )
    seed: int | None = Field(description="Number of a drawn order; null: over all orders of the kind.")
    step: int = Field(description="Number of the size, from 1.")
    nominal: int = Field(description="The size that was asked for; a point is the smallest prefix of at least so many.")
    entries: int = Field(description="Entries that there are; over all orders, their lower median.")
    classes: int = Field(description="Content classes that there are; over all orders, their lower median.")
    taps: int = Field(
        description="Taps that there are, those without entries included; over all orders, their lower median."
    )
    grading: Grading = Field(
        description="`row`: as the row says, the headline; `name`: by name; `qrels`: by judgments, of what abstaining "
        "is worth."
    )
    treatment: Treatment = Field(description="What became of later mirrors, as in `metrics`.")
    metric: str = Field(description="Canonical name of the measure.")
    k: int | None = Field(description="Cut of the measure; null where it has none.")
    value: float | None = Field(description="The mean over items, of each the mean over the orders.")
    reason: str | None = Field(description="Why it is null.")
    n: int = Field(description="Clusters of the items that have a value.")
    n_items: int = Field(description="Items of the set.")
    n_null: int = Field(description="Items without a value, those whose target is no part of the targets included.")
    n_absent: int = Field(
        description="Items that are left out of every point, since what they ask for is not in the smallest subset."
    )
    label: Label = Field(description="What n allows to say.")
    judged_at_k: float | None = Field(description="Mean of judged@k at the cut of the measure.")
    gap: float | None = Field(
        description="By name minus as pinned, over the items that have both; null where grading is `row`."
    )
    orders: int = Field(description="Orders that the row is over: 1 where it is of one order.")
    order_low: float | None = Field(description="2.5th percentile over orders; null for one order.")
    order_high: float | None = Field(description="97.5th percentile over orders; null for one order.")
    query_low: float | None = Field(
        description="2.5th percentile over clusters of items, drawn anew; null where the row is one of several orders."
    )
    query_high: float | None = Field(description="97.5th percentile; null as the lower.")
    bootstrap_seed: int = Field(description="Seed of the draws of clusters.")


class FalloffFit(Record):
    """A model fitted to a curve."""

    golden_set: str = Field(description="Name of the set.")
    engine: str = Field(description="Name of the engine.")
    order_kind: OrderKind = Field(description="In what order taps or entries join.")
    grading: Grading = Field(description="`row` or `name`.")
    treatment: Treatment = Field(description="What became of later mirrors.")
    metric: str = Field(description="Canonical name of the measure.")
    statistics: Statistics = Field(description="As in `falloff`.")
    model: ModelName = Field(description="The model, in x = log2 of the number of entries.")
    a: float | None = Field(description="log-linear: a + b x; logistic: 1 / (1 + exp(-(a + b x))); power: 2^(a + b x).")
    b: float | None = Field(description="As above.")
    error: float | None = Field(description="Root mean square of the residuals over all sizes.")
    held_out_error: float | None = Field(description="The same over the largest sizes, fitted on the others alone.")
    held_out: int = Field(description="Sizes that were held out.")
    chosen: bool = Field(description="Whether its held-out error is the least.")
    smallest: int = Field(description="Entries of the smallest subset.")
    largest: int = Field(description="Entries of the largest; nothing is said beyond twice as many.")
    reason: str | None = Field(description="Why there is no fit.")


class FalloffSummary(Record):
    """A figure read off a curve."""

    golden_set: str = Field(description="Name of the set.")
    engine: str = Field(description="Name of the engine.")
    order_kind: OrderKind = Field(description="In what order taps or entries join.")
    grading: Grading = Field(description="`row` or `name`.")
    treatment: Treatment = Field(description="What became of later mirrors.")
    metric: str = Field(description="Canonical name of the measure.")
    statistics: Statistics = Field(description="As in `falloff`.")
    summary: Summary = Field(description="What the figure is.")
    against: str = Field(description="The floor, or the other engine; empty for the others.")
    value: float | None = Field(
        description="Loss per doubling: in units of the measure; the others: a number of entries. Null: not reached."
    )
    low: float | None = Field(description="2.5th percentile over clusters and orders drawn anew; null: not reached.")
    high: float | None = Field(description="97.5th percentile; null: not reached.")
    reached: float | None = Field(
        description="Share of the draws in which the size is reached; null where nothing was drawn, and of a loss."
    )
    reason: str | None = Field(description="Why the value is null.")


class FalloffNote(Record):
    """Something that was asked for of a curve and is not there, or that a reader of it must know."""

    golden_set: str = Field(description="Name of the set.")
    engine: str = Field(description="Name of the engine; `*`: of every engine.")
    order_kind: OrderKind = Field(description="In what order taps or entries join.")
    what: str = Field(description="What it is about: an order, a curve.")
    reason: str = Field(description="Why it is not there, or what there is to know.")


class Attribution(Record):
    """What a tap, or one class of it, took from a lost query."""

    golden_set: str = Field(description="Name of the set.")
    query_id: str = Field(description="The item: found among the first k in the smallest subset, and not in the whole.")
    engine: str = Field(description="Name of the engine.")
    grading: Grading = Field(description="`row` or `name`.")
    k: int = Field(description="Depth at which the item counts as found.")
    tap: str = Field(description="The tap.")
    class_id: str = Field(description="A class of the tap that outranks the target in the whole corpus; `*`: the tap.")
    rank: int | None = Field(description="Rank of the class in the whole corpus; of `*`, its best.")
    slug: str | None = Field(description="Name of the shown entry; null for `*`.")
    classes_above: int = Field(
        description="Classes of the tap that outrank the target in the whole corpus, at most 100."
    )
    share: float = Field(
        description="Of the lost query: how often the tap's joining lost it, less how often it brought it back, over "
        "all orders. The taps of a query add up to 1. Of a class: an equal part of its tap's."
    )
    orders: int = Field(description="Orders that the share is over.")
    statistics: Statistics = Field(description="As in `falloff`.")
    recovered_without: bool | None = Field(description="Whether the query is found once this tap alone is left out.")


class Forecast(Record):
    """What a tap would change if it were admitted."""

    golden_set: str = Field(description="Name of the set.")
    engine: str = Field(description="Name of the engine.")
    tap: str = Field(description="The tap.")
    grading: Grading = Field(description="`row` or `name`.")
    metric: str = Field(description="Canonical name of the measure, later mirrors removed.")
    before: float | None = Field(description="The mean without the tap.")
    after: float | None = Field(description="The mean with it.")
    change: float | None = Field(description="After minus before, over the items that have both.")
    low: float | None = Field(description="2.5th percentile of the change over clusters drawn anew.")
    high: float | None = Field(description="97.5th percentile.")
    outlook: Outlook | None = Field(
        description="What the interval says; null of measures that say how much is known, not how good it is."
    )
    taken: list[str] = Field(description="Items found among the first k without the tap, and not with it.")
    brought: list[str] = Field(description="Items found with it only.")
    entries: int = Field(description="Entries of the tap.")
    mirrors: int = Field(description="Entries of the tap whose class the corpus has already.")
    reason: str | None = Field(description="Why the change is null, or why nothing is made of it.")


FALLOFF = Table(
    "falloff",
    FalloffPoint,
    ("golden_set", "engine", "order_kind", "seed", "step", "grading", "treatment", "metric"),
)
FALLOFF_FITS = Table(
    "falloff_fits",
    FalloffFit,
    ("golden_set", "engine", "order_kind", "grading", "treatment", "metric", "model"),
)
FALLOFF_SUMMARIES = Table(
    "falloff_summaries",
    FalloffSummary,
    ("golden_set", "engine", "order_kind", "grading", "treatment", "metric", "summary", "against"),
)
FALLOFF_NOTES = Table("falloff_notes", FalloffNote, ("golden_set", "engine", "order_kind", "what"))
ATTRIBUTION = Table("attribution", Attribution, ("golden_set", "query_id", "engine", "grading", "tap", "class_id"))
FORECASTS = Table("forecasts", Forecast, ("golden_set", "engine", "tap", "grading", "metric"))
