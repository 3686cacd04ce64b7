"""What a night notes of its steps, and what its row in the feed keeps of that."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from rich.console import Console

from pipeline.records import parquet_bytes
from pipeline.reports.feed import Night, NightRow, Step, StepDetail, night_file, read_night
from pipeline.store import Store
from pipeline.terminal import Watch

PLAIN = Step(stage="index", subject="bm25 acme/skills", source="computed", seconds=0.5)
TOLD = PLAIN.model_copy(update={"detail": "3 of 412 entries tokenized"})


@pytest.fixture
def night(tmp_path: Path) -> Night:
    return Night(Store(tmp_path), "20261130T000000Z-00000000")


def closed(night: Night, *steps: Step) -> NightRow:
    for step in steps:
        night.note(step)
    at = datetime(2026, 11, 30, tzinfo=UTC)
    night.close(at, at)
    return read_night(night.store, night.id)


def test_how_an_output_was_made_stands_in_the_row_of_the_night(night: Night) -> None:
    row = closed(night, PLAIN, TOLD)
    assert row.details == [
        StepDetail(stage="index", subject="bm25 acme/skills", detail="3 of 412 entries tokenized"),
    ]


def test_a_night_with_nothing_to_tell_tells_nothing(night: Night) -> None:
    assert closed(night, PLAIN).details == []


def test_a_night_from_before_there_were_details_is_still_read(night: Night) -> None:
    row = closed(night, TOLD)
    file = night_file(night.store, night.id)
    file.write_bytes(parquet_bytes(pq.read_table(file).drop_columns(["details"])))
    assert read_night(night.store, night.id) == row.model_copy(update={"details": []})


def test_a_terminal_shows_how_an_output_was_made() -> None:
    shown = io.StringIO()
    with Watch(console=Console(file=shown, width=200)) as watch:
        watch(TOLD)
        watch(PLAIN)
    assert shown.getvalue().splitlines() == [
        "index     bm25 acme/skills: computed in 0.50 s, 3 of 412 entries tokenized",
        "index     bm25 acme/skills: computed in 0.50 s",
    ]
