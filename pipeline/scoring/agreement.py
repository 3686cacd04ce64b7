"""How far a judge agrees with people about the same contents.

Sources: Cohen 1960 and 1968 (kappa, weighted kappa); Kendall 1945 (tau-b); Quenouille 1956 and Tukey 1958 (jackknife).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from pipeline.judgments.resolution import Grades
from pipeline.scoring.intervals import CONFIDENCE

GRADES = range(4)
RELEVANT = 2
"""The grade from which a class counts as relevant where there are only two."""
FEWEST = 100
"""Fewer pairs than this validate no judge."""
LOWEST_KAPPA = 0.40
"""What the lower bound of the quadratic kappa has to reach."""


class Pair(NamedTuple):
    """Two grades of one class for one question."""

    query_id: str
    human: int
    judge: int


class Bounds(NamedTuple):
    """A 95% interval of a kappa, within -1 and 1."""

    low: float
    high: float


class Agreement(NamedTuple):
    """What two judges make of the same pairs of question and class."""

    pairs: tuple[Pair, ...]

    @property
    def confusion(self) -> tuple[tuple[int, ...], ...]:
        """Pairs by the grade of people, a row each, and that of the judge."""
        return tuple(
            tuple(sum(pair[1:] == (row, column) for pair in self.pairs) for column in GRADES) for row in GRADES
        )

    @property
    def observed(self) -> float | None:
        """Share of the pairs that have one grade."""
        return sum(pair.human == pair.judge for pair in self.pairs) / len(self.pairs) if self.pairs else None

    @property
    def expected(self) -> float | None:
        """Share that would have, if both kept to how often they give each grade, but not to what they look at."""
        if not self.pairs:
            return None
        people, judge = ([pair[place] for pair in self.pairs] for place in (1, 2))
        return sum(people.count(grade) * judge.count(grade) for grade in GRADES) / len(self.pairs) ** 2

    @property
    def kappa(self) -> float | None:
        """Agreement beyond chance; None where chance alone agrees always."""
        return kappa(self.pairs, lambda one, other: float(one != other))

    @property
    def linear(self) -> float | None:
        """The same, a difference of two grades twice as bad as of one."""
        return kappa(self.pairs, lambda one, other: abs(one - other))

    @property
    def quadratic(self) -> float | None:
        """The same, a difference of two grades four times as bad as of one."""
        return kappa(self.pairs, _squared)

    @property
    def binary(self) -> float | None:
        """The same, where only relevant or not counts."""
        return kappa(self.pairs, lambda one, other: float((one >= RELEVANT) != (other >= RELEVANT)))

    @property
    def tau_b(self) -> float | None:
        """Whether both put the pairs into one order; None where one of them gives one grade alone."""
        concordant = same_human = same_judge = 0
        for place, one in enumerate(self.pairs):
            for other in self.pairs[:place]:
                human, judge = one.human - other.human, one.judge - other.judge
                concordant += (human * judge > 0) - (human * judge < 0)
                same_human += human == 0
                same_judge += judge == 0
        every = len(self.pairs) * (len(self.pairs) - 1) // 2
        ordered = math.sqrt((every - same_human) * (every - same_judge))
        return concordant / ordered if ordered else None

    @property
    def bias(self) -> float | None:
        """Mean of the grade of the judge minus that of people."""
        return sum(pair.judge - pair.human for pair in self.pairs) / len(self.pairs) if self.pairs else None

    @property
    def interval(self) -> Bounds | None:
        """The interval of the quadratic kappa, by the jackknife over questions: their pairs are not independent."""
        questions = sorted({pair.query_id for pair in self.pairs})
        whole = self.quadratic
        without = [
            kappa([pair for pair in self.pairs if pair.query_id != left_out], _squared) for left_out in questions
        ]
        known = [value for value in without if value is not None]
        if whole is None or len(questions) < 2 or len(known) < len(questions):
            return None
        from scipy.special import stdtrit

        n = len(known)
        centre = math.fsum(known) / n
        error = math.sqrt((n - 1) / n * math.fsum((value - centre) ** 2 for value in known))
        half = float(stdtrit(n - 1, 0.5 + CONFIDENCE / 2)) * error
        return Bounds(max(-1.0, whole - half), min(1.0, whole + half))

    @property
    def validated(self) -> bool:
        """Whether the judge may be believed: enough pairs, and a kappa that is surely not low."""
        interval = self.interval
        return len(self.pairs) >= FEWEST and interval is not None and interval.low >= LOWEST_KAPPA


def agreement(human: Grades, judge: Grades) -> Agreement:
    """Return how a judge agrees with people over what both graded, in the order of question and class."""
    return Agreement(
        tuple(
            Pair(query_id, of_people.grade, judge[query_id][class_id].grade)
            for query_id, by_class in sorted(human.items())
            for class_id, of_people in sorted(by_class.items())
            if class_id in judge.get(query_id, {})
        )
    )


def kappa(pairs: Sequence[Pair], weight: Callable[[int, int], float]) -> float | None:
    """Return the weighted kappa: 1 minus the observed disagreement over that of chance; None where chance has none."""
    if not pairs:
        return None
    people, judge = ([pair[place] for pair in pairs] for place in (1, 2))
    observed = math.fsum(weight(pair.human, pair.judge) for pair in pairs) / len(pairs)
    chance = (
        math.fsum(people.count(one) * judge.count(other) * weight(one, other) for one in GRADES for other in GRADES)
        / len(pairs) ** 2
    )
    return 1 - observed / chance if chance else None


def _squared(one: int, other: int) -> float:
    return (one - other) ** 2
