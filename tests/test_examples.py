"""The example registries: the same everywhere, complete, and in step with the tap list and the golden rows."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"
BUILD = [sys.executable, str(EXAMPLES / "build.py")]
TAPS: dict[str, dict[str, Any]] = {
    row["name"]: row for row in tomllib.loads((ROOT / "config" / "taps.toml").read_text(encoding="utf-8"))["tap"]
}
PINS = {name: row["pin"] for name, row in TAPS.items()}
GOLDEN: list[dict[str, Any]] = [
    json.loads(line)
    for line in (ROOT / "config" / "golden" / "default.jsonl").read_text(encoding="utf-8").splitlines()
    if line.strip() and not line.startswith("#")
]


def git(repository: Path, *arguments: str) -> bytes:
    """Run git on one of the built repositories and give what it prints."""
    done = subprocess.run(["git", "--git-dir", str(repository), *arguments], capture_output=True, check=True)
    return done.stdout


def build(dest: Path, env: dict[str, str] | None = None) -> dict[str, str]:
    """Build into a folder and give the printed commits by the name of the tap."""
    done = subprocess.run([*BUILD, str(dest)], capture_output=True, check=True, text=True, env=env)
    *rows, last = done.stdout.splitlines()
    assert last == f"{len(rows)} taps"
    return dict(row.split(" ") for row in rows)


def repository(dest: Path, tap: str) -> Path:
    """Give the folder that a tap is built in."""
    return dest / (tap.replace("/", "+") + ".git")


def paths(dest: Path, tap: str) -> set[str]:
    """List every path of a tap at its pin."""
    listing = git(repository(dest, tap), "ls-tree", "-r", "-z", "--name-only", PINS[tap])
    return {path.decode() for path in listing.split(b"\0") if path}


def exemplars(row: dict[str, Any]) -> list[str]:
    """Give the exemplars of a golden row as a list."""
    value = row.get("exemplar", [])
    return [value] if isinstance(value, str) else list(value)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the examples once for all tests that only read them."""
    dest = tmp_path_factory.mktemp("examples")
    build(dest)
    return dest


def test_building_twice_gives_the_pins_of_the_tap_list_and_touches_nothing_the_second_time(tmp_path: Path) -> None:
    assert build(tmp_path) == PINS
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    assert build(tmp_path) == PINS
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_the_configuration_of_the_machine_does_not_change_a_commit(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    settings = "[core]\n\tautocrlf = true\n[init]\n\tdefaultBranch = trunk\n[user]\n\tname = Someone\n"
    (home / ".gitconfig").write_text(settings, encoding="utf-8")
    strange = {
        "HOME": str(home),
        "GIT_DIR": str(tmp_path / "elsewhere"),
        "GIT_DEFAULT_HASH": "sha256",
        "GIT_COMMITTER_DATE": "2001-01-01T00:00:00Z",
        "TZ": "Asia/Tokyo",
    }
    assert build(tmp_path / "out", {**os.environ, **strange}) == PINS


def test_two_builds_into_one_folder_at_once_end_well(tmp_path: Path) -> None:
    pair = [subprocess.Popen([*BUILD, str(tmp_path)], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    printed = [process.communicate(timeout=60)[0] for process in pair]
    assert [process.returncode for process in pair] == [0, 0]
    assert printed[0] == printed[1]
    assert {path.name for path in tmp_path.iterdir()} == {repository(tmp_path, tap).name for tap in PINS}
    for tap, pin in PINS.items():
        assert git(repository(tmp_path, tap), "rev-parse", "main").decode().strip() == pin


def test_a_damaged_or_outdated_repository_is_replaced(tmp_path: Path) -> None:
    build(tmp_path)
    damaged, outdated = (repository(tmp_path, tap) for tap in sorted(PINS)[:2])
    (damaged / "HEAD").unlink()
    git(outdated, "update-ref", "-d", "refs/heads/main")
    assert build(tmp_path) == PINS
    for tap in sorted(PINS)[:2]:
        assert git(repository(tmp_path, tap), "rev-parse", "main").decode().strip() == PINS[tap]
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_every_repository_is_sound_and_serves_a_bare_commit_without_its_blobs(built: Path, tmp_path: Path) -> None:
    for tap, pin in PINS.items():
        git(repository(built, tap), "fsck", "--full", "--strict")
        mirror = tmp_path / tap.replace("/", "+")
        subprocess.run(["git", "init", "--quiet", "--bare", "--object-format=sha1", str(mirror)], check=True)
        url = repository(built, tap).as_uri()
        git(mirror, "fetch", "--quiet", "--depth", "1", "--filter=blob:none", url, pin)
        assert git(mirror, "cat-file", "-t", pin).decode().strip() == "commit"
        assert b" blob " not in git(mirror, "cat-file", "--batch-all-objects", "--batch-check")


def test_the_addresses_of_the_tap_list_are_the_folders_that_the_builder_makes() -> None:
    for tap, row in TAPS.items():
        address = (ROOT / "config" / row["url"]).resolve()
        assert address == repository((ROOT / "build" / "examples").resolve(), tap)


def test_the_tap_list_promises_enough_to_be_worth_measuring() -> None:
    assert len(TAPS) == 10
    assert sum(row["entries"] for row in TAPS.values()) == 229
    assert all(0 < row["classes"] <= row["entries"] for row in TAPS.values())
    assert Counter(row["role"] for row in TAPS.values()) == {"target": 7, "scale": 3}


def test_every_exemplar_is_a_file_of_a_target_tap_at_its_pin(built: Path) -> None:
    known = {tap: paths(built, tap) for tap in PINS}
    named = [(row["queryId"], *exemplar.split("::", 1)) for row in GOLDEN for exemplar in exemplars(row)]
    assert [row for row in named if row[2] not in known[row[1]]] == []
    assert {TAPS[tap]["role"] for _, tap, _ in named} == {"target"}


def test_the_golden_rows_are_as_many_and_as_varied_as_a_usable_set_needs() -> None:
    unanswerable = [row for row in GOLDEN if not row.get("answerable", True)]
    types = Counter(row["questionType"] for row in GOLDEN)
    popularity = Counter(row["popularity"] for row in GOLDEN)
    assert len(GOLDEN) == 93
    assert len(unanswerable) == 10
    assert types["false_premise"] == 5
    assert all(row in unanswerable for row in GOLDEN if row["questionType"] == "false_premise")
    assert len(types) >= 4
    assert max(types.values()) <= 0.6 * len(GOLDEN)
    assert set(popularity) == {"head", "torso", "tail"}
    assert popularity["head"] <= 0.5 * len(GOLDEN)
    assert len({row.get("cluster_id", row["queryId"]) for row in GOLDEN}) >= 50
    assert {row["language"] for row in GOLDEN if "language" in row} == {"de", "es", "ja", "zh"}


def test_golden_rows_are_unique_and_say_what_is_relevant_exactly_when_there_is_an_answer() -> None:
    assert len({row["query"] for row in GOLDEN}) == len({row["queryId"] for row in GOLDEN}) == len(GOLDEN)
    for row in GOLDEN:
        answerable = row.get("answerable", True)
        assert bool(row.get("relevant")) == answerable, row["queryId"]
        assert answerable or not exemplars(row), row["queryId"]
    pinned = [row for row in GOLDEN if exemplars(row)]
    assert len(pinned) == 45
    assert sum(row.get("match") == "all" for row in pinned) == 2


def test_one_name_is_asked_for_both_with_and_without_an_exemplar() -> None:
    for name in ("code-review", "debug", "release-notes"):
        assert {bool(exemplars(row)) for row in GOLDEN if row.get("relevant") == [name]} == {True, False}


def test_the_readme_points_at_paths_that_exist(built: Path) -> None:
    missing = []
    table = (EXAMPLES / "README.md").read_text(encoding="utf-8").split("| feature | tap | paths |", 1)[1]
    for line in table.splitlines()[2:]:
        _, tap, cell = re.split(r" \| ", line.removesuffix(" |"), maxsplit=2)
        known = paths(built, tap.strip("`"))
        for shown in re.findall(r"`([^`]+)`", cell):
            path = shown.replace(r"\r", "\r").replace(r"\n", "\n").replace(r"\t", "\t")
            if path not in known and not (path.endswith("/") and any(other.startswith(path) for other in known)):
                missing.append((tap, shown))
    assert missing == []


def test_links_submodules_and_odd_bytes_arrive_as_written(built: Path) -> None:
    odd = repository(built, "driftwood/curiosities")
    modes = {}
    for row in git(odd, "ls-tree", "-r", "-z", "main").split(b"\0"):
        if row:
            head, path = row.split(b"\t", 1)
            modes[path.decode()] = head.split(b" ")[0]
    assert modes["skills/via-link/SKILL.md"] == modes["latest"] == b"120000"
    assert modes["vendor/tooling"] == b"160000"
    assert git(odd, "show", "main:skills/bom/SKILL.md").startswith(b"\xef\xbb\xbf---\n")
    assert b"---\r\n" in git(odd, "show", "main:skills/crlf/SKILL.md")
    assert b"\n" not in git(odd, "show", "main:rules/lone-cr.mdc")
    assert b"\0" in git(odd, "show", "main:skills/nul-bytes/SKILL.md")
    with pytest.raises(UnicodeDecodeError):
        git(odd, "show", "main:skills/lossy/SKILL.md").decode()


def test_no_source_file_is_larger_than_64_kib() -> None:
    sizes = {path: path.stat().st_size for path in EXAMPLES.rglob("*") if path.is_file()}
    assert {path: size for path, size in sizes.items() if size > 64 * 1024} == {}


def test_the_builder_refuses_a_call_without_a_folder() -> None:
    done = subprocess.run(BUILD, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "usage" in done.stderr
