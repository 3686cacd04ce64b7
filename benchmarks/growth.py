"""`python -m benchmarks.growth`: how a falloff curve grows with entries, questions and orders, ours alone.

Each figure is the least of several runs, each in a new process, on one core and one thread. From text: words cut, an
index a tap, the questions looked up, and 20 nested subsets ranked, in each of the orders.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from benchmarks.__main__ import BUILD, machine, registries
from benchmarks.contests import Contender
from benchmarks.inputs import QUESTIONS, of_size, questions_for, write
from benchmarks.running import in_turn
from benchmarks.tables import exponent

ENTRIES = (4_000, 15_769, 65_000)
ASKED = (45, 131, 500, 1_000)
ORDERS = (1, 5, 20, 100)
"""What grows, the other two being all entries, `QUESTIONS` and one order."""
TASKS = {orders: f"orders {orders}" for orders in ORDERS}


class Point(NamedTuple):
    """What was measured at one size: least CPU seconds, and bytes."""

    size: int
    from_text: float
    order: float | None
    """One order more."""
    peak: int
    """The most that the process held, its input with it."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    parser.add_argument("--repeats", type=int, default=3, help="runs at each size")
    parser.add_argument("--corpora", type=Path, default=os.environ.get("CORPORA") or None, help="as of `make corpora`")
    options = parser.parse_args()
    entries, golden = registries(options.corpora)
    print(f"{entries.num_rows:,} entries; {machine()}\n", flush=True)
    told = {}
    for name, points in (
        ("entries", by_entries(entries, golden, options.repeats)),
        ("questions", by_questions(entries, golden, options.repeats)),
        ("orders", by_orders(entries, golden, options.repeats)),
    ):
        found = []
        for point in points:
            found.append(point)
            print(f"{name}: {json.dumps(point._asdict())}", file=sys.stderr, flush=True)
        print(f"{as_markdown(name, found)}\n", flush=True)
        told[name] = [point._asdict() for point in found]
        (BUILD / "growth.json").write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


def by_entries(entries: pa.Table, golden: Sequence[str], repeats: int) -> Iterator[Point]:
    """Measure corpora of several sizes: samples, all entries, and generated ones behind them."""
    questions = questions_for(entries, golden)
    for size in ENTRIES:
        folder = BUILD / "input" / f"{size}-of-{entries.num_rows}"
        if not (folder / "queries.json").exists():
            write(of_size(entries, size), questions, folder)
        yield measured(size, folder, ("falloff", "again"), repeats)


def by_questions(entries: pa.Table, golden: Sequence[str], repeats: int) -> Iterator[Point]:
    """Measure all entries with more and more questions."""
    for number in ASKED:
        questions = questions_for(entries, golden, number)
        folder = write(entries, questions, BUILD / "input" / f"{number}-questions-of-{entries.num_rows}")
        yield measured(len(questions), folder, ("falloff", "again"), repeats)


def by_orders(entries: pa.Table, golden: Sequence[str], repeats: int) -> Iterator[Point]:
    """Measure all entries in more and more orders, each of single entries drawn anew."""
    questions = questions_for(entries, golden)
    folder = write(entries, questions, BUILD / "input" / f"{QUESTIONS}-questions-of-{entries.num_rows}")
    for number in ORDERS:
        yield measured(number, folder, (TASKS[number],), repeats)


def measured(size: int, folder: Path, tasks: Sequence[str], repeats: int) -> Point:
    """Run the tasks: the first from text, the second, where there is one, an order more."""
    contenders = [Contender(task, "with_assay.py", task) for task in tasks]
    runs = [(contender.task, figures) for contender, figures in in_turn(contenders, folder, repeats, "", BUILD)]
    failed = [figures["failed"] for _, figures in runs if "failed" in figures]
    if failed:
        raise SystemExit(f"size {size}: {failed[0]}")
    least = {task: min(figures["cpu"] for of, figures in runs if of == task) for task in tasks}
    first = [figures for task, figures in runs if task == tasks[0]]
    peak = max(figures["peak"] for figures in first)
    return Point(size, least[tasks[0]], least[tasks[1]] if len(tasks) > 1 else None, peak)


def as_markdown(name: str, points: Sequence[Point]) -> str:
    """Return the points as a table, with the fitted exponents."""
    lines = [
        f"| {name} | from text | one order more | memory |",
        "|--:|--:|--:|--:|",
    ]
    for point in points:
        order = "" if point.order is None else f"{point.order:.2f} s"
        lines.append(f"| {point.size:,} | {point.from_text:.2f} s | {order} | {point.peak / 1e9:.2f} GB |")
    sizes = [point.size for point in points]
    powers = [exponent(sizes, [point.from_text for point in points])]
    orders = [point.order for point in points if point.order is not None]
    powers.append(exponent(sizes, orders) if len(orders) == len(sizes) else None)
    shown = " | ".join("" if power is None else f"n^{power:.2f}" for power in powers)
    lines.append(f"| grows as | {shown} | |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
