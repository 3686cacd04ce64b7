"""Makes real bare repositories out of nothing but git's plumbing, and serves them."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from pipeline.taps.taplist import Tap

FILE, LINK, SUBMODULE = "100644", "120000", "160000"
NEVER = "1" * 40


class Node(NamedTuple):
    """What stands at a path: a file, a link (``data`` is its target) or a submodule (``data`` is a commit id)."""

    data: bytes
    mode: str = FILE


Files = dict[bytes | str, bytes | Node]


def link(target: str | bytes) -> Node:
    return Node(target.encode() if isinstance(target, str) else target, LINK)


def submodule() -> Node:
    return Node(NEVER.encode(), SUBMODULE)


class Repository:
    """A bare repository that answers partial fetches of any object."""

    def __init__(self, folder: Path, *, object_format: str = "sha1") -> None:
        self.folder = folder
        folder.parent.mkdir(parents=True, exist_ok=True)
        self.git("init", "--quiet", "--bare", f"--object-format={object_format}", "--initial-branch=main", str(folder))
        self.configure("uploadpack.allowFilter", "true")
        self.configure("uploadpack.allowAnySHA1InWant", "true")

    def git(self, *arguments: str, stdin: bytes = b"") -> bytes:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder / "no-home"),
            "GIT_DIR": str(self.folder),
            "GIT_INDEX_FILE": str(self.folder / "index"),
            "GIT_CONFIG_NOSYSTEM": "1",
            **{f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in _PERSON.items()},
        }
        done = subprocess.run(["git", *arguments], input=stdin, env=environment, capture_output=True, check=True)
        return done.stdout

    def configure(self, key: str, value: str) -> None:
        self.git("config", key, value)

    def blob(self, data: bytes) -> str:
        return self.git("hash-object", "-w", "--stdin", stdin=data).decode().strip()

    def commit(self, files: Mapping[bytes | str, bytes | Node], *, branch: str = "main") -> str:
        """Commit a tree with these files and nothing else; return the commit's id."""
        lines = []
        for path, content in files.items():
            node = content if isinstance(content, Node) else Node(content)
            oid = node.data.decode() if node.mode == SUBMODULE else self.blob(node.data)
            name = path.encode() if isinstance(path, str) else path
            lines.append(f"{node.mode} {oid}\t".encode() + name + b"\0")
        self.git("read-tree", "--empty")
        self.git("-c", "core.protectNTFS=false", "update-index", "-z", "--index-info", stdin=b"".join(lines))
        tree = self.git("write-tree", "--missing-ok").decode().strip()
        commit = self.git("commit-tree", tree, "-m", "made by a test").decode().strip()
        self.git("update-ref", f"refs/heads/{branch}", commit)
        return commit

    def lose(self, data: bytes) -> str:
        """Remove the object of a blob, as a broken or trimmed repository would; return its id."""
        oid = self.git("hash-object", "--stdin", stdin=data).decode().strip()
        (self.folder / "objects" / oid[:2] / oid[2:]).unlink()
        return oid


_PERSON = {"NAME": "A. Tester", "EMAIL": "tester@example.org", "DATE": "2024-05-06T07:08:09+02:00"}


def tap_of(where: Repository | str, pin: str | None, *, name: str = "owner/repo") -> Tap:
    return Tap(name=name, url=str(where.folder) if isinstance(where, Repository) else where, pin=pin, row=1)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def daemon(folder: Path) -> Iterator[str]:
    """Serve all repositories below ``folder`` over git's own protocol; yields the URL of the folder."""
    port = free_port()
    command = ["git", "daemon", "--export-all", "--reuseaddr", "--listen=127.0.0.1", f"--port={port}"]
    server = subprocess.Popen(
        [*command, f"--base-path={folder}", str(folder)], stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        wait_until(lambda: _answers(port))
        yield f"git://127.0.0.1:{port}"
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def wait_until(holds: Callable[[], bool], seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "what was waited for never came"
        time.sleep(0.02)


class Wrapped(NamedTuple):
    """A ``git`` that stands before the real one on the PATH and notes each call."""

    folder: Path
    log: Path

    @classmethod
    def make(cls, folder: Path) -> Wrapped:
        real = subprocess.run(["which", "git"], capture_output=True, check=True, text=True).stdout.strip()
        folder.mkdir()
        log = folder / "calls"
        program = folder / "git"
        program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$*" >> "{log}"\nexec "{real}" "$@"\n')
        program.chmod(0o755)
        return cls(folder, log)

    def calls(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []

    def fetches(self) -> list[str]:
        return [call for call in self.calls() if re.match(r"fetch\b", call)]


def plain_ssh(folder: Path) -> Path:
    """Make an ``ssh`` that runs the command on this machine and knows only the oldest protocol, as old servers do."""
    folder.mkdir()
    program = folder / "ssh"
    program.write_text(
        '#!/bin/sh\nfor last do :; done\nunset GIT_PROTOCOL GIT_DIR GIT_CONFIG_COUNT\nexec sh -c "$last"\n'
    )
    program.chmod(0o755)
    return folder
