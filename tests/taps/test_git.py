"""Fetching: what servers refuse, lack and do, and what a mirror survives. Real git on both ends."""

from __future__ import annotations

import fcntl
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.errors import BadInput
from pipeline.store import Store
from pipeline.taps.git import git_version, mirror_name
from pipeline.taps.snapshot import SnapshotOptions, TapState, attempt, read_files
from pipeline.taps.taplist import Tap
from tests.taps.gitforge import (
    NEVER,
    Files,
    Repository,
    Wrapped,
    daemon,
    free_port,
    link,
    plain_ssh,
    tap_of,
    wait_until,
)
from tests.taps.httpsforge import https_server

OPTIONS = SnapshotOptions(fetch_seconds=30)
HERE = Path("/")
PROJECT = Path(__file__).resolve().parents[2]


def state_of(store: Store, tap: Tap, options: SnapshotOptions = OPTIONS) -> TapState:
    return attempt(store, tap, HERE, options).state


def paths(store: Store, tap: Tap, options: SnapshotOptions = OPTIONS) -> list[bytes]:
    state, artifact = attempt(store, tap, HERE, options)
    assert artifact is not None, state
    return [file.path for file in read_files(store, artifact)]


def noise(seed: int, size: int) -> bytes:
    """Text that no packing makes much smaller."""
    return random.Random(seed).randbytes(size // 2).hex().encode()


def mirror_of(store: Store) -> Path:
    (folder,) = (path for path in store.mirrors.iterdir() if path.is_dir())
    return folder


def files_under(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


# What a fetch brings


def test_only_what_is_needed_is_fetched(store: Store, repository: Repository) -> None:
    pin = repository.commit({"a.mdc": b"rule", "main.py": b"code", "b.mdc": link("data/x"), "data/x": b"linked"})
    assert paths(store, tap_of(repository, pin)) == [b"a.mdc", b"b.mdc"]
    asked = [repository.blob(data) for data in (b"rule", b"linked", b"code")]
    answer = _raw_git(mirror_of(store), "cat-file", "--batch-check", stdin="\n".join(asked)).splitlines()
    assert [line.split()[1] for line in answer] == ["blob", "blob", "missing"]


def test_a_missing_object_is_missing_and_never_fetched_while_reading(store: Store, repository: Repository) -> None:
    pin = repository.commit({"a.mdc": b"rule", "main.py": b"code"})
    state_of(store, tap_of(repository, pin))
    assert "promisor" not in (mirror_of(store) / "config").read_text()


def _raw_git(folder: Path, *arguments: str, stdin: str = "") -> str:
    command = ["git", f"--git-dir={folder}", *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, check=True).stdout


def test_a_mirror_holds_no_credentials(store: Store, tmp_path: Path, repository: Repository) -> None:
    pin = repository.commit({"a.mdc": b"rule"})
    url = f"file://user:secret@localhost{repository.folder}"
    state_of(store, tap_of(url, pin))
    for name in files_under(store.root):
        assert b"secret" not in (store.root / name).read_bytes()


def test_a_second_pin_is_fetched_into_the_same_mirror(store: Store, repository: Repository) -> None:
    first = repository.commit({"a.mdc": b"rule", "same.mdc": b"same"})
    second = repository.commit({"b.mdc": b"other", "same.mdc": b"same"})
    assert paths(store, tap_of(repository, first)) == [b"a.mdc", b"same.mdc"]
    assert paths(store, tap_of(repository, second)) == [b"b.mdc", b"same.mdc"]
    assert mirror_of(store)


def test_git_reads_none_of_our_configuration(
    store: Store, repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".gitconfig").write_text('[url "file:///nowhere/"]\n\tinsteadOf = file:///\n')
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "url.file:///nowhere/.insteadOf")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "file:///")
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    assert paths(store, tap_of(repository, repository.commit({"a.mdc": b"rule"}))) == [b"a.mdc"]


# What servers refuse


@pytest.mark.parametrize("setting", ["uploadpack.allowFilter", "uploadpackfilter.allow"])
def test_a_server_that_refuses_filters_gives_everything(store: Store, repository: Repository, setting: str) -> None:
    repository.configure(setting, "false")
    pin = repository.commit({"a.mdc": b"rule", "b.mdc": link("data"), "data": b"x"})
    assert paths(store, tap_of(repository, pin)) == [b"a.mdc", b"b.mdc"]


@pytest.fixture
def old_server(repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The repository behind a server that speaks the oldest protocol and gives only what its branches show."""
    monkeypatch.setenv("PATH", str(plain_ssh(tmp_path / "old")), prepend=":")
    repository.configure("uploadpack.allowAnySHA1InWant", "false")
    return f"ssh://example.org{repository.folder}"


def test_a_server_that_refuses_unadvertised_commits_gives_everything(
    store: Store, repository: Repository, old_server: str
) -> None:
    pin = repository.commit({"a.mdc": b"rule"})
    repository.git("update-ref", "refs/heads/next", _child_of(repository, pin))
    repository.git("update-ref", "-d", "refs/heads/main")
    assert paths(store, tap_of(old_server, pin)) == [b"a.mdc"]


def test_a_server_that_refuses_unadvertised_blobs_gives_the_whole_commit(
    store: Store, repository: Repository, old_server: str, watched_git: Wrapped
) -> None:
    pin = repository.commit({"a.mdc": b"rule", "b.mdc": link("data"), "data": b"x"})
    assert paths(store, tap_of(old_server, pin)) == [b"a.mdc", b"b.mdc"]
    assert [" --stdin " in call for call in watched_git.fetches()] == [False, True, False]


def test_a_commit_that_no_branch_of_such_a_server_holds_is_a_missing_pin(
    store: Store, repository: Repository, old_server: str
) -> None:
    pin = repository.commit({"a.mdc": b"rule"})
    repository.commit({"b.mdc": b"rule"})
    assert state_of(store, tap_of(old_server, pin)).state == "missing_pin"


def _child_of(repository: Repository, parent: str) -> str:
    tree = repository.git("rev-parse", f"{parent}^{{tree}}").decode().strip()
    return repository.git("commit-tree", tree, "-p", parent, "-m", "child").decode().strip()


# What servers lack


def test_a_pin_that_the_repository_lacks(store: Store, repository: Repository) -> None:
    repository.commit({"a.mdc": b"rule"})
    state = state_of(store, tap_of(repository, NEVER))
    assert (state.state, state.source) == ("missing_pin", None)
    assert NEVER in state.reason


def test_a_pin_of_the_other_hash_is_missing(store: Store, repository: Repository) -> None:
    repository.commit({"a.mdc": b"rule"})
    assert state_of(store, tap_of(repository, "1" * 64)).state == "missing_pin"


@pytest.mark.parametrize("what", ["tag", "tree", "blob"])
def test_a_pin_that_is_no_commit_is_missing(store: Store, repository: Repository, what: str) -> None:
    commit = repository.commit({"a.mdc": b"rule"})
    repository.git("tag", "-a", "-m", "a tag", "v1", commit)
    pin = repository.git("rev-parse", {"tag": "v1", "tree": "main^{tree}", "blob": "main:a.mdc"}[what]).decode().strip()
    state = state_of(store, tap_of(repository, pin))
    assert state.state == "missing_pin"
    assert f"is a {what}" in state.reason


def test_a_repository_that_is_gone(store: Store, tmp_path: Path) -> None:
    assert state_of(store, tap_of(str(tmp_path / "nowhere.git"), NEVER)).state == "gone"


def test_a_catalogue_blob_that_the_repository_lacks_makes_the_tap_invalid(store: Store, repository: Repository) -> None:
    pin = repository.commit({f"agents/{number:02}.md": b"%d" % number for number in range(20)})
    lost = repository.lose(b"7")
    state = state_of(store, tap_of(repository, pin))
    assert state.state == "invalid"
    assert f"«agents/07.md», whose blob {lost}" in state.reason


def test_the_blob_at_the_end_of_a_link_is_needed_too(store: Store, repository: Repository) -> None:
    pin = repository.commit({"b.mdc": link("data"), "data": b"x"})
    repository.lose(b"x")
    state = state_of(store, tap_of(repository, pin))
    assert state.state == "invalid"
    assert "«b.mdc»" in state.reason


def test_a_link_that_a_needed_link_goes_through_is_needed_too(store: Store, repository: Repository) -> None:
    pin = repository.commit({"b.mdc": link("way"), "way": link("data"), "data": b"x"})
    repository.lose(b"data")
    state = state_of(store, tap_of(repository, pin))
    assert state.state == "invalid"
    assert "«b.mdc»" in state.reason


def test_other_blobs_that_the_repository_lacks_do_not_matter(store: Store, repository: Repository) -> None:
    files: Files = {"a.mdc": b"rule", "LICENSE": b"lost licence", "main.py": b"lost code"}
    links: Files = {f"link{number}": link(f"lost-{number}") for number in range(3)}
    pin = repository.commit(files | links)
    for data in (b"lost licence", b"lost code", b"lost-0", b"lost-1", b"lost-2"):
        repository.lose(data)
    assert paths(store, tap_of(repository, pin)) == [b"a.mdc"]


def test_a_tree_that_the_repository_lacks_makes_the_tap_invalid(store: Store, repository: Repository) -> None:
    pin = repository.commit({"agents/a.md": b"x"})
    tree = repository.git("rev-parse", f"{pin}:agents").decode().strip()
    (repository.folder / "objects" / tree[:2] / tree[2:]).unlink()
    assert state_of(store, tap_of(repository, pin)).state == "invalid"


# Networks


def test_a_tap_is_fetched_over_the_network(store: Store, repository: Repository) -> None:
    pin = repository.commit({"a.mdc": b"rule", "b.mdc": link("data"), "data": b"x"})
    with daemon(repository.folder.parent) as url:
        assert paths(store, tap_of(f"{url}/repo.git", pin)) == [b"a.mdc", b"b.mdc"]


def test_states_over_the_network(store: Store, repository: Repository) -> None:
    repository.commit({"a.mdc": b"rule"})
    with daemon(repository.folder.parent) as url:
        assert state_of(store, tap_of(f"{url}/repo.git", NEVER)).state == "missing_pin"
        assert state_of(store, tap_of(f"{url}/nowhere.git", NEVER)).state == "gone"


def test_a_closed_port_is_an_outage(store: Store) -> None:
    state = state_of(store, tap_of(f"git://127.0.0.1:{free_port()}/repo.git", NEVER))
    assert state.state == "unavailable"
    assert "refused" in state.reason


@pytest.fixture
def https(repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with https_server(repository.folder.parent, tmp_path) as server:
        monkeypatch.setenv("GIT_SSL_CAINFO", str(server.certificate))
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        yield server.url


def test_a_tap_is_fetched_over_https(store: Store, repository: Repository, https: str) -> None:
    pin = repository.commit({"a.mdc": b"rule", "b.mdc": link("data"), "data": b"x", "main.py": b"code"})
    assert paths(store, tap_of(f"{https}/repo.git", pin)) == [b"a.mdc", b"b.mdc"]
    assert state_of(store, tap_of(f"{https}/repo.git", NEVER)).state == "missing_pin"
    assert state_of(store, tap_of(f"{https}/nowhere.git", NEVER)).state == "gone"


@pytest.mark.parametrize(
    ("status", "state"),
    [
        *((status, "gone") for status in (401, 403, 404, 410, 451)),
        *((status, "unavailable") for status in (429, 500, 502, 503)),
    ],
)
def test_the_status_of_a_server_says_whether_to_come_back(store: Store, https: str, status: int, state: str) -> None:
    assert state_of(store, tap_of(f"{https}/{status}/repo.git", NEVER)).state == state


def test_an_unknown_certificate_is_an_outage(store: Store, https: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GIT_SSL_CAINFO")
    assert state_of(store, tap_of(f"{https}/repo.git", NEVER)).state == "unavailable"


def test_a_refused_password_is_not_shown(store: Store, https: str) -> None:
    url = https.replace("://", "://somebody:hunter22@")
    state = state_of(store, tap_of(f"{url}/401/repo.git", NEVER))
    assert state.state == "gone"
    assert "hunter22" not in state.reason


@contextmanager
def silent_server() -> Iterator[int]:
    """A port that accepts and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.mark.parametrize("scheme", ["git", "https"])
def test_a_fetch_that_takes_too_long_is_an_outage_and_leaves_no_process(store: Store, scheme: str) -> None:
    with silent_server() as port:
        start = time.monotonic()
        url = f"{scheme}://127.0.0.1:{port}/repo.git"
        state = state_of(store, tap_of(url, NEVER), SnapshotOptions(fetch_seconds=1))
        assert time.monotonic() - start < 8
        assert state.state == "unavailable"
        assert "longer than 1 s" in state.reason
        wait_until(lambda: not _running(str(mirror_of(store))), seconds=3)


def _running(mark: str) -> list[int]:
    """Processes of git that hold a file of the mirror ``mark``, or have it in their environment."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            environment = (process / "environ").read_bytes()
        except OSError:
            continue
        if f"GIT_DIR={mark}\0".encode() in environment:
            found.append(int(process.name))
    return found


# What a mirror survives


def test_what_a_killed_git_left_is_no_obstacle(store: Store, repository: Repository) -> None:
    first = repository.commit({"a.mdc": b"rule"})
    second = repository.commit({"b.mdc": b"rule 2"})
    state_of(store, tap_of(repository, first))
    mirror = mirror_of(store)
    for name in ("shallow.lock", "config.lock", "HEAD.lock", "objects/pack/tmp_pack_x"):
        (mirror / name).write_bytes(b"")
    (mirror / "config").write_text("[core\n")
    assert paths(store, tap_of(repository, second)) == [b"b.mdc"]
    assert not [name for name in files_under(mirror) if name.endswith(".lock") or "tmp_" in name]


@pytest.mark.parametrize("damage", ["cut", "flip", "index"])
def test_a_spoilt_mirror_is_made_anew(store: Store, repository: Repository, damage: str) -> None:
    pin = repository.commit({f"{number}.mdc": noise(number, 2000) for number in range(4)})
    assert len(paths(store, tap_of(repository, pin))) == 4
    for pack in (mirror_of(store) / "objects" / "pack").glob("*.idx" if damage == "index" else "*.pack"):
        data = pack.read_bytes()
        pack.chmod(0o644)
        middle = len(data) // 2
        flipped = data[:middle] + bytes([data[middle] ^ 255]) + data[middle + 1 :]
        pack.write_bytes(flipped if damage == "flip" else data[:middle])
    assert len(paths(store, tap_of(repository, pin), SnapshotOptions(max_file_bytes=3000))) == 4


def test_bytes_that_are_not_those_of_their_id_are_not_believed(store: Store, repository: Repository) -> None:
    first = repository.commit({"a.mdc": b"rule"})
    second = repository.commit({"b.mdc": b"good"})
    state_of(store, tap_of(repository, first))
    oid = repository.blob(b"good")
    forged = mirror_of(store) / "objects" / oid[:2] / oid[2:]
    forged.parent.mkdir()
    forged.write_bytes(zlib.compress(b"blob 4\0evil"))
    artifact = attempt(store, tap_of(repository, second), HERE, OPTIONS).artifact
    assert artifact is not None
    assert [file.content for file in read_files(store, artifact)] == [b"good"]


SNAPSHOT_PROGRAM = """
import sys
from pathlib import Path
from pipeline.store import Store
from pipeline.taps.snapshot import SnapshotOptions, attempt
from pipeline.taps.taplist import Tap
store, url, pin = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
state = attempt(Store(store), Tap(name="owner/repo", url=url, pin=pin, row=1), Path("/"), SnapshotOptions()).state
print(state.state, state.source)
"""


def start_snapshot(store: Store, url: str, pin: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", SNAPSHOT_PROGRAM, str(store.root), url, pin]
    return subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


class Narrows:
    """A connection to ``port`` that lets through so many bytes of answers, and no more until it is opened."""

    def __init__(self, port: int, width: int) -> None:
        self._target, self._left, self._open = port, width, threading.Event()
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        self.stuck = threading.Event()
        threading.Thread(target=self._serve, daemon=True).start()

    def open(self) -> None:
        self._open.set()

    def _serve(self) -> None:
        while True:
            try:
                near, _ = self._server.accept()
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self._target))
            threading.Thread(target=self._pump, args=(near, far, False), daemon=True).start()
            threading.Thread(target=self._pump, args=(far, near, True), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket, narrow: bool) -> None:
        try:
            while data := source.recv(512):
                if narrow:
                    self._left -= len(data)
                    if self._left < 0 and not self._open.is_set():
                        self.stuck.set()
                        self._open.wait()
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # one end was killed, as it is meant to be


@pytest.mark.slow
@pytest.mark.parametrize("width", [1000, 12_000, 40_000])
def test_a_run_killed_in_the_middle_of_a_fetch_is_simply_run_again(
    store: Store, repository: Repository, width: int
) -> None:
    pin = repository.commit({f"agents/{number}.md": noise(number, 1000) for number in range(100)})
    with daemon(repository.folder.parent) as url:
        narrows = Narrows(int(url.rpartition(":")[2]), width)
        slow = f"git://127.0.0.1:{narrows.port}/repo.git"
        killed = start_snapshot(store, slow, pin)
        assert narrows.stuck.wait(20)
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        # Its git is an orphan that still waits for bytes. It keeps the mirror until it ends.
        assert _running(str(mirror_of(store)))
        waiting = state_of(store, tap_of(f"{url}/repo.git", pin), SnapshotOptions(fetch_seconds=0.3))
        assert waiting.state == "unavailable"
        assert "another process" in waiting.reason
        narrows.open()
        assert len(paths(store, tap_of(f"{url}/repo.git", pin))) == 100


@pytest.mark.slow
def test_runs_started_together_end_well_and_equal(store: Store, repository: Repository) -> None:
    pin = repository.commit({f"agents/{number}.md": noise(number, 1000) for number in range(100)})
    runs = [start_snapshot(store, str(repository.folder), pin) for _ in range(3)]
    ends = sorted(run.communicate(timeout=60)[0].strip() for run in runs)
    assert ends == ["ok fetched", "ok store", "ok store"]


def test_threads_take_turns_at_a_mirror(store: Store, repository: Repository, watched_git: Wrapped) -> None:
    tap = tap_of(repository, repository.commit({"a.mdc": b"rule"}))
    states: list[TapState] = []
    threads = [threading.Thread(target=lambda: states.append(state_of(store, tap))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(str(state.source) for state in states) == ["fetched", "store", "store", "store"]
    assert len(watched_git.fetches()) == 2


def test_a_mirror_in_use_is_waited_for_and_then_given_up(store: Store, repository: Repository) -> None:
    pin = repository.commit({"a.mdc": b"rule"})
    store.mirrors.mkdir(parents=True)
    with (store.mirrors / f"{mirror_name('owner/repo', pin)}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        state = state_of(store, tap_of(repository, pin), SnapshotOptions(fetch_seconds=0.2))
    assert state.state == "unavailable"
    assert state_of(store, tap_of(repository, pin)).state == "ok"


# Names and programs


@settings(deadline=None)
@given(st.text(max_size=200))
def test_a_mirror_has_a_name_that_every_disk_takes(name: str) -> None:
    folder = mirror_name(name, "f" * 40)
    assert set(folder) <= set("abcdefghijklmnopqrstuvwxyz0123456789._-")
    assert 0 < len(folder) < 100
    assert not folder.startswith(".")


def test_names_that_differ_have_mirrors_that_differ() -> None:
    names = ["a/b", "A/b", "a-b", "a/b ", "a//b", "a/b\n"]
    folders = {mirror_name(name, pin) for name in names for pin in ("f" * 40, "f" * 64)}
    assert len(folders) == 2 * len(names)


def test_without_git_it_says_what_to_install(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BadInput, match="install git"):
        attempt(store, tap_of("https://example.org/x", NEVER), HERE, OPTIONS)


def test_a_git_that_is_too_old_is_refused(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\ncase "$1" in version) echo "git version 2.30.9" ;; esac\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    with pytest.raises(BadInput, match=r"2\.30 is too old.*2\.31"):
        attempt(store, tap_of("https://example.org/x", NEVER), HERE, OPTIONS)


def test_the_version_of_git_is_read() -> None:
    assert git_version(os.environ["PATH"]) >= (2, 31)
