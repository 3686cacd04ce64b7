"""The only module that runs git (2.31 or newer). One bare mirror a tap, no working tree, ever.

A mirror is a cache: whatever is in it was fetched for a pin, nothing in it is a result, and it may be removed at any
time that nobody holds its lock. It has a constant configuration of ours. git notes in there, when it fetches partially,
that what is missing may be fetched later, and would then do so in the middle of reading; so the configuration is
written anew before and after each fetch, and a missing object is simply missing.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from pipeline.errors import BadInput, Fault
from pipeline.taps.failures import TapError, failure, is_refusal, not_here
from pipeline.taps.tree import TreeItem

OLDEST_GIT = (2, 31)
TRANSPORTS = "https:ssh:git:file"
SLOWEST_FETCH = 60
"""Seconds without a byte after which git itself ends a fetch over https, should nobody be left to end it."""

_KEPT = (
    *("PATH", "TMPDIR", "LD_LIBRARY_PATH", "GIT_EXEC_PATH", "SSH_AUTH_SOCK"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH"),
    *("http_proxy", "https_proxy", "all_proxy", "no_proxy", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
)
"""What git may see of our own environment: how to find programs, and how this machine reaches the network."""

_SSH = "ssh -oBatchMode=yes -oConnectTimeout=30 -oServerAliveInterval=15 -oServerAliveCountMax=4"
_FETCH = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--no-auto-maintenance")
_PARTLY = ("--depth=1", "--filter=blob:none")
_POLL = 0.05


class Spoilt(Exception):
    """The mirror cannot be read. It is a cache: make it anew."""


class Commit(NamedTuple):
    """What a commit says about itself."""

    tree: str
    committed: str | None
    """ISO 8601 in UTC, or None where the commit has no date that can be read."""


class Finished(NamedTuple):
    """How a run of git ended."""

    code: int
    output: bytes
    words: str


def remote_head(url: str, seconds: float) -> str | None:
    """Return the commit that a repository's HEAD names now; None where it names none, as in an empty repository.

    Args:
        url: what git asks.
        seconds: the longest that it may take.

    Raises:
        TapError: the repository cannot be asked.
    """
    _demand_version()
    try:
        done = run(
            ["git", "ls-remote", "--quiet", "tap", "HEAD"],
            # No repository at all: git needs none to ask another one, whichever hash that one uses.
            _environment(Path(os.devnull), _remote(url), TRANSPORTS),
            b"",
            seconds,
        )
    except subprocess.TimeoutExpired:
        raise TapError("unavailable", f"the repository was not heard of for {seconds:g} s") from None
    if done.code != 0:
        raise failure(done.words, url)
    # A branch may be called HEAD as well: only the line of HEAD itself counts.
    found = re.search(rb"^([0-9a-f]{40}|[0-9a-f]{64})\tHEAD$", done.output, re.MULTILINE)
    return found[1].decode("ascii") if found else None


@contextmanager
def open_mirror(root: Path, name: str, url: str, pin: str, seconds: float) -> Iterator[Mirror]:
    """Hold the mirror of a tap, which nobody else can use meanwhile.

    Args:
        root: the folder of all mirrors.
        name: the tap's name; any text.
        url: what git fetches from.
        pin: the commit id; its length says which hash the repository uses.
        seconds: the longest time to wait for somebody else, and again the longest that all fetches may take.

    Raises:
        TapError: ``unavailable`` where the mirror stayed in use for so long.
    """
    folder = root / mirror_name(name, pin)
    root.mkdir(parents=True, exist_ok=True)
    lock = os.open(f"{folder}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        _wait_for(lock, seconds)
        yield Mirror(folder, url, pin, lock, seconds)
    finally:
        # A git that outlives us has the descriptor too, and thereby keeps the lock until it ends.
        os.close(lock)


def mirror_name(name: str, pin: str) -> str:
    """Return the name of the folder of a mirror: safe on every disk, and another for every name and hash."""
    readable = re.sub(r"[^a-z0-9._]+", "-", name.lower()).strip("-.")[:60]
    mark = hashlib.sha256(f"{len(pin)} {name}".encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{readable}-{mark}"


def _wait_for(lock: int, seconds: float) -> None:
    end = time.monotonic() + seconds
    while True:
        try:
            return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= end:
                message = f"another process has been using its mirror for {seconds:g} s; end it or wait for it"
                raise TapError("unavailable", message) from None
            time.sleep(_POLL)


class Mirror:
    """A bare repository that holds what was fetched of one tap. Made by ``open_mirror``, valid while it is held."""

    def __init__(self, folder: Path, url: str, pin: str, lock: int, seconds: float) -> None:
        self.pin = pin
        self._folder, self._url, self._lock, self._seconds = folder, url, lock, seconds
        self._deadline = time.monotonic() + seconds
        self._prepare()
        self.was_empty = not any((folder / "objects" / "pack").iterdir())

    def erase(self) -> None:
        """Throw away all that is in the mirror."""
        shutil.rmtree(self._folder)
        self._prepare()

    def fetch_commit(self) -> Commit:
        """Read the pinned commit; fetch it and its trees first unless they are here. Where the server refuses, more.

        Raises:
            TapError: it cannot be had.
        """
        found = self._objects([self.pin])
        given = False
        if not found:
            given = self._fetch_falling_back(_PARTLY, ("--depth=1",))
            found = self._objects([self.pin])
        if not found:
            if given:
                raise Spoilt(f"the commit {self.pin} was fetched and cannot be read")
            raise TapError("missing_pin", f"no branch or tag of the repository holds the commit {self.pin}")
        kind, content = found[self.pin]
        if kind != "commit":
            raise TapError("missing_pin", f"{self.pin} is a {kind}, not a commit")
        return _commit(content)

    def fetch_blobs(self, oids: Collection[str], vital: Mapping[str, bytes]) -> dict[str, int]:
        """Fetch those of ``oids`` that are not here. What the server lacks stays missing, unless it is vital.

        Args:
            oids: ids of blobs.
            vital: those of them without which the rest is of no use, and the path of each.

        Returns:
            The size in bytes of each that is here now.

        Raises:
            TapError: the server cannot be reached, or fails; ``invalid`` where it lacks one that is vital.
        """
        sizes = self._sizes(oids)
        wanted = set(oids) - sizes.keys()
        if wanted:
            self._fetch_wanted(wanted, vital)
            sizes |= self._sizes(wanted)
        _demand(vital, vital.keys() - sizes.keys())
        return sizes

    def tree(self, oid: str) -> list[TreeItem]:
        """Read all files, links and submodules of a tree, folders resolved."""
        # Not with sizes: git would have to look at every blob, and most of them are not here.
        listing = self._read("ls-tree", "-r", "-z", "--full-tree", oid).output
        items = []
        for record in listing.split(b"\0")[:-1]:
            head, _, path = record.partition(b"\t")
            mode, _, blob = head.decode("ascii").split(" ")
            items.append(TreeItem(path, mode, blob))
        return items

    def blobs(self, oids: Collection[str]) -> dict[str, bytes]:
        """Return the bytes of each of ``oids``, all of which are here.

        Raises:
            Spoilt: bytes that do not match their id, or cannot be read.
        """
        found = self._objects(oids)
        if len(found) != len(set(oids)):
            raise Spoilt("an object that was here is here no more")
        hashed = hashlib.sha1 if len(self.pin) == 40 else hashlib.sha256
        for oid, (kind, content) in found.items():
            hashing = hashed(b"%s %d\0" % (kind.encode(), len(content)))
            hashing.update(content)
            if hashing.hexdigest() != oid:
                raise Spoilt(f"the object {oid} holds other bytes than its id says")
        return {oid: content for oid, (_, content) in found.items()}

    def _sizes(self, oids: Collection[str]) -> dict[str, int]:
        if not oids:
            return {}
        lines = self._read("cat-file", "--batch-check", stdin=_lines(oids)).output.decode("ascii").splitlines()
        return {oid: int(size[0]) for oid, kind, *size in (line.split(" ") for line in lines) if kind != "missing"}

    def _objects(self, oids: Collection[str]) -> dict[str, tuple[str, bytes]]:
        if not oids:
            return {}
        output = self._read("cat-file", "--batch", "--buffer", stdin=_lines(oids)).output
        found, at = {}, 0
        while at < len(output):
            start = output.index(b"\n", at) + 1
            oid, kind, *size = output[at : start - 1].decode("ascii").split(" ")
            at = start
            if kind != "missing":
                end = start + int(size[0])
                found[oid] = (kind, output[start:end])
                at = end + 1
        return found

    def _prepare(self) -> None:
        """Make the mirror where it is not there, and free it of what a killed git left. Only under the lock.

        What stands in the way of a mirror is no mirror: it is removed.
        """
        try:
            self._lay_out()
        except (NotADirectoryError, IsADirectoryError, FileExistsError):
            self._remove()
            self._lay_out()

    def _remove(self) -> None:
        if self._folder.is_dir() and not self._folder.is_symlink():
            shutil.rmtree(self._folder)
        else:
            self._folder.unlink(missing_ok=True)

    def _lay_out(self) -> None:
        (self._folder / "objects" / "pack").mkdir(parents=True, exist_ok=True)
        (self._folder / "refs").mkdir(exist_ok=True)
        for pattern in ("**/*.lock", "objects/pack/tmp_*", "objects/pack/.tmp*"):
            for leftover in self._folder.glob(pattern):
                leftover.unlink()
        (self._folder / "HEAD").write_text("ref: refs/heads/main\n", encoding="ascii")
        self._configure()

    def _configure(self) -> None:
        version, extensions = ("0", "") if len(self.pin) == 40 else ("1", "[extensions]\n\tobjectFormat = sha256\n")
        text = f"[core]\n\trepositoryformatversion = {version}\n\tfilemode = true\n\tbare = true\n{extensions}"
        (self._folder / "config").write_text(text, encoding="ascii")

    def _fetch_falling_back(self, *ways: tuple[str, ...]) -> bool:
        """Fetch the pin in the first of ``ways`` that the server does not refuse, and at last everything it shows.

        Returns:
            Whether the server gave the pin itself, rather than everything, in which the pin may not be.
        """
        for way in ways:
            done = self._fetch(*way, "tap", self.pin, noop=True)
            if done.code == 0:
                return True
            if not is_refusal(done.words):
                raise failure(done.words, self._url)
        done = self._fetch("--prune", "tap", "+refs/*:refs/tap/*")
        if done.code != 0:
            raise failure(done.words, self._url)
        return False

    def _fetch_wanted(self, wanted: Collection[str], vital: Mapping[str, bytes]) -> None:
        left = set(wanted)
        while left:
            done = self._fetch("--filter=blob:none", "--stdin", "tap", stdin=_lines(sorted(left)), noop=True)
            if done.code == 0:
                return
            # One object that the server lacks fails the whole request, and it names no more than one.
            lacking = not_here(done.words) & left
            _demand(vital, lacking & vital.keys())
            if not lacking and is_refusal(done.words):
                self._fetch_falling_back(("--depth=1",))
                return
            if not lacking:
                raise failure(done.words, self._url)
            left -= lacking

    def _fetch(self, *arguments: str, stdin: bytes = b"", noop: bool = False) -> Finished:
        _demand_version()
        settings = {
            **_remote(self._url),
            "gc.auto": "0",
            # Always a pack, which appears whole or not at all; loose objects of a killed fetch would not.
            "fetch.unpackLimit": "1",
        }
        if noop:
            # Say nothing of what is here: much of it is incomplete on purpose.
            settings["fetch.negotiationAlgorithm"] = "noop"
        limit = self._deadline - time.monotonic()
        try:
            return self._run(*_FETCH, *arguments, stdin=stdin, settings=settings, transports=TRANSPORTS, limit=limit)
        except subprocess.TimeoutExpired:
            raise TapError("unavailable", f"the fetch took longer than {self._seconds:g} s") from None
        finally:
            self._configure()

    def _read(self, *arguments: str, stdin: bytes = b"") -> Finished:
        done = self._run(*arguments, stdin=stdin, settings={}, transports="", limit=None)
        if done.code != 0:
            raise Spoilt(done.words.strip() or f"git {arguments[0]} failed")
        return done

    def _run(
        self, *arguments: str, stdin: bytes, settings: Mapping[str, str], transports: str, limit: float | None
    ) -> Finished:
        environment = _environment(self._folder, settings, transports)
        return run(["git", *arguments], environment, stdin, limit, keep=(self._lock,))


def _environment(folder: Path, settings: Mapping[str, str], transports: str) -> dict[str, str]:
    """Return all that git sees of the environment, its configuration included.

    Args:
        folder: the repository that it works in.
        settings: its configuration, by key.
        transports: those that it may use, as git lists them.
    """
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ} | {
        "HOME": str(folder / "no-home"),
        "LC_ALL": "C",
        "GIT_DIR": str(folder),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_SSH_COMMAND": _SSH,
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_ALLOW_PROTOCOL": transports,
        # In the environment, not among the arguments, which every user of the machine can read.
        "GIT_CONFIG_COUNT": str(len(settings)),
    }
    for number, (key, value) in enumerate(settings.items()):
        environment |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return environment


def _remote(url: str) -> dict[str, str]:
    """Return the settings under which git asks the remote ``tap``, and runs nothing of anybody's."""
    return {
        "remote.tap.url": url,
        "core.hooksPath": os.devnull,
        "http.lowSpeedLimit": "1",
        "http.lowSpeedTime": str(SLOWEST_FETCH),
    }


def _demand_version() -> None:
    version = git_version(os.environ.get("PATH", ""))
    if version < OLDEST_GIT:
        what = f"git {'.'.join(map(str, version))} is too old"
        raise BadInput([Fault("git", what, f"install git {'.'.join(map(str, OLDEST_GIT))} or newer")])


def run(
    command: Sequence[str], environment: Mapping[str, str], stdin: bytes, limit: float | None, keep: Sequence[int] = ()
) -> Finished:
    """Run a program in a process group of its own, and end the whole group when it takes too long.

    Args:
        command: the program and its arguments.
        environment: all that it sees of the environment.
        stdin: what it reads.
        limit: seconds; None means no limit.
        keep: open files that it inherits.

    Raises:
        subprocess.TimeoutExpired: it took longer than ``limit``, and was ended.
        BadInput: there is no such program.
    """
    pipe = subprocess.PIPE
    try:
        process = subprocess.Popen(
            command,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            cwd="/",
            env=environment,
            pass_fds=keep,
            start_new_session=True,
        )
    except FileNotFoundError:
        raise BadInput([Fault("PATH", f"there is no program {command[0]}", f"install {command[0]}")]) from None
    try:
        output, words = process.communicate(stdin, timeout=None if limit is None else max(limit, 0.0))
    except BaseException:
        _end(process)
        raise
    return Finished(process.returncode, output, words.decode("utf-8", "replace"))


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()


@functools.cache
def git_version(path: str) -> tuple[int, int]:
    """Return the major and minor version of the git that ``path``, a value of ``PATH``, leads to."""
    text = run(["git", "version"], {"PATH": path, "LC_ALL": "C"}, b"", None).output.decode("utf-8", "replace")
    found = re.search(r"(\d+)\.(\d+)", text)
    if found is None:
        raise BadInput([Fault("git", f"`git version` says {text.strip()!r}", "install git")])
    return int(found[1]), int(found[2])


def _demand(vital: Mapping[str, bytes], missing: Collection[str]) -> None:
    for path, oid in sorted((vital[oid], oid) for oid in missing):
        shown = path.decode("utf-8", "backslashreplace")
        raise TapError("invalid", f"the catalogue needs «{shown}», whose blob {oid} the repository lacks")


def _commit(content: bytes) -> Commit:
    head = content.partition(b"\n\n")[0]
    tree = re.match(rb"tree ([0-9a-f]+)\n", head)
    if tree is None:
        raise TapError("invalid", "the commit names no tree")
    date = re.search(rb"^committer .*> (-?\d+) [+-]\d+$", head, re.MULTILINE)
    return Commit(tree[1].decode(), _iso(int(date[1])) if date else None)


def _lines(oids: Collection[str]) -> bytes:
    return "".join(f"{oid}\n" for oid in dict.fromkeys(oids)).encode("ascii")


def _iso(seconds: int) -> str | None:
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, ValueError, OSError):
        return None
