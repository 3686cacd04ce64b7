"""Names that differ, and are so alike that one may be taken for the other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

TAIL = 2
"""Most characters that one of two confusable names has behind the other."""


def are_confusable(one: str, other: str) -> bool:
    """Say whether two names differ by one character put in, left out or replaced, or by a tail of two, case aside.

    Names that are equal but for their case are one name, not two.
    """
    short, long = sorted((one.casefold(), other.casefold()), key=len)
    if short == long or len(long) - len(short) > TAIL:
        return False
    if long.startswith(short):
        return True
    same = 0
    while same < len(short) and short[same] == long[same]:
        same += 1
    return len(long) - len(short) <= 1 and short[same + (len(short) == len(long)) :] == long[same + 1 :]


def confusable_pairs(names: Iterable[str]) -> list[tuple[str, str]]:
    """Return all pairs of confusable names, each in order, sorted.

    Only names are compared that are equal once a character is left out of one or both, or a tail: so it takes time by
    the length of the names, not by the square of their number.
    """
    alike: dict[str, list[str]] = defaultdict(list)
    for name in sorted(set(names)):
        folded = name.casefold()
        cut = {folded, folded[:-TAIL], *(folded[:at] + folded[at + 1 :] for at in range(len(folded)))}
        for key in cut:
            alike[key].append(name)
    return sorted(
        {
            (one, other)
            for group in alike.values()
            for place, one in enumerate(group)
            for other in group[place + 1 :]
            if are_confusable(one, other)
        }
    )
