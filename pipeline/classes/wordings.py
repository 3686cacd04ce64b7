"""Two texts word by word, to be read by a person: what they share around each difference, and what only one has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Literal, NamedTuple

from pipeline.catalog.scripts import is_han_or_kana

if TYPE_CHECKING:
    from pipeline.classes.differences import Difference

Side = Literal["both", "left", "right"]

WORDS_COMPARED = 2_000
"""Words that are compared of each text behind what both begin with."""
CONTEXT = 4
"""Shared words that are shown on each side of a difference."""
RUN = 30
"""Words of a difference that are shown on each side; its middle is left out where it is longer."""
MARKS: dict[Side, tuple[str, str]] = {"both": ("", ""), "left": ("[-", "-]"), "right": ("{+", "+}")}
"""What stands around the words of each side in plain text."""
GAP = "…"


class Words(NamedTuple):
    """A run of words of two texts."""

    side: Side
    """Whether both texts have them here, or only the left or the right one."""
    text: str


def worded(
    left: str, right: str, context: int = CONTEXT, run: int = RUN, compared: int = WORDS_COMPARED
) -> list[Words]:
    """Return where two texts differ, each difference with ``context`` shared words around it.

    White space and case are no difference, for the similarity does not see them either. What both texts begin with is
    skipped; of the rest ``compared`` words are compared, and a text that goes on is ended by ``GAP``.

    Args:
        left: the one text.
        right: the other.
        context: shared words on each side of a difference.
        run: words of a difference that are shown of each text.
        compared: words of each text that are compared; the time grows with their square.
    """
    import numpy as np

    from pipeline.classes.differences import WORDS_COMPARED as MOST_COMPARED
    from pipeline.classes.differences import Words as Compared
    from pipeline.classes.differences import compare
    from pipeline.classes.shingles import cut_words

    ours, theirs = cut_words(left), cut_words(right)
    compared = min(compared, MOST_COMPARED)
    start = max(_shared_start(ours, theirs) - context, 0)
    goes_on = max(len(ours), len(theirs)) > start + compared
    ours, theirs = ours[start : start + compared], theirs[start : start + compared]
    folded = [[word.casefold() for word in text] for text in (ours, theirs)]
    numbers: dict[str, int] = {}  # in place of hashes: the words here are cut, and few
    found = compare(
        *(
            Compared(text, np.array([numbers.setdefault(word, len(numbers)) for word in text], np.uint64))
            for text in folded
        )
    )
    return _joined(_runs(ours, theirs, found.differences, context, run, start > 0, goes_on))


def marked(words: Iterable[Words], limit: int | None = None) -> str:
    """Return words as plain text, such as ``uses [-npm-] {+pnpm+} to``, cut to ``limit`` characters."""
    text = " ".join(f"{MARKS[side][0]}{part}{MARKS[side][1]}" for side, part in words)
    return text if limit is None or len(text) <= limit else text[: limit - 1] + GAP


def _shared_start(ours: Sequence[str], theirs: Sequence[str]) -> int:
    shared = 0
    for mine, its in zip(ours, theirs, strict=False):
        if mine.casefold() != its.casefold():
            break
        shared += 1
    return shared


def _runs(
    ours: Sequence[str],
    theirs: Sequence[str],
    differences: Sequence[Difference],
    context: int,
    run: int,
    begun: bool,
    goes_on: bool,
) -> Iterator[Words]:
    here, there = 0, 0
    for number, difference in enumerate(differences):
        there += difference.at - here
        after = context if number else 0
        yield from _between(ours[here : difference.at], after, context, is_cut=begun and not number)
        here = difference.at + len(difference.ours)
        yield from _cut("left", ours[difference.at : here], run)
        yield from _cut("right", theirs[there : there + len(difference.theirs)], run)
        there += len(difference.theirs)
    if differences:
        tail = ours[here:]
        yield Words("both", _text(tail[:context]))
        if len(tail) > context or goes_on:
            yield Words("both", GAP)
    elif goes_on:
        yield Words("both", GAP)


def _between(shared: Sequence[str], after: int, before: int, is_cut: bool) -> Iterator[Words]:
    """Yield the words between two differences: some after the one, some before the other, and a gap between.

    Before the first difference there may be a gap at the start alone, where the words are cut already.
    """
    if len(shared) > after + before or is_cut:
        yield Words("both", _text(shared[:after]))
        yield Words("both", GAP)
        shared = shared[max(len(shared) - before, after) :]
    yield Words("both", _text(shared))


def _cut(side: Side, words: Sequence[str], run: int) -> Iterator[Words]:
    if len(words) <= run:
        yield Words(side, _text(words))
        return
    half = run // 2
    left_out = f"{GAP} {len(words) - 2 * half:,} words {GAP}"
    yield Words(side, f"{_text(words[:half])} {left_out} {_text(words[len(words) - half :])}")


def _joined(runs: Iterable[Words]) -> list[Words]:
    """Put neighbours of one side together, and leave out what has no word."""
    kept = (run for run in runs if run.text)
    return [Words(side, " ".join(run.text for run in group)) for side, group in groupby(kept, lambda run: run.side)]


def _text(words: Sequence[str]) -> str:
    """Return words as text, without spaces between those that are one character of a script that has none."""
    text = ""
    for word in words:
        is_together = text and len(word) == 1 and is_han_or_kana(ord(word)) and is_han_or_kana(ord(text[-1]))
        text += word if not text or is_together else f" {word}"
    return text
