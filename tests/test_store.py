"""The store keeps all or nothing, under a key made of what was derived from what."""

from __future__ import annotations

import multiprocessing
import multiprocessing.synchronize
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from pipeline.errors import MissingArtifact, Unsound
from pipeline.store import Stage, Store, canonical_json, digest, replace_file

STAGE = Stage("demo", 1)
INPUTS: dict[str, JsonValue] = {"number": 1}
FILES = {"file": b"text"}
FACTS: dict[str, JsonValue] = {"hit@1": 0.5, "name": "a"}


def test_what_was_written_is_found_again(tmp_path: Path) -> None:
    store = Store(tmp_path)
    made = store.write(STAGE, {"a": 1}, {"file": b"text"}, {"rows": 3})
    assert store.find(STAGE, {"a": 1}) == made
    assert store.path(made, "file").read_bytes() == b"text"


def test_other_inputs_another_version_and_another_stage_have_other_keys() -> None:
    many: list[dict[str, JsonValue]] = [{}, {"a": 1}, {"a": "1"}, {"a": None}, {"a": [1]}]
    stages = (STAGE, Stage("demo", 2), Stage("other", 1))
    keys = {Store.key(stage, inputs) for stage in stages for inputs in many}
    assert len(keys) == 15


def test_what_was_never_made_names_the_command_that_makes_it(tmp_path: Path) -> None:
    with pytest.raises(MissingArtifact, match="run `assay classes` first") as caught:
        Store(tmp_path).get(STAGE, {}, "assay classes")
    assert caught.value.exit_code == 2


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), json_values))
def test_the_order_of_inputs_does_not_matter(inputs: dict[str, object]) -> None:
    assert digest(dict(reversed(inputs.items()))) == digest(inputs)


def test_a_number_that_json_has_no_word_for_is_refused() -> None:
    with pytest.raises(ValueError):
        canonical_json({"value": float("nan")})


def test_nothing_hidden_is_left_behind(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write(STAGE, {}, {"file": b"text"}, {})
    store.write(STAGE, {}, {"file": b"text"}, {})
    store.replace(tmp_path / "feed" / "latest.json", b"{}")
    assert list((tmp_path / ".tmp").iterdir()) == []


def test_a_write_that_fails_leaves_no_artifact(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with pytest.raises(FileNotFoundError):
        store.write(STAGE, {}, {"first": b"text", "missing-folder/second": b"text"}, {})
    assert store.find(STAGE, {}) is None
    assert list((tmp_path / ".tmp").iterdir()) == []


def test_a_sweep_removes_what_killed_runs_left_long_ago_and_nothing_younger(tmp_path: Path) -> None:
    old, young = tmp_path / ".tmp" / "old", tmp_path / ".tmp" / "young"
    for folder in (old, young):
        folder.mkdir(parents=True)
        (folder / "part").write_bytes(b"half")
    os.utime(old, (0, 0))
    Store(tmp_path).sweep()
    assert not old.exists()
    assert young.exists()


WRITER = """
import sys
import tempfile
from pathlib import Path
from pipeline.store import Stage, Store
store, number = Store(Path(sys.argv[1])), 0
files = {f"file{i}": bytes(200_000) for i in range(5)}
while True:
    number += 1
    store.write(Stage("demo", 1), {"number": number}, files, {"number": number})
"""


@pytest.mark.slow
def test_a_writer_that_is_killed_leaves_only_whole_artifacts(tmp_path: Path) -> None:
    for attempt in range(10):
        root = tmp_path / str(attempt)
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(root)])
        while not list((root / "store" / "demo").glob("*")):
            assert writer.poll() is None
            time.sleep(0.01)
        time.sleep(attempt * 0.013)
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        artifacts = list((root / "store" / "demo").glob("*"))
        assert all(len(list(artifact.iterdir())) == 6 for artifact in artifacts)


def _write_the_same(root: Path, barrier: multiprocessing.synchronize.Barrier) -> None:
    barrier.wait()
    for number in range(20):
        Store(root).write(STAGE, {"number": number}, {"file": bytes(50_000)}, {"number": number})


def test_two_writers_of_the_same_artifacts_both_end_well(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(2)
    writers = [context.Process(target=_write_the_same, args=(tmp_path, barrier)) for _ in range(2)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0]
    store = Store(tmp_path)
    assert all(store.find(STAGE, {"number": number}) is not None for number in range(20))
    assert list((tmp_path / ".tmp").iterdir()) == []


@pytest.mark.parametrize("harm", ["manifest missing", "manifest empty", "file missing", "file cut"])
def test_an_artifact_that_is_not_whole_is_made_again(tmp_path: Path, harm: str) -> None:
    store = Store(tmp_path)
    folder = store.path(store.write(STAGE, {}, {"file": b"text"}, {}), "file").parent
    if harm == "manifest missing":
        (folder / "manifest.json").unlink()
    elif harm == "manifest empty":
        (folder / "manifest.json").write_bytes(b"")
    elif harm == "file missing":
        (folder / "file").unlink()
    else:
        (folder / "file").write_bytes(b"tex")
    assert store.find(STAGE, {}) is None
    made = store.write(STAGE, {}, {"file": b"text"}, {})
    assert store.read(made, "file") == b"text"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"hit@1":0.5', '"hit@1":0.1'),
        ('"name":"a"', '"name":"b"'),
        ('"version":1', '"version":2'),
        ('"key":"', '"key":"0'),
    ],
)
def test_a_manifest_that_was_changed_is_none_and_is_made_anew(tmp_path: Path, old: str, new: str) -> None:
    store = Store(tmp_path)
    made = store.write(STAGE, INPUTS, FILES, FACTS)
    manifest = store.path(made, "manifest.json")
    text = manifest.read_text()
    assert text.count(old) == 1
    manifest.write_text(text.replace(old, new))
    assert store.find(STAGE, INPUTS) is None and not list(store.stored(STAGE))
    assert store.write(STAGE, INPUTS, FILES, FACTS) == store.find(STAGE, INPUTS) == made


def test_an_artifact_that_was_moved_to_another_key_is_none(tmp_path: Path) -> None:
    store = Store(tmp_path)
    made = store.write(STAGE, INPUTS, FILES, FACTS)
    other: dict[str, JsonValue] = {"other": 1}
    store.path(made, "").rename(store.root / "store" / STAGE.name / Store.key(STAGE, other))
    assert store.find(STAGE, other) is None


def test_bytes_that_changed_are_told_and_discarded_so_that_the_next_run_makes_them_again(tmp_path: Path) -> None:
    store = Store(tmp_path)
    made = store.write(STAGE, {}, {"file": b"text"}, {})
    store.path(made, "file").write_bytes(b"TEXT")
    with pytest.raises(Unsound, match="run again"):
        store.read(made, "file")
    assert store.find(STAGE, {}) is None


def test_a_sweep_removes_the_notes_of_nights_that_were_killed_long_ago(tmp_path: Path) -> None:
    notes = Store(tmp_path).nights / "old.jsonl"
    notes.parent.mkdir()
    notes.write_text("{}\n")
    os.utime(notes, (0, 0))
    Store(tmp_path).sweep()
    assert not notes.exists()


def test_a_file_elsewhere_is_replaced_whole_through_a_link_and_without_leftovers(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    target, link = tmp_path / "real" / "taps.toml", tmp_path / "taps.toml"
    target.write_text("old")
    link.symlink_to(target)
    replace_file(link, b"new")
    assert (target.read_text(), link.is_symlink()) == ("new", True)
    assert [path.name for path in target.parent.iterdir()] == ["taps.toml"]


def test_a_file_on_another_disk_than_the_store_is_replaced(tmp_path: Path) -> None:
    shm = Path("/dev/shm")
    if not os.access(shm, os.W_OK) or shm.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is no second disk")
    with tempfile.TemporaryDirectory(dir=shm) as other:
        replace_file(Path(other) / "taps.toml", b"new")
        assert (Path(other) / "taps.toml").read_bytes() == b"new"


def test_what_a_stage_made_is_listed_by_key_for_its_present_version_alone(tmp_path: Path) -> None:
    store = Store(tmp_path)
    made = [store.write(STAGE, {"a": number}, {}, {}) for number in range(5)]
    store.write(Stage("demo", 2), {"a": 9}, {}, {})
    store.path(store.write(STAGE, {"a": 8}, {"file": b"text"}, {}), "file").unlink()
    assert list(store.stored(STAGE)) == sorted(made, key=lambda artifact: artifact.key)
    assert list(store.stored(Stage("never", 1))) == []


READ = """
import os, sys
import pyarrow.parquet
from pipeline import stages
from pipeline.config import Overrides, load
from pipeline.reports.feed import Night
from pipeline.workspace import Workspace, read
settings = load(Overrides(config=sys.argv[1], store=sys.argv[2]), {})
workspace = Workspace(settings, Night(settings.store, "reading"))
grouped = stages.place(workspace).grouped
before = set(os.listdir("/proc/self/task"))
entries = read(workspace, grouped, "entries.parquet")
print(entries.num_rows, len(set(os.listdir("/proc/self/task")) - before))
"""


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="only Linux tells which threads a process has")
def test_reading_starts_no_thread_that_could_outlive_the_interpreter(examples: Path, finished: Path) -> None:
    """A thread that lets go of Python's memory while the interpreter ends takes the process down: exit code 134."""
    words = [sys.executable, "-c", READ, str(examples / "config" / "assay.toml"), str(finished)]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
    assert said == ["229", "0"]
