"""`python -m benchmarks.many`: near-duplicates among many generated documents, each size in a process of its own.

The documents have lengths as real ones have (log-normal, median some 470 words), words as frequent as Zipf's law has
it, and paragraphs from a common pool; one in eight is an earlier one with a word put in or a paragraph replaced. They
are signed batch by batch as they are read; only those that have candidates are read again.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.tables import exponent

BUILD = Path("build") / "bench"
SCHEMA = pa.schema([("body_sha256", pa.string()), ("body", pa.large_string()), ("eligible", pa.bool_())])
BATCH = 8192
VOCABULARY, PARAGRAPHS, WORDS = 40_000, 150_000, 58
"""Distinct words, paragraphs in the pool, words of a paragraph."""
KEPT = 200_000
"""Documents that may be edited into another one."""
TAPS, NAMES = 10_000, 50_000


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.many", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100_000, 300_000, 1_000_000])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--measure", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measured(options.measure, options.threads)))
        return
    told = []
    for size in options.sizes:
        generated(size)
        command = [sys.executable, "-m", "benchmarks.many", "--measure", str(size), "--threads", str(options.threads)]
        told.append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
        print(json.dumps(told[-1]), file=sys.stderr, flush=True)
        _place(size).unlink()
    (BUILD / "many.json").write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    print(_table(told))


def _table(told: list[dict[str, float]]) -> str:
    head = ("documents", "text", "signing, CPU", "LSH and verification, CPU", "wall in all", "memory", "in clusters")
    lines = [f"| {' | '.join(head)} |", "|" + "--:|" * len(head)]
    for row in told:
        cells = [f"{row['documents']:,}", f"{row['text'] / 1e9:.2f} GB", f"{row['sign']:.1f} s", f"{row['near']:.1f} s"]
        cells += [f"{row['wall']:.0f} s", f"{row['memory'] / 1e9:.2f} GB", f"{row['clustered']:,}"]
        lines.append(f"| {' | '.join(cells)} |")
    sizes = [int(row["documents"]) for row in told]
    powers = (exponent(sizes, [row[part] for row in told]) for part in ("sign", "near"))
    told_powers = ["" if power is None else f"n^{power:.2f}" for power in powers]
    lines.append(f"| grows as | | {' | '.join(told_powers)} | | | |")
    return "\n".join(lines)


def _place(size: int) -> Path:
    return BUILD / f"many-{size}.arrow"


def generated(size: int) -> None:
    """Write ``size`` documents to a file."""
    BUILD.mkdir(parents=True, exist_ok=True)
    with pa.OSFile(str(_place(size)), "wb") as file, pa.ipc.new_file(file, SCHEMA) as writer:
        rows: list[str] = []
        for number, body in enumerate(bodies(size), start=1):
            rows.append(body)
            if len(rows) == BATCH or number == size:
                digests = [f"{place:064x}" for place in range(number - len(rows), number)]
                columns = [pa.array(digests), pa.array(rows, pa.large_string()), pa.array([True] * len(rows))]
                writer.write_batch(pa.record_batch(columns, schema=SCHEMA))
                rows = []


def bodies(size: int) -> Iterator[str]:
    """Yield the texts of documents; the same ones for every size, as far as it goes."""
    drawn = np.random.default_rng(1)
    lengths = np.clip(drawn.poisson(5.5, VOCABULARY), 1, 14)
    spelled = ("".join(chr(97 + letter) for letter in drawn.integers(0, 26, length)) for length in lengths)
    words = np.array(list(spelled), object)
    weights = 1 / np.arange(1, VOCABULARY + 1)
    chosen = words[drawn.choice(VOCABULARY, WORDS * PARAGRAPHS, p=weights / weights.sum())]
    pool = [" ".join(paragraph) + "\n" for paragraph in chosen.reshape(PARAGRAPHS, WORDS)]
    earlier: list[list[str]] = []
    for number in range(size):
        if earlier and drawn.random() < 0.125:
            parts = list(earlier[drawn.integers(len(earlier))])
            place = drawn.integers(len(parts))
            parts[place] = f"{parts[place]}edit{number} " if drawn.random() < 0.7 else pool[drawn.integers(PARAGRAPHS)]
        else:
            paragraphs = min(max(int(drawn.lognormal(6.15, 1.1) / WORDS), 1), 150)
            parts = [*(pool[place] for place in drawn.integers(0, PARAGRAPHS, paragraphs)), f"own{number} "]
        if len(earlier) < KEPT:
            earlier.append(parts)
        else:
            earlier[drawn.integers(KEPT)] = parts
        yield "".join(parts)


def measured(size: int, threads: int) -> dict[str, float]:
    """Find the near-duplicates of a file of documents; return what that took. Times in seconds, sizes in bytes."""
    from pipeline.classes.candidates import band_keys, candidate_groups
    from pipeline.classes.clusters import near_duplicates
    from pipeline.classes.signatures import Signed, sign

    started, cpu = time.perf_counter(), time.process_time()
    text, parts = 0, []
    for batch in _batches(size):
        text += batch.column("body").nbytes
        parts.append(sign(batch.column("body"), threads=threads))
    signatures, whether = (np.concatenate([part[field] for part in parts]) for field in (0, 1))
    del parts, batch
    signing = time.process_time() - cpu
    cpu = time.process_time()
    groups = candidate_groups(band_keys(signatures), whether)
    chosen = np.bincount(groups)[groups] > 1
    documents = _chosen(size, chosen)
    found = near_duplicates(
        documents,
        Signed(signatures[chosen], whether[chosen]),
        _entries(documents, np.flatnonzero(chosen).tolist()),
        threads=threads,
    )
    return {
        "documents": size,
        "text": text,
        "sign": signing,
        "near": time.process_time() - cpu,
        "wall": time.perf_counter() - started,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "clusters": found.clusters.num_rows,
        "clustered": found.members.num_rows,
    }


def _batches(size: int) -> Iterator[pa.RecordBatch]:
    """Read the file from front to back, a batch at a time."""
    with pa.OSFile(str(_place(size)), "rb") as file:
        batches = pa.ipc.open_file(file)
        for number in range(batches.num_record_batches):
            yield batches.get_batch(number)


def _chosen(size: int, chosen: NDArray[np.bool_]) -> pa.Table:
    """Read the documents that have candidates: no other one can join anything."""
    kept, first = [], 0
    for batch in _batches(size):
        kept.append(batch.filter(pa.array(chosen[first : first + batch.num_rows])))
        first += batch.num_rows
    return pa.Table.from_batches(kept, schema=SCHEMA)


def _entries(documents: pa.Table, numbers: list[int]) -> pa.Table:
    """Return one entry a document, spread over many taps; some share a name."""
    return pa.table(
        {
            "tap": pa.array([f"t/{number % TAPS}" for number in numbers]),
            "path": pa.array([b"%d" % number for number in numbers], pa.binary()),
            "path_text": pa.array([str(number) for number in numbers]),
            "slug": pa.array([f"skill-{number % NAMES}" for number in numbers]),
            "locale": pa.nulls(documents.num_rows, pa.string()),
            "body_sha256": documents.column("body_sha256"),
        }
    )


if __name__ == "__main__":
    main()
