"""New pins: what would move between two real commits, the change for review, and upstreams that are not there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pipeline.store import Store
from tests.conftest import Ended, feed_bytes
from tests.taps.gitforge import daemon

Assay = Callable[..., Ended]

TAP, FOLDER = "harbor-works/field-skills", "harbor-works+field-skills.git"
PIN = "0c7cca92c5297ae4ed61e250602c42ec992a43bd"
WORKTREES, MOVED = "skills/git-worktrees/SKILL.md", "skills/parallel-checkouts/SKILL.md"
LICENCE, ERRORS = "skills/licence-check/SKILL.md", "skills/error-messages/SKILL.md"
NEW = "skills/naming-branches/SKILL.md"


class Upstream(NamedTuple):
    """A copy of an example registry that a test may commit to, and a project whose tap list names it."""

    project: Path
    repository: Path

    @property
    def config(self) -> Path:
        return self.project / "config" / "assay.toml"

    @property
    def taps(self) -> Path:
        return self.project / "config" / "taps.toml"

    def git(self, *arguments: str, stdin: bytes = b"") -> bytes:
        person = {f"GIT_{who}_{what}": "x@y.z" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        dates = {"GIT_AUTHOR_DATE": "2026-05-06T07:08:09Z", "GIT_COMMITTER_DATE": "2026-05-06T07:08:09Z"}
        environment = {**os.environ, **person, **dates, "GIT_INDEX_FILE": str(self.repository / "index")}
        command = ["git", "-C", str(self.repository), *arguments]
        return subprocess.run(command, input=stdin, env=environment, capture_output=True, check=True).stdout

    def content(self, path: str) -> bytes:
        return self.git("cat-file", "blob", f"{PIN}:{path}")

    def commit(self, changes: Mapping[str, bytes | None]) -> str:
        """Commit files that are written or, where None, removed."""
        lines = []
        for path, content in changes.items():
            if content is None:
                lines.append(f"0 {'0' * 40}\t{path}\0")
            else:
                blob = self.git("hash-object", "-w", "--stdin", stdin=content).decode().strip()
                lines.append(f"100644 {blob}\t{path}\0")
        self.git("read-tree", "main")
        self.git("update-index", "-z", "--index-info", stdin="".join(lines).encode())
        tree = self.git("write-tree").decode().strip()
        commit = self.git("commit-tree", tree, "-p", "main", "-m", "again").decode().strip()
        self.git("update-ref", "refs/heads/main", commit)
        return commit

    def change(self, old: str, new: str) -> None:
        text = self.taps.read_text()
        assert text.count(old) == 1
        self.taps.write_text(text.replace(old, new))


@pytest.fixture
def upstream(examples: Path, tmp_path: Path) -> Upstream:
    project = tmp_path / "project"
    shutil.copytree(examples / "config", project / "config")
    (project / "build").symlink_to(examples / "build")
    repository = Path(shutil.copytree(examples / "build" / "examples" / FOLDER, tmp_path / "upstream.git"))
    made = Upstream(project, repository)
    made.change(f"../build/examples/{FOLDER}", str(repository))
    return made


@pytest.fixture
def refresh(assay: Assay, upstream: Upstream, stored: Path) -> Assay:
    """The command, over the project of the upstream and a store in which a night over it was finished."""

    def run(*words: object) -> Ended:
        return assay("taps", "refresh", "--config", upstream.config, "--store", stored, *words)

    return run


def a_busy_commit(upstream: Upstream) -> str:
    """One skill is renamed, one edited, one deleted, one added; golden rows pin the first two."""
    licence = upstream.content(LICENCE)
    return upstream.commit(
        {
            WORKTREES: None,
            MOVED: upstream.content(WORKTREES),
            LICENCE: licence + b"\nAsk a lawyer.\n",
            ERRORS: None,
            NEW: b"---\nname: naming-branches\ndescription: How to call a branch.\n---\nShort, and after the job.\n",
        }
    )


def change_of(proposal: dict[str, Any], tap: str = TAP) -> dict[str, Any]:
    (found,) = [each for each in proposal["taps"] if each["tap"] == tap]
    return dict(found)


def test_exactly_what_moves_between_two_commits_is_reported(upstream: Upstream, refresh: Assay) -> None:
    head = a_busy_commit(upstream)
    ended = refresh("--json")
    assert ended.exit_code == 0
    assert change_of(ended.json) == {
        "tap": TAP,
        "state": "ok",
        "reason": "",
        "pin": PIN,
        "proposed": head,
        "before": {"entries": 26, "classes": 23},
        "after": {"entries": 26, "classes": 23},
        "not_compared": None,
        "born": [NEW],
        "gone": [ERRORS],
        "edited": [LICENCE],
        "moved": [{"before": WORKTREES, "after": MOVED}],
    }
    others = [each for each in ended.json["taps"] if each["tap"] != TAP]
    assert len(others) == 9
    assert all(each["born"] == each["gone"] == each["edited"] == each["moved"] == [] for each in others)
    assert all(each["pin"] == each["proposed"] for each in others)
    assert (ended.json["before"]["entries"], ended.json["after"]["entries"]) == (229, 229)


def test_what_becomes_of_near_duplicates_is_reported(upstream: Upstream, refresh: Assay, stored: Path) -> None:
    copy = "skills/licence-audit/SKILL.md"
    upstream.commit({copy: upstream.content(LICENCE) + b"\nAsk a lawyer.\n"})
    found = refresh("--json").json["near_duplicates"]
    assert (found["born"], found["gone"], found["after"] - found["before"]) == (1, 0, 1)
    assert f"{TAP}::{copy}" in found["joined"] and f"{TAP}::{LICENCE}" in found["joined"] and found["left"] == []
    assert "1 born" in next(line for line in refresh().out.splitlines() if line.startswith("Near-duplicates: "))
    assert not list((stored / "feed").glob("lineage/*"))


def test_heads_that_are_the_pins_change_no_cluster(refresh: Assay) -> None:
    ended = refresh("--json")
    assert ended.json["near_duplicates"]["before"] == ended.json["near_duplicates"]["after"] > 0
    assert "Near-duplicates" not in refresh().out


def test_a_pinned_exemplar_that_was_renamed_is_proposed_at_its_new_path(upstream: Upstream, refresh: Assay) -> None:
    a_busy_commit(upstream)
    moved, edited = refresh("--json").json["golden"]
    assert (moved["query_id"], moved["effect"], moved["already"]) == ("two-branches-at-once", "unresolved", False)
    assert moved["written"] == f"{TAP}::{WORKTREES}"
    assert moved["now_at"] == f"{TAP}::{MOVED}"
    assert (edited["query_id"], edited["effect"]) == ("can-we-ship-gpl", "edited")
    assert edited["written"] == f"{TAP}::{LICENCE}"
    assert edited["now_at"] is None


def test_a_relevant_name_that_vanishes_is_reported_too(upstream: Upstream, refresh: Assay) -> None:
    upstream.commit({"skills/semver-decisions/SKILL.md": None})
    (row,) = refresh("--json").json["golden"]
    assert (row["field"], row["written"], row["now_at"]) == ("relevant 1", "semver-decisions", None)


def test_a_row_that_named_nothing_before_is_said_to_be_so_already(upstream: Upstream, refresh: Assay) -> None:
    a_busy_commit(upstream)
    with (upstream.project / "config" / "golden" / "default.jsonl").open("a") as rows:
        rows.write('{"query": "what is this", "relevant": ["no-such-name"]}\n')
    found = {row["written"]: row["already"] for row in refresh("--json").json["golden"]}
    assert (found["no-such-name"], found[f"{TAP}::{WORKTREES}"]) == (True, False)


def test_nothing_is_written_or_scored_unless_it_is_asked_for(
    upstream: Upstream, refresh: Assay, stored: Path, finished: Path
) -> None:
    a_busy_commit(upstream)
    text = upstream.taps.read_bytes()
    assert refresh().exit_code == 0
    assert upstream.taps.read_bytes() == text
    assert feed_bytes(stored) == feed_bytes(finished)
    stages = {path.name: len(list(path.iterdir())) for path in (finished / "store").iterdir()}
    made = {path.name: len(list(path.iterdir())) for path in (stored / "store").iterdir()}
    read = ("snapshot", "catalog", "corpus", "classes", "signatures", "clusters")
    assert made == {**stages, **{name: stages[name] + 1 for name in read}}
    assert not list((stored / "nights").iterdir())
    assert not (stored / "proposals").exists()


def test_the_written_list_differs_in_one_pin_alone_and_its_run_succeeds_once_the_exemplar_is_changed(
    upstream: Upstream, refresh: Assay, stored: Path, assay: Assay
) -> None:
    head = a_busy_commit(upstream)
    text = upstream.taps.read_text()
    ended = refresh("--write", upstream.taps, "--json")
    assert ended.json["written"] == str(upstream.taps)
    assert upstream.taps.read_text() == text.replace(PIN, head)

    night = ("run", "--config", upstream.config, "--store", stored, "--json")
    stopped = assay(*night)
    assert stopped.exit_code == 2
    (line,) = stopped.err.splitlines()
    assert f"candidates: {TAP}::{MOVED} (same body)" in line

    golden = upstream.project / "config" / "golden" / "default.jsonl"
    golden.write_text(golden.read_text().replace(f"{TAP}::{WORKTREES}", f"{TAP}::{MOVED}"))
    assert assay(*night).exit_code == 0


def test_counts_are_written_with_the_pin(upstream: Upstream, refresh: Assay) -> None:
    upstream.commit({NEW: b"Short, and after the job.\n"})
    text = upstream.taps.read_text()
    refresh("--write", upstream.taps.with_name("proposed.toml"))
    rows = tomllib.loads(upstream.taps.with_name("proposed.toml").read_text())["tap"]
    (row,) = [row for row in rows if row["name"] == TAP]
    assert (row["entries"], row["classes"]) == (27, 24)
    assert upstream.taps.read_text() == text


def test_a_pin_that_is_the_head_moves_nothing_and_the_list_is_left_alone(upstream: Upstream, refresh: Assay) -> None:
    before = upstream.taps.stat().st_ino, upstream.taps.stat().st_mtime_ns
    ended = refresh("--write", upstream.taps, "--json")
    assert ended.exit_code == 0
    assert ended.json["written"] is None
    assert ended.json["corpus"] == ended.json["proposed_corpus"]
    assert ended.json["golden"] == []
    assert (upstream.taps.stat().st_ino, upstream.taps.stat().st_mtime_ns) == before


def test_a_row_without_a_pin_is_given_its_first(upstream: Upstream, refresh: Assay) -> None:
    upstream.change(f'pin = "{PIN}"\nentries = 26\nclasses = 23\n', "")
    ended = refresh("--write", upstream.taps, "--json")
    assert ended.exit_code == 0
    change = change_of(ended.json)
    assert (change["pin"], change["proposed"], change["before"], change["born"]) == (None, PIN, None, None)
    assert change["not_compared"] == "the row has no pin yet"
    assert (ended.json["corpus"], ended.json["before"], ended.json["golden"]) == (None, None, [])
    assert f'name = "{TAP}"\npin = "{PIN}"\nentries = 26\nclasses = 23\nurl = ' in upstream.taps.read_text()


UNBORN = "its HEAD names no commit"


def test_an_upstream_that_is_gone_keeps_its_pin_and_the_others_are_attempted(
    upstream: Upstream, refresh: Assay
) -> None:
    a_busy_commit(upstream)
    upstream.change("../build/examples/solo-dev+dotfiles.git", "../build/examples/none.git")
    ended = refresh("--json", "--write", upstream.taps)
    assert ended.exit_code == 1
    assert ": gone: " in ended.err
    gone = change_of(ended.json, "solo-dev/dotfiles")
    assert (gone["state"], gone["proposed"], gone["after"], gone["born"]) == ("gone", None, None, None)
    assert gone["before"] == {"entries": 5, "classes": 5}
    assert change_of(ended.json)["moved"]
    assert len(ended.json["golden"]) == 2
    assert PIN not in upstream.taps.read_text()
    assert gone["pin"] in upstream.taps.read_text()


def test_only_outages_end_with_75(upstream: Upstream, refresh: Assay) -> None:
    upstream.change("../build/examples/solo-dev+dotfiles.git", "git://127.0.0.1:1/nowhere")
    ended = refresh("--json")
    assert ended.exit_code == 75
    assert change_of(ended.json, "solo-dev/dotfiles")["state"] == "unavailable"
    assert change_of(ended.json)["state"] == "ok"


def test_what_waiting_cannot_mend_goes_before_an_outage(upstream: Upstream, refresh: Assay) -> None:
    upstream.change("../build/examples/solo-dev+dotfiles.git", "git://127.0.0.1:1/nowhere")
    upstream.change(str(upstream.repository), "../build/examples/none.git")
    assert refresh().exit_code == 1


def test_an_upstream_whose_head_is_unborn_is_a_missing_pin(upstream: Upstream, refresh: Assay) -> None:
    upstream.git("symbolic-ref", "HEAD", "refs/heads/never-made")
    upstream.git("update-ref", "refs/heads/HEAD", "main")  # a branch of that name is not HEAD
    ended = refresh("--json")
    assert ended.exit_code == 1
    change = change_of(ended.json)
    assert (change["state"], change["proposed"]) == ("missing_pin", None)
    assert UNBORN in change["reason"] and UNBORN in ended.err


def test_a_pin_that_upstream_lost_can_be_left_behind(upstream: Upstream, assay: Assay, tmp_path: Path) -> None:
    upstream.change(PIN, f"{'0' * 39}1")
    options = ("--config", upstream.config, "--store", tmp_path / "new", "--json", "--write", upstream.taps)
    ended = assay("taps", "refresh", *options)
    assert ended.exit_code == 1
    assert "missing_pin" in ended.err
    change = change_of(ended.json)
    assert (change["state"], change["proposed"], change["before"], change["moved"]) == ("ok", PIN, None, None)
    assert change["not_compared"].startswith("its pin is not to be had: missing_pin: ")
    assert ended.json["golden"] == []
    assert PIN in upstream.taps.read_text()


def test_a_tap_that_can_be_read_nowhere_leaves_the_golden_rows_unchecked(
    upstream: Upstream, assay: Assay, tmp_path: Path
) -> None:
    upstream.change(str(upstream.repository), "../build/examples/none.git")
    ended = assay("taps", "refresh", "--config", upstream.config, "--store", tmp_path / "new", "--json")
    assert ended.exit_code == 1
    assert (ended.json["golden"], ended.json["after"]) == (None, None)
    assert ended.json["golden_not_checked"] == "a tap can be read neither at its pin nor at its head"


def test_a_head_without_any_entry_is_not_proposed(upstream: Upstream, refresh: Assay) -> None:
    names = upstream.git("ls-tree", "-r", "-z", "--name-only", "main").decode().split("\0")[:-1]
    upstream.commit(dict.fromkeys(names) | {"README.md": b"Moved elsewhere.\n"})
    ended = refresh("--json", "--write", upstream.taps)
    assert ended.exit_code == 1
    assert (change_of(ended.json)["state"], change_of(ended.json)["proposed"]) == ("drift", None)
    assert PIN in upstream.taps.read_text()


def test_two_rows_that_turn_out_to_be_one_repository_are_refused(upstream: Upstream, refresh: Assay) -> None:
    copy = shutil.copytree(upstream.repository, upstream.repository.with_name("copy.git"))
    with upstream.taps.open("a") as rows:
        rows.write(f'\n[[tap]]\nname = "other/name"\nurl = "{copy}"\n')
    ended = refresh()
    assert ended.exit_code == 2
    assert f"row 11 pin: it is the repository of row 3 ({TAP}): the same commit id" in ended.err


def test_a_file_that_is_not_the_list_is_not_overwritten(upstream: Upstream, refresh: Assay, tmp_path: Path) -> None:
    other = upstream.taps.with_name("assay.toml")
    text = other.read_text()
    ended = refresh("--write", other)
    assert (ended.exit_code, other.read_text()) == (2, text)
    elsewhere = refresh("--write", tmp_path / "proposed.toml")
    assert elsewhere.exit_code == 2
    assert "is relative to the list" in elsewhere.err
    assert not (tmp_path / "proposed.toml").exists()


def test_text_rows_are_refreshed_but_not_written(upstream: Upstream, refresh: Assay, tmp_path: Path) -> None:
    rows = tmp_path / "taps.txt"
    rows.write_text(f"a/b {PIN}\n")
    ended = refresh("--taps", rows, "--write", rows)
    assert ended.exit_code == 2
    assert f"assay taps import {rows}" in ended.err


def test_over_a_network_the_head_is_the_same(upstream: Upstream, refresh: Assay) -> None:
    head = a_busy_commit(upstream)
    with daemon(upstream.repository.parent) as url:
        upstream.change(str(upstream.repository), f"{url}/upstream.git")
        ended = refresh("--json")
    assert change_of(ended.json)["proposed"] == head
    assert change_of(ended.json)["moved"] == [{"before": WORKTREES, "after": MOVED}]


def test_people_see_what_moves_and_where_the_exemplar_is_now(upstream: Upstream, refresh: Assay) -> None:
    a_busy_commit(upstream)
    lines = refresh().out.splitlines()
    for line in (f"born {NEW}", f"gone {ERRORS}", f"edited {LICENCE}", f"moved {WORKTREES} to {MOVED}"):
        assert f"{TAP}: {line}" in lines
    golden = [line for line in lines if line.startswith("default line ")]
    assert f"; same body: {TAP}::{MOVED}" in golden[0]
    assert golden[1].endswith("holds other content; no candidate")
    assert lines[-1] == "1 of 10 taps would get another pin."


def test_the_bodies_that_an_entry_has_held_are_known_the_latest_first(
    upstream: Upstream, refresh: Assay, stored: Path
) -> None:
    from pipeline.config import Overrides, load
    from pipeline.reports.feed import Night
    from pipeline.workspace import Workspace, earlier_bodies

    settings = load(Overrides(config=upstream.config, store=stored))
    workspace = Workspace(settings, Night(settings.store, "refresh"))
    (first,) = earlier_bodies(workspace)[(TAP, LICENCE.encode())]
    a_busy_commit(upstream)
    refresh()
    latest, earlier = earlier_bodies(workspace)[(TAP, LICENCE.encode())]
    assert (latest != first, earlier) == (True, first)


def test_the_same_heads_give_the_same_proposal_and_its_diff_is_the_change(
    upstream: Upstream, stored: Path, tmp_path: Path
) -> None:
    from pipeline.config import Overrides, load
    from pipeline.refresh import proposed_list, publish, refresh
    from pipeline.reports.feed import Night
    from pipeline.workspace import Workspace

    a_busy_commit(upstream)
    folders = []
    for store in (stored, tmp_path / "new"):
        settings = load(Overrides(config=upstream.config, store=store))
        workspace = Workspace(settings, Night(settings.store, "refresh"))
        refreshed = refresh(workspace)
        folders += [publish(workspace, refreshed), publish(workspace, refreshed)]
    assert len({folder.name for folder in folders}) == 1
    assert {path.name for path in folders[0].iterdir()} == {"proposal.json", "proposal.md", "taps.diff"}
    for path in folders[0].iterdir():
        assert path.read_bytes() == (folders[-1] / path.name).read_bytes()
    assert json.loads((Store(stored).proposals / "latest.json").read_text()) == {"folder": folders[0].name}
    assert f"  - same body: `{TAP}::{MOVED}`" in (folders[0] / "proposal.md").read_text()

    before = upstream.taps.read_text()
    diff = folders[0] / "taps.diff"
    subprocess.run(["git", "apply", str(diff)], cwd=upstream.taps.parent, check=True)
    assert upstream.taps.read_text() == proposed_list(refreshed) != before
