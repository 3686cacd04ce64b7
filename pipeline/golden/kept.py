"""Golden sets and concepts that the ledger keeps, in the form of files, so that both are read alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from pipeline.golden.items import KEPT
from pipeline.store import canonical_json

CONCEPTS_PLACE = Path(f"{KEPT} concepts")
"""What faults of concepts name that the ledger keeps."""

Row = Mapping[str, Any]


def set_lines(items: Sequence[Row], decisions: Sequence[Row]) -> dict[str, list[str]]:
    """Return the rows of each set, by its name, with what was decided about them.

    Args:
        items: rows of the table ``golden_items``.
        decisions: rows of the table ``decisions``, in the order of adding.
    """
    sets: dict[str, list[str]] = {}
    for row, item in zip(items, decided(items, decisions), strict=True):
        sets.setdefault(row["golden_set"], []).append(canonical_json(item))
    return {name: sorted(lines) for name, lines in sorted(sets.items())}


def decided(items: Sequence[Row], decisions: Iterable[Row]) -> list[dict[str, JsonValue]]:
    """Return the items with the decisions that somebody added to them later.

    A decision is about the version that was asked when it was made; a later version begins anew, as in a file. Of two
    about the same content, as it is written, the later counts.
    """
    whole: list[dict[str, Any]] = [dict(row["item"]) for row in items]
    for decision in decisions:
        versions = [
            (row["item_version"], place)
            for place, row in enumerate(items)
            if _item_of(row) == _item_of(decision) and row["position"] <= decision["position"]
        ]
        if versions:
            item = whole[max(versions)[1]]
            item["decisions"] = with_decision(item.get("decisions") or [], decision["decision"])
    return whole


def with_decision(decisions: Iterable[Mapping[str, JsonValue]], new: Mapping[str, JsonValue]) -> list[JsonValue]:
    """Return the decisions of an item with one more, in place of one about the same content."""
    return [*(dict(each) for each in decisions if _target(each) != _target(new)), dict(new)]


def concept_lines(concepts: Iterable[Row]) -> list[str]:
    """Return each concept as a line, its highest version."""
    newest = {row["concept_id"]: row for row in sorted(concepts, key=lambda row: int(row["version"]))}
    return [canonical_json(row["concept"]) for _, row in sorted(newest.items())]


def _target(decision: Mapping[str, JsonValue]) -> JsonValue:
    return decision.get("class") or decision.get("entry")


def _item_of(row: Row) -> tuple[str, str]:
    return row["golden_set"], row["query_id"]
