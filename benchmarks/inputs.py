"""What contenders read: entries and questions, written once as Parquet and JSON."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline import stages
from pipeline.config import Overrides, load
from pipeline.engines.text import words
from pipeline.golden.items import read_golden_set
from pipeline.reports.feed import Night
from pipeline.workspace import Workspace, now, read

QUESTIONS = 141
"""Questions of a ranking: 45 golden ones, and descriptions of 3 to 40 words."""
GOLDEN = 45
GENERATED_TAP = 400
"""Generated entries of a tap."""


def catalogued(taps: Path | None, golden: Path | None, store: Path) -> tuple[pa.Table, list[str]]:
    """Snapshot, catalogue and group a tap list; return the entries with bodies and classes, and the golden questions.

    Without a list it is the embedded registries and their golden set.
    """
    settings = load(Overrides(taps=taps, golden=None if golden is None else (golden,), store=store))
    workspace = Workspace(settings, Night(settings.store, Night.new_id(now())))
    try:
        stages.read_taps(workspace, stages.check_inputs(workspace).taps)
        corpus = stages.corpus(workspace)
        grouped = stages.classes(workspace, corpus)
    finally:
        workspace.night.drop()
    columns = ["tap", "path", "path_text", "slug", "description"]
    entries = read(workspace, grouped, "entries.parquet", [*columns, "class_id"])
    bodies = pa.concat_tables(
        [read(workspace, made, "entries.parquet", [*columns, "body"]) for made in corpus.catalogs]
    )
    assert entries.select(["tap", "path"]).equals(bodies.select(["tap", "path"])), "catalogues are in the corpus order"
    questions = [item.question for path in settings.golden_files for item in read_golden_set(path).items]
    return entries.append_column("body", bodies.column("body")), questions


def questions_for(entries: pa.Table, golden: Sequence[str], number: int = QUESTIONS) -> list[str]:
    """Return the questions: at most 45 golden ones, the rest descriptions of 3 to 40 words drawn with seed 0."""
    asked = list(golden)[:GOLDEN]
    described = sorted({text for text in entries.column("description").to_pylist() if text})
    fitting = [text for text in described if 3 <= len(words(text, "ascii")) <= 40]
    return asked + random.Random(0).sample(fitting, min(number - len(asked), len(fitting)))


def of_size(entries: pa.Table, size: int) -> pa.Table:
    """Return a corpus of ``size`` entries: a sample of the real ones, or all of them and generated ones behind.

    A generated entry has the length of a real one and lines of real ones, each from any entry; one word in twenty is
    changed into one of its own, so that the vocabulary grows with the corpus as that of real text does.
    """
    drawn = random.Random(0)
    if size <= entries.num_rows:
        return entries.take(sorted(drawn.sample(range(entries.num_rows), size)))
    bodies = entries.column("body").to_pylist()
    lines = [line for body in bodies for line in body.splitlines() if line]
    more = [_generated(drawn, bodies, lines, number) for number in range(size - entries.num_rows)]
    real = entries.cast(pa.schema([(field.name, field.type) for field in entries.schema]))
    return pa.concat_tables([real, pa.Table.from_pylist(more, schema=real.schema)])


def _generated(drawn: random.Random, bodies: Sequence[str], lines: Sequence[str], number: int) -> dict[str, object]:
    wanted, body, length = len(drawn.choice(bodies)), [], 0
    while length < wanted:
        line = drawn.choice(lines)
        if drawn.random() < 0.5:
            cut = line.split(" ")
            cut[drawn.randrange(len(cut))] += f"{drawn.randrange(number + 10):x}"
            line = " ".join(cut)
        body.append(line)
        length += len(line) + 1
    path = f"skills/{number:06}/SKILL.md"
    return {
        "tap": f"~generated/{number // GENERATED_TAP:04}",
        "path": path.encode(),
        "path_text": path,
        "slug": f"skill-{drawn.randrange(number + 10)}",
        "description": drawn.choice(lines)[:300],
        "class_id": f"generated {number}",
        "body": "\n".join(body),
    }


def write(entries: pa.Table, questions: Sequence[str], folder: Path) -> Path:
    """Write an input where contenders read it; return its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(entries, folder / "entries.parquet", compression="zstd")
    (folder / "queries.json").write_text(json.dumps(list(questions)), encoding="utf-8")
    return folder
