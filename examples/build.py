"""Build the example registries as bare git repositories whose commit ids never change.

    python examples/build.py DEST

Each folder `taps/<owner>+<repo>` beside this file becomes the repository `DEST/<owner>+<repo>.git`, with one commit on
branch main. `specials.toml` adds what plain files cannot express: links, odd names, odd bytes, copies and a template
family. No working tree is used, so nothing depends on what the file system of this machine can store.

Only the standard library and the `git` program are needed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
BRANCH = "refs/heads/main"
IDENTITY = b"Assay Examples <examples@assay.invalid> 1741305600 +0000"
MESSAGE = b"Publish the example registry\n"
HIDDEN = ".building-"
STALE_SECONDS = 3600
FILE, LINK, GITLINK, FOLDER = b"100644", b"120000", b"160000", b"40000"


@dataclass(frozen=True)
class Leaf:
    """One entry of a tree that is not a folder; `data` is the content, or the commit id of a submodule."""

    mode: bytes
    data: bytes


Tap = dict[bytes, Leaf]


class SourceError(Exception):
    """The example sources contradict themselves."""


def place(text: str) -> tuple[str, bytes]:
    """Split `tap::path`."""
    tap, separator, path = text.partition("::")
    if not separator or not path:
        raise SourceError(f"not of the form tap::path: {text!r}")
    return tap, path.encode()


def plain_files(root: Path) -> dict[str, Tap]:
    """Read every tap folder below `root`."""
    taps: dict[str, Tap] = {}
    for folder in sorted(root.iterdir()):
        if not folder.is_dir() or "+" not in folder.name:
            continue
        tap: Tap = {}
        for base, _, names in os.walk(folder):
            for name in names:
                source = Path(base, name)
                if source.is_symlink():
                    raise SourceError(f"links belong in specials.toml: {source}")
                tap[source.relative_to(folder).as_posix().encode()] = Leaf(FILE, source.read_bytes())
        taps[folder.name.replace("+", "/", 1)] = tap
    return taps


def put(taps: dict[str, Tap], where: str, leaf: Leaf) -> None:
    """Add one leaf, and refuse to overwrite another."""
    tap, path = place(where)
    if tap not in taps:
        raise SourceError(f"no folder for the tap of {where!r}")
    if path in taps[tap]:
        raise SourceError(f"written twice: {where!r}")
    taps[tap][path] = leaf


def copied(data: bytes, row: dict[str, Any]) -> bytes:
    """Give the bytes of a copy with the changes that its row asks for."""
    text = data.decode()
    if "name" in row:
        first, second, rest = text.split("\n", 2)
        if first != "---" or not second.startswith("name: "):
            raise SourceError(f"a renamed copy needs its name on the second line: {row['from']!r}")
        text = f"{first}\nname: {row['name']}\n{rest}"
    if "replace" in row:
        old, new = row["replace"]
        if text.count(old) != 1:
            raise SourceError(f"{old!r} must occur once in {row['from']!r}")
        text = text.replace(old, new)
    text = text.replace("\n", row.get("newline", "\n"))
    return ("\ufeff" if row.get("bom") else "").encode() + text.encode()


def add_specials(taps: dict[str, Tap], here: Path) -> None:
    """Add what specials.toml describes."""
    table = tomllib.loads((here / "specials.toml").read_text(encoding="utf-8"))
    family = table["family"]
    template = (here / family["template"]).read_bytes().decode()
    for member in family["members"]:
        text = template
        for slot, value in member.items():
            text = text.replace("{" + slot + "}", value)
        put(taps, family["to"].replace("{slug}", member["slug"]), Leaf(FILE, text.encode()))
    for row in table["files"]:
        data = row["text"].replace("\n", row.get("newline", "\n")).encode(row.get("encoding", "utf-8"))
        put(taps, row["to"], Leaf(FILE, data))
    for row in table["links"]:
        put(taps, row["to"], Leaf(LINK, row["target"].encode()))
    for row in table["gitlinks"]:
        put(taps, row["to"], Leaf(GITLINK, row["commit"].encode()))
    # Copies come last, so that members of the family can be copied too.
    for row in table["copies"]:
        tap, path = place(row["from"])
        put(taps, row["to"], Leaf(FILE, copied(taps[tap][path].data, row)))


def load(here: Path = HERE) -> dict[str, Tap]:
    """Read all example taps: name of the tap to its files."""
    taps = plain_files(here / "taps")
    add_specials(taps, here)
    return taps


def object_id(kind: bytes, data: bytes) -> bytes:
    """Give the SHA-1 that git gives an object."""
    return hashlib.sha1(kind + b" %d\0" % len(data) + data, usedforsecurity=False).digest()


def tree_id(tap: Tap) -> bytes:
    """Compute the id of the tree that holds these files."""
    here: dict[bytes, tuple[bytes, bytes]] = {}
    below: dict[bytes, Tap] = {}
    for path, leaf in tap.items():
        name, slash, rest = path.partition(b"/")
        if slash:
            below.setdefault(name, {})[rest] = leaf
        else:
            submodule = leaf.mode == GITLINK
            here[name] = (leaf.mode, bytes.fromhex(leaf.data.decode()) if submodule else object_id(b"blob", leaf.data))
    for name, part in below.items():
        if name in here:
            raise SourceError(f"both a file and a folder: {name!r}")
        here[name] = (FOLDER, tree_id(part))
    # git orders a folder as though its name ended in a slash.
    order = sorted(here, key=lambda name: name + b"/" if here[name][0] == FOLDER else name)
    return object_id(b"tree", b"".join(here[name][0] + b" " + name + b"\0" + here[name][1] for name in order))


def commit_id(tap: Tap) -> str:
    """Compute the id of the one commit of a tap, without git, so that a finished repository is recognised at once."""
    head = b"tree " + tree_id(tap).hex().encode() + b"\nauthor " + IDENTITY + b"\ncommitter " + IDENTITY
    return object_id(b"commit", head + b"\n\n" + MESSAGE).hex()


def quoted(path: bytes) -> bytes:
    """Quote a path as fast-import reads it."""
    plain = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+"
    return b'"' + b"".join(bytes([byte]) if byte in plain else b"\\%03o" % byte for byte in path) + b'"'


def stream(tap: Tap) -> bytes:
    """Write a tap as input for `git fast-import`."""

    def data(content: bytes) -> bytes:
        return b"data %d\n" % len(content) + content + b"\n"

    parts = [b"feature done\ncommit ", BRANCH.encode(), b"\nauthor ", IDENTITY, b"\ncommitter ", IDENTITY, b"\n"]
    parts.append(data(MESSAGE))
    for path, leaf in sorted(tap.items()):
        if leaf.mode == GITLINK:
            parts.append(b"M %s %s %s\n" % (leaf.mode, leaf.data, quoted(path)))
        else:
            parts.append(b"M %s inline %s\n" % (leaf.mode, quoted(path)) + data(leaf.data))
    parts.append(b"done\n")
    return b"".join(parts)


def git(*args: str, feed: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run git with an environment of its own: no configuration, hook or variable of this machine takes part."""
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": os.devnull,
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
    }
    return subprocess.run(["git", *args], input=feed, capture_output=True, env=environment, check=False)


def holds(repository: Path, commit: str) -> bool:
    """Tell whether a repository is there and its branch main is at the commit."""
    if not (repository / "HEAD").is_file():
        return False
    answer = git("--git-dir", str(repository), "rev-parse", "--verify", "--quiet", BRANCH + "^{commit}")
    return answer.returncode == 0 and answer.stdout.strip().decode() == commit


def create(repository: Path, tap: Tap, commit: str) -> None:
    """Make a bare repository with the commit of a tap."""
    steps: dict[str, tuple[list[str], bytes]] = {
        "init": (["init", "--quiet", "--bare", "--template=", "--object-format=sha1", "--initial-branch=main"], b""),
        # A limit of 1 keeps the one pack, so that a repository is a handful of files.
        "fast-import": (["-c", "fastimport.unpackLimit=1", "fast-import", "--quiet"], stream(tap)),
    }
    for step, (arguments, feed) in steps.items():
        answer = git("--git-dir", str(repository), *arguments, feed=feed)
        if answer.returncode != 0:
            raise SourceError(f"git {step} failed: {answer.stderr.decode(errors='replace').strip()}")
    with (repository / "config").open("a", encoding="ascii") as config:
        # Filtered fetches and fetches of a bare commit id are what real hosts allow.
        config.write("[uploadpack]\n\tallowFilter = true\n\tallowAnySHA1InWant = true\n")
    if not holds(repository, commit):
        raise SourceError(f"git made another commit than the {commit} that was computed: {repository}")


def install(ready: Path, target: Path, commit: str) -> None:
    """Move a finished repository into place; another build may be doing the same at this moment."""
    for _ in range(20):
        try:
            ready.rename(target)
            return
        except OSError:
            if not target.exists():
                raise
        if holds(target, commit):
            return
        try:
            # An outdated or damaged repository goes into the hidden folder, which is deleted with its content.
            target.rename(ready.with_name(f"outdated-{time.monotonic_ns()}"))
        except FileNotFoundError:
            continue
    raise SourceError(f"could not put the repository in place: {target}")


def sweep(dest: Path) -> None:
    """Remove what builds that were killed long ago left behind."""
    for rest in dest.glob(HIDDEN + "*"):
        try:
            old = time.time() - rest.stat().st_mtime > STALE_SECONDS
        except FileNotFoundError:
            continue
        if old:
            shutil.rmtree(rest, ignore_errors=True)


def build(dest: Path, here: Path = HERE) -> dict[str, str]:
    """Build every tap that is not there yet, and give the commit of each by name."""
    dest.mkdir(parents=True, exist_ok=True)
    dest = dest.resolve()
    sweep(dest)
    commits: dict[str, str] = {}
    for name, tap in sorted(load(here).items()):
        commit = commit_id(tap)
        target = dest / (name.replace("/", "+") + ".git")
        if not holds(target, commit):
            with tempfile.TemporaryDirectory(prefix=HIDDEN, dir=dest, ignore_cleanup_errors=True) as hidden:
                ready = Path(hidden, "ready.git")
                create(ready, tap, commit)
                install(ready, target, commit)
        commits[name] = commit
    return commits


def main(arguments: list[str]) -> int:
    """Run from the command line."""
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print("usage: python examples/build.py DEST", file=sys.stderr)
        return 2
    try:
        commits = build(Path(arguments[0]))
    except (SourceError, OSError) as error:
        print(f"build.py: {error}", file=sys.stderr)
        return 1
    for name, commit in commits.items():
        print(name, commit)
    print(f"{len(commits)} taps")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
