"""What a snapshot holds, whatever the tree."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.errors import BadInput, Outage, Unsound
from pipeline.store import Store
from pipeline.taps.failures import State
from pipeline.taps.snapshot import (
    SnapshotOptions,
    TapError,
    TapFile,
    TapManifest,
    TapState,
    attempt,
    read_files,
    read_manifest,
    snapshot,
    verdict,
)
from tests.taps.gitforge import Files, Repository, Wrapped, link, submodule, tap_of

OPTIONS = SnapshotOptions()


def take(store: Store, repository: Repository, pin: str, options: SnapshotOptions = OPTIONS) -> list[TapFile]:
    return read_files(store, snapshot(store, tap_of(repository, pin), Path("/"), options).artifact)


def manifest_of(store: Store, repository: Repository, files: Files, options: SnapshotOptions = OPTIONS) -> TapManifest:
    tap = tap_of(repository, repository.commit(files))
    return read_manifest(snapshot(store, tap, Path("/"), options).artifact)


def contents(files: list[TapFile]) -> dict[bytes, bytes]:
    return {file.path: file.content for file in files}


def test_it_holds_what_the_catalogue_may_need_and_nothing_else(store: Store, repository: Repository) -> None:
    pin = repository.commit(
        {
            "SKILLS/a/SKILL.md": b"skill",
            "SKILLS/a/helper.md": b"no",
            "SKILLS/a/deep/SKILL.md": b"deep",
            "rules/x.MDC": b"rule",
            ".cursorrules": b"dot",
            "agents/go.md": b"agent",
            "docs/maybe.md": b"maybe",
            "README.md": b"no",
            "main.py": b"no",
        }
    )
    assert contents(take(store, repository, pin)) == {
        b".cursorrules": b"dot",
        b"SKILLS/a/SKILL.md": b"skill",
        b"SKILLS/a/deep/SKILL.md": b"deep",
        b"agents/go.md": b"agent",
        b"docs/maybe.md": b"maybe",
        b"rules/x.MDC": b"rule",
    }


HOSTILE = [
    b"agents/new\nline.md",
    b'agents/"quoted".md',
    b"agents/'; touch x;.md",
    b"-agents/agents/-leading.md",
    b"agents/space at end /SKILL.md",
    b"agents/a:b.md",
    b"agents/cr\r.md",
    b"agents/tab\t.md",
    b"agents/not-utf8-\xff\xfe.md",
    b"agents/\\backslash\\.md",
    b"agents/CON.md",
    b"agents/con.md",
    "agents/é-ü-漢.md".encode(),
    b"agents/" + b"long" * 50 + b".md",
    b":(glob)agents/*.md",
    b"--help.md",
    b"HEAD.md",
]


def test_hostile_names_are_names_like_any_other(store: Store, repository: Repository) -> None:
    pin = repository.commit({path: path for path in HOSTILE})
    files = take(store, repository, pin)
    assert contents(files) == {path: path for path in HOSTILE}
    assert [file.path for file in files] == sorted(HOSTILE)


def test_links_give_the_bytes_of_their_file_at_their_own_path(store: Store, repository: Repository) -> None:
    pin = repository.commit(
        {
            "lib/body.txt": b"body",
            "skills/a/SKILL.md": link("../../lib/body.txt"),
            "agents/b.md": link("../skills/a/SKILL.md"),
            "shelf": link("lib"),
            "agents/c.md": link("../shelf/body.txt"),
        }
    )
    blob = repository.blob(b"body")
    assert take(store, repository, pin) == [
        TapFile(b"agents/b.md", blob, True, b"body"),
        TapFile(b"agents/c.md", blob, True, b"body"),
        TapFile(b"skills/a/SKILL.md", blob, True, b"body"),
    ]


ODD: Files = {
    "agents/fine.md": b"fine",
    "agents/broken.md": link("nowhere.md"),
    "agents/broken2.md": link("fine.md\n"),
    "agents/folder.md": link("../docs"),
    "agents/outside.md": link("../../fine.md"),
    "agents/absolute.md": link("/etc/passwd"),
    "agents/loop.md": link("loop.md"),
    "agents/endless.md": link("x" * 5000),
    "agents/binary.md": b"a\0b",
    "agents/large.md": b"x" * 101,
    "agents/to-large.md": link("large.md"),
    "agents/module.md": submodule(),
    "docs/latest": link("nowhere"),
    "docs/code.py": link("../main.py"),
    "__pycache__/x.md": link("nowhere"),
    "skills/a/SKILL.md": b"skill",
    "skills/a/part.txt": b"part",
    "main.py": b"code",
    "LICENSE": b"Mozilla Public License Version 2.0",
}


def test_every_file_of_the_tree_is_accounted_for(store: Store, repository: Repository) -> None:
    manifest = manifest_of(store, repository, ODD, SnapshotOptions(max_file_bytes=100))
    assert manifest.passed_over == {
        "binary": 1,
        "broken_link": 4,
        "link_loop": 1,
        "link_outside": 2,
        "link_to_directory": 1,
        "submodule": 1,
        "too_large": 2,
    }
    assert manifest.others == {".py": 2, "no extension": 1, "part of a skill": 1, "skipped": 1}
    assert (manifest.read, manifest.bytes) == (2, len(b"fine" + b"skill"))
    assert manifest.files == len(ODD)
    assert manifest.files == manifest.read + sum(manifest.passed_over.values()) + sum(manifest.others.values())


def test_the_manifest_says_what_the_commit_is(store: Store, repository: Repository) -> None:
    pin = repository.commit({"a.mdc": b"", "LICENSE.md": b"Attribution-ShareAlike 4.0 International"})
    manifest = read_manifest(snapshot(store, tap_of(repository, pin), Path("/"), OPTIONS).artifact)
    assert manifest.tree == repository.git("rev-parse", f"{pin}^{{tree}}").decode().strip()
    assert (manifest.pin, manifest.committed, manifest.licence) == (pin, "2024-05-06T05:08:09Z", "CC-BY-SA-4.0")


def test_a_licence_may_be_a_link(store: Store, repository: Repository) -> None:
    files: Files = {"COPYING": link("legal/mpl.txt"), "legal/mpl.txt": b"Mozilla Public License Version 2.0"}
    assert manifest_of(store, repository, files).licence == "MPL-2.0"


def test_an_empty_tree_is_a_snapshot_without_files(store: Store, repository: Repository) -> None:
    assert take(store, repository, repository.commit({})) == []


def test_the_limit_of_size_counts_bytes(store: Store, repository: Repository) -> None:
    pin = repository.commit({"a.mdc": "é".encode() * 5})
    assert len(take(store, repository, pin, SnapshotOptions(max_file_bytes=10))) == 1
    assert len(take(store, repository, pin, SnapshotOptions(max_file_bytes=9))) == 0


def test_a_sha256_repository_is_read(store: Store, tmp_path: Path) -> None:
    repository = Repository(tmp_path / "new.git", object_format="sha256")
    pin = repository.commit({"agents/a.md": b"a", "agents/b.md": link("a.md")})
    assert len(pin) == 64
    assert contents(take(store, repository, pin)) == {b"agents/a.md": b"a", b"agents/b.md": b"a"}


def test_the_same_tree_gives_the_same_bytes_in_another_store(repository: Repository, tmp_path: Path) -> None:
    tap = tap_of(repository, repository.commit(ODD))
    first, second = (snapshot(Store(tmp_path / name), tap, Path("/"), OPTIONS).artifact for name in ("s1", "s2"))
    assert first == second


def test_a_stored_tap_runs_no_git(store: Store, repository: Repository, watched_git: Wrapped) -> None:
    tap = tap_of(repository, repository.commit({"a.mdc": b"rule"}))
    assert snapshot(store, tap, Path("/"), OPTIONS).source == "fetched"
    assert watched_git.calls()
    watched_git.log.unlink()
    assert snapshot(store, tap, Path("/"), OPTIONS).source == "store"
    assert watched_git.calls() == []


def test_a_commit_that_is_here_is_not_fetched_again(store: Store, repository: Repository, watched_git: Wrapped) -> None:
    tap = tap_of(repository, repository.commit({"a.mdc": b"rule"}))
    snapshot(store, tap, Path("/"), OPTIONS)
    watched_git.log.unlink()
    assert snapshot(store, tap, Path("/"), SnapshotOptions(max_file_bytes=2)).source == "fetched"
    assert watched_git.calls()
    assert watched_git.fetches() == []


def test_a_relative_path_is_relative_to_the_given_folder(store: Store, repository: Repository) -> None:
    tap = tap_of("repo.git", repository.commit({"a.mdc": b"rule"}))
    assert attempt(store, tap, repository.folder.parent, OPTIONS).state.state == "ok"


def test_a_folder_with_an_odd_name_can_be_a_tap(store: Store, tmp_path: Path) -> None:
    repository = Repository(tmp_path / "an odd: %20 'name'" / "-x.git")
    assert take(store, repository, repository.commit({"a.mdc": b"rule"}))


def test_a_row_without_a_pin_is_bad_input(store: Store, repository: Repository) -> None:
    with pytest.raises(BadInput, match="pin"):
        snapshot(store, tap_of(repository, None), Path("/"), OPTIONS)


def test_an_attempt_tells_how_it_ended(store: Store, repository: Repository) -> None:
    tap = tap_of(repository, repository.commit({"a.mdc": b"rule"}))
    state, artifact = attempt(store, tap, Path("/"), OPTIONS)
    assert (state.name, state.pin, state.state, state.reason, state.source) == (tap.name, tap.pin, "ok", "", "fetched")
    assert artifact is not None


def state_of(name: str, state: State) -> TapState:
    return TapState(name=name, pin="f" * 40, state=state, reason="so it is", source=None, seconds=0.0)


def test_all_ok_is_no_error() -> None:
    verdict([state_of("a/a", "ok")])


@pytest.mark.parametrize("worse", ["gone", "missing_pin", "invalid", "drift"])
def test_what_waiting_does_not_mend_goes_before_an_outage(worse: State) -> None:
    with pytest.raises(Unsound) as caught:
        verdict([state_of("a/a", "unavailable"), state_of("b/b", "ok"), state_of("c/c", worse)])
    lines = str(caught.value).splitlines()
    assert [line.partition(" ")[0] for line in lines] == ["a/a", "c/c"]
    assert worse in lines[1]


def test_outages_alone_are_an_outage() -> None:
    with pytest.raises(Outage, match=r"^a/a at f+: unavailable: so it is; try again later$"):
        verdict([state_of("a/a", "unavailable"), state_of("b/b", "ok")])


def test_a_tap_error_has_the_exit_code_of_its_state() -> None:
    assert TapError("unavailable", "").exit_code == 75
    assert TapError("gone", "").exit_code == 1
