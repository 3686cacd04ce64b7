"""The section of the page on failures: by kind, with the ranking that caused each, its state, and what to do."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from pipeline.reports.charts import visible
from pipeline.reports.reading import Cut, Feed, Row, count_of, counted, names_of, number_of, rows_of, text_of
from pipeline.scoring.failures import FAILURE_CLASSES

if TYPE_CHECKING:
    import pyarrow as pa

CUT = 10
"""An item fails when no right answer stands among this many first hits."""
MOST_FAILURES = 60
DIGITS = 8
"""Digits of a key that are shown."""
STATES = {
    "": "new: this night entered it into the queue",
    "open": "open",
    "triaged": "looked at",
    "corrected": "corrected, and not promoted yet",
    "promoted": "promoted: a permanent test asks it too",
    "rejected": "rejected: somebody said that it is none",
    "duplicate": "repeats another item",
}
"""What a state of the queue is called; none: the queue did not hold it."""


class Hit(NamedTuple):
    """An entry that was ranked."""

    rank: int
    name: str
    tap: str
    path: str
    description: str
    score: str
    right: bool


class Miss(NamedTuple):
    """An item that failed."""

    query_id: str
    question: str
    outcome: str
    wanted: list[str]
    hits: list[Hit]
    state: str
    """What the queue knew of it; empty where the run does not say."""
    correction: str
    commands: list[str]
    """What corrects and promotes it; nothing where nothing more happens to it."""


class Kind(NamedTuple):
    """The failures of one kind."""

    name: str
    """Empty where the run does not tell kinds."""
    meaning: str
    total: int
    misses: list[Miss]


class Failures(NamedTuple):
    """The failures of one engine on one golden set."""

    golden_set: str
    engine: str
    anchor: str
    asked: int
    failed: int
    kinds: list[Kind]
    more: int
    """Failures that are not shown."""
    by_kind: bool
    best: bool
    """Whether its recall@10 is the highest: on paper only its questions are unfolded."""


class Wanted(NamedTuple):
    """What a user asked and did not get."""

    golden_set: str
    question: str
    shown: list[str]
    wanted: list[str]
    state: str
    commands: list[str]


def failures(feed: Feed, tables: Mapping[str, pa.Table]) -> list[Failures]:
    """Return what failed, by set and engine.

    A run that has the table ``feedback`` tells kinds; of one of an earlier release the failures are the scored items
    without a right answer among the first ten hits.
    """
    hits = Hits(feed)
    best = max(feed.evaluated, key=lambda each: _recall(feed, *each), default=None)
    queued = {_item_key(row): row for row in _queue(tables) if row["source"] == "run"}
    by_kind = "feedback" in tables
    groups = []
    for place, (golden_set, engine) in enumerate(feed.evaluated, 1):
        items = feed.items_of(golden_set, engine)
        asked = items if by_kind else [item for item in items if item["scored"]]
        failed = {name: [] for name in FAILURE_CLASSES} if by_kind else {"": []}  # type: dict[str, list[Row]]
        for item in asked:
            row = queued.get(_item_key(item))
            if by_kind and row is not None:
                failed[text_of(row, "failure_class")].append(item)
            elif not by_kind and not 1 <= count_of(item, "first_relevant_rank") <= CUT:
                failed[""].append(item)
        groups.append(
            Failures(
                golden_set,
                engine,
                f"failures-{place}",
                len(asked),
                sum(map(len, failed.values())),
                *_shown(failed, hits, queued),
                by_kind,
                (golden_set, engine) == best,
            )
        )
    return groups


def _queue(tables: Mapping[str, pa.Table]) -> list[Row]:
    return rows_of(tables["feedback"]) if "feedback" in tables else []


def _shown(
    failed: Mapping[str, Sequence[Row]], hits: Hits, queued: Mapping[tuple[str, ...], Row]
) -> tuple[list[Kind], int]:
    """Return the kinds that there are, with as many failures as fit the page, and how many do not."""
    room = MOST_FAILURES
    kinds = []
    for name, items in failed.items():
        if items:
            meaning = FAILURE_CLASSES[name] if name else ""  # type: ignore[index]
            shown = [_miss(item, hits, queued.get(_item_key(item))) for item in items[:room]]
            kinds.append(Kind(name.replace("_", " "), meaning, len(items), shown))
            room -= len(shown)
    return kinds, sum(map(len, failed.values())) - (MOST_FAILURES - room)


def _miss(item: Row, hits: Hits, queued: Row | None) -> Miss:
    return Miss(
        query_id=text_of(item, "query_id"),
        question=text_of(item, "question"),
        outcome=_outcome(item),
        wanted=_wanted(item),
        hits=hits.of(item),
        state="" if queued is None else STATES[text_of(queued, "state")],
        correction="" if queued is None else text_of(queued, "correction"),
        commands=[] if queued is None else _commands(queued),
    )


def misses_of_users(tables: Mapping[str, pa.Table]) -> Cut:
    """Return what users asked and did not get, and nobody has dealt with."""
    found = [row for row in _queue(tables) if row["source"] == "user"]
    shown = [
        Wanted(
            text_of(row, "golden_set"),
            text_of(row, "question"),
            names_of(row, "shown"),
            names_of(row, "wanted"),
            STATES[text_of(row, "state")],
            _commands(row),
        )
        for row in found[:MOST_FAILURES]
    ]
    return Cut(shown, len(found) - len(shown))


def _commands(queued: Row) -> list[str]:
    """Return the commands that correct a failure and make a test of it; nothing where nothing more happens to it."""
    if text_of(queued, "state") in ("promoted", "rejected", "duplicate"):
        return []
    key = text_of(queued, "key")[:DIGITS]
    cited = [name for name in names_of(queued, "wanted") if "::" in name or name.startswith("class:")]
    if queued["failure_class"] == "hallucination":
        where = "--no-answer"
    elif cited and all(visible(name) == name for name in cited):
        where = " ".join(f"--cite {shlex.quote(name)}" for name in cited)
    else:
        where = "--cite TAP::PATH"
    return [
        f'assay feedback correct {key} "WHAT IS RIGHT" {where} --by YOU',
        f"assay feedback promote {key} --by YOU",
    ]


def _recall(feed: Feed, golden_set: str, engine: str) -> float:
    value = number_of(feed.metric(golden_set, engine, "row", "recall@10"), "value")
    return -1.0 if value is None else value


def _outcome(item: Row) -> str:
    rank = item["first_relevant_rank"]
    if rank is not None:
        return f"first right answer at rank {rank}"
    if item["abstained"]:
        return "nothing was returned"
    if item["answerable"] is False:
        return "there is no answer, and one was given"
    return f"no right answer among {counted(count_of(item, 'hits'), 'hit')}"


def _wanted(item: Row) -> list[str]:
    """Return what the item's row asks for; from a feed that did not keep it yet, how many right answers there are."""
    return names_of(item, "wanted") if "wanted" in item else [counted(count_of(item, "relevant"), "answer")]


class Hits:
    """The first hits of items and their first right hit, with the descriptions of their entries."""

    def __init__(self, feed: Feed, first: int = 3) -> None:
        """Pick from the rankings of ``feed`` the ``first`` hits of every item."""
        import pyarrow.compute as pc

        self._first = first
        ranks, grades = feed.rankings["rank"], pc.fill_null(feed.rankings["grade"], 0)
        shown = feed.rankings.filter(pc.or_(pc.less_equal(ranks, first), pc.greater(grades, 0)))
        described = feed.entries.select(["tap", "path", "description"])
        described = described.filter(pc.is_in(described["path"], value_set=pc.unique(shown["path"])))
        self._description = {(row["tap"], row["path"]): text_of(row, "description") for row in rows_of(described)}
        self._by_item: dict[tuple[str, ...], list[Row]] = {}
        for row in rows_of(shown):
            self._by_item.setdefault(_item_key(row), []).append(row)

    def of(self, item: Row) -> list[Hit]:
        """Return the first hits of an item, and below them the first right one where it stands deeper."""
        found = sorted(self._by_item.get(_item_key(item), []), key=lambda row: count_of(row, "rank"))
        deeper = [row for row in found if count_of(row, "rank") > self._first and count_of(row, "grade") > 0]
        return [self._hit(row) for row in found if count_of(row, "rank") <= self._first] + [
            self._hit(row) for row in deeper[:1]
        ]

    def _hit(self, row: Row) -> Hit:
        return Hit(
            rank=count_of(row, "rank"),
            name=text_of(row, "slug"),
            tap=text_of(row, "tap"),
            path=text_of(row, "path_text"),
            description=self._description[(row["tap"], row["path"])],
            score=f"{number_of(row, 'score'):.3f}",
            right=count_of(row, "grade") > 0,
        )


def _item_key(row: Row) -> tuple[str, ...]:
    return tuple(text_of(row, column) for column in ("golden_set", "engine", "query_id"))


class Unanswerable(NamedTuple):
    """A question that nothing in the corpus answers, and what was returned first for it."""

    golden_set: str
    engine: str
    question: str
    hit: Hit | None
    abstained: bool
    """Whether the first hit was not given as an answer, because its signal was too low."""


def unanswerable(feed: Feed, tables: Mapping[str, pa.Table]) -> Cut:
    """Return the questions without an answer."""
    hits = Hits(feed, first=1)
    answered = (
        {_item_key(row): bool(row["answered"]) for row in rows_of(tables["outcomes"])} if "outcomes" in tables else {}
    )
    found = [item for item in feed.items if item["grading"] == "row" and item["answerable"] is False]
    shown = [
        Unanswerable(
            text_of(item, "golden_set"),
            text_of(item, "engine"),
            text_of(item, "question"),
            next(iter(hits.of(item)), None),
            not answered.get(_item_key(item), True),
        )
        for item in found[:MOST_FAILURES]
    ]
    return Cut(shown, len(found) - len(shown))
