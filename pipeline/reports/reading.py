"""A published run, read back from its tables for the page."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from pydantic import JsonValue

from pipeline.checks.known import KNOWN_ITEM_ROWS
from pipeline.errors import MissingArtifact
from pipeline.errors import counted as counted
from pipeline.falloff.rows import FALLOFF, FALLOFF_FITS, FALLOFF_SUMMARIES
from pipeline.scoring.near import NEAR_METRICS
from pipeline.scoring.outcomes import JUDGED_METRICS
from pipeline.scoring.policies import ABSTENTION
from pipeline.scoring.rows import METRICS
from pipeline.store import canonical_json

if TYPE_CHECKING:
    import pyarrow as pa

TABLES = (
    "runs",
    "taps",
    "entries",
    "classes",
    "near_duplicate_clusters",
    "near_duplicate_members",
    "near_pairs",
    "template_families",
    "rankings",
    "items",
    "metrics",
    "near_metrics",
    "duplicate_tax",
    "sensitivity",
)
"""What the page is made from, beside ``checks``, ``known_items`` and the tables of falloff, which runs of earlier
releases lack. Nights differ between equal runs, and are left out."""

METRIC_KEY = ("run_id", *METRICS.key)
"""The columns that tell one row of ``metrics`` from every other, in all runs."""

HEADLINE = ("recall@10", "hit@1", "mrr@100", "ndcg@10")
DEPTHS = (1, 3, 5, 10, 20, 100)
GRADINGS = {"row": "as pinned", "name": "by name"}
"""How items are graded: as each row of the set says, or by name throughout; and how the page calls it."""

NOTHING = "\N{EN DASH}"
"""What stands where a value does not exist."""

Row = dict[str, JsonValue]
"""A row of a table, as plain values."""


class Cell(NamedTuple):
    """A mean as it is shown in the table of measures."""

    id: str
    value: str
    interval: str
    n: int
    upper_bounds: int
    """Items whose value is an upper bound, graded by a name that several contents carry."""
    label: str
    reason: str
    """Why there is no value; empty where there is one."""


class Cut(NamedTuple):
    """The first rows of a long list, and how many were left out."""

    rows: Sequence[object]
    more: int


def metric_id(row: Mapping[str, object]) -> str:
    """Return the short id under which the page shows a row of ``metrics``: 8 hex digits of the digest of its key."""
    return metric_digest(row)[:8]


def metric_digest(row: Mapping[str, object]) -> str:
    """Return the whole digest (SHA-256, hex) of the key of a row of ``metrics``."""
    key = canonical_json([row[column] for column in METRIC_KEY])
    return hashlib.sha256(key.encode("utf-8")).hexdigest()


def told_of_both(n: int, pinned: Mapping[str, float | None], by_name: Mapping[str, float | None]) -> str:
    """Say what two gradings come to over the ``n`` items that count under both, where they have different ones."""
    values = ((metric, *(_short(of[metric]) for of in (pinned, by_name))) for metric in HEADLINE)
    told = ", ".join(f"{metric} {first} and {second}" for metric, first, second in values)
    return f"over the {counted(n, 'question')} that {'has' if n == 1 else 'have'} both, as pinned and by name: {told}"


def _short(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.4f}"


FIGURES = {
    table.name: table.key
    for table in (FALLOFF, FALLOFF_FITS, FALLOFF_SUMMARIES, NEAR_METRICS, KNOWN_ITEM_ROWS, ABSTENTION, JUDGED_METRICS)
}
"""Tables beside ``metrics`` whose rows have ids, and the columns that tell their rows apart."""
DRAWN_KINDS = ("random", "entries")
"""Orders that are drawn several times: their points over all of them are those that are shown."""


def figure_id(table: str, row: Mapping[str, object]) -> str:
    """Return the short id under which a page shows a row of one of ``FIGURES``."""
    return figure_digest(table, row)[:8]


def figure_digest(table: str, row: Mapping[str, object]) -> str:
    """Return the whole digest (SHA-256, hex) of the table, the run or study, and the key of a row.

    A row of ``judged_metrics`` has the key of one of ``metrics``, which no row there has.
    """
    if table == JUDGED_METRICS.name:
        return metric_digest(row)
    owner = row.get("run_id", row.get("study_id"))
    key = canonical_json([table, owner, *(row.get(column) for column in FIGURES[table])])
    return hashlib.sha256(key.encode("utf-8")).hexdigest()


class Feed:
    """The tables of a run, read as rows where they are short and as columns where they are long."""

    def __init__(self, tables: Mapping[str, pa.Table]) -> None:
        """Read ``tables``.

        Raises:
            MissingArtifact: one of ``TABLES`` is not there.
        """
        missing = [name for name in TABLES if name not in tables]
        if missing:
            raise MissingArtifact(f"the page needs the tables {', '.join(missing)} of the run; run `assay score` first")
        self.entries, self.classes, self.rankings = (tables[name] for name in ("entries", "classes", "rankings"))
        (self.run,) = rows_of(tables["runs"])
        self.taps = sorted(rows_of(tables["taps"]), key=lambda row: text_of(row, "tap").encode())
        self.items = sorted(
            rows_of(tables["items"]), key=lambda row: _sort_key(row, "golden_set", "engine", "query_id")
        )
        self.metrics = sorted(rows_of(_shown_metrics(tables["metrics"])), key=lambda row: _sort_key(row, *METRIC_KEY))
        self.sensitivity, self.duplicate_tax = (
            sorted(rows_of(_headline(tables[name])), key=lambda row: HEADLINE.index(text_of(row, "metric")))
            for name in ("sensitivity", "duplicate_tax")
        )
        self.checks = rows_of(tables["checks"]) if "checks" in tables else []
        self.known_items = rows_of(tables["known_items"]) if "known_items" in tables else []
        self.near_metrics = {
            tuple(row[name] for name in ("golden_set", "engine", "grading", "metric")): row
            for row in rows_of(tables["near_metrics"])
        }
        self._at = {
            tuple(row[name] for name in ("golden_set", "engine", "grading", "facet", "facet_value", "metric")): row
            for row in self.metrics
        }
        self.gradings = [name for name in GRADINGS if any(row["grading"] == name for row in self.metrics)]
        self.evaluated = sorted({(text_of(row, "golden_set"), text_of(row, "engine")) for row in self.metrics})

    def metric(
        self, golden_set: str, engine: str, grading: str, metric: str, facet: str = "all", value: str = "*"
    ) -> Row | None:
        """Return a row of ``metrics``; None where it was not computed."""
        return self._at.get((golden_set, engine, grading, facet, value, metric))

    def items_of(self, golden_set: str, engine: str) -> list[Row]:
        """Return the items of a set under an engine, graded as each row of the set says."""
        return [
            row
            for row in self.items
            if (row["golden_set"], row["engine"], row["grading"]) == (golden_set, engine, "row")
        ]


def _shown_metrics(metrics: pa.Table) -> pa.Table:
    """Keep the rows of ``metrics`` that the page shows, of tens of thousands."""
    import pyarrow as pa
    import pyarrow.compute as pc

    shown = [*HEADLINE, "hit@10", *(f"recall@{k}" for k in DEPTHS)]
    wanted = {"treatment": ["removed"], "source_filter": ["all"], "aggregate": ["micro"], "metric": shown}
    for column, values in wanted.items():
        metrics = metrics.filter(pc.is_in(metrics[column], value_set=pa.array(sorted(set(values)))))
    return metrics


def _headline(table: pa.Table) -> pa.Table:
    """Keep the headline measures, as each row of the set says where there is a choice."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kept = table.filter(pc.is_in(table["metric"], value_set=pa.array(HEADLINE)))
    return kept.filter(pc.equal(kept["grading"], "row")) if "grading" in kept.column_names else kept


def rows_of(table: pa.Table) -> list[Row]:
    """Return the rows of a short table."""
    rows: list[Row] = table.to_pylist()
    return rows


def _sort_key(row: Row, *columns: str) -> tuple[str, ...]:
    return tuple(canonical_json(row[column]) for column in columns)


def records_of(row: Row, column: str) -> list[Row]:
    """Return a column that lists records; empty where it is null."""
    value = row[column]
    return [record for record in value if isinstance(record, dict)] if isinstance(value, list) else []


def names_of(row: Row, column: str) -> list[str]:
    """Return a column that lists texts; empty where it is null."""
    value = row[column]
    return [str(name) for name in value] if isinstance(value, list) else []


def text_of(row: Row, column: str) -> str:
    """Return a text; empty where it is null."""
    value = row[column]
    return "" if value is None else str(value)


def count_of(row: Row, column: str) -> int:
    """Return a count; 0 where it is null."""
    value = row[column]
    return value if isinstance(value, int) else 0


def number_of(row: Row | None, column: str) -> float | None:
    """Return a number; None where it is null or there is no row."""
    value = None if row is None else row[column]
    return float(value) if isinstance(value, int | float) else None


def cell_of(row: Row | None) -> Cell:
    """Return a row of ``metrics`` or ``near_metrics`` as it is shown; a dash and the reason where there is no value.

    It has the id of its row.
    """
    if row is None:
        return Cell("", NOTHING, "", 0, 0, "no items", "not computed")
    value = number_of(row, "value")
    return Cell(
        id=figure_id("near_metrics", row) if "exact" in row else metric_id(row),
        value=NOTHING if value is None else f"{value:.3f}",
        interval=_interval(row),
        n=count_of(row, "n"),
        upper_bounds=0 if "exact" in row else count_of(row, "n_upper_bound"),
        label=text_of(row, "label"),
        reason=(text_of(row, "reason") or "no reason given") if value is None else "",
    )


def _interval(row: Row) -> str:
    low, high = number_of(row, "ci_low"), number_of(row, "ci_high")
    return "" if low is None or high is None else between(f"{low:.3f}", f"{high:.3f}")


def between(low: object, high: object) -> str:
    """Return a range as text; one number where both ends are the same."""
    return f"{low}" if low == high else f"{low}\N{EN DASH}{high}"


def left_out(more: int, table: str) -> str:
    """Say how many rows a chart leaves out and where they stand; nothing where it leaves out none."""
    return f" And {more:,} more, in {table}.parquet." if more > 0 else ""
