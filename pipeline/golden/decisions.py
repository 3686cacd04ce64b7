"""Decisions: which classes a person counted as answers of a row, and why. They keep the judging rule in data.

A class is included where someone who asked that question would be helped by it; it is excluded where it does another
job, or is a copy in another language.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from pipeline.records import Record

DecisionReason = Literal["helps", "different_job", "locale_copy", "alias_stub", "other"]

Named = Annotated[str, Field(pattern=r"\S")]


class Decision(Record):
    """What somebody decided about one class, for one row."""

    model_config = ConfigDict(populate_by_name=False)

    class_: str | None = Field(
        default=None,
        alias="class",
        pattern=r"^class:[0-9a-f]{64}$",
        description="The content, `class:<body digest>`. Give this or `entry`.",
    )
    entry: str | None = Field(
        default=None, pattern=r"^[^:]+::.", description="An entry of the class, `tap::path`. Give this or `class`."
    )
    include: bool = Field(description="Whether the class counts as an answer.")
    reason: DecisionReason = Field(description="Why. `helps` only includes; what is not `other` only excludes.")
    by: Named = Field(description="Who decided.")
    note: str | None = Field(default=None, description="For people; required where the reason is `other`.")

    @property
    def target(self) -> str:
        """What it is about, as an exemplar would name it."""
        return self.class_ or self.entry or ""


def decision_faults(decisions: Sequence[Decision]) -> Iterator[tuple[str, str, str]]:
    """Yield field, what is wrong and what to do, for what the fields of decisions say against each other."""
    targets = [decision.target for decision in decisions]
    for place, decision in enumerate(decisions, start=1):
        field = f"decisions {place}"
        if (decision.class_ is None) == (decision.entry is None):
            what = "names neither a class nor an entry" if decision.class_ is None else "names a class and an entry"
            yield field, what, "give `class` or `entry`, and only one of them"
        elif decision.target in targets[: place - 1]:
            yield field, f"decides about {decision.target!r} again", "keep one"
        if decision.reason == "other" and not (decision.note or "").strip():
            yield f"{field} note", "is missing where the reason is `other`", "say why"
        if decision.reason != "other" and decision.include != (decision.reason == "helps"):
            verb = "includes" if decision.include else "excludes"
            yield f"{field} reason", f"{decision.reason!r} {verb} nothing", "mend `include` or `reason`"
