"""Forecasts in the feed: what a tap was said to change, and, once it is admitted, what it did change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pydantic import Field

from pipeline.falloff.rows import FORECASTS, Forecast
from pipeline.records import Table
from pipeline.reports.feed import published_runs, read_run
from pipeline.reports.reading import HEADLINE, number_of, rows_of

if TYPE_CHECKING:
    import pyarrow as pa

    from pipeline.reports.reading import Row
    from pipeline.store import Store

NOT_YET = "no run of these taps with this one more is published yet"
NO_RUN_BEFORE = "no run of the same taps without it is published, with the same set and options"
NO_VALUE = "a run has no value"


class ForecastRow(Forecast):
    """A forecast in the feed, and what became of it."""

    forecast_id: str = Field(description="Digest of everything that can change the forecast.")
    pin: str = Field(description="The commit at which the tap was read.")
    corpus_before: str = Field(description="Corpus digest of the taps without it.")
    corpus_after: str = Field(description="Corpus digest with it.")
    class_rule: str = Field(description="The class rule in force.")
    golden_digest: str = Field(description="Digest of the frozen set.")
    options: str = Field(description="Options of the engine, as canonical JSON.")
    run_before: str | None = Field(description="A run of the corpus without the tap; null where none is published.")
    run_after: str | None = Field(description="A run of the corpus with the tap; null until it is admitted.")
    realised_before: float | None = Field(description="The mean in the run without the tap.")
    realised_after: float | None = Field(description="The mean in the run with it.")
    realised: float | None = Field(description="After minus before: what the tap did change.")
    error: float | None = Field(description="What it did change minus what was forecast.")
    within: bool | None = Field(description="Whether what it did change lies in the forecast's interval.")
    outcome: str | None = Field(description="Why nothing is known of what it did; null where it is.")


FORECAST_ROWS = Table("forecasts", ForecastRow, ("forecast_id", *FORECASTS.key))


def forecast_file(store: Store, row: ForecastRow) -> Path:
    """Return where the forecast is published. The name begins with the corpora that score it, with the tap first."""
    corpora = f"{row.corpus_after[:16]}.{row.corpus_before[:16]}"
    return store.feed / "forecasts" / f"{corpora}.{row.forecast_id[:16]}.parquet"


def publish_forecast(store: Store, rows: Sequence[ForecastRow]) -> list[ForecastRow]:
    """Publish a forecast; return its rows, with the outcome where a run of these taps is published already."""
    runs = _runs(store)
    scored = [_scored(row, runs) for row in rows]
    _write(store, forecast_file(store, rows[0]), scored)
    return scored


def record_outcomes(store: Store, paths: Sequence[Path]) -> list[str]:
    """Put beside the forecasts of some files what the published runs say of them. Known outcomes stay.

    Returns:
        What came of recall@10 as pinned, a line each where it is known now.
    """
    runs = _runs(store) if paths else []
    came: list[ForecastRow] = []
    for path in paths:
        before = [ForecastRow.model_validate(row) for row in rows_of(_read(path))]
        after = [_scored(row, runs) for row in before]
        if after != before:
            _write(store, path, after)
        came += [new for old, new in zip(before, after, strict=True) if old.realised is None is not new.realised]
    return [_told(row) for row in came if (row.grading, row.metric) == ("row", HEADLINE[0])]


def _told(row: ForecastRow) -> str:
    said, came = ("unknown" if value is None else f"{value:+.4f}" for value in (row.change, row.realised))
    within = {True: ", within the interval", False: ", outside of the interval", None: ""}[row.within]
    about = f"{row.tap} on {row.golden_set} with {row.engine}"
    return f"forecast of {about}: {row.metric} was said to change by {said} and changed by {came}{within}"


def _read(path: Path) -> pa.Table:
    import pyarrow.parquet as pq

    return pq.ParquetFile(path).read()


def _write(store: Store, path: Path, rows: Sequence[ForecastRow]) -> None:
    store.replace(path, FORECAST_ROWS.to_bytes(FORECAST_ROWS.from_rows(rows)))


class _Run(NamedTuple):
    """A published run: over what, and by what."""

    run_id: str
    corpus: str
    class_rule: str
    golden: dict[str, str]
    """Digest of each set, by name."""
    options: dict[str, str]
    """Options of each engine that ran, by name."""
    store: Store

    def tells_of(self, row: ForecastRow, corpus: str) -> bool:
        """Say whether it measured what the forecast is about, over ``corpus``."""
        return (
            (self.corpus, self.class_rule) == (corpus, row.class_rule)
            and self.golden.get(row.golden_set) == row.golden_digest
            and self.options.get(row.engine) == row.options
        )

    def value(self, row: ForecastRow) -> float | None:
        """Return the mean that the forecast is about."""
        import pyarrow.compute as pc

        metrics = read_run(self.store, self.run_id, ["metrics"])["metrics"]
        wanted = {
            **{name: getattr(row, name) for name in ("golden_set", "engine", "grading", "metric")},
            **{"treatment": "removed", "facet": "all", "source_filter": "all", "aggregate": "micro"},
        }
        for column, value in wanted.items():
            metrics = metrics.filter(pc.equal(metrics[column], value))
        found = rows_of(metrics.slice(0, 1))
        return number_of(found[0], "value") if found else None


def _runs(store: Store) -> list[_Run]:
    return [_run(store, run_id, row) for run_id in published_runs(store) for row in _rows(store, run_id)]


def _rows(store: Store, run_id: str) -> Iterator[Row]:
    yield from rows_of(read_run(store, run_id, ["runs"])["runs"])


def _run(store: Store, run_id: str, row: Row) -> _Run:
    sets, engines = row["golden_sets"], row["engines"]
    assert isinstance(sets, list) and isinstance(engines, list)
    return _Run(
        run_id,
        str(row["corpus"]),
        str(row["class_rule"]),
        {str(each["name"]): str(each["digest"]) for each in sets if isinstance(each, dict)},
        {str(each["engine"]): str(each["options"]) for each in engines if isinstance(each, dict)},
        store,
    )


def _scored(row: ForecastRow, runs: Sequence[_Run]) -> ForecastRow:
    """Return the row with its outcome; one that has it already stays as it is."""
    if row.realised is not None:
        return row
    after = next((run for run in runs if run.tells_of(row, row.corpus_after)), None)
    before = next((run for run in runs if run.tells_of(row, row.corpus_before)), None)
    ends = [None if run is None else run.value(row) for run in (before, after)]
    change = None if ends[0] is None or ends[1] is None else ends[1] - ends[0]
    known = change is not None and row.low is not None and row.high is not None
    why = NOT_YET if after is None else NO_RUN_BEFORE if before is None else NO_VALUE
    return row.model_copy(
        update={
            "run_before": None if before is None else before.run_id,
            "run_after": None if after is None else after.run_id,
            "realised_before": ends[0],
            "realised_after": ends[1],
            "realised": change,
            "error": None if change is None or row.change is None else change - row.change,
            "within": row.low <= change <= row.high if known else None,  # type: ignore[operator]
            "outcome": why if change is None else None,
        }
    )
