"""Known items: entries that are asked for by their own names, to see how often a name alone finds its content.

It is a measure and no check: where several contents carry a name, no engine can tell which of them is meant. Its
questions are drawn, nobody asked them, so it stands in a table of its own, apart from the golden sets.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from pydantic import Field

from pipeline.checks.sampling import drawn
from pipeline.engines import Query, Retriever
from pipeline.records import Record, Table
from pipeline.scoring.intervals import Label, label, wilson
from pipeline.store import Stage

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from pipeline.engines.ranking import Ranking

KNOWN_ITEMS = Stage("known-items", 1)
SAMPLED = 200
"""Entries that are asked for."""
CUT = 10
"""The content must stand among this many first classes."""
NO_INDEX = "it ranks what others ranked, and was not asked for names"


class MissedItem(Record):
    """A known item that was not found."""

    tap: str = Field(description="Tap of the entry.")
    path_text: str = Field(description="Path of the entry, readable.")
    name: str = Field(description="Its name, which was asked for.")
    ambiguous: bool = Field(description="Whether other classes carry its slug too.")
    rank: int | None = Field(description="Rank of its class, from 11 to 100; null where it is not ranked.")


class KnownItemsRow(Record):
    """How often an engine finds a content by the exact name of its first entry."""

    engine: str = Field(description="Name of the engine.")
    metric: str = Field(description="Canonical name of the measure: `hit@10`.")
    value: float | None = Field(description="Share of the sampled entries whose class is found; null: none was asked.")
    reason: str | None = Field(description="Why it is null.")
    n: int = Field(description="Entries asked for: firsts of their classes, drawn by the digest of tap and path.")
    ci_low: float | None = Field(description="Lower bound of the 95% interval, by Wilson.")
    ci_high: float | None = Field(description="Upper bound.")
    label: Label = Field(description="What n allows to say.")
    n_ambiguous: int = Field(description="Those of them whose slug other classes carry too.")
    value_unambiguous: float | None = Field(description="The share among the others; null where there are none.")
    misses: list[MissedItem] = Field(description="Those that were not found, by tap and path.")


KNOWN_ITEM_ROWS = Table("known_items", KnownItemsRow, ("engine",))


class Known(NamedTuple):
    """An entry that is asked for."""

    row: int
    """Its row in the corpus."""
    tap: str
    path_text: str
    name: str
    ambiguous: bool


def draw(entries: pa.Table) -> list[Known]:
    """Draw the entries that are asked for, in the order of the corpus; mirrors are not drawn.

    Those whose digests are smallest: so a corpus that grew by a tap asks for nearly the same entries.

    Args:
        entries: the corpus in ``(tap, path)`` order, with the columns tap, path, path_text, name, homonyms, mirror.
    """
    import numpy as np
    import pyarrow as pa

    firsts = np.flatnonzero(~np.asarray(entries["mirror"]))
    places = entries.select(["tap", "path"]).take(pa.array(firsts)).to_pydict()
    names = (tap.encode("utf-8") + b"\0" + path for tap, path in zip(places["tap"], places["path"], strict=True))
    chosen = [int(firsts[place]) for place in drawn(names, "known items", SAMPLED)]
    shown = entries.select(["tap", "path_text", "name", "homonyms"]).take(pa.array(chosen, pa.int64())).to_pylist()
    return [
        Known(place, row["tap"], row["path_text"], row["name"], row["homonyms"] > 0)
        for place, row in zip(chosen, shown, strict=True)
    ]


def ask(engine: str, retriever: Retriever, entries: pa.Table) -> KnownItemsRow:
    """Ask an engine for a sample of the entries of its corpus, and say how often it finds them.

    Args:
        engine: its name.
        retriever: the engine over the corpus.
        entries: what ``draw`` takes, and the column class_id.
    """
    import numpy as np

    from pipeline.engines.ranking import order

    known = draw(entries)
    codes = np.asarray(entries["class_id"].combine_chunks().dictionary_encode().indices)
    answers = retriever.answer([Query(str(place), each.name) for place, each in enumerate(known)])
    ranks = [_rank(codes, order(answer, codes), codes[each.row]) for each, answer in zip(known, answers, strict=True)]
    return _row(engine, known, ranks)


def not_asked(engine: str) -> KnownItemsRow:
    """Return the row of an engine that has no index to ask."""
    return _row(engine, [], []).model_copy(update={"reason": NO_INDEX})


def _rank(codes: NDArray[np.integer], ranking: Ranking, wanted: int) -> int | None:
    import numpy as np

    found = np.flatnonzero(codes[ranking.entries] == wanted)
    return int(ranking.ranks[found[0]]) if found.size else None


def _row(engine: str, known: Sequence[Known], ranks: Sequence[int | None]) -> KnownItemsRow:
    found = [rank is not None and rank <= CUT for rank in ranks]
    clear = [hit for each, hit in zip(known, found, strict=True) if not each.ambiguous]
    value = _share(found)
    interval = None if value is None else wilson(value, len(known))
    return KnownItemsRow(
        engine=engine,
        metric=f"hit@{CUT}",
        value=value,
        reason="the corpus has no entry" if value is None else None,
        n=len(known),
        ci_low=interval.low if interval else None,
        ci_high=interval.high if interval else None,
        label=label(len(known)),
        n_ambiguous=len(known) - len(clear),
        value_unambiguous=_share(clear),
        misses=[
            MissedItem(tap=each.tap, path_text=each.path_text, name=each.name, ambiguous=each.ambiguous, rank=rank)
            for each, rank, hit in zip(known, ranks, found, strict=True)
            if not hit
        ],
    )


def _share(found: Sequence[bool]) -> float | None:
    return sum(found) / len(found) if found else None
