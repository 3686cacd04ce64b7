"""Near-duplicates in a night: only new bodies are hashed, people's decisions count, ids are carried on, bytes agree."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from pipeline import stages
from pipeline.classes import CLUSTER, WHOLE, Shard
from pipeline.config import Overrides, load
from pipeline.reports.feed import Night, carried_ids, lineage_files
from pipeline.store import Artifact, Store
from pipeline.workspace import Workspace, cluster_inputs, find_corpus
from tests.conftest import Ended

Assay = Callable[..., Ended]

TAP = "solo-dev/dotfiles"
PIN = "1ca9aef0625caf28a2733889cfbb4d5c072e659f"


@pytest.fixture
def project(examples: Path, tmp_path: Path) -> Path:
    """A project of its own, whose files a test may change; the registries are shared."""
    folder = tmp_path / "project"
    shutil.copytree(examples / "config", folder / "config")
    (folder / "build").symlink_to(examples / "build")
    return folder


def config_of(project: Path) -> Path:
    return project / "config" / "assay.toml"


def git(repository: Path, *words: str, stdin: bytes = b"") -> str:
    who = {f"GIT_{who}_{what}": "x@y.z" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    command = ["git", "-C", str(repository), *words]
    return (
        subprocess.run(command, env=os.environ | who, input=stdin, capture_output=True, check=True)
        .stdout.decode()
        .strip()
    )


def with_a_new_skill(project: Path, tmp_path: Path, body: str) -> None:
    """Give one tap a commit more, with one skill more, and pin it."""
    source = Path(shutil.copytree(project / "build" / "examples" / "solo-dev+dotfiles.git", tmp_path / "changed.git"))
    text = f"---\nname: brand-new\ndescription: A new one.\n---\n{body}\n".encode()
    blob = git(source, "hash-object", "-w", "--stdin", stdin=text)
    folder = git(source, "mktree", stdin=f"100644 blob {blob}\tSKILL.md\n".encode())
    listed = git(source, "ls-tree", "main").encode()
    tree = git(source, "mktree", stdin=listed + f"\n040000 tree {folder}\tzz-brand-new\n".encode())
    commit = git(source, "commit-tree", tree, "-p", "main", "-m", "one more")
    git(source, "update-ref", "refs/heads/main", commit)
    taps = project / "config" / "taps.toml"
    rows = taps.read_text().replace("../build/examples/solo-dev+dotfiles.git", str(source)).replace(PIN, commit)
    head, _, tail = rows.partition(f'name = "{TAP}"')
    own, bracket, rest = tail.partition("[[tap]]")
    kept = "\n".join(line for line in own.splitlines() if not line.startswith(("entries", "classes")))
    taps.write_text(f'{head}name = "{TAP}"{kept}\n{bracket}{rest}')


def details(ended: Ended) -> dict[str, str]:
    assert ended.exit_code == 0, ended.err
    return {row["stage"]: row["detail"] for row in ended.json["details"]}


def entries(store: Path, run_id: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.ParquetFile(store / "feed" / f"run={run_id}" / "entries.parquet").read().to_pylist()
    return rows


def body_of(store: Path, run_id: str, name: str) -> str:
    return str(next(row["body_sha256"] for row in entries(store, run_id) if row["slug"] == name))


def test_a_night_in_which_one_tap_changed_hashes_its_new_body_alone_and_says_so(
    stored: Path, project: Path, tmp_path: Path, assay: Assay
) -> None:
    with_a_new_skill(project, tmp_path, "A body that nobody has ever seen before, of a handful of words.")
    ended = assay("run", "--config", config_of(project), "--store", stored, "--json")
    assert details(ended)["signatures"] == "1 of 185 bodies hashed"


def test_a_body_that_another_tap_has_already_is_not_hashed_again(
    stored: Path, project: Path, tmp_path: Path, examples: Path, assay: Assay
) -> None:
    source = examples / "build" / "examples" / "harbor-works+field-skills.git"
    path = next(line for line in git(source, "ls-tree", "-r", "--name-only", "HEAD").splitlines() if "SKILL.md" in line)
    with_a_new_skill(project, tmp_path, git(source, "show", f"HEAD:{path}").split("---", 2)[2])
    ended = assay("run", "--config", config_of(project), "--store", stored, "--json")
    assert "signatures" not in details(ended)


def workspace(project: Path, store: Path) -> Workspace:
    settings = load(Overrides(config=config_of(project), store=store), {})
    return Workspace(settings, Night(settings.store, "test"))


def clustered_by(project: Path, store: Path, shards: Iterable[Shard]) -> Artifact:
    """Make the clusters of a finished store again, with the bodies cut so."""
    for stage in ("signatures", "clusters"):
        shutil.rmtree(store / "store" / stage)
    at = workspace(project, store)
    corpus = find_corpus(at)
    for shard in shards:
        stages.sign(at, corpus, shard)
    return stages.clusters(at, corpus)


@pytest.mark.parametrize("shards", [8, 32])
def test_the_number_of_shards_changes_no_byte(stored: Path, project: Path, shards: int) -> None:
    at = workspace(project, stored)
    whole = at.store.get(CLUSTER, cluster_inputs(at, find_corpus(at)), "")
    assert clustered_by(project, stored, [Shard(number, shards) for number in range(shards)]) == whole
    assert len(list((stored / "store" / "signatures").iterdir())) > 1


def test_every_body_is_in_one_shard() -> None:
    digests = [f"{number:08x}" + "0" * 56 for number in (0, 1, 2**29 - 1, 2**29, 2**31, 2**32 - 1)]
    for digest in digests:
        assert sum(Shard(number, 8).holds(digest) for number in range(8)) == 1
        assert WHOLE.holds(digest)


def test_the_order_of_taps_changes_no_cluster(stored: Path, project: Path) -> None:
    at = workspace(project, stored)
    before = at.store.get(CLUSTER, cluster_inputs(at, find_corpus(at)), "")
    taps = project / "config" / "taps.toml"
    head, *rows = taps.read_text().split("[[tap]]")
    taps.write_text("[[tap]]".join([head, *reversed([row.rstrip() + "\n\n" for row in rows])]))
    assert clustered_by(project, stored, [WHOLE]) == before


def test_what_a_person_confirmed_is_one_class_and_what_they_refused_is_no_cluster(
    stored: Path, project: Path, assay: Assay
) -> None:
    first = assay("run", "--config", config_of(project), "--store", stored, "--json").json["run_id"]
    pair = [row for row in entries(stored, first) if row["slug"] == "pii-scrub"]
    bodies = sorted({f"class:{row['body_sha256']}" for row in pair})
    clusters = {row["cluster_id"] for row in pair}
    assert len(bodies) == 2 and len(clusters) == 1 and None not in clusters
    decisions = project / "config" / "clusters.jsonl"
    classes = {}
    for same in (True, False):
        decisions.write_text(json.dumps({"same": same, "bodies": bodies, "by": "kim"}))
        ended = assay("run", "--config", config_of(project), "--store", stored, "--json")
        assert ended.exit_code == 0, ended.err
        again = [row for row in entries(stored, ended.json["run_id"]) if row["slug"] == "pii-scrub"]
        classes[same] = {row["class_id"] for row in again}
        assert {row["cluster_id"] for row in again} == (clusters if same else {None})
    assert (len(classes[True]), len(classes[False])) == (1, 2)


def test_decisions_about_bodies_that_are_not_there_are_counted(stored: Path, project: Path, assay: Assay) -> None:
    rows = [{"same": same, "bodies": [f"class:{a * 64}", f"class:{b * 64}"], "by": "kim"} for same, a, b in DECIDED]
    (project / "config" / "clusters.jsonl").write_text("\n".join(map(json.dumps, rows)))
    ended = assay("run", "--config", config_of(project), "--store", stored, "--json")
    assert details(ended)["classes"] == "2 of the decided sets and pairs of bodies are not in this corpus"


DECIDED = ((True, "a", "b"), (False, "c", "d"))


def test_a_damaged_earlier_run_ends_the_lineage_and_that_is_said(
    stored: Path, project: Path, tmp_path: Path, assay: Assay
) -> None:
    next(stored.glob("feed/run=*/entries.parquet")).write_bytes(b"PAR1")
    with_a_new_skill(project, tmp_path, "A body of a few words.")
    ended = assay("run", "--config", config_of(project), "--store", stored, "--json")
    assert details(ended)["feed"].startswith("no lineage: the run ")
    assert lineage_files(Store(stored)) == []


def test_wrong_decisions_end_with_2_before_any_work(tmp_path: Path, project: Path, assay: Assay) -> None:
    (project / "config" / "clusters.jsonl").write_text('{"same": true, "bodies": ["x"]}')
    ended = assay("run", "--config", config_of(project), "--store", tmp_path / "store")
    assert ended.exit_code == 2
    assert "clusters.jsonl line 1 bodies" in ended.err and "clusters.jsonl line 1 by: is missing" in ended.err
    assert not (tmp_path / "store" / "store").exists()


def test_a_cluster_that_a_body_joins_keeps_its_lineage_id(
    stored: Path, project: Path, tmp_path: Path, assay: Assay
) -> None:
    before = json.loads((stored / "feed" / "latest.json").read_text())["run_id"]
    old = next(row["cluster_id"] for row in entries(stored, before) if row["slug"] == "pii-scrub")
    body = text_of(stored, body_of(stored, before, "pii-scrub"))
    with_a_new_skill(project, tmp_path, body + "\n\nOne more line at the end.")
    after = assay("run", "--config", config_of(project), "--store", stored, "--json").json["run_id"]
    new = next(row["cluster_id"] for row in entries(stored, after) if row["slug"] == "brand-new")
    assert new not in (None, old)
    assert carried_ids(Store(stored), after)[new] == old
    (file,) = lineage_files(Store(stored), after)
    rows = pq.ParquetFile(file).read().to_pylist()
    assert [(row["event"], row["path_text"]) for row in rows if row["subject"] == "entry"] == [
        ("born", "zz-brand-new/SKILL.md"),
        ("joined", "zz-brand-new/SKILL.md"),
    ]
    assert {row["run_before"] for row in rows} == {before} and {row["run_after"] for row in rows} == {after}


def text_of(store: Path, digest: str) -> str:
    for path in (store / "store" / "catalog").glob("*/entries.parquet"):
        for row in pq.ParquetFile(path).read(["body_sha256", "body"]).to_pylist():
            if row["body_sha256"] == digest:
                return str(row["body"])
    raise AssertionError(f"no catalogue has {digest}")


def test_a_night_that_changes_nothing_publishes_no_lineage(stored: Path, project: Path, assay: Assay) -> None:
    assert assay("run", "--config", config_of(project), "--store", stored, "--json").exit_code == 0
    assert lineage_files(Store(stored)) == []
