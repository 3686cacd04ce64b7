"""Whether an engine should have answered: labels, truthfulness, thresholds on a signal, and how well a signal tells.

Sources: Yang et al. 2024 (CRAG: four labels and their values), El-Yaniv and Wiener 2010 (risk and coverage), Geifman et
al. 2019 (excess of the area under it), Traub et al. 2024 (generalised risk), Mann and Whitney 1947 (AUROC by ranks).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Answer = Literal["perfect", "acceptable", "incorrect", "missing", "unjudged"]

VALUES: Mapping[Answer, float] = {"perfect": 1.0, "acceptable": 0.5, "incorrect": -1.0, "missing": 0.0}
"""What an answer adds to truthfulness. An unjudged one adds nothing, and is left out."""
MOST_FALSE_ABSTENTIONS = 0.05
"""Share of the answerable items from which a fitted threshold may abstain."""


def label_of(answerable: bool, answered: bool, grade: int | None) -> Answer:
    """Return what the answer of a retriever, its first class, is.

    Args:
        answerable: whether the item has an answer.
        answered: whether there was a first class, and its signal cleared the threshold.
        grade: grade of the first class, 0 to 3; None: unjudged.
    """
    if not answered:
        return "missing"
    if not answerable:
        return "incorrect"
    if grade is None:
        return "unjudged"
    return "perfect" if grade == 3 else "acceptable" if grade == 2 else "incorrect"


class Truthfulness(NamedTuple):
    """The mean value of answers."""

    value: float | None
    """From -1 to 1, over the answers that are judged; None where none is. Always abstaining scores 0."""
    low: float | None
    """What it would be if every unjudged answer were incorrect."""
    high: float | None
    """What it would be if every unjudged answer were perfect."""
    n: int
    """Answers that are judged, abstentions among them."""


def truthfulness(labels: Sequence[Answer]) -> Truthfulness:
    """Return the mean of ``VALUES`` over ``labels``."""
    judged = [VALUES[label] for label in labels if label != "unjudged"]
    unjudged = len(labels) - len(judged)
    if not labels:
        return Truthfulness(None, None, None, 0)
    total = math.fsum(judged)
    value = total / len(judged) if judged else None
    return Truthfulness(value, (total - unjudged) / len(labels), (total + unjudged) / len(labels), len(judged))


class Point(NamedTuple):
    """An item as a threshold on a signal sees it."""

    signal: float | None
    """None: the engine returned nothing, so it abstains whatever the threshold is."""
    answerable: bool
    grade: int | None
    """Grade of the first class; None: unjudged, or there is none."""

    @property
    def correct(self) -> bool:
        """Whether answering is right: there is an answer, and the first class is graded 2 or more."""
        return self.answerable and self.grade is not None and self.grade >= 2


class Policy(NamedTuple):
    """What a threshold does to items: an item is answered where its signal is at least the threshold."""

    threshold: float
    labels: tuple[Answer, ...]
    credit: float | None
    """Truthfulness where abstaining from what has no answer is worth 1."""
    unanswerable_abstained: int
    answerable_abstained: int
    unanswerable_answered: int
    answerable_answered: int

    @property
    def truthfulness(self) -> Truthfulness:
        """The mean value of its answers."""
        return truthfulness(self.labels)

    @property
    def coverage(self) -> float | None:
        """Share of the items that it answers."""
        return _share(self.unanswerable_answered + self.answerable_answered, len(self.labels))

    @property
    def false_abstention_rate(self) -> float | None:
        """Share of the answerable items from which it abstains."""
        return _share(self.answerable_abstained, self.answerable_abstained + self.answerable_answered)

    @property
    def false_answer_rate(self) -> float | None:
        """Share of the items without an answer that it answers."""
        return _share(self.unanswerable_answered, self.unanswerable_answered + self.unanswerable_abstained)

    @property
    def precision(self) -> float | None:
        """Share of its abstentions that are right."""
        return _share(self.unanswerable_abstained, self.unanswerable_abstained + self.answerable_abstained)

    @property
    def recall(self) -> float | None:
        """Share of the items without an answer from which it abstains."""
        return _share(self.unanswerable_abstained, self.unanswerable_abstained + self.unanswerable_answered)

    @property
    def f1(self) -> float | None:
        """Harmonic mean of precision and recall."""
        return _share(
            2 * self.unanswerable_abstained,
            2 * self.unanswerable_abstained + self.answerable_abstained + self.unanswerable_answered,
        )


def at_threshold(points: Sequence[Point], threshold: float) -> Policy:
    """Return what a threshold does; minus infinity answers wherever there is a hit, infinity never."""
    answered = [point.signal is not None and point.signal >= threshold for point in points]
    both = list(zip(points, answered, strict=True))
    labels = tuple(label_of(point.answerable, given, point.grade) for point, given in both)
    values = [
        1.0 if not point.answerable and not given else VALUES[label]
        for (point, given), label in zip(both, labels, strict=True)
        if label != "unjudged"
    ]

    counts = Counter((point.answerable, given) for point, given in both)
    return Policy(
        threshold,
        labels,
        math.fsum(values) / len(values) if values else None,
        unanswerable_abstained=counts[False, False],
        answerable_abstained=counts[True, False],
        unanswerable_answered=counts[False, True],
        answerable_answered=counts[True, True],
    )


def fit(points: Sequence[Point], most_false_abstentions: float | None = MOST_FALSE_ABSTENTIONS) -> float | None:
    """Return the threshold of highest truthfulness, ties to the lower one.

    Args:
        points: the items to fit on, those of the split ``tuning``.
        most_false_abstentions: share of the answerable items from which it may abstain at most; None: any.

    Returns:
        One of the signals, or infinity, which abstains always; None where nothing that may be answered is judged, or
        no item has an answer, so that nothing can be said of false abstentions.
    """
    if most_false_abstentions is not None and not any(point.answerable for point in points):
        return None
    best: tuple[float, float] | None = None
    unavoidable: float | None = None
    for threshold, truth, abstained in _at_every_threshold(points):
        if unavoidable is None:
            # An engine that returns nothing abstains already; that is not the threshold's doing.
            unavoidable = abstained
        allowed = most_false_abstentions is None or abstained <= max(most_false_abstentions, unavoidable)
        if truth is not None and allowed and (best is None or truth > best[0]):
            best = (truth, threshold)
    return None if best is None else best[1]


def _at_every_threshold(points: Sequence[Point]) -> Iterator[tuple[float, float | None, float]]:
    """Yield each threshold that differs, rising, with truthfulness and false abstention rate; see `at_threshold`.

    What an answer adds is a multiple of a half, so that the sums are exact.
    """
    by_signal = sorted((point for point in points if point.signal is not None), key=lambda point: point.signal or 0.0)
    labels = [label_of(point.answerable, True, point.grade) for point in by_signal]
    total = math.fsum(VALUES[label] for label in labels if label != "unjudged")
    judged = len(points) - labels.count("unjudged")
    answerable = sum(point.answerable for point in points)
    abstained = answerable - sum(point.answerable for point in by_signal)
    at = 0
    for threshold in [*dict.fromkeys(point.signal for point in by_signal), math.inf if by_signal else None]:
        if threshold is None:
            return
        while at < len(by_signal) and (by_signal[at].signal or 0.0) < threshold:
            point, label = by_signal[at], labels[at]
            judged += label == "unjudged"
            total -= 0.0 if label == "unjudged" else VALUES[label]
            abstained += point.answerable
            at += 1
        yield threshold, total / judged if judged else None, abstained / answerable if answerable else 0.0


class RiskCoverage(NamedTuple):
    """Risk as coverage grows, the items of highest signal first. Among equal signals errors are spread evenly."""

    coverage: tuple[float, ...]
    selective_risk: tuple[float, ...]
    """Share of errors among what is answered."""
    generalised_risk: tuple[float, ...]
    """Share of all items that are answered in error."""

    @property
    def area(self) -> float:
        """Mean of the selective risk: AURC."""
        return math.fsum(self.selective_risk) / len(self.selective_risk)

    @property
    def generalised_area(self) -> float:
        """Mean of the generalised risk: AUGRC."""
        return math.fsum(self.generalised_risk) / len(self.generalised_risk)

    @property
    def optimal_area(self) -> float:
        """The area if every right answer had a higher signal than every error."""
        n = len(self.coverage)
        right = n - round(self.generalised_risk[-1] * n)
        return math.fsum(max(0, answered - right) / answered for answered in range(1, n + 1)) / n

    @property
    def excess_area(self) -> float:
        """What the signal loses against the best order: E-AURC."""
        return self.area - self.optimal_area


def risk_coverage(points: Iterable[Point]) -> RiskCoverage | None:
    """Return risk against coverage, over the items that are judged and have a signal; None where there is none."""
    known = [(point.signal, point.correct) for point in points if point.signal is not None and _is_known(point)]
    if not known:
        return None
    known.sort(key=lambda pair: -pair[0])
    errors: list[float] = []
    before = 0
    for _, tied in groupby(known, key=lambda pair: pair[0]):
        group = [correct for _, correct in tied]
        wrong = group.count(False)
        errors += [before + wrong * place / len(group) for place in range(1, len(group) + 1)]
        before += wrong
    n = len(known)
    return RiskCoverage(
        tuple(answered / n for answered in range(1, n + 1)),
        tuple(wrong / answered for answered, wrong in enumerate(errors, start=1)),
        tuple(wrong / n for wrong in errors),
    )


def auroc(points: Iterable[Point]) -> float | None:
    """Return the chance that an answerable item has a higher signal than one without an answer; ties count half.

    No hit is the lowest signal of all. None where one of the two kinds is missing.
    """
    signals = [(-math.inf if point.signal is None else point.signal, point.answerable) for point in points]
    with_answer = np.array([signal for signal, answerable in signals if answerable])
    without = np.array([signal for signal, answerable in signals if not answerable])
    if not with_answer.size or not without.size:
        return None
    return int(half_wins(with_answer, without).sum()) / (2 * with_answer.size * without.size)


def half_wins(with_answer: NDArray[np.float64], without: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return for each signal of an answerable item and each of one without an answer: 2 higher, 1 the same, 0 lower."""
    high, low = with_answer[:, None], without[None, :]
    return (high > low).astype(np.int64) + (high >= low)


def _is_known(point: Point) -> bool:
    return not point.answerable or point.grade is not None


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
