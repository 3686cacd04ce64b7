"""What a contender's program does: load its library, warm up, do the work once, and say what that took.

This module stands beside the contenders and imports nothing heavy, so that the time of an import is the library's own.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

WARM_UP = 20
"""Entries on which a contender warms up, so that what is compiled at first use is compiled."""
DEPTH = 100
"""Entries of a ranking."""

STEPS = 20
"""Nested subsets of a falloff curve."""

T = TypeVar("T")


class Entries(NamedTuple):
    """What contenders are given, in ``(tap, path)`` order."""

    table: Any
    """Arrow: tap, path, path_text, slug, description, body, class_id."""
    texts: list[str]
    """For those that take one string a document: name, name opened, description, name, description, body."""
    bodies: list[str]
    queries: list[str]


Shown = Callable[[], Any]
"""Gives the result in a form that contenders have in common; its time counts for nobody."""
Work = Callable[[], Shown]
"""What is measured."""
Ready = Callable[[Entries], Work]
"""Puts the input into the form in which the library takes it; its time counts for nobody."""
Task = Callable[[], Ready]
"""Imports the library."""


class Spent(NamedTuple):
    """Processor and clock time of a piece of work, in seconds."""

    cpu: float
    wall: float


def timed(work: Callable[[], T]) -> tuple[T, Spent]:
    """Do ``work``; return its result and what it took, in all threads of this process."""
    cpu, wall = time.process_time(), time.perf_counter()
    result = work()
    return result, Spent(time.process_time() - cpu, time.perf_counter() - wall)


def main(tasks: Mapping[str, Task], packages: Sequence[str], *, strings: bool = True) -> None:
    """Run one task: ``program TASK INPUT OUTPUT``. The figures are written to OUTPUT as JSON.

    Without ``strings`` the input is there as Arrow alone.
    The result is written with them, so that it can be seen that contenders did the same work.
    """
    task, source, output = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # one core, whatever a library would rather have
    ready, imported = timed(tasks[task])
    entries = read(source, strings)
    tiny, whole = ready(first(entries, WARM_UP)), ready(entries)
    _, warmed = timed(tiny)
    before = forget_peak()
    shown, spent = timed(whole)
    most = peak()
    figures = {
        "python": platform.python_version(),
        "packages": {name: version(name) for name in packages},
        "import_cpu": imported.cpu,
        "compile_cpu": warmed.cpu,
        "cpu": spent.cpu,
        "wall": spent.wall,
        "memory": most - before,
        "peak": most,
        "result": shown(),
    }
    output.write_text(json.dumps(figures), encoding="utf-8")


def forget_peak() -> int:
    """Let the kernel forget the most memory that this process held; return what it holds now, in bytes."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return _memory("VmRSS")


def peak() -> int:
    """Return the most memory that this process held since ``forget_peak``, in bytes."""
    return _memory("VmHWM")


def _memory(field: str) -> int:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    (value,) = (line.split()[1] for line in lines if line.startswith(f"{field}:"))
    return int(value) * 1024


def read(source: Path, strings: bool) -> Entries:
    """Read the input; its time counts for nobody."""
    import pyarrow.parquet as pq

    table = pq.read_table(source / "entries.parquet").combine_chunks()
    queries = json.loads((source / "queries.json").read_text(encoding="utf-8"))
    if not strings:
        return Entries(table, [], [], queries)
    columns = (table.column(name).to_pylist() for name in ("slug", "description", "body"))
    texts = [text_of(slug, description or "", body) for slug, description, body in zip(*columns, strict=True)]
    return Entries(table, texts, table.column("body").to_pylist(), queries)


def text_of(slug: str, description: str, body: str) -> str:
    """Return the text of an entry, in which a word of the name weighs 3 and one of the description 2."""
    return f"{slug} {slug.replace('-', ' ').replace('_', ' ')} {description} {slug} {description} {body}"


def first(entries: Entries, count: int) -> Entries:
    """Return the first entries, with all queries."""
    return Entries(entries.table.slice(0, count), entries.texts[:count], entries.bodies[:count], entries.queries)


def subsets(count: int) -> list[int]:
    """Return the sizes of the nested subsets, each the first so many entries: equal steps up to all of them."""
    return [-(-count * step // STEPS) for step in range(1, STEPS + 1)]


def turned(entries: Sequence[T]) -> list[T]:
    """Return another order: the first subset stays, as that which holds the answers does; the rest joins backwards."""
    targets = subsets(len(entries))[0]
    return [*entries[:targets], *reversed(entries[targets:])]


def shingles(text: str, size: int = 5) -> list[str]:
    """Return the runs of ``size`` words of a text; the whole of a shorter one."""
    words = text.lower().split()
    return [" ".join(words[at : at + size]) for at in range(max(len(words) - size + 1, 1))]


def distinct(bodies: Sequence[str]) -> list[str]:
    """Return each body once, in the order in which they come."""
    return list(dict.fromkeys(bodies))
