"""In what order taps join the targets, and the nested subsets at which a curve is measured.

The targets are in every subset, so a falling curve is the work of what joins. Subsets of one order are nested: each is
the targets and the first few units of the order, a unit being a whole tap or, labelled so, a single entry.

Drawn orders are the same on every machine. Taps join by rising SHA-256 of ``<seed> <name>``, so which of two taps comes
first never depends on the others, and a new tap leaves their order alone. Entries join by rising 64-bit draws of
PCG64, seeded with the seed, one an entry in corpus order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import BadInput, Fault
from pipeline.falloff.rows import SAME_ORDER, OrderKind, Regime

ORDERS = 20
"""Drawn orders, unless said otherwise."""
SIZES = 12
"""Sizes of a curve, unless said otherwise."""


class Corpus(NamedTuple):
    """What orders are drawn over: the entries in ``(tap, path)`` order, as numbers."""

    taps: tuple[str, ...]
    """Names of the taps in byte order, those without entries included."""
    tap_of: NDArray[np.int64]
    """The tap of each entry."""
    class_of: NDArray[np.int64]
    """A number for the content class of each entry."""
    targets: frozenset[str]
    """Taps that are in every subset."""

    @property
    def entries(self) -> int:
        """How many entries there are."""
        return self.tap_of.size

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Entries of each tap."""
        return np.bincount(self.tap_of, minlength=len(self.taps))

    @property
    def in_targets(self) -> NDArray[np.bool_]:
        """Whether each entry lies in a target."""
        return np.isin(self.tap_of, [place for place, tap in enumerate(self.taps) if tap in self.targets])


class Order(NamedTuple):
    """An order in which units join the targets."""

    kind: OrderKind
    seed: int | None
    """Of a drawn order."""
    joins: NDArray[np.int64]
    """For each entry: 0 in a target, else the number of its unit, from 1 in the order of joining."""
    taps: tuple[str, ...] = ()
    """The taps in the order of joining, those without entries included; none where single entries join."""

    @property
    def regime(self) -> Regime:
        """What its units are."""
        return "entries" if self.kind == "entries" else "taps"


class NotDrawn(NamedTuple):
    """An order, or a size, that was asked for and is not there."""

    what: str
    reason: str


class Orders(NamedTuple):
    """Orders, each once, and what was asked for beside."""

    drawn: tuple[Order, ...]
    not_drawn: tuple[NotDrawn, ...]


class Subsets(NamedTuple):
    """The nested subsets of an order at which a curve is measured."""

    order: Order
    nominal: NDArray[np.int64]
    """The sizes that were asked for, rising."""
    step_of: NDArray[np.int32]
    """For each entry: the first subset that it is in, counted from 0; the number of subsets where it is in none."""
    entries: NDArray[np.int64]
    """Entries of each subset."""
    classes: NDArray[np.int64]
    """Content classes of each."""
    taps: NDArray[np.int64]
    """Taps of each; where single entries join, taps of which there is an entry."""

    @property
    def steps(self) -> int:
        """How many there are."""
        return self.nominal.size


def corpus_of(taps: Iterable[str], tap: Sequence[str], class_id: Sequence[str], targets: Iterable[str]) -> Corpus:
    """Number the taps and classes of a corpus.

    Args:
        taps: names of all taps, those without entries included.
        tap: tap of each entry, entries in ``(tap, path)`` order.
        class_id: content class of each entry.
        targets: names of the taps that are in every subset.

    Raises:
        BadInput: there is no target, a target is no tap of the corpus, or none of them has an entry.
    """
    names = tuple(sorted(set(taps), key=str.encode))
    number = {name: place for place, name in enumerate(names)}
    wanted = frozenset(targets)
    where = "falloff targets"
    faults = [
        Fault(where, f"no tap is called {name!r}", "name a tap of the list") for name in sorted(wanted - {*names})
    ]
    if not wanted:
        faults.append(Fault(where, "there is none", 'set role = "target" for the taps that hold the answers'))
    elif not faults and not any(name in wanted for name in tap):
        faults.append(Fault(where, "none of them has an entry", "name taps that hold the answers"))
    if faults:
        raise BadInput(faults)
    tap_of = np.fromiter((number[name] for name in tap), np.int64, len(tap))
    _, class_of = np.unique(np.array(class_id, dtype=np.str_), return_inverse=True)
    return Corpus(names, tap_of, class_of.astype(np.int64), wanted)


def targets_of(with_role: Iterable[str], exemplars: Iterable[str]) -> frozenset[str]:
    """Return the targets: the taps that a list calls so; where it calls none so, those of the exemplars.

    Args:
        with_role: names of the taps with ``role = "target"``.
        exemplars: exemplars of the golden sets, as ``tap::path``; content exemplars name no tap and are passed over.
    """
    named = frozenset(with_role)
    return named or frozenset(
        exemplar.partition("::")[0] for exemplar in exemplars if "::" in exemplar and not exemplar.startswith("class:")
    )


def random_orders(corpus: Corpus, orders: int = ORDERS, first: int = 0) -> Orders:
    """Draw orders of whole taps, with the seeds ``first``, ``first`` + 1, ...

    Two seeds can give one order where few taps join; it is drawn once, and the second seed is told.
    """
    joining = _joining(corpus)
    drawn: dict[tuple[str, ...], Order] = {}
    not_drawn = [] if joining else [_nothing_joins("random orders")]
    for seed in range(first, first + orders if joining else first):
        taps = tuple(sorted(joining, key=lambda tap: hashlib.sha256(f"{seed} {tap}".encode()).digest()))
        if taps in drawn:
            reason = f"{SAME_ORDER} {drawn[taps].seed}: {_number(len(joining), 'tap joins', 'taps join')}"
            not_drawn.append(NotDrawn(f"random order, seed {seed}", reason))
        else:
            drawn[taps] = _by_taps(corpus, "random", seed, taps)
    return Orders(tuple(drawn.values()), tuple(not_drawn))


def order_by_size(corpus: Corpus) -> Orders:
    """Let the smallest tap join first; of equally large ones the first by name."""
    sizes = dict(zip(corpus.taps, corpus.sizes.tolist(), strict=True))
    return _ordered(corpus, "size", sorted(_joining(corpus), key=lambda tap: (sizes[tap], tap.encode())))


def order_by_date(corpus: Corpus, first_seen: Mapping[str, str]) -> Orders:
    """Let the tap that was seen first join first.

    Args:
        corpus: the corpus.
        first_seen: date of each tap, as text that sorts. No order is drawn where one of them is missing.
    """
    undated = [tap for tap in _joining(corpus) if tap not in first_seen]
    if undated:
        return Orders((), (NotDrawn("order by first-seen date", f"no date is known of {', '.join(undated)}"),))
    return _ordered(corpus, "first_seen", sorted(_joining(corpus), key=lambda tap: (first_seen[tap], tap.encode())))


def order_by_harm(corpus: Corpus, harm: Mapping[str, float]) -> Orders:
    """Let the worst confuser join first.

    Args:
        corpus: the corpus.
        harm: how much each tap takes, as ``attribution.harm`` counts it; a tap that is missing takes nothing.
    """
    worst = sorted(_joining(corpus), key=lambda tap: (-harm.get(tap, 0.0), tap.encode()))
    return _ordered(corpus, "confuser", worst)


def entry_orders(corpus: Corpus, orders: int = ORDERS, first: int = 0) -> Orders:
    """Draw orders of single entries, with the seeds ``first``, ...: another regime, which shares no axis with taps."""
    rows = np.flatnonzero(~corpus.in_targets)
    if not rows.size:
        return Orders((), (_nothing_joins("orders of single entries"),))
    drawn: dict[bytes, Order] = {}
    not_drawn = []
    for seed in range(first, first + orders):
        keys = np.random.PCG64(seed).random_raw(rows.size)
        joins = np.zeros(corpus.entries, np.int64)
        joins[rows[np.argsort(keys, kind="stable")]] = np.arange(1, rows.size + 1)
        earlier = drawn.setdefault(joins.tobytes(), Order("entries", seed, joins))
        if earlier.seed != seed:
            reason = f"{SAME_ORDER} {earlier.seed}: {_number(rows.size, 'entry joins', 'entries join')}"
            not_drawn.append(NotDrawn(f"order of single entries, seed {seed}", reason))
    return Orders(tuple(drawn.values()), tuple(not_drawn))


def tap_last(corpus: Corpus, tap: str) -> Order:
    """Return the order of two units in which everything else joins first, and then ``tap``."""
    rest = [other for other in _joining(corpus) if other != tap]
    order = _by_taps(corpus, "random", None, (*rest, tap))
    joins = np.where(corpus.tap_of == corpus.taps.index(tap), 2, np.minimum(order.joins, 1))
    return order._replace(joins=joins, taps=())


class Sizes(NamedTuple):
    """Nominal sizes of a curve, and those that were asked for and lie outside of it."""

    nominal: tuple[int, ...]
    left_out: tuple[NotDrawn, ...] = ()


def sizes_by_factor(corpus: Corpus, sizes: int = SIZES) -> Sizes:
    """Return sizes from the targets alone to the whole corpus, each about as many times as large as the one before."""
    smallest, whole = int(corpus.in_targets.sum()), corpus.entries
    if sizes < 2:
        raise BadInput([Fault("falloff sizes", f"{sizes} make no curve", "ask for 2 or more")])
    powers = (smallest * (whole / smallest) ** (step / (sizes - 1)) for step in range(sizes))
    return Sizes(tuple(sorted({smallest, whole, *(min(round(size), whole) for size in powers)})))


def sizes_by_step(corpus: Corpus, step: int) -> Sizes:
    """Return the multiples of ``step`` between the targets alone and the whole corpus, and these two."""
    if step < 1:
        raise BadInput([Fault("falloff step", f"is {step}", "ask for a step of 1 or more entries")])
    smallest, whole = int(corpus.in_targets.sum()), corpus.entries
    return Sizes(tuple(sorted({smallest, whole, *range((smallest // step + 1) * step, whole, step)})))


def sizes_by_list(corpus: Corpus, asked: Iterable[int]) -> Sizes:
    """Return the sizes asked for, with the targets alone and the whole corpus; those outside are told."""
    smallest, whole = int(corpus.in_targets.sum()), corpus.entries
    kept, left_out = {smallest, whole}, []
    for size in sorted(set(asked)):
        if smallest <= size <= whole:
            kept.add(size)
        else:
            outside = f"the targets alone have {smallest}" if size < smallest else f"the whole corpus has {whole}"
            left_out.append(NotDrawn(f"size {size}", outside))
    return Sizes(tuple(sorted(kept)), tuple(left_out))


def subsets(corpus: Corpus, order: Order, nominal: Sequence[int]) -> Subsets:
    """Return the subsets of an order: for each nominal size the smallest prefix with at least so many entries.

    Raises:
        ValueError: the sizes do not rise, or one is larger than the corpus.
    """
    asked = np.array(nominal, np.int64)
    if not asked.size or (np.diff(asked) <= 0).any() or asked[-1] > corpus.entries:
        raise ValueError(f"sizes must rise up to at most {corpus.entries}: {nominal}")
    grown = np.cumsum(np.bincount(order.joins))
    last_unit = np.searchsorted(grown, asked)
    if asked[-1] == corpus.entries:
        last_unit[-1] = _last(order)
    return _cut(corpus, order, asked, last_unit)


def every_unit(corpus: Corpus, order: Order) -> Subsets:
    """Return a subset for the targets alone, and one more after each unit that has entries."""
    grown = np.cumsum(np.bincount(order.joins))
    last_unit = np.flatnonzero(np.diff(grown, prepend=0) > 0)
    nominal = grown[last_unit]
    last_unit[-1] = _last(order)
    return _cut(corpus, order, nominal, last_unit)


def _cut(corpus: Corpus, order: Order, nominal: NDArray[np.int64], last_unit: NDArray[np.int64]) -> Subsets:
    steps = last_unit.size
    step_of = np.searchsorted(last_unit, order.joins).astype(np.int32)
    inside = step_of < steps

    def first_met(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Count for each subset how many of the numbers are met in it."""
        first = np.full(int(numbers.max(initial=-1)) + 1, steps, np.int64)
        np.minimum.at(first, numbers[inside], step_of[inside].astype(np.int64))
        return np.cumsum(np.bincount(first, minlength=steps)[:steps])

    taps = first_met(corpus.tap_of)
    if order.taps:
        # Taps without entries are there from the moment at which they join, though nothing can be seen of them.
        unit_of = {tap: unit for unit, tap in enumerate(order.taps, start=1)}
        units = np.array([unit_of.get(tap, 0) for tap in corpus.taps])
        taps = (units[None, :] <= last_unit[:, None]).sum(axis=1)
    entries = np.cumsum(np.bincount(step_of, minlength=steps)[:steps])
    return Subsets(order, nominal, step_of, entries, first_met(corpus.class_of), taps)


def _last(order: Order) -> int:
    """Return the last unit, so that the whole corpus is the same in every order: taps without entries included."""
    return max(len(order.taps), int(order.joins.max(initial=0)))


def _joining(corpus: Corpus) -> list[str]:
    return [tap for tap in corpus.taps if tap not in corpus.targets]


def _number(number: int, one: str, several: str) -> str:
    return f"{number:,} {one if number == 1 else several}"


def _nothing_joins(what: str) -> NotDrawn:
    return NotDrawn(what, "nothing joins the targets, so there is one size and no curve")


def _ordered(corpus: Corpus, kind: OrderKind, taps: Sequence[str]) -> Orders:
    if not taps:
        return Orders((), (_nothing_joins(f"order by {kind}"),))
    return Orders((_by_taps(corpus, kind, None, tuple(taps)),), ())


def _by_taps(corpus: Corpus, kind: OrderKind, seed: int | None, taps: tuple[str, ...]) -> Order:
    unit_of = {tap: unit for unit, tap in enumerate(taps, start=1)}
    units = np.array([unit_of.get(tap, 0) for tap in corpus.taps], np.int64)
    return Order(kind, seed, units[corpus.tap_of], taps)
