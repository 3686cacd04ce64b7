"""Falloff: how scores fall as the catalogue around the right answers grows.

``orders`` says in what order taps join the targets, and where a curve is measured; ``kernel`` holds the machine loops;
``onepass`` ranks every subset of an order at once, with the bits of an index rebuilt for each; ``grading`` takes the
measures of those rankings; ``points`` makes means and bands of them; ``models`` fits curves and reads sizes off them;
``attribution`` names the taps and classes that took a query; ``forecast`` says what a tap would do before it is
admitted. The rows of all tables stand in ``rows``. Everything is pure and seeded: tables and arrays in, tables out.
This module imports nothing heavy, so that an unchanged night need not load anything to know what it would draw.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple

from pipeline.errors import BadInput, Fault
from pipeline.store import Stage

if TYPE_CHECKING:
    from pipeline.falloff.rows import OrderKind

Statistics = Literal["subset", "global"]
"""What the weights of words are taken from: each subset, as an index of it would have them, or the whole corpus."""

MOST_RANKINGS = 1_000_000
"""Rankings that are measured at once, some 3 KB each: orders times sizes times items of a set."""

CURVES = Stage("falloff", 7)
"""The curves of a golden set under all engines, in orders of one kind."""


SHARES = 10
"""Orders, the first of those drawn, that the shares of lost queries are averages over: they cost most of a night."""


class Plan(NamedTuple):
    """What curves are drawn."""

    kind: OrderKind
    orders: int
    """Orders that are drawn, where the kind is of drawn ones."""
    sizes: int
    """Sizes from the targets alone to the whole corpus."""
    seed: int
    """The first seed of drawn orders, and the seed of the draws of clusters."""
    engines: tuple[str, ...]
    """Names of the engines, each once, in order."""
    statistics: Statistics = "subset"
    floors: Mapping[str, Mapping[str, float]] = {}
    """Values of which it is told at what size a curve crosses them, by engine and measure."""
    step: int = 0
    """Entries between two sizes; 0: so many sizes as ``sizes`` says, each about as many times the one before."""
    at: tuple[int, ...] = ()
    """The sizes, in place of a step or a number of them."""
    not_run: Mapping[str, str] = {}
    """Why an engine has no curve that cannot run."""


def bound(orders: int, sizes: int, items: int) -> None:
    """Refuse what would not fit into memory.

    Raises:
        BadInput: there are too many rankings.
    """
    if orders * sizes * items > MOST_RANKINGS:
        what = f"{orders} orders at {sizes} sizes of {items:,} questions are more than {MOST_RANKINGS:,} rankings"
        raise BadInput([Fault("orders, sizes", what, "ask for fewer orders or sizes")])
