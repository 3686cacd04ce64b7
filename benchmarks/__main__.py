"""`python -m benchmarks`: prepare the input, run the contests, print tables and write them to ``build/bench/``."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from benchmarks.contests import CONTESTS, Contest
from benchmarks.inputs import catalogued, of_size, questions_for, write
from benchmarks.running import Figures, in_turn
from benchmarks.tables import Row, as_markdown, growth, rows

BUILD = Path("build") / "bench"


def main() -> None:
    options = _options()
    shutil.rmtree(BUILD / "numba", ignore_errors=True)  # so that the first run of Assay shows what compiling takes
    entries, golden = registries(options.corpora)
    questions = questions_for(entries, golden)
    sizes = options.sizes or [entries.num_rows]
    print(f"{entries.num_rows:,} entries, {len(questions)} questions; {machine()}\n", flush=True)
    for name in options.contests or CONTESTS:
        _contest(name, CONTESTS[name], entries, questions, sizes, options.repeats, options.uv)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("contests", nargs="*", choices=[[], *CONTESTS], help="which contests; all unless named")
    parser.add_argument("--sizes", type=int, nargs="*", help="numbers of entries; all real ones unless given")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each contender at each size")
    parser.add_argument("--corpora", type=Path, default=os.environ.get("CORPORA") or None, help="as of `make corpora`")
    parser.add_argument("--uv", default=".uv/bin/uv", help="the program that makes the environments of the peers")
    return parser.parse_args()


def registries(corpora: Path | None) -> tuple[pa.Table, list[str]]:
    """Return entries and golden questions of the registries in a folder with ``unpack.py``, or of the embedded ones."""
    store = BUILD / "store"
    if corpora is None:
        return catalogued(None, None, store)
    corpora = Path(corpora)
    unpacked = BUILD / "corpora"
    subprocess.run([sys.executable, str(corpora / "unpack.py"), str(unpacked)], check=True, stdout=subprocess.DEVNULL)
    return catalogued(unpacked / "taps.toml", corpora.parent / "golden" / "natural.jsonl", store)


def _contest(
    name: str,
    contest: Contest,
    entries: pa.Table,
    questions: Sequence[str],
    sizes: Sequence[int],
    repeats: int,
    uv: str,
) -> None:
    print(f"## {contest.title}\n", flush=True)
    by_size: dict[int, list[Row]] = {}
    record: dict[str, object] = {"contest": name, "machine": machine(), "sizes": {}}
    told: dict[int, dict[str, list[Figures]]] = {}
    for size in sizes:
        source = BUILD / "input" / f"{size}-of-{entries.num_rows}"
        if not (source / "queries.json").exists():
            write(of_size(entries, size), questions, source)
        able = [each for each in contest.contenders if each.largest is None or size <= each.largest]
        runs: dict[str, list[Figures]] = {}
        for contender, figures in in_turn(able, source, repeats, uv, BUILD):
            runs.setdefault(contender.name, []).append(figures)
            print(f"{size} {contender.name}: {_brief(figures)}", file=sys.stderr, flush=True)
        by_size[size], told[size] = rows(contest, runs), runs
        print(f"{size:,} entries, {len(questions)} questions:\n\n{as_markdown(by_size[size])}\n", flush=True)
        record["sizes"] = {str(at): {who: [_kept(run) for run in of] for who, of in told[at].items()} for at in told}
        (BUILD / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    if len(sizes) > 1:
        print(f"Growth, least CPU time:\n\n{growth(contest, by_size)}\n", flush=True)


def _brief(figures: Figures) -> str:
    return str(figures["failed"]) if "failed" in figures else f"{figures['cpu']:.2f} s"


def _kept(figures: Figures) -> Figures:
    """Leave rankings out of what is written: they are there to be compared."""
    return {name: value for name, value in figures.items() if name != "result" or not isinstance(value, list)}


def machine() -> str:
    return f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"


if __name__ == "__main__":
    main()
