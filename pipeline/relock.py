"""Measure the counts of the same pins again, and write them into the tap list. No pin moves, nothing is scored."""

from __future__ import annotations

from typing import NamedTuple

from pipeline.stages import count, read_taps
from pipeline.store import replace_file
from pipeline.taps.snapshot import verdict
from pipeline.taps.taplist import relocked, written_text
from pipeline.workspace import Workspace, find_catalog


class CountChange(NamedTuple):
    """A count of the tap list that is not what the pinned tree holds."""

    tap: str
    field: str
    before: int | None
    after: int


def relock(workspace: Workspace, write: bool) -> list[CountChange]:
    """Measure every tap at its pin and, with ``write``, put the counts into the tap list, all else byte for byte.

    Raises:
        Unsound, Outage: a tap cannot be read; nothing is written.
    """
    taps = workspace.settings.tap_list()
    states = read_taps(workspace, taps.taps)
    verdict([state for state in states if state.state != "drift"])
    counts = {}
    for tap in taps.taps:
        made = find_catalog(workspace, tap)
        counts[tap.name] = (count(made, "entries"), count(made, "classes"))
    changes = [
        CountChange(tap.name, field, before, after)
        for tap in taps.taps
        for field, before, after in zip(
            ("entries", "classes"), (tap.entries, tap.classes), counts[tap.name], strict=True
        )
        if before != after
    ]
    if write and changes:
        text = relocked(written_text(taps), counts)
        replace_file(taps.path, text.encode("utf-8"))
    return changes
