import json
import re
import shutil
import subprocess
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import pyarrow as pa
import pytest

from pipeline.reports.page import render

pytestmark = pytest.mark.browser

Tables = dict[str, pa.Table]
SCRIPT = "<script>document.title='pwned'</script>"
ELSEWHERE = "http://elsewhere.invalid/picture.png"
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--dump-dom",
)


class Opened(NamedTuple):
    """A page after a browser has loaded it."""

    dom: str
    requests: set[str]
    """Addresses that the page asked for over a network."""


Open = Callable[[bytes], Opened]


@pytest.fixture
def open_page(tmp_path: Path) -> Open:
    """Opens a page in headless Chromium."""
    programs = ("chromium", "chromium-browser", "google-chrome")
    program = next((found for found in map(shutil.which, programs) if found), None)
    if program is None:
        pytest.skip(f"none of {', '.join(programs)} is on PATH")

    def load(html: bytes) -> Opened:
        page, log = tmp_path / "report.html", tmp_path / "net.json"
        page.write_bytes(html)
        places = (f"--user-data-dir={tmp_path / 'profile'}", f"--log-net-log={log}", page.as_uri())
        done = subprocess.run([program, *FLAGS, *places], capture_output=True, check=True, timeout=120)
        return Opened(done.stdout.decode("utf-8"), requests_of_the_page(log))

    return load


def requests_of_the_page(log: Path) -> set[str]:
    """Return what the page asked for. The browser's own requests have no origin as their initiator."""
    events = json.loads(log.read_text(encoding="utf-8"))["events"]
    started = [event["params"] for event in events if "initiator" in event.get("params", {})]
    return {params["url"] for params in started if params["initiator"] != "not an origin"}


def title_of(dom: str) -> str:
    return str(re.findall(r"<title>(.*?)</title>", dom)[0])


@pytest.fixture
def report(small_run: Tables) -> bytes:
    """A report in which every description holds a script."""
    entries = small_run["entries"]
    place = entries.schema.get_field_index("description")
    described = entries.set_column(place, "description", pa.array([SCRIPT] * entries.num_rows))
    return render({**small_run, "entries": described}).html


def test_the_page_asks_for_nothing_shows_its_charts_and_runs_no_description(open_page: Open, report: bytes) -> None:
    opened = open_page(report)
    assert opened.requests == set()
    charts = re.findall(r"<svg.*?</svg>", opened.dom, re.DOTALL)
    sizes = [ElementTree.fromstring(chart).attrib for chart in charts]
    assert len(charts) == 12
    assert all(float(size["width"]) > 100 and float(size["height"]) > 50 for size in sizes)
    assert title_of(opened.dom).startswith("Assay · run ")
    assert "<script" not in opened.dom
    assert unescape(opened.dom).count(SCRIPT) > 20


def test_even_markup_that_slipped_in_could_run_and_fetch_nothing(open_page: Open, report: bytes) -> None:
    slipped = f'<img src="{ELSEWHERE}">{SCRIPT}</main>'.encode()
    opened = open_page(report.replace(b"</main>", slipped))
    assert opened.requests == set()
    assert title_of(opened.dom).startswith("Assay · run ")


def test_the_checks_would_notice_a_request_and_a_script(open_page: Open) -> None:
    opened = open_page(f'<title>safe</title><img src="{ELSEWHERE}">{SCRIPT}'.encode())
    assert opened.requests == {ELSEWHERE}
    assert title_of(opened.dom) == "pwned"
