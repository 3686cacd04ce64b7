"""What size costs: a large file is never held, a long line is read in time, a large tap takes what is stated here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.conftest import PROJECT
from tests.odd.taps import commit_in_bulk, count_of_files
from tests.taps.gitforge import Repository

pytestmark = pytest.mark.slow

MIB = 1 << 20
SKILL = b"---\nname: pdf\ndescription: Reads documents\n---\nText\n"

_CHILD = """
import json, re, sys, time
from pathlib import Path
from pipeline.store import Store
from pipeline.taps.snapshot import SnapshotOptions
from tests.odd.taps import read_tap
from tests.taps.gitforge import tap_of
place, url, pin, limit = sys.argv[1:]
start = time.process_time()
found = read_tap(Store(Path(place)), tap_of(url, pin), options=SnapshotOptions(max_file_bytes=int(limit)))
peak = int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) * 1024
print(json.dumps([time.process_time() - start, peak, len(found.entries), found.accounted, found.manifest.passed_over]))
"""


class Cost(NamedTuple):
    """What it took to read a tap in a process of its own, git aside."""

    seconds: float
    peak: int
    entries: int
    accounted: int
    passed_over: dict[str, int]


def cost(folder: Path, repository: Repository, pin: str, limit: int = MIB) -> Cost:
    words = [sys.executable, "-c", _CHILD, folder / f"store-{pin[:8]}", repository.folder, pin, limit]
    done = subprocess.run([str(word) for word in words], cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return Cost(*json.loads(done.stdout))


@pytest.fixture
def small(tmp_path: Path) -> Cost:
    """What a tap of one short file costs."""
    repository = Repository(tmp_path / "small.git")
    return cost(tmp_path, repository, commit_in_bulk(repository.folder, {"skills/pdf/SKILL.md": SKILL}))


def test_a_file_over_the_limit_is_passed_over_and_never_held(tmp_path: Path, small: Cost) -> None:
    repository = Repository(tmp_path / "large.git")
    files = {"skills/pdf/SKILL.md": SKILL, "skills/huge/SKILL.md": SKILL * (50 * MIB // len(SKILL))}
    found = cost(tmp_path, repository, commit_in_bulk(repository.folder, files))
    assert (found.entries, found.passed_over, found.accounted) == (1, {"too_large": 1}, 2)
    assert found.peak - small.peak < 16 * MIB


@pytest.mark.parametrize("line", [b"word " * 2_000_000, b"x" * 10_000_000, b"-" * 10_000_000, b" " * 10_000_000 + b"x"])
def test_a_line_of_ten_megabytes_is_read_in_time_where_the_limit_lets_it(
    tmp_path: Path, small: Cost, line: bytes
) -> None:
    repository = Repository(tmp_path / "long.git")
    body = {"skills/pdf/SKILL.md": SKILL + line, "skills/b/SKILL.md": b"---\nname: " + line + b"\n---\nText\n"}
    found = cost(tmp_path, repository, commit_in_bulk(repository.folder, body), 32 * MIB)
    assert (found.entries, found.accounted) == (2, 2)
    assert found.seconds < 20
    assert found.peak - small.peak < 512 * MIB


def test_a_tap_of_fifty_thousand_files_costs_what_is_stated(tmp_path: Path, small: Cost) -> None:
    repository = Repository(tmp_path / "many.git")
    words = " ".join(f"word{number}" for number in range(200))
    files = {
        f"skills/{number % 97}/{number}/SKILL.md": b"---\nname: n%d\n---\n%d %s" % (number, number, words.encode())
        for number in range(25_000)
    }
    files |= {f"src/{number}.py": b"%d" % number for number in range(25_000)}
    pin = commit_in_bulk(repository.folder, files)
    found = cost(tmp_path, repository, pin)
    assert (found.entries, found.accounted) == (25_000, 50_000)
    assert count_of_files(repository.folder, pin) == 50_000
    assert found.seconds < 40  # 8 on two shared cores
    assert found.peak - small.peak < 640 * MIB  # 350; the files hold 45
