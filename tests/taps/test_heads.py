"""What HEAD of a repository names, asked of real servers."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from pipeline.taps.snapshot import SnapshotOptions, TapState, find_head
from tests.taps.gitforge import Repository, Wrapped, daemon, tap_of
from tests.taps.httpsforge import https_server
from tests.taps.test_git import silent_server

HERE = Path.cwd()


def head(where: Repository | str, pin: str | None = None, seconds: float = 60.0) -> TapState:
    return find_head(tap_of(where, pin), HERE, SnapshotOptions(fetch_seconds=seconds))


@pytest.mark.parametrize("object_format", ["sha1", "sha256"])
def test_it_is_the_commit_of_the_default_branch(tmp_path: Path, object_format: str) -> None:
    repository = Repository(tmp_path / "repo.git", object_format=object_format)
    commit = repository.commit({"a.mdc": b"rule"})
    repository.commit({"a.mdc": b"other"}, branch="later")
    assert (head(repository).state, head(repository).pin) == ("ok", commit)


@pytest.mark.parametrize("branch", [None, "HEAD", "origin/HEAD"])
def test_an_unborn_head_is_a_missing_pin_whatever_else_is_called_so(repository: Repository, branch: str | None) -> None:
    if branch:
        repository.commit({"a.mdc": b"rule"}, branch=branch)
    state = head(repository, "a" * 40)
    assert (state.state, state.pin) == ("missing_pin", "a" * 40)
    assert "its HEAD names no commit" in state.reason


def test_what_is_not_there_is_gone_and_what_does_not_answer_is_an_outage(tmp_path: Path) -> None:
    assert head(str(tmp_path / "none.git")).state == "gone"
    assert head("git://127.0.0.1:1/x").state == "unavailable"


def test_a_server_that_says_nothing_is_given_up_after_the_time_limit() -> None:
    with silent_server() as port:
        start = time.monotonic()
        state = head(f"git://127.0.0.1:{port}/repo.git", seconds=1)
    assert time.monotonic() - start < 8
    assert (state.state, "1 s" in state.reason) == ("unavailable", True)


def test_over_the_network_it_is_the_same(repository: Repository) -> None:
    commit = repository.commit({"a.mdc": b"rule"})
    with daemon(repository.folder.parent) as url:
        assert head(f"{url}/repo.git").pin == commit


def test_credentials_are_neither_shown_nor_given_as_an_argument(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, watched_git: Wrapped
) -> None:
    commit = repository.commit({"a.mdc": b"rule"})
    with https_server(repository.folder.parent, tmp_path) as server:
        monkeypatch.setenv("GIT_SSL_CAINFO", str(server.certificate))
        url = server.url.replace("://", "://somebody:hunter22@")
        assert head(f"{url}/repo.git").pin == commit
        refused = head(f"{url}/401/repo.git")
    assert refused.state == "gone"
    assert "hunter22" not in refused.reason + "".join(watched_git.calls())
    assert "ls-remote --quiet tap HEAD" in watched_git.calls()


def test_the_configuration_of_a_person_changes_nothing(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = repository.commit({"a.mdc": b"rule"})
    (tmp_path / ".gitconfig").write_text(f'[url "file://{tmp_path}/elsewhere"]\n\tinsteadOf = file://{tmp_path}\n')
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "none"))
    assert head(repository).pin == commit
