"""The measures of every query in every subset: the arithmetic of ``pipeline.scoring``, over many rankings at once.

What an item asks for must be among the targets: the class of an exemplar where any of them is the answer, of all where
all are asked for, each name where it is graded by name. An item for which that does not hold is left out of every point
and counted, since a curve whose items change with its size shows the change of items.

What answers a row, and what a decision excludes, is what the whole corpus says. Only how many entries are relevant
under the treatment ``unmodified`` depends on the subset.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline.falloff import kernel
from pipeline.falloff.onepass import Curve, Rankings
from pipeline.falloff.orders import Corpus, Order, Subsets
from pipeline.golden.items import Mode
from pipeline.golden.resolve import Resolved, ResolvedSet
from pipeline.scoring.grade import Treatment, judged_wrong, mode_of
from pipeline.scoring.means import COMPARED, GRADINGS, NO_NAME, NOT_ANSWERABLE, PUBLISHED, TREATMENT
from pipeline.scoring.measures import PERSISTENCE, Measure

ABSENT = "what it asks for is not in the smallest subset"
TREATMENTS: tuple[Treatment, ...] = (TREATMENT, *COMPARED)
"""The treatments of duplicates, as the kernel numbers them."""
MEASURES: tuple[Measure, ...] = PUBLISHED
"""The measures, in the order in which they stand in the values."""
_FAMILIES = {
    "recall": kernel.RECALL,
    "hit": kernel.HIT,
    "precision": kernel.PRECISION,
    "ndcg": kernel.NDCG,
    "ndcg_exp": kernel.NDCG,  # grades are 0 and 1, and so is 2^g - 1
    "judged": kernel.JUDGED,
    "mrr": kernel.MRR,
    "bpref": kernel.BPREF,
    "ndcg_condensed": kernel.NDCG_CONDENSED,
    "rbp": kernel.RBP,
    "rbp_residual": kernel.RBP_RESIDUAL,
}


class Asked(NamedTuple):
    """A golden set over a corpus, ready to grade any subset of it. Q items in the order of the set, G gradings."""

    query_ids: tuple[str, ...]
    clusters: tuple[str, ...]
    """Cluster of each item."""
    slots: NDArray[np.int16]
    """By grading, item and entry: the slot that the entry fills, or `kernel.UNJUDGED` or `kernel.WRONG`."""
    active: NDArray[np.bool_]
    """By grading and item: whether it counts."""
    reasons: tuple[tuple[str | None, ...], ...]
    """By grading and item: why it does not."""
    slots_wanted: NDArray[np.int64]
    """By grading and item: relevant items where mirrors do not count for themselves."""
    others: NDArray[np.int64]
    """By grading and item: classes judged not relevant."""
    class_of: NDArray[np.int64]
    """Class of each entry."""


class Firsts(NamedTuple):
    """What stands first in rankings: all that abstaining hangs on."""

    classes: NDArray[np.int64]
    """Number of the first class; -1 where there is no hit."""
    scores: NDArray[np.float64]
    """Its score; NaN where there is no hit."""
    seconds: NDArray[np.float64]
    """Score of the second class; NaN where there is none."""
    reach: NDArray[np.float64]
    """The most that the item could reach; NaN where the engine states no bound."""


class Curves(NamedTuple):
    """What one engine reaches in orders of one kind: O orders, S subsets, Q items, G gradings, T treatments."""

    orders: tuple[Order, ...]
    nominal: NDArray[np.int64]
    """The sizes that were asked for, (S)."""
    entries: NDArray[np.int64]
    """The sizes that there are, (O, S); so the next two."""
    classes: NDArray[np.int64]
    taps: NDArray[np.int64]
    values: NDArray[np.float64]
    """The measures, (O, S, Q, G, T, M); NaN where undefined. The diagnostics are of the first treatment alone."""
    first_ranks: NDArray[np.int32]
    """Rank of the first relevant hit, (O, S, Q, G, T); 0 where there is none."""
    firsts: Firsts
    """What stands first, each (O, S, Q)."""


def ask(resolved: ResolvedSet, slugs: Sequence[str], class_ids: Sequence[str], corpus: Corpus) -> Asked:
    """Prepare a golden set.

    Args:
        resolved: the set, resolved in the whole corpus.
        slugs: name of each entry, in corpus order.
        class_ids: class of each entry.
        corpus: the same entries as numbers.
    """
    items = resolved.items
    slots = np.full((len(GRADINGS), len(items), corpus.entries), kernel.UNJUDGED, np.int16)
    active = np.zeros(slots.shape[:2], np.bool_)
    wanted, others = np.zeros(slots.shape[:2], np.int64), np.zeros(slots.shape[:2], np.int64)
    by_slug, by_class = _rows_by(slugs), _rows_by(class_ids)
    in_targets = corpus.in_targets
    reasons = []
    for number, grading in enumerate(GRADINGS):
        why = []
        for place, one in enumerate(items):
            mode = mode_of(one.item, grading)
            wrong = judged_wrong(one, mode)
            for class_id in wrong:
                slots[number, place, by_class[class_id]] = kernel.WRONG
            others[number, place] = len(wrong)
            present = []
            for slot, name in enumerate(one.item.relevant if mode == "name" else one.classes):
                rows = (by_slug if mode == "name" else by_class)[name]
                slots[number, place, rows] = slot if mode == "name" or one.item.match == "all" else 0
                present.append(bool(in_targets[rows].any()))
            wanted[number, place] = _wanted(one, mode)
            enough = any(present) if mode != "name" and one.item.match == "any" else all(present)
            why.append(_why_not(one, mode, enough))
            active[number, place] = why[-1] is None
        reasons.append(tuple(why))
    ids, clusters = (tuple(getattr(one.item, name) for one in items) for name in ("query_id", "cluster_id"))
    return Asked(ids, clusters, slots, active, tuple(reasons), wanted, others, corpus.class_of)


def measure(asked: Asked, curve: Curve, subsets: Sequence[Subsets]) -> Curves:
    """Measure one engine in all subsets of some orders of one kind.

    Raises:
        ValueError: there is no order, one is given twice, or they are not measured at the same nominal sizes.
    """
    if len({(of.order.kind, of.order.seed) for of in subsets}) < len(subsets):
        raise ValueError("an order is given twice, which would count twice in its band")
    if not subsets or any(of.nominal.tolist() != subsets[0].nominal.tolist() for of in subsets):
        raise ValueError("orders of one kind, one or more, are measured at the same nominal sizes")
    ranked = [curve.rank(of) for of in subsets]
    measured = [measure_rankings(asked, rankings, of) for rankings, of in zip(ranked, subsets, strict=True)]
    firsts = [_firsts(asked, rankings) for rankings in ranked]
    return Curves(
        tuple(of.order for of in subsets),
        subsets[0].nominal,
        np.stack([of.entries for of in subsets]),
        np.stack([of.classes for of in subsets]),
        np.stack([of.taps for of in subsets]),
        np.stack([values for values, _ in measured]),
        np.stack([first_ranks for _, first_ranks in measured]),
        Firsts(
            np.stack([of.classes for of in firsts]),
            np.stack([of.scores for of in firsts]),
            np.stack([of.seconds for of in firsts]),
            np.stack([of.reach for of in firsts]),
        ),
    )


def _firsts(asked: Asked, rankings: Rankings) -> Firsts:
    """Return what stands first in each subset for each item, (S, Q)."""
    cells = rankings.at.size - 1
    shape = (cells // max(rankings.queries, 1), rankings.queries)
    found = Firsts(np.full(cells, -1, np.int64), np.full(cells, np.nan), np.full(cells, np.nan), rankings.reach)
    for rank, scores in ((1, found.scores), (2, found.seconds)):
        hits = np.flatnonzero(rankings.ranks == rank)
        cell = np.searchsorted(rankings.at, hits, side="right") - 1
        scores[cell] = rankings.scores[hits]
        if rank == 1:
            found.classes[cell] = asked.class_of[rankings.rows[hits]]
    return Firsts(
        found.classes.reshape(shape),
        found.scores.reshape(shape),
        found.seconds.reshape(shape),
        found.reach.reshape(shape),
    )


def measure_rankings(
    asked: Asked, rankings: Rankings, subsets: Subsets
) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    """Return values (S, Q, G, T, M) and first ranks (S, Q, G, T) of the rankings of one order.

    Raises:
        ValueError: the rankings are of other questions, subsets or entries than these.
    """
    entries = asked.slots.shape[2]
    if (
        rankings.queries != len(asked.query_ids)
        or rankings.at.size != subsets.steps * rankings.queries + 1
        or subsets.step_of.size != entries
        or int(rankings.rows.max(initial=-1)) >= entries
    ):
        raise ValueError("rankings, subsets and golden set are not of the same questions and entries")
    shape = (subsets.steps, len(asked.query_ids), len(GRADINGS), len(TREATMENTS))
    values = np.empty((*shape, len(MEASURES)))
    first_ranks = np.zeros(shape, np.int32)
    kernel.measure(
        rankings.at, rankings.rows, rankings.ranks, asked.class_of, asked.slots, asked.active,
        _relevant(asked, subsets), asked.others, _numbers(_FAMILIES[measure.family] for measure in MEASURES),
        _numbers(measure.cut for measure in MEASURES), _DISCOUNTS, _IDEALS, _POWERS, PERSISTENCE, values, first_ranks,
    )  # fmt: skip
    return values, first_ranks


def _wanted(one: Resolved, mode: Mode | None) -> int:
    if mode == "name":
        return len(one.item.relevant)
    return 0 if mode is None else len(one.classes) if one.item.match == "all" else 1


def _why_not(one: Resolved, mode: Mode | None, present: bool) -> str | None:
    if mode is None:
        return NO_NAME if one.item.answerable else NOT_ANSWERABLE
    return None if present else ABSENT


def _relevant(asked: Asked, subsets: Subsets) -> NDArray[np.int64]:
    """Return how many items are relevant, by subset, grading, query and treatment."""
    gradings, queries, _ = asked.slots.shape
    relevant = np.empty((subsets.steps, gradings, queries, len(TREATMENTS)), np.int64)
    relevant[...] = asked.slots_wanted[None, :, :, None]
    grading, query, row = np.nonzero(asked.slots >= 0)
    joined = np.zeros((subsets.steps + 1, gradings, queries), np.int64)
    np.add.at(joined, (subsets.step_of[row], grading, query), 1)
    relevant[..., kernel.UNMODIFIED] = np.cumsum(joined[:-1], axis=0)
    return relevant


def _rows_by(keys: Sequence[str]) -> dict[str, NDArray[np.int64]]:
    encoded = pa.array(keys, pa.string()).dictionary_encode()
    codes = np.asarray(encoded.indices, np.int64)
    edges = np.cumsum(np.bincount(codes, minlength=1))[:-1]
    rows = np.split(np.argsort(codes, kind="stable"), edges)
    return dict(zip(encoded.dictionary.to_pylist(), rows, strict=False))


def _numbers(numbers: Iterable[int]) -> NDArray[np.int64]:
    return np.array(list(numbers), np.int64)


_DISCOUNTS = np.array([1.0 / math.log2(rank + 1) for rank in range(1, kernel.DEPTH + 1)])
_IDEALS = np.array([math.fsum(_DISCOUNTS[:relevant].tolist()) for relevant in range(kernel.DEPTH + 1)])
_POWERS = np.array([PERSISTENCE**place for place in range(kernel.DEPTH + 1)])
