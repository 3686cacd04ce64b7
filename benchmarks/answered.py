"""Make a golden set of questions with and without an answer, to measure abstention over real registries.

    python -m benchmarks.answered QUESTIONS OUTPUT

QUESTIONS is a golden set whose rows all have an answer. Every other row, in the order of their digests, is put into the
split ``tuning``, the others into ``holdout``, and the questions of ``unanswered.jsonl`` are added.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path

UNANSWERED = Path(__file__).with_name("unanswered.jsonl")


def lines(questions: str) -> Iterator[str]:
    """Yield the rows of the set."""
    rows = [line for line in questions.splitlines() if line.strip() and not line.startswith("#")]
    rows.sort(key=lambda line: hashlib.sha256(json.loads(line)["query"].encode("utf-8")).hexdigest())
    for place, line in enumerate(rows):
        yield json.dumps(json.loads(line) | {"split": "holdout" if place % 2 else "tuning"}, ensure_ascii=False)
    yield from UNANSWERED.read_text("utf-8").splitlines()


def main() -> None:
    """Read one file and write the other."""
    source, output = (Path(name) for name in sys.argv[1:3])
    output.write_text("\n".join(lines(source.read_text("utf-8"))) + "\n", "utf-8")


if __name__ == "__main__":
    main()
