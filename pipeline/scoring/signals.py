"""Signals of a ranking: numbers by which a retriever may tell whether to give its first class as an answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, get_args

from pipeline.scoring import Signal
from pipeline.scoring.measures import Undefined, Value

SIGNALS: tuple[Signal, ...] = get_args(Signal)

NO_HIT = "nothing was returned"
NO_BOUND = "the engine does not say how high a score can be"


class Signals(NamedTuple):
    """The signals of one ranking. None of them has a value where nothing was returned."""

    top_score: Value
    """Score of the first class. It compares within one engine and corpus alone."""
    reached: Value
    """The same as a share of the most that the query could reach."""
    gap: Value
    """First score minus second, as a share of the first; 1 without a second."""

    def lacks(self, signal: Signal) -> str | None:
        """Return why there is a hit, and yet no value of a signal; None where that is not so."""
        value: Value = getattr(self, signal)
        return value.reason if isinstance(value, Undefined) and value.reason != NO_HIT else None

    def of(self, signal: Signal) -> float | None:
        """Return a signal; None where it has no value."""
        value: Value = getattr(self, signal)
        return None if isinstance(value, Undefined) else value


def signals_of(scores: Sequence[float], reach: float | None) -> Signals:
    """Return the signals of a ranking.

    Args:
        scores: of its classes, best first, each above 0.
        reach: the most that the query could reach; None where the engine states no bound.
    """
    if not scores:
        return Signals(*[Undefined(NO_HIT)] * len(SIGNALS))
    first = scores[0]
    return Signals(
        first,
        Undefined(NO_BOUND) if reach is None else first / reach,
        (first - scores[1]) / first if len(scores) > 1 else 1.0,
    )
