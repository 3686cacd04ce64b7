"""How a golden set was answered, in short: what a night tells of it without reading a table."""

from __future__ import annotations

from pydantic import Field

from pipeline.records import Record
from pipeline.scoring import Signal
from pipeline.scoring.failures import FailureClass


class Answered(Record):
    """How one golden set was answered under one engine, by the signal that decides."""

    golden_set: str = Field(description="Name of the set.")
    engine: str = Field(description="Name of the engine.")
    signal: Signal = Field(description="The signal that decides.")
    truthfulness: float | None = Field(description="At the fitted threshold, all items; null: no answer is judged.")
    always_answer: float | None = Field(description="The same if it always answered. Always abstaining gives 0.")
    false_answer_rate: float | None = Field(description="Share of the items without an answer that are answered.")
    n_unanswerable: int = Field(description="Items without an answer.")
    false_abstention_rate: float | None = Field(description="Share of the answerable items that are not answered.")
    n_answerable: int = Field(description="Answerable items.")
    label: str = Field(description="What the number of items without an answer allows to say.")
    failures: dict[FailureClass, int] = Field(description="Failures by kind, of those kinds that there are.")
    answerable_now: list[str] = Field(description="Items that no answer was known of, and that have one now.")
