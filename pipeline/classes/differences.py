"""In which words bodies differ, and whether they look made from one template for different jobs."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline.classes import kernel
from pipeline.classes.shingles import character_tables, texts, words

WORDS_COMPARED = 2_000
"""Words of a text that are compared; what is behind them is not looked at."""
MEMBERS_COMPARED = 16
"""Members of a cluster that are compared with its representative, spread evenly over the order of their digests."""
ISLAND = 2
"""Runs of fewer shared words than this between two differences are part of the difference: they match by chance."""
SHOWN = 8
"""Differences and slots that are kept as evidence."""
SHOWN_CHARACTERS = 60
"""Characters kept of each side of a difference."""

_NAME_WORD = re.compile(r"[^\W_]+")


class Difference(NamedTuple):
    """Words of one text that stand where the other has other words; one of the two may be empty."""

    ours: tuple[str, ...]
    theirs: tuple[str, ...]
    at: int
    """Where our words begin."""

    def __str__(self) -> str:
        return f"{_cut(self.ours)} / {_cut(self.theirs)}"


class Compared(NamedTuple):
    """Two texts, word by word."""

    shared: NDArray[np.bool_]
    """For each of our words whether they have it too, in the same order."""
    differences: list[Difference]
    """Where they differ, in order."""


class Words(NamedTuple):
    """The first ``WORDS_COMPARED`` words of a text."""

    words: list[str]
    hashes: NDArray[np.uint64]


class Member(NamedTuple):
    """A body of a cluster: its text, and the slugs of the entries that have it."""

    body: str
    names: frozenset[str]


class Template(NamedTuple):
    """What members of a cluster that bear other names than its representative share with it, and what not."""

    is_family: bool
    """Whether the bodies look made from one template for different jobs."""
    compared: int
    """Members with other names that were compared."""
    shared_words: float | None
    """Median share of the representative's words that they have; None where none was compared."""
    named: float | None
    """Share of them that differ somewhere in nothing but words of the names; None where none was compared."""
    aligned: float | None
    """Share of the representative's words that they replace which are slots; None for fewer than two or no such word.

    A slot is where most of them have other words, not all the same.
    """
    slots: list[str]
    """The slots, as the representative fills them, in order, each once."""
    evidence: list[str]
    """Differences of members from the representative, those in nothing but names first, each once."""


def read(bodies: Sequence[str]) -> list[Words]:
    """Return the words of texts, as they are compared."""
    arguments = (*texts(pa.array(bodies, pa.large_string())), *character_tables())
    with np.errstate(over="ignore"):  # without the compiler, the hash overflows aloud
        hashes, starts = kernel.word_hashes(*arguments)
    return [
        Words(words(body)[:WORDS_COMPARED], hashes[start:stop][:WORDS_COMPARED])
        for body, (start, stop) in zip(bodies, pairwise(starts.tolist()), strict=True)
    ]


def compare(ours: Words, theirs: Words) -> Compared:
    """Compare two texts by a longest common subsequence of their words."""
    in_left, in_right = np.zeros(ours.hashes.size, np.bool_), np.zeros(theirs.hashes.size, np.bool_)
    kernel.align(ours.hashes, theirs.hashes, in_left, in_right)
    _drop_islands(in_left, in_right)
    # A difference lies between two shared words, or before the first or behind the last, wherever there is a gap.
    left, right = (np.concatenate(([-1], np.flatnonzero(mask), [mask.size])) for mask in (in_left, in_right))
    gaps = np.flatnonzero((np.diff(left) > 1) | (np.diff(right) > 1)).tolist()
    return Compared(
        in_left,
        [
            Difference(
                tuple(ours.words[left[gap] + 1 : left[gap + 1]]),
                tuple(theirs.words[right[gap] + 1 : right[gap + 1]]),
                int(left[gap]) + 1,
            )
            for gap in gaps
        ],
    )


def template_of(shown: Member, members: Sequence[Member]) -> Template:
    """Tell whether bodies look made from one template for different jobs.

    They do where at least half of the members bear no name of the representative, and either half of these differ
    from it somewhere in nothing but words of the names, or half of the words that they replace lie in slots of the
    template, which takes two members to see.

    Args:
        shown: the representative.
        members: the others, ordered by digest.
    """
    our_names = {name.casefold() for name in shown.names}
    strangers = [member for member in members if our_names.isdisjoint(name.casefold() for name in member.names)]
    if not strangers:
        return Template(False, 0, None, None, None, [], [])
    step = max(len(strangers) / MEMBERS_COMPARED, 1.0)
    sample = [strangers[int(number * step)] for number in range(min(len(strangers), MEMBERS_COMPARED))]
    ours, *others = read([shown.body, *(member.body for member in sample)])
    found = [compare(ours, theirs) for theirs in others]
    of_names = [
        [difference for difference in each.differences if _is_of_names(difference, shown.names, member.names)]
        for member, each in zip(sample, found, strict=True)
    ]
    named = sum(map(bool, of_names)) / len(found)
    replaced, in_slot = _slots(len(ours.words), found)
    total = int(replaced.sum())
    aligned = int(replaced[in_slot].sum()) / total if len(found) > 1 and total else None
    every = [difference for each in (*of_names, *(each.differences for each in found)) for difference in each]
    return Template(
        is_family=2 * len(strangers) >= len(members) and (named >= 0.5 or (aligned or 0.0) >= 0.5),
        compared=len(found),
        shared_words=median(float(each.shared.mean()) for each in found) if ours.words else None,
        named=named,
        aligned=aligned,
        slots=_runs(ours.words, in_slot)[:SHOWN],
        evidence=list(dict.fromkeys(map(str, every)))[:SHOWN],
    )


def _is_of_names(difference: Difference, our_names: Collection[str], their_names: Collection[str]) -> bool:
    """Say whether each side is made of words of its own names, and some word of it is not in the other's names."""
    ours, theirs = (
        {word for name in names for word in _NAME_WORD.findall(name.casefold())} for names in (our_names, their_names)
    )
    said_ours, said_theirs = (
        {part for word in side for part in _NAME_WORD.findall(word)} for side in (difference.ours, difference.theirs)
    )
    return said_ours <= ours and said_theirs <= theirs and bool((said_ours - theirs) | (said_theirs - ours))


def _slots(length: int, found: Sequence[Compared]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return how many of the others replace each of our words, and which words lie in slots."""
    replaced = np.zeros(length, np.int64)
    fillings: defaultdict[int, set[tuple[str, ...]]] = defaultdict(set)
    for each in found:
        for ours, theirs, at in each.differences:
            if theirs:
                replaced[at : at + len(ours)] += 1
                for place in range(at, at + len(ours)):
                    fillings[place].add(theirs)
    in_slot = 2 * replaced > len(found)
    in_slot[[place for place, filling in fillings.items() if len(filling) < 2]] = False
    return replaced, in_slot


def _drop_islands(in_left: NDArray[np.bool_], in_right: NDArray[np.bool_]) -> None:
    """Unmark runs of fewer than ``ISLAND`` shared words, but for those at either end of both texts."""
    left, right = np.flatnonzero(in_left), np.flatnonzero(in_right)
    if not left.size:
        return
    breaks = np.flatnonzero((np.diff(left) > 1) | (np.diff(right) > 1)) + 1
    for start, stop in pairwise([0, *breaks.tolist(), left.size]):
        at_start = left[start] == right[start] == 0
        at_end = left[stop - 1] == in_left.size - 1 and right[stop - 1] == in_right.size - 1
        if stop - start < ISLAND and not at_start and not at_end:
            in_left[left[start:stop]] = in_right[right[start:stop]] = False


def _runs(text: Sequence[str], which: NDArray[np.bool_]) -> list[str]:
    edges = np.flatnonzero(np.diff(np.concatenate(([False], which, [False])).astype(np.int8)))
    return list(dict.fromkeys(_cut(text[start:stop]) for start, stop in edges.reshape(-1, 2).tolist()))


def _cut(run: Sequence[str]) -> str:
    text = " ".join(run)
    return text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 1] + "…"
