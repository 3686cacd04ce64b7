"""Twenty processes write judgments at once, and some of them are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from pipeline.judgments.qrels import read_qrels
from pipeline.ledger.ledger import open_ledger
from pipeline.ledger.tables import COMMITS

WRITERS = 20
SECONDS = float(os.environ.get("LEDGER_SECONDS", "60"))
WRITER = """
import os, sys, time
from datetime import UTC, datetime
from pipeline.judgments.qrels import Judgment, append
from pipeline.ledger.ledger import open_ledger

url, name, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
ledger = open_ledger(url)
body = "0" * 64
# Two questions that all write about as one annotator, so that all want the same next number.
shared = [
    Judgment(query_id=q, chunk_id=f"class:{body}", judged_sha256=body, grade=1, source="human", annotator="shared")
    for q in ("Q1", "Q2")
]
end = time.monotonic() + seconds
done = 0
while time.monotonic() < end:
    own = shared[0].model_copy(update={"annotator": name, "rationale": str(done)})
    with ledger.adding(name, datetime.now(UTC)) as addition:
        append(addition, [*shared, own])
    done += 1
    os.write(1, f"{done}\\n".encode())
"""


@pytest.mark.slow
def test_no_row_is_lost_and_every_number_is_right_whoever_is_killed(ledger_url: str, tmp_path: Path) -> None:
    open_ledger(ledger_url).close()
    told = [tmp_path / f"writer-{number}" for number in range(WRITERS)]
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, ledger_url, each.name, str(SECONDS)], stdout=each.open("wb"))
        for each in told
    ]
    killed = writers[:6]
    try:
        for place, writer in enumerate(killed, start=1):
            time.sleep(SECONDS / (2 * len(killed)))
            if told[place - 1].stat().st_size or place > 1:
                writer.send_signal(signal.SIGKILL)
        assert [writer.wait(timeout=SECONDS + 120) for writer in writers[6:]] == [0] * (WRITERS - 6)
    finally:
        for writer in writers:
            writer.kill()
            writer.wait()
    ledger = open_ledger(ledger_url)
    qrels = read_qrels(ledger)
    last_told = {each.name: int((each.read_text().split() or ["0"])[-1]) for each in told}
    own = Counter(qrel.annotator for qrel in qrels if qrel.annotator != "shared")
    for name, count in last_told.items():
        # A writer that was killed may have committed once more than it told.
        assert own[name] - count in ((0, 1) if name in {each.name for each in told[:6]} else (0,)), name
    transactions = sum(own.values())
    assert transactions > WRITERS
    for query in ("Q1", "Q2"):
        numbers = [qrel.seq for qrel in qrels if qrel.annotator == "shared" and qrel.query_id == query]
        assert numbers == list(range(1, transactions + 1))
    by_position = Counter(qrel.position for qrel in qrels)
    assert set(by_position.values()) == {3}
    assert sorted(by_position) == list(range(1, transactions + 1))
    assert [row["position"] for row in ledger.rows(COMMITS)] == list(range(1, transactions + 1))
    ledger.close()
