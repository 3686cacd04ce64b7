"""What each hit of an item is worth. Identity fills ranks; the row of the golden set decides what is relevant.

A relevant item is a slot that one hit fills: a name (by name), all exemplars together (match ``any``), or one exemplar
class (match ``all``). The first hit of a slot gains 1; later ones keep their rank and add nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from pipeline.golden.items import GoldenItem, Mode
from pipeline.golden.resolve import Resolved
from pipeline.scoring.measures import Graded

Grading = Literal["row", "name", "qrels"]
"""``row``: rows with exemplars on those, the others by name. ``name``: every row that has names by name. ``qrels``:
each class by its resolved judgments, 0 to 3, whatever the row says."""
Treatment = Literal["removed", "irrelevant", "unmodified"]
"""Of later mirrors: they leave the ranking; they stay and score nothing; or every entry counts for itself."""

_ONE_ANSWER = "all exemplars"


class Hit(NamedTuple):
    """What grading looks at in a ranked entry."""

    class_id: str
    slug: str


def mode_of(item: GoldenItem, grading: Grading) -> Mode | None:
    """Return how ``item`` is graded; None where nothing can be relevant."""
    if grading == "row":
        return item.mode
    return "name" if item.relevant else None


def grade(resolved: Resolved, mode: Mode | None, hits: Sequence[Hit], treatment: Treatment = "removed") -> Graded:
    """Grade a ranking of entries for an item.

    Args:
        resolved: the item, and what it names in the corpus.
        mode: what ``mode_of`` returns for it.
        hits: ranked entries, best first, mirrors included or collapsed already.
        treatment: what becomes of later mirrors.

    Returns:
        Gains of 0 and 1, one for each hit that stays. A hit that belongs to a slot counts as judged, and so does one
        whose class a decision of the row excludes; each such class is a 0 among what is judged.
    """
    wrong = judged_wrong(resolved, mode)
    slots: dict[str, str | None] = {}
    filled: set[str] = set()
    gains, judged = [], []
    for hit in hits:
        mirror = hit.class_id in slots
        if mirror and treatment == "removed":
            continue
        # A mirror is what the shown entry of its class is, whatever it is called itself.
        slot = slots[hit.class_id] if mirror and treatment != "unmodified" else _slot(resolved, mode, hit)
        slots.setdefault(hit.class_id, slot)
        counts = treatment == "unmodified" or (not mirror and slot not in filled)
        gains.append(float(slot is not None and counts))
        judged.append(slot is not None or hit.class_id in wrong)
        if slot is not None:
            filled.add(slot)
    ideal = np.repeat([1.0, 0.0], [_relevant_items(resolved, mode, treatment), len(wrong)])
    return Graded(np.array(gains, dtype=np.float64), np.array(judged, dtype=np.bool_), ideal)


def judged_wrong(resolved: Resolved, mode: Mode | None) -> frozenset[str]:
    """Return the classes that a decision excludes, but for those that the row itself takes for right."""
    if mode is None:
        return frozenset()
    right = resolved.candidates if mode == "name" else resolved.classes
    return frozenset(resolved.excluded) - {*right}


def _slot(resolved: Resolved, mode: Mode | None, hit: Hit) -> str | None:
    """Return the relevant item that a hit would fill."""
    if mode == "name":
        return hit.slug if hit.slug in resolved.item.relevant else None
    if mode == "exemplar" and hit.class_id in resolved.classes:
        return hit.class_id if resolved.item.match == "all" else _ONE_ANSWER
    return None


def _relevant_items(resolved: Resolved, mode: Mode | None, treatment: Treatment) -> int:
    if mode is None:
        return 0
    if treatment == "unmodified":
        return resolved.name_entries if mode == "name" else resolved.class_entries
    if mode == "name":
        return len(resolved.item.relevant)
    return len(resolved.classes) if resolved.item.match == "all" else 1
