"""What stands behind one number, one question or one run: rows of the published tables, put together to be read."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from pydantic import Field, JsonValue

from pipeline.records import Record
from pipeline.reports.answers import Answers, credits
from pipeline.reports.behind import items_behind
from pipeline.reports.feed import EngineRow, GoldenSetRow, StageRow, StudyRow
from pipeline.reports.reading import (
    DRAWN_KINDS,
    FIGURES,
    GRADINGS,
    HEADLINE,
    Row,
    count_of,
    figure_digest,
    metric_digest,
    metric_id,
    names_of,
    number_of,
    records_of,
    rows_of,
    text_of,
)
from pipeline.scoring.grade import Grading
from pipeline.scoring.rows import MetricValue

if TYPE_CHECKING:
    import pyarrow as pa

TABLES = ("runs", "entries", "rankings", "items", "metrics")
"""The tables of a run that are read."""
FIGURE_TABLES = (*FIGURES, "metrics", "outcomes")
"""The tables that figures beside the means stand in, and are made from."""
ITEM_TREATMENT = "removed"
"""The treatment of mirrors under which the values of items are published."""
_EVERY_ITEM = "*"
_NO_VALUE = "(none)"


class Origin(Record):
    """The run that a number belongs to: every digest that it follows from."""

    run_id: str = Field(description="Digest of everything that can change a result.")
    corpus: str = Field(description="Corpus digest: sha256 of the sorted lines `name pin`.")
    class_rule: str = Field(description="The class rule in force.")
    taps: int = Field(description="Taps in the corpus.")
    entries: int = Field(description="Entries in the corpus.")
    classes: int = Field(description="Content classes in the corpus.")
    golden_sets: list[GoldenSetRow] = Field(description="The golden sets behind it, with their digests.")
    engines: list[EngineRow] = Field(description="The engines behind it, with fingerprints and options.")
    stages: list[StageRow] = Field(description="Version of each stage.")


class Reproduction(Record):
    """How to make the same number again."""

    command: str | None = Field(description="Command for a POSIX shell; null where it cannot be made from here.")
    missing: list[str] = Field(description="What differs here from the run; empty where there is a command.")


class ShownHit(Record):
    """A hit of an item's ranking."""

    rank: int = Field(description="Rank among the classes, from 1.")
    class_id: str = Field(description="The content class.")
    tap: str = Field(description="Tap of the shown entry.")
    path: str = Field(description="Path of the shown entry, readable.")
    slug: str = Field(description="Name of the shown entry.")
    score: float = Field(description="Score of the shown entry.")
    grade: int | None = Field(description="1: it answers; 0: judged, and worth nothing; null: unjudged.")


class ShownItem(Record):
    """An item with its ranking."""

    golden_set: str = Field(description="Name of the set.")
    engine: str = Field(description="Name of the engine.")
    grading: Grading = Field(description="`row`: as the row says; `name`: by name.")
    query_id: str = Field(description="Id of the item.")
    question: str = Field(description="What is asked.")
    mode: str | None = Field(description="How it was graded; null: not at all.")
    wanted: list[str] = Field(description="What answers it.")
    values: list[MetricValue] = Field(description="The measure that is explained, or all measures of the item.")
    hits: list[ShownHit] = Field(description="The first hits.")


class Part(Record):
    """A mean that a macro mean is the mean of."""

    id: str = Field(description="Its id.")
    facet_value: str = Field(description="Value of the facet.")
    value: float | None = Field(description="The mean; null where no item has a value.")
    n_items: int = Field(description="Items.")


class ExplainedMetric(Record):
    """One number and what stands behind it."""

    kind: Literal["metric"] = "metric"
    id: str = Field(description="Id of the number.")
    metric: dict[str, JsonValue] = Field(description="Its row of the table `metrics`.")
    mean_of_items: float | None = Field(
        description="The mean of the items' values, computed again; null where there is none, or the number is no mean "
        "over items."
    )
    parts: list[Part] = Field(description="For a macro mean: the means that it is the mean of.")
    items: list[ShownItem] = Field(description="The items that it counts.")
    origin: Origin
    reproduction: Reproduction


class ExplainedQuery(Record):
    """A question, under every engine and grading of a run."""

    kind: Literal["query"] = "query"
    id: str = Field(description="Id of the item.")
    items: list[ShownItem] = Field(description="One for each set, engine and grading.")
    origin: Origin
    reproduction: Reproduction


class Figure(Record):
    """A headline measure of a run."""

    id: str = Field(description="Its id.")
    golden_set: str = Field(description="Name of the set.")
    engine: str = Field(description="Name of the engine.")
    grading: Grading = Field(description="`row`: as the row says; `name`: by name.")
    metric: str = Field(description="Name of the measure.")
    value: float | None = Field(description="The mean; null where no item has a value.")
    label: str = Field(description="What n allows to say.")


class ExplainedRun(Record):
    """A run: what identifies it, and its headline."""

    kind: Literal["run"] = "run"
    id: str = Field(description="Id of the run.")
    configuration: str = Field(description="Everything that the id is the digest of, as canonical JSON.")
    headline: list[Figure] = Field(description="The headline measures, each with its id.")
    origin: Origin
    reproduction: Reproduction


class Behind(Record):
    """Rows of a table that a figure is made from."""

    table: str = Field(description="Name of the table.")
    rows: list[dict[str, JsonValue]] = Field(description="Its rows.")


class ExplainedFigure(Record):
    """A figure that is no mean of `metrics`: of a curve, a second number, known items, by judgments, of abstaining."""

    kind: Literal["figure"] = "figure"
    id: str = Field(description="Id of the figure.")
    table: str = Field(description="The table that it stands in.")
    row: dict[str, JsonValue] = Field(description="Its row, lists left out.")
    behind: list[Behind] = Field(description="What it is made from, of the tables that are published.")
    origin: Origin | StudyRow = Field(description="The run or the study that it belongs to.")
    reproduction: Reproduction


Explained = ExplainedMetric | ExplainedQuery | ExplainedRun | ExplainedFigure


class Figured:
    """The figures of a run or a study beside its means, to look up what stands behind one."""

    def __init__(self, tables: Mapping[str, pa.Table]) -> None:
        """Take the tables of ``FIGURES`` and those behind them, as far as they are there."""
        self._tables = {name: _shown_points(table) if name == "falloff" else table for name, table in tables.items()}
        self._whole = tables

    def like(self, wanted: str) -> list[tuple[str, str, Row]]:
        """Return digest, table and row of the figures whose digest begins with ``wanted``."""
        return sorted(
            (
                (digest, name, row)
                for name in FIGURES
                if name in self._tables
                for row in rows_of(self._tables[name])
                if (digest := figure_digest(name, row)).startswith(wanted)
            ),
            key=lambda found: found[:2],
        )

    def behind(self, table: str, row: Row) -> list[Behind]:
        """Return what a figure is made from."""
        curve = ("golden_set", "engine", "order_kind", "grading", "treatment", "metric")
        if table == "falloff_summaries":
            other = {**row, "engine": row["against"]} if row["summary"] == "engine crossing" else None
            points = [self._same("falloff", each, curve) for each in (row, other) if each is not None]
            return [*points, self._same("falloff_fits", row, curve)]
        if table == "falloff_fits":
            return [self._same("falloff", row, curve)]
        if table == "falloff":
            orders = self._same("falloff", row, (*curve, "step"), whole=True)
            return [orders.model_copy(update={"rows": [each for each in orders.rows if each["seed"] is not None]})]
        if table == "near_metrics":
            means = self._same("metrics", row, ("golden_set", "engine", "grading", "metric"))
            headline = {"facet": "all", "treatment": ITEM_TREATMENT, "aggregate": "micro", "source_filter": "all"}
            kept = [each for each in means.rows if all(each[name] == value for name, value in headline.items())]
            return [means.model_copy(update={"rows": kept})]
        if table in ("abstention", "judged_metrics") and "outcomes" in self._whole:
            return [Behind(table="outcomes", rows=items_behind(table, row, rows_of(self._whole["outcomes"])))]
        return []

    def _same(self, table: str, row: Row, columns: Sequence[str], *, whole: bool = False) -> Behind:
        import pyarrow.compute as pc

        found = (self._whole if whole else self._tables)[table]
        for column in columns:
            found = found.filter(pc.equal(found[column], row[column]))
        return Behind(table=table, rows=rows_of(found))


def without_lists(row: Row) -> dict[str, JsonValue]:
    """Return what of a row can be shown as facts."""
    return {name: value for name, value in row.items() if not isinstance(value, list)}


def _shown_points(falloff: pa.Table) -> pa.Table:
    """Return the points that pages show: over all orders where they were drawn."""
    import pyarrow as pa
    import pyarrow.compute as pc

    drawn = pc.is_in(falloff["order_kind"], value_set=pa.array(DRAWN_KINDS))
    return falloff.filter(pc.or_(pc.is_null(falloff["seed"]), pc.invert(drawn)))


class Published:
    """The tables of a run, to look up what stands behind a number."""

    def __init__(self, tables: Mapping[str, pa.Table], hits: int = 10) -> None:
        """Take the tables named in ``TABLES``, and how many ``hits`` of each ranking are shown."""
        (self.run,) = rows_of(tables["runs"])
        self.items = rows_of(tables["items"])
        self.metrics = {metric_digest(row): row for row in rows_of(tables["metrics"])}
        self._rankings = tables["rankings"]
        self._answers = Answers(tables["entries"])
        self._hits = hits

    def metrics_like(self, wanted: str) -> list[str]:
        """Return the digests of the rows of ``metrics`` that begin with ``wanted``."""
        return sorted(found for found in self.metrics if found.startswith(wanted))

    def queries_like(self, wanted: str) -> list[str]:
        """Return the id of the item that is called ``wanted``, or nothing."""
        return [wanted] if any(item["query_id"] == wanted for item in self.items) else []

    def explain_metric(self, digest: str, reproduction: Reproduction) -> ExplainedMetric:
        """Explain the row of ``metrics`` with this digest."""
        row = self.metrics[digest]
        counted = [item for item in self.items if _counts(item, row)]
        shown = self._shown(counted, text_of(row, "metric"))
        if row["treatment"] != ITEM_TREATMENT:
            why = f"of mirrors {row['treatment']}, only the mean is published"
            none = [MetricValue(metric=text_of(row, "metric"), value=None, reason=why)]
            shown = [item.model_copy(update={"values": none}) for item in shown]
        values = [value.value for item in shown for value in item.values if value.value is not None]
        micro = row["aggregate"] == "micro"
        return ExplainedMetric(
            id=digest[:8],
            metric=row,
            mean_of_items=math.fsum(values) / len(values) if values and micro else None,
            parts=[] if micro else self._parts(row),
            items=shown,
            origin=self.origin({text_of(row, "golden_set")}, {text_of(row, "engine")}),
            reproduction=reproduction,
        )

    def explain_query(self, query_id: str, reproduction: Reproduction) -> ExplainedQuery:
        """Explain an item under every set, engine and grading that has it."""
        shown = self._shown([item for item in self.items if item["query_id"] == query_id])
        sets, engines = ({getattr(item, name) for item in shown} for name in ("golden_set", "engine"))
        return ExplainedQuery(id=query_id, items=shown, origin=self.origin(sets, engines), reproduction=reproduction)

    def explain_run(self, reproduction: Reproduction) -> ExplainedRun:
        """Explain the run itself."""
        found = [
            row
            for row in self.metrics.values()
            if row["facet"] == "all" and row["metric"] in HEADLINE and row["treatment"] == ITEM_TREATMENT
        ]
        found.sort(key=lambda row: (*_order(row), HEADLINE.index(text_of(row, "metric"))))
        names = ("golden_set", "engine", "grading", "metric", "value", "label")
        return ExplainedRun(
            id=text_of(self.run, "run_id"),
            configuration=text_of(self.run, "configuration"),
            headline=[
                Figure.model_validate({"id": metric_id(row)} | {name: row[name] for name in names}) for row in found
            ],
            origin=self.origin(),
            reproduction=reproduction,
        )

    def origin(self, sets: set[str] | None = None, engines: set[str] | None = None) -> Origin:
        """Return the digests of the run, of these sets and engines or of all."""
        return Origin(
            **{name: text_of(self.run, name) for name in ("run_id", "corpus", "class_rule")},  # type: ignore[arg-type]
            **{name: count_of(self.run, name) for name in ("taps", "entries", "classes")},  # type: ignore[arg-type]
            golden_sets=[
                GoldenSetRow.model_validate(row)
                for row in records_of(self.run, "golden_sets")
                if sets is None or row["name"] in sets
            ],
            engines=[
                EngineRow.model_validate(row)
                for row in records_of(self.run, "engines")
                if engines is None or row["engine"] in engines
            ],
            stages=[StageRow.model_validate(row) for row in records_of(self.run, "stages")],
        )

    def _parts(self, row: Row) -> list[Part]:
        same = [name for name in row if name not in (*_MEAN, "facet_value", "aggregate")]
        parts = [
            part
            for part in self.metrics.values()
            if part["aggregate"] == "micro" and all(part[name] == row[name] for name in same)
        ]
        return [
            Part(
                id=metric_id(part),
                facet_value=text_of(part, "facet_value"),
                value=number_of(part, "value"),
                n_items=count_of(part, "n_items"),
            )
            for part in sorted(parts, key=lambda part: text_of(part, "facet_value"))
        ]

    def _shown(self, items: Sequence[Row], metric: str | None = None) -> list[ShownItem]:
        rankings = self._rankings_of(items)
        return [
            self._item(item, metric, rankings.get((*_place(item)[:2], text_of(item, "query_id")), []))
            for item in sorted(items, key=lambda item: (text_of(item, "query_id"), *_order(item)))
        ]

    def _item(self, item: Row, metric: str | None, ranking: Sequence[Row]) -> ShownItem:
        worth = credits(item, self._answers.slots(item), ranking)
        values = [MetricValue.model_validate(value) for value in records_of(item, "metrics")]
        return ShownItem.model_validate(
            {
                **{name: item[name] for name in ("golden_set", "engine", "grading", "query_id", "question", "mode")},
                "wanted": names_of(item, "wanted"),
                "values": [value for value in values if metric in (None, value.metric)],
                "hits": [
                    {
                        **{name: hit[name] for name in ("rank", "class_id", "tap", "slug", "score")},
                        "path": hit["path_text"],
                        "grade": credit.grade,
                    }
                    for hit, credit in list(zip(ranking, worth, strict=True))[: self._hits]
                ],
            }
        )

    def _rankings_of(self, items: Sequence[Row]) -> dict[tuple[str, ...], list[Row]]:
        import pyarrow as pa
        import pyarrow.compute as pc

        wanted = pa.array(sorted({text_of(item, "query_id") for item in items}), type=pa.string())
        rows = rows_of(self._rankings.filter(pc.is_in(self._rankings["query_id"], value_set=wanted)))
        rankings: dict[tuple[str, ...], list[Row]] = {}
        for row in sorted(rows, key=lambda row: count_of(row, "rank")):
            key = (text_of(row, "golden_set"), text_of(row, "engine"), text_of(row, "query_id"))
            rankings.setdefault(key, []).append(row)
        return rankings


_MEAN = ("value", "reason", "n", "n_items", "n_null", "n_upper_bound", "ci_low", "ci_high", "label", "judged_at_k")
"""The columns of ``metrics`` that say what was found; the others say of what."""


def _place(row: Row) -> tuple[str, str, str]:
    return text_of(row, "golden_set"), text_of(row, "engine"), text_of(row, "grading")


def _order(row: Row) -> tuple[str, str, int]:
    return text_of(row, "golden_set"), text_of(row, "engine"), [*GRADINGS].index(text_of(row, "grading"))


def _counts(item: Row, row: Row) -> bool:
    """Return whether the mean ``row`` is over ``item``, or leaves it out with a reason."""
    if _place(item) != _place(row):
        return False
    return row["facet_value"] == _EVERY_ITEM or facet_value(item[text_of(row, "facet")]) == row["facet_value"]


def facet_value(value: JsonValue) -> str:
    """Return the value of an item's column as a facet of the table ``metrics`` has it."""
    if value is None:
        return _NO_VALUE
    return ("true" if value else "false") if isinstance(value, bool) else str(value)
