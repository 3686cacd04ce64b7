"""A night, end to end, on the embedded registries: what is published, what stops it, and what a second one costs."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.engines import Updated, bm25, index, lexical
from pipeline.engines.bm25 import Bm25, Bm25Options
from pipeline.reports.feed import read_night
from pipeline.store import Store
from pipeline.tables import RUN_TABLES
from tests.conftest import Ended, feed_bytes

Assay = Callable[..., Ended]


def only_night(store: Path, number: int = -1) -> str:
    return sorted((store / "feed" / "nights").iterdir())[number].stem


@pytest.fixture
def project(examples: Path, tmp_path: Path) -> Path:
    """A project of its own, whose files a test may change; the registries are shared."""
    folder = tmp_path / "project"
    shutil.copytree(examples / "config", folder / "config")
    (folder / "build").symlink_to(examples / "build")
    return folder


def config_of(project: Path) -> Path:
    return project / "config" / "assay.toml"


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_a_night_publishes_every_table_and_a_report(finished: Path) -> None:
    (run,) = (finished / "feed").glob("run=*")
    tables = {name: pq.read_table(run / f"{name}.parquet") for name in RUN_TABLES}
    empty = {name for name, table in tables.items() if not table.num_rows}
    assert empty == {"conflicts"}  # nobody judged
    assert all(set(table.column("run_id").to_pylist()) <= {run.name[4:]} for table in tables.values())
    assert tables["taps"].num_rows == 10
    assert tables["entries"].num_rows == 229
    assert (run / "report.html").read_bytes().startswith(b"<!doctype html>")


def test_every_column_of_the_feed_is_described(finished: Path) -> None:
    for path in finished.glob("feed/*/*.parquet"):
        for column in pq.read_schema(path):
            assert (column.metadata or {}).get(b"description"), f"{path.name} {column.name}"


def test_the_latest_run_is_named(finished: Path) -> None:
    (run,) = (finished / "feed").glob("run=*")
    assert (finished / "feed" / "latest.json").read_text() == f'{{"folder":"{run.name}","run_id":"{run.name[4:]}"}}\n'


def test_a_second_night_recomputes_nothing_says_so_and_leaves_the_feed_as_it_was(
    stored: Path, examples: Path, assay: Assay
) -> None:
    before = feed_bytes(stored)
    ended = assay("run", "--config", config_of(examples), "--store", stored)
    assert ended.exit_code == 0
    assert "Nothing was recomputed" in ended.out
    assert feed_bytes(stored) == before
    night = read_night(Store(stored), only_night(stored))
    assert {step.stage: step.computed for step in night.steps} == dict.fromkeys(
        (
            "snapshot",
            "catalog",
            "corpus",
            "classes",
            "signatures",
            "clusters",
            "concepts",
            "resolve",
            "index",
            "rank",
            "score",
            "falloff",
            "checks",
            "known-items",
            "feedback",
            "feed",
        ),
        0,
    )


def test_the_order_of_taps_rows_and_threads_changes_no_byte(
    finished: Path, project: Path, tmp_path: Path, assay: Assay
) -> None:
    shuffled = random.Random(7)
    taps = project / "config" / "taps.toml"
    head, *rows = taps.read_text().split("[[tap]]")
    shuffled.shuffle(rows)
    taps.write_text(head + "".join(f"[[tap]]{row}" for row in rows))
    golden = project / "config" / "golden" / "default.jsonl"
    lines = golden.read_text().splitlines()
    shuffled.shuffle(lines)
    golden.write_text("\n".join(lines) + "\n")
    ended = assay("run", "--config", config_of(project), "--store", tmp_path / "store", "--threads", 5)
    assert ended.exit_code == 0
    assert feed_bytes(tmp_path / "store") == feed_bytes(finished)


def test_a_night_whose_pins_are_stored_needs_no_network_and_runs_no_git(
    stored: Path, project: Path, tmp_path: Path, assay: Assay, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "build").unlink()
    calls = tmp_path / "calls"
    wrapper = tmp_path / "bin" / "git"
    wrapper.parent.mkdir()
    wrapper.write_text(f'#!/bin/sh\necho "$@" >> {calls}\nexit 1\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("PATH", f"{wrapper.parent}{os.pathsep}{os.environ['PATH']}")
    subprocess.run(["git", "probe"], check=False)
    assert calls.read_text() == "probe\n"
    # Another golden set, so that there is something to compute.
    change(project / "config" / "golden" / "default.jsonl", '"split": "holdout"', '"split": "tuning"')
    ended = assay("run", "--config", config_of(project), "--store", stored)
    assert ended.exit_code == 0
    assert calls.read_text() == "probe\n"
    assert {tap.source for tap in read_night(Store(stored), only_night(stored)).taps} == {"store"}


UNREACHABLE = 'url = "git://127.0.0.1:1/nowhere"'
FIRST_URL = 'url = "../build/examples/driftwood+curiosities.git"'
FIRST_PIN = 'pin = "32937fbc6fcec6efd9e31a54ac83fddce27fdbd0"'


def test_an_outage_scores_nothing_shows_every_tap_and_ends_with_75(project: Path, tmp_path: Path, assay: Assay) -> None:
    change(project / "config" / "taps.toml", FIRST_URL, UNREACHABLE)
    ended = assay("run", "--config", config_of(project), "--store", tmp_path / "store")
    assert ended.exit_code == 75
    assert ended.err.count(" ok ") == 9
    assert "driftwood/curiosities" in ended.err and "unavailable" in ended.err
    assert feed_bytes(tmp_path / "store") == {}
    assert not (tmp_path / "store" / "store" / "rank").exists()
    night = read_night(Store(tmp_path / "store"), only_night(tmp_path / "store"))
    assert (night.exit_code, night.run_id, len(night.taps)) == (75, None, 10)


def test_after_an_outage_the_next_night_goes_on_from_there(
    finished: Path, project: Path, tmp_path: Path, assay: Assay
) -> None:
    change(project / "config" / "taps.toml", FIRST_URL, UNREACHABLE)
    assay("run", "--config", config_of(project), "--store", tmp_path / "store")
    change(project / "config" / "taps.toml", UNREACHABLE, FIRST_URL)
    ended = assay("run", "--config", config_of(project), "--store", tmp_path / "store", "--json")
    assert ended.exit_code == 0
    (snapshot,) = [step for step in ended.json["steps"] if step["stage"] == "snapshot"]
    assert (snapshot["computed"], snapshot["served"]) == (1, 9)
    assert feed_bytes(tmp_path / "store") == feed_bytes(finished)


@pytest.mark.parametrize(
    ("old", "new", "state"),
    [
        (FIRST_PIN, f'pin = "{"0" * 39}1"', "missing_pin"),
        (FIRST_URL, 'url = "../build/examples/gone.git"', "gone"),
        ("entries = 33", "entries = 34", "drift"),
    ],
)
def test_a_world_that_is_not_as_configured_ends_with_1(
    project: Path, tmp_path: Path, assay: Assay, old: str, new: str, state: str
) -> None:
    change(project / "config" / "taps.toml", old, new)
    ended = assay("run", "--config", config_of(project), "--store", tmp_path / "store")
    assert ended.exit_code == 1
    assert f": {state}: " in ended.err.splitlines()[-1]
    assert feed_bytes(tmp_path / "store") == {}


def test_what_waiting_cannot_mend_goes_before_an_outage(project: Path, tmp_path: Path, assay: Assay) -> None:
    taps = project / "config" / "taps.toml"
    change(taps, FIRST_URL, UNREACHABLE)
    change(taps, 'url = "../build/examples/gleaner+awesome-skills.git"', 'url = "../build/examples/gone.git"')
    assert assay("run", "--config", config_of(project), "--store", tmp_path / "store").exit_code == 1


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        (FIRST_PIN, 'pin = "32937fb"', "taps.toml row 1 pin"),
        (FIRST_PIN, FIRST_PIN + '\ncolour = "red"', "taps.toml row 1 colour"),
        ('name = "driftwood/curiosities"', 'name = "Gleaner/Awesome-Skills"', "taps.toml row 2 name"),
    ],
)
def test_a_wrong_tap_list_ends_with_2_and_names_file_and_row(
    project: Path, tmp_path: Path, assay: Assay, old: str, new: str, place: str
) -> None:
    change(project / "config" / "taps.toml", old, new)
    ended = assay("run", "--config", config_of(project), "--store", tmp_path / "store")
    assert ended.exit_code == 2
    assert place in ended.err


def test_golden_rows_that_name_nothing_end_with_2_and_are_all_named_with_candidates(
    stored: Path, project: Path, assay: Assay
) -> None:
    with (project / "config" / "golden" / "default.jsonl").open("a") as rows:
        rows.write('{"query": "who moved it", "relevant": ["debug"], "exemplar": "quayside/ops-playbooks::moved.md"}\n')
        rows.write('{"query": "what is this", "relevant": ["no-such-name"]}\n')
    before = feed_bytes(stored)
    ended = assay("run", "--config", config_of(project), "--store", stored)
    first, second = [line for line in ended.err.splitlines() if line.startswith("assay: ")]
    assert ended.exit_code == 2
    assert "quayside/ops-playbooks::moved.md" in first and "candidates: " in first and "debug" in first
    assert "no-such-name" in second and "no candidate" in second
    assert feed_bytes(stored) == before


def test_a_wrong_option_does_not_hide_what_is_wrong_in_the_files(project: Path, tmp_path: Path, assay: Assay) -> None:
    with (project / "config" / "golden" / "default.jsonl").open("a") as rows:
        rows.write('{"query": "x", "relevant": ["No Slug"]}\n')
    ended = assay("run", "--config", config_of(project), "--store", tmp_path / "store", "--threads", 0)
    assert ended.exit_code == 2
    assert "assay: --threads: " in ended.err and "no entry can be called 'No Slug'" in ended.err


def test_bad_input_goes_before_an_outage_and_all_of_it_is_told_before_any_work(
    project: Path, tmp_path: Path, assay: Assay
) -> None:
    change(project / "config" / "taps.toml", FIRST_URL, UNREACHABLE)
    with (project / "config" / "golden" / "default.jsonl").open("a") as rows:
        rows.write('{"query":\n{"query": "x", "relevant": ["debug"], "exemplar": "a/b::\\udcff"}\n')
    ended = assay("run", "--config", config_of(project), "--store", tmp_path / "store")
    assert ended.exit_code == 2
    assert len([line for line in ended.err.splitlines() if "default.jsonl line" in line]) == 2
    assert "golden sets and run files: the entries that they name are looked up once the taps are read" in ended.err
    assert not (tmp_path / "store" / "git").exists()


@pytest.mark.parametrize("harm", ["gone", "flipped"])
def test_a_published_run_that_lost_a_table_is_published_again(
    stored: Path, examples: Path, finished: Path, assay: Assay, harm: str
) -> None:
    table = next(stored.glob("feed/run=*/metrics.parquet"))
    data = bytearray(table.read_bytes())
    data[300] ^= 1
    table.unlink() if harm == "gone" else table.write_bytes(data)
    ended = assay("run", "--config", config_of(examples), "--store", stored)
    assert ended.exit_code == 0
    assert feed_bytes(stored) == feed_bytes(finished)


def test_damaged_data_is_never_published(stored: Path, examples: Path, finished: Path, assay: Assay) -> None:
    index = next(stored.glob("store/index/*/index.arrow"))
    index.write_bytes(index.read_bytes()[:-8] + b"damaged!")
    for stage in ("rank", "score"):
        shutil.rmtree(stored / "store" / stage)
    shutil.rmtree(stored / "feed")
    ended = assay("run", "--config", config_of(examples), "--store", stored)
    assert ended.exit_code == 1 and "damaged" in ended.err
    assert assay("run", "--config", config_of(examples), "--store", stored).exit_code == 0
    assert feed_bytes(stored) == feed_bytes(finished)


def test_a_changed_tap_costs_one_tap(stored: Path, project: Path, tmp_path: Path, assay: Assay) -> None:
    source = Path(shutil.copytree(project / "build" / "examples" / "solo-dev+dotfiles.git", tmp_path / "changed.git"))
    identity = {f"GIT_{who}_{what}": "x@y.z" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    tree = subprocess.run(["git", "rev-parse", "main^{tree}"], cwd=source, capture_output=True, text=True, check=True)
    commit = subprocess.run(
        ["git", "commit-tree", tree.stdout.strip(), "-m", "again"],
        cwd=source,
        env={**os.environ, **identity},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    taps = project / "config" / "taps.toml"
    change(taps, "../build/examples/solo-dev+dotfiles.git", str(source))
    change(taps, "1ca9aef0625caf28a2733889cfbb4d5c072e659f", commit)
    ended = assay("run", "--config", config_of(project), "--store", stored, "--json")
    made = {step["stage"]: step["computed"] for step in ended.json["steps"]}
    assert (made["snapshot"], made["catalog"], made["index"]) == (1, 1, 1)


@pytest.fixture
def grown(project: Path, tmp_path: Path) -> Path:
    """A project in which one tap moved to a commit with one entry edited and one added: both name a zebrafish."""
    tree = tmp_path / "grown"
    subprocess.run(
        ["git", "clone", "--quiet", project / "build" / "examples" / "quayside+ops-playbooks.git", tree], check=True
    )
    change(tree / "observability" / "tracing" / "SKILL.md", "Success is when", "A zebrafish. Success is when")
    (tree / "zebra").mkdir()
    (tree / "zebra" / "SKILL.md").write_text("---\nname: zebra\n---\nStripes of a zebrafish.\n")
    for command in ("add --all", "-c user.name=x -c user.email=x@y.z commit --quiet -m new"):
        subprocess.run(["git", *command.split()], cwd=tree, check=True)
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=tree, capture_output=True, text=True, check=True).stdout
    taps = project / "config" / "taps.toml"
    change(taps, "../build/examples/quayside+ops-playbooks.git", str(tree))
    change(taps, "ba718b3e6ca0758df72949d15e137b628dcfae39", head.strip())
    change(taps, "entries = 27\nclasses = 26\n", "")
    return project


def test_a_night_in_which_one_tap_changed_tokenizes_the_new_entries_of_that_tap_and_shows_so(
    stored: Path, grown: Path, assay: Assay, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = set(stored.glob("store/index/*"))
    read: list[str] = []
    index_texts = index.index_tap

    def watched(slugs: pa.Array, descriptions: pa.Array, bodies: pa.Array, *others: Any) -> index.TapIndex:
        read.extend(bodies.to_pylist())
        return index_texts(slugs, descriptions, bodies, *others)

    def watched_update(*given: Any) -> Updated:
        with pytest.MonkeyPatch.context() as inside:  # the checks index a sample of entries of their own
            inside.setattr(index, "index_tap", watched)
            return lexical.update_tap(*given)

    monkeypatch.setattr(bm25, "update_tap", watched_update)
    ended = assay("run", "--config", config_of(grown), "--store", stored)
    assert ended.exit_code == 0, ended.err
    assert len(read) == 2
    assert all("zebrafish" in body for body in read)
    night = read_night(Store(stored), only_night(stored))
    assert [step.computed for step in night.steps if step.stage == "index"] == [1]
    (detail,) = (each for each in night.details if each.stage == "index")
    assert (detail.subject, detail.detail) == ("bm25 quayside/ops-playbooks", "2 of 28 entries tokenized")
    assert "index bm25 quayside/ops-playbooks: 2 of 28 entries tokenized" in ended.out
    (made,) = set(stored.glob("store/index/*")) - before
    catalog = stored / "store" / "catalog" / json.loads((made / "manifest.json").read_bytes())["inputs"]["catalog"]
    entries = pq.read_table(catalog / "entries.parquet")
    assert (made / "index.arrow").read_bytes() == Bm25(Bm25Options()).index_tap(entries)


def test_an_earlier_index_that_is_damaged_is_no_loss(stored: Path, grown: Path, assay: Assay) -> None:
    (earlier,) = (path for path in stored.glob("store/index/*/index.arrow") if b"traceparent" in path.read_bytes())
    earlier.write_bytes(earlier.read_bytes()[:-8] + b"damaged!")
    ended = assay("run", "--config", config_of(grown), "--store", stored, "--json")
    assert ended.exit_code == 0, ended.err
    assert [detail for detail in ended.json["details"] if detail["stage"] == "index"] == []
    assert not earlier.exists()


def start(config: Path, store: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "pipeline.cli", "run", "--config", str(config), "--store", str(store)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


@pytest.mark.slow
def test_two_runs_started_together_end_well_and_equal(finished: Path, examples: Path, tmp_path: Path) -> None:
    both = [start(config_of(examples), tmp_path / "store") for _ in range(2)]
    ends = [process.communicate()[1].decode() for process in both]
    assert [process.returncode for process in both] == [0, 0], ends
    assert feed_bytes(tmp_path / "store") == feed_bytes(finished)
    assert len(list((tmp_path / "store" / "feed" / "nights").iterdir())) == 2


@pytest.mark.slow
def test_a_night_killed_at_twenty_moments_ends_as_an_undisturbed_one_and_shows_no_reader_a_part(
    finished: Path, examples: Path, tmp_path: Path
) -> None:
    moments = random.Random(11)
    whole = feed_bytes(finished)
    for number in range(20):
        store = tmp_path / str(number % 5)  # four kills in a row meet the same store
        process = start(config_of(examples), store)
        delay = moments.uniform(0.5, 9.0)
        for _ in range(int(delay / 0.02)):
            seen = feed_bytes(store)
            assert {path.split("/")[-1]: seen[path] for path in seen} == {
                path.split("/")[-1]: whole[path] for path in seen
            }
            folders = {path.split("/")[0] for path in seen if "/" in path}
            assert not folders or len(seen) >= len(whole) - 1  # all of the run, latest.json perhaps not yet
            if process.poll() is not None:
                break
            time.sleep(0.02)
        process.kill()
        process.communicate()
    for number in range(5):
        process = start(config_of(examples), tmp_path / str(number))
        assert process.communicate()[1] is not None and process.returncode == 0
        assert feed_bytes(tmp_path / str(number)) == whole
