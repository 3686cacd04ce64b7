"""What answers an item, read back from a published run: its right answers as slots, and which hit filled which.

A slot is a right answer that one hit fills: a name, all exemplars together, or one exemplar class of a row that wants
them all. The first hit of a slot is worth 1, later ones 0; a hit of no slot is unjudged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from pipeline.reports.reading import Row, count_of, names_of, rows_of, text_of

if TYPE_CHECKING:
    import pyarrow as pa

_CLASS = "class:"


class Slot(NamedTuple):
    """A right answer of an item."""

    wanted: str
    """The name, or the exemplars, as the item's row has them."""
    classes: tuple[str, ...]
    """Content classes that can fill it, sorted."""


class Credit(NamedTuple):
    """What a hit is worth."""

    slot: int | None
    """Place of the slot it belongs to, from 0; None where it belongs to none."""
    grade: int | None
    """1 where it fills its slot, 0 where a better hit has or somebody judged it wrong; None where it is unjudged."""


class Answers:
    """The classes of a published run, by what a golden row can name."""

    def __init__(self, entries: pa.Table) -> None:
        """Read the table ``entries``."""
        rows = rows_of(entries.select(["tap", "path", "path_text", "slug", "class_id", "body_sha256"]))
        self._by_slug: dict[str, set[str]] = {}
        self._by_exemplar: dict[str, set[str]] = {}
        for row in rows:
            class_id = text_of(row, "class_id")
            self._by_slug.setdefault(text_of(row, "slug"), set()).add(class_id)
            self._by_exemplar.setdefault(_CLASS + text_of(row, "body_sha256"), set()).add(class_id)
            self._by_exemplar.setdefault(f"{row['tap']}::{row['path_text']}", set()).add(class_id)
        # A path's own bytes come before the form in which another path is shown.
        for row in rows:
            path = row["path"]
            if isinstance(path, bytes) and (own := _decoded(path)) is not None:
                self._by_exemplar[f"{row['tap']}::{own}"] = {text_of(row, "class_id")}

    def slots(self, item: Row) -> list[Slot]:
        """Return the right answers of an item of ``items``, in the order of its row; none where it is not graded."""
        wanted = names_of(item, "wanted")
        if item["mode"] == "name":
            return [Slot(name, tuple(sorted(self._by_slug.get(name, ())))) for name in wanted]
        classes = sorted({class_id for exemplar in wanted for class_id in self._by_exemplar[exemplar]})
        if count_of(item, "relevant") <= 1:
            return [Slot(", ".join(wanted), tuple(classes))] if classes else []
        return [Slot(class_id, (class_id,)) for class_id in classes]


def credits(item: Row, slots: Sequence[Slot], hits: Iterable[Row]) -> list[Credit]:
    """Return what each hit of an item's ranking, best first, is worth under the item's own grading."""
    by_name = item["mode"] == "name"
    places = {key: place for place, slot in enumerate(slots) for key in ([slot.wanted] if by_name else slot.classes)}
    filled: set[int] = set()
    found = []
    for hit in hits:
        place = places.get(text_of(hit, "slug" if by_name else "class_id"))
        found.append(Credit(place, _judged_wrong(item, hit) if place is None else int(place not in filled)))
        if place is not None:
            filled.add(place)
    return found


def _judged_wrong(item: Row, hit: Row) -> int | None:
    """Return 0 where a hit that answers nothing is judged all the same: the table has the judgments of the rows."""
    return 0 if item["grading"] == "row" and hit["grade"] == 0 else None


def _decoded(path: bytes) -> str | None:
    try:
        return path.decode("utf-8")
    except UnicodeDecodeError:
        return None
