"""A whole night over odd taps, through the command: it ends as it must, its report opens, nothing steers."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from pipeline.store import Store
from pipeline.taps.snapshot import SnapshotOptions, read_manifest, snapshot
from pipeline.taps.taplist import read_tap_list
from tests.conftest import PROJECT, Ended
from tests.odd.taps import Tree, commit_in_bulk, count_of_files
from tests.odd.test_kinds import ADDED, AS_FOUND, TEXT
from tests.taps.gitforge import SUBMODULE, Node, Repository, link

Assay = Callable[..., Ended]

STEERING = "a\x1b]0;owned\x07b\x9b31m\u202ec\x7f"
"""What would set a terminal's title, colour and direction."""
HOSTILE: Tree = {
    f"skills/{STEERING}/SKILL.md".encode(): b'---\ndescription: "x\\e[2J\\x9b\\u202e"\n---\nSteering unique\n',
    "skills/b/SKILL.md": (
        b'---\nname: "steer\\e]0;owned\\a\\0\\x9b31m"\ndescription: "<script>alert(1)</script>"\n---\nSteering script\n'
    ),
    "skills/c/SKILL.md": b"---\nname: '[bold red]steer[/] {{ 7 * 7 }} ${x}'\n---\nSteering [link=x]markup[/link]\n",
    "agents/\u2028\u2029\x85.md": b"Line ends of other kinds\n",
    "agents/raw.md": b"\x1b[31mraw \x9b\xff\x1b]0;owned\x07 steering\n",
}


def odd_taps() -> dict[str, Tree]:
    """Return the odd taps by name: one for each kind of odd file, and some that are odd as a whole."""
    kinds = {**AS_FOUND, **ADDED}
    taps: dict[str, Tree] = {
        f"odd/{re.sub('[^a-z0-9]+', '-', kind)}": {made.path: made.content, **made.beside}
        for kind, made in kinds.items()
    }
    return {
        **taps,
        "odd/hostile": HOSTILE,
        "odd/no-file": {},
        "odd/links-alone": {"a": link("b"), "b": link("a"), "c": link("..")},
        "odd/one-empty-rule": {".cursorrules": b""},
        "odd/deep": {"/".join(["d"] * 500) + "/SKILL.md": TEXT},
        "odd/long-word": {"SKILL.md": b"---\nname: long\n---\n" + b"x" * 500_000},
        "odd/good": {
            "skills/pdf/SKILL.md": TEXT,
            "skills/sql/SKILL.md": Node(b"---\nname: sql\n---\nQueries tables\n"),
        },
    }


class Odd:
    """A project of odd taps: configuration, tap list, golden set, and repositories."""

    def __init__(self, folder: Path, names: frozenset[str] | None = None) -> None:
        self.folder = folder
        self.pins: dict[str, tuple[Path, str]] = {}
        rows = []
        for number, (name, files) in enumerate(odd_taps().items()):
            if names is not None and name not in names:
                continue
            # The id of a submodule is made for SHA-1.
            has_submodule = any(isinstance(node, Node) and node.mode == SUBMODULE for node in files.values())
            object_format = "sha256" if number % 5 == 0 and not has_submodule else "sha1"
            repository = Repository(folder / "taps" / f"{number}.git", object_format=object_format)
            # Two taps at one commit are one repository twice, so each tap has a file of its own.
            pin = commit_in_bulk(repository.folder, {**files, "TAP": name.encode()} if files else files)
            self.pins[name] = (repository.folder, pin)
            rows.append(f'[[tap]]\nname = "{name}"\nurl = "taps/{number}.git"\npin = "{pin}"\n')
        self.taps = folder / "taps.toml"
        self.taps.write_text("\n".join(rows))
        self.config = folder / "assay.toml"
        self.config.write_text('taps = "taps.toml"\ngolden = ["golden.jsonl"]\nstore = "store"\n[engines.bm25]\n')
        self.golden(
            {"query": "queries over tables", "relevant": ["sql"], "exemplar": "odd/good::skills/sql/SKILL.md"},
            {"query": "steering script markup unique raw", "relevant": ["pdf"]},
            {"query": "read portable documents", "relevant": ["pdf"]},
            {"query": "zzz unheard of", "relevant": [], "answerable": False},
        )

    def golden(self, *rows: dict[str, Any]) -> None:
        (self.folder / "golden.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    @property
    def store(self) -> Store:
        return Store(self.folder / "store")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Odd:
    """All odd taps, each with the counts that `assay taps relock` measures, and a finished night."""
    odd = Odd(tmp_path_factory.mktemp("odd"))
    for words in (["taps", "relock"], ["run", "--json"]):
        done = command(odd, *words)
        assert done.returncode == 0, done.stderr.decode()
    return odd


def command(odd: Odd, *words: str) -> subprocess.CompletedProcess[bytes]:
    options = ["--config", str(odd.config)]
    return subprocess.run(
        [sys.executable, "-m", "pipeline.cli", *words, *options], cwd=PROJECT, capture_output=True, check=False
    )


def run_folder(odd: Odd) -> Path:
    (run,) = odd.store.feed.glob("run=*")
    return run


@pytest.mark.slow
def test_a_night_over_odd_taps_publishes_them_and_loses_no_file(made: Odd) -> None:
    taps = {row["tap"]: row for row in pq.read_table(run_folder(made) / "taps.parquet").to_pylist()}
    assert taps.keys() == made.pins.keys()
    listed = read_tap_list(made.taps)
    for tap in listed.taps:
        manifest = read_manifest(snapshot(made.store, tap, listed.base, SnapshotOptions()).artifact)
        assert taps[tap.name]["files"] == manifest.files == count_of_files(*made.pins[tap.name]), tap.name
        assert taps[tap.name]["entries"] == tap.entries
        assert sum(row["files"] for row in taps[tap.name]["passed_over"]) == sum(manifest.passed_over.values())


@pytest.mark.slow
def test_a_second_night_over_odd_taps_makes_the_same_bytes(made: Odd, tmp_path: Path) -> None:
    again = Odd(tmp_path)
    again.taps.write_text(made.taps.read_text())
    assert command(again, "run", "--json", "--threads", "4").returncode == 0
    first, second = ({path.name: path.read_bytes() for path in run_folder(odd).iterdir()} for odd in (made, again))
    assert first == second


class Page(HTMLParser):
    """What stands on a page: its tags, and all of its text."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.slow
def test_the_report_of_odd_taps_opens_and_shows_what_hides(made: Odd) -> None:
    page = Page()
    page.feed((run_folder(made) / "report.html").read_text("utf-8"))
    assert "script" not in page.tags
    assert "<script>alert(1)</script>" in page.text
    assert "\\x1b]0;owned\\x07" in page.text
    assert hidden(page.text) == []


@pytest.mark.slow
@pytest.mark.browser
def test_a_browser_opens_the_report_of_odd_taps(made: Odd, tmp_path: Path) -> None:
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("there is no Chromium on PATH")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}", "--dump-dom"]
    address = (run_folder(made) / "report.html").as_uri()
    dom = subprocess.run([program, *flags, address], capture_output=True, check=True, timeout=120).stdout.decode()
    assert "<title>Assay · run " in dom and "odd/hostile" in dom
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in dom and "<script" not in dom


def hidden(text: str) -> list[str]:
    """Return the characters of ``text`` that steer a terminal or hide: neither printable nor white space of a page."""
    return sorted({char for char in text if not char.isprintable() and char not in "\n\t\u00a0\u2009\u202f"})


@pytest.mark.slow
@pytest.mark.parametrize(
    "words", [["run"], ["taps", "check"], ["catalog"], ["classes"], ["rank"], ["score"]], ids=" ".join
)
@pytest.mark.parametrize("machine", [[], ["--json"]], ids=["people", "machine"])
def test_no_command_lets_a_control_character_out(made: Odd, words: list[str], machine: list[str]) -> None:
    done = command(made, *words, *machine)
    assert done.returncode == 0, done.stderr
    assert hidden(done.stdout.decode() + done.stderr.decode()) == []


NAMES = frozenset({"odd/hostile", "odd/good"})
ONLY_RICH = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]|[\r\n]")
"""What our own progress and tables write to a terminal: colours, moves of the cursor, line ends."""


@pytest.fixture
def few(tmp_path: Path) -> Odd:
    """Two of the odd taps."""
    return Odd(tmp_path / "few", NAMES)


@pytest.mark.slow
def test_a_night_on_a_terminal_writes_no_sequence_but_its_own(few: Odd) -> None:
    ours, theirs = pty.openpty()
    words = [sys.executable, "-m", "pipeline.cli", "run", "--config", str(few.config)]
    process = subprocess.Popen(
        words, cwd=PROJECT, stdout=theirs, stderr=theirs, env={**os.environ, "TERM": "xterm-256color"}
    )
    os.close(theirs)
    written = b""
    while chunk := _read(ours):
        written += chunk
    os.close(ours)
    assert process.wait() == 0, written
    assert b"headline" in written.lower() and b"\x1b[" in written
    assert hidden(ONLY_RICH.sub(b"", written).decode()) == []


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # the other end is closed
        return b""


def test_candidates_with_steering_names_are_shown_escaped(few: Odd, assay: Assay) -> None:
    few.golden({"query": "q", "relevant": ["no-such"], "exemplar": f"odd/other::skills/{STEERING}/SKILL.md"})
    ended = assay("run", "--config", few.config)
    assert ended.exit_code == 2
    assert "candidates: odd/hostile::skills/a\\x1b]0;owned\\x07b" in ended.err
    assert hidden(ended.out + ended.err) == []


@pytest.mark.slow
def test_a_tap_whose_every_file_is_passed_over_is_drift_unless_its_row_says_so(few: Odd, assay: Assay) -> None:
    odd = Odd(few.folder / "more", NAMES | {"odd/no-file", "odd/links-alone", "odd/lfs-pointer"})
    ended = assay("run", "--config", odd.config)
    assert ended.exit_code == 1
    assert ended.err.count(": drift: the pinned tree has no entry; if that is right, say entries = 0 in its row") == 3
    said = re.sub(r'("odd/(?:no-file|links-alone|lfs-pointer)"\n)', r"\1entries = 0\n", odd.taps.read_text())
    odd.taps.write_text(said)
    assert assay("run", "--config", odd.config).exit_code == 0


def test_taps_without_any_entry_at_all_are_an_error_of_the_golden_set(tmp_path: Path, assay: Assay) -> None:
    odd = Odd(tmp_path, frozenset({"odd/no-file", "odd/links-alone"}))
    odd.taps.write_text(odd.taps.read_text().replace("url =", "entries = 0\nurl ="))
    ended = assay("run", "--config", odd.config)
    assert ended.exit_code == 2
    assert ended.err.count("no candidate in this corpus") == 4


@pytest.mark.parametrize("object_format", ["sha1", "sha256"])
@pytest.mark.parametrize("digits", [40, 64])
def test_a_repository_without_a_commit_lacks_every_pin(few: Odd, assay: Assay, object_format: str, digits: int) -> None:
    Repository(few.folder / "taps" / "empty.git", object_format=object_format)
    row = f'\n[[tap]]\nname = "odd/empty"\nurl = "taps/empty.git"\npin = "{"1" * digits}"\n'
    few.taps.write_text(few.taps.read_text() + row)
    ended = assay("run", "--config", few.config)
    assert ended.exit_code == 1
    assert f"odd/empty at {'1' * digits}: missing_pin: " in ended.err
